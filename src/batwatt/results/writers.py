"""Write a run's record as Batsim's CSV files."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from batwatt.errors import InputError
from batwatt.files import whole_file
from batwatt.model.record import Record, RowColumns, Rows, listed
from batwatt.results.columns import FILES, Column
from batwatt.results.csv_block import MISSING, TEXTS, block_of

_FORMS = {"text": "%s", "int": "%s", "fixed": "%.6f", "short": "%g", "quoted": '"%s"', "na": "%.6f"}
ROWS = 4096
"""Rows written at once."""


def file_of(prefix: Path | str, stem: str, suffix: str = ".csv") -> Path:
    """Return the path of a file: `out/x` and `jobs` -> `out/x_jobs.csv`. Raises InputError for an unnamed prefix."""
    prefix = Path(prefix)
    if not prefix.name:
        raise InputError(prefix, "is a folder, not a prefix of files", "give a name in it, as out/x")
    return prefix.with_name(f"{prefix.name}_{stem}{suffix}")


def write_rows(path: Path, columns: Sequence[Column], rows: Iterable[Sequence[object]]) -> None:
    """Write a CSV file of rows atomically."""
    with whole_file(path) as out:
        out.write(",".join(column.name for column in columns) + "\n")
        out.writelines(_lines(columns, rows))


def write_columns(path: Path, columns: Sequence[Column], cells: RowColumns) -> None:
    """Write a CSV file of columns atomically; NaN stands for a missing value."""
    count = len(cells[columns[0].name])
    with whole_file(path, "wb") as out:
        out.write((",".join(column.name for column in columns) + "\n").encode())
        for begin in range(0, count, ROWS):
            rows = slice(begin, begin + ROWS)
            block = block_of(columns, cells, rows)
            if block is None:
                listed_cells = (listed(cells[column.name][rows]) for column in columns)
                block = "".join(_lines(columns, zip(*listed_cells, strict=True))).encode()
            out.write(block)


def _lines(columns: Sequence[Column], rows: Iterable[Sequence[object]]) -> Iterator[str]:
    """Yield rows as lines of CSV: one format for a whole row for speed, one for each cell if a value is missing."""
    forms = [column.form for column in columns]
    whole = ",".join(_FORMS[form] for form in forms) + "\n"
    texts = [(place, TEXTS[form]) for place, form in enumerate(forms) if form in TEXTS]
    for cells in rows:
        row = list(cells)
        for place, cells_of in texts:
            [row[place]] = cells_of([str(row[place])])
        if None in row:
            words = (MISSING[form] if value is None and form in MISSING else _FORMS[form] % (value,)
                     for form, value in zip(forms, row, strict=True))  # fmt: skip
            yield ",".join(words) + "\n"
        else:
            yield whole % tuple(row)


def write_record(record: Record, prefix: Path | str) -> list[Path]:
    """Write Batsim's files under `prefix`; return their paths (p-states and energy only for a run with energy)."""
    tables: dict[str, Rows] = {"jobs": record.jobs, "machine_states": record.machine_states}
    written = [file_of(prefix, "schedule")]
    write_rows(written[0], FILES["schedule"], [[record.schedule[column.name] for column in FILES["schedule"]]])
    if record.energy:
        tables["consumed_energy"] = record.consumed_energy
        written.append(file_of(prefix, "pstate_changes"))
        write_rows(written[-1], FILES["pstate_changes"], record.pstate_changes)
    for stem, rows in tables.items():
        written.append(file_of(prefix, stem))
        write_columns(written[-1], FILES[stem], rows.columns())
    return written
