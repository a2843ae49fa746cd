"""pybatsim's `bs` as our schedulers, and any pybatsim scheduler, see it: over a link to whatever plays Batsim.

`Bs` inherits the whole method surface of pybatsim's `Batsim` and replaces what is on the hot path or wrong there:
messages are not formatted for a log that nobody reads, a job that ended while it was being killed is not looked up in
an empty progress, sets of several intervals are announced interval by interval.
"""

from __future__ import annotations

import logging
from typing import Any, Protocol

from batsim.batsim import Batsim, BatsimScheduler, Job
from procset import ProcSet

from batwatt.errors import ProtocolError

State = Job.State
_STATES = {state.name: state for state in State}
# looking up a member of an enumeration costs as much as a call
_GOOD, _SUBMITTED, _RUNNING = State.COMPLETED_SUCCESSFULLY, State.SUBMITTED, State.RUNNING


class Link(Protocol):
    """The other side of the protocol: `message` waits for what Batsim says, `reply` answers it."""

    def message(self) -> dict[str, Any]:
        """The next message of Batsim."""

    def reply(self, answer: dict[str, Any]) -> None:
        """Answer the last message."""


class Bs(Batsim):
    """The `bs` of a scheduler; `start()` runs the simulation to its end."""

    def __init__(self, scheduler: BatsimScheduler, link: Link) -> None:
        # pybatsim's constructor opens a socket, so its attributes are set here instead
        self.logger = logging.getLogger(__name__)
        self.link = link
        self.scheduler = scheduler
        self.running_simulation = False
        self.event_publisher = None
        self.jobs: dict[str, Job] = {}
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
        self.jobs_manually_changed: set[Job] = set()
        self.no_more_static_jobs = False
        self.no_more_external_events = False
        self.use_storage_controller = False
        self.redis_enabled = False
        self._current_time = 0.0
        self._events_to_send: list[dict[str, Any]] = []
        self._late = False
        self._ended = False
        self._wants_before = type(scheduler).onBeforeEvents is not BatsimScheduler.onBeforeEvents
        self._handlers = {
            "SIMULATION_BEGINS": self._simulation_begins,
            "SIMULATION_ENDS": self._simulation_ends,
            "JOB_SUBMITTED": self._job_submitted,
            "JOB_COMPLETED": self._job_completed,
            "JOB_KILLED": self._job_killed,
            "FROM_JOB_MSG": self._from_job,
            "RESOURCE_STATE_CHANGED": self._resource_state_changed,
            "ANSWER": self._answer,
            "REQUESTED_CALL": self._requested_call,
            "ADD_RESOURCES": self._add_resources,
            "REMOVE_RESOURCES": self._remove_resources,
            "NOTIFY": self._notify,
        }
        scheduler.bs = self
        self._read_bat_msg()
        scheduler.onAfterBatsimInit()

    # decisions on the hot path ----------------------------------------------------------------------------------

    def time(self) -> float:
        """Current time in s."""
        return self._current_time

    def consume_time(self, t: float) -> float:
        """Let `t` seconds pass while the scheduler is busy; later decisions carry the later time."""
        self._current_time += float(t)
        self._late = True
        return self._current_time

    def execute_job(self, job: Job, io_job: Any = None) -> None:
        """Start a job on `job.allocation` (ProcSet or HostSet), with `job.mapping` if it has one."""
        allocation = job.allocation
        if allocation is None:
            raise ValueError(f"job {job.id} has no allocation")
        data: dict[str, Any] = {"job_id": job.id, "alloc": allocation}
        if io_job is not None:
            data["additional_io_job"] = io_job
        known = self.jobs[job.id]
        known.allocation = allocation
        known.state = _RUNNING
        given = job.__dict__
        if "mapping" in given:
            known.mapping = data["mapping"] = job.mapping
        if "storage_mapping" in given:
            known.storage_mapping = data["storage_mapping"] = job.storage_mapping
        self._events_to_send.append({"timestamp": self._current_time, "type": "EXECUTE_JOB", "data": data})
        self.nb_jobs_scheduled += 1

    def start(self) -> None:
        """Run the simulation to its end."""
        step = self._read_bat_msg
        while step():
            pass

    # messages ---------------------------------------------------------------------------------------------------

    def _read_bat_msg(self) -> bool:
        message = self.link.message()
        self._current_time = message["now"]
        self._events_to_send = []
        scheduler, handlers = self.scheduler, self._handlers
        if self._wants_before:
            scheduler.onBeforeEvents()
        self._ended = False
        for event in message["events"]:
            handler = handlers.get(event["type"])
            if handler is None:
                raise ProtocolError(f"Batsim sent an event of unknown type {event['type']!r}")
            handler(event)
        scheduler.onNoMoreEvents()
        if self._late:
            # only a scheduler that consumes time can have decisions out of order
            self._events_to_send.sort(key=lambda event: event["timestamp"])
            self._late = False
        self.link.reply({"now": self._current_time, "events": self._events_to_send})
        return not self._ended

    def _simulation_begins(self, event: dict[str, Any]) -> None:
        data = event["data"]
        if self.running_simulation:
            raise ProtocolError("a second SIMULATION_BEGINS arrived; is more than one Batsim connected?")
        self.running_simulation = True
        for name in ("nb_resources", "nb_compute_resources", "nb_storage_resources", "allow_compute_sharing",
                     "allow_storage_sharing", "profiles", "workloads"):  # fmt: skip
            setattr(self, name, data[name])
        self.machines = {"compute": data["compute_resources"], "storage": data["storage_resources"]}
        self.compute_resources = {host["id"]: host for host in data["compute_resources"]}
        self.storage_resources = {host["id"]: host for host in data["storage_resources"]}
        self.batconf = config = data["config"]
        if config["redis-enabled"]:
            raise ProtocolError("Redis is not supported; start Batsim without it")
        self.profiles_forwarded_on_submission = config["profiles-forwarded-on-submission"]
        self.dynamic_job_registration_enabled = config["dynamic-jobs-enabled"]
        self.ack_of_dynamic_jobs = config["dynamic-jobs-acknowledged"]
        self.forward_unknown_events = config["forward-unknown-events"]
        self.scheduler.onSimulationBegins()

    def _simulation_ends(self, event: dict[str, Any]) -> None:
        self.running_simulation = False
        self._ended = True
        self.scheduler.onSimulationEnds()

    def _job_submitted(self, event: dict[str, Any]) -> None:
        data = event["data"]
        raw = data["job"]
        job_id = data["job_id"]
        job = Job(job_id, raw["subtime"], raw.get("walltime", -1), raw["res"], raw["profile"], raw)
        job.job_state = _SUBMITTED
        self.nb_jobs_submitted += 1
        try:
            job.profile_dict = self.profiles[job_id.partition("!")[0]][job.profile]
        except KeyError:
            profiles = self.profiles.setdefault(job_id.partition("!")[0], {})
            job.profile_dict = profiles[job.profile] = data.get("profile", {})
        known = self.jobs.get(job_id)
        if known is not None:
            # the acknowledgement of a job that the scheduler registered
            if known.job_state == State.IN_SUBMISSON:
                self.nb_jobs_in_submission -= 1
            job.metadata = known.metadata
            self.nb_jobs_submitted_from_scheduler += 1
        else:
            self.nb_jobs_submitted_from_batsim += 1
        self.jobs[job_id] = job
        self.scheduler.onJobSubmission(job)

    def _job_completed(self, event: dict[str, Any]) -> None:
        data = event["data"]
        job = self.jobs[data["job_id"]]
        job.finish_time = event["timestamp"]
        state = _STATES.get(data["job_state"], State.UNKNOWN)
        job.job_state = state
        job.return_code = data["return_code"]
        if state is _GOOD:
            self.nb_jobs_successful += 1
        elif state is State.COMPLETED_WALLTIME_REACHED:
            self.nb_jobs_timeout += 1
        elif state is State.COMPLETED_FAILED:
            self.nb_jobs_failed += 1
        elif state is State.COMPLETED_KILLED:
            self.nb_jobs_killed += 1
        self.nb_jobs_completed += 1
        self.scheduler.onJobCompletion(job)

    def _job_killed(self, event: dict[str, Any]) -> None:
        progress = event["data"]["job_progress"]
        killed = []
        for job_id in event["data"]["job_ids"]:
            # a job that ended before it could be killed has no progress and was announced as complete
            if job_id in progress:
                job = self.jobs[job_id]
                job.progress = progress[job_id]
                killed.append(job)
        if killed:
            self.scheduler.onJobsKilled(killed)

    def _from_job(self, event: dict[str, Any]) -> None:
        data = event["data"]
        self.scheduler.onJobMessage(event["timestamp"], self.jobs[data["job_id"]], data["msg"])

    def _resource_state_changed(self, event: dict[str, Any]) -> None:
        data = event["data"]
        for interval in data["resources"].split(" "):
            low, _, high = interval.partition("-")
            self.scheduler.onMachinePStateChanged((int(low), int(high or low)), data["state"])

    def _answer(self, event: dict[str, Any]) -> None:
        if "consumed_energy" in event["data"]:
            self.scheduler.onReportEnergyConsumed(event["data"]["consumed_energy"])

    def _requested_call(self, event: dict[str, Any]) -> None:
        self.scheduler.onRequestedCall()

    def _add_resources(self, event: dict[str, Any]) -> None:
        self.scheduler.onAddResources(ProcSet.from_str(event["data"]["resources"]))

    def _remove_resources(self, event: dict[str, Any]) -> None:
        self.scheduler.onRemoveResources(ProcSet.from_str(event["data"]["resources"]))

    def _notify(self, event: dict[str, Any]) -> None:
        data, scheduler = event["data"], self.scheduler
        kind = data["type"]
        if kind == "no_more_static_job_to_submit":
            self.no_more_static_jobs = True
            scheduler.onNoMoreJobsInWorkloads()
        elif kind == "no_more_external_event_to_occur":
            self.no_more_external_events = True
            scheduler.onNoMoreExternalEvents()
        elif kind == "event_machine_unavailable":
            scheduler.onNotifyEventMachineUnavailable(ProcSet.from_str(data["resources"]))
        elif kind == "event_machine_available":
            scheduler.onNotifyEventMachineAvailable(ProcSet.from_str(data["resources"]))
        elif self.forward_unknown_events:
            scheduler.onNotifyGenericEvent(data)
        else:
            raise ProtocolError(f"Batsim sent a NOTIFY of unknown type {kind!r}")
