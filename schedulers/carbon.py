"""Carbon-aware shifting of jobs in phases (GAIA, Let's Wait Awhile, the carbon thesis), as a Batsim scheduler."""

from batwatt.systems.carbon.scheduler import ShiftingScheduler


class Carbon(ShiftingScheduler):
    """Shifts, suspends and resumes jobs in phases under a carbon or price signal, on as many machines as there are."""
