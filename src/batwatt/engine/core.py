"""The embedded engine behind a link: messages, decisions, and the profiles and jobs of the simulation."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from batwatt.batsim import events as ev
from batwatt.batsim.batsim4 import EngineConfig
from batwatt.batsim.events import Decision, RegisterJob, RegisterProfile
from batwatt.engine.execution import Executor, Switching
from batwatt.engine.kernel import AFTER, ARRIVAL, LATE, Kernel, Source
from batwatt.engine.machines import COMPUTING, IDLE, SWITCHING_OFF, SWITCHING_ON, UNAVAILABLE, Machines
from batwatt.engine.recorder import Recorder
from batwatt.errors import DeadlockError, IllegalDecisionError, InputError, ProtocolError
from batwatt.model import hostset
from batwatt.model.platform import Platform
from batwatt.model.record import Record
from batwatt.model.workload import Composed, JobSpec, Parallel, Profile, Workload
from batwatt.protocol.events import TimedEvent
from batwatt.protocol.workload4 import parse_job, parse_profile
from batwatt.units import REPORTED_S, TOO_LATE_S


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

    def raw(self, job: JobSpec) -> Mapping[str, Any]:
        """Return the JSON of a job's profile."""
        return self._raw[job.workload][job.profile]

    def payload(self) -> dict[str, dict[str, Mapping[str, Any]]]:
        """Return the `profiles` of SIMULATION_BEGINS."""
        return {name: dict(raws) for name, raws in self._raw.items()}

    def forget(self) -> None:
        """Drop all profiles, after the end of the simulation."""
        self.profiles, self._raw = {}, {}

    def collect(self, job: JobSpec) -> None:
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

    def job_of(self, decision: RegisterJob, jobs: Mapping[str, JobSpec]) -> JobSpec:
        """Return the job of a REGISTER_JOB; `jobs` exist already. Raises IllegalDecisionError where Batsim aborts."""
        job_id, raw = decision.job_id, decision.job
        what = f"REGISTER_JOB {job_id}"
        self._need_dynamic(what)
        if "!" not in job_id:
            raise IllegalDecisionError(what, "a job id must be WORKLOAD!NAME")
        workload = job_id.split("!", 1)[0]
        job: JobSpec = _parsed(what, parse_job, {**raw, "id": job_id}, workload, what)
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


SUBMITTED: Final = 0
RUNNING: Final = 1
FINISHED: Final = 2
SHORTEST_CALL_S: Final = 1e-5


