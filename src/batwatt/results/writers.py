"""Writing a run's record as Batsim's CSV files."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from batwatt.files import whole_file
from batwatt.model.record import Record, Rows
from batwatt.results.columns import FILES, Column

_FORMS = {"text": "%s", "int": "%s", "fixed": "%.6f", "short": "%g", "quoted": '"%s"', "na": "%.6f"}
_MISSING = {"fixed": "", "na": "NA"}
"""What stands for None."""


def file_of(prefix: Path | str, stem: str, suffix: str = ".csv") -> Path:
    """`out/x` and `jobs` -> `out/x_jobs.csv`."""
    prefix = Path(prefix)
    return prefix.with_name(f"{prefix.name}_{stem}{suffix}")


def write_rows(path: Path, columns: Sequence[Column], rows: Iterable[Sequence[object]]) -> None:
    """One CSV file, whole or not at all."""
    with whole_file(path) as out:
        out.write(",".join(column.name for column in columns) + "\n")
        out.writelines(_lines(columns, rows))


def _lines(columns: Sequence[Column], rows: Iterable[Sequence[object]]) -> Iterator[str]:
    """One format for the whole row, which is most of the time of writing; one by one only where a value is missing."""
    forms = [column.form for column in columns]
    whole = ",".join(_FORMS[form] for form in forms) + "\n"
    for row in rows:
        if None in row:
            cells = (_MISSING[form] if value is None and form in _MISSING else _FORMS[form] % (value,)
                     for form, value in zip(forms, row, strict=True))  # fmt: skip
            yield ",".join(cells) + "\n"
        else:
            yield whole % tuple(row)


def write_record(record: Record, prefix: Path | str) -> list[Path]:
    """Batsim's files under `prefix`; returns their paths (those of p-states and energy only for a run with energy)."""
    tables: dict[str, Sequence[Sequence[object]] | Rows] = {
        "jobs": record.jobs,
        "schedule": [[record.schedule[column.name] for column in FILES["schedule"]]],
        "machine_states": record.machine_states,
    }
    if record.energy:
        tables["pstate_changes"] = record.pstate_changes
        tables["consumed_energy"] = record.consumed_energy
    written = []
    for stem, rows in tables.items():
        path = file_of(prefix, stem)
        write_rows(path, FILES[stem], rows)
        written.append(path)
    return written
