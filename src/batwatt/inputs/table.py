"""Tables of texts: CSV of any dialect, the text of the riskaware paper, and JSON of APIs, packed by gzip or not."""

from __future__ import annotations

import csv
import io
import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from batwatt.checks import load_json
from batwatt.errors import InputError, UnknownNameError
from batwatt.files import read_text
from batwatt.model.timeline import MACHINES
from batwatt.units import SINCE_1970_S

TIME = "time_s"
"""Name of the column with times in s of the run."""
_NAMES = (
    TIME, "datetime (utc)", "datetime", "time", "timestamp", "date", "mtu", "utc_timestamp", "point_time", "oootime",
    "measured_on", "from", "valid_from", "start", "start_time", "start date", "datum von", "unix_seconds", "unixtime",
    "time stamp", "date/time", "datum", "zeit",
)  # fmt: skip
_BEGIN = re.compile(r"(?<![a-z])(?:start|starting|begin|beginning|beginn|anfang|from|von)(?![a-z])|intervalstart")
_END = re.compile(
    r"(?<![a-z])(?:end|ends|ending|ende|until|bis|he)(?![a-z])|(?:^|valid[ _])to$"
    # of AEMO the end of its interval
    r"|hourending|intervalend|^settlementdate$"
)
"""Words in the name of a column of begins, and of ends, of intervals."""
_DATE = re.compile(r"\d{4}[-/]\d\d?[-/]\d\d?|\d{1,2}[./]\d{1,2}[./]\d{4}|\d{8}:\d{4}$")
STATED_ZONE = re.compile(r"\(\s*([A-Za-z/]+)\s*\)\s*$")
MAX_COLUMNS = 1000
"""Greatest number of columns: a table with more has its times in columns, or is not a table."""
ROWS = 20_000
"""Number of rows that are lists at a time: as columns, cells take a fraction of the memory."""
_HEADER = f"the first line must name the columns, as in '{TIME},power_w'"
_MORE_FIELDS = "name all columns, and write 395.7 where it is a decimal comma"
_TEXT = f"begin with the number of machines at 0 s, then 'time count' lines; or write CSV with '{TIME},{MACHINES}'"
_JSON = "write a list of objects, an object of lists of equal length, or a list of pairs; or CSV (DataFrame.to_csv)"
_DEEPEST = 6
_PVGIS = re.compile(r"^(?:time|time\(UTC\)),.*\n(?:\d{8}:\d{4},.*\n?)+", re.MULTILINE)
"""The table of an hourly export of PVGIS, between a block on the site and one on the columns."""
_PVGIS_UNIT = re.compile(r"^(\S+): .*\(([^()\n]+)\)[ \t\r]*$", re.MULTILINE)
_BLANK_GROUPS = re.compile("(?<=\\d)[\u00a0\u202f' ](?=\\d{3}(?!\\d))")
_THOUSANDS = re.compile(r"[+-]?\d{1,3}(?:,\d{3})+(?:\.\d+)?")
_DECIMAL = re.compile(r"[+-]?(?:\d{1,3}(?:\.\d{3})+|\d*),\d+(?:[eE][+-]?\d+)?")


