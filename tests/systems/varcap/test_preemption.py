"""Running jobs that are stopped for a waiting one, by hand and by laws (docs/explanation/adaptive.md)."""

from __future__ import annotations

import itertools
import random
from dataclasses import replace
from unittest.mock import patch

import numpy as np
import pandas as pd
import pytest
from examples import examples
from hypothesis import HealthCheck, given
from hypothesis import strategies as st
from links import ThroughText
from test_varcap_laws import CORES, MACHINES, capacity_of, check_capacity, check_machines, load, run, spec
from varcap_talk import runs_of, scheduler

from batwatt.errors import InputError
from batwatt.run.run import run as carry_out
from batwatt.scheduling.boxes import Boxes
from batwatt.systems.varcap.preemption import Preemptions

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


mixed = st.lists(
    st.tuples(
        st.integers(0, 300).map(float),
        st.integers(1, 9).map(float) | st.integers(200, 900).map(float),
        st.integers(1, CORES) | st.integers(1, MACHINES * CORES),
        st.integers(0, 8).map(float),
        st.none() | st.integers(1, 900).map(float),
        st.just(()),
    ),
    min_size=6,
    max_size=20,
)
"""Long jobs, and short ones that come meanwhile."""


@examples(200, suppress_health_check=[HealthCheck.too_slow])
@given(
    rows=mixed,
    values=st.lists(st.integers(1, MACHINES), min_size=1, max_size=4),
    step_s=st.sampled_from([50.0, 400.0]),
    most=st.integers(0, 3),
    cost_s=st.sampled_from([0.0, 2.0, 10.0]),
    options=st.fixed_dictionaries(
        {"mapping": st.sampled_from(["base", "longshort"]), "termination": st.sampled_from(["lww", "least-loss"])},
        optional={
            "order": st.sampled_from(["smith", "fcfs"]),
            "backfilling": st.sampled_from(["greedy", "easy"]),
            "nodes": st.just("dedicated"),
            "machine_memory": st.just(8.0),
            "foresight_h": st.just(0.02),
            "until_s": st.integers(1, 40).map(lambda tens: 10.0 * tens),
        },
    ),
)
def test_laws(rows, values, step_s, most, cost_s, options):
    """Capacity and cores are kept to, no job is lost or stopped too often, and its runs add up to its work."""
    jobs, capacity = load(rows), capacity_of(values, step_s)
    victim = {"name": "checkpoint", "checkpoint_s": cost_s, "recovery_s": cost_s}
    chosen = options | {"long_s": 100.0, "longest_s": 300.0, "victim": victim}
    chosen["preemption"] = {"name": "slowdown", "most": most}
    record = run(jobs, capacity, chosen)
    runs = runs_of(record, CORES)
    check_capacity(runs, capacity)
    check_machines(record, runs, jobs, chosen)
    falls = [at for (_, a), (at, b) in itertools.pairwise(capacity) if b < a]
    for job in jobs:
        own = sorted((one for one in runs if one.id == job.id), key=lambda one: one.attempt)
        assert [one.attempt for one in own] == list(range(len(own)))
        assert [one.how for one in own[:-1]] == ["killed"] * (len(own) - 1)
        stopped = [one for one in own[:-1] if not any(abs(at - one.end_s) <= 1e-3 for at in falls)]
        assert len(stopped) <= most
        saved_s = recovery_s = 0.0
        for one in own[:-1]:
            useful_s = one.end_s - one.start_s - recovery_s - cost_s
            saved_s += useful_s if useful_s >= 0.0 else 0.0
            recovery_s = cost_s if saved_s > 0.0 else 0.0
        if own[-1].how == "completed":
            ran_s = own[-1].end_s - own[-1].start_s
            assert ran_s == pytest.approx(recovery_s + job.length_s - saved_s, abs=1e-3)
        elif own[-1].how == "killed":
            assert own[-1].end_s == pytest.approx(chosen["until_s"], abs=1e-3)


MANY = [(float(10 * i), 600.0 if i % 3 == 0 else 4.0 + i % 5, 1 + i % (CORES + 2), 0.0, None, ()) for i in range(40)]
CHOSEN = {"mapping": "base", "termination": "least-loss", "order": "smith", "backfilling": "easy"}
CHOSEN |= {"victim": RULE, "preemption": "slowdown"}


def test_the_text_of_the_wire_changes_nothing():
    jobs, capacity = load(MANY), [(0.0, 4), (200.0, 2), (500.0, 3)]
    record = run(jobs, capacity, CHOSEN)
    assert run(jobs, capacity, CHOSEN, between=ThroughText) == record
    ends = [one.end_s for one in runs_of(record, CORES) if one.how == "killed"]
    assert len([end_s for end_s in ends if abs(end_s - 200.0) > 1.0]) > 5


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


@pytest.mark.parametrize("order", ["smith", "wfp", "fcfs", "desc_walltime"])
@pytest.mark.parametrize("backfilling", ["easy", "first-fit", "none"])
def test_long_queues_are_as_sorting_all_of_them(order, backfilling):
    draw = random.Random(order)
    rows = [
        (
            draw.choice([0.0, 10.0 * i]),
            draw.choice([5.0, 40.0, 600.0, float(i + 1)]),
            1 + i % (CORES + 2),
            0.0,
            None,
            (),
        )
        for i in range(120)
    ]
    jobs, capacity = load(rows), [(0.0, 4), (200.0, 2), (500.0, 3)]
    chosen = CHOSEN | {"order": order, "backfilling": backfilling}
    record = run(jobs, capacity, chosen)
    with patch.object(Boxes, "sorted", all_sorted), patch.object(Preemptions, "_to_weigh", all_weighed):
        assert run(jobs, capacity, chosen) == record


def test_batsim(tmp_path, batsim):
    of_files = []
    for engine in ("embedded", "batsim"):
        one = spec(tmp_path, "base", engine, engine)
        carry_out(replace(one, options=CHOSEN, batsim=batsim))
        of_files.append(pd.read_csv(tmp_path / f"{engine}_jobs.csv").sort_values("job_id").reset_index(drop=True))
    columns = ["job_id", "final_state", "starting_time", "finish_time"]
    pd.testing.assert_frame_equal(of_files[0][columns], of_files[1][columns], atol=1e-3, rtol=0.0)
    assert (of_files[0]["final_state"] == "COMPLETED_KILLED").any()
