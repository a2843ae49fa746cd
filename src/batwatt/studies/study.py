"""A study: its declaration, the state of its runs, their execution, and its table."""

from __future__ import annotations

import json
import logging
import platform as python_platform
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import IO, Any

from batwatt._version import __version__
from batwatt.errors import InputError, argument, errors_of, extra, remark
from batwatt.files import read_text
from batwatt.inputs.batsim_files import read_events, read_workload
from batwatt.inputs.formats import read_reference
from batwatt.inputs.load import BEYOND_S, is_trace, machines_of, windowed
from batwatt.inputs.platform_files import platform_of
from batwatt.inputs.signal import read_series
from batwatt.inputs.spec import SeriesSpec
from batwatt.results.figures import METRICS
from batwatt.run.files import version_of
from batwatt.run.find_scheduler import SchedulerError
from batwatt.run.prepared import check_options
from batwatt.studies.cells import CellOutcome, code_digest
from batwatt.studies.executors import check_dask, cpu_count, run_cells
from batwatt.studies.grid import Cell, expand, task_of, traits
from batwatt.studies.spec import OPTIMUM, StudySpec, canonical, folder_name, plain
from batwatt.studies.store import COPY, INPUTS, Store, StudyStopped, check_comparisons
from batwatt.studies.yaml_model import parse_declared

_log = logging.getLogger(__name__)
LOGGED = ("pyarrow", "pybatsim", "numpy", "pandas")
Report = Callable[[int, int, int, float], None]
"""Callback with the numbers of runs that have ended, that have failed and in all, and with the share of the work that
remains (1 at the start)."""
STATES = ("done", "failed", "missing")
States = dict[str, dict[str, int]]
"""Comparison -> state of `STATES` -> number of rows."""
DECLARED = "declared in Python"
"""Name in place of that of a file."""
RUN_S = 0.1
"""Work of a run in units of the effort of an optimum, about 1 s each; only for the estimate of the remaining time."""
with extra("study"):
    import pyarrow as pa
PARTS = ("backfilling", "order", "response", "strategy")
"""Options with columns of their own."""
SCHEMA = pa.schema(
    [
        *((name, pa.string()) for name in ("comparison", "case", "platform", "workload", "envelope", "capacity")),
        *((name, pa.string()) for name in ("scheduler", "options", "follow")),
        ("seed", pa.int64()),
        *((name, pa.string()) for name in ("engine", *PARTS)),
        ("cap_structure", pa.string()),
        *(
            (f"cap_{name}", pa.float64())
            for name in ("range", "step", "period_s", "mean", "headroom", "saved", "gained")
        ),
        ("cap_seed", pa.int64()),
        *((name, pa.string()) for name in ("status", "error", "rejected_because")),
        *((figure.name, pa.int64() if figure.whole else pa.float64()) for figure in METRICS),
        ("lower_bound", pa.float64()),
        ("gap", pa.float64()),
        ("proven_optimal", pa.bool_()),
        ("key", pa.string()),
    ]
)
"""Name and type of every column, in order."""


class StudyFolder:
    """A declared study with its folder and its cells."""

    def __init__(
        self, text: str, origin: Path, where: Path, results: Path, name: str | None = None, imports: bool = True
    ) -> None:
        """Expand the study; without `imports`, files of schedulers are as the folder states them."""
        self.text = text
        self.origin = origin
        self.study = parse_declared(text, where, StudySpec)
        self.store = Store(results / folder_name(name, self.study.name))
        generated = self.store.folder / INPUTS
        schedulers = None if imports else self.store.schedulers()
        self.cells, self.missing = expand(self.study, where, origin.parent.resolve(), generated, schedulers)
        self.keeping = {cell.key for cell in self.cells if cell.keep}

    def need(self, only: Sequence[str] = ()) -> None:
        """Raise InputError if an input of the comparisons `only`, or of any, is missing.

        Without `only` a comparison that misses a file of `not_shipped` is left out with a remark.
        """
        not_shipped = {} if only else self.study.not_shipped
        for comparison, error in self.missing.items():
            if not only and error.file not in not_shipped:
                others = next((name for name in self.study.comparisons if name not in self.missing), None)
                where, problem, hint = error.parts
                raise (
                    InputError(where, problem, f"{hint}; {argument('only', others)} does without") if others else error
                )
            if comparison in only:
                raise error
        for file, source in not_shipped.items():
            without = [name for name, error in self.missing.items() if error.file == file]
            if without:
                names = f"{', '.join(without)} {'is' if len(without) == 1 else 'are'}"
                # a text for each file, as equal ones are only counted
                remark(_log, f"{file.replace('%', '%%')} is not there, so {names} left out: %s", source)

    def records(self) -> tuple[dict[str, CellOutcome], list[str]]:
        """Return the cells that need not run again, and lines about damaged files."""
        records, damaged = self.store.load(dict.fromkeys(cell.key for cell in self.cells))
        lost = {key for key in records if key in self.keeping and records[key].status == "done"}
        return {key: record for key, record in records.items() if key not in lost or self.store.kept(key)}, damaged

    def states(self) -> States:
        """Return the state of each comparison. Raises InputError if an input is missing."""
        self.need()
        return self.states_of(self.records()[0])

    def states_of(self, records: Mapping[str, CellOutcome]) -> States:
        """Return the state of each comparison for these records of cells that need not run again."""
        progress = {
            comparison: dict.fromkeys(STATES, 0)
            for comparison in self.study.comparisons
            if comparison not in self.missing
        }
        for cell in self.cells:
            progress[cell.comparison][_status(records.get(cell.key))] += 1
        return progress

    def stale(self) -> list[str]:
        """Return keys of cells in the folder that are no longer declared. Raises InputError if an input is missing."""
        self.need(tuple(self.study.comparisons))
        return self.store.stale(cell.key for cell in self.cells)


