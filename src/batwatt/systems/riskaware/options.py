"""The options of the scheduler `riskaware` (docs/explanation/riskaware.md)."""

from __future__ import annotations

from pydantic import Field

from batwatt.model.reference import Reference
from batwatt.scheduling.capacity import MachineOptions
from batwatt.scheduling.options import VICTIM, PartChoice

MANY = 1_000_000
"""More machines than this are a typing error."""


class RiskawareOptions(MachineOptions):
    """Options of the scheduler `riskaware`; the defaults are those of the authors' experiments.

    The rules: docs/explanation/riskaware.md.
    """

    strategy: str = Field(
        "packed-target-asap", description="mapping of jobs to machines, and order in which machines are switched off"
    )
    victim: PartChoice = Field("resubmit", description=VICTIM)
    seed: int = Field(0, ge=0, description="seed of first-fit-unaware's choice of machines, a whole number >= 0")
    always: int | None = Field(
        None, ge=0, le=MANY, description="machines that are always alive (M-); by default the least of the capacity"
    )
    distance: int | None = Field(
        None, ge=0, le=MANY, description="D+ in machines; by default 7 % of all machines, rounded up"
    )
    low: float = Field(0.80, ge=0.0, le=1.0, description="utilisation below which M_use shrinks")
    high: float = Field(0.95, ge=0.0, le=1.0, description="utilisation above which M_use grows")
    usable: int | None = Field(
        None,
        ge=1,
        le=MANY,
        description="M_use at first; by default half way from always to those alive, or always if not as_published",
    )
    pack: int = Field(5, ge=1, le=MANY, description="machines of a pack of packed-target-asap")
    reference: Reference | None = Field(
        None, description="jobs (riskaware text) or CSV length_s,area_core_s for the categories; by default a Borg week"
    )
    quantiles: int | None = Field(
        None,
        ge=0,
        le=1_000_000,
        description="area-weighted quantiles of the reference, 0 for none; by default 1000, or 0 if not as_published",
    )
    as_published: bool = Field(True, description="follow the authors' program, not the paper, where they differ")
    longest_as_shortest: bool | None = Field(
        None, description="jobs as long as the last quantile count as shortest; by default as as_published"
    )
