"""What stands for Batsim towards the parts that decide what becomes of victims, in a run without an engine."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from batwatt.model.workload import NO_WALLTIME, REMAINDER, Workload
from batwatt.model.workload import Job as WorkloadJob
from batwatt.scheduling.base import Job
from batwatt.scheduling.job_lengths import JobLengths
from batwatt.scheduling.victims import Resubmit, Victims
from batwatt.systems.riskaware import nominal_tables_kernel as at
from batwatt.systems.riskaware.scheduler import MachineScheduler


class Seam:
    """The part of pybatsim's `bs` that life cycles and victims use; `metadata` by the id of a run."""

    ack_of_dynamic_jobs = False

    def __init__(self, workload: Workload) -> None:
        self.profiles: dict[str, dict[str, Mapping[str, Any]]] = {workload.name: dict(workload.raw_profiles)}
        self.metadata: dict[str, str] = {}
        self.now_s = 0.0

    def time(self) -> float:
        """Time of the message, s."""
        return self.now_s

    def job_of(self, job: WorkloadJob) -> Job:
        """A job of the workload as pybatsim describes it."""
        return self._job(job.id, job.raw["subtime"], job.raw.get("walltime", -1), job.hosts, job.profile, job.raw)

    def register_job(self, id: str, res: int, walltime: float, profile_name: str) -> Job:
        """The next run of a job."""
        return self._job(id, self.now_s, walltime, res, profile_name, {})

    def _job(self, id: str, submit_s: float, walltime_s: float, hosts: int, profile: str, raw: Any) -> Job:
        job = Job(id, submit_s, walltime_s, hosts, profile, raw)
        job.profile_dict = self.profiles[id.partition("!")[0]][profile]
        return job

    def register_profiles(self, workload_name: str, profiles: Mapping[str, Mapping[str, Any]]) -> None:
        """More profiles of a workload."""
        self.profiles[workload_name].update(profiles)

    def set_job_metadata(self, job_id: str, metadata: str) -> None:
        """Metadata of a run."""
        self.metadata[job_id] = metadata


class NextRuns:
    """What becomes of the runs that are killed. `places`: of the planner's jobs in the workload, `early`: of those that
    had run before they were submitted; `length_s`: of all.
    """

    def __init__(
        self,
        scheduler: MachineScheduler,
        seam: Seam,
        lengths: JobLengths,
        workload: Workload,
        places: Sequence[int],
        early: Mapping[int, float],
    ) -> None:
        self._scheduler, self._seam, self._lengths, self._workload = scheduler, seam, lengths, workload
        self._places, self._early = places, early
        scheduler.lifecycle.bs = seam
        self._victims = Victims(scheduler.victim, scheduler.lifecycle, lengths)
        self._now: dict[int, Job] = {}
        self._runs: dict[str, Job] = {}
        # each next run is the whole job, as the tables have it from the beginning
        self._whole = type(scheduler.victim) is Resubmit

    def decide(self, decisions: Iterable[int], tables: at.Nominal) -> None:
        """Let the kernel know how long the next runs of those take that are killed now. Raises InputError."""
        for number in () if self._whole else decisions:
            if number >= 0:
                continue
            place = self._places[-1 - number]
            if tables.jobs[at.J_HAS, place] and not tables.jobs[at.J_DYING, place]:
                start_s = float(tables.times[at.T_SEEN, tables.jobs[at.J_RUN, place]])
                tables.again_s[place] = self._kill(place, self._seam.now_s - start_s)
                if place in self._now and (walltime_s := self._now[place].requested_time) > 0.0:
                    tables.walltime_s[place] = walltime_s

    def _kill(self, place: int, ran_s: float) -> float:
        """The length in s of the next run of a job, NaN if there is none."""
        job = self._now.get(place) or self._seam.job_of(self._workload.jobs[place])
        self._victims.killed(job, ran_s, ran_s)
        following = self._victims.next_of(job)
        if following is None:
            return math.nan
        again = self._now[place] = self._victims.again(job, following)
        self._runs[again.id] = again
        if place in self._early and self._scheduler.settings.as_published and not following.saved_s:
            self._seam.set_job_metadata(again.id, REMAINDER)
        return following.run_s

    def named(self, place: int, attempt: int) -> tuple[str, str, str, float]:
        """Id, profile, metadata and walltime in s of a run of a job."""
        job = self._workload.jobs[place]
        walltime_s = NO_WALLTIME if job.walltime_s is None else job.walltime_s
        if not attempt:
            return job.id, job.profile, self._seam.metadata.get(job.id, ""), walltime_s
        id = f"{job.id}#{attempt}"
        if not self._whole:
            profile, walltime_s = self._runs[id].profile, self._runs[id].requested_time
        elif place in self._early:
            profile = self._lengths.lasting(self._seam.job_of(job), self._early[place])
            if self._scheduler.settings.as_published:
                self._seam.set_job_metadata(id, REMAINDER)
        else:
            profile = job.profile
        return id, profile, self._seam.metadata.get(id, ""), walltime_s
