"""Large neighbourhood search: take some jobs out, put them back otherwise, keep better schedules.

A job is put in at the start and in the mode of least wait_j / Et_j + price, among those that servers and caps allow.
Starts that are tried: the submission, steps' beginnings, when woken servers are awake, when other jobs end.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from typing import Final

import numpy as np
import numpy.typing as npt
from mypy_extensions import i64

from batwatt.arrays import integers, reals
from batwatt.systems.powercap.optimum.problem import Problem
from batwatt.systems.powercap.optimum.timeline import PowerTimeline

INFINITY: Final = math.inf
TICKS_PER_S: Final = 1000.0
MOST: Final = 9
"""Most jobs that are taken out besides the one that waits."""
CLOSE: Final = 0.8
"""Share of rounds in which these are the nearest in time, else any that run near."""
FIRST: Final = 0.75
"""Share of rounds in which the one that waits is put back first, else the order is one of four others."""
ORDERS: Final = 4
SKIPPING: Final = 0.5
"""Share of rounds in which modes are passed over."""
MODULUS: Final = 2147483647
FACTOR: Final = 48271
"""Of the random numbers (Park and Miller): small enough for whole numbers of 64 bits."""
FACTORS = (0.02, 1.0, 4.0, 10.0)
"""Factors of the prices, one drawn for each round: real prices count joules, a run holds whole steps."""
HEAT: Final = 0.02
"""Share by which a schedule may be worse than the best one at first and still be gone on from."""
SKIPPED: Final = 0.6
"""Share of modes that a repair passes over where all are tried: else jobs that need not wait run at their fastest."""
CHUNK: Final = 500
"""Rounds between two looks at the clock."""


class Search:
    """A complete schedule that gets better, within a timeline.

    `total` is the sum of wait / Et of the jobs in place, `least` that of the best schedule; `heat` the share by which
    one may be worse, `skip` the share of modes passed over. `random` is the state of the random numbers; `low` and
    `high` are the steps that a round has changed; a mode is looked at again at the tick `again`. `price` is per tick of
    one server in each state of each kind (a column), `paid` its integral from 0 to a step.
    """

    def __init__(self, problem: Problem, seed: int, all_modes: bool = True) -> None:
        self.problem = problem
        self.timeline = PowerTimeline(problem)
        jobs = len(problem.tasks)
        if not all_modes:
            self.timeline.tried = integers(tried(problem))
        prices = [0.0] * ((problem.steps + 1) * int(self.timeline.columns))
        self.price, self.paid = reals(prices), reals(prices)
        self.total, self.least, self.heat = INFINITY, INFINITY, 0.0
        self.skip = SKIPPED if all_modes else 0.0
        self.random: i64 = 1 + seed % (MODULUS - 1)
        self.low: i64 = 0
        self.high: i64 = 0
        self.again: i64 = 0
        self.cost, self.key = reals([0.0] * jobs), reals([0.0] * (jobs + 1))
        self.best_row, self.best_start = integers([-1] * jobs), integers([0] * jobs)
        self.picked, self.near = integers([0] * (jobs + 1)), integers([0] * jobs)
        self.old_row, self.old_start = integers([0] * jobs), integers([0] * jobs)

    @property
    def value(self) -> float:
        """Mean slowdown of the best schedule."""
        return 1.0 + self.least / len(self.problem.tasks)

    @property
    def best(self) -> dict[int, tuple[int, int]]:
        """Start and mode of each job in the best schedule; empty before one is known."""
        if self.best_row[0] < 0:
            return {}
        first = self.timeline.first
        return {
            job: (int(start), int(row - first[job]))
            for job, (start, row) in enumerate(zip(self.best_start, self.best_row, strict=True))
        }

    def set_prices(self, rates: npt.NDArray[np.float64]) -> None:
        """Set the prices, by step: of a server for a tick in state d of kind k, in column k * S + d."""
        lengths = np.diff(self.problem.begins).astype(np.float64)
        paid = np.cumsum(rates * lengths[:, None], axis=0)
        none = [0.0] * int(self.timeline.columns)
        self.price = reals([*rates.ravel().tolist(), *none])
        self.paid = reals([*none, *paid.ravel().tolist()])

    def construct(self, order: Iterable[int]) -> bool:
        """Put all jobs in again in an order; return False if one fits nowhere."""
        self._clear()
        return all(self.insert(job) for job in order) and self.note()

    def load(self, starts: Mapping[int, tuple[int, int]]) -> None:
        """Go on from a schedule."""
        self._clear()
        for job, (start, mode) in starts.items():
            self.timeline.restore(job, start, mode)
        self.note()

    def _clear(self) -> None:
        for job in self.timeline.runs:
            self.timeline.take(job)

    def improve(
        self,
        rounds: int,
        go_on: Callable[[], bool] = lambda: True,
        progress: Callable[[], float] | None = None,
    ) -> None:
        """Destroy and repair up to `rounds` times.

        Also taken is a schedule that is worse than the best by a share `HEAT`, which falls to 0 with the share of the
        rounds that is over, or with `progress`, another share that is over.
        """
        for turn in range(0, rounds, CHUNK):
            if not go_on():
                return
            over = progress() if progress is not None else turn / rounds
            self.heat = HEAT * max(0.0, 1.0 - over)
            self._rounds(min(CHUNK, rounds - turn))

    def _draw(self) -> float:
        """Return a random number in [0, 1[."""
        self.random = self.random * FACTOR % MODULUS
        return float(self.random - 1) / float(MODULUS - 1)

    def _cost(self, job: i64) -> float:
        """Return wait_j / Et_j of a job in place."""
        timeline = self.timeline
        wait_s = max(0.0, float(timeline.start[job]) / TICKS_PER_S - timeline.submit_s[job])
        return wait_s / timeline.run_s[timeline.row[job]]

    def _until(self, column: i64, tick: i64) -> float:
        """Return the integral of a price from 0 to a time."""
        timeline = self.timeline
        step = timeline.step_of(tick)
        at = step * timeline.columns + column
        return self.paid[at] + self.price[at] * float(tick - timeline.begins[step])

    def _blocked(self, row: i64, start: i64, step: i64) -> i64:
        """Return the earliest start of a run that would run through a step without room; `start` if it may then."""
        timeline = self.timeline
        end = start + timeline.ticks[row]
        at = step if start <= timeline.begins[step] else step + 1
        while at < timeline.steps and timeline.begins[at + 1] <= end:
            if timeline.least_w[at] + timeline.above_w[row] > timeline.caps_w[at]:
                return timeline.begins[at] + 1
            for k in range(timeline.kinds):
                needed = timeline.needed[at * timeline.kinds + k] + timeline.servers[row * timeline.kinds + k]
                if needed > timeline.servers_of[k]:
                    return timeline.begins[at] + 1
            at += 1
        return start

    def _try(self, job: i64, row: i64, start: i64, step: i64, factor: float, below: float) -> float:
        """Return the cost of a run if it is allowed and costs less than `below`, else inf."""
        timeline = self.timeline
        end = start + timeline.ticks[row]
        if end > timeline.begins[timeline.steps]:
            return INFINITY
        cost = 0.0
        for k in range(timeline.kinds):
            if timeline.servers[row * timeline.kinds + k] > 0:
                column = k * timeline.states + timeline.state[row * timeline.kinds + k]
                held = self._until(column, end) - self._until(column, start)
                cost += float(timeline.servers[row * timeline.kinds + k]) * held
        cost = max(0.0, float(start) / TICKS_PER_S - timeline.submit_s[job]) / timeline.run_s[row] + factor * cost
        if cost >= below:
            return INFINITY
        self.again = self._blocked(row, start, step)
        if self.again > start or not timeline.put(job, start, row - timeline.first[job]):
            return INFINITY
        timeline.take(job)
        return cost

    def insert(self, job: i64, factor: float = FACTORS[-1], skip: float = 0.0) -> bool:
        """Put a job in where it is cheapest at prices times a factor; return False if it fits nowhere.

        Each mode is passed over with the probability `skip`, but one.
        """
        timeline = self.timeline
        best, best_row, best_start = INFINITY, -1, 0
        submit = timeline.submit[job]
        for row in range(timeline.first[job], timeline.first[job + 1]):
            last = row + 1 == timeline.first[job + 1] and best_row < 0
            if timeline.tried[row] == 0 or (skip > 0.0 and not last and self._draw() < skip):
                continue
            step = timeline.step_of(submit)
            self.again = 0
            while step < timeline.steps:
                if timeline.begins[step + 1] <= self.again:
                    step += 1
                    continue
                since = max(submit, timeline.begins[step])
                if float(since - submit) / TICKS_PER_S / timeline.run_s[row] >= best:
                    break
                for k in range(-1, timeline.kinds):
                    start = since
                    if k >= 0:
                        if timeline.sleeps[k] == 0 or timeline.servers[row * timeline.kinds + k] == 0:
                            continue
                        start = timeline.begins[step] + timeline.on_ticks[k]
                    if start >= max(since, self.again) and start < timeline.begins[step + 1]:
                        cost = self._try(job, row, start, step, factor, best)
                        if cost < best:
                            best, best_row, best_start = cost, row, start
                node = timeline.head[step]
                while node >= 0:
                    start = timeline.end[node // 2]
                    # a trial links the job at the head and takes it out again, so what follows stays
                    node = timeline.after[node]
                    if start > max(since, self.again - 1) and start < timeline.begins[step + 1]:
                        cost = self._try(job, row, start, step, factor, best)
                        if cost < best:
                            best, best_row, best_start = cost, row, start
                step += 1
        return best_row >= 0 and timeline.put(job, best_start, best_row - timeline.first[job])

    def _choose(self) -> i64:
        """Pick a job that waits (the more the likelier) and some that run when it could; return their number."""
        timeline = self.timeline
        jobs = len(timeline.submit)
        left = self._draw() * self.total
        target = jobs - 1
        for job in range(jobs):
            left -= self.cost[job]
            if left < 0.0:
                target = job
                break
        # somewhere in its wait, early rather than late
        start, end, share = timeline.start[target], timeline.end[target], self._draw()
        at = timeline.submit[target] + int(float(start - timeline.submit[target]) * share * share)
        margin = int(float(end - start) * self._draw() * 0.5)
        low, high = at - margin, at + (end - start) + margin
        count = 0
        for job in range(jobs):
            if job != target and timeline.start[job] < high and timeline.end[job] > low:
                self.near[count] = job
                apart = max(timeline.start[job] - at, at - timeline.end[job], 0)
                self.key[count] = float(apart) + float(max(timeline.start[job] - at, at - timeline.start[job])) / 1e12
                count += 1
        size = min(count, 1 + int(self._draw() * MOST))
        close = self._draw() < CLOSE
        self.picked[0] = target
        for place in range(size):
            index = place
            if close:
                for other in range(place + 1, count):
                    if self.key[other] < self.key[index]:
                        index = other
            else:
                index = place + int(self._draw() * float(count - place))
            job, key = self.near[index], self.key[index]
            self.near[index], self.key[index] = self.near[place], self.key[place]
            self.near[place], self.key[place] = job, key
            self.picked[place + 1] = job
        return size + 1

    def _arrange(self, size: i64) -> None:
        """Sort the jobs of `picked` for putting back; at first the first of them is the one that waits."""
        timeline = self.timeline
        first = self._draw() < FIRST
        rule = int(self._draw() * ORDERS)
        for place in range(size):
            job = self.picked[place]
            row, noise = timeline.first[job], self._draw()
            if first:
                self.key[place] = noise if place > 0 else -1.0
            elif rule == 0:
                self.key[place] = noise
            elif rule == 1:
                self.key[place] = timeline.run_s[row] * (0.5 + noise)
            elif rule == 2:
                servers = 0
                for k in range(timeline.kinds):
                    servers += timeline.servers[row * timeline.kinds + k]
                self.key[place] = timeline.run_s[row] * float(servers) * (0.5 + noise)
            else:
                self.key[place] = float(timeline.start[job])
        for place in range(1, size):
            job, key, at = self.picked[place], self.key[place], place
            while at > 0 and self.key[at - 1] > key:
                self.picked[at], self.key[at] = self.picked[at - 1], self.key[at - 1]
                at -= 1
            self.picked[at], self.key[at] = job, key

    def _touched(self, job: i64) -> None:
        """Remember the steps in which a job in place has changed the power."""
        timeline = self.timeline
        self.low = min(self.low, max(0, timeline.step_of(timeline.start[job]) - 1))
        self.high = max(self.high, min(timeline.steps - 1, timeline.step_of(timeline.end[job] - 1) + 1))

    def _sound(self, low: i64, high: i64) -> bool:
        """Return whether Eq. 1 holds in these steps: without a job others may have to wake servers it kept awake."""
        timeline = self.timeline
        while low <= high and timeline.total_w[low] <= timeline.caps_w[low]:
            low += 1
        return low > high

    def _keep(self) -> None:
        """Take note of a schedule if it is the best."""
        timeline = self.timeline
        if self.total < self.least - 1e-9:
            self.least = self.total
            for job in range(len(timeline.submit)):
                self.best_row[job], self.best_start[job] = timeline.row[job], timeline.start[job]

    def note(self) -> bool:
        """Take a complete schedule as it is; return False if it does not keep the caps."""
        timeline = self.timeline
        total = 0.0
        for job in range(len(timeline.submit)):
            self.cost[job] = self._cost(job)
            total += self.cost[job]
        self.total = total
        sound = self._sound(0, timeline.steps - 1)
        if sound:
            self._keep()
        return sound

    def _rounds(self, rounds: i64) -> None:
        """Destroy and repair `rounds` times; also take a schedule that is worse than the best by a share `heat`."""
        timeline = self.timeline
        for _ in range(rounds):
            if self.least <= 1e-12:
                return
            limit = self.least * (1.0 + self.heat)
            size = self._choose()
            factor = FACTORS[int(self._draw() * len(FACTORS))]
            self._arrange(size)
            skip = self.skip
            if skip > 0.0 and self._draw() >= SKIPPING:
                skip = 0.0
            total = self.total
            self.low, self.high = timeline.steps, 0
            for place in range(size):
                job = self.picked[place]
                total -= self.cost[job]
                self.old_row[place], self.old_start[place] = timeline.row[job], timeline.start[job]
                self._touched(job)
                timeline.take(job)
            placed = 0
            for place in range(size):
                if not self.insert(self.picked[place], factor, skip):
                    break
                placed += 1
                self._touched(self.picked[place])
                total += self._cost(self.picked[place])
                if total > limit:
                    break
            if placed == size and total <= limit and self._sound(self.low, self.high):
                total = 0.0
                for place in range(size):
                    self.cost[self.picked[place]] = self._cost(self.picked[place])
                for job in range(len(timeline.submit)):
                    total += self.cost[job]
                self.total = total
                self._keep()
                continue
            for place in range(placed):
                timeline.take(self.picked[place])
            for place in range(size):
                job = self.picked[place]
                timeline.restore(job, self.old_start[place], self.old_row[place] - timeline.first[job])


def tried(problem: Problem) -> list[bool]:
    """Return flags of the modes to try of many: those of one kind of servers, all where no kind is large enough."""
    flags = []
    for task in problem.tasks:
        alone = [len(mode.parts) == 1 for mode in task.modes]
        flags += alone if any(alone) else [True] * len(alone)
    return flags
