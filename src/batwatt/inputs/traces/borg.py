"""Instances of Google's Borg as jobs: the tables `instance_events` and `collection_events` of the trace of 2019 (v3).

An instance of a job runs from a SCHEDULE to the EVICT, FAIL, FINISH, KILL or LOST that follows for the same
collection_id and instance_index; every such run is a job, released when it was submitted (SUBMIT), else when it
started. Reservations (instances of alloc sets) are none. Times are in us and begin at 600 s, which becomes 0; a time of
0 is "before the trace", 2^63 - 1 "after it". A run that began before or had not ended is kept with what the trace has
of it, or dropped. Events must be in the order of their times, so that one pass will do (`ORDER BY time`).

`resource_request.cpus` is normalised, 1 being the largest machine: cores are of `gcu_per_core`, by default 1/60,
rounded and at least 1, so that a cell of 630 machines and 336 GCU has 32 cores each. Memory stays normalised.

Of `collection_events` come dependencies: of the collections that a job's may start after (start_after_collection_ids)
or is a child of (parent_collection_id), the run that had ended last when the job started. What had not ended then was
not waited for: "start after" is kept whenever the trace kept it, and a parent that still runs is no obstacle.
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

from batwatt.checks import Between
from batwatt.errors import InputError
from batwatt.inputs.traces.chunked_csv import Censored, Type, chunks, cut_note
from batwatt.model.series import LARGEST

GCU_PER_CORE = 1 / 60
BEGIN_US = 600_000_000
"""When the trace begins."""
NEVER_US = 2**63 - 1
"""The time of events after the trace."""
EVENTS = ("SUBMIT", "QUEUE", "ENABLE", "SCHEDULE", "EVICT", "FAIL", "FINISH", "KILL", "LOST")
"""Names of the types of events 0, 1, ...; updates are more."""
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
    """A run that goes on; times in us, what is asked for normalised."""

    submit_us: int
    start_us: int
    cpus: float
    memory: float
    depends: str


def borg_jobs(
    events: Path | str,
    collections: Path | str | None = None,
    *,
    gcu_per_core: float = GCU_PER_CORE,
    censored: Censored = "keep",
    notes: Counter[str],
) -> Iterator[pd.DataFrame]:
    """The runs in `instance_events` as parts of a job CSV: arrival_time, length (s), cpus, memory, depends_on.

    CSV with a header, or JSON lines; `.gz` too. Runs come in the order of their ends, and `depends_on` counts them from
    1. Memory taken grows with the instances that wait or run and with the collections that are waited for, not with the
    events. `notes` counts what was done with how many. Raises InputError with the line.
    """
    Between(0.0, 1.0, "]]").check(events, "gcu_per_core", gcu_per_core)
    after = _collections(collections) if collections is not None else {}
    pairing = _Pairing(
        gcu_per_core, censored == "keep", notes, after, frozenset(n for ids in after.values() for n in ids)
    )
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
        pairing.take(_relevant(part))
        yield pairing.table()
    pairing.close(latest_us)
    yield pairing.table()


@dataclass
class _Pairing:
    """Pairs starts with ends."""

    gcu_per_core: float
    keep: bool
    notes: Counter[str]
    after: Mapping[int, tuple[int, ...]]
    awaited: frozenset[int]
    waiting: dict[tuple[int, int], tuple[int, float, float]] = field(default_factory=dict)
    running: dict[tuple[int, int], _Run] = field(default_factory=dict)
    last: dict[int, int] = field(default_factory=dict)
    """By collection, the number of the run of it that ended last."""
    done: list[tuple[float, float, int, float, str]] = field(default_factory=list)
    count: int = 0

    def take(self, part: pd.DataFrame) -> None:
        """Go through events."""
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
                submit_us, *asked = self.waiting.pop(key, (time_us, cpus, memory))
                if cpus != cpus:
                    cpus, memory = asked
                self.running[key] = _Run(submit_us, time_us, cpus, memory, self._depends(collection))
            elif key in self.running:
                self._end(key, self.running.pop(key), time_us)
            else:
                self.waiting.pop(key, None)

    def close(self, end_us: int) -> None:
        """The trace is over."""
        for key, run in self.running.items():
            self._note_cut()
            if self.keep:
                self._add(key, run, end_us)
        self.running.clear()

    def table(self) -> pd.DataFrame:
        """What has ended since, as a part of a job CSV."""
        names = ["arrival_time", "length", "cpus", "memory", "depends_on"]
        table = pd.DataFrame(self.done, columns=names)
        self.done.clear()
        return table if self.after else table.drop(columns="depends_on")

    def _end(self, key: tuple[int, int], run: _Run, end_us: int) -> None:
        if run.start_us < BEGIN_US:
            self._note_cut()
            if not self.keep:
                return
        self._add(key, run, end_us)

    def _note_cut(self) -> None:
        self.notes[cut_note(self.keep)] += 1

    def _add(self, key: tuple[int, int], run: _Run, end_us: int) -> None:
        start_us, submit_us = max(run.start_us, BEGIN_US), max(run.submit_us, BEGIN_US)
        if not end_us > start_us:
            self.notes["ended as they began, skipped"] += 1
            return
        cores = max(1, round(run.cpus / self.gcu_per_core)) if run.cpus == run.cpus else 1
        length_s = (end_us - start_us) / 1e6
        self.done.append(((min(submit_us, start_us) - BEGIN_US) / 1e6, length_s, cores, run.memory, run.depends))
        self.count += 1
        if key[0] in self.awaited:
            self.last[key[0]] = self.count

    def _depends(self, collection: int) -> str:
        numbers = sorted({self.last[other] for other in self.after.get(collection, ()) if other in self.last})
        return " ".join(map(str, numbers))


def _relevant(part: pd.DataFrame) -> pd.DataFrame:
    """The events of the trace that begin or end waiting or running of a job's instances, with their `code`."""
    codes = {text: _code(text) for text in part["type"].unique()}
    part = part.assign(code=part["type"].map(codes))
    kept = part["code"].isin([_SUBMIT, _SCHEDULE, *range(_EVICT, _LOST + 1)]) & (part["time"] < NEVER_US)
    if "collection_type" in part.columns:
        kept &= ~part["collection_type"].astype(str).isin(["1", "1.0", "ALLOC_SET"])
    for name in (_CPUS, _MEMORY):
        if name not in part.columns:
            part[name] = np.nan
    return part[kept]


def _code(text: object) -> int:
    """The number of a type of event, -1 for one that does not matter."""
    name = str(text).strip().upper().removesuffix(".0")
    return int(name) if re.fullmatch("[0-9]{1,2}", name) else _CODES.get(name, -1)


def _in_order(times_us: npt.NDArray[np.int64], latest_us: int, path: Path | str, line: int) -> int:
    """The latest time within the trace; InputError if an event is older than one before it."""
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
    """By collection, those that it starts after or is a child of."""
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
