"""EASY backfilling against a second, plain implementation that looks at everything again at every message."""

from __future__ import annotations

import math

from builders import job, machine, played
from examples import examples
from hypothesis import given
from hypothesis import strategies as st

from batwatt.schedulers.easy import Easy
from batwatt.scheduling.backfilling import Backfilling
from batwatt.scheduling.registry import make


class PlainEasy(Backfilling):
    """The rule as it is told: start heads, reserve for the first that does not fit, then try each other in order."""

    def __init__(self, order):
        self.order = order

    def place(self, cluster):
        now = cluster.now_s
        queue = sorted(cluster.queue, key=lambda w: (float(self.order.key(w, now)), w.submit_s, w.number))
        free = [host for host in range(cluster.count) if cluster.free >> host & 1]
        ends = [(run.deadline_s, run.hosts) for run in cluster.running.values()]
        starts = []

        def begin(waiting):
            nonlocal free
            starts.append((waiting, sum(1 << host for host in free[: waiting.hosts])))
            free = free[waiting.hosts :]
            ends.append((now + waiting.walltime_s, waiting.hosts))

        while queue and queue[0].hosts <= len(free):
            begin(queue.pop(0))
        if not queue:
            return starts
        head, count, shadow, spare = queue.pop(0), len(free), math.inf, 0
        for time in sorted({end for end, _ in ends}):
            count = len(free) + sum(hosts for end, hosts in ends if end <= time)
            if count >= head.hosts:
                shadow, spare = time, count - head.hosts
                break
        for waiting in queue:
            if waiting.hosts > len(free):
                continue
            if waiting.walltime_s > shadow - now:
                if waiting.hosts > spare:
                    continue
                spare -= waiting.hosts
            begin(waiting)
        return starts


rows = st.lists(
    st.tuples(st.integers(0, 300), st.integers(1, 6), st.integers(1, 120), st.floats(1.0, 3.0)), min_size=1, max_size=80
)


@examples(150)
@given(rows=rows, order=st.sampled_from(["fcfs", "slowdown", "asc", "desc", "lcfs"]))
def test_both_implementations_start_the_same_jobs_at_the_same_time(rows, order):
    jobs = [job(i, at, hosts, run, round(run * factor) + 1) for i, (at, hosts, run, factor) in enumerate(rows)]
    records = []
    for backfilling in ("easy", PlainEasy(make("order", order))):
        scheduler = Easy({"order": order})
        scheduler.the_backfilling = make("backfilling", backfilling)
        records.append(played(scheduler, machine(6), *jobs))
    assert records[0] == records[1]
