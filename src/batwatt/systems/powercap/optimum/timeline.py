"""The machine and the jobs in place as a kernel's tables, from a problem."""

from __future__ import annotations

import itertools

import numpy as np

from batwatt.arrays import Integers, IntegerTable
from batwatt.model.platform import NOISE_W
from batwatt.systems.powercap.optimum import timeline_kernel as kernel
from batwatt.systems.powercap.optimum.problem import Kind, Problem
from batwatt.systems.powercap.optimum.timeline_kernel import Use

Run = tuple[int, int, int]
"""Start, end (ticks) and mode of a job."""


class PowerTimeline:
    """Jobs in place, and what the machine draws for them: `use` has the tables."""

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        self.use = _use(problem)
        kernel.begin(self.use)

    @property
    def runs(self) -> dict[int, Run]:
        """The jobs in place."""
        use = self.use
        return {
            int(job): (int(use.start[job]), int(use.end[job]), int(use.row[job] - use.first[job]))
            for job in np.flatnonzero(use.row >= 0)
        }

    def put(self, job: int, start: int, mode: int) -> bool:
        """Put a job in; False, and nothing is changed, if the model's rules do not allow it."""
        return bool(kernel.put_one(self.use, job, int(self.use.first[job]) + mode, start))

    def restore(self, job: int, start: int, mode: int) -> None:
        """Put a job in, unasked: some of the jobs that make that possible may not be back yet."""
        kernel.restore_one(self.use, job, int(self.use.first[job]) + mode, start)

    def take(self, job: int) -> None:
        """Take a job out."""
        kernel.take_one(self.use, job)

    def wakers(self, step: int, k: int) -> tuple[list[int], list[int]]:
        """Servers of a kind in each state in a step, and how many of them wake in it: the cheapest choice."""
        use, kind = self.use, self.problem.kinds[k]
        states = slice(k * use.sizes[kernel.STATES], k * use.sizes[kernel.STATES] + len(kind.powers_w))
        peaks, early = use.peaks[step, states].tolist(), use.early[step, states].tolist()
        awake = int(use.awake[step, k])
        before = int(use.awake[step - 1, k]) if step else kind.count
        inside = list(peaks)
        inside[kind.idle] += awake - sum(peaks)
        waking = [0] * len(peaks)
        left = max(0, awake - before)
        for d in waking_order(kind):
            waking[d] = min(left, inside[d] - early[d])
            left -= waking[d]
        return inside, waking


def waking_order(kind: Kind) -> list[int]:
    """The states, those first to which a server wakes at the least additional power."""
    return sorted(range(len(kind.powers_w)), key=lambda d: (kind.wake_w(d) - kind.powers_w[d], d))


def _use(problem: Problem) -> Use:
    kinds, tasks, steps = problem.kinds, problem.tasks, problem.steps
    states = max(len(kind.powers_w) for kind in kinds)
    modes = [mode for task in tasks for mode in task.modes]
    lengths = {b - a for a, b in itertools.pairwise(problem.begins)}
    uniform = lengths.pop() if len(lengths) == 1 else 0
    extra = [[kind.wake_w(d) - kind.powers_w[d] for d in range(len(kind.powers_w))] for kind in kinds]
    above = [sum(n * (kinds[k].powers_w[d] - kinds[k].rest_w) for k, d, n in mode.parts) for mode in modes]
    able = problem.short_transitions

    def wide(rows: list[list[float]]) -> np.ndarray:
        return np.array([[*row, *[0.0] * (states - len(row))] for row in rows], dtype=np.float64)

    def per_step(columns: int) -> IntegerTable:
        return np.zeros((steps, columns), dtype=np.int64)

    def whole(values: object) -> Integers:
        return np.array(values, dtype=np.int64)

    orders = [waking_order(kind) for kind in kinds]
    return Use(
        sizes=whole([steps, len(kinds), states, uniform]),
        begins=whole(problem.begins),
        caps_w=np.array(problem.caps_w) + NOISE_W,
        servers_of=whole([kind.count for kind in kinds]),
        idle=whole([kind.idle for kind in kinds]),
        sleeps=whole([able and kind.sleep is not None for kind in kinds]),
        on_ticks=whole([kind.on_ticks for kind in kinds]),
        sleep_w=np.array([kind.sleep_w for kind in kinds]),
        off_w=np.array([kind.off_w for kind in kinds]),
        rest_w=np.array([kind.rest_w for kind in kinds]),
        power_w=wide([list(kind.powers_w) for kind in kinds]),
        extra_w=wide(extra),
        waking=whole([[*order, *range(len(order), states)] for order in orders]),
        submit=whole([task.submit for task in tasks]),
        submit_s=np.array([task.submit_s for task in tasks]),
        first=whole([0, *itertools.accumulate(len(task.modes) for task in tasks)]),
        tried=np.ones(len(modes), dtype=np.int64),
        ticks=whole([mode.ticks for mode in modes]),
        run_s=np.array([mode.run_s for mode in modes]),
        above_w=np.array(above),
        servers=whole([mode.counts for mode in modes]),
        state=whole([mode.states for mode in modes]),
        start=np.zeros(len(tasks), dtype=np.int64),
        end=np.zeros(len(tasks), dtype=np.int64),
        row=np.full(len(tasks), -1, dtype=np.int64),
        head=np.full(steps, -1, dtype=np.int64),
        after=np.full(2 * len(tasks), -1, dtype=np.int64),
        whole=per_step(len(kinds) * states),
        peaks=per_step(len(kinds) * states),
        early=per_step(len(kinds) * states),
        needed=per_step(len(kinds)),
        sooner=per_step(len(kinds)),
        awake=per_step(len(kinds)),
        drawn_w=np.zeros((steps, len(kinds))),
        total_w=np.zeros(steps),
        least_w=np.zeros(steps),
    )
