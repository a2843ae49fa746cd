"""The bridge between Slurm and a scheduler, and the commands that bring Slurm to the state in the book.

Nothing is remembered but by the book and by Slurm: after a restart the same comparison goes on.
"""

from __future__ import annotations

import logging
import math
import shlex
import subprocess
import time
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from batwatt.batsim import events as ev
from batwatt.batsim.batsim4 import EngineConfig
from batwatt.engine.machines import Machines
from batwatt.errors import IllegalDecisionError, InputError
from batwatt.model import hostset
from batwatt.protocol.events import EVENT_TYPE, EVENT_VALUE
from batwatt.slurm.account import Account, Feed, PowerMeter, watts_of
from batwatt.slurm.book import WORKLOAD, Book, Journal, SlurmAttempt, same_decisions
from batwatt.slurm.commands import (
    ENDED,
    HELD_BY_USER,
    SWITCHES,
    SlurmCommands,
    SlurmError,
    SlurmJob,
    SlurmNode,
    SlurmSilentError,
    Snapshot,
)

_log = logging.getLogger(__name__)
AGAIN_S = 10.0
"""Pause in s before a command without effect is repeated."""


@dataclass(frozen=True)
class KillRule:
    """Rule for a job that the scheduler kills: `requeue` on hold, `cancel`, or a signal and then requeue.

    A script that leaves with exit code 0 after the signal has finished; with another one, or after `grace_s` real
    seconds, it is put back into the queue, on hold.
    """

    what: str = "requeue"
    grace_s: float = 60.0

    @classmethod
    def of(cls, text: str, grace_s: float) -> KillRule:
        """Return the rule for `requeue`, `cancel` or `signal=USR1`. Raises InputError."""
        if text in ("requeue", "cancel"):
            return cls(text, grace_s)
        name = text.removeprefix("signal=")
        if name == text or not name.removeprefix("SIG").isalnum():
            raise InputError("--kill", f"{text!r} is no rule", "write requeue, cancel, or signal=USR1")
        return cls(name.removeprefix("SIG"), grace_s)

    @property
    def again(self) -> bool:
        """True if a killed job is put back into the queue."""
        return self.what != "cancel"

    @property
    def signal(self) -> str:
        """The name of the signal; empty without one."""
        return "" if self.what in ("requeue", "cancel") else self.what


