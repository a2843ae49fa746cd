"""pybatsim's `bs` over a link to an engine, and jobs as schedulers see them."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from typing import Any, Final, Protocol

from batsim.batsim import Batsim, BatsimScheduler, Job
from mypy_extensions import mypyc_attr
from procset import ProcSet

from batwatt.batsim import events as ev
from batwatt.errors import ProtocolError
from batwatt.model import hostset


@mypyc_attr(native_class=False)
class ArrivedJob(Job):
    """A job of pybatsim with the number of its arrival as hash.

    The hash of pybatsim's jobs is an address in memory, by which the order of a set of jobs differs between runs.
    """

    __slots__ = ("arrival_number",)
    arrival_number: int

    def __hash__(self) -> int:
        return self.arrival_number


State = Job.State
_STATES: Final[dict[str, Any]] = {state.name: state for state in State}
# constants, as the lookup of a member of an enumeration takes as long as a call
_GOOD: Final[Any] = State.COMPLETED_SUCCESSFULLY
_RUNNING: Final[Any] = State.RUNNING
# a template: its copy takes a third of the time of pybatsim's constructor
_SUBMITTED_JOB: Final[dict[str, Any]] = {**vars(ArrivedJob("", 0.0, -1, 1, "", {})), "job_state": State.SUBMITTED}
_new: Final[Any] = object.__new__


class Link(Protocol):
    """Connection to an engine: `message` waits for its next message, `reply` answers the message."""

    def message(self) -> ev.Message:
        """Return the next message of Batsim."""

    def reply(self, reply: ev.Reply) -> None:
        """Answer the last message."""


@mypyc_attr(native_class=False)
class Bs(Batsim):
    """The `bs` of a scheduler; `start()` runs the simulation to its end.

    It has all methods of pybatsim's `Batsim`, with events instead of JSON. Differences: messages are not formatted for
    a log, a job that ended during its kill is not looked up in an empty progress, sets of several intervals are
    announced interval by interval, but to schedulers of batwatt as one, a job that the scheduler registered stays the
    same object when it is acknowledged.
    """

    def __init__(self, scheduler: Any, link: Link) -> None:
        # pybatsim's constructor opens a socket
        self.link = link
        self.scheduler: Any = scheduler
        self.running_simulation = False
        self.event_publisher = None
        self.jobs: dict[str, Any] = {}
        self._registered: dict[str, Any] = {}
        """Jobs of the scheduler whose acknowledgement is to come."""
        self.nb_jobs_submitted_from_batsim = 0
        self.nb_jobs_submitted_from_scheduler = 0
        self.nb_jobs_submitted = 0
        self.nb_jobs_killed = 0
        self.nb_jobs_rejected = 0
        self.nb_jobs_scheduled = 0
        self.nb_jobs_in_submission = 0
        self.nb_jobs_completed = 0
        self.nb_jobs_successful = 0
        self.nb_jobs_failed = 0
        self.nb_jobs_timeout = 0
        self.jobs_manually_changed: set[Any] = set()
        self.no_more_static_jobs = False
        self.no_more_external_events = False
        self.use_storage_controller = False
        self.redis_enabled = False
        self.profiles: dict[str, dict[str, Any]] = {}
        self.workloads: dict[str, Any] = {}
        self.machines: dict[str, Any] = {}
        self.batconf: dict[str, Any] = {}
        self.compute_resources: dict[int, Any] = {}
        self.storage_resources: dict[int, Any] = {}
        self.nb_resources = 0
        self.nb_compute_resources = 0
        self.nb_storage_resources = 0
        self.allow_compute_sharing = False
        self.allow_storage_sharing = False
        self.profiles_forwarded_on_submission = False
        self.dynamic_job_registration_enabled = False
        self.ack_of_dynamic_jobs = False
        self.forward_unknown_events = False
        self._current_time = 0.0
        self._message_now = 0.0
        self._decisions: list[ev.Decision] = []
        self._late = False
        self._ended = False
        self._by_host_sets = getattr(scheduler, "by_host_sets", False)
        """True if a report of hosts is one call of the scheduler, not one for each interval."""
        self._wants_before = type(scheduler).onBeforeEvents is not BatsimScheduler.onBeforeEvents
        self.logger = logging.getLogger(__name__)
        scheduler.bs = self
        self.begin()

    # decisions ----------------------------------------------------------------------------------------------------

    def time(self) -> float:
        """Return the current time in s."""
        return self._current_time

    def consume_time(self, t: float) -> float:
        """Let `t` seconds pass while the scheduler is busy; later decisions carry the later time."""
        self._current_time += float(t)
        self._late = True
        return self._current_time

    def execute_job(self, job: Any, io_job: Any = None) -> None:
        """Start a job on `job.allocation` (ProcSet or HostSet), with `job.mapping` if it has one."""
        allocation = job.allocation
        if allocation is None:
            raise ValueError(f"job {job.id} has no allocation")
        submitted = self.jobs[job.id]
        submitted.allocation = allocation
        submitted.state = _RUNNING
        decision = ev.ExecuteJob(self._current_time, job.id, allocation)
        attributes = job.__dict__
        if "mapping" in attributes:
            submitted.mapping = decision.mapping = job.mapping
        storage = {} if io_job is None else {"additional_io_job": io_job}
        if "storage_mapping" in attributes:
            submitted.storage_mapping = storage["storage_mapping"] = job.storage_mapping
        if storage:
            decision.storage = storage
        self._decisions.append(decision)
        self.nb_jobs_scheduled += 1

    def start_jobs(self, jobs: Iterable[Any], res: Mapping[str, Iterable[Any]]) -> None:
        """Start jobs on lists of host ids by job id (deprecated by pybatsim)."""
        for job in jobs:
            self.jobs[job.id].state = _RUNNING
            self._decisions.append(ev.ExecuteJob(self._current_time, job.id, ProcSet(*res[job.id])))
            self.nb_jobs_scheduled += 1

    def reject_jobs_by_id(self, job_ids: list[str]) -> None:
        """Reject waiting jobs, at least one."""
        if not job_ids:
            raise ValueError("the list of jobs to reject is empty")
        for job_id in job_ids:
            self._decisions.append(ev.RejectJob(self._current_time, job_id))
            self.jobs[job_id].state = State.REJECTED
        self.nb_jobs_rejected += len(job_ids)

    def kill_jobs(self, jobs: list[Any]) -> None:
        """Kill running jobs, at least one."""
        if not jobs:
            raise ValueError("the list of jobs to kill is empty")
        for job in jobs:
            job.job_state = State.IN_KILLING
        self._decisions.append(ev.KillJob(self._current_time, [job.id for job in jobs]))

    def change_job_state(self, job: Any, state: Any) -> None:
        """Change the state of a job."""
        self._decisions.append(ev.ChangeJobState(self._current_time, job.id, state.name))
        self.jobs_manually_changed.add(job)

    def wake_me_up_at(self, time: float) -> None:
        """Request a call at a time in s."""
        self._decisions.append(ev.CallMeLater(self._current_time, time))

    def set_resource_state(self, resources: Any, state: Any) -> None:
        """Change the p-state of hosts (a set of ids)."""
        self._decisions.append(ev.SetResourceState(self._current_time, resources, state))

    def request_consumed_energy(self) -> None:
        """Request the energy consumed since 0 s."""
        self._decisions.append(ev.Query(self._current_time, {"consumed_energy": {}}))

    def send_message_to_job(self, job: Any, message: Any) -> None:
        """Send a message to a job."""
        self._decisions.append(ev.ToJobMessage(self._current_time, job.id, message))

    def set_job_metadata(self, job_id: str, metadata: Any) -> None:
        """Set the metadata of a job in the results."""
        self._decisions.append(ev.SetJobMetadata(self._current_time, str(job_id), str(metadata)))
        self.jobs[job_id].metadata = metadata

    def notify_resources_added(self, resources: Any) -> None:
        """Raise ProtocolError: Batsim 4 has no such decision."""
        raise ProtocolError("RESOURCES_ADDED is not a decision of Batsim 4")

    def notify_resources_removed(self, resources: Any) -> None:
        """Raise ProtocolError: Batsim 4 has no such decision."""
        raise ProtocolError("RESOURCES_REMOVED is not a decision of Batsim 4")

    # dynamic jobs -------------------------------------------------------------------------------------------------

    def notify_registration_finished(self) -> None:
        """Declare the registration of jobs finished."""
        self._decisions.append(ev.Notify(self._current_time, "registration_finished"))

    def notify_registration_continue(self) -> None:
        """Declare the registration of jobs open again."""
        self._decisions.append(ev.Notify(self._current_time, "continue_registration"))

    def register_profiles(self, workload_name: str, profiles: Mapping[str, Any]) -> None:
        """Add profiles to a workload, which may be new."""
        registered = self.profiles.setdefault(workload_name, {})
        for name, profile in profiles.items():
            self._decisions.append(ev.RegisterProfile(self._current_time, workload_name, name, profile))
            registered[name] = profile

    def register_job(self, id: str, res: int, walltime: float, profile_name: str, subtime: float | None = None) -> Any:
        """Submit a job and return it."""
        when = self._current_time if subtime is None else subtime
        raw = {"profile": profile_name, "id": id, "res": res, "walltime": walltime, "subtime": when}
        self._decisions.append(ev.RegisterJob(self._current_time, id, raw))
        job = ArrivedJob(id, when, walltime, res, profile_name, raw)
        job.arrival_number = self.nb_jobs_submitted
        job.job_state = State.IN_SUBMISSON
        if self.ack_of_dynamic_jobs:
            self.nb_jobs_in_submission += 1
            self._registered[id] = job
        else:
            self.nb_jobs_submitted += 1
            self.nb_jobs_submitted_from_scheduler += 1
        job.profile_dict = self.profiles[job.workload][profile_name]
        self.jobs[id] = job
        return job

    # messages -----------------------------------------------------------------------------------------------------

    def start(self) -> None:
        """Run the simulation to its end."""
        while self.do_next_event():
            pass

    def begin(self) -> None:
        """Receive the first message, and initialise the scheduler before events other than the begin."""
        message: ev.Message = self.link.message()
        alone = len(message.events) == 1
        self._handle(message, not alone)
        self.reply()
        if alone:
            self.scheduler.onAfterBatsimInit()

    def do_next_event(self) -> bool:
        """Receive a message, call the scheduler, and reply; return False if the simulation has ended."""
        self.receive()
        return self.reply()

    def receive(self) -> None:
        """Receive a message and call the scheduler; decisions may be added to its own until `reply`."""
        self._handle(self.link.message(), False)

    def reply(self) -> bool:
        """Answer the last message with the decisions since then; return False if the simulation has ended."""
        if self._late:
            # only decisions of a scheduler that consumes time can be out of order
            self._decisions.sort(key=_time_of)
            self._late = False
        self.link.reply(ev.Reply(self._current_time, self._decisions))
        return not self._ended

    def _handle(self, message: ev.Message, initialise: bool) -> None:
        if message.now < self._message_now:
            raise _wrong(f"its now={message.now} is before that of the last one, {self._message_now}")
        self._current_time = self._message_now = message.now
        self._decisions = []
        scheduler = self.scheduler
        if self._wants_before:
            scheduler.onBeforeEvents()
        self._ended = False
        for event in message.events:
            if self._ended:
                raise _wrong("the simulation ends before its last event")
            _deliver(self, event)
            if initialise:
                # Batsim 5 may send jobs with the begin of the simulation
                scheduler.onAfterBatsimInit()
                initialise = False
        scheduler.onNoMoreEvents()


# a function, as the call of a method that a subclass may replace takes longer


def _deliver(bs: Bs, event: ev.Event) -> None:
    scheduler = bs.scheduler
    if isinstance(event, ev.JobSubmitted):
        scheduler.onJobSubmission(_submitted(bs, event))
    elif isinstance(event, ev.JobCompleted):
        scheduler.onJobCompletion(_completed(bs, event))
    elif isinstance(event, ev.RequestedCall):
        scheduler.onRequestedCall()
    elif isinstance(event, ev.Notified):
        _notified(bs, event)
    elif isinstance(event, ev.ResourceStateChanged):
        mask = hostset.from_text(event.resources)
        if mask.bit_length() > bs.nb_compute_resources:
            raise _wrong(f"hosts {event.resources} are not among 0-{bs.nb_compute_resources - 1}")
        if bs._by_host_sets:
            scheduler.onHostsArrived(mask, int(event.state))
            return
        for interval in hostset.intervals(mask):
            scheduler.onMachinePStateChanged(interval, event.state)
    elif isinstance(event, ev.JobKilled):
        # a job that ended before it could be killed has no progress and was announced as complete
        killed = [_job(bs, job_id) for job_id in event.job_ids if job_id in event.progress]
        for job in killed:
            job.progress = event.progress[job.id]
        if killed:
            scheduler.onJobsKilled(killed)
    elif isinstance(event, ev.Answer):
        if event.energy_j is not None:
            scheduler.onReportEnergyConsumed(event.energy_j)
    elif isinstance(event, ev.SimulationBegins):
        _begins(bs, event.data)
        scheduler.onSimulationBegins()
    elif isinstance(event, ev.SimulationEnds):
        bs.running_simulation = False
        bs._ended = True
        scheduler.onSimulationEnds()
    elif isinstance(event, ev.FromJobMessage):
        scheduler.onJobMessage(event.time, _job(bs, event.job_id), event.message)
    elif isinstance(event, ev.ResourcesOffered):
        hosts = _hosts(bs, event.resources)
        if event.added:
            scheduler.onAddResources(hosts)
        else:
            scheduler.onRemoveResources(hosts)


def _wrong(why: str) -> ProtocolError:
    return ProtocolError(f"a message of Batsim cannot be understood ({why})")


def _hosts(bs: Bs, text: str) -> Any:
    hosts = ProcSet.from_str(text)
    if hosts.max >= bs.nb_compute_resources:
        raise _wrong(f"hosts {text} are not among 0-{bs.nb_compute_resources - 1}")
    return hosts


def _job(bs: Bs, job_id: str) -> Any:
    job = bs.jobs.get(job_id)
    if job is None:
        raise _wrong(f"there is no job {job_id!r}")
    return job


def _begins(bs: Bs, data: dict[str, Any]) -> None:
    if bs.running_simulation:
        raise ProtocolError("a second SIMULATION_BEGINS arrived; is more than one Batsim connected?")
    bs.running_simulation = True
    bs.nb_resources = data["nb_resources"]
    bs.nb_compute_resources = data["nb_compute_resources"]
    bs.nb_storage_resources = data["nb_storage_resources"]
    bs.allow_compute_sharing = data["allow_compute_sharing"]
    bs.allow_storage_sharing = data["allow_storage_sharing"]
    bs.profiles = data["profiles"]
    bs.workloads = data["workloads"]
    bs.machines = {"compute": data["compute_resources"], "storage": data["storage_resources"]}
    bs.compute_resources = {host["id"]: host for host in data["compute_resources"]}
    bs.storage_resources = {host["id"]: host for host in data["storage_resources"]}
    bs.batconf = config = data["config"]
    if config["redis-enabled"]:
        raise ProtocolError("Redis is not supported; start Batsim without it")
    bs.profiles_forwarded_on_submission = config["profiles-forwarded-on-submission"]
    bs.dynamic_job_registration_enabled = config["dynamic-jobs-enabled"]
    bs.ack_of_dynamic_jobs = config["dynamic-jobs-acknowledged"]
    bs.forward_unknown_events = config["forward-unknown-events"]


def _submitted(bs: Bs, event: ev.JobSubmitted) -> Any:
    raw, job_id = event.job, event.job_id
    bs.nb_jobs_submitted += 1
    registered = bs._registered.pop(job_id, None)
    if registered is not None:
        # the acknowledgement of a job that the scheduler registered, and may have started since
        bs.nb_jobs_in_submission -= 1
        bs.nb_jobs_submitted_from_scheduler += 1
        if registered.job_state is State.IN_SUBMISSON:
            registered.job_state = State.SUBMITTED
        return registered
    if job_id in bs.jobs:
        raise _wrong(f"the job {job_id!r} is submitted twice")
    bs.nb_jobs_submitted_from_batsim += 1
    workload = job_id.partition("!")[0]
    profiles = bs.profiles.get(workload)
    if profiles is None:
        profiles = bs.profiles[workload] = {}
    profile = profiles.get(raw["profile"])
    if profile is None:
        profile = profiles[raw["profile"]] = event.profile or {}
    job = _new(ArrivedJob)
    job.arrival_number = bs.nb_jobs_submitted
    job.__dict__ = attributes = _SUBMITTED_JOB.copy()
    attributes["id"] = job_id
    attributes["submit_time"] = raw["subtime"]
    attributes["requested_time"] = raw.get("walltime", -1)
    attributes["requested_resources"] = raw["res"]
    attributes["profile"] = raw["profile"]
    attributes["json_dict"] = raw
    attributes["profile_dict"] = profile
    bs.jobs[job_id] = job
    return job


def _completed(bs: Bs, event: ev.JobCompleted) -> Any:
    job = _job(bs, event.job_id)
    if job.finish_time is not None or job.__dict__.get("state") is not _RUNNING:
        raise _wrong(f"the job {event.job_id!r} ends and does not run")
    job.finish_time = event.time
    state = _STATES.get(event.state)
    if state is None:
        raise _wrong(f"the job {event.job_id!r} ends in the state {event.state!r}")
    job.job_state = state
    job.return_code = event.return_code
    if state is _GOOD:
        bs.nb_jobs_successful += 1
    elif state is State.COMPLETED_WALLTIME_REACHED:
        bs.nb_jobs_timeout += 1
    elif state is State.COMPLETED_FAILED:
        bs.nb_jobs_failed += 1
    elif state is State.COMPLETED_KILLED:
        bs.nb_jobs_killed += 1
    bs.nb_jobs_completed += 1
    return job


def _notified(bs: Bs, event: ev.Notified) -> None:
    kind, scheduler = event.kind, bs.scheduler
    if kind == ev.NO_MORE_JOBS:
        bs.no_more_static_jobs = True
        scheduler.onNoMoreJobsInWorkloads()
    elif kind == ev.NO_MORE_EVENTS:
        bs.no_more_external_events = True
        scheduler.onNoMoreExternalEvents()
    elif kind == "event_machine_unavailable":
        scheduler.onNotifyEventMachineUnavailable(_hosts(bs, event.data["resources"]))
    elif kind == "event_machine_available":
        scheduler.onNotifyEventMachineAvailable(_hosts(bs, event.data["resources"]))
    elif bs.forward_unknown_events:
        scheduler.onNotifyGenericEvent(event.data)
    else:
        raise ProtocolError(f"Batsim sent a NOTIFY of unknown type {kind!r}")


def _time_of(decision: ev.Decision) -> float:
    return decision.time
