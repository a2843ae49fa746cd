"""Sentences of the varcap dissertation that one number decides: TNG cells (5.3, 7.3), terminated jobs (6.1)."""

from __future__ import annotations

import json
import math
from dataclasses import KW_ONLY, dataclass
from pathlib import Path

import numpy as np
import pandas as pd

from papers.claims import NO, OPEN, PARTLY, YES, Claim
from papers.pages import markdown, number
from papers.pairs import Points, interval, verdict
from papers.runs import FIXED, table_of

Side = tuple[str, float, float]
"""Scheduler, range (0: the fixed capacity), and 1 for the longest foresight, else 0."""
GOODPUT, FAILED, WAIT, MIGRATED = "goodput_percent", "failure_percent", "mean_wait_s", "migrated_percent"
HELD: Side = ("Base", 0.0, 0.0)


@dataclass(frozen=True)
class Group:
    """Studies on jobs as they are, or as if they ran longer: a second of such a study stands for `scale` seconds."""

    studies: tuple[str, ...]
    period_s: float
    foresight_h: float
    scale: float

    def rows(self, points: Points, side: Side) -> pd.DataFrame:
        """Return the runs of a side: one per trace on the fixed capacity, else one per trace and walk."""
        policy, size, foresight = side
        frame = points.frame[points.frame["study"].isin(self.studies) & (points.frame["policy"] == policy)]
        frame = frame[np.isclose(frame["range"], size) & np.isclose(frame["foresight_h"], foresight * self.foresight_h)]
        if not size:
            return frame[frame["structure"] == FIXED].drop_duplicates("trace")
        frame = frame[(frame["structure"] == "walk") & (frame["period_s"] == self.period_s)]
        return frame.drop_duplicates(["trace", "walk"])


TNG = Group(("fig5-9", "fig7-4", "fig7-5"), 3600.0, 24.0, 1.0)
LONGER = Group(("longer-5-9", "longer-7-4", "longer-7-5"), 450.0, 3.0, 8.0)


@dataclass(frozen=True)
class Single:
    """A sentence on `first`, compared with `second` if there is one.

    `how`: `value`, the mean of the first; `times`, first / second; `percent`, first / second in %; `more` and `less`,
    the excess or the shortfall of the first in % of the second, as quotients of means. The sentence holds if the number
    is at least, or at `most`, `printed`; it holds in part between the `neutral` number of no effect and `printed`.
    """

    measure: str
    how: str
    first: Side
    second: Side | None
    printed: float
    _: KW_ONLY
    most: bool = False
    neutral: float | None = None

    def __call__(self, where: tuple[Points, Group]) -> tuple[str, str]:
        """Return the number with its error, and the verdict."""
        points, group = where
        one = group.rows(points, self.first)
        if self.second is None:
            values, others = one[self.measure], None
        else:
            on = ["trace", "walk"] if self.second[1] else ["trace"]
            other = group.rows(points, self.second)[[*on, self.measure]]
            pairs = one[["trace", "walk", self.measure]].merge(other, on=on, suffixes=("", "_there"))
            values, others = pairs[self.measure], pairs[f"{self.measure}_there"]
        if self.measure == WAIT and others is None:
            values = group.scale * values
        return self.outcome(values, others)

    def outcome(self, values: pd.Series, others: pd.Series | None) -> tuple[str, str]:
        """Return the number of some values, compared with others, and the verdict."""
        if values.empty:
            return "not run", OPEN
        mean, error, half = quotient(values, others, self.how)
        unit = {"times": " times", "more": " % more", "less": " % less"}.get(self.how, " %")
        seconds = self.how == "value" and self.measure == WAIT
        places = 0 if seconds else 2 if self.how == "times" else 1
        spread = "" if math.isnan(error) else f" ± {number(error, places)}"
        return f"{number(mean, places)}{spread}{' s' if seconds else unit}", self.verdict(mean, half)

    def verdict(self, mean: float, half: float) -> str:
        """Return the verdict of the 95 % interval against the bounds of the sentence."""
        half = math.inf if math.isnan(half) else half
        low, high = mean - half, mean + half
        if self.most:
            return YES if high <= self.printed else NO if low > self.printed else OPEN
        if self.neutral == self.printed:
            return YES if low > self.printed else NO if high <= self.printed else OPEN
        if self.neutral is None:
            return YES if low >= self.printed else NO if high < self.printed else OPEN
        if low > self.neutral:
            return YES if high >= self.printed else PARTLY
        return NO if high < self.printed else OPEN


