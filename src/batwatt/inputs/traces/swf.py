"""Reader of the Standard Workload Format (SWF) of the Parallel Workloads Archive, version 2.2."""

from __future__ import annotations

import logging
import warnings
from collections import namedtuple
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import numpy.typing as npt

from batwatt.checks import number_in_file
from batwatt.errors import InputError, remark
from batwatt.files import open_text
from batwatt.inputs.traces.trace import TraceJob
from batwatt.inputs.traces.trace_table import TraceTable, labels_of, rounded
from batwatt.model.series import LARGEST
from batwatt.model.workload import ESTIMATE, LABELS, MEMORY, START_S
from batwatt.units import LATEST_S, SINCE_1970_S, number_text

_KB_PER_GB = 2.0**20
_MOST_KB, _USUAL_KB = 2.0**30, 2.0**25
"""1 TB and 32 GB for a processor: all jobs of a log have less, and half of them; in bytes, few have."""
_EXTRA = (MEMORY, *LABELS, START_S)
_log = logging.getLogger(__name__)


SwfJob = namedtuple(
    "SwfJob",
    "job_number submit_time wait_time run_time allocated_processors average_cpu_time used_memory "
    "requested_processors requested_time requested_memory status user_id group_id executable_number queue_number "
    "partition_number preceding_job_number think_time",
)
"""The 18 fields of one SWF line, in order; times in s, memory in KB per processor, -1 is unknown."""

_WHOLE = frozenset({"job_number", "allocated_processors", "requested_processors"})


def swf_origin_s(path: Path | str) -> float | None:
    """Return the date of 0 s of an SWF file in s since 1970 by its header (UnixStartTime), or None."""
    with open_text(path) as stream:
        for line in stream:
            if line.strip() and not line.lstrip().startswith(";"):
                break
            name, _, value = line.lstrip("; \t").partition(":")
            if name.strip().lower() == "unixstarttime":
                try:
                    return origin_s if SINCE_1970_S <= (origin_s := float(value)) <= LATEST_S else None
                except ValueError:
                    return None
    return None


def iter_swf(path: Path | str) -> Iterator[SwfJob]:
    """Yield the lines of an SWF file (or `.gz`), one at a time, without comments. Raises InputError with the line.

    Fields after the 18th, as in MetaCentrum's logs, are ignored, with a remark.
    """
    longer = most = 0
    with open_text(path) as stream:
        for number, line in enumerate(stream, start=1):
            words = line.partition(";")[0].split()
            if len(words) > len(SwfJob._fields):
                longer, most = longer + 1, max(most, len(words))
            if words:
                yield _job(words, f"{path} line {number}")
    if longer:
        remark(_log, "%s: %d jobs have up to %d fields; those after the 18th of SWF are ignored", path, longer, most)


def read_swf(path: Path | str) -> TraceTable:
    """Read the jobs of an SWF file as columns. Raises InputError with the line.

    Lines of status 2, 3 and 4 are parts of a job, between checkpoints: they are left out beside the line of the job;
    without it they are one job: the line with the first submission, with the sum of the run times; of parts of several
    widths the greatest counts, with a run time that keeps the core seconds. Jobs without a submission time are left
    out. One line has the number of each.

    Processors are the allocated ones, else the requested ones. `memory` is in GB (2^20 KB) of the whole job: the
    requested, else the used memory. `user` and `group` are the ids, `queue` is the number of the queue, else of the
    partition. The start (`start_s`) is the submission plus the waiting time. Memory that seems to be in bytes, not in
    KB, is not read.
    """
    return _table(_numbers(path), path)


def swf_trace_jobs(path: Path | str) -> Iterator[TraceJob]:
    """Yield the jobs of an SWF file, also with the 18 fields as extra fields. Raises InputError."""
    rows = _numbers(path)
    # a row at a time, as lists of numbers take much memory
    for job, row in zip(_table(rows, path), map(np.ndarray.tolist, rows), strict=True):
        fields = zip(SwfJob._fields, (int(value) if value.is_integer() else value for value in row), strict=True)
        yield replace(job, extra=dict(fields) | {name: job.extra[name] for name in _EXTRA if name in job.extra})


def _numbers(path: Path | str) -> npt.NDArray[np.float64]:
    """Return the jobs as rows of 18 numbers; lines are read all at once if each is plain, else one by one."""
    count = len(SwfJob._fields)
    with open_text(path) as stream, warnings.catch_warnings(action="error"):
        try:
            rows = np.loadtxt(stream, comments=";", ndmin=2)
        except (ValueError, UserWarning):
            rows = np.full((1, 1), np.nan)
    plain = rows.shape[1] == count and (np.abs(rows) <= LARGEST).all() and (rows[:, 1] >= -1.0).all()
    if not (plain and (rows == np.floor(rows)).all()):
        rows = np.array(list(iter_swf(path)), dtype=float).reshape(-1, count)
    rows = _without_parts(rows, path)
    submitted = rows[:, 1] >= 0.0
    if unknown := int((~submitted).sum()):
        remark(_log, "%s: %d of %d jobs are left out, without a submission", path, unknown, len(rows))
    return rows[submitted]


