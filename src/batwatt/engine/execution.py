"""Starts, ends and kills of jobs, and switches of hosts, in a simulation."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

from batwatt.batsim.events import Event, JobCompleted, JobKilled, Requests, ResourceStateChanged
from batwatt.engine.kernel import ACKNOWLEDGE, END, FIRST, LATE, SOLVE, Handler, Kernel
from batwatt.engine.machines import (
    COMPUTING,
    IDLE,
    SLEEPING,
    STATE_NAMES,
    SWITCHING_OFF,
    SWITCHING_ON,
    UNAVAILABLE,
    Machines,
)
from batwatt.engine.recorder import Recorder
from batwatt.engine.runs import TIMEOUT, Meter, Run, rebalance
from batwatt.errors import IllegalDecisionError, InputError
from batwatt.model import hostset
from batwatt.model.hostset import HostSet
from batwatt.model.workload import Composed, Delay, JobSpec, Parallel, Profile

Report = Callable[[Event], None]


class Executor:
    """The running jobs. `report(event)` notifies the scheduler, `ended(job id)` the engine.

    With sharing, parallel tasks are reported after delays that end at the same time.
    """

    def __init__(
        self,
        kernel: Kernel,
        machines: Machines,
        recorder: Recorder,
        sharing: bool,
        report: Report,
        ended: Callable[[str], None],
    ) -> None:
        self.runs: dict[str, Run] = {}
        self._kernel = kernel
        self._machines = machines
        self._recorder = recorder
        self._sharing = sharing
        # SimGrid charges a host for p-state 0 until its first update: other initial p-states need a meter per host
        odd = any(host.initial_pstate != 0 for host in machines.hosts)
        self._meter = Meter(machines) if sharing or odd else None
        recorder.meter = self._meter
        self._unsolved = False
        self._report = report
        self._ended = ended
        self.metadata: dict[str, str] = {}
        # bound once, as each access to a method makes an object
        self._at_end: Handler = self._leaf_ended

    def start(self, job: JobSpec, alloc: object, mapping: Any, profiles: Mapping[str, Profile]) -> None:
        """Start a job on hosts (HostSet, ProcSet, interval string). Raises IllegalDecisionError where Batsim aborts."""
        mask = alloc.mask if type(alloc) is HostSet else self._mask(job, alloc)
        machines = self._machines
        ready = machines.mask[IDLE] | machines.mask[COMPUTING] if self._sharing else machines.mask[IDLE]
        if mask & ready != mask or not mask:
            mask = self._mask(job, alloc)
            self._refuse(job, mask)
        executors = self._executors(job, mask, mapping, profiles) if mapping or machines.odd_starts else None
        leaf = profiles[job.profile]
        width = mask.bit_count()
        if isinstance(leaf, Parallel) and leaf.flops is not None:
            count = width if executors is None else len(executors)
            if len(leaf.flops) != count:
                raise self._illegal(job, f"its profile is for {len(leaf.flops)} executors, not {count}")
        if executors is None and width != job.hosts and not _fits_any_width(leaf, profiles):
            raise self._illegal(job, f"it needs {job.hosts} hosts but was given {width}, without a mapping")
        now = self._kernel.clock
        run = self.runs[job.id] = Run(job, profiles, mask, width, executors, now)
        machines.move(mask, COMPUTING, now, width)
        self._recorder.job_rows(now, "s")
        if self._meter is not None:
            run.energy_at_s = self._meter.total(hostset.ids(mask))
        run.enter(job.profile, now)
        if self._meter is not None:
            self._wake_meter(run, self._meter)
        self._retime(run, now)

    def _wake_meter(self, run: Run, meter: Meter) -> None:
        """Update the meter of the host of a task of one executor, as SimGrid does at its start (effective at 0 s)."""
        if isinstance(run.leaf, Parallel) and run.count == 1:
            host = hostset.ids(run.mask)[0 if run.executors is None else run.executors[0]]
            meter.look([host], self._kernel.clock)
            meter.note_pstate([host])

    def _retime(self, run: Run, now: float) -> None:
        """Set the rate, the power and the end of a run after a change of its hosts or of its profile."""
        if self._meter is not None:
            if isinstance(run.leaf, Delay):
                run.retime(self._machines, now)
                self._schedule_end(run)
            self._solve_later()
            return
        before_w = run.extra_w
        run.retime(self._machines, now)
        self._recorder.extra_w += run.extra_w - before_w
        self._schedule_end(run)

    def _schedule_end(self, run: Run) -> None:
        if run.late:
            # a parallel task that begins without remaining time ends after the other entries of this time
            run.late = False
            if any(flops > 0.0 for _, flops in run.work()):
                run.outcome = TIMEOUT
            run.event = self._kernel.at(self._kernel.clock, LATE, self._at_end, run)
            return
        if run.event >= 0:
            self._kernel.forget(run.event)
            run.event = -1
        if run.end_s < math.inf:
            run.event = self._kernel.at(run.end_s, END, self._at_end, run)

    def _solve_later(self) -> None:
        """Schedule a new sharing of the hosts after the other entries of this time."""
        if not self._unsolved:
            self._unsolved = True
            self._kernel.at(self._kernel.clock, SOLVE, self._solve, None)

    def _solve(self, _: None) -> None:
        assert self._meter is not None
        self._unsolved = False
        rebalance(self.runs.values(), self._machines, self._meter, self._kernel.clock)
        for run in self.runs.values():
            if isinstance(run.leaf, Parallel):
                self._schedule_end(run)

    def refresh(self, mask: int, now: float) -> None:
        """Adapt the running jobs on some hosts to new p-states (the recorder's energy must be up to date)."""
        if self._meter is not None:
            self._meter.note_pstate(hostset.ids(mask))
            self._solve_later()
            return
        for run in self.runs.values():
            if run.mask & mask:
                run.charge(now)
                self._retime(run, now)

    def _leaf_ended(self, run: Run) -> None:
        now = self._kernel.clock
        run.event = -1
        if run.outcome == TIMEOUT:
            self._end(run, "COMPLETED_WALLTIME_REACHED", -1)
            return
        assert run.leaf is not None
        code = run.leaf.return_code
        if code == 0:
            if run.stack and self._next_leaf(run, now):
                return
            if run.outcome == TIMEOUT:
                self._end(run, "COMPLETED_WALLTIME_REACHED", -1)
                return
            code = run.code or run.profiles[run.job.profile].return_code
        if code == 0:
            self._end(run, "COMPLETED_SUCCESSFULLY", 0)
        elif code > 0:
            self._end(run, "COMPLETED_FAILED", code)
        elif code == -1:
            # Batsim's own code for the walltime
            self._end(run, "COMPLETED_WALLTIME_REACHED", -1)
        else:
            # -2 is Batsim's code for a kill, which no kill would report here
            problem = f"its profile returns {code}, on which Batsim {'never ends' if code == -2 else 'aborts'}"
            raise InputError(f"job {run.job.id}", problem, "let 'ret' be 0, or > 0 for a failure")

    def _next_leaf(self, run: Run, now: float) -> bool:
        """Enter the next part of the run's profile; return False if there is none.

        SimGrid charges the time between two updates of a host at the load of the second, and at the end of a delay
        updates only the first host of the allocation. So the other hosts are charged the load of a parallel task that
        follows delays for these, too, since the last update of all hosts.
        """
        recorder, slept = self._recorder, isinstance(run.leaf, Delay)
        recorder.look(run.mask & -run.mask if slept else run.executor_mask(), now)
        if self._meter is None:
            run.charge(now)
        if not run.advance(now):
            return False
        if not slept:
            run.unseen_s = now
        if self._meter is not None:
            self._wake_meter(run, self._meter)
        self._retime(run, now)
        if slept and isinstance(run.leaf, Parallel) and self._meter is None:
            # after the other entries of this time, as the end of another job updates all hosts
            self._kernel.at(now, SOLVE, self._arrears, (run, run.leaf))
        return True

    def _arrears(self, started: tuple[Run, Profile]) -> None:
        run, leaf = started
        if self.runs.get(run.job.id) is not run or run.leaf is not leaf:
            return
        if run.count == 1:
            return  # SimGrid updates the host of a task of one executor at its start
        recorder = self._recorder
        first = (run.mask & -run.mask).bit_length() - 1
        arrears_j = (run.extra_w - run.host_extra_w(self._machines, first)) * (
            self._kernel.clock - max(run.unseen_s, recorder.observed_s)
        )
        recorder.energy_j += arrears_j
        run.energy_j += arrears_j

    def _end(self, run: Run, state: str, code: int) -> None:
        now = self._kernel.clock
        recorder, machines, job = self._recorder, self._machines, run.job
        if self._meter is None:
            run.charge(now)
        del self.runs[job.id]
        freed, width = run.mask, run.width
        if machines.mask[UNAVAILABLE] or self._sharing:
            width = -1
            freed &= ~machines.mask[UNAVAILABLE]
            if self._sharing:
                for other in self.runs.values():
                    freed &= ~other.mask
        machines.move(freed, IDLE, now, width)
        recorder.job_rows(now, "e")
        if self._meter is not None:
            run.energy_j = self._meter.total(hostset.ids(run.mask)) - run.energy_at_s
            self._solve_later()
        else:
            # without runs no rounding error may remain
            recorder.extra_w = recorder.extra_w - run.extra_w if self.runs else 0.0
        recorder.job_ended(run, now, state, self.metadata.pop(job.id, "") if self.metadata else "")
        self._report(JobCompleted(self._kernel.date, job.id, state, code, HostSet(run.mask)))
        self._ended(job.id)

    def kill(self, job_ids: list[str]) -> None:
        """Kill jobs in the round after this event of the answer; jobs that end before then end normally."""
        self._kernel.at(self._kernel.clock, FIRST, self._kill_now, job_ids)

    def _kill_now(self, job_ids: list[str]) -> None:
        progress: dict[str, Any] = {}
        for job_id in job_ids:
            run = self.runs.get(job_id)
            if run is not None:
                progress[job_id] = run.progress_report(self._kernel.clock)
                if run.event >= 0:
                    self._kernel.forget(run.event)
                self._end(run, "COMPLETED_KILLED", run.killed_code)
        self._report(JobKilled(self._kernel.date, job_ids, progress))

    # checks -----------------------------------------------------------------------------------------------------

    def _illegal(self, job: JobSpec, why: str) -> IllegalDecisionError:
        return IllegalDecisionError(f"EXECUTE_JOB {job.id}", why)

    def _mask(self, job: JobSpec, alloc: object) -> int:
        try:
            mask = HostSet.of(alloc).mask  # type: ignore[arg-type]
        except (ValueError, TypeError) as error:
            raise self._illegal(job, f"alloc {alloc!r}: {error}") from None
        if not mask:
            raise self._illegal(job, "its allocation is empty")
        if mask & ~self._machines.everyone:
            unknown = hostset.to_text(mask & ~self._machines.everyone)
            raise self._illegal(job, f"there is no host {unknown} (hosts are 0-{len(self._machines.hosts) - 1})")
        return mask

    def _refuse(self, job: JobSpec, mask: int) -> None:
        machines = self._machines
        for host in hostset.ids(mask):
            state = machines.state_of(host)
            name = f"host {host} ({machines.hosts[host].name})"
            if state == COMPUTING and not self._sharing:
                others = ", ".join(run.job.id for run in self.runs.values() if run.mask >> host & 1)
                raise self._illegal(job, f"{name} computes {others} and time-sharing is off (--enable-compute-sharing)")
            if state not in (IDLE, COMPUTING):
                raise self._illegal(job, f"{name} is {STATE_NAMES[state]}, neither idle nor computing")

    def _refuse_odd(self, job: JobSpec, mask: int) -> None:
        """Refuse hosts in a p-state that does not compute: Batsim takes a host that begins asleep for idle."""
        for mode, _ in self._machines.members_of(mask):
            if self._recorder.energy and mode.index not in self._machines.kind_host[mode.kind].compute:
                raise self._illegal(
                    job, f"a host of it is in p-state {mode.index} ({STATE_NAMES[SLEEPING]} or virtual)"
                )

    def _executors(self, job: JobSpec, mask: int, mapping: Any, profiles: Mapping[str, Profile]) -> list[int] | None:
        """Return executor -> index in the sorted allocation, from Batsim's `mapping` object; None without one."""
        if self._machines.odd_starts:
            self._refuse_odd(job, mask)
        if not mapping:
            return None
        width = mask.bit_count()
        try:
            pairs = {int(key): int(value) for key, value in mapping.items()}
        except (AttributeError, TypeError, ValueError):
            raise self._illegal(job, f"mapping {mapping!r} is not an object of integers") from None
        if sorted(pairs) != list(range(len(pairs))):
            raise self._illegal(job, "mapping must name the executors 0, 1, 2, ... without gaps")
        if any(not 0 <= index < width for index in pairs.values()):
            raise self._illegal(job, f"mapping names a host outside its allocation of {width}")
        if len(pairs) != job.hosts and not _fits_any_width(profiles[job.profile], profiles):
            raise self._illegal(job, f"mapping has {len(pairs)} executors but the job requests {job.hosts}")
        return [pairs[executor] for executor in range(len(pairs))]


def _fits_any_width(profile: Profile, profiles: Mapping[str, Profile]) -> bool:
    if isinstance(profile, Composed):
        return all(
            isinstance(profiles[name], Parallel) and _fits_any_width(profiles[name], profiles)
            for name in profile.sequence
        )
    return isinstance(profile, Parallel) and profile.total_flops is not None


TO_COMPUTE, TO_SLEEP, IGNORED = -1, -2, -42
"""Values of pstate_changes.csv for a request, before its completion."""


class Switching:
    """The current switches of hosts."""

    def __init__(
        self, kernel: Kernel, machines: Machines, recorder: Recorder, execution: Executor, report: Report
    ) -> None:
        self._kernel = kernel
        self._machines = machines
        self._recorder = recorder
        self._execution = execution
        self._report = report
        self._requests = Requests()

    def request(self, hosts: object, state: object) -> None:
        """Apply a SET_RESOURCE_STATE. Raises IllegalDecisionError where Batsim aborts."""
        what = f"SET_RESOURCE_STATE {hosts} -> {state}"
        machines = self._machines
        if not self._recorder.energy:
            raise IllegalDecisionError(what, "changing p-states needs energy accounting (-E)")
        try:
            mask = hostset.HostSet.of(hosts).mask  # type: ignore[arg-type]
            target = int(state)  # type: ignore[call-overload]
        except (TypeError, ValueError) as error:
            raise IllegalDecisionError(what, str(error)) from None
        if not mask or mask & ~machines.everyone:
            raise IllegalDecisionError(what, f"hosts are 0-{len(machines.hosts) - 1}")
        first = machines.hosts[(mask & -mask).bit_length() - 1]
        kinds = {**dict.fromkeys(first.virtual, IGNORED), **dict.fromkeys(first.sleep_of, TO_SLEEP)}
        now, recorder = self._kernel.clock, self._recorder
        recorder.pstate_rows(now, hostset.to_text(mask), kinds.get(target, TO_COMPUTE))
        recorder.switch_request(mask.bit_count())
        self._requests.add(mask, target)
        instant = self._change(mask, target, what)
        recorder.states_row(now)
        if instant:
            self._acknowledge(instant, target, switched=False)

    def _change(self, mask: int, target: int, what: str) -> int:
        """Begin the change on each host; return the hosts that change at once."""
        machines, now = self._machines, self._kernel.clock
        instant = busy = 0
        if any(target in host.sleep_of for host in machines.kind_host):
            for run in self._execution.runs.values():
                busy |= run.mask
        groups: dict[tuple[int, bool], int] = {}
        # hosts that behave alike and are in one p-state change together
        for mode, members in machines.members_of(mask):
            host, current = machines.kind_host[mode.kind], mode.index
            first = machines.hosts[(members & -members).bit_length() - 1].name
            if current in host.virtual:
                continue  # Batsim logs an error and ignores the request, for any target
            exists = 0 <= target < len(host.pstates)
            if current in host.sleep_of:
                if target in host.sleep_of or target in host.virtual:
                    raise IllegalDecisionError(what, f"{first} sleeps; it can only be woken to a computation p-state")
                key = (host.sleep_of[current].switch_on, True)
                groups[key] = groups.get(key, 0) | members
                if not exists:
                    # Batsim detects the invalid p-state when the first host has booted
                    for boot_s, part in self._by_duration(members, host.sleep_of[current].switch_on):
                        self._kernel.at(now + boot_s, END, self._unknown, (what, part))
            elif not exists:
                self._unknown((what, members))
            elif target in host.virtual:
                continue  # ignored like requests to hosts in transition
            elif target in host.sleep_of:
                if busy & members:
                    bit = busy & members & -(busy & members)
                    name = machines.hosts[bit.bit_length() - 1].name
                    jobs = ", ".join(run.job.id for run in self._execution.runs.values() if run.mask & bit)
                    raise IllegalDecisionError(what, f"{name} runs {jobs}; kill or wait before it sleeps")
                key = (host.sleep_of[target].switch_off, False)
                groups[key] = groups.get(key, 0) | members
            else:
                instant |= members
        for (virtual, waking), members in groups.items():
            middle = SWITCHING_ON if waking else SWITCHING_OFF
            machines.move(members, middle, now)
            machines.set_pstate(members, virtual)
            self._execution.refresh(members, now)
            for duration, part in self._by_duration(members, virtual):
                self._kernel.at(now + duration, END, self._arrived, (part, target, middle))
        if instant:
            machines.set_pstate(instant, target)
            self._execution.refresh(instant, now)
        return instant

    def _unknown(self, decision: tuple[str, int]) -> None:
        what, members = decision
        host = self._machines.hosts[(members & -members).bit_length() - 1]
        raise IllegalDecisionError(what, f"{host.name} has p-states 0..{len(host.pstates) - 1}")

    def _by_duration(self, mask: int, virtual: int) -> list[tuple[float, int]]:
        """Return the durations in s of a transition with their hosts, without those that never end."""
        parts: dict[float, int] = {}
        for kind, members in enumerate(self._machines.kind_mask):
            if members & mask:
                duration = self._machines.kind_host[kind].pstates[virtual].duration_s
                parts[duration] = parts.get(duration, 0) | (members & mask)
        parts.pop(math.inf, None)
        return list(parts.items())

    def _arrived(self, arrival: tuple[int, int, int]) -> None:
        members, target, middle = arrival
        machines, now = self._machines, self._kernel.clock
        self._recorder.look(members, now)
        machines.set_pstate(members, target)
        self._execution.refresh(members, now)
        machines.move(members, IDLE if middle == SWITCHING_ON else SLEEPING, now)
        self._kernel.at(now, ACKNOWLEDGE, self._switched, (members, target))

    def _switched(self, arrival: tuple[int, int]) -> None:
        members, target = arrival
        self._acknowledge(members, target, switched=True)

    def _acknowledge(self, mask: int, target: int, switched: bool) -> None:
        """Acknowledge the requests that are complete with these hosts in their p-state."""
        now, recorder = self._kernel.clock, self._recorder
        for hosts in self._requests.arrived(mask, target):
            recorder.pstate_rows(now, hosts, target)
            if switched:
                recorder.states_row(now)
            self._report(ResourceStateChanged(self._kernel.date, hosts, str(target)))
