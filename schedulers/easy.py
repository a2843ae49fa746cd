"""EASY backfilling, the scheduler that others are compared with, as a Batsim scheduler."""

from batwatt.schedulers.powercap import Powercap
from batwatt.schedulers.powercap.responses import NoConfiguration
from batwatt.scheduling.orders import FirstCome


class Easy(Powercap):
    """EASY backfilling, first come, first served, without a response to power (Lifka, JSSPP 1995)."""

    order = FirstCome()
    response = NoConfiguration()
