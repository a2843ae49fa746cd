"""SimGrid platforms: what Batsim says of the same files, and every malformed file refused in one line."""

from __future__ import annotations

from pathlib import Path
from types import MappingProxyType

import pytest
from files_of_tests import refusal

from batwatt.inputs.platform_files import HostChoice, read_platform
from batwatt.model.platform import Platform, Sleep

DOCTYPE = '<!DOCTYPE platform SYSTEM "https://simgrid.org/simgrid.dtd">'
MASTER = '<host id="master_host" speed="1Gf"/>'


@pytest.fixture
def write(tmp_path: Path):
    """Write a platform whose zone holds the given XML."""

    def writer(body: str, head: str = DOCTYPE, master: str = MASTER) -> Path:
        path = tmp_path / "p.xml"
        path.write_text(f'{head}<platform version="4.1"><zone id="z" routing="Full">{master}{body}</zone></platform>')
        return path

    return writer


@pytest.fixture
def read(tmp_path: Path, write):
    """Read a platform whose zone holds the given XML, or that is the given XML."""

    def reader(body: str, *, whole: bool = False, master: str = "master_host") -> Platform:
        path = write(body)
        if whole:
            path.write_text(body, encoding="utf-8")
        return read_platform(path, master)

    return reader


def props(**values: str) -> str:
    return "".join(f'<prop id="{key}" value="{value}"/>' for key, value in values.items())


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


def test_network_and_storage_hosts_are_skipped(read):
    body = f"""<config><prop id="a" value="b"/></config><router id="r"/>
        <link id="l" bandwidth="1GBps" latency="0"/><host id="b" speed="1Gf"><disk id="d" read_bw="1" write_bw="1">
        <prop id="size" value="1"/></disk></host><route src="b" dst="b"><link_ctn id="l"/></route>
        <host id="a" speed="1Gf">{props(role="storage")}</host>
        <host id="c" speed="1Gf">{props(role="compute_node")}</host>"""
    slow = '<link id="m" bandwidth="1" latency="1.5E-6s"/><cabinet id="d" {} lat="1us"/>'
    slow = slow.format('prefix="d" suffix="" radical="0" speed="1f" bb_lat="0"')
    latency = "latency (first of 2: <link> 'm' on line 5: 1.5E-6s): times differ from Batsim's"
    assert read(body + slow).not_simulated == (latency, "storage hosts (first of 1: 'a')")
    assert read(body).not_simulated == ("storage hosts (first of 1: 'a')",)
    # the older spelling
    old = f'<AS id="z">{MASTER}<host id="h" speed="1Gf">{props(watt_per_state="1:2")}</host></AS>'
    assert read(f'<platform version="4">{old}</platform>', whole=True).hosts[0].pstates[0].full_w == 2.0
    hosts = read(body).hosts
    assert [(host.name, dict(host.properties)) for host in hosts] == [
        ("b", {"role": ""}),
        ("c", {"role": "compute_node"}),
    ]
    assert not any(host.zone_properties for host in hosts)


def test_master_by_option_and_by_role(read):
    both = '<platform version="4.1"><host id="m" speed="1f">{}</host><host id="h" speed="1f"/></platform>'
    assert [host.name for host in read(both.format(""), whole=True, master="m").hosts] == ["h"]
    assert [host.name for host in read(both.format(props(role="master")), whole=True).hosts] == ["h"]
    assert "no host is called 'master_host' or has the role" in refusal(read, both.format(""), whole=True)


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


