"""Putting one job in: the start and mode of least wait_j / Et_j + price, among those that servers and caps allow."""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort

import numpy as np

from batwatt.systems.powercap.optimum.prices import Floats, Ints, ModeTable, PowerPrices
from batwatt.systems.powercap.optimum.problem import TICKS_PER_S, Problem
from batwatt.systems.powercap.optimum.timeline import PowerTimeline, Run

FIRST_WINDOW = 16
"""Steps that are looked at first; four times as many each time nothing good enough was found."""
LOOKS = 600
"""How many of the cheapest candidates of a window are looked at,"""
TRIES = 60
"""and how many of those that seem to fit are tried."""


class Inserter:
    """Puts jobs in a timeline and takes them out, with the times at which others end at hand."""

    def __init__(self, problem: Problem, tables: list[ModeTable]) -> None:
        self.problem = problem
        self.tables = tables
        self.timeline = PowerTimeline(problem)
        self.ends: list[int] = []
        begins = np.asarray(problem.begins, dtype=np.int64)
        self.begins = begins
        self.caps_w = np.asarray(self.timeline.caps_w)
        self.counts = np.array([kind.count for kind in problem.kinds], dtype=np.int64)
        self.spare_w = self.caps_w - sum(kind.count * kind.rest_w for kind in problem.kinds)
        uses = self.timeline.uses
        late = sorted({use.kind.on_ticks for use in uses if use.sleeps and use.kind.on_ticks})
        offsets = np.array([0, *late], dtype=np.int64)
        self.anchors = (begins[:-1, None] + offsets[None, :]).ravel()
        self.per_step = len(offsets)
        self.stays = np.array([not use.sleeps for use in uses])

    def restore(self, job: int, run: Run) -> None:
        """Put a job back where it was."""
        self.timeline.restore(job, run)
        insort(self.ends, run[1])

    def take(self, job: int) -> Run:
        """Take a job out."""
        run = self.timeline.take(job)
        del self.ends[bisect_left(self.ends, run[1])]
        return run

    def insert(self, job: int, prices: PowerPrices) -> bool:
        """Put a job in where it is cheapest; False if it fits nowhere."""
        task, table = self.problem.tasks[job], self.tables[job]
        first = self.problem.step_of(task.submit)
        longest_s = float(table.run_s.max())
        low, width = first, FIRST_WINDOW
        steps = self.problem.steps
        best: tuple[float, int, int] | None = None
        while low < steps:
            high = min(steps, low + width)
            found = self._cheapest(job, table, prices, low, high, best[0] if best else np.inf)
            best = found or best
            if best is not None:
                # later starts cost more than this, whatever the prices
                waited_s = (self.problem.begins[high] - task.submit) / TICKS_PER_S
                if high == steps or waited_s / longest_s >= best[0]:
                    break
                if found is not None:
                    self.timeline.take(job)
            low, width = high, width * 4
        if best is None or not (job in self.timeline.runs or self.timeline.put(job, best[1], best[2])):
            return False
        insort(self.ends, self.timeline.runs[job][1])
        return True

    def _cheapest(
        self, job: int, table: ModeTable, prices: PowerPrices, low: int, high: int, below: float
    ) -> tuple[float, int, int] | None:
        """Put it in where it costs least, and less than `below`, from the steps [low, high[ on: (cost, start, mode)."""
        timeline, task, begins = self.timeline, self.problem.tasks[job], self.begins
        starts = self._starts(task.submit, low, high)
        if not len(starts):
            return None
        ends = starts[None, :] + table.ticks[:, None]
        final_tick = int(begins[-1])
        beyond = ends > final_tick
        if beyond.any():
            ends = np.minimum(ends, final_tick)
        start_step = timeline.step_of(starts)
        end_step = timeline.step_of(ends)
        # full steps [a, b[ of each candidate
        a = start_step + (starts > begins[start_step])
        top = int(max(end_step.max(), a.max()))
        sleeping = np.flatnonzero(~self.stays)
        sums = self._over(table, timeline.power_w, self.caps_w, timeline.awake, sleeping, slice(low, top))
        rows = np.arange(len(table.ticks))[:, None]
        blocked = sums[rows, np.minimum(np.maximum(end_step, a), top) - low] > sums[rows, a[None, :] - low]
        # in a step that it runs in at all it has no more than what the jobs that run through leave
        final = np.maximum(timeline.step_of(ends - 1), start_step)
        top = int(final.max()) + 1
        kinds = np.arange(len(self.counts))
        sums = self._over(table, timeline.whole_w, self.spare_w, timeline.whole, kinds, slice(low, top))
        blocked |= sums[rows, final + 1 - low] > sums[rows, start_step[None, :] - low]
        cost = np.maximum(starts - task.submit_s * TICKS_PER_S, 0.0) / TICKS_PER_S / table.run_s[:, None]
        top = int(end_step.max()) + 1
        rates, paid = (table.priced(each[:, low:top]) for each in (prices.rates, prices.sums))
        cost += paid[rows, end_step - low] + rates[rows, end_step - low] * (ends - begins[end_step])
        cost -= paid[:, start_step - low] + rates[:, start_step - low] * (starts - begins[start_step])
        cost[blocked | beyond] = np.inf
        flat = cost.ravel()
        count = len(starts)
        some = np.argpartition(flat, LOOKS)[:LOOKS] if len(flat) > LOOKS else np.arange(len(flat))
        tries = 0
        for index in some[np.lexsort((some, flat[some]))].tolist():
            value = float(flat[index])
            if not value < below or tries == TRIES:
                return None
            row, column = divmod(index, count)
            start, mode = int(starts[column]), int(table.index[row])
            if timeline.plausible(start, task.modes[mode]):
                tries += 1
                if timeline.put(job, start, mode):
                    return value, start, mode
        return None

    def _over(self, table: ModeTable, power_w: Floats, caps_w: Floats, used: Ints, kinds: Ints, part: slice) -> Ints:
        """In how many steps of a part, until each one, a mode (row) would exceed the caps or the servers of `kinds`."""
        bad = power_w[part] + table.power_w[:, None] > caps_w[part]
        for k in kinds:
            bad |= used[k, part] + table.counts[:, k, None] > self.counts[k]
        sums = np.zeros((len(bad), bad.shape[1] + 1), dtype=np.int64)
        np.cumsum(bad, axis=1, out=sums[:, 1:])
        return sums

    def _starts(self, submit: int, low: int, high: int) -> np.ndarray:
        """Times worth trying: the submission, steps' beginnings, when woken servers are awake, when other jobs end."""
        since, until = max(submit, self.problem.begins[low]), self.problem.begins[high]
        anchors = self.anchors[low * self.per_step : high * self.per_step]
        ended = self.ends[bisect_left(self.ends, since) : bisect_right(self.ends, until - 1)]
        some = np.sort(np.concatenate([anchors, np.array([since, *ended], dtype=np.int64)]))
        some = some[np.searchsorted(some, since) :]
        return some[np.concatenate([[True], some[1:] > some[:-1]])]
