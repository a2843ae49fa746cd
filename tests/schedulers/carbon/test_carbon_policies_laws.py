"""Laws of the policies on random jobs and signals, against plain enumerations in exact numbers."""

from __future__ import annotations

from fractions import Fraction
from itertools import accumulate, pairwise

import numpy as np
import pytest
from examples import examples
from hypothesis import given
from hypothesis import strategies as st

from batwatt.model.timeline import Timeline
from batwatt.model.work import Phase, PhaseModel, Steps
from batwatt.schedulers.carbon.execution import ShiftJob, carry_out
from batwatt.schedulers.carbon.policies import POLICIES, PolicyInputs, StartWindow, policy_named

PHASES = st.lists(st.tuples(st.integers(1, 9), st.integers(0, 5)), min_size=1, max_size=4)
STEPS = st.lists(st.tuples(st.integers(1, 12), st.integers(0, 9)), min_size=1, max_size=12)
WHOLE = [name for name in POLICIES if not POLICIES[name].interrupting]


def phases_of(pairs: list[tuple[int, int]]) -> tuple[Phase, ...]:
    return tuple(Phase(f"p{i}", float(length), float(watts)) for i, (length, watts) in enumerate(pairs))


@st.composite
def cases(draw: st.DrawFn, startup: bool = False, least_w: int = 0) -> tuple[ShiftJob, StartWindow, Timeline]:
    """A job, its window and a signal that is known until well after its deadline; all in whole seconds."""
    work = draw(PHASES)
    model = PhaseModel(
        phases_of(draw(PHASES)[:2]) if startup else (), phases_of([(s, max(w, least_w)) for s, w in work])
    )
    job = ShiftJob("a", float(draw(st.integers(0, 15))), model, draw(st.integers(1, 3)))
    window = StartWindow(job.arrival_s, float(draw(st.integers(0, 30))))
    steps = draw(STEPS)
    steps.append((300, draw(st.integers(0, 9))))
    edges = np.array([0, *accumulate(length for length, _ in steps)], dtype=np.float64)
    return job, window, Timeline.of_edges(edges, np.array([value for _, value in steps], dtype=np.float64))


def exact_carbon(begin: Fraction, steps: Steps, integral: Timeline) -> Fraction:
    """W x signal x s, by cutting at all edges."""
    total = Fraction(0)
    for (a, b), watts in zip(pairwise(map(Fraction, steps.edges_s)), steps.watts, strict=True):
        for (c, d), value in zip(pairwise(map(Fraction, integral.edges_s)), integral.values, strict=True):
            total += max(Fraction(0), min(begin + b, d) - max(begin + a, c)) * Fraction(watts) * Fraction(value)
    return total


def breakpoints(steps: Steps, integral: Timeline, window: StartWindow) -> list[Fraction]:
    begin, end = Fraction(window.arrival_s), Fraction(window.latest_s)
    meetings = {Fraction(edge) - Fraction(own) for edge in integral.edges_s for own in steps.edges_s}
    return sorted({begin, end} | {date for date in meetings if begin < date < end})


@examples(150)
@given(cases(startup=True))
def test_oracle_is_the_first_least_of_all_breakpoints(case):
    job, window, integral = case
    ((begin_s, _),) = policy_named("oracle").choose(job, window, integral, PolicyInputs())
    every = {
        date: exact_carbon(date, job.model.steps, integral) for date in breakpoints(job.model.steps, integral, window)
    }
    least = min(every.values())
    assert Fraction(begin_s) == min(date for date, carbon in every.items() if carbon == least)


@examples(60)
@given(cases(startup=True), st.integers(1, 200))
def test_nothing_between_breakpoints_is_better(case, parts):
    job, window, integral = case
    execution = carry_out(job, policy_named("oracle").choose(job, window, integral, PolicyInputs()))
    anywhere = integral.of_steps(np.linspace(window.arrival_s, window.latest_s, parts + 1), job.model.steps)
    assert execution.emitted(integral) <= job.cpus * anywhere.min() + 1e-15


