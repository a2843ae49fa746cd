"""Equal quantities tie although their floats differ in the last digits; each case is worked out by hand.

As floats 0.8 - 0.7 > 0.3 - 0.2, 0.1 + 0.2 > 0.3, (0.3 + 0.4) - 0.3 < 0.4, 3 x 0.1 > 0.3 and 0.1 x 0.7 < 0.07.
"""

from __future__ import annotations

import re
from decimal import Decimal
from pathlib import Path

import pytest
from builders import job, machine, simulated, starts
from clusters import Job, enqueue, run_now

from batwatt.files import read_text
from batwatt.inputs.platforms.platform_xml import read_platform
from batwatt.model.platform import Host, Platform, PState, Sleep
from batwatt.scheduling.cluster import Cluster
from batwatt.scheduling.orders import Fcfs
from batwatt.scheduling.queue import Gap, Queue
from batwatt.scheduling.registry import make
from batwatt.systems.powercap.frugal import Frugal
from batwatt.systems.powercap.scheduler import EnvelopeScheduler
from batwatt.systems.powercap.server_plan import Plan

ROOT = Path(__file__).resolve().parents[3]
GRID5000 = ROOT / "platforms" / "grid5000.xml"


def servers(*kinds: list[tuple[float, float]]) -> Platform:
    """Servers of these states, (flop/s, W), fastest first; asleep they draw nothing."""
    hosts = []
    for number, states in enumerate(kinds):
        pstates = [PState(flops, watts, watts, watts) for flops, watts in states]
        pstates += [PState(1e-3), PState(0.1), PState(0.1)]
        sleep = Sleep(len(states), len(states) + 1, len(states) + 2)
        hosts.append(Host(number, f"h{number}", tuple(pstates), sleeps=(sleep,), has_power=True))
    return Platform(tuple(hosts))


def cluster_on(platform: Platform, states: list[int], *jobs: tuple[str, int, float, float, float], now=0.0) -> Cluster:
    """`jobs`: (name, mask, start, walltime, work)."""
    cluster = Cluster(len(platform), Queue(Fcfs()), platform)
    cluster.pstate = list(states)
    for name, mask, start, walltime, work in jobs:
        run_now(cluster, name, mask, start, walltime, work)
    cluster.now_s = now
    return cluster


def responded(response, cluster: Cluster, cap_w: float) -> Plan:
    plan = Plan(cluster)
    response.respond(plan, cap_w)
    return plan


# HFLD ----------------------------------------------------------------------------------------------------------------


def test_of_equal_gains_of_speed_the_cheaper_one_is_chosen():
    # 0.1 flop/s more cost 40 W or 20 W; 45 W are left
    platform = servers([(0.8, 100.0), (0.7, 60.0)], [(0.3, 80.0), (0.2, 60.0)])
    plan = responded(make("response", "hfld"), cluster_on(platform, [1, 1]), 165.0)
    assert plan.state == [1, 0]


def test_of_equal_gains_at_equal_cost_the_lowest_id_is_chosen():
    # 1 flop/s more costs 0.1 W, which is left once
    platform = servers([(2.0, 0.8), (1.0, 0.7)], [(2.0, 0.3), (1.0, 0.2)])
    plan = responded(make("response", "hfld"), cluster_on(platform, [1, 1]), 1.05)
    assert plan.state == [0, 1]


def test_equation_7_holds_with_equality():
    # "a" has 0.7 s left for 0.07 flop: 0.1 flop/s will do, and that saves enough
    platform = servers(*[[(0.2, 100.0), (0.1, 60.0)]] * 2)
    jobs = ("a", 0b01, 0.0, 0.7, 0.07), ("b", 0b10, 0.0, 0.35, 0.01)
    plan = responded(make("response", "hfld"), cluster_on(platform, [0, 0], *jobs), 170.0)
    assert plan.state == [1, 0]


def test_of_equal_deadlines_the_earlier_arrival_goes_first():
    # 0 + 0.3 s = 0.1 + 0.2 s; each saves 40 W at its minimal state, which is enough
    platform = servers(*[[(0.2, 100.0), (0.1, 60.0)]] * 2)
    jobs = ("a", 0b01, 0.0, 0.3, 0.0), ("b", 0b10, 0.1, 0.2, 0.0)
    plan = responded(make("response", "hfld"), cluster_on(platform, [0, 0], *jobs, now=0.1), 170.0)
    assert plan.state == [1, 0]


# frugal --------------------------------------------------------------------------------------------------------------


