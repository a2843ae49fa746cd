"""Generated platforms: shipped files, Table I of the powercap paper, machines of many cores, refusals."""

from __future__ import annotations

import math
from pathlib import Path

import pytest
from files_of_tests import refusal, written
from hypothesis import given
from hypothesis import strategies as st

from batwatt.inputs.platform_files import read_platform
from batwatt.inputs.servers import (
    ServerState,
    ServerType,
    machines_xml,
    platform_xml,
    read_platform_xml,
    read_server_types,
)
from batwatt.model.platform import MachineSpec, Platform, PState, Sleep, SpeedMachineSpec, machines_platform

ROOT = Path(__file__).resolve().parents[2]
PLATFORMS = ROOT / "platforms"

TABLE_I = {
    "paravance": (
        [(200.5, 38.4), (165.1, 34.56), (136.76, 30.72), (114.69, 26.88), (98.10, 23.04), (86.22, 19.20)],
        (4.5, 65.7, 112.91),
        (10.0, 657.0, 189.0, 21341.0),
    ),
    "taurus": (
        [(223.7, 18.4), (189.03, 16.56), (161.28, 14.72), (139.67, 12.88), (123.43, 11.04), (111.79, 9.20)],
        (8.5, 106.63, 125.78),
        (11.0, 1173.0, 164.0, 20628.0),
    ),
}


def load(tmp_path: Path, text: str) -> Platform:
    return read_platform(written(tmp_path, text, "p.xml"))


@pytest.mark.parametrize("name", ["grid5000", "grid5000-idle", "small"])
def test_shipped_files_are_what_the_generator_gives(name):
    text = (PLATFORMS / f"{name}.xml").read_text(encoding="utf-8")
    assert text == read_platform_xml(PLATFORMS / f"{name}.toml")


@pytest.mark.parametrize("file", ["grid5000", "grid5000-idle"])
def test_table_i(file):
    platform = read_platform(PLATFORMS / f"{file}.xml")
    assert len(platform) == 20 and platform.has_power
    assert [host.name.split("-")[0] for host in platform.hosts] == ["paravance"] * 10 + ["taurus"] * 10
    for host in platform.hosts:
        states, (sleep_w, off_w, on_w), (off_s, off_j, on_s, on_j) = TABLE_I[host.name.split("-")[0]]
        assert [(state.full_w, state.speed_flops / 1e9) for state in host.pstates[:6]] == [
            (watts, pytest.approx(gflops, rel=1e-12)) for watts, gflops in states
        ]
        assert host.sleeps == (Sleep(6, 7, 8),) and host.compute == (0, 1, 2, 3, 4, 5)
        asleep, off, on = host.pstates[6:]
        assert (asleep.idle_w, asleep.full_w) == (sleep_w, sleep_w)
        assert [math.floor(state.full_w * 100) / 100 for state in (off, on)] == [off_w, on_w]
        assert (off.duration_s, on.duration_s) == (pytest.approx(off_s, rel=1e-9), pytest.approx(on_s, rel=1e-9))
        assert off.duration_s * off.full_w == pytest.approx(off_j, rel=1e-12)
        assert on.duration_s * on.full_w == pytest.approx(on_j, rel=1e-12)
        top = {"paravance": 69.9, "taurus": 95.8}[host.name.split("-")[0]] / host.pstates[0].full_w
        idle_w = [state.full_w * (top if "idle" in file else 1.0) for state in host.pstates[:6]]
        assert [state.idle_w for state in host.pstates[:6]] == pytest.approx(idle_w, abs=0.005)


GOOD = 'name = "n"\ncount = 2\nstates = [["1Gf", 10]]\n'
SLEEP = "sleep_w = 1\noff_s = 2\noff_j = 3\non_s = 4\non_j = 5\n"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "has no [[server]]"),
        ("x = ", "is not TOML"),
        ("[[servers]]\n" + GOOD, "unknown key 'servers'"),
        ("[[server]]\n" + GOOD.replace('"n"', '"1 n"'), "server '1 n': name"),
        ("[[server]]\n" + GOOD.replace("count = 2\n", ""), "server 'n': needs count, or nodes"),
        ("[[server]]\n" + GOOD + 'nodes = "n[1-2]"\n', "server 'n': has both count and nodes"),
        ("[[server]]\n" + GOOD.replace("count = 2", 'nodes = "n[1-"'), "server 'n': 'n[1-' is not a list of hosts"),
        ("[[server]]\n" + GOOD.replace(", 10", ""), "states.0: a state is [speed, watts]"),
        ("[[server]]\n" + GOOD.replace("10", "-10"), "states.0.watts"),
        ("[[server]]\n" + GOOD.replace("10", "10, 20"), "idle_watts 20 is more than watts 10"),
        ("[[server]]\n" + GOOD.replace('"1Gf"', '"1Gw"'), "states.0.speed: '1Gw' is not a speed"),
        ("[[server]]\n" + GOOD.replace('"1Gf"', "1" + "0" * 400), "states.0.speed"),
        ("[[server]]\n" + GOOD + "sleep_w = 1\n", "servers that sleep need off_s, off_j, on_s, on_j too"),
        ("[[server]]\n" + GOOD + SLEEP.replace("off_s = 2", "off_s = 0"), "off_s"),
        pytest.param("x = " + "[" * 100_000, "is not TOML", id="deep"),
        (("[[server]]\n" + GOOD) * 2, "server 'n': a second server of this name"),
    ],
)
def test_malformed_descriptions(tmp_path, text, message):
    path = written(tmp_path, text, "s.toml")
    line = refusal(read_server_types, path)
    assert message in line and line.startswith(str(path))