class Actions:
    """Commands that bring jobs and nodes to the state in the book."""

    def __init__(
        self, machine: SlurmCommands, book: Book, kill: KillRule, pstate_command: str, note: Callable[..., None]
    ) -> None:
        self._machine = machine
        self._book = book
        self._kill = kill
        self._pstate_command = shlex.split(pstate_command)
        self._note = note
        self._next_s: dict[str, float] = {}
        self._pstates: dict[int, int] = {}
        self.purpose = ""
        """Purpose of the present command."""

    def act(self, snapshot: Snapshot, own: int) -> None:
        """Request missing changes; `own`: the hosts that are not out of service. Raises SlurmSilentError."""
        for task in list(self._book.present.values()):
            job = snapshot.jobs.get(task.number)
            if job is not None:
                self.purpose = task.id
                try:
                    self._job(task, job)
                except SlurmSilentError:
                    raise
                except SlurmError as error:
                    self._refused(task, error)
        self.purpose = "nodes"
        self._nodes(snapshot, own)

    def _refused(self, task: SlurmAttempt, error: SlurmError) -> None:
        """Note a command that Slurm refuses: fail a start, repeat anything else after `AGAIN_S`."""
        if task.status == "starting":
            task.requested = True
        else:
            task.retry_s = time.monotonic() + AGAIN_S
        self._note("failed", job=task.id, why=str(error))
        _log.warning("%s: %s", task.id, error)

    def _job(self, task: SlurmAttempt, job: SlurmJob) -> None:
        machine, now_s = self._machine, time.monotonic()
        if now_s < task.retry_s:
            return
        if task.status == "starting" and task.launched_s < 0.0 and job.waiting:
            machine.launch(job, [self._book.platform.hosts[i].name for i in hostset.ids(task.mask)])
            task.launched_s, task.restarts = now_s, job.restarts
        elif task.status == "aside" and not task.requested and job.waiting:
            machine.comment(task.number, task.metadata or "the scheduler rejects it")
            task.requested = True
        elif task.status == "killing":
            self._end(task, job, now_s)

    def _end(self, task: SlurmAttempt, job: SlurmJob, now_s: float) -> None:
        machine, rule = self._machine, self._kill
        if job.waiting:
            if not job.held:
                # released, but not begun
                machine.hold(task.number)
        elif job.ended:
            if rule.signal and task.signalled_s >= 0.0 and job.exit_code and not task.requested:
                machine.requeue_held(job)
                task.requested = True
        elif rule.signal and task.signalled_s < 0.0:
            machine.signal(task.number, rule.signal)
            task.signalled_s = now_s
        elif not task.requested and (not rule.signal or now_s - task.signalled_s > rule.grace_s):
            if rule.again:
                machine.requeue_held(job)
            else:
                machine.cancel(task.number)
            task.requested = True

    def requeues(self, task: SlurmAttempt, job: SlurmJob) -> bool:
        """Return whether a job that ended after its signal is on its way back into the queue."""
        waits_s = self._kill.grace_s + AGAIN_S
        return bool(task.signalled_s >= 0.0 and job.exit_code and time.monotonic() - task.signalled_s < waits_s)

    # nodes ------------------------------------------------------------------------------------------------------

    def wanted(self, host: int) -> bool:
        """Return whether a host should be on."""
        return self._book.pstate[host] not in self._book.platform.hosts[host].sleep_of

    def reached(self, host: int, node: SlurmNode) -> bool:
        """Return whether a host is in the p-state of its last request."""
        if not self.wanted(host):
            return node.off and node.drained
        return (
            node.up and not node.marked and self._pstates.get(host, self._book.pstate[host]) == self._book.pstate[host]
        )

    def _nodes(self, snapshot: Snapshot, own: int) -> None:
        changes: dict[str, list[str]] = {}
        now_s = time.monotonic()
        for i, host in enumerate(self._book.platform.hosts):
            node = snapshot.nodes[host.name]
            what = self._missing(i, node) if own >> i & 1 else ""
            if what and now_s >= self._next_s.get(host.name + what, 0.0):
                self._next_s[host.name + what] = now_s + AGAIN_S
                changes.setdefault(what, []).append(host.name)
            if own >> i & 1 and node.up and self.wanted(i) and now_s >= self._next_s.get(host.name + "pstate", 0.0):
                self._next_s[host.name + "pstate"] = now_s + (AGAIN_S if not self._set_pstate(i) else 0.0)
        for what in SWITCHES:
            if what in changes:
                try:
                    self._machine.switch(what, changes[what])
                except SlurmSilentError:
                    raise
                except SlurmError as error:
                    self._note("failed", nodes=changes[what], why=str(error))
                    _log.warning("%s: %s", what, error)

    def _missing(self, i: int, node: SlurmNode) -> str:
        """Return the next change of a node; empty if there is none."""
        if self.wanted(i):
            if node.marked:
                return "undrain"
            return "power_up" if node.off else ""
        if node.off or "powering_down" in node.flags:
            # Slurm forgets a drain that comes before it begins to power down, and wakes nodes that are not drained
            return "" if node.drained else "drain"
        return "" if node.switching_off or node.switching_on or node.busy else "power_down"

    def _set_pstate(self, i: int) -> bool:
        """Run the command for a p-state, if it is another one than before; return whether it is set."""
        target = self._book.pstate[i]
        host = self._book.platform.hosts[i]
        if self._pstate_command and self._pstates.get(i, host.initial_pstate) != target:
            words = [
                word.replace("{node}", host.name).replace("{pstate}", str(target)) for word in self._pstate_command
            ]
            try:
                subprocess.run(words, stdin=subprocess.DEVNULL, capture_output=True, timeout=30.0, check=True)
            except (OSError, subprocess.SubprocessError) as error:
                self._note("failed", node=host.name, pstate=target, why=str(error))
                _log.warning("--pstate-command %s: %s", " ".join(words), error)
                return False
            self._note("pstate", node=host.name, pstate=target)
        self._pstates[i] = target
        return True

    def restore(self) -> None:
        """Set the p-states that hosts had at the beginning."""
        for i in list(self._pstates):
            self._book.pstate[i] = self._book.platform.hosts[i].initial_pstate
            self._set_pstate(i)


