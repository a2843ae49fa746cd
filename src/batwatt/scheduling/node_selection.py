"""Node selection: the choice of free nodes for a job, for any job (docs/explanation/node-selection.md).

A selection is a filter and a weight, as in OpenDC: `suits` gives the nodes on which a job may run at all, of which the
nodes of least `weight` are taken; ties go to the node that the system takes first, the lowest id unless it says
otherwise. That a node is on and has room for the job is the system's business.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, TypeAlias

import numpy as np
from numpy.typing import NDArray

from batwatt.scheduling.registry import make, register

Ids: TypeAlias = NDArray[np.int64]
Floats: TypeAlias = NDArray[np.float64]
Mask: TypeAlias = NDArray[np.bool_]


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

    def suits(self, nodes: Nodes, cores: int) -> Mask | None:
        """Return the nodes that suit a job of `cores` cores (or hosts), as a mask (N,); None: all of them."""
        return None

    @abstractmethod
    def weight(self, nodes: Nodes, cores: int) -> Floats:
        """Return the weight of each node for a job of `cores` cores (or hosts), (N,); the least are taken."""

    def preferred(self, nodes: Nodes, cores: int) -> Ids:
        """Return the positions of the nodes that suit, best first."""
        weight = np.nan_to_num(np.asarray(self.weight(nodes, cores), dtype=np.float64))
        order = np.argsort(weight, kind="stable")
        suits = self.suits(nodes, cores)
        return order if suits is None else order[np.asarray(suits, dtype=np.bool_)[order]]


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


@register("node_selection", "packed", "best-fit")
class Packed(NodeSelection):
    """The nodes with the fewest free cores: best fit."""

    def weight(self, nodes: Nodes, cores: int) -> Floats:
        """Return the free cores."""
        return nodes.free.astype(np.float64)


@register("node_selection", "spread", "worst-fit")
class Spread(NodeSelection):
    """The nodes with the most free cores: worst fit."""

    def weight(self, nodes: Nodes, cores: int) -> Floats:
        """Return minus the free cores."""
        return -nodes.free.astype(np.float64)


@register("node_selection", "weighted")
class Weighted(NodeSelection):
    """A sum of other selections' weights, each scaled to 0 .. 1; nodes that suit all of them."""

    def __init__(self, weights: Mapping[str, float]) -> None:
        if not weights or not all(isinstance(factor, int | float) for factor in weights.values()):
            raise ValueError('weights must be an object such as {"packed": 1.0, "fewest-watts": 0.5}')
        self._parts: list[tuple[NodeSelection, float]] = [
            (make("node_selection", name), float(factor)) for name, factor in weights.items()
        ]

    def suits(self, nodes: Nodes, cores: int) -> Mask | None:
        """Return the nodes that suit all parts."""
        masks = [suits for part, _ in self._parts if (suits := part.suits(nodes, cores)) is not None]
        return np.logical_and.reduce(masks) if masks else None

    def weight(self, nodes: Nodes, cores: int) -> Floats:
        """Return the sum of factor x (w - least) / (greatest - least)."""
        total = np.zeros(len(nodes.ids))
        for part, factor in self._parts:
            weight = np.nan_to_num(np.asarray(part.weight(nodes, cores), dtype=np.float64))
            low, high = (weight.min(), weight.max()) if len(weight) else (0.0, 0.0)
            if high > low:
                total += factor * (weight - low) / (high - low)
        return total
