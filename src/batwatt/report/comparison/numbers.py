"""Numbers as a reader wants them: three digits, a unit that suits their size."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

from batwatt.report.grid import NOTHING
from batwatt.report.means import Difference
from batwatt.results.figures import Figure
from batwatt.units import DAY_S, HOUR_S

TIMES = ((2.0 * DAY_S, DAY_S, "days"), (HOUR_S, HOUR_S, "h"), (120.0, 60.0, "min"), (0.0, 1.0, "s"))
"""Units of times: from how many s on, how many s, name."""


def digits(value: float, whole: bool = False) -> int:
    """Decimals of a number that show three digits; none of a whole number of things."""
    size = abs(value)
    if whole and float(size).is_integer():
        return 0
    return 0 if size >= 100.0 or size == 0.0 else 1 if size >= 10.0 else 2 if size >= 0.1 else 3


def plain(value: float, decimals: int | None = None, *, sign: bool = False) -> str:
    """A number; a dash for none."""
    if not math.isfinite(value):
        return NOTHING
    text = f"{value:{'+' if sign else ''},.{digits(value) if decimals is None else decimals}f}"
    if not any(digit in text for digit in "123456789"):
        return "±0" if sign else "0"
    return text.replace("-", "−")


def time_unit(seconds: float) -> tuple[float, str]:
    """The unit that suits a time: how many s, and its name."""
    return (
        next((size, name) for least, size, name in TIMES if abs(seconds) >= least) if seconds == seconds else (1, "s")
    )


def duration(seconds: float, *, sign: bool = False) -> str:
    """A time with its unit."""
    size, unit = time_unit(seconds)
    return f"{plain(seconds / size, sign=sign)} {unit}" if math.isfinite(seconds) else NOTHING


def percent(share: float) -> str:
    """A share in %."""
    return f"{100.0 * share:.3g} %"


def amount(measure: Figure, value: float) -> str:
    """A value of a measure with its unit; times in the unit that suits them."""
    if measure.name.endswith("_s"):
        return duration(value)
    return " ".join(filter(None, (number(measure, value), measure.shown if measure.shown != "jobs" else "")))


def number(measure: Figure, value: float) -> str:
    """A value of a measure without its unit."""
    shown = value * measure.factor
    return plain(shown, digits(shown, measure.whole))


def signed(measure: Figure, found: Difference) -> str:
    """A difference, with its standard error if that is not 0.000: two digits of it, and as many decimals."""
    mean, error = found.mean * measure.factor, found.error * measure.factor
    if not math.isfinite(mean):
        return NOTHING
    if not error >= 0.0005:
        return plain(mean, digits(mean, measure.whole), sign=True)
    decimals = 0 if error >= 10.0 else 1 if error >= 1.0 else 2 if error >= 0.1 else 3
    return f"{plain(mean, decimals, sign=True)} ± {plain(error, decimals)}"


def signed_amount(measure: Figure, found: Difference) -> str:
    """A difference with its unit, that of a share in % points."""
    suited = in_suitable_unit(measure, [found.mean])
    unit = "% points" if suited.shown == "%" else suited.shown
    return " ".join(filter(None, (signed(suited, found), unit)))


def in_suitable_unit(measure: Figure, values: Sequence[float]) -> Figure:
    """A measure with one unit for several values: times in that of the largest."""
    known = [abs(value) for value in values if math.isfinite(value)]
    if not measure.name.endswith("_s") or not known:
        return measure
    size, unit = time_unit(max(known))
    return replace(measure, factor=1.0 / size, shown=unit)


def jobs(count: float) -> str:
    """So many jobs."""
    return f"{plain(count, digits(count, True))} job{'' if count == 1 else 's'}"
