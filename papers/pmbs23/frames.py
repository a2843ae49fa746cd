"""Runs and generated inputs of the riskaware paper's page, as the rows of its files.

Names in the table of the study: workload uniform-20000-0 (type, jobs, seed) or 14D_518400 (a slice of the Borg trace),
capacity walk-24-8-1200-3 (machines on average, range, period in s, seed).
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from papers.generators.pmbs import Kind, Synthetic, Walk, random_walk, synthetic
from papers.pages import runs_of

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
