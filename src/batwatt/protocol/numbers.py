"""Numbers as Batsim's JSON library (RapidJSON) reads them, and as Batsim writes them."""

from __future__ import annotations

import math
import re
from typing import Any

from batwatt.checks import MAX_DEPTH, TOO_DEEP

MAX_INT = 2**31 - 1
"""Greatest count and return code: Batsim stores them in 32 bits."""

_NUMBER = re.compile(r"(-?)(\d+)(?:\.(\d+))?(?:[eE]([+-]?\d+))?")
_EXACT_CHARS = 16
"""Greatest number of characters of a decimal fraction that all JSON libraries read exactly."""
_LONGEST_EXACT = 2**53 - 1
_UNSIGNED, _SIGNED = 2**64 - 1, 2**63
_POWERS = [float(f"1e{exponent}") for exponent in range(309)]


def batsim_float(text: str) -> float:
    """Return the double that Batsim reads from a JSON number with a point or an exponent, or of many digits.

    RapidJSON reads up to 17 digits and divides once, so that the last bit may differ from the nearest double.
    Raises ValueError if the number is too large for a double.
    """
    if len(text) <= _EXACT_CHARS and "e" not in text and "E" not in text:
        return float(text)
    match = _NUMBER.fullmatch(text)
    if match is None:
        raise ValueError(f"{text[:40]!r} is not a number")
    minus, whole, fraction, exponent = match.groups("")
    value, digits, shift = _whole(whole, _SIGNED if minus else _UNSIGNED), len(whole) - 1, 0
    if isinstance(value, int):
        for place, digit in enumerate(fraction):
            if value > _LONGEST_EXACT:
                fraction = fraction[place:]
                break
            value = value * 10 + int(digit)
            shift -= 1
            digits += value != 0
        else:
            fraction = ""
        value = float(value)
    for digit in fraction[: max(0, 17 - digits)]:
        value = value * 10.0 + int(digit)
        shift -= 1
    power = int(exponent or 0)
    if power > 308 - shift:
        raise ValueError(f"{text[:40]} is too large")
    power = max(power, -(10**6)) + shift
    if power >= 0:
        value *= _POWERS[power]
    elif power >= -308:
        value /= _POWERS[-power]
    else:
        value = value / _POWERS[308] / _POWERS[-power - 308] if power >= -616 else 0.0
    if math.isinf(value):
        raise ValueError(f"{text[:40]} is too large")
    return -value if minus else value


def _whole(text: str, limit: int) -> int | float:
    """Return the number before the point: an integer, or above `limit` a double computed digit by digit."""
    if int(text[:20]) <= limit and len(text) <= 20:
        return int(text)
    exact = 19 if int(text[:20]) > limit else 20
    while int(text[:exact]) > limit:
        exact -= 1
    value = float(int(text[:exact]))
    for digit in text[exact:]:
        value = value * 10.0 + int(digit)
    return value


def batsim_number(value: Any) -> float:
    """Return the double that Batsim reads for a number that Python has read from JSON."""
    return batsim_float(str(value)) if type(value) is int and value > _UNSIGNED else float(value)


def json_number(value: object) -> float | None:
    """Return the double that Batsim reads for a value of JSON; None unless it is a finite number >= 0."""
    try:
        if isinstance(value, (int, float)) and not isinstance(value, bool) and 0.0 <= value < math.inf:
            return batsim_number(value)
    except (OverflowError, ValueError):
        pass
    return None


def wire_floats(obj: Any, depth: int = 0) -> Any:
    """Return a copy with every float rounded to 6 decimals, as in Batsim's JSON.

    `depth` is the depth of `obj` in another object. Raises RecursionError beyond MAX_DEPTH.
    """
    if isinstance(obj, float):
        sent = round(obj, 6)
        if abs(obj - sent) > 4.8e-7 or 1e8 < abs(obj) < math.inf:
            # near a tie, a further reading and writing by Batsim changes the result
            sent = round(batsim_float(repr(obj)), 6)
        # of equal numbers one object is enough
        return obj if sent == obj else sent
    if isinstance(obj, (dict, list, tuple)):
        if depth >= MAX_DEPTH:
            raise RecursionError(TOO_DEEP)
        if isinstance(obj, dict):
            return {key: wire_floats(value, depth + 1) for key, value in obj.items()}
        return [wire_floats(value, depth + 1) for value in obj]
    if isinstance(obj, int) and not -_SIGNED <= obj <= _UNSIGNED:
        return batsim_float(str(obj))
    return obj
