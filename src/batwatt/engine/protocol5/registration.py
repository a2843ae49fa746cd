"""The profiles of jobs by their full ids, and the times at which Batsim 5 removes them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from batwatt.engine.catalogue import Catalogue
from batwatt.engine.config import EngineConfig
from batwatt.engine.events import Decision, RegisterJob
from batwatt.engine.protocol5.events import Features, Register
from batwatt.errors import IllegalDecisionError, InputError
from batwatt.model.workload import Composed, Job, Parallel, Profile, Workload
from batwatt.protocol.workload5 import full_profile_id, job_of, parts_of, profile_of, table_of


class Registry(Catalogue):
    """Profiles that jobs use or can use: `by_id` has them by their full ids (`w0!delay`).

    Without profile reuse, the end of the first job of a profile makes it and its parts unknown to Batsim, also if other
    jobs have them (`_forgotten`): those jobs run, but no further job can be registered with them.
    """

    def __init__(self, workloads: Sequence[Workload]) -> None:
        super().__init__((), EngineConfig())
        self.by_id: dict[str, Profile] = {}
        self.tables: dict[str, Mapping[str, Any]] = {}
        self._workloads: set[str] = set()
        self._jobs: set[str] = set()
        self._forgotten: set[str] = set()
        self._features = Features()
        self._unused = False
        for load in workloads:
            self.by_id.update(load.profiles)
            self.tables.update(load.raw_profiles)
            self._workloads.add(load.name)
            for job in load.jobs:
                self._jobs.add(job.id)
            used = {part for name in {job.profile for job in load.jobs} for part in parts_of(name, load.profiles)}
            for name in load.raw_profiles.keys() - used:
                self._unused = True
                self._forgotten.add(name)
                self.by_id.pop(name, None)
                self.tables.pop(name, None)

    def ask(self, features: Features) -> None:
        """Apply the features of the scheduler's hello. Raises IllegalDecisionError where Batsim 5 crashes."""
        self._features = features
        self.open = features.dynamic_registration
        if features.forward_profiles_on_simulation_begins and self._unused:
            why = "Batsim crashes if a workload has a profile that none of its jobs uses"
            raise IllegalDecisionError("EDCHello forward_profiles_on_simulation_begins", why)

    def raw(self, job: Job) -> Mapping[str, Any]:
        """Return the profile of a job in the form of messages."""
        return self.tables[job.profile]

    def collect(self, job: Job) -> None:
        """Make the profile of a job that has ended unknown to Batsim."""
        if not self._features.profile_reuse:
            self._give_up(job.profile)

    def _give_up(self, name: str) -> None:
        """Make a profile unknown to Batsim, its parts first. Raises IllegalDecisionError where that aborts Batsim."""
        if name in self._forgotten:
            return
        profile = self.by_id[name]
        for part in profile.sequence if isinstance(profile, Composed) else ():
            if part.partition("!")[0] != name.partition("!")[0]:
                why = f"its part {part!r} is of another workload, which Batsim cannot forget; ask for profile_reuse"
                raise IllegalDecisionError(f"RegisterProfile {name}", why)
            self._give_up(part)
        self._forgotten.add(name)

    def settle(self) -> None:
        """Do nothing: Batsim 5 removes profiles at once."""

    def check_first(self, decision: Decision) -> None:
        """Do nothing: Batsim 5 has no rule for the first decision."""

    def register(self, decision: Register) -> None:
        """Apply a RegisterProfile. Raises IllegalDecisionError where Batsim 5 aborts."""
        name = decision.profile_id
        what = f"RegisterProfile {name}"
        if name in self.by_id or name in self._forgotten:
            raise IllegalDecisionError(what, "a profile of that id exists already")
        workload, mark, _ = name.partition("!")
        try:
            profile = profile_of(name, decision.kind, decision.table, 0, what)
        except InputError as error:
            raise IllegalDecisionError(what, str(error).removeprefix(f"{what}: ")) from None
        if isinstance(profile, Composed):
            for part in decision.table["profile_ids"]:
                self._check(what, part)
        if mark:
            self._workloads.add(workload)
        self.by_id[name] = profile
        table = {key: value for key, value in decision.table.items() if value is not None}
        self.tables[name] = table_of(name, decision.kind, table, decision.extra_data)

    def _check(self, what: str, name: str) -> None:
        """Raise IllegalDecisionError if no profile of that id exists any more, or ever did."""
        if name in self._forgotten:
            raise IllegalDecisionError(what, f"profile {name!r} existed some time ago but is no longer accessible")
        if name.partition("!")[0] not in self._workloads or name not in self.by_id:
            raise IllegalDecisionError(what, f"the profile {name!r} does not exist")

    def job(self, decision: RegisterJob, now: float) -> Job:
        """Return the job of a RegisterJob. Raises IllegalDecisionError where Batsim 5 aborts."""
        name, table = decision.job_id, decision.job
        what = f"RegisterJob {name}"
        workload, mark, rest = name.partition("!")
        if not mark or "!" in rest:
            raise IllegalDecisionError(what, "a job id must be WORKLOAD!NAME")
        if name in self._jobs:
            raise IllegalDecisionError(what, "a job of that id exists already")
        profile_id = full_profile_id(table["profile_id"], workload)
        self._check(what, profile_id)
        profile, width = self.by_id[profile_id], table["resource_request"]
        if isinstance(profile, Parallel) and profile.flops is not None and len(profile.flops) != width:
            problem = f"its resource_request {width} does not match the {len(profile.flops)} of profile {profile_id!r}"
            raise IllegalDecisionError(what, problem)
        self._workloads.add(workload)
        self._jobs.add(name)
        return job_of(name, now, width, profile_id, table["walltime"], table["extra_data"] or "", table["rigid"])
