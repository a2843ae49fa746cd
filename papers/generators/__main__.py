"""Write generated job traces, workloads and walks: one file, or the inputs of studies.

    python -m papers.generators varcap like=tng jobs=30000 machines=48 --seed 1 -o jobs.csv
    python -m papers.generators papers/varcap/inputs.yaml small

The first form writes a file of a generator with these parameters: `pmbs` (jobs of the riskaware paper, as text),
`varcap` (jobs of the varcap dissertation, as CSV), `pm100` (a workload with power per job, as JSON) or `walk` (machines
over time, as CSV). The second form writes the files of studies (without names: of all) of a declaration, a file for
each seed and each point of a grid, to `inputs/STUDY/` beside it.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any, NamedTuple

import yaml

from batwatt.errors import InputError, UnknownNameError
from batwatt.files import read_text, write_text
from batwatt.inputs.formats import to_riskaware
from batwatt.inputs.google_like import to_text
from batwatt.inputs.signal import to_csv
from batwatt.studies.spec import filled, points_of
from batwatt.units import number_text
from papers.generators.pm100 import Pm100Like, pm100_like
from papers.generators.pmbs import Synthetic, Walk, random_walk, synthetic
from papers.generators.varcap import VarcapLike, varcap_table


class Generator(NamedTuple):
    """A kind of generated file: class of its parameters, suffix, text, and usual name without the seed."""

    parameters: type[Any]
    suffix: str
    text: Callable[[Any, int], str]
    stem: Callable[[Any], str]


GENERATORS = {
    "pmbs": Generator(
        Synthetic,
        ".txt",
        lambda params, seed: to_riskaware(synthetic(params, seed)),
        lambda params: f"{params.kind}-{params.jobs}",
    ),
    "varcap": Generator(
        VarcapLike,
        ".csv",
        lambda params, seed: varcap_table(params, seed).to_csv(index=False, lineterminator="\n"),
        lambda params: f"{params.like}-{params.jobs or round(params.expected_jobs)}",
    ),
    "pm100": Generator(
        Pm100Like,
        ".json",
        lambda params, seed: to_text(pm100_like(params, seed)),
        lambda params: f"pm100-{params.jobs}",
    ),
    "walk": Generator(
        Walk,
        ".csv",
        lambda walk, seed: to_csv(random_walk(walk, seed)),
        lambda walk: f"walk-{walk.mean}-{walk.range}-{number_text(walk.period_s)}",
    ),
}


def parameters_of(kind: str, values: Mapping[str, Any]) -> Any:
    """Return the checked parameters of a generator. Raises InputError."""
    if kind not in GENERATORS:
        raise UnknownNameError("KIND", "generator", kind, GENERATORS, "Choose one of these.")
    names = [field.name for field in fields(GENERATORS[kind].parameters)]
    for name in values:
        if name not in names:
            raise UnknownNameError(kind, "parameter", name, names, "Correct it.")
    return GENERATORS[kind].parameters(**values)


def files_of(declared: Path, study: str) -> Iterator[tuple[Path, str]]:
    """Yield the path and the text of each file of a study. Raises InputError."""
    studies = yaml.safe_load(read_text(declared))
    if study not in studies:
        raise UnknownNameError(declared, "study", study, studies, "Correct it.")
    for entry in studies[study]:
        kind = next(iter(entry))
        for point in points_of(entry.get("grid")):
            params = parameters_of(kind, entry[kind] | point)
            generator = GENERATORS[kind]
            stem = filled(entry["name"], point) if "name" in entry else generator.stem(params)
            for seed in entry["seeds"]:
                path = declared.parent / "inputs" / study / f"{stem}-{seed}{generator.suffix}"
                yield path, generator.text(params, seed)


def write_studies(declared: Path, studies: list[str]) -> None:
    """Write the files of studies, of all without names. Raises InputError."""
    for study in studies or yaml.safe_load(read_text(declared)):
        for path, text in files_of(declared, study):
            write_text(path, text)


def main(words: list[str]) -> int:
    """Write files; return 2 after an error of the command line."""
    parser = argparse.ArgumentParser(prog="python -m papers.generators", description=__doc__.splitlines()[0])
    parser.add_argument("kind", metavar="KIND", help=f"{', '.join(GENERATORS)}, or a declaration of inputs (YAML)")
    parser.add_argument("values", nargs="*", help="parameters as NAME=VALUE, or names of studies")
    parser.add_argument("--seed", type=int, default=0, help="seed of the random numbers (0)")
    parser.add_argument("-o", "--output", type=Path, help="file (standard output)")
    read = parser.parse_args(words)
    try:
        if read.kind.endswith(".yaml"):
            write_studies(Path(read.kind), read.values)
            return 0
        values = {name: yaml.safe_load(text) for name, _, text in (word.partition("=") for word in read.values)}
        params = parameters_of(read.kind, values)
        text = GENERATORS[read.kind].text(params, read.seed)
        if read.output is None:
            sys.stdout.write(text)
        else:
            write_text(read.output, text)
    except InputError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
