"""Free cores and watts of a cluster, slot by slot, while jobs are planned one after another.

The rules: docs/explanation/carbon.md.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from batwatt.model.timeline import Timeline, combined
from batwatt.model.work import Array
from batwatt.schedulers.carbon.execution import Execution, Segment, ShiftJob, carry_out
from batwatt.schedulers.carbon.forecast import MOST_SLOTS, NOISE, check_slots, first_least
from batwatt.schedulers.carbon.optimum import NoPlanError, plan
from batwatt.schedulers.carbon.policies import PolicyInputs, ShiftPolicy, StartWindow, immediate, oracle
from batwatt.units import PRECISION_S

Ids = npt.NDArray[np.int64]
Preference = Callable[[Ids, Ids, int], Ids]
"""(machines, free cores of each, cpus of a job) -> the machines, best first."""
_SLOTS = 4096
"""Slots that are searched, or forgotten, at a time."""


@dataclass(frozen=True)
class Need:
    """Need of an execution: in slot `first + i` `cores[i]` cores of each of some rows, and at most `watts[i]` W."""

    first: int
    cores: npt.NDArray[np.int64]
    watts: Array
    rows: int

    def __len__(self) -> int:
        return len(self.cores)

    def later(self, slots: int) -> Need:
        """Return this need some slots later."""
        return replace(self, first=self.first + slots)

    @property
    def parts(self) -> list[tuple[int, int]]:
        """The stretches of slots in which it holds the same, from `first` on."""
        changes = (np.diff(self.cores) != 0) | (np.diff(self.watts) != 0.0)
        edges = [0, *(np.flatnonzero(changes) + 1).tolist(), len(self)]
        return [(begin, end) for begin, end in pairwise(edges) if self.cores[begin]]


class ReservationCalendar:
    """The free cores and watts of each slot of `slot_s` s from 0 on.

    Machines of one core are one row: any of them will do. Machines of several `cores` have a row each, the first in
    service longest: a job has its cores on one of them, or whole machines if it needs more, the same from start to end.

    A slot has the least of the capacity and of the envelope within it, and a job that runs in a part of it holds all
    of it: what fits here fits at every moment.

    `prefer` orders the machines with room for the whole of a run, which are given fullest first.
    """

    def __init__(
        self,
        slot_s: float,
        machines: Timeline,
        watts: Timeline | None = None,
        cores: int = 1,
        prefer: Preference | None = None,
    ) -> None:
        self.slot_s = slot_s
        self._prefer = prefer
        self._machines, self._watts, self._cores = machines, watts, cores
        limits = [series for series in (machines, watts) if series is not None]
        ends = [series.end_s if series.repeats else series.times_s[-1] for series in limits]
        check_slots(max(ends), slot_s)
        self._settled = math.ceil(max(ends) / slot_s) + 1
        """First slot from which on nothing is held, and limits hold for ever or repeat."""
        repeating = [limit for limit in limits if limit.repeats]
        self._period = 0
        """Slots in which all that repeats has come with each of its begins in a slot; as many as are searched."""
        if repeating:
            both = combined(repeating, sum)
            period_s = both.end_s - both.times_s[both.loop or 0]
            slots = math.lcm(max(1, round(period_s * 1000.0)), max(1, round(slot_s * 1000.0))) / 1000.0 / slot_s
            self._period = min(math.ceil(slots), MOST_SLOTS // 2)
        self._base = 0
        """The first slot that is not forgotten."""
        rows = int(max(machines.values)) if self.apart else 1
        self.free = np.zeros((rows, 0), dtype=np.int16 if self.apart else np.int32)
        self.room_w = np.zeros(0)
        self._lacking = np.zeros(rows, dtype=np.int64)
        """Cores of each row that are out of service."""

    @property
    def apart(self) -> bool:
        """True if machines are told apart."""
        return self._cores > 1

    def shape(self, cpus: int) -> tuple[int, int]:
        """Return the number of rows that a job of some cpus needs, and of cores in each."""
        if self.apart and cpus > self._cores:
            return -(-cpus // self._cores), self._cores
        return 1, cpus

    def need(self, execution: Execution) -> Need:
        """Return the cores and the watts that an execution holds."""
        spans = list(self._spans(execution))
        first, last = spans[0][0], max(end for _, end, _ in spans)
        rows, each = self.shape(execution.job.cpus)
        cores = np.zeros(last - first, dtype=np.int64)
        watts = np.zeros(last - first)
        for begin, end, power_w in spans:
            part = slice(begin - first, end - first)
            cores[part] = each
            np.maximum(watts[part], power_w, out=watts[part])
        return Need(first, cores, watts, rows)

    def fits(self, need: Need) -> bool:
        """Return whether all of a need is free."""
        return bool(self.fitting(need, 0)[0])

    def fitting(self, need: Need, most: int) -> npt.NDArray[np.bool_]:
        """Return for each delay of 0 to `most` slots whether a need fits then; shape [most + 1]."""
        good = np.ones(most + 1, dtype=np.bool_)
        for begin, end in need.parts:
            part = self._slots(need.first + begin, most + end - begin)
            full = (self.free[:, part] < need.cores[begin]) | (self.room_w[part] < need.watts[begin])
            # full slots among those from each delay on, as many as need the same
            before = np.zeros((len(full), full.shape[1] + 1), dtype=np.int32)
            np.cumsum(full, axis=1, out=before[:, 1:])
            open_rows = before[:, end - begin :] == before[:, : most + 1]
            good &= np.count_nonzero(open_rows, axis=0) >= need.rows
        return good

    def delay(self, need: Need) -> int | None:
        """Return the least number of slots after which a need fits; None if it never does."""
        most, begin = max(0, self._settled - need.first) + self._period, 0
        while begin <= most and need.rows <= len(self.free):
            good = self.fitting(need.later(begin), min(most - begin, max(_SLOTS, len(need))))
            if good.any():
                return begin + int(np.argmax(good))
            begin += len(good)
        return None

    def full(
        self, first: int, count: int, cpus: int, power_w: float, rows: Sequence[int] | None = None
    ) -> npt.NDArray[np.bool_]:
        """Return the slots, from `first` on, without room (in some rows, by default all) for cpus and watts."""
        part = self._slots(first, count)
        free = self.free[:, part] if rows is None else self.free[list(rows), part]
        most, each = self.shape(cpus)
        return np.asarray((np.count_nonzero(free >= each, axis=0) < most) | (self.room_w[part] < power_w))

    def roomiest(self, first: int, count: int, cpus: int) -> list[int]:
        """Return the rows that have room for a job in the most of some slots, as many as it needs."""
        rows, each = self.shape(cpus)
        slots = np.count_nonzero(self.free[:, self._slots(first, count)] >= each, axis=1)
        best: list[int] = np.argsort(-slots, kind="stable")[:rows].tolist()
        return best

    def reserve(self, execution: Execution) -> Execution:
        """Hold an execution that fits, and return it; where machines are told apart, the result names them."""
        if self.apart:
            execution = self._placed(execution)
        self.hold(execution)
        return execution

    def hold(self, execution: Execution) -> None:
        """Hold an execution on its machines."""
        need = self.need(execution)
        self._add(execution, need, -1)
        self._settled = max(self._settled, need.first + len(need))

    def give_back(self, execution: Execution) -> None:
        """Release an execution."""
        self._add(execution, self.need(execution), 1)

    def lack(self, cores: npt.NDArray[np.int64], now_s: float) -> None:
        """Remove `cores` cores of each row from now on."""
        begin = max(0, math.floor(now_s / self.slot_s) - self._base)
        rows = len(self.free)
        self.free[:, begin:] -= (cores[:rows] - self._lacking)[:, None].astype(self.free.dtype)
        self._lacking = cores[:rows]

    def forget(self, now_s: float) -> None:
        """Drop slots that are over, where they take room."""
        over = math.floor(now_s / self.slot_s) - 1 - self._base
        if self.apart and over > _SLOTS:
            self._slots(self._base, over)
            self.free, self.room_w = self.free[:, over:].copy(), self.room_w[over:].copy()
            self._base += over

    def _placed(self, execution: Execution) -> Execution:
        """Return an execution on machines that are on for other jobs the longest; of these the fullest, then the first.

        A preference goes before that.
        """
        need = self.need(execution)
        segments: list[Segment] = []
        for begin, end in need.parts:
            free = self.free[:, self._slots(need.first + begin, end - begin)]
            rows = np.flatnonzero((free >= need.cores[begin]).all(axis=1))
            alone = np.count_nonzero(free[rows] == self._cores, axis=1)
            rows = rows[np.lexsort((rows, free[rows].sum(axis=1), alone))]
            if self._prefer is not None:
                rows = self._prefer(rows, free[rows].min(axis=1).astype(np.int64), execution.job.cpus)
            machines = tuple(sorted(rows[: need.rows].tolist()))
            within = (segment for segment in execution.segments if begin <= self._slot(segment) - need.first < end)
            segments += (replace(segment, machines=machines) for segment in within)
        return replace(execution, segments=tuple(segments))

    def _add(self, execution: Execution, need: Need, sign: int) -> None:
        for begin, end in need.parts:
            held = (segment for segment in execution.segments if begin <= self._slot(segment) - need.first < end)
            rows = list(next(held).machines) if self.apart else [0]
            self.free[rows, self._slots(need.first + begin, end - begin)] += sign * need.cores[begin]
        # what is forgotten is not held
        part = self._slots(need.first, len(need))
        self.room_w[part] += sign * need.watts[len(need) - (part.stop - part.start) :]

    def _slot(self, segment: Segment) -> int:
        return math.floor(segment.begin_s / self.slot_s + PRECISION_S)

    def _spans(self, execution: Execution) -> Iterator[tuple[int, int, float]]:
        """Yield (first slot, slot after the last, W) of each step of power."""
        for segment in execution.segments:
            steps = segment.steps(execution.job.model)
            check_slots(segment.begin_s + float(steps.edges_s[-1]), self.slot_s)
            slots = (segment.begin_s + steps.edges_s) / self.slot_s
            begins = np.floor(slots[:-1] + PRECISION_S).astype(int)
            ends = np.maximum(np.ceil(slots[1:] - PRECISION_S).astype(int), begins + 1)
            for begin, end, watts in zip(begins.tolist(), ends.tolist(), steps.watts.tolist(), strict=True):
                yield begin, end, watts * execution.job.cpus

    def _slots(self, first: int, count: int) -> slice:
        """Return the positions of `count` slots, as far as they are not forgotten; add those that are not there yet."""
        begin, end, limit = (slot - self._base for slot in (first, first + count, self._base + len(self.room_w)))
        if end > limit:
            check_slots((first + count) * self.slot_s, self.slot_s)
            last = max(end, 2 * limit) + self._base
            since = limit + self._base
            least = self._least(self._machines, since, last)
            if self.apart:
                least = np.where(np.arange(len(self.free))[:, None] < least, self._cores, 0)
            least = np.atleast_2d(least) - self._lacking[:, None]
            self.free = np.concatenate([self.free, least.astype(self.free.dtype)], axis=1)
            more = np.full(last - since, np.inf) if self._watts is None else self._least(self._watts, since, last)
            self.room_w = np.concatenate([self.room_w, more])
        return slice(max(begin, 0), max(end, 0))

    def _least(self, series: Timeline, first: int, last: int) -> Array:
        """Return the least value within each of some slots."""
        # only changes within: slots are added for as long as the run goes on
        times_s, now_s = [], first * self.slot_s
        while now_s < last * self.slot_s:
            times_s.append(now_s)
            now_s = series.next_change(now_s)
        times, values = np.array(times_s), np.array([series.at(time_s) for time_s in times_s])
        begins: Array = np.arange(first, last, dtype=np.float64) * self.slot_s
        least: Array = values[np.maximum(np.searchsorted(times, begins, "right") - 1, 0)]
        within = np.floor(times / self.slot_s).astype(int) - first
        inside = (within >= 0) & (within < last - first)
        np.minimum.at(least, within[inside], values[inside])
        return least


@dataclass(frozen=True)
class Placement:
    """The execution of the rest of a job, with the window and the inputs by which it is placed again."""

    execution: Execution
    window: StartWindow
    inputs: PolicyInputs

    @property
    def due_s(self) -> float:
        """Latest end in s: its deadline, or its planned end if it is late."""
        return max(self.window.deadline_s(self.execution.job), self.execution.end_s)


class SharedCluster:
    """A cluster on which a policy places jobs in the order of their arrival; a job stays until it is placed again.

    1. The choice of the policy for the job as if it were alone is taken if it fits. A job that cannot meet its deadline
       in the steps of the policy starts at once.
    2. Else a policy that finds an optimum finds it among what is free: `phase-aware` in the slots that have room for
       the job at its greatest power (if that takes it from machine to machine, on the machines with the most room),
       `oracle` among the starts at whole slots after the arrival.
    3. Else the choice is delayed, as a whole, by the fewest slots with which it fits: it may be late then. Where 2 has
       found nothing that is one uninterrupted run from the arrival on.
    """

    def __init__(self, integral: Timeline, calendar: ReservationCalendar, policy: ShiftPolicy) -> None:
        self.integral, self.calendar, self.policy = integral, calendar, policy

    def place(self, job: ShiftJob, window: StartWindow, inputs: PolicyInputs) -> Execution | None:
        """Place a job, which holds its cores from now on; return None if it never fits. Raises InputError."""
        calendar, policy = self.calendar, self.policy
        alone = self._alone(job, window, inputs)
        execution: Execution | None = alone
        if not calendar.fits(calendar.need(alone)):
            best = policy.exact or policy.choose is oracle
            execution = self._among_others(job, window, inputs) if best else None
            if execution is None:
                late = self._at_once(job, window, inputs) if best else alone
                slots = calendar.delay(calendar.need(late))
                execution = None if slots is None else _later(late, slots * calendar.slot_s)
        return None if execution is None else calendar.reserve(execution)

    def place_anew(self, placements: Sequence[Placement]) -> list[Execution]:
        """Place jobs again, in this order, by the signal as it is known now; return the executions from now on.

        All of them give back what they hold. The new executions are taken if they emit less in all and none ends after
        `due_s`. Else each alone is placed again among the others, and stays where it was unless the same holds of it.
        """
        executions = self._anew(placements)
        if executions is None and len(placements) > 1:
            executions = [(self._anew([one]) or [one.execution])[0] for one in placements]
        return executions or [one.execution for one in placements]

    def place_elsewhere(self, placement: Placement) -> Execution | None:
        """Place a job again whose machines are not there; return None, and hold its place, if there is no room."""
        self.calendar.give_back(placement.execution)
        execution = self.place(placement.execution.job, placement.window, placement.inputs)
        if execution is None:
            self.calendar.hold(placement.execution)
        return execution

    def _anew(self, placements: Sequence[Placement]) -> list[Execution] | None:
        """Return the jobs in new places if these are better, else None, and leave all as it was."""
        calendar = self.calendar
        for one in placements:
            calendar.give_back(one.execution)
        executions = [self.place(one.execution.job, one.window, one.inputs) for one in placements]
        placed = [execution for execution in executions if execution is not None]
        if len(placed) == len(placements) and self._better(placed, placements):
            return placed
        for execution in placed:
            calendar.give_back(execution)
        for one in placements:
            calendar.hold(one.execution)
        return None

    def _better(self, placed: Sequence[Execution], placements: Sequence[Placement]) -> bool:
        if any(new.end_s > one.due_s + PRECISION_S for new, one in zip(placed, placements, strict=True)):
            return False
        after, before = (
            math.fsum(execution.emitted(self.integral) for execution in executions)
            for executions in (placed, [one.execution for one in placements])
        )
        # what is saved by rounding alone is not saved
        return after < before - NOISE * abs(before)

    def _alone(self, job: ShiftJob, window: StartWindow, inputs: PolicyInputs) -> Execution:
        try:
            intervals = self.policy.choose(job, window, self.integral, inputs)
        except NoPlanError:
            return self._at_once(job, window, inputs)
        return carry_out(job, intervals, checkpoints=self.policy.checkpoints, apart=self.policy.exact)

    def _at_once(self, job: ShiftJob, window: StartWindow, inputs: PolicyInputs) -> Execution:
        return carry_out(job, immediate(job, window, self.integral, inputs))

    def _among_others(self, job: ShiftJob, window: StartWindow, inputs: PolicyInputs) -> Execution | None:
        slot_s = self.calendar.slot_s
        if self.policy.exact:
            return self._optimum(job, window)
        whole = self._at_once(job, window, inputs)
        good = self.calendar.fitting(self.calendar.need(whole), math.floor(window.wait_s / slot_s + PRECISION_S))
        if not good.any():
            return None
        delays_s: Array = np.flatnonzero(good).astype(np.float64) * slot_s
        carbon = self.integral.of_steps(window.arrival_s + delays_s, job.model.steps)
        return _later(whole, float(delays_s[first_least(carbon)]))

    def _optimum(self, job: ShiftJob, window: StartWindow) -> Execution | None:
        for blocked in self._blocked(job, window):
            try:
                planned = plan(
                    job.model,
                    self.integral,
                    window.arrival_s,
                    window.deadline_s(job),
                    slot_s=self.calendar.slot_s,
                    checkpoints=self.policy.checkpoints,
                    blocked=blocked,
                )
            except NoPlanError:
                return None
            execution = Execution(job, planned.segments)
            # a run from slot to slot may be one from machine to machine
            if not self.calendar.apart or self.calendar.fits(self.calendar.need(execution)):
                return execution
        return None

    def _blocked(self, job: ShiftJob, window: StartWindow) -> Iterator[npt.NDArray[np.bool_]]:
        """Yield the own slots of a job, from its arrival on, without room: on any machine, then on the roomiest."""
        calendar, slot_s = self.calendar, self.calendar.slot_s
        count = math.floor((window.deadline_s(job) - window.arrival_s) / slot_s + PRECISION_S)
        first = math.floor(window.arrival_s / slot_s + PRECISION_S)
        aligned = window.arrival_s / slot_s - first < PRECISION_S
        most_w = max(phase.power_w for phase in (*job.model.startup, *job.model.work))
        for rows in (None, calendar.roomiest(first, count + 1, job.cpus)):
            full = calendar.full(first, count + 1, job.cpus, most_w * job.cpus, rows)
            yield full[:-1] if aligned else full[:-1] | full[1:]


def _later(execution: Execution, delay_s: float) -> Execution:
    segments = (replace(segment, begin_s=segment.begin_s + delay_s) for segment in execution.segments)
    return replace(execution, segments=tuple(segments))
