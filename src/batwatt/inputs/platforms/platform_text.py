"""The text of SimGrid platforms (XML 4.1): hosts with p-states and what goes around them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from batwatt.units import number_text, speed_flops

MIN_SWITCH_S = 1e-6
"""Shortest transition in s."""
SLEEP_SPEED = "1e-9Mf"
"""Speed of a sleep p-state, in which nothing computes."""
State = tuple[str, float, float]
"""A p-state: speed, W without work, W with all cores busy."""


def speed_text(value: object) -> str:
    """A speed as SimGrid reads it, from a text or from flop/s. Raises ValueError."""
    if isinstance(value, bool) or not isinstance(value, (str, int, float)):
        raise ValueError("a speed is a text such as '38.4Gf' or a number of flop/s")
    try:
        text = "".join(value.split()) if isinstance(value, str) else f"{number_text(value)}f"
    except OverflowError:
        raise ValueError("a speed must be finite") from None
    flops = speed_flops(text)
    return text if text.endswith("f") else f"{number_text(flops)}f"


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


def described(states: Sequence[State], computing: int, cores: int) -> tuple[str, dict[str, str]]:
    """The attributes and properties of hosts with these p-states, of which the first `computing` compute.

    There are no others, or three: sleep, switching off and switching on.
    """
    properties = {}
    if len(states) > computing:
        properties["sleep_pstates"] = f"{computing}:{computing + 1}:{computing + 2}"
    watts = (f"{number_text(idle_w)}:{number_text(full_w)}" for _, idle_w, full_w in states)
    properties["wattage_per_state"] = ", ".join(watts)
    speeds = ", ".join(speed for speed, _, _ in states)
    return f'speed="{speeds}" core="{cores}" pstate="0"', properties


def switch_speed(duration_s: float) -> str:
    """The speed of a virtual p-state: a transition is one flop at it."""
    return f"{number_text(1.0 / duration_s)}f"
