"""Backfilling by hosts and predicted power: a job starts if its hosts are free and the check holds with it.

The rule of a backfilling says what a job that may not start does to those behind it: they pass it, stop, or may not
delay it. A reservation counts both: it begins when the ends, by walltime, of running jobs leave enough hosts and
enough power under the present cap; nobody knows a later one.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from batwatt.scheduling.queue import Waiting
from batwatt.systems.powercap.job_power.power_checks import Candidate, Load, PowerCheck, Room
from batwatt.units import microseconds


@dataclass(frozen=True, slots=True)
class Held:
    """Hosts and load of a running job until its end by its walltime, in s."""

    end_s: float
    hosts: int
    load: Load


@dataclass(frozen=True, slots=True)
class Queued:
    """A waiting job and its predicted load."""

    waiting: Waiting
    load: Load


def jobs_to_start(
    rule: str,
    check: PowerCheck,
    queue: Iterable[Queued],
    running: Sequence[Held],
    free: int,
    cap_w: float,
    now_s: float,
) -> list[Queued]:
    """The jobs of a queue, in its order, that start on `free` hosts under a dynamic power of `cap_w` W.

    `rule`: pass, stop or reserve.
    """
    held = list(running)
    load = Load.of(job.load for job in held)
    starts: list[Queued] = []
    waiting = iter(queue)
    head: Queued | None = None
    for job in waiting:
        hosts, more = job.waiting.hosts, load.plus(job.load)
        if hosts > free or not check.fits(more, cap_w):
            head = job
            break
        starts.append(job)
        held.append(Held(microseconds(now_s + job.waiting.walltime_s), hosts, job.load))
        free, load = free - hosts, more
    if head is None or rule == "stop" or not free:
        return starts
    behind = [job for job in waiting if job.waiting.hosts <= free]
    if not behind:
        return starts
    begin_s, spare, later = math.inf, 0, Load()
    if rule == "reserve":
        begin_s, spare, later = reservation(check, head, held, free, cap_w)
    candidates = [
        Candidate(
            job.waiting.hosts,
            job.waiting.walltime_s,
            job.load,
            microseconds(now_s + job.waiting.walltime_s) > begin_s,
        )
        for job in behind
    ]
    room = Room(free, load, spare, later, cap_w)
    return starts + [behind[index] for index in check.pick(candidates, room)]


def reservation(
    check: PowerCheck, head: Queued, held: Sequence[Held], free: int, cap_w: float
) -> tuple[float, int, Load]:
    """When the head may start at the latest in s, the hosts to spare then, and the load with it.

    It never may if the ends of all jobs do not leave enough: then nothing delays it.
    """
    left = sorted(held, key=lambda job: job.end_s)
    while left:
        end_s = left[0].end_s
        if end_s == math.inf:
            break
        free += sum(job.hosts for job in left if job.end_s <= end_s)
        left = [job for job in left if job.end_s > end_s]
        load = Load.of([head.load, *(job.load for job in left)])
        if head.waiting.hosts <= free and check.fits(load, cap_w):
            return end_s, free - head.waiting.hosts, load
    return math.inf, 0, Load()
