"""A run of a riskaware strategy without an engine, compiled: what the embedded engine and the scheduler do, on arrays.

It goes from message to message, as they do, and leaves the planner to its caller: `go` returns when the planner is to
be asked, or when more room is needed, and goes on where it was. Docs/architecture.md says which rules it repeats.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from batwatt.compiling import compiled, inlined
from batwatt.units import LAG_S, PRECISION_S

WORD = 62
"""Cores in a word of free cores; all of them positive."""
RANK_BITS = 48
FIRST_SUBMISSION, SUBMISSIONS, CALL = range(3)
"""Arrivals."""
ARRIVAL, END, ACKNOWLEDGE, LATE = range(1, 5)
"""Ranks of what happens at one time, as in `engine.kernel`."""
KIND_BITS = 48
SHORTEST_CALL_S = 1e-5
"""As in `engine.core`."""
OTHER, SUBMITTED, COMPLETED, SWITCHED, NO_MORE_JOBS, SIMULATION_ENDS = range(6)
"""What a message tells."""
SLEEPING, SWITCHING_ON, SWITCHING_OFF, IDLE, COMPUTING = range(5)
"""As in `engine.machines`."""
WAITS, RUNS, SUCCESS, TIMEOUT, KILLED, REJECTED, WIDE, GIVEN_UP, NOWHERE = range(9)
"""States of a run; from `REJECTED` on of one that never was."""
ON, OFF = 1, 0

# what `go` returns
CONSULT, ORDER, GROW, OVER, DEADLOCK = range(5)
# where it goes on
MESSAGE, RECEIVE, STOP, UNRUNNABLE = range(4)

(PHASE, SERIAL, EVENTS, CURRENT, PENDING, READ, BEGUN, ANSWERED, REPLIED, BUSY, NOTICES, MARK, NEXT_JOB, UNFINISHED, CLOSED,
 MORE_JOBS, LIVE, RUNNING, STATES, STOPPED, STEP, ASKED, ASKED_END, KNOWN, ARRIVED, ENDED, TOLD, DROPPED, ALL_DROPPED,
 ORDERED, STEPPED, ALIVE, SETTLED, RUNS_MADE, ENERGY_ROWS, STATE_ROWS, PSTATE_ROWS, MOVES, JOB_ROWS, REQUESTS, SWITCHES,
 FREE_NODE, MODES, LOWEST_ROOM, STAMP) = range(45)  # fmt: skip
"""Counts."""
(CLOCK, DATE, NOW, UNTIL, UPDATED, ENERGY_J, FIRST_J, LAST_END_J, BASE_W, EPSILON_W, OFF_S, ON_S) = range(12)
"""Reals: the engine's clock and what the scheduler sees of it, the time of the message, the end of the window, ..."""
MACHINES, CORES, ENERGY, SWITCHES_OFF = range(4)
"""Settings."""
J_CORES, J_RUN, J_NUMBER, J_WANTED, J_DYING, J_HAS, J_MACHINE, J_PLACE, J_SEQUENCE, J_STAMP = range(10)
"""Of a job: its present run, its number among the planner's, started by the planner and not yet here, being killed,
whether it has hosts, where, where the planner has it, its place among the scheduler's jobs (0: none)."""
M_FREE, M_READY, M_ON, M_WANTED, M_CHANGING, M_ALIVE, M_DUE, M_HEAD, M_TAIL = range(9)
R_JOB, R_STATE, R_EVENT, R_MACHINE, R_ATTEMPT, R_LATE = range(6)
T_SUBMIT, T_LENGTH, T_START, T_SEEN, T_END = range(5)
"""Times of a run, in s; `T_SEEN`: its start as the scheduler sees it."""
E_S, E_J, E_EPSILON_W, S_S, P_S, MOVE_S = range(6)
E_KIND, S_SLEEPING, P_REQUEST, P_VALUE, MOVE_COUNT, MOVE_FROM, MOVE_TO, JOB_RUN = 0, 1, 6, 7, 8, 9, 10, 11
"""Rows of Batsim's files, and moves of hosts between states; five states from `S_SLEEPING` on."""


J_FIELDS, R_FIELDS, T_FIELDS, M_FIELDS, S_FIELDS, ROW_FIELDS, COUNTS, REALS = 10, 6, 5, 9, 6, 12, 45, 12
GROWING = {"runs": 1, "times": 1, "bits": 0, "rows_s": 1, "rows": 1, "requests": 0, "heap_s": 0, "heap": 1}
"""Tables that may get longer, and along which axis."""


