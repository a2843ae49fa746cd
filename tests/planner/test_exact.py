"""CP-SAT's proof against trying out everything, on instances small enough for that."""

from __future__ import annotations

import pytest
from tiny import ONE, STEPS, TWO, brute_force, instance

from batwatt.errors import InputError
from batwatt.planner.bound import Relaxation
from batwatt.planner.optimum import Budget, optimise
from batwatt.planner.problem import make_problem


@pytest.mark.parametrize("kinds", [(ONE, ONE), (ONE, TWO)], ids=["alike", "two kinds"])
@pytest.mark.parametrize("seed", range(8))
def test_the_optimum_is_that_of_brute_force(seed, kinds):
    platform, workload, envelope = instance(seed, *kinds)
    problem = make_problem(platform, workload, envelope)
    least = brute_force(platform, workload, problem.caps_w[:STEPS], *kinds)
    if least == float("inf"):
        with pytest.raises(InputError):
            optimise(problem, Budget(effort=2))
        return
    solution = optimise(problem, Budget(effort=2))
    assert solution.proven
    assert (solution.value - 1.0) * len(workload.jobs) == pytest.approx(least, abs=1e-6)
    assert solution.bound <= solution.value + 1e-12
    relaxed = Relaxation(problem).improve(2.0 * solution.value, 60)
    assert 1.0 <= relaxed.value <= solution.value + 1e-9
