"""Numbers, Figures 2 to 6 and tables of the powercap paper's page, from the results of study.yaml.

`decisions.csv` and `power.csv` are of `papers.igsc22.decisions`, `summary.csv` the means of each algorithm by
study and envelope, and over `all` envelopes; `instances.csv` has each run of the optimum, of the algorithms of Table II
and of batwatt's own; `runs.csv` has the runs that decide the statements, `sources.csv` those on the second set of
inputs. Units are in the names of the columns: kills in jobs, violations in steps of the envelope. `batsim.csv` has the
algorithms of Table II on a real Batsim (`papers.batsim`).

Axes of a radar are inverted and scaled over what the figure shows, as its caption has it: the best value is at the rim,
the worst one in the middle, and the largest area is best.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence
from itertools import product
from pathlib import Path

import numpy as np
import pandas as pd
from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from batwatt.results import drawing
from batwatt.results.drawing import CAP, FRAME, GRID, INK, POWER, VIOLATION, Look
from papers import batsim, pages
from papers.igsc22 import measures
from papers.igsc22.measures import HFLD, KILLS, OPTIMUM, SLOWDOWN, TABLE2, THIRD, VIOLATIONS, WORK, Numbers
from papers.pages import NOTHING, WORDS, markdown, number, table_of
from papers.statements import VERDICTS, Verdicts, statement_tables, statements_of, verdicts

HERE = Path(__file__).parent
DATA, PAGE = HERE / "data", HERE / "README.md"
ENERGY = "energy_kwh"
DISTANCES = {
    "EBF Slow no config.": (0.43, 0.0, 184.0),
    "EBF Slow HFLD": (2.90, 19.0, 3.0),
    "FF Asc IDFS": (2.91, 28.0, 3.0),
    "FF Slow HFLD": (4.48, 14.0, 3.0),
    "EBF Slow IDSB": (2.12, 23.0, 6.0),
}
"""Table II: mean increase of slowdown, kills and violations over the optimum, profile 3."""
NAMED = (OPTIMUM, *DISTANCES, "FF Slow Frugal", "EBF Slow Frugal", "EBF Slow Frugal forecast",
         "EBF Slow Frugal misjudged")  # fmt: skip
"""The optimum, the algorithms of Table II and batwatt's own."""
TURNS = {"": "letter", " in turns": "turns"}
"""End of a label -> reading of lines 19 to 28; the other end names `work_estimate`, without a word `learned`."""
WHERE = ["study", "label", "workload", "envelope"]
SOURCES = "sources"
"""Study on inputs that are not drawn by us."""
COUNTS = ["killed_power", "killed_walltime", "violations"]
MEANS = [SLOWDOWN, "killed_power", "killed_walltime", KILLS, VIOLATIONS, WORK, ENERGY]
RUN = ["mean_slowdown", *COUNTS, "finished_work_fraction", "energy_j", "lower_bound", "gap", "proven_optimal"]
DECIDING = [SLOWDOWN, *COUNTS, "finished_work_fraction", measures.FINISHED, measures.WAIT]
HEADS = {
    SLOWDOWN: ("slowdown", 2),
    KILLS: ("kills (jobs)", 1),
    VIOLATIONS: ("violations (steps)", 1),
    WORK: ("finished work (%)", 1),
    ENERGY: ("energy (kWh)", 1),
}
"""Column -> heading and decimals."""
COMPARED = (SLOWDOWN, KILLS, VIOLATIONS)
AXES = {VIOLATIONS: "violations", SLOWDOWN: "slowdown", KILLS: "kills"}
"""Axes of the radars, clockwise from above."""
ANGLES = [math.radians(90.0 - 120.0 * turn) for turn in range(len(AXES))]
FALL_S = 47_700
"""A fall of profile 3."""
PANELS = {OPTIMUM: "best known schedule (the paper: MILP)", HFLD: HFLD}
"""Algorithms of Figure 3, and their titles."""
SIZE = 10.0
"""Size of words in points, to be read on a narrow screen."""


