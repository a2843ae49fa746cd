"""The cells of a campaign: the declared grid run by run, each with a key made of everything that determines it."""

from __future__ import annotations

import hashlib
import importlib
import inspect
import shutil
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import cache, cached_property
from itertools import product
from pathlib import Path
from typing import Any

import batwatt
from batwatt import __version__
from batwatt.errors import InputError, UnknownNameError
from batwatt.inputs.description import Inputs
from batwatt.run.find_scheduler import loaded_plugins, scheduler_class
from batwatt.run.metadata import version_of
from batwatt.run.spec import EngineName
from batwatt.scheduling.base import Scheduler
from batwatt.study.files import Choice, InputFile
from batwatt.study.generated import within
from batwatt.study.sources import MissingFileError, Sources
from batwatt.study.spec import OPTIMUM, Campaign, EngineOptions, Rule, Study, canonical, label_of

FORMAT = 1
"""Version of the content of a key and of the files of cells."""
_RESULTS = (
    *("classes", "columns", "csv_block", "figures", "goodput", "metrics", "origins", "run_data", "run_table"),
    *("parts", "power", "read", "slowdowns", "work", "writers", "yields"),
)
CODE = (
    *("_version.py", "arrays.py", "units.py", "checks.py", "files.py", "model", "protocol", "inputs"),
    *("engine", "scheduling", "options"),
    *("systems/riskaware", "systems/varcap"),
    *("systems/powercap/*.py", "systems/powercap/job_power", "systems/checkpoint/*.py"),
    "systems/carbon/*.py",
    *(f"results/{name}.py" for name in _RESULTS),
    *(f"run/{name}.py" for name in ("find_scheduler", "resolve", "run", "spec")),
)
"""The sources, and `batwatt.schedulers`, that determine the figures of a run: files, patterns, and whole folders."""
SUFFIXES = (".py", ".csv")
"""Suffixes of the files in these folders that count: modules and data."""
CODE_OF_OPTIMUM = (*CODE, "systems/powercap/optimum", "offline.py")
PACKAGES, PACKAGES_OF_OPTIMUM = ("pybatsim",), ("pybatsim", "ortools", "highspy")
AXES = ("label", "platform", "workload", "envelope", "capacity", "engine", "seed")
"""Columns that a rule may name besides options."""


@dataclass(frozen=True)
class Cell:
    """One row of the table: one run, and its place in the grid."""

    study: str
    label: str
    platform: Choice
    workload: Choice
    envelope: Choice | None
    scheduler: str
    options: Mapping[str, Any]
    seed: int | None
    engine: EngineName
    engine_options: EngineOptions
    events: Choice | None = None
    scheduler_file: InputFile | None = None
    depends: tuple[InputFile, ...] = ()
    capacity: Choice | None = None
    reference: InputFile | None = None
    defaults: Mapping[str, Any] = field(default_factory=dict)
    seed_option: str | None = None
    keep: bool = False
    key: str = ""

    @cached_property
    def inputs(self) -> Inputs:
        """Inputs of the run."""
        parts = (self.platform, self.workload, self.envelope, self.capacity, self.events)
        return Inputs(**{name: value for part in parts if part for name, value in part.inputs.items()})

    @property
    def files(self) -> tuple[InputFile, ...]:
        """Files that the run reads."""
        parts = (self.platform, self.workload, self.envelope, self.events, self.capacity)
        others = (self.scheduler_file, *self.depends, self.reference)
        return (*(file for part in parts if part for file in part.files), *filter(None, others))

    @property
    def run_options(self) -> dict[str, Any]:
        """Options of the scheduler, with those of a generated capacity, and with the seed if it takes one."""
        options = {**self.defaults, **self.options}
        return {**options, self.seed_option: self.seed} if self.seed_option else options

    def column(self, name: str) -> Any:
        """Return the value that a rule compares: a column as in the table, or an option."""
        value = getattr(self, name) if name in AXES else self.options.get(name)
        return value.name if isinstance(value, Choice) else value

    def identity(self) -> dict[str, Any]:
        """Return everything that determines the figures of the run, files by their content."""
        engine = self.engine_options.model_dump()
        if self.engine == "batsim":
            engine["batsim"] = _digest_of_executable(engine["batsim"])
        else:
            del engine["batsim"], engine["batsim_args"]
        optional = ("envelope", "events", "scheduler_file", "capacity", "reference")
        inputs = self.inputs
        window = inputs.window
        return {
            "format": FORMAT,
            "platform": self.platform.sha256,
            "hosts": asdict(inputs.hosts),
            "workload": self.workload.sha256,
            **{name: file.sha256 if (file := getattr(self, name)) else None for name in optional},
            "window": [window.begin_s, window.end_s] if window else None,
            "length_unit": inputs.length_unit[0],
            "begin": [inputs.log.begin, inputs.log.tz],
            "depends": sorted(file.sha256 for file in self.depends),
            "scheduler": Path(self.scheduler).stem if self.scheduler_file else self.scheduler,
            "options": self.run_options,
            "engine": self.engine,
            "engine_options": engine,
            "code": code_digest(self.scheduler == OPTIMUM),
        }


