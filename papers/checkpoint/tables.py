"""Make the numbers, the figures and the tables of the checkpoint paper's page.

    python -m papers.checkpoint.tables results/checkpoint
        write data/ from the results of study.yaml, then the figure and the tables
    python -m papers.checkpoint.tables --check
        compare the tables with data/runs.csv

`runs.csv` has the figures of each run, `claims.csv` every number that decides a claim, `alignment.csv` the losses of
plans of random small periods (`alignment.py`).
"""

from __future__ import annotations

import math
import sys
from pathlib import Path

import matplotlib as mpl
import numpy as np
from matplotlib.figure import Figure

from batwatt.schedulers.checkpoint.files import read_sequence
from batwatt.schedulers.checkpoint.sequence import follow
from papers import pages
from papers.checkpoint import alignment
from papers.checkpoint.claims import CLAIMS
from papers.checkpoint.frames import KILLING, PLANNED, SUBSET, read_points, write_runs
from papers.claims import claims_table
from papers.pages import NOTHING, markdown, number
from papers.pairs import Points, all_numbers, interval, verdict
from papers.runs import FIXED

HERE = Path(__file__).resolve().parent
PAGE, RUNS, FIGURE = HERE / "README.md", HERE / "data" / "runs.csv", HERE / "figure.png"
PERIODS = HERE.parents[1] / "workloads" / "periods"
FAIR = "DP fair 0.5"
PERCENTS = {
    "goodput_percent": "goodput (%)",
    "least_yield_percent": "least yield (%)",
    "wait_min": "wait (min)",
}


def figure1(points: Points) -> str:
    """Return the planner's goodputs of Figure 1, and the engine's if the fifth job has never run."""
    rows = []
    for name in ("figure1", "figure1-new"):
        for min_yield in (0.0, 0.2):
            followed = follow(read_sequence(PERIODS / f"{name}.json")[0], min_yield=min_yield)
            run = points.frame[(points.frame["study"] == "figure1") & (points.frame["asked_yield"] == min_yield)]
            engine = f"{run['goodput_with_running'].iloc[0]:.4%}" if name == "figure1-new" else NOTHING
            periods = (f"{period.plan.goodput:.2%}" for period in followed.periods)
            rows.append([f"{name}.json", f"{min_yield:g}", *periods, f"{followed.goodput:.4%}", engine,
                         f"{followed.min_yield:.2f}"])  # fmt: skip
    return markdown(
        ["periods", "least yield asked for", "19", "16", "22", "goodput", "on the engine", "least yield"], rows
    )


def gains(points: Points, study: str, over: str) -> str:
    """Return the lead of DP in points on equal walks; bold if 0 lies outside the 95 % interval."""
    rows = points.frame[(points.frame["study"] == study) & (points.frame["structure"] != FIXED)]
    ours = rows[rows["label"] == PLANNED].pivot_table("goodput_percent", "walk", over)
    lines = []
    for label in dict.fromkeys(rows["label"]):
        if label == PLANNED:
            continue
        part = rows[rows["label"] == label]
        varied = part[over].notna().any()
        theirs = (
            part.pivot_table("goodput_percent", "walk", over) if varied else part.set_index("walk")["goodput_percent"]
        )
        cells = []
        for x in ours.columns:
            if varied and x not in theirs.columns:
                cells.append(NOTHING)
                continue
            mean, error, half = interval((ours[x] - (theirs[x] if varied else theirs)).dropna())
            text = f"{number(mean, 1, signed=True)} ± {number(error, 1)}"
            cells.append(text if verdict(mean, half, 0.0) == "open" else f"**{text}**")
        lines.append([f"than {label}", *cells])
    return markdown(["DP has more", *(f"{x:g}" for x in ours.columns)], lines)


def means(points: Points, study: str, names: list[str], walks: bool = True) -> str:
    """Return mean ± standard error of some figures of each algorithm of a study."""
    rows = points.frame[points.frame["study"] == study]
    rows = rows[rows["structure"] != FIXED] if walks else rows
    lines = []
    for label, part in rows.groupby("label", sort=False):
        cells = []
        for name in names:
            mean, error, _ = interval(part[name])
            cells.append(f"{number(mean, 1)} ± {number(error, 1)}")
        lines.append([str(label), *cells])
    return markdown(["algorithm", *(PERCENTS[name] for name in names)], lines)


def crossing(xs: list[float], values: list[float]) -> float:
    """Return the x up to which values are > 0, between two x on a straight line; infinite if all are, NaN if none."""
    before: tuple[float, float] | None = None
    for x, value in sorted(zip(xs, values, strict=True)):
        if not value > 0.0:
            return math.nan if before is None else before[0] + (x - before[0]) * before[1] / (before[1] - value)
        before = x, value
    return math.inf


