"""The relaxed problem at given prices, compiled: the cheapest run of each job, and what all servers earn at most.

A slot is a part of a step. Each job pays for its servers in every slot; each server earns that price in the state that
it is in, and pays for its watts. Column k * S + d is state d of kind k.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from batwatt.arrays import Integers, IntegerTable, Reals, RealTable
from batwatt.compiling import compiled, inlined

TICKS_PER_S = 1000.0
STEPS, PRICED, PARTS, KINDS, STATES, UNIFORM = range(6)
"""Of `sizes`: all steps; those, the first ones, that have prices; slots in a step; a step's ticks if all are alike."""


class Relaxed(NamedTuple):
    """The problem by slots, prices, and what the cheapest runs and the servers take and give at them.

    A price is of one server for a slot (`price`) or one watt for a step (`watt`); `paid` is the sum of the prices of
    all slots before. `spare_w` is what a cap leaves above rest; `early` the share of a slot in which a server that
    wakes in its step is not yet awake. Rows are modes: `first[j]` to `first[j + 1]` are those of job j that can be the
    cheapest, and a run in one is looked at where the caps allow it or one in its `partner`.
    """

    sizes: Integers
    begins: Integers
    edges: Integers
    caps_w: Reals
    spare_w: Reals
    servers_of: Integers
    sleeps: Integers
    on_ticks: Integers
    sleep_w: Reals
    off_w: Reals
    awake_w: Reals
    power_w: RealTable
    wake_w: RealTable
    early: RealTable
    submit: Integers
    first: Integers
    partner: Integers
    ticks: Integers
    run_s: Reals
    above_w: Reals
    servers: IntegerTable
    state: IntegerTable
    price: RealTable
    watt: Reals
    paid: RealTable
    balance: RealTable
    watts: Reals
    choice: IntegerTable
    found: Integers
    lowest: Reals


@inlined
def _slot_of(r: Relaxed, tick: int, guess: int) -> int:
    """The slot that a time lies in, looked for from a guess on; one more than there are beyond the last."""
    count = r.sizes[PRICED] * r.sizes[PARTS]
    at = min(guess, count)
    while at < count and r.edges[at + 1] <= tick:
        at += 1
    while r.edges[at] > tick:
        at -= 1
    return at


@inlined
def _step_of(r: Relaxed, tick: int) -> int:
    """The step that a time lies in."""
    low, high = 0, r.sizes[STEPS]
    while high - low > 1:
        middle = (low + high) // 2
        if r.begins[middle] <= tick:
            low = middle
        else:
            high = middle
    return low


@inlined
def _until(r: Relaxed, column: int, tick: int, slot: int) -> float:
    """What a server costs from 0 to a time."""
    if slot >= r.sizes[PRICED] * r.sizes[PARTS]:
        return r.paid[slot, column]
    share = (tick - r.edges[slot]) / (r.edges[slot + 1] - r.edges[slot])
    return r.paid[slot, column] + share * r.price[slot, column]


@inlined
def _early_w(r: Relaxed, row: int, start: int, step: int) -> float:
    """What servers draw at least in the step before a run that begins before they could have woken in its own."""
    watts = 0.0
    for k in range(r.sizes[KINDS]):
        if r.sleeps[k] != 0 and start < r.begins[step] + r.on_ticks[k]:
            watts += r.servers[row, k] * r.awake_w[k]
    return watts


@inlined
def _permitted(r: Relaxed, row: int, start: int, step: int) -> bool:
    """Whether the caps allow a run, or its partner, even alone (Eq. 1 and 2)."""
    end, other = start + r.ticks[row], r.partner[row]
    if end > r.begins[r.sizes[STEPS]]:
        return False
    needed_w = min(r.above_w[row], r.above_w[other])
    at = step
    while at < r.sizes[STEPS] and r.begins[at] < end:
        if needed_w > r.spare_w[at]:
            return False
        at += 1
    if step == 0:
        return True
    return min(_early_w(r, row, start, step), _early_w(r, other, start, step)) <= r.spare_w[step - 1]


