"""Schedulers that follow a capacity in machines: what they share, however they decide.

How many machines are alive is a series that the scheduler follows step by step. Jobs that were killed for their machine
are submitted again, from zero, under another id; at a given time all that runs and waits may be given up.
"""

from __future__ import annotations

import math
import sys
from abc import abstractmethod
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, ClassVar

from pydantic import Field

from batwatt.checks import shown
from batwatt.errors import InputError
from batwatt.inputs.platforms.platform_gen import number_text
from batwatt.inputs.series.capacity import read_capacity
from batwatt.inputs.workloads.batsim_json import parse_profile
from batwatt.model.series import Series
from batwatt.model.workload import ATTEMPT, LENGTH, RELEASE, WINDOW_OVER, Delay
from batwatt.scheduling.base import Job, Scheduler
from batwatt.scheduling.options import SchedulerOptions
from batwatt.units import LAG_S


class MachineOptions(SchedulerOptions):
    """Options of every scheduler of machines that come and go."""

    capacity: str | Path | Series | None = Field(
        None, description="file of the capacity in machines: CSV with time_s,machines, or lines `count`, `time count`"
    )
    until_s: float | None = Field(
        None, ge=0.0, allow_inf_nan=False, description="time in s at which all that runs and waits is given up"
    )
    switch: bool = Field(True, description="switch machines off and on; else they only stand idle (needs energy)")


class VaryingOptions(MachineOptions):
    """Options of every scheduler that reacts to a capacity, and plans nothing."""

    machine_memory: float | None = Field(
        None, gt=0.0, allow_inf_nan=False, description="memory of a machine, in the jobs' unit; default: no limit"
    )


