"""The folder of a study or a comparison: its cells, kept files, the table and the log; no file is half written."""

from __future__ import annotations

import fcntl
import hashlib
import io
import json
import os
import re
import shutil
import tempfile
import zipfile
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import fields, replace
from pathlib import Path
from typing import IO, Any, Literal

import numpy as np
from pydantic import BaseModel, ConfigDict, model_validator

from batwatt.checks import load_json
from batwatt.errors import BatwattError, InputError, UnknownNameError, argument, printable
from batwatt.files import FULL, PART, is_folder, is_link, make_folder, open_own, read_bytes, read_text, sync, whole_set
from batwatt.results.figures import METRICS
from batwatt.results.outcomes import JobOutcomes
from batwatt.results.power import PowerTrace
from batwatt.studies.cells import BOUNDS, KEPT, CellOutcome
from batwatt.studies.grid import InputFile
from batwatt.studies.spec import canonical
from batwatt.units import now_text

COPY, ORIGIN, TABLE, LOG = "study.yaml", "origin.json", "table.parquet", "study.log"
LOCK, INPUTS = ".lock", "inputs"
FIGURES = (*(figure.name for figure in METRICS), *BOUNDS)
KEY = re.compile("[0-9a-f]{64}")
FEW = ("notes", "arrays", "files_digest")
"""Values that few cells have, and only their files."""
TEXTS = ("state", "cause")
"""Columns of the outcomes of jobs that are texts."""
TRACE = "trace_"
"""Begin of the names of the arrays of a power trace."""


class StudyStopped(BatwattError):
    """A study or a comparison cannot go on, for a reason outside its runs; finished runs are kept."""


