"""A configuration of the servers in the making: changes by responses, and its power (powercap paper, section IV).

The plan holds D_{s,d,t}, the state that each server will be in at the end of the step. Its power is that of Eq. 2: the
highest of the states that the server passes through in the step, transitions included:

| from | to | passes through | power |
|---|---|---|---|
| on | p-state d | d (DVFS is instantaneous, at the beginning of the step) | P_d |
| on | sleep | on->off, sleep | max(P_off, P_sleep) |
| asleep | asleep | sleep | P_sleep |
| asleep | p-state d | off->on, d | max(P_on, P_d) |
| in transition | fixed by an earlier step | the rest of the transition and where it leads | as when it began |

P is the power at full load (the paper's P_{s,d}), whether the server has a job or not.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise

from batwatt.errors import InputError
from batwatt.model import hostset
from batwatt.model.platform import NOISE_W, Host
from batwatt.scheduling.cluster import Cluster
from batwatt.scheduling.job import Job


class Plan:
    """The servers' states as a response changes them, starting from the present (line 2 of Algorithm 1).

    `queue` are the waiting jobs; `killed` the jobs to kill; `out` the servers out of service; `forecast_w` the caps of
    the next steps in W, if the scheduler has a forecast; `last` is True if the cap holds for ever.
    """

    def __init__(self, cluster: Cluster, forecast_w: tuple[float, ...] = (), last: bool = False) -> None:
        if cluster.platform is None:
            raise InputError("option 'platform'", "a response needs speeds and watts", "give the XML file")
        self.hosts = cluster.platform.hosts
        self.kinds = cluster.platform.kinds
        self.now_s = cluster.now_s
        self.queue = cluster.queue
        self.forecast_w = forecast_w
        self.last = last
        self.locked = cluster.locked
        self.out = cluster.transitions.out
        self.asleep = cluster.asleep
        self.switching_on = cluster.switching_on
        self.switching_off = cluster.switching_off
        self.busy = cluster.busy
        self.running = list(cluster.running.values())
        self.before = list(cluster.pstate)
        self.state = list(cluster.pstate)
        self.killed: list[Job] = []
        self._job_of: dict[int, Job] = {i: run for run in self.running for i in hostset.ids(run.mask)}
        self._power = [self._power_of(host, self.state[host.id]) for host in self.hosts]
        self.power_w = math.fsum(self._power)

    # facts ----------------------------------------------------------------------------------------------------------

    def free_to_change(self) -> list[int]:
        """Return the ids of the servers whose state may be changed in this step."""
        return [host.id for host in self.hosts if not self.locked >> host.id & 1 and host.compute]

    def job_on(self, server: int) -> Job | None:
        """Return the job that runs on a server and was not killed by this plan."""
        return self._job_of.get(server)

    def is_idle(self, server: int) -> bool:
        """Return whether no job runs on the server (asleep or on)."""
        return server not in self._job_of

    def sleeps(self, server: int) -> bool:
        """Return whether the server is or will be asleep."""
        return self.state[server] in self.hosts[server].sleep_of

    def slower(self, server: int) -> int | None:
        """Return the state one step slower: the next computation p-state, then the sleep state; None without one."""
        host, state = self.hosts[server], self.state[server]
        if state in host.sleep_of:
            return None
        rank = host.compute.index(state)
        return host.compute[rank + 1] if rank + 1 < len(host.compute) else self.sleep_state(server)

    def sleep_state(self, server: int) -> int | None:
        """Return the sleep state of a server, None if it cannot sleep."""
        host = self.hosts[server]
        return host.sleeps[0].sleep if host.sleeps else None

    def can_sleep(self, server: int) -> bool:
        """Return whether the server has a sleep state."""
        return bool(self.hosts[server].sleeps)

    def power_of(self, server: int) -> float:
        """Return the power in W of Eq. 2 of a server as it is planned."""
        return self._power[server]

    def state_power_w(self, server: int, state: int) -> float:
        """Return the power in W of Eq. 2 if the server were put in `state`."""
        return self._power_of(self.hosts[server], state)

    def _power_of(self, host: Host, state: int) -> float:
        bit = 1 << host.id
        final_w = host.pstates[state].full_w
        sleep = host.sleep_of.get(state)
        if self.switching_off & bit and sleep:
            return host.falling_w(sleep)
        if self.switching_on & bit:
            return max(final_w, *(host.pstates[sleep.switch_on].full_w for sleep in host.sleeps), 0.0)
        if self.asleep & bit:
            if sleep:
                return final_w
            return max(final_w, host.pstates[host.sleep_of[self.before[host.id]].switch_on].full_w)
        return host.falling_w(sleep) if sleep else final_w

    def exceeds(self, cap_w: float) -> bool:
        """Return whether Eq. 1 is violated."""
        return self.power_w > cap_w + NOISE_W

    def below(self, cap_w: float) -> bool:
        """Return whether the power is strictly below the cap, as Algorithm 1 tests."""
        return self.power_w < cap_w - NOISE_W

    # changes --------------------------------------------------------------------------------------------------------

    def put(self, server: int, state: int) -> None:
        """Change a server's state."""
        self.put_all({server: state})

    def put_to_sleep(self, servers: Iterable[int]) -> None:
        """Send servers to their sleep state; those that have none stay as they are."""
        states = {server: self.sleep_state(server) for server in servers}
        self.put_all({server: state for server, state in states.items() if state is not None})

    def put_all(self, states: Mapping[int, int]) -> None:
        """Change the states of several servers."""
        changed = False
        for server, state in states.items():
            if self.locked >> server & 1:
                raise ValueError(f"server {server} is in transition")
            if state != self.state[server]:
                changed = True
                self.state[server] = state
                self._power[server] = self._power_of(self.hosts[server], state)
        if changed:
            # summed again: increments would pile up rounding errors
            self.power_w = math.fsum(self._power)

    def kill(self, run: Job) -> None:
        """Give up a job; its servers are idle from then on."""
        self.killed.append(run)
        self.running.remove(run)
        for server in hostset.ids(run.mask):
            del self._job_of[server]

    def changes(self) -> Iterator[tuple[int, int]]:
        """Yield the new states as (mask, p-state), one request per state and kind of server, asleep or not.

        (Batsim acknowledges a request when its last server has arrived. Servers that wake up go apart from those that
        only change their speed, which may fall asleep before the others have arrived.)
        """
        groups: dict[tuple[int, int, int], int] = {}
        for host in self.hosts:
            if self.state[host.id] != self.before[host.id]:
                key = (self.state[host.id], self.kinds[host.id], self.asleep >> host.id & 1)
                groups[key] = groups.get(key, 0) | 1 << host.id
        for (state, *_), mask in groups.items():
            yield mask, state


SAME = 1e-9
"""Derived quantities (gains of speed, work, shares, flop per joule) are equal if they differ by this share or less."""


def at_least(value: float, bound: float) -> bool:
    """Return whether a number is above a bound, or equal to it."""
    return value >= bound - SAME * abs(bound)


def merged(values: Sequence[float], noise: float = 0.0) -> list[float]:
    """Return the numbers, those that are equal replaced by the smallest of them, so that ties can be seen.

    `noise` is a difference within which they are equal, too.
    """
    result = list(values)
    for low, high in pairwise(sorted(range(len(values)), key=values.__getitem__)):
        if values[high] - values[low] <= noise + SAME * min(abs(values[low]), abs(values[high])):
            result[high] = result[low]
    return result
