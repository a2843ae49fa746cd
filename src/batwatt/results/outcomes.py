"""Outcome of each job of a workload, for any scheduler and any number of runs.

For a job with the first submission s, the length p at full speed (s), and the run, in parts or not, that completed at e
and began at b:

    wait_s      b - s
    full_speed_slowdown    as in `metrics`: 1 for a job that starts at once and runs at full speed
    attempts    runs, each with all of its parts
    kills       runs that the scheduler killed and whose work was lost
    energy_j    energy of the hosts of all its rows while these ran, overhead of checkpoints included
    state       finished, or the end of its last run: killed, walltime, failed, rejected, or unfinished
    cause       cause of a rejection

Jobs that a scheduler registered itself are left out.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from batwatt.model.platform import Platform
from batwatt.model.workload import Workload
from batwatt.results.metrics import turnarounds
from batwatt.results.rejections import causes
from batwatt.results.run_files import FAILED, WALLTIME, RunData
from batwatt.results.run_table import Floats, RunTable
from batwatt.units import REPORTED_S

STATES = ("finished", "killed", "walltime", "failed", "rejected", "unfinished")


@dataclass(frozen=True)
class JobOutcomes:
    """Columns of a row for each job of the workload, in its order; times in s, NaN where there is none."""

    submit_s: Floats
    hosts: Floats
    length_s: Floats
    state: np.ndarray
    cause: np.ndarray
    wait_s: Floats
    end_s: Floats
    attempts: Floats
    kills: Floats
    energy_j: Floats
    full_speed_slowdown: Floats


def job_outcomes(table: RunTable, data: RunData, workload: Workload, platform: Platform) -> JobOutcomes:
    """Return the outcomes of the jobs of a workload in a run, of its table without a window. Raises InputError."""
    chains = table.chains
    count = len(workload.jobs)
    declared = table.in_workload
    runs = declared & ~table.overhead & ~np.isnan(chains.start_s)
    begin_s = np.full(count, np.nan)
    rows = np.flatnonzero(table.completed & declared)
    begin_s[table.job[rows]] = chains.start_s[rows]
    energies = np.zeros(count)
    drawn = data.job_energies
    rows = np.flatnonzero(declared & ~np.isnan(drawn))
    np.add.at(energies, table.job[rows], drawn[rows])
    firsts = np.unique(chains.first[runs])
    attempts = np.bincount(table.job[firsts], minlength=count).astype(np.float64)
    kills = np.bincount(table.job[table.lost & declared], minlength=count).astype(np.float64)
    submit_s = np.array([job.submit_time_s for job in workload.jobs])
    rows, took_s, full_s = turnarounds(table)
    slowdown = np.full(count, np.nan)
    slowdown[table.job[rows]] = np.divide(took_s, full_s, out=np.full(len(rows), np.nan), where=full_s >= REPORTED_S)
    state, cause = _states(table, count), np.full(count, "", dtype=object)
    row_causes = causes(table, workload, len(platform))
    rows = np.flatnonzero((row_causes != "") & declared)
    cause[table.job[rows]] = row_causes[rows]
    return JobOutcomes(
        submit_s=submit_s,
        hosts=np.array([job.hosts for job in workload.jobs], dtype=np.float64),
        length_s=table.declared.left_s,
        state=state,
        cause=np.where(state == "rejected", cause, ""),
        wait_s=begin_s - submit_s,
        end_s=table.completed_s,
        attempts=attempts,
        kills=kills,
        energy_j=np.where(attempts > 0.0, energies, np.nan),
        full_speed_slowdown=slowdown,
    )


def _states(table: RunTable, count: int) -> np.ndarray:
    """Return the state of each of `count` jobs: finished, or by its last row."""
    final, counted = table.state, table.in_workload & ~table.overhead
    ends = (table.lost, final == WALLTIME, final == FAILED, table.rejected)
    of_row = np.select([end & counted for end in ends], STATES[1:5], STATES[5])
    rows = np.flatnonzero(counted)
    # a rejected job has no end: sort it last
    rows = rows[np.lexsort((rows, np.nan_to_num(table.finish_s[rows], nan=np.inf)))]
    state = np.full(count, STATES[5], dtype=object)
    state[table.job[rows]] = of_row[rows]
    return np.where(np.isnan(table.completed_s), state, STATES[0])
