"""The dispatch of GAIA: one pass a tick over a queue whose order changes with every pass.

GAIA takes all that waits out of a binary heap and puts what stays into a new one, every tick. Those who arrived in the
same tick are equal to the heap, so each pass permutes them. As long as nothing arrives or leaves, it is the same
permutation P of positions: k passes are P^k, and that takes one walk along each of its cycles.
docs/explanation/carbon-simulators.md.
"""

from __future__ import annotations

from typing import Final

from librt.vecs import vec
from mypy_extensions import i64

from batwatt.arrays import integers

ON_DEMAND: Final = 0
RESERVED: Final = 1
SPOT: Final = 2
"""On what a piece runs."""
NEVER: Final = -1
"""The start of a piece that is not run."""


def dispatch(
    submit: vec[i64],
    due: vec[i64],
    length: vec[i64],
    cpus: vec[i64],
    priority: vec[i64],
    early: vec[i64],
    spot: vec[i64],
    reserved: i64,
    ticks: i64,
) -> tuple[vec[i64], vec[i64]]:
    """The start (tick or NEVER) of each piece, and on what it runs; arrays by piece, in ascending order of `submit`.

    A piece starts at `due`, or before if it is `early` and its `cpus` are free among the `reserved`; `spot` pieces take
    none of those.
    """
    pieces = len(submit)
    room = [0] * pieces
    queue, heap, step, power, kind = integers(room), integers(room), integers(room), integers(room), integers(room)
    begin = integers([NEVER] * pieces)
    # cpus that are freed in a tick
    freed = integers([0] * (ticks + 1))
    waiting: i64 = 0
    following: i64 = 0
    idle: i64 = 0
    free, first_due = reserved, ticks
    for now in range(ticks):
        arrives = following < pieces and submit[following] <= now
        if arrives or now >= first_due or (waiting > 0 and now > 0 and freed[now - 1] > 0):
            if idle > 0 and waiting > 1:
                _pass_often(queue, waiting, priority, idle, heap, step, power)
            idle = 0
            while following < pieces and submit[following] <= now:
                queue[waiting] = following
                _up(queue, waiting, priority)
                waiting += 1
                following += 1
            _pass(queue, waiting, priority, heap)
            stay: i64 = 0
            first_due = ticks
            for index in range(waiting):
                piece = heap[index]
                if now >= due[piece] or (early[piece] != 0 and free >= cpus[piece]):
                    begin[piece] = now
                    kind[piece] = ON_DEMAND
                    if spot[piece] != 0:
                        kind[piece] = SPOT
                    elif free >= cpus[piece]:
                        kind[piece] = RESERVED
                        free -= cpus[piece]
                        freed[min(now + length[piece], ticks)] += cpus[piece]
                else:
                    queue[stay] = piece
                    stay += 1
                    first_due = min(first_due, due[piece])
            waiting = stay
        else:
            idle += 1
        free += freed[now]
        if following == pieces and waiting == 0:
            break
    return begin, kind


def _up(heap: vec[i64], at: i64, priority: vec[i64]) -> None:
    """Move a new last entry up to its place."""
    moved = heap[at]
    while at > 0:
        parent = (at - 1) >> 1
        if not priority[moved] < priority[heap[parent]]:
            break
        heap[at] = heap[parent]
        at = parent
    heap[at] = moved


def _pass(queue: vec[i64], size: i64, priority: vec[i64], popped: vec[i64]) -> None:
    """Take all entries out of the heap `queue`: `popped` has them in the order in which they come out."""
    strict = True
    for index in range(1, size):
        if not priority[queue[index - 1]] < priority[queue[index]]:
            strict = False
            break
    if strict:
        for index in range(size):
            popped[index] = queue[index]
        return
    left = size
    for index in range(size):
        popped[index] = queue[0]
        left -= 1
        if left == 0:
            break
        queue[0] = queue[left]
        at: i64 = 0
        # down along the smaller child, the right one of equals, to a leaf, and up again
        while at < left >> 1:
            child = 2 * at + 1
            if child + 1 < left and not priority[queue[child]] < priority[queue[child + 1]]:
                child += 1
            queue[at], queue[child] = queue[child], queue[at]
            at = child
        _up(queue, at, priority)


def _pass_often(
    queue: vec[i64], size: i64, priority: vec[i64], times: i64, heap: vec[i64], step: vec[i64], power: vec[i64]
) -> None:
    """Apply `times` passes, in which nothing leaves, to a queue in the order in which it came out of the last."""
    tied = False
    for index in range(1, size):
        if priority[queue[index - 1]] == priority[queue[index]]:
            tied = True
            break
    if not tied:
        return
    # a pass over positions instead of pieces shows its permutation: step[i] is the position that goes to i
    for index in range(size):
        heap[index] = priority[queue[index]]
        power[index] = index
    _pass(power, size, heap, step)
    for index in range(size):
        power[index] = NEVER
    for index in range(size):
        if power[index] != NEVER:
            continue
        around: i64 = 1
        at = step[index]
        while at != index:
            at = step[at]
            around += 1
        ahead = index
        for _ in range(times % around):
            ahead = step[ahead]
        at = index
        while power[at] == NEVER:
            power[at] = ahead
            at, ahead = step[at], step[ahead]
    for index in range(size):
        heap[index] = queue[index]
    for index in range(size):
        queue[index] = heap[power[index]]
