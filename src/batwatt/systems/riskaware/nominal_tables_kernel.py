"""The tables of a run without an engine, its clock and its heap of events, compiled; see `nominal_kernel`."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from batwatt.arrays import Integers, IntegerTable, Reals, RealTable
from batwatt.compiling import ahead_only

WORD = 62
"""Cores in a word of free cores; all of them positive."""
RANK_BITS = 48
SERIALS = (1 << RANK_BITS) - 1
FIRST_SUBMISSION, SUBMISSIONS, CALL = range(3)
"""Arrivals."""
ARRIVAL, END, ACKNOWLEDGE, LATE = range(1, 5)
"""Ranks of what happens at one time, as in `engine.kernel`."""
KIND_BITS = 48
SUBJECTS = (1 << KIND_BITS) - 1
SHORTEST_CALL_S = 1e-5
"""As in `engine.core`."""
OTHER, SUBMITTED, COMPLETED, SWITCHED, NO_MORE_JOBS, SIMULATION_ENDS = range(6)
"""What a message reports."""
SLEEPING, SWITCHING_ON, SWITCHING_OFF, IDLE, COMPUTING = range(5)
"""As in `engine.machines`."""
WAITS, RUNS, SUCCESS, TIMEOUT, KILLED, REJECTED, WIDE, GIVEN_UP, NOWHERE, LOST = range(10)
"""States of a run; from `REJECTED` on of one that never was."""
ON, OFF = 1, 0

# what `go` returns
CONSULT, ORDER, GROW, GROW_PLAN, OVER, DEADLOCK = range(6)
# where it goes on
MESSAGE, ASK, RECEIVE, STOP, UNRUNNABLE = range(5)

(PHASE, SERIAL, EVENTS, CURRENT, PENDING, READ, BEGUN, ANSWERED, REPLIED, BUSY, NOTICES, MARK, NEXT_JOB,
 UNFINISHED, CLOSED, MORE_JOBS, LIVE, RUNNING, STATES, STOPPED, STEP, ASKED, ASKED_END, KNOWN, ARRIVED, ENDED,
 DECISIONS, DROPPED, ALL_DROPPED, ORDERED, STEPPED, ALIVE, SETTLED, RUNS_MADE, ENERGY_ROWS, STATE_ROWS,
 PSTATE_ROWS, MOVES, JOB_ROWS, REQUESTS, SWITCHES, FREE_NODE, MODES, QUEUED, STAMP) = range(45)  # fmt: skip
"""Counts."""
(CLOCK, NOW, UNTIL, UPDATED, ENERGY_J, FIRST_J, LAST_END_J, BASE_W, EPSILON_W, OFF_S, ON_S) = range(11)
"""Reals: the engine's clock, the time of the message as the scheduler sees it, the end of the window, ..."""
MACHINES, CORES, ENERGY, SWITCHES_OFF, COMPILED, MOST_LIVE = range(6)
"""Settings; whether the planner is compiled, and of how many jobs at once its tables hold the profiles."""
J_CORES, J_RUN, J_NUMBER, J_WANTED, J_DYING, J_HAS, J_MACHINE, J_PLACE, J_SEQUENCE, J_STAMP = range(10)
"""Of a job: its present run, its number among the planner's, started by the planner and not yet here, being killed,
whether it has hosts, where, where the planner has it, its place among the scheduler's jobs (0: none)."""
M_FREE, M_READY, M_ON, M_WANTED, M_CHANGING, M_ALIVE, M_DUE, M_HEAD, M_TAIL = range(9)
R_JOB, R_STATE, R_EVENT, R_MACHINE, R_ATTEMPT, R_LATE = range(6)
T_SUBMIT, T_LENGTH, T_START, T_SEEN, T_END = range(5)
"""Times of a run, in s; `T_SEEN`: its start as the scheduler sees it."""
E_S, E_J, E_EPSILON_W, S_S, P_S, MOVE_S = range(6)
E_KIND, S_SLEEPING, P_REQUEST, P_VALUE, MOVE_COUNT, MOVE_FROM, MOVE_TO, JOB_RUN = 0, 1, 7, 8, 9, 10, 11, 12
"""Rows of Batsim's files, and moves of hosts between states; six states from `S_SLEEPING` on, the last of no host."""

J_FIELDS, R_FIELDS, T_FIELDS, M_FIELDS, S_FIELDS, ROW_FIELDS, COUNTS, REALS = 10, 6, 5, 9, 6, 13, 45, 11
GROWING = {"runs": 1, "times": 1, "bits": 0, "rows_s": 1, "rows": 1, "requests": 0, "heap_s": 0, "heap": 1}
"""Tables that may get longer, and along which axis."""


class Nominal(NamedTuple):
    """All that is known. J jobs, R runs, M machines of W words of cores, L rows, Q requests, N nodes of queues."""

    jobs: IntegerTable
    """(10, J)."""
    submit_s: Reals
    """(J,), ascending."""
    again_s: Reals
    """(J,), what the next run takes if this one is killed; NaN: there is none."""
    walltime_s: Reals
    """(J,), infinite without one."""
    by_number: Integers
    """(J,), the planner's jobs."""
    runs: IntegerTable
    """(6, R)."""
    times: RealTable
    """(5, R)."""
    bits: IntegerTable
    """(R, W), cores."""
    machines: IntegerTable
    """(9, M)."""
    free: IntegerTable
    """(M, W), cores."""
    touched_s: RealTable
    """(M, cores), when each core came to its state."""
    steps_s: Reals
    alive: Integers
    """The times of the steps of the capacity, which end at infinity, and machines alive since then."""
    nodes: IntegerTable
    """(2, N), jobs in the queues of machines, and the nodes behind them."""
    heap_s: Reals
    heap: IntegerTable
    """(2, H), rank and serial of an event, and what it is about."""
    pending: IntegerTable
    """(2, P), what the present message reports, and the next."""
    ended: IntegerTable
    """(2, P), numbers of the jobs that have ended in a message; and of those that are to be killed."""
    decisions: Integers
    """Of the planner, as in `target_tables`; or the scheduler's jobs in their order."""
    dropped: Integers
    """The planner's jobs that it will never start; -1 - n: job n, which is lost before it has begun."""
    rows_s: RealTable
    """(6, L)."""
    rows: IntegerTable
    """(13, L)."""
    requests: IntegerTable
    """(Q, M + 1), machines of a request to switch, and whether on or off."""
    modes: IntegerTable
    """(3, p-states), hosts in a p-state, p-states in the order of their first use; on, asleep, and the virtual ones."""
    mode_w: RealTable
    """(2, p-states), base power and epsilon watts of a host."""
    seen: Integers
    """(5,), hosts in each state."""
    counts: Integers
    reals: Reals
    settings: Integers


# the clock --------------------------------------------------------------------------------------------------------


@ahead_only
def rounded(time_s: float) -> float:
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


@ahead_only
def push(n: Nominal, time_s: float, rank: int, what: int) -> None:
    """Let something happen at a time."""
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


@ahead_only
def pop(n: Nominal) -> None:
    """Remove the first event."""
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


@ahead_only
def stale(n: Nominal, key: int, what: int) -> bool:
    """Whether an event is the end of a run that has been killed."""
    return key >> RANK_BITS == END and what >= 0 and n.runs[R_EVENT, what] != key
