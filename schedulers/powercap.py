"""The system of the powercap paper (Fontana de Nardin, Stolf, Caux, IGSC 2022) as a Batsim scheduler."""

from collections.abc import Mapping
from typing import Any, ClassVar

from batwatt.options.files import read_options
from batwatt.scheduling.backfilling import Backfilling, EasyBackfilling
from batwatt.scheduling.orders import Order, Slowdown
from batwatt.systems.powercap.responses import HighestFlopsLowestDeadline, Response
from batwatt.systems.powercap.scheduler import EnvelopeScheduler


class Powercap(EnvelopeScheduler):
    """EASY backfilling, largest slowdown first, under a power envelope (powercap paper, section V)."""

    order: ClassVar[Order] = Slowdown()
    backfilling: ClassVar[Backfilling] = EasyBackfilling()
    response: ClassVar[Response] = HighestFlopsLowestDeadline()

    def __init__(self, options: Mapping[str, Any] | None = None) -> None:
        super().__init__(read_options(self.Options, options))
