"""The runs of a study: keys made of everything that determines them, and their execution in any process."""

from __future__ import annotations

import errno
import hashlib
import inspect
import math
import os
import platform as python_platform
import shutil
import sys
import tempfile
import threading
import time
import traceback
from collections.abc import Iterator, Mapping, Sequence
from contextlib import nullcontext, redirect_stdout
from dataclasses import dataclass, field, fields, is_dataclass, replace
from functools import cache
from io import StringIO
from pathlib import Path
from types import CodeType, FunctionType
from typing import Any, Literal

import numpy as np

from batwatt._version import __version__
from batwatt.errors import BatwattError, InputError, message
from batwatt.files import PACKAGE, digest_of, is_file, is_folder, sha256_of
from batwatt.inputs.spec import Quantity, parse_series
from batwatt.model.platform import Platform
from batwatt.model.timeline import Timeline
from batwatt.model.workload import Workload

# modules that a run loads late: loaded before processes are forked, so that their code is that of the key
from batwatt.results import groups as groups
from batwatt.results import rejections as rejections
from batwatt.results.figures import Values, rounded
from batwatt.results.outcomes import JobOutcomes
from batwatt.results.power import PowerTrace
from batwatt.run.files import digest_of_input, staging, version_of
from batwatt.run.find_scheduler import is_file_name, is_ours, load_plugins
from batwatt.run.loader import code_file, files_beside, loaded_plugins, pybatsim_files
from batwatt.run.prepared import PreparedRun
from batwatt.run.repeats import noted
from batwatt.run.result import Result
from batwatt.run.run import perform, run
from batwatt.run.spec import RunSpec
from batwatt.scheduling.registry import KINDS, parts_of
from batwatt.studies.spec import OPTIMUM, canonical

FORMAT = 1
"""Version of the content of a key and of the files of cells."""
SUFFIXES = (".py", ".csv")
"""Suffixes of the files of the package that count: modules and data."""
NOT_FIGURES = ("patience_s", "plugins", "prefix", "scheduler")
"""Fields of a run that its figures do not depend on, or that `Contents` adds by their code."""
OF_BATSIM = ("batsim", "batsim_args")
"""Fields of a run on a real Batsim."""
SERIES_OPTIONS: Mapping[str, Quantity] = {
    "envelope": "power",
    "capacity": "machines",
    "signal": "carbon",
    "carbon": "carbon",
    "price": "price",
}
"""Options of schedulers that may be texts of series, which name files."""
OURS = ("batsim", "batwatt", "pybatsim", *sys.stdlib_module_names)
"""Packages whose code is that of a version, or in the digest of the code."""
PACKAGES, PACKAGES_OF_OPTIMUM = ("pybatsim",), ("pybatsim", "ortools", "highspy")
BOUNDS = ("lower_bound", "gap", "proven_optimal")
"""Columns of a row of the optimum besides the metrics."""
NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EROFS, errno.EIO, errno.EMFILE, errno.ENFILE)
"""Errors of the machine, not of the run."""
MAX_NOTES = 20
KEPT = "run"
"""Name of the prefix of the files of a run in its temporary folder."""
_one = threading.RLock()
"""Held by a cell: its warnings are those of its time, and a worker of Dask has several threads."""


def code_digest(optimum: bool = False) -> str:
    """Return the SHA-256 of the version, the installed sources and the packages that a run, or `optimum`, may use."""
    return _code_digest(optimum, loaded_plugins())


@cache
def _code_digest(optimum: bool, plugins: tuple[Path, ...]) -> str:
    sources = {file.relative_to(PACKAGE).as_posix(): file for file in PACKAGE.rglob("*") if file.suffix in SUFFIXES}
    for plugin in plugins:
        above = plugin.parents[1]
        sources.update((f"plugin {file.relative_to(above)}", file) for file in (plugin, *files_beside(plugin)))
    parts = {name: hashlib.sha256(path.read_bytes()).hexdigest() for name, path in sources.items()}
    versions = {name: version_of(name) for name in (PACKAGES_OF_OPTIMUM if optimum else PACKAGES)}
    return hashlib.sha256(canonical([__version__, parts, versions]).encode()).hexdigest()


