"""Measures that the benchmarks share: a case in a process of its own, the least time of several, met targets."""

from __future__ import annotations

import json
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from batwatt.engine import core

GIB = 2**30


def in_child(script: str, case: object, python: str = sys.executable) -> dict[str, Any]:
    """Return the figures that `PYTHON SCRIPT --child CASE` prints as JSON; it runs outside of the sources."""
    command = [python, str(Path(script).resolve()), "--child", json.dumps(case)]
    process = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True, cwd=tempfile.gettempdir())
    figures: dict[str, Any] = json.loads(process.stdout)
    return figures


def least(work: Callable[[], Any], most: int) -> tuple[float, Any]:
    """Repeat work for about a second, 3 to `most` times; return the least time in s, and the last result."""
    times: list[float] = []
    while len(times) < 3 or (sum(times) < 1.0 and len(times) < most):
        began = time.perf_counter()
        result = work()
        times.append(time.perf_counter() - began)
    return min(times), result


def cpu_s_of(command: Sequence[object]) -> float:
    """Return the processor time in s of a command, with the system's. Raises CalledProcessError."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([str(word) for word in command], check=True, stdout=subprocess.DEVNULL)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def peak_bytes() -> int:
    """Return the peak memory of this process."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def form() -> str:
    """Return whether batwatt is compiled here."""
    return "Python" if core.__file__.endswith(".py") else "compiled"


def verdict(targets: Mapping[str, bool]) -> int:
    """Print whether each target is met; return the exit code, 1 if one is missed."""
    for what, met in targets.items():
        print(f"{'met   ' if met else 'MISSED'} {what}")
    return 0 if all(targets.values()) else 1
