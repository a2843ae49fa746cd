"""The scheduler adaptive: which core it chooses where, and that it does as that core."""

from __future__ import annotations

import pandas as pd
import pytest
from builders import one_by_one
from cli_house import ROOT

import batwatt as bw
from batwatt.errors import InputError
from batwatt.inputs.workloads.phase_workload import phase_workload
from batwatt.model.phases import constant
from batwatt.model.signal_integral import SignalIntegral
from batwatt.systems.carbon.execution import ShiftJob

pytestmark = pytest.mark.usefixtures("quiet")

GOOGLE = ROOT / "workloads" / "google-288-00.json"
GRID, PROFILE = ROOT / "platforms" / "grid5000.xml", ROOT / "power_profiles" / "profile3.csv"
JOBS = bw.Workload.from_frame(one_by_one(40, 60.0, 400.0, 137.0, 7))
MIXED = bw.Workload.from_frame(
    pd.DataFrame(
        {"submission_time_s": [60.0 * i for i in range(40)], "length_s": [4.0 if i % 4 else 2000.0 for i in range(40)],
         "hosts": [1 + i % 3 for i in range(40)]}
    )
)  # fmt: skip
"""Short jobs between long ones."""
MACHINES = bw.Platform.machines(6, 1, watts=100)
CAPACITY = bw.Series((0.0, 900.0, 1800.0, 2700.0), (6.0, 3.0, 5.0, 6.0), "machines")
VARCAP = {"order": "smith", "backfilling": "easy", "termination": "least-loss"}


def same(one, two):
    pd.testing.assert_frame_equal(one.jobs, two.jobs)
    assert one.metrics["energy_j"] == two.metrics["energy_j"]


def test_machines():
    same(
        bw.simulate(MACHINES, JOBS, "adaptive", capacity=CAPACITY),
        bw.simulate(MACHINES, JOBS, "varcap", capacity=CAPACITY, options=VARCAP),
    )


def test_jobs_that_can_be_checkpointed():
    rule = {"name": "checkpoint", "checkpoint_s": 30.0, "recovery_s": 10.0}
    chosen = VARCAP | {"order": "asc_walltime", "victim": rule, "preemption": "slowdown"}
    one = bw.simulate(MACHINES, MIXED, "adaptive", capacity=CAPACITY, options={"checkpoint_s": 30, "recovery_s": 10})
    same(one, bw.simulate(MACHINES, MIXED, "varcap", capacity=CAPACITY, options=chosen))
    without = bw.simulate(MACHINES, MIXED, "varcap", capacity=CAPACITY, options=chosen | {"preemption": None})
    assert one.metrics["mean_slowdown"] < without.metrics["mean_slowdown"]


def test_nothing_is_stopped_for_goodput():
    chosen = {"order": "widest", "backfilling": "first-fit", "termination": "least-loss", "victim": "checkpoint"}
    options = {"objective": "goodput", "checkpoint_s": 60}
    one = bw.simulate(MACHINES, MIXED, "adaptive", capacity=CAPACITY, options=options)
    same(one, bw.simulate(MACHINES, MIXED, "varcap", capacity=CAPACITY, options=chosen))


def test_watts_of_machines_of_one_speed():
    """An envelope is machines, with or without a capacity that asks for less."""
    envelope = bw.Series((0.0, 900.0), (600.0, 350.0), "power_w")
    less = bw.Series((0.0, 900.0, 1800.0, 2700.0), (6.0, 3.0, 3.0, 3.0), "machines")
    plain = bw.simulate(MACHINES, JOBS, "varcap", capacity=less, options=VARCAP)
    same(bw.simulate(MACHINES, JOBS, "adaptive", envelope=envelope), plain)
    same(bw.simulate(MACHINES, JOBS, "adaptive", envelope=envelope, capacity=CAPACITY), plain)


@pytest.mark.parametrize(
    ("given", "line"),
    [
        ({"options": {"until_s": 9.0}}, "option 'until_s': the core 'powercap', .* has no use for it; leave it out"),
        ({"options": {"switch": False}}, "option 'switch', energy: servers of several speeds .*; leave out both"),
        ({"energy": False}, "option 'switch', energy: servers of several speeds .*; leave out both"),
    ],
)
def test_what_servers_of_several_speeds_do_not_go_with(given, line):
    with pytest.raises(InputError, match=line):
        bw.simulate(GRID, GOOGLE, "adaptive", envelope=PROFILE, **given)


def test_servers_of_several_speeds():
    options = {"order": "smith", "backfilling": "easy", "response": "frugal", "victim": "resubmit"}
    same(
        bw.simulate(GRID, GOOGLE, "adaptive", envelope=PROFILE),
        bw.simulate(GRID, GOOGLE, "powercap", envelope=PROFILE, options=options),
    )


