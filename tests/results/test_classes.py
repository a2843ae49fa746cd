"""Failures, waits and slowdowns, also by the length of jobs, and runs in several parts, each worked by hand."""

from __future__ import annotations

import dataclasses
import math
import random
from itertools import pairwise
from pathlib import Path

import pytest

from batwatt.model.series import Series
from batwatt.model.window import Window
from batwatt.model.workload import MIGRATED, WINDOW_OVER, Workload
from batwatt.protocol.workload4 import parse_workload
from batwatt.results import read
from batwatt.results.classes import EDGES_H, RunTimeClass, classes_of, write_classes
from batwatt.results.columns import CLASSES, JOBS, KILLED, SUCCESSFUL
from batwatt.results.figures import Values, rounded
from batwatt.results.metrics import measured
from batwatt.results.run_table import RunTable

WINDOW = Window(100.0, 200.0)
TWO_THEN_ONE = Series((0.0, 150.0), (2.0, 1.0), "machines")
"""Machines of 4 cores: 600 core s in the window."""


def ran(name, submit, start, end, cores=1, state=SUCCESSFUL, metadata=""):
    times = (start, end - start, end, start - submit, end - submit, 1.0)
    numbers = ",".join(f"{value:.6f}" for value in times)
    head = f"{name},w0,p,{submit:.6f},{cores},-1.000000,{int(state == SUCCESSFUL)},{state}"
    return f'{head},{numbers},0,-1.000000,"{metadata}"\n'


def moved(name, submit, start, end, cores=1):
    return ran(name, submit, start, end, cores, KILLED, MIGRATED)


def killed(name, submit, start, end, cores=1):
    return ran(name, submit, start, end, cores, KILLED)


def refused(name, submit, metadata=""):
    return f'{name},w0,p,{submit:.6f},1,-1.000000,0,REJECTED,,,,,,,,,"{metadata}"\n'


def job(name, submit, delay, cores=1, **fields):
    return {"id": name, "subtime": submit, "res": cores, "profile": f"d{delay}", **fields}


def workload(*jobs) -> Workload:
    tasks = {"type": "parallel_homogeneous", "cpu": 4e9, "com": 0}
    names = {row["profile"] for row in jobs}
    profiles = {name: tasks if name == "dtasks" else {"type": "delay", "delay": float(name[1:])} for name in names}
    return parse_workload({"nb_res": 8, "jobs": list(jobs), "profiles": profiles}, "w0", "memory")


@pytest.fixture
def found(tmp_path: Path):
    """Metrics and ledger of rows under 2 machines of 4 cores until 150 s, then 1; jobs of more than 15 s are long."""

    def measure(rows, jobs, window: Window | None = WINDOW, long_s=15.0, capacity=TWO_THEN_ONE):
        (tmp_path / "r_jobs.csv").write_text(",".join(c.name for c in JOBS) + "\n" + "".join(rows))
        return measured(tmp_path / "r", jobs, None, 1e9, capacity=capacity, cores=4, window=window, long_s=long_s)

    return measure


JOBS_BY_HAND = workload(
    job("a", 100, 10, 2), job("b", 100, 40), job("c", 110, 50, 2), job("d", 120, 10), job("e", 130, 20)
)
ROWS_BY_HAND = [
    ran("a", 100, 105, 115, 2),  # waited 5 s, 20 core s
    moved("b", 100, 100, 120),
    ran("b#1", 120, 120, 140),  # with b 40 s from 100 on: waited 0 s, 40 core s
    moved("c", 110, 110, 130, 2),
    killed("c#1", 130, 130, 150, 2),  # with c 40 s and 80 core s lost
    moved("c#2", 150, 160, 190, 2),
    refused("c#3", 190, WINDOW_OVER),  # what is left of c#2 waits: 60 core s are not lost
    killed("d", 120, 120, 125),  # 5 core s lost
    ran("d#1", 125, 150, 160.5),  # waited 30 s; took 0.5 s longer than it should
    moved("e", 130, 130, 140),
    refused("e#1", 140),  # its rest never comes: 10 core s lost
]


