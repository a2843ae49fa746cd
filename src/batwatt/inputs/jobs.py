"""Jobs of traces: one job, the columns of many, their dependencies, and the reader of CSV.

Reader of job traces in CSV: `arrival_time,length,cpus`, as in GAIA and others, with optional columns.

Times of ALIASES are in the unit of the file, those of columns in `_s` in s. Optional are the columns NEEDS: memory of
the whole job; mean used share of its cores; the time of its checkpoints and recoveries; its mean power in W; the user's
request (`estimate` or `walltime`) and the start. A column DEPENDS has ids of jobs to complete first; columns LABELS are
texts. Empty cells are unknown.
"""

from __future__ import annotations

import csv
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from graphlib import CycleError, TopologicalSorter
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Literal, overload

import numpy as np
import numpy.typing as npt

from batwatt.checks import SHOWN, number_named
from batwatt.errors import InputError, UnknownNameError
from batwatt.files import open_text
from batwatt.model.workload import (
    CHECKPOINT_S,
    DEPENDS,
    ESTIMATE,
    LABELS,
    MEMORY,
    POWER_MAX_W,
    POWER_STD_W,
    POWER_W,
    RECOVERY_S,
    START_S,
    USE,
)
from batwatt.units import microseconds

if TYPE_CHECKING:
    import pyarrow


@dataclass(frozen=True, slots=True)
class TraceJob:
    """A job of a trace: times in s; `run_s` and `cpus` <= 0 are unknown; `extra` are fields of the job's JSON."""

    id: str
    submit_s: float
    run_s: float
    cpus: int
    requested_s: float | None = None
    extra: Mapping[str, object] = field(default_factory=lambda: MappingProxyType({}))


def csv_rows(rows: Iterator[list[str]], path: Path | str, hint: str) -> Iterator[list[str]]:
    """Yield the rows with a cell that is not empty. Raises InputError for errors of the csv module."""
    while True:
        try:
            row = next(rows)
        except StopIteration:
            return
        except csv.Error as error:
            raise InputError(path, f"is not CSV ({error})", hint) from None
        if any(cell.strip() for cell in row):
            yield row


def parse_ids(text: str) -> list[str]:
    """Return the ids in a text, separated by blanks or semicolons: `17 18` or `17;18`."""
    return text.replace(";", " ").split()


def within(
    depends: Mapping[str, Sequence[str]], jobs: Collection[str], source: object = "<memory>"
) -> dict[str, list[str]]:
    """Return the dependencies of each of `jobs` on others of `jobs`, each once; jobs without any are left out.

    A job outside of `jobs` has ended earlier or is unknown, and is no dependency. Raises InputError if jobs wait for
    each other in a circle, as none of them could ever start.
    """
    inside = {
        job: [name for name in dict.fromkeys(names) if name in jobs] for job, names in depends.items() if job in jobs
    }
    # in order of ids, so that any reader of a trace reports the same circle
    inside = {job: names for job, names in sorted(inside.items()) if names}
    try:
        TopologicalSorter(inside).prepare()
    except CycleError as error:
        # each job waits for the one before
        circle = error.args[1][::-1]
        problem = f"waits for itself: {' after '.join(circle[:5])}{' ...' if len(circle) > 5 else ''}"
        raise InputError(f"{source}: job {circle[0]!r}", problem, "take the circle out of depends_on") from None
    return inside


Column = npt.NDArray[np.float64]
Texts = npt.NDArray[np.object_]
Test = Callable[[Column], npt.NDArray[np.bool_]]

_NOT_NEGATIVE: tuple[Test, str] = (lambda values: (values >= 0.0) & np.isfinite(values), ">= 0")
NEEDS: dict[str, tuple[Test, str]] = {
    MEMORY: _NOT_NEGATIVE,
    ESTIMATE: (np.isfinite, "finite"),
    USE: (lambda values: (values > 0.0) & (values <= 1.0), "in ]0, 1]"),
    CHECKPOINT_S: _NOT_NEGATIVE,
    RECOVERY_S: _NOT_NEGATIVE,
    POWER_W: _NOT_NEGATIVE,
    POWER_STD_W: _NOT_NEGATIVE,
    POWER_MAX_W: _NOT_NEGATIVE,
    START_S: _NOT_NEGATIVE,
}
"""Field of a Batsim job -> test of its valid values in a trace, and the text of the test. An estimate of 0 s or less is
unknown."""
COLUMNS = ("submission_time_s", "length_s", "hosts")
"""Columns that each table of jobs has."""
ALIASES = dict(zip(("arrival_time", "length", "cpus"), COLUMNS, strict=True))
ALIASES |= {"estimate": ESTIMATE, "walltime": ESTIMATE, "start": START_S}
"""Other names of columns of jobs, whose times are in the unit of a file, not in s."""


