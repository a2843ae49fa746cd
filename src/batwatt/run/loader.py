"""Loader of a scheduler's file or folder, with the files beside it, as pybatsim's launcher loads them.

Rules (`batsim.tools.launcher` of pybatsim 3.2), for a file `folder/mine.py`:

1. The file is a module of the package `folder`, whose `__init__.py` runs first if it can: `from .base import X`.
2. The folder above and the folder are searched before the installed packages: `from common import X`,
   `from folder.base import X`. The modules of the standard library that pybatsim's launcher has loaded, pybatsim and
   batwatt come first. `importlib.import_module` and `__import__` follow this rule, too.
3. `schedulers.X` is a file of a folder `schedulers` there, else of the installed pybatsim.
4. `pybatsim.X`, as pybatsim 4 has it, is the module `X` of pybatsim 3, unless a pybatsim 4 is installed.

In pybatsim a process has one scheduler. Here each load runs the code again, a file is one module by whichever name it
is imported, and no file takes a name in `sys.modules`: two folders may have a `common.py` each. Folders that the code
puts on `sys.path` are taken off it by the next load, with their modules.
"""

from __future__ import annotations

import ast
import builtins
import hashlib
import importlib.metadata
import os
import re
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import CodeType, ModuleType
from typing import Any

from batwatt.errors import InputError
from batwatt.files import is_file, is_folder

PREFIX = "batwatt_user_"
"""Begin of the names of modules of users; a digest of the folder above follows."""
_OURS = ("batsim", "batwatt", "pybatsim")
_LOADED = frozenset(
    re.findall(
        r"\w+",
        """abc argparse ast asyncio atexit base64 binascii bisect builtins bz2 calendar codecs collections concurrent
    contextlib contextvars copy copyreg csv dataclasses datetime dis email encodings enum errno fcntl fnmatch functools
    genericpath hashlib heapq importlib inspect io ipaddress itertools json keyword linecache locale logging lzma
    marshal math ntpath opcode operator os pathlib pickle platform posix posixpath queue quopri random re reprlib
    select selectors shutil signal site socket ssl stat string struct subprocess sys tempfile textwrap threading time
    token tokenize traceback types typing urllib uuid warnings weakref zipfile zipimport zlib""",
    )
)
"""Modules of the standard library that pybatsim's launcher has loaded before a scheduler; ours differ by command."""
_ROOT = re.compile(rf"{PREFIX}\w+\.?")


@dataclass(frozen=True)
class _Home:
    """The folder of a scheduler, and the folder above, whose package is `root`."""

    root: str
    folder: Path

    @classmethod
    def of(cls, folder: Path) -> _Home:
        return cls(f"{PREFIX}{hashlib.sha256(str(folder.parent).encode()).hexdigest()[:16]}", folder)

    @property
    def package(self) -> str:
        """Name of the package of the folder."""
        return f"{self.root}.{self.folder.name.replace('.', '_') or 'root'}"

    @property
    def places(self) -> Iterator[tuple[str, Path]]:
        """Yield (package, folder) of the folder above and of the folder; not of a folder of installed packages."""
        for package, place in ((self.root, self.folder.parent), (self.package, self.folder)):
            if not _is_library(place):
                yield package, place

    def package_of(self, name: str, parts: Sequence[str] = ()) -> str | None:
        """Return the package in which an absolute import finds a module of the user; None: the module is no user's.

        `parts`: the names that `from ... import` takes from the module.
        """
        top, _, rest = name.partition(".")
        if top in _OURS or top in _LOADED or top in sys.builtin_module_names:
            return None
        if (key := (self, name, *parts)) not in _owners:
            _owners[key] = self._search(top, rest, parts)
        return _owners[key]

    def _search(self, top: str, rest: str, parts: Sequence[str]) -> str | None:
        namespace = None
        for package, place in self.places:
            spec = PathFinder.find_spec(top, [str(place)])
            if spec is None:
                continue
            if top == "schedulers" and not _has_all(spec, [rest] if rest else [] if spec.origin else parts):
                continue
            if spec.origin is not None or top == "schedulers":
                return package
            namespace = namespace or package
        if top == "schedulers" and (installed := _installed_home()):
            return installed.root
        # a folder without __init__.py is the last that Python takes
        return None if namespace is None or _is_installed(top) else namespace


