"""What a plan claims is what its replay gives, on random machines, jobs and envelopes."""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np
import pytest
from builders import envelope, job, machine, workload_of
from examples import examples
from hypothesis import HealthCheck, assume, given
from hypothesis import strategies as st

from batwatt.batsim.adapters import simulate
from batwatt.batsim.batsim4 import EngineConfig
from batwatt.engine.core import Engine
from batwatt.errors import InputError
from batwatt.results.metrics import measured
from batwatt.results.run_files import write_record
from batwatt.run.find_scheduler import make_scheduler
from batwatt.schedulers.planned.problem import make_problem
from batwatt.schedulers.planned.relaxation import Relaxation
from batwatt.schedulers.planned.scheduler import Schedule, check, name_servers, of_timeline, read_plan, write_plan
from batwatt.schedulers.planned.search import Search

FAST, SLOW = 3, 2
jobs_of = st.lists(
    st.tuples(
        st.floats(0, 2500).map(lambda x: round(x, 3)),  # submission
        st.integers(1, FAST + SLOW),  # hosts
        st.floats(1, 900).map(lambda x: round(x, 2)),  # run time on a fast host at its top state
        st.one_of(st.none(), st.floats(1.1, 4.0)),  # walltime / run time
        st.booleans(),  # flops or a delay
    ),
    min_size=1,
    max_size=10,
)
powers = st.lists(st.floats(20, 620).map(lambda x: round(x, 1)), min_size=1, max_size=9)


def replay(problem, schedule: Schedule, platform, workload, series):
    plan = name_servers(problem, schedule)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "x_plan.json"
        write_plan(path, plan)
        assert read_plan(path) == plan
        scheduler = make_scheduler("planned", {"plan": path, "platform": platform})
        record = simulate(Engine(platform, [workload], EngineConfig(energy=True)), scheduler)
        write_record(record, Path(folder) / "x")
        return measured(Path(folder) / "x", workload, series, platform.fastest_flops)[0]


def drawn_case(rows, watts, step=300.0):
    """The platform, the workload, the series and the problem of drawn rows; the last cap lets all hosts run."""
    platform = machine(FAST, SLOW)
    jobs = [
        job(i, at, hosts, run, None if factor is None else round(run * factor, 3), flops=flops)
        for i, (at, hosts, run, factor, flops) in enumerate(rows)
    ]
    workload, series = workload_of(*jobs, nb_res=FAST + SLOW), envelope(*watts, 600.0, step=step)
    try:
        return platform, workload, series, make_problem(platform, workload, series)
    except InputError:
        assume(False)


@examples(25, suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much])
@given(jobs_of, powers, st.integers(0, 2**16))
def test_the_replay_gives_what_the_search_claims(rows, watts, seed):
    platform, workload, series, problem = drawn_case(rows, watts)
    search = Search(problem, seed)
    assume(search.construct(range(len(rows))))
    search.improve(20)
    search.load(search.best)
    schedule = of_timeline(search.timeline)
    check(problem, schedule)
    assert problem.mean_slowdown(schedule.starts) == pytest.approx(search.value, rel=1e-9)
    metrics = replay(problem, schedule, platform, workload, series)
    assert metrics["mean_slowdown"] == pytest.approx(search.value, rel=1e-6)
    assert metrics["jobs_finished"] == len(rows)
    assert metrics["killed_power"] == metrics["killed_walltime"] == 0
    assert metrics["violations"] is not None and metrics["violations"] <= problem.raised


@examples(60, suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much])
@given(jobs_of, powers, st.sampled_from([300.0, 25.0]), st.integers(1, 4), st.integers(0, 2**16))
def test_no_schedule_is_below_the_bound_at_any_prices(rows, watts, step, parts, seed):
    """Steps of 300 s, or of 25 s: the transitions of `machine` take up to 30 s."""
    *_, problem = drawn_case(rows, watts, step)
    rng = np.random.default_rng(seed)
    search = Search(problem, seed)
    assume(search.construct(rng.permutation(len(rows)).tolist()))
    search.improve(100)
    last = max(start + problem.tasks[j].modes[m].ticks for j, (start, m) in search.best.items())
    relaxation = Relaxation(problem, parts, 1 + problem.step_of(last))
    total = (search.value - 1.0) * len(rows) + 1e-9
    for _ in range(8):
        prices = rng.exponential(float(rng.choice([0.001, 0.01, 0.1])), len(relaxation.best))
        prices[rng.random(len(prices)) < rng.random()] = 0.0
        assert relaxation.evaluate(prices)[0] <= total
    assert relaxation.improve(search.value, 100) <= search.value + 1e-9
    # a better schedule starts a job only where that is open
    open_steps = relaxation.open_steps(search.value + 1e-6)
    for j, (start, m) in search.best.items():
        assert problem.step_of(start) in open_steps[j][m]
