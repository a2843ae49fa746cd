"""Claims of a paper compared with the numbers of a campaign: means with their errors, verdicts, and their table."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Literal

import pandas as pd

from batwatt.report.grid import GridColumn, Table

YES, NO, OPEN = "yes", "no", "open"
SURE = 2.0
"""So many standard errors must lie between a number and the threshold of a claim to decide it."""
QUANTILES = (12.71, 4.30, 3.18, 2.78, 2.57, 2.45, 2.36, 2.31, 2.26, 2.23, 2.20, 2.18, 2.16, 2.14, 2.13,
             2.12, 2.11, 2.10, 2.09, 2.09, 2.08, 2.07, 2.07, 2.06, 2.06, 2.06, 2.05, 2.05, 2.05, 2.04)  # fmt: skip
"""Student's t, two-sided at 95 %, of 1, 2, ... degrees of freedom; of more it is `SURE`."""
Numbers = pd.Series | tuple[pd.Series, pd.Series]
"""Those of the instances, or of two samples of them."""


How = Literal["difference", "more", "less", "times"]


@dataclass(frozen=True)
class PaperClaim:
    """A sentence of a paper, put as: the number is above `threshold`, of the first compared with the second.

    `how`: `difference`, first - second; `more`, by how many % the first is more than the second; `less`, by how many %
    the second is less than the first; `times`, first / second.
    """

    name: str
    says: str
    _: KW_ONLY
    measure: str
    how: How
    threshold: float | None = 0.0
    """None where the paper gives no bound: numbers only."""

    @property
    def unit(self) -> str:
        """Unit of its numbers; that of a difference follows from the name of the measure."""
        if self.how == "difference":
            units = {"percent": "% points", "min": "min", "h": "h"}
            return units.get(self.measure.rpartition("_")[2], "")
        return self.how if self.how == "times" else f"% {self.how}"

    def compared(self, first: pd.Series, second: pd.Series) -> pd.Series:
        """The numbers of pairs; of a quotient, NaN where what it is divided by is 0."""
        if self.how == "difference":
            return first - second
        if self.how == "less":
            return 100.0 * (1.0 - second / first.where(first != 0.0))
        quotient = first / second.where(second != 0.0)
        return 100.0 * (quotient - 1.0) if self.how == "more" else quotient


def mean_of(numbers: Numbers) -> tuple[float, float, int]:
    """Mean, its standard error (NaN of one instance) and instances; of two samples, of the difference of means."""
    if isinstance(numbers, tuple):
        (first, error, count), (second, other, more) = (mean_of(part) for part in numbers)
        return first - second, math.hypot(error, other), count + more
    count = len(numbers)
    error = float(numbers.std()) / math.sqrt(count) if count > 1 else math.nan
    return float(numbers.mean()), error, count


def sure(instances: int) -> float:
    """The number of standard errors of a mean of some instances that holds what is true in 95 of 100 cases."""
    return QUANTILES[instances - 2] if 2 <= instances < len(QUANTILES) + 2 else SURE


def verdict_of(threshold: float | None, number: float, error: float, sure: float = SURE) -> str:
    """Whether a number is above the threshold by `sure` standard errors, below it, or neither; none without one."""
    if threshold is None:
        return ""
    # neither of these is true of an infinite error, or of none
    if number - sure * error > threshold:
        return YES
    return NO if number + sure * error < threshold else OPEN


def numbers(means: pd.DataFrame, claimed: pd.DataFrame) -> dict[str, pd.DataFrame]:
    """The files with what is behind figures and claims."""
    return {"means.csv": means} | ({} if claimed.empty else {"claims-numbers.csv": claimed})


def claims_tables(
    found: pd.DataFrame, claims: Sequence[PaperClaim], heading: str, points: str, note: str
) -> list[Table]:
    """How often each claim holds in `found` (claim, number, verdict), and the least, the mean and the largest number.

    Claims without a number are left out; no table of none. `heading` is that of the sentences, `points` says what is
    counted.
    """
    rows = []
    for claim in claims:
        part = found[found["claim"] == claim.name]
        known = part["number"].dropna()
        if known.empty:
            continue
        counts = [int((part["verdict"] == verdict).sum()) if claim.threshold is not None else math.nan
                  for verdict in (YES, OPEN, NO)]  # fmt: skip
        rows.append((claim.says, len(part), *counts, claim.unit, known.min(), known.mean(), known.max()))
    names = ["label", "points", YES, OPEN, NO, "unit", "least", "mean", "largest"]
    columns = (
        GridColumn("label", heading),
        GridColumn("points", "numbers", "", points, 0),
        *(GridColumn(name, name, "so it is here", "", 0) for name in (YES, OPEN, NO)),
        GridColumn("unit", "in", "by how much"),
        *(GridColumn(name, name, "by how much", "", 2) for name in names[6:]),
    )
    frame = pd.DataFrame(rows, columns=names)
    notes = (note, "Every number with its standard error is in claims-numbers.csv.")
    table = Table("claims", "What the paper claims", columns, frame, len(frame), notes, by_label=False)
    return [table] if rows else []
