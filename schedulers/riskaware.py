"""The five strategies of the riskaware paper (Perotin et al., PMBS 2023) as a Batsim scheduler."""

from batwatt.systems.riskaware.scheduler import MachineScheduler


class Riskaware(MachineScheduler):
    """Risk-aware mapping of jobs to machines that come and go (riskaware paper, section 4)."""
