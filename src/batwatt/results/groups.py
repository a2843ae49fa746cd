"""Groups of jobs: of several systems by user, group, queue, size or length, and of one run by length.

`batwatt.results.figures` declares the figures of a group, compared with the first system; means are over its finished
jobs. The file `PREFIX_classes.csv` has terminations by class of run time: jobs and runs by the length of the job
(varcap dissertation, Figure 6.6).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from batwatt.errors import InputError
from batwatt.model.workload import LABELS
from batwatt.results.run_files import FILES, file_of, write_rows
from batwatt.results.run_table import Floats, Mask, RunTable
from batwatt.units import HOUR_S

if TYPE_CHECKING:
    import pandas as pd

EDGES_H = (0.0, 0.25, 1.0, 3.0, 6.0, 12.0, 24.0, math.inf)
"""Edges of the classes of run time in h: a class is ]from, to]."""
SIZES = (1.0, 4.0, 16.0, 64.0, 256.0, math.inf)
"""Upper ends of the classes of size, in hosts."""
CLASSES = ("size", "length")
BY = (*LABELS, *CLASSES)
"""Groupings of jobs."""
MOST = 10
"""Largest number of users, groups or queues in a table, by number of jobs; the others form one group."""
UNKNOWN = "unknown"


def groups_of(jobs: pd.DataFrame, by: str) -> pd.DataFrame:
    """Return a row for each case and group, with the columns `by`, `case`, `group` and those of its figures.

    `jobs` has a row for each job of each case: `case`, `state`, `hosts`, `length_s`, `wait_s` and
    `full_speed_slowdown` (NaN for an unfinished job), `wait_more_s` and `full_speed_slowdown_more`, and the column
    `by` if it is not size or length. Classes are in ascending order, users in descending order of their jobs.
    """
    import pandas as pd

    code, names = _codes(jobs, by)
    keyed = jobs.assign(code=code, finished=jobs["state"].eq("finished"))
    grouped = keyed.groupby(["case", "code"], sort=False)
    table = pd.DataFrame(
        {
            "jobs": grouped.size(),
            "finished_share": grouped["finished"].mean(),
            "mean_wait_s": grouped["wait_s"].mean(),
            "mean_full_speed_slowdown": grouped["full_speed_slowdown"].mean(),
            "paired_jobs": grouped["wait_more_s"].count(),
            "wait_more_s": grouped["wait_more_s"].mean(),
            "full_speed_slowdown_more": grouped["full_speed_slowdown_more"].mean(),
        }
    )
    order = [(case, number) for case in jobs["case"].unique() for number in range(len(names))]
    table = table.reindex([key for key in order if key in table.index]).reset_index()
    table.insert(0, "by", by)
    table.insert(2, "group", [names[number] for number in table.pop("code")])
    return table


def known_groupings(jobs: pd.DataFrame) -> list[str]:
    """Return the groupings that the jobs allow: size, length, and the labels of at least one job."""
    return [*CLASSES, *(name for name in LABELS if name in jobs and jobs[name].fillna("").ne("").any())]


def _codes(jobs: pd.DataFrame, by: str) -> tuple[np.ndarray, list[str]]:
    """Return the number of each row's group, and the names of the groups in their order."""
    if by == "size":
        sizes = [_class(low + 1.0, high, "hosts") for low, high in pairwise(SIZES)]
        codes = np.searchsorted(np.array(SIZES), jobs["hosts"].to_numpy(dtype=float), side="left")
        return codes, [f"{SIZES[0]:.0f} host", *sizes]
    if by == "length":
        # NaN sorts after infinity: its class follows the last
        edges_s, lengths_s = np.array(EDGES_H[1:]) * HOUR_S, jobs["length_s"].to_numpy(dtype=float)
        names = [*(_class(low, high, "h") for low, high in pairwise(EDGES_H)), UNKNOWN]
        return np.searchsorted(edges_s, lengths_s, side="left"), names
    if by not in LABELS:
        raise ValueError(f"jobs are grouped by {', '.join(BY)}, got {by!r}")
    labels = jobs[by].astype(object)
    labels = labels.where(labels.notna() & labels.ne(""), UNKNOWN).astype(str)
    # each job has a row in each case
    counts = labels.value_counts()
    ranked = sorted(counts.index, key=lambda name: (-counts[name], name))
    largest, others = ranked[:MOST], len(ranked) - MOST
    numbers = {name: number for number, name in enumerate(largest)}
    names = [*largest, f"{others} other{'s' * (others > 1)}"] if others > 0 else largest
    return labels.map(lambda name: numbers.get(name, MOST)).to_numpy(), names


