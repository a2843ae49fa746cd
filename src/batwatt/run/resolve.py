"""The steps from a specification to a run that can begin: needs of the scheduler, inputs, options of the engine."""

from __future__ import annotations

import logging
import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from batwatt.batsim.adapters import HeldArrivals
from batwatt.batsim.batsim4 import EngineConfig
from batwatt.errors import InputError, remark
from batwatt.inputs.convert import has_delay
from batwatt.inputs.load import Needs, RunInputs, load
from batwatt.inputs.platform_files import platform_of
from batwatt.inputs.spec import SeriesSpec, parse_series
from batwatt.model.platform import MachinePower, Platform
from batwatt.model.timeline import Timeline, least_of
from batwatt.model.work import run_times_s
from batwatt.model.workload import ESTIMATE, LENGTH, JobSpec
from batwatt.protocol.events import EVENT_TYPE, refuse_batsim5_events, reported_envelope
from batwatt.run.find_scheduler import (
    SHIFT,
    attribute_errors,
    has_own_shift,
    is_ours,
    load_plugins,
    make_scheduler,
    scheduler_class,
)
from batwatt.run.spec import RunSpec
from batwatt.scheduling.base import EVENTS, Scheduler
from batwatt.scheduling.job import request_s

_log = logging.getLogger(__name__)
LIMITS = {"envelope": "power_w", "capacity": "machines"}
"""Options that are limits over time, and their columns."""


@dataclass(frozen=True)
class ResolvedRun:
    """A run that can begin: specification with the needs of the scheduler, inputs, scheduler, and engine's options."""

    spec: RunSpec
    inputs: RunInputs
    scheduler: Any
    config: EngineConfig
    held: Mapping[str, float] = field(default_factory=dict)
    """Job id -> time in s until which the job is held: the option `shift`."""

    def link(self, link: Any) -> Any:
        """Return the link to an engine that the scheduler sees."""
        return HeldArrivals(link, self.held) if self.held else link


def prepare(spec: RunSpec) -> ResolvedRun:
    """Load plugins, find the scheduler, read the inputs that it needs, and resolve the run. Raises InputError."""
    load_plugins(spec.plugins)
    scheduler = scheduler_class(spec.scheduler)
    needs = needs_of(spec, scheduler)
    read = load(spec.inputs, needs)
    return resolve(spec, scheduler, read)


def check_options(spec: RunSpec) -> None:
    """Raise InputError for options that the scheduler cannot have in a run; neither jobs nor series are read."""
    kind = scheduler_class(spec.scheduler)
    needs = needs_of(spec, kind)
    spec = replace(spec, inputs=needs.applied(spec.inputs))
    inputs, options, follows = spec.inputs, spec.scheduler_options(), _options_of(kind)
    if follows:
        # of watts and machines the run makes one of the other
        limited = inputs.envelope is not None or inputs.capacity is not None
        usual: dict[str, Any] = {name: Timeline((0.0,), (1.0,), unit) for name, unit in LIMITS.items() if limited}
        signal = inputs.carbon or inputs.price
        usual |= {"signal": signal} if signal else {}
        usual |= spec.scheduler_options(platform_of(inputs.platform, inputs.hosts))
        options = {name: value for name, value in usual.items() if name in follows or name in spec.options}
    make_scheduler(spec.scheduler, options if follows else spec.options, kind)


def needs_of(spec: RunSpec, scheduler: type[Any]) -> Needs:
    """Return the needs of a class of schedulers for the reading. Raises InputError if it follows no capacity."""
    follows, inputs = _options_of(scheduler), spec.inputs
    # options that a scheduler does not declare are its own
    options = {name: value for name, value in spec.options.items() if name in follows}
    if inputs.capacity is not None and not {"capacity", "envelope"} & follows.keys():
        problem = f"the scheduler {spec.scheduler_name!r} follows no capacity"
        raise InputError("--capacity", problem, "leave it out, or choose one that does, such as riskaware")
    envelope, option, long_s = (options.get(name) for name in ("envelope", "capacity", "long_s"))
    capacity = None
    if "capacity" in follows and isinstance(option, str | Path) and option:
        capacity = parse_series("machines", option)
        if inputs.capacity is not None and capacity != inputs.capacity:
            problem = f"{str(option)!r} is another one than --capacity {str(inputs.capacity)!r}"
            raise InputError("option 'capacity'", problem, "give one of them")
    of_power = "envelope" in follows and "capacity" not in follows
    named = isinstance(envelope, str | Path | Timeline | SeriesSpec) and envelope not in ("", EVENTS)
    if not isinstance(long_s, int | float) or isinstance(long_s, bool):
        long_s = None
    ours = issubclass(scheduler, Scheduler)
    return Needs(
        speeds=ours and scheduler.needs_speeds,
        power=bool(inputs.envelope or envelope or (of_power and inputs.capacity)),
        machines="capacity" in follows,
        alike_hosts=ours and scheduler.needs_alike_hosts(options),
        envelope=(parse_series("power", envelope) if isinstance(envelope, str | Path) else envelope) if named else None,
        capacity=capacity,
        long_s=float(long_s) if long_s is not None and 0.0 < long_s < math.inf else None,
        shared=is_ours(spec.scheduler),
        simulate=spec.engine != "batsim",
        unknown_events=spec.config.forward_unknown_events or envelope == EVENTS,
    )


