"""The commands of Slurm: squeue and sinfo to read, scontrol and scancel to change.

Tried with Slurm 22.05; the formats are those of squeue -O and sinfo -O, which are the same from 20.11 on. Each command
has a time limit; `watch` receives it with its answer.
"""

from __future__ import annotations

import math
import os
import re
import secrets
import subprocess
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from batwatt.errors import InputError
from batwatt.inputs.platforms.hostlist import expand
from batwatt.inputs.traces.job_log import duration_s
from batwatt.slurm.facts import (
    MARK,
    SlurmError,
    SlurmJob,
    SlurmNode,
    SlurmSilentError,
    Snapshot,
    time_of,
)

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
                submit_s=time_of(value["SubmitTime"]),
                begin_s=time_of(value["EligibleTime"]),
                start_s=time_of(value["StartTime"]),
                end_s=time_of(value["EndTime"]),
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

    def take(self, number: str) -> None:
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
