"""Options named as in slurm.conf, priorities, fairshare and partitions of the scheduler `multifactor`."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal

import numpy as np
from pydantic import BaseModel, ConfigDict, Field

from batwatt.checks import model_error, shown_json, validated
from batwatt.errors import InputError
from batwatt.model import hostset
from batwatt.model.platform import machine_of
from batwatt.scheduling.base import SchedulerOptions
from batwatt.units import REPORTED_S

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


class MultifactorOptions(SchedulerOptions):
    """Options of the scheduler `multifactor`; the weights are those of the example in Slurm's documentation."""

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


class Fairshare:
    """Processor seconds charged to names, and the factors of names, calculated at each multiple of a period.

    Usage u of a name that holds n processors follows u' = n - u ln 2 / half life; so it halves in a half life
    without new use (PriorityDecayHalfLife). Factors hold from one multiple of `period_s` (PriorityCalcPeriod) to the
    next.
    """

    def __init__(
        self, shares: Mapping[str, float], half_life_s: float, period_s: float, tree: bool, dampening: float = 1.0
    ) -> None:
        self._shares = dict(shares)
        self._usage = dict.fromkeys(shares, 0.0)
        """Processor seconds by name, at `_since_s`."""
        self._processors = dict.fromkeys(shares, 0)
        self._since_s = 0.0
        self._rate = math.log(2.0) / half_life_s if half_life_s else 0.0
        self._period_s = period_s
        self._tree = tree
        self._dampening = dampening
        self._factors: dict[str, float] = {}
        self.calculated_s = 0.0
        """Time in s of the last calculation."""

    def add(self, name: str) -> None:
        """Let a name have one share, if it has none."""
        if name not in self._shares:
            self._shares[name], self._usage[name], self._processors[name] = 1.0, 0.0, 0

    def charge(self, name: str, processors: int, now_s: float) -> None:
        """Let a name hold more processors (or fewer, if negative) from now on; after `advance`."""
        self._accrue(now_s)
        self._processors[name] += processors

    def advance(self, now_s: float) -> None:
        """Calculate the factors of the last multiple of the period up to now, before anything else happens now."""
        time_s = math.floor((now_s + REPORTED_S) / self._period_s) * self._period_s
        if time_s > self.calculated_s:
            self._accrue(time_s)
            self.calculated_s = time_s
            self._factors = self._ranks() if self._tree else self._classic()

    def usage(self, name: str, now_s: float) -> float:
        """Return the decayed usage of a name in processor seconds."""
        self._accrue(now_s)
        return self._usage[name]

    def factor(self, name: str) -> float:
        """Return the fairshare factor of a name, 0 to 1, as last calculated; 1 before that."""
        return self._factors.get(name, 1.0)

    def _accrue(self, now_s: float) -> None:
        """Add the use since the last time, and decay."""
        elapsed_s, rate = now_s - self._since_s, self._rate
        if elapsed_s <= 0.0:
            return
        self._since_s = now_s
        left = math.exp(-rate * elapsed_s)
        per_processor_s = (1.0 - left) / rate if rate else elapsed_s
        for name, processors in self._processors.items():
            self._usage[name] = self._usage[name] * left + processors * per_processor_s

    def _classic(self) -> dict[str, float]:
        """Return F = 2^(-U/S/d): U is the share of all usage, S of all shares ("Simplified Fair-Share Formula")."""
        used, shares = math.fsum(self._usage.values()), math.fsum(self._shares.values())
        if used <= 0.0:
            return {}
        # without a share, F is 0
        return {
            name: 2.0 ** (-(self._usage[name] / used) / (share / shares) / self._dampening) if share else 0.0
            for name, share in self._shares.items()
        }

    def _ranks(self) -> dict[str, float]:
        """Return rank / number of names, the largest shares/usage first; equal ones have one rank ("Fair Tree")."""
        levels = {
            name: (share / self._usage[name] if self._usage[name] > 0.0 else math.inf) if share else 0.0
            for name, share in self._shares.items()
        }
        ordered = sorted(levels.values(), reverse=True)
        first: dict[float, int] = {}
        for place, level in enumerate(ordered):
            first.setdefault(level, place)
        return {name: (len(ordered) - first[level]) / len(ordered) for name, level in levels.items()}


MINUTE_S: Final = 60.0
DEFAULT = {"default": PartitionOptions.model_validate({})}


@dataclass(frozen=True, slots=True)
class Partition:
    """Hosts as a mask, limits in s and nodes (infinite: none), the normalised job factor (0 to 1) and the tier."""

    name: str
    mask: int
    max_time_s: float
    max_nodes: float
    factor: float
    tier: int


def whole_minutes(time_s: float) -> float:
    """Return a time limit in s rounded up to the minute, as Slurm keeps it (`MaxTime` in slurm.conf)."""
    return math.ceil(time_s / MINUTE_S) * MINUTE_S if time_s < math.inf else time_s


