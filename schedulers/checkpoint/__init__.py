"""Checkpoints before changes of the capacity: docs/explanation/checkpoint.md."""

from batwatt.schedulers.checkpoint.scheduler import Checkpoint as Checkpoint
