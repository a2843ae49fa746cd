"""`batwatt.testing`: parts of ours keep the laws (all of them in schedulers/test_laws.py), and it finds others."""

from __future__ import annotations

import pytest

import batwatt.schedulers.powercap
import batwatt.schedulers.riskaware
import batwatt.schedulers.varcap  # noqa: F401  (they register all parts)
from batwatt.errors import BatwattError
from batwatt.scheduling.registry import names
from batwatt.testing import SYSTEMS, LawError, check_part

PARTS = [("order", name) for name in names("order")]
PARTS += [(kind, names(kind)[-1]) for kind in SYSTEMS if kind not in ("order", "node_selection")]
PARTS += [("policy", name) for name in ("oracle", "suspend-resume", "phase-aware")]


@pytest.mark.parametrize("kind,name", PARTS)
def test_our_parts(kind, name):
    check_part(kind, name, cases=1)


BROKEN = """
from batwatt.scheduling.backfilling import Backfilling
from batwatt.scheduling.orders import Order
from batwatt.scheduling.registry import register
from batwatt.scheduling.victims import VictimRule
from batwatt.schedulers.carbon.policies import carbon_policy

@register("order", "fickle")
class Fickle(Order):
    def key(self, jobs, now_s):
        return jobs.submit_s * (now_s - 1000.0)

@register("backfilling", "narrow")
class Narrow(Backfilling):
    def place(self, cluster):
        for row in cluster.queue.ordered(cluster.now_s):
            if cluster.free:
                return [(row, cluster.free & -cluster.free)]
        return []

@register("backfilling", "selfish")
class Selfish(Backfilling):
    def place(self, cluster):
        return []

@register("victim", "generous")
class Generous(VictimRule):
    def saved_s(self, victim):
        return victim.length_s

@carbon_policy("too-late")
def too_late(job, window, integral, known):
    begin_s = window.latest_s + 60.0
    return ((begin_s, begin_s + job.length_s),)
"""


@pytest.mark.parametrize(
    "kind,name,error",
    [
        ("order", "fickle", "seed 0: it is time_invariant, but its keys change"),
        # the engine finds it before the law does
        ("backfilling", "narrow", "hosts"),
        ("victim", "generous", "saved_s is"),
        ("policy", "too-late", "after the deadline"),
    ],
)
def test_what_breaks_a_law_is_found(tmp_path, kind, name, error):
    plugin = tmp_path / "broken.py"
    plugin.write_text(BROKEN)
    with pytest.raises((LawError, BatwattError), match=error):
        check_part(kind, name, plugin=plugin)


def test_an_unknown_kind():
    with pytest.raises(ValueError, match="kind must be policy or one of"):
        check_part("colour", "red")


def test_a_shipped_part_is_not_replaced(tmp_path):
    plugin = tmp_path / "mine.py"
    plugin.write_text(
        "from batwatt.scheduling.orders import Order\nfrom batwatt.scheduling.registry import register\n\n"
        '@register("order", "fcfs")\nclass Fcfs(Order):\n    def key(self, jobs, now_s):\n        return 0.0\n'
    )
    with pytest.raises(BatwattError, match=r"order 'fcfs' is already batwatt\.scheduling\.orders\.FirstCome"):
        check_part("order", "fcfs", plugin=plugin)
