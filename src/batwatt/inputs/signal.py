"""Reader of one column of a file: its unit, its rows by time, and the filling of its gaps."""

from __future__ import annotations

import logging
import math
import re
from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache
from pathlib import Path

import numpy as np
import numpy.typing as npt

from batwatt.errors import InputError, UnknownNameError, collect
from batwatt.inputs.source import Gaps, SeriesSource
from batwatt.inputs.stamps import lengths_of, moment, times_of
from batwatt.inputs.table import TIME, Table, looks_like_date, number_in, numbers_in, read_table, time_column_of
from batwatt.model.signal import (
    EXAMPLES,
    POWER_W,
    UNIT_OF,
    UNSTATED,
    Unit,
    declared_unit,
    is_ratio,
    kind_in,
    unit_in,
    unknown_unit,
)
from batwatt.model.timeline import FRACTION, LARGEST, MACHINES, MAX_ROWS, Timeline, bounded, checked_capacity
from batwatt.units import DAY_S, HOUR_S, LATEST_S, YEAR_S, date_text, number_text

SHORTEST_S = 1e-3
"""Least distance in s of two rows: a shorter step is lost in the microseconds of Batsim's times."""
MAX_GAP_S = 6 * HOUR_S
"""Longest gap in s that is interpolated."""
_EARLY = 0.125
"""Share of a row by which a label of a range, such as 00:00 - 00:59, may end too early."""
_VALUES = (
    MACHINES, FRACTION, "carbon_intensity_avg", "carbon intensity", "carbon_intensity", "carbonintensity",
    "intensity.actual", "intensity.forecast", "price", POWER_W,
)  # fmt: skip
_ZONES = (
    "zone", "zoneid", "zonename", "area", "areacode", "areaname", "mapcode", "hostid", "pricearea", "biddingzone",
    "region", "location", "country", "countrycode", "respondent", "balancingauthority", "node", "site", "siteid",
    "station",
)  # fmt: skip
"""Names of columns of places, without blanks and dashes."""
_SEQUENCES = ("sequence",)
_RESOLUTIONS = ("resolution", "resolutioncode", "resolution code", "period")
_DURATION = re.compile(r"PT(\d{1,4})([MHS])|P(1)(D)")
_DURATION_S = {"S": 1.0, "M": 60.0, "H": HOUR_S, "D": DAY_S}
_PLAIN_NAMES = ("value", "price", "power")
"""Names of columns to which the unit of a whole file applies."""
_OF_UNITS = re.compile(r"(.*?)[ _-]?units?(?:[ _]name)?")
"""Names of columns of units: `unit`, `value-units`, `Measurement Unit Name`."""
_EMISSIONS = {"lifecycle": ("life cycle", "lca", "lifecycle"), "direct": ("direct",)}
_IN_GRAMS = re.compile(r"carbon[ _]?intensity|intensity\.|intensity_(?:actual|forecast)$", re.IGNORECASE)
"""Columns of Electricity Maps and of the British API, which are in g/kWh without a stated unit."""
_MISSING = {"", "na", "nan", "null", "none", "n/a", "n/e", "-"}
_Floats = npt.NDArray[np.float64]
_log = logging.getLogger(__name__)


def read_signal(file: SeriesSource) -> Timeline:
    """Read the signal of a file, from 0 s; in W, g/kWh or money per kWh if `file.quantity` or `file.unit` is not None.

    All dates become UTC. Rows are sorted by time; of two rows of one time the later with a value counts. The duration
    of a row is stated by the file (a label that is a range, a resolution), or is the most common distance of rows.
    Empty values, and missing rows of regular dates, are filled by `file.gaps`, with one warning. A cache has the last
    files until they change. Raises InputError with the line or the column.
    """
    return _cached(file, False)


def read_series(path: Path | str, column: str = POWER_W) -> Timeline:
    """Read the series in s of a run in a column of a file, by default an envelope in W; its times are as in the file.

    After its end the last value holds. Raises InputError as `read_signal` does, and for dates.
    """
    return _cached(SeriesSource(Path(path), column=column, quantity="power" if column == POWER_W else None), True)


