"""What became of each job of a workload, whatever scheduler ran it and in however many runs.

Of a job with the first submission s, the length p at full speed (s), and the run, in parts or not, that completed at e
and began at b:

    wait_s      b - s
    stretch     (e - s) / p: 1 for a job that starts at once and runs at full speed
    attempts    runs, each with all of its parts
    kills       runs that the scheduler killed and whose work was lost
    energy_j    energy of the hosts of all its rows while these ran, overhead of checkpoints included
    state       finished, killed (it was, and never completed), rejected, or unfinished

Jobs that a scheduler made up are left out.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from batwatt.model.workload import Workload
from batwatt.results.parts import Floats
from batwatt.results.run_data import RunData
from batwatt.results.run_table import job_rows_of, run_table_of
from batwatt.results.work import run_times_s

STATES = ("finished", "killed", "rejected", "unfinished")


@dataclass(frozen=True)
class JobOutcomes:
    """Columns of a row for each job of the workload, in its order; times in s, NaN where there is none."""

    submit_s: Floats
    hosts: Floats
    length_s: Floats
    state: np.ndarray
    wait_s: Floats
    end_s: Floats
    attempts: Floats
    kills: Floats
    energy_j: Floats

    @property
    def stretch(self) -> Floats:
        """Of the jobs that completed."""
        return (self.end_s - self.submit_s) / self.length_s

    @property
    def finished(self) -> np.ndarray:
        """Which jobs completed."""
        return ~np.isnan(self.end_s)

    @property
    def useful_host_s(self) -> float:
        """Host seconds of work, at full speed, of the jobs that completed."""
        work = (self.length_s * self.hosts)[self.finished]
        return float(np.nansum(work))


def job_outcomes(data: RunData, workload: Workload, reference_flops: float) -> JobOutcomes:
    """What became of the jobs of a workload in a run; `reference_flops` is the full speed in flop/s. InputError."""
    found = job_rows_of(data, workload, None)
    origins, kinds, chains = found.origins, found.kinds, found.chains
    table = run_table_of(found, workload, None)
    count = len(workload.jobs)
    known = origins.known
    runs = known & ~kinds.overhead & ~np.isnan(chains.start_s)
    begin_s = np.full(count, np.nan)
    rows = np.flatnonzero(table.completed & known)
    begin_s[origins.job[rows]] = chains.start_s[rows]
    energies = np.zeros(count)
    drawn = data.job_energies
    rows = np.flatnonzero(known & ~np.isnan(drawn))
    np.add.at(energies, origins.job[rows], drawn[rows])
    firsts = np.unique(chains.first[runs])
    attempts = np.bincount(origins.job[firsts], minlength=count).astype(np.float64)
    kills = np.bincount(origins.job[kinds.lost & known], minlength=count).astype(np.float64)
    submit_s = np.array([job.submit_time_s for job in workload.jobs])
    finished = ~np.isnan(table.completed_s)
    state = np.select([finished, kills > 0, table.out], STATES[:3], STATES[3])
    return JobOutcomes(
        submit_s=submit_s,
        hosts=np.array([job.hosts for job in workload.jobs], dtype=np.float64),
        length_s=run_times_s(workload, reference_flops),
        state=state,
        wait_s=begin_s - submit_s,
        end_s=table.completed_s,
        attempts=attempts,
        kills=kills,
        energy_j=np.where(attempts > 0.0, energies, np.nan),
    )
