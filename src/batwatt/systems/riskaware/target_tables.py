"""The tables of the target strategies of the riskaware paper, compiled: events in a heap, and profiles of machines.

A *profile* is the number of cores of a machine that are in use, as a step function of time: `used[base[m] + k]` from
`since[base[m] + k]` on, for k from `first[m]` to `last[m]`, where the last is 0 for ever. Profiles have room for
`size[m]` steps, one behind the other in half of a store: one that is full moves behind the last, and when the half is
full all move to the other one. So the store is as large as all jobs that are not over need together. Planned
starts and the ends of what runs are events, ordered by time, starts before ends, machine and job.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from batwatt.arrays import Integers, Reals
from batwatt.compiling import inlined

START, END = 0, 1
JOB_BITS = 32
FAR = 32
"""So many steps of a profile may be over before it is moved."""
PLANNED, RUNNING, RESTATED, OVER = 0, 1, 2, 3
"""States of a job: planned; running; running, to be announced again after a re-mapping; over."""
ALIVE, USABLE, EVENTS, DECISIONS, LOWEST, STORED = range(6)
"""Counts: machines alive, machines usable (M_use), events in the heap, decisions, first job not over, steps
of the store up to the end of the last profile."""
WORST, LOW, HIGH, LIMIT = range(4)
"""Reals: S+, the thresholds of M_use, the stretch within which a probed machine is taken (0: S+)."""
ALWAYS, PACK, DISTANCE, CORES, EMPTY, DROP, PAPER = range(7)
"""Settings: as in `targets.TargetSettings`, and the cores of a machine."""


class Tables(NamedTuple):
    """All that the kernel knows. M machines, J jobs at most, K steps of all profiles at most."""

    since: Reals
    used: Integers
    """(K,), s and cores."""
    base: Integers
    size: Integers
    first: Integers
    last: Integers
    """(M,), the place of a profile and its steps."""
    load: Integers
    """(M,), cores in use after the last event of the machine."""
    waiting: Integers
    """(M,), jobs planned and not yet started."""
    roomy: Integers
    """(M x (cores + 1),), no step before this one has room for so many cores."""
    room_s: Reals
    """(M x (cores + 1),), when this step began: there is no room before."""
    release_s: Reals
    length_s: Reals
    run_s: Reals
    """(J,), the whole length, and what the next run takes."""
    again_s: Reals
    """(J,), what the run after that takes if this one is killed now; infinite if the job is lost then."""
    cores: Integers
    category: Reals
    """(J,), C_i."""
    machine: Integers
    """(J,), -1: none."""
    start_s: Reals
    end_s: Reals
    """(J,), planned."""
    state: Integers
    when: Reals
    """(E,), times of the heap's events."""
    what: Integers
    """(E,), of the events: (kind times machines plus machine), and the job in the lower `JOB_BITS`."""
    decisions: Integers
    """(3 J,), what came of a step, in order: job j started (j) or was killed (-1 - j)."""
    counts: Integers
    reals: Reals
    settings: Integers


# the heap of events -----------------------------------------------------------------------------------------------


@inlined
def add(tables: Tables, time_s: float, kind: int, machine: int, job: int) -> None:
    """Note an event without putting it in its place."""
    i = tables.counts[EVENTS]
    tables.counts[EVENTS] = i + 1
    tables.when[i] = time_s
    tables.what[i] = (kind * len(tables.first) + machine) << JOB_BITS | job


@inlined
def rise(tables: Tables, i: int) -> None:
    """Move event i up to its place."""
    when, what = tables.when, tables.what
    time_s, code = when[i], what[i]
    while i > 0:
        parent = (i - 1) // 2
        if when[parent] < time_s or (when[parent] == time_s and what[parent] < code):
            break
        when[i], what[i] = when[parent], what[parent]
        i = parent
    when[i], what[i] = time_s, code


@inlined
def sink(tables: Tables, i: int) -> None:
    """Move event i down to its place."""
    when, what, count = tables.when, tables.what, tables.counts[EVENTS]
    time_s, code = when[i], what[i]
    while True:
        child = 2 * i + 1
        if child >= count:
            break
        right = child + 1
        if right < count and (when[right] < when[child] or (when[right] == when[child] and what[right] < what[child])):
            child = right
        if time_s < when[child] or (time_s == when[child] and code < what[child]):
            break
        when[i], what[i] = when[child], what[child]
        i = child
    when[i], what[i] = time_s, code


