"""The claims of the varcap dissertation, chapters 5 to 7, that pairs of runs decide."""

from __future__ import annotations

from functools import partial

from papers.claims import Claim
from papers.pages import markdown
from papers.pairs import Pairs, Points, Side, decided
from papers.runs import FIXED
from papers.varcap.frames import CAPACITY

HELD: Side = {"structure": FIXED}
"""The fixed capacity."""
WALK: Side = {"structure": "walk"}
CARBON: Side = {"structure": "carbon"}
LWW, LFD, RANDOM = ({"label": label} for label in ("LWW", "LFD", "Random"))
FAILURES, WAIT, WORK = "failure_percent", "wait_min", "work_percent"
LESS_THAN_FIXED = partial(Pairs, how="less", free=CAPACITY)
TERMINATED = ("fig6-3", "fig6-4")
WIDE: Side = {"structure": "walk", "foresight_h": 0.0}


def hours(stems: tuple[str, ...], more: float, less: float, **words: object) -> Pairs:
    """Compare less foresight with more, on the same walk."""
    return Pairs(stems, {"foresight_h": less}, {"foresight_h": more}, **words)  # type: ignore[arg-type]


GENERAL = (
    Claim("Goodput declines with the range: by 25 to 45 % for HPC at 0.6, by 15 to 60 % over all", "5.2.1, 5.5",
          decided(LESS_THAN_FIXED(("fig5-2", "fig5-3"), HELD, WALK))),
    Claim("TNG cells lose goodput with the range, 30 to 40 % of it", "5.3.1, 5.3.4",
          decided(LESS_THAN_FIXED(("fig5-8", "fig5-9"), HELD, WALK))),
    Claim("The largest steps are worst: more goodput with steps of 0.05 than of 0.2", "5.2.1",
          decided(Pairs(("fig5-2",), {"step": 0.05}, {"step": 0.2}, how="more"))),
    Claim("Random walk has more goodput than random uniform, which is up to 35 % worse", "5.2.2",
          decided(Pairs(("fig5-3",), WALK, {"structure": "uniform"}, how="less", free=("source", "step")))),
    Claim("Goodput falls as changes become more frequent, from one in 4 h to 4 in one: up to 50 % (HPC), 15 % (Azure)",
          "5.2.3", decided(Pairs(("fig5-6",), {"period_s": 14400.0}, {"period_s": 900.0}, how="less"))),
    Claim("What long jobs add to goodput falls", "5.3.1",
          decided(LESS_THAN_FIXED(("fig5-9",), HELD, WALK, measure="goodput_percent_long"))),
    Claim("Real variation by carbon costs less goodput than a walk of range 0.6", "5.4.4",
          decided(Pairs(("fig5-16",), CARBON, {"structure": "walk", "range": 0.6}, how="more", free=CAPACITY))),
    Claim("LWW has more goodput than Random: 44 % on average for HPC, 26 % with small steps", "6.1",
          decided(Pairs(TERMINATED, LWW, RANDOM, how="more"))),
    Claim("LFD has more goodput than Random: 31 % with small steps", "6.1",
          decided(Pairs(TERMINATED, LFD, RANDOM, how="more"))),
    Claim("LWW has more goodput than LFD", "6.1", decided(Pairs(TERMINATED, LWW, LFD, how="more"))),
    Claim("LFD has fewer failures than LWW", "6.1", decided(Pairs(TERMINATED, LWW, LFD, measure=FAILURES))),
    Claim("LFD has 2 to 3 times fewer failures than Random on a walk of range 0.6 in steps of 0.05, HPC", "6.1",
          decided(Pairs(("fig6-3",), RANDOM, LFD, measure=FAILURES, how="times", threshold=2.0))),
    Claim("Three hours of foresight with known run times remove failures: at least half of them", "6.2",
          decided(hours(("fig6-8",), 3.0, 0.0, measure=FAILURES, how="less", threshold=50.0))),
    Claim("Six hours of foresight remove nearly all failures: at least 90 % of them", "6.2",
          decided(hours(("fig6-8",), 6.0, 0.0, measure=FAILURES, how="less", threshold=90.0))),
    Claim("Six hours of foresight raise goodput", "6.2",
          decided(Pairs(("fig6-8",), {"foresight_h": 6.0}, {"foresight_h": 0.0}, how="more"))),
    Claim("In Germany the work done with carbon awareness alone drops by up to 24 %, 12 % on average", "6.3",
          decided(LESS_THAN_FIXED(("german",), {**HELD, **RANDOM}, {**CARBON, **RANDOM}, measure=WORK))),
    Claim("In Germany LWW eliminates essentially all of this loss: more work than Random on the same day", "6.3",
          decided(Pairs(("german",), LWW, RANDOM, measure=WORK, how="more", also=CARBON))),
    Claim("In Germany LWW does more work than the fixed capacity allows", "6.3",
          decided(Pairs(("german",), {**CARBON, **LWW}, {**HELD, **RANDOM}, measure=WORK, how="more", free=CAPACITY))),
)  # fmt: skip


