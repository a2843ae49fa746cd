"""The commands of Slurm, and a twin of a cluster whose commands change nothing in Slurm."""

from __future__ import annotations

import math
import os
import pwd
import re
import secrets
import subprocess
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from contextvars import ContextVar, copy_context
from dataclasses import dataclass, replace
from typing import Any

from batwatt.errors import BatwattError, InputError
from batwatt.inputs.servers import expand
from batwatt.model.platform import Platform
from batwatt.slurm.snapshot import BUSY, FIELDS, NONE, OFF, Handover, Mark, SlurmJob, SlurmNode, Snapshot, job_of

OLDEST = (20, 11)
"""The oldest Slurm whose formats are read."""
_OF_ONE = ("numnodes=", "reqnodelist=")
_SILENT = ("Unable to contact", "Unexpected message", "not connected", "imed out", "Connection refused", "Zero Bytes",
           "standby", "authentication", "Munge")  # fmt: skip
"""Errors without a controller; `scontrol` prints an unexpected message for a job while slurmctld is down."""
_NARROWING = ("SQUEUE_", "SINFO_", "SCANCEL_", "SLURM_CLUSTERS")
"""Beginnings of variables that would narrow what the commands print."""
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


class SlurmError(BatwattError):
    """A command of Slurm failed; the text names it and the reason, `output` is what it printed."""

    output = ""


class SlurmSilentError(SlurmError):
    """Slurm's controller does not answer."""


