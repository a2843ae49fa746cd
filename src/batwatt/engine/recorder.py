"""The record of the embedded engine: energy, the rows of Batsim's files, the totals of the schedule."""

from __future__ import annotations

from collections.abc import Mapping
from sys import intern
from typing import Final

import numpy as np

from batwatt._version import __version__
from batwatt.engine.machines import Machines
from batwatt.engine.runs import Meter, Run
from batwatt.model import hostset
from batwatt.model.record import SUCCESSFUL, JobRows, Record
from batwatt.model.workload import NO_WALLTIME, JobSpec

ENGINE_VERSION: Final = f"batwatt-{__version__}"
NOT_RUN: Final = float("nan")
"""Times and energy of a rejected job."""


class Recorder:
    """Energy meter and record; `extra_w` is the power in W of running jobs beyond the idle power of their hosts."""

    def __init__(self, machines: Machines, energy: bool) -> None:
        self.record = Record(energy=energy)
        self.energy = energy
        self.energy_j = 0.0
        self.meter: Meter | None = None
        self.extra_w = 0.0
        self._machines = machines
        self._updated_s = 0.0
        self.observed_s = 0.0
        self._first_submission_j = -1.0
        self._last_end_j = -1.0
        self.fresh_rows: dict[str, int] = {}
        self._switches = 0
        self._switch_requests = 0
        hosts = machines.hosts if energy else ()
        for index in sorted({host.initial_pstate for host in hosts}):
            members = [host.id for host in hosts if host.initial_pstate == index]
            self.record.pstate_changes.append((0.0, str(hostset.HostSet.of(members)), index))

    def update(self, now: float) -> None:
        """Integrate the power up to `now` in s; call it before each change of power that Batsim observes."""
        if self.meter is not None:
            hosts = range(len(self._machines.hosts))
            self.meter.look(hosts, now)
            self.energy_j = self.meter.total(hosts)
            return
        self.observed_s = now
        self._integrate(now)

    def look(self, mask: int, now: float) -> None:
        """Integrate the power before a change at which SimGrid updates only some hosts (see `Executor`)."""
        if self.meter is not None:
            self.meter.look(hostset.ids(mask), now)
            return
        self._integrate(now)

    def _integrate(self, now: float) -> None:
        if now > self._updated_s:
            self.energy_j += (now - self._updated_s) * (self._machines.base_w + self.extra_w)
            self._updated_s = now

    def energy_at(self, now: float) -> float:
        """Return the energy in J until `now` without a change since the last update; the recorder does not change."""
        if self.meter is not None or now < self._updated_s:
            return self.energy_j
        return self.energy_j + (now - self._updated_s) * (self._machines.base_w + self.extra_w)

    def first_submission(self, now: float) -> None:
        """Note the energy at the first submission of a workload's job."""
        self.update(now)
        self._first_submission_j = self.energy_j

    def energy_row(self, now: float, kind: str) -> None:
        """Add a row of consumed_energy; `kind`: s (job start), e (job end), p (p-state request or completion)."""
        if not self.energy:
            return
        rows, energy = self.record.consumed_energy, self.energy_j
        rows.times.append(now)
        rows.energies.append(energy)
        rows.kinds.append(kind)
        rows.lows.append(self._machines.epsilon_w)
        if kind == "e":
            self._last_end_j = energy

    def states_row(self, now: float) -> None:
        """Add a row of machine_states."""
        rows = self.record.machine_states
        rows.times.append(now)
        rows.counts.fromlist(self._machines.seen)

    def job_rows(self, now: float, kind: str) -> None:
        """Add both rows of the start or end of a job after the move of its hosts, before the change of its power."""
        self.update(now)
        self.energy_row(now, kind)
        self.states_row(now)

    def pstate_rows(self, now: float, hosts: str, value: int) -> None:
        """Add both rows of a p-state, or of a request (-1: on, -2: off, -42: a virtual p-state)."""
        self.update(now)
        self.energy_row(now, "p")
        self.record.pstate_changes.append((now, hosts, value))

    def switch_request(self, hosts: int) -> None:
        """Count a request to change the p-state of `hosts` hosts."""
        self._switch_requests += 1
        self._switches += hosts

    def job_ended(self, run: Run, now: float, state: str, metadata: str) -> None:
        """Add the row of a job that ran."""
        energy_j = run.energy_j if self.energy else -1.0
        # many runs have the same hosts
        self._job_row(run.job, state, run.start_s, now, intern(hostset.to_text(run.mask)), energy_j, metadata)
        self.fresh_rows[run.job.id] = len(self.record.jobs.ids) - 1

    def job_rejected(self, job: JobSpec, metadata: str) -> None:
        """Add the row of a rejected job."""
        self._job_row(job, "REJECTED", NOT_RUN, NOT_RUN, "", NOT_RUN, metadata)

    def _job_row(
        self, job: JobSpec, state: str, start_s: float, end_s: float, hosts: str, energy_j: float, metadata: str
    ) -> None:
        rows = self.record.jobs
        rows.ids.append(job.id)
        rows.profiles.append(job.profile)
        rows.submitted.append(job.submit_time_s)
        rows.widths.append(job.hosts)
        rows.walltimes.append(NO_WALLTIME if job.walltime_s is None else job.walltime_s)
        rows.states.append(state)
        rows.started.append(start_s)
        rows.ended.append(end_s)
        rows.allocated.append(hosts)
        rows.energies.append(energy_j)
        rows.metadata.append(metadata)

    def set_metadata(self, job_id: str, metadata: str) -> bool:
        """Set the metadata of a job that ended just now; return False for other jobs."""
        row = self.fresh_rows.get(job_id)
        if row is None:
            return False
        self.record.jobs.metadata[row] = metadata
        return True

    def close(self) -> Record:
        """Compute the totals of the schedule and return the record.

        `scheduling_time` and `simulation_time` are 0: Batsim's are wall-clock seconds, which differ between equal runs
        (a run's metadata has its duration).
        """
        consumed_j = self._last_end_j - self._first_submission_j if self.energy else 0.0
        switched = self._switch_requests, self._switches
        hosts, in_state_s = len(self._machines.hosts), self._machines.times_in_state()
        self.record.schedule = totals(self.record.jobs, consumed_j, hosts, *switched, in_state_s)
        return self.record


