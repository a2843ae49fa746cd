"""Runs for the page of the checkpoint paper.

A label such as `DP fair 0.5 C=60` is the algorithm `DP fair 0.5` with C = 60 s: words with `=` repeat options, and are
not part of the algorithm's name.
"""

from __future__ import annotations

from pathlib import Path

import pandas as pd

from papers.pairs import Points
from papers.runs import VARIES, WHERE, options_of, runs_of, with_capacities

PLANNED, SUBSET = "DP", "subset sum"
KILLING = ("Random", "LWW", "LFD", "FirstFitAware", "TargetASAP", "PackedTargetASAP")
"""Algorithms without checkpoints and foresight."""
FIGURES = ["goodput_with_running", "aborted_volume", "checkpoint_volume", "recovery_volume", "min_yield", "mean_yield",
           "mean_wait_s", "terminations"]  # fmt: skip
DIMENSIONS = ("study", "platform", "label", "range", "step", "period_s", "structure", "trace", "walk",
              "checkpoint_s", "recovery_s", "warning_s", "asked_yield")  # fmt: skip
_USUAL = {"checkpoint_s": 60.0, "recovery_s": 60.0, "warning_s": None, "min_yield": None}


def write_runs(results: Path, path: Path) -> None:
    """Write the runs of a study to a file."""
    columns = [*WHERE, "scheduler", "options", *VARIES[:5], "cap_seed", *FIGURES]
    runs_of(results, columns).to_csv(path, index=False, lineterminator="\n")


def read_points(path: Path) -> Points:
    """Read runs with the parameters of their labels, options and capacities, and figures in % and min."""
    frame = with_capacities(pd.read_csv(path))
    options = options_of(frame, _USUAL).astype(float)
    ours = frame["scheduler"] == "checkpoint"
    min_yield = options["min_yield"]
    names = frame["label"].str.replace(r"\s*\b[A-Za-z]\w*=\S+", "", regex=True).str.strip()
    fair = names.str.replace(r"\s*\bfair\b.*", "", regex=True) + min_yield.map(
        lambda value: f" fair {value:g}" if value > 0.0 else ""
    )
    frame = frame.assign(
        label=fair.where(min_yield.notna(), names),
        trace=frame["workload"],
        asked_yield=min_yield.fillna(0.0).where(ours),
        **{name: options[name].where(ours) for name in ("checkpoint_s", "recovery_s", "warning_s")},
        goodput_percent=100.0 * frame["goodput_with_running"],
        aborted_percent=100.0 * frame["aborted_volume"],
        checkpoints_percent=100.0 * frame["checkpoint_volume"],
        recoveries_percent=100.0 * frame["recovery_volume"],
        least_yield_percent=100.0 * frame["min_yield"],
        mean_yield_percent=100.0 * frame["mean_yield"],
        wait_min=frame["mean_wait_s"] / 60.0,
    )
    return Points(frame, DIMENSIONS)