def host(attributes: str = 'speed="1Gf"', **properties: str) -> str:
    return f'<host id="h" {attributes}>{props(**properties)}</host>'


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("", "no compute host"),
        ('<host speed="1Gf"/>', "no attribute 'id'"),
        ('<host id="" speed="1Gf"/>', "not a host name"),
        ('<host id="h"/>', "host 'h': <host> has no attribute 'speed'"),
        (host('speed="fast"'), "host 'h': speed: 'fast' is not a speed"),
        (host('speed="1Gf" core="0"'), "cores must be >= 1"),
        (host('speed="1Gf" pstate="1"'), "initial p-state 1"),
        (host(wattage_per_state="1"), "not two or three powers"),
        (host(wattage_per_state="a:b"), "'a' is not a number"),
        (host('speed="3f,2f,1f"', sleep_pstates="1:2"), "has not three parts"),
        (host('speed="3f,2f,1f"', sleep_pstates="1:2:3"), "3 is not a p-state of 0..2"),
        (host('speed="3f,2f,1f"', sleep_pstates="0:1:2"), "none of the 3 p-states is left"),
        (host('speed="3f,2f,1f"', sleep_pstates="1:1:2"), "both a sleep p-state and a transition"),
        (host('speed="4f,3f,2f,1f"', sleep_pstates="1:2:3,1:2:3"), "sleep p-state twice"),
        (host() + host(), "a second host 'h'"),
        (host(role="boss"), "unknown role 'boss'"),
        (host(role="master"), "found 'master_host', 'h'"),
        ('<host id="h" speed="1f"><prop id="x"/></host>', "<prop> has no attribute 'value'"),
        ('<include file="other.xml"/>', "<include> is not read, nor by SimGrid"),
        (host('speed="0f,1f"'), "begins in p-state 0, at a speed of 0"),
        (host('speed="1f,-1f"'), "a speed must be >= 0"),
        (host('speed="1Gf" core="-1"'), "core: '-1' is not a number"),
        (host('speed="1Gf" core="2.7"'), "core: '2.7' is not a number"),
        (host(wattage_per_state="1:2:3:4"), "'1:2:3:4' is not two or three powers"),
        (host('speed="1Gf" core="2"', watt_per_state="10:20:200"), "'10:20:200' is less than 0 W at no load"),
        ('<cluster id="c" prefix="n" suffix="" speed="1f"/>', "cluster 'c': <cluster> has no attribute 'radical'"),
        ('<cluster id="c" prefix="n" suffix="" radical="3-1" speed="1f"/>', "radical '3-1'"),
        ('<cluster id="c" prefix="n" suffix="" radical="0-999999999" speed="1f"/>', "more than"),
        ('<host id="h" speed="1f">', "not well-formed"),
        # it is read without recursion
        pytest.param('<zone id="z">' * 100_000 + "</zone>" * 100_000, "no compute host", id="deep"),
    ],
)
def test_malformed_hosts(read, body, message):
    line = refusal(read, body)
    assert message in line and "p.xml: " in line


ENTITY = '<!DOCTYPE platform [<!ENTITY e "{}">]><platform version="4.1"><zone id="&e;"/></platform>'


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "not well-formed"),
        ("<workload/>", "the root is <workload>"),
        ('<?xml version="1.0" encoding="nonsense"?><platform version="4.1"/>', "p.xml: "),
        # an external DTD is not fetched
        (f'{DOCTYPE}<platform version="4.1"><zone id="z">&fromdtd;</zone></platform>', "undefined entity"),
        ("<platform/>", "no attribute 'version'"),
        ('<platform version="3"/>', "platform version '3' is not 4.x"),
        (ENTITY.format("x"), "entities and external references are refused"),
        (ENTITY.replace('"{}"', 'SYSTEM "file:///etc/hostname"'), "entities and external references are refused"),
        (ENTITY.replace("ENTITY e", "ENTITY % e").format("x"), "entities and external references are refused"),
    ],
)
def test_not_a_platform(read, text, message):
    assert message in refusal(read, text, whole=True)


def test_blank_lines_before_the_declaration(write):
    path = write('\n<host id="h" speed="x"/>', "\n \n<?xml version='1.0'?>\n")
    # two lines of blanks, the declaration's, the zone's
    assert "line 5: host 'h'" in refusal(read_platform, path)


def test_cabinets_are_hosts_of_the_zone_around_them(write):
    """Five cabinets may have one id; the properties are those of the zone, not of a zone of their own."""
    one = '<cabinet id="c" prefix="{}" suffix=".x" radical="9-11,2" speed="3Gf" bw="1Gbps" lat="0">{}</cabinet>'
    prop = '<prop id="rack" value="7"/>'
    body = f'<zone id="in" routing="Cluster"><prop id="Foo" value="bar"/>{one.format("b", prop)}{one.format("a", "")}'
    platform = read_platform(write(body + '<router id="r"/><backbone id="bb" bandwidth="1" latency="0us"/></zone>'))
    assert [host.name for host in platform.hosts] == [f"{c}{n}.x" for c in "ab" for n in (10, 11, 2, 9)]
    assert {host.pstates[0].speed_flops for host in platform.hosts} == {3e9}
    assert dict(platform.hosts[4].properties) == {"role": "", "rack": "7"}
    assert dict(platform.hosts[4].zone_properties) == {"Foo": "bar"}
    assert platform.not_simulated == ()


