"""Parser of times of signals: dates in the formats of exports, local times across a change of clocks, seconds."""

from __future__ import annotations

import re
from collections.abc import Iterable

import numpy as np
import numpy.typing as npt
import pandas as pd

from batwatt.checks import number_named
from batwatt.errors import InputError
from batwatt.inputs.series.series_csv import TIME
from batwatt.inputs.series.signal_file import Dates, SignalFile
from batwatt.model.clock import date_s_of
from batwatt.units import DAY_S, HOUR_S, LATEST_S, SINCE_1970_S

_NAMES = (
    TIME, "datetime (utc)", "datetime", "time", "timestamp", "date", "mtu", "utc_timestamp", "point_time", "oootime",
    "measured_on", "from", "valid_from", "start", "start_time", "start date", "datum von",
)  # fmt: skip
_HEADER_ZONES = {"utc": "UTC", "gmt": "UTC", "cet/cest": "Europe/Brussels", "wet/west": "Europe/Lisbon",
                 "eet/eest": "Europe/Athens"}  # fmt: skip
"""Time zones in the name of a column of times, or in its cells, as in `MTU (CET/CEST)`."""
_STATED = re.compile(r"\(\s*([A-Za-z/]+)\s*\)\s*$")
_OTHER_ZONE = re.compile(
    r"[\[(]\s*((?:UTC|GMT)\s*[+-]\s*\d[\d:]*|CES?T|MES?Z|WES?T|EES?T|BST|[ECMP][DS]T|local(?: time)?)\s*[\])]",
    re.IGNORECASE,
)
"""Zones in a name that are ambiguous: clocks may change or not, or several places are possible."""
_SUMMER = ("CEST", "WEST", "EEST", "BST", "EDT", "CDT", "MDT", "PDT")
_FAMILIES = ({"UTC", "GMT"}, {"CET", "CEST"}, {"WET", "WEST"}, {"EET", "EEST"}, {"GMT", "BST"})
"""Names of a zone in winter and in summer; UTC has two."""
_RANGE = re.compile(r"\s+[-–]\s+")
_CLOCK = re.compile(r"(\d{1,2}):(\d\d)(?::(\d\d))?")
_COMPACT = re.compile(r"(\d{4})(\d\d)(\d\d):(\d\d)(\d\d)$")
"""Times of PVGIS, in UTC, as in `20230401:0010`."""
_MARK = r"\s*\(([A-Z]{3,4}(?:/[A-Z]{3,4})?)\)$"
_OFFSET = r"(?:Z|UTC|[+-]\d\d:?\d\d|:\d\d(?:\.\d+)?[+-]\d\d)$"
_DIGITS = r"(?:19|20)\d\d(?:0[1-9]|1[0-2])(?:[0-2]\d|3[01])(?:[01]\d|2[0-3])"
"""Dates such as 2024070113, which are not s since 1970."""
_YEAR = r"(?:1[89]|2[01])\d\d"
"""Accepted years of dates: others are typing errors, or beyond the ns of pandas."""
_PARTS = re.compile(rf"(\d{{1,2}})[./](\d{{1,2}})[./]({_YEAR})(?:[ T]+(\d{{1,2}}):(\d\d)(?::(\d\d)(?:\.\d+)?)?)?")
_SLASHED = re.compile(r"\d{1,2}[./]\d{1,2}[./]\d{4}")
_DAY = re.compile(r"\d{4}-\d\d?-\d\d?|\d{1,2}[./]\d{1,2}[./]\d{4}")
_DATE = re.compile(r"\d{4}-\d\d?-\d\d?|\d{1,2}[./]\d{1,2}[./]\d{4}|\d{8}:\d{4}$")


def looks_like_date(text: str) -> bool:
    """Return whether a cell begins like a date."""
    return _DATE.match(text.strip()) is not None


def time_column_of(names: Iterable[str]) -> str | None:
    """Return the column of times by a usual name, also with a time zone as in `MTU (UTC)`, or None."""
    names = list(names)
    by_name = {_STATED.sub("", name.lower()).strip(): name for name in reversed(names)}
    by_name |= {name.lower(): name for name in reversed(names)}
    return next((by_name[name] for name in _NAMES if name in by_name), None)


def whole_dates(frame: pd.DataFrame, name: str) -> pd.Series[str]:
    """Return the cells of a column of times, joined with another column if one has days and the other times of day."""
    cells = frame[name].str.strip()
    for mine, others in ((_DAY, _CLOCK), (_CLOCK, _DAY)):
        if not cells.str.fullmatch(mine).all():
            continue
        columns = (frame.iloc[:, at].str.strip() for at in range(frame.shape[1]))
        other = next((column for column in columns if column.str.fullmatch(others).all()), None)
        if other is not None:
            day, clock = (cells, other) if mine is _DAY else (other, cells)
            return (day + " " + clock.str.replace(r"^(\d):", r"0\1:", regex=True)).rename(name)
    return cells


