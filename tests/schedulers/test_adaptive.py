"""The scheduler adaptive: which core it chooses where, and that it does as that core."""

from __future__ import annotations

import pandas as pd
import pytest
from builders import machine, one_by_one

import batwatt as bw
from batwatt.errors import InputError
from batwatt.inputs.batsim_files import phase_workload
from batwatt.model.platform import machines_platform
from batwatt.model.timeline import Timeline
from batwatt.model.work import constant
from batwatt.protocol.workload4 import parse_workload
from batwatt.schedulers.carbon.execution import ShiftJob

pytestmark = pytest.mark.usefixtures("quiet")

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


SERVERS = machine(3, 3)
CAPS = bw.Series((0.0, 900.0, 1800.0, 2700.0, 3600.0), (600.0, 150.0, 600.0, 120.0, 500.0), "power_w")
"""Three jobs are killed on the servers, which have several speeds."""
ENVELOPE = bw.Series((0.0, 900.0), (600.0, 350.0), "power_w")
LESS = bw.Series((0.0, 900.0, 1800.0, 2700.0), (6.0, 3.0, 3.0, 3.0), "machines")
SIGNAL = Timeline.regular([400.0, 300.0, 100.0, 250.0, 80.0, 500.0] * 30)
CHECKPOINTS = {"name": "checkpoint", "checkpoint_s": 30.0, "recovery_s": 10.0}
PREEMPTING = VARCAP | {"order": "asc_walltime", "victim": CHECKPOINTS, "preemption": "slowdown"}
FRUGAL = {"order": "smith", "backfilling": "easy", "response": "frugal", "victim": "resubmit"}
GOODPUT = {"order": "widest", "backfilling": "first-fit", "termination": "least-loss", "victim": "checkpoint"}
CARBON = {"objective": "carbon", "wait_h": [8]}


def in_phases():
    """Three jobs in phases on three machines."""
    jobs = [ShiftJob(name, 900.0 * i, constant(3600.0 * (1 + i), 100.0), 1 + i % 2) for i, name in enumerate("abc")]
    owner, data = phase_workload(jobs, 3)
    return machines_platform(owner), parse_workload(data, "w0", "test")


@pytest.mark.parametrize(
    ("inputs", "facts", "options", "core", "core_facts", "core_options"),
    [
        ((MACHINES, JOBS), {"capacity": CAPACITY}, {}, "varcap", {"capacity": CAPACITY}, VARCAP),
        ((MACHINES, MIXED), {"capacity": CAPACITY}, {"checkpoint_s": 30, "recovery_s": 10},
         "varcap", {"capacity": CAPACITY}, PREEMPTING),
        ((MACHINES, MIXED), {"capacity": CAPACITY}, {"objective": "goodput", "checkpoint_s": 60},
         "varcap", {"capacity": CAPACITY}, GOODPUT),
        # an envelope is machines of one speed; the capacity asks for less
        ((MACHINES, JOBS), {"envelope": ENVELOPE, "capacity": CAPACITY}, {}, "varcap", {"capacity": LESS}, VARCAP),
        ((SERVERS, JOBS), {"envelope": CAPS}, {}, "powercap", {"envelope": CAPS}, FRUGAL),
        # the core loses killed jobs, and the end of registration is still reported
        ((SERVERS, JOBS), {"envelope": CAPS}, {"parts": {"victim": "lose"}},
         "powercap", {"envelope": CAPS}, FRUGAL | {"victim": "lose"}),
        (in_phases(), {"carbon": SIGNAL}, {}, "carbon", {"carbon": SIGNAL}, {}),
        ((MACHINES, JOBS), {"capacity": CAPACITY, "carbon": SIGNAL}, CARBON,
         "carbon", {"capacity": CAPACITY, "carbon": SIGNAL}, {"wait_h": [8]}),
        # by default carbon is measured only
        ((MACHINES, JOBS), {"capacity": CAPACITY, "carbon": SIGNAL}, {},
         "varcap", {"capacity": CAPACITY, "carbon": SIGNAL}, VARCAP),
        # without limits
        ((MACHINES, JOBS), {}, {}, "varcap", {"capacity": bw.Series((0.0,), (6.0,), "machines")}, VARCAP),
        # the end of a window, past which carbon goes
        ((MACHINES, JOBS), {"capacity": CAPACITY, "carbon": SIGNAL}, CARBON | {"until_s": 1000.0},
         "carbon", {"capacity": CAPACITY, "carbon": SIGNAL}, {"wait_h": [8]}),
        ((MACHINES, JOBS), {"capacity": CAPACITY}, {"parts": {"order": "fcfs"}},
         "varcap", {"capacity": CAPACITY}, VARCAP | {"order": "fcfs"}),
    ],
    ids=["machines", "jobs that can be checkpointed", "goodput", "watts and a capacity", "several speeds",
         "lost jobs", "phases", "carbon", "carbon measured", "no limit", "carbon past a window",
         "parts in place of ours"],
)  # fmt: skip
def test_it_does_as_its_core(inputs, facts, options, core, core_facts, core_options):
    one = bw.simulate(*inputs, "adaptive", **facts, options=options)
    two = bw.simulate(*inputs, core, **core_facts, options=core_options)
    pd.testing.assert_frame_equal(one.jobs, two.jobs)
    assert one.metrics["energy_j"] == two.metrics["energy_j"]


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        ({"options": {"until_s": 9.0}}, "option 'until_s': the core 'powercap', .* has no use for it; leave it out"),
        ({"options": {"switch": False}}, "option 'switch', energy=False: servers of several speeds .*; leave out both"),
        ({"energy": False}, "option 'switch', energy=False: servers of several speeds .*; leave out both"),
    ],
)
def test_what_servers_of_several_speeds_do_not_go_with(arguments, line):
    with pytest.raises(InputError, match=line):
        bw.simulate(SERVERS, JOBS, "adaptive", envelope=CAPS, **arguments)


