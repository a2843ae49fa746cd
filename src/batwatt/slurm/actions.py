"""What is done to Slurm so that it becomes what the book says; asked for again until it is so.

Nothing is remembered but by the book and by Slurm: after a restart the same comparison goes on.
"""

from __future__ import annotations

import logging
import shlex
import subprocess
import time
from collections.abc import Callable
from dataclasses import dataclass

from batwatt.errors import InputError
from batwatt.model import hostset
from batwatt.slurm.book import Book, Task
from batwatt.slurm.commands import Slurm
from batwatt.slurm.facts import SlurmError, SlurmJob, SlurmNode, SlurmSilentError, Snapshot

_log = logging.getLogger(__name__)
AGAIN_S = 10.0
"""How long until a change of a node that shows no effect is asked for again, in s."""


@dataclass(frozen=True)
class KillRule:
    """What becomes of a job that the scheduler kills: `requeue` on hold, `cancel`, or a signal and then requeue.

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
        """Whether a killed job is put back into the queue."""
        return self.what != "cancel"

    @property
    def signal(self) -> str:
        """The name of the signal; empty without one."""
        return "" if self.what in ("requeue", "cancel") else self.what


class Actions:
    """Brings jobs and nodes to what the book says."""

    def __init__(
        self, machine: Slurm, book: Book, kill: KillRule, pstate_command: str, note: Callable[..., None]
    ) -> None:
        self._machine = machine
        self._book = book
        self._kill = kill
        self._pstate_command = shlex.split(pstate_command)
        self._note = note
        self._next_s: dict[str, float] = {}
        self._pstates: dict[int, int] = {}
        self.purpose = ""
        """What the present command is for."""

    def act(self, snapshot: Snapshot, own: int) -> None:
        """Ask for what is missing; `own`: the hosts that are not out of service. Raises SlurmSilentError."""
        for task in list(self._book.present.values()):
            job = snapshot.jobs.get(task.number)
            if job is not None:
                self.purpose = task.id
                try:
                    self._job(task, job)
                except SlurmSilentError:
                    raise
                except SlurmError as error:
                    # the job shows what came of it: it is not started, or still there, at the next look
                    task.asked = True
                    self._note("failed", job=task.id, why=str(error))
                    _log.warning("%s: %s", task.id, error)
        self.purpose = "nodes"
        try:
            self._nodes(snapshot, own)
        except SlurmSilentError:
            raise
        except SlurmError as error:
            self._note("failed", nodes=True, why=str(error))
            _log.warning("%s", error)

    def _job(self, task: Task, job: SlurmJob) -> None:
        machine, now_s = self._machine, time.monotonic()
        if task.status == "starting" and task.launched_s < 0.0 and job.waiting:
            task.launched_s, task.restarts = now_s, job.restarts
            machine.launch(job, [self._book.platform.hosts[i].name for i in hostset.ids(task.mask)])
        elif task.status == "aside" and not task.asked and job.waiting:
            task.asked = True
            machine.comment(task.number, task.metadata or "the scheduler rejects it")
        elif task.status == "killing":
            self._end(task, job, now_s)

    def _end(self, task: Task, job: SlurmJob, now_s: float) -> None:
        machine, rule = self._machine, self._kill
        if job.waiting:
            if not job.held:
                # it had been asked to start, and has not
                machine.take(task.number)
        elif job.ended:
            if rule.signal and task.signalled_s >= 0.0 and job.exit_code and not task.asked:
                task.asked = True
                machine.requeue_held(task.number)
        elif rule.signal and task.signalled_s < 0.0:
            task.signalled_s = now_s
            machine.signal(task.number, rule.signal)
        elif not task.asked and (not rule.signal or now_s - task.signalled_s > rule.grace_s):
            task.asked = True
            if rule.again:
                machine.requeue_held(task.number)
            else:
                machine.cancel(task.number)

    def requeues(self, task: Task, job: SlurmJob) -> bool:
        """Return whether a job that ended after its signal is on its way back into the queue."""
        waits_s = self._kill.grace_s + AGAIN_S
        return bool(task.signalled_s >= 0.0 and job.exit_code and time.monotonic() - task.signalled_s < waits_s)

    # nodes ------------------------------------------------------------------------------------------------------

    def wanted(self, host: int) -> bool:
        """Return whether a host should be on."""
        return self._book.pstate[host] not in self._book.platform.hosts[host].sleep_of

    def reached(self, host: int, node: SlurmNode) -> bool:
        """Return whether a host is in the p-state that it was asked to be in last."""
        if not self.wanted(host):
            return node.off and node.drained
        return (
            node.up and not node.marked and self._pstates.get(host, self._book.pstate[host]) == self._book.pstate[host]
        )

    def _nodes(self, snapshot: Snapshot, own: int) -> None:
        asked: dict[str, list[str]] = {}
        now_s = time.monotonic()
        for i, host in enumerate(self._book.platform.hosts):
            node = snapshot.nodes[host.name]
            what = self._missing(i, node) if own >> i & 1 else ""
            if not what:
                self._next_s.pop(host.name, None)
            elif now_s >= self._next_s.get(host.name + what, 0.0):
                self._next_s[host.name + what] = now_s + AGAIN_S
                asked.setdefault(what, []).append(host.name)
            if own >> i & 1 and node.up and self.wanted(i):
                self._set_pstate(i)
        machine = self._machine
        for what, change in (
            ("undrain", machine.undrain),
            ("power_up", machine.power_up),
            ("power_down", machine.power_down),
            ("drain", machine.drain),
        ):
            if what in asked:
                change(asked[what])

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

    def _set_pstate(self, i: int) -> None:
        """Run the command for a p-state, if it is another one than before."""
        target = self._book.pstate[i]
        host = self._book.platform.hosts[i]
        if not self._pstate_command or self._pstates.get(i, host.initial_pstate) == target:
            self._pstates[i] = target
            return
        self._run_pstate(i, target)

    def restore(self) -> None:
        """Set the p-states that hosts had at the beginning. Raises SlurmError."""
        for i, pstate in list(self._pstates.items()):
            initial = self._book.platform.hosts[i].initial_pstate
            if self._pstate_command and pstate != initial:
                self._run_pstate(i, initial)

    def _run_pstate(self, i: int, target: int) -> None:
        host = self._book.platform.hosts[i]
        words = [word.replace("{node}", host.name).replace("{pstate}", str(target)) for word in self._pstate_command]
        try:
            subprocess.run(words, stdin=subprocess.DEVNULL, capture_output=True, timeout=30.0, check=True)
        except (OSError, subprocess.SubprocessError) as error:
            raise SlurmError(f"--pstate-command {' '.join(words)}: {error}") from None
        self._note("pstate", node=host.name, pstate=target)
        self._pstates[i] = target
