"""Compile modules by mypyc in a build, and collect the files of `batwatt init`.

Without a C compiler, or with `BATWATT_PURE=1`, all is Python, which does the same, slower. What an editable
installation compiles lies in COMPILED; `batwatt._editable` takes it from there as long as no source has changed.
"""

from __future__ import annotations

import os
import shutil
import sys
from configparser import ConfigParser
from importlib.machinery import EXTENSION_SUFFIXES
from importlib.util import find_spec
from pathlib import Path
from zipfile import ZipFile

from setuptools import setup
from setuptools.command.build_ext import build_ext
from setuptools.command.build_py import build_py

SRC = Path("src")
ROOT = SRC / "batwatt"
COMPILED = ROOT / "_compiled" / EXTENSION_SUFFIXES[0].split(".")[1]
sys.path.insert(0, str(SRC))

from batwatt.cli.start import PACKED, copy_start  # noqa: E402


def extensions() -> list:
    """The C of the modules that setup.cfg lists; none, and one line, where it cannot be made."""
    builds = {"bdist_wheel", "build_ext", "editable_wheel"} & set(sys.argv)
    if os.environ.get("BATWATT_PURE", "0") not in ("", "0") or not builds:
        return []
    try:
        if find_spec("batsim") is None:
            raise ImportError("without pybatsim mypyc would leave out a base class")
        from mypyc.build import mypycify

        return mypycify(["--config-file=setup.cfg"], opt_level="1", debug_level="0", group_name="batwatt")
    except (ImportError, SystemExit) as error:
        print(f"warning: batwatt is not compiled ({error}): it does the same, slower", file=sys.stderr)
        return []


class Compile(build_ext):
    """Compile all modules, which need each other, or none."""

    def build_extensions(self) -> None:
        """Compile for the numbers of Python on all machines: fuse no product with a sum. Nothing traps."""
        # what an earlier build has left may be of modules that are no longer compiled
        for path in Path(self.build_lib).rglob("*.so"):
            path.unlink()
        for extension in self.extensions:
            if self.compiler.compiler_type != "msvc":
                options = ["-ffp-contract=off", "-fno-trapping-math"]
                extension.extra_compile_args = [*extension.extra_compile_args, *options]
        try:
            super().build_extensions()
        except Exception as error:
            print(f"warning: batwatt is not compiled ({error}): it does the same, slower", file=sys.stderr)
            for extension in self.extensions:
                Path(self.get_ext_fullpath(extension.name)).unlink(missing_ok=True)
            self.extensions = []

    def copy_extensions_to_source(self) -> None:
        """Keep what an editable installation compiled."""
        names = [extension.name for extension in self.extensions]
        keep({name: (Path(self.build_lib) / self.get_ext_filename(name)).read_bytes() for name in names})


def sources() -> list[Path]:
    """Return the modules of the package, sorted; a search of folders does not follow the link to the schedulers."""
    return sorted({*ROOT.rglob("*.py"), *(ROOT / "schedulers").rglob("*.py")})


def check_wheel(path: str) -> None:
    """Check that all modules that setup.cfg lists are compiled. Raises SystemExit with those that are not."""
    settings = ConfigParser()
    settings.read("setup.cfg", encoding="utf-8")
    modules = settings["mypy"]["files"].replace(",", " ").split()
    with ZipFile(path) as wheel:
        names = {name.partition(".")[0] for name in wheel.namelist() if name.endswith(EXTENSION_SUFFIXES[0])}
    missing = [module for module in modules if module.removeprefix("src/").removesuffix(".py") not in names]
    if missing:
        raise SystemExit(f"{path}: not compiled: {', '.join(missing)}")


def keep(modules: dict[str, bytes]) -> None:
    """Write compiled modules by name, and the state of the sources for which they stand."""
    shutil.rmtree(COMPILED, ignore_errors=True)
    COMPILED.mkdir(parents=True)
    for name, content in modules.items():
        (COMPILED / f"{name}.so").write_bytes(content)
    # of all modules: constants of those that are not compiled may be compiled in
    states = {path.relative_to(ROOT).as_posix(): path.stat() for path in sources()}
    lines = [f"{path} {state.st_mtime_ns} {state.st_size}\n" for path, state in states.items()]
    if modules:
        (COMPILED / "sources").write_text("".join(lines))


def take_wheel(path: str) -> None:
    """Keep what a wheel compiled of these sources. Raises SystemExit if one has changed since."""
    suffix = EXTENSION_SUFFIXES[0]
    with ZipFile(path) as wheel:
        files = {name: wheel.read(name) for name in wheel.namelist()}
    for source in sources():
        if files.get(source.relative_to(SRC).as_posix()) != source.read_bytes():
            raise SystemExit(f"{source} has changed since {path} was built")
    keep({name.removesuffix(suffix).replace("/", "."): files[name] for name in files if name.endswith(suffix)})


class Package(build_py):
    """The modules, and the files of `batwatt init`; an editable installation finds them in the repository."""

    def run(self) -> None:
        """Copy all."""
        super().run()
        if not self.editable_mode:
            copy_start(Path(), Path(self.build_lib) / "batwatt" / PACKED)


# for an editable installation, that the same is not compiled twice: python setup.py take_wheel FILE;
# a failure of mypyc is only a warning: python setup.py check_wheel FILE
if sys.argv[1:2] in (["take_wheel"], ["check_wheel"]):
    {"take_wheel": take_wheel, "check_wheel": check_wheel}[sys.argv[1]](sys.argv[2])
    sys.exit()

setup(ext_modules=extensions(), cmdclass={"build_ext": Compile, "build_py": Package})
