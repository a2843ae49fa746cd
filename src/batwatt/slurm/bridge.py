"""The bridge between Slurm and a scheduler: messages of events in Slurm, and replies that are carried out."""

from __future__ import annotations

import logging
import math
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from batwatt.batsim import events as ev
from batwatt.batsim.batsim4 import EngineConfig
from batwatt.batsim.journal import Journal, same_decisions
from batwatt.engine.machines import Machines
from batwatt.errors import IllegalDecisionError, InputError
from batwatt.model import hostset
from batwatt.protocol.events import EVENT_TYPE, EVENT_VALUE
from batwatt.slurm.account import Account, Feed, PowerMeter, watts_of
from batwatt.slurm.actions import Actions, KillRule
from batwatt.slurm.book import WORKLOAD, Book, SlurmAttempt
from batwatt.slurm.commands import SlurmCommands, SlurmError, in_turns, purpose
from batwatt.slurm.snapshot import ENDED, HELD_BY_USER, LATER, REFUSALS, Handover, SlurmJob, Snapshot

_log = logging.getLogger(__name__)
TRIES = 3
PORTION = 1000
"""Most jobs that are announced at a poll: the power is watched between polls."""
STEP_S = 300.0
"""Period of an unchanged envelope, in s of the session."""
LOOKS = 2
"""Consecutive polls that must agree before a host leaves service or returns."""
SILENT_S = 60.0
"""The longest pause between attempts to reach Slurm, in s."""
SKIPPED_S = 60.0
"""Pause in s after a take-over that Slurm refuses."""
LIMITED_S = 15.0
"""First pause in s after a start that a limit, such as that of a QOS, holds back; each later one is twice as long."""
LAUNCH_S = 120.0
"""Longest time of a start, in s."""
REFUSED_S = 2.0
"""Time in s after which a reason to wait that is no lack of nodes ends a start."""
TOTALS_S = 60.0
"""Period in real s in which the totals are written down for a restart."""
TIRED_S = 3600.0
"""Time in s for which a job is left alone after `TRIES` starts that failed."""
UNLIMITED_S = 7 * 86_400.0
"""Length in s of the profile of a job without a time limit."""


@dataclass(frozen=True, kw_only=True)
class SessionSpec:
    """Inputs of a session. `scheduler` None: one that listens on `endpoint`; `operate` False: a shadow.

    `feed`: the power envelope, or None; schedulers of batwatt receive it, others with `tell_signals` only. `poll_s` is
    in real seconds. `endpoint` empty: a socket in a folder of this user; `token`: shared secret of both sides.
    `releases`: jobs with demands that the scheduler does not know are released to Slurm, else they stay on hold.
    `keeps`: at the end nodes stay off and jobs on hold. `once`: the session ends when no job is left; else never.
    """

    platform: Path
    handover: Handover
    prefix: Path
    operate: bool
    scheduler: str | None
    options: Mapping[str, Any]
    endpoint: str
    token: str | None
    insecure: bool
    patience_s: float | None
    kill: KillRule
    pstate_command: str
    feed: Feed | None
    meter: PowerMeter
    poll_s: float
    speed: float
    fresh: bool
    once: bool
    tell_signals: bool
    releases: bool
    keeps: bool
    metrics: Path | None

    @property
    def identity(self) -> dict[str, Any]:
        """Values that must be the same for a session to go on after a restart."""
        place = str(self.platform.resolve())
        same = {"operate": self.operate, "scheduler": self.scheduler, "speed": self.speed}
        return {"handover": str(self.handover), "platform": place, **same}


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
        looks = {i: self.changed.get(i, 0) + 1 for i in hostset.ids((out ^ self.out) & everyone)}
        self.out ^= hostset.of_ids([i for i, number in looks.items() if number >= LOOKS])
        self.changed = {i: number for i, number in looks.items() if number < LOOKS}
        return self.out


