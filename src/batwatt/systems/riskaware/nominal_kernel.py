"""A run of a riskaware strategy without an engine, compiled: what the embedded engine and the scheduler do, on arrays.

`go` goes from message to message, as they do. It returns when the planner is to be asked, unless that is compiled too,
or when more room is needed, and goes on where it was.
"""

from __future__ import annotations

import numpy as np

from batwatt.compiling import ahead_only
from batwatt.systems.riskaware import nominal_tables_kernel as at
from batwatt.systems.riskaware import target_tables as of
from batwatt.systems.riskaware.nominal_engine_kernel import (
    cramped,
    kill,
    message,
    new_run,
    reject,
    replied,
    request,
    run_due,
    start,
    wake,
)
from batwatt.systems.riskaware.nominal_tables_kernel import Nominal
from batwatt.systems.riskaware.target_kernel import advance, end_early
from batwatt.systems.riskaware.target_tables import Tables
from batwatt.units import LAG_S

# the scheduler ----------------------------------------------------------------------------------------------------


@ahead_only
def _known(n: Nominal, job: int) -> None:
    """The scheduler tracks a job from now on, behind all others."""
    n.counts[at.STATES] += 1
    n.jobs[at.J_SEQUENCE, job] = n.counts[at.STATES]


@ahead_only
def _completed(n: Nominal, run: int) -> None:
    counts, jobs, job = n.counts, n.jobs, n.runs[at.R_JOB, run]
    killed = jobs[at.J_DYING, job] != 0 and n.runs[at.R_STATE, run] == at.KILLED
    m = jobs[at.J_MACHINE, job]
    jobs[at.J_DYING, job] = jobs[at.J_HAS, job] = jobs[at.J_SEQUENCE, job] = 0
    counts[at.RUNNING] -= 1
    n.machines[at.M_FREE, m] += jobs[at.J_CORES, job]
    for word in range(n.free.shape[1]):
        n.free[m, word] |= n.bits[run, word]
    if not killed:
        jobs[at.J_WANTED, job] = 0
        counts[at.LIVE] -= 1
        n.ended[0, counts[at.ENDED]] = jobs[at.J_NUMBER, job]
        counts[at.ENDED] += 1
    elif counts[at.STOPPED] == 0:
        if n.again_s[job] != n.again_s[job]:
            counts[at.LIVE] -= 1
            return
        new_run(n, job, n.again_s[job], n.reals[at.NOW])
        counts[at.UNFINISHED] += 1
        _known(n, job)
        replied(n)


@ahead_only
def _read(n: Nominal) -> bool:
    """What the message reports to the scheduler; False if it was the last."""
    counts, reals, jobs = n.counts, n.reals, n.jobs
    read = 1 - counts[at.CURRENT]
    # an answer begins when the scheduler sees it, which is rounded
    if reals[at.NOW] > reals[at.CLOCK]:
        run_due(n, reals[at.NOW])
    counts[at.REPLIED] = counts[at.ENDED] = counts[at.ARRIVED] = 0
    for i in range(counts[at.READ]):
        kind, about = n.pending[read, i] >> at.KIND_BITS, n.pending[read, i] & at.SUBJECTS
        if kind == at.SUBMITTED:
            if counts[at.STOPPED] != 0:
                reject(n, about, at.GIVEN_UP)
            elif jobs[at.J_CORES, about] > n.settings[at.CORES]:
                reject(n, about, at.WIDE)
            else:
                counts[at.ARRIVED] += 1
        elif kind == at.COMPLETED:
            _completed(n, about)
        elif kind == at.SWITCHED:
            on = n.requests[about, n.settings[at.MACHINES]]
            for m in range(n.settings[at.MACHINES]):
                if n.requests[about, m]:
                    n.machines[at.M_CHANGING, m], n.machines[at.M_ON, m], n.machines[at.M_READY, m] = 0, on, on
        elif kind == at.NO_MORE_JOBS:
            counts[at.MORE_JOBS] = 0
        elif kind == at.SIMULATION_ENDS:
            return False
    return True


