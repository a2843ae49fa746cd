"""What the embedded engine writes down: energy, the rows of Batsim's files, the totals of the schedule."""

from __future__ import annotations

from typing import Final

from batwatt import __version__
from batwatt.engine.machines import Machines
from batwatt.engine.sharing import Meter
from batwatt.engine.tasks import Run
from batwatt.model import hostset
from batwatt.model.record import JobRow, Record
from batwatt.model.workload import NO_WALLTIME, Job

ENGINE_VERSION: Final = f"batwatt-{__version__}"
NULL_RUNTIME_S: Final = 1e-5
"""Batsim writes this runtime for a job that ends the moment it starts."""


class Recorder:
    """Energy meter and record; `extra_w` is what running jobs draw beyond their hosts' idle power."""

    def __init__(self, machines: Machines, energy: bool) -> None:
        self.record = Record(energy=energy)
        self.energy = energy
        self.energy_j = 0.0
        self.meter: Meter | None = None
        self.extra_w = 0.0
        self._machines = machines
        self._updated_s = 0.0
        self.observed_s = 0.0
        self._last_row: tuple[float, float] = (0.0, 0.0)
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
        """Integrate the power up to `now`; to be called before anything that Batsim observes changes it."""
        if self.meter is not None:
            hosts = range(len(self._machines.hosts))
            self.meter.look(hosts, now)
            self.energy_j = self.meter.total(hosts)
            return
        self.observed_s = now
        self._integrate(now)

    def look(self, mask: int, now: float) -> None:
        """The same before a change at which SimGrid looks at some hosts only (see `Executor`)."""
        if self.meter is not None:
            self.meter.look(hostset.ids(mask), now)
            return
        self._integrate(now)

    def _integrate(self, now: float) -> None:
        if now > self._updated_s:
            self.energy_j += (now - self._updated_s) * (self._machines.base_w + self.extra_w)
            self._updated_s = now

    def first_submission(self, now: float) -> None:
        """Note the energy at the first submission of a workload's job."""
        self.update(now)
        self._first_submission_j = self.energy_j

    def energy_row(self, now: float, kind: str) -> None:
        """A row of consumed_energy; `kind`: s (job start), e (job end), p (p-state request or completion)."""
        if not self.energy:
            return
        energy = self.energy_j
        last_s, last_j = self._last_row
        mean = (energy - last_j) / (now - last_s) if now > last_s else None
        self.record.consumed_energy.append((now, energy, kind, self._machines.epsilon_w, mean))
        self._last_row = (now, energy)
        if kind == "e":
            self._last_end_j = energy

    def states_row(self, now: float) -> None:
        """A row of machine_states."""
        sleeping, on, off, idle, computing, _ = self._machines.seen
        self.record.machine_states.append((now, sleeping, on, off, idle, computing))

    def job_rows(self, now: float, kind: str) -> None:
        """Energy up to `now` and both rows for the start or end of a job: its hosts have moved, its power has not."""
        self.update(now)
        self.energy_row(now, kind)
        self.states_row(now)

    def pstate_row(self, now: float, hosts: str, value: int) -> None:
        """A row of pstate_changes: a p-state, or -1, -2, -42 for a request (on, off, a virtual one)."""
        self.record.pstate_changes.append((now, hosts, value))

    def switch_request(self, hosts: int) -> None:
        """Count a request to change p-states."""
        self._switch_requests += 1
        self._switches += hosts

    def job_ended(self, run: Run, now: float, state: str, metadata: str) -> None:
        """The row of a job that ran, and its share in the totals."""
        job = run.job
        workload, _, name = job.id.partition("!")
        start = run.start_s
        runtime = now - start
        finish = now
        if not runtime > 0.0:
            runtime = NULL_RUNTIME_S
            finish = start + runtime
        turnaround = finish - job.submit_time_s
        success = state == "COMPLETED_SUCCESSFULLY"
        self.record.jobs.append(
            JobRow(
                name, workload, job.profile, job.submit_time_s, job.hosts, _walltime(job), int(success), state,
                start, runtime, finish, start - job.submit_time_s, turnaround, turnaround / runtime,
                hostset.to_text(run.mask), run.energy_j if self.energy else -1.0, metadata,
            )
        )  # fmt: skip
        self.fresh_rows[job.id] = len(self.record.jobs) - 1

    def job_rejected(self, job: Job, metadata: str) -> None:
        """The row of a job that was refused."""
        self.record.jobs.append(
            JobRow(job.name, job.workload, job.profile, job.submit_time_s, job.hosts, _walltime(job), 0, "REJECTED",
             None, None, None, None, None, None, "", None, metadata)
        )  # fmt: skip

    def close(self) -> Record:
        """Fill in the schedule's totals.

        Batsim's `scheduling_time` and `simulation_time` are wall-clock seconds, which would make equal runs differ:
        they are 0 here (a run's metadata has its duration).
        """
        rows = self.record.jobs
        ran = [row for row in rows if row.starting_time is not None]
        success = sum(row.success for row in rows)
        count, finished = max(1, len(rows)), len(ran)
        finish, waiting, turnaround, stretch = (
            [getattr(row, name) for row in ran]
            for name in ("finish_time", "waiting_time", "turnaround_time", "stretch")
        )
        consumed = self._last_end_j - self._first_submission_j if self.energy else 0.0
        times = self._machines.times_in_state()
        self.record.schedule = {
            "batsim_version": ENGINE_VERSION,
            "consumed_joules": consumed,
            "makespan": max([0.0, *finish]),
            "max_slowdown": max([0.0, *stretch]),
            "max_turnaround_time": max([0.0, *turnaround]),
            "max_waiting_time": max([0.0, *waiting]),
            "mean_slowdown": sum(stretch) / count,
            "mean_turnaround_time": sum(turnaround) / count,
            "mean_waiting_time": sum(waiting) / count,
            "nb_computing_machines": len(self._machines.hosts),
            "nb_grouped_switches": self._switch_requests,
            "nb_jobs": len(rows),
            "nb_jobs_finished": finished,
            "nb_jobs_killed": finished - success,
            "nb_jobs_rejected": len(rows) - finished,
            "nb_jobs_success": success,
            "nb_machine_switches": self._switches,
            "scheduling_time": 0.0,
            "simulation_time": 0.0,
            "success_rate": success / count,
            **{f"time_{name}": seconds for name, seconds in sorted(times.items())},
        }
        return self.record


def _walltime(job: Job) -> float:
    return NO_WALLTIME if job.walltime_s is None else job.walltime_s
