"""Causes of rejections of jobs: the metadata from the scheduler, or the width of the platform."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

import numpy as np

from batwatt.model.workload import MIGRATED, OVERHEAD, REMAINDER, Workload
from batwatt.results.parts import Mask
from batwatt.results.run_files import REJECTED, texts
from batwatt.results.run_table import ClassedRows

NO_REASON = "the scheduler gave no reason"


def rejected_rows(table: ClassedRows) -> Mask:
    """Return a mask of rejected jobs, without those that waited at the end of the window."""
    return (texts(table.jobs, "final_state") == REJECTED) & ~(table.beyond | table.kinds.overhead)


def causes(table: ClassedRows, workload: Workload, hosts: int) -> np.ndarray:
    """Return the cause of each row's rejection on a platform of `hosts` hosts; empty for other rows."""
    out = np.full(len(table.beyond), "", dtype=object)
    metadata = texts(table.jobs, "metadata")
    for row in np.flatnonzero(rejected_rows(table)).tolist():
        text, job = str(metadata[row]), int(table.origins.job[row])
        if text and text not in (MIGRATED, REMAINDER) and not OVERHEAD.search(text):
            out[row] = text
        elif job >= 0 and workload.jobs[job].hosts > hosts:
            out[row] = f"wider than the platform of {hosts} hosts"
        else:
            out[row] = NO_REASON
    return out


def rejections(table: ClassedRows, workload: Workload, hosts: int) -> dict[str, int]:
    """Return the number of rejected jobs by cause, the most frequent first."""
    counts = Counter(cause for cause in causes(table, workload, hosts).tolist() if cause)
    return dict(sorted(counts.items(), key=lambda item: (-item[1], item[0])))


def rejections_text(counts: Mapping[str, int]) -> str:
    """Return the causes in a line; empty without causes."""
    return "; ".join(f"{count} {cause}" for cause, count in counts.items())
