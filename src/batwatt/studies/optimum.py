"""The offline optimum as a run: a plan, its replay on the embedded engine, and files under a prefix."""

from __future__ import annotations

import json
import logging
import os
from collections.abc import Iterator, Mapping
from dataclasses import replace
from importlib.metadata import version
from pathlib import Path
from typing import Any

from batwatt.batsim.adapters import simulate
from batwatt.batsim.batsim4 import EngineConfig
from batwatt.checks import checked_number, checked_whole
from batwatt.engine.core import Engine
from batwatt.errors import InputError, argument
from batwatt.files import write_json
from batwatt.inputs.batsim_files import read_workload
from batwatt.inputs.convert import workload_with_flops
from batwatt.inputs.platform_files import platform_of
from batwatt.inputs.spec import SeriesSpec
from batwatt.model.platform import Platform
from batwatt.model.timeline import Timeline
from batwatt.model.workload import Workload
from batwatt.results.figures import Values
from batwatt.results.run_files import digests_of, file_of
from batwatt.run.files import staging
from batwatt.run.prepared import PreparedRun
from batwatt.run.result import Result
from batwatt.run.run import perform
from batwatt.run.spec import RunSpec
from batwatt.schedulers.planned.optimum import Report, SearchBudget, Solution, optimise
from batwatt.schedulers.planned.problem import Problem, make_problem
from batwatt.schedulers.planned.scheduler import BrokenScheduleError, SchedulePlan, name_servers, write_plan
from batwatt.schedulers.powercap.scheduler import Powercap

LOGGER = logging.getLogger(__name__)
DEFAULT_TIME_LIMIT_S = 600.0
HEURISTICS: tuple[Mapping[str, Any], ...] = (
    {"backfilling": "easy", "order": "slowdown", "response": "hfld"},
    {"backfilling": "first-fit", "order": "asc", "response": "idfs"},
    {"backfilling": "easy", "order": "slowdown", "response": "none"},
    {"backfilling": "easy", "order": "slowdown", "response": "frugal"},
    {"backfilling": "easy", "order": "slowdown", "response": "frugal", "forecast_steps": 1},
)
"""Heuristics, the paper's and ours, with whose orders of starts the search begins."""
MAX_SEED = 2**31 - 1
"""Largest seed of CP-SAT."""
SAME = 1e-6
"""Largest relative difference between the mean slowdown of the replay and that of the plan."""


def run_optimum(spec: RunSpec, report: Report = lambda _: None) -> PlannedResult:
    """Plan, replay, and write the files under `spec.prefix`: all of them, or none if it fails.

    `spec.options`: `time_limit_s` (wall clock in s, default 600) or `effort` (deterministic), and `seed`. Raises
    InputError for bad input, also if a job can never run under the envelope.
    """
    check_optimum(spec)
    with staging(spec.prefix) as inner:
        plan = plan_and_replay(spec, report)
        plan.write(inner)
    return plan


class PlannedResult(Result):
    """The replay of a plan, with the plan and its bounds."""

    def __init__(
        self, replayed: Result, spec: RunSpec, problem: Problem, solution: Solution, plan: SchedulePlan
    ) -> None:
        super().__init__(replayed.run, replayed.data, elapsed_s=replayed.elapsed_s)
        self.problem = problem
        self._solution = solution
        self._spec = spec
        self._plan = plan

    @property
    def bounds(self) -> dict[str, Any]:
        """Bounds of the optimum: lower_bound, gap, proven_optimal."""
        solution = self._solution
        return {
            "lower_bound": round(solution.bound, 6),
            "gap": round(solution.gap, 6),
            "proven_optimal": solution.proven,
        }

    def write(self, prefix: Path) -> None:
        """Write the plan and all files of the replay under a prefix."""
        write_plan(file_of(prefix, "plan", ".json"), self._plan)
        super().write(prefix)
        _amend(prefix, self._spec, self.problem, self.metrics)


def plan_and_replay(spec: RunSpec, report: Report = lambda _: None) -> PlannedResult:
    """Plan, and replay the plan on the embedded engine; nothing is written. Raises as `run_optimum`."""
    budget, envelope = check_optimum(spec)
    platform, first = platform_of(spec.platform, spec.hosts), spec.workloads[0]
    workload = first if isinstance(first, Workload) else read_workload(first)
    if workload.recorded:
        # planned and replayed as it runs under an envelope: its lengths are work
        workload = replace(workload_with_flops(workload, platform.fastest_flops), recorded=False)
        spec = replace(spec, workloads=(workload,))
    problem = make_problem(platform, workload, envelope)
    orders = _orders(problem, platform, workload, envelope)
    solution = optimise(problem, budget, orders, report)
    plan = name_servers(problem, solution.schedule)
    replayed = perform(PreparedRun.of(replace(spec, scheduler="planned", options={"plan": plan}, engine="embedded")))
    if replayed.deadlock is not None:
        raise replayed.deadlock
    _check(problem, solution, replayed.values)
    if problem.raised:
        text = "%d steps have a cap below what the machine draws if all of it is put to sleep at 0 s"
        LOGGER.info(text, problem.raised)
    return PlannedResult(replayed, spec, problem, solution, plan)


