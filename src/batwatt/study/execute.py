"""Carrying out one cell where it is: in a worker process here, or on another machine."""

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

# what a run loads late, before processes are forked: the code that they run is that of the key
from batwatt.results import classes as classes
from batwatt.results import unfinished as unfinished
from batwatt.results.figures import Values, rounded
from batwatt.run.find_scheduler import load_plugins, loaded_plugins
from batwatt.run.repeats import noted
from batwatt.run.run import run
from batwatt.run.spec import RunSpec
from batwatt.study.cells import Cell, code_digest
from batwatt.study.files import digest_of
from batwatt.study.spec import OPTIMUM

BOUNDS = ("lower_bound", "gap", "proven_optimal")
"""What a row of the optimum has besides the metrics."""
NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EROFS, errno.EIO, errno.EMFILE, errno.ENFILE)
"""Errors that are the machine's, not the run's."""
MAX_NOTES = 20


@dataclass(frozen=True)
class CellTask:
    """One cell as a worker gets it; `shown` are the texts that stand for paths in errors."""

    key: str
    spec: RunSpec
    digests: Mapping[str, str]
    shown: Mapping[str, str]
    code: str
    keep: bool
    scratch: str | None = None


@dataclass(frozen=True)
class CellOutcome:
    """How a cell ended: `stop` means that the campaign cannot go on (the machine's fault, not the run's).

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
    """What a worker needs to know."""
    engine = cell.engine_options
    options = cell.run_options
    if cell.reference is not None:
        options["reference"] = str(cell.reference.path)
    spec = RunSpec(
        cell.inputs,
        scheduler=str(cell.scheduler_file.path) if cell.scheduler_file else cell.scheduler,
        options=options,
        engine=cell.engine,
        config=engine.config(),
        batsim=engine.batsim,
        batsim_args=tuple(engine.batsim_args),
        plugins=loaded_plugins(),
    )
    files = cell.files
    return CellTask(
        key=cell.key,
        spec=spec,
        digests={str(file.path): file.sha256 for file in files},
        shown={str(file.path): file.shown for file in files},
        code=code_digest(cell.scheduler == OPTIMUM),
        keep=keep,
        scratch=str(scratch) if scratch else None,
    )


def execute(task: CellTask) -> CellOutcome:
    """Run a cell in a temporary folder. Nothing that goes wrong is raised, so that it arrives from anywhere."""
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
        problem = f"{task.shown[changed]} changed while the campaign ran, or a worker sees another one"
        outcome = CellOutcome(task.key, "stop", f"{problem} ({changed} on {python_platform.node()})")
    return replace(outcome, elapsed_s=round(time.perf_counter() - began, 3))


def execute_quietly(task: CellTask) -> CellOutcome:
    """`execute` in a process of its own: what is logged there comes back as notes, and what is printed is dropped."""
    with noted() as repeats, redirect_stdout(StringIO()):
        outcome = execute(task)
    return replace(outcome, notes=tuple(message(line) for _, line in repeats.take()[:MAX_NOTES]))


def _attempt(task: CellTask, folder: Path) -> CellOutcome:
    prefix = folder / "run"
    spec = replace(task.spec, prefix=prefix)
    try:
        if spec.scheduler == OPTIMUM:
            # it finishes every job
            figures, rejections = _optimum(spec), {}
        else:
            result = run(spec, durable=False)
            figures, rejections = _figures(result.metrics), dict(result.rejections)
        files = {path.name: path.read_bytes() for path in sorted(folder.glob("run_*"))} if task.keep else {}
        return CellOutcome(task.key, "done", None, figures, rejections, files=files)
    except Exception as error:  # whatever a scheduler raises is the run's own failure, and goes into its row
        cause = _no_room(error)
        if cause is not None:
            problem = f"no run can be carried out on {python_platform.node()}: {cause.strerror}"
            return CellOutcome(task.key, "stop", problem)
        text = str(error) if isinstance(error, BatwattError) else _internal(error)
        for path, shown in {**task.shown, str(folder): "."}.items():
            text = text.replace(path, shown)
        return CellOutcome(task.key, "failed", message(text))


def _internal(error: Exception) -> str:
    """Describe an unexpected error: its type, text and place."""
    frame = traceback.extract_tb(error.__traceback__)[-1]
    return f"{type(error).__name__}: {error} ({Path(frame.filename).name}:{frame.lineno}, in {frame.name})"


def _no_room(error: BaseException | None) -> OSError | None:
    """The full disk, or its like, that is behind an error."""
    while error is not None:
        if isinstance(error, OSError) and error.errno in NO_ROOM:
            return error
        error = error.__cause__ or error.__context__
    return None


def _figures(metrics: Values) -> dict[str, Any]:
    return {**rounded(metrics), **dict.fromkeys(BOUNDS)}


def _optimum(spec: RunSpec) -> dict[str, Any]:
    # only such cells need the solver
    from batwatt.offline import run_optimum

    optimum = run_optimum(spec)
    bounds = {name: getattr(optimum, name) for name in BOUNDS}
    return _figures(optimum.metrics) | {
        # a bound that was not found may be infinite, for which JSON has no name
        name: None if isinstance(value, float) and not math.isfinite(value) else value
        for name, value in bounds.items()
    }
