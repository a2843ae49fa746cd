"""Commands that bring jobs and nodes of Slurm to the state in the book, also after a restart."""

from __future__ import annotations

import logging
import math
import shlex
import subprocess
import time
from collections.abc import Callable, Iterable
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from functools import partial
from typing import Any

from batwatt.errors import InputError
from batwatt.model import hostset
from batwatt.slurm.book import Book, SlurmAttempt
from batwatt.slurm.commands import SWITCHES, SlurmCommands, SlurmError, SlurmSilentError, purpose
from batwatt.slurm.snapshot import SlurmJob, SlurmNode, Snapshot

_log = logging.getLogger(__name__)
AGAIN_S = 10.0
"""Pause in s before a command without effect is repeated."""
WORKERS = 2
"""Commands at a time: one that Slurm does not answer holds up no other."""
TURN_S = 5.0
"""Longest time in s for which a poll waits for the commands that it has begun; they go on beside later polls."""


@dataclass(frozen=True)
class KillRule:
    """Rule for a job that the scheduler kills: `requeue` on hold, `cancel`, or a signal and then requeue.

    A script that leaves with exit code 0 after the signal has finished; with another one, or after `grace_s` real
    seconds, it is put back into the queue, on hold.
    """

    again: bool = True
    """True if a killed job is put back into the queue."""
    signal: str = ""
    """The name of the signal; empty without one."""
    grace_s: float = 60.0

    @classmethod
    def of(cls, text: str, grace_s: float) -> KillRule:
        """Return the rule for `requeue`, `cancel` or `signal=USR1`. Raises InputError."""
        name = text.removeprefix("signal=").removeprefix("SIG")
        if text not in ("requeue", "cancel") and (not text.startswith("signal=") or not name.isalnum()):
            raise InputError("--kill", f"{text!r} is no rule", "write requeue, cancel, or signal=USR1")
        return cls(text != "cancel", name if text.startswith("signal=") else "", grace_s)


