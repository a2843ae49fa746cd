"""Jobs of traces, and access to text files of traces."""

from __future__ import annotations

import csv
import gzip
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import IO

from batwatt.errors import InputError
from batwatt.files import readable


@dataclass(frozen=True, slots=True)
class TraceJob:
    """A job of a trace: times in s; `run_s` and `cpus` <= 0 are unknown; `extra` are fields of the job's JSON."""

    id: str
    submit_s: float
    run_s: float
    cpus: int
    requested_s: float | None = None
    extra: Mapping[str, object] = field(default_factory=lambda: MappingProxyType({}))


@contextmanager
def open_text(path: Path | str) -> Iterator[IO[str]]:
    """Open a text file for reading line by line, with gzip if its name ends in `.gz`. Raises InputError.

    Bytes that are not UTF-8 become replacement characters: comments of old traces have names in other encodings.
    """
    path = Path(path)
    opener = gzip.open if path.suffix == ".gz" else open
    with readable(path), opener(path, "rt", encoding="utf-8-sig", errors="replace", newline="") as stream:
        yield stream


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