def code_digest(optimum: bool = False) -> str:
    """Return the SHA-256 of the version, and of the sources and packages that determine a run's figures."""
    return _code_digest(optimum, loaded_plugins())


@cache
def _code_digest(optimum: bool, plugins: tuple[Path, ...]) -> str:
    sources = sources_of(CODE_OF_OPTIMUM if optimum else CODE)
    # the folder lies outside src/ in a checkout
    schedulers = Path(next(iter(importlib.import_module("batwatt.schedulers").__path__)))
    sources.update((f"schedulers/{file.name}", file) for file in schedulers.glob("*.py"))
    sources.update((f"plugin {file.name}", file) for file in plugins)
    return digest_of_sources(sources, PACKAGES_OF_OPTIMUM if optimum else PACKAGES)


def sources_of(names: Iterable[str]) -> dict[str, Path]:
    """Return the modules and data in some files and folders of the package, by relative path."""
    root = Path(batwatt.__file__).parent
    sources: dict[str, Path] = {}
    for name in names:
        files = (file for path in root.glob(name) for file in (path.rglob("*") if path.is_dir() else [path]))
        sources.update((file.relative_to(root).as_posix(), file) for file in files if file.suffix in SUFFIXES)
    return sources


def digest_of_sources(sources: Mapping[str, Path], packages: Iterable[str]) -> str:
    """Return the SHA-256 of the version, of sources and of the versions of packages."""
    parts = {name: hashlib.sha256(path.read_bytes()).hexdigest() for name, path in sources.items()}
    versions = {name: version_of(name) for name in packages}
    return hashlib.sha256(canonical([__version__, parts, versions]).encode()).hexdigest()


@cache
def _digest_of_executable(name: str) -> str:
    path = shutil.which(name)
    if path is None:
        raise InputError("batsim", f"{name!r} is not an executable on PATH", "install Batsim 4.x or give its path")
    return hashlib.sha256(Path(path).read_bytes()).hexdigest()


def expand(
    campaign: Campaign, where: Path, base: Path, generated: Path
) -> tuple[list[Cell], dict[str, MissingFileError]]:
    """Return all cells in the order of the declaration, and the error of each study that misses an input.

    The order is study, grid and then cases, platform, workload, envelope, ... `where` names the file in errors, `base`
    is the folder of its relative paths, `generated` that of generated inputs (which are not written here). Raises
    InputError for everything else.
    """
    sources = Sources(base, generated)
    cells: list[Cell] = []
    missing: dict[str, MissingFileError] = {}
    for name, study in campaign.effective().items():
        place = f"{where}: studies.{name}"
        try:
            own = list(_cells_of(name, study, sources, place))
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
            key = hashlib.sha256(canonical(cell.identity()).encode()).hexdigest()
            cells.append(replace(cell, key=key, keep=cell.keep or study.keep is True or id(cell) in keep))
    return cells, missing


def _picked(cells: Sequence[Cell], rule: Rule, place: str) -> set[int]:
    """Return the `id` of the cells that a rule picks: every name in it has the value, or one of the values."""
    names = {*AXES, *(option for cell in cells for option in cell.options)}
    for name in rule:
        if name not in names:
            raise UnknownNameError(place, "column or option", name, names, "Correct the rule.")
    allowed = {name: value if isinstance(value, list) else [value] for name, value in rule.items()}
    picked = {id(cell) for cell in cells if all(cell.column(name) in values for name, values in allowed.items())}
    if not picked:
        raise InputError(place, f"no run is {canonical(rule)}", "correct or remove the rule")
    return picked


@dataclass(frozen=True)
class _Setting:
    """A label with its point of the grid, or its case."""

    label: str
    scheduler: str
    options: Mapping[str, Any]
    engines: Sequence[EngineName]
    engine_options: EngineOptions
    seeds: Sequence[int] | None
    keep: bool = False


