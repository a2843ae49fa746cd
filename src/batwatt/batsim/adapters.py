"""Runs of a scheduler on an engine, held submissions, and schedulers of pybatsim's high-level API.

The link is between an engine and any scheduler. Submissions before their time are held, and so is the notice of the
last job. A call of Batsim is requested at that time, which is not passed on.
"""

from __future__ import annotations

import gc
import logging
import math
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from heapq import heappop, heappush
from tempfile import TemporaryDirectory
from types import FunctionType
from typing import Any, Protocol

from batsim.batsim import BatsimScheduler

from batwatt.batsim import events as ev
from batwatt.batsim.bs import Bs, Link
from batwatt.errors import DeadlockError
from batwatt.model.record import Record
from batwatt.units import LAG_S


class Simulated(Link, Protocol):
    """An engine in this process: a link that gives the record at the end."""

    @property
    def ended(self) -> bool:
        """True after the end of the simulation."""

    def close(self) -> Record:
        """End the simulation; return its record."""


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


def simulate(engine: Simulated, scheduler: BatsimScheduler, watch: Callable[[Link], Link] | None = None) -> Record:
    """Run any pybatsim scheduler on the engine in this process; return the record of the simulation.

    `watch` may wrap the link between both (progress). A deadlock calls `onDeadlock` of the scheduler and raises
    DeadlockError; an illegal decision raises IllegalDecisionError.
    """
    bs = Bs(scheduler, watch(engine) if watch else engine)
    with seldom_collected():
        # platform and jobs live until the end
        gc.freeze()
        try:
            bs.start()
        except DeadlockError as deadlock:
            try:
                scheduler.onDeadlock()
            except ValueError as error:
                raise deadlock from error
            raise
        finally:
            gc.unfreeze()
    return engine.close()


@contextmanager
def seldom_collected() -> Iterator[None]:
    """Collect garbage seldom: rows and jobs live to the end, and each collection visits all of them."""
    thresholds = gc.get_threshold()
    gc.set_threshold(500_000, 20, 100)
    try:
        yield
    finally:
        gc.set_threshold(*thresholds)


def serve(engine: Simulated, endpoint: str, patience_s: float | None = None) -> Record:
    """Act as Batsim on the wire for the scheduler that listens on `endpoint`; return the record. Raises PeerError."""
    # imported here, as zmq loads slowly and only two processes need it
    from batwatt.batsim.wire import EngineSocket

    with EngineSocket(endpoint, patience_s) as socket:
        while not engine.ended:
            engine.reply(socket.ask(engine.message()))
    return engine.close()


def low_level(thing: Any) -> type[BatsimScheduler] | None:
    """Return the low-level class for a scheduler function, or for a class derived from `Scheduler`; else None."""
    # the high-level API takes a while to be loaded
    from batsim.sched import as_scheduler
    from batsim.sched.scheduler import BaseBatsimScheduler, Scheduler

    kind = as_scheduler()(thing) if isinstance(thing, FunctionType) else thing
    if not issubclass(kind, Scheduler):
        return None

    class HighLevel(kind):  # type: ignore[misc, valid-type]
        """The high-level scheduler, with a time that is never 0 s."""

        def _update_time(self) -> None:
            # the least time that `Allocation` accepts as a start, negligible next to other times
            self._time = self._batsim.time() or math.ulp(0.0)

    class LowLevel(BaseBatsimScheduler):
        """The low-level scheduler, whose callbacks call the high-level one."""

        def __init__(self, options: Mapping[str, Any]) -> None:
            logging.getLogger(f"{HighLevel.__name__}_Events").propagate = False
            with TemporaryDirectory(prefix="batwatt-") as folder:
                high = HighLevel(dict(options) | {"export-prefix": f"{folder}/high-level"})
                for logger in (high._logger._logger, high._event_logger._logger):
                    for handler in list(logger.handlers):
                        logger.removeHandler(handler)
                        handler.close()
                    logger.setLevel(logging.NOTSET)
            super().__init__(high, options)
            high._scheduler = self

    for made in (HighLevel, LowLevel):
        # errors and lists show the names of the author
        made.__module__, made.__name__, made.__doc__ = thing.__module__, thing.__name__, thing.__doc__
    return LowLevel
