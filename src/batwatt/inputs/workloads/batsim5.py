"""Telling a workload of Batsim 5 from one of Batsim 4, which has the same jobs and other profiles."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from batwatt.checks import shown
from batwatt.errors import InputError

NAMES = {
    "DelayProfile": "delay",
    "ParallelTaskProfile": "parallel",
    "ParallelTaskHomogeneousProfile": "parallel_homogeneous",
    "SequentialCompositionProfile": "composed",
    "ForkJoinCompositionProfile": None,
    "ParallelTaskMergeCompositionProfile": None,
}
"""Profile types of Batsim 5 with what they are called in Batsim 4."""


def refuse_batsim_5(raw_profiles: Mapping[str, Any], where: object) -> None:
    """Raises InputError if a profile of a workload is one of Batsim 5."""
    for name, raw in raw_profiles.items():
        kind = raw.get("type") if isinstance(raw, dict) else None
        if isinstance(kind, str) and kind in NAMES:
            problem = (
                f"is a workload of Batsim 5 (profile {shown(name)} is a {kind}), and batwatt reads those of Batsim 4"
            )
            renamed = ", ".join(f"{old} is {new}" for old, new in NAMES.items() if new)
            hint = f"write the types of Batsim 4: {renamed}; or play Batsim 5 with `batwatt engine --protocol 5`"
            raise InputError(where, problem, hint)
