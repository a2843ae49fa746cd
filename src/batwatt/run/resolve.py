"""What a run is, once everything that its specification leaves open is settled."""

from __future__ import annotations

import logging
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any

from batwatt.engine.config import EngineConfig
from batwatt.engine.held import HeldArrivals
from batwatt.errors import InputError
from batwatt.inputs.platforms.host_choice import platform_of
from batwatt.inputs.series.capacity_spec import CapacitySpec
from batwatt.inputs.series.envelope_spec import EnvelopeSpec
from batwatt.inputs.traces.delays_to_flops import has_delay
from batwatt.inputs.workloads.batsim_files import read_events
from batwatt.model.machines import MachineSpec, SpeedMachineSpec
from batwatt.model.platform import Platform
from batwatt.model.series import Series
from batwatt.model.site import MachinePower, least_of
from batwatt.model.workload import LONG_S
from batwatt.protocol.events import EVENT_TYPE, refuse_batsim5_events, reported_envelope
from batwatt.remarks import remark
from batwatt.run.find_scheduler import SHIFT, blaming, has_own_shift, load_plugins, make_scheduler, scheduler_class
from batwatt.run.inputs import RunInputs, capacity_named, is_trace, load_inputs
from batwatt.run.spec import RunSpec
from batwatt.scheduling.base import Scheduler
from batwatt.scheduling.options import EVENTS

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class ResolvedRun:
    """A run to be carried out: its specification with the needs of the scheduler in it, and what came of that."""

    spec: RunSpec
    inputs: RunInputs
    scheduler: Any
    config: EngineConfig
    events: Sequence[Any]
    held: Mapping[str, float] = field(default_factory=dict)
    """Until when jobs are held, by id: the option `shift`."""

    def link(self, link: Any) -> Any:
        """What the scheduler sees of a link to an engine."""
        return HeldArrivals(link, self.held) if self.held else link


def resolve(spec: RunSpec) -> ResolvedRun:
    """Settle a run: load plugins, read inputs, make the scheduler and the engine's options. Raises InputError."""
    load_plugins(spec.plugins)
    found = scheduler_class(spec.scheduler)
    spec = _with_speeds(_with_one_capacity(_with_one_length(spec, found), found), found)
    follows = _options_of(found)
    if spec.capacity is not None and "envelope" in follows and "capacity" not in follows:
        spec = replace(spec, under_power=True)
    given = spec.envelope or spec.options.get("envelope")
    known = isinstance(given, str | Path | Series | EnvelopeSpec) and given not in ("", EVENTS)
    inputs = load_inputs(spec, given if known else None)
    platform = inputs.platform
    options = spec.scheduler_options(platform)
    # on the clock of the run, and until it ends
    if isinstance(spec.capacity, CapacitySpec) or options.get("capacity", inputs) is spec.capacity:
        options["capacity"] = inputs.capacity
    if known and options.get("envelope", given) is given:
        options["envelope"] = inputs.envelope
    inputs = _with_views(spec, found, inputs, options)
    for name, signal in (("signal", inputs.carbon), ("price", inputs.price)):
        if signal is not None and name in follows:
            if name in spec.options:
                raise InputError(f"option {name!r}", "is given next to --carbon or --price", "give one of them")
            options[name] = signal
    if "long_s" in _options_of(found):
        options.setdefault("long_s", spec.long_s)
    if isinstance(spec.scheduler, found):
        _check_instance(spec, found)
        scheduler = spec.scheduler
    else:
        scheduler = make_scheduler(spec.scheduler, options, found, inputs.clock)
    with blaming(spec.scheduler_name, scheduler):
        # it says what it needs
        config = _config_for(spec, scheduler, platform)
    shift = options.get(SHIFT, getattr(getattr(scheduler, "settings", None), SHIFT, None))
    held = _held(spec, inputs, None if has_own_shift(spec.scheduler, found) else shift)
    events: Sequence[Any] = ()
    if spec.events is not None:
        events = read_events(spec.events, config.forward_unknown_events, len(platform))
        if spec.engine != "batsim":
            refuse_batsim5_events(events, spec.events)
        reported = reported_envelope(events, spec.events)
        if spec.options.get("envelope") == EVENTS and reported is None:
            raise InputError(spec.events, f"has no {EVENT_TYPE} event", "make one: batwatt events")
        inputs = replace(inputs, envelope=inputs.envelope or reported)
    # after all that may be refused: a refusal is one line
    with blaming(spec.scheduler_name, scheduler):
        _remark_delays(inputs, scheduler)
    return ResolvedRun(spec, inputs, scheduler, config, events, held)


def _held(spec: RunSpec, inputs: RunInputs, shift: Any) -> Mapping[str, float]:
    """Until when jobs are held for the sake of carbon or price. Raises InputError."""
    if shift is None:
        return {}
    signal = inputs.carbon or inputs.price
    if signal is None:
        raise InputError("option 'shift'", "needs a carbon or price signal", "give --carbon or --price")
    from batwatt.options.shift import held_until

    return held_until(shift, inputs.measured, signal, inputs.platform.fastest_flops)


