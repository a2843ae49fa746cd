"""Numbers and names as sentences and tables have them: three digits, a unit that suits their size."""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace
from itertools import chain, count
from statistics import median_high

from batwatt.results.compared import Difference
from batwatt.results.figures import Figure
from batwatt.units import DAY_S, HOUR_S

NOTHING, ZERO = "–", "±0"
MOST_NAMES = 12
"""Most names of a list; of more it has the first ones, and the number of the others."""
TIMES = ((2.0 * DAY_S, DAY_S, "days"), (HOUR_S, HOUR_S, "h"), (120.0, 60.0, "min"), (0.0, 1.0, "s"))
"""Units of times: least time in s, length in s, name."""
SMALL = 0.1
"""Part of the unit of a column below which a time has its own unit."""


def digits(value: float, whole: bool = False) -> int:
    """Return the decimals of a number with three digits; 0 for a whole number of things."""
    size = abs(value)
    if whole and float(size).is_integer():
        return 0
    return 0 if size >= 100.0 or size == 0.0 else 1 if size >= 10.0 else 2 if size >= 0.1 else 3


def plain(value: float, decimals: int | None = None, *, sign: bool = False) -> str:
    """Return a number with three digits, or with some decimals; a dash for NaN and infinities."""
    if not math.isfinite(value):
        return NOTHING
    text = f"{value:{'+' if sign else ''},.{digits(value) if decimals is None else decimals}f}"
    if not any(digit in text for digit in "123456789"):
        return ZERO if sign else "0"
    return text.replace("-", "−")


def time_unit(seconds: float) -> tuple[float, str]:
    """Return the unit that suits a time: its length in s, and its name."""
    if math.isnan(seconds):
        return 1.0, "s"
    return next((size, name) for least, size, name in TIMES if abs(seconds) >= least)


def duration(seconds: float, *, sign: bool = False) -> str:
    """Return a time with its unit."""
    size, unit = time_unit(seconds)
    return f"{plain(seconds / size, sign=sign)} {unit}" if math.isfinite(seconds) else NOTHING


def percent(share: float, figures: int = 3) -> str:
    """Return a share in %, with some significant digits."""
    text = f"{100.0 * share:.{figures}g}"
    return f"{100.0 * share:.0f} %" if "e+" in text else f"{text} %"


def number(measure: Figure, value: float) -> str:
    """Return a value of a measure without its unit."""
    scaled = value * measure.factor
    return plain(scaled, digits(scaled, measure.whole))


def amount(measure: Figure, value: float) -> str:
    """Return a value of a measure with its unit; times in the unit that suits them."""
    if measure.name.endswith("_s"):
        return duration(value)
    return " ".join(filter(None, (number(measure, value), measure.display if measure.display != "jobs" else "")))


def signed(measure: Figure, difference: Difference) -> str:
    """Return a difference, with its standard error if that is not 0.000: two digits of it, and as many decimals."""
    mean, error = difference.mean * measure.factor, difference.error * measure.factor
    if not math.isfinite(mean):
        return NOTHING
    if not error >= 0.0005:
        return plain(mean, digits(mean, measure.whole), sign=True)
    decimals = 0 if error >= 10.0 else 1 if error >= 1.0 else 2 if error >= 0.1 else 3
    return f"{plain(mean, decimals, sign=True)} ± {plain(error, decimals)}"


def in_suitable_unit(measure: Figure, values: Iterable[float]) -> Figure:
    """Return a measure with one unit for several values: times in that of the median."""
    sizes = [abs(value) for value in values if math.isfinite(value)]
    if not measure.name.endswith("_s") or not sizes:
        return measure
    size, unit = time_unit(median_high(sizes))
    return replace(measure, factor=1.0 / size, display=unit)


def own_unit(measure: Figure, value: float) -> Figure:
    """Return a measure, with another unit for a time below `SMALL` of its unit."""
    if not measure.name.endswith("_s") or not 0.0 < abs(value * measure.factor) < SMALL:
        return measure
    return in_suitable_unit(measure, [value])


def assumed(core_w: float) -> str:
    """Return the power that machines without watts are taken to have."""
    return f"assumes {core_w:g} W a core"


def jobs(count: float) -> str:
    """Return a number of jobs."""
    return f"{plain(count, digits(count, True))} job{'' if count == 1 else 's'}"


def count_of(count: float, total: float) -> str:
    """Return a number of jobs out of all."""
    return f"{plain(count, digits(count, True))} of {jobs(total)}"


def written(value: float | str) -> str:
    """Return a value of a parameter as a text."""
    return value if isinstance(value, str) else f"{value:.10g}"


def sentence(text: str) -> str:
    """Return a text that begins with a capital."""
    return f"{text[:1].upper()}{text[1:]}"


def listed(names: Sequence[str], most: int | None = None) -> str:
    """Return names within a sentence; of more than `most` the first, and the number of the others."""
    if most is not None and len(names) > most:
        return f"{', '.join(names[: most - 1])} and {len(names) - most + 1} others"
    return " and ".join(filter(None, (", ".join(names[:-1]), *names[-1:])))


def quoted(label: str) -> str:
    """Return the label of a case within a sentence."""
    return f"“{label}”"


def cases(labels: Sequence[str]) -> str:
    """Return labels of cases within a sentence, of many the first."""
    return listed([quoted(label) for label in labels], MOST_NAMES)


def extent(counts: Collection[int]) -> str:
    """Return the least and the largest number, as in `3 to 5`, or the one that they all are."""
    low, high = min(counts), max(counts)
    return f"{low}" if low == high else f"{low} to {high}"


def stems_of(names: Iterable[str]) -> dict[str, str]:
    """Return a part of a file name for each name; the parts differ, also where characters are left out."""
    stems: dict[str, str] = {}
    for name in names:
        stem = re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-") or "run"
        candidates = chain([stem], (f"{stem}-{n}" for n in count(2)))
        stems[name] = next(text for text in candidates if text not in stems.values())
    return stems
