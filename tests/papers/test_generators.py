"""The generators of the papers: by hand, as published, and the files that they write."""

from __future__ import annotations

import hashlib
import math
from collections import Counter, defaultdict
from functools import cache
from typing import get_args

import numpy as np
import pytest
from cli_house import ROOT
from files_of_tests import refusal

from batwatt.files import read_text
from batwatt.inputs.formats import read_riskaware
from batwatt.protocol.job_fields import parse_power
from batwatt.protocol.workload4 import parse_workload
from batwatt.studies.benchmark import JOBS
from papers.generators import benchmark, pmbs
from papers.generators.__main__ import main
from papers.generators.pm100 import LEAST_W, MOST_W, QUARTILES_W, TIME_SPREAD, WIDTHS, Pm100Like, pm100_like
from papers.generators.pmbs import Kind, Synthetic, Walk, random_walk, synthetic
from papers.generators.varcap import SYSTEMS, VarcapLike, fitted_range, fitted_share, fitted_values, varcap_table

KINDS = get_args(Kind)
T_AVG_S = 16174.08
"""26 machines x 24 cores x 504 h / (3.5 cores x 20,000 jobs) = 4.4928 h."""
WRITTEN = {
    "varcap like=tng jobs=3000 machines=10 --seed 1": "6480c660",
    "varcap like=azure jobs=500 --seed 1": "47c2496e",
    "varcap like=borg jobs=500 --seed 1": "db7758c2",
    "varcap like=mira jobs=500 --seed 1": "93273eca",
    "pmbs kind=uniform jobs=500 end_s=400000 cores=8 --seed 1": "ab7467d8",
    "pmbs kind=log-scale-u jobs=500 end_s=400000 cores=8 --seed 1": "70491f85",
    "pmbs kind=3types jobs=500 end_s=400000 cores=8 --seed 1": "40f086bc",
    "pm100 jobs=90 nodes=20 users=9 load=0.8 run_spread=0.2 --seed 3": "161fc3b6",
}
"""Command -> begin of the SHA-256 of its output."""
SHIPPED = {
    "pmbs kind=log-scale jobs=2000 end_s=259200 machines=26 cores=8 --seed 1": "workloads/risk-small.txt",
    "pm100 jobs=120 --seed 7": "workloads/pm100-like.json",
    "walk mean=24 range=8 end_s=259200 --seed 2": "power_profiles/walk-small.csv",
}


# files ----------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("command", WRITTEN)
def test_equal_seeds_write_equal_bytes(tmp_path, command):
    path = tmp_path / "x"
    assert main([*command.split(), "-o", str(path)]) == 0
    assert hashlib.sha256(path.read_bytes()).hexdigest().startswith(WRITTEN[command])


@pytest.mark.parametrize("command", SHIPPED)
def test_shipped_files(capsys, command):
    assert main(command.split()) == 0
    assert capsys.readouterr().out == (ROOT / SHIPPED[command]).read_text()


def test_inputs_of_a_study(tmp_path):
    declared = tmp_path / "inputs.yaml"
    day = "kind: uniform, jobs: 40, end_s: 86400, machines: 3, cores: 4"
    declared.write_text(
        f"risk:\n  - {{pmbs: {{{day}}}, seeds: [3, 9]}}\n  - {{walk: {{mean: 3, range: 2}}, seeds: [1]}}\n"
        "long: [{varcap: {jobs: 300, machines: 5, days: 0.1}, grid: {long_fraction: [0.1, 0.8]}, seeds: [4],"
        ' name: "long-{long_fraction}"}]\n'
    )
    assert main([str(declared)]) == 0
    folder = tmp_path / "inputs"
    assert sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*.*")) == [
        "long/long-0.1-4.csv", "long/long-0.8-4.csv",
        "risk/uniform-40-3.txt", "risk/uniform-40-9.txt", "risk/walk-3-2-1200-1.csv",
    ]  # fmt: skip
    params = Synthetic("uniform", 40, end_s=86400, machines=3, cores=4)
    jobs = read_riskaware(folder / "risk" / "uniform-40-9.txt")
    assert [tuple(job.values()) for job in jobs] == synthetic(params, 9)


