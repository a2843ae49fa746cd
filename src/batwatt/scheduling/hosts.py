"""The hosts of many machines: the hosts of each job, and switching machines off and on."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, TypeAlias, final

import numpy as np
from numpy.typing import NDArray

from batwatt.errors import InputError
from batwatt.model import hostset
from batwatt.model.platform import SLEEP_STATES, WATTS, Platform, machine_of, sleeps_of
from batwatt.scheduling.fleet import Fleet
from batwatt.scheduling.jobs import ManagedJob

Numbers: TypeAlias = NDArray[np.int64]


@final
class Hosts:
    """The hosts of machines as Batsim describes them, all machines being on at first. Raises InputError."""

    def __init__(self, described: Sequence[Mapping[str, Any]], switch: bool, platform: Platform | None = None) -> None:
        members, self._off_state, self._on_state = _grouped(described, switch)
        states = set() if platform is None else {host.initial_pstate for host in platform.hosts}
        if len(states) == 1:
            # they come back as they were
            self._on_state = states.pop()
        self.cores = len(members[0])
        self._ids = np.array(members)
        machine_of = np.empty(len(described), dtype=np.int64)
        machine_of[self._ids] = np.arange(len(members))[:, None]
        self._machine_of = machine_of
        self._first: list[int] = self._ids[:, 0].tolist()
        self._together = bool((np.diff(self._ids, axis=1) == 1).all())
        self._full = (1 << self.cores) - 1
        self._on = np.ones(len(members), dtype=np.bool_)
        self._wanted = np.zeros(len(members), dtype=np.bool_)
        self._changing = np.zeros(len(members), dtype=np.bool_)
        self._out = np.zeros(len(members), dtype=np.bool_)
        self._arrived = np.zeros(len(members), dtype=np.int64)

    def __len__(self) -> int:
        return len(self._ids)

    def describe(self, fleet: Fleet, platform: Platform | None) -> None:
        """Set the watts and the speeds in flop/s of a fleet's machines, if there is a platform."""
        if platform is not None:
            states = [host.pstates[host.initial_pstate] for host in platform.hosts]
            fleet.watts = np.array([state.full_w for state in states])[self._ids].sum(axis=1)
            fleet.speed_flops = np.array([state.speed_flops for state in states])[self._ids].mean(axis=1)

    def speeds(self, platform: Platform) -> NDArray[np.float64]:
        """Return the speed of each machine, that of its slowest host, in flop/s."""
        speeds: NDArray[np.float64] = np.array([h.pstates[h.initial_pstate].speed_flops for h in platform.hosts])
        slowest: NDArray[np.float64] = speeds[self._ids].min(axis=1)
        return slowest

    # jobs -------------------------------------------------------------------------------------------------------

    def take(self, task: ManagedJob, fleet: Fleet) -> int:
        """Return the mask of the hosts that a task gets on its machines, of which the lowest free."""
        if task.machines:
            ids = self._ids[task.places].ravel()[: task.hosts]
            return self._mask(ids)
        machine: int = task.places.item(0)
        task.bits = 0
        free = self._full
        for other in fleet.on(machine):
            free &= ~other.bits
        task.bits = bits = hostset.lowest(free, task.hosts)
        if self._together:
            return bits << self._first[machine]
        return self._mask(self._ids[machine][hostset.ids(bits)])

    def _mask(self, ids: Numbers) -> int:
        bits = np.zeros(int(ids.max()) + 1, dtype=np.uint8)
        bits[ids] = 1
        return int.from_bytes(np.packbits(bits, bitorder="little").tobytes(), "little")

    # switching --------------------------------------------------------------------------------------------------

    def serve(self, fleet: Fleet, machines: Numbers, on: bool) -> None:
        """Take machines into service, or out of it: then they should be off."""
        fleet.serve(machines, on)
        self._wanted[machines] = on

    def leave_out(self, fleet: Fleet, out: int) -> None:
        """Take the machines of some hosts out of service."""
        self._out[:] = False
        self._out[self.machines(out)] = True
        fleet.out[:] = self._out
        fleet.outs = int(np.count_nonzero(self._out))
        self.serve(fleet, np.flatnonzero(self._out & fleet.in_service), False)

    @property
    def held(self) -> int:
        """Number of machines out of service that draw power, as a part of the capacity."""
        return int(np.count_nonzero(self._out & (self._on | self._changing)))

    def machines(self, mask: int) -> Numbers:
        """Return the machines of some hosts, each as often as it has such hosts."""
        return np.asarray(self._machine_of[hostset.ids(mask)])

    def want(self, machines: NDArray[np.bool_]) -> None:
        """Set the machines that should be on; all others should be off."""
        self._wanted[:] = machines

    @property
    def on(self) -> NDArray[np.bool_]:
        """Machines that are on, or will be once they have switched off and on again; (machines,)."""
        return self._on

    @property
    def pstates(self) -> tuple[int, int] | None:
        """The p-states of machines that are on and off; None if they are never switched."""
        return None if self._off_state is None else (self._on_state, self._off_state)

    @property
    def settled(self) -> bool:
        """True if every machine is in the state in which it should be, and none is switching."""
        if self._off_state is None:
            return True
        return not (((self._wanted != self._on) | self._changing) & ~self._out).any()

    @property
    def ready(self) -> NDArray[np.bool_]:
        """Machines that are on, and not switching; (machines,)."""
        return self._on & ~self._changing

    def switches(self, fleet: Fleet, occupied: int = 0) -> Iterator[tuple[int, int]]:
        """Yield the masks of hosts to be switched now, and the p-states for them: of machines without a task.

        `occupied`: hosts of tasks that are over by the fleet, and whose end is still to be reported.
        """
        off_state = self._off_state
        if off_state is None:
            return
        now = (self._wanted != self._on) & ~(self._changing | self._out) & (fleet.free == fleet.cores)
        if occupied and now.any():
            now[self.machines(occupied)] = False
        for on, state in ((True, self._on_state), (False, off_state)):
            machines = np.flatnonzero(now & (self._wanted == on))
            if len(machines):
                self._changing[machines] = True
                fleet.switched(machines, False)
                yield self._mask(self._ids[machines].ravel()), state

    def arrived(self, low: int, high: int, pstate: int) -> tuple[Numbers, bool]:
        """Note a p-state of hosts low .. high; return the machines with all their hosts in it, and whether it is on."""
        machines = self._machine_of[low : high + 1]
        self._arrived += np.bincount(machines, minlength=len(self))
        whole = np.flatnonzero(self._arrived == self.cores)
        self._arrived[whole] = 0
        self._changing[whole] = False
        self._on[whole] = pstate == self._on_state
        return whole, pstate == self._on_state


