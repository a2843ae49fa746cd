"""Search of a schedule by insertion and removal of jobs, and the use of the machine over all steps.

Per step and kind: `peaks`, the servers needed in each state (the most that run at once in it); `early`, the same until
a server that wakes in this step is awake; `awake`, the servers that are on, which is the most needed in this step or
early in the next. Servers that are on but not needed idle, others fall asleep. A kind that cannot sleep, or whose
transitions do not end within a step, stays on. Column k * S + d of a table by step is state d of kind k.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Mapping
from typing import Final

import numpy as np
import numpy.typing as npt
from mypy_extensions import i64

from batwatt.arrays import integers, reals
from batwatt.model.platform import NOISE_W
from batwatt.schedulers.planned.problem import Kind, Problem

Run = tuple[int, int, int]
"""Start, end (ticks) and mode of a job."""


class PowerTimeline:
    """Jobs in place, and the power that the machine draws for them.

    The modes of job j are rows `first[j]` to `first[j + 1]`. `extra_w` is by how much a server that wakes to a state
    exceeds its power; `waking` has the states in its order. `row` is -1 for a job that is not in place. The jobs that
    begin or end in a step, but do not run through it, are linked from `head`: node 2 j in the step in which job j
    starts, 2 j + 1 in that in which it ends. `needed` and `sooner` are sums of `peaks` and `early` over states.
    `least_w` is a step's power if no server idles or changes. `uniform` is the length of the steps in ticks if all have
    the same, else 0. Tables by step and kind, row and kind, or kind and state lie row by row.
    """

    def __init__(self, problem: Problem) -> None:
        kinds, tasks, steps = problem.kinds, problem.tasks, problem.steps
        states = max(len(kind.powers_w) for kind in kinds)
        modes = [mode for task in tasks for mode in task.modes]
        lengths = {b - a for a, b in itertools.pairwise(problem.begins)}
        able = problem.short_transitions
        self.problem = problem
        self.steps: i64 = steps
        self.kinds: i64 = len(kinds)
        self.states: i64 = states
        self.columns: i64 = len(kinds) * states
        self.uniform: i64 = lengths.pop() if len(lengths) == 1 else 0
        self.begins = integers(problem.begins)
        self.caps_w = reals(cap_w + NOISE_W for cap_w in problem.caps_w)
        self.servers_of = integers(kind.count for kind in kinds)
        self.idle = integers(kind.idle for kind in kinds)
        self.sleeps = integers(able and kind.sleep is not None for kind in kinds)
        self.on_ticks = integers(kind.on_ticks for kind in kinds)
        self.sleep_w = reals(kind.sleep_w for kind in kinds)
        self.off_w = reals(kind.off_w for kind in kinds)
        self.rest_w = reals(kind.rest_w for kind in kinds)
        self.power_w = reals(w for kind in kinds for w in _wide(list(kind.powers_w), states))
        extra = [[kind.wake_w(d) - kind.powers_w[d] for d in range(len(kind.powers_w))] for kind in kinds]
        self.extra_w = reals(w for row in extra for w in _wide(row, states))
        orders = [waking_order(kind) for kind in kinds]
        self.waking = integers(d for order in orders for d in (*order, *range(len(order), states)))
        self.submit = integers(task.submit for task in tasks)
        self.submit_s = reals(task.submit_s for task in tasks)
        self.first = integers([0, *itertools.accumulate(len(task.modes) for task in tasks)])
        self.tried = integers([1] * len(modes))
        self.ticks = integers(mode.ticks for mode in modes)
        self.run_s = reals(mode.run_s for mode in modes)
        self.above_w = reals(problem.above_w(mode) for mode in modes)
        self.servers = integers(count for mode in modes for count in mode.counts)
        self.state = integers(state for mode in modes for state in mode.states)
        self.start = integers([0] * len(tasks))
        self.end = integers([0] * len(tasks))
        self.row = integers([-1] * len(tasks))
        self.head = integers([-1] * steps)
        self.after = integers([-1] * 2 * len(tasks))
        by_state, by_kind = [0] * (steps * len(kinds) * states), [0] * (steps * len(kinds))
        self.whole, self.peaks, self.early = integers(by_state), integers(by_state), integers(by_state)
        self.needed, self.sooner, self.awake = integers(by_kind), integers(by_kind), integers(by_kind)
        self.drawn_w = reals([0.0] * (steps * len(kinds)))
        self.total_w = reals([0.0] * steps)
        self.least_w = reals([0.0] * steps)
        self._refresh(0, steps - 1)

    @property
    def runs(self) -> dict[int, Run]:
        """The jobs in place."""
        return {
            job: (int(self.start[job]), int(self.end[job]), int(self.row[job] - self.first[job]))
            for job, row in enumerate(self.row)
            if row >= 0
        }

    def wakers(self, step: int, k: int) -> tuple[list[int], list[int]]:
        """Return the servers of a kind by state in a step, and how many of them wake in it: the cheapest choice."""
        kind = self.problem.kinds[k]
        first = step * self.columns + k * self.states
        peaks = [int(self.peaks[first + d]) for d in range(len(kind.powers_w))]
        early = [int(self.early[first + d]) for d in range(len(kind.powers_w))]
        awake = int(self.awake[step * self.kinds + k])
        before = int(self.awake[(step - 1) * self.kinds + k]) if step else kind.count
        inside = list(peaks)
        inside[kind.idle] += awake - sum(peaks)
        waking = [0] * len(peaks)
        left = max(0, awake - before)
        for d in waking_order(kind):
            waking[d] = min(left, inside[d] - early[d])
            left -= waking[d]
        return inside, waking

    def step_of(self, tick: i64) -> i64:
        """Return the step that a time lies in."""
        if self.uniform > 0:
            return tick // self.uniform
        low, high = 0, self.steps
        while high - low > 1:
            middle = (low + high) // 2
            if self.begins[middle] <= tick:
                low = middle
            else:
                high = middle
        return low

    def _on(self, step: i64, k: i64) -> i64:
        """Return the servers of a kind that are on in a step; in the one before the first all are."""
        if step < 0 or self.sleeps[k] == 0:
            return self.servers_of[k]
        if step + 1 < self.steps:
            return max(self.needed[step * self.kinds + k], self.sooner[(step + 1) * self.kinds + k])
        return self.needed[step * self.kinds + k]

    def _power(self, step: i64, k: i64, before: i64, awake: i64) -> float:
        """Sum Eq. 2 over a kind, `before` servers on in the step before; those wake that do so at the least power."""
        states, idle = self.states, self.idle[k]
        spare = awake - self.needed[step * self.kinds + k]
        power_w = float(spare) * self.power_w[k * self.states + idle]
        for d in range(states):
            power_w += float(self.peaks[step * self.columns + k * states + d]) * self.power_w[k * self.states + d]
        left = awake - before
        for at in range(states):
            if left <= 0:
                break
            d = self.waking[k * self.states + at]
            free = self.peaks[step * self.columns + k * states + d] - self.early[step * self.columns + k * states + d]
            if d == idle:
                free += spare
            some = min(left, free)
            power_w += float(some) * self.extra_w[k * self.states + d]
            left -= some
        falling = max(0, before - awake)
        asleep = self.servers_of[k] - awake - falling
        return power_w + float(falling) * self.off_w[k] + float(asleep) * self.sleep_w[k]

    def _sweep(self, step: i64, k: i64, d: i64) -> None:
        """Update the most servers in a state at once in a step: jobs that run through, that begin or that end in it."""
        column = k * self.states + d
        begin = self.begins[step]
        awake_from = begin + self.on_ticks[k]
        peak, early = 0, 0
        one = self.head[step]
        while one >= 0:
            if self.state[self.row[one // 2] * self.kinds + k] == d:
                at = max(self.start[one // 2], begin)
                together = 0
                other = self.head[step]
                while other >= 0:
                    job = other // 2
                    if self.start[job] <= at and at < self.end[job] and self.state[self.row[job] * self.kinds + k] == d:
                        together += self.servers[self.row[job] * self.kinds + k]
                    other = self.after[other]
                peak = max(peak, together)
                if at < awake_from:
                    early = max(early, together)
            one = self.after[one]
        peak += self.whole[step * self.columns + column]
        early += self.whole[step * self.columns + column]
        self.needed[step * self.kinds + k] += peak - self.peaks[step * self.columns + column]
        self.sooner[step * self.kinds + k] += early - self.early[step * self.columns + column]
        self.peaks[step * self.columns + column] = peak
        self.early[step * self.columns + column] = early

    def _link(self, step: i64, node: i64, sign: i64) -> None:
        """Put a job in the list of those that begin or end in a step (sign 1), or take it out (-1)."""
        if sign > 0:
            self.after[node] = self.head[step]
            self.head[step] = node
        elif self.head[step] == node:
            self.head[step] = self.after[node]
        else:
            at = self.head[step]
            while self.after[at] != node:
                at = self.after[at]
            self.after[at] = self.after[node]

    def _change(self, job: i64, sign: i64) -> None:
        """Count a job's servers in (sign 1) or out (-1): `peaks`, `early` and their sums."""
        start, end, row = self.start[job], self.end[job], self.row[job]
        low, high = self.step_of(start), self.step_of(end - 1)
        if start > self.begins[low] or end < self.begins[low + 1]:
            self._link(low, 2 * job, sign)
        if high > low and end < self.begins[high + 1]:
            self._link(high, 2 * job + 1, sign)
        for k in range(self.kinds):
            count = sign * self.servers[row * self.kinds + k]
            if count == 0:
                continue
            d = self.state[row * self.kinds + k]
            column = k * self.states + d
            for step in range(low, high + 1):
                if start <= self.begins[step] and end >= self.begins[step + 1]:
                    self.whole[step * self.columns + column] += count
                    self.peaks[step * self.columns + column] += count
                    self.early[step * self.columns + column] += count
                    self.needed[step * self.kinds + k] += count
                    self.sooner[step * self.kinds + k] += count
                else:
                    self._sweep(step, k, d)

    def _allowed(self, job: i64) -> bool:
        """Return whether caps and numbers of servers are kept in all steps that a job, just counted in, has changed."""
        row = self.row[job]
        low = max(0, self.step_of(self.start[job]) - 1)
        high = self.step_of(self.end[job] - 1)
        for step in range(low, min(high + 1, self.steps - 1) + 1):
            total_w = 0.0
            for k in range(self.kinds):
                if self.servers[row * self.kinds + k] == 0:
                    total_w += self.drawn_w[step * self.kinds + k]
                    continue
                awake = self._on(step, k)
                if awake > self.servers_of[k] or self.needed[step * self.kinds + k] > self.servers_of[k]:
                    return False
                total_w += self._power(step, k, self._on(step - 1, k), awake)
            if total_w > self.caps_w[step]:
                return False
        return True

    def _refresh(self, low: i64, high: i64) -> None:
        """Update the servers awake in the steps [low, high], and the powers from `low` to the step after."""
        kinds, states = self.kinds, self.states
        for step in range(low, min(high + 1, self.steps - 1) + 1):
            total_w, least_w = 0.0, 0.0
            for k in range(kinds):
                awake = self._on(step, k)
                drawn_w = self._power(step, k, self._on(step - 1, k), awake)
                self.awake[step * kinds + k], self.drawn_w[step * kinds + k] = awake, drawn_w
                total_w += drawn_w
                least_w += float(self.servers_of[k]) * self.rest_w[k]
                for d in range(states):
                    peak = float(self.peaks[step * self.columns + k * states + d])
                    least_w += peak * (self.power_w[k * states + d] - self.rest_w[k])
            self.total_w[step] = total_w
            self.least_w[step] = least_w

    def put(self, job: i64, start: i64, mode: i64) -> bool:
        """Put a job in; return False, and change nothing, if the rules of the model do not allow it."""
        row = self.first[job] + mode
        end = start + self.ticks[row]
        if end > self.begins[self.steps]:
            return False
        self.start[job], self.end[job], self.row[job] = start, end, row
        self._change(job, 1)
        if self._allowed(job):
            self._refresh(max(0, self.step_of(start) - 1), self.step_of(end - 1))
            return True
        self._change(job, -1)
        self.row[job] = -1
        return False

    def restore(self, job: i64, start: i64, mode: i64) -> None:
        """Put a job back where it was, unchecked: some of the jobs that made that possible may not be back yet."""
        row = self.first[job] + mode
        self.start[job], self.end[job], self.row[job] = start, start + self.ticks[row], row
        self._change(job, 1)
        self._refresh(max(0, self.step_of(start) - 1), self.step_of(self.end[job] - 1))

    def remove(self, job: i64) -> None:
        """Take a job out."""
        self._change(job, -1)
        self.row[job] = -1
        self._refresh(max(0, self.step_of(self.start[job]) - 1), self.step_of(self.end[job] - 1))


def waking_order(kind: Kind) -> list[int]:
    """Return the states, those first to which a server wakes at the least additional power."""
    return sorted(range(len(kind.powers_w)), key=lambda d: (kind.wake_w(d) - kind.powers_w[d], d))


def _wide(row: list[float], states: int) -> list[float]:
    """Return a row with zeros for the states that a kind does not have."""
    return [*row, *[0.0] * (states - len(row))]


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
            self.timeline.remove(job)

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
        timeline.remove(job)
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
                timeline.remove(job)
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
                timeline.remove(self.picked[place])
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
