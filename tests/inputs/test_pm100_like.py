"""The PM100-like generator: seeds, bounds, and what was published."""

from __future__ import annotations

import json
from collections import defaultdict

import numpy as np
import pytest

from batwatt.errors import InputError
from batwatt.inputs.workloads import pm100_like as module
from batwatt.inputs.workloads.pm100_like import LEAST_W, MOST_W, QUARTILES_W, Pm100Like, pm100_like
from batwatt.protocol.job_power import power_of
from batwatt.protocol.workload4 import parse_workload


@pytest.fixture(scope="module")
def many():
    """Jobs of many users: their quartiles are near those of the distribution."""
    return pm100_like(Pm100Like(jobs=3000, users=1500), 3)["jobs"]


def node_w(jobs):
    return np.array([job["power_w"] / job["res"] for job in jobs])


def test_same_seed_same_bytes():
    first, again, other = (json.dumps(pm100_like(Pm100Like(jobs=40), seed)) for seed in (5, 5, 6))
    assert first == again != other


def test_it_is_a_workload():
    data = pm100_like(Pm100Like(jobs=60, nodes=4, users=5), 1)
    workload = parse_workload(data, "w0", "test")
    assert len(workload.jobs) == 60
    assert max(job.hosts for job in workload.jobs) <= 4
    for job in workload.jobs:
        power = power_of(job.raw, job.id)
        length_s = workload.profiles[job.profile].duration_s
        assert job.walltime_s >= length_s
        assert sum(seconds for seconds, _ in power.phases) == pytest.approx(length_s, abs=0.01)
        assert power.mean_w == pytest.approx(job.raw["power_w"], abs=1e-3)
        assert power.std_w == pytest.approx(job.raw["power_std_w"], abs=1e-3)
        assert power.max_w == job.raw["power_max_w"]
        for _, watts in power.phases:
            assert LEAST_W - 0.1 <= watts / job.hosts <= MOST_W + 0.1


def test_the_published_quartiles(many):
    # users are drawn, too: within 7 %
    found = np.percentile(node_w(many), [25, 50, 75])
    assert found == pytest.approx(QUARTILES_W, rel=0.07)


def test_the_published_widths(many):
    share = sum(job["res"] == 1 for job in many) / len(many)
    assert share == pytest.approx(module.WIDTHS[1] / sum(module.WIDTHS.values()), abs=0.05)


def test_the_deviation_over_time(many):
    found = np.median([job["power_std_w"] / job["power_w"] for job in many])
    assert found == pytest.approx(module.TIME_SPREAD, rel=0.15)


def test_a_user_repeats_himself():
    jobs = pm100_like(Pm100Like(jobs=1000), 2)["jobs"]
    users = defaultdict(list)
    for job in jobs:
        users[job["user"]].append(np.log(job["power_w"] / job["res"]))
    of_one = np.sqrt(np.mean([np.var(values) for values in users.values() if len(values) > 5]))
    of_all = np.std(np.log(node_w(jobs)))
    assert of_one < 0.6 * of_all


def test_the_load():
    params = Pm100Like(jobs=800, load=0.5)
    data = pm100_like(params, 4)
    busy_s = sum(job["res"] * data["profiles"][job["profile"]]["delay"] for job in data["jobs"])
    assert busy_s / (params.nodes * data["jobs"][-1]["subtime"]) == pytest.approx(0.5, rel=0.05)


@pytest.mark.parametrize(
    "params,words",
    [
        ({"jobs": 0}, "jobs must be"),
        ({"load": 0.0}, "load must be"),
        ({"run_spread": -1.0}, "run_spread must be"),
        ({"application_spread": 0.5}, "more than the quartiles of all jobs allow"),
    ],
)
def test_wrong_parameters(params, words):
    with pytest.raises(InputError, match=words):
        Pm100Like(**params)


def test_a_wrong_seed():
    with pytest.raises(InputError, match="seed"):
        pm100_like(None, -1)
