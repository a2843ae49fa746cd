"""Slurm's multifactor priority and backfill as a Batsim scheduler (docs/explanation/slurm-scheduler.md)."""

from collections.abc import Mapping, Sequence
from typing import Any

from batwatt.inputs.platforms.hostlist import expand
from batwatt.options.files import read_options
from batwatt.systems.slurm.scheduler import SlurmScheduler


class Slurm(SlurmScheduler):
    """Jobs by age, size, fairshare and QOS in partitions with limits, with backfill: a cluster under Slurm as today."""

    def __init__(self, options: Mapping[str, Any] | None = None) -> None:
        super().__init__(read_options(self.Options, options))

    def names_in(self, text: str) -> Sequence[str]:
        """See `SlurmScheduler`."""
        return expand(text)