@ahead_only
def _receive(n: Nominal) -> None:
    """What the planner has decided: kills, then starts into the queues of machines; and what it will never start."""
    counts, jobs, machines = n.counts, n.jobs, n.machines
    for number in range(counts[at.KNOWN], counts[at.KNOWN] + counts[at.ARRIVED]):
        _known(n, n.by_number[number])
    counts[at.KNOWN] += counts[at.ARRIVED]
    counts[at.LIVE] += counts[at.ARRIVED]
    kills = 0
    for i in range(counts[at.DECISIONS]):
        number = n.decisions[i]
        job = n.by_number[number if number >= 0 else -1 - number]
        jobs[at.J_WANTED, job] = number >= 0
        if number < 0 and jobs[at.J_HAS, job] != 0 and jobs[at.J_DYING, job] == 0:
            # not a second time; only `_kill` reads it
            jobs[at.J_DYING, job] = 1
            n.ended[1, kills] = job
            kills += 1
    counts[at.STAMP] += 1
    for i in range(counts[at.DECISIONS]):
        number = n.decisions[i]
        if number < 0:
            continue
        job = n.by_number[number]
        if jobs[at.J_WANTED, job] == 0 or jobs[at.J_STAMP, job] == counts[at.STAMP]:
            continue
        jobs[at.J_STAMP, job] = counts[at.STAMP]
        m, node = jobs[at.J_PLACE, job], counts[at.FREE_NODE]
        counts[at.FREE_NODE] = n.nodes[1, node]
        counts[at.QUEUED] += 1
        n.nodes[0, node], n.nodes[1, node] = job, -1
        if machines[at.M_TAIL, m] < 0:
            machines[at.M_HEAD, m] = node
        else:
            n.nodes[1, machines[at.M_TAIL, m]] = node
        machines[at.M_TAIL, m] = node
        machines[at.M_DUE, m] = 1
    kill(n, kills)
    for i in range(counts[at.DROPPED]):
        number = n.dropped[i]
        job = n.by_number[number if number >= 0 else -1 - number]
        jobs[at.J_SEQUENCE, job] = 0
        counts[at.LIVE] -= 1
        reject(n, job, at.REJECTED if number >= 0 else at.LOST)
        counts[at.ALL_DROPPED] += number >= 0
    counts[at.DECISIONS] = counts[at.DROPPED] = 0
    if counts[at.STEPPED] != 0:
        counts[at.STEPPED] = counts[at.SETTLED] = 0


@ahead_only
def _switch(n: Nominal) -> None:
    """Switch what can be switched; what is late, and over by the plan when its machine goes, is still to run there."""
    counts, machines = n.counts, n.machines
    if n.settings[at.SWITCHES_OFF] == 0:
        counts[at.SETTLED] = 1
        return
    for m in range(n.settings[at.MACHINES]):
        machines[at.M_WANTED, m] = machines[at.M_ALIVE, m]
        if machines[at.M_ON, m] != 0 and machines[at.M_ALIVE, m] == 0:
            node = machines[at.M_HEAD, m]
            while node >= 0:
                job = n.nodes[0, node]
                if n.jobs[at.J_WANTED, job] != 0 and n.jobs[at.J_PLACE, job] == m:
                    machines[at.M_WANTED, m] = 1
                node = n.nodes[1, node]
    request(n, at.ON)
    request(n, at.OFF)
    counts[at.SETTLED] = 1
    for m in range(n.settings[at.MACHINES]):
        if machines[at.M_ALIVE, m] != machines[at.M_ON, m] or machines[at.M_CHANGING, m] != 0:
            counts[at.SETTLED] = 0


