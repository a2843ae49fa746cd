"""The quantities of statements.csv of the powercap paper in our runs.

Samples are the 20 workloads. A key is (algorithm, figure, envelope); Section VII-B4 and Figure 6 are of one workload
that the document does not name: here of all 20. "All experiments" of Table III are here the three profiles.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import product
from pathlib import Path

import numpy as np
import pandas as pd

from papers.statements import Samples, Statistic

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


def least_over(figure: str, best: tuple[str, ...], others: tuple[str, ...], envelope: str = THIRD) -> Statistic:
    """Return the least mean of some algorithms less the largest of others."""
    return lambda m: min(m(one, figure, envelope) for one in best) - max(m(one, figure, envelope) for one in others)


def above(figure: str, one: str, *others: str, envelope: str = THIRD) -> Statistic:
    """Return the mean of an algorithm less the largest of others."""
    return least_over(figure, (one,), others, envelope)


def below(figure: str, one: str, *others: str, envelope: str = THIRD) -> Statistic:
    """Return the least mean of others less that of an algorithm."""
    return least_over(figure, others, (one,), envelope)


def extreme(pick: Callable[..., float], figure: str, labels: tuple[str, ...], envelopes: tuple[str, ...]) -> Statistic:
    """Return the least or the largest mean of a figure over algorithms and envelopes."""
    return lambda m: pick(m(label, figure, envelope) for label in labels for envelope in envelopes)


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


def share_avoided(m: Samples) -> float:
    """Return the share of the violations without a response that HFLD avoids, in %."""
    return 100.0 * (1.0 - m(HFLD, VIOLATIONS, THIRD) / m(NONE, VIOLATIONS, THIRD))


def more_kills_of_idfs(m: Samples) -> float:
    """Return how many more jobs IDFS kills than HFLD: the mean over orders and backfillings."""
    return float(np.mean([m(f"{pair} IDFS", KILLS, THIRD) - m(f"{pair} HFLD", KILLS, THIRD) for pair in COMBINATIONS]))


def worst(m: Samples, label: str) -> float:
    """Return the largest mean slowdown of an algorithm on one workload."""
    return float(m.of(label, SLOWDOWN, THIRD).max())


def spread(m: Samples, label: str, figure: str = KILLS) -> float:
    """Return the standard deviation of a figure of an algorithm over workloads."""
    return float(m.of(label, figure, THIRD).std(ddof=1))


def width(m: Samples, label: str) -> float:
    """Return the largest kills of an algorithm less the least, over workloads."""
    return float(np.ptp(m.of(label, KILLS, THIRD)))


def over_profiles(figure: str, better: tuple[str, ...], worse: tuple[str, ...]) -> Statistic:
    """Return the least of a figure of some algorithms less the largest of others, mean over the three profiles."""
    return lambda m: float(np.mean([least_over(figure, worse, better, envelope)(m) for envelope in PROFILES]))


def mean_over(m: Samples, figure: str, labels: tuple[str, ...]) -> float:
    """Return the mean of a figure over algorithms under profile 3."""
    return float(np.mean([m(label, figure, THIRD) for label in labels]))


def at_the_outlier(m: Samples) -> float:
    """Return how much worse first fit's slowdown is on the workload where it is worst."""
    first, easy = m.of(FF_HFLD, SLOWDOWN, THIRD), m.of(HFLD, SLOWDOWN, THIRD)
    return float((first - easy)[first.argmax()])


OTHERS = {label: tuple(other for other in TABLE2 if other != label) for label in TABLE2}
HFLDS, REST = (HFLD, FF_HFLD), (IDFS, IDSB)
OTHER_EASY = ("EBF Slow IDFS", "EBF Slow IAFS", IDSB, "EBF Slow IASB")
JOBS = 288
"""Jobs of a workload."""


def over_optimum(figure: str, label: str) -> Statistic:
    """Return a figure of an algorithm less that of the best known schedule."""
    return lambda m: m(label, figure, THIRD) - m(OPTIMUM, figure, THIRD)