def read_capacity(path: Path | str, slots: int | None) -> Timeline:
    """Read the machines alive over time, whole numbers in [0, `slots`] (None: no upper bound), as `read_series` does.

    The file has a column `machines`, or is the riskaware paper's text. Raises InputError.
    """
    return checked_capacity(replace(read_series(path, MACHINES), unit=MACHINES), slots, path)


def to_csv(series: Timeline) -> str:
    """Return a series as CSV with the header `time_s,<name>`, which `read_series` and `read_capacity` read."""
    rows = (f"{number_text(t)},{number_text(v)}\n" for t, v in zip(series.times_s, series.values, strict=True))
    return f"{TIME},{series.name}\n" + "".join(rows)


def largest_in(file: SeriesSource) -> float:
    """Return the greatest value in the column of a file, whatever its requested part. Raises InputError."""
    return float(np.nanmax(_columns(file)[1]))


def _cached(file: SeriesSource, whole: bool) -> Timeline:
    """Return the signal of a file, or the whole series in s of a run. Raises InputError."""
    try:
        state = file.path.stat()
    except (OSError, ValueError):
        return _read(file, whole, None)[0]
    signal, remarks = _read(file, whole, (state.st_mtime_ns, state.st_size))
    if remarks:
        collect(remarks)
    return signal


@lru_cache(maxsize=16)
def _read(file: SeriesSource, whole: bool, state: tuple[int, int] | None) -> tuple[Timeline, str]:
    times, values, stated_s, dated, name, unit, notes = _columns(file)
    if whole and dated:
        problem = f"its times are dates from {_text(float(np.nanmin(times)), True)} on, not s of the run"
        raise InputError(file.path, problem, f"write power:{file.path} or trace:{file.path}, which read dates")
    times, values, stated_s = _sorted(times, values, stated_s, file, notes)
    if whole and not np.diff(times).min(initial=np.inf) >= SHORTEST_S * (1.0 - 1e-6):
        row = int(np.argmin(np.diff(times)))
        problem = f"has rows at {times[row]:.15g} s and {times[row + 1]:.15g} s, less than {SHORTEST_S:g} s apart"
        raise InputError(file.path, problem, "leave one of both rows out")
    lengths_s = _lengths(times) if stated_s is None else stated_s
    begin, end = (-np.inf, np.inf) if whole else _part(times, float(times[-1] + lengths_s[-1]), dated, file)
    if file.gaps == "line":
        _refuse_line(name, unit, file)
    due = _due(times, stated_s)
    if file.gaps == "hold" and not (stated_s is not None or (dated and _is_regular(times))):
        due = np.zeros_like(due)
    notes += _remarks(times, values, lengths_s, due, (begin, end), dated, file.gaps)
    if file.gaps == "line":
        times, values = _with_missing_rows(times, values, lengths_s, due, dated, file.path)
    values = _filled(times, values, file.gaps)
    remark = f"{file.path}: {'; '.join(notes)}" if notes else ""
    if remark:
        _log.warning("%s", remark)
    if not whole:
        return _cut(times, values, (begin, end), dated, name, unit, file), remark
    return Timeline(tuple(times.tolist()), tuple(values.tolist()), name.strip(), str(file.path), unit), remark


def _text(time_s: float, dated: bool) -> str:
    return date_text(time_s) if dated else f"{time_s:g} s"


def _columns(file: SeriesSource) -> tuple[_Floats, _Floats, _Floats | None, bool, str, str, list[str]]:
    """Return times in s and values in the order of the file, and the stated duration in s of each row, or None.

    Times are since 1970 if they are dates (True), values NaN where one is missing. The others are name and unit after
    conversion, and remarks. Raises InputError.
    """
    table = _selected_rows(read_table(file.path), file)
    time_column = _time_column(table, file)
    column = _value_column(table, file, time_column)
    _check_kind(table, column, file)
    times, dated, end, notes = times_of(table, time_column, file)
    for row in np.flatnonzero(np.abs(times) > LATEST_S)[:1].tolist():
        problem = f"{time_column} {times[row]:.15g} s is {times[row] / YEAR_S:.6g} years on"
        raise InputError(table.place(row), problem, "divide all times by 1000 if they are milliseconds since 1970")
    if not dated:
        _refuse_counts(table, time_column, times)
    values = _numbers(table, column)
    if file.column is None:
        values = _with_forecasts(values, table, column, notes)
    if not np.isfinite(values[np.isfinite(times)]).any():
        raise InputError(file.path, f"no value in column {column!r}", "choose another with column=")
    values, name, unit = _converted(values, table, column, file, notes)
    stated_s = _stated(table, time_column, times, end, file) if dated else None
    if end:
        stated_s = _lengths_before(times, file.path) if stated_s is None else stated_s
        times = times - stated_s
    return times, values, stated_s, dated, name, unit, notes


