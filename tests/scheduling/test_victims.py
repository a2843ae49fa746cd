"""What becomes of a job that is killed (docs/explanation/victims.md), by hand, in the three systems that know it."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
from builders import envelope, job, machine, played, workload_of
from by_hand import capacity_of, series_of
from examples import examples
from hypothesis import given
from hypothesis import strategies as st
from machine_talk import ByHand, Talk
from varcap_talk import job_of, play, scheduler

from batwatt.errors import InputError
from batwatt.schedulers.checkpoint import Checkpoint
from batwatt.schedulers.easy import Easy
from batwatt.schedulers.riskaware.planners import FirstFitStrategy, Targets, TargetSettings
from batwatt.schedulers.riskaware.scheduler import Riskaware
from batwatt.schedulers.varcap import Varcap
from batwatt.scheduling.job import JobLengths
from batwatt.scheduling.registry import parts_of
from batwatt.scheduling.victims import CheckpointOnKill, Lose, Migrate, NextRun, Resubmit, Victim, VictimRule, next_run

HALF = Victim(length_s=100.0, done_s=0.0, recovery_s=0.0, ran_s=50.0)
SAVED = {"name": "checkpoint", "checkpoint_s": 10.0, "recovery_s": 5.0}


# the rules --------------------------------------------------------------------------------------------------------


class Tenths(VictimRule):
    """Saves the work of whole tenths; writing it costs nothing."""

    def saved_s(self, victim):
        tenth_s = victim.length_s / 10
        return max(victim.done_s, victim.progress_s // tenth_s * tenth_s)


@pytest.mark.parametrize(
    ("rule", "victim", "expected"),
    [
        (Lose(), HALF, None),
        (Resubmit(), HALF, NextRun(100.0)),
        # 50 s, the last 10 of them to write; 60 are left, after 5 to recover
        (CheckpointOnKill(10, 5), HALF,
         NextRun(65.0, 40.0, 5.0, "checkpointed", 10.0)),
        # of a second run the recovery is no work: 40 + (30 - 5) - 10
        (CheckpointOnKill(10, 5), Victim(100.0, 40.0, 5.0, 30.0),
         NextRun(50.0, 55.0, 5.0, "checkpointed", 15.0)),
        # a run too short for a checkpoint leaves what was saved before
        (CheckpointOnKill(10, 5), Victim(100.0, 40.0, 5.0, 14.0), NextRun(65.0, 40.0, 5.0)),
        (CheckpointOnKill(10, 5), Victim(100.0, 0.0, 0.0, 9.0), NextRun(100.0)),
        (Migrate(), HALF, NextRun(50.0, 50.0, 0.0, "migrated")),
        (Migrate(cost_s=3), HALF, NextRun(53.0, 50.0, 3.0, "migrated")),
        # work after what was saved is no work, though no checkpoint is written
        (Tenths(), Victim(1000.0, 0.0, 0.0, 950.0), NextRun(100.0, 900.0, 0.0, "checkpointed", 50.0)),
    ],
)  # fmt: skip
def test_the_next_run_of_a_victim(rule, victim, expected):
    assert next_run(rule, victim) == expected


@pytest.mark.parametrize(
    "make", [lambda: CheckpointOnKill(-1), lambda: CheckpointOnKill(0, float("nan")), lambda: Migrate(2e9)]
)
def test_costs_have_bounds(make):
    with pytest.raises(ValueError, match="must be from 0 to 1e9 s"):
        make()


class Says(VictimRule):
    def __init__(self, saved_s):
        self.saves = saved_s

    def saved_s(self, victim):
        return self.saves


@pytest.mark.parametrize("saved_s", [66.0, 39.0, float("nan")])
def test_what_a_rule_cannot_save(saved_s):
    """40 s were saved before, 25 s more were done."""
    with pytest.raises(InputError, match="option 'victim': Says: saved_s is"):
        next_run(Says(saved_s), Victim(100.0, 40.0, 5.0, 30.0))


seconds = st.integers(0, 30)
rules = st.one_of(
    st.builds(CheckpointOnKill, seconds, seconds), st.builds(Migrate, seconds), st.just(Tenths())
)  # fmt: skip


@examples(200)
@given(rule=rules, length_s=st.integers(1, 200), kills=st.lists(st.integers(0, 120), max_size=8))
def test_work_that_counts_adds_up_to_the_length_of_the_job(rule, length_s, kills):
    """Runs that saved something count without their overhead, others not at all; the last one does the rest."""
    run, useful_s = NextRun(float(length_s)), 0.0
    for ran_s in kills:
        if ran_s >= run.run_s:
            break
        after = next_run(rule, Victim(float(length_s), run.saved_s, run.recovery_s, float(ran_s)))
        if after.kind or after.overhead_s:
            useful_s += ran_s - after.overhead_s
        elif after.saved_s == 0.0:
            useful_s = 0.0
        run = after
    assert useful_s + run.run_s - run.recovery_s == pytest.approx(length_s, abs=2e-6)


# varcap -----------------------------------------------------------------------------------------------------------


RECOVER = {"name": "checkpoint", "checkpoint_s": 0.0, "recovery_s": 20.0}


def test_a_move_at_no_cost_goes_on_with_a_recovery():
    jobs = [job_of(text) for text in ("a 0 300 1", "y 0 40 1", "x 1 100 1")]
    # 19 s saved at 20 s; from 30 s on 20 s of recovery, of which 5 and 81 s of work are left at 45 s
    capacity = capacity_of("2 20:1 30:2 45:1")
    record, _ = play(jobs, capacity, 2, 2, mapping="migration", victim=RECOVER)
    rows = [(row.starting_time, row.finish_time, row.metadata) for row in record.jobs if row.job_id.startswith("x")]
    assert rows == [
        (1.0, 20.0, "checkpointed"),
        (30.0, 45.0, "migrated overhead_s=15.000000"),
        (45.0, 131.0, "overhead_s=5.000000"),
    ]


def test_work_is_saved_of_a_job_that_one_fall_moves_and_kills():
    jobs = ("a 10 60 2", "b 5 100 3", "c 10 60 3")
    # at 50 s b is killed for a, then c: moved already, as it had done the most; both keep what they did
    options = {"mapping": "migration", "termination": "lfd", "victim": RECOVER}
    runs = scheduler(*jobs, machines=3, cores=3, capacity="3 50:1", **options)
    assert runs == {"a": "10-50@1> 50-70@0", "b": "5-50@0x 70-145@0", "c": "10-50@2x 145-185@0"}


def test_what_waits_for_a_lost_job_is_rejected():
    runs = scheduler("a 0 100 1", "b 0 10 1 depends_on=a", machines=1, capacity="1 50:0 60:1", victim="lose")
    assert runs == {"a": "0-50@0x", "b": "rejected"}


# riskaware --------------------------------------------------------------------------------------------------------


def targets(machines: int) -> Targets:
    return Targets(machines, 1, TargetSettings(always=1, distance=machines), ByHand())


PLANNERS = pytest.mark.parametrize(
    "make", [lambda: FirstFitStrategy(2, 1, None, False), lambda: targets(2)], ids=["first fit", "target"]
)


@PLANNERS
@pytest.mark.parametrize(
    "rule,ends", [(Resubmit(), 160.0), (CheckpointOnKill(10, 5), 125.0), (Migrate(), 110.0), (Lose(), None)]
)
def test_planners_know_how_long_the_next_run_takes(make, rule, ends):
    talk = Talk(make())
    talk.planner.victim = rule
    assert talk.at(0, alive=2) == ""
    talk.at(0, "a 100 1", "b 100 1")
    [gone] = [name for name in "ab" if talk.planner.machine_of("ab".index(name)) == 1]
    stays = "ba"["ab".index(gone)]
    assert talk.at(50, alive=1) == f"-{gone}"
    if ends is None:
        assert talk.at(500, alive=2) == ""
        return
    # the machine that is left is free at 100; the second one is back at 60
    assert talk.at(60, alive=2) == f"{gone}@1"
    assert (talk.end_s(stays), talk.end_s(gone)) == (100.0, ends)


# powercap ---------------------------------------------------------------------------------------------------------


CHECKPOINT_60 = {"name": "checkpoint", "checkpoint_s": 60, "recovery_s": 30}


@pytest.mark.parametrize(
    "victim,end_s,flops",
    [
        ("resubmit", 1600.0, False),
        (CHECKPOINT_60, 1390.0, False),
        (CHECKPOINT_60, 1390.0, True),
        ("migrate", 1300.0, True),
    ],
)
def test_powercap(victim, end_s, flops):
    """Killed at 300 s by a cap of 10 W, and started again at 600 s: 240 of 1000 s are saved, or 300."""
    options = {"response": "hfld", "platform": machine(1), "envelope": envelope(500, 10, 500), "victim": victim}
    row = job("a", 0, 1, 1000, 5000)
    if flops:
        speed = machine(1).fastest_flops
        row["_profile"] = {"type": "parallel_homogeneous", "cpu": 1000 * speed, "com": 0}
    record = played(Easy(options), machine(1), row, energy=True)
    runs = {row[0]: (row[7], row[8], row[10]) for row in record.jobs}
    assert runs["a"] == ("COMPLETED_KILLED", 0.0, 300.0)
    state, begin_s, finish_s = runs["a#1"]
    assert state == "COMPLETED_SUCCESSFULLY"
    assert finish_s - begin_s == pytest.approx(end_s - 600.0)


def test_a_checkpoint_needs_a_job_of_which_something_can_be_left():
    options = {"response": "hfld", "platform": machine(1), "envelope": envelope(500, 10, 500), "victim": "checkpoint"}
    row = job("a", 0, 1, 1000, 5000)
    row["_profile"] = {"type": "composed", "seq": ["x"], "repeat": 1}
    with pytest.raises(InputError, match="w0!a is neither a delay nor flops that are alike"):
        row["profile"] = "c"
        rows = [row, {**job("b", 0, 1, 1000, 5000), "profile": "x"}]
        played(Easy(options), machine(1), *rows, energy=True)


# flops ------------------------------------------------------------------------------------------------------------


def on_machines(make, hosts, capacity, *rows, **options):
    """The times of the runs of each job, and the record, on the hosts of a platform as machines."""
    settings = {"capacity": series_of(capacity_of(capacity)), "switch": False, "platform": hosts} | options
    record = played(make(settings), hosts, *rows)
    times: dict[str, list[tuple[float, float]]] = {}
    for row in record.jobs:
        if row.starting_time is not None:
            run = (round(row.starting_time, 3), round(row.finish_time, 3))
            times.setdefault(row.job_id.partition("#")[0], []).append(run)
    return {name: sorted(runs) for name, runs in times.items()}, record


def like(row, kind):
    """The job with a profile of flops that lasts as long at 10 flop/s."""
    work = row["_profile"]["delay"] * 10.0
    profiles = {
        "delay": row["_profile"],
        "homogeneous": {"type": "parallel_homogeneous", "cpu": work, "com": 0},
        "total": {"type": "parallel_homogeneous_total", "cpu": work * row["res"], "com": 0},
        "parallel": {"type": "parallel", "cpu": [work] * row["res"], "com": [0] * row["res"] ** 2},
    }
    return row | {"_profile": profiles[kind]}


@pytest.mark.parametrize(
    ("kind", "victim"),
    [("homogeneous", "resubmit"), ("total", "lose"), ("total", SAVED), ("parallel", {"name": "migrate", "cost_s": 7})],
    ids=["resubmit", "lose", "checkpoint", "migrate"],
)
@pytest.mark.parametrize(
    "make,parts",
    [(Varcap, {"termination": name}) for name, _ in parts_of("termination")]
    + [(Varcap, {"preemption": "slowdown", "order": "asc_walltime"}), (Varcap, {"mapping": "migration"})]
    + [(Checkpoint, {"checkpoint_s": 10, "recovery_s": 5})]
    + [(Riskaware, {"strategy": name}) for name in ("first-fit-unaware", "target-asap", "packed-target-asap")],
    ids=str,
)
def test_flops_on_machines_of_one_speed_run_as_delays_of_their_length(make, parts, kind, victim):
    if "preemption" in parts and victim == "lose":
        victim = "migrate"  # what is stopped for others goes on
    rows = [job(name, at, 1, run) for name, at, run in (("a", 0, 100), ("b", 0, 90), ("c", 20, 200), ("d", 130, 9))]
    if make is not Checkpoint:
        parts = parts | {"victim": victim}
    capacity = "3 50:1 75:3 100:0 120:2 260:1 300:3"
    runs = [
        on_machines(make, machine(3), capacity, *(like(row, k) for row in rows), **parts)[0] for k in ("delay", kind)
    ]
    assert runs[0] == runs[1]


@pytest.mark.parametrize(
    "victim,other_s,run",
    [
        # 50 s at half speed: 25 of 100 s, 15 of them saved; then 5 + 85 s, at half speed or on the fast machine
        (SAVED, 1000, (60.0, 240.0)),
        (SAVED, 55, (55.0, 145.0)),
        ("migrate", 1000, (60.0, 210.0)),
        ({"name": "migrate", "cost_s": 8}, 55, (55.0, 138.0)),
        ("resubmit", 1000, (60.0, 260.0)),
    ],
)
def test_progress_on_a_slow_machine_by_hand(victim, other_s, run):
    """A machine of 10 flop/s has a delay, one of 5 flop/s a job of 1000 flops, and goes at 50 s for 10 s."""
    rows = job("x", 0, 1, other_s), job("z", 0, 1, 100, flops=True)
    times, record = on_machines(Varcap, machine(1, 1), "2 50:1 60:2", *rows, victim=victim, termination="order")
    assert times["z"] == [(0.0, 50.0), run]
    # 25 s at full speed, of which 10 s write a checkpoint: 20 of the 50 s
    if victim is SAVED:
        assert [row.metadata for row in record.jobs if row.job_id == "z"] == ["checkpointed overhead_s=20.000000"]


def test_the_rest_of_a_job_fails_as_the_job_would():
    row = job("a", 0, 1, 100)
    row["_profile"]["ret"] = 3
    _, record = on_machines(Varcap, machine(1), "1 50:0 60:1", row, victim="migrate")
    assert [row.final_state for row in record.jobs] == ["COMPLETED_KILLED", "COMPLETED_FAILED"]


def test_without_a_platform_the_speed_is_asked_for():
    row = job("a", 0, 1, 100, 500, flops=True)
    with pytest.raises(InputError, match="option 'platform': job w0!a has flops, and the speed of the hosts is not"):
        on_machines(Varcap, machine(1), "1 50:0 60:1", row, victim="migrate", platform=None)


def test_lengths_of_fields_are_at_full_speed():
    """A job of 100 s at 10 flop/s had 40 s left when its window began; on machines of 5 flop/s all is twice as long."""
    row = job("a", 50, 1, 40, flops=True) | {"length_s": 100.0, "release_s": 0.0}
    load = workload_of(row, nb_res=1)
    lengths = JobLengths(SimpleNamespace(profiles={}), 5.0, 10.0)
    one = SimpleNamespace(
        id="w0!a", profile="pa", requested_resources=1, requested_time=None, submit_time=50.0,
        json_dict=dict(load.jobs[0].raw), profile_dict=row["_profile"],
    )  # fmt: skip
    assert lengths.described(one) == (0.0, 200.0, 80.0)
