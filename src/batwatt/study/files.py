"""Files with the digests of their content, and values of the axes of a campaign."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from batwatt.files import digest_of, write_text


@dataclass(frozen=True)
class InputFile:
    """A file: its name in the table (the stem), its absolute path, its path as declared, and its digest.

    `text` is the content of a generated file, which is written when it is needed.
    """

    name: str
    path: Path
    declared: str
    sha256: str
    text: str | None = None

    def provide(self) -> None:
        """Write a generated file that is missing or differs. Raises OSError and InputError."""
        if self.text is not None and digest_of(self.path) != self.sha256:
            write_text(self.path, self.text)


@dataclass(frozen=True)
class Choice:
    """One value of an axis: its name in the table, its digest, and its part of the inputs of a run.

    `inputs` are fields of `batwatt.run.spec.RunSpec`, `files` those that a run needs for them. `options` are
    for schedulers that have them, `platforms` the names of the platforms of a capacity, None: all. `reference` has the
    lengths of the jobs of a workload. `declared` is its text in errors.
    """

    name: str
    sha256: str
    declared: str
    inputs: Mapping[str, Any]
    files: tuple[InputFile, ...] = ()
    options: tuple[tuple[str, int], ...] = ()
    platforms: tuple[str, ...] | None = None
    reference: InputFile | None = None

    @classmethod
    def of(cls, file: InputFile, inputs: Mapping[str, Any], **more: Any) -> Choice:
        """Return the value of an axis that is one file."""
        return cls(file.name, file.sha256, file.declared, inputs, (file,), **more)
