"""What the target strategies of the riskaware paper do, compiled; docs/explanation/riskaware.md has the rules.

At one time starts come first, then ends, then a change of the number of machines, then arrivals. Sections 4.3 to 4.5.
"""

from __future__ import annotations

import numpy as np

from batwatt.compiling import compiled, inlined
from batwatt.systems.riskaware.target_tables import (
    ALIVE,
    ALWAYS,
    CORES,
    DECISIONS,
    DISTANCE,
    DROP,
    EMPTY,
    END,
    EVENTS,
    HIGH,
    JOB_BITS,
    LIMIT,
    LOW,
    LOWEST,
    OVER,
    PACK,
    PAPER,
    PLANNED,
    RESTATED,
    RUNNING,
    START,
    USABLE,
    WORST,
    Tables,
    add,
    arrange,
    clear,
    earliest,
    occupy,
    pop,
    rise,
    trim,
)  # fmt: skip

SLACK = 1.0 + 1e-9
"""Stretches that differ by rounding are equal."""


# M_use ------------------------------------------------------------------------------------------------------------


@inlined
def _in_use(tables: Tables, usable: int) -> int:
    """Cores in use on the first machines; all of a machine on which a job waits."""
    total = 0
    for m in range(usable):
        total += tables.settings[CORES] if tables.waiting[m] > 0 else tables.load[m]
    return total


@inlined
def _adapt(tables: Tables) -> None:
    """Let M_use shrink to the machines that are always alive, or grow to those alive, by its utilisation."""
    counts, settings, reals = tables.counts, tables.settings, tables.reals
    cores = settings[CORES]
    usable = counts[USABLE]
    if usable == 0:
        return
    fewest = max(1, settings[ALWAYS])
    total = _in_use(tables, usable)
    direction = 0
    while True:
        utilisation = total / (usable * cores)
        if utilisation < reals[LOW] and usable > fewest and direction <= 0:
            direction = -1
            usable -= 1
            total -= cores if tables.waiting[usable] > 0 else tables.load[usable]
        elif utilisation > reals[HIGH] and usable < counts[ALIVE] and direction >= 0:
            direction = 1
            total += cores if tables.waiting[usable] > 0 else tables.load[usable]
            usable += 1
        else:
            break
    counts[USABLE] = usable


# placing a job ----------------------------------------------------------------------------------------------------


