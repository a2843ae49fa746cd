"""Several jobs on one host: a fair share of its cores for each task (SimGrid's fair bottleneck).

Rates grow together, each task getting the same flop/s on every host that limits it, until a host is full or a task
reaches what one core per executor allows.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

from batwatt.engine.machines import Machines
from batwatt.engine.tasks import Run
from batwatt.model import hostset
from batwatt.model.workload import Parallel

FULL = 1e-9
"""Fraction of a host's speed below which it has nothing left to give."""


def fair_rates(demands: list[dict[int, float]], limits: list[float], capacity: dict[int, float]) -> list[float]:
    """Rate (1/s) of each task; `demands[task][host]` in flop, `limits[task]` in 1/s, `capacity[host]` in flop/s."""
    rates = [0.0] * len(demands)
    left = dict(capacity)
    active = [task for task, demand in enumerate(demands) if demand]
    while active:
        users: dict[int, int] = {}
        for task in active:
            for host in demands[task]:
                users[host] = users.get(host, 0) + 1
        # one increment for all at once: the shares are those at the beginning of the round
        share = {host: left[host] / count for host, count in users.items()}
        stopped = set()
        for task in active:
            grow = min(share[host] / flops for host, flops in demands[task].items())
            if grow >= limits[task] - rates[task]:
                grow = limits[task] - rates[task]
                stopped.add(task)
            rates[task] += grow
            for host, flops in demands[task].items():
                left[host] -= grow * flops
        full = {host for host in users if left[host] <= FULL * capacity[host]}
        active = [task for task in active if task not in stopped and not full.intersection(demands[task])]
    return rates


def rebalance(runs: Iterable[Run], machines: Machines, now: float) -> float:
    """Set rate, end and hosts' power of every run; returns the power in W beyond the hosts' idle power."""
    tasks: list[Run] = []
    demands: list[dict[int, float]] = []
    limits: list[float] = []
    runs = list(runs)
    for run in runs:
        run.charge(now)
        run.progress(now) if isinstance(run.leaf, Parallel) else run.retime(machines, now)
        if not isinstance(run.leaf, Parallel):
            continue
        demand: dict[int, float] = {}
        limit = math.inf
        loads = run.load_of or [(host, run.each_flops or 0.0, run.each_flops or 0.0) for host in hostset.ids(run.mask)]
        for host, most, total in loads:
            if total > 0.0:
                demand[host] = total
                limit = min(limit, machines.hosts[host].pstates[machines.pstate[host]].speed_flops / most)
        tasks.append(run)
        demands.append(demand)
        limits.append(limit)
    capacity = {}
    for demand in demands:
        for host in demand:
            machine = machines.hosts[host]
            capacity[host] = machine.cores * machine.pstates[machines.pstate[host]].speed_flops
    used: dict[int, float] = {}
    for run, demand, rate in zip(tasks, demands, fair_rates(demands, limits, capacity), strict=True):
        run.set_rate(rate if demand else math.inf, now)
        for host, flops in demand.items():
            used[host] = used.get(host, 0.0) + rate * flops
    extra = 0.0
    power: dict[int, float] = {}
    for host, flops in used.items():
        pstate = machines.hosts[host].pstates[machines.pstate[host]]
        power[host] = pstate.power_w(min(1.0, flops / capacity[host])) - pstate.idle_w
        extra += power[host]
    for run in runs:
        run.hosts_w = machines.idle_w(run.mask) + sum(power.get(host, 0.0) for host in hostset.ids(run.mask))
    return extra
