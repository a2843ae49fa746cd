"""A run that can begin: the inputs that its scheduler and its engine need, on one clock, and both of these."""

from __future__ import annotations

import logging
import math
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any, Self

from batwatt.batsim.adapters import HeldArrivals
from batwatt.batsim.batsim4 import EngineConfig
from batwatt.errors import InputError, argument, remark
from batwatt.inputs.batsim_files import read_events
from batwatt.inputs.clock import clock_of, tell
from batwatt.inputs.convert import has_delay, workload_with_flops
from batwatt.inputs.jobs import SECONDS
from batwatt.inputs.load import (
    BEYOND_S,
    cached_trace,
    capacity_of,
    check_ends,
    envelope_of,
    is_trace,
    json_workloads,
    last_end_s,
    machines_of,
    signal_of,
    windowed,
)
from batwatt.inputs.platform_files import all_hosts, platform_of
from batwatt.inputs.spec import SeriesSpec, parse_series
from batwatt.model.platform import MachinePower, MachineSpec, Platform, SpeedMachineSpec
from batwatt.model.signal import Clock
from batwatt.model.timeline import Timeline, least_of
from batwatt.model.work import run_times_s
from batwatt.model.workload import ESTIMATE, LENGTH, LONG_S, JobSpec, Workload, merged
from batwatt.protocol.events import EVENT_TYPE, TimedEvent, refuse_batsim5_events, reported_envelope
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
from batwatt.scheduling.capacity import CapacityScheduler, machines_fed
from batwatt.scheduling.job import request_s

_log = logging.getLogger(__name__)
LIMITS = {"envelope": "power_w", "capacity": "machines"}
"""Options that are limits over time, and their columns."""
Kind = type[Any] | None
"""Class of a scheduler; None for figures without one."""


