"""Google-like workloads: seeds, bounds, means, and wrong parameters."""

from __future__ import annotations

import json
import math
from collections import Counter
from pathlib import Path

import pytest
from examples import examples
from files_of_tests import refusal
from hypothesis import given
from hypothesis import strategies as st

from batwatt.errors import InputError
from batwatt.inputs.google_like import GoogleLike, google_like, to_text
from batwatt.units import REFERENCE_SPEED, speed_flops

TAURUS_FLOPS = speed_flops(REFERENCE_SPEED)

WORKLOADS = Path(__file__).resolve().parents[2] / "workloads"


def runtimes_s(workload: dict) -> list[float]:
    return [workload["profiles"][job["profile"]]["cpu"] / TAURUS_FLOPS for job in workload["jobs"]]


def test_days_of_google_like_jobs():
    """The shipped files are generated; a day has twelve jobs an hour, and walltimes suffice on the reference server."""
    for seed in range(20):
        text = to_text(google_like(GoogleLike(), seed))
        assert (WORKLOADS / f"google-288-{seed:02d}.json").read_text(encoding="utf-8") == text
    workload = json.loads(text)
    jobs = workload["jobs"]
    assert [job["id"] for job in jobs] == [str(i) for i in range(1, 289)]
    assert [job["subtime"] for job in jobs] == sorted(round(job["subtime"], 3) for job in jobs)
    assert Counter(int(job["subtime"] // 3600) for job in jobs) == dict.fromkeys(range(24), 12)
    for job, runtime_s in zip(jobs, runtimes_s(workload), strict=True):
        assert isinstance(job["walltime"], int) and 60.0 <= runtime_s <= 21600.0
        assert runtime_s * 1.2 <= job["walltime"] + 1e-6 and job["walltime"] <= math.ceil(runtime_s * 4.0)


def test_means_are_those_promised():
    many = google_like(GoogleLike(jobs_per_hour=2000), 1)
    runs = runtimes_s(many)
    assert sum(runs) / len(runs) == pytest.approx(1500.0, rel=0.02)
    widths = Counter(job["res"] for job in many["jobs"])
    assert set(widths) == set(range(1, 9))
    frequencies = [servers**-0.55 for servers in range(1, 9)]
    for servers, frequency in enumerate(frequencies, start=1):
        assert widths[servers] / len(runs) == pytest.approx(frequency / sum(frequencies), abs=0.01)


@examples(60)
@given(mean=st.floats(61.0, 21599.0), sigma=st.floats(0.01, 5.0), seed=st.integers(0, 2**63))
def test_any_parameters_give_a_valid_workload_or_one_line(mean, sigma, seed):
    try:
        workload = google_like(GoogleLike(hours=1, mean_runtime_s=mean, sigma=sigma), seed)
    except InputError as error:
        assert "\n" not in str(error)
        return
    for job, runtime_s in zip(workload["jobs"], runtimes_s(workload), strict=True):
        assert 59.999 <= runtime_s <= 21600.001
        assert workload["profiles"][job["profile"]]["cpu"] <= job["walltime"] * TAURUS_FLOPS


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"hours": 1.5}, "hours"),
        ({"mean_runtime_s": 10.0}, "mean_runtime_s must be > 60, got 10.0"),
        ({"jobs_per_hour": 10**6, "hours": 10**4}, "jobs_per_hour x hours must be"),
        ({"max_servers": 21}, "max_servers"),
    ],
)
def test_wrong_parameters(wrong, said):
    assert said in refusal(GoogleLike, **wrong)
    assert "seed" in refusal(google_like, None, -1)
    assert "JSON" in refusal(to_text, {"nb_res": math.nan})
