"""Reader of one column of a file of signals: its unit, its rows by time, and the filling of its gaps."""

from __future__ import annotations

import logging
import re
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pandas as pd

from batwatt.errors import InputError, UnknownNameError, collect
from batwatt.inputs.source import Gaps, SignalFile
from batwatt.inputs.stamps import ends_of, lengths_of, looks_like_date, moment, time_column_of, times_of, whole_dates
from batwatt.inputs.table import read_table
from batwatt.model.signal import (
    EXAMPLES,
    POWER_W,
    UNIT_OF,
    UNSTATED,
    Unit,
    declared_unit,
    kind_in,
    unit_in,
    unknown_unit,
)
from batwatt.model.timeline import FRACTION, LARGEST, MACHINES, MAX_ROWS, Timeline
from batwatt.units import DAY_S, HOUR_S, date_text

MAX_GAP_S = 6 * HOUR_S
"""Longest gap in s that is interpolated."""
STEADY = 3
"""Number of successive equal distances of rows that are a step of the file, not gaps."""
SAME_STEP = 0.125
"""Greatest relative difference of equal distances of rows: months, days of 23 hours, clocks that jitter."""

_Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class SignalRows:
    """Values by time in s, strictly increasing, NaN where one is missing; `dated`: times are s since 1970.

    `stated_s` is the duration of each row in s, if the file states it.
    """

    times_s: _Floats
    values: _Floats
    dated: bool
    stated_s: _Floats | None = None

    @cached_property
    def step_s(self) -> float:
        """The most common distance of two rows in s; an hour for one row."""
        if len(self.times_s) < 2:
            return HOUR_S
        lengths, counts = np.unique(np.round(np.diff(self.times_s), 3), return_counts=True)
        return float(lengths[np.argmax(counts)])

    @cached_property
    def lengths_s(self) -> _Floats:
        """Duration of each row in s: as stated, else the step of its neighbourhood.

        A distance of two rows is a step if it is the most common one, or equal `STEADY` times in succession, or equal
        to that of such neighbours. Any other distance is a step as long as the one before, and a gap.
        """
        if self.stated_s is not None:
            return self.stated_s
        if len(self.times_s) < 2:
            return np.full(len(self.times_s), HOUR_S)
        distances = np.round(np.diff(self.times_s), 3)
        alike = np.abs(np.diff(distances)) <= SAME_STEP * np.minimum(distances[1:], distances[:-1])
        run = np.concatenate([(0,), np.cumsum(~alike)])
        steady = np.bincount(run)[run] >= STEADY
        steady |= np.abs(distances - self.step_s) <= SAME_STEP * self.step_s
        for at_next in (True, False):
            places = np.flatnonzero(steady)
            at = np.searchsorted(places, np.arange(len(distances)), side="left" if at_next else "right") - (not at_next)
            near = distances[places[np.clip(at, 0, len(places) - 1)]]
            steady |= np.abs(distances - near) <= SAME_STEP * near
        return np.append(np.where(steady, distances, near), near[-1])

    @property
    def end_s(self) -> float:
        """End of the last row in s."""
        return float(self.times_s[-1] + self.lengths_s[-1])

    def text_of(self, time_s: float) -> str:
        """Return a time as text, a date if rows are dated."""
        if not self.dated:
            return f"{time_s:g} s"
        return date_text(time_s)


def lengths_before(times_s: _Floats, path: Path) -> _Floats:
    """Return the duration in s of the row that ends at each time, NaN at NaN. Raises InputError for one time only.

    Rows without a usual distance have no gaps: each begins at the end before.
    """
    ends = np.unique(times_s[np.isfinite(times_s)])
    if len(ends) < 2:
        raise InputError(path, "has one row, which is the end of an unknown time", "add rows, or say stamp=begin")
    # the row before an end is the row after it, seen from the other side
    rows = SignalRows(-ends[::-1], ends, dated=True)
    lengths = rows.lengths_s[::-1]
    if not _is_regular(rows):
        lengths = np.append(lengths[0], np.diff(ends))
    return np.append(lengths, np.nan)[np.searchsorted(ends, times_s)]


