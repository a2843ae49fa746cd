"""Virtual machines of Microsoft Azure as jobs: `vmtable.csv` of the public traces of 2017 and 2019.

A line is a VM: vmid, subscriptionid, deploymentid, vmcreated, vmdeleted (s since the trace began), maxcpu, avgcpu,
p95maxcpu (per cent), vmcategory, vmcorecountbucket, vmmemorybucket (GB); there is no header. The trace of 2019 has
buckets: ">24" cores and ">64" GB are read as the next power of two, 32 and 128.

A VM is a job from its creation to its deletion. Times are multiples of 5 min: a VM created and deleted at one time ran
for less, and counts as 5 min. A VM that existed at the begin of the trace (created at 0) or at its end (deleted at
2,591,700 s or later) ran for longer than in the trace: its part in the trace is a job. Its `use` is the 95th
percentile of its maxima (section 5.1.4 of the varcap dissertation), at least 0.1 %.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pandas as pd

from batwatt.checks import shown
from batwatt.errors import InputError
from batwatt.inputs.traces.chunked_csv import CUT, Type, chunks

COLUMNS = (
    *("vmid", "subscriptionid", "deploymentid", "vmcreated", "vmdeleted", "maxcpu", "avgcpu", "p95maxcpu"),
    *("vmcategory", "vmcorecountbucket", "vmmemorybucket"),
)
STEP_S = 300
"""Step of the times of the trace in s."""
LAST_S = 30 * 86_400 - STEP_S
"""The last time of the trace of 30 days in s."""

_LEAST_USE = 1e-3
_TYPES: dict[str, Type] = {
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
    for line, part in chunks(path, _TYPES, {}, COLUMNS):
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