@dataclass(frozen=True, eq=False)
class Table:
    """Columns of texts, without blanks around them, in the order of a file.

    `names` are those of the file, and may be equal. `numbers` has the number of each row in the file, of its line or,
    in JSON, of its object. `lengths` has the number of cells of each row with fewer than there are columns. `unit` is
    the unit of the whole table, `units` those of columns, as far as the file states them apart from the names.
    """

    path: Path
    names: list[str]
    columns: list[list[str]]
    numbers: Sequence[int]
    row: str = "line"
    lengths: Mapping[int, int] = field(default_factory=dict)
    unit: str = ""
    units: Mapping[str, str] = field(default_factory=dict)

    @property
    def first(self) -> list[str]:
        """The cells of the first row."""
        return [cells[0] for cells in self.columns if cells]

    @property
    def ends(self) -> list[str]:
        """The columns of ends of intervals, those in UTC first."""
        return _named_by(_END, self.names, self.first)

    def place(self, row: int) -> str:
        """Return the file and the line of a row, as errors name them."""
        return f"{self.path}: {self.row} {self.numbers[row]}"

    def named(self, name: str, hint: str = "The first line names the columns.") -> str:
        """Return the name of a column, without regard to numbers of blanks and to the objects of JSON around it.

        Raises InputError for none or several.
        """
        if name not in self.names:
            plain = " ".join(name.split())
            inner = [one for one in self.names if one.endswith(f".{name}") or " ".join(one.split()) == plain]
            if len(inner) != 1:
                raise UnknownNameError(self.path, "column", name, self.names, hint)
            name = inner[0]
        count = self.names.count(name)
        if count > 1:
            raise InputError(self.path, f"{count} columns are called {name!r}", "rename all but one in the first line")
        return name

    def column(self, name: str) -> list[str]:
        """Return the cells of a column. Raises InputError for a row that ends before it."""
        index = self.names.index(name)
        for row, length in self.lengths.items():
            if length <= index:
                raise InputError(self.place(row), f"no value in column {name!r}", "complete the row")
        return self.columns[index]

    def only(self, name: str, text: str) -> Table:
        """Return the rows with a text in a column."""
        rows = [row for row, cell in enumerate(self.column(name)) if cell == text]
        columns = [[cells[row] for row in rows] for cells in self.columns]
        lengths = {new: self.lengths[row] for new, row in enumerate(rows) if row in self.lengths}
        return replace(self, columns=columns, numbers=[self.numbers[row] for row in rows], lengths=lengths)


def numbers_in(cells: Sequence[str]) -> npt.NDArray[np.float64]:
    """Return the numbers of cells, NaN for a text that is none; `1_000` is none."""
    read: Callable[[str], float] = number_in if "_" in "".join(cells) else float
    try:
        return np.fromiter(map(read, cells), np.float64, len(cells))
    except ValueError:
        return np.fromiter(map(number_in, cells), np.float64, len(cells))


def number_in(cell: str) -> float:
    """Return the number of a cell, NaN for a text that is none."""
    try:
        return math.nan if "_" in cell else float(cell)
    except ValueError:
        return math.nan


def read_table(path: Path) -> Table:
    """Read all cells as texts, with the header unchanged; a column without a name is called `column N`.

    Columns of CSV are separated by commas, semicolons, tabs or blanks; numbers may have decimal commas or separators of
    thousands, which become decimal points. The riskaware text is a table of `time_s` and `machines`. JSON is a list of
    objects, an object of lists of equal length, or a list of pairs. First lines that begin with `#` are skipped. Raises
    InputError with the line.
    """
    text = _without_comments(read_text(path))
    first = text.lstrip()[:1]
    if first == "<":
        kind = "XML" if re.match(r"\s*<(?:!doctype )?html", text, re.IGNORECASE) is None else "a page of HTML"
        raise InputError(path, f"is {kind}", "take the CSV export of the same series, or JSON")
    if first in ("{", "["):
        return _json_table(text, path)
    # a line of Excel; numbers of lines stay
    text = re.sub(r"\A\s*sep=.\r?\n", lambda match: "\n" * match[0].count("\n"), text)
    plain = text.replace("\r\n", "\n") if "\n2" in text and ":" in text else ""
    pvgis = _PVGIS.search(plain)
    if pvgis is None:
        return _csv_table(text, path)
    table = _csv_table("\n" * plain.count("\n", 0, pvgis.start()) + pvgis[0], path)
    return replace(table, units=dict(_PVGIS_UNIT.findall(plain[pvgis.end() :])))


def is_in_seconds(path: Path, column: str) -> bool:
    """Return whether a file has a header with `time_s` and a column, or none, as riskaware's. Raises InputError."""
    header = _without_comments(read_text(path)).lstrip().partition("\n")[0].strip()
    return {TIME, column} <= {name.strip() for name in header.split(",")} or header[:1] in "+-.0123456789"


