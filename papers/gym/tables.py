"""Run the stored agents and all fixed policies on the held-back days (some ten minutes), for the page's table."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from batwatt.results import drawing
from papers import pages
from papers.gym import agent
from papers.gym.agent import SEEDS, Decide, Network, run_day
from papers.pages import markdown, number

HERE = Path(__file__).resolve().parent
PAGE, DATA, FIGURE = HERE / "README.md", HERE / "data", HERE / "figure.png"
RUNS = DATA / "held-back.csv"
MJ = 1e-6
AGENT, TIMEOUT, RESERVE = "agent", "timeout", "reserve"
T_95 = 2.0227
"""Quantile 0.975 of Student's t with 39 degrees of freedom."""


def policies() -> Iterator[tuple[str, str, Decide, float]]:
    """Yield (kind, name, decisions, period in s of checks of hosts) of each policy to run on each day."""
    for seed in SEEDS:
        yield AGENT, str(seed), Network.read(DATA / f"agent-{seed}.npz"), agent.LOOK_S
    for timeout_s in agent.TIMEOUTS_S:
        yield TIMEOUT, f"{timeout_s:g}", agent.always(0, timeout_s), agent.TIMEOUT_EVERY_S
    for reserve in agent.RESERVES[1:]:
        yield RESERVE, f"{reserve}", agent.always(reserve, agent.EXCESS_S), agent.LOOK_S


def make() -> None:
    """Run agents and fixed policies on the held-back days; make the figure and the table of the page."""
    rows = []
    for kind, name, decide, every_s in policies():
        rows += [
            {"kind": kind, "name": name, "day": day, **run_day(day, decide, every_s)} for day in agent.HELD_BACK_DAYS
        ]
        print(kind, name, file=sys.stderr, flush=True)
    pages.write(RUNS, pd.DataFrame(rows), "%.10g")
    drawing.draw(FIGURE, lambda: chart(pd.read_csv(RUNS, dtype={"name": str})))


def by_name(runs: pd.DataFrame, kind: str) -> dict[str, pd.DataFrame]:
    """Return name -> rows by day of the policies of a kind, the longest mean wait first."""
    groups = {str(name): rows.set_index("day") for name, rows in runs[runs["kind"] == kind].groupby("name")}
    return dict(sorted(groups.items(), key=lambda item: -item[1]["mean_wait_s"].mean()))


def point(rows: pd.DataFrame) -> tuple[float, float]:
    """Return mean wait in s and mean energy in J."""
    return float(rows["mean_wait_s"].mean()), float(rows["energy_j"].mean())


def front(groups: dict[str, pd.DataFrame]) -> list[pd.DataFrame]:
    """Return the policies on the lower convex hull of mean energy over mean wait, the shortest wait first."""
    hull: list[pd.DataFrame] = []
    for rows in sorted(groups.values(), key=point):
        if hull and point(rows)[1] >= point(hull[-1])[1]:
            continue
        while len(hull) > 1 and _turns_up(hull[-2], hull[-1], rows):
            hull.pop()
        hull.append(rows)
    return hull


def _turns_up(first: pd.DataFrame, middle: pd.DataFrame, last: pd.DataFrame) -> bool:
    """Return True if the middle point lies on or above the line between the others."""
    (x0, y0), (x1, y1), (x2, y2) = point(first), point(middle), point(last)
    return (y1 - y0) * (x2 - x0) >= (y2 - y0) * (x1 - x0)


def mixture(hull: list[pd.DataFrame], wait_s: float) -> pd.DataFrame | None:
    """Mix two neighbours of a front so that their mean wait is `wait_s`; None beyond its ends."""
    for short, long in pairwise(hull):
        low, high = point(short)[0], point(long)[0]
        if low <= wait_s <= high:
            share = (wait_s - low) / (high - low)
            columns = ["mean_wait_s", "energy_j"]
            return (1.0 - share) * short[columns] + share * long[columns]
    return None


def agents_table(runs: pd.DataFrame) -> str:
    """Return the agents, with energies against mixtures of timeouts and of fixed reserves of equal mean wait."""
    lines = []
    for name, rows in sorted(by_name(runs, AGENT).items()):
        wait_s, energy_j = point(rows)
        line = [name, number(wait_s, 1), number(energy_j * MJ, 2)]
        for kind in (TIMEOUT, RESERVE):
            mixed = mixture(front(by_name(runs, kind)), wait_s)
            if mixed is None:
                line += [pages.NOTHING, pages.NOTHING]
                continue
            more = (rows["energy_j"] - mixed["energy_j"]) * MJ
            share = 100.0 * more.mean() / (mixed["energy_j"].mean() * MJ)
            line += [pages.with_error(more.mean(), T_95 * more.sem(), 2, signed=True), number(share, 1, signed=True)]
        lines.append(line)
    heads = ["agent", "mean wait, s", "energy, MJ", "against timeouts, MJ", "%", "against fixed reserves, MJ", "%"]
    return markdown(heads, lines)


def tables() -> dict[str, str]:
    """Return the table of the page, from held-back.csv."""
    return {"agents": agents_table(pd.read_csv(RUNS, dtype={"name": str}))}


def chart(runs: pd.DataFrame) -> Figure:
    """Draw energy against mean wait on the held-back days, and the learning curves."""
    figure, [[left, right]] = drawing.panels_of(
        drawing.WIDTH_IN, 3.6, 1, 2, margins_in=(0.42, 0.48), left=0.08, right=0.985, wspace=0.25
    )
    for number_, (kind, label) in enumerate(((TIMEOUT, "timeouts"), (RESERVE, "fixed reserves"))):
        waits_s, energies_j = np.transpose([point(rows) for rows in front(by_name(runs, kind))])
        left.plot(waits_s, energies_j * MJ, color=drawing.PALETTE[number_], marker=".", label=label)
    for name, rows in sorted(by_name(runs, AGENT).items()):
        wait_s, energy_j = point(rows)
        left.plot(wait_s, energy_j * MJ, "D", color=drawing.PALETTE[2], label=f"agent, seed {name}")
        curve = pd.read_csv(DATA / f"curve-{name}.csv")
        right.plot(curve["decisions"] / 1e3, curve["return"], label=f"seed {name}")
    left.set_xlabel("mean wait (s)")
    left.set_ylabel("energy (MJ)")
    right.set_xlabel("decisions (thousands)")
    right.set_ylabel("mean return of ten days of tuning")
    for axes in (left, right):
        drawing.plain(axes)
        axes.legend(fontsize=7.0, frameon=False)
    drawing.headline(figure, "Agents, timeouts and fixed reserves on 40 held-back days; learning curves", 0.05)
    return figure


if __name__ == "__main__":
    sys.exit(pages.main(PAGE, tables, make))
