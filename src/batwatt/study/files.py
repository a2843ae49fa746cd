"""Files known by their content."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path

from batwatt.files import refuse_device, write_text


@dataclass(frozen=True)
class InputFile:
    """A file: the name it has in the table (its stem), its absolute path, the path as declared, and its digest.

    `text` is the content of a generated file, which is written when it is needed.
    """

    name: str
    path: Path
    shown: str
    sha256: str
    text: str | None = None

    def provide(self) -> None:
        """Write a generated file that is not there, or is another. Raises OSError and InputError."""
        if self.text is not None and digest_of(self.path) != self.sha256:
            write_text(self.path, self.text)


def digest_of(path: Path) -> str | None:
    """SHA-256 of a file's content; None if it cannot be read. Raises InputError for a device."""
    refuse_device(path)
    try:
        return hashlib.sha256(path.read_bytes()).hexdigest()
    except (OSError, ValueError):
        return None
