"""What a run without an engine leaves behind, from the tables of its kernel: the record of the embedded engine."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Mapping
from functools import cache, reduce
from operator import or_
from typing import Any

import numpy as np
from numpy.typing import NDArray

from batwatt.engine.machines import STATE_NAMES, TICKS_PER_S
from batwatt.engine.recorder import NOT_RUN, totals
from batwatt.model import hostset
from batwatt.model.record import SUCCESSFUL, Record
from batwatt.model.workload import NO_WALLTIME, OVERHEAD, Workload, overhead
from batwatt.scheduling.hosts import Hosts
from batwatt.systems.riskaware import nominal_tables_kernel as at

_STATES = {at.SUCCESS: SUCCESSFUL, at.TIMEOUT: "COMPLETED_WALLTIME_REACHED", at.KILLED: "COMPLETED_KILLED"}
"""Of a run; a job in any other state was rejected."""
_KINDS = {at.SUBMITTED: "s", at.COMPLETED: "e", at.SWITCHED: "p"}
_HALF = 2**26

Named = Callable[[int, int], tuple[str, str, str, float]]
"""Id, profile, metadata and walltime of a run: of a job, by its place in the workload, and of an attempt."""


def record_of(
    tables: at.Nominal,
    workload: Workload,
    hosts: Hosts,
    named: Named,
    reasons: Mapping[int, str],
    *,
    energy: bool,
    metadata: bool,
) -> Record:
    """The rows and totals; `metadata`: whether first runs may have some; `reasons`: of rejections, by the state."""
    counts, reals = tables.counts, tables.reals
    record = Record(energy=energy)
    _add_jobs(record, tables, workload, hosts, named, reasons, metadata)
    part = slice(counts[at.STATE_ROWS])
    _add(record.machine_states.times, tables.rows_s[at.S_S, part])
    _add(record.machine_states.counts, tables.rows[at.S_SLEEPING : at.S_SLEEPING + 6, part].T)
    if energy:
        part = slice(counts[at.ENERGY_ROWS])
        for into, column in ((record.consumed_energy.times, at.E_S), (record.consumed_energy.energies, at.E_J),
                             (record.consumed_energy.lows, at.E_EPSILON_W)):  # fmt: skip
            _add(into, tables.rows_s[column, part])
        record.consumed_energy.kinds += map(_KINDS.__getitem__, tables.rows[at.E_KIND, part].tolist())
        record.pstate_changes.append((0.0, hostset.to_text(hostset.span(0, tables.touched_s.size - 1)), 0))
    text = cache(lambda machines: hostset.to_text(reduce(or_, map(hosts.mask, machines))))
    texts = [text(tuple(np.flatnonzero(row).tolist())) for row in tables.requests[: counts[at.REQUESTS], :-1]]
    part = slice(counts[at.PSTATE_ROWS])
    requests, values = tables.rows[[at.P_REQUEST, at.P_VALUE], part].tolist()
    times_s = tables.rows_s[at.P_S, part].tolist()
    record.pstate_changes += [
        (time_s, texts[request], value) for time_s, request, value in zip(times_s, requests, values, strict=True)
    ]
    consumed_j = float(reals[at.LAST_END_J] - reals[at.FIRST_J]) if energy else 0.0
    switched = int(counts[at.REQUESTS]), int(counts[at.SWITCHES])
    record.schedule = totals(record.jobs, consumed_j, tables.touched_s.size, *switched, _times_in_state(tables))
    return record


def _add(into: array[Any], column: NDArray[Any]) -> None:
    into.frombytes(column.astype(into.typecode).tobytes())


def _add_jobs(
    record: Record,
    tables: at.Nominal,
    workload: Workload,
    hosts: Hosts,
    named: Named,
    reasons: Mapping[int, str],
    metadata: bool,
) -> None:
    rows, energy = record.jobs, record.energy
    runs = tables.rows[at.JOB_RUN, : tables.counts[at.JOB_ROWS]]
    jobs, states, _, machines, attempts, _ = tables.runs[:, runs]
    submit_s, _, start_s, _, end_s = tables.times[:, runs]
    widths = tables.jobs[at.J_CORES, jobs]
    drawn_j = widths * tables.mode_w[0, 0] * (end_s - start_s) if energy else np.full(len(runs), -1.0)
    never = states >= at.REJECTED
    start_s[never] = end_s[never] = drawn_j[never] = NOT_RUN
    given = [workload.jobs[place] for place in jobs.tolist()]
    walltime_s = np.array([NO_WALLTIME if job.walltime_s is None else job.walltime_s for job in given])
    for into, column in ((rows.submitted, submit_s), (rows.widths, widths), (rows.walltimes, walltime_s),
                         (rows.started, start_s), (rows.ended, end_s), (rows.energies, drawn_j)):  # fmt: skip
        _add(into, column)
    rows.ids += [job.id for job in given]
    rows.profiles += [job.profile for job in given]
    rows.metadata += [""] * len(given)
    # further attempts have names, profiles and metadata of their own, and first ones may have metadata
    for row in range(len(given)) if metadata else np.flatnonzero(attempts).tolist():
        named_as = named(int(jobs[row]), int(attempts[row]))
        rows.ids[row], rows.profiles[row], rows.metadata[row], rows.walltimes[row] = named_as
        if (told := OVERHEAD.fullmatch(rows.metadata[row])) and float(told[1]) > end_s[row] - start_s[row]:
            rows.metadata[row] = overhead(float(end_s[row] - start_s[row])).strip()
    for row in np.flatnonzero(never).tolist():
        rows.metadata[row] = reasons[int(states[row])]
    rows.states += [_STATES.get(state, "REJECTED") for state in states.tolist()]
    hosts_of, bits = _texts(hosts), map(tuple, tables.bits[runs].tolist())
    rows.allocated += ["" if none else hosts_of(*key)
                       for none, *key in zip(never.tolist(), machines.tolist(), bits, strict=True)]  # fmt: skip


def _texts(hosts: Hosts) -> Callable[[int, tuple[int, ...]], str]:
    """The hosts of some cores of a machine, as text."""
    members = [hostset.ids(hosts.mask(machine)) for machine in range(len(hosts))]
    together = all(ids[-1] - ids[0] == len(ids) - 1 for ids in members)

    @cache
    def text(machine: int, words: tuple[int, ...]) -> str:
        mask = sum(word << at.WORD * i for i, word in enumerate(words))
        if together:
            return hostset.to_text(mask << members[machine][0])
        return str(hostset.HostSet.of(members[machine][core] for core in hostset.ids(mask)))

    return text


def _times_in_state(tables: at.Nominal) -> dict[str, float]:
    """See `engine.machines.Machines.times_in_state`: sums of whole ticks, exact."""
    part = slice(tables.counts[at.MOVES])
    times_s = tables.rows_s[at.MOVE_S, part]
    counts, sources, targets = tables.rows[[at.MOVE_COUNT, at.MOVE_FROM, at.MOVE_TO], part]
    ticks = [0] * len(STATE_NAMES)
    for state in range(5):
        ticks[state] = _ticks(times_s, np.where(sources == state, counts, 0) - np.where(targets == state, counts, 0))
    # each host only up to its last change
    on = tables.machines[at.M_ON] != 0
    for state, machines in ((at.IDLE, on), (at.SLEEPING, ~on)):
        touched_s = tables.touched_s[machines].ravel()
        ticks[state] += _ticks(touched_s, np.ones(len(touched_s), np.int64))
    return {name: spent / TICKS_PER_S for name, spent in zip(STATE_NAMES, ticks, strict=True)}


def _ticks(times_s: NDArray[np.float64], counts: NDArray[np.int64]) -> int:
    """The sum of times, each so many times, in ticks."""
    whole = np.floor(times_s)
    parts = ((times_s - whole) * TICKS_PER_S).astype(np.int64)
    high, low = int((counts * (parts // _HALF)).sum()), int((counts * (parts % _HALF)).sum())
    return int((counts * whole.astype(np.int64)).sum()) * int(TICKS_PER_S) + high * _HALF + low
