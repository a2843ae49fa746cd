"""Compute the figures of a run.

They are those of section VII-A of the powercap paper and those that explain them, the waits and slowdowns of jobs, and
the goodput and the fairness of a run on machines that come and go.

# Waits and slowdowns of the jobs that completed

For a run with the first submission s that began at b, ended at e and executed for x s, of a job released at r (s unless
declared otherwise) with a run time of p s at full speed (of the whole job if it began before the window):

    slowdown               (e - s) / x, as Batsim's `stretch`; see `metrics`
    full-speed slowdown    (e - r) / p
    bounded slowdown       max(1, (e - r) / max(`BOUND_S`, p))
    wait                   b - s

The last three are of the runs that completed in the window, e no later than its end. Jobs with p below `REPORTED_S`,
the resolution of the times of a run, have no full-speed slowdown.

# Goodput of a capacity that varies: the figures of the riskaware and the varcap paper

M(t) machines of `cores` cores each are alive; the window is [begin, end]. Work is clipped to the window: a run of
c cores from s to e does (min(e, end) - max(s, begin)) c core seconds in it, less in the ratio in which it took longer
than its length at full speed. Of Zhang's dissertation:

    goodput             work of the jobs that completed in the window / capacity_core_s             section 5.1.6

Of Perotin et al., PMBS 2023:

    goodput_with_running    useful_core_s / capacity_core_s                   section 3.4
    useful_core_s       work of the runs that completed in the window, and of the runs in progress at its end
    capacity_core_s     cores x integral of M(t) over the window
    aborted_volume      aborted_core_s / capacity_core_s                      section 5.4
    aborted_core_s      work of the runs that the scheduler killed in the window
    mean_aborted_time_s mean of e - max(s, begin) over these kills            section 5.4

The paper's sums begin at 0; here sums begin with the window, so that a warm-up counts in no sum. A run in progress at
the end is useful whatever its later end, as in the paper's set of started jobs. A run that failed or reached its
walltime is neither useful nor aborted: it did not lose its machine. Of the dissertation again (section 5.1.6), for all
jobs and, by the length of the job, for short ones and long ones (> `long_s`):

    terminations        runs that the scheduler killed in the window
    job_failure_rate    terminations / (terminations + runs that completed in the window)
    slowdown_rate       fraction of the runs that completed in the window and took over 1e-3 s longer than the
                        workload says
    goodput_short       the part of goodput that is of short jobs; the two parts add up to goodput (Fig. 5.9a)

A migrated run does not count as killed: with its following parts, it is one run (see `parts`). A run that a checkpoint
saved does not count as killed either: its work is useful, whatever the end of the job, and of goodput once the job
completes. For docs/explanation/checkpoint.md:

    checkpoint_volume   core seconds of checkpoints in the window / capacity_core_s; not useful work
    checkpoints         checkpoints that ended in the window, in whatever way
    recovery_volume, recoveries     these two figures of recoveries
    min_yield, mean_yield           see below

# Fairness: the yield of a job is its useful work over the time in which it could run

    min_yield, mean_yield    over the jobs, of useful work in s / (until - since)

Useful work is that of goodput_with_running, in the window, without work lost to kills. `since` is the submission or the
begin of the window, whichever is later, `until` the completion or the end of the window, whichever is earlier. The
yield of a job that never runs is 0, that of a job without waits, kills and checkpoints is 1. Jobs submitted less than
`LEAST_S` before the end or completed before the begin are left out, and so are jobs that were refused or failed, as the
scheduler does not choose them. It is the yield of docs/explanation/checkpoint.md if a job always fits.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType

import numpy as np

from batwatt.checks import load_json
from batwatt.errors import InputError
from batwatt.files import read_text, write_json
from batwatt.model.platform import MachinePower, Platform
from batwatt.model.signal import Window
from batwatt.model.timeline import Timeline
from batwatt.model.work import flops_of
from batwatt.model.workload import LONG_S, Workload
from batwatt.results.figures import BOUND_S, METRICS, Values, rounded
from batwatt.results.power import compare, power_series, step_bounds, weighted
from batwatt.results.run_files import FAILED, KILLED, REJECTED, SUCCESSFUL, WALLTIME, RunData, file_of
from batwatt.results.run_table import Floats, Mask, Rows, RunTable
from batwatt.units import LAG_S, REPORTED_S

LATENESS_S = 1.0
"""Largest time from the last row of the file of energies to the end of the last job."""
LEAST_S = 1.0
"""Least time in s from the submission of a counted job to the end of the window."""


def measured(
    run: Path | str | RunData,
    workload: Workload,
    envelope: Timeline | None,
    reference_flops: float,
    *,
    capacity: Timeline | None = None,
    cores: int = 1,
    window: Window | None = None,
    long_s: float = LONG_S,
    signals: Mapping[str, Timeline] = MappingProxyType({}),
    platform: Platform | None = None,
) -> tuple[Values, RunTable]:
    """Return the figures of a run, or of files under a prefix, and the table of its rows.

    Figures that need what is missing are left out: of power a file of energies, the envelope or a signal, those of
    goodput a capacity.

    `envelope` is the cap in W, `reference_flops` the full speed in flop/s, at which the work of a delay is counted,
    `capacity` the machines of `cores` cores that are alive; jobs of more than `long_s` s are long; `signals`: g or
    money per kWh, by figure; `platform`: the hosts that the envelope feeds. A job that was resubmitted waits from its
    first submission. A run that ends after the window counts as unfinished and in no other number of jobs, whatever its
    state. Raises InputError if the files are missing, malformed or of another workload.
    """
    data = run if isinstance(run, RunData) else RunData(run)
    if not (reference_flops > 0.0 and math.isfinite(reference_flops)):
        raise ValueError(f"reference_flops must be > 0 and finite, got {reference_flops!r}")
    run_table = RunTable(data, workload, window, reference_flops)
    state, finish_s = run_table.state, run_table.finish_s
    successful = (state == SUCCESSFUL) & ~(run_table.beyond | run_table.saved | run_table.overhead)
    makespan_s = float(np.nanmax(finish_s)) if not np.isnan(finish_s).all() else 0.0
    parts = run_table.migrated | run_table.saved | run_table.overhead
    count = Counter(state[~(run_table.beyond | parts)].tolist())
    figures: dict[str, float | int | None] = {}
    if data.energy is not None:
        figures.update(_energy(data, envelope, makespan_s, signals))
    if capacity is not None:
        figures.update(goodput_figures(run_table, capacity, cores, long_s))
    figures.update(slowdown_figures(run_table))
    run_s = run_table.expected_s
    lasting = successful & (run_s >= REPORTED_S)
    stretches = run_table.chains.execution_s[lasting] / run_s[lasting]
    figures |= {
        "mean_slowdown": _mean_slowdown(run_table, successful),
        "mean_run_time_stretch": float(np.mean(stretches)) if len(stretches) else None,
        "jobs_finished": int(successful.sum()),
        "killed_power": count[KILLED],
        "killed_walltime": count[WALLTIME],
        "finished_work_fraction": _work_fraction(workload, run_table, successful, reference_flops),
        "jobs_total": len(workload.jobs),
        "jobs_rejected": count[REJECTED],
        "jobs_failed": count[FAILED],
        "jobs_unfinished": int(run_table.waited_or_ran.sum()),
        "resubmissions": int((~run_table.itself & ~run_table.overhead).sum()),
        "makespan_s": makespan_s,
    }
    if envelope is not None:
        figures["steps"] = step_bounds(envelope, makespan_s)[2]
        if platform is not None:
            figures["work_per_fed_host"] = _work_per_fed_host(run_table, platform, envelope, makespan_s)
    for name, value in figures.items():
        if value is not None and not math.isfinite(value):
            raise ValueError(f"{name} must be finite or None, got {value!r}")
    return figures, run_table


def _work_per_fed_host(run_table: RunTable, platform: Platform, envelope: Timeline, end_s: float) -> float | None:
    """Return the host s of work of completed jobs / the host s that the envelope feeds until `end_s`, in s.

    Fed hosts are those of a machine x the machines that the power feeds at their full watts. None without fed hosts,
    and for hosts without watts or that save nothing when off.
    """
    try:
        power = MachinePower.of(platform)
    except InputError:
        return None
    fed_s = power.fed_by(envelope).mean_until(end_s) * end_s if end_s > 0.0 else 0.0
    if not fed_s > 0.0:
        return None
    jobs = run_table.declared
    useful_s = np.nansum((jobs.left_s * jobs.cores)[~np.isnan(run_table.completed_s)])
    return float(useful_s / (fed_s * len(platform) / power.machines))


def write_metrics(prefix: Path | str, metrics: Values) -> Path:
    """Write `PREFIX_metrics.json` in the order of `METRICS`; return its path. Raises InputError."""
    path = file_of(prefix, "metrics", ".json")
    write_json(path, rounded({figure.name: metrics.get(figure.name) for figure in METRICS}))
    return path


def read_metrics(prefix: Path | str) -> Values:
    """Return the figures in `PREFIX_metrics.json`. Raises InputError."""
    path = file_of(prefix, "metrics", ".json")
    metrics = load_json(read_text(path), path)
    if not (isinstance(metrics, dict) and all(isinstance(value, float | int | None) for value in metrics.values())):
        raise InputError(path, "is no object of numbers", "run it again")
    return metrics


def _mean_slowdown(run_table: RunTable, successful: Mask) -> float | None:
    """Return the mean of (waiting + execution) / execution; Eq. 6 of the powercap paper, as a mean. None without jobs.

    A job that runs in parts also waits between them (see `Chains`).
    """
    if not successful.any():
        return None
    chains = run_table.chains
    stood_s = np.where(chains.several, run_table.finish_s - chains.start_s - chains.execution_s, 0.0)
    waiting = (chains.start_s + stood_s - run_table.submit_s)[successful]
    execution = chains.execution_s[successful]
    ran = execution > 0.0
    return float(np.mean((waiting[ran] + execution[ran]) / execution[ran])) if ran.any() else None


def _work_fraction(workload: Workload, run_table: RunTable, successful: Mask, reference_flops: float) -> float | None:
    """Return the share of the workload's flops in successful jobs; None without flops or with an unknown profile."""
    jobs = np.unique(run_table.job[successful & run_table.in_workload])
    flops = flops_of(workload, reference_flops)
    total = math.fsum(flops.tolist())
    return min(1.0, math.fsum(flops[jobs].tolist()) / total) if total > 0.0 else None


