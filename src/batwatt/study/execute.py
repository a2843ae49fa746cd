"""Execution of one cell, in a worker process of this machine or of another one."""

from __future__ import annotations

import errno
import math
import platform as python_platform
import tempfile
import time
import traceback
from collections.abc import Mapping
from contextlib import redirect_stdout
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
from batwatt.run.find_scheduler import load_plugins
from batwatt.run.repeats import noted
from batwatt.run.run import run
from batwatt.run.spec import RunSpec
from batwatt.study.cells import Cell, code_digest
from batwatt.study.spec import OPTIMUM

BOUNDS = ("lower_bound", "gap", "proven_optimal")
"""Columns of a row of the optimum besides the metrics."""
NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EROFS, errno.EIO, errno.EMFILE, errno.ENFILE)
"""Errors of the machine, not of the run."""
MAX_NOTES = 20


@dataclass(frozen=True)
class CellTask:
    """One cell for a worker; `declared` maps paths to their texts in errors."""

    key: str
    spec: RunSpec
    digests: Mapping[str, str]
    declared: Mapping[str, str]
    code: str
    keep: bool
    scratch: str | None = None


@dataclass(frozen=True)
class CellOutcome:
    """Outcome of a cell: `stop` means that the campaign cannot go on (an error of the machine, not of the run).

    `rejections` counts rejected jobs by cause.
    """

    key: str
    status: Literal["done", "failed", "stop"]
    error: str | None = None
    figures: Mapping[str, Any] = field(default_factory=dict)
    rejections: Mapping[str, int] | None = None
    elapsed_s: float = 0.0
    files: Mapping[str, bytes] = field(default_factory=dict)
    notes: tuple[str, ...] = ()


def task_of(cell: Cell, keep: bool, scratch: Path | None) -> CellTask:
    """Return the task of a cell for a worker."""
    return CellTask(
        key=cell.key,
        spec=cell.spec,
        digests={str(file.path): file.sha256 for file in cell.files},
        declared={str(file.path): file.declared for file in cell.files},
        code=code_digest(cell.scheduler == OPTIMUM),
        keep=keep,
        scratch=str(scratch) if scratch else None,
    )


def execute(task: CellTask) -> CellOutcome:
    """Run a cell in a temporary folder. An error becomes an outcome, which any machine can send."""
    load_plugins(task.spec.plugins)
    if code_digest(task.spec.scheduler == OPTIMUM) != task.code:
        hint = "give the workers the same batwatt (and ortools) and start again"
        problem = f"a worker on {python_platform.node()} has other code than the campaign began with"
        return CellOutcome(task.key, "stop", f"{problem}; {hint}")
    began = time.perf_counter()
    try:
        with tempfile.TemporaryDirectory(prefix="cell-", dir=task.scratch) as folder:
            outcome = _attempt(task, Path(folder))
    except OSError as error:
        # the temporary folder itself
        outcome = CellOutcome(task.key, "stop", f"no temporary folder on {python_platform.node()}: {error.strerror}")
    changed = next((path for path, digest in task.digests.items() if digest_of(Path(path)) != digest), None)
    if changed is not None:
        problem = f"{task.declared[changed]} changed while the campaign ran, or a worker sees another one"
        outcome = CellOutcome(task.key, "stop", f"{problem} ({changed} on {python_platform.node()})")
    return replace(outcome, elapsed_s=round(time.perf_counter() - began, 3))


def execute_quietly(task: CellTask) -> CellOutcome:
    """Execute a cell in a process of its own: warnings become notes of the outcome, printed text is dropped."""
    with noted() as repeats, redirect_stdout(StringIO()):
        outcome = execute(task)
    return replace(outcome, notes=tuple(message(line) for _, line in repeats.drain()[:MAX_NOTES]))


def _attempt(task: CellTask, folder: Path) -> CellOutcome:
    prefix = folder / "run"
    spec = replace(task.spec, prefix=prefix)
    try:
        if spec.scheduler == OPTIMUM:
            # the optimum rejects no job
            figures, rejections = _optimum(spec), {}
        else:
            result = run(spec, durable=False)
            figures, rejections = _figures(result.values), dict(result.rejections)
        files = {path.name: path.read_bytes() for path in sorted(folder.glob("run_*"))} if task.keep else {}
        return CellOutcome(task.key, "done", None, figures, rejections, files=files)
    except Exception as error:  # any error of a scheduler fails its run, and goes into the row
        cause = _no_room(error)
        if cause is not None:
            problem = f"no run can be carried out on {python_platform.node()}: {cause.strerror}"
            return CellOutcome(task.key, "stop", problem)
        text = str(error) if isinstance(error, BatwattError) else _internal(error)
        for path, name in {**task.declared, str(folder): "."}.items():
            text = text.replace(path, name)
        return CellOutcome(task.key, "failed", message(text))


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
