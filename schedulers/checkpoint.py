"""Checkpoint planning (Cendrier, Benoit, Vivien), as a Batsim scheduler (docs/explanation/checkpoint.md)."""

from batwatt.systems.checkpoint.scheduler import CheckpointScheduler


class Checkpoint(CheckpointScheduler):
    """Checkpoints jobs before the number of machines changes, and plans the period after it."""