@cache
def digest_of_executable(name: str) -> str:
    """Return the SHA-256 of a Batsim on PATH. Raises InputError."""
    path = shutil.which(name)
    if path is None:
        raise InputError("batsim", f"{name!r} is not an executable on PATH", "install Batsim 4.x or give its path")
    return sha256_of(path)


def key_of(digest: str, code: str, depends: Sequence[str] = ()) -> str:
    """Return the key of a cell: the SHA-256 of its run, of the code, and of the files that it depends on."""
    return hashlib.sha256(canonical([FORMAT, digest, code, *depends]).encode()).hexdigest()


class Contents:
    """Digests of runs by the content of everything that determines their figures.

    Inputs that runs share are read once. `files` maps the paths of files that runs read to their SHA-256.
    """

    def __init__(self) -> None:
        self.files: dict[str, str] = {}
        # with the objects, so that no other one gets the same id
        self._read: dict[int, tuple[Any, str]] = {}
        self._schedulers: dict[str, Any] = {}

    def digest(self, spec: RunSpec) -> str:
        """Return the SHA-256 of a run. Raises InputError if a part has no content, such as a class of a notebook.

        The code of batwatt and of plugins is not part of it (`code_digest`).
        """
        left_out = NOT_FIGURES if spec.engine == "batsim" else (*NOT_FIGURES, *OF_BATSIM)
        names = [entry.name for entry in fields(spec) if entry.name not in left_out]
        parts: dict[str, Any] = {name: self._content(getattr(spec, name), name) for name in names}
        parts["scheduler"] = self._scheduler(spec.scheduler)
        words = set(_words(spec.options))
        # which of ours are registered depends on what is loaded, and their code is that of the package
        named = [
            part for kind in KINDS for name, part in parts_of(kind) if name in words and not _is_of_a_version(part)
        ]
        parts["parts"] = [self._code_of(part) for part in named]
        if spec.engine == "batsim":
            parts["batsim"] = digest_of_executable(spec.batsim)
        return hashlib.sha256(canonical(parts).encode()).hexdigest()

    def _content(self, value: Any, name: str = "") -> Any:
        """Return a value as JSON, files and objects by their digests. Raises InputError."""
        if value is None or isinstance(value, bool | int):
            return value
        if isinstance(value, float):
            # JSON has no NaN
            return repr(value)
        if isinstance(value, np.generic):
            return self._content(value.item())
        if isinstance(value, str):
            return self._text(value, name)
        if isinstance(value, Path):
            return self._file(value)
        if isinstance(value, Workload | Platform | Timeline):
            return self._input(value)
        if is_dataclass(value) and not isinstance(value, type):
            # texts of series, for messages only, do not count
            values = {entry.name: self._content(getattr(value, entry.name)) for entry in fields(value) if entry.compare}
            return [type(value).__name__, values]
        if isinstance(value, Mapping):
            return {str(key): self._content(one, str(key)) for key, one in value.items()}
        if isinstance(value, list | tuple | range):
            return [self._content(one, name) for one in value]
        raise _unknown(type(value).__name__)

    def _text(self, text: str, name: str) -> Any:
        if name in SERIES_OPTIONS:
            try:
                series = parse_series(SERIES_OPTIONS[name], text)
            except InputError:
                # the name of a source, or an error of the run
                return text
            return self._content(series)
        return [text, self._file(Path(text))] if is_file(text) else text

    def _file(self, path: Path) -> str | None:
        """Return the digest of a file; None if it is missing. Raises InputError for a folder."""
        if is_folder(path):
            raise _unknown(path)
        full = str(path.absolute())
        if full not in self.files and (sha256 := digest_of(path)) is not None:
            self.files[full] = sha256
        return self.files.get(full)

    def _input(self, value: Workload | Platform | Timeline) -> str:
        if id(value) not in self._read:
            more: Any = ()
            if isinstance(value, Workload):
                jobs = [(job.submit_time_s, job.hosts, job.profile, job.walltime_s) for job in value.jobs]
                more = (value.name, value.nb_res, value.recorded, value.begin, jobs)
            elif isinstance(value, Timeline):
                more = (value.name, value.unit, value.date_s, value.pinned)
            content = f"{digest_of_input(value)['sha256']} {more!r}"
            self._read[id(value)] = value, hashlib.sha256(content.encode()).hexdigest()
        return self._read[id(value)][1]

    def _scheduler(self, scheduler: Any) -> Any:
        if not isinstance(scheduler, str):
            return self._code_of(scheduler)
        if scheduler not in self._schedulers:
            content: Any = scheduler
            if scheduler != OPTIMUM and not is_ours(scheduler):
                content = self._sources(Path(scheduler) if is_file_name(scheduler) else pybatsim_files()[scheduler])
            self._schedulers[scheduler] = content
        return self._schedulers[scheduler]

    def _sources(self, path: Path) -> list[list[str | None]]:
        """Return the names and digests of a file of code and of those that it imports from beside it."""
        file = code_file(path)
        above = file.absolute().parents[1]
        return [[os.path.relpath(one.absolute(), above), self._file(one)] for one in (file, *files_beside(file))]

    def _code_of(self, thing: Any) -> Any:
        """Return the sources of a class or a function, those of its bases included. Raises InputError."""
        parts: list[Any] = []
        for one in thing.__mro__ if isinstance(thing, type) else (thing,):
            if "<locals>" in one.__qualname__:
                # it may depend on arguments of the function that has made it
                raise _unknown(one.__qualname__)
            parts.append(f"{one.__module__}.{one.__qualname__}")
            if not _is_of_a_version(one):
                values = {name: value for name, value in vars(one).items() if isinstance(value, str | int | float)}
                parts.append([self._content(values), self._sources(_source_of(one))])
        return parts


