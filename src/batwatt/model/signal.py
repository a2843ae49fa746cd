"""Signals over time: the clock and the window of a run, units, and integrals of step functions."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime, tzinfo
from typing import Final

import numpy as np
import numpy.typing as npt

from batwatt.checks import shown
from batwatt.errors import InputError
from batwatt.model.timeline import FRACTION, MACHINES
from batwatt.units import LAG_S, LATEST_S, date_text


def parse_date(text: str, zone: tzinfo = UTC, unit_s: float = 1.0) -> float:
    """Parse a date (ISO 8601, or a number since 1970 in `unit_s`) to s since 1970; NaN for others, such as `Unknown`.

    A date without an offset is in the time zone `zone`: in autumn in the first of two equal hours, in spring an hour
    later if clocks skip it.
    """
    if text.isascii() and text.isdigit() and len(text) > 8:
        return float(text) * unit_s
    try:
        moment = datetime.fromisoformat(text)
        moment = moment if moment.tzinfo is not None else moment.replace(tzinfo=zone)
        # in UTC the date may be before the year 1
        return moment.astimezone(UTC).timestamp()
    except (ValueError, OverflowError):
        return math.nan


def parse_date_s(text: str, where: object = "begin", zone: tzinfo = UTC) -> float:
    """Parse a date as `parse_date` does. Raises InputError, which names `where`, for other texts."""
    value = parse_date(text, zone) if isinstance(text, str) else math.nan
    if not abs(value) <= LATEST_S:
        raise InputError(where, f"{shown(text)} is not a date", "write 2024-07-01 or 2024-07-01T13:00Z")
    return value


@dataclass(frozen=True)
class Clock:
    """The date of 0 s of a run, `date_s`, in s since 1970; `source` names the input that has this date.

    Jobs are submitted from `first_s` to `last_s`, in s of the run; if all begin at once, the last ends at `end_s`.
    """

    date_s: float
    source: str = ""
    first_s: float = 0.0
    last_s: float = 0.0
    end_s: float = math.inf
    line: str = field(default="", compare=False)
    """Line of the log on the clock; empty: none."""

    @property
    def date(self) -> str:
        """The date as text."""
        return date_text(self.date_s)

    def span(self) -> str:
        """Return the dates of the first and of the last submission, as text."""
        return f"{date_text(self.date_s + self.first_s)} to {date_text(self.date_s + self.last_s)}"


_Floats = npt.NDArray[np.float64]
_Mask = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Window:
    """The measured time in s, both ends included."""

    begin_s: float
    end_s: float

    def __post_init__(self) -> None:
        if not 0.0 <= self.begin_s < math.inf:
            raise ValueError(f"begin_s must be >= 0 s and finite, got {self.begin_s!r}")
        if not self.begin_s <= self.end_s < math.inf:
            raise ValueError(f"end_s must be >= begin_s ({self.begin_s!r} s) and finite, got {self.end_s!r}")

    def after(self, times_s: _Floats) -> _Mask:
        """Return the mask of the times after the window, without missing ones (NaN)."""
        return times_s > self.end_s + LAG_S

    def holds(self, times_s: _Floats) -> _Mask:
        """Return the mask of the times in ]begin, end], without missing ones (NaN)."""
        return (times_s > self.begin_s) & (times_s <= self.end_s + LAG_S)


POWER_W: Final = "power_w"
"""Name of a series of watts."""
UNIT_OF: Final = {"power": "W", "carbon": "g/kWh", "price": "money/kWh"}
"""The unit to which the values of each kind are converted."""
UNSTATED: Final = "?"
"""Unit of a series of a file that states none; the unit of a series built in Python is empty: its argument's."""
EXAMPLES: Final = {"power": "W or unit=kW", "carbon": "g/kWh or unit=lb/MWh", "price": "EUR/MWh or unit=ct/kWh"}
"""Units of each kind that errors propose, after `unit=`."""
DEAREST = 10.0
"""Greatest price per kWh of a series without a stated unit."""

