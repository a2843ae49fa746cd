"""Jobs of traces, and rows of CSV files."""

from __future__ import annotations

import csv
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType

from batwatt.errors import InputError


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
