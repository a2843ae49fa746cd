"""The profiles of jobs, and the profiles and jobs that a scheduler registers while the simulation runs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from mypy_extensions import mypyc_attr

from batwatt.engine.config import EngineConfig
from batwatt.engine.events import Decision, RegisterJob, RegisterProfile
from batwatt.errors import IllegalDecisionError, InputError
from batwatt.model.workload import Composed, Job, Parallel, Profile, Workload
from batwatt.protocol.workload4 import parse_job, parse_profile


@mypyc_attr(allow_interpreted_subclasses=True)
class Catalogue:
    """Profiles by workload and name, `profiles[workload][name]`; `open` while the scheduler may register jobs.

    Without profile reuse, Batsim drops the profile of any job that ends (with its parts), also if other jobs have it;
    its name stays taken. The drop takes effect after the first event of the answer to the message that reported the
    end: `collect` schedules it, `settle` performs it.
    """

    def __init__(self, workloads: Sequence[Workload], config: EngineConfig) -> None:
        self.profiles: dict[str, dict[str, Profile]] = {load.name: dict(load.profiles) for load in workloads}
        self._of_files = [load.name for load in workloads]
        self.open = config.dynamic_jobs
        self._dynamic = config.dynamic_jobs
        self._collects = config.dynamic_jobs and not config.profile_reuse
        self._raw: dict[str, dict[str, Mapping[str, Any]]] = {load.name: dict(load.raw_profiles) for load in workloads}
        self._leaving: set[tuple[str, str]] = set()
        self._gone: set[tuple[str, str]] = set()

    def raw(self, job: Job) -> Mapping[str, Any]:
        """Return the JSON of a job's profile."""
        return self._raw[job.workload][job.profile]

    def payload(self) -> dict[str, dict[str, Mapping[str, Any]]]:
        """Return the `profiles` of SIMULATION_BEGINS."""
        return {name: dict(raws) for name, raws in self._raw.items()}

    def collect(self, job: Job) -> None:
        """Schedule the drop of the profile of a job that has ended."""
        if not self._collects:
            return
        todo = [job.profile]
        while todo:
            key = (job.workload, todo.pop())
            if key not in self._leaving:
                self._leaving.add(key)
                profile = self.profiles[key[0]][key[1]]
                if isinstance(profile, Composed):
                    todo.extend(profile.sequence)

    def settle(self) -> None:
        """Drop the scheduled profiles."""
        if self._leaving:
            self._gone |= self._leaving

    def notify(self, kind: object) -> None:
        """Apply a NOTIFY: finish the registration, or open it again. Raises IllegalDecisionError."""
        what = f"NOTIFY {kind}"
        if kind not in ("registration_finished", "continue_registration"):
            raise IllegalDecisionError(what, "a scheduler can tell registration_finished or continue_registration")
        self._need_dynamic(what)
        self.open = kind == "continue_registration"

    def register_profile(self, decision: RegisterProfile) -> None:
        """Apply a REGISTER_PROFILE. Raises IllegalDecisionError where Batsim aborts."""
        name, workload, raw = decision.name, decision.workload, decision.profile
        what = f"REGISTER_PROFILE {workload}!{name}"
        self._need_dynamic(what)
        profiles = self.profiles.setdefault(workload, {})
        if name in profiles:
            raise IllegalDecisionError(what, "a profile of that name exists")
        profile = _parsed(what, parse_profile, raw, what)
        if isinstance(profile, Composed):
            raise IllegalDecisionError(what, "Batsim cannot run a composed profile that was registered dynamically")
        profiles[name] = profile
        self._raw.setdefault(workload, {})[name] = raw

    def check_first(self, decision: Decision) -> None:
        """Raise IllegalDecisionError if the first decision registers a job of a file, which Batsim reads later."""
        if isinstance(decision, RegisterJob):
            job_id = decision.job_id
            if job_id.partition("!")[0] in self._of_files:
                problem = "as the very first decision it is submitted with the jobs of its workload's file once more"
                raise IllegalDecisionError(f"REGISTER_JOB {job_id}", f"{problem}, and Batsim never ends")

    def job_of(self, decision: RegisterJob, jobs: Mapping[str, Job]) -> Job:
        """Return the job of a REGISTER_JOB; `jobs` exist already. Raises IllegalDecisionError where Batsim aborts."""
        job_id, raw = decision.job_id, decision.job
        what = f"REGISTER_JOB {job_id}"
        self._need_dynamic(what)
        if "!" not in job_id:
            raise IllegalDecisionError(what, "a job id must be WORKLOAD!NAME")
        workload = job_id.split("!", 1)[0]
        job: Job = _parsed(what, parse_job, {**raw, "id": job_id}, workload, what)
        if job_id in jobs:
            raise IllegalDecisionError(what, "a job of that id exists")
        profile = self.profiles.get(workload, {}).get(job.profile)
        if profile is None or (workload, job.profile) in self._gone:
            raise IllegalDecisionError(what, f"its workload has no profile {job.profile!r}; register it first")
        if isinstance(profile, Parallel) and profile.flops is not None and len(profile.flops) != job.hosts:
            raise IllegalDecisionError(what, f"its profile is for {len(profile.flops)} hosts, not {job.hosts}")
        if not self.open:
            raise IllegalDecisionError(what, "registration was declared finished")
        return job

    def _need_dynamic(self, what: str) -> None:
        if not self._dynamic:
            raise IllegalDecisionError(what, "dynamic jobs are off (--enable-dynamic-jobs)")


def _parsed(what: str, parse: Callable[..., Any], *args: Any) -> Any:
    try:
        return parse(*args)
    except InputError as error:
        raise IllegalDecisionError(what, str(error).removeprefix(f"{what}: ")) from None
