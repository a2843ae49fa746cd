"""The five strategies of the riskaware paper, by name (sections 4.1 to 4.5).

A strategy makes a planner for machines of some cores, by the capacity in machines and the options of the scheduler.
"""

from __future__ import annotations

import math
from functools import cache
from pathlib import Path

import numpy as np

from batwatt.model.reference import Categories, Reference
from batwatt.model.series import Series
from batwatt.scheduling.registry import register
from batwatt.systems.riskaware.first_fit import FirstFitStrategy
from batwatt.systems.riskaware.options import RiskawareOptions
from batwatt.systems.riskaware.strategy import MachinePlanner

BORG_WEEK = Path(__file__).with_name("borg_week.csv")
"""Lengths in a week of the Google Borg trace (CC-BY)."""
DISTANCE = 0.07
"""D+ by default, as a share of the machines."""


@register("strategy", "first-fit-aware")
def first_fit_aware(machines: int, cores: int, capacity: Series, options: RiskawareOptions) -> MachinePlanner:
    """First fit; the machines with the highest indices go first (section 4.1)."""
    return FirstFitStrategy(machines, cores, None, options.as_published)


@register("strategy", "first-fit-unaware")
def first_fit_unaware(machines: int, cores: int, capacity: Series, options: RiskawareOptions) -> MachinePlanner:
    """First fit that knows nothing of risk: random machines go (section 4.2)."""
    return FirstFitStrategy(machines, cores, np.random.default_rng(options.seed), options.as_published)


@register("strategy", "target-stretch")
def target_stretch(machines: int, cores: int, capacity: Series, options: RiskawareOptions) -> MachinePlanner:
    """TargetStretch: the target, or a machine near it, within the greatest stretch so far (section 4.3)."""
    return _targets(machines, cores, capacity, options, limit=0.0)


@register("strategy", "target-asap")
def target_asap(machines: int, cores: int, capacity: Series, options: RiskawareOptions) -> MachinePlanner:
    """TargetASAP: a machine near the target on which the job starts at once (section 4.4)."""
    return _targets(machines, cores, capacity, options)


@register("strategy", "packed-target-asap")
def packed_target_asap(machines: int, cores: int, capacity: Series, options: RiskawareOptions) -> MachinePlanner:
    """PackedTargetASAP: as target-asap, with packs of machines for targets (section 4.5)."""
    return _targets(machines, cores, capacity, options, pack=options.pack)


@cache
def borg_week() -> Reference:
    """Return the reference of the authors' experiments with Borg traces."""
    return Reference(*np.loadtxt(BORG_WEEK, delimiter=",", skiprows=1, unpack=True))


def _targets(
    machines: int, cores: int, capacity: Series, options: RiskawareOptions, limit: float = 1.0, pack: int = 1
) -> MachinePlanner:
    """Return the planner of a target strategy."""
    # compiled code takes a moment to load, and first fit does without it
    from batwatt.systems.riskaware.targets import Targets, TargetSettings

    distance = math.ceil(round(DISTANCE * machines, 9)) if options.distance is None else options.distance
    settings = TargetSettings(
        always=int(min(capacity.values)) if options.always is None else options.always,
        distance=min(distance, machines),
        limit=limit,
        pack=pack,
        **{name: getattr(options, name) for name in ("low", "high", "usable")},
        drop=options.as_published,
        paper=not options.as_published,
    )
    third = options.as_published if options.longest_as_shortest is None else options.longest_as_shortest
    quantiles = (1000 if options.as_published else 0) if options.quantiles is None else options.quantiles
    return Targets(machines, cores, settings, Categories(options.reference or borg_week(), quantiles, third))
