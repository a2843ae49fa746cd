"""What the varcap dissertation claims, and paired numbers of a campaign beside it."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Literal

import pandas as pd

COLUMNS = ("claim", "says", "system", "point", "measure", "first", "second", "number", "standard_error", "pairs",
           "unit")  # fmt: skip
Point = dict[str, str | float]
TNG = "tng"
"""What studies are of that name no system."""
FIXED: Point = {"cap_structure": "constant"}


@dataclass(frozen=True, kw_only=True)
class Claim:
    """A sentence of the text, put as: `measure` of the first beside that of the second on the same trace and walk.

    `first` and `second` are what columns must be; `by` are columns of which each value is a point of its own. As `how`
    says, the number is by how many % the first is more, how many times the second it is, or the difference in points.
    """

    name: str
    says: str
    study: str
    first: Point
    second: Point
    measure: str = "goodput"
    how: Literal["%", "times", "points"] = "%"
    by: tuple[str, ...] = ()
    also: Point = field(default_factory=dict)


RANGE = "goodput declines by 25 to 45 % (HPC, range 0.6); by 15 to 60 % over all (5.2.1, 5.5)"
STEP = "the largest steps produce the worst performance (5.2.1)"
UNIFORM = "uniform is up to 35 % worse than walk (5.2.2)"
FREQUENCY = "goodput falls with the frequency: at 2 changes an hour by up to 50 % (HPC), 15 % (Azure) (5.2.3)"
LWW = "+26 % (LWW) and +31 % (LFD) beside Random; HPC +44 % for LWW on average (6.1)"
FEWER = "LFD has the fewest failures, 2 to 3 times fewer than Random (6.1)"
FORESIGHT = "three to six hours remove the penalty, and six nearly all failures (6.2)"
MOST = "LongShort gets 95 % of what all information gets (7.3.2)"
WAITING = "dependencies lengthen waiting by 4 to 22 % (5.3.2)"
MIXES = "goodput falls more than by half as long jobs grow from 10 to 100 % (5.3.3)"
CLAIMS = (
    Claim(name="range", says=RANGE, study="fig5-3-", first={}, second=FIXED, by=("cap_structure", "cap_range")),
    Claim(name="range-tng", says="30 to 40 % lost (5.3.4)", study="fig5-9", first={}, second=FIXED, by=("cap_range",)),
    Claim(name="step", says=STEP, study="fig5-2-", first={"cap_step": 0.2}, second={"cap_step": 0.05},
          by=("cap_range",)),
    Claim(name="uniform", says=UNIFORM, study="fig5-3-", first={"cap_structure": "uniform"},
          second={"cap_structure": "walk"}, by=("cap_range",)),
    *(Claim(name="frequency", says=FREQUENCY, study="fig5-6-", first={"cap_period_h": hours},
            second={"cap_period_h": 4.0}, by=("cap_structure", "cap_range")) for hours in (0.5, 0.25)),
    *(Claim(name="terminations", says=LWW, study=study, first={"label": label}, second={"label": "Random"},
            by=("cap_structure", "cap_range"))
      for study in ("fig6-3-", "fig6-4-") for label in ("LWW", "LFD")),
    *(Claim(name="best-goodput", says="LWW has the best goodput (6.1)", study=study, first={"label": "LWW"},
            second={"label": "LFD"}, by=("cap_structure", "cap_range")) for study in ("fig6-3-", "fig6-4-")),
    *(Claim(name="fewer-failures", says=FEWER, study=study, first={"label": "Random"}, second={"label": label},
            measure="job_failure_rate", how="times", by=("cap_structure", "cap_range"))
      for study in ("fig6-3-", "fig6-4-") for label in ("LWW", "LFD")),
    *(Claim(name="foresight", says=FORESIGHT, study="fig6-8-", first={"label": hours}, second={"label": "0 h"},
            measure="job_failure_rate", how="times", by=("cap_structure", "cap_range")) for hours in ("3 h", "6 h")),
    *(Claim(name="foresight-goodput", says=FORESIGHT, study="fig6-8-", first={"label": hours}, second={"label": "0 h"},
            by=("cap_structure", "cap_range")) for hours in ("3 h", "6 h", "24 h")),
    *(Claim(name="longshort", says=MOST, study="fig7-5", first={"label": label}, second={"label": "TwoMode 24 h"},
            how="times", by=("cap_range",), also={"cap_structure": "walk"})
      for label in ("Base", "LongShort", "LongShort sized")),
    *(Claim(name="dependencies", says=WAITING, study="fig5-10", first={"trace": "dep-0.12"},
            second={"trace": "dep-0.0"}, measure=measure, by=("cap_range",)) for measure in ("mean_wait_s", "goodput")),
    Claim(name="long-fraction", says=MIXES, study="fig5-11", first={"trace": "long-1.0"}, second={"trace": "long-0.1"},
          how="times", by=("cap_range",)),
)  # fmt: skip
"""In the order of the text."""


def claims(frame: pd.DataFrame) -> pd.DataFrame:
    """A row per claim and point at which there are pairs, with the columns `COLUMNS`.

    Of a quotient of failures a pair whose second has none tells nothing, and is left out.
    """
    found = []
    for claim in CLAIMS:
        apart = claim.study.endswith("-")
        rows = frame[frame["study"].str.startswith(claim.study) if apart else frame["study"] == claim.study]
        for system, part in rows.assign(**({} if apart else {"system": TNG})).groupby("system", sort=False):
            for point, number, error, pairs in _numbers(part, claim):
                names = [_named(side) for side in (claim.first, claim.second)]
                row = (claim.name, claim.says, system, point, claim.measure, *names, number, error, pairs, claim.how)
                found.append(row)
    return pd.DataFrame(found, columns=list(COLUMNS))


def _numbers(part: pd.DataFrame, claim: Claim) -> list[tuple[str, float, float, int]]:
    """Point, mean, its standard error (NaN of one pair) and number of pairs."""
    first, second = (_picked(part, claim.also | side) for side in (claim.first, claim.second))
    # a capacity that does not vary has no seed, and is the same at every point
    alone = claim.second == FIXED
    if alone or "cap_structure" in claim.by:
        first = first[first["cap_structure"] != "constant"]
    same = ["platform", "trace_seed", *(["trace"] if "trace" not in claim.first else [])]
    same += [] if alone else ["cap_seed", *claim.by]
    names = [*dict.fromkeys([*same, *claim.by])]
    joined = first[[*names, claim.measure]].merge(second[[*same, claim.measure]], on=same, suffixes=("", "_second"))
    numbers = _compared(joined[claim.measure], joined[f"{claim.measure}_second"], claim.how)
    found = []
    for point, rows in joined.groupby(list(claim.by), sort=False, dropna=False):
        values = numbers[rows.index].dropna()
        if len(values):
            error = float(values.std()) / math.sqrt(len(values)) if len(values) > 1 else math.nan
            text = ", ".join(f"{value:g}" if isinstance(value, float) else str(value) for value in point)
            found.append((text, float(values.mean()), error, len(values)))
    return found


def _compared(first: pd.Series, second: pd.Series, how: str) -> pd.Series:
    if how == "points":
        return (first - second) * 100.0
    quotient = first / second.where(second != 0.0)
    return (quotient - 1.0) * 100.0 if how == "%" else quotient


def _picked(part: pd.DataFrame, point: Point) -> pd.DataFrame:
    for name, value in point.items():
        part = part[part[name] == value]
    return part


def _named(point: Point) -> str:
    names = {"constant": "fixed"}
    return " ".join(names.get(str(value), f"{value}") for value in point.values()) or "each"


def claims_table(found: pd.DataFrame) -> str:
    """The same as Markdown."""
    heads = ["claim", "system", "at", "measure", "first", "second", "first beside second", "pairs"]
    lines = [heads, ["---"] * len(heads)]
    said = ""
    for row in found.to_dict("records"):
        if row["says"] != said:
            said = row["says"]
            lines.append([f"*{said}*", *[""] * (len(heads) - 1)])
        number = {"%": "{:+.1f} %", "times": "× {:.2f}", "points": "{:+.1f}"}[row["unit"]].format(row["number"])
        if not math.isnan(row["standard_error"]):
            number += f" ± {row['standard_error']:.{2 if row['unit'] == 'times' else 1}f}"
        words = [row["claim"], row["system"], row["point"], row["measure"], row["first"], row["second"]]
        lines.append([*words, number, str(row["pairs"])])
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)
