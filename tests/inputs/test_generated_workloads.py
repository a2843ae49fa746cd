"""Generated workloads: seeds, bounds, what was published, and wrong parameters."""

from __future__ import annotations

import json
import math
from collections import Counter, defaultdict
from pathlib import Path

import numpy as np
import pytest
from examples import examples
from files_of_tests import refusal
from hypothesis import given
from hypothesis import strategies as st

from batwatt.errors import InputError
from batwatt.inputs.workloads.fitted import fitted_range, fitted_share, fitted_values
from batwatt.inputs.workloads.google_like import GoogleLike, google_like, to_text
from batwatt.inputs.workloads.pm100_like import LEAST_W, MOST_W, QUARTILES_W, TIME_SPREAD, WIDTHS, Pm100Like, pm100_like
from batwatt.inputs.workloads.varcap_like import SYSTEMS, VarcapLike
from batwatt.inputs.workloads.varcap_synthetic import varcap_table
from batwatt.protocol.job_fields import parse_power
from batwatt.protocol.workload4 import parse_workload
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
    ("kind", "wrong", "said"),
    [
        (GoogleLike, {"hours": 1.5}, "hours"),
        (GoogleLike, {"mean_runtime_s": 10.0}, "mean_runtime_s must be a number in ]60, 21600[ s, got 10.0"),
        (GoogleLike, {"jobs_per_hour": 10**6, "hours": 10**4}, "jobs_per_hour x hours must be"),
        (GoogleLike, {"max_servers": 21}, "max_servers"),
        (Pm100Like, {"jobs": 0}, "jobs must be"),
        (Pm100Like, {"run_spread": -1.0}, "run_spread must be"),
        (Pm100Like, {"run_spread": 0.5}, "run_spread 0.5 is more than the quartiles of all jobs allow"),
    ],
)
def test_wrong_parameters(kind, wrong, said):
    assert said in refusal(kind, **wrong)
    for draw, seed in ((google_like, -1), (pm100_like, "0")):
        assert "seed" in refusal(draw, None, seed)
    assert "JSON" in refusal(to_text, {"nb_res": math.nan})


def node_w(jobs):
    return np.array([job["power_w"] / job["res"] for job in jobs])


def test_jobs_like_those_of_pm100():
    params = Pm100Like(jobs=3000, users=1500, load=0.5)
    data = pm100_like(params, 3)
    assert data == pm100_like(params, 3) != pm100_like(params, 4)
    jobs = data["jobs"]
    busy_s = sum(job["res"] * data["profiles"][job["profile"]]["delay"] for job in jobs)
    assert busy_s / (params.nodes * jobs[-1]["subtime"]) == pytest.approx(0.5, rel=0.05)
    # users are drawn, too: within 7 %
    assert np.percentile(node_w(jobs), [25, 50, 75]) == pytest.approx(QUARTILES_W, rel=0.07)
    assert np.median([job["power_std_w"] / job["power_w"] for job in jobs]) == pytest.approx(TIME_SPREAD, rel=0.15)
    share = sum(job["res"] == 1 for job in jobs) / len(jobs)
    assert share == pytest.approx(WIDTHS[1] / sum(WIDTHS.values()), abs=0.05)
    workload = parse_workload(data, "w0", "test")
    for job in workload.jobs:
        power = parse_power(job.raw, job.id)
        length_s = workload.profiles[job.profile].duration_s
        assert job.walltime_s >= length_s
        assert sum(seconds for seconds, _ in power.phases) == pytest.approx(length_s, abs=0.01)
        assert power.mean_w == pytest.approx(job.raw["power_w"], abs=1e-3)
        assert power.std_w == pytest.approx(job.raw["power_std_w"], abs=1e-3)
        assert all(LEAST_W - 0.1 <= watts / job.hosts <= MOST_W + 0.1 for _, watts in power.phases)


def test_powers_of_a_user_are_alike():
    jobs = pm100_like(Pm100Like(jobs=1000), 2)["jobs"]
    users = defaultdict(list)
    for job in jobs:
        users[job["user"]].append(np.log(job["power_w"] / job["res"]))
    of_one = np.sqrt(np.mean([np.var(values) for values in users.values() if len(values) > 5]))
    assert of_one < 0.6 * np.std(np.log(node_w(jobs)))


