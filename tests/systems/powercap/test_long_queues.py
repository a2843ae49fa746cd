"""Long queues are looked at only as far as jobs can start, in the very order of sorting all of them."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import batwatt.scheduling.backfilling  # noqa: F401  (registers them)
from batwatt.scheduling.queue import LONG, Queue, _smallest
from batwatt.scheduling.registry import make
from batwatt.systems.powercap.cluster import Cluster


@dataclass(eq=False)
class Row:
    submit_time: float
    requested_time: float
    requested_resources: int
    id: str = ""


class Counted(list):
    """Counts the rows that are looked at."""

    looks = 0

    def __getitem__(self, index):
        Counted.looks += 1
        return super().__getitem__(index)


columns = st.lists(
    st.tuples(st.sampled_from([-2.0, -1.0, 0.0, 0.5, math.inf, math.nan]), st.sampled_from([0.0, 1.0, 7.0])),
    min_size=1, max_size=90,
)  # fmt: skip


@given(columns, st.integers(1, 100))
def test_the_smallest_are_the_first_of_all_sorted(rows, count):
    keys, submits = (np.array(column) for column in zip(*rows, strict=True))
    everything = np.lexsort((submits, keys)).tolist()
    found = _smallest((keys, submits), count).tolist()
    assert found == everything[: len(found)]
    # without NaN, which has no place among numbers, none is missing
    assert np.isnan(keys).any() or len(found) == min(count, len(rows))


@pytest.mark.parametrize("name", ["slowdown", "fcfs", "asc", "desc_walltime"])
@pytest.mark.parametrize("submits", [[5.0], [0.0, 5.0, 6.0]])
def test_the_order_of_long_queues(name, submits):
    rng = np.random.default_rng(3)
    order, queue = make("order", name), Queue(make("order", name))
    rows = [Row(float(rng.choice(submits)), float(rng.choice([10, 10, 40, 300])), 1) for _ in range(700)]
    for row in rows:
        queue.add(row)
    for now_s in (7.0, 7.0, 1e4):

        def key(place, now_s=now_s):
            row = rows[place]
            waiting = type("W", (), {"submit_s": row.submit_time, "walltime_s": row.requested_time, "hosts": 1})
            return float(order.key(waiting, now_s)), row.submit_time, place

        expected = [rows[place] for place in sorted(range(len(rows)), key=key)]
        assert [waiting.job for waiting in queue.ordered(now_s)] == expected
        assert [waiting.job for waiting in queue.fitting(now_s, 1, 50.0)] == [
            row for row in expected if row.requested_time <= 50.0
        ]


@pytest.mark.parametrize("order", ["slowdown", "fcfs", "desc"])
@pytest.mark.parametrize("backfilling", ["easy", "first-fit"])
@pytest.mark.parametrize("walltime", [None, 60.0])
def test_few_rows_are_looked_at_for_each_start(order, backfilling, walltime):
    rng = np.random.default_rng(5)
    queue = Queue(make("order", order))
    cluster, place = Cluster(4, queue), make("backfilling", backfilling)
    for number in range(3000 + LONG):
        queue.add(Row(1.0, walltime or float(rng.integers(50, 99)), int(rng.integers(1, 3)), str(number)))
    queue.rows, Counted.looks = Counted(queue.rows), 0
    started = 0
    for step in range(60):
        cluster.now_s = 1.0 + 50.0 * step
        for job in list(cluster.running):
            cluster.end(job)
        for start in place.place(cluster):
            queue.remove(start.waiting)
            cluster.start(start.waiting, start.mask)
            started += 1
    assert started >= 120
    assert Counted.looks <= 60 * 100