def radar(axes: Axes, values: pd.DataFrame, scale: pd.DataFrame, title: str) -> None:
    """Draw a polygon for each row of figures, inverted and scaled over the rows of `scale`."""
    rim = np.array([[math.cos(angle), math.sin(angle)] for angle in [*ANGLES, ANGLES[0]]])
    gap = np.full((1, 2), np.nan)
    spokes = [part for corner in rim[:-1] for part in (np.array([[0.0, 0.0], corner]), gap)]
    axes.plot(*np.concatenate([*spokes, 0.5 * rim]).T, color=GRID, linewidth=0.6, zorder=1)
    axes.plot(*rim.T, color=FRAME, linewidth=0.6, zorder=1)
    for (x, y), name, side in zip(rim, AXES.values(), ("center", "right", "left"), strict=False):
        place = (1.15 * x, 1.07 * y) if y > 0.0 else (1.15 * x, y - 0.1)
        axes.text(*place, name, ha=side, va="bottom" if y > 0.0 else "top", fontsize=SIZE, color=INK)
    worst, best = (scale[list(AXES)].agg(pick).to_numpy(float) for pick in ("max", "min"))
    spans = np.where(worst > best, worst - best, np.inf)
    shares = np.where(worst > best, (worst - values[list(AXES)].to_numpy(float)) / spans, 1.0)
    for turn, row in enumerate(shares):
        look = Look(turn)
        corners = np.append(row, row[0])[:, None] * rim
        axes.plot(*corners.T, color=look.colour, linestyle=look.dash, linewidth=1.3, marker=look.marker, markersize=3.0,
                  markevery=[0, 1, 2])  # fmt: skip
        axes.fill(*corners.T, color=look.colour, alpha=0.07, linewidth=0.0)
    axes.set_title(title, fontsize=SIZE, fontweight="bold", pad=13.0)
    axes.set(xlim=(-1.15, 1.15), ylim=(-0.8, 1.1), aspect="equal")
    axes.axis("off")


def radars(
    figure: Figure, grid: np.ndarray, panels: dict[str, pd.DataFrame], names: tuple[str, ...], columns: int
) -> None:
    """Draw a radar for each panel on one scale, with the best and the worst value of each axis and a legend."""
    scale = pd.concat(panels.values())
    for axes, (title, rows) in zip(grid.flat, panels.items(), strict=True):
        radar(axes, rows, scale, title)
    ends = (f"{name} {scale[key].min():.1f}–{scale[key].max():.1f}" for key, name in AXES.items())
    figure.text(0.01, 0.025, "Rim to middle: " + ", ".join(ends), fontsize=SIZE, color=INK)
    looks = [(Look(turn), name) for turn, name in enumerate(names)]
    handles = [Line2D([], [], color=look.colour, linestyle=look.dash, marker=look.marker, markersize=4.0, linewidth=1.3,
                      label=name) for look, name in looks]  # fmt: skip
    drawing.legend(figure, handles, 0.01, columns=columns)


def figure2(numbers: Numbers) -> Figure:
    """Draw a radar for each backfilling and order with a polygon for each response: means under profile 3."""
    means = numbers.means("workloads")
    panels = {
        pair: means.loc[[f"{pair} {response}" for response in measures.RESPONSES]] for pair in measures.COMBINATIONS
    }
    figure, grid = drawing.panels_of(
        6.2, 4.4, 2, 4, margins_in=(0.8, 0.45), left=0.01, right=0.99, wspace=0.1, hspace=0.5
    )
    radars(figure, grid, panels, measures.RESPONSES, len(measures.RESPONSES))
    return figure


def figure3(power: pd.DataFrame) -> Figure:
    """Draw the power of two runs against the envelope, zoomed on a fall."""
    figure, grid = drawing.panels_of(
        5.2, 4.0, 2, 1, margins_in=(0.55, 0.45), left=0.11, right=0.98, hspace=0.35, sharex=True
    )
    times_s, cap_kw = power.index - FALL_S, power["cap_w"] / 1000.0
    for axes, (label, title) in zip(grid.flat, PANELS.items(), strict=True):
        power_kw = power[label] / 1000.0
        axes.fill_between(times_s, power_kw, step="post", color=POWER, alpha=0.35, linewidth=0.0)
        axes.fill_between(
            times_s, cap_kw, power_kw, where=power_kw > cap_kw, step="post", color=VIOLATION, linewidth=0.0
        )
        axes.step(times_s, power_kw, where="post", color=POWER, linewidth=1.0)
        axes.step(times_s, cap_kw, where="post", color=CAP, linewidth=1.3)
        axes.set_title(title, loc="left", fontsize=SIZE, fontweight="bold")
        axes.set(xlim=(times_s[0], times_s[-1]), ylim=(0.0, None), ylabel="power (kW)")
        drawing.unboxed(axes)
    axes.set_xlabel("time after the fall (s)")
    drawing.legend(figure, [Line2D([], [], color=CAP, label="available"), Line2D([], [], color=POWER, label="used"),
                    Line2D([], [], color=VIOLATION, linewidth=4.0, label="violation")], 0.01)  # fmt: skip
    return figure


