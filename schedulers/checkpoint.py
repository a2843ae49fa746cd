"""Checkpoint planning (Cendrier, Benoit, Vivien), as a Batsim scheduler (docs/checkpoint.md)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import ClassVar

from pydantic import Field

from batwatt.errors import InputError
from batwatt.scheduling.capacity import MachineOptions
from batwatt.systems.checkpoint.fairness import Past, fair
from batwatt.systems.checkpoint.instance import Instance, PeriodJob, PeriodPlan
from batwatt.systems.checkpoint.period_plan import NoPeriodPlanError, TooLargeError, plan, subset_sum
from batwatt.systems.checkpoint.prepare import Cover, Objective, Prepared, prepare
from batwatt.systems.checkpoint.scheduler import CheckpointScheduler
from batwatt.systems.checkpoint.segments import CheckpointableJob
from batwatt.systems.checkpoint.sequence import Method

MOST_TRIED = 8
"""Of so many running jobs all sets are tried before a change; it takes tenths of a second."""


class CheckpointOptions(MachineOptions):
    """Options of the scheduler `checkpoint` (docs/checkpoint.md)."""

    method: Method = Field("dp", description="how a period is planned (section 2)")
    prepare: Objective | None = Field(
        None, description="who is checkpointed before a change: by default the cheapest, for subset-sum all"
    )
    cover: Cover = Field("k", description="how many processors that covers: k, or what may be missing")
    k: int | None = Field(
        None, ge=0, le=100_000, description="most machines by which the capacity changes at once; by default true"
    )
    warning_s: float | None = Field(
        None,
        ge=0.0,
        allow_inf_nan=False,
        description="how long before a change it is announced, in s; by default as long as checkpoints take",
    )
    checkpoint_s: float = Field(
        60.0, ge=0.0, allow_inf_nan=False, description="time in s of a checkpoint of jobs that do not say"
    )
    recovery_s: float = Field(
        60.0, ge=0.0, allow_inf_nan=False, description="time in s of a recovery of jobs that do not say"
    )
    min_yield: float = Field(
        0.0, ge=0.0, le=1.0, description="yield under which a job is due, 0 for goodput alone (not with subset-sum)"
    )


class Checkpoint(CheckpointScheduler[CheckpointOptions]):
    """Checkpoints jobs before the number of machines changes, and plans the period after it."""

    Options: ClassVar[type[CheckpointOptions]] = CheckpointOptions

    def onSimulationBegins(self) -> None:
        """Check options that go with others, or with the machines. Raises InputError."""
        super().onSimulationBegins()
        chosen = self.settings
        if chosen.k is not None and chosen.k > len(self.fleet):
            problem = f"must be from 0 to {len(self.fleet)}, all machines, got {chosen.k}"
            raise InputError("option 'k'", problem, "leave it out: then it is the largest change of the capacity")
        if chosen.min_yield > 0.0 and chosen.method == "subset-sum":
            raise InputError("option 'min_yield'", "is for the method dp", "leave one of the two out")

    def plan(self, instance: Instance, past: Callable[[], Mapping[str, Past]]) -> PeriodPlan:
        """The plan by the chosen method."""
        if self.settings.method == "subset-sum":
            try:
                return subset_sum(instance)
            except NoPeriodPlanError:
                # checkpoints that take longer than the period: who runs goes on
                return plan(instance, skip_large=True)
        if self.settings.min_yield > 0.0:
            return fair(instance, past(), self.settings.min_yield, skip_large=True)
        return plan(instance, skip_large=True)

    def prepare(
        self, running: list[PeriodJob], others: Callable[[], list[PeriodJob]], period_s: float, processors: int
    ) -> Prepared:
        """The set by the chosen objective."""
        chosen = self.settings
        objective = chosen.prepare or ("all" if chosen.method == "subset-sum" else "cheapest")
        looks_ahead = objective in ("worst", "expected")
        given = running, others() if looks_ahead else (), period_s, processors, min(self.most_change, processors)
        # what cannot be saved is in the way of more, too
        platform = len(self.fleet) - (self.alive - processors)
        try:
            return prepare(*given, objective=objective, platform=platform, cover=chosen.cover, most_tried=MOST_TRIED)
        except TooLargeError:
            return prepare(*given, objective="cheapest", cover=chosen.cover)

    def warning_s(self, tasks: Iterable[CheckpointableJob]) -> float:
        """The option, or the longest checkpoint."""
        given = self.settings.warning_s
        return max((task.checkpoint_s for task in tasks), default=0.0) if given is None else given

    @property
    def most_change(self) -> int:
        """The option, or the largest change of the series."""
        given = self.settings.k
        return self.largest_change if given is None else given

    def usual_s(self) -> tuple[float, float]:
        """The options."""
        return self.settings.checkpoint_s, self.settings.recovery_s
