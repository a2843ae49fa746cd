"""Checkpoint planning (Cendrier, Benoit, Vivien), as a Batsim scheduler (docs/explanation/checkpoint.md)."""

from collections.abc import Mapping
from typing import Any

from batwatt.options.files import read_options
from batwatt.systems.checkpoint.scheduler import CheckpointScheduler


class Checkpoint(CheckpointScheduler):
    """Checkpoints jobs before the number of machines changes, and plans the period after it."""

    def __init__(self, options: Mapping[str, Any] | None = None) -> None:
        super().__init__(read_options(self.Options, options))
