"""Read the CSV files of a run of the embedded engine or of a real Batsim."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pandas as pd

from batwatt.checks import row_too_long
from batwatt.errors import InputError
from batwatt.files import read_text, refuse_device
from batwatt.results.columns import FILES, REJECTED, Column
from batwatt.results.csv_block import TEXTS, formulas
from batwatt.results.run_data import RERUN, check_files, checked_energy
from batwatt.results.writers import file_of

_NUMBERS = {"fixed": "float64", "short": "float64", "na": "float64", "int": "int64"}
_NO_NUMBER = ["", "NA", "nan", "-nan"]
_DATES_OF_A_JOB = ("starting_time", "execution_time", "finish_time", "waiting_time")


def jobs(prefix: Path | str) -> pd.DataFrame:
    """Return the jobs in the order of their ends; ids, profiles, hosts and metadata are texts, as written.

    The times of a REJECTED job are NaN. Raises InputError if the file is missing or malformed, or if a job that ran
    lacks a time, or if files under the prefix are of different runs.
    """
    check_files(Path(prefix))
    frame = table(prefix, "jobs")
    path = file_of(prefix, "jobs")
    _complete(frame, path, ["submission_time"])
    ran = frame["final_state"] != REJECTED
    _complete(frame[ran], path, _DATES_OF_A_JOB)
    early = frame.index[ran & (frame["starting_time"] > frame["finish_time"])]
    if len(early):
        raise InputError(f"{path}: row {int(early[0]) + 1}", "finish_time is before starting_time", RERUN)
    return frame


def consumed_energy(prefix: Path | str) -> pd.DataFrame:
    """Return the energy since 0 in J at each event; `epower` is NaN for NA.

    Raises InputError if the file is missing or malformed, or if time or energy decreases.
    """
    frame = table(prefix, "consumed_energy")
    _complete(frame, file_of(prefix, "consumed_energy"), ["time", "energy"])
    checked_energy(prefix, *(frame[name].to_numpy(dtype=np.float64) for name in ("time", "energy")))
    return frame


def pstate_changes(prefix: Path | str) -> pd.DataFrame:
    """Return the requests to change p-states and their effects; `machine_id` is a text such as `0-3 5`.

    The table is empty for a run without energy, which has no such file. Raises InputError.
    """
    stems = ("pstate_changes", "consumed_energy")
    if not any(file_of(prefix, stem).exists() for stem in stems):
        return pd.DataFrame(columns=[column.name for column in FILES[stems[0]]])
    frame = table(prefix, "pstate_changes")
    _complete(frame, file_of(prefix, "pstate_changes"), ["time"])
    return frame


def table(prefix: Path | str, stem: str) -> pd.DataFrame:
    """Return the file `PREFIX_stem.csv` with the types of `columns.FILES`, without other columns.

    Raises InputError with the file, and the row and column if the error has one.
    """
    path = file_of(prefix, stem)
    columns = FILES[stem]
    names = [column.name for column in columns]
    refuse_device(path)
    try:
        header = pd.read_csv(path, nrows=0, encoding="utf-8-sig").columns
        missing = [name for name in names if name not in header]
        if missing:
            raise InputError(path, f"no column {missing[0]!r}", f"the columns are {','.join(names)}")
        return _read(path, columns, {column.name: _NUMBERS.get(column.form, "str") for column in columns})
    except OSError as error:
        raise InputError(path, f"cannot be read ({error.strerror})", RERUN) from None
    except pd.errors.EmptyDataError:
        raise InputError(path, "is empty", RERUN) from None
    except UnicodeDecodeError as error:
        raise InputError(path, f"is not UTF-8 ({error.reason})", RERUN) from None
    except (pd.errors.ParserWarning, ValueError, OverflowError) as error:
        raise _culprit(path, columns, error) from None


def _read(path: Path, columns: Sequence[Column], types: dict[str, str]) -> pd.DataFrame:
    """Return the columns of a file; only numbers may be NaN, so that a job called `NA` keeps its name."""
    with warnings.catch_warnings():
        # pandas only warns when every row is longer than the header
        warnings.simplefilter("error", pd.errors.ParserWarning)
        frame = pd.read_csv(
            path,
            dtype=types,
            index_col=False,
            keep_default_na=False,
            na_values={column.name: _NO_NUMBER for column in columns if types[column.name] == "float64"},
            encoding="utf-8-sig",
        )
    for column in columns:
        if column.form in TEXTS and types[column.name] == "str":
            frame[column.name] = formulas(frame[column.name])
    return frame[list(types)]


def _culprit(path: Path, columns: Sequence[Column], error: Exception) -> InputError:
    """Return the error for the first line that is too long, else for the first cell that is not the required number."""
    long_row = row_too_long(read_text(path), spare=False)
    if long_row is not None:
        return InputError(f"{path}: line {long_row[0]}", long_row[1], RERUN)
    if isinstance(error, pd.errors.ParserError | pd.errors.ParserWarning):
        return InputError(path, f"is not CSV ({error})", RERUN)
    texts = _read(path, columns, {column.name: "str" for column in columns})
    for column in columns:
        kind = _NUMBERS.get(column.form)
        if kind is None:
            continue
        cells = texts[column.name].fillna("")
        numbers = pd.to_numeric(cells, errors="coerce")
        bad = numbers.isna() & ~cells.isin(_NO_NUMBER) if kind == "float64" else numbers.isna() | (numbers % 1 != 0)
        if bad.any():
            row = int(np.flatnonzero(bad)[0])
            text = str(cells.iloc[row])[:40]
            required = "a number" if kind == "float64" else "an integer"
            return InputError(f"{path}: row {row + 1}", f"{column.name} {text!r} is not {required}", RERUN)
    return InputError(path, f"cannot be understood ({error})", RERUN)


def _complete(frame: pd.DataFrame, path: Path, names: Sequence[str]) -> None:
    """Raise InputError unless the columns hold finite numbers only; the frame may be a part of the file."""
    for name in names:
        bad = np.flatnonzero(~np.isfinite(frame[name].to_numpy()))
        if len(bad):
            raise InputError(f"{path}: row {int(frame.index[bad[0]]) + 1}", f"{name} is not a finite number", RERUN)