def _refuse_counts(table: Table, time_column: str, times: _Floats) -> None:
    """Raise InputError for a column that counts rows, such as `hour` with 0, 1, 2: nothing states their length."""
    if time_column != TIME and len(times) > 2 and (np.diff(times) == 1.0).all() and "sec" not in time_column.lower():
        problem = f"column {time_column!r} counts rows from {times[0]:g} on, and states no length of a step"
        raise InputError(table.path, problem, f"write dates, or times in s in a column {TIME!r}")


def _with_forecasts(values: _Floats, table: Table, column: str, notes: list[str]) -> _Floats:
    """Return actual values, with the forecast in rows that have none: answers that reach into the future."""
    forecast = column.lower().replace("actual", "forecast")
    names = [name for name in table.names if name.lower() == forecast and name != column]
    if len(names) != 1:
        return values
    forecasts = _numbers(table, names[0])
    lacking = np.isnan(values) & np.isfinite(forecasts)
    if lacking.any():
        notes.append(f"{np.count_nonzero(lacking)} rows without a value in {column!r} have that of {names[0]!r}")
    return np.where(lacking, forecasts, values)


def _stated(table: Table, time_column: str, times: _Floats, end: bool, file: SeriesSource) -> _Floats | None:
    """Return the duration of each row in s, by a column of resolutions or of ends, or by labels of ranges, or None."""
    name = next((name for name in table.names if name.lower() in _RESOLUTIONS), None)
    if name is not None:
        lengths = [_duration_s(text) for text in table.column(table.named(name))]
        if all(lengths):
            return np.array(lengths, dtype=np.float64)
    name = next((name for name in table.ends if name != time_column), None)
    if end or name is None:
        return lengths_of(table, time_column, file)
    try:
        passed = times_of(table, name, replace(file, stamp="begin"))[0] - times
    except InputError:
        # not the column of ends
        return None
    positive = passed > 0.0
    usual = np.median(passed[positive]) if positive.any() else np.inf
    if usual > 1.5 * _step_s(np.unique(times[np.isfinite(times)])):
        return None
    # across a change of clocks ends do not tell
    return np.where(positive, passed, usual)


def _duration_s(text: str) -> float | None:
    """Return the length in s of a resolution such as PT15M, or None."""
    match = _DURATION.fullmatch(text)
    return None if match is None else int(match[1] or match[3]) * _DURATION_S[match[2] or match[4]] or None


def _selected_rows(table: Table, file: SeriesSource) -> Table:
    """Return the rows of the requested zone, sequence (of auctions) and resolution. Raises InputError."""
    choices = (("zone", _ZONES, file.zone), ("sequence", _SEQUENCES, file.sequence))
    for key, names, choice in (*choices, ("resolution", _RESOLUTIONS, file.resolution)):
        plain = {name: re.sub("[ _-]", "", name.lower().rpartition(".")[2]) for name in table.names}
        candidates = [name for name in table.names if plain[name] in names or name.lower() in names]
        values_of = {name: sorted({*table.column(table.named(name))}) for name in candidates}
        # of columns of places, the one that has the choice, or several values
        name = max(candidates, key=lambda name: (choice in values_of[name], len(values_of[name]) > 1), default=None)
        if name is None:
            if choice is not None:
                raise InputError(file.path, f"no column of {key}s", f"leave out {key}=")
            continue
        values = values_of[name]
        # a file may have hours first, then quarter hours
        if choice is None and len(values) > 1 and key != "resolution":
            listed = ", ".join(values[:10])
            problem = f"has {len(values)} {key}s in column {name!r}: {listed}"
            raise InputError(file.path, problem, f"choose one with {key}=")
        # ENTSO-E writes BZN|BE, and Sequence Sequence 1
        meant = [value for value in values if choice in (value, re.split(r"\|| ", value)[-1])]
        if choice is not None and len(meant) != 1:
            raise UnknownNameError(file.path, key, choice, values, f"Correct {key}=.")
        table = table if choice is None else table.only(name, meant[0])
    return table