def test_by_hand(found):
    metrics, _ = found(ROWS_BY_HAND, JOBS_BY_HAND)
    assert metrics["terminations"] == metrics["killed_power"] == 2  # c#1 d
    assert metrics["migrations"] == 4  # b c c#2 e
    assert metrics["job_failure_rate"] == 2 / 5  # a b d completed
    assert metrics["mean_wait_s"] == (5 + 0 + 30) / 3
    assert metrics["slowdown_rate"] == 1 / 3
    assert metrics["useful_core_s"] == 20 + 40 + 60 + 10.5
    assert metrics["aborted_core_s"] == 80 + 5 + 10
    assert metrics["mean_aborted_time_s"] == (40 + 5 + 10) / 3
    assert (metrics["max_full_speed_slowdown"], metrics["mean_full_speed_slowdown"]) == (
        40.5 / 10,
        pytest.approx((1.5 + 1.0 + 4.05) / 3),
    )
    assert metrics["mean_slowdown"] == pytest.approx((1.5 + 1.0 + (30 + 10.5) / 10.5) / 3)
    # a and d are short
    assert (metrics["goodput_short"], metrics["goodput_long"]) == ((20 + 10.5) / 600, (40 + 60) / 600)
    assert (metrics["job_failure_rate_short"], metrics["job_failure_rate_long"]) == (1 / 3, 1 / 2)
    assert (metrics["mean_wait_short_s"], metrics["mean_wait_long_s"]) == ((5 + 30) / 2, 0.0)
    assert (metrics["terminations_short"], metrics["terminations_long"]) == (1, 1)


@pytest.mark.parametrize(
    ("rows", "useful", "aborted"),
    [
        ([ran("a#1", 120, 130, 140)], 30, 0),
        ([ran("a#1", 120, 130, 240)], 20 + 70, 0),  # goes on at the end
        ([killed("a#1", 120, 130, 240)], 20 + 70, 0),
        ([killed("a#1", 120, 201, 240)], 20, 0),  # not even begun again by then
        ([killed("a#1", 120, 130, 140)], 0, 30),
        ([ran("a#1", 120, 130, 140, 1, "COMPLETED_FAILED")], 0, 0),
        ([ran("a#1", 120, 130, 140, 1, "COMPLETED_WALLTIME_REACHED")], 0, 0),
        ([], 0, 20),  # its rest never came
        ([refused("a#1", 120)], 0, 20),
        ([refused("a#1", 120, WINDOW_OVER)], 20, 0),
        ([moved("a#1", 120, 130, 140), ran("a#2", 140, 150, 160)], 40, 0),
        ([moved("a#1", 120, 130, 140), killed("a#2", 140, 150, 160)], 0, 40),
        ([killed("a#1", 120, 120, 130), moved("a#2", 130, 140, 150), ran("a#3", 150, 150, 180)], 40, 30),
    ],
)
@pytest.mark.parametrize("backwards", [False, True])
def test_the_parts_of_a_run_share_its_fate(found, rows, useful, aborted, backwards):
    """A run from 100 to 120, interrupted there, and what became of its rest."""
    rows = [moved("a", 100, 100, 120), *rows]
    metrics, _ = found(rows[::-1] if backwards else rows, workload(job("a", 100, 60)))
    assert (metrics["useful_core_s"], metrics["aborted_core_s"]) == (useful, aborted)


def test_an_interrupted_run_from_before_the_window(found):
    rows = [moved("a", 50, 60, 110), ran("a#1", 110, 110, 130)]
    metrics, _ = found(rows, workload(job("a", 50, 70)))
    assert (metrics["useful_core_s"], metrics["mean_wait_s"], metrics["max_full_speed_slowdown"]) == (30, 10, 80 / 70)


def test_without_a_window(found):
    metrics, _ = found(ROWS_BY_HAND, JOBS_BY_HAND, None)
    assert (metrics["terminations"], metrics["job_failure_rate"], metrics["useful_core_s"]) == (2, 2 / 5, 130.5)


def test_without_a_capacity_there_is_none_of_it(found):
    metrics, run_table = found(ROWS_BY_HAND, JOBS_BY_HAND, capacity=None)
    assert run_table is None
    assert (metrics["terminations"], metrics["goodput_short"], metrics["slowdown_rate"]) == (None,) * 3
    assert metrics["killed_power"] == 2


