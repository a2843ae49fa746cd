"""The files that a campaign reads, each known by its content, and the workloads that it generates."""

from __future__ import annotations

import glob
import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from batwatt.campaign.spec import Workloads
from batwatt.errors import InputError
from batwatt.files import whole_file
from batwatt.inputs.google_like import GoogleLike, google_like, to_text


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
            with whole_file(self.path) as out:
                out.write(self.text)


def digest_of(path: Path) -> str | None:
    """SHA-256 of a file's content; None if it cannot be read."""
    try:
        return hashlib.sha256(path.read_bytes()).hexdigest()
    except OSError:
        return None


class Sources:
    """Finds files relative to the folder `base`; each is read once."""

    def __init__(self, base: Path, generated: Path) -> None:
        self._base = base
        self._generated = generated
        self._known: dict[Path, InputFile] = {}

    def file(self, name: str, where: str) -> InputFile:
        """One file. Raises InputError."""
        path = Path(self._base, name).resolve()
        if path not in self._known:
            sha256 = digest_of(path)
            if sha256 is None:
                reason = "cannot be read" if path.exists() else "is not there"
                raise InputError(where, f"the file {name!r} {reason} ({path})", "paths are relative to the YAML file")
            self._known[path] = InputFile(path.stem, path, name, sha256)
        return self._known[path]

    def files(self, patterns: Sequence[str], where: str) -> list[InputFile]:
        """The files of paths and globs (each sorted), in the order of the patterns. Raises InputError."""
        found: list[InputFile] = []
        for pattern in patterns:
            if glob.has_magic(pattern):
                # pathlib's glob takes no absolute pattern and no `..` in it
                names = sorted(glob.glob(pattern, root_dir=self._base, recursive=True))  # noqa: PTH207
                if not names:
                    hint = f"paths are relative to {self._base}"
                    raise InputError(where, f"no file matches {pattern!r}", hint)
            else:
                names = [pattern]
            found += [self.file(name, where) for name in names]
        _distinct(found, where)
        return found

    def workloads(self, declared: Sequence[Workloads], where: str) -> list[InputFile]:
        """Workload files and generated workloads in their order. Raises InputError."""
        found: list[InputFile] = []
        for number, entry in enumerate(declared):
            place = f"{where}[{number}]"
            found += self.files([entry.files], place) if entry.files else self._generate(entry, place)
        _distinct(found, where)
        return found

    def _generate(self, entry: Workloads, where: str) -> list[InputFile]:
        made = []
        for seed in entry.seeds or ():
            name = f"{entry.name or 'google-like'}-{seed}"
            try:
                # types are checked there
                text = to_text(google_like(GoogleLike(**entry.google_like or {}), seed))  # type: ignore[arg-type]
            except InputError as error:
                raise InputError(where, str(error)) from None
            sha256 = hashlib.sha256(text.encode()).hexdigest()
            path = (self._generated / f"{name}.json").resolve()
            made.append(InputFile(name, path, f"{name}.json", sha256, text))
        return made


def _distinct(files: Sequence[InputFile], where: str) -> None:
    """InputError if two files have one name in the table."""
    first: dict[str, InputFile] = {}
    for file in files:
        other = first.setdefault(file.name, file)
        if other is not file:
            problem = f"{other.shown!r} and {file.shown!r} would both be called {file.name!r} in the table"
            raise InputError(where, problem, "rename one or list it once")
    if len(first) < len(files):
        raise InputError(where, "a file is there twice", "list it once")
