"""What the varcap dissertation claims in chapters 5 to 7, and the numbers of a campaign next to it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field, replace
from typing import Any

import numpy as np
import pandas as pd

from batwatt.report.claims import NO, OPEN, YES, How, PaperClaim, claims_tables, mean_of, sure, verdict_of
from batwatt.report.grid import Table, written
from batwatt.report.papers.pmbs23 import GOODPUT
from batwatt.report.papers.varcap import CAPACITY, DIMENSIONS, FAILURES, FIXED, NONE, WAIT, WORK

COLUMNS = ("claim", "study", "point", "measure", "first", "second", "number", "standard_error", "instances", "unit",
           "verdict")  # fmt: skip
INSTANCE = ("trace", "walk")
"""Points that differ in these only are of one number."""
Side = Mapping[str, str | float]
HELD: Side = {"structure": FIXED}
"""The fixed capacity."""
WALK: Side = {"structure": "walk"}
CARBON: Side = {"structure": "carbon"}
LWW, LFD, RANDOM = ({"label": label} for label in ("LWW", "LFD", "Random"))


@dataclass(frozen=True)
class Claim(PaperClaim):
    """A sentence of the text, of studies that begin with one of `stems`.

    `first` and `second` are what columns of the points are, and both have what `also` says; they may differ in what
    `free` names, too.
    """

    stems: tuple[str, ...]
    first: Side
    second: Side
    _: KW_ONLY
    measure: str = GOODPUT.name
    how: How = "more"
    also: Side = field(default_factory=dict)
    free: tuple[str, ...] = ()

    def holds(self, study: str) -> bool:
        """Whether it is of this study."""
        return any(study == stem or study.startswith(f"{stem}-") for stem in self.stems)


_TNG, _TERMINATIONS = ("fig7-4",), ("fig6-3", "fig6-4")
_OF_THE_TEXT: tuple[Claim, ...] = (
    Claim("range", "Goodput declines with the range: by 25 to 45 % for HPC at the range 0.6 (5.2.1), by 15 to 60 % "
          "over all (5.5).", ("fig5-2", "fig5-3"), HELD, WALK, how="less"),
    Claim("range-tng", "TNG cells lose goodput with the range, 30 to 40 % of it (5.3.1, 5.3.4).", ("fig5-8", "fig5-9"),
          HELD, WALK, how="less"),
    Claim("step", "The largest steps produce the worst performance: more goodput with steps of 0.05 than of 0.2 "
          "(5.2.1).", ("fig5-2",), {"step": 0.05}, {"step": 0.2}),
    Claim("uniform", "Random walk has more goodput than random uniform, which is up to 35 % worse (5.2.2).",
          ("fig5-3",), WALK, {"structure": "uniform"}, how="less"),
    Claim("frequency", "Goodput falls as changes become more frequent, from one in 4 h to 4 in one: by up to 50 % for "
          "HPC, 15 % for Azure (5.2.3).", ("fig5-6",), {"period_s": 14400.0}, {"period_s": 900.0}, how="less"),
    Claim("short-stays", "What short jobs add to goodput remains stable (5.3.1): by how much it falls.", ("fig5-9",),
          HELD, WALK, measure=f"{GOODPUT.name}_short", how="less", threshold=None),
    Claim("long-falls", "What long jobs add to goodput falls (5.3.1).", ("fig5-9",), HELD, WALK,
          measure=f"{GOODPUT.name}_long", how="less"),
    Claim("dependencies-wait", "Dependencies lengthen waiting, by 4 to 22 % (5.3.2).", ("fig5-10",),
          {"dependencies": 12.0}, {"dependencies": 0.0}, measure=WAIT.name, also=WALK),
    Claim("dependencies-goodput", "With dependencies goodput is 10 to 15 % less in some cells (5.3.2): by how much it "
          "is less.", ("fig5-10",), {"dependencies": 0.0}, {"dependencies": 12.0}, how="less", threshold=None,
          also=WALK),
    Claim("long-fraction", "On a wide walk goodput more than halves as the share of long jobs goes from 10 to 100 % "
          "(5.3.3).", ("fig5-11",), {"long_fraction": 0.1}, {"long_fraction": 1.0}, how="times", threshold=2.0,
          also=WALK),
    Claim("real", "Real variation by carbon costs less goodput than a walk of range 0.6 (5.4.4).", ("fig5-16",), CARBON,
          {"structure": "walk", "range": 0.6}),
    Claim("lww-goodput", "LWW has more goodput than Random: 44 % on average for HPC (6.1), 26 % with small steps.",
          _TERMINATIONS, LWW, RANDOM),
    Claim("lfd-goodput", "LFD has more goodput than Random: 31 % with small steps (6.1).", _TERMINATIONS, LFD, RANDOM),
    Claim("lww-best", "LWW has more goodput than LFD (6.1).", _TERMINATIONS, LWW, LFD),
    Claim("lfd-fewest", "LFD has fewer failures than LWW (6.1).", _TERMINATIONS, LWW, LFD, measure=FAILURES.name,
          how="difference"),
    Claim("lfd-failures", "LFD has 2 to 3 times fewer failures than Random on a walk of range 0.6 in steps of 0.05, "
          "HPC (6.1): at least twice.", ("fig6-3",), RANDOM, LFD, measure=FAILURES.name, how="times", threshold=2.0),
    Claim("foresight-3", "Three hours of foresight with known run times remove failures (6.2): at least half of them.",
          ("fig6-8",), {"foresight_h": 0.0}, {"foresight_h": 3.0}, measure=FAILURES.name, how="less", threshold=50.0),
    Claim("foresight-6", "Six hours of it remove nearly all failures (6.2): at least 90 % of them.", ("fig6-8",),
          {"foresight_h": 0.0}, {"foresight_h": 6.0}, measure=FAILURES.name, how="less", threshold=90.0),
    Claim("foresight-goodput", "Six hours of it raise goodput (6.2).", ("fig6-8",), {"foresight_h": 6.0},
          {"foresight_h": 0.0}),
    Claim("german-loss", "In Germany the work done with carbon awareness alone drops by up to 24 %, 12 % on average "
          "(6.3).", ("german",), {**HELD, "label": "Random"}, {"structure": "carbon", "label": "Random"},
          measure=WORK.name, how="less"),
    Claim("german-lww", "LWW eliminates essentially all of that: more work than Random on the same day (6.3).",
          ("german",), LWW, RANDOM, measure=WORK.name, also=CARBON),
    Claim("german-fixed", "In Germany LWW does more work than the fixed capacity allows (6.3).", ("german",),
          {"structure": "carbon", "label": "LWW"}, {**HELD, "label": "Random"}, measure=WORK.name),
    Claim("longshort-goodput", "LongShort has more goodput than Base: 3 times (7.3.1).", _TNG, {"label": "LongShort"},
          {"label": "Base"}, how="times", threshold=1.0, also={"structure": "walk", "foresight_h": 0.0}),
    Claim("longshort-failures", "LongShort has fewer failures than Base: 5 times (7.3.1).", _TNG, {"label": "Base"},
          {"label": "LongShort"}, measure=FAILURES.name, how="times", threshold=1.0,
          also={"structure": "walk", "foresight_h": 0.0}),
    Claim("longshort-waiting", "Jobs wait less with LongShort than with Base: 2.4 times (7.3.1).", _TNG,
          {"label": "Base"}, {"label": "LongShort"}, measure=WAIT.name, how="times", threshold=1.0,
          also={"structure": "walk", "foresight_h": 0.0}),
    Claim("base-foresight", "Foresight without run times does not help Base (7.3.2): what 24 h of it add.", _TNG,
          {"label": "Base", "foresight_h": 24.0}, {"label": "Base", "foresight_h": 0.0}, how="difference",
          threshold=None, also=WALK),
    Claim("twomode-failures", "TwoMode with 24 h of foresight has next to no failures, 0.09 % (7.3.2): at least 90 % "
          "of Base's are removed.", _TNG, {"label": "Base", "foresight_h": 0.0},
          {"label": "TwoMode", "foresight_h": 24.0}, measure=FAILURES.name, how="less", threshold=90.0, also=WALK),
    Claim("longshort-most", "LongShort gets 95 % of what TwoMode with 24 h of foresight gets (7.3.2).", _TNG,
          {"label": "LongShort", "foresight_h": 0.0}, {"label": "TwoMode", "foresight_h": 24.0}, how="times",
          threshold=0.95, also=WALK),
)  # fmt: skip


def _longer(claim: Claim) -> Claim:
    """The same of the studies in which all goes as if jobs ran eight times as long: 3 h are the text's 24 h."""

    def side(given: Side) -> Side:
        return {name: value / 8.0 if name == "foresight_h" and isinstance(value, float) else value
                for name, value in given.items()}  # fmt: skip

    return replace(claim, name=f"longer-{claim.name}", says=f"As if jobs ran eight times as long: {claim.says}",
                   stems=tuple(LONGER[stem] for stem in claim.stems), first=side(claim.first),
                   second=side(claim.second))  # fmt: skip