def _time_column(table: Table, file: SeriesSource) -> str:
    """Return the requested column, else one with a usual name, else the only one with dates. Raises InputError."""
    if file.time_column is not None:
        return table.named(file.time_column)
    column = time_column_of(table.names, table.first)
    if column is None:
        dates = [name for name, cell in zip(table.names, table.first, strict=True) if looks_like_date(cell)]
        column = dates[0] if len(dates) == 1 else None
    if column is None:
        listed = ", ".join(name[:40] for name in table.names[:12])
        raise InputError(file.path, f"no column of times among: {listed}", "name it with time_column=")
    return table.named(column)


def _value_column(table: Table, file: SeriesSource, time_column: str) -> str:
    """Return the requested column, else one of the quantity by a usual name, or the only numeric one."""
    if file.column is not None:
        others = f"; power:{file.path} reads others" if file.column == POWER_W else ""
        return table.named(file.column, f"The first line names the columns{others}.")
    times = [time_column, *table.ends]
    names = [name for name in table.names if name not in times]
    # columns of equal names count several times, and are refused below
    columns = zip(table.names, table.columns, strict=True)
    numeric = [name for name, cells in columns if any(number_in(cell.replace(",", "")) < math.inf for cell in cells)]
    numeric = [name for name in numeric if name not in times]
    forecasts = {name.lower().replace("actual", "forecast") for name in numeric if "actual" in name.lower()}
    numeric = [name for name in numeric if name.lower() not in forecasts]
    if file.quantity is not None and len(numeric) > 1:
        names = numeric = _of_quantity({name: _kind(table, name) for name in numeric}, file)
    emitted = [name for name in names if re.match(r"carbon[ _]?intensity", name, re.IGNORECASE)]
    of_kind = [name for name in emitted if any(word in name.lower() for word in _EMISSIONS[file.kind])]
    usual = [name for usual_name in _VALUES for name in names if name.lower() == usual_name]
    usual = [name for name in usual if name in numeric] or usual
    for candidates in (usual[:1], of_kind, emitted, numeric):
        if len(candidates) == 1:
            return table.named(candidates[0])
    hours = [name for name in numeric if re.search(r"\d\d?(?::00)?$", name)]
    if len(hours) >= 23:
        problem = f"has its hours in columns, from {hours[0]!r} to {hours[-1]!r}"
        raise InputError(file.path, problem, "write a row for each hour (pandas.melt)")
    listed = ", ".join(name[:60] for name in (numeric or names)[:12])
    raise InputError(file.path, f"which column is meant, of: {listed}?", "name it with column=")


def _of_quantity(kinds: dict[str, str | None], file: SeriesSource) -> list[str]:
    """Return the columns of the quantity, else one of another kind, to be refused, else those of unknown kinds."""
    # a column called x/y is of anything, but for power
    kinds = {name: "a ratio" if is_ratio(name) else kind for name, kind in kinds.items()}
    unknown = [name for name, kind in kinds.items() if kind is None]
    others = [name for name, kind in kinds.items() if kind in UNIT_OF]
    if file.quantity == "any":
        return [name for name in kinds if name in others or name.lower() in _VALUES] or list(kinds)
    candidates = [name for name, kind in kinds.items() if _is_of(kind, file)] or others[:1] or unknown
    if not candidates:
        listed = ", ".join(f"{name[:40]} ({kind})" for name, kind in list(kinds.items())[:8])
        problem = f"no column of {file.quantity} among: {listed}"
        raise InputError(file.path, problem, "take another file, or name a column and its unit=")
    return candidates


def _unit(table: Table, column: str) -> Unit | None:
    """Return the unit that the file states for a column, in its name, or for the whole table, or None."""
    unit = unit_in(table.units.get(column, "")) or unit_in(column)
    return unit or unit_in(_stated_unit(table, column))


