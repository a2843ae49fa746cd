"""Make the tables of docs/results/varcap.md of what single numbers decide, from the results of varcap-claims.yaml.

python experiments/varcap_claims.py results/varcap-claims
    writes them to docs/results/varcap and puts all tables there on the page; `varcap_tables.py --check` checks them
Other campaigns with these studies, such as varcap.yaml, do as well.
"""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from pathlib import Path
from typing import Literal

import doc_pages
import numpy as np
import pandas as pd
from varcap_tables import ALL, DOCS, PAGES, SINGLE, markdown, tables_of, with_error, write_tables

from batwatt.inputs.workloads.batsim_json import read_text
from batwatt.report.claims import NO, OPEN, mean_of, sure, verdict_of
from batwatt.report.papers.varcap import FIXED, points
from batwatt.report.table import SavedCampaign, read_campaign
from batwatt.results import read
from batwatt.results.columns import KILLED
from batwatt.results.writers import file_of

PERCENT = 100.0
HOLDS, PART = "holds", "in part"
How = Literal["value", "times", "percent", "more", "less"]
Side = tuple[str, float, float]
"""Scheduler, range (0: the fixed capacity), and whether it has the longest foresight (0 or 1)."""


@dataclass(frozen=True)
class Group:
    """The same studies on jobs as they are, or as if they ran longer: a second there stands for `scale`."""

    name: str
    studies: tuple[str, ...]
    period_s: float
    foresight_h: float
    scale: float


GROUPS = (
    Group("TNG", ("fig5-9", "fig7-4", "fig7-5"), 3600.0, 24.0, 1.0),
    Group("as if jobs ran longer", ("longer-5-9", "longer-7-4", "longer-7-5"), 450.0, 3.0, 8.0),
)


@dataclass(frozen=True)
class Sentence:
    """What the dissertation says of `first`, compared with `second` if there is one.

    `how`: `value`, the mean of the first; `times`, first / second; `percent`, that in %; `more` and `less`, by how many
    % the first is more than the second, or less. The number is at least, or at `most`, what is `printed`. `neutral` is
    the number that would tell nothing: beyond it, but below what is printed, the text is right in part.
    """

    section: str
    says: str
    measure: str
    how: How
    first: Side
    second: Side | None
    printed: float
    _: KW_ONLY
    most: bool = False
    neutral: float | None = None

    def number(self, first: pd.Series, second: pd.Series | None) -> tuple[float, float, int]:
        """The number of pairs, its standard error and how many there are; NaN where it would be divided by 0.

        A quotient is that of the means, as that of pairs is large where hardly anybody waits. Its error is that of
        the mean of first - quotient x second.
        """
        if second is None:
            return mean_of(first)
        below = float(second.mean())
        quotient = float(first.mean()) / below if below else math.nan
        _, error, count = mean_of((first - quotient * second) / below if below else second * math.nan)
        factor = 1.0 if self.how == "times" else PERCENT
        shown = {"more": quotient - 1.0, "less": 1.0 - quotient}.get(self.how, quotient)
        return factor * shown, factor * error, count

    def verdict(self, number: float, error: float, count: int) -> str:
        """Whether the 95 % interval of the number lies where the dissertation says."""
        half = math.inf if math.isnan(error) else sure(count) * error
        low, high = number - half, number + half
        if self.most:
            return HOLDS if high <= self.printed else NO if low > self.printed else OPEN
        if self.neutral == self.printed:
            return HOLDS if low > self.printed else NO if high <= self.printed else OPEN
        if self.neutral is None:
            return HOLDS if low >= self.printed else NO if high < self.printed else OPEN
        if low > self.neutral:
            return HOLDS if high >= self.printed else PART
        return NO if high < self.printed else OPEN


GOODPUT, FAILED, WAIT, MIGRATED = "goodput_percent", "failure_percent", "mean_wait_s", "migrated_percent"
HELD: Side = ("Base", 0.0, 0.0)
WIDE = 0.6


def _wide(name: str, foresight: float = 0.0) -> Side:
    return name, WIDE, foresight


def _base(size: float) -> Side:
    return "Base", size, 0.0


