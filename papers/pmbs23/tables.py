"""Numbers, Figures 1 to 4 and tables of the riskaware paper's page, from the results of study.yaml and peer.csv."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from itertools import product
from pathlib import Path

import numpy as np
import pandas as pd
from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.patches import Patch
from matplotlib.ticker import MaxNLocator

from batwatt.results.drawing import GRID, INK, PALETTE, legend, panels_of, save, styled, unboxed
from papers import batsim, pages
from papers.pages import NOTHING, WORDS, markdown, mean_text
from papers.pmbs23 import measures, peer
from papers.pmbs23.measures import RULES, STRATEGIES, TEXT, TYPES
from papers.statements import Samples, Verdicts, statement_tables, statements_of, verdicts

HERE = Path(__file__).parent
PAGE, DATA = HERE / "README.md", HERE / "data"
READINGS = {
    "types": {("range", kind, 8.0): name for kind, name in TYPES.items()},
    "blurred": {("range", "3types", 8.0): "as in the text", ("blurred", "3types", 8.0): "blurred by 5 %"},
    "often": {
        ("period", "uniform", 400.0): "a load of 26 machines",
        ("moving", "uniform", 400.0): "walks that always move",
        ("longer", "uniform", 400.0): "jobs of 209,664 / n hours",
    },
}
AXES = {
    "mavg": "machines on average, M_avg",
    "period": "period of the changes, φ (s)",
    "range": "range of the number of machines, M_ra",
}
METRICS = {
    "goodput_percent": "Goodput (%)",
    "max_stretch": "MaximumStretch",
    "aborted_percent": "AbortedVolume (%)",
    "aborted_h": "AverageAbortedTime (h)",
}
"""Panels of Figure 4, of Borg; those of the others are types of jobs."""
WIDTH = 0.14
"""Width of a box, in distances of two values."""


def draw_all(runs: pd.DataFrame, folder: Path) -> None:
    """Write figure-1.svg to figure-4.svg."""
    for number, sweep in enumerate((*AXES, "range"), 1):
        rows = runs[(runs["rules"] == TEXT) & (runs["sweep"] == sweep)]
        panels = [(title, rows[rows["type"] == kind], "goodput_percent") for kind, title in TYPES.items()]
        if number == 4:
            panels = [(title, rows[rows["type"] == "borg"], figure) for figure, title in METRICS.items()]
        with styled(), rc_context(WORDS):
            chart, grid = panels_of(5.2, 5.6, 2, 2, margins_in=(0.7, 0.5), left=0.11, right=0.99, wspace=0.2,
                                    hspace=0.2, sharex=True)  # fmt: skip
            for axes, (title, part, figure) in zip(grid.flat, panels, strict=True):
                axes.set_title(title, loc="left", fontsize=9.0)
                draw_boxes(axes, part, figure, sorted(rows["value"].unique()))
            handles = [Patch(color=PALETTE[turn], label=label) for turn, label in enumerate(STRATEGIES.values())]
            legend(chart, handles, 0.02, columns=3)
            chart.supxlabel(AXES[sweep], fontsize=9.0, y=0.01)
            if number < 4:
                chart.supylabel(METRICS["goodput_percent"], fontsize=9.0, x=0.01)
            save(chart, folder / f"figure-{number}.svg")


def draw_boxes(axes: Axes, rows: pd.DataFrame, figure: str, values: list[float]) -> None:
    """Draw boxes of 25th to 75th percentile with the median, whiskers at the 10th and the 90th, and stars at means."""
    lines = []
    for turn, label in enumerate(STRATEGIES.values()):
        boxes, means = [], []
        for place, value in enumerate(values):
            sample = rows.loc[(rows["label"] == label) & (rows["value"] == value), figure].dropna()
            if sample.empty:
                continue
            low, first, middle, third, high = np.percentile(sample, (10, 25, 50, 75, 90))
            x = place + (turn - 2) * 1.2 * WIDTH
            boxes += [(x, first), (x, third), (x, np.nan)]
            lines += [(x, low), (x, high), (x, np.nan), (x - WIDTH / 2, middle), (x + WIDTH / 2, middle), (x, np.nan)]
            means.append((x, sample.mean()))
        axes.plot(*np.transpose(boxes), color=PALETTE[turn], linewidth=WIDTH * 35.0, solid_capstyle="butt", zorder=2)
        axes.plot(*np.transpose(means), "*", color="white", markersize=3.5, markeredgewidth=0.0, zorder=4)
    axes.plot(*np.transpose(lines), color=INK, linewidth=0.7, zorder=3)
    axes.set_xticks(range(len(values)), [f"{value:g}" for value in values])
    axes.yaxis.set_major_locator(MaxNLocator(5))
    axes.grid(axis="y", color=GRID, linewidth=0.6)
    unboxed(axes)


def judged(runs: pd.DataFrame, inputs: pd.DataFrame) -> dict[str, Verdicts]:
    """Return the verdicts by each of the rules; those of the inputs are the same."""
    statements = statements_of(HERE)
    shared = verdicts(statements, measures.OF_INPUTS, Samples.of_columns(inputs)).measured
    by_rules = {
        rules: verdicts(statements, measures.MEASURES, measures.samples_of(runs, rules), measures.SINGLE, lenient=True)
        for rules in RULES
    }
    return {rules: Verdicts(statements, {**ours.measured, **shared}) for rules, ours in by_rules.items()}


def goodputs(runs: pd.DataFrame, points: Mapping[tuple[str, str, float], str]) -> str:
    """Return mean goodput and its standard error at points, a row for each strategy and rules."""
    texts = runs.groupby(["label", "rules", "sweep", "type", "value"])["goodput_percent"].agg(mean_text, 1)
    rows = [
        [label, rules, *(texts.get((label, rules, *point), NOTHING) for point in points)]
        for label, rules in product(STRATEGIES.values(), RULES)
    ]
    return markdown(["strategy", "rules", *points.values()], (row for row in rows if NOTHING not in row), texts=2)


def tables(folder: Path = DATA) -> dict[str, str]:
    """Return every table, from the files of a folder."""
    runs = pd.read_csv(folder / "runs.csv.gz")
    by_rules = judged(runs, pd.read_csv(folder / "inputs.csv"))
    return {
        **statement_tables(by_rules, contradicted=True),
        "peer": peer.table(STRATEGIES),
        "batsim": batsim.table(HERE, STRATEGIES),
        **{name: goodputs(runs, points) for name, points in READINGS.items()},
    }


def make(results: Path) -> None:
    """Make the numbers, the figures and the tables of the riskaware paper's page from the results of study.yaml."""
    pages.write(DATA / "inputs.csv", measures.inputs_of())
    runs = measures.frame_of(results)
    pages.write(DATA / "runs.csv.gz", runs)
    draw_all(runs, HERE)


if __name__ == "__main__":
    sys.exit(pages.main(PAGE, tables, make, ("pmbs23",)))
