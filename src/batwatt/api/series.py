"""Series as arguments: envelopes, capacities, carbon and prices from files, texts, numbers, tables and pairs."""

from __future__ import annotations

import logging
import math
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from batwatt.errors import InputError, remark
from batwatt.model.signal import UNSTATED, factor_to, parse_date_s, unit_in
from batwatt.model.timeline import DEFAULT_STEP_S, MACHINES, Timeline, bounded
from batwatt.model.work import Array
from batwatt.run.arguments import path_or, plain, real, wrong
from batwatt.run.spec import SERIES
from batwatt.units import SINCE_1970_S

if TYPE_CHECKING:
    import pandas as pd

    from batwatt.inputs.source import Quantity

_log = logging.getLogger(__name__)


def series_or(name: str, value: Any, quantity: Quantity | None = None) -> Any:
    """Return the series of an argument, in the unit of its quantity, or its text or path; None for None.

    A number is a constant. Times of a table, a dict or pairs are dates, or s. A series of ours holds its last value as
    a limit, in W or machines; as a signal it ends there unless it repeats. `quantity` is that of the name if None.
    Raises InputError.
    """
    quantity = quantity or SERIES[name]
    if value is None or isinstance(value, str | Path):
        return value if value is None or isinstance(value, str) else path_or(name, value)
    limit = quantity in ("power", "machines")
    rows = value if limit and isinstance(value, Timeline) else _series_of(name, value)
    if rows is None:
        raise wrong(name, "a file or a series", value, "see help(batwatt.read_signal)")
    if limit and not min(rows.values) >= 0.0:
        unit = "W" if quantity == "power" else "machines"
        raise InputError(name, f"must be >= 0 {unit}, got {min(rows.values):g}", "correct the value")
    if quantity == "machines":
        if rows.unit not in ("", UNSTATED, MACHINES):
            raise InputError(name, f"is a series in {rows.unit}, not in machines", "give numbers of machines")
        return bounded(rows, name)
    factor, unit = factor_to(quantity, rows.unit, max(rows.values), name)
    if factor != 1.0:
        remark(_log, "%s", f"{rows.source}: its values, to {max(rows.values):g}, are read in {rows.unit}")
    return bounded(rows if factor == 1.0 else rows.of(rows.array * factor, unit), name)


def _number(name: str, value: Any) -> float | None:
    """Return a number, the value of a constant, as a float; None for another kind of value. Raises InputError."""
    number = isinstance(plain(value), int | float) and not isinstance(value, bool)
    return real(name, value, -math.inf) if number else None


def _series_of(name: str, value: Any) -> Timeline | None:
    """Return a series of ours, a table, a dict or pairs (times are dates, or s) as a signal, else None.

    The signal ends after its last row, which holds as long as the one before, or repeats from the row `loop` >= 0 of a
    series of ours on. The first value holds before its time, unless that is a date. The name of a column, or of a
    series of pandas, may have a unit. A number is a constant. Raises InputError.
    """
    if (number := _number(name, value)) is not None:
        return Timeline((0.0,), (number,), name, f"constant {number:g}")
    if isinstance(value, Timeline):
        _check_begin(name, value.times_s[0])
        rows = value.since(0.0) if value.times_s[0] else value
        return rows.lasting(False) if rows.loop == -1 else rows
    table = _pandas_of(name, value)
    if table is None:
        return None
    times, values, date_s = _parts_of_pandas(name, table)
    _check_begin(name, times[0])
    stated = unit_in(str(table.name))
    last_s = times[-1] - times[-2] if len(times) > 1 else DEFAULT_STEP_S
    edges = np.concatenate([(0.0,), times[1:], (times[-1] + last_s,)])
    source = f"the series of {name}" if table.name is None else f"the series {table.name!r}"
    return Timeline.of_edges(edges, values, source, "" if stated is None else stated.text, date_s)


def _pandas_of(name: str, value: Any) -> pd.Series[Any] | None:
    """Return a table, a dict of values by time, or (time, value) pairs as a series of pandas; None for others."""
    kind = type(value).__name__ if type(value).__module__.startswith("pandas") else ""
    if kind == "Series":
        series: pd.Series[Any] = value
        return series
    if kind == "DataFrame":
        return _column_of(name, value)
    if isinstance(value, Mapping):
        pairs = list(value.items())
    elif isinstance(value, list | tuple | np.ndarray):
        pairs = list(value)
        if any(isinstance(pair, str) or not hasattr(pair, "__len__") or len(pair) != 2 for pair in pairs):
            hint = "write (time, value) pairs, or batwatt.Series.regular(values, step_s) for equal steps"
            raise InputError(name, "is a list of values without times", hint)
    else:
        return None
    import pandas as pd

    times = [time for time, _ in pairs]
    if times and isinstance(times[0], str):
        return pd.Series([number for _, number in pairs], index=_dates(times, f"{name}: time"))
    return pd.Series([number for _, number in pairs], index=times)