def _without_parts(rows: npt.NDArray[np.float64], path: Path | str) -> npt.NDArray[np.float64]:
    """Return the lines of whole jobs; parts of a job without such a line become one."""
    lines = SwfJob(*rows.T)
    part = np.isin(lines.status, (2, 3, 4))
    alone = np.flatnonzero(part & ~np.isin(lines.job_number, lines.job_number[~part]))
    # the first submission first; -1 is unknown
    submits_s = np.where(lines.submit_time >= 0.0, lines.submit_time, np.inf)
    alone = alone[np.argsort(submits_s[alone], kind="stable")]
    numbers, first, job = np.unique(lines.job_number[alone], return_index=True, return_inverse=True)
    runs_s = np.maximum(lines.run_time[alone], 0.0)
    widths = np.where(lines.allocated_processors > 0, lines.allocated_processors, lines.requested_processors)[alone]
    widest, core_s = np.full(len(numbers), -1.0), np.zeros(len(numbers))
    np.maximum.at(widest, job, widths)
    widths = np.where(widths > 0, widths, widest[job])
    np.add.at(core_s, job, widths * runs_s)
    rows = rows.copy()
    places = alone[first]
    rows[places, 3] = core_s / np.where(widest != 0.0, widest, 1.0)
    rows[places, 4] = widest
    whole = ~part
    whole[places] = True
    if part.any():
        text = "%s: %d lines of status 2, 3 or 4 are parts of %d jobs; %d of these have no other line and are their sum"
        remark(_log, text, path, int(part.sum()), len(np.unique(lines.job_number[part])), len(numbers))
    if several := len(np.unique(job[widths < widest[job]])):
        text = "%s: %d of these jobs have parts of several widths: the greatest, and a run time with their core seconds"
        remark(_log, text, path, several)
    return rows[whole]


def _table(rows: npt.NDArray[np.float64], path: Path | str) -> TraceTable:
    job = SwfJob(*rows.T)
    cpus = np.where(job.allocated_processors > 0, job.allocated_processors, job.requested_processors)
    memory_kb = np.where(job.requested_memory > 0, job.requested_memory, job.used_memory)
    stated_kb = memory_kb[memory_kb > 0]
    if len(stated_kb) and (stated_kb.max() >= _MOST_KB or np.median(stated_kb) >= _USUAL_KB):
        text = (
            "%s: memory is not read: %s KB for each processor (%s GB) may be bytes; divide it by 1024 in the file then"
        )
        largest_kb = float(stated_kb.max())
        remark(_log, text, path, number_text(largest_kb), number_text(round(largest_kb / _KB_PER_GB)))
        memory_kb = np.full(len(memory_kb), -1.0)
    queue = np.where(job.queue_number != -1, job.queue_number, job.partition_number)
    needs = {
        MEMORY: np.where((memory_kb > 0) & (cpus > 0), memory_kb * cpus / _KB_PER_GB, np.nan),
        ESTIMATE: np.where(job.requested_time > 0, job.requested_time, np.nan),
        START_S: np.where(job.wait_time >= 0, job.submit_time + job.wait_time, np.nan),
    }
    numbers = {"user": job.user_id, "group": job.group_id, "queue": queue}
    return TraceTable(
        np.array([str(int(number)) for number in job.job_number.tolist()], dtype=object),
        rounded(job.submit_time),
        rounded(job.run_time),
        cpus,
        {name: rounded(column) for name, column in needs.items() if not np.isnan(column).all()},
        labels={
            name: labels_of("" if number == -1 else number_text(number) for number in column.tolist())
            for name, column in numbers.items()
            if (column != -1).any()
        },
    )


def _job(words: list[str], where: str) -> SwfJob:
    count = len(SwfJob._fields)
    if len(words) < count:
        raise InputError(where, f"has {len(words)} fields, an SWF job has {count}", "write -1 for what is unknown")
    words = words[:count]
    try:
        job = SwfJob(*map(int, words))
    except ValueError:
        job = None
    if job is not None and job.submit_time >= -1 and min(job) >= -LARGEST and max(job) <= LARGEST:
        return job
    return SwfJob(*(_field(name, word, where) for name, word in zip(SwfJob._fields, words, strict=True)))


def _field(name: str, word: str, where: str) -> float:
    value = number_in_file(where, name, word, "write a number, -1 for unknown")
    if not abs(value) <= LARGEST:
        raise InputError(where, f"{name} {value:g} is larger than {LARGEST:g}", "correct the line")
    if name == "submit_time" and value < 0.0 and value != -1.0:
        raise InputError(where, f"submit_time must be >= 0 s, got {word}", "leave the job out")
    if value.is_integer():
        return int(value)
    if name in _WHOLE:
        raise InputError(where, f"{name} must be a whole number, got {word}", "correct the line")
    return value
