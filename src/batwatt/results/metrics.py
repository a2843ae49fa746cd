"""Compute the figures of a run: those of section VII-A of the powercap paper and those that explain them.

`goodput.py` computes the figures of a run on machines that come and go.
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
from batwatt.model.signal import Window
from batwatt.model.timeline import Timeline
from batwatt.model.work import flops_of
from batwatt.model.workload import LONG_S, Workload
from batwatt.results.figures import METRICS, Values, rounded
from batwatt.results.goodput import goodput_figures
from batwatt.results.origins import Origins
from batwatt.results.parts import Chains, Floats, Mask
from batwatt.results.power import compare, power_series, step_bounds, weighted
from batwatt.results.run_files import FAILED, KILLED, REJECTED, SUCCESSFUL, WALLTIME, RunData, file_of, numbers, texts
from batwatt.results.run_table import RunTable, job_rows_of, run_table_of
from batwatt.results.slowdowns import slowdown_figures
from batwatt.units import REPORTED_S

LATENESS_S = 1.0
"""Largest time from the last row of the file of energies to the end of the last job."""


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
) -> tuple[Values, RunTable | None]:
    """Return the figures of a run, or of files under a prefix, and the table of its rows if it had a capacity.

    Figures that need what is missing are left out: of power a file of energies, the envelope or a signal, those of
    `goodput.py` a capacity.

    `envelope` is the cap in W, `reference_flops` the full speed in flop/s, at which the work of a delay is counted,
    `capacity` the machines of `cores` cores that are alive; jobs of more than `long_s` s are long; `signals`: g or
    money per kWh, by figure. A job that was resubmitted waits from its first submission. A
    run that ends after the window counts as unfinished and in no other number of jobs, whatever its state. Raises
    InputError if the files are missing, malformed or of another workload.
    """
    data = run if isinstance(run, RunData) else RunData(run)
    rows = job_rows_of(data, workload, window)
    jobs, origins, kinds, chains, beyond = rows.jobs, rows.origins, rows.kinds, rows.chains, rows.beyond
    state, finish_s = texts(jobs, "final_state"), numbers(jobs, "finish_time")
    successful = (state == SUCCESSFUL) & ~(beyond | kinds.saved | kinds.overhead)
    makespan_s = float(np.nanmax(finish_s)) if not np.isnan(finish_s).all() else 0.0
    count = Counter(state[~(beyond | kinds.migrated | kinds.saved | kinds.overhead)].tolist())
    figures: dict[str, float | int | None] = {}
    if data.energy is not None:
        figures.update(_energy(data, envelope, makespan_s, signals))
    if not (reference_flops > 0.0 and math.isfinite(reference_flops)):
        raise ValueError(f"reference_flops must be > 0 and finite, got {reference_flops!r}")
    run_table = run_table_of(rows, workload, window, reference_flops)
    if capacity is not None:
        figures.update(goodput_figures(run_table, capacity, cores, long_s))
    figures.update(slowdown_figures(run_table))
    run_s = run_table.expected_s
    lasting = successful & (run_s >= REPORTED_S)
    stretches = chains.execution_s[lasting] / run_s[lasting]
    figures |= {
        "mean_slowdown": _mean_slowdown(finish_s, chains, origins, successful),
        "mean_run_time_stretch": float(np.mean(stretches)) if len(stretches) else None,
        "jobs_finished": int(successful.sum()),
        "killed_power": count[KILLED],
        "killed_walltime": count[WALLTIME],
        "finished_work_fraction": _work_fraction(workload, origins, successful, reference_flops),
        "jobs_total": len(workload.jobs),
        "jobs_rejected": count[REJECTED],
        "jobs_failed": count[FAILED],
        "jobs_unfinished": int(rows.waited_or_ran.sum()),
        "resubmissions": int((~origins.itself & ~kinds.overhead).sum()),
        "makespan_s": makespan_s,
    }
    if envelope is not None:
        figures["steps"] = step_bounds(envelope, makespan_s)[2]
    for name, value in figures.items():
        if value is not None and not math.isfinite(value):
            raise ValueError(f"{name} must be finite or None, got {value!r}")
    return figures, None if capacity is None else run_table


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


def _mean_slowdown(finish_s: Floats, chains: Chains, origins: Origins, successful: Mask) -> float | None:
    """Return the mean of (waiting + execution) / execution; Eq. 6 of the powercap paper, as a mean. None without jobs.

    A job that runs in parts also waits between them (see `Chains`).
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
    """Return the share of the workload's flops in successful jobs; None without flops or with an unknown profile."""
    jobs = np.unique(origins.job[successful & origins.in_workload])
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
