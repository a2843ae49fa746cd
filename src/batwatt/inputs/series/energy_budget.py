"""Capacities that follow the cost or emissions of power, and their costs (sections 5.4 and 6.3 of the dissertation)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Annotated

import numpy as np
import numpy.typing as npt

from batwatt.checks import Between, Parameters
from batwatt.errors import InputError
from batwatt.inputs.series.variation import Fraction
from batwatt.model.series import FRACTION, Series
from batwatt.units import HOUR_S

_WHERE = "capacity"


@dataclass(frozen=True)
class EnergyBudget(Parameters, where=_WHERE):
    """A capacity by a constant budget of money or carbon per time.

    The budget buys the fraction `budget` at the mean of the signal, so that its total is that of a fixed capacity of
    this fraction. `reference`, in the signal's unit, replaces the mean if it is not None. The capacity is at most
    `headroom` (the existing machines and power) and at least `floor`, as fractions.
    Raises InputError.
    """

    budget: Fraction = 0.7
    headroom: Fraction = 1.0
    floor: Fraction = 0.0
    reference: Annotated[float | None, Between(0.0, ends="][")] = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.floor <= self.headroom:
            problem = f"floor must be <= headroom, got {self.floor!r} and {self.headroom!r}"
            raise InputError(_WHERE, problem, "correct one of them")

    def capacity(self, signal: Series) -> Series:
        """Return budget x mean(x) / x_t within [floor, headroom], as fractions; x_t <= 0 gives the headroom.

        Budget that the headroom leaves is not spent later. Sections 5.4.1 (price) and 5.4.2 (carbon) of the
        dissertation: Budget_total = sum of x_t x budget, Budget_t = Budget_total / T.

        Raises InputError.
        """
        values = np.asarray(signal.values)
        mean = signal.mean if self.reference is None else self.reference
        if not mean > 0.0:
            problem = f"the mean of {signal.name!r} must be > 0 to reckon a budget, got {mean:g}"
            raise InputError(signal.source, problem, "give the value to reckon with, as in reference=50")
        fractions = np.full(values.shape, self.headroom)
        paid = values > 0.0
        # a price near 0 buys the headroom, also where the quotient overflows
        with np.errstate(over="ignore"):
            fractions[paid] = np.clip(self.budget * mean / values[paid], self.floor, self.headroom)
        return replace(signal, values=tuple(fractions.tolist()), name=FRACTION, unit=FRACTION)


@dataclass(frozen=True)
class Stranded(Parameters, where=_WHERE):
    """A capacity of stranded power: `high` while the signal is at most `threshold`, else `low`, as fractions."""

    threshold: Annotated[float, Between(-1e12, 1e12)]
    low: Fraction = 0.0
    high: Fraction = 1.0

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.low <= self.high:
            raise InputError(_WHERE, f"low must be <= high, got {self.low!r} and {self.high!r}", "correct one of them")

    def capacity(self, signal: Series) -> Series:
        """Return the capacity, on and off with the signal, as fractions. Section 5.4.3 of the dissertation."""
        free = np.asarray(signal.values) <= self.threshold
        return replace(signal, values=tuple(np.where(free, self.high, self.low).tolist()), name=FRACTION, unit=FRACTION)


@dataclass(frozen=True)
class Bill:
    """Costs or emissions of a series of fractions relative to those of a fixed one.

    Amounts are in the signal's unit x h for a full data centre of 1: with g/kWh, g for each kW of its full power.
    """

    amount: float
    amount_fixed: float
    mean: float
    mean_fixed: float

    @property
    def saved(self) -> float | None:
        """Share of the fixed amount that is saved; None where the fixed amount is not positive."""
        return 1.0 - self.amount / self.amount_fixed if self.amount_fixed > 0.0 else None

    @property
    def gained(self) -> float | None:
        """Share by which the mean capacity is larger than the fixed one."""
        return self.mean / self.mean_fixed - 1.0 if self.mean_fixed > 0.0 else None


def bill(fractions: Series, signal: Series, fixed: float = 0.7) -> Bill:
    """Return the bill of `fractions` and of a constant `fixed`, over [0, signal.end_s[ (section 6.3)."""
    hours, shares, prices = _together(fractions, signal)
    return Bill(
        amount=float(np.sum(hours * shares * prices)),
        amount_fixed=float(np.sum(hours * fixed * prices)),
        mean=float(np.average(shares, weights=hours)),
        mean_fixed=fixed,
    )


def _together(fractions: Series, signal: Series) -> tuple[npt.NDArray[np.float64], ...]:
    """Return hours, fraction and signal of each step in which neither changes."""
    edges = np.unique(np.concatenate([(0.0,), fractions.times_s, signal.times_s]))
    edges = np.append(edges[(edges >= 0.0) & (edges < signal.end_s)], signal.end_s)
    return np.diff(edges) / HOUR_S, fractions.values_at(edges[:-1]), signal.values_at(edges[:-1])
