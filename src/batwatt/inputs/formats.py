"""Readers of formats of jobs: SWF, the text of the riskaware paper, published tables, PBS and Torque.

Reader of published job tables: parquet, or CSV, whose columns a Layout names; and of logs in the form of one.

The columns of the id, the submission and a width decide on the entry of TABLES. Rules of all: the width is the
allocated one, else the requested one, in cores or nodes by `width`; a run time is the table's, else end - start;
dates without an offset are in UTC by default.

PM100 (Marconi100): `time_limit` is in minutes, `INFINITE` is no limit; power is the mean, the standard deviation and
the maximum of the samples in `node_power_consumption` (`power_consumption` in an older release), a list for the whole
job, in W; cores are called `num_cores_*` or `num_cpus_*`.

F-DATA (Fugaku): power is `avgpcon`, the mean of a node, times the nodes. The documentation states no unit of `elpl` and
`avgpcon`; the assumption is s and W.

Eagle (NREL): tasks of an array have one `job_id`: the second is called `17-2`. Allocated nodes were exclusive, and
`processors_req` is the number of requested processors.

OpenDC (`tasks.parquet`): times are in ms, submissions since 1970; no user, start or request.

Memory is not read, as no documentation states its unit. `ran` counts lines that are left out by reason.
Parquet needs pyarrow.

Reader of the accounting of PBS and Torque: a line is `date;kind;id;name=value name=value ...`.

A record of kind E, the end of a job, is a job; others (queued, started, deleted, run again) are not, nor is the parent
`5[]` of an array, whose jobs `5[1]`, `5[2]` have records of their own. Dates in it are s since 1970. The width is
total_execution_slots, else the greatest of Resource_List.ncpus, which may be a default of the queue, and procs, N x P
of Resource_List.nodes `N:ppn=P` or select `N:ncpus=P`, the ncpus in exec_vnode, and the slots in exec_host, where the N
of `host/N` is the number of one slot; in nodes unique_node_count or Resource_List.nodect. The run time is
resources_used.walltime, which Torque samples, or end - start where it is 0 s. Resource_List.walltime is the limit;
labels are user, group and queue.
"""

from __future__ import annotations

import csv
import logging
import math
import re
import warnings
from array import array
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from batwatt.checks import finite, number_in_file, shown
from batwatt.errors import InputError, extra, remark
from batwatt.files import LONGEST_LINE, open_bytes, open_text, readable
from batwatt.inputs.batch_logs import ENERGY_J, STATE, USUAL, LogOptions, duration_s, number, ran
from batwatt.inputs.jobs import (
    HOSTS,
    REQUIRED,
    SUBMISSION,
    Jobs,
    Numbers,
    Texts,
    checked,
    csv_rows,
    dates_s,
    each,
    has_values,
    later_s,
    once,
    runnable,
)
from batwatt.inputs.table import add_rows
from batwatt.model.timeline import LARGEST
from batwatt.model.work import Reference
from batwatt.model.workload import ESTIMATE, LENGTH, MEMORY, POWER_MAX_W, POWER_STD_W, START_S
from batwatt.units import LATEST_S, SINCE_1970_S, number_text

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow


_KB_PER_GB = 2.0**20
_MOST_KB, _USUAL_KB = 2.0**30, 2.0**25
"""1 TB and 32 GB for a processor: all jobs of a log have less, and half of them; in bytes, few have."""
_log = logging.getLogger(__name__)


SWF_FIELDS = (
    *("job_number", "submit_time", "wait_time", "run_time", "allocated_processors", "average_cpu_time", "used_memory"),
    *("requested_processors", "requested_time", "requested_memory", "status", "user_id", "group_id"),
    *("executable_number", "queue_number", "partition_number", "preceding_job_number", "think_time"),
)
"""The 18 fields of one SWF line, in order; times in s, memory in KB per processor, -1 is unknown."""


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