def _grouped(hosts: Sequence[Mapping[str, Any]], switch: bool) -> tuple[list[list[int]], int | None, int]:
    """Return the hosts of each machine, in the order of their first hosts; the p-state of sleep if any, that of work.

    `hosts` are Batsim's descriptions of them. Without `switch` there is no sleep. Raises InputError if the machines
    are not alike.
    """
    members: dict[str, list[int]] = {}
    sleeping: set[str] = set()
    without_watts = frozenset(WATTS).isdisjoint
    for number, host in enumerate(hosts):
        properties = host["properties"]
        members.setdefault(machine_of(properties, host["name"]), []).append(number)
        # without watts there is no accounting for energy, and without that no switching
        measured = switch and not without_watts(properties)
        sleeping.add(properties.get(SLEEP_STATES, "") if measured else "")
    sizes = {len(numbers) for numbers in members.values()}
    if len(sizes) > 1 or len(sleeping) > 1:
        what = "numbers of hosts" if len(sizes) > 1 else "sleep states"
        raise InputError("platform", f"machines have different {what}", "use machines that are alike")
    sleeps = sleeps_of(sleeping.pop())
    if not sleeps:
        return list(members.values()), None, 0
    special = {state for each in sleeps for state in (each.sleep, each.switch_off, each.switch_on)}
    on_state = next(state for state in range(len(special) + 1) if state not in special)
    return list(members.values()), sleeps[0].sleep, on_state
