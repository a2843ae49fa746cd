"""What the tests of the scheduler varcap share: jobs in, runs out, both as short texts."""

from __future__ import annotations

from dataclasses import dataclass

from builders import played
from by_hand import blocks_of, capacity_of, options_of, series_of
from plain_varcap import PlainJob, Ran, Rules, plain_runs

from batwatt.model.hostset import from_text, ids
from batwatt.model.machines import MachineSpec, machines_platform
from batwatt.model.workload import MIGRATED
from batwatt.schedulers.varcap import Varcap

ID, STATE, START, END, HOSTS, META = 0, 7, 8, 10, 14, 16
KNOWS = {
    "base": ("none", "class", "exact"),
    "migration": ("none", "class", "exact"),
    "longshort": ("class", "exact"),
    "jobsize-order": ("exact",),
    "twomode": ("exact",),
}
"""What the mappings may know of run times."""
SIGN = {"completed": "", "killed": "x", "migrated": ">"}


def job_of(text: str) -> PlainJob:
    """`name submission length cpus [memory=..] [estimate_s=..] [depends_on=a;b]`."""
    name, at, length, cpus, *more = text.split()
    fields = dict(word.split("=") for word in more)
    return PlainJob(
        name,
        float(at),
        float(length),
        int(cpus),
        float(fields.pop("memory", 0)),
        float(fields.pop("estimate_s")) if "estimate_s" in fields else None,
        tuple(filter(None, fields.pop("depends_on", "").split(";"))),
    )


def row_of(job: PlainJob) -> dict[str, object]:
    """The job as it stands in a workload; its profile travels in `_profile`."""
    row = {"id": job.id, "subtime": job.submit_s, "res": job.cpus, "profile": f"p{job.id}"}
    row |= {"memory": job.memory} if job.memory else {}
    row |= {"estimate_s": job.estimate_s} if job.estimate_s is not None else {}
    row |= {"depends_on": list(job.depends_on)} if job.depends_on else {}
    return row | {"_profile": {"type": "delay", "delay": job.length_s}}


def play(jobs, capacity, machines, cores, between=None, energy=False, **options):
    """The record of a run on the embedded engine, and the scheduler."""
    scheduler = Varcap({"capacity": series_of(capacity), "switch": energy} | options)
    platform = machines_platform(MachineSpec(machines, cores))
    return played(scheduler, platform, *map(row_of, jobs), link=between, energy=energy), scheduler


def runs_of(record, cores) -> list[Ran]:
    """The rows of jobs.csv; a job on several machines is written with those on which it has a host."""
    made = []
    for row in record.jobs:
        name, _, attempt = row[ID].partition("#")
        if row[STATE] == "REJECTED":
            made.append(Ran(name, int(attempt or 0), float("inf"), row[END] or 0.0, "rejected", ()))
            continue
        killed = "migrated" if row[META] == MIGRATED else "killed"
        how = "completed" if row[STATE] == "COMPLETED_SUCCESSFULLY" else killed
        places = tuple(sorted({host // cores for host in ids(from_text(row[HOSTS]))}))
        made.append(Ran(name, int(attempt or 0), row[START], row[END], how, places))
    return made


def in_words(runs) -> dict[str, str]:
    """Job -> its runs: `0-50@1x 60-160@0,2` was killed at 50 s on machine 1 and ran again; `>` is a migration."""
    by_job: dict[str, list[str]] = {}
    for run in sorted(runs, key=lambda run: run.attempt):
        word = "rejected"
        if run.how != "rejected":
            times = f"{round(run.start_s, 3):.9g}-{round(run.end_s, 3):.9g}"
            word = f"{times}@{','.join(map(str, run.machines))}{SIGN[run.how]}"
        by_job.setdefault(run.id, []).append(word)
    return {name: " ".join(words) for name, words in sorted(by_job.items())}


def scheduler(*jobs: str, machines: int, capacity: str = "", cores: int = 1, **options) -> dict[str, str]:
    """The runs of these jobs, in words."""
    rows = capacity_of(capacity or str(machines))
    record, _ = play([job_of(text) for text in jobs], rows, machines, cores, **options)
    return in_words(runs_of(record, cores))


def plain(*jobs: str, machines: int, capacity: str = "", cores: int = 1, **options) -> dict[str, str]:
    """The same by the second implementation."""
    rows = capacity_of(capacity or str(machines))
    return in_words(plain_runs([job_of(text) for text in jobs], rows, Rules(machines, cores, **options)))


@dataclass(frozen=True)
class ByHand:
    """Options, jobs, and what becomes of them, or of `some` of them."""

    options: dict[str, object]
    jobs: list[str]
    expected: dict[str, str]
    some: bool

    def played(self, play_of) -> dict[str, str]:
        """What becomes of the jobs by the scheduler, or by its twin."""
        runs = play_of(*self.jobs, **self.options)
        return {name: runs[name] for name in self.expected} if self.some else runs


def rules_of(text: str) -> dict[str, ByHand]:
    """Rules of lines of options, of jobs (or those of the rule before) and of runs: `->` of all, `~>` of some jobs."""
    rules, jobs = {}, []
    for name, (options, *lines) in blocks_of(text).items():
        expected = dict(word.split(" ", 1) for line in lines if line[1] == ">" for word in line[3:].split(", "))
        jobs = [word for line in lines if line[1] != ">" for word in line.split(", ")] or jobs
        rules[name] = ByHand(options_of(options), jobs, expected, lines[-1][0] == "~")
    return rules
