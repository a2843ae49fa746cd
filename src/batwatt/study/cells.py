"""The cells of a study: runs with keys made of everything that determines them, and the grid of a campaign."""

from __future__ import annotations

import hashlib
import inspect
import os
import shutil
import sys
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, fields, is_dataclass, replace
from functools import cache
from itertools import product
from pathlib import Path
from types import CodeType, FunctionType
from typing import Any

import numpy as np

from batwatt._version import __version__
from batwatt.errors import InputError, UnknownNameError
from batwatt.files import PACKAGE, digest_of, is_file, is_folder
from batwatt.inputs.spec import Quantity, parse_series
from batwatt.model.platform import Platform
from batwatt.model.timeline import Timeline
from batwatt.model.workload import Workload
from batwatt.run.files import digest_of_input, version_of
from batwatt.run.find_scheduler import is_file_name, is_ours, scheduler_class
from batwatt.run.loader import code_file, files_beside, loaded_plugins, pybatsim_files
from batwatt.run.spec import RunSpec
from batwatt.scheduling.base import Scheduler
from batwatt.scheduling.registry import KINDS, parts_of
from batwatt.study.files import Choice, InputFile
from batwatt.study.generated import within
from batwatt.study.sources import MissingFileError, Sources
from batwatt.study.spec import OPTIMUM, Campaign, EngineOptions, Rule, Study, canonical, label_of

FORMAT = 1
"""Version of the content of a key and of the files of cells."""
SUFFIXES = (".py", ".csv")
"""Suffixes of the files of the package that count: modules and data."""
OptionNames = Mapping[str, Collection[str] | None]
"""SHA-256 of the file of a scheduler -> names of its options; None for a scheduler that is not ours."""
NOT_FIGURES = ("patience_s", "plugins", "prefix", "scheduler")
"""Fields of a run that its figures do not depend on, or that `Contents` adds by their code."""
SERIES_OPTIONS: Mapping[str, Quantity] = {
    "envelope": "power",
    "capacity": "machines",
    "signal": "carbon",
    "carbon": "carbon",
    "price": "price",
}
"""Options of schedulers that may be texts of series, which name files."""
OURS = ("batsim", "batwatt", "pybatsim", *sys.stdlib_module_names)
"""Packages whose code is that of a version, or in the digest of the code."""
PACKAGES, PACKAGES_OF_OPTIMUM = ("pybatsim",), ("pybatsim", "ortools", "highspy")


@dataclass(frozen=True)
class Cell:
    """One row of the table: one run, and its place in the grid.

    `options` are the declared ones, without those of a generated capacity, and without the seed. `identity` has
    everything that determines the figures of the run, files by their content; `files` are those that it reads.
    `option_names` are those of its scheduler, None for one that is not ours.
    """

    study: str
    label: str
    platform: Choice
    workload: Choice
    envelope: Choice | None
    capacity: Choice | None
    scheduler: str
    options: Mapping[str, Any]
    seed: int | None
    spec: RunSpec
    identity: Mapping[str, Any]
    files: tuple[InputFile, ...]
    option_names: Collection[str] | None = None
    keep: bool = False
    key: str = ""

    @property
    def axes(self) -> dict[str, Any]:
        """Columns of the table that a rule may name besides options."""
        choices = {name: getattr(self, name) for name in ("platform", "workload", "envelope", "capacity")}
        names = {name: choice.name if choice else None for name, choice in choices.items()}
        return {"label": self.label, **names, "engine": self.spec.engine, "seed": self.seed}


def code_digest(optimum: bool = False) -> str:
    """Return the SHA-256 of the version, the installed sources and the packages that a run, or `optimum`, may use."""
    return _code_digest(optimum, loaded_plugins())


@cache
def _code_digest(optimum: bool, plugins: tuple[Path, ...]) -> str:
    sources = {file.relative_to(PACKAGE).as_posix(): file for file in PACKAGE.rglob("*") if file.suffix in SUFFIXES}
    for plugin in plugins:
        above = plugin.parents[1]
        sources.update((f"plugin {file.relative_to(above)}", file) for file in (plugin, *files_beside(plugin)))
    parts = {name: hashlib.sha256(path.read_bytes()).hexdigest() for name, path in sources.items()}
    versions = {name: version_of(name) for name in (PACKAGES_OF_OPTIMUM if optimum else PACKAGES)}
    return hashlib.sha256(canonical([__version__, parts, versions]).encode()).hexdigest()


