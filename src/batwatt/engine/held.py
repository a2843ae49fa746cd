"""Jobs whose submission is passed on to a scheduler at a later time, from which on it plans with them.

The link is between an engine and any scheduler. Submissions before their time are held, and so is the notice of the
last job. A call of Batsim is requested at that time, which is not passed on.
"""

from __future__ import annotations

from collections.abc import Mapping
from heapq import heappop, heappush
from typing import Any

from batwatt.engine import events as ev
from batwatt.units import LAG_S


class HeldArrivals:
    """A link that passes the submission of job `id` on at `until_s[id]` if that is later; times in s."""

    def __init__(self, link: Any, until_s: Mapping[str, float]) -> None:
        self._link = link
        self._until_s = until_s
        self._held: list[tuple[float, int, ev.JobSubmitted]] = []
        self._last: ev.Event | None = None
        self._calls: list[float] = []
        """Times of the calls of Batsim, ascending; those in `_new` are not requested yet."""
        self._new: set[float] = set()
        self._count = 0

    def message(self) -> ev.Message:
        """Return the next message of the engine, with the submissions that are due."""
        message: ev.Message = self._link.message()
        passed: list[ev.Event] = []
        for event in message.events:
            if isinstance(event, ev.JobSubmitted) and self._until_s.get(event.job_id, 0.0) > message.now + LAG_S:
                until_s = self._until_s[event.job_id]
                self._count += 1
                heappush(self._held, (until_s, self._count, event))
                self._new.add(until_s)
            elif isinstance(event, ev.Notified) and event.kind == ev.NO_MORE_JOBS and self._held:
                self._last = event
            elif isinstance(event, ev.RequestedCall) and self._calls and self._calls[0] <= message.now + LAG_S:
                heappop(self._calls)
            else:
                passed.append(event)
        while self._held and self._held[0][0] <= message.now + LAG_S:
            event = heappop(self._held)[2]
            event.time = message.now
            passed.append(event)
        if self._last is not None and not self._held:
            passed.append(self._last)
            self._last = None
        return ev.Message(message.now, passed)

    def reply(self, reply: ev.Reply) -> None:
        """Pass on the scheduler's decisions, with requests of calls for held submissions."""
        calls = []
        for until_s in sorted(self._new):
            heappush(self._calls, until_s)
            calls.append(ev.CallMeLater(reply.now, until_s))
        self._new.clear()
        self._link.reply(ev.Reply(reply.now, [*reply.decisions, *calls]))
