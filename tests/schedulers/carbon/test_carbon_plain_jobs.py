"""The scheduler carbon on ordinary jobs and hosts: plans by hand, and what holds for any jobs, capacity and signal."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest
from carbon_talk import jobs, machines
from examples import examples
from hypothesis import given
from hypothesis import strategies as st

import batwatt as bw
from batwatt.errors import InputError
from batwatt.model.platform import Platform
from batwatt.model.timeline import Timeline, least_around

HOURS = [400.0, 300.0, 100.0, 250.0, 80.0, 500.0, 90.0, 320.0]
SIGNAL = Timeline.regular(HOURS * 60)


def starts(result):
    return result.jobs.sort_values("job_id")["starting_time_s"].tolist()


def shift(platform, load, *, capacity=None, envelope=None, **options):
    options = {"signal": SIGNAL, "policy": "oracle", "wait_h": [4]} | options
    return bw.simulate(platform, load, "carbon", options=options, capacity=capacity, envelope=envelope)


PRICE = Timeline.regular([value / 1000.0 for value in HOURS] * 60)
CLEAN = Timeline.regular([10.0, 10.0, 50.0, *[500.0] * 57])
HOUR, NOW = (0.0, 3600.0, 1), {"policy": "immediate"}
THREE_THEN_THREE = [(0.0, 3600.0, 3), (60.0, 3600.0, 3)]


def falls(*rows, unit="machines"):
    return Timeline(tuple(float(at) for at, _ in rows), tuple(float(value) for _, value in rows), unit)


@pytest.mark.parametrize(
    ("platform", "rows", "options", "begins", "energy_j"),
    [
        # one host, four hours to wait: job 0 takes the fifth hour (80 g); job 1 the third (100 g), where there is room;
        # hosts that nobody needs are off: 100 W for two hours
        ((1,), [HOUR, HOUR], {}, [14_400.0, 7_200.0], 2 * 3600.0 * 100.0),
        # two hours out of six: the third and the fifth; what follows the suspension is one job
        ((1,), [(0.0, 7200.0, 1)], {"policy": "suspend-resume"}, [7_200.0, 14_400.0], 7200.0 * 100.0),
        ((1,), [HOUR], {"signal": None, "price": PRICE}, [14_400.0], 3600.0 * 100.0),
        # two hosts of 100 W, busy or not, are on until the job ends
        ((2,), [HOUR], {"wait_h": [3], "switch": False}, [7_200.0], 2 * 3 * 3600.0 * 100.0),
        # two machines of two hosts, one of them until 7,000 s: a second job on three hosts waits for the other
        ((2, 2), THREE_THEN_THREE, NOW | {"capacity": falls((0, 2), (7000, 1), (10_800, 2))}, [0.0, 10_800.0], None),
        ((2, 2), THREE_THEN_THREE, NOW | {"capacity": falls((0, 2), (7200, 1))}, [0.0, 3600.0], None),
        # from 100 s on one machine: job 1 would be on the one that goes, so it waits for a slot of 60 s on the other,
        # where job 2 joins it; a machine of two hosts of 100 W is on for 50 s, and then 500 s
        ((2, 2), [(0.0, 50.0, 2), (0.0, 500.0, 1), (60.0, 500.0, 1)], NOW | {"capacity": falls((0, 2), (100, 1))},
         [0.0, 60.0, 60.0], 200.0 * 550.0),
        # three hosts of machines of two: both machines, so that a job on one host waits, though a host is free
        ((2, 2), [(0.0, 3600.0, 3), (0.0, 600.0, 1)], NOW, [0.0, 3600.0], None),
        # the first two hours are clean: machine 0 is taken in the first, and machine 1 is there in the first only. A
        # job of two hours cannot run from one to the other: it runs on machine 0 from the second hour on
        ((2, 2), [(0.0, 3600.0, 2), (0.0, 7200.0, 2)],
         {"policy": "phase-aware", "signal": CLEAN, "capacity": falls((0, 2), (3600, 1))}, [0.0, 3600.0], None),
        # 250 W feed two of three machines of 100 W
        ((3,), [HOUR] * 3, NOW | {"envelope": falls((0, 250), unit="power_w")}, [0.0, 0.0, 3600.0], None),
    ],
    ids=[
        "the cheapest hours", "suspended", "by price alone", "always on", "a fall and a rise", "a later fall",
        "machines that go", "machines of its own", "an optimum on one machine", "watts are machines",
    ],
)  # fmt: skip
def test_starts_by_hand(platform, rows, options, begins, energy_j):
    result = shift(machines(*platform), jobs(*rows), **options)
    assert starts(result) == pytest.approx(begins, abs=1e-5)
    assert result.metrics["jobs_finished"] == len(rows) and result.metrics["killed_power"] == 0
    assert energy_j is None or result.metrics["energy_j"] == pytest.approx(energy_j, rel=1e-6)


def test_what_never_fits_is_rejected():
    load, capacity = jobs(*THREE_THEN_THREE), falls((0, 2), (7000, 1))
    result = shift(machines(2, 2), load, policy="immediate", capacity=capacity)
    assert (result.metrics["jobs_finished"], result.metrics["jobs_rejected"]) == (1, 1)


def unlike():
    """Two hosts, of which the second is twice as fast and draws 150 W in place of 100 W."""
    one, two = machines(2).hosts
    faster = replace(two.pstates[0], speed_flops=2 * two.pstates[0].speed_flops, full_w=150.0, idle_w=150.0)
    return Platform((one, replace(two, pstates=(faster, *two.pstates[1:]))))


def from_json(tmp_path, profile, walltime_s):
    job = {"id": "a", "subtime": 0, "res": 1, "walltime": walltime_s, "profile": "p"}
    path = tmp_path / "w.json"
    path.write_text(
        json.dumps({"nb_res": 1, "jobs": [job], "profiles": {"p": profile, "d": {"type": "delay", "delay": 9}}})
    )
    return bw.Workload.read(path)


def test_a_job_that_reaches_its_walltime(tmp_path):
    """A walltime of an hour and a half: half of the fourth hour and the fifth, or the third and the fifth."""
    load = from_json(tmp_path, {"type": "delay", "delay": 7200}, 5400)
    for policy in ("oracle", "suspend-resume"):
        result = shift(machines(1), load, policy=policy)
        assert result.metrics["killed_walltime"] == 1, policy
        assert result.jobs["finish_time_s"].max() == pytest.approx(18_000.0, abs=1e-4)


def test_what_cannot_be_cut_is_not_suspended(tmp_path):
    """Hosts of two speeds: how long flops last is not known, only their walltime."""
    platform = unlike()
    flops = platform.hosts[0].pstates[0].speed_flops
    long = from_json(tmp_path, {"type": "parallel", "cpu": [6000 * flops], "com": [0]}, 7200)
    with pytest.raises(InputError, match="option 'policy': job w0!a was to be suspended"):
        shift(platform, long, policy="suspend-resume")
    assert shift(platform, long).metrics["jobs_finished"] == 1
    # it ends by itself, before it was to be suspended
    short = from_json(tmp_path, {"type": "parallel", "cpu": [3000 * flops], "com": [0]}, 7200)
    assert shift(platform, short, policy="suspend-resume").metrics["jobs_finished"] == 1


SPREAD = {"node_selection": "spread"}


@pytest.mark.parametrize(
    ("platform", "rows", "options", "hosts"),
    [
        # each of two jobs that run at a time has the best host that is free; one later has the best of all
        (unlike(), [HOUR, (600.0, 3600.0, 1), (9000.0, 3600.0, 1)], {"node_selection": "first"}, ["0", "1", "0"]),
        (unlike(), [HOUR, (600.0, 3600.0, 1), (9000.0, 3600.0, 1)], {"node_selection": "fastest"}, ["1", "0", "1"]),
        (unlike(), [HOUR, (600.0, 3600.0, 1), (9000.0, 3600.0, 1)], {"node_selection": "fastest", "switch": False},
         ["1", "0", "1"]),
        # two machines of two hosts: a second job on one host joins the first, or has a machine of its own
        (machines(2, 2), [HOUR, (600.0, 600.0, 1)], {"node_selection": "packed"}, ["0", "1"]),
        (machines(2, 2), [HOUR, (600.0, 600.0, 1)], SPREAD, ["0", "2"]),
        # the second machine serves until 1,800 s: `spread` prefers it for a job that is over by then, not for longer
        (machines(2, 2), [HOUR, (60.0, 600.0, 1), (900.0, 3600.0, 1)],
         SPREAD | {"capacity": falls((0, 2), (1800, 1))}, ["0", "2", "1"]),
        # machines are switched as a whole: a second job joins the first
        (machines(2, 4), [HOUR, (600.0, 600.0, 2)], {}, ["0", "1-2"]),
    ],
    ids=["first", "fastest", "fastest, always on", "packed", "spread", "room for the whole run", "a machine is shared"],
)  # fmt: skip
def test_the_hosts_of_a_start(platform, rows, options, hosts):
    result = shift(platform, jobs(*rows), policy="immediate", **options)
    assert result.jobs.sort_values("job_id")["allocated_resources"].astype(str).tolist() == hosts


def test_hosts_that_are_preferred_are_switched_on():
    """Less W per flop/s on the second host, which alone is on: 150 W for an hour; all of a machine of four is on."""
    result = shift(unlike(), jobs(HOUR), node_selection="fewest-watts")
    assert result.jobs["allocated_resources"].tolist() == ["1"]
    assert result.metrics["energy_j"] == pytest.approx(3600.0 * 150.0, rel=1e-6)
    assert shift(machines(2, 4), jobs(HOUR)).metrics["energy_j"] == pytest.approx(3600.0 * 400.0, rel=1e-6)


@examples(200)
@given(
    st.lists(st.tuples(st.integers(1, 9), st.integers(0, 5)), min_size=1, max_size=8),
    st.sampled_from([0.0, 1.0, 2.5, 7.0]),
    st.sampled_from([0.0, 1.0, 3.5]),
)
def test_the_least_around_a_time(rows, before, after):
    times = np.cumsum([gap for gap, _ in rows]).astype(float)
    series = Timeline(tuple(times.tolist()), tuple(float(value) for _, value in rows))
    result = least_around(series, before, after)
    for time_s in np.arange(0.25, times[-1] + 10.0, 0.5):
        near = [series.at(at) for at in np.arange(time_s - before, time_s + after + 1e-9, 0.25)]
        assert result.at(time_s) == min(near), (time_s, series, result)
