"""Goodput, failures, waits and slowdowns of a window, also by the length of jobs, each worked by hand."""

from __future__ import annotations

import math
import random
from itertools import pairwise

import pytest
from rows_of_runs import job, killed, moved, ran, refused, workload

from batwatt.errors import InputError
from batwatt.model.attempt import REMAINDER, WINDOW_OVER
from batwatt.model.signal import Window
from batwatt.results import run_files
from batwatt.results.figures import METRICS, rounded
from batwatt.results.groups import EDGES_H, classes_of, write_classes
from batwatt.results.run_files import KILLED, SUCCESSFUL
from batwatt.results.tables import summary, table_text

NAMES = [metric.name for metric in METRICS]
FIGURES = tuple(NAMES[NAMES.index("goodput") : NAMES.index("aborted_core_s") + 1])


@pytest.fixture
def figures(measured):
    return lambda *args, **options: measured(*args, **options)[0]


JOBS_BY_HAND = workload(
    job("a", 100, 10, 2, release_s=60, length_s=50),  # has run since 60
    job("b", 110, 20, 4),
    job("c", 120, 100),
    job("d", 150, 10),
    job("e", 155, 10),
    job("f", 190, 10.5, 3),
    job("g", 200.5, 10),
)
ROWS_BY_HAND = [
    ran("a", 100, 100, 110, 2),  # 20 core s, stretch (110 - 60) / 50 = 1
    ran("b", 110, 110, 120, 4, KILLED),  # 40 core s lost, 10 s
    ran("b#1", 120, 130, 150, 4),  # 80 core s, stretch (150 - 110) / 20 = 2
    refused("e", 155),  # can never run
    ran("d", 150, 160, 165, 1, KILLED),  # 5 core s lost, 5 s
    ran("f", 190, 190, 200.5, 3),  # 30 core s until 200
    refused("g", 200.5, WINDOW_OVER),  # submitted after the window
    ran("c", 120, 130, 201, 1, KILLED),  # 70 core s until 200
    refused("d#1", 165, WINDOW_OVER),
]


def test_a_window_by_hand(figures):
    metrics = figures(ROWS_BY_HAND, JOBS_BY_HAND)
    assert {name: metrics[name] for name in FIGURES} == {
        "capacity_core_s": 4 * (2 * 50 + 1 * 50),
        "useful_core_s": 20 + 80 + 30 + 70,
        "aborted_core_s": 40 + 5,
        "goodput": (20 + 80) / 600,  # of a and b, which completed
        "goodput_with_running": 200 / 600,
        "aborted_volume": 45 / 600,
        "mean_aborted_time_s": 7.5,
        "completed_fraction": 2 / 6,  # a and b of a to f
    }
    assert (metrics["max_full_speed_slowdown"], metrics["mean_full_speed_slowdown"]) == (2.0, 1.5)
    counts = (metrics["jobs_finished"], metrics["killed_power"], metrics["jobs_rejected"], metrics["jobs_unfinished"])
    assert counts == (2, 2, 1, 3)  # a b; b d; e; c d f
    assert (metrics["jobs_total"], metrics["resubmissions"], metrics["makespan_s"]) == (7, 2, 201.0)
    assert metrics["mean_slowdown"] == (1 + (20 + 20) / 20) / 2
    # flops are cores x s: of a b out of a to g
    assert metrics["finished_work_fraction"] == pytest.approx((20 + 80) / (20 + 80 + 100 + 10 + 10 + 31.5 + 10))


def test_a_job_that_had_run_before_counts_with_its_remainder_once_it_starts_again_as_published(figures):
    # a has run since 60 and 10 s are left; it is killed after 5 of them, and runs again from zero, all 50 s
    # b has run since 90 and 30 s are left; it is killed after 5, and again after 20; then it runs on at the end
    jobs = workload(
        job("a", 100, 10, 2, release_s=60, length_s=50), job("b", 100, 30, release_s=90, length_s=40), job("c", 160, 10)
    )

    def rows(metadata):
        return [
            ran("a", 100, 100, 105, 2, KILLED), ran("a#1", 105, 110, 160, 2, metadata=metadata),
            ran("b", 100, 100, 105, 1, KILLED), ran("b#1", 105, 140, 160, 1, KILLED, metadata),
            ran("b#2", 160, 170, 201, 1, KILLED, metadata), ran("c", 160, 160, 170, 1),
        ]  # fmt: skip

    whole, left = figures(rows(""), jobs), figures(rows(REMAINDER), jobs)
    assert whole["useful_core_s"] == 100 + 30 + 10
    assert left["useful_core_s"] == 20 + 30 + 10
    assert left["goodput_with_running"] == 60 / 600
    assert left["goodput"] == (20 + 10) / 600  # b runs on
    # nothing else is of less
    assert left["aborted_core_s"] == whole["aborted_core_s"] == 10 + 5 + 20
    assert left["max_full_speed_slowdown"] == whole["max_full_speed_slowdown"] == (160 - 60) / 50