def read_partitions(option: Mapping[str, Any] | None) -> Mapping[str, PartitionOptions]:
    """Check the option `partitions`. Raises InputError."""
    if option is None:
        return DEFAULT
    if not option:
        raise InputError("option 'partitions'", "names no partition", "leave it out for one of all hosts")

    def checked(name: str, value: Any) -> PartitionOptions:
        where = f"option 'partitions', {name!r}"
        if not isinstance(value, dict):
            raise InputError(
                where, f"must be an object, got {shown_json(value)}", 'write for instance {"hosts": "0-7"}'
            )
        fields, hint = PartitionOptions.model_fields, "see docs/explanation/slurm-scheduler.md"
        return validated(
            PartitionOptions, value, lambda error: model_error(where, error, hint, error["loc"][0], fields)
        )

    return {name: checked(name, value) for name, value in option.items()}


def partitions_of(
    options: Mapping[str, PartitionOptions],
    described: Sequence[Mapping[str, Any]],
    expand: Callable[[str], Sequence[str]],
) -> dict[str, Partition]:
    """Return the partitions on hosts that Batsim describes; `expand` lists the names in a text. Raises InputError.

    The job factor is normalised to the largest one (priority_multifactor, "Job Priority Factors In General").
    """
    masks: dict[str, int] = {}
    for host, facts in enumerate(described):
        for name in {facts["name"], machine_of(facts["properties"], facts["name"])}:
            masks[name] = masks.get(name, 0) | 1 << host
    largest = max(partition.priority_job_factor for partition in options.values()) or 1
    all_hosts = hostset.span(0, len(described) - 1)
    return {
        name: Partition(
            name,
            all_hosts if partition.hosts is None else _mask_of(name, partition.hosts, masks, all_hosts, expand),
            whole_minutes(partition.max_time_s or math.inf),
            partition.max_nodes or math.inf,
            partition.priority_job_factor / largest,
            partition.priority_tier,
        )
        for name, partition in options.items()
    }


def _mask_of(
    name: str, text: str, masks: Mapping[str, int], all_hosts: int, expand: Callable[[str], Sequence[str]]
) -> int:
    """Return the mask of a set of ids, or of names of hosts and machines. Raises InputError."""
    where = f"option 'partitions', {name!r}"
    try:
        if not set(text) - set("0123456789-, "):
            mask = hostset.from_text(text)
            if mask & ~all_hosts:
                raise ValueError(f"host {hostset.ids(mask)[-1]} is not one of {all_hosts.bit_count()}")
            return mask
        mask = 0
        for host in expand(text):
            if host not in masks:
                raise ValueError(f"no host or machine is called {host!r}")
            mask |= masks[host]
    except ValueError as error:
        raise InputError(where, f"hosts: {error}", 'write ids as "0-63 70", or names as "n[01-64]"') from None
    return mask


class MultifactorState:
    """The state of a job: its partition, the name that its usage is charged to, its priority.

    `fixed` are the terms of size, partition and QOS, which never change.
    """

    def __init__(self, partition: Partition, user: str, charged: str, fixed: float) -> None:
        self.partition = partition
        self.user = user
        self.charged = charged
        self.fixed = fixed
        self.priority = 1

    @property
    def key(self) -> float:
        """Minus the tier and the priority as one whole number below 2^53: the largest go first ("Introduction")."""
        return -float(self.partition.tier * (MOST_PRIORITY + 1) + self.priority)


class Priority:
    """Priorities on a cluster of `nodes` nodes with `cpus` processors altogether."""

    def __init__(self, options: MultifactorOptions, nodes: int, cpus: int) -> None:
        self.options = options
        self.nodes, self.cpus = nodes, cpus

    def size(self, nodes: int, cpus: int) -> float:
        """Return the size factor, 0 to 1: the mean of the shares of nodes and processors, or what they leave.

        `set_priority_factors` in priority_multifactor.c.
        """
        share = (nodes / self.nodes + cpus / self.cpus) / 2.0
        return 1.0 - share if self.options.priority_favor_small else share

    def fixed(self, nodes: int, cpus: int, partition: Partition, qos: float) -> float:
        """Return the terms that never change, `qos` being the factor of the QOS."""
        options = self.options
        return (
            options.priority_weight_job_size * self.size(nodes, cpus)
            + options.priority_weight_partition * partition.factor
            + options.priority_weight_qos * qos
        )

    def priority(self, submit_s: Any, fairshare: Any, fixed: Any, now_s: float) -> Any:
        """Return priorities at a time in s, whole numbers from 1 to 2^32 - 1; of one job, or of many as vectors."""
        options = self.options
        age = np.clip((now_s - submit_s) / options.priority_max_age_s, 0.0, 1.0)
        total = options.priority_weight_age * age + options.priority_weight_fairshare * fairshare + fixed
        return np.clip(np.floor(total), 1, MOST_PRIORITY)
