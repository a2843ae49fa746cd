"""The Google-like generator: its promises, its determinism, its refusals."""

from __future__ import annotations

import json
import math
from collections import Counter
from pathlib import Path

import pytest
from examples import examples
from hypothesis import given
from hypothesis import strategies as st

from batwatt.errors import InputError
from batwatt.inputs.workloads.batsim_files import read_workload
from batwatt.inputs.workloads.google_like import GoogleLike, google_like, to_text
from batwatt.units import REFERENCE_SPEED, speed_flops

TAURUS_FLOPS = speed_flops(REFERENCE_SPEED)

WORKLOADS = Path(__file__).resolve().parents[2] / "workloads"


def runtimes_s(workload: dict) -> list[float]:
    return [workload["profiles"][job["profile"]]["cpu"] / TAURUS_FLOPS for job in workload["jobs"]]


@pytest.mark.parametrize("seed", range(20))
def test_a_day_has_288_jobs_twelve_in_each_hour(seed: int) -> None:
    workload = google_like(GoogleLike(), seed)
    jobs = workload["jobs"]
    assert [job["id"] for job in jobs] == [str(i) for i in range(1, 289)]
    assert [job["subtime"] for job in jobs] == sorted(job["subtime"] for job in jobs)
    assert Counter(int(job["subtime"] // 3600) for job in jobs) == dict.fromkeys(range(24), 12)
    assert all(round(job["subtime"], 3) == job["subtime"] for job in jobs)
    assert workload["nb_res"] == 20
    assert list(workload["profiles"]) == [job["profile"] for job in jobs]
    assert all(isinstance(profile["cpu"], int) and profile["com"] == 0 for profile in workload["profiles"].values())


@pytest.mark.parametrize("seed", range(20))
def test_the_walltime_suffices_on_the_reference_server(seed: int) -> None:
    workload = google_like(GoogleLike(), seed)
    for job, runtime_s in zip(workload["jobs"], runtimes_s(workload), strict=True):
        assert isinstance(job["walltime"], int)
        assert 60.0 <= runtime_s <= 21600.0
        assert runtime_s * 1.2 <= job["walltime"] + 1e-6
        assert job["walltime"] <= math.ceil(runtime_s * 4.0)


def test_means_are_those_promised() -> None:
    many = google_like(GoogleLike(jobs_per_hour=2000), 1)
    runs = runtimes_s(many)
    assert sum(runs) / len(runs) == pytest.approx(1500.0, rel=0.02)
    widths = Counter(job["res"] for job in many["jobs"])
    assert set(widths) == set(range(1, 9))
    frequencies = [servers**-0.55 for servers in range(1, 9)]
    for servers, frequency in enumerate(frequencies, start=1):
        assert widths[servers] / len(runs) == pytest.approx(frequency / sum(frequencies), abs=0.01)
    assert sum(job["res"] for job in many["jobs"]) / len(runs) == pytest.approx(3.66, abs=0.03)


def test_same_seed_same_bytes_and_other_seed_other_jobs() -> None:
    assert to_text(google_like(GoogleLike(), 7)) == to_text(google_like(GoogleLike(), 7))
    assert google_like(GoogleLike(), 7)["jobs"] != google_like(GoogleLike(), 8)["jobs"]


@pytest.mark.parametrize("seed", range(20))
def test_shipped_files_are_what_the_generator_makes(seed: int) -> None:
    path = WORKLOADS / f"google-288-{seed:02d}.json"
    assert len(read_workload(path).jobs) == 288
    assert path.read_text(encoding="utf-8") == to_text(google_like(GoogleLike(), seed))


def test_small_has_every_kind_of_profile_on_four_hosts() -> None:
    raw = json.loads((WORKLOADS / "small.json").read_text(encoding="utf-8"))
    workload = read_workload(WORKLOADS / "small.json")
    assert len(workload.jobs) == 8
    assert max(job.hosts for job in workload.jobs) == workload.nb_res == 4
    kinds = {"delay", "parallel", "parallel_homogeneous", "parallel_homogeneous_total", "composed"}
    assert {profile["type"] for profile in raw["profiles"].values()} == kinds
    assert to_text(raw) == (WORKLOADS / "small.json").read_text(encoding="utf-8")


def test_text_has_one_job_a_line_and_reads_back() -> None:
    workload = google_like(GoogleLike(hours=2), 0)
    text = to_text(workload)
    assert json.loads(text) == workload
    assert sum('"subtime"' in line for line in text.splitlines()) == 24
    assert all(line.count('"subtime"') <= 1 for line in text.splitlines())
    assert json.loads(to_text({"nb_res": 1, "jobs": [], "profiles": {}})) == {"nb_res": 1, "jobs": [], "profiles": {}}


def test_widths_follow_the_given_weights() -> None:
    workload = google_like(GoogleLike(max_servers=3, width_weights=(0, 0, 5)), 0)
    assert {job["res"] for job in workload["jobs"]} == {3}


@examples(60)
@given(
    mean=st.floats(61.0, 21599.0),
    sigma=st.floats(0.01, 5.0),
    low=st.floats(1.0, 3.0),
    more=st.floats(0.0, 3.0),
    seed=st.integers(0, 2**63),
)
def test_any_parameters_give_a_valid_workload_or_one_line(
    mean: float, sigma: float, low: float, more: float, seed: int
) -> None:
    params = GoogleLike(
        hours=1, mean_runtime_s=mean, sigma=sigma, walltime_factor_low=low, walltime_factor_high=low + more
    )
    try:
        workload = google_like(params, seed)
    except InputError as error:
        assert "\n" not in str(error)
        return
    for job, runtime_s in zip(workload["jobs"], runtimes_s(workload), strict=True):
        assert 59.999 <= runtime_s <= 21600.001
        assert workload["profiles"][job["profile"]]["cpu"] <= job["walltime"] * TAURUS_FLOPS


@pytest.mark.parametrize(
    ("wrong", "name"),
    [
        ({"jobs_per_hour": 0}, "jobs_per_hour"),
        ({"hours": 1.5}, "hours"),
        ({"hours": True}, "hours"),
        ({"mean_runtime_s": math.nan}, "mean_runtime_s"),
        ({"mean_runtime_s": 10.0}, "mean_runtime_s"),
        ({"mean_runtime_s": "long"}, "mean_runtime_s"),
        ({"sigma": 0.0}, "sigma"),
        ({"max_runtime_s": math.inf}, "max_runtime_s"),
        ({"reference_flops": -1.0}, "reference_flops"),
        ({"reference_flops": 1e30}, "reference_flops"),
        ({"walltime_factor_low": 0.9}, "walltime"),
        ({"walltime_factor_low": 3.0, "walltime_factor_high": 2.0}, "walltime"),
        ({"max_servers": 21}, "max_servers"),
        ({"width_weights": (1.0,)}, "width_weights"),
        ({"width_weights": 1.0}, "width_weights"),
        ({"width_weights": (0.0,) * 8}, "width_weights"),
        ({"width_weights": (1.0,) * 7 + (-1.0,)}, "width_weights"),
        ({"width_weights": (1.0,) * 7 + (math.nan,)}, "width_weights"),
    ],
)
def test_wrong_parameters_are_refused_by_name(wrong: dict, name: str) -> None:
    with pytest.raises(InputError, match=name) as caught:
        GoogleLike(**wrong)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("seed", [-1, 1.0, None, "0"])
def test_wrong_seeds_are_refused(seed: object) -> None:
    with pytest.raises(InputError, match="seed"):
        google_like(GoogleLike(), seed)  # type: ignore[arg-type]


def test_text_refuses_what_json_cannot_hold() -> None:
    with pytest.raises(InputError, match="JSON"):
        to_text({"nb_res": math.nan})