def test_a_host_without_one_power_for_each_pstate_has_no_energy(write, caplog):
    """Batsim reads neither powers nor sleep p-states without -E: nine speeds and six powers are no error there."""
    speeds = ",".join(f"{9 - n}f" for n in range(9))
    watts = '<prop id="wattage_per_state" value="{}"/>'
    hosts = "".join(
        f'<host id="{name}" speed="{speeds}">{watts.format(",".join(["1:2"] * count))}'
        '<prop id="sleep_pstates" value="6:7:8"/></host>'
        for name, count in (("Earth", 6), ("Mars", 9), ("Venus", 12))
    )
    path = write(hosts)
    earth, mars, venus = read_platform(path).hosts
    assert [host.has_power for host in (earth, mars, venus)] == [False, True, False]
    assert earth.sleeps == () and mars.sleeps != () and len(earth.pstates) == 9
    assert earth.no_power == "wattage_per_state has 6 entries for 9 p-states"
    assert caplog.messages == [
        f"{path}: no energy is accounted for: 2 of 3 hosts have no usable powers "
        "(host 'Earth': wattage_per_state has 6 entries for 9 p-states)"
    ]
    # a text that is no number is an error all the same
    path = write(f'<host id="h" speed="2f,1f">{watts.format("many,1:2")}</host>')
    assert "'many' is not a number" in refusal(read_platform, path)


def test_hosts_without_watts_among_others(write, caplog):
    watts = '<prop id="wattage_per_state" value="{}"/>'
    # a zone's watts are not those of its hosts
    zones = f'<zone id="z" routing="None">{watts.format("1:2")}<host id="b" speed="1f"/></zone>'
    cluster = f'<cluster id="c" prefix="c" suffix="" radical="0-2" speed="1f" bw="1Bps" lat="0s">{watts.format("1:2")}'
    path = write(f"{cluster}</cluster>{zones}")
    assert [host.has_power for host in read_platform(path).hosts] == [False, True, True, True]
    wrong = f'<host id="d" speed="1f,2f">{watts.format("1:2")}</host>'
    path_of_both = write(f"{cluster}</cluster>{zones}{wrong}")
    read_platform(path_of_both)
    begin, count = f"{path}: no energy is accounted for:", "hosts have no usable powers"
    assert caplog.messages == [
        f"{begin} 1 of 4 {count} (host 'b': no wattage_per_state)",
        f"{begin} 2 of 5 {count} (host 'd': wattage_per_state has 1 entries for 2 p-states)",
    ]
    # a platform without any watts has none on purpose
    read_platform(write(f"{zones.replace(watts.format('1:2'), '')}"))
    assert len(caplog.messages) == 2


def test_any_host_may_be_the_master(write):
    cluster = '<cluster id="c" prefix="g-" suffix=".fr" radical="8-10" speed="1f"/>'
    path = write(cluster, master="")
    assert [host.name for host in read_platform(path, "g-8.fr").hosts] == ["g-10.fr", "g-9.fr"]
    assert refusal(read_platform, path) == (
        f"{path}: no host is called 'master_host' or has the role 'master': none would run the resource manager; "
        "choose a host, which then runs no job, such as master=g-8.fr"
    )
    near = write(cluster + '<cabinet id="c" prefix="master_host" suffix="" radical="0-0" speed="1f"/>', master="")
    assert "such as master=master_host0" in refusal(read_platform, near)
    assert len(read_platform(near, "master_host0")) == 3
    # as in Batsim, a name that no host has does not matter if a host has the role
    role = write(cluster + '<host id="boss" speed="1f"><prop id="role" value="master"/></host>', master="")
    assert len(read_platform(role, "nobody")) == 3
    assert "found 'g-8.fr', 'boss'; name one of them" in refusal(read_platform, role, "g-8.fr")


