"""The scheduler carbon on ordinary jobs and hosts: plans by hand, and what holds for any jobs, capacity and signal."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from examples import examples
from hypothesis import given
from hypothesis import strategies as st

import batwatt as bw
from batwatt.errors import InputError
from batwatt.model.machines import MachineSpec, machines_platform
from batwatt.model.platform import Platform
from batwatt.model.series import Series, least_around
from batwatt.model.signal_integral import SignalIntegral
from batwatt.scheduling.node_selection import NodeSelection
from batwatt.scheduling.transitions import Transitions
from batwatt.systems.carbon.cluster import CarbonCluster

HOURS = [400.0, 300.0, 100.0, 250.0, 80.0, 500.0, 90.0, 320.0]
SIGNAL = SignalIntegral.regular(HOURS * 60)


def jobs(*rows):
    """Each (submission, length, hosts) in s."""
    return bw.Workload.from_frame(pd.DataFrame(rows, columns=["submission_time_s", "length_s", "hosts"]))


def machines(count, cores=1, **more):
    return machines_platform(MachineSpec(count, cores, core_w=100.0, **more))


def starts(result):
    return result.jobs.sort_values("job_id")["starting_time_s"].tolist()


def shift(platform, load, *, capacity=None, envelope=None, **options):
    options = {"signal": SIGNAL, "policy": "oracle", "wait_h": [4]} | options
    return bw.simulate(platform, load, "carbon", options=options, capacity=capacity, envelope=envelope)


def test_the_cheapest_hours_by_hand():
    """One host, four hours to wait: job 0 takes the fifth hour (80 g); job 1 the third (100 g), where there is room."""
    found = shift(machines(1), jobs((0.0, 3600.0, 1), (0.0, 3600.0, 1)))
    assert starts(found) == pytest.approx([14_400.0, 7_200.0], abs=1e-5)
    # hosts that nobody needs are off: 100 W for two hours
    assert found.metrics["energy_j"] == pytest.approx(2 * 3600.0 * 100.0, rel=1e-9)


def test_a_suspended_job_by_hand():
    """Two hours out of six: the third and the fifth; what follows the suspension is one job."""
    found = shift(machines(1), jobs((0.0, 7200.0, 1)), policy="suspend-resume")
    assert found.metrics["jobs_finished"] == 1 and found.metrics["killed_power"] == 0
    assert found.jobs["starting_time_s"].tolist() == pytest.approx([7_200.0, 14_400.0], abs=1e-5)
    assert found.metrics["makespan_s"] == pytest.approx(18_000.0, abs=1e-5)


def test_by_price_alone():
    price = SignalIntegral.regular([value / 1000.0 for value in HOURS] * 60)
    found = shift(machines(1), jobs((0.0, 3600.0, 1)), signal=None, price=price)
    assert starts(found) == pytest.approx([14_400.0], abs=1e-5)


def test_without_a_signal():
    with pytest.raises(InputError, match="option 'signal': the scheduler needs it; give a signal: carbon=FILE"):
        shift(machines(1), jobs((0.0, 3600.0, 1)), signal=None)


def test_hosts_that_take_long_to_switch():
    """60 s to switch on, 30 s off: on at 14,340 s, and off again after the job; 0 W while it goes off."""
    found = shift(machines(2, on_s=60.0, off_s=30.0), jobs((0.0, 3600.0, 1)))
    assert starts(found) == pytest.approx([14_400.0], abs=1e-5)
    states = found.machines
    # expected 90 s before its start, so that one that was on would not go off for less
    assert found.metrics["energy_j"] == pytest.approx((90.0 + 3600.0) * 100.0, rel=1e-9), states


def test_a_fall_of_the_capacity_is_planned_around():
    """Two machines of two hosts, one of them until 7,000 s: a second job on three hosts waits for the other."""
    load = jobs((0.0, 3600.0, 3), (60.0, 3600.0, 3))
    capacity = Series((0.0, 7000.0), (2.0, 1.0), "machines")
    found = shift(machines(2, 2), load, policy="immediate", capacity=capacity)
    assert found.metrics["jobs_finished"] == 1 and found.metrics["jobs_rejected"] == 1
    back = Series((0.0, 7000.0, 10_800.0), (2.0, 1.0, 2.0), "machines")
    found = shift(machines(2, 2), load, policy="immediate", capacity=back)
    assert starts(found) == pytest.approx([0.0, 10_800.0], abs=1e-5)
    longer = Series((0.0, 7200.0), (2.0, 1.0), "machines")
    found = shift(machines(2, 2), load, policy="immediate", capacity=longer)
    assert starts(found) == pytest.approx([0.0, 3600.0], abs=1e-5)


def test_a_capacity_in_machines_by_hand():
    """Two machines of two hosts, from 100 s on one: what runs then is on one machine.

    Jobs of 50 s on two hosts and of 500 s on one: the second would be on the machine that goes, so it waits for a slot
    of 60 s on the other one, where the third joins it.
    """
    load = jobs((0.0, 50.0, 2), (0.0, 500.0, 1), (60.0, 500.0, 1))
    found = shift(machines(2, 2), load, policy="immediate", capacity=Series((0.0, 100.0), (2.0, 1.0), "machines"))
    assert starts(found) == pytest.approx([0.0, 60.0, 60.0], abs=1e-5)
    assert found.jobs.sort_values("job_id")["allocated_resources"].astype(str).tolist() == ["0-1", "0", "1"]
    # one machine of two hosts of 100 W is on: 50 s, and then 500 s
    assert found.metrics["energy_j"] == pytest.approx(200.0 * 550.0, rel=1e-6)


def test_machines_are_switched_as_a_whole():
    """A job on one host of four: its machine draws 400 W; a second job joins it, and the other machine stays off."""
    load = jobs((0.0, 3600.0, 1), (600.0, 600.0, 2))
    found = shift(machines(2, 4), load, policy="immediate")
    assert found.jobs.sort_values("job_id")["allocated_resources"].astype(str).tolist() == ["0", "1-2"]
    assert found.metrics["energy_j"] == pytest.approx(3600.0 * 400.0, rel=1e-6)


def test_a_wide_job_has_machines_of_its_own():
    """Three hosts of machines of two: both machines, so that a job on one host waits, though a host is free."""
    load = jobs((0.0, 3600.0, 3), (0.0, 600.0, 1))
    found = shift(machines(2, 2), load, policy="immediate")
    assert starts(found) == pytest.approx([0.0, 3600.0], abs=1e-5)


def test_an_optimum_stays_on_one_machine():
    """The first two hours are clean: machine 0 is taken in the first, and machine 1 is there in the first only.

    A job of two hours cannot run from one to the other: it runs on machine 0 from the second hour on.
    """
    clean = SignalIntegral.regular([10.0, 10.0, 50.0, *[500.0] * 57])
    load, capacity = jobs((0.0, 3600.0, 2), (0.0, 7200.0, 2)), Series((0.0, 3600.0), (2.0, 1.0), "machines")
    found = shift(machines(2, 2), load, policy="phase-aware", signal=clean, capacity=capacity)
    assert starts(found) == pytest.approx([0.0, 3600.0], abs=1e-5)
    assert found.jobs["allocated_resources"].tolist() == ["0-1", "0-1"]


def test_an_envelope_in_watts_is_machines():
    """250 W feed two of three machines of 100 W."""
    load = jobs(*[(0.0, 3600.0, 1)] * 3)
    found = shift(machines(3), load, policy="immediate", envelope=Series((0.0,), (250.0,), "power_w"))
    assert sorted(starts(found)) == pytest.approx([0.0, 0.0, 3600.0], abs=1e-5)
    assert found.metrics["violations"] == 0


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
        found = shift(machines(1), load, policy=policy)
        assert found.metrics["killed_walltime"] == 1, policy
        assert found.jobs["finish_time_s"].max() == pytest.approx(18_000.0, abs=1e-4)


def test_what_cannot_be_cut_is_not_suspended(tmp_path):
    """Hosts of two speeds: how long flops last is not known, only their walltime."""
    one, two = machines(2).hosts
    faster = replace(two.pstates[0], speed_flops=2 * two.pstates[0].speed_flops)
    platform = Platform((one, replace(two, pstates=(faster, *two.pstates[1:]))))
    flops = one.pstates[0].speed_flops
    long = from_json(tmp_path, {"type": "parallel", "cpu": [6000 * flops], "com": [0]}, 7200)
    with pytest.raises(InputError, match="option 'policy': job w0!a was to be suspended"):
        shift(platform, long, policy="suspend-resume")
    assert shift(platform, long).metrics["jobs_finished"] == 1
    # it ends by itself, before it was to be suspended
    short = from_json(tmp_path, {"type": "parallel", "cpu": [3000 * flops], "com": [0]}, 7200)
    assert shift(platform, short, policy="suspend-resume").metrics["jobs_finished"] == 1


@pytest.mark.parametrize(("order", "expected"), [("fcfs", [14_400.0, 7_200.0]), ("desc_size", [7_200.0, 14_400.0])])
def test_the_order_of_jobs_that_arrive_together(order, expected):
    """Two hosts, jobs of one and of two: whichever is planned first has the fifth hour (80 g), the other the third."""
    found = shift(machines(2), jobs((0.0, 3600.0, 1), (0.0, 3600.0, 2)), order=order)
    assert starts(found) == pytest.approx(expected, abs=1e-5)


def unlike():
    """Two hosts, of which the second is twice as fast and draws 150 W in place of 100 W."""
    one, two = machines(2).hosts
    faster = replace(two.pstates[0], speed_flops=2 * two.pstates[0].speed_flops, full_w=150.0, idle_w=150.0)
    return Platform((one, replace(two, pstates=(faster, *two.pstates[1:]))))


@pytest.mark.parametrize("switch", [True, False])
@pytest.mark.parametrize(("selection", "hosts"), [("first", ["0", "1"]), ("fastest", ["1", "0"])])
def test_the_hosts_of_a_start(selection, hosts, switch):
    """Each of two jobs that run at a time has the best host that is free; one that runs later has the best of all."""
    load = jobs((0.0, 3600.0, 1), (600.0, 3600.0, 1), (9000.0, 3600.0, 1))
    found = shift(unlike(), load, policy="immediate", node_selection=selection, switch=switch)
    assert found.jobs.sort_values("job_id")["allocated_resources"].tolist() == [*hosts, hosts[0]]


def test_hosts_that_are_preferred_are_switched_on():
    """Less W per flop/s on the second host, which alone is on: 150 W for an hour."""
    found = shift(unlike(), jobs((0.0, 3600.0, 1)), node_selection="fewest-watts")
    assert found.jobs["allocated_resources"].tolist() == ["1"]
    assert found.metrics["energy_j"] == pytest.approx(3600.0 * 150.0, rel=1e-6)


@pytest.mark.parametrize(
    ("selection", "hosts"), [("first", ["0", "1"]), ("packed", ["0", "1"]), ("spread", ["0", "2"])]
)
def test_the_machine_of_a_plan(selection, hosts):
    """Two machines of two hosts: a second job on one host joins the first, or has a machine of its own."""
    load = jobs((0.0, 3600.0, 1), (600.0, 600.0, 1))
    found = shift(machines(2, 2), load, policy="immediate", node_selection=selection)
    assert found.jobs.sort_values("job_id")["allocated_resources"].tolist() == hosts


def test_a_node_selection_chooses_where_there_is_room_for_the_whole_run():
    """The second machine serves until 1,800 s: `spread` prefers it for a job that is over by then, not for longer."""
    capacity = Series((0.0, 1800.0), (2.0, 1.0), "machines")
    load = jobs((0.0, 3600.0, 1), (60.0, 600.0, 1), (900.0, 3600.0, 1))
    found = shift(machines(2, 2), load, policy="immediate", node_selection="spread", capacity=capacity)
    assert found.jobs.sort_values("job_id")["allocated_resources"].tolist() == ["0", "2", "1"]


class EvenHosts(NodeSelection):
    name = "even-hosts"

    def suits(self, nodes, cores):
        return nodes.ids % 2 == 0

    def weight(self, nodes, cores):
        return nodes.ids * 1.0


def test_a_node_selection_that_rules_machines_out_is_refused():
    described = [{"name": name, "properties": {}} for name in ("a", "b")]
    with pytest.raises(InputError, match="option 'node_selection': even-hosts rules machines out by `suits`"):
        CarbonCluster(None, described, Transitions(), EvenHosts())


@examples(200)
@given(
    st.lists(st.tuples(st.integers(1, 9), st.integers(0, 5)), min_size=1, max_size=8),
    st.sampled_from([0.0, 1.0, 2.5, 7.0]),
    st.sampled_from([0.0, 1.0, 3.5]),
)
def test_the_least_around_a_time(rows, before, after):
    times = np.cumsum([gap for gap, _ in rows]).astype(float)
    series = Series(tuple(times.tolist()), tuple(float(value) for _, value in rows))
    found = least_around(series, before, after)
    for time_s in np.arange(0.25, times[-1] + 10.0, 0.5):
        near = [series.at(at) for at in np.arange(time_s - before, time_s + after + 1e-9, 0.25)]
        assert found.at(time_s) == min(near), (time_s, series, found)
