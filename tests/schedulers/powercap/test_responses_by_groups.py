"""Responses over sets of servers do what the rules do server by server; their cost does not grow with the servers."""

from __future__ import annotations

import math
import random

import pytest
from builders import envelope, job, machine, played
from clusters import Attempt, enqueue, run_now, set_states
from plain_responses import PlainFrugal, PlainPlan, changed_plan

from batwatt.model import hostset
from batwatt.model.platform import Host, Platform, PState, Sleep
from batwatt.schedulers.easy import Easy
from batwatt.schedulers.powercap import frugal, plan, responses
from batwatt.schedulers.powercap.plan import Plan, in_order, repeats
from batwatt.scheduling import cluster as tracked
from batwatt.scheduling.cluster import Cluster
from batwatt.scheduling.orders import FirstCome
from batwatt.scheduling.queue import Queue
from batwatt.scheduling.registry import make

RESPONSES = ("idfs", "iafs", "idsb", "iasb", "hfld", "frugal")
WATTS = (0.1, 0.2, 0.3, 190.738, 95.369, 1e-3, 2e-3, 100.0, 60.0, 20.0, 40.0, 5.0, 0.0)


def random_kind(draw: random.Random) -> tuple[tuple[PState, ...], tuple[Sleep, ...], int]:
    """States of a kind of servers, its sleep states and cores.

    Some have powers in proportion to speeds, some numbers that are equal only within a tolerance, some no sleep state.
    """
    count, unit = draw.randint(1, 4), draw.choice((1.0, 1.0, 0.1, 1.6))
    watts = draw.choice(
        ([draw.choice(WATTS) for _ in range(count)], [20.0 * (1 + i) for i in range(count)], [20.0] * count)
    )
    shares, more_w = draw.choice((((0.0,), (0.0,)), ((0.0, 6e-10, 12e-10), (0.0, 6e-7, 12e-7))))
    states = []
    for i in range(count):
        power_w = watts[i] + draw.choice(more_w)
        states.append(PState(unit * (1 + i) * (1.0 + draw.choice(shares)), power_w / 2.0, power_w / 2.0, power_w))
    draw.shuffle(states)
    sleeps = []
    for _ in range(draw.choice((0, 1, 1, 1, 2))):
        first = len(states)
        states += [PState(1e-3, 0.0, 0.0, draw.choice(WATTS)) for _ in range(3)]
        sleeps.append(Sleep(first, first + 1, first + 2))
    return tuple(states), tuple(sleeps), draw.choice((1, 1, 2))


def random_cluster(draw: random.Random) -> Cluster:
    """A cluster of 1 to 4 kinds: hosts busy, asleep, switching, draining and lost, and jobs that wait."""
    kinds = [random_kind(draw) for _ in range(draw.randint(1, 4))]
    if draw.random() < 0.3 and kinds[0][1]:
        # the last state is a transition of sleep
        states, sleeps, cores = kinds[0]
        kinds[-1] = ((*states[:-1], PState(1e-3, 0.0, 0.0, 7.0)), sleeps, cores)
    count = draw.choice((draw.randint(1, 6), draw.randint(7, 14), draw.randint(15, 30)))
    hosts = []
    for number in range(count):
        states, sleeps, cores = draw.choice(kinds)
        hosts.append(Host(number, f"h{number}", states, cores=cores, sleeps=sleeps, has_power=True))
    platform = Platform(tuple(hosts))
    cluster = Cluster(count, Queue(FirstCome()), platform)
    states = []
    for host in hosts:
        asleep = bool(host.sleeps) and draw.random() < 0.3
        states.append(draw.choice(host.sleeps).sleep if asleep else draw.choice(host.compute))
        cluster.asleep |= asleep << host.id
    set_states(cluster, states)
    cluster.idle &= ~cluster.asleep
    free, now_s = hostset.ids(cluster.idle), draw.choice((0.0, 50.0, 100.0))
    draw.shuffle(free)
    while free and draw.random() < 0.7:
        taken = [free.pop() for _ in range(min(len(free), draw.randint(1, 4)))]
        work = draw.choice((0.0, 10.0, 300.0, 1e4))
        run_now(cluster, f"j{len(free)}", sum(1 << each for each in taken), draw.choice((0.0, now_s / 2.0, now_s)),
                draw.choice((0.5, 100.0, 100.0, 300.0, 1e4)), work)  # fmt: skip
    cluster.now_s = now_s
    for host in hosts:
        chance, bit = draw.random(), 1 << host.id
        if chance < 0.08 and host.sleeps and cluster.idle & bit:
            cluster.set_pstate(bit, host.sleeps[0].sleep)
        elif chance < 0.08 and cluster.asleep & bit:
            cluster.set_pstate(bit, draw.choice(host.compute))
        elif chance < 0.12:
            cluster.draining |= bit & cluster.busy
        elif chance < 0.16:
            cluster.transitions.set_away(bit, True)
        elif chance < 0.2:
            cluster.transitions.failed |= bit & (cluster.switching_on | cluster.switching_off)
    widths = [draw.randint(1, count) for _ in range(draw.choice((0, 0, 1, 2, 5)))]
    enqueue(cluster.queue, *(Attempt(f"w{number}", width, 100.0) for number, width in enumerate(widths)))
    return cluster


