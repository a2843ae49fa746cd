"""The five strategies of the riskaware paper (Perotin et al., PMBS 2023) as a Batsim scheduler."""

from collections.abc import Mapping
from typing import Any

from batwatt.options.files import read_options
from batwatt.systems.riskaware.scheduler import MachineScheduler


class Riskaware(MachineScheduler):
    """Risk-aware mapping of jobs to machines that come and go (riskaware paper, section 4)."""

    def __init__(self, options: Mapping[str, Any] | None = None) -> None:
        super().__init__(read_options(self.Options, options))