_homes: dict[str, _Home] = {}
"""Package of a folder -> its home; root -> the home that was loaded last, whose folder its own files search."""
_plugins: dict[Path, ModuleType] = {}
_owners: dict[tuple[Any, ...], str | None] = {}
"""(home, module, parts) -> its package, from one load to the next: an import in a callback runs at every event."""
_added: dict[str, frozenset[str]] = {}
"""Folder that the code of the last load has put on `sys.path` -> the modules that were there before."""


def _is_library(folder: Path) -> bool:
    return next(folder.glob("*.dist-info"), None) is not None


def _has_all(spec: ModuleSpec, names: Sequence[str]) -> bool:
    """Return whether a module has all submodules of some names."""
    places = spec.submodule_search_locations
    return all(PathFinder.find_spec(name.partition(".")[0], places) for name in names)


def _is_installed(name: str) -> bool:
    # packages that are installed editable have finders of their own
    finders = (finder for finder in sys.meta_path if not isinstance(finder, _Finder))
    return name in sys.modules or any(finder.find_spec(name, None) for finder in finders)


def pybatsim_files() -> dict[str, Path]:
    """Return the files in the folder of schedulers of the installed pybatsim, by name."""
    try:
        files = importlib.metadata.files("pybatsim") or ()
    except importlib.metadata.PackageNotFoundError:
        return {}
    return {
        file.stem: Path(str(file.locate()))
        for file in files
        if len(file.parts) == 2 and file.parts[0] == "schedulers" and file.suffix == ".py" and file.stem != "__init__"
    }


@cache
def _installed_home() -> _Home | None:
    """Return the folder of schedulers of pybatsim: by name, Python may find another one."""
    path = next(iter(pybatsim_files().values()), None)
    if path is None:
        return None
    home = _Home.of(_absolute(path).parent)
    _homes[home.root] = _homes[home.package] = home
    return home


def _absolute(path: Path) -> Path:
    # a link counts where it lies, as in pybatsim
    return Path(os.path.abspath(path))  # noqa: PTH100


class _UserFile(SourceFileLoader):
    """Loader of a file of a user, whose imports are those of its home; it writes no compiled file."""

    def get_code(self, fullname: str) -> CodeType:
        return self.source_to_code(self.get_data(self.path), self.path)

    def exec_module(self, module: ModuleType) -> None:
        root, *package = module.__name__.split(".")[:2]

        def owner_of(name: str, parts: Sequence[str] = ()) -> str | None:
            home = _homes.get(".".join([root, *package])) or _homes[root]
            return home.package_of(name, tuple(parts))

        def import_module(name: str, package: str | None = None) -> ModuleType:
            owner = None if name.startswith(".") else owner_of(name)
            return importlib.import_module(name if owner is None else f"{owner}.{name}", package)

        def view_of(module: ModuleType) -> ModuleType:
            # nothing is replaced for the code of others
            view = ModuleType(module.__name__, module.__doc__)
            view.__dict__.update(vars(module), import_module=import_module)
            return view

        def import_(
            name: str,
            globals: Mapping[str, Any] | None = None,
            locals: Mapping[str, Any] | None = None,
            fromlist: Sequence[str] | None = (),
            level: int = 0,
        ) -> ModuleType:
            owner = None if level else owner_of(name, fromlist or ())
            if owner is None:
                module = builtins.__import__(name, globals, locals, fromlist or (), level)
                return view_of(module) if module is importlib else module
            module = builtins.__import__(f"{owner}.{name}", globals, locals, fromlist or (), 0)
            return module if fromlist else sys.modules[f"{owner}.{name.partition('.')[0]}"]

        module.__dict__["__builtins__"] = {**vars(builtins), "__import__": import_}
        super().exec_module(module)


class _Same(Loader):
    """Loader of a module under a second name."""

    def __init__(self, module: ModuleType) -> None:
        self._module, self._spec = module, module.__spec__

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        return self._module

    def exec_module(self, module: ModuleType) -> None:
        # the import system has set that of the second name
        module.__spec__ = self._spec


