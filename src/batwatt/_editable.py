"""Import of the compiled modules of an editable installation; if a source has changed since, Python runs instead."""

from __future__ import annotations

import os
import sys
from importlib.machinery import EXTENSION_SUFFIXES, ModuleSpec
from importlib.util import spec_from_file_location

_ROOT = os.path.dirname(__file__)  # noqa: PTH120 (pathlib takes as long to load as all of this)


class _Compiled:
    """Finder of compiled modules, before the import system finds their sources."""

    def __init__(self, files: dict[str, str]) -> None:
        self._files = files

    def find_spec(self, name: str, path: object = None, target: object = None) -> ModuleSpec | None:
        """Return the compiled module of this name; None for all others."""
        file = self._files.get(name)
        return spec_from_file_location(name, file) if file else None


def take_compiled() -> None:
    """Load compiled modules from now on; all of them, as they need each other, or none (see `setup.py`)."""
    folder = f"{_ROOT}/_compiled/{EXTENSION_SUFFIXES[0].split('.')[1]}"
    if os.environ.get("BATWATT_PURE", "0") not in ("", "0"):
        return
    try:
        with open(f"{folder}/sources", encoding="utf-8") as stream:  # noqa: PTH123
            for line in stream:
                source, changed_ns, size = line.split()
                state = os.stat(f"{_ROOT}/{source}")  # noqa: PTH116
                if (state.st_mtime_ns, state.st_size) != (int(changed_ns), int(size)):
                    return
        names = [name[: -len(".so")] for name in os.listdir(folder) if name.endswith(".so")]  # noqa: PTH208
    except FileNotFoundError:
        return
    sys.meta_path.insert(0, _Compiled({name: f"{folder}/{name}.so" for name in names}))
