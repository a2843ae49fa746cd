"""The use of the machine over all steps while jobs are put in and taken out: servers needed, awake, and the power.

Per step and kind: `peaks`, the servers needed in each state (the most that run at once in it); `early`, the same until
a server that wakes in this step is awake; `awake`, the servers that are on, which is the most needed in this step or
early in the next. Whoever is on but not needed idles, whoever is not falls asleep. A kind that cannot sleep, or whose
transitions do not end within a step, stays on.
"""

from __future__ import annotations

from operator import le
from typing import Any

import numpy as np

from batwatt.model.platform import NOISE_W
from batwatt.systems.powercap.optimum.problem import Kind, Problem, ServerMode

Run = tuple[int, int, int]
"""Start, end (ticks) and mode of a job."""


class KindUse:
    """One kind of servers over all steps."""

    def __init__(self, kind: Kind, steps: int, sleeps: bool) -> None:
        states = len(kind.powers_w)
        self.kind = kind
        self.sleeps = sleeps
        self.whole = [[0] * states for _ in range(steps)]
        self.peaks = [(0,) * states] * steps
        self.early = [(0,) * states] * steps
        self.awake = [0 if sleeps else kind.count] * steps
        self.power_w = [0.0] * steps
        self._known: dict[tuple[tuple[int, ...], tuple[int, ...], int, int], float] = {}
        self.refresh(0, steps - 1)

    def refresh(self, low: int, high: int) -> None:
        """Work out who is awake in the steps [low, high], and the powers from `low` to the step after."""
        count, peaks, early, awake = self.kind.count, self.peaks, self.early, self.awake
        last = len(peaks) - 1
        if self.sleeps:
            for step in range(low, high + 1):
                needed = sum(peaks[step])
                if step < last:
                    sooner = sum(early[step + 1])
                    if sooner > needed:
                        needed = sooner
                awake[step] = needed
        known, power_w = self._known, self.power_w
        before = awake[low - 1] if low else count
        for step in range(low, min(high + 1, last) + 1):
            key = (peaks[step], early[step], before, awake[step])
            power = known.get(key)
            if power is None:
                power = known[key] = self._power(*key)
            power_w[step] = power
            before = key[3]

    def wakers(
        self, peaks: tuple[int, ...], early: tuple[int, ...], before: int, awake: int
    ) -> tuple[list[int], list[int]]:
        """Servers in each state, and how many of them wake in this step: the cheapest choice."""
        kind = self.kind
        inside = list(peaks)
        inside[kind.idle] += awake - sum(peaks)
        waking = [0] * len(peaks)
        left = max(0, awake - before)
        for state in sorted(range(len(peaks)), key=lambda d: (kind.wake_w(d) - kind.powers_w[d], d)):
            if left == 0:
                break
            waking[state] = min(left, inside[state] - early[state])
            left -= waking[state]
        return inside, waking

    def _power(self, peaks: tuple[int, ...], early: tuple[int, ...], before: int, awake: int) -> float:
        """Eq. 2, summed over the kind; `before` servers were on in the step before."""
        kind = self.kind
        inside, waking = self.wakers(peaks, early, before, awake)
        power = sum(n * w for n, w in zip(inside, kind.powers_w, strict=True))
        if awake > before:
            power += sum(n * (kind.wake_w(d) - kind.powers_w[d]) for d, n in enumerate(waking) if n)
        falling = max(0, before - awake)
        return power + falling * kind.off_w + (kind.count - awake - falling) * kind.sleep_w


