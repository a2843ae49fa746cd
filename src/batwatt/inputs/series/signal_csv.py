"""Reading signals by date (carbon intensity, prices, power) from the CSV files that people have."""

from __future__ import annotations

import io
import logging
import re
import warnings
from datetime import datetime
from functools import lru_cache
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pandas as pd

from batwatt.checks import number_named
from batwatt.errors import InputError, UnknownNameError
from batwatt.inputs.series.capacity import COLUMN
from batwatt.inputs.series.series_csv import MORE_FIELDS, TIME, row_too_long
from batwatt.inputs.series.signal_file import SignalFile
from batwatt.inputs.series.signal_gaps import Rows, filled
from batwatt.inputs.series.variation import FRACTION
from batwatt.inputs.workloads.batsim_json import read_text
from batwatt.model.series import Series
from batwatt.model.signal import Signal
from batwatt.units import DAY_S

SINCE_1970_S = 1e9
"""Times in s that begin above this are taken for those since 1970, not since a simulation began."""
_TIMES = (TIME, "datetime (utc)", "datetime", "time", "timestamp", "date")
_VALUES = (COLUMN, FRACTION, "carbon_intensity_avg", "carbon intensity", "carbon_intensity", "price", "power_w")
_ZONES = ("zone", "zone id", "zone_name", "host_id")
_KINDS = {"lifecycle": ("life cycle", "lca", "lifecycle"), "direct": ("direct",)}
_MISSING = {"", "na", "nan", "null", "none", "n/a", "-"}
_UNITS = {
    "price": re.compile(r"price|cost|tariff|\b(?:eur|usd|gbp|chf)\b|[€$£]", re.IGNORECASE),
    "carbon": re.compile(r"carbon|co2|co₂|emission|intensity|moer|/|(?:^|[ _])per[ _]", re.IGNORECASE),
    "power": re.compile(r"power|(?:^|[^a-z])[kmg]?wh?(?:[^a-z]|$)", re.IGNORECASE),
    "machines": re.compile(f"^(?:{COLUMN}|{FRACTION})$", re.IGNORECASE),
}
"""What a column is of, by the first of these that its name matches; what is per something else is no power."""
_log = logging.getLogger(__name__)


def read_signal(file: SignalFile) -> Signal:
    """The signal of a file, from 0 s. Raises InputError naming the row or the column.

    All dates become UTC. Rows are sorted by time; of two rows for the same time the later with a value counts.
    Values that are empty, and rows that are missing where dates are regular, are filled as `file.gaps` says. What is
    done about it is logged in one warning. A file is read once, as long as it does not change.
    """
    try:
        state = file.path.stat()
    except OSError:
        return _read(file, None)
    return _read(file, (state.st_mtime_ns, state.st_size))


@lru_cache(maxsize=16)
def _read(file: SignalFile, state: tuple[int, int] | None) -> Signal:
    times, dated, values, column, notes = _columns(file)
    kept = np.isfinite(times)
    times, values = times[kept], values[kept]
    # of like times those with a value come last, in the order of the file
    order = np.lexsort((np.isfinite(values), times))
    if len(order) and not (np.diff(times) >= 0.0).all():
        notes.append("rows sorted by time")
    times, values = times[order], values[order]
    last_of_time = np.append(np.diff(times) > 0.0, True)
    if not last_of_time.all():
        notes.append(f"{np.count_nonzero(~last_of_time)} rows of a time that comes again left out")
    if not np.isfinite(values).any():
        raise InputError(file.path, f"no value in column {column!r}", "choose another with column=")
    rows = Rows(times[last_of_time], values[last_of_time], dated)
    begin, end = _part(rows, file)
    bridged, remark = filled(rows, begin, end, file.gaps, file.max_gap_s, file.path)
    notes += [remark] if remark else []
    if notes:
        _log.warning("%s: %s", file.path, "; ".join(notes))
    return _cut(bridged, begin, end, column.strip(), file)


def read_rows(file: SignalFile, count: int) -> Rows:
    """At most `count` rows from the first one at or after `begin`, as the file has them.

    Neither sorted nor filled: values that are empty are NaN. Raises InputError.
    """
    times, dated, values, _, _ = _columns(file)
    first = 0
    if file.begin is not None:
        begin = moment(file.begin, dated, file)
        if not np.nanmin(times) <= begin <= np.nanmax(times):
            raise InputError(file.path, f"has no row of {file.begin}", "take another part")
        first = int(np.flatnonzero(times >= begin)[0])
    part = slice(first, first + count)
    return Rows(times[part], values[part], dated)


def _columns(file: SignalFile) -> tuple[npt.NDArray[np.float64], bool, npt.NDArray[np.float64], str, list[str]]:
    """Times, whether they are dates, values, the name of their column, and remarks, in the order of the file."""
    frame = _of_zone(table_of(file.path), file)
    time_column = _time_column(frame, file)
    column = _value_column(frame, file, time_column)
    _check_unit(column, file)
    times, dated, notes = times_of(frame[time_column], file)
    return times, dated, _values(frame[column], file.path), column, notes


