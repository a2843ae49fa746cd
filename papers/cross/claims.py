"""Findings of the study of all systems, each tested on the part for tuning and on the held-back part."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from papers.claims import OPEN, Claim, counted
from papers.cross.frames import (
    BASE,
    CELL,
    IDEAS,
    OURS,
    SLOWDOWN,
    WORK,
    Numbers,
    beaten,
    by_log,
    geometric,
    ground_rows,
    pivot,
    ratios,
)

CASES = {idea: (before, after) for idea, before, after in IDEAS}
CARBON = "carbon_g"
Test = Callable[[Numbers], tuple[str, str]]


def ratio_of(before: str, after: str, *tests: tuple[str, int]) -> Test:
    """Return a test that measures fall (-1), rise (+1) or stay within 1 % or better (0) from one case to another.

    Falls and rises count if the 95 % interval of the logs leaves out 1; without any the finding is open. A measure that
    must stay is a condition.
    """

    def test(numbers: Numbers) -> tuple[str, str]:
        texts, good, decided = [], [], False
        for name, sign in tests:
            values = []
            for table in numbers.parts.values():
                logs = np.log(ratios(table, name, before, after))
                mean, half = by_log(logs)
                values.append(f"{np.exp(mean):.2f}")
                good.append(mean > np.log(0.99) if sign == 0 else sign * mean > half)
                decided |= sign != 0 and abs(mean) > half
            texts.append(f"{NAMES[name]} {'; '.join(values)}")
        return ", ".join(texts), counted(sum(good), len(good)) if decided else OPEN

    return test


NAMES = {SLOWDOWN: "slowdown", CARBON: "carbon", WORK: "work"}


def idea(name: str, *tests: tuple[str, int]) -> Test:
    """Return the test of an idea by its name."""
    return ratio_of(*CASES[name], *tests)


def rejected(numbers: Numbers) -> tuple[str, str]:
    """Test if risk-aware mapping rejects more than a quarter of the jobs."""
    shares = []
    for table in numbers.parts.values():
        finished = (pivot(table, "jobs_finished") / pivot(table, "jobs_total"))["riskaware"].mean()
        shares.append(1.0 - finished)
    return "not finished {:.0%}; {:.0%}".format(*shares), counted(sum(share > 0.25 for share in shares), 2)


def carbon(numbers: Numbers) -> tuple[str, str]:
    """Test if the scheduler `carbon` emits less than LWW for more slowdown."""
    emitted, slower = [], []
    for table in numbers.parts.values():
        grams, slowdown = pivot(table, CARBON), pivot(table, SLOWDOWN)
        emitted.append((grams["carbon"] / grams[BASE]).mean())
        slower.append(geometric(slowdown["carbon"]) / geometric(slowdown[BASE]))
    good = [one < 1.0 < other for one, other in zip(emitted, slower, strict=True)]
    text = "carbon {:.2f}; {:.2f}, slowdown {:.1f}; {:.1f}".format(*emitted, *slower)
    return text, counted(sum(good), 2)


def front(numbers: Numbers) -> tuple[str, str]:
    """Test if `adaptive` is beaten by mixtures with its preemption only."""
    texts, foreign = [], 0
    for table in numbers.parts.values():
        by = [beaten(cell)[OURS] for _, cell in table.groupby(CELL)]
        foreign += sum("preemption" not in case for one in by for case in one)
        texts.append(f"{sum(not one for one in by)} of {len(by)} cells")
    return f"on the front in {'; '.join(texts)}; beaten by others {foreign} times", counted(foreign == 0, 1)


def grounds(numbers: Numbers) -> tuple[str, str]:
    """Test if `adaptive`, with the paper's objective, is within 1 % of the best of each paper or better."""
    rows = [row for row in ground_rows(numbers.grounds) if "for slowdown" not in row.label]
    bad = [f"{row.title.partition(':')[0]} ({row.difference:+.1%} ± {row.error:.1%})" for row in rows if not row.good]
    text = f"{len(rows) - len(bad)} of {len(rows)}" + (f"; not {', '.join(bad)}" if bad else "")
    return text, counted(len(rows) - len(bad), len(rows))


CLAIMS = (
    Claim(
        "Stopping a long job for a short one that waits shortens slowdown, where jobs have checkpoints",
        "shortest first, before and after",
        idea("stopping jobs for shorter ones", (SLOWDOWN, -1), (WORK, 0)),
    ),
    Claim(
        "The same without any order",
        "first come, first served",
        idea("the same, first come, first served", (SLOWDOWN, -1)),
    ),
    Claim(
        "Shortest first shortens slowdown more than any answer to a change of power, and loses no work",
        "LWW",
        idea("shortest first", (SLOWDOWN, -1), (WORK, 0)),
    ),
    Claim(
        "Checkpoints carry over: less slowdown and carbon than resubmission",
        "LWW",
        idea("checkpoint for resubmit (LWW)", (SLOWDOWN, -1), (CARBON, -1)),
    ),
    Claim(
        "Checkpoints planned before each change are better than on a kill",
        "LWW, checkpoint",
        idea("planned checkpoints for checkpoints on a kill", (SLOWDOWN, -1)),
    ),
    Claim("Risk-aware mapping does not carry over to parallel jobs", "jobs wider than a machine", rejected),
    Claim(
        "Long jobs on stable machines shorten slowdown, and work is lost",
        "LWW, long-short",
        idea("long jobs on stable machines", (SLOWDOWN, -1), (WORK, -1)),
    ),
    Claim("Six hours of foresight make slowdown worse", "LWW", idea("six hours of foresight", (SLOWDOWN, 1))),
    Claim(
        "Waiting for less carbon saves none where idle machines stay on",
        "checkpoint",
        idea("waiting for less carbon (checkpoint)", (SLOWDOWN, 1), (CARBON, 0)),
    ),
    Claim("`carbon`, which switches machines off, emits less, and slows down", "compared with LWW", carbon),
    Claim(
        "To resubmit what Frugal loses finishes more work, with more slowdown",
        "frugal",
        idea("resubmit for lose (frugal)", (WORK, 1), (SLOWDOWN, 1)),
    ),
    Claim("`adaptive` with checkpoints is beaten by its own parts only", "work and slowdown", front),
    Claim("`adaptive` is within 1 % of each paper's best on its own ground, or better", "the paper's metric", grounds),
)
