"""Runs of a scheduler on the embedded engine, in process or behind a socket."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from batsim.batsim import BatsimScheduler

from batwatt.engine.bs import Bs, Link
from batwatt.engine.core import Engine
from batwatt.errors import DeadlockError
from batwatt.model.record import Record


def simulate(engine: Engine, scheduler: BatsimScheduler, watch: Callable[[Link], Link] | None = None) -> Record:
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


def serve(engine: Engine, endpoint: str, patience_s: float | None = None) -> Record:
    """Act as Batsim on the wire for the scheduler that listens on `endpoint`; return the record. Raises PeerError."""
    # imported here, as zmq loads slowly and only two processes need it
    from batwatt.engine.wire import EngineSocket

    with EngineSocket(endpoint, patience_s) as socket:
        while not engine.ended:
            engine.reply(socket.ask(engine.message()))
    return engine.close()
