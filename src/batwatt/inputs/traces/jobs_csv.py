"""Reading job traces as CSV: `arrival_time,length,cpus`, as GAIA and others keep them, and what jobs need besides."""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Literal

import numpy as np
import numpy.typing as npt
import pyarrow
from pyarrow import csv as arrow_csv

from batwatt.checks import SHOWN, number_named
from batwatt.errors import InputError, UnknownNameError
from batwatt.inputs.traces.dependencies import ids_of
from batwatt.inputs.traces.trace import TraceJob, open_text
from batwatt.inputs.traces.trace_table import Column, TraceTable
from batwatt.model.workload import CHECKPOINT_S, DEPENDS, MEMORY, RECOVERY_S, USE

TimeUnit = Literal["s", "h", "seconds", "hours"]
SECONDS: dict[str, float] = {"s": 1.0, "h": 3600.0, "seconds": 1.0, "hours": 3600.0}
"""Seconds in each unit that a job CSV may be in."""

COLUMNS = ("arrival_time", "length", "cpus")
NUMBERS = ("estimate", MEMORY, USE, CHECKPOINT_S, RECOVERY_S)
NEEDS = (*NUMBERS, DEPENDS)
"""Columns that may be there too: the user's estimate of the run time, in the unit of the times; memory of all of the
job; mean share of its cores that it uses; how long its checkpoints and its recoveries take, in s whatever that unit;
ids of jobs to complete first. Empty cells are unknown."""

_MOST_CPUS = 2.0**53
_NUMBER = "write a finite number"


def read_jobs_csv(path: Path | str, unit: TimeUnit = "s") -> list[TraceJob]:
    """All jobs of a CSV file, in its order; `unit` is that of the times. Raises InputError."""
    return list(iter_jobs_csv(path, unit))


def iter_jobs_csv(path: Path | str, unit: TimeUnit = "s") -> Iterator[TraceJob]:
    """The jobs of a CSV file (`.gz` too), one at a time; ids are "1", "2", ... in the order of the lines.

    Fields are separated by `,`, or by `|` if the header has one. Times in s are rounded to the microsecond, the
    resolution at which Batsim reports times, as is what is in the columns NEEDS. Further columns become extra fields,
    as text. Raises InputError with the line number.
    """
    factor = factor_of(unit, path)
    with open_text(path) as stream:
        header, separator = _header(stream, path)
        places = [header.index(name) for name in COLUMNS]
        needs = [(header.index(name), name) for name in NEEDS if name in header]
        others = [(i, name) for i, name in enumerate(header) if name not in COLUMNS + NEEDS]
        rows = csv.reader(stream, delimiter=separator)
        for count, row in enumerate(_rows(rows, path), start=1):
            where = f"{path} line {rows.line_num + 1}"
            if len(row) != len(header):
                raise InputError(where, f"has {len(row)} fields, the header {len(header)}", "correct the line")
            arrival, length, cpus = (
                number_named(where, name, row[i], _NUMBER) for i, name in zip(places, COLUMNS, strict=True)
            )
            if not cpus.is_integer():
                raise InputError(where, f"cpus must be a whole number, got {row[places[2]]}", "correct the line")
            extra: dict[str, object] = {name: row[i] for i, name in others}
            estimate = None
            for i, name in needs:
                need = _need(row[i], where, name)
                if need is not None and name == "estimate":
                    estimate = round(float(need) * factor, 6)  # type: ignore[arg-type]  # a number, as `_need` has it
                elif need is not None:
                    extra[name] = need
            yield TraceJob(
                id=str(count),
                submit_s=round(arrival * factor, 6),
                run_s=round(length * factor, 6),
                cpus=int(cpus),
                requested_s=estimate,
                extra=extra,
            )


