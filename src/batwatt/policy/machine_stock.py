"""What a scheduler of machines keeps books of: the machines, and the jobs that are or were on them."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from batwatt.errors import InputError
from batwatt.inputs.platform_xml import WATTS
from batwatt.model.platform import MACHINE
from batwatt.policy.base import Job
from batwatt.policy.machine_planner import MachineJob


@dataclass(slots=True)
class Work:
    """A job from its submission to its end, whatever it is called each time that it runs."""

    plan: MachineJob
    job: Job
    wanted: bool = False
    """Started by the planner and not yet here."""
    hosts: int = 0
    """Where it runs; 0: it does not."""
    machine: int = -1
    first_name: str = ""
    """Its id when it was submitted first."""
    dying: bool = False
    runs: int = 1
    early: bool = False
    """It had run before it was submitted."""


class Machine:
    """One machine: its hosts, which of them are free, whether it is on, and what waits for it."""

    __slots__ = ("arrived", "changing", "free", "hosts", "on", "queue", "wanted")

    def __init__(self, hosts: int) -> None:
        self.hosts = self.free = hosts
        self.on = self.wanted = True
        self.changing = False
        self.arrived = 0
        self.queue: deque[Work] = deque()


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


def take_stock(hosts: Sequence[Mapping[str, Any]], switch: bool) -> tuple[list[Machine], int | None, int]:
    """The machines, and the p-states of sleep and of work, as `grouped` has them."""
    members, off_state, on_state = grouped(hosts, switch)
    return [Machine(sum(1 << number for number in numbers)) for numbers in members], off_state, on_state