class _CellFile(BaseModel):
    """Content of the file of a finished cell; `arrays` is the SHA-256 of the file of its jobs and its power."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    format: Literal[1] = 1
    key: str
    status: Literal["done", "failed"]
    error: str | None
    figures: dict[str, float | int | bool | None]
    rejections: dict[str, int] | None = None
    """Cause -> rejected jobs; None in a file of an older version."""
    elapsed_s: float
    run: dict[str, Any]
    notes: tuple[str, ...] = ()
    arrays: str | None = None
    files_digest: str | None = None

    @model_validator(mode="after")
    def _complete(self) -> _CellFile:
        if self.status == "done" and tuple(self.figures) != FIGURES:
            raise ValueError("figures of another version")
        return self


def _digest(content: Mapping[str, Any]) -> str:
    """Return the SHA-256 of the content of a cell, whose file has it: a changed figure is computed again."""
    return hashlib.sha256(canonical(content).encode()).hexdigest()


def _packed(outcome: CellOutcome) -> bytes | None:
    """Return the jobs and the power of an outcome as the content of a file of numpy; None if it has none."""
    if outcome.jobs is None:
        return None
    columns = {column.name: np.asarray(getattr(outcome.jobs, column.name)) for column in fields(outcome.jobs)}
    arrays: dict[str, Any] = {name: values.astype(str) if name in TEXTS else values for name, values in columns.items()}
    if outcome.trace is not None:
        arrays |= {f"{TRACE}{part.name}": np.asarray(getattr(outcome.trace, part.name)) for part in fields(PowerTrace)}
    out = io.BytesIO()
    np.savez_compressed(out, **arrays)
    return out.getvalue()


def _unpacked(content: bytes) -> tuple[JobOutcomes, PowerTrace | None]:
    """Return the jobs and the power of an outcome. Raises ValueError and KeyError for another version."""
    with np.load(io.BytesIO(content), allow_pickle=False) as arrays:
        columns = {column.name: arrays[column.name] for column in fields(JobOutcomes)}
        jobs = JobOutcomes(
            **{name: values.astype(object) if name in TEXTS else values for name, values in columns.items()}
        )
        if f"{TRACE}end_s" not in arrays:
            return jobs, None
        parts = {part.name: arrays[f"{TRACE}{part.name}"] for part in fields(PowerTrace)}
    numbers: dict[str, Any] = {name: values if values.ndim else float(values) for name, values in parts.items()}
    return jobs, PowerTrace(**numbers)


def check_comparisons(only: Iterable[str], names: Collection[str]) -> None:
    """Raise UnknownNameError for a comparison of `only` that is not among `names`."""
    for comparison in only:
        if comparison not in names:
            raise UnknownNameError(argument("only"), "comparison", comparison, names, "Name one of the study.")


class Store:
    """Reader and writer of the folder of a declared study, or of a comparison.

    `place` is the argument with the folder, `name` what another process gives another one of; `resume` tells how to
    go on with the study.
    """

    def __init__(
        self,
        folder: Path,
        *,
        study: str = "study",
        place: str = "results",
        name: str = "name with -n",
        resume: str | None = None,
    ) -> None:
        self.folder = folder
        self.study = study
        self.place = place
        self.name = name
        self.resume = resume or f"batwatt study {folder}"
        self.cells = folder / "cells"
        self.runs = folder / "runs"
        self.scratch = folder
        """Folder of the files of runs while they run: a temporary one in a locked store."""

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Lock the folder for other processes during the block. Raises StudyStopped, and InputError for links."""
        for path in (self.cells, self.runs, self.folder / INPUTS, self.folder / LOG, self.folder / LOCK):
            if is_link(path):
                raise InputError(path, "is a link", f"remove it: a {self.study} writes into its own folder only")
        with self._writing(self.folder):
            make_folder(self.folder)
            lock = os.fdopen(os.open(self.folder / LOCK, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o666))
        with lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                hint = f"wait for it, or give this one another {self.name}"
                raise StudyStopped(f"{self.folder}: another process works on this {self.study}; {hint}") from None
            with self._writing(self.folder):
                self.cells.mkdir(exist_ok=True)
                scratch = tempfile.TemporaryDirectory(prefix=PART, dir=self.folder, ignore_cleanup_errors=True)
            with scratch as name:
                self.scratch = Path(name)
                yield

    @contextmanager
    def _writing(self, what: Path) -> Iterator[None]:
        """Raise StudyStopped for a disk that is full or cannot be written."""
        try:
            yield
        except OSError as error:
            raise self._unwritable(what, error) from error
        except InputError as error:
            if not isinstance(error.__context__, OSError):
                raise
            raise self._unwritable(what, error.__context__) from error

    def _unwritable(self, what: Path, error: OSError) -> StudyStopped:
        problem = f"{what}: cannot be written ({error.strerror or error})"
        if not is_folder(self.folder):
            return StudyStopped(f"{problem}; give another place with {argument(self.place)}")
        first = "make room" if error.errno in FULL else "correct that"
        hint = f"{first}, then: {self.resume}"
        return StudyStopped(f"{problem}; nothing finished is lost; {hint}")

    def provide(self, inputs: Iterable[InputFile]) -> None:
        """Write the generated files among the inputs of runs."""
        for file in inputs:
            with self._writing(file.path):
                file.provide()

    def write(self, path: Path, text: str) -> None:
        """Write a file of the folder, whole, and on the disk (not only in memory) when this returns."""
        with self._writing(path), whole_set(path.parent, place=path) as part:
            (part / path.name).write_text(text, encoding="utf-8", newline="\n")

    def write_table(self, write: Callable[[IO[bytes]], None]) -> None:
        """Write the table, whole; `write` gets a stream."""
        with (
            self._writing(self.folder / TABLE),
            whole_set(self.folder, place=self.folder / TABLE) as part,
            (part / TABLE).open("wb") as out,
        ):
            write(out)

    def log(self, *lines: str) -> None:
        """Append lines with the date to the log."""
        now = now_text()
        with self._writing(self.folder / LOG), open_own(self.folder / LOG, "a") as out:
            out.writelines(f"{now} {printable(line)}\n" for line in lines)

    def declare(self, text: str, origin: Path, schedulers: Mapping[str, Collection[str] | None]) -> None:
        """Keep the declaration as it is run, and the place of the original, where its relative paths begin.

        `schedulers`: SHA-256 of the file of a scheduler -> names of its options, None for one that is not ours.
        """
        # relative, so that a project that is moved as a whole still finds its inputs
        where = {"study": os.path.relpath(origin.resolve(), self.folder.resolve()), "schedulers": schedulers}
        self.write(self.folder / COPY, text)
        self.write(self.folder / ORIGIN, json.dumps(where, indent=2) + "\n")

    def origin(self) -> Path:
        """Return the path of the declaration that was run. Raises InputError."""
        path = self.folder / ORIGIN
        try:
            where = json.loads(read_text(path))["study"]
            return Path(os.path.normpath(self.folder.resolve() / where))
        except (InputError, ValueError, KeyError, TypeError):
            hint = "begin with `batwatt study FILE`"
            raise InputError(self.folder, f"is not the folder of a study (no {ORIGIN})", hint) from None

    def schedulers(self) -> dict[str, list[str] | None]:
        """Return the names of the options of the schedulers that were run from files, by SHA-256 of these."""
        try:
            saved = json.loads(read_text(self.folder / ORIGIN))["schedulers"]
            return {str(sha256): None if names is None else [*map(str, names)] for sha256, names in saved.items()}
        except (InputError, ValueError, KeyError, TypeError, AttributeError):
            return {}  # as if none of them had run

    def save(self, outcome: CellOutcome, place: Mapping[str, Any]) -> None:
        """Write a finished cell: its kept files if it has some, then its record with its arrays, each all at once.

        `place` is its place in the study.
        """
        if outcome.files:
            self._keep(outcome.key, outcome.files)
        arrays, path = _packed(outcome), self._path(outcome.key)
        values = {name: getattr(outcome, name) for name in _CellFile.model_fields if hasattr(outcome, name)}
        digest = None if arrays is None else hashlib.sha256(arrays).hexdigest()
        content = _CellFile(**values, run=dict(place), arrays=digest).model_dump(mode="json")
        content = {name: value for name, value in content.items() if name not in FEW or value}
        text = json.dumps({**content, "sha256": _digest(content)}, indent=1, allow_nan=False)
        others = path.with_suffix(".npz")
        # without the record, which appears last, a cell is missing
        with self._writing(path), whole_set(path.parent, last=[path.name], old=[others.name], place=path) as part:
            if arrays is not None:
                (part / others.name).write_bytes(arrays)
            (part / path.name).write_text(text + "\n", encoding="utf-8", newline="\n")

    def _path(self, key: str) -> Path:
        return self.cells / f"{key}.json"

    def _keep(self, key: str, files: Mapping[str, bytes]) -> None:
        with self._writing(self.runs):
            self.runs.mkdir(exist_ok=True)
        with (
            self._writing(self.runs / key),
            tempfile.TemporaryDirectory(prefix=PART, dir=self.runs, ignore_cleanup_errors=True) as folder,
        ):
            part = Path(folder) / "run"
            part.mkdir()
            for end, content in files.items():
                with (part / f"{KEPT}{end}").open("wb") as out:
                    out.write(content)
                    out.flush()
                    os.fsync(out.fileno())
            if os.path.lexists(self.runs / key):
                (self.runs / key).rename(part.with_name("old"))
            part.rename(self.runs / key)
            sync(self.runs)

    def kept(self, key: str) -> bool:
        """Return whether the folder of a run has its files, which appear all at once."""
        return (self.runs / key).is_dir()

    def load(self, keys: Iterable[str]) -> tuple[dict[str, CellOutcome], list[str]]:
        """Return the finished cells among `keys`, and a line for each damaged file, which counts as missing."""
        cells: dict[str, CellOutcome] = {}
        damaged: list[str] = []
        for key in keys:
            path = self._path(key)
            if not os.path.lexists(path):
                continue
            try:
                cells[key] = self._read(path)
            except (ValueError, KeyError, zipfile.BadZipFile, InputError):
                damaged.append(f"{path.relative_to(self.folder)} is changed or of another version: run again")
        return cells, damaged

    def _read(self, path: Path) -> CellOutcome:
        """Return the cell of a file. Raises InputError, ValueError, KeyError or BadZipFile if it is damaged."""
        content = load_json(read_text(path), path)
        digest = content.pop("sha256", None) if isinstance(content, dict) else None
        if digest != _digest(content) or content["key"] != path.stem:
            raise ValueError("changed")
        file = _CellFile.model_validate(content)
        values = {name: getattr(file, name) for name in _CellFile.model_fields.keys() - {"format", "run", "arrays"}}
        outcome = CellOutcome(**values)
        if file.arrays is None:
            return outcome
        arrays = read_bytes(path.with_suffix(".npz"))
        if hashlib.sha256(arrays).hexdigest() != file.arrays:
            raise ValueError("changed arrays")
        jobs, trace = _unpacked(arrays)
        return replace(outcome, jobs=jobs, trace=trace)

    def stale(self, keys: Iterable[str]) -> list[str]:
        """Return the keys of cells, or of kept files, that are no longer declared."""
        paths = (*self.cells.glob("*.json"), *self.cells.glob("*.npz"), *self.runs.glob("[!.]*"))
        return sorted({path.stem for path in paths if KEY.fullmatch(path.stem)} - set(keys))

    def unfinished(self) -> list[Path]:
        """Return the hidden folders of processes that were killed, or are still writing."""
        return sorted(path for folder in (self.folder, self.cells, self.runs) for path in folder.glob(f"{PART}*"))

    def remove(self, keys: Iterable[str]) -> None:
        """Remove cells with their files."""
        for key in keys:
            path = self._path(key)
            for file in (path, path.with_suffix(".npz")):
                file.unlink(missing_ok=True)
            shutil.rmtree(self.runs / key, ignore_errors=True)
