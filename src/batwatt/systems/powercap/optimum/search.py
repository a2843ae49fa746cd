"""Large neighbourhood search: take some jobs out, put them back otherwise, keep what is better."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

import numpy as np

from batwatt.systems.powercap.optimum.insertion import Inserter
from batwatt.systems.powercap.optimum.prices import PowerPrices
from batwatt.systems.powercap.optimum.timeline import Run

FACTORS = (0.02, 1.0, 4.0, 10.0)
"""The prices are multiplied by one of these, drawn anew each time: real ones count joules, a run holds whole steps."""
HEAT = 0.005
"""By what share a schedule may be worse than the best one at first and still be gone on from."""
MOST = 9
"""How many jobs are taken out at most besides the one that waits."""
CLOSE = 0.8
"""How often these are the nearest in time, else any that run near."""
FIRST = 0.75
"""How often the one that waits is put back first, else the order is one of four others."""


class Search:
    """A complete schedule that gets better. `total` is its sum of wait / Et, `best` the best one's runs."""

    def __init__(self, inserter: Inserter, prices: PowerPrices, rng: np.random.Generator) -> None:
        self.inserter = inserter
        self.problem = inserter.problem
        self.rng = rng
        self.set_prices(prices)
        self.costs: dict[int, float] = {}
        self.total = np.inf
        self.best_total = np.inf
        self.best: dict[int, Run] = {}
        self.accept_above = 0.0

    @property
    def value(self) -> float:
        """Mean slowdown of the best schedule."""
        return 1.0 + self.best_total / len(self.problem.tasks)

    def set_prices(self, prices: PowerPrices) -> None:
        """The prices from now on."""
        self.prices = [prices.scaled(factor) for factor in FACTORS]

    def construct(self, order: Iterable[int]) -> bool:
        """Put all jobs in anew in an order; False if one fits nowhere."""
        for job in list(self.inserter.timeline.runs):
            self.inserter.take(job)
        fits = all(self.inserter.insert(job, self.prices[-1]) for job in order)
        sound = fits and self.inserter.timeline.sound
        if sound:
            self._note()
        return sound

    def load(self, runs: dict[int, Run]) -> None:
        """Go on from a schedule."""
        for job in list(self.inserter.timeline.runs):
            self.inserter.take(job)
        for job, run in runs.items():
            self.inserter.restore(job, run)
        self._note()

    def _note(self) -> None:
        runs = self.inserter.timeline.runs
        self.costs = {job: self._cost(job) for job in runs}
        self.total = sum(self.costs.values())
        self._keep()

    def _keep(self) -> None:
        if self.total < self.best_total - 1e-9:
            self.best_total = self.total
            self.best = dict(self.inserter.timeline.runs)

    def _cost(self, job: int) -> float:
        start, _, mode = self.inserter.timeline.runs[job]
        return self.problem.tasks[job].slowdown(mode, start) - 1.0

    def improve(
        self,
        rounds: int,
        go_on: Callable[[int], bool] = lambda _: True,
        done: Callable[[], float] | None = None,
    ) -> None:
        """Destroy and repair up to `rounds` times.

        Also taken is a schedule that is worse than the best by a share `HEAT`, which falls to 0 with the share of the
        rounds, or of whatever `done` tells, that is over.
        """
        for turn in range(rounds):
            if not go_on(turn) or self.best_total <= 1e-12:
                return
            over = done() if done is not None else turn / rounds
            self.accept_above = self.best_total * (1.0 + HEAT * max(0.0, 1.0 - over))
            self._again(self._choose())

    def _choose(self) -> list[int]:
        """A job that waits (the more the likelier), and jobs that run when it could."""
        rng, runs = self.rng, self.inserter.timeline.runs
        jobs = list(self.costs)
        weights = np.array([self.costs[job] for job in jobs])
        sums = np.cumsum(weights)
        target = jobs[min(int(np.searchsorted(sums, rng.random() * sums[-1], side="right")), len(jobs) - 1)]
        start, end, _ = runs[target]
        submit = self.problem.tasks[target].submit
        # somewhere in its wait, early rather than late
        at = submit + int((start - submit) * rng.random() ** 2)
        margin = int((end - start) * rng.random() * 0.5)
        low, high = at - margin, at + (end - start) + margin
        near = [job for job, (a, b, _) in runs.items() if job != target and a < high and b > low]
        size = min(len(near), int(rng.integers(1, MOST + 1)))
        if rng.random() < CLOSE:
            near.sort(key=lambda job: (max(runs[job][0] - at, at - runs[job][1], 0), abs(runs[job][0] - at), job))
            return [target, *near[:size]]
        picked = rng.choice(len(near), size=size, replace=False).tolist() if size else []
        return [target, *(near[i] for i in picked)]

    def _order(self, jobs: list[int], old: dict[int, Run]) -> list[int]:
        """In which order jobs are put back; the first of `jobs` is the one that waits."""
        rng, tasks = self.rng, self.problem.tasks
        noise = dict(zip(jobs, rng.random(len(jobs)).tolist(), strict=True))
        if rng.random() < FIRST:
            return [jobs[0], *sorted(jobs[1:], key=noise.__getitem__)]
        keys: tuple[Callable[[int], float], ...] = (
            noise.__getitem__,
            lambda job: tasks[job].modes[0].run_s * (0.5 + noise[job]),
            lambda job: tasks[job].modes[0].run_s * tasks[job].hosts * (0.5 + noise[job]),
            lambda job: old[job][0],
        )
        key = keys[int(rng.integers(len(keys)))]
        return sorted(jobs, key=lambda job: (key(job), job))

    def _again(self, jobs: Sequence[int]) -> None:
        inserter = self.inserter
        old = {job: inserter.take(job) for job in jobs}
        base = self.total - sum(self.costs[job] for job in jobs)
        prices = self.prices[int(self.rng.integers(len(self.prices)))]
        total = base
        done: list[int] = []
        for job in self._order(list(jobs), old):
            if not inserter.insert(job, prices):
                break
            done.append(job)
            total += self._cost(job)
            if total > self.accept_above:
                break
        if len(done) == len(jobs) and total <= self.accept_above and inserter.timeline.sound:
            for job in done:
                self.costs[job] = self._cost(job)
            self.total = total
            self._keep()
            return
        for job in done:
            inserter.take(job)
        for job, run in old.items():
            inserter.restore(job, run)
