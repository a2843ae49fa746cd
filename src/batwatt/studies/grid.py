"""The grid of a declared study: input files, values of its axes, and a cell for each combination."""

from __future__ import annotations

import glob
import hashlib
import inspect
import os
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, fields, is_dataclass, replace
from itertools import product
from pathlib import Path
from typing import Any

from batwatt.errors import InputError, UnknownNameError, errors_of
from batwatt.files import digest_of, is_file, is_folder, write_text
from batwatt.inputs.batch_logs import USUAL, LogOptions
from batwatt.inputs.character import EnergyBudget, Variation, bill
from batwatt.inputs.google_like import GoogleLike, google_like, to_text
from batwatt.inputs.load import is_trace
from batwatt.inputs.platform_files import MASTER_HOST, HostChoice
from batwatt.inputs.spec import (
    FileTerm,
    SeriesSpec,
    ShareTerm,
    Term,
    kinds_of_series,
    names_kind,
    parse_series,
)
from batwatt.model.platform import MachineSpec
from batwatt.model.signal import Window
from batwatt.run.find_scheduler import is_file_name, scheduler_class
from batwatt.run.loader import files_beside, loaded_plugins
from batwatt.run.spec import RunSpec
from batwatt.scheduling.base import Scheduler
from batwatt.studies.cases import Case, cases_of
from batwatt.studies.cells import CellTask, Contents, code_digest, digest_of_executable, key_of
from batwatt.studies.spec import (
    OPTIMUM,
    Capacities,
    ComparisonSpec,
    Platforms,
    Rule,
    StudySpec,
    Workloads,
    canonical,
    filled,
    label_of,
    points_of,
)
from batwatt.units import number_text

SEED = "seed"
OptionNames = Mapping[str, Collection[str] | None]
"""SHA-256 of the file of a scheduler -> names of its options; None for a scheduler that is not ours."""


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


def _digest(spec: SeriesSpec, files: Sequence[InputFile]) -> str:
    """Return the SHA-256 of a specification and of the content of its files."""
    digests = {file.path: file.sha256 for file in files}
    return hashlib.sha256(canonical(_facts(spec, digests)).encode()).hexdigest()


def within(capacity: Choice, window: Window | None) -> Choice:
    """Return the capacity, levelled until the end of the window unless it is a file or has a time of its own."""
    spec = capacity.inputs["capacity"]
    if window is None or not isinstance(spec, SeriesSpec):
        return capacity
    spec = replace(spec, terms=tuple(_within(term, window.end_s) for term in spec.terms))
    return replace(capacity, inputs={"capacity": spec}, sha256=_digest(spec, capacity.files))


def _within(term: Term, end_s: float) -> Term:
    """Return a term; one at random without a time of its own is levelled over [0, `end_s`[."""
    if not isinstance(term, ShareTerm) or not isinstance(term.rule, Variation):
        return term
    if term.end_s is not None or term.rule.window_s is not None or term.rule.structure == "constant":
        return term
    return replace(term, rule=replace(term.rule, window_s=end_s))


def traits(capacity: Choice | None) -> dict[str, str | float | int | None]:
    """Return the columns of the table that describe a capacity; None where it has no such value."""
    spec = None if capacity is None else capacity.inputs["capacity"]
    if capacity is None or not isinstance(spec, SeriesSpec):
        return {}
    kind, term = spec.text.partition(":")[0], spec.terms[0]
    rule = term.rule if isinstance(term, ShareTerm) else None
    traits: dict[str, str | float | int | None] = {"cap_structure": kind, "cap_seed": dict(capacity.options).get(SEED)}
    if isinstance(rule, Variation):
        traits |= {"cap_mean": rule.mean, "cap_range": round(rule.high - rule.low, 9)}
        if kind != "constant":
            traits["cap_period_s"] = rule.period_s
        if kind == "walk":
            traits["cap_step"] = rule.step_fraction
    elif spec.sources:
        traits["cap_period_s"] = spec.sources[0].period_s
        if isinstance(rule, EnergyBudget):
            traits |= {"cap_mean": rule.budget, "cap_headroom": rule.headroom}
            traits |= _bill_of(spec, rule)
    return traits


