"""Commands of Slurm, and the jobs and nodes that they report.

The administrator's comment on a job is its mark. It states what the bridge has changed on the job, so that any process
can restore it.
"""

from __future__ import annotations

import math
import os
import pwd
import re
import secrets
import subprocess
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from contextvars import ContextVar, copy_context
from dataclasses import dataclass, field, fields, replace
from typing import Any, Literal

from batwatt.errors import BatwattError, InputError
from batwatt.inputs.batch_logs import duration_s
from batwatt.inputs.servers import expand

MARK = "batwatt"
"""First word of texts on jobs and nodes that the bridge has changed."""
OFF = f"{MARK}: off"
"""Reason of nodes that the bridge has drained."""
HELD_BY_USER = "JobHeldUser"
_FAILURES = ("FAILED", "NODE_FAIL", "OUT_OF_MEMORY", "BOOT_FAIL", "DEADLINE", "REVOKED")
ENDED = {
    "COMPLETED": "COMPLETED_SUCCESSFULLY",
    "TIMEOUT": "COMPLETED_WALLTIME_REACHED",
    **dict.fromkeys(("CANCELLED", "PREEMPTED"), "COMPLETED_KILLED"),
    **dict.fromkeys(_FAILURES, "COMPLETED_FAILED"),
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


class SlurmError(BatwattError):
    """A command of Slurm failed; the text names it and the reason, `output` is what it printed."""

    output = ""


class SlurmSilentError(SlurmError):
    """Slurm's controller does not answer."""


@dataclass(frozen=True)
class Mark:
    """The mark of a job: held by the bridge, started and not yet seen to run, or left to Slurm.

    `why`: text for administrators; `nodes`: the range of nodes that the job was submitted with, where it had one;
    `before`: the comment before.
    """

    state: Literal["held", "started", "left"]
    why: str = ""
    nodes: str = ""
    before: str = ""

    @classmethod
    def of(cls, comment: str) -> Mark | None:
        """Return the mark in an administrator's comment; None without one."""
        match = _MARK.fullmatch(comment)
        return None if match is None else cls(match[1], match[2] or "", match[3] or "", match[4] or "")  # type: ignore[arg-type]

    def __str__(self) -> str:
        why = " " + re.sub(r"[\[\]\s]+", " ", self.why).strip() if self.why else ""
        nodes = f" [nodes {self.nodes}]" if self.nodes else ""
        return f"{MARK}: {self.state}{why}{nodes}" + (f" [was {self.before}]" if self.before else "")


_MARK = re.compile(rf"{MARK}: (held|started|left)(?: ([^\[]*?))?(?: \[nodes (\d+-\d+)\])?(?: \[was (.*)\])?", re.DOTALL)


_NONE = frozenset(("", "(null)", "N/A"))


def _cell(column: str, read: Callable[[str], Any] = str) -> Any:
    """Return a field of a dataclass that is read from a column of squeue."""
    return field(metadata={"column": column, "read": read})


def _limit_s(text: str) -> float:
    limit_s = duration_s(text)
    return math.inf if math.isnan(limit_s) else limit_s


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
    limit_s: float = _cell("TimeLimit", _limit_s)
    user: str = _cell("UserName")
    depends: bool = _cell("Dependency", lambda text: text not in _NONE)
    submit_s: float = _cell("SubmitTime", _date_s)
    begin_s: float = _cell("EligibleTime", _date_s)
    start_s: float = _cell("StartTime", _date_s)
    end_s: float = _cell("EndTime", _date_s)
    restarts: int = _cell("RestartCnt", lambda text: int(text or 0))
    held: bool = _cell("PriorityLong", lambda text: text == "0")
    exit_code: int = _cell("exit_code", _exit_code)
    hosts: tuple[str, ...] = _cell("NodeList", expand)
    comment: str = _cell("admin_comment", lambda text: text.removeprefix("(null)"))

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
    def ours(self) -> bool:
        """True if the bridge has taken the job over."""
        return self.mark is not None and self.mark.state != "left"

    def marked(self, state: Literal["held", "started", "left"], why: str = "") -> str:
        """Return the comment that marks the job, with what its present one holds."""
        mark = self.mark or Mark("held", nodes=self.range, before=self.comment)
        return str(replace(mark, state=state, why=why))

    @property
    def before(self) -> str:
        """The comment without a mark."""
        return self.comment if self.mark is None else self.mark.before


def _flagged(*flags: str) -> property:
    return property(lambda node: not node.flags.isdisjoint(flags))


@dataclass(frozen=True, slots=True)
class SlurmNode:
    """A row of sinfo; `flags` are the parts of its complete state."""

    name: str
    flags: frozenset[str]
    cores: int
    reason: str = ""

    switching_on = _flagged("powering_up", "power_up")
    """True if the node boots, or is about to."""
    switching_off = _flagged("powering_down", "power_down")
    """True if the node shuts down, or is about to."""
    busy = _flagged(*BUSY)
    """True if jobs hold the node."""
    drained = _flagged("drain")
    """True if Slurm starts nothing on the node."""
    reserved = _flagged("reserved")
    """True if the node is part of a reservation that is active."""

    @property
    def off(self) -> bool:
        """True if the node is powered down."""
        return "powered_down" in self.flags and not self.switching_on

    @property
    def marked(self) -> bool:
        """True if the node was drained by us."""
        # Slurm appends to the reason of a node that does not boot
        return self.drained and self.reason == OFF

    @property
    def power(self) -> str:
        """Word for the state of its power."""
        if self.switching_on or self.switching_off:
            return "switching"
        return "off" if self.off else "on"

    @property
    def up(self) -> bool:
        """True if the node has booted and answers."""
        return self.power == "on" and not self.flags & _BROKEN

    @property
    def broken(self) -> bool:
        """True if the node is out of service for Slurm, reserved, or an administrator has drained it."""
        # a node that is off or boots does not respond, and is well
        down = self.flags & (_BROKEN if self.power == "on" else _BROKEN - {"not_responding"})
        return bool(down) or self.reserved or (self.drained and not self.marked)


@dataclass(frozen=True, slots=True)
class Snapshot:
    """State of Slurm at a time in s since 1970: jobs by number, nodes by name.

    `begun_s`: begin of the read, monotonic.
    """

    time_s: float
    begun_s: float
    jobs: Mapping[str, SlurmJob]
    nodes: Mapping[str, SlurmNode]


OLDEST = (20, 11)
"""The oldest Slurm whose formats are read."""
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
_FIELDS = (*(cell["column"] for cell in _CELLS.values()), "Partition", "QOS", "MaxNodes", "Contiguous", *_DEMANDS)
_OF_ONE = ("numnodes=", "reqnodelist=")
_SILENT = ("Unable to contact", "Unexpected message", "not connected", "imed out", "Connection refused", "Zero Bytes",
           "standby", "authentication", "Munge")  # fmt: skip
"""Errors without a controller; `scontrol` prints an unexpected message for a job while slurmctld is down."""
_NARROWING = ("SQUEUE_", "SINFO_", "SCANCEL_", "SLURM_CLUSTERS")
"""Beginnings of variables that would narrow what the commands print."""
_GONE = "Invalid job id"
SWITCHES = {
    "undrain": ("state=undrain", "reason=none"),
    "power_up": ("state=power_up",),
    "power_down": ("state=power_down",),
    "drain": ("state=drain", f"reason={OFF}"),
}
"""Changes of nodes, in the order in which they are made; `drain` keeps nodes that are off from being woken by jobs."""
purpose: ContextVar[str] = ContextVar("purpose", default="")
"""Job, or word, for which a thread changes something."""
Watch = Callable[[Sequence[str], str], None]
"""Called with the words of a command that changes something, and an error or an empty text."""


@dataclass(frozen=True)
class Handover:
    """Mark of the jobs that are handed over: the name of a partition or of a QOS."""

    kind: str
    value: str

    def __str__(self) -> str:
        return f"{self.kind} {self.value}"


class SlurmCommands:
    """The commands, for the jobs of a handover and the nodes of a list."""

    limit_s = 60.0
    """Longest time of a command, in s."""
    portion = 250
    """Most jobs of one command, as a command line is bounded."""

    def __init__(self, handover: Handover, nodes: Iterable[str], watch: Watch = lambda words, answer: None) -> None:
        self.handover = handover
        self.names = tuple(nodes)
        self._watch = watch
        self.real: Snapshot | None = None
        """State of Slurm itself, where `read` returns something else."""
        environment = {name: value for name, value in os.environ.items() if not name.startswith(_NARROWING)}
        self._environment = environment | {"SLURM_TIME_FORMAT": "%s", "LC_ALL": "C"}

    def run(self, *words: str) -> str:
        """Return what a command prints. Raises SlurmError, SlurmSilentError if the controller does not answer."""
        try:
            process = subprocess.run(
                words, env=self._environment, stdin=subprocess.DEVNULL, capture_output=True, timeout=self.limit_s
            )
        except subprocess.TimeoutExpired:
            raise SlurmSilentError(f"{words[0]}: no answer within {self.limit_s:g} s") from None
        except OSError as error:
            raise SlurmError(f"{words[0]}: cannot be run ({error.strerror}); install the client of Slurm") from None
        if process.returncode:
            text = " ".join(process.stderr.decode(errors="replace").split()) or f"exit code {process.returncode}"
            kind = SlurmSilentError if any(word in text for word in _SILENT) else SlurmError
            problem = kind(f"{' '.join(words[:3])[:200]}: {text[:300]}")
            problem.output = text
            raise problem
        return process.stdout.decode(errors="replace")

    def change(self, *words: str) -> None:
        """Run a command that changes something, and report it to `watch`. Raises SlurmError."""
        try:
            self.run(*words)
        except SlurmError as error:
            self._watch(words, str(error))
            raise
        self._watch(words, "")

    # reading ----------------------------------------------------------------------------------------------------

    def check_version(self) -> str:
        """Return the version. Raises SlurmError for one that is too old."""
        text = self.run("sinfo", "--version").strip()
        numbers = re.search(r"(\d+)\.(\d+)", text)
        if numbers is None or (int(numbers[1]), int(numbers[2])) < OLDEST:
            raise SlurmError(f"{text!r}: the formats of Slurm before {OLDEST[0]}.{OLDEST[1]} are not read")
        return text

    def cluster(self, *, operates: bool) -> tuple[str, Mapping[str, str]]:
        """Return the name of the cluster and its configuration.

        Raises InputError if it is to be operated by a user that is not root, SlurmUser or an operator of slurmdbd.
        """
        text = self.run("scontrol", "show", "config")
        config = dict(re.findall(r"^(\w+)\s*=\s*(.*?)\s*$", text, re.MULTILINE))
        user, slurm_user = os.geteuid(), config.get("SlurmUser", "")
        if operates and user != 0 and not slurm_user.endswith(f"({user})"):
            name, level = pwd.getpwuid(user).pw_name, ""
            with suppress(SlurmError):
                level = self.run("sacctmgr", "-n", "-P", "show", "user", name, "format=adminlevel").strip()
            if level not in ("Operator", "Administrator"):
                problem = f"{name} may not change jobs of others"
                raise InputError("--operate", problem, f"run as root or {slurm_user.partition('(')[0] or 'SlurmUser'}")
        return config.get("ClusterName", "cluster"), config

    def check(self, config: Mapping[str, str], *, switches: bool) -> None:
        """Raise InputError if the cluster lacks a node or the partition, or cannot switch nodes."""
        if switches:
            for name, unset in (("SuspendProgram", "(null)"), ("ResumeProgram", "(null)"), ("SuspendTime", "INFINITE")):
                if config.get(name, unset) in (unset, "NONE"):
                    hint = "set it (SuspendTime=31536000 lets Slurm switch nothing off by itself)"
                    raise InputError("slurm.conf", f"{name} is not set, without which no node can be switched", hint)
        kind, value = self.handover.kind, self.handover.value
        if kind == "partition" and not self.run("sinfo", "-h", "-p", value).strip():
            raise InputError("--partition", f"Slurm has no partition {value!r}", "give one of sinfo")
        for name, node in self.nodes().items():
            if not node.cores:
                raise InputError("the platform", f"node {name!r} is not in Slurm", "name its hosts as in sinfo")

    def node_comments(self) -> dict[str, str]:
        """Return the comments of all nodes of the cluster. Raises SlurmError."""
        mark = secrets.token_hex(8)
        text = self.run("sinfo", "-h", "-a", "-N", "-O", f"NodeList:|{mark}|,Comment:|{mark}|")
        cells = [cell.strip() for cell in text.split(f"|{mark}|")]
        return {cells[i]: cells[i + 1].removeprefix("(null)") for i in range(0, len(cells) - 1, 2)}

    def comment_nodes(self, comments: Mapping[str, str]) -> None:
        """Set comments of nodes. Raises SlurmError."""
        names: dict[str, list[str]] = {}
        for name, comment in comments.items():
            names.setdefault(comment, []).append(name)
        for comment, group in names.items():
            self.change("scontrol", "update", f"nodename={','.join(group)}", f"comment={comment}")

    def read(self, tracked: Iterable[str] = ()) -> Snapshot:
        """Read the jobs that are handed over, also the `tracked` ones that are so no longer, and the nodes.

        Raises SlurmError.
        """
        begun_s = time.monotonic()
        with ThreadPoolExecutor(2) as pool:
            nodes, reserved = pool.submit(self.nodes), pool.submit(self._reserved)
            jobs = self._jobs(*self._narrow)
            missing = [number for number in tracked if number not in jobs]
            for i in range(0, len(missing), self.portion):
                try:
                    jobs |= self._jobs("-j", ",".join(missing[i : i + self.portion]))
                except SlurmSilentError:
                    raise
                except SlurmError as error:
                    if _GONE not in str(error):
                        raise
            rows = nodes.result()
            for name in reserved.result() & rows.keys():
                rows[name] = replace(rows[name], flags=rows[name].flags | {"reserved"})
        return Snapshot(time.time(), begun_s, jobs, rows)

    @property
    def _narrow(self) -> tuple[str, str]:
        """Option of squeue that selects the jobs that are handed over."""
        return "-p" if self.handover.kind == "partition" else "-q", self.handover.value

    def _reserved(self) -> set[str]:
        """Return the nodes of active reservations."""
        names: set[str] = set()
        for line in self.run("scontrol", "show", "reservation", "-o").splitlines():
            words = dict(word.partition("=")[::2] for word in line.split())
            if words.get("State") == "ACTIVE":
                names.update(expand(words.get("Nodes", "").removeprefix("(null)")))
        return names

    def excluded(self) -> dict[str, set[str]]:
        """Return the nodes that jobs exclude, by number of the job, for jobs that exclude some. Raises SlurmError."""
        # the long format of squeue lacks them
        text = self.run("squeue", "-h", "-r", "-t", "pending", *self._narrow, "-o", "%i %x")
        rows = (line.split() for line in text.splitlines())
        return {row[0]: set(expand(row[1])) for row in rows if len(row) == 2 and row[1] not in _NONE}

    def _jobs(self, *narrow: str) -> dict[str, SlurmJob]:
        # a comment may hold anything, also lines that look like rows: its author cannot guess the separator
        mark = secrets.token_hex(8)
        text = self.run(
            "squeue", "-h", "-r", "-t", "all", *narrow, "-O", ",".join(f"{name}:|{mark}|" for name in _FIELDS)
        )
        jobs = {}
        cells = text.split(f"|{mark}|")
        for i in range(0, len(cells) - len(_FIELDS), len(_FIELDS)):
            job = self._job([cell.strip() for cell in cells[i : i + len(_FIELDS)]])
            jobs[job.number] = job
        return jobs

    def _job(self, row: Sequence[str]) -> SlurmJob:
        value = dict(zip(_FIELDS, row, strict=True))
        places = value["Partition" if self.handover.kind == "partition" else "QOS"].split(",")
        try:
            cells = {name: cell["read"](value[cell["column"]]) for name, cell in _CELLS.items()}
            nodes, most = cells["nodes"], int(value["MaxNodes"] or 0)
            return SlurmJob(
                **cells,
                required="" if value["ReqNodes"] in _NONE else value["ReqNodes"],
                handed=self.handover.value in places,
                mark=Mark.of(cells["comment"]),
                range=f"{nodes}-{most}" if most > nodes else "",
                demand=_demand(value, nodes) or (f"--{self.handover.kind}={','.join(places)}" if places[1:] else ""),
            )
        except ValueError:
            raise SlurmError(f"squeue: a row that cannot be read: {'|'.join(row)}") from None

    def nodes(self) -> dict[str, SlurmNode]:
        """Read the nodes; those that Slurm lacks have no cores. Raises SlurmError."""
        names = ",".join(self.names)
        text = self.run("sinfo", "-h", "-N", "-n", names, "-O", "NodeList:|,StateComplete:|,CPUs:|,Reason:|\x1f")
        nodes = {}
        for row in text.split("|\x1f"):
            name, *cells = row.strip().split("|", 3)
            if len(cells) == 3 and cells[1].isdecimal():
                nodes[name] = SlurmNode(name, frozenset(cells[0].split("+")), int(cells[1]), cells[2])
        for name in self.names:
            # a node that Slurm no longer has is out of service
            nodes.setdefault(name, SlurmNode(name, frozenset(("unknown",)), 0))
        return nodes

    # changing ---------------------------------------------------------------------------------------------------

    def take(self, jobs: Sequence[SlurmJob], why: str = "") -> dict[str, SlurmError]:
        """Hold waiting jobs as an administrator, which their users cannot undo, and mark them; require no nodes.

        Returns errors by number of the job. Raises SlurmSilentError.
        """
        return self._update(
            jobs, lambda job: (*_restored(job), "priority=0", f"admincomment={job.marked('held', why)}")
        )

    def launch(self, job: SlurmJob, hosts: Sequence[str]) -> None:
        """Let Slurm start a job on these nodes, now."""
        # Slurm delays what was put back by two minutes
        again = ("starttime=now",) if job.restarts else ()
        number = (f"numnodes={len(hosts)}-{len(hosts)}", f"reqnodelist={','.join(hosts)}")
        mark = f"admincomment={job.marked('started')}"
        self.change("scontrol", "update", f"jobid={job.number}", *number, mark, *again)
        self.change("scontrol", "release", job.number)

    def confirm(self, jobs: Sequence[SlurmJob]) -> dict[str, SlurmError]:
        """Restore the comments of jobs that have begun; a hold from now on is not ours. Returns errors by number."""
        return self._update(jobs, lambda job: (f"admincomment={job.before}",))

    def leave(self, jobs: Sequence[SlurmJob], why: str) -> dict[str, SlurmError]:
        """Mark waiting jobs that stay with Slurm. Returns errors by number."""
        return self._update(jobs, lambda job: (f"admincomment={job.marked('left', why)}",))

    def let_go(self, jobs: Sequence[SlurmJob], *, release: bool = True) -> dict[str, SlurmError]:
        """Restore jobs as they were before they were taken over, and release them; return errors by number.

        The mark goes last: without it a job that is still on hold would be lost.
        """
        errors = self._update([job for job in jobs if _restored(job)], _restored)
        freed = [job for job in jobs if release and job.waiting and job.number not in errors]
        # Slurm delays what was put back by two minutes
        self._update([job for job in freed if job.restarts], lambda job: ("starttime=now",))
        errors |= self._many(("scontrol", "release"), [job.number for job in freed])
        rest = [job for job in jobs if job.number not in errors]
        return errors | self._update(rest, lambda job: (f"admincomment={job.before}",))

    def requeue_held(self, job: SlurmJob) -> None:
        """Put a job back into the queue, on hold; one that runs only if it has not finished meanwhile."""
        if not job.ended:
            self.change("scontrol", "update", f"jobid={job.number}", f"admincomment={job.marked('held')}")
        self.change("scontrol", "requeuehold", *(() if job.ended else ("Incomplete",)), job.number)

    def _update(
        self, jobs: Sequence[SlurmJob], words_of: Callable[[SlurmJob], tuple[str, ...]]
    ) -> dict[str, SlurmError]:
        """Update jobs, those with equal words in one command; return errors by number. Raises SlurmSilentError."""
        groups: dict[tuple[str, ...], list[str]] = {}
        for job in jobs:
            groups.setdefault(words_of(job), []).append(job.number)
        errors: dict[str, SlurmError] = {}
        for words, numbers in groups.items():
            errors |= self._many(("scontrol", "update"), numbers, "jobid=", *words)
        return errors

    def _many(
        self, command: tuple[str, ...], numbers: Sequence[str], name: str = "", *words: str
    ) -> dict[str, SlurmError]:
        """Run a command for many jobs; return errors by number. Raises SlurmSilentError.

        Slurm makes what it can and reports the rest by number; a command without numbers is repeated for each half.
        """
        # scontrol changes nodes of one job only
        size = 1 if any(word.startswith(_OF_ONE) for word in words) else self.portion

        def change(portion: Sequence[str]) -> dict[str, SlurmError]:
            try:
                self.change(*command, f"{name}{','.join(portion)}", *words)
            except SlurmSilentError:
                raise
            except SlurmError as error:
                named = set(re.findall(r"\d+(?:_\d+)?", error.output)) & set(portion)
                if named or len(portion) == 1:
                    return dict.fromkeys(named or portion, error)
                middle = len(portion) // 2
                return change(portion[:middle]) | change(portion[middle:])
            return {}

        errors: dict[str, SlurmError] = {}
        with ThreadPoolExecutor(2) as pool:
            portions = [numbers[i : i + size] for i in range(0, len(numbers), size)]
            for future in [pool.submit(copy_context().run, change, portion) for portion in portions]:
                errors |= future.result()
        return errors

    def cancel(self, number: str) -> None:
        """Cancel a job."""
        self.change("scancel", number)

    def signal(self, number: str, name: str) -> None:
        """Send a signal to the batch script of a job."""
        self.change("scancel", f"--signal={name}", "--batch", number)

    def switch(self, what: str, names: Sequence[str]) -> None:
        """Change nodes as `SWITCHES` has it."""
        self.change("scontrol", "update", f"nodename={','.join(names)}", *SWITCHES[what])


def _demand(value: Mapping[str, str], nodes: int) -> str:
    """Return the first option in a row of squeue that no scheduler for Batsim can honour; empty without one."""
    for name, option in _DEMANDS.items():
        if value[name] not in _NONE:
            return f"{option}={value[name]}"
    return "--contiguous" if value["Contiguous"] == "1" and nodes > 1 else ""


def _restored(job: SlurmJob) -> tuple[str, ...]:
    """Return the words that undo the changes of a start, after which the job requires nodes."""
    left = job.mark is not None and job.mark.state == "left"
    if left or not job.waiting or not job.required:
        return ()
    nodes = (f"numnodes={job.mark.nodes}",) if job.mark is not None and job.mark.nodes else ()
    return (*nodes, "reqnodelist=")