def _stated_unit(table: Table, column: str) -> str:
    """Return the unit of a whole table for a column of its kind or with a plain name, such as `value`; else empty.

    The unit is in JSON outside of the table, in a column `unit`, or in a column `Currency` of exports of ENTSO-E.
    """
    names = [name.lower() for name in table.names]
    texts = [table.unit] + [_only_text(table, names, name) for name in _unit_columns(names, column.lower())]
    currency = _only_text(table, names, "currency")
    if currency and (names[0].startswith("mtu") or re.match("day-ahead price|.*currency/mwh", column.lower())):
        texts.append(f"{currency}/MWh")
    text = next(filter(None, texts), "")
    unit, kind = unit_in(text), kind_in(column)
    plain = column.lower() in _PLAIN_NAMES or not any(name in _PLAIN_NAMES for name in names)
    return text if unit is not None and kind in (unit.kind, None if plain else unit.kind) else ""


def _unit_columns(names: Sequence[str], column: str) -> list[str]:
    """Return the columns of units: those of the column itself (`carbon_unit` of `carbon`), then `unit` and the like."""
    owners = {name: match[1] for name in names if (match := _OF_UNITS.fullmatch(name))}
    others = [name for name in names if name not in owners]
    own = [name for name, owner in owners.items() if owner and column.startswith(owner)]
    of_others = [name for name, owner in owners.items() if owner and any(other.startswith(owner) for other in others)]
    return own + [name for name in owners if name not in (*own, *of_others)]


def _only_text(table: Table, names: list[str], name: str) -> str:
    """Return the only text in a column, apart from empty cells; empty for none or several."""
    texts = {*table.columns[names.index(name)]} - {""} if name in names else set()
    return texts.pop() if len(texts) == 1 else ""


def _kind(table: Table, column: str) -> str | None:
    unit = _unit(table, column)
    # an unknown unit has no kind here
    return (table.units.get(column) or kind_in(column)) if unit is None else unit.kind


def _is_of(kind: str | None, file: SeriesSource) -> bool:
    return file.quantity == "any" or kind == file.quantity or (kind == "a fraction" and file.quantity == "power")


def _check_kind(table: Table, column: str, file: SeriesSource) -> None:
    """Raise InputError if the kind of a column, by its name, its unit or the declared unit, is not the quantity."""
    declared = _declared(file)
    kinds = [_kind(table, column)]
    if declared is not None or (file.quantity == "power" and file.relative and re.search("power|load", column.lower())):
        # a share may be one of a peak
        kinds = [kind for kind in kinds if kind != "a share"]
    if declared is not None:
        kinds.append(declared.kind)
    for actual in kinds:
        if file.quantity is not None and actual is not None and not _is_of(actual, file):
            problem = f"column {column!r} is of {actual}, not of {file.quantity}"
            hint = f"name a column of {file.quantity}, or take another file"
            if actual == "energy" and file.quantity == "power":
                hint = "divide it by the hours of a row, and name it in kW"
            if actual == "a share" and file.quantity == "power":
                hint = "write unit=%, and peak_w= for what 100 % stands for"
            raise InputError(file.path, problem, hint)
    stated = _unit(table, column)
    if declared is not None and stated is not None and declared.contradicts(stated):
        problem = f"column {column!r} is in {stated.text} by the file, but in {declared.text} by unit="
        raise InputError(file.path, problem, "leave out unit=, or rename the column if its unit is wrong")


def _declared(file: SeriesSource) -> Unit | None:
    unit = None if file.unit is None else declared_unit(file.unit)
    if file.unit is not None and unit is None:
        problem = f"unit {file.unit[:40]!r} is not known"
        raise InputError(file.path, problem, "write for instance unit=kW, unit=g/kWh, unit=EUR/MWh or unit=fraction")
    return unit