def _class(low: float, high: float, unit: str) -> str:
    if unit == "h" and low < 1.0:
        begin = f"{60.0 * low:g} min to " if low else "up to "
        return begin + (f"{high:g} h" if high >= 1.0 else f"{60.0 * high:g} min")
    if high == math.inf:
        return f"over {low - (unit == 'hosts'):g} {unit}"
    return f"{low:g} to {high:g} {unit}"


def union_of(jobs: pd.DataFrame, by: Sequence[str]) -> pd.DataFrame:
    """Return the groups by several groupings, one below the other. Raises InputError for one without labels."""
    import pandas as pd

    for name in by or ("",):
        if name not in known_groupings(jobs):
            hint = f"these jobs are grouped by {', '.join(known_groupings(jobs))}"
            raise InputError("by", f"no job has a {name}" if name else "names no grouping", hint)
    return pd.concat([groups_of(jobs, name) for name in by], ignore_index=True)


def classes_of(run_table: RunTable) -> list[dict[str, float | int | None]]:
    """Return rows of the columns `CLASSES`, a class of length between two of `EDGES_H` each.

    A job without a declared length that never ran is in no class; `mean_wait_s` is None if no job completed.
    """
    by_row, by_job = _class_of(run_table.length_s), _class_of(run_table.job_length_s)
    core_s = run_table.declared.cores * run_table.job_length_s
    last = run_table.chains.last
    ended = np.isfinite(run_table.finish_s) & (run_table.finish_s > run_table.window.begin_s)
    # rows that ran in the window; a chain counts in the class of its last row
    ran = ended & (run_table.chains.start_s <= run_table.window.end_s) & ~run_table.overhead
    classes: list[dict[str, float | int | None]] = []
    for index, (low, high) in enumerate(pairwise(EDGES_H)):
        jobs, rows = (by_job == index) & run_table.due, by_row == index
        completed = run_table.completed & rows
        count = int(completed.sum())
        classes.append(
            {
                "from_h": low,
                "to_h": high,
                "jobs": int(jobs.sum()),
                "core_h": _hours(core_s, jobs),
                "runs": len(np.unique(last[ran & rows])),
                "completed": count,
                "terminations": int((run_table.killed & rows).sum()),
                "wasted_core_h": _hours(run_table.work_core_s, run_table.aborted & rows),
                "useful_core_h": _hours(run_table.work_core_s, run_table.useful & rows),
                "mean_wait_s": math.fsum(run_table.wait_s[completed].tolist()) / count if count else None,
            }
        )
    return classes


def write_classes(prefix: Path | str, run_table: RunTable) -> Path:
    """Write `PREFIX_classes.csv`; return its path. Raises InputError."""
    path, columns = file_of(prefix, "classes"), FILES["classes"]
    write_rows(path, columns, [[row[column.name] for column in columns] for row in classes_of(run_table)])
    return path


def _class_of(lengths_s: Floats) -> NDArray[np.intp]:
    """Return the index of each length's class; the number of classes for an unknown length."""
    edges = np.array(EDGES_H[1:]) * HOUR_S
    # NaN sorts after infinity
    return np.searchsorted(edges, lengths_s, side="left")


def _hours(core_s: Floats, rows: Mask) -> float:
    return math.fsum(core_s[rows].tolist()) / HOUR_S