def _bill_of(spec: SeriesSpec, budget: EnergyBudget) -> dict[str, float | None]:
    """Return the shares by which it costs or emits less than the fixed capacity of its budget, and is larger."""
    try:
        signal = spec.paid()
    except InputError:  # the file went away after the runs
        return {}
    assert signal is not None
    shares = bill(budget.capacity(signal), signal, budget.budget)
    return {"cap_saved": shares.saved, "cap_gained": shares.gained}


def generated_capacities(
    entry: Capacities, where: str, base: Path, file: Callable[[str, str], InputFile]
) -> list[Choice]:
    """Return the capacities of an entry for each point of its grid and each seed. Raises InputError."""
    choices = []
    own = tuple(entry.platforms) if entry.platforms else None
    for point in points_of(entry.grid):
        seeds: Sequence[int | None] = entry.seeds or [None]
        for seed in seeds:
            text = filled(entry.spec or "", point)
            if seed is not None:
                text += f"{'' if text.endswith(':') else ','}{SEED}={seed}"
            with errors_of(where):
                spec = parse_series("machines", text, base)
            if not names_kind(text, kinds_of_series("machines")):
                kinds = ", ".join(f"{kind}:" for kind in kinds_of_series("machines"))
                raise InputError(where, f"{text!r} describes no capacity", f"it begins with one of {kinds}")
            spec, files = _with_file(spec, where, base, file)
            name = filled(entry.name, point) if entry.name else _name(spec)
            name += "" if seed is None else f"-s{seed}"
            # a scheduler that has a seed gets that of the capacity, so that repetitions draw numbers of their own
            options = () if seed is None else ((SEED, seed),)
            choices.append(Choice(name, _digest(spec, files), name, {"capacity": spec}, files, options, own))
    return choices


def _with_file(
    spec: SeriesSpec, where: str, base: Path, file: Callable[[str, str], InputFile]
) -> tuple[SeriesSpec, tuple[InputFile, ...]]:
    """Return the specification with the absolute paths of its files, and the files."""
    files: list[InputFile] = []

    def placed(term: Term) -> Term:
        if not isinstance(term, FileTerm | ShareTerm) or term.source is None:
            return term
        path = term.source.path
        files.append(file(str(path.relative_to(base) if path.is_relative_to(base) else path), where))
        return replace(term, source=replace(term.source, path=files[-1].path))

    return replace(spec, terms=tuple(placed(term) for term in spec.terms)), tuple(files)


def _name(spec: SeriesSpec) -> str:
    """Return a name as `walk-0.6-0.15-3600` (range, step, period) or `carbon-DE-0.7-1.2` (file and values)."""
    term = spec.terms[0]
    kind, _, words = spec.text.partition(":")
    pairs = [(key, value) for key, mark, value in (word.partition("=") for word in words.split(",")) if mark]
    if not isinstance(term, ShareTerm) or not isinstance(term.rule, Variation):
        stems = [path.stem for path in spec.files]
        return "-".join([kind, *stems, *(value for key, value in pairs if key != "repeat")])
    variation = term.rule
    if kind == "constant":
        return f"{kind}-{number_text(variation.mean)}"
    sizes = [variation.range, *([variation.step_fraction] if kind == "walk" else []), variation.period_s]
    usual = ("range", "step", "period", SEED)
    more = [f"{key}{value}" for key, value in pairs if key not in usual and not (key == "mean" and value == "0.7")]
    return "-".join([kind, *(number_text(round(size, 9)) for size in sizes), *more])


def _facts(value: Any, digests: Mapping[Path, str]) -> Any:
    """Return the parameters of a series as JSON, files by their content."""
    if isinstance(value, Path):
        return digests[value]
    if isinstance(value, tuple):
        return [_facts(one, digests) for one in value]
    if is_dataclass(value):
        named = {field.name: _facts(getattr(value, field.name), digests) for field in fields(value) if field.compare}
        if isinstance(value, Variation):
            # the default step, written out, is the same
            named["step"] = value.step_fraction
        return {"kind": type(value).__name__, **named}
    return value