@pytest.mark.parametrize(
    ("facts", "options", "line"),
    [
        ({}, {"objective": "carbon"}, "option 'objective': needs a signal"),
        ({}, {"parts": {"order": "fcfz"}}, "option 'order'"),
        ({}, {"recovery_s": 5}, "option 'recovery_s': there are no checkpoints"),
        ({}, {"wait_h": [6]}, "option 'wait_h': the core 'varcap', .* has no use for it"),
        ({"carbon": SIGNAL}, CARBON | {"shift": "waiting"}, "is for schedulers that do not shift jobs themselves"),
        ({"carbon": SIGNAL}, CARBON | {"wait_h": [-1]}, r"option 'wait_h': -1 is not a list as \[6.0, 24.0\]"),
        ({"carbon": SIGNAL}, CARBON | {"checkpoint_s": 5}, "'checkpoint_s': the core 'carbon', .* has no use for it"),
        ({"carbon": SIGNAL}, CARBON | {"signal": "x.csv"}, "option 'signal': is given next to carbon or price"),
    ],
)
def test_what_does_not_go_together(facts, options, line):
    with pytest.raises(InputError, match=line):
        bw.simulate(MACHINES, JOBS, "adaptive", capacity=CAPACITY, **facts, options=options)


@pytest.mark.parametrize("scheduler", ["adaptive", "powercap"])
@pytest.mark.parametrize("step_s", [3600.0, 300.0, 150.0])
def test_jobs_start_when_they_arrive_and_fit(scheduler, step_s):
    """Not at rows: two servers of 100 W and 200 W, then 150 W, in rows of any length."""
    values = [200.0] * round(3600.0 / step_s) + [150.0] * round(3600.0 / step_s) + [200.0]
    rows = bw.Series(tuple(step_s * i for i in range(len(values))), tuple(values))
    jobs = bw.Workload.from_frame(
        pd.DataFrame({"submission_time_s": [0.0, 600.0, 4000.0], "length_s": [100.0] * 3, "hosts": [1, 1, 1]})
    )
    options = {} if scheduler == "adaptive" else {"response": "frugal"}
    result = bw.simulate(machine(2, 0), jobs, scheduler, envelope=rows, options=options)
    assert list(result.jobs["starting_time_s"]) == [0.0, 600.0, 4000.0]
