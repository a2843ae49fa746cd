"""How fair a run was: the yield of a job is its progress over the time in which it could have made some.

    min_yield, mean_yield    over the jobs, of useful work in s / (until - since)

Useful is what counts in goodput, in the window: what a kill lost is none, whoever was killed. `since` is the submission
or the begin of the window, `until` the completion or the end of the window, whichever is nearer to the middle. A job
that is there and never runs has a yield of 0, one that never waits, is never killed and never checkpointed has 1. Left
out are jobs that were submitted less than `LEAST_S` before the end or completed before the begin, and those that were
refused or failed, as these are nobody's choice. It is the yield of docs/explanation/checkpoint.md if a job always fits.
"""

from __future__ import annotations

import math

import numpy as np

from batwatt.results.run_table import Floats, RunTable
from batwatt.units import LAG_S

LEAST_S = 1.0
"""A job that comes later than this, in s before the end, is left out."""


def yields_of(run_table: RunTable) -> Floats:
    """The yield of each job that was there, in the order of the workload; in [0, 1]."""
    window, submit_s = run_table.window, run_table.declared.submit_s
    since_s = np.maximum(submit_s, window.begin_s)
    there_s = np.fmin(run_table.completed_s, window.end_s) - since_s
    counted = ~run_table.out & (submit_s <= window.end_s - LEAST_S) & (there_s > LAG_S)
    rows = np.flatnonzero(run_table.useful & run_table.origins.known)
    job, work_s = run_table.origins.job[rows], run_table.work_s[rows]
    # the same sums whatever the order of rows
    order = np.lexsort((work_s, job))
    useful_s = np.bincount(job[order], weights=work_s[order], minlength=len(submit_s))
    return np.minimum(useful_s[counted] / there_s[counted], 1.0)


def yield_figures(run_table: RunTable) -> dict[str, float | None]:
    """The least and the mean yield, by the names of `figures.METRICS`; None if no job was there."""
    yields = yields_of(run_table)
    if not len(yields):
        return {"min_yield": None, "mean_yield": None}
    return {"min_yield": float(yields.min()), "mean_yield": math.fsum(yields.tolist()) / len(yields)}
