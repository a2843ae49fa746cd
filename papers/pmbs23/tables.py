"""Numbers, Figures 1 to 4 and tables of the riskaware paper's page, from the results of study.yaml and peer.csv.

Samples of statements are the six pairs of a trace and a walk; of generated inputs, the seeds. A key is (sweep, type,
value, label, figure), or the name of a property of the inputs. A point is a value of a sweep and a type of jobs; a
statement about several types is about the values that all of them were run with, "settings" are the points of all
sweeps. A statement about each strategy is about the one to which it applies least. Shares and ranks are means of those
in each sample. Names in the table of the study: workload uniform-20000-0 (type, jobs, seed) or 14D_518400 (a slice of
the Borg trace), capacity walk-24-8-1200-3 (machines on average, range, period in s, seed).
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from itertools import combinations, product
from pathlib import Path

import numpy as np
import pandas as pd
from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.patches import Patch
from matplotlib.ticker import MaxNLocator
from numpy.typing import NDArray

from batwatt.results.drawing import GRID, INK, PALETTE, legend, panels_of, save, styled, unboxed
from papers import batsim, pages
from papers.generators.pmbs import Kind, Synthetic, Walk, random_walk, synthetic
from papers.pages import NOTHING, WORDS, markdown, mean_text, runs_of
from papers.pmbs23 import peer
from papers.statements import Samples, Statistic, Verdicts, statement_tables, statements_of, verdicts

STRATEGIES = {
    "first-fit-aware": "FirstFitAware",
    "first-fit-unaware": "FirstFitUnaware",
    "target-stretch": "TargetStretch",
    "target-asap": "TargetASAP",
    "packed-target-asap": "PackedTargetASAP",
}
"""Option `strategy` -> name in the paper, in the order of its figures."""
TYPES = {"uniform": "SyntheticUniform", "log-scale": "SyntheticLogScale", "3types": "Synthetic3types", "borg": "Borg"}
"""Type of jobs in the names of comparisons -> name in the paper."""
RULES = TEXT, PROGRAM = "text", "program"
"""Rules of the strategies: those of the paper's text, and those of the authors' program."""
ALIKE = {"blurred": "range", "moving": "period", "longer": "period"}
"""Comparison of a reading of section 5 -> the sweep that has a point of the same value."""
USUAL = {"mavg": 24.0, "period": 1200.0, "range": 8.0}
"""Value of each sweep at the point that all have in common."""
WHERE = ["rules", "sweep", "type", "value", "label", "trace", "walk"]
FIGURES = {
    "goodput_with_running": ("goodput_percent", 100.0),
    "aborted_volume": ("aborted_percent", 100.0),
    "mean_aborted_time_s": ("aborted_h", 1.0 / 3600.0),
    "max_full_speed_slowdown": ("max_stretch", 1.0),
    "mean_full_speed_slowdown": ("mean_stretch", 1.0),
    "completed_fraction": ("completed_percent", 100.0),
    "terminations": ("kills", 1.0),
    "capacity_core_s": ("machines", 1.0 / (24.0 * 1_209_600.0)),
}
"""Column of a study -> name and factor of a figure of the page: 24 cores, two weeks; goodput of section 3.4."""
WEEK_S = 604_800.0
SEEDS = range(30)


def frame_of(results: Path) -> pd.DataFrame:
    """Return the runs of the study, in the units of the statements. Raises ValueError if runs failed."""
    runs = runs_of(results, ["study", "strategy", "workload", "capacity", *FIGURES])
    names = runs["study"].str.extract(rf"(?P<rules>{PROGRAM}-)?(?P<sweep>[a-z]+)-(?P<type>.+)")
    walks = runs["capacity"].str.extract(r"walk-(?P<mavg>\d+)-(?P<range>\d+)-(?P<period>\d+)-(?P<walk>\d+)")
    where = names.assign(
        rules=names["rules"].notna().map({False: TEXT, True: PROGRAM}),
        value=[float(walks.at[row, ALIKE.get(sweep, sweep)]) for row, sweep in names["sweep"].items()],
        label=runs["strategy"].map(STRATEGIES),
        trace=runs["workload"].replace({"14D_518400": "0", "14D_864000": "1"}).str[-1],
        walk=walks["walk"],
    )
    rows = where.assign(**{name: factor * runs[column] for column, (name, factor) in FIGURES.items()}).round(6)
    common = rows[(rows["rules"] == TEXT) & (rows["sweep"] == "mavg") & (rows["value"] == USUAL["mavg"])]
    copies = [common.assign(sweep=sweep, value=value) for sweep, value in USUAL.items()]
    return pd.concat([rows, *copies]).drop_duplicates(WHERE)


def inputs_of() -> pd.DataFrame:
    """Return properties of generated inputs by seed.

    Shares of core hours by category of length in %; of walks of a period in s, machines on average and changes in the
    two weeks of the window; of walks of a mean number of machines, the share of the largest one that is not always on.
    """
    return pd.DataFrame([
        {"seed": seed}
        | {f"share_{kind}_{number}": share
           for kind in ("log-scale", "log-scale-u") for number, share in enumerate(shares_of(kind, seed), 1)}
        | {f"machines_{period_s}": machines_of(Walk(period_s=period_s), seed).mean() for period_s in (400, 32400)}
        | {f"changes_{period_s}": np.count_nonzero(np.diff(machines_of(Walk(period_s=period_s), seed)))
           for period_s in (400, 32400)}
        | {f"varying_{mean}": 1.0 - machines.min() / machines.max()
           for mean in (20, 28) for machines in [machines_of(Walk(mean=mean), seed)]}
        for seed in SEEDS
    ]).round(6)  # fmt: skip


def shares_of(kind: Kind, seed: int) -> NDArray[np.float64]:
    """Return the shares of the core hours of a trace in % of its four categories of length (section 5.3)."""
    params = Synthetic(kind=kind)
    lengths, cores = (np.array([job[place] for job in synthetic(params, seed)], float) for place in (2, 3))
    shortest_s = params.mean_length_s * (7 / 477 if kind == "log-scale" else 1 / 117)
    categories = np.clip(np.floor(np.log(lengths / shortest_s) / np.log(5.0)), 0, 3).astype(int)
    hours = np.bincount(categories, lengths * cores)
    return 100.0 * hours / hours.sum()


def machines_of(walk: Walk, seed: int) -> NDArray[np.float64]:
    """Return the number of machines of a walk in each 400 s of the window."""
    series = random_walk(walk, seed)
    starts_s = np.arange(WEEK_S, 3.0 * WEEK_S, 400.0)
    return np.array(series.values)[np.searchsorted(series.times_s, starts_s, side="right") - 1]


AWARE, UNAWARE, STRETCH, ASAP, PACKED = range(5)
FIRST_FIT, BOTH_ASAP, TARGETS = [AWARE, UNAWARE], [ASAP, PACKED], [STRETCH, ASAP, PACKED]
OTHERS = [*FIRST_FIT, *BOTH_ASAP]
LABELS = tuple(STRATEGIES.values())
UNIFORM, LOG, THREE, BORG = ALL_TYPES = tuple(TYPES)
NOT_LOG = (UNIFORM, THREE, BORG)
GOODPUT, ABORTED, USED, COMPLETED = "goodput_percent", "aborted_percent", "used_percent", "completed_percent"
HOURS, MAX_STRETCH, MEAN_STRETCH, KILLS, MACHINES = "aborted_h", "max_stretch", "mean_stretch", "kills", "machines"
VALUES = {
    "mavg": (20.0, 22.0, 24.0, 26.0, 28.0),
    "period": (400.0, 1200.0, 3600.0, 10800.0, 32400.0),
    "range": (4.0, 6.0, 8.0, 12.0, 16.0),
}

Array = NDArray[np.float64]
Values = Callable[[Samples], Array]
Where = Callable[[Samples], list[tuple[str, str, float]]]
"""Points by sweep, type and value."""


def samples_of(runs: pd.DataFrame, rules: str) -> Samples:
    """Return the figures of the runs by one of the rules; a run without kills loses no time to any."""
    rows = runs[(runs["rules"] == rules) & runs["sweep"].isin(VALUES)].fillna({HOURS: 0.0})
    rows = rows.assign(**{USED: rows[GOODPUT] + rows[ABORTED]})
    table = rows.pivot(index=WHERE[1:5], columns=WHERE[5:], values=list(rows.columns.difference(WHERE))).dropna()
    return Samples({(*key, figure): row.to_numpy(float)
                    for figure in table.columns.unique(0) for key, row in table[figure].iterrows()})  # fmt: skip


def of(*sweeps: str, types: Sequence[str] = ALL_TYPES, value: float | None = None) -> Where:
    """Return the points of sweeps at the values that all of the types have, or at one value; they raise LookupError."""

    def points(m: Samples) -> list[tuple[str, str, float]]:
        keys = {(sweep, at): {(sweep, kind, at, LABELS[0], GOODPUT) for kind in types}
                for sweep in sweeps for at in VALUES[sweep] if value in (None, at)}  # fmt: skip
        run = [key for key, needed in keys.items() if needed <= m.values.keys()]
        if {sweep for sweep, _ in run} < {*sweeps}:
            raise LookupError(f"{sweeps} was not run with {types}")
        return [(sweep, kind, at) for name, kind in product(sweeps, types) for sweep, at in run if sweep == name]

    return points


def everywhere(m: Samples) -> list[tuple[str, str, float]]:
    """Return the points of all sweeps; one that several sweeps have in common once."""
    return [point for point in of(*VALUES)(m) if point[0] == "mavg" or USUAL[point[0]] != point[2]]


def single(m: Samples, figure: str, where: Where) -> Array:
    """Return a figure by point, strategy and sample. Raises LookupError."""
    return np.array([[m.of(*point, label, figure) for label in LABELS] for point in where(m)])


def at(m: Samples, figure: str, where: Where) -> Array:
    """Return the mean of a figure by point and strategy."""
    return single(m, figure, where).mean(axis=2)


def mean(figure: str, labels: list[int], where: Where) -> Statistic:
    """Return the mean of a figure over strategies and points."""
    return lambda m: at(m, figure, where)[:, labels].mean()


def between(more: list[int], less: list[int], where: Where, figure: str = GOODPUT) -> Statistic:
    """Return the mean of some strategies less that of others."""
    return lambda m: mean(figure, more, where)(m) - mean(figure, less, where)(m)


def ahead(figure: str, more: list[int], less: list[int], where: Where) -> Statistic:
    """Return the least mean of a strategy over points among some less the largest among others."""
    return lambda m: (means := at(m, figure, where).mean(axis=0))[more].min() - means[less].max()


def apart(figure: str, more: list[int], less: list[int], where: Where = everywhere) -> Values:
    """Return the difference of each of some strategies and each of others at each point."""
    return lambda m: (means := at(m, figure, where))[:, more, None] - means[:, None, less]


def change(one: Where, other: Where, figure: str = GOODPUT) -> Values:
    """Return the difference between points of the same types by type and strategy."""
    return lambda m: at(m, figure, one) - at(m, figure, other)


def killed(one: Where, other: Where) -> Values:
    """Return the kills of strategies at some points in those at others."""
    return lambda m: at(m, KILLS, one).mean(axis=0) / at(m, KILLS, other).mean(axis=0)


def quotients(one: int, other: int) -> Values:
    """Return the quotient of the maximum stretches of two strategies at each point."""
    return lambda m: (values := at(m, MAX_STRETCH, everywhere))[:, one] / values[:, other]


def alike(one: int, other: int, where: Where) -> Statistic:
    """Return how much nearer two strategies are in goodput than both ASAP strategies and both first fits."""
    lead, gap = between(BOTH_ASAP, FIRST_FIT, where), apart(GOODPUT, [one], [other], where)
    return lambda m: lead(m) - np.abs(gap(m)).mean()


def level(value: float) -> Statistic:
    """Return the gap of the first fits at 24 machines less its size at another number; without log-scale jobs."""
    gaps = [apart(GOODPUT, [AWARE], [UNAWARE], of("mavg", types=NOT_LOG, value=end)) for end in (24.0, value)]
    return lambda m: gaps[0](m).mean() - np.abs(gaps[1](m)).mean()


def spreads(m: Samples, kind: str) -> Array:
    """Return the best goodput of a strategy less the worst at each number of machines."""
    return np.ptp(at(m, GOODPUT, of("mavg", types=[kind])), axis=1)


def trends(m: Samples) -> Array:
    """Return goodput by number of machines and strategy, mean over types."""
    return at(m, GOODPUT, FIGURE_1).reshape(len(TYPES), -1, len(LABELS)).mean(axis=0)


def together(m: Samples) -> float:
    """Return the least correlation of the trends of two strategies other than TargetStretch."""
    return np.corrcoef(trends(m)[:, OTHERS].T).min()


def plots(m: Samples) -> Array:
    """Return goodput of every strategy and period, a row by type."""
    return at(m, GOODPUT, of("period")).reshape(len(TYPES), -1)


def same_order(groups: Sequence[tuple[Where, Where]]) -> Statistic:
    """Return the least correlation of the strategies' ranks in goodput between two groups of points."""

    def ranks(m: Samples, where: Where) -> pd.DataFrame:
        return pd.DataFrame(single(m, GOODPUT, where).mean(axis=0)).rank()

    return lambda m: min(ranks(m, one).corrwith(ranks(m, other)).mean() for one, other in groups)


