"""Waiting for what another process does."""

from __future__ import annotations

import os
import time
from collections.abc import Callable

PATIENCE = 3.0 if os.environ.get("CI") else 1.0


def wait_for(condition: Callable[[], object], limit_s: float = 60.0, what: str = "") -> None:
    """Wait for a condition; AssertionError after a limit in s, three times as long on a machine of CI."""
    end_s = time.monotonic() + limit_s * PATIENCE
    while not condition():
        assert time.monotonic() < end_s, f"not within {limit_s:g} s: {what}"
        time.sleep(0.02)
