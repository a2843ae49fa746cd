"""Reader of the lengths of the jobs of a reference, from CSV or a trace."""

from __future__ import annotations

import csv
from collections.abc import Iterable
from functools import lru_cache
from pathlib import Path

import numpy as np

from batwatt.checks import finite
from batwatt.errors import InputError
from batwatt.files import open_text
from batwatt.inputs.traces.riskaware_text import read_riskaware
from batwatt.inputs.traces.trace import csv_rows
from batwatt.model.work import Reference

COLUMNS = ("length_s", "area_core_s")


def read_reference(path: Path | str) -> Reference:
    """Read a reference from a CSV file `length_s,area_core_s`, or from a trace in the riskaware paper's format.

    A cache has the last references, for the runs of a campaign. Raises InputError.
    """
    try:
        state = Path(path).stat()
        version = state.st_mtime_ns, state.st_size
    except (OSError, ValueError):
        version = None  # opening it raises InputError
    return _read(str(path), version)


@lru_cache(maxsize=4)
def _read(path: str, version: tuple[int, int] | None) -> Reference:
    with open_text(path) as stream:
        header = [cell.strip() for cell in next(stream, "").split(",")]
        if header == list(COLUMNS):
            return _of_rows(csv_rows(csv.reader(stream), path, f"write {','.join(COLUMNS)} rows"), path)
    jobs = read_riskaware(path)
    return Reference.of([job.run_s for job in jobs], [job.cpus for job in jobs])


def _of_rows(rows: Iterable[list[str]], path: Path | str) -> Reference:
    table: list[tuple[float, float]] = []
    for number, row in enumerate(rows, start=2):
        try:
            length_s, area = (finite(cell) for cell in row)
            if not (length_s > 0.0 and area > 0.0 and (not table or length_s > table[-1][0])):
                raise ValueError
        except ValueError:
            problem = f"{','.join(row)[:60]!r} is not a length and an area, both > 0, lengths ascending"
            raise InputError(f"{path}: line {number}", problem, f"write {','.join(COLUMNS)} rows") from None
        table.append((length_s, area))
    if not table:
        raise InputError(path, "has no rows", f"write {','.join(COLUMNS)} rows")
    lengths, areas = np.array(table).T
    return Reference(lengths, areas)
