"""The declaration of a study: comparisons, each a grid of platforms, workloads, envelopes, capacities, options, ..."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import fields
from itertools import product
from string import Formatter
from typing import Annotated, Any

from pydantic import AfterValidator, Field, JsonValue, field_validator, model_validator

from batwatt.batsim.batsim4 import EngineConfig
from batwatt.errors import InputError, argument
from batwatt.inputs.google_like import GoogleLike
from batwatt.inputs.jobs import TimeUnit
from batwatt.run.spec import EngineName, Follow
from batwatt.studies.yaml_model import Declared, wrong

NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
OPTIMUM = "optimum"
"""Name of the offline optimum, in place of a scheduler: a solver's plan, replayed on the embedded engine."""
Rule = dict[str, JsonValue]
"""Rule that picks runs: option or column -> its value, or a list of values."""
Seed = Annotated[int, Field(ge=0, lt=2**63)]
"""Seed that fits the column of the table, and generators of random numbers."""
WINDOW = Annotated[list[float], Field(min_length=2, max_length=2)]
"""Begin and end in s."""
Grid = dict[str, Annotated[list[JsonValue], Field(min_length=1)]]
"""Lists of values, for all of their combinations."""
EXAMPLES = {
    "label": ("options' names", "{backfilling} {order}"),
    "name": ("names of its grid", "long-{long_fraction}"),
    "spec": ("names of its grid", "walk:range={range}"),
}
"""Names that templates may have in braces, and an example."""


def canonical(value: object) -> str:
    """Return JSON with one spelling for equal values. Raises ValueError for NaN and infinities."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)


def checked_name(name: str) -> str:
    """Return the name if files and folders can have it. Raises ValueError."""
    if not NAME.fullmatch(name):
        raise wrong(f"the name {name!r} must be of letters, digits, '.', '_' and '-'")
    return name


def folder_name(name: str | None, declared: str) -> str:
    """Return the name of a study's folder: that of `--name`, else the declared one. Raises InputError."""
    try:
        return declared if name is None else checked_name(name)
    except ValueError as error:
        raise InputError(argument("name"), str(error)) from None


def _checked(options: dict[str, Any]) -> dict[str, Any]:
    """Return options of a scheduler if they are values of JSON, and no inputs, which have lists of their own."""
    for name, place in (("platform", "platforms"), ("seed", "seeds"), ("capacity", "capacities")):
        if name in options:
            raise wrong(f"{name!r} is not an option here: declare it under {place!r}")
    envelope = options.get("envelope", "events")
    if envelope != "events":
        raise wrong("'envelope' is not an option here (but for 'events'): declare it under 'envelopes'")
    try:
        canonical(options)
    except ValueError:
        raise wrong("a number is not finite: give a finite one") from None
    return options


Options = Annotated[dict[str, JsonValue], AfterValidator(_checked)]
StudyName = Annotated[str, AfterValidator(checked_name)]


class _Files(Declared):
    """Base of declarations that may be a path or a glob only, without a key."""

    files: str | None = None

    @model_validator(mode="before")
    @classmethod
    def _path(cls, content: Any) -> Any:
        return {"files": content} if isinstance(content, str) else content


class Platforms(_Files):
    """Platform files (a path or a glob), or like machines without a file.

    Of a file, `master_host` runs no job, and of the others the first `mmax` do (0: all), as with Batsim's options.
    """

    machines: int | None = None
    cores: int | None = None
    master_host: str | None = None
    mmax: int = Field(0, ge=0)

    @model_validator(mode="after")
    def _one_kind(self) -> Platforms:
        present = [value is not None for value in (self.files, self.machines, self.cores)]
        if present not in ([True, False, False], [False, True, True]):
            raise wrong("must be a path, or `machines` and `cores`")
        if self.files is None and (self.master_host is not None or self.mmax):
            raise wrong("`master_host` and `mmax` go with `files` only")
        return self


class Workloads(_Files):
    """Workload files (a path or a glob), traces of jobs, or workloads that are generated, one for each seed."""

    trace: str | None = None
    google_like: dict[str, JsonValue] | None = None
    seeds: list[Seed] | None = Field(None, min_length=1)
    name: str | None = None
    window: WINDOW | None = None
    length_unit: TimeUnit | None = None
    ignore_communication: bool | None = None
    begin: str | int | float | None = None
    tz: str | None = None
    reference: str | None = None

    @model_validator(mode="after")
    def _one_kind(self) -> Workloads:
        allowed: dict[str, tuple[str, ...]] = {
            "files": ("ignore_communication",),
            "trace": ("window", "reference", "length_unit", "begin", "tz"),
            "google_like": ("seeds", "name"),
        }
        kinds = [kind for kind in allowed if getattr(self, kind) is not None]
        if len(kinds) != 1:
            raise wrong("must be a path, or `google_like` (parameters, {} for the usual ones) with `seeds`, or `trace`")
        [kind] = kinds
        if self.google_like is not None:
            if self.seeds is None:
                raise wrong("`google_like` needs `seeds`")
            names = sorted(field.name for field in fields(GoogleLike))
            for name in self.google_like:
                if name not in names:
                    raise wrong(f"google_like has no parameter {name!r}, known: {', '.join(names)}")
        for name in type(self).model_fields:
            if name not in (*allowed, *allowed[kind]) and getattr(self, name) is not None:
                raise wrong(f"`{name}` does not go with `{kind}`")
        if self.name is not None:
            checked_name(self.name)
        if self.window is not None and not 0.0 <= self.window[0] < self.window[1] < math.inf:
            raise wrong(f"the window must be [begin, end] in s with 0 <= begin < end, got {self.window}")
        return self