def _converted(
    values: _Floats, table: Table, column: str, file: SeriesSource, notes: list[str]
) -> tuple[_Floats, str, str]:
    """Return the values in W, g/kWh or money per kWh, with name and unit; unchanged without a quantity or unit."""
    declared = _declared(file)
    if file.quantity is None and declared is None:
        return values, column, ""
    unit = declared or _unit(table, column)
    most = float(np.nanmax(values, initial=0.0))
    unknown = None if unit else unknown_unit(column) or unknown_unit(table.unit)
    if unit is None and unknown is None and file.quantity == "power" and file.relative and not most > 1.0:
        notes.append(f"column {column!r} states no unit: 1 stands for the peak")
        unit = Unit("", "a fraction", 1.0, FRACTION)
    if unit is None and unknown is None and _IN_GRAMS.match(column) and not table.unit:
        unit = Unit("g/kWh", "carbon", 1.0, "g/kWh")
    if unit is None and file.quantity in UNIT_OF and not file.relative:
        hint = f"write unit={EXAMPLES[file.quantity]}, or the unit into the name of the column"
        if file.quantity == "power" and not most > 1.0:
            hint = f"write unit={EXAMPLES['power']}, unit=fraction, or peak_w= for what 1 stands for"
        problem = f"column {column!r} (values to {most:g}) states no unit"
        if unknown is not None:
            problem = f"unit {unknown!r} of column {column!r} is not known"
        raise InputError(file.path, problem, hint)
    if file.quantity == "power":
        values = _at_night(values, file, notes)
    if unit is None:
        return values, column, UNSTATED
    name = column if unit.factor == 1.0 and unit.name != FRACTION else unit.name
    large = np.flatnonzero(np.abs(values) > LARGEST / unit.factor)
    if len(large):
        problem = f"{column} {values[large[0]]:g} is more than {LARGEST:g} {unit.converted}"
        raise InputError(table.place(int(large[0])), problem, "correct the value")
    return values if unit.factor == 1.0 else values * unit.factor, name, unit.converted


def _at_night(values: _Floats, file: SeriesSource, notes: list[str]) -> _Floats:
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


def _numbers(table: Table, column: str) -> _Floats:
    """Return the numbers of a column, NaN for empty cells. Raises InputError."""
    cells = table.column(column)
    numbers = numbers_in(cells)
    for row in np.flatnonzero(~np.isfinite(numbers)).tolist():
        if cells[row].lower() not in _MISSING:
            cell = cells[row][:40]
            hint = (
                "write a decimal point, and nothing between thousands"
                if "," in cell
                else "correct it or leave it empty"
            )
            raise InputError(table.place(row), f"{column} {cell!r} is not a finite number", hint)
    return numbers


# rows -----------------------------------------------------------------------------------------------------------------


def _sorted(
    times: _Floats, values: _Floats, stated_s: _Floats | None, file: SeriesSource, notes: list[str]
) -> tuple[_Floats, _Floats, _Floats | None]:
    """Return the rows by time, the later one with a value of two of one time. Raises InputError."""
    # rows of one time with a value come last, in the order of the file
    order = np.lexsort((np.isfinite(values), times))
    order = order[np.isfinite(times[order])]
    if not (np.diff(times[np.isfinite(times)]) >= 0.0).all():
        notes.append("rows sorted by time")
    times, values = times[order], values[order]
    last_of_time = np.append(np.diff(times) > 0.0, True)
    count = np.count_nonzero(last_of_time)
    if 2 * count <= len(times):
        hint = "keep the rows of one series; write date and time of day into one column, and name it time"
        raise InputError(file.path, f"{len(times)} rows have {count} times", hint)
    if count < len(times):
        notes.append(f"{len(times) - count} rows of a time that comes again left out")
    if stated_s is not None:
        _refuse_overlaps(times, values, stated_s[order], file)
        stated_s = np.minimum(stated_s[order][last_of_time], np.append(np.diff(times[last_of_time]), np.inf))
    return times[last_of_time], values[last_of_time], stated_s


def _refuse_overlaps(times: _Floats, values: _Floats, lengths_s: _Floats, file: SeriesSource) -> None:
    """Raise InputError if the stated duration of a row with a value exceeds the begin of the next one.

    A label in local time may be an hour too long at a change of clocks.
    """
    valued = np.isfinite(values)
    times, lengths = times[valued], lengths_s[valued]
    distances = np.diff(times)
    beyond = lengths[:-1] - distances
    over = (beyond > _EARLY * lengths[:-1]) & (np.abs(beyond - HOUR_S) > 1.0) & (distances > 0.0)
    over |= (distances == 0.0) & (np.diff(lengths) != 0.0)
    if over.any():
        at = int(np.flatnonzero(over)[0])
        problem = f"rows of {lengths[at]:g} s and {lengths[at + 1]:g} s overlap at {_text(float(times[at + 1]), True)}"
        raise InputError(file.path, problem, "choose one series, as with resolution=PT15M or PT60M")


