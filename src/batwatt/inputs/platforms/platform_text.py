"""The text of SimGrid platforms (XML 4.1): hosts with p-states and what goes around them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from batwatt.model.machines import MachineSpec, described
from batwatt.model.platform import MACHINE


def document(comment: str, hosts: Iterable[str]) -> str:
    """A platform file of these lines of hosts, with a master host and a network that takes no time."""
    lines = [
        "<?xml version='1.0'?>",
        '<!DOCTYPE platform SYSTEM "https://simgrid.org/simgrid.dtd">',
        '<platform version="4.1">',
        f"  <!-- {comment} -->",
        '  <zone id="AS0" routing="Vivaldi">',
        *host_xml("master_host", 'speed="1Gf"', {"wattage_per_state": "0:0"}),
    ]
    return "\n".join([*lines, *hosts, "  </zone>", "</platform>", ""])


def host_xml(name: str, attributes: str, properties: Mapping[str, str]) -> list[str]:
    """The lines of one host."""
    # it loads what reads from the network, too
    from xml.sax.saxutils import quoteattr

    return [
        f'    <host id={quoteattr(name)} coordinates="0 0 0" {attributes}>',
        *(f"      <prop id={quoteattr(key)} value={quoteattr(value)}/>" for key, value in sorted(properties.items())),
        "    </host>",
    ]


def machines_xml(machines: MachineSpec, maker: str = "batwatt generate machines") -> str:
    """The SimGrid platform (XML 4.1) of these machines and a master host; each host has the property `machine`.

    Its comment says which command made it.
    """
    attributes, properties = described(machines.states, len(machines.computing), 1)
    lines: list[str] = []
    for machine, name in machines.host_names:
        lines += host_xml(name, attributes, properties | {MACHINE: machine})
    comment = f"{machines.machines} machines of {machines.cores} cores. Made by `{maker}`."
    return document(comment, lines)
