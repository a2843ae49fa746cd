"""Carbon-aware shifting of jobs in phases (GAIA, Let's Wait Awhile, the carbon thesis), as a Batsim scheduler."""

from collections.abc import Mapping
from typing import Any

from batwatt.options.files import read_options
from batwatt.systems.carbon.scheduler import ShiftingScheduler


class Carbon(ShiftingScheduler):
    """Shifts, suspends and resumes jobs in phases under a carbon or price signal, on as many machines as there are."""

    def __init__(self, options: Mapping[str, Any] | None = None) -> None:
        super().__init__(read_options(self.Options, options))

    @classmethod
    def needs_alike_hosts(cls, options: Mapping[str, Any]) -> bool:
        """See `Scheduler`."""
        return True
