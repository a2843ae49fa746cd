"""The files of a run: columns with unit and meaning, their writers, and checked readers."""

from __future__ import annotations

import os
import re
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import astuple, dataclass
from functools import cached_property
from glob import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from batwatt.checks import load_json, row_too_long, shown
from batwatt.errors import InputError
from batwatt.files import digest_of, read_text, refuse_device, whole_file
from batwatt.model.attempt import KINDS, Attempt
from batwatt.model.record import SUCCESSFUL as SUCCESSFUL
from batwatt.model.record import Record, RowColumns, Rows, listed

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True, slots=True)
class Column:
    """A column; `form` is the format of its values."""

    name: str
    unit: str
    form: str
    meaning: str


JOBS = (
    Column("job_id", "", "text", "id within its workload"),
    Column("workload_name", "", "text", "workload the job belongs to"),
    Column("profile", "", "text", "name of its profile"),
    Column("submission_time", "s", "fixed", "time of submission"),
    Column("requested_number_of_resources", "hosts", "int", "hosts asked for"),
    Column("requested_time", "s", "fixed", "walltime, -1 without"),
    Column("success", "", "int", "1 if it completed successfully"),
    Column("final_state", "", "text", "how it ended"),
    Column("starting_time", "s", "fixed", "time of start"),
    Column("execution_time", "s", "fixed", "how long it ran"),
    Column("finish_time", "s", "fixed", "time of end"),
    Column("waiting_time", "s", "fixed", "start - submission"),
    Column("turnaround_time", "s", "fixed", "end - submission"),
    Column("stretch", "", "fixed", "turnaround / execution"),
    Column("allocated_resources", "hosts", "text", "hosts it ran on"),
    Column("consumed_energy", "J", "fixed", "energy of its hosts while it ran, -1 without energy"),
    Column("metadata", "", "quoted", "what the scheduler attached"),
)

KILLED = "COMPLETED_KILLED"
"""Final state of a run that the scheduler killed."""
WALLTIME = "COMPLETED_WALLTIME_REACHED"
"""Final state of a run that reached its walltime."""
FAILED = "COMPLETED_FAILED"
"""Final state of a run that ended with an error code."""
REJECTED = "REJECTED"
"""Final state of a job that never ran: its times are empty."""

MACHINE_STATES = (
    Column("time", "s", "short", "time"),
    Column("nb_sleeping", "hosts", "int", "asleep"),
    Column("nb_switching_on", "hosts", "int", "waking"),
    Column("nb_switching_off", "hosts", "int", "going to sleep"),
    Column("nb_idle", "hosts", "int", "on and idle"),
    Column("nb_computing", "hosts", "int", "running a job"),
)

PSTATE_CHANGES = (
    Column("time", "s", "short", "time"),
    Column("machine_id", "hosts", "text", "hosts concerned"),
    Column("new_pstate", "", "int", "p-state; -1, -2, -42: request to wake or DVFS, to sleep, for a virtual p-state"),
)

CONSUMED_ENERGY = (
    Column("time", "s", "fixed", "time"),
    Column("energy", "J", "fixed", "energy of all hosts since 0"),
    Column("event_type", "", "text", "s job start, e job end, p p-state request or completion"),
    Column("wattmin", "W", "fixed", "sum of the hosts' epsilon watts"),
    Column("epower", "W", "na", "mean power since the previous row, NA at the same time"),
)

SCHEDULE = (
    Column("batsim_version", "", "text", "engine and version"),
    Column("consumed_joules", "J", "fixed", "energy from the first submission to the last job end"),
    Column("makespan", "s", "fixed", "last end of a job"),
    Column("max_slowdown", "", "fixed", "largest stretch"),
    Column("max_turnaround_time", "s", "fixed", ""),
    Column("max_waiting_time", "s", "fixed", ""),
    Column("mean_slowdown", "", "fixed", "mean stretch (rejected jobs count as 0, as in Batsim)"),
    Column("mean_turnaround_time", "s", "fixed", ""),
    Column("mean_waiting_time", "s", "fixed", ""),
    Column("nb_computing_machines", "hosts", "int", "hosts of the platform"),
    Column("nb_grouped_switches", "", "int", "requests to change p-states"),
    Column("nb_jobs", "jobs", "int", ""),
    Column("nb_jobs_finished", "jobs", "int", "ran to an end of any kind"),
    Column("nb_jobs_killed", "jobs", "int", "finished without success"),
    Column("nb_jobs_rejected", "jobs", "int", ""),
    Column("nb_jobs_success", "jobs", "int", ""),
    Column("nb_machine_switches", "hosts", "int", "hosts of all requests"),
    Column("scheduling_time", "s", "fixed", "0 here: wall-clock times are in the metadata"),
    Column("simulation_time", "s", "fixed", "0 here: wall-clock times are in the metadata"),
    Column("success_rate", "", "fixed", "successful / all jobs"),
    Column("time_computing", "host s", "fixed", "host-seconds per state, each host up to its last change"),
    Column("time_idle", "host s", "fixed", ""),
    Column("time_sleeping", "host s", "fixed", ""),
    Column("time_switching_off", "host s", "fixed", ""),
    Column("time_switching_on", "host s", "fixed", ""),
    Column("time_unavailable", "host s", "fixed", ""),
)