def read_swf(path: Path | str, *, others: bool = False) -> Jobs:
    """Read the jobs of an SWF file; with `others`, the 18 fields are further columns. Raises InputError with the line.

    Lines of status 2, 3 and 4 are parts of a job, between checkpoints: they are left out beside the line of the job;
    without it they are one job: the line with the first submission, with the sum of the run times; of parts of several
    widths the greatest counts, with a run time that keeps the core seconds. Jobs without a submission time are left
    out. One line has the number of each.

    Processors are the allocated ones, else the requested ones. `memory` is in GB (2^20 KB) of the whole job: the
    requested, else the used memory. `user` and `group` are the ids, `queue` is the number of the queue, else of the
    partition. The start (`start_s`) is the submission plus the waiting time. Memory that seems to be in bytes, not in
    KB, is not read.
    """
    rows, lines = _swf_fields(path)
    rows, whole = _whole_jobs(rows, path)
    submitted = rows[whole, 1] >= 0.0
    if unknown := int((~submitted).sum()):
        remark(_log, "%s: %d of %d jobs are left out, without a submission", path, unknown, len(submitted))
    accepted = np.flatnonzero(whole)[submitted]
    fields = dict(zip(SWF_FIELDS, rows[accepted].T, strict=True))
    cpus = _widths(fields)
    memory_kb = np.where(fields["requested_memory"] > 0, fields["requested_memory"], fields["used_memory"])
    stated_kb = memory_kb[memory_kb > 0]
    if len(stated_kb) and (stated_kb.max() >= _MOST_KB or np.median(stated_kb) >= _USUAL_KB):
        text = (
            "%s: memory is not read: %s KB for each processor (%s GB) may be bytes; divide it by 1024 in the file then"
        )
        largest_kb = float(stated_kb.max())
        remark(_log, text, path, number_text(largest_kb), number_text(round(largest_kb / _KB_PER_GB)))
        memory_kb = np.full(len(memory_kb), -1.0)
    queue = np.where(fields["queue_number"] != -1, fields["queue_number"], fields["partition_number"])
    submit_s, wait_s = fields["submit_time"], fields["wait_time"]
    labels = {"user": fields["user_id"], "group": fields["group_id"], "queue": queue}
    cells: dict[str, Any] = {**fields} if others else {}
    cells |= {"id": _number_texts(fields["job_number"])}
    cells |= {SUBMISSION: submit_s, LENGTH: fields["run_time"], HOSTS: cpus}
    cells |= {MEMORY: np.where((memory_kb > 0) & (cpus > 0), memory_kb * cpus / _KB_PER_GB, np.nan)}
    cells |= {ESTIMATE: np.where(fields["requested_time"] > 0, fields["requested_time"], np.nan)}
    for name, column in labels.items():
        cells[name] = np.where(column == -1, "", _number_texts(column))
    cells[START_S] = np.where(wait_s >= 0, submit_s + wait_s, np.nan)
    cells = {name: column for name, column in cells.items() if name in REQUIRED or has_values(column)}
    return checked(cells, path, origin_s=swf_origin_s(path), lines=lines[accepted])


def _number_texts(numbers: Numbers) -> Texts:
    """Return the texts of numbers; equal ones are one object."""
    # -0 is not 0
    bits, place = np.unique(np.ascontiguousarray(numbers).view(np.int64), return_inverse=True)
    texts: Texts = np.array(list(map(number_text, bits.view(np.float64).tolist())), dtype=object)[place]
    return texts


def _swf_fields(path: Path | str) -> tuple[Numbers, npt.NDArray[np.int64]]:
    """Return the lines of an SWF file as rows of 18 numbers, and their numbers in the file. Raises InputError."""
    rows, lines = _plain_fields(path) or _fields_by_line(path)
    if not (good := np.abs(rows) <= LARGEST).all():
        row, field = np.argwhere(~good)[0].tolist()
        problem = f"{SWF_FIELDS[field]} {rows[row, field]:g} is not a number up to {LARGEST:g}"
        raise InputError(f"{path} line {lines[row]}", problem, "correct the line")
    if (early := (rows[:, 1] < 0.0) & (rows[:, 1] != -1.0)).any():
        row = int(np.argmax(early))
        problem = f"submit_time must be >= 0 s, got {number_text(rows[row, 1])}"
        raise InputError(f"{path} line {lines[row]}", problem, "leave the job out")
    return rows, lines


