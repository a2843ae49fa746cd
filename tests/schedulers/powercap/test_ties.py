"""Equal quantities tie although their floats differ in the last digits; each case is worked out by hand.

As floats 0.8 - 0.7 > 0.3 - 0.2, 0.1 + 0.2 > 0.3, (0.3 + 0.4) - 0.3 < 0.4, 3 x 0.1 > 0.3 and 0.1 x 0.7 < 0.07.
"""

from __future__ import annotations

import re
from decimal import Decimal
from pathlib import Path

import pytest
from builders import job, machine, played, starts
from clusters import Attempt, enqueue, run_now, set_states

from batwatt.inputs.platform_files import read_platform
from batwatt.model.platform import Host, Platform, PState, Sleep
from batwatt.schedulers.easy import Easy
from batwatt.schedulers.powercap.plan import Plan
from batwatt.scheduling.cluster import Cluster
from batwatt.scheduling.orders import FirstCome
from batwatt.scheduling.queue import Gap, Queue
from batwatt.scheduling.registry import make

GRID5000 = Path(__file__).resolve().parents[3] / "platforms" / "grid5000.xml"


def servers(*kinds: list[tuple[float, float]]) -> Platform:
    """Servers of these states, (flop/s, W), fastest first; asleep they draw nothing."""
    hosts = []
    for number, states in enumerate(kinds):
        pstates = [PState(flops, watts, watts, watts) for flops, watts in states]
        pstates += [PState(1e-3), PState(0.1), PState(0.1)]
        sleep = Sleep(len(states), len(states) + 1, len(states) + 2)
        hosts.append(Host(number, f"h{number}", tuple(pstates), sleeps=(sleep,), has_power=True))
    return Platform(tuple(hosts))


TWO_STATES = [[(0.2, 100.0), (0.1, 60.0)]] * 2
CASES = {
    # 0.1 flop/s more cost 40 W or 20 W; 45 W are left
    "of equal gains of speed the cheaper": (
        "hfld", [[(0.8, 100.0), (0.7, 60.0)], [(0.3, 80.0), (0.2, 60.0)]], [1, 1], (), 0.0, 165.0, [1, 0]),
    # 1 flop/s more costs 0.1 W, which is left once
    "of equal gains at equal cost the lowest id": (
        "hfld", [[(2.0, 0.8), (1.0, 0.7)], [(2.0, 0.3), (1.0, 0.2)]], [1, 1], (), 0.0, 1.05, [0, 1]),
    # "a" has 0.7 s left for 0.07 flop: 0.1 flop/s will do, and that saves enough
    "equation 7 with equality": (
        "hfld", TWO_STATES, [0, 0], (("a", 0b01, 0.0, 0.7, 0.07), ("b", 0b10, 0.0, 0.35, 0.01)), 0.0, 170.0, [1, 0]),
    # 0 + 0.3 s = 0.1 + 0.2 s; each saves 40 W at its minimal state, which is enough
    "of equal deadlines the earlier arrival": (
        "hfld", TWO_STATES, [0, 0], (("a", 0b01, 0.0, 0.3, 0.0), ("b", 0b10, 0.1, 0.2, 0.0)), 0.1, 170.0, [1, 0]),
    # 0.1 flop/J each, but 0.3 / 3 < 0.1 / 1; one job waits, and one more server may be awake
    "servers of equal flop per joule by id": (
        "frugal", [[(0.3, 3.0)], [(0.7, 7.0)], [(0.1, 1.0)]], [0, 0, 0], ("waits",), 0.0, 100.0, [0, 0, 1]),
    # 0.6 / 3 is less than 0.2 = 0.5 x 0.4
    "half as efficient is efficient at half": (
        "frugal", [[(0.4, 1.0)], [(0.6, 3.0)]], [0, 0], ("waits",), 0.0, 100.0, [0, 0]),
    # both have done 0.3 flop: 3 s at 0.1 flop/s, 1 s at 0.3; "a" is killed
    "of equally wasted work the earlier arrival": (
        "frugal", [[(0.1, 100.0)], [(0.3, 100.0)]], [0, 0],
        (("a", 0b01, 0.0, 100.0, 5.0), ("b", 0b10, 2.0, 100.0, 5.0)), 3.0, 150.0, [1, 0]),
}  # fmt: skip
"""Response, servers, states, jobs as (name, mask, start, walltime, work), time in s, cap in W, states of the plan."""


@pytest.mark.parametrize("name", CASES)
def test_responses(name):
    response, kinds, states, jobs, now_s, cap_w, expected = CASES[name]
    cluster = Cluster(len(kinds), Queue(FirstCome()), servers(*kinds))
    set_states(cluster, states)
    if jobs == ("waits",):
        enqueue(cluster.queue, Attempt("w", 1, 10.0))
    else:
        for row in jobs:
            run_now(cluster, *row)
    cluster.now_s = now_s
    plan = Plan(cluster)
    make("response", response).respond(plan, cap_w)
    assert plan.state == expected


# orders and backfillings --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("order", "now_s", "rows"),
    [
        ("asc", 2.0, [("a", 3, 0.1, 0.0), ("b", 1, 0.3, 1.0)]),
        ("desc", 2.0, [("a", 3, 0.1, 0.0), ("b", 1, 0.3, 1.0)]),
        ("desc", 2.0, [("c", 1, 0.3, 0.0), ("d", 3, 0.1, 1.0)]),
        # waits of 0.3 and 0.2 s, walltimes of 3 and 2 s
        ("slowdown", 1.9, [("a", 1, 3.0, 1.6), ("b", 1, 2.0, 1.7)]),
        # a walltime of less than a microsecond is one
        ("slowdown", 1.0, [("a", 1, 1e-9, 0.5), ("b", 1, 1.0, 0.7)]),
        ("asc", 1.0, [("b", 1, 1.0, 0.7), ("a", 1, 1e308, 0.5)]),
    ],
)
def test_of_equal_jobs_the_earlier_submission_goes_first(order, now_s, rows):
    queue = Queue(make("order", order))
    enqueue(queue, *(Attempt(*row) for row in rows))
    assert next(queue.ordered(now_s)) is next(queue.fitting(now_s, Gap(99)))
    assert [row.attempt.id for row in queue.ordered(now_s)] == [row[0] for row in rows]


def test_a_job_that_ends_at_the_very_shadow_time_is_backfilled():
    # "a" holds one of two servers until 0.3 + 0.4 s; "c", of 0.4 s, ends then, and does not delay "b"
    record = played(
        Easy({"backfilling": "easy", "order": "fcfs"}),
        machine(2),
        job("a", 0.3, 1, 0.4, 0.4),
        job("b", 0.3, 2, 1.0, 1.0),
        job("c", 0.3, 1, 0.4, 0.4),
    )
    assert starts(record)["c"][0] == 0.3


@pytest.mark.parametrize(("prefix", "exponent"), [("k", 3), ("Y", 24)])
def test_a_platform_is_the_same_whatever_the_unit_of_its_speeds(prefix, exponent, tmp_path):
    def rewritten(match: re.Match[str]) -> str:
        flops = Decimal(match[1]).scaleb({"G": 9, "M": 6, "": 0}[match[2]])
        return f"{flops.scaleb(-exponent):f}{prefix}f"

    text, other = GRID5000.read_text(encoding="utf-8"), tmp_path / "other.xml"
    other.write_text(re.sub(r"\b([0-9.]+(?:e-?[0-9]+)?)([GM]?)f\b", rewritten, text))
    assert "Gf" in text and "Gf" not in other.read_text()
    assert read_platform(other).hosts == read_platform(GRID5000).hosts