def totals(
    rows: JobRows, consumed_j: float, hosts: int, requests: int, switches: int, in_state_s: Mapping[str, float]
) -> dict[str, float | int | str]:
    """Return the totals of a schedule: energy in J, requests to switch, switched hosts, seconds in each state."""
    times = rows.times()
    count, success = len(rows), rows.states.count(SUCCESSFUL)
    ran = ~np.isnan(times["starting_time"])
    finished = int(ran.sum())
    finish, waiting, turnaround, stretch = (
        times[name][ran].tolist() for name in ("finish_time", "waiting_time", "turnaround_time", "stretch")
    )
    each = max(1, count)
    return {
        "batsim_version": ENGINE_VERSION,
        "consumed_joules": consumed_j,
        "makespan": max([0.0, *finish]),
        "max_slowdown": max([0.0, *stretch]),
        "max_turnaround_time": max([0.0, *turnaround]),
        "max_waiting_time": max([0.0, *waiting]),
        "mean_slowdown": sum(stretch) / each,
        "mean_turnaround_time": sum(turnaround) / each,
        "mean_waiting_time": sum(waiting) / each,
        "nb_computing_machines": hosts,
        "nb_grouped_switches": requests,
        "nb_jobs": count,
        "nb_jobs_finished": finished,
        "nb_jobs_killed": finished - success,
        "nb_jobs_rejected": count - finished,
        "nb_jobs_success": success,
        "nb_machine_switches": switches,
        "scheduling_time": 0.0,
        "simulation_time": 0.0,
        "success_rate": success / each,
        **{f"time_{name}": seconds for name, seconds in sorted(in_state_s.items())},
    }
