"""Input files that are none: devices never end."""

from __future__ import annotations

import os
import stat
from pathlib import Path

from batwatt.errors import InputError


def refuse_device(path: Path | str) -> None:
    """InputError if it is a device, such as /dev/zero, which would be read for ever; /dev/null and pipes will do."""
    try:
        found = Path(path).stat()
    except (OSError, ValueError):
        return  # who reads it tells why it cannot be read
    if stat.S_ISCHR(found.st_mode) and found.st_rdev == Path(os.devnull).stat().st_rdev:
        return
    if stat.S_ISCHR(found.st_mode) or stat.S_ISBLK(found.st_mode):
        raise InputError(path, "is a device, not a file", "give a file or a pipe")