def _plain_fields(path: Path | str) -> tuple[Numbers, npt.NDArray[np.int64]] | None:
    """Return the lines as `_fields_by_line` does, by the reader of numpy, if each has 18 numbers; else None."""
    with open_text(path) as stream, warnings.catch_warnings(action="error"):
        try:
            rows = np.loadtxt(stream, comments=";", ndmin=2)
        except (ValueError, UserWarning):
            return None
    if rows.shape[1] != len(SWF_FIELDS):
        return None
    with open_text(path) as stream:
        lines = [line for line, text in enumerate(stream, start=1) if text.partition(";")[0].strip()]
    return rows, np.array(lines, dtype=np.int64)


def _fields_by_line(path: Path | str) -> tuple[Numbers, npt.NDArray[np.int64]]:
    """Return the lines as rows of 18 numbers, and their numbers in the file. Raises InputError with the line.

    Fields after the 18th, as in MetaCentrum's logs, are ignored, with a remark.
    """
    numbers, lines = array("d"), array("q")
    count, longer, most = len(SWF_FIELDS), 0, 0
    with open_text(path) as stream:
        for line, text in enumerate(stream, start=1):
            words = text.partition(";")[0].split()
            if not words:
                continue
            if len(words) > count:
                longer, most = longer + 1, max(most, len(words))
                words = words[:count]
            try:
                if "_" in text or len(words) < count:
                    raise ValueError
                numbers.extend(map(float, words))
            except ValueError:
                where, hint = f"{path} line {line}", "write a number, -1 for unknown"
                if len(words) == 1 and text.count(";") + text.count(",") > 1:
                    raise InputError(where, "has no blanks between its fields", "separate them by blanks") from None
                if not words[0][:1].isdigit() and words[0] != "-1":
                    problem = f"begins with {shown(words[0])}, and a job with its number"
                    raise InputError(where, problem, "begin a line that is no job with ;") from None
                if len(words) < count:
                    raise InputError(where, f"has {len(words)} fields, an SWF job has {count}", hint) from None
                for name, word in zip(SWF_FIELDS, words, strict=True):
                    number_in_file(where, name, word, hint)
                # the "_" is in a further field
                numbers.extend(map(float, words))
            lines.append(line)
    rows = np.frombuffer(numbers).reshape(-1, count) if lines else np.empty((0, count))
    if longer:
        remark(_log, "%s: %d jobs have up to %d fields; those after the 18th of SWF are ignored", path, longer, most)
    return rows, np.array(lines, dtype=np.int64)


def _whole_jobs(rows: Numbers, path: Path | str) -> tuple[Numbers, npt.NDArray[np.bool_]]:
    """Return the lines, and the mask of whole jobs; parts of a job without such a line become one."""
    lines = dict(zip(SWF_FIELDS, rows.T, strict=True))
    part = np.isin(lines["status"], (2, 3, 4))
    alone = np.flatnonzero(part & ~np.isin(lines["job_number"], lines["job_number"][~part]))
    # the first submission first; -1 is unknown
    submits_s = np.where(lines["submit_time"] >= 0.0, lines["submit_time"], np.inf)
    alone = alone[np.argsort(submits_s[alone], kind="stable")]
    numbers, first, job = np.unique(lines["job_number"][alone], return_index=True, return_inverse=True)
    runs_s = np.maximum(lines["run_time"][alone], 0.0)
    widths = np.where(lines["allocated_processors"] > 0, lines["allocated_processors"], lines["requested_processors"])[
        alone
    ]
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
        remark(_log, text, path, int(part.sum()), len(np.unique(lines["job_number"][part])), len(numbers))
    if several := len(np.unique(job[widths < widest[job]])):
        text = "%s: %d of these jobs have parts of several widths: the greatest, and a run time with their core seconds"
        remark(_log, text, path, several)
    return rows, whole


