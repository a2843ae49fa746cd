"""Oversubscription: who is slowed down and who catches up, by hand and as laws on random jobs and capacities."""

from __future__ import annotations

import bisect
import math

import numpy as np
import pytest
from builders import workload_of
from by_hand import capacity_of, job_row, series_of
from examples import examples
from hypothesis import HealthCheck, example, given
from hypothesis import strategies as st

from batwatt.engine.config import EngineConfig
from batwatt.engine.core import Engine
from batwatt.engine.embedded import simulate
from batwatt.errors import InputError
from batwatt.inputs.traces.delays_to_flops import workload_with_flops
from batwatt.model.hostset import from_text, ids
from batwatt.model.machines import SPEEDS, STANDSTILL, MachineSpec, SpeedMachineSpec, machines_platform
from batwatt.schedulers.oversubscribed import Oversubscribed

ID, STATE, START, END, HOSTS, META = 0, 7, 8, 10, 14, 16
LAG_S = 1e-3
ALL_SPEEDS = np.array(sorted((*SPEEDS, 1.0)))


def play(jobs, capacity, machines, cores, between=None, spec=SpeedMachineSpec, flops=True, **options):
    """The record of a run on machines of so many promised cores."""
    platform = machines_platform(spec(machines, cores))
    work = workload_of(*map(job_row, jobs), nb_res=machines * cores)
    if flops:
        work = workload_with_flops(work, MachineSpec(machines, cores).nominal_flops)
    engine = Engine(platform, [work], EngineConfig(energy=True, dynamic_jobs=True, profile_reuse=True))
    settings = {"capacity": series_of(capacity_of(capacity)), "platform": platform} | options
    return simulate(engine, Oversubscribed(settings), between)


def runs(*jobs: str, capacity: str, machines: int = 1, cores: int = 10, **options) -> dict[str, str]:
    """Job -> `start-end`, as they ended."""
    record = play(jobs, capacity, machines, cores, **options)
    return {
        row[ID]: "rejected" if row[START] is None else f"{row[START]:.6g}-{round(row[END], 3):.9g}"
        for row in sorted(record.jobs)
    }


def speeds_in(record, hosts: int) -> dict[str, list[tuple[float, float]]]:
    """Job -> (time, speed from then on), by what was done to its hosts."""
    states = (1.0, *SPEEDS)
    lines = [[(0.0, 1.0)] for _ in range(hosts)]
    for time, names, state in record.pstate_changes:
        if state < 0:
            continue
        for host in ids(from_text(names)):
            lines[host].append((time, states[state]))
    speeds = {}
    for row in record.jobs:
        if row[START] is None:
            continue
        tracks = set()
        for host in ids(from_text(row[HOSTS])):
            line = lines[host]
            first = bisect.bisect_right(line, (row[START], math.inf)) - 1
            steps = [(max(time, row[START]), speed) for time, speed in line[first:] if time < row[END]]
            # of changes at one time the last counts, and one to the same speed is none
            steps = [step for i, step in enumerate(steps) if i + 1 == len(steps) or steps[i + 1][0] > step[0]]
            tracks.add(tuple(step for i, step in enumerate(steps) if not i or steps[i - 1][1] != step[1]))
        assert len(tracks) == 1, "the cores of a job differ in speed"
        speeds[row[ID]] = list(tracks.pop())
    return speeds


# by hand ------------------------------------------------------------------------------------------------------------


def test_slowed_down_and_caught_up():
    """10 promised cores are 8; two jobs of 5 use 4 each, 8 in all.

    From 300 s there are as many as 8 of 16: R falls to one of two machines. From 600 s job 3 wants 3.2 more: 11.2 of 8,
    so all run at 0.714, rounded down to 0.71. At 900 s 1 and 2 have done 600 + 0.71 x 300 = 813 s and are 87 s behind,
    as is 3; of 16 cores 4.8 are left over, which would let all run at 1.43: they use 0.8 of their cores, so 1.25 is the
    most. 1 and 2 end after (1000 - 813) / 1.25 = 149.6 s. 3 is even after 87 / 0.25 = 348 s and ends as if nothing had
    happened.
    """
    jobs = ("1 0 1000 5 use=0.8", "2 0 1000 5 use=0.8", "3 600 2000 4 use=0.8")
    record = play(jobs, "2 300:1 900:2", 2, 10)
    ends = {row[ID]: (row[START], round(row[END], 3)) for row in record.jobs}
    assert ends == {"1": (0, 1049.6), "2": (0, 1049.6), "3": (600, 2600)}
    speeds = speeds_in(record, 20)
    assert speeds["1"] == speeds["2"] == [(0, 1), (600, 0.71), (900, 1.25)]
    assert speeds["3"] == [(600, 0.71), (900, 1.25), (1248, 1)]


