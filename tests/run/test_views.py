"""A scheduler of watts follows machines and one of machines follows watts: the same run either way."""

from __future__ import annotations

import logging

import pandas as pd
import pytest

import batwatt as bw
from batwatt.errors import InputError
from batwatt.model.site import MachinePower

JOBS = bw.Workload.from_frame(
    pd.DataFrame(
        {"submission_time_s": [60.0 * i for i in range(30)], "length_s": [400.0 + 37 * (i % 7) for i in range(30)],
         "hosts": [1 + i % 3 for i in range(30)]}
    )
)  # fmt: skip
MACHINES = bw.Platform.machines(6, 1, watts=100)
CAPACITY = bw.Series((0.0, 900.0, 1800.0, 2700.0), (6.0, 3.0, 5.0, 6.0), "machines")


@pytest.fixture(autouse=True)
def quiet():
    logging.disable(logging.WARNING)
    yield
    logging.disable(logging.NOTSET)


def envelope():
    return MachinePower.of(MACHINES).drawn_by(CAPACITY)


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("powercap", {"response": "frugal"}),
        ("powercap", {"response": "none"}),
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


def test_the_lesser_of_both_counts():
    less = bw.Series((0.0, 900.0), (200.0, 600.0))
    found = bw.simulate(MACHINES, JOBS, "varcap", capacity=CAPACITY, envelope=less)
    alone = bw.simulate(
        MACHINES, JOBS, "varcap", capacity=bw.Series((0.0, 900.0, 1800.0, 2700.0), (2.0, 3.0, 5.0, 6.0))
    )
    pd.testing.assert_frame_equal(found.jobs, alone.jobs)


def test_without_energy():
    one = bw.simulate(MACHINES, JOBS, "riskaware", envelope=envelope(), energy=False)
    two = bw.simulate(MACHINES, JOBS, "riskaware", capacity=CAPACITY, energy=False)
    pd.testing.assert_frame_equal(one.jobs, two.jobs)


def test_machines_that_stay_on_follow_no_watts():
    with pytest.raises(InputError, match="'oversubscribed' leaves machines on"):
        bw.simulate(bw.Platform.machines(2, 10), JOBS, "oversubscribed", envelope=envelope())
    with pytest.raises(InputError, match="'varcap' leaves machines on"):
        bw.simulate(MACHINES, JOBS, "varcap", envelope=envelope(), options={"switch": False})


def test_machines_without_watts(tmp_path):
    text = "<zone id='A' routing='Full'><host id='master_host' speed='1f'/><host id='a' speed='1Gf'/></zone>"
    path = tmp_path / "p.xml"
    path.write_text(f"<?xml version='1.0'?><platform version='4.1'>{text}</platform>")
    with pytest.raises(InputError, match="cannot be converted: host 'a': has no wattage_per_state"):
        bw.simulate(path, JOBS, "varcap", envelope=envelope())


def test_what_an_envelope_feeds_is_written(tmp_path):
    bw.simulate(MACHINES, JOBS, "varcap", envelope=envelope()).save(tmp_path / "x")
    written = pd.read_csv(tmp_path / "x_capacity.csv")
    assert written["machines"].tolist() == list(CAPACITY.values)
