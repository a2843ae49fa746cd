"""Backfilling by hosts and predicted power: a job starts if its hosts are free and the check holds with it.

The rule of a backfilling says what a job that may not start does to those behind it: they pass it, stop, or may not
delay it. A reservation counts both: it begins when the ends, by walltime, of running jobs leave enough hosts and
enough power under the present cap; nobody knows a later one.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
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


def jobs_to_start(
    rule: str,
    check: PowerCheck,
    queue: Iterable[Waiting],
    load_of: Callable[[Waiting], Load],
    running: Sequence[Held],
    free: int,
    cap_w: float,
    now_s: float,
) -> list[Waiting]:
    """The jobs of a queue, in its order, that start on `free` hosts under a dynamic power of `cap_w` W.

    `rule`: pass, stop or reserve; `load_of` is the predicted load of a job.
    """
    held = list(running)
    load = Load.of(job.load for job in held)
    starts: list[Waiting] = []
    waiting = iter(queue)
    head: Waiting | None = None
    for job in waiting:
        own = load_of(job)
        more = load.plus(own)
        if job.hosts > free or not check.fits(more, cap_w):
            head = job
            break
        starts.append(job)
        held.append(Held(microseconds(now_s + job.walltime_s), job.hosts, own))
        free, load = free - job.hosts, more
    if head is None or rule == "stop" or not free:
        return starts
    behind = [job for job in waiting if job.hosts <= free]
    if not behind:
        return starts
    begin_s, spare, later = math.inf, 0, Load()
    if rule == "reserve":
        begin_s, spare, later = reservation(check, head.hosts, load_of(head), held, free, cap_w)
    candidates = [
        Candidate(job.hosts, job.walltime_s, load_of(job), microseconds(now_s + job.walltime_s) > begin_s)
        for job in behind
    ]
    room = Room(free, load, spare, later, cap_w)
    return starts + [behind[index] for index in check.pick(candidates, room)]


def reservation(
    check: PowerCheck, hosts: int, own: Load, held: Sequence[Held], free: int, cap_w: float
) -> tuple[float, int, Load]:
    """When a job of so many hosts and that load may start at the latest in s, the hosts to spare, and the load with it.

    It never may if the ends of all jobs do not leave enough: then nothing delays it.
    """
    left = sorted(held, key=lambda job: job.end_s)
    while left:
        end_s = left[0].end_s
        if end_s == math.inf:
            break
        free += sum(job.hosts for job in left if job.end_s <= end_s)
        left = [job for job in left if job.end_s > end_s]
        load = Load.of([own, *(job.load for job in left)])
        if hosts <= free and check.fits(load, cap_w):
            return end_s, free - hosts, load
    return math.inf, 0, Load()