def quotient(first: pd.Series, second: pd.Series | None, how: str) -> tuple[float, float, float]:
    """Return the quotient of two means, as `how` says, its standard error and half its 95 % interval.

    Quotients of pairs are large for short waits. The error is that of the mean of first - quotient x second.
    """
    if second is None:
        return interval(first)
    below = float(second.mean())
    if not below:
        return math.nan, math.nan, math.nan
    ratio = float(first.mean()) / below
    _, error, half = interval((first - ratio * second) / below)
    factor = 1.0 if how == "times" else 100.0
    return factor * {"more": ratio - 1.0, "less": 1.0 - ratio}.get(how, ratio), factor * error, factor * half


def wide(name: str, foresight: float = 0.0) -> Side:
    """Return the side of a scheduler at range 0.6."""
    return name, 0.6, foresight


def base(size: float) -> Side:
    """Return the side of Base at a range."""
    return "Base", size, 0.0


MIGRATION, LONGSHORT, ORDER, TWOMODE = map(wide, ("Migration", "LongShort", "JobSize-Order", "TwoMode"))
ORDER_24, TWOMODE_24 = wide("JobSize-Order", 1.0), wide("TwoMode", 1.0)
AT_MOST = "as long as on the fixed capacity (at most)"
SENTENCES = (
    Claim("The first 5 % of range cost 15 % of goodput", "5.3.1, 7.3.3",
          Single(GOODPUT, "less", base(0.05), HELD, 15.0, neutral=0.0)),
    Claim("The first 5 % of range make jobs wait 3 times as long", "5.3.1",
          Single(WAIT, "times", base(0.05), HELD, 3.0, neutral=1.0)),
    *(Claim(f"Failures double with every 0.1 of range: from {low} to {high}", "5.3.1, 7.3.3",
            Single(FAILED, "times", base(high), base(low), 2.0, neutral=1.0))
      for low, high in ((0.1, 0.2), (0.2, 0.3), (0.5, 0.6))),
    Claim("At range 0.6 jobs wait 60 times as long", "5.3.4",
          Single(WAIT, "times", base(0.6), HELD, 60.0, neutral=1.0)),
    Claim("At range 0.6 26 % of the runs fail", "5.3.4", Single(FAILED, "value", base(0.6), None, 26.0)),
    Claim("Migration has 80 % of the goodput of the fixed capacity", "7.3.1",
          Single(GOODPUT, "percent", MIGRATION, HELD, 80.0)),
    Claim("With Migration up to 10 % of the runs fail", "7.3.1",
          Single(FAILED, "value", MIGRATION, None, 10.0, most=True)),
    Claim("With Migration 4 % of the runs migrate (at most)", "7.3.1",
          Single(MIGRATED, "value", MIGRATION, None, 4.0, most=True)),
    *(Claim(f"With {side[0]} jobs wait 3 times {AT_MOST}", "7.3.1", Single(WAIT, "times", side, HELD, 3.0, most=True))
      for side in (MIGRATION, LONGSHORT, ORDER)),
    Claim("JobSize-Order has 5 % more goodput than LongShort", "7.3.1",
          Single(GOODPUT, "more", ORDER, LONGSHORT, 5.0, neutral=0.0)),
    Claim("With TwoMode jobs wait 2.6 times less than with Base", "7.3.1",
          Single(WAIT, "times", base(0.6), TWOMODE, 2.6, neutral=1.0)),
    Claim("TwoMode has the most goodput: more than JobSize-Order", "7.3.1",
          Single(GOODPUT, "more", TWOMODE, ORDER, 0.0, neutral=0.0)),
    Claim("Foresight leaves LongShort 3 times fewer failures (67 % less)", "7.3.2",
          Single(FAILED, "less", wide("LongShort", 1.0), LONGSHORT, 66.7, neutral=0.0)),
    Claim("Migration has failures with foresight, too", "7.3.2",
          Single(FAILED, "value", wide("Migration", 1.0), None, 0.0, neutral=0.0)),
    *(Claim(f"{side[0]} with 24 h has 90 % of the goodput of the fixed capacity", "7.3.2",
            Single(GOODPUT, "percent", side, HELD, 90.0)) for side in (ORDER_24, TWOMODE_24)),
    Claim("JobSize-Order with 24 h has some 0 % failures (less than 0.5)", "7.3.2",
          Single(FAILED, "value", ORDER_24, None, 0.5, most=True)),
    Claim("TwoMode with 24 h has 0.09 % failures (at most)", "7.3.2",
          Single(FAILED, "value", TWOMODE_24, None, 0.09, most=True)),
    *(Claim(f"With {side[0]} and 24 h jobs wait 1.4 times {AT_MOST}", "7.3.2",
            Single(WAIT, "times", side, HELD, 1.4, most=True)) for side in (ORDER_24, TWOMODE_24)),
    *(Claim(f"{name} has more than twice the goodput of Base at range 0.6", "7.3.3",
            Single(GOODPUT, "times", side, base(0.6), 2.0, neutral=1.0))
      for name, side in (("LongShort", LONGSHORT), ("TwoMode with 24 h", TWOMODE_24))),
    *(Claim(f"{name} loses 7 % of the fixed goodput at a variation of 50 % (at most)", "7.3.3",
            Single(GOODPUT, "less", (name.split(" ")[0], 0.35, foresight), HELD, 7.0, most=True))
      for name, foresight in (("LongShort", 0.0), ("TwoMode with 24 h", 1.0))),
    Claim("Less than 5 % of the runs fail with LongShort", "7.3.3",
          Single(FAILED, "value", LONGSHORT, None, 5.0, most=True)),
    *(Claim(f"{name}: jobs wait less than {wait_s:g} s at range {size}", "7.3.3",
            Single(WAIT, "value", (name.split(" ")[0], size, foresight), None, wait_s, most=True))
      for name, foresight in (("LongShort", 0.0), ("TwoMode with 24 h", 1.0))
      for size, wait_s in ((0.2, 100.0), (0.3, 300.0))),
)  # fmt: skip