def random_cap_w(draw: random.Random, cluster: Cluster) -> float:
    """A cap in W, often one at which powers of servers are equal to it."""
    kinds = [host for host, _ in cluster.platform.members]
    power_w = PlainPlan(cluster).power_w()
    steps_w = [state.full_w for host in kinds for state in host.pstates]
    near_w = power_w + math.fsum(draw.choice((1, -1)) * draw.choice(steps_w) for _ in range(draw.randint(0, 6)))
    return max(
        0.0, draw.choice((near_w, near_w, round(near_w, 3), power_w * draw.random(), 2.0 * power_w, near_w / 0.85))
    )


def check_case(seed: int) -> None:
    draw = random.Random(seed)
    parameters = {"headroom": draw.choice((0.0, 0.15)), "efficiency": draw.choice((0.5, 0.9)),
                  "backlog": draw.choice((0.0, 2.0)), "reserve": draw.choice((0.1, 0.4, 2.0))}  # fmt: skip
    ours, plain = make("response", {"name": "frugal"} | parameters), PlainFrugal(**parameters)
    for _ in range(2):
        cluster = random_cluster(draw)
        cap_w, last, turns = random_cap_w(draw, cluster), draw.random() < 0.3, draw.random() < 0.5
        ahead = draw.choice(((), (), (random_cap_w(draw, cluster),), (cap_w / 2.0, random_cap_w(draw, cluster))))
        call = draw.choice(("respond", "respond", "adjust", "admit"))
        for name in RESPONSES:
            response = {"frugal": ours, "hfld": make("response", {"name": "hfld", "turns": turns})}.get(name)
            plan, expected = Plan(cluster, ahead, last), PlainPlan(cluster, ahead, last)
            assert plan.power_w == expected.power_w()
            method = call if name == "frugal" else "respond"
            getattr(response or make("response", name), method)(plan, cap_w)
            changed_plan(expected, cap_w, name, call, turns, plain)
            assert plan.state == expected.state, (seed, name)
            assert [run.attempt.id for run in plan.killed] == [run.attempt.id for run in expected.killed], (seed, name)
            assert plan.power_w == expected.power_w(), (seed, name)
            check_requests(plan, expected)


def check_requests(plan: Plan, expected: PlainPlan) -> None:
    """One request for each state, kind and condition, that of the lowest host first, and only for hosts that change."""
    requests: dict[tuple[int, int, bool], int] = {}
    for server in expected.ids:
        if expected.state[server] != expected.before[server]:
            asleep = bool(expected.cluster.asleep >> server & 1)
            key = (expected.state[server], expected.cluster.platform.kinds[server], asleep)
            requests[key] = requests.get(key, 0) | 1 << server
    assert list(plan.changes()) == [(mask, state) for (state, *_), mask in requests.items()]


@pytest.mark.parametrize("first", range(0, 400, 50))
def test_rules_over_sets_are_the_rules_by_the_server(first):
    for seed in range(first, first + 50):
        check_case(seed)


