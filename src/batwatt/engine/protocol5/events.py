"""What Batsim 5 reports and what its scheduler decides, beyond what Batsim 4 has (`engine/events.py`)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from batwatt.engine.events import NO_MORE_EVENTS, NO_MORE_JOBS, Decision, Event, Json

JSON_FLAG = 2
"""What the answer to the first frame must say: messages are JSON."""
CODES = 2**32
"""Return codes are unsigned in 32 bits."""
NOTICES = {
    NO_MORE_JOBS: "AllStaticJobsHaveBeenSubmittedEvent",
    NO_MORE_EVENTS: "AllStaticExternalEventsHaveBeenInjectedEvent",
}
"""NOTIFY of Batsim 4 -> event of Batsim 5."""


@dataclass
class _Event(Event):
    # the descriptor of the compiled class would be taken for a default
    time: float = field()


@dataclass
class _Decision(Decision):
    time: float = field()


# events ---------------------------------------------------------------------------------------------------------------


@dataclass
class Called(_Event):
    """A time has come that the scheduler asked to be called at; `last`: it is the last of a finite number of calls."""

    call_id: str
    last: bool = False


@dataclass
class ProbeData(_Event):
    """Energy in J since 0 of a probe's hosts: of each of them, or one number for all."""

    probe_id: str
    hosts: str
    value: float | list[float]


@dataclass
class ExternalEvent(_Event):
    """A generic event of a user's file."""

    event_id: str
    data: str


@dataclass
class HostsPStateChanged(_Event):
    """The p-state of hosts (an interval string) was changed at once."""

    hosts: str
    pstate: int


@dataclass
class JobsKilled(_Event):
    """A kill was carried out; `progress` and `profiles` (those that are asked for) as Batsim sends them."""

    job_ids: Sequence[str]
    progresses: list[Json]
    profiles: list[Json] | None


# decisions ------------------------------------------------------------------------------------------------------------


@dataclass
class Features:
    """What the scheduler asks for in its hello."""

    dynamic_registration: bool = False
    profile_reuse: bool = False
    acknowledge_dynamic_jobs: bool = False
    forward_profiles_on_job_submission: bool = False
    forward_profiles_on_jobs_killed: bool = False
    forward_profiles_on_simulation_begins: bool = False


@dataclass
class Place:
    """Hosts, and where the executors go: a predefined strategy, or indices into the sorted hosts."""

    hosts: str
    executors: str | Sequence[int]


@dataclass
class Execute(_Decision):
    """Start a job; parts of its profile may run elsewhere (`overrides`: by the id of the profile)."""

    job_id: str
    place: Place
    overrides: Mapping[str, Place] = field(default_factory=dict)
    storage: Sequence[Any] = ()


@dataclass
class Period:
    """Every so many ms, at most `count` times."""

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
    """Measure energy; `period` None: once. `refused` says what of it Batsim does not do, and fails on when due."""

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
    """Switch hosts off (a sleep p-state) or on (one that computes)."""

    hosts: str
    pstate: int


@dataclass
class ChangePState(_Decision):
    """Change the p-state of hosts at once."""

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
    """No more jobs will be registered."""


@dataclass
class ForceStop(_Decision):
    """End the simulation at once."""
