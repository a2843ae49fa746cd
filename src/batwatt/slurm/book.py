"""The book of a session: tasks, requested calls, and the p-states of hosts, by its exchanges with the scheduler."""

from __future__ import annotations

import heapq
import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from batwatt.batsim import events as ev
from batwatt.errors import IllegalDecisionError
from batwatt.model import hostset
from batwatt.model.platform import Platform
from batwatt.protocol.events import EVENT_VALUE

WORKLOAD = "slurm"
Status = Literal["waiting", "void", "starting", "killing", "aside", "over"]
_ID = re.compile(rf"{WORKLOAD}!(\d+(?:_\d+)?)(?:@(\d+))?(?:#\d+)?")


@dataclass(slots=True)
class SlurmAttempt:
    """An attempt of a Slurm job under its name for the scheduler.

    `waiting`: announced; `void`: it cannot start any more, which the scheduler learns when it starts it; `starting`:
    started by the scheduler, until it ends; `killing`; `aside`: rejected; `over`.
    """

    id: str
    number: str
    hosts: int
    status: Status = "waiting"
    mask: int = 0
    metadata: str = ""
    # the rest is of this process only
    launched_s: float = -1.0
    """Time of the release in Slurm, monotonic, in s; below 0: not released."""
    restarts: int = -1
    """Number of times that Slurm had put it back into the queue before its first release; -1: none was tried."""
    began_s: float = -1.0
    """Begin of its run in Slurm, in s since 1970; below 0: not yet."""
    requested: bool = False
    """True if the command that the status needs was sent to Slurm."""
    signalled_s: float = -1.0
    retry_s: float = 0.0
    """Time before which no command is sent, monotonic, in s."""


