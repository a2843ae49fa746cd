"""Claims of the checkpoint paper: its two statements, and its open questions as claims."""

from __future__ import annotations

from papers.checkpoint.frames import KILLING, PLANNED, SUBSET
from papers.claims import NO, YES, Claim
from papers.pairs import Pairs, Points, decided, numbers
from papers.runs import FIXED

DP = {"label": PLANNED}
COSTS = ("checkpoint_s", "recovery_s", "warning_s", "asked_yield")
ON_RIGID = ("ranges", "costs", "steps", "frequency", "single")
OURS = "ours"


def against(other: str) -> Pairs:
    """Compare the dynamic programme with an algorithm that kills, on equal jobs and walks."""
    return Pairs(ON_RIGID, DP, {"label": other}, free=COSTS)


def prepared(first: str, second: str = "cheapest") -> Pairs:
    """Compare two choices of the jobs to checkpoint before a change."""
    return Pairs(("prepare",), {"label": first}, {"label": second})


def free_of_charge(points: Points) -> tuple[str, str]:
    """Test if with C = R = 0 the dynamic programme has not surely more goodput than the subset sum."""
    pairs = Pairs(("costs",), DP, {"label": SUBSET}, also={"checkpoint_s": 0.0})
    row = numbers(points, [pairs]).iloc[0]
    text = f"the dynamic programme adds {row['number']:.1f} ± {row['standard_error']:.1f} points"
    return text, NO if row["verdict"] == YES else YES


CLAIMS = (
    Claim("With C = R = 0 the subset sum is optimal", "2", free_of_charge),
    Claim("Else the dynamic programme has more goodput than the subset sum", "2", decided(
        Pairs(("ranges", "costs", "recoveries", "steps", "frequency"), DP, {"label": SUBSET}))),
    Claim("Goodput falls with the range, with checkpoints of 60 s, too", OURS, decided(
        Pairs(("ranges",), {**DP, "structure": FIXED}, {**DP, "structure": "walk"},
              free=("range", "step", "period_s", "walk")))),
    Claim("The cheapest checkpoints have more goodput than checkpointing everything", OURS,
          decided(prepared("cheapest", "all"))),
    Claim("The best mean over what may come has more than the cheapest", OURS, decided(prepared("expected"))),
    Claim("The best worst case has more than the cheapest", OURS, decided(prepared("worst"))),
    Claim("Counting idle processors has more than covering k", OURS, decided(prepared("cheapest, needed"))),
    Claim("Asking for a yield of 0.2 raises the least yield of jobs without an end", OURS, decided(
        Pairs(("endless",), {"label": "DP fair 0.2"}, DP, measure="least_yield_percent", free=COSTS))),
    Claim("A yield of 0.5 costs jobs that end goodput", OURS, decided(
        Pairs(("ranges", "costs"), DP, {"label": "DP fair 0.5"}, free=("asked_yield",)))),
    Claim("Changes told in time lose less work than those told too late", OURS, decided(
        Pairs(("warning",), {"warning_s": 0.0}, {"warning_s": 900.0}, measure="aborted_percent"))),
    *(Claim(f"Checkpoints beat {words}", OURS, decided(against(other))) for other, words in zip(
        (*KILLING[:3], "foresight 6 h", *KILLING[3:]),
        ("random terminations", "terminating the least wasted work (LWW)", "terminating the least fraction done (LFD)",
         "six hours of foresight with exact run times", "FirstFitAware (jobs of one processor)",
         "TargetASAP (jobs of one processor)", "PackedTargetASAP (jobs of one processor)"), strict=True)),
)  # fmt: skip
