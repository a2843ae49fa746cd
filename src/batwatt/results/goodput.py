"""What machines that come and go were good for: the figures of the riskaware and the varcap paper.

A capacity M(t) machines of `cores` cores each is alive; the window is [begin, end]. All work is clipped to it: a run of
c cores from s to e does (min(e, end) - max(s, begin)) c core seconds there. Of Perotin et al., PMBS 2023:

    goodput             useful_core_s / capacity_core_s                       section 3.4
    useful_core_s       work of the runs that completed in the window, and of those that are still going at its end
    capacity_core_s     cores x integral of M(t) over the window
    aborted_volume      aborted_core_s / capacity_core_s                      section 5.4
    aborted_core_s      work of the runs that the scheduler killed in the window
    mean_aborted_time_s mean of e - max(s, begin) over these kills            section 5.4

The paper's own sums begin at 0; here they begin where the window does, so that a warm-up counts in neither of them. A
run counts as useful at the end whatever becomes of it later, as in the paper's set of started jobs. A run that failed
or reached its walltime is neither useful nor aborted: no machine was taken from it. Of Zhang's dissertation (section
5.1.6), for all jobs and, by the length of the job, for short ones and long ones (> `long_s`):

    terminations        runs that the scheduler killed in the window
    job_failure_rate    terminations / (terminations + runs that completed in the window)
    slowdown_rate       fraction of the runs that completed in the window and took over 1e-3 s longer than the
                        workload says
    goodput_short       useful_core_s of short jobs / capacity_core_s; the two parts add up to goodput (Fig. 5.9a)

A migrated run is none that was killed: with what follows it, it is one run (see `parts`). Nor is one whose work a
checkpoint saved: that is useful, whatever becomes of the job. For docs/explanation/checkpoint.md:

    checkpoint_volume   core seconds of checkpoints in the window / capacity_core_s; they are no useful work
    checkpoints         checkpoints that ended in the window, in whatever way
    recovery_volume, recoveries     the same of recoveries
    min_yield, mean_yield           see `yields`
"""

from __future__ import annotations

import math

import numpy as np

from batwatt.model.series import Series
from batwatt.model.window import Window
from batwatt.results.parts import Floats, Mask
from batwatt.results.run_table import RunTable
from batwatt.results.slowdowns import mean_wait_s
from batwatt.results.yields import yield_figures
from batwatt.units import LAG_S


def goodput_figures(run_table: RunTable, capacity: Series, cores: int, long_s: float) -> dict[str, float | int | None]:
    """The figures of a run under a capacity, by the names of `figures.METRICS`; None where one has no meaning.

    `capacity` are the machines alive, `cores` the cores of one; a job is long if its length is > `long_s` s.
    """
    if not cores >= 1:
        raise ValueError(f"cores must be >= 1, got {cores!r}")
    if not 0.0 < long_s < math.inf:
        raise ValueError(f"long_s must be > 0 s and finite, got {long_s!r}")
    work, lasted_s = run_table.work_core_s, run_table.lasted_s
    alive = capacity_core_s(capacity, cores, run_table.window)
    useful, aborted = _total(work[run_table.useful]), _total(work[run_table.aborted])
    ended = len(np.unique(run_table.origins.job[run_table.completed & run_table.origins.known]))
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


def capacity_core_s(capacity: Series, cores: int, window: Window) -> float:
    """Core seconds of the machines alive in the window: cores x the integral of the capacity."""
    times = np.asarray(capacity.times_s)
    inner = times[(times > window.begin_s) & (times < window.end_s)]
    edges = np.concatenate(([window.begin_s], inner, [window.end_s]))
    row = np.searchsorted(times, edges[:-1], side="right") - 1
    return cores * _total(np.asarray(capacity.values)[np.maximum(row, 0)] * np.diff(edges))


def _kills(run_table: RunTable, rows: Mask, end: str = "") -> dict[str, float | int | None]:
    """Kills and rate of failures of these rows, under names that end so."""
    completed, killed = int((run_table.completed & rows).sum()), int((run_table.killed & rows).sum())
    return {f"terminations{end}": killed, f"job_failure_rate{end}": _ratio(killed, killed + completed)}


def _spent(run_table: RunTable, rows: Mask) -> Floats:
    """Core seconds in the window of these rows, as far as they ran in it."""
    return (run_table.lasted_s * run_table.cores)[rows & (run_table.lasted_s > 0.0)]


def _slowdown_rate(run_table: RunTable) -> float | None:
    """Fraction of the completed runs that took longer than the workload says; None if it says nothing of them."""
    expected_s = run_table.expected_s[run_table.completed]
    took_s = (run_table.finish_s - run_table.chains.start_s)[run_table.completed]
    known = ~np.isnan(expected_s)
    return _ratio(int((took_s > expected_s + LAG_S)[known].sum()), int(known.sum()))


def _total(values: Floats) -> float:
    """The exact sum, rounded once: whatever the order of rows, the same bytes."""
    return math.fsum(values.tolist())


def _ratio(part: float, whole: float) -> float | None:
    return part / whole if whole > 0 else None