def times_of(cells: pd.Series[str], file: SignalFile) -> tuple[npt.NDArray[np.float64], bool, list[str]]:
    """Return times in s, since 1970 if they are dates (True), and remarks; NaN for hours skipped by clocks.

    The time of a range is its begin. Dates without an offset are in the zone in the column's name, else in `file.tz`,
    else in the zone in the cells. Raises InputError with the row.
    """
    texts = cells.str.strip()
    numbers = pd.to_numeric(texts, errors="coerce").to_numpy(dtype=np.float64)
    if np.isfinite(numbers).all():
        first = float(numbers.min())
        if not first < LATEST_S or texts.str.fullmatch(_DIGITS).all():
            problem = f"its times begin at {first:.15g}, which is neither s of a run nor s since 1970"
            raise InputError(file.path, problem, "write 2024-07-01T13:00Z; divide milliseconds since 1970 by 1000")
        return numbers, first >= SINCE_1970_S, []
    notes: list[str] = []
    begins = texts.str.split(_RANGE, n=1).str[0] if _RANGE.search(texts.iloc[0]) else texts
    stamps, offset, marks = _labels(begins, texts, file)
    if not offset:
        zone = _zone_of(texts, file)
        stamps = _localized(stamps, marks, zone, notes)
        _refuse_other_zones(stamps, marks, zone, texts, file)
    passed = (stamps.dt.tz_convert("UTC") - pd.Timestamp(0, tz="UTC")) / pd.Timedelta(seconds=1)
    return np.asarray(passed, dtype=np.float64), True, notes


def lengths_of(cells: pd.Series[str], file: SignalFile) -> npt.NDArray[np.float64] | None:
    """Return the duration in s of each row by labels that are ranges; None for other labels. Raises InputError.

    The end may be a time of day only, as in `01.10.2025 00:00 - 00:15`.
    """
    texts = cells.str.strip()
    ranges = texts.str.split(_RANGE, n=1, expand=True)
    if ranges.shape[1] < 2 or ranges[1].isna().any():
        return None
    begins, ends = ranges[0], ranges[1]
    stamps, offset, marks = _labels(begins, texts, file)
    if ends.str.fullmatch(_CLOCK).all():
        parts = ends.str.extract(f"^{_CLOCK.pattern}$").fillna("0").astype(int)
        since = (stamps - stamps.dt.normalize()) / pd.Timedelta(seconds=1)
        lengths = (parts[0] * 3600 + parts[1] * 60 + parts[2] - since) % DAY_S
        lengths = lengths.where(lengths > 0.0, DAY_S)
    else:
        until, _, end_marks = _labels(ends, texts, file)
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
        place = f"{file.path}: row {int(texts.index[wrong[0]]) + 1}"
        raise InputError(place, f"{texts.name} {texts.iloc[wrong[0]][:60]!r} ends before it begins", "correct it")
    return np.asarray(lengths, dtype=np.float64)


def _labels(
    labels: pd.Series[str], texts: pd.Series[str], file: SignalFile
) -> tuple[pd.Series[pd.Timestamp], bool, pd.Series[str]]:
    """Return the dates of labels, True if they have an offset from UTC, and marks such as CEST. Raises InputError."""
    marks = pd.Series(None, index=texts.index, dtype=object)
    if labels.str.endswith(")").any():
        marks = labels.str.extract(_MARK, expand=False)
        # CET/CEST is ambiguous
        marks = marks.mask(marks.str.contains("/", na=False))
        labels = labels.str.replace(_MARK, "", regex=True)
    if _COMPACT.match(labels.iloc[0]):
        labels = labels.str.replace(_COMPACT, r"\1-\2-\3T\4:\5Z", regex=True)
    if _SLASHED.match(labels.iloc[0]):
        return _stamps_of_parts(labels, texts, file), False, marks
    return *_stamps(labels, texts, file), marks


def _zone_of(texts: pd.Series[str], file: SignalFile) -> str:
    """Return the time zone of dates without an offset. Raises InputError."""
    stated = _STATED.search(str(texts.name))
    if stated is not None and stated[1].lower() in _HEADER_ZONES:
        return _HEADER_ZONES[stated[1].lower()]
    if file.tz != "UTC":
        return file.tz
    other = _OTHER_ZONE.search(str(texts.name))
    if other is not None:
        problem = f"column {texts.name!r} is in {other[1]}"
        raise InputError(file.path, problem, "say which as in tz=Europe/Berlin, or tz=Etc/GMT-1 for UTC+1 all year")
    marked = texts.str.extract(_MARK, expand=False).dropna()
    names = marked.iloc[0].lower().split("/") if len(marked) else []
    return next((zone for label, zone in _HEADER_ZONES.items() if {*names} & {*label.split("/")}), file.tz)


