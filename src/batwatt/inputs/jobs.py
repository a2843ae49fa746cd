"""Jobs of a source: the columns that jobs have, the check of their cells, the table, and the readers of CSV and frames.

Each reader of jobs makes a table of columns by name; `checked` is the only check of their cells. COLUMNS has the names
of the columns, which are in s, and other names of them (`arrival_time,length,cpus`, as in GAIA and others), whose times
are in the unit of the file. Submissions and starts may be dates, which become s since 1970. Empty cells are unknown.
"""

from __future__ import annotations

import csv
import logging
import math
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, tzinfo
from functools import lru_cache
from graphlib import CycleError, TopologicalSorter
from itertools import islice
from operator import itemgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import numpy.typing as npt

from batwatt.checks import SHOWN, plain_number, shown
from batwatt.errors import InputError, UnknownNameError, remark
from batwatt.files import open_text
from batwatt.model.signal import parse_date
from batwatt.model.workload import (
    CHECKPOINT_S,
    DEPENDS,
    ESTIMATE,
    LABELS,
    LENGTH,
    MEMORY,
    POWER_MAX_W,
    POWER_STD_W,
    POWER_W,
    RECOVERY_S,
    RELEASE,
    START_S,
    USE,
)
from batwatt.units import number_text

if TYPE_CHECKING:
    import pandas as pd

Numbers = npt.NDArray[np.float64]
Texts = npt.NDArray[np.object_]
Rows = npt.NDArray[np.int64] | npt.NDArray[np.bool_]
Cells = Sequence[object] | npt.NDArray[Any]
TimeUnit = Literal["s", "min", "h", "seconds", "minutes", "hours"]
SECONDS: dict[str, float] = {"s": 1.0, "min": 60.0, "h": 3600.0, "seconds": 1.0, "minutes": 60.0, "hours": 3600.0}
"""Seconds of each unit of time of a job CSV."""

SUBMISSION, HOSTS = "submission_time_s", "hosts"
WHOLE_LENGTH = "whole_length_s"
"""Column of the length of a whole job of which a window cut the begin off; `length_s` is the rest."""
REQUIRED = (SUBMISSION, LENGTH, HOSTS)

_TESTS: Mapping[str, Callable[[Numbers], npt.NDArray[np.bool_]]] = {
    "finite": np.isfinite,
    ">= 0": lambda values: (values >= 0.0) & np.isfinite(values),
    "in ]0, 1]": lambda values: (values > 0.0) & (values <= 1.0),
    "a whole number below 2^53": lambda values: (np.abs(values) < 2.0**53) & (values == np.floor(values)),
}
"""Bounds of a column -> their test."""


@dataclass(frozen=True)
class JobColumn:
    """A column of jobs: its name, other names, the type of its cells, and the bounds of its numbers.

    Numbers are those of the name: of a `time` in s, or, by another name, in the unit of the file. A `date` is a time or
    a date. Cells of `ids` are ids of jobs, separated by blanks or semicolons, or a list.
    """

    name: str
    aliases: tuple[str, ...] = ()
    type: Literal["number", "time", "date", "text", "ids"] = "number"
    bounds: str = ">= 0"


_LIST = (
    JobColumn("id", type="text"),
    JobColumn(SUBMISSION, ("submission_time", "arrival_time"), "date", "finite"),
    JobColumn(LENGTH, ("length",), "time", "finite"),
    JobColumn(HOSTS, ("cpus",), bounds="a whole number below 2^53"),
    JobColumn(MEMORY),
    # an estimate of 0 s or less is unknown
    JobColumn(ESTIMATE, ("estimate", "walltime"), "time", "finite"),
    JobColumn(USE, bounds="in ]0, 1]"),
    JobColumn(CHECKPOINT_S),
    JobColumn(RECOVERY_S),
    JobColumn(POWER_W),
    JobColumn(POWER_STD_W),
    JobColumn(POWER_MAX_W),
    JobColumn(START_S, ("start",), "date"),
    JobColumn(RELEASE),
    JobColumn(WHOLE_LENGTH),
    *(JobColumn(name, type="text") for name in LABELS),
    JobColumn(DEPENDS, type="ids"),
)
COLUMNS = {column.name: column for column in _LIST}
"""The columns of jobs by name, in the order in which readers have them: REQUIRED ones, and any others."""
ALIASES = {alias: column.name for column in _LIST for alias in column.aliases}
"""Other names of columns."""
NEEDS = tuple(name for name, column in COLUMNS.items() if column.type not in ("text", "ids") and name not in REQUIRED)
"""Optional columns of numbers."""

