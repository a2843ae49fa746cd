"""The five strategies of the riskaware paper, by name (sections 4.1 to 4.5)."""

from __future__ import annotations

import math
from functools import cache
from pathlib import Path

import numpy as np

from batwatt.model.reference import Categories, Reference
from batwatt.scheduling.registry import register
from batwatt.systems.riskaware.first_fit import FirstFitStrategy
from batwatt.systems.riskaware.strategy import MachinePlanner, Site

BORG_WEEK = Path(__file__).with_name("borg_week.csv")
"""Lengths in a week of the Google Borg trace (CC-BY)."""


@register("strategy", "first-fit-aware")
class FirstFitAware(FirstFitStrategy):
    """First fit; the machines with the highest indices go first (section 4.1)."""

    @classmethod
    def for_site(cls, site: Site) -> MachinePlanner:
        """See `MachinePlanner`."""
        return cls(site.machines, site.cores, None, site.options.as_published)


@register("strategy", "first-fit-unaware")
class FirstFitUnaware(FirstFitStrategy):
    """First fit that knows nothing of risk: random machines go (section 4.2)."""

    @classmethod
    def for_site(cls, site: Site) -> MachinePlanner:
        """See `MachinePlanner`."""
        return cls(site.machines, site.cores, np.random.default_rng(site.options.seed), site.options.as_published)


@cache
def borg_week() -> Reference:
    """Return the reference of the authors' experiments with Borg traces."""
    return Reference(*np.loadtxt(BORG_WEEK, delimiter=",", skiprows=1, unpack=True))


class TargetStrategy:
    """A strategy that maps a job to a machine safe enough for its length; strategies differ in `limit`, `packed`."""

    limit = 1.0
    packed = False

    @classmethod
    def for_site(cls, site: Site) -> MachinePlanner:
        """See `MachinePlanner`."""
        # compiled code takes a moment to load, and first fit does without it
        from batwatt.systems.riskaware.targets import Targets, TargetSettings

        values, machines = site.options, site.machines
        distance = math.ceil(round(values.distance_share * machines, 9)) if values.distance is None else values.distance
        settings = TargetSettings(
            always=int(min(site.capacity.values)) if values.always is None else values.always,
            distance=min(distance, machines),
            limit=cls.limit if values.limit is None else values.limit,
            pack=values.pack if cls.packed else 1,
            **{name: getattr(values, name) for name in ("low", "high", "usable", "take_empty")},
            drop=values.as_published,
            paper=not values.as_published,
        )
        third = values.as_published if values.longest_as_shortest is None else values.longest_as_shortest
        quantiles = (1000 if values.as_published else 0) if values.quantiles is None else values.quantiles
        return Targets(machines, site.cores, settings, Categories(values.reference or borg_week(), quantiles, third))


@register("strategy", "target-stretch")
class TargetStretch(TargetStrategy):
    """TargetStretch: the target, or a machine near it, within the greatest stretch so far (section 4.3)."""

    limit = 0.0


@register("strategy", "target-asap")
class TargetAsap(TargetStrategy):
    """TargetASAP: a machine near the target on which the job starts at once (section 4.4)."""


@register("strategy", "packed-target-asap")
class PackedTargetAsap(TargetStrategy):
    """PackedTargetASAP: as target-asap, with packs of machines for targets (section 4.5)."""

    packed = True
