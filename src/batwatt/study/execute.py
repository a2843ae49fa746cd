"""Execution of one cell, in this process, in a worker of this machine or in one of another."""

from __future__ import annotations

import errno
import math
import platform as python_platform
import tempfile
import threading
import time
import traceback
from collections.abc import Mapping
from contextlib import nullcontext, redirect_stdout
from dataclasses import dataclass, field, replace
from io import StringIO
from pathlib import Path
from typing import Any, Literal

from batwatt.errors import BatwattError, message
from batwatt.files import digest_of

# modules that a run loads late: loaded before processes are forked, so that their code is that of the key
from batwatt.results import groups as groups
from batwatt.results import rejections as rejections
from batwatt.results.figures import Values, rounded
from batwatt.results.outcomes import JobOutcomes
from batwatt.results.power import PowerTrace
from batwatt.run.files import staging
from batwatt.run.find_scheduler import load_plugins
from batwatt.run.prepared import PreparedRun
from batwatt.run.repeats import noted
from batwatt.run.result import Result
from batwatt.run.run import perform, run
from batwatt.run.spec import RunSpec
from batwatt.study.cells import Cell, code_digest
from batwatt.study.spec import OPTIMUM

BOUNDS = ("lower_bound", "gap", "proven_optimal")
"""Columns of a row of the optimum besides the metrics."""
NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EROFS, errno.EIO, errno.EMFILE, errno.ENFILE)
"""Errors of the machine, not of the run."""
MAX_NOTES = 20
KEPT = "run"
"""Name of the prefix of the files of a run in its temporary folder."""
_one = threading.RLock()
"""Held by a cell: its warnings are told from those of others by time, and a worker of Dask has several threads."""


@dataclass(frozen=True)
class CellTask:
    """One cell for a worker: its name in messages, and its run.

    `digests` maps paths of files to their SHA-256, `declared` to their texts in errors. `code` is that of the process
    that begins the `study` (campaign or comparison). With `keep` the files of the run are part of its outcome, with
    `by_job` the outcomes of its jobs and its power.
    """

    key: str
    name: str
    spec: RunSpec
    code: str
    study: str = "campaign"
    digests: Mapping[str, str] = field(default_factory=dict)
    declared: Mapping[str, str] = field(default_factory=dict)
    keep: bool = False
    by_job: bool = False
    scratch: str | None = None


@dataclass(frozen=True)
class CellOutcome:
    """Outcome of a cell: `stop` means that the study cannot go on (an error of the machine, not of the run).

    `rejections` counts rejected jobs by cause, `notes` are warnings, `raised` is the error of a run of this call, and
    `files` maps the ends of the names of files to their content. `files_digest` is the SHA-256 of the metadata among
    files that lie elsewhere.
    """

    key: str
    status: Literal["done", "failed", "stop"]
    error: str | None = None
    figures: Mapping[str, Any] = field(default_factory=dict)
    rejections: Mapping[str, int] | None = None
    elapsed_s: float = 0.0
    notes: tuple[str, ...] = ()
    jobs: JobOutcomes | None = None
    trace: PowerTrace | None = None
    files: Mapping[str, bytes] = field(default_factory=dict)
    files_digest: str | None = None
    raised: BatwattError | None = None


def task_of(cell: Cell, keep: bool, scratch: Path | None) -> CellTask:
    """Return the task of a cell of a campaign for a worker."""
    return CellTask(
        key=cell.key,
        name=f"run {cell.key[:12]}",
        spec=cell.spec,
        code=code_digest(cell.scheduler == OPTIMUM),
        digests={str(file.path): file.sha256 for file in cell.files},
        declared={str(file.path): file.declared for file in cell.files},
        keep=keep,
        scratch=str(scratch) if scratch else None,
    )


def execute(task: CellTask) -> CellOutcome:
    """Run a cell. An error becomes an outcome, which any machine can send; warnings become its notes."""
    thread = threading.get_ident()
    with _one, noted() as repeats:
        repeats.addFilter(lambda record: record.thread == thread)
        outcome = _executed(task)
    return replace(outcome, notes=tuple(message(line) for _, line in repeats.drain()[:MAX_NOTES]))


def execute_silently(task: CellTask) -> CellOutcome:
    """Execute a cell in a process of its own: text that its scheduler prints is dropped."""
    with redirect_stdout(StringIO()):
        return execute(task)


