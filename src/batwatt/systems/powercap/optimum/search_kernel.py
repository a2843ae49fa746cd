"""Large neighbourhood search, compiled: take some jobs out, put them back otherwise, keep what is better.

A job is put in at the start and in the mode of least wait_j / Et_j + price, among those that servers and caps allow.
Starts that are tried: the submission, steps' beginnings, when woken servers are awake, when other jobs end.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from batwatt.arrays import Integers, Reals, RealTable
from batwatt.compiling import compiled, inlined
from batwatt.systems.powercap.optimum.timeline_kernel import (
    KINDS,
    STATES,
    STEPS,
    Use,
    put,
    restore,
    step_of,
    take,
)

TICKS_PER_S = 1000.0
MOST = 9
"""How many jobs are taken out at most besides the one that waits."""
CLOSE = 0.8
"""How often these are the nearest in time, else any that run near."""
FIRST = 0.75
"""How often the one that waits is put back first, else the order is one of four others."""
ORDERS = 4
SKIPPING = 0.5
"""In how many rounds modes are passed over."""
TOTAL, BEST, HEAT, SKIP = range(4)
"""Of `reals`: the sum of wait / Et; that of the best schedule; by what share one may be worse; what share of modes is
passed over."""
STATE, LOW, HIGH, AGAIN = range(4)
"""Of `counts`: of the random numbers; the steps that a round has changed; when to look at a mode again."""
MODULUS, FACTOR = 2147483647, 48271
"""Of the random numbers (Park and Miller): small enough for whole numbers of 64 bits."""


class Stand(NamedTuple):
    """The search: costs of the jobs in place, the best schedule, room for a round.

    `price` is per tick of one server in each state of each kind (a column), `paid` its integral from 0 to a step.
    """

    reals: Reals
    counts: Integers
    factors: Reals
    price: RealTable
    paid: RealTable
    cost: Reals
    best_row: Integers
    best_start: Integers
    picked: Integers
    near: Integers
    key: Reals
    old_row: Integers
    old_start: Integers


@inlined
def _draw(stand: Stand) -> float:
    """A random number in [0, 1[."""
    stand.counts[STATE] = stand.counts[STATE] * FACTOR % MODULUS
    return (stand.counts[STATE] - 1) / (MODULUS - 1)


@inlined
def _cost(use: Use, job: int) -> float:
    """wait_j / Et_j of a job in place."""
    return max(0.0, use.start[job] / TICKS_PER_S - use.submit_s[job]) / use.run_s[use.row[job]]


@inlined
def _until(use: Use, stand: Stand, column: int, tick: int) -> float:
    """The integral of a price from 0 to a time."""
    step = step_of(use, tick)
    return stand.paid[step, column] + stand.price[step, column] * (tick - use.begins[step])


@inlined
def _blocked(use: Use, row: int, start: int, step: int) -> int:
    """When a run may start at the earliest, as it would run through a step without room; `start` if it may then."""
    end = start + use.ticks[row]
    at = step if start <= use.begins[step] else step + 1
    while at < use.sizes[STEPS] and use.begins[at + 1] <= end:
        if use.least_w[at] + use.above_w[row] > use.caps_w[at]:
            return use.begins[at] + 1
        for k in range(use.sizes[KINDS]):
            if use.needed[at, k] + use.servers[row, k] > use.servers_of[k]:
                return use.begins[at] + 1
        at += 1
    return start


@inlined
def _try(use: Use, stand: Stand, job: int, row: int, start: int, step: int, factor: float, below: float) -> float:
    """The cost of a run if it is allowed and costs less than `below`, else inf."""
    end = start + use.ticks[row]
    if end > use.begins[use.sizes[STEPS]]:
        return np.inf
    cost = 0.0
    for k in range(use.sizes[KINDS]):
        if use.servers[row, k] > 0:
            column = k * use.sizes[STATES] + use.state[row, k]
            held = _until(use, stand, column, end) - _until(use, stand, column, start)
            cost += use.servers[row, k] * held
    cost = max(0.0, start / TICKS_PER_S - use.submit_s[job]) / use.run_s[row] + factor * cost
    if cost >= below:
        return np.inf
    stand.counts[AGAIN] = _blocked(use, row, start, step)
    if stand.counts[AGAIN] > start or not put(use, job, row, start):
        return np.inf
    take(use, job)
    return cost


@inlined
def insert(use: Use, stand: Stand, job: int, factor: float, skip: float) -> bool:
    """Put a job in where it is cheapest at prices times a factor; False if it fits nowhere.

    Each mode is passed over with the probability `skip`, but one.
    """
    best, best_row, best_start = np.inf, -1, 0
    submit = use.submit[job]
    for row in range(use.first[job], use.first[job + 1]):
        last = row + 1 == use.first[job + 1] and best_row < 0
        if use.tried[row] == 0 or (skip > 0.0 and not last and _draw(stand) < skip):
            continue
        step = step_of(use, submit)
        stand.counts[AGAIN] = 0
        while step < use.sizes[STEPS]:
            if use.begins[step + 1] <= stand.counts[AGAIN]:
                step += 1
                continue
            since = max(submit, use.begins[step])
            if (since - submit) / TICKS_PER_S / use.run_s[row] >= best:
                break
            for k in range(-1, use.sizes[KINDS]):
                start = since
                if k >= 0:
                    if use.sleeps[k] == 0 or use.servers[row, k] == 0:
                        continue
                    start = use.begins[step] + use.on_ticks[k]
                if start >= max(since, stand.counts[AGAIN]) and start < use.begins[step + 1]:
                    cost = _try(use, stand, job, row, start, step, factor, best)
                    if cost < best:
                        best, best_row, best_start = cost, row, start
            node = use.head[step]
            while node >= 0:
                start = use.end[node // 2]
                # a trial links the job at the head and takes it out again, so what follows stays
                node = use.after[node]
                if start > max(since, stand.counts[AGAIN] - 1) and start < use.begins[step + 1]:
                    cost = _try(use, stand, job, row, start, step, factor, best)
                    if cost < best:
                        best, best_row, best_start = cost, row, start
            step += 1
    return best_row >= 0 and put(use, job, best_row, best_start)


@inlined
def _choose(use: Use, stand: Stand) -> int:
    """A job that waits (the more the likelier) and some that run when it could, into `picked`; how many in all."""
    jobs = len(use.submit)
    left = _draw(stand) * stand.reals[TOTAL]
    target = jobs - 1
    for job in range(jobs):
        left -= stand.cost[job]
        if left < 0.0:
            target = job
            break
    # somewhere in its wait, early rather than late
    start, end, share = use.start[target], use.end[target], _draw(stand)
    at = use.submit[target] + int((start - use.submit[target]) * share * share)
    margin = int((end - start) * _draw(stand) * 0.5)
    low, high = at - margin, at + (end - start) + margin
    count = 0
    for job in range(jobs):
        if job != target and use.start[job] < high and use.end[job] > low:
            stand.near[count] = job
            stand.key[count] = (
                max(use.start[job] - at, at - use.end[job], 0) + max(use.start[job] - at, at - use.start[job]) / 1e12
            )
            count += 1
    size = min(count, 1 + int(_draw(stand) * MOST))
    close = _draw(stand) < CLOSE
    stand.picked[0] = target
    for place in range(size):
        chosen = place
        if close:
            for other in range(place + 1, count):
                if stand.key[other] < stand.key[chosen]:
                    chosen = other
        else:
            chosen = place + int(_draw(stand) * (count - place))
        job, key = stand.near[chosen], stand.key[chosen]
        stand.near[chosen], stand.key[chosen] = stand.near[place], stand.key[place]
        stand.near[place], stand.key[place] = job, key
        stand.picked[place + 1] = job
    return size + 1


@inlined
def _arrange(use: Use, stand: Stand, size: int) -> None:
    """The order in which the jobs of `picked` are put back; the first of them is the one that waits."""
    first = _draw(stand) < FIRST
    rule = int(_draw(stand) * ORDERS)
    for place in range(size):
        job = stand.picked[place]
        row, noise = use.first[job], _draw(stand)
        if first:
            stand.key[place] = noise if place > 0 else -1.0
        elif rule == 0:
            stand.key[place] = noise
        elif rule == 1:
            stand.key[place] = use.run_s[row] * (0.5 + noise)
        elif rule == 2:
            servers = 0
            for k in range(use.sizes[KINDS]):
                servers += use.servers[row, k]
            stand.key[place] = use.run_s[row] * servers * (0.5 + noise)
        else:
            stand.key[place] = use.start[job]
    for place in range(1, size):
        job, key, at = stand.picked[place], stand.key[place], place
        while at > 0 and stand.key[at - 1] > key:
            stand.picked[at], stand.key[at] = stand.picked[at - 1], stand.key[at - 1]
            at -= 1
        stand.picked[at], stand.key[at] = job, key


@inlined
def _touched(use: Use, stand: Stand, job: int) -> None:
    """Remember the steps in which a job in place has changed the power."""
    stand.counts[LOW] = min(stand.counts[LOW], max(0, step_of(use, use.start[job]) - 1))
    stand.counts[HIGH] = max(stand.counts[HIGH], min(use.sizes[STEPS] - 1, step_of(use, use.end[job] - 1) + 1))


@inlined
def _sound(use: Use, low: int, high: int) -> bool:
    """Whether Eq. 1 holds in these steps: without a job others may have to wake servers that it kept awake."""
    while low <= high and use.total_w[low] <= use.caps_w[low]:
        low += 1
    return low > high


@inlined
def _keep(use: Use, stand: Stand) -> None:
    """Take note of a schedule if it is the best."""
    if stand.reals[TOTAL] < stand.reals[BEST] - 1e-9:
        stand.reals[BEST] = stand.reals[TOTAL]
        for job in range(len(use.submit)):
            stand.best_row[job], stand.best_start[job] = use.row[job], use.start[job]


@compiled
def note(use: Use, stand: Stand) -> bool:
    """Take a complete schedule as it is: False if it does not keep the caps."""
    total = 0.0
    for job in range(len(use.submit)):
        stand.cost[job] = _cost(use, job)
        total += stand.cost[job]
    stand.reals[TOTAL] = total
    sound = _sound(use, 0, use.sizes[STEPS] - 1)
    if sound:
        _keep(use, stand)
    return sound


@compiled
def insert_one(use: Use, stand: Stand, job: int, factor: float) -> bool:
    """`insert`, from Python."""
    return insert(use, stand, job, factor, 0.0)


@compiled
def improve(use: Use, stand: Stand, rounds: int) -> None:
    """Destroy and repair so many times; also taken is a schedule that is worse than the best by a share `HEAT`."""
    for _ in range(rounds):
        if stand.reals[BEST] <= 1e-12:
            return
        limit = stand.reals[BEST] * (1.0 + stand.reals[HEAT])
        size = _choose(use, stand)
        factor = stand.factors[int(_draw(stand) * len(stand.factors))]
        _arrange(use, stand, size)
        skip = stand.reals[SKIP]
        if skip > 0.0 and _draw(stand) >= SKIPPING:
            skip = 0.0
        total = stand.reals[TOTAL]
        stand.counts[LOW], stand.counts[HIGH] = use.sizes[STEPS], 0
        for place in range(size):
            job = stand.picked[place]
            total -= stand.cost[job]
            stand.old_row[place], stand.old_start[place] = use.row[job], use.start[job]
            _touched(use, stand, job)
            take(use, job)
        done = 0
        for place in range(size):
            if not insert(use, stand, stand.picked[place], factor, skip):
                break
            done += 1
            _touched(use, stand, stand.picked[place])
            total += _cost(use, stand.picked[place])
            if total > limit:
                break
        if done == size and total <= limit and _sound(use, stand.counts[LOW], stand.counts[HIGH]):
            total = 0.0
            for place in range(size):
                stand.cost[stand.picked[place]] = _cost(use, stand.picked[place])
            for job in range(len(use.submit)):
                total += stand.cost[job]
            stand.reals[TOTAL] = total
            _keep(use, stand)
            continue
        for place in range(done):
            take(use, stand.picked[place])
        for place in range(size):
            restore(use, stand.picked[place], stand.old_row[place], stand.old_start[place])
