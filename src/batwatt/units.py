"""Units, tolerances of times, numbers with SimGrid's units; all is SI inside (s, W, J, flop/s)."""

from __future__ import annotations

import math
import re
from typing import Any, Final

HOUR_S: Final = 3600.0
DAY_S: Final = 24.0 * HOUR_S
YEAR_S: Final = 365.2425 * DAY_S
J_PER_KWH: Final = 3.6e6
SINCE_1970_S: Final = 4e8
"""Times in s that begin later, 12 years after 0 s, are dates: seconds since 1970."""
LATEST_S: Final = 1e11
"""Times in s that are later, 3,000 years after 0 s, count as milliseconds since 1970, of which these are in 1973."""

PRECISION_S: Final = 1e-9
"""Times in s that differ by less are one time: SimGrid's timing precision, and more than the error of sums of times."""
REPORTED_S: Final = 1e-6
"""Resolution in s of the times that Batsim reports and prints."""
CAUGHT_UP_S: Final = 1e-5
"""Most s of work that a job may lack that has caught up: several times the resolution of reported times."""
LAG_S: Final = 1e-3
"""Times in s that differ by less may be one to a scheduler: Batsim reports them rounded, and later than planned."""
TOO_LATE_S: Final = 1e24
"""Bound of times in s: later ones have no text in Batsim's messages."""

REFERENCE_SPEED: Final = "18.4Gf"
"""Speed of a core of generated machines, at which generated work has its nominal length: that of a Taurus server in its
fastest state (Table I of the powercap paper)."""

_PREFIXES = ("k kilo", "M mega", "G giga", "T tera", "P peta", "E exa", "Z zeta", "Y yotta")
_EXPONENTS = {None: 0} | {name: 3 * (n + 1) for n, names in enumerate(_PREFIXES) for name in names.split()}
_SPEED = re.compile(
    r"([+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+))(?:[eE]([+-]?[0-9]{1,9}))?\s*"
    r"(?:([kMGTPEZY])?(?:f|flops)?|(kilo|mega|giga|tera|peta|exa|zeta|yotta)flops)"
)


def speed_flops(text: str, zero: bool = False) -> float:
    """Return the speed in flop/s of a SimGrid speed such as `38.4Gf`, `0.5f`, `1e9` or `2gigaflops`: the nearest float.

    Raises ValueError for anything that is not a finite speed above 0, or 0 with `zero`.
    """
    text = text.strip()
    quoted = repr(text[:60])
    match = _SPEED.fullmatch(text)
    if match is None:
        raise ValueError(f"{quoted} is not a speed such as '38.4Gf'")
    number, exponent, short, long = match.groups()
    # 16.56 * 1e9 rounds twice, and gives 16559999999.999998
    value = float(f"{number}e{int(exponent or 0) + _EXPONENTS[short or long]}")
    if not ((value > 0.0 or (zero and value == 0.0)) and math.isfinite(value)):
        raise ValueError(f"a speed must be {'>= 0' if zero else 'positive'} and finite, got {quoted}")
    return value


def speed_text(value: object) -> str:
    """Return a speed as SimGrid reads it, from a text or from flop/s. Raises ValueError."""
    if isinstance(value, bool) or not isinstance(value, (str, int, float)):
        raise ValueError("a speed is a text such as '38.4Gf' or a number of flop/s")
    try:
        text = "".join(value.split()) if isinstance(value, str) else f"{number_text(value)}f"
    except OverflowError:
        raise ValueError("a speed must be finite") from None
    flops = speed_flops(text)
    return text if text.endswith("f") else f"{number_text(flops)}f"


def microseconds(time_s: float) -> float:
    """Return a time in s to the microsecond, as `%.6f` prints it: the resolution at which Batsim reports times."""
    # `round`, which works on decimal digits and takes long, only where the product may hide a tie
    scaled = time_s * 1e6 + 0.5
    if 0.0 <= scaled < 1e14:
        nearest = int(scaled)
        if 0.01 < scaled - nearest < 0.99:
            return nearest / 1e6
    return round(time_s, 6)


def number_text(value: Any) -> str:
    """Return the shortest text that reads back as the same number. Raises OverflowError beyond all doubles."""
    return repr(float(value)).removesuffix(".0")


def now_text(timespec: str = "seconds") -> str:
    """Return the date now as text in UTC."""
    from datetime import UTC, datetime

    return datetime.now(UTC).isoformat(timespec=timespec).replace("+00:00", "Z")


def date_text(date_s: float) -> str:
    """Return a date in s since 1970 as text in UTC, to the minute or as exactly as needed, at most to 1e-6 s."""
    # most commands show no date
    import numpy as np

    whole_s = math.floor(date_s)
    whole_us = whole_s * 1_000_000 + round((date_s - whole_s) * 1e6)
    unit = "us" if whole_us % 1_000_000 else "s" if whole_us % 60_000_000 else "m"
    # numpy's dates, as Python's have fewer years
    return f"{np.array(whole_us, dtype='datetime64[us]').astype(f'datetime64[{unit}]')}Z"
