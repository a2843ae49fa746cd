"""The quantities of statements.csv of the checkpoint paper, by the samples that decide them.

`walks`: runs of study.yaml by the seed of the capacity; a key is (algorithm, time of checkpoints in s, figure).
`seeds`: small periods by the seed of the set; a key is (costs, figure), the mean over the kinds with these costs.
`draws`: Figure 1 by the draw of its times; `sequences`: jobs without an end by walk (both `periods.py`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import pandas as pd

from papers.statements import Samples, Statistic, Verdicts, statements_of, verdicts_by_kind

HERE = Path(__file__).resolve().parent
DATA = HERE / "data"
PROCESSOR_S, CHANGES = 0.7 * 96 * 172_800.0, 48
"""Of a run of the study `costs`: its mean capacity over its window, and the changes in it."""
COSTS_S = (10.0, 30.0, 60.0, 120.0, 300.0, 600.0, 1200.0)
"""Times of checkpoints (and recoveries) of the study `costs` but 0."""
MAX_MIN = 2.0
"""Key of the threshold of the yield that has the largest least yield of a walk."""
LOST, LEAST, GOODPUT, KILLED = "lost_percent", "least_yield_percent", "goodput_percent", "terminations"


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
        "draws": Samples({(name,): values.to_numpy(float) for name, values in figure1.items()}),
        "sequences": keyed(pd.concat([yields, best]), "asked_yield", (GOODPUT, "least_yield", "never")),
    }


def lost_without(m: Samples) -> float:
    """Return the lost work in processor s of the better of LWW and LFD, less that with checkpoints of 60 s."""
    return (min(m(label, 0.0, LOST) for label in ("LWW", "LFD")) - m("DP", 60.0, LOST)) / 100.0 * PROCESSOR_S


def without_loss(m: Samples) -> float:
    """Return the share of changes in %, at which no work is lost: each killed job counts as a change."""
    return 100.0 - 100.0 * sum(m("DP", time_s, KILLED) for time_s in COSTS_S) / (len(COSTS_S) * CHANGES)


def over_subset(m: Samples) -> float:
    """Return the mean lead over checkpoint-all and subset sum in points of goodput, over checkpoints that take time."""
    return sum(m("DP", time_s, GOODPUT) - m("subset sum", time_s, GOODPUT) for time_s in COSTS_S) / len(COSTS_S)


def traded(m: Samples) -> float:
    """Return the points of goodput lost for 0.1 of least yield, from goodput alone to max-min yield."""
    lost, gained = (m(0.0, name) - m(MAX_MIN, name) for name in (GOODPUT, "least_yield"))
    return -0.1 * lost / gained


def of(*key: str | float) -> Statistic:
    """Return the mean of a key."""
    return lambda m: m(*key)


MEASURES: Mapping[str, Mapping[int, Statistic]] = {
    "walks": {1: lost_without, 2: without_loss, 3: without_loss, 12: over_subset},
    "seeds": {
        5: lambda m: min(m(costs, "by_later_points") for costs in ("equal", "different")),
        11: of("none", "subset_optimal_percent"),
        13: of("different", "optimal_percent"),
        19: of("equal", "optimal_percent"),
        20: of("equal", "optimal_percent"),
        22: of("different", "feasible_percent"),
        23: of("different", "over_at_once_points"),
        24: of("different", "early_percent"),
        27: of("different", "over_best_points"),
    },
    "draws": {8: of("idle_processor_s"), 17: of("checkpoints"), 18: of("recoveries")},
    "sequences": {
        28: of(0.0, "never"),
        29: of(0.0, "least_yield"),
        30: lambda m: m(MAX_MIN, "least_yield") - m(0.0, "least_yield"),
        31: traded,
    },
}
"""Samples -> place in statements.csv -> its quantity.

The others describe the model or the algorithm (4, 7, 9, 10, 14 to 16), are goals (6), or are bounds of tables that
batwatt's search does not fill (21, 25, 26).
"""


def judged(folder: Path = DATA) -> Verdicts:
    """Return the statements of the paper, and what is measured of them."""
    return verdicts_by_kind(statements_of(HERE), MEASURES, samples_of(folder))