def table_of(path: Path) -> pd.DataFrame:
    """All cells as texts, the header as it is; columns may be separated by commas, semicolons, tabs or blanks."""
    text = read_text(path)
    header = next((line for line in text.splitlines() if line.strip()), "")
    separator = next((sign for sign in ",;\t" if sign in header), r"\s+")
    try:
        with warnings.catch_warnings(record=True) as warned:
            warnings.simplefilter("always", pd.errors.ParserWarning)
            frame = pd.read_csv(io.StringIO(text), sep=separator, dtype=str, keep_default_na=False, index_col=False)
        if warned:
            # pandas drops what is beyond the header
            _no_more_fields(text, separator, path)
    except (pd.errors.ParserError, pd.errors.EmptyDataError, ValueError) as error:
        _no_more_fields(text, separator, path)
        problem = f"is not CSV ({str(error).strip()})"
        raise InputError(path, problem, "the first line must name the columns") from None
    if frame.empty:
        raise InputError(path, "has no rows below a header", "the first line must name the columns")
    frame.columns = pd.Index([str(name).strip() for name in frame.columns])
    return frame


def _no_more_fields(text: str, separator: str, path: Path) -> None:
    """InputError if a line has more fields than the header."""
    found = row_too_long(text, separator)
    if found is not None:
        raise InputError(f"{path}: line {found[0]}", found[1], MORE_FIELDS)


def _of_zone(frame: pd.DataFrame, file: SignalFile) -> pd.DataFrame:
    zones = next((name for name in frame.columns if name.lower() in _ZONES), None)
    if zones is None:
        if file.zone is not None:
            raise InputError(file.path, "no column of zones", "leave out zone=")
        return frame
    found = sorted(frame[zones].unique())
    if file.zone is None and len(found) > 1:
        listed = ", ".join(found[:10])
        raise InputError(file.path, f"has {len(found)} zones in column {zones!r}: {listed}", "choose one with zone=")
    if file.zone is not None and file.zone not in found:
        raise UnknownNameError(file.path, "zone", file.zone, found, "Correct zone=.")
    return frame if file.zone is None else frame[frame[zones] == file.zone]


def _time_column(frame: pd.DataFrame, file: SignalFile) -> str:
    if file.time_column is not None:
        return _named(frame, file.time_column, file)
    by_name = {name.lower(): name for name in reversed(frame.columns)}
    found = next((by_name[name] for name in _TIMES if name in by_name), None)
    if found is None:
        listed = ", ".join(name[:40] for name in frame.columns[:12])
        raise InputError(file.path, f"no column of times among: {listed}", "name it with time_column=")
    return found


def _value_column(frame: pd.DataFrame, file: SignalFile, time_column: str) -> str:
    """The column asked for; else one with a usual name; else the only one that holds numbers."""
    if file.column is not None:
        return _named(frame, file.column, file)
    names = [name for name in frame.columns if name != time_column]
    emitted = [name for name in names if re.match(r"carbon[ _]intensity", name, re.IGNORECASE)]
    of_kind = [name for name in emitted if any(word in name.lower() for word in _KINDS[file.kind])]
    usual = [name for known in _VALUES for name in names if name.lower() == known]
    numeric = [name for name in names if pd.to_numeric(frame[name], errors="coerce").notna().any()]
    for candidates in (usual[:1], of_kind, emitted, numeric):
        if len(candidates) == 1:
            return candidates[0]
    listed = ", ".join(name[:60] for name in names[:12])
    raise InputError(file.path, f"which column is meant, of: {listed}?", "name it with column=")


def _check_unit(column: str, file: SignalFile) -> None:
    """InputError if the name of a column says that it is something else than what is wanted."""
    found = next((kind for kind, known in _UNITS.items() if known.search(column)), None)
    if file.wanted is not None and found not in (None, file.wanted):
        problem = f"column {column!r} is of {found}, not of {file.wanted}"
        raise InputError(file.path, problem, f"name a column of {file.wanted}, or take another file")


def _named(frame: pd.DataFrame, name: str, file: SignalFile) -> str:
    if name not in frame.columns:
        raise UnknownNameError(file.path, "column", name, frame.columns, "The first line names the columns.")
    return name


def _values(cells: pd.Series[str], path: Path) -> npt.NDArray[np.float64]:
    """The numbers of a column, NaN where a cell is empty. Raises InputError."""
    texts = cells.str.strip()
    numbers = pd.to_numeric(texts, errors="coerce").to_numpy(dtype=np.float64)
    wrong = np.flatnonzero(~np.isfinite(numbers) & ~texts.str.lower().isin(_MISSING).to_numpy())
    if len(wrong):
        place = f"{path}: row {int(cells.index[wrong[0]]) + 1}"
        shown = texts.iloc[wrong[0]][:40]
        raise InputError(place, f"{cells.name} {shown!r} is not a finite number", "correct it or leave it empty")
    return numbers


