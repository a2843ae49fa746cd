"""The option `run_times`: estimates by hand, reservations of jobs that outrun them, and what must know run times."""

from __future__ import annotations

import math
import random
from types import SimpleNamespace

import numpy as np
import pytest
from builders import job, machine, played, starts

from batwatt.errors import InputError
from batwatt.model.platform import MachineSpec, machines_platform
from batwatt.model.timeline import Timeline
from batwatt.schedulers.adaptive import Adaptive
from batwatt.schedulers.jobpower import Jobpower
from batwatt.schedulers.powercap import Powercap
from batwatt.schedulers.riskaware import Riskaware
from batwatt.schedulers.varcap import Varcap
from batwatt.scheduling.run_times import Regression

NAMES = ("powercap", "jobpower", "varcap", "adaptive")


def begun_by(name: str, machines: int, *jobs: dict, **options: object) -> dict[str, float]:
    """The start of each job in s under a scheduler without a limit of power."""
    platform = machine(machines)
    capacity = Timeline((0.0,), (float(machines),))
    if name == "powercap":
        scheduler = Powercap({"response": "none", **options})
    elif name == "jobpower":
        scheduler = Jobpower({"platform": platform, **options})
    else:
        platform = machines_platform(MachineSpec(machines, 1))
        if name == "adaptive":
            options = {"run_times": options.pop("run_times", None), "parts": options}
        scheduler = (Varcap if name == "varcap" else Adaptive)({"capacity": capacity, **options})
    record = played(scheduler, platform, *jobs, energy=True)
    return {name: begin for name, (begin, _) in starts(record).items()}


def of(user: str, *row: object) -> dict:
    """A job of a user: name, submission in s, hosts, run time in s, request in s."""
    return job(*row) | {"user": user}


@pytest.mark.parametrize(
    ("name", "run_times", "x_s", "y_s"),
    [("powercap", "exact", 70.0, 80.0), ("powercap", "walltime", 120.0, 70.0)]
    + [(name, "recent", 70.0, 80.0) for name in NAMES],
)
def test_the_shortest_first_by_each_estimate(name, run_times, x_s, y_s):
    """At 70 s x takes 10 s and asks for 90, y takes 50 and asks for 60; the last two of u took 10 s, v has none."""
    jobs = (
        of("u", "a", 0, 1, 10, 100), of("u", "b", 10, 1, 10, 100), of("v", "c", 11, 1, 50, 60),
        of("u", "x", 30, 1, 10, 90), of("v", "y", 31, 1, 50, 60),
    )  # fmt: skip
    begun = begun_by(name, 1, *jobs, order="asc_walltime", run_times=run_times)
    assert (begun["x"], begun["y"]) == (x_s, y_s)


@pytest.mark.parametrize("name", NAMES)
def test_an_estimate_that_is_outrun_doubles(name):
    """The job a is expected to end at 31 s, then at 41, 61, 101 and 181 s: W gets its hosts then.

    At 62 s it is 101 s, before which s does not end; at 102 s it is 181 s.
    """
    jobs = (
        of("u", "p", 0, 1, 10, 200), of("u", "q", 10, 1, 10, 200), of("u", "a", 21, 1, 100, 200),
        of("w", "W", 25, 2, 10, 20), of("w", "s", 26, 1, 5, 50), of("w", "r", 62, 1, 5, 50),
        of("w", "t", 102, 1, 5, 50),
    )  # fmt: skip
    begun = begun_by(name, 2, *jobs, order="fcfs", backfilling="easy", run_times="recent")
    assert begun == {"p": 0.0, "q": 10.0, "a": 21.0, "W": 121.0, "s": 102.0, "r": 107.0, "t": 112.0}