def _widths(fields: Mapping[str, Numbers]) -> Numbers:
    """Return the allocated processors of lines, else the requested ones."""
    allocated = fields["allocated_processors"]
    return np.where(allocated > 0, allocated, fields["requested_processors"])


_FIELDS = ("id", "release", "length", "cores")
_HINT = f"write '{' '.join(_FIELDS)}' with blanks between, times in seconds"


def read_riskaware(path: Path | str) -> Jobs:
    """Read the jobs of a text file (or `.gz`), in its order, which may differ from that of their release.

    A line is `id release length cores [anything]`, with release and length in s. Empty lines are skipped. Raises
    InputError with the line number.
    """
    columns: list[list[str]] = [[] for _ in _FIELDS]
    rows: list[list[str]] = []
    lines: list[int] = []
    short: tuple[int, int] | None = None
    with open_text(path) as stream:
        for number, line in enumerate(stream, start=1):
            if not (words := line.split(None, len(_FIELDS))):
                continue
            lines.append(number)
            if len(words) < len(_FIELDS):
                short = short or (number, len(words))
                continue
            rows.append(words[: len(_FIELDS)])
            if len(rows) == ROWS:
                add_rows(columns, rows)
    if not lines:
        raise InputError(path, "holds no job", _HINT)
    if short:
        number, count = short
        problem = f"has {count} fields, a job has at least {len(_FIELDS)}"
        raise InputError(f"{path} line {number}", problem, _HINT)
    add_rows(columns, rows)
    return checked(dict(zip(("id", SUBMISSION, LENGTH, HOSTS), columns, strict=True)), path, lines=np.array(lines))


def to_riskaware(jobs: Iterable[tuple[str, float, float, int]]) -> str:
    """Return jobs (id, submission and length in s, hosts) as lines, in their order, which `read_riskaware` reads."""
    return "".join(
        f"{id} {number_text(submit_s)} {number_text(length_s)} {hosts}\n" for id, submit_s, length_s, hosts in jobs
    )


COLUMNS = ("length_s", "area_core_s")


def read_reference(path: Path | str) -> Reference:
    """Read a reference from a CSV file `length_s,area_core_s`, or from a trace in the riskaware paper's format.

    A cache has the last references, for the runs of a study. Raises InputError.
    """
    try:
        state = Path(path).stat()
        version = state.st_mtime_ns, state.st_size
    except (OSError, ValueError):
        version = None  # opening it raises InputError
    return _read(str(path), version)


@lru_cache(maxsize=4)
def _read(path: str, version: tuple[int, int] | None) -> Reference:
    with open_text(path) as stream:
        header = [cell.strip() for cell in next(stream, "").split(",")]
        if header == list(COLUMNS):
            return _of_rows(csv_rows(csv.reader(stream), path, f"write {','.join(COLUMNS)} rows"), path)
    jobs = runnable(read_riskaware(path))
    if not len(jobs):
        raise InputError(path, "has no job with a length and cores", _HINT)
    return Reference.of(jobs[LENGTH].tolist(), jobs[HOSTS].astype(int).tolist())


def _of_rows(rows: Iterable[list[str]], path: Path | str) -> Reference:
    table: list[tuple[float, float]] = []
    for line, row in enumerate(rows, start=2):
        try:
            length_s, area = (finite(cell) for cell in row)
            if not (length_s > 0.0 and area > 0.0 and (not table or length_s > table[-1][0])):
                raise ValueError
        except ValueError:
            problem = f"{','.join(row)[:60]!r} is not a length and an area, both > 0, lengths ascending"
            raise InputError(f"{path}: line {line}", problem, f"write {','.join(COLUMNS)} rows") from None
        table.append((length_s, area))
    if not table:
        raise InputError(path, "has no rows", f"write {','.join(COLUMNS)} rows")
    lengths, areas = np.array(table).T
    return Reference(lengths, areas)