@pytest.mark.parametrize(
    ("jobs", "capacity", "options", "expected"),
    [
        # 12 cores wanted of 8, 0.66; the short one ends after 100 / 0.66 s, the other speeds up with the next interval
        ("a 0 100 4, b 0 1000 8", "2 1:1", {}, {"b": [(0, 1), (1, 0.66), (300, 1)]}),
        ("a 0 100 4, b 0 1000 8", "2 1:1", {"interval_s": 100}, {"b": [(0, 1), (1, 0.66), (200, 1)]}),
        # a start slows down at once: a ends at 10 + 990 / 0.5 s, b 20 s later, before the next interval
        ("a 0 1000 8, b 10 1000 8", "1", {}, {"a": [(0, 1), (10, 0.5)], "b": [(10, 0.5)]}),
        # both are 129 s behind at 600 s; b uses all its cores, a takes the core that is left over: 1.5 of at most 2.5
        ("a 0 3000 5 use=0.4, b 0 3000 5", "2 300:1 600:2", {"cores": 5},
         {"a": [(0, 1), (300, 0.57), (600, 1.5), (858, 1)], "b": [(0, 1), (300, 0.57), (600, 1)]}),
        # nobody who needs no more than there is is slowed down
        ("a 0 100 3, b 50 100 4, c 60 30 2 use=0.5", "2 20:1", {}, {"a": [(0, 1)], "b": [(50, 1)], "c": [(60, 1)]}),
        # machines run on without any core: jobs stand still, but they start, and nobody is terminated
        ("a 0 100 4, b 60 100 4 use=0.5", "1 50:0 150:1", {}, {"b": [(60, STANDSTILL), (150, 2.0)]}),
    ],
    ids=["an end", "an end, shorter intervals", "a start", "a surplus", "enough", "no core"],
)  # fmt: skip
def test_speeds_by_hand(jobs, capacity, options, expected):
    options = {"cores": 10} | options
    speeds = speeds_in(play(jobs.split(", "), capacity, 2, **options), 2 * options["cores"])
    assert {name: speeds[name] for name in expected} == expected


@pytest.mark.parametrize(
    ("jobs", "capacity", "options", "expected"),
    [
        # cores that are promised, and memory, are given once
        ("a 0 100 6 use=0.1, b 1 100 6 use=0.1, c 2 10 4 use=0.1", "1", {}, "a 0-100, b 100-200, c 2-12"),
        ("a 0 100 1 memory=3 use=0.1, b 1 100 1 memory=2 use=0.1, c 2 10 1 memory=1 use=0.1", "1",
         {"machine_memory": 4}, "a 0-100, b 100-200, c 2-12"),
        # on several machines, and never
        ("a 0 100 15 use=0.1, b 0 9 21", "2", {"machines": 2}, "a 0-100, b rejected"),
        ("a 0 100 4, b 60 100 4 use=0.5", "1 50:0 150:1", {}, "a 0-200, b 60-200"),
        # 8 and 1 of 5 cores: both run at 5 / 9, rounded down to 0.55
        ("a 0 110 8, b 0 55 2 use=0.5", "1", {"oversubscription": 2}, "a 0-200, b 0-100"),
        # jobs without use have that of the options
        ("a 0 100 8, b 0 100 2 use=0.5", "1", {"use": 0.5, "oversubscription": 2}, "a 0-100, b 0-100"),
    ],
    ids=["cores", "memory", "several machines", "no core", "8 and 1 of 5 cores", "the use of the options"],
)  # fmt: skip
def test_runs_by_hand(jobs, capacity, options, expected):
    ends = runs(*jobs.split(", "), capacity=capacity, **options)
    assert ", ".join(f"{name} {times}" for name, times in ends.items()) == expected


# laws ---------------------------------------------------------------------------------------------------------------