_ENDS = re.compile("\r\n|\r|\n")
"""Ends of lines of a text, as `open` tells them."""
ROWS = 2_000
"""Number of rows of a part of a CSV file: its cells fit the cache, and its numbers take a fraction of their memory."""
_NAMES = "the columns are submission_time_s,length_s,hosts, or arrival_time,length,cpus"
_EMPTY = "leave it empty if it is unknown"
_NO_DATES = frozenset({"", "Unknown", "None", "N/A"})
_PLAIN_DATE = len("2024-07-01T13:00:00")
_log = logging.getLogger(__name__)


# a table of jobs ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Jobs:
    """Jobs of a source by column: COLUMNS that it has, and further ones; NaN, "" or () is unknown.

    `origin_s` is the date of 0 s of its times in s since 1970, or None: not known. `lines` are numbers of the lines
    (`unit`) of the source. As an iterable, it is the jobs, each a dictionary of its columns with a value.
    """

    columns: Mapping[str, npt.NDArray[Any]]
    source: object
    origin_s: float | None = None
    lines: npt.NDArray[np.int64] | None = None
    unit: str = "line"

    @classmethod
    def joined(cls, parts: Sequence[Jobs]) -> Jobs:
        """Return the jobs of one or several parts of a source. Raises InputError if only some have dates."""
        first = parts[0]
        if len(parts) == 1:
            return first
        for part in parts:
            if part.origin_s != first.origin_s:
                raise InputError(part.place(0), "dates and seconds in one column", "write dates on all lines, or none")
        columns = {name: np.concatenate([part.columns[name] for part in parts]) for name in first.columns}
        numbers = [part.lines for part in parts if part.lines is not None]
        lines = np.concatenate(numbers) if numbers else None
        return replace(first, columns=columns, lines=lines)

    def __len__(self) -> int:
        return len(self.columns["id"])

    def __getitem__(self, name: str) -> npt.NDArray[Any]:
        return self.columns[name]

    def __contains__(self, name: str) -> bool:
        return name in self.columns

    def __iter__(self) -> Iterator[dict[str, Any]]:
        for begin in range(0, len(self), ROWS):
            # a part at a time, as lists of numbers take much memory
            cells = [column[begin : begin + ROWS].tolist() for column in self.columns.values()]
            for row in zip(*cells, strict=True):
                job = zip(self.columns, row, strict=True)
                yield {name: _value(name, cell) for name, cell in job if _has_value(name, cell)}

    def place(self, row: int) -> str:
        """Return the source and the line of a row, else the job."""
        if self.lines is None:
            return f"{self.source}: job {self['id'][row]!r}"
        return f"{self.source} {self.unit} {self.lines[row]}"

    def rows(self, rows: Rows) -> Jobs:
        """Return the jobs of the rows of some numbers, in their order, or of a mask."""
        columns = {name: column[rows] for name, column in self.columns.items()}
        return replace(self, columns=columns, lines=None if self.lines is None else self.lines[rows])

    def runnable(self) -> npt.NDArray[np.bool_]:
        """Return the mask of jobs with a run time and a width."""
        mask: npt.NDArray[np.bool_] = (self[LENGTH] > 0.0) & (self[HOSTS] >= 1.0)
        return mask


def _has_value(name: str, cell: Any) -> bool:
    """Return whether a cell has a value; further columns have one everywhere."""
    return name not in COLUMNS or not (cell != cell or cell == "" or cell == ())


def _value(name: str, cell: Any) -> Any:
    """Return the value of a cell: a whole width or number of a further column as int, ids as a list."""
    if isinstance(cell, tuple):
        return list(cell)
    whole = isinstance(cell, float) and cell.is_integer() and (name == HOSTS or name not in COLUMNS)
    return int(cell) if whole else cell


def runnable(jobs: Jobs) -> Jobs:
    """Return the jobs with a run time and a width; one warning has the number of others."""
    mask = jobs.runnable()
    if mask.all():
        return jobs
    text = "%s: %d of %d jobs are skipped, their length or width is 0 or unknown"
    remark(_log, text, jobs.source, int((~mask).sum()), len(jobs))
    return jobs.rows(mask)


# the check ------------------------------------------------------------------------------------------------------------