def read_jobs_table(path: Path | str, unit: TimeUnit = "s") -> TraceTable | None:
    """The jobs of a CSV file as `iter_jobs_csv` gives them, but for further columns, much faster.

    None if something in the file is not plain: `iter_jobs_csv` takes it or says what is wrong, and where.
    """
    factor = factor_of(unit, path)
    with open_text(path) as stream:
        header, separator = _header(stream, path)
    numbers = [name for name in COLUMNS + NUMBERS if name in header]
    try:
        table = arrow_csv.read_csv(
            path,
            read_options=arrow_csv.ReadOptions(column_names=header, skip_rows=1, use_threads=False),
            parse_options=arrow_csv.ParseOptions(delimiter=separator),
            convert_options=arrow_csv.ConvertOptions(
                column_types=dict.fromkeys(numbers, pyarrow.float64()) | {DEPENDS: pyarrow.string()},
                null_values=[""],
                include_columns=[name for name in header if name in COLUMNS + NEEDS],
            ),
        )
        columns = {name: _plain(table[name], name) for name in numbers}
    except (pyarrow.ArrowException, OSError, ValueError):
        return None
    estimate = columns.get("estimate")
    memory, use, checkpoint_s, recovery_s = (
        _rounded(columns[name]) if name in columns else None for name in NUMBERS[1:]
    )
    depends = table[DEPENDS].to_pylist() if DEPENDS in header else []
    return TraceTable(
        numbers=np.arange(1, len(table) + 1),
        submit_s=_rounded(columns["arrival_time"] * factor),
        run_s=_rounded(columns["length"] * factor),
        cpus=columns["cpus"].astype(np.int64),
        requested_s=None if estimate is None else _rounded(np.where(estimate > 0.0, estimate, np.nan) * factor),
        memory=memory,
        use=use,
        checkpoint_s=checkpoint_s,
        recovery_s=recovery_s,
        depends={row: names for row, text in enumerate(depends) if text and (names := ids_of(text))},
    )


def factor_of(unit: str, where: object) -> float:
    """Seconds of a unit of time. Raises InputError."""
    if unit not in SECONDS:
        raise UnknownNameError(where, "unit of time", unit, SECONDS, "Give the unit of arrival_time and length.")
    return SECONDS[unit]


def _header(stream: Iterator[str], path: Path | str) -> tuple[list[str], str]:
    """The names of the columns, and what is between them."""
    first = next(stream, "")
    separator = "|" if "|" in first else ","
    header = [name.strip() for name in next(_rows(csv.reader([first], delimiter=separator), path), [])]
    missing = [name for name in COLUMNS if name not in header]
    if missing or len(set(header)) != len(header):
        problem = f"lacks the column {missing[0]!r}" if missing else "names a column twice"
        raise InputError(f"{path} line 1", problem, "the header must be arrival_time,length,cpus")
    return header, separator


def _rows(rows: Iterator[list[str]], path: Path | str) -> Iterator[list[str]]:
    """The rows that hold something; the csv module's own complaints become InputError."""
    while True:
        try:
            row = next(rows)
        except StopIteration:
            return
        except csv.Error as error:
            raise InputError(path, f"is not CSV ({error})", "write arrival_time,length,cpus lines") from None
        if any(cell.strip() for cell in row):
            yield row


Test = Callable[[Column], npt.NDArray[np.bool_]]
_NOT_NEGATIVE: tuple[Test, str] = (lambda values: (values >= 0.0) & np.isfinite(values), ">= 0")
_ALLOWED: dict[str, tuple[Test, str]] = {
    "estimate": (lambda values: np.isfinite(values), "finite"),
    **dict.fromkeys((MEMORY, CHECKPOINT_S, RECOVERY_S), _NOT_NEGATIVE),
    USE: (lambda values: (values > 0.0) & (values <= 1.0), "in ]0, 1]"),
}


def _need(text: str, where: str, name: str) -> object:
    """What a cell of one of the columns NEEDS says, None if nothing."""
    if name == DEPENDS:
        return ids_of(text) or None
    if not text.strip():
        return None
    value = number_named(where, name, text, _NUMBER)
    allowed, bounds = _ALLOWED[name]
    if not allowed(np.array([value]))[0]:
        raise InputError(
            where, f"{name} must be {bounds}, got {text.strip()[:SHOWN]}", "leave it empty if it is unknown"
        )
    if name == "estimate":
        return value if value > 0.0 else None
    return round(value, 6)


def _plain(column: pyarrow.ChunkedArray, name: str) -> Column:
    """A column as numbers, NaN for empty cells; ValueError if one is not what `iter_jobs_csv` takes as it is."""
    values: Column = column.to_numpy()
    known = values[~np.isnan(values)]
    if name in _ALLOWED:
        good = len(known) == len(values) - column.null_count and bool(_ALLOWED[name][0](known).all())
    else:
        good = len(known) == len(values) and bool(np.isfinite(known).all())
    if name == "cpus":
        good = good and bool((np.abs(known) < _MOST_CPUS).all() and (known == np.floor(known)).all())
    if not good:
        raise ValueError(name)
    return values


def _rounded(values: Column) -> Column:
    """The values to 6 decimals, each as `round` has it."""
    values = np.array(values, dtype=float)
    (odd,) = np.nonzero((values != np.floor(values)) & ~np.isnan(values))
    values[odd] = [round(value, 6) for value in values[odd].tolist()]
    return values
