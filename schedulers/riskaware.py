"""The five strategies of the riskaware paper (Perotin et al., PMBS 2023) as a Batsim scheduler."""

from __future__ import annotations

import math
from pathlib import Path
from typing import ClassVar, Literal

import numpy as np
from pydantic import Field

from batwatt.scheduling.capacity import MachineOptions
from batwatt.systems.riskaware.first_fit import FirstFitStrategy
from batwatt.systems.riskaware.reference import BORG_WEEK, Categories, read_reference
from batwatt.systems.riskaware.scheduler import MachineScheduler
from batwatt.systems.riskaware.strategy import MachinePlanner

MANY = 1_000_000
"""More machines than this are a typing error."""


class RiskawareOptions(MachineOptions):
    """Options of the scheduler `riskaware`; the defaults are those of the authors' experiments (docs/riskaware.md)."""

    strategy: Literal["first-fit-aware", "first-fit-unaware", "target-stretch", "target-asap", "packed-target-asap"] = (
        Field("packed-target-asap", description="where jobs go, and which machines are switched off first")
    )
    seed: int = Field(0, ge=0, description="seed of first-fit-unaware's choice of machines, a whole number >= 0")
    always: int | None = Field(
        None, ge=0, le=MANY, description="machines that are always alive (M-); by default the least of the capacity"
    )
    distance: int | None = Field(
        None, ge=0, le=MANY, description="D+ in machines; by default distance_share of all machines"
    )
    distance_share: float = Field(
        0.07, ge=0.0, le=1.0, allow_inf_nan=False, description="D+ / number of machines, rounded up, 0 to 1"
    )
    low: float = Field(0.80, ge=0.0, le=1.0, allow_inf_nan=False, description="utilisation below which M_use shrinks")
    high: float = Field(0.95, ge=0.0, le=1.0, allow_inf_nan=False, description="utilisation above which M_use grows")
    usable: int | None = Field(
        None,
        ge=1,
        le=MANY,
        description="M_use at first; by default half way from always to those alive, or always if not as_published",
    )
    pack: int = Field(5, ge=1, le=MANY, description="machines of a pack of packed-target-asap")
    limit: float | None = Field(
        None,
        ge=0.0,
        allow_inf_nan=False,
        description="stretch within which a probed machine is taken, 0 for S+; by default 0 for target-stretch, else 1",
    )
    take_empty: bool = Field(True, description="take a probed machine without jobs whatever the stretch")
    reference: str | Path | None = Field(
        None, description="jobs (riskaware text) or CSV length_s,area_core_s for the categories; by default a Borg week"
    )
    quantiles: int | None = Field(
        None,
        ge=0,
        le=1_000_000,
        description="area-weighted quantiles of the reference, 0 for none; by default 1000, or 0 if not as_published",
    )
    longest_s: float = Field(
        604_800.0, gt=0.0, allow_inf_nan=False, description="length in s at which jobs of a reference are capped"
    )
    as_published: bool = Field(
        True, description="do as the authors' program does, not as the paper says, where they differ"
    )
    longest_as_shortest: bool | None = Field(
        None,
        description="jobs as long as the last quantile count as shortest; by default as as_published",
    )


class Riskaware(MachineScheduler):
    """Risk-aware mapping of jobs to machines that come and go (riskaware paper, section 4)."""

    Options: ClassVar[type[RiskawareOptions]] = RiskawareOptions

    @property
    def remainder_only(self) -> bool:
        """As published it does."""
        return bool(self.settings.as_published)

    def make_planner(self, machines: int, cores: int) -> MachinePlanner:
        """The planner of the chosen strategy."""
        chosen = self.settings
        if chosen.strategy.startswith("first-fit"):
            rng = np.random.default_rng(chosen.seed) if chosen.strategy == "first-fit-unaware" else None
            return FirstFitStrategy(machines, cores, rng, as_published=chosen.as_published)
        # compiled code takes a moment to load, and first fit does without it
        from batwatt.systems.riskaware.targets import Targets, TargetSettings

        reference = read_reference(chosen.reference or BORG_WEEK, chosen.longest_s)
        limit = chosen.limit if chosen.limit is not None else float(chosen.strategy != "target-stretch")
        distance = math.ceil(round(chosen.distance_share * machines, 9)) if chosen.distance is None else chosen.distance
        settings = TargetSettings(
            always=int(min(self.capacity.values)) if chosen.always is None else chosen.always,
            distance=min(distance, machines),
            limit=limit,
            pack=chosen.pack if chosen.strategy == "packed-target-asap" else 1,
            low=chosen.low,
            high=chosen.high,
            usable=chosen.usable,
            take_empty=chosen.take_empty,
            drop=chosen.as_published,
            paper=not chosen.as_published,
        )
        third = chosen.as_published if chosen.longest_as_shortest is None else chosen.longest_as_shortest
        quantiles = (1000 if chosen.as_published else 0) if chosen.quantiles is None else chosen.quantiles
        return Targets(machines, cores, settings, Categories(reference, quantiles, third))
