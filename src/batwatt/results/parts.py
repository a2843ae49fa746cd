"""Which rows of `jobs.csv` belong together: a run may come in parts, and cost more than its work.

A *migrated* run was killed to go on elsewhere, as a run of the same job with what was left (metadata `MIGRATED`). It
and the runs that follow it, up to one that was not migrated, are a *chain*: one run, in parts. All parts share the fate
of the last one; a chain whose rest waits at the end of the window goes on, one whose rest never came is aborted.

A *saved* run was killed to be checkpointed (metadata `CHECKPOINTED`); its work is done, whatever becomes of the job. It
is not if the checkpoint, the next row of its job, was killed or failed: then the run was killed like any other. Once
something is saved, a kill without a checkpoint costs the run since then only: all others are a chain, from the first
that was saved to the one that completes, and each that was killed is one of its own. What checkpoints and recoveries
took is *overhead* (metadata `CHECKPOINT`, `RECOVERY`): no run of the job, whatever its state. A *suspended* run
(metadata `SUSPENDED`) is one that was saved without a checkpoint, and so is each piece that completed but for the last
(metadata `PIECE`).

Behind any of these, or alone, metadata may have `OVERHEAD`: so many s of the run were no work, as the job wrote a
checkpoint or recovered. The work of the run is less in that ratio.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from batwatt.model.workload import CHECKPOINT, CHECKPOINTED, MIGRATED, OVERHEAD, PIECE, RECOVERY, SUSPENDED
from batwatt.results.columns import KILLED, SUCCESSFUL
from batwatt.results.origins import Origins
from batwatt.results.run_data import Columns, numbers, texts

Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]
Rows = NDArray[np.intp]


@dataclass(frozen=True, slots=True)
class Kinds:
    """What is special about rows: none is of two kinds, most are of no kind.

    `lost` are the runs that were killed, by the end of the window, and whose work was; `productive` is the share of
    each row's time in which it worked.
    """

    migrated: Mask
    saved: Mask
    lost: Mask
    checkpoint: Mask
    recovery: Mask
    productive: Floats

    @property
    def overhead(self) -> Mask:
        """The rows that are no runs of a job."""
        return self.checkpoint | self.recovery


@dataclass(frozen=True, slots=True)
class Chains:
    """For each row its chain: first and last row, when it started; all in s.

    `execution_s` is how long the job had its hosts, `work_s` without the overhead. To the execution of a job that was
    saved counts the overhead of its lost runs, too: it waits when it has no hosts, and when it does work that is lost.
    """

    first: Rows
    last: Rows
    start_s: Floats
    execution_s: Floats
    work_s: Floats

    @property
    def several(self) -> Mask:
        """Whether a chain has several rows, between which its job may have stood still."""
        return self.first != self.last


def kinds_of(jobs: Columns, origins: Origins, beyond: Mask) -> Kinds:
    """The kind of each row of `jobs.csv`; those `beyond` are of times after the window, and lost nothing."""
    metadata, state = texts(jobs, "metadata").copy(), texts(jobs, "final_state")
    ran_s = numbers(jobs, "execution_time")
    productive = np.ones(len(metadata))
    for row in np.flatnonzero(metadata != "").tolist():
        if found := OVERHEAD.search(metadata[row]):
            if ran_s[row] > 0.0:
                productive[row] = max(0.0, 1.0 - float(found[1]) / ran_s[row])
            metadata[row] = OVERHEAD.sub("", metadata[row]).strip()
    checkpoint, recovery, migrated, saved, suspended, piece = (
        metadata == text for text in (CHECKPOINT, RECOVERY, MIGRATED, CHECKPOINTED, SUSPENDED, PIECE)
    )
    killed = state == KILLED
    saved, migrated = saved & killed, migrated & killed
    if saved.any():
        broken = checkpoint & ~beyond & (state != SUCCESSFUL)
        order, fresh = _by_job(jobs, origins, origins.known)
        saved[order[:-1]] &= ~(broken[order[1:]] & ~fresh[1:])
    saved |= (suspended & killed) | (piece & (state == SUCCESSFUL))
    lost = killed & ~(beyond | migrated | saved | checkpoint | recovery)
    return Kinds(migrated, saved, lost, checkpoint, recovery, productive)


def chains_of(jobs: Columns, origins: Origins, kinds: Kinds) -> Chains:
    """The chain of each row; without migrated and saved runs each row is one of its own."""
    start, execution = (numbers(jobs, name) for name in ("starting_time", "execution_time"))
    rows = np.arange(len(start))
    if not ((kinds.migrated | kinds.saved) & origins.known).any():
        return Chains(rows, rows, start, execution, execution * kinds.productive)
    order, fresh = _by_job(jobs, origins, origins.known & ~kinds.overhead)
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
    # what lost runs recovered, and rows that are nothing but overhead
    apart = origins.known & (kinds.overhead | kinds.lost)
    each_s = (lasted_s * np.where(kinds.overhead, 1.0, 1.0 - kinds.productive))[apart]
    more_s = np.bincount(origins.job[apart], weights=each_s, minlength=int(origins.job.max()) + 1)
    of_chain = order[firsts]
    whole_s += np.where(single, 0.0, more_s[origins.job[of_chain]])
    number = np.empty(len(rows), dtype=np.intp)
    number[order] = np.repeat(np.arange(len(firsts)), lasts - firsts + 1)
    first = order[firsts][number]
    return Chains(first, order[lasts][number], start[first], whole_s[number], work_s[number])


def _by_job(jobs: Columns, origins: Origins, counted: Mask) -> tuple[Rows, Mask]:
    """All rows, those of one job in the order of time and what waits behind them; and where those of a job begin.

    Rows that are not `counted` are of no job. What the scheduler made up has no parts: leave that out.
    """
    rows = np.arange(len(origins.job))
    key = np.where(counted, origins.job, origins.job.max() + 1 + rows)
    times = (np.nan_to_num(numbers(jobs, name), nan=np.inf) for name in ("finish_time", "starting_time"))
    order = np.lexsort((rows, *times, key))
    fresh = np.ones(len(order), dtype=np.bool_)
    fresh[1:] = np.diff(key[order]) != 0
    return order, fresh
