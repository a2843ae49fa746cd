"""The system of the powercap paper (Fontana de Nardin, Stolf, Caux, IGSC 2022) as a Batsim scheduler."""

from batwatt.policy.envelope import EnvelopeScheduler
from batwatt.policy.orders import Slowdown
from batwatt.policy.placement import EasyBackfilling
from batwatt.policy.responses import HighestFlopsLowestDeadline


class Powercap(EnvelopeScheduler):
    """EASY backfilling, largest slowdown first, under a power envelope (powercap paper, section V)."""

    order = Slowdown()
    placement = EasyBackfilling()
    response = HighestFlopsLowestDeadline()
