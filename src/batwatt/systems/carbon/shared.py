"""Jobs that are shifted on one finite cluster: each is planned when it arrives, around those planned before it.

Neither GAIA nor the thesis has this. docs/explanation/carbon-engine.md has the rules.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from batwatt.model.phases import Array
from batwatt.model.signal_integral import SignalIntegral
from batwatt.systems.carbon.execution import Execution, ShiftJob, carry_out
from batwatt.systems.carbon.optimum import NoPlanError, plan
from batwatt.systems.carbon.policies import Facts, ShiftPolicy, immediate, oracle
from batwatt.systems.carbon.reservation_calendar import ReservationCalendar
from batwatt.systems.carbon.starts import NOISE, first_least
from batwatt.systems.carbon.windows import StartWindow
from batwatt.units import PRECISION_S


@dataclass(frozen=True)
class Placement:
    """The execution of the rest of a job, with the window and the facts by which it is placed again."""

    execution: Execution
    window: StartWindow
    facts: Facts

    @property
    def due_s(self) -> float:
        """Latest end in s: its deadline, or its planned end if it is late."""
        return max(self.window.deadline_s(self.execution.job), self.execution.end_s)


class SharedCluster:
    """A cluster on which a policy places jobs in the order of their arrival; a job stays until it is placed again.

    1. The choice of the policy for the job as if it were alone is taken if it fits.
    2. Else a policy that finds an optimum finds it among what is free: `phase-aware` in the slots that have room for
       the job at its greatest power (if that takes it from machine to machine, on the machines with the most room),
       `oracle` among the starts at whole slots after the arrival.
    3. Else the choice is delayed, as a whole, by the fewest slots with which it fits: it may be late then. Where 2 has
       found nothing that is one uninterrupted run from the arrival on.
    """

    def __init__(self, integral: SignalIntegral, calendar: ReservationCalendar, policy: ShiftPolicy) -> None:
        self.integral, self.calendar, self.policy = integral, calendar, policy

    def place(self, job: ShiftJob, window: StartWindow, facts: Facts) -> Execution | None:
        """Place a job, which holds its cores from now on; return None if it never fits. Raises InputError."""
        calendar, policy = self.calendar, self.policy
        intervals = policy.choose(job, window, self.integral, facts)
        alone = carry_out(job, intervals, checkpoints=policy.checkpoints, apart=policy.exact)
        execution: Execution | None = alone
        if not calendar.fits(calendar.need(alone)):
            best = policy.exact or policy.choose is oracle
            execution = self._among_others(job, window, facts) if best else None
            if execution is None:
                late = self._at_once(job, window, facts) if best else alone
                slots = calendar.delay(calendar.need(late))
                execution = None if slots is None else _later(late, slots * calendar.slot_s)
        return None if execution is None else calendar.take(execution)

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
        execution = self.place(placement.execution.job, placement.window, placement.facts)
        if execution is None:
            self.calendar.hold(placement.execution)
        return execution

    def _anew(self, placements: Sequence[Placement]) -> list[Execution] | None:
        """Return the jobs in new places if these are better, else None, and leave all as it was."""
        calendar = self.calendar
        for one in placements:
            calendar.give_back(one.execution)
        executions = [self.place(one.execution.job, one.window, one.facts) for one in placements]
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

    def _at_once(self, job: ShiftJob, window: StartWindow, facts: Facts) -> Execution:
        return carry_out(job, immediate(job, window, self.integral, facts))

    def _among_others(self, job: ShiftJob, window: StartWindow, facts: Facts) -> Execution | None:
        slot_s = self.calendar.slot_s
        if self.policy.exact:
            return self._optimum(job, window)
        whole = self._at_once(job, window, facts)
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