@pytest.mark.parametrize(
    ("name", "run_times"), list(zip(NAMES, ["walltime", "recent", "regression", "doubling"], strict=True))
)
def test_a_job_without_a_request_is_refused(name, run_times):
    row = job("a", 0, 1, 10)
    with pytest.raises(InputError, match="job w0!a has neither a walltime nor a field 'estimate_s'"):
        begun_by(name, 1, row, run_times=run_times)
    assert begun_by(name, 1, row, run_times={"name": run_times, "otherwise_s": 60.0}) == {"a": 0.0}


def test_a_long_run_shows_in_time():
    """Preemption goes by estimates of 10 s that double: at 100 s the long run counts for 160 s, and s stops it."""
    jobs = (of("u", "L", 0, 1, 1000, 5000), of("u", "s", 100, 1, 5, 5000))
    options = {"victim": {"name": "checkpoint", "checkpoint_s": 1, "recovery_s": 1}, "preemption": "slowdown"}
    assert begun_by("varcap", 1, *jobs, run_times="walltime", **options) == {"L": 0.0, "s": 1000.0}
    begun = begun_by("varcap", 1, *jobs, run_times={"name": "doubling", "first_s": 10}, **options)
    assert begun["s"] == 101.0


def test_plans_must_know_run_times():
    options = {"capacity": Timeline((0.0,), (1.0,)), "run_times": "recent"}
    with pytest.raises(InputError, match="'recent' estimates run times, which plans of this scheduler must know"):
        Riskaware(options)
    Riskaware(options | {"run_times": "exact"})


@pytest.mark.parametrize(
    ("choice", "problem"),
    [
        ({"name": "recent", "count": 0}, "count must be a whole number from 1 to 1000, got 0"),
        ({"name": "walltime", "otherwise_s": 0}, "otherwise_s must be > 0"),
        ({"name": "regression", "decay": 1.0}, "decay must be in"),
        ({"name": "doubling", "first_s": 0.5}, "first_s must be from 1 to 1e9, got 0.5"),
        ("lately", "lately"),
    ],
)
def test_bad_choices(choice, problem):
    with pytest.raises(InputError, match=problem):
        Powercap({"response": "none", "run_times": choice})


def test_the_regression_is_that_of_normal_equations():
    """Recursive least squares give what the normal equations of all past jobs give, and stay below the request."""
    rng = random.Random(5)
    runs = {}
    regression = Regression(decay=0.8, ridge=2.0, least=3)
    regression.lengths = SimpleNamespace(described=lambda job: (0.0, runs[job.id], runs[job.id]))
    rows, values, past = [], [], {}
    for number in range(60):
        name, user, queue = f"w0!{number}", rng.choice("abc"), rng.choice("xy")
        request_s, width = rng.choice([600, 3600, 86400]), rng.randint(1, 64)
        runs[name] = request_s * rng.uniform(0.01, 1.0)
        fields = {"user": user, "queue": queue}
        submitted = SimpleNamespace(id=name, requested_time=request_s, requested_resources=width, json_dict=fields)
        row = [1.0, math.log(request_s), math.log(width)]
        for key in (("user", user), ("queue", queue)):
            logs = past.get(key, [])
            weights = [0.8**age for age in range(len(logs))][::-1]
            mean = sum(w * v for w, v in zip(weights, logs, strict=True)) / sum(weights) if logs else 0.0
            overall = sum(values) / len(values) if values else 0.0
            row.append(sum(weights) / (sum(weights) + 1.0) * (mean - overall))
        expected_s, bound_s = regression.estimate(submitted)
        assert bound_s == request_s
        if number < 3:
            assert expected_s == request_s
        else:
            design = np.array(rows)
            weights = np.linalg.solve(design.T @ design + 2.0 * np.eye(5), design.T @ np.array(values))
            assert expected_s == pytest.approx(min(request_s, max(1.0, math.exp(np.array(row) @ weights))), rel=1e-6)
        regression.learn(name)
        rows.append(row)
        values.append(math.log(runs[name]))
        for key in (("user", user), ("queue", queue)):
            past.setdefault(key, []).append(values[-1])
