"""Runs of the strategies on the embedded engine, worked out by hand."""

from __future__ import annotations

import pytest
from builders import job, played
from links import Race

from batwatt.batsim.events import KillJob, RegisterJob
from batwatt.model.platform import MachineSpec, machines_platform
from batwatt.model.timeline import Timeline
from batwatt.schedulers.riskaware import Riskaware

STRATEGIES = ("first-fit-aware", "first-fit-unaware", "target-stretch", "target-asap", "packed-target-asap")
CORES, LAG_S = 3, 1e-3
ID, STATE, START = 0, 7, 8


def simulated(spec, jobs, options, link=None):
    """The record of a run with energy."""
    return played(Riskaware(options), machines_platform(spec), *jobs, energy=True, link=link)


def test_a_kill_and_a_switch():
    """One of two machines of 1 core goes from 50 s to 80 s; job 2 runs there, and starts again when it is back."""
    jobs = [job(1, 0.0, 1, 100.0), job(2, 10.0, 1, 60.0)]
    capacity = Timeline((0.0, 50.0, 80.0), (2.0, 1.0, 2.0))
    options = {"capacity": capacity, "strategy": "first-fit-aware", "as_published": False}
    record = simulated(MachineSpec(2, 1), jobs, options)
    # off takes a microsecond, on another one; the second run waits for that
    on_s = 80.0 + 1e-6
    assert [(row.job_id, row.final_state, row.starting_time, row.finish_time, row.allocated_resources)
            for row in record.jobs] == [
        ("2", "COMPLETED_KILLED", 10.0, 50.0, "1"),
        ("1", "COMPLETED_SUCCESSFULLY", 0.0, 100.0, "0"),
        ("2#1", "COMPLETED_SUCCESSFULLY", on_s, on_s + 60.0, "1"),
    ]  # fmt: skip
    assert record.pstate_changes == [
        (0.0, "0-1", 0), (50.0, "1", -2), (50.0 + 1e-6, "1", 1), (80.0, "1", -1), (on_s, "1", 0),
    ]  # fmt: skip
    # 10 W a core, but for the 30 s in which one is off
    assert record.schedule["consumed_joules"] == pytest.approx(2 * 10.0 * (on_s + 60.0) - 10.0 * 30.0, abs=1e-4)
    assert [row.consumed_energy for row in record.jobs] == pytest.approx([400.0, 1000.0, 600.0])


LOST = {
    # 3 starts at 50 s, when 2 ends, on the machine that goes at that very time; 4 waits for the other one
    "at one time": (
        MachineSpec(2, 1),
        [(0.0, 1, 100.0), (0.0, 1, 50.0), (10.0, 1, 30.0), (20.0, 1, 30.0)],
        Timeline((0.0, 50.0), (2.0, 1.0)),
        {"strategy": "first-fit-aware", "as_published": False},
        {"2": (0.0, 50.0, "1"), "3": None, "1": (0.0, 100.0, "0"), "4": (100.0, 130.0, "0")},
    ),
    # 2 starts at 60 s by the plan, on a machine that comes at 50 s, is on at 90 s, and goes at 80 s
    "late": (
        MachineSpec(2, 1, off_s=15.0, on_s=40.0),
        [(0.0, 1, 200.0), (60.0, 1, 100.0)],
        Timeline((0.0, 10.0, 50.0, 80.0), (2.0, 1.0, 2.0, 1.0)),
        {"strategy": "first-fit-aware", "as_published": False},
        {"2": None, "1": (0.0, 200.0, "0")},
    ),
    # M_use is 1, so all is planned on machine 0, until 150 s; then it is 2 and machine 1 the target, where 2 starts at
    # once (with stretch 235 / 90, now S+) and 3 within S+ at 240 s (434 / 200), when the machine goes
    "TargetStretch": (
        MachineSpec(2, 2),
        [(0.0, 1, 155.0), (5.0, 2, 90.0), (6.0, 2, 200.0)],
        Timeline((0.0, 60.0, 150.0, 240.0), (2.0, 1.0, 2.0, 1.0)),
        {"strategy": "target-stretch", "as_published": True},
        {"1": (0.0, 155.0, "0"), "3": None, "2": (150.000001, 240.000001, "2-3")},
    ),
}
"""Jobs that are started and killed by the plan before they begin, and do not run again."""


