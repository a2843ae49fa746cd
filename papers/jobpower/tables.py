"""Run jobpower's checks and predictors over 20 seeds (some 10 minutes), for the page on power per job.

Each seed has its own 500 jobs (`python -m papers.generators pm100 --seed SEED`) on platforms/marconi100-48.xml, and its
own envelope: a random walk between 30 and 90 % of the largest mean power of Marconi100's nodes above idle, in steps of
30 minutes. All runs of a seed have the same jobs and the same envelope.
"""

from __future__ import annotations

import logging
import sys
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from batwatt.batsim.adapters import simulate
from batwatt.batsim.batsim4 import EngineConfig
from batwatt.engine.core import Engine
from batwatt.inputs.platform_files import read_platform
from batwatt.model.platform import Platform
from batwatt.model.timeline import Timeline
from batwatt.model.workload import Workload
from batwatt.protocol.workload4 import parse_workload
from batwatt.results import drawing
from batwatt.results.job_power import job_power_figures
from batwatt.results.run_files import RunData
from batwatt.schedulers.jobpower import Jobpower
from batwatt.units import HOUR_S
from papers import pages
from papers.generators.pm100 import IDLE_W, TYPICAL_W, pm100_like
from papers.pages import markdown, mean_text
from papers.statements import Quantity, Samples, Statistic, mean, statement_tables, statements_of, verdicts

HERE = Path(__file__).resolve().parent
PAGE, RUNS, FIGURE = HERE / "README.md", HERE / "data" / "runs.csv", HERE / "figure.png"
PLATFORM = HERE.parents[1] / "platforms" / "marconi100-48.xml"

SEEDS = range(1, 21)
STEP_S, STEPS = 1800.0, 600
LOW, HIGH, STRIDE = 0.3, 0.9, 0.1

KEEP, KILL = "keep", "kill-latest"
NONE, NODE, EXACT = "none", "node", "exact"
CHECKS: dict[str, Any] = {
    "mean": "mean",
    "knapsack": "knapsack",
    "gaussian 1": {"name": "gaussian", "sigma": 1},
    "gaussian 2": {"name": "gaussian", "sigma": 2},
    "gaussian 3": {"name": "gaussian", "sigma": 3},
    "max": "max",
}
"""Name -> option; Gaussian checks have their sigma."""
PREDICTORS = (EXACT, "user", "user-queue-width", "history")
KILLING = (EXACT, "history")
"""Predictors that also run with kills."""
KEPT_OFF = {(check, "user") for check in CHECKS if check.startswith("gaussian")} | {
    ("knapsack", "history"),
    ("knapsack", "user"),
}
KILLED_OFF = ("knapsack", "gaussian 1", "gaussian 2")
"""Checks and predictors in runs.csv but not on the page, such as the predictor user-queue-width."""


@dataclass(frozen=True)
class Case:
    """A run of a seed: its action above the cap, check and predictor."""

    excess: str
    check: str
    predictor: str

    @property
    def options(self) -> dict[str, Any]:
        """Options of the scheduler."""
        values = {"power_check": CHECKS.get(self.check, NODE), "predictor": self.predictor, "excess": self.excess}
        return values | ({"victim": "resubmit"} if self.excess == KILL else {})


def cases() -> Iterator[Case]:
    """Yield all cases of a seed."""
    yield Case(KEEP, NONE, EXACT)
    for excess, predictors in ((KEEP, PREDICTORS), (KILL, KILLING)):
        yield Case(excess, NODE, EXACT)
        for check in CHECKS:
            for predictor in predictors:
                yield Case(excess, check, predictor)


def envelope_of(seed: int, nodes: int) -> Timeline:
    """Return the cap in W of a seed; after 300 hours the highest, so that all jobs can end."""
    rng = np.random.default_rng([seed, 7])
    share, shares = 0.6, []
    for _ in range(STEPS):
        shares.append(share)
        share = round(min(HIGH, max(LOW, share + STRIDE * float(rng.choice([-1.0, 1.0])))), 6)
    watts = [nodes * (IDLE_W + each * (TYPICAL_W - IDLE_W)) for each in (*shares, HIGH)]
    return Timeline(tuple(STEP_S * i for i in range(STEPS + 1)), tuple(watts), "power_w", f"seed {seed}")