def break_even(points: Points) -> str:
    """Return the C (= R) up to which checkpoints have more goodput than the best of killing, by trace and period."""
    rows = points.frame[(points.frame["study"] == "single") & (points.frame["structure"] != FIXED)]
    lines = []
    for (trace, period_s), part in rows.groupby(["trace", "period_s"], sort=False):
        killing = part[part["label"].isin(KILLING)]
        best = str(killing.groupby("label")["goodput_percent"].mean().idxmax())
        theirs = killing[killing["label"] == best].set_index("walk")["goodput_percent"]
        ours = part[part["label"] == PLANNED].pivot_table("goodput_percent", "walk", "checkpoint_s")
        ahead = ours.sub(theirs, axis=0)
        costs = ahead.columns.tolist()
        even = crossing(costs, ahead.mean().tolist())
        single = np.nan_to_num([crossing(costs, walk) for walk in ahead.to_numpy().tolist()])
        lines.append(
            [
                trace.removeprefix("jobs-single-"),
                f"{period_s:g}",
                best,
                number(ahead.iloc[:, 0].mean(), 1, signed=True),
                f"{even:.0f}",
                f"{single.min():.0f} to {single.max():.0f}",
            ]
        )
    return markdown(["jobs", "s between changes", "who kills best", "more with C = 0 (points)",
                     "break-even C (s)", "of single walks (s)"], lines, texts=3)  # fmt: skip


def draw(points: Points) -> Figure:
    """Draw goodput by the time of checkpoints: rigid jobs, and jobs of one processor by the time between changes."""
    figure = Figure(figsize=(7.2, 3.4), layout="constrained")
    left, right = figure.subplots(1, 2, sharey=True)
    rigid = points.frame[(points.frame["study"] == "costs") & (points.frame["structure"] != FIXED)]
    for turn, label in enumerate((PLANNED, SUBSET, FAIR)):
        part = rigid[rigid["label"] == label].groupby("checkpoint_s")["goodput_percent"].agg(["mean", "sem"])
        left.errorbar(part.index, part["mean"], part["sem"], label=label, marker="osD"[turn], markersize=4)
    for turn, label in enumerate(("LWW", "LFD")):
        level = rigid.loc[rigid["label"] == label, "goodput_percent"].mean()
        left.axhline(level, color="0.3", linestyle=("--", ":")[turn], linewidth=1.0, label=label)
    single = points.frame[(points.frame["study"] == "single") & (points.frame["structure"] != FIXED)]
    single = single[(single["trace"] == "jobs-single-2h") & (single["label"] == PLANNED)]
    for turn, (period_s, rows) in enumerate(single.groupby("period_s")):
        part = rows.groupby("checkpoint_s")["goodput_percent"].agg(["mean", "sem"])
        right.errorbar(part.index, part["mean"], part["sem"], label=f"DP, a change every {period_s / 60:g} min",
                       marker="o^v"[turn], markersize=4, color=mpl.colormaps["tab10"](turn + 4))  # fmt: skip
    for axes, title in ((left, "rigid jobs, a change every hour"), (right, "jobs of one processor, 2 h in the mean")):
        axes.set_xscale("symlog", linthresh=30)
        axes.set_xlim(-4, 1500)
        axes.set_xticks([0, 30, 60, 120, 300, 1200], ["0", "30", "60", "120", "300", "1200"])
        axes.set_xticks([], minor=True)
        axes.set(xlabel="time of a checkpoint, C = R (s)", title=title)
        axes.title.set_fontsize(10)
        axes.spines[["top", "right"]].set_visible(False)
        axes.grid(alpha=0.3)
        axes.legend(fontsize=8, frameon=False, loc="lower left")
    left.set_ylabel("goodput (%)")
    return figure


def tables(path: Path = RUNS) -> dict[str, str]:
    """Return every table."""
    points = read_points(path)
    return {
        "claims": claims_table(CLAIMS, points, ("statement or question", "where", "here", "holds")),
        "figure1": figure1(points),
        "costs": gains(points, "costs", "checkpoint_s"),
        "ranges": means(points, "ranges", ["goodput_percent", "wait_min"]),
        "endless": means(points, "endless", ["goodput_percent", "least_yield_percent"]),
        "break-even": break_even(points),
    }


def make(results: Path) -> None:
    """Make the numbers, the figure and the tables of the checkpoint paper's page from the results of study.yaml."""
    write_runs(results, RUNS)
    points = read_points(RUNS)
    numbers = all_numbers(points, CLAIMS).round(4)
    numbers.to_csv(RUNS.with_name("claims.csv"), index=False, lineterminator="\n")
    alignment.losses().to_csv(RUNS.with_name("alignment.csv"), index=False, lineterminator="\n")
    draw(points).savefig(FIGURE, dpi=150)


if __name__ == "__main__":
    sys.exit(pages.main(PAGE, tables, make, ("checkpoint",)))
