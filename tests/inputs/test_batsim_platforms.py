"""What the platform files that come with Batsim 4.2.1 have besides plain hosts, in small files of our own."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest

from batwatt.errors import InputError
from batwatt.inputs.platforms.host_choice import HostChoice
from batwatt.inputs.platforms.platform_xml import read_platform

MASTER = '<host id="master_host" speed="1f"/>'


@pytest.fixture
def write(tmp_path: Path):
    def writer(body: str, head: str = "", master: str = MASTER) -> Path:
        path = tmp_path / "p.xml"
        path.write_text(f'{head}<platform version="4.1"><zone id="z" routing="Full">{master}{body}</zone></platform>')
        return path

    return writer


def names(path: Path, master: str = "master_host") -> list[str]:
    return [host.name for host in read_platform(path, master).hosts]


def test_blank_lines_before_the_declaration(write):
    path = write('\n<host id="h" speed="1f"/>', "\n \n<?xml version='1.0'?>\n")
    assert names(path) == ["h"]
    path.write_text(path.read_text().replace('id="h" speed="1f"', 'id="h" speed="x"'))
    # two lines of blanks, the declaration's, the zone's
    with pytest.raises(InputError, match="line 5: host 'h'"):
        read_platform(path)
    path.write_text("\nx" + path.read_text())
    with pytest.raises(InputError, match="not well-formed XML"):
        read_platform(path)


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
    with caplog.at_level(logging.WARNING):
        earth, mars, venus = read_platform(path).hosts
    assert [host.has_power for host in (earth, mars, venus)] == [False, True, False]
    assert earth.sleeps == () and mars.sleeps != () and len(earth.pstates) == 9
    assert earth.no_power == "wattage_per_state has 6 entries for 9 p-states"
    [told] = caplog.messages
    assert told == (
        f"{path}: no energy is accounted for: 2 of 3 hosts have not one power per p-state "
        "(host 'Earth': wattage_per_state has 6 entries for 9 p-states)"
    )
    # what is no number at all is no such case
    with pytest.raises(InputError, match="'many' is not a number"):
        read_platform(write(f'<host id="h" speed="2f,1f">{watts.format("many,1:2")}</host>'))


def test_latency_and_storage_are_named(write):
    body = (
        '<host id="h" speed="1f"/><host id="disk" speed="1f"><prop id="role" value="storage"/></host>'
        '<cluster id="c" prefix="n" suffix="" radical="0-1" speed="1f" bw="1" lat="0.0us" bb_lat="0"/>'
        '<link id="l" bandwidth="1" latency="0"/>'
    )
    assert read_platform(write(body)).not_simulated == ("storage hosts (first of 1: 'disk')",)
    slow = body + '<link id="m" bandwidth="1" latency="1.5E-6s"/><cabinet id="d" {} lat="1us"/>'
    slow = slow.format('prefix="d" suffix="" radical="0" speed="1f"')
    latency = "latency (first of 2: <link> 'm' on line 1: 1.5E-6s): times differ from Batsim's"
    assert read_platform(write(slow)).not_simulated[0] == latency


def test_any_host_may_be_the_master(write):
    cluster = '<cluster id="c" prefix="g-" suffix=".fr" radical="8-10" speed="1f"/>'
    path = write(cluster, master="")
    assert names(path, "g-8.fr") == ["g-10.fr", "g-9.fr"]
    with pytest.raises(InputError) as caught:
        read_platform(path)
    assert str(caught.value) == (
        f"{path}: no host is called 'master_host' or has the role 'master': none would run the resource manager; "
        "choose a host, which then runs no job, such as --master-host g-8.fr"
    )
    near = write(cluster + '<cabinet id="c" prefix="master_host" suffix="" radical="0-0" speed="1f"/>', master="")
    with pytest.raises(InputError, match="such as --master-host master_host0"):
        read_platform(near)
    assert names(near, "master_host0") == ["g-10.fr", "g-8.fr", "g-9.fr"]
    # as in Batsim, a name that no host has does not matter if a host has the role
    role = write(cluster + '<host id="boss" speed="1f"><prop id="role" value="master"/></host>', master="")
    assert len(names(role, "nobody")) == 3
    with pytest.raises(InputError, match=r"found 'g-8\.fr', 'boss'; name one of them"):
        read_platform(role, "g-8.fr")


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
    with pytest.raises(InputError, match="--mmax asks for 12 hosts but the platform has 11"):
        kept(mmax=12)
    with pytest.raises(InputError, match="--mmax-workload asks for 12 hosts"):
        kept(mmax_workload=True, nb_res=12)
    with pytest.raises(InputError, match="--mmax: -1"):
        HostChoice(mmax=-1)
    args = HostChoice("boss", 2, True).batsim_args()
    assert args == ["--master-host=boss", "--mmax=2", "--mmax-workload"] and HostChoice().batsim_args() == []