def filled(rows: SignalRows, begin: float, end: float, gaps: Gaps, path: Path) -> tuple[SignalRows, list[str]]:
    """Fill missing values; return the rows, and remarks on values missing in [begin, end[. Raises InputError.

    With `hold` the value before a gap holds, and before the first value that one. With `line` a gap, the time from the
    value before to the value after it, is a straight line up to `MAX_GAP_S`; in a longer one, and in time without a row
    (`Rows.lengths_s`), each value is that of the same time of day on the day before (itself filled in gaps of more than
    a day), without such a day the value before the gap.
    """
    due = _due(rows)
    if gaps == "hold" and not _is_regular(rows):
        due = np.zeros_like(due)
    remarks = _remarks(rows, due, begin, end, gaps)
    whole = _with_missing_rows(rows, due, path) if gaps == "line" else rows
    missing = np.isnan(whole.values)
    present = np.flatnonzero(~missing)
    at = np.arange(len(whole.values))
    before = present[np.maximum(np.searchsorted(present, at, side="right") - 1, 0)]
    values = whole.values[before]
    if gaps == "line":
        after = present[np.minimum(np.searchsorted(present, at), len(present) - 1)]
        short = missing & (whole.times_s[after] - whole.times_s[before] <= MAX_GAP_S)
        values[short] = np.interp(whole.times_s[short], whole.times_s[present], whole.values[present])
        _from_the_day_before(values, whole.times_s, np.flatnonzero(missing & ~short))
    return SignalRows(whole.times_s, values, rows.dated), remarks


def _due(rows: SignalRows) -> npt.NDArray[np.int_]:
    """Return the number of rows that are missing after each row but the last."""
    # a label such as 00:00 - 00:59 is complete
    ratios = np.diff(rows.times_s) / rows.lengths_s[:-1]
    whole = np.round(ratios) if rows.stated_s is None else np.ceil(ratios - SAME_STEP)
    return np.maximum(whole - 1, 0).astype(int)


def _is_regular(rows: SignalRows) -> bool:
    """Return whether a file by date has, or states, a step: one that lists changes has no missing rows."""
    same = np.abs(np.diff(rows.times_s) - rows.step_s) <= SAME_STEP * rows.step_s
    return rows.stated_s is not None or (rows.dated and 2 * int(np.count_nonzero(same)) > len(same))


def _with_missing_rows(rows: SignalRows, due: npt.NDArray[np.int_], path: Path) -> SignalRows:
    """Return the rows with an empty row for each of those that are `due`. Raises InputError."""
    steps = rows.lengths_s[:-1]
    if not due.sum() <= MAX_ROWS:
        at = int(np.argmax(due))
        gap = " to ".join(rows.text_of(time_s) for time_s in rows.times_s[at : at + 2])
        problem = f"{due.sum():g} rows are missing at a step of {steps[at]:g} s, at most {MAX_ROWS} can be filled"
        raise InputError(path, f"{problem} (largest gap: {gap})", "correct the dates")
    ordinal = np.arange(due.sum()) - np.repeat(np.cumsum(due) - due, due) + 1
    added = np.repeat(rows.times_s[:-1], due) + ordinal * np.repeat(steps, due)
    places = np.repeat(np.arange(1, len(rows.times_s)), due)
    times = np.insert(rows.times_s, places, added)
    return SignalRows(times, np.insert(rows.values, places, np.nan), rows.dated)


def _from_the_day_before(values: _Floats, times_s: _Floats, at: npt.NDArray[np.intp]) -> None:
    """Set these places, in order, to the value of a day before."""
    sources = np.searchsorted(times_s, times_s[at] - DAY_S, side="right") - 1
    for place, source in zip(at.tolist(), sources.tolist(), strict=True):
        if source >= 0:
            values[place] = values[source]


