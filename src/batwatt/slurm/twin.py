"""The twin of a cluster: Slurm is read, and the changes of a session are made here."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from batwatt.model.platform import Platform
from batwatt.slurm.commands import (
    BUSY,
    OFF,
    Handover,
    Mark,
    SlurmCommands,
    SlurmError,
    SlurmJob,
    SlurmNode,
    Snapshot,
    Watch,
)

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
        for number, job in real.jobs.items():
            if job.handed and number not in self._before:
                self._virtual.setdefault(number, _Virtual(job)).row = job
        # also those that Slurm has forgotten, as it does minutes after their end
        jobs = {**real.jobs, **{number: self._overlay(virtual) for number, virtual in self._virtual.items()}}
        for number in self._virtual.keys() - real.jobs.keys():
            if not math.isnan(self._virtual[number].end_s):
                del self._virtual[number]
        ours = {name for number in self._virtual if jobs[number].running for name in jobs[number].hosts}
        theirs = {name for virtual in self._virtual.values() if virtual.row.running for name in virtual.row.hosts}
        nodes = {name: self._node(node, theirs, ours) for name, node in real.nodes.items()}
        return Snapshot(real.time_s, real.begun_s, jobs, nodes)

    def _overlay(self, virtual: _Virtual) -> SlurmJob:
        job = virtual.row
        if job.ended and not virtual.final:
            ran_s = job.end_s - job.start_s
            virtual.ran_s, virtual.final = (ran_s if ran_s > 0.0 and job.hosts else 0.0), job.state
        begun = not math.isnan(virtual.start_s)
        if math.isnan(virtual.end_s) and begun:
            # whatever Slurm does, no run is longer than its limit
            end_s = virtual.start_s + (min(virtual.ran_s, job.limit_s) if virtual.final else job.limit_s)
            if self._now_s >= end_s:
                virtual.end_s, virtual.final = end_s, virtual.final or "TIMEOUT"
        elif math.isnan(virtual.end_s) and virtual.final == "CANCELLED" and virtual.ran_s == 0.0:
            virtual.end_s = self._now_s
        over = not math.isnan(virtual.end_s)
        # what its user keeps back in Slurm is kept back here
        held = job.waiting and job.held and not (virtual.held or over or begun)
        return replace(
            job,
            state=virtual.final if over else "RUNNING" if begun else "PENDING",
            reason="held in Slurm" if held else "",
            held=virtual.held or held,
            mark=Mark("held") if virtual.held else None,
            start_s=virtual.start_s,
            end_s=virtual.end_s,
            restarts=virtual.restarts,
            hosts=virtual.hosts if begun or over else (),
        )

    def _node(self, node: SlurmNode, theirs: set[str], ours: set[str]) -> SlurmNode:
        flags = set(node.flags) if node.broken else set(node.flags - _POWER - {"not_responding"})
        if node.name in theirs:
            flags = flags.difference(BUSY) | {"idle"}
        if node.name in ours:
            flags = (flags - {"idle"}) | {"allocated"}
        on, there_s = self._switch.get(node.name, (True, 0.0))
        if self._now_s < there_s:
            flags.add("powering_up" if on else "powering_down")
        elif not on:
            flags.add("powered_down")
        marked = node.name in self._marked
        reason = OFF if marked else node.reason
        return SlurmNode(node.name, frozenset(flags | ({"drain"} if marked else set())), node.cores, reason)

    # changing ---------------------------------------------------------------------------------------------------

    def change(self, *words: str) -> None:
        """Raise AssertionError: nothing that changes Slurm may get here."""
        raise AssertionError(f"a shadow does not change Slurm: {' '.join(words)}")

    def _would(self, *words: str, jobs: Iterable[str] = (), **values: Any) -> dict[str, SlurmError]:
        """Report a command and set values of jobs here, by their numbers; return no errors."""
        self._watch(words, "")
        for number in jobs:
            for name, value in values.items():
                setattr(self._virtual[number], name, value)
        return {}

    def take(self, jobs: Sequence[SlurmJob], why: str = "") -> dict[str, SlurmError]:
        """See `SlurmCommands`."""
        numbers = [job.number for job in jobs]
        return self._would("hold", *numbers, *([why] if why else []), jobs=numbers, held=True)

    def launch(self, job: SlurmJob, hosts: Sequence[str]) -> None:
        """See `SlurmCommands`; the job starts at once."""
        values = {"held": False, "hosts": tuple(hosts), "start_s": self._now_s}
        self._would("start", job.number, ",".join(hosts), jobs=[job.number], **values)

    def confirm(self, jobs: Sequence[SlurmJob]) -> dict[str, SlurmError]:
        """See `SlurmCommands`."""
        return {}

    def leave(self, jobs: Sequence[SlurmJob], why: str) -> dict[str, SlurmError]:
        """See `SlurmCommands`."""
        return self._would("leave", *(job.number for job in jobs), why)

    def let_go(self, jobs: Sequence[SlurmJob], *, release: bool = True) -> dict[str, SlurmError]:
        """See `SlurmCommands`."""
        return self._would("release", *(job.number for job in jobs))

    def requeue_held(self, job: SlurmJob) -> None:
        """See `SlurmCommands`."""
        values = {"held": True, "hosts": (), "start_s": math.nan, "end_s": math.nan, "restarts": job.restarts + 1}
        self._would("requeue", job.number, jobs=[job.number], **values)

    def cancel(self, number: str) -> None:
        """See `SlurmCommands`."""
        self._would("cancel", number, jobs=[number], final="CANCELLED", end_s=self._now_s)

    def signal(self, number: str, name: str) -> None:
        """See `SlurmCommands`; the job stays until the grace is over."""
        self._would("signal", number, name)

    def switch(self, what: str, names: Sequence[str]) -> None:
        """See `SlurmCommands`; nodes switch in the times of the platform."""
        self._would(what, ",".join(names))
        if what == "drain":
            self._marked.update(names)
        elif what == "undrain":
            self._marked.difference_update(names)
        else:
            for name in names:
                host, on = self._hosts[name], what == "power_up"
                state = host.sleeps[0].switch_on if on else host.sleeps[0].switch_off
                self._switch[name] = (on, self._now_s + host.pstates[state].duration_s / self._speed)
