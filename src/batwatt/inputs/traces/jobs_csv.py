"""Reader of job traces in CSV: `arrival_time,length,cpus`, as in GAIA and others, with optional columns.

Times of ALIASES are in the unit of the file, those of columns in `_s` in s. Optional are the columns NEEDS: memory of
the whole job; mean used share of its cores; the time of its checkpoints and recoveries; its mean power in W; the user's
request (`estimate` or `walltime`) and the start. A column DEPENDS has ids of jobs to complete first; columns LABELS are
texts. Empty cells are unknown.
"""

from __future__ import annotations

import csv
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import numpy as np

from batwatt.checks import number_named
from batwatt.errors import InputError, UnknownNameError
from batwatt.files import open_text
from batwatt.inputs.traces.dependencies import parse_ids
from batwatt.inputs.traces.trace import TraceJob, csv_rows
from batwatt.inputs.traces.trace_table import (
    ALIASES,
    COLUMNS,
    NEEDS,
    Column,
    Texts,
    TraceTable,
    labels_of,
    need,
    rounded,
)
from batwatt.model.workload import DEPENDS, ESTIMATE, LABELS

if TYPE_CHECKING:
    import pyarrow

TimeUnit = Literal["s", "h", "seconds", "hours"]
SECONDS: dict[str, float] = {"s": 1.0, "h": 3600.0, "seconds": 1.0, "hours": 3600.0}
"""Seconds of each unit of time of a job CSV."""

_MOST_CPUS = 2.0**53
_NUMBER = "write a finite number"
_ROWS = "write arrival_time,length,cpus lines"


def iter_jobs_csv(path: Path | str, unit: TimeUnit = "s") -> Iterator[TraceJob]:
    """Yield the jobs of a CSV file (or `.gz`), one at a time; ids are "1", "2", ... in the order of the lines.

    Fields are separated by `,`, or by `|` if the header has one. Times in s and the columns NEEDS are rounded to 6
    decimals, the resolution of Batsim's times. Further columns become extra fields, as text. Raises InputError with the
    line number.
    """
    factor = factor_of(unit, path)
    with open_text(path) as stream:
        header, columns, separator = _header(stream, path)
        factors = _factors(header, factor)
        places = [columns[name] for name in COLUMNS]
        needs = [(columns[name], name) for name in NEEDS if name in columns]
        others = [(i, name) for name, i in columns.items() if name not in (*COLUMNS, *NEEDS, *LABELS, DEPENDS)]
        labels = [(columns[name], name) for name in LABELS if name in columns]
        depends = columns.get(DEPENDS)
        rows = csv.reader(stream, delimiter=separator)
        for count, row in enumerate(csv_rows(rows, path, _ROWS), start=1):
            where = f"{path} line {rows.line_num + 1}"
            if len(row) != len(header):
                raise InputError(where, f"has {len(row)} fields, the header {len(header)}", "correct the line")
            submit_s, run_s, cpus = (number_named(where, header[i], row[i], _NUMBER) * factors[i] for i in places)
            if not cpus.is_integer():
                problem = f"{header[places[2]]} must be a whole number, got {row[places[2]]}"
                raise InputError(where, problem, "correct the line")
            extra: dict[str, object] = {name: row[i] for i, name in others}
            values = {name: need(where, header[i], row[i].strip() or None, factors[i]) for i, name in needs}
            estimate = values.pop(ESTIMATE, None)
            extra |= {field: value for field, value in values.items() if value is not None}
            extra |= {name: text for i, name in labels if (text := row[i].strip())}
            if depends is not None and (names := parse_ids(row[depends])):
                extra[DEPENDS] = names
            yield TraceJob(
                id=str(count),
                submit_s=round(submit_s, 6),
                run_s=round(run_s, 6),
                cpus=int(cpus),
                requested_s=estimate,
                extra=extra,
            )


