"""A trace of jobs as columns, for traces of many jobs: a tenth of the memory of a list of them, and faster to make."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from types import MappingProxyType
from typing import Any, overload

import numpy as np
import numpy.typing as npt

from batwatt.inputs.traces.trace import TraceJob
from batwatt.model.workload import CHECKPOINT_S, DEPENDS, MEMORY, RECOVERY_S, USE

Column = npt.NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class TraceTable(Sequence[TraceJob]):
    """Jobs "1", "2", ...: times in s, `numbers` their ids, NaN where what may be missing is unknown.

    Reading it as a sequence gives the jobs one by one.
    """

    numbers: npt.NDArray[np.int64]
    submit_s: Column
    run_s: Column
    cpus: npt.NDArray[np.int64]
    requested_s: Column | None = None
    memory: Column | None = None
    use: Column | None = None
    checkpoint_s: Column | None = None
    recovery_s: Column | None = None
    depends: Mapping[int, list[str]] = field(default_factory=lambda: MappingProxyType({}))
    """By row, the ids of the jobs that must complete first."""

    def __len__(self) -> int:
        return len(self.numbers)

    @overload
    def __getitem__(self, index: int) -> TraceJob: ...
    @overload
    def __getitem__(self, index: slice) -> list[TraceJob]: ...
    def __getitem__(self, index: int | slice) -> TraceJob | list[TraceJob]:
        """The job of a row."""
        if isinstance(index, slice):
            return [self[row] for row in range(*index.indices(len(self)))]
        row = range(len(self))[index]
        return TraceJob(
            id=str(self.numbers[row]),
            submit_s=float(self.submit_s[row]),
            run_s=float(self.run_s[row]),
            cpus=int(self.cpus[row]),
            requested_s=_known(self.requested_s, row),
            extra=self._extra(row),
        )

    def __iter__(self) -> Iterator[TraceJob]:
        return (self[row] for row in range(len(self)))

    def where(self, kept: npt.NDArray[np.bool_]) -> TraceTable:
        """The rows for which `kept` is true, with their ids."""
        return self if kept.all() else self.rows(np.flatnonzero(kept))

    def rows(self, rows: npt.NDArray[np.int64]) -> TraceTable:
        """These rows in this order, each at most once, with their ids."""
        places = dict(zip(rows.tolist(), range(len(rows)), strict=True)) if self.depends else {}
        held: dict[str, Any] = {name: None if (of := getattr(self, name)) is None else of[rows] for name in COLUMNS}
        depends = {places[row]: names for row, names in self.depends.items() if row in places}
        return TraceTable(**held, depends=depends)

    def _extra(self, row: int) -> dict[str, object]:
        known = {
            MEMORY: _known(self.memory, row),
            USE: _known(self.use, row),
            CHECKPOINT_S: _known(self.checkpoint_s, row),
            RECOVERY_S: _known(self.recovery_s, row),
            DEPENDS: self.depends.get(row),
        }
        return {name: value for name, value in known.items() if value is not None}


COLUMNS = tuple(column.name for column in fields(TraceTable) if column.name != "depends")
"""What has a value for each row."""


def _known(column: Column | None, row: int) -> float | None:
    """The value of a row, None if it is not known."""
    value = None if column is None else float(column[row])
    return None if value is None or value != value else value
