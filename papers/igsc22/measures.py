"""The quantities of statements.csv of the powercap paper in our runs.

Samples are the 20 workloads. A key is (algorithm, figure, envelope); Section VII-B4 and Figure 6 are of one workload
that the document does not name: here of all 20. "All experiments" of Table III are here the three profiles.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from itertools import product
from pathlib import Path

import numpy as np
import pandas as pd

from papers.statements import Quantity, Samples, Statistic, average, mean, over

SLOWDOWN, KILLS, VIOLATIONS, WORK = "mean_slowdown", "kills", "violations", "finished_work_percent"
FINISHED, WAIT, WALLTIME_KILLS = "jobs_finished", "mean_wait_s", "killed_walltime"
OPTIMUM = "Optimum"
ALL = "all"
"""Value in place of an envelope for the mean over all envelopes."""


def with_sums(runs: pd.DataFrame) -> pd.DataFrame:
    """Return runs with their kills, and their finished work in %."""
    kills, work = runs["killed_power"] + runs["killed_walltime"], 100.0 * runs["finished_work_fraction"].astype(float)
    return runs.assign(**{KILLS: kills, WORK: work})


@dataclass(frozen=True)
class Numbers:
    """Means by study, algorithm and envelope (`summary`), and single runs of some algorithms (`instances`)."""

    summary: pd.DataFrame
    instances: pd.DataFrame

    @classmethod
    def read(cls, folder: Path) -> Numbers:
        """Read the files of a folder."""
        runs = pd.read_csv(folder / "instances.csv")
        return cls(pd.read_csv(folder / "summary.csv"), with_sums(runs))

    def means(self, study: str, envelope: str = ALL) -> pd.DataFrame:
        """Return the means of a study under an envelope, by label."""
        rows = self.summary[(self.summary["study"] == study) & (self.summary["envelope"] == envelope)]
        return rows.set_index("label")

    def runs(self, study: str) -> pd.DataFrame:
        """Return the single runs of a study."""
        return self.instances[self.instances["study"] == study]


NONE, HFLD, IDFS, FF_HFLD, IDSB = "EBF Slow no config.", "EBF Slow HFLD", "FF Asc IDFS", "FF Slow HFLD", "EBF Slow IDSB"
TABLE2 = (HFLD, IDFS, FF_HFLD, IDSB)
"""The algorithms of Table II that respond to the envelope."""
RESPONSES = ("IDFS", "IAFS", "IDSB", "IASB", "HFLD")
COMBINATIONS = tuple(f"{first} {order}" for first, order in product(("FF", "EBF"), ("Asc", "Desc", "FCFS", "Slow")))
ALL40 = tuple(f"{pair} {response}" for pair, response in product(COMBINATIONS, RESPONSES))
STUDIES = ("workloads", "own")
"""Studies of study.yaml whose runs decide: all algorithms under profile 3, those of Table II under all profiles."""
THIRD = "profile3"
PROFILES = ("profile1", "profile2", "profile3")
FIGURES = (SLOWDOWN, KILLS, VIOLATIONS, WORK, FINISHED, WAIT, WALLTIME_KILLS)


def samples_of(runs: pd.DataFrame) -> Samples:
    """Return the figures of algorithms by workload; rows as of `runs.csv`, in which a run is of one of `STUDIES`."""
    runs = with_sums(runs).drop_duplicates(["label", "envelope", "workload"])
    workloads = sorted(runs["workload"].unique())
    table = runs.pivot(index=["label", "envelope"], columns="workload", values=list(FIGURES))
    return Samples(
        {
            (label, figure, envelope): values
            for figure in FIGURES
            for (label, envelope), row in table[figure][workloads].iterrows()
            if not np.isnan(values := row.to_numpy(float)).any()
        }
    )


def means(figure: str, labels: tuple[str, ...], envelopes: tuple[str, ...] = (THIRD,)) -> list[Quantity]:
    """Return the mean of a figure of algorithms under envelopes."""
    return [mean(label, figure, envelope) for label, envelope in product(labels, envelopes)]


def above(figure: str, more: tuple[str, ...], less: tuple[str, ...], envelope: str = THIRD) -> Quantity:
    """Return the least mean of some algorithms less the largest of others."""
    return over(min, means(figure, more, (envelope,))) - over(max, means(figure, less, (envelope,)))


def area(m: Samples, label: str) -> float:
    """Return the area of the radar of Figure 2: three axes, each inverted and scaled over the 40 algorithms.

    1 is the best value of an axis, 0 the worst, however near they are; neighbouring axes are 120 degrees apart.
    """
    a, b, c = (_scaled(m, label, figure) for figure in (VIOLATIONS, KILLS, SLOWDOWN))
    return (a * b + b * c + c * a) / 3.0


def _scaled(m: Samples, label: str, figure: str) -> float:
    values = [m(other, figure, THIRD) for other in ALL40]
    span = max(values) - min(values)
    return (max(values) - m(label, figure, THIRD)) / span if span else 1.0


def balanced(m: Samples) -> float:
    """Return the area of HFLD less that of the best other response: the less of EASY's and first fit's."""
    areas = {label: area(m, label) for label in ALL40}
    return min(
        areas[f"{kind} Slow HFLD"]
        - max(value for label, value in areas.items() if label.startswith(kind) and not label.endswith("HFLD"))
        for kind in ("EBF", "FF")
    )


def metrics_in_better_half(m: Samples) -> float:
    """Return of how many of three figures EBF Slow HFLD is in the better half of the 40, less 2."""
    count = 0
    for figure in (VIOLATIONS, KILLS, SLOWDOWN):
        values = sorted(m(label, figure, THIRD) for label in ALL40)
        count += m(HFLD, figure, THIRD) <= values[len(values) // 2 - 1]
    return count - 2.0


def across(pick: Callable[..., float], label: str, figure: str = KILLS) -> Quantity:
    """Return the least, the largest or another figure of an algorithm over the workloads."""
    return Quantity(lambda m: pick(m.of(label, figure, THIRD)))


def spread(label: str, figure: str = KILLS) -> Quantity:
    """Return the standard deviation of a figure of an algorithm over workloads."""
    return across(partial(np.std, ddof=1), label, figure)


def over_profiles(figure: str, better: tuple[str, ...], worse: tuple[str, ...]) -> Quantity:
    """Return the least of a figure of some algorithms less the largest of others, mean over the three profiles."""
    return average(above(figure, worse, better, envelope) for envelope in PROFILES)


def at_the_outlier(m: Samples) -> float:
    """Return how much worse first fit's slowdown is on the workload where it is worst."""
    first, easy = m.of(FF_HFLD, SLOWDOWN, THIRD), m.of(HFLD, SLOWDOWN, THIRD)
    return float((first - easy)[first.argmax()])


