"""What the tests of the scheduler varcap share: jobs in, runs out, both as short texts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from builders import played
from by_hand import blocks_of, capacity_of, job_row, options_of, series_of

from batwatt.model.attempt import MIGRATED
from batwatt.model.hostset import from_text, ids
from batwatt.model.platform import MachineSpec, machines_platform
from batwatt.model.record import Record
from batwatt.schedulers.varcap import Varcap


def job_of(text: str) -> dict[str, Any]:
    """A job of `name submission length cpus [field=number ..] [depends_on=a;b]` as in a workload."""
    text, _, others = text.partition(" depends_on=")
    return job_row(text) | ({"depends_on": others.split(";")} if others else {})


def play(jobs, capacity, machines, cores, between=None, energy=False, **options):
    """The record of a run on the embedded engine, and the scheduler."""
    scheduler = Varcap({"capacity": series_of(capacity), "switch": energy} | options)
    platform = machines_platform(MachineSpec(machines, cores))
    return played(scheduler, platform, *jobs, link=between, energy=energy), scheduler


def in_words(record: Record, cores: int) -> dict[str, str]:
    """Job -> its runs: `0-50@1x 60-160@0,2` was killed at 50 s on machine 1 and ran again; `>` is a migration.

    A job on several machines is written with those on which it has a host.
    """
    by_job: dict[str, list[str]] = {}
    for row in sorted(record.jobs, key=lambda row: int(row.job_id.partition("#")[2] or 0)):
        word = "rejected"
        if row.final_state != "REJECTED":
            times = f"{round(row.starting_time, 3):.9g}-{round(row.finish_time, 3):.9g}"
            places = sorted({host // cores for host in ids(from_text(row.allocated_resources))})
            end = ">" if row.metadata == MIGRATED else "x"
            end = "" if row.final_state == "COMPLETED_SUCCESSFULLY" else end
            word = f"{times}@{','.join(map(str, places))}{end}"
        by_job.setdefault(row.job_id.partition("#")[0], []).append(word)
    return {name: " ".join(words) for name, words in sorted(by_job.items())}


def scheduler(*jobs: str, machines: int, capacity: str = "", cores: int = 1, **options) -> dict[str, str]:
    """The runs of these jobs, in words."""
    rows = capacity_of(capacity or str(machines))
    record, _ = play([job_of(text) for text in jobs], rows, machines, cores, **options)
    return in_words(record, cores)


@dataclass(frozen=True)
class ByHand:
    """Options, jobs, and what becomes of them, or of `some` of them."""

    options: dict[str, object]
    jobs: list[str]
    expected: dict[str, str]
    some: bool

    def played(self, **defaults: object) -> dict[str, str]:
        """Return the runs of jobs by name; `defaults`: options that the rule does not set."""
        runs = scheduler(*self.jobs, **defaults | self.options)
        return {name: runs[name] for name in self.expected} if self.some else runs


def rules_of(text: str) -> dict[str, ByHand]:
    """Rules of lines of options, of jobs (or those of the rule before) and of runs: `->` of all, `~>` of some jobs."""
    rules, jobs = {}, []
    for name, (options, *lines) in blocks_of(text).items():
        expected = dict(word.split(" ", 1) for line in lines if line[1] == ">" for word in line[3:].split(", "))
        jobs = [word for line in lines if line[1] != ">" for word in line.split(", ")] or jobs
        rules[name] = ByHand(options_of(options), jobs, expected, lines[-1][0] == "~")
    return rules
