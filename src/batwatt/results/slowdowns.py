"""Slowdowns and waits of the jobs that completed.

For a run with the first submission s that began at b, ended at e and executed for x s, of a job released at r (s unless
declared otherwise) with a run time of p s at full speed (of the whole job if it began before the window):

    slowdown               (e - s) / x, as Batsim's `stretch`; see `metrics`
    full-speed slowdown    (e - r) / p
    bounded slowdown       max(1, (e - r) / max(`BOUND_S`, p))
    wait                   b - s

The last three are of the runs that completed in the window, e no later than its end. Jobs with p below `REPORTED_S`,
the resolution of the times of a run, have no full-speed slowdown.
"""

from __future__ import annotations

import math

import numpy as np

from batwatt.results.parts import Floats, Mask, Rows
from batwatt.results.run_table import RunTable
from batwatt.units import REPORTED_S

BOUND_S = 10.0
"""Shortest run time in s that a bounded slowdown is relative to."""


def slowdown_figures(run_table: RunTable) -> dict[str, float | None]:
    """Compute the figures of waits and of slowdowns, by the names of `figures.METRICS`."""
    _, took_s, full_s = turnarounds(run_table)
    lasting = full_s >= REPORTED_S
    slowdowns = took_s[lasting] / full_s[lasting]
    waits = run_table.wait_s[run_table.completed]
    return {
        "mean_bounded_slowdown": _mean(np.maximum(1.0, took_s / np.maximum(BOUND_S, full_s))),
        "mean_full_speed_slowdown": _mean(slowdowns),
        "max_full_speed_slowdown": float(slowdowns.max()) if len(slowdowns) else None,
        "mean_wait_s": mean_wait_s(run_table, run_table.completed),
        "p95_wait_s": float(np.percentile(waits, 95.0)) if len(waits) else None,
    }


def turnarounds(run_table: RunTable) -> tuple[Rows, Floats, Floats]:
    """Return the rows of jobs that completed in the window, with e - r and p in s, without jobs of unknown p."""
    declared, origins = run_table.declared, run_table.origins
    rows = np.flatnonzero(run_table.completed & origins.in_workload)
    rows = rows[~np.isnan(declared.length_s[origins.job[rows]])]
    job = origins.job[rows]
    released_s = declared.release_s[job]
    release_s = np.where(np.isnan(released_s), origins.submit_s[rows], released_s)
    return rows, np.minimum(run_table.finish_s[rows], run_table.window.end_s) - release_s, declared.length_s[job]


def mean_wait_s(run_table: RunTable, rows: Mask) -> float | None:
    """Return the mean wait in s of rows; None without rows."""
    return _mean(run_table.wait_s[rows])


def _mean(values: Floats) -> float | None:
    """Return the exact sum, rounded once, over the count: its bytes do not depend on the order of rows."""
    return math.fsum(values.tolist()) / len(values) if len(values) else None