OTHERS = {label: tuple(other for other in TABLE2 if other != label) for label in TABLE2}
HFLDS, REST = (HFLD, FF_HFLD), (IDFS, IDSB)
OTHER_EASY = ("EBF Slow IDFS", "EBF Slow IAFS", IDSB, "EBF Slow IASB")
JOBS = 288
"""Jobs of a workload."""


MEASURES: dict[int, Statistic] = {
    1: balanced,
    3: over(min, means(VIOLATIONS, ALL40)),
    19: lambda m: area(m, HFLD) - float(np.median([area(m, label) for label in ALL40])),
    20: metrics_in_better_half,
    21: above(SLOWDOWN, OTHERS[IDSB], (IDSB,)),
    22: above(VIOLATIONS, (IDSB,), OTHERS[IDSB]),
    23: lambda m: area(m, IDFS) - float(np.median([area(m, label) for label in ALL40])),
    24: average(means(KILLS, tuple(f"{pair} IDFS" for pair in COMBINATIONS)))
        - average(means(KILLS, tuple(f"{pair} HFLD" for pair in COMBINATIONS))),
    25: over(min, [above(figure, ALL40, (OPTIMUM,)) for figure in (VIOLATIONS, KILLS, SLOWDOWN)]),
    27: lambda m: min(area(m, label) for label in TABLE2) - max(area(m, label) for label in set(ALL40) - set(TABLE2)),
    28: over(min, means(VIOLATIONS, ALL40)),
    29: over(max, means(VIOLATIONS, ALL40)),
    30: over(min, means(KILLS, ALL40)),
    31: over(max, means(KILLS, ALL40)),
    32: over(min, means(SLOWDOWN, ALL40)),
    33: over(max, means(SLOWDOWN, ALL40)),
    38: mean(OPTIMUM, VIOLATIONS, THIRD),
    39: mean(OPTIMUM, KILLS, THIRD),
    40: mean(OPTIMUM, SLOWDOWN, THIRD),
    41: mean(NONE, SLOWDOWN, THIRD),
    **{place + k: above(figure, (label,), (OPTIMUM,))
       for place, label in ((42, NONE), (45, HFLD), (48, IDFS), (51, FF_HFLD), (54, IDSB))
       for k, figure in enumerate((SLOWDOWN, KILLS, VIOLATIONS))},
    **dict.fromkeys((57, 64), 100.0 * (1.0 - mean(HFLD, VIOLATIONS, THIRD) / mean(NONE, VIOLATIONS, THIRD))),
    58: mean(HFLD, VIOLATIONS, THIRD),
    67: above(KILLS, OTHERS[FF_HFLD], (FF_HFLD,)),
    68: across(lambda kills: 100.0 * (kills < 20.0).mean(), FF_HFLD),
    71: above(KILLS, REST, (HFLD,)),
    72: across(lambda kills: (kills > 30.0).sum(), HFLD),
    73: above(KILLS, (HFLD,), (FF_HFLD,)),
    75: above(KILLS, (IDFS,), OTHERS[IDFS]),
    76: across(np.min, IDFS),
    77: spread(IDSB) - over(max, map(spread, OTHERS[IDSB])),
    78: across(np.ptp, IDSB) - over(np.median, [across(np.ptp, label) for label in OTHERS[IDSB]]),
    79: 100.0 * across(np.min, NONE, FINISHED) / JOBS,
    80: across(np.min, NONE, WORK),
    82: above(WORK, (HFLD,), (IDFS,)),
    83: above(WORK, (HFLD,), (IDSB,)),
    84: above(WORK, (FF_HFLD,), (IDFS,)),
    85: above(WORK, (FF_HFLD,), (IDSB,)),
    89: above(KILLS, (IDSB,), OTHERS[IDSB]),
    90: above(SLOWDOWN, (HFLD,), (IDFS,)),
    91: above(SLOWDOWN, ("FF Slow IDFS", "FF FCFS IDFS", "FF Desc IDFS"), (IDFS,)),
    93: above(SLOWDOWN, (FF_HFLD,), OTHERS[FF_HFLD]),
    94: across(np.max, FF_HFLD, SLOWDOWN),
    95: across(np.max, FF_HFLD, SLOWDOWN) - over(max, [across(np.max, label, SLOWDOWN) for label in OTHERS[FF_HFLD]]),
    96: at_the_outlier,
    98: above(SLOWDOWN, HFLDS, REST),
    99: above(FINISHED, HFLDS, REST),
    100: average(means(WAIT, HFLDS)) - average(means(WAIT, REST)),
    102: above(KILLS, (IDFS,), OTHERS[IDFS], "profile1"),
    103: above(KILLS, (IDFS,), OTHERS[IDFS], THIRD),
    104: lambda m: 1.0 + sum(m(other, KILLS, "profile2") > m(IDFS, KILLS, "profile2") for other in OTHERS[IDFS]),
    105: over(min, [above(KILLS, REST, (HFLD,), profile) for profile in PROFILES]),
    106: over(min, [above(KILLS, REST, (FF_HFLD,), profile) for profile in PROFILES]),
    107: above(SLOWDOWN, (FF_HFLD,), OTHERS[FF_HFLD], "profile2"),
    110: over(min, means(VIOLATIONS, TABLE2, PROFILES)),
    111: over(max, means(VIOLATIONS, TABLE2, PROFILES)),
    112: over(min, means(KILLS, TABLE2, PROFILES)),
    113: over(max, means(KILLS, TABLE2, PROFILES)),
    114: over(min, means(SLOWDOWN, TABLE2, PROFILES)),
    115: over(max, means(SLOWDOWN, TABLE2, PROFILES)),
    117: over(min, [over(max, [spread(label, figure) for label in OTHERS[HFLD]]) - spread(HFLD, figure)
                    for figure in (KILLS, SLOWDOWN)]),
    118: over_profiles(SLOWDOWN, (IDSB,), (IDFS,)),
    119: over_profiles(SLOWDOWN, (IDFS,), (HFLD,)),
    121: over_profiles(KILLS, (FF_HFLD,), (HFLD,)),
    122: over_profiles(KILLS, (HFLD,), (IDSB,)),
    123: over_profiles(KILLS, (IDSB,), (IDFS,)),
    124: over_profiles(VIOLATIONS, (IDFS,), HFLDS),
    126: over_profiles(VIOLATIONS, HFLDS, (IDSB,)),
    128: 100.0 * above(FINISHED, (HFLD,), OTHER_EASY) / JOBS,
    129: 100.0 * above(FINISHED, (HFLD,), REST, "profile2") / JOBS,
    130: lambda m: area(m, HFLD) - max(area(m, label) for label in ALL40 if label != HFLD),
    131: above(KILLS, ("EBF Slow IDFS", "EBF Slow IDSB"), (HFLD,)),
}  # fmt: skip
"""Place in statements.csv -> its quantity; the others need runs or logs that the study does not have."""
SINGLE = (20, 72, 76, 78, 94, 95, 96, 104)
"""Places of extremes over workloads, counts and ranks, which have no interval."""
