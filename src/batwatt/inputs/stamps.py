"""Parser of times of signals: dates in the formats of exports, local times across a change of clocks, seconds."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from batwatt.checks import number_named
from batwatt.errors import InputError
from batwatt.inputs.source import Dates, SeriesSource
from batwatt.inputs.table import STATED_ZONE, TIME, Table, numbers_in, says_end, words_of
from batwatt.model.signal import parse_date_s
from batwatt.units import DAY_S, HOUR_S, LATEST_S, SINCE_1970_S

if TYPE_CHECKING:
    import pandas as pd

_ENDS = "times {!r} taken as ends of rows"
_HOUR = re.compile(r"(?<![a-z])(?:hour|hr|he|stunde)(?![a-z])|hourending")
_HOURS = re.compile(r"(?:[01]?\d|2[0-4])[X*]?$")
"""Hours from 0 to 24; the second of an hour that comes twice may be `02X` or `02*`."""
_UNITS = ((1e17, 1e9, "ns"), (1e14, 1e6, "us"), (LATEST_S, 1e3, "ms"))
"""Least number of a time since 1970 in a unit, its number in a s, and its name."""
_HEADER_ZONES = {"utc": "UTC", "gmt": "UTC", "cet/cest": "Europe/Brussels", "wet/west": "Europe/Lisbon",
                 "eet/eest": "Europe/Athens"}  # fmt: skip
"""Time zones in the name of a column of times, or in its cells, as in `MTU (CET/CEST)`."""
_ZONE = r"(?:UTC|GMT)\s*[+-]\s*(?!00?(?::?00)?(?!\d))\d[\d:]*|CES?T|MES?Z|WES?T|EES?T|BST|[ECMP][DS]T"
_OTHER_ZONE = re.compile(
    rf"[\[(]\s*(?P<within>{_ZONE}|LST|local(?: time)?)\s*[\])]|(?:^|\s)(?P<last>{_ZONE})\s*$", re.IGNORECASE
)
"""Zones in a name that are ambiguous: clocks may change or not, or several places are possible.