def test_jobs_in_phases():
    jobs = [ShiftJob(name, 900.0 * i, constant(3600.0 * (1 + i), 100.0), 1 + i % 2) for i, name in enumerate("abc")]
    owner, data = phase_workload(jobs, 3)
    signal = SignalIntegral.regular([400.0, 300.0, 100.0, 250.0, 80.0, 500.0] * 30)
    from batwatt.model.machines import machines_platform
    from batwatt.protocol.workload4 import parse_workload

    platform, workload = machines_platform(owner), parse_workload(data, "w0", "test")
    one = bw.simulate(platform, workload, "adaptive", carbon=signal)
    same(one, bw.simulate(platform, workload, "carbon", carbon=signal))


def test_where_carbon_counts():
    signal = SignalIntegral.regular([400.0, 300.0, 100.0, 250.0, 80.0, 500.0] * 30)
    one = bw.simulate(
        MACHINES, JOBS, "adaptive", capacity=CAPACITY, carbon=signal, options={"objective": "carbon", "wait_h": [8]}
    )
    same(one, bw.simulate(MACHINES, JOBS, "carbon", capacity=CAPACITY, carbon=signal, options={"wait_h": [8]}))
    # the end of a window, past which carbon goes
    ending = {"objective": "carbon", "wait_h": [8], "until_s": 1000.0}
    same(one, bw.simulate(MACHINES, JOBS, "adaptive", capacity=CAPACITY, carbon=signal, options=ending))
    # it is measured only, by default
    jobs = bw.simulate(MACHINES, JOBS, "adaptive", capacity=CAPACITY, carbon=signal)
    assert one.metrics["carbon_g"] < jobs.metrics["carbon_g"]
    with pytest.raises(InputError, match="option 'objective': needs a signal"):
        bw.simulate(MACHINES, JOBS, "adaptive", options={"objective": "carbon"})


def test_parts_in_place_of_ours():
    one = bw.simulate(MACHINES, JOBS, "adaptive", capacity=CAPACITY, options={"parts": {"order": "fcfs"}})
    same(one, bw.simulate(MACHINES, JOBS, "varcap", capacity=CAPACITY, options=VARCAP | {"order": "fcfs"}))
    with pytest.raises(InputError, match="option 'order'"):
        bw.simulate(MACHINES, JOBS, "adaptive", options={"parts": {"order": "fcfz"}})


def test_without_limits():
    found = bw.simulate(MACHINES, JOBS, "adaptive")
    assert found.metrics["jobs_finished"] == 40


def test_the_one_that_is_shortest_and_narrowest_first():
    """One host of two is free at 10 s: of 100 s on 1 host, 90 s on 1 and 60 s on 2 the keys are 10000, 8100, 7200."""
    frame = pd.DataFrame(
        {"id": list("oabc"), "submission_time_s": [0, 1, 2, 3], "length_s": [10, 100, 90, 60], "hosts": [2, 1, 1, 2]}
    )
    found = bw.simulate(bw.Platform.machines(2, 1), bw.Workload.from_frame(frame), "adaptive")
    starts = found.jobs.set_index("job_id")["starting_time_s"]
    assert starts[["c", "b", "a"]].tolist() == [10.0, 70.0, 70.0]


def test_killed_jobs_may_be_lost():
    """The core loses jobs, and the end of registration is still reported."""
    found = bw.simulate(GRID, GOOGLE, "adaptive", envelope=PROFILE, options={"parts": {"victim": "lose"}})
    assert found.metrics["killed_power"] > 0 and found.metrics["resubmissions"] == 0


@pytest.mark.parametrize(
    ("options", "line"),
    [
        ({"recovery_s": 5}, "option 'recovery_s': there are no checkpoints"),
        ({"objective": "carbon", "shift": "waiting"}, "is for schedulers that do not shift jobs themselves"),
        ({"objective": "carbon", "wait_h": [-1]}, r"option 'wait_h': -1 is not a list as \[6.0, 24.0\]"),
        ({"objective": "carbon", "checkpoint_s": 5}, "option 'checkpoint_s': the core 'carbon', .* has no use for it"),
        ({"wait_h": [6]}, "option 'wait_h': the core 'varcap', .* has no use for it"),
        ({"objective": "carbon", "signal": "x.csv"}, "option 'signal': is given next to carbon or price"),
    ],
)
def test_what_does_not_go_together(options, line):
    signal = SignalIntegral.regular([400.0, 300.0, 100.0] * 60)
    with pytest.raises(InputError, match=line):
        bw.simulate(MACHINES, JOBS, "adaptive", capacity=CAPACITY, carbon=signal, options=options)
