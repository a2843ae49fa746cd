"""Numbers, figures and tables of the checkpoint paper's page, from the results of study.yaml.

`runs.csv` has the figures of each run, without the repeated times in the labels of study.yaml; `periods.py` writes
periods.csv, sequences.csv and figure1.csv. Figure 1 has the form and the decisions of the paper's, a plan with a
threshold of the yield of 0.2; its times are ours. Figure 2 is ours: the time of a checkpoint up to which it is better
than killing jobs.

Samples of statements: `walks`, runs by the seed of the capacity (a key is algorithm, time of checkpoints in s, figure);
`seeds`, small periods by the seed of the set (a key is costs, figure: the mean over the kinds with these costs);
`draws`, Figure 1 by the draw of its times; `sequences`, jobs without an end by walk.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

import pandas as pd
from matplotlib.figure import Figure
from matplotlib.patches import Patch, Rectangle

from batwatt.results.drawing import DASHES, INK, MARKERS, PALETTE, draw, plain
from batwatt.schedulers.checkpoint.files import read_sequence
from batwatt.schedulers.checkpoint.sequence import follow
from papers import batsim, pages, statements
from papers.checkpoint.periods import FIGURE1
from papers.pages import NOTHING, markdown, mean_text, number
from papers.statements import Samples, Statistic, Verdicts, average, mean, over, statement_tables

HERE = Path(__file__).resolve().parent
DATA = HERE / "data"
PAGE, RUNS = HERE / "README.md", DATA / "runs.csv"
LOST, LEAST, GOODPUT, KILLED = "lost_percent", "least_yield_percent", "goodput_percent", "terminations"
VOLUMES = {
    "goodput_with_running": "goodput_percent",
    "aborted_volume": LOST,
    "checkpoint_volume": "checkpoints_percent",
    "recovery_volume": "recoveries_percent",
    "min_yield": LEAST,
}
"""Shares of runs, and their columns in %."""
COLUMNS = ["study", "label", "platform", "workload", "structure", "range", "period_s", "walk", "checkpoint_s",
           *VOLUMES.values(), "wait_min", "terminations"]  # fmt: skip
HEADS = {"goodput_percent": "goodput (%)", LOST: "lost work (%)", LEAST: "least yield (%)", "wait_min": "wait (min)"}
PROCESSOR_S, CHANGES = 0.7 * 96 * 172_800.0, 48
"""Of a run of the study `costs`: its mean capacity over its window, and the changes in it."""
COSTS_S = (10.0, 30.0, 60.0, 120.0, 300.0, 600.0, 1200.0)
"""Times of checkpoints (and recoveries) of the study `costs` but 0."""
MAX_MIN = 2.0
"""Key of the threshold of the yield that has the largest least yield of a walk."""


def keyed(frame: pd.DataFrame, by: str | list[str], figures: Sequence[str]) -> Samples:
    """Return the values of figures for each value of some columns."""
    groups = frame.groupby([by] if isinstance(by, str) else by)
    return Samples({(*where, name): part[name].to_numpy(float) for where, part in groups for name in figures})


def samples_of(folder: Path = DATA) -> dict[str, Samples]:
    """Return the samples of the files of a folder."""
    runs, periods, figure1, yields = (
        pd.read_csv(folder / f"{name}.csv") for name in ("runs", "periods", "figure1", "sequences")
    )
    runs = runs[runs["study"] == "costs"].fillna({"checkpoint_s": 0.0}).sort_values("walk")
    figures = [name for name in periods if name.endswith(("_percent", "_points"))]
    means = periods.groupby(["costs", "seed"], as_index=False)[figures].mean()
    yields = yields.sort_values(["walk", "asked_yield"])
    # of equal ones the first, which has the most goodput
    best = yields.loc[yields.groupby("walk")["least_yield"].idxmax()].assign(asked_yield=MAX_MIN)
    return {
        "walks": keyed(runs, ["label", "checkpoint_s"], (LOST, KILLED, GOODPUT)),
        "seeds": keyed(means, "costs", figures),
        "draws": Samples.of_columns(figure1),
        "sequences": keyed(pd.concat([yields, best]), "asked_yield", (GOODPUT, "least_yield", "never")),
    }


MEASURES: Mapping[str, Mapping[int, Statistic]] = {
    "walks": {
        # of the better of LWW and LFD, in processor s
        1: PROCESSOR_S * (over(min, [mean(x, 0.0, LOST) for x in ("LWW", "LFD")]) - mean("DP", 60.0, LOST)) / 100.0,
        # each killed job counts as a change at which work is lost
        **dict.fromkeys((2, 3), 100.0 * (1.0 - average([mean("DP", s, KILLED) for s in COSTS_S]) / CHANGES)),
        12: average([mean("DP", s, GOODPUT) - mean("subset sum", s, GOODPUT) for s in COSTS_S]),
    },
    "seeds": {
        5: over(min, [mean(costs, "by_later_points") for costs in ("equal", "different")]),
        11: mean("none", "subset_optimal_percent"),
        13: mean("different", "optimal_percent"),
        19: mean("equal", "optimal_percent"),
        20: mean("equal", "optimal_percent"),
        22: mean("different", "feasible_percent"),
        23: mean("different", "over_at_once_points"),
        24: mean("different", "early_percent"),
        27: mean("different", "over_best_points"),
    },
    "draws": {8: mean("idle_processor_s"), 17: mean("checkpoints"), 18: mean("recoveries")},
    "sequences": {
        28: mean(0.0, "never"),
        29: mean(0.0, "least_yield"),
        30: mean(MAX_MIN, "least_yield") - mean(0.0, "least_yield"),
        # from goodput alone to max-min yield, for 0.1 of least yield
        31: 0.1
        * (mean(0.0, GOODPUT) - mean(MAX_MIN, GOODPUT))
        / (mean(MAX_MIN, "least_yield") - mean(0.0, "least_yield")),
    },
}
"""Samples -> place in statements.csv -> its quantity.

