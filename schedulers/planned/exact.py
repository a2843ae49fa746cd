"""The whole model for CP-SAT: optional intervals for the jobs' modes, counts of servers per step.

The rules: docs/explanation/optimum.md.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor, wait
from typing import Any

from batwatt.errors import extra
from batwatt.model.platform import NOISE_W
from batwatt.schedulers.planned.problem import Problem
from batwatt.schedulers.planned.relaxation import Relaxation
from batwatt.schedulers.planned.scheduler import KindCounts, Schedule

with extra("optimum"):
    from ortools.sat.python import cp_model

MICROWATTS = 1e6
SIGNAL_S = 0.2
"""Longest time until a signal is heeded."""
LEAST_WEIGHT = 10**5
"""Weight of a tick's wait of the longest run; weights are rounded down, which costs less than 1 / LEAST_WEIGHT."""


def solve(
    problem: Problem,
    schedule: Schedule,
    relaxation: Relaxation,
    report: Callable[[float, float], None] = lambda value, bound: None,
    *,
    time_s: float | None = None,
    deterministic: float | None = None,
    workers: int = 1,
    seed: int = 0,
) -> tuple[Schedule | None, float, bool]:
    """Improve a feasible schedule with a good relaxation; call `report(value, bound)` for each better schedule.

    CP-SAT stops after `time_s` s or its `deterministic` time if not None. Return the best schedule, None if none is
    better than the feasible one, a lower bound of the mean slowdown, and whether the schedule is proven the best.
    """
    solver = cp_model.CpSolver()
    settings = solver.parameters
    settings.num_workers = workers
    settings.random_seed = seed
    if time_s is not None:
        settings.max_time_in_seconds = max(0.01, time_s)
    if deterministic is not None:
        settings.max_deterministic_time = deterministic
    # signals are ours: CP-SAT would take SIGINT for itself and hold back all others until it ends
    settings.catch_sigint_signal = False
    return _Model(problem, schedule, relaxation).solve(solver, report)