def test_the_first_hosts_in_the_order_of_their_names(write):
    """--mmax 3 of host0 to host10 keeps host0, host1 and host10."""
    platform = read_platform(write('<cluster id="c" prefix="host" suffix="" radical="0-10" speed="1f"/>'))

    def kept(nb_res: int | None = None, **given) -> list[str]:
        return [host.name for host in HostChoice(**given).of(platform, nb_res).hosts]

    assert kept(mmax=3) == ["host0", "host1", "host10"]
    assert len(kept()) == len(kept(nb_res=2)) == 11
    assert len(kept(mmax_workload=True, nb_res=2)) == len(kept(mmax=2, mmax_workload=True, nb_res=5)) == 2
    # the least counts, as in Batsim, which does not look at the other
    assert len(kept(mmax=50, mmax_workload=True, nb_res=2)) == 2
    assert "mmax requires 12 hosts but the platform has 11" in refusal(kept, mmax=12)
    assert "mmax_workload requires 12 hosts" in refusal(kept, mmax_workload=True, nb_res=12)
    assert "mmax: -1" in refusal(HostChoice, mmax=-1)
    args = HostChoice("boss", 2, True).batsim_args()
    assert args == ["--master-host=boss", "--mmax=2", "--mmax-workload"] and HostChoice().batsim_args() == []


STATES = {"speed": "1Gf, 0f, 0.5f, 0f", "watts": "30:40:100, 5:6:9, 120:125:130, 150:160:170"}


def test_a_speed_of_zero_is_that_of_a_sleep_state_or_of_an_endless_transition(write, caplog):
    """Batsim loads such hosts, and with -E refuses one that would compute at a speed of 0."""
    four = f'<host id="{{}}" pstate="{{}}" speed="{STATES["speed"]}">'
    watts = props(wattage_per_state=STATES["watts"])
    sleeping, working = (watts + props(sleep_pstates=triple) + "</host>" for triple in ("1:2:3", "0:1:2"))
    awake, asleep, stuck = read_platform(
        write(four.format("a", 0) + sleeping + four.format("b", 1) + sleeping + four.format("c", 0) + working)
    ).hosts
    assert [state.speed_flops for state in awake.pstates] == [1e9, 0.0, 0.5, 0.0]
    # fully loaded at 0 of 0 flop/s
    assert [state.power_w(0.0) for state in awake.pstates] == [30, 9, 120, 170]
    assert [state.duration_s for state in awake.pstates[2:]] == [2.0, float("inf")]
    assert (awake.compute, awake.sleeps, asleep.initial_pstate) == ((0,), (Sleep(1, 2, 3),), 1)
    assert (stuck.has_power, stuck.sleeps, stuck.compute) == (False, (), (0, 2))
    assert stuck.no_power == "p-state 3 has a speed of 0 and is not in sleep_pstates"
    assert "1 of 3 hosts have no usable powers" in caplog.text


def test_the_older_form_of_powers_states_that_of_one_busy_core(read):
    """SimGrid up to 3.27 reads watt_per_state as idle, one core busy, full."""
    text = '<host id="{}" speed="1f" core="{}">{}</host>'
    old = [props(watt_per_state=watts) for watts in ("100:120:200", "95:200")]
    hosts = read("".join(text.format(f"h{cores}{n}", cores, old[n]) for cores in (1, 5) for n in (0, 1))).hosts
    # of five cores the first draws 120 - 100, the others (200 - 120) / 4 each
    assert [host.pstates[0].epsilon_w for host in hosts] == [200, 200, 100, 95]
    assert hosts[2].pstates[0].power_w(0.2) == 120
    both = text.format("h", 5, props(watt_per_state="100:120:200", wattage_per_state="100:120:200"))
    assert read(both).hosts[0].pstates[0].epsilon_w == 120


def test_a_peer_is_a_host_and_the_first_of_two_properties_counts(read):
    peers = '<peer id="p" speed="730Mf" bw_in="1GBps" bw_out="1GBps" coordinates="0 0 0"/>'
    twice = f'<host id="h" speed="2megaflops">{props(room="a")}{props(room="b")}</host>'
    host, peer = read(peers + twice).hosts
    assert (peer.name, peer.pstates[0].speed_flops, host.pstates[0].speed_flops) == ("p", 7.3e8, 2e6)
    assert host.properties["room"] == "a"


def test_speeds_that_vary_are_told(read, caplog):
    connected = '<trace_connect kind="{}" trace="t" element="h"/>'
    read('<host id="h" speed="1f"/>' + connected.format("SPEED") + connected.format("BANDWIDTH"))
    (line,) = caplog.messages
    assert "host 'h': <trace_connect> is ignored" in line


def test_a_name_with_blanks_is_quoted_in_the_hint(read):
    line = refusal(read, '<host id="Cpu A" speed="1f"/>', master="Cpu")
    assert line.endswith("such as master='Cpu A'")