@pytest.mark.parametrize(
    ("start", "end", "state", "useful", "aborted", "unfinished"),
    [
        (50, 100, KILLED, 0, None, 0),
        (50, 230, KILLED, 100, 0, 1),  # over all of it
        (180, 200.0009, KILLED, 0, 20, 0),
        (180, 200.0011, SUCCESSFUL, 20, 0, 1),  # still going at the end
        (180, 190, "COMPLETED_WALLTIME_REACHED", 0, 0, 0),  # neither useful nor aborted
        (200, 230, SUCCESSFUL, 0, 0, 1),  # begins at the end
    ],
)
def test_one_run(figures, start, end, state, useful, aborted, unfinished):
    """Seconds of the run that are useful or aborted; aborted None: a kill that is not of the window."""
    metrics = figures([ran("a", 0, start, end, 3, state)], workload(job("a", 0, 180, 3)))
    assert metrics["useful_core_s"] == pytest.approx(3 * useful, abs=1e-9)
    assert metrics["aborted_core_s"] == pytest.approx(3 * (aborted or 0), abs=1e-9)
    killed = state == KILLED and not unfinished
    assert metrics["mean_aborted_time_s"] == (pytest.approx(aborted) if killed and aborted is not None else None)
    assert (metrics["killed_power"], metrics["jobs_unfinished"]) == (killed, unfinished)
    stretches = state == SUCCESSFUL and not unfinished and end > 100
    assert metrics["max_full_speed_slowdown"] == (min(end, 200) / 180 if stretches else None)
    assert metrics["completed_fraction"] == stretches


@pytest.mark.parametrize(
    ("field", "value", "bound"), [("length_s", 0, ">"), ("length_s", True, ">"), ("release_s", -0.5, ">=")]
)
def test_bad_fields(figures, field, value, bound):
    message = f"memory: job 'w0!a': '{field}' must be {bound} 0 s, got {value}; correct it or leave it out"
    with pytest.raises(InputError, match=message):
        figures([ran("a", 0, 150, 160)], workload(job("a", 0, 10, **{field: value})))


@pytest.mark.parametrize(
    ("profile", "fields", "stretch"),
    [
        (7, {}, (150 - 110) / 7),
        (7, {"release_s": 80, "length_s": 20}, (150 - 80) / 20),
        ("tasks", {}, (150 - 110) / 4),  # 4e9 flops at 1e9 flop/s, though it took 25 s
        ("tasks", {"length_s": 10}, (150 - 110) / 10),
        ("nothing", {}, 3.0),  # of no length: the mean is that of the job made up
    ],
)
def test_release_and_length(figures, profile, fields, stretch):
    rows = [ran("a", 110, 112, 120, 1, KILLED), ran("a#1", 120, 121, 122, 1, KILLED), ran("a#2", 122, 125, 150)]
    # the scheduler made up `x`, of which nothing is known: no stretch
    rows += [ran("x", 110, 112, 120, 1, KILLED), ran("x#1", 120, 130, 140), ran("c", 100, 120, 130)]
    metrics = figures(rows, workload(job("a", 110, profile, **fields), job("c", 100, 10)))
    assert metrics["max_full_speed_slowdown"] == pytest.approx(max(stretch, 3.0), rel=1e-12)
    assert metrics["mean_full_speed_slowdown"] == pytest.approx((stretch + 3.0) / 2, rel=1e-12)
    assert metrics["completed_fraction"] == 1.0


def test_summary_of_runs_under_a_capacity(figures):
    metrics = dict.fromkeys(NAMES) | figures(ROWS_BY_HAND, JOBS_BY_HAND)
    text = table_text(summary("first fit [x]", metrics))
    assert " ".join(text.splitlines()[-1].split()) == "first fit [x] 16.67 50.00 2 2 0.00 1.50 1.50 2.00 7.50 33.3"
    assert "goodput" in text and "kWh" not in text
    assert "kWh" in table_text(summary("power", metrics | {"capacity_core_s": None}))