ROWS = 50_000
"""Number of rows of a part: lists of samples are long."""


@dataclass(frozen=True)
class Layout:
    """Columns of a kind of job log, empty where it has none; of several the first with a value counts."""

    id: str
    submit: str
    start: str
    end: str
    run: str
    """Run time; default: end - start."""
    limit: str
    cpus: tuple[str, ...]
    nodes: tuple[str, ...] = ()
    state: str = ""
    labels: Mapping[str, str] = field(default_factory=dict)
    """Name in LABELS -> column."""
    power: tuple[str, ...] = ()
    of_node: bool = False
    """True if `power` is that of a node."""
    time_s: float = 1.0
    """Unit in s of run times and of numeric dates."""
    limit_s: float = 1.0
    """Unit in s of numeric limits."""
    repeats: bool = False
    """True if lines with equal id are several jobs, such as those of an array."""

    @property
    def columns(self) -> set[str]:
        """Names of all columns."""
        one = {self.id, self.submit, self.start, self.end, self.run, self.limit, self.state}
        return one | {*self.power, *self.cpus, *self.nodes, *self.labels.values()} - {""}


PM100 = Layout(
    *("job_id", "submit_time", "start_time", "end_time", "run_time", "time_limit"),
    limit_s=60.0,
    power=("node_power_consumption", "power_consumption"),
    cpus=("num_cores_alloc", "num_cpus_alloc", "num_cores_req", "num_cpus_req"),
    nodes=("num_nodes_alloc", "num_nodes_req"),
    state="job_state",
    labels={"user": "user_id", "group": "group_id", "queue": "partition"},
)
FDATA = Layout(
    *("jid", "adt", "sdt", "edt", "duration", "elpl"),
    power=("avgpcon",),
    of_node=True,
    cpus=("cnumat", "cnumr", "cnumut"),
    nodes=("nnuma", "nnumr", "nnumu"),
    labels={"user": "usr"},
)
EAGLE = Layout(
    *("job_id", "submit_time", "start_time", "end_time", "run_time", "wallclock_req"),
    cpus=("processors_req",),
    nodes=("nodes_req",),
    state="state",
    labels={"user": "user", "group": "account", "queue": "partition", "qos": "qos"},
    repeats=True,
)
OPENDC = Layout(
    *("id", "submission_time", "", "", "duration", ""),
    cpus=("cpu_count",),
    time_s=1e-3,
)
TABLES = {"PM100": PM100, "F-DATA": FDATA, "Eagle": EAGLE, "OpenDC": OPENDC}


def is_job_table(line: str) -> bool:
    """Return whether the first line of a CSV file has the columns of one of the tables."""
    return _layout_of(name.strip().strip('"') for name in line.split(",")) is not None


def read_job_table(path: Path | str, options: LogOptions = USUAL) -> Jobs:
    """Read the jobs of a table (parquet, else CSV or `.gz`) that ran, in its order. Raises InputError."""
    parts, repeats = [], False
    for part, layout in _parts(path):
        if len(part):
            parts.append(_columns(part, layout, options, path))
            repeats = layout.repeats
    if not parts:
        raise InputError(path, "has no rows", "give a table with jobs")
    return ran(Jobs.joined(parts), Counter(), options, repeats=repeats)


def jobs_of_rows(
    rows: Sequence[Mapping[str, str]], layout: Layout, rejected: Counter[str], options: LogOptions, path: Path | str
) -> Jobs:
    """Return the jobs that ran of rows of names and texts. Raises InputError."""
    if not rows:
        raise InputError(path, "holds no job", "give the whole file, as the batch system or its simulator wrote it")
    # imported here, as other traces need no pandas
    import pandas as pd

    return ran(_columns(pd.DataFrame(rows), layout, options, path), rejected, options)