LONGER = {"fig5-10": "longer-5-10", "fig5-11": "longer-5-11", "fig7-4": "longer-7-4"}
CLAIMS = (*_OF_THE_TEXT, *(_longer(claim) for claim in _OF_THE_TEXT if set(claim.stems) <= LONGER.keys()))
"""In the order of the text; the threshold is 0 (1 where it counts times) unless the text says more."""


def claims(frame: pd.DataFrame, said: Sequence[Claim] = CLAIMS, dimensions: Sequence[str] = DIMENSIONS) -> pd.DataFrame:
    """A row per claim and point at which there are pairs, with the columns `COLUMNS`.

    A pair is of the same jobs and walk, and agrees in all `dimensions` but what is compared. Of a quotient, a pair
    whose second is 0 is left out.
    """
    found = []
    for claim in said:
        for study in dict.fromkeys(study for study in frame["study"] if claim.holds(study)):
            for point, numbers in _numbers(frame[frame["study"] == study], claim, dimensions):
                number, error, count = mean_of(numbers)
                verdict = verdict_of(claim.threshold, number, error, sure(count))
                sides = (_named(claim.first), _named(claim.second))
                found.append((claim.name, study, point, claim.measure, *sides, number, error, count, claim.unit,
                              verdict))  # fmt: skip
    return pd.DataFrame(found, columns=list(COLUMNS))


