"""Words of the page whose meaning is shown where they stand: measures, and terms of campaigns."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from markupsafe import Markup, escape

from batwatt.report.table import GOODPUTS, POWERS
from batwatt.results.figures import Figure

TERMS = {
    "algorithm": "a scheduler with its options; in the campaign's file a case with its label",
    "instance": "platform, workload, and envelope or capacity; runs with several seeds of the algorithm are one",
    "study": "a part of a campaign: algorithms crossed with instances",
    "baseline": "the algorithm that the others are compared with",
    "optimum": "the schedule with the least mean slowdown that finishes every job within the envelope, found offline",
    "best known schedule": "the best schedule that was found offline; not proven to be optimal on every instance",
    "lower bound": "no schedule that finishes every job within the envelope has a smaller mean slowdown",
    "envelope": "the power in W that all servers together may draw, step by step",
    "walltime": "the time after which a job is killed, as its user states it at submission",
    "p-state": "an operating point of a server: a speed and a power; also asleep, and switching on or off",
    "standard error": "standard deviation / square root of the count, of instances or of paired differences by seed",
    "95 % interval": "mean ± Student's t times the standard error: it holds the true mean in 95 of 100 cases",
    "not dominated": "no other algorithm is better in both measures",
    "foresight": "how long in advance the scheduler knows the capacity",
    "fixed capacity": "the same mean number of machines all the time",
    "walk": "a capacity that goes up and down by random steps",
}
"""Term -> its meaning."""
TERM = Markup('<abbr class="term" tabindex="0" data-tip="{}">{}</abbr>')


class Glossary:
    """Marks terms within texts: `measures`, or else `meanings` by term."""

    def __init__(self, measures: Sequence[Figure] = (), meanings: Mapping[str, str] | None = None) -> None:
        of_measures = {measure.title: measure.meaning for measure in (*POWERS, *GOODPUTS, *measures)}
        self.meanings: Mapping[str, str] = TERMS | of_measures if meanings is None else meanings
        words = sorted(self.meanings, key=len, reverse=True)
        self._pattern = re.compile(rf"(?<![\w-])({'|'.join(map(re.escape, words))})(s?)(?![\w-])", re.IGNORECASE)
        self._by_lower = {word.lower(): meaning for word, meaning in self.meanings.items()}

    def marked(self, text: str) -> Markup:
        """A text as HTML in which each term, where it first stands, has its meaning as a tip."""
        parts, end, seen = [], 0, set()
        for match in self._pattern.finditer(text):
            term = match[1].lower()
            if term not in seen:
                seen.add(term)
                tip = self._by_lower[term]
                parts += [escape(text[end : match.start()]), TERM.format(tip, match[0])]
                end = match.end()
        return Markup("").join([*parts, escape(text[end:])])