MIGRATION, LONGSHORT, ORDER, TWOMODE = map(_wide, ("Migration", "LongShort", "JobSize-Order", "TwoMode"))
ORDER_24, TWOMODE_24 = _wide("JobSize-Order", 1.0), _wide("TwoMode", 1.0)
HALF = 0.35
"""A range of half the mean capacity."""
SENTENCES = (
    Sentence("5.3.1, 7.3.3", "The first 5 % of range cost 15 % of goodput", GOODPUT, "less", _base(0.05), HELD, 15.0,
             neutral=0.0),
    Sentence("5.3.1", "They make jobs wait 3 times as long", WAIT, "times", _base(0.05), HELD, 3.0, neutral=1.0),
    *(Sentence("5.3.1, 7.3.3", f"Failures double with every 0.1 of range: from {low} to {high}", FAILED, "times",
               _base(high), _base(low), 2.0, neutral=1.0) for low, high in ((0.1, 0.2), (0.2, 0.3), (0.5, 0.6))),
    Sentence("5.3.4", "At range 0.6 jobs wait 60 times as long", WAIT, "times", _base(WIDE), HELD, 60.0, neutral=1.0),
    Sentence("5.3.4", "26 % of the runs fail", FAILED, "value", _base(WIDE), None, 26.0),
    Sentence("7.3.1", "Migration has 80 % of the goodput of the fixed capacity", GOODPUT, "percent", MIGRATION, HELD,
             80.0),
    Sentence("7.3.1", "Up to 10 % of its runs fail", FAILED, "value", MIGRATION, None, 10.0, most=True),
    Sentence("7.3.1", "4 % of its runs migrate (at most)", MIGRATED, "value", MIGRATION, None, 4.0, most=True),
    Sentence("7.3.1", "Jobs wait 3 times as long with it as on the fixed capacity (at most)", WAIT, "times", MIGRATION,
             HELD, 3.0, most=True),
    Sentence("7.3.1", "JobSize-Order has 5 % more goodput than LongShort", GOODPUT, "more", ORDER, LONGSHORT, 5.0,
             neutral=0.0),
    *(Sentence("7.3.1", f"With {side[0]} jobs wait some 3 times as long as on the fixed capacity (at most)", WAIT,
               "times", side, HELD, 3.0, most=True) for side in (LONGSHORT, ORDER)),
    Sentence("7.3.1", "With TwoMode they wait 2.6 times less than with Base", WAIT, "times", _base(WIDE), TWOMODE, 2.6,
             neutral=1.0),
    Sentence("7.3.1", "TwoMode has the most goodput: more than JobSize-Order", GOODPUT, "more", TWOMODE, ORDER, 0.0,
             neutral=0.0),
    Sentence("7.3.2", "Foresight leaves LongShort 3 times fewer failures (67 % less)", FAILED, "less",
             _wide("LongShort", 1.0), LONGSHORT, 66.7, neutral=0.0),
    Sentence("7.3.2", "Migration has failures with foresight, too", FAILED, "value", _wide("Migration", 1.0), None, 0.0,
             neutral=0.0),
    *(Sentence("7.3.2", f"{side[0]} with 24 h has 90 % of the goodput of the fixed capacity", GOODPUT, "percent", side,
               HELD, 90.0) for side in (ORDER_24, TWOMODE_24)),
    Sentence("7.3.2", "JobSize-Order with 24 h has some 0 % failures (less than 0.5)", FAILED, "value", ORDER_24, None,
             0.5, most=True),
    Sentence("7.3.2", "TwoMode with 24 h has 0.09 % failures (at most)", FAILED, "value", TWOMODE_24, None, 0.09,
             most=True),
    Sentence("7.3.2", "With JobSize-Order and 24 h jobs wait 1.4 times as long as on the fixed capacity (at most)",
             WAIT, "times", ORDER_24, HELD, 1.4, most=True),
    Sentence("7.3.2", "With TwoMode and 24 h they wait comparably long (no longer than those 1.4 times)", WAIT, "times",
             TWOMODE_24, HELD, 1.4, most=True),
    *(Sentence("7.3.3", f"{name} has more than twice the goodput of Base at range 0.6", GOODPUT, "times", side,
               _base(WIDE), 2.0, neutral=1.0)
      for name, side in (("LongShort", LONGSHORT), ("TwoMode with 24 h", TWOMODE_24))),
    *(Sentence("7.3.3", f"{name} loses 7 % of the fixed goodput at a variation of 50 % (at most)", GOODPUT, "less",
               (name.split(" ")[0], HALF, foresight), HELD, 7.0, most=True)
      for name, foresight in (("LongShort", 0.0), ("TwoMode with 24 h", 1.0))),
    Sentence("7.3.3", "Less than 5 % of the runs fail with LongShort", FAILED, "value", LONGSHORT, None, 5.0,
             most=True),
    *(Sentence("7.3.3", f"{name}: jobs wait less than {wait_s:g} s at range {size}", WAIT, "value",
               (name.split(" ")[0], size, foresight), None, wait_s, most=True)
      for name, foresight in (("LongShort", 0.0), ("TwoMode with 24 h", 1.0))
      for size, wait_s in ((0.2, 100.0), (0.3, 300.0))),
)  # fmt: skip


