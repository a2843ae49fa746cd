"""Search of a scheduler: one of ours by name, a file or folder by path, or one of pybatsim's own by name."""

from __future__ import annotations

import importlib
import json
import os
import pkgutil
import sys
import sysconfig
import traceback
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from inspect import get_annotations
from pathlib import Path
from types import FrameType, FunctionType, MappingProxyType, ModuleType
from typing import Any, Literal, get_args, get_origin

from batwatt.batsim.adapters import low_level
from batwatt.errors import BatwattError, InputError, UnknownNameError
from batwatt.files import PACKAGE
from batwatt.model.signal import Clock
from batwatt.run.loader import PREFIX, code_file, defines, load, load_plugin, loaded_plugins, pybatsim_files, readable
from batwatt.run.spec import own_name
from batwatt.scheduling.base import Scheduler, SchedulerOptions, read_options
from batwatt.scheduling.registry import KINDS, first_line, kind_of, parts_of, registered

_WIRE = "batwatt.batsim.wire"
SHIFT = "shift"
"""The option by which a run holds jobs (`batwatt.shift`)."""


class SchedulerError(BatwattError):
    """Error of the code of a scheduler; the message has its type, text and place for the author."""


def our_schedulers() -> Iterator[tuple[str, type[Scheduler]]]:
    """Yield (name, class) of every scheduler in `batwatt.schedulers`, sorted by name."""
    for name in our_names():
        yield name, _one_of_ours(name)


def our_names() -> list[str]:
    """Return the name of every scheduler in `batwatt.schedulers`, sorted; import none of them."""
    # the folder lies outside src/, where a type checker does not find it
    schedulers = importlib.import_module("batwatt.schedulers")
    return sorted(module.name for module in pkgutil.iter_modules(schedulers.__path__))


def _one_of_ours(name: str) -> type[Scheduler]:
    scheduler: type[Scheduler] = getattr(importlib.import_module(f"batwatt.schedulers.{name}"), class_name(name))
    return scheduler


def describe_schedulers() -> Iterator[tuple[str, str]]:
    """Yield (name, first line of its docstring) of each of our schedulers."""
    for name, scheduler in our_schedulers():
        yield name, first_line(scheduler)


def describe_options(name: str) -> Iterator[tuple[str, str]]:
    """Yield (name, meaning and default) of each option of one of our schedulers. Raises InputError."""
    name, ours = own_name(name), our_names()
    if name not in ours:
        hint = "Give one of these, or the path of a .py file or a folder; see `batwatt policies`."
        raise UnknownNameError("SCHEDULER", "scheduler of ours", name, ours, hint)
    yield from _options_of(_one_of_ours(name))


def _options_of(scheduler: type[Scheduler]) -> Iterator[tuple[str, str]]:
    for option, field in scheduler.Options.model_fields.items():
        allowed = get_args(field.annotation) if get_origin(field.annotation) is Literal else ()
        choices = f": {', '.join(allowed)}" if allowed else ""
        default = "" if field.default is None else f" (default {json.dumps(field.default)})"
        yield option, f"{field.description}{choices}{default}"


def class_name(stem: str) -> str:
    """Return the name of a file's class by pybatsim's rule: `fooBar.py` defines `FooBar`."""
    return stem[:1].upper() + stem[1:]


def _pybatsim_schedulers() -> dict[str, Path]:
    """Return the files of the schedulers that come with pybatsim, by name, without those that define none."""
    return {name: path for name, path in pybatsim_files().items() if defines(path, class_name(name))}


def scheduler_names() -> list[str]:
    """Return the names of our schedulers, then of those that come with pybatsim; import none of them."""
    return [*our_names(), *_pybatsim_schedulers()]


def is_ours(scheduler: Any) -> bool:
    """Return whether a scheduler (a name, a class or an instance) is one that is shipped."""
    if isinstance(scheduler, str):
        return scheduler in our_names()
    kind = scheduler if isinstance(scheduler, type) else type(scheduler)
    return kind.__module__.startswith("batwatt.schedulers.")


