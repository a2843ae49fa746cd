"""The options of the scheduler `slurm`, named as in slurm.conf (docs/explanation/slurm-scheduler.md)."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from batwatt.scheduling.options import SchedulerOptions

WEEK_S = 604_800.0
MOST_FACTOR = 65_533
"""Largest PriorityJobFactor and PriorityTier."""
MOST_PRIORITY = 2**32 - 1
"""Largest priority of a job, and weight; 0 is for held jobs."""


class PartitionOptions(BaseModel):
    """A partition as an option gives it."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)

    hosts: str | None = Field(None, description='ids as "0-63 70", names as "n[01-64]", or null: all hosts')
    max_time_s: float | None = Field(None, gt=0.0, description="a number > 0 (MaxTime in s)")
    max_nodes: int | None = Field(None, ge=1, description="a whole number >= 1 (MaxNodes)")
    priority_job_factor: int = Field(1, ge=0, le=MOST_FACTOR, description=f"a whole number from 0 to {MOST_FACTOR}")
    priority_tier: int = Field(1, ge=0, le=MOST_FACTOR, description=f"a whole number from 0 to {MOST_FACTOR}")


class SlurmOptions(SchedulerOptions):
    """Options of the scheduler `slurm`; the weights are those of the example in Slurm's documentation."""

    partitions: dict[str, Any] | None = Field(
        None,
        description="partition by name, the default one first: an object with hosts, max_time_s, max_nodes, "
        "priority_job_factor, priority_tier, all optional; by default one partition of all hosts",
    )
    qos: dict[str, Any] | None = Field(None, description="priority of each QOS by name; by default no job has any")
    shares: dict[str, Any] | None = Field(
        None, description="shares by user or account (Fairshare of sacctmgr); 1 for those not named"
    )
    fairshare_by: Literal["user", "account"] = Field("user", description="name that usage is charged to")
    fairshare: Literal["classic", "fair-tree"] = Field(
        "classic", description="fairshare factor: 2^(-usage/shares), or the rank by shares/usage"
    )
    fair_share_dampening_factor: int = Field(1, ge=1, le=65_533, description="FairShareDampeningFactor of classic")
    priority_weight_age: int = Field(1000, ge=0, le=MOST_PRIORITY, description="PriorityWeightAge")
    priority_weight_fairshare: int = Field(10_000, ge=0, le=MOST_PRIORITY, description="PriorityWeightFairshare")
    priority_weight_job_size: int = Field(1000, ge=0, le=MOST_PRIORITY, description="PriorityWeightJobSize")
    priority_weight_partition: int = Field(1000, ge=0, le=MOST_PRIORITY, description="PriorityWeightPartition")
    priority_weight_qos: int = Field(0, ge=0, le=MOST_PRIORITY, description="PriorityWeightQOS")
    priority_favor_small: bool = Field(False, description="PriorityFavorSmall: narrow jobs have the larger size factor")
    priority_max_age_s: float = Field(WEEK_S, gt=0.0, description="PriorityMaxAge in s")
    priority_decay_half_life_s: float = Field(WEEK_S, ge=0.0, description="PriorityDecayHalfLife in s; 0: no decay")
    priority_calc_period_s: float = Field(300.0, ge=1.0, description="PriorityCalcPeriod in s")
    default_queue_depth: int = Field(100, ge=1, description="jobs that the main scheduling tests at an event")
    sched_interval_s: float = Field(60.0, ge=1.0, description="sched_interval in s: main scheduling of all jobs")
    bf_interval_s: float = Field(30.0, ge=1.0, le=10_800.0, description="bf_interval in s between backfill passes")
    bf_window_s: float = Field(86_400.0, ge=60.0, le=2_592_000.0, description="bf_window in s of the plans of backfill")
    bf_resolution_s: float = Field(60.0, ge=1.0, le=3600.0, description="bf_resolution in s of the times of the plan")
    bf_max_job_test: int = Field(500, ge=1, le=1_000_000, description="jobs that a backfill pass tests")
    bf_max_job_user: int = Field(0, ge=0, description="jobs of a user that a backfill pass tests; 0: no limit")