def _without_comments(text: str) -> str:
    """Return a text with empty lines for its first lines that begin with `#`; the last one may be the header.

    It is if the next line begins with a number and has as many commas.
    """
    below = re.sub(r"\A(?:[ \t]*(?:#.*)?\r?\n)+", "", text)
    lines = text[: len(text) - len(below)].splitlines()
    first = below.partition("\n")[0]
    if lines and first[:1].isdigit() and first.count(",") == lines[-1].count(",") > 0:
        below = f"{lines.pop().lstrip('# ')}\n{below}"
    return "\n" * len(lines) + below


def looks_like_date(text: str) -> bool:
    """Return whether a cell begins like a date."""
    return _DATE.match(text.strip()) is not None


def time_column_of(names: Sequence[str], cells: Sequence[str]) -> str | None:
    """Return the column of times by a usual name, also with a time zone as in `MTU (UTC)`, or None.

    Else the first column of times that are begins, else ends, by a word of its name and its cell in the first row; one
    in UTC precedes others.
    """
    by_name = {STATED_ZONE.sub("", name.lower()).strip(): name for name in reversed(names)}
    by_name |= {name.lower(): name for name in reversed(names)}
    usual = next((by_name[name] for name in _NAMES if name in by_name), None)
    return usual or next(iter([name for words in (_BEGIN, _END) for name in _named_by(words, names, cells)]), None)


def _named_by(words: re.Pattern[str], names: Sequence[str], cells: Sequence[str]) -> list[str]:
    firsts = {name: cell for name, cell in zip(names, cells, strict=False) if words.search(words_of(name))}
    timely = [name for name, cell in firsts.items() if looks_like_date(cell) or number_in(cell) >= SINCE_1970_S]
    return sorted(timely, key=lambda name: re.search(r"utc|gmt", name.lower()) is None)


def says_end(name: str) -> bool:
    """Return whether the name of a column says that its times are ends of intervals."""
    return bool(_END.search(words_of(name)) and not _BEGIN.search(words_of(name)))


def words_of(name: str) -> str:
    """Return a name in lower case, with blanks within `PeriodEnd`."""
    return re.sub(r"(?<=[a-z])(?=[A-Z])", " ", name).lower()


# CSV ------------------------------------------------------------------------------------------------------------------


def _csv_table(text: str, path: Path) -> Table:
    """Return the table of a CSV text, or of the text of the riskaware paper, which begins with a number."""
    filled = (line for line in io.StringIO(text, newline="") if line.strip())
    header, below = next(filled, "").strip("\r\n"), next(filled, "")
    if not header:
        raise InputError(path, "is empty", _HEADER)
    if len(header.split()) == 1 and math.isfinite(number_in(header)):
        return _machines_table(text, path)
    separator = next((sign for sign in ";\t" if sign in header and sign in below), None)
    separator = separator or next((sign for sign in ",;\t" if sign in header), " ")
    names, columns, numbers, lengths = _csv_columns(text, separator, path)
    if names and (looks_like_date(names[0]) or re.fullmatch(r"\s*[\d.,]+\s*", names[0])):
        raise InputError(path, f"has no line of header, but {header[:40]!r}", _HEADER)
    if not numbers:
        raise InputError(path, "has no rows below a header", _HEADER)
    names = [name.strip() or f"column {number}" for number, name in enumerate(names, start=1)]
    table = Table(path, names, columns, numbers, lengths=lengths)
    first, second = columns[0][0], "".join(columns[0][1:2])
    if looks_like_date(second) and first and not first[0].isdigit():
        cells = ", ".join(column[0][:20] for column in columns[:6])
        raise InputError(table.place(0), f"is a second line of header: {cells}", "name each column in one line")
    for index, column in enumerate(columns):
        if "," in "".join(column):
            columns[index] = _with_points(column, separator)
    return table