@pytest.mark.deep
@pytest.mark.parametrize("first", range(10_000, 20_000, 1_000))
def test_rules_over_sets_are_the_rules_by_the_server_in_many_cases(first):
    for seed in range(first, first + 1_000):
        check_case(seed)


# sets, sums and counts ------------------------------------------------------------------------------------------------


def test_servers_of_several_sets_come_in_the_order_of_ids():
    assert list(in_order([("a", 0b1001011), ("b", 0b0110000)])) == [("a", 0b1011), ("b", 0b110000), ("a", 0b1000000)]
    assert list(in_order([("a", 0b11)])) == [("a", 0b11)]
    assert list(in_order([])) == []


def test_a_change_is_repeated_until_the_first_time_that_it_is_not_made():
    assert [repeats(most, lambda i: i < 3) for most in (0, 2, 3, 9)] == [0, 2, 3, 3]
    # one that makes room for the next
    assert repeats(5, lambda i: i >= 0) == 5
    assert repeats(5, lambda i: i > 0) == 0


def test_sums_in_whole_units_are_the_sums_of_all_servers_rounded_once():
    draw = random.Random(1)
    for _ in range(200):
        count = draw.randint(1, 60)
        watts = [draw.choice((*WATTS, 1e-9, 1e9, draw.random())) for _ in range(4)]
        hosts = [Host(i, f"h{i}", (PState(1.0, 0.0, 0.0, draw.choice(watts)),), has_power=True) for i in range(count)]
        platform = Platform(tuple(hosts))
        plan = Plan(Cluster(count, Queue(FirstCome()), platform))
        assert plan.power_w == math.fsum(host.pstates[0].full_w for host in hosts)
        assert all(plan.watts(platform.units(power_w)) == power_w for power_w in {h.pstates[0].full_w for h in hosts})


class CountedHosts(tuple):
    """Hosts that count how many of them are looked at."""

    looks = 0

    def __iter__(self):
        CountedHosts.looks += len(self)
        return super().__iter__()

    def __getitem__(self, index):
        CountedHosts.looks += 1
        return super().__getitem__(index)


class FromTheFirstJob(Easy):
    """Counts what the decisions look at, not what is prepared at the beginning."""

    def onSimulationBegins(self):
        super().onSimulationBegins()
        CountedHosts.looks = 0


def looks(monkeypatch, response: str, count: int) -> int:
    """Count the servers looked at, one by one, in a run of 500 jobs on `count` servers of two kinds."""

    class CountedIds:
        def __getattr__(self, name):
            return getattr(hostset, name)

        def ids(self, mask):
            CountedHosts.looks += mask.bit_count()
            return hostset.ids(mask)

    def counted_power_w(*arguments, power_w=plan._power_w):
        CountedHosts.looks += 1
        return power_w(*arguments)

    draw, platform = random.Random(3), machine(count // 2, count // 2)
    rows = [
        job(
            number,
            60.0 * number,
            count // 500 * draw.randint(1, 200),
            run := draw.uniform(60.0, 2000.0),
            1.5 * run,
            True,
        )
        for number in range(500)
    ]
    caps = envelope(*(platform.full_w * draw.uniform(0.2, 0.9) for _ in range(100)), platform.full_w)
    options = {
        "response": response,
        "order": "fcfs",
        "envelope": caps,
        "platform": Platform(CountedHosts(platform.hosts)),
    }
    with monkeypatch.context() as patch:
        patch.setattr(plan, "_power_w", counted_power_w)
        for module in (plan, frugal, responses, tracked):
            patch.setattr(module, "hostset", CountedIds())
        record = played(FromTheFirstJob(options), platform, *rows)
    assert len(record.jobs) == 500
    return CountedHosts.looks


@pytest.mark.parametrize("response", RESPONSES)
def test_the_servers_looked_at_one_by_one_do_not_grow_with_the_servers(response, monkeypatch):
    few, many = (looks(monkeypatch, response, count) for count in (500, 4000))
    assert few > 500 and many == pytest.approx(few, rel=0.1)
