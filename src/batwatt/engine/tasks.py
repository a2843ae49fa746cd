"""A running job: its current leaf profile, its rate of progress, its power and its end.

A composed profile runs leaf by leaf. A delay lasts its duration; a parallel task progresses at the rate (in fractions
per second) of its slowest executor: `min(speed / flops)` over executors (one core each) and
`cores * speed / sum of flops` per host. Walltime: a delay that lasts at least as long as the remaining walltime times
out, a parallel task that ends exactly then succeeds.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, Final

from batwatt.engine.machines import Machines
from batwatt.errors import IllegalDecisionError
from batwatt.model import hostset
from batwatt.model.workload import Composed, Delay, Job, Parallel, Profile
from batwatt.units import PRECISION_S

SUCCESS: Final = 0
TIMEOUT: Final = 1


class Run:
    """A run of a job from its start to its end."""

    # defaults, which most runs never change
    leaf: Delay | Parallel | None = None
    stack: list[tuple[str, Composed, int]] | tuple[()] = ()
    places: Mapping[str, tuple[int, Sequence[int] | None]] | None = None
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
        job: Job,
        profiles: Mapping[str, Profile],
        mask: int,
        width: int,
        executors: Sequence[int] | None,
        now: float,
    ) -> None:
        self.job = job
        self.profiles = profiles
        self.mask = mask
        self.leaf_mask = mask
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
        if self.places is not None:
            self._take_place(name, self.places)
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
        hosts = hostset.ids(self.leaf_mask)
        most: dict[int, float] = dict.fromkeys(hosts, 0.0)
        total: dict[int, float] = dict.fromkeys(hosts, 0.0)
        for index, work in enumerate(flops):
            host = hosts[index if self.executors is None else self.executors[index]]
            most[host] = max(most[host], work)
            total[host] += work
        self.load_of = [(host, most[host], total[host]) for host in hosts]

    def _take_place(self, leaf: str, places: Mapping[str, tuple[int, Sequence[int] | None]]) -> None:
        """Take the hosts of the innermost profile around this leaf that has an entry in `places`."""
        around = [leaf, *[name for name, _, _ in reversed(self.stack)], ""]
        self.leaf_mask, self.executors = next(places[name] for name in around if name in places)
        self.count = self.leaf_mask.bit_count() if self.executors is None else len(self.executors)

    def work(self) -> list[tuple[int, float]]:
        """Return (host, flop) of each executor of a parallel task."""
        assert isinstance(self.leaf, Parallel)
        hosts = hostset.ids(self.leaf_mask)
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
            return self.leaf_mask
        hosts = hostset.ids(self.leaf_mask)
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
