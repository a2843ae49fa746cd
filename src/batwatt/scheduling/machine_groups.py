"""Which hosts are a machine, and which p-states switch it off and on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from batwatt.errors import InputError
from batwatt.inputs.platforms.platform_xml import WATTS
from batwatt.model.platform import MACHINE


def grouped(hosts: Sequence[Mapping[str, Any]], switch: bool) -> tuple[list[list[int]], int | None, int]:
    """The hosts of each machine, in the order of their first hosts; the p-state of sleep if any, and that of work.

    `hosts` are Batsim's descriptions of them. Without `switch` there is no sleep. Raises InputError if the machines
    are not alike.
    """
    members: dict[str, list[int]] = {}
    sleeping: set[str] = set()
    for number, host in enumerate(hosts):
        properties = host["properties"]
        members.setdefault(properties.get(MACHINE, host["name"]), []).append(number)
        # without watts there is no accounting for energy, and without that no switching
        measured = any(watts in properties for watts in WATTS)
        sleeping.add(properties.get("sleep_pstates", "") if switch and measured else "")
    sizes = {len(numbers) for numbers in members.values()}
    if len(sizes) > 1 or len(sleeping) > 1:
        what = "numbers of hosts" if len(sizes) > 1 else "sleep states"
        raise InputError("platform", f"machines have different {what}", "use machines that are alike")
    triples = [[int(state) for state in part.split(":")] for part in sleeping.pop().split(",") if part]
    if not triples:
        return list(members.values()), None, 0
    special = {state for triple in triples for state in triple}
    on_state = next(state for state in range(len(special) + 1) if state not in special)
    return list(members.values()), triples[0][0], on_state
