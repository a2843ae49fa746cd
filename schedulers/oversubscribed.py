"""Cores that are promised to more jobs than can use them at once, and the speeds of these jobs.

The rules: docs/explanation/oversubscription.md.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from batwatt.errors import InputError, argument
from batwatt.model.hostset import HostSet, span
from batwatt.model.platform import Platform
from batwatt.model.workload import USE, Parallel
from batwatt.protocol.workload4 import parse_profile
from batwatt.schedulers.varcap.flow import Assumptions
from batwatt.schedulers.varcap.machines import Base, LeastSafe, MappingSite
from batwatt.schedulers.varcap.queues import BucketQueue
from batwatt.schedulers.varcap.scheduler import Parts, VaryingScheduler
from batwatt.scheduling.base import OptionValues
from batwatt.scheduling.capacity import VaryingOptions
from batwatt.scheduling.job import BatsimJob, Job
from batwatt.units import CAUGHT_UP_S

Floats = NDArray[np.float64]
_TICKS = 1e6
_ROUNDING = 1e-9
_SLOTS = 64


def speeds_of(platform: Platform) -> tuple[Floats, list[int]]:
    """Return the speeds that the hosts can have, relative to the nominal one, ascending; and the p-state of each.

    Raises InputError if the hosts are not alike or have but one.
    """
    host = platform.hosts[0]
    if len(set(platform.kinds)) > 1 or len(host.compute) < 2:
        problem = "its hosts are not alike" if len(host.compute) > 1 else "its hosts have one speed only"
        hint = "let a run make the platform: batwatt run --machines M --cores V"
        raise InputError(platform.source, problem, hint)
    nominal_flops = host.pstates[host.initial_pstate].speed_flops
    # of states of one speed that with the lowest number
    state_of = {host.pstates[state].speed_flops / nominal_flops: state for state in sorted(host.compute, reverse=True)}
    speeds = sorted(state_of)
    return np.array(speeds), [state_of[speed] for speed in speeds]


def common_level(weights: Floats, limits: Floats, surplus: float) -> float:
    """Return the speed up to which jobs can go if they may take a surplus of cores beyond their nominal demand.

    Each uses weight x speed cores and goes no faster than its limit (>= 1): the speed s with
    sum(weight x (min(s, limit) - 1)) = surplus, infinite if all reach their limits with less.
    """
    order = np.argsort(limits, kind="stable")
    extra, weights = limits[order] - 1.0, weights[order]
    rest = np.cumsum(weights[::-1])[::-1]
    before = np.concatenate(([0.0], np.cumsum(weights * extra)[:-1]))
    k = int(np.searchsorted(before + rest * extra, surplus, side="left"))
    return math.inf if k == len(weights) else 1.0 + float((surplus - before[k]) / rest[k])


class Shares:
    """The running jobs: the cores of each at the nominal speed, its speed, and the s by which it is behind.

    `speeds` are all speeds, relative to the nominal one, ascending; a *level* is an index of them. `capacity` is the
    number of cores; jobs slowed down alike are at the level `common`, which is the nominal one otherwise.
    """

    def __init__(self, speeds: Floats) -> None:
        self.speeds = speeds
        self.nominal = int(np.flatnonzero(speeds == 1.0)[0])
        self.common = self.nominal
        self.capacity = 0.0
        self._slot_of: dict[int, int] = {}
        self._free: list[int] = []
        self._numbers = np.empty(0, dtype=np.int64)
        self._weight = self._limit = self._behind = self._since = np.empty(0)
        self._level = np.empty(0, dtype=np.int64)

    # jobs -------------------------------------------------------------------------------------------------------

    def add(self, number: int, weight: float, limit: float, now_s: float) -> None:
        """Add a job that starts, at the common level, with `weight` cores at speed 1 and a speed of at most `limit`."""
        if not self._free:
            self._grow()
        slot = self._free.pop()
        self._slot_of[number] = slot
        self._numbers[slot] = number
        self._weight[slot] = weight
        self._limit[slot] = self.speeds[max(self._below(limit), self.nominal)]
        self._behind[slot] = 0.0
        self._since[slot] = now_s
        self._level[slot] = self.common

    def remove(self, number: int) -> None:
        """Remove a job that has ended."""
        slot = self._slot_of.pop(number)
        self._weight[slot] = self._behind[slot] = 0.0
        self._level[slot] = self.nominal
        self._numbers[slot] = -1
        self._free.append(slot)

    def _grow(self) -> None:
        old = len(self._weight)
        new = max(_SLOTS, old)
        zeros = np.zeros(new)
        self._weight, self._limit, self._behind, self._since = (
            np.concatenate((column, zeros)) for column in (self._weight, self._limit, self._behind, self._since)
        )
        self._level = np.concatenate((self._level, np.full(new, self.nominal)))
        self._numbers = np.concatenate((self._numbers, np.full(new, -1)))
        self._free = list(range(old + new - 1, old - 1, -1))

    # cores and speeds -------------------------------------------------------------------------------------------

    @property
    def demand(self) -> float:
        """Cores that would be used at the nominal speed."""
        return float(self._weight.sum())

    @property
    def used(self) -> float:
        """Cores that are used."""
        return float(self._weight @ self.speeds[self._level])

    @property
    def exceeded(self) -> bool:
        """True if more cores are used than there are, and fewer could be."""
        return self.common > 0 and self.used > self.capacity * (1.0 + _ROUNDING)

    @property
    def improvable(self) -> bool:
        """True if a job could run faster, or could make up for lost time, if there were more cores."""
        return bool(self.common < self.nominal or self._late().any())

    @property
    def caught_up_s(self) -> float:
        """Time in s at which the first job that catches up has done so (rounded up to 1e-6); infinite if none does."""
        fast = self._level > self.nominal
        if not fast.any():
            return math.inf
        gain = self.speeds[self._level[fast]] - 1.0
        return math.ceil(float((self._since[fast] + self._behind[fast] / gain).min()) * _TICKS) / _TICKS

    def others(self) -> Iterator[tuple[int, int]]:
        """Return (number, level) of the jobs that are not at the common level."""
        slots = np.flatnonzero((self._level != self.common) & (self._numbers >= 0))
        return zip(self._numbers[slots].tolist(), self._level[slots].tolist(), strict=True)

    # changes ----------------------------------------------------------------------------------------------------

    def share(self, now_s: float) -> None:
        """Set all speeds again: jobs are slowed down alike, or those that are behind share the spare cores."""
        self._settle(now_s)
        demand = self.demand
        self.common = self.nominal
        if demand > self.capacity * (1.0 + _ROUNDING):
            self.common = min(self._below(self.capacity / demand), self.nominal)
        self._level[self._numbers >= 0] = self.common
        late = self._late()
        if self.common == self.nominal and late.any():
            limits = self._limit[late]
            level = common_level(self._weight[late], limits, max(self.capacity - demand, 0.0))
            wanted = np.minimum(level, limits) * (1.0 + _ROUNDING)
            self._level[late] = np.maximum(np.searchsorted(self.speeds, wanted, side="right") - 1, self.nominal)

    def restore_nominal_speed(self, now_s: float) -> bool:
        """Let jobs that have caught up go on at the nominal speed; return whether there are any."""
        fast = self._level > self.nominal
        if not fast.any():
            return False
        left_s = self._behind - (self.speeds[self._level] - 1.0) * (now_s - self._since)
        even = fast & (left_s <= CAUGHT_UP_S)
        self._behind[even], self._since[even] = left_s[even], now_s
        self._level[even] = self.nominal
        return bool(even.any())

    def _settle(self, now_s: float) -> None:
        self._behind += (1.0 - self.speeds[self._level]) * (now_s - self._since)
        self._since[:] = now_s

    def _late(self) -> NDArray[np.bool_]:
        """Return a mask of the jobs that are behind and could catch up."""
        return (self._behind > CAUGHT_UP_S) & (self._limit > 1.0)

    def _below(self, speed: float) -> int:
        """Return the level of the greatest speed that is not above this one, else the least."""
        return max(int(np.searchsorted(self.speeds, speed * (1.0 + _ROUNDING), side="right")) - 1, 0)


class OversubscribedOptions(VaryingOptions):
    """Options of the scheduler `oversubscribed` (docs/explanation/oversubscription.md)."""

    oversubscription: float = Field(1.25, ge=1.0, le=1000.0, description="ratio of offered to real cores of a machine")
    use: float = Field(1.0, gt=0.0, le=1.0, description="share of its cores that a job without `use` uses")
    interval_s: float = Field(300.0, ge=1.0, le=1e9, description="period in s in which unused cores are shared out")
    switch: bool = Field(False, description="false: machines stay on")


class Oversubscribed(VaryingScheduler[OversubscribedOptions]):
    """Jobs that slow down when there are too few cores, and catch up later (varcap dissertation, section 5.1.4)."""

    Options: ClassVar[type[OversubscribedOptions]] = OversubscribedOptions
    needs_speeds: ClassVar[bool] = True

    def __init__(self, options: OptionValues = None) -> None:
        super().__init__(options)
        if self.settings.switch:
            raise InputError("option 'switch'", "machines whose cores are shared stay on", "leave it out")
        self._at: dict[int, int] = {}
        self._starting: list[Job[float]] = []
        self._due = False
        self._next_s = math.inf

    # parts and knowledge ----------------------------------------------------------------------------------------

    def make_parts(self, machines: int) -> Parts:
        """Return the parts: first come, first served, on the first machine with room."""
        site = MappingSite(machines, BucketQueue, (0.0, float(machines)), self.settings)
        return Base(site), LeastSafe(), None, None

    @property
    def assumptions(self) -> Assumptions:
        """See `VaryingScheduler`: nothing is known of run times, and no job is long."""
        return Assumptions("none", long_s=math.inf)

    def most_machines(self) -> int:
        """Return all machines, which are always in service."""
        return len(self.fleet)

    @property
    def loses_work(self) -> bool:
        """False: jobs are slowed down, and none is killed."""
        return False

    def machines_alive(self) -> int:
        """Return the capacity: cores that are shared do not depend on which machines take jobs."""
        return int(self.capacity.at(self.begun_s))

    # what pybatsim calls ----------------------------------------------------------------------------------------

    def onSimulationBegins(self) -> None:
        """Build the machines, all of which are in service, and find their speeds."""
        platform = self.platform
        if platform is None:
            problem = "the scheduler needs one, for the speeds of its hosts"
            raise InputError("option 'platform'", problem, "give a file: batwatt serve --platform FILE")
        speeds, self._states = speeds_of(platform)
        super().onSimulationBegins()
        self.flow.execute = self.execute
        ends = not self.capacity.repeats and not self.capacity.at(self.capacity.settled_s)
        if ends and self.settings.until_s is None:
            problem = "ends with 0 machines, under which nothing that runs ever ends"
            raise InputError(self.capacity.source, problem, f"let it end with more, or give {argument('window')}")
        self.shares = Shares(speeds)
        self._everyone = span(0, self.bs.nb_compute_resources - 1)
        self._at[self.shares.nominal] = self._everyone
        self.hosts.set_in_service(self.fleet, np.arange(len(self.fleet)), True)

    def onJobCompletion(self, job: BatsimJob) -> None:
        """End a job: its cores are shared out with the next interval."""
        number = self.lifecycle.jobs[job.id].number
        super().onJobCompletion(job)
        self.shares.remove(number)
        self._look_again()

    def onHostsArrived(self, mask: int, pstate: int) -> None:
        """Ignore p-states: speeds change at once."""

    # steps ------------------------------------------------------------------------------------------------------

    def arrived(self, job: BatsimJob) -> None:
        """See `VaryingScheduler`; the `state` of a job is its use of its cores."""
        use = (job.json_dict or {}).get(USE, self.settings.use)
        if isinstance(use, bool) or not isinstance(use, int | float) or not 0.0 < use <= 1.0:
            raise InputError("workload", f"job {job.id}: {USE} must be in ]0, 1], got {use!r}", "correct it")
        profile = parse_profile(job.profile_dict, f"profile {job.profile}")
        if not (isinstance(profile, Parallel) and profile.per_host_flops is not None):
            problem = f"job {job.id}: no speed changes how long {job.profile_dict.get('type')!r} takes as it should"
            raise InputError("workload", problem, "give it a delay, or parallel_homogeneous flops")
        task = self.flow.read(job)
        task.state = float(use)
        self.flow.arrive(task)

    def change(self, alive: int, now_s: float) -> None:
        """Apply a capacity: as many cores as `alive` machines really have; all but those out of service take jobs."""
        back = self.fleet.unserved(len(self.fleet))
        if len(back):
            self.hosts.set_in_service(self.fleet, back, True)
            self.flow.freed = True
        self.shares.capacity = alive * self.fleet.cores / self.settings.oversubscription
        self._due = True

    def _look_again(self) -> None:
        """Share out with the next interval, if a job could have more."""
        if self._next_s == math.inf and self.shares.improvable:
            interval_s = self.settings.interval_s
            self._next_s = (math.floor((self.bs.time() + CAUGHT_UP_S) / interval_s) + 1) * interval_s

    # carrying out -----------------------------------------------------------------------------------------------

    def apply(self) -> None:
        """Start the jobs that can start, and set the speeds."""
        super().apply()
        now_s, shares = self.bs.time(), self.shares
        if shares.restore_nominal_speed(now_s):
            self._look_again()
            self._set_speeds()
        if self._due or now_s + CAUGHT_UP_S >= self._next_s or shares.exceeded:
            self._due, self._next_s = False, math.inf
            shares.share(now_s)
            self._set_speeds()
        elif self._starting:
            self._set_speed(shares.common, sum(task.mask for task in self._starting))
        for task in self._starting:
            self.lifecycle.execute(task, task.mask)
        self._starting.clear()

    def execute(self, task: Job[float]) -> None:
        """Start a job once the speed of its cores is set."""
        task.mask, use = self.hosts.assign(task, self.fleet), task.state
        self.shares.add(task.number, task.hosts * use, 1.0 / use, self.bs.time())
        self._starting.append(task)

    def _set_speeds(self) -> None:
        """Let all cores go as fast as their jobs should, idle ones as fast as a job that starts would."""
        wanted: dict[int, int] = {}
        rest = self._everyone
        for number, level in self.shares.others():
            mask = self.fleet.tasks[number].mask
            wanted[level] = wanted.get(level, 0) | mask
            rest ^= mask
        self._set_speed(self.shares.common, rest)
        for level, mask in sorted(wanted.items()):
            self._set_speed(level, mask)

    def _set_speed(self, level: int, mask: int) -> None:
        """Let these cores go at a speed, if they do not."""
        need = mask & ~self._at.get(level, 0)
        if not need:
            return
        self._at = {other: left for other, at in self._at.items() if (left := at & ~need)}
        self._at[level] = self._at.get(level, 0) | need
        self.bs.set_resource_state(HostSet(need), self._states[level])

    def call(self, now_s: float) -> None:
        """See `CapacityScheduler`; request a wake-up at the next interval, too."""
        super().call(now_s)
        if not self.finished():
            self.lifecycle.wake_at(max(min(self._next_s, self.shares.caught_up_s), now_s + CAUGHT_UP_S), now_s)