def _remarks(rows: SignalRows, due: npt.NDArray[np.int_], begin: float, end: float, gaps: Gaps) -> list[str]:
    """Return a remark on the number of missing values and of gaps in [begin, end[, and on the longest one, if any."""
    present = np.flatnonzero(np.isfinite(rows.values))
    # a gap is before the first value, between two, and after the last
    before, after = np.append(-1, present), np.append(present, len(rows.values))
    passed = np.concatenate([(0,), np.cumsum(due)])
    counts = after - before - 1 + passed[np.minimum(after, len(due))] - passed[np.maximum(before, 0)]
    ends_s = rows.times_s + rows.lengths_s
    starts = np.where(before < 0, rows.times_s[0], ends_s[before])
    stops = np.append(rows.times_s, rows.end_s)[after]
    inside = np.flatnonzero((counts > 0) & (stops > begin) & (starts < end))
    if not len(inside):
        return []
    first = inside[np.argmax((stops - starts)[inside])]
    longest = f"{rows.text_of(float(starts[first]))} to {rows.text_of(float(stops[first]))}"
    count = f"{len(inside)} gap{'s' if len(inside) > 1 else ''}"
    how = "the value before holds"
    if gaps == "line":
        how = f"a straight line up to {MAX_GAP_S / HOUR_S:g} h, longer ones as the day before"
    return [f"{counts[inside].sum()} values missing in {count} (longest: {longest}): {how}"]


__all__ = ["largest_in", "moment", "read_signal", "read_table", "times_of"]

_VALUES = (
    MACHINES, FRACTION, "carbon_intensity_avg", "carbon intensity", "carbon_intensity", "carbonintensity",
    "intensity.actual", "intensity.forecast", "price", POWER_W,
)  # fmt: skip
_ZONES = ("zone", "zone id", "zone_name", "area", "host_id")
_SEQUENCES = ("sequence",)
_RESOLUTIONS = ("resolution", "resolutioncode", "resolution code", "period")
_DURATION = re.compile(r"PT(\d{1,4})([MHS])|P(1)(D)")
_DURATION_S = {"S": 1.0, "M": 60.0, "H": HOUR_S, "D": DAY_S}
_PLAIN_NAMES = ("value", "price", "power")
"""Names of columns to which the unit of a whole file applies."""
_EMISSIONS = {"lifecycle": ("life cycle", "lca", "lifecycle"), "direct": ("direct",)}
_IN_GRAMS = re.compile(r"carbon[ _]?intensity|intensity\.|intensity_(?:actual|forecast)$", re.IGNORECASE)
"""Columns of Electricity Maps and of the British API, which are in g/kWh without a stated unit."""
_MISSING = {"", "na", "nan", "null", "none", "n/a", "n/e", "-"}
_log = logging.getLogger(__name__)


def read_signal(file: SignalFile) -> Timeline:
    """Read the signal of a file, from 0 s; in W, g/kWh or money per kWh if `file.wanted` or `file.unit` is not None.

    All dates become UTC. Rows are sorted by time; of two rows of one time the later with a value counts. The duration
    of a row is stated by the file (a label that is a range, a resolution), or the step of its neighbourhood. Empty
    values, and missing rows of regular dates, are filled by `file.gaps`, with one warning. A cache has the last files
    until they change. Raises InputError with the row or the column.
    """
    try:
        state = file.path.stat()
    except (OSError, ValueError):
        return _read(file, None)[0]
    signal, remarks = _read(file, (state.st_mtime_ns, state.st_size))
    if remarks:
        collect(remarks)
    return signal


@lru_cache(maxsize=16)
def _read(file: SignalFile, state: tuple[int, int] | None) -> tuple[Timeline, str]:
    columns, name, unit, notes = _columns(file)
    times, values = columns.times_s, columns.values
    # rows of one time with a value come last, in the order of the file
    order = np.lexsort((np.isfinite(values), times))
    order = order[np.isfinite(times[order])]
    if len(order) and not (np.diff(times[np.isfinite(times)]) >= 0.0).all():
        notes.append("rows sorted by time")
    times, values = times[order], values[order]
    last_of_time = np.append(np.diff(times) > 0.0, True)
    if 0 < 2 * np.count_nonzero(last_of_time) <= len(times):
        problem = f"{len(times)} rows have {np.count_nonzero(last_of_time)} times"
        hint = "keep the rows of one series; write date and time of day into one column, and name it time"
        raise InputError(file.path, problem, hint)
    if not last_of_time.all():
        notes.append(f"{np.count_nonzero(~last_of_time)} rows of a time that comes again left out")
    rows = SignalRows(times[last_of_time], values[last_of_time], columns.dated)
    if columns.stated_s is not None:
        stated = columns.stated_s[order]
        _refuse_overlaps(SignalRows(times, values, columns.dated, stated), file)
        rows = replace(rows, stated_s=np.minimum(stated[last_of_time], np.append(np.diff(rows.times_s), np.inf)))
    begin, end = _part(rows, file)
    if file.gaps == "line":
        _refuse_line(name, unit, file)
    bridged, remarks = filled(rows, begin, end, file.gaps, file.path)
    notes += remarks
    remark = f"{file.path}: {'; '.join(notes)}" if notes else ""
    if remark:
        _log.warning("%s", remark)
    return _cut(bridged, begin, end, name, unit, file), remark


