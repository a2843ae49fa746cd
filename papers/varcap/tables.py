"""Numbers, figures and tables of the varcap dissertation's page, from the results of study.yaml and prices.yaml.

`runs.csv.gz` has the figures of each run, `fairness.csv` the measures of terminations, `months.csv` and
`capacities.csv` are of capacities by carbon and price (`frames.py`). Panels that the text has side by side are one
below the other, so that they can be read on a narrow page.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import product
from pathlib import Path

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from batwatt.results.drawing import HATCHES, PALETTE, draw, plain
from papers import batsim, pages
from papers.pages import markdown, with_error
from papers.statements import (
    Samples,
    Verdicts,
    counts_table,
    statement_tables,
    statements_of,
    statements_table,
    verdicts,
    verdicts_by_kind,
)
from papers.varcap import frames, measures
from papers.varcap.frames import FAILED, GOODPUT, RUNNING, WAIT, Case, common
from papers.varcap.measures import HPC, INFORMED, LONGER, SIZES, STRUCTURES, TNG, case, held

HERE = Path(__file__).parent
PAGE, DATA = HERE / "README.md", HERE / "data"
RUNS = DATA / "runs.csv.gz"
WIDTH_IN, PANEL_IN = 4.4, 2.0
SYSTEMS = {HPC: "HPC (Mira)", measures.AZURE: "Azure", measures.BORG: "Borg"}
NAMES = {**SYSTEMS, HPC: "Mira"}
GRAY = PALETTE[6]
Bars = Mapping[str, Sequence[Case]]


def means_of(runs: pd.DataFrame) -> pd.DataFrame:
    """Return mean and standard error of figures of each case, over the pairs of a trace and a walk."""
    return common(runs).groupby(list(Case._fields))[[GOODPUT, RUNNING, FAILED, WAIT]].agg(["mean", "sem"])


def columns(means: pd.DataFrame, cases: Sequence[Case], figure: str) -> tuple[np.ndarray, np.ndarray]:
    """Return the means and the errors of a figure of cases. Raises KeyError."""
    rows = means.loc[[tuple(one) for one in cases], figure]
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


def bars(
    axes: Axes, means: pd.DataFrame, groups: Sequence[str], series: Bars, fixed: Case, colours: Sequence[str]
) -> None:
    """Draw goodput: the fixed capacity at the left, then groups of a bar for each series."""
    width = 0.8 / len(series)
    height = columns(means, [fixed], GOODPUT)[0][0]
    axes.bar(0.0, height, 0.5, color="white", edgecolor="#3d4852", hatch=HATCHES[1], linewidth=0.8)
    for n, (label, cases) in enumerate(series.items()):
        heights, errors = columns(means, cases, GOODPUT)
        at = np.arange(1, len(groups) + 1) + (n - (len(series) - 1) / 2.0) * width
        axes.bar(at, heights, width, yerr=errors, label=label, color=colours[n], error_kw={"elinewidth": 0.8})
    axes.set_xticks(range(len(groups) + 1), ["fixed", *groups])
    axes.set_yticks([0, 50, 100])
    axes.set_ylabel("goodput (%)")


def systems(
    means: pd.DataFrame, groups: Sequence[str], of: Mapping[str, Bars], colours: Sequence[str], title: str
) -> Figure:
    """Draw a panel of bars for each system."""
    figure, axes = panels(len(of))
    for one, (system, series) in zip(axes, of.items(), strict=True):
        bars(one, means, groups, series, held(system), colours)
        one.set_title(SYSTEMS[system], fontsize=9)
    figure.legend(*axes[0].get_legend_handles_labels(), loc="outside upper center", ncols=4, frameon=False, title=title)
    return figure


def figure53(means: pd.DataFrame) -> Figure:
    """Goodput by range on walks and uniform capacities."""
    of = {s: {f"random {k}": [case(s, size, k) for size in SIZES] for k in STRUCTURES} for s in SYSTEMS}
    return systems(means, [f"range {size}" for size in SIZES], of, (PALETTE[0], PALETTE[4]), "")


def figure64(means: pd.DataFrame) -> Figure:
    """Goodput by termination policy, structure and range."""
    cells = list(product(STRUCTURES, SIZES))
    of = {s: {p: [case(s, size, k, p) for k, size in cells] for p in ("Random", "LFD", "LWW")} for s in SYSTEMS}
    groups = [f"{k}\n{size}" for k, size in cells]
    return systems(means, groups, of, (PALETTE[0], PALETTE[1], GRAY), "termination")


def figure68(means: pd.DataFrame) -> Figure:
    """Goodput by hours of foresight, structure and range."""
    cells = list(product(STRUCTURES, (0.2, 0.6)))
    of = {s: {f"{hours:g} h": [case(s, size, k, hours=hours) for k, size in cells]
              for hours in (0.0, 3.0, 6.0)} for s in SYSTEMS}  # fmt: skip
    return systems(means, [f"{k}\n{size}" for k, size in cells], of, (PALETTE[0], PALETTE[1], GRAY), "foresight")


MEASURED = {GOODPUT: "goodput (%)", FAILED: "job failure rate (%)", WAIT: "waiting time (s)"}


def figure73(means: pd.DataFrame) -> Figure:
    """Schedulers without foresight on a walk of range 0.6."""
    figure, axes = panels(3)
    named = {"fixed": held(TNG), "Base": case(TNG), "Migration": case(TNG, policy="Migration")}
    named |= {name: case(TNG, policy=name) for name in INFORMED}
    for one, (name, label) in zip(axes, MEASURED.items(), strict=True):
        heights, errors = columns(means, list(named.values()), name)
        one.bar(range(len(named)), heights, 0.6, yerr=errors, color=[GRAY, *PALETTE[:5]], error_kw={"elinewidth": 0.8})
        one.set_xticks(range(len(named)), [text.replace("-Order", "-\nOrder") for text in named])
        one.set_ylabel(label)
        one.set_ylim(0, 100 if name == GOODPUT else None)
    return figure


def figure75(means: pd.DataFrame) -> Figure:
    """Schedulers by range."""
    figure, axes = panels(3)
    hours = {"Base": 0.0, "LongShort": 0.0, "TwoMode": 24.0}
    for one, (name, label) in zip(axes, MEASURED.items(), strict=True):
        for n, (policy, foresight) in enumerate(hours.items()):
            cases = [held(TNG), *(case(TNG, size, policy=policy, hours=foresight) for size in measures.RANGES)]
            heights = columns(means, cases, name)[0]
            text = "Random (Base)" if policy == "Base" else f"{policy} + 24 h foresight" if foresight else policy
            one.plot((0.0, *measures.RANGES), heights, label=text, color=PALETTE[n], marker="os^"[n], markersize=4)
        one.set_ylabel(label)
        one.set_ylim(0, 100 if name == GOODPUT else None)
    axes[-1].set_xlabel("range of the walk")
    figure.legend(*axes[0].get_legend_handles_labels(), loc="outside upper center", ncols=3, frameon=False)
    return figure


FIGURES = {"5.3": figure53, "6.4": figure64, "6.8": figure68, "7.3": figure73, "7.5": figure75}


def samples_in(folder: Path, runs: pd.DataFrame) -> dict[str, Samples]:
    """Return the samples of each kind, from runs and from a folder of data."""
    others = (pd.read_csv(folder / f"{name}.csv") for name in ("fairness", "months", "capacities"))
    return measures.all_samples(runs, *others)


def judged(samples: Mapping[str, Samples]) -> dict[str, Verdicts]:
    """Return the verdicts of all statements, and those of some in two other readings."""
    statements = statements_of(HERE)
    readings = {"longer": (measures.EIGHTFOLD, "longer"), "any": (measures.ANY_MACHINE, "systems")}
    judged_here = {"": unbounded(verdicts_by_kind(statements, measures.MEASURES, samples))}
    for name, (quantities, kind) in readings.items():
        part = [statement for statement in statements if statement.place in quantities]
        judged_here[name] = unbounded(verdicts(part, quantities, samples[kind]))
    return judged_here


def unbounded(judged_here: Verdicts) -> Verdicts:
    """Return the verdicts with no upper end for variations of Table 7.3 that are those of the greatest range."""
    ours = {
        place: replace(one, high=math.inf)
        if place in measures.TABLE_7_3 and one.low == measures.MOST_VARIATION
        else one
        for place, one in judged_here.measured.items()
    }
    return replace(judged_here, measured=ours)


def cells(means: pd.DataFrame, one: Case | None, *names: str) -> list[str]:
    """Return the mean ± standard error of figures of a case; dashes if it was not run."""
    if one is None or tuple(one) not in means.index:
        return [pages.NOTHING] * len(names)
    row = means.loc[tuple(one)]
    texts = []
    for name in names:
        places = 0 if name == WAIT else 2 if name == FAILED else 1
        texts.append(with_error(row[name, "mean"], row[name, "sem"], places))
    return texts


def terminations(means: pd.DataFrame) -> str:
    """Return goodput by termination, system and range, and with runs in progress and failures at range 0.6."""
    rows = []
    for system in measures.DEDICATED:
        for policy in ("Random", "LWW", "LFD", *([frames.ANY] if system == HPC else [])):
            walks = [case(system, size, policy=policy) for size in SIZES]
            goodputs = [cells(means, one, GOODPUT)[0] for one in (held(system), *walks)]
            rows.append([NAMES[system], policy, *goodputs, *cells(means, walks[-1], RUNNING, FAILED)])
    heading = ["system", "termination", "fixed", *map(str, SIZES), "0.6, with running", "0.6: failures"]
    return markdown(heading, rows, texts=2)


def foresight(means: pd.DataFrame) -> str:
    """Return goodput and failures by hours of foresight with exact run times, on walks of range 0.6."""
    rows = [
        [NAMES[system], f"{hours:g} h", *cells(means, case(system, hours=hours), GOODPUT, FAILED, WAIT)]
        for system in measures.DEDICATED
        for hours in (0.0, 3.0, 6.0, 24.0)
    ]
    return markdown(["system", "foresight", "goodput (%)", "failures (% of runs)", "wait (s)"], rows, texts=2)


def schedulers(means: pd.DataFrame) -> str:
    """Return the schedulers of chapter 7 on walks of range 0.6: TNG, as if jobs ran longer, a cell of full size."""
    rows: list[tuple[str, float, Case, Case | None]] = [("fixed", 0.0, held(TNG), held(LONGER))]
    rows.append(("fixed, 476 machines", 0.0, held("full"), None))
    rows += [(f"{name}, 476 machines", 0.0, case("full", policy=name), None) for name in ("Base", "LongShort")]
    rows.append(("fixed, strict", 0.0, *(held(system)._replace(policy="Base, strict") for system in (TNG, LONGER))))
    for policy, hours in product(("Base", "Base, strict", "Migration", *INFORMED, "LWW", "LFD"), (0.0, 6.0, 24.0)):
        longer = case(LONGER, policy=policy, period_s=450.0, hours=hours / 8.0)
        rows.append((policy, hours, case(TNG, policy=policy, hours=hours), longer))
    heads = {GOODPUT: "goodput (%)", RUNNING: "with running (%)", FAILED: "failures (%)", WAIT: "wait (s)"}
    lines = [
        [policy, f"{hours:g} h", *cells(means, one, *heads), *cells(means, longer, GOODPUT, FAILED, WAIT)]
        for policy, hours, one, longer in rows
        if tuple(one) in means.index
    ]
    longer_heads = [f"longer: {heads[name]}" for name in (GOODPUT, FAILED, WAIT)]
    return markdown(["scheduler", "foresight", *heads.values(), *longer_heads], lines, texts=2)


def tables(folder: Path = DATA) -> dict[str, str]:
    """Return every table."""
    runs = frames.read_runs(folder / RUNS.name)
    judged_here = judged(samples_in(folder, runs))
    ours = judged_here[""]
    means = means_of(runs)
    return {
        **statement_tables({"": ours}, contradicted=True),
        "longer-summary": counts_table({"": judged_here["longer"]}),
        "terminations": terminations(means),
        "batsim": batsim.table(HERE),
        "foresight": foresight(means),
        "schedulers": schedulers(means),
        "longer": statements_table({"here": judged_here["longer"]}),
        "any": statements_table({"here": judged_here["any"]}),
    }


def make(results: Path, priced: Path) -> None:
    """Make the numbers, the figures and the tables of the varcap page from the results of its studies."""
    frames.write_runs((results, priced), RUNS)
    frames.write_fairness(results, DATA / "fairness.csv")
    frames.write_prices(DATA)
    means = means_of(frames.read_runs(RUNS))
    for number, chart in FIGURES.items():
        draw(HERE / f"figure-{number}.svg", partial(chart, means))


if __name__ == "__main__":
    sys.exit(pages.main(PAGE, tables, make, ("varcap", "varcap-prices")))
