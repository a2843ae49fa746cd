"""Several jobs on one host: SimGrid's fair bottleneck, and its lazy energy meter.

SimGrid updates a host when a task of it ends, when its p-state changes and when its energy is requested; it then
charges all the time since the last update at the present load (that of the last sharing it computed).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Final

from batwatt.engine.machines import Machines
from batwatt.engine.tasks import Run
from batwatt.model.workload import Parallel

FULL_FLOPS: Final = 1e-5
"""A host with less free flop/s than this is full (SimGrid's precision of work)."""


class Meter:
    """Energy of each host in J, as SimGrid's plugin computes it."""

    def __init__(self, machines: Machines) -> None:
        count = len(machines.hosts)
        self._machines = machines
        self.energy_j = [0.0] * count
        self.load_flops = [0.0] * count
        self._seen_s = [0.0] * count
        self._seen_pstate = [0] * count  # for any initial p-state

    def look(self, hosts: Iterable[int], now: float) -> None:
        """Charge some hosts for the time since their last update, at `now` s."""
        machines = self._machines
        for host in hosts:
            elapsed = now - self._seen_s[host]
            if elapsed > 0.0:
                machine = machines.hosts[host]
                pstate = machine.pstates[self._seen_pstate[host]]
                speed = pstate.speed_flops
                load = min(1.0, self.load_flops[host] / speed / machine.cores) if speed else 1.0
                self.energy_j[host] += elapsed * pstate.power_w(load)
                self._seen_s[host] = now
                self._seen_pstate[host] = machines.pstate[host]

    def note_pstate(self, hosts: Iterable[int]) -> None:
        """Note p-states of hosts that changed at the time of the last update."""
        for host in hosts:
            self._seen_pstate[host] = self._machines.pstate[host]

    def total(self, hosts: Iterable[int]) -> float:
        """Return the energy of some hosts in J."""
        return math.fsum(self.energy_j[host] for host in hosts)


def fair_rates(
    demands: Sequence[Sequence[tuple[int, float]]], limits: Sequence[float], capacity: dict[int, float]
) -> list[float]:
    """Return the rate in 1/s of each task; `demands[task]` has (host, flop) of each executor, `limits` are in 1/s.

    As in SimGrid, each executor counts in the division of a host, and a task at its limit takes its last increment
    from its hosts in each later round, too.
    """
    rates = [0.0] * len(demands)
    step = [0.0] * len(demands)
    active = {task for task, demand in enumerate(demands) if demand}
    left = dict(capacity)
    users: dict[int, list[tuple[int, float]]] = {host: [] for host in capacity}
    for task, demand in enumerate(demands):
        for host, flops in demand:
            users[host].append((task, flops))
    while active:
        share: dict[int, float] = {}
        for host in list(left):
            count = sum(1 for task, _ in users[host] if task in active)
            if count:
                share[host] = left[host] / count
            else:
                del left[host]
        for task in sorted(active):
            grow = min(share[host] / flops for host, flops in demands[task])
            grow = step[task] = min(grow, limits[task] - rates[task])
            rates[task] += grow
            if rates[task] == limits[task]:
                active.discard(task)
        for host in list(left):
            rest = left[host]
            for task, flops in users[host]:
                rest -= flops * step[task]
                if rest < FULL_FLOPS:
                    rest = 0.0
            left[host] = rest
            if rest <= 0.0:
                del left[host]
                active.difference_update([task for task, _ in users[host]])
    return rates


def rebalance(runs: Iterable[Run], machines: Machines, meter: Meter, now: float) -> None:
    """Set the rate and end of every run and the load of every host."""
    tasks: list[Run] = []
    demands: list[list[tuple[int, float]]] = []
    limits: list[float] = []
    for run in runs:
        if not isinstance(run.leaf, Parallel):
            continue
        run.progress(now)
        demand = [(host, flops) for host, flops in run.work() if flops > 0.0]
        limit = min(
            (machines.hosts[host].pstates[machines.pstate[host]].speed_flops / flops for host, flops in demand),
            default=math.inf,
        )
        tasks.append(run)
        demands.append(demand)
        limits.append(limit)
    capacity = {}
    for demand in demands:
        for host, _ in demand:
            machine = machines.hosts[host]
            capacity[host] = machine.cores * machine.pstates[machines.pstate[host]].speed_flops
    for host, machine in enumerate(machines.hosts):
        # a host that switches computes one flop on one core
        index = machines.pstate[host]
        meter.load_flops[host] = machine.pstates[index].speed_flops if index in machine.virtual else 0.0
    for run, demand, rate in zip(tasks, demands, fair_rates(demands, limits, capacity), strict=True):
        run.set_rate(rate if demand else math.inf, now)
        for host, flops in demand:
            meter.load_flops[host] += rate * flops