@inlined
def _look(r: Relaxed, job: int, row: int, start: int, step: int, below: float, low: int) -> float:
    """The cost of a run if it is allowed and costs less than `below`, else `below`.

    With `low` >= 0 the least cost of a start in each step from there on is kept in `lowest`, too.
    """
    end = start + r.ticks[row]
    first = _slot_of(r, start, step * r.sizes[PARTS])
    guess = end // r.sizes[UNIFORM] * r.sizes[PARTS] if r.sizes[UNIFORM] > 0 else first
    last = _slot_of(r, end, guess)
    cost = (start - r.submit[job]) / TICKS_PER_S / r.run_s[row]
    for k in range(r.sizes[KINDS]):
        if r.servers[row, k] > 0:
            column = k * r.sizes[STATES] + r.state[row, k]
            cost += r.servers[row, k] * (_until(r, column, end, last) - _until(r, column, start, first))
    if cost >= below or not _permitted(r, row, start, step):
        return below
    if low < 0:
        r.found[0] = start
        return cost
    # the end of a step belongs to it, too
    if step - low < len(r.lowest):
        r.lowest[step - low] = min(r.lowest[step - low], cost)
    if start == r.begins[step] and step > low and step - low - 1 < len(r.lowest):
        r.lowest[step - low - 1] = min(r.lowest[step - low - 1], cost)
    return below


@inlined
def _cheapest(r: Relaxed, job: int, row: int, below: float, low: int) -> float:
    """The least cost of the runs in a mode if it is less than `below`; `found` has its start.

    Looked at is where cost or permission change: a run begins or ends at the edge of a slot, begins at the submission,
    or when a server that wakes in the step is awake. Between these times the cost is linear, and where a run is allowed
    between two of them it is at both.
    """
    submit, parts = r.submit[job], r.sizes[PARTS]
    priced = r.sizes[PRICED]
    step = _step_of(r, submit)
    ended = step
    best = _look(r, job, row, submit, step, below, low)
    while step < r.sizes[STEPS]:
        since = max(submit, r.begins[step])
        if (since - submit) / TICKS_PER_S / r.run_s[row] >= best:
            break
        for part in range(parts if step < priced else 1):
            start = r.edges[step * parts + part] if step < priced else r.begins[step]
            if start > submit:
                best = _look(r, job, row, start, step, best, low)
        for k in range(r.sizes[KINDS]):
            start = r.begins[step] + r.on_ticks[k]
            if r.sleeps[k] != 0 and start > since and start < r.begins[step + 1]:
                best = _look(r, job, row, start, step, best, low)
        # starts in this step of runs that end at the edge of a slot
        while ended < r.sizes[STEPS] and r.begins[ended + 1] - r.ticks[row] <= since:
            ended += 1
        at = ended
        while at < r.sizes[STEPS] and r.begins[at] - r.ticks[row] < r.begins[step + 1]:
            for part in range(parts if at < priced else 1):
                start = (r.edges[at * parts + part] if at < priced else r.begins[at]) - r.ticks[row]
                if start > since and start < r.begins[step + 1]:
                    best = _look(r, job, row, start, step, best, low)
            at += 1
        step += 1
    return best


@inlined
def _hold(r: Relaxed, row: int, start: int) -> None:
    """Add what a run takes of each slot to `balance`."""
    end, slots = start + r.ticks[row], r.sizes[PRICED] * r.sizes[PARTS]
    slot = _slot_of(r, start, _step_of(r, start) * r.sizes[PARTS])
    while slot < slots and r.edges[slot] < end:
        span = min(end, r.edges[slot + 1]) - max(start, r.edges[slot])
        if span > 0:
            share = span / (r.edges[slot + 1] - r.edges[slot])
            for k in range(r.sizes[KINDS]):
                if r.servers[row, k] > 0:
                    r.balance[slot, k * r.sizes[STATES] + r.state[row, k]] += share * r.servers[row, k]
        slot += 1