def run_case(case: Case, platform: Platform, workload: Workload, envelope: Timeline) -> dict[str, Any]:
    """Run a case and return its figures."""
    limit = {} if case.check == NONE else {"envelope": envelope}
    scheduler = Jobpower({"platform": platform, **case.options, **limit})
    again = scheduler.needs_dynamic_jobs
    engine = Engine(platform, [workload], EngineConfig(energy=False, dynamic_jobs=again, profile_reuse=again))
    data = RunData("jobpower", simulate(engine, scheduler))
    scores = scheduler.scores
    scored = {"mape": scores.mape, "mape_known": scores.mape_known, "blind_share": scores.blind_share}
    return asdict(case) | job_power_figures(data, workload, platform, envelope) | scored


def groups(runs: pd.DataFrame, excess: str) -> Iterator[tuple[str, str, pd.DataFrame]]:
    """Yield (check, predictor, its runs by seed) in the order of the runs."""
    of_excess = runs[runs["excess"] == excess]
    for (check, predictor), rows in of_excess.groupby(["check", "predictor"], sort=False):
        yield str(check), str(predictor), rows.set_index("seed")


def texts(rows: pd.DataFrame, base: pd.DataFrame) -> list[str]:
    """Return time above the cap, turnaround, and its change from that of other runs of the same seeds."""
    turnaround_s = rows["mean_turnaround_s"]
    change = 100.0 * (turnaround_s / base["mean_turnaround_s"] - 1.0)
    columns = ((100.0 * rows["share_above"], 1), (turnaround_s / HOUR_S, 2), (change, 1))
    return [mean_text(values, decimals) for values, decimals in columns]


def checks_table(runs: pd.DataFrame) -> str:
    """Return the table of runs without kills; turnaround against that of node-level watts, by seed."""
    base = next(rows for check, _, rows in groups(runs, KEEP) if check == NODE)
    lines = []
    for check, predictor, rows in groups(runs, KEEP):
        if predictor != "user-queue-width" and (check, predictor) not in KEPT_OFF:
            *cells, against = texts(rows, base)
            name = "" if check in (NONE, NODE) else predictor
            lines.append([check, name, *cells, "" if check == NODE else against])
    heads = ["check", "predictor", "above the cap, % of time", "turnaround, h", "against node, %"]
    return markdown(heads, lines, texts=2)


def kills_table(runs: pd.DataFrame) -> str:
    """Return the table of runs that kill the last started jobs; turnaround against that without kills, by seed."""
    without = {(check, predictor): rows for check, predictor, rows in groups(runs, KEEP)}
    lines = []
    for check, predictor, rows in groups(runs, KILL):
        if check not in KILLED_OFF:
            name, kills = "" if check == NODE else predictor, mean_text(rows["killed_power"], 1)
            lines.append([check, name, kills, *texts(rows, without[check, predictor])])
    heads = ["check", "predictor", "kills", "above the cap, % of time", "turnaround, h", "against no kills, %"]
    return markdown(heads, lines, texts=2)


def predictors_table(runs: pd.DataFrame) -> str:
    """Return the errors of the predictors in the runs with the check `mean`."""
    lines = []
    for check, predictor, rows in groups(runs, KEEP):
        if check == "mean":
            shares = (100.0 * rows[name] for name in ("mape", "mape_known", "blind_share"))
            lines.append([predictor, *(mean_text(values, 1) for values in shares)])
    return markdown(["predictor", "MAPE, %", "of those with a history, %", "without one, % of runs"], lines)


def above(check: str, excess: str = KEEP) -> Quantity:
    """Return the time above the cap with the exact power, in %."""
    return 100.0 * mean("share_above", excess, check, EXACT)


def hours(check: str, predictor: str = EXACT, excess: str = KEEP) -> Quantity:
    """Return the mean turnaround of a case in h."""
    return mean("mean_turnaround_s", excess, check, predictor) / HOUR_S


STEPS_OF_SIGMA = list(pairwise(("mean", "gaussian 1", "gaussian 2", "gaussian 3")))
MEASURES: dict[int, Statistic] = dict(enumerate((
    hours("mean", "history") / hours(NODE),
    hours("max", "history") / hours(NODE),
    *(100.0 * (1.0 - above(safer) / above(check)) for check, safer in STEPS_OF_SIGMA),
    *(100.0 * (hours(safer) / hours(check) - 1.0) for check, safer in STEPS_OF_SIGMA),
    above("mean"),
    above("gaussian 3") - above("max"),
    hours("max") / hours("gaussian 3"),
    hours("mean", "user") - hours("mean", "history"),
    hours("mean", "user") / hours("mean"),
    hours("mean", "user-queue-width") / hours("mean"),
    hours("knapsack") / hours("mean"),
    above("gaussian 3", KILL),
    above("max", KILL),
    100.0 * above("mean", KILL) / above("mean"),
    *(100.0 * (hours(check, EXACT, KILL) / hours(check) - 1.0) for check in ("mean", "gaussian 3", NODE)),
), 1))  # fmt: skip
"""Number of a row of statements.csv -> its quantity; samples are seeds."""


