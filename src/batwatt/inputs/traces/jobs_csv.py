"""Reader of job traces in CSV: `arrival_time,length,cpus`, as in GAIA and others, with optional columns."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import numpy as np

from batwatt.checks import number_named
from batwatt.errors import InputError, UnknownNameError
from batwatt.files import open_text
from batwatt.inputs.traces.dependencies import ids_of
from batwatt.inputs.traces.trace import TraceJob, csv_rows
from batwatt.inputs.traces.trace_table import NEEDS, TIMES, Column, Texts, TraceTable, labels_of, need, rounded
from batwatt.model.workload import DEPENDS, ESTIMATE, LABELS

if TYPE_CHECKING:
    import pyarrow

TimeUnit = Literal["s", "h", "seconds", "hours"]
SECONDS: dict[str, float] = {"s": 1.0, "h": 3600.0, "seconds": 1.0, "hours": 3600.0}
"""Seconds of each unit of time of a job CSV."""

COLUMNS = ("arrival_time", "length", "cpus")
FIELDS = {**{field: field for field in NEEDS if field not in TIMES.values()}, **TIMES}
"""Optional numeric columns -> fields of a job: memory of the whole job; mean used share of its cores; the time in s
of its checkpoints and recoveries; its mean power in W; in the unit of the times, the user's estimate of the run time,
and the start. A column DEPENDS has ids of jobs to complete first; columns LABELS are texts. Empty cells are unknown.
"""

_MOST_CPUS = 2.0**53
_NUMBER = "write a finite number"
_ROWS = "write arrival_time,length,cpus lines"


def iter_jobs_csv(path: Path | str, unit: TimeUnit = "s") -> Iterator[TraceJob]:
    """Yield the jobs of a CSV file (or `.gz`), one at a time; ids are "1", "2", ... in the order of the lines.

    Fields are separated by `,`, or by `|` if the header has one. Times in s and the columns FIELDS are rounded to 6
    decimals, the resolution of Batsim's times. Further columns become extra fields, as text. Raises InputError with the
    line number.
    """
    factor = factor_of(unit, path)
    with open_text(path) as stream:
        header, separator = _header(stream, path)
        places = [header.index(name) for name in COLUMNS]
        needs = [(header.index(name), name) for name in FIELDS if name in header]
        others = [(i, name) for i, name in enumerate(header) if name not in (*COLUMNS, *FIELDS, *LABELS, DEPENDS)]
        labels = [(header.index(name), name) for name in LABELS if name in header]
        depends = header.index(DEPENDS) if DEPENDS in header else None
        rows = csv.reader(stream, delimiter=separator)
        for count, row in enumerate(csv_rows(rows, path, _ROWS), start=1):
            where = f"{path} line {rows.line_num + 1}"
            if len(row) != len(header):
                raise InputError(where, f"has {len(row)} fields, the header {len(header)}", "correct the line")
            arrival, length, cpus = (
                number_named(where, name, row[i], _NUMBER) for i, name in zip(places, COLUMNS, strict=True)
            )
            if not cpus.is_integer():
                raise InputError(where, f"cpus must be a whole number, got {row[places[2]]}", "correct the line")
            extra: dict[str, object] = {name: row[i] for i, name in others}
            values = {
                FIELDS[name]: need(where, name, row[i].strip() or None, factor if name in TIMES else 1.0)
                for i, name in needs
            }
            estimate = values.pop(ESTIMATE, None)
            extra |= {field: value for field, value in values.items() if value is not None}
            extra |= {name: text for i, name in labels if (text := row[i].strip())}
            if depends is not None and (names := ids_of(row[depends])):
                extra[DEPENDS] = names
            yield TraceJob(
                id=str(count),
                submit_s=round(arrival * factor, 6),
                run_s=round(length * factor, 6),
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
        header, separator = _header(stream, path)
    numbers = [name for name in (*COLUMNS, *FIELDS) if name in header]
    texts = [name for name in (*LABELS, DEPENDS) if name in header]
    try:
        table = arrow_csv.read_csv(
            path,
            read_options=arrow_csv.ReadOptions(column_names=header, skip_rows=1, use_threads=False),
            parse_options=arrow_csv.ParseOptions(delimiter=separator),
            convert_options=arrow_csv.ConvertOptions(
                column_types=dict.fromkeys(numbers, pyarrow.float64()) | dict.fromkeys(texts, pyarrow.string()),
                null_values=[""],
                include_columns=[name for name in header if name in (*numbers, *texts)],
            ),
        )
        columns = {name: _plain(table[name], name) for name in numbers}
    except (pyarrow.ArrowException, OSError, ValueError):
        return None
    if "estimate" in columns:
        estimate = columns["estimate"]
        columns["estimate"] = np.where(estimate > 0.0, estimate, np.nan)
    for name in TIMES:
        if name in columns:
            columns[name] = columns[name] * factor
    ids = [str(number) for number in range(1, len(table) + 1)]
    depends = zip(ids, table[DEPENDS].to_pylist(), strict=True) if DEPENDS in header else ()
    return TraceTable(
        np.array(ids, dtype=object),
        submit_s=rounded(columns["arrival_time"] * factor),
        run_s=rounded(columns["length"] * factor),
        cpus=columns["cpus"],
        needs={field: rounded(columns[name]) for name, field in FIELDS.items() if name in columns},
        depends={id: names for id, text in depends if text and (names := ids_of(text))},
        labels={name: _labels(table[name]) for name in LABELS if name in header},
    )


def factor_of(unit: str, where: object) -> float:
    """Return the seconds of a unit of time. Raises InputError."""
    if unit not in SECONDS:
        raise UnknownNameError(where, "unit of time", unit, SECONDS, "Give the unit of arrival_time and length.")
    return SECONDS[unit]


def _header(stream: Iterator[str], path: Path | str) -> tuple[list[str], str]:
    """Return the names of the columns, and their separator. Raises InputError."""
    first = next(stream, "")
    separator = "|" if "|" in first else ","
    header = [name.strip() for name in next(csv_rows(csv.reader([first], delimiter=separator), path, _ROWS), [])]
    missing = [name for name in COLUMNS if name not in header]
    if missing or len(set(header)) != len(header):
        problem = f"lacks the column {missing[0]!r}" if missing else "names a column twice"
        raise InputError(f"{path} line 1", problem, "the header must be arrival_time,length,cpus")
    return header, separator


def _plain(column: pyarrow.ChunkedArray, name: str) -> Column:
    """Return a column as numbers, NaN for empty cells. Raises ValueError if a value needs a check."""
    values: Column = column.to_numpy()
    present = values[~np.isnan(values)]
    if name in FIELDS:
        good = len(present) == len(values) - column.null_count and bool(NEEDS[FIELDS[name]][0](present).all())
    else:
        good = len(present) == len(values) and bool(np.isfinite(present).all())
    if name == "cpus":
        good = good and bool((np.abs(present) < _MOST_CPUS).all() and (present == np.floor(present)).all())
    if not good:
        raise ValueError(name)
    return values


def _labels(column: pyarrow.ChunkedArray) -> Texts:
    """Return a column as texts without surrounding blanks."""
    return labels_of(text.strip() for text in column.to_pylist())