def _status(record: CellOutcome | None) -> str:
    return record.status if record else "missing"


def study_in(path: Path, results: Path, name: str | None = None, imports: bool = True) -> StudyFolder:
    """Return the study of a YAML file, to be run with `imports`. Raises InputError."""
    return StudyFolder(read_text(path), path, path, results, name, imports)


def study_from(declared: Mapping[str, Any], results: Path, base: Path) -> StudyFolder:
    """Return the study of a declaration in Python; its relative paths begin in `base`. Raises InputError."""
    try:
        text = json.dumps(declared, indent=2, allow_nan=False)
    except (TypeError, ValueError) as error:
        raise InputError(
            "declared", f"is no declaration ({error})", "give a dict as in YAML: texts, numbers, lists"
        ) from None
    return StudyFolder(text, base / DECLARED, Path("declared"), results)


def study_of(folder: Path, imports: bool = True) -> StudyFolder:
    """Return the study of a folder of results, as it was last run, to be run again with `imports`.

    Raises InputError.
    """
    folder = folder.resolve()
    origin = Store(folder).origin()
    copy = folder / COPY
    return StudyFolder(read_text(copy), origin, copy, folder.parent, folder.name, imports)


def carry_out(
    declared: StudyFolder,
    only: Sequence[str],
    report: Report,
    *,
    jobs: int | None = None,
    dask: str | None = None,
) -> States:
    """Run cells that are missing or have failed, and write the table.

    Args:
        declared: The study.
        only: Comparisons to run (none: all); the table has the finished rows of all comparisons.
        report: Callback with the progress.
        jobs: Processes of this machine. None: as many as cores that this process may use.
        dask: Address of a Dask cluster that runs the cells instead.

    Raises:
        StudyStopped: A reason outside the runs; finished runs are kept.
    """
    check_comparisons(only, declared.study.comparisons)
    declared.need(only)
    if dask is not None:
        check_dask(dask, jobs)
    store = declared.store
    with store.locked():
        records, damaged = declared.records()
        files = {cell.scheduler_file.sha256: cell.option_names for cell in declared.cells if cell.scheduler_file}
        store.declare(declared.text, declared.origin, files)
        store.log(*damaged)
        wanted = {cell.key: cell for cell in reversed(declared.cells) if not only or cell.comparison in only}
        left = [cell for key, cell in reversed(wanted.items()) if _status(records.get(key)) != "done"]
        store.provide(dict.fromkeys(file for cell in left for file in cell.files))
        check_inputs(left)
        began = time.monotonic()
        versions = " ".join(f"{name} {version_of(name)}" for name in LOGGED)
        code = f"code {code_digest()[:12]} python {python_platform.python_version()}"
        store.log(f"start: {len(left)} of {len(wanted)} runs to do, batwatt {__version__} {code} {versions}")
        failed, ended = 0, len(wanted) - len(left)
        work_s = {cell.key: _work_s(cell) for cell in left}
        all_s = left_s = sum(work_s.values())

        def save(outcome: CellOutcome) -> None:
            nonlocal ended, failed, left_s
            cell = wanted[outcome.key]
            store.save(outcome, cell.place)
            records[outcome.key] = replace(outcome, files={})
            store.log(*_lines(cell, outcome))
            ended += 1
            failed += outcome.status == "failed"
            left_s -= work_s[outcome.key]
            report(ended, failed, len(wanted), left_s / all_s)

        # longest first, so that no long run is alone at the end
        left.sort(key=lambda cell: (work_s[cell.key], _size(cell.workload.files[0].path)), reverse=True)
        scratch = None if dask is not None else store.scratch.resolve()
        tasks = [task_of(cell, cell.key in declared.keeping, scratch) for cell in left]
        try:
            report(ended, failed, len(wanted), 1.0)
            run_cells(tasks, save, processes=jobs or cpu_count(), dask=dask, note=store.log, resume=store.resume)
        except BaseException as error:
            # a signal may have come between the writing of a run and its place among the records
            records.update(store.load(key for key in wanted if key not in records)[0])
            reason = "interrupted" if isinstance(error, KeyboardInterrupt) else " ".join(str(error).split())
            # the disk may be full, too: report the first error
            with suppress(StudyStopped):
                store.write_table(lambda out: write_table(out, declared.cells, records))
                store.log(f"stopped: {reason}")
            raise
        store.write_table(lambda out: write_table(out, declared.cells, records))
        store.log(f"end: {failed} failed, {time.monotonic() - began:.1f} s")
    return declared.states_of(records)