class Capacities(_Files):
    """Files of capacities (a path or a glob), or texts such as `walk:range=0.6`.

    With seeds, there is one for each: a path has `{seed}`, and a text gets `seed=`. There is a text for each point of
    the grid, whose names it has in braces. `platforms` are the names of their platforms; default: all.
    """

    spec: str | None = None
    grid: Grid | None = None
    name: str | None = None
    seeds: list[Seed] | None = Field(None, min_length=1)
    platforms: list[str] | None = Field(None, min_length=1)

    @model_validator(mode="after")
    def _one_kind(self) -> Capacities:
        if [self.files, self.spec].count(None) != 1:
            raise wrong("must be a path, or `spec`")
        if self.files is not None and (self.seeds is not None) != ("{seed}" in self.files):
            raise wrong(f"`seeds` and {{seed}} in the path go together, got {self.files!r}")
        for name in ("grid", "name"):
            if self.spec is None and getattr(self, name) is not None:
                raise wrong(f"`{name}` goes with `spec` only")
        if self.spec is not None:
            grid, named = self.grid or {}, label_fields(self.spec, "spec")
            unused = next((name for name in grid if name not in named), None)
            if unused is not None:
                raise wrong(f"the grid has {unused!r}, which is not in the spec: write {unused}={{{unused}}} there")
            _name_of_points(self.spec, grid, "spec")
            checked_grid(grid)
        if self.name is not None:
            _name_of_points(self.name, self.grid or {})
        return self


def points_of(grid: Mapping[str, Sequence[Any]] | None) -> list[dict[str, Any]]:
    """Return all combinations of the values of a grid, the last name varying fastest; without a grid an empty one."""
    return [dict(zip(grid or {}, values, strict=True)) for values in product(*(grid or {}).values())]


def filled(template: str, point: Mapping[str, Any]) -> str:
    """Return a text with the values of a point for the names in braces."""
    return template.format_map({name: plain(value) for name, value in point.items()})


def _name_of_points(template: str, grid: Mapping[str, Sequence[Any]], what: str = "name") -> None:
    """Raise ValueError if a template has a name that is not in the grid, or makes a wrong name of a file."""
    unknown = next((name for name in label_fields(template, what) if name not in grid), None)
    if unknown is not None:
        raise wrong(f"the {what} {template!r} names {unknown!r}, which is not in its grid: give a list of values there")
    for point in points_of(grid) if what == "name" else ():
        checked_name(filled(template, point))


def checked_grid(grid: Mapping[str, Sequence[Any]]) -> None:
    """Raise ValueError unless the values of each list are finite, and differ."""
    for name, values in grid.items():
        try:
            texts = [canonical(value) for value in values]
        except ValueError:
            raise wrong("a number is not finite: give a finite one") from None
        if not values or len(set(texts)) < len(texts):
            raise wrong(f"{name!r} must be a list of different values, got {', '.join(texts) or 'none'}")


class EngineOptions(Declared):
    """Switches of the engine (Batsim's), and the real Batsim's executable and arguments."""

    energy: bool | None = None
    compute_sharing: bool = False
    dynamic_jobs: bool = False
    acknowledge_dynamic_jobs: bool = False
    profile_reuse: bool = False
    forward_profiles: bool = False
    forward_unknown_events: bool = False
    batsim: str = "batsim"
    batsim_args: list[str] = Field(default=[])

    def config(self) -> EngineConfig:
        """Return the options that both engines have."""
        return EngineConfig(**self.model_dump(exclude={"batsim", "batsim_args"}))


class DeclaredCase(Declared):
    """A case outside the grid, as a text (`batwatt.studies.cases`), or as a scheduler with options.

    The comparison's values are defaults of the latter, but not the options of another scheduler.
    """

    label: str | None = None
    case: str | None = None
    scheduler: str | None = None
    options: Options = Field({})
    follow: Follow | None = None

    @model_validator(mode="before")
    @classmethod
    def _text(cls, content: Any) -> Any:
        return {"case": content} if isinstance(content, str) else content

    @model_validator(mode="after")
    def _one_kind(self) -> DeclaredCase:
        if self.case is not None and self.model_fields_set - {"case", "label"}:
            raise wrong("`case` has scheduler and options in its text, as in 'varcap termination=lww'")
        return self


