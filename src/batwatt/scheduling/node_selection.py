"""Node selection: the choice of free nodes for a job, for any job (docs/explanation/node-selection.md).

The nodes of least `weight` are taken; ties go to the node that the system takes first, the lowest id unless it says
otherwise. That a node is on and has room for the job is the system's business.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar, TypeAlias

import numpy as np
from numpy.typing import NDArray

from batwatt.scheduling.registry import register

Ids: TypeAlias = NDArray[np.int64]
Floats: TypeAlias = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Nodes:
    """Nodes to choose among, vectors (N,): a node is a host (powercap) or a machine of several hosts (varcap).

    `watts` is drawn at full load in the present p-state and `speed_flops` is that of a core in it, NaN if unknown;
    `cores` are all cores of a node, `free` those that are free now.
    """

    ids: Ids
    cores: Ids
    free: Ids
    watts: Floats
    speed_flops: Floats


class NodeSelection(ABC):
    """Base of node selections."""

    name: ClassVar[str] = ""

    @abstractmethod
    def weight(self, nodes: Nodes, cores: int) -> Floats:
        """Return the weight of each node for a job of `cores` cores (or hosts), (N,); the least are taken."""

    def preferred(self, nodes: Nodes, cores: int) -> Ids:
        """Return the positions of the nodes, best first."""
        weight = np.nan_to_num(np.asarray(self.weight(nodes, cores), dtype=np.float64))
        return np.argsort(weight, kind="stable")


@register("node_selection", "first")
class First(NodeSelection):
    """The nodes that come first: those with the lowest ids, or as the mapping of varcap has them."""

    def weight(self, nodes: Nodes, cores: int) -> Floats:
        """Return equal weights."""
        return np.zeros(len(nodes.ids))


@register("node_selection", "fewest-watts")
class FewestWatts(NodeSelection):
    """The nodes that draw least per flop/s at full load, in their present p-states."""

    def weight(self, nodes: Nodes, cores: int) -> Floats:
        """Return the W per flop/s of all cores."""
        return nodes.watts / (nodes.speed_flops * nodes.cores)


@register("node_selection", "fastest")
class Fastest(NodeSelection):
    """The nodes with the fastest cores."""

    def weight(self, nodes: Nodes, cores: int) -> Floats:
        """Return minus the flop/s of a core."""
        return -nodes.speed_flops


@register("node_selection", "packed")
class Packed(NodeSelection):
    """The nodes with the fewest free cores: best fit."""

    def weight(self, nodes: Nodes, cores: int) -> Floats:
        """Return the free cores."""
        return nodes.free.astype(np.float64)


@register("node_selection", "spread")
class Spread(NodeSelection):
    """The nodes with the most free cores: worst fit."""

    def weight(self, nodes: Nodes, cores: int) -> Floats:
        """Return minus the free cores."""
        return -nodes.free.astype(np.float64)