class Nominal(NamedTuple):
    """All that is known. J jobs, R runs, M machines of W words of cores, L rows, Q requests, N nodes of queues."""

    jobs: np.ndarray
    """(10, J)."""
    submit_s: np.ndarray
    """(J,), ascending."""
    again_s: np.ndarray
    """(J,), what the next run takes if this one is killed; NaN: there is none."""
    walltime_s: np.ndarray
    """(J,), infinite without one."""
    by_number: np.ndarray
    """(J,)."""
    runs: np.ndarray
    """(6, R)."""
    times: np.ndarray
    """(5, R)."""
    bits: np.ndarray
    """(R, W), cores."""
    machines: np.ndarray
    """(9, M)."""
    free: np.ndarray
    """(M, W), cores."""
    touched_s: np.ndarray
    """(M, cores), when each core came to its state."""
    steps_s: np.ndarray
    alive: np.ndarray
    """The times of the steps of the capacity, which end at infinity, and machines alive since then."""
    nodes: np.ndarray
    """(2, N), jobs in the queues of machines, and the nodes behind them."""
    heap_s: np.ndarray
    heap: np.ndarray
    """(2, H), rank and serial of an event, and what it is about."""
    pending: np.ndarray
    """(2, P), what the present message tells, and the next."""
    ended: np.ndarray
    """(2, P), numbers of the jobs that have ended in a message; who is told of."""
    told: np.ndarray
    """What the planner told; or the scheduler's jobs in their order."""
    dropped: np.ndarray
    rows_s: np.ndarray
    """(6, L)."""
    rows: np.ndarray
    """(12, L)."""
    requests: np.ndarray
    """(Q, M + 1), machines of a request to switch, and whether on or off."""
    modes: np.ndarray
    """(3, p-states), hosts in a p-state, p-states in the order of their first use; on, asleep, and the virtual ones."""
    mode_w: np.ndarray
    """(2, p-states), base power and epsilon watts of a host."""
    seen: np.ndarray
    """(5,), hosts in each state."""
    counts: np.ndarray
    reals: np.ndarray
    settings: np.ndarray


# the clock --------------------------------------------------------------------------------------------------------


@compiled
def _rounded(time_s: float) -> float:
    """To 1e-6 s as Python's `round` does, the error of the product included."""
    whole = np.floor(time_s)
    part = time_s - whole
    product = part * 1e6
    # Dekker's product: a splits into two halves of 26 bits; 1e6 has 20
    high = part * 134217729.0
    high = high - (high - part)
    error = (high * 1e6 - product) + (part - high) * 1e6
    micros = np.floor(product)
    beyond = (product - micros - 0.5) + error
    if beyond > 0.0 or (beyond == 0.0 and micros % 2.0 == 1.0):
        micros += 1.0
    return (whole * 1e6 + micros) / 1e6


@compiled
def _at(n: Nominal, time_s: float, rank: int, what: int) -> None:
    counts, heap_s, heap = n.counts, n.heap_s, n.heap
    counts[SERIAL] += 1
    key = rank << RANK_BITS | counts[SERIAL]
    i = counts[EVENTS]
    counts[EVENTS] = i + 1
    while i > 0:
        parent = (i - 1) // 2
        if heap_s[parent] < time_s or (heap_s[parent] == time_s and heap[0, parent] < key):
            break
        heap_s[i], heap[0, i], heap[1, i] = heap_s[parent], heap[0, parent], heap[1, parent]
        i = parent
    heap_s[i], heap[0, i], heap[1, i] = time_s, key, what


@compiled
def _pop(n: Nominal) -> None:
    heap_s, heap = n.heap_s, n.heap
    count = n.counts[EVENTS] - 1
    n.counts[EVENTS] = count
    time_s, key, what = heap_s[count], heap[0, count], heap[1, count]
    i = 0
    while True:
        child = 2 * i + 1
        if child >= count:
            break
        right = child + 1
        if right < count and (
            heap_s[right] < heap_s[child] or (heap_s[right] == heap_s[child] and heap[0, right] < heap[0, child])
        ):
            child = right
        if time_s < heap_s[child] or (time_s == heap_s[child] and key < heap[0, child]):
            break
        heap_s[i], heap[0, i], heap[1, i] = heap_s[child], heap[0, child], heap[1, child]
        i = child
    heap_s[i], heap[0, i], heap[1, i] = time_s, key, what


