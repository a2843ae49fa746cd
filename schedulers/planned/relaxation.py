"""The relaxed problem and its bound: the cheapest run of each job at given prices, and the most that servers earn.

A slot is a part of a step. Each job pays for its servers in every slot; each server earns that price in the state that
it is in, and pays for its watts. Column k * S + d is state d of kind k.

A server keeps one state for a whole step and pays for transitions (one longer than a step ends with it). Runs that the
caps forbid even alone are left out: in every step of a run the power of its mode, all others asleep, is within P_t; if
it starts before a server that wakes in this step would be awake, its servers are on in the step before, at their least
power. For one mode the cost is linear in the start, and the permission constant, between the times at which the run
begins or ends at the edge of a slot, begins at the submission, or begins when a waking server is awake: only these are
tried. The sequence of states is a dynamic programme over the steps, awake or asleep. With two kinds, at fixed states,
the price is linear in the servers of the first kind: the fewest and the most suffice (a run of either is left out only
if the caps forbid both).
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator
from typing import Final, TypeAlias

import numpy as np
from mypy_extensions import i64
from numpy.typing import NDArray

from batwatt.arrays import integers, reals
from batwatt.model.platform import NOISE_W
from batwatt.schedulers.planned.problem import OptimumJob, Problem

INFINITY: Final = math.inf
TICKS_PER_S: Final = 1000.0


class Relaxed:
    """The problem by slots, prices, and the use and supply of the cheapest runs and of the servers at them.

    The first `priced` of the steps have prices, each has `parts` slots; `uniform` is a step's ticks if all are alike,
    else 0. A price is of one server for a slot (`price`) or one watt for a step (`watt`); `paid` is the sum of the
    prices of all slots before. `spare_w` is what a cap leaves above rest; `early` the share of a slot in which a server
    that wakes in its step is not yet awake. Rows are modes: `first[j]` to `first[j + 1]` are those of job j that can be
    the cheapest, and a run in one is looked at where the caps allow it or one in its `partner`. Tables by slot and
    column, row and kind, or kind and state lie row by row.
    """

    def __init__(self, problem: Problem, parts: int, priced: int, modes_of: list[list[tuple[int, int]]]) -> None:
        kinds = problem.kinds
        states = max(len(kind.powers_w) for kind in kinds)
        steps = list(itertools.pairwise(problem.begins))
        lengths = {b - a for a, b in steps}
        cuts = [a + (b - a) * i // parts for a, b in steps[:priced] for i in range(parts)]
        edges = np.array([*cuts, problem.begins[priced]], dtype=np.int64)
        opens = np.repeat(np.asarray(problem.begins[:priced], dtype=np.int64), parts)
        early = [np.clip((opens + kind.on_ticks - edges[:-1]) / np.diff(edges), 0.0, 1.0) for kind in kinds]
        caps_w = [cap_w + NOISE_W for cap_w in problem.caps_w]
        rest_w = sum(kind.count * kind.rest_w for kind in kinds)
        # a state that a kind does not have earns nothing
        power_w = [[*kind.powers_w, *[kind.powers_w[-1]] * (states - len(kind.powers_w))] for kind in kinds]
        rows = [
            (task.modes[m], at - i)
            for task, some in zip(problem.tasks, modes_of, strict=True)
            for i, (m, at) in enumerate(some)
        ]
        modes = [mode for mode, _ in rows]
        self.steps: i64 = len(steps)
        self.priced: i64 = priced
        self.parts: i64 = parts
        self.kinds: i64 = len(kinds)
        self.states: i64 = states
        self.columns: i64 = len(kinds) * states
        self.uniform: i64 = lengths.pop() if len(lengths) == 1 else 0
        self.begun: i64 = 0
        self.begins = integers(problem.begins)
        self.edges = integers(edges.tolist())
        self.caps_w = reals(caps_w)
        self.spare_w = reals(cap_w - rest_w for cap_w in caps_w)
        self.servers_of = integers(kind.count for kind in kinds)
        self.sleeps = integers(kind.sleep is not None for kind in kinds)
        self.on_ticks = integers(kind.on_ticks for kind in kinds)
        self.sleep_w = reals(kind.sleep_w for kind in kinds)
        self.off_w = reals(kind.off_w for kind in kinds)
        self.awake_w = reals(kind.powers_w[kind.idle] - kind.rest_w for kind in kinds)
        self.power_w = reals(w for row in power_w for w in row)
        self.wake_w = reals(max(w, kind.on_w) for kind, row in zip(kinds, power_w, strict=True) for w in row)
        self.early = reals(np.array(early).T.ravel().tolist())
        self.submit = integers(task.submit for task in problem.tasks)
        self.first = integers([0, *itertools.accumulate(map(len, modes_of))])
        self.partner = integers(row + offset for row, (_, offset) in enumerate(rows))
        self.ticks = integers(mode.ticks for mode in modes)
        self.run_s = reals(mode.run_s for mode in modes)
        self.above_w = reals(problem.above_w(mode) for mode in modes)
        self.servers = integers(count for mode in modes for count in mode.counts)
        self.state = integers(state for mode in modes for state in mode.states)
        slots = [0.0] * (priced * parts * len(kinds) * states)
        self.price, self.balance = reals(slots), reals(slots)
        self.paid = reals([*slots, *[0.0] * (len(kinds) * states)])
        self.watt, self.watts = reals([0.0] * priced), reals([0.0] * priced)
        self.choice = integers([0] * (4 * priced))
        self.lowest = reals([0.0] * max(len(steps) + 1, len(problem.tasks)))

    def _slot_of(self, tick: i64, guess: i64) -> i64:
        """Return the slot that a time lies in, searched from a guess on; one more than there are beyond the last."""
        count = self.priced * self.parts
        at = min(guess, count)
        while at < count and self.edges[at + 1] <= tick:
            at += 1
        while self.edges[at] > tick:
            at -= 1
        return at

    def _step_of(self, tick: i64) -> i64:
        """Return the step that a time lies in."""
        low, high = 0, self.steps
        while high - low > 1:
            middle = (low + high) // 2
            if self.begins[middle] <= tick:
                low = middle
            else:
                high = middle
        return low

    def _until(self, column: i64, tick: i64, slot: i64) -> float:
        """Return the cost of a server from 0 to a time."""
        if slot >= self.priced * self.parts:
            return self.paid[slot * self.columns + column]
        share = float(tick - self.edges[slot]) / float(self.edges[slot + 1] - self.edges[slot])
        at = slot * self.columns + column
        return self.paid[at] + share * self.price[at]

    def _early_w(self, row: i64, start: i64, step: i64) -> float:
        """Return the least W of servers in the step before a run that begins before they could wake in its own."""
        watts = 0.0
        for k in range(self.kinds):
            if self.sleeps[k] != 0 and start < self.begins[step] + self.on_ticks[k]:
                watts += float(self.servers[row * self.kinds + k]) * self.awake_w[k]
        return watts

    def _permitted(self, row: i64, start: i64, step: i64) -> bool:
        """Return whether the caps allow a run, or its partner, even alone (Eq. 1 and 2)."""
        end, other = start + self.ticks[row], self.partner[row]
        if end > self.begins[self.steps]:
            return False
        needed_w = min(self.above_w[row], self.above_w[other])
        at = step
        while at < self.steps and self.begins[at] < end:
            if needed_w > self.spare_w[at]:
                return False
            at += 1
        if step == 0:
            return True
        return min(self._early_w(row, start, step), self._early_w(other, start, step)) <= self.spare_w[step - 1]

    def _look(self, job: i64, row: i64, start: i64, step: i64, below: float, low: i64) -> float:
        """Return the cost of a run if it is allowed and costs less than `below`, else `below`.

        With `low` >= 0 the least cost of a start in each step from there on is kept in `lowest`, too.
        """
        end = start + self.ticks[row]
        first = self._slot_of(start, step * self.parts)
        guess = end // self.uniform * self.parts if self.uniform > 0 else first
        last = self._slot_of(end, guess)
        cost = float(start - self.submit[job]) / TICKS_PER_S / self.run_s[row]
        for k in range(self.kinds):
            servers = self.servers[row * self.kinds + k]
            if servers > 0:
                column = k * self.states + self.state[row * self.kinds + k]
                cost += float(servers) * (self._until(column, end, last) - self._until(column, start, first))
        if cost >= below or not self._permitted(row, start, step):
            return below
        if low < 0:
            self.begun = start
            return cost
        # the end of a step belongs to it, too
        if step - low < len(self.lowest):
            self.lowest[step - low] = min(self.lowest[step - low], cost)
        if start == self.begins[step] and step > low and step - low - 1 < len(self.lowest):
            self.lowest[step - low - 1] = min(self.lowest[step - low - 1], cost)
        return below

    def _cheapest(self, job: i64, row: i64, below: float, low: i64) -> float:
        """Return the least cost of the runs in a mode if it is less than `below`; `begun` is its start.

        Looked at is where cost or permission change: a run begins or ends at the edge of a slot, begins at the
        submission, or when a server that wakes in the step is awake. Between these times the cost is linear, and where
        a run is allowed between two of them it is at both.
        """
        submit, parts = self.submit[job], self.parts
        priced = self.priced
        step = self._step_of(submit)
        ended = step
        best = self._look(job, row, submit, step, below, low)
        while step < self.steps:
            since = max(submit, self.begins[step])
            if float(since - submit) / TICKS_PER_S / self.run_s[row] >= best:
                break
            for part in range(parts if step < priced else 1):
                start = self.edges[step * parts + part] if step < priced else self.begins[step]
                if start > submit:
                    best = self._look(job, row, start, step, best, low)
            for k in range(self.kinds):
                start = self.begins[step] + self.on_ticks[k]
                if self.sleeps[k] != 0 and start > since and start < self.begins[step + 1]:
                    best = self._look(job, row, start, step, best, low)
            # starts in this step of runs that end at the edge of a slot
            while ended < self.steps and self.begins[ended + 1] - self.ticks[row] <= since:
                ended += 1
            at = ended
            while at < self.steps and self.begins[at] - self.ticks[row] < self.begins[step + 1]:
                for part in range(parts if at < priced else 1):
                    start = (self.edges[at * parts + part] if at < priced else self.begins[at]) - self.ticks[row]
                    if start > since and start < self.begins[step + 1]:
                        best = self._look(job, row, start, step, best, low)
                at += 1
            step += 1
        return best

    def _hold(self, row: i64, start: i64) -> None:
        """Add the use of each slot by a run to `balance`."""
        end, slots = start + self.ticks[row], self.priced * self.parts
        slot = self._slot_of(start, self._step_of(start) * self.parts)
        while slot < slots and self.edges[slot] < end:
            span = min(end, self.edges[slot + 1]) - max(start, self.edges[slot])
            if span > 0:
                share = float(span) / float(self.edges[slot + 1] - self.edges[slot])
                for k in range(self.kinds):
                    servers = self.servers[row * self.kinds + k]
                    if servers > 0:
                        column = k * self.states + self.state[row * self.kinds + k]
                        self.balance[slot * self.columns + column] += share * float(servers)
            slot += 1

    def _earned(self, k: i64) -> float:
        """Return the most that a server of a kind earns over all steps, at any sequence of its states.

        Its states are taken out of `balance` and their power is added to `watts`, for all servers of the kind. A
        transition ends with the step in which it begins, which allows more than the model where it takes longer.
        """
        states, parts, priced = self.states, self.parts, self.priced
        on, asleep = 0.0, -INFINITY
        for step in range(priced):
            awake, woken = -INFINITY, -INFINITY
            for d in range(states):
                column = k * states + d
                whole, late = 0.0, 0.0
                for slot in range(step * parts, (step + 1) * parts):
                    whole += self.price[slot * self.columns + column]
                    late += self.price[slot * self.columns + column] * (1.0 - self.early[slot * self.kinds + k])
                whole -= self.watt[step] * self.power_w[k * self.states + d]
                late -= self.watt[step] * self.wake_w[k * self.states + d]
                if whole > awake:
                    awake = whole
                    self.choice[step * 4] = d
                if late > woken:
                    woken = late
                    self.choice[step * 4 + 1] = d
            stays, wakes = on + awake, asleep + woken
            falls, sleeps = on - self.watt[step] * self.off_w[k], asleep - self.watt[step] * self.sleep_w[k]
            self.choice[step * 4 + 2] = 1 if wakes > stays else 0
            self.choice[step * 4 + 3] = 1 if falls >= sleeps else 0
            on = max(stays, wakes)
            asleep = max(falls, sleeps) if self.sleeps[k] != 0 else -INFINITY
        best = max(on, asleep)
        up = on >= asleep
        count = float(self.servers_of[k])
        for step in range(priced - 1, -1, -1):
            if up:
                wakes_here = self.choice[step * 4 + 2] == 1
                d = self.choice[step * 4 + 1] if wakes_here else self.choice[step * 4]
                at = k * states + d
                self.watts[step] += count * (self.wake_w[at] if wakes_here else self.power_w[at])
                for slot in range(step * parts, (step + 1) * parts):
                    share = 1.0 - self.early[slot * self.kinds + k] if wakes_here else 1.0
                    self.balance[slot * self.columns + at] -= count * share
                up = not wakes_here
            else:
                up = self.choice[step * 4 + 3] == 1
                self.watts[step] += count * (self.off_w[k] if up else self.sleep_w[k])
        return best

    def evaluate(self) -> float:
        """Bound the sum of wait / Et at the prices; fill `balance` and `watts` with use minus supply."""
        for at in range(self.priced * self.parts * self.columns):
            self.paid[at + self.columns] = self.paid[at] + self.price[at]
            self.balance[at] = 0.0
        total = 0.0
        for job in range(len(self.submit)):
            best, best_row, best_start = INFINITY, -1, 0
            for row in range(self.first[job], self.first[job + 1]):
                cost = self._cheapest(job, row, best, -1)
                if cost < best:
                    best, best_row, best_start = cost, row, self.begun
            if best_row < 0:
                return INFINITY
            total += best
            self.lowest[job] = best
            self._hold(best_row, best_start)
        for step in range(self.priced):
            total -= self.watt[step] * self.caps_w[step]
            self.watts[step] = -self.caps_w[step]
        for k in range(self.kinds):
            total -= float(self.servers_of[k]) * self._earned(k)
        return total

    def by_step(self, job: i64, row: i64, below: float, low: i64) -> None:
        """Fill `lowest[i]` with the least cost of a start in step `low` + i in a mode, inf unless below `below`."""
        for at in range(len(self.lowest)):
            self.lowest[at] = INFINITY
        self._cheapest(job, row, below, low)


Floats: TypeAlias = NDArray[np.float64]
BEGUN, FASTEST, SLOWEST = 0.1, 2.0, 1e-4
"""Share of the hoped-for rise of the bound for which a step is made: at first, at most and at least."""
HOPE = 0.1
"""Share of the distance from 1 to a schedule's mean slowdown by which the bound is hoped to rise."""
SHARE, LEAST_SHARE = 0.1, 0.002
"""Share of the newest runs in their mean, at first and at last."""
PATIENCE, STALE = 20, 300
"""Iterations without a better bound, with a hardly better one, after which steps or the share become smaller."""
HARDLY = 2e-4
"""A hardly better bound, as a share of the distance from 1 to a schedule's mean slowdown."""


