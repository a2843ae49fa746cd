"""Writing files whole or not at all."""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

from batwatt.errors import InputError


@contextmanager
def whole_file(path: Path | str, mode: str = "w") -> Iterator[IO[str]]:
    """Open a file that appears under `path` only when the block ends well; makes missing folders.

    Text mode by default (UTF-8, `\\n`), `mode="wb"` for bytes. Raises InputError if the place cannot be written.
    """
    path = Path(path)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, temporary = tempfile.mkstemp(prefix=f".{path.name}.", suffix=".part", dir=path.parent)
    except OSError as error:
        raise InputError(path, f"cannot be written ({error.strerror})", "choose another place for the output") from None
    try:
        text = {} if "b" in mode else {"encoding": "utf-8", "newline": "\n"}
        with os.fdopen(handle, mode, **text) as stream:  # type: ignore[call-overload]
            yield stream
        Path(temporary).chmod(0o666 & ~_umask())
        Path(temporary).replace(path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise


def write_json(path: Path | str, content: Mapping[str, Any], *, allow_nan: bool = False) -> None:
    """Write an object as JSON, whole or not at all. Raises InputError."""
    with whole_file(path) as out:
        json.dump(content, out, indent=2, allow_nan=allow_nan)
        out.write("\n")


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