VERDICTS = (YES, PARTLY, NO, OPEN)
KINDS = {GOODPUT: "goodput", FAILED: "failures and migrations", MIGRATED: "failures and migrations", WAIT: "waits"}


def outcomes(points: Points) -> pd.DataFrame:
    """Return each sentence with its number and verdict, of jobs as they are and as if they ran longer."""
    rows = []
    for one in SENTENCES:
        both = (*one.test((points, TNG)), *one.test((points, LONGER)))
        rows.append([one.section, one.sentence, KINDS[one.test.measure], *both])
    return pd.DataFrame(rows, columns=["where", "sentence", "of", "tng", "tng_holds", "longer", "longer_holds"])


def counts_table(sentences: pd.DataFrame) -> str:
    """Return the number of sentences by subject and verdict."""
    cells = [(name, verdict) for name in ("tng", "longer") for verdict in VERDICTS]
    rows = [
        [str(kind), *(str((part[f"{name}_holds"] == verdict).sum()) for name, verdict in cells)]
        for kind, part in sentences.groupby("of", sort=False)
    ]
    words = {"tng": "TNG", "longer": "longer jobs"}
    return markdown(["sentences on", *(f"{words[name]}: {verdict}" for name, verdict in cells)], rows)


SYSTEMS = {"mira": "Mira", "azure": "Azure", "borg": "Borg"}
EDGES_CORES = 2.0 ** np.arange(11)
"""Edges of the classes of size."""
NEUTRAL = {"longer": 0.0, "larger": 1.0}
FAIRER = (
    *((measure, f"{name} hits {word} jobs more than others", name, None)
      for name in ("Random", "LWW", "LFD") for measure, word in (("longer", "long"), ("larger", "large"))),
    ("length", "LWW is fairer than LFD by run time", "LFD", "LWW"),
    ("cores", "LWW is fairer than LFD by size", "LFD", "LWW"),
    ("length", "Random is fairer than LWW by run time (said of Borg)", "LWW", "Random"),
    ("length", "Random is fairer than LFD by run time (said of Borg)", "LFD", "Random"),
)  # fmt: skip
"""Measure, sentence of 6.1, the algorithm of the larger value, and that of the smaller one, or `NEUTRAL`."""