_LONGEST = 1000
"""Characters of a name in which a unit is looked for."""
_PREFIX = {"": 1.0, "k": 1e3, "kilo": 1e3, "m": 1e6, "mega": 1e6, "g": 1e9, "giga": 1e9}
_GRAMS = {"g": 1.0, "gram": 1.0, "kg": 1e3, "lb": 453.59237, "t": 1e6, "tonne": 1e6}
_SIGNS = {"€": "EUR", "$": "USD", "us$": "USD", "£": "GBP", "euro": "EUR"}
_HUNDREDTHS = {"ct": "EUR", "cent": "money", "p": "GBP", "pence": "GBP"} | dict.fromkeys(
    ("¢", "öre", "øre", "ore"), "money"
)
_WH = r"(?P<energy>[kmg]?|kilo|mega|giga)(?:wh|watt[\s-]?hours?)(?![a-z])"
_PER = r"(?:\s*/\s*|[\s_]*per[\s_]*|_)"
_CARBON = rf"(?<![a-z])(?P<mass>grams?|k?g|lbs?|tonnes?|t)[\s_]*(?:co2?[\s_-]*(?:eq|e)?)?{_PER}{_WH}"
_CURRENCIES = (
    "eur|gbp|usd|chf|sek|nok|dkk|isk|pln|czk|huf|ron|bgn|hrk|rsd|bam|mkd|uah|gel|try|rub|kzt|ils|aud|nzd|cad|jpy|cny|krw|"
    "inr|pkr|bdt|lkr|npr|twd|hkd|sgd|myr|thb|php|idr|vnd|brl|mxn|ars|clp|cop|pen|uyu|zar|ngn|kes|ghs|egp|mad|sar|aed|qar"
)
"""Codes of currencies; other three letters before MWh, as in `btm_mwh`, are none."""
_MONEY = (
    rf"(?:(?<![a-z])(?P<money>euros?|cents?|pence|money|cts?|ore|{_CURRENCIES}|[öø]re|p|us\$)"
    r"|(?<![a-z])(?P<sign>[€$£¢])|(?:price|cost|tariff))"
)
_PRICE = rf"{_MONEY}{_PER}{_WH}"
_PRICE_OF_POWER = rf"{_MONEY}[\]\)]?{_PER}[\[\(]?[kmg]?w(?:atts?)?(?![a-z])"
_POWER = r"(?:(?<![a-z])|(?<=power))(?P<watts>kilo|mega|giga|[kmg]?)w(?:atts?)?(?![a-z])(?!\s*/)"
_UNKNOWN = re.compile(
    r"[^\s()\[\]_/]+(?:/|_per_)[kMGT]?(?:[Ww][Hh]|J|therm|BTU)(?![A-Za-z])"
    r"|(?<![A-Za-z])[A-Za-zµ]?(?:W|VA|var)(?![A-Za-z/])"
)
"""Pattern of texts that resemble units: it distinguishes an unknown unit from no unit."""


@dataclass(frozen=True)
class Unit:
    """A unit: its kind, the factor to the unit `UNIT_OF` that kind, and the name of a converted series."""

    text: str
    kind: str
    factor: float
    name: str

    @property
    def converted(self) -> str:
        """The unit of values converted by the factor."""
        return "W" if self.name == POWER_W else self.name or self.text

    def contradicts(self, other: Unit) -> bool:
        """Return whether both are of one kind, but of different factors or currencies; `money` is any currency."""
        if self.name != other.name:
            if self.kind != other.kind:
                return False
            if "money/kWh" not in (self.name, other.name):
                return True
        return not math.isclose(self.factor, other.factor)


def _carbon(match: re.Match[str]) -> tuple[float, str]:
    mass = match["mass"].removesuffix("s")
    return _GRAMS[mass] / (_PREFIX[match["energy"]] / 1e3), "g/kWh"


def _price(match: re.Match[str]) -> tuple[float, str]:
    money = (match["money"] or match["sign"] or "money").removesuffix("s")
    currency = _HUNDREDTHS.get(money) or _SIGNS.get(money) or (money if money == "money" else money.upper())
    return (0.01 if money in _HUNDREDTHS else 1.0) / (_PREFIX[match["energy"]] / 1e3), f"{currency}/kWh"