def scheduler_class(name: Any) -> type[Any]:
    """Return the class of a name (of ours, of pybatsim's, or the path of a file or folder). Raises InputError."""
    if not isinstance(name, str):
        kind = _scheduler_of(name)
        if kind is None and _scheduler_of(type(name)) is not None:
            problem = f"is an instance of {type(name).__name__}, which can run once"
            raise InputError("scheduler", problem, "give the class, and its options in `options`")
        if kind is None:
            problem = f"{(name if isinstance(name, type) else type(name)).__name__} is not a scheduler"
            raise InputError("scheduler", problem, "give a name, or a class derived from BatsimScheduler")
        return kind
    name, ours = own_name(name), our_names()
    if name in ours:
        return _one_of_ours(name)
    if is_file_name(name):
        return _from_file(Path(name))
    theirs = _pybatsim_schedulers()
    if name not in theirs:
        hint = "Give a name or the path of a .py file or a folder; see `batwatt policies`."
        raise UnknownNameError("scheduler", "scheduler", name, [*ours, *theirs], hint)
    return _from_file(theirs[name])


def is_file_name(name: str) -> bool:
    """Return whether the name of a scheduler is a file."""
    return "/" in name or name.endswith(".py")


def load_plugins(paths: Iterable[Path]) -> tuple[Path, ...]:
    """Load files that register parts, each once in this process; return their full paths. Raises InputError."""
    files = tuple(code_file(path) for path in paths)
    for path in files:
        # parts that are shipped take their names first
        for _ in our_schedulers():
            pass
        before = registered()
        first = path not in loaded_plugins()
        _run_code(load_plugin, path)
        if first and all(any(part is other for other in before) for part in registered()):
            remedy = "decorate each part with @register(kind, name); see docs/howto/parts.md"
            raise InputError(path, "registers no part", remedy)
    return files


def _run_code(run: Callable[[Path], ModuleType], path: Path) -> ModuleType:
    """Return the module that `run` makes of a file or folder. Raises InputError."""
    file = code_file(path)
    try:
        return run(file)
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        raise _not_loaded(path, error) from error


def _not_loaded(path: Path, error: BaseException) -> InputError:
    """Return the error for a file that raised one when it was loaded."""
    frame = _culprit(error)
    line = _line_of(error, frame.f_code.co_filename if frame else None)
    return InputError(path, f"cannot be loaded: {line}", _remedy(error, "correct the file"))


def _remedy(error: BaseException, otherwise: str) -> str:
    """Return the remedy for a missing library; `otherwise` for any other error."""
    missing = isinstance(error, ModuleNotFoundError) and error.name
    if not missing or missing.startswith(PREFIX):
        return otherwise
    return f"install {missing.partition('.')[0]!r} beside batwatt, or {otherwise}"


def _from_file(path: Path) -> type[Any]:
    """Return the scheduler of a file or folder: that with its name, else the only one from which no other derives."""
    module, file = _run_code(load, path), code_file(path)
    named = file.parent if file.name == "__init__.py" else file
    expected = class_name(named.name.partition(".")[0])
    thing = vars(module).get(expected)
    own = (kind for kind in vars(module).values() if isinstance(kind, type) and _is_of(module, kind.__module__))
    # a class may have two names
    classes = list(dict.fromkeys(own))
    try:
        if isinstance(thing, type | FunctionType):
            schedulers = [kind] if (kind := _scheduler_of(thing)) else []
        else:
            every = [kind for kind in classes if _scheduler_of(kind)]
            leaves = [kind for kind in every if not any(kind in other.__mro__[1:] for other in every)]
            schedulers = [kind for kind in map(_scheduler_of, leaves) if kind]
    except Exception as error:
        raise _not_loaded(path, error) from error
    if len(schedulers) == 1:
        return schedulers[0]
    if isinstance(thing, type | FunctionType):
        raise InputError(path, f"{expected} is not a scheduler", "derive it from batsim.batsim.BatsimScheduler")
    what = "several schedulers" if schedulers else "no scheduler"
    names = ", ".join(sorted(kind.__name__ for kind in schedulers or classes)) or "none"
    problem = f"defines no class {expected} and {what} (its classes: {names})"
    remedy = f"name its scheduler {expected}, or the file as its scheduler"
    if named is not file:
        problem = f"its __init__.py {problem}"
        remedy = f"bind it there, such as: from .scheduler import {expected} as {expected}"
    raise InputError(path, problem, remedy)