@inlined
def _target(tables: Tables, job: int) -> int:
    """The machine of Eq. 1 counted from 0, or the first machine of the pack."""
    usable, pack = tables.counts[USABLE], tables.settings[PACK]
    if tables.settings[PAPER] != 0:
        # section 4.5: of Eq. 1, the nearest multiple, that of a usable machine
        near = (min(int(tables.category[job] * usable), usable - 1) + pack // 2) // pack * pack
        return near if near < usable else near - pack
    choices = max(1, usable // pack)
    return min(int(tables.category[job] * choices), choices - 1) * pack


@inlined
def _plan(tables: Tables, job: int, m: int, k: int, start_s: float) -> None:
    """Plan the job on machine m from step k on; its start is the last event of the heap and not yet in its place."""
    end_s = start_s + tables.run_s[job]
    occupy(tables, m, k, start_s, end_s, tables.cores[job])
    tables.machine[job], tables.start_s[job], tables.end_s[job], tables.state[job] = m, start_s, end_s, PLANNED
    tables.waiting[m] += 1
    add(tables, start_s, START, m, job)
    if tables.settings[PAPER] == 0:
        _stretched(tables, job, end_s)


@inlined
def _stretched(tables: Tables, job: int, end_s: float) -> None:
    """Let S+ know that a job ends then."""
    stretch = (end_s - tables.release_s[job]) / tables.length_s[job]
    tables.reals[WORST] = max(tables.reals[WORST], stretch)


@inlined
def _map(tables: Tables, job: int, target: int, distance: int, now_s: float, drop: bool) -> None:
    """Choose a machine for the job: the first within the limit, else the one of least stretch of those probed.

    With `PAPER`: the target if the job starts now or is within the limit there, else the nearest where it starts now,
    else the target within S+, else the one of least stretch. With `drop` a job without a first choice is over.
    """
    reals, settings = tables.reals, tables.settings
    usable = tables.counts[USABLE]
    if usable == 0:
        # planned nowhere until a machine comes
        tables.machine[job], tables.state[job] = -1, OVER if drop else PLANNED
        return
    limit = reals[LIMIT] if reals[LIMIT] > 0.0 else reals[WORST]
    run_s, cores = tables.run_s[job], tables.cores[job]
    # of one job the stretch is least where the start is earliest
    latest_s = tables.release_s[job] + limit * SLACK * tables.length_s[job] - run_s
    best, least_s, place = target, np.inf, 0
    own_s, own_place, found = np.inf, 0, False
    before_s, wide = np.inf, settings[CORES] + 1
    # none is within the limit and none is empty: as a rule the one that has room first is the best
    while latest_s < now_s and settings[PAPER] == 0 and not drop:
        first, first_s = target, tables.room_s[target * wide + cores]
        for m in range(max(0, target - distance), min(usable, target + distance + 1)):
            if tables.room_s[m * wide + cores] < first_s:
                first, first_s = m, tables.room_s[m * wide + cores]
        if first_s <= now_s:
            break
        start_s, k = earliest(tables, first, now_s, run_s, cores, before_s)
        if start_s == first_s:
            _plan(tables, job, first, k, start_s)
            return
        before_s = min(before_s, start_s)
        if tables.room_s[first * wide + cores] == first_s:
            break
    for probe in range(2 * distance + 1):
        step = (probe + 1) // 2
        m = target + step if probe % 2 else target - step
        if m < 0 or m >= usable or tables.room_s[m * wide + cores] > before_s:
            continue
        start_s, k = earliest(tables, m, now_s, run_s, cores, before_s)
        if settings[PAPER] != 0:
            found = start_s <= now_s or (probe == 0 and start_s <= latest_s)
        else:
            found = start_s <= latest_s or (settings[EMPTY] != 0 and tables.first[m] == tables.last[m])
        if found:
            best, least_s, place = m, start_s, k
            break
        if probe == 0:
            own_s, own_place = start_s, k
        # ties go to the target, then to the lowest index
        if start_s < least_s or (start_s == least_s and best != target and m < best):
            best, least_s, place = m, start_s, k
            before_s = start_s
    if not found and drop:
        tables.machine[job], tables.state[job] = -1, OVER
        # as published: the first machine counts as waited for until the next change
        tables.waiting[0] += 1
        return
    within_s = tables.release_s[job] + reals[WORST] * SLACK * tables.length_s[job] - run_s
    if settings[PAPER] != 0 and not found and own_s <= within_s:
        best, least_s, place = target, own_s, own_place
    _plan(tables, job, best, place, least_s)


# what happens -----------------------------------------------------------------------------------------------------


@inlined
def _decide(tables: Tables, what: int) -> None:
    tables.decisions[tables.counts[DECISIONS]] = what
    tables.counts[DECISIONS] += 1


@inlined
def _happen(tables: Tables, until_s: float) -> None:
    """Starts and ends that are planned until a time."""
    counts = tables.counts
    machines = len(tables.first)
    while counts[EVENTS] and tables.when[0] <= until_s:
        time_s, place = tables.when[0], tables.what[0] >> JOB_BITS
        kind, m, job = place // machines, place % machines, tables.what[0] - (place << JOB_BITS)
        pop(tables)
        state = tables.state[job]
        if tables.machine[job] != m:
            continue
        if kind == START and state != RUNNING and state != OVER and tables.start_s[job] == time_s:
            if state == PLANNED:
                _decide(tables, job)
            tables.state[job] = RUNNING
            tables.waiting[m] -= 1
            add(tables, tables.end_s[job], END, m, job)
            rise(tables, counts[EVENTS] - 1)
        elif kind == END and state == RUNNING and tables.end_s[job] == time_s:
            tables.state[job] = OVER
            _stretched(tables, job, time_s)
        else:
            continue
        trim(tables, m, time_s)
        _adapt(tables)


@inlined
def _change(tables: Tables, alive: int, jobs: int, now_s: float) -> None:
    """So many machines are alive from now on: kill what runs on others, map all that waits anew, by release time.

    With `PAPER` nothing happens if there are more, unless all were usable and U is above the threshold.
    """
    counts = tables.counts
    before, usable = counts[ALIVE], counts[USABLE]
    counts[ALIVE] = alive
    if alive > before > 0 and tables.settings[PAPER] != 0:
        utilisation = _in_use(tables, usable) / (usable * tables.settings[CORES])
        if usable < before or not utilisation > tables.reals[HIGH]:
            return
    if alive > before:
        _adapt(tables)
    counts[USABLE] = min(max(counts[USABLE], 1), alive)
    counts[EVENTS] = 0
    for m in range(len(tables.first)):
        clear(tables, m, now_s)
    for job in range(counts[LOWEST], jobs):
        if tables.state[job] != RUNNING:
            continue
        m = tables.machine[job]
        if m >= alive:
            _decide(tables, -1 - job)
            tables.run_s[job] = tables.again_s[job]
            tables.state[job] = PLANNED if tables.again_s[job] < np.inf else OVER
            continue
        occupy(tables, m, tables.first[m], now_s, tables.end_s[job], tables.cores[job])
        tables.state[job], tables.start_s[job] = RESTATED, now_s
        tables.waiting[m] += 1
        add(tables, now_s, START, m, job)
    for job in range(counts[LOWEST], jobs):
        if tables.state[job] == PLANNED:
            _map(tables, job, _target(tables, job), tables.settings[DISTANCE], now_s, False)
    arrange(tables)
    _adapt(tables)
    _happen(tables, now_s)


@compiled
def advance(tables: Tables, until_s: float, change: int, known: int, jobs: int) -> None:
    """Everything until `until_s`: starts, ends, then the change to so many machines (-1: none), then arrivals.

    Jobs `known` to `jobs` - 1 arrive now, in release order. One that was released earlier than it arrives has been
    running since: it goes to the first machine that has room for it. With `DROP` it is over if it cannot start now.
    """
    counts = tables.counts
    counts[DECISIONS] = 0
    _happen(tables, until_s)
    while counts[LOWEST] < known and tables.state[counts[LOWEST]] == OVER:
        counts[LOWEST] += 1
    if change >= 0:
        _change(tables, change, known, until_s)
    for job in range(known, jobs):
        before = counts[EVENTS]
        if tables.run_s[job] < tables.length_s[job]:
            _map(tables, job, 0, counts[ALIVE], until_s, tables.settings[DROP] != 0)
        else:
            _map(tables, job, _target(tables, job), tables.settings[DISTANCE], until_s, False)
        for event in range(before, counts[EVENTS]):
            rise(tables, event)
        _happen(tables, until_s)


@compiled
def end_early(tables: Tables, job: int, jobs: int, now_s: float) -> None:
    """A job ended before it was planned to: what waits on its machine is planned anew there, by planned start."""
    counts = tables.counts
    counts[DECISIONS] = 0
    m = tables.machine[job]
    tables.state[job] = OVER
    _stretched(tables, job, now_s)
    if m < 0:
        return
    # what waits there, by start and then number; nothing is decided yet, so there is room for it
    order, count = tables.decisions, 0
    for other in range(counts[LOWEST], jobs):
        if tables.machine[other] == m and tables.state[other] == PLANNED:
            i = count
            while i > 0 and tables.start_s[order[i - 1]] > tables.start_s[other]:
                order[i] = order[i - 1]
                i -= 1
            order[i] = other
            count += 1
    clear(tables, m, now_s)
    for other in range(counts[LOWEST], jobs):
        if tables.machine[other] == m and tables.state[other] == RUNNING:
            occupy(tables, m, tables.first[m], now_s, tables.end_s[other], tables.cores[other])
    for i in range(count):
        start_s, k = earliest(tables, m, now_s, tables.run_s[order[i]], tables.cores[order[i]], np.inf)
        _plan(tables, order[i], m, k, start_s)
    arrange(tables)
    trim(tables, m, now_s)
    _adapt(tables)
    _happen(tables, now_s)