class ComparisonSpec(Declared):
    """A grid (all combinations of its lists) and cases, each on all platforms, workloads, envelopes, capacities, ..."""

    platforms: list[Platforms] = Field([], min_length=1)
    workloads: list[Workloads] = Field([], min_length=1)
    envelopes: list[str] = Field([], min_length=1)
    capacities: list[Capacities] = Field([], min_length=1)
    events: str | None = None
    depends: list[str] = Field([])
    engines: list[EngineName] = Field(["embedded"], min_length=1)
    engine_options: EngineOptions = Field(EngineOptions())
    scheduler: str = "powercap"
    options: Options = Field({})
    follow: Follow = "envelope"
    grid: dict[str, list[JsonValue]] = Field({})
    label: str | None = None
    names: dict[str, str] = Field({})
    cases: list[DeclaredCase] = Field([])
    seeds: list[Seed] | None = Field(None, min_length=1)
    exclude: list[Rule] = Field([])
    keep: bool | list[Rule] = False

    @field_validator("cases", mode="before")
    @classmethod
    def _by_label(cls, cases: Any) -> Any:
        if not isinstance(cases, dict):
            return cases
        return [
            {"label": label, **(case if isinstance(case, dict) else {"case": case})} for label, case in cases.items()
        ]

    @field_validator("grid")
    @classmethod
    def _grid(cls, grid: dict[str, list[Any]]) -> dict[str, list[Any]]:
        _checked(grid)
        checked_grid(grid)
        return grid

    @field_validator("label")
    @classmethod
    def _template(cls, label: str | None) -> str | None:
        if label is not None:
            label_fields(label)
        return label

    @field_validator("keep", mode="before")
    @classmethod
    def _keep(cls, keep: Any) -> Any:
        if not isinstance(keep, bool | list):
            raise wrong(f"must be true, false or a list of rules, got {keep!r}")
        return keep


class StudySpec(Declared):
    """A declared study: its name, its comparisons, and their defaults.

    `not_shipped`: files as they are named in comparisons, and where to get each; comparisons are left out without them.
    """

    name: StudyName
    not_shipped: dict[str, str] = Field(default_factory=dict)
    defaults: ComparisonSpec = ComparisonSpec.model_construct()
    comparisons: dict[str, ComparisonSpec] = Field(min_length=1)

    @model_validator(mode="after")
    def _complete(self) -> StudySpec:
        for name, comparison in self.effective().items():
            for needed in ("platforms", "workloads"):
                if not getattr(comparison, needed):
                    raise wrong(f"the comparison {name!r} has no {needed}: list files under its '{needed}'")
        return self

    def effective(self) -> dict[str, ComparisonSpec]:
        """Return the comparisons, with `defaults` for the keys that they do not have."""
        shared = {name: getattr(self.defaults, name) for name in self.defaults.model_fields_set}
        return {
            name: comparison.model_copy(
                update={key: shared[key] for key in shared.keys() - comparison.model_fields_set}
            )
            for name, comparison in self.comparisons.items()
        }


def label_fields(template: str, what: str = "label") -> list[str]:
    """Return the names in braces of a label, or of a name or a spec (`what`). Raises ValueError."""
    names, example = EXAMPLES[what]
    try:
        parts = list(Formatter().parse(template))
    except ValueError as error:
        raise wrong(f"the {what} {template!r} is not a template ({error}): write {example!r}") from None
    for _, name, form, conversion in parts:
        if name is not None and (not name or form or conversion or not name.replace("_", "").isalnum()):
            raise wrong(f"the {what} {template!r} may hold {names} in braces only, as in {example!r}")
    return [name for _, name, _, _ in parts if name]


def label_of(template: str, options: Mapping[str, Any], names: Mapping[str, str], where: str) -> str:
    """Return the label of a run with such options. Raises InputError."""
    words = {name: names.get(text, text) for name, text in ((name, plain(value)) for name, value in options.items())}
    unknown = next((name for name in label_fields(template) if name not in words), None)
    if unknown is not None:
        hint = f"name one of the comparison's options: {', '.join(words) or 'there are none'}"
        raise InputError(where, f"the label {template!r} names {unknown!r}, which is not an option of all runs", hint)
    return template.format_map(words)


def plain(value: Any) -> str:
    """Return an option's value as a word: a part's name, a text as it is, anything else as JSON."""
    if isinstance(value, dict) and isinstance(value.get("name"), str):
        value = value["name"]
    return value if isinstance(value, str) else canonical(value)