class PowerTimeline:
    """Jobs in place, and what the machine draws for them. `awake` and `power_w` are arrays for many looks at once."""

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        self.runs: dict[int, Run] = {}
        steps = problem.steps
        self.last = steps - 1
        able = problem.short_transitions
        self.uses = [KindUse(kind, steps, able and kind.sleep is not None) for kind in problem.kinds]
        self.parts: list[dict[int, tuple[int, int, ServerMode]]] = [{} for _ in range(steps)]
        self.caps_w = [cap + NOISE_W for cap in problem.caps_w]
        self._caps_w = np.asarray(self.caps_w)
        self.awake = np.array([use.awake for use in self.uses], dtype=np.int64)
        # by jobs that run through a step: servers of each kind, and their power above rest
        self.whole = np.zeros((len(problem.kinds), steps), dtype=np.int64)
        self.whole_w = np.zeros(steps)
        self.power_w = np.sum([use.power_w for use in self.uses], axis=0)
        self.begins = problem.begins
        lengths = np.diff(np.asarray(problem.begins))
        self._uniform = int(lengths[0]) if np.all(lengths == lengths[0]) else 0
        self._begins = np.asarray(problem.begins, dtype=np.int64)

    def step_of(self, ticks: Any) -> Any:
        """The steps that some times (an array) lie in."""
        return ticks // self._uniform if self._uniform else np.searchsorted(self._begins, ticks, side="right") - 1

    def put(self, job: int, start: int, mode: int) -> bool:
        """Put a job in; False, and nothing is changed, if the model's rules do not allow it."""
        chosen = self.problem.tasks[job].modes[mode]
        end = start + chosen.ticks
        if end > self.begins[-1]:
            return False
        if self._change(job, start, end, chosen, 1):
            self.runs[job] = (start, end, mode)
            return True
        self._change(job, start, end, chosen, -1)
        return False

    def restore(self, job: int, run: Run) -> None:
        """Put a job back where it was, unasked: some of the jobs that made that possible may not be back yet."""
        start, end, mode = run
        self._change(job, start, end, self.problem.tasks[job].modes[mode], 1)
        self.runs[job] = run

    @property
    def sound(self) -> bool:
        """Whether Eq. 1 holds in every step: without a job others may have to wake servers that it kept awake."""
        return bool((self.power_w <= self._caps_w).all())

    def take(self, job: int) -> Run:
        """Take a job out."""
        start, end, mode = self.runs.pop(job)
        self._change(job, start, end, self.problem.tasks[job].modes[mode], -1)
        return start, end, mode

    def plausible(self, start: int, mode: ServerMode) -> bool:
        """A quick look at the edges of a run: False if it will not fit, or hardly."""
        begins = self.begins
        end = start + mode.ticks
        first, final = int(self.step_of(start)), int(self.step_of(end - 1))
        edges = {step for step in (first, final) if start > begins[step] or end < begins[step + 1]}
        more_w = dict.fromkeys((first - 1, first, final), 0.0)
        for k, state, count in mode.parts:
            use = self.uses[k]
            kind = use.kind
            for step in edges:
                peaks = use.peaks[step]
                added = count - (peaks[state] - use.whole[step][state])
                if added <= 0:
                    continue
                spare = use.awake[step] - sum(peaks)
                woken = max(0, added - spare)
                if use.awake[step] + woken > kind.count:
                    return False
                idle_w = kind.powers_w[kind.idle]
                more_w[step] += added * (kind.powers_w[state] - idle_w) + woken * (idle_w - kind.off_w)
            if first and use.sleeps and start < begins[first] + kind.on_ticks:
                early = use.early[first]
                sooner = sum(early) + max(0, use.whole[first][state] + count - early[state])
                added = sooner - use.awake[first - 1]
                if added > 0:
                    if sooner > kind.count:
                        return False
                    before = use.awake[first - 2] if first > 1 else kind.count
                    falling = max(0, before - use.awake[first - 1])
                    stay = min(added, falling)
                    more_w[first - 1] += stay * (kind.powers_w[kind.idle] - kind.off_w)
                    more_w[first - 1] += (added - stay) * (kind.wake_w(kind.idle) - kind.sleep_w)
        return all(
            more <= 0.0 or sum([use.power_w[step] for use in self.uses]) + more <= self.caps_w[step]
            for step, more in more_w.items()
        )

    def _change(self, job: int, start: int, end: int, mode: ServerMode, sign: int) -> bool:
        begins, parts = self.begins, self.parts
        first, final = int(self.step_of(start)), int(self.step_of(end - 1))
        for step in {first, final}:
            if start > begins[step] or end < begins[step + 1]:
                if sign > 0:
                    parts[step][job] = (start, end, mode)
                else:
                    del parts[step][job]
        low, high = max(0, first - 1), min(self.last, final + 1)
        through = slice(first + (start > begins[first]), final + (end >= begins[final + 1]))
        for k, state, count in mode.parts:
            use = self.uses[k]
            delta = sign * count
            if through.start < through.stop:
                self.whole[k, through] += delta
                self.whole_w[through] += delta * (use.kind.powers_w[state] - use.kind.rest_w)
            for step in range(first, final + 1):
                if start <= begins[step] and end >= begins[step + 1]:
                    use.whole[step][state] += delta
                    use.peaks[step] = _added(use.peaks[step], state, delta)
                    use.early[step] = _added(use.early[step], state, delta)
                else:
                    self._sweep(use, k, state, step)
            use.refresh(low, final)
            self.awake[k, low : final + 1] = use.awake[low : final + 1]
        powers = [sum(each) for each in zip(*[use.power_w[low : high + 1] for use in self.uses], strict=True)]
        self.power_w[low : high + 1] = powers
        fine = all(map(le, powers, self.caps_w[low : high + 1]))
        return fine and all(
            max(use.awake[low : final + 1]) <= use.kind.count
            and (use.sleeps or all(sum(use.peaks[step]) <= use.kind.count for step in range(first, final + 1)))
            for use in (self.uses[k] for k, _, _ in mode.parts)
        )

    def _sweep(self, use: KindUse, k: int, state: int, step: int) -> None:
        """The most servers in a state at once in a step: jobs that run through, and those that begin or end in it."""
        begin = self.begins[step]
        awake_from = begin + use.kind.on_ticks
        some = [
            (max(start, begin), end, mode.counts[k])
            for start, end, mode in self.parts[step].values()
            if mode.states[k] == state
        ]
        peak = early = 0
        for at, _, count in some:
            at_once = sum([n for start, end, n in some if start <= at < end]) if len(some) > 1 else count
            if at_once > peak:
                peak = at_once
            if at_once > early and at < awake_from:
                early = at_once
        whole = use.whole[step][state]
        use.peaks[step] = _with(use.peaks[step], state, whole + peak)
        use.early[step] = _with(use.early[step], state, whole + early)


def _added(values: tuple[int, ...], index: int, delta: int) -> tuple[int, ...]:
    return (*values[:index], values[index] + delta, *values[index + 1 :])


def _with(values: tuple[int, ...], index: int, value: int) -> tuple[int, ...]:
    return (*values[:index], value, *values[index + 1 :])
