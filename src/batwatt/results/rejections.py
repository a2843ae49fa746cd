"""Why jobs were rejected: what the scheduler attached to them, or what follows from the platform."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

import numpy as np

from batwatt.model.workload import MIGRATED, OVERHEAD, REMAINDER, Workload
from batwatt.results.columns import REJECTED
from batwatt.results.parts import Mask
from batwatt.results.run_data import texts
from batwatt.results.run_table import JobRows

NO_REASON = "the scheduler gave no reason"


def rejected_rows(found: JobRows) -> Mask:
    """Rows of the jobs that count as rejected: not those that waited when the window was over."""
    return (texts(found.jobs, "final_state") == REJECTED) & ~(found.beyond | found.kinds.overhead)


def causes(found: JobRows, workload: Workload, hosts: int) -> np.ndarray:
    """Cause of each row's rejection on a platform of this many hosts; empty where the row is none."""
    found_causes = np.full(len(found.beyond), "", dtype=object)
    metadata = texts(found.jobs, "metadata")
    for row in np.flatnonzero(rejected_rows(found)).tolist():
        text, job = str(metadata[row]), int(found.origins.job[row])
        if text and text not in (MIGRATED, REMAINDER) and not OVERHEAD.search(text):
            found_causes[row] = text
        elif job >= 0 and workload.jobs[job].hosts > hosts:
            found_causes[row] = f"wider than the platform of {hosts} hosts"
        else:
            found_causes[row] = NO_REASON
    return found_causes


def rejections(found: JobRows, workload: Workload, hosts: int) -> dict[str, int]:
    """Cause -> rejected jobs, the most frequent first."""
    counts = Counter(cause for cause in causes(found, workload, hosts).tolist() if cause)
    return dict(sorted(counts.items(), key=lambda item: (-item[1], item[0])))


def rejections_text(counts: Mapping[str, int]) -> str:
    """The causes in a line; empty without any."""
    return "; ".join(f"{count} {cause}" for cause, count in counts.items())