class Relaxation:
    """The relaxed problem: in each slot as many servers in each state as runs need, on average, and watts of a step.

    A slot is one of `parts` equal parts of one of the first `priced` steps. `value` is the best bound so far, at the
    prices `best`.
    """

    def __init__(self, problem: Problem, parts: int = 1, priced: int | None = None) -> None:
        self.problem = problem
        self.parts = parts
        self.priced = min(problem.steps, priced or problem.steps)
        self.tables = Relaxed(problem, parts, self.priced, [_extremes(task) for task in problem.tasks])
        # the price of a watt is measured by the power of a server
        self.scale_w = max(self.tables.power_w)
        self.slots = self.priced * parts
        self.columns = int(self.tables.columns)
        self._mean: Floats | None = None
        self.best: Floats = np.zeros(self.slots * self.columns + self.priced)
        self.value = 1.0

    @property
    def rates(self) -> Floats:
        """The best prices by step (row): of one server for a tick, in state d of kind k in column k * S + d."""
        steps, columns = self.problem.steps, self.columns
        rates = np.zeros((steps, columns))
        prices = self.best[: self.slots * columns].reshape(self.priced, self.parts, columns)
        rates[: self.priced] = prices.sum(axis=1) / np.diff(self.problem.begins[: self.priced + 1])[:, None]
        return rates

    def evaluate(self, prices: Floats) -> tuple[float, Floats]:
        """Return the bound of the sum of wait / Et at prices >= 0, and the need beyond the supply.

        Both have all slots by column, then the steps; the price of 1 / `scale_w` watts.
        """
        tables, split = self.tables, self.slots * self.columns
        tables.price = reals(prices[:split].tolist())
        tables.watt = reals((prices[split:] / self.scale_w).tolist())
        value = tables.evaluate()
        return value, np.concatenate([np.asarray(tables.balance), np.asarray(tables.watts) / self.scale_w])

    def improve(self, upper: float, iterations: int, go_on: Callable[[], bool] = lambda: True) -> float:
        """Raise the bound; `upper` is the mean slowdown of a schedule.

        The volume algorithm (Barahona and Anbil): a step from the best prices towards a mean of what the cheapest runs
        and the servers at all prices so far were short of.
        """
        jobs = len(self.problem.tasks)
        ceiling = (upper - 1.0) * jobs
        value, short = self.evaluate(self.best)
        best = max(value, (self.value - 1.0) * jobs)
        mean = short if self._mean is None else self._mean
        pace, share, failed = BEGUN, SHARE, 0
        hope = best + HOPE * ceiling
        marks = [best]
        for _ in range(iterations):
            if ceiling - best <= 1e-9 or not go_on():
                break
            direction = np.where((self.best <= 0.0) & (mean < 0.0), 0.0, mean)
            norm = float((direction * direction).sum())
            if norm <= 1e-12:
                break
            prices = np.maximum(0.0, self.best + pace * (min(hope, ceiling) - best) / norm * direction)
            value, short = self.evaluate(prices)
            change = short - mean
            length = float((change * change).sum())
            # the mean that is the nearest to 0, within bounds
            nearest = -float((mean * change).sum()) / length if length > 0.0 else share
            weight = min(max(nearest, share / 10.0), share)
            mean = weight * short + (1.0 - weight) * mean
            if value > best:
                best, failed, self.best = value, 0, prices
                self.value = max(self.value, 1.0 + best / jobs)
                if float((short * direction).sum()) > 0.0:
                    pace = min(FASTEST, pace * 1.1)
            else:
                failed += 1
                if failed == PATIENCE:
                    pace, failed = max(SLOWEST, pace * 0.66), 0
            if best > hope - 0.2 * HOPE * ceiling:
                hope = best + HOPE * ceiling
            marks.append(best)
            if len(marks) > STALE and best - marks[-STALE] < HARDLY * ceiling:
                share, marks = share / 2.0, [best]
                if share <= LEAST_SHARE:
                    break
        self._mean = mean
        return self.value

    def open_steps(self, upper: float) -> list[list[list[int]]]:
        """Return the steps, by task and mode, of starts in a schedule better than a mean slowdown of `upper`.

        If a job starts elsewhere, the bound at the best prices, with its least cost there instead of its least cost of
        all, is above `upper`.
        """
        problem = self.problem
        value, _ = self.evaluate(self.best)
        spare = (upper - 1.0) * len(problem.tasks) - value + 1e-6
        least = list(self.tables.lowest)[: len(problem.tasks)]
        every_mode = [[(m, m) for m in range(len(task.modes))] for task in problem.tasks]
        all_modes = Relaxed(problem, self.parts, self.priced, every_mode)
        all_modes.price, all_modes.paid = self.tables.price, self.tables.paid
        steps = []
        for j, task in enumerate(problem.tasks):
            low = problem.step_of(task.submit)
            rows = range(int(all_modes.first[j]), int(all_modes.first[j + 1]))
            steps.append([list(self._open(all_modes, j, row, least[j] + spare, low)) for row in rows])
        return steps

    @staticmethod
    def _open(tables: Relaxed, job: int, row: int, below: float, low: int) -> Iterator[int]:
        tables.by_step(job, row, below, low)
        yield from (low + np.flatnonzero(np.isfinite(np.asarray(tables.lowest)))).tolist()


def _extremes(task: OptimumJob) -> list[tuple[int, int]]:
    """Return the modes that can be the cheapest, and the place among them of each one's partner.

    With two kinds the price of a run at given states is linear in how many of its servers are of the first, so only the
    fewest and the most matter: partners. Any other mode is its own.
    """
    groups: dict[tuple[int, ...], list[int]] = {}
    for m, mode in enumerate(task.modes):
        pair = len(mode.counts) == 2 and len(mode.parts) == 2
        groups.setdefault(mode.states if pair else (-2, m), []).append(m)
    partners: list[tuple[int, int]] = []
    for some in groups.values():
        few, many = (pick(some, key=lambda m: task.modes[m].counts[0]) for pick in (min, max))
        at = len(partners)
        partners += [(few, at)] if few == many else [(few, at + 1), (many, at)]
    return partners