@pytest.mark.parametrize(
    "like,jobs,days,run_h,cores,memory",
    [
        ("mira", 6571, 30, (1.8, 2.9), (1705, 2890), (27_000, 46_000)),
        ("azure", 442_784, 7, (3.6, 8.8), (2.6, 2.4), (6, 11)),
        ("borg", 204_749, 1, (0.6, 3.0), (1.8, 1.2), (0.02, 0.02)),
    ],
)
def test_table_5_2(like, jobs, days, run_h, cores, memory):
    table = varcap_table(VarcapLike(like), 7)
    assert len(table) == jobs
    assert 0.99 * days * 86_400 < table.arrival_time.max() < days * 86_400
    assert table.arrival_time.is_monotonic_increasing and table.arrival_time.min() >= 0
    for column, (mean, sd) in ((table.length / 3600, run_h), (table.cpus, cores), (table.memory, memory)):
        assert column.mean() == pytest.approx(mean, rel=0.03)
        assert column.std() == pytest.approx(sd, rel=0.03)
    # length and cores are drawn apart
    work_h = (table.length * table.cpus).sum() / 3600
    assert work_h == pytest.approx(jobs * run_h[0] * cores[0], rel=0.03)


@pytest.mark.parametrize(
    "like,load",
    [
        ("mira", 6571 * 1.8 * 1705 / (0.7 * 49_152 * 720)),
        ("azure", 442_784 * 3.6 * 2.6 / (0.7 * 20_000 * 168)),
        ("borg", 204_749 * 0.6 * 1.8 / (0.7 * 630 * 32 * 24)),
        ("tng", 0.9),
    ],
)
def test_fewer_jobs_on_a_smaller_system_have_the_same_load(like, load):
    small = VarcapLike(like, jobs=2000, machines=96)
    table = varcap_table(small, 3)
    work_h = (table.length * table.cpus).sum() / 3600
    assert len(table) == pytest.approx(2000, abs=1)
    assert work_h / (0.7 * 96 * SYSTEMS[like].cores * 24 * small.released_days) == pytest.approx(load, rel=0.08)


def test_a_load_sets_the_days():
    # 442,784 x 3.6 h x 2.6 cores = 4,144,458 core-hours; 0.9 x 0.7 x 20,000 cores x 24 h = 302,400 a day
    assert VarcapLike("azure", load=0.9).released_days == pytest.approx(13.70522, rel=1e-6)
    assert VarcapLike("azure").released_days == pytest.approx(7)
    assert VarcapLike("azure", days=2.5).released_days == 2.5
    # 0.9 x 0.7 x 476 x 32 cores x 24 h / (1.8 cores x 300,000 jobs)
    assert VarcapLike().mean_run_h == pytest.approx(0.4264960, rel=1e-6)
    assert VarcapLike(jobs=1_500_000).released_days == pytest.approx(5)
    assert VarcapLike(jobs=400_000, days=1).mean_run_h == pytest.approx(0.3198720, rel=1e-6)
    assert VarcapLike(jobs=300_000, days=1, load=0.45).mean_run_h == pytest.approx(0.2132480, rel=1e-6)


def test_widths_memory_estimates_and_days():
    mira = varcap_table(VarcapLike("mira"), 0)
    assert set(mira.cpus) <= {512 * 2**k for k in range(7)} | {49_152} and mira.cpus.max() == 49_152
    assert (mira.memory == 16 * mira.cpus).all()
    small = varcap_table(VarcapLike("mira", jobs=500, machines=480), 0)
    assert set(small.cpus) <= {5 * 2**k for k in range(7)} | {480}
    assert (mira.estimate >= mira.length).all() and mira.estimate.max() == 86_400
    assert (mira.estimate <= np.maximum(3 * mira.length + 1800, 300)).all()
    assert 1.8 < (mira.estimate / mira.length).mean() < 2.5
    assert not (mira.estimate % 300).any() and not (mira.estimate[mira.estimate > 21_600] % 1800).any()
    azure = varcap_table(VarcapLike("azure", jobs=20_000), 0)
    assert set(azure.cpus) == {1, 2, 4, 8, 16} and not (azure.length % 300).any() and azure.length.min() >= 300
    assert np.corrcoef(azure.cpus, azure.memory)[0, 1] > 0.3 > 0.05 > abs(np.corrcoef(azure.cpus, azure.length)[0, 1])
    for like, table in {
        "azure": azure,
        "borg": varcap_table(VarcapLike("borg", jobs=50_000, days=4, cycle=1), 1),
    }.items():
        assert "estimate" not in table
        assert table.cpus.max() <= SYSTEMS[like].cores and table.memory.max() <= SYSTEMS[like].machine_memory
    # the half around 14 h holds 1/2 + cycle / pi
    hours = table.arrival_time % 86_400 / 3600
    assert ((hours >= 8) & (hours < 20)).mean() == pytest.approx(0.5 + 1 / math.pi, abs=0.005)