class CapacityScheduler(Scheduler):
    """Follows a capacity; subclasses say what happens at a step, and what still runs or waits."""

    Options: ClassVar[type[MachineOptions]] = MachineOptions

    def __init__(self, options: Mapping[str, Any] | None = None) -> None:
        super().__init__(options)
        given = self.settings.capacity
        if given is None:
            raise InputError("option 'capacity'", "the scheduler needs one", "give a file: batwatt run --capacity FILE")
        self.capacity: Series = given if isinstance(given, Series) else read_capacity(given, None)
        self._calls: set[float] = set()
        self._steps = list(_changes(self.capacity))
        self._next_step = 0
        self._asked = -1
        self._more_jobs = True
        self._stopped = False
        self._registration_over = False
        self._lengths: dict[tuple[str, str], float] = {}
        self._wholes: dict[tuple[str, float], str] = {}

    @property
    def needs_dynamic_jobs(self) -> bool:
        """Killed jobs are submitted again."""
        return True

    @abstractmethod
    def finished(self) -> bool:
        """Whether nothing runs, waits or is to come."""

    @abstractmethod
    def process_events(self, now_s: float) -> None:
        """Act on what this message told, and on the steps that are due."""

    @abstractmethod
    def apply(self) -> None:
        """Switch and start what can be."""

    @abstractmethod
    def stop(self) -> None:
        """The window is over: kill what runs, reject what waits."""

    @abstractmethod
    def unrunnable(self) -> tuple[list[Job], str]:
        """The jobs that will wait for ever, when there is neither a step nor a job to come, and why."""

    # what pybatsim calls ----------------------------------------------------------------------------------------

    def onSimulationBegins(self) -> None:
        """Check that killed jobs can be submitted again."""
        super().onSimulationBegins()
        if not self.bs.dynamic_job_registration_enabled:
            problem = "killed jobs are submitted again, for which Batsim needs --enable-dynamic-jobs"
            raise InputError("Batsim", problem, "start it so, with --enable-profile-reuse")
        if not self.bs.batconf.get("profile-reuse-enabled", True):
            raise InputError("Batsim", "jobs that are killed need their profiles again", "add --enable-profile-reuse")

    def onNoMoreJobsInWorkloads(self) -> None:
        """No job comes any more."""
        self._more_jobs = False

    def onNoMoreEvents(self) -> None:
        """Go on to this time."""
        if not self.bs.running_simulation:
            return
        now_s = self.bs.time()
        if not self._stopped:
            self.process_events(now_s)
            if self.settings.until_s is not None and now_s >= self.settings.until_s:
                self._stopped = True
                self.stop()
            else:
                self.apply()
                self._call(now_s)
        if not self._registration_over and self.finished():
            self._registration_over = True
            self.bs.notify_registration_finished()

    def onNotifyEventMachineUnavailable(self, machines: Any) -> None:
        """Refused."""
        raise InputError("--events", "a machine becomes unavailable", "the capacity says which machines are there")

    def onNotifyEventMachineAvailable(self, machines: Any) -> None:
        """Refused."""
        raise InputError("--events", "a machine becomes available", "the capacity says which machines are there")

    def onNotifyGenericEvent(self, event_data: Any) -> None:
        """Somebody else's."""

    # steps ------------------------------------------------------------------------------------------------------

    def _step_s(self) -> float:
        """The time of the next step, infinite if there is none."""
        return self._steps[self._next_step][0] if self._next_step < len(self._steps) else math.inf

    def _step(self) -> int:
        """Go past the next step; returns how many machines are alive from there on."""
        self._next_step += 1
        return int(self._steps[self._next_step - 1][1])

    def _call(self, now_s: float) -> None:
        """Ask to be woken at the next step and at the end, as long as there is something to wait for."""
        if (self._asked == self._next_step and self._step_s() < math.inf) or self.finished():
            return
        if self._step_s() == math.inf and not self._more_jobs and self.settings.until_s is None:
            waiting, why = self.unrunnable()
            if waiting:
                self.logger.warning("%d jobs can never run, %s: rejected (first: %s)", len(waiting), why, waiting[0].id)
                self.bs.reject_jobs(waiting)
                return
        end_s = self.settings.until_s
        for time_s in sorted({self._step_s(), math.inf if end_s is None else end_s} - self._calls):
            if now_s < time_s < math.inf:
                self._calls.add(time_s)
                self.bs.wake_me_up_at(time_s)
        self._asked = self._next_step

    # jobs -------------------------------------------------------------------------------------------------------

    def _check_id(self, job: Job) -> None:
        if ATTEMPT.search(job.id):
            problem = f"the id {job.id!r} ends like those of jobs that are submitted again"
            raise InputError("workload", problem, "let no id end in # and a number")

    def _run_s(self, job: Job) -> float:
        """How long a job runs, in s: the delay of its profile, else its walltime."""
        key = (job.id.partition("!")[0], job.profile)
        known = self._lengths.get(key)
        if known is not None:
            return known
        profile = parse_profile(job.profile_dict, f"profile {job.profile}") if job.profile_dict else None
        if isinstance(profile, Delay):
            self._lengths[key] = profile.duration_s
            return profile.duration_s
        if job.requested_time is not None and job.requested_time > 0:
            return float(job.requested_time)
        problem = f"job {job.id} has neither a delay nor a walltime"
        raise InputError("workload", problem, "plans need lengths: give it a walltime")

    def _described(self, job: Job) -> tuple[float, float, float]:
        """Release, whole length and what is left of it, in s."""
        run_s = self._run_s(job)
        raw = job.json_dict or {}
        if RELEASE not in raw and LENGTH not in raw:
            return float(job.submit_time), run_s, run_s
        release_s, length_s = raw.get(RELEASE, job.submit_time), raw.get(LENGTH, run_s)
        numbers = all(isinstance(value, int | float) and not isinstance(value, bool) for value in (release_s, length_s))
        if not (numbers and 0.0 <= release_s <= job.submit_time and run_s - LAG_S <= length_s < math.inf):
            problem = f"job {job.id}: {RELEASE} {release_s!r} and {LENGTH} {length_s!r} are no release and length"
            raise InputError("workload", problem, "a release is <= subtime, a length >= what is left of it, both in s")
        return float(release_s), float(length_s), run_s

    def _register(self, new_id: str, old: Job, length_s: float | None) -> Job:
        """Submit a job again, with its own profile or one that lasts `length_s`."""
        profile = old.profile if length_s is None else self._delay(old.id.partition("!")[0], length_s)
        return self.bs.register_job(new_id, old.requested_resources, old.requested_time, profile)

    def _delay(self, workload: str, length_s: float) -> str:
        """The name of a profile that lasts so long, registered if need be."""
        name = self._wholes.get((workload, length_s))
        if name is None:
            name, whole = f"d{number_text(length_s)}", {"type": "delay", "delay": length_s}
            known = self.bs.profiles[workload]
            while name in known and (known[name]["type"], known[name].get("delay")) != ("delay", length_s):
                name += "+"
            if name not in known:
                self.bs.register_profiles(workload, {name: whole})
            self._lengths[workload, name] = length_s
            self._wholes[workload, length_s] = name
        return name

    def _give_up(self, jobs: Iterable[Job]) -> None:
        """Reject jobs that wait when the window is over."""
        waiting = list(jobs)
        for job in waiting:
            self.bs.set_job_metadata(job.id, WINDOW_OVER)
        if waiting:
            self.bs.reject_jobs(waiting)


def _changes(series: Series) -> list[tuple[float, float]]:
    """The times in s at which the value changes, and the first, which counts from 0."""
    rows = list(zip((0.0, *series.times_s[1:]), series.values, strict=True))
    return [row for i, row in enumerate(rows) if i == 0 or row[1] != rows[i - 1][1]]


def number_in(raw: Mapping[str, Any], name: str, otherwise: float, job_id: str, *, zero: bool) -> float:
    """A number > 0, or `zero`, among the fields of a job; InputError otherwise."""
    value = raw.get(name)
    if value is None:
        return otherwise
    good = isinstance(value, int | float) and not isinstance(value, bool) and (value > 0.0 or (zero and value == 0))
    if not good or not value <= sys.float_info.max:
        bound = ">= 0" if zero else "> 0"
        raise InputError("workload", f"job {job_id}: {name} must be a number {bound}, got {shown(value)}", "correct it")
    return float(value)