MACHINES, CORES = 3, 4
uses = st.sampled_from([1.0, 0.9, 0.8, 0.5, 0.25, 0.1, 0.05]) | st.floats(0.01, 1.0).map(lambda x: round(x, 4))
jobs_of = st.lists(
    st.tuples(
        st.integers(0, 60).map(lambda tens: 10.0 * tens) | st.floats(0, 600).map(lambda x: round(x, 3)),
        st.integers(1, 60).map(lambda tens: 10.0 * tens) | st.floats(1, 900).map(lambda x: round(x, 2)),
        st.integers(1, CORES) | st.integers(1, MACHINES * CORES + 1),  # now and then too many
        uses,
    ),
    max_size=16,
)
counts = st.lists(st.integers(0, MACHINES), min_size=1, max_size=12)
options_of = st.fixed_dictionaries(
    {"oversubscription": st.sampled_from([1.0, 1.25, 2.0])}, optional={"interval_s": st.sampled_from([30.0, 77.7])}
)
slow_checks = examples(150, suppress_health_check=[HealthCheck.too_slow])


def lines_of(rows):
    return [f"{i} {at!r} {length!r} {cpus} use={use!r}" for i, (at, length, cpus, use) in enumerate(rows)]


def capacity_text(values, step_s):
    # jobs must be able to end
    values = [*values, values[-1] or 1]
    return " ".join([str(values[0]), *(f"{step_s * i}:{value}" for i, value in enumerate(values) if i)])


@slow_checks
@given(rows=jobs_of, values=counts, step_s=st.sampled_from([50.0, 37.5, 300.0]), options=options_of)
@example(rows=[(0.0, 100.0, 4, 0.5)] * 3, values=[1, 3], step_s=50.0, options={"oversubscription": 2.0})
def test_speeds(rows, values, step_s, options):
    text = capacity_text(values, step_s)
    record = play(lines_of(rows), text, MACHINES, CORES, **options)
    speeds = speeds_in(record, MACHINES * CORES)
    times = {time for line in speeds.values() for time, _ in line} | {at for at, _ in capacity_of(text)}
    ran = [row for row in record.jobs if row[START] is not None]
    assert all(row[STATE] == "COMPLETED_SUCCESSFULLY" for row in ran)
    for row in record.jobs:
        _, length_s, _, use = rows[int(row[ID])]
        if row[START] is None:
            continue
        line = speeds[row[ID]]
        # nobody runs faster than its cores let it
        assert max(speed for _, speed in line) <= max(1.0, 1.0 / use) + 1e-9
        # what it has done at its end is its length, and at no time more than the time that has passed
        ends = [time for time, _ in line[1:]] + [row[END]]
        done = 0.0
        for (begin, speed), end in zip(line, ends, strict=True):
            done += speed * (end - begin)
            assert done <= end - row[START] + LAG_S
        assert done == pytest.approx(length_s, abs=LAG_S)
        times |= {row[START], row[END]}
    # never more than there is, but for those that stand still
    steps = capacity_of(text)
    for begin, end in zip(sorted(times), sorted(times)[1:], strict=False):
        if end - begin < 2 * LAG_S:
            continue
        time = (begin + end) / 2
        alive = [count for at, count in steps if at <= time][-1]
        used = standing = 0.0
        for row in ran:
            if row[START] <= time < row[END]:
                _, _, cpus, use = rows[int(row[ID])]
                speed = [speed for at, speed in speeds[row[ID]] if at <= time][-1]
                used += cpus * use * speed
                standing += cpus * use * STANDSTILL
        assert used <= alive * CORES / options["oversubscription"] + standing + 1e-6, time


# what is refused ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("job", "capacity", "options", "line"),
    [
        ("a 0 10 1", "1 10:0", {}, "under which nothing that runs ever ends"),
        ("a 0 10 1", "1", {"spec": MachineSpec}, "one speed only"),
        ("a 0 10 1", "1", {"platform": None}, "for the speeds of its hosts"),
        ("a 0 10 1", "1", {"flops": False}, "'delay'"),
        ("a 0 10 1 use=1.5", "1", {}, r"use must be in \]0, 1\], got 1.5"),
        ("a 0 10 1", "1", {"oversubscription": 0.5}, "oversubscription"),
        ("a 0 10 1", "1", {"use": 0.0}, "use"),
        ("a 0 10 1", "1", {"switch": True}, "option 'switch': machines whose cores are shared stay on"),
    ],
)
def test_what_is_refused(job, capacity, options, line):
    with pytest.raises(InputError, match=line):
        play((job,), capacity, 1, 4, **options)


def test_a_window_may_end_without_machines():
    assert play(("a 0 10 1",), "1 5:0", 1, 4, until_s=50).jobs[0][STATE] == "COMPLETED_KILLED"