def _work_s(cell: Cell) -> float:
    if cell.scheduler != OPTIMUM:
        return RUN_S
    effort = cell.options.get("effort", cell.options.get("time_limit_s", RUN_S))
    return float(effort) if isinstance(effort, int | float) and effort > 0 else RUN_S


@cache
def _size(path: Path) -> int:
    """Return the bytes of a file; 0 if it is missing, which its run reports."""
    try:
        return path.stat().st_size
    except OSError:
        return 0


def _lines(cell: Cell, outcome: CellOutcome) -> list[str]:
    """Return the lines of an outcome in the log."""
    series = [file.name for file in (cell.envelope, cell.capacity) if file]
    axes = (cell.platform.name, cell.workload.name, *series, cell.spec.engine)
    what = f"{cell.comparison}: {cell.case}, {' '.join(axes)}" + (f" seed {cell.seed}" if cell.seed is not None else "")
    error = f": {outcome.error}" if outcome.error else ""
    line = f"{outcome.status} {cell.key[:12]} {outcome.elapsed_s:.2f} s {what}{error}"
    return [line, *(f"  {note}" for note in outcome.notes)]


def check_inputs(cells: Sequence[Cell]) -> None:
    """Raise InputError for inputs and options that are wrong, before the first run."""
    tried: set[object] = set()

    def new(thing: object) -> bool:
        before = len(tried)
        tried.add(thing)
        return len(tried) > before

    sizes: dict[object, tuple[int, int]] = {}
    for cell in cells:
        spec, [jobs], [path] = cell.spec, cell.workload.files, cell.spec.workloads
        place = (cell.platform.sha256, spec.hosts)
        if place not in sizes:
            platform = platform_of(spec.platform, spec.hosts)
            sizes[place] = len(platform), len(machines_of(platform))
        hosts, slots = sizes[place]
        unknown = spec.config.forward_unknown_events
        if spec.events and new((spec.events, unknown, hosts)):
            read_events(spec.events, unknown, hosts)
        if new((jobs.sha256, spec.window)):
            if is_trace(path):
                # generated traces are valid, and long
                if jobs.text is None:
                    windowed(jobs.path, spec.window, 1, spec.length_unit, spec.log)
            else:
                # cached for the runs
                ignore = spec.ignore_communication
                read_workload(jobs.path, simulate=spec.engine != "batsim", ignore_communication=ignore, shared=True)
        if cell.envelope is not None and new(cell.envelope.sha256):
            read_series(cell.envelope.files[0].path)
        if cell.capacity is not None and new((cell.capacity.sha256, slots)):
            capacity, end_s = spec.capacity, spec.window.end_s if spec.window else BEYOND_S
            assert isinstance(capacity, SeriesSpec)
            capacity.timeline(None, end_s, slots)
        reference = cell.workload.reference
        if reference in cell.files and reference.text is None and new(reference.sha256):
            read_reference(reference.path)
        facts = (sorted(cell.options.items()), cell.seed, cell.envelope is None, cell.capacity is None)
        if new((cell.scheduler, repr(facts), spec.events)):
            # other errors of a scheduler go into the row of its run
            with suppress(SchedulerError), errors_of(f"{cell.comparison}: {cell.case!r}"):
                if cell.scheduler == OPTIMUM:
                    # only such cells need the solver
                    from batwatt.studies.optimum import check_optimum

                    check_optimum(spec)
                else:
                    check_options(spec)


def write_table(out: IO[bytes], cells: Iterable[Cell], records: Mapping[str, CellOutcome]) -> None:
    """Write the finished cells among `cells` as Parquet."""
    import pyarrow.parquet as pq

    rows = [_row(cell, records[cell.key]) for cell in cells if cell.key in records]
    pq.write_table(pa.Table.from_pylist(rows, SCHEMA), out, compression="zstd")


def _row(cell: Cell, record: CellOutcome) -> dict[str, Any]:
    parts = {name: plain(cell.options[name]) if name in cell.options else None for name in PARTS}
    return {
        "comparison": cell.comparison,
        **cell.axes,
        "scheduler": cell.scheduler,
        "options": canonical(cell.options),
        **parts,
        **traits(cell.capacity),
        "status": record.status,
        "error": record.error,
        "rejected_because": None if record.rejections is None else canonical(record.rejections),
        **record.figures,
        "key": cell.key,
    }
