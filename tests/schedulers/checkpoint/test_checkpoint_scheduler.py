"""The scheduler checkpoint on the embedded engine: hand-worked runs, and that it does what plans claim."""

from __future__ import annotations

import itertools
import math

import pytest
from by_hand import blocks_of, job_row, options_of, series_of
from checkpoint_talk import META, in_words, play, spans_of
from examples import examples
from hypothesis import HealthCheck, assume, given
from hypothesis import strategies as st
from links import ThroughText

from batwatt.errors import InputError
from batwatt.model.attempt import WINDOW_OVER
from batwatt.schedulers.checkpoint import knapsack as knapsacks
from batwatt.schedulers.checkpoint.period_plan import NoPeriodPlanError, PeriodJob
from batwatt.schedulers.checkpoint.sequence import CapacitySequence, follow

RULES = blocks_of("""
jobs that end make room in the middle of a period
  # d waits for all four, and nothing stops the others for it without a change
  machines=4, capacity=4, checkpoint_s=5, recovery_s=5
  a 0 30 3, b 0 200 1, c 10 50 2, d 20 500 4
  a: work 0-30
  b: work 0-200
  c: work 30-80
  d: work 200-700
what is left is done after the recovery
  # 4 machines, 2 from 100 s on, 4 from 200 s on. The longer job stays: it has 160 - 98 = 62 s left, a 260 s in all
  machines=4, capacity=4 100:2 200:4, checkpoint_s=2, recovery_s=3, prepare=all
  a 0 260 2, b 0 160 2
  a: work 0-98 saved | checkpoint 98-100 | work 100-198 saved | checkpoint 198-200 | work 200-264
  b: work 0-98 saved | checkpoint 98-100 | recovery 200-203 | work 203-265
a warning that is too short costs the work since the last checkpoint
  # b has lost 60 s, a would lose 100
  machines=2, capacity=2 100:1 200:2, checkpoint_s=10, recovery_s=5, until_s=300, warning_s=9
  a 0 1e7 1, b 40 1e7 1
  a: work 0-300
  b: work 40-100 | recovery 200-205 | work 205-300
a warning that is long enough
  # one of them is checkpointed, and the other goes on
  machines=2, capacity=2 100:1 200:2, checkpoint_s=10, recovery_s=5, until_s=300, warning_s=10
  a 0 1e7 1, b 40 1e7 1
  a: work 0-90 saved | checkpoint 90-100 | recovery 200-205 | work 205-300
  b: work 40-190 saved | checkpoint 190-200 | work 200-300
without machines everything waits
  machines=1, capacity=1 100:0 200:1, checkpoint_s=2, recovery_s=3
  a 0 150 1
  a: work 0-98 saved | checkpoint 98-100 | recovery 200-203 | work 203-255
checkpoints and recoveries that take no time
  machines=1, capacity=1 100:0 200:1, checkpoint_s=0, recovery_s=0
  a 0 150 1
  a: work 0-100 saved | work 200-250
jobs say how long their checkpoints take
  machines=1, capacity=1 100:0 200:1
  a 0 150 1 checkpoint_s=10 recovery_s=0
  a: work 0-90 saved | checkpoint 90-100 | work 200-260
machines of several cores belong to one job at a time
  # 5 cores are 2 machines of 4: the third is left for b, whose 1 core takes all of it
  machines=3, capacity=3, cores=4
  a 0 50 5, b 0 50 1, c 0 50 3
  a: work 0-50
  b: work 0-50
  c: work 50-100
a walltime counts work alone
  # 120 s of walltime for 200 s of work: 98 s before, 22 s after the recovery
  machines=1, capacity=1 100:0 200:1, checkpoint_s=2, recovery_s=3
  a 0 200 1 walltime=120
  a: work 0-98 saved | checkpoint 98-100 | recovery 200-203 | work 203-225
what cannot be saved leaves room for the deepest fall
  # of 4 machines 2 stay at 100 s, when x and y could not be saved, of which 30 s are asked for; z has ended by then
  machines=4, capacity=4 100:2, checkpoint_s=30, recovery_s=5
  x 80 200 2, y 80 200 2, z 80 10 1
  x: work 80-280
  y: work 280-480
  z: work 80-90
a job that starts after a change is announced is saved
  # c has no time for a checkpoint before 100 s; f, which is worth more, waits for it: the change is announced at 130 s
  machines=4, capacity=2 100:4 200:1 300:4, k=1
  c 60 70 1 checkpoint_s=70 recovery_s=10, f 0 70 4 checkpoint_s=1 recovery_s=0
  c: work 60-100 saved | checkpoint 100-170 | recovery 200-210 | work 210-240
  f: work 170-199 saved | checkpoint 199-200 | work 300-341
""")