TRIES = 3
PORTION = 50
"""Most jobs that are announced at a poll: each takes two commands, and the power is watched between polls."""
STEP_S = 300.0
"""Period of an unchanged envelope, in s of the session."""
LOOKS = 2
"""Consecutive polls that must agree before a host leaves service or returns."""
SILENT_S = 60.0
"""The longest pause between attempts to reach Slurm, in s."""
SKIPPED_S = 60.0
"""Pause in s after a take-over that Slurm refuses."""
LAUNCH_S = 300.0
"""Longest time of a start, in s."""
TOTALS_S = 60.0
"""Period in real s in which the totals are written down for a restart."""
TIRED_S = 3600.0
"""Time in s for which a job is left alone after `TRIES` starts that failed."""
UNLIMITED_S = 7 * 86_400.0
"""Length in s of the profile of a job without a time limit."""


@dataclass
class SessionClock:
    """Times of a session in s: real ones times `speed`, from a date in s since 1970 on; never backwards."""

    begin_s: float
    speed: float = 1.0
    passed_s: float = 0.0
    _began: float = field(default_factory=time.monotonic)

    def now_s(self) -> float:
        """Return the time of the session, with the precision of Batsim's texts."""
        return round(self.passed_s + (time.monotonic() - self._began) * self.speed, 6)

    def of_date(self, date_s: float) -> float:
        """Return the time of the session at a date."""
        return (date_s - self.begin_s) * self.speed


@dataclass
class Watched:
    """Hosts as this process has seen them: masks, and the number of looks for which each was otherwise."""

    out: int = 0
    changed: dict[int, int] = field(default_factory=dict)

    def look(self, out: int, everyone: int) -> int:
        """Return the hosts that are out of service, when these look so."""
        differs = out ^ self.out
        for i in hostset.ids(everyone):
            if not differs >> i & 1:
                self.changed.pop(i, None)
                continue
            self.changed[i] = self.changed.get(i, 0) + 1
            if self.changed[i] >= LOOKS:
                self.out ^= 1 << i
                del self.changed[i]
        return self.out


