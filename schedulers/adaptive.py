"""A scheduler of our own: the parts that do best on the site at hand (docs/explanation/adaptive.md)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Literal

from pydantic import Field

from batwatt.errors import InputError, argument
from batwatt.model.platform import machine_of
from batwatt.model.timeline import Timeline
from batwatt.protocol.job_fields import NotForPhasesError, reported_machines
from batwatt.schedulers.carbon import Carbon
from batwatt.schedulers.powercap import Powercap
from batwatt.schedulers.varcap import Varcap
from batwatt.scheduling.base import AGE, WAIT_H, Scheduler, WaitHours
from batwatt.scheduling.capacity import MachineOptions, machines_fed

RULES: Mapping[str, Mapping[str, Any]] = {
    "powercap": {"order": "smith", "backfilling": "easy", "response": "frugal"},
    "varcap": {"order": "smith", "backfilling": "easy", "termination": "least-loss"},
    "carbon": {"policy": "phase-aware"},
}
"""The parts of each core, for slowdown."""
FOR_GOODPUT = {"order": "widest", "backfilling": "first-fit"}
"""Parts that differ where machines are to be used as much as possible."""
WITH_CHECKPOINTS = {"order": "asc_walltime", "preemption": "slowdown"}
"""Parts that differ on machines whose jobs can be checkpointed, for slowdown."""
WEEK_S = 604_800.0
"""Default limit of age; its cost is in docs/explanation/adaptive.md."""
OF_VICTIMS = ("checkpoint_s", "recovery_s")
"""Options that give the victim rule."""
OF_SITE = ("objective", "parts", "envelope", "signal", "price")
"""Options that need not be the core's: an envelope may count as machines, signals may be for measuring only."""


class AdaptiveOptions(MachineOptions):
    """Options of the scheduler `adaptive`."""

    signal: Timeline | None = Field(None, description="CSV file of the carbon intensity in g/kWh")
    price: Timeline | None = Field(None, description="CSV file of the price of a kWh")
    objective: Literal["slowdown", "goodput", "carbon"] = Field(
        "slowdown", description="measure to improve: mean slowdown, use of the machines, or carbon (or the price)"
    )
    wait_h: WaitHours | None = Field(
        None, examples=[WAIT_H], description="hours that short and long jobs may wait, or one for all, as for carbon"
    )
    checkpoint_s: float | None = Field(
        None, ge=0.0, le=1e9, description="time in s of a checkpoint of a job; by default jobs cannot be checkpointed"
    )
    recovery_s: float | None = Field(
        None, ge=0.0, le=1e9, description="time in s of a recovery; by default checkpoint_s"
    )
    age_limit_s: float | None = Field(WEEK_S, gt=0.0, description=AGE)
    parts: dict[str, Any] = Field({}, description="options of the selected core, in place of those that adaptive sets")


class Adaptive(Scheduler[AdaptiveOptions]):
    """Power, machines or carbon: the parts that do best there, short and narrow jobs first, least lost to kills."""

    Options: ClassVar[type[AdaptiveOptions]] = AdaptiveOptions

    @property
    def needs_dynamic_jobs(self) -> bool:
        """True: killed jobs are submitted again."""
        return True

    def without_requests(self) -> str:
        """See `Scheduler`: all cores but that for carbon plan by requests."""
        return "" if self.settings.objective == "carbon" else "as the core has it"

    @classmethod
    def needs_alike_hosts(cls, options: Mapping[str, Any]) -> bool:
        """See `Scheduler`: the core for carbon does."""
        return options.get("objective") == "carbon"

    @property
    def changes_speeds(self) -> bool:
        """True if the core is to be that for an envelope on servers of several speeds."""
        settings = self.settings
        return settings.objective != "carbon" and settings.envelope is not None and self._several_speeds()

    def onSimulationBegins(self) -> None:
        """Choose a core, which is called from now on."""
        super().onSimulationBegins()
        core = self.choose()
        core.bs, core.delays_reported = self.bs, self.delays_reported
        for name in dir(core):
            if name.startswith("on"):
                setattr(self, name, getattr(core, name))
        # the attempts of a run are those of the core
        self.lifecycle = core.lifecycle
        core.onSimulationBegins()

    def choose(self) -> Scheduler[Any]:
        """Return the core for this site. Raises InputError."""
        settings = self.settings
        if self._for_carbon():
            return self._core(Carbon, "carbon")
        if settings.envelope is not None and self._several_speeds():
            if settings.capacity is not None:
                raise InputError("options", "have both envelope and capacity, on servers of several speeds", "give one")
            if not settings.switch:
                problem = "servers of several speeds are slowed down and switched off, which takes energy accounting"
                raise InputError(f"option 'switch', {argument('energy', False)}", problem, "leave out both")
            return self._core(Powercap, "powercap")
        machines = {machine_of(host["properties"], host["name"]) for host in self.hosts_described}
        capacity = machines_fed(settings.capacity, settings.envelope, self.platform, len(machines))
        stopping = settings.checkpoint_s is not None and settings.objective == "slowdown"
        return self._core(Varcap, "varcap", capacity=capacity, envelope=None, **WITH_CHECKPOINTS if stopping else {})

    def _core(self, kind: type[Scheduler[Any]], name: str, **options: Any) -> Scheduler[Any]:
        """Return the core of the name, with its parts and those options of ours that it has. Raises InputError."""
        settings, fields = self.settings, kind.Options.model_fields
        goodput = FOR_GOODPUT if settings.objective == "goodput" else {}
        values = {**RULES[name], **dict(settings), "victim": self._victim(), **goodput, **options, **settings.parts}
        # with a capacity, the end may be that of the run's window, which carbon goes past
        ignored = OF_SITE if settings.capacity is None else (*OF_SITE, "until_s")
        for option, field in self.Options.model_fields.items():
            needed = "victim" if option in OF_VICTIMS else option
            if option not in ignored and needed not in fields and getattr(settings, option) != field.default:
                problem = f"the core {name!r}, which adaptive chooses here, has no use for it"
                raise InputError(f"option {option!r}", problem, "leave it out (docs/explanation/adaptive.md)")
        usable = {*fields, *settings.parts}
        return kind({option: value for option, value in values.items() if value is not None and option in usable})

    def _for_carbon(self) -> bool:
        """Return whether carbon or money counts, or the machines are for jobs in phases. Raises InputError."""
        settings = self.settings
        if settings.signal is None and settings.price is None:
            if settings.objective == "carbon":
                raise InputError(
                    "option 'objective'", "needs a signal", f"give {argument('carbon')} or {argument('price')}"
                )
            return False
        if settings.objective == "carbon":
            return True
        try:
            reported_machines(self.hosts_described)
        except NotForPhasesError:
            return False
        return True

    def _several_speeds(self) -> bool:
        platform = self.platform
        return platform is not None and any(len(host.compute) > 1 for host in platform.hosts)

    def _victim(self) -> Any:
        """Return the victim rule of the core. Raises InputError."""
        settings = self.settings
        if settings.checkpoint_s is None:
            if settings.recovery_s is not None:
                raise InputError("option 'recovery_s'", "there are no checkpoints", "give checkpoint_s, too")
            return "resubmit"
        recovery_s = settings.checkpoint_s if settings.recovery_s is None else settings.recovery_s
        return {"name": "checkpoint", "checkpoint_s": settings.checkpoint_s, "recovery_s": recovery_s}
