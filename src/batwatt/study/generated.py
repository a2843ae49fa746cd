"""Capacities of a campaign that texts such as `walk:range=0.6` describe; a run makes them for its machines."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields, is_dataclass, replace
from pathlib import Path
from typing import Any

from batwatt.errors import InputError, errors_of
from batwatt.inputs.character import EnergyBudget, Variation, bill
from batwatt.inputs.spec import FileTerm, SeriesSpec, ShareTerm, Term, kinds_of_series, names_kind, parse_series
from batwatt.model.signal import Window
from batwatt.study.files import Choice, InputFile
from batwatt.study.spec import Capacities, canonical, filled, points_of
from batwatt.units import number_text

SEED = "seed"


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
