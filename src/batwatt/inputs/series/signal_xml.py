"""Reader of answers of ENTSO-E's API (XML) as tables of texts: prices, generation, load."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any
from xml.etree.ElementTree import Element, ParseError

import pandas as pd

from batwatt.errors import InputError
from batwatt.model.series import MAX_ROWS

_DURATION = re.compile(r"PT(\d{1,4})([MHS])|P(1)(D)")
_SECONDS = {"S": 1, "M": 60, "H": 3600, "D": 86_400}
_VALUES = ("price.amount", "quantity")
_HINT = "ask the API for another document"


def xml_table(text: str, path: Path) -> pd.DataFrame:
    """Return a row per position of each period: time, zone, sequence, resolution, a column with the unit in its name.

    The zone is the domain of a series, or its type of production (`B16`) if it has one. A missing position repeats the
    one before (curve type A03). Raises InputError.
    """
    root = _root(text, path)
    series = list(_within(root, "TimeSeries"))
    if not series:
        reason = _text_of(root, "Reason/text") or f"a document <{_tag(root)}> without <TimeSeries>"
        raise InputError(path, f"has no series: {reason[:200]}", _HINT)
    rows = [row for one in series for period in _within(one, "Period") for row in _rows(one, period, path)]
    if not rows:
        raise InputError(path, "has no points in its periods", _HINT)
    names = sorted({row[4] for row in rows})
    if len(names) > 1:
        raise InputError(path, f"has values in several units: {', '.join(names)}", _HINT)
    return pd.DataFrame(rows, columns=["time", "zone", "sequence", "resolution", "", names[0]]).drop(columns="")


def duration_s(text: str) -> float | None:
    """Return the length in s of a resolution such as PT15M, or None."""
    match = _DURATION.fullmatch(text)
    return None if match is None else int(match[1] or match[3]) * float(_SECONDS[match[2] or match[4]]) or None


def _root(text: str, path: Path) -> Element:
    from defusedxml import DefusedXmlException
    from defusedxml.ElementTree import fromstring

    try:
        root: Element = fromstring(text.strip().encode("utf-8"))
    except DefusedXmlException as error:
        what = type(error).__name__
        raise InputError(path, f"entities and external references are refused ({what})", "write them out") from None
    except (ParseError, ValueError, LookupError) as error:
        raise InputError(path, f"is not well-formed XML ({error})", "correct the file there") from None
    return root


def _rows(series: Element, period: Element, path: Path) -> Iterator[tuple[Any, ...]]:
    begin_text, end_text = (_text_of(period, f"timeInterval/{name}") for name in ("start", "end"))
    place = f"{path}: period {begin_text}"
    resolution = _text_of(period, "resolution")
    length_s = duration_s(resolution)
    begin, end = (_moment(text) for text in (begin_text, end_text))
    if length_s is None or begin is None or end is None or not begin < end:
        problem = f"begins {begin_text!r}, ends {end_text!r}, has the resolution {resolution!r}"
        raise InputError(place, problem, "a period needs two dates and a resolution such as PT15M")
    step = timedelta(seconds=length_s)
    count = int((end - begin) / step)
    if not count <= MAX_ROWS:
        raise InputError(place, f"has {count} steps, more than {MAX_ROWS}", "correct the dates")
    values: dict[int, str] = {}
    for point in _within(period, "Point"):
        position, value = _text_of(point, "position"), next(filter(None, (_text_of(point, n) for n in _VALUES)), "")
        # Python refuses to convert thousands of digits
        if not (position.isdecimal() and len(position) <= len(str(MAX_ROWS)) and 1 <= int(position) <= count):
            raise InputError(place, f"position {position[:20]!r} is not in 1..{count}", "correct the file there")
        values[int(position)] = value
    zone = _text_of(series, "MktPSRType/psrType") or next(
        filter(None, (_text_of(series, f"{way}Domain.mRID") for way in ("in_", "inBiddingZone_", "outBiddingZone_"))),
        "",
    )
    sequence = _text_of(series, "classificationSequence_AttributeInstanceComponent.position")
    name = _column(series)
    last = ""
    repeats = _text_of(series, "curveType") == "A03"
    for index in range(count):
        last = values.get(index + 1, last if repeats else "")
        yield (begin + index * step).isoformat(), zone, sequence, resolution, name, last


def _moment(text: str) -> datetime | None:
    try:
        date = datetime.fromisoformat(text)
    except ValueError:
        return None
    return None if date.tzinfo is None else date


def _column(series: Element) -> str:
    energy = _text_of(series, "price_Measure_Unit.name")
    if energy:
        return f"price ({_text_of(series, 'currency_Unit.name')}/{energy})"
    unit = _text_of(series, "quantity_Measure_Unit.name")
    return f"quantity ({'MW' if unit == 'MAW' else unit})"


def _tag(element: Element) -> str:
    return str(element.tag).rpartition("}")[2]


def _within(element: Element, name: str) -> Iterator[Element]:
    return (child for child in element if _tag(child) == name)


def _text_of(element: Element, names: str) -> str:
    """Return the text of the first element on a path of names; empty without such an element."""
    for name in names.split("/"):
        child = next(_within(element, name), None)
        if child is None:
            return ""
        element = child
    return (element.text or "").strip()
