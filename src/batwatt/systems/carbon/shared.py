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
from batwatt.systems.carbon.policies import Known, ShiftPolicy, immediate, oracle
from batwatt.systems.carbon.reservation_calendar import ReservationCalendar
from batwatt.systems.carbon.starts import NOISE, first_least
from batwatt.systems.carbon.windows import StartWindow
from batwatt.units import PRECISION_S


@dataclass(frozen=True)
class Placement:
    """The place of what is left of a job, with the window and the knowledge by which it is placed anew."""

    execution: Execution
    window: StartWindow
    known: Known

    @property
    def due_s(self) -> float:
        """When it may end at the latest: its deadline, or as it was planned if it is late."""
        return max(self.window.deadline_s(self.execution.job), self.execution.end_s)


class SharedCluster:
    """Places jobs by a policy, in the order of their arrival; what was placed stays until it is placed anew.

    1. What the policy chooses for the job as if it were alone is taken if it fits.
    2. Else a policy that finds an optimum finds it among what is free: `phase-aware` in the slots that have room for
       the job at its greatest power (if that takes it from machine to machine, on the machines with the most room),
       `oracle` among the starts at whole slots after the arrival.
    3. Else the choice is delayed, as a whole, by the fewest slots with which it fits: it may be late then. Where 2 has
       found nothing that is one uninterrupted run from the arrival on.
    """

    def __init__(self, integral: SignalIntegral, calendar: ReservationCalendar, policy: ShiftPolicy) -> None:
        self.integral, self.calendar, self.policy = integral, calendar, policy

    def place(self, job: ShiftJob, window: StartWindow, known: Known) -> Execution | None:
        """When the job runs, which is held from now on; None if it never fits. Raises InputError."""
        calendar, policy = self.calendar, self.policy
        intervals = policy.choose(job, window, self.integral, known)
        alone = carry_out(job, intervals, checkpoints=policy.checkpoints, apart=policy.exact)
        found: Execution | None = alone
        if not calendar.fits(calendar.need(alone)):
            best = policy.exact or policy.choose is oracle
            found = self._among_others(job, window, known) if best else None
            if found is None:
                late = self._at_once(job, window, known) if best else alone
                slots = calendar.delay(calendar.need(late))
                found = None if slots is None else _later(late, slots * calendar.slot_s)
        return None if found is None else calendar.take(found)

    def place_anew(self, placements: Sequence[Placement]) -> list[Execution]:
        """Place jobs anew, in this order, by the signal as it is known now; returns what holds from now on.

        All of them give back what they hold. What comes of it is taken if it emits less in all and nobody ends after
        `due_s`. Else each alone is placed anew among the others, and stays where it was unless the same holds of it.
        """
        found = self._anew(placements)
        if found is None and len(placements) > 1:
            found = [(self._anew([one]) or [one.execution])[0] for one in placements]
        return found or [one.execution for one in placements]

    def place_elsewhere(self, placement: Placement) -> Execution | None:
        """Place a job anew whose machines are not there; None, and its place is held, if there is no room."""
        self.calendar.give_back(placement.execution)
        execution = self.place(placement.execution.job, placement.window, placement.known)
        if execution is None:
            self.calendar.hold(placement.execution)
        return execution

    def _anew(self, placements: Sequence[Placement]) -> list[Execution] | None:
        """The jobs in new places if these are better, else None, and all is as it was."""
        calendar = self.calendar
        for one in placements:
            calendar.give_back(one.execution)
        found = [self.place(one.execution.job, one.window, one.known) for one in placements]
        placed = [execution for execution in found if execution is not None]
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

    def _at_once(self, job: ShiftJob, window: StartWindow, known: Known) -> Execution:
        return carry_out(job, immediate(job, window, self.integral, known))

    def _among_others(self, job: ShiftJob, window: StartWindow, known: Known) -> Execution | None:
        slot_s = self.calendar.slot_s
        if self.policy.exact:
            return self._optimum(job, window, known)
        whole = self._at_once(job, window, known)
        good = self.calendar.fitting(self.calendar.need(whole), math.floor(window.wait_s / slot_s + PRECISION_S))
        if not good.any():
            return None
        delays_s: Array = np.flatnonzero(good).astype(np.float64) * slot_s
        carbon = self.integral.of_steps(window.arrival_s + delays_s, job.model.steps)
        return _later(whole, float(delays_s[first_least(carbon)]))

    def _optimum(self, job: ShiftJob, window: StartWindow, known: Known) -> Execution | None:
        for blocked in self._blocked(job, window):
            try:
                planned = plan(
                    job.model,
                    self.integral,
                    window.arrival_s,
                    window.deadline_s(job),
                    slot_s=self.calendar.slot_s,
                    max_starts=known.max_starts,
                    checkpoints=self.policy.checkpoints,
                    blocked=blocked,
                )
            except NoPlanError:
                return None
            found = Execution(job, planned.segments)
            # a run from slot to slot may be one from machine to machine
            if not self.calendar.apart or self.calendar.fits(self.calendar.need(found)):
                return found
        return None

    def _blocked(self, job: ShiftJob, window: StartWindow) -> Iterator[npt.NDArray[np.bool_]]:
        """The own slots of a job, from its arrival on, without room for it: on any machine, then on the roomiest."""
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
