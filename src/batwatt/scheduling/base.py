"""Base of all our schedulers: their options, checked before anything runs, and defaults for pybatsim's callbacks."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Annotated, Any, ClassVar, Final, Generic, Literal, TypeVar, get_args, get_origin

from batsim.batsim import BatsimScheduler
from pydantic import BaseModel, ConfigDict, Field
from pydantic.fields import FieldInfo

from batwatt.checks import shown_json, validated
from batwatt.errors import InputError, UnknownNameError
from batwatt.inputs.formats import read_reference
from batwatt.inputs.platform_files import read_platform
from batwatt.inputs.source import Quantity
from batwatt.inputs.spec import parse_series
from batwatt.model import hostset
from batwatt.model.hostset import HostSet
from batwatt.model.platform import Platform
from batwatt.model.signal import Clock
from batwatt.model.timeline import Timeline
from batwatt.model.work import Reference
from batwatt.scheduling.cluster import Transitions, named
from batwatt.scheduling.job import BatsimJob, Job
from batwatt.scheduling.lifecycle import JobLifecycle
from batwatt.scheduling.registry import KINDS, make
from batwatt.scheduling.run_times import ExactRunTimes, RunTimes
from batwatt.units import number_text

EVENTS: Final = "events"
"""The option `envelope` where the engine forwards it."""
PartChoice = str | dict[str, Any]
NODES = "choice among the free nodes for a job (docs/explanation/node-selection.md)"
WAIT_H = [6.0, 24.0]
"""Hours that short and long jobs may wait (GAIA)."""
WaitHours = Annotated[list[Annotated[float, Field(ge=0.0)]], Field(min_length=1, max_length=2)]
"""Hours >= 0 that short and long jobs may wait, or one for all."""
VICTIM = (
    "fate of a killed job: lose, resubmit, checkpoint, migrate, or a part of your own (docs/explanation/victims.md)"
)
AGE = (
    "time in s since its release after which a waiting job goes before all others, with a reservation, and a running "
    "one is stopped for no other; null: no limit"
)
LIMIT = (
    "time in s within which a host must switch on or off, or it is out of service until it is reported; by default "
    "three times the duration in the platform file, at least 300 s"
)


class SchedulerOptions(BaseModel):
    """Options of every scheduler of ours; unknown names are errors."""

    model_config = ConfigDict(extra="forbid", arbitrary_types_allowed=True, frozen=True, allow_inf_nan=False)

    platform: Platform | None = Field(None, description="platform file, for the servers' speeds and watts")
    run_times: PartChoice | None = Field(
        None,
        description="estimate of run times by which jobs are ordered, get reservations and are weighed: exact, "
        "walltime, recent, regression, or a part of your own (docs/explanation/run-times.md); by default as the "
        "scheduler's paper has it",
    )
    shift: PartChoice | None = Field(
        None,
        description="policy of `batwatt policies` by which a job is held after its submission, for a carbon or price "
        'signal: a name, or {"name": "waiting", "wait_h": [6, 24]}',
    )


class PowerOptions(SchedulerOptions):
    """Options of every scheduler of jobs on hosts under an envelope."""

    node_selection: PartChoice = Field("first", description=NODES)
    envelope: Timeline | Literal["events"] | None = Field(
        None, description="CSV file of the power envelope, or 'events' if the engine forwards it as external events"
    )
    victim: PartChoice = Field("lose", description=VICTIM)
    age_limit_s: float | None = Field(None, gt=0.0, description=AGE)


class EnvelopeOptions(PowerOptions):
    """Options of every scheduler that responds to an envelope."""

    order: PartChoice | None = Field(None, description="queue order")
    backfilling: PartChoice | None = Field(None, description="backfilling of jobs on servers")
    response: PartChoice | None = Field(None, description="response to a new power cap")
    work_estimate: Literal["walltime", "learned", "exact"] | None = Field(
        None,
        description="estimate of a job's work: its walltime at the fastest state, the largest share of that which a "
        "job has needed so far, or that of its profile; by default that of the response",
    )
    forecast_steps: int = Field(
        0, ge=0, le=10_000, description="number of caps ahead that the scheduler knows, 0 to 10000"
    )
    forecast_error: float = Field(
        0.0, ge=0.0, le=10.0, description="standard deviation of the relative error a step ahead, 0 to 10"
    )
    forecast_seed: int = Field(0, ge=0, description="seed of the forecast's errors, a whole number >= 0")
    transition_limit_s: float | None = Field(None, gt=0.0, description=LIMIT)


READERS: Mapping[str, tuple[type[Any], Callable[[str | Path], Any]]] = {
    "platform": (Platform, read_platform),
    "envelope": (Timeline, lambda text: parse_series("power", text).timeline()),
    "capacity": (Timeline, lambda text: parse_series("machines", text).timeline()),
    "reference": (Reference, read_reference),
}
"""Option -> type of its value, and the reader of its file."""
SIGNALS: Mapping[str, Quantity] = {"signal": "carbon", "price": "price"}
"""Option -> quantity of the signal in its file."""


OptionValues = Mapping[str, Any] | SchedulerOptions | None
"""Options of a scheduler by name, where files may be names, or as `read_options` returns them."""


def read_options(model: type[SchedulerOptions], options: OptionValues, clock: Clock | None = None) -> SchedulerOptions:
    """Return the options of a scheduler, with the content of files in place of their names. Raises InputError.

    Signals begin on the clock of the run, else both with the first row of carbon. Options that are read stay as they
    are.
    """
    if isinstance(options, SchedulerOptions):
        return options
    read = dict(options or {})
    paths = {name: read.pop(name) for name, (kind, _) in READERS.items() if _is_path(model, name, kind, read)}
    signals = {name: read.pop(name) for name in SIGNALS if _is_path(model, name, Timeline, read)}
    if not (paths or signals):
        return parse_options(model, read)
    # errors of the other options come before a file is read
    parse_options(model, read)
    read |= {name: READERS[name][1](path) for name, path in paths.items()}
    for name, path in signals.items():
        carbon = read.get("signal")
        date_s = carbon.date_s if isinstance(carbon, Timeline) else None
        read[name] = parse_series(SIGNALS[name], path).timeline(clock or (None if date_s is None else Clock(date_s)))
    return parse_options(model, read)


def _is_path(model: type[SchedulerOptions], name: str, kind: type[Any], options: Mapping[str, Any]) -> bool:
    """Return whether an option names a file of the type `kind`; a scheduler may have another meaning for its name."""
    value, field = options.get(name), model.model_fields.get(name)
    path = isinstance(value, str | Path) and value not in ("", EVENTS)
    return path and field is not None and kind in get_args(field.annotation)


def parse_options(model: type[SchedulerOptions], options: Mapping[str, Any]) -> SchedulerOptions:
    """Return the options as a model; InputError names the option, its value and the allowed values."""
    names = set(model.model_fields)
    for name in options:
        if name not in names:
            raise UnknownNameError("options", "option", name, names, "See `batwatt policies SCHEDULER`.")
    for kind in KINDS:
        choice = options.get(kind)
        if (isinstance(choice, str) and not choice) or (isinstance(choice, dict) and "name" not in choice):
            raise InputError(f"option {kind!r}", f"{shown_json(choice)} is not {_wanted(model, kind)}")
    for name in ("envelope", "platform", "capacity", "reference"):
        if isinstance(options.get(name), str) and not options[name]:
            raise InputError(f"option {name!r}", '"" is not a file', "leave it out or name one")

    def error_of(error: Mapping[str, Any]) -> InputError:
        name, value = str(error["loc"][0]) if error["loc"] else "options", error.get("input")
        return InputError(f"option {name!r}", f"{shown_json(value)} is not {_wanted(model, name, value)}")

    return validated(model, dict(options), error_of)


def _wanted(model: type[SchedulerOptions], name: str, value: object = None) -> str:
    """Return the allowed values of an option, in words, for a `value` that is none of them."""
    field = model.model_fields[name]
    if name in KINDS:
        article = "an" if name[0] in "aeiou" else "a"
        return f'the name of {article} {name}, or an object with its "name" and parameters; see `batwatt policies`'
    kinds = (field.annotation, *get_args(field.annotation))
    for kind in kinds:
        plain = get_args(kind)[0] if get_origin(kind) is Annotated else kind
        if get_origin(plain) is list:
            return f"a list as {json.dumps((field.examples or [field.default])[0])} ({field.description})"
        if get_origin(kind) is Literal and EVENTS not in get_args(kind):
            return f"one of {', '.join(json.dumps(value) for value in get_args(kind))}"
    if dict[str, Any] in kinds:
        return f"{'an object' if field.annotation == dict[str, Any] else 'a name or an object'} ({field.description})"
    for number, words in ((bool, "true or false"), (int, "a whole number"), (float, "a number")):
        if number in kinds:
            return f"{words}{bounds_of(field)} ({field.description})"
    if isinstance(value, str):
        return f"read from a file: give what it holds (files: {', '.join([*READERS, *SIGNALS])})"
    return f"the name of a file ({field.description})"


def bounds_of(field: FieldInfo) -> str:
    """Return the bounds of a number, as in ` >= 0 and <= 8760`."""
    signs = {"ge": ">=", "gt": ">", "le": "<=", "lt": "<"}
    bounds = [
        f"{sign} {number_text(getattr(bound, name))}"
        for name, sign in signs.items()
        for bound in field.metadata
        if hasattr(bound, name)
    ]
    return f" {' and '.join(bounds)}" if bounds else ""


Settings = TypeVar("Settings", bound=SchedulerOptions)


class Scheduler(BatsimScheduler, Generic[Settings]):
    """A pybatsim scheduler with checked options, those of `Options`; `lifecycle` tracks its jobs."""

    Options: ClassVar[type[SchedulerOptions]] = SchedulerOptions
    bs: Any
    """Interface to Batsim."""
    needs_exact_times: ClassVar[bool] = False
    """True if plans fail where a job takes longer, or less, than planned."""
    knows_lengths: ClassVar[bool] = False
    """True if plans go by exact run times, whatever estimates orders and reservations go by."""
    fills_requests: ClassVar[bool] = True
    """True if exact run times replace the missing requests of jobs of a trace."""
    needs_speeds: ClassVar[bool] = False
    """True if the scheduler changes speeds of jobs: then delays become flops, and cores have several speeds."""

    by_host_sets: ClassVar[bool] = True
    """True if a report of hosts is one call of `onHostsArrived`; a subclass with a callback of pybatsim gets that."""

    def __init_subclass__(cls, **keywords: Any) -> None:
        super().__init_subclass__(**keywords)
        cls.by_host_sets = cls.onMachinePStateChanged is Scheduler.onMachinePStateChanged

    def __init__(self, options: OptionValues = None) -> None:
        self.settings: Settings = read_options(self.Options, options)  # type: ignore[assignment]  # `Options` is the type of `Settings`
        super().__init__({name: getattr(self.settings, name) for name in self.settings.model_fields_set})
        self.logger = logging.getLogger(f"batwatt.{type(self).__name__.lower()}")
        self.platform = self.settings.platform
        choice = self.settings.run_times
        self.run_times: RunTimes | None = None if choice is None else make("run_times", choice)
        if self.needs_exact_times and not isinstance(self.run_times, ExactRunTimes | None):
            problem = f"{self.run_times.name!r} estimates run times, which plans of this scheduler must know"
            raise InputError("option 'run_times'", problem, "choose exact, or another scheduler")
        self.lifecycle: JobLifecycle = JobLifecycle()
        self.delays_reported = False
        """True if delays that do not slow down were reported before the run."""
        self.transitions = Transitions(self.platform, getattr(self.settings, "transition_limit_s", None))
        self._told = 0
        """Mask of the hosts whose failure was logged."""

    @property
    def needs_dynamic_jobs(self) -> bool:
        """True if Batsim must be started with dynamic jobs and profile reuse."""
        return False

    def without_requests(self) -> str:
        """Return what jobs without a request mean for the decisions, for a remark; empty: nothing."""
        return ""

    @classmethod
    def needs_alike_hosts(cls, options: Mapping[str, Any]) -> bool:
        """Return whether the scheduler knows the length of flops only on hosts that are alike."""
        return False

    @property
    def changes_speeds(self) -> bool:
        """True if the scheduler changes the p-states of hosts with jobs, so that work slows down, and delays do not."""
        return self.needs_speeds

    @property
    def needs_energy(self) -> bool:
        """True if the scheduler changes p-states of hosts, which Batsim does with energy accounting only."""
        return self.needs_speeds

    def onSimulationBegins(self) -> None:
        """Check that Batsim runs the platform that the options name, and supports the needs of the scheduler."""
        self.lifecycle.begin(self.bs, self.needs_dynamic_jobs)
        platform, theirs = self.platform, [host["name"] for host in self.hosts_described]
        if platform is not None and [host.name for host in platform.hosts] != theirs:
            problem = f"is not the platform that Batsim runs ({len(theirs)} hosts, the first is {theirs[0]!r})"
            raise InputError(platform.source, problem, "give both the same file")

    @property
    def hosts_described(self) -> list[Mapping[str, Any]]:
        """Batsim's descriptions of the hosts, by id."""
        return [self.bs.compute_resources[host] for host in range(self.bs.nb_compute_resources)]

    # hosts out of service -----------------------------------------------------------------------------------------

    def update_hosts(self, now_s: float) -> bool:
        """Take hosts out of service past the limit of their transition; return whether there is something to decide.

        There is nothing if the message only has calls for limits, and no host is past its own.
        """
        failed = self.transitions.expire(now_s)
        if failed:
            self.lifecycle.progress()
            self.hosts_changed()
        if failed & ~self._told:
            text = "%s out of service: not switched within the limit, at %g s"
            self.logger.warning(text, named(failed & ~self._told), now_s)
            self._told |= failed
        if not self.lifecycle.only_limits(now_s) or failed:
            return True
        self.lifecycle.wake_for_limit(self.transitions.next_s, now_s)
        return False

    @property
    def hosts_may_return(self) -> bool:
        """True if hosts switch within their limits, or events may bring hosts back."""
        away = self.transitions.away and not self.bs.no_more_external_events
        return bool(self.transitions.pending or away)

    def stalled(self, limit: Timeline | None, waiting: Iterable[Job]) -> tuple[list[Job], str]:
        """Return the waiting jobs to reject after a whole period of a limit in vain, and the reason."""
        if limit is None or not self.lifecycle.in_vain(limit, 0.0):
            return [], ""
        if self.transitions.away and not self.bs.no_more_external_events:
            return [], ""
        jobs = self.lifecycle.stalled(limit, waiting, self.transitions.switching_s)
        return jobs, f"as no job ended or saved work in a whole period of {limit.period_s:.15g} s"

    def hosts_changed(self) -> None:
        """Follow a change of the hosts out of service."""

    def onHostsArrived(self, mask: int, pstate: int) -> None:
        """Note that the hosts of a mask arrived in a p-state."""
        self.lifecycle.has_events = True
        if self.transitions.arrived(mask):
            self.hosts_changed()

    def onMachinePStateChanged(self, nodeid: tuple[int, int], pstate: str) -> None:
        """Note that hosts arrived in a p-state; pybatsim calls this for each interval of hosts."""
        self.onHostsArrived(hostset.span(*nodeid), int(pstate))

    def onNotifyEventMachineUnavailable(self, machines: Any) -> None:
        """Take hosts away: nothing starts there, and jobs that run there go on."""
        self._set_away(machines, True)

    def onNotifyEventMachineAvailable(self, machines: Any) -> None:
        """Bring hosts back."""
        self._set_away(machines, False)

    def _set_away(self, machines: Any, away: bool) -> None:
        self.lifecycle.has_events = True
        self.lifecycle.progress()
        self.transitions.set_away(HostSet.of(machines).mask, away)
        self.hosts_changed()

    # the rest of pybatsim's callbacks -----------------------------------------------------------------------------

    def onNoMoreJobsInWorkloads(self) -> None:
        """Note that no job comes any more."""
        self.lifecycle.has_events = True
        self.lifecycle.more_jobs = False

    def onSimulationEnds(self) -> None:
        """Warn of jobs that could never run, and count those whose requests are missing or not used."""
        self.lifecycle.report(self.logger)
        if self.run_times is not None:
            return
        exact, effect = self.needs_exact_times or self.knows_lengths, self.without_requests()
        if not exact and not effect:
            return
        requests, jobs = self.lifecycle.requests, self.lifecycle.ran
        if exact and requests:
            text = "plans are by exact run times, which no site has: the requests of %d of %d jobs are not used"
            self.logger.warning(text, requests, jobs)
        elif not exact and requests < jobs:
            text = "%d of %d jobs request no run time: %s (docs/explanation/run-times.md)"
            self.logger.warning(text, jobs - requests, jobs, effect)

    def onJobsKilled(self, jobs: list[BatsimJob]) -> None:
        """Forget killed jobs, whose completion was reported before."""
        self.lifecycle.killed(jobs)

    def onRequestedCall(self) -> None:
        """Count a call, by which a step may begin; `onNoMoreEvents` looks at the time."""
        self.lifecycle.called += 1

    def onNoMoreExternalEvents(self) -> None:
        """Note that hosts that are away stay away."""
        self.lifecycle.has_events = True

    def onNotifyGenericEvent(self, event_data: Any) -> None:
        """Ignore a generic event, which is for another scheduler."""
        self.lifecycle.has_events = True

    def onReportEnergyConsumed(self, consumed_energy: float) -> None:
        """Ignore a report of energy, which is not requested."""