class SlurmCommands:
    """The commands, for the jobs of a handover and the nodes of a list."""

    limit_s = 60.0
    """Longest time of a command, in s."""
    portion = 125
    """Most jobs of one command, as a command line is bounded."""

    def __init__(self, handover: Handover, nodes: Iterable[str], watch: Watch = lambda words, answer: None) -> None:
        self.handover = handover
        self.names = tuple(nodes)
        self._watch = watch
        self._arrays: dict[str, set[str]] = {}
        """Tasks that have not ended, by the number of their array."""
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

    def check_version(self) -> str:
        """Return the version. Raises SlurmError for one that is too old."""
        text = self.run("sinfo", "--version").strip()
        numbers = re.search(r"(\d+)\.(\d+)", text)
        if numbers is None or (int(numbers[1]), int(numbers[2])) < OLDEST:
            raise SlurmError(f"{text!r}: the formats of Slurm before {OLDEST[0]}.{OLDEST[1]} are not read")
        return text

    def cluster(self, *, operates: bool) -> tuple[str, Mapping[str, str]]:
        """Return the name and the configuration of the cluster. Raises InputError if this user may not operate it."""
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
        """Read the jobs that are handed over, also those `tracked`, and the nodes. Raises SlurmError."""
        begun_s = time.monotonic()
        with ThreadPoolExecutor(2) as pool:
            nodes, reserved = pool.submit(self.nodes), pool.submit(self._reserved)
            jobs = self._jobs(*self._narrow)
            self._arrays = {}
            for job in jobs.values():
                if not job.ended and job.array != job.number:
                    self._arrays.setdefault(job.array, set()).add(job.number)
            missing = [number for number in tracked if number not in jobs]
            for i in range(0, len(missing), self.portion):
                try:
                    jobs |= self._jobs("-j", ",".join(missing[i : i + self.portion]))
                except SlurmSilentError:
                    raise
                except SlurmError as error:
                    if "Invalid job id" not in str(error):
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
        return {row[0]: set(expand(row[1])) for row in rows if len(row) == 2 and row[1] not in NONE}

    def _jobs(self, *narrow: str) -> dict[str, SlurmJob]:
        # a comment may hold anything, also lines that look like rows: its author cannot guess the separator
        mark = secrets.token_hex(8)
        text = self.run(
            "squeue", "-h", "-r", "-t", "all", *narrow, "-O", ",".join(f"{name}:|{mark}|" for name in FIELDS)
        )
        jobs = {}
        cells = text.split(f"|{mark}|")
        for i in range(0, len(cells) - len(FIELDS), len(FIELDS)):
            row = [cell.strip() for cell in cells[i : i + len(FIELDS)]]
            try:
                job = job_of(row, self.handover)
            except ValueError:
                raise SlurmError(f"squeue: a row that cannot be read: {'|'.join(row)}") from None
            jobs[job.number] = job
        return jobs

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

    def take(self, jobs: Sequence[SlurmJob], why: str = "") -> dict[str, SlurmError]:
        """Hold waiting jobs so that users cannot release them, mark them, require no nodes; return errors by number."""
        mark = "admincomment="
        return self._each(jobs, lambda job: ("update", *_restored(job), "priority=0", mark + job.marked("held", why)))

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
        return self._comment(jobs, lambda job: job.before)

    def leave(self, jobs: Sequence[SlurmJob], why: str) -> dict[str, SlurmError]:
        """Mark waiting jobs that stay with Slurm. Returns errors by number."""
        return self._comment(jobs, lambda job: job.marked("left", why))

    def let_go(self, jobs: Sequence[SlurmJob], *, release: bool = True) -> dict[str, SlurmError]:
        """Restore jobs as they were before they were taken over, and release them; return errors by number.

        The mark goes last: without it a job that is still on hold would be lost.
        """
        errors = self._each([job for job in jobs if _restored(job)], lambda job: ("update", *_restored(job)))
        rest = [job for job in jobs if job.number not in errors]
        freed = [job for job in rest if release and job.waiting]
        # Slurm delays what was put back by two minutes
        self._each([job for job in freed if job.restarts], lambda job: ("update", "starttime=now"))
        errors |= self.confirm([job for job in rest if not (release and job.waiting)])
        for turn in in_turns(freed, 2 * self.portion):
            # a job that begins and ends before the mark is cleared keeps it
            errors |= self._each(turn, lambda job: ("release",), name="")
            errors |= self.confirm([job for job in turn if job.number not in errors])
        return errors

    def requeue_held(self, job: SlurmJob) -> None:
        """Put a job back into the queue, on hold; one that runs only if it has not finished meanwhile."""
        mark = job.marked("held")
        if not job.ended:
            self.change("scontrol", "update", f"jobid={job.number}", f"admincomment={mark}")
        self.change("scontrol", "requeuehold", *(() if job.ended else ("Incomplete",)), job.number)
        if job.ended:
            # before that there was no job to mark
            self._comment([job], lambda job: mark)

    def _comment(self, jobs: Sequence[SlurmJob], text_of: Callable[[SlurmJob], str]) -> dict[str, SlurmError]:
        return self._each(jobs, lambda job: ("update", f"admincomment={text_of(job)}"))

    def _each(
        self, jobs: Iterable[SlurmJob], words_of: Callable[[SlurmJob], tuple[str, ...]], name: str = "jobid="
    ) -> dict[str, SlurmError]:
        """Change jobs, those with equal words in one command; return errors by number. Raises SlurmSilentError.

        Slurm makes what it can and reports the rest by number; a command without numbers is repeated for each half. An
        array of which all tasks are changed is one job.
        """
        groups: dict[tuple[str, ...], list[str]] = {}
        for job in jobs:
            groups.setdefault(words_of(job), []).append(job.number)
        for words, numbers in groups.items():
            if not any(word.startswith(_OF_ONE) for word in words):
                changed = set(numbers)
                whole = [array for array, tasks in self._arrays.items() if tasks <= changed]
                tasks = set().union(*(self._arrays[array] for array in whole))
                groups[words] = [*whole, *(number for number in numbers if number not in tasks)]

        def change(words: tuple[str, ...], numbers: Sequence[str]) -> dict[str, SlurmError]:
            try:
                self.change("scontrol", words[0], name + ",".join(numbers), *words[1:])
            except SlurmSilentError:
                raise
            except SlurmError as error:
                named = set(re.findall(r"\d+(?:_\d+)?", error.output)) & set(numbers)
                if named or len(numbers) == 1:
                    return dict.fromkeys(named or numbers, error)
                middle = len(numbers) // 2
                return change(words, numbers[:middle]) | change(words, numbers[middle:])
            return {}

        errors: dict[str, SlurmError] = {}
        with ThreadPoolExecutor(2) as pool:
            futures = []
            for words, numbers in groups.items():
                # scontrol changes nodes of one job only
                size = 1 if any(word.startswith(_OF_ONE) for word in words) else self.portion
                portions = [numbers[i : i + size] for i in range(0, len(numbers), size)]
                futures += [pool.submit(copy_context().run, change, words, portion) for portion in portions]
            for future in futures:
                errors |= future.result()
        tasks_of = {number: self._arrays.get(number) or [number] for number in errors}
        return {task: error for number, error in errors.items() for task in tasks_of[number]}

    def cancel(self, number: str) -> None:
        """Cancel a job."""
        self.change("scancel", number)

    def signal(self, number: str, name: str) -> None:
        """Send a signal to the batch script of a job."""
        self.change("scancel", f"--signal={name}", "--batch", number)

    def switch(self, what: str, names: Sequence[str]) -> None:
        """Change nodes as `SWITCHES` has it."""
        self.change("scontrol", "update", f"nodename={','.join(names)}", *SWITCHES[what])


def in_turns(jobs: Iterable[SlurmJob], most: int) -> Iterator[list[SlurmJob]]:
    """Yield jobs in lists of `most`; all tasks of an array count as one job, and come together."""
    turn: list[SlurmJob] = []
    arrays: set[str] = set()
    for job in sorted(jobs, key=lambda job: int(job.array)):
        if job.array not in arrays and len(arrays) == most:
            yield turn
            turn, arrays = [], set()
        arrays.add(job.array)
        turn.append(job)
    if turn:
        yield turn


def _restored(job: SlurmJob) -> tuple[str, ...]:
    """Return the words that undo the changes of a start, after which the job requires nodes."""
    if (job.mark is not None and not job.ours) or not job.waiting or not job.required:
        return ()
    nodes = (f"numnodes={job.mark.nodes}",) if job.mark is not None and job.mark.nodes else ()
    return (*nodes, "reqnodelist=")


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