POWER = (
    Column("time_s", "s", "fixed", "the values hold from here to the next row"),
    Column("power_w", "W", "fixed", "power drawn by all hosts"),
    Column("cap_w", "W", "fixed", "the envelope"),
)

CLASSES = (
    Column("from_h", "h", "short", "the class is of jobs longer than this"),
    Column("to_h", "h", "short", "and no longer than this"),
    Column("jobs", "jobs", "int", "jobs of the workload, submitted by the end of the window"),
    Column("core_h", "core h", "fixed", "cores x length of these"),
    Column("runs", "runs", "int", "runs that ended in the window or were still going; one that came in parts is one"),
    Column("completed", "runs", "int", "those that completed in the window"),
    Column("terminations", "runs", "int", "runs that the scheduler killed in the window"),
    Column("wasted_core_h", "core h", "fixed", "core hours of the runs that the scheduler killed"),
    Column("useful_core_h", "core h", "fixed", "core hours of the runs that completed or were still going"),
    Column("mean_wait_s", "s", "fixed", "mean from the first submission to the start of the run that completed"),
)

ATTEMPTS = (
    Column("run", "", "text", "id of the run, with its workload: w0!3#1"),
    Column("job", "", "text", "id of its job, with its workload: w0!3"),
    Column("number", "", "int", "0 for the first run of the job, 1 for the next one, ..."),
    Column("kind", "", "text", "what the run was for, or how it was ended; empty for a whole run"),
    Column("overhead_s", "s", "fixed", "time of the run without useful work: its checkpoint and its recovery"),
    Column("cause", "", "text", "why the scheduler rejected it"),
)

FILES: dict[str, tuple[Column, ...]] = {
    "jobs": JOBS,
    "schedule": SCHEDULE,
    "machine_states": MACHINE_STATES,
    "pstate_changes": PSTATE_CHANGES,
    "consumed_energy": CONSUMED_ENERGY,
    "power": POWER,
    "classes": CLASSES,
    "attempts": ATTEMPTS,
}
"""File stem (written as PREFIX_stem.csv) -> its columns."""


Floats = NDArray[np.float64]
Characters = NDArray[np.uint8]
"""A row of ASCII or UTF-8 characters for each row of the file, padded with 0."""

MOST = 2.0**53 / 1e6
"""Below this a double holds the number of millionths of a number."""
DECIMALS = 6
MISSING = {"fixed": "", "na": "NA"}
"""Text of a missing value, by form."""
_SPECIAL = re.compile('[",\r\n]')
_FORMULA = re.compile("^'*[-=+@\t\r]", re.MULTILINE)
_NUMBER = re.compile(r"[-+]?[0-9]+(\.[0-9]*)?([eE][-+]?[0-9]+)?")
WIDEST = 2000
"""Characters of a row in a block."""


def block_of(columns: Sequence[Column], cells: RowColumns, rows: slice) -> bytes | None:
    """Format some rows of a file; return None if they hold a very long text, a NUL, or a very large number."""
    parts: list[Characters] = []
    for column in columns:
        characters = _column(column.form, cells[column.name][rows])
        if characters is None:
            return None
        parts += [characters, np.full((len(characters), 1), ord(","), dtype=np.uint8)]
    parts[-1][:] = ord("\n")
    if sum(part.shape[1] for part in parts) > WIDEST:
        return None
    block = np.concatenate(parts, axis=1)
    return block[block != 0].tobytes()