def samples_of(runs: pd.DataFrame) -> Samples:
    """Return time above the cap and mean turnaround of each case by seed."""
    wide = runs.pivot(
        index="seed", columns=["excess", "check", "predictor"], values=["share_above", "mean_turnaround_s"]
    )
    return Samples({key: wide[key].to_numpy() for key in wide})


def tables() -> dict[str, str]:
    """Return every table, from runs.csv."""
    runs = pd.read_csv(RUNS)
    judged = verdicts(statements_of(HERE), MEASURES, samples_of(runs))
    return {
        **statement_tables({"": judged}, "finding"),
        "checks": checks_table(runs),
        "kills": kills_table(runs),
        "predictors": predictors_table(runs),
    }


def tradeoff(runs: pd.DataFrame) -> Figure:
    """Draw the share of time above the cap against mean turnaround: means and standard errors over the seeds."""
    figure, [[axes]] = drawing.panels_of(drawing.WIDTH_IN, 4.2, 1, 1, margins_in=(0.42, 0.48), left=0.09, right=0.985)
    points = {(check, predictor): rows for check, predictor, rows in groups(runs, KEEP)}
    for number, predictor in enumerate(PREDICTORS):
        colour = drawing.PALETTE[number]
        chain = ["mean", "gaussian 1", "gaussian 2", "gaussian 3"]
        line = [_point(points[check, predictor]) for check in chain]
        axes.plot(*zip(*line, strict=True), color=colour, linewidth=0.9, zorder=1)
        axes.plot([], [], color=colour, linewidth=3.0, label=predictor)
        for turn, check in enumerate(CHECKS):
            _draw(axes, points[check, predictor], colour, drawing.MARKERS[turn])
    for turn, check in enumerate(CHECKS):
        axes.plot([], [], color=drawing.INK, marker=drawing.MARKERS[turn], linestyle="", markersize=4.5, label=check)
    for check, label in ((NONE, "no check"), (NODE, "node: full watts")):
        _draw(axes, points[check, EXACT], drawing.CAP, "X" if check == NODE else "P")
        x, y = _point(points[check, EXACT])
        side = -1 if check == NODE else 1
        axes.annotate(label, (x, y), (8 * side, 4), textcoords="offset points", ha="left" if side > 0 else "right")
    axes.set_xscale("log")
    ticks = [1.5, 2, 3, 4, 5, 6, 8, 10, 15, 20, 30]
    axes.set_xticks(ticks, [str(tick) for tick in ticks])
    axes.set_xticks([], minor=True)
    axes.set_xlabel("mean turnaround (h)")
    axes.set_ylabel("time above the cap (%)")
    # room for markers at 0
    axes.set_ylim(bottom=-0.8)
    drawing.plain(axes)
    axes.legend(fontsize=7.0, frameon=False, ncols=2, loc="upper right")
    drawing.headline(figure, "Time above the cap against turnaround: checks and predictors, 20 seeds", 0.05)
    return figure


def _point(rows: pd.DataFrame) -> tuple[float, float]:
    return float(rows["mean_turnaround_s"].mean() / HOUR_S), float(100.0 * rows["share_above"].mean())


def _draw(axes: Axes, rows: pd.DataFrame, colour: str, marker: str) -> None:
    x, y = _point(rows)
    errors = rows["mean_turnaround_s"].sem() / HOUR_S, 100.0 * rows["share_above"].sem()
    axes.errorbar(
        x, y, xerr=errors[0], yerr=errors[1], color=colour, marker=marker, markersize=4.5, linewidth=0.0,
        elinewidth=0.6, alpha=0.95, zorder=2,
    )  # fmt: skip


def make() -> None:
    """Run all checks and predictors over 20 seeds; make the figure and the tables of the page on power per job."""
    logging.disable(logging.WARNING)
    platform, rows = read_platform(PLATFORM), []
    for seed in SEEDS:
        workload = parse_workload(pm100_like(None, seed), "w0", f"seed {seed}")
        envelope = envelope_of(seed, len(platform))
        rows += [{"seed": seed} | run_case(case, platform, workload, envelope) for case in cases()]
        print(f"seed {seed}: {len(rows)} runs", file=sys.stderr)
    pages.write(RUNS, pd.DataFrame(rows), "%.9g")
    drawing.draw(FIGURE, lambda: tradeoff(pd.read_csv(RUNS)))


if __name__ == "__main__":
    sys.exit(pages.main(PAGE, tables, make))