def _refuse_line(name: str, unit: str, file: SignalFile) -> None:
    """Raise InputError unless a column is of carbon or price: nothing promises power or machines between two rows."""
    stated = declared_unit(unit)
    kind = (kind_in(name) if stated is None else stated.kind) or file.wanted
    if kind not in ("carbon", "price", None):
        problem = f"gaps=line is for carbon and price, not for {'an unknown unit' if kind == 'any' else kind}"
        raise InputError(file.path, problem, "leave it out: each value holds until the next")


def _refuse_overlaps(rows: SignalRows, file: SignalFile) -> None:
    """Raise InputError if the stated duration of a row with a value exceeds the begin of the next one.

    A label in local time may be an hour too long at a change of clocks.
    """
    valued = np.isfinite(rows.values)
    times, lengths = rows.times_s[valued], rows.lengths_s[valued]
    distances = np.diff(times)
    beyond = lengths[:-1] - distances
    over = (beyond > SAME_STEP * lengths[:-1]) & (np.abs(beyond - HOUR_S) > 1.0) & (distances > 0.0)
    over |= (distances == 0.0) & (np.diff(lengths) != 0.0)
    if over.any():
        at = int(np.flatnonzero(over)[0])
        problem = f"rows of {lengths[at]:g} s and {lengths[at + 1]:g} s overlap at {rows.text_of(float(times[at + 1]))}"
        raise InputError(file.path, problem, "choose one series, as with resolution=PT15M or PT60M")


def largest_in(file: SignalFile) -> float:
    """Return the greatest value in the column of a file, whatever its requested part. Raises InputError."""
    return float(np.nanmax(_columns(file)[0].values))


def _columns(file: SignalFile) -> tuple[SignalRows, str, str, list[str]]:
    """Return the rows in the order of the file, name and unit after conversion, and remarks. Raises InputError."""
    frame = _selected_rows(read_table(file.path), file)
    time_column = _time_column(frame, file)
    column = _value_column(frame, file, time_column)
    _check_kind(frame, column, file)
    times, dated, end, notes = times_of(*whole_dates(frame, time_column, file), file)
    values = _values(frame[column], file.path)
    if file.column is None:
        values = _with_forecasts(values, frame, column, file, notes)
    late = np.flatnonzero(np.abs(times) > LARGEST)
    if len(late):
        problem = f"{time_column} {times[late[0]]:g} s is larger than {LARGEST:g}, the bound of times in s"
        raise InputError(f"{file.path}: row {late[0] + 1}", problem, "correct it")
    if not np.isfinite(values[np.isfinite(times)]).any():
        raise InputError(file.path, f"no value in column {column!r}", "choose another with column=")
    values, name, unit = _converted(values, frame, column, file, notes)
    stated_s = _stated(frame, time_column, times, end, file) if dated else None
    if end:
        stated_s = lengths_before(times, file.path) if stated_s is None else stated_s
        times = times - stated_s
    return SignalRows(times, values, dated, stated_s), name, unit, notes


