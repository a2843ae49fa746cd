"""Words of a page that have their meaning as a tip: measures, and terms."""

from __future__ import annotations

import re
from collections.abc import Mapping

from markupsafe import Markup, escape

from batwatt.report.cases import WITHIN
from batwatt.report.texts import percent

CAMPAIGN_TERMS = {
    "study": "a part of a campaign: cases crossed with instances",
    "instance": "platform, workload, and envelope or capacity; runs with several seeds of the scheduler are one",
    "optimum": "the schedule with the least mean slowdown that finishes every job within the envelope, found offline",
    "best known schedule": "the best schedule that was found offline; not proven to be optimal on every instance",
    "foresight": "how long in advance the scheduler knows the capacity",
    "fixed capacity": "the same mean number of machines all the time",
    "walk": "a capacity that goes up and down by random steps",
}
"""Term of campaigns -> its meaning."""
TERMS = {
    "case": "a scheduler with its options",
    "reference": "the case that the others are compared with",
    "envelope": "the power in W that all hosts together may draw, over time",
    "keep to the envelope": f"to draw no more than {percent(WITHIN)} of the energy above the envelope",
    "walltime": "the time after which a job is killed, as its user states it at submission",
    "Pareto front": "the cases that no other dominates",
    "dominated": "another case has no less finished work (or goodput) with no more slowdown, and is better in one",
    "added wait": "mean difference of the wait to the reference, over the jobs that finish in both cases",
    "standard error": "standard deviation / square root of the count, of samples or of paired differences",
    "chance": "a difference is more than chance if 0 is outside its 95 % interval: mean ± Student's t x standard error",
    "seeds": "runs of a case that draws at random, each with other numbers, the same for all cases",
}
"""Term -> its meaning."""
TERM = Markup('<abbr class="term" tabindex="0" data-tip="{}">{}</abbr>')


class Glossary:
    """Marker of terms within texts, with their meanings by term."""

    def __init__(self, meanings: Mapping[str, str]) -> None:
        words = sorted(meanings, key=len, reverse=True)
        self._pattern = re.compile(rf"(?<![\w-])({'|'.join(map(re.escape, words))})(s?)(?![\w-])", re.IGNORECASE)
        self._by_lower = {word.lower(): meaning for word, meaning in meanings.items()}

    def marked(self, text: str) -> Markup:
        """Return a text as HTML in which the first occurrence of each term has its meaning as a tip."""
        parts, end, seen = [], 0, set()
        for match in self._pattern.finditer(text):
            term = match[1].lower()
            if term not in seen:
                seen.add(term)
                tip = self._by_lower[term]
                parts += [escape(text[end : match.start()]), TERM.format(tip, match[0])]
                end = match.end()
        return Markup("").join([*parts, escape(text[end:])])