def _step_s(times: _Floats) -> float:
    """Return the most common distance of two rows in s; an hour for one row."""
    if len(times) < 2:
        return HOUR_S
    lengths, counts = np.unique(np.round(np.diff(times), 3), return_counts=True)
    return max(float(lengths[np.argmax(counts)]), SHORTEST_S)


def _lengths(times: _Floats) -> _Floats:
    """Return the duration in s of rows that state none: the step, of the last row at most the distance before it."""
    step_s = _step_s(times)
    last_s = float(np.round(np.diff(times[-2:]), 3).min(initial=step_s))
    return np.append(np.full(len(times) - 1, step_s), last_s)


def _lengths_before(times: _Floats, path: Path) -> _Floats:
    """Return the duration in s of the row that ends at each time, NaN at NaN. Raises InputError for one time only.

    A row begins at the end before. After a gap of rows with a usual distance it lasts that distance.
    """
    ends = np.unique(times[np.isfinite(times)])
    if len(ends) < 2:
        raise InputError(path, "has one row, which is the end of an unknown time", "add rows, or say stamp=begin")
    lengths, step_s = np.diff(ends), _step_s(ends)
    if _is_regular(ends):
        lengths = np.where(np.round(lengths / step_s) > 1.0, step_s, lengths)
    return np.append((min(step_s, lengths[0]), *lengths), np.nan)[np.searchsorted(ends, times)]


def _is_regular(times: _Floats) -> bool:
    """Return whether most rows are a step apart: a file that lists changes has no missing rows."""
    steps = np.round(np.diff(times) / _step_s(times))
    return 2 * int(np.count_nonzero(steps == 1.0)) > len(steps)


def _due(times: _Floats, stated_s: _Floats | None) -> npt.NDArray[np.int_]:
    """Return the number of rows that are missing after each row but the last."""
    distances = np.diff(times)
    # a label such as 00:00 - 00:59 is complete
    rows = np.round(distances / _step_s(times)) if stated_s is None else np.ceil(distances / stated_s[:-1] - _EARLY)
    return np.maximum(rows - 1, 0).astype(int)


def _part(times: _Floats, last: float, dated: bool, file: SeriesSource) -> tuple[float, float]:
    """Return begin and end of the requested part, in the times of rows that end at `last`. Raises InputError."""
    # the first value holds before its row, too
    first = float(times[0]) if dated else min(float(times[0]), 0.0)
    begin = first if dated else 0.0
    if file.begin is not None:
        begin = moment(file.begin, dated, file)
    end = last if file.end is None else moment(file.end, dated, file)
    if file.days is not None:
        end = begin + file.days * DAY_S
    # 1 s of tolerance, as clocks jitter
    if not first <= begin < end <= last + 1.0:
        part, there = (f"{_text(a, dated)} to {_text(b, dated)}" for a, b in ((begin, end), (first, last)))
        raise InputError(file.path, f"{part} is requested, the rows go from {there}", "take another part")
    return begin, end


def _cut(
    times: _Floats, values: _Floats, part: tuple[float, float], dated: bool, name: str, unit: str, file: SeriesSource
) -> Timeline:
    """Return the rows of a part, [begin, end[, with times from 0 s, from which on the first value holds."""
    begin, end = part
    first = max(int(np.searchsorted(times, begin, side="right")) - 1, 0)
    until = int(np.searchsorted(times, end, side="left"))
    begins, length_s = times[first:until] - begin, end - begin
    begins[0] = 0.0
    date_s = begin if dated else None
    rows = tuple(begins.tolist()), tuple(values[first:until].tolist())
    series = Timeline(*rows, name.strip(), str(file.path), unit, date_s, False, None, length_s)
    bounded(series, file.path)
    return series if file.period_s is None else series.averaged(file.period_s)


