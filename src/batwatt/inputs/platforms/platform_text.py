"""The text of SimGrid platforms (XML 4.1): hosts with p-states, their zone and their network."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from batwatt.model.platform import MACHINE, MachineSpec, described


def document(comment: str, hosts: Iterable[str]) -> str:
    """Return the platform file of some lines of hosts, with a master host and a network that takes no time."""
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
    """Return the XML lines of one host."""
    # imported here, as it loads network modules, too
    from xml.sax.saxutils import quoteattr

    return [
        f'    <host id={quoteattr(name)} coordinates="0 0 0" {attributes}>',
        *(f"      <prop id={quoteattr(key)} value={quoteattr(value)}/>" for key, value in sorted(properties.items())),
        "    </host>",
    ]


def machines_xml(machines: MachineSpec, maker: str = "batwatt generate machines") -> str:
    """Return the SimGrid platform (XML 4.1) of machines and a master host; each host has the property `machine`.

    Its comment names `maker`, the command that generates it.
    """
    attributes, properties = described(machines.states, len(machines.computing), 1)
    lines: list[str] = []
    for machine, name in machines.host_names:
        lines += host_xml(name, attributes, properties | {MACHINE: machine})
    comment = f"{machines.machines} machines of {machines.cores} cores. Made by `{maker}`."
    return document(comment, lines)