def points_of(campaign: SavedCampaign) -> pd.DataFrame:
    """The points of the report, each run once, with the runs that migrated in %."""
    frame = points(campaign, campaign).drop_duplicates("key")
    runs = frame["jobs_finished"] + frame["terminations"]
    return frame.assign(migrated_percent=PERCENT * frame["migrations"] / runs)


def numbers_of(frame: pd.DataFrame, group: Group, sentence: Sentence) -> tuple[float, float, int] | None:
    """The number of a sentence in a group of studies; None without a pair of runs on the same jobs and walk."""
    rows = frame[frame["study"].isin(group.studies)]
    first = _picked(rows, group, sentence.first)
    if sentence.second is None:
        values, others = first[sentence.measure], None
    else:
        on = ["trace", "walk"] if sentence.second[1] else ["trace"]
        second = _picked(rows, group, sentence.second)[[*on, sentence.measure]]
        pairs = first[["trace", "walk", sentence.measure]].merge(second, on=on, suffixes=("", "_there"))
        values, others = pairs[sentence.measure], pairs[f"{sentence.measure}_there"]
    if values.empty:
        return None
    scale = group.scale if sentence.measure == WAIT and others is None else 1.0
    return sentence.number(scale * values, others)


def _picked(rows: pd.DataFrame, group: Group, side: Side) -> pd.DataFrame:
    policy, size, foresight = side
    rows = rows[(rows["policy"] == policy) & np.isclose(rows["range"], size)]
    rows = rows[np.isclose(rows["foresight_h"], foresight * group.foresight_h)]
    if not size:
        return rows[rows["structure"] == FIXED].drop_duplicates("trace")
    walks = (rows["structure"] == "walk") & (rows["period_s"] == group.period_s)
    return rows[walks].drop_duplicates(["trace", "walk"])


def sentences_table(frame: pd.DataFrame) -> str:
    """Each sentence, its number and its verdict in each group."""
    rows = []
    for sentence in SENTENCES:
        row = [sentence.section, sentence.says]
        for group in GROUPS:
            found = numbers_of(frame, group, sentence)
            row += ["", ""] if found is None else [shown_number(sentence, *found), sentence.verdict(*found)]
        rows.append(row)
    heads = [text for group in GROUPS for text in (group.name, "verdict")]
    return markdown(["section", "what the dissertation says", *heads], rows)


def shown_number(sentence: Sentence, number: float, error: float, count: int) -> str:
    """The number of a sentence with its error and unit, and of how many it is."""
    unit = {"times": " times", "more": " % more", "less": " % less", "percent": " %"}.get(sentence.how, "")
    if sentence.how == "value":
        unit = " s" if sentence.measure == WAIT else " %"
    decimals = 0 if unit == " s" else 2
    spread = "" if math.isnan(error) else f" ± {error:.{decimals}f}"
    return f"{number:.{decimals}f}{spread}{unit} ({count})"


FAIR = "fig6-4"
SYSTEMS = {"mira": "Mira", "azure": "Azure", "borg": "Borg"}
TERMINATIONS = ("Random", "LWW", "LFD")
EDGES_CORES = 2.0 ** np.arange(11)
"""Edges of the classes of size."""
LONG_H = 1.0
UNFAIR = {
    "longer": "terminations of jobs > 1 h, less such jobs, % points",
    "larger": "cores of a terminated run / of a job",
    "length": "distance by run time, %",
    "cores": "distance by size, %",
}
"""What is measured of the terminations of a run -> heading."""
FAIRER = (
    ("longer", "Random hits long jobs more than others", "Random", None),
    ("larger", "Random hits large jobs more than others", "Random", None),
    ("longer", "LWW hits long jobs more", "LWW", None),
    ("larger", "LWW hits large jobs more", "LWW", None),
    ("longer", "LFD hits long jobs more", "LFD", None),
    ("larger", "LFD hits large jobs more", "LFD", None),
    ("length", "LWW is fairer than LFD by run time", "LFD", "LWW"),
    ("cores", "LWW is fairer than LFD by size", "LFD", "LWW"),
    ("length", "Random is fairer than LWW by run time (said of Borg)", "LWW", "Random"),
    ("length", "Random is fairer than LFD by run time (said of Borg)", "LFD", "Random"),
)
"""Sentences of 6.1: measure, what it says, and whose value is larger than whose, or than `NEUTRAL`."""
NEUTRAL = {"longer": 0.0, "larger": 1.0}


