"""Goodput, stretches and aborted work of a window, each worked by hand."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from batwatt.errors import InputError
from batwatt.model.series import Series
from batwatt.model.window import Window
from batwatt.model.workload import REMAINDER, WINDOW_OVER, Workload
from batwatt.protocol.workload4 import parse_workload
from batwatt.results.columns import JOBS, KILLED, SUCCESSFUL
from batwatt.results.figures import METRICS, Values
from batwatt.results.goodput import capacity_core_s
from batwatt.results.metrics import measured
from batwatt.results.summary import summary, table_text

HEADER = ",".join(column.name for column in JOBS) + "\n"
REFERENCE = 1e9
WINDOW = Window(100.0, 200.0)
TWO_THEN_ONE = Series((0.0, 150.0), (2.0, 1.0), "machines")
NAMES = [metric.name for metric in METRICS]
FIGURES = tuple(NAMES[NAMES.index("goodput") : NAMES.index("aborted_core_s") + 1])


def ran(job, submit, start, end, cores=1, state=SUCCESSFUL, metadata=""):
    """A row of a run of `cores` cores from `start` to `end`."""
    dates = (start, end - start, end, start - submit, end - submit, 1.0)
    numbers = ",".join(f"{value:.6f}" for value in dates)
    tail = f'{numbers},0,-1.000000,"{metadata}"\n'
    return f"{job},w0,p,{submit:.6f},{cores},-1.000000,{int(state == SUCCESSFUL)},{state},{tail}"


def refused(job, submit, metadata=""):
    return f'{job},w0,p,{submit:.6f},1,-1.000000,0,REJECTED,,,,,,,,,"{metadata}"\n'


def job(name, submit, delay, cores=1, **fields):
    return {"id": name, "subtime": submit, "res": cores, "profile": f"d{delay}", **fields}


def workload(*jobs) -> Workload:
    delays = [row["profile"] for row in jobs if row["profile"].startswith("d")]
    profiles = {name: {"type": "delay", "delay": float(name[1:])} for name in delays} | {
        "tasks": {"type": "parallel_homogeneous", "cpu": 4e9, "com": 0},
        "nothing": {"type": "parallel_homogeneous", "cpu": 0, "com": 0},
        "d7": {"type": "delay", "delay": 7},
        "both": {"type": "composed", "seq": ["d7", "tasks"], "repeat": 2},
    }
    return parse_workload({"nb_res": 8, "jobs": list(jobs), "profiles": profiles}, "w0", "memory")


@pytest.fixture
def figures(tmp_path: Path):
    """The metrics of rows under 2 machines of 4 cores until 150 s, then 1, in [100, 200]."""

    def of(rows, jobs, window=WINDOW, capacity=TWO_THEN_ONE, cores=4) -> Values:
        (tmp_path / "r_jobs.csv").write_text(HEADER + "".join(rows))
        return measured(tmp_path / "r", jobs, None, REFERENCE, capacity=capacity, cores=cores, window=window)[0]

    return of


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
        "goodput": 200 / 600,
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

    def rows(told):
        return [
            ran("a", 100, 100, 105, 2, KILLED),
            ran("a#1", 105, 110, 160, 2, metadata=told),
            ran("b", 100, 100, 105, 1, KILLED),
            ran("b#1", 105, 140, 160, 1, KILLED, told),
            ran("b#2", 160, 170, 201, 1, KILLED, told),
            ran("c", 160, 160, 170, 1),
        ]

    whole, left = figures(rows(""), jobs), figures(rows(REMAINDER), jobs)
    assert whole["useful_core_s"] == 100 + 30 + 10
    assert left["useful_core_s"] == 20 + 30 + 10
    assert left["goodput"] == 60 / 600
    # nothing else is of less
    assert left["aborted_core_s"] == whole["aborted_core_s"] == 10 + 5 + 20
    assert left["max_full_speed_slowdown"] == whole["max_full_speed_slowdown"] == (160 - 60) / 50


def test_without_a_window_it_is_the_whole_run(figures):
    metrics = figures(ROWS_BY_HAND, JOBS_BY_HAND, None)
    # 2 machines until 150, 1 until 201
    assert metrics["capacity_core_s"] == 4 * (2 * 150 + 51)
    assert metrics["useful_core_s"] == 20 + 80 + 31.5
    assert metrics["aborted_core_s"] == 40 + 5 + 71
    assert metrics["mean_aborted_time_s"] == (10 + 5 + 71) / 3
    assert (metrics["max_full_speed_slowdown"], metrics["mean_full_speed_slowdown"]) == (2.0, 4 / 3)
    assert metrics["completed_fraction"] == 3 / 7
    counts = (metrics["jobs_finished"], metrics["killed_power"], metrics["jobs_rejected"], metrics["jobs_unfinished"])
    assert counts == (3, 3, 1, 2)  # only who waited is told by the rows


def test_without_a_capacity_only_the_jobs_are_counted(figures):
    metrics = figures(ROWS_BY_HAND, JOBS_BY_HAND, capacity=None)
    assert [metrics[name] for name in FIGURES] == [None] * 7
    assert (metrics["jobs_finished"], metrics["killed_power"], metrics["jobs_unfinished"]) == (2, 2, 3)


@pytest.mark.parametrize(
    ("start", "end", "state", "useful", "aborted", "unfinished"),
    [
        (50, 80, SUCCESSFUL, 0, 0, 0),  # before the window
        (50, 80, KILLED, 0, None, 0),
        (50, 100, KILLED, 0, None, 0),
        (50, 130, SUCCESSFUL, 30, 0, 0),  # into it
        (50, 130, KILLED, 0, 30, 0),
        (50, 230, KILLED, 100, 0, 1),  # over all of it
        (180, 200, SUCCESSFUL, 20, 0, 0),  # to its end
        (180, 200, KILLED, 0, 20, 0),
        (180, 200.000001, SUCCESSFUL, 20, 0, 0),  # late by what is printed
        (180, 200.0009, KILLED, 0, 20, 0),
        (180, 200.0011, SUCCESSFUL, 20, 0, 1),  # still going at the end
        (180, 200.0011, KILLED, 20, 0, 1),
        (180, 230, "COMPLETED_WALLTIME_REACHED", 20, 0, 1),
        (180, 190, "COMPLETED_WALLTIME_REACHED", 0, 0, 0),  # neither useful nor aborted
        (180, 190, "COMPLETED_FAILED", 0, 0, 0),
        (200, 230, SUCCESSFUL, 0, 0, 1),  # begins at the end
        (200.5, 200.75, KILLED, 0, 0, 1),  # begins after it
        (150, 150, KILLED, 0, 0, 0),
    ],
)
def test_one_run(figures, start, end, state, useful, aborted, unfinished):
    """Seconds of the run that are useful or aborted; aborted None: a kill that is not of the window."""
    metrics = figures([ran("a", 0, start, end, 3, state)], workload(job("a", 0, 30, 3)))
    assert metrics["useful_core_s"] == pytest.approx(3 * useful, abs=1e-9)
    assert metrics["aborted_core_s"] == pytest.approx(3 * (aborted or 0), abs=1e-9)
    killed = state == KILLED and not unfinished
    assert metrics["mean_aborted_time_s"] == (pytest.approx(aborted) if killed and aborted is not None else None)
    assert (metrics["killed_power"], metrics["jobs_unfinished"]) == (killed, unfinished)
    stretches = state == SUCCESSFUL and not unfinished and end > 100
    assert metrics["max_full_speed_slowdown"] == (min(end, 200) / 30 if stretches else None)
    assert metrics["completed_fraction"] == stretches


@pytest.mark.parametrize(
    ("profile", "fields", "stretch"),
    [
        ("d7", {}, (150 - 110) / 7),
        ("d7", {"release_s": 80, "length_s": 20}, (150 - 80) / 20),
        ("d7", {"release_s": 0}, 150 / 7),
        ("d7", {"length_s": 12.5}, (150 - 110) / 12.5),
        ("tasks", {}, (150 - 110) / 4),  # 4e9 flops at 1e9 flop/s, though it took 25 s
        ("both", {}, (150 - 110) / 22),  # (7 + 4) s, twice
        ("tasks", {"length_s": 10}, (150 - 110) / 10),
    ],
)
def test_release_and_length(figures, profile, fields, stretch):
    one = {"id": "a", "subtime": 110, "res": 1, "profile": profile, **fields}
    rows = [ran("a", 110, 112, 120, 1, KILLED), ran("a#1", 120, 121, 122, 1, KILLED), ran("a#2", 122, 125, 150)]
    assert figures(rows, workload(one))["max_full_speed_slowdown"] == pytest.approx(stretch, rel=1e-12)


def test_stretches_of_jobs_made_up_and_of_no_length(figures):
    jobs = workload(job("a", 100, 10), {"id": "b", "subtime": 100, "res": 1, "profile": "nothing"}, job("c", 100, 10))
    made = [ran("x", 110, 112, 120, 1, KILLED), ran("x#1", 120, 130, 140)]
    metrics = figures([ran("a", 100, 100, 110), ran("b", 100, 105, 105), ran("c", 100, 120, 130), *made], jobs)
    assert (metrics["max_full_speed_slowdown"], metrics["mean_full_speed_slowdown"], metrics["completed_fraction"]) == (
        3.0,
        2.0,
        1.0,
    )


@pytest.mark.parametrize("value", [0, -1, "long", None, True, [5]])
def test_a_length_that_is_none(figures, value):
    message = r"memory: job 'w0!a': 'length_s' must be > 0 s, got .*; correct it or leave it out"
    with pytest.raises(InputError, match=message):
        figures([ran("a", 0, 150, 160)], workload(job("a", 0, 10, length_s=value)))


def test_a_release_that_is_none(figures):
    with pytest.raises(InputError, match=r"'release_s' must be >= 0 s, got -0\.5"):
        figures([ran("a", 0, 150, 160)], workload(job("a", 0, 10, release_s=-0.5)))


@pytest.mark.parametrize(
    ("times", "values", "begin", "end", "machine_s"),
    [
        ((0,), (3,), 100, 200, 300),
        ((0, 150), (2, 1), 100, 200, 150),
        ((150, 160), (2, 1), 100, 200, 2 * 60 + 40),  # the first value holds before the first row
        ((0, 50, 100, 200, 300), (9, 9, 1, 9, 9), 100, 200, 100),  # rows at both ends
        ((0, 120, 130), (5, 0, 7), 100, 200, 20 * 5 + 70 * 7),
        ((0, 10, 20), (5, 6, 7), 12.5, 12.75, 0.25 * 6),
        ((0, 10), (5, 6), 10, 10, 0),
    ],
)
def test_capacity(times, values, begin, end, machine_s):
    capacity = Series(tuple(map(float, times)), tuple(map(float, values)))
    assert capacity_core_s(capacity, 24, Window(begin, end)) == 24 * machine_s
    by_steps = sum((stop - start) * value for start, stop, value in capacity.steps(begin, end))
    assert by_steps == pytest.approx(machine_s)


def test_no_capacity_at_all(figures):
    metrics = figures([ran("a", 100, 100, 110)], workload(job("a", 100, 10)), capacity=Series((0.0,), (0.0,)))
    assert (metrics["goodput"], metrics["aborted_volume"], metrics["capacity_core_s"]) == (None, None, 0.0)
    assert (metrics["useful_core_s"], metrics["max_full_speed_slowdown"]) == (10.0, 1.0)


@pytest.mark.parametrize("rows", [[], [refused("a", 150)]])
@pytest.mark.parametrize("window", [None, WINDOW])
def test_nothing_ran(figures, rows, window):
    metrics = figures(rows, workload(job("a", 150, 10)), window)
    assert (metrics["useful_core_s"], metrics["aborted_core_s"], metrics["completed_fraction"]) == (0.0, 0.0, 0.0)
    nothing = ("max_full_speed_slowdown", "mean_full_speed_slowdown", "mean_aborted_time_s")
    assert [metrics[name] for name in nothing] == [None] * 3
    assert metrics["goodput"] == (0.0 if window else None)
    assert (metrics["jobs_rejected"], metrics["jobs_unfinished"]) == (len(rows), 0)


def test_a_job_killed_after_the_window_and_submitted_again_is_one_unfinished_job(figures):
    rows = [ran("a", 150, 190, 201, 1, KILLED), refused("a#1", 201, WINDOW_OVER)]
    metrics = figures(rows, workload(job("a", 150, 10)))
    assert (metrics["jobs_unfinished"], metrics["jobs_rejected"], metrics["killed_power"]) == (1, 0, 0)


def test_other_metadata_is_a_refusal(figures):
    metrics = figures([refused("a", 150, "too wide")], workload(job("a", 150, 10)))
    assert (metrics["jobs_unfinished"], metrics["jobs_rejected"]) == (0, 1)


def test_a_job_that_completed_twice_is_one(figures):
    metrics = figures([ran("a", 100, 100, 110), ran("a#1", 110, 110, 120)], workload(job("a", 100, 10)))
    assert metrics["completed_fraction"] == 1.0


@pytest.mark.parametrize("seed", range(20))
def test_second_by_second(figures, seed):
    """Runs at random, and the same sums by looking at each second of the window."""
    rng = random.Random(seed)
    states = (SUCCESSFUL, SUCCESSFUL, KILLED, "COMPLETED_FAILED")
    runs = []
    for name in range(30):
        start = rng.randrange(90, 210)
        runs.append((f"j{name}", start, start + rng.randrange(1, 60), rng.randrange(1, 5), rng.choice(states)))
    rng.shuffle(runs)
    times = sorted(rng.sample(range(220), 12))
    capacity = Series(tuple(map(float, times)), tuple(float(rng.randrange(4)) for _ in times))
    jobs = workload(*(job(name, 80, 5, cores) for name, _, _, cores, _ in runs))
    metrics = figures([ran(name, 80, start, end, cores, state) for name, start, end, cores, state in runs], jobs,
                      capacity=capacity)  # fmt: skip
    useful = aborted = 0
    for second in range(100, 200):
        for _, start, end, cores, state in runs:
            if start <= second < end:
                useful += cores if end > 200 or state == SUCCESSFUL else 0
                aborted += cores if end <= 200 and state == KILLED else 0
    assert (metrics["useful_core_s"], metrics["aborted_core_s"]) == (useful, aborted)
    assert metrics["capacity_core_s"] == 4 * sum(capacity.at(second) for second in range(100, 200))
    assert metrics["goodput"] == useful / metrics["capacity_core_s"]


def test_the_order_of_rows_tells_nothing(figures):
    """Rows whose numbers no sum holds exactly, forwards and backwards."""
    rng = random.Random(5)
    names = [f"j{n}" for n in range(400)]
    jobs = workload(*(job(name, 100, 0.3, 3) for name in names))
    spans = [(rng.uniform(100, 150), rng.uniform(150, 200)) for _ in names]
    rows = [
        ran(name, 100, *span, 3, (SUCCESSFUL, KILLED)[n % 2])
        for n, (name, span) in enumerate(zip(names, spans, strict=True))
    ]
    there, back = (figures(order, jobs) for order in (rows, rows[::-1]))
    assert [there[name] for name in FIGURES] == [back[name] for name in FIGURES]


@pytest.mark.parametrize(
    ("begin", "end", "complaint"),
    [
        (-1.0, 5.0, "begin_s must be >= 0 s and finite, got -1.0"),
        (float("nan"), 5.0, "begin_s must be >= 0 s"),
        (5.0, 4.0, r"end_s must be >= begin_s \(5.0 s\) and finite, got 4.0"),
        (5.0, float("inf"), "end_s must be"),
        (5.0, float("nan"), "end_s must be"),
    ],
)
def test_windows(begin, end, complaint):
    with pytest.raises(ValueError, match=complaint):
        Window(begin, end)


def test_cores(figures):
    with pytest.raises(ValueError, match="cores must be >= 1, got 0"):
        figures([], workload(job("a", 0, 10)), cores=0)


def test_summary_of_runs_under_a_capacity(figures):
    metrics = figures(ROWS_BY_HAND, JOBS_BY_HAND)
    nothing = figures([], JOBS_BY_HAND)
    text, none = table_text(summary("first fit [x]", metrics)), table_text(summary("none", nothing))
    last = text.splitlines()[-1]
    assert " ".join(last.split()) == "first fit [x] 33.33 50.00 2 2 0.00 1.50 1.50 2.00 7.50 33.3"
    assert " ".join(none.splitlines()[-1].split()) == "none 0.00 - 0 0 - - - - 0.00 0.0"
    assert "goodput" in text and "aborted" in text and "kWh" not in text
    power = metrics | {"capacity_core_s": None}
    text = table_text(summary("power", power))
    assert "kWh" in text and "goodput" not in text
