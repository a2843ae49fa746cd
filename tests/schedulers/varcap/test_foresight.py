"""Foresight compared with its rule by machine (docs/explanation/varcap.md), and the work of a pass under it."""

from __future__ import annotations

import math
import sys
from types import SimpleNamespace

import numpy as np
import pytest
from examples import examples
from hypothesis import given
from hypothesis import strategies as st

from batwatt.model.timeline import Timeline
from batwatt.schedulers.varcap.queues import BucketQueue, FleetRoom, Range, SortedQueue
from batwatt.scheduling.fleet import CapacityForecast, Fleet, Foresight
from batwatt.scheduling.job import Job
from batwatt.scheduling.orders import FirstCome

CORES = 4
rngs = st.integers(0, 2**32 - 1)


def task_of(number: int, cpus: int, assumed_s: float, memory: float = 0.0, alone: bool = False) -> Job:
    """Return a waiting task that was submitted in the order of its number."""
    attempt = SimpleNamespace(id=f"w0!{number}", submit_time=number, requested_resources=cpus, requested_time=None)
    machines = -(-cpus // CORES) if alone or cpus > CORES else 0
    return Job(number, attempt, 1e9, 1e9, 1e9, assumed_s, machines=machines, memory=memory)


def drawn_task(rng: np.random.Generator, number: int, lengths_s: list[float]) -> Job:
    """Return a task of random needs."""
    cpus = int(rng.choice([1, 1, 2, 3, 4, 8, 12]))
    return task_of(
        number, cpus, float(rng.choice(lengths_s)), float(rng.integers(0, 3)) / 2.0, bool(rng.random() < 0.2)
    )


# the rule, machine by machine ---------------------------------------------------------------------------------------


def plain_ends(fleet: Fleet, stable: int) -> list[float]:
    """Return the assumed end of each machine in s: the latest of its tasks, -1 without one."""
    return [
        math.inf if m < stable else max([task.start_s + task.assumed_s for task in fleet.on(m)], default=-1.0)
        for m in range(len(fleet))
    ]


def plain_counts(fleet: Fleet, stable: int) -> list[int]:
    """Return N_k: the machines that are assumed to be busy after each known change."""
    ends = plain_ends(fleet, stable)
    return [sum(end_s > change_s for end_s in ends) for change_s in fleet.foresight.times_s]


def plain_place(fleet: Fleet, stable: int, task: Job, now_s: float, upwards: bool) -> list[int] | None:
    """Return the machines on which a task may start now, each change and each machine looked at."""
    ends = plain_ends(fleet, stable)
    rows = list(zip(fleet.foresight.times_s, plain_counts(fleet, stable), fleet.foresight.limits, strict=True))
    # starts on stable machines alone are always allowed
    rows = [row for row in rows if now_s <= row[0] < now_s + task.assumed_s and len(fleet) > stable]
    order = range(len(fleet)) if upwards else range(len(fleet) - 1, -1, -1)
    if task.machines > 1:
        free = [m for m in order if fleet.whole[m]]
        allowed = all(count + task.machines <= limit for _, count, limit in rows)
        return free[: task.machines] if allowed and len(free) >= task.machines else None
    for m in order:
        if task.machines:
            room = fleet.whole[m]
        else:
            room = fleet.usable[m] and fleet.free[m] >= task.hosts and fleet.memory[m] >= task.memory
        if room and all(count + 1 <= limit for change_s, count, limit in rows if change_s >= ends[m]):
            return [m]
    return None


def fleet_of(seed: int, lengths_s: list[float], plain: bool) -> tuple[Fleet, int, float]:
    """Return a fleet after random starts, ends and looks, its stable machines, and the time in s.

    `plain`: the rule is compared after each event.
    """
    rng = np.random.default_rng(seed)
    machines = int(rng.integers(2, 9))
    stable = int(rng.choice([0, 0, 1, 2]))
    changes = np.unique(rng.integers(1, 60, 12) * 50.0).tolist()
    values = rng.integers(0, machines + 1, len(changes) + 1).astype(float).tolist()
    errors = (0.0, 0.2, 0.1, 0.1) if rng.random() < 0.3 else (0.0, 0.0, 0.0, 0.0)
    horizon_s = float(rng.choice([100.0, 600.0, 3600.0]))
    forecast = CapacityForecast(Timeline((0.0, *changes), tuple(values)), machines, horizon_s, *errors, seed=seed)
    fleet = Fleet(machines, CORES, 2.0, stable)
    fleet.foresight = Foresight(forecast)
    fleet.set_in_service(np.flatnonzero(rng.random(machines) < 0.9), True)
    now_s = 0.0
    for number in range(int(rng.integers(5, 40))):
        before_s, now_s = now_s, now_s + float(rng.choice([0.0, 10.0, 50.0, 73.0]))
        stepped = number == 0 or any(before_s < change_s <= now_s for change_s in changes)
        fleet.foresight.look(now_s, stepped, fleet.until_s)
        task = drawn_task(rng, number, lengths_s)
        upwards = bool(rng.random() < 0.5)
        places = fleet.place(task, now_s, 0, machines, upwards, blind=bool(rng.random() < 0.3))
        if places is not None:
            task.start_s = now_s
            fleet.add(task, places, now_s)
        if fleet.tasks and rng.random() < 0.5:
            fleet.remove(fleet.tasks[int(rng.choice(list(fleet.tasks)))])
        if plain:
            assert fleet.foresight.counts.tolist() == plain_counts(fleet, stable)
            task = drawn_task(rng, 1000, lengths_s)
            expected = plain_place(fleet, stable, task, now_s, upwards)
            places = fleet.place(task, now_s, 0, machines, upwards)
            assert (None if places is None else places.tolist()) == expected
    return fleet, stable, now_s


KNOWLEDGE = st.sampled_from([[math.inf], [100.0, 1000.0], [10.0, 50.0, 100.0, 170.0, 300.0, 1000.0, 3000.0]])
"""Assumed run times in s: none, classes, exact."""


@examples(400)
@given(rngs, KNOWLEDGE)
def test_counts_and_places_of_the_rule(seed, lengths_s):
    """After each start, end and look."""
    fleet_of(seed, lengths_s, plain=True)


@pytest.mark.parametrize("kind", ["fcfs", "longest", "sorted"])
@examples(100)
@given(rngs, KNOWLEDGE, st.booleans())
def test_starts_of_a_pass(kind, seed, lengths_s, upwards):
    """A pass starts what a loop over all waiting tasks starts, in blocks that lose and get tasks."""
    starts: dict[bool, list[tuple[int, list[int]]]] = {}
    for plain in (True, False):
        fleet, stable, now_s = fleet_of(seed, lengths_s, plain=False)
        rng = np.random.default_rng(seed)
        started = starts[plain] = []
        tasks = [drawn_task(rng, 2000 + i, lengths_s) for i in range(int(rng.choice([3, 30, 30, 1500])))]
        gone = set(rng.choice(len(tasks), len(tasks) // 3, replace=False).tolist())
        left = [task for i, task in enumerate(tasks) if i not in gone]

        def start(task, places, fleet=fleet, now_s=now_s, started=started):
            task.start_s = now_s
            fleet.add(task, places, now_s)
            started.append((task.number, places.tolist()))

        if plain:
            if kind == "longest":
                left.sort(key=lambda task: (-task.assumed_s, task.number))
            for task in left:
                places = plain_place(fleet, stable, task, now_s, upwards)
                if places is not None:
                    start(task, np.array(places))
            continue
        queue = BucketQueue(None if kind == "fcfs" else lambda task: -task.assumed_s)
        if kind == "sorted":
            queue = SortedQueue(FirstCome(), "pass")
        for i in rng.permutation(len(tasks)).tolist():
            queue.add(tasks[i])
        for i in gone:
            queue.remove(tasks[i])
        queue.fill(fleet, now_s, Range(0, len(fleet), upwards), start, True)
    assert starts[True] == starts[False]


# work ---------------------------------------------------------------------------------------------------------------


def calls_of_a_pass(waiting: int, lengths_s: list[float]) -> tuple[int, int]:
    """Return the calls of functions in a pass that starts nothing, and the tasks that it tries."""
    fleet = Fleet(2, CORES, math.inf)
    fleet.foresight = Foresight(CapacityForecast(Timeline((0.0, 100.0), (2.0, 1.0)), 2, 1e6, 0.0, 0.0, 0.0, 0.0, 0))
    fleet.set_in_service(np.arange(2), True)
    fleet.foresight.look(0.0, True, fleet.until_s)
    busy = task_of(0, CORES, math.inf)
    fleet.add(busy, np.array([0]), 0.0)
    queue = BucketQueue()
    for number in range(1, waiting + 1):
        queue.add(task_of(number, 1 + number % 3, lengths_s[number % len(lengths_s)]))
    calls = 0

    def count(frame, event, argument):
        nonlocal calls
        calls += event in ("call", "c_call")

    sys.setprofile(count)
    try:
        room = FleetRoom(fleet, 0.0, Range(0, 2), queue, lambda task, places: None, True)
        tried = [task for task in queue.candidates(room) if not room.start(task)]
    finally:
        sys.setprofile(None)
    assert fleet.tasks == {0: busy}
    return calls, len(tried)


def test_a_pass_tries_nothing_that_the_future_refuses():
    """One machine of two may be busy, and is: a queue eight times as long takes as many calls, and no task is tried."""
    assert calls_of_a_pass(4000, [math.inf]) == calls_of_a_pass(500, [math.inf])
    assert calls_of_a_pass(500, [math.inf])[1] == 0


def test_a_pass_skips_blocks():
    """Of classes one task of each need is tried, and calls grow with blocks of hundreds of tasks only."""
    few, tried = calls_of_a_pass(500, [150.0, 1000.0])
    many, tried_of_many = calls_of_a_pass(4000, [150.0, 1000.0])
    assert tried == tried_of_many
    assert many < few + 100
