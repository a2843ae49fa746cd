"""The options of the scheduler `checkpoint` (docs/explanation/checkpoint.md)."""

from __future__ import annotations

from pydantic import Field

from batwatt.scheduling.capacity import MachineOptions
from batwatt.scheduling.options import NODES, PartChoice
from batwatt.systems.checkpoint.prepare import Cover, Objective
from batwatt.systems.checkpoint.sequence import Method


class CheckpointOptions(MachineOptions):
    """Options of the scheduler `checkpoint` (docs/explanation/checkpoint.md)."""

    method: Method = Field("dp", description="how a period is planned (section 2)")
    prepare: Objective | None = Field(
        None, description="who is checkpointed before a change: by default the cheapest, for subset-sum all"
    )
    cover: Cover = Field("k", description="how many processors that covers: k, or what may be missing")
    order: PartChoice | None = Field(
        None, description="order in which waiting jobs get what a period leaves free; by default as its plan has it"
    )
    node_selection: PartChoice = Field("first", description=NODES)
    k: int | None = Field(
        None, ge=0, le=100_000, description="most machines by which the capacity changes at once; by default true"
    )
    warning_s: float | None = Field(
        None,
        ge=0.0,
        description="how long before a change it is announced, in s; by default as long as checkpoints take",
    )
    checkpoint_s: float = Field(60.0, ge=0.0, description="time in s of a checkpoint of jobs that do not say")
    recovery_s: float = Field(60.0, ge=0.0, description="time in s of a recovery of jobs that do not say")
    min_yield: float = Field(
        0.0, ge=0.0, le=1.0, description="yield under which a job is due, 0 for goodput alone (not with subset-sum)"
    )
