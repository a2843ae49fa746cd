"""Jobs and nodes as Slurm reports them, and the marks of the bridge on them."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any, Literal, cast

from batwatt.inputs.batch_logs import duration_s
from batwatt.inputs.servers import expand

MARK = "batwatt"
"""First word of texts on jobs and nodes that the bridge has changed."""
OFF = f"{MARK}: off"
"""Reason of nodes that the bridge has drained."""
HELD_BY_USER = "JobHeldUser"
ENDED = {
    "COMPLETED": "COMPLETED_SUCCESSFULLY",
    "TIMEOUT": "COMPLETED_WALLTIME_REACHED",
    **dict.fromkeys(("CANCELLED", "PREEMPTED"), "COMPLETED_KILLED"),
    **dict.fromkeys(("FAILED", "NODE_FAIL", "OUT_OF_MEMORY", "BOOT_FAIL", "DEADLINE", "REVOKED"), "COMPLETED_FAILED"),
}
"""Slurm's final states of a job -> Batsim's."""
WAITING = frozenset(("PENDING", "REQUEUED", "REQUEUE_HOLD", "REQUEUE_FED", "RESV_DEL_HOLD", "SPECIAL_EXIT"))
LATER = ("JobArrayTaskLimit", "Reservation", "Licenses", "QOS", "Assoc", "PartitionTimeLimit", "PartitionNodeLimit")
"""Beginnings of reasons for which a job waits that are no lack of nodes."""
REFUSALS = (
    *LATER,
    "BadConstraints",
    "ReqNodeNotAvail",
    "DependencyNever",
    "Partition",
    "NodeDown",
    "JobHeld",
    "launch",
)
"""Beginnings of reasons after which a start does not come by itself."""
BUSY = ("allocated", "mixed", "completing")
_BROKEN = frozenset(("down", "error", "unknown", "fail", "failing", "not_responding", "future", "invalid_reg", "maint"))


MarkState = Literal["held", "started", "left"]


@dataclass(frozen=True)
class Handover:
    """Mark of the jobs that are handed over: the name of a partition or of a QOS."""

    kind: str
    value: str

    def __str__(self) -> str:
        return f"{self.kind} {self.value}"


@dataclass(frozen=True)
class Mark:
    """The mark of a job in its administrator's comment, by which any process can restore it.

    `state`: held by the bridge, started and not yet seen to run, or left to Slurm; `why`: text for administrators;
    `nodes`: the range of nodes that the job was submitted with, where it had one; `before`: the comment before.
    """

    state: MarkState
    why: str = ""
    nodes: str = ""
    before: str = ""

    @classmethod
    def of(cls, comment: str) -> Mark | None:
        """Return the mark in an administrator's comment; None without one."""
        match = _MARK.fullmatch(comment)
        if match is None:
            return None
        return cls(cast(MarkState, match[1]), match[2] or "", match[3] or "", match[4] or "")

    def __str__(self) -> str:
        why = " " + re.sub(r"[\[\]\s\0]+", " ", self.why).strip() if self.why else ""
        nodes = f" [nodes {self.nodes}]" if self.nodes else ""
        return f"{MARK}: {self.state}{why}{nodes}" + (f" [was {self.before}]" if self.before else "")


_MARK = re.compile(rf"{MARK}: (held|started|left)(?: ([^\[]*?))?(?: \[nodes (\d+-\d+)\])?(?: \[was (.*)\])?", re.DOTALL)


NONE = frozenset(("", "(null)", "N/A"))
"""Texts of an empty cell."""


class _Is:
    """A property that is true or false."""

    def __init__(self, rule: Callable[[Any], bool]) -> None:
        self._rule = rule

    def __get__(self, row: object, kind: type) -> bool:
        return self._rule(row)


def _cell(column: str, read: Callable[[str], Any] = str) -> Any:
    """Return a field of a dataclass that is read from a column of squeue."""
    return field(metadata={"column": column, "read": read})


def _date_s(text: str) -> float:
    """Return a time in s since 1970 as squeue prints it with SLURM_TIME_FORMAT=%s; NaN for N/A."""
    return float(text) if text.isdecimal() else math.nan


def _exit_code(text: str) -> int:
    """Return the exit code of `code:signal`, or of the status of wait() that older Slurms print; 128 + signal."""
    code, colon, signal = text.partition(":")
    status = int(code or 0)
    if colon:
        return status or (128 + int(signal) if int(signal or 0) else 0)
    return status >> 8 or (128 + (status & 127) if status & 127 else 0)


