"""The books of the planner: worked out by hand, and the same after any history of putting in and taking out."""

from __future__ import annotations

import numpy as np
import pytest
from builders import envelope, job, machine, workload_of

from batwatt.errors import InputError
from batwatt.schedulers.planned.optimum import SearchBudget, optimise
from batwatt.schedulers.planned.problem import make_problem
from batwatt.schedulers.planned.scheduler import BrokenScheduleError, KindCounts, Schedule, check, of_timeline
from batwatt.schedulers.planned.search import PowerTimeline


def problem_of(*jobs, watts=(300.0,), platform=None):
    platform = platform or machine(2)
    return make_problem(platform, workload_of(*jobs, nb_res=len(platform)), envelope(*watts))


def mode_of(problem, task, *states):
    """The mode of a task in these states."""
    return next(m for m, mode in enumerate(problem.tasks[task].modes) if mode.states == states)


def test_the_modes_of_a_job():
    problem = problem_of(job(0, 1.5, 1, 60, 140, flops=True), platform=machine(1, 1))
    # 600 flop: 60 s at 10 flop/s, 100 at 6, 150 at 4 (too long); 120 s at 5, 200 at 3 (too long)
    assert [(mode.states, mode.run_s) for mode in problem.tasks[0].modes] == [
        ((0, -1), 60),
        ((1, -1), 100),
        ((-1, 0), 120),
    ]
    assert problem.tasks[0].submit == 1500
    assert problem.tasks[0].slowdown(1, 51_500) == 1.5


def test_the_power_of_a_run_in_every_step():
    problem = problem_of(job(0, 0, 1, 60, flops=True), watts=(300.0, 300.0, 300.0, 300.0))
    timeline = PowerTimeline(problem)
    # both fall asleep in the first step, 20 W each, then sleep at 5 W
    assert list(timeline.total_w)[:3] == [40, 10, 10]
    # 60 s from the beginning of the third step: awake before, so woken in the second; asleep after
    assert timeline.put(0, 600_000, mode_of(problem, 0, 0))
    assert list(timeline.total_w)[:5] == [40, 50 + 5, 100 + 5, 20 + 5, 10]
    # 20 s later it can wake in the step itself
    timeline.remove(0)
    assert timeline.put(0, 620_000, mode_of(problem, 0, 0))
    assert list(timeline.total_w)[:5] == [40, 10, 105, 25, 10]


def test_a_run_that_breaks_the_cap_changes_nothing():
    problem = problem_of(job(0, 0, 2, 60, flops=True), watts=(300.0, 150.0, 300.0))
    timeline = PowerTimeline(problem)
    before = list(timeline.total_w)
    assert not timeline.put(0, 320_000, mode_of(problem, 0, 0))
    assert list(timeline.total_w) == before and not timeline.runs
    assert timeline.put(0, 320_000, mode_of(problem, 0, 1))


def test_jobs_that_follow_each_other_share_a_server_and_its_state():
    problem = problem_of(job(0, 0, 2, 60, flops=True), job(1, 0, 2, 60, flops=True))
    timeline = PowerTimeline(problem)
    assert timeline.put(0, 0, mode_of(problem, 0, 0))
    assert not timeline.put(1, 60_000, mode_of(problem, 1, 1))
    assert not timeline.put(1, 59_999, mode_of(problem, 1, 0))
    assert timeline.put(1, 60_000, mode_of(problem, 1, 0))
    check(problem, of_timeline(timeline))


def test_the_books_do_not_depend_on_their_history():
    rng = np.random.default_rng(1)
    jobs = [
        job(i, float(rng.integers(0, 900)), int(rng.integers(1, 4)), float(rng.integers(9, 700)), flops=True)
        for i in range(12)
    ]
    problem = problem_of(*jobs, watts=(420.0, 300.0, 420.0), platform=machine(3, 2))
    timeline = PowerTimeline(problem)
    for _ in range(400):
        task = int(rng.integers(12))
        if task in timeline.runs:
            timeline.remove(task)
        else:
            mode = int(rng.integers(len(problem.tasks[task].modes)))
            timeline.put(task, problem.tasks[task].submit + int(rng.integers(0, 9000)) * 1000, mode)
    fresh = PowerTimeline(problem)
    for task, (start, _, mode) in timeline.runs.items():
        fresh.restore(task, start, mode)
    assert len(timeline.runs) >= 4
    np.testing.assert_allclose(list(timeline.total_w), list(fresh.total_w), rtol=1e-12)
    assert list(timeline.awake) == list(fresh.awake)


def test_the_check_finds_what_is_broken():
    problem = problem_of(job(0, 0, 1, 60, flops=True), watts=(130.0, 40.0))
    fine = KindCounts(((1, 0, 0),), ((0, 0, 0),))
    mode = mode_of(problem, 0, 0)
    check(problem, Schedule({0: (0, mode)}, (fine,)))
    for starts, counts in (
        ({0: (0, mode)}, KindCounts(((2, 0, 0),), ((0, 0, 0),))),  # 200 W > 130 W
        ({0: (0, mode)}, KindCounts(((0, 1, 0),), ((0, 0, 0),))),  # in another state
        ({0: (0, mode)}, KindCounts(((1, 0, 0),), ((1, 0, 0),))),  # woken though none sleeps
        ({0: (250_000, mode)}, fine),  # ends after the step
        ({}, fine),
    ):
        with pytest.raises(BrokenScheduleError):
            check(problem, Schedule(starts, (counts,)))


def test_caps_that_nobody_can_meet_are_raised():
    problem = problem_of(job(0, 0, 1, 60, flops=True), watts=(0.0, 7.0, 300.0))
    assert problem.caps_w[:3] == (40, 10, 300) and problem.raised == 2


@pytest.mark.parametrize(
    ("row", "text"),
    [
        (job(7, 0, 5, 60), "w0!7: asks for 5 hosts but the platform has 2"),
        (job(7, 0, 1, 60, 30, flops=True), "w0!7: needs 60 s at the fastest speed but its walltime is 30 s"),
        (job(7, 0, 1, 60, 60), "w0!7: needs 60 s at the fastest speed but its walltime is 60 s"),
    ],
)
def test_jobs_that_can_never_run_are_named(row, text):
    with pytest.raises(InputError, match=text):
        problem_of(row)


def test_steps_shorter_than_a_transition_are_named_if_they_are_the_reason():
    # 20 s to wake, steps of 15 s: both servers stay awake, 80 W at least
    problem = make_problem(machine(2), workload_of(job(0, 0, 1, 60, flops=True)), envelope(*[70.0] * 9, step=15.0))
    with pytest.raises(InputError, match="transition outlasts a step"):
        optimise(problem, SearchBudget(effort=1))
