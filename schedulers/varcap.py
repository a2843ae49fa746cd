"""The schedulers of the varcap dissertation, chapters 5 to 7, as a Batsim scheduler (docs/explanation/varcap.md)."""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import partial
from typing import Any, ClassVar, Literal

import numpy as np
from pydantic import Field

from batwatt.errors import InputError
from batwatt.model.workload import LONG_S
from batwatt.options.files import read_options
from batwatt.scheduling.backfilling import rule_of
from batwatt.scheduling.capacity import VaryingOptions
from batwatt.scheduling.foresight import CapacityForecast
from batwatt.scheduling.options import AGE, NODES, VICTIM, PartChoice
from batwatt.scheduling.orders import Fcfs, Order, Wfp
from batwatt.scheduling.registry import make, named
from batwatt.scheduling.victims import Lose
from batwatt.systems.varcap.mapping import Knowledge, MappingPolicy, MappingSite
from batwatt.systems.varcap.queues import BucketQueue, SortedQueue, WaitingQueue
from batwatt.systems.varcap.scheduler import Parts, VaryingScheduler
from batwatt.systems.varcap.terminations import Termination
from batwatt.units import HOUR_S


class VarcapOptions(VaryingOptions):
    """Options of the scheduler `varcap` (docs/explanation/varcap.md)."""

    mapping: PartChoice = Field("base", description="mapping of jobs to machines (section 7.2)")
    termination: PartChoice | None = Field(
        None, description="jobs to terminate: by default `random` for base, `lww` for migration, else `order`"
    )
    order: PartChoice | None = Field(None, description="queue order of base, longshort and migration; default fcfs")
    backfilling: PartChoice | None = Field(
        None, description="rule for jobs behind one that does not fit; by default first-fit, for wfp easy"
    )
    node_selection: PartChoice = Field("first", description=NODES)
    nodes: Literal["shared", "dedicated"] = Field("shared", description="sharing of machines by jobs")
    victim: PartChoice = Field("resubmit", description=VICTIM)
    preemption: PartChoice | None = Field(
        None, description="rule for running jobs to stop so that a waiting one starts; by default none"
    )
    age_limit_s: float | None = Field(None, gt=0.0, description=AGE)
    knowledge: Knowledge | None = Field(
        None,
        description="knowledge of exact run times, or of `run_times` if set, in mapping and foresight; by default what "
        "the mapping needs, of the requests of jobs",
    )
    long_s: float = Field(LONG_S, ge=0.0, description="run time in s above which a job is long")
    longest_s: float = Field(86_400.0, gt=0.0, description="run time in s of a long job under knowledge of the class")
    foresight_h: float = Field(0.0, ge=0.0, le=8760.0, description="hours of capacity that are known in advance")
    foresight_bias: float = Field(0.0, ge=-1.0, le=10.0, description="relative bias of foresight")
    foresight_noise: float = Field(
        0.0, ge=0.0, le=10.0, description="noise of foresight an hour ahead, as a share of all machines"
    )
    foresight_false_alarms: float = Field(
        0.0, ge=0.0, le=1.0, description="chance that a change is forecast as the deepest fall"
    )
    foresight_missed: float = Field(0.0, ge=0.0, le=1.0, description="chance that a fall is forecast as no change")
    stable: int | None = Field(
        None, ge=0, le=10_000_000, description="machines of longshort's stable group; by default the least capacity"
    )
    low: float | None = Field(
        None, ge=0.0, description="least capacity for longshort and twomode, in machines; by default the true one"
    )
    high: float | None = Field(None, ge=0.0, description="greatest capacity for twomode; by default the true one")
    seed: int = Field(0, ge=0, description="seed of the random termination and of errors of foresight")


