"""First fit on machines that come and go (riskaware paper, sections 4.1 and 4.2)."""

from __future__ import annotations

import heapq
from collections.abc import Collection, Sequence

import numpy as np

from batwatt.scheduling.jobs import ManagedJob
from batwatt.systems.riskaware.strategy import MachinePlanner


class FirstFitStrategy(MachinePlanner):
    """First fit: a job goes to the first machine, by index, that has enough cores free; else it waits.

    When cores become free, the waiting jobs are looked at by release time, ties in the order of arrival, and each that
    fits somewhere starts there. The machines with the highest indices go first (FirstFitAware), or with `rng` random
    ones (FirstFitUnaware); the lowest that are off come back first. Jobs on a machine that goes wait again and
    start from zero.

    `as_published` does three things as the authors' program does them, not as the paper says. An arriving job that
    needs all the cores that are free on the emptiest machine does not start before the next end or change (there it
    waits for ever if nothing runs: here it starts then). A job from before the window that cannot start when it arrives
    never does. And with `rng` the order in which machines are looked at is shuffled once, while those with the highest
    indices go first.
    """

    def __init__(self, machines: int, cores: int, rng: np.random.Generator | None = None, as_published: bool = True):
        self._free = [cores] * machines
        shuffled = rng is not None and as_published
        self._rank = rng.permutation(machines).tolist() if rng is not None and shuffled else list(range(machines))
        self._rng = None if shuffled else rng
        self._published = as_published
        self._alive: list[int] = []
        self._looked_at: list[int] = []
        self._jobs: list[ManagedJob] = []
        self._machine: list[int] = []
        self._end_s: list[float] = []
        self._running: set[int] = set()
        self._gone: set[int] = set()
        self._ends: list[tuple[float, int, int]] = []
        # by width, so that the first that fits is found without looking at those that do not
        self._waiting: dict[int, list[tuple[float, int]]] = {}
        self._queued = 0
        self._changes: list[int] = []
        self._dropped: list[int] = []

    def advance(self, time_s: float, alive: int | None = None, arrivals: Sequence[ManagedJob] = ()) -> Sequence[int]:
        """See `MachinePlanner`."""
        self._changes, self._dropped = [], []
        self._happen(time_s)
        if alive is not None and alive != len(self._alive):
            self._change(alive, time_s)
            self._looked_at = sorted(self._alive, key=lambda m: self._rank[m])
            self._fill(time_s)
        self._jobs += arrivals
        self._machine += [-1] * len(arrivals)
        self._end_s += [0.0] * len(arrivals)
        for job in arrivals:
            most = self._most_free()
            before = job.left_s < job.length_s
            may_start = job.hosts < most or before or not (self._published and self._running)
            if job.hosts <= most and may_start:
                self._start(job, time_s)
            elif before and self._published:
                self._dropped.append(job.number)
            else:
                self._wait(job)
        return self._changes

    def dropped(self) -> Sequence[int]:
        """See `MachinePlanner`."""
        return self._dropped

    def ended(self, number: int, time_s: float) -> Sequence[int]:
        """See `MachinePlanner`."""
        self._changes = []
        if number in self._running:
            self._end(number)
            self._fill(time_s)
        else:
            self._gone.add(number)
        return self._changes

    def machine_of(self, number: int) -> int:
        """See `MachinePlanner`."""
        return self._machine[number]

    def end_s(self, number: int) -> float:
        """See `MachinePlanner`."""
        return self._end_s[number]

    def machines_alive(self) -> Collection[int]:
        """See `MachinePlanner`."""
        return self._alive

    def _happen(self, time_s: float) -> None:
        while self._ends and self._ends[0][0] <= time_s:
            end_s, machine, number = heapq.heappop(self._ends)
            # a kill or an early end leaves its event behind
            if number in self._running and self._machine[number] == machine and self._end_s[number] == end_s:
                self._end(number)
                self._fill(end_s)

    def _end(self, number: int) -> None:
        self._running.discard(number)
        self._free[self._machine[number]] += self._jobs[number].hosts

    def _change(self, alive: int, time_s: float) -> None:
        if alive > len(self._alive):
            off = [m for m in range(len(self._free)) if m not in self._alive]
            self._alive = sorted(self._alive + off[: alive - len(self._alive)])
            return
        if self._rng is None:
            gone = self._alive[alive:]
        else:
            gone = self._rng.choice(self._alive, len(self._alive) - alive, replace=False).tolist()
        self._alive = [m for m in self._alive if m not in gone]
        for number in sorted(number for number in self._running if self._machine[number] in gone):
            job = self._jobs[number]
            self._end(number)
            self._changes.append(-1 - number)
            if self.restart(job, time_s - (self._end_s[number] - job.left_s)):
                self._wait(job)

    def _most_free(self) -> int:
        """Return the most cores that are free on one machine alive."""
        alive, free = self._alive, self._free
        if alive and alive[-1] == len(alive) - 1:
            return max(free[: len(alive)])  # the first ones, as a rule
        return max([free[m] for m in alive], default=0)

    def _wait(self, job: ManagedJob) -> None:
        heapq.heappush(self._waiting.setdefault(job.hosts, []), (job.plan.release_s, job.number))
        self._queued += 1

    def _fill(self, time_s: float) -> None:
        while self._queued:
            most = self._most_free()
            first = min((queue[0] for cores, queue in self._waiting.items() if cores <= most and queue), default=None)
            if first is None:
                return
            job = self._jobs[first[1]]
            heapq.heappop(self._waiting[job.hosts])
            self._queued -= 1
            if job.number not in self._gone:
                self._start(job, time_s)

    def _start(self, job: ManagedJob, time_s: float) -> None:
        """Start a job on the first machine with room for it."""
        machine = next(m for m in self._looked_at if self._free[m] >= job.hosts)
        self._free[machine] -= job.hosts
        number = job.number
        self._machine[number] = machine
        self._end_s[number] = end_s = time_s + job.left_s
        self._running.add(number)
        heapq.heappush(self._ends, (end_s, machine, number))
        self._changes.append(number)