def _is_of_a_version(thing: Any) -> bool:
    """Return whether the code of a class or a function is that of a version, or in the digest of the code."""
    return thing.__module__.partition(".")[0] in OURS


def _unknown(part: object) -> InputError:
    """Return the error for a part of a run that another process cannot compare."""
    return InputError(part, "has no content that is known", "give a name, a file or a class of a file")


def _words(value: Any) -> Iterator[str]:
    """Yield all texts in the options of a scheduler."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping | list | tuple):
        for one in (*value, *value.values()) if isinstance(value, Mapping) else value:
            yield from _words(one)


def _source_of(thing: Any) -> Path:
    """Return the file of a class or a function, which has the code that is in memory. Raises InputError."""
    try:
        path = Path(inspect.getsourcefile(thing) or "")
        codes = set(_codes(compile(path.read_bytes(), str(path), "exec", dont_inherit=True)))
    except (TypeError, OSError, SyntaxError, ValueError):
        raise _unknown(thing.__qualname__) from None
    members = vars(thing).values() if isinstance(thing, type) else (thing,)
    functions = [inspect.unwrap(getattr(one, "__func__", getattr(one, "fget", one))) for one in members]
    for function in functions:
        # a dataclass makes functions of no file
        if isinstance(function, FunctionType) and function.__code__.co_filename != "<string>":
            is_own = function.__module__ == thing.__module__ and function.__code__.co_freevars in ((), ("__class__",))
            if not is_own or function.__code__ not in codes:
                raise _unknown(thing.__qualname__)
    if thing.__qualname__ not in {code.co_qualname for code in codes}:
        raise _unknown(thing.__qualname__)
    return path


def _codes(code: CodeType) -> Iterator[CodeType]:
    """Yield the code of a file, and that of all functions and classes in it."""
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _codes(constant)


@dataclass(frozen=True)
class CellTask:
    """One cell for a worker: its name in messages, and its run.

    `digests` maps paths of files to their SHA-256, `declared` to their texts in errors. `code` is that of the process
    that begins the study, or the comparison (`study`). With `keep` the files of the run are part of its outcome, with
    `by_job` the outcomes of its jobs and its power.
    """

    key: str
    name: str
    spec: RunSpec
    code: str
    study: str = "study"
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
    from batwatt.studies.optimum import run_optimum

    optimum = run_optimum(spec)
    return _figures(optimum.values) | {
        # a missing bound may be infinite, for which JSON has no name
        name: None if isinstance(value, float) and not math.isfinite(value) else value
        for name, value in optimum.bounds.items()
    }
