"""Ideal migration (varcap dissertation, section 7.2.1): running jobs move to machines that stay, at no cost."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from batwatt.scheduling.fleet import Fleet
from batwatt.scheduling.jobs import ManagedJob, Places
from batwatt.systems.varcap.terminations import Termination


def leaving(fleet: Fleet, count: int) -> Places:
    """Return the machines in service with the fewest used cores, the least safe of equals."""
    serving = np.flatnonzero(fleet.in_service)
    order = np.lexsort((-serving, -fleet.free[serving]))
    return serving[order][:count]


def move(
    fleet: Fleet, displaced: Iterable[ManagedJob], now_s: float, termination: Termination
) -> tuple[list[ManagedJob], list[ManagedJob]]:
    """Move the tasks whose machines have left the service; return those moved, from now on, and those killed.

    The tasks with the most work done come first. Where there is no room, the running task that the termination puts
    first (least wasted work in the text) is killed, again and again.
    """
    moved: list[ManagedJob] = []
    killed: list[ManagedJob] = []
    # times differ by rounding
    queue = sorted(displaced, key=lambda task: (-round(task.work(now_s), 6), task.number))
    tasks = sorted(fleet.tasks.values(), key=lambda task: task.number)
    figure = {task.number: termination.figure(task, now_s) for task in tasks}
    for task in queue:
        fleet.remove(task)
    for task in queue:
        while (places := fleet.place(task, now_s, 0, len(fleet), True, blind=True)) is None:
            least = min((*fleet.tasks.values(), task), key=lambda other: (figure[other.number], -other.number))
            killed.append(least)
            if least is task:
                break
            fleet.remove(least)
            if least in moved:
                moved.remove(least)
        if places is not None:
            task.left_s = round(task.length_s - task.done_s(now_s), 6)
            task.start_s = now_s
            fleet.add(task, places, now_s)
            moved.append(task)
    return moved, killed
