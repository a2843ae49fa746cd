"""First come, first served, as a Batsim scheduler."""

from batwatt.schedulers.easy import Easy
from batwatt.scheduling.backfilling import NoBackfilling


class Fcfs(Easy):
    """First come, first served, without backfilling and without a response to power."""

    backfilling = NoBackfilling()
