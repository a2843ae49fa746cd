"""What `carbon run` and `carbon compare` are asked for, and who answers: our policies, or a peer's rules."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, fields
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import numpy as np

from batwatt.checks import finite
from batwatt.cli.carbon_options import number_of, price_integral, signal_file, watts_of, weights_of
from batwatt.cli.results import unit_of
from batwatt.cli.shared import one_of
from batwatt.errors import InputError
from batwatt.inputs.series.signal_csv import DAY_S, SignalFile
from batwatt.inputs.workloads.phase_jobs import read_phase_jobs
from batwatt.model.phases import ShiftJob
from batwatt.model.signal_integral import SignalIntegral
from batwatt.systems.carbon.costs import MachinePrices
from batwatt.systems.carbon.files import read_integral, rows_as_hours
from batwatt.systems.carbon.outcome import Outcome
from batwatt.systems.carbon.simulate import ShiftOptions, described, simulate
from batwatt.systems.carbon.simulators import gaia, lwa
from batwatt.systems.carbon.simulators.gaia_rules import HOURS
from batwatt.units import HOUR_S

COMPATS = ("gaia", "lwa")
MARGIN_S = 8 * DAY_S
"""How much longer than planned the signal is read: constraints reach a week, and jobs that start often take longer."""


@dataclass(frozen=True)
class ShiftRequest:
    """The options of a simulation; None (False) where one is not given."""

    jobs: Path
    signal: SignalFile
    length_unit: str
    compat: str | None = None
    carbon_policy: str | None = None
    wait: str | None = None
    deadline: float | None = None
    constraint: str | None = None
    forecast_error: float | None = None
    repetitions: int | None = None
    seed: int | None = None
    price: Path | None = None
    price_column: str | None = None
    carbon_weight: float | None = None
    price_weight: float | None = None
    reserved: int | None = None
    machine_prices: str | None = None
    averaged: bool = False
    slot_s: float | None = None
    max_starts: int | None = None
    checkpoints: bool = False
    watts: float | None = None

    @classmethod
    def of(cls, given: Mapping[str, Any]) -> ShiftRequest:
        """What a command was given, by the names of its parameters. Raises InputError."""
        source = (given[name] for name in ("signal", "begin", "zone", "column", "tz", "kind"))
        others = {field.name: given[field.name] for field in fields(cls) if field.name != "signal"}
        return cls(signal=signal_file(*source), **others)

    def only(self, compat: str, *names: str) -> None:
        """Raise InputError if an option is given that a peer does not know."""
        shared = {"jobs", "signal", "length_unit", "compat", *names}
        for field in fields(self):
            if field.name not in shared and getattr(self, field.name) not in (None, False):
                option = f"--{field.name.replace('_', '-')}"
                raise InputError(option, f"is not for --compat {compat}", "leave one of them out")

    @property
    def about(self) -> dict[str, Any]:
        """The options as JSON: those that are given."""
        signal = {"signal": str(self.signal.path), "begin": self.signal.begin, "zone": self.signal.zone}
        given = {field.name: getattr(self, field.name) for field in fields(self) if field.name != "signal"}
        kept = {name: value for name, value in (signal | given).items() if value not in (None, False)}
        return {name: str(value) if isinstance(value, Path) else value for name, value in kept.items()}


@dataclass(frozen=True)
class Simulator:
    """Who runs policies by name, under the signal `integral`; `jobs` where they have models."""

    run: Callable[[str], Outcome]
    integral: SignalIntegral
    jobs: tuple[ShiftJob, ...] | None = None
    checkpoints: bool = False


def mode_of(asked: ShiftRequest) -> Simulator:
    """Read the jobs and the signal, and check all options. Raises InputError."""
    if asked.compat is None:
        return _own(asked)
    chosen = one_of("--compat", "simulator", asked.compat, COMPATS)
    return _gaia(asked) if chosen == "gaia" else _lwa(asked)


def _own(asked: ShiftRequest) -> Simulator:
    ways = {"--wait": asked.wait, "--deadline": asked.deadline, "--constraint": asked.constraint}
    given = [option for option, value in ways.items() if value is not None]
    if len(given) > 1:
        raise InputError(", ".join(given), "are two ways to say how long jobs may wait", "give one of them")
    options: dict[str, Any] = {
        name: value
        for name in ("constraint", "reserved", "carbon_policy", "repetitions", "seed", "max_starts")
        if (value := getattr(asked, name)) is not None
    }
    if asked.wait is not None:
        options["wait_h"] = wait_of(asked.wait)
    for name, target in (("deadline", "deadline_h"), ("slot_s", "slot_s")):
        value = getattr(asked, name)
        if value is not None:
            options[target] = number_of(f"--{name.replace('_', '-')}", value, above=True)
    if asked.forecast_error is not None:
        options["forecast_error"] = number_of("--forecast-error", asked.forecast_error)
    weights = weights_of(asked.carbon_weight, asked.price_weight, asked.price is not None)
    options |= dict(zip(("carbon_weight", "price_weight"), weights, strict=True))
    options |= {"averaged": asked.averaged, "checkpoints": asked.checkpoints, "clock": asked.signal.tz}
    if asked.machine_prices is not None:
        options["prices"] = _prices(asked.machine_prices)
    checked = ShiftOptions(**(options | {"price_weight": 0.0, "carbon_weight": 1.0}))
    jobs = _jobs(asked)
    waits_s = HOUR_S * (max(checked.wait_h) if checked.deadline_h is None else checked.deadline_h)
    until = max(job.arrival_s + 2.0 * job.length_s for job in jobs) + waits_s + MARGIN_S
    integral = read_integral(asked.signal, until)
    price = price_integral(asked.price, asked.price_column, asked.signal, integral, until)
    chosen = ShiftOptions(**options, price=price)

    def run(policy: str) -> Outcome:
        return simulate(jobs, integral, policy, chosen)

    return Simulator(run, integral, tuple(jobs), asked.checkpoints)


def names_of(compat: str | None) -> Iterator[tuple[str, str]]:
    """The names of policies, and what they do. Raises InputError."""
    if compat is None:
        return described()
    chosen = one_of("--compat", "simulator", compat, COMPATS)
    return iter((gaia.POLICIES if chosen == "gaia" else lwa.POLICIES).items())


def _gaia(asked: ShiftRequest) -> Simulator:
    """Jobs in 720 hours of the signal, as GAIA reads it."""
    asked.only("gaia", "wait", "carbon_policy", "reserved", "machine_prices", "watts")
    options: dict[str, Any] = {"reserved": asked.reserved or 0}
    if asked.wait is not None:
        options["wait_h"] = wait_of(asked.wait)
    if asked.carbon_policy is not None:
        options["carbon_policy"] = asked.carbon_policy
    if asked.machine_prices is not None:
        options["prices"] = _prices(asked.machine_prices)
    jobs = _jobs(asked)
    integral = rows_as_hours(asked.signal, HOURS)
    hourly = integral.values.tolist()

    def run(policy: str) -> Outcome:
        return gaia.simulate(jobs, hourly, policy=policy, **options)

    return Simulator(run, integral)


def _lwa(asked: ShiftRequest) -> Simulator:
    """Jobs in steps of half an hour, by the clock of people; a step has the value at its begin, as LWA reads its files.

    All of the signal counts for the mean that errors have.
    """
    asked.only("lwa", "constraint", "forecast_error", "repetitions", "seed", "watts")
    options: dict[str, Any] = {
        name: value for name in ("repetitions", "seed") if (value := getattr(asked, name)) is not None
    }
    if asked.forecast_error is not None:
        options["error"] = number_of("--forecast-error", asked.forecast_error)
    if asked.constraint is not None:
        # longer ones are refused, whatever they say
        number = asked.constraint.isdecimal()
        options["constraint"] = int(asked.constraint.lstrip("0")[:20] or 0) if number else asked.constraint
    jobs = _jobs(asked)
    integral = read_integral(asked.signal)
    values = integral.at(np.arange(0.0, integral.end_s, lwa.STEP_S)).tolist()
    clock = UTC if asked.signal.tz == "UTC" else ZoneInfo(asked.signal.tz)
    begin = datetime.fromisoformat(integral.begin).astimezone(clock) if integral.begin else None

    def run(policy: str) -> Outcome:
        return lwa.simulate(jobs, values, begin, policy=policy, **options)

    return Simulator(run, integral)


def _jobs(asked: ShiftRequest) -> list[ShiftJob]:
    return read_phase_jobs(asked.jobs, unit_of(asked.length_unit), watts_of(asked.watts))


def wait_of(text: str) -> tuple[float, ...]:
    """The hours of `6x24`, or of a single number. Raises InputError."""
    try:
        hours = tuple(finite(part) for part in text.lower().split("x"))
    except ValueError:
        hours = ()
    if not (len(hours) in (1, 2) and all(hour >= 0.0 for hour in hours)):
        raise InputError("--wait", f"{text!r} is not SHORTxLONG in hours", "write for instance 6x24, or 12 for all")
    return hours


def _prices(text: str) -> MachinePrices:
    try:
        numbers = [finite(part) for part in text.split(",")]
    except ValueError:
        numbers = []
    if len(numbers) != 3 or not all(number >= 0.0 for number in numbers):
        problem = f"{text!r} is not three numbers >= 0 with commas"
        raise InputError("--machine-prices", problem, "write for instance 0.0624,0.01248,0.4")
    return MachinePrices(*numbers)
