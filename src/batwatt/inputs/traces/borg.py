"""Instances of Google's Borg as jobs: the tables `instance_events` and `collection_events` of the trace of 2019 (v3).

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

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd

from batwatt.errors import InputError
from batwatt.inputs.traces.chunked_csv import CUT, Type, chunks
from batwatt.model.series import LARGEST

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