@dataclass(frozen=True, eq=False)
class TraceTable(Sequence[TraceJob]):
    """Jobs by row: ids, times in s to the microsecond, and columns of NEEDS, NaN for unknown values.

    `labels` are columns of LABELS, empty texts for unknown values; equal texts are one object.

    As a sequence, the table contains the jobs.
    """

    ids: Texts
    submit_s: Column
    run_s: Column
    cpus: Column
    needs: Mapping[str, Column] = field(default_factory=dict)
    depends: Mapping[str, Sequence[str]] = field(default_factory=dict)
    """Id -> ids of the jobs that must complete first."""
    labels: Mapping[str, Texts] = field(default_factory=dict)
    origin_s: float | None = None
    """The date of 0 s of the times, in s since 1970, or None."""

    @classmethod
    def of(cls, jobs: Iterable[TraceJob], source: object) -> TraceTable:
        """Build the table of some jobs, without further extra fields. Raises InputError, which names `source`."""
        if isinstance(jobs, TraceTable):
            return jobs
        jobs = list(jobs)
        needs = {}
        for name in NEEDS:
            cells = [job.requested_s if name == ESTIMATE else job.extra.get(name) for job in jobs]
            if any(value is not None for value in cells):
                values = [
                    need(f"{source}: job {job.id!r}", name, value) for job, value in zip(jobs, cells, strict=True)
                ]
                needs[name] = np.array(values, dtype=float)
        return cls(
            np.array([job.id for job in jobs], dtype=object),
            np.array([microseconds(float(job.submit_s)) for job in jobs]),
            np.array([microseconds(float(job.run_s)) for job in jobs]),
            np.array([job.cpus for job in jobs], dtype=float),
            needs,
            {job.id: _ids(job, source) for job in jobs if DEPENDS in job.extra},
            {
                name: labels_of([str(job.extra.get(name, "")).strip() for job in jobs])
                for name in LABELS
                if any(name in job.extra for job in jobs)
            },
        )

    def __len__(self) -> int:
        return len(self.ids)

    @overload
    def __getitem__(self, index: int) -> TraceJob: ...
    @overload
    def __getitem__(self, index: slice) -> list[TraceJob]: ...
    def __getitem__(self, index: int | slice) -> TraceJob | list[TraceJob]:
        """Return the job of a row."""
        if isinstance(index, slice):
            return [self[row] for row in range(*index.indices(len(self)))]
        id = self.ids[index]
        values = {name: float(column[index]) for name, column in self.needs.items()}
        present = {name: value for name, value in values.items() if value == value}
        requested_s = present.pop(ESTIMATE, None)
        depends: dict[str, object] = {DEPENDS: self.depends[id]} if id in self.depends else {}
        labels = {name: column[index] for name, column in self.labels.items() if column[index]}
        times = float(self.submit_s[index]), float(self.run_s[index])
        return TraceJob(id, *times, int(self.cpus[index]), requested_s, {**present, **labels, **depends})

    def __iter__(self) -> Iterator[TraceJob]:
        return (self[row] for row in range(len(self)))

    def rows(self, rows: npt.NDArray[np.int64] | npt.NDArray[np.bool_]) -> TraceTable:
        """Return the table of the rows of some numbers, in their order, or of a mask."""
        columns = {name: getattr(self, name)[rows] for name in ("ids", "submit_s", "run_s", "cpus")}
        needs = {name: column[rows] for name, column in self.needs.items()}
        labels = {name: column[rows] for name, column in self.labels.items()}
        return replace(self, **columns, needs=needs, labels=labels)


def labels_of(texts: Iterable[str]) -> Texts:
    """Return a column of texts in which equal texts are one object."""
    once: dict[str, str] = {}
    return np.array([once.setdefault(text, text) for text in texts], dtype=object)


def need(where: object, name: str, value: object, factor: float = 1.0) -> float | None:
    """Return a value of NEEDS times `factor`, to 6 decimals; None if unknown. Raises InputError."""
    if value is None:
        return None
    number = number_named(where, name, value, "write a finite number")
    allowed, bounds = NEEDS[ALIASES.get(name, name)]
    if not allowed(np.array(number)):
        got = str(value).strip()[:SHOWN]
        raise InputError(where, f"{name} must be {bounds}, got {got}", "leave it empty if it is unknown")
    return None if bounds == "finite" and not number > 0.0 else round(number * factor, 6)


def rounded(values: Column) -> Column:
    """Return the values rounded to 6 decimals by `round`."""
    values = np.array(values, dtype=float)
    (odd,) = np.nonzero((values != np.floor(values)) & ~np.isnan(values))
    values[odd] = [round(value, 6) for value in values[odd].tolist()]
    return values


def _ids(job: TraceJob, source: object) -> list[str]:
    names = job.extra[DEPENDS]
    if not isinstance(names, list | tuple) or not all(isinstance(name, str) for name in names):
        problem = f"{DEPENDS} must be a list of ids, got {names!r}"
        raise InputError(f"{source}: job {job.id!r}", problem, 'write for instance ["17"]')
    return list(names)


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
