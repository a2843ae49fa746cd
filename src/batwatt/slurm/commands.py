"""Commands of Slurm, the jobs and nodes that they report, and a twin of a cluster without Slurm."""

from __future__ import annotations

import math
import os
import re
import secrets
import subprocess
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from batwatt.errors import BatwattError, InputError
from batwatt.inputs.batch_logs import duration_s
from batwatt.inputs.servers import expand
from batwatt.model.platform import Platform

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


def parse_time_s(text: str) -> float:
    """Return a time in s since 1970 as squeue prints it with SLURM_TIME_FORMAT=%s; NaN for N/A."""
    return float(text) if text.isdecimal() else math.nan


OLDEST = (20, 11)
"""The oldest Slurm whose formats are read."""
_FIELDS = (
    "JobArrayID", "JobID", "State", "Reason", "NumNodes", "TimeLimit", "Partition", "QOS", "UserName", "Dependency",
    "SubmitTime", "EligibleTime", "StartTime", "EndTime", "RestartCnt", "PriorityLong", "exit_code", "NodeList",
    "ReqNodes", "admin_comment",
)  # fmt: skip
_SILENT = ("Unable to contact", "Unexpected message", "not connected", "imed out", "Connection refused", "Zero Bytes",
           "standby", "authentication", "Munge")  # fmt: skip
"""Errors without a controller; `scontrol` prints an unexpected message for a job while slurmctld is down."""
_NARROWING = ("SQUEUE_", "SINFO_", "SCANCEL_", "SLURM_CLUSTERS")
"""Beginnings of variables that would narrow what the commands print."""
_GONE = "Invalid job id"
SWITCHES = {
    "undrain": ("state=undrain",),
    "power_up": ("state=power_up",),
    "power_down": ("state=power_down",),
    "drain": ("state=drain", f"reason={MARK}: off"),
}
"""Changes of nodes, in the order in which they are made; `drain` keeps nodes that are off from being woken by jobs."""
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
            raise kind(f"{' '.join(words[:3])}: {text}")
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

    def check_cluster(self, *, switches: bool) -> str:
        """Return the name of the cluster. Raises InputError if it lacks a node or the partition, or cannot switch."""
        text = self.run("scontrol", "show", "config")
        config = dict(re.findall(r"^(\w+)\s*=\s*(.*?)\s*$", text, re.MULTILINE))
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
        return config.get("ClusterName", "cluster")

    def read(self, tracked: Iterable[str] = ()) -> Snapshot:
        """Read the jobs that are handed over, also the `tracked` ones that are so no longer, and the nodes.

        Raises SlurmError.
        """
        kind, value = self.handover.kind, self.handover.value
        jobs = self._jobs("-p" if kind == "partition" else "-q", value)
        missing = [number for number in tracked if number not in jobs]
        # in portions, as a command line is bounded
        for i in range(0, len(missing), 500):
            try:
                jobs |= self._jobs("-j", ",".join(missing[i : i + 500]))
            except SlurmSilentError:
                raise
            except SlurmError as error:
                if _GONE not in str(error):
                    raise
        return Snapshot(time.time(), jobs, self.nodes())

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
        limit_s = duration_s(value["TimeLimit"])
        column = {"partition": "Partition", "qos": "QOS"}[self.handover.kind]
        try:
            return SlurmJob(
                number=value["JobArrayID"],
                id=value["JobID"],
                state=value["State"],
                reason=value["Reason"],
                nodes=int(value["NumNodes"].partition("-")[0]),
                limit_s=math.inf if math.isnan(limit_s) else limit_s,
                # parts of heterogeneous jobs start together only
                handed=value[column] == self.handover.value and "+" not in value["JobArrayID"],
                depends=value["Dependency"] not in ("", "(null)"),
                submit_s=parse_time_s(value["SubmitTime"]),
                begin_s=parse_time_s(value["EligibleTime"]),
                start_s=parse_time_s(value["StartTime"]),
                end_s=parse_time_s(value["EndTime"]),
                restarts=int(value["RestartCnt"] or 0),
                held=value["PriorityLong"] == "0",
                user=value["UserName"],
                hosts=expand(value["NodeList"]),
                exit_code=int(value["exit_code"] or 0),
                mark=value["admin_comment"].removeprefix("(null)"),
                required=value["ReqNodes"].removeprefix("(null)"),
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

    def hold(self, number: str) -> None:
        """Hold a job as an administrator, which its user cannot undo, and mark it."""
        self.change("scontrol", "update", f"jobid={number}", f"admincomment={MARK}")
        self.change("scontrol", "hold", number)

    def launch(self, job: SlurmJob, hosts: Sequence[str]) -> None:
        """Let Slurm start a job on these nodes, now."""
        # Slurm delays what was put back by two minutes
        again = ("starttime=now",) if job.restarts else ()
        number = (f"numnodes={len(hosts)}-{len(hosts)}", f"reqnodelist={','.join(hosts)}")
        self.change("scontrol", "update", f"jobid={job.number}", *number, *again)
        self.change("scontrol", "release", job.number)
        # a hold from now on is not ours
        self.change("scontrol", "update", f"jobid={job.number}", "admincomment=")

    def give_back(self, job: SlurmJob) -> None:
        """Let Slurm schedule a job by itself."""
        again = ("starttime=now",) if job.restarts else ()
        self.change("scontrol", "update", f"jobid={job.number}", "reqnodelist=", "admincomment=", *again)
        self.change("scontrol", "release", job.number)

    def requeue_held(self, job: SlurmJob) -> None:
        """Put a job back into the queue, on hold; one that runs only if it has not finished meanwhile."""
        if not job.ended:
            self.change("scontrol", "update", f"jobid={job.number}", f"admincomment={MARK}")
        self.change("scontrol", "requeuehold", *(() if job.ended else ("Incomplete",)), job.number)

    def cancel(self, number: str) -> None:
        """Cancel a job."""
        self.change("scancel", number)

    def signal(self, number: str, name: str) -> None:
        """Send a signal to the batch script of a job."""
        self.change("scancel", f"--signal={name}", "--batch", number)

    def comment(self, number: str, text: str) -> None:
        """Set the comment that tells an administrator the reason of a hold."""
        self.change("scontrol", "update", f"jobid={number}", f"admincomment={MARK}: {text}")

    def switch(self, what: str, names: Sequence[str]) -> None:
        """Change nodes as `SWITCHES` has it."""
        self.change("scontrol", "update", f"nodename={','.join(names)}", *SWITCHES[what])


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

    def hold(self, number: str) -> None:
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