MEASURES: dict[int, Statistic] = {
    1: balanced,
    3: extreme(min, VIOLATIONS, ALL40, (THIRD,)),
    19: lambda m: area(m, HFLD) - float(np.median([area(m, label) for label in ALL40])),
    20: metrics_in_better_half,
    21: below(SLOWDOWN, IDSB, *OTHERS[IDSB]),
    22: above(VIOLATIONS, IDSB, *OTHERS[IDSB]),
    23: lambda m: area(m, IDFS) - float(np.median([area(m, label) for label in ALL40])),
    24: more_kills_of_idfs,
    25: lambda m: min(min(m(label, figure, THIRD) for label in ALL40) - m(OPTIMUM, figure, THIRD)
                      for figure in (VIOLATIONS, KILLS, SLOWDOWN)),
    27: lambda m: min(area(m, label) for label in TABLE2) - max(area(m, label) for label in set(ALL40) - set(TABLE2)),
    28: extreme(min, VIOLATIONS, ALL40, (THIRD,)),
    29: extreme(max, VIOLATIONS, ALL40, (THIRD,)),
    30: extreme(min, KILLS, ALL40, (THIRD,)),
    31: extreme(max, KILLS, ALL40, (THIRD,)),
    32: extreme(min, SLOWDOWN, ALL40, (THIRD,)),
    33: extreme(max, SLOWDOWN, ALL40, (THIRD,)),
    38: lambda m: m(OPTIMUM, VIOLATIONS, THIRD),
    39: lambda m: m(OPTIMUM, KILLS, THIRD),
    40: lambda m: m(OPTIMUM, SLOWDOWN, THIRD),
    41: lambda m: m(NONE, SLOWDOWN, THIRD),
    **{place + k: over_optimum(figure, label)
       for place, label in ((42, NONE), (45, HFLD), (48, IDFS), (51, FF_HFLD), (54, IDSB))
       for k, figure in enumerate((SLOWDOWN, KILLS, VIOLATIONS))},
    57: share_avoided,
    58: lambda m: m(HFLD, VIOLATIONS, THIRD),
    64: share_avoided,
    67: below(KILLS, FF_HFLD, *OTHERS[FF_HFLD]),
    68: lambda m: 100.0 * float((m.of(FF_HFLD, KILLS, THIRD) < 20.0).mean()),
    71: below(KILLS, HFLD, *REST),
    72: lambda m: float((m.of(HFLD, KILLS, THIRD) > 30.0).sum()),
    73: below(KILLS, FF_HFLD, HFLD),
    75: above(KILLS, IDFS, *OTHERS[IDFS]),
    76: lambda m: float(m.of(IDFS, KILLS, THIRD).min()),
    77: lambda m: spread(m, IDSB) - max(spread(m, label) for label in OTHERS[IDSB]),
    78: lambda m: width(m, IDSB) - float(np.median([width(m, label) for label in OTHERS[IDSB]])),
    79: lambda m: 100.0 * float(m.of(NONE, FINISHED, THIRD).min()) / JOBS,
    80: lambda m: float(m.of(NONE, WORK, THIRD).min()),
    82: above(WORK, HFLD, IDFS),
    83: above(WORK, HFLD, IDSB),
    84: above(WORK, FF_HFLD, IDFS),
    85: above(WORK, FF_HFLD, IDSB),
    89: above(KILLS, IDSB, *OTHERS[IDSB]),
    90: below(SLOWDOWN, IDFS, HFLD),
    91: below(SLOWDOWN, IDFS, "FF Slow IDFS", "FF FCFS IDFS", "FF Desc IDFS"),
    93: above(SLOWDOWN, FF_HFLD, *OTHERS[FF_HFLD]),
    94: lambda m: worst(m, FF_HFLD),
    95: lambda m: worst(m, FF_HFLD) - max(worst(m, label) for label in OTHERS[FF_HFLD]),
    96: at_the_outlier,
    98: least_over(SLOWDOWN, HFLDS, REST),
    99: least_over(FINISHED, HFLDS, REST),
    100: lambda m: mean_over(m, WAIT, HFLDS) - mean_over(m, WAIT, REST),
    102: above(KILLS, IDFS, *OTHERS[IDFS], envelope="profile1"),
    103: above(KILLS, IDFS, *OTHERS[IDFS], envelope=THIRD),
    104: lambda m: 1.0 + sum(m(other, KILLS, "profile2") > m(IDFS, KILLS, "profile2") for other in OTHERS[IDFS]),
    105: lambda m: min(min(m(other, KILLS, p) for other in REST) - m(HFLD, KILLS, p) for p in PROFILES),
    106: lambda m: min(min(m(other, KILLS, p) for other in REST) - m(FF_HFLD, KILLS, p) for p in PROFILES),
    107: above(SLOWDOWN, FF_HFLD, *OTHERS[FF_HFLD], envelope="profile2"),
    110: extreme(min, VIOLATIONS, TABLE2, PROFILES),
    111: extreme(max, VIOLATIONS, TABLE2, PROFILES),
    112: extreme(min, KILLS, TABLE2, PROFILES),
    113: extreme(max, KILLS, TABLE2, PROFILES),
    114: extreme(min, SLOWDOWN, TABLE2, PROFILES),
    115: extreme(max, SLOWDOWN, TABLE2, PROFILES),
    117: lambda m: min(max(spread(m, label, figure) for label in OTHERS[HFLD]) - spread(m, HFLD, figure)
                       for figure in (KILLS, SLOWDOWN)),
    118: over_profiles(SLOWDOWN, (IDSB,), (IDFS,)),
    119: over_profiles(SLOWDOWN, (IDFS,), (HFLD,)),
    121: over_profiles(KILLS, (FF_HFLD,), (HFLD,)),
    122: over_profiles(KILLS, (HFLD,), (IDSB,)),
    123: over_profiles(KILLS, (IDSB,), (IDFS,)),
    124: over_profiles(VIOLATIONS, (IDFS,), HFLDS),
    126: over_profiles(VIOLATIONS, HFLDS, (IDSB,)),
    128: lambda m: 100.0 * least_over(FINISHED, (HFLD,), OTHER_EASY)(m) / JOBS,
    129: lambda m: 100.0 * least_over(FINISHED, (HFLD,), REST, "profile2")(m) / JOBS,
    130: lambda m: area(m, HFLD) - max(area(m, label) for label in ALL40 if label != HFLD),
    131: lambda m: min(m(f"EBF Slow {one}", KILLS, THIRD) for one in ("IDFS", "IDSB")) - m(HFLD, KILLS, THIRD),
}  # fmt: skip
"""Place in statements.csv -> its quantity; the others need runs or logs that the study does not have."""
SINGLE = (20, 72, 76, 78, 94, 95, 96, 104)
"""Places of extremes over workloads, counts and ranks, which have no interval."""
