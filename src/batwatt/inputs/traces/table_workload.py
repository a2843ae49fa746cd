"""A window of a trace that is a table as a Batsim workload: what `window_json` says, a column at a time."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from batwatt.inputs.platforms.platform_gen import number_text
from batwatt.inputs.traces.dependencies import within
from batwatt.inputs.traces.trace_table import Column, TraceTable
from batwatt.inputs.workloads.batsim_json import MAX_INT
from batwatt.model.workload import (
    CHECKPOINT_S,
    DEPENDS,
    ESTIMATE,
    LENGTH,
    MEMORY,
    RECOVERY_S,
    RELEASE,
    USE,
    Delay,
    Job,
    Workload,
)

MAX_S = 1e15
"""Longest time in s whose microseconds a float still resolves, roughly."""


def table_workload(
    table: TraceTable, begin_s: float, end_s: float, nb_res: int, name: str, source: object
) -> Workload | None:
    """The workload of the window [begin_s, end_s] (s) of a table; None if a job or the window is not as it must be."""
    if not _good(table, name):
        return None
    early = table.submit_s < begin_s
    left_s = table.run_s.copy()
    # one by one, as `round` and numpy do not agree on the last digit
    left_s[early] = [round(value, 6) for value in (table.run_s - (begin_s - table.submit_s))[early].tolist()]
    kept = (table.submit_s <= end_s) & (left_s > 0.0)
    if not kept.any():
        return None
    table, left_s, early = table.where(kept), left_s[kept], early[kept]
    rows = _order(np.maximum(table.submit_s, begin_s), table.numbers)
    table, left_s, early = table.rows(rows), left_s[rows], early[rows]
    lengths, profile_of = np.unique(left_s, return_inverse=True)
    names = [f"d{number_text(length_s)}" for length_s in lengths.tolist()]
    submits_s = np.maximum(table.submit_s, begin_s)
    depends = _depends(table, source)
    known = {
        MEMORY: table.memory,
        ESTIMATE: table.requested_s,
        USE: table.use,
        CHECKPOINT_S: table.checkpoint_s,
        RECOVERY_S: table.recovery_s,
    }
    needs = [(field, _plains(column)) for field, column in known.items() if column is not None]
    jobs = []
    columns = zip(
        table.numbers.tolist(),
        submits_s.tolist(),
        table.cpus.tolist(),
        profile_of.tolist(),
        early.tolist(),
        strict=True,
    )
    for row, (number, submit_s, cpus, profile, before) in enumerate(columns):
        full_id = f"{name}!{number}"
        raw: dict[str, Any] = {"id": full_id, "subtime": plain(submit_s), "res": cpus, "profile": names[profile]}
        if before:
            raw[RELEASE], raw[LENGTH] = plain(float(table.submit_s[row])), plain(float(table.run_s[row]))
        for field, values in needs:
            value = values[row]
            if value is not None:
                raw[field] = value
        if depends and number in depends:
            raw[DEPENDS] = depends[number]
        jobs.append(Job(full_id, submit_s, cpus, names[profile], None, raw))
    delays = list(zip(names, lengths.tolist(), strict=True))
    return Workload(
        name=name,
        jobs=tuple(jobs),
        profiles={profile: Delay(length_s) for profile, length_s in delays},
        raw_profiles={profile: {"type": "delay", "delay": plain(length_s)} for profile, length_s in delays},
        nb_res=nb_res,
        source=str(source),
    )


def plain(value: float) -> float:
    """The same number, as an int if whole."""
    return int(value) if float(value).is_integer() else value


def _good(table: TraceTable, name: str) -> bool:
    """Whether every job can be run, and no id holds the workload's name, which Batsim misreads."""
    times = (table.submit_s >= 0.0) & (table.submit_s <= MAX_S) & (table.run_s > 0.0) & (table.run_s <= MAX_S)
    return bool((times & (table.cpus >= 1) & (table.cpus <= MAX_INT)).all()) and not name.isdigit()


def _order(submits_s: Column, numbers: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Rows by submission, then by id as a text: "10" before "9"."""
    digits = np.char.str_len(numbers.astype("U20"))
    padded = numbers * 10 ** (digits.max() - digits)
    return np.lexsort((digits, padded, submits_s))


def _depends(table: TraceTable, source: object) -> dict[int, list[str]]:
    """For each id, the ids of the jobs of the table that must complete first."""
    if not table.depends:
        return {}
    ids = [str(number) for number in table.numbers.tolist()]
    named = {ids[row]: names for row, names in table.depends.items()}
    return {int(job): names for job, names in within(named, set(ids), source).items()}


def _plains(column: Column) -> list[float | None]:
    """The values as `plain` has them, None where unknown."""
    return [None if value != value else int(value) if value.is_integer() else value for value in column.tolist()]