def test_servers_of_equal_flop_per_joule_are_woken_by_id():
    # 0.1 flop/J each, but 0.3 / 3 < 0.1 / 1; one job waits, and one more server may be awake
    platform = servers([(0.3, 3.0)], [(0.7, 7.0)], [(0.1, 1.0)])
    cluster = cluster_on(platform, [0, 0, 0])
    enqueue(cluster.queue, Job("w", 1, 10.0))
    assert responded(Frugal(), cluster, 100.0).state == [0, 0, 1]


def test_half_as_efficient_is_efficient_at_half():
    # 0.6 / 3 is less than 0.2 = 0.5 x 0.4
    platform = servers([(0.4, 1.0)], [(0.6, 3.0)])
    cluster = cluster_on(platform, [0, 0])
    enqueue(cluster.queue, Job("w", 1, 10.0))
    assert responded(Frugal(efficiency=0.5), cluster, 100.0).state == [0, 0]


def test_of_equally_wasted_work_the_earlier_arrival_is_killed():
    # both have done 0.3 flop: 3 s at 0.1 flop/s, 1 s at 0.3
    platform = servers([(0.1, 100.0)], [(0.3, 100.0)])
    jobs = ("a", 0b01, 0.0, 100.0, 5.0), ("b", 0b10, 2.0, 100.0, 5.0)
    plan = responded(Frugal(), cluster_on(platform, [0, 0], *jobs, now=3.0), 150.0)
    assert [run.job.id for run in plan.killed] == ["a"]


# orders and backfillings --------------------------------------------------------------------------------------------


def ordered(order: str, now_s: float, *rows: tuple[str, int, float, float]) -> list[str]:
    queue = Queue(make("order", order))
    enqueue(queue, *(Job(*row) for row in rows))
    assert next(queue.ordered(now_s)) is next(queue.fitting(now_s, Gap(99)))
    return [row.job.id for row in queue.ordered(now_s)]


def test_of_equal_areas_the_earlier_submission_goes_first():
    rows = ("a", 3, 0.1, 0.0), ("b", 1, 0.3, 1.0)
    assert ordered("asc", 2.0, *rows) == ["a", "b"]
    assert ordered("desc", 2.0, *rows) == ["a", "b"]
    assert ordered("desc", 2.0, ("c", 1, 0.3, 0.0), ("d", 3, 0.1, 1.0)) == ["c", "d"]


def test_of_equal_slowdowns_the_earlier_submission_goes_first():
    # waits of 0.3 and 0.2 s, walltimes of 3 and 2 s
    assert ordered("slowdown", 1.9, ("a", 1, 3.0, 1.6), ("b", 1, 2.0, 1.7)) == ["a", "b"]


def test_a_walltime_of_less_than_a_microsecond_is_one():
    assert ordered("slowdown", 1.0, ("a", 1, 1e-9, 0.5), ("b", 1, 1.0, 0.7)) == ["a", "b"]
    assert ordered("asc", 1.0, ("a", 1, 1e308, 0.5), ("b", 1, 1.0, 0.7)) == ["b", "a"]


def test_a_job_that_ends_at_the_very_shadow_time_is_backfilled():
    # "a" holds one of two servers until 0.3 + 0.4 s; "c", of 0.4 s, ends then, and does not delay "b"
    record = simulated(
        EnvelopeScheduler({"backfilling": "easy", "order": "fcfs"}),
        machine(2),
        job("a", 0.3, 1, 0.4, 0.4),
        job("b", 0.3, 2, 1.0, 1.0),
        job("c", 0.3, 1, 0.4, 0.4),
    )
    assert starts(record)["c"][0] == 0.3


# the paper's platform ------------------------------------------------------------------------------------------------


def rewritten(prefix: str, exponent: int) -> str:
    """The paper's platform with all speeds in another unit."""

    def other(match: re.Match[str]) -> str:
        flops = Decimal(match[1]).scaleb({"G": 9, "M": 6, "": 0}[match[2]])
        return f"{flops.scaleb(-exponent):f}{prefix}f"

    return re.sub(r"\b([0-9.]+(?:e-?[0-9]+)?)([GM]?)f\b", other, read_text(GRID5000))


@pytest.mark.parametrize(("prefix", "exponent"), [("k", 3), ("Y", 24)])
def test_a_platform_is_the_same_whatever_the_unit_of_its_speeds(prefix, exponent, tmp_path):
    other = tmp_path / "other.xml"
    other.write_text(rewritten(prefix, exponent))
    assert "Gf" not in other.read_text()
    assert read_platform(other).hosts == read_platform(GRID5000).hosts