@pytest.mark.parametrize("fraction", [0.0, 0.5, 1.0])
def test_long_fractions_keep_the_core_hours(fraction):
    params = VarcapLike(jobs=30_000, machines=48, long_fraction=fraction)
    table = varcap_table(params, 5)
    work = table.length * table.cpus / 3600
    assert work.sum() == pytest.approx(VarcapLike(jobs=30_000, machines=48).core_hours, rel=0.02)
    assert work[table.length > 3600].sum() / work.sum() == pytest.approx(fraction, abs=0.01)
    # of the 30,000 at 0.8, 2,373 are long: 1/8 and 5/4 of them at 0.1 and 1.0
    numbers = {0.0: 138_134, 0.1: 124_617, 0.5: 70_550, 0.8: 30_000, 1.0: 2966}
    assert len(table) == pytest.approx(numbers[fraction], rel=0.02)


def test_dependencies():
    params = VarcapLike(jobs=5000, machines=48, dependencies=0.12)
    table = varcap_table(params, 2)
    parents = table.depends_on[table.depends_on != ""].astype(int)
    assert len(parents) == 600
    own = parents.index + 1
    assert (parents < own).all() and (parents >= 1).all()
    apart = table.arrival_time.to_numpy()[own - 1] - table.arrival_time.to_numpy()[parents - 1]
    assert (apart >= 0).all() and apart.max() <= 3600 and apart.max() > 3000
    # one job has none before it
    assert (varcap_table(VarcapLike(jobs=1, dependencies=1.0), 0).depends_on == "").all()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"like": "miro"}, "no system 'miro'; did you mean 'mira'?"),
        ({"jobs": 10**9}, "more than 20000000; ask for fewer"),
        ({"like": "mira", "machines": 100}, "a Mira's machines must be a multiple of 96, got 100"),
        ({"like": "azure", "long_fraction": 0.5}, "a trace like azure has its own share of long jobs"),
        ({"jobs": 1000, "days": 1}, "jobs of 127.949 h on average cannot be long"),
    ],
)
def test_refusals(options, message):
    line = refusal(VarcapLike, **options)
    assert line.startswith("varcap trace: ") and message in line


def test_fitted_by_hand():
    # two values: the mean alone decides, and the deviation of (1, 3) at mean 2 is 1
    law = fitted_values((1.0, 3.0), 2.0, 1.0)
    assert law.weights == pytest.approx([0.5, 0.5])
    assert list(law.at(np.array([0.0, 0.49, 0.51, 0.999]))) == [1, 1, 3, 3]
    # bounds far away: the lognormal itself, sigma^2 = ln(1 + (sd / mean)^2), mu = ln mean - sigma^2 / 2
    law = fitted_range(1e-6, 1e7, 5.0, 5.0)
    assert law.sigma**2 == pytest.approx(math.log(2), rel=1e-4)
    assert law.mu == pytest.approx(math.log(5) - math.log(2) / 2, rel=1e-4)
    law = fitted_share(1e-3, 24.0, 0.5, 1.0, 0.8)
    share = (law.values * law.weights)[law.values > 1.0].sum() / law.mean
    assert law.mean == pytest.approx(0.5, rel=1e-5) and share == pytest.approx(0.8, rel=1e-5)
    assert law.at(np.array([law.chance_below(1.0)]))[0] == pytest.approx(1.0)
    assert "no lognormal cut to [1, 3] has mean 2 and spread 5" in refusal(fitted_values, (1.0, 3.0), 2.0, 5.0)