@inlined
def _earned(r: Relaxed, k: int) -> float:
    """The most that a server of a kind earns over all steps, at any sequence of its states.

    Its states are taken out of `balance` and their power is added to `watts`, for all servers of the kind. A transition
    ends with the step in which it begins, which allows more than the model where it takes longer.
    """
    states, parts, priced = r.sizes[STATES], r.sizes[PARTS], r.sizes[PRICED]
    on, asleep = 0.0, -np.inf
    for step in range(priced):
        awake, woken = -np.inf, -np.inf
        for d in range(states):
            column = k * states + d
            whole, late = 0.0, 0.0
            for slot in range(step * parts, (step + 1) * parts):
                whole += r.price[slot, column]
                late += r.price[slot, column] * (1.0 - r.early[slot, k])
            whole -= r.watt[step] * r.power_w[k, d]
            late -= r.watt[step] * r.wake_w[k, d]
            if whole > awake:
                awake = whole
                r.choice[step, 0] = d
            if late > woken:
                woken = late
                r.choice[step, 1] = d
        stays, wakes = on + awake, asleep + woken
        falls, sleeps = on - r.watt[step] * r.off_w[k], asleep - r.watt[step] * r.sleep_w[k]
        r.choice[step, 2] = 1 if wakes > stays else 0
        r.choice[step, 3] = 1 if falls >= sleeps else 0
        on = max(stays, wakes)
        asleep = max(falls, sleeps) if r.sleeps[k] != 0 else -np.inf
    best = max(on, asleep)
    up = on >= asleep
    count = r.servers_of[k]
    for step in range(priced - 1, -1, -1):
        if up:
            wakes_here = r.choice[step, 2] == 1
            d = r.choice[step, 1] if wakes_here else r.choice[step, 0]
            r.watts[step] += count * (r.wake_w[k, d] if wakes_here else r.power_w[k, d])
            for slot in range(step * parts, (step + 1) * parts):
                given = 1.0 - r.early[slot, k] if wakes_here else 1.0
                r.balance[slot, k * states + d] -= count * given
            up = not wakes_here
        else:
            up = r.choice[step, 3] == 1
            r.watts[step] += count * (r.off_w[k] if up else r.sleep_w[k])
    return best


@compiled
def evaluate(r: Relaxed) -> float:
    """The bound of the sum of wait / Et at the prices; `balance` and `watts` are what is used beyond what is there."""
    columns = r.sizes[KINDS] * r.sizes[STATES]
    for slot in range(r.sizes[PRICED] * r.sizes[PARTS]):
        for column in range(columns):
            r.paid[slot + 1, column] = r.paid[slot, column] + r.price[slot, column]
            r.balance[slot, column] = 0.0
    total = 0.0
    for job in range(len(r.submit)):
        best, best_row, best_start = np.inf, -1, 0
        for row in range(r.first[job], r.first[job + 1]):
            cost = _cheapest(r, job, row, best, -1)
            if cost < best:
                best, best_row, best_start = cost, row, r.found[0]
        if best_row < 0:
            return np.inf
        total += best
        r.lowest[job] = best
        _hold(r, best_row, best_start)
    for step in range(r.sizes[PRICED]):
        total -= r.watt[step] * r.caps_w[step]
        r.watts[step] = -r.caps_w[step]
    for k in range(r.sizes[KINDS]):
        total -= r.servers_of[k] * _earned(r, k)
    return total


@compiled
def by_step(r: Relaxed, job: int, row: int, below: float, low: int) -> None:
    """`lowest[i]` becomes the least cost of a start in step `low` + i in a mode, inf if that is not below `below`."""
    for at in range(len(r.lowest)):
        r.lowest[at] = np.inf
    _cheapest(r, job, row, below, low)