class _Model:
    def __init__(self, problem: Problem, schedule: Schedule, relaxation: Relaxation) -> None:
        self.problem = problem
        self.schedule = schedule
        self.cp = cp_model.CpModel()
        tasks = problem.tasks
        longest = max(task.modes[-1].ticks for task in tasks)
        self.scale = float(LEAST_WEIGHT * longest)
        self.weights = [[max(1, math.floor(self.scale / mode.run_s / 1000.0)) for mode in task.modes] for task in tasks]
        self.open = relaxation.open_steps(problem.mean_slowdown(schedule.starts))
        self.steps = 1 + max(
            problem.step_of(problem.begins[t + 1] + task.modes[m].ticks)
            for task, row in zip(tasks, self.open, strict=True)
            for m, steps in enumerate(row)
            for t in steps
        )
        self.steps = min(problem.steps, max(self.steps, len(schedule.kinds[0].inside)))
        self._jobs()
        self._servers()
        self._room()
        self._edges()
        self._hint()

    def _jobs(self) -> None:
        """Add starts, modes and waits; a literal for each (mode, step of the start) possible in a better schedule."""
        cp, problem = self.cp, self.problem
        begins, horizon = problem.begins, problem.begins[self.steps]
        self.start, self.chosen = [], []
        self.begun: list[dict[tuple[int, int], cp_model.IntVar]] = []
        self.intervals: dict[tuple[int, int], list[tuple[cp_model.IntervalVar, int]]] = {}
        self.crossing: dict[tuple[int, int, int], list[tuple[object, int]]] = {}
        terms, weights = [], []
        for j, task in enumerate(problem.tasks):
            start = cp.new_int_var(task.submit, horizon, f"s{j}")
            literals = [cp.new_bool_var(f"x{j},{m}") for m in range(len(task.modes))]
            begun: dict[tuple[int, int], cp_model.IntVar] = {}
            waits = []
            for m, (mode, literal) in enumerate(zip(task.modes, literals, strict=True)):
                steps = [t for t in self.open[j][m] if max(begins[t], task.submit) + mode.ticks <= horizon]
                rows = [cp.new_bool_var(f"y{j},{m},{t}") for t in steps]
                cp.add(sum(rows) == literal)
                if not steps:
                    continue
                begun.update({(m, t): row for t, row in zip(steps, rows, strict=True)})
                least = [max(0, begins[t] - task.submit) for t in steps]
                most = [begins[t + 1] - 1 - task.submit for t in steps]
                wait = cp.new_int_var(0, max(most), f"w{j},{m}")
                cp.add(wait >= cp_model.LinearExpr.weighted_sum(rows, least))
                cp.add(wait <= cp_model.LinearExpr.weighted_sum(rows, most))
                cp.add_hint(wait, self.schedule.starts[j][0] - task.submit if self.schedule.starts[j][1] == m else 0)
                waits.append(wait)
                terms.append(wait)
                weights.append(self.weights[j][m])
                interval = cp.new_optional_interval_var(start, mode.ticks, start + mode.ticks, literal, f"i{j},{m}")
                for k, state, count in mode.parts:
                    self.intervals.setdefault((k, state), []).append((interval, count))
                    for t, row in zip(steps, rows, strict=True):
                        first = max(begins[t], task.submit)
                        for edge in range(t + 1, problem.step_of(first + mode.ticks - 1) + 1):
                            self.crossing.setdefault((k, state, edge), []).append((row, count))
            cp.add_exactly_one(begun.values())
            cp.add(start == task.submit + sum(waits))
            self.start.append(start)
            self.chosen.append(literals)
            self.begun.append(begun)
        self.objective = cp_model.LinearExpr.weighted_sum(terms, weights)
        cp.minimize(self.objective)

    def _servers(self) -> None:
        cp, problem, begins = self.cp, self.problem, self.problem.begins
        self.inside: list[list[list[cp_model.IntVar]]] = []
        self.waking: list[list[list[cp_model.IntVar]]] = []
        self.ended: list[list[list[int]]] = []
        self.falls: list[list[cp_model.IntVar]] = []
        self.asleep: list[list[cp_model.IntVar]] = []
        power: list[list[tuple[object, float]]] = [[] for _ in range(self.steps)]
        for k, kind in enumerate(problem.kinds):
            states = range(len(kind.powers_w))
            inside = [[cp.new_int_var(0, kind.count, f"n{k},{t},{d}") for d in states] for t in range(self.steps)]
            most = kind.count if kind.sleep is not None else 0
            waking = [[cp.new_int_var(0, most, f"u{k},{t},{d}") for d in states] for t in range(self.steps)]
            falls = [cp.new_int_var(0, most, f"f{k},{t}") for t in range(self.steps)]
            asleep = [cp.new_int_var(0, most, f"a{k},{t}") for t in range(self.steps)]
            ended: list[list[int]] = []
            for t in range(self.steps):
                before = sum(inside[t - 1]) if t else kind.count
                cp.add(sum(inside[t]) == before - falls[t] + sum(waking[t]))
                since = begins[t - 1] if t else -1
                ended.append(
                    [e for e in range(t) if since < max(begins[e] + kind.off_ticks, begins[e + 1]) <= begins[t]]
                )
                cp.add(asleep[t] == (asleep[t - 1] if t else 0) + sum(falls[e] for e in ended[t]) - sum(waking[t]))
                power[t] += [(inside[t][d], kind.powers_w[d]) for d in states]
                power[t].append((asleep[t], kind.sleep_w))
                falling = [e for e in range(t + 1) if begins[e] + kind.off_ticks > begins[t] or e == t]
                rising = [e for e in range(t + 1) if begins[e] + kind.on_ticks > begins[t] or e == t]
                power[t] += [(falls[e], kind.off_w) for e in falling]
                power[t] += [(waking[e][d], kind.wake_w(d) - kind.powers_w[d]) for e in rising for d in states]
                for d in states:
                    cp.add(sum(waking[e][d] for e in rising) <= inside[t][d])
            self.inside.append(inside)
            self.waking.append(waking)
            self.falls.append(falls)
            self.ended.append(ended)
            self.asleep.append(asleep)
        servers = max(kind.count for kind in problem.kinds)
        for t, terms in enumerate(power):
            drawing = [(var, math.ceil(watts * MICROWATTS - 1e-3)) for var, watts in terms if watts]
            cap = (problem.caps_w[t] + NOISE_W) * MICROWATTS
            # a cap that nothing can exceed may also be too large for CP-SAT's integers of 64 bits
            if cap < servers * sum(max(0, draw) for _, draw in drawing):
                cp.add(cp_model.LinearExpr.weighted_sum(*zip(*drawing, strict=True)) <= math.floor(cap))

    def _room(self) -> None:
        cp, begins = self.cp, self.problem.begins
        for (k, state), runs in self.intervals.items():
            kind = self.problem.kinds[k]
            intervals = [interval for interval, _ in runs]
            demands: list[cp_model.LinearExprT] = [count for _, count in runs]
            for t in range(self.steps):
                length = begins[t + 1] - begins[t]
                intervals.append(cp.new_fixed_size_interval_var(begins[t], length, f"step{k},{state},{t}"))
                demands.append(kind.count - self.inside[k][t][state])
                if kind.sleep is not None and kind.on_ticks:
                    intervals.append(cp.new_fixed_size_interval_var(begins[t], kind.on_ticks, f"on{k},{state},{t}"))
                    demands.append(self.waking[k][t][state])
            cp.add_cumulative(intervals, demands, kind.count)

    def _edges(self) -> None:
        """Add the effects of the cumulative constraints on the steps' edges as linear constraints."""
        for (k, state, t), runs in self.crossing.items():
            if t >= self.steps:
                continue
            crossing = cp_model.LinearExpr.weighted_sum([row for row, _ in runs], [count for _, count in runs])
            on = self.inside[k][t][state]
            self.cp.add(crossing <= (on - self.waking[k][t][state] if self.problem.kinds[k].on_ticks else on))
            self.cp.add(crossing <= self.inside[k][t - 1][state])

    def _hint(self) -> None:
        cp, problem, steps = self.cp, self.problem, len(self.schedule.kinds[0].inside)
        for j, (start, mode) in self.schedule.starts.items():
            cp.add_hint(self.start[j], start)
            for m, literal in enumerate(self.chosen[j]):
                cp.add_hint(literal, m == mode)
            for (m, t), row in self.begun[j].items():
                cp.add_hint(row, m == mode and t == problem.step_of(start))
        for k, (kind, counts) in enumerate(zip(problem.kinds, self.schedule.kinds, strict=True)):
            before, settled = kind.count, 0
            fell = [0] * self.steps
            for t in range(self.steps):
                # afterwards everything stays as it was
                inside = counts.inside[min(t, steps - 1)]
                waking = counts.waking[t] if t < steps else (0,) * len(inside)
                for d, (n, u) in enumerate(zip(inside, waking, strict=True)):
                    cp.add_hint(self.inside[k][t][d], n)
                    cp.add_hint(self.waking[k][t][d], u)
                fell[t] = before + sum(waking) - sum(inside)
                settled += sum(fell[e] for e in self.ended[k][t]) - sum(waking)
                cp.add_hint(self.falls[k][t], fell[t])
                cp.add_hint(self.asleep[k][t], settled)
                before = sum(inside)

    def solve(
        self, solver: cp_model.CpSolver, report: Callable[[float, float], None]
    ) -> tuple[Schedule | None, float, bool]:
        """Run CP-SAT."""
        status = _interruptible(solver, self.cp, _Watch(self, report))
        if status == cp_model.MODEL_INVALID:
            raise RuntimeError(f"CP-SAT refuses the model: {self.cp.validate()}")
        bound = self.mean(solver.best_objective_bound)
        if status not in (cp_model.OPTIMAL, cp_model.FEASIBLE):
            return None, 1.0 if status == cp_model.INFEASIBLE else bound, False
        return self._read(solver), bound, status == cp_model.OPTIMAL

    def mean(self, objective: float) -> float:
        """Return the mean slowdown that an objective of CP-SAT stands for, rounded down."""
        return 1.0 + max(0.0, objective) / self.scale / len(self.problem.tasks)

    def _read(self, solver: cp_model.CpSolver) -> Schedule:
        starts = {
            j: (solver.value(start), next(m for m, x in enumerate(self.chosen[j]) if solver.value(x)))
            for j, start in enumerate(self.start)
        }
        last = max(start + self.problem.tasks[j].modes[m].ticks for j, (start, m) in starts.items())
        steps = self.problem.step_of(last - 1) + 1

        def counts(rows: list[list[cp_model.IntVar]]) -> tuple[tuple[int, ...], ...]:
            return tuple(tuple(solver.value(var) for var in row) for row in rows[:steps])

        kinds = tuple(
            KindCounts(counts(inside), counts(waking)) for inside, waking in zip(self.inside, self.waking, strict=True)
        )
        return Schedule(starts, kinds)


def _interruptible(solver: cp_model.CpSolver, model: cp_model.CpModel, watch: _Watch) -> Any:
    """Solve in a thread, so that a signal reaches this one: an interrupt stops the search, its results stay."""
    with ThreadPoolExecutor(1) as pool:
        work = pool.submit(solver.solve, model, watch)
        stopped = False
        while not work.done():
            try:
                wait([work], timeout=SIGNAL_S)
            except KeyboardInterrupt:
                stopped = True
            if stopped:
                solver.stop_search()  # again and again: it does nothing before the search has begun
        return work.result()


class _Watch(cp_model.CpSolverSolutionCallback):
    """A callback that reports solutions as they are found."""

    def __init__(self, model: _Model, report: Callable[[float, float], None]) -> None:
        super().__init__()
        self._model = model
        self._report = report

    def on_solution_callback(self) -> None:
        """Report a better schedule."""
        self._report(self._model.mean(self.objective_value), self._model.mean(self.best_objective_bound))
