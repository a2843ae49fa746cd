"""The use of the machine over all steps while jobs are put in and taken out, compiled.

Per step and kind: `peaks`, the servers needed in each state (the most that run at once in it); `early`, the same until
a server that wakes in this step is awake; `awake`, the servers that are on, which is the most needed in this step or
early in the next. Whoever is on but not needed idles, whoever is not falls asleep. A kind that cannot sleep, or whose
transitions do not end within a step, stays on. Column k * S + d of a table by step is state d of kind k.
"""

from __future__ import annotations

from typing import NamedTuple

from batwatt.arrays import Integers, IntegerTable, Reals, RealTable
from batwatt.compiling import compiled, inlined

STEPS, KINDS, STATES, UNIFORM = range(4)
"""Of `sizes`; `UNIFORM` is the length of the steps in ticks if all have the same, else 0."""


class Use(NamedTuple):
    """The machine, the modes of the jobs (rows `first[j]` to `first[j + 1]` are those of job j), and the runs.

    `extra_w` is by how much a server that wakes to a state exceeds its power; `waking` has the states in its order.
    `row` is -1 for a job that is not in place. The jobs that begin or end in a step, but do not run through it, are
    linked from `head`: node 2 j in the step in which job j starts, 2 j + 1 in that in which it ends. `needed` and
    `sooner` are sums of `peaks` and `early` over states. `least_w` is a step's power if nobody idles or changes.
    """

    sizes: Integers
    begins: Integers
    caps_w: Reals
    servers_of: Integers
    idle: Integers
    sleeps: Integers
    on_ticks: Integers
    sleep_w: Reals
    off_w: Reals
    rest_w: Reals
    power_w: RealTable
    extra_w: RealTable
    waking: IntegerTable
    submit: Integers
    submit_s: Reals
    first: Integers
    tried: Integers
    ticks: Integers
    run_s: Reals
    above_w: Reals
    servers: IntegerTable
    state: IntegerTable
    start: Integers
    end: Integers
    row: Integers
    head: Integers
    after: Integers
    whole: IntegerTable
    peaks: IntegerTable
    early: IntegerTable
    needed: IntegerTable
    sooner: IntegerTable
    awake: IntegerTable
    drawn_w: RealTable
    total_w: Reals
    least_w: Reals


@inlined
def step_of(use: Use, tick: int) -> int:
    """The step that a time lies in."""
    if use.sizes[UNIFORM] > 0:
        return tick // use.sizes[UNIFORM]
    low, high = 0, use.sizes[STEPS]
    while high - low > 1:
        middle = (low + high) // 2
        if use.begins[middle] <= tick:
            low = middle
        else:
            high = middle
    return low


@inlined
def _on(use: Use, step: int, k: int) -> int:
    """Servers of a kind that are on in a step; in the one before the first all are."""
    if step < 0 or use.sleeps[k] == 0:
        return use.servers_of[k]
    if step + 1 < use.sizes[STEPS]:
        return max(use.needed[step, k], use.sooner[step + 1, k])
    return use.needed[step, k]


@inlined
def _power(use: Use, step: int, k: int, before: int, awake: int) -> float:
    """Eq. 2, summed over a kind, if `before` servers were on in the step before; who wakes is the cheapest choice."""
    states, idle = use.sizes[STATES], use.idle[k]
    spare = awake - use.needed[step, k]
    power_w = spare * use.power_w[k, idle]
    for d in range(states):
        power_w += use.peaks[step, k * states + d] * use.power_w[k, d]
    left = awake - before
    for at in range(states):
        if left <= 0:
            break
        d = use.waking[k, at]
        free = use.peaks[step, k * states + d] - use.early[step, k * states + d]
        if d == idle:
            free += spare
        some = min(left, free)
        power_w += some * use.extra_w[k, d]
        left -= some
    falling = max(0, before - awake)
    return power_w + falling * use.off_w[k] + (use.servers_of[k] - awake - falling) * use.sleep_w[k]