def _executed(task: CellTask) -> CellOutcome:
    load_plugins(task.spec.plugins)
    if code_digest(task.spec.scheduler == OPTIMUM) != task.code:
        hint = "give the workers the same batwatt (and ortools) and start again"
        problem = f"a worker on {python_platform.node()} has other code than the {task.study} began with"
        return CellOutcome(task.key, "stop", f"{problem}; {hint}")
    began = time.perf_counter()
    has_files = task.keep or task.spec.engine != "embedded" or task.spec.scheduler == OPTIMUM
    try:
        with tempfile.TemporaryDirectory(prefix="cell-", dir=task.scratch) if has_files else nullcontext() as folder:
            outcome = _attempt(task, None if folder is None else Path(folder))
    except OSError as error:
        # the temporary folder itself
        outcome = CellOutcome(task.key, "stop", f"no temporary folder on {python_platform.node()}: {error.strerror}")
    changed = next((path for path, digest in task.digests.items() if digest_of(Path(path)) != digest), None)
    if changed is not None:
        problem = (
            f"{task.declared.get(changed, changed)} changed while the {task.study} ran, or a worker sees another one"
        )
        outcome = CellOutcome(task.key, "stop", f"{problem} ({changed} on {python_platform.node()})")
    return replace(outcome, elapsed_s=round(time.perf_counter() - began, 3))


def _attempt(task: CellTask, folder: Path | None) -> CellOutcome:
    spec = task.spec if folder is None else replace(task.spec, prefix=folder / KEPT)
    try:
        if spec.scheduler == OPTIMUM:
            # the optimum rejects no job
            outcome = CellOutcome(task.key, "done", figures=_optimum(spec), rejections={})
        else:
            outcome = _outcome(task, _result(task, spec))
        if task.keep and folder is not None:
            files = {path.name.removeprefix(KEPT): path.read_bytes() for path in sorted(folder.glob(f"{KEPT}_*"))}
            outcome = replace(outcome, files=files)
        return outcome
    except Exception as error:  # any error of a scheduler fails its run, and goes into the row
        cause = _no_room(error)
        if cause is not None:
            problem = f"no run can be carried out on {python_platform.node()}: {cause.strerror}"
            return CellOutcome(task.key, "stop", problem)
        raised = error if isinstance(error, BatwattError) else BatwattError(_internal(error))
        text = str(raised)
        for path, name in {**task.declared, **({str(folder): "."} if folder else {})}.items():
            text = text.replace(path, name)
        return CellOutcome(task.key, "failed", message(text), raised=raised)


def _result(task: CellTask, spec: RunSpec) -> Result:
    """Return the result of a run, with its files if they are kept or its engine is in another process."""
    if spec.engine != "embedded":
        return run(spec, durable=False)
    began = time.perf_counter()
    result = perform(PreparedRun.of(spec))
    if result.deadlock is not None:
        raise result.deadlock
    result.warn()
    if task.keep:
        result.elapsed_s = time.perf_counter() - began
        with staging(spec.prefix, durable=False) as inner:
            result.write(inner)
    return result


def _outcome(task: CellTask, result: Result) -> CellOutcome:
    return CellOutcome(
        key=task.key,
        status="done",
        figures=_figures(result.values),
        rejections=dict(result.rejections),
        jobs=result.outcomes if task.by_job else None,
        trace=result.trace if task.by_job else None,
    )


def _internal(error: Exception) -> str:
    """Describe an unexpected error: its type, text and place."""
    frame = traceback.extract_tb(error.__traceback__)[-1]
    return f"{type(error).__name__}: {error} ({Path(frame.filename).name}:{frame.lineno}, in {frame.name})"


def _no_room(error: BaseException | None) -> OSError | None:
    """Return the error of the machine that caused an error, such as a full disk; None if there is none."""
    while error is not None:
        if isinstance(error, OSError) and error.errno in NO_ROOM:
            return error
        error = error.__cause__ or error.__context__
    return None


def _figures(metrics: Values) -> dict[str, Any]:
    return {**rounded(metrics), **dict.fromkeys(BOUNDS)}


def _optimum(spec: RunSpec) -> dict[str, Any]:
    # only such cells need the solver
    from batwatt.study.optimum import run_optimum

    optimum = run_optimum(spec)
    return _figures(optimum.values) | {
        # a missing bound may be infinite, for which JSON has no name
        name: None if isinstance(value, float) and not math.isfinite(value) else value
        for name, value in optimum.bounds.items()
    }