def names_of(header: Iterable[str], where: object) -> dict[str, str]:
    """Return name in COLUMNS, or of a further column -> name in the source. Raises InputError."""
    names: dict[str, str] = {}
    for own in header:
        name = ALIASES.get(own, own)
        if name in names:
            raise InputError(where, f"names a column twice: {names[name]} and {own}", "leave one of them out")
        names[name] = own
    for name in REQUIRED:
        if name not in names:
            *others, last = map(repr, (name, *COLUMNS[name].aliases))
            raise InputError(where, f"lacks the column {', '.join(others)} or {last}", _NAMES)
    return names


def checked(
    cells: Mapping[str, Cells],
    source: object,
    *,
    unit_s: float = 1.0,
    zone: tzinfo = UTC,
    origin_s: float | None = None,
    lines: npt.NDArray[np.int64] | None = None,
    unit: str = "line",
    before: int = 0,
) -> Jobs:
    """Return the jobs of the cells of columns: texts, numbers or objects, by any of the names of a column.

    Times by other names than those of COLUMNS are in `unit_s` s, dates without an offset in the time zone `zone`; if
    the first submission is a date, all are. With an `origin_s` of 0 s times are dates. Numbers are rounded to 6
    decimals, the resolution of Batsim's times. Without ids jobs are called "1", "2", ..., from one more than `before`,
    the number of jobs before them. Further columns stay as they are. Raises InputError with the line of the first cell
    that is out of its bounds.
    """
    names = names_of(cells, source)
    submissions = cells[names[SUBMISSION]]
    if dated := _are_dates(submissions):
        origin_s = 0.0
    ids = cells[names["id"]] if "id" in names else list(map(str, range(before + 1, before + 1 + len(submissions))))
    # a table without columns but ids has the places
    raw = Jobs({"id": np.asarray(ids, dtype=object)}, source, origin_s, lines, unit)
    columns: dict[str, npt.NDArray[Any]] = {} if "id" in names else {**raw.columns}
    for name, own in names.items():
        column = COLUMNS.get(name)
        if name == "walltime_s":
            _check_walltimes(cells[own], raw)
        elif column is None:
            columns[name] = np.asarray(cells[own])
        elif column.type == "text":
            columns[name] = _texts(cells[own], own, raw)
        elif column.type == "ids":
            columns[name] = _ids(cells[own], own, raw)
        elif column.type == "date" and dated:
            columns[name] = _dates(cells[own], own, raw, zone, columns.get(SUBMISSION))
        else:
            columns[name] = _numbers(cells[own], own, raw, unit_s)
    return replace(raw, columns=columns)


def rounded(values: Numbers) -> Numbers:
    """Return the values rounded to 6 decimals as `round` does, fast."""
    with np.errstate(invalid="ignore", over="ignore"):
        whole = values == np.floor(values)
        if (whole | np.isnan(values)).all():
            return values
        scaled = values * 1e6
        size = np.abs(scaled)
        # products near a tie may round to the other side, and large ones lack the digits
        odd = (np.abs(scaled - np.floor(scaled) - 0.5) <= size * 2.0**-51) | (size >= 2.0**51)
        result: Numbers = np.where(whole, values, np.rint(scaled) / 1e6)
    rows = np.flatnonzero(odd & ~whole)
    result[rows] = [round(value, 6) for value in values[rows].tolist()]
    return result


def has_values(cells: Cells) -> bool:
    """Return whether any cell of a column has a value."""
    if isinstance(cells, np.ndarray) and cells.dtype.kind == "f":
        return not np.isnan(cells).all()
    return any(cell != "" for cell in cells)


def once(texts: Iterable[str]) -> Texts:
    """Return a column of texts in which equal texts are one object."""
    objects: dict[str, str] = {}
    return np.array([objects.setdefault(text, text) for text in texts], dtype=object)