def _with_views(spec: RunSpec, scheduler: type[Any], inputs: RunInputs, options: dict[str, Any]) -> RunInputs:
    """The inputs with what the scheduler follows, watts or machines, where the other is given; `options` likewise.

    Both given are both kept: the lesser counts at any time. Raises InputError.
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
        if spec.window is not None:
            options.setdefault("until_s", spec.until_s)
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


def _check_instance(spec: RunSpec, scheduler: type[Any]) -> None:
    """InputError for an instance that has run, or is given what it cannot take any more."""
    follows = _options_of(scheduler)
    given = [*spec.options, *(name for name in ("envelope", "capacity") if name in follows and getattr(spec, name))]
    settings = getattr(spec.scheduler, "settings", None)
    given = [name for name in given if name in spec.options or getattr(settings, name, None) != getattr(spec, name)]
    signals = (("carbon", "signal"), ("price", "price"))
    given += [name for name, own in signals if own in follows and getattr(spec, name) and not getattr(settings, own, 0)]
    if given or getattr(spec.scheduler, "bs", None) is not None:
        problem = "has run already" if not given else f"has its options, got {', '.join(given)}, too"
        raise InputError(f"scheduler {spec.scheduler_name}", problem, "give the class, or a new instance")


def _options_of(scheduler: type[Any]) -> Mapping[str, Any]:
    """The options that a scheduler of ours has; none of somebody else's."""
    return scheduler.Options.model_fields if issubclass(scheduler, Scheduler) else {}


def _with_speeds(spec: RunSpec, scheduler: type[Any]) -> RunSpec:
    """The same run with jobs and machines that can be slowed down, if the scheduler does that. Raises InputError."""
    if not (issubclass(scheduler, Scheduler) and scheduler.needs_speeds):
        if spec.delays_to_flops is None and issubclass(scheduler, Scheduler) and is_trace(spec.workload):
            return replace(spec, delays_to_flops=False) if _keeps_delays(spec, scheduler) else spec
        return spec
    platform = spec.platform
    if isinstance(platform, MachineSpec) and not isinstance(platform, SpeedMachineSpec):
        given = {entry.name: getattr(platform, entry.name) for entry in fields(platform)}
        platform = SpeedMachineSpec(**given)
    return replace(spec, platform=platform, delays_to_flops="nominal")


def _keeps_delays(spec: RunSpec, scheduler: type[Scheduler[Any]]) -> bool:
    """Whether the jobs of a trace stay delays: flops would be the same under a capacity, or of unknown length."""
    platform = platform_of(spec.platform, spec.hosts)
    states = {host.pstates[host.initial_pstate] for host in platform.hosts}
    if "capacity" in _options_of(scheduler) and platform.one_speed and all(s.idle_w == s.full_w for s in states):
        return True
    return len(states) > 1 and scheduler.needs_alike_hosts(spec.options)


def _remark_delays(inputs: RunInputs, scheduler: Any) -> None:
    """Warn of delays that a scheduler cannot slow down though it changes speeds, and take them for told."""
    if not isinstance(scheduler, Scheduler) or not scheduler.changes_speeds or inputs.platform.one_speed:
        return
    delays = total = 0
    for load in inputs.run:
        timed = {name for name, profile in load.profiles.items() if has_delay(profile, load.profiles)}
        delays += sum(job.profile in timed for job in load.jobs)
        total += len(load.jobs)
    scheduler.told_delays = True
    if delays:
        text = (
            "%s: %d of %d jobs are delays and do not slow with their hosts: they take as long at any p-state and draw "
            "what idle hosts do; --delays-to-flops makes work of them (docs/explanation/powercap.md)"
        )
        remark(_log, text, inputs.measured.source, delays, total)


def _with_one_length(spec: RunSpec, scheduler: type[Any]) -> RunSpec:
    """The same run with the scheduler's idea of a long job for the figures, unless they have one of their own."""
    given = spec.options.get("long_s")
    if spec.long_s != LONG_S or "long_s" not in _options_of(scheduler):
        return spec
    if isinstance(given, int | float) and not isinstance(given, bool) and 0.0 < given < math.inf:
        return replace(spec, long_s=float(given))
    return spec


def _with_one_capacity(spec: RunSpec, scheduler: type[Any]) -> RunSpec:
    """The same run with one capacity, for the scheduler and for what is measured. Raises InputError."""
    follows = _options_of(scheduler)
    if spec.capacity is not None and not {"capacity", "envelope"} & follows.keys():
        problem = f"the scheduler {spec.scheduler_name!r} follows no capacity"
        raise InputError("--capacity", problem, "leave it out, or choose one that does, such as riskaware")
    given = spec.options.get("capacity")
    if not ("capacity" in follows and isinstance(given, str | Path) and given):
        return spec
    capacity = capacity_named(given)
    if spec.capacity is not None and capacity != spec.capacity:
        problem = f"{str(given)!r} is another one than --capacity {str(spec.capacity)!r}"
        raise InputError("option 'capacity'", problem, "give one of them")
    return replace(spec, capacity=capacity)


def _config_for(spec: RunSpec, scheduler: Any, platform: Platform) -> EngineConfig:
    """The engine's options, with what the scheduler cannot do without."""
    settings = {name: getattr(spec.config, name) for name in EngineConfig.__slots__}
    if settings["energy"] is None:
        settings["energy"] = platform.has_power
    elif not settings["energy"] and isinstance(scheduler, Scheduler) and scheduler.needs_energy:
        problem = f"the scheduler {spec.scheduler_name!r} changes speeds, which Batsim does with energy accounting only"
        raise InputError("--no-energy", problem, "leave it out")
    if isinstance(scheduler, Scheduler) and scheduler.needs_dynamic_jobs:
        settings["dynamic_jobs"] = settings["profile_reuse"] = True
    if spec.options.get("envelope") == EVENTS:
        if spec.events is None:
            problem = "the envelope is to come as events but there is no events file"
            raise InputError("--events", problem, "make one: batwatt events")
        settings["forward_unknown_events"] = True
    return EngineConfig(**settings)
