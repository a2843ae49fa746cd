"""Reader of published job tables: parquet, or CSV, whose columns a Layout names; and of logs in the form of one.

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

Memory is not read, as no documentation states its unit. `job_log.jobs_of` counts lines that are left out by reason.
Parquet needs pyarrow.
"""

from __future__ import annotations

import math
import warnings
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from batwatt.errors import InputError, extra
from batwatt.files import LONGEST_LINE, open_bytes, readable
from batwatt.inputs.traces.job_log import (
    USUAL,
    LogColumns,
    LogOptions,
    dates_s,
    duration_s,
    each,
    jobs_of,
    later_s,
    number,
)
from batwatt.inputs.traces.trace_table import Column, Texts, TraceTable, labels_of
from batwatt.model.series import LARGEST
from batwatt.model.workload import ESTIMATE, POWER_MAX_W, POWER_STD_W

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow

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


def read_job_table(path: Path | str, options: LogOptions = USUAL) -> TraceTable:
    """Read the jobs of a table (parquet, else CSV or `.gz`) that ran, in its order. Raises InputError."""
    parts = [_columns(part, layout, options, path) for part, layout in _parts(path) if len(part)]
    if not parts:
        raise InputError(path, "has no rows", "give a table with jobs")
    return jobs_of(LogColumns.joined(parts), Counter(), options, path)


def jobs_of_rows(
    rows: Sequence[Mapping[str, str]], layout: Layout, rejected: Counter[str], options: LogOptions, path: Path | str
) -> TraceTable:
    """Return the jobs that ran of rows of names and texts. Raises InputError."""
    if not rows:
        raise InputError(path, "holds no job", "give the whole file, as the batch system or its simulator wrote it")
    # imported here, as other traces need no pandas
    import pandas as pd

    return jobs_of(_columns(pd.DataFrame(rows), layout, options, path), rejected, options, path)


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
            with extra("campaign"):
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


def _columns(part: pd.DataFrame, layout: Layout, options: LogOptions, path: Path | str) -> LogColumns:
    def later(since_s: Column, name: str) -> Column:
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
    return LogColumns(
        _texts(part, layout.id),
        submit_s,
        start_s,
        run_s,
        nodes if options.width == "nodes" else cpus,
        _texts(part, layout.state),
        power_w * (nodes if layout.of_node else 1.0) * run_s,
        {ESTIMATE: np.where(limit_s > 0.0, limit_s, np.nan), **needs},
        {name: _texts(part, column) for name, column in layout.labels.items()},
        layout.repeats,
    )


def _lengths(part: pd.DataFrame, name: str, unit_s: float) -> Column:
    """Return lengths in s: numbers in `unit_s`, or texts such as 1-02:00:00."""
    values = _numbers(part, name) * unit_s
    rows = np.flatnonzero(np.isnan(values))
    if len(rows):
        values[rows] = each(_texts(part, name)[rows].tolist(), duration_s)
    return values


def _numbers(part: pd.DataFrame, name: str) -> Column:
    if name not in part.columns:
        return np.full(len(part), np.nan)
    import pandas as pd

    values = pd.to_numeric(part[name], errors="coerce").to_numpy(dtype=np.float64, na_value=np.nan)
    return np.where((values >= 0.0) & np.isfinite(values), values, np.nan)


def _first(part: pd.DataFrame, names: Sequence[str]) -> Column:
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
    return labels_of(cells)


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
