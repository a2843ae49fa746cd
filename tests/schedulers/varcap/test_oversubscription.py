"""Oversubscription: who is slowed down and who catches up, by hand."""

from __future__ import annotations

import bisect
import math

import pytest
from builders import workload_of
from by_hand import capacity_of, job_row, series_of

from batwatt.batsim.adapters import simulate
from batwatt.batsim.batsim4 import EngineConfig
from batwatt.engine.core import Engine
from batwatt.errors import InputError
from batwatt.inputs.convert import workload_with_flops
from batwatt.model.hostset import from_text, ids
from batwatt.model.platform import SPEEDS, STANDSTILL, MachineSpec, SpeedMachineSpec, machines_platform
from batwatt.schedulers.oversubscribed import Oversubscribed

ID, STATE, START, END, HOSTS, META = 0, 7, 8, 10, 14, 16


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
        # 6 of 2 cores: 0.33 up to 50 s, then 6 of 6, and nothing is left to catch up
        ("a 0 100 4 use=0.5, b 0 100 4 use=0.5, c 0 100 4 use=0.5", "1 50:3",
         {"machines": 3, "cores": 4, "oversubscription": 2}, "a 0-133.5, b 0-133.5, c 0-133.5"),
        # jobs without use have that of the options
        ("a 0 100 8, b 0 100 2 use=0.5", "1", {"use": 0.5, "oversubscription": 2}, "a 0-100, b 0-100"),
    ],
    ids=["cores", "memory", "several machines", "no core", "8 and 1 of 5 cores", "no surplus",
         "the use of the options"],
)  # fmt: skip
def test_runs_by_hand(jobs, capacity, options, expected):
    ends = runs(*jobs.split(", "), capacity=capacity, **options)
    assert ", ".join(f"{name} {times}" for name, times in ends.items()) == expected


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
