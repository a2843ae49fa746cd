"""What must be fast: compiled with the installation (`setup.py`), else by numba at the first call, else not at all.

All forms come of one source and give the same numbers, bit for bit. numba keeps what it makes on the disk, and makes it
anew when a source changes.
"""

from __future__ import annotations

import hashlib
import logging
import os
from functools import cache
from pathlib import Path
from typing import Any

from batwatt.errors import to_install

SOURCES = ("*_kernel.py", "target_tables.py")
"""The modules with what is compiled."""
FORM = "BATWATT_KERNELS"
"""The environment variable that asks for a form, `ahead`, `numba` or `python`; else it is the first that is there."""

# nothing there makes an array, so references need not be counted: that took most of the time
_HOW: dict[str, Any] = {"_nrt": False, "error_model": "numpy"}


def sources_digest(folder: Path) -> str:
    """SHA-256 of the sources of all that is compiled in a folder."""
    files = sorted(file for pattern in SOURCES for file in folder.glob(pattern))
    return hashlib.sha256(b"".join(file.read_bytes() for file in files)).hexdigest()


def inlined(function: Any) -> Any:
    """Compile what entry points call."""
    njit = None if _ahead(function) else _njit()
    return function if njit is None else njit(forceinline=True, **_HOW)(function)


def compiled(function: Any) -> Any:
    """Compile an entry point; what numba makes is kept on the disk where there is a place for it."""
    if ahead := _ahead_entry(function):
        return ahead
    njit = _njit()
    if njit is None:
        return function
    try:
        found = njit(cache=True, **_HOW)(function)
        # numba looks whether the entry point's own file has changed; what is compiled into it lies in others
        found._cache._cache_file._source_stamp = sources_digest(Path(function.__code__.co_filename).parent)
    except (RuntimeError, AttributeError):  # neither next to the module nor at home, or another numba
        return njit(**_HOW)(function)
    return found


def ahead_only(function: Any) -> Any:
    """Compile an entry point with the installation, or not at all: numba would take longer than it saves."""
    return _ahead_entry(function) or function


def _ahead(function: Any) -> Any:
    """The module that was compiled with the installation, of the sources that are there; None without."""
    return _ahead_of(function.__module__.rpartition(".")[0], Path(function.__code__.co_filename).parent)


def _ahead_entry(function: Any) -> Any:
    ahead = _ahead(function)
    return ahead and getattr(ahead, f"{function.__module__.rpartition('.')[2]}_{function.__name__}")


@cache
def _ahead_of(package: str, folder: Path) -> Any:
    if os.environ.get(FORM, "ahead") != "ahead":
        return None
    try:
        from batwatt import _kernels
    except ImportError:
        return None
    return _kernels if _kernels.DIGESTS.get(package) == sources_digest(folder) else None


@cache
def _njit() -> Any:
    if os.environ.get(FORM) != "python":
        try:
            from numba import njit
        except ImportError:
            pass
        else:
            return njit
    logging.getLogger(__name__).warning(
        "planners are not compiled, and slow: %s, or install it again where there is a C compiler", to_install("jit")
    )
    return None