def _numbers(rows: pd.DataFrame, claim: Claim, dimensions: Sequence[str]) -> Iterator[tuple[str, pd.Series]]:
    """What a number is of, as a text, and the numbers of its instances."""
    sides = claim.first, claim.second
    first, second = (_picked(rows, {**claim.also, **side}, dimensions) for side in sides)
    free = {*claim.first, *claim.second, *claim.free, "case"}
    structures = [{**claim.also, **side}.get("structure") for side in sides]
    if FIXED not in structures:
        # nothing is terminated there
        first, second = (part[part["structure"] != FIXED] for part in (first, second))
    if len(set(structures)) > 1:
        free |= set(CAPACITY) if {FIXED, "carbon"} & set(structures) else {"source", "step"}
    # points are those of the side that varies
    swapped = structures[0] == FIXED
    here, there = (second, first) if swapped else (first, second)
    same = [name for name in dimensions if name not in free]
    pairs = here[[*dimensions, claim.measure]].merge(there[[*same, claim.measure]], on=same, suffixes=("", "_there"))
    one, other = pairs[claim.measure], pairs[f"{claim.measure}_there"]
    numbers = claim.compared(*((other, one) if swapped else (one, other)))
    by = _apart(pairs, dimensions)
    for values, part in pairs.groupby(by, sort=False) if by else (((), pairs),):
        left = numbers[part.index].dropna()
        if len(left):
            yield ", ".join(_word(name, value) for name, value in zip(by, values, strict=True)), left


def _apart(pairs: pd.DataFrame, dimensions: Sequence[str]) -> list[str]:
    """The dimensions that distinguish points, without those that follow from others."""
    found: list[str] = []
    count = 1
    for name in dimensions:
        if name not in (*INSTANCE, "case") and (more := len(pairs[[*found, name]].drop_duplicates())) > count:
            found, count = [*found, name], more
    return found


def _word(name: str, value: Any) -> str:
    words = {"range": "range {}", "step": "steps of {}", "period_s": "every {} s", "foresight_h": "foresight {} h",
             "headroom": "headroom {}", "dependencies": "{} % dependent", "long_fraction": "long jobs {}",
             "checkpoint_s": "C = {} s", "recovery_s": "R = {} s", "warning_s": "told {} s before",
             "asked_yield": "yield {}"}  # fmt: skip
    return words.get(name, "{}").format(written(value))


def _picked(rows: pd.DataFrame, side: Side, dimensions: Sequence[str]) -> pd.DataFrame:
    """The rows that are as a side says, numbers to what they were rounded to."""
    for name, value in side.items():
        rows = rows[np.isclose(rows[name], value) if isinstance(value, float) else rows[name] == value]
    # merged on as they are: what is missing is one value like others
    numbers = [name for name in dimensions if pd.api.types.is_numeric_dtype(rows[name])]
    return rows.assign(**{name: rows[name].fillna(NONE) for name in numbers})


def _named(side: Side) -> str:
    names = {FIXED: "fixed"}
    return ", ".join(names.get(str(value), _word(name, value)) for name, value in side.items())


def claims_table(
    found: pd.DataFrame, said: Sequence[Claim] = CLAIMS, heading: str = "what the text says (section)"
) -> list[Table]:
    """The table of the claims; none without a number."""
    note = (
        "A number is a mean over pairs of runs on the same jobs and the same walk, and is put such that it is larger "
        f"the more it is as the text says. It is “{YES}” or “{NO}” where the threshold (0 unless the sentence says "
        f"another; 1 of what counts times) lies outside its 95 % interval (Student's t of its pairs), else “{OPEN}”. "
        "Few walks tell little, pairs of one trace are not independent, and of many numbers some are far off by "
        "chance."
    )
    return claims_tables(found, said, heading, "studies, and values of what varies in them", note)