def _layout_of(names: Iterable[str]) -> Layout | None:
    """Return the layout whose id, submission and a width are among the names, or None."""
    names = set(names)
    return next(
        (one for one in TABLES.values() if {one.id, one.submit} <= names and names & {*one.cpus, *one.nodes}), None
    )


def _check_types(schema: pyarrow.Schema, layout: Layout, path: Path | str) -> None:
    """Raise InputError unless used columns are of numbers or texts, power also of lists, dates also of dates."""
    from pyarrow import types

    tests = (types.is_integer, types.is_floating, types.is_decimal, types.is_string, types.is_large_string)
    for column in schema:
        kind, role = column.type, column.name
        if types.is_dictionary(kind):
            kind = kind.value_type
        if role in layout.power and types.is_list(kind):
            kind = kind.value_type
            good = any(test(kind) for test in tests[:3])
        else:
            dated = role in (layout.submit, layout.start, layout.end) and (
                types.is_timestamp(kind) or types.is_date(kind)
            )
            good = dated or types.is_null(kind) or any(test(kind) for test in tests)
        if role in layout.columns and not good:
            problem = f"column {role!r} has the type {str(column.type)[:60]!r}"
            raise InputError(path, problem, "numbers or texts are read, of dates also timestamps, of power also lists")


def _checked_layout(names: Sequence[str], path: Path | str) -> Layout:
    layout = _layout_of(names)
    if layout is None:
        problem = f"lacks the columns of {', '.join(TABLES)}; it has {', '.join(names[:8])}"
        raise InputError(path, problem, "they are listed in docs/reference/workloads.md")
    twice = next((name for name in layout.columns if names.count(name) > 1), None)
    if twice is not None:
        raise InputError(path, f"has the column {twice!r} twice", "name each once")
    return layout


def _parts(path: Path | str) -> Iterator[tuple[pd.DataFrame, Layout]]:
    """Yield the parts of a table with its used columns, and its layout. Raises InputError."""
    # imported here, as other traces need no pandas
    import pandas as pd

    with readable(path):
        if str(path).lower().endswith(".parquet"):
            with extra("study"):
                import pyarrow
                from pyarrow import parquet
            try:
                with parquet.ParquetFile(path) as file:
                    layout = _checked_layout(file.schema_arrow.names, path)
                    _check_types(file.schema_arrow, layout, path)
                    wanted = [name for name in file.schema_arrow.names if name in layout.columns]
                    for batch in file.iter_batches(ROWS, columns=wanted):
                        # texts may be bytes that are not UTF-8
                        batch.validate(full=True)
                        yield batch.to_pandas(), layout
            except pyarrow.ArrowException as error:
                raise InputError(path, f"is not parquet ({error})", "give the file as it was published") from None
            return
        try:
            # without index_col the first cells of rows that are too long become an index
            options: dict[str, Any] = {"dtype": str, "keep_default_na": False, "index_col": False, "chunksize": ROWS}
            with (
                open_bytes(path, LONGEST_LINE) as stream,
                pd.read_csv(stream, encoding_errors="replace", **options) as parts,
            ):
                while True:
                    # not around a yield: an abandoned generator ends at any time, and restores old filters
                    with warnings.catch_warnings(action="error", category=pd.errors.ParserWarning):
                        part = next(parts, None)
                    if part is None:
                        break
                    layout = _checked_layout([str(name) for name in part.columns], path)
                    yield part[[name for name in part.columns if name in layout.columns]], layout
        except pd.errors.ParserWarning:
            problem = "all rows have more cells than line 1 names columns"
            raise InputError(path, problem, "write cells with a comma between quotes") from None
        except (pd.errors.ParserError, pd.errors.EmptyDataError) as error:
            raise InputError(path, f"is not CSV ({str(error).strip()})", "the first line names the columns") from None


