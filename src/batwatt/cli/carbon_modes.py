"""What `carbon run`, `gaia` and `lwa` are asked for, and who answers: our policies, or a simulator's rules."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass, is_dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

import typer

from batwatt.cli.carbon_options import (
    Averaged,
    CarbonPolicy,
    Checkpoints,
    Constraint,
    DeadlineH,
    ForecastOptions,
    JobsUnit,
    LwaConstraint,
    MaxStarts,
    ReservedOptions,
    SignalOptions,
    Slot,
    Wait,
    Watts,
    WeightOptions,
    number_of,
    read_jobs,
    wait_of,
)
from batwatt.cli.shared import given_of
from batwatt.errors import InputError
from batwatt.units import DAY_S, HOUR_S

if TYPE_CHECKING:
    from batwatt.model.phases import ShiftJob
    from batwatt.systems.carbon.outcome import Outcome
    from batwatt.systems.carbon.simulate import ShiftOptions

MARGIN_S = 8 * DAY_S
"""How much longer than planned the signal is read: constraints reach a week, and jobs that start often take longer."""


@dataclass(frozen=True, kw_only=True)
class ShiftRequest(ABC):
    """The options of every simulation; None (False, 0) where one is not given. `compat`: whose rules, if not ours."""

    compat: ClassVar[str | None] = None
    signal: SignalOptions
    jobs: Annotated[
        Path, typer.Option("--jobs", help="CSV: arrival_time,length,cpus; and name and args of their models.")
    ]
    length_unit: JobsUnit = "seconds"
    watts: Watts = None

    @property
    def about(self) -> dict[str, Any]:
        """The options as JSON: those that are given, the watts last."""
        given = dict(_flat(self))
        first = {name: given.pop(name) for name in ("signal", "begin", "zone", "jobs", "length_unit")}
        last = {"watts": given.pop("watts")}
        for name in ("column", "tz", "kind"):
            del given[name]
        ordered = first | {"compat": self.compat} | given | last
        return {
            name: str(value) if isinstance(value, Path) else value
            for name, value in ordered.items()
            if value not in (None, False)
        }

    def read_jobs(self) -> list[ShiftJob]:
        """Raises InputError."""
        return read_jobs(self.jobs, self.length_unit, self.watts)

    @abstractmethod
    def simulator(self) -> Callable[[str], Outcome]:
        """Read the jobs and the signal and check all options; returns what runs a policy by name. Raises InputError."""


def _flat(model: Any) -> Iterator[tuple[str, Any]]:
    """The fields of a dataclass and of the dataclasses in it."""
    for name, value in vars(model).items():
        if is_dataclass(value):
            yield from _flat(value)
        else:
            yield name, value


@dataclass(frozen=True, kw_only=True)
class OwnRequest(ShiftRequest):
    """A simulation of our policies, each job on its own in continuous time."""

    carbon_policy: CarbonPolicy = None
    wait: Wait = None
    deadline: DeadlineH = None
    constraint: Constraint = None
    forecast: ForecastOptions
    price: WeightOptions
    machines: ReservedOptions
    averaged: Averaged = False
    slot_s: Slot = None
    max_starts: MaxStarts = None
    checkpoints: Checkpoints = False

    def simulator(self) -> Callable[[str], Outcome]:
        """Our policies on jobs with models. Raises InputError."""
        from batwatt.inputs.series.integrals import read_integral
        from batwatt.systems.carbon.simulate import simulate

        options = self._options()
        carbon_weight, price_weight = self.price.weights
        jobs = self.read_jobs()
        waits_s = HOUR_S * (max(options.wait_h) if options.deadline_h is None else options.deadline_h)
        until = max(job.arrival_s + 2.0 * job.length_s for job in jobs) + waits_s + MARGIN_S
        file = self.signal.file
        integral = read_integral(file, until)
        price = self.price.integral(file, integral, until)
        chosen = replace(options, price=price, carbon_weight=carbon_weight, price_weight=price_weight)

        def run(policy: str) -> Outcome:
            return simulate(jobs, integral, policy, chosen)

        return run

    def _options(self) -> ShiftOptions:
        """All options but the price and its weight."""
        from batwatt.systems.carbon.simulate import ShiftOptions

        ways = given_of({"--wait": self.wait, "--deadline": self.deadline, "--constraint": self.constraint})
        if len(ways) > 1:
            raise InputError(", ".join(ways), "are two ways to say how long jobs may wait", "give one of them")
        options = {
            "wait_h": None if self.wait is None else wait_of(self.wait),
            "deadline_h": None if self.deadline is None else number_of("--deadline", self.deadline, above=True),
            "slot_s": None if self.slot_s is None else number_of("--slot-s", self.slot_s, above=True),
            "constraint": self.constraint,
            "carbon_policy": self.carbon_policy,
            "forecast_error": self.forecast.error,
            "repetitions": self.forecast.repetitions,
            "seed": self.forecast.seed,
            "reserved": self.machines.reserved,
            "prices": self.machines.prices,
            "max_starts": self.max_starts,
            "averaged": self.averaged,
            "checkpoints": self.checkpoints,
            "clock": self.signal.tz,
        }
        return ShiftOptions(**given_of(options))


@dataclass(frozen=True, kw_only=True)
class GaiaRequest(ShiftRequest):
    """A simulation by GAIA's rules."""

    compat = "gaia"
    carbon_policy: CarbonPolicy = None
    wait: Wait = None
    machines: ReservedOptions

    def simulator(self) -> Callable[[str], Outcome]:
        """Jobs in 720 hours of the signal, as GAIA reads it. Raises InputError."""
        from batwatt.inputs.series.integrals import rows_as_hours
        from batwatt.systems.carbon.simulators import gaia
        from batwatt.systems.carbon.simulators.gaia_rules import HOURS

        options = given_of(
            {
                "wait_h": None if self.wait is None else wait_of(self.wait),
                "carbon_policy": self.carbon_policy,
                "reserved": self.machines.reserved,
                "prices": self.machines.prices,
            }
        )
        jobs = self.read_jobs()
        integral = rows_as_hours(self.signal.file, HOURS)
        hourly = integral.values.tolist()

        def run(policy: str) -> Outcome:
            return gaia.simulate(jobs, hourly, policy=policy, **options)

        return run


