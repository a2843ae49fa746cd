"""Reader and writer of job traces in the riskaware paper's format: `id release length cores`, one job per line."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

import numpy as np

from batwatt.checks import SHOWN, number_in_file
from batwatt.errors import InputError
from batwatt.files import open_text
from batwatt.inputs.traces.trace import TraceJob
from batwatt.inputs.traces.trace_table import TraceTable
from batwatt.units import microseconds, number_text

_FIELDS = ("id", "release", "length", "cores")
_HINT = f"write '{' '.join(_FIELDS)}' with blanks between, times in seconds"


def read_riskaware(path: Path | str) -> TraceTable:
    """Read the jobs of a text file (or `.gz`), in its order, which may differ from that of their release.

    A line is `id release length cores [anything]`, with release and length in s, rounded to the microsecond, the
    resolution of Batsim's times. Empty lines are skipped. Raises InputError with the line number.
    """
    with open_text(path) as stream:
        lines = {number: words for number, line in enumerate(stream, start=1) if (words := line.split())}
    if not lines:
        raise InputError(path, "holds no job", _HINT)
    if min(map(len, lines.values())) >= len(_FIELDS):
        ids, *numbers = list(zip(*lines.values(), strict=False))[: len(_FIELDS)]
        text = "".join(map("".join, numbers))
        # most files have whole numbers, which need no check if they fit a float
        if text.isascii() and text.isdigit() and max(max(map(len, column)) for column in numbers) <= 15:
            release_s, length_s, cores = (np.array(list(map(float, column))) for column in numbers)
            if length_s.all() and cores.all() and len(set(ids)) == len(ids):
                return TraceTable(np.array(ids, dtype=object), release_s, length_s, cores)
    return TraceTable.of(_jobs(lines, path), path)


def _jobs(lines: Mapping[int, list[str]], path: Path | str) -> Iterator[TraceJob]:
    """Yield the jobs of lines by number. Raises InputError."""
    first: dict[str, int] = {}
    for number, words in lines.items():
        job = _job(words, f"{path}: line {number}")
        if first.setdefault(job.id, number) != number:
            problem = f"a second job {job.id!r} (the first is on line {first[job.id]})"
            raise InputError(f"{path}: line {number}", problem, "give each job an id of its own")
        yield job


def to_riskaware(jobs: Iterable[TraceJob]) -> str:
    """Return the jobs as lines `id release length cores`, in their order, which `read_riskaware` reads."""
    return "".join(f"{job.id} {number_text(job.submit_s)} {number_text(job.run_s)} {job.cpus}\n" for job in jobs)


def _job(words: list[str], where: str) -> TraceJob:
    if len(words) < len(_FIELDS):
        raise InputError(where, f"has {len(words)} fields, a job has at least {len(_FIELDS)}", _HINT)
    release_s, length_s, cores = (
        number_in_file(where, name, word, _HINT) for name, word in zip(_FIELDS[1:], words[1:4], strict=True)
    )
    length_s = microseconds(length_s)
    if not release_s >= 0.0:
        raise InputError(where, f"release must be >= 0 s, got {words[1][:SHOWN]}", "shift all times to begin at 0")
    if not length_s > 0.0:
        raise InputError(where, f"length must be > 0 s, got {words[2][:SHOWN]}", "leave jobs without a length out")
    if not (cores >= 1.0 and cores.is_integer()):
        raise InputError(where, f"cores must be a whole number >= 1, got {words[3][:SHOWN]}", "correct the line")
    return TraceJob(id=words[0], submit_s=microseconds(release_s), run_s=length_s, cpus=int(cores))
