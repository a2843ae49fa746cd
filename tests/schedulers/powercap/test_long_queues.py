"""Long queues are looked at only as far as jobs can start, in the very order of sorting all of them."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import pytest
from clusters import enqueue

import batwatt.scheduling.backfilling  # noqa: F401  (registers them)
from batwatt.errors import InputError
from batwatt.scheduling.orders import Order
from batwatt.scheduling.queue import SORT_ALL_MAX, Boxes, Gap, Queue
from batwatt.scheduling.registry import make


@dataclass(eq=False)
class Row:
    submit_time: float
    requested_time: float
    requested_resources: int
    id: str = ""


@pytest.mark.parametrize("name", ["slowdown", "asc"])
def test_the_order_of_long_queues(name):
    rng = np.random.default_rng(3)
    order, queue = make("order", name), Queue(make("order", name))
    rows = [Row(float(rng.choice([0.0, 5.0, 6.0])), float(rng.choice([10, 10, 40, 300])), 1) for _ in range(700)]
    enqueue(queue, *rows)
    for now_s in (7.0, 7.0, 1e4):

        def key(place, now_s=now_s):
            row = rows[place]
            waiting = type("W", (), {"submit_s": row.submit_time, "walltime_s": row.requested_time, "hosts": 1})
            return float(order.key(waiting, now_s)), row.submit_time, place

        expected = [rows[place] for place in sorted(range(len(rows)), key=key)]
        assert [waiting.attempt for waiting in queue.ordered(now_s)] == expected
        assert [waiting.attempt for waiting in queue.fitting(now_s, Gap(1, 50.0))] == [
            row for row in expected if row.requested_time <= 50.0
        ]


class Fickle(Order):
    """Shares of the wait: no box bounds such keys."""

    time_invariant = False

    def key(self, jobs, now_s):
        return np.mod((now_s - jobs.submit_s) * jobs.hosts, jobs.walltime_s)


class Undefined(Order):
    """0 / 0 for the jobs of two hosts."""

    def key(self, jobs, now_s):
        with np.errstate(invalid="ignore"):
            return np.float64(0.0) / (2 - np.asarray(jobs.hosts)) * (jobs.submit_s + 1.0)


@pytest.mark.parametrize("static", [True, False])
def test_a_key_that_is_no_number_is_refused(static):
    order = Undefined()
    order.time_invariant = static
    queue = Queue(order)
    enqueue(queue, Row(0.0, 10.0, 1, "fine"))
    with pytest.raises(InputError, match=r"Undefined: the key of job odd \(2 hosts, walltime 20 s\) is not a number"):
        enqueue(queue, Row(0.0, 20.0, 2, "odd"))
        list(queue.ordered(1.0))


@pytest.mark.parametrize(("name", "seed"), [("slowdown", 0), ("wfp", 1), ("fickle", 1)])
def test_boxes_are_as_sorting_all_of_them(name, seed):
    # jobs come and go while limits fall; ties of keys and of submissions are frequent
    rng = np.random.default_rng(seed)
    order = Fickle() if name == "fickle" else make("order", name)
    boxes, plain, now_s = Boxes(order), {}, 0.0
    for step in range(12):
        for _ in range(2 * SORT_ALL_MAX if step in (0, 6) else 60):
            serial = len(plain)
            submit_s, hosts = round(now_s - float(rng.choice([0.0, 0.5, 30.0])), 3), float(2 ** rng.integers(0, 5))
            walltime_s = float(rng.choice([10.0, 20.0, math.inf, rng.integers(1, 9000)]))
            plain[serial] = (submit_s, walltime_s, hosts, hosts, serial)
            boxes.add(serial, plain[serial])
        present = [row for row in plain.values() if row is not None]
        columns = np.array(present).T
        keys = order.key(type("C", (), {"submit_s": columns[0], "walltime_s": columns[1], "hosts": columns[2]}), now_s)
        expected = [present[i] for i in np.lexsort((columns[4], columns[0], keys + np.zeros(len(present))))]
        assert list(boxes.sorted(now_s, Gap())) == [row[4] for row in expected]
        gap, taken, expected_taken = Gap(16.0, 500.0, 8.0), [], []
        for serial in boxes.sorted(now_s, gap):
            taken.append(serial)
            boxes.remove(serial)
            if len(taken) in (3, 60):
                gap.free, gap.window_s, gap.extra = gap.free / 2, gap.window_s / 2, gap.extra - 6.0
            if len(taken) == 400:
                break
        free, window_s, extra = 16.0, 500.0, 8.0
        for row in expected:
            if row[3] <= free and (row[1] <= window_s or row[3] <= extra):
                expected_taken.append(row[4])
                plain[row[4]] = None
                if len(expected_taken) in (3, 60):
                    free, window_s, extra = free / 2, window_s / 2, extra - 6.0
                if len(expected_taken) == 400:
                    break
        assert taken == expected_taken
        now_s += float(rng.choice([0.0, 7.5, 5000.0]))
