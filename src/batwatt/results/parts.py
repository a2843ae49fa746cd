"""Chains of rows of `jobs.csv`: a run may come in parts, and take longer than its work.

A *migrated* run was killed to go on elsewhere, as another run of the job with the rest (metadata `MIGRATED`). A
*chain* is this run and those that follow it, up to one that was not migrated: one run, in parts. All parts end like
the last one; a chain whose rest waits at the end of the window goes on, a chain without the rest is aborted.

A *saved* run was killed to be checkpointed (metadata `CHECKPOINTED`); its work counts, whatever the end of the job. If
the checkpoint, the next row of its job, was killed or failed, the run counts as killed, not as saved. After a
checkpoint, a kill without a checkpoint costs only the run since the checkpoint: the other runs are one chain, from the
first saved one to the one that completes, and each killed run is a chain of its own. Checkpoints and recoveries are
*overhead* (metadata `CHECKPOINT`, `RECOVERY`): their rows are no run of the job, whatever their state. A *suspended*
run (metadata `SUSPENDED`) was saved without a checkpoint, and so was each completed piece but the last (metadata
`PIECE`).

After any of these, or alone, metadata may have `OVERHEAD`: seconds of the run without work, in which the job wrote a
checkpoint or recovered. The work of the run is less in that ratio.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from batwatt.model.workload import CHECKPOINT, CHECKPOINTED, MIGRATED, OVERHEAD, PIECE, RECOVERY, SUSPENDED
from batwatt.results.origins import Origins
from batwatt.results.run_files import KILLED, SUCCESSFUL, Columns, numbers, texts

Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]
Rows = NDArray[np.intp]


@dataclass(frozen=True, slots=True)
class Kinds:
    """Masks of the kinds of rows: a row is of at most one kind, most rows of none.

    `lost` are the runs killed by the end of the window whose work was lost; `productive` is the share of work in
    each row's time.
    """

    migrated: Mask
    saved: Mask
    lost: Mask
    checkpoint: Mask
    recovery: Mask
    productive: Floats

    @property
    def overhead(self) -> Mask:
        """Rows of checkpoints and recoveries, which are no runs of a job."""
        return self.checkpoint | self.recovery


@dataclass(frozen=True, slots=True)
class Chains:
    """For each row its chain: first and last row, and the start in s.

    `execution_s` is the time in which the job had its hosts, `work_s` is that time without the overhead. The execution
    of a saved job includes the overhead of its lost runs: it waits while it has no hosts, and during lost work.
    """

    first: Rows
    last: Rows
    start_s: Floats
    execution_s: Floats
    work_s: Floats

    @property
    def several(self) -> Mask:
        """Mask of the chains of several rows, between which the job may have waited."""
        return self.first != self.last


def kinds_of(jobs: Columns, origins: Origins, beyond: Mask) -> Kinds:
    """Return the kind of each row of `jobs.csv`; rows `beyond` the window have lost nothing."""
    metadata, state = texts(jobs, "metadata").copy(), texts(jobs, "final_state")
    ran_s = numbers(jobs, "execution_time")
    productive = np.ones(len(metadata))
    for row in np.flatnonzero(metadata != "").tolist():
        if match := OVERHEAD.search(metadata[row]):
            if ran_s[row] > 0.0:
                productive[row] = max(0.0, 1.0 - float(match[1]) / ran_s[row])
            metadata[row] = OVERHEAD.sub("", metadata[row]).strip()
    checkpoint, recovery, migrated, saved, suspended, piece = (
        metadata == text for text in (CHECKPOINT, RECOVERY, MIGRATED, CHECKPOINTED, SUSPENDED, PIECE)
    )
    killed = state == KILLED
    saved, migrated = saved & killed, migrated & killed
    if saved.any():
        broken = checkpoint & ~beyond & (state != SUCCESSFUL)
        order, fresh = _by_job(jobs, origins, origins.in_workload)
        saved[order[:-1]] &= ~(broken[order[1:]] & ~fresh[1:])
    saved |= (suspended & killed) | (piece & (state == SUCCESSFUL))
    lost = killed & ~(beyond | migrated | saved | checkpoint | recovery)
    return Kinds(migrated, saved, lost, checkpoint, recovery, productive)


def chains_of(jobs: Columns, origins: Origins, kinds: Kinds) -> Chains:
    """Return the chain of each row; without migrated and saved runs each row is a chain of its own."""
    start, execution = (numbers(jobs, name) for name in ("starting_time", "execution_time"))
    rows = np.arange(len(start))
    if not ((kinds.migrated | kinds.saved) & origins.in_workload).any():
        return Chains(rows, rows, start, execution, execution * kinds.productive)
    order, fresh = _by_job(jobs, origins, origins.in_workload & ~kinds.overhead)
    # first runs: rows up to one that was not migrated; then chains of runs, up to one that was neither saved nor lost
    begins = fresh.copy()
    begins[1:] |= ~kinds.migrated[order[:-1]]
    firsts = np.flatnonzero(begins)
    ends = order[np.append(firsts[1:], len(rows)) - 1]
    goes_on = kinds.saved[ends] | kinds.lost[ends]
    opens = fresh[firsts]
    opens[1:] |= ~goes_on[:-1]
    chain_of_run = np.where(kinds.lost[ends], len(rows) + np.arange(len(ends)), np.cumsum(opens))
    chain = chain_of_run[np.cumsum(begins) - 1]
    together = np.argsort(chain, kind="stable")
    order, chain = order[together], chain[together]
    firsts = np.flatnonzero(np.diff(chain, prepend=-1))
    lasts = np.append(firsts[1:], len(rows)) - 1
    lasted_s = np.nan_to_num(execution)
    single = firsts == lasts
    whole_s, work_s = (
        np.where(single, values[order[firsts]], np.add.reduceat(np.nan_to_num(values)[order], firsts))
        for values in (execution, execution * kinds.productive)
    )
    # overhead within lost runs, and rows of overhead
    apart = origins.in_workload & (kinds.overhead | kinds.lost)
    each_s = (lasted_s * np.where(kinds.overhead, 1.0, 1.0 - kinds.productive))[apart]
    extra_s = np.bincount(origins.job[apart], weights=each_s, minlength=int(origins.job.max()) + 1)
    of_chain = order[firsts]
    whole_s += np.where(single, 0.0, extra_s[origins.job[of_chain]])
    number = np.empty(len(rows), dtype=np.intp)
    number[order] = np.repeat(np.arange(len(firsts)), lasts - firsts + 1)
    first = order[firsts][number]
    return Chains(first, order[lasts][number], start[first], whole_s[number], work_s[number])


def _by_job(jobs: Columns, origins: Origins, counted: Mask) -> tuple[Rows, Mask]:
    """Return all rows sorted by job and time, waiting rows last, and a mask of the first row of each job.

    A row that is not `counted` is a group of its own, as jobs that the scheduler registered itself have no parts.
    """
    rows = np.arange(len(origins.job))
    key = np.where(counted, origins.job, origins.job.max() + 1 + rows)
    times = (np.nan_to_num(numbers(jobs, name), nan=np.inf) for name in ("finish_time", "starting_time"))
    order = np.lexsort((rows, *times, key))
    fresh = np.ones(len(order), dtype=np.bool_)
    fresh[1:] = np.diff(key[order]) != 0
    return order, fresh