def check_optimum(spec: RunSpec) -> tuple[SearchBudget, Timeline]:
    """Return the budget and the envelope of a run of the optimum. Raises InputError."""
    budget = _budget(spec.options)
    envelope = spec.envelope
    if envelope is None:
        raise InputError(argument("envelope"), "the optimum needs one", "give a CSV file with columns time_s,power_w")
    if spec.events is not None:
        raise InputError(argument("events"), "the optimum takes no events", "leave them out")
    rows = envelope.timeline() if isinstance(envelope, SeriesSpec) and envelope.path else envelope
    if isinstance(rows, SeriesSpec) or rows.repeats:
        raise InputError(
            argument("envelope"),
            "the optimum takes a file, or a series that does not repeat",
            "write one with `batwatt generate series`",
        )
    return budget, rows


def _budget(options: Mapping[str, Any]) -> SearchBudget:
    names = ("time_limit_s", "effort", "seed")
    for name in options:
        if name not in names:
            raise InputError(f"option {name!r}", "is not one of the optimum", f"use {', '.join(names)}")
    effort, limit_s = options.get("effort"), options.get("time_limit_s")
    if effort is not None and limit_s is not None:
        raise InputError("option 'effort'", "goes without 'time_limit_s'", "give one of the two")
    seed = checked_whole("optimum", "seed", options.get("seed", 0), 0, MAX_SEED, hint="leave it out for 0")
    if effort is not None:
        return SearchBudget(effort=checked_whole("optimum", "effort", effort, 1, hint="1 is about a second"), seed=seed)
    limit_s = DEFAULT_TIME_LIMIT_S if limit_s is None else limit_s
    limit_s = checked_number("optimum", "time_limit_s", limit_s, 0.0, above=True)
    return SearchBudget(time_limit_s=limit_s, seed=seed, cores=os.cpu_count() or 1)


def _orders(problem: Problem, platform: Platform, workload: Workload, envelope: Timeline) -> Iterator[list[int]]:
    """Yield the orders in which heuristics start the jobs; those that they kill come by their submission."""
    tasks = problem.tasks
    for parts in HEURISTICS:
        scheduler: Powercap[Any] = Powercap({**parts, "platform": platform, "envelope": envelope})
        # warnings of a heuristic are not of interest to the user of the optimum
        scheduler.logger = logging.Logger("heuristic", logging.CRITICAL)
        record = simulate(Engine(platform, [workload], EngineConfig(energy=True)), scheduler)
        began = {f"{workload.name}!{row.job_id}": row.starting_time for row in record.jobs if row.success}
        yield sorted(range(len(tasks)), key=lambda j: (began.get(tasks[j].id, tasks[j].submit_s), j))


def _check(problem: Problem, solution: Solution, metrics: Values) -> None:
    """Raise BrokenScheduleError unless the replay has the figures of the plan."""
    value = metrics["mean_slowdown"]
    killed = (metrics["killed_power"] or 0) + (metrics["killed_walltime"] or 0)
    fine = value is not None and abs(value - solution.value) <= SAME * solution.value
    whole = not killed and metrics["jobs_finished"] == len(problem.tasks)
    if not fine or not whole or (metrics["violations"] or 0) > problem.raised:
        violations = metrics["violations"]
        text = f"planned {solution.value}, replayed {value} with {killed} kills and {violations} violations"
        raise BrokenScheduleError(text)


def _amend(inner: Path, spec: RunSpec, problem: Problem, figures: Mapping[str, Any]) -> None:
    """Write the metrics with the bounds, and add the facts of the plan to the replay's metadata."""
    write_json(file_of(inner, "metrics", ".json"), figures)
    path = file_of(inner, "metadata", ".json")
    metadata = json.loads(path.read_text(encoding="utf-8"))
    metadata["scheduler"] = "optimum"
    metadata["options"] = dict(spec.options)
    metadata["seed"] = spec.options.get("seed", 0)
    metadata["versions"]["ortools"] = version("ortools")
    metadata["optimum"] = {
        "jobs": len(problem.tasks),
        "envelope_steps": problem.envelope_steps,
        "raised_caps": problem.raised,
    }
    metadata["files"] = digests_of(inner)
    write_json(path, metadata)
