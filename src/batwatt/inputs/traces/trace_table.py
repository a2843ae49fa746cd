"""A trace of jobs as columns, with a tenth of the memory of a list of jobs, and faster to read and to cut."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import overload

import numpy as np
import numpy.typing as npt

from batwatt.checks import SHOWN, number_named
from batwatt.errors import InputError
from batwatt.inputs.traces.trace import TraceJob
from batwatt.model.workload import (
    CHECKPOINT_S,
    DEPENDS,
    ESTIMATE,
    LABELS,
    MEMORY,
    POWER_MAX_W,
    POWER_STD_W,
    POWER_W,
    RECOVERY_S,
    START_S,
    USE,
)
from batwatt.units import microseconds

Column = npt.NDArray[np.float64]
Texts = npt.NDArray[np.object_]
Test = Callable[[Column], npt.NDArray[np.bool_]]

_NOT_NEGATIVE: tuple[Test, str] = (lambda values: (values >= 0.0) & np.isfinite(values), ">= 0")
NEEDS: dict[str, tuple[Test, str]] = {
    MEMORY: _NOT_NEGATIVE,
    ESTIMATE: (np.isfinite, "finite"),
    USE: (lambda values: (values > 0.0) & (values <= 1.0), "in ]0, 1]"),
    CHECKPOINT_S: _NOT_NEGATIVE,
    RECOVERY_S: _NOT_NEGATIVE,
    POWER_W: _NOT_NEGATIVE,
    POWER_STD_W: _NOT_NEGATIVE,
    POWER_MAX_W: _NOT_NEGATIVE,
    START_S: _NOT_NEGATIVE,
}
"""Field of a Batsim job -> test of its valid values in a trace, and the text of the test. An estimate of 0 s or less is
unknown."""
COLUMNS = ("submission_time_s", "length_s", "hosts")
"""Columns that each table of jobs has."""
ALIASES = dict(zip(("arrival_time", "length", "cpus"), COLUMNS, strict=True))
ALIASES |= {"estimate": ESTIMATE, "walltime": ESTIMATE, "start": START_S}
"""Other names of columns of jobs, whose times are in the unit of a file, not in s."""


@dataclass(frozen=True, eq=False)
class TraceTable(Sequence[TraceJob]):
    """Jobs by row: ids, times in s to the microsecond, and columns of NEEDS, NaN for unknown values.

    `labels` are columns of LABELS, empty texts for unknown values; equal texts are one object.

    As a sequence, the table contains the jobs.
    """

    ids: Texts
    submit_s: Column
    run_s: Column
    cpus: Column
    needs: Mapping[str, Column] = field(default_factory=dict)
    depends: Mapping[str, Sequence[str]] = field(default_factory=dict)
    """Id -> ids of the jobs that must complete first."""
    labels: Mapping[str, Texts] = field(default_factory=dict)
    origin_s: float | None = None
    """The date of 0 s of the times, in s since 1970, or None."""

    @classmethod
    def of(cls, jobs: Iterable[TraceJob], source: object) -> TraceTable:
        """Build the table of some jobs, without further extra fields. Raises InputError, which names `source`."""
        if isinstance(jobs, TraceTable):
            return jobs
        jobs = list(jobs)
        needs = {}
        for name in NEEDS:
            cells = [job.requested_s if name == ESTIMATE else job.extra.get(name) for job in jobs]
            if any(value is not None for value in cells):
                values = [
                    need(f"{source}: job {job.id!r}", name, value) for job, value in zip(jobs, cells, strict=True)
                ]
                needs[name] = np.array(values, dtype=float)
        return cls(
            np.array([job.id for job in jobs], dtype=object),
            np.array([microseconds(float(job.submit_s)) for job in jobs]),
            np.array([microseconds(float(job.run_s)) for job in jobs]),
            np.array([job.cpus for job in jobs], dtype=float),
            needs,
            {job.id: _ids(job, source) for job in jobs if DEPENDS in job.extra},
            {
                name: labels_of([str(job.extra.get(name, "")).strip() for job in jobs])
                for name in LABELS
                if any(name in job.extra for job in jobs)
            },
        )

    def __len__(self) -> int:
        return len(self.ids)

    @overload
    def __getitem__(self, index: int) -> TraceJob: ...
    @overload
    def __getitem__(self, index: slice) -> list[TraceJob]: ...
    def __getitem__(self, index: int | slice) -> TraceJob | list[TraceJob]:
        """Return the job of a row."""
        if isinstance(index, slice):
            return [self[row] for row in range(*index.indices(len(self)))]
        id = self.ids[index]
        values = {name: float(column[index]) for name, column in self.needs.items()}
        present = {name: value for name, value in values.items() if value == value}
        requested_s = present.pop(ESTIMATE, None)
        depends: dict[str, object] = {DEPENDS: self.depends[id]} if id in self.depends else {}
        labels = {name: column[index] for name, column in self.labels.items() if column[index]}
        times = float(self.submit_s[index]), float(self.run_s[index])
        return TraceJob(id, *times, int(self.cpus[index]), requested_s, {**present, **labels, **depends})

    def __iter__(self) -> Iterator[TraceJob]:
        return (self[row] for row in range(len(self)))

    def rows(self, rows: npt.NDArray[np.int64] | npt.NDArray[np.bool_]) -> TraceTable:
        """Return the table of the rows of some numbers, in their order, or of a mask."""
        columns = {name: getattr(self, name)[rows] for name in ("ids", "submit_s", "run_s", "cpus")}
        needs = {name: column[rows] for name, column in self.needs.items()}
        labels = {name: column[rows] for name, column in self.labels.items()}
        return replace(self, **columns, needs=needs, labels=labels)


def labels_of(texts: Iterable[str]) -> Texts:
    """Return a column of texts in which equal texts are one object."""
    once: dict[str, str] = {}
    return np.array([once.setdefault(text, text) for text in texts], dtype=object)


def need(where: object, name: str, value: object, factor: float = 1.0) -> float | None:
    """Return a value of NEEDS times `factor`, to 6 decimals; None if unknown. Raises InputError."""
    if value is None:
        return None
    number = number_named(where, name, value, "write a finite number")
    allowed, bounds = NEEDS[ALIASES.get(name, name)]
    if not allowed(np.array(number)):
        got = str(value).strip()[:SHOWN]
        raise InputError(where, f"{name} must be {bounds}, got {got}", "leave it empty if it is unknown")
    return None if bounds == "finite" and not number > 0.0 else round(number * factor, 6)


def rounded(values: Column) -> Column:
    """Return the values rounded to 6 decimals by `round`."""
    values = np.array(values, dtype=float)
    (odd,) = np.nonzero((values != np.floor(values)) & ~np.isnan(values))
    values[odd] = [round(value, 6) for value in values[odd].tolist()]
    return values


def _ids(job: TraceJob, source: object) -> list[str]:
    names = job.extra[DEPENDS]
    if not isinstance(names, list | tuple) or not all(isinstance(name, str) for name in names):
        problem = f"{DEPENDS} must be a list of ids, got {names!r}"
        raise InputError(f"{source}: job {job.id!r}", problem, 'write for instance ["17"]')
    return list(names)