def resolve(spec: RunSpec, kind: type[Any], read: RunInputs) -> ResolvedRun:
    """Resolve a run: make its scheduler, of the class `kind`, and the options of the engine. Raises InputError.

    Only files that options of the scheduler name are read here.
    """
    follows = _options_of(kind)
    own_envelope = spec.inputs.envelope is not None and "envelope" in spec.options
    spec = replace(spec, inputs=read.described)
    platform = read.platform
    options = spec.scheduler_options(platform)
    # on the clock of the run, and until it ends
    if read.capacity is not None:
        options["capacity"] = read.capacity
    if read.envelope is not None and not own_envelope:
        options["envelope"] = read.envelope
    inputs = _with_views(spec, kind, read, options)
    for name, signal in (("signal", inputs.carbon), ("price", inputs.price)):
        if signal is not None and name in follows:
            if name in spec.options:
                raise InputError(f"option {name!r}", "is given next to --carbon or --price", "give one of them")
            options[name] = signal
    if "long_s" in follows:
        options.setdefault("long_s", spec.inputs.long_s)
    scheduler = make_scheduler(spec.scheduler, options if follows else spec.options, kind, clock=inputs.clock)
    with attribute_errors(spec.scheduler_name, scheduler):
        # code of the scheduler states its needs
        config = _config_for(spec, scheduler, platform)
    shift = options.get(SHIFT, getattr(getattr(scheduler, "settings", None), SHIFT, None))
    run_times = getattr(scheduler, "run_times", None)
    held = _held(inputs, None if has_own_shift(spec.scheduler, kind) else shift, run_times)
    path = spec.inputs.events
    if path is not None:
        if spec.engine != "batsim":
            refuse_batsim5_events(inputs.events, path)
        reported = reported_envelope(inputs.events, path)
        if _as_events(spec, kind) and reported is None:
            raise InputError(path, f"has no {EVENT_TYPE} event", "make one: batwatt events")
        inputs = replace(inputs, envelope=inputs.envelope or reported)
    # after all checks: an error is one line
    with attribute_errors(spec.scheduler_name, scheduler):
        _remark_delays(inputs, scheduler)
        inputs = _with_requests(inputs, scheduler)
    return ResolvedRun(spec, inputs, scheduler, config, held)


def _held(inputs: RunInputs, shift: Any, run_times: Any) -> Mapping[str, float]:
    """Return the time in s until which each job is held for less carbon or cost. Raises InputError."""
    if shift is None:
        return {}
    signal = inputs.carbon or inputs.price
    if signal is None:
        raise InputError("option 'shift'", "needs a carbon or price signal", "give --carbon or --price")
    from batwatt.shift import held_until

    return held_until(shift, inputs.measured, signal, inputs.platform.fastest_flops, run_times)


def _with_views(spec: RunSpec, scheduler: type[Any], inputs: RunInputs, options: dict[str, Any]) -> RunInputs:
    """Return inputs with the series that a scheduler follows, in W or machines, made of the other; set the option, too.

    Of two series the lesser counts at any time. Raises InputError.
    """
    follows = _options_of(scheduler)
    envelope, capacity = inputs.envelope, inputs.capacity
    if "capacity" in follows and "envelope" not in follows and envelope is not None:
        if scheduler.needs_speeds or (spec.options.get("switch") is False and spec.config.energy is not False):
            problem = f"the scheduler {spec.scheduler_name!r} leaves machines on, which draw power then"
            raise InputError("envelope", problem, "give a capacity in machines, or let it switch them off")
        if spec.config.energy is False:
            options.setdefault("switch", False)
        fed = MachinePower.of(inputs.platform).fed_by(envelope)
        capacity = fed if capacity is None else least_of(capacity, fed)
        options["capacity"] = capacity
        if spec.inputs.window is not None:
            options.setdefault("until_s", spec.inputs.until_s)
    elif "envelope" in follows and "capacity" not in follows and capacity is not None:
        drawn = MachinePower.of(inputs.platform).drawn_by(capacity)
        envelope = drawn if envelope is None else least_of(envelope, drawn)
        options["envelope"] = envelope
    if spec.config.energy is False and {"switch", "envelope"} <= follows.keys():
        options.setdefault("switch", False)
    for name in ("envelope", "capacity", "until_s", "switch") if follows else ():
        if name not in follows and name not in spec.options:
            options.pop(name, None)
    return replace(inputs, envelope=envelope, capacity=capacity)