class Engine:
    """One simulation. Call `message` and `reply` in turn until `ended`; then `close` gives the record."""

    def __init__(
        self,
        platform: Platform,
        workloads: Sequence[Workload],
        config: EngineConfig | None = None,
        events: Sequence[TimedEvent] = (),
    ) -> None:
        self.platform = platform
        self.config = config or EngineConfig()
        self.ended = False
        energy = platform.has_power if self.config.energy is None else self.config.energy
        if energy and not platform.has_power:
            raise InputError(platform.source, platform.power_problem, "correct it or run without energy")
        halted = [host for host in platform.hosts if not host.pstates[host.initial_pstate].speed_flops]
        if halted and not energy:
            problem = f"host {halted[0].name!r}: begins asleep at a speed of 0, which needs energy accounting (-E)"
            raise InputError(platform.source, problem, "let it begin in a p-state that computes")
        self.kernel = Kernel()
        self.machines = Machines(platform)
        self.recorder = Recorder(self.machines, energy)
        self.execution = Executor(
            self.kernel, self.machines, self.recorder, self.config.compute_sharing, self._report, self._job_ended
        )
        self.switching = Switching(self.kernel, self.machines, self.recorder, self.execution, self._report)
        self.workloads = list(workloads)
        self.catalogue = Catalogue(workloads, self.config)
        self.jobs: dict[str, JobSpec] = {}
        self.state: dict[str, int] = {}
        self._pending: list[ev.Event] = []
        self._end_notices = 0
        self._end_notice_mark = 0
        self._over: list[str] = []
        self._begun = False
        self._answered = False
        self._scheduler_busy = False
        self._kills: set[str] = set()
        self._job_sources = len(self.workloads)
        self._quiet_end_date = -1.0
        self._unfinished = 0
        first = [load.jobs[0].submit_time_s for load in self.workloads if load.jobs]
        if first:
            self.kernel.at(min(first), ARRIVAL, self.recorder.first_submission, min(first))
        if events:
            Source(self.kernel, [event.time_s for event in events], events, self._external, self._events_over)
        for workload in self.workloads:
            times = [job.submit_time_s for job in workload.jobs]
            Source(self.kernel, times, workload.jobs, self._submit, self._jobs_over)

    # jobs and external events ---------------------------------------------------------------------------------

    def _jobs_over(self) -> None:
        self._job_sources -= 1
        if self._job_sources:
            # only the last of several workloads reports that there are no more jobs
            self._quiet_end_date = self.kernel.date
        else:
            self._announce_end(ev.NO_MORE_JOBS)

    def _events_over(self) -> None:
        self._announce_end(ev.NO_MORE_EVENTS)

    def _announce_end(self, end_notice: str) -> None:
        self._end_notice_mark = len(self._pending)
        self.kernel.at(self.kernel.clock, LATE, self._report_end, end_notice)

    def _report_end(self, end_notice: str) -> None:
        self._end_notices += 1
        self._notified(end_notice, {"type": end_notice})

    def _submit(self, job: JobSpec, announced: bool = True) -> None:
        job_id = job.id
        self.jobs[job_id] = job
        self.state[job_id] = SUBMITTED
        self._unfinished += 1
        if announced:
            profile = self.catalogue.raw(job) if self.config.forward_profiles else None
            self._pending.append(ev.JobSubmitted(self.kernel.date, job.id, job.raw, profile))

    def _external(self, event: TimedEvent) -> None:
        if event.kind == "generic":
            self._notified(str(event.raw["type"]), dict(event.raw))
            return
        mask = event.resources or 0
        machines, now = self.machines, self.kernel.clock
        if mask & ~machines.everyone:
            raise InputError("events", f"{event.kind} at {now:g} s names a host beyond {len(machines.hosts) - 1}")
        kind = f"event_{event.kind}"
        self._notified(kind, {"type": kind, "resources": hostset.to_text(mask)})
        # the event takes effect after the jobs that end at this time have freed their hosts
        self.kernel.at(now, AFTER, self._change_availability, event)

    def _change_availability(self, event: TimedEvent) -> None:
        mask = event.resources or 0
        machines, now = self.machines, self.kernel.clock
        available = event.kind == "machine_available"
        wrong = mask & ~machines.mask[UNAVAILABLE] if available else mask & machines.mask[UNAVAILABLE]
        if wrong:
            first = machines.hosts[(wrong & -wrong).bit_length() - 1].name
            problem = f"{event.kind} at {now:g} s: {first} is already {'available' if available else 'unavailable'}"
            hint = "correct the events file"
            if available:
                # Batsim takes an unavailable host for available when a switch of it ends
                hint += ", or let no switch of that host end while it is away"
            raise InputError("events", problem, hint)
        if available:
            busy = 0
            for run in self.execution.runs.values():
                busy |= run.mask
            machines.move(mask & busy, COMPUTING, now)
            machines.move(mask & ~busy, IDLE, now)
        else:
            machines.move(mask, UNAVAILABLE, now)

    # what the scheduler receives ------------------------------------------------------------------------------

    def _report(self, event: ev.Event) -> None:
        self._pending.append(event)

    def _notified(self, kind: str, data: dict[str, Any]) -> None:
        self._pending.append(ev.Notified(self.kernel.date, kind, data))

    def _job_ended(self, job_id: str) -> None:
        self.state[job_id] = FINISHED
        self._unfinished -= 1
        self._over.append(job_id)

    def message(self) -> ev.Message:
        """Return the next message to the scheduler. Raises DeadlockError if no event can happen any more."""
        kernel = self.kernel
        if not self._begun:
            self._begun = True
            self._pending.append(ev.SimulationBegins(kernel.date, self._begins()))
            message = self._flush()
            # the scheduler is busy with the begin when the first jobs arrive
            self._scheduler_busy = True
            return message
        if kernel.is_due():
            kernel.run_due(kernel.clock)
        while not self._pending:
            date = kernel.next_date()
            if date is None:
                self._end_or_deadlock()
                break
            self._scheduler_busy = False
            kernel.run_due(date)
        return self._flush()

    def _flush(self) -> ev.Message:
        """Return the pending events, without the end notice of a source if only this source has events."""
        pending = self._pending
        self._pending = []
        if self._end_notices:
            notice_last = self._end_notices == 1 and len(pending) - 1 == self._end_notice_mark > 0
            # of workloads that end at one time the first keeps the server busy until the last has ended
            if notice_last and not self._scheduler_busy and self._quiet_end_date != self.kernel.date:
                self._pending = [pending.pop()]
            self._end_notices = 0
        self._scheduler_busy = False
        if self._over:
            for job_id in self._over:
                # Batsim removes a job once its completion has been sent
                self._forget(job_id)
            self._over.clear()
            self.recorder.fresh_rows.clear()
        return ev.Message(self.kernel.date, pending)

    def _forget(self, job_id: str) -> None:
        job = self.jobs.pop(job_id)
        del self.state[job_id]
        self._kills.discard(job_id)
        self.catalogue.collect(job)

    def _end_or_deadlock(self) -> None:
        left, switching = self._unfinished, self.machines.mask[SWITCHING_ON] | self.machines.mask[SWITCHING_OFF]
        if left or self.catalogue.open or switching:
            declared = sum(state == RUNNING for state in self.state.values())
            what = f"{left - declared} submitted jobs were neither started nor rejected"
            if not left:
                what = "registration was not finished"
                if switching:
                    what = f"hosts {hostset.to_text(switching)} switch through a p-state of speed 0, which never ends"
            elif declared:
                what = f"{declared} jobs were declared running by CHANGE_JOB_STATE, which nothing ends"
            raise DeadlockError(f"nothing can happen any more at {self.kernel.clock:g} s, but {what}")
        self.ended = True
        self._pending.append(ev.SimulationEnds(self.kernel.date))

    def _begins(self) -> dict[str, Any]:
        workloads = {workload.name: workload.source for workload in self.workloads}
        return self.config.begins(self.machines.payload(), workloads, self.catalogue.payload())

    # what the scheduler answers -------------------------------------------------------------------------------

    def reply(self, reply: ev.Reply) -> None:
        """Apply a reply: each decision at its time (never in the past), then advance the clock to its `now`."""
        kernel = self.kernel
        now, decisions = reply.now, reply.decisions
        if self.ended:
            if decisions:
                raise IllegalDecisionError(type(decisions[0]).__name__, "the simulation has ended")
            return
        if now > kernel.clock + REPORTED_S:
            self._scheduler_busy = True
        if not self._answered:
            self._answered = True
            if decisions:
                self.catalogue.check_first(decisions[0])
            else:
                self._scheduler_busy = False
        for index, decision in enumerate(decisions):
            time = decision.time
            if time > now:
                raise ProtocolError(f"timestamp {time} of event {index} is later than the answer's now={now}")
            if time > kernel.clock:
                kernel.run_due(time)
                self.recorder.fresh_rows.clear()
            self._apply(decision)
            # each event takes a round of messages, in which the entries that are due now happen
            self.recorder.fresh_rows.clear()
            self.catalogue.settle()
            kernel.run_round()
        self.catalogue.settle()
        if now > kernel.clock:
            kernel.run_due(now)

    def _apply(self, decision: ev.Decision) -> None:
        if isinstance(decision, ev.ExecuteJob):
            self._execute_job(decision)
        elif isinstance(decision, ev.CallMeLater):
            self._call_me_later(decision.at)
        elif isinstance(decision, ev.KillJob):
            self._kill_job(decision.job_ids)
        elif isinstance(decision, ev.RegisterJob):
            job = self.catalogue.job_of(decision, self.jobs)
            self._submit(job, self.config.acknowledge_dynamic_jobs)
        elif isinstance(decision, ev.RegisterProfile):
            self.catalogue.register_profile(decision)
        elif isinstance(decision, ev.SetResourceState):
            self.switching.request(decision.resources, decision.state)
        elif isinstance(decision, ev.RejectJob):
            self._reject_job(decision.job_id)
        elif isinstance(decision, ev.SetJobMetadata):
            self._set_job_metadata(decision.job_id, str(decision.metadata))
        elif isinstance(decision, ev.Query):
            self._query(decision.requests)
        elif isinstance(decision, ev.Notify):
            self.catalogue.notify(decision.kind)
        elif isinstance(decision, ev.ToJobMessage):
            # accepted without effect: no profile of the embedded engine receives messages
            self._job("TO_JOB_MSG", decision.job_id)
        elif isinstance(decision, ev.ChangeJobState):
            self._change_job_state(decision.job_id, decision.state)
        else:
            raise ProtocolError(f"{type(decision).__name__} is not a decision of Batsim 4")

    def _job(self, what: str, job_id: str, *, submitted: bool = False) -> JobSpec:
        job = self.jobs.get(job_id)
        if job is None:
            raise IllegalDecisionError(f"{what} {job_id}", "there is no such job (or its end was already announced)")
        if submitted and self.state[job_id] != SUBMITTED:
            raise IllegalDecisionError(f"{what} {job_id}", "the job is not waiting to be started")
        return job

    def _execute_job(self, decision: ev.ExecuteJob) -> None:
        job = self._job("EXECUTE_JOB", decision.job_id, submitted=True)
        if decision.storage is not None:
            raise IllegalDecisionError(f"EXECUTE_JOB {job.id}", "I/O jobs are not modelled here; use a real Batsim")
        self.execution.start(job, decision.alloc, decision.mapping, self.catalogue.profiles[job.id.partition("!")[0]])
        self.state[job.id] = RUNNING

    def _kill_job(self, job_ids: Sequence[str]) -> None:
        fresh = []
        for job_id in job_ids:
            job = self._job("KILL_JOB", job_id)
            if self.state[job_id] == SUBMITTED:
                raise IllegalDecisionError(f"KILL_JOB {job.id}", "the job was never started")
            if self.state[job_id] == RUNNING and job_id not in self.execution.runs:
                raise IllegalDecisionError(f"KILL_JOB {job.id}", "the job was declared running, but never started")
            if job_id not in self._kills:
                self._kills.add(job_id)
                fresh.append(job_id)
        if fresh:
            self.execution.kill(fresh)

    def _reject_job(self, job_id: str) -> None:
        job = self._job("REJECT_JOB", job_id, submitted=True)
        self.recorder.job_rejected(job, self.execution.metadata.pop(job.id, ""))
        self._unfinished -= 1
        self.state[job.id] = FINISHED
        self._over.append(job.id)

    def _call_me_later(self, date: float) -> None:
        clock = self.kernel.clock
        if not date > clock:
            raise IllegalDecisionError(f"CALL_ME_LATER {date}", f"it is already {clock:.6f}")
        if date >= TOO_LATE_S:
            raise ProtocolError(f"CALL_ME_LATER {date:g}: a time must be less than {TOO_LATE_S:g} s")
        self.kernel.at(max(date, clock + SHORTEST_CALL_S), ARRIVAL, self._call, None)

    def _call(self, _: None) -> None:
        self._pending.append(ev.RequestedCall(self.kernel.date))

    def _query(self, requests: Mapping[str, Any]) -> None:
        if list(requests) != ["consumed_energy"]:
            raise IllegalDecisionError("QUERY", f"only consumed_energy can be requested, got {requests!r}")
        if not self.recorder.energy:
            raise IllegalDecisionError("QUERY", "consumed_energy needs energy accounting")
        self.recorder.update(self.kernel.clock)
        self._pending.append(ev.Answer(self.kernel.date, self.recorder.energy_j))

    def _set_job_metadata(self, job_id: str, metadata: str) -> None:
        self._job("SET_JOB_METADATA", job_id)
        if '"' in metadata:
            raise IllegalDecisionError(f"SET_JOB_METADATA {job_id}", "metadata may not hold a double quote")
        if not self.recorder.set_metadata(job_id, metadata) and self.state[job_id] != FINISHED:
            self.execution.metadata[job_id] = metadata

    def _change_job_state(self, job_id: str, state: str) -> None:
        """Declare a waiting job running, as in Batsim 4.2.1: nothing ends it. Raises IllegalDecisionError."""
        self._job("CHANGE_JOB_STATE", job_id, submitted=True)
        if state != "RUNNING":
            raise IllegalDecisionError(f"CHANGE_JOB_STATE {job_id} -> {state}", "only RUNNING can be given to a job")
        self.state[job_id] = RUNNING

    def close(self) -> Record:
        """Return the rows and totals after the end of the simulation, and forget jobs and profiles.

        Parts of the engine refer to each other: garbage collection would free the tables long after files are made.
        """
        self.jobs, self.state = {}, {}
        self.catalogue.forget()
        return self.recorder.close()