def distance(jobs: Sequence[float], terminations: Sequence[float]) -> float:
    """Half the sum of the differences of shares in %: so many terminations hit other classes than the jobs' shares."""
    one, other = (np.asarray(counts, dtype=np.float64) for counts in (jobs, terminations))
    return float(PERCENT * np.abs(one / one.sum() - other / other.sum()).sum() / 2.0)


def unfairness(classes: pd.DataFrame, jobs: pd.DataFrame, end_s: float) -> dict[str, float]:
    """`UNFAIR` of a run, from its classes of run time and its jobs, of which those killed until `end_s` count."""
    again = jobs["job_id"].str.contains("#")
    cores = jobs["requested_number_of_resources"]
    killed = cores[(jobs["final_state"] == KILLED) & (jobs["finish_time"] <= end_s)]
    sizes = [np.bincount(np.searchsorted(EDGES_CORES, part), minlength=len(EDGES_CORES) + 1)
             for part in (cores[~again], killed)]  # fmt: skip
    counts = classes[["jobs", "terminations"]]
    shares = PERCENT * counts[classes["from_h"] >= LONG_H].sum() / counts.sum()
    return {
        "longer": float(shares["terminations"] - shares["jobs"]),
        "larger": float(killed.mean() / cores[~again].mean()),
        "length": distance(counts["jobs"].tolist(), counts["terminations"].tolist()),
        "cores": distance(sizes[0].tolist(), sizes[1].tolist()),
    }


def fairness_of(campaign: SavedCampaign) -> pd.DataFrame:
    """A row per saved run on walks of range 0.6: study, label, walk and `UNFAIR`. Raises InputError."""
    rows = campaign.done
    rows = rows[rows["study"].str.startswith(f"{FAIR}-") & (rows["cap_structure"] == "walk")]
    rows = rows[np.isclose(rows["cap_range"], WIDE)]
    found = []
    for study, label, seed, key in rows[["study", "label", "cap_seed", "key"]].itertuples(index=False):
        prefix = campaign.prefix(key)
        if prefix.parent.is_dir():
            end_s = json.loads(read_text(file_of(prefix, "metadata", ".json")))["window_s"][1]
            figures = unfairness(read.table(prefix, "classes"), read.jobs(prefix), end_s)
            found.append({"system": study.removeprefix(f"{FAIR}-"), "label": label, "walk": seed, **figures})
    return pd.DataFrame(found, columns=["system", "label", "walk", *UNFAIR])


def fairness_table(found: pd.DataFrame) -> str:
    """Means over the walks."""
    rows = []
    for (system, label), part in found.groupby(["system", "label"], sort=False):
        means = [mean_of(part[name]) for name in UNFAIR]
        rows.append([SYSTEMS[system], label, *(with_error(mean, error, 1) for mean, error, _ in means)])
    return markdown(["system", "termination", *UNFAIR.values()], rows)


def fairer_table(found: pd.DataFrame) -> str:
    """The sentences of 6.1 with their numbers and verdicts."""
    rows = []
    for measure, says, larger, smaller in FAIRER:
        row = [says]
        for system in SYSTEMS:
            part = found[found["system"] == system].pivot(index="walk", columns="label", values=measure)
            if not {larger, smaller or larger} <= set(part):
                row += ["", ""]
                continue
            number, error, count = mean_of(part[larger] if smaller is None else part[larger] - part[smaller])
            threshold = NEUTRAL[measure] if smaller is None else 0.0
            row += [with_error(number, error, 1), verdict_of(threshold, number, error, sure(count))]
        rows.append(row)
    heads = (head for name in SYSTEMS.values() for head in (name, "so"))
    return markdown(["what the dissertation says (6.1)", *heads], rows)


def make(results: Path, docs: Path) -> int:
    """Write the tables, and all tables of docs/results/varcap to the page; says what changed."""
    campaign = read_campaign(results)
    fair = fairness_of(campaign)
    texts = (sentences_table(points_of(campaign)), fairness_table(fair), fairer_table(fair))
    return write_tables(docs, dict(zip(SINGLE, texts, strict=True)))


main = doc_pages.Script("varcap_claims", DOCS, PAGES, ALL, ("varcap-claims",), make, tables_of).main

if __name__ == "__main__":
    sys.exit(main())