@pytest.mark.parametrize(
    ("words", "line"),
    [
        ("pmbz", "error: KIND: no generator 'pmbz'; did you mean 'pmbs'? Choose one of these.\n"),
        ("pmbs knd=uniform", "error: pmbs: no parameter 'knd'; did you mean 'kind'? Correct it.\n"),
    ],
)
def test_errors_are_one_line(capsys, words, line):
    assert main(words.split()) == 2 and capsys.readouterr().err == line


def test_the_jobs_of_the_benchmark(quiet):
    assert benchmark.text() == read_text(JOBS)


# riskaware paper ------------------------------------------------------------------------------------------------------


@cache
def drawn_jobs(kind):
    """Draw a trace of a kind once for all tests of it."""
    return synthetic(Synthetic(kind), 5)


@pytest.mark.parametrize("kind", KINDS)
def test_what_all_kinds_share(kind):
    jobs = drawn_jobs(kind)
    assert [job.id for job in jobs] == [str(i) for i in range(20_000)]
    # i x 90.72 s
    assert [jobs[i].submit_s for i in (0, 1, 2, 7, 10_000, 19_999)] == [0, 91, 181, 635, 907_200, 1_814_309]
    assert all(job.run_s >= 1 and job.run_s.is_integer() for job in jobs)
    widths = Counter(job.cpus for job in jobs)
    assert set(widths) == {1, 2, 4, 8} and all(type(width) is int for width in widths)
    for width, share in ((1, 1 / 6), (2, 1 / 3), (4, 1 / 3), (8, 1 / 6)):
        assert widths[width] / 20_000 == pytest.approx(share, abs=4 * math.sqrt(share * (1 - share) / 20_000))
    few = Synthetic(kind, jobs=100)
    assert synthetic(few, 3) == synthetic(few, 3) != synthetic(few, 4)


@pytest.mark.parametrize("kind", KINDS)
def test_load_is_26_machines_of_24_cores(kind):
    assert Synthetic(jobs=10_000, machines=13).mean_length_s == pytest.approx(T_AVG_S, rel=1e-12)
    jobs = synthetic(Synthetic(kind, jobs=50_000), 1)
    assert sum(job.run_s * job.cpus for job in jobs) / (24 * 1_814_400) == pytest.approx(26, rel=0.02)
    assert sum(job.run_s for job in jobs) / len(jobs) == pytest.approx(T_AVG_S / 2.5, rel=0.015)


def test_uniform():
    lengths = [job.run_s for job in drawn_jobs("uniform")]
    assert max(lengths) <= 32348
    for quarter in range(4):
        low, high = quarter * T_AVG_S / 2, (quarter + 1) * T_AVG_S / 2
        assert sum(low <= length < high for length in lengths) / 20_000 == pytest.approx(0.25, abs=0.013)


def test_three_types():
    lengths = Counter(job.run_s for job in drawn_jobs("3types"))
    # 13/27, 39/27 and 117/27 of 16,174.08 s
    assert set(lengths) == {7788, 23363, 70088}
    for length, share in ((7788, 9 / 13), (23363, 3 / 13), (70088, 1 / 13)):
        assert lengths[length] / 20_000 == pytest.approx(share, abs=0.013)


@pytest.mark.parametrize(
    "kind,unit_s,shares",
    [
        ("log-scale", 237.3555, (4 / 7, 1 / 7, 1 / 7, 1 / 7)),  # 7/477 x 16,174.08
        ("log-scale-u", 138.24, (1 / 4, 1 / 4, 1 / 4, 1 / 4)),  # 16,174.08 / 117
    ],
)
def test_log_scale(kind, unit_s, shares):
    lengths = [job.run_s for job in drawn_jobs(kind)]
    assert unit_s - 1 <= min(lengths) and max(lengths) <= 625 * unit_s + 1
    for category, share in enumerate(shares):
        low, middle, high = (unit_s * 5.0**category * factor for factor in (1, 3, 5))
        inside = [length for length in lengths if low <= length < high]
        assert len(inside) / 20_000 == pytest.approx(share, abs=0.014)
        # uniform within: as many below the middle as above
        assert sum(length < middle for length in inside) / len(inside) == pytest.approx(0.5, abs=0.04)


