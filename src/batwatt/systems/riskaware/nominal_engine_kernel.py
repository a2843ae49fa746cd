"""What the embedded engine does in a run of a riskaware strategy, on arrays, compiled; see `nominal_kernel`.

It repeats `engine.core`, `execution`, `switching` and `recorder`, in their order, for delays on hosts that are alike.
"""

from __future__ import annotations

import numpy as np

from batwatt.compiling import ahead_only
from batwatt.systems.riskaware import nominal_tables_kernel as at
from batwatt.systems.riskaware.nominal_tables_kernel import Nominal, pop, push, rounded, stale
from batwatt.units import PRECISION_S


@ahead_only
def run_due(n: Nominal, time_s: float) -> None:
    """Go on to a time, with all that happens until then."""
    counts, reals = n.counts, n.reals
    while counts[at.EVENTS] and n.heap_s[0] <= time_s + PRECISION_S:
        moment_s, key, what = n.heap_s[0], n.heap[0, 0], n.heap[1, 0]
        pop(n)
        if stale(n, key, what):
            continue
        if moment_s > reals[at.CLOCK]:
            reals[at.CLOCK] = min(moment_s, time_s)
        _happen(n, key >> at.RANK_BITS, what)
    if time_s > reals[at.CLOCK]:
        reals[at.CLOCK] = time_s


@ahead_only
def _round(n: Nominal) -> None:
    """What is due after an event of an answer, but for what comes of it."""
    counts = n.counts
    last = counts[at.SERIAL]
    # what is put off is kept behind the heap, which shrinks before it grows again
    kept = 0
    end = len(n.heap_s) - 1
    while counts[at.EVENTS] and n.heap_s[0] <= n.reals[at.CLOCK] + PRECISION_S:
        moment_s, key, what = n.heap_s[0], n.heap[0, 0], n.heap[1, 0]
        pop(n)
        if stale(n, key, what):
            continue
        if key & at.SERIALS > last:
            n.heap_s[end - kept], n.heap[0, end - kept], n.heap[1, end - kept] = moment_s, key, what
            kept += 1
        else:
            _happen(n, key >> at.RANK_BITS, what)
    for i in range(kept):
        moment_s, key, what = n.heap_s[end - i], n.heap[0, end - i], n.heap[1, end - i]
        serial = counts[at.SERIAL]
        counts[at.SERIAL] = (key & at.SERIALS) - 1
        push(n, moment_s, key >> at.RANK_BITS, what)
        counts[at.SERIAL] = serial


@ahead_only
def cramped(n: Nominal) -> bool:
    """Whether what one message can bring has no room: each host may start or end a run, each machine may switch."""
    counts, hosts, most = n.counts, n.settings[at.MACHINES] * n.settings[at.CORES], 4 * n.settings[at.MACHINES]
    rows = max(max(counts[at.ENERGY_ROWS], counts[at.STATE_ROWS]), max(counts[at.PSTATE_ROWS], counts[at.MOVES]))
    return (
        rows + 4 * hosts + most > n.rows.shape[1]
        or counts[at.JOB_ROWS] + len(n.submit_s) + hosts > n.rows.shape[1]
        or counts[at.RUNS_MADE] + hosts > n.runs.shape[1]
        or counts[at.REQUESTS] + 2 > len(n.requests)
        or 2 * counts[at.EVENTS] + 2 * hosts + most > len(n.heap_s)
    )


# the engine -------------------------------------------------------------------------------------------------------


@ahead_only
def _report(n: Nominal, kind: int, about: int) -> None:
    n.pending[n.counts[at.CURRENT], n.counts[at.PENDING]] = kind << at.KIND_BITS | about
    n.counts[at.PENDING] += 1


@ahead_only
def _integrate(n: Nominal) -> None:
    reals = n.reals
    if reals[at.CLOCK] > reals[at.UPDATED]:
        reals[at.ENERGY_J] += (reals[at.CLOCK] - reals[at.UPDATED]) * reals[at.BASE_W]
        reals[at.UPDATED] = reals[at.CLOCK]


@ahead_only
def _energy_row(n: Nominal, kind: int) -> None:
    counts, reals = n.counts, n.reals
    if n.settings[at.ENERGY] != 0:
        row = counts[at.ENERGY_ROWS]
        counts[at.ENERGY_ROWS] = row + 1
        n.rows_s[at.E_S, row], n.rows_s[at.E_J, row] = reals[at.CLOCK], reals[at.ENERGY_J]
        n.rows_s[at.E_EPSILON_W, row], n.rows[at.E_KIND, row] = reals[at.EPSILON_W], kind
        if kind == at.COMPLETED:
            reals[at.LAST_END_J] = reals[at.ENERGY_J]


