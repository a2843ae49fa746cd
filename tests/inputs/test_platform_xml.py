"""SimGrid platforms: what Batsim says of the same files, and every malformed file refused in one line."""

from __future__ import annotations

import json
from pathlib import Path
from types import MappingProxyType
from xml.sax.saxutils import quoteattr

import pytest
from golden import scenarios
from hypothesis import given
from hypothesis import strategies as st

from batwatt.errors import InputError
from batwatt.inputs.platforms.platform_xml import read_platform
from batwatt.model.platform import Platform, Sleep

DOCTYPE = '<!DOCTYPE platform SYSTEM "https://simgrid.org/simgrid.dtd">'
MASTER = '<host id="master_host" speed="1Gf"/>'


@pytest.fixture
def read(tmp_path: Path):
    """Reads a platform whose zone holds the given XML."""

    def reader(body: str, *, whole: bool = False, master: str = "master_host") -> Platform:
        path = tmp_path / "p.xml"
        text = body if whole else f'{DOCTYPE}<platform version="4.1"><zone id="z">{MASTER}{body}</zone></platform>'
        path.write_text(text, encoding="utf-8")
        return read_platform(path, master)

    return reader


def props(**values: str) -> str:
    return "".join(f'<prop id="{key}" value="{value}"/>' for key, value in values.items())


def test_same_hosts_as_batsim():
    for folder in scenarios("golden", "own", "random"):
        first = (folder / "messages.txt").read_text(encoding="utf-8").split("\n")[0]
        begins = json.loads(first.removeprefix("B> "))["events"][0]["data"]
        platform = read_platform(folder / "platform.xml")
        ours = [
            {
                "id": host.id,
                "name": host.name,
                "state": "idle",
                "properties": dict(host.properties),
                "zone_properties": dict(host.zone_properties),
            }
            for host in platform.hosts
        ]
        assert ours == begins["compute_resources"], folder.name


def test_pstates_power_and_sleep(read):
    watts = "30.0:100.0, 25:30:60, 9.75:9.75, 200:200, 425:425"
    body = f"""<host id="h" speed="100.0Mf, 50Mf, 1e-9Mf, 0.5f, 0.05f" pstate="1" core="4">
        {props(wattage_per_state=watts, sleep_pstates="2:3:4")}</host>"""
    (host,) = read(body).hosts
    assert [state.speed_flops for state in host.pstates] == [1e8, 5e7, 1e-3, 0.5, 0.05]
    powers = [(state.idle_w, state.epsilon_w, state.full_w) for state in host.pstates]
    assert powers == [(30, 30, 100), (25, 30, 60), (9.75, 9.75, 9.75), (200, 200, 200), (425, 425, 425)]
    assert host.sleeps == (Sleep(sleep=2, switch_off=3, switch_on=4),)
    assert (host.cores, host.initial_pstate, host.has_power) == (4, 1, True)
    assert host.pstates[3].duration_s == 2.0
    assert isinstance(host.properties, MappingProxyType)
    assert dict(host.properties) == {"role": "", "wattage_per_state": watts, "sleep_pstates": "2:3:4"}


def test_older_spelling(tmp_path):
    path = tmp_path / "p.xml"
    body = f'<AS id="z">{MASTER}<host id="h" speed="1Gf">{props(watt_per_state="1:2")}</host></AS>'
    path.write_text(f'<platform version="4">{body}</platform>', encoding="utf-8")
    (host,) = read_platform(path).hosts
    assert host.has_power and host.pstates[0].full_w == 2.0


def test_host_without_power_has_none(read):
    platform = read('<host id="h" speed="1Gf"/>')
    assert not platform.has_power and not platform.hosts[0].has_power


def test_order_is_of_texts(read):
    platform = read("".join(f'<host id="host{i}" speed="1Gf"/>' for i in range(12)))
    assert [host.name for host in platform.hosts[:4]] == ["host0", "host1", "host10", "host11"]
    assert [host.id for host in platform.hosts] == list(range(12))


def test_roles(read):
    body = f"""<host id="a" speed="1Gf">{props(role="storage")}</host>
        <host id="b" speed="1Gf">{props(role="compute_node")}</host><host id="c" speed="1Gf"/>"""
    hosts = read(body).hosts
    assert [(host.name, host.properties["role"]) for host in hosts] == [("b", "compute_node"), ("c", "")]


