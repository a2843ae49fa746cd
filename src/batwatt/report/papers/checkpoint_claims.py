"""Claims on checkpoints, and the numbers of a campaign next to them; up to which C checkpoints are worth it."""

from __future__ import annotations

from functools import partial

import numpy as np
import pandas as pd

from batwatt.report.grid import GridColumn, Table, written
from batwatt.report.papers.checkpoint import COSTS, DIMENSIONS, KILLING, MIN_YIELD, PLANNED, SUBSET
from batwatt.report.papers.pmbs23 import ABORTED, GOODPUT
from batwatt.report.papers.varcap import FIXED
from batwatt.report.papers.varcap_claims import HELD, Claim
from batwatt.report.papers.varcap_claims import claims as claims_of
from batwatt.report.papers.varcap_tables import crossing

BREAK_EVEN = "single"
"""The study in which C varies, next to all that kill."""
_DP, _SUBSET = {"label": PLANNED}, {"label": SUBSET}
_RIGID = ("ranges", "costs", "steps", "frequency", BREAK_EVEN)
_Difference = partial(Claim, how="difference")


def _against(other: str, says: str) -> Claim:
    return _Difference(f"dp-{other.split(' ')[0].lower()}", says, _RIGID, _DP, {"label": other},
                       free=(*COSTS, "foresight_h"))  # fmt: skip


def _prepared(name: str, first: str, says: str, second: str = "cheapest") -> Claim:
    return _Difference(name, says, ("prepare",), {"label": first}, {"label": second})


CLAIMS: tuple[Claim, ...] = (
    _Difference("free", "With C = R = 0 the subset sum is optimal (section 2): what the dynamic programme adds.",
                ("costs",), _DP, _SUBSET, threshold=None, also={"checkpoint_s": 0.0}),
    _Difference("dp-subset", "The dynamic programme has more goodput than the subset sum (section 2).",
                ("ranges", "costs", "recoveries", "steps", "frequency", "prepare"), _DP, _SUBSET),
    _Difference("range", "Goodput declines with the range, with checkpoints of 60 s, too.", ("ranges",),
                {**HELD, **_DP}, {**_DP, "structure": "walk"}),
    _prepared("cheapest-all", "cheapest", "The cheapest checkpoints have more goodput than checkpointing everything.",
              "all"),
    _prepared("expected-cheapest", "expected", "The best mean over what may come has more goodput than the cheapest."),
    _prepared("worst-cheapest", "worst", "The best worst case has more goodput than the cheapest."),
    _prepared("needed-cheapest", "cheapest, needed",
              "Counting idle processors (`needed`) has more goodput than covering k."),
    _Difference("starvation", "A least yield asked for (0.2) raises the least yield of jobs without an end.",
                ("endless",), {"label": "DP fair 0.2"}, _DP, measure=MIN_YIELD.name, free=COSTS),
    _Difference("price", "What that costs in goodput.", ("endless",), _DP, {"label": "DP fair 0.2"}, threshold=None,
                free=COSTS),
    _Difference("price-half", "A least yield of 0.5 costs jobs that end goodput.", ("ranges", "costs"), _DP,
                {"label": "DP fair 0.5"}, free=("asked_yield",)),
    _Difference("late", "Changes that are told in time lose less work than those told too late (0 s before).",
                ("warning",), {"warning_s": 0.0}, {"warning_s": 900.0}, measure=ABORTED.name),
    _against("LWW", "Checkpoints have more goodput than terminating the least wasted work (LWW)."),
    *(_against(other, f"The same of {what}.") for other, what in (
        ("LFD", "the least fraction done (LFD)"), ("Random", "random terminations"),
        ("foresight 6 h", "six hours of foresight with exact run times"),
        *((name, f"{name} (jobs of one processor)") for name in ("FirstFitAware", "TargetASAP", "PackedTargetASAP")),
    )),
)  # fmt: skip
"""The first are of the paper, the others our questions put alike."""


def claims(frame: pd.DataFrame) -> pd.DataFrame:
    """A row per claim and point, as of `varcap_claims.claims`."""
    return claims_of(frame, CLAIMS, DIMENSIONS)


def break_even(frame: pd.DataFrame) -> pd.DataFrame:
    """Per trace and time between changes: who kills best, and the C (= R) up to which checkpoints have more goodput.

    `least` and `most` are those of single walks, `gain` is that at the least C in points of goodput. The best is the
    one with the largest mean goodput.
    """
    rows = frame[(frame["study"] == BREAK_EVEN) & (frame["structure"] != FIXED)]
    found = []
    for (trace, period_s), part in rows.groupby(["trace", "period_s"], sort=False):
        kills = part[part["label"].isin(KILLING)].groupby("label")[GOODPUT.name].mean()
        ours = part[part["label"] == PLANNED].pivot_table(index="walk", columns="checkpoint_s", values=GOODPUT.name)
        if kills.empty or ours.empty:
            continue
        best = str(kills.idxmax())
        theirs = part[part["label"] == best].set_index("walk")[GOODPUT.name]
        gains = ours.sub(theirs, axis=0).dropna()
        costs: list[float] = gains.columns.astype(float).tolist()
        mean, open_ = crossing(costs, gains.mean().tolist())
        each = np.nan_to_num([crossing(costs, values)[0] for values in gains.to_numpy().tolist()], nan=0.0)
        found.append((trace, period_s, best, float(kills.max()), float(gains.iloc[:, 0].mean()), mean, open_,
                      each.min(), each.max(), len(gains)))  # fmt: skip
    names = ["trace", "period_s", "best", "goodput_percent", "gain", "checkpoint_s", "open", "least", "most", "walks"]
    return pd.DataFrame(found, columns=names)


def break_even_grid(frame: pd.DataFrame) -> list[Table]:
    """The table of that; none without the study."""
    found = break_even(frame)
    if found.empty:
        return []
    shown = found.assign(
        label=found["trace"],
        period=[written(value) for value in found["period_s"]],
        even=[_even(value, more) for value, more in zip(found["checkpoint_s"], found["open"], strict=True)],
        share=100.0 * found["checkpoint_s"] / found["period_s"],
        spread=[f"{low:.0f} to {high:.0f}" for low, high in zip(found["least"], found["most"], strict=True)],
    )
    columns = (
        GridColumn("label", "jobs"),
        GridColumn("period", "s between changes"),
        GridColumn("best", "who kills best"),
        GridColumn("goodput_percent", "its goodput (%)", decimals=1),
        GridColumn("gain", "more with C = 0 (points)", decimals=1, signed=True),
        GridColumn("even", "break-even C (s)"),
        GridColumn("share", "of the period (%)", decimals=1),
        GridColumn("spread", "of single walks (s)"),
    )
    notes = (
        "R = C. Between the C that were run goodput is taken to be a straight line. Dash: not even C = 0 is worth it; "
        "≥: no longer one was run.",
    )
    title = "Up to which C checkpoints have more goodput than the best that kills"
    return [Table("table-break-even", title, columns, shown, len(shown), notes, by_label=False)]


def _even(value: float, more: bool) -> str:
    return "–" if np.isnan(value) else f"{'≥ ' if more else ''}{value:.0f}"
