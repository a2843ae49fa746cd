"""Claims of a paper, and their verdicts."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from papers.pages import markdown

YES, PARTLY, NO, OPEN = "yes", "partly", "no", "open"


@dataclass(frozen=True)
class Claim:
    """A sentence of a paper, its section, table or figure, and the test that decides from the numbers of the page.

    The test returns the outcome as a text, and one of `YES`, `PARTLY`, `NO` and `OPEN`.
    """

    sentence: str
    section: str
    test: Callable[[Any], tuple[str, str]]


def counted(count: int, total: int = 1) -> str:
    """Return the verdict of a claim that is true of some cases."""
    return YES if count == total else PARTLY if count else NO


def claims_table(
    claims: Iterable[Claim], numbers: Any, heading: Sequence[str] = ("the paper", "where", "here", "holds")
) -> str:
    """Return the table of the claims with their outcomes and verdicts."""
    rows = ((str(n), one.sentence, one.section, *one.test(numbers)) for n, one in enumerate(claims, 1))
    return markdown(["#", *heading], rows, texts=5)