class MissingFileError(InputError):
    """A declared file is missing, or no file matches a pattern; other comparisons can run."""

    def __init__(self, where: object, file: str, problem: str, hint: str) -> None:
        super().__init__(where, problem, hint)
        self.file = file
        """The file or the pattern as it is declared."""
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
                raise MissingFileError(where, name, f"the file {name!r} {reason} ({path})", hint)
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
                    raise MissingFileError(where, pattern, f"no file matches {pattern!r}", hint)
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
                # another comparison has other parameters under this name
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


@dataclass(frozen=True)
class Cell:
    """One row of the table: one run, and its place in the grid.

    `options` are the declared ones, without those of a generated capacity, and without the seed. `files` are those that
    the run reads, `depends` the SHA-256 of others that it depends on. `scheduler_file` is the file of a scheduler that
    is not ours, whose `option_names` are None.
    """

    comparison: str
    case: str
    platform: Choice
    workload: Choice
    envelope: Choice | None
    capacity: Choice | None
    scheduler: str
    options: Mapping[str, Any]
    seed: int | None
    spec: RunSpec
    files: tuple[InputFile, ...]
    depends: tuple[str, ...] = ()
    scheduler_file: InputFile | None = None
    option_names: Collection[str] | None = None
    keep: bool = False
    key: str = ""

    @property
    def axes(self) -> dict[str, Any]:
        """Columns of the table that a rule may name besides options."""
        choices = {name: getattr(self, name) for name in ("platform", "workload", "envelope", "capacity")}
        names = {name: choice.name if choice else None for name, choice in choices.items()}
        return {"case": self.case, **names, "follow": self.spec.follow, "engine": self.spec.engine, "seed": self.seed}

    @property
    def place(self) -> dict[str, Any]:
        """Place in the grid, for the file of the cell."""
        return {"comparison": self.comparison, **self.axes, "scheduler": self.scheduler, "options": dict(self.options)}


def expand(
    study: StudySpec, where: Path, base: Path, generated: Path, schedulers: OptionNames | None = None
) -> tuple[list[Cell], dict[str, MissingFileError]]:
    """Return all cells in the order of the declaration, and the error of each comparison that misses an input.

    The order is comparison, grid and then cases, platform, workload, envelope, ... `where` names the file in errors,
    `base` is the folder of its relative paths, `generated` that of generated inputs, which are not written here.
    With the `schedulers` of earlier runs no file of a scheduler is imported. Raises InputError for everything else.
    """
    sources, contents = Sources(base, generated), Contents()
    cells: list[Cell] = []
    missing: dict[str, MissingFileError] = {}
    for name, comparison in study.effective().items():
        place = f"{where}: comparisons.{name}"
        try:
            own = list(_cells_of(name, comparison, sources, place, schedulers))
        except MissingFileError as error:
            missing[name] = error
            continue
        for number, rule in enumerate(comparison.exclude):
            rule_place = f"{place}.exclude[{number}]"
            dropped = _picked(own, rule, rule_place)
            own = [cell for cell in own if id(cell) not in dropped]
            if not own:
                raise InputError(rule_place, "leaves no run of the comparison", "correct or remove the rule")
        keep: set[int] = set()
        for number, rule in enumerate(comparison.keep if isinstance(comparison.keep, list) else ()):
            keep |= _picked(own, rule, f"{place}.keep[{number}]")
        for cell in own:
            # also of files that are generated when they are needed
            contents.files.update({str(file.path): file.sha256 for file in cell.files})
            code = code_digest(cell.scheduler == OPTIMUM)
            key = key_of(contents.digest(cell.spec), code, cell.depends)
            cells.append(replace(cell, key=key, keep=comparison.keep is True or id(cell) in keep))
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


def _cases(comparison: ComparisonSpec, place: str) -> Iterator[tuple[str, Case]]:
    """Yield the label and the case of each point of the grid, and of each case outside. Raises InputError."""
    template = comparison.label or " ".join(f"{{{name}}}" for name in comparison.grid) or None
    if comparison.grid or not comparison.cases:
        for values in product(*comparison.grid.values()):
            options = {**comparison.options, **dict(zip(comparison.grid, values, strict=True))}
            label = label_of(template or Path(comparison.scheduler).stem, options, comparison.names, place)
            yield label, Case(comparison.scheduler, options, comparison.follow)
    for number, case in enumerate(comparison.cases):
        where = f"{place}.cases[{number}]"
        if case.case is not None:
            cases = cases_of([case.case], where)
            if case.label is not None and len(cases) > 1:
                raise InputError(where, f"{case.case!r} is several cases", "leave the label out")
            yield from ((case.label or label, one) for label, one in cases.items())
            continue
        scheduler = case.scheduler or comparison.scheduler
        options = {**(comparison.options if scheduler == comparison.scheduler else {}), **case.options}
        if case.label is None and template is None:
            raise InputError(where, "has no label", "give it one, or the comparison a template")
        label = case.label or label_of(template or "", options, comparison.names, where)
        yield label, Case(scheduler, options, case.follow or comparison.follow)


