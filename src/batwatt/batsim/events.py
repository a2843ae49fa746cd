"""Events of Batsim and decisions of a scheduler, as objects; a dialect (`batsim4.py`) writes them as JSON.

Engine and `Bs` use only these. They are plain classes, as mypyc compiles no dataclass's constructor. Times are in s as
the scheduler gets them, rounded to 1e-6 s; names are Batsim's.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, final

from mypy_extensions import mypyc_attr

from batwatt.model import hostset

Json = Mapping[str, Any]
NO_MORE_JOBS: Final = "no_more_static_job_to_submit"
NO_MORE_EVENTS: Final = "no_more_external_event_to_occur"


@mypyc_attr(allow_interpreted_subclasses=True)
class Event:
    """An event at `time`."""

    __slots__ = ("time",)

    def __init__(self, time: float) -> None:
        self.time = time


@mypyc_attr(allow_interpreted_subclasses=True)
class Decision:
    """A decision of the scheduler at `time`."""

    __slots__ = ("time",)

    def __init__(self, time: float) -> None:
        self.time = time


@final
class Message:
    """A message of Batsim: its present time, and the events since its last message."""

    __slots__ = ("events", "now")

    def __init__(self, now: float, events: list[Event]) -> None:
        self.now = now
        self.events = events


@final
class Reply:
    """The scheduler's answer to a message: the time until which it was busy, and its decisions in order of time."""

    __slots__ = ("decisions", "now")

    def __init__(self, now: float, decisions: list[Decision]) -> None:
        self.now = now
        self.decisions = decisions


# events ---------------------------------------------------------------------------------------------------------------


@final
class SimulationBegins(Event):
    """The begin; `data`: platform, workloads, profiles and options, as in Batsim's protocol."""

    __slots__ = ("data",)

    def __init__(self, time: float, data: dict[str, Any]) -> None:
        self.time = time
        self.data = data


@final
class SimulationEnds(Event):
    """The end of the simulation."""

    __slots__ = ()


@final
class JobSubmitted(Event):
    """A submission; `job`: the JSON of the job; `profile`: that of its profile if profiles are forwarded."""

    __slots__ = ("job", "job_id", "profile")

    def __init__(self, time: float, job_id: str, job: Json, profile: Json | None) -> None:
        self.time = time
        self.job_id = job_id
        self.job = job
        self.profile = profile


@final
class JobCompleted(Event):
    """The end of a run; `state` is Batsim's name for its outcome."""

    __slots__ = ("alloc", "job_id", "return_code", "state")

    def __init__(self, time: float, job_id: str, state: str, return_code: int, alloc: Any) -> None:
        self.time = time
        self.job_id = job_id
        self.state = state
        self.return_code = return_code
        self.alloc = alloc


@final
class JobKilled(Event):
    """A kill; jobs without `progress` ended before it."""

    __slots__ = ("job_ids", "progress")

    def __init__(self, time: float, job_ids: list[str], progress: dict[str, Any]) -> None:
        self.time = time
        self.job_ids = job_ids
        self.progress = progress


@final
class ResourceStateChanged(Event):
    """The arrival of hosts (an interval string) in a p-state."""

    __slots__ = ("resources", "state")

    def __init__(self, time: float, resources: str, state: str) -> None:
        self.time = time
        self.resources = resources
        self.state = state


@final
class Notified(Event):
    """A NOTIFY of Batsim: the end of a source of events, a change of available hosts, or a user's event (`data`)."""

    __slots__ = ("data", "kind")

    def __init__(self, time: float, kind: str, data: dict[str, Any]) -> None:
        self.time = time
        self.kind = kind
        self.data = data


@final
class Answer(Event):
    """The answer to a query: the consumed energy in J, None for another query."""

    __slots__ = ("energy_j",)

    def __init__(self, time: float, energy_j: float | None) -> None:
        self.time = time
        self.energy_j = energy_j


@final
class RequestedCall(Event):
    """A call that the scheduler requested."""

    __slots__ = ()


@final
class FromJobMessage(Event):
    """A message of a job."""

    __slots__ = ("job_id", "message")

    def __init__(self, time: float, job_id: str, message: Any) -> None:
        self.time = time
        self.job_id = job_id
        self.message = message


@final
class ResourcesOffered(Event):
    """Hosts (an interval string) that become usable for the scheduler, or unusable (`added` is False)."""

    __slots__ = ("added", "resources")

    def __init__(self, time: float, resources: str, added: bool) -> None:
        self.time = time
        self.resources = resources
        self.added = added