def read_jobs_table(path: Path | str, unit: TimeUnit = "s") -> TraceTable | None:
    """Read the jobs of a CSV file like `iter_jobs_csv`, without further columns, but much faster.

    Return None without pyarrow, or if a value needs a check: `iter_jobs_csv` then accepts or refuses it.
    """
    try:
        import pyarrow
        from pyarrow import csv as arrow_csv
    except ModuleNotFoundError:
        return None

    factor = factor_of(unit, path)
    with open_text(path) as stream:
        header, places, separator = _header(stream, path)
    numbers = {name: header[places[name]] for name in (*COLUMNS, *NEEDS) if name in places}
    texts = [name for name in (*LABELS, DEPENDS) if name in places]
    try:
        table = arrow_csv.read_csv(
            path,
            read_options=arrow_csv.ReadOptions(column_names=header, skip_rows=1, use_threads=False),
            parse_options=arrow_csv.ParseOptions(delimiter=separator),
            convert_options=arrow_csv.ConvertOptions(
                column_types=dict.fromkeys(numbers.values(), pyarrow.float64())
                | dict.fromkeys(texts, pyarrow.string()),
                null_values=[""],
                include_columns=[name for name in header if name in (*numbers.values(), *texts)],
            ),
        )
        columns = {name: _plain(table[column], name) for name, column in numbers.items()}
    except (pyarrow.ArrowException, OSError, ValueError):
        return None
    if ESTIMATE in columns:
        columns[ESTIMATE] = np.where(columns[ESTIMATE] > 0.0, columns[ESTIMATE], np.nan)
    for name, unit_s in zip(numbers, _factors(numbers.values(), factor), strict=True):
        columns[name] = columns[name] * unit_s
    ids = [str(number) for number in range(1, len(table) + 1)]
    depends = zip(ids, table[DEPENDS].to_pylist(), strict=True) if DEPENDS in header else ()
    return TraceTable(
        np.array(ids, dtype=object),
        submit_s=rounded(columns[COLUMNS[0]]),
        run_s=rounded(columns[COLUMNS[1]]),
        cpus=columns[COLUMNS[2]],
        needs={name: rounded(columns[name]) for name in NEEDS if name in columns},
        depends={id: names for id, text in depends if text and (names := parse_ids(text))},
        labels={name: _labels(table[name]) for name in LABELS if name in header},
    )


def factor_of(unit: str, where: object) -> float:
    """Return the seconds of a unit of time. Raises InputError."""
    if unit not in SECONDS:
        raise UnknownNameError(where, "unit of time", unit, SECONDS, "Give the unit of arrival_time and length.")
    return SECONDS[unit]


def _header(stream: Iterator[str], path: Path | str) -> tuple[list[str], dict[str, int], str]:
    """Return the names of the columns, their places by names without ALIASES, and the separator. Raises InputError."""
    first = next(stream, "")
    separator = "|" if "|" in first else ","
    header = [name.strip() for name in next(csv_rows(csv.reader([first], delimiter=separator), path, _ROWS), [])]
    names = [ALIASES.get(name, name) for name in header]
    where, hint = f"{path} line 1", "the header must be arrival_time,length,cpus"
    missing = next((alias for alias in ALIASES if ALIASES[alias] in COLUMNS and ALIASES[alias] not in names), None)
    if missing is not None:
        raise InputError(where, f"lacks the column {missing!r}", hint)
    if "walltime_s" in names:
        raise InputError(where, "a job with a length has no walltime_s", f"call the column {ESTIMATE}")
    twice = [column for column, name in zip(header, names, strict=True) if names.count(name) > 1]
    if twice:
        raise InputError(where, f"names a column twice: {' and '.join(twice[:4])}", "leave one of them out")
    return header, {name: place for place, name in enumerate(names)}, separator


def _factors(header: Iterable[str], unit_s: float) -> list[float]:
    """Return the factor to the unit of a job of each column: the unit of the file for times of ALIASES."""
    return [unit_s if ALIASES.get(name, COLUMNS[2]) != COLUMNS[2] else 1.0 for name in header]


def _plain(column: pyarrow.ChunkedArray, name: str) -> Column:
    """Return a column as numbers, NaN for empty cells. Raises ValueError if a value needs a check."""
    values: Column = column.to_numpy()
    present = values[~np.isnan(values)]
    if name in NEEDS:
        good = len(present) == len(values) - column.null_count and bool(NEEDS[name][0](present).all())
    else:
        good = len(present) == len(values) and bool(np.isfinite(present).all())
    if name == COLUMNS[2]:
        good = good and bool((np.abs(present) < _MOST_CPUS).all() and (present == np.floor(present)).all())
    if not good:
        raise ValueError(name)
    return values


def _labels(column: pyarrow.ChunkedArray) -> Texts:
    """Return a column as texts without surrounding blanks."""
    return labels_of(text.strip() for text in column.to_pylist())