_UNITS: tuple[tuple[str, re.Pattern[str], Callable[[re.Match[str]], tuple[float, str]]], ...] = tuple(
    (kind, re.compile(pattern), convert)
    for kind, pattern, convert in (
        ("carbon", _CARBON, _carbon),
        ("price", _PRICE, _price),
        ("a price of power", _PRICE_OF_POWER, lambda _: (1.0, "")),
        ("irradiance", r"w\s*/\s*m\^?2|(?<![a-z])wm2", lambda _: (1.0, "W/m2")),
        ("power", _POWER, lambda match: (_PREFIX[match["watts"]], POWER_W)),
        ("energy", rf"(?<![a-z/]){_WH}(?!\s*/)", lambda match: (_PREFIX[match["energy"]], "Wh")),
        ("temperature", r"°\s*[cf](?![a-z])|\bkelvin\b|\bcelsius\b", lambda _: (1.0, "")),
        ("speed", r"(?<![a-z])k?m\s*/\s*[hs](?![a-z])", lambda _: (1.0, "")),
        ("a share", r"%|percent", lambda _: (0.01, FRACTION)),
        ("a fraction", rf"^(?:{FRACTION}s?|p\.?u\.?)$", lambda _: (1.0, FRACTION)),
    )
)
_EMITTED = r"carbon|co2|emission|intensity|moer"
_WORDS = {
    "price": r"price|cost|tariff|\b(?:eur|usd|gbp|chf)\b|[€$£]",
    "speed": r"wind_?\s?speed",
    "temperature": r"(?:^|[^a-z])temp(?:erature)?(?:[^a-z]|$)",
    "irradiance": r"irradiance|(?:^|[^a-z])(?:ghi|dni|dhi)(?:[^a-z]|$)",
    "carbon": rf"{_EMITTED}|/|(?:^|[ _])per[ _]",
    "electric current": r"(?:^|[^a-z])[ad]c_current",
    "voltage": r"voltage",
    "humidity": r"humidity",
    "cloud": r"cloud_?cover",
    "pressure": r"pressure",
    "power": r"power",
    MACHINES: f"^{MACHINES}$",
}
"""Pattern in the name of a column without a unit for each kind, the first match counts; a ratio is no power."""


def unit_in(text: str) -> Unit | None:
    """Return the first unit in the name of a column, or in the text that declares its unit, or None."""
    plain = _plain(text)
    for kind, pattern, convert in _UNITS:
        match = pattern.search(plain)
        # mW is ambiguous: milliwatts, or an error for MW
        if match is not None and not (kind == "power" and "mW" in text):
            factor, name = convert(match)
            return Unit(text[slice(*match.span())].strip(" _"), kind, factor, name)
    return None


def unknown_unit(text: str) -> str | None:
    """Return the text in the name of a column that resembles a unit but is unknown, or None."""
    match = None if unit_in(text) else _UNKNOWN.search(text[:_LONGEST])
    return None if match is None else match[0]


def declared_unit(text: str) -> Unit | None:
    """Parse a unit such as `kW`, `EUR/MWh`, `lb/MWh` or `fraction`; return None for an unknown one."""
    for kind, pattern, convert in _UNITS:
        match = pattern.fullmatch(_plain(text).strip())
        if match is not None and kind in (*UNIT_OF, "a share", "a fraction") and text.strip() != "mW":
            factor, name = convert(match)
            return Unit(text, "a fraction" if name == FRACTION else kind, factor, name)
    return None


def kind_in(text: str) -> str | None:
    """Return the kind of a column by the unit in its name or by a word of the name, or None."""
    unit = unit_in(text)
    if unit is not None:
        return unit.kind
    return next((kind for kind, words in _WORDS.items() if re.search(words, _plain(text))), None)


def is_ratio(text: str) -> bool:
    """Return whether a column is of carbon only as its name is a ratio, as in `x/y`, without a word or a unit of it."""
    return unit_in(text) is None and kind_in(text) == "carbon" and re.search(_EMITTED, _plain(text)) is None


def factor_to(kind: str, unit: str, most: float, where: object) -> tuple[float, str]:
    """Return the factor from the unit of a series to that of a kind, and the latter; `most`: the greatest value.

    A series without a unit is in that of the kind, unless it is a price above `DEAREST`. Raises InputError.
    """
    hint = f"say unit={EXAMPLES[kind]}"
    if not unit:
        if kind == "price" and most > DEAREST:
            raise InputError(where, f"is a price of up to {most:g} per kWh without a unit", hint)
        return 1.0, UNIT_OF[kind]
    if unit == UNSTATED:
        raise InputError(where, "is a series whose file states no unit", hint)
    declared = declared_unit(unit)
    if declared is None or declared.kind != kind:
        raise InputError(where, f"is a series in {unit}, not in a unit of {kind}", f"give one of {kind}")
    return declared.factor, declared.converted


def _plain(text: str) -> str:
    return text[:_LONGEST].lower().replace("₂", "2").replace("²", "2")