@dataclass
class Bridge:
    """A `Link` for the scheduler. `once`: the session ends when no job is left; else never.

    `tells`: send the envelope to the scheduler; `past`: exchanges of the session that goes on; `poll_s` in real
    seconds.
    """

    machine: SlurmCommands
    book: Book
    actions: Actions
    journal: Journal
    account: Account
    feed: Feed | None
    meter: PowerMeter
    clock: SessionClock
    poll_s: float
    once: bool
    tells: bool
    past: deque[tuple[ev.Message, ev.Reply]]
    ended: bool = False
    polls: int = 0
    polling_s: float = 0.0
    _begun: bool = False
    _message: ev.Message = field(default_factory=lambda: ev.Message(0.0, []))
    _snapshot: Snapshot | None = None
    _next_poll_s: float = 0.0
    _pause_s: float = 0.0
    _watched: Watched = field(default_factory=Watched)
    _settled: bool = False
    _tries: dict[str, int] = field(default_factory=dict)
    """Starts that failed, by the number of the job."""
    _skipped: dict[str, float] = field(default_factory=dict)
    """Time at which a job is looked at again, monotonic."""
    _totals_s: float = field(default_factory=time.monotonic)

    def __post_init__(self) -> None:
        self._pause_s = self.poll_s

    # the protocol -----------------------------------------------------------------------------------------------

    def message(self) -> ev.Message:
        """Wait until there is something to tell; return the message. Raises SlurmError if Slurm cannot be read."""
        if self.past:
            message = self.past[0][0]
        elif not self._begun:
            message = ev.Message(0.0, [ev.SimulationBegins(0.0, self._begins())])
        else:
            message = self._next()
        self._begun = True
        self.book.tell(message.events)
        self._message = message
        return message

    def reply(self, reply: ev.Reply) -> None:
        """Write the reply down, then carry it out. Raises IllegalDecisionError, InputError if a resumed one differs."""
        if self.past:
            _, before = self.past.popleft()
            if not same_decisions(reply, before):
                problem = f"the scheduler decides otherwise than it did at {before.now:g} s, so it cannot be resumed"
                raise InputError(self.journal.path, problem, "give the same options, or --fresh")
            self.book.decide(before.decisions)
            if not self.past:
                # hosts out of service were reported by the process before
                self._watched.out = self.book.away
            return
        self.journal.exchange(self._message, reply)
        if self.ended:
            return
        self.book.decide(reply.decisions)
        if reply.decisions and self._snapshot is not None:
            try:
                self._act(self._snapshot)
            except SlurmError as error:
                # the next poll repeats what is missing
                self._wait_longer(error)

    def _begins(self) -> dict[str, Any]:
        config = EngineConfig(dynamic_jobs=True, profile_reuse=True, forward_profiles=True, forward_unknown_events=True)
        hosts = Machines(self.book.platform).payload()
        return config.begins(hosts, {WORKLOAD: str(self.journal.path)}, {WORKLOAD: {}})

    # time -------------------------------------------------------------------------------------------------------

    def _next(self) -> ev.Message:
        """Poll until something has happened."""
        while True:
            now_s = self.clock.now_s()
            events: list[ev.Event] = []
            if self.book.queries:
                events.append(ev.Answer(now_s, self.account.energy.joules))
            if time.monotonic() >= self._next_poll_s:
                try:
                    events += self._poll(now_s)
                    if self._pause_s > self.poll_s:
                        self.journal.write("note", what="Slurm answers again")
                    self._pause_s = self.poll_s
                    self._next_poll_s = time.monotonic() + self._pause_s
                except SlurmError as error:
                    self._wait_longer(error)
            due = [call for call in self.book.calls if call <= now_s]
            events += [ev.RequestedCall(now_s) for _ in due]
            if events and self._snapshot is not None:
                return ev.Message(now_s, events)
            if self.once and self._snapshot is not None and self._all_over(self._snapshot):
                self.ended = True
                return ev.Message(now_s, [ev.SimulationEnds(now_s)])
            call_s = ((self.book.calls[0] if self.book.calls else math.inf) - now_s) / self.clock.speed
            time.sleep(max(0.001, min(self._next_poll_s - time.monotonic(), call_s if self._snapshot else math.inf)))

    def _wait_longer(self, error: SlurmError) -> None:
        """Drop the snapshot after an error of Slurm and double the pause before the next poll, up to `SILENT_S`."""
        if self._pause_s == self.poll_s:
            _log.warning("%s; trying again", error)
            self.journal.write("note", what="Slurm is silent", why=str(error))
        self._pause_s = min(SILENT_S, 2.0 * self._pause_s)
        self._snapshot = None
        self._next_poll_s = time.monotonic() + self._pause_s

    def _all_over(self, snapshot: Snapshot) -> bool:
        left = any(task.status not in ("over", "aside") for task in self.book.present.values())
        return (
            bool(self.book.generations)
            and not left
            and not any(job.handed and not job.ended for job in snapshot.jobs.values())
        )

    def _poll(self, now_s: float) -> list[ev.Event]:
        """Read Slurm, request missing changes, and return the events. Raises SlurmError."""
        began = time.monotonic()
        snapshot = self.machine.read(self.book.present)
        events = [*self._hosts_changed(now_s, snapshot), *self._jobs(now_s, snapshot)]
        cap_w = None if self.feed is None else self.feed.value(now_s)
        last_w, last_s = self.book.sent
        # schedulers under an envelope decide at its steps only
        if self.tells and cap_w is not None and (cap_w != last_w or now_s - last_s >= STEP_S):
            data = {"type": EVENT_TYPE, "timestamp": now_s, EVENT_VALUE: cap_w}
            events.append(ev.Notified(now_s, EVENT_TYPE, data))
        self._snapshot = snapshot
        self._act(snapshot)
        self._measure(now_s, snapshot, cap_w)
        self.polls += 1
        self.polling_s += time.monotonic() - began
        return events

    def _act(self, snapshot: Snapshot) -> None:
        self.actions.act(snapshot, self.book.everyone & ~self._watched.out)

    def _measure(self, now_s: float, snapshot: Snapshot, cap_w: float | None) -> None:
        platform, account = self.book.platform, self.account
        real = self.machine.real
        watts = watts_of(platform, snapshot, self.book.pstate)
        standard = [host.compute[0] for host in platform.hosts]
        measured_w = self.meter.watts()
        slurm_w = watts if real is None else watts_of(platform, real, standard)
        if measured_w is not None:
            watts, slurm_w = (measured_w if real is None else watts), measured_w
        account.power(now_s, watts, slurm_w, cap_w)
        account.jobs(snapshot, self.book.present, real, self.clock.of_date)
        if time.monotonic() - self._totals_s >= TOTALS_S:
            self._totals_s = time.monotonic()
            self.journal.write("totals", totals=account.totals())

    # hosts ------------------------------------------------------------------------------------------------------

    def _hosts_changed(self, now_s: float, snapshot: Snapshot) -> Iterator[ev.Event]:
        book = self.book
        out = theirs = 0
        ours = {
            name
            for task in book.tasks.values()
            if task.status in ("starting", "killing") and (job := snapshot.jobs.get(task.number))
            for name in job.hosts
        }
        for i, host in enumerate(book.platform.hosts):
            name, node = host.name, snapshot.nodes[host.name]
            out |= node.broken << i
            # a node is still completing when its job has ended
            taken = bool(node.flags & {"allocated", "mixed"}) and name not in ours and not book.busy >> i & 1
            theirs |= taken << i
        if not self._settled:
            # what is off at the beginning is woken: the scheduler takes all hosts as on
            self._settled = True
            self._watched.out |= out | theirs
        now_out = self._watched.look(out | theirs, book.everyone)
        reached = hostset.of_ids(
            [i for i, host in enumerate(book.platform.hosts) if self.actions.reached(i, snapshot.nodes[host.name])]
        )
        # a host that left its state by itself is unavailable until it is back
        away = now_out | book.everyone & ~(book.switching | reached)
        for kind, mask in (("available", book.away & ~away), ("unavailable", away & ~book.away)):
            if mask:
                self.journal.write("note", what=kind, nodes=[book.platform.hosts[i].name for i in hostset.ids(mask)])
                data = {"type": f"event_machine_{kind}", "resources": hostset.to_text(mask)}
                yield ev.Notified(now_s, data["type"], data)
        for mask, state in book.complete(reached & ~now_out):
            yield ev.ResourceStateChanged(now_s, hostset.to_text(mask), str(state))

    # jobs -------------------------------------------------------------------------------------------------------

    def _jobs(self, now_s: float, snapshot: Snapshot) -> Iterator[ev.Event]:
        book = self.book
        for task in list(book.tasks.values()):
            if task.status == "void" and task.mask:
                yield self._completed(now_s, task, "COMPLETED_FAILED")
        for number, task in list(book.present.items()):
            job = snapshot.jobs.get(number)
            if task.status in ("waiting", "aside"):
                self._look_at_waiting(task, job, snapshot)
            elif task.status == "starting":
                yield from self._look_at_started(now_s, task, job, snapshot.time_s)
            elif task.status == "killing":
                yield from self._look_at_killed(now_s, task, job)
            if job is None and task.status == "over":
                book.forget(number)
                self._tries.pop(number, None)
                self._skipped.pop(number, None)
        announced = 0
        for job in sorted(snapshot.jobs.values(), key=lambda job: (job.submit_s, int(job.id), job.number)):
            present = book.present.get(job.number)
            if announced < PORTION and (present is None or present.status in ("over", "void")):
                for event in self._announce(now_s, job, snapshot):
                    announced += 1
                    yield event

    def _announce(self, now_s: float, job: SlurmJob, snapshot: Snapshot) -> Iterator[ev.Event]:
        number = job.number
        if not (job.handed and job.startable(snapshot.time_s)):
            return
        announced = number in self.book.present
        # nodes that a user asks for, and holds of others, are respected; on hold a user hands a job over, but only once
        ours = job.marked or number in self.book.killed
        if not ours and ((job.required and not announced) or (job.held and (announced or job.reason != HELD_BY_USER))):
            return
        if time.monotonic() < self._skipped.get(number, 0.0):
            return
        try:
            if self._tries.get(number, 0) >= TRIES:
                self._tries[number] = 0
                self._skipped[number] = time.monotonic() + TIRED_S
                self.machine.hold(number)
                self.machine.comment(number, f"not started in {TRIES} attempts, again in {TIRED_S / 3600.0:g} h")
                return
            self.actions.purpose = "announce"
            self.machine.hold(number)
        except SlurmError as error:
            self._skipped[number] = time.monotonic() + SKIPPED_S
            self.journal.write("note", what="not taken over", job=number, why=str(error))
            return
        walltime_s = job.limit_s * self.clock.speed
        lasts_s = min(walltime_s, UNLIMITED_S)
        # work, not a delay: hosts with jobs draw their full power, and slower p-states make jobs longer
        flops = round(lasts_s * self.book.platform.fastest_flops, 6)
        job_id = self.book.next_id(number)
        raw = {
            "id": job_id,
            "subtime": round(min(max(self.clock.of_date(job.submit_s), 0.0), now_s), 6),
            "walltime": round(walltime_s, 6) if walltime_s < math.inf else -1,
            "res": job.nodes,
            "profile": f"p{lasts_s:g}",
            "user": job.user,
        }
        yield ev.JobSubmitted(now_s, job_id, raw, {"type": "parallel_homogeneous", "cpu": flops, "com": 0.0})

    def _look_at_waiting(self, task: SlurmAttempt, job: SlurmJob | None, snapshot: Snapshot) -> None:
        """Void a waiting job that can no longer be started as it was announced."""
        shape = self.book.shapes.get(task.number)
        why = ""
        if job is None or job.ended:
            why = "ended before it was started"
        elif not job.waiting:
            why = "was started by Slurm or another user"
        elif not job.handed:
            try:
                self.machine.give_back(job)
            except SlurmError as error:
                self.journal.write("note", what="not given back", job=task.id, why=str(error))
                return
            why = "is no longer handed over"
        elif not job.held:
            why = "was released by another user"
        elif not job.startable(snapshot.time_s):
            why = "waits for something else than nodes"
        elif shape is not None and shape != (job.nodes, self._walltime_s(job)):
            why = "was changed"
        if why:
            self.journal.write("note", what="void", job=task.id, why=why)
            task.status = "over" if task.status == "aside" else "void"

    def _walltime_s(self, job: SlurmJob) -> float:
        return -1 if job.limit_s == math.inf else round(job.limit_s * self.clock.speed, 6)

    def _look_at_started(
        self, now_s: float, task: SlurmAttempt, job: SlurmJob | None, snapshot_s: float
    ) -> Iterator[ev.Event]:
        if job is None:
            # it ended so long ago that Slurm has forgotten it
            yield self._completed(now_s, task, "COMPLETED_SUCCESSFULLY")
        elif job.ended:
            yield self._completed(now_s, task, ENDED[job.state], job.exit_code)
        elif not job.waiting and not self._elsewhere(task, job):
            task.began_s = job.start_s
        elif not job.waiting:
            # Slurm chose other nodes, which count as taken
            yield self._failed(now_s, task, f"runs on {','.join(job.hosts)}, not where it should", tried=False)
        elif task.began_s >= 0.0 or (task.launched_s >= 0.0 and job.restarts > task.restarts):
            brief = task.began_s < 0.0 or snapshot_s - task.began_s < LAUNCH_S
            yield self._failed(now_s, task, f"was put back into the queue ({job.reason})", tried=brief)
        elif task.requested:
            yield self._failed(now_s, task, "Slurm refused to start it")
        elif task.launched_s >= 0.0 and job.held:
            yield self._failed(now_s, task, f"is held again ({job.reason})")
        elif task.launched_s >= 0.0 and time.monotonic() - task.launched_s > LAUNCH_S:
            yield self._failed(now_s, task, f"did not start within {LAUNCH_S:g} s ({job.reason})")

    def _elsewhere(self, task: SlurmAttempt, job: SlurmJob) -> bool:
        """Return whether a job runs on other nodes than the scheduler chose."""
        hosts = self.book.platform.hosts
        # of a job that completes Slurm lists the nodes that are not yet free
        listed = bool(job.hosts) and job.state != "COMPLETING"
        return listed and set(job.hosts) != {hosts[i].name for i in hostset.ids(task.mask)}

    def _failed(self, now_s: float, task: SlurmAttempt, why: str, *, tried: bool = True) -> ev.Event:
        if tried:
            self._tries[task.number] = self._tries.get(task.number, 0) + 1
        self.journal.write("note", what="start failed", job=task.id, why=why)
        _log.warning("%s %s", task.id, why)
        return self._completed(now_s, task, "COMPLETED_FAILED")

    def _completed(self, now_s: float, task: SlurmAttempt, state: str, code: int = 0) -> ev.Event:
        code = code or (0 if state == "COMPLETED_SUCCESSFULLY" else 1)
        return ev.JobCompleted(now_s, task.id, state, code, hostset.to_text(task.mask))

    def _look_at_killed(self, now_s: float, task: SlurmAttempt, job: SlurmJob | None) -> Iterator[ev.Event]:
        if job is not None and job.running and task.began_s < 0.0:
            task.began_s = job.start_s
        if job is None or (job.waiting and job.held) or job.state == "CANCELLED":
            progress = self._progress(now_s, task)
            yield self._completed(now_s, task, "COMPLETED_KILLED")
            yield ev.JobKilled(now_s, [task.id], {task.id: progress})
        elif job.ended and not self.actions.requeues(task, job):
            yield self._completed(now_s, task, ENDED[job.state], job.exit_code)
            yield ev.JobKilled(now_s, [task.id], {})

    def _progress(self, now_s: float, task: SlurmAttempt) -> dict[str, Any]:
        """Return the share of its walltime that a killed job has run."""
        _, walltime_s = self.book.shapes.get(task.number, (0, -1.0))
        ran_s = now_s - self.clock.of_date(task.began_s) if task.began_s >= 0.0 else 0.0
        whole_s = walltime_s if walltime_s > 0.0 else UNLIMITED_S
        return {"profile_name": f"p{whole_s:g}", "progress": min(1.0, max(0.0, ran_s / whole_s))}


def stop_reason(error: BaseException | None) -> str:
    """Return why a session ends, for its journal."""
    if error is None:
        return "no job is left"
    if isinstance(error, KeyboardInterrupt):
        return "a signal"
    kind = "illegal decision" if isinstance(error, IllegalDecisionError) else type(error).__name__
    return f"{kind}: {error}"