def _with_forecasts(values: _Floats, frame: pd.DataFrame, column: str, file: SignalFile, notes: list[str]) -> _Floats:
    """Return actual values, with the forecast in rows that have none: answers that reach into the future."""
    forecast = column.lower().replace("actual", "forecast")
    names = [name for name in frame.columns if name.lower() == forecast and name != column]
    if len(names) != 1:
        return values
    forecasts = _values(frame[names[0]], file.path)
    lacking = np.isnan(values) & np.isfinite(forecasts)
    if lacking.any():
        notes.append(f"{np.count_nonzero(lacking)} rows without a value in {column!r} have that of {names[0]!r}")
    return np.where(lacking, forecasts, values)


def _stated(frame: pd.DataFrame, time_column: str, times: _Floats, end: bool, file: SignalFile) -> _Floats | None:
    """Return the duration of each row in s, by a column of resolutions or of ends, or by labels of ranges, or None."""
    name = next((name for name in frame.columns if name.lower() in _RESOLUTIONS), None)
    if name is not None:
        lengths = [_duration_s(text) for text in frame[_named(frame, name, file)]]
        if all(lengths):
            return np.array(lengths, dtype=np.float64)
    name = next(iter(ends_of(frame, time_column)), None)
    if end or name is None:
        return lengths_of(frame[time_column], file)
    try:
        passed = times_of(*whole_dates(frame, name, replace(file, stamp="begin")), file)[0] - times
    except InputError:
        # not the column of ends
        return None
    positive = passed > 0.0
    usual = np.median(passed[positive]) if positive.any() else np.inf
    if usual > 1.5 * SignalRows(np.unique(times[np.isfinite(times)]), times, dated=True).step_s:
        return None
    # across a change of clocks ends do not tell
    return np.where(positive, passed, usual)


def _duration_s(text: str) -> float | None:
    """Return the length in s of a resolution such as PT15M, or None."""
    match = _DURATION.fullmatch(text)
    return None if match is None else int(match[1] or match[3]) * _DURATION_S[match[2] or match[4]] or None


def _selected_rows(frame: pd.DataFrame, file: SignalFile) -> pd.DataFrame:
    """Return the rows of the requested zone, sequence (of auctions) and resolution. Raises InputError."""
    choices = (("zone", _ZONES, file.zone), ("sequence", _SEQUENCES, file.sequence))
    for key, names, choice in (*choices, ("resolution", _RESOLUTIONS, file.resolution)):
        name = next((name for name in frame.columns if name.lower() in names), None)
        if name is None:
            if choice is not None:
                raise InputError(file.path, f"no column of {key}s", f"leave out {key}=")
            continue
        values = sorted(frame[_named(frame, name, file)].unique())
        # a file may have hours first, then quarter hours
        if choice is None and len(values) > 1 and key != "resolution":
            listed = ", ".join(values[:10])
            problem = f"has {len(values)} {key}s in column {name!r}: {listed}"
            raise InputError(file.path, problem, f"choose one with {key}=")
        # ENTSO-E writes BZN|BE, and Sequence Sequence 1
        meant = [value for value in values if choice in (value, re.split(r"\|| ", value)[-1])]
        if choice is not None and len(meant) != 1:
            raise UnknownNameError(file.path, key, choice, values, f"Correct {key}=.")
        frame = frame if choice is None else frame[frame[name] == meant[0]]
    return frame


def _time_column(frame: pd.DataFrame, file: SignalFile) -> str:
    """Return the requested column, else one with a usual name, else the only one with dates. Raises InputError."""
    if file.time_column is not None:
        return _named(frame, file.time_column, file)
    column = time_column_of(frame)
    if column is None:
        dates = [name for name, cell in zip(frame.columns, frame.iloc[0], strict=True) if looks_like_date(str(cell))]
        column = dates[0] if len(dates) == 1 else None
    if column is None:
        listed = ", ".join(name[:40] for name in frame.columns[:12])
        raise InputError(file.path, f"no column of times among: {listed}", "name it with time_column=")
    return _named(frame, column, file)


