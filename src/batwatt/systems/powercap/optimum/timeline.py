"""The use of the machine over all steps while jobs are put in and taken out.

Per step and kind: `peaks`, the servers needed in each state (the most that run at once in it); `early`, the same until
a server that wakes in this step is awake; `awake`, the servers that are on, which is the most needed in this step or
early in the next. Servers that are on but not needed idle, others fall asleep. A kind that cannot sleep, or whose
transitions do not end within a step, stays on. Column k * S + d of a table by step is state d of kind k.
"""

from __future__ import annotations

import itertools

from mypy_extensions import i64

from batwatt.arrays import integers, reals
from batwatt.model.platform import NOISE_W
from batwatt.systems.powercap.optimum.problem import Kind, Problem

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

    def take(self, job: i64) -> None:
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