def _options_of(scheduler: type[Any]) -> Mapping[str, Any]:
    """Return the options of a scheduler of this project; none for one from elsewhere."""
    return scheduler.Options.model_fields if issubclass(scheduler, Scheduler) else {}


def _as_events(spec: RunSpec, scheduler: type[Any]) -> bool:
    """Return whether a scheduler that declares an envelope takes it from external events."""
    return "envelope" in _options_of(scheduler) and spec.options.get("envelope") == EVENTS


def _remark_delays(inputs: RunInputs, scheduler: Any) -> None:
    """Warn of delays that do not slow down under a scheduler that changes speeds, and mark the warning as given."""
    if not isinstance(scheduler, Scheduler) or not scheduler.changes_speeds or inputs.platform.one_speed:
        return
    delays = total = 0
    for workload in inputs.run:
        timed = {name for name, profile in workload.profiles.items() if has_delay(profile, workload.profiles)}
        delays += sum(job.profile in timed for job in workload.jobs)
        total += len(workload.jobs)
    scheduler.delays_reported = True
    if delays:
        text = (
            "%s: %d of %d jobs are delays and do not slow with their hosts: they take as long at any p-state and draw "
            "what idle hosts do; --delays-to-flops makes work of them (docs/explanation/powercap.md)"
        )
        remark(_log, text, inputs.measured.source, delays, total)


def _with_requests(inputs: RunInputs, scheduler: Any) -> RunInputs:
    """Return inputs in which each job of a trace has a request, its exact run time where the trace has none.

    Schedulers from elsewhere only have walltimes: a request becomes one. It limits nothing, but Batsim kills a job at
    its walltime, and a delay that lasts just as long, too: a walltime is at least the next whole second after the run
    time, at the least speed of the hosts.
    """
    ours = isinstance(scheduler, Scheduler)
    if ours and (scheduler.run_times is not None or not (scheduler.fills_requests and scheduler.without_requests())):
        return inputs
    hosts, source = inputs.platform.hosts, inputs.measured.source
    least_flops = min((host.pstates[state].speed_flops for host in hosts for state in host.compute), default=1.0)
    missing = limited = longer = total = 0
    loads = []
    for workload in inputs.run:
        total += len(workload.jobs)
        jobs: dict[int, JobSpec] = {}
        lengths_s, slow_s = (
            run_times_s(workload, speed).tolist() for speed in (inputs.platform.fastest_flops, least_flops)
        )
        for number, (job, length_s, longest_s) in enumerate(zip(workload.jobs, lengths_s, slow_s, strict=True)):
            requested_s, fields, walltime_s = request_s(job.walltime_s, job.raw, job.id), {}, job.walltime_s
            if workload.recorded and requested_s == math.inf and length_s < math.inf:
                missing += 1
                requested_s = fields[ESTIMATE] = job.raw.get(LENGTH, round(length_s, 6))
            if not ours and walltime_s is None and requested_s < math.inf and longest_s < math.inf:
                limited += 1
                longer += longest_s > requested_s
                walltime_s = fields["walltime"] = max(requested_s, math.floor(longest_s) + 1.0)
            if fields:
                jobs[number] = job._replace(walltime_s=walltime_s, raw={**job.raw, **fields})
        if jobs:
            workload = replace(workload, jobs=tuple(jobs.get(at, job) for at, job in enumerate(workload.jobs)))
        loads.append(workload)
    if missing:
        text = "%s: %d of %d jobs request no run time: they are planned by their exact run times (%s)"
        remark(_log, text, source, missing, total, "docs/explanation/run-times.md")
    if longer:
        text = "%s: %d of %d jobs run longer than they request: their walltimes are their run times, so none is killed"
        remark(_log, text, source, longer, total)
    return replace(inputs, simulated=tuple(loads)) if missing or limited else inputs


def _config_for(spec: RunSpec, scheduler: Any, platform: Platform) -> EngineConfig:
    """Return the engine's options, with those that the scheduler needs."""
    config = spec.config
    if config.energy is None:
        config = replace(config, energy=platform.has_power)
    elif not config.energy and isinstance(scheduler, Scheduler) and scheduler.needs_energy:
        problem = f"the scheduler {spec.scheduler_name!r} changes speeds, which Batsim does with energy accounting only"
        raise InputError("--no-energy", problem, "leave it out")
    if isinstance(scheduler, Scheduler) and scheduler.needs_dynamic_jobs:
        config = replace(config, dynamic_jobs=True, profile_reuse=True)
    if _as_events(spec, type(scheduler)):
        if spec.inputs.events is None:
            problem = "the envelope is to come as events but there is no events file"
            raise InputError("--events", problem, "make one: batwatt events")
        config = replace(config, forward_unknown_events=True)
    return config