def times_of(cells: pd.Series[str], file: SignalFile) -> tuple[npt.NDArray[np.float64], bool, list[str]]:
    """Times in s, of the epoch if they are dates (True), and remarks; NaN for hours that no clock has shown."""
    texts = cells.str.strip()
    numbers = pd.to_numeric(texts, errors="coerce").to_numpy(dtype=np.float64)
    if np.isfinite(numbers).all():
        return numbers, False, []
    stamps, offset = _stamps(texts, file)
    notes: list[str] = []
    if not offset:
        # of an hour that comes twice in autumn, the first is still summer time
        first = ~stamps.duplicated().to_numpy()
        stamps = stamps.dt.tz_localize(file.tz, ambiguous=first, nonexistent="NaT")
        skipped = int(stamps.isna().sum())
        if skipped:
            notes.append(f"{skipped} rows of hours that {file.tz} leaves out in spring ignored")
    passed = (stamps.dt.tz_convert("UTC") - pd.Timestamp(0, tz="UTC")) / pd.Timedelta(seconds=1)
    return np.asarray(passed, dtype=np.float64), True, notes


def _stamps(texts: pd.Series[str], file: SignalFile) -> tuple[pd.Series[pd.Timestamp], bool]:
    """The dates, and whether they have an offset from UTC. Raises InputError naming the row."""
    offsets = texts.str.contains(r"(?:Z|UTC|[+-]\d\d:?\d\d)$", regex=True, case=False)
    if offsets.any() and not offsets.all():
        row = int(texts.index[int(np.flatnonzero(~offsets)[0])]) + 1
        raise InputError(f"{file.path}: row {row}", "has no offset from UTC while others have one", "write it alike")
    given = bool(offsets.any())
    stamps = pd.to_datetime(texts, format="ISO8601", utc=given, errors="coerce")
    # pandas would take `now` as well
    wrong = np.flatnonzero(stamps.isna() | ~texts.str.match(r"\d{4}"))
    if len(wrong):
        place = f"{file.path}: row {int(texts.index[wrong[0]]) + 1}"
        hint = "write 2024-07-01 13:00 or 2024-07-01T13:00Z"
        raise InputError(place, f"{texts.name} {texts.iloc[wrong[0]][:40]!r} is not a date", hint)
    return stamps, given


def _part(rows: Rows, file: SignalFile) -> tuple[float, float]:
    """Where the wanted part begins and ends, in the times of the rows. Raises InputError."""
    first, last = float(rows.times_s[0]), float(rows.times_s[-1]) + rows.step_s
    begin = first if rows.dated else 0.0
    if file.begin is not None:
        begin = moment(file.begin, rows.dated, file)
    elif first - begin >= SINCE_1970_S:
        problem = f"its times begin at {first:.10g} s, far from 0 s of the run"
        raise InputError(file.path, problem, f"say where the run begins, as in from={first:.10g}")
    if not rows.dated:
        # the first value holds before its row
        first = min(first, 0.0)
    end = last if file.end is None else moment(file.end, rows.dated, file)
    if file.days is not None:
        end = begin + file.days * DAY_S
    # a step of a clock that is not kept to the second is no reason to fail
    if not first <= begin < end <= last + 1.0:
        wanted, there = (f"{rows.shown(a)} to {rows.shown(b)}" for a, b in ((begin, end), (first, last)))
        raise InputError(file.path, f"{wanted} is asked for, the rows go from {there}", "take another part")
    return begin, end


def moment(text: str, dated: bool, file: SignalFile) -> float:
    """A date in s since 1970, or a number of s of a file without dates. Raises InputError."""
    if not dated:
        return number_named(file.path, "from and to, in s as the times of the file", text, "correct it")
    try:
        # pandas would take `now` as well
        stamp = pd.Timestamp(datetime.fromisoformat(text))
        local = stamp.tz_localize(file.tz, ambiguous=True) if stamp.tzinfo is None else stamp
        return float(local.timestamp())
    except (ValueError, TypeError, OverflowError):
        raise InputError(file.path, f"{text!r} is not a date", "write 2024-07-01 or 2024-07-01T13:00Z") from None


def _cut(rows: Rows, begin: float, end: float, name: str, file: SignalFile) -> Signal:
    """The rows of [begin, end[, with times from 0 s; the first value holds from there, wherever its row is."""
    first = max(int(np.searchsorted(rows.times_s, begin, side="right")) - 1, 0)
    until = int(np.searchsorted(rows.times_s, end, side="left"))
    times = rows.times_s[first:until] - begin
    times[0] = 0.0
    series = Series(tuple(times.tolist()), tuple(rows.values[first:until].tolist()), name=name, source=str(file.path))
    signal = Signal(series, end - begin, rows.shown(begin) if rows.dated else "")
    return signal if file.period_s is None else signal.averaged(file.period_s)
