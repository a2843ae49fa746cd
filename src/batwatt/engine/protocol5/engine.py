"""Batsim 5 (v5.0.0-rc2) on the embedded engine: its differences to Batsim 4."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from batwatt.engine import events as ev
from batwatt.engine.config import EngineConfig
from batwatt.engine.core import RUNNING, SUBMITTED, Engine
from batwatt.engine.machines import COMPUTING, IDLE, STATE_NAMES
from batwatt.engine.protocol5 import events as ev5
from batwatt.engine.protocol5.periodic import Periodic
from batwatt.engine.protocol5.registration import Registry
from batwatt.engine.protocol5.switching import Switching5, hosts_of
from batwatt.engine.source import Source
from batwatt.engine.tasks import Run
from batwatt.errors import IllegalDecisionError
from batwatt.model import hostset
from batwatt.model.platform import Host, Platform
from batwatt.model.record import Record
from batwatt.model.workload import Composed, Delay, Job, Profile, Workload
from batwatt.protocol.workload5 import GenericEvent

_LATE_EVENTS = (ev.ResourceStateChanged, ev5.ExternalEvent, ev5.HostsPStateChanged)
"""Events with the time of the previous report."""


class Engine5(Engine):
    """One simulation of Batsim 5. Raises IllegalDecisionError where Batsim 5 aborts.

    `features` are those of the scheduler's hello, `storage` the hosts for storage only, `arguments` and `context` the
    command line and its context in SimulationBegins.
    """

    def __init__(
        self,
        platform: Platform,
        workloads: Sequence[Workload],
        events: Sequence[Sequence[GenericEvent]],
        features: ev5.Features,
        *,
        energy: bool | None = None,
        storage: Sequence[Host] = (),
        arguments: Sequence[str] = (),
        context: str = "{}",
    ) -> None:
        # the order of events with the same time is that of the files
        merged = sorted((event for one in events for event in one), key=lambda event: event.time_s)
        config = EngineConfig(energy=energy, compute_sharing=True)
        # storage hosts come last and draw power, too
        disks = [replace(host, id=len(platform) + index) for index, host in enumerate(storage)]
        super().__init__(replace(platform, hosts=(*platform.hosts, *disks)), workloads, config, exact=True)
        self._computing = len(platform)
        if events:
            Source(self.kernel, [event.time_s for event in merged], merged, self._external, self._events_over)
        self.execution.in_order_of_start = True
        # the scheduler is busy with the begin, also if its first answer has no decision
        self._answered = True
        self._features = features
        self._arguments, self._context = list(arguments), context
        self._stopped = False
        self._last_reported_s = 0.0
        self._together = len(workloads) + len(events) > 1
        self.registry = Registry(workloads)
        self.registry.ask(features)
        self.catalogue = self.registry
        self.switches = Switching5(self.kernel, self.machines, self.recorder, self.execution, self._report)
        self.periodic = Periodic(self.kernel, self.machines, self.recorder, self._report)

    # what the scheduler receives ------------------------------------------------------------------------------

    def _begins(self) -> dict[str, Any]:
        hosts = [_host_table(host) for host in self.platform.hosts]
        count = self._computing
        forward = self._features.forward_profiles_on_simulation_begins
        tables = self.registry.tables
        profiles = {"profiles": [tables[name] for name in sorted(tables)]} if forward else {}
        return {
            "host_number": len(hosts),
            "computation_host_number": count,
            "computation_hosts": hosts[:count],
            "storage_host_number": len(hosts) - count,
            "storage_hosts": hosts[count:],
            "batsim_arguments": self._arguments,
            "batsim_execution_context_json": self._context,
            "workloads": [{"name": load.name, "filename": load.source} for load in self.workloads],
            **profiles,
        }

    def message(self) -> ev.Message:
        """Return the next message to the scheduler. Raises DeadlockError if no event can happen any more."""
        if self._stopped:
            self.ended = True
            return ev.Message(self.kernel.date, [ev.SimulationEnds(self.kernel.date)])
        first = not self._begun
        message = super().message()
        if first and self._together:
            # the first events of several sources are reported before the begin of the server
            self.kernel.run_round()
            message.events += self._pending
            self._pending = []
        self._last_reported_s = message.now
        self.periodic.unsent = 0
        return message

    def _report(self, event: Any) -> None:
        if isinstance(event, ev.JobKilled):
            event = self._killed(event)
        if isinstance(event, _LATE_EVENTS):
            event.time = self._last_reported_s
        else:
            self._last_reported_s = event.time
        self._pending.append(event)

    def _notified(self, kind: str, data: dict[str, Any]) -> None:
        self._report(ev.Notified(self.kernel.date, kind, data))

    def _announce(self, job: Job) -> None:
        profile = self.registry.raw(job) if self._features.forward_profiles_on_job_submission else None
        self._report(ev.JobSubmitted(self.kernel.date, job.id, job.raw, profile))

    def _external(self, event: Any) -> None:
        self._report(ev5.ExternalEvent(self.kernel.date, event.id, event.data))

    def _killed(self, event: ev.JobKilled) -> ev5.JobsKilled:
        killed = sorted(event.progress)
        progresses: list[ev.Json] = [
            {"job_id": name, "wrapper": self._progress(event.progress[name])} for name in killed
        ]
        profiles = None
        if self._features.forward_profiles_on_jobs_killed:
            used = sorted({self.jobs[name].profile for name in killed})
            profiles = [self.registry.tables[name] for name in used]
        return ev5.JobsKilled(event.time, event.job_ids, progresses, profiles)

    def _progress(self, report: Mapping[str, Any]) -> dict[str, Any]:
        """Return the progress of a profile as a table of Batsim 5."""
        name = report["profile_name"]
        table: dict[str, Any] = {"profile_id": name}
        if "current_task" not in report:
            return {"kill_progress_type": "KillProgressAtomicProfile",
                    "kill_progress": table | {"progress": report["progress"]}}  # fmt: skip
        profile = self.registry.by_id[name]
        assert isinstance(profile, Composed)
        repetition, part = divmod(report["current_task_index"], len(profile.sequence))
        table |= {"current_repetition": repetition, "current_task_index": part}
        table["current_task_progress"] = self._progress(report["current_task"])
        return {"kill_progress_type": "KillProgressSequentialProfile", "kill_progress": table}

    # what the scheduler answers -------------------------------------------------------------------------------

    def _apply(self, decision: ev.Decision) -> None:
        match decision:
            case ev5.Execute():
                self._execute(decision)
            case ev.KillJob():
                self._kill(decision.job_ids)
            case ev.RejectJob():
                self._job("RejectJob", decision.job_id, submitted=True)
                self._reject_job(decision.job_id)
            case ev5.Call():
                self.periodic.call(decision)
            case ev5.StopCall():
                self.periodic.stop_call(decision.call_id)
            case ev5.CreateProbe():
                self.periodic.create_probe(decision)
            case ev5.StopProbe():
                self.periodic.stop_probe(decision.probe_id)
            case ev5.TurnOnOff():
                self.switches.turn(decision.hosts, decision.pstate)
            case ev5.ChangePState():
                self.switches.change(decision.hosts, decision.pstate)
            case ev5.Register():
                self.registry.register(decision)
            case ev.RegisterJob():
                job = self.registry.job(decision, self.kernel.date)
                self._submit(job, self._features.acknowledge_dynamic_jobs)
            case ev5.FinishRegistration():
                self.registry.open = False
            case ev5.ForceStop():
                self._stopped = True
            case _:
                raise TypeError(f"{type(decision).__name__} is not a decision of Batsim 5")

    def _job(self, what: str, job_id: str, *, submitted: bool = False) -> Job:
        if job_id.count("!") != 1:
            raise IllegalDecisionError(f"{what} {job_id}", "a job id is WORKLOAD!NAME")
        return super()._job(what, job_id, submitted=submitted)

    def _kill(self, job_ids: Sequence[str]) -> None:
        for name in job_ids:
            if self.state[self._job("KillJobs", name).id] == SUBMITTED:
                raise IllegalDecisionError(f"KillJobs {name}", "the job was never started")
        if self._kills.issuperset(job_ids):
            raise IllegalDecisionError(f"KillJobs {list(job_ids)}", "it names no job that is not killed already")
        self._kill_job(job_ids)

    def _execute(self, decision: ev5.Execute) -> None:
        what = f"ExecuteJob {decision.job_id}"
        job = self._job("ExecuteJob", decision.job_id, submitted=True)
        if decision.storage:
            raise IllegalDecisionError(what, "storage is not modelled here; use a real Batsim")
        profiles = self.registry.by_id
        mask, executors = self._placed(what, job, decision.place)
        self._check_ready(what, mask)
        run = Run(job, profiles, mask, mask.bit_count(), executors, self.kernel.clock)
        if decision.overrides:
            places = {name: self._placed(what, job, place) for name, place in decision.overrides.items()}
            for name in decision.overrides:
                if name not in profiles:
                    raise IllegalDecisionError(what, f"there is no profile {name!r} to override the allocation of")
            run.places = {"": (mask, executors), **places}
        self.execution.begin(run)
        self.state[job.id] = RUNNING

    def _placed(self, what: str, job: Job, place: ev5.Place) -> tuple[int, Sequence[int] | None]:
        """Return the mask of hosts, and for each executor its index among them; None: one on each host."""
        mask = hosts_of(place.hosts, self.machines, what)
        hosts, how = hostset.ids(mask), place.executors
        if not (how and job.hosts) and not isinstance(self.registry.by_id[job.profile], Delay):
            raise IllegalDecisionError(what, "it has no executor")
        if not isinstance(how, str):
            return mask, self._mapped(what, job, how, len(hosts))
        if how == "SpreadOverHostsFirst":
            return mask, None if job.hosts == len(hosts) else [index % len(hosts) for index in range(job.hosts)]
        cores = [index for index, host in enumerate(hosts) for _ in range(self.machines.hosts[host].cores)]
        return mask, [cores[index % len(cores)] for index in range(job.hosts)]

    def _mapped(self, what: str, job: Job, mapping: Sequence[int], count: int) -> Sequence[int]:
        for index, value in enumerate(mapping):
            if value >= count:
                raise IllegalDecisionError(what, f"its mapping has {value} at index {index}, of {count} hosts")
        if len(mapping) != job.hosts and _is_rigid(self.registry.by_id[job.profile]):
            problem = f"its mapping has {len(mapping)} executors, and {job.profile} is for {job.hosts}"
            raise IllegalDecisionError(what, problem)
        return mapping

    def _check_ready(self, what: str, mask: int) -> None:
        machines = self.machines
        if mask >> self._computing:
            raise IllegalDecisionError(what, f"host {mask.bit_length() - 1} is for storage only")
        for index in hostset.ids(mask & ~(machines.mask[IDLE] | machines.mask[COMPUTING])):
            state = STATE_NAMES[machines.state_of(index)]
            raise IllegalDecisionError(what, f"host {index} ({machines.hosts[index].name}) is {state}")
        for mode, members in machines.members_of(mask):
            if mode.index not in machines.kind_host[mode.kind].compute:
                index = hostset.ids(members)[0]
                name = f"host {index} ({machines.hosts[index].name})"
                raise IllegalDecisionError(what, f"{name} is in p-state {mode.index}, which does not compute")

    def close(self) -> Record:
        """Return the rows and totals after the end of the simulation."""
        record = super().close()
        # Batsim 5 counts from the first submission before 0, else from 0
        first_s = min((load.jobs[0].submit_time_s for load in self.workloads if load.jobs), default=0.0)
        if first_s < 0.0:
            record.schedule["makespan"] = float(record.schedule["makespan"]) - first_s
        return record


def _is_rigid(profile: Profile) -> bool:
    """Return whether a profile states the flops of its executors."""
    return not isinstance(profile, Composed | Delay) and profile.flops is not None


def _host_table(host: Host) -> dict[str, Any]:
    """Return a host in the form of messages."""
    return {
        "id": host.id,
        "name": host.name,
        "pstate": host.initial_pstate,
        "pstate_count": len(host.pstates),
        "state": "IDLE",
        "properties": _pairs({key: value for key, value in host.properties.items() if key != "role" or value}),
        "zone_properties": _pairs(host.zone_properties),
        "core_count": host.cores,
        "computation_speed": [state.speed_flops for state in host.pstates],
    }


def _pairs(properties: Mapping[str, str]) -> list[dict[str, str]]:
    return [{"key": key, "value": properties[key]} for key in sorted(properties)]
