"""What the riskaware paper claims in section 6, and the numbers of a campaign next to it."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

import pandas as pd

from batwatt.report.claims import NO, OPEN, SURE, YES, How, Numbers, PaperClaim, claims_tables, mean_of, verdict_of
from batwatt.report.grid import Table, written
from batwatt.report.papers import pmbs23
from batwatt.report.table import INSTANCE

AWARE, UNAWARE, STRETCH, ASAP, PACKED = pmbs23.STRATEGIES.values()
FIRST_FIT = (AWARE, UNAWARE)
FEWEST = 5
"""Of fewer instances nothing is decided."""
COLUMNS = ("claim", "parameter", "panel", "value", "measure", "first", "second", "number", "standard_error",
           "instances", "verdict")  # fmt: skip
Pairs = tuple[tuple[str, str], ...]


@dataclass(frozen=True, kw_only=True)
class SweptClaim(PaperClaim, ABC):
    """A claim of what varies in some sweeps."""

    measure: str = pmbs23.GOODPUT.name
    how: How = "difference"
    parameter: pmbs23.Parameter | None = None
    """The sweep that the paper says it of; None for all."""
    types: tuple[str, ...] = ()
    """The types of workloads that it says it of; empty for all."""

    @abstractmethod
    def rows(self, panel: pmbs23.Panel) -> Iterator[tuple[str, str, str, Numbers]]:
        """Value, first, second, and the numbers of the instances whose mean is asked for."""


@dataclass(frozen=True, kw_only=True)
class Compared(SweptClaim):
    """The first of each pair is compared with the second on the same instance."""

    pairs: Pairs

    def rows(self, panel: pmbs23.Panel) -> Iterator[tuple[str, str, str, Numbers]]:
        """A row per value and pair; its numbers are of the instances that both were run on."""
        wide = panel.rows.pivot_table(index=["value", *INSTANCE], columns="label", values=self.measure)
        for value in panel.values:
            here = wide[wide.index.get_level_values("value") == value]
            for first, second in self.pairs:
                if first in here and second in here:
                    yield written(value), first, second, self.compared(here[first], here[second]).dropna()


@dataclass(frozen=True, kw_only=True)
class Trend(SweptClaim):
    """The measure is larger at the end of a span of the parameter than at its begin; smaller if `falling`."""

    span: tuple[float, float] | None = None
    """None for the least and the largest value."""
    falling: bool = False
    labels: tuple[str, ...] = tuple(pmbs23.STRATEGIES.values())
    """The strategies that it is said of."""

    def rows(self, panel: pmbs23.Panel) -> Iterator[tuple[str, str, str, Numbers]]:
        """A row per strategy; its numbers are those at both ends, whose instances are different ones."""
        begin, end = self.span or (panel.values[0], panel.values[-1])
        for label in self.labels:
            rows = panel.rows[panel.rows["label"] == label]
            low, high = (rows.loc[rows["value"] == value, self.measure].dropna() for value in (begin, end))
            if len(low) and len(high):
                ends = (low, high) if self.falling else (high, low)
                yield f"{written(begin)} to {written(end)}", label, "", ends


_OTHERS = (*FIRST_FIT, ASAP, PACKED)
_OVER_STRETCH: Pairs = tuple(product(_OTHERS, [STRETCH]))
_ON_BORG: dict[str, Any] = {"parameter": pmbs23.RANGE, "types": (pmbs23.BORG,)}
CLAIMS: tuple[SweptClaim, ...] = (
    Compared("asap-over-first-fit", "TargetASAP and PackedTargetASAP always have more goodput than FirstFitAware and "
             "FirstFitUnaware.", pairs=tuple(product((ASAP, PACKED), FIRST_FIT))),
    Compared("packed-over-asap", "PackedTargetASAP has slightly more goodput than TargetASAP.",
             pairs=((PACKED, ASAP),)),
    Compared("aware-like-unaware", "FirstFitAware and FirstFitUnaware have much the same goodput (but for log-scale).",
             threshold=None, pairs=((AWARE, UNAWARE),)),
    Compared("stretch-goodput", "On Borg TargetStretch has clearly less goodput than TargetASAP and PackedTargetASAP.",
             pairs=tuple(product((ASAP, PACKED), [STRETCH])), **_ON_BORG),
    Compared("stretch-max-stretch", "On Borg TargetStretch has the least maximum stretch.",
             measure=pmbs23.MAX_STRETCH.name, pairs=_OVER_STRETCH, **_ON_BORG),
    Compared("first-fit-max-stretch", "The maximum stretch of FirstFitAware and FirstFitUnaware is two to three times "
             "that of the target strategies: at least twice.", measure=pmbs23.MAX_STRETCH.name, how="times",
             threshold=2.0, pairs=tuple(product(FIRST_FIT, (STRETCH, ASAP, PACKED)))),
    Compared("stretch-aborted", "On Borg TargetStretch has the least aborted volume.", measure=pmbs23.ABORTED.name,
             pairs=_OVER_STRETCH, **_ON_BORG),
    Compared("stretch-aborted-time", "On Borg TargetStretch loses the least time to a kill.",
             measure=pmbs23.ABORTED_TIME.name, pairs=_OVER_STRETCH, **_ON_BORG),
    Compared("stretch-idle", "Goodput and aborted volume together are close to 1 but for TargetStretch, which leaves "
             "machines idle.", measure=pmbs23.USED, pairs=_OVER_STRETCH),
    Trend("mean-up", "Goodput rises from 20 to 26 machines on average (but for TargetStretch).", parameter=pmbs23.MEAN,
          span=(20.0, 26.0), labels=_OTHERS),
    Trend("mean-down", "Goodput falls from 26 to 28 machines on average.", parameter=pmbs23.MEAN, span=(26.0, 28.0),
          falling=True),
    Trend("period-up", "Goodput rises with the period.", parameter=pmbs23.PERIOD),
    Trend("range-down", "Goodput falls with the range.", parameter=pmbs23.RANGE, falling=True),
)  # fmt: skip
"""Section 6, in its order; all that is claimed of a difference is put such that the number is positive."""


def claims(swept: Sequence[pmbs23.Sweep]) -> pd.DataFrame:
    """A row per claim and point at which it can be looked at, with the columns `COLUMNS`.

    The verdict is `yes` or `no` if `SURE` standard errors of the number lie between it and the threshold, else `open`;
    `open` too of fewer than `FEWEST` instances, and none where the claim has no threshold.
    """
    found = []
    for claim in CLAIMS:
        for sweep in swept:
            if claim.parameter not in (None, sweep.parameter):
                continue
            for panel in sweep.panels:
                if claim.types and panel.type not in claim.types:
                    continue
                for value, first, second, numbers in claim.rows(panel):
                    number, error, count = mean_of(numbers)
                    few = min(map(len, numbers) if isinstance(numbers, tuple) else [count]) < FEWEST
                    verdict = verdict_of(claim.threshold, number, math.inf if few else error)
                    found.append((claim.name, sweep.name, panel.title, value, claim.measure, first, second, number,
                                  error, count, verdict))  # fmt: skip
    return pd.DataFrame(found, columns=list(COLUMNS))


def claims_table(found: pd.DataFrame) -> list[Table]:
    """A table of the claims; none without a number."""
    note = (
        "A number is a mean over instances of a difference (of a quotient where it counts times) that is positive if "
        f"it is as the paper says. It is “{YES}” or “{NO}” where {SURE:g} standard errors agree, else “{OPEN}”; so "
        f"it is of fewer than {FEWEST} instances. The instances share traces and walks, so standard errors are rather "
        "too small than too large; of many numbers some are far off by chance; and runs that several sweeps share "
        "count in each."
    )
    points = "pairs of strategies at a value of a parameter and a type of workload"
    return claims_tables(found, CLAIMS, "what the paper says (section 6)", points, note)
