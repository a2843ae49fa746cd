"""End of a process together with its parent, however the parent ends."""

from __future__ import annotations

import ctypes
import os
import signal
import sys
import threading
import time

LOOK_S = 0.5
"""Period in s in which a process checks its parent, where the kernel does not report the end."""
_PR_SET_PDEATHSIG = 1


def end_with(parent: int) -> None:
    """End this process as soon as `parent`, which started it, ends; to be called at the begin of this process.

    On Linux the kernel does so, when the thread of the parent ends that started this process.
    """
    if not _killed_by_kernel():
        threading.Thread(target=_watch, args=(parent,), daemon=True).start()
    if os.getppid() != parent:
        # the parent has ended already
        os._exit(1)


def _killed_by_kernel() -> bool:
    if sys.platform != "linux":
        return False
    try:
        result: int = ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    except (OSError, AttributeError):
        return False
    return result == 0


def _watch(parent: int) -> None:
    while os.getppid() == parent:
        time.sleep(LOOK_S)
    os._exit(1)
