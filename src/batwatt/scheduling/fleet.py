"""Machines that jobs share: free cores and memory, the jobs of each and their ends, and the machines in service."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import final

import numpy as np
from numpy.typing import NDArray

from batwatt.scheduling.foresight import Foresight
from batwatt.scheduling.jobs import NOWHERE, ManagedJob, Places
from batwatt.scheduling.node_selection import Nodes, NodeSelection

_ROUNDING = 1e-12
"""Share of the memory of a machine that sums of the memory of jobs may be wrong by: 0.7 - 0.4 is less than 0.3."""


@final
class Fleet:
    """`machines` machines of `cores` cores and `memory` each. Machine 0 is the safest."""

    def __init__(self, machines: int, cores: int, memory: float, stable: int = 0) -> None:
        self.cores = cores
        self.memory_each = memory * (1.0 + _ROUNDING)
        self._measured = memory < math.inf
        self.free = np.full(machines, cores, dtype=np.int64)
        self.memory = np.full(machines, memory)
        self.until_s = np.full(machines, -1.0)
        # they never leave, so that foresight takes them for busy for ever and restrains no job there
        self.until_s[:stable] = math.inf
        self._stable = stable
        self.in_service = np.zeros(machines, dtype=np.bool_)
        self.out = np.zeros(machines, dtype=np.bool_)
        """Machines with a host that has failed or is away: not in service, and not to be taken into it."""
        self.outs = 0
        self.ready = np.ones(machines, dtype=np.bool_)
        """Machines that are switched on."""
        self.usable = np.zeros(machines, dtype=np.bool_)
        self.whole = np.zeros(machines, dtype=np.bool_)
        """Usable machines with all cores free."""
        self.serving = 0
        self.foresight = Foresight()
        self.selection: NodeSelection | None = None
        """None: the first machine in the requested direction."""
        self.watts = np.full(machines, np.nan)
        self.speed_flops = np.full(machines, np.nan)
        self.paces: NDArray[np.float64] | None = None
        """Speeds of the machines, as shares of the nominal one; None: all are 1."""
        self.tasks: dict[int, ManagedJob] = {}
        """Running jobs by number."""
        self._on: list[list[ManagedJob]] = [[] for _ in range(machines)]
        self._owner = np.full(machines, -1, dtype=np.int64)
        """The number of the task that has a machine to itself, -1 without one."""
        self._each: list[Places] = list(np.arange(machines).reshape(-1, 1))
        # one cell of a memoryview is faster than one of an array
        self._free_at = self.free.data
        self._whole_at = self.whole.data
        self._usable_at = self.usable.data
        self._owner_at = self._owner.data

    def __len__(self) -> int:
        return len(self.free)

    # room -------------------------------------------------------------------------------------------------------

    def most_free(self, low: int, high: int) -> int:
        """Return the most cores that are free on one machine of low .. high - 1; -1 if none of them is usable."""
        return int(np.where(self.usable[low:high], self.free[low:high], -1).max(initial=-1))

    def free_machines(self, low: int, high: int) -> int:
        """Return the number of usable machines of low .. high - 1 with all cores free."""
        return int(np.count_nonzero(self.whole[low:high]))

    def has_room(self, cpus: int, memory: float, low: int, high: int) -> bool:
        """Return whether a machine of low .. high - 1 has `cpus` cores and `memory` free, whatever the forecast."""
        part = slice(low, high)
        return bool((self.usable[part] & (self.free[part] >= cpus) & (self.memory[part] >= memory)).any())

    def place(
        self, task: ManagedJob, now_s: float, low: int, high: int, upwards: bool, *, blind: bool = False
    ) -> Places | None:
        """Return the machines on which a task may start now, searched in one direction; None if it may not.

        `blind`: without regard to foresight.
        """
        blocked_s = -math.inf
        if self.foresight.ahead and not blind and high > self._stable:
            blocked_s = self.foresight.blocked_s(now_s, now_s + task.assumed_s, task.width)
        if task.machines > 1 and blocked_s > -math.inf:
            return None
        if self.selection is None:
            if task.machines:
                free = low + np.flatnonzero(self.whole[low:high] & (self.until_s[low:high] > blocked_s))
                if len(free) < task.machines:
                    return None
                return free[: task.machines].copy() if upwards else free[: -1 - task.machines : -1].copy()
            m = self._first(task, blocked_s, low, high, upwards)
            return None if m < 0 else self._each[m]
        ids = np.arange(low, high) if upwards else np.arange(low, high)[::-1]
        ids = self.preferred(ids, self.free[ids], task.hosts)
        if task.machines:
            ids = ids[self.whole[ids] & (self.until_s[ids] > blocked_s)]
            return ids[: task.machines] if len(ids) >= task.machines else None
        ids = ids[self._fits(task, blocked_s, ids)]
        return self._each[int(ids[0])] if len(ids) else None

    def _first(self, task: ManagedJob, blocked_s: float, low: int, high: int, upwards: bool) -> int:
        """Return the first machine on which a task that shares one may start; -1 if there is none.

        Few machines are looked at first, and each time four times as many: the first is near, as a rule.
        """
        count = 64
        while low < high:
            begin, end = (low, min(low + count, high)) if upwards else (max(low, high - count), high)
            fits = self._fits(task, blocked_s, slice(begin, end))
            if upwards:
                at = int(fits.argmax())
                low = end
            else:
                at = len(fits) - 1 - int(fits[::-1].argmax())
                high = begin
            if fits[at]:
                return begin + at
            count *= 4
        return -1

    def _fits(self, task: ManagedJob, blocked_s: float, which: slice | Places) -> NDArray[np.bool_]:
        """Return a mask of machines with the cores and the memory for a task, and busy beyond `blocked_s` anyway."""
        fits: NDArray[np.bool_] = self.free[which] >= task.hosts
        fits &= self.usable[which]
        if self._measured:
            fits &= self.memory[which] >= task.memory
        if blocked_s > -math.inf:
            fits &= self.until_s[which] > blocked_s
        return fits

    def preferred(self, ids: Places, free: NDArray[np.int64], cpus: int) -> Places:
        """Return machines with `free` free cores in the order of the node selection; ties go to the first in `ids`."""
        if self.selection is None:
            return ids
        nodes = Nodes(ids, np.full(len(ids), self.cores), free, self.watts[ids], self.speed_flops[ids])
        return ids[self.selection.preferred(nodes, cpus)]

    def on(self, machine: int) -> Sequence[ManagedJob]:
        """Return the tasks of a machine."""
        owner: int = self._owner_at[machine]
        return self._on[machine] if owner < 0 else (self.tasks[owner],)

    # tasks on machines ------------------------------------------------------------------------------------------

    def add(self, task: ManagedJob, places: Places, now_s: float) -> None:
        """Let a task run on machines from now on, for as long as it is assumed to."""
        task.places = places
        self.tasks[task.number] = task
        task.pace = self.pace(task)
        until_s = now_s + (task.assumed_s - (task.length_s - task.left_s)) / task.pace
        if not task.machines:
            m: int = places.item(0)
            self._free_at[m] -= task.hosts
            self._whole_at[m] = False
            self._on[m].append(task)
            if self._measured:
                self._recount_memory(m)
            if self.foresight.has_forecast:
                self._until(m, max(until_s, float(self.until_s[m])))
            return
        self.free[places] = 0
        self.whole[places] = False
        self.memory[places] = 0.0
        self._owner[places] = task.number
        if self.foresight.has_forecast:
            unstable = places[places >= self._stable]
            self.until_s[unstable] = until_s
            self.foresight.count(now_s, until_s, len(unstable))

    def pace(self, task: ManagedJob) -> float:
        """Return the length in s that a task does per second on its machines."""
        return float(self.paces[task.places].min()) if task.scales and self.paces is not None else 1.0

    def remove(self, task: ManagedJob) -> None:
        """Remove a task that has ended, or is as good as that."""
        del self.tasks[task.number]
        places, task.places = task.places, NOWHERE
        if not task.machines:
            m: int = places.item(0)
            free: int = self._free_at[m] + task.hosts
            self._free_at[m] = free
            self._whole_at[m] = free == self.cores and self._usable_at[m]
            self._on[m].remove(task)
            if self._measured:
                self._recount_memory(m)
            if self.foresight.has_forecast:
                until_s = -1.0
                for other in self._on[m]:
                    until_s = max(until_s, other.ends_s(other.assumed_s))
                self._until(m, until_s)
            return
        self.free[places] = self.cores
        self._update_whole(places)
        self.memory[places] = self.memory_each
        self._owner[places] = -1
        if self.foresight.has_forecast:
            unstable = places[places >= self._stable]
            self.foresight.count(-1.0, task.ends_s(task.assumed_s), -len(unstable))
            self.until_s[unstable] = -1.0

    def _update_whole(self, machines: Places) -> None:
        self.whole[machines] = self.usable[machines] & (self.free[machines] == self.cores)

    def hide(self, machines: Places) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
        """Make these machines unusable for a while; return the `before` that `show` needs."""
        before = self.usable[machines], self.whole[machines]
        self.usable[machines] = self.whole[machines] = False
        return before

    def show(self, machines: Places, before: tuple[NDArray[np.bool_], NDArray[np.bool_]]) -> None:
        """Undo `hide`."""
        self.usable[machines], self.whole[machines] = before

    def _until(self, machine: int, until_s: float) -> None:
        if machine < self._stable:
            return
        before_s = float(self.until_s[machine])
        if until_s > before_s:
            self.foresight.count(before_s, until_s, 1)
        elif until_s < before_s:
            self.foresight.count(until_s, before_s, -1)
        self.until_s[machine] = until_s

    def _recount_memory(self, machine: int) -> None:
        # from the whole each time, so that nothing is left of rounding
        self.memory[machine] = self.memory_each - sum(sorted([task.memory for task in self._on[machine]]))

    # service ----------------------------------------------------------------------------------------------------

    def serve(self, machines: NDArray[np.int64], wanted: bool) -> None:
        """Take machines into service, or out of it."""
        self.in_service[machines] = wanted
        self.serving += len(machines) if wanted else -len(machines)
        self.usable[machines] = wanted & self.ready[machines]
        self._update_whole(machines)

    def switched(self, machines: NDArray[np.int64], on: bool) -> None:
        """Note that machines are on, or not."""
        self.ready[machines] = on
        self.usable[machines] = self.in_service[machines] & on
        self._update_whole(machines)

    def idle(self, in_service: bool, low: int = 0) -> NDArray[np.int64]:
        """Return the machines from `low` on that are in service (or are not) and have no task, ascending."""
        idle = (self.in_service[low:] == in_service) & (self.free[low:] == self.cores) & ~self.out[low:]
        return low + np.flatnonzero(idle)

    def stranded(self, task: ManagedJob) -> bool:
        """Return whether a task runs, at least in part, on machines out of service."""
        return self.outs > 0 and bool(self.out[task.places].any())

    def unserved(self, count: int) -> Places:
        """Return the first machines that may be taken into service, at most `count`."""
        return np.flatnonzero(~(self.in_service | self.out))[: max(0, count)]

    def serving_from(self, low: int) -> NDArray[np.int64]:
        """Return the machines from `low` on that are in service, ascending."""
        return low + np.flatnonzero(self.in_service[low:])

    def busy(self, low: int = 0) -> NDArray[np.int64]:
        """Return the machines from `low` on that are in service and have tasks, ascending."""
        return low + np.flatnonzero(self.in_service[low:] & (self.free[low:] < self.cores))
