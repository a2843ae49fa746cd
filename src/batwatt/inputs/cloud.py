"""Readers of traces of clouds part by part: Azure's virtual machines, and Google's Borg.

Virtual machines of Microsoft Azure as jobs: `vmtable.csv` of the public traces of 2017 and 2019.

A line is a VM: vmid, subscriptionid, deploymentid, vmcreated, vmdeleted (s since the trace began), maxcpu, avgcpu,
p95maxcpu (per cent), vmcategory, vmcorecountbucket, vmmemorybucket (GB); there is no header. The trace of 2019 has
buckets: ">24" cores and ">64" GB are read as the next power of two, 32 and 128.

A VM is a job from its creation to its deletion. Times are multiples of 5 min: a VM created and deleted at one time ran
for less, and counts as 5 min. A VM that existed at the begin of the trace (created at 0) or at its end (deleted at
2,591,700 s or later) ran for longer than in the trace: its part in the trace is a job. Its `use` is the 95th
percentile of its maxima (section 5.1.4 of the varcap dissertation), at least 0.1 %.

Instances of Google's Borg as jobs: the tables `instance_events` and `collection_events` of the trace of 2019 (v3).

An instance of a job runs from a SCHEDULE to the next EVICT, FAIL, FINISH, KILL or LOST of the same collection_id and
instance_index; each such run is a job, released at its submission (SUBMIT), else at its start. Reservations (instances
of alloc sets) are no jobs. Times are in us and begin at 600 s, which becomes 0; a time of 0 is "before the trace",
2^63 - 1 "after it". Of a run that began earlier or had not ended, the part in the trace is a job.
Events must be in order of time (`ORDER BY time`), as they are read in one pass.

`resource_request.cpus` is normalised: 1 is the largest machine. A core has 1/60 of it; cores are rounded and at least
1, so that machines of a cell of 630 and 336 GCU have 32 cores each. Memory stays normalised.

`collection_events` has dependencies: a job depends on the run that had ended last at its start, of each collection
after which its own may start (start_after_collection_ids) or whose child it is (parent_collection_id). Runs that had
not ended by then are no dependencies.
"""

from __future__ import annotations

import csv
import math
import re
import warnings
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any, Literal, NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd

from batwatt.checks import shown
from batwatt.errors import InputError
from batwatt.files import LONGEST_LINE, open_bytes, open_text, readable
from batwatt.inputs.jobs import csv_rows
from batwatt.model.timeline import LARGEST

Type = Literal["int", "float", "text"]
CUT = "ran before the trace or after it, kept with what it tells"
"""Note on jobs of which a trace has only a part."""
ROWS = 200_000
"""Number of rows of a part."""

_DTYPES = {"int": "int64", "float": "float64", "text": "str"}
_UNKNOWN = ["", "NULL", "null"]


def chunks(
    path: Path | str, types: Mapping[str, Type], aliases: Mapping[str, str], names: Sequence[str] | None = None
) -> Iterator[tuple[int, pd.DataFrame]]:
    """Yield the parts of a table with the columns of `types`, each with the number of its first line.

    `aliases` are other names of columns; `names` are the columns of a CSV file with an optional header. Missing columns
    are left out, empty cells are NaN, but not allowed in columns of type int. JSON (`.json`, `.jsonl`, `.ndjson`) may
    nest: `{"a": {"b": 1}}` is column `a.b`. Raises InputError with the line number.
    """
    suffixes = Path(path).name.lower().removesuffix(".gz")
    if suffixes.endswith((".json", ".jsonl", ".ndjson")):
        yield from _json_chunks(path, types, aliases)
        return
    options: dict[str, Any] = {"names": names, "header": None} if names is not None else {}
    first, line = _first_line(path, names), 1 if names is not None else 2
    if names is not None and first == list(names):
        options["header"], line = 0, 2
    read = {name: types[aliases.get(name, name)] for name in names or first if aliases.get(name, name) in types}
    options |= {
        "usecols": list(read),
        # without it the first cells of rows that are too long become an index
        "index_col": False,
        "keep_default_na": False,
        "na_values": _UNKNOWN,
        "encoding_errors": "replace",
        "chunksize": ROWS,
    }
    with readable(path), open_bytes(path, LONGEST_LINE) as stream:
        try:
            parts = pd.read_csv(stream, dtype={name: _DTYPES[kind] for name, kind in read.items()}, **options)
            while True:
                # numpy warns of a number too large for an integer, before pandas refuses it
                with warnings.catch_warnings(action="ignore", category=RuntimeWarning):
                    part = next(parts, None)
                if part is None:
                    return
                yield line, part.rename(columns=aliases)
                line += len(part)
        except (ValueError, OverflowError) as error:
            _blame(path, read, options, line)
            raise InputError(path, f"is not such a table ({error})", f"look at line {line} and below") from None