@dataclass(frozen=True)
class PreparedRun:
    """A run whose inputs are read; it can begin once it has a scheduler and the options of the engine.

    `spec` has the options of the scheduler that are inputs. `work_flops` is the speed in flop/s that turned delays into
    work, or None: then `simulated` are the workloads of the run, `workloads` those of its figures. `cores` is the
    number of hosts of a machine, `held` maps a job to the time in s until which it is held: the option `shift`.
    """

    spec: RunSpec
    platform: Platform
    workloads: tuple[Workload, ...]
    envelope: Timeline | None
    capacity: Timeline | None
    cores: int
    work_flops: float | None = None
    simulated: tuple[Workload, ...] = ()
    carbon: Timeline | None = None
    price: Timeline | None = None
    events: tuple[TimedEvent, ...] = ()
    clock: Clock | None = None
    """The clock with the date of 0 s; None if no input states it."""
    ends: Mapping[str, float] = field(default_factory=dict)
    """Ends in s of the parts of the envelope and of the capacity that end, by their sources."""
    scheduler: Any = None
    config: EngineConfig = field(default_factory=EngineConfig)
    held: Mapping[str, float] = field(default_factory=dict)

    @classmethod
    def of(cls, spec: RunSpec) -> Self:
        """Load plugins, find the scheduler, read the inputs that it needs, and make it. Raises InputError."""
        load_plugins(spec.plugins)
        kind = scheduler_class(spec.scheduler)
        # the scheduler follows its own, the figures the run's
        own_envelope = spec.envelope is not None and "envelope" in spec.options
        return cls.read(spec, kind)._scheduled(kind, own_envelope)

    @classmethod
    def read(cls, spec: RunSpec, kind: Kind = None) -> Self:
        """Read all inputs of a run under a scheduler of the class `kind`. Raises InputError."""
        spec = with_own_inputs(spec, kind)
        # a real Batsim runs profiles that the embedded engine does not
        simulate = spec.engine != "batsim" and spec.scheduler is not None
        shared = spec.scheduler is None or is_ours(spec.scheduler)
        everything = all_hosts(spec.platform, spec.hosts.master)
        loads = json_workloads(spec.workloads, spec.hosts, spec.ignore_communication, shared, simulate)
        platform = spec.hosts.of(everything, max((load.nb_res for load in loads), default=None))
        for ignored in platform.not_simulated if simulate else ():
            _log.warning("%s: the embedded engine ignores %s", platform.source, ignored)
        machines = machines_of(platform)
        first, begin_s = spec.workloads[0], None
        if spec.delays_to_flops is None and is_trace(first) and _keeps_delays(spec, kind, platform):
            spec = replace(spec, delays_to_flops=False)
        if isinstance(first, Path) and is_trace(first):
            read = cached_trace if shared else windowed
            loads = [read(first, spec.window, len(platform), spec.length_unit, spec.log)]
        elif SECONDS[spec.length_unit] != 1.0:
            raise InputError(argument("unit"), "is for traces of jobs: Batsim's JSON is in s", "leave it out")
        elif spec.log.of_log:
            raise InputError(
                f"{argument('fields')}, {argument('width')}", "are for job logs, not Batsim's JSON", "leave them out"
            )
        else:
            begin_s = spec.log.date(loads[0].source)
        last_s = max(load.last_submission_s for load in loads)
        clock = clock_of(loads, begin_s, (spec.envelope, spec.capacity, spec.carbon, spec.price))
        if spec.envelope is not None or spec.capacity is not None:
            for load in loads:
                check_ends(load, platform.fastest_flops)
        capacity = None if spec.capacity is None else capacity_of(spec.capacity, len(machines), last_s, clock)
        envelope = None if spec.envelope is None else envelope_of(spec.envelope, platform, last_s, clock)
        work_flops = _work_flops(spec, kind, platform)
        carbon, price = (signal_of(signal, last_s, clock) for signal in (spec.carbon, spec.price))
        tell(clock)
        parts = [one for one in (capacity, envelope) if one is not None]
        if isinstance(spec.envelope, SeriesSpec) and not (spec.envelope.battery or spec.envelope.is_in_seconds):
            full_w = platform.full_w if platform.has_power else None
            parts[-1:] = spec.envelope.parts(clock, 2.0 * last_s + BEYOND_S, full_w)
        ends = {part.source: part.end_s for part in parts if part.loop is None}
        _tell_ends(ends, loads, platform.fastest_flops)
        unknown = spec.config.forward_unknown_events or _own_options(spec, kind).get("envelope") == EVENTS
        return cls(
            spec=spec,
            platform=platform,
            workloads=tuple(loads),
            envelope=envelope,
            capacity=capacity,
            cores=max(machines.values()),
            work_flops=work_flops,
            simulated=() if work_flops is None else tuple(workload_with_flops(load, work_flops) for load in loads),
            carbon=carbon,
            price=price,
            events=read_events(spec.events, unknown, len(platform)) if spec.events is not None else (),
            clock=clock,
            ends=ends,
            config=spec.config,
        )

    def _scheduled(self, kind: type[Any], own_envelope: bool) -> Self:
        """Return the run with its scheduler, and with the options of the engine. Raises InputError.

        Only files that options of the scheduler name are read here.
        """
        spec, follows = self.spec, _options_of(kind)
        run, options = self._with_views(kind, own_envelope)
        for name, signal in (("signal", run.carbon), ("price", run.price)):
            if signal is not None and name in follows:
                if name in spec.options:
                    problem = f"is given next to {argument('carbon')} or {argument('price')}"
                    raise InputError(f"option {name!r}", problem, "give one of them")
                options[name] = signal
        if "long_s" in follows:
            options.setdefault("long_s", spec.long_s)
        options = options if follows else dict(spec.options)
        scheduler = make_scheduler(spec.scheduler, options, kind, clock=run.clock)
        with attribute_errors(spec.scheduler_name, scheduler):
            # code of the scheduler states its needs
            config = _config_for(spec, scheduler, run.platform)
        shift = options.get(SHIFT, getattr(getattr(scheduler, "settings", None), SHIFT, None))
        held = run._held(None if has_own_shift(spec.scheduler, kind) else shift, getattr(scheduler, "run_times", None))
        run = replace(run, scheduler=scheduler, config=config, held=held)
        if spec.events is not None:
            if spec.engine != "batsim":
                refuse_batsim5_events(run.events, spec.events)
            reported = reported_envelope(run.events, spec.events)
            if _as_events(spec, kind) and reported is None:
                raise InputError(spec.events, f"has no {EVENT_TYPE} event", "make one: batwatt convert --to events")
            run = replace(run, envelope=run.envelope or reported)
        # after all checks: an error is one line
        with attribute_errors(spec.scheduler_name, scheduler):
            run._remark_delays()
            return run._with_requests()

    @property
    def signals(self) -> dict[str, Timeline]:
        """The signals by the figures that use them."""
        signals = {"carbon_g": self.carbon, "cost": self.price}
        return {name: signal for name, signal in signals.items() if signal is not None}

    @property
    def full_flops(self) -> float:
        """Full speed of a core in flop/s: the one that turned delays into work, else that of the fastest host."""
        return self.work_flops or self.platform.fastest_flops

    @property
    def engine_workloads(self) -> list[Workload]:
        """The workloads that the engine runs."""
        return list(self.simulated or self.workloads)

    @property
    def measured(self) -> Workload:
        """All jobs, for the figures of the run."""
        return merged(list(self.workloads))

    def link(self, link: Any) -> Any:
        """Return the link to an engine that the scheduler sees."""
        return HeldArrivals(link, self.held) if self.held else link

    def _held(self, shift: Any, run_times: Any) -> Mapping[str, float]:
        """Return the time in s until which each job is held for less carbon or cost. Raises InputError."""
        if shift is None:
            return {}
        signal = self.carbon or self.price
        if signal is None:
            raise InputError(
                "option 'shift'", "needs a carbon or price signal", f"give {argument('carbon')} or {argument('price')}"
            )
        from batwatt.shift import held_until

        return held_until(shift, self.measured, signal, self.platform.fastest_flops, run_times)

    def _with_views(self, kind: type[Any], own_envelope: bool) -> tuple[Self, dict[str, Any]]:
        """Return the run and the options of its scheduler, with the series that it follows, in W or machines.

        One is made of the other; of two series the lesser counts at any time. Raises InputError.
        """
        spec, follows = self.spec, _options_of(kind)
        options = _options_with_inputs(spec, self.platform)
        envelope, capacity = self._followed, self.capacity
        # on the clock of the run, and until it ends
        if capacity is not None:
            options["capacity"] = capacity
        if envelope is not None and not own_envelope:
            options["envelope"] = envelope
        if _of_machines(kind) and envelope is not None:
            if kind.needs_speeds or (spec.options.get("switch") is False and spec.config.energy is not False):
                problem = f"the scheduler {spec.scheduler_name!r} leaves machines on, which draw power then"
                raise InputError("envelope", problem, "give a capacity in machines, or let it switch them off")
            if spec.config.energy is False:
                options.setdefault("switch", False)
            capacity = machines_fed(capacity, envelope, self.platform, 0)
            options["capacity"] = capacity
            options.pop("envelope", None)
            if spec.window is not None:
                options.setdefault("until_s", spec.until_s)
        elif "envelope" in follows and "capacity" not in follows and capacity is not None:
            drawn = MachinePower.of(self.platform).drawn_by(capacity)
            envelope = drawn if envelope is None else least_of(envelope, drawn)
            options["envelope"] = envelope
        if spec.config.energy is False and {"switch", "envelope"} <= follows.keys():
            options.setdefault("switch", False)
        for name in ("envelope", "capacity", "until_s", "switch") if follows else ():
            if name not in follows and name not in spec.options:
                options.pop(name, None)
        # figures are against the envelope, whatever the scheduler follows
        return replace(
            self, envelope=envelope if spec.follow == "envelope" else self.envelope, capacity=capacity
        ), options

    @property
    def _followed(self) -> Timeline | None:
        """Power in W that the scheduler follows: the envelope, its mean while jobs are submitted, or no limit.

        The mean is over the rows of the envelope if all jobs are submitted at 0 s.
        """
        envelope, follow = self.envelope, self.spec.follow
        if envelope is None or follow == "envelope":
            return envelope
        if follow == "none":
            power = MachinePower.of(self.platform)
            return Timeline((0.0,), (power.machines * power.full_w,), envelope.name, "no limit")
        end_s = self.measured.last_submission_s or envelope.end_s
        return Timeline((0.0,), (envelope.mean_until(end_s),), envelope.name, f"mean of {envelope.source}")

    def _remark_delays(self) -> None:
        """Warn of delays that do not slow down under a scheduler that changes speeds, and mark the warning as given."""
        scheduler = self.scheduler
        if not isinstance(scheduler, Scheduler) or not scheduler.changes_speeds or self.platform.one_speed:
            return
        delays = total = 0
        for workload in self.engine_workloads:
            timed = {name for name, profile in workload.profiles.items() if has_delay(profile, workload.profiles)}
            delays += sum(job.profile in timed for job in workload.jobs)
            total += len(workload.jobs)
        scheduler.delays_reported = True
        if delays:
            text = (
                "%s: %d of %d jobs are delays and do not slow with their hosts: they take as long at any p-state and "
                "draw what idle hosts do; %s makes work of them (docs/explanation/powercap.md)"
            )
            remark(_log, text, self.measured.source, delays, total, argument("delays_to_flops", True))

    def _with_requests(self) -> Self:
        """Return the run in which each job of a trace has a request, its exact run time where the trace has none.

        Schedulers from elsewhere only have walltimes: a request becomes one. It limits nothing, but Batsim kills a job
        at its walltime, and a delay that lasts just as long, too: a walltime is at least the next whole second after
        the run time, at the least speed of the hosts.
        """
        scheduler, ours = self.scheduler, isinstance(self.scheduler, Scheduler)
        if ours and (
            scheduler.run_times is not None or not (scheduler.fills_requests and scheduler.without_requests())
        ):
            return self
        hosts, source = self.platform.hosts, self.measured.source
        least_flops = min((host.pstates[state].speed_flops for host in hosts for state in host.compute), default=1.0)
        missing = limited = longer = total = 0
        loads = []
        for workload in self.engine_workloads:
            total += len(workload.jobs)
            if ours and not workload.recorded:
                loads.append(workload)
                continue
            jobs: dict[int, JobSpec] = {}
            lengths_s, slow_s = (
                run_times_s(workload, speed).tolist() for speed in (self.platform.fastest_flops, least_flops)
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
            text = (
                "%s: %d of %d jobs run longer than they request: their walltimes are their run times, so none is killed"
            )
            remark(_log, text, source, longer, total)
        return replace(self, simulated=tuple(loads)) if missing or limited else self


def with_own_inputs(spec: RunSpec, kind: Kind) -> RunSpec:
    """Return the specification with the envelope, the capacity and the length of long jobs that options name.

    Machines have the speeds that the class of the scheduler needs. Raises InputError if it follows no capacity.
    """
    if kind is None:
        return spec
    follows, options = _options_of(kind), _own_options(spec, kind)
    if spec.capacity is not None and not {"capacity", "envelope"} & follows.keys():
        problem = f"the scheduler {spec.scheduler_name!r} follows no capacity"
        raise InputError(argument("capacity"), problem, "leave it out, or choose one that does, such as riskaware")
    envelope, capacity, long_s = (options.get(name) for name in ("envelope", "capacity", "long_s"))
    if "capacity" in follows and isinstance(capacity, str | Path) and capacity:
        own = parse_series("machines", capacity)
        if spec.capacity is not None and own != spec.capacity:
            problem = f"{str(capacity)!r} is another one than {argument('capacity', repr(str(spec.capacity)))}"
            raise InputError("option 'capacity'", problem, "give one of them")
        spec = replace(spec, capacity=own)
    if isinstance(envelope, str | Path | Timeline | SeriesSpec) and envelope not in ("", EVENTS):
        named: Any = envelope
        spec = spec if spec.envelope is not None else replace(spec, envelope=named)
    if isinstance(long_s, int | float) and not isinstance(long_s, bool) and 0.0 < long_s < math.inf:
        spec = replace(spec, long_s=float(long_s)) if spec.long_s == LONG_S else spec
    if not (issubclass(kind, Scheduler) and kind.needs_speeds):
        return spec
    platform = spec.platform
    if isinstance(platform, MachineSpec) and not isinstance(platform, SpeedMachineSpec):
        platform = SpeedMachineSpec(**{entry.name: getattr(platform, entry.name) for entry in fields(platform)})
    return replace(spec, platform=platform, delays_to_flops="nominal")


def check_options(spec: RunSpec) -> None:
    """Raise InputError for options that the scheduler cannot have in a run; neither jobs nor series are read."""
    kind = scheduler_class(spec.scheduler)
    spec, follows = with_own_inputs(spec, kind), _options_of(kind)
    options = dict(spec.options)
    if follows:
        # of watts and machines the run makes one of the other
        limited = spec.envelope is not None or spec.capacity is not None
        names = [name for name in LIMITS if limited and not (name == "envelope" and _of_machines(kind))]
        usual: dict[str, Any] = {name: Timeline((0.0,), (1.0,), LIMITS[name]) for name in names}
        signal = spec.carbon or spec.price
        usual |= {"signal": signal} if signal else {}
        usual |= _options_with_inputs(spec, platform_of(spec.platform, spec.hosts))
        options = {name: value for name, value in usual.items() if name in follows or name in options}
    make_scheduler(spec.scheduler, options, kind)


def _options_with_inputs(spec: RunSpec, platform: Platform) -> dict[str, Any]:
    """Return the scheduler's options with the run's platform, envelope, capacity and end, unless they name others.

    A series that is to be generated is not among them.
    """
    options = dict(spec.options)
    inputs: dict[str, Any] = {"platform": platform, "envelope": spec.envelope, "capacity": spec.capacity}
    for name, value in inputs.items():
        value = value.path if isinstance(value, SeriesSpec) else value
        if isinstance(value, Path | Platform | Timeline):
            options.setdefault(name, value)
    if spec.capacity is not None:
        if spec.config.energy is False:
            options.setdefault("switch", False)
        if spec.window is not None:
            options.setdefault("until_s", spec.until_s)
    return options


def _options_of(kind: Kind) -> Mapping[str, Any]:
    """Return the options of a scheduler of this project; none for one from elsewhere."""
    return kind.Options.model_fields if kind is not None and issubclass(kind, Scheduler) else {}


def _of_machines(kind: Kind) -> bool:
    """Return whether a scheduler counts machines, so that a run makes machines of its watts."""
    return kind is not None and issubclass(kind, CapacityScheduler)


def _own_options(spec: RunSpec, kind: Kind) -> dict[str, Any]:
    """Return the options that the scheduler declares; others are its own."""
    follows = _options_of(kind)
    return {name: value for name, value in spec.options.items() if name in follows}


def _keeps_delays(spec: RunSpec, kind: Kind, platform: Platform) -> bool:
    """Return whether jobs of a trace stay delays: flops would last as long, or have an unknown length."""
    if kind is None or not issubclass(kind, Scheduler):
        return False
    states = {host.pstates[host.initial_pstate] for host in platform.hosts}
    follows = "capacity" in kind.Options.model_fields
    if follows and platform.one_speed and all(state.idle_w == state.full_w for state in states):
        return True
    return len(states) > 1 and kind.needs_alike_hosts(_own_options(spec, kind))


def _work_flops(spec: RunSpec, kind: Kind, platform: Platform) -> float | None:
    """Return the speed in flop/s that turns delays into work, None if they stay; see `RunSpec.delays_to_flops`."""
    if spec.delays_to_flops == "nominal":
        host = platform.hosts[0]
        return host.pstates[host.initial_pstate].speed_flops
    if spec.delays_to_flops is None:
        follows = _options_of(kind)
        of_power = "envelope" in follows and "capacity" not in follows
        power = spec.envelope or _own_options(spec, kind).get("envelope") or (of_power and spec.capacity)
        turned = is_trace(spec.workloads[0]) and bool(power or not platform.one_speed)
    else:
        turned = spec.delays_to_flops
    return platform.fastest_flops if turned else None


def _tell_ends(ends: Mapping[str, float], loads: list[Workload], speed_flops: float) -> None:
    """Log the ends of series that jobs may outlast."""
    last_s = max(last_end_s(load, speed_flops) for load in loads) if ends else 0.0
    for source, end_s in ends.items():
        if last_s > end_s:
            text = (
                "%s: ends at %.15g s, jobs may run until %.15g s: its last value holds; repeat=yes or loop=0 repeats it"
            )
            remark(_log, text, source, end_s, last_s)


def _as_events(spec: RunSpec, scheduler: type[Any]) -> bool:
    """Return whether a scheduler that declares an envelope takes it from external events."""
    return "envelope" in _options_of(scheduler) and spec.options.get("envelope") == EVENTS


def _config_for(spec: RunSpec, scheduler: Any, platform: Platform) -> EngineConfig:
    """Return the engine's options, with those that the scheduler needs."""
    config = spec.config
    if config.energy is None:
        config = replace(config, energy=platform.has_power)
    elif not config.energy and isinstance(scheduler, Scheduler) and scheduler.needs_energy:
        problem = f"the scheduler {spec.scheduler_name!r} changes speeds, which Batsim does with energy accounting only"
        raise InputError(argument("energy", False), problem, "leave it out")
    if isinstance(scheduler, Scheduler) and scheduler.needs_dynamic_jobs:
        config = replace(config, dynamic_jobs=True, profile_reuse=True)
    if _as_events(spec, type(scheduler)):
        if spec.events is None:
            problem = "the envelope is to come as events but there is no events file"
            raise InputError(argument("events"), problem, "make one: batwatt convert --to events")
        config = replace(config, forward_unknown_events=True)
    return config
