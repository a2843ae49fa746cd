"""Goodput of a capacity that varies: the figures of the riskaware and the varcap paper.

M(t) machines of `cores` cores each are alive; the window is [begin, end]. Work is clipped to the window: a run of
c cores from s to e does (min(e, end) - max(s, begin)) c core seconds in it, less in the ratio in which it took longer
than its length at full speed. Of Perotin et al., PMBS 2023:

    goodput             useful_core_s / capacity_core_s                       section 3.4
    useful_core_s       work of the runs that completed in the window, and of the runs in progress at its end
    capacity_core_s     cores x integral of M(t) over the window
    aborted_volume      aborted_core_s / capacity_core_s                      section 5.4
    aborted_core_s      work of the runs that the scheduler killed in the window
    mean_aborted_time_s mean of e - max(s, begin) over these kills            section 5.4

The paper's sums begin at 0; here sums begin with the window, so that a warm-up counts in no sum. A run in progress at
the end is useful whatever its later end, as in the paper's set of started jobs. A run that failed or reached its
walltime is neither useful nor aborted: it did not lose its machine. Of Zhang's dissertation (section 5.1.6), for all
jobs and, by the length of the job, for short ones and long ones (> `long_s`):

    terminations        runs that the scheduler killed in the window
    job_failure_rate    terminations / (terminations + runs that completed in the window)
    slowdown_rate       fraction of the runs that completed in the window and took over 1e-3 s longer than the
                        workload says
    goodput_short       useful_core_s of short jobs / capacity_core_s; the two parts add up to goodput (Fig. 5.9a)

A migrated run does not count as killed: with its following parts, it is one run (see `parts`). A run that a checkpoint
saved does not count as killed either: its work is useful, whatever the end of the job. For
docs/explanation/checkpoint.md:

    checkpoint_volume   core seconds of checkpoints in the window / capacity_core_s; not useful work
    checkpoints         checkpoints that ended in the window, in whatever way
    recovery_volume, recoveries     these two figures of recoveries
    min_yield, mean_yield           see `yields`
"""

from __future__ import annotations

import math

import numpy as np

from batwatt.model.signal import Window
from batwatt.model.timeline import Timeline
from batwatt.results.parts import Floats, Mask
from batwatt.results.run_table import RunTable
from batwatt.results.slowdowns import mean_wait_s
from batwatt.results.yields import yield_figures
from batwatt.units import LAG_S


def goodput_figures(
    run_table: RunTable, capacity: Timeline, cores: int, long_s: float
) -> dict[str, float | int | None]:
    """Return the figures of a run under a capacity, by the names of `figures.METRICS`; None for an undefined figure.

    `capacity` is the number of machines alive, `cores` the cores of one; a job is long if its length is > `long_s` s.
    """
    if not cores >= 1:
        raise ValueError(f"cores must be >= 1, got {cores!r}")
    if not 0.0 < long_s < math.inf:
        raise ValueError(f"long_s must be > 0 s and finite, got {long_s!r}")
    work, lasted_s = run_table.work_core_s, run_table.lasted_s
    alive = capacity_core_s(capacity, cores, run_table.window)
    useful, aborted = _total(work[run_table.useful]), _total(work[run_table.aborted])
    ended = len(np.unique(run_table.origins.job[run_table.completed & run_table.origins.in_workload]))
    lost = len(np.unique(run_table.chains.last[run_table.aborted]))
    long = run_table.length_s > long_s
    return {
        "goodput": _ratio(useful, alive),
        "aborted_volume": _ratio(aborted, alive),
        "mean_aborted_time_s": _ratio(_total(lasted_s[run_table.aborted]), lost),
        "completed_fraction": _ratio(ended, int(run_table.due.sum())),
        "capacity_core_s": alive,
        "useful_core_s": useful,
        "aborted_core_s": aborted,
        "migrations": int(run_table.migrated.sum()),
        "slowdown_rate": _slowdown_rate(run_table),
        **_kills(run_table, np.full(len(long), True)),
        "goodput_short": _ratio(_total(work[run_table.useful & ~long]), alive),
        "goodput_long": _ratio(_total(work[run_table.useful & long]), alive),
        **_kills(run_table, ~long, "_short"),
        **_kills(run_table, long, "_long"),
        "mean_wait_short_s": mean_wait_s(run_table, run_table.completed & ~long),
        "mean_wait_long_s": mean_wait_s(run_table, run_table.completed & long),
        "checkpoint_volume": _ratio(_total(_spent(run_table, run_table.kinds.checkpoint)), alive),
        "recovery_volume": _ratio(_total(_spent(run_table, run_table.kinds.recovery)), alive),
        "checkpoints": int((run_table.kinds.checkpoint & run_table.window.holds(run_table.finish_s)).sum()),
        "recoveries": int((run_table.kinds.recovery & run_table.window.holds(run_table.finish_s)).sum()),
        **yield_figures(run_table),
    }


def capacity_core_s(capacity: Timeline, cores: int, window: Window) -> float:
    """Return the core seconds of the machines alive in the window: cores x the integral of the capacity."""
    capacity = capacity.upto(window.end_s)
    times = np.asarray(capacity.times_s)
    inner = times[(times > window.begin_s) & (times < window.end_s)]
    edges = np.concatenate(([window.begin_s], inner, [window.end_s]))
    row = np.searchsorted(times, edges[:-1], side="right") - 1
    return cores * _total(np.asarray(capacity.values)[np.maximum(row, 0)] * np.diff(edges))


def _kills(run_table: RunTable, rows: Mask, end: str = "") -> dict[str, float | int | None]:
    """Return kills and rate of failures of rows, under names with the suffix `end`."""
    completed, killed = int((run_table.completed & rows).sum()), int((run_table.killed & rows).sum())
    return {f"terminations{end}": killed, f"job_failure_rate{end}": _ratio(killed, killed + completed)}


def _spent(run_table: RunTable, rows: Mask) -> Floats:
    """Return the core seconds in the window of the rows that ran in it."""
    return (run_table.lasted_s * run_table.cores)[rows & (run_table.lasted_s > 0.0)]


def _slowdown_rate(run_table: RunTable) -> float | None:
    """Return the fraction of completed runs longer than declared in the workload; None without declared run times."""
    expected_s = run_table.expected_s[run_table.completed]
    took_s = (run_table.finish_s - run_table.chains.start_s)[run_table.completed]
    declared = ~np.isnan(expected_s)
    return _ratio(int((took_s > expected_s + LAG_S)[declared].sum()), int(declared.sum()))


def _total(values: Floats) -> float:
    """Return the exact sum, rounded once: its bytes do not depend on the order of rows."""
    return math.fsum(values.tolist())


def _ratio(part: float, whole: float) -> float | None:
    return part / whole if whole > 0 else None