def _refuse_line(name: str, unit: str, file: SeriesSource) -> None:
    """Raise InputError unless a column is of carbon or price: nothing promises power or machines between two rows."""
    stated = declared_unit(unit)
    kind = (kind_in(name) if stated is None else stated.kind) or file.quantity
    if kind not in ("carbon", "price", None):
        problem = f"gaps=line is for carbon and price, not for {'an unknown unit' if kind == 'any' else kind}"
        raise InputError(file.path, problem, "leave it out: each value holds until the next")


def _remarks(
    times: _Floats, values: _Floats, lengths_s: _Floats, due: npt.NDArray[np.int_], part: tuple[float, float],
    dated: bool, gaps: Gaps,
) -> list[str]:  # fmt: skip
    """Return a remark on the number of missing values and of gaps in a part, and on the longest one, if any."""
    present = np.flatnonzero(np.isfinite(values))
    # a gap is before the first value, between two, and after the last
    before, after = np.append(-1, present), np.append(present, len(values))
    passed = np.concatenate([(0,), np.cumsum(due)])
    counts = after - before - 1 + passed[np.minimum(after, len(due))] - passed[np.maximum(before, 0)]
    ends_s = times + lengths_s
    starts = np.where(before < 0, times[0], ends_s[before])
    stops = np.append(times, ends_s[-1])[after]
    inside = np.flatnonzero((counts > 0) & (stops > part[0]) & (starts < part[1]))
    if not len(inside):
        return []
    first = inside[np.argmax((stops - starts)[inside])]
    longest = f"{_text(float(starts[first]), dated)} to {_text(float(stops[first]), dated)}"
    count = f"{len(inside)} gap{'s' if len(inside) > 1 else ''}"
    how = "the value before holds"
    if gaps == "line":
        how = f"a straight line up to {MAX_GAP_S / HOUR_S:g} h, longer ones as the day before"
    return [f"{counts[inside].sum()} values missing in {count} (longest: {longest}): {how}"]


def _with_missing_rows(
    times: _Floats, values: _Floats, lengths_s: _Floats, due: npt.NDArray[np.int_], dated: bool, path: Path
) -> tuple[_Floats, _Floats]:
    """Return the rows with an empty row for each of those that are `due`. Raises InputError."""
    steps = lengths_s[:-1]
    if not due.sum() <= MAX_ROWS:
        at = int(np.argmax(due))
        gap = " to ".join(_text(time_s, dated) for time_s in times[at : at + 2].tolist())
        problem = f"{due.sum():g} rows are missing at a step of {steps[at]:g} s, at most {MAX_ROWS} can be filled"
        raise InputError(path, f"{problem} (largest gap: {gap})", "correct the dates")
    ordinal = np.arange(due.sum()) - np.repeat(np.cumsum(due) - due, due) + 1
    added = np.repeat(times[:-1], due) + ordinal * np.repeat(steps, due)
    places = np.repeat(np.arange(1, len(times)), due)
    return np.insert(times, places, added), np.insert(values, places, np.nan)


def _filled(times: _Floats, values: _Floats, gaps: Gaps) -> _Floats:
    """Return the values without missing ones.

    With `hold` the value before a gap holds, and before the first value that one. With `line` a gap, the time from the
    value before to the value after it, is a straight line up to `MAX_GAP_S`; in a longer one each value is that of the
    same time of day on the day before (itself filled in gaps of more than a day), without such a day the value before
    the gap.
    """
    missing = np.isnan(values)
    present = np.flatnonzero(~missing)
    at = np.arange(len(values))
    before = present[np.maximum(np.searchsorted(present, at, side="right") - 1, 0)]
    whole = values[before]
    if gaps == "line":
        after = present[np.minimum(np.searchsorted(present, at), len(present) - 1)]
        short = missing & (times[after] - times[before] <= MAX_GAP_S)
        whole[short] = np.interp(times[short], times[present], values[present])
        long = np.flatnonzero(missing & ~short)
        sources = np.searchsorted(times, times[long] - DAY_S, side="right") - 1
        for place, source in zip(long.tolist(), sources.tolist(), strict=True):
            if source >= 0:
                whole[place] = whole[source]
    return whole
