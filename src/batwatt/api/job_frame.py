"""Workloads as tables of pandas, a row a job, and traces of tables."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from batwatt.api.arguments import plain, wrong
from batwatt.checks import shown
from batwatt.errors import InputError
from batwatt.inputs.convert import window_workload
from batwatt.inputs.jobs import ALIASES, COLUMNS, NEEDS, TraceJob
from batwatt.model.signal import Window, parse_date_s
from batwatt.model.workload import (
    DEPENDS,
    ESTIMATE,
    JOB_FIELDS,
    LABELS,
    LENGTH,
    RELEASE,
    Delay,
    JobSpec,
    Profile,
    Workload,
)
from batwatt.units import date_text, number_text

if TYPE_CHECKING:
    import pandas as pd

WHOLE_LENGTH = "whole_length_s"
"""Column for the field `length_s` of a job of which a window cut the beginning off."""
UNNAMED = "a table"


# a table of a workload ------------------------------------------------------------------------------------------------


def frame_of(workload: Workload) -> pd.DataFrame:
    """Return the jobs as a table; `workload_of` rebuilds a trace from its table."""
    import pandas as pd

    nan = float("nan")
    jobs = workload.jobs
    columns: dict[str, list[Any]] = {
        "id": [job.name for job in jobs],
        "submission_time_s": [job.submit_time_s for job in jobs],
        "hosts": [job.hosts for job in jobs],
        "walltime_s": [nan if job.walltime_s is None else job.walltime_s for job in jobs],
        "profile": [job.profile for job in jobs],
    }
    if workload.recorded:
        columns["length_s"] = [_length_s(workload.profiles[job.profile]) for job in jobs]
    for name in dict.fromkeys(key for job in jobs for key in job.raw if key not in JOB_FIELDS):
        column = WHOLE_LENGTH if name == LENGTH and workload.recorded else name
        columns[column] = [job.raw.get(name, "" if name in LABELS else nan) for job in jobs]
    frame = pd.DataFrame(columns)
    frame.attrs = {"nb_res": workload.nb_res, "source": workload.source, "begin": workload.begin}
    return frame


def _length_s(profile: Profile) -> float:
    """Return the length in s of a job of a trace, which is a delay."""
    assert isinstance(profile, Delay)
    return profile.duration_s


# a workload of a table ------------------------------------------------------------------------------------------------


def workload_of(frame: Any, window: Window | None, hosts: int | None, source: str | None) -> Workload:
    """Return the workload of a table; see `batwatt.Workload.from_frame`. Raises InputError with the row."""
    import pandas as pd

    if not isinstance(frame, pd.DataFrame):
        raise wrong("frame", "a DataFrame of pandas", frame)
    source = source or str(frame.attrs.get("source", UNNAMED))
    frame = frame.rename(columns=ALIASES)
    if not frame.columns.is_unique:
        raise InputError(source, "has two columns of one name", "rename one")
    missing = [name for name in COLUMNS if name not in frame.columns]
    if missing and "profile" in frame.columns:
        raise InputError(source, "is the table of a Batsim workload, without lengths", "give the Workload itself")
    if missing:
        raise InputError(source, f"no column {missing[0]!r}", f"the columns are {', '.join(COLUMNS)}")
    if not len(frame):
        raise InputError(source, "has no rows", "give a row for each job")
    rows: list[tuple[str, dict[Any, Any]]] = [
        (f"{source}: row {number}", row) for number, row in enumerate(frame.to_dict("records"), 1)
    ]
    widest = max(_width(where, row) for where, row in rows)
    nb_res = hosts or max(_whole_or(frame.attrs.get("nb_res"), 1), widest)
    begin = frame.attrs.get("begin") or ""
    if begin:
        begin = date_text(parse_date_s(begin))
    return replace(_of_lengths(rows, window, nb_res, source), begin=begin)


def _of_lengths(rows: list[tuple[str, dict[Any, Any]]], window: Window | None, nb_res: int, source: str) -> Workload:
    begin_s, end_s = (None, None) if window is None else (window.begin_s, window.end_s)
    jobs = [_trace_job(where, number, row) for number, (where, row) in enumerate(rows, 1)]
    workload = window_workload(jobs, begin_s, end_s, nb_res, source=source)
    # the parts of jobs that another window has cut off before
    cut = {
        job.id: {name: _number(where, column, row.get(column)) for name, column in _CUT.items()}
        for job, (where, row) in zip(jobs, rows, strict=True)
        if not _lacks(row.get(RELEASE)) and not _lacks(row.get(WHOLE_LENGTH))
    }
    if not cut:
        return workload
    return replace(workload, jobs=tuple(_with(job, cut.get(job.name, {})) for job in workload.jobs))


_CUT = {RELEASE: RELEASE, LENGTH: WHOLE_LENGTH}


def _with(job: JobSpec, fields: Mapping[str, Any]) -> JobSpec:
    return job._replace(raw={**job.raw, **fields}) if fields else job


def _trace_job(where: str, number: int, row: Mapping[str, Any]) -> TraceJob:
    if not _lacks(row.get("walltime_s")):
        problem = "a job with a length_s has no walltime_s"
        raise InputError(where, problem, "call the column estimate_s")
    submit_s, length_s = (
        _number(where, "submission_time_s", row["submission_time_s"]),
        _number(where, "length_s", row["length_s"]),
    )
    extra: dict[str, object] = {
        name: value
        for name in NEEDS
        if name != ESTIMATE and (value := _number_or_none(where, name, row.get(name))) is not None
    }
    for name in LABELS:
        if not _lacks(label := row.get(name)):
            # numbers become floats where one is missing
            extra[name] = number_text(label) if isinstance(label, float) else _text(where, name, label)
    depends = row.get(DEPENDS)
    if not _lacks(depends):
        if not isinstance(depends, list | tuple):
            raise InputError(
                where, f"{DEPENDS} must be a list of ids, got {shown(depends)}", 'write for instance ["17"]'
            )
        extra[DEPENDS] = [_text(where, DEPENDS, one) for one in depends]
    name = _text(where, "id", row.get("id", number))
    estimate_s = _number_or_none(where, ESTIMATE, row.get(ESTIMATE))
    return TraceJob(name, round(submit_s, 6), round(length_s, 6), _width(where, row), estimate_s, extra)


# cells ----------------------------------------------------------------------------------------------------------------


def _lacks(value: Any) -> bool:
    """Return whether a cell is empty: None, NaN, NaT or NA."""
    import pandas as pd

    return value is None or value is pd.NA or value is pd.NaT or (isinstance(plain(value), float) and value != value)


def _number(where: str, column: str, value: Any) -> float:
    """Return the finite number of a cell. Raises InputError."""
    try:
        number = float("nan") if _lacks(value) else float(plain(value))
    except OverflowError:
        number = float("inf")
    except (TypeError, ValueError, ArithmeticError):
        raise InputError(where, f"{column} must be a number, got {shown(value)}", "correct it") from None
    if math.isfinite(number):
        return number
    problem = f"{column} must be a finite number, got {number:g}"
    raise InputError(where, problem, "correct it, or leave the row out")


def _number_or_none(where: str, column: str, value: Any) -> float | None:
    return None if _lacks(value) else _number(where, column, value)


def _width(where: str, row: Mapping[str, Any]) -> int:
    hosts = _number(where, "hosts", row["hosts"])
    if not hosts.is_integer():
        raise InputError(where, f"hosts must be a whole number, got {hosts:g}", "correct it")
    return int(hosts)


def _whole_or(value: Any, usual: int) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 < value < 2**31 else usual


def _text(where: str, column: str, value: Any) -> str:
    """Return a text in one line, or a whole number as a text. Raises InputError."""
    value = plain(value)
    if isinstance(value, str) or (isinstance(value, int) and not isinstance(value, bool) and abs(value) < 10**300):
        text = str(value)
        if text.isprintable() and (text or column != "id"):
            return text
    raise InputError(where, f"{column} must be a text in one line, got {shown(value)}", "rename it")