def _energy(
    data: RunData, envelope: Timeline | None, end_s: float, signals: Mapping[str, Timeline]
) -> dict[str, float | int | None]:
    """Return the figures of the power over [0, end_s]."""
    trace = power_series(data, end_s)
    if trace.end_s < end_s - LATENESS_S:
        path = file_of(data.prefix, "consumed_energy")
        problem = f"ends at {trace.end_s:g} s but the last job at {end_s:g} s"
        raise InputError(path, problem, "the files are of different runs or the run broke off: run it again")
    figures: dict[str, float | int | None] = {
        "energy_j": trace.energy_j,
        "max_power_w": trace.max_w,
    }
    if envelope is not None:
        pieces = compare(trace, envelope)
        figures["violations"] = pieces.violations
        figures["energy_above_cap_j"] = pieces.above_j
        figures["unused_j"] = pieces.unused_j
    for name, signal in signals.items():
        figures[name] = weighted(trace, signal)
    return figures


def slowdown_figures(run_table: RunTable) -> dict[str, float | None]:
    """Compute the figures of waits and of slowdowns, by the names of `figures.METRICS`."""
    _, took_s, full_s = turnarounds(run_table)
    lasting = full_s >= REPORTED_S
    slowdowns = took_s[lasting] / full_s[lasting]
    waits = run_table.wait_s[run_table.completed]
    return {
        "mean_bounded_slowdown": _mean(np.maximum(1.0, took_s / np.maximum(BOUND_S, full_s))),
        "mean_full_speed_slowdown": _mean(slowdowns),
        "max_full_speed_slowdown": float(slowdowns.max()) if len(slowdowns) else None,
        "mean_wait_s": mean_wait_s(run_table, run_table.completed),
        "p95_wait_s": float(np.percentile(waits, 95.0)) if len(waits) else None,
    }