# decisions ------------------------------------------------------------------------------------------------------------


@final
class ExecuteJob(Decision):
    """Start a job on hosts; `mapping`: executor -> index in the sorted hosts; `storage`: members for I/O."""

    __slots__ = ("alloc", "job_id", "mapping", "storage")

    def __init__(self, time: float, job_id: str, alloc: Any, mapping: Any = None, storage: Json | None = None) -> None:
        self.time = time
        self.job_id = job_id
        self.alloc = alloc
        self.mapping = mapping
        self.storage = storage


@final
class KillJob(Decision):
    """Kill running jobs."""

    __slots__ = ("job_ids",)

    def __init__(self, time: float, job_ids: Sequence[str]) -> None:
        self.time = time
        self.job_ids = job_ids


@final
class RejectJob(Decision):
    """Reject a waiting job."""

    __slots__ = ("job_id",)

    def __init__(self, time: float, job_id: str) -> None:
        self.time = time
        self.job_id = job_id


@final
class SetResourceState(Decision):
    """Change the p-state of hosts (a set of them or an interval string)."""

    __slots__ = ("resources", "state")

    def __init__(self, time: float, resources: Any, state: Any) -> None:
        self.time = time
        self.resources = resources
        self.state = state


@final
class CallMeLater(Decision):
    """Call the scheduler at a time in s."""

    __slots__ = ("at",)

    def __init__(self, time: float, at: float) -> None:
        self.time = time
        self.at = at


@final
class Query(Decision):
    """Request the consumed energy, the only request that Batsim supports."""

    __slots__ = ("requests",)

    def __init__(self, time: float, requests: Json) -> None:
        self.time = time
        self.requests = requests


@final
class Notify(Decision):
    """Declare `registration_finished` or `continue_registration`."""

    __slots__ = ("kind",)

    def __init__(self, time: float, kind: Any) -> None:
        self.time = time
        self.kind = kind


@final
class RegisterProfile(Decision):
    """Add a profile to a workload."""

    __slots__ = ("name", "profile", "workload")

    def __init__(self, time: float, workload: str, name: str, profile: Json) -> None:
        self.time = time
        self.workload = workload
        self.name = name
        self.profile = profile


@final
class RegisterJob(Decision):
    """Submit a job; `job`: its JSON."""

    __slots__ = ("job", "job_id")

    def __init__(self, time: float, job_id: str, job: Json) -> None:
        self.time = time
        self.job_id = job_id
        self.job = job


@final
class SetJobMetadata(Decision):
    """Set the metadata of a job in its row of the results."""

    __slots__ = ("job_id", "metadata")

    def __init__(self, time: float, job_id: str, metadata: Any) -> None:
        self.time = time
        self.job_id = job_id
        self.metadata = metadata


@final
class ToJobMessage(Decision):
    """Send a message to a job."""

    __slots__ = ("job_id", "message")

    def __init__(self, time: float, job_id: str, message: Any) -> None:
        self.time = time
        self.job_id = job_id
        self.message = message


@final
class ChangeJobState(Decision):
    """Declare a job to be in a state of Batsim's."""

    __slots__ = ("job_id", "state")

    def __init__(self, time: float, job_id: str, state: str) -> None:
        self.time = time
        self.job_id = job_id
        self.state = state


@final
class Requests:
    """The pending requests. An ignored request is tracked, too, and takes the next one's place, as in Batsim."""

    def __init__(self) -> None:
        self._waiting: dict[int, list[list[int]]] = {}
        """P-state -> requests, oldest first: hosts that are not in it yet, all hosts."""

    def add(self, mask: int, state: int) -> None:
        """Add a request to bring hosts to a p-state."""
        self._waiting.setdefault(state, []).append([mask, mask])

    def arrived(self, mask: int, state: int) -> list[str]:
        """Remove hosts in a p-state from its requests, oldest first; return the hosts of each complete request."""
        waiting = self._waiting.get(state, [])
        complete: list[tuple[int, list[int]]] = []
        for request in waiting:
            ticked = request[0] & mask
            if ticked:
                request[0] &= ~ticked
                mask &= ~ticked
                if not request[0]:
                    complete.append((ticked.bit_length(), request))
        # Batsim iterates over the hosts: a request is complete with its last host
        complete.sort()
        for _, request in complete:
            waiting.remove(request)
        return [hostset.to_text(request[1]) for _, request in complete]
