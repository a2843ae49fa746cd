"""GAIA as papers/carbon re-enacts it, against its own results (golden/README.md) and by hand: hours of 720 ticks."""

from __future__ import annotations

import csv
from functools import cache
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from batwatt.model.phases import constant
from batwatt.systems.carbon.execution import ShiftJob
from papers.carbon import gaia

GOLDEN = Path(__file__).parent / "golden"
SHARED = Path(__file__).resolve().parents[2].parent / "shared" / "data"
PAI, GERMAN = SHARED / "jobs" / "pai_1k.csv", SHARED / "carbon" / "DE-2024-hourly.csv"
FLAT_LATER = [300.0, 200.0, 100.0, 400.0, 50.0, *[500.0] * 40]


def rows_of(path: Path) -> list[dict[str, str]]:
    with path.open() as file:
        return list(csv.DictReader(file))


def jobs_of(rows: list[dict[str, str]]) -> list[ShiftJob]:
    return [
        ShiftJob(str(i), float(row["arrival_time"]), constant(float(row["length"]), 1.0), int(row["cpus"]))
        for i, row in enumerate(rows)
    ]


@cache
def case(name: str) -> tuple[list[ShiftJob], list[float]]:
    if name == "pai_1k":
        if not PAI.exists() or not GERMAN.exists():
            pytest.skip("no pai_1k or series in ../shared/data")
        return jobs_of(rows_of(PAI)), [float(row["carbon_intensity_avg"]) for row in rows_of(GERMAN)]
    rows = [row for row in rows_of(GOLDEN / "gaia_jobs.csv") if row["set"] == name]
    return jobs_of(rows), [float(row["g_per_kwh"]) for row in rows_of(GOLDEN / "gaia_signal.csv")]


def run(row: dict[str, str]) -> gaia.Outcome:
    waits = tuple(float(hours) for hours in row["wait"].split("x"))
    return gaia.simulate(*case(row["jobs"]), row["policy"], waits)


RUNS = rows_of(GOLDEN / "gaia_runs.csv")
WAITING = [name for name in gaia.POLICIES if name != "immediate"]


@pytest.mark.parametrize("jobs", sorted({row["jobs"] for row in RUNS}))
@pytest.mark.parametrize("policy", WAITING)
def test_runs_are_those_of_gaia(policy, jobs):
    some = [row for row in RUNS if (row["policy"], row["jobs"]) == (policy, jobs)]
    assert len(some) >= 2
    for row in some:
        outcome = run(row)
        table = outcome.segments
        assert len(table) == int(row["rows"])
        assert int(((table["job"].astype(int) + 1) * (table["begin_s"] / 5)).sum()) == int(row["starts_by_id"])
        assert outcome.metrics()["carbon_g"] == pytest.approx(float(row["carbon_g"]), abs=2e-9)


def test_rows_are_those_of_gaia():
    theirs = rows_of(GOLDEN / "gaia_rows.csv")
    table = run({"jobs": "set2", "policy": "suspend-resume", "wait": "2x5"}).segments
    assert table["job"].tolist() == [row["id"] for row in theirs]
    assert (table["begin_s"] / 5).tolist() == [float(row["start"]) for row in theirs]
    assert (table["work_s"] / 5).tolist() == [float(row["length"]) for row in theirs]
    assert table["carbon_g"].tolist() == pytest.approx([float(row["carbon_g"]) for row in theirs], abs=1e-8)


def job(arrival_s: float, length_s: float, cpus: int = 1, watts: float = 1.0) -> ShiftJob:
    return ShiftJob("0", arrival_s, constant(length_s, watts), cpus)


def begins_h(policy, jobs, hourly, wait_h):
    return (gaia.simulate(jobs, hourly, policy, wait_h).segments["begin_s"] / 3600).tolist()