def boxes(axes: Axes, runs: pd.DataFrame, column: str, heading: str) -> None:
    """Draw a box of the 20 workloads for each algorithm of Table II, with a point for each workload."""
    labels = (measures.NONE, *TABLE2)
    values = [runs.loc[runs["label"] == label, column].to_numpy(float) for label in labels]
    axes.boxplot(
        values, orientation="horizontal", widths=0.55, showfliers=False, patch_artist=True,
        boxprops={"facecolor": GRID, "edgecolor": FRAME}, medianprops={"color": VIOLATION, "linewidth": 1.4},
        whiskerprops={"color": FRAME}, capprops={"color": FRAME},
    )  # fmt: skip
    for row, points in enumerate(values, 1):
        axes.plot(points, np.full(len(points), row), "o", color=POWER, markersize=3.0, alpha=0.6, markeredgewidth=0.0)
    axes.set_yticks(range(1, len(labels) + 1), labels)
    axes.invert_yaxis()
    axes.set_xlabel(heading)
    axes.grid(axis="x", color=GRID, linewidth=0.6)
    axes.set_axisbelow(True)
    drawing.unboxed(axes)


def figure4(runs: pd.DataFrame) -> Figure:
    """Draw jobs killed and finished work of the 20 workloads under profile 3."""
    figure, grid = drawing.panels_of(5.2, 4.4, 2, 1, margins_in=(0.1, 0.45), left=0.31, right=0.98, hspace=0.4)
    boxes(grid[0, 0], runs, KILLS, "jobs killed (of 288)")
    boxes(grid[1, 0], runs, WORK, "finished work (% of the workload)")
    return figure


def figure5(runs: pd.DataFrame) -> Figure:
    """Draw the slowdown of the 20 workloads under profile 3."""
    figure, grid = drawing.panels_of(5.2, 2.4, 1, 1, margins_in=(0.07, 0.48), left=0.31, right=0.98)
    boxes(grid[0, 0], runs, SLOWDOWN, "mean slowdown")
    return figure


def figure6(numbers: Numbers) -> Figure:
    """Draw a radar for each profile with a polygon for each algorithm of Table II: one workload."""
    panels = {f"Profile {name[-1]}": numbers.means("profiles", name).loc[list(TABLE2)] for name in measures.PROFILES}
    figure, grid = drawing.panels_of(5.2, 2.7, 1, 3, margins_in=(0.9, 0.4), left=0.01, right=0.99, wspace=0.05)
    radars(figure, grid, panels, TABLE2, 2)
    return figure


def draw_all() -> None:
    """Write figure-2.svg to figure-6.svg from data/."""
    numbers = Numbers.read(DATA)
    runs = numbers.runs("workloads").query("envelope == @THIRD")
    power = pd.read_csv(DATA / "power.csv", index_col="time_s")
    charts = (lambda: figure2(numbers), lambda: figure3(power), lambda: figure4(runs), lambda: figure5(runs),
              lambda: figure6(numbers))  # fmt: skip
    for place, chart in enumerate(charts, 2):
        with drawing.styled(), rc_context({**WORDS, "font.size": SIZE}):
            drawing.save(chart(), HERE / f"figure-{place}.svg")