def _column(form: str, cells: Any) -> Characters | None:
    if form in MISSING:
        return _fixed(cells, MISSING[form])
    if form == "int":
        return _digits(np.abs(cells), cells < 0)
    if form == "short":
        cells = [f"{value:g}" for value in cells.tolist()]
    if form in TEXTS:
        cells = TEXTS[form](cells)
    characters = _texts(cells)
    if form == "quoted" and characters is not None:
        quotes = np.full((len(characters), 1), ord('"'), dtype=np.uint8)
        return np.concatenate((quotes, characters, quotes), axis=1)
    return characters


def without_formulas(texts: list[str]) -> list[str]:
    """Return texts with ' before those that a spreadsheet would run as formulas: from =, +, -, @, but no numbers."""
    if not _FORMULA.search("\n".join(texts)):
        return texts
    # ' before such a ', too, so that `formulas` restores each text
    return [f"'{text}" if _FORMULA.match(text) and not _NUMBER.fullmatch(text) else text for text in texts]


def formulas(texts: pd.Series[str]) -> pd.Series[str]:
    """Return the texts of `without_formulas` as they were."""
    marked = texts.str.startswith("'")
    return texts.str.replace("^'(?='*[-=+@\t\r])", "", regex=True) if marked.any() else texts


def without_formulas_in(frame: pd.DataFrame) -> pd.DataFrame:
    """Return a table whose texts no spreadsheet runs as formulas."""
    return frame.map(lambda cell: without_formulas([cell])[0] if isinstance(cell, str) else cell)


def escaped(texts: list[str]) -> list[str]:
    """Return texts as cells of CSV, no formulas: quoted where a reader needs it, with quotation marks doubled."""
    texts = without_formulas(texts)
    if not _SPECIAL.search("".join(texts)):
        return texts
    return ['"{}"'.format(text.replace('"', '""')) if _SPECIAL.search(text) else text for text in texts]


TEXTS = {"text": escaped, "quoted": without_formulas}
"""Form of a text -> function that returns such texts as cells."""


def _texts(texts: list[str]) -> Characters | None:
    together = "".join(texts)
    if "\0" in together or max(map(len, texts)) > WIDEST:
        return None
    octets = np.array(texts if together.isascii() else [text.encode() for text in texts], dtype=np.bytes_)
    return octets.view(np.uint8).reshape(len(texts), -1)


def _fixed(values: Floats, missing: str) -> Characters | None:
    lacking = np.isnan(values)
    filled = np.where(lacking, 0.0, values)
    if not (np.abs(filled) < MOST).all():
        return None
    characters = _digits(np.abs(millionths(filled)).astype(np.int64), np.signbit(values), DECIMALS)
    if lacking.any():
        characters[lacking] = 0
        characters[lacking, : len(missing)] = np.frombuffer(missing.encode(), dtype=np.uint8)
    return characters


def _digits(numbers: NDArray[np.int64], negative: NDArray[np.bool_], decimals: int = 0) -> Characters:
    """Format whole numbers >= 0 with their signs, and a point before the last `decimals` digits."""
    before = max(1, len(str(numbers.max())) - decimals)
    characters = np.zeros((len(numbers), 1 + before + bool(decimals) + decimals), dtype=np.uint8)
    characters[negative, 0] = ord("-")
    rest = numbers
    for place in range(characters.shape[1] - 1, 0, -1):
        if decimals and place == before + 1:
            characters[:, place] = ord(".")
            continue
        tenth = rest // 10
        characters[:, place] = rest - tenth * 10 + ord("0")
        rest = tenth
    for place in range(1, before):
        characters[numbers < 10 ** (decimals + before - place), place] = 0
    return characters


def as_read(values: Floats) -> Floats:
    """Return numbers as read back after printing with `%.6f`; NaN remains."""
    rounded: Floats = millionths(values) / 1e6
    for row in np.flatnonzero(np.abs(values) >= MOST).tolist():
        rounded[row] = float(f"{values[row]:.6f}")
    return rounded


def millionths(values: Floats) -> Floats:
    """Return the millionths that `%.6f` prints of each number below `MOST`, ties to even."""
    scaled = values * 1e6
    whole = np.rint(scaled)
    # at an apparent tie the rounding error of the product decides (Dekker's product, 1e6 has few bits)
    big = values * 134217729.0
    high = big - (big - values)
    error = (high * 1e6 - scaled) + (values - high) * 1e6
    rest = scaled - whole
    beyond = (np.abs(rest) == 0.5) & (rest * error > 0.0)
    whole[beyond] += np.sign(rest[beyond])
    return whole


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
    if record.attempts:
        written.append(write_attempts(file_of(prefix, "attempts"), record.attempts))
    for stem, rows in tables.items():
        written.append(file_of(prefix, stem))
        write_columns(written[-1], FILES[stem], rows.columns())
    return written


