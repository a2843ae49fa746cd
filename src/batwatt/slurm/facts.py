"""Jobs and nodes as Slurm reports them."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from batwatt.errors import BatwattError

MARK = "batwatt"
"""First word of the reason of nodes, and of the administrator's comment on jobs, that were taken over."""
HELD_BY_USER = "JobHeldUser"
ENDED = {
    "COMPLETED": "COMPLETED_SUCCESSFULLY",
    "TIMEOUT": "COMPLETED_WALLTIME_REACHED",
    "CANCELLED": "COMPLETED_KILLED",
    "PREEMPTED": "COMPLETED_KILLED",
    "FAILED": "COMPLETED_FAILED",
    "NODE_FAIL": "COMPLETED_FAILED",
    "OUT_OF_MEMORY": "COMPLETED_FAILED",
    "BOOT_FAIL": "COMPLETED_FAILED",
    "DEADLINE": "COMPLETED_FAILED",
    "REVOKED": "COMPLETED_FAILED",
}
"""Slurm's final states of a job -> Batsim's."""
WAITING = frozenset(("PENDING", "REQUEUED", "REQUEUE_HOLD", "REQUEUE_FED", "RESV_DEL_HOLD", "SPECIAL_EXIT"))
LATER = ("JobArrayTaskLimit", "Reservation", "Licenses", "QOS", "Assoc", "PartitionTimeLimit", "PartitionNodeLimit")
"""Beginnings of reasons for which a job waits that are no lack of nodes."""
_BROKEN = frozenset(("down", "error", "unknown", "fail", "failing", "not_responding", "future", "invalid_reg", "maint"))
BUSY = frozenset(("allocated", "mixed", "completing"))


class SlurmError(BatwattError):
    """A command of Slurm failed; the text names it and the reason."""


class SlurmSilentError(SlurmError):
    """Slurm's controller does not answer."""


@dataclass(frozen=True, slots=True)
class SlurmJob:
    """A row of squeue. Times in s since 1970 (NaN: none), `limit_s` in s (infinite: none).

    `number` is that of its task in an array, `id` that of the whole array while it waits. `handed`: it is in the
    partition, or has the QOS, by which jobs are handed over. `depends`: it waits for another job.
    `mark`: the administrator's comment; `required`: the nodes that it asks for.
    """

    number: str
    id: str
    state: str
    reason: str
    nodes: int
    limit_s: float
    handed: bool
    depends: bool
    submit_s: float
    begin_s: float
    start_s: float
    end_s: float
    restarts: int
    held: bool
    user: str
    hosts: tuple[str, ...] = ()
    exit_code: int = 0
    mark: str = ""
    required: str = ""

    @property
    def waiting(self) -> bool:
        """True if the job has not begun, or has been put back into the queue."""
        return self.state in WAITING

    @property
    def ended(self) -> bool:
        """True if the job is over."""
        return self.state in ENDED

    @property
    def running(self) -> bool:
        """True if the job has nodes."""
        return not (self.waiting or self.ended)

    def startable(self, now_s: float) -> bool:
        """Return whether the job waits for nothing but nodes, at a time in s since 1970.

        Slurm delays what it has put back by two minutes; that does not count.
        """
        later = self.depends or self.reason.startswith(LATER) or (self.begin_s > now_s and self.restarts == 0)
        return self.waiting and not later

    @property
    def marked(self) -> bool:
        """True if the job was taken over by us."""
        return self.mark.split(":")[0] == MARK


@dataclass(frozen=True, slots=True)
class SlurmNode:
    """A row of sinfo; `flags` are the parts of its complete state."""

    name: str
    flags: frozenset[str]
    cores: int
    reason: str = ""

    @property
    def off(self) -> bool:
        """True if the node is powered down."""
        return "powered_down" in self.flags and not self.switching_on

    @property
    def switching_on(self) -> bool:
        """True if the node boots, or is about to."""
        return bool(self.flags & {"powering_up", "power_up"})

    @property
    def switching_off(self) -> bool:
        """True if the node shuts down, or is about to."""
        return bool(self.flags & {"powering_down", "power_down"})

    @property
    def busy(self) -> bool:
        """True if jobs hold the node."""
        return bool(self.flags & BUSY)

    @property
    def drained(self) -> bool:
        """True if Slurm starts nothing on the node."""
        return "drain" in self.flags

    @property
    def marked(self) -> bool:
        """True if the node was drained by us."""
        return self.drained and self.reason.split(":")[0] == MARK

    @property
    def up(self) -> bool:
        """True if the node has booted and answers."""
        return not (self.off or self.switching_on or self.switching_off or self.flags & _BROKEN)

    @property
    def broken(self) -> bool:
        """True if the node is out of service for Slurm, or an administrator has drained it."""
        return self._down or (self.drained and not self.marked)

    @property
    def _down(self) -> bool:
        # a node that is off or boots does not respond, and is well
        silent_for_a_reason = self.off or self.switching_on or self.switching_off
        return bool(self.flags & (_BROKEN - {"not_responding"} if silent_for_a_reason else _BROKEN))


@dataclass(frozen=True, slots=True)
class Snapshot:
    """State of Slurm at a time in s since 1970: jobs by number, nodes by name."""

    time_s: float
    jobs: Mapping[str, SlurmJob]
    nodes: Mapping[str, SlurmNode]


def time_of(text: str) -> float:
    """Return a time in s since 1970 as squeue prints it with SLURM_TIME_FORMAT=%s; NaN for N/A."""
    return float(text) if text.isdecimal() else math.nan