def _numbers(cells: Cells, own: str, raw: Jobs, unit_s: float) -> Numbers:
    """Return the numbers of a column in the unit of its name. Raises InputError."""
    column = COLUMNS[ALIASES.get(own, own)]
    values = _plain_numbers(cells)
    if values is None:
        values = np.full(len(cells), np.nan)
        for row, cell in enumerate(cells.tolist() if isinstance(cells, np.ndarray) else cells):
            try:
                values[row] = math.nan if _lacks(cell) else plain_number(cell)
            except ValueError as error:
                dates = {"date": "s, or dates as 2024-07-01T13:00", "time": "s, or the unit of unit="}
                hint = f"write {dates[column.type]}" if column.type in dates else "write a finite number"
                raise InputError(raw.place(row), f"{own}: {error}", hint) from None
    empty = np.isnan(values)
    # a date before 1970 is < 0
    bounds = "finite" if column.type == "date" and raw.origin_s == 0.0 else column.bounds
    good = _TESTS[bounds](values)
    if column.name not in REQUIRED:
        good |= empty
    if not good.all():
        row = int(np.argmin(good))
        if empty[row]:
            raise InputError(raw.place(row), f"{own} is empty", "write a finite number, or leave the job out")
        got = number_text(cell) if isinstance(cell := cells[row], float) else str(cell).strip()[:SHOWN]
        raise InputError(raw.place(row), f"{own} must be {bounds}, got {got}", _EMPTY)
    if column.name == ESTIMATE:
        values = np.where(values > 0.0, values, np.nan)
    if own != column.name and column.type in ("time", "date"):
        values = values * unit_s
    return rounded(values)


def _plain_numbers(cells: Cells) -> Numbers | None:
    """Return cells as numbers, NaN where empty; None if a cell needs a look."""
    if isinstance(cells, np.ndarray) and cells.dtype.kind in "fiu":
        values = cells.astype(np.float64)
        return None if np.isinf(values).any() else values
    try:
        # join refuses all but texts, such as True, which would be a number
        if "_" in "".join(cells):  # type: ignore[arg-type]  # its TypeError is caught
            return None
        values = np.fromiter(map(float, cells), np.float64, len(cells))
    except (TypeError, ValueError):
        return None
    return values if np.isfinite(values).all() else None


def _lacks(cell: object) -> bool:
    """Return whether a cell is empty."""
    return cell is None or (isinstance(cell, float) and cell != cell) or (isinstance(cell, str) and not cell.strip())


def _are_dates(cells: Cells) -> bool:
    """Return whether the first cell with a value is a date, and not a number."""
    first = next((cell for cell in cells if not _lacks(cell)), None)
    if not isinstance(first, str):
        return False
    try:
        float(first)
        return False
    except ValueError:
        return not math.isnan(parse_date(first.strip()))


def _dates(cells: Cells, own: str, raw: Jobs, zone: tzinfo, since_s: Numbers | None) -> Numbers:
    """Return the dates of a column in s since 1970, those after others not before them. Raises InputError."""
    texts = ["" if _lacks(cell) else str(cell).strip() for cell in cells]
    values = dates_s(texts, zone) if since_s is None else later_s(since_s, texts, zone)
    bad = np.isnan(values)
    if since_s is not None:
        bad &= np.array([text not in _NO_DATES for text in texts], dtype=np.bool_)
    if bad.any():
        row = int(np.argmax(bad))
        problem = f"{own} must be a date, as the first submission is, got {shown(texts[row])}"
        raise InputError(raw.place(row), problem, "write 2024-07-01T13:00 or ...T13:00Z")
    return rounded(values)


def _check_walltimes(cells: Cells, raw: Jobs) -> None:
    """Raise InputError for a walltime, which would end a job of a trace."""
    for row, cell in enumerate(cells):
        if not _lacks(cell):
            problem = "a job with a length has no walltime_s"
            raise InputError(raw.place(row), problem, f"call the column {ESTIMATE}")


def _texts(cells: Cells, own: str, raw: Jobs) -> Texts:
    """Return the texts of a column; equal cells become one object. Raises InputError."""
    cells = cells.tolist() if isinstance(cells, np.ndarray) else cells
    if set(map(type, cells)) <= {str}:
        if own == "id":
            # most ids differ
            ids = list(map(str.strip, cells))
            if "".join(ids).isprintable() and all(ids):
                return np.array(ids, dtype=object)
        else:
            texts = {cell: str(cell).strip() for cell in set(cells)}
            joined = "".join(texts.values())
            if "\n" not in joined and "\r" not in joined:
                return np.array(list(map(texts.__getitem__, cells)), dtype=object)
    return once(_text(cell, own, raw, row) for row, cell in enumerate(cells))


def _text(cell: object, own: str, raw: Jobs, row: int) -> str:
    """Return a text without surrounding blanks; whole numbers are texts, too. Raises InputError."""
    if isinstance(cell, float) and cell == cell:
        # numbers become floats where one is missing
        cell = number_text(cell)
    if isinstance(cell, int) and not isinstance(cell, bool) and cell.bit_length() < 1000:
        cell = str(cell)
    text = "" if _lacks(cell) else cell
    if isinstance(text, str):
        text = text.strip()
        if (text.isprintable() and text) if own == "id" else "\n" not in text and "\r" not in text:
            return text
    raise InputError(raw.place(row), f"{own} must be a text in one line, got {shown(cell)}", "rename it")


