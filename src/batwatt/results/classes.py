"""Terminations by class of run time: jobs and runs by the length of the job (varcap dissertation, Figure 6.6)."""

from __future__ import annotations

import math
from itertools import pairwise
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from batwatt.results.run_files import CLASSES, file_of, write_rows
from batwatt.results.run_table import Floats, Mask, RunTable
from batwatt.units import HOUR_S

EDGES_H = (0.0, 0.25, 1.0, 3.0, 6.0, 12.0, 24.0, math.inf)
"""Edges of the classes of run time in h: a class is ]from, to]."""


def classes_of(run_table: RunTable) -> list[dict[str, float | int | None]]:
    """Return rows of the columns `CLASSES`, a class of length between two of `EDGES_H` each.

    A job without a declared length that never ran is in no class; `mean_wait_s` is None if no job completed.
    """
    by_row, by_job = _class_of(run_table.length_s), _class_of(run_table.job_length_s)
    core_s = run_table.declared.cores * run_table.job_length_s
    last = run_table.chains.last
    ended = np.isfinite(run_table.finish_s) & (run_table.finish_s > run_table.window.begin_s)
    # rows that ran in the window; a chain counts in the class of its last row
    ran = ended & (run_table.chains.start_s <= run_table.window.end_s) & ~run_table.kinds.overhead
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
    path = file_of(prefix, "classes")
    write_rows(path, CLASSES, [[row[column.name] for column in CLASSES] for row in classes_of(run_table)])
    return path


def _class_of(lengths_s: Floats) -> NDArray[np.intp]:
    """Return the index of each length's class; the number of classes for an unknown length."""
    edges = np.array(EDGES_H[1:]) * HOUR_S
    # NaN sorts after infinity
    return np.searchsorted(edges, lengths_s, side="left")


def _hours(core_s: Floats, rows: Mask) -> float:
    return math.fsum(core_s[rows].tolist()) / HOUR_S
