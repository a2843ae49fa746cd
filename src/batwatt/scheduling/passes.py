"""The engine of backfilling: the choice of candidates to start now, in order; compiled where that is possible.

A system has two parts in it: the candidates, as its queue orders them, and a `Room` that they start in.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

from mypy_extensions import mypyc_attr

from batwatt.scheduling.queue import Gap


@mypyc_attr(allow_interpreted_subclasses=True)
class Room:
    """Resources in which jobs may start; `is_open` until nothing more fits.

    A queue may leave out jobs beyond `limits`, which only fall: the room checks each job itself.
    """

    def __init__(self) -> None:
        self.limits: Final = Gap()
        self.is_open = True

    def take(self, job: Any) -> bool:
        """Start a job; return False if it does not fit, now or beside a reservation."""
        raise NotImplementedError

    def reserve(self, job: Any) -> bool:
        """Reserve for a job that does not fit; return False if it gets no reservation, so that the next one may."""
        raise NotImplementedError

    def behind(self, candidates: Iterator[Any]) -> Iterator[Any]:
        """Select candidates behind the first job that does not fit: all of them, unless a room weighs whole sets."""
        return candidates


def backfill(rule: str, candidates: Iterator[Any], room: Room, aged: Sequence[Any] = ()) -> None:
    """Start candidates in order; one that does not fit is passed over, stops those behind it, or gets a reservation.

    `rule`: pass, stop or reserve (`Backfilling.blocked`). `aged` jobs come before all others, and the first of them
    that does not fit gets the reservation, whatever the rule.
    """
    first: set[int] = set()
    held = False
    for job in aged:
        if not room.is_open:
            return
        first.add(job.number)
        if not (room.take(job) or held):
            held = room.reserve(job)
    if held and rule == "stop":
        return
    unreserved = rule == "reserve" and not held
    blocked = held
    if held:
        candidates = room.behind(candidates)
    while room.is_open:
        job = next(candidates, None)
        if job is None:
            break
        if first and job.number in first:
            continue
        if room.take(job):
            continue
        if rule == "stop":
            break
        if unreserved:
            unreserved = not room.reserve(job)
        if not blocked:
            blocked = True
            candidates = room.behind(candidates)