def test_nothing_ran(found):
    metrics, run_table = found([], JOBS_BY_HAND)
    assert (metrics["terminations"], metrics["migrations"], metrics["terminations_long"]) == (0, 0, 0)
    assert (metrics["job_failure_rate"], metrics["mean_wait_s"], metrics["slowdown_rate"]) == (None, None, None)
    assert [row.runs for row in classes_of(run_table)] == [0] * 7


def test_a_slowdown_is_of_what_the_workload_says(found):
    jobs = workload(
        job("a", 100, 10, release_s=60, length_s=50),  # what is left takes 10 s
        job("b", 100, 10, release_s=60, length_s=50),
        job("c", 100, "tasks"),
        job("d", 100, "tasks", length_s=5),
    )
    rows = [
        ran("a", 100, 100, 110.0009),  # late by what is printed
        ran("b", 100, 100, 110.0011),
        ran("c", 100, 100, 140),  # nobody says
        ran("d", 100, 100, 105),
    ]
    assert found(rows, jobs)[0]["slowdown_rate"] == 1 / 3
    # a run that starts again takes all 50 s
    again = [
        killed("a", 100, 100, 105),
        ran("a#1", 105, 110, 160),
        killed("b", 100, 100, 105),
        ran("b#1", 105, 110, 161),
    ]
    assert found(again, jobs)[0]["slowdown_rate"] == 1 / 2
    assert found([rows[2]], jobs)[0]["slowdown_rate"] is None


def test_short_and_long(found):
    """A job of exactly `long_s` is short; one of unknown length is as long as its longest run."""
    jobs = workload(job("a", 100, 15), job("b", 100, 15.5), job("c", 100, "tasks"), job("d", 100, "tasks"))
    rows = [
        killed("a", 100, 100, 101), killed("b", 100, 100, 102), ran("c", 100, 100, 115),
        killed("d", 100, 100, 116), ran("d#1", 116, 120, 130), killed("x", 100, 100, 120),
    ]  # fmt: skip
    metrics, _ = found(rows, jobs)
    assert (metrics["terminations_short"], metrics["terminations_long"]) == (1, 3)  # a; b d x
    assert (metrics["mean_wait_short_s"], metrics["mean_wait_long_s"]) == (0.0, 20.0)


@pytest.mark.parametrize("long_s", [0.0, -1.0, math.nan, math.inf])
def test_a_threshold_that_is_none(found, long_s):
    with pytest.raises(ValueError, match="long_s must be > 0 s"):
        found([], JOBS_BY_HAND, long_s=long_s)


# by class ---------------------------------------------------------------------------------------------------------


def test_classes_by_hand(found, tmp_path):
    day = 86_400
    lengths = {"a": 900, "b": 901, "c": 3600, "d": 3601, "e": day, "f": day + 1, "late": 100}
    jobs = workload(*(job(name, 1e6 if name == "late" else 0, length, 2) for name, length in lengths.items()))
    rows = [
        ran("a", 0, 36, 936, 2),
        killed("b", 0, 0, 90, 2),
        killed("b#1", 90, 90, 180, 2),
        ran("b#2", 180, 200, 1101, 2),
        moved("c", 0, 0, 1800, 2),
        ran("c#1", 1800, 1800, 3600, 2),
        killed("d", 0, 0, 1800, 2),
        ran("e", 0, 100, day + 100, 2),
        ran("f", 0, 0, day + 1, 2),
    ]
    _, run_table = found(rows, jobs, Window(0.0, 50_000.0))
    by_hand = {
        (0.0, 0.25): (1, 2 * 900, 1, 1, 0, 0, 2 * 900, 36.0),
        (0.25, 1.0): (2, 2 * 4501, 4, 2, 2, 2 * 180, 2 * 901 + 2 * 3600, (200 + 0) / 2),
        (1.0, 3.0): (1, 2 * 3601, 1, 0, 1, 2 * 1800, 0, None),
        (12.0, 24.0): (1, 2 * day, 1, 0, 0, 0, 2 * 49_900, None),  # still going at 50,000 s
        (24.0, math.inf): (1, 2 * (day + 1), 1, 0, 0, 0, 2 * 50_000, None),
    }
    classes = classes_of(run_table)
    assert [(row.from_h, row.to_h) for row in classes] == list(pairwise(EDGES_H))
    for row in classes:
        none = (0, 0, 0, 0, 0, 0, 0, None)
        jobs_in, core_s, runs, completed, kills, wasted, useful, wait = by_hand.get((row.from_h, row.to_h), none)
        counts = (row.jobs, row.runs, row.completed, row.terminations)
        assert counts == (jobs_in, runs, completed, kills), row
        hours = (row.core_h, row.wasted_core_h, row.useful_core_h)
        assert hours == pytest.approx((core_s / 3600, wasted / 3600, useful / 3600)), row
        assert row.mean_wait_s == wait
    assert [column.name for column in CLASSES] == [field.name for field in dataclasses.fields(RunTimeClass)]
    write_classes(tmp_path / "r", run_table)
    frame = read.table(tmp_path / "r", "classes")
    assert frame["terminations"].tolist() == [0, 2, 1, 0, 0, 0, 0]
    assert frame["to_h"].tolist()[-1] == math.inf and math.isnan(frame["mean_wait_s"][2])


