"""From a problem to the best schedule that a budget allows: bound, search, and a proof where the size permits."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from batwatt.errors import InputError, argument
from batwatt.schedulers.planned import exact
from batwatt.schedulers.planned.problem import Problem
from batwatt.schedulers.planned.relaxation import Relaxation
from batwatt.schedulers.planned.scheduler import Schedule, check, of_timeline
from batwatt.schedulers.planned.search import PowerTimeline, Search

EXACT_JOBS = 24
"""Most jobs for which CP-SAT is asked for a proof."""
PARTS_SMALL, PARTS = 10, 6
"""Slots that a step is divided into for the bound, up to `EXACT_JOBS` jobs and beyond."""
LONG_RUNS = 2
"""Lengths of the longest run, after the last submission, in which steps have prices."""
SHARES_SMALL, SHARES = (0.08, 0.1, 0.15), (0.1, 0.85, 1.0)
"""Shares of a time limit until which the bound is raised, schedules are searched, and the bound is raised again."""
PORTFOLIO = 8
"""Least number of cores of which CP-SAT gets all; with fewer one worker proves sooner than its portfolio does."""
AGREE = 1e-6
"""A value and a bound closer than this, relatively, are the same."""
FIRST_SEARCH, FIRST_ROUNDS, BOUND_ROUNDS, SEARCH_ROUNDS, EXACT_TIME = 2000, 300, 30, 2500, 1.0
"""Rounds of search and bound to begin with, then what one unit of effort buys: about a second of one core in all."""


@dataclass(frozen=True)
class SearchBudget:
    """Wall clock in s, or an effort (the same result everywhere); seed, and the cores of CP-SAT within a time limit."""

    time_limit_s: float | None = None
    effort: int | None = None
    seed: int = 0
    cores: int = 1

    def __post_init__(self) -> None:
        if (self.time_limit_s is None) == (self.effort is None):
            raise ValueError("a budget is either a time limit or an effort")


@dataclass(frozen=True)
class Stand:
    """Progress of the work: value and bound of the mean slowdown (value None before a schedule is known)."""

    phase: str
    value: float | None
    bound: float
    elapsed_s: float


@dataclass(frozen=True)
class Solution:
    """A checked schedule, its mean slowdown, a lower bound of it, and whether it is proven to be the best."""

    schedule: Schedule
    value: float
    bound: float
    proven: bool

    @property
    def gap(self) -> float:
        """(value - bound) / value, at least 0."""
        return max(0.0, (self.value - self.bound) / self.value)


Report = Callable[[Stand], None]


def optimise(
    problem: Problem,
    budget: SearchBudget,
    orders: Iterable[Sequence[int]] = (),
    report: Report = lambda _: None,
) -> Solution:
    """Return the best schedule within the budget. `orders` are orders of jobs to begin with.

    InputError if a job can never run. An interrupt ends the work early, once there is a schedule.
    """
    return _Search(problem, budget, report).run(orders)


class _Search:
    def __init__(self, problem: Problem, budget: SearchBudget, report: Report) -> None:
        self.problem = problem
        self.budget = budget
        self.report = report
        self.began = time.perf_counter()
        self.phase = "bound"
        self.value: float | None = None
        self.bound = 1.0

    def elapsed_s(self) -> float:
        return time.perf_counter() - self.began

    def _within(self, share: float) -> bool:
        """Report the progress; return whether this share of the wall clock is not used up."""
        self.report(Stand(self.phase, self.value, self.bound, self.elapsed_s()))
        limit_s = self.budget.time_limit_s
        return limit_s is None or self.elapsed_s() < share * limit_s

    def run(self, orders: Iterable[Sequence[int]]) -> Solution:
        problem, budget = self.problem, self.budget
        small = len(problem.tasks) <= EXACT_JOBS
        search = self._begin(orders)
        relaxation = Relaxation(problem, PARTS_SMALL if small else PARTS, self._priced(search.best))
        effort = budget.effort if budget.effort is not None else 10**9
        interrupted = False
        first, searched, last = SHARES_SMALL if small else SHARES
        try:
            # without prices, but steps of the bound are measured by the schedule
            self._search(search, FIRST_SEARCH, 0.5 * first)
            self._raise_bound(relaxation, search, FIRST_ROUNDS, first)
            search.set_prices(relaxation.rates)
            self._search(search, SEARCH_ROUNDS * effort, searched)
            self._raise_bound(relaxation, search, BOUND_ROUNDS * effort, last)
        except KeyboardInterrupt:
            interrupted = True
        self.bound = relaxation.value
        self.value = search.value
        schedule = self._schedule(search.best)
        proven = False
        if small and not interrupted and not self._agree():
            schedule, proven = self._prove(schedule, relaxation)
        check(problem, schedule)
        value = problem.mean_slowdown(schedule.starts)
        return Solution(schedule, value, min(self.bound, value), proven or self._agree())

    def _raise_bound(self, relaxation: Relaxation, search: Search, rounds: int, share: float) -> None:
        self.phase = "bound"
        self.bound = relaxation.improve(search.value, rounds, lambda: self._within(share))

    def _priced(self, starts: Mapping[int, tuple[int, int]]) -> int:
        """Return the number of priced steps: until a schedule ends or, if sooner, long runs of the last jobs have."""
        tasks = self.problem.tasks
        ended = max(start + tasks[j].modes[m].ticks for j, (start, m) in starts.items())
        late = max(task.submit for task in tasks) + LONG_RUNS * max(task.modes[-1].ticks for task in tasks)
        return 1 + self.problem.step_of(min(ended, late))

    def _agree(self) -> bool:
        assert self.value is not None
        return self.value - self.bound <= AGREE * self.value

    def _alone(self, search: Search) -> None:
        """Raise InputError if a job cannot run even alone."""
        problem = self.problem
        for job, task in enumerate(problem.tasks):
            if not search.insert(job):
                if not problem.short_transitions:
                    text = f"leaves job {task.id} no power if servers stay awake, as when a transition outlasts a step"
                    raise InputError(argument("envelope"), text, "give longer steps")
                text = f"asks for {task.hosts} hosts, and the caps leave it the power at no time, even alone"
                raise InputError(f"job {task.id}", text, "it can never run within its walltime")
            search.timeline.remove(job)

    def _begin(self, orders: Iterable[Sequence[int]]) -> Search:
        """Return the search with a first schedule: the best of some orders."""
        problem, tasks = self.problem, self.problem.tasks
        search = Search(problem, self.budget.seed, all_modes=len(tasks) <= EXACT_JOBS)
        self._alone(search)
        jobs = range(len(tasks))
        shortest = sorted(jobs, key=lambda j: (tasks[j].modes[0].run_s, j))
        smallest = sorted(jobs, key=lambda j: (tasks[j].modes[0].run_s * tasks[j].hosts, j))
        widest = sorted(jobs, key=lambda j: (-tasks[j].hosts, tasks[j].submit, j))
        for order in (shortest, smallest, widest, *orders):
            search.construct(order)
        if not search.best:
            raise InputError(
                "workload", "no schedule was found that keeps the caps", "raise the last value of the envelope"
            )
        search.load(search.best)
        self.value = search.value
        return search

    def _search(self, search: Search, rounds: int, share: float) -> None:
        self.phase = "search"
        limit_s = self.budget.time_limit_s
        since_s = self.elapsed_s()

        def done() -> float:
            if limit_s is None:
                return 0.0
            return (self.elapsed_s() - since_s) / max(1e-9, share * limit_s - since_s)

        def go_on() -> bool:
            self.value = search.value
            return self._within(share) and not self._agree()

        search.improve(rounds, go_on, done if limit_s is not None else None)

    def _schedule(self, starts: Mapping[int, tuple[int, int]]) -> Schedule:
        timeline = PowerTimeline(self.problem)
        for job, (start, mode) in starts.items():
            timeline.restore(job, start, mode)
        return of_timeline(timeline)

    def _prove(self, schedule: Schedule, relaxation: Relaxation) -> tuple[Schedule, bool]:
        problem, budget = self.problem, self.budget
        self.phase = "proof"
        deterministic = None if budget.effort is None else EXACT_TIME * budget.effort
        time_s = None if budget.time_limit_s is None else budget.time_limit_s - self.elapsed_s()
        if time_s is not None and time_s <= 0.0:
            return schedule, False
        workers = budget.cores if time_s is not None and budget.cores >= PORTFOLIO else 1

        def report(value: float, bound: float) -> None:
            self.report(Stand("proof", value, max(self.bound, bound), self.elapsed_s()))

        better, bound, proven = exact.solve(
            problem, schedule, relaxation, report,
            time_s=time_s, deterministic=deterministic, workers=workers, seed=budget.seed,
        )  # fmt: skip
        self.bound = max(self.bound, bound)
        if better is not None:
            check(problem, better)
            if problem.mean_slowdown(better.starts) < problem.mean_slowdown(schedule.starts):
                schedule = better
        self.value = problem.mean_slowdown(schedule.starts)
        return schedule, proven
