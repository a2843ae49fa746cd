"""The scheduler `multifactor`: priorities, fairshare and plans by hand, limits, and options that are refused."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from examples import examples
from hypothesis import given
from hypothesis import strategies as st

import batwatt as bw
from batwatt.errors import InputError
from batwatt.model.hostset import from_text
from batwatt.run.find_scheduler import describe_options, scheduler_class
from batwatt.run.spec import RunSpec
from batwatt.schedulers.multifactor.priority import (
    Fairshare,
    MultifactorOptions,
    Priority,
    partitions_of,
    read_partitions,
)
from batwatt.schedulers.multifactor.scheduler import BackfillPlan

DAY_S, HOUR_S = 86_400.0, 3600.0
QUIET = {"priority_weight_age": 0, "priority_weight_fairshare": 0, "priority_weight_job_size": 0}
"""Every job has one priority: first come, first served."""


def run(hosts: int, *rows: tuple[float, int, float, float], fields: Any = (), **options: Any) -> dict[str, str]:
    """When and where each job of (submission, hosts, length, limit) starts, or why it does not; ids are "1", "2"..."""
    columns = ["submission_time_s", "hosts", "length_s", "estimate_s"]
    frame = pd.DataFrame(rows, columns=columns).assign(**dict(fields))
    jobs = bw.simulate(bw.Platform.machines(hosts), bw.Workload.from_frame(frame), "multifactor", options=options).jobs
    rows_of = zip(jobs["job_id"], jobs["starting_time_s"], jobs["allocated_resources"], jobs["metadata"], strict=True)
    return {str(id): why if math.isnan(at) else f"{at:g}@{where}" for id, at, where, why in sorted(rows_of)}


# priority -----------------------------------------------------------------------------------------------------------


def test_three_priorities():
    # 10 nodes of 4 processors; weights of the documentation's example: age 1000, fairshare 10000, size 1000, ...
    rules = Priority(MultifactorOptions(priority_weight_qos=500), 10, 40)
    factors = {"small": {"priority_job_factor": 6}, "large": {"priority_job_factor": 3}}
    small, large = partitions_of(read_partitions(factors), [], list).values()
    # 1 of 10 nodes, 2 of 40 processors: (0.1 + 0.05) / 2 = 0.075, 75 points, and 1000 of the partition
    assert rules.fixed(1, 2, small, 0.0) == pytest.approx(1075.0)
    # all of it: 1000 points, 500 of the partition, 250 of the QOS
    assert rules.fixed(10, 40, large, 0.5) == pytest.approx(1750.0)
    # after 1.75 of 7 days: 250 points; after 8 days: 1000
    submit_s, fairshare = np.array([6.25 * DAY_S, 0.0, 8 * DAY_S]), np.array([0.5, 0.25, 1.0])
    priorities = rules.priority(submit_s, fairshare, np.array([1075.0, 1750.0, 0.0]), 8 * DAY_S)
    assert priorities.tolist() == [250 + 5000 + 1075, 1000 + 2500 + 1750, 10_000]
    assert Priority(MultifactorOptions(priority_favor_small=True), 10, 40).size(1, 2) == pytest.approx(0.925)
    # 0 is for held jobs
    assert Priority(MultifactorOptions(**QUIET), 10, 40).priority(0.0, 1.0, 0.0, 0.0) == 1


def test_fairshare_decays():
    # half life of an hour; a uses 4 processors for an hour, then nothing
    shares = Fairshare({"a": 1, "b": 1}, HOUR_S, 300.0, tree=False)
    shares.charge("a", 4, 0.0)
    shares.charge("a", -4, HOUR_S)
    # the integral of 4 * 2^(-t/3600) over an hour: 4 * 3600 / ln 2 * (1 - 1/2)
    whole = 4 * 3600 / math.log(2) / 2
    assert shares.usage("a", HOUR_S) == pytest.approx(whole)
    assert shares.usage("a", 2 * HOUR_S) == pytest.approx(whole / 2)
    assert shares.usage("a", 4 * HOUR_S) == pytest.approx(whole / 8)
    # without decay processor seconds add up
    undecayed = Fairshare({"a": 1}, 0.0, 300.0, tree=False)
    undecayed.charge("a", 4, 0.0)
    assert undecayed.usage("a", 100.0) == 400.0


def test_fairshare_factors():
    # a has used 300 processor s, b 100, c none; shares 2, 1, 1: S = 1/2, 1/4, 1/4 and U = 3/4, 1/4, 0
    def used(tree: bool) -> list[float]:
        shares = Fairshare({"a": 2, "b": 1, "c": 1, "none": 0}, 0.0, 100.0, tree)
        shares.charge("a", 3, 0.0)
        shares.charge("b", 1, 0.0)
        shares.advance(99.0)
        assert shares.factor("a") == 1.0
        shares.advance(150.0)
        return [shares.factor(name) for name in ("a", "b", "c", "none")]

    # 2^(-1.5), 2^(-1), 1
    assert used(False) == pytest.approx([2**-1.5, 0.5, 1.0, 0.0])
    # shares / usage: 2/300, 1/100, infinite, 0: ranks of four
    assert used(True) == [0.5, 0.75, 1.0, 0.25]


# backfill -----------------------------------------------------------------------------------------------------------


def test_a_plan_of_five_jobs():
    # at 130 s, in slots of 60 s: slot 2 is now. Hosts 0-1 are busy up to 290 s (slot 5), 2 up to 400 s (slot 7), 3 free
    plan = BackfillPlan(130.0, 60.0, 3600.0, 0b1000, [(290.0, 0b0011), (400.0, 0b0100)])
    # three hosts from slot 5 on for 100 s: 0, 1, 3 in slots 5 and 6
    assert plan.place(0b1111, 3, 100.0) == (5, 0b1011)
    # one host for 160 s: now, up to 290 s: slots 2, 3, 4
    assert plan.fits_now(0b1111, 1, 170.0) and not plan.fits_now(0b1111, 1, 171.0)
    assert plan.place(0b1111, 1, 160.0) == (2, 0b1000)
    # all four: after the three, at slot 7
    assert plan.place(0b1111, 4, 60.0) == (7, 0b1111)
    # one for three slots: not now, not beside them, but from slot 8 on; host 2 would be free at 7
    assert plan.place(0b1111, 1, 180.0) == (8, 0b0001)
    # two for one slot, of hosts 2 and 3: behind the four
    assert plan.place(0b1100, 2, 60.0) == (8, 0b1100)


USERS = [(0, 2, 600, 600), (10, 2, 60, 60), (20, 2, 60, 60)]
WIDE = [(0, 1, 500, 600), (10, 2, 60, 60), (20, 1, 500, 540), (25, 1, 500, 1000)]
AGAIN = [(0, 1, 60, 600), (100, 1, 600, 600), (110, 2, 60, 60), (125, 1, 60, 1000)]
BESIDE = [(0, 1, 500, 600), (10, 4, 60, 60), *[(20, 1, 100, 100)] * 3]
ONE_USER = {"user": ["a", "b", "c", "c", "c"]}
ALL = [(10, 1, 500, 600), (10, 1, 500, 600), (60, 1, 500, 600), (70, 1, 500, 600)]
PARTS = {
    "long": {"hosts": "0-3"},
    "short": {"hosts": "m[2-3]", "max_time_s": 600, "max_nodes": 1, "priority_tier": 2},
}
LIMITS = [(0, 1, 60, 600), (0, 1, 60, 601), (0, 2, 60, 60), (0, 5, 60, 60), (0, 1, 60, math.nan), (0, 1, 60, 60)]
BLOCKED = [(0, 2, 300, 300), (10, 4, 60, 60), (20, 1, 60, 120)]
QUEUES = {"queue": ["long", "long", "short"]}


@pytest.mark.parametrize(
    ("hosts", "rows", "fields", "options", "expected"),
    [
        # u runs from 0 to 600 s; at 600 s v's job passes u's, which was submitted before it; by account they are one
        (2, USERS, {"user": ["u", "u", "v"]}, {}, {"1": "0@0-1", "2": "660@0-1", "3": "600@0-1"}),
        (2, USERS, {"user": ["u", "u", "v"]}, {"priority_weight_fairshare": 0}, {"2": "600@0-1"}),
        (2, USERS, {"user": ["u", "u", "v"], "group": "g"}, {"fairshare_by": "account"}, {"2": "600@0-1"}),
        # 2 waits for both hosts until 600 s; 3 fits before, 4 would delay it
        (2, WIDE, {}, QUIET, {"1": "0@0", "2": "530@0-1", "3": "30@1", "4": "590@0"}),
        # with a short window 2 gets no reservation: 4, here the third, starts, too, and 2 waits for it
        (2, [*WIDE[:2], WIDE[3]], {}, QUIET | {"bf_window_s": 300}, {"1": "0@0", "2": "530@0-1", "3": "30@1"}),
        # 4 would delay 3, at 700 s, by its limit, but not by the 60 s of u's first job
        (2, AGAIN, {"user": list("uvvu")}, QUIET | {"run_times": {"name": "recent", "count": 1}}, {"4": "150@1"}),
        # jobs 3 to 5 fit beside the reservation of 2, and are of one user
        (4, BESIDE, ONE_USER, QUIET, {"3": "30@1", "4": "30@2", "5": "30@3"}),
        (4, BESIDE, ONE_USER, QUIET | {"bf_max_job_user": 1}, {"3": "30@", "4": "60@", "5": "90@"}),
        # the reservation takes one of the tests
        (4, BESIDE, ONE_USER, QUIET | {"bf_max_job_test": 2}, {"4": "60@"}),
        # at an event one job is tested; others wait for the next multiple of 60 s, as backfill comes once an hour
        (4, ALL, {}, QUIET | {"default_queue_depth": 1, "bf_interval_s": 3600},
         {"1": "10@", "2": "60@", "3": "60@", "4": "70@"}),
        (4, LIMITS, {"queue": ["short", "short", "short", "long", "short", "else"]}, {"partitions": PARTS},
         {"1": "0@2", "2": "over the max_time_s of partition short (PartitionTimeLimit)",
          "3": "over the max_nodes of partition short (PartitionNodeLimit)",
          "4": "wider than partition long of 4 hosts", "5": "0@3",
          "6": "as their partition is not one of the option partitions"}),
        # 2 waits for hosts 0-3: 3 of the other partition gets none of them in the main scheduling, but before 2 by
        # backfill; a higher tier goes first
        (4, BLOCKED, QUEUES,
         QUIET | {"partitions": {name: part | {"priority_tier": 1} for name, part in PARTS.items()}}, {"3": "30@2"}),
        (4, BLOCKED, QUEUES, QUIET | {"partitions": PARTS, "qos": {"low": 0}}, {"3": "20@2"}),
    ],
    ids=["less usage first", "without fairshare", "by account", "backfill", "a short window", "learned", "beside",
         "tests of a user", "all tests", "main scheduling", "limits of partitions", "blocked", "a higher tier"],
)  # fmt: skip
def test_starts_by_hand(hosts, rows, fields, options, expected):
    jobs = run(hosts, *rows, fields=fields, **options)
    assert {id: jobs[id][: len(at)] if at.endswith("@") else jobs[id] for id, at in expected.items()} == expected


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"partitions": {}}, "option 'partitions': names no partition"),
        ({"partitions": {"a": {"max_nodes": 0}}}, r"max_nodes must be a whole number >= 1 \(MaxNodes\), got 0"),
        ({"partitions": {"a": {"nodes": "0-3"}}}, "no key 'nodes'|'nodes'"),
        ({"partitions": {"a": {"hosts": "0-9"}}}, "hosts: host 9 is not one of 4"),
        ({"qos": {"high": -1}}, "option 'qos': 'high' must be a whole number from 0 to 1000000000, got -1"),
        ({"bf_window_s": 1}, "bf_window"),
    ],
)
def test_refused_options(options, text):
    with pytest.raises(InputError, match=text):
        run(4, (0, 1, 60, 60), **options)


# a second implementation of the plan --------------------------------------------------------------------------------


def plain_plan(now: int, window: int, hosts: int, running: Any, jobs: Any) -> list[tuple[int, list[int]] | None]:
    """Slot and hosts of each job of (hosts, width, limit in slots), times in slots: a table of what is free when."""
    busy = {(host, slot) for host, end in enumerate(running) for slot in range(now, max(end, now + 1) if end else now)}
    places: list[tuple[int, list[int]] | None] = []
    for allowed, width, limit in jobs:
        place = None
        for slot in range(now, now + window + 1):
            span = range(slot, slot + limit)
            # what begins after the window is not planned, so that nothing is busy there but what was placed
            free = [host for host in allowed if not any((host, at) in busy for at in span)]
            if len(free) >= width:
                place = slot, free[:width]
                busy |= {(host, at) for host in place[1] for at in span}
                break
        places.append(place)
    return places


slots = st.integers(0, 12)
jobs = st.tuples(st.lists(st.integers(0, 5), min_size=1, unique=True).map(sorted), st.integers(1, 4), st.integers(1, 6))


@examples(300)
@given(now=st.integers(0, 3), running=st.lists(slots, min_size=6, max_size=6), jobs=st.lists(jobs, max_size=12))
def test_plans_are_those_of_a_table(now, running, jobs):
    ends = [end if end > now else 0 for end in running]
    free = sum(1 << host for host, end in enumerate(ends) if not end)
    runs = [(60.0 * end, 1 << host) for host, end in enumerate(ends) if end]
    plan = BackfillPlan(60.0 * now, 60.0, 60.0 * 7, free, runs)
    for (allowed, width, limit), place in zip(jobs, plain_plan(now, 7, 6, ends, jobs), strict=True):
        mask = sum(1 << host for host in allowed)
        assert plan.place(mask, width, 60.0 * limit) == (place and (place[0], from_text(" ".join(map(str, place[1])))))


def test_slurm_is_its_second_name():
    assert RunSpec(platform=Path("p.xml"), workloads=(Path("w.json"),), scheduler="slurm").scheduler == "multifactor"
    assert scheduler_class("slurm").__name__ == "Multifactor"
    assert list(describe_options("slurm")) == list(describe_options("multifactor"))
