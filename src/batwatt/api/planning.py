"""The planners as functions: plain data in, plain data out."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from batwatt.api.inputs import PathLike
from batwatt.api.series import series_or
from batwatt.api.simulation import PlatformLike, SeriesLike, WorkloadLike, platform_arg, workload_arg
from batwatt.errors import InputError
from batwatt.inputs.spec import Quantity, parse_series
from batwatt.model.timeline import Timeline
from batwatt.run.arguments import (
    checked,
    flag,
    function_or_none,
    hosts_of,
    optional,
    path_or_json,
    positive,
    real,
    seed_of,
    text,
    whole,
)
from batwatt.run.result import Result
from batwatt.run.spec import RunSpec

if TYPE_CHECKING:
    from batwatt.schedulers.checkpoint.sequence import Method


@checked(instance=path_or_json, method=text)
def plan_checkpoints(instance: PathLike | Mapping[str, Any], *, method: Method = "dp") -> dict[str, Any]:
    """Plan one period before the number of processors changes: starts, stops, checkpoints and recoveries of jobs.

    Args:
        instance: A JSON file, or its content as a dict: `period_s`, `processors`, `jobs`.
        method: `dp`: the most goodput; `subset-sum`: the most processors at any cost.

    Returns:
        Output of `batwatt plan checkpoint`: goodput, and the assignments of each job with times in s.

    Raises:
        batwatt.errors.InputError: Bad input; jobs that no plan can save in time.
    """
    from batwatt.schedulers.checkpoint.files import instance_of, plan_instance, plan_json, read_instance

    where = "instance" if isinstance(instance, Mapping) else Path(instance)
    period = instance_of(dict(instance), where) if isinstance(instance, Mapping) else read_instance(Path(where))
    return plan_json(plan_instance(period, where, method), period.names)


@checked(
    job=path_or_json,
    deadline_s=real,
    start_s=real,
    carbon_weight=real,
    price_weight=real,
    slot_s=optional(positive),
    checkpoints=flag,
    cpus=hosts_of,
)
def plan_carbon(
    job: PathLike | Mapping[str, Any],
    signal: SeriesLike,
    *,
    deadline_s: float,
    start_s: float = 0.0,
    price: SeriesLike | None = None,
    carbon_weight: float = 1.0,
    price_weight: float = 0.0,
    slot_s: float | None = None,
    checkpoints: bool = False,
    cpus: int = 1,
) -> dict[str, Any]:
    """Plan when one job runs and is suspended so that it emits least, each start-up paid.

    Args:
        job: Start-up and work of the job in phases: a JSON file, or its content as a dict.
        signal: Carbon intensity in g/kWh, as `carbon` of `simulate`. Times are s from its first row.
        deadline_s: Latest end of the job.
        start_s: Earliest start of the job.
        price: Price per kWh, as for `simulate`; if both have dates, from the date at which the signal begins.
        carbon_weight: Weight of a g of carbon.
        price_weight: Weight of a unit of money.
        slot_s: Times are multiples of this, in s. Default: chosen by the planner.
        checkpoints: Suspend only where a phase saves all.
        cpus: Cpus of the job.

    Returns:
        Output of `batwatt plan carbon`: emissions, energy, cost, and segments with times in s.

    Raises:
        batwatt.errors.InputError: Bad input; no plan ends by the deadline.
    """
    from batwatt.inputs.batsim_files import read_model
    from batwatt.inputs.series import on_clock
    from batwatt.model.signal import Clock
    from batwatt.protocol.job_fields import model_of
    from batwatt.schedulers.carbon.optimum import plan_job

    model = model_of(dict(job), "job") if isinstance(job, Mapping) else read_model(Path(job))
    carbon = _integral("carbon", "signal", signal)
    cost = None if price is None else _integral("price", "price", price)
    if cost is not None and carbon.date_s is not None:
        cost = on_clock(cost, Clock(carbon.date_s, last_s=deadline_s, end_s=deadline_s))
    weights = carbon_weight, price_weight
    limits = {"slot_s": slot_s, "checkpoints": checkpoints}
    return plan_job(model, carbon, cost, weights, (start_s, deadline_s), cpus, limits)


@checked(
    time_limit_s=optional(positive), effort=optional(partial(whole, low=1)), seed=seed_of, progress=function_or_none
)
def optimum(
    platform: PlatformLike,
    workload: WorkloadLike,
    envelope: SeriesLike,
    *,
    time_limit_s: float | None = None,
    effort: int | None = None,
    seed: int = 0,
    progress: Callable[[Any], None] | None = None,
) -> Result:
    """Plan with full knowledge of envelope and jobs: least mean slowdown without violation or kill, and a lower bound.

    Args:
        platform: As for `simulate`.
        workload: As for `simulate`.
        envelope: As for `simulate`.
        time_limit_s: Time of the search, s. Default: 600.
        effort: Work of the search in place of its time (about 1 s each), with the same result always.
        seed: Seed of the search.
        progress: Function of the state of the search, called as it improves.

    Returns:
        A `Result` of the plan, replayed on the embedded engine, whose metrics have `lower_bound`, `gap` and
        `proven_optimal`, too.

    Raises:
        batwatt.errors.InputError: Bad input; a job that can never run under the envelope.
    """
    from batwatt.studies.optimum import plan_and_replay

    limits = {"time_limit_s": time_limit_s, "effort": effort}
    spec = RunSpec(
        platform=platform_arg(platform),
        workloads=(workload_arg(workload),),
        scheduler="optimum",
        options={name: value for name, value in limits.items() if value is not None} | {"seed": seed},
        envelope=series_or("envelope", envelope),
    )
    return plan_and_replay(spec, progress or (lambda state: None))


def _integral(kind: Quantity, name: str, value: SeriesLike) -> Timeline:
    signal = series_or(name, value, kind)
    if signal is None:
        raise InputError(name, "is missing", "give a file or a signal")
    integral: Timeline = signal if isinstance(signal, Timeline) else parse_series(kind, signal).timeline()
    return integral