@cache
def _digest_of_executable(name: str) -> str:
    path = shutil.which(name)
    if path is None:
        raise InputError("batsim", f"{name!r} is not an executable on PATH", "install Batsim 4.x or give its path")
    return hashlib.sha256(Path(path).read_bytes()).hexdigest()


class Contents:
    """Digests of runs by the content of everything that determines their figures.

    Inputs that runs share are read once. `files` maps the paths of files that runs read to their SHA-256.
    """

    def __init__(self) -> None:
        self.files: dict[str, str] = {}
        # with the objects, so that no other one gets the same id
        self._read: dict[int, tuple[Any, str]] = {}

    def digest(self, spec: RunSpec) -> str | None:
        """Return the SHA-256 of a run; None if a part of it has no content, such as a class of a notebook.

        The code of batwatt and of plugins is not part of it (`code_digest`).
        """
        try:
            names = [entry.name for entry in fields(spec) if entry.name not in NOT_FIGURES]
            parts: dict[str, Any] = {name: self._content(getattr(spec, name), name) for name in names}
            parts["scheduler"] = self._scheduler(spec.scheduler)
            words = set(_words(spec.options))
            named = (part for kind in KINDS for name, part in parts_of(kind) if name in words)
            parts["parts"] = [self._code_of(part) for part in named]
            if spec.engine == "batsim":
                parts["batsim"] = _digest_of_executable(spec.batsim)
        except InputError:
            # also of a file that is missing, which the run reports
            return None
        return hashlib.sha256(canonical(parts).encode()).hexdigest()

    def _content(self, value: Any, name: str = "") -> Any:
        """Return a value as JSON, files and objects by their digests. Raises InputError."""
        if value is None or isinstance(value, bool | int):
            return value
        if isinstance(value, float):
            # JSON has no NaN
            return repr(value)
        if isinstance(value, np.generic):
            return self._content(value.item())
        if isinstance(value, str):
            return self._text(value, name)
        if isinstance(value, Path):
            return self._file(value)
        if isinstance(value, Workload | Platform | Timeline):
            return self._input(value)
        if is_dataclass(value) and not isinstance(value, type):
            values = {entry.name: self._content(getattr(value, entry.name)) for entry in fields(value)}
            return [type(value).__name__, values]
        if isinstance(value, Mapping):
            return {str(key): self._content(one, str(key)) for key, one in value.items()}
        if isinstance(value, list | tuple | range):
            return [self._content(one, name) for one in value]
        raise _unknown(type(value).__name__)

    def _text(self, text: str, name: str) -> Any:
        if name in SERIES_OPTIONS:
            try:
                series = parse_series(SERIES_OPTIONS[name], text)
            except InputError:
                # the name of a source, or an error of the run
                return text
            return self._content(series)
        return [text, self._file(Path(text))] if is_file(text) else text

    def _file(self, path: Path) -> str | None:
        """Return the digest of a file; None if it is missing. Raises InputError for a folder."""
        if is_folder(path):
            raise _unknown(path)
        full = str(path.absolute())
        if full not in self.files and (sha256 := digest_of(path)) is not None:
            self.files[full] = sha256
        return self.files.get(full)

    def _input(self, value: Workload | Platform | Timeline) -> str:
        if id(value) not in self._read:
            more: Any = ()
            if isinstance(value, Workload):
                jobs = [(job.submit_time_s, job.hosts, job.profile, job.walltime_s) for job in value.jobs]
                more = (value.name, value.nb_res, value.recorded, value.begin, jobs)
            elif isinstance(value, Timeline):
                more = (value.name, value.unit, value.date_s, value.pinned)
            content = f"{digest_of_input(value)['sha256']} {more!r}"
            self._read[id(value)] = value, hashlib.sha256(content.encode()).hexdigest()
        return self._read[id(value)][1]

    def _scheduler(self, scheduler: Any) -> Any:
        if not isinstance(scheduler, str):
            return self._code_of(scheduler)
        if is_ours(scheduler):
            return scheduler
        return self._sources(Path(scheduler) if is_file_name(scheduler) else pybatsim_files()[scheduler])

    def _sources(self, path: Path) -> list[list[str | None]]:
        """Return the names and digests of a file of code and of those that it imports from beside it."""
        file = code_file(path)
        above = file.absolute().parents[1]
        return [[os.path.relpath(one.absolute(), above), self._file(one)] for one in (file, *files_beside(file))]

    def _code_of(self, thing: Any) -> Any:
        """Return the sources of a class or a function, those of its bases included. Raises InputError."""
        parts: list[Any] = []
        for one in thing.__mro__ if isinstance(thing, type) else (thing,):
            if "<locals>" in one.__qualname__:
                # it may depend on arguments of the function that has made it
                raise _unknown(one.__qualname__)
            parts.append(f"{one.__module__}.{one.__qualname__}")
            if one.__module__.partition(".")[0] not in OURS:
                values = {name: value for name, value in vars(one).items() if isinstance(value, str | int | float)}
                parts.append([self._content(values), self._sources(_source_of(one))])
        return parts


