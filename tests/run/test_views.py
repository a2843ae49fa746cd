"""A scheduler of watts follows machines and one of machines follows watts: the same run either way."""

from __future__ import annotations

import pandas as pd
import pytest
from builders import one_by_one

import batwatt as bw
from batwatt.errors import InputError
from batwatt.inputs.platform_files import HostChoice, platform_of
from batwatt.model.platform import MachinePower
from batwatt.model.timeline import Timeline
from batwatt.run.find_scheduler import make_scheduler

pytestmark = pytest.mark.usefixtures("quiet")

JOBS = bw.Workload.from_frame(one_by_one(30, 60.0, 400.0, 37.0, 7))
MACHINES = bw.Platform.machines(6, 1, watts=100)
CAPACITY = bw.Series((0.0, 900.0, 1800.0, 2700.0), (6.0, 3.0, 5.0, 6.0), "machines")


def envelope():
    return MachinePower.of(MACHINES).drawn_by(CAPACITY)


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("powercap", {"response": "frugal"}),
        ("riskaware", {}),
        ("varcap", {"termination": "lww"}),
        ("checkpoint", {}),
    ],
)
def test_either_view_is_the_same_run(name, options):
    one = bw.simulate(MACHINES, JOBS, name, options=options, capacity=CAPACITY)
    two = bw.simulate(MACHINES, JOBS, name, options=options, envelope=envelope())
    pd.testing.assert_frame_equal(one.jobs, two.jobs)
    assert one.metrics["energy_j"] == two.metrics["energy_j"]
    both = bw.simulate(MACHINES, JOBS, name, options=options, capacity=CAPACITY, envelope=envelope())
    pd.testing.assert_frame_equal(one.jobs, both.jobs)


@pytest.mark.parametrize(("name", "options"), [("varcap", {}), ("powercap", {"response": "frugal"})])
def test_the_lesser_of_both_counts(name, options):
    less = bw.Series((0.0, 1800.0), (600.0, 200.0))
    both = bw.simulate(MACHINES, JOBS, name, options=options, capacity=CAPACITY, envelope=less)
    least = bw.Series((0.0, 900.0, 1800.0, 2700.0), (6.0, 3.0, 2.0, 2.0))
    alone = bw.simulate(MACHINES, JOBS, name, options=options, capacity=least)
    pd.testing.assert_frame_equal(both.jobs, alone.jobs)


@pytest.mark.parametrize("name", ["riskaware", "varcap", "checkpoint"])
def test_a_scheduler_makes_machines_of_watts_itself(name):
    """As `serve` hands it the envelope; of watts and machines the less counts."""
    options = {"envelope": envelope(), "platform": platform_of(MACHINES, HostChoice())}
    assert make_scheduler(name, options).capacity.values == CAPACITY.values
    few = Timeline((0.0, 1000.0), (6.0, 4.0), "machines")
    both = make_scheduler(name, {**options, "capacity": few}).capacity
    assert (both.times_s, both.values) == ((0.0, 900.0, 1000.0, 1800.0, 2700.0), (6.0, 3.0, 3.0, 4.0, 4.0))
    with pytest.raises(InputError, match="'envelope': needs the watts of the hosts, which Batsim does not report"):
        make_scheduler(name, {"envelope": envelope()})
    with pytest.raises(InputError, match="'envelope': the scheduler leaves machines on, which draw power then"):
        make_scheduler(name, {**options, "switch": False})


def test_machines_that_stay_on_follow_no_watts(tmp_path):
    with pytest.raises(InputError, match="'oversubscribed' leaves machines on"):
        bw.simulate(bw.Platform.machines(2, 10), JOBS, "oversubscribed", envelope=envelope())
    with pytest.raises(InputError, match="'varcap' leaves machines on"):
        bw.simulate(MACHINES, JOBS, "varcap", envelope=envelope(), options={"switch": False})
    # machines without watts
    text = "<zone id='A' routing='Full'><host id='master_host' speed='1f'/><host id='a' speed='1Gf'/></zone>"
    path = tmp_path / "p.xml"
    path.write_text(f"<?xml version='1.0'?><platform version='4.1'>{text}</platform>")
    with pytest.raises(InputError, match="cannot be converted: host 'a': has no wattage_per_state"):
        bw.simulate(path, JOBS, "varcap", envelope=envelope())
