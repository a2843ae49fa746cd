"""Adapter of schedulers for pybatsim's high-level API (`batsim.sched`) to the low-level one, which `Bs` calls.

Differences to `pybatsim`: no log on stderr and no file of events are written, and a job may start at 0 s, where
`Allocation` of pybatsim asserts a later start.
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
    """Return the low-level class for a scheduler function, or for a class derived from `Scheduler`; else None."""
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