def _refuse_other_zones(
    stamps: pd.Series[pd.Timestamp], marks: pd.Series[str], zone: str, texts: pd.Series[str], file: SignalFile
) -> None:
    """Raise InputError for the first row with a mark, as in `00:00 (CEST)`, that `zone` does not have at that time.

    The mark at the end of a range may be that of the other half of the year.
    """
    stated = marks.fillna(texts.str.extract(_MARK, expand=False))
    kinds = pd.DataFrame({"name": stated, "has": stamps.dt.strftime("%Z"), "own": marks.notna()})
    for row, name, has, own in kinds.dropna().drop_duplicates().itertuples():
        names = {*name.split("/")}
        if has not in names.union(*(family for family in _FAMILIES[: 1 if own else None] if family & names)):
            problem = f"{texts.name} {texts[row][:60]!r} is in {name}, but {zone} has {has} then"
            hint = "say its zone as in tz=Europe/Brussels, or write dates as 2024-07-01T13:00Z"
            raise InputError(f"{file.path}: row {row + 1}", problem, hint)


def _localized(
    stamps: pd.Series[pd.Timestamp], marks: pd.Series[str], zone: str, notes: list[str]
) -> pd.Series[pd.Timestamp]:
    """Return the dates with their zone. The first of two equal hours in autumn is summer time, unless marked."""
    rising = bool(stamps.iloc[0] <= stamps.iloc[-1])
    summer = ~stamps.duplicated(keep="first" if rising else "last").to_numpy()
    summer = np.where(marks.notna(), marks.isin(_SUMMER), summer)
    localized = stamps.dt.tz_localize(zone, ambiguous=summer, nonexistent="NaT")
    skipped = int(localized.isna().sum())
    if skipped:
        notes.append(f"{skipped} rows of hours that {zone} leaves out in spring ignored")
    return localized


def _stamps(begins: pd.Series[str], texts: pd.Series[str], file: SignalFile) -> tuple[pd.Series[pd.Timestamp], bool]:
    """Return the dates, and True if they have an offset from UTC. Raises InputError with the row."""
    offsets = begins.str.contains(_OFFSET, regex=True, case=False)
    if offsets.any() and not offsets.all():
        row = int(begins.index[int(np.flatnonzero(~offsets)[0])]) + 1
        raise InputError(f"{file.path}: row {row}", "has no offset from UTC while others have one", "write it alike")
    has_offset = bool(offsets.any())
    # pandas would take `now` as well
    like = begins.str.match(_YEAR)
    try:
        stamps = pd.to_datetime(begins.where(like), format="ISO8601", utc=has_offset, errors="coerce")
    except ValueError as error:
        raise InputError(file.path, f"{texts.name}: {error}", "write all dates alike") from None
    _refuse(stamps.isna() | ~like, texts, file)
    return stamps, has_offset


def _stamps_of_parts(begins: pd.Series[str], texts: pd.Series[str], file: SignalFile) -> pd.Series[pd.Timestamp]:
    """Return the dates of texts such as `20.03.2022 00:00` or `1/2/2022 0:15`. Raises InputError with the row."""
    parts = begins.str.extract(f"^{_PARTS.pattern}$")
    _refuse(parts[0].isna(), texts, file)
    filled = parts.fillna("0").astype(int)
    clock = filled[[2, 3, 4, 5]].set_axis(["year", "hour", "minute", "second"], axis=1)
    either: dict[Dates, pd.Series[pd.Timestamp]] = {
        "day-first": pd.to_datetime(clock.assign(month=filled[1], day=filled[0]), errors="coerce"),
        "month-first": pd.to_datetime(clock.assign(month=filled[0], day=filled[1]), errors="coerce"),
    }
    order = file.dates or _order(either, texts, file)
    _refuse(either[order].isna(), texts, file)
    return either[order]


def _order(either: dict[Dates, pd.Series[pd.Timestamp]], texts: pd.Series[str], file: SignalFile) -> Dates:
    """Return the order of day and month that makes dates of all texts. Raises InputError if both do, and differ."""
    if "." in texts.iloc[0] or str(texts.name).lower().startswith("mtu"):
        return "day-first"
    day, month = either["day-first"], either["month-first"]
    if day.isna().any() or month.isna().any() or (day == month).all():
        return "month-first" if day.isna().sum() > month.isna().sum() else "day-first"
    row = int(np.flatnonzero(day != month)[0])
    problem = f"{texts.iloc[row][:40]!r} is {day.iloc[row]:%-d %B} or {month.iloc[row]:%-d %B}"
    raise InputError(f"{file.path}: row {row + 1}", problem, "say dates=day-first or dates=month-first")


def _refuse(wrong: pd.Series[bool], texts: pd.Series[str], file: SignalFile) -> None:
    """Raise InputError for the first row that is not a date, if any."""
    rows = np.flatnonzero(wrong)
    if len(rows):
        place = f"{file.path}: row {int(texts.index[rows[0]]) + 1}"
        hint = "write 2024-07-01 13:00 or 2024-07-01T13:00Z"
        raise InputError(place, f"{texts.name} {texts.iloc[rows[0]][:40]!r} is not a date", hint)


def moment(text: str, dated: bool, file: SignalFile) -> float:
    """Parse a date to s since 1970, or a number of s of a file without dates. Raises InputError."""
    if dated:
        return date_s_of(text, file.path, file.clock)
    return number_named(file.path, "from and to, in s as the times of the file", text, "correct it")