def _ids(cells: Cells, own: str, raw: Jobs) -> Texts:
    """Return tuples of ids of texts with blanks or semicolons between them, of lists or numbers. Raises InputError."""
    column = np.empty(len(cells), dtype=object)
    for row, cell in enumerate(cells.tolist() if isinstance(cells, np.ndarray) else cells):
        if _lacks(cell):
            column[row] = ()
        elif isinstance(cell, str):
            column[row] = tuple(parse_ids(cell))
        elif isinstance(cell, list | tuple):
            column[row] = tuple(_text(one, own, raw, row) for one in cell)
        elif isinstance(cell, int | float):
            column[row] = (_text(cell, own, raw, row),)
        else:
            problem = f"{own} must be a list of ids, got {shown(cell)}"
            raise InputError(raw.place(row), problem, 'write for instance ["17"]')
    return column


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


# dates ----------------------------------------------------------------------------------------------------------------


def each(texts: Sequence[str], read: Callable[[str], float]) -> Numbers:
    """Return `read` of each text, with one call for equal texts."""
    values = {text: read(text) for text in set(texts)}
    return np.fromiter(map(values.__getitem__, texts), dtype=np.float64, count=len(texts))


def dates_s(texts: Sequence[str], zone: tzinfo, unit_s: float = 1.0) -> Numbers:
    """Return `parse_date` of each text; fast for dates in UTC as sacct writes them."""
    if zone is UTC:
        # other texts, also with an offset, have other lengths; numpy would accept `now`
        plain, lengths = texts, set(map(len, texts))
        if lengths != {_PLAIN_DATE}:
            plain = ["NaT" if text in _NO_DATES else text for text in texts]
            lengths = {len(text) for text in plain if text != "NaT"}
        if lengths <= {_PLAIN_DATE}:
            try:
                dates = np.array(plain, dtype="datetime64[s]")
                return np.where(np.isnat(dates), np.nan, dates.astype(np.int64))
            except ValueError:
                pass
    return each(texts, lambda text: parse_date(text, zone, unit_s))


def later_s(since_s: Numbers, texts: Sequence[str], zone: tzinfo, unit_s: float = 1.0) -> Numbers:
    """Return `dates_s` of texts that are not before other dates, such as ends of jobs that have started.

    A date without an offset, in an hour that clocks of the zone show twice, is of the first one, or of the second one
    if it would else be too early.
    """
    later = dates_s(texts, zone, unit_s)
    for row in np.flatnonzero(later < since_s).tolist() if zone is not UTC else ():
        # a date with an offset is the same in any zone
        if later[row] != parse_date(texts[row], UTC, unit_s):
            later[row] += second_s(float(later[row]), zone)
    return later


@lru_cache(maxsize=20_000)
def second_s(date_s: float, zone: tzinfo) -> float:
    """Return the time in s until clocks of a zone show a date for the second time, as in autumn; 0 s if they do not."""
    try:
        moment = datetime.fromtimestamp(date_s, zone)
        first, second = (moment.replace(fold=fold).timestamp() for fold in (0, 1))
    except (ValueError, OverflowError, OSError):
        return 0.0
    return second - first


# CSV and frames -------------------------------------------------------------------------------------------------------


def read_jobs_csv(path: Path | str, unit: TimeUnit = "s", zone: tzinfo = UTC, *, others: bool = False) -> Jobs:
    """Read the jobs of a CSV file (or `.gz`) with a header, in the order of its lines.

    Fields are separated by `,`, or by `|` if the header has one. With `others` further columns stay, as texts. Raises
    InputError with the line number.
    """
    unit_s = factor_of(unit, path)
    parts: list[Jobs] = []
    before = 0
    with open_text(path) as stream:
        first = next(stream, "")
        separator = "|" if "|" in first else ","
        hint = "write arrival_time,length,cpus lines"
        header = [name.strip() for name in next(csv_rows(csv.reader([first], delimiter=separator), path, hint), [])]
        names = names_of(header, f"{path} line 1")
        order = [own for name, own in names.items() if name not in COLUMNS and (others or name == "walltime_s")]
        order += [names[name] for name in COLUMNS if name in names]
        for columns, lines in _columns(csv.reader(stream, delimiter=separator), len(header), path, hint):
            cells: dict[str, Cells] = {own: columns[header.index(own)] for own in order}
            parts.append(checked(cells, path, unit_s=unit_s, zone=zone, lines=lines, before=before))
            before += len(lines)
    return Jobs.joined(parts)