def _csv_columns(text: str, separator: str, path: Path) -> tuple[list[str], list[list[str]], list[int], dict[int, int]]:
    """Return the header and the columns of a CSV text without empty rows, lines and lengths of rows as in `Table`.

    Raises InputError for a row with more cells than the header.
    """
    stream: Iterator[str] = io.StringIO(text, newline="")
    if separator == " ":
        stream = (line.replace("\t", " ").strip() for line in stream)
    reader = csv.reader(stream, delimiter=separator, skipinitialspace=True, strict=True)
    rows: list[list[str]] = []
    numbers: list[int] = []
    lengths: dict[int, int] = {}
    try:
        header = next((row for row in reader if any(map(str.strip, row))), [])
        count = len(header)
        if count > MAX_COLUMNS:
            problem = f"has {count} columns, more than {MAX_COLUMNS}"
            raise InputError(path, problem, "write the values below each other")
        columns: list[list[str]] = [[] for _ in header]
        for row in reader:
            # most rows are not empty by their first cell
            if len(row) != count or not row[0].strip():
                if not any(map(str.strip, row)):
                    continue
                if any(map(str.strip, row[count:])):
                    problem = f"has {len(row)} fields where the header names {count}"
                    raise InputError(f"{path}: line {reader.line_num}", problem, _MORE_FIELDS)
                if len(row) < count:
                    lengths[len(numbers)] = len(row)
                row = (row + [""] * count)[:count]
            rows.append(row)
            numbers.append(reader.line_num)
            if len(rows) == ROWS:
                add_rows(columns, rows)
    except csv.Error as error:
        raise InputError(f"{path}: line {reader.line_num}", f"is not CSV ({error})", _HEADER) from None
    add_rows(columns, rows)
    return header, columns, numbers, lengths


def add_rows(columns: list[list[str]], rows: list[list[str]]) -> None:
    """Move rows to the ends of columns, without blanks around their cells."""
    for column, cells in zip(columns, zip(*rows, strict=True), strict=False):
        column.extend(map(str.strip, cells))
    rows.clear()


def _with_points(cells: list[str], separator: str) -> list[str]:
    """Return cells with decimal points, without separators of thousands; unchanged if not numeric or ambiguous.

    `12,345` is 12.345 if another cell of the column requires it, or if semicolons separate columns.
    """
    plain = [_BLANK_GROUPS.sub("", cell) for cell in cells]
    commas = [cell for cell in plain if "," in cell]
    thousands, decimals = ([bool(form.fullmatch(cell)) for cell in commas] for form in (_THOUSANDS, _DECIMAL))
    # 0,125 has no separator of thousands
    small = any(re.match(r"[+-]?0,", cell) for cell in commas)
    pointed = any("." in cell for cell in plain if "," not in cell)
    if all(thousands) and not small and (pointed or not all(decimals)):
        return [cell.replace(",", "") for cell in plain]
    if all(decimals) and not pointed and (small or not all(thousands) or separator == ";"):
        return [cell.replace(".", "").replace(",", ".") for cell in plain]
    return cells


def _machines_table(text: str, path: Path) -> Table:
    """Return the table of the riskaware text: the count at 0 s in the first line, then lines `time count`."""
    rows: list[list[str]] = []
    numbers: list[int] = []
    for number, line in enumerate(text.split("\n"), start=1):
        words = line.split()
        if words and rows and len(words) != 2:
            raise InputError(f"{path}: line {number}", f"has {len(words)} fields, 'time count' has 2", _TEXT)
        if words:
            rows.append(words if rows else ["0", *words])
            numbers.append(number)
    return Table(path, [TIME, MACHINES], [list(column) for column in zip(*rows, strict=True)], numbers)


# JSON -----------------------------------------------------------------------------------------------------------------


def _json_table(text: str, path: Path) -> Table:
    """Return the only table with times in a JSON text, or without usual names of times the only one. Raises InputError.

    Names within objects are joined by dots (`intensity.actual`). In the objects around the table, `unit` and `units`
    (also of `meta`) are its units.
    """
    tables = [one for one in _tables(load_json(text, path), "", {}, path) if len(one[2].names) > 1]
    best = min((rank for rank, _, _ in tables), default=0)
    tables = [one for one in tables if one[0] == best]
    if len(tables) == 1:
        return tables[0][2]
    if tables:
        places = ", ".join(place for _, place, _ in tables[:12])
        raise InputError(path, f"has {len(tables)} tables: {places}", "leave one of them in the file")
    raise InputError(path, "has no table", _JSON)


