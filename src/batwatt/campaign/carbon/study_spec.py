"""What a study of shifted jobs declares: permutations of synthetic jobs in phases, when they arrive, and a signal."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product
from typing import Annotated, Any

import numpy as np
from pydantic import Field, model_validator

from batwatt.campaign.spec import CampaignName, checked_grid
from batwatt.campaign.yaml_model import Declared, wrong
from batwatt.errors import InputError
from batwatt.inputs.workloads.phase_jobs import MOST_PHASES
from batwatt.model.phases import Array, Phase, PhaseModel
from batwatt.units import HOUR_S

MINUTE_S = 60.0
Positive = Annotated[float, Field(gt=0.0, allow_inf_nan=False)]
Natural = Annotated[float, Field(ge=0.0, allow_inf_nan=False)]
MOST_ARRIVALS = 100_000


class SignalPart(Declared):
    """The file of the signal (relative to the YAML file), the date of 0 s, and its column and zone if need be."""

    file: str
    begin: str | None = None
    column: str | None = None
    zone: str | None = None

    @model_validator(mode="before")
    @classmethod
    def _path(cls, given: Any) -> Any:
        return {"file": given} if isinstance(given, str) else given


class Arrivals(Declared):
    """Every job arrives at `first_h` h and every `every_h` h after that, in the first `days` days."""

    every_h: Positive
    days: Positive
    first_h: Natural = 0.0

    @model_validator(mode="after")
    def _some(self) -> Arrivals:
        count = (self.days * 24.0 - self.first_h) / self.every_h
        if not 0.0 < count <= MOST_ARRIVALS:
            raise wrong(f"must be 1 to {MOST_ARRIVALS} arrivals, got {max(count, 0.0):.0f}")
        return self

    @property
    def times_s(self) -> Array:
        """When, in s."""
        return np.arange(self.first_h, self.days * 24.0, self.every_h, dtype=np.float64) * HOUR_S


class Pattern(Declared):
    """Work that alternates: `high_min` min at `high_w` W, then `low_min` min at `low_w` W, and so on."""

    high_w: Natural
    high_min: Positive
    low_w: Natural
    low_min: Positive

    @model_validator(mode="after")
    def _order(self) -> Pattern:
        if not self.high_w >= self.low_w:
            raise wrong(f"high_w must be >= low_w, got {self.high_w:g} and {self.low_w:g}")
        return self

    def phases(self, length_s: float) -> Iterator[Phase]:
        """Phases that last `length_s` together; the last is cut there."""
        begin_s, high = 0.0, True
        while begin_s < length_s:
            lasts_s = MINUTE_S * (self.high_min if high else self.low_min)
            end_s = min(begin_s + lasts_s, length_s)
            if not end_s > begin_s:
                problem = f"a phase of {lasts_s:g} s vanishes at {begin_s:g} s"
                raise InputError("carbon study", problem, "give longer phases or shorter jobs")
            yield Phase("high" if high else "low", end_s - begin_s, self.high_w if high else self.low_w)
            begin_s, high = end_s, not high


@dataclass(frozen=True)
class Permutation:
    """A synthetic job and its room: the work of a pattern, a start-up (0 s at 0 W: none), how long it may wait, s."""

    study: str
    pattern: str
    length_h: float
    startup_s: float
    startup_w: float
    wait_s: float
    model: PhaseModel

    @property
    def deadline_h(self) -> float:
        """Hours from arrival to completion, at most."""
        return (self.wait_s + self.model.length_s) / HOUR_S


class PlanStudy(Declared):
    """All combinations of its lists; jobs finish within `deadline_h` h of their arrival, or wait `wait_h` h at most.

    `length_h` is the length of the work; the start-up comes on top, and counts for the deadline. A start-up of 0 s is
    one job whatever its power.
    """

    patterns: dict[CampaignName, Pattern] = Field(min_length=1)
    length_h: list[Positive] = Field(min_length=1)
    startup_s: list[Natural] = Field([0.0], min_length=1)
    startup_w: list[Natural] = Field([0.0], min_length=1)
    deadline_h: list[Positive] | None = Field(None, min_length=1)
    wait_h: list[Natural] | None = Field(None, min_length=1)
    arrivals: Arrivals | None = None

    @model_validator(mode="after")
    def _complete(self) -> PlanStudy:
        if (self.deadline_h is None) == (self.wait_h is None):
            raise wrong("must have one of `deadline_h` and `wait_h`")
        for name, pattern in self.patterns.items():
            if not max(self.length_h) * 60.0 / (pattern.high_min + pattern.low_min) * 2.0 < MOST_PHASES:
                raise wrong(f"patterns.{name} has more than {MOST_PHASES} phases in {max(self.length_h):g} h")
        lists = ("length_h", "startup_s", "startup_w", "deadline_h", "wait_h")
        checked_grid({name: getattr(self, name) for name in lists if getattr(self, name)})
        return self

    def permutations(self, study: str, where: object) -> Iterator[Permutation]:
        """All of them, the room varying fastest. Raises InputError for a deadline that a job cannot meet."""
        starts = [(s, w) for s, w in product(self.startup_s, self.startup_w) if s > 0.0]
        starts = [(0.0, 0.0)] * (0.0 in self.startup_s) + starts
        for (name, pattern), length_h, (startup_s, startup_w) in product(self.patterns.items(), self.length_h, starts):
            startup = (Phase("start-up", startup_s, startup_w),) if startup_s > 0.0 else ()
            model = PhaseModel(startup, tuple(pattern.phases(length_h * HOUR_S)))
            for wait_s in self._waits(model, f"{where}: studies.{study}"):
                yield Permutation(study, name, length_h, startup_s, startup_w, wait_s, model)

    def _waits(self, model: PhaseModel, where: object) -> Iterator[float]:
        if self.wait_h is not None:
            yield from (hours * HOUR_S for hours in self.wait_h)
        for hours in self.deadline_h or []:
            wait_s = hours * HOUR_S - model.length_s
            if not wait_s >= 0.0:
                problem = f"a job of {model.length_s / HOUR_S:g} h (start-up included) has a deadline of {hours:g} h"
                raise InputError(where, problem, "let deadlines be longer than all jobs")
            yield wait_s


class CarbonStudies(Declared):
    """Studies under one signal; `arrivals` of those that do not say their own."""

    name: CampaignName
    signal: SignalPart
    arrivals: Arrivals
    studies: dict[str, PlanStudy] = Field(min_length=1)