def of_tng(dependent: str, long: str, schedulers: str, day_h: float) -> tuple[Claim, ...]:
    """Return the claims of a TNG cell in studies; foresight `day_h` is 24 h, or 3 h as if jobs ran 8 times as long."""
    on_walks = partial(Pairs, (schedulers,), also=WIDE)
    base, long_short = {"label": "Base"}, {"label": "LongShort"}
    two_mode = {"label": "TwoMode", "foresight_h": day_h}
    chained, loose = {"dependencies": 12.0}, {"dependencies": 0.0}
    return (
        Claim("Dependencies lengthen waiting, by 4 to 22 %", "5.3.2",
              decided(Pairs((dependent,), chained, loose, measure=WAIT, how="more", also=WALK))),
        Claim("With dependencies goodput is 10 to 15 % less in some cells", "5.3.2",
              decided(Pairs((dependent,), loose, chained, how="less", threshold=10.0, also=WALK))),
        Claim("On a wide walk goodput more than halves as the share of long jobs goes from 10 to 100 %", "5.3.3",
              decided(Pairs((long,), {"long_fraction": 0.1}, {"long_fraction": 1.0}, how="times", threshold=2.0,
                            also=WALK))),
        Claim("LongShort has more goodput than Base: 3 times", "7.3.1",
              decided(on_walks(long_short, base, how="times"))),
        Claim("LongShort has fewer failures than Base: 5 times", "7.3.1",
              decided(on_walks(base, long_short, measure=FAILURES, how="times"))),
        Claim("Jobs wait less with LongShort than with Base: 2.4 times", "7.3.1",
              decided(on_walks(base, long_short, measure=WAIT, how="times"))),
        Claim("TwoMode with 24 h of foresight has next to no failures: at least 90 % of Base's are removed", "7.3.2",
              decided(Pairs((schedulers,), {**base, "foresight_h": 0.0}, two_mode, measure=FAILURES, how="less",
                            threshold=90.0, also=WALK))),
        Claim("LongShort gets 95 % of what TwoMode with 24 h of foresight gets", "7.3.2",
              decided(Pairs((schedulers,), {**long_short, "foresight_h": 0.0}, two_mode, how="times", threshold=0.95,
                            also=WALK))),
    )  # fmt: skip


TNG, LONGER = of_tng("fig5-10", "fig5-11", "fig7-4", 24.0), of_tng("longer-5-10", "longer-5-11", "longer-7-4", 3.0)
"""Claims on a TNG cell, of jobs as they are and as if they ran eight times as long."""
CLAIMS = (*GENERAL, *TNG, *LONGER)


def tng_table(points: Points) -> str:
    """Return the claims on a TNG cell with their numbers and verdicts, of both lengths of jobs."""
    rows = []
    for n, (one, longer) in enumerate(zip(TNG, LONGER, strict=True), len(GENERAL) + 1):
        numbers = f"{n}, {n + len(TNG)}"
        rows.append([numbers, one.sentence, one.section, *one.test(points), *longer.test(points)])
    return markdown(["#", "the paper", "where", "TNG", "holds", "as if jobs ran longer", "holds"], rows, texts=7)
