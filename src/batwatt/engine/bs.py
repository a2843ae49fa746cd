"""pybatsim's `bs` as our schedulers, and any pybatsim scheduler, see it: over a link to whatever plays Batsim."""

from __future__ import annotations

import logging
from typing import Any

from batsim.batsim import Batsim, BatsimScheduler

from batwatt.engine.bs_core import BsCore, Link
from batwatt.errors import ProtocolError

__all__ = ["Bs", "Link"]


class Bs(BsCore, Batsim):
    """The `bs` of a scheduler; `start()` runs the simulation to its end.

    It is a `Batsim` of pybatsim's with its whole method surface, but knows events instead of JSON. What differs:
    messages are not formatted for a log that nobody reads, a job that ended while it was being killed is not looked up
    in an empty progress, sets of several intervals are announced interval by interval.
    """

    def __init__(self, scheduler: BatsimScheduler, link: Link) -> None:
        # pybatsim's constructor opens a socket
        super().__init__(scheduler, link)
        self.logger = logging.getLogger(__name__)
        scheduler.bs = self
        self.begin()

    def notify_resources_added(self, resources: Any) -> None:
        """Refused: Batsim 4 does not know it. Raises ProtocolError."""
        raise ProtocolError("RESOURCES_ADDED is not something a scheduler can ask for")

    def notify_resources_removed(self, resources: Any) -> None:
        """Refused: Batsim 4 does not know it. Raises ProtocolError."""
        raise ProtocolError("RESOURCES_REMOVED is not something a scheduler can ask for")