class Varcap(VaryingScheduler[VarcapOptions]):
    """Jobs on machines whose number varies: termination, foresight, preparation (varcap dissertation)."""

    Options: ClassVar[type[VarcapOptions]] = VarcapOptions

    def __init__(self, options: Mapping[str, Any] | None = None) -> None:
        super().__init__(read_options(self.Options, options))
        # a wrong name is an error before anything runs
        settings = self.settings
        self._map: type[MappingPolicy] | partial[MappingPolicy] = named("mapping", settings.mapping)
        self._mapping: type[MappingPolicy] = getattr(self._map, "func", self._map)
        self._order: Order = make("order", settings.order or "fcfs")
        usual = "easy" if isinstance(self._order, Wfp) else "first-fit"
        self._rule = rule_of(settings.backfilling or usual)
        self._termination: Termination = make("termination", settings.termination or self._mapping.usual_termination)
        self._preemption = None if settings.preemption is None else make("preemption", settings.preemption)
        self.selection = make("node_selection", settings.node_selection)
        self.victim = make("victim", settings.victim)

    def make_parts(self, machines: int) -> Parts:
        """Return the parts that the options choose."""
        settings = self.settings
        self._check()
        self._termination.begin(np.random.default_rng(settings.seed), settings.foresight_h > 0.0)
        forecast = None
        if settings.foresight_h > 0.0:
            names = ("bias", "noise", "false_alarms", "missed")
            errors = {name: getattr(settings, f"foresight_{name}") for name in names}
            horizon_s = settings.foresight_h * HOUR_S
            forecast = CapacityForecast(self.capacity, machines, horizon_s, **errors, seed=settings.seed)
        mapping = self._map(MappingSite(machines, self._queue, self.capacity, settings))
        return mapping, self._termination, forecast, self._preemption

    def _check(self) -> None:
        """Check options that contradict each other. Raises InputError."""
        settings, mapping = self.settings, self._mapping
        if settings.low is not None and settings.high is not None and not settings.low <= settings.high:
            problem = f"must be <= 'high' ({settings.high:g}), got {settings.low:g}"
            raise InputError("option 'low'", problem, "exchange them")
        if self.knowledge == "class" and not settings.longest_s >= settings.long_s:
            problem = f"must be >= 'long_s' ({settings.long_s:g}), got {settings.longest_s:g}"
            raise InputError("option 'longest_s'", problem, "a long job is not shorter than a short one")
        if self._preemption is not None and (mapping.migrates or isinstance(self.victim, Lose)):
            problem = "jobs that are stopped for others wait to go on, but are lost or move"
            raise InputError("option 'preemption'", problem, "choose another victim rule, or another mapping")
        if self.knowledge not in mapping.knows:
            raise _clash("knowledge", self.knowledge, f"{mapping.name} must know more of run times")
        if not mapping.in_order:
            if settings.order is not None:
                raise _clash("order", settings.order, f"{mapping.name} has an order of its own")
            if settings.age_limit_s is not None:
                raise _clash("age_limit_s", settings.age_limit_s, f"{mapping.name} has an order of its own")
            if settings.backfilling is not None and self._rule != "pass":
                raise _clash("backfilling", settings.backfilling, f"{mapping.name} has an order of its own")

    def _queue(self) -> WaitingQueue:
        age_limit_s = self.settings.age_limit_s
        if isinstance(self._order, Fcfs) and self._rule == "pass" and age_limit_s is None:
            return BucketQueue()
        return SortedQueue(self._order, self._rule, age_limit_s)

    @property
    def knowledge(self) -> Knowledge:
        """Knowledge of run times."""
        return self.settings.knowledge or self._mapping.knows[0]

    @property
    def classes_exactly(self) -> bool:
        """See `VaryingScheduler`: if the option `knowledge` says so."""
        return self.settings.knowledge is not None and self.run_times is None

    def know(self, length_s: float) -> tuple[float, bool]:
        """See `VaryingScheduler`."""
        settings = self.settings
        long = length_s > settings.long_s
        if self.knowledge == "none":
            return math.inf, long
        if self.knowledge == "class":
            return settings.longest_s if long else settings.long_s, long
        return length_s, long

    def to_itself(self, cpus: int) -> int:
        """See `VaryingScheduler`."""
        return -(-cpus // self.fleet.cores) if self.settings.nodes == "dedicated" else super().to_itself(cpus)


def _clash(name: str, value: object, why: str) -> InputError:
    return InputError(f"option {name!r}", f'"{value}" does not go with the mapping: {why}', "leave it out")
