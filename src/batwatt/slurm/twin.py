"""A cluster that only observes Slurm: the states of its jobs under the scheduler's decisions.

A job lasts as long as Slurm runs it, which is known once it has ended there; until then it goes on. Nodes switch in the
times of the platform. Nodes that are out of service in Slurm, or have jobs of others, are so here, too.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from batwatt.model.platform import Platform
from batwatt.slurm.commands import Handover, SlurmCommands, Watch
from batwatt.slurm.facts import BUSY, MARK, SlurmJob, SlurmNode, Snapshot

_POWER = frozenset(("powered_down", "powering_down", "power_down", "powering_up", "power_up", "drain"))


@dataclass(slots=True)
class _Virtual:
    """A job here; times in s since 1970. `row` is the last that Slurm has reported of it."""

    row: SlurmJob
    held: bool = False
    hosts: tuple[str, ...] = ()
    start_s: float = math.nan
    restarts: int = 0
    ran_s: float = math.nan
    """Run time in Slurm in s; NaN until it has ended there."""
    final: str = ""
    """Its state in Slurm, once it has ended there."""
    end_s: float = math.nan


class Twin(SlurmCommands):
    """The commands of a cluster that is read only: their changes are made here."""

    def __init__(self, handover: Handover, platform: Platform, watch: Watch, speed: float) -> None:
        super().__init__(handover, [host.name for host in platform.hosts], watch)
        self._hosts = {host.name: host for host in platform.hosts}
        self._speed = speed
        self._virtual: dict[str, _Virtual] = {}
        self._before: set[str] | None = None
        self._switch: dict[str, tuple[bool, float]] = {}
        """Node -> True if it goes on, False if off, and the time at which it is there, in s since 1970."""
        self._marked: set[str] = set()
        self._now_s = 0.0

    def read(self, tracked: Iterable[str] = ()) -> Snapshot:
        """Read Slurm, and return the snapshot under the scheduler's decisions. Raises SlurmError."""
        self.real = real = super().read(tracked)
        self._now_s = real.time_s
        if self._before is None:
            # what runs already is not the scheduler's
            self._before = {job.number for job in real.jobs.values() if not job.waiting}
        jobs = dict(real.jobs)
        for number, job in real.jobs.items():
            if job.handed and number not in self._before:
                self._virtual.setdefault(number, _Virtual(job)).row = job
        # also those that Slurm has forgotten, as it does minutes after their end
        for number, virtual in list(self._virtual.items()):
            jobs[number] = self._overlay(virtual)
            if not math.isnan(virtual.end_s) and number not in real.jobs:
                del self._virtual[number]
        ours = {name for number in self._virtual if jobs[number].running for name in jobs[number].hosts}
        theirs = {name for virtual in self._virtual.values() if virtual.row.running for name in virtual.row.hosts}
        nodes = {name: self._node(node, theirs, ours) for name, node in real.nodes.items()}
        return Snapshot(real.time_s, jobs, nodes)

    def _overlay(self, virtual: _Virtual) -> SlurmJob:
        job = virtual.row
        if job.ended and not virtual.final:
            ran_s = job.end_s - job.start_s
            virtual.ran_s, virtual.final = (ran_s if ran_s > 0.0 and job.hosts else 0.0), job.state
        if math.isnan(virtual.end_s):
            if not math.isnan(virtual.start_s):
                # whatever Slurm does, no run is longer than its limit
                lasts_s = min(virtual.ran_s, job.limit_s) if virtual.final else job.limit_s
                if self._now_s >= virtual.start_s + lasts_s:
                    virtual.end_s = virtual.start_s + lasts_s
                    virtual.final = virtual.final or "TIMEOUT"
            elif virtual.final == "CANCELLED" and virtual.ran_s == 0.0:
                virtual.end_s = self._now_s
        over = not math.isnan(virtual.end_s)
        running = not over and not math.isnan(virtual.start_s)
        # what its user keeps back in Slurm is kept back here
        held = job.waiting and job.held and not (virtual.held or over or running)
        return replace(
            job,
            state=virtual.final if over else "RUNNING" if running else "PENDING",
            reason="held in Slurm" if held else "",
            held=virtual.held or held,
            mark=MARK if virtual.held else "",
            start_s=virtual.start_s,
            end_s=virtual.end_s,
            restarts=virtual.restarts,
            hosts=virtual.hosts if running or over else (),
        )

    def _node(self, node: SlurmNode, theirs: set[str], ours: set[str]) -> SlurmNode:
        flags = set(node.flags) if node.broken else set(node.flags - _POWER - {"not_responding"})
        if node.name in theirs:
            flags -= BUSY
            flags.add("idle")
        if node.name in ours:
            flags -= {"idle"}
            flags.add("allocated")
        on, there_s = self._switch.get(node.name, (True, 0.0))
        if self._now_s < there_s:
            flags.add("powering_up" if on else "powering_down")
        elif not on:
            flags.add("powered_down")
        marked = node.name in self._marked
        reason = f"{MARK}: off" if marked else node.reason
        return SlurmNode(node.name, frozenset(flags | ({"drain"} if marked else set())), node.cores, reason)

    # changing ---------------------------------------------------------------------------------------------------

    def change(self, *words: str) -> None:
        """Raise AssertionError: nothing that changes Slurm may get here."""
        raise AssertionError(f"a shadow does not change Slurm: {' '.join(words)}")

    def _tell(self, *words: str) -> None:
        self._watch(words, "")

    def take(self, number: str) -> None:
        """See `SlurmCommands`."""
        self._tell("hold", number)
        self._virtual[number].held = True

    def launch(self, job: SlurmJob, hosts: Sequence[str]) -> None:
        """See `SlurmCommands`; the job starts at once."""
        self._tell("start", job.number, ",".join(hosts))
        virtual = self._virtual[job.number]
        virtual.held, virtual.hosts, virtual.start_s = False, tuple(hosts), self._now_s

    def give_back(self, job: SlurmJob) -> None:
        """See `SlurmCommands`."""
        self._tell("release", job.number)

    def requeue_held(self, job: SlurmJob) -> None:
        """See `SlurmCommands`."""
        self._tell("requeue", job.number)
        virtual = self._virtual[job.number]
        virtual.held, virtual.hosts, virtual.start_s = True, (), math.nan
        virtual.end_s = math.nan
        virtual.restarts += 1

    def cancel(self, number: str) -> None:
        """See `SlurmCommands`."""
        self._tell("cancel", number)
        self._virtual[number].final, self._virtual[number].end_s = "CANCELLED", self._now_s

    def signal(self, number: str, name: str) -> None:
        """See `SlurmCommands`; the job stays until the grace is over."""
        self._tell("signal", number, name)

    def comment(self, number: str, text: str) -> None:
        """See `SlurmCommands`."""
        self._tell("comment", number, text)

    def switch(self, what: str, names: Sequence[str]) -> None:
        """See `SlurmCommands`; nodes switch in the times of the platform."""
        self._tell(what, ",".join(names))
        if what == "drain":
            self._marked.update(names)
        elif what == "undrain":
            self._marked.difference_update(names)
        else:
            for name in names:
                host = self._hosts[name]
                sleep = host.sleeps[0]
                state = sleep.switch_on if what == "power_up" else sleep.switch_off
                lasts_s = host.pstates[state].duration_s / self._speed
                self._switch[name] = (what == "power_up", self._now_s + lasts_s)