def write_attempts(path: Path, attempts: Mapping[str, Attempt]) -> Path:
    """Write a table of attempts; return its path. Raises InputError."""
    write_rows(path, ATTEMPTS, [astuple(attempt) for attempt in attempts.values()])
    return path


Columns = Mapping[str, Any]
"""Name -> values of all rows."""
RERUN = "run the simulation again, or name the prefix it was run with"

_AS_THEY_ARE = "run it again, or remove {} to read the files as they are"

_TIMES = ("starting_time", "execution_time", "finish_time")
_NUMBERS = ("submission_time", *_TIMES, "requested_number_of_resources")


class RunData:
    """Columns of the run under a prefix that figures need, of up to millions of rows.

    With a `record` no file is read.
    """

    def __init__(self, prefix: Path | str, record: Record | None = None) -> None:
        self.prefix = Path(prefix)
        self.record = record

    @cached_property
    def jobs(self) -> Columns:
        """Columns of the jobs in the order of their ends, with their full ids and attempts. Raises InputError."""
        if self.record is None:
            frame = jobs(self.prefix)
            columns: Columns = {name: frame[name].to_numpy() for name in (*_NUMBERS, "consumed_energy", "final_state")}
            return {**columns, **self._described(full_ids(frame), frame["metadata"].tolist())}
        rows = self.record.jobs
        widths = {"requested_number_of_resources": np.array(rows.widths, dtype=np.float64)}
        columns = {"submission_time": np.array(rows.submitted), **widths, **rows.times()}
        values: dict[str, Any] = {name: as_read(columns[name]) for name in _NUMBERS}
        states = np.array(rows.states, dtype=object)
        return {**values, "final_state": states, **self._described(rows.ids, rows.metadata)}

    def _described(self, names: list[str], metadata: list[str]) -> Columns:
        """Return the full ids of rows, and their attempts: as in the table, others as in the metadata."""
        kinds, causes = (np.full(len(names), "", dtype=object) for _ in range(2))
        overheads_s = np.zeros(len(names))
        read = {name: Attempt.of_text(name, text) for name, text in zip(names, metadata, strict=True) if text}
        attempts = {**read, **self.attempts}
        for row in [row for row, name in enumerate(names) if name in attempts]:
            attempt = attempts[names[row]]
            kinds[row], overheads_s[row], causes[row] = attempt.kind, attempt.overhead_s, attempt.cause
        return {"full_id": names, "kind": kinds, "overhead_s": as_read(overheads_s), "cause": causes}

    @cached_property
    def attempts(self) -> Mapping[str, Attempt]:
        """Table of attempts by full id of their runs; empty for a run without one. Raises InputError."""
        if self.record is not None:
            return self.record.attempts
        path = file_of(self.prefix, "attempts")
        if not path.exists():
            return {}
        frame = table(self.prefix, "attempts")
        unknown = np.flatnonzero(~frame["kind"].isin(KINDS))
        if len(unknown):
            problem = f"no run has the kind {frame['kind'][unknown[0]]!r}"
            raise InputError(f"{path}: row {unknown[0] + 1}", problem, RERUN)
        rows = (Attempt(*row) for row in frame.itertuples(index=False, name=None))
        return {attempt.run: attempt for attempt in rows}

    @cached_property
    def job_energies(self) -> Floats:
        """Energy in J of the hosts of each row of `jobs` during its run; NaN without a run or without energy."""
        if self.record is not None:
            energy_j = as_read(np.array(self.record.jobs.energies))
        else:
            energy_j = numbers(self.jobs, "consumed_energy")
        return np.where(energy_j >= 0.0, energy_j, np.nan)

    @cached_property
    def energy(self) -> tuple[Floats, Floats] | None:
        """Times in s and the energy of all hosts until then in J, both monotonic; None without energy.

        Raises InputError.
        """
        if self.record is not None:
            rows = self.record.consumed_energy
            columns = as_read(np.array(rows.times)), as_read(np.array(rows.energies))
            return checked_energy(self.prefix, *columns) if self.record.energy else None
        if not file_of(self.prefix, "consumed_energy").exists():
            return None

        frame = consumed_energy(self.prefix)
        return frame["time"].to_numpy(dtype=np.float64), frame["energy"].to_numpy(dtype=np.float64)