@inlined
def _stale(n: Nominal, key: int, what: int) -> bool:
    """Whether an event is the end of a run that has been killed."""
    return key >> RANK_BITS == END and what >= 0 and n.runs[R_EVENT, what] != key


@compiled
def _run_due(n: Nominal, date_s: float) -> None:
    counts, reals = n.counts, n.reals
    while counts[EVENTS] and n.heap_s[0] <= date_s + PRECISION_S:
        moment_s, key, what = n.heap_s[0], n.heap[0, 0], n.heap[1, 0]
        _pop(n)
        if _stale(n, key, what):
            continue
        if moment_s > reals[CLOCK]:
            reals[CLOCK] = min(moment_s, date_s)
            reals[DATE] = _rounded(reals[CLOCK])
        _happen(n, key >> RANK_BITS, what)
    if date_s > reals[CLOCK]:
        reals[CLOCK] = date_s
        reals[DATE] = _rounded(date_s)


@compiled
def _round(n: Nominal) -> None:
    """What is due after an event of an answer, but for what comes of it."""
    counts = n.counts
    last = counts[SERIAL]
    # what is put off is kept behind the heap, which shrinks before it grows again
    kept = 0
    end = len(n.heap_s) - 1
    while counts[EVENTS] and n.heap_s[0] <= n.reals[CLOCK] + PRECISION_S:
        moment_s, key, what = n.heap_s[0], n.heap[0, 0], n.heap[1, 0]
        _pop(n)
        if _stale(n, key, what):
            continue
        if key & (1 << RANK_BITS) - 1 > last:
            n.heap_s[end - kept], n.heap[0, end - kept], n.heap[1, end - kept] = moment_s, key, what
            kept += 1
        else:
            _happen(n, key >> RANK_BITS, what)
    for i in range(kept):
        moment_s, key, what = n.heap_s[end - i], n.heap[0, end - i], n.heap[1, end - i]
        serial = counts[SERIAL]
        counts[SERIAL] = (key & (1 << RANK_BITS) - 1) - 1
        _at(n, moment_s, key >> RANK_BITS, what)
        counts[SERIAL] = serial


@inlined
def _cramped(n: Nominal) -> bool:
    """Whether what one message can bring has no room: each host may start or end a run, each machine may switch."""
    counts, hosts, most = n.counts, n.settings[MACHINES] * n.settings[CORES], 4 * n.settings[MACHINES]
    rows = max(max(counts[ENERGY_ROWS], counts[STATE_ROWS]), max(counts[PSTATE_ROWS], counts[MOVES]))
    return (
        rows + 4 * hosts + most > n.rows.shape[1]
        or counts[JOB_ROWS] + len(n.submit_s) + hosts > n.rows.shape[1]
        or counts[RUNS_MADE] + hosts > n.runs.shape[1]
        or counts[REQUESTS] + 2 > n.requests.shape[0]
        or 2 * counts[EVENTS] + 2 * hosts + most > len(n.heap_s)
    )


# the engine -------------------------------------------------------------------------------------------------------


@inlined
def _tell(n: Nominal, kind: int, about: int) -> None:
    n.pending[n.counts[CURRENT], n.counts[PENDING]] = kind << KIND_BITS | about
    n.counts[PENDING] += 1


@inlined
def _integrate(n: Nominal) -> None:
    reals = n.reals
    if reals[CLOCK] > reals[UPDATED]:
        reals[ENERGY_J] += (reals[CLOCK] - reals[UPDATED]) * reals[BASE_W]
        reals[UPDATED] = reals[CLOCK]


@inlined
def _energy_row(n: Nominal, kind: int) -> None:
    counts, reals = n.counts, n.reals
    if n.settings[ENERGY] != 0:
        row = counts[ENERGY_ROWS]
        counts[ENERGY_ROWS] = row + 1
        n.rows_s[E_S, row], n.rows_s[E_J, row] = reals[CLOCK], reals[ENERGY_J]
        n.rows_s[E_EPSILON_W, row], n.rows[E_KIND, row] = reals[EPSILON_W], kind
        if kind == COMPLETED:
            reals[LAST_END_J] = reals[ENERGY_J]


@inlined
def _states_row(n: Nominal) -> None:
    row = n.counts[STATE_ROWS]
    n.counts[STATE_ROWS] = row + 1
    n.rows_s[S_S, row] = n.reals[CLOCK]
    for state in range(5):
        n.rows[S_SLEEPING + state, row] = n.seen[state]


