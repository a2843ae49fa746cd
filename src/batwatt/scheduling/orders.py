"""Queue orders and choices of nodes (powercap paper, section V-B; WFP of Tang et al. 2009).

An order is one formula over submission time (s), walltime (s) and number of hosts; the smallest key goes first, ties
go to the earlier submission. Jobs may be numbers or vectors: write formulas that work for both. Formulas take times as
whole microseconds, which are exact, so that equal keys are equal floats.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, ClassVar, TypeAlias

import numpy as np
from numpy.typing import NDArray

from batwatt.scheduling.registry import register


@dataclass(frozen=True, slots=True)
class Columns:
    """All jobs as an order sees them: vectors in s, s and hosts. No walltime: infinite."""

    submit_s: Any
    walltime_s: Any
    hosts: Any


Jobs = Any
"""`Columns` of all jobs, or of one: three numbers."""


def _walltime(jobs: Jobs) -> Any:
    """Return walltimes in whole microseconds, at least 1; infinite ones stay so."""
    with np.errstate(over="ignore"):
        return np.maximum(np.rint(jobs.walltime_s * 1e6), 1.0)


class Order(ABC):
    """Base of queue orders; `time_invariant` if the key does not depend on the time (then the queue stays sorted).

    `monotone`: with each of submission, walltime and hosts alone a key only falls or only rises, so that the keys of
    extreme jobs bound those between them. It matters for keys that depend on the time. `of_walltimes`: a key depends on
    the walltime.
    """

    name = ""
    time_invariant = True
    monotone = False
    of_walltimes = True

    @abstractmethod
    def key(self, jobs: Jobs, now_s: float) -> Any:
        """Return the priority of one job or of all (vectors) at `now_s`; smallest first."""


def keys_of(order: Order, rows: Iterable[tuple[float, float, int]], now_s: float) -> list[float]:
    """Return the keys of jobs; a row is the submission and the walltime of a job in s, and its width."""
    columns = [np.array(column) for column in zip(*rows, strict=True)]
    keys = order.key(Columns(*columns), now_s) if columns else ()
    return np.broadcast_to(np.asarray(keys, dtype=np.float64), columns[0].shape if columns else 0).tolist()


@register("order", "fcfs")
class FirstCome(Order):
    """First come, first served: by time of submission."""

    of_walltimes = False

    def key(self, jobs: Jobs, now_s: float) -> Any:
        """Return the submission time in s."""
        return jobs.submit_s


@register("order", "lcfs")
class LastCome(Order):
    """Last come, first served: latest submission first."""

    of_walltimes = False

    def key(self, jobs: Jobs, now_s: float) -> Any:
        """Return minus the submission time in s."""
        return -jobs.submit_s


@register("order", "asc")
class Ascending(Order):
    """Ascending size: least requested servers x walltime first (smallest area first)."""

    def key(self, jobs: Jobs, now_s: float) -> Any:
        """Return the area in host-microseconds."""
        return jobs.hosts * _walltime(jobs)


@register("order", "desc")
class Descending(Order):
    """Descending size: most requested servers x walltime first (largest area first)."""

    def key(self, jobs: Jobs, now_s: float) -> Any:
        """Return minus the area in host-microseconds."""
        return -(jobs.hosts * _walltime(jobs))


@register("order", "slowdown")
class Slowdown(Order):
    """Largest slowdown first, (wait + walltime) / walltime: what Eq. 6 becomes while a job waits."""

    time_invariant = False
    monotone = True

    def key(self, jobs: Jobs, now_s: float) -> Any:
        """Return minus the slowdown if the job started now and used its walltime; 1 without walltime."""
        return -(1.0 + np.rint((now_s - jobs.submit_s) * 1e6) / _walltime(jobs))


@register("order", "asc_walltime")
class AscendingWalltime(Order):
    """Shortest walltime first."""

    def key(self, jobs: Jobs, now_s: float) -> Any:
        """Return the walltime in s."""
        return jobs.walltime_s


@register("order", "desc_walltime")
class DescendingWalltime(Order):
    """Longest walltime first."""

    def key(self, jobs: Jobs, now_s: float) -> Any:
        """Return minus the walltime in s."""
        return -jobs.walltime_s


@register("order", "asc_size")
class Narrowest(Order):
    """Fewest requested servers first (batsched's size: servers, not servers x walltime)."""

    of_walltimes = False

    def key(self, jobs: Jobs, now_s: float) -> Any:
        """Return the number of hosts."""
        return jobs.hosts


@register("order", "desc_size")
class MostHosts(Order):
    """Most requested servers first (batsched's size: servers, not servers x walltime)."""

    of_walltimes = False

    def key(self, jobs: Jobs, now_s: float) -> Any:
        """Return minus the number of hosts."""
        return -jobs.hosts


@register("order", "widest")
class Widest(Order):
    """Most requested servers first, of equals the shortest walltime: wide jobs are packed while there is room."""

    def key(self, jobs: Jobs, now_s: float) -> Any:
        """Return minus the hosts, and minus a term between 0 (no walltime) and 1 (the shortest)."""
        walltime = _walltime(jobs)
        return -(jobs.hosts + 1.0 / (1.0 + walltime * 1e-6))


@register("order", "smith")
class Smith(Order):
    """Smith's rule for the mean slowdown: least area / weight first, the weight of a job being 1 / walltime.

    Smith (1956) has it for one machine, where it is the optimum; a job takes its area of many. The key is the square of
    the walltime x hosts.
    """

    def key(self, jobs: Jobs, now_s: float) -> Any:
        """Return the walltime squared x hosts."""
        walltime = _walltime(jobs)
        return walltime * walltime * jobs.hosts


@register("order", "wfp")
class Wfp(Order):
    """Greatest (wait / walltime)^3 x width first: the utility WFP of Cobalt (Tang et al., IEEE Cluster 2009)."""

    time_invariant = False
    monotone = True

    def key(self, jobs: Jobs, now_s: float) -> Any:
        """Return minus the utility; 0 without walltime."""
        return -(((now_s - jobs.submit_s) / jobs.walltime_s) ** 3 * jobs.hosts)


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