@inlined
def arrange(tables: Tables) -> None:
    """Put all events in their places."""
    for i in range(tables.counts[EVENTS] // 2 - 1, -1, -1):
        sink(tables, i)


@inlined
def pop(tables: Tables) -> None:
    """Remove the first event."""
    last = tables.counts[EVENTS] - 1
    tables.counts[EVENTS] = last
    tables.when[0], tables.what[0] = tables.when[last], tables.what[last]
    sink(tables, 0)


# profiles ---------------------------------------------------------------------------------------------------------


def store_of(machines: int, live: int) -> int:
    """Steps of a store for so many jobs: each half four times what profiles can be, with what is over and not trimmed.

    Once all have moved, even the longest profile can move again, to twice its room.
    """
    return 2 * 4 * (machines * (FAR + 4) + 4 * live)


@inlined
def _widen(tables: Tables, m: int) -> None:
    """Make room for two more steps in a profile."""
    last, counts = tables.last[m], tables.counts
    if last + 3 <= tables.size[m]:
        return
    size, half = max(8, 2 * (last + 1)), len(tables.since) // 2
    if counts[STORED] + size > (half if counts[STORED] <= half else 2 * half):
        _gather(tables)
    begin = counts[STORED]
    _move(tables, m, begin)
    tables.size[m] = size
    counts[STORED] = begin + size


@inlined
def _gather(tables: Tables) -> None:
    """Move all profiles to the other half of the store, without gaps."""
    half = len(tables.since) // 2
    end = half if tables.counts[STORED] <= half else 0
    for m in range(len(tables.base)):
        _move(tables, m, end)
        tables.size[m] = tables.last[m] + 1
        end += tables.size[m]
    tables.counts[STORED] = end


@inlined
def _move(tables: Tables, m: int, begin: int) -> None:
    """Move a profile to another place of the store."""
    since, used, base = tables.since, tables.used, tables.base[m]
    for k in range(tables.last[m] + 1):
        since[begin + k], used[begin + k] = since[base + k], used[base + k]
    tables.base[m] = begin


@inlined
def clear(tables: Tables, m: int, now_s: float) -> None:
    """Forget all that runs and is planned on a machine."""
    tables.first[m] = tables.last[m] = 0
    tables.since[tables.base[m]], tables.used[tables.base[m]] = now_s, 0
    tables.load[m] = tables.waiting[m] = 0
    wide = tables.settings[CORES] + 1
    for i in range(m * wide, (m + 1) * wide):
        tables.roomy[i], tables.room_s[i] = 0, now_s


@inlined
def _shift(tables: Tables, m: int, begin: int, end: int, by: int) -> None:
    """Move steps begin to `end`, both included, by so many places."""
    since, used, base = tables.since, tables.used, tables.base[m]
    if by > 0:
        for i in range(base + end, base + begin - 1, -1):
            since[i + by], used[i + by] = since[i], used[i]
    elif by < 0:
        for i in range(base + begin, base + end + 1):
            since[i + by], used[i + by] = since[i], used[i]


@inlined
def _renumber(tables: Tables, m: int, by: int) -> None:
    """Steps have moved down by so many places."""
    roomy, wide = tables.roomy, tables.settings[CORES] + 1
    for i in range(m * wide, (m + 1) * wide):
        roomy[i] -= by


@inlined
def trim(tables: Tables, m: int, now_s: float) -> None:
    """Forget what is over, and take note of the load."""
    k, last, since, base = tables.first[m], tables.last[m], tables.since, tables.base[m]
    while k < last and since[base + k + 1] <= now_s:
        k += 1
    if k > FAR and 2 * k > last:
        # most of the row is over: use it again
        _shift(tables, m, k, last, -k)
        _renumber(tables, m, k)
        tables.last[m] = last - k
        k = 0
    tables.first[m] = k
    tables.load[m] = tables.used[base + k]


@inlined
def earliest(tables: Tables, m: int, now_s: float, run_s: float, cores: int, before_s: float) -> tuple[float, int]:
    """Start of the earliest interval of `run_s` s in which so many cores are free, and the step that it lies in.

    The start is infinite if it were after `before_s`.
    """
    since, used, base = tables.since, tables.used, tables.base[m]
    last = tables.last[m]
    room = tables.settings[CORES] - cores
    # until the machine is cleared its profile only fills, and steps only move up
    roomy = m * (tables.settings[CORES] + 1) + cores
    k = max(tables.first[m], tables.roomy[roomy])
    while used[base + k] > room:
        k += 1
    tables.roomy[roomy], tables.room_s[roomy] = k, since[base + k]
    start_s = max(now_s, since[base + k])
    while start_s <= before_s:
        begin, end_s = k, start_s + run_s
        while k < last and used[base + k] <= room and since[base + k + 1] < end_s:
            k += 1
        if used[base + k] <= room:
            return start_s, begin
        while used[base + k] > room:
            k += 1
        start_s = since[base + k]
    return np.inf, k


@inlined
def occupy(tables: Tables, m: int, k: int, start_s: float, end_s: float, cores: int) -> None:
    """Use so many cores in [start_s, end_s[, which begins in step k; neighbours of equal use become one step."""
    _widen(tables, m)
    since, used, base, first, last = tables.since, tables.used, tables.base[m], tables.first[m], tables.last[m]
    end = k
    while end < last and since[base + end + 1] < end_s:
        end += 1
    split = since[base + k] < start_s
    before = 1 if split else 0
    if not split and k > first and used[base + k - 1] == used[base + k] + cores:
        before = -1
    rest = end == last or since[base + end + 1] > end_s
    after = 1 if rest else 0
    if not rest and used[base + end + 1] == used[base + end] + cores:
        after = -1
    # what comes after the interval, then what lies in it
    back = used[base + end]
    begin_tail = end + 1 if after >= 0 else end + 2
    if before + after > 0:
        _shift(tables, m, begin_tail, last, before + after)
        _shift(tables, m, k if before > 0 else k + 1, end, before)
    else:
        _shift(tables, m, k if before > 0 else k + 1, end, before)
        _shift(tables, m, begin_tail, last, before + after)
    tables.last[m] = last + before + after
    if rest:
        since[base + end + before + 1], used[base + end + before + 1] = end_s, back
    if split:
        since[base + k + 1] = start_s
    begin = k + 1 if split else k
    if before < 0:
        begin = k  # step k is part of the one before, which has its use already
    for i in range(begin, end + before + 1):
        used[base + i] += cores
    if before < 0 or after < 0:
        _renumber(tables, m, -min(0, before) - min(0, after))