@examples(150)
@given(cases(startup=True), st.integers(1, 20) | st.none())
def test_carbon_saved_per_time_is_the_first_most_of_all_breakpoints(case, usual):
    job, window, integral = case
    if usual is None:
        steps, ((begin_s, _),) = (
            job.model.steps,
            policy_named("cst-oracle").choose(job, window, integral, PolicyInputs()),
        )
    else:
        steps = Steps(np.array([0.0, usual]), np.ones(1))
        ((begin_s, _),) = policy_named("cst-average").choose(
            job, window, integral, PolicyInputs(expected_length_s=float(usual))
        )
    now, length = Fraction(window.arrival_s), Fraction(steps.length_s)
    at_once = exact_carbon(now, steps, integral)
    gains = {
        date: (at_once - exact_carbon(date, steps, integral)) / (date - now + length)
        for date in breakpoints(steps, integral, window)
    }
    most = max(gains.values())
    assert Fraction(begin_s) == min(date for date, gain in gains.items() if gain == most)


def seconds_of(intervals: tuple[tuple[float, float], ...]) -> list[int]:
    return [second for begin, end in intervals for second in range(int(begin), int(end))]


@examples(150)
@given(cases())
def test_suspend_resume_takes_the_first_cheapest_seconds(case):
    job, window, integral = case
    intervals = policy_named("suspend-resume").choose(job, window, integral, PolicyInputs())
    every = range(int(job.arrival_s), int(window.deadline_s(job)))
    order = sorted(every, key=lambda second: (float(integral.at(second)), second))
    assert seconds_of(intervals) == sorted(order[: int(job.length_s)])


@examples(150)
@given(cases())
def test_suspend_resume_below_a_threshold_second_by_second(case):
    job, window, integral = case
    intervals = policy_named("suspend-resume-threshold").choose(job, window, integral, PolicyInputs())
    known = range(int(job.arrival_s), int(integral.end_s))
    # the least value that holds for 30 % of the time
    values = sorted(float(integral.at(second)) for second in known)
    bound = values[-(-3 * len(values) // 10) - 1]
    patience, left, ran = int(window.wait_s), int(job.length_s), []
    for second in known:
        if not left:
            break
        if float(integral.at(second)) < bound or not patience:
            ran.append(second)
            left -= 1
        else:
            patience -= 1
    assert seconds_of(intervals) == ran


@examples(100)
@given(cases(least_w=1), st.integers(1, 5))
def test_wait_awhile_interrupting_takes_the_first_cheapest_steps(case, step):
    job, window, integral = case
    intervals = policy_named("wait-awhile-interrupting").choose(job, window, integral, PolicyInputs(slot_s=float(step)))
    begin, end = int(job.arrival_s), int(window.deadline_s(job))
    slots = [range(at, min(at + step, end)) for at in range(begin, end, step)]
    order = sorted(slots, key=lambda slot: (sum(Fraction(float(integral.at(s))) for s in slot) / len(slot), slot[0]))
    taken: list[range] = []
    while sum(map(len, taken)) < job.length_s:
        taken.append(order[len(taken)])
    assert seconds_of(intervals) == sorted(second for slot in taken for second in slot)


@examples(60)
@given(cases(startup=True))
def test_who_knows_more_emits_less(case):
    job, window, integral = case

    def carbon(name: str) -> float:
        policy = policy_named(name)
        intervals = policy.choose(job, window, integral, PolicyInputs())
        return carry_out(job, intervals, apart=policy.exact).emitted(integral)

    immediate, oracle, aware = (carbon(name) for name in ("immediate", "oracle", "phase-aware"))
    slack = 1e-12 * immediate + 1e-15
    assert oracle <= immediate + slack
    assert aware <= oracle + slack
    assert all(oracle <= carbon(name) + slack for name in WHOLE)


@examples(60)
@given(cases(startup=True), st.sampled_from(list(POLICIES)))
def test_all_work_is_done_in_the_window(case, name):
    job, window, integral = case
    policy = POLICIES[name]
    intervals = policy.choose(job, window, integral, PolicyInputs(job.length_s))
    execution = carry_out(job, intervals, checkpoints=policy.checkpoints, apart=policy.exact)
    progress = [(0.0, 0.0), *((segment.from_s, segment.to_s) for segment in execution.segments)]
    assert all(begin <= before for (_, before), (begin, _) in pairwise(progress))
    assert progress[-1][1] == job.model.work_s
    assert execution.begin_s >= window.arrival_s
    # who knows of start-ups, or does not suspend, is in time
    if policy.exact or not policy.interrupting or not job.model.startup:
        assert execution.end_s <= window.deadline_s(job) + 1e-9
    if not (policy.interrupting and job.model.startup):
        assert execution.energy_j == pytest.approx(job.cpus * job.model.energy_j)
