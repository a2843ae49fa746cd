"""What a scheduler of machines tracks: the machines, and the jobs that are or were on them."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from batwatt.scheduling.base import Job
from batwatt.scheduling.machine_groups import grouped
from batwatt.systems.riskaware.strategy import MachineJob


@dataclass(slots=True, eq=False)
class ManagedJob:
    """A job from its submission to its end, whatever it is called each time that it runs."""

    plan: MachineJob
    job: Job
    wanted: bool = False
    """Started by the planner and not yet here."""
    hosts: int = 0
    """Where it runs; 0: it does not."""
    machine: int = -1
    dying: bool = False
    start_s: float = 0.0
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
        self.queue: deque[ManagedJob] = deque()


def build_machines(hosts: Sequence[Mapping[str, Any]], switch: bool) -> tuple[list[Machine], int | None, int]:
    """The machines, and the p-states of sleep and of work, as `grouped` has them."""
    members, off_state, on_state = grouped(hosts, switch)
    return [Machine(sum(1 << number for number in numbers)) for numbers in members], off_state, on_state
