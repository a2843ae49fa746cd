"""The target strategies against a plain second implementation, on small random instances."""

from __future__ import annotations

from operator import itemgetter

from examples import examples
from hypothesis import given
from hypothesis import strategies as st
from machine_talk import ByHand, machine_job
from plain_targets import OVER, RUNS, PlainTargets

from batwatt.systems.riskaware.targets import Targets, TargetSettings

ninths = ByHand({length / 4: length % 9 / 8 for length in range(1, 200)})
lengths = st.integers(1, 160).map(lambda quarters: quarters / 4) | st.sampled_from([4.0, 8.0, 16.0])
thresholds = st.sampled_from([(0.80, 0.95)] * 4 + [(0.5, 0.75), (0.0, 1.0), (1.0, 1.0), (0.3, 0.3), (0.9, 0.2)])


@st.composite
def instances(draw):
    machines, cores = draw(st.integers(1, 6)), draw(st.integers(1, 4))
    low, high = draw(thresholds)
    rules = TargetSettings(
        always=draw(st.integers(0, machines)),
        distance=draw(st.integers(0, machines)),
        limit=draw(st.sampled_from([0.0, 1.0, 1.0, 1.5])),
        pack=draw(st.sampled_from([1, 1, 2, 5])),
        low=low,
        high=high,
        usable=draw(st.none() | st.integers(1, machines)),
        drop=draw(st.booleans()),
        paper=draw(st.booleans()),
    )
    job = st.tuples(lengths, st.integers(1, cores), st.none() | st.floats(0.0, 1.0))
    step = st.tuples(
        st.integers(1, 60).map(lambda quarters: quarters / 4) | st.sampled_from([4.0, 8.0]),
        st.none() | st.integers(0, machines) | st.integers(machines // 2, machines),
        st.lists(job, max_size=4),
        st.none() | st.tuples(st.integers(0, 24), st.booleans()),
    )
    first = (draw(st.integers(0, machines)), draw(st.lists(job, max_size=6)))
    return machines, cores, rules, first, draw(st.lists(step, max_size=12))


class Both:
    """The two implementations side by side."""

    def __init__(self, machines, cores, rules):
        self.ours = Targets(machines, cores, rules, ninths)
        self.plain = PlainTargets(machines, cores, rules, lambda length_s: float(ninths.of([length_s])[0]))

    def advance(self, time_s, alive=None, rows=(), begins=False):
        jobs = []
        for length_s, cores, gone in rows:
            if len(self.plain.jobs) + len(jobs) == 25:
                break
            run_s, late_s = length_s, 0.0
            if begins and gone is not None:
                # it has been running for some quarters of a second
                run_s -= int(gone * (length_s - 0.25) * 4) / 4
            elif gone is not None:
                # some come late, but not before what was released earlier
                late_s = min(int(8 * gone), time_s - self.plain.jobs[-1].release_s if self.plain.jobs else 0.0)
            jobs.append((time_s - (length_s - run_s) - late_s, length_s, run_s, cores))
        jobs.sort(key=itemgetter(0))
        jobs = [machine_job(len(self.plain.jobs) + i, *job) for i, job in enumerate(jobs)]
        self.same(self.ours.advance(time_s, alive, jobs), self.plain.advance(time_s, alive, jobs))

    def ended(self, pick, time_s):
        running = [job.number for job in self.plain.jobs if job.state == RUNS and job.end_s > time_s]
        if running:
            number = running[pick % len(running)]
            self.same(self.ours.ended(number, time_s), self.plain.ended(number, time_s))

    def same(self, ours, plain):
        assert list(ours) == plain
        assert self.ours.usable == self.plain.usable
        assert self.ours.worst_stretch == self.plain.worst_stretch
        assert len(self.ours.machines_alive()) == self.plain.alive
        for job in self.plain.jobs:
            if job.state != OVER:
                assert self.ours.machine_of(job.number) == job.machine
                if job.machine >= 0:
                    # what runs is planned from the last change on
                    assert self.ours.planned_s(job.number)[1] == job.end_s
                    if job.state != RUNS:
                        assert self.ours.planned_s(job.number)[0] == job.start_s


def compare(machines, cores, rules, first, steps):
    both, time_s = Both(machines, cores, rules), 16.0
    both.advance(time_s, first[0], first[1], begins=True)
    for gap_s, alive, rows, early in steps:
        time_s += gap_s
        if early is not None:
            # now and then before the planner has heard of that very time, as on the engine
            both.advance(time_s - 0.125 * early[1])
            both.ended(early[0], time_s)
        both.advance(time_s, alive, rows)
    both.advance(1e6)
    both.advance(1e6, machines)
    both.advance(2e6)
    assert all(job.state == OVER for job in both.plain.jobs)


@examples(300)
@given(instances())
def test_a_plain_second_implementation_does_the_same(instance):
    compare(*instance)
