"""Orders and backfillings on schedules worked out by hand."""

from __future__ import annotations

import pytest
from builders import envelope, job, machine, played, starts, workload_of
from clusters import enqueue

from batwatt.batsim.adapters import simulate
from batwatt.engine.core import Engine
from batwatt.inputs.batsim_files import read_events
from batwatt.schedulers.easy import Easy
from batwatt.scheduling.queue import Gap, Queue
from batwatt.scheduling.registry import make


def scheduler(order="fcfs", backfilling="easy"):
    return Easy({"order": order, "backfilling": backfilling, "response": "none"})


def test_a_step_of_the_envelope_ends_with_a_backfilling_but_with_none_there_are_no_steps():
    # "b" reserves both hosts for 100 s, when "a" ends; "c" would delay it. From 3 s on "c" has the larger slowdown,
    # (t - 2) / 200 > (t - 1) / 400, but nothing happens in the queue until "a" ends: only a step can start it before
    jobs = [job("a", 0, 1, 100, 100), job("b", 1, 2, 400, 400), job("c", 2, 1, 200, 200)]
    parts = {"order": "slowdown", "backfilling": "easy", "platform": machine(2)}
    plenty = envelope(*[1000.0, 1001.0] * 5, step=50.0)
    stepping = played(Easy(parts | {"response": "hfld", "envelope": plenty}), machine(2), *jobs)
    assert {name: at for name, (at, _) in starts(stepping).items()} == {"a": 0, "c": 50, "b": 250}
    for caps in ({}, {"envelope": plenty}, {"envelope": envelope(1.0)}):
        baseline = played(Easy(parts | {"response": "none"} | caps), machine(2), *jobs)
        assert {name: at for name, (at, _) in starts(baseline).items()} == {"a": 0, "c": 100, "b": 300}


class Row:
    def __init__(self, submit, walltime, hosts):
        self.submit_time, self.requested_time, self.requested_resources = submit, walltime, hosts
        self.id = f"{submit}/{walltime}/{hosts}"


# now = 100: (wait + walltime) / walltime is 1.9, 9, 1.25, 1.0
ROWS = [Row(10, 100, 2), Row(20, 10, 1), Row(0, 400, 4), Row(100, 50, 8)]
EXPECTED = {
    "fcfs": [2, 0, 1, 3],
    "lcfs": [3, 1, 0, 2],
    "asc": [1, 0, 3, 2],  # areas 200, 10, 1600, 400
    "desc": [2, 3, 0, 1],
    "slowdown": [1, 0, 2, 3],
    "asc_walltime": [1, 3, 0, 2],
    "desc_walltime": [2, 0, 3, 1],
    "asc_size": [1, 0, 2, 3],
    "desc_size": [3, 2, 0, 1],
    "widest": [3, 2, 0, 1],
    "smith": [1, 0, 3, 2],  # walltime^2 x hosts: 20000, 100, 640000, 20000 (of equals the earlier)
    "wfp": [1, 0, 2, 3],  # (wait / walltime)^3 x hosts: 1.458, 512, 0.0625, 0
}


@pytest.mark.parametrize("name", EXPECTED)
def test_order_of_four_jobs(name):
    queue = Queue(make("order", name))
    enqueue(queue, *ROWS)
    assert [ROWS.index(waiting.attempt) for waiting in queue.ordered(100.0)] == EXPECTED[name]
    assert next(queue.ordered(100.0)).attempt is ROWS[EXPECTED[name][0]]
    fitting = [ROWS.index(waiting.attempt) for waiting in queue.fitting(100.0, Gap(4))]
    assert fitting == [i for i in EXPECTED[name] if i != 3]


# two hosts; a: 1 host for 100 s; b: both hosts; c, d, e: one host
BLOCKED = (job("a", 0, 1, 90, 100), job("b", 1, 2, 10, 20))


# 4 hosts; a holds 2 until 100 s; the head b needs 3 of them; at 100 s one host is to spare, for c but not for d too
SPARE = [job("a", 0, 2, 100, 100.5), job("b", 1, 3, 10, 20), job("c", 2, 1, 500, 600), job("d", 3, 1, 500, 600)]
# a runs until 100 s; then long (walltime 1000, waits 99 s: 1.099) and short (walltime 20, waits 10 s: 1.5)
AGEING = [job("a", 0, 1, 100, 100.5), job("long", 1, 1, 10, 1000), job("short", 90, 1, 10, 20)]


@pytest.mark.parametrize(
    ("parts", "hosts", "jobs", "expected"),
    [
        (("fcfs", "first-fit"), 2, [*BLOCKED, job("c", 2, 1, 200, 300)],
         {"a": (0, "0"), "c": (2, "1"), "b": (202, "0-1")}),
        # the head b can start at 100 s (walltime of a); c would end at 302 s, d at 2 + 98 = 100 s
        (("fcfs", "easy"), 2, [*BLOCKED, job("c", 2, 1, 200, 300), job("d", 2, 1, 5, 98)],
         {"a": (0, "0"), "d": (2, "1"), "b": (90, "0-1"), "c": (100, "0")}),
        (("fcfs", "easy"), 2, [*BLOCKED, job("d", 2, 1, 5, 99)], {"d": (100, "0")}),
        (("fcfs", "easy"), 4, SPARE, {"a": (0, "0-1"), "c": (2, "2"), "b": (100, "0-1 3"), "d": (110, "0")}),
        # no walltime: the head's shadow time is infinite, so everything may pass it
        (("fcfs", "easy"), 2, [job("a", 0, 1, 90), job("b", 1, 2, 10), job("c", 2, 1, 5)],
         {"a": (0, "0"), "c": (2, "1"), "b": (90, "0-1")}),
        (("slowdown", "easy"), 1, AGEING, {"short": (100, "0")}),
        (("fcfs", "easy"), 1, AGEING, {"short": (110, "0")}),
    ],
    ids=["narrow jobs pass the head", "by the shadow time", "a second after the shadow time", "hosts to spare",
         "without walltimes", "an order that changes with time", "an order that does not"],
)  # fmt: skip
def test_schedules_by_hand(parts, hosts, jobs, expected):
    begins = starts(played(scheduler(*parts), machine(hosts), *jobs))
    assert {name: begins[name] for name in expected} == expected


def test_easy_counts_only_the_hosts_that_are_there_when_a_job_ends(tmp_path):
    # a holds 0-1, which go away; it frees nothing at 99 s, so the head h needs 2-3 then and d may not take host 3
    events = tmp_path / "events.txt"
    events.write_text('{"type": "machine_unavailable", "resources": "0-1", "timestamp": 1}\n')
    jobs = [job("a", 0, 2, 98, 99), job("b", 0, 1, 98, 99), job("h", 2, 2, 10, 20), job("d", 3, 1, 1000, 2000)]
    engine = Engine(machine(4), [workload_of(*jobs)], events=read_events(events, forward_unknown=False))
    assert starts(simulate(engine, scheduler())) == {"a": (0, "0-1"), "b": (0, "2"), "h": (98, "2-3"), "d": (108, "2")}