They stand in brackets, or last, as in `MST` and `Start time UTC+03:00`.
"""
_SUMMER = ("CEST", "WEST", "EEST", "BST", "EDT", "CDT", "MDT", "PDT")
_FAMILIES = ({"UTC", "GMT"}, {"CET", "CEST"}, {"WET", "WEST"}, {"EET", "EEST"}, {"GMT", "BST"})
"""Names of a zone in winter and in summer; UTC has two."""
_RANGE = re.compile(r"(?<!\s)\s+[-–]\s+")
_CLOCK = re.compile(r"(\d{1,2}):(\d\d)(?::(\d\d))?")
_COMPACT = re.compile(r"(\d{4})(\d\d)(\d\d):(\d\d)(\d\d)$")
"""Times of PVGIS, in UTC, as in `20230401:0010`."""
_MARK = r"(?<!\s)\s*\(([A-Z]{3,4}(?:/[A-Z]{3,4})?)\)$"
_OFFSET = r"(?:Z|UTC|[+-]\d\d:?\d\d|:\d\d(?:\.\d+)?[+-]\d\d)$"
_DIGITS = r"(?:19|20)\d\d(?:0[1-9]|1[0-2])(?:0[1-9]|[12]\d|3[01])(?:(?:[01]\d|2[0-4])(?:[0-5]\d){0,2})?"
"""Dates such as 20240701 or 202407011300, which are no times since 1970."""
_MIDNIGHT = re.compile(r"(?<=[ T])24:00(?=(?::00(?:\.0+)?)?(?:Z|[+-]|$))")
"""The end of a day, which is the begin of the next one."""
_YEAR = r"(?:1[89]|2[01])\d\d"
"""Accepted years of dates: others are typing errors, or beyond the ns of pandas."""
_PARTS = re.compile(
    rf"(\d{{1,2}})[./](\d{{1,2}})[./]({_YEAR})(?:[ T]+(\d{{1,2}}):(\d\d)(?::(\d\d)(?:\.\d+)?)?(?: *([AaPp])[Mm])?)?"
)
_SLASHED = re.compile(r"\d{1,2}[./]\d{1,2}[./]\d{4}")
_DAY = re.compile(r"\d{4}[-/]\d\d?[-/]\d\d?|\d{1,2}[./]\d{1,2}[./]\d{4}")


def times_of(table: Table, name: str, file: SeriesSource) -> tuple[npt.NDArray[np.float64], bool, bool, list[str]]:
    """Return times in s, since 1970 if they are dates (True), True if they are ends of intervals, and remarks.

    They are NaN for hours skipped by clocks. Dates without an offset are in the zone in the column's name, else in
    `file.tz`, else in the zone in the cells. Raises InputError with the row.
    """
    cells, end = table.column(name), says_end(name)
    numbers = numbers_in(cells)
    if np.isfinite(numbers).all():
        end = file.stamp == "end" if file.stamp else end
        notes = [_ENDS.format(name)] * end
        return *_seconds(numbers, table, name, notes), end, notes
    # seconds need no pandas
    import pandas as pd

    cells, end, names = _whole_dates(table, name, file)
    # the time of a range is its begin
    ranges = _RANGE.search(cells[0]) is not None
    end = end and not ranges
    notes = [_ENDS.format(name)] * end
    texts = pd.Series(cells, name=name)
    stamps, offset, marks = _labels(texts.str.split(_RANGE, n=1).str[0] if ranges else texts, texts, table, file)
    if not offset:
        zone = _parse_zone(texts, names, file)
        stamps, end = _localized(stamps, marks, zone, end, notes)
        _refuse_other_zones(stamps, marks, zone, texts, table)
    passed = (stamps.dt.tz_convert("UTC") - pd.Timestamp(0, tz="UTC")) / pd.Timedelta(seconds=1)
    return np.asarray(passed, dtype=np.float64), True, end, notes


def _whole_dates(table: Table, name: str, file: SeriesSource) -> tuple[list[str], bool, list[str]]:
    """Return the dates of a column of times, True if they are ends, and the names of its columns. Raises InputError.

    A column of days is joined with one of times of day, or of hours, of which 24, or 24:00, makes all of them ends.
    """
    cells, end, names = table.column(name), says_end(name), [name]
    are_days, are_clocks = (all(map(form.fullmatch, cells)) for form in (_DAY, _CLOCK))
    if are_days or are_clocks:
        # begins of days have begins of times of day
        columns = sorted(zip(table.names, table.columns, strict=True), key=lambda column: says_end(column[0]) != end)
        form = _CLOCK if are_days else _DAY
        others = [(other, texts) for other, texts in columns if all(map(form.fullmatch, texts))]
        if are_days and not others:
            hourly = [column for column in columns if _HOUR.search(words_of(column[0]))]
            hourly = [column for column in hourly if all(map(_HOURS.match, column[1]))]
            others = [(other, _clocks(other, texts, end, file)) for other, texts in hourly[:1]]
        if others:
            other, texts = others[0]
            names.append(other)
            days, clocks = (cells, texts) if are_days else (texts, cells)
            end = end or says_end(other if are_days else name)
            cells = [f"{day} {'0' * (clock[1] == ':')}{clock}" for day, clock in zip(days, clocks, strict=True)]
    end = file.stamp == "end" if file.stamp else end or any(map(_MIDNIGHT.search, cells))
    return cells, end, names


def _clocks(name: str, hours: list[str], end: bool, file: SeriesSource) -> list[str]:
    """Return a column of hours as times of day. Raises InputError if they may be begins or ends."""
    numbers = [int(hour.rstrip("X*")) for hour in hours]
    if not (end or says_end(name) or file.stamp or {0, 24} & {*numbers}):
        problem = f"{name} {hours[0]} is {numbers[0]}:00, or the hour that ends then"
        raise InputError(file.path, problem, "say stamp=begin or stamp=end")
    return [f"{number}:00" for number in numbers]


def _seconds(
    numbers: npt.NDArray[np.float64], table: Table, name: str, notes: list[str]
) -> tuple[npt.NDArray[np.float64], bool]:
    """Return times in s of numbers of s, or of s, ms, us or ns since 1970 (True), by their size. Raises InputError."""
    first, last = float(numbers.min()), float(numbers.max())
    per_s, unit = next(((per_s, unit) for least, per_s, unit in _UNITS if first >= least), (1.0, "s"))
    calendar = "dat" in name.lower() and first < SINCE_1970_S
    calendar |= all(re.fullmatch(_DIGITS, cell) for cell in table.column(name))
    if (calendar and name.lower() != TIME) or (first >= SINCE_1970_S and not last < LATEST_S * per_s):
        problem = f"its times {name} go from {first:.15g} to {last:.15g}, which are neither s of a run nor since 1970"
        raise InputError(table.path, problem, "write dates as 2024-07-01T13:00Z")
    if unit != "s":
        notes.append(f"times {name!r} taken as {unit} since 1970, by their size")
    return numbers / per_s, first >= SINCE_1970_S


def lengths_of(table: Table, name: str, file: SeriesSource) -> npt.NDArray[np.float64] | None:
    """Return the duration in s of each row by labels that are ranges; None for other labels. Raises InputError.

    The end may be a time of day only, as in `01.10.2025 00:00 - 00:15`.
    """
    cells = table.column(name)
    if not all(map(_RANGE.search, cells)):
        return None
    import pandas as pd

    texts = pd.Series(cells, name=name)
    ranges = texts.str.split(_RANGE, n=1, expand=True)
    begins, ends = ranges[0], ranges[1]
    stamps, offset, marks = _labels(begins, texts, table, file)
    if ends.str.fullmatch(_CLOCK).all():
        parts = ends.str.extract(f"^{_CLOCK.pattern}$").fillna("0").astype(int)
        since = (stamps - stamps.dt.normalize()) / pd.Timedelta(seconds=1)
        lengths = (parts[0] * 3600 + parts[1] * 60 + parts[2] - since) % DAY_S
        lengths = lengths.where(lengths > 0.0, DAY_S)
    else:
        until, _, end_marks = _labels(ends, texts, table, file)
        lengths = (until - stamps) / pd.Timedelta(seconds=1)
        # the clock goes back an hour from summer time to standard time
        for earlier, later, hours in ((marks, end_marks, 1.0), (end_marks, marks, -1.0)):
            changed = earlier.isin(_SUMMER) & later.notna() & ~later.isin(_SUMMER)
            lengths = lengths + changed * hours * HOUR_S
    wrong = np.flatnonzero(~(lengths > 0.0))
    if len(wrong) and not offset:
        # an hour without summer time or one without a mark: the labels do not state their lengths
        lengths = lengths.where(lengths > 0.0, lengths[lengths > 0.0].median())
    if not (lengths > 0.0).all():
        problem = f"{name} {cells[wrong[0]][:60]!r} ends before it begins"
        raise InputError(table.place(int(wrong[0])), problem, "correct it")
    return np.asarray(lengths, dtype=np.float64)


def _labels(
    labels: pd.Series[str], texts: pd.Series[str], table: Table, file: SeriesSource
) -> tuple[pd.Series[pd.Timestamp], bool, pd.Series[str]]:
    """Return the dates of labels, True if they have an offset from UTC, and marks such as CEST. Raises InputError."""
    marks = texts.mask(texts.notna())
    if labels.str.endswith(")").any():
        marks = labels.str.extract(_MARK, expand=False)
        # CET/CEST is ambiguous
        marks = marks.mask(marks.str.contains("/", na=False))
        labels = labels.str.replace(_MARK, "", regex=True)
    if _COMPACT.match(labels.iloc[0]):
        labels = labels.str.replace(_COMPACT, r"\1-\2-\3T\4:\5Z", regex=True)
    days = labels.str.contains(_MIDNIGHT).astype(int)
    labels = labels.str.replace(_MIDNIGHT, "00:00", regex=True)
    offset = False
    if _SLASHED.match(labels.iloc[0]):
        stamps = _stamps_of_parts(labels, texts, table, file)
    else:
        stamps, offset = _stamps(labels, texts, table)
    return stamps + days.to_numpy() * np.timedelta64(24, "h"), offset, marks


def _parse_zone(texts: pd.Series[str], names: list[str], file: SeriesSource) -> str:
    """Return the time zone of dates without an offset, in columns of some names. Raises InputError."""
    for name in names:
        stated = STATED_ZONE.search(name)
        if stated is not None and stated[1].lower() in _HEADER_ZONES:
            return _HEADER_ZONES[stated[1].lower()]
    if file.tz != "UTC":
        return file.tz
    for name in names:
        other = _OTHER_ZONE.search(name)
        if other is not None:
            problem = f"column {name!r} is in {other['within'] or other['last']}"
            raise InputError(file.path, problem, "say which as in tz=Europe/Berlin, or tz=Etc/GMT-1 for UTC+1 all year")
    marked = texts.str.extract(_MARK, expand=False).dropna()
    labels = marked.iloc[0].lower().split("/") if len(marked) else []
    return next((zone for label, zone in _HEADER_ZONES.items() if {*labels} & {*label.split("/")}), file.tz)


def _refuse_other_zones(
    stamps: pd.Series[pd.Timestamp], marks: pd.Series[str], zone: str, texts: pd.Series[str], table: Table
) -> None:
    """Raise InputError for the first row with a mark, as in `00:00 (CEST)`, that `zone` does not have at that time.

    The mark at the end of a range may be that of the other half of the year.
    """
    stated = marks.fillna(texts.str.extract(_MARK, expand=False))
    kinds = stated.to_frame("name").assign(has=stamps.dt.strftime("%Z"), own=marks.notna())
    for row, name, has, own in kinds.dropna().drop_duplicates().itertuples():
        names = {*name.split("/")}
        if has not in names.union(*(family for family in _FAMILIES[: 1 if own else None] if family & names)):
            problem = f"{texts.name} {texts[row][:60]!r} is in {name}, but {zone} has {has} then"
            hint = "say its zone as in tz=Europe/Brussels, or write dates as 2024-07-01T13:00Z"
            raise InputError(table.place(int(row)), problem, hint)


def _localized(
    stamps: pd.Series[pd.Timestamp], marks: pd.Series[str], zone: str, end: bool, notes: list[str]
) -> tuple[pd.Series[pd.Timestamp], bool]:
    """Return the dates with their zone, and True if they are still ends of intervals.

    The first of two equal hours in autumn is summer time, unless marked. Ends are what clocks show then, or a step
    after what clocks show at the begin (hours from 1 to 24): the reading with fewer double and skipped times counts,
    of equal ones with skipped times the second, as clocks do not show these.
    """
    rising = bool(stamps.iloc[0] <= stamps.iloc[-1])

    def localized(walls: pd.Series[pd.Timestamp]) -> pd.Series[pd.Timestamp]:
        summer = ~walls.duplicated(keep="first" if rising else "last").to_numpy()
        summer = np.where(marks.notna(), marks.isin(_SUMMER), summer)
        return walls.dt.tz_localize(zone, ambiguous=summer, nonexistent="NaT")

    def faults(dates: pd.Series[pd.Timestamp]) -> int:
        return int((dates.isna() | dates.duplicated()).sum())

    dates = localized(stamps)
    if end and faults(dates):
        steps = stamps.sort_values().diff()
        begins = localized(stamps - steps[steps > np.timedelta64(0)].mode().min())
        if faults(begins) < faults(dates) + int(dates.isna().any()):
            dates, end = begins, False
    skipped = int(dates.isna().sum())
    if skipped:
        notes.append(f"{skipped} rows of hours that {zone} leaves out in spring ignored")
    return dates, end


def _stamps(begins: pd.Series[str], texts: pd.Series[str], table: Table) -> tuple[pd.Series[pd.Timestamp], bool]:
    """Return the dates, and True if they have an offset from UTC. Raises InputError with the row."""
    import pandas as pd

    offsets = begins.str.contains(_OFFSET, regex=True, case=False)
    if offsets.any() and not offsets.all():
        place = table.place(int(np.flatnonzero(~offsets)[0]))
        raise InputError(place, "has no offset from UTC while others have one", "write it alike")
    has_offset = bool(offsets.any())
    # pandas would take `now` as well
    like = begins.str.match(_YEAR)
    try:
        stamps = pd.to_datetime(begins.where(like), format="ISO8601", utc=has_offset, errors="coerce")
    except ValueError as error:
        raise InputError(table.path, f"{texts.name}: {error}", "write all dates alike") from None
    _refuse(stamps.isna() | ~like, texts, table)
    return stamps, has_offset


def _stamps_of_parts(
    begins: pd.Series[str], texts: pd.Series[str], table: Table, file: SeriesSource
) -> pd.Series[pd.Timestamp]:
    """Return the dates of texts such as `20.03.2022 00:00` or `1/2/2022 0:15`. Raises InputError with the row."""
    import pandas as pd

    parts = begins.str.extract(f"^{_PARTS.pattern}$")
    _refuse(parts[0].isna(), texts, table)
    half = parts[6]
    filled = parts[range(6)].fillna("0").astype(int)
    # 12:30 AM is half past midnight
    filled[3] = filled[3].where(half.isna(), filled[3] % 12 + 12 * half.isin(["P", "p"]))
    clock = filled[[2, 3, 4, 5]].set_axis(["year", "hour", "minute", "second"], axis=1)
    either: dict[Dates, pd.Series[pd.Timestamp]] = {
        "day-first": pd.to_datetime(clock.assign(month=filled[1], day=filled[0]), errors="coerce"),
        "month-first": pd.to_datetime(clock.assign(month=filled[0], day=filled[1]), errors="coerce"),
    }
    order = file.dates or _order(either, texts, table)
    _refuse(either[order].isna(), texts, table)
    return either[order]


def _order(either: dict[Dates, pd.Series[pd.Timestamp]], texts: pd.Series[str], table: Table) -> Dates:
    """Return the order of day and month that makes dates of all texts. Raises InputError if both do, and differ."""
    if "." in texts.iloc[0] or str(texts.name).lower().startswith("mtu"):
        return "day-first"
    day, month = either["day-first"], either["month-first"]
    if day.isna().any() or month.isna().any() or (day == month).all():
        return "month-first" if day.isna().sum() > month.isna().sum() else "day-first"
    row = int(np.flatnonzero(day != month)[0])
    problem = f"{texts.iloc[row][:40]!r} is {day.iloc[row]:%-d %B} or {month.iloc[row]:%-d %B}"
    raise InputError(table.place(row), problem, "say dates=day-first or dates=month-first")


def _refuse(wrong: pd.Series[bool], texts: pd.Series[str], table: Table) -> None:
    """Raise InputError for the first row that is not a date, if any."""
    rows = np.flatnonzero(wrong)
    if len(rows):
        hint = "write 2024-07-01 13:00 or 2024-07-01T13:00Z"
        raise InputError(table.place(int(rows[0])), f"{texts.name} {texts.iloc[rows[0]][:40]!r} is not a date", hint)


def moment(text: str, dated: bool, file: SeriesSource) -> float:
    """Parse a date to s since 1970, or a number of s of a file without dates. Raises InputError."""
    if dated:
        return parse_date_s(text, file.path, file.clock)
    return number_named(file.path, "from and to, in s as the times of the file", text, "correct it")