def write_chunks(parts: Iterable[pd.DataFrame], out: IO[str]) -> int:
    """Write parts of a table as one CSV, each when it arrives; return the number of rows."""
    rows, header = 0, True
    for part in parts:
        part.to_csv(out, index=False, header=header, lineterminator="\n")
        rows, header = rows + len(part), False
    return rows


def _first_line(path: Path | str, names: Sequence[str] | None) -> list[str]:
    with open_text(path) as stream:
        cells = [cell.strip() for cell in next(csv_rows(csv.reader(stream), path, "give a table"), [])]
    if not cells:
        raise InputError(path, "is empty", "give a table with rows")
    if names is not None and len(cells) != len(names):
        problem = f"has {len(cells)} fields, the table {len(names)}"
        raise InputError(f"{path} line 1", problem, f"its columns are {', '.join(names)}")
    return cells


def _blame(path: Path | str, read: Mapping[str, Type], options: Mapping[str, Any], first_line: int) -> None:
    """Raise InputError for the first cell from a line on that contradicts the type of its column."""
    skipped = first_line - 1 if options.get("header", 0) is None else first_line - 2
    try:
        with open_bytes(path, LONGEST_LINE) as stream:
            parts = pd.read_csv(stream, dtype=str, **options)
            part = next(part for index, part in enumerate(parts) if index == skipped // ROWS)
    except (ValueError, OverflowError, StopIteration):
        return
    _check_cells(part, read, path, first_line)


def _check_cells(part: pd.DataFrame, types: Mapping[str, Type], path: Path | str, line: int) -> None:
    """Raise InputError for the first cell that contradicts the type of its column."""
    for place, row in enumerate(part[[name for name in part.columns if name in types]].to_dict("records")):
        for name, cell in row.items():
            _checked(cell, types[str(name)], f"{path} line {line + place}", str(name))


def _checked(cell: object, kind: Type, where: str, name: str) -> None:
    if kind == "text" or (kind == "float" and cell != cell):
        return
    try:
        good = -(2**63) <= int(str(cell)) < 2**63 if kind == "int" else float(str(cell)) is not None
    except ValueError:
        good = False
    if not good:
        what = "a whole number below 2^63" if kind == "int" else "a number"
        raise InputError(where, f"{name} must be {what}, got {shown(str(cell))}", "correct the line")


def _json_chunks(
    path: Path | str, types: Mapping[str, Type], aliases: Mapping[str, str]
) -> Iterator[tuple[int, pd.DataFrame]]:
    line = 1
    with readable(path), open_bytes(path, LONGEST_LINE) as stream:
        try:
            with pd.read_json(stream, lines=True, chunksize=ROWS, dtype=False, precise_float=True) as parts:
                for part in parts:
                    yield line, _typed(_flat(part).rename(columns=aliases), types, path, line)
                    line += len(part)
        except (ValueError, OverflowError) as error:
            problem = f"is not one JSON object a line ({error})"
            raise InputError(path, problem, f"look at line {line} and below") from None


def _flat(part: pd.DataFrame) -> pd.DataFrame:
    """Replace each column of objects by one column per field."""
    for name in list(part.columns):
        objects = part[name].map(lambda cell: isinstance(cell, dict))
        if objects.any():
            cells = [cell if isinstance(cell, dict) else {} for cell in part[name]]
            inner = pd.DataFrame(cells, index=part.index).add_prefix(f"{name}.")
            part = part.drop(columns=name).join(inner)
    return part


def _typed(part: pd.DataFrame, types: Mapping[str, Type], path: Path | str, line: int) -> pd.DataFrame:
    part = part[[name for name in part.columns if name in types]]
    try:
        return part.astype(
            {str(name): _DTYPES[types[str(name)]] for name in part.columns if types[str(name)] != "text"}
        )
    except (ValueError, TypeError, OverflowError):
        _check_cells(part, types, path, line)
        raise


COLUMNS = (
    *("vmid", "subscriptionid", "deploymentid", "vmcreated", "vmdeleted", "maxcpu", "avgcpu", "p95maxcpu"),
    *("vmcategory", "vmcorecountbucket", "vmmemorybucket"),
)
STEP_S = 300
"""Step of the times of the trace in s."""
LAST_S = 30 * 86_400 - STEP_S
"""The last time of the trace of 30 days in s."""

_LEAST_USE = 1e-3
_VM_TYPES: dict[str, Type] = {
    "vmcreated": "int",
    "vmdeleted": "int",
    "p95maxcpu": "float",
    "vmcorecountbucket": "text",
    "vmmemorybucket": "text",
}


def azure_jobs(path: Path | str, notes: Counter[str]) -> Iterator[pd.DataFrame]:
    """Yield VMs of a `vmtable.csv` (or `.gz`) in parts of a job CSV: arrival_time, length (s), cpus, memory (GB), use.

    VMs are in the order of the file; `notes` counts special cases. Raises InputError with the line.
    """
    for line, part in chunks(path, _VM_TYPES, {}, COLUMNS):
        created, deleted = part["vmcreated"], part["vmdeleted"]
        wrong = ~((created >= 0) & (deleted >= created))
        if wrong.any():
            row = int(np.argmax(wrong.to_numpy()))
            problem = f"a VM must satisfy 0 <= vmcreated <= vmdeleted, got {created.iloc[row]} and {deleted.iloc[row]}"
            raise InputError(f"{path} line {line + row}", problem, "correct the line")
        table = pd.DataFrame(
            {
                "arrival_time": created,
                "length": (deleted - created).where(deleted > created, STEP_S),
                "cpus": np.ceil(_sizes(part["vmcorecountbucket"], path, line)).astype(np.int64),
                "memory": _sizes(part["vmmemorybucket"], path, line),
                "use": (part["p95maxcpu"] / 100.0).clip(_LEAST_USE, 1.0).round(6),
            }
        )
        cut = (created == 0) | (deleted >= LAST_S)
        notes["ran less than 5 min, and count as 5 min"] += int((deleted == created).sum())
        notes[CUT] += int(cut.sum())
        yield table


def _sizes(texts: pd.Series, path: Path | str, line: int) -> pd.Series:
    """Return the numbers in a column of sizes or buckets. Raises InputError with the line."""
    sizes = {text: _size(text) for text in texts.unique()}
    numbers = texts.map(sizes)
    bad = numbers.isna()
    if bad.any():
        row = int(np.argmax(bad.to_numpy()))
        problem = f"{texts.name} must be a number > 0 or a bucket such as >24, got {shown(str(texts.iloc[row]))}"
        raise InputError(f"{path} line {line + row}", problem, "correct the line")
    return numbers


def _size(text: object) -> float:
    """Return the size in a text, or NaN."""
    above = str(text).strip().startswith(">")
    try:
        number = float(str(text).strip().removeprefix(">"))
    except ValueError:
        return math.nan
    if not 0.0 < number < 1e9:
        return math.nan
    return 2.0 ** (math.floor(math.log2(number)) + 1) if above else number


GCU_PER_CORE = 1 / 60
BEGIN_US = 600_000_000
"""Begin of the trace in us."""
NEVER_US = 2**63 - 1
"""Time of events after the trace."""
EVENTS = ("SUBMIT", "QUEUE", "ENABLE", "SCHEDULE", "EVICT", "FAIL", "FINISH", "KILL", "LOST")
"""Names of the event types 0, 1, ...; updates have higher numbers."""
_SUBMIT, _SCHEDULE, _EVICT, _LOST = 0, 3, 4, 8
_CODES = {name: code for code, name in enumerate(EVENTS)}

_CPUS, _MEMORY = "resource_request.cpus", "resource_request.memory"
_ALIASES = {"resource_request_cpus": _CPUS, "resource_request_memory": _MEMORY, "cpus": _CPUS, "memory": _MEMORY}
_TYPES: dict[str, Type] = {
    "time": "int",
    "type": "text",
    "collection_id": "int",
    "collection_type": "text",
    "instance_index": "int",
    _CPUS: "float",
    _MEMORY: "float",
}
_COLLECTION_TYPES: dict[str, Type] = {
    "collection_id": "int",
    "parent_collection_id": "float",
    "start_after_collection_ids": "text",
}
_EXACT = 2.0**53


class _Run(NamedTuple):
    """A current run; times in us, requests normalised."""

    submit_us: int
    start_us: int
    cpus: float
    memory: float
    depends: str


def borg_jobs(events: Path | str, collections: Path | str | None, notes: Counter[str]) -> Iterator[pd.DataFrame]:
    """Yield the runs in `instance_events` as parts of a job CSV: arrival_time, length (s), cpus, memory, depends_on.

    The file is CSV with a header, or JSON lines, or their `.gz`. Runs are in the order of their ends, with numbers from
    1 in `depends_on`. The memory grows with the number of waiting and running instances and of awaited collections, not
    of events. `notes` counts special cases. Raises InputError with the line.
    """
    after = _collections(collections) if collections is not None else {}
    pairing = _Pairing(notes, after, frozenset(n for ids in after.values() for n in ids))
    latest_us = 0
    for line, part in chunks(events, _TYPES, _ALIASES):
        missing = [name for name in ("time", "type", "collection_id", "instance_index") if name not in part.columns]
        if missing:
            raise InputError(events, f"lacks the column {missing[0]!r}", "take instance_events of the trace of 2019")
        latest_us = _in_order(part["time"].to_numpy(), latest_us, events, line)
        listed = part["type"].map(lambda cell: isinstance(cell, list)).to_numpy()
        if listed.any():
            raise InputError(f"{events} line {line + int(listed.argmax())}", "type must be a text", "correct the line")
        for name in (_CPUS, _MEMORY):
            if name in part.columns:
                cells = part[name].to_numpy(dtype=np.float64)
                bad = ~(np.isnan(cells) | ((cells >= 0.0) & (cells <= LARGEST)))
                if bad.any():
                    row = int(bad.argmax())
                    problem = f"{name} must be in 0..{LARGEST:g}, got {cells[row]:g}"
                    raise InputError(f"{events} line {line + row}", problem, "correct the line")
        pairing.add(_relevant(part))
        yield pairing.table()
    pairing.close(latest_us)
    yield pairing.table()


@dataclass
class _Pairing:
    """Runs as pairs of starts and ends of instances."""

    notes: Counter[str]
    after: Mapping[int, tuple[int, ...]]
    awaited: frozenset[int]
    waiting: dict[tuple[int, int], tuple[int, float, float]] = field(default_factory=dict)
    running: dict[tuple[int, int], _Run] = field(default_factory=dict)
    last: dict[int, int] = field(default_factory=dict)
    """Collection -> number of its run that ended last."""
    ended: list[tuple[float, float, int, float, str]] = field(default_factory=list)
    count: int = 0

    def add(self, part: pd.DataFrame) -> None:
        """Read a part of the events."""
        columns = ("time", "code", "collection_id", "instance_index", _CPUS, _MEMORY)
        for time_us, code, collection, index, cpus, memory in zip(
            *(part[name].tolist() for name in columns), strict=True
        ):
            key = (collection, index)
            if code == _SUBMIT:
                self.waiting[key] = (time_us, cpus, memory)
            elif code == _SCHEDULE:
                if key in self.running:
                    self.notes["were started again without an end, and count as ended then"] += 1
                    self._end(key, self.running.pop(key), time_us)
                submit_us, *request = self.waiting.pop(key, (time_us, cpus, memory))
                if cpus != cpus:
                    cpus, memory = request
                self.running[key] = _Run(submit_us, time_us, cpus, memory, self._depends(collection))
            elif key in self.running:
                self._end(key, self.running.pop(key), time_us)
            else:
                self.waiting.pop(key, None)

    def close(self, end_us: int) -> None:
        """End the trace and the current runs at `end_us`."""
        for key, run in self.running.items():
            self.notes[CUT] += 1
            self._add(key, run, end_us)
        self.running.clear()

    def table(self) -> pd.DataFrame:
        """Return the runs that ended since the last call, as a part of a job CSV."""
        names = ["arrival_time", "length", "cpus", "memory", "depends_on"]
        table = pd.DataFrame(self.ended, columns=names)
        self.ended.clear()
        return table if self.after else table.drop(columns="depends_on")

    def _end(self, key: tuple[int, int], run: _Run, end_us: int) -> None:
        self.notes[CUT] += run.start_us < BEGIN_US
        self._add(key, run, end_us)

    def _add(self, key: tuple[int, int], run: _Run, end_us: int) -> None:
        start_us, submit_us = max(run.start_us, BEGIN_US), max(run.submit_us, BEGIN_US)
        if not end_us > start_us:
            self.notes["ended as they began, skipped"] += 1
            return
        cores = max(1, round(run.cpus / GCU_PER_CORE)) if run.cpus == run.cpus else 1
        length_s = (end_us - start_us) / 1e6
        self.ended.append(((min(submit_us, start_us) - BEGIN_US) / 1e6, length_s, cores, run.memory, run.depends))
        self.count += 1
        if key[0] in self.awaited:
            self.last[key[0]] = self.count

    def _depends(self, collection: int) -> str:
        numbers = sorted({self.last[other] for other in self.after.get(collection, ()) if other in self.last})
        return " ".join(map(str, numbers))


def _relevant(part: pd.DataFrame) -> pd.DataFrame:
    """Return the events that begin or end the waiting or running of a job's instances, with their `code`."""
    codes = {text: _code(text) for text in part["type"].unique()}
    part = part.assign(code=part["type"].map(codes))
    relevant = part["code"].isin([_SUBMIT, _SCHEDULE, *range(_EVICT, _LOST + 1)]) & (part["time"] < NEVER_US)
    if "collection_type" in part.columns:
        relevant &= ~part["collection_type"].astype(str).isin(["1", "1.0", "ALLOC_SET"])
    for name in (_CPUS, _MEMORY):
        if name not in part.columns:
            part[name] = np.nan
    return part[relevant]


def _code(text: object) -> int:
    """Return the number of an event type, -1 for an irrelevant one."""
    name = str(text).strip().upper().removesuffix(".0")
    return int(name) if re.fullmatch("[0-9]{1,2}", name) else _CODES.get(name, -1)


def _in_order(times_us: npt.NDArray[np.int64], latest_us: int, path: Path | str, line: int) -> int:
    """Return the latest time within the trace. Raises InputError if an event is older than one before it."""
    within = np.where(times_us < NEVER_US, times_us, 0)
    high = np.maximum.accumulate(np.concatenate(([latest_us], within)))
    old = (times_us < high[:-1]) & (times_us != 0)
    if old.any():
        row = int(np.argmax(old))
        problem = f"an event at {times_us[row]} us after one at {high[row]} us"
        raise InputError(f"{path} line {line + row}", problem, "sort the events by time")
    if (times_us < 0).any():
        row = int(np.argmax(times_us < 0))
        raise InputError(f"{path} line {line + row}", f"time must be >= 0 us, got {times_us[row]}", "correct the line")
    return int(high[-1])


def _collections(path: Path | str) -> dict[int, tuple[int, ...]]:
    """Return collection -> collections after which it starts, or whose child it is. Raises InputError."""
    after: dict[int, tuple[int, ...]] = {}
    for line, part in chunks(path, _COLLECTION_TYPES, {}):
        if "collection_id" not in part.columns:
            raise InputError(path, "lacks the column 'collection_id'", "take collection_events of the trace of 2019")
        columns = part.reindex(columns=list(_COLLECTION_TYPES))
        for row, (collection, parent, texts) in enumerate(columns.itertuples(index=False, name=None)):
            names = set(map(int, re.findall("[0-9]{1,19}", str(texts)))) if texts == texts else set()
            if parent == parent:
                if not 0.0 <= parent < _EXACT:
                    problem = f"parent_collection_id {parent:g} is not an id"
                    raise InputError(f"{path} line {line + row}", problem, "correct the line")
                names.add(int(parent))
            names -= {0, collection}
            if names:
                after[collection] = tuple(sorted(names | set(after.get(collection, ()))))
    return after