class Book:
    """The tasks by id, the requested calls, and the p-states of the hosts."""

    def __init__(self, platform: Platform) -> None:
        self.platform = platform
        self.everyone = hostset.span(0, len(platform) - 1)
        self.tasks: dict[str, SlurmAttempt] = {}
        self.present: dict[str, SlurmAttempt] = {}
        """The last attempt of each Slurm job, by its number."""
        self.generations: dict[str, int] = {}
        self.shapes: dict[str, tuple[int, float]] = {}
        """Nodes and walltime in s of each job as it was announced last."""
        self.calls: list[float] = []
        self.pstate = [host.initial_pstate for host in platform.hosts]
        """The p-state of the last request for each host."""
        self.switching = 0
        """Hosts on their way to the p-state of their last request."""
        self.requested = 0
        """Hosts for which the scheduler has requested a p-state."""
        self.requests: list[tuple[int, int]] = []
        """Hosts and p-state of each request that was not acknowledged."""
        self.away = 0
        """The hosts that the scheduler knows to be out of service."""
        self.sent: tuple[float, float] = (math.nan, -math.inf)
        """Last value in W of the envelope that was sent, and its time in s."""
        self.queries = 0
        self.killed: set[str] = set()
        """Numbers of killed jobs that the scheduler may submit again."""

    def tell(self, events: Iterable[ev.Event]) -> None:
        """Apply events."""
        for event in events:
            if isinstance(event, ev.JobSubmitted):
                raw, number = event.job, number_of(event.job_id)
                self.shapes[number] = (raw["res"], raw.get("walltime", -1))
                self._add(SlurmAttempt(event.job_id, number, raw["res"]))
            elif isinstance(event, ev.JobCompleted):
                self._end(self.tasks[event.job_id], event.state == "COMPLETED_KILLED")
            elif isinstance(event, ev.RequestedCall):
                heapq.heappop(self.calls)
            elif isinstance(event, ev.ResourceStateChanged):
                mask, state = hostset.from_text(event.resources), int(event.state)
                self.requests = _nonempty(
                    (hosts & ~(mask if goal == state else 0), goal) for hosts, goal in self.requests
                )
                self.switching &= ~mask
            elif isinstance(event, ev.Answer):
                self.queries = 0
            elif isinstance(event, ev.Notified):
                self._notified(event)

    def complete(self, arrived: int) -> list[tuple[int, int]]:
        """Return hosts and p-state of each request whose hosts have arrived, but for those that are out of service.

        Batsim acknowledges a request when all of its hosts are there; here some may never be.
        """
        present = _nonempty((hosts & ~self.away, state) for hosts, state in self.requests)
        return [(hosts, state) for hosts, state in present if not hosts & ~arrived]

    def _notified(self, event: ev.Notified) -> None:
        if event.kind == "event_machine_unavailable":
            self.away |= hostset.from_text(event.data["resources"])
        elif event.kind == "event_machine_available":
            self.away &= ~hostset.from_text(event.data["resources"])
        else:
            self.sent = (float(event.data[EVENT_VALUE]), event.time)

    def _add(self, task: SlurmAttempt) -> None:
        self.tasks[task.id] = self.present[task.number] = task
        match = _ID.fullmatch(task.id)
        if match is not None and match[2]:
            self.generations[task.number] = max(self.generations.get(task.number, 1), int(match[2]))
        self.generations.setdefault(task.number, 1)
        self.killed.discard(task.number)

    def _end(self, task: SlurmAttempt, killed: bool) -> None:
        if killed and task.status == "killing":
            self.killed.add(task.number)
        task.status, task.mask = "over", 0
        # a finished task is not looked up again, and a year has many
        del self.tasks[task.id]

    def forget(self, number: str) -> None:
        """Forget a job that Slurm no longer has."""
        for rows in (self.present, self.generations, self.shapes):
            rows.pop(number, None)
        self.killed.discard(number)

    def next_id(self, number: str) -> str:
        """Return the name under which a job is announced next."""
        generation = self.generations.get(number, 0) + 1
        return f"{WORKLOAD}!{number}" + (f"@{generation}" if generation > 1 else "")

    def decide(self, decisions: Sequence[ev.Decision]) -> None:
        """Apply decisions. Raises IllegalDecisionError for one that no scheduler may take."""
        for decision in decisions:
            if isinstance(decision, ev.ExecuteJob):
                self._execute(decision)
            elif isinstance(decision, ev.KillJob):
                for job_id in decision.job_ids:
                    self._kill(job_id)
            elif isinstance(decision, ev.RejectJob):
                task = self._task("REJECT_JOB", decision.job_id)
                task.status = "over" if task.status == "void" else "aside"
                del self.tasks[task.id]
            elif isinstance(decision, ev.CallMeLater):
                heapq.heappush(self.calls, decision.at)
            elif isinstance(decision, ev.SetResourceState):
                self._switch(decision)
            elif isinstance(decision, ev.RegisterJob):
                self._register(decision)
            elif isinstance(decision, ev.SetJobMetadata):
                if decision.job_id in self.tasks:
                    self.tasks[decision.job_id].metadata = str(decision.metadata)
            elif isinstance(decision, ev.Query):
                if list(decision.requests) != ["consumed_energy"]:
                    why = f"only consumed_energy can be asked for, got {decision.requests!r}"
                    raise IllegalDecisionError("QUERY", why)
                self.queries += 1
            elif not isinstance(decision, ev.Notify | ev.RegisterProfile):
                raise IllegalDecisionError(type(decision).__name__, "a real Slurm cannot do it")

    def _task(self, what: str, job_id: str, *allowed: Status) -> SlurmAttempt:
        task = self.tasks.get(job_id)
        if task is None:
            raise IllegalDecisionError(f"{what} {job_id}", "there is no such job (or its end was already announced)")
        if task.status not in (allowed or ("waiting", "void")):
            raise IllegalDecisionError(f"{what} {job_id}", f"the job is {task.status}")
        return task

    def _execute(self, decision: ev.ExecuteJob) -> None:
        what = f"EXECUTE_JOB {decision.job_id}"
        task = self._task("EXECUTE_JOB", decision.job_id)
        mask, _ = _numbers(what, decision.alloc)
        if mask & ~self.everyone or mask.bit_count() != task.hosts:
            why = f"takes {task.hosts} of the hosts 0-{len(self.platform) - 1}, got {decision.alloc}"
            raise IllegalDecisionError(what, why)
        busy = mask & self.busy
        if busy:
            raise IllegalDecisionError(what, f"host {hostset.to_text(busy)} runs another job of the scheduler")
        asleep = hostset.of_ids([i for i in hostset.ids(mask) if self.pstate[i] in self.platform.hosts[i].sleep_of])
        if (asleep | self.switching) & mask:
            raise IllegalDecisionError(what, f"host {hostset.to_text((asleep | self.switching) & mask)} is not on")
        if task.status == "waiting":
            task.status = "starting"
        task.mask = mask

    @property
    def busy(self) -> int:
        """Hosts of the jobs that the scheduler has started."""
        mask = 0
        for task in self.tasks.values():
            mask |= task.mask
        return mask

    def _kill(self, job_id: str) -> None:
        if job_id not in self.tasks and number_of(job_id) in self.present:
            return  # it ended while the scheduler decided
        task = self._task("KILL_JOB", job_id, "starting", "killing", "void")
        if task.status == "starting":
            task.status, task.requested = "killing", False

    def _switch(self, decision: ev.SetResourceState) -> None:
        what = f"SET_RESOURCE_STATE {decision.resources} -> {decision.state}"
        mask, target = _numbers(what, decision.resources, decision.state)
        if not mask or mask & ~self.everyone:
            raise IllegalDecisionError(what, f"hosts are 0-{len(self.platform) - 1}")
        for i in hostset.ids(mask):
            host = self.platform.hosts[i]
            if not 0 <= target < len(host.pstates) or target in host.virtual:
                raise IllegalDecisionError(what, f"{host.name} cannot be asked for this p-state")
            if target in host.sleep_of and self.busy >> i & 1:
                raise IllegalDecisionError(what, f"{host.name} runs a job; kill or wait before it sleeps")
            self.pstate[i] = target
        # a new request takes its hosts out of earlier ones
        self.requests = [*_nonempty((hosts & ~mask, state) for hosts, state in self.requests), (mask, target)]
        self.switching |= mask
        self.requested |= mask

    def _register(self, decision: ev.RegisterJob) -> None:
        number = number_of(decision.job_id)
        if number not in self.killed or decision.job.get("res") != self.shapes[number][0]:
            problem = "only the next attempt of a job that was killed can be made, with as many hosts"
            raise IllegalDecisionError(f"REGISTER_JOB {decision.job_id}", problem)
        self._add(SlurmAttempt(decision.job_id, number, int(decision.job["res"])))


def _nonempty(requests: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    return [request for request in requests if request[0]]


def _numbers(what: str, hosts: Any, state: Any = 0) -> tuple[int, int]:
    """Return the mask and the p-state of a decision. Raises IllegalDecisionError."""
    try:
        return hostset.HostSet.of(hosts).mask, int(state)
    except (TypeError, ValueError) as error:
        raise IllegalDecisionError(what, str(error)) from None


def number_of(job_id: str) -> str:
    """Return the number of the Slurm job that a scheduler knows by this name."""
    match = _ID.fullmatch(job_id)
    if match is None:
        raise IllegalDecisionError(job_id, "is no job of Slurm")
    return match[1]