@inlined
def _pstate_row(n: Nominal, request: int, value: int) -> None:
    row = n.counts[PSTATE_ROWS]
    n.counts[PSTATE_ROWS] = row + 1
    n.rows_s[P_S, row], n.rows[P_REQUEST, row], n.rows[P_VALUE, row] = n.reals[CLOCK], request, value


@inlined
def _move(n: Nominal, count: int, source: int, target: int) -> None:
    row = n.counts[MOVES]
    n.counts[MOVES] = row + 1
    n.rows_s[MOVE_S, row] = n.reals[CLOCK]
    n.rows[MOVE_COUNT, row], n.rows[MOVE_FROM, row], n.rows[MOVE_TO, row] = count, source, target
    n.seen[source] -= count
    n.seen[target] += count


@inlined
def _touch(n: Nominal, m: int, run: int) -> None:
    """The cores of a run come to another state."""
    for core in range(n.settings[CORES]):
        if n.bits[run, core // WORD] >> core % WORD & 1:
            n.touched_s[m, core] = n.reals[CLOCK]


@compiled
def _switch_hosts(n: Nominal, request: int, before: int, after: int, source: int, target: int) -> int:
    """The hosts of a request go from one p-state and state to another; returns how many they are."""
    cores, count = n.settings[CORES], 0
    for m in range(n.settings[MACHINES]):
        if n.requests[request, m]:
            count += cores
            n.touched_s[m, :] = n.reals[CLOCK]
    _move(n, count, source, target)
    modes, counts = n.modes, n.counts
    modes[0, before] -= count
    modes[0, after] += count
    known = False
    for i in range(counts[MODES]):
        known |= modes[1, i] == after
    if not known:
        modes[1, counts[MODES]] = after
        counts[MODES] += 1
    base_w = epsilon_w = 0.0
    for i in range(counts[MODES]):
        mode = modes[1, i]
        if modes[0, mode] > 0:
            base_w += modes[0, mode] * n.mode_w[0, mode]
            epsilon_w += modes[0, mode] * n.mode_w[1, mode]
    n.reals[BASE_W], n.reals[EPSILON_W] = base_w, epsilon_w
    return count


@compiled
def _end_run(n: Nominal, run: int, state: int) -> None:
    counts, job = n.counts, n.runs[R_JOB, run]
    n.runs[R_STATE, run] = state
    n.runs[R_EVENT, run] = -1
    n.times[T_END, run] = n.reals[CLOCK]
    _touch(n, n.runs[R_MACHINE, run], run)
    _move(n, n.jobs[J_CORES, job], COMPUTING, IDLE)
    _integrate(n)
    _energy_row(n, COMPLETED)
    _states_row(n)
    _job_row(n, run)
    _tell(n, COMPLETED, run)


@inlined
def _job_row(n: Nominal, run: int) -> None:
    n.rows[JOB_RUN, n.counts[JOB_ROWS]] = run
    n.counts[JOB_ROWS] += 1
    n.counts[UNFINISHED] -= 1


@compiled
def _happen(n: Nominal, rank: int, what: int) -> None:
    counts, reals = n.counts, n.reals
    if rank == END:
        if what >= 0:
            _end_run(n, what, TIMEOUT if n.runs[R_LATE, what] != 0 else SUCCESS)
            return
        request = -1 - what
        on = n.requests[request, -1] == ON
        _integrate(n)
        if on:
            _switch_hosts(n, request, n.modes[2, 3], n.modes[2, 0], SWITCHING_ON, IDLE)
        else:
            _switch_hosts(n, request, n.modes[2, 2], n.modes[2, 1], SWITCHING_OFF, SLEEPING)
        _at(n, reals[CLOCK], ACKNOWLEDGE, request)
    elif rank == ACKNOWLEDGE:
        _integrate(n)
        _pstate_row(n, what, n.modes[2, 0] if n.requests[what, -1] == ON else n.modes[2, 1])
        _energy_row(n, SWITCHED)
        _states_row(n)
        _tell(n, SWITCHED, what)
    elif rank == LATE:
        counts[NOTICES] += 1
        _tell(n, NO_MORE_JOBS, 0)
    elif what == FIRST_SUBMISSION:
        _integrate(n)
        reals[FIRST_J] = reals[ENERGY_J]
    elif what == CALL:
        _tell(n, OTHER, 0)
    else:
        index, jobs = counts[NEXT_JOB], len(n.submit_s)
        if index < jobs:
            date_s = n.submit_s[index]
            while index < jobs and n.submit_s[index] == date_s:
                _tell(n, SUBMITTED, index)
                counts[UNFINISHED] += 1
                index += 1
        counts[NEXT_JOB] = index
        if index < jobs:
            _at(n, n.submit_s[index], ARRIVAL, SUBMISSIONS)
            return
        counts[MARK] = counts[PENDING]
        _at(n, reals[CLOCK], LATE, 0)


@compiled
def _message(n: Nominal) -> bool:
    """Go on to the next message; False if nothing can happen any more though something is left."""
    counts, reals = n.counts, n.reals
    if counts[BEGUN] == 0:
        _tell(n, OTHER, 0)
    else:
        if counts[EVENTS] and n.heap_s[0] <= reals[CLOCK] + PRECISION_S:
            _run_due(n, reals[CLOCK])
        while counts[PENDING] == 0:
            while counts[EVENTS] and _stale(n, n.heap[0, 0], n.heap[1, 0]):
                _pop(n)
            if counts[EVENTS] == 0:
                if counts[UNFINISHED] != 0 or counts[CLOSED] == 0:
                    return False
                _tell(n, SIMULATION_ENDS, 0)
                break
            counts[BUSY] = 0
            _run_due(n, n.heap_s[0])
    read, counts[READ], counts[PENDING] = counts[CURRENT], counts[PENDING], 0
    counts[CURRENT] = 1 - read
    if counts[NOTICES]:
        # the last notice waits for the next message if it alone had something
        if counts[NOTICES] == 1 and counts[READ] - 1 == counts[MARK] and counts[MARK] > 0 and counts[BUSY] == 0:
            counts[READ] -= 1
            n.pending[1 - read, 0] = n.pending[read, counts[READ]]
            counts[PENDING] = 1
        counts[NOTICES] = 0
    counts[BUSY] = 1 - counts[BEGUN]
    counts[BEGUN] = 1
    reals[NOW] = reals[DATE]
    return True


# what the engine is asked for -------------------------------------------------------------------------------------


@inlined
def _replied(n: Nominal) -> None:
    """An event of the answer has been carried out."""
    n.counts[REPLIED] += 1
    if n.counts[EVENTS] and n.heap_s[0] <= n.reals[CLOCK] + PRECISION_S:
        _round(n)


@compiled
def _reject(n: Nominal, job: int, why: int) -> None:
    run = n.jobs[J_RUN, job]
    n.runs[R_STATE, run] = why
    _job_row(n, run)
    _replied(n)


@inlined
def _new_run(n: Nominal, job: int, length_s: float, submit_s: float) -> None:
    run = n.counts[RUNS_MADE]
    n.counts[RUNS_MADE] = run + 1
    before = n.jobs[J_RUN, job]
    n.runs[R_JOB, run], n.runs[R_STATE, run], n.runs[R_ATTEMPT, run] = job, WAITS, n.runs[R_ATTEMPT, before] + 1
    n.times[T_SUBMIT, run], n.times[T_LENGTH, run] = submit_s, length_s
    n.jobs[J_RUN, job] = run


@compiled
def _kill(n: Nominal, count: int) -> None:
    """Kill the runs of the first jobs of `ended[1]`, at once."""
    counts = n.counts
    if count == 0:
        return
    for i in range(count):
        job = n.ended[1, i]
        n.jobs[J_DYING, job] = 1
        # one may have ended since the message
        if n.runs[R_STATE, n.jobs[J_RUN, job]] == RUNS:
            _end_run(n, n.jobs[J_RUN, job], KILLED)
    _tell(n, OTHER, 0)
    _replied(n)


@compiled
def _request(n: Nominal, on: int) -> None:
    """Switch the machines that should be on, or off, and can be."""
    counts, reals, machines = n.counts, n.reals, n.machines
    request, count = counts[REQUESTS], 0
    for m in range(n.settings[MACHINES]):
        due = machines[M_WANTED, m] != machines[M_ON, m] and machines[M_WANTED, m] == on
        due = due and machines[M_CHANGING, m] == 0 and machines[M_FREE, m] == n.settings[CORES]
        n.requests[request, m] = due
        if due:
            machines[M_CHANGING, m] = 1
            machines[M_READY, m] = 0
            count += 1
    if count == 0:
        return
    n.requests[request, -1] = on
    counts[REQUESTS] = request + 1
    _integrate(n)
    _energy_row(n, SWITCHED)
    _pstate_row(n, request, -1 if on == ON else -2)
    if on == ON:
        counts[SWITCHES] += _switch_hosts(n, request, n.modes[2, 1], n.modes[2, 3], SLEEPING, SWITCHING_ON)
        _at(n, reals[CLOCK] + reals[ON_S], END, -1 - request)
    else:
        counts[SWITCHES] += _switch_hosts(n, request, n.modes[2, 0], n.modes[2, 2], IDLE, SWITCHING_OFF)
        _at(n, reals[CLOCK] + reals[OFF_S], END, -1 - request)
    _states_row(n)
    _replied(n)


@compiled
def _start(n: Nominal, job: int, m: int) -> None:
    """Start a job on the lowest free cores of a machine."""
    jobs, run, left = n.jobs, n.jobs[J_RUN, job], n.jobs[J_CORES, job]
    jobs[J_WANTED, job], jobs[J_HAS, job], jobs[J_MACHINE, job] = 0, 1, m
    n.machines[M_FREE, m] -= left
    n.counts[RUNNING] += 1
    for word in range(n.free.shape[1]):
        taken = 0
        while left > 0 and n.free[m, word] != 0:
            low = n.free[m, word] & -n.free[m, word]
            taken |= low
            n.free[m, word] ^= low
            left -= 1
        n.bits[run, word] = taken
    now_s = n.reals[CLOCK]
    end_s, deadline_s = now_s + n.times[T_LENGTH, run], now_s + n.walltime_s[job]
    late = end_s >= deadline_s - PRECISION_S
    n.runs[R_STATE, run], n.runs[R_MACHINE, run], n.runs[R_LATE, run] = RUNS, m, late
    n.times[T_START, run], n.times[T_SEEN, run] = now_s, n.reals[NOW]
    _touch(n, m, run)
    _move(n, jobs[J_CORES, job], IDLE, COMPUTING)
    _integrate(n)
    _energy_row(n, SUBMITTED)
    _states_row(n)
    _at(n, deadline_s if late else end_s, END, run)
    n.runs[R_EVENT, run] = END << RANK_BITS | n.counts[SERIAL]
    _replied(n)


# the scheduler ----------------------------------------------------------------------------------------------------


@inlined
def _known(n: Nominal, job: int) -> None:
    """The scheduler tracks a job from now on, behind all others."""
    n.counts[STATES] += 1
    n.jobs[J_SEQUENCE, job] = n.counts[STATES]


@compiled
def _completed(n: Nominal, run: int) -> None:
    counts, jobs, job = n.counts, n.jobs, n.runs[R_JOB, run]
    killed = jobs[J_DYING, job] != 0 and n.runs[R_STATE, run] == KILLED
    m = jobs[J_MACHINE, job]
    jobs[J_DYING, job] = jobs[J_HAS, job] = jobs[J_SEQUENCE, job] = 0
    counts[RUNNING] -= 1
    n.machines[M_FREE, m] += jobs[J_CORES, job]
    for word in range(n.free.shape[1]):
        n.free[m, word] |= n.bits[run, word]
    if not killed:
        jobs[J_WANTED, job] = 0
        counts[LIVE] -= 1
        n.ended[0, counts[ENDED]] = jobs[J_NUMBER, job]
        counts[ENDED] += 1
    elif counts[STOPPED] == 0:
        if n.again_s[job] != n.again_s[job]:
            counts[LIVE] -= 1
            return
        _new_run(n, job, n.again_s[job], n.reals[NOW])
        counts[UNFINISHED] += 1
        _known(n, job)
        _replied(n)


@compiled
def _read(n: Nominal) -> bool:
    """What the message tells the scheduler; False if it was the last."""
    counts, reals, jobs = n.counts, n.reals, n.jobs
    read = 1 - counts[CURRENT]
    # an answer begins when the scheduler sees it, which is rounded
    if reals[NOW] > reals[CLOCK]:
        _run_due(n, reals[NOW])
    counts[REPLIED] = counts[ENDED] = counts[ARRIVED] = 0
    for i in range(counts[READ]):
        kind, about = n.pending[read, i] >> KIND_BITS, n.pending[read, i] & (1 << KIND_BITS) - 1
        if kind == SUBMITTED:
            if counts[STOPPED] != 0:
                _reject(n, about, GIVEN_UP)
            elif jobs[J_CORES, about] > n.settings[CORES]:
                _reject(n, about, WIDE)
            else:
                counts[ARRIVED] += 1
        elif kind == COMPLETED:
            _completed(n, about)
        elif kind == SWITCHED:
            on = n.requests[about, -1]
            for m in range(n.settings[MACHINES]):
                if n.requests[about, m]:
                    n.machines[M_CHANGING, m], n.machines[M_ON, m], n.machines[M_READY, m] = 0, on, on
        elif kind == NO_MORE_JOBS:
            counts[MORE_JOBS] = 0
        elif kind == SIMULATION_ENDS:
            return False
    return True


@compiled
def _receive(n: Nominal) -> None:
    """What the planner has told: kills, then starts into the queues of machines; and what it will never start."""
    counts, jobs, machines = n.counts, n.jobs, n.machines
    for number in range(counts[KNOWN], counts[KNOWN] + counts[ARRIVED]):
        _known(n, n.by_number[number])
    counts[KNOWN] += counts[ARRIVED]
    counts[LIVE] += counts[ARRIVED]
    kills = 0
    for i in range(counts[TOLD]):
        number = n.told[i]
        job = n.by_number[number if number >= 0 else -1 - number]
        jobs[J_WANTED, job] = number >= 0
        if number < 0 and jobs[J_HAS, job] != 0 and jobs[J_DYING, job] == 0:
            # not a second time; only `_kill` reads it
            jobs[J_DYING, job] = 1
            n.ended[1, kills] = job
            kills += 1
    counts[STAMP] += 1
    for i in range(counts[TOLD]):
        number = n.told[i]
        if number < 0:
            continue
        job = n.by_number[number]
        if jobs[J_WANTED, job] == 0 or jobs[J_STAMP, job] == counts[STAMP]:
            continue
        jobs[J_STAMP, job] = counts[STAMP]
        m, node = jobs[J_PLACE, job], counts[FREE_NODE]
        counts[FREE_NODE] = n.nodes[1, node]
        n.nodes[0, node], n.nodes[1, node] = job, -1
        if machines[M_TAIL, m] < 0:
            machines[M_HEAD, m] = node
        else:
            n.nodes[1, machines[M_TAIL, m]] = node
        machines[M_TAIL, m] = node
        machines[M_DUE, m] = 1
    _kill(n, kills)
    for i in range(counts[DROPPED]):
        job = n.by_number[n.dropped[i]]
        jobs[J_SEQUENCE, job] = 0
        counts[LIVE] -= 1
        _reject(n, job, REJECTED)
    counts[ALL_DROPPED] += counts[DROPPED]
    counts[TOLD] = counts[DROPPED] = 0
    if counts[STEPPED] != 0:
        counts[STEPPED] = counts[SETTLED] = 0


@compiled
def _switch(n: Nominal) -> None:
    """Switch what can be switched; what is late, and over by the plan when its machine goes, is still to run there."""
    counts, machines = n.counts, n.machines
    if n.settings[SWITCHES_OFF] == 0:
        counts[SETTLED] = 1
        return
    for m in range(n.settings[MACHINES]):
        machines[M_WANTED, m] = machines[M_ALIVE, m]
        if machines[M_ON, m] != 0 and machines[M_ALIVE, m] == 0:
            node = machines[M_HEAD, m]
            while node >= 0:
                job = n.nodes[0, node]
                if n.jobs[J_WANTED, job] != 0 and n.jobs[J_PLACE, job] == m:
                    machines[M_WANTED, m] = 1
                node = n.nodes[1, node]
    _request(n, ON)
    _request(n, OFF)
    counts[SETTLED] = 1
    for m in range(n.settings[MACHINES]):
        if machines[M_ALIVE, m] != machines[M_ON, m] or machines[M_CHANGING, m] != 0:
            counts[SETTLED] = 0


@compiled
def _start_due(n: Nominal, m: int) -> None:
    """Start the jobs that are due on a machine, as far as they are here and their cores are free."""
    counts, jobs, machines, nodes = n.counts, n.jobs, n.machines, n.nodes
    node, last = machines[M_HEAD, m], -1
    while node >= 0:
        job, after = nodes[0, node], nodes[1, node]
        gone = jobs[J_WANTED, job] == 0 or jobs[J_PLACE, job] != m
        if not gone and jobs[J_HAS, job] == 0 and machines[M_FREE, m] >= jobs[J_CORES, job]:
            _start(n, job, m)
            gone = True
        if gone:
            if last < 0:
                machines[M_HEAD, m] = after
            else:
                nodes[1, last] = after
            nodes[1, node] = counts[FREE_NODE]
            counts[FREE_NODE] = node
        else:
            last = node
        node = after
    machines[M_TAIL, m] = last
    machines[M_DUE, m] = last >= 0


@inlined
def _finished(n: Nominal) -> bool:
    return n.counts[MORE_JOBS] == 0 and n.counts[LIVE] == 0 and n.counts[RUNNING] == 0


@compiled
def _give_up(n: Nominal, why: int) -> int:
    """Reject the jobs that wait, in the scheduler's order; returns how many are left."""
    left = 0
    for i in range(n.counts[ORDERED]):
        job = n.told[i]
        if n.jobs[J_HAS, job] != 0:
            left += 1
            continue
        n.jobs[J_SEQUENCE, job] = 0
        _reject(n, job, why)
    return left


@compiled
def _stop(n: Nominal) -> None:
    """The window is over: reject what waits, kill what runs."""
    kills = 0
    for i in range(n.counts[ORDERED]):
        job = n.told[i]
        if n.jobs[J_HAS, job] != 0 and n.jobs[J_DYING, job] == 0:
            n.ended[1, kills] = job
            kills += 1
    _give_up(n, GIVEN_UP)
    n.counts[LIVE] = 0
    _kill(n, kills)


@compiled
def _wake(n: Nominal, time_s: float) -> None:
    if n.reals[NOW] < time_s < np.inf:
        _at(n, max(time_s, n.reals[CLOCK] + SHORTEST_CALL_S), ARRIVAL, CALL)
        _replied(n)


@compiled
def _call(n: Nominal) -> None:
    """Ask to be woken at the next step and at the end."""
    counts, reals = n.counts, n.reals
    step_s, until_s = n.steps_s[counts[STEP]], reals[UNTIL]
    if until_s < step_s and counts[ASKED_END] == 0:
        _wake(n, until_s)
        counts[ASKED_END] = 1
    if step_s != until_s or counts[ASKED_END] == 0:
        _wake(n, step_s)
    if until_s > step_s and counts[ASKED_END] == 0:
        _wake(n, until_s)
    counts[ASKED_END] = 1
    counts[ASKED] = counts[STEP]


@compiled
def go(n: Nominal) -> int:
    """Go on until the caller is needed: `CONSULT` the planner, `ORDER` the scheduler's jobs, `GROW`; or to the end."""
    counts, reals = n.counts, n.reals
    while True:
        if counts[PHASE] == MESSAGE:
            if _cramped(n):
                return GROW
            if not _message(n):
                return DEADLOCK
            if not _read(n):
                return OVER
            counts[PHASE] = RECEIVE
            news = counts[ENDED] > 0 or counts[ARRIVED] > 0 or n.steps_s[counts[STEP]] <= reals[NOW] + LAG_S
            if counts[STOPPED] == 0 and news:
                return CONSULT
        if counts[PHASE] == RECEIVE and counts[STOPPED] == 0:
            _receive(n)
            if reals[NOW] >= reals[UNTIL]:
                counts[STOPPED] = 1
                counts[PHASE] = STOP
                return ORDER
            if counts[SETTLED] == 0:
                _switch(n)
            for m in range(n.settings[MACHINES]):
                if n.machines[M_DUE, m] != 0 and n.machines[M_READY, m] != 0:
                    _start_due(n, m)
            last = n.steps_s[counts[STEP]] == np.inf
            if (last or counts[ASKED] != counts[STEP]) and not _finished(n):
                if last and counts[MORE_JOBS] == 0 and reals[UNTIL] == np.inf and counts[ALIVE] == 0:
                    counts[PHASE] = UNRUNNABLE
                    return ORDER
                _call(n)
        elif counts[PHASE] == STOP:
            _stop(n)
        elif counts[PHASE] == UNRUNNABLE:
            before = counts[ORDERED]
            left = _give_up(n, NOWHERE)
            counts[LIVE] = left
            if left == before:
                _call(n)
        if counts[CLOSED] == 0 and _finished(n):
            counts[CLOSED] = 1
            _replied(n)
        if counts[ANSWERED] == 0:
            counts[ANSWERED] = 1
            if counts[REPLIED] == 0:
                counts[BUSY] = 0
        counts[PHASE] = MESSAGE