JOBS_OF_CLASSES = workload(
    job("a", 100, 10, 2), job("b", 100, 40), job("c", 110, 50, 2), job("d", 120, 10), job("e", 130, 20)
)
ROWS_OF_CLASSES = [
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


def test_by_hand(measured):
    metrics, _ = measured(ROWS_OF_CLASSES, JOBS_OF_CLASSES)
    assert metrics["terminations"] == metrics["killed_power"] == 2  # c#1 d
    assert metrics["migrations"] == 4  # b c c#2 e
    assert metrics["job_failure_rate"] == 2 / 5  # a b d completed
    assert metrics["mean_wait_s"] == (5 + 0 + 30) / 3
    assert metrics["slowdown_rate"] == 1 / 3
    assert metrics["useful_core_s"] == 20 + 40 + 60 + 10  # d#1 does 10 s of work
    assert metrics["aborted_core_s"] == 80 + 5 + 10
    assert metrics["mean_aborted_time_s"] == (40 + 5 + 10) / 3
    assert (metrics["max_full_speed_slowdown"], metrics["mean_full_speed_slowdown"]) == (
        40.5 / 10,
        pytest.approx((1.5 + 1.0 + 4.05) / 3),
    )
    assert metrics["mean_slowdown"] == pytest.approx((1.5 + 1.0 + (30 + 10.5) / 10.5) / 3)
    # a and d are short
    assert (metrics["goodput_short"], metrics["goodput_long"]) == ((20 + 10) / 600, 40 / 600)
    assert (metrics["job_failure_rate_short"], metrics["job_failure_rate_long"]) == (1 / 3, 1 / 2)
    assert (metrics["mean_wait_short_s"], metrics["mean_wait_long_s"]) == ((5 + 30) / 2, 0.0)
    assert (metrics["terminations_short"], metrics["terminations_long"]) == (1, 1)


def test_a_slowdown_is_of_what_the_workload_says(measured):
    jobs = workload(
        job("a", 100, 10, release_s=60, length_s=50),  # what is left takes 10 s
        job("b", 100, 10, release_s=60, length_s=50),
        job("c", 100, "talks"),
        job("d", 100, "tasks", length_s=5),
    )
    rows = [
        ran("a", 100, 100, 110.0009),  # late by what is printed
        ran("b", 100, 100, 110.0011),
        ran("c", 100, 100, 140),  # nobody says
        ran("d", 100, 100, 104),
    ]
    assert measured(rows, jobs)[0]["slowdown_rate"] == 1 / 3
    # a run that starts again takes all 50 s
    again = [killed("a", 100, 100, 105), ran("a#1", 105, 110, 160)]
    again += [killed("b", 100, 100, 105), ran("b#1", 105, 110, 161)]
    assert measured(again, jobs)[0]["slowdown_rate"] == 1 / 2
    assert measured([rows[2]], jobs)[0]["slowdown_rate"] is None


def test_flops_are_as_long_as_a_delay_of_their_time_at_full_speed(measured):
    """Jobs of 4 s: on a fast host, a host of half the speed, one of a quarter, the last killed and run again."""
    rows = [ran("a", 100, 100, 104), ran("b", 100, 100, 108), killed("c", 100, 100, 116), ran("c#1", 116, 120, 136)]
    flops, delays = (measured(rows, workload(*(job(name, 100, of) for name in "abc"))) for of in ("tasks", 4))
    assert flops[0] == delays[0] and classes_of(flops[1]) == classes_of(delays[1])
    assert flops[0]["useful_core_s"] == 4 + 4 + 4 and flops[0]["slowdown_rate"] == 2 / 3
    assert flops[0]["mean_full_speed_slowdown"] == pytest.approx((4 + 8 + 36) / 4 / 3)
    assert flops[0]["min_yield"] == pytest.approx(4 / 36)


def test_overhead_is_taken_off_once(measured):
    """A run of 16 s with 8 s of overhead does the 8 s of its work."""
    metrics, _ = measured([ran("a", 100, 100, 116, metadata="overhead_s=8")], workload(job("a", 100, 8)))
    assert metrics["useful_core_s"] == 8


def test_short_and_long(measured):
    """A job of exactly `long_s` is short; one of unknown length is as long as its longest run."""
    jobs = workload(job("a", 100, 15), job("b", 100, 15.5), job("c", 100, "talks"), job("d", 100, "talks"))
    rows = [
        killed("a", 100, 100, 101), killed("b", 100, 100, 102), ran("c", 100, 100, 115),
        killed("d", 100, 100, 116), ran("d#1", 116, 120, 130), killed("x", 100, 100, 120),
    ]  # fmt: skip
    metrics, _ = measured(rows, jobs)
    assert (metrics["terminations_short"], metrics["terminations_long"]) == (1, 3)  # a; b d x
    assert (metrics["mean_wait_short_s"], metrics["mean_wait_long_s"]) == (0.0, 20.0)


# by class ---------------------------------------------------------------------------------------------------------


def test_classes_by_hand(measured, tmp_path):
    day = 86_400
    lengths = {"a": 900, "b": 901, "c": 3600, "d": 3601, "e": day, "f": day + 1, "late": 100}
    jobs = workload(*(job(name, 1e6 if name == "late" else 0, length, 2) for name, length in lengths.items()))
    rows = [
        ran("a", 0, 36, 936, 2), killed("b", 0, 0, 90, 2), killed("b#1", 90, 90, 180, 2), ran("b#2", 180, 200, 1101, 2),
        moved("c", 0, 0, 1800, 2), ran("c#1", 1800, 1800, 3600, 2), killed("d", 0, 0, 1800, 2),
        ran("e", 0, 100, day + 100, 2), ran("f", 0, 0, day + 1, 2),
    ]  # fmt: skip
    _, run_table = measured(rows, jobs, Window(0.0, 50_000.0))
    by_hand = {
        (0.0, 0.25): (1, 2 * 900, 1, 1, 0, 0, 2 * 900, 36.0),
        (0.25, 1.0): (2, 2 * 4501, 4, 2, 2, 2 * 180, 2 * 901 + 2 * 3600, (200 + 0) / 2),
        (1.0, 3.0): (1, 2 * 3601, 1, 0, 1, 2 * 1800, 0, None),
        (12.0, 24.0): (1, 2 * day, 1, 0, 0, 0, 2 * 49_900, None),  # still going at 50,000 s
        (24.0, math.inf): (1, 2 * (day + 1), 1, 0, 0, 0, 2 * 50_000, None),
    }
    classes = classes_of(run_table)
    assert [(row["from_h"], row["to_h"]) for row in classes] == list(pairwise(EDGES_H))
    names = ("jobs", "core_h", "runs", "completed", "terminations", "wasted_core_h", "useful_core_h", "mean_wait_s")
    for row in classes:
        expected = by_hand.get((row["from_h"], row["to_h"]), (0, 0, 0, 0, 0, 0, 0, None))
        units = [3600 if name.endswith("core_h") else 1 for name in names]
        figures = [value / unit if value else value for value, unit in zip(expected, units, strict=True)]
        assert [row[name] for name in names] == [None if one is None else pytest.approx(one) for one in figures], row
    write_classes(tmp_path / "r", run_table)
    frame = run_files.table(tmp_path / "r", "classes")
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


@pytest.mark.parametrize("seed", range(5))
def test_interruptions_change_nothing(measured, seed):
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
    one, other = measured(whole, jobs), measured(parts, jobs)
    assert other[0]["migrations"] > 0
    figures, same = ({**rounded(each[0]), **dict.fromkeys(INTERRUPTED)} for each in (one, other))
    assert figures == same
    assert classes_of(one[1]) == classes_of(other[1])


@pytest.mark.parametrize("seed", range(5))
def test_classes_add_up(measured, seed):
    _, jobs, runs = drawn(seed)
    rows = [ran(f"{n}#{k}" if k else n, *times) for n, k, *times in runs]
    metrics, run_table = measured(rows, jobs)
    classes = classes_of(run_table)
    assert sum(row["terminations"] for row in classes) == metrics["terminations"]
    assert sum(row["useful_core_h"] for row in classes) * 3600 == pytest.approx(metrics["useful_core_s"])
    assert sum(row["wasted_core_h"] for row in classes) * 3600 == pytest.approx(metrics["aborted_core_s"])
    assert sum(row["completed"] for row in classes) == run_table.completed.sum()
    assert sum(row["jobs"] for row in classes) == len(jobs.jobs)
    assert metrics["goodput_short"] + metrics["goodput_long"] == pytest.approx(metrics["goodput"])
    assert metrics["terminations_short"] + metrics["terminations_long"] == metrics["terminations"]
    completed = int(run_table.completed.sum())
    assert metrics["job_failure_rate"] == metrics["terminations"] / (metrics["terminations"] + completed)
