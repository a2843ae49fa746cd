"""No name and no label has two meanings, wherever figures are: files, tables, pages, campaigns, environment."""

from __future__ import annotations

import pytest

from batwatt.cli import comparison
from batwatt.gym.columns import REWARDS
from batwatt.report import table
from batwatt.report.comparison.page import TERMS
from batwatt.report.glossary import TERMS as REPORT_TERMS
from batwatt.results import columns, summary
from batwatt.results.compared import MEASURES
from batwatt.results.metrics import MEANINGS, METRICS
from batwatt.results.slowdowns import BOUND_S

GROUPS = {
    "jobs": "jobs of the group",
    "finished_share": "finished / all jobs of the group",
    "paired_jobs": "jobs that finish in this case and in the first",
    "wait_more_s": "mean of the added wait over these",
    "full_speed_slowdown_more": "mean of the added slowdown at full speed over these",
}
OWN = {"kills": table.KILLS.meaning} | GROUPS
TABLES = (summary._UNDER_POWER, summary._AT_OTHER_SPEEDS, summary._UNDER_CAPACITY, summary._OF_CHECKPOINTS)


def plain(head: str) -> str:
    """A heading in one line."""
    return head.replace("-\n", "").replace("\n", " ")


def meaning_of(names: str) -> str:
    return " + ".join((MEANINGS | OWN)[name] for name in names.split())


def measures() -> list[table.Measure]:
    """All measures that reports compare by."""
    return [value for value in vars(table).values() if isinstance(value, table.Measure)]


def named() -> list[tuple[str, str]]:
    """Every pair of name and meaning."""
    found = [(metric.name, metric.meaning) for metric in METRICS]
    found += [(measure.name, measure.meaning) for measure in (*MEASURES, *measures())]
    # Batsim's files have Batsim's names: the glossary says where they differ
    ours = {stem: those for stem, those in columns.FILES.items() if stem in ("power", "classes")}
    found += [(column.name, MEANINGS[column.name]) for those in ours.values() for column in those
              if column.name in MEANINGS and column.meaning != MEANINGS[column.name]]  # fmt: skip
    found += [(column.name, column.meaning) for those in ours.values() for column in those if column.name in MEANINGS]
    found += [(reward.metric, MEANINGS[reward.metric]) for reward in REWARDS.values() if reward.metric]
    return found


def labelled() -> list[tuple[str, str]]:
    """Every pair of label and meaning."""
    found = [(plain(head), meaning_of(names)) for shown in TABLES for head, names, *_ in shown]
    found += [(plain(head), meaning_of(names)) for head, names, *_ in comparison.GROUPS]
    found += [("\n".join(filter(None, (one.head, one.unit))), one.meaning) for one in MEASURES]
    found += [(one.title, one.meaning) for one in (*MEASURES, *measures())]
    found += [*TERMS.items(), *REPORT_TERMS.items()]
    return [(plain(label).lower(), meaning) for label, meaning in found]


def several(pairs: list[tuple[str, str]]) -> dict[str, set[str]]:
    meanings: dict[str, set[str]] = {}
    for name, meaning in pairs:
        meanings.setdefault(name, set()).add(meaning)
    return {name: found for name, found in meanings.items() if len(found) > 1}


def test_no_name_has_two_meanings():
    assert several(named()) == {}


def test_no_label_has_two_meanings():
    labels = labelled()
    assert several([(label, meaning) for label, meaning in labels if label not in COMMON]) == {}
    assert {"slowdown mean", "slowdown at full speed", "bounded slowdown", "goodput %"} <= {
        label for label, _ in labels
    }


COMMON = {"envelope", "baseline"}
"""Terms of both kinds of pages, in other words."""


@pytest.mark.parametrize("label", ["slowdown mean", "slowdown"])
def test_the_slowdown_is_batsims_alone(label):
    assert {meaning for name, meaning in labelled() if name == label} == {MEANINGS["mean_slowdown"]}


def test_the_environment_bounds_slowdowns_alike():
    assert f"{BOUND_S:g} s" in REWARDS["mean_bounded_slowdown"].meaning
    assert f"{BOUND_S:g} s" in MEANINGS["mean_bounded_slowdown"]
    # a reward with the name of a figure is that figure
    assert all(name == reward.metric for name, reward in REWARDS.items() if name in MEANINGS)