def _value_column(frame: pd.DataFrame, file: SignalFile, time_column: str) -> str:
    """Return the requested column, else one of the wanted kind by a usual name, or the only numeric one."""
    if file.column is not None:
        return _named(frame, file.column, file)
    times = [time_column, *ends_of(frame, time_column)]
    names = [name for name in frame.columns if name not in times]
    # columns of equal names count several times, and are refused below
    columns = zip(frame.columns, (frame.iloc[:, at] for at in range(frame.shape[1])), strict=True)
    numeric = [name for name, cells in columns if name not in times and _has_number(cells)]
    forecasts = {name.lower().replace("actual", "forecast") for name in numeric if "actual" in name.lower()}
    numeric = [name for name in numeric if name.lower() not in forecasts]
    if file.wanted is not None and len(numeric) > 1:
        names = numeric = _of_wanted_kind({name: _kind(frame, name) for name in numeric}, file)
    emitted = [name for name in names if re.match(r"carbon[ _]?intensity", name, re.IGNORECASE)]
    of_kind = [name for name in emitted if any(word in name.lower() for word in _EMISSIONS[file.kind])]
    usual = [name for usual_name in _VALUES for name in names if name.lower() == usual_name]
    usual = [name for name in usual if name in numeric] or usual
    for candidates in (usual[:1], of_kind, emitted, numeric):
        if len(candidates) == 1:
            return _named(frame, candidates[0], file)
    hours = [name for name in numeric if re.search(r"\d\d?(?::00)?$", name)]
    if len(hours) >= 23:
        problem = f"has its hours in columns, from {hours[0]!r} to {hours[-1]!r}"
        raise InputError(file.path, problem, "write a row for each hour (pandas.melt)")
    listed = ", ".join(name[:60] for name in (numeric or names)[:12])
    raise InputError(file.path, f"which column is meant, of: {listed}?", "name it with column=")


def _has_number(cells: pd.Series[str]) -> bool:
    return bool(pd.to_numeric(cells.str.replace(",", "", regex=False), errors="coerce").notna().any())


def _of_wanted_kind(kinds: dict[str, str | None], file: SignalFile) -> list[str]:
    """Return the columns of the wanted kind, else one of another kind, to be refused, else those of unknown kinds."""
    unknown = [name for name, kind in kinds.items() if kind is None]
    others = [name for name, kind in kinds.items() if kind in UNIT_OF]
    if file.wanted == "any":
        return [name for name in kinds if name in others or name.lower() in _VALUES] or list(kinds)
    candidates = [name for name, kind in kinds.items() if _is_wanted(kind, file)] or others[:1] or unknown
    if not candidates:
        listed = ", ".join(f"{name[:40]} ({kind})" for name, kind in list(kinds.items())[:8])
        problem = f"no column of {file.wanted} among: {listed}"
        raise InputError(file.path, problem, "take another file, or name a column and its unit=")
    return candidates


def _named(frame: pd.DataFrame, name: str, file: SignalFile) -> str:
    """Return the column of a name, with any number of blanks, or within objects of JSON. Raises InputError."""
    if name not in frame.columns:
        plain = " ".join(name.split())
        inner = [column for column in frame.columns if column.endswith(f".{name}") or " ".join(column.split()) == plain]
        if len(inner) != 1:
            raise UnknownNameError(file.path, "column", name, frame.columns, "The first line names the columns.")
        name = inner[0]
    count = list(frame.columns).count(name)
    if count > 1:
        raise InputError(file.path, f"{count} columns are called {name!r}", "rename all but one in the first line")
    return name


def _unit(frame: pd.DataFrame, column: str) -> Unit | None:
    """Return the unit that the file states for a column, in its name, or for the whole table, or None."""
    unit = unit_in(frame.attrs.get("units", {}).get(column, "")) or unit_in(column)
    return unit or unit_in(_stated_unit(frame, column))


def _stated_unit(frame: pd.DataFrame, column: str) -> str:
    """Return the unit of a whole table for a column of its kind or with a plain name, such as `value`; else empty.

    The unit is in JSON outside of the table, in a column `unit`, or in a column `Currency` of exports of ENTSO-E.
    """
    names = [name.lower() for name in frame.columns]
    texts = [frame.attrs.get("unit", "")] + [_only_text(frame, names, name) for name in ("unit", "units")]
    currency = _only_text(frame, names, "currency")
    if currency and (names[0].startswith("mtu") or re.match("day-ahead price|.*currency/mwh", column.lower())):
        texts.append(f"{currency}/MWh")
    text = next(filter(None, texts), "")
    unit, kind = unit_in(text), kind_in(column)
    plain = column.lower() in _PLAIN_NAMES or not any(name in _PLAIN_NAMES for name in names)
    return text if unit is not None and kind in (unit.kind, None if plain else unit.kind) else ""


