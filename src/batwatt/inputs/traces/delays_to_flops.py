"""Conversion of delays to work, which lasts as long at one speed, and longer or shorter at others."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from batwatt.model.workload import Composed, Delay, Parallel, Profile, Workload


def workload_with_flops(workload: Workload, speed_flops: float) -> Workload:
    """Convert the delays of a workload to flops that last as long on cores of `speed_flops` flop/s."""
    profiles = {
        name: Parallel(per_host_flops=_work(profile.duration_s, speed_flops), return_code=profile.return_code)
        if isinstance(profile, Delay)
        else profile
        for name, profile in workload.profiles.items()
    }
    raw_profiles = {name: _delays_to_flops(raw, speed_flops) for name, raw in workload.raw_profiles.items()}
    return replace(workload, profiles=profiles, raw_profiles=raw_profiles)


def _delays_to_flops(raw: Mapping[str, Any], speed_flops: float) -> Mapping[str, Any]:
    if raw.get("type") != "delay":
        return raw
    others = {name: value for name, value in raw.items() if name not in ("type", "delay")}
    return {"type": "parallel_homogeneous", "cpu": _work(raw["delay"], speed_flops), "com": 0, **others}


def has_delay(profile: Profile, profiles: Mapping[str, Profile]) -> bool:
    """Return whether a profile is a delay, or a part of it is; a composed one has no circle."""
    if isinstance(profile, Composed):
        return any(name in profiles and has_delay(profiles[name], profiles) for name in set(profile.sequence))
    return isinstance(profile, Delay)


def _work(duration_s: float, speed_flops: float) -> float:
    """Return the flops rounded as in Batsim's JSON, so that the sent flops are those of the run."""
    return round(duration_s * speed_flops, 6)
