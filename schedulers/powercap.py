"""The system of the powercap paper (Fontana de Nardin, Stolf, Caux, IGSC 2022) as a Batsim scheduler."""

from batwatt.scheduling.backfilling import EasyBackfilling
from batwatt.scheduling.orders import Slowdown
from batwatt.systems.powercap.responses import HighestFlopsLowestDeadline
from batwatt.systems.powercap.scheduler import EnvelopeScheduler


class Powercap(EnvelopeScheduler):
    """EASY backfilling, largest slowdown first, under a power envelope (powercap paper, section V)."""

    order = Slowdown()
    backfilling = EasyBackfilling()
    response = HighestFlopsLowestDeadline()