def digests_of(prefix: Path) -> dict[str, str]:
    """Return the SHA-256 of the files under a prefix, by their names after it, without the metadata."""
    begin, metadata = f"{prefix.name}_", file_of(prefix, "metadata", ".json")
    paths = sorted(path for path in prefix.parent.glob(f"{escape(begin)}*") if path.is_file() and path != metadata)
    return {path.name.removeprefix(begin): digest_of(path) or "" for path in paths}


def metadata_of(prefix: Path) -> dict[str, Any]:
    """Return PREFIX_metadata.json, in which `files` has digests by name; without it no files, as of a real Batsim.

    Raises InputError.
    """
    path = file_of(prefix, "metadata", ".json")
    if not os.path.lexists(path):
        return {"files": {}}
    content = load_json(read_text(path), path, parse_constant=float)
    metadata: dict[str, Any] = content if isinstance(content, dict) else {}
    files = metadata.get("files")
    if not (isinstance(files, dict) and all(isinstance(digest, str) for digest in files.values())):
        raise InputError(path, "names no files with their digests", _AS_THEY_ARE.format(path.name))
    for name in files:
        if "/" in name:
            raise InputError(path, f"names {shown(name)}, no file of the run", _AS_THEY_ARE.format(path.name))
    return metadata


def check_files(prefix: Path) -> None:
    """Raise InputError if a file differs from its digest in the metadata: the files are then of different runs."""
    metadata = file_of(prefix, "metadata", ".json").name
    for name, digest in metadata_of(prefix)["files"].items():
        path = prefix.with_name(f"{prefix.name}_{name}")
        if (present := digest_of(path)) != digest:
            problem = f"{'is not the file' if present else 'is missing, a file'} that {metadata} names"
            raise InputError(path, problem, _AS_THEY_ARE.format(metadata))


def checked_energy(prefix: Path | str, times_s: Floats, energy_j: Floats) -> tuple[Floats, Floats]:
    """Return the columns of the file of energies. Raises InputError for a value below 0, not finite or decreasing."""
    path = file_of(prefix, "consumed_energy")
    for name, values in (("time", times_s), ("energy", energy_j)):
        odd = np.flatnonzero(~np.isfinite(values))
        if len(odd):
            raise InputError(f"{path}: row {int(odd[0]) + 1}", f"{name} is not a finite number", RERUN)
        if len(values) and not values[0] >= 0.0:
            raise InputError(f"{path}: row 1", f"{name} must be >= 0, got {values[0]:g}", RERUN)
        falls = np.flatnonzero(np.diff(values) < 0.0)
        if len(falls):
            row = int(falls[0]) + 1
            problem = f"{name} decreases from {values[row - 1]:.6f} to {values[row]:.6f}"
            raise InputError(f"{path}: row {row + 1}", problem, RERUN)
    return times_s, energy_j


def full_ids(jobs: pd.DataFrame) -> list[str]:
    """Return the ids of rows with their workloads: `w0!3`."""
    return [f"{load}!{name}" for load, name in zip(jobs["workload_name"], jobs["job_id"], strict=True)]


def texts(jobs: Columns, name: str) -> NDArray[np.object_]:
    """Return a column of texts."""
    return np.asarray(jobs[name], dtype=object)


def numbers(jobs: Columns, name: str) -> Floats:
    """Return a column of numbers; NaN for a missing one."""
    return np.asarray(jobs[name], dtype=np.float64)


_DTYPES = {"fixed": "float64", "short": "float64", "na": "float64", "int": "int64"}
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
    import pandas as pd

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
    import pandas as pd

    path = file_of(prefix, stem)
    columns = FILES[stem]
    names = [column.name for column in columns]
    refuse_device(path)
    try:
        header = pd.read_csv(path, nrows=0, encoding="utf-8-sig").columns
        missing = [name for name in names if name not in header]
        if missing:
            raise InputError(path, f"no column {missing[0]!r}", f"the columns are {','.join(names)}")
        return _read(path, columns, {column.name: _DTYPES.get(column.form, "str") for column in columns})
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
    import pandas as pd

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
    import pandas as pd

    long_row = row_too_long(read_text(path))
    if long_row is not None:
        return InputError(f"{path}: line {long_row[0]}", long_row[1], RERUN)
    if isinstance(error, pd.errors.ParserError | pd.errors.ParserWarning):
        return InputError(path, f"is not CSV ({error})", RERUN)
    texts = _read(path, columns, {column.name: "str" for column in columns})
    for column in columns:
        kind = _DTYPES.get(column.form)
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