def _columns(part: pd.DataFrame, layout: Layout, options: LogOptions, path: Path | str) -> Jobs:
    def later(since_s: Numbers, name: str) -> Numbers:
        return later_s(since_s, _texts(part, name).tolist(), options.zone, layout.time_s)

    submit_s = dates_s(_texts(part, layout.submit).tolist(), options.zone, layout.time_s)
    start_s = later(submit_s, layout.start)
    run_s = _lengths(part, layout.run, layout.time_s)
    run_s = np.where(np.isnan(run_s), later(start_s, layout.end) - start_s, run_s)
    cpus, nodes = (_first(part, names) for names in (layout.cpus, layout.nodes))
    power = np.full((3, len(part)), np.nan)
    for name in layout.power:
        if name in part.columns:
            power = np.array([_power_of(cell, path) for cell in part[name]]).T
            break
    power_w, deviation_w, most_w = power
    needs = {POWER_STD_W: deviation_w, POWER_MAX_W: most_w} if not layout.of_node else {}
    limit_s = _lengths(part, layout.limit, layout.limit_s)
    columns: dict[str, Any] = {
        "id": _texts(part, layout.id),
        SUBMISSION: submit_s,
        LENGTH: run_s,
        HOSTS: nodes if options.width == "nodes" else cpus,
        STATE: _texts(part, layout.state),
        ESTIMATE: np.where(limit_s > 0.0, limit_s, np.nan),
        **needs,
        START_S: start_s,
        ENERGY_J: power_w * (nodes if layout.of_node else 1.0) * run_s,
    }
    return Jobs(columns | {name: _texts(part, column) for name, column in layout.labels.items()}, path)


def _lengths(part: pd.DataFrame, name: str, unit_s: float) -> Numbers:
    """Return lengths in s: numbers in `unit_s`, or texts such as 1-02:00:00."""
    values = _numbers(part, name) * unit_s
    rows = np.flatnonzero(np.isnan(values))
    if len(rows):
        values[rows] = each(_texts(part, name)[rows].tolist(), duration_s)
    return values


def _numbers(part: pd.DataFrame, name: str) -> Numbers:
    if name not in part.columns:
        return np.full(len(part), np.nan)
    import pandas as pd

    values = pd.to_numeric(part[name], errors="coerce").to_numpy(dtype=np.float64, na_value=np.nan)
    return np.where((values >= 0.0) & np.isfinite(values), values, np.nan)


def _first(part: pd.DataFrame, names: Sequence[str]) -> Numbers:
    """Return for each row the first number >= 1 of some columns, or NaN."""
    first = np.full(len(part), np.nan)
    for name in names:
        values = _numbers(part, name)
        first = np.where(np.isnan(first) & (values >= 1.0), values, first)
    return first


def _texts(part: pd.DataFrame, name: str) -> Texts:
    """Return a column as texts, empty for missing cells."""
    if name not in part.columns:
        return np.full(len(part), "", dtype=object)
    column = part[name]
    cells = ["" if missing else _text(cell) for cell, missing in zip(column, column.isna(), strict=True)]
    return once(cells)


def _text(cell: object) -> str:
    """Return a cell as text; whole floats as whole numbers."""
    return str(int(cell)) if isinstance(cell, float) and cell.is_integer() else str(cell).strip()


def _power_of(cell: Any, path: Path | str) -> tuple[float, float, float]:
    """Return mean, deviation and maximum in W of a number or a list of samples, also as a text; NaN without a sample.

    Raises InputError for a sample above `LARGEST`.
    """
    words = cell.strip().strip("[]").replace(",", " ").split() if isinstance(cell, str) else None
    samples = np.atleast_1d(np.asarray(cell if words is None else [number(word) for word in words], dtype=np.float64))
    valid = samples[(samples >= 0.0) & (samples < math.inf)].tolist()
    if not valid:
        return math.nan, math.nan, math.nan
    if max(valid) > LARGEST:
        raise InputError(path, f"a power of {max(valid):g} W is larger than {LARGEST:g} W", "correct it")
    mean = math.fsum(valid) / len(valid)
    return mean, math.sqrt(math.fsum((value - mean) ** 2 for value in valid) / len(valid)), max(valid)


