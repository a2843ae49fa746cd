"""Capacities of a campaign that texts such as `walk:range=0.6` describe; a run makes them for its machines."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields, is_dataclass, replace
from pathlib import Path
from typing import Any

from batwatt.errors import InputError, errors_of
from batwatt.inputs.character import EnergyBudget, Variation, bill
from batwatt.inputs.limits import CAPACITY_KINDS, CapacitySpec, Traced, UnderBudget, Varied, parse_capacity
from batwatt.model.signal import Window
from batwatt.study.files import Choice, InputFile
from batwatt.study.spec import Capacities, canonical, filled, points_of
from batwatt.units import number_text

SEED = "seed"


def _digest(spec: CapacitySpec, files: Sequence[InputFile]) -> str:
    """Return the SHA-256 of a specification and of the content of its files."""
    digests = {file.path: file.sha256 for file in files}
    return hashlib.sha256(canonical(_facts(spec, digests)).encode()).hexdigest()


def within(capacity: Choice, window: Window | None) -> Choice:
    """Return the capacity, levelled until the end of the window unless it is a file or has a time of its own."""
    spec = capacity.inputs["capacity"]
    if window is None or not isinstance(spec, CapacitySpec):
        return capacity
    source = spec.source
    if not isinstance(source, Varied) or source.end_s is not None:
        return capacity
    if source.variation.window_s is not None or source.variation.structure == "constant":
        return capacity
    varied = replace(source, variation=replace(source.variation, window_s=window.end_s))
    spec = replace(spec, source=varied)
    return replace(capacity, inputs={"capacity": spec}, sha256=_digest(spec, capacity.files))


def traits(capacity: Choice | None) -> dict[str, str | float | int | None]:
    """Return the columns of the table that describe a capacity; None where it has no such value."""
    spec = None if capacity is None else capacity.inputs["capacity"]
    if capacity is None or not isinstance(spec, CapacitySpec):
        return {}
    kind, source = spec.text.partition(":")[0], spec.source
    traits: dict[str, str | float | int | None] = {"cap_structure": kind, "cap_seed": dict(capacity.options).get(SEED)}
    if isinstance(source, Varied):
        variation = source.variation
        traits |= {"cap_mean": variation.mean, "cap_range": round(variation.high - variation.low, 9)}
        if kind != "constant":
            traits["cap_period_s"] = variation.period_s
        if kind == "walk":
            traits["cap_step"] = variation.step_fraction
    elif isinstance(source, UnderBudget | Traced):
        traits["cap_period_s"] = source.file.period_s
        if isinstance(source, UnderBudget) and isinstance(source.rule, EnergyBudget):
            traits |= {"cap_mean": source.rule.budget, "cap_headroom": source.rule.headroom}
            traits |= _bill_of(source, source.rule)
    return traits


def _bill_of(source: UnderBudget, budget: EnergyBudget) -> dict[str, float | None]:
    """Return the shares by which it costs or emits less than the fixed capacity of its budget, and is larger."""
    try:
        signal = source.signal()
    except InputError:  # the file went away after the runs
        return {}
    shares = bill(source.fractions(signal.end_s, 1), signal, budget.budget)
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
                spec = parse_capacity(text, base)
            if spec is None:
                kinds = ", ".join(f"{kind}:" for kind in CAPACITY_KINDS)
                raise InputError(where, f"{text!r} describes no capacity", f"it begins with one of {kinds}")
            spec, files = _with_file(spec, where, base, file)
            name = filled(entry.name, point) if entry.name else _name(spec)
            name += "" if seed is None else f"-s{seed}"
            # a scheduler that has a seed gets that of the capacity, so that repetitions draw numbers of their own
            options = () if seed is None else ((SEED, seed),)
            choices.append(Choice(name, _digest(spec, files), name, {"capacity": spec}, files, options, own))
    return choices


def _with_file(
    spec: CapacitySpec, where: str, base: Path, file: Callable[[str, str], InputFile]
) -> tuple[CapacitySpec, tuple[InputFile, ...]]:
    """Return the specification with the absolute path of its file, and the file."""
    source = spec.source
    if not isinstance(source, UnderBudget | Traced):
        return spec, ()
    path = source.file.path
    input_file = file(str(path.relative_to(base) if path.is_relative_to(base) else path), where)
    return replace(spec, source=replace(source, file=replace(source.file, path=input_file.path))), (input_file,)


def _name(spec: CapacitySpec) -> str:
    """Return a name as `walk-0.6-0.15-3600` (range, step, period) or `carbon-DE-0.7-1.2` (file and values)."""
    source = spec.source
    kind, _, words = spec.text.partition(":")
    pairs = [(key, value) for key, mark, value in (word.partition("=") for word in words.split(",")) if mark]
    if not isinstance(source, Varied):
        stems = [path.stem for path in spec.files()]
        return "-".join([kind, *stems, *(value for key, value in pairs if key != "repeat")])
    variation = source.variation
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
    if is_dataclass(value):
        named = {field.name: _facts(getattr(value, field.name), digests) for field in fields(value) if field.compare}
        if isinstance(value, Variation):
            # the default step, written out, is the same
            named["step"] = value.step_fraction
        return {"kind": type(value).__name__, **named}
    return value
