"""Reader of jobs in phases: CSV traces with a column of models, and models as JSON, which are never evaluated."""

from __future__ import annotations

import ast
import logging
from pathlib import Path
from typing import Any

from batwatt.checks import load_strict, shown
from batwatt.errors import InputError
from batwatt.files import read_text
from batwatt.inputs.traces.jobs_csv import TimeUnit, iter_jobs_csv
from batwatt.inputs.traces.trace import TraceJob
from batwatt.model.work import PhaseModel, ShiftJob
from batwatt.protocol.job_fields import ARGS, TYPE, model_of, model_of_type
from batwatt.units import SINCE_1970_S, YEAR_S, number_text

LENGTH_SHARE = 0.005
"""Relative difference between the phases and the length of a job above which it is reported."""

_log = logging.getLogger(__name__)


def read_phase_jobs(path: Path | str, unit: TimeUnit = "s", watts: float = 1.0) -> list[ShiftJob]:
    """Read the jobs of a CSV trace with their models; `unit` is that of the columns of times, args are in s.

    Columns: arrival_time, length, cpus, and optionally `name` (the type of the model: one of TYPES, empty: constant)
    and `args` (the arguments of the type, as JSON or as a Python literal). Without them each cpu draws `watts`.
    Phases precede `length`: one warning counts jobs where they differ. Jobs whose length or width is 0 or unknown are
    left out with a warning. Raises InputError with the job.
    """
    jobs, left_out, differing = [], 0, []
    for row in iter_jobs_csv(path, unit):
        where = f"{path}: job {row.id}"
        if not row.submit_s < SINCE_1970_S:
            problem = f"arrives at {number_text(row.submit_s)} s, {row.submit_s / YEAR_S:.0f} years after 0 s"
            raise InputError(where, problem, "is it a date? then give seconds after the signal's 0 s (from=)")
        if row.cpus <= 0 or (row.run_s <= 0.0 and _kind(row) == "constant"):
            left_out += 1
            continue
        text = str(row.extra.get(ARGS, "")).strip()
        args = _literal(text, where) if text else None
        model = model_of_type(_kind(row), args, where, row.run_s if row.run_s > 0.0 else None, watts)
        if row.run_s > 0.0 and abs(model.length_s - row.run_s) > LENGTH_SHARE * row.run_s:
            differing.append((row.id, model.length_s, row.run_s))
        try:
            jobs.append(ShiftJob(row.id, row.submit_s, model, row.cpus))
        except ValueError as error:
            raise InputError(path, str(error), "correct the line") from None
    if not jobs:
        raise InputError(path, "has no jobs", "give lines arrival_time,length,cpus with a length and cpus > 0")
    if left_out:
        _log.warning("%s: %d jobs without a length or cpus left out", path, left_out)
    if differing:
        name, ours, theirs = differing[0]
        text = "%s: the phases of %d jobs do not last as long as their length; phases rule (job %s: %g s, not %g s)"
        _log.warning(text, path, len(differing), name, ours, theirs)
    return jobs


def _kind(row: TraceJob) -> str:
    """Return the type of the model of a job, from a column `name` if there is also a column `args`."""
    return (str(row.extra.get(TYPE, "")).strip() if ARGS in row.extra else "") or "constant"


def _literal(text: str, where: str) -> Any:
    """Parse a JSON text, or a Python literal, which is never evaluated. Raises InputError."""
    try:
        return load_strict(text, where)
    except InputError as error:
        if "appears twice" in str(error):
            raise
    try:
        return ast.literal_eval(text)
    except SyntaxError as error:
        reason = str(error.msg).split(";")[0]
    except (ValueError, TypeError, MemoryError, RecursionError):
        reason = "it is more than numbers, texts, lists and objects"
    problem = f"args {shown(text)} are neither JSON nor a Python literal ({reason})"
    raise InputError(where, problem, 'write for instance {"power": 100}')


def read_model(path: Path | str, watts: float = 1.0) -> PhaseModel:
    """Read the model in a JSON file: {"startup": [...], "work": [...]}, or a type with its arguments.

    A type is {"type": "ml", ...}; it may have `length` in s. Raises InputError.
    """
    return model_of(load_strict(read_text(path), path), path, watts)
