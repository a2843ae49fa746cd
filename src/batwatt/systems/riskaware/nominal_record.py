"""What a run without an engine leaves behind, from the tables of its kernel: the record of the embedded engine."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache

import numpy as np
from numpy.typing import NDArray

from batwatt.engine.machines import STATE_NAMES, TICKS_PER_S
from batwatt.engine.recorder import NULL_RUNTIME_S, totals
from batwatt.model import hostset
from batwatt.model.record import JobRow, Record
from batwatt.model.workload import NO_WALLTIME, WINDOW_OVER, Workload
from batwatt.scheduling.hosts import Hosts
from batwatt.systems.riskaware import nominal_tables_kernel as at

_STATES = {
    at.SUCCESS: "COMPLETED_SUCCESSFULLY",
    at.TIMEOUT: "COMPLETED_WALLTIME_REACHED",
    at.KILLED: "COMPLETED_KILLED",
    at.REJECTED: "REJECTED",
}
_KINDS = {at.SUBMITTED: "s", at.COMPLETED: "e", at.SWITCHED: "p"}
_HALF = 2**26


def record_of(
    tables: at.Nominal,
    workload: Workload,
    names: Sequence[str],
    hosts: Hosts,
    named: Callable[[int, int], tuple[str, str, str]],
    energy: bool,
    metadata: bool,
) -> Record:
    """The rows and totals.

    `named` gives name, profile and metadata of a run of a job; `metadata`: whether first runs may have some.
    """
    counts, reals = tables.counts, tables.reals
    record = Record(energy=energy)
    record.jobs += _job_rows(tables, workload, names, hosts, named, energy, metadata)
    rows = tables.rows[at.S_SLEEPING : at.S_SLEEPING + 5, : counts[at.STATE_ROWS]]
    record.machine_states += zip(tables.rows_s[at.S_S, : counts[at.STATE_ROWS]].tolist(), *rows.tolist(), strict=True)
    if energy:
        record.consumed_energy += _energy_rows(tables)
        record.pstate_changes.append((0.0, hostset.to_text(hostset.span(0, tables.touched_s.size - 1)), 0))
    masks = [hosts.mask(machine) for machine in range(len(hosts))] if counts[at.PSTATE_ROWS] else []
    texts: dict[int, str] = {}
    for request in range(int(counts[at.REQUESTS])):
        mask = 0
        for machine in np.flatnonzero(tables.requests[request, :-1]).tolist():
            mask |= masks[machine]
        texts[request] = hostset.to_text(mask)
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


def _energy_rows(tables: at.Nominal) -> list[tuple[float, float, str, float, float | None]]:
    part = slice(tables.counts[at.ENERGY_ROWS])
    time_s, joules, epsilon_w = tables.rows_s[[at.E_S, at.E_J, at.E_EPSILON_W], part]
    passed_s = np.diff(time_s, prepend=0.0)
    mean = np.divide(np.diff(joules, prepend=0.0), passed_s, out=np.zeros_like(passed_s), where=passed_s > 0.0)
    means = [value if passed else None for value, passed in zip(mean.tolist(), (passed_s > 0.0).tolist(), strict=True)]
    kinds = [_KINDS[kind] for kind in tables.rows[at.E_KIND, part].tolist()]
    return list(zip(time_s.tolist(), joules.tolist(), kinds, epsilon_w.tolist(), means, strict=True))


def _job_rows(
    tables: at.Nominal,
    workload: Workload,
    names: Sequence[str],
    hosts: Hosts,
    named: Callable[[int, int], tuple[str, str, str]],
    energy: bool,
    metadata: bool,
) -> list[JobRow]:
    runs = tables.rows[at.JOB_RUN, : tables.counts[at.JOB_ROWS]]
    jobs, states, _, machines, attempts, _ = tables.runs[:, runs]
    submit_s, _, start_s, _, finish_s = tables.times[:, runs]
    runtime_s = finish_s - start_s
    none = ~(runtime_s > 0.0)
    drawn_j = tables.jobs[at.J_CORES, jobs] * tables.mode_w[0, 0] * runtime_s if energy else np.full(len(runs), -1.0)
    runtime_s[none] = NULL_RUNTIME_S
    finish_s = np.where(none, start_s + runtime_s, finish_s)
    turnaround_s = finish_s - submit_s
    columns = start_s, runtime_s, finish_s, start_s - submit_s, turnaround_s, turnaround_s / runtime_s, drawn_j
    never = states >= at.REJECTED
    hosts_of = _texts(hosts)
    load = workload.jobs
    places = jobs.tolist()
    given = [load[place] for place in places]
    own, profiles, told = [names[place] for place in places], [job.profile for job in given], [""] * len(places)
    # further attempts have names, profiles and metadata of their own, and first ones may have metadata
    for row in range(len(places)) if metadata else np.flatnonzero(attempts).tolist():
        own[row], profiles[row], told[row] = named(places[row], int(attempts[row]))
    bits = map(tuple, tables.bits[runs].tolist())
    texts = ["" if none else hosts_of(*key) for none, *key in zip(never.tolist(), machines.tolist(), bits, strict=True)]
    numbers: list[list[float | None]] = [column.tolist() for column in columns]
    for row in np.flatnonzero(never).tolist():
        for column in numbers:
            column[row] = None
        if states[row] == at.GIVEN_UP:
            told[row] = WINDOW_OVER
    final = [_STATES.get(state, "REJECTED") for state in states.tolist()]
    success = (states == at.SUCCESS).astype(int).tolist()
    walls = [NO_WALLTIME if job.walltime_s is None else job.walltime_s for job in given]
    widths = [job.hosts for job in given]
    shared = own, [workload.name] * len(given), profiles, submit_s.tolist(), widths, walls, success, final
    return list(map(JobRow._make, zip(*shared, *numbers[:-1], texts, numbers[-1], told, strict=True)))


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
