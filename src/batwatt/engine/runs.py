"""A running job: its current leaf profile, its rate of progress, its power and its end.

A composed profile runs leaf by leaf. A delay lasts its duration; a parallel task progresses at the rate (in fractions
per second) of its slowest executor: `min(speed / flops)` over executors (one core each) and
`cores * speed / sum of flops` per host. Walltime: a delay that lasts at least as long as the remaining walltime times
out, a parallel task that ends exactly then succeeds.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from batwatt.engine.machines import Machines
from batwatt.errors import IllegalDecisionError
from batwatt.model import hostset
from batwatt.model.workload import Composed, Delay, JobSpec, Parallel, Profile
from batwatt.units import PRECISION_S

SUCCESS: Final = 0
TIMEOUT: Final = 1


class Run:
    """A run of a job from its start to its end."""

    # defaults, which most runs never change
    leaf: Delay | Parallel | None = None
    stack: list[tuple[str, Composed, int]] | tuple[()] = ()
    outcome = SUCCESS
    code = 0
    late = False
    remaining = 1.0
    rate = 0.0
    event = -1
    each_flops: float | None = None
    load_of: list[tuple[int, float, float]] | None = None
    extra_w = 0.0
    hosts_w = 0.0
    energy_j = 0.0

    def __init__(
        self,
        job: JobSpec,
        profiles: Mapping[str, Profile],
        mask: int,
        width: int,
        executors: Sequence[int] | None,
        now: float,
    ) -> None:
        self.job = job
        self.profiles = profiles
        self.mask = mask
        self.executors = executors
        self.width = width
        """Number of its hosts."""
        self.count = width if executors is None else len(executors)
        self.start_s = now
        self.unseen_s = now
        self.deadline_s = math.inf if job.walltime_s is None else now + job.walltime_s
        self.since_s = now
        self.end_s = now
        self.energy_at_s = now

    # walking the profile --------------------------------------------------------------------------------------

    def advance(self, now: float) -> bool:
        """Enter the next leaf after the current one succeeded; return False at the end of the job."""
        stack = self.stack
        while isinstance(stack, list) and stack:
            name, composed, index = stack.pop()
            index += 1
            if index < len(composed.sequence) * composed.repeat:
                stack.append((name, composed, index))
                late = now >= self.deadline_s - PRECISION_S
                self.enter(composed.sequence[index % len(composed.sequence)], now)
                if late:
                    if type(self.leaf) is Delay:
                        self.outcome = TIMEOUT
                        return False
                    self.late = True
                return True
            if self.stack and composed.return_code:
                self.code = composed.return_code
                return False
        return False

    def enter(self, name: str, now: float) -> None:
        """Enter the first leaf of a profile: that of the job at its start, later a part of it."""
        profiles = self.profiles
        profile = profiles[name]
        while isinstance(profile, Composed):
            if not self.stack:
                self.stack = []
            self.stack.append((name, profile, 0))
            name = profile.sequence[0]
            profile = profiles[name]
        if self.leaf is not None:
            self.since_s = now
            self.outcome = SUCCESS
            self.load_of = None
            self.each_flops = None
        self.leaf = profile
        if isinstance(profile, Delay):
            self.remaining = profile.duration_s
            self.rate = 1.0
            return
        self.remaining = 1.0
        self.rate = 0.0
        executors = self.count
        each = profile.each_flops(executors)
        if each is not None and self.executors is None:
            self.each_flops = each
            return
        flops = profile.flops if profile.flops is not None else (each or 0.0,) * executors
        if len(flops) != executors:
            raise IllegalDecisionError(
                f"EXECUTE_JOB {self.job.id}", f"profile {name!r} is for {len(flops)} executors, not {executors}"
            )
        hosts = hostset.ids(self.mask)
        most: dict[int, float] = dict.fromkeys(hosts, 0.0)
        total: dict[int, float] = dict.fromkeys(hosts, 0.0)
        for index, work in enumerate(flops):
            host = hosts[index if self.executors is None else self.executors[index]]
            most[host] = max(most[host], work)
            total[host] += work
        self.load_of = [(host, most[host], total[host]) for host in hosts]

    def work(self) -> list[tuple[int, float]]:
        """Return (host, flop) of each executor of a parallel task."""
        assert isinstance(self.leaf, Parallel)
        hosts = hostset.ids(self.mask)
        count = self.count
        each = self.leaf.each_flops(count)
        flops = [each] * count if each is not None else list(self.leaf.flops or ())
        return [
            (hosts[index if self.executors is None else self.executors[index]], work)
            for index, work in enumerate(flops)
        ]

    def executor_mask(self) -> int:
        """Return the mask of the hosts with an executor."""
        if self.executors is None:
            return self.mask
        hosts = hostset.ids(self.mask)
        return hostset.HostSet.of(hosts[index] for index in self.executors).mask

    # rate and power, when no other job shares the hosts -------------------------------------------------------

    def retime(self, machines: Machines, now: float) -> None:
        """Set rate, power and end by the p-states of the hosts; progress so far stays."""
        leaf = self.leaf
        if type(leaf) is Delay:
            self.hosts_w = machines.idle_w(self.mask, self.width)
            self.extra_w = 0.0
            end = self.since_s + self.remaining
            if end >= self.deadline_s - PRECISION_S:
                self.end_s = self.deadline_s
                self.outcome = TIMEOUT
            else:
                self.end_s = end
            return
        self.progress(now)
        each = self.each_flops
        if each is not None:
            modes = machines.modes_of(self.mask, self.width)
            if len(modes) == 1:
                mode, count = modes[0]
                pstate = mode.pstate
                slowest = pstate.speed_flops
                idle = count * pstate.idle_w
                power = count * pstate.power_w(1.0 / mode.cores if each > 0.0 else 0.0)
            else:
                slowest = min([mode.pstate.speed_flops for mode, _ in modes])
                idle = power = 0.0
                for mode, count in modes:
                    pstate = mode.pstate
                    idle += count * pstate.idle_w
                    load = slowest / (mode.cores * pstate.speed_flops) if each > 0.0 else 0.0
                    power += count * pstate.power_w(load)
            rate = slowest / each if each > 0.0 else math.inf
        else:
            rate, idle, power = self._uneven(machines)
        self.hosts_w = power
        self.extra_w = power - idle
        self.set_rate(rate, now)

    def _uneven(self, machines: Machines) -> tuple[float, float, float]:
        """Return rate, idle power and power when executors differ or several run on one host."""
        assert self.load_of is not None
        rate = math.inf
        for host, most, total in self.load_of:
            if total > 0.0:
                machine = machines.hosts[host]
                speed = machine.pstates[machines.pstate[host]].speed_flops
                rate = min(rate, speed / most, machine.cores * speed / total)
        idle = power = 0.0
        for host, _, total in self.load_of:
            machine = machines.hosts[host]
            pstate = machine.pstates[machines.pstate[host]]
            idle += pstate.idle_w
            load = rate * total / (machine.cores * pstate.speed_flops) if total > 0.0 else 0.0
            power += pstate.power_w(load)
        return rate, idle, power

    def host_extra_w(self, machines: Machines, host: int) -> float:
        """Return the power in W of one host beyond its idle power, at the current rate of a parallel task."""
        flops = self.each_flops
        if flops is None:
            flops = next(total for member, _, total in self.load_of or () if member == host)
        if not flops > 0.0:
            return 0.0
        machine = machines.hosts[host]
        pstate = machine.pstates[machines.pstate[host]]
        return pstate.power_w(self.rate * flops / (machine.cores * pstate.speed_flops)) - pstate.idle_w

    def progress(self, now: float) -> None:
        """Subtract the work since the last change from the remaining work."""
        if now > self.since_s:
            self.remaining = max(0.0, self.remaining - (now - self.since_s) * self.rate)
            self.since_s = now

    def set_rate(self, rate: float, now: float) -> None:
        """Set the rate from `now` on, the end and the outcome."""
        self.rate = rate
        end = now if rate == math.inf else now + self.remaining / rate if rate > 0.0 else math.inf
        if end > self.deadline_s + PRECISION_S:
            self.end_s = self.deadline_s
            self.outcome = TIMEOUT
        else:
            self.end_s = end
            self.outcome = SUCCESS

    # energy and reporting -------------------------------------------------------------------------------------

    def charge(self, now: float) -> None:
        """Add the energy of the job's hosts since the last change of their power."""
        self.energy_j += self.hosts_w * (now - self.energy_at_s)
        self.energy_at_s = now

    def progress_report(self, now: float) -> dict[str, Any]:
        """Return the `job_progress` entry of a killed job: its position in its profile."""
        leaf = self.leaf
        if type(leaf) is Delay:
            fraction = (now - self.since_s) / leaf.duration_s
        else:
            self.progress(now)
            fraction = 1.0 if self.rate == math.inf else 1.0 - self.remaining
        name = self.job.profile
        if self.stack:
            _, composed, index = self.stack[-1]
            name = composed.sequence[index % len(composed.sequence)]
        report: dict[str, Any] = {"profile_name": name, "progress": min(1.0, max(0.0, fraction))}
        for outer, _, index in reversed(self.stack):
            report = {"profile_name": outer, "current_task_index": index, "current_task": report}
        return report

    @property
    def killed_code(self) -> int:
        """Batsim's return code for a kill of the job at present."""
        return -1 if type(self.leaf) is Delay else -2


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
