"""Jobs between Batsim and any scheduler: the rules that all schedulers share.

1. Attempts: the runs of job `w0!3` after its first one are registered as `w0!3#1`, `w0!3#2`, ...; no id of a workload
   ends so.
2. Acknowledgements: Batsim may submit such a job to the scheduler that registered it; that is no arrival.
3. Kills: the end of a run that was killed comes later, and it may have ended by itself before.
4. Wake-ups: a time is requested once, and only while it is to come. Those that only look at limits of transitions
   decide nothing unless a host is past its limit.
5. End of registration: reported once, when no job is to come and none is left.
6. Jobs that can never run are rejected, and reported by cause at the end: how many, and the first.
7. Stall: a limit that repeats would kill some jobs for ever. If in a whole period no job arrives, ends by itself or
   saves work, and no host comes, goes or fails, one job is rejected, the largest of those that wait and were killed
   three times since then, while nothing runs; or while others run, after three such periods. If nothing runs, and none
   was killed or three such periods have passed, the widest that wait are rejected. Then the next period counts.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable
from dataclasses import replace
from logging import Logger
from typing import Any, Final

from batwatt.errors import InputError
from batwatt.model.attempt import ATTEMPT, CHECKPOINT, RECOVERY, WINDOW_OVER, Attempt
from batwatt.model.hostset import HostSet
from batwatt.model.timeline import Timeline
from batwatt.model.workload import ESTIMATE
from batwatt.scheduling.job import BatsimJob, Job
from batwatt.units import HOUR_S, LAG_S, REPORTED_S

_MANY: Final = 1000
"""Number of wake-ups from which past ones are forgotten."""
_KILLS: Final = 3
"""Kills of a job since the last progress, and periods in vain while others run, before it is rejected."""


class JobLifecycle:
    """The jobs of a simulation between Batsim and a scheduler.

    `jobs`: the jobs by the id of the present run; `more_jobs`: the workload is not over; `live`: number of jobs
    that are neither over nor rejected, by the scheduler; `pending`: kills whose ends are to come; `has_events`: the
    present message reports more than calls; `called`: number of calls that it reports; `ran`: number of jobs of the
    workload whose first run is over; `requests`: number of those that request a run time; `attempts`: by id, the runs
    that were submitted again or described.
    """

    def __init__(self) -> None:
        self.more_jobs = True
        self.live = self.pending = self.called = self.ran = self.requests = 0
        self.has_events = False
        self.jobs: dict[str, Job] = {}
        self._calls: set[float] = set()
        self._limit_calls: set[float] = set()
        self._closed = False
        self.attempts: dict[str, Attempt] = {}
        self._counts: dict[str, int] = {}
        self._unrunnable: dict[str, list[str]] = {}
        self._progress_s = 0.0
        self.kills: Counter[str] = Counter()
        """Kills of each job since the last progress."""

    def begin(self, bs: Any, needs_dynamic_jobs: bool) -> None:
        """Begin a simulation. Raises InputError if jobs cannot be submitted again though they must be."""
        self.bs = bs
        if not needs_dynamic_jobs:
            return
        if not bs.dynamic_job_registration_enabled:
            problem = "jobs are submitted again, for which Batsim needs --enable-dynamic-jobs"
            raise InputError("Batsim", problem, "start it so, with --enable-profile-reuse")
        if not bs.batconf.get("profile-reuse-enabled", True):
            raise InputError("Batsim", "jobs that are killed need their profiles again", "add --enable-profile-reuse")

    @property
    def finished(self) -> bool:
        """True if no job is left or to come."""
        return not (self.more_jobs or self.live)

    # attempts ---------------------------------------------------------------------------------------------------

    def name_of(self, job: BatsimJob) -> str:
        """Return the id of a job when it was submitted first."""
        attempt = self.attempts.get(job.id)
        return job.id if attempt is None else attempt.job

    def next_id(self, old: BatsimJob) -> str:
        """Return the id that the next run of a job will have."""
        name = self.name_of(old)
        return f"{name}#{self._counts.get(name, 0) + 1}"

    def attempt(self, old: BatsimJob, profile: str | None = None, walltime_s: float | None = None) -> BatsimJob:
        """Register the next run of a job, by default with the profile and the walltime of its last one."""
        name, new_id = self.name_of(old), self.next_id(old)
        self._counts[name] = number = self._counts.get(name, 0) + 1
        walltime_s = old.requested_time if walltime_s is None else walltime_s
        job = self.bs.register_job(new_id, old.requested_resources, walltime_s, profile or old.profile)
        self.attempts[job.id] = Attempt(job.id, name, number)
        return job

    def describe(self, job: BatsimJob, kind: str = "", overhead_s: float = 0.0, cause: str = "") -> None:
        """State the kind of a run, its time in s without useful work and the cause of its rejection, to Batsim too."""
        attempt = self.attempts.get(job.id) or Attempt(job.id, job.id)
        self.attempts[job.id] = attempt = replace(attempt, kind=kind, overhead_s=overhead_s, cause=cause)
        self.bs.set_job_metadata(job.id, attempt.text)

    def _again(self, job: BatsimJob) -> bool:
        """Return whether a run is not the first one of its job."""
        attempt = self.attempts.get(job.id)
        return attempt is not None and attempt.number > 0

    def _overhead(self, job: BatsimJob) -> bool:
        """Return whether a run is a checkpoint or a recovery."""
        attempt = self.attempts.get(job.id)
        return attempt is not None and attempt.kind in (CHECKPOINT, RECOVERY)

    def acknowledged(self, job: BatsimJob) -> bool:
        """Return whether a submission is but the acknowledgement of an attempt, which may run by then."""
        self.has_events = True
        again = self._again(job)
        if not again:
            self.progress()
        return again

    @staticmethod
    def check_id(job: BatsimJob) -> None:
        """Raise InputError if a job of the workload is called like an attempt."""
        if ATTEMPT.search(job.id):
            problem = f"the id {job.id!r} ends like those of jobs that are submitted again"
            raise InputError("workload", problem, "let no id end in # and a number")

    def execute(self, job: Job, mask: int) -> None:
        """Start the present attempt of a job on the hosts of a mask."""
        job.mask = mask
        job.attempt.allocation = HostSet(mask)
        self.bs.execute_job(job.attempt)

    # ends -------------------------------------------------------------------------------------------------------

    def kill(self, jobs: Iterable[Job]) -> None:
        """Kill runs, but for those that are being killed."""
        running = [job for job in jobs if not job.dying]
        for job in running:
            job.dying = True
        self.pending += len(running)
        if running:
            self.bs.kill_jobs([job.attempt for job in running])

    def ended(self, attempt: BatsimJob) -> tuple[Job, bool]:
        """Forget a run that has ended; return its job, and whether the scheduler killed it."""
        self.has_events = True
        job = self.jobs.pop(attempt.id)
        if not self._again(attempt):
            self.ran += 1
            self.requests += (attempt.requested_time or 0) > 0 or ESTIMATE in (attempt.json_dict or {})
        killed = job.dying and attempt.job_state is BatsimJob.State.COMPLETED_KILLED
        if killed:
            self.kills[job.name] += 1
        elif not self._overhead(attempt):
            self.progress()
        if job.dying:
            self.pending -= 1
            job.dying = False
        else:
            # it is not needed again, and a long simulation has many; a kill is reported once more
            del self.bs.jobs[attempt.id]
        return job, killed

    def killed(self, jobs: Iterable[BatsimJob]) -> None:
        """Forget killed runs, whose ends were reported before."""
        for job in jobs:
            if job.id not in self.jobs:
                self.bs.jobs.pop(job.id, None)

    # stall ------------------------------------------------------------------------------------------------------

    def progress(self) -> None:
        """Note that a job arrived, ended by itself or saved work, or that a host came, went or failed."""
        self._progress_s = self.bs.time()
        self.kills.clear()

    def in_vain(self, limit: Timeline, switching_s: float, periods: int = 1) -> bool:
        """Return whether some whole periods of a limit have passed without progress and without a job to come.

        `switching_s` is the time in s in which hosts switch, beyond which a period counts.
        """
        if not limit.repeats or self.more_jobs or self.pending:
            return False
        return self.bs.time() - self._progress_s >= periods * limit.period_s + switching_s

    def stalled(self, limit: Timeline, waiting: Iterable[Job], switching_s: float) -> list[Job]:
        """Return the waiting jobs to reject, as whole periods of a limit have passed in vain."""
        if not self.in_vain(limit, switching_s):
            return []
        jobs = list(waiting)
        idle = {job.number for job in jobs}
        starts_s = [job.start_s for job in self.jobs.values() if job.mask and job.number not in idle]
        often = self.in_vain(limit, switching_s, _KILLS)
        if starts_s and not often:
            return []
        if any(start_s <= self.bs.time() - limit.period_s for start_s in starts_s):
            # it may end, and leave its hosts to others
            return []
        hopeless = [job for job in jobs if self.kills[job.name] >= _KILLS]
        if hopeless:
            # what is left has the best chance without it
            hopeless = [max(hopeless, key=lambda job: (job.hosts, job.number))]
        elif jobs and not starts_s and (often or not self.kills):
            widest = max(job.hosts for job in jobs)
            hopeless = [job for job in jobs if job.hosts == widest]
        if hopeless:
            self._progress_s = self.bs.time()
        return hopeless

    # times ------------------------------------------------------------------------------------------------------

    def wake_at(self, time_s: float, now_s: float) -> None:
        """Request a wake-up at a time, unless it is over or has been requested."""
        if now_s < time_s < math.inf and time_s not in self._calls:
            if len(self._calls) >= _MANY:
                self._calls = {call_s for call_s in self._calls if call_s > now_s}
            self._calls.add(time_s)
            if time_s in self._limit_calls:
                self._limit_calls.discard(time_s)
            else:
                self.bs.wake_me_up_at(time_s)

    def wake_for_limit(self, time_s: float, now_s: float) -> None:
        """Request a wake-up at the limit of a transition, while jobs are left or to come."""
        if not now_s < time_s < math.inf or time_s in self._calls or time_s in self._limit_calls or self.finished:
            return
        self._limit_calls.add(time_s)
        self.bs.wake_me_up_at(time_s)

    def only_limits(self, now_s: float) -> bool:
        """Return whether the present message reports only calls for limits; call it once for each message."""
        has_events, called = self.has_events, self.called
        self.has_events, self.called = False, 0
        if not self._limit_calls:
            return False
        due = {time_s for time_s in self._limit_calls if time_s <= now_s + REPORTED_S}
        self._limit_calls -= due
        if has_events or not 0 < called == len(due):
            return False
        # there may be a thousand calls, which a list goes through in two thirds of the time of a generator
        return not [time_s for time_s in self._calls if abs(time_s - now_s) <= LAG_S]

    def close(self, finished: bool) -> None:
        """Report the end of registration if all work is over."""
        if finished and not self._closed:
            self._closed = True
            self.bs.notify_registration_finished()

    # rejections -------------------------------------------------------------------------------------------------

    def reject(self, jobs: Iterable[BatsimJob], why: str) -> None:
        """Reject jobs that can never run; `why` completes "3 jobs can never run, ..." and is their cause."""
        refused = list(jobs)
        if refused:
            names = [self.name_of(job) for job in refused]
            if why.startswith("needs "):
                # each has its own need and length
                self.note_unrunnable([f"{name} {why}" for name in names], "longer than the limit gives what they need")
            else:
                self.note_unrunnable(names, why)
            self.refuse(refused, why)

    def refuse(self, jobs: Iterable[BatsimJob], why: str) -> None:
        """Reject jobs with the cause `why`; checkpoints and recoveries are described already."""
        refused = list(jobs)
        for job in refused:
            if not self._overhead(job):
                self.describe(job, cause=why)
        self.bs.reject_jobs(refused)

    @staticmethod
    def too_long(limit: Timeline, need: float, unit: str, run_s: float) -> str:
        """Return why a job whose work is lost if it is killed can never run under a limit; empty if it may."""
        longest_s = limit.longest_s(need) if limit.repeats else math.inf
        if run_s <= longest_s + LAG_S:
            return ""
        need_text = f"needs {need:.6g} {unit}" if need != 1.0 else f"needs 1 {unit.removesuffix('s')}"
        return f"{need_text} for {run_s / HOUR_S:.4g} h; the limit gives that for at most {longest_s / HOUR_S:.4g} h"

    def note_unrunnable(self, names: Iterable[str], why: str) -> None:
        """Note jobs that can never run, and the reason, for `report`."""
        self._unrunnable.setdefault(why, []).extend(names)

    def give_up(self, jobs: Iterable[BatsimJob]) -> None:
        """Reject jobs that wait when the window is over."""
        waiting = list(jobs)
        for job in waiting:
            self.describe(job, cause=WINDOW_OVER)
        if waiting:
            self.bs.reject_jobs(waiting)

    def report(self, logger: Logger) -> None:
        """Warn of the jobs that could never run."""
        for why, names in self._unrunnable.items():
            if not names:
                continue
            jobs = "1 job" if len(names) == 1 else f"{len(names)} jobs"
            logger.warning("%s can never run, %s: rejected (first: %s)", jobs, why, names[0])