def write_numbers(results: Path, folder: Path) -> None:
    """Write the four files from the table of the study. Raises ValueError for another study."""
    frame = table_of(results)
    if not {"workloads", "profiles"} <= set(frame["study"]):
        raise ValueError(f"{results} is not the study of {HERE / 'study.yaml'}")
    runs = frame[frame["status"] == "done"]
    if len(runs) < len(frame):
        print(f"{len(frame) - len(runs)} of {len(frame)} runs failed; means are over the others", file=sys.stderr)
    if runs.duplicated(WHERE).any():
        raise ValueError(f"{results} has several runs of an algorithm on an instance")
    sources = runs[runs["study"] == SOURCES].sort_values(WHERE)[[*WHERE, *DECIDING]]
    runs = measures.with_sums(runs[runs["study"] != SOURCES]).assign(energy_kwh=lambda rows: rows["energy_j"] / 3.6e6)
    labels = [*NAMED, *sorted(set(frame["label"]) - set(NAMED))]
    for column, values in (("study", frame["study"].unique()), ("label", labels)):
        runs[column] = pd.Categorical(runs[column], values, ordered=True)
    parts = []
    for part in (runs, runs.assign(envelope=measures.ALL)):
        group = part.groupby(["study", "label", "envelope"], observed=True)
        parts.append(group[MEANS].mean().assign(runs=group.size()).reset_index())
    summary = pd.concat(parts).sort_values(["study", "label"], kind="stable")
    instances = runs[runs["label"].isin(NAMED)].sort_values(WHERE)[[*WHERE, *RUN]]
    instances[COUNTS] = instances[COUNTS].astype("Int64")
    deciding = runs[runs["study"].isin(measures.STUDIES)].sort_values(WHERE)[[*WHERE, *DECIDING]]
    means = summary[["study", "label", "envelope", "runs", *MEANS]]
    for name, table in (("summary", means), ("instances", instances), ("runs", deciding), (SOURCES, sources)):
        table.to_csv(folder / f"{name}.csv", index=False, float_format="%.6f", lineterminator="\n")


def cells(row: pd.Series, columns: Sequence[str] = tuple(HEADS)) -> list[str]:
    """Return a cell for each column of a row."""
    return [number(row[name], HEADS[name][1]) for name in columns]


def triple(row: pd.Series, suffix: str = "", *, signed: bool = False) -> str:
    """Return slowdown, kills and violations of a row as one cell."""
    return " / ".join(number(row[name + suffix], HEADS[name][1], signed) for name in COMPARED)


def table2(numbers: Numbers) -> str:
    """Return Table II: means, and distances to the optimum of the same instance, measured and of the paper."""
    runs = numbers.runs("workloads")
    best = runs[runs["label"] == OPTIMUM]
    pairs = runs.merge(best, on=["workload", "envelope"], suffixes=("", "_best"))
    for name in COMPARED:
        pairs[f"{name}_over"] = pairs[name] - pairs[f"{name}_best"]
    pairs["bound_over"] = pairs[SLOWDOWN] - pairs["lower_bound_best"]
    distances = pairs.groupby("label")[[*(f"{name}_over" for name in COMPARED), "bound_over"]].mean()
    rows = []
    for label, row in runs.groupby("label", sort=False)[[*COMPARED, WORK]].mean().iterrows():
        ours = [NOTHING, NOTHING]
        if label in distances.index:
            distance = distances.loc[label]
            ours = [triple(distance, "_over", signed=True), number(distance["bound_over"], 2, signed=True)]
        printed = DISTANCES.get(str(label))
        paper = NOTHING if printed is None else triple(pd.Series(printed, COMPARED), signed=True)
        rows.append([str(label), triple(row), *cells(row, [WORK]), *ours, paper])
    goal = "the optimum" if len(best) and best["proven_optimal"].all() else "the best known schedule"
    heading = ["algorithm", "slowdown / kills / violations", "finished work (%)", f"over {goal}"]
    return markdown([*heading, "slowdown over the lower bound", "paper: over the optimum"], rows)


def means(numbers: Numbers, study: str) -> str:
    """Return the means of a study over all its workloads and envelopes."""
    rows = [[str(label), *cells(row)] for label, row in numbers.means(study).iterrows()]
    return markdown(["algorithm", *(head for head, _ in HEADS.values())], rows)


