"""A scheduler of our own: the parts that do best on the site at hand (docs/explanation/adaptive.md)."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

from batwatt.schedulers.carbon import Carbon  # type: ignore[import-not-found]  # this folder, installed
from batwatt.schedulers.powercap import Powercap  # type: ignore[import-not-found]  # this folder, installed
from batwatt.schedulers.varcap import Varcap  # type: ignore[import-not-found]  # this folder, installed
from pydantic import Field

from batwatt.errors import InputError
from batwatt.inputs.workloads.phase_workload import NotForPhasesError, machines_told
from batwatt.model.series import Series
from batwatt.model.signal_integral import SignalIntegral
from batwatt.scheduling.base import Scheduler
from batwatt.scheduling.capacity import MachineOptions, machines_fed

RULES: Mapping[str, Mapping[str, Any]] = {
    "powercap": {"order": "smith", "backfilling": "easy", "response": "frugal"},
    "varcap": {"order": "smith", "backfilling": "easy", "termination": "least-loss"},
    "carbon": {"policy": "phase-aware"},
}
"""The parts of each core, for slowdown."""
FOR_GOODPUT = {"order": "widest", "backfilling": "first-fit"}
"""What is different where machines are to be used as much as can be."""

WITH_CHECKPOINTS = {"order": "asc_walltime", "preemption": "slowdown"}
"""What is different on machines whose jobs can be checkpointed, for slowdown."""


class AdaptiveOptions(MachineOptions):
    """Options of the scheduler `adaptive`."""

    envelope: str | Path | Series | None = Field(None, description="CSV file of the power envelope")
    signal: str | Path | SignalIntegral | None = Field(None, description="CSV file of the carbon intensity in g/kWh")
    price: str | Path | SignalIntegral | None = Field(None, description="CSV file of the price of a kWh")
    objective: Literal["slowdown", "goodput", "carbon"] = Field(
        "slowdown", description="what counts: the mean slowdown, the use of the machines, or carbon (or the price)"
    )
    wait_h: list[Annotated[float, Field(ge=0.0)]] | None = Field(
        None, min_length=1, max_length=2, description="hours that jobs may wait for less carbon, as for `carbon`"
    )
    checkpoint_s: float | None = Field(
        None, ge=0.0, le=1e9, description="time in s of a checkpoint of a job; by default jobs cannot be checkpointed"
    )
    recovery_s: float | None = Field(None, ge=0.0, le=1e9, description="time in s of a recovery; by default as long")
    parts: dict[str, Any] = Field({}, description="options of the core that is chosen, in place of ours")


class Adaptive(Scheduler[AdaptiveOptions]):
    """Power, machines or carbon: the parts that do best there, short and narrow jobs first, least lost to kills."""

    Options: ClassVar[type[AdaptiveOptions]] = AdaptiveOptions

    @property
    def needs_dynamic_jobs(self) -> bool:
        """Killed jobs are submitted again."""
        return True

    def onSimulationBegins(self) -> None:
        """Choose a core, which is called from now on."""
        super().onSimulationBegins()
        core = self.choose()
        core.bs = self.bs
        for name in dir(core):
            if name.startswith("on"):
                setattr(self, name, getattr(core, name))
        core.onSimulationBegins()

    def choose(self) -> Scheduler[Any]:
        """The core for this site. Raises InputError."""
        chosen = self.settings
        if self._for_carbon():
            shared = {"signal": chosen.signal, "price": chosen.price, "wait_h": chosen.wait_h, "shift": chosen.shift}
            return self._core(Carbon, "carbon", **shared)
        if chosen.envelope is not None and self._several_speeds():
            if chosen.capacity is not None:
                raise InputError("options", "have both envelope and capacity, on servers of several speeds", "give one")
            return self._core(Powercap, "powercap", victim=self._victim())
        return self._core(Varcap, "varcap", victim=self._victim(), until_s=chosen.until_s)

    def _core(self, kind: type[Scheduler[Any]], name: str, **options: Any) -> Scheduler[Any]:
        chosen = self.settings
        shared: dict[str, Any] = {"platform": chosen.platform, "envelope": chosen.envelope, "capacity": chosen.capacity}
        if kind is Varcap:
            shared |= {"capacity": self._machines(), "switch": chosen.switch}
            if chosen.checkpoint_s is not None and chosen.objective == "slowdown":
                shared |= WITH_CHECKPOINTS
        if kind is not Carbon and chosen.objective == "goodput":
            shared |= FOR_GOODPUT
        if kind is Carbon:
            shared |= {"switch": chosen.switch}
        given = {**RULES[name], **shared, **options, **chosen.parts}
        known = kind.Options.model_fields
        return kind(
            {key: value for key, value in given.items() if value is not None and key in {*known, *chosen.parts}}
        )

    def _for_carbon(self) -> bool:
        """Whether carbon or money counts, or the machines are made for jobs in phases."""
        chosen = self.settings
        if chosen.signal is None and chosen.price is None:
            if chosen.objective == "carbon":
                raise InputError("option 'objective'", "needs a signal", "give --carbon or --price")
            return False
        if chosen.objective == "carbon":
            return True
        try:
            machines_told([self.bs.compute_resources[host] for host in range(self.bs.nb_compute_resources)])
        except NotForPhasesError:
            return False
        return True

    def _several_speeds(self) -> bool:
        platform = self.platform
        return platform is not None and any(len(host.compute) > 1 for host in platform.hosts)

    def _victim(self) -> Any:
        """What becomes of a job that is killed."""
        chosen = self.settings
        if chosen.checkpoint_s is None:
            if chosen.recovery_s is not None:
                raise InputError("option 'recovery_s'", "there are no checkpoints", "give checkpoint_s, too")
            return "resubmit"
        recovery_s = chosen.checkpoint_s if chosen.recovery_s is None else chosen.recovery_s
        return {"name": "checkpoint", "checkpoint_s": chosen.checkpoint_s, "recovery_s": recovery_s}

    def _machines(self) -> Series:
        """The machines that are there by the capacity and the envelope; all without both. Raises InputError."""
        capacity = machines_fed(self.settings.capacity, self.settings.envelope, self.platform)
        if capacity is None:
            described = (self.bs.compute_resources[host] for host in range(self.bs.nb_compute_resources))
            machines = {host["properties"].get("machine", host["name"]) for host in described}
            capacity = Series((0.0,), (float(len(machines)),), "machines")
        return capacity
