"""Fairness of a run: the yield of a job is its useful work over the time in which it could run.

    min_yield, mean_yield    over the jobs, of useful work in s / (until - since)

Useful work is that of goodput, in the window, without work lost to kills. `since` is the submission or the begin of the
window, whichever is later, `until` the completion or the end of the window, whichever is earlier. The yield of a job
that never runs is 0, that of a job without waits, kills and checkpoints is 1. Jobs submitted less than `LEAST_S` before
the end or completed before the begin are left out, and so are jobs that were refused or failed, as the scheduler does
not choose them. It is the yield of docs/explanation/checkpoint.md if a job always fits.
"""

from __future__ import annotations

import math

import numpy as np

from batwatt.results.run_table import Floats, RunTable
from batwatt.units import LAG_S

LEAST_S = 1.0
"""Least time in s from the submission of a counted job to the end of the window."""


def yields_of(run_table: RunTable) -> Floats:
    """Return the yield of each counted job, in the order of the workload; in [0, 1]."""
    window, submit_s = run_table.window, run_table.declared.submit_s
    since_s = np.maximum(submit_s, window.begin_s)
    there_s = np.fmin(run_table.completed_s, window.end_s) - since_s
    counted = ~run_table.out & (submit_s <= window.end_s - LEAST_S) & (there_s > LAG_S)
    rows = np.flatnonzero(run_table.useful & run_table.origins.in_workload)
    job, work_s = run_table.origins.job[rows], run_table.work_s[rows]
    # sums do not depend on the order of rows
    order = np.lexsort((work_s, job))
    useful_s = np.bincount(job[order], weights=work_s[order], minlength=len(submit_s))
    return np.minimum(useful_s[counted] / there_s[counted], 1.0)


def yield_figures(run_table: RunTable) -> dict[str, float | None]:
    """Return the least and the mean yield, by the names of `figures.METRICS`; None without counted jobs."""
    yields = yields_of(run_table)
    if not len(yields):
        return {"min_yield": None, "mean_yield": None}
    return {"min_yield": float(yields.min()), "mean_yield": math.fsum(yields.tolist()) / len(yields)}
