"""What the embedded engine writes down: energy, the rows of Batsim's files, the totals of the schedule."""

from __future__ import annotations

from batwatt import __version__
from batwatt.engine.machines import Machines
from batwatt.engine.tasks import Run
from batwatt.model.record import Record
from batwatt.model.workload import NO_WALLTIME, Job

ENGINE_VERSION = f"batwatt-{__version__}"
NULL_RUNTIME_S = 1e-5
"""Batsim writes this runtime for a job that ends the moment it starts."""


class Journal:
    """Energy meter and record; `extra_w` is what running jobs draw beyond their hosts' idle power."""

    def __init__(self, machines: Machines, energy: bool) -> None:
        self.record = Record(energy=energy)
        self.energy = energy
        self.energy_j = 0.0
        self.extra_w = 0.0
        self._machines = machines
        self._updated_s = 0.0
        self.observed_s = 0.0
        self._last_row: tuple[float, float] = (0.0, 0.0)
        self._first_submission_j: float | None = None
        self._last_end_j = 0.0
        self._totals = {"jobs": 0, "success": 0, "killed": 0, "rejected": 0, "switches": 0, "grouped": 0}
        self._sums = [0.0, 0.0, 0.0]
        self._maxima = [0.0, 0.0, 0.0]
        self._makespan = 0.0
        hosts = machines.hosts
        for index in sorted({host.initial_pstate for host in hosts}):
            members = [host.id for host in hosts if host.initial_pstate == index]
            self.record.pstate_changes.append((0.0, _intervals(members), index))

    def update(self, now: float) -> None:
        """Integrate the power up to `now`; to be called before anything that Batsim observes changes it."""
        self.integrate(now)
        self.observed_s = now

    def integrate(self, now: float) -> None:
        """The same before a change inside a job, at which Batsim does not look at the hosts (see `Execution`)."""
        elapsed = now - self._updated_s
        machines = self._machines
        if elapsed > 0.0:
            self.energy_j += elapsed * (machines.base_w + self.extra_w)
            self._updated_s = now
        if machines.base_w != machines.true_base_w:
            machines.settle_base()

    def submission(self, now: float) -> None:
        """Note the energy at the first submission."""
        if self._first_submission_j is None:
            self.update(now)
            self._first_submission_j = self.energy_j

    def energy_row(self, now: float, kind: str) -> None:
        """A row of consumed_energy; `kind`: s (job start), e (job end), p (p-state request or completion)."""
        if not self.energy:
            return
        energy = self.energy_j
        last_s, last_j = self._last_row
        mean = (energy - last_j) / (now - last_s) if now - last_s > 0.0 else None
        self.record.consumed_energy.append((now, energy, kind, self._machines.epsilon_w, mean))
        self._last_row = (now, energy)
        if kind == "e":
            self._last_end_j = energy

    def states_row(self, now: float) -> None:
        """A row of machine_states."""
        self.record.machine_states.append((now, *self._machines.counts()))

    def pstate_row(self, now: float, hosts: str, value: int) -> None:
        """A row of pstate_changes: a p-state, or -1, -2, -42 for a request (on, off, a virtual one)."""
        self.record.pstate_changes.append((now, hosts, value))

    def switch_request(self, hosts: int) -> None:
        """Count a request to change p-states."""
        self._totals["grouped"] += 1
        self._totals["switches"] += hosts

    def job_ended(self, run: Run, now: float, state: str, metadata: str) -> None:
        """The row of a job that ran, and its share in the totals."""
        job = run.job
        runtime = now - run.start_s
        if not runtime > 0.0:
            runtime = NULL_RUNTIME_S
        waiting = run.start_s - job.submit_time_s
        turnaround = waiting + runtime
        stretch = turnaround / runtime
        success = state == "COMPLETED_SUCCESSFULLY"
        finish = run.start_s + runtime
        self.record.jobs.append(
            (
                job.name, job.workload, job.profile, job.submit_time_s, job.hosts, _walltime(job), int(success), state,
                run.start_s, runtime, finish, waiting, turnaround, stretch, run.mask,
                run.energy_j if self.energy else -1.0, metadata,
            )
        )  # fmt: skip
        totals = self._totals
        totals["jobs"] += 1
        totals["success" if success else "killed"] += 1
        sums, maxima = self._sums, self._maxima
        for index, value in enumerate((waiting, turnaround, stretch)):
            sums[index] += value
            if value > maxima[index]:
                maxima[index] = value
        if finish > self._makespan:
            self._makespan = finish

    def job_rejected(self, job: Job, metadata: str) -> None:
        """The row of a job that was refused."""
        self.record.jobs.append(
            (job.name, job.workload, job.profile, job.submit_time_s, job.hosts, _walltime(job), 0, "REJECTED",
             None, None, None, None, None, None, None, None, metadata)
        )  # fmt: skip
        self._totals["jobs"] += 1
        self._totals["rejected"] += 1

    def close(self) -> Record:
        """Fill in the schedule's totals.

        Batsim's `scheduling_time` and `simulation_time` are wall-clock seconds, which would make equal runs differ:
        they are 0 here (a run's metadata has its duration).
        """
        totals, count = self._totals, max(1, self._totals["jobs"])
        finished = totals["success"] + totals["killed"]
        consumed = self._last_end_j - (self._first_submission_j or 0.0) if self.energy and finished else 0.0
        times = self._machines.times_in_state()
        self.record.schedule = {
            "batsim_version": ENGINE_VERSION,
            "consumed_joules": consumed,
            "makespan": self._makespan,
            "max_slowdown": self._maxima[2],
            "max_turnaround_time": self._maxima[1],
            "max_waiting_time": self._maxima[0],
            "mean_slowdown": self._sums[2] / count,
            "mean_turnaround_time": self._sums[1] / count,
            "mean_waiting_time": self._sums[0] / count,
            "nb_computing_machines": len(self._machines.hosts),
            "nb_grouped_switches": totals["grouped"],
            "nb_jobs": totals["jobs"],
            "nb_jobs_finished": finished,
            "nb_jobs_killed": totals["killed"],
            "nb_jobs_rejected": totals["rejected"],
            "nb_jobs_success": totals["success"],
            "nb_machine_switches": totals["switches"],
            "scheduling_time": 0.0,
            "simulation_time": 0.0,
            "success_rate": totals["success"] / count,
            **{f"time_{name}": seconds for name, seconds in sorted(times.items())},
        }
        return self.record


def _walltime(job: Job) -> float:
    return NO_WALLTIME if job.walltime_s is None else job.walltime_s


def _intervals(ids: list[int]) -> str:
    from batwatt.model.hostset import HostSet

    return str(HostSet.of(ids))
