"""What a run is worth: the figures of section VII-A of the powercap paper and those that explain them.

Those of a run on machines that come and go are worked out in `goodput.py`.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping
from dataclasses import MISSING, asdict, dataclass, field, fields
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np

from batwatt.errors import InputError
from batwatt.files import write_json
from batwatt.model.series import Series
from batwatt.model.signal_integral import SignalIntegral
from batwatt.model.window import Window
from batwatt.model.workload import LONG_S, Workload
from batwatt.results.columns import FAILED, KILLED, REJECTED, SUCCESSFUL, WALLTIME
from batwatt.results.goodput import goodput_figures
from batwatt.results.origins import Origins
from batwatt.results.parts import Chains, Floats, Mask
from batwatt.results.power import compare, power_series, step_bounds, weighted
from batwatt.results.run_data import RunData, numbers, texts
from batwatt.results.run_table import RunTable, job_rows_of, run_table_of
from batwatt.results.slowdowns import BOUND_S, slowdown_figures
from batwatt.results.work import flops_of, full_speed_s
from batwatt.results.writers import file_of
from batwatt.units import REPORTED_S

LATENESS_S = 1.0
"""How much before the end of the last job the file of energies may end."""


@dataclass(frozen=True, slots=True)
class Metric:
    """What a figure means; `better` is `lower`, `higher` or empty where neither is."""

    name: str
    unit: str
    meaning: str
    better: str = ""


Real = float | None
Whole = int | None


def _maybe(unit: str, meaning: str, better: str = "", default: Any = None) -> Any:
    return field(default=default, metadata={"unit": unit, "meaning": meaning, "better": better})


_metric = partial(_maybe, default=MISSING)


@dataclass(frozen=True, slots=True, kw_only=True)
class Metrics:
    """Every figure of a run, in the order in which it is written; None where one has no meaning (no jobs, ...)."""

    mean_slowdown: Real = _maybe("", "mean of turnaround time / execution time over the successful jobs", "lower")
    mean_bounded_slowdown: Real = _maybe(
        "",
        f"mean of max(1, (end - release) / max({BOUND_S:g} s, run time at full speed)) over the jobs that completed",
        "lower",
    )
    mean_full_speed_slowdown: Real = _maybe(
        "", "mean of (end - release) / run time at full speed over the jobs that completed", "lower"
    )
    max_full_speed_slowdown: Real = _maybe(
        "", "largest (end - release) / run time at full speed over the jobs that completed", "lower"
    )
    mean_run_time_stretch: Real = _maybe(
        "", "mean of run time / run time at full speed over the successful jobs", "lower"
    )
    mean_wait_s: Real = _maybe("s", "mean from the first submission to the start of the run that completed", "lower")
    p95_wait_s: Real = _maybe("s", "95 % of the jobs that completed waited no longer", "lower")
    jobs_finished: int = _metric("jobs", "jobs that completed successfully", "higher")
    killed_power: int = _metric("jobs", "runs of a job that the scheduler killed (for lack of power)", "lower")
    killed_walltime: int = _metric("jobs", "runs of a job that reached their walltime", "lower")
    violations: Whole = _maybe(
        "steps", "steps of the envelope in which the power is above the cap at some time", "lower"
    )
    finished_work_fraction: Real = _maybe("", "flops of the successful jobs / flops of all jobs", "higher")
    energy_j: Real = _maybe("J", "energy of all hosts from 0 to the end of the last job")
    energy_above_cap_j: Real = _maybe("J", "energy drawn above the cap until the end of the last job", "lower")
    unused_j: Real = _maybe("J", "energy that the cap allowed and no host drew until the end of the last job", "lower")
    jobs_total: int = _metric("jobs", "jobs of the workload")
    jobs_rejected: int = _metric("jobs", "jobs that were refused", "lower")
    jobs_failed: int = _metric("jobs", "runs of a job that ended with an error code", "lower")
    resubmissions: int = _metric("jobs", "jobs submitted again by the scheduler")
    steps: Whole = _maybe("steps", "steps of the envelope until the end of the last job")
    makespan_s: float = _metric("s", "end of the last job", "lower")
    max_power_w: Real = _maybe("W", "largest power until the end of the last job", "lower")
    carbon_g: Real = _maybe("g", "carbon of the energy of all hosts, at the carbon signal", "lower")
    cost: Real = _maybe("", "cost of the energy of all hosts, at the price", "lower")
    jobs_unfinished: int = _metric("jobs", "jobs that waited or ran when the window ended", "lower", default=0)
    goodput: Real = _maybe("", "useful / available core seconds of the window", "higher")
    aborted_volume: Real = _maybe("", "aborted / available core seconds of the window", "lower")
    mean_aborted_time_s: Real = _maybe("s", "mean time lost to a kill in the window", "lower")
    completed_fraction: Real = _maybe("", "jobs that completed in the window / jobs submitted by its end", "higher")
    capacity_core_s: Real = _maybe("core s", "available core seconds: cores of the machines alive, over the window")
    useful_core_s: Real = _maybe("core s", "core seconds of the runs that completed or were still going", "higher")
    aborted_core_s: Real = _maybe("core s", "core seconds of the runs that the scheduler killed", "lower")
    job_failure_rate: Real = _maybe("", "runs killed / (those + runs completed) in the window", "lower")
    terminations: Whole = _maybe("runs", "runs that the scheduler killed in the window", "lower")
    migrations: Whole = _maybe("runs", "runs that were interrupted in the window to go on elsewhere")
    slowdown_rate: Real = _maybe("", "fraction of the completed runs that took longer than the workload says", "lower")
    goodput_short: Real = _maybe("", "the part of goodput that is of short jobs", "higher")
    goodput_long: Real = _maybe("", "the part of goodput that is of long jobs", "higher")
    job_failure_rate_short: Real = _maybe("", "job_failure_rate of short jobs", "lower")
    job_failure_rate_long: Real = _maybe("", "job_failure_rate of long jobs", "lower")
    mean_wait_short_s: Real = _maybe("s", "mean_wait_s of short jobs", "lower")
    mean_wait_long_s: Real = _maybe("s", "mean_wait_s of long jobs", "lower")
    terminations_short: Whole = _maybe("runs", "terminations of short jobs", "lower")
    terminations_long: Whole = _maybe("runs", "terminations of long jobs", "lower")
    checkpoint_volume: Real = _maybe("", "core seconds of checkpoints / available ones of the window", "lower")
    recovery_volume: Real = _maybe("", "core seconds of recoveries from checkpoints / available ones", "lower")
    checkpoints: Whole = _maybe("", "checkpoints that ended in the window")
    recoveries: Whole = _maybe("", "recoveries that ended in the window")
    min_yield: Real = _maybe(
        "", "least useful time in the window / time from submission to completion or end", "higher"
    )
    mean_yield: Real = _maybe("", "mean of the same over the jobs", "higher")

    def __post_init__(self) -> None:
        for metric in METRICS:
            value = getattr(self, metric.name)
            if value is not None and not math.isfinite(value):
                raise ValueError(f"{metric.name} must be finite or None, got {value!r}")

    def as_dict(self) -> dict[str, float | int | None]:
        """Name -> value in the order of `METRICS`, rounded to the 6 decimals of the files they come from."""
        values = asdict(self)
        return {name: round(value, 6) if isinstance(value, float) else value for name, value in values.items()}


METRICS = tuple(Metric(name=figure.name, **figure.metadata) for figure in fields(Metrics))
"""What each of them means."""
MEANINGS = {metric.name: metric.meaning for metric in METRICS}


def measured(
    run: Path | str | RunData,
    workload: Workload,
    envelope: Series | None,
    reference_flops: float,
    *,
    capacity: Series | None = None,
    cores: int = 1,
    window: Window | None = None,
    long_s: float = LONG_S,
    slowed: bool = False,
    signals: Mapping[str, SignalIntegral] = MappingProxyType({}),
) -> tuple[Metrics, RunTable | None]:
    """The figures of a run, or of the one whose files have a prefix, and what became of its rows if it had a capacity.

    `envelope` is the cap in W, `reference_flops` the full speed in flop/s, at which the work of a delay is counted,
    `capacity` the machines of `cores` cores that are alive; jobs of more than `long_s` s are long; `slowed` as in
    `RunTable`; `signals`: g or money per kWh, by figure. Without a file of energies all that follows from power is
    None, without a capacity all of `goodput.py`. A job that was resubmitted waits from its first submission. A run that
    ends after the window is unfinished, whatever its state: it counts as such and in no other number of jobs. Raises
    InputError if the files are missing, malformed or of another workload.
    """
    data = run if isinstance(run, RunData) else RunData(run)
    found = job_rows_of(data, workload, window)
    jobs, origins, kinds, chains, beyond = found.jobs, found.origins, found.kinds, found.chains, found.beyond
    state, finish_s = texts(jobs, "final_state"), numbers(jobs, "finish_time")
    successful = (state == SUCCESSFUL) & ~(beyond | kinds.saved | kinds.overhead)
    makespan_s = float(np.nanmax(finish_s)) if not np.isnan(finish_s).all() else 0.0
    count = Counter(state[~(beyond | kinds.migrated | kinds.saved | kinds.overhead)].tolist())
    figures: dict[str, float | int | None] = dict.fromkeys(
        ("violations", "energy_j", "energy_above_cap_j", "unused_j", "max_power_w", "carbon_g", "cost")
    )
    if data.energy is not None:
        figures.update(_energy(data, envelope, makespan_s, signals))
    run_table = run_table_of(found, workload, window, slowed)
    if capacity is not None:
        figures.update(goodput_figures(run_table, capacity, cores, long_s))
    if not (reference_flops > 0.0 and math.isfinite(reference_flops)):
        raise ValueError(f"reference_flops must be > 0 and finite, got {reference_flops!r}")
    figures.update(slowdown_figures(run_table, workload, reference_flops))
    run_s = full_speed_s(workload, reference_flops, origins, chains)
    lasting = successful & (run_s >= REPORTED_S)
    metrics = Metrics(
        mean_slowdown=_mean_slowdown(finish_s, chains, origins, successful),
        mean_run_time_stretch=float(np.mean(chains.execution_s[lasting] / run_s[lasting])) if lasting.any() else None,
        jobs_finished=int(successful.sum()),
        killed_power=count[KILLED],
        killed_walltime=count[WALLTIME],
        finished_work_fraction=_work_fraction(workload, origins, successful, reference_flops),
        jobs_total=len(workload.jobs),
        jobs_rejected=count[REJECTED],
        jobs_failed=count[FAILED],
        jobs_unfinished=int(found.waited_or_ran.sum()),
        resubmissions=int((~origins.itself & ~kinds.overhead).sum()),
        steps=None if envelope is None else step_bounds(envelope, makespan_s)[2],
        makespan_s=makespan_s,
        **figures,  # type: ignore[arg-type]
    )
    return metrics, None if capacity is None else run_table


def write_metrics(prefix: Path | str, metrics: Metrics) -> Path:
    """Write `PREFIX_metrics.json` in the order of `METRICS`; returns its path. Raises InputError."""
    path = file_of(prefix, "metrics", ".json")
    write_json(path, metrics.as_dict())
    return path


def _mean_slowdown(finish_s: Floats, chains: Chains, origins: Origins, successful: Mask) -> float | None:
    """Mean of (waiting + execution) / execution; Eq. 6 of the powercap paper, as a mean. None without jobs.

    A job that runs in parts waits between them, too (see `Chains`).
    """
    if not successful.any():
        return None
    stood_s = np.where(chains.several, finish_s - chains.start_s - chains.execution_s, 0.0)
    waiting = (chains.start_s + stood_s - origins.submit_s)[successful]
    execution = chains.execution_s[successful]
    ran = execution > 0.0
    return float(np.mean((waiting[ran] + execution[ran]) / execution[ran])) if ran.any() else None


def _work_fraction(
    workload: Workload, origins: Origins, successful: np.ndarray, reference_flops: float
) -> float | None:
    """Share of the workload's flops that successful jobs did; None if it has none or a profile is not known."""
    done = np.unique(origins.job[successful & origins.known])
    flops = flops_of(workload, reference_flops)
    total = math.fsum(flops.tolist())
    return min(1.0, math.fsum(flops[done].tolist()) / total) if total > 0.0 else None


def _energy(
    data: RunData, envelope: Series | None, end_s: float, signals: Mapping[str, SignalIntegral]
) -> dict[str, float | int | None]:
    """The figures that follow from the power over [0, end_s]."""
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
