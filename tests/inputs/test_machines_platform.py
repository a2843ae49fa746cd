"""Platforms of many-core machines: names, powers, and that file and memory agree."""

from __future__ import annotations

import math

import pytest

from batwatt.errors import InputError
from batwatt.inputs.platforms.platform_text import machines_xml
from batwatt.inputs.platforms.platform_xml import read_platform
from batwatt.model.machines import MachineSpec, SpeedMachineSpec, machines_platform
from batwatt.model.platform import PState, Sleep


@pytest.mark.parametrize(
    "machines",
    [
        MachineSpec(1, 1),
        MachineSpec(2, 11),
        MachineSpec(101, 2),
        MachineSpec(3, 2, core_w=9.7, core_flops="38.4 G", off_s=6.1, on_s=0.3),
        MachineSpec(1, 3, core_w=0, core_flops=2.5e9, on_s=7),
        SpeedMachineSpec(2, 2),
        SpeedMachineSpec(1, 2, core_flops="38.4 G", speeds=(0.5, 1.7)),
    ],
    ids=repr,
)
def test_file_and_memory_agree(tmp_path, machines):
    path = tmp_path / "m.xml"
    path.write_text(machines_xml(machines))
    assert read_platform(path) == machines_platform(machines, source=str(path))


def test_cores_of_several_speeds():
    host = machines_platform(SpeedMachineSpec(1, 1, core_w=7.5, core_flops="2Gf", speeds=(0.29, 1.5))).hosts[0]
    assert [(state.speed_flops, state.idle_w, state.full_w) for state in host.pstates[:3]] == [
        (2e9, 7.5, 7.5),
        (5.8e8, 7.5, 7.5),
        (3e9, 7.5, 7.5),
    ]
    assert sorted(host.compute) == [0, 1, 2] and host.sleeps == (Sleep(sleep=3, switch_off=4, switch_on=5),)
    for speeds in ((1.0,), (0.0,), (-1.0,), (math.nan,), ("fast",)):
        with pytest.raises(InputError, match="speeds must be numbers in"):
            SpeedMachineSpec(1, 1, speeds=speeds)


def test_hosts_are_machine_by_machine():
    platform = machines_platform(MachineSpec(11, 3))
    assert len(platform) == 33 and platform.has_power and set(platform.kinds) == {0}
    names = [host.name for host in platform.hosts]
    assert names == sorted(names) and names[:4] == ["m00-c0", "m00-c1", "m00-c2", "m01-c0"] and names[-1] == "m10-c2"
    assert [host.properties["machine"] for host in platform.hosts] == [f"m{i // 3:02d}" for i in range(33)]


def test_names_of_the_capacity_experiments():
    machines = MachineSpec(152, 24)
    assert ("m007", "m007-c03") in machines.host_names
    assert machines_platform(machines).hosts[7 * 24 + 3].name == "m007-c03"
    # ten are 0 to 9, one digit
    assert MachineSpec(10, 10).host_names[99] == ("m9", "m9-c9") and MachineSpec(11, 1).host_names[9] == (
        "m09",
        "m09-c0",
    )


def test_states():
    host = machines_platform(MachineSpec(1, 1, core_w=7.5, core_flops="2Gf", off_s=4.0, on_s=8.0)).hosts[0]
    assert host.pstates == (
        PState(2e9, 7.5, 7.5, 7.5),
        PState(1e-3, 0.0, 0.0, 0.0),
        PState(0.25, 0.0, 0.0, 0.0),
        PState(0.125, 7.5, 7.5, 7.5),
    )
    assert host.sleeps == (Sleep(sleep=1, switch_off=2, switch_on=3),) and host.compute == (0,)
    assert (host.pstates[2].duration_s, host.pstates[3].duration_s) == (4.0, 8.0)
    # no power of a machine that goes: Eq. 2 of a falling server
    assert host.falling_w(host.sleeps[0]) == 0.0


def test_switching_takes_a_microsecond():
    host = machines_platform(MachineSpec(1, 1)).hosts[0]
    assert [host.pstates[i].duration_s for i in (2, 3)] == pytest.approx([1e-6, 1e-6], rel=1e-12)
    assert host.pstates[0].power_w(0.0) == host.pstates[0].power_w(1.0) == 10.0


@pytest.mark.parametrize(
    "given,said",
    [
        ({"machines": 0}, "machines must be a whole number >= 1, got 0"),
        ({"cores": 2.0}, "cores must be a whole number >= 1, got 2.0"),
        ({"machines": True}, "machines must be a whole number >= 1, got True"),
        ({"machines": 100_000, "cores": 24}, "machines x cores must be <= 1000000, got 100000 x 24"),
        ({"core_w": -1}, "core_w must be a number in [0, 1e+09], got -1"),
        ({"core_w": math.nan}, "core_w must be a number in [0, 1e+09], got nan"),
        ({"off_s": 0}, "off_s must be a number in [1e-06, 1e+09], got 0"),
        ({"on_s": math.inf}, "on_s must be a number in [1e-06, 1e+09], got inf"),
        ({"core_flops": "fast"}, "core_flops: 'fast' is not a speed"),
        ({"core_flops": 0}, "core_flops: a speed must be positive"),
        ({"core_flops": None}, "core_flops: a speed is a text"),
    ],
)
def test_refusals(given, said):
    with pytest.raises(InputError) as caught:
        MachineSpec(**{"machines": 2, "cores": 2} | given)
    assert str(caught.value).startswith(f"machines: {said}")
