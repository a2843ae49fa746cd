"""The embedded engine as Batsim 5: its decisions on switches, periodic calls and registrations."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from batwatt.batsim import batsim5_events as ev5
from batwatt.batsim import events as ev
from batwatt.batsim.batsim4 import EngineConfig
from batwatt.batsim.batsim5_events import (
    Call,
    Called,
    CreateProbe,
    Features,
    HostsPStateChanged,
    Period,
    ProbeData,
    Register,
)
from batwatt.batsim.events import Decision, RegisterJob
from batwatt.engine.core import RUNNING, SUBMITTED, Catalogue, Engine
from batwatt.engine.execution import TO_COMPUTE, TO_SLEEP, Executor, Report, Switching
from batwatt.engine.kernel import ARRIVAL, FIRST, LATE, Kernel, Source
from batwatt.engine.machines import COMPUTING, IDLE, STATE_NAMES, Machines
from batwatt.engine.recorder import Recorder
from batwatt.engine.runs import Run
from batwatt.errors import IllegalDecisionError, InputError
from batwatt.model import hostset
from batwatt.model.platform import Host, Platform
from batwatt.model.record import Record
from batwatt.model.workload import Composed, Delay, JobSpec, Parallel, Profile, Workload
from batwatt.protocol.workload5 import GenericEvent, full_profile_id, job_of, parts_of, profile_of, table_of
from batwatt.units import TOO_LATE_S

_PIECE = re.compile(r"(\d+)(?:-(\d+))?")


def parse_hosts(text: str, machines: Machines, what: str) -> int:
    """Return the hosts in a text as a mask; Batsim reads up to the first invalid character (`0,1` is host 0)."""
    mask = 0
    for piece in text.split():
        match = _PIECE.match(piece)
        if match is None:
            raise IllegalDecisionError(what, f"{piece!r} is not a host id or an interval such as '0-3'")
        low, high = int(match[1]), int(match[2] or match[1])
        if low > high:
            raise IllegalDecisionError(what, f"{piece!r} is not an interval of host ids")
        if high >= len(machines.hosts):
            raise IllegalDecisionError(what, f"there is no host {high} (hosts are 0-{len(machines.hosts) - 1})")
        mask |= hostset.span(low, high)
    if not mask:
        raise IllegalDecisionError(what, "it names no host")
    return mask


class Switching5(Switching):
    """The current switches of hosts. Raises IllegalDecisionError where Batsim 5 aborts."""

    def __init__(
        self, kernel: Kernel, machines: Machines, recorder: Recorder, execution: Executor, report: Report
    ) -> None:
        super().__init__(kernel, machines, recorder, execution, report)
        # reports of ends of switches precede probes and ends of jobs of that time
        self._arrival_rank, self._acknowledgement_rank = ARRIVAL, FIRST

    def turn(self, hosts: str, target: int) -> None:
        """Apply a TurnOnOffHosts: switch all hosts to a sleep p-state, or all to a computation p-state."""
        what = f"TurnOnOffHosts {hosts} -> {target}"
        machines = self._machines
        mask = parse_hosts(hosts, machines, what)
        busy = 0
        for run in self._execution.runs.values():
            busy |= run.mask
        for index in hostset.ids(mask):
            host, current = machines.hosts[index], machines.pstate[index]
            name = f"host {index} ({host.name})"
            if current in host.virtual:
                raise IllegalDecisionError(what, f"{name} is switching: it is in p-state {current}")
            asleep, off = current in host.sleep_of, target in host.sleep_of
            if asleep and off:
                raise IllegalDecisionError(what, f"{name} is already in a sleep p-state ({current})")
            if not asleep and target in host.virtual:
                raise IllegalDecisionError(what, f"{name} cannot go from p-state {current} to a virtual one")
            if not asleep and not off:
                raise IllegalDecisionError(what, f"{name} is already in a computing p-state ({current})")
            if asleep and target not in host.compute:
                raise IllegalDecisionError(what, f"{name} can be woken to p-states {sorted(host.compute)} only")
            if off and busy >> index & 1:
                raise IllegalDecisionError(what, f"jobs are running on {name}")
        first = machines.hosts[hostset.ids(mask)[0]]
        self._begin(mask, target, TO_SLEEP if target in first.sleep_of else TO_COMPUTE, what)

    def change(self, hosts: str, target: int) -> None:
        """Apply a ChangeHostsPState at once, for any state of the hosts and any kind of p-state."""
        what = f"ChangeHostsPState {hosts} -> {target}"
        machines, now = self._machines, self._kernel.clock
        mask = parse_hosts(hosts, machines, what)
        for index in hostset.ids(mask):
            count = len(machines.hosts[index].pstates)
            if target >= count:
                raise IllegalDecisionError(what, f"host {index} has p-states 0..{count - 1}")
        text = hostset.to_text(mask)
        self._recorder.pstate_rows(now, text, target)
        machines.set_pstate(mask, target)
        self._execution.refresh(mask, now)
        self._report(HostsPStateChanged(self._kernel.date, text, target))


SHORTEST_CALL_S = 1e-5
MOST_UNSENT = 100_000
"""Greatest number of calls and probes that wait for one message."""
LAST_S = 2.0**53 / 1000.0
"""Time from which on a number in s does not distinguish ms."""
PeriodicReport = Callable[[Called | ProbeData], None]


class _Trigger:
    """A call or a probe that is due at each multiple of a period from 0 s."""

    def __init__(self, what: str, name: str, period: Period, probe: CreateProbe | None, now: float) -> None:
        self.what = what
        self.name = name
        self.period_ms = period.period_ms
        self.left = period.count
        self.probe = probe
        self.armed = probe is None
        self.next_ms = 0
        self.next_ms = self.after(now)

    def after(self, now: float) -> int:
        """Return the first multiple of the period after `now` s, in ms."""
        count = int(now * 1000.0 / self.period_ms)
        while count * self.period_ms / 1000.0 <= now:
            count += 1
        return count * self.period_ms


class Periodic:
    """The active calls and probes; `report(event)` notifies the scheduler."""

    def __init__(self, kernel: Kernel, machines: Machines, recorder: Recorder, report: PeriodicReport) -> None:
        self._kernel = kernel
        self._machines = machines
        self._recorder = recorder
        self._report = report
        self._triggers: dict[tuple[bool, str], _Trigger] = {}
        self._ticket = -1
        self.unsent = 0
        """Number of calls and probes since the last message."""

    # calls --------------------------------------------------------------------------------------------------------

    def call(self, decision: Call) -> None:
        """Apply a CallMeLater. Raises IllegalDecisionError where Batsim 5 aborts."""
        what, when, kernel = f"CallMeLater {decision.call_id!r}", decision.when, self._kernel
        if isinstance(when, Period):
            self._add(False, what, decision.call_id, when, None)
        elif when >= TOO_LATE_S:
            raise IllegalDecisionError(what, f"a time must be less than {TOO_LATE_S:g} s, got {when:g}")
        elif when > kernel.clock:
            kernel.at(max(when, kernel.clock + SHORTEST_CALL_S), ARRIVAL, self._call, decision.call_id)
        else:
            kernel.at(kernel.clock, LATE, self._call_late, decision.call_id)

    def _call_late(self, call_id: str) -> None:
        # a call for the past comes after the effects of its answer and of the arrivals of this time
        self._kernel.at(self._kernel.clock, LATE, self._call, call_id)

    def _call(self, call_id: str) -> None:
        self._report(Called(self._kernel.date, call_id))

    def stop_call(self, call_id: str) -> None:
        """Apply a StopCallMeLater to a periodic call; ignore it for other calls."""
        self._remove(False, call_id)

    # probes -------------------------------------------------------------------------------------------------------

    def create_probe(self, decision: CreateProbe) -> None:
        """Apply a CreateProbe. Raises IllegalDecisionError where Batsim 5 aborts."""
        what = f"CreateProbe {decision.probe_id!r}"
        if decision.period is None:
            raise IllegalDecisionError(what, "probes that are not periodic are not supported")
        self._add(True, what, decision.probe_id, decision.period, decision)

    def stop_probe(self, probe_id: str) -> None:
        """Apply a StopProbe; ignore it for an unknown probe."""
        self._remove(True, probe_id)

    def _measure(self, trigger: _Trigger, probe: CreateProbe) -> None:
        if probe.refused:
            raise IllegalDecisionError(trigger.what, probe.refused)
        if not self._recorder.energy:
            raise IllegalDecisionError(trigger.what, "to measure energy needs energy accounting (--energy)")
        mask = parse_hosts(probe.hosts, self._machines, trigger.what)
        if not trigger.armed:
            trigger.armed = True
            return
        recorder = self._recorder
        recorder.update(self._kernel.clock)
        assert recorder.meter is not None
        values = [recorder.meter.energy_j[host] for host in hostset.ids(mask)]
        value: float | list[float] = values
        if probe.aggregation == "Sum":
            value = sum(values)
        elif probe.aggregation == "ArithmeticMean":
            value = sum(values) / len(values)
        self._count(trigger)
        self._report(ProbeData(self._kernel.date, trigger.name, hostset.to_text(mask), value))

    # both ---------------------------------------------------------------------------------------------------------

    def _add(self, probes: bool, what: str, name: str, period: Period, probe: CreateProbe | None) -> None:
        if (probes, name) in self._triggers:
            raise IllegalDecisionError(what, "its id is already in use")
        if not self._kernel.clock < LAST_S:
            raise IllegalDecisionError(what, f"at {self._kernel.clock:g} s a time in ms has no exact number")
        for other in self._triggers.values():
            short, long = sorted((other.period_ms, period.period_ms))
            if long % short:
                why = f"its period of {period.period_ms} ms does not go with the {other.period_ms} ms of {other.what}"
                raise IllegalDecisionError(what, f"{why}: the longer must be a multiple of the shorter")
        self._triggers[probes, name] = _Trigger(what, name, period, probe, self._kernel.clock)
        self._wait()

    def _remove(self, probes: bool, name: str) -> None:
        if self._triggers.pop((probes, name), None) is not None:
            self._wait()

    def _wait(self) -> None:
        """Schedule the next time at which a call or a probe is due."""
        if self._ticket >= 0:
            self._kernel.forget(self._ticket)
            self._ticket = -1
        if self._triggers:
            next_ms = min(trigger.next_ms for trigger in self._triggers.values())
            self._ticket = self._kernel.at(next_ms / 1000.0, ARRIVAL, self._tick, next_ms)

    def _tick(self, now_ms: int) -> None:
        self._ticket = -1
        for key in sorted(self._triggers):
            trigger = self._triggers[key]
            if trigger.next_ms > now_ms:
                continue
            trigger.next_ms += trigger.period_ms
            self.unsent += 1
            if self.unsent > MOST_UNSENT:
                why = f"more than {MOST_UNSENT} calls and probes come before the now of the scheduler's answer"
                raise IllegalDecisionError(trigger.what, f"{why}; answer an earlier one, or stop calls first")
            if trigger.probe is not None:
                self._measure(trigger, trigger.probe)
            else:
                self._count(trigger)
                self._report(Called(self._kernel.date, trigger.name, trigger.left == 0))
            if trigger.left == 0:
                del self._triggers[key]
        self._wait()

    def _count(self, trigger: _Trigger) -> None:
        if trigger.left is not None:
            trigger.left -= 1


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

    def raw(self, job: JobSpec) -> Mapping[str, Any]:
        """Return the profile of a job in the form of messages."""
        return self.tables[job.profile]

    def collect(self, job: JobSpec) -> None:
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

    def job(self, decision: RegisterJob, now: float) -> JobSpec:
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

    def _announce(self, job: JobSpec) -> None:
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

    def _job(self, what: str, job_id: str, *, submitted: bool = False) -> JobSpec:
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

    def _placed(self, what: str, job: JobSpec, place: ev5.Place) -> tuple[int, Sequence[int] | None]:
        """Return the mask of hosts, and for each executor its index among them; None: one on each host."""
        mask = parse_hosts(place.hosts, self.machines, what)
        hosts, how = hostset.ids(mask), place.executors
        if not (how and job.hosts) and not isinstance(self.registry.by_id[job.profile], Delay):
            raise IllegalDecisionError(what, "it has no executor")
        if not isinstance(how, str):
            return mask, self._mapped(what, job, how, len(hosts))
        if how == "SpreadOverHostsFirst":
            return mask, None if job.hosts == len(hosts) else [index % len(hosts) for index in range(job.hosts)]
        cores = [index for index, host in enumerate(hosts) for _ in range(self.machines.hosts[host].cores)]
        return mask, [cores[index % len(cores)] for index in range(job.hosts)]

    def _mapped(self, what: str, job: JobSpec, mapping: Sequence[int], count: int) -> Sequence[int]:
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
