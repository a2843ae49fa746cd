"""Running jobs that are stopped for a waiting one, by hand and by laws (docs/explanation/adaptive.md)."""

from __future__ import annotations

import random
from unittest.mock import patch

import pytest
from builders import job
from varcap_talk import play, rules_of, scheduler

from batwatt.errors import InputError
from batwatt.schedulers.varcap.preemption import Preemptions

CORES = 3
RULE = {"name": "checkpoint", "checkpoint_s": 20, "recovery_s": 10}
ONE = {"machines": 1, "cores": 1, "termination": "lww", "victim": RULE, "preemption": "slowdown"}
RULES = rules_of("""
a short job is not kept waiting
  # b would wait till 1000; a checkpoint takes 20 s, so that a stops at 120 with 100 s saved, recovers for 10 s and does
  # the other 900
  machines=1
  a 0 1000 1, b 100 10 1
  -> a 0-120@0x 130-1040@0, b 120-130@0
it must be worth {2|4} times what it costs
  # b of p s gains (1000 - 120) / p, a loses (p + C + R) / 1000: p (p + 30) < 880,000 / factor
  preemption={"name": "slowdown", "factor": {2|4}}
  a 0 1000 1, b 100 {648|454} 1
  ~> b 120-{768|574}@0
a second longer is not worth {2|4} times what it costs
  preemption={"name": "slowdown", "factor": {2|4}}
  a 0 1000 1, b 100 {649|455} 1
  ~> a 0-1000@0
once only
  preemption={"name": "slowdown", "most": 1}
  a 0 1000 1, b 100 10 1, c 300 10 1
  -> a 0-120@0x 130-1040@0, b 120-130@0, c 1040-1050@0
a run too short for a checkpoint begins again
  # a saves nothing; what takes no time is announced a second before
  victim=resubmit
  a 0 1000 1, b 15 10 1
  -> a 0-16@0x 26-1026@0, b 16-26@0
the job that loses least is stopped
  # a loses 2 x 40 / 1000, c half of that
  machines=2
  a 0 1000 1, c 0 2000 1, b 100 10 1
  -> a 0-1000@0, c 0-120@1x 130-2040@1, b 120-130@1
as few as will do
  # x alone would be the cheapest for a machine, but b needs two, which y has
  machines=3
  x 0 4000 1, y 0 1000 2, b 100 10 2
  -> x 0-4000@0, y 0-120@1,2x 130-1040@1,2, b 120-130@1,2
a core of a machine that is shared is enough
  # c goes rather than a, which costs twice as much
  cores=4
  a 0 1000 3, c 0 2000 1, b 100 10 1
  -> a 0-1000@0, c 0-120@0x 130-2040@0, b 120-130@0
memory is needed of both
  cores=4, machine_memory=8
  a 0 1000 3 memory=4, c 0 2000 1 memory=4, b 100 10 1 memory=8
  -> a 0-120@0x 130-1040@0, c 0-120@0x 130-2040@0, b 120-130@0
nobody is stopped for what another one leaves
  # b and c both have room on the machines of y, which costs half of x
  machines=3
  x 0 500 1, y 0 1000 2, b 100 10 1, c 100 10 1
  -> x 0-500@0, y 0-120@1,2x 130-1040@1,2, b 120-130@1, c 120-130@2
a machine that leaves before
  # a is killed for its machine at 110, so that nobody is left to be stopped at 120
  capacity=1 110:0 500:1, order=smith
  a 0 1000 1, b 100 10 1
  -> a 0-110@0x 510-1430@0, b 500-510@0
a victim that ends before is left alone
  machines=1
  a 0 110 1, b 100 1 1
  -> a 0-110@0, b 110-111@0
""")


@pytest.mark.parametrize("name", RULES)
def test_rules(name):
    rule = RULES[name]
    assert rule.played(**ONE) == rule.expected


@pytest.mark.parametrize(
    "options",
    [{"victim": "lose"}, {"mapping": "migration"},
     *({"preemption": {"name": "slowdown"} | rule} for rule in ({"factor": 0.5}, {"most": -1}, {"most": 1.5}))],
)  # fmt: skip
def test_what_is_refused(options):
    with pytest.raises(InputError, match="option 'preemption'"):
        scheduler("a 0 1000 1", **ONE | options)


CHOSEN = {"mapping": "base", "termination": "least-loss", "order": "smith", "backfilling": "easy"}
CHOSEN |= {"victim": RULE, "preemption": "slowdown"}


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
        job(i, draw.choice([0.0, 10.0 * i]), 1 + i % (CORES + 2), draw.choice([5.0, 40.0, 600.0, i + 1.0]))
        for i in range(120)
    ]
    capacity = [(0.0, 4), (200.0, 2), (500.0, 3)]
    options = CHOSEN | {"order": order, "backfilling": backfilling}
    record, _ = play(jobs, capacity, 4, CORES, energy=True, **options)
    with patch.object(Preemptions, "_to_weigh", all_weighed):
        assert play(jobs, capacity, 4, CORES, energy=True, **options)[0] == record