_RECORD = re.compile(r"\d\d/\d\d/\d{4} \d\d:\d\d:\d\d;[A-Za-z];")
_SLOTS = "slots"
_USED = (
    *("exec_host", "exec_vnode", "Resource_List.nodes", "Resource_List.select"),
    *("Resource_List.ncpus", "Resource_List.procs"),
)
_WALLTIME = "resources_used.walltime"
_LAYOUT = Layout(
    *("id", "ctime", "start", "end", _WALLTIME, "Resource_List.walltime"),
    cpus=("total_execution_slots", _SLOTS),
    nodes=("unique_node_count", "Resource_List.nodect"),
    labels={"user": "user", "group": "group", "queue": "queue"},
)


def is_pbs(line: str) -> bool:
    """Return whether the first line of a file is a record of PBS."""
    return _RECORD.match(line) is not None


def read_pbs(path: Path | str, options: LogOptions = USUAL) -> Jobs:
    """Read the jobs of records (or `.gz`) that ran, in their order. Raises InputError."""
    columns, rejected = _LAYOUT.columns, Counter[str]()
    rows, uncertain = [], 0
    with open_text(path) as stream:
        for line in stream:
            record = line.strip().split(";", 3)
            if len(record) < 4:
                rejected["malformed"] += record != [""]
            elif record[1] == "E" and "[]" in record[2]:
                rejected["parents of arrays"] += 1
            elif record[1] == "E":
                row = dict(word.split("=", 1) for word in record[3].split() if "=" in word)
                row = {name: text for name, text in row.items() if name in columns or name in _USED}
                used = [row.pop(name, "") for name in _USED]
                uncertain += not any(used[1:]) and re.fullmatch("[^/]+/[1-9][0-9]*", used[0]) is not None
                row |= {"id": record[2], _SLOTS: str(_slots(*used))}
                if row.get(_WALLTIME, "").strip("0:") == "":
                    row.pop(_WALLTIME, None)
                rows.append(row)
    if uncertain:
        text = "%s: %d jobs have no width but exec_host=HOST/N: the slot of the number N, so that they are of 1 CPU"
        remark(_log, text, path, uncertain)
    return jobs_of_rows(rows, _LAYOUT, rejected, options, path)


def _slots(exec_host: str, exec_vnode: str, nodes: str, select: str, ncpus: str, procs: str) -> int:
    """Return the most slots of `c3/0-3,7+c4/2` (Torque) or `n1/0*16` (PBS), and CPUs of other texts."""
    ran = 0
    for host in exec_host.split("+"):
        for part in host.partition("/")[2].split(","):
            if match := re.fullmatch(r"([0-9]{1,9})(?:-([0-9]{1,9})|\*([0-9]{1,9}))?", part):
                first, last, times = match.groups()
                ran += int(times or 1) if last is None else max(int(last) - int(first) + 1, 0)
    vnodes = sum(map(int, re.findall(r"\bncpus=([0-9]{1,9})", exec_vnode)))
    return max(ran, vnodes, _chunks(nodes), _chunks(select), _whole(ncpus, 0), _whole(procs, 0))


def _chunks(text: str) -> int:
    """Return the CPUs of `2:ppn=8+n7:ppn=4#shared`, where the name of a host is one node, or of `2:ncpus=8`."""
    cpus = 0
    for part in text.split("+") if text else ():
        each = re.search(r"\b(?:ppn|ncpus)=([0-9]{1,9})", part)
        cpus += _whole(re.split("[:#]", part)[0], 1) * (int(each[1]) if each else 1)
    return cpus


def _whole(text: str, default: int) -> int:
    return int(text) if re.fullmatch("[0-9]{1,9}", text) else default
