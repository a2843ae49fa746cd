"""The quantities of statements.csv of the varcap dissertation in our runs.

Samples are pairs of a trace and a walk. Of a kind of samples there is one dictionary:

systems   Mira, Azure, Borg and TNG: two traces and two walks
longer    TNG as if jobs ran eight times as long: a trace and three walks
cells     five traces of TNG as five cells, whose values are keys: three walks
real      days of carbon and walks on TNG: three traces
months    capacities by carbon and price of two grids in 2023, and runs of section 6.3 on a day of each month: twelve
seasons   the capacities, whose seasons are keys: three months

A key is (case, figure), or (grid, figure) without runs. Where a statement names a range of sizes over cases, its
quantity is the mean over these cases; with "up to" it is the largest of their means. Not measured is what the set-up
says (loads, mixes of jobs, no failures on the fixed capacity), and a spread, which is always above 0.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise, product

import numpy as np
import pandas as pd

from papers.generators.varcap import MEAN_CAPACITY
from papers.pages import FIXED
from papers.statements import Quantity, Samples, Statistic, average, mean, over
from papers.varcap import frames as f
from papers.varcap.frames import ANY, FAILED, GOODPUT, GRIDS, HEADROOMS, KILLS, SPREADS, WAIT, Case, samples_of

HPC, AZURE, BORG, TNG, LONGER = "mira", "azure", "borg", "tng", "day"
DEDICATED, CLOUD = (HPC, AZURE, BORG), (AZURE, BORG)
VIRTUAL = {AZURE: "azure-virtual", BORG: "borg-virtual"}
"""System -> its oversubscribed form."""
STRUCTURES, SIZES, ENDS = ("walk", "uniform"), (0.2, 0.4, 0.6), (0.2, 0.6)
PERIODS_S = (14_400.0, 3600.0, 1800.0, 900.0)
CHOOSING, INFORMED = ("LWW", "LFD"), ("LongShort", "JobSize-Order", "TwoMode")
"""Terminations of section 6.1, and schedulers of section 7.2."""
RANGES = (0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6)
"""Ranges of Figures 5.9 and 7.5."""
MOST_VARIATION = 100.0 * RANGES[-1] / MEAN_CAPACITY
"""Variation in % of the mean capacity at the greatest of them."""
TABLE_7_3 = range(310, 331)
"""Places of the sizes of Table 7.3."""
LIMITS = (5.0, 7.0, 10.0, 12.0, 15.0, 17.0, 20.0)
"""Tolerable losses of goodput of Table 7.3, in %."""
NO_FAILURES = 1000.0
"""Quotient of failures, or of waits, by none."""


def case(
    system: str, size: float = 0.6, structure: str = "walk", policy: str | None = None, *, period_s: float = 3600.0,
    step: float | None = None, hours: float = 0.0,
) -> Case:  # fmt: skip
    """Return a case on a capacity that varies; the largest change of a walk is a quarter of its range by default."""
    change = (round(size / 4.0, 6) if step is None else step) if structure == "walk" else 0.0
    return Case(system, policy or usual(system), structure, size, change, period_s, hours)


def usual(system: str) -> str:
    """Return the conventional scheduler of a system."""
    if system in (*DEDICATED, "german"):
        return "Random"
    return "Oversubscription" if system.endswith("virtual") else "Base"


def held(system: str) -> Case:
    """Return the case of the fixed capacity."""
    return Case(system, usual(system), FIXED)


def cases(
    systems: Iterable[str], structures: Sequence[str] = STRUCTURES, sizes: Sequence[float] = SIZES,
    policies: Sequence[str | None] = (None,), *, periods_s: Sequence[float] = (3600.0,), hours: float = 0.0,
) -> list[Case]:  # fmt: skip
    """Return a case for each system, structure, range, policy and time between changes."""
    every = product(systems, sizes, structures, policies, periods_s)
    return [case(s, size, k, policy, period_s=period_s, hours=hours) for s, size, k, policy, period_s in every]


def of(which: Case | Iterable[Case], figure: str = GOODPUT) -> Quantity:
    """Return the mean of a figure over cases."""
    listed = [which] if isinstance(which, Case) else list(which)
    return Quantity(lambda m: float(np.mean([m(one, figure) for one in listed])))


def times(which: Case | Iterable[Case], others: Case | Iterable[Case], figure: str = FAILED) -> Quantity:
    """Return the quotient of the means of a figure over cases, `NO_FAILURES` by 0."""
    above, below = of(which, figure), of(others, figure)
    return Quantity(lambda m: above(m) / below(m) if below(m) else NO_FAILURES)


def decline(one: Case, other: Case) -> Quantity:
    """Return by how much % the goodput of another case is less."""
    return 100.0 * (1.0 - of(other) / of(one))


def loss(one: Case) -> Quantity:
    """Return the share of the goodput on the fixed capacity that is lost, in %."""
    return decline(held(one.system), one)


def lost(which: Iterable[Case]) -> list[Quantity]:
    """Return the loss of each case."""
    return [loss(one) for one in which]


def fewer(ones: Case | Iterable[Case], others: Case | Iterable[Case], figure: str = FAILED) -> Quantity:
    """Return by how much % the mean failures of some cases are below those of others."""
    return 100.0 * (1.0 - of(ones, figure) / of(others, figure))


def falls(which: Sequence[Case]) -> list[Quantity]:
    """Return by how much goodput falls from each case to the next, the fixed capacity before the first."""
    return [of(one) - of(other) for one, other in pairwise([held(which[0].system), *which])]


def slower(system: str, size: float, structure: str, rare_s: float = 14_400.0, often_s: float = 900.0) -> Quantity:
    """Return the goodput that frequent changes cost, in points."""
    rare, often = (of(case(system, size, structure, period_s=period_s)) for period_s in (rare_s, often_s))
    return rare - often


def gain(system: str, policy: str, figure: str = GOODPUT) -> Quantity:
    """Return by how much a termination is above Random: the mean over structures and ranges."""
    return of(cases([system], policies=[policy]), figure) - of(cases([system]), figure)


def helped(system: str, size: float = 0.6, structures: Sequence[str] = STRUCTURES, hours: float = 6.0) -> Quantity:
    """Return the goodput that foresight adds, in points: the mean over structures."""
    return of(cases([system], structures, [size], hours=hours)) - of(cases([system], structures, [size]))


def numbered(measures: Mapping[tuple[int, ...] | int, Quantity]) -> dict[int, Statistic]:
    """Return measures by the number of each statement that they decide."""
    return {place: quantity for places, quantity in measures.items()
            for place in (places if isinstance(places, tuple) else (places,))}  # fmt: skip


WALKS, UNIFORM, ALL = cases(DEDICATED, ["walk"]), cases(DEDICATED, ["uniform"]), cases(DEDICATED)
EVERY = [*ALL, *cases([TNG], ["walk"]), *cases(DEDICATED, sizes=ENDS, periods_s=(14_400.0, 900.0))]
"""Workloads and variations of chapter 5 with jobs that are terminated."""
CHOSEN, OF_HPC = cases(DEDICATED, policies=CHOOSING), cases([HPC])
OVER, WIDEST = cases(VIRTUAL.values()), cases(VIRTUAL.values(), sizes=[0.8])
STEPS = {step: [case(HPC, size, step=step) for size in SIZES] for step in (0.05, None, 0.2)}
RANDOM, LWW, LFD = SMALL = [case(HPC, policy=policy, step=0.05) for policy in ("Random", *CHOOSING)]
"""Walks of small steps (Figure 6.3)."""
RARE, EACH = [*product(DEDICATED, [0.6], STRUCTURES)], [*product(DEDICATED, STRUCTURES)]
MIXES = {part: f"long-{part}" for part in (0.1, 0.6, 0.8, 0.9, 1.0)}
"""Share of the core-hours in long jobs -> system."""
RARER = over(min, [slower(*one, 14_400.0, often_s) for one in RARE for often_s in (3600.0, 900.0)])

SYSTEMS = numbered({
    (1, 43, 44): average(lost(EVERY)),
    2: over(max, lost(EVERY)),
    3: of(EVERY, FAILED),
    4: over(max, lost(WALKS)),
    (5, 68): over(max, [decline(*two) for two in zip(WALKS, UNIFORM, strict=True)]),
    6: over(max, [decline(*cases([s], [k], [size], periods_s=(14_400.0, 900.0)))
                  for s, k, size in product(DEDICATED, STRUCTURES, ENDS)]),
    12: 100.0 * (of(CHOSEN) / of(ALL) - 1.0),
    13: times(ALL, CHOSEN),
    15: fewer(CHOSEN, ALL),
    18: average([of(case(HPC, policy=p)) - of(case(HPC)) - (of(case(TNG, policy=p)) - of(case(TNG)))
                 for p in CHOOSING]),
    61: of(OF_HPC, FAILED),
    46: over(max, [loss(case(HPC)), decline(*cases([HPC], sizes=[0.6])),
                   decline(*cases([HPC], ["walk"], [0.6], periods_s=(14_400.0, 900.0)))]),
    47: average([loss(case(s, structure="uniform", period_s=900.0))
                 - over(max, [loss(case(s)), loss(case(s, 0.2, "uniform")), loss(case(s, 0.2, period_s=900.0))])
                 for s in DEDICATED]),
    (49, 137): loss(case(MIXES[0.8])) - loss(case(MIXES[0.1])),
    53: over(min, [of(one) - of(one._replace(policy="Random")) for one in CHOSEN]),
    56: loss(case(HPC)),
    (59, 198): of(OF_HPC, f.WASTED),
    63: over(min, [one for part in STEPS.values() for one in falls(part)]),
    64: average([loss(part[-1]) for part in STEPS.values()]),
    65: over(min, [of(one) for step, part in STEPS.items() for one in part if (step, one.size) != (0.2, 0.6)])
        - of(STEPS[0.2][-1]),
    66: 100.0 * of(case(HPC), f.WASTED) / (of(held(HPC)) - of(case(HPC))),
    67: over(min, [one for s in DEDICATED for one in falls(cases([s], ["walk"]))]),
    69: over(max, lost(UNIFORM)),
    70: times(UNIFORM, WALKS),
    71: over(max, [(of(case(s)) - of(case(s, structure="uniform"))) / (of(held(s)) - of(case(s)))
                   for s in DEDICATED]),
    (73, 74, 103): average(lost(cases(CLOUD))) - average(lost(OVER)),
    76: of(case(VIRTUAL[AZURE], 0.8)) - of(held(VIRTUAL[AZURE])),
    77: of(case(VIRTUAL[AZURE], 0.8, "uniform")) - of(held(VIRTUAL[AZURE])),
    80: of(case(VIRTUAL[AZURE], 0.8, "uniform")) - of(case(VIRTUAL[AZURE], 0.8)),
    82: average([of(a) - of(held(a.system)) - (of(b) - of(held(b.system)))
                 for a, b in zip(WIDEST[:2], WIDEST[2:], strict=True)]),
    85: over(min, [slower(*one) for one in RARE]),
    86: over(max, lost(cases([HPC], sizes=[0.6], periods_s=PERIODS_S))),
    87: over(max, lost(cases([AZURE], sizes=[0.6], periods_s=(14_400.0, 3600.0, 900.0)))),
    88: average([decline(*cases([AZURE], [k], [0.6], periods_s=(14_400.0, 900.0))) for k in STRUCTURES]),
    89: average([slower(BORG, 0.6, k) for k in STRUCTURES]),
    90: average([slower(AZURE, 0.6, k) - slower(BORG, 0.6, k) for k in STRUCTURES]),
    91: average(lost(OF_HPC)) - over(max, [average(lost(cases([s]))) for s in CLOUD]),
    94: over(min, [slower(s, size, k) for s, k in EACH for size in ENDS]),
    95: average([slower(s, 0.6, k) - slower(s, 0.2, k) for s, k in EACH]),
    96: over(min, [slower(HPC, 0.6, k, *two) for k in STRUCTURES for two in pairwise(PERIODS_S)]),
    97: over(max, lost(cases([HPC], sizes=[0.6], periods_s=[1800.0]))),
    102: 100.0 * (1.0 - average(lost(OVER)) / average(lost(cases(CLOUD)))),
    (104, 108): RARER,
    105: over(min, [of(held(s)) - of(case(s)) for s in DEDICATED])
         - average([of(held(s)) - of(case(s)) for s in VIRTUAL.values()]),
    106: over(min, [of(case(s)) - of(case(s, structure="uniform")) for s in DEDICATED])
         - average([of(case(s)) - of(case(s, structure="uniform")) for s in VIRTUAL.values()]),
    107: over(min, [slower(*one) for one in RARE])
         - average([slower(s, 0.6, k) for s, k in product(VIRTUAL.values(), STRUCTURES)]),
    110: average([of(one, f.SLOWED) - of(held(one.system), f.SLOWED) for one in WIDEST]),
    134: of(case(MIXES[0.1])) / of(case(MIXES[1.0])),
    135: of(case(MIXES[0.9]), FAILED) - of(case(MIXES[0.1]), FAILED),
    138: times(case(MIXES[0.8]), case(MIXES[0.1])),
    139: over(min, [of(held(MIXES[a]), WAIT) - of(held(MIXES[b]), WAIT) for a, b in pairwise(sorted(MIXES))]),
    141: of(case(MIXES[0.1]), WAIT) - of(case(MIXES[0.6]), WAIT),
    142: times(case(MIXES[1.0]), case(MIXES[0.6]), WAIT),
    143: times(case(MIXES[1.0]), case(MIXES[0.6]), KILLS) / times(case(MIXES[1.0]), case(MIXES[0.6]), f.FINISHED),
    190: average([over(min, [of(held(s)) - of(case(s)), of(case(s)) - of(case(s, structure="uniform")),
                             slower(s, 0.6, "walk")]) for s in DEDICATED]),
    192: over(min, [of(case(s, 0.6, k), FAILED) - of(case(s, 0.2, k), FAILED) for s, k in EACH]),
    193: over(min, [of(case(s, size, "uniform"), FAILED) - of(case(s, size), FAILED)
                    for s, size in product((HPC, AZURE), SIZES)]),
    199: times(OF_HPC, cases([AZURE])),
    200: over(max, [of(one, FAILED) for one in cases([AZURE], ["walk"])]),
    201: over(max, [of(one, FAILED) for one in cases([AZURE], ["uniform"])]),
    202: of(cases([AZURE]), FAILED) - of(cases([BORG]), FAILED),
    204: over(min, [of(one) - of(RANDOM) for one in (LWW, LFD)]),
    205: over(min, [of(RANDOM, FAILED) - of(one, FAILED) for one in (LWW, LFD)]),
    206: 100.0 * (of(LWW) / of(RANDOM) - 1.0),
    207: 100.0 * (of(LFD) / of(RANDOM) - 1.0),
    208: times(RANDOM, [LWW, LFD]),
    211: gain(HPC, "LWW") - gain(HPC, "LFD"),
    213: over(min, [one for s in CLOUD for one in (gain(s, "LWW"), gain(s, "LWW") - gain(s, "LFD"))]),
    214: over(min, [gain(HPC, "LWW") - gain(s, "LWW") for s in CLOUD]),
    215: over(min, [times(one._replace(policy="Random"), one) for one in CHOSEN]),
    216: over(max, [times(one._replace(policy="Random"), one) for one in CHOSEN]),
    217: over(min, [gain(s, "LWW", FAILED) - gain(s, "LFD", FAILED) for s in DEDICATED]),
    218: over(min, [gain(s, "LWW") - gain(s, "LFD") for s in DEDICATED]),
    219: over(min, [gain(s, "LWW", KILLS) - gain(s, "LFD", KILLS) for s in DEDICATED]),
    220: over(min, [gain(s, "LFD", f.WASTED) - gain(s, "LWW", f.WASTED) for s in DEDICATED]),
    221: over(min, [average([gain(b, p, FAILED) - gain(a, p, FAILED) for p in CHOOSING])
                    for a, b in pairwise(DEDICATED)]),
    222: over(min, [of(case(s, policy=p), "longer") for s, p in product((HPC, AZURE), ("Random", *CHOOSING))]),
    223: over(min, [of(case(s, policy=p), "larger") for s, p in product((HPC, AZURE), ("Random", *CHOOSING))]),
    225: average([gain(s, "LWW", KILLS) - gain(s, "LFD", KILLS) for s in DEDICATED]),
    230: over(min, [helped(HPC, structures=["walk"], hours=hours) for hours in (3.0, 6.0)]),
    231: helped(HPC, 0.6, ["walk"]) - helped(HPC, 0.2, ["walk"]),
    232: over(min, [helped(HPC, structures=[k]) - helped(AZURE, structures=[k]) for k in STRUCTURES]),
    233: helped(AZURE) - helped(BORG),
    234: over(min, [of(case(s, 0.6), FAILED) - of(case(s, 0.2), FAILED) for s in DEDICATED]),
    235: over(min, [times(cases([s], sizes=ENDS), cases([s], sizes=ENDS, hours=3.0)) for s in DEDICATED]),
    236: over(min, [of(case(HPC, structure=k), FAILED) - of(case(s, structure=k), FAILED)
                    for s, k in product(CLOUD, STRUCTURES)]),
    237: fewer(cases(DEDICATED, sizes=ENDS, hours=6.0), cases(DEDICATED, sizes=ENDS)),
    256: of(cases(CLOUD), FAILED),
    257: average([helped(s) for s in DEDICATED]),
    262: fewer(cases(DEDICATED, ["walk"], [0.6], hours=24.0), cases(DEDICATED, ["walk"], [0.6])),
})  # fmt: skip


def terminated_by(policy: str) -> dict[int, Statistic]:
    """Return the measures of HPC with a Random termination."""
    ours, better = cases([HPC], policies=[policy]), [one for one in CHOSEN if one.system == HPC]
    return numbered({
        14: average([-1.0 * decline(one._replace(policy=policy), one) for one in better if one.policy == "LWW"]),
        (45, 255): of(ours, FAILED),
        54: times(ours, better),
        57: loss(case(HPC, policy=policy)),
        58: over(min, falls(cases([HPC], ["walk"], policies=[policy]))),
        **{place: of(case(HPC, size, k, policy), FAILED)
           for place, (k, size) in enumerate(product(STRUCTURES, ENDS), 194)},
        210: over(min, [of(one) - of(one._replace(policy=policy)) for one in better]),
        336: of(cases([HPC], policies=["LWW"])) - of(ours),
    })  # fmt: skip


SYSTEMS |= terminated_by("Random")
ANY_MACHINE = terminated_by(ANY)
"""Some rows with the Random of section 7.2, which takes any machine, with jobs or without."""


def acceptable(base: Case, limit: float) -> Quantity:
    """Return the largest variation in % of the mean capacity at which a scheduler loses at most `limit` % of goodput.

    It lies on a straight line between two ranges, of which the greater has a larger loss than `limit` % of that on the
    fixed capacity; it is `MOST_VARIATION` if the greatest range has none.
    """

    def variation(m: Samples) -> float:
        points = [(0.0, 0.0)]
        points += [(size, loss(base._replace(size=size, step=round(size / 4.0, 6)))(m)) for size in RANGES]
        within = max(place for place, (_, loss_here) in enumerate(points) if loss_here <= limit)
        if within == len(RANGES):
            return MOST_VARIATION
        (low, loss_low), (high, loss_high) = points[within : within + 2]
        return 100.0 * (low + (high - low) * (limit - loss_low) / (loss_high - loss_low)) / MEAN_CAPACITY

    return Quantity(variation)


def scheduling(system: str, hours: tuple[float, float, float], period_s: float, scale: float) -> dict[int, Statistic]:
    """Return the measures of chapter 7 (and its summaries) on a system: foresight `hours` stand for 0, 6 and 24.

    A second of waiting stands for `scale` seconds.
    """

    def at(policy: str, foresight: int = 0, size: float = 0.6) -> Case:
        return case(system, size, policy=policy, period_s=period_s, hours=hours[foresight])

    base, fixed, moved = at("Base"), held(system), at("Migration")
    long_short, order, two_mode = informed = [at(name) for name in INFORMED]
    base24, moved24, long24, order24, two24 = (at(name, 2) for name in ("Base", "Migration", *INFORMED))
    tolerated = {"Base": base, "LongShort": long_short, "TwoMode": two24}
    bearable = {(limit, name): acceptable(one, limit) for limit, (name, one) in product(LIMITS, tolerated.items())}
    bases, shorts, full = (
        [at(name, n, size) for size in RANGES] for name, n in (("Base", 0), ("LongShort", 0), ("TwoMode", 2))
    )
    best = over(max, [of(at(name, n)) for name, n in product(INFORMED, range(3))])
    gained = 100.0 * (of(long_short) - of(base)) / (of(two24) - of(base))
    return numbered({
        10: bearable[20.0, "Base"],
        19: 100.0 * (over(max, [of(one) for one in informed]) / of(base) - 1.0),
        (20, 338): times([base], informed),
        (21, 339): times([base], informed, WAIT),
        (22, 300, 335): gained,
        23: bearable[7.0, "LongShort"],
        41: of(fixed) - best,
        55: average([bearable[limit, "LongShort"] - bearable[limit, "Base"] for limit in LIMITS]),
        259: of(base, FAILED) - of(fixed, FAILED),
        260: times(base, fixed, WAIT),
        261: 100.0 * of(base, f.WASTED) / (of(fixed) - of(base)),
        263: over(min, [of(one) - of(base) for one in informed]),
        264: 100.0 * of(moved) / of(fixed),
        265: of(moved, FAILED),
        266: 100.0 * of(moved, f.MOVES) / (of(moved, f.FINISHED) + of(moved, KILLS)),
        267: times(moved, fixed, WAIT),
        268: of(moved, KILLS) + of(moved, f.MOVES) - of(long_short, KILLS) - of(long_short, f.MOVES),
        269: times(base, long_short),
        270: of(long_short) / of(base),
        271: times(base, long_short, WAIT),
        272: fewer(long_short, base, f.KILLS_LONG),
        273: 100.0 * (of(order) / of(long_short) - 1.0),
        274: of(long_short, FAILED) - of(order, FAILED),
        275: times([long_short, order], [fixed], WAIT),
        276: scale * (of([long_short, order], f.WAIT_SHORT) - of([long_short, order], f.WAIT_LONG)),
        277: of(two_mode) - over(max, [of(one) for one in (long_short, order, base, moved)]),
        278: times(base, two_mode, WAIT),
        279: scale * (of(long_short, f.WAIT_LONG) - of(two_mode, f.WAIT_LONG)),
        280: over(min, [of(b) - of(a) for a, b in pairwise([base, *informed])]),
        282: of(base24, f.IDLE) - of(base, f.IDLE),
        283: of(moved24, KILLS) + of(moved24, f.MOVES),
        284: of(fixed) - over(max, [of(at("Base", 1)), of(base24), of(moved)]),
        285: times(long_short, long24),
        288: of(long24, f.IDLE) - of(order24, f.IDLE),
        289: over(min, [of(b) - of(a) for a, b in pairwise(at("JobSize-Order", n) for n in range(3))]),
        290: 100.0 * of(order24) / of(fixed),
        291: of(order24, FAILED),
        292: times(order24, fixed, WAIT),
        (293, 299): 100.0 * of(two24) / of(fixed),
        294: of(two24, FAILED),
        295: times(two24, fixed, WAIT),
        296: of(two_mode) - of(base24),
        297: over(min, [100.0 * (of(one) - of(base)) / (of(fixed) - of(base)) for one in informed]),
        298: of(order24) - of(order) - (of(base24) - of(base)),
        301: over(min, [of(a) - over(max, [of(b), of(c)]) for a, b, c in zip(full, shorts, bases, strict=True)]),
        302: of(fixed) - of(base),
        303: bearable[15.0, "Base"],
        304: average([of(a) / of(b) for ones in (shorts, full) for a, b in zip(ones, bases, strict=True)]),
        305: average([bearable[7.0, "LongShort"], bearable[7.0, "TwoMode"]]),
        306: over(max, [of(one, FAILED) for one in (*shorts, *full)]),
        307: over(max, [of(one, FAILED) for one in full]),
        308: scale * over(max, [of(one, WAIT) for one in (*shorts, *full) if one.size < 0.3]),
        309: scale * over(max, [of(one, WAIT) for one in (*shorts, *full) if one.size < 0.2]),
        331: over(min, [100.0 * bearable[limit, "LongShort"] / bearable[limit, "TwoMode"] for limit in LIMITS]),
        332: of(long_short) - of(base),
        333: average([bearable[limit, name] for limit in LIMITS for name in ("LongShort", "TwoMode")])
             / average([bearable[limit, "Base"] for limit in LIMITS]),
        337: 100.0 * (of(informed) / of(base) - 1.0),
        **dict(enumerate(bearable.values(), 310)),
    })  # fmt: skip


def slope(sizes: Sequence[float]) -> Quantity:
    """Return how the loss of Base on a TNG cell rises over ranges, in points per 0.1."""
    losses = [loss(case(TNG, size) if size else held(TNG)) for size in sizes]
    return Quantity(lambda m: 0.1 * np.polyfit(sizes, [one(m) for one in losses], 1)[0])


def correlation(first: Sequence[Quantity], second: Sequence[Quantity]) -> Quantity:
    """Return the correlation of quantities."""
    return Quantity(lambda m: np.corrcoef([[one(m) for one in part] for part in (first, second)])[0, 1])


def falling(m: Samples) -> float:
    """Return the rank correlation of the goodput of Base with the range, times -1."""
    ranks = pd.Series([m(one, GOODPUT) for one in GROWN]).rank()
    return -float(np.corrcoef(ranks, range(len(GROWN)))[0, 1])


GROWN = [held(TNG), *(case(TNG, size) for size in RANGES)]
RISES = [of(case(TNG), figure) - of(held(TNG), figure) for figure in (f.FAILED_LONG, f.FAILED_SHORT)]
SYSTEMS |= scheduling(TNG, (0.0, 6.0, 24.0), 3600.0, 1.0) | numbered({
    (52, 122): times(case(TNG), held(TNG), WAIT),
    117: Quantity(falling),
    118: slope((0.0, 0.05, 0.1, 0.2, 0.3)) - slope((0.3, 0.4, 0.5, 0.6)),
    (119, 128): loss(case(TNG, 0.05)),
    121: of(held(TNG), f.LONG) - of(case(TNG), f.LONG),
    123: times(case(TNG, 0.05), held(TNG), WAIT),
    125: average([times(case(TNG, b), case(TNG, a)) for a, b in ((0.1, 0.2), *pairwise(RANGES[2:]))]),
    126: RISES[0] - RISES[1],
    127: 100.0 * loss(case(TNG, 0.1)) / loss(case(TNG)),
    136: of(case(TNG), f.FAILED_LONG) / of(case(TNG), f.FAILED_SHORT),
    145: loss(case(TNG)),
})  # fmt: skip
EIGHTFOLD = scheduling(LONGER, (0.0, 0.75, 3.0), 450.0, 8.0)
"""Chapter 7 as if jobs ran eight times as long."""

CELLS, CHAINED = ([f"{name}-{trace}" for trace in range(5)] for name in ("cell", "chained"))
"""Five traces of a TNG cell as keys, and the same jobs with dependencies."""
BOTH = [*zip(map(case, CELLS), map(case, CHAINED), strict=True)]
PER_CELL = numbered({
    7: over(max, lost(map(case, CELLS))),
    8: over(max, [of(case(cell), FAILED) for cell in CELLS]),
    9: over(max, [times(case(cell), held(cell), WAIT) for cell in CELLS]),
    35: over(min, lost(map(case, CELLS))),
    36: average(lost(map(case, CELLS))),
    37: of(map(case, CELLS), FAILED),
    50: average(lost(map(case, CHAINED))),
    51: of(map(case, CHAINED), FAILED),
    114: over(min, [one for cell in CELLS for one in falls(cases([cell], ["walk"]))]),
    115: average([decline(*two) for cell in CELLS for two in pairwise([held(cell), *cases([cell], ["walk"])])]),
    116: average([loss(case(cell)) - loss(case(cell, 0.2)) for cell in CELLS]),
    130: over(max, [of(loose) - of(chained) for loose, chained in BOTH]),
    132: average([100.0 * (times(chained, loose, WAIT) - 1.0) for loose, chained in BOTH]),
})  # fmt: skip

SEASONS = ("winter", "spring", "summer", "fall")
DAYS = {(grid.name, season): Case(TNG, "Base", "carbon", day=f"{grid.name}-{day}")
        for grid in GRIDS for season, day in zip(SEASONS, grid.days, strict=True)}  # fmt: skip
"""Days of Figure 5.16."""


def better(day: Case) -> Quantity:
    """Return by how much goodput on a real day is above that of a walk of its range, on a line between two ranges."""
    levels = [of(held(TNG)), *(of(one) for one in cases([TNG], ["walk"]))]
    return of(day) - Quantity(lambda m: np.interp(m(day, "range"), (0.0, *SIZES), [level(m) for level in levels]))


def on(*seasons: str) -> Quantity:
    """Return the mean goodput on the days of seasons."""
    return of(day for (_, season), day in DAYS.items() if season in seasons)


BETTER = average([better(day) for day in DAYS.values()])
REAL = numbered({
    40: average(lost(DAYS.values())),
    (174, 188): BETTER,
    176: of(day for (grid, _), day in DAYS.items() if grid == "CAISO") - of(case(TNG)),
    180: on("spring", "fall") - of(case(TNG, 0.2)),
    181: on("spring", "fall") - on("summer", "winter"),
})  # fmt: skip


def german(policy: str = "Random", headroom: float = 1.0, hours: float = 0.0) -> Case:
    """Return a case of section 6.3; its days are samples."""
    return Case("german", policy, "carbon", foresight_h=hours, headroom=headroom)


def work(policy: str = "Random", headroom: float = 1.0, hours: float = 0.0) -> Quantity:
    """Return the node hours of completed jobs in % of those on the fixed capacity."""
    return 100.0 * of(german(policy, headroom, hours), f.DONE) / of(held("german"), f.DONE)


def month(figure: str, *grids: str) -> Quantity:
    """Return the mean of a figure of capacities over months and grids, by default of Germany."""
    return Quantity(lambda m: np.mean([m(grid, figure) for grid in grids or ("DE",)]))


def saved_at(value: float) -> Quantity:
    """Return the carbon saved in % where LWW does a share of the work, on a straight line through all headrooms."""
    points = [(work("LWW", h), month(f"day_carbon_saved_{h}")) for h in HEADROOMS]
    return Quantity(lambda m: np.polyval(np.polyfit(*np.array([[x(m), y(m)] for x, y in points]).T, 1), value))


NAMES = tuple(grid.name for grid in GRIDS)
PLAIN, BEST, HELD_BACK = work(), work("LWW"), work("LWW", 0.7)
PER_WORK = [(100.0 - month(f"day_carbon_saved_{h}")) / other for h, other in ((0.7, HELD_BACK), (1.0, BEST))]
MONTHS = numbered({
    16: month("day_carbon_saved_0.7"),
    17: month("day_cost_saved_0.7"),
    26: month("day_carbon_times", *NAMES),
    (28, 29, 238, 239): month("day_gained_1.0"),
    32: 100.0 * (month("mean", *NAMES) * (1.0 / MEAN_CAPACITY) - 1.0),
    146: month("day_price_times"),
    148: 200.0 * month("day_price_largest_drop"),
    150: month("day_price_limit_percent"),
    151: 1.0 / 3.0 - month("day_carbon_mean_step_of_range"),
    152: month("day_carbon_range"),
    154: month("day_carbon_largest_step"),
    157: month("step_twilight", "CAISO") - month("step_else", "CAISO"),
    158: month("day_carbon_range", "CAISO"),
    167: over(max, [100.0 * (month("mean", grid) * (1.0 / MEAN_CAPACITY) - 1.0) for grid in NAMES]),
    168: month("carbon_saved", *NAMES),
    187: month("range", *NAMES),
    241: 100.0 - PLAIN,
    242: work(hours=3.0) - PLAIN,
    243: over(min, [BEST, work("LFD")]) - PLAIN,
    245: 100.0 * (BEST / PLAIN - 1.0),
    (248, 341): BEST - HELD_BACK,
    249: over(min, [work("LWW", a) - work("LWW", b) for a, b in pairwise(HEADROOMS)]),
    251: saved_at(100.0),
    252: saved_at(97.0),
    254: correlation(*([month(f"day_{name}_saved_{h}") for h in HEADROOMS] for name in ("carbon", "cost"))),
    342: of(german("LWW", 0.7), WAIT) - of(german("LWW"), WAIT),
    343: 100.0 * (PER_WORK[0] - PER_WORK[1]),
})  # fmt: skip


def between(figure: str, first: Sequence[str], second: Sequence[str]) -> Quantity:
    """Return the mean of a figure in some seasons less that in others: the less of two grids."""
    parts = [[mean(grid, season, figure) for season in part] for grid in NAMES for part in (first, second)]
    return over(min, [average(a) - average(b) for a, b in zip(parts[::2], parts[1::2], strict=True)])


MILD, HARD = ("spring", "fall"), ("winter", "summer")
BY_SEASON = numbered({
    164: between("mean", ("spring",), ("winter", "summer", "fall")),
    165: between("mean", ("winter", "spring", "fall"), ("summer",)),
    166: between("range", ("winter", "spring", "fall"), ("summer",)),
    (182, 184): between("mean", MILD, HARD),
    183: between("carbon_sd", MILD, HARD),
})  # fmt: skip
MEASURES = {"systems": SYSTEMS, "cells": PER_CELL, "real": REAL, "months": MONTHS, "seasons": BY_SEASON}
"""Kind of samples -> number of a statement -> its quantity."""


def all_samples(
    runs: pd.DataFrame, fairness: pd.DataFrame, months: pd.DataFrame, capacities: pd.DataFrame
) -> dict[str, Samples]:
    """Return the samples of each kind, from runs as of `read_runs` and the other files of data/."""
    spreads = fairness.assign(**Case._field_defaults)
    spreads = spreads.assign(structure="walk", size=0.6, step=0.15, period_s=3600.0)
    systems = samples_of(runs, (0, 1), (1, 2)).values | samples_of(spreads, (0, 1), (1, 2), SPREADS).values
    of_cells = runs[runs["system"].isin([TNG, "dep"]) & (runs["policy"] == "Base") & (runs["foresight_h"] == 0.0)]
    named = of_cells["system"].map({TNG: "cell-", "dep": "chained-"}) + of_cells["trace"].astype(str)
    real = samples_of(of_cells[of_cells["system"] == TNG], (0, 1, 2), (1, 2, 3)).values
    ranges = capacities.set_index("capacity")["range"]
    by_trace = {key: values.reshape(3, 3).mean(axis=1) for key, values in real.items()}
    by_trace |= {(day, "range"): np.full(3, ranges[day.day]) for day in DAYS.values()}
    by_month = months.set_index(["grid", "month"])
    monthly = {(grid, name): by_month.loc[grid][name].to_numpy(float) for grid, name in product(NAMES, by_month)}
    # from December on
    seasons = {(grid, season, name): np.roll(monthly[grid, name], 1)[3 * n : 3 * n + 3]
               for grid, name in monthly for n, season in enumerate(SEASONS)}  # fmt: skip
    days = runs[runs["system"] == "german"]
    days = days.assign(trace=0, walk=days["day"].str.slice(8, 10).replace("", "0").astype(int), day="")
    days = days.groupby([*Case._fields, "trace", "walk"], sort=False)[[f.DONE, WAIT]].mean().reset_index()
    return {
        "systems": Samples(systems),
        "longer": samples_of(runs[runs["system"] == LONGER], (0,), (1, 2, 3)),
        "cells": samples_of(of_cells.assign(system=named, trace=0), (0,), (1, 2, 3)),
        "real": Samples(by_trace),
        "months": Samples(samples_of(days, (0,), range(1, 13), (f.DONE, WAIT)).values | monthly),
        "seasons": Samples(seasons),
    }