@inlined
def _sweep(use: Use, step: int, k: int, d: int) -> None:
    """The most servers in a state at once in a step: jobs that run through, and those that begin or end in it."""
    column = k * use.sizes[STATES] + d
    begin = use.begins[step]
    awake_from = begin + use.on_ticks[k]
    peak, early = 0, 0
    one = use.head[step]
    while one >= 0:
        if use.state[use.row[one // 2], k] == d:
            at = max(use.start[one // 2], begin)
            together = 0
            other = use.head[step]
            while other >= 0:
                job = other // 2
                if use.start[job] <= at and at < use.end[job] and use.state[use.row[job], k] == d:
                    together += use.servers[use.row[job], k]
                other = use.after[other]
            peak = max(peak, together)
            if at < awake_from:
                early = max(early, together)
        one = use.after[one]
    peak += use.whole[step, column]
    early += use.whole[step, column]
    use.needed[step, k] += peak - use.peaks[step, column]
    use.sooner[step, k] += early - use.early[step, column]
    use.peaks[step, column] = peak
    use.early[step, column] = early


@inlined
def _link(use: Use, step: int, node: int, sign: int) -> None:
    """Put a job in the list of those that begin or end in a step (sign 1), or take it out (-1)."""
    if sign > 0:
        use.after[node] = use.head[step]
        use.head[step] = node
    elif use.head[step] == node:
        use.head[step] = use.after[node]
    else:
        at = use.head[step]
        while use.after[at] != node:
            at = use.after[at]
        use.after[at] = use.after[node]


@inlined
def _change(use: Use, job: int, sign: int) -> None:
    """Count a job's servers in (sign 1) or out (-1): `peaks`, `early` and their sums."""
    start, end, row = use.start[job], use.end[job], use.row[job]
    low, high = step_of(use, start), step_of(use, end - 1)
    if start > use.begins[low] or end < use.begins[low + 1]:
        _link(use, low, 2 * job, sign)
    if high > low and end < use.begins[high + 1]:
        _link(use, high, 2 * job + 1, sign)
    for k in range(use.sizes[KINDS]):
        count = sign * use.servers[row, k]
        if count == 0:
            continue
        d = use.state[row, k]
        column = k * use.sizes[STATES] + d
        for step in range(low, high + 1):
            if start <= use.begins[step] and end >= use.begins[step + 1]:
                use.whole[step, column] += count
                use.peaks[step, column] += count
                use.early[step, column] += count
                use.needed[step, k] += count
                use.sooner[step, k] += count
            else:
                _sweep(use, step, k, d)


@inlined
def _allowed(use: Use, job: int) -> bool:
    """Whether caps and numbers of servers are kept in all steps that a job, just counted in, has changed."""
    row = use.row[job]
    low = max(0, step_of(use, use.start[job]) - 1)
    high = step_of(use, use.end[job] - 1)
    for step in range(low, min(high + 1, use.sizes[STEPS] - 1) + 1):
        total_w = 0.0
        for k in range(use.sizes[KINDS]):
            if use.servers[row, k] == 0:
                total_w += use.drawn_w[step, k]
                continue
            awake = _on(use, step, k)
            if awake > use.servers_of[k] or use.needed[step, k] > use.servers_of[k]:
                return False
            total_w += _power(use, step, k, _on(use, step - 1, k), awake)
        if total_w > use.caps_w[step]:
            return False
    return True


@inlined
def _refresh(use: Use, low: int, high: int) -> None:
    """Work out who is awake in the steps [low, high], and the powers from `low` to the step after."""
    kinds, states = use.sizes[KINDS], use.sizes[STATES]
    for step in range(low, min(high + 1, use.sizes[STEPS] - 1) + 1):
        total_w, least_w = 0.0, 0.0
        for k in range(kinds):
            use.awake[step, k] = _on(use, step, k)
            use.drawn_w[step, k] = _power(use, step, k, _on(use, step - 1, k), use.awake[step, k])
            total_w += use.drawn_w[step, k]
            least_w += use.servers_of[k] * use.rest_w[k]
            for d in range(states):
                least_w += use.peaks[step, k * states + d] * (use.power_w[k, d] - use.rest_w[k])
        use.total_w[step] = total_w
        use.least_w[step] = least_w


@inlined
def put(use: Use, job: int, row: int, start: int) -> bool:
    """Put a job in; False, and nothing is changed, if the rules of the model do not allow it."""
    end = start + use.ticks[row]
    if end > use.begins[use.sizes[STEPS]]:
        return False
    use.start[job], use.end[job], use.row[job] = start, end, row
    _change(use, job, 1)
    if _allowed(use, job):
        _refresh(use, max(0, step_of(use, start) - 1), step_of(use, end - 1))
        return True
    _change(use, job, -1)
    use.row[job] = -1
    return False


@inlined
def restore(use: Use, job: int, row: int, start: int) -> None:
    """Put a job back where it was, unasked: some of the jobs that made that possible may not be back yet."""
    use.start[job], use.end[job], use.row[job] = start, start + use.ticks[row], row
    _change(use, job, 1)
    _refresh(use, max(0, step_of(use, start) - 1), step_of(use, use.end[job] - 1))


@inlined
def take(use: Use, job: int) -> None:
    """Take a job out."""
    _change(use, job, -1)
    use.row[job] = -1
    _refresh(use, max(0, step_of(use, use.start[job]) - 1), step_of(use, use.end[job] - 1))


@compiled
def put_one(use: Use, job: int, row: int, start: int) -> bool:
    """`put`, from Python."""
    return put(use, job, row, start)


@compiled
def restore_one(use: Use, job: int, row: int, start: int) -> None:
    """`restore`, from Python."""
    restore(use, job, row, start)


@compiled
def take_one(use: Use, job: int) -> None:
    """`take`, from Python."""
    take(use, job)


@compiled
def begin(use: Use) -> None:
    """Work out the power of all steps while no job is in place."""
    _refresh(use, 0, use.sizes[STEPS] - 1)
