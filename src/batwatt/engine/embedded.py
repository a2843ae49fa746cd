"""Running a scheduler on the embedded engine, in process or behind a socket."""

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
    """Run any pybatsim scheduler on the engine in this process; returns what the simulation wrote down.

    `watch` may wrap the link between both (progress). A deadlock calls the scheduler's `onDeadlock` and raises
    DeadlockError; an illegal decision raises IllegalDecisionError.
    """
    bs = Bs(scheduler, watch(engine) if watch else engine)
    with seldom_collected():
        # platform and jobs are no garbage
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
    """Look for garbage seldom: rows and jobs live to the end, and going through them again and again takes time."""
    thresholds = gc.get_threshold()
    gc.set_threshold(500_000, 20, 100)
    try:
        yield
    finally:
        gc.set_threshold(*thresholds)


def serve(engine: Engine, endpoint: str, patience_s: float | None = None) -> Record:
    """Play Batsim on the wire for the scheduler that listens on `endpoint`."""
    # zmq takes a while to be loaded, and is for two processes only
    from batwatt.engine.wire import EngineSocket

    with EngineSocket(endpoint, patience_s) as socket:
        while not engine.ended:
            engine.reply(socket.ask(engine.message()))
    return engine.close()
