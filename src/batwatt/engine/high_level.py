"""pybatsim's high-level API (`batsim.sched`): its schedulers as those of the low-level one, which `Bs` calls.

What differs from `pybatsim`: neither a log on stderr nor a file of events is written, and a job may start at 0 s, where
pybatsim's `Allocation` asserts that a start is later.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Mapping
from tempfile import TemporaryDirectory
from types import FunctionType
from typing import Any

from batsim.sched import as_scheduler
from batsim.sched.scheduler import BaseBatsimScheduler, Scheduler


def low_level(thing: Any) -> type[BaseBatsimScheduler] | None:
    """The class of schedulers that wraps a function, or a class derived from `Scheduler`; None of another thing."""
    kind = as_scheduler()(thing) if isinstance(thing, FunctionType) else thing
    if not issubclass(kind, Scheduler):
        return None

    class HighLevel(kind):  # type: ignore[misc, valid-type]
        """It knows the time from 0 s on."""

        def _update_time(self) -> None:
            # the least that passes for a start, and is nothing beside any other time
            self._time = self._batsim.time() or math.ulp(0.0)

    class LowLevel(BaseBatsimScheduler):
        """Its callbacks decide by the high-level scheduler."""

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
        # errors and lists name what the author wrote
        made.__module__, made.__name__, made.__doc__ = thing.__module__, thing.__name__, thing.__doc__
    return LowLevel