def _unknown(part: object) -> InputError:
    """Return the error for a part of a run that another process cannot compare."""
    return InputError(part, "has no content that is known", "give a name, a file or a class of a file")


def _words(value: Any) -> Iterator[str]:
    """Yield all texts in the options of a scheduler."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping | list | tuple):
        for one in (*value, *value.values()) if isinstance(value, Mapping) else value:
            yield from _words(one)


def _source_of(thing: Any) -> Path:
    """Return the file of a class or a function, which has the code that is in memory. Raises InputError."""
    try:
        path = Path(inspect.getsourcefile(thing) or "")
        codes = set(_codes(compile(path.read_bytes(), str(path), "exec", dont_inherit=True)))
    except (TypeError, OSError, SyntaxError, ValueError):
        raise _unknown(thing.__qualname__) from None
    members = vars(thing).values() if isinstance(thing, type) else (thing,)
    functions = [inspect.unwrap(getattr(one, "__func__", getattr(one, "fget", one))) for one in members]
    for function in functions:
        # a dataclass makes functions of no file
        if isinstance(function, FunctionType) and function.__code__.co_filename != "<string>":
            is_own = function.__module__ == thing.__module__ and function.__code__.co_freevars in ((), ("__class__",))
            if not is_own or function.__code__ not in codes:
                raise _unknown(thing.__qualname__)
    if thing.__qualname__ not in {code.co_qualname for code in codes}:
        raise _unknown(thing.__qualname__)
    return path


def _codes(code: CodeType) -> Iterator[CodeType]:
    """Yield the code of a file, and that of all functions and classes in it."""
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _codes(constant)


def expand(
    campaign: Campaign, where: Path, base: Path, generated: Path, schedulers: OptionNames | None = None
) -> tuple[list[Cell], dict[str, MissingFileError]]:
    """Return all cells in the order of the declaration, and the error of each study that misses an input.

    The order is study, grid and then cases, platform, workload, envelope, ... `where` names the file in errors, `base`
    is the folder of its relative paths, `generated` that of generated inputs (which are not written here). With the
    `schedulers` of earlier runs no file of a scheduler is imported. Raises InputError for everything else.
    """
    sources = Sources(base, generated)
    cells: list[Cell] = []
    missing: dict[str, MissingFileError] = {}
    for name, study in campaign.effective().items():
        place = f"{where}: studies.{name}"
        try:
            own = list(_cells_of(name, study, sources, place, schedulers))
        except MissingFileError as error:
            missing[name] = error
            continue
        for number, rule in enumerate(study.exclude):
            rule_place = f"{place}.exclude[{number}]"
            dropped = _picked(own, rule, rule_place)
            own = [cell for cell in own if id(cell) not in dropped]
            if not own:
                raise InputError(rule_place, "leaves no run of the study", "correct or remove the rule")
        keep: set[int] = set()
        for number, rule in enumerate(study.keep if isinstance(study.keep, list) else ()):
            keep |= _picked(own, rule, f"{place}.keep[{number}]")
        for cell in own:
            key = hashlib.sha256(canonical(cell.identity).encode()).hexdigest()
            cells.append(replace(cell, key=key, keep=study.keep is True or id(cell) in keep))
    return cells, missing


def _picked(cells: Sequence[Cell], rule: Rule, place: str) -> set[int]:
    """Return the `id` of the cells that a rule picks: every name in it has the value, or one of the values."""
    columns = [{**cell.options, **cell.axes} for cell in cells]
    names = {name for column in columns for name in column}
    for name in rule:
        if name not in names:
            raise UnknownNameError(place, "column or option", name, names, "Correct the rule.")
    allowed = {name: value if isinstance(value, list) else [value] for name, value in rule.items()}
    picked = {
        id(cell)
        for cell, column in zip(cells, columns, strict=True)
        if all(column.get(name) in values for name, values in allowed.items())
    }
    if not picked:
        raise InputError(place, f"no run is {canonical(rule)}", "correct or remove the rule")
    return picked


def _settings(study: Study, place: str) -> Iterator[tuple[str, str, Mapping[str, Any]]]:
    """Yield label, scheduler and options of each point of the grid, and of each case."""
    template = study.label or " ".join(f"{{{name}}}" for name in study.grid) or None
    if study.grid or not study.cases:
        for values in product(*study.grid.values()):
            options = {**study.options, **dict(zip(study.grid, values, strict=True))}
            label = label_of(template or Path(study.scheduler).stem, options, study.names, place)
            yield label, study.scheduler, options
    for number, case in enumerate(study.cases):
        scheduler = case.scheduler or study.scheduler
        options = {**(study.options if scheduler == study.scheduler else {}), **case.options}
        if case.label is None and template is None:
            raise InputError(f"{place}.cases[{number}]", "has no label", "give it one, or the study a template")
        label = case.label or label_of(template or "", options, study.names, f"{place}.cases[{number}]")
        yield label, scheduler, options


def _cells_of(name: str, study: Study, sources: Sources, place: str, schedulers: OptionNames | None) -> Iterator[Cell]:
    settings = list(_settings(study, place))
    twice = [label for label, count in Counter(label for label, *_ in settings).items() if count > 1]
    if twice:
        hint = "labels name the rows of a study: give each its own"
        raise InputError(place, f"the label {twice[0]!r} appears twice", hint)
    platforms = sources.platforms(study.platforms, f"{place}.platforms")
    workloads = sources.workloads(study.workloads, f"{place}.workloads")
    files = sources.files(study.envelopes, f"{place}.envelopes")
    envelopes: Sequence[Choice | None] = [Choice.of(file, {"envelope": file.path}) for file in files] or [None]
    capacities: Sequence[Choice | None] = sources.capacities(study.capacities, f"{place}.capacities") or [None]
    for number, entry in enumerate(study.capacities):
        for own in entry.platforms or ():
            if own not in (names := [platform.name for platform in platforms]):
                raise UnknownNameError(f"{place}.capacities[{number}]", "platform", own, names, "Correct it.")
    events = sources.file(study.events, f"{place}.events") if study.events else None
    depends = sources.files(study.depends, f"{place}.depends")
    engines, engine_options = study.engines, study.engine_options
    seeds: Sequence[int | None] = study.seeds or [None]
    if any(len(set(values)) < len(values) for values in (engines, seeds)):
        raise InputError(place, "an engine or a seed appears twice", "list each once")
    for label, scheduler, options in settings:
        where = f"{place}: {label!r}"
        if scheduler == OPTIMUM:
            _check_optimum(study, where)
        option_names, code = _scheduler(scheduler, sources, where, schedulers)
        file, beside = (code[0], code[1:]) if code else (None, [])
        takes = set(option_names or ()) - options.keys()
        for platform, workload, envelope, whole, engine, seed in product(
            platforms, workloads, envelopes, capacities, engines, seeds
        ):
            if whole is not None and platform.name not in (whole.platforms or (platform.name,)):
                continue
            capacity = within(whole, workload.inputs["window"]) if whole else None
            reference = workload.reference if "reference" in takes else None
            run_options = {name: value for name, value in (capacity.options if capacity else ()) if name in takes}
            run_options |= options
            if seed is not None and (seed_option := _seed_option(option_names, options)):
                run_options[seed_option] = seed
            parts = [part for part in (platform, workload, envelope, capacity) if part]
            spec = RunSpec(
                **{name: value for part in parts for name, value in part.inputs.items()},
                events=events.path if events else None,
                scheduler=str(file.path) if file else scheduler,
                options=run_options | ({"reference": str(reference.path)} if reference else {}),
                engine=engine,
                config=engine_options.config(),
                batsim=engine_options.batsim,
                batsim_args=tuple(engine_options.batsim_args),
                plugins=loaded_plugins(),
            )
            files_of = {"envelope": envelope, "events": events, "scheduler_file": file, "capacity": capacity}
            hashes = {name: one.sha256 if one else None for name, one in (files_of | {"reference": reference}).items()}
            identity = {
                "format": FORMAT,
                "platform": platform.sha256,
                "hosts": asdict(spec.hosts),
                "workload": workload.sha256,
                **hashes,
                "window": [spec.window.begin_s, spec.window.end_s] if spec.window else None,
                "length_unit": spec.length_unit[0],
                "ignore_communication": spec.ignore_communication,
                "begin": [spec.log.begin, spec.log.tz],
                "depends": sorted(one.sha256 for one in (*depends, *beside)),
                "scheduler": Path(scheduler).stem if file else scheduler,
                "options": run_options,
                "engine": engine,
                "engine_options": _engine_identity(engine, engine_options),
                "code": code_digest(scheduler == OPTIMUM),
            }
            others = filter(None, (events, file, *beside, *depends, reference))
            read = (*(one for part in parts for one in part.files), *others)
            yield Cell(
                name,
                label,
                platform,
                workload,
                envelope,
                capacity,
                scheduler,
                options,
                seed,
                spec,
                identity,
                read,
                option_names,
            )


def _engine_identity(engine: str, options: EngineOptions) -> dict[str, Any]:
    """Return the options that an engine uses, a real Batsim by its content. Raises InputError."""
    if engine == "batsim":
        return options.model_dump() | {"batsim": _digest_of_executable(options.batsim)}
    return options.model_dump(exclude={"batsim", "batsim_args"})


def _check_optimum(study: Study, place: str) -> None:
    """Raise InputError for inputs and engines that the optimum cannot have."""
    if set(study.engines) != {"embedded"}:
        hint = "declare it in a study of its own"
        raise InputError(place, "the optimum runs on the embedded engine only", hint)
    of_machines = study.capacities or any(entry.machines for entry in study.platforms)
    if of_machines or any(entry.trace for entry in study.workloads):
        problem = "the optimum takes neither capacities nor machines and traces"
        raise InputError(place, problem, "give it files of Batsim, and an envelope")


def _scheduler(
    name: str, sources: Sources, place: str, schedulers: OptionNames | None
) -> tuple[Collection[str] | None, list[InputFile]]:
    """Return the names of the options of a declared scheduler, and, if it is not shipped, its file and those beside it.

    A scheduler that is not ours has no such names. Raises InputError.
    """
    if name == OPTIMUM:
        return None, []
    if is_file_name(name):
        code = sources.scheduler(name, place)
        if schedulers is not None:
            return schedulers.get(code[0].sha256), code
        return _names(scheduler_class(str(code[0].path))), code
    try:
        kind = scheduler_class(name)
    except UnknownNameError as error:
        raise InputError(place, str(error).removeprefix("scheduler: ")) from None
    return _names(kind), [] if issubclass(kind, Scheduler) else sources.scheduler(inspect.getfile(kind), place)


def _names(kind: type[Any]) -> list[str] | None:
    return sorted(kind.Options.model_fields) if issubclass(kind, Scheduler) else None


def _seed_option(names: Collection[str] | None, options: Mapping[str, Any]) -> str | None:
    """Return the option of the seed; None for a scheduler of ours that draws no random numbers."""
    if names is None or "seed" in names:
        return "seed"
    return "forecast_seed" if options.get("forecast_error") and "forecast_seed" not in options else None