POSITIVE = st.floats(1e-3, 1e15)
SECONDS = st.floats(1e-6, 1e9)
JOULES = st.floats(0, 1e12)


@given(
    st.lists(st.tuples(POSITIVE, JOULES), min_size=1, max_size=4), st.tuples(JOULES, SECONDS, JOULES, SECONDS, JOULES)
)
def test_written_servers_are_read_back(tmp_path_factory, states, sleep):
    sleep_w, off_s, off_j, on_s, on_j = sleep
    states_of = [ServerState(speed=speed, watts=watts, idle_watts=watts / 2) for speed, watts in states]
    fields = dict(zip(("sleep_w", "off_s", "off_j", "on_s", "on_j"), sleep, strict=True))
    server = ServerType(name="n", count=10, states=states_of, **fields)
    platform = load(tmp_path_factory.getbasetemp(), platform_xml([server]))
    assert tuple(host.name for host in platform.hosts) == server.host_names
    pstates = platform.hosts[-1].pstates
    assert [(p.speed_flops, p.full_w, p.idle_w) for p in pstates[:-3]] == [(s, w, w / 2) for s, w in states]
    assert pstates[-3].idle_w == sleep_w
    for state, seconds, joules in ((pstates[-2], off_s, off_j), (pstates[-1], on_s, on_j)):
        assert state.duration_s == pytest.approx(seconds, rel=1e-9)
        assert state.full_w * state.duration_s == pytest.approx(joules, rel=1e-9, abs=1e-300)


def test_servers_that_never_sleep(tmp_path):
    states = '["2 Gf", 9], [1.5e9, 8, 4], {speed = "1G", watts = 7.5, idle_watts = 3}'
    (server,) = read_server_types(written(tmp_path, f'[[server]]\nname = "n"\ncount = 1\nstates = [{states}]\n'))
    read = [(state.speed, state.watts, state.idle_watts) for state in server.states]
    assert read == [("2Gf", 9.0, None), ("1500000000f", 8.0, 4.0), ("1000000000f", 7.5, 3.0)]
    server = ServerType(name="n", count=12, cores=4, states=[ServerState(speed=1e9, watts=10)])
    platform = load(tmp_path, platform_xml([server]))
    assert [host.name for host in platform.hosts] == [f"n-{i:02d}" for i in range(1, 13)]
    host = platform.hosts[0]
    assert (host.sleeps, host.cores, host.pstates[0].speed_flops, host.pstates[0].idle_w) == ((), 4, 1e9, 10.0)
    for servers in ([], [server, server]):
        assert "distinct names" in refusal(platform_xml, servers)
    for title in ("a -- b", "--->", "x\ny\0", "<&>", "-"):
        assert len(load(tmp_path, platform_xml([server], title))) == 12


@pytest.mark.parametrize(
    "machines",
    [
        MachineSpec(2, 11),
        MachineSpec(101, 2),
        MachineSpec(3, 2, core_w=9.7, core_flops="38.4 G", off_s=6.1, on_s=0.3),
        MachineSpec(1, 3, core_w=0, core_flops=2.5e9, on_s=7),
        SpeedMachineSpec(1, 2, core_flops="38.4 G", speeds=(0.5, 1.7)),
    ],
    ids=repr,
)
def test_file_and_memory_agree(tmp_path, machines):
    path = written(tmp_path, machines_xml(machines), "m.xml")
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
        assert "speeds must be numbers in" in refusal(SpeedMachineSpec, 1, 1, speeds=speeds)


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
    names = [host.name for host in machines_platform(MachineSpec(11, 3)).hosts]
    assert names == sorted(names) and names[:4] == ["m00-c0", "m00-c1", "m00-c2", "m01-c0"]
    # no power of a machine that goes: Eq. 2 of a falling server
    assert host.falling_w(host.sleeps[0]) == 0.0
    # switching takes a microsecond unless it is stated
    host = machines_platform(MachineSpec(1, 1)).hosts[0]
    assert [host.pstates[i].duration_s for i in (2, 3)] == pytest.approx([1e-6, 1e-6], rel=1e-12)
    assert host.pstates[0].power_w(0.0) == host.pstates[0].power_w(1.0) == 10.0


@pytest.mark.parametrize(
    "options,message",
    [
        ({"machines": 0}, "machines must be a whole number >= 1, got 0"),
        ({"machines": 100_000, "cores": 24}, "machines x cores must be <= 1000000, got 100000 x 24"),
        ({"core_w": -1}, "core_w must be a number in [0, 1e+09], got -1"),
        ({"core_flops": "fast"}, "core_flops: 'fast' is not a speed"),
    ],
)
def test_refusals(options, message):
    assert refusal(MachineSpec, **{"machines": 2, "cores": 2} | options).startswith(f"machines: {message}")