def test_master_by_option_and_by_role(read):
    both = '<platform version="4.1"><host id="m" speed="1f">{}</host><host id="h" speed="1f"/></platform>'
    assert [host.name for host in read(both.format(""), whole=True, master="m").hosts] == ["h"]
    assert [host.name for host in read(both.format(props(role="master")), whole=True).hosts] == ["h"]
    with pytest.raises(InputError, match="no host is called 'master_host' or has the role"):
        read(both.format(""), whole=True)


def test_cluster_and_zone_properties(read):
    body = f"""<zone id="inner">{props(room="b", row="1")}
        <cluster id="c" prefix="n" suffix=".x" radical="0-2, 10,12-13" speed="2Gf" core="8">
          {props(wattage_per_state="1:2", room="c")}</cluster>
        <host id="late" speed="1Gf"/></zone>{props(room="a", site="s")}"""
    hosts = {host.name: host for host in read(body).hosts}
    assert list(hosts) == ["late", "n0.x", "n1.x", "n10.x", "n12.x", "n13.x", "n2.x"]
    node = hosts["n10.x"]
    assert node.cores == 8 and node.has_power
    assert dict(node.properties) == {"role": "", "wattage_per_state": "1:2", "room": "c"}
    assert dict(node.zone_properties) == {"room": "c", "site": "s", "row": "1", "wattage_per_state": "1:2"}
    assert dict(hosts["late"].zone_properties) == {"room": "b", "site": "s", "row": "1"}


def test_network_is_skipped(read):
    body = """<config><prop id="a" value="b"/></config><router id="r"/>
        <link id="l" bandwidth="1GBps" latency="0"/><host id="h" speed="1Gf"><disk id="d" read_bw="1" write_bw="1">
        <prop id="size" value="1"/></disk></host><route src="h" dst="h"><link_ctn id="l"/></route>"""
    (host,) = read(body).hosts
    assert dict(host.properties) == {"role": ""} and dict(host.zone_properties) == {}


def test_equal_hosts_share_their_pstates(read):
    a, b = read('<host id="a" speed="1Gf"/><host id="b" speed="1Gf"/>').hosts
    assert a.pstates is b.pstates


def host(attributes: str = 'speed="1Gf"', **properties: str) -> str:
    return f'<host id="h" {attributes}>{props(**properties)}</host>'


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("", "no compute host"),
        ('<host speed="1Gf"/>', "no attribute 'id'"),
        ('<host id="" speed="1Gf"/>', "not a host name"),
        ('<host id="h"/>', "host 'h': <host> has no attribute 'speed'"),
        (host('speed=""'), "is not a speed"),
        (host('speed="fast"'), "host 'h': speed: 'fast' is not a speed"),
        (host('speed="0f"'), "positive"),
        (host('speed="-1Gf"'), "positive"),
        (host('speed="1Gf,"'), "is not a speed"),
        (host('speed="nan"'), "is not a speed"),
        (host('speed="1Gf" core="0"'), "cores must be >= 1"),
        (host('speed="1Gf" core="two"'), "core: 'two'"),
        (host('speed="1Gf" core="1.5"'), "core: '1.5'"),
        (host('speed="1Gf" pstate="1"'), "initial p-state 1"),
        (host('speed="1Gf" pstate="-1"'), "pstate: '-1'"),
        (host(wattage_per_state="1"), "not two or three powers"),
        (host(wattage_per_state="1:2:3:4"), "not two or three powers"),
        (host(wattage_per_state="1:nan"), "not a finite number"),
        (host(wattage_per_state="-1:2"), "not two or three powers >= 0 W"),
        (host(wattage_per_state="a:b"), "'a' is not a number"),
        (host(wattage_per_state=""), "not a number"),
        (host('speed="3f,2f,1f"', sleep_pstates="1:2"), "has not three parts"),
        (host('speed="3f,2f,1f"', sleep_pstates="1:2:x"), "sleep_pstates: 'x'"),
        (host('speed="3f,2f,1f"', sleep_pstates="1:2:3"), "3 is not a p-state, which are 0..2"),
        (host('speed="3f,2f,1f"', sleep_pstates="0:1:2"), "none of the 3 p-states is left"),
        (host('speed="3f,2f,1f"', sleep_pstates="1:1:2"), "both a sleep p-state and a transition"),
        (host('speed="4f,3f,2f,1f"', sleep_pstates="1:2:3,1:2:3"), "sleep p-state twice"),
        (host() + host(), "a second host 'h'"),
        (host(role="boss"), "unknown role 'boss'"),
        (host(role="master"), "found 'master_host', 'h'"),
        ('<host id="h" speed="1f"><prop id="x"/></host>', "<prop> has no attribute 'value'"),
        ('<peer id="h" speed="1f"/>', "<peer> is not read"),
        ('<include file="x.xml"/>', "<include> is not read"),
        ('<cabinet id="h"/>', "<cabinet> has no attribute 'prefix'"),
        ('<cluster id="c" prefix="n" suffix="" speed="1f"/>', "cluster 'c': <cluster> has no attribute 'radical'"),
        ('<cluster id="c" prefix="n" suffix="" radical="3-1" speed="1f"/>', "radical '3-1'"),
        ('<cluster id="c" prefix="n" suffix="" radical="" speed="1f"/>', "radical ''"),
        ('<cluster id="c" prefix="n" suffix="" radical="0-999999999" speed="1f"/>', "more than"),
        ('<cluster id="c" prefix="n" suffix="" radical="1,1" speed="1f"/>', "a second host 'n1'"),
        ('<host id="h" speed="1f">', "not well-formed"),
        ("&unknown;", "not well-formed"),
    ],
)
def test_malformed_hosts(read, body, message):
    with pytest.raises(InputError) as caught:
        read(body)
    text = str(caught.value)
    assert message in text and "p.xml: " in text and "\n" not in text


