"""Reading numbers with SimGrid's units, and finite numbers; everything inside is SI (s, W, J, flop/s)."""

from __future__ import annotations

import math
import re

HOUR_S = 3600.0
J_PER_KWH = 3.6e6

_DECIMAL = {"": 1.0, "k": 1e3, "M": 1e6, "G": 1e9, "T": 1e12, "P": 1e15, "E": 1e18, "Z": 1e21, "Y": 1e24}
_BINARY = {"Ki": 2.0**10, "Mi": 2.0**20, "Gi": 2.0**30, "Ti": 2.0**40, "Pi": 2.0**50, "Ei": 2.0**60}
_SPEED = re.compile(r"^\s*([0-9.eE+-]+)\s*([kMGTPEZY]i?)?(?:f|flops)?\s*$")


def speed_flops(text: str) -> float:
    """Speed in flop/s of a SimGrid speed such as `38.4Gf`, `0.5f` or `1e9`.

    Raises ValueError for anything that is not a positive, finite speed.
    """
    match = _SPEED.match(text)
    if not match:
        raise ValueError(f"{text.strip()!r} is not a speed such as '38.4Gf'")
    unit = match.group(2) or ""
    factor = _DECIMAL.get(unit) or _BINARY.get(unit)
    if factor is None:
        raise ValueError(f"{text.strip()!r} has an unknown unit")
    value = float(match.group(1)) * factor
    if not (value > 0.0 and math.isfinite(value)):
        raise ValueError(f"a speed must be positive and finite, got {text.strip()!r}")
    return value


def finite(text: object) -> float:
    """The finite number that `text` is; ValueError otherwise (NaN and infinities included)."""
    if isinstance(text, bool) or text is None:
        raise ValueError(f"{text!r} is not a number")
    try:
        value = float(text)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        raise ValueError(f"{text!r} is not a number") from None
    if not math.isfinite(value):
        raise ValueError(f"{text!r} is not a finite number")
    return value


def microseconds(time_s: float) -> float:
    """A time in s to the microsecond, which is all that Batsim tells a scheduler."""
    # rounding takes ten times as long as looking
    return time_s if time_s.is_integer() else round(time_s, 6)