@dataclass(frozen=True, kw_only=True)
class LwaRequest(ShiftRequest):
    """A simulation by the rules of Let's Wait Awhile."""

    compat = "lwa"
    constraint: LwaConstraint = None
    forecast: ForecastOptions

    def simulator(self) -> Callable[[str], Outcome]:
        """Jobs in steps of half an hour, by the clock of people. Raises InputError.

        A step has the value at its begin, as LWA reads its files. All of the signal counts for the mean of errors.
        """
        import numpy as np

        from batwatt.inputs.series.integrals import read_integral
        from batwatt.systems.carbon.simulators import lwa

        constraint: str | int | None = self.constraint
        if self.constraint is not None and self.constraint.isdecimal():
            # longer ones are refused, whatever they say
            constraint = int(self.constraint.lstrip("0")[:20] or 0)
        forecast = {
            "error": self.forecast.error,
            "repetitions": self.forecast.repetitions,
            "seed": self.forecast.seed,
        }
        options = given_of({"constraint": constraint, **forecast})
        jobs = self.read_jobs()
        file = self.signal.file
        integral = read_integral(file)
        values = integral.at(np.arange(0.0, integral.end_s, lwa.STEP_S)).tolist()
        begin = datetime.fromisoformat(integral.begin).astimezone(file.clock) if integral.begin else None

        def run(policy: str) -> Outcome:
            return lwa.simulate(jobs, values, begin, policy=policy, **options)

        return run