@ahead_only
def _start_due(n: Nominal, m: int) -> None:
    """Start the jobs that are due on a machine, as far as they are here and their cores are free."""
    counts, jobs, machines, nodes = n.counts, n.jobs, n.machines, n.nodes
    node, last = machines[at.M_HEAD, m], -1
    while node >= 0:
        job, after = nodes[0, node], nodes[1, node]
        gone = jobs[at.J_WANTED, job] == 0 or jobs[at.J_PLACE, job] != m
        if not gone and jobs[at.J_HAS, job] == 0 and machines[at.M_FREE, m] >= jobs[at.J_CORES, job]:
            start(n, job, m)
            gone = True
        if gone:
            if last < 0:
                machines[at.M_HEAD, m] = after
            else:
                nodes[1, last] = after
            nodes[1, node] = counts[at.FREE_NODE]
            counts[at.QUEUED] -= 1
            counts[at.FREE_NODE] = node
        else:
            last = node
        node = after
    machines[at.M_TAIL, m] = last
    machines[at.M_DUE, m] = last >= 0


@ahead_only
def _finished(n: Nominal) -> bool:
    return n.counts[at.MORE_JOBS] == 0 and n.counts[at.LIVE] == 0 and n.counts[at.RUNNING] == 0


@ahead_only
def _give_up(n: Nominal, why: int) -> int:
    """Reject the jobs that wait, in the scheduler's order; returns how many are left."""
    left = 0
    for i in range(n.counts[at.ORDERED]):
        job = n.decisions[i]
        # what is late and was to start before is still to run
        if n.jobs[at.J_HAS, job] != 0 or (why == at.NOWHERE and n.jobs[at.J_WANTED, job] != 0):
            left += 1
            continue
        n.jobs[at.J_SEQUENCE, job] = 0
        reject(n, job, why)
    return left


@ahead_only
def _stop(n: Nominal) -> None:
    """The window is over: reject what waits, kill what runs."""
    kills = 0
    for i in range(n.counts[at.ORDERED]):
        job = n.decisions[i]
        if n.jobs[at.J_HAS, job] != 0 and n.jobs[at.J_DYING, job] == 0:
            n.ended[1, kills] = job
            kills += 1
    _give_up(n, at.GIVEN_UP)
    n.counts[at.LIVE] = 0
    kill(n, kills)


@ahead_only
def _call(n: Nominal) -> None:
    """Ask to be woken at the next step and at the end."""
    counts, reals = n.counts, n.reals
    step_s, until_s = n.steps_s[counts[at.STEP]], reals[at.UNTIL]
    if until_s < step_s and counts[at.ASKED_END] == 0:
        wake(n, until_s)
        counts[at.ASKED_END] = 1
    if step_s != until_s or counts[at.ASKED_END] == 0:
        wake(n, step_s)
    if until_s > step_s and counts[at.ASKED_END] == 0:
        wake(n, until_s)
    counts[at.ASKED_END] = 1
    counts[at.ASKED] = counts[at.STEP]


@ahead_only
def _collect(n: Nominal, tables: Tables) -> None:
    """Take note of what a planner has decided."""
    counts = n.counts
    for i in range(tables.counts[of.DECISIONS]):
        n.decisions[counts[at.DECISIONS]] = tables.decisions[i]
        counts[at.DECISIONS] += 1