@pytest.mark.parametrize("name", RULES)
def test_rules(name):
    setup, jobs, *lines = RULES[name]
    options = options_of(setup)
    assert in_words(play(jobs, str(options.pop("capacity")), **options)) == lines


TWO = "a 0 1e7 1, b 0 1e7 1"


def test_a_fall_of_more_than_k_kills():
    spans = spans_of(play(TWO + ", c 0 1e7 1", "3 100:1", 3, k=1, checkpoint_s=4, recovery_s=1, until_s=200))
    lost = [name for name, own in spans.items() if not own[0][4] and own[0][2] == 100]
    assert (len(lost), sum(own[0][4] for own in spans.values())) == (1, 1)


@pytest.mark.parametrize(
    ("capacity", "until_s", "expected"),
    [
        # recoveries take 150 s, changes come every 100 s: b would never recover if that had to end before a change
        ("2 100:1 200:2 300:2 400:2", 500, "recovery 200-350 | work 350-"),
        # a recovery that a fall ends loses nothing
        ("2 100:1 200:2 300:1 400:2 500:2", 600,
         "checkpoint 96-100 | recovery 200-300 | recovery 400-550 | work 550-600"),
    ],
)  # fmt: skip
def test_a_change_in_the_middle_of_a_recovery(capacity, until_s, expected):
    record = play(TWO, capacity, 2, checkpoint_s=4, recovery_s=150, until_s=until_s, k=1)
    assert expected in " ".join(in_words(record))


def test_a_checkpoint_that_is_due_as_the_recovery_ends():
    # b recovers up to the time at which it is to be checkpointed, or a moment later: machines take a microsecond
    capacity = "2 " + " ".join(f"{100 * i}:{2 - i % 2}" for i in range(1, 8))
    record = play(TWO, capacity, 2, energy=True, checkpoint_s=10, recovery_s=90, until_s=700, k=1)
    assert not [row for row in record.jobs if row[7] == "COMPLETED_KILLED" and row[META] == "" and row[10] < 700]


@pytest.mark.parametrize("between", [None, ThroughText])
@pytest.mark.parametrize("checkpoint_s", [7, 60])
def test_changes_at_dates_that_batsim_cannot_tell(between, checkpoint_s):
    for shift in (1 / 3, 2 / 3, 1.333333333):
        capacity = series_of([(0.0, 2), *((400 * i / 3 + shift, 2 - i % 2) for i in range(1, 41))])
        options = {"between": between, "checkpoint_s": checkpoint_s, "k": 0, "min_yield": 0.5}
        record = play("a 0 5000 1, b 1 5000 2, c 1 500 1", capacity, 3, **options)
        assert sum(row[7] == "COMPLETED_SUCCESSFULLY" and row[META] == "" for row in record.jobs) == 3


def test_what_is_rejected():
    record = play("a 0 50 3, b 0 50 1, late 150 50 2", "2 100:1", 3)
    assert [row[0] for row in record.jobs if row[7] == "REJECTED"] == ["a", "late"]
    # what waits at the end is told
    record = play("a 0 1e7 2, b 0 1e7 2", "2", 2, until_s=100)
    assert [row[META] for row in record.jobs if row[7] == "REJECTED"] == [WINDOW_OVER]


@pytest.mark.parametrize(
    ("fields", "options", "said"),
    [
        ({"_profile": {"type": "parallel_homogeneous", "cpu": 1e9, "com": 0}, "walltime": 100}, {}, "is no delay"),
        ({"depends_on": ["b"]}, {}, "depends on others"),
        ({"checkpoint_s": -1}, {}, "checkpoint_s must be a number >= 0"),
        ({}, {"k": 3}, "option 'k': must be from 0 to 2, all machines, got 3"),
        ({}, {"min_yield": 0.5, "method": "subset-sum"}, "option 'min_yield': is for the method dp"),
    ],
)
def test_what_is_refused(fields, options, said):
    with pytest.raises(InputError, match=said):
        play([job_row("a 0 50 1") | fields, job_row("b 0 50 1")], "2", 2, **options)