class _Finder(MetaPathFinder):
    """Finder of the modules of users, and of pybatsim 4's names for those of pybatsim 3."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        top, _, rest = fullname.partition(".")
        if top == "pybatsim":
            return _second_name(fullname, rest)
        home = _homes.get(top)
        if home is None:
            return None
        if not rest:
            return _package_spec(top, home.folder.parent)
        if "." in (own := _homes.get(fullname, home)).folder.name and own.package == fullname:
            return _folder_spec(own)
        spec = PathFinder.find_spec(fullname, path)
        if spec is None or not isinstance(spec.loader, SourceFileLoader):
            return spec
        plugin = _plugins.get(Path(spec.loader.path))
        spec.loader = _UserFile(fullname, spec.loader.path) if plugin is None else _Same(plugin)
        return spec


def _second_name(fullname: str, rest: str) -> ModuleSpec | None:
    if not rest:
        return None if PathFinder.find_spec(fullname) else _package_spec(fullname)
    top = rest.partition(".")[0]
    if top == "schedulers" and (home := _installed_home()):
        rest = f"{home.root}.{rest}"
    elif top != "batsim":
        return None
    module = importlib.import_module(rest)
    return ModuleSpec(fullname, _Same(module), is_package=hasattr(module, "__path__"))


def _folder_spec(home: _Home) -> ModuleSpec | None:
    """Return the package of a folder whose name has a dot, which Python does not find."""
    init = home.folder / "__init__.py"
    if not is_file(init):
        return _package_spec(home.package, home.folder)
    return spec_from_file_location(home.package, init, loader=_UserFile(home.package, str(init)))


def _package_spec(name: str, *folders: Path) -> ModuleSpec:
    spec = ModuleSpec(name, None, is_package=True)
    spec.submodule_search_locations = [str(folder) for folder in folders]
    return spec


# behind the finder of Python, `pybatsim.batsim` would be a second copy of `batsim`
sys.meta_path.insert(0, _Finder())


def load(path: Path) -> ModuleType:
    """Run the code of a .py file, or of a folder with an `__init__.py`, and return its module. Raises InputError.

    Errors of the code are raised as they are.
    """
    path = code_file(path)
    is_package = path.name == "__init__.py"
    home = _Home.of(path.parent)
    for root in {home.root, *([installed.root] if (installed := _installed_home()) else [])}:
        _drop(root)
    _homes[home.root] = _homes[home.package] = home
    _owners.clear()
    _take_off()
    importlib.invalidate_caches()
    entries, modules = set(sys.path), frozenset(sys.modules)
    try:
        if is_package:
            return _run(home.package, path, home.folder)
        try:
            if is_file(init := home.folder / "__init__.py"):
                _run(home.package, init, home.folder)
        except ImportError:
            _drop(home.root)
        if home.package not in sys.modules:
            sys.modules[home.package] = module_from_spec(_package_spec(home.package, home.folder))
        name = f"{home.package}.{path.stem.replace('.', '_')}"
        return sys.modules.get(name) or _run(name, path)
    except BaseException:
        _drop(home.root)
        raise
    finally:
        _added.update((entry, modules) for entry in sys.path if entry not in entries)


def _take_off() -> None:
    """Take the folders that the last load put on `sys.path` off it, with the modules that they brought."""
    for entry, before in _added.items():
        if entry in sys.path:
            sys.path.remove(entry)
        # a library of compiled code cannot be loaded twice
        if _is_library(folder := _absolute(Path(entry))):
            continue
        tops = {name for name in sys.modules if name not in before and name not in _OURS and "." not in name}
        brought = {name for name in tops if _place_of(sys.modules[name]) == folder}
        for name in [name for name in sys.modules if name.partition(".")[0] in brought]:
            del sys.modules[name]
    _added.clear()


def _place_of(module: ModuleType | None) -> Path | None:
    """Return the folder in which Python finds a module."""
    places = list(getattr(module, "__path__", ())) or [getattr(module, "__file__", None)]
    return _absolute(Path(places[0])).parent if isinstance(places[0], str) else None


def code_file(path: Path) -> Path:
    """Return the absolute path of a .py file, of a folder that of its `__init__.py`. Raises InputError."""
    path = _absolute(path)
    if is_folder(path):
        init = path / "__init__.py"
        if not is_file(init) and is_file(named := Path(f"{path}.py")):
            return named
        if not is_file(init):
            raise InputError(path, "is a folder without an __init__.py", "give one of its files, or add one")
        return init
    if not is_file(path) and is_file(named := path.with_name(f"{path.name}.py")):
        return named
    if not is_file(path):
        raise InputError(
            path, "no such file or folder", "give the path of a .py file or of a folder; names: `batwatt policies`"
        )
    if path.suffix != ".py":
        raise InputError(path, "is not a .py file", "give the path of a scheduler in Python")
    return path


def _drop(root: str) -> None:
    """Remove the modules of a root from those that are loaded, without plugins, whose parts are registered."""
    for name in [name for name in sys.modules if name == root or name.startswith(f"{root}.")]:
        if sys.modules[name] not in _plugins.values():
            del sys.modules[name]


def _run(name: str, path: Path, *folders: Path) -> ModuleType:
    plugin = _plugins.get(path)
    spec = ModuleSpec(name, _UserFile(name, str(path)), origin=str(path), is_package=bool(folders))
    spec.has_location = True
    spec.submodule_search_locations = [str(folder) for folder in folders] or None
    module = sys.modules[name] = plugin or module_from_spec(spec)
    if plugin is None:
        assert spec.loader is not None
        spec.loader.exec_module(module)
    # a module may replace itself
    return sys.modules[name]


def load_plugin(path: Path) -> ModuleType:
    """Return the module of a file or folder that registers parts, which runs once in this process. Raises InputError.

    Errors of the code are raised as they are.
    """
    path = code_file(path)
    if path not in _plugins:
        _plugins[path] = load(path)
        # it stays
        _added.clear()
    return _plugins[path]


def loaded_plugins() -> tuple[Path, ...]:
    """Return the files that `load_plugin` has run in this process."""
    return tuple(_plugins)


def readable(text: str) -> str:
    """Return a text with the names of users' modules as users import them."""
    return _ROOT.sub("", text)