def _settings(study: Study, place: str) -> Iterator[_Setting]:
    template = study.label or " ".join(f"{{{name}}}" for name in study.grid) or None
    shared = (study.engines, study.engine_options, study.seeds)
    if study.grid or not study.cases:
        for values in product(*study.grid.values()):
            options = {**study.options, **dict(zip(study.grid, values, strict=True))}
            label = label_of(template or Path(study.scheduler).stem, options, study.names, place)
            yield _Setting(label, study.scheduler, options, *shared)
    for number, case in enumerate(study.cases):
        own = case.scheduler is not None and case.scheduler != study.scheduler
        options = dict(case.options) if own else {**study.options, **case.options}
        if case.label is None and template is None:
            raise InputError(f"{place}.cases[{number}]", "has no label", "give it one, or the study a template")
        label = case.label or label_of(template or "", options, study.names, f"{place}.cases[{number}]")
        shared = (case.engines or study.engines, case.engine_options or study.engine_options, case.seeds or study.seeds)
        yield _Setting(label, case.scheduler or study.scheduler, options, *shared, case.keep)


def _cells_of(name: str, study: Study, sources: Sources, place: str) -> Iterator[Cell]:
    settings = list(_settings(study, place))
    twice = [label for label, count in Counter(setting.label for setting in settings).items() if count > 1]
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
    file = sources.file(study.events, f"{place}.events") if study.events else None
    events = Choice.of(file, {"events": file.path}) if file else None
    depends = tuple(sources.files(study.depends, f"{place}.depends"))
    for setting in settings:
        if setting.scheduler == OPTIMUM:
            _check_optimum(setting, study, f"{place}: {setting.label!r}")
        seeds: Sequence[int | None] = setting.seeds or [None]
        axes = (setting.engines, seeds)
        if any(len(set(values)) < len(values) for values in axes):
            raise InputError(place, f"{setting.label!r}: an engine or a seed appears twice", "list each once")
        scheduler = _scheduler(setting, sources, f"{place}: {setting.label!r}")
        for platform, workload, envelope, capacity, engine, seed in product(
            platforms, workloads, envelopes, capacities, *axes
        ):
            if capacity is not None and platform.name not in (capacity.platforms or (platform.name,)):
                continue
            takes = scheduler.takes - setting.options.keys()
            yield Cell(
                study=name,
                label=setting.label,
                platform=platform,
                workload=workload,
                envelope=envelope,
                scheduler=scheduler.name,
                options=setting.options,
                seed=seed,
                engine=engine,
                engine_options=setting.engine_options,
                events=events,
                scheduler_file=scheduler.file,
                depends=depends,
                capacity=within(capacity, workload.inputs["window"]) if capacity else None,
                reference=workload.reference if "reference" in takes else None,
                defaults={name: value for name, value in (capacity.options if capacity else ()) if name in takes},
                seed_option=scheduler.seed_option if seed is not None else None,
                keep=setting.keep,
            )


def _check_optimum(setting: _Setting, study: Study, place: str) -> None:
    """Raise InputError for inputs and engines that the optimum cannot have."""
    if set(setting.engines) != {"embedded"}:
        hint = "declare it as a case with `engines: [embedded]`"
        raise InputError(place, "the optimum runs on the embedded engine only", hint)
    of_machines = study.capacities or any(entry.machines for entry in study.platforms)
    if of_machines or any(entry.trace or entry.pmbs or entry.varcap for entry in study.workloads):
        problem = "the optimum takes neither capacities nor machines and traces"
        raise InputError(place, problem, "give it files of Batsim, and an envelope")


@dataclass(frozen=True)
class _Scheduler:
    """A declared scheduler: its file if it is not ours, the option of its seed, and the options of one of ours."""

    name: str
    file: InputFile | None
    seed_option: str | None
    takes: frozenset[str] = frozenset()


def _scheduler(setting: _Setting, sources: Sources, place: str) -> _Scheduler:
    """Return the scheduler of a setting. Raises InputError."""
    name = setting.scheduler
    if name == OPTIMUM:
        return _Scheduler(name, None, "seed")
    file: InputFile | None = None
    if "/" in name or name.endswith(".py"):
        file = sources.file(name, place)
        kind = scheduler_class(str(file.path))
    else:
        try:
            kind = scheduler_class(name)
        except UnknownNameError as error:
            raise InputError(place, str(error).removeprefix("--scheduler: ")) from None
        if not issubclass(kind, Scheduler):
            file = sources.file(inspect.getfile(kind), place)
    takes = frozenset(kind.Options.model_fields) if issubclass(kind, Scheduler) else frozenset()
    return _Scheduler(name, file, _seed_option(kind, setting.options), takes)


def _seed_option(scheduler: type[Any], options: Mapping[str, Any]) -> str | None:
    """Return the option of the seed; None for a scheduler of ours that draws no random numbers."""
    if not issubclass(scheduler, Scheduler) or "seed" in scheduler.Options.model_fields:
        return "seed"
    return "forecast_seed" if options.get("forecast_error") and "forecast_seed" not in options else None