def _only_text(frame: pd.DataFrame, names: list[str], name: str) -> str:
    """Return the only text in a column, apart from empty cells; empty for none or several."""
    texts = {text.strip() for text in frame.iloc[:, names.index(name)]} - {""} if name in names else set()
    return texts.pop() if len(texts) == 1 else ""


def _kind(frame: pd.DataFrame, column: str) -> str | None:
    unit = _unit(frame, column)
    # an unknown unit has no kind here
    return (frame.attrs.get("units", {}).get(column) or kind_in(column)) if unit is None else unit.kind


def _is_wanted(kind: str | None, file: SignalFile) -> bool:
    return file.wanted == "any" or kind == file.wanted or (kind == "a fraction" and file.wanted == "power")


def _check_kind(frame: pd.DataFrame, column: str, file: SignalFile) -> None:
    """Raise InputError if the kind of a column, by its name, its unit or the declared unit, is not the wanted one."""
    declared = _declared(file)
    kinds = [_kind(frame, column)]
    if declared is not None or (file.wanted == "power" and file.ratios and re.search("power|load", column.lower())):
        # a share may be one of a peak
        kinds = [kind for kind in kinds if kind != "a share"]
    if declared is not None:
        kinds.append(declared.kind)
    for actual in kinds:
        if file.wanted is not None and actual is not None and not _is_wanted(actual, file):
            problem = f"column {column!r} is of {actual}, not of {file.wanted}"
            hint = f"name a column of {file.wanted}, or take another file"
            if actual == "energy" and file.wanted == "power":
                hint = "divide it by the hours of a row, and name it in kW"
            if actual == "a share" and file.wanted == "power":
                hint = "write unit=%, and peak_w= for what 100 % stands for"
            raise InputError(file.path, problem, hint)
    stated = _unit(frame, column)
    if declared is not None and stated is not None and declared.contradicts(stated):
        problem = f"column {column!r} is in {stated.text} by the file, but in {declared.text} by unit="
        raise InputError(file.path, problem, "leave out unit=, or rename the column if its unit is wrong")


def _declared(file: SignalFile) -> Unit | None:
    unit = None if file.unit is None else declared_unit(file.unit)
    if file.unit is not None and unit is None:
        problem = f"unit {file.unit[:40]!r} is not known"
        raise InputError(file.path, problem, "write for instance unit=kW, unit=g/kWh, unit=EUR/MWh or unit=fraction")
    return unit


def _converted(
    values: _Floats, frame: pd.DataFrame, column: str, file: SignalFile, notes: list[str]
) -> tuple[_Floats, str, str]:
    """Return the values in W, g/kWh or money per kWh, with name and unit; unchanged without a wanted kind or unit."""
    declared = _declared(file)
    if file.wanted is None and declared is None:
        return values, column, ""
    unit = declared or _unit(frame, column)
    most = float(np.nanmax(values, initial=0.0))
    unknown = None if unit else unknown_unit(column) or unknown_unit(frame.attrs.get("unit", ""))
    if unit is None and unknown is None and file.wanted == "power" and file.ratios and not most > 1.0:
        notes.append(f"column {column!r} states no unit and reaches 1 at most: taken as fractions of a peak")
        unit = Unit("", "a fraction", 1.0, FRACTION)
    if unit is None and unknown is None and _IN_GRAMS.match(column) and not frame.attrs.get("unit"):
        unit = Unit("g/kWh", "carbon", 1.0, "g/kWh")
    if unit is None and file.wanted in UNIT_OF and not file.ratios:
        hint = f"write unit={EXAMPLES[file.wanted]}, or the unit into the name of the column"
        if file.wanted == "power" and not most > 1.0:
            hint = f"write unit={EXAMPLES['power']}, unit=fraction, or peak_w= for what 1 stands for"
        problem = f"column {column!r} (values to {most:g}) states no unit"
        if unknown is not None:
            problem = f"unit {unknown!r} of column {column!r} is not known"
        raise InputError(file.path, problem, hint)
    if file.wanted == "power":
        values = _at_night(values, file, notes)
    if unit is None:
        return values, column, UNSTATED
    name = column if unit.factor == 1.0 and unit.name != FRACTION else unit.name
    large = np.flatnonzero(np.abs(values) > LARGEST / unit.factor)
    if len(large):
        problem = f"{column} {values[large[0]]:g} is more than {LARGEST:g} {unit.converted}"
        raise InputError(f"{file.path}: row {int(frame.index[large[0]]) + 1}", problem, "correct the value")
    return values if unit.factor == 1.0 else values * unit.factor, name, unit.converted