def files_beside(path: Path) -> list[Path]:
    """Return the files that a scheduler's file or folder imports from its folder and the one above, sorted.

    They are those of import statements anywhere in the code, which does not run. Raises InputError.
    """
    path = code_file(path)
    home = _Home.of(path.parent)
    files, left = {path}, [path]
    while left:
        file = left.pop()
        for other in _imported(file, home):
            if other not in files:
                files.add(other)
                left.append(other)
    return sorted(files - {path})


def _imported(file: Path, home: _Home) -> Iterator[Path]:
    if is_file(init := file.parent / "__init__.py"):
        yield init
    for node in ast.walk(_tree(file)):
        names: Iterable[str] = ()
        above = [place for _, place in home.places]
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            names = [f"{node.module or ''}.{alias.name}".lstrip(".") for alias in node.names]
            above = [file.parents[node.level - 1]] if 0 < node.level <= len(file.parents) else above
        for name in names:
            for place in above:
                yield from _files_of(place, name)


def _files_of(place: Path, name: str) -> Iterator[Path]:
    for part in name.split("."):
        if is_file(init := place / part / "__init__.py"):
            yield init
        elif is_file(file := place / f"{part}.py"):
            yield file
            return
        place /= part


def _tree(path: Path) -> ast.Module:
    try:
        return ast.parse(path.read_bytes())
    except (OSError, SyntaxError, ValueError, RecursionError):
        # the error is told where the file is run
        return ast.Module([], [])


def defines(path: Path, name: str) -> bool:
    """Return whether a file defines a class or a function of a name, or imports it; its code does not run."""
    for node in _tree(path).body:
        if isinstance(node, ast.ClassDef | ast.FunctionDef) and node.name == name:
            return True
        if isinstance(node, ast.Import | ast.ImportFrom) and name in {one.asname or one.name for one in node.names}:
            return True
    return False