def _dates(texts: Iterable[Any], where: str) -> pd.DatetimeIndex:
    """Parse texts as dates. Raises InputError."""
    import pandas as pd

    return pd.DatetimeIndex([pd.Timestamp(parse_date_s(text, where), unit="s", tz="UTC") for text in texts])


def _column_of(name: str, frame: pd.DataFrame) -> pd.Series[Any]:
    """Return the only column of values of a table by its times: a column of a usual name, or the index.

    Raises InputError.
    """
    import pandas as pd

    from batwatt.inputs.table import says_end, time_column_of

    frame = frame.rename(columns=str)
    dated = isinstance(frame.index, pd.DatetimeIndex | pd.TimedeltaIndex)
    times = None if dated else time_column_of([*frame.columns], [*map(str, frame[:1].to_numpy().ravel())])
    if times is not None and says_end(times):
        problem = f"column {times!r} has ends of rows"
        raise InputError(name, problem, "give their begins, or a file, whose ends are read as such")
    if times is not None:
        index = pd.Index(frame[times])
        if pd.api.types.is_numeric_dtype(index):
            # pandas makes a RangeIndex of equal steps, which is that of a table without times, too
            index = index.astype(np.float64)
        elif not isinstance(index, pd.DatetimeIndex | pd.TimedeltaIndex):
            index = _dates(frame[times], f"{name}: {times}")
        frame = frame.drop(columns=times).set_index(index)
    if len(frame.columns) != 1:
        columns = ", ".join(map(repr, frame.columns)) or "none"
        hint = "choose one, such as frame['price'] with its times as index, or frame[['time', 'price']]"
        raise InputError(name, f"must have one column besides its times, has {columns}", hint)
    return frame.iloc[:, 0]


def _check_begin(name: str, first_s: float) -> None:
    """Raise InputError for a first time that is before 0 s, or s since 1970."""
    if not 0.0 <= first_s < SINCE_1970_S:
        problem = f"begins at {first_s:.10g} s, and a run at 0 s"
        raise InputError(name, problem, "let its times begin at 0, or give a series of pandas with dates")


def _parts_of_pandas(name: str, series: pd.Series[Any]) -> tuple[Array, Array, float | None]:
    """Return times in s (from the first, if they are dates), values, and the first date in UTC. Raises InputError."""
    import pandas as pd

    if not len(series):
        raise InputError(name, "has no rows", "give at least one")
    index, date_s = series.index, None
    if isinstance(index, pd.DatetimeIndex):
        stamps = index.tz_localize("UTC") if index.tz is None else index.tz_convert("UTC")
        times = np.asarray((stamps - pd.Timestamp(0, tz="UTC")) / pd.Timedelta(seconds=1), dtype=np.float64)
    elif isinstance(index, pd.TimedeltaIndex):
        times = np.asarray(index / pd.Timedelta(seconds=1), dtype=np.float64)
    elif isinstance(index, pd.RangeIndex) or not pd.api.types.is_numeric_dtype(index):
        raise InputError(name, "is a table whose index has no times", "give it dates, or s, as its index")
    else:
        times = index.to_numpy(dtype=np.float64)
    # also for types with NA, whose sums and tests leave NA out
    numbers = pd.to_numeric(series, errors="coerce").to_numpy(dtype=np.complex128, na_value=np.nan)
    wrong = ~np.isfinite(numbers)
    if wrong.any() or not pd.api.types.is_numeric_dtype(series) or pd.api.types.is_complex_dtype(series):
        problem = f"row {int(np.argmax(wrong)) + 1} of the series is not a finite number"
        raise InputError(name, problem, "fill or drop it, as with dropna()")
    if not (np.diff(times) > 0.0).all() or not np.isfinite(times).all():
        raise InputError(name, "has times that do not increase", "sort the series, and drop times that come again")
    if isinstance(index, pd.DatetimeIndex):
        date_s, times = float(times[0]), times - times[0]
    return times, series.to_numpy(dtype=np.float64), date_s