@pytest.mark.parametrize("case", LOST)
def test_what_is_lost_before_it_begins_is_rejected(case, caplog):
    spec, rows, capacity, choice, expected = LOST[case]
    jobs = [job(i, *row) for i, row in enumerate(rows, 1)]
    options = {"capacity": capacity, "victim": "lose"} | choice
    ends = {
        row.job_id: None
        if row.final_state == "REJECTED"
        else (row.starting_time, row.finish_time, row.allocated_resources)
        for row in simulated(spec, jobs, options).jobs
    }
    assert list(ends) == list(expected) and ends == expected
    assert caplog.text.count("1 job can never run, lost with their machine before they began: rejected") == 1


# times that floats do not hold --------------------------------------------------------------------------------------

# 230 + 32.441 is 262.44100000000003, but Batsim's time is 262.441
HARD = {
    "the next waits for it": ([4.0], job("b", 231.0, CORES, 10.0), 262.441),
    "the next arrives then": ([4.0], job("b", 262.441, CORES, 10.0), 262.441),
    "its machine goes then": ([1.0, 0.0, 1.0], job("b", 231.0, CORES, 10.0), 300.0),
}


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("values,other,start_s", HARD.values(), ids=HARD)
def test_an_end_just_after_its_date(strategy, values, other, start_s):
    capacity = Timeline((0.0, 262.441, 300.0)[: len(values)], tuple(min(value, 1.0) for value in values))
    load = [job("a", 230.0, CORES, 32.441), other]
    options = {"capacity": capacity, "strategy": strategy, "as_published": False}
    rows = {row[ID]: row for row in simulated(MachineSpec(1, CORES), load, options).jobs}
    assert {name: row[STATE] for name, row in rows.items()} == dict.fromkeys("ab", "COMPLETED_SUCCESSFULLY")
    assert (rows["a"][START], rows["b"][START]) == (230.0, pytest.approx(start_s, abs=LAG_S))


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_a_job_of_full_width_on_an_idle_machine_does_not_hang(strategy):
    load = [job("a", 5.0, CORES, 10.0)]
    options = {"capacity": Timeline((0.0,), (1.0,)), "strategy": strategy}
    # as published, first fit waits for the next end or change, but not if nothing runs at all
    (row,) = simulated(MachineSpec(1, CORES), load, options).jobs
    assert (row[STATE], row[START]) == ("COMPLETED_SUCCESSFULLY", 5.0)


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_what_is_late_runs_though_its_machine_has_gone(strategy):
    # both machines are on from 77.5 s; by the plan b is over when the second goes at 75 s, and has not begun
    load = [job("a", 0.0, 1, 10.0), job("b", 0.0, 1, 11.0)]
    capacity = Timeline((0.0, 37.5, 75.0), (0.0, 2.0, 1.0))
    options = {"capacity": capacity, "strategy": strategy, "as_published": False}
    rows = simulated(MachineSpec(2, 1, off_s=15.0, on_s=40.0), load, options).jobs
    assert {row[ID]: row[STATE] for row in rows} == dict.fromkeys("ab", "COMPLETED_SUCCESSFULLY")


@pytest.mark.parametrize("strategy", ["first-fit-aware", "target-asap"])
def test_a_job_that_ends_before_its_kill_is_not_run_again(strategy):
    """What only a real Batsim does: the second machine goes at 50 s, and comes back at 90 s."""
    load = [job("a", 0, 1, 100.0), job("b", 0, 1, 300.0), job("c", 60, 1, 20.0)]
    capacity, links = Timeline((0.0, 50.0, 90.0), (2.0, 1.0, 2.0)), []
    options = {"capacity": capacity, "strategy": strategy, "as_published": False}
    record = simulated(MachineSpec(2, 1), load, options, lambda link: links.append(Race(link)) or links[0])
    assert links[0].asked.count(KillJob) == 1 and RegisterJob not in links[0].asked
    assert sorted(row[0] for row in record.jobs) == ["a", "b", "c"]