# laws -------------------------------------------------------------------------------------------------------------

INTERRUPTED = ("migrations", "resubmissions")
"""Figures that tell of interruptions."""


def drawn(seed):
    """Jobs at random, and their runs: (job, submission, start, end, cores, state), up to three a job."""
    rng = random.Random(seed)
    jobs, runs = [], []
    for number in range(60):
        name, length, cores = f"j{number}", rng.choice([5, 10, 20, 40]), rng.randrange(1, 4)
        submit = rng.randrange(80, 190)
        jobs.append(job(name, submit, length, cores))
        time = submit
        for attempt in range(rng.randrange(4)):
            start = time + rng.randrange(5)
            time = start + rng.randrange(2, length + 1)
            state = rng.choice([SUCCESSFUL, KILLED, KILLED, "COMPLETED_FAILED"])
            runs.append((name, attempt, submit if attempt == 0 else start, start, time, cores, state))
            if state != KILLED:
                break
    return rng, workload(*jobs), runs


@pytest.mark.parametrize("seed", range(15))
def test_interruptions_change_nothing(found, seed):
    """Runs at random, and the same runs in parts that follow each other at once."""
    rng, jobs, runs = drawn(seed)
    whole, parts, count = [], [], {}
    for name, attempt, submit, start, end, cores, state in runs:
        whole.append(ran(f"{name}#{attempt}" if attempt else name, submit, start, end, cores, state))
        cuts = sorted(rng.sample(range(start + 1, end), min(rng.randrange(3), end - start - 1)))
        for low, high in zip([start, *cuts], [*cuts, end], strict=True):
            number = count.get(name, 0)
            count[name] = number + 1
            label, since = (f"{name}#{number}" if number else name), submit if low == start else low
            last = high == end
            row = ran(label, since, low, high, cores, state) if last else moved(label, since, low, high, cores)
            parts.append(row)
    rng.shuffle(parts)
    one, other = found(whole, jobs), found(parts, jobs)
    assert other[0]["migrations"] > 0
    figures, same = ({**rounded(each[0]), **dict.fromkeys(INTERRUPTED)} for each in (one, other))
    assert figures == same
    assert classes_of(one[1]) == classes_of(other[1])


@pytest.mark.parametrize("seed", range(15))
def test_classes_add_up(found, seed):
    _, jobs, runs = drawn(seed)
    rows = [ran(f"{n}#{k}" if k else n, *times) for n, k, *times in runs]
    metrics, run_table = found(rows, jobs)
    classes = classes_of(run_table)
    assert sum(row.terminations for row in classes) == metrics["terminations"]
    assert sum(row.useful_core_h for row in classes) * 3600 == pytest.approx(metrics["useful_core_s"])
    assert sum(row.wasted_core_h for row in classes) * 3600 == pytest.approx(metrics["aborted_core_s"])
    assert sum(row.completed for row in classes) == run_table.completed.sum()
    assert sum(row.jobs for row in classes) == len(jobs.jobs)
    _halves_add_up(metrics, run_table)


def _halves_add_up(metrics: Values, run_table: RunTable) -> None:
    assert metrics["goodput_short"] + metrics["goodput_long"] == pytest.approx(metrics["goodput"])
    assert metrics["terminations_short"] + metrics["terminations_long"] == metrics["terminations"]
    completed = int(run_table.completed.sum())
    assert metrics["job_failure_rate"] == metrics["terminations"] / (metrics["terminations"] + completed)