The others describe the model or the algorithm (4, 7, 9, 10, 14 to 16), are goals (6), or are bounds of tables that
batwatt's search does not fill (21, 25, 26).
"""


def judged(folder: Path = DATA) -> Verdicts:
    """Return the statements of the paper, and what is measured of them."""
    return statements.verdicts_by_kind(statements.statements_of(HERE), MEASURES, samples_of(folder))


MINUTE_S = 60.0
PHASES = {"work": ("#8ab4e8", ""), "checkpoint": ("#e07a6f", "////"), "recovery": ("#86c28b", "\\\\\\\\")}
"""Colour, as in the paper, and hatching."""
IDLE = "#c4c4c4"
LOWEST = ({"j3": 0, "j1": 5, "j4": 8, "j2": 16}, {"j3": 0, "j5": 0, "j4": 8}, {"j5": 0, "j4": 8, "j2": 16, "j1": 19})
"""The lowest processor of each job, by period."""
JOBS = {"jobs-single-05h": "1 processor, 0.5 h", "jobs-single-2h": "1 processor, 2 h",
        "jobs-single-8h": "1 processor, 8 h", "rigid-0": "1 to 96 processors"}  # fmt: skip


def schedule() -> Figure:
    """Draw processors over time, with a box for each phase of a job."""
    figure = Figure(figsize=(4.8, 3.7), layout="constrained")
    axes = figure.subplots()
    for lowest, period in zip(LOWEST, follow(read_sequence(FIGURE1)[0], min_yield=0.2).periods, strict=True):
        begin_s, length_s, processors = period.begin_s, period.plan.instance.period_s, period.plan.instance.processors
        boxes = [(0.0, length_s, 0, processors, IDLE, "", "")]
        for act in period.plan.acts:
            for phase in act.phases:
                label = act.job.id if phase.kind == "work" else ""
                place = phase.begin_s, phase.end_s, lowest[act.job.id], act.job.processors
                boxes.append((*place, *PHASES[phase.kind], label))
        for left_s, right_s, low, height, colour, hatch, label in boxes:
            left, width = (begin_s + left_s) / MINUTE_S, (right_s - left_s) / MINUTE_S
            look = {"facecolor": colour, "hatch": hatch, "edgecolor": INK, "linewidth": 0.7}
            axes.add_patch(Rectangle((left, low), width, height, **look))
            axes.text(left + width / 2, low + height / 2, label, ha="center", va="center", fontsize=10)
        title = f"{processors} processors"
        axes.text((begin_s + length_s / 2) / MINUTE_S, processors + 0.4, title, ha="center", fontsize=9)
    axes.set(xlim=(0, 90), ylim=(0, 24), xticks=range(0, 91, 15))
    axes.set_xlabel("time (min)", fontsize=9)
    axes.set_ylabel("processors", fontsize=9)
    kinds = [
        Patch(facecolor=colour, hatch=hatch, edgecolor=INK, label=kind) for kind, (colour, hatch) in PHASES.items()
    ]
    kinds.append(Patch(facecolor=IDLE, edgecolor=INK, label="idle"))
    figure.legend(handles=kinds, loc="outside lower center", ncols=4, frameon=False, fontsize=9, columnspacing=1.2)
    return figure


def leads(runs: pd.DataFrame) -> pd.DataFrame:
    """Return the goodput of DP less that of LWW in points, by jobs, walk and time of a checkpoint; hourly changes."""
    rows = runs[runs["study"].isin(["costs", "single"]) & (runs["period_s"] == 3600.0)]
    keys = ["workload", "walk"]
    killing = rows[rows["label"] == "LWW"].set_index(keys)["goodput_percent"]
    ours = rows[rows["label"] == "DP"].set_index([*keys, "checkpoint_s"])["goodput_percent"]
    return ours.sub(killing).rename("lead").reset_index()


def break_even(runs: pd.DataFrame) -> Figure:
    """Draw the lead of planned checkpoints over killing by the time of a checkpoint, for each kind of jobs."""
    figure = Figure(figsize=(4.8, 3.6), layout="constrained")
    axes = figure.subplots()
    plain(axes)
    axes.axhline(0.0, color=INK, linewidth=1.0)
    rows = leads(runs)
    for turn, (workload, label) in enumerate(JOBS.items()):
        part = rows[rows["workload"] == workload].groupby("checkpoint_s")["lead"].agg(["mean", "sem"])
        look = {"marker": MARKERS[turn], "markersize": 4, "color": PALETTE[turn], "linestyle": DASHES[turn]}
        axes.errorbar(part.index, part["mean"], part["sem"], label=label, linewidth=1.2, **look)
    axes.set_xscale("symlog", linthresh=30)
    axes.set(xlim=(-3, 1500), ylim=(-13, 5))
    axes.set_xticks([0, 30, 60, 120, 300, 600, 1200], ["0", "30", "60", "120", "300", "600", "1200"])
    axes.set_xticks([], minor=True)
    axes.set_xlabel("time of a checkpoint and of a recovery (s)", fontsize=9)
    axes.set_ylabel("goodput of DP less that of LWW (points)", fontsize=9)
    axes.legend(fontsize=9, frameon=False, loc="lower left")
    return figure


def numbers_of(runs: pd.DataFrame) -> pd.DataFrame:
    """Return runs with the columns of runs.csv."""
    frame = pages.with_capacities(runs)
    times = pages.options_of(frame, {"checkpoint_s": 60.0}).where(frame["scheduler"] == "checkpoint")
    labels = frame["label"].str.replace(r" [A-Z]=\S+| fair 0$", "", regex=True)
    shares = {percent: 100.0 * frame[share] for share, percent in VOLUMES.items()}
    frame = frame.assign(label=labels, wait_min=frame["mean_wait_s"] / 60.0, **times, **shares)
    return frame[COLUMNS].round(6)


def means(runs: pd.DataFrame, study: str, *names: str) -> str:
    """Return mean ± standard error of some figures of each algorithm of a study, over capacities that vary."""
    rows = runs[(runs["study"] == study) & (runs["structure"] != pages.FIXED)]
    groups = rows.groupby("label", sort=False)
    lines = [[str(label), *(mean_text(part[name], 1) for name in names)] for label, part in groups]
    return markdown(["algorithm", *(HEADS[name] for name in names)], lines)


def yields(sequences: pd.DataFrame) -> str:
    """Return what a threshold of the yield costs and gains, compared with goodput alone on the same walk."""
    by_walk = sequences.set_index("walk")
    none = by_walk[by_walk["asked_yield"] == 0.0]
    lines = []
    for threshold, part in by_walk.groupby("asked_yield"):
        lost = (none["goodput_percent"] - part["goodput_percent"]).mean()
        gained = (part["least_yield"] - none["least_yield"]).mean()
        costs = NOTHING if threshold == 0.0 else number(0.1 * lost / gained, 1)
        shares = mean_text(part["goodput_percent"], 1), mean_text(part["least_yield"], 3)
        points = number(part["never"].mean(), 1), number(lost, 1), number(gained, 3)
        lines.append([f"{threshold:g}", *shares, *points, costs])
    heading = ["threshold", "goodput (%)", "least yield", "jobs that never run", "goodput lost (points)",
               "least yield gained", "points for 0.1"]  # fmt: skip
    return markdown(heading, lines)


def tables(folder: Path = DATA) -> Mapping[str, str]:
    """Return every table, from the files of a folder."""
    runs, verdicts = pd.read_csv(folder / RUNS.name), judged(folder)
    return {
        **statement_tables({"": verdicts}),
        "yields": yields(pd.read_csv(folder / "sequences.csv")),
        "endless": means(runs, "endless", "goodput_percent", LEAST),
        "ranges": means(runs, "ranges", "goodput_percent", LOST, "wait_min"),
        "prepare": means(runs, "prepare", "goodput_percent"),
        "warning": means(runs, "warning", "goodput_percent", LOST),
        "batsim": batsim.table(HERE),
    }


def make(results: Path) -> None:
    """Make the numbers, the figures and the tables of the checkpoint paper's page from the results of study.yaml."""
    columns = [
        *pages.WHERE,
        "scheduler",
        "options",
        *pages.VARIES[:5],
        "cap_seed",
        *VOLUMES,
        "mean_wait_s",
        "terminations",
    ]
    pages.write(RUNS, numbers_of(pages.runs_of(results, columns)))
    draw(HERE / "figure-1.svg", schedule)
    draw(HERE / "figure-2.svg", lambda: break_even(pd.read_csv(RUNS)))


if __name__ == "__main__":
    sys.exit(pages.main(PAGE, tables, make, ("checkpoint",)))
