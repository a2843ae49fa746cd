"""Pareto fronts of costs, of which less is better."""

from __future__ import annotations

from collections.abc import Sequence

Costs = tuple[float, ...]


def dominates(first: Costs, second: Costs) -> bool:
    """Whether the first costs no more than the second in anything, and less in something."""
    return first != second and all(a <= b for a, b in zip(first, second, strict=True))


def front_of(costs: Sequence[Costs]) -> list[Costs]:
    """The costs that no other dominates, each once, in their order by the first of them."""
    return sorted({one for one in costs if not any(dominates(other, one) for other in costs)})