@ahead_only
def _ask(n: Nominal, tables: Tables) -> bool:
    """Do what `strategy.hand_over` does, with a planner that is compiled; False, and nothing, if room is needed."""
    counts, now_s = n.counts, n.reals[at.NOW]
    first = counts[at.KNOWN]
    end = first + counts[at.ARRIVED]
    live = end - tables.counts[of.LOWEST]
    last = counts[at.STEP]
    while n.steps_s[last] <= now_s + LAG_S:
        last += 1
    if (
        live > n.settings[at.MOST_LIVE]
        or tables.counts[of.EVENTS] + 2 * live + 4 > len(tables.when)
        or (last - counts[at.STEP] + 1) * 3 * live + 3 > len(n.decisions)
        or counts[at.QUEUED] + live >= n.nodes.shape[1]
    ):
        return False
    until_s = 0.0
    for i in range(counts[at.ENDED]):
        number = n.ended[0, i]
        if tables.end_s[number] > now_s + LAG_S:
            end_early(tables, number, first, now_s)
            _collect(n, tables)
        else:
            until_s = max(until_s, tables.end_s[number])
    if until_s > 0.0:
        advance(tables, until_s, -1, first, first)
        _collect(n, tables)
    while True:
        step_s = n.steps_s[counts[at.STEP]]
        submit_s = n.submit_s[n.by_number[first]] if first < end else np.inf
        time_s = min(step_s, submit_s)
        if time_s > now_s + LAG_S:
            break
        change, after = -1, first
        if step_s == time_s:
            alive = n.alive[counts[at.STEP]]
            counts[at.STEP] += 1
            change = alive if alive != tables.counts[of.ALIVE] else -1
            counts[at.STEPPED], counts[at.ALIVE] = 1, alive
            for m in range(n.settings[at.MACHINES]):
                n.machines[at.M_ALIVE, m] = m < alive
        while after < end and n.submit_s[n.by_number[after]] == time_s:
            after += 1
        advance(tables, max(time_s, until_s), change, first, after)
        _collect(n, tables)
        if tables.settings[of.DROP] != 0:
            for number in range(first, after):
                if tables.state[number] == of.OVER and tables.machine[number] < 0:
                    n.dropped[counts[at.DROPPED]] = number
                    counts[at.DROPPED] += 1
        first = after
    for i in range(counts[at.DECISIONS]):
        if n.decisions[i] >= 0:
            n.jobs[at.J_PLACE, n.by_number[n.decisions[i]]] = tables.machine[n.decisions[i]]
    return True


@ahead_only
def go(n: Nominal, tables: Tables) -> int:
    """Go on until the caller is needed: `CONSULT` the planner, `ORDER` the scheduler's jobs, `GROW`; or to the end.

    `tables` are those of a planner that is compiled.
    """
    counts, reals = n.counts, n.reals
    while True:
        if counts[at.PHASE] == at.MESSAGE:
            if cramped(n):
                return at.GROW
            if not message(n):
                return at.DEADLOCK
            if not _read(n):
                return at.OVER
            news = counts[at.ENDED] > 0 or counts[at.ARRIVED] > 0 or n.steps_s[counts[at.STEP]] <= reals[at.NOW] + LAG_S
            counts[at.PHASE] = at.ASK if counts[at.STOPPED] == 0 and news else at.RECEIVE
        if counts[at.PHASE] == at.ASK:
            if n.settings[at.COMPILED] != 0 and not _ask(n, tables):
                return at.GROW_PLAN
            counts[at.PHASE] = at.RECEIVE
            if n.settings[at.COMPILED] == 0:
                return at.CONSULT
        if counts[at.PHASE] == at.RECEIVE and counts[at.STOPPED] == 0:
            _receive(n)
            if reals[at.NOW] >= reals[at.UNTIL]:
                counts[at.STOPPED] = 1
                counts[at.PHASE] = at.STOP
                return at.ORDER
            if counts[at.SETTLED] == 0:
                _switch(n)
            for m in range(n.settings[at.MACHINES]):
                if n.machines[at.M_DUE, m] != 0 and n.machines[at.M_READY, m] != 0:
                    _start_due(n, m)
            last = n.steps_s[counts[at.STEP]] == np.inf
            if (last or counts[at.ASKED] != counts[at.STEP]) and not _finished(n):
                if last and counts[at.MORE_JOBS] == 0 and reals[at.UNTIL] == np.inf and counts[at.ALIVE] == 0:
                    counts[at.PHASE] = at.UNRUNNABLE
                    return at.ORDER
                _call(n)
        elif counts[at.PHASE] == at.STOP:
            _stop(n)
        elif counts[at.PHASE] == at.UNRUNNABLE:
            before = counts[at.ORDERED]
            left = _give_up(n, at.NOWHERE)
            counts[at.LIVE] = left
            if left == before:
                _call(n)
        if counts[at.CLOSED] == 0 and _finished(n):
            counts[at.CLOSED] = 1
            replied(n)
        if counts[at.ANSWERED] == 0:
            counts[at.ANSWERED] = 1
            if counts[at.REPLIED] == 0:
                counts[at.BUSY] = 0
        counts[at.PHASE] = at.MESSAGE
