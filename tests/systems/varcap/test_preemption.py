"""Running jobs that are stopped for a waiting one, by hand and by laws (docs/explanation/adaptive.md)."""

from __future__ import annotations

import random
from unittest.mock import patch

import numpy as np
import pytest
from plain_varcap import PlainJob
from varcap_talk import play, scheduler

from batwatt.errors import InputError
from batwatt.scheduling.boxes import Boxes
from batwatt.systems.varcap.preemption import Preemptions

CORES = 3
RULE = {"name": "checkpoint", "checkpoint_s": 20, "recovery_s": 10}
ONE = {"machines": 1, "cores": 1, "capacity": "1", "termination": "lww", "victim": RULE, "preemption": "slowdown"}
LONG = "a 0 1000 1"


def test_a_short_job_is_not_kept_waiting():
    # b would wait till 1000; a checkpoint takes 20 s, so that a stops at 120 with 100 s saved, recovers for 10 s and
    # does the other 900
    assert scheduler(LONG, "b 100 10 1", **ONE) == {"a": "0-120@0x 130-1040@0", "b": "120-130@0"}


@pytest.mark.parametrize("factor,longest", [(2, 648), (4, 454)])
def test_what_it_must_be_worth(factor, longest):
    # b of p s gains (1000 - 120) / p, a loses (p + C + R) / 1000: p (p + 30) < 880,000 / factor
    rule = {"name": "slowdown", "factor": factor}
    assert scheduler(LONG, f"b 100 {longest} 1", **ONE | {"preemption": rule})["b"].startswith("120-")
    assert scheduler(LONG, f"b 100 {longest + 1} 1", **ONE | {"preemption": rule})["a"] == "0-1000@0"


def test_how_often():
    rule = {"name": "slowdown", "most": 1}
    found = scheduler(LONG, "b 100 10 1", "c 300 10 1", **ONE | {"preemption": rule})
    assert found == {"a": "0-120@0x 130-1040@0", "b": "120-130@0", "c": "1040-1050@0"}


def test_a_run_too_short_for_a_checkpoint_begins_again():
    # a saves nothing; what takes no time is announced a second before
    found = scheduler(LONG, "b 15 10 1", **ONE | {"victim": "resubmit"})
    assert found == {"a": "0-16@0x 26-1026@0", "b": "16-26@0"}


def test_the_job_that_loses_least_is_stopped():
    # a loses 2 x 40 / 1000, c half of that
    found = scheduler(LONG, "c 0 2000 1", "b 100 10 1", **ONE | {"machines": 2, "capacity": "2"})
    assert found == {"a": "0-1000@0", "c": "0-120@1x 130-2040@1", "b": "120-130@1"}


def test_as_few_as_will_do():
    # x alone would be the cheapest for a machine, but b needs two, which y has
    found = scheduler("x 0 4000 1", "y 0 1000 2", "b 100 10 2", **ONE | {"machines": 3, "capacity": "3"})
    assert found == {"x": "0-4000@0", "y": "0-120@1,2x 130-1040@1,2", "b": "120-130@1,2"}


def test_on_a_machine_that_is_shared():
    # a core is enough: c goes rather than a, which costs twice as much
    found = scheduler("a 0 1000 3", "c 0 2000 1", "b 100 10 1", **ONE | {"cores": 4})
    assert found == {"a": "0-1000@0", "c": "0-120@0x 130-2040@0", "b": "120-130@0"}
    # memory is needed of both
    memory = ("a 0 1000 3 memory=4", "c 0 2000 1 memory=4", "b 100 10 1 memory=8")
    found = scheduler(*memory, **ONE | {"cores": 4, "machine_memory": 8})
    assert found == {"a": "0-120@0x 130-1040@0", "c": "0-120@0x 130-2040@0", "b": "120-130@0"}


def test_nobody_is_stopped_for_what_another_one_leaves():
    # b and c both have room on the machines of y, which costs half of x
    found = scheduler("x 0 500 1", "y 0 1000 2", "b 100 10 1", "c 100 10 1", **ONE | {"machines": 3, "capacity": "3"})
    assert found == {"x": "0-500@0", "y": "0-120@1,2x 130-1040@1,2", "b": "120-130@1", "c": "120-130@2"}


def test_a_machine_that_leaves_before():
    # a is killed for its machine at 110, so that nobody is left to be stopped at 120
    found = scheduler(LONG, "b 100 10 1", **ONE | {"capacity": "1 110:0 500:1", "order": "smith"})
    assert found == {"a": "0-110@0x 510-1430@0", "b": "500-510@0"}


def test_a_victim_that_ends_before_is_left_alone():
    assert scheduler("a 0 110 1", "b 100 1 1", **ONE) == {"a": "0-110@0", "b": "110-111@0"}


@pytest.mark.parametrize("more", [{"victim": "lose"}, {"mapping": "migration"}])
def test_what_does_not_go_together(more):
    with pytest.raises(InputError, match="option 'preemption'"):
        scheduler(LONG, **ONE | {"termination": "lww"} | more)


@pytest.mark.parametrize("rule", [{"factor": 0.5}, {"most": -1}, {"most": 1.5}])
def test_bad_parameters(rule):
    with pytest.raises(InputError, match="option 'preemption'"):
        scheduler(LONG, **ONE | {"preemption": {"name": "slowdown", **rule}})


CHOSEN = {"mapping": "base", "termination": "least-loss", "order": "smith", "backfilling": "easy"}
CHOSEN |= {"victim": RULE, "preemption": "slowdown"}


def all_sorted(self, now_s, gap):
    """Every task that waits, in order, whether it fits or not."""
    slots = np.array(list(self._slots.values()))
    *_, ranks, serials = self._columns[:, slots]
    return iter([self._items[slots[i]] for i in np.lexsort((serials, ranks, self._keys(slots, now_s)))])


def all_weighed(self, fleet, refused):
    """The rule as it is written: every task that waits, but for those that were weighed on the same fleet."""
    now = (fleet.serving, [(task.number, task.start_s) for task in fleet.tasks.values()])
    weighed = self._weighed if now == self._fleet_then else set()
    weighed = weighed | {notice.task.number for notice in self.notices}
    self._fleet_then, self._weighed = now, set(self._waiting)
    rows = [entry for bucket in self._lengths.values() for entry in bucket.entries() if entry[1] not in weighed]
    for _, number, task in sorted(rows):
        if self._waiting[number] not in refused:
            yield task, self._waiting[number]


@pytest.mark.parametrize(
    ("order", "backfilling"), [("smith", "easy"), ("wfp", "first-fit"), ("fcfs", "none"), ("desc_walltime", "easy")]
)
def test_long_queues_are_as_sorting_all_of_them(order, backfilling):
    draw = random.Random(order)
    jobs = [
        PlainJob(str(i), draw.choice([0.0, 10.0 * i]), draw.choice([5.0, 40.0, 600.0, i + 1.0]), 1 + i % (CORES + 2))
        for i in range(120)
    ]
    capacity = [(0.0, 4), (200.0, 2), (500.0, 3)]
    chosen = CHOSEN | {"order": order, "backfilling": backfilling}
    record, _ = play(jobs, capacity, 4, CORES, energy=True, **chosen)
    with patch.object(Boxes, "sorted", all_sorted), patch.object(Preemptions, "_to_weigh", all_weighed):
        assert play(jobs, capacity, 4, CORES, energy=True, **chosen)[0] == record
