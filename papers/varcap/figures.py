"""Draw figures of the varcap dissertation from our runs: 5.3, 6.4, 6.8, 7.3 and 7.5, with the same bars and lines.

Panels that the text has side by side are one below the other, so that they can be read on a narrow page.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import product
from pathlib import Path

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from batwatt.results.drawing import HATCHES, PALETTE, plain, save, styled
from papers.varcap.frames import FAILED, GOODPUT, WAIT, Case, common
from papers.varcap.measures import AZURE, BORG, HPC, INFORMED, RANGES, SIZES, STRUCTURES, TNG, case, held

WIDTH_IN, PANEL_IN = 4.4, 2.0
SYSTEMS = {HPC: "HPC (Mira)", AZURE: "Azure", BORG: "Borg"}
GRAY = PALETTE[6]
Bars = Mapping[str, Sequence[Case]]


class Means:
    """Mean and standard error of a figure over the pairs of a trace and a walk."""

    def __init__(self, runs: pd.DataFrame) -> None:
        self._groups = common(runs).groupby(list(Case._fields))[[GOODPUT, FAILED, WAIT]].agg(["mean", "sem"])

    def __call__(self, cases: Sequence[Case], figure: str) -> tuple[np.ndarray, np.ndarray]:
        """Return the means and the errors of cases. Raises KeyError."""
        rows = self._groups.loc[[tuple(one) for one in cases], figure]
        return rows["mean"].to_numpy(), rows["sem"].fillna(0.0).to_numpy()


def panels(count: int) -> tuple[Figure, list[Axes]]:
    """Return a figure with panels one below the other."""
    figure = Figure(figsize=(WIDTH_IN, 0.3 + PANEL_IN * count), layout="constrained")
    axes = [figure.add_subplot(count, 1, n + 1) for n in range(count)]
    for one in axes:
        plain(one)
        one.grid(visible=False, axis="x")
        one.tick_params(axis="x", length=0, labelbottom=one is axes[-1])
        one.yaxis.set_major_locator(MaxNLocator(3))
    return figure, axes


def bars(axes: Axes, means: Means, groups: Sequence[str], series: Bars, fixed: Case, colours: Sequence[str]) -> None:
    """Draw goodput: the fixed capacity at the left, then groups of a bar for each series."""
    width = 0.8 / len(series)
    height = means([fixed], GOODPUT)[0][0]
    axes.bar(0.0, height, 0.5, color="white", edgecolor="#3d4852", hatch=HATCHES[1], linewidth=0.8)
    for n, (label, cases) in enumerate(series.items()):
        heights, errors = means(cases, GOODPUT)
        at = np.arange(1, len(groups) + 1) + (n - (len(series) - 1) / 2.0) * width
        axes.bar(at, heights, width, yerr=errors, label=label, color=colours[n], error_kw={"elinewidth": 0.8})
    axes.set_xticks(range(len(groups) + 1), ["fixed", *groups])
    axes.set_yticks([0, 50, 100])
    axes.set_ylabel("goodput (%)")


def systems(means: Means, groups: Sequence[str], of: Mapping[str, Bars], colours: Sequence[str], title: str) -> Figure:
    """Draw a panel of bars for each system."""
    figure, axes = panels(len(of))
    for one, (system, series) in zip(axes, of.items(), strict=True):
        bars(one, means, groups, series, held(system), colours)
        one.set_title(SYSTEMS[system], fontsize=9)
    figure.legend(*axes[0].get_legend_handles_labels(), loc="outside upper center", ncols=4, frameon=False, title=title)
    return figure


def figure53(means: Means) -> Figure:
    """Goodput by range on walks and uniform capacities."""
    of = {s: {f"random {k}": [case(s, size, k) for size in SIZES] for k in STRUCTURES} for s in SYSTEMS}
    return systems(means, [f"range {size}" for size in SIZES], of, (PALETTE[0], PALETTE[4]), "")


def figure64(means: Means) -> Figure:
    """Goodput by termination policy, structure and range."""
    cells = list(product(STRUCTURES, SIZES))
    of = {s: {p: [case(s, size, k, p) for k, size in cells] for p in ("Random", "LFD", "LWW")} for s in SYSTEMS}
    groups = [f"{k}\n{size}" for k, size in cells]
    return systems(means, groups, of, (PALETTE[0], PALETTE[1], GRAY), "termination")


def figure68(means: Means) -> Figure:
    """Goodput by hours of foresight, structure and range."""
    cells = list(product(STRUCTURES, (0.2, 0.6)))
    of = {s: {f"{hours:g} h": [case(s, size, k, hours=hours) for k, size in cells]
              for hours in (0.0, 3.0, 6.0)} for s in SYSTEMS}  # fmt: skip
    return systems(means, [f"{k}\n{size}" for k, size in cells], of, (PALETTE[0], PALETTE[1], GRAY), "foresight")


MEASURED = {GOODPUT: "goodput (%)", FAILED: "job failure rate (%)", WAIT: "waiting time (s)"}


def figure73(means: Means) -> Figure:
    """Schedulers without foresight on a walk of range 0.6."""
    figure, axes = panels(3)
    named = {"fixed": held(TNG), "Base": case(TNG), "Migration": case(TNG, policy="Migration")}
    named |= {name: case(TNG, policy=name) for name in INFORMED}
    for one, (name, label) in zip(axes, MEASURED.items(), strict=True):
        heights, errors = means(list(named.values()), name)
        one.bar(range(len(named)), heights, 0.6, yerr=errors, color=[GRAY, *PALETTE[:5]], error_kw={"elinewidth": 0.8})
        one.set_xticks(range(len(named)), [text.replace("-Order", "-\nOrder") for text in named])
        one.set_ylabel(label)
        one.set_ylim(0, 100 if name == GOODPUT else None)
    return figure


def figure75(means: Means) -> Figure:
    """Schedulers by range."""
    figure, axes = panels(3)
    hours = {"Base": 0.0, "LongShort": 0.0, "TwoMode": 24.0}
    for one, (name, label) in zip(axes, MEASURED.items(), strict=True):
        for n, (policy, foresight) in enumerate(hours.items()):
            cases = [held(TNG), *(case(TNG, size, policy=policy, hours=foresight) for size in RANGES)]
            heights = means(cases, name)[0]
            text = "Random (Base)" if policy == "Base" else f"{policy} + 24 h foresight" if foresight else policy
            one.plot((0.0, *RANGES), heights, label=text, color=PALETTE[n], marker="os^"[n], markersize=4)
        one.set_ylabel(label)
        one.set_ylim(0, 100 if name == GOODPUT else None)
    axes[-1].set_xlabel("range of the walk")
    figure.legend(*axes[0].get_legend_handles_labels(), loc="outside upper center", ncols=3, frameon=False)
    return figure


DRAWN = {"5.3": figure53, "6.4": figure64, "6.8": figure68, "7.3": figure73, "7.5": figure75}


def draw(runs: pd.DataFrame, folder: Path) -> None:
    """Write figure-N.svg for each of `DRAWN`."""
    means = Means(runs)
    with styled():
        for number, make in DRAWN.items():
            save(make(means), folder / f"figure-{number}.svg")