def _at_night(values: _Floats, file: SignalFile, notes: list[str]) -> _Floats:
    """Return the values with 0 for negative ones, which are the own consumption of an inverter at night."""
    below = values < 0.0
    if not below.any():
        return values
    least, most = np.nanmin(values), np.nanmax(values)
    if not -least <= most:
        problem = f"power is in [{least:g}, {most:g}], more below 0 than above"
        raise InputError(file.path, problem, "give what is produced, as positive numbers")
    notes.append(f"{np.count_nonzero(below)} values below 0 (to {least:g}) taken as 0")
    return np.where(below, 0.0, values)


def _values(cells: pd.Series[str], path: Path) -> _Floats:
    """Return the numbers of a column, NaN for empty cells. Raises InputError."""
    texts = cells.str.strip()
    numbers = pd.to_numeric(texts, errors="coerce").to_numpy(dtype=np.float64)
    wrong = np.flatnonzero(~np.isfinite(numbers) & ~texts.str.lower().isin(_MISSING).to_numpy())
    if len(wrong):
        place = f"{path}: row {int(cells.index[wrong[0]]) + 1}"
        cell = texts.iloc[wrong[0]][:40]
        hint = "write a decimal point, and nothing between thousands" if "," in cell else "correct it or leave it empty"
        raise InputError(place, f"{cells.name} {cell!r} is not a finite number", hint)
    return numbers


def _part(rows: SignalRows, file: SignalFile) -> tuple[float, float]:
    """Return begin and end of the requested part, in the times of the rows. Raises InputError."""
    first, last = float(rows.times_s[0]), rows.end_s
    begin = first if rows.dated else 0.0
    if file.begin is not None:
        begin = moment(file.begin, rows.dated, file)
    if not rows.dated:
        # the first value holds before its row, too
        first = min(first, 0.0)
    end = last if file.end is None else moment(file.end, rows.dated, file)
    if file.days is not None:
        end = begin + file.days * DAY_S
    # 1 s of tolerance, as clocks jitter
    if not first <= begin < end <= last + 1.0:
        wanted, there = (f"{rows.text_of(a)} to {rows.text_of(b)}" for a, b in ((begin, end), (first, last)))
        raise InputError(file.path, f"{wanted} is requested, the rows go from {there}", "take another part")
    return begin, end


def _cut(rows: SignalRows, begin: float, end: float, name: str, unit: str, file: SignalFile) -> Timeline:
    """Return the rows of [begin, end[, with times from 0 s, from which on the first value holds."""
    first = max(int(np.searchsorted(rows.times_s, begin, side="right")) - 1, 0)
    until = int(np.searchsorted(rows.times_s, end, side="left"))
    times = rows.times_s[first:until] - begin
    times[0] = 0.0
    values = tuple(rows.values[first:until].tolist())
    largest = max(end - begin, -min(values), max(values))
    if not largest <= LARGEST:
        problem = f"{largest:g} is larger than {LARGEST:g}, the bound of times in s and of values"
        raise InputError(file.path, problem, "correct it")
    date_s = begin if rows.dated else None
    length_s = end - begin
    series = Timeline(tuple(times.tolist()), values, name.strip(), str(file.path), unit, date_s, False, None, length_s)
    return series if file.period_s is None else series.averaged(file.period_s)
