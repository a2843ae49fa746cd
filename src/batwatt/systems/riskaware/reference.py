"""How long a job is among those of a reference: its category (riskaware paper, section 4.3)."""

from __future__ import annotations

import csv
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike, NDArray

from batwatt.checks import finite
from batwatt.errors import InputError
from batwatt.inputs.traces.riskaware_text import read_riskaware
from batwatt.inputs.traces.trace import csv_rows, open_text

BORG_WEEK = Path(__file__).with_name("borg_week.csv")
"""Lengths in a week of the Google Borg trace (CC-BY): the reference of the authors' experiments with Borg traces."""
LONGEST_S = 604_800.0
"""Longer jobs of a reference count as this long: a week."""
COLUMNS = ("length_s", "area_core_s")


@dataclass(frozen=True)
class Reference:
    """Distinct lengths in s, ascending, and the area in core-seconds of all jobs of each length."""

    lengths_s: NDArray[np.float64]
    areas_core_s: NDArray[np.float64]

    @classmethod
    def of(cls, lengths_s: ArrayLike, cores: ArrayLike, longest_s: float = LONGEST_S) -> Reference:
        """The reference that some jobs make; jobs longer than `longest_s` count as that long."""
        capped = np.minimum(np.asarray(lengths_s, dtype=np.float64), longest_s)
        distinct, place = np.unique(capped, return_inverse=True)
        areas = np.bincount(place, capped * np.asarray(cores, dtype=np.float64), len(distinct))
        return cls(distinct, areas.astype(np.float64))

    def quantiles_s(self, count: int) -> NDArray[np.float64]:
        """For k = 1 ... count - 1 the least length such that more than k / count of the area is in no longer jobs."""
        below = np.cumsum(self.areas_core_s)
        shares = below[-1] * np.arange(1, count) / count
        return self.lengths_s[np.searchsorted(below, shares, side="right")]

    def share_not_shorter(self, lengths_s: ArrayLike) -> NDArray[np.float64]:
        """C_i for each length w_i: the share of the area that is in jobs with w_k >= w_i. Section 4.3."""
        below = np.concatenate([[0.0], np.cumsum(self.areas_core_s)])
        return np.asarray(1.0 - below[np.searchsorted(self.lengths_s, lengths_s, side="left")] / below[-1])


@dataclass(frozen=True)
class Categories:
    """Category of a length by a reference: from 0 for what is longer than all of it to 1 for what is shorter.

    With `quantiles` > 0 it is 1 - k / quantiles if k of the area-weighted quantiles are no longer than the job, as in
    the authors' experiments (1000); with 0 it is C_i exactly. `longest_as_shortest`: a job as long as the last
    quantile has category 1; the authors' program has it so, the paper does not.
    """

    reference: Reference
    quantiles: int = 1000
    longest_as_shortest: bool = True

    @cached_property
    def _limits(self) -> NDArray[np.float64]:
        return self.reference.quantiles_s(self.quantiles)

    def of(self, lengths_s: ArrayLike) -> NDArray[np.float64]:
        """The categories of some lengths in s."""
        lengths = np.asarray(lengths_s, dtype=np.float64)
        if not self.quantiles:
            return self.reference.share_not_shorter(lengths)
        limits = self._limits
        passed = np.searchsorted(limits, lengths, side="right")
        if self.longest_as_shortest and len(limits):
            passed[lengths == limits[-1]] = 0
        return np.asarray(1.0 - passed / self.quantiles)


def read_reference(path: Path | str, longest_s: float = LONGEST_S) -> Reference:
    """A reference from a CSV file `length_s,area_core_s`, or of the jobs of a trace in the riskaware paper's format.

    The last ones are cached, as a campaign has many runs with the same. Raises InputError.
    """
    try:
        state = Path(path).stat()
        version = state.st_mtime_ns, state.st_size
    except (OSError, ValueError):
        version = None  # why is said when it is opened
    return _read(str(path), longest_s, version)


@lru_cache(maxsize=4)
def _read(path: str, longest_s: float, version: tuple[int, int] | None) -> Reference:
    with open_text(path) as stream:
        header = [cell.strip() for cell in next(stream, "").split(",")]
        if header == list(COLUMNS):
            return _of_rows(csv_rows(csv.reader(stream), path, f"write {','.join(COLUMNS)} rows"), path)
    jobs = read_riskaware(path)
    return Reference.of([job.run_s for job in jobs], [job.cpus for job in jobs], longest_s)


def _of_rows(rows: Iterable[list[str]], path: Path | str) -> Reference:
    table: list[tuple[float, float]] = []
    for number, row in enumerate(rows, start=2):
        try:
            length_s, area = (finite(cell) for cell in row)
            if not (length_s > 0.0 and area > 0.0 and (not table or length_s > table[-1][0])):
                raise ValueError
        except ValueError:
            problem = f"{','.join(row)[:60]!r} is not a length and an area, both > 0, lengths ascending"
            raise InputError(f"{path}: line {number}", problem, f"write {','.join(COLUMNS)} rows") from None
        table.append((length_s, area))
    if not table:
        raise InputError(path, "has no rows", f"write {','.join(COLUMNS)} rows")
    lengths, areas = np.array(table).T
    return Reference(lengths, areas)
