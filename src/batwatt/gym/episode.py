"""What an episode is made of, read from names of files or taken from objects of `batwatt.model`."""

from __future__ import annotations

from dataclasses import dataclass, replace

from batwatt.errors import InputError
from batwatt.gym.horizon import Horizon
from batwatt.gym.limits import Limits
from batwatt.inputs.workloads.batsim_files import read_events
from batwatt.model.series import Series
from batwatt.protocol.events import ExternalEvent, refuse_batsim5_events
from batwatt.run.inputs import RunInputs, load_inputs, machines_of
from batwatt.run.spec import RunSpec
from batwatt.scheduling.lifecycle import JobLifecycle
from batwatt.scheduling.registry import make
from batwatt.scheduling.victims import VictimRule


@dataclass(frozen=True)
class Episode:
    """What determines an episode but for the actions: a run without a scheduler, and what is worked out of it once."""

    spec: RunSpec
    inputs: RunInputs
    events: tuple[ExternalEvent, ...]
    limits: Limits
    horizon: Horizon

    @classmethod
    def of(cls, spec: RunSpec) -> Episode:
        """Read the inputs of an episode; without a capacity all hosts are there. Raises InputError."""
        # as for a scheduler of ours, which changes nothing of a workload: it need not be copied
        inputs = load_inputs(replace(spec, scheduler="powercap"), spec.envelope)
        platform, load, hosts = inputs.platform, inputs.workload, len(inputs.platform)
        if not load.jobs:
            raise InputError(load.source, "has no job: there is nothing to decide", "give another workload")
        for job in load.jobs:
            JobLifecycle.check_id(job)
        events: tuple[ExternalEvent, ...] = ()
        if spec.events is not None:
            events = read_events(spec.events, False, hosts)
            refuse_batsim5_events(events, spec.events)
        limits = Limits(platform, inputs.envelope, inputs.capacity)
        if spec.capacity is None:
            inputs = replace(inputs, capacity=Series((0.0,), (float(hosts),), "machines"), cores=1)
        elif len(machines_of(platform)) < hosts:
            problem = "a capacity counts machines, and here a machine has several hosts"
            raise InputError(platform.source, problem, "give a platform whose hosts are machines")
        rule: VictimRule = make("victim", spec.options["victim"])
        last_event_s = events[-1].time_s if events else 0.0
        return cls(spec, inputs, events, limits, Horizon.of(inputs, limits, last_event_s, rule.recovery_s))