@pytest.mark.parametrize(
    ("stay", "draws", "values"),
    [
        # inside: thirds for down, stay, up; from 6 to 8 ends at 7; at 7: halves for down, stay; at 1: for stay, up
        (True, (0.99, 0.67, 0.6, 0.49, 0.0, 0.33, 0.5), (4, 6, 7, 7, 5, 3, 1, 3)),
        (False, (0.5, 0.9, 0.9, 0.49, 0.1, 0.1), (4, 6, 7, 7, 5, 3, 1)),
    ],
)
def test_walks_by_hand(monkeypatch, stay, draws, values):
    class Draws:
        def random(self, size: int) -> np.ndarray:
            assert size == len(draws)
            return np.array(draws)

    monkeypatch.setattr(pmbs, "rng_of", lambda seed, where: Draws())
    series = random_walk(Walk(mean=4, range=3, period_s=10, step=2, stay=stay, end_s=10 * len(draws) + 5), 0)
    assert series.values == values and series.times_s == tuple(10 * k for k in range(len(draws) + 1))


def test_defaults_of_section_5_4():
    series = random_walk(Walk(), 7)
    assert len(series) == 1 + 1512 and series.times_s[-1] == 1_814_400.0 and series.name == "machines"
    assert series.values[0] == 24 and set(series.values) == {16, 18, 20, 22, 24, 26, 28, 30, 32}
    assert random_walk(Walk(), 7) == series and random_walk(Walk(), 8).values != series.values
    # a longer walk begins like a shorter one
    assert random_walk(Walk(end_s=5e6), 7).values[: len(series)] == series.values


def test_a_walk_of_no_range_stays():
    assert set(random_walk(Walk(mean=5, range=0, end_s=12000), 0).values) == {5.0}


@pytest.mark.parametrize(
    ("act", "message"),
    [
        (lambda: Walk(range=25), "random walk: range must be <= mean, got range 25 and mean 24"),
        (lambda: Walk(period_s=1e-9), "random walk: end_s / period_s must be <= 2000000"),
        (lambda: Synthetic("uniforn"), "synthetic trace: no value of kind 'uniforn'; did you mean 'uniform'?"),
        (lambda: Synthetic(end_s=10), "synthetic trace: the mean length is 0.0891429 s, less than 1 s"),
        (lambda: synthetic(Synthetic(), -1), "synthetic trace: seed must be a whole number >= 0, got -1"),
        (lambda: Pm100Like(jobs=0), "jobs must be"),
        (lambda: Pm100Like(run_spread=-1.0), "run_spread must be"),
        (lambda: Pm100Like(run_spread=0.5), "run_spread 0.5 is more than the quartiles of all jobs allow"),
        (lambda: pm100_like(None, "0"), "seed"),
    ],
)
def test_wrong_parameters(act, message):
    assert message in refusal(act)


# power of jobs --------------------------------------------------------------------------------------------------------


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
    # of the 30,000 at 0.8, 1,849 are long: 1/8 and 5/4 of them at 0.1 and 1.0
    numbers = {0.0: 140_755, 0.1: 126_911, 0.5: 71_533, 0.8: 30_000, 1.0: 2311}
    assert len(table) == pytest.approx(numbers[fraction], rel=0.02)


def test_the_longest_run():
    longest = [
        varcap_table(VarcapLike(jobs=30_000, machines=48, longest_h=h), 5).length.max() / 3600 for h in (24, None)
    ]
    assert 23.5 < longest[0] <= 24 < 120 < longest[1] <= 168


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
