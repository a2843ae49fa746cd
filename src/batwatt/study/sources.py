"""The input files of a campaign, each with the digest of its content, also those that it generates."""

from __future__ import annotations

import glob
import hashlib
import os
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from batwatt.errors import InputError, errors_of
from batwatt.files import digest_of, is_file, is_folder
from batwatt.inputs.batch_logs import USUAL, LogOptions
from batwatt.inputs.google_like import GoogleLike, google_like, to_text
from batwatt.inputs.load import is_trace
from batwatt.inputs.platform_files import MASTER_HOST, HostChoice
from batwatt.model.platform import MachineSpec
from batwatt.model.signal import Window
from batwatt.run.loader import files_beside
from batwatt.study.files import Choice, InputFile
from batwatt.study.generated import SEED, generated_capacities
from batwatt.study.spec import Capacities, Platforms, Workloads, canonical


class MissingFileError(InputError):
    """A declared file is missing, or no file matches a pattern; other studies can run."""

    def __init__(self, where: object, problem: str, hint: str) -> None:
        super().__init__(where, problem, hint)
        self.parts = (where, problem, hint)


class Sources:
    """Input files relative to the folder `base`; each is read once."""

    def __init__(self, base: Path, generated: Path) -> None:
        self._base = base
        self._generated = generated
        self._files: dict[Path, InputFile] = {}
        self._made: dict[tuple[GoogleLike, int], InputFile] = {}
        self._content: dict[str, str] = {}

    def file(self, name: str, where: str, follow: bool = True) -> InputFile:
        """Return one file, by `follow` that to which a link leads. Raises InputError."""
        path = Path(self._base, name)
        path = path.resolve() if follow and is_file(path) else Path(os.path.abspath(path))  # noqa: PTH100
        if path not in self._files:
            sha256 = digest_of(path)
            if sha256 is None:
                reason = "cannot be read" if is_file(path) or is_folder(path) else "is not there"
                readme = path.with_name("README.md")
                hint = f"see {readme}" if is_file(readme) else "paths are relative to the YAML file"
                raise MissingFileError(where, f"the file {name!r} {reason} ({path})", hint)
            self._files[path] = InputFile(path.stem, path, name, sha256)
        return self._files[path]

    def scheduler(self, name: str, where: str) -> list[InputFile]:
        """Return the file of a scheduler, of a folder its `__init__.py`, and those that it imports beside it.

        Raises InputError.
        """
        path = Path(self._base, name)
        if not is_file(path):
            named = not is_file(path / "__init__.py") and is_file(f"{path}.py")
            name = f"{name.rstrip('/')}.py" if named else str(Path(name, "__init__.py")) if is_folder(path) else name
        # a scheduler's link counts where it lies: its name, and the files beside it
        file = self.file(name, where, follow=False)
        return [file, *(self.file(str(path), where, follow=False) for path in files_beside(file.path))]

    def files(self, patterns: Sequence[str], where: str) -> list[InputFile]:
        """Return the files of paths and globs (each sorted), in the order of the patterns. Raises InputError."""
        files: list[InputFile] = []
        for pattern in patterns:
            if glob.has_magic(pattern):
                # pathlib's glob takes no absolute pattern and no `..` in it
                names = sorted(glob.glob(pattern, root_dir=self._base, recursive=True))  # noqa: PTH207
                if not names:
                    hint = f"paths are relative to {self._base}"
                    raise MissingFileError(where, f"no file matches {pattern!r}", hint)
            else:
                names = [pattern]
            files += [self.file(name, where) for name in names]
        _distinct(files, where)
        return files

    def platforms(self, declared: Sequence[Platforms], where: str) -> list[Choice]:
        """Return platform files and machines in their order. Raises InputError."""
        choices: list[Choice] = []
        for number, entry in enumerate(declared):
            if entry.files:
                hosts = HostChoice(entry.master_host or MASTER_HOST, entry.mmax)
                files = self.files([entry.files], where)
                choices += [Choice.of(file, {"platform": file.path, "hosts": hosts}) for file in files]
            else:
                machines = _made(f"{where}[{number}]", MachineSpec, machines=entry.machines, cores=entry.cores)
                name = f"{machines.machines}x{machines.cores}"
                sha256 = hashlib.sha256(canonical(asdict(machines)).encode()).hexdigest()
                choices.append(Choice(name, sha256, name, {"platform": machines}))
        _distinct(choices, where)
        return choices

    def workloads(self, declared: Sequence[Workloads], where: str) -> list[Choice]:
        """Return workload files, traces and generated workloads in their order. Raises InputError."""
        choices: list[Choice] = []
        for number, entry in enumerate(declared):
            place = f"{where}[{number}]"
            choices += self._files_of(entry, place) if entry.google_like is None else self._google_like(entry, place)
        _distinct(choices, where)
        return choices

    def capacities(self, declared: Sequence[Capacities], where: str) -> list[Choice]:
        """Return files of capacities and capacities of texts in their order. Raises InputError."""
        choices: list[Choice] = []
        for number, entry in enumerate(declared):
            place = f"{where}[{number}]"
            own = tuple(entry.platforms) if entry.platforms else None
            if entry.files:
                seeds: Sequence[int | None] = entry.seeds or [None]
                for seed in seeds:
                    files = self.files([entry.files.replace("{seed}", str(seed))], place)
                    # a scheduler that draws numbers gets the seed of its capacity
                    options = () if seed is None else ((SEED, seed),)
                    choices += [
                        Choice.of(file, {"capacity": file.path}, options=options, platforms=own) for file in files
                    ]
                continue
            for spec in generated_capacities(entry, place, self._base, self.file):
                # two may be equal, as with a step of 0.05, which is a quarter of the range of 0.2
                if (spec.name, spec.sha256, own) not in ((one.name, one.sha256, one.platforms) for one in choices):
                    choices.append(spec)
        _distinct(choices, where)
        return choices

    def _files_of(self, entry: Workloads, where: str) -> list[Choice]:
        files = self.files([entry.files or entry.trace or ""], where)
        for file in files:
            if is_trace(file.path) != (entry.trace is not None):
                problem = f"the file {file.declared!r} is {'no' if entry.trace else 'a'} trace of jobs by its name"
                hint = "declare workloads as a path, traces (.txt, .csv, .swf) as `trace: PATH`"
                raise InputError(where, problem, hint)
        reference = self.file(entry.reference, where) if entry.reference else None
        log = _made(where, LogOptions, begin=entry.begin, tz=entry.tz or USUAL.tz)
        inputs = {"window": _window(entry), "length_unit": entry.length_unit or "s", "log": log}
        inputs["ignore_communication"] = bool(entry.ignore_communication)
        return [Choice.of(file, inputs | {"workloads": (file.path,)}, reference=reference) for file in files]

    def _google_like(self, entry: Workloads, where: str) -> list[Choice]:
        """Return generated workloads, one for each seed. Raises InputError."""
        params = _made(where, GoogleLike, **(entry.google_like or {}))
        inputs = {"window": None, "log": USUAL}
        files = [self._generated_file(params, seed, entry.name or "google-like", where) for seed in entry.seeds or ()]
        return [Choice.of(file, inputs | {"workloads": (file.path,)}) for file in files]

    def _generated_file(self, params: GoogleLike, seed: int, stem: str, where: str) -> InputFile:
        """Return the file of these parameters and this seed, which is generated once."""
        name = f"{stem}-{seed}"
        input_file = self._made.get((params, seed))
        if input_file is None or input_file.name != name:
            with errors_of(where):
                text = to_text(google_like(params, seed))
            sha256 = hashlib.sha256(text.encode()).hexdigest()
            file = f"{name}.json"
            if self._content.setdefault(file, sha256) != sha256:
                # another study has other parameters under this name
                file = f"{name}-{sha256[:12]}.json"
            path = (self._generated / file).resolve()
            input_file = self._made[params, seed] = InputFile(name, path, file, sha256, text)
        return input_file


def _window(entry: Workloads) -> Window | None:
    return Window(*entry.window) if entry.window else None


def _made(where: str, kind: type[Any], /, **parameters: Any) -> Any:
    """Return the checked parameters of a generated input. Raises InputError."""
    with errors_of(where):
        return kind(**parameters)


def _distinct(files: Sequence[InputFile | Choice], where: str) -> None:
    """Raise InputError if two files have one name in the table."""
    first: dict[str, InputFile | Choice] = {}
    for file in files:
        other = first.setdefault(file.name, file)
        if other != file:
            names = " and ".join(repr(one.declared) for one in (other, file))
            problem = f"{names} would both be called {file.name!r} in the table"
            raise InputError(where, problem, "rename one or list it once")
    if len(first) < len(files):
        raise InputError(where, "a file appears twice", "list it once")
