"""Finding a scheduler: one of ours by name, a file by path, or one of pybatsim's own by name."""

from __future__ import annotations

import importlib
import importlib.metadata
import importlib.util
import pkgutil
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from batwatt.errors import InputError, UnknownNameError
from batwatt.policy.base import EnvelopeScheduler
from batwatt.policy.registry import first_line


def our_schedulers() -> Iterator[tuple[str, type[EnvelopeScheduler]]]:
    """(name, class) of every scheduler in `batwatt.schedulers`, sorted by name."""
    # the folder lies outside src/, where a type checker does not find it
    schedulers = importlib.import_module("batwatt.schedulers")
    for name in sorted(module.name for module in pkgutil.iter_modules(schedulers.__path__)):
        module = importlib.import_module(f"batwatt.schedulers.{name}")
        yield name, getattr(module, class_name(name))


def describe_schedulers() -> Iterator[tuple[str, str]]:
    """(name, first line of its docstring) of each of our schedulers."""
    for name, scheduler in our_schedulers():
        yield name, first_line(scheduler)


def class_name(stem: str) -> str:
    """pybatsim's rule: the file `fooBar.py` defines the class `FooBar`."""
    return stem[:1].upper() + stem[1:]


def _pybatsim_file(name: str) -> Path | None:
    try:
        files = importlib.metadata.files("pybatsim") or ()
    except importlib.metadata.PackageNotFoundError:
        return None
    for file in files:
        if file.parts == ("schedulers", f"{name}.py"):
            return Path(str(file.locate()))
    return None


def scheduler_class(name: str) -> type[Any]:
    """The class that `name` (of ours, of pybatsim's, or the path of a .py file) stands for."""
    ours = dict(our_schedulers())
    if name in ours:
        return ours[name]
    if "/" in name or name.endswith(".py"):
        path: Path | None = Path(name)
        assert path is not None
        if not path.is_file():
            raise InputError(name, "no such scheduler file")
    else:
        path = _pybatsim_file(name)
        if path is None:
            hint = "Give a name or the path of a .py file; see `batwatt policies`."
            raise UnknownNameError("--scheduler", "scheduler", name, ours, hint)
    return _from_file(path)


def _from_file(path: Path) -> type[Any]:
    wanted = class_name(path.stem)
    spec = importlib.util.spec_from_file_location(f"batwatt_user_{path.stem}", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        raise InputError(path, f"cannot be loaded: {type(error).__name__}: {error}") from error
    found = getattr(module, wanted, None)
    if not isinstance(found, type):
        raise InputError(path, f"defines no class {wanted}", "pybatsim derives the class from the file's name")
    return found


def make_scheduler(name: str, options: Mapping[str, Any]) -> Any:
    """A scheduler with its options; of ours, the options are checked."""
    found = scheduler_class(name)
    if issubclass(found, EnvelopeScheduler):
        return found(options)
    foreign = {key: value for key, value in options.items() if key not in ("platform", "envelope")}
    return found(options=foreign)