def distance(jobs: np.ndarray, terminations: np.ndarray) -> float:
    """Return half the sum of the differences of shares in %: the terminations beyond the shares of the classes."""
    return float(100.0 * np.abs(jobs / jobs.sum() - terminations / terminations.sum()).sum() / 2.0)


def unfairness(prefix: Path) -> dict[str, float]:
    """Return the measures of the terminations of a kept run until the end of its window.

    `longer`: share of terminations that hit jobs of more than an hour less the share of such jobs, points; `larger`:
    cores of a terminated run / of a job; `length`, `cores`: `distance` by classes of run time and of size, %.
    """
    end_s = json.loads(Path(f"{prefix}_metadata.json").read_text())["window_s"][1]
    classes = pd.read_csv(f"{prefix}_classes.csv", dtype={"from_h": float})
    jobs = pd.read_csv(f"{prefix}_jobs.csv")
    again = jobs["job_id"].astype(str).str.contains("#")
    cores = jobs["requested_number_of_resources"]
    killed = cores[(jobs["final_state"] == "COMPLETED_KILLED") & (jobs["finish_time"] <= end_s)]
    sizes = [
        np.bincount(np.searchsorted(EDGES_CORES, part), minlength=len(EDGES_CORES) + 1)
        for part in (cores[~again], killed)
    ]
    counts = classes[["jobs", "terminations"]]
    shares = 100.0 * counts[classes["from_h"] >= 1.0].sum() / counts.sum()
    return {
        "longer": float(shares["terminations"] - shares["jobs"]),
        "larger": float(killed.mean() / cores[~again].mean()),
        "length": distance(counts["jobs"].to_numpy(), counts["terminations"].to_numpy()),
        "cores": distance(sizes[0], sizes[1]),
    }


def write_fairness(results: Path, path: Path) -> None:
    """Write a row per kept run of the terminations on walks of range 0.6."""
    frame = table_of(results)
    frame = frame[frame["study"].str.startswith("fig6-4-") & (frame["cap_structure"] == "walk")]
    rows = [
        {
            "system": study.removeprefix("fig6-4-"),
            "label": label,
            "walk": walk,
            **unfairness(results / "runs" / key / "run"),
        }
        for study, label, walk, key in frame[["study", "label", "cap_seed", "key"]].itertuples(index=False)
    ]
    pd.DataFrame(rows).round(6).to_csv(path, index=False, lineterminator="\n")


def fairness_table(path: Path) -> str:
    """Return the sentences of 6.1 on terminated jobs, with their numbers and verdicts."""
    frame = pd.read_csv(path)
    rows = []
    for measure, sentence, larger, smaller in FAIRER:
        row = [sentence]
        for system in SYSTEMS:
            part = frame[frame["system"] == system].pivot(index="walk", columns="label", values=measure)
            mean, error, half = interval(part[larger] - (part[smaller] if smaller else 0.0))
            text = f"{number(mean, 1)} ± {number(error, 1)}"
            row += [text, verdict(mean, half, 0.0 if smaller else NEUTRAL[measure])]
        rows.append(row)
    heading = [head for name in SYSTEMS.values() for head in (name, "holds")]
    return markdown(["the dissertation (6.1)", *heading], rows, texts=7)