class Actions:
    """Commands that are carried out by two threads, those of one job one after the other."""

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
        self._pool = ThreadPoolExecutor(WORKERS, "slurm command")
        self._running: dict[str, Future[None]] = {}
        """Commands under way, by id of the task, or by a word for those of many."""

    def act(self, snapshot: Snapshot, own: int, spare_w: float = math.inf) -> None:
        """Request missing changes of jobs and of the hosts `own`; `spare_w`: power below the cap in W."""
        for task in list(self._book.present.values()):
            job = snapshot.jobs.get(task.number)
            if job is not None and task.status in ("starting", "killing", "aside"):
                self._begin(task.id, partial(self._job_safely, task, job))
        self._begin("nodes", lambda: self._nodes(snapshot, own, spare_w))
        wait(self._running.values(), TURN_S)
        for key, future in list(self._running.items()):
            if future.done():
                del self._running[key]
                future.result()

    def confirm(self, snapshot: Snapshot) -> None:
        """Request the comments of before for jobs that have begun; once for each snapshot."""
        # that of a job about to be requeued is its mark again
        killed = {task.number for task in self._book.present.values() if task.status == "killing"}
        marked = [job for job in snapshot.jobs.values() if job.running and job.mark is not None]
        self._begin("begun", lambda: self._confirm([job for job in marked if job.number not in killed]))

    def _begin(self, key: str, call: Callable[[], None]) -> None:
        """Let a thread make a call, unless the call of before with this key is still under way."""

        def named() -> None:
            purpose.set(key)
            call()

        if key not in self._running:
            self._running[key] = self._pool.submit(named)

    def under_way(self) -> set[str]:
        """Return the tasks, by id, with a command that has not ended."""
        return {key for key, future in self._running.items() if not future.done()}

    def finish(self) -> None:
        """Wait for the commands that are under way; begin no other."""
        self._pool.shutdown(cancel_futures=True)

    def _job_safely(self, task: SlurmAttempt, job: SlurmJob) -> None:
        """Request the missing change of a job; fail a start that Slurm refuses, repeat anything else later."""
        try:
            self._job(task, job)
        except SlurmError as error:
            if task.status == "starting" and not isinstance(error, SlurmSilentError):
                task.requested = True
            else:
                task.retry_s = time.monotonic() + AGAIN_S
            self._failed(error, job=task.id)

    def _failed(self, error: SlurmError, **what: Any) -> None:
        self._note("failed", **what, why=str(error))
        _log.warning("%s: %s", *what.values(), error)

    def _job(self, task: SlurmAttempt, job: SlurmJob) -> None:
        machine, now_s = self._machine, time.monotonic()
        if now_s < task.retry_s:
            return
        if task.status == "starting" and task.launched_s < 0.0 and job.waiting:
            task.restarts = job.restarts if task.restarts < 0 else task.restarts
            released = job.started and not job.held
            if not released and job.restarts == task.restarts:
                machine.launch(job, [self._book.platform.hosts[i].name for i in hostset.ids(task.mask)])
            # Slurm may have done what it did not confirm
            task.launched_s = now_s
        elif task.status == "aside" and not task.requested and job.waiting:
            self._take(job, task.metadata or "the scheduler rejects it")
            task.requested = True
        elif task.status == "killing":
            self._end(task, job, now_s)

    def _take(self, job: SlurmJob, why: str = "") -> None:
        for error in self._machine.take([job], why).values():
            raise error

    def _end(self, task: SlurmAttempt, job: SlurmJob, now_s: float) -> None:
        machine, rule = self._machine, self._kill
        if job.waiting:
            if not job.held:
                # released, but not begun
                self._take(job)
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

    def _confirm(self, jobs: Iterable[SlurmJob]) -> None:
        """Restore the comments of jobs that have begun."""
        jobs = [job for job in jobs if time.monotonic() >= self._next_s.get(job.number + "begun", 0.0)]
        try:
            errors = self._machine.confirm(jobs) if jobs else {}
        except SlurmError:
            # the next poll repeats it
            return
        self._next_s |= {number + "begun": time.monotonic() + AGAIN_S for number in errors}

    def wanted(self, host: int) -> bool:
        """Return whether a host should be on."""
        return self._book.pstate[host] not in self._book.platform.hosts[host].sleep_of

    def reached(self, host: int, node: SlurmNode) -> bool:
        """Return whether a host is in the p-state of its last request."""
        if not self.wanted(host):
            return node.off and node.drained
        target = self._book.pstate[host]
        return node.up and not node.marked and self._pstates.get(host, target) == target

    def _nodes(self, snapshot: Snapshot, own: int, spare_w: float) -> None:
        changes: dict[str, list[str]] = {}
        now_s = time.monotonic()
        for i, host in enumerate(self._book.platform.hosts):
            node = snapshot.nodes[host.name]
            what = self._missing(i, node) if own >> i & 1 else ""
            if what and self.wanted(i) and not self._book.requested >> i & 1 and host.sleeps:
                # off since before the session: no scheduler has weighed its power
                spare_w -= host.pstates[host.sleeps[0].switch_on].full_w
                what = what if spare_w >= 0.0 else ""
            if node.reserved and node.marked:
                # Slurm wakes it for the reservation
                what = "undrain"
            if what and now_s >= self._next_s.get(host.name + what, 0.0):
                self._next_s[host.name + what] = now_s + AGAIN_S
                changes.setdefault(what, []).append(host.name)
            if own >> i & 1 and node.up and self.wanted(i) and now_s >= self._next_s.get(host.name + "pstate", 0.0):
                self._next_s[host.name + "pstate"] = now_s + (AGAIN_S if not self._set_pstate(i) else 0.0)
        for what in SWITCHES:
            if what in changes:
                try:
                    self._machine.switch(what, changes[what])
                except SlurmError as error:
                    self._failed(error, nodes=changes[what])

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
        host, target = self._book.platform.hosts[i], self._book.pstate[i]
        if self._pstate_command and self._pstates.get(i, host.initial_pstate) != target:
            command = [word.replace("{node}", host.name) for word in self._pstate_command]
            words = [word.replace("{pstate}", str(target)) for word in command]
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
