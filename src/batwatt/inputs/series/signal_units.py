"""What a column is of, and its unit: from its name, or declared; factors to W, g/kWh, money per kWh."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from batwatt.inputs.series.capacity import COLUMN
from batwatt.inputs.series.variation import FRACTION

POWER_W: Final = "power_w"
"""Name of a series of watts."""
UNIT_OF: Final = {"power": "W", "carbon": "g/kWh", "price": "money per kWh"}
"""The unit in which the values of each kind are taken, and to which they are converted."""

_PREFIX = {"": 1.0, "k": 1e3, "kilo": 1e3, "m": 1e6, "mega": 1e6, "g": 1e9, "giga": 1e9}
_GRAMS = {"g": 1.0, "gram": 1.0, "kg": 1e3, "lb": 453.59237, "t": 1e6, "tonne": 1e6}
_SIGNS = {"€": "EUR", "$": "USD", "£": "GBP", "euro": "EUR"}
_HUNDREDTHS = {"ct": "EUR", "cent": "money", "p": "GBP", "pence": "GBP"}
_WH = r"(?P<energy>[kmg]?)wh(?![a-z])"
_PER = r"(?:\s*/\s*|[\s_]*per[\s_]*|_)"
_CARBON = rf"(?<![a-z])(?P<mass>grams?|k?g|lbs?|tonnes?|t)[\s_]*(?:co2?[\s_-]*(?:eq|e)?)?{_PER}{_WH}"
_PRICE = (
    rf"(?:(?<![a-z])(?P<money>euros?|cents?|pence|[a-z]{{3}}|ct|p)|(?P<sign>[€$£])|(?:price|cost|tariff)){_PER}{_WH}"
)
_POWER = r"(?:(?<![a-z])|(?<=power))(?P<watts>kilo|mega|giga|[kmg]?)w(?:atts?)?(?![a-z])(?!\s*/)"


@dataclass(frozen=True)
class Unit:
    """A unit: of what it is, the factor to `UNIT_OF` that kind, and the name of a series converted to it."""

    text: str
    kind: str
    factor: float
    name: str


def _carbon(found: re.Match[str]) -> tuple[float, str]:
    mass = found["mass"].removesuffix("s")
    return _GRAMS[mass] / (_PREFIX[found["energy"]] / 1e3), "g/kWh"


def _price(found: re.Match[str]) -> tuple[float, str]:
    money = (found["money"] or found["sign"] or "money").removesuffix("s")
    currency = _HUNDREDTHS.get(money) or _SIGNS.get(money) or (money if money == "money" else money.upper())
    return (0.01 if money in _HUNDREDTHS else 1.0) / (_PREFIX[found["energy"]] / 1e3), f"{currency}/kWh"


_UNITS: tuple[tuple[str, re.Pattern[str], Callable[[re.Match[str]], tuple[float, str]]], ...] = tuple(
    (kind, re.compile(pattern), convert)
    for kind, pattern, convert in (
        ("carbon", _CARBON, _carbon),
        ("price", _PRICE, _price),
        ("irradiance", r"w\s*/\s*m\^?2|(?<![a-z])wm2", lambda _: (1.0, "W/m2")),
        ("power", _POWER, lambda found: (_PREFIX[found["watts"]], POWER_W)),
        ("energy", rf"(?<![a-z]){_WH}(?!\s*/)", lambda found: (_PREFIX[found["energy"]], "Wh")),
        ("temperature", r"°\s*[cf](?![a-z])|\bkelvin\b|\bcelsius\b", lambda _: (1.0, "")),
        ("speed", r"(?<![a-z])k?m\s*/\s*[hs](?![a-z])", lambda _: (1.0, "")),
        ("a share", r"%|percent", lambda _: (0.01, FRACTION)),
        ("a fraction", rf"^(?:{FRACTION}s?|p\.?u\.?)$", lambda _: (1.0, FRACTION)),
    )
)
_WORDS = {
    "price": r"price|cost|tariff|\b(?:eur|usd|gbp|chf)\b|[€$£]",
    "speed": r"wind_?\s?speed",
    "temperature": r"(?:^|[^a-z])temp(?:erature)?(?:[^a-z]|$)",
    "irradiance": r"irradiance|(?:^|[^a-z])(?:ghi|dni|dhi)(?:[^a-z]|$)",
    "carbon": r"carbon|co2|emission|intensity|moer|/|(?:^|[ _])per[ _]",
    "electric current": r"(?:^|[^a-z])[ad]c_current",
    "voltage": r"voltage",
    "humidity": r"humidity",
    "cloud": r"cloud_?cover",
    "pressure": r"pressure",
    "power": r"power",
    COLUMN: f"^{COLUMN}$",
}
"""What a column without a unit is of, by the first of these in its name; what is per something else is no power."""


def unit_in(text: str) -> Unit | None:
    """The first unit found in the name of a column, or in what declares its unit; None if there is none."""
    plain = _plain(text)
    for kind, pattern, convert in _UNITS:
        found = pattern.search(plain)
        if found is not None:
            factor, name = convert(found)
            return Unit(found[0].strip(" _"), kind, factor, name)
    return None


def declared_unit(text: str) -> Unit | None:
    """The unit that a text is, such as `kW`, `EUR/MWh`, `lb/MWh` or `fraction`; None if it is none that is known."""
    for kind, pattern, convert in _UNITS:
        found = pattern.fullmatch(_plain(text).strip())
        if found is not None and kind in (*UNIT_OF, "a share", "a fraction"):
            factor, name = convert(found)
            return Unit(text, "a fraction" if name == FRACTION else kind, factor, name)
    return None


def kind_in(text: str) -> str | None:
    """What a column is of, by the unit in its name or by a word of it; None if the name does not say."""
    unit = unit_in(text)
    if unit is not None:
        return unit.kind
    return next((kind for kind, words in _WORDS.items() if re.search(words, _plain(text))), None)


def _plain(text: str) -> str:
    return text.lower().replace("₂", "2").replace("²", "2")