def readings(numbers: Numbers, decisions: pd.DataFrame) -> str:
    """Return a row for each reading of Algorithm 1: means of its runs, and shares of its decisions by Eq. 7."""
    means, counts = numbers.means("readings"), decisions.drop(columns="envelope").groupby("label").sum()
    rows = []
    for backfilling, (turns, lines), estimate in product(
        ("EBF", "FF"), TURNS.items(), ("learned", "walltime", "exact")
    ):
        label = f"{backfilling} Slow HFLD{turns}" + ("" if estimate == "learned" else f" {estimate}")
        row, count = means.loc[label], counts.loc[label]
        kills = f"{number(row['killed_power'], 1)} + {number(row['killed_walltime'], 1)}"
        figures = [number(row[SLOWDOWN], 2), kills, number(row[VIOLATIONS], 1), number(row[WORK], 1)]
        shares = (count["vacuous"] / count["decisions"], count["slowing"] / count["decisions"])
        rows.append([backfilling, lines, estimate, *figures, *(number(100.0 * share, 1) for share in shares)])
    heading = ["backfilling", "lines 19 to 28", "work", "slowdown", "kills: power + walltime", "violations"]
    return markdown([*heading, "finished work (%)", "fastest (%)", "slow down (%)"], rows, texts=3)


def victims(numbers: Numbers) -> str:
    """Return the figures of both fates of killed jobs, lost / submitted again, under profile 3."""
    again = numbers.means("resubmitted", THIRD)
    lost = pd.concat([numbers.means("workloads", THIRD), numbers.means("readings", THIRD)])
    lost = lost[~lost.index.duplicated()]
    rows = []
    for name, row in again.iterrows():
        label = str(name).removesuffix(" resubmitted")
        pairs = zip(cells(lost.loc[label]), cells(row), strict=True)
        rows.append([label, *(" / ".join(pair) for pair in pairs)])
    return markdown(["lost / submitted again", *(head for head, _ in HEADS.values())], rows)


def both_inputs(judged: Verdicts, other: Verdicts) -> tuple[str, str]:
    """Return the counts of verdicts on both inputs, of rows measured on both, and the rows whose verdicts differ."""
    shared = [(statement, judged.verdict(statement), other.verdict(statement))
              for statement in judged.statements if statement.place in other.measured]  # fmt: skip
    drawn, measured = "profile 3, drawn jobs", "measured weather, Google's jobs"
    words = {
        drawn: [here for _, here, _ in shared],
        measured: [there for _, _, there in shared],
        "the same on both": [here for _, here, there in shared if here == there],
    }
    counts = [[name, str(len(of)), *(str(of.count(word)) for word in VERDICTS)] for name, of in words.items()]
    rows = []
    for statement, *both in shared:
        if both[0] != both[1]:
            values = (number(side.measured[statement.place].value, 2) for side in (judged, other))
            cells_of_both = [f"{value}, {word}" for value, word in zip(values, both, strict=True)]
            rows.append([str(statement.place), statement.statement, statement.unit, *cells_of_both])
    changed = markdown(["#", "the document", "unit", drawn, measured], rows, 5)
    return markdown(["inputs", "measured on both", *VERDICTS], counts), changed


def tables(folder: Path = DATA) -> dict[str, str]:
    """Return every table, from the files of a folder."""
    numbers = Numbers.read(folder)
    # the inputs that are not drawn by us stand for profile 3 and its workloads
    runs, others = pd.read_csv(folder / "runs.csv"), pd.read_csv(folder / "sources.csv").assign(envelope=THIRD)
    rule = statements_of(HERE), measures.MEASURES
    judged = verdicts(*rule, measures.samples_of(runs), measures.SINGLE)
    elsewhere = verdicts(*rule, measures.samples_of(others), measures.SINGLE, lenient=True)
    sources, changed = both_inputs(judged, elsewhere)
    return {
        **statement_tables({"": judged}, contradicted=True),
        "table2": table2(numbers),
        "batsim": batsim.table(HERE),
        "readings": readings(numbers, pd.read_csv(folder / "decisions.csv")),
        "sources": sources,
        "changed": changed,
        "victims": victims(numbers),
        "own": means(numbers, "own"),
        "other-seeds": means(numbers, "other-seeds"),
    }


def make(results: Path) -> None:
    """Make the numbers, the figures and the tables of the powercap paper's page from the results of study.yaml."""
    write_numbers(results, DATA)
    draw_all()


if __name__ == "__main__":
    sys.exit(pages.main(PAGE, tables, make, ("igsc22",)))