def _columns(
    reader: Iterator[list[str]], width: int, path: Path | str, hint: str
) -> Iterator[tuple[Sequence[tuple[str, ...]], npt.NDArray[np.int64]]]:
    """Yield the columns of up to `ROWS` rows below a header, and the lines of these rows; once if there is no row.

    Rows of empty cells are left out. Raises InputError with the line for a row of another width.
    """
    end, empty = 1, True
    while True:
        begin = end
        try:
            rows = list(islice(reader, ROWS))
        except csv.Error as error:
            raise InputError(path, f"is not CSV ({error})", hint) from None
        if not rows:
            if empty:
                yield [()] * width, np.empty(0, dtype=np.int64)
            return
        end = reader.line_num + 1  # type: ignore[attr-defined]  # an attribute of the csv module's reader
        lengths = [1] * len(rows)
        if end - begin != len(rows):
            # a quoted cell has ends of lines
            lengths = [1 + sum(len(_ENDS.findall(cell)) for cell in row) for row in rows]
        # a quotation that the file does not end has one end too many
        lines = np.minimum(begin + np.cumsum(lengths, dtype=np.int64), end)
        # most rows are not empty by their first cell
        if set(map(len, rows)) != {width} or not all(map(str.strip, map(itemgetter(0), rows))):
            some = [any(map(str.strip, row)) for row in rows]
            rows, lines = [row for row, one in zip(rows, some, strict=True) if one], lines[some]
            for row, line in zip(rows, lines, strict=True):
                if len(row) != width:
                    problem = f"has {len(row)} fields, the header {width}"
                    raise InputError(f"{path} line {line}", problem, "correct the line")
        if rows:
            yield list(zip(*rows, strict=True)), lines
            empty = False


def csv_rows(rows: Iterator[list[str]], path: Path | str, hint: str) -> Iterator[list[str]]:
    """Yield the rows with a cell that is not empty. Raises InputError for errors of the csv module."""
    while True:
        try:
            row = next(rows)
        except StopIteration:
            return
        except csv.Error as error:
            raise InputError(path, f"is not CSV ({error})", hint) from None
        if any(map(str.strip, row)):
            yield row


def factor_of(unit: str, where: object) -> float:
    """Return the seconds of a unit of time. Raises InputError."""
    if unit not in SECONDS:
        raise UnknownNameError(where, "unit of time", unit, SECONDS, "Give the unit of arrival_time and length.")
    return SECONDS[unit]


def jobs_of_frame(frame: pd.DataFrame, source: object, zone: tzinfo = UTC) -> Jobs:
    """Return the jobs of a table of pandas, a row a job, without further columns. Raises InputError with the row."""
    if "profile" in frame.columns and not {LENGTH, "length"} & set(frame.columns):
        raise InputError(source, "is the table of a Batsim workload, without lengths", "give the Workload itself")
    names_of(frame.columns, source)
    if not len(frame):
        raise InputError(source, "has no rows", "give a row for each job")
    names = [name for name in frame.columns if ALIASES.get(name, name) in COLUMNS or name == "walltime_s"]
    cells = {name: _cells_of(frame[name]) for name in sorted(names, key=_place_of)}
    return checked(cells, source, zone=zone, lines=np.arange(1, len(frame) + 1), unit="row")


def _place_of(own: str) -> int:
    """Return the place of a column in COLUMNS, -1 for others."""
    return list(COLUMNS).index(ALIASES.get(own, own)) if ALIASES.get(own, own) in COLUMNS else -1


def _cells_of(column: pd.Series[Any]) -> Cells:
    """Return the cells of a column as numbers or objects of Python: None if missing, dates as texts, spans in s."""
    if isinstance(column.dtype, np.dtype) and column.dtype.kind in "iuf":
        return column.to_numpy()
    cells = []
    for cell, missing in zip(column, column.isna(), strict=True):
        plain = cell.tolist() if type(cell).__module__ == "numpy" else cell
        if hasattr(plain, "total_seconds"):
            plain = plain.total_seconds()
        cells.append(None if missing else plain.isoformat() if hasattr(plain, "isoformat") else plain)
    return cells