@pytest.mark.parametrize("objective", ["cheapest", "worst", "expected"])
def test_tables_that_are_too_large_stop_nothing(monkeypatch, objective):
    monkeypatch.setattr(knapsacks, "MOST_BYTES", 400)  # one phase of 6 processors has room, two have not
    monkeypatch.setattr(knapsacks, "SMALL_CELLS", 0)
    monkeypatch.setattr(knapsacks, "MOST_CELLS", 0)
    options = {"checkpoint_s": 5, "recovery_s": 5, "k": 1, "until_s": 300}
    jobs = "0 0 1e7 1, 1 0 1e7 2, 2 0 1e7 3, 3 0 1e7 5"
    record = play(jobs, "6 100:5 200:6", 6, prepare=objective, **options)
    assert in_words(record)[0].startswith("0: work 0-95 saved | checkpoint 95-100")


small = st.integers(0, 9)
long = st.sampled_from([32, 48, 58, 79])
sequences = st.integers(3, 14).flatmap(
    lambda machines: st.fixed_dictionaries(
        {
            "machines": st.just(machines),
            "moves": st.lists(st.sampled_from([-4, -3, -2, -1, 1, 2, 3, 4]), max_size=6),
            "first": st.integers(1, machines),
            "jobs": st.lists(st.tuples(st.integers(1, machines), small | long, small), min_size=1, max_size=7),
            "constant": st.sampled_from([None, 2]),
            "method": st.sampled_from(["dp", "dp", "subset-sum"]),
            "prepare": st.sampled_from(["cheapest", "worst", "expected", "all"]),
            "cover": st.sampled_from(["k", "needed"]),
            "min_yield": st.sampled_from([0.0, 0.0, 0.3, 0.7, 1.0]),
        }
    )
)


@examples(150, suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much])
@given(sequences)
def test_the_engine_gives_what_plans_claim(drawn):
    machines, capacities = drawn["machines"], [drawn["first"]]
    for move in drawn["moves"]:
        capacities.append(min(max(capacities[-1] + move, 1), machines))
    # where the capacity stays there is no change to prepare for
    assume(all(one != two for one, two in itertools.pairwise(capacities)))
    # a checkpoint that takes no time needs no plan: the scheduler saves such jobs at every change
    drawn["min_yield"] *= drawn["method"] == "dp"
    jobs = [(min(p, min(capacities)), drawn["constant"] or c + 1, r) for p, c, r in drawn["jobs"]]
    options = {name: drawn[name] for name in ("method", "min_yield", "cover")}
    sequence = CapacitySequence(
        100.0,
        tuple(capacities),
        min(4, max(capacities)),
        tuple(PeriodJob(str(n), p, float(c), float(r), "stopped") for n, (p, c, r) in enumerate(jobs)),
        platform=machines,
        new=frozenset(str(n) for n in range(len(jobs))),
    )
    try:
        claimed = follow(sequence, objective=drawn["prepare"], **options)
    except (NoPeriodPlanError, ValueError):
        assume(False)
    rows = [job_row(f"{n} 0 1e7 {p} checkpoint_s={c} recovery_s={r}") for n, (p, c, r) in enumerate(jobs)]
    capacity = series_of([(100.0 * n, p) for n, p in enumerate(capacities)])
    end_s = 100.0 * len(capacities)
    record = play(rows, capacity, machines, k=sequence.k, prepare=drawn["prepare"], until_s=end_s, **options)
    spans = [(name, *span) for name, all_of in spans_of(record).items() for span in all_of]
    acts = [act for period in claimed.periods for act in period.plan.acts]
    for job, (cpus, _, _) in enumerate(jobs):
        worked = math.fsum(end - begin for name, kind, begin, end, *_ in spans if name == str(job) and kind == "work")
        claimed_s = math.fsum(act.work_s for act in acts if act.job.id == str(job))
        assert worked == pytest.approx(claimed_s, abs=1e-5), (job, cpus)


def test_a_row_of_the_same_capacity_is_no_change():
    """Nothing is saved before it: the job of 1000 s ends at 1000 s, in one piece."""
    rows = [job_row("0 0 1000 1 checkpoint_s=60 recovery_s=60")]
    one, two = ([(0.0, 2), (2000.0, 1)], [(0.0, 2), (500.0, 2), (2000.0, 1)])
    for steps in (one, two):
        record = play(rows, series_of(steps), 2)
        assert [(row.starting_time, row.execution_time) for row in record.jobs] == [(0.0, 1000.0)]
