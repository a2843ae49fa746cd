"""The claims of the riskaware paper's section 6."""

from __future__ import annotations

from itertools import product

import pandas as pd

from papers.claims import NO, YES, Claim
from papers.pairs import Pairs, decided
from papers.pmbs23.frames import STRATEGIES, SWEEPS

AWARE, UNAWARE, STRETCH, ASAP, PACKED = STRATEGIES.values()
FIRST_FIT, BOTH_ASAP = (AWARE, UNAWARE), (ASAP, PACKED)
EVERYWHERE, ON_BORG = tuple(SWEEPS), ("range-borg",)
MAX_STRETCH = "max_full_speed_slowdown"


def over(first: tuple[str, ...], second: tuple[str, ...], stems: tuple[str, ...] = EVERYWHERE, measure: str =
         "goodput_percent", threshold: float | None = None) -> list[Pairs]:  # fmt: skip
    """Compare each of the first strategies with each of the second on the same jobs and walk."""
    how = "times" if threshold else "difference"
    return [
        Pairs(stems, {"label": one}, {"label": other}, measure=measure, how=how, threshold=threshold)
        for one, other in product(first, second)
    ]


def along(sweep: str, more: float, less: float, labels: tuple[str, ...] = tuple(STRATEGIES.values())) -> list[Pairs]:
    """Compare each strategy at two values of the varied parameter, with the same seeds."""
    name = SWEEPS[sweep]
    return [Pairs((sweep,), {name: more}, {name: less}, also={"label": label}) for label in labels]


def little_apart(means: pd.DataFrame) -> tuple[str, str]:
    """Test if both first fits have goodputs within 1 point of each other in the mean of every case."""
    cases = means[~means["study"].str.contains("-log-scale")]
    goodputs = cases.pivot(index=["study", "value"], columns="label", values="goodput_percent")
    apart = (goodputs[AWARE] - goodputs[UNAWARE]).abs().dropna()
    return f"at most {apart.max():.1f} points apart in {len(apart)} cases", YES if apart.max() <= 1.0 else NO


def gain_on_borg(means: pd.DataFrame) -> tuple[str, str]:
    """Test the largest gain of a target strategy over a first fit on Borg, in means of a case."""
    cases = means[means["study"].str.endswith("-borg")]
    goodputs = cases.pivot(index=["study", "value"], columns="label", values="goodput_percent")
    gain = float((goodputs[list(BOTH_ASAP)].max(axis=1) - goodputs[list(FIRST_FIT)].min(axis=1)).max())
    return f"{gain:.1f} points at most", YES if 9.0 <= gain <= 11.0 else NO


def often_changing(means: pd.DataFrame) -> tuple[str, str]:
    """Test the goodput of first fits on SyntheticUniform at a period of 400 s."""
    rows = means[(means["study"] == "period-uniform") & (means["value"] == 400.0) & means["label"].isin(FIRST_FIT)]
    low, high = rows["goodput_percent"].min(), rows["goodput_percent"].max()
    return f"{low:.1f} to {high:.1f} %", YES if high < 75.0 else NO


OTHERS = (*FIRST_FIT, ASAP, PACKED)
CLAIMS = (
    Claim("TargetASAP and PackedTargetASAP always have more goodput than both first fits", "6.2",
          decided(*over(BOTH_ASAP, FIRST_FIT))),
    Claim("The gain is up to 10 % on Borg", "6.2", gain_on_borg),
    Claim("PackedTargetASAP has slightly more goodput than TargetASAP", "6.2", decided(*over((PACKED,), (ASAP,)))),
    Claim("Both first fits have much the same goodput (but on log-scale)", "6.2", little_apart),
    Claim("On Borg TargetStretch has clearly less goodput than the ASAP strategies", "Figure 3",
          decided(*over(BOTH_ASAP, (STRETCH,), ON_BORG))),
    Claim("On Borg TargetStretch has the least maximum stretch", "Figure 4",
          decided(*over(OTHERS, (STRETCH,), ON_BORG, MAX_STRETCH), decimals=0)),
    Claim("Target strategies have half the maximum stretch of first fits, or less", "6.3",
          decided(*over(FIRST_FIT, (STRETCH, ASAP, PACKED), measure=MAX_STRETCH, threshold=2.0))),
    Claim("On Borg TargetStretch has the least aborted volume", "Figure 4",
          decided(*over(OTHERS, (STRETCH,), ON_BORG, "aborted_percent"))),
    Claim("On Borg TargetStretch loses the least time to a kill", "Figure 4",
          decided(*over(OTHERS, (STRETCH,), ON_BORG, "aborted_h"))),
    Claim("Goodput and aborted volume leave nothing idle but under TargetStretch", "6.3",
          decided(*over(OTHERS, (STRETCH,), measure="used_percent"))),
    Claim("Goodput rises from 20 to 26 machines on average (but for TargetStretch)", "Figure 1",
          decided(*along("mavg", 26.0, 20.0, OTHERS))),
    Claim("Goodput falls from 26 to 28 machines on average", "Figure 1", decided(*along("mavg", 26.0, 28.0))),
    Claim("Goodput rises with the period of the changes", "Figure 2", decided(*along("period", 32400.0, 400.0))),
    Claim("Goodput falls with the range", "Figure 3", decided(*along("range", 4.0, 16.0))),
    Claim("First fits are below 75 % on SyntheticUniform at a period of 400 s", "Figure 2", often_changing),
)  # fmt: skip