def _is_of(module: ModuleType, name: str) -> bool:
    """Return whether a module is `module`, or lies in the package that it is."""
    return name == module.__name__ or (hasattr(module, "__path__") and name.startswith(f"{module.__name__}."))


def _scheduler_of(thing: Any) -> type[Any] | None:
    """Return the scheduler of a class, or of a function of pybatsim's high-level API; None if there is none."""
    if isinstance(thing, type) and callable(getattr(thing, "onNoMoreEvents", None)):
        return thing
    if isinstance(thing, FunctionType) or (isinstance(thing, type) and callable(getattr(thing, "schedule", None))):
        return low_level(thing)
    return None


def describe_file(path: Path) -> dict[str, list[tuple[str, str]]]:
    """Return (name, first line of docstring) of the schedulers, parts and options of a .py file or a folder, by kind.

    A part that is not registered has the name of its class. Raises InputError.
    """
    module = _run_code(load, path)
    try:
        sections = _described(module)
    except Exception as error:
        raise InputError(path, f"cannot be described: {_line_of(error, str(path))}", "correct the file") from error
    if not sections:
        problem = "defines no scheduler, order, backfilling or response"
        raise InputError(path, problem, "see docs/howto/own-scheduler.md")
    return sections


def _described(module: ModuleType) -> dict[str, list[tuple[str, str]]]:
    sections: dict[str, list[tuple[str, str]]] = {}
    registered = {id(part): (kind, name) for kind in KINDS for name, part in parts_of(kind)}
    for name, thing in vars(module).items():
        kind, label = registered.get(id(thing), (None, name))
        if not _is_of(module, str(getattr(thing, "__module__", None))) or not (kind or isinstance(thing, type)):
            continue
        kind = "scheduler" if isinstance(thing, type) and _scheduler_of(thing) else kind or kind_of(thing)
        if kind is not None:
            sections.setdefault(kind, []).append((label, first_line(thing)))
            if isinstance(thing, type) and issubclass(thing, Scheduler):
                sections.setdefault("option", []).extend(_options_of(thing))
    return sections


def make_scheduler(
    name: Any,
    options: Mapping[str, Any],
    kind: type[Any] | None = None,
    *,
    defaults: Mapping[str, Any] = MappingProxyType({}),
    clock: Clock | None = None,
) -> Any:
    """Return a scheduler with its options; those of ours are checked, and files read on the clock of the run.

    Ours take the `defaults` of the run, too; any other scheduler has exactly the `options` of its user.
    `kind`: the class of the scheduler; None: that of the name. Raises InputError.
    """
    kind = kind or scheduler_class(name)
    with attribute_errors(name if isinstance(name, str) else kind.__name__, kind):
        if issubclass(kind, Scheduler):
            return kind(read_options(kind.Options, {**defaults, **options}, clock))
        # pybatsim has no keyword for them
        return kind({key: value for key, value in options.items() if key != SHIFT or has_own_shift(name, kind)})


def has_own_shift(scheduler: Any, kind: type[Any]) -> bool:
    """Return whether the option `shift` is the scheduler's, of the class `kind`, and not for the run.

    True if the options of the class declare one, or if a class from elsewhere has no declared options; the schedulers
    that come with pybatsim have no such option.
    """
    if issubclass(kind, Scheduler):
        declaring = next(base for base in kind.Options.__mro__ if SHIFT in get_annotations(base))
        return declaring is not SchedulerOptions
    return not isinstance(scheduler, str) or is_file_name(scheduler)


@contextmanager
def attribute_errors(name: str, scheduler: Any) -> Iterator[None]:
    """Turn an error of a scheduler's code into a SchedulerError with text, place and simulated time.

    `scheduler`: the scheduler while it runs, or its class before. Errors of our own code pass as they are.
    """
    kind = scheduler if isinstance(scheduler, type) else type(scheduler)
    try:
        yield
    except (BatwattError, KeyboardInterrupt):
        raise
    except BaseException as error:
        # an OSError of our own concerns an output; the scheduler's code may raise others
        ours = isinstance(error, OSError) or (is_ours(kind) and not _others_parts(scheduler)) or _is_receiving(error)
        if ours and not (_culprit(error) or (not is_ours(kind) and _within(error, kind))):
            raise
        raise _blame(name, scheduler, error) from error