def _cells_of(
    name: str, comparison: ComparisonSpec, sources: Sources, place: str, schedulers: OptionNames | None
) -> Iterator[Cell]:
    cases = list(_cases(comparison, place))
    twice = [label for label, count in Counter(label for label, _ in cases).items() if count > 1]
    if twice:
        hint = "labels name the rows of a comparison: give each its own"
        raise InputError(place, f"the label {twice[0]!r} appears twice", hint)
    platforms = sources.platforms(comparison.platforms, f"{place}.platforms")
    workloads = sources.workloads(comparison.workloads, f"{place}.workloads")
    files = sources.files(comparison.envelopes, f"{place}.envelopes")
    envelopes: Sequence[Choice | None] = [Choice.of(file, {"envelope": file.path}) for file in files] or [None]
    capacities: Sequence[Choice | None] = sources.capacities(comparison.capacities, f"{place}.capacities") or [None]
    for number, entry in enumerate(comparison.capacities):
        for own in entry.platforms or ():
            if own not in (names := [platform.name for platform in platforms]):
                raise UnknownNameError(f"{place}.capacities[{number}]", "platform", own, names, "Correct it.")
    events = sources.file(comparison.events, f"{place}.events") if comparison.events else None
    depends = sources.files(comparison.depends, f"{place}.depends")
    engines, engine_options = comparison.engines, comparison.engine_options
    seeds: Sequence[int | None] = comparison.seeds or [None]
    if any(len(set(values)) < len(values) for values in (engines, seeds)):
        raise InputError(place, "an engine or a seed appears twice", "list each once")
    if "batsim" in engines:
        digest_of_executable(engine_options.batsim)
    for label, case in cases:
        scheduler, options = case.scheduler, case.options
        where = f"{place}: {label!r}"
        if scheduler == OPTIMUM:
            _check_optimum(comparison, where)
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
                # a path, whose content alone counts: the folder of a study may be moved
                follow=case.follow,
                options=run_options | ({"reference": reference.path} if reference else {}),
                engine=engine,
                config=engine_options.config(),
                batsim=engine_options.batsim,
                batsim_args=tuple(engine_options.batsim_args),
                plugins=loaded_plugins(),
            )
            others = filter(None, (events, file, *beside, *depends, reference))
            yield Cell(
                comparison=name,
                case=label,
                platform=platform,
                workload=workload,
                envelope=envelope,
                capacity=capacity,
                scheduler=scheduler,
                options=options,
                seed=seed,
                spec=spec,
                files=(*(one for part in parts for one in part.files), *others),
                depends=tuple(sorted(one.sha256 for one in depends)),
                scheduler_file=file,
                option_names=option_names,
            )


def _check_optimum(comparison: ComparisonSpec, place: str) -> None:
    """Raise InputError for inputs and engines that the optimum cannot have."""
    if set(comparison.engines) != {"embedded"}:
        hint = "declare it in a comparison of its own"
        raise InputError(place, "the optimum runs on the embedded engine only", hint)
    of_machines = comparison.capacities or any(entry.machines for entry in comparison.platforms)
    if of_machines or any(entry.trace for entry in comparison.workloads):
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


def task_of(cell: Cell, keep: bool, scratch: Path | None) -> CellTask:
    """Return the task of a cell of a study for a worker."""
    return CellTask(
        key=cell.key,
        name=f"run {cell.key[:12]}",
        spec=cell.spec,
        code=code_digest(cell.scheduler == OPTIMUM),
        digests={str(file.path): file.sha256 for file in cell.files},
        declared={str(file.path): file.declared for file in cell.files},
        keep=keep,
        scratch=str(scratch) if scratch else None,
    )
