"""Compiling what must be fast, with numba: the result is kept on the disk, and made anew when a source changes."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

from numba import njit

SOURCES = ("*_kernel.py", "target_tables.py")
"""The modules with what is compiled."""

# nothing there makes an array, so references need not be counted: that took most of the time
_HOW: dict[str, Any] = {"_nrt": False, "error_model": "numpy"}
inlined: Any = njit(forceinline=True, **_HOW)


def sources_digest(folder: Path) -> str:
    """SHA-256 of the sources of all that is compiled in a folder."""
    files = sorted(file for pattern in SOURCES for file in folder.glob(pattern))
    return hashlib.sha256(b"".join(file.read_bytes() for file in files)).hexdigest()


def compiled(function: Any) -> Any:
    """Compile an entry point at its first call; the result is kept on the disk where there is a place for it."""
    try:
        found = njit(cache=True, **_HOW)(function)
        # numba looks whether the entry point's own file has changed; what is compiled into it lies in others
        found._cache._cache_file._source_stamp = sources_digest(Path(function.__code__.co_filename).parent)
    except (RuntimeError, AttributeError):  # neither next to the module nor at home, or another numba
        return njit(**_HOW)(function)
    return found
