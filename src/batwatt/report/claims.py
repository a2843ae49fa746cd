"""Claims of a paper compared with the numbers of a campaign: means with their errors, verdicts, and their table."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Protocol

import pandas as pd

from batwatt.report.grid import GridColumn, Table

YES, NO, OPEN = "yes", "no", "open"
SURE = 2.0
"""So many standard errors must lie between a number and the threshold of a claim to decide it."""
Numbers = pd.Series | tuple[pd.Series, pd.Series]
"""Those of the instances, or of two samples of them."""


class Said(Protocol):
    """A sentence of a paper, put as: a number is above `threshold`; None where the paper gives no bound."""

    @property
    def name(self) -> str:
        """Its name in the files."""

    @property
    def says(self) -> str:
        """The sentence."""

    @property
    def unit(self) -> str:
        """Unit of the number."""

    @property
    def threshold(self) -> float | None:
        """The bound."""


def mean_of(numbers: Numbers) -> tuple[float, float, int]:
    """Mean, its standard error (NaN of one instance) and instances; of two samples, of the difference of means."""
    if isinstance(numbers, tuple):
        (first, error, count), (second, other, more) = (mean_of(part) for part in numbers)
        return first - second, math.hypot(error, other), count + more
    count = len(numbers)
    error = float(numbers.std()) / math.sqrt(count) if count > 1 else math.nan
    return float(numbers.mean()), error, count


def verdict_of(threshold: float | None, number: float, error: float, sure: float = SURE) -> str:
    """Whether a number is above the threshold by `sure` standard errors, below it, or neither; none without one."""
    if threshold is None:
        return ""
    # neither of these is true of an infinite error, or of none
    if number - sure * error > threshold:
        return YES
    return NO if number + sure * error < threshold else OPEN


def claims_grid(found: pd.DataFrame, said: Sequence[Said], heading: str, points: str, notes: Sequence[str]) -> Table:
    """How often each claim holds in `found` (claim, number, verdict), and the least, the mean and the largest number.

    Claims without a number are left out. `heading` is that of the sentences, `points` says what is counted.
    """
    rows = []
    for claim in said:
        part = found[found["claim"] == claim.name]
        numbers = part["number"].dropna()
        if numbers.empty:
            continue
        counts = [int((part["verdict"] == verdict).sum()) if claim.threshold is not None else math.nan
                  for verdict in (YES, OPEN, NO)]  # fmt: skip
        rows.append((claim.says, len(part), *counts, claim.unit, numbers.min(), numbers.mean(), numbers.max()))
    names = ["label", "points", YES, OPEN, NO, "unit", "least", "mean", "largest"]
    columns = (
        GridColumn("label", heading),
        GridColumn("points", "numbers", "", points, 0),
        *(GridColumn(name, name, "so it is here", "", 0) for name in (YES, OPEN, NO)),
        GridColumn("unit", "in", "by how much"),
        *(GridColumn(name, name, "by how much", "", 2) for name in names[6:]),
    )
    frame = pd.DataFrame(rows, columns=names)
    return Table("claims", "What the paper claims", columns, frame, len(frame), tuple(notes), by_label=False)
