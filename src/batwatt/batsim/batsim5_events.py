"""Events and decisions of Batsim 5 that Batsim 4 (`batsim/events.py`) does not have."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from batwatt.batsim.events import NO_MORE_EVENTS, NO_MORE_JOBS, Decision, Event, Json

JSON_FLAG = 2
"""Flag of the answer to the first frame: messages are JSON."""
CODES = 2**32
"""Number of return codes, which are unsigned in 32 bits."""
NOTICES = {
    NO_MORE_JOBS: "AllStaticJobsHaveBeenSubmittedEvent",
    NO_MORE_EVENTS: "AllStaticExternalEventsHaveBeenInjectedEvent",
}
"""NOTIFY of Batsim 4 -> event of Batsim 5."""


@dataclass
class _Event(Event):
    # without `field()`, the descriptor of the compiled class would become the default
    time: float = field()


@dataclass
class _Decision(Decision):
    time: float = field()


# events ---------------------------------------------------------------------------------------------------------------


@dataclass
class Called(_Event):
    """A call that the scheduler requested; `last`: the last one of a finite number of calls."""

    call_id: str
    last: bool = False


@dataclass
class ProbeData(_Event):
    """Energy in J since 0 s of a probe's hosts: of each of them, or one number for all."""

    probe_id: str
    hosts: str
    value: float | list[float]


@dataclass
class ExternalEvent(_Event):
    """A generic event of an events file."""

    event_id: str
    data: str


@dataclass
class HostsPStateChanged(_Event):
    """A change of the p-state of hosts (an interval string) without a transition."""

    hosts: str
    pstate: int


@dataclass
class JobsKilled(_Event):
    """A kill; `progresses` and requested `profiles` in the form of messages."""

    job_ids: Sequence[str]
    progresses: list[Json]
    profiles: list[Json] | None


# decisions ------------------------------------------------------------------------------------------------------------


@dataclass
class Features:
    """Features that the scheduler requests in its hello."""

    dynamic_registration: bool = False
    profile_reuse: bool = False
    acknowledge_dynamic_jobs: bool = False
    forward_profiles_on_job_submission: bool = False
    forward_profiles_on_jobs_killed: bool = False
    forward_profiles_on_simulation_begins: bool = False


@dataclass
class Place:
    """Hosts, and the placement of executors: a predefined strategy, or indices into the sorted hosts."""

    hosts: str
    executors: str | Sequence[int]


@dataclass
class Execute(_Decision):
    """Start a job; parts of its profile may run on other hosts (`overrides`, by the id of the profile)."""

    job_id: str
    place: Place
    overrides: Mapping[str, Place] = field(default_factory=dict)
    storage: Sequence[Any] = ()


@dataclass
class Period:
    """A period of `period_ms`, at most `count` times."""

    period_ms: int
    count: int | None = None


@dataclass
class Call(_Decision):
    """Call the scheduler at a time in s, or periodically."""

    call_id: str
    when: float | Period


@dataclass
class StopCall(_Decision):
    """End a periodic call."""

    call_id: str


@dataclass
class CreateProbe(_Decision):
    """Measure energy; `period` None: once. `refused` is the unsupported part, on which Batsim fails when due."""

    probe_id: str
    hosts: str
    aggregation: str
    period: Period | None
    refused: str


@dataclass
class StopProbe(_Decision):
    """End a probe."""

    probe_id: str


@dataclass
class TurnOnOff(_Decision):
    """Switch hosts off (to a sleep p-state) or on (to a computation p-state)."""

    hosts: str
    pstate: int


@dataclass
class ChangePState(_Decision):
    """Change the p-state of hosts without a transition."""

    hosts: str
    pstate: int


@dataclass
class Register(_Decision):
    """Add a profile: its id, Batsim's name for its type, and its fields."""

    profile_id: str
    kind: str
    table: Json
    extra_data: str


@dataclass
class FinishRegistration(_Decision):
    """Declare the registration of jobs finished."""


@dataclass
class ForceStop(_Decision):
    """End the simulation at once."""