def _tables(
    value: Any, place: str, siblings: Mapping[str, Any], path: Path, depth: int = 0
) -> Iterator[tuple[int, str, Table]]:
    """Yield (rank, place, table) of each table in a value at `place`; `siblings` are the values of objects around it.

    The rank is 0 for a table with a usual name of times, then 1 for objects, 2 for lists, 3 for pairs.
    """
    if depth > _DEEPEST:
        return
    if isinstance(value, list) and value and all(isinstance(row, dict) for row in value):
        rows = [dict(_flat(row)) for row in value]
        names = list(dict.fromkeys(name for row in rows for name in row))
        columns = {name: [row.get(name) for row in rows] for name in names}
        yield _table(1, place, columns, siblings, path)
        for row in value:
            inner = {key: cells for key, cells in row.items() if isinstance(cells, list)}
            yield from _tables(inner, place, {**siblings, **row}, path, depth)
    elif isinstance(value, list) and len(value) > 1 and all(_is_scalars(row) and len(row) == 2 for row in value):
        head = ["time", "value"]
        if all(isinstance(cell, str) and math.isnan(number_in(cell)) for cell in value[0]):
            head, value = (value[0], value[1:]) if not looks_like_date(value[0][0]) else (head, value)
        pairs = {name: [row[index] for row in value] for index, name in enumerate(head)}
        yield _table(3, place, pairs, siblings, path)
    elif isinstance(value, dict):
        siblings = {**siblings, **value}
        lists = {key: cells for key, cells in value.items() if _is_scalars(cells)}
        if len(lists) > 1 and len({*map(len, lists.values())}) == 1:
            yield _table(2, place, lists, siblings, path)
        for key, inner in value.items():
            yield from _tables(inner, f"{place}.{key}" if place else key, siblings, path, depth + 1)


def _is_scalars(value: Any) -> bool:
    """Return whether a value is a list, not empty, of neither lists nor objects."""
    return isinstance(value, list) and bool(value) and not any(isinstance(cell, list | dict) for cell in value)


def _flat(row: Mapping[str, Any], before: str = "", depth: int = 0) -> Iterator[tuple[str, Any]]:
    for key, value in row.items():
        if isinstance(value, dict) and depth < _DEEPEST:
            yield from _flat(value, f"{before}{key}.", depth + 1)
        elif not isinstance(value, list | dict):
            yield before + key, value


def _table(
    rank: int, place: str, columns: Mapping[str, Sequence[Any]], siblings: Mapping[str, Any], path: Path
) -> tuple[int, str, Table]:
    """Return the rank, the place and the table of columns, with its units."""
    meta = siblings.get("meta")
    stated = [owner.get(key) for owner in (siblings, meta) if isinstance(owner, dict) for key in ("unit", "units")]
    # PVGIS has meta.outputs.hourly.variables for its table outputs.hourly
    for key in (*place.split("."), "variables"):
        meta = meta.get(key) if isinstance(meta, dict) else None
    # Open-Meteo has hourly_units for its table hourly
    units = _units_in(siblings.get(f"{place.rpartition('.')[2]}_units")) | _units_in(meta)
    cells = [[_text(cell) for cell in column] for column in columns.values()]
    numbers = range(1, len(next(iter(cells), ())) + 1)
    unit = next((unit for unit in stated if isinstance(unit, str)), "")
    table = Table(path, list(columns), cells, numbers, row="row", unit=unit, units=units)
    timely = rank < 3 and time_column_of(table.names, table.first) is not None
    return 0 if timely else rank, place or "the file", table


def _units_in(described: Any) -> dict[str, str]:
    """Return the units by column, of an object such as `{"P": {"units": "W"}}` or `{"P": "W"}`."""
    if not isinstance(described, dict):
        return {}
    units = {name: one.get("units") if isinstance(one, dict) else one for name, one in described.items()}
    return {name: unit for name, unit in units.items() if isinstance(unit, str)}


def _text(cell: Any) -> str:
    if cell is None:
        return ""
    return str(cell).lower() if isinstance(cell, bool) else str(cell).strip()
