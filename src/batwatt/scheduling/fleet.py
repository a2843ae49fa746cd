"""Machines of a scheduler of cores: free cores and memory, the hosts behind them, and forecasts of limits."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias, final

import numpy as np
from numpy.typing import NDArray

from batwatt.errors import InputError
from batwatt.model import hostset
from batwatt.model.platform import SLEEP_STATES, WATTS, Platform, machine_of, parse_sleeps
from batwatt.model.timeline import DEFAULT_STEP_S, Timeline
from batwatt.scheduling.job import NOWHERE, Job, Places
from batwatt.scheduling.orders import Nodes, NodeSelection
from batwatt.units import HOUR_S

Floats: TypeAlias = NDArray[np.float64]
_NOTHING = np.empty(0)


def next_step_s(series: Timeline | None, time_s: float) -> float:
    """Return the begin in s of the first step after a time: a change of a value, or a multiple of the usual step."""
    usual_s = (math.floor(time_s / DEFAULT_STEP_S) + 1) * DEFAULT_STEP_S
    return usual_s if series is None else min(series.next_change(time_s), usual_s)


@dataclass(frozen=True)
class EnvelopeForecast:
    """The caps of the next `steps` steps of a series, each with a random relative error.

    The forecast k steps ahead is P x (1 + error x sqrt(k) x z), at least 0 W, with z standard normal: the error is the
    standard deviation of the next step's, and grows as that of a random walk. The draws depend on `seed` and on the
    time only, so that equal questions get equal answers; 0 is an exact forecast.
    """

    series: Timeline
    steps: int
    error: float = 0.0
    seed: int = 0

    def after(self, now_s: float) -> tuple[float, ...]:
        """Return the caps in W of the next steps that begin after `now_s`, as they are forecast then."""
        issued_s = now_s
        caps_w: list[float] = []
        for _ in range(self.steps):
            now_s = next_step_s(self.series, now_s)
            caps_w.append(self.series.at(now_s))
        if not self.error:
            return tuple(caps_w)
        normal = np.random.default_rng((self.seed, round(issued_s * 1e6))).standard_normal(self.steps)
        spread = self.error * np.sqrt(np.arange(1, self.steps + 1))
        return tuple(np.maximum(np.asarray(caps_w) * (1.0 + spread * normal), 0.0).tolist())


class CapacityForecast:
    """The changes of a capacity of `machines` machines as they are forecast for `horizon_s` s ahead.

    Errors (section 8.2.1 of the varcap dissertation): `bias` is relative, `noise` the standard deviation an hour ahead
    as a share of all machines, growing with the root of the time ahead. `false_alarms` is the chance that a change is
    forecast as a fall to the least capacity, `missed` that a fall is forecast as no change.
    """

    def __init__(
        self,
        capacity: Timeline,
        machines: int,
        horizon_s: float,
        bias: float,
        noise: float,
        false_alarms: float,
        missed: float,
        seed: int,
    ) -> None:
        self._capacity = capacity
        self._times, self._values = [0.0], [capacity.at(0.0)]
        self._machines = machines
        self._horizon_s = horizon_s
        self._bias, self._noise, self._false_alarms, self._missed = bias, noise, false_alarms, missed
        self._seed = seed

    def at(self, now_s: float) -> tuple[Floats, Floats, float]:
        """Return times of change in ]now, now + horizon], the forecast capacities, and the time of the next look."""
        while (last_s := self._times[-1]) <= now_s + self._horizon_s:
            if (change_s := self._capacity.next_change(last_s)) == math.inf:
                break
            self._times.append(change_s)
            self._values.append(self._capacity.at(change_s))
        first, beyond = (bisect_right(self._times, time_s) for time_s in (now_s, now_s + self._horizon_s))
        next_s = self._times[beyond] - self._horizon_s if beyond < len(self._times) else math.inf
        times, values = np.array(self._times[first:beyond]), np.array(self._values[first:beyond])
        if len(times) and (self._bias or self._noise or self._false_alarms or self._missed):
            values = self._forecast(values, times, max(first - 1, 0))
        return times, values, float(next_s)

    def _forecast(self, values: Floats, times: Floats, issue: int) -> Floats:
        """Return the forecast issued at step number `issue` for the steps after it."""
        normal = np.random.default_rng([self._seed, issue, 0]).standard_normal(len(values))
        chance = np.random.default_rng([self._seed, issue, 1]).random((len(values), 2))
        hours = (times - self._times[issue]) / HOUR_S
        values = values * (1.0 + self._bias) + self._noise * self._machines * np.sqrt(hours) * normal
        values = np.floor(np.clip(values, 0.0, self._machines) + 1e-9)
        before = self._values[issue]
        for k in range(len(values)):
            if values[k] < before and chance[k, 0] < self._missed:
                values[k] = before
            if chance[k, 1] < self._false_alarms:
                values[k] = self._capacity.least()
            before = values[k]
        return values


class Foresight:
    """Forecast changes of the capacity and, for each, the number of machines assumed to be busy after it.

    Without a forecast there are no changes, and no job is restrained.
    """

    def __init__(self, forecast: CapacityForecast | None = None) -> None:
        self._forecast = forecast
        self._next_s = math.inf if forecast is None else -math.inf
        self.times_s: Floats = _NOTHING
        self.limits: Floats = _NOTHING
        self.counts: Floats = _NOTHING
        self._blocked: dict[int, Floats] = {}
        """Times in s of the changes beyond which a number of further machines cannot be busy, by this number."""
        self.has_forecast = forecast is not None
        """True if there is a forecast."""
        self.ahead = False
        """True if a change is known now."""

    def look(self, now_s: float, stepped: bool, until_s: Floats) -> bool:
        """Look ahead from now if more can be known, or after a step; `until_s` are the assumed ends of all machines.

        Return whether anything may have changed.
        """
        if self._forecast is None or not (stepped or now_s >= self._next_s):
            return False
        self.times_s, self.limits, self._next_s = self._forecast.at(now_s)
        self.ahead = len(self.times_s) > 0
        ends = np.sort(until_s)
        self.counts = (len(ends) - np.searchsorted(ends, self.times_s, side="right")).astype(np.float64)
        self._blocked.clear()
        return True

    def blocked_s(self, now_s: float, end_s: float, more: int) -> float:
        """Return the last known change in [now, end[ beyond which `more` further machines cannot be busy, or -inf."""
        blocked = self._blocked.get(more)
        if blocked is None:
            blocked = self._blocked[more] = self.times_s[self.counts + more > self.limits]
        before = int(blocked.searchsorted(end_s))
        last_s = float(blocked[before - 1]) if before else -math.inf
        return last_s if last_s >= now_s else -math.inf

    def count(self, from_s: float, to_s: float, machines: int) -> None:
        """Count `machines` more machines as busy in [from, to[."""
        if self.ahead:
            first, last = self.times_s.searchsorted((from_s, to_s)).tolist()
            if first < last:
                self.counts[first:last] += machines
                self._blocked.clear()


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
        self.out_count = 0
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
        self.tasks: dict[int, Job] = {}
        """Running jobs by number."""
        self._on: list[list[Job]] = [[] for _ in range(machines)]
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

    def most_free(self, low: int, high: int, busy_s: float = -math.inf) -> int:
        """Return the most cores that are free on one machine of low .. high - 1; -1 if none of them is usable.

        `busy_s`: only machines count that are assumed to be busy beyond this time in s.
        """
        usable = self.usable[low:high]
        if busy_s > -math.inf:
            usable = usable & (self.until_s[low:high] > busy_s)
        return int(np.where(usable, self.free[low:high], -1).max(initial=-1))

    def free_machines(self, low: int, high: int, busy_s: float = -math.inf) -> int:
        """Return the number of usable machines of low .. high - 1 with all cores free; `busy_s`: see `most_free`."""
        whole = self.whole[low:high]
        return int(np.count_nonzero(whole & (self.until_s[low:high] > busy_s) if busy_s > -math.inf else whole))

    def blocked_s(self, now_s: float, assumed_s: float, width: int, high: int) -> float:
        """Return the time in s beyond which machines must be busy anyway for a start now; minus infinity: any will do.

        `assumed_s` is the assumed run time in s of a task on `width` machines, all of them below `high`.
        """
        if self.foresight.ahead and high > self._stable:
            return self.foresight.blocked_s(now_s, now_s + assumed_s, width)
        return -math.inf

    def has_room(self, cpus: int, memory: float, low: int, high: int) -> bool:
        """Return whether a machine of low .. high - 1 has `cpus` cores and `memory` free, whatever the forecast."""
        part = slice(low, high)
        return bool((self.usable[part] & (self.free[part] >= cpus) & (self.memory[part] >= memory)).any())

    def place(
        self, task: Job, now_s: float, low: int, high: int, upwards: bool, *, blind: bool = False
    ) -> Places | None:
        """Return the machines on which a task may start now, searched in one direction; None if it may not.

        `blind`: without regard to foresight.
        """
        blocked_s = -math.inf if blind else self.blocked_s(now_s, task.assumed_s, task.width, high)
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

    def _first(self, task: Job, blocked_s: float, low: int, high: int, upwards: bool) -> int:
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

    def _fits(self, task: Job, blocked_s: float, which: slice | Places) -> NDArray[np.bool_]:
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

    def on(self, machine: int) -> Sequence[Job]:
        """Return the tasks of a machine."""
        owner: int = self._owner_at[machine]
        return self._on[machine] if owner < 0 else (self.tasks[owner],)

    # tasks on machines ------------------------------------------------------------------------------------------

    def add(self, task: Job, places: Places, now_s: float) -> None:
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

    def pace(self, task: Job) -> float:
        """Return the length in s that a task does per second on its machines."""
        return float(self.paces[task.places].min()) if task.scales and self.paces is not None else 1.0

    def remove(self, task: Job) -> None:
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
                before_s = float(self.until_s[m])
                if task.ends_s(task.assumed_s) >= before_s:
                    until_s = -1.0
                    for other in self._on[m]:
                        until_s = max(until_s, other.ends_s(other.assumed_s))
                        if until_s >= before_s:
                            break
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

    def set_in_service(self, machines: NDArray[np.int64], wanted: bool) -> None:
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

    def stranded(self, task: Job) -> bool:
        """Return whether a task runs, at least in part, on machines out of service."""
        return self.out_count > 0 and bool(self.out[task.places].any())

    def unserved(self, count: int) -> Places:
        """Return the first machines that may be taken into service, at most `count`."""
        return np.flatnonzero(~(self.in_service | self.out))[: max(0, count)]

    def serving_from(self, low: int) -> NDArray[np.int64]:
        """Return the machines from `low` on that are in service, ascending."""
        return low + np.flatnonzero(self.in_service[low:])

    def busy(self, low: int = 0) -> NDArray[np.int64]:
        """Return the machines from `low` on that are in service and have tasks, ascending."""
        return low + np.flatnonzero(self.in_service[low:] & (self.free[low:] < self.cores))


Numbers: TypeAlias = NDArray[np.int64]


@final
class MachineHosts:
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

    def assign(self, task: Job, fleet: Fleet) -> int:
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

    def set_in_service(self, fleet: Fleet, machines: Numbers, on: bool) -> None:
        """Take machines into service, or out of it: then they should be off."""
        fleet.set_in_service(machines, on)
        self._wanted[machines] = on

    def exclude(self, fleet: Fleet, out: int) -> None:
        """Take the machines of some hosts out of service."""
        self._out[:] = False
        self._out[self.machines(out)] = True
        fleet.out[:] = self._out
        fleet.out_count = int(np.count_nonzero(self._out))
        self.set_in_service(fleet, np.flatnonzero(self._out & fleet.in_service), False)

    @property
    def held(self) -> int:
        """Number of machines out of service that draw power, as a part of the capacity."""
        return int(np.count_nonzero(self._out & (self._on | self._changing)))

    def machines(self, mask: int) -> Numbers:
        """Return the machines of some hosts, each as often as it has such hosts."""
        return np.asarray(self._machine_of[np.flatnonzero(hostset.flags(mask))])

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

    def arrived(self, mask: int, pstate: int) -> tuple[Numbers, bool]:
        """Note a p-state of hosts; return the machines with all their hosts in it, and whether it is on."""
        machines = self.machines(mask)
        if self.cores == 1:
            whole = machines
        else:
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
    sleeps = parse_sleeps(sleeping.pop())
    if not sleeps:
        return list(members.values()), None, 0
    special = {state for each in sleeps for state in (each.sleep, each.switch_off, each.switch_on)}
    on_state = next(state for state in range(len(special) + 1) if state not in special)
    return list(members.values()), sleeps[0].sleep, on_state
