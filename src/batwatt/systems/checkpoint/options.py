"""The options of the scheduler `checkpoint` (docs/explanation/checkpoint.md)."""

from __future__ import annotations

from pydantic import Field

from batwatt.scheduling.capacity import MachineOptions
from batwatt.systems.checkpoint.prepare import Cover, Objective
from batwatt.systems.checkpoint.sequence import Method


class CheckpointOptions(MachineOptions):
    """Options of the scheduler `checkpoint` (docs/explanation/checkpoint.md)."""

    method: Method = Field("dp", description="planner of a period (section 2)")
    prepare: Objective | None = Field(
        None, description="jobs to checkpoint before a change: by default the cheapest, for subset-sum all"
    )
    cover: Cover = Field("k", description="processors to cover: k, or those that may be missing")
    k: int | None = Field(
        None, ge=0, le=100_000, description="most machines of one change of the capacity; by default the true number"
    )
    warning_s: float | None = Field(
        None,
        ge=0.0,
        description="time in s by which a change is announced in advance; by default the time of the checkpoints",
    )
    checkpoint_s: float = Field(60.0, ge=0.0, description="time in s of a checkpoint of jobs without one")
    recovery_s: float = Field(60.0, ge=0.0, description="time in s of a recovery of jobs without one")
    min_yield: float = Field(
        0.0, ge=0.0, le=1.0, description="yield under which a job is due, 0 for goodput alone (not with subset-sum)"
    )