@ahead_only
def _states_row(n: Nominal) -> None:
    row = n.counts[at.STATE_ROWS]
    n.counts[at.STATE_ROWS] = row + 1
    n.rows_s[at.S_S, row] = n.reals[at.CLOCK]
    for state in range(5):
        n.rows[at.S_SLEEPING + state, row] = n.seen[state]


@ahead_only
def _pstate_row(n: Nominal, index: int, value: int) -> None:
    row = n.counts[at.PSTATE_ROWS]
    n.counts[at.PSTATE_ROWS] = row + 1
    n.rows_s[at.P_S, row], n.rows[at.P_REQUEST, row], n.rows[at.P_VALUE, row] = n.reals[at.CLOCK], index, value


@ahead_only
def _move(n: Nominal, count: int, source: int, target: int) -> None:
    row = n.counts[at.MOVES]
    n.counts[at.MOVES] = row + 1
    n.rows_s[at.MOVE_S, row] = n.reals[at.CLOCK]
    n.rows[at.MOVE_COUNT, row], n.rows[at.MOVE_FROM, row], n.rows[at.MOVE_TO, row] = count, source, target
    n.seen[source] -= count
    n.seen[target] += count


@ahead_only
def _touch(n: Nominal, m: int, run: int) -> None:
    """The cores of a run come to another state."""
    for core in range(n.settings[at.CORES]):
        if n.bits[run, core // at.WORD] >> core % at.WORD & 1:
            n.touched_s[m, core] = n.reals[at.CLOCK]


@ahead_only
def _switch_hosts(n: Nominal, index: int, before: int, after: int, source: int, target: int) -> int:
    """The hosts of a request go from one p-state and state to another; returns how many they are."""
    cores, count = n.settings[at.CORES], 0
    for m in range(n.settings[at.MACHINES]):
        if n.requests[index, m]:
            count += cores
            for core in range(cores):
                n.touched_s[m, core] = n.reals[at.CLOCK]
    _move(n, count, source, target)
    modes, counts = n.modes, n.counts
    modes[0, before] -= count
    modes[0, after] += count
    known = False
    for i in range(counts[at.MODES]):
        known |= modes[1, i] == after
    if not known:
        modes[1, counts[at.MODES]] = after
        counts[at.MODES] += 1
    base_w = epsilon_w = 0.0
    for i in range(counts[at.MODES]):
        mode = modes[1, i]
        if modes[0, mode] > 0:
            base_w += modes[0, mode] * n.mode_w[0, mode]
            epsilon_w += modes[0, mode] * n.mode_w[1, mode]
    n.reals[at.BASE_W], n.reals[at.EPSILON_W] = base_w, epsilon_w
    return count


@ahead_only
def _end_run(n: Nominal, run: int, state: int) -> None:
    job = n.runs[at.R_JOB, run]
    n.runs[at.R_STATE, run] = state
    n.runs[at.R_EVENT, run] = -1
    n.times[at.T_END, run] = n.reals[at.CLOCK]
    _touch(n, n.runs[at.R_MACHINE, run], run)
    _move(n, n.jobs[at.J_CORES, job], at.COMPUTING, at.IDLE)
    _integrate(n)
    _energy_row(n, at.COMPLETED)
    _states_row(n)
    _job_row(n, run)
    _report(n, at.COMPLETED, run)


@ahead_only
def _job_row(n: Nominal, run: int) -> None:
    n.rows[at.JOB_RUN, n.counts[at.JOB_ROWS]] = run
    n.counts[at.JOB_ROWS] += 1
    n.counts[at.UNFINISHED] -= 1


@ahead_only
def _happen(n: Nominal, rank: int, what: int) -> None:
    counts, reals = n.counts, n.reals
    if rank == at.END:
        if what >= 0:
            _end_run(n, what, at.TIMEOUT if n.runs[at.R_LATE, what] != 0 else at.SUCCESS)
            return
        index = -1 - what
        on = n.requests[index, n.settings[at.MACHINES]] == at.ON
        _integrate(n)
        if on:
            _switch_hosts(n, index, n.modes[2, 3], n.modes[2, 0], at.SWITCHING_ON, at.IDLE)
        else:
            _switch_hosts(n, index, n.modes[2, 2], n.modes[2, 1], at.SWITCHING_OFF, at.SLEEPING)
        push(n, reals[at.CLOCK], at.ACKNOWLEDGE, index)
    elif rank == at.ACKNOWLEDGE:
        _integrate(n)
        _pstate_row(n, what, n.modes[2, 0] if n.requests[what, n.settings[at.MACHINES]] == at.ON else n.modes[2, 1])
        _energy_row(n, at.SWITCHED)
        _states_row(n)
        _report(n, at.SWITCHED, what)
    elif rank == at.LATE:
        counts[at.NOTICES] += 1
        _report(n, at.NO_MORE_JOBS, 0)
    elif what == at.FIRST_SUBMISSION:
        _integrate(n)
        reals[at.FIRST_J] = reals[at.ENERGY_J]
    elif what == at.CALL:
        _report(n, at.OTHER, 0)
    else:
        index, jobs = counts[at.NEXT_JOB], len(n.submit_s)
        if index < jobs:
            time_s = n.submit_s[index]
            while index < jobs and n.submit_s[index] == time_s:
                _report(n, at.SUBMITTED, index)
                counts[at.UNFINISHED] += 1
                index += 1
        counts[at.NEXT_JOB] = index
        if index < jobs:
            push(n, n.submit_s[index], at.ARRIVAL, at.SUBMISSIONS)
            return
        counts[at.MARK] = counts[at.PENDING]
        push(n, reals[at.CLOCK], at.LATE, 0)


@ahead_only
def message(n: Nominal) -> bool:
    """Go on to the next message; False if nothing can happen any more though something is left."""
    counts, reals = n.counts, n.reals
    if counts[at.BEGUN] == 0:
        _report(n, at.OTHER, 0)
    else:
        if counts[at.EVENTS] and n.heap_s[0] <= reals[at.CLOCK] + PRECISION_S:
            run_due(n, reals[at.CLOCK])
        while counts[at.PENDING] == 0:
            while counts[at.EVENTS] and stale(n, n.heap[0, 0], n.heap[1, 0]):
                pop(n)
            if counts[at.EVENTS] == 0:
                if counts[at.UNFINISHED] != 0 or counts[at.CLOSED] == 0:
                    return False
                _report(n, at.SIMULATION_ENDS, 0)
                break
            counts[at.BUSY] = 0
            run_due(n, n.heap_s[0])
    read, counts[at.READ], counts[at.PENDING] = counts[at.CURRENT], counts[at.PENDING], 0
    counts[at.CURRENT] = 1 - read
    if counts[at.NOTICES]:
        # the last notice waits for the next message if it alone had something
        if (
            counts[at.NOTICES] == 1
            and counts[at.READ] - 1 == counts[at.MARK]
            and counts[at.MARK] > 0
            and counts[at.BUSY] == 0
        ):
            counts[at.READ] -= 1
            n.pending[1 - read, 0] = n.pending[read, counts[at.READ]]
            counts[at.PENDING] = 1
        counts[at.NOTICES] = 0
    counts[at.BUSY] = 1 - counts[at.BEGUN]
    counts[at.BEGUN] = 1
    reals[at.NOW] = rounded(reals[at.CLOCK])
    return True


# what the engine is asked for -------------------------------------------------------------------------------------


@ahead_only
def replied(n: Nominal) -> None:
    """An event of the answer has been carried out."""
    n.counts[at.REPLIED] += 1
    if n.counts[at.EVENTS] and n.heap_s[0] <= n.reals[at.CLOCK] + PRECISION_S:
        _round(n)


@ahead_only
def reject(n: Nominal, job: int, why: int) -> None:
    """Reject a job that waits."""
    run = n.jobs[at.J_RUN, job]
    n.runs[at.R_STATE, run] = why
    _job_row(n, run)
    replied(n)


@ahead_only
def new_run(n: Nominal, job: int, length_s: float, submit_s: float) -> None:
    """Register the next run of a job."""
    run = n.counts[at.RUNS_MADE]
    n.counts[at.RUNS_MADE] = run + 1
    before = n.jobs[at.J_RUN, job]
    n.runs[at.R_JOB, run], n.runs[at.R_STATE, run], n.runs[at.R_ATTEMPT, run] = (
        job,
        at.WAITS,
        n.runs[at.R_ATTEMPT, before] + 1,
    )
    n.times[at.T_SUBMIT, run], n.times[at.T_LENGTH, run] = submit_s, length_s
    n.jobs[at.J_RUN, job] = run


@ahead_only
def kill(n: Nominal, count: int) -> None:
    """Kill the runs of the first jobs of `ended[1]`, at once."""
    if count == 0:
        return
    for i in range(count):
        job = n.ended[1, i]
        n.jobs[at.J_DYING, job] = 1
        # one may have ended since the message
        if n.runs[at.R_STATE, n.jobs[at.J_RUN, job]] == at.RUNS:
            _end_run(n, n.jobs[at.J_RUN, job], at.KILLED)
    _report(n, at.OTHER, 0)
    replied(n)


@ahead_only
def request(n: Nominal, on: int) -> None:
    """Switch the machines that should be on, or off, and can be."""
    counts, reals, machines = n.counts, n.reals, n.machines
    index, count = counts[at.REQUESTS], 0
    for m in range(n.settings[at.MACHINES]):
        due = machines[at.M_WANTED, m] != machines[at.M_ON, m] and machines[at.M_WANTED, m] == on
        due = due and machines[at.M_CHANGING, m] == 0 and machines[at.M_FREE, m] == n.settings[at.CORES]
        n.requests[index, m] = due
        if due:
            machines[at.M_CHANGING, m] = 1
            machines[at.M_READY, m] = 0
            count += 1
    if count == 0:
        return
    n.requests[index, n.settings[at.MACHINES]] = on
    counts[at.REQUESTS] = index + 1
    _integrate(n)
    _energy_row(n, at.SWITCHED)
    _pstate_row(n, index, -1 if on == at.ON else -2)
    if on == at.ON:
        counts[at.SWITCHES] += _switch_hosts(n, index, n.modes[2, 1], n.modes[2, 3], at.SLEEPING, at.SWITCHING_ON)
        push(n, reals[at.CLOCK] + reals[at.ON_S], at.END, -1 - index)
    else:
        counts[at.SWITCHES] += _switch_hosts(n, index, n.modes[2, 0], n.modes[2, 2], at.IDLE, at.SWITCHING_OFF)
        push(n, reals[at.CLOCK] + reals[at.OFF_S], at.END, -1 - index)
    _states_row(n)
    replied(n)


@ahead_only
def start(n: Nominal, job: int, m: int) -> None:
    """Start a job on the lowest free cores of a machine."""
    jobs, run, left = n.jobs, n.jobs[at.J_RUN, job], n.jobs[at.J_CORES, job]
    jobs[at.J_WANTED, job], jobs[at.J_HAS, job], jobs[at.J_MACHINE, job] = 0, 1, m
    n.machines[at.M_FREE, m] -= left
    n.counts[at.RUNNING] += 1
    for word in range(n.free.shape[1]):
        taken = 0
        while left > 0 and n.free[m, word] != 0:
            low = n.free[m, word] & -n.free[m, word]
            taken |= low
            n.free[m, word] ^= low
            left -= 1
        n.bits[run, word] = taken
    now_s = n.reals[at.CLOCK]
    end_s, deadline_s = now_s + n.times[at.T_LENGTH, run], now_s + n.walltime_s[job]
    late = end_s >= deadline_s - PRECISION_S
    n.runs[at.R_STATE, run], n.runs[at.R_MACHINE, run], n.runs[at.R_LATE, run] = at.RUNS, m, late
    n.times[at.T_START, run], n.times[at.T_SEEN, run] = now_s, n.reals[at.NOW]
    _touch(n, m, run)
    _move(n, jobs[at.J_CORES, job], at.IDLE, at.COMPUTING)
    _integrate(n)
    _energy_row(n, at.SUBMITTED)
    _states_row(n)
    push(n, deadline_s if late else end_s, at.END, run)
    rank = at.END
    n.runs[at.R_EVENT, run] = rank << at.RANK_BITS | n.counts[at.SERIAL]
    replied(n)


@ahead_only
def wake(n: Nominal, time_s: float) -> None:
    """Be woken at a time, if it is to come."""
    if n.reals[at.NOW] < time_s < np.inf:
        push(n, max(time_s, n.reals[at.CLOCK] + at.SHORTEST_CALL_S), at.ARRIVAL, at.CALL)
        replied(n)