ENTITY = '<!DOCTYPE platform [<!ENTITY e "{}">]><platform version="4.1"><zone id="&e;"/></platform>'


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "not well-formed"),
        ("platform", "not well-formed"),
        ("<workload/>", "the root is <workload>"),
        ("<platform/>", "no attribute 'version'"),
        ('<platform version="3"/>', "platform version '3' is not 4.x"),
        ('<platform version="41"/>', "is not 4.x"),
        ('<?xml version="1.0" encoding="nonsense"?><platform version="4.1"/>', "p.xml: "),
        (ENTITY.format("x"), "entities and external references are refused"),
        (ENTITY.replace('"{}"', 'SYSTEM "file:///etc/hostname"'), "entities and external references are refused"),
        (ENTITY.replace("ENTITY e", "ENTITY % e").format("x"), "entities and external references are refused"),
    ],
)
def test_not_a_platform(read, text, message):
    with pytest.raises(InputError) as caught:
        read(text, whole=True)
    assert message in str(caught.value)


def test_entity_of_the_external_dtd_is_not_fetched(read):
    with pytest.raises(InputError, match="undefined entity"):
        read(f'{DOCTYPE}<platform version="4.1"><zone id="z">&fromdtd;</zone></platform>', whole=True)


def test_deep_nesting(read):
    depth = 100_000
    zones = '<zone id="z">' * depth + "</zone>" * depth
    with pytest.raises(InputError, match="no compute host"):
        read(zones)


def test_unreadable(tmp_path):
    for path in (tmp_path, tmp_path / "none.xml", "a\0b"):
        with pytest.raises(InputError, match="cannot be read"):
            read_platform(path)
    binary = tmp_path / "b.xml"
    binary.write_bytes(b"\xff\xfe\x00\xd8<platform")
    with pytest.raises(InputError):
        read_platform(binary)


@given(st.binary(max_size=200), st.booleans())
def test_random_bytes_never_raise_anything_else(tmp_path_factory, noise, inside):
    path = tmp_path_factory.getbasetemp() / "noise.xml"
    path.write_bytes(b'<platform version="4.1"><host id="' + noise if inside else noise)
    with pytest.raises(InputError):
        read_platform(path)


@given(
    st.dictionaries(st.sampled_from(["speed", "core", "pstate"]), st.text(st.characters(codec="utf-8"), max_size=8)),
    st.dictionaries(st.sampled_from(["wattage_per_state", "sleep_pstates", "role"]), st.text("0123:,. -e", max_size=9)),
)
def test_random_attributes_never_raise_anything_else(tmp_path_factory, attributes, properties):
    written = "".join(f" {key}={quoteattr(value)}" for key, value in ({"speed": "3f,2f,1f"} | attributes).items())
    inner = "".join(f'<prop id="{key}" value={quoteattr(value)}/>' for key, value in properties.items())
    path = tmp_path_factory.getbasetemp() / "attributes.xml"
    path.write_text(f'<platform version="4.1">{MASTER}<host id="h"{written}>{inner}</host></platform>', "utf-8")
    try:
        assert len(read_platform(path)) == 1
    except InputError as error:
        assert "\n" not in str(error)