class Bridge:
    """A `Link` for the scheduler. `past`: exchanges to be repeated; `beat`: called after each attempt of a poll."""

    def __init__(
        self,
        spec: SessionSpec,
        machine: SlurmCommands,
        book: Book,
        actions: Actions,
        journal: Journal,
        account: Account,
        clock: SessionClock,
        past: deque[tuple[ev.Message, ev.Reply]],
        identity: Mapping[str, Any],
        beat: Callable[[Bridge], None],
    ) -> None:
        self.spec, self.machine, self.book, self.actions, self.journal = spec, machine, book, actions, journal
        self.account, self.clock, self.past, self.identity, self.beat = account, clock, past, identity, beat
        self.tells = spec.tell_signals
        self.ended = False
        self.polls = 0
        self.polling_s = 0.0
        self.polled_s = math.nan
        """Time of the last poll that Slurm has answered, in s since 1970."""
        self.failed_starts = 0
        self.left: dict[str, str] = {}
        """Why a job is not taken over, by its number."""
        self.snapshot: Snapshot | None = None
        self._message = ev.Message(0.0, [])
        self._next_poll_s = 0.0
        self._silences = 0
        """Attempts to reach Slurm since its last answer."""
        self._watched = Watched()
        self._settled = False
        self._cap_w: float | None = None
        self._failures: list[tuple[str, bool, bool]] = []
        """Starts that failed by the present poll: number of the job, if it is an attempt, if a limit holds it back."""
        self._busy: set[str] = set()
        """Tasks with a command that had no answer when the present poll began: a job may be about to start."""
        self._tries: dict[str, int] = {}
        """Starts that failed, by the number of the job."""
        self._skipped: dict[str, float] = {}
        """Time at which a job is looked at again, monotonic."""
        self._pauses_s: dict[str, float] = {}
        """Next pause of a job that a limit holds back."""
        self._totals_s = time.monotonic()

    def message(self) -> ev.Message:
        """Wait until there is something to tell; return the message. Raises SlurmError if Slurm cannot be read."""
        if self.past:
            message = self.past[0][0]
        elif not self._message.events:
            config = EngineConfig(
                dynamic_jobs=True, profile_reuse=True, forward_profiles=True, forward_unknown_events=True
            )
            hosts, workloads = Machines(self.book.platform).payload(), {WORKLOAD: str(self.journal.path)}
            begins = ev.SimulationBegins(0.0, config.begins(hosts, workloads, {WORKLOAD: {}}))
            message = ev.Message(0.0, [begins])
        else:
            message = self._next()
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
        if reply.decisions and self.snapshot is not None:
            self._act(self.snapshot)

    def _next(self) -> ev.Message:
        """Poll until something has happened."""
        while True:
            now_s = self.clock.now_s()
            events: list[ev.Event] = []
            if self.book.queries:
                events.append(ev.Answer(now_s, self.account.energy.joules))
            if time.monotonic() >= self._next_poll_s:
                feed, poll_s = self.spec.feed, self.spec.poll_s
                try:
                    events += self._poll(now_s)
                    if self._silences:
                        self.journal.note("Slurm answers again")
                    self._silences = 0
                    # at a step of the envelope, too
                    step_s = math.inf if feed is None else (feed.next_s(now_s) - now_s) / self.clock.speed
                    pause_s = min(poll_s, max(0.05, step_s))
                except SlurmError as error:
                    # what has happened is found again at the next poll
                    self._silent(now_s, error)
                    pause_s = max(poll_s, min(SILENT_S, poll_s * 2.0 ** min(self._silences, 10)))
                self._next_poll_s = time.monotonic() + pause_s
                self.beat(self)
            due = [call for call in self.book.calls if call <= now_s]
            events += [ev.RequestedCall(now_s) for _ in due]
            if events and self.snapshot is not None:
                return ev.Message(now_s, events)
            if self.spec.once and self.snapshot is not None and self._all_over(self.snapshot):
                self.ended = True
                return ev.Message(now_s, [ev.SimulationEnds(now_s)])
            call_s = ((self.book.calls[0] if self.book.calls else math.inf) - now_s) / self.clock.speed
            time.sleep(max(0.001, min(self._next_poll_s - time.monotonic(), call_s if self.snapshot else math.inf)))

    def _silent(self, now_s: float, error: SlurmError) -> None:
        """Drop the snapshot after an error of Slurm; the last power goes on, under the envelope of now."""
        if not self._silences:
            _log.warning("%s; trying again", error)
            self.journal.note("Slurm is silent", why=str(error))
        self._silences += 1
        self.snapshot = None
        if self.spec.feed is not None and self.polls:
            self.account.power(now_s, None, None, self.spec.feed.value(now_s))

    def _all_over(self, snapshot: Snapshot) -> bool:
        left = any(task.status not in ("over", "aside") for task in self.book.present.values())
        left |= any(job.handed and not job.ended and job.number not in self.left for job in snapshot.jobs.values())
        return bool(self.book.generations) and not left

    def _poll(self, now_s: float) -> list[ev.Event]:
        """Read Slurm, request missing changes, and return the events. Raises SlurmError."""
        began = time.monotonic()
        self._failures.clear()
        self._busy = self.actions.under_way()
        snapshot = self.machine.read(self.book.present)
        events = [*self._hosts_changed(now_s, snapshot), *self._jobs(now_s, snapshot)]
        # a poll that Slurm has not answered to its end finds the same failures again
        for number, tried, limited in self._failures:
            self.failed_starts += 1
            self._tries[number] = self._tries.get(number, 0) + tried
            if limited:
                pause_s = self._pauses_s.get(number, LIMITED_S)
                self._skipped[number] = time.monotonic() + pause_s
                self._pauses_s[number] = min(TIRED_S, 2.0 * pause_s)
        cap_w = None if self.spec.feed is None else self.spec.feed.value(now_s)
        last_w, last_s = self.book.sent
        # schedulers under an envelope decide when they receive it only, so it also comes with what has happened
        if self.tells and cap_w is not None and (events or cap_w != last_w or now_s - last_s >= STEP_S):
            data = {"type": EVENT_TYPE, "timestamp": now_s, EVENT_VALUE: cap_w}
            events.append(ev.Notified(now_s, EVENT_TYPE, data))
        self.snapshot, self._cap_w = snapshot, cap_w
        self.actions.confirm(snapshot)
        self._act(snapshot)
        self._measure(now_s, snapshot, cap_w)
        self.polls, self.polled_s = self.polls + 1, snapshot.time_s
        self.polling_s += time.monotonic() - began
        return events

    def _act(self, snapshot: Snapshot) -> None:
        watts = watts_of(self.book.platform, snapshot, self.book.pstate)
        spare_w = math.inf if self._cap_w is None else self._cap_w - watts
        self.actions.act(snapshot, self.book.everyone & ~self._watched.out, spare_w)

    def _measure(self, now_s: float, snapshot: Snapshot, cap_w: float | None) -> None:
        platform, account, real = self.book.platform, self.account, self.machine.real
        watts = watts_of(platform, snapshot, self.book.pstate)
        measured_w = self.spec.meter.watts()
        slurm_w = watts if real is None else watts_of(platform, real, [host.compute[0] for host in platform.hosts])
        if measured_w is not None:
            watts, slurm_w = (measured_w if real is None else watts), measured_w
        account.power(now_s, watts, slurm_w, cap_w)
        account.jobs(snapshot, self.book.present, real, self.clock.of_date)
        if time.monotonic() - self._totals_s >= TOTALS_S:
            self._totals_s = time.monotonic()
            totals = account.totals()
            self.journal.write("totals", totals=totals)
            if self.journal.full:
                # a resumed session takes these totals and Slurm's state, not the exchanges until now
                self.journal.begin(**self.identity, begin_s=self.clock.begin_s, totals=totals, continues=True)

    def _hosts_changed(self, now_s: float, snapshot: Snapshot) -> Iterator[ev.Event]:
        book = self.book
        out = theirs = 0
        started = [task.number for task in book.tasks.values() if task.status in ("starting", "killing")]
        ours = {name for number in started if (job := snapshot.jobs.get(number)) for name in job.hosts}
        nodes = [snapshot.nodes[host.name] for host in book.platform.hosts]
        for i, node in enumerate(nodes):
            out |= node.broken << i
            # a node is still completing when its job has ended
            taken = bool(node.flags & {"allocated", "mixed"}) and node.name not in ours and not book.busy >> i & 1
            theirs |= taken << i
        if not self._settled:
            # hosts that are off at the begin are unavailable until power wakes them: the scheduler takes all as on
            self._settled = True
            self._watched.out |= out | theirs
        now_out = self._watched.look(out | theirs, book.everyone)
        reached = hostset.of_ids([i for i, node in enumerate(nodes) if self.actions.reached(i, node)])
        # a host that left its state by itself is unavailable until it is back
        away = now_out | book.everyone & ~(book.switching | reached)
        for kind, mask in (("available", book.away & ~away), ("unavailable", away & ~book.away)):
            if mask:
                self.journal.note(kind, nodes=[book.platform.hosts[i].name for i in hostset.ids(mask)])
                data = {"type": f"event_machine_{kind}", "resources": hostset.to_text(mask)}
                yield ev.Notified(now_s, data["type"], data)
        for mask, state in book.complete(reached & ~now_out):
            yield ev.ResourceStateChanged(now_s, hostset.to_text(mask), str(state))

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
                yield from self._look_at_started(now_s, task, job, snapshot)
            elif task.status == "killing" and task.id not in self._busy:
                yield from self._look_at_killed(now_s, task, job)
            if job is None and task.status == "over":
                book.forget(number)
                self._tries.pop(number, None)
                self._skipped.pop(number, None)
                self._pauses_s.pop(number, None)
        for number in self.left.keys() - snapshot.jobs.keys():
            del self.left[number]
        pending = {number for number, task in book.present.items() if task.status not in ("void", "over")}
        ours = [job for job in snapshot.jobs.values() if job.ours and job.waiting]
        if gone := [job for job in ours if not job.handed and job.number not in pending]:
            purpose.set("no longer handed over")
            self._note_errors(self.machine.let_go(gone), "not given back")
        rows = sorted(snapshot.jobs.values(), key=lambda job: (job.submit_s, int(job.id), job.number))
        fresh = [job for job in rows if self._to_announce(job, snapshot)]
        for job in self._taken(next(in_turns(fresh, PORTION), [])):
            yield self._announced(now_s, job)

    def _to_announce(self, job: SlurmJob, snapshot: Snapshot) -> bool:
        """Return whether a job that waits is the scheduler's to start and was not announced."""
        present = self.book.present.get(job.number)
        if not (present is None or present.status in ("over", "void")) or not job.handed:
            return False
        if not job.startable(snapshot.time_s) or time.monotonic() < self._skipped.get(job.number, 0.0):
            return False
        # holds of others are respected; on hold a user hands a job over, but only once
        ours = job.ours or job.number in self.book.killed
        return ours or not job.held or (present is None and job.reason == HELD_BY_USER)

    def _taken(self, jobs: Sequence[SlurmJob]) -> list[SlurmJob]:
        """Take jobs over, in few commands; return those that are."""
        if not jobs:
            return []
        purpose.set("announce")
        names = {host.name for host in self.book.platform.hosts}
        # a job that is left for another demand is looked at in each poll
        excluded = self.machine.excluded() if any(not job.demand for job in jobs) else {}
        mine, tired = [], []
        for job in jobs:
            without = sorted(excluded.get(job.number, set()) & names)
            demand = job.demand or (f"--exclude={','.join(without)}" if without else "")
            if demand and not job.ours and job.number not in self.book.killed:
                self._leave(job, demand)
            elif self._tries.get(job.number, 0) >= TRIES:
                self._tries[job.number] = 0
                self._skipped[job.number] = time.monotonic() + TIRED_S
                tired.append(job)
            else:
                self.left.pop(job.number, None)
                mine.append(job)
        self.machine.take(tired, f"not started in {TRIES} attempts, again in {TIRED_S / 3600.0:g} h")
        errors = self.machine.take(mine)
        for number, error in errors.items():
            self._skip(number, str(error))
        return [job for job in mine if job.number not in errors]

    def _skip(self, number: str, why: str) -> None:
        self._skipped[number] = time.monotonic() + SKIPPED_S
        if self.left.get(number) != why:
            self.left[number] = why
            self.journal.note("not taken over", job=number, why=why)
            _log.warning("job %s: not taken over: %s", number, why)

    def _leave(self, job: SlurmJob, demand: str) -> None:
        """Leave a job with a demand that the scheduler does not know to Slurm, released or with a comment."""
        why = f"asks for {demand}, which a scheduler for Batsim does not know"
        if self.left.get(job.number) == why:
            return
        self._skip(job.number, why)
        errors = self.machine.leave([job], why)
        if self.spec.releases and not errors:
            errors = self.machine.let_go([job])
        self._note_errors(errors)

    def _note_errors(self, errors: Mapping[str, SlurmError], what: str = "failed") -> None:
        for number, error in errors.items():
            task = self.book.present.get(number)
            self.journal.note(what, job=number if task is None else task.id, why=str(error))

    def _announced(self, now_s: float, job: SlurmJob) -> ev.Event:
        lasts_s = min(job.limit_s * self.clock.speed, UNLIMITED_S)
        # work, not a delay: hosts with jobs draw their full power, and slower p-states make jobs longer
        flops = round(lasts_s * self.book.platform.fastest_flops, 6)
        job_id = self.book.next_id(job.number)
        raw = {
            "id": job_id,
            "subtime": round(min(max(self.clock.of_date(job.submit_s), 0.0), now_s), 6),
            "walltime": self._walltime_s(job),
            "res": job.nodes,
            "profile": f"p{lasts_s:g}",
            "user": job.user,
        }
        return ev.JobSubmitted(now_s, job_id, raw, {"type": "parallel_homogeneous", "cpu": flops, "com": 0.0})

    def _look_at_waiting(self, task: SlurmAttempt, job: SlurmJob | None, snapshot: Snapshot) -> None:
        """Void a waiting job that can no longer be started as it was announced."""
        shape = self.book.shapes.get(task.number)
        why = ""
        if job is None or job.ended:
            why = "ended before it was started"
        elif not job.waiting:
            why = "was started by Slurm or another user"
        elif not job.handed:
            why = "is no longer handed over"
        elif not job.held:
            why = "was released by another user"
        elif not job.startable(snapshot.time_s):
            why = "waits for something else than nodes"
        elif shape is not None and shape != (job.nodes, self._walltime_s(job)):
            why = "was changed"
        if why:
            self.journal.note("void", job=task.id, why=why)
            task.status = "over" if task.status == "aside" else "void"

    def _walltime_s(self, job: SlurmJob) -> float:
        return -1 if job.limit_s == math.inf else round(job.limit_s * self.clock.speed, 6)

    def _look_at_started(
        self, now_s: float, task: SlurmAttempt, job: SlurmJob | None, snapshot: Snapshot
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
            brief = task.began_s < 0.0 or snapshot.time_s - task.began_s < LAUNCH_S
            yield self._failed(now_s, task, f"was put back into the queue ({job.reason})", tried=brief, job=job)
        elif task.requested:
            yield self._failed(now_s, task, "Slurm refused to start it", job=job)
        elif 0.0 <= task.launched_s < snapshot.begun_s:
            passed_s = snapshot.begun_s - task.launched_s
            if job.held and job.started:
                yield self._failed(now_s, task, f"is held again ({job.reason})", job=job)
            elif passed_s > LAUNCH_S or (passed_s > REFUSED_S and job.reason.startswith(REFUSALS)):
                why = f"did not start within {passed_s:.0f} s ({job.reason})"
                # a limit that ends by itself is no failure: the job is announced again later
                limited = job.reason.startswith(LATER)
                yield self._failed(now_s, task, why, tried=not limited, limited=limited, job=job)

    def _elsewhere(self, task: SlurmAttempt, job: SlurmJob) -> bool:
        """Return whether a job runs on other nodes than the scheduler chose."""
        hosts = self.book.platform.hosts
        # of a job that completes Slurm lists the nodes that are not yet free
        listed = bool(job.hosts) and job.state != "COMPLETING"
        return listed and set(job.hosts) != {hosts[i].name for i in hostset.ids(task.mask)}

    def _failed(
        self, now_s: float, task: SlurmAttempt, why: str, *, tried: bool = True, limited: bool = False,
        job: SlurmJob | None = None,
    ) -> ev.Event:  # fmt: skip
        """Return the end of a start that has failed; `job` still waits, and is put on hold again."""
        self._failures.append((task.number, tried, limited))
        self.journal.note("start failed", job=task.id, why=why)
        _log.warning("%s %s", task.id, why)
        if job is not None:
            purpose.set(task.id)
            # a hold of others stays, and ends the take-over
            others = job.held and not job.reason.startswith("BadConstraints")
            self._note_errors(self.machine.let_go([job], release=False) if others else self.machine.take([job]))
        return self._completed(now_s, task, "COMPLETED_FAILED")

    def _completed(self, now_s: float, task: SlurmAttempt, state: str, code: int = 0) -> ev.Event:
        code = code or int(state != "COMPLETED_SUCCESSFULLY")
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
    if error is None or isinstance(error, KeyboardInterrupt):
        return "no job is left" if error is None else "a signal"
    kind = "illegal decision" if isinstance(error, IllegalDecisionError) else type(error).__name__
    return f"{kind}: {error}"