def test_lowest_knows_each_tick_but_oracle_counts_hours_from_the_arrival():
    late = [job(1800, 3600)]
    # of the ticks from 0.5 h to 2.5 h the first at 100 g/kWh is that of 2 h
    assert begins_h("lowest", late, FLAT_LATER, (2.0,)) == [2.0]
    # means over the hours from 0.5, 1.5 and 2.5 h: 250, 150, 250
    outcome = gaia.simulate(late, FLAT_LATER, "oracle", (2.0,))
    assert outcome.segments["begin_s"].tolist() == [1.5 * 3600]
    assert outcome.metrics()["carbon_g"] == pytest.approx(0.150, rel=1e-12)
    assert outcome.metrics()["mean_total_wait_s"] == 3600.0


def test_the_first_minimum_wins():
    signal = [300.0, 200.0, 250.0, 200.0, *[900.0] * 30]
    for policy in ("lowest", "oracle", "cst-oracle", "waiting"):
        assert begins_h(policy, [job(0, 3600)], signal, (3.0,)) == [1.0]


def test_expected_lengths_with_two_waits_and_with_one():
    signal = [300.0, 290.0, 280.0, 100.0, 100.0, 900.0, 800.0, 100.0, *[900.0] * 30]
    jobs = [job(0, 7200), job(0, 14400)]
    # the mean of the long class is 3 h: least from 2 h on, where the job of 2 h alone would start at 3 h
    assert begins_h("waiting", jobs, signal, (0.0, 5.0))[0] == 2.0
    assert begins_h("oracle", jobs, signal, (0.0, 5.0))[0] == 3.0
    # one wait: 2 ticks are expected
    assert begins_h("waiting", [job(0, 14400)], signal, (5.0,)) == [3.0]
    # 2 h exactly count in the means of both classes, and wait as long jobs
    tasks = gaia._tasks([job(0, 3600), job(0, 7200), job(0, 10800)], (6.0, 24.0))
    assert [task.expected for task in tasks] == [1080, 1800, 1800]
    assert [task.wait for task in tasks] == [6 * 720, 24 * 720, 24 * 720]


def test_times_are_cut_to_ticks_and_mean_power_is_charged():
    outcome = gaia.simulate([job(68, 1004, cpus=3, watts=50.0)], [720.0] * 30, "immediate")
    assert outcome.segments[["arrival_s", "begin_s", "end_s"]].to_numpy().tolist() == [[65.0, 65.0, 1065.0]]
    assert outcome.metrics()["carbon_g"] == pytest.approx(150 * 200 * 0.001, rel=1e-12)
    assert outcome.metrics()["energy_j"] == 150_000.0


@pytest.mark.parametrize("seed", range(10))
def test_the_threshold_is_that_of_a_walk_over_ticks(seed):
    rng = np.random.default_rng(seed)
    ticks = np.repeat(rng.choice([100.0, 200.0, 300.0, 333.3], size=40), gaia.HOUR)
    task = gaia.Task(int(rng.integers(0, 4000)), int(rng.integers(1, 4000)), 1, int(rng.integers(0, 9000)), 0)
    bound = np.percentile(ticks[task.submit : task.submit + gaia.DAY], 30.0)
    left, patience, ran = task.length, task.wait, []
    for tick in range(task.submit, task.submit + task.length + task.wait):
        if left and (ticks[tick] < bound or not patience):
            ran.append(tick)
            left -= 1
        elif left:
            patience -= 1
    pieces = gaia.suspend_resume_threshold(task, ticks)
    assert [tick for begin, length in pieces for tick in range(begin, begin + length)] == ran
    assert all(sum(before) < after for before, (after, _) in pairwise(pieces))


@pytest.mark.parametrize(
    ("policy", "length_s"), [("oracle", 7200), ("immediate", 7200), ("suspend-resume", 3600), ("lowest", 11000)]
)
def test_jobs_that_stop_gaia(policy, length_s):
    with pytest.raises(ValueError, match=r"job 0: .* signal"):
        gaia.simulate([job(3600, length_s)], [100.0, 200.0, 300.0], policy, (2.0,))


def test_jobs_enter_by_the_order_of_the_file():
    jobs = [job(7200, 3600), job(0, 3600)]
    assert begins_h("immediate", jobs, [100.0] * 30, (0.0,)) == [2.0, 2.0]