def share(test: Callable[[Array], NDArray[np.bool_]]) -> Statistic:
    """Return the share of settings where a test of goodputs by strategy holds, in points above 50 %."""
    return lambda m: 100.0 * test(single(m, GOODPUT, everywhere).swapaxes(0, 1)).mean() - 50.0


def whiskers(m: Samples, where: Where) -> Array:
    """Return the 90th percentile of goodput less the 10th by strategy, mean over points."""
    low, high = np.percentile(single(m, GOODPUT, where), (10, 90), axis=2)
    return (high - low).mean(axis=0)


def by_walk(m: Samples, figure: str) -> list[tuple[Array, Array]]:
    """Return the mean number of machines and a figure by sample at 32400 s, for each type and strategy."""
    return list(zip(*(single(m, name, SELDOM).reshape(-1, len(m)) for name in (MACHINES, figure)), strict=True))


FIGURE_1, FIGURE_4 = of("mavg"), of("range", types=[BORG])
FEW, BEST, MANY = (of("mavg", value=value) for value in (20.0, 26.0, 28.0))
WIDE, NARROW = of("range", value=16.0), of("range", value=4.0)
ENDS = [of("range", types=[BORG], value=value) for value in (4.0, 16.0)]
OFTEN, SELDOM = of("period", value=400.0), of("period", value=32400.0)
MEASURES: dict[int, Statistic] = {
    1: lambda m: apart(GOODPUT, TARGETS, FIRST_FIT)(m).max(),
    **{place: lambda m, figure=figure: apart(figure, FIRST_FIT, TARGETS)(m).min()
       for place, figure in ((2, MAX_STRETCH), (3, MEAN_STRETCH), (93, MAX_STRETCH), (94, ABORTED), (95, HOURS))},
    4: ahead(GOODPUT, BOTH_ASAP, [UNAWARE], everywhere),
    **dict.fromkeys((5, 127), ahead(GOODPUT, BOTH_ASAP, FIRST_FIT, everywhere)),
    10: lambda m: killed(OFTEN, SELDOM)(m).min(),
    11: lambda m: 1.0 - single(m, USED, everywhere).max() / 100.0,
    13: lambda m: change(BEST, MANY)(m).min(),
    **{place: mean(COMPLETED, [one], MANY) for place, one in enumerate(BOTH_ASAP, 14)},
    16: ahead(COMPLETED, BOTH_ASAP, [*FIRST_FIT, STRETCH], MANY),
    17: lambda m: 100.0 - at(m, USED, MANY).mean(axis=0)[BOTH_ASAP].max(),
    18: lambda m: change(BEST, FEW)(m).min(),
    20: lambda m: change(FEW, BEST, ABORTED)(m).mean(axis=0).min(),
    **{place: lambda m, one=one, other=other: apart(GOODPUT, [one], [other], FIGURE_1)(m).min()
       for place, (one, other) in enumerate(product(BOTH_ASAP, FIRST_FIT), 21)},
    25: lambda m: apart(GOODPUT, BOTH_ASAP, FIRST_FIT)(m).min(),
    26: together,
    28: ahead(ABORTED, FIRST_FIT, BOTH_ASAP, FIGURE_1),
    29: lambda m: (between(FIRST_FIT, [ASAP], FIGURE_1, ABORTED)(m) / between([ASAP], FIRST_FIT, FIGURE_1)(m)),
    30: lambda m: together(m) - np.corrcoef(trends(m)[:, STRETCH], trends(m)[:, OTHERS].mean(axis=1))[0, 1],
    34: alike(ASAP, PACKED, FIGURE_1),
    35: between([PACKED], [ASAP], FIGURE_1),
    36: alike(AWARE, UNAWARE, of("mavg", types=NOT_LOG)),
    **{place: level(value) for place, value in ((38, 20.0), (40, 28.0))},
    39: lambda m: at(m, USED, FEW).mean(axis=0)[FIRST_FIT].min(),
    41: same_order([(of("mavg", types=[one]), of("mavg", types=[other])) for one, other in combinations(TYPES, 2)]),
    **{place: between([one], [other], of("mavg", types=[kind]))
       for place, one, other, kind in ((37, AWARE, UNAWARE, LOG), (42, STRETCH, ASAP, LOG), (43, STRETCH, ASAP, BORG),
                                       (44, AWARE, STRETCH, UNIFORM), (45, UNAWARE, STRETCH, UNIFORM))},
    **{place: lambda m, kind=kind: spreads(m, kind).mean() for place, kind in ((46, UNIFORM), (47, THREE))},
    48: lambda m: spreads(m, BORG).max(),
    49: lambda m: spreads(m, BORG).mean() / max(spreads(m, UNIFORM).mean(), spreads(m, THREE).mean()),
    50: share(lambda goodput: goodput[BOTH_ASAP].min(axis=0) > goodput[FIRST_FIT].max(axis=0)),
    51: lambda m: np.corrcoef(plots(m)).min(),
    52: lambda m: (widths := np.ptp(plots(m), axis=1)).max() / widths.min(),
    **{place: lambda m, label=label, kind=kind: at(m, GOODPUT, of("period", types=[kind]))[:, label].min()
       for place, label, kind in ((53, AWARE, UNIFORM), (54, UNAWARE, UNIFORM), (55, AWARE, THREE), (56, AWARE, BORG),
                                  (57, UNAWARE, THREE), (58, UNAWARE, BORG))},
    59: lambda m: change(SELDOM, OFTEN)(m).mean(),
    60: lambda m: mean(KILLS, [*OTHERS, STRETCH], OFTEN)(m) / mean(KILLS, [*OTHERS, STRETCH], SELDOM)(m),
    61: lambda m: (whiskers(m, SELDOM) / whiskers(m, OFTEN)).min(),
    65: lambda m: np.mean([share[on == on.max()].mean() - share[on == on.min()].mean()
                           for on, share in by_walk(m, COMPLETED)]),
    66: lambda m: -np.mean([np.corrcoef(*pair)[0, 1] for pair in by_walk(m, GOODPUT)]),
    67: lambda m: between([STRETCH], OTHERS, OFTEN)(m) - between([STRETCH], OTHERS, SELDOM)(m),
    68: lambda m: between(BOTH_ASAP, [AWARE], OFTEN)(m) - between(BOTH_ASAP, [AWARE], SELDOM)(m),
    69: lambda m: between([ASAP], [STRETCH], SELDOM)(m) - between([ASAP], [STRETCH], OFTEN)(m),
    70: lambda m: change(NARROW, WIDE)(m).min(),
    71: lambda m: killed(WIDE, NARROW)(m).min(),
    72: same_order([(of("range", types=[kind], value=4.0), of("range", types=[kind], value=16.0)) for kind in TYPES]),
    73: lambda m: (loss := change(NARROW, WIDE)(m).mean(axis=0))[OTHERS].min() - loss[STRETCH],
    74: ahead(ABORTED, OTHERS, [STRETCH], of("range")),
    75: lambda m: change(*ENDS)(m).min(),
    **{place: lambda m, figure=figure: change(*ENDS[::-1], figure)(m).min()
       for place, figure in enumerate((MAX_STRETCH, ABORTED, HOURS), 76)},
    **{place: ahead(figure, [one], [STRETCH], FIGURE_4)
       for place, figure, one in ((79, GOODPUT, ASAP), (80, GOODPUT, PACKED), (109, ABORTED, ASAP),
                                  (110, GOODPUT, ASAP), (111, ABORTED, PACKED), (112, GOODPUT, PACKED))},
    **{place: ahead(figure, OTHERS, [STRETCH], FIGURE_4)
       for place, figure in ((81, MAX_STRETCH), (82, HOURS), (83, ABORTED), (84, HOURS), (108, USED))},
    **{place: lambda m, figure=figure, one=one: mean(figure, [one], FIGURE_4)(m) / mean(figure, TARGETS, FIGURE_4)(m)
       for place, (figure, one) in enumerate(product((ABORTED, HOURS, MAX_STRETCH), FIRST_FIT), 85)},
    **{place: lambda m, to=to: apart(MAX_STRETCH, [STRETCH], [to])(m).max() for place, to in enumerate(BOTH_ASAP, 91)},
    **{place: lambda m, pair=pair: quotients(*pair)(m).mean()
       for place, pair in enumerate(product(FIRST_FIT, (ASAP, PACKED, STRETCH)), 97)},
    **{place: lambda m, one=one: mean(USED, [one], FIGURE_4)(m) / 100.0 for place, one in enumerate(OTHERS, 103)},
    107: mean(USED, OTHERS, FIGURE_4),
    113: between(OTHERS, [STRETCH], FIGURE_4, USED),
    114: between([STRETCH], FIRST_FIT, FEW),
    115: between([STRETCH], FIRST_FIT, WIDE),
    116: lambda m: min(ahead(ABORTED, FIRST_FIT, [STRETCH], where)(m) for where in (FEW, WIDE, OFTEN)),
    117: lambda m: min(between([ASAP], [STRETCH], where)(m) for where in (MANY, NARROW, SELDOM)),
    118: share(lambda goodput: goodput[ASAP] > goodput[STRETCH]),
    **{place: lambda m, one=one: (quotients(AWARE, one)(m) - np.abs(1.0 - quotients(STRETCH, one)(m)) - 1.0).mean()
       for place, one in enumerate(BOTH_ASAP, 119)},
    **{place: ahead(HOURS, [one], [STRETCH], everywhere) for place, one in enumerate(BOTH_ASAP, 122)},
    124: mean(USED, BOTH_ASAP, everywhere),
    125: ahead(HOURS, FIRST_FIT, BOTH_ASAP, everywhere),
    126: share(lambda goodput: goodput[BOTH_ASAP].max(axis=0) > goodput[[*FIRST_FIT, STRETCH]].max(axis=0)),
}  # fmt: skip
"""Place in statements.csv -> its quantity; the others need runs or logs that the study does not have."""
OF_INPUTS: dict[int, Statistic] = {
    7: lambda m: min(m(f"share_log-scale_{number}") for number in (1, 2, 3, 4)),
    8: lambda m: m("share_log-scale_4") - max(m(f"share_log-scale_{number}") for number in (1, 2, 3)),
    9: lambda m: m("share_log-scale-u_4") - m("share_log-scale_4"),
    19: lambda m: m("varying_20") - m("varying_28"),
    62: lambda m: m("changes_400") / m("changes_32400"),
    63: lambda m: np.abs(m.of("machines_32400") - 24.0).mean() / np.abs(m.of("machines_400") - 24.0).mean(),
    64: lambda m: ((m.of("machines_32400").std(ddof=1) / m("machines_32400"))
                   / (m.of("machines_400").std(ddof=1) / m("machines_400"))),
}  # fmt: skip
"""The same for statements about traces and walks, whatever the rules of the strategies."""
SINGLE = (11, 52, 61, 65)
"""Places of extremes and percentiles over samples, and of a quotient that cannot be less than 1: without interval."""


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
    shared = verdicts(statements, OF_INPUTS, Samples.of_columns(inputs)).measured
    by_rules = {rules: verdicts(statements, MEASURES, samples_of(runs, rules), SINGLE, lenient=True) for rules in RULES}
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
    pages.write(DATA / "inputs.csv", inputs_of())
    runs = frame_of(results)
    pages.write(DATA / "runs.csv.gz", runs)
    draw_all(runs, HERE)


if __name__ == "__main__":
    sys.exit(pages.main(PAGE, tables, make, ("pmbs23",)))
