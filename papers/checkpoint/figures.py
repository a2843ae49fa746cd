"""Draw the figures of the checkpoint paper's page.

Figure 1 has the form and the decisions of the paper's: a plan with a threshold of the yield of 0.2; its times are ours.
Figure 2 is ours: the time of a checkpoint up to which it is better than killing jobs.
"""

from __future__ import annotations

from pathlib import Path

import pandas as pd
from matplotlib.figure import Figure
from matplotlib.patches import Patch, Rectangle

from batwatt.results.drawing import DASHES, INK, MARKERS, PALETTE, plain, save, styled
from batwatt.schedulers.checkpoint.files import read_sequence
from batwatt.schedulers.checkpoint.sequence import follow
from papers.checkpoint.periods import FIGURE1

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


def draw(runs: pd.DataFrame, folder: Path) -> None:
    """Write figure-1.svg and figure-2.svg."""
    with styled():
        save(schedule(), folder / "figure-1.svg")
        save(break_even(runs), folder / "figure-2.svg")
