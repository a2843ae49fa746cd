"""The inputs of an episode, read from names of files or taken from objects of `batwatt.model`."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from batwatt.errors import InputError
from batwatt.gym.horizon import Horizon
from batwatt.gym.limits import Limits
from batwatt.inputs.load import Needs, RunInputs, load, machines_of
from batwatt.model.series import Series
from batwatt.model.signal_integral import SignalIntegral
from batwatt.protocol.events import refuse_batsim5_events
from batwatt.run.spec import RunSpec
from batwatt.scheduling.lifecycle import JobLifecycle
from batwatt.systems.carbon.forecast import SignalForecast


@dataclass(frozen=True)
class Episode:
    """The determinants of an episode but for the actions: a run without a scheduler, and facts computed of it once."""

    spec: RunSpec
    inputs: RunInputs
    limits: Limits
    horizon: Horizon

    def forecasts(self, error: float, seed: int) -> dict[str, SignalForecast]:
        """Return the forecasts of envelope, carbon and price that there are, with errors that a seed determines."""
        envelope = self.inputs.envelope
        signals = {"carbon": self.inputs.carbon, "price": self.inputs.price}
        if envelope is not None:
            edges = np.array((*envelope.times_s, envelope.times_s[-1] + envelope.last_step_s))
            signals["envelope"] = SignalIntegral(edges, np.array(envelope.values))
        present = [(name, signal) for name, signal in signals.items() if signal is not None]
        return {name: SignalForecast(signal, error, seed + number) for number, (name, signal) in enumerate(present)}

    @classmethod
    def of(cls, spec: RunSpec) -> Episode:
        """Read the inputs of an episode; without a capacity all hosts are there. Raises InputError."""
        inputs = load(spec.inputs, Needs(power=spec.inputs.envelope is not None, speeds="dvfs" in spec.options))
        platform, [workload], hosts = inputs.platform, inputs.workloads, len(inputs.platform)
        if not workload.jobs:
            raise InputError(workload.source, "has no job: there is nothing to decide", "give another workload")
        for job in workload.jobs:
            JobLifecycle.check_id(job)
        refuse_batsim5_events(inputs.events, spec.inputs.events)
        limits = Limits(platform, inputs.envelope, inputs.capacity)
        if spec.inputs.capacity is None:
            inputs = replace(inputs, capacity=Series((0.0,), (float(hosts),), "machines"), cores=1)
        elif len(machines_of(platform)) < hosts:
            problem = "a capacity counts machines, and here a machine has several hosts"
            raise InputError(platform.source, problem, "give a platform whose hosts are machines")
        last_event_s = inputs.events[-1].time_s if inputs.events else 0.0
        return cls(spec, inputs, limits, Horizon.of(inputs, limits, last_event_s, spec.options))
