"""The priority of a job: a weighted sum of factors (Slurm's priority_multifactor)."""

from __future__ import annotations

from typing import Any

import numpy as np

from batwatt.systems.slurm.options import MOST_PRIORITY, SlurmOptions
from batwatt.systems.slurm.partitions import Partition


class Standing:
    """The state of a job in the scheduler `slurm`: its partition, the name that its usage is charged to, its priority.

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


class Multifactor:
    """Priorities on a cluster of `nodes` nodes with `cpus` processors altogether."""

    def __init__(self, options: SlurmOptions, nodes: int, cpus: int) -> None:
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