def _others_parts(scheduler: Any) -> list[str]:
    """Return the parts of a scheduler (of a class: all parts) of other authors, whose results may be wrong."""
    if isinstance(scheduler, type):
        kinds = [part for kind in KINDS for _, part in parts_of(kind) if isinstance(part, type)]
    else:
        kinds = [type(part) for part in vars(scheduler).values()]
    return [f"{kind_of(kind)} {kind.__name__}" for kind in kinds if kind.__module__[:8] != "batwatt." and kind_of(kind)]


def _is_receiving(error: BaseException) -> bool:
    """Return whether an error came from the reading of a message."""
    frames = (frame for frame, _ in traceback.walk_tb(error.__traceback__))
    return any(frame.f_code.co_name == "message" and frame.f_globals.get("__name__") == _WIRE for frame in frames)


def _blame(name: str, scheduler: Any, error: BaseException) -> SchedulerError:
    kind = scheduler if isinstance(scheduler, type) else type(scheduler)
    subject = f"the scheduler {Path(name).stem!r}"
    frame = _culprit(error)
    owner = type(frame.f_locals["self"]) if frame is not None and "self" in frame.f_locals else None
    if owner is None and is_ours(kind) and (others := _others_parts(scheduler)):
        subject = f"{', '.join(others)} of {subject}"
    if owner is not None and not issubclass(kind, owner):
        subject = f"{kind_of(owner) or 'class'} {owner.__name__} of {subject}"
    place = frame.f_code.co_filename if frame is not None else _within(error, kind)
    bs = getattr(scheduler, "bs", None)
    when = f" at {bs.time():.6g} s of the simulation" if bs is not None else ""
    remedy = _remedy(error, "`batwatt -v ...` shows the traceback")
    return SchedulerError(f"{subject} raised {_line_of(error, place)}{when}; {remedy}")


def _culprit(error: BaseException) -> FrameType | None:
    """Return the innermost frame of a file of the user: none of ours, of Python's or of an installed package."""
    paths = sysconfig.get_paths()
    others = (str(PACKAGE), *(paths[name] for name in ("stdlib", "purelib", "platlib")))
    others += tuple(importlib.import_module("batwatt.schedulers").__path__)
    frames = [frame for frame, _ in traceback.walk_tb(error.__traceback__)]
    # our compiled modules name files of the machine on which they were compiled
    frames = [frame for frame in frames if not frame.f_globals.get("__name__", "").startswith("batwatt.")]
    # <frozen ...> and <string> are not files
    others = tuple(f"{folder}{os.sep}" for folder in others)
    files = ((frame, frame.f_code.co_filename) for frame in reversed(frames) if frame.f_code.co_filename[:1] != "<")
    return next((frame for frame, file in files if not file.startswith(others)), None)


def _within(error: BaseException, scheduler: type[Any]) -> str | None:
    """Return the file, of the scheduler's class or else of a base class, in which the error happened."""
    frames = {frame.filename for frame in traceback.extract_tb(error.__traceback__)}
    modules = [sys.modules.get(base.__module__) for base in scheduler.__mro__ if base.__module__ != "batsim.batsim"]
    files = (getattr(module, "__file__", None) for module in modules)
    return next((file for file in files if file in frames), None)


def _line_of(error: BaseException, file: str | None) -> str:
    """Return an exception in one line: type, text, and its innermost place in `file` (or anywhere)."""
    what = "SystemExit" if isinstance(error, SystemExit) else type(error).__name__
    try:
        text = readable(" ".join(str(error).split()))
    except Exception:
        text = ""
    frames = traceback.extract_tb(error.__traceback__)
    inside = [frame for frame in frames if frame.filename == file] or frames[-1:]
    line = f"{what}: {text}" if text else what
    if isinstance(error, SyntaxError) or not inside:
        return line
    return f"{line} ({inside[-1].filename}:{inside[-1].lineno}, in {inside[-1].name})"