def turnarounds(run_table: RunTable) -> tuple[Rows, Floats, Floats]:
    """Return the rows of jobs that completed in the window, with e - r and p in s, without jobs of unknown p."""
    declared = run_table.declared
    rows = np.flatnonzero(run_table.completed & run_table.in_workload)
    rows = rows[~np.isnan(declared.length_s[run_table.job[rows]])]
    job = run_table.job[rows]
    released_s = declared.release_s[job]
    release_s = np.where(np.isnan(released_s), run_table.submit_s[rows], released_s)
    return rows, np.minimum(run_table.finish_s[rows], run_table.window.end_s) - release_s, declared.length_s[job]


def mean_wait_s(run_table: RunTable, rows: Mask) -> float | None:
    """Return the mean wait in s of rows; None without rows."""
    return _mean(run_table.wait_s[rows])


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
    ended = len(np.unique(run_table.job[run_table.completed & run_table.in_workload]))
    lost = len(np.unique(run_table.chains.last[run_table.aborted]))
    long = run_table.length_s > long_s
    return {
        "goodput": _ratio(_total(work[run_table.rewarded]), alive),
        "goodput_with_running": _ratio(useful, alive),
        "aborted_volume": _ratio(aborted, alive),
        "mean_aborted_time_s": _ratio(_total(lasted_s[run_table.aborted]), lost),
        "completed_fraction": _ratio(ended, int(run_table.due.sum())),
        "capacity_core_s": alive,
        "useful_core_s": useful,
        "aborted_core_s": aborted,
        "migrations": int((run_table.migrated & run_table.window.holds(run_table.finish_s)).sum()),
        "slowdown_rate": _slowdown_rate(run_table),
        **_kills(run_table, np.full(len(long), True)),
        "goodput_short": _ratio(_total(work[run_table.rewarded & ~long]), alive),
        "goodput_long": _ratio(_total(work[run_table.rewarded & long]), alive),
        **_kills(run_table, ~long, "_short"),
        **_kills(run_table, long, "_long"),
        "mean_wait_short_s": mean_wait_s(run_table, run_table.completed & ~long),
        "mean_wait_long_s": mean_wait_s(run_table, run_table.completed & long),
        "checkpoint_volume": _ratio(_total(_spent(run_table, run_table.checkpoint)), alive),
        "recovery_volume": _ratio(_total(_spent(run_table, run_table.recovery)), alive),
        "checkpoints": int((run_table.checkpoint & run_table.window.holds(run_table.finish_s)).sum()),
        "recoveries": int((run_table.recovery & run_table.window.holds(run_table.finish_s)).sum()),
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


def yields_of(run_table: RunTable) -> Floats:
    """Return the yield of each counted job, in the order of the workload; in [0, 1]."""
    window, submit_s = run_table.window, run_table.declared.submit_s
    since_s = np.maximum(submit_s, window.begin_s)
    there_s = np.fmin(run_table.completed_s, window.end_s) - since_s
    counted = ~run_table.out & (submit_s <= window.end_s - LEAST_S) & (there_s > LAG_S)
    rows = np.flatnonzero(run_table.useful & run_table.in_workload)
    job, work_s = run_table.job[rows], run_table.work_s[rows]
    # sums do not depend on the order of rows
    order = np.lexsort((work_s, job))
    useful_s = np.bincount(job[order], weights=work_s[order], minlength=len(submit_s))
    return np.minimum(useful_s[counted] / there_s[counted], 1.0)


def yield_figures(run_table: RunTable) -> dict[str, float | None]:
    """Return the least and the mean yield, by the names of `figures.METRICS`; None without counted jobs."""
    yields = yields_of(run_table)
    if not len(yields):
        return {"min_yield": None, "mean_yield": None}
    return {"min_yield": float(yields.min()), "mean_yield": _mean(yields)}


def _mean(values: Floats) -> float | None:
    """Return the exact sum, rounded once, over the count: its bytes do not depend on the order of rows."""
    return math.fsum(values.tolist()) / len(values) if len(values) else None
