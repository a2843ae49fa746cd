"""CP-SAT's proof against trying out everything, on instances small enough for that, and at the size it is meant for."""

from __future__ import annotations

import sys
from concurrent.futures import wait
from pathlib import Path

import numpy as np
import pytest
from builders import envelope, job, machine, workload_of
from tiny import ONE, STEPS, TWO, brute_force, instance

from batwatt.errors import InputError
from batwatt.schedulers.planned import exact, optimum
from batwatt.schedulers.planned.optimum import SearchBudget, optimise
from batwatt.schedulers.planned.problem import make_problem
from batwatt.schedulers.planned.relaxation import Relaxation
from batwatt.schedulers.planned.scheduler import check

sys.path.append(str(Path(__file__).resolve().parents[4] / "bench"))
from optimum import small

ALIKE, TWO_KINDS = (ONE, ONE), (ONE, TWO)
NIGHTLY = [(2, ALIKE), (3, ALIKE), (3, TWO_KINDS)]
INSTANCES = [(0, ALIKE), (1, ALIKE), (0, TWO_KINDS), (1, TWO_KINDS), (2, TWO_KINDS)]


@pytest.mark.parametrize(("seed", "kinds"), INSTANCES + [pytest.param(*row, marks=pytest.mark.deep) for row in NIGHTLY])
def test_the_optimum_is_that_of_brute_force(seed, kinds):
    platform, workload, envelope = instance(seed, *kinds)
    problem = make_problem(platform, workload, envelope)
    least = brute_force(platform, workload, problem.caps_w[:STEPS], *kinds)
    if least == float("inf"):
        with pytest.raises(InputError):
            optimise(problem, SearchBudget(effort=2))
        return
    solution = optimise(problem, SearchBudget(effort=2))
    assert solution.proven
    assert (solution.value - 1.0) * len(workload.jobs) == pytest.approx(least, abs=1e-6)
    assert solution.bound <= solution.value + 1e-12
    for parts in (1, 4):
        assert 1.0 <= Relaxation(problem, parts).improve(2.0 * solution.value, 60) <= solution.value + 1e-9


@pytest.mark.deep
@pytest.mark.parametrize(("run_s", "seed"), [(100.0, 0), (60.0, 0), (120.0, 1)])
def test_twenty_jobs_four_servers_and_48_steps_are_proven_at_light_load(run_s, seed):
    problem = small(seed, run_s, 850.0)
    assert len(problem.tasks) == 20 and sum(kind.count for kind in problem.kinds) == 4
    assert problem.envelope_steps == 48
    solution = optimise(problem, SearchBudget(effort=8))
    assert solution.proven and solution.value > 1.001
    assert solution.value == pytest.approx(solution.bound, rel=1e-5)
    check(problem, solution.schedule)


@pytest.fixture(scope="module")
def unproven():
    problem = small(2, 200.0, 750.0)
    with pytest.MonkeyPatch.context() as patch:
        # a proof that is cut off early
        patch.setattr(optimum, "EXACT_TIME", 0.1)
        return problem, optimise(problem, SearchBudget(effort=1))


def test_what_is_not_proven_is_not_called_so(unproven):
    problem, solution = unproven
    check(problem, solution.schedule)
    assert not solution.proven
    assert 1.0 < solution.bound < solution.value == problem.mean_slowdown(solution.schedule.starts)
    assert solution.gap == (solution.value - solution.bound) / solution.value > 0.01


def test_an_interrupt_stops_the_proof_and_keeps_what_is_known(monkeypatch, unproven):
    problem, solution = unproven
    calls = []

    def interrupted(*args, **how):
        calls.append(how)
        if len(calls) == 1:
            raise KeyboardInterrupt
        return wait(*args, **how)

    monkeypatch.setattr(exact, "wait", interrupted)
    schedule, _, proven = exact.solve(problem, solution.schedule, Relaxation(problem), time_s=600.0)
    assert not proven and len(calls) * exact.SIGNAL_S < 60.0
    if schedule is not None:
        check(problem, schedule)


def test_runs_that_the_caps_forbid_are_left_out_of_the_bound():
    # 100 W beside 8 W asleep fit in no step before 600 s, nor does a server that is on, of 40 W, in the step before it
    platform, series = machine(1, 1), envelope(50.0, 45.0, 300.0, 300.0)
    problem = make_problem(platform, workload_of(job(0, 0, 1, 60, 80, flops=True)), series)
    relaxation = Relaxation(problem)
    # so the 60 s begin when it has woken, 20 s after the beginning, even if watts and servers cost nothing
    assert relaxation.evaluate(np.zeros_like(relaxation.best))[0] == pytest.approx(620 / 60)
    assert optimise(problem, SearchBudget(effort=1)).value == pytest.approx(1 + 620 / 60)


@pytest.mark.parametrize("cap_w", [1e4, 1e15, 1e305])
def test_a_cap_beyond_integers_of_64_bits_limits_nothing(cap_w):
    problem = make_problem(
        machine(1, 1), workload_of(*(job(i, 0, 1, 60, 80, flops=True) for i in range(2))), envelope(cap_w)
    )
    solution = optimise(problem, SearchBudget(effort=1))
    # the second of two jobs of 60 s waits for the first
    assert solution.proven and solution.value == pytest.approx(1.5)