@dataclass(frozen=True, slots=True)
class SlurmJob:
    """A row of squeue. Times in s since 1970 (NaN: none), `limit_s` in s (infinite: none).

    `required`: the nodes that it requires. `handed`: it is in the partition, or has the QOS, by which jobs are handed
    over. `range`: minimum and maximum of nodes, where they differ; `demand`: an option of its submission that no
    scheduler for Batsim can honour. `number` is that of its task in an array, `id` that of the whole array while it
    waits. `depends`: it waits for another job.
    """

    required: str
    handed: bool
    mark: Mark | None
    range: str
    demand: str
    number: str = _cell("JobArrayID")
    id: str = _cell("JobID")
    state: str = _cell("State")
    reason: str = _cell("Reason")
    nodes: int = _cell("NumNodes", lambda text: int(text.partition("-")[0]))
    limit_s: float = _cell("TimeLimit", lambda text: math.inf if math.isnan(limit_s := duration_s(text)) else limit_s)
    user: str = _cell("UserName")
    depends: bool = _cell("Dependency", lambda text: text not in NONE)
    submit_s: float = _cell("SubmitTime", _date_s)
    begin_s: float = _cell("EligibleTime", _date_s)
    start_s: float = _cell("StartTime", _date_s)
    end_s: float = _cell("EndTime", _date_s)
    restarts: int = _cell("RestartCnt", lambda text: int(text or 0))
    held: bool = _cell("PriorityLong", lambda text: text == "0")
    exit_code: int = _cell("exit_code", _exit_code)
    hosts: tuple[str, ...] = _cell("NodeList", expand)
    comment: str = _cell("admin_comment", lambda text: text.removeprefix("(null)"))

    waiting = _Is(lambda job: job.state in WAITING)
    """True if the job has not begun, or has been put back into the queue."""
    ended = _Is(lambda job: job.state in ENDED)
    """True if the job is over."""
    running = _Is(lambda job: not (job.waiting or job.ended))
    """True if the job has nodes."""
    ours = _Is(lambda job: job.mark is not None and job.mark.state != "left")
    """True if the bridge has taken the job over."""
    started = _Is(lambda job: job.mark is not None and job.mark.state == "started")
    """True if the bridge has started the job, and not seen it run."""

    def startable(self, now_s: float) -> bool:
        """Return whether the job waits for nothing but nodes, at a time in s since 1970."""
        # Slurm delays what it has put back by two minutes, which does not count
        later = self.depends or self.reason.startswith(LATER) or (self.begin_s > now_s and self.restarts == 0)
        return self.waiting and not later

    def marked(self, state: MarkState, why: str = "") -> str:
        """Return the comment that marks the job, with what its present one holds."""
        mark = self.mark or Mark("held", nodes=self.range, before=self.comment)
        return str(replace(mark, state=state, why=why))

    @property
    def array(self) -> str:
        """The number of its array; its own without one."""
        return re.split(r"[_+]", self.number)[0]

    @property
    def before(self) -> str:
        """The comment without a mark."""
        return self.comment if self.mark is None else self.mark.before


@dataclass(frozen=True, slots=True)
class SlurmNode:
    """A row of sinfo; `flags` are the parts of its complete state."""

    name: str
    flags: frozenset[str]
    cores: int
    reason: str = ""

    switching_on = _Is(lambda node: not node.flags.isdisjoint(("powering_up", "power_up")))
    """True if the node boots, or is about to."""
    switching_off = _Is(lambda node: not node.flags.isdisjoint(("powering_down", "power_down")))
    """True if the node shuts down, or is about to."""
    busy = _Is(lambda node: not node.flags.isdisjoint(BUSY))
    """True if jobs hold the node."""
    off = _Is(lambda node: "powered_down" in node.flags and not node.switching_on)
    """True if the node is powered down."""
    up = _Is(lambda node: node.power == "on" and not node.flags & _BROKEN)
    """True if the node has booted and answers."""
    drained = _Is(lambda node: "drain" in node.flags)
    """True if Slurm starts nothing on the node."""
    marked = _Is(lambda node: node.drained and node.reason == OFF)
    """True if the node was drained by us; Slurm appends to the reason of a node that does not boot."""
    reserved = _Is(lambda node: "reserved" in node.flags)
    """True if the node is part of a reservation that is active."""

    @property
    def power(self) -> str:
        """Word for the state of its power."""
        if self.switching_on or self.switching_off:
            return "switching"
        return "off" if self.off else "on"

    @property
    def broken(self) -> bool:
        """True if the node is out of service for Slurm, reserved, or an administrator has drained it."""
        # a node that is off or boots does not respond, and is well
        down = self.flags & (_BROKEN if self.power == "on" else _BROKEN - {"not_responding"})
        return bool(down) or self.reserved or (self.drained and not self.marked)


@dataclass(frozen=True, slots=True)
class Snapshot:
    """State of Slurm at a time in s since 1970, jobs and nodes by name; `begun_s`: begin of its read, monotonic."""

    time_s: float
    begun_s: float
    jobs: Mapping[str, SlurmJob]
    nodes: Mapping[str, SlurmNode]


_DEMANDS = {
    "Feature": "--constraint",
    "ReqNodes": "--nodelist",
    "Licenses": "--licenses",
    "tres-per-node": "--gres",
    "tres-per-job": "--gpus",
    "tres-per-socket": "--gpus-per-socket",
    "tres-per-task": "--gpus-per-task",
    "Reservation": "--reservation",
    "HetJobID": "a heterogeneous job",
}
"""Fields of squeue with what no scheduler for Batsim knows of -> option of sbatch."""
_CELLS = {cell.name: cell.metadata for cell in fields(SlurmJob) if cell.metadata}
FIELDS = (*(cell["column"] for cell in _CELLS.values()), "Partition", "QOS", "MaxNodes", "Contiguous", *_DEMANDS)


def job_of(row: Sequence[str], handover: Handover) -> SlurmJob:
    """Return the job in the cells of `FIELDS`. Raises ValueError."""
    value = dict(zip(FIELDS, row, strict=True))
    cells = {name: cell["read"](value[cell["column"]]) for name, cell in _CELLS.items()}
    nodes, most = cells["nodes"], int(value["MaxNodes"] or 0)
    places = value["Partition" if handover.kind == "partition" else "QOS"].split(",")
    # the first option that no scheduler for Batsim can honour
    demands = [f"{option}={value[name]}" for name, option in _DEMANDS.items() if value[name] not in NONE]
    demands += ["--contiguous"] if value["Contiguous"] == "1" and nodes > 1 else []
    demands += [f"--{handover.kind}={','.join(places)}"] if places[1:] else []
    return SlurmJob(
        **cells,
        required="" if value["ReqNodes"] in NONE else value["ReqNodes"],
        handed=handover.value in places,
        mark=Mark.of(cells["comment"]),
        range=f"{nodes}-{most}" if most > nodes else "",
        demand=next(iter(demands), ""),
    )
