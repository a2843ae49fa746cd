"""The hosts of an episode as an agent switches them off and on and slows them down, by kind of hosts."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from batwatt.errors import InputError
from batwatt.model import hostset
from batwatt.model.hostset import HostSet
from batwatt.model.platform import NOISE_W, Host, Platform
from batwatt.scheduling.cluster import Cluster, Progress
from batwatt.scheduling.jobs import ManagedJob
from batwatt.units import REPORTED_S

OFF: Final = "off"
ON: Final = "on"
SLOWER: Final = "slower"
FASTER: Final = "faster"


def host_actions(platform: Platform, switch: bool, dvfs: bool) -> list[tuple[str, int]]:
    """List the actions on hosts as (verb, kind): of kinds that can sleep, and of kinds with slower p-states.

    Raises InputError if no host has such states, or one begins in a state in which no job runs.
    """
    kinds = _first_of_kinds(platform)
    if switch or dvfs:
        for host in platform.hosts:
            if host.initial_pstate not in host.compute:
                problem = f"host {host.name!r} begins in p-state {host.initial_pstate}, which runs no job"
                raise InputError(platform.source, problem, "let it begin in a computation p-state")
    able = {
        (OFF, ON): [kind for kind, host in enumerate(kinds) if switch and host.sleeps],
        (SLOWER, FASTER): [kind for kind, host in enumerate(kinds) if dvfs and len(_levels(host)) > 1],
    }
    for (verbs, numbers), wanted, states in zip(
        able.items(), (switch, dvfs), ("sleep p-state", "slower p-state"), strict=True
    ):
        if wanted and not numbers:
            raise InputError(
                platform.source, f"no host has a {states} for the actions {' and '.join(verbs)}", "add one"
            )
    return [(verb, kind) for verbs, numbers in able.items() for verb in verbs for kind in numbers]


def _first_of_kinds(platform: Platform) -> list[Host]:
    """Return the first host of each kind."""
    first: dict[int, Host] = {}
    for host, kind in zip(platform.hosts, platform.kinds, strict=True):
        first.setdefault(kind, host)
    return list(first.values())


def _levels(host: Host) -> tuple[int, ...]:
    """Return the computation p-states from the initial one to the slowest."""
    return host.compute[host.compute.index(host.initial_pstate) :]


def _on_w(host: Host, state: int) -> tuple[float, float]:
    """Return the power in W without and with a job of a host that is on."""
    pstate = host.pstates[state]
    return pstate.idle_w, max(pstate.idle_w, pstate.full_w)


class HostControl:
    """Switch hosts and change their p-states; sets of hosts are masks, vectors have an entry for each kind (K,).

    `actions` are pairs of a verb and a kind. `idle_since_s` says since when each host is on without a job. A kind is
    as fast as its initial p-state at most, and all of its hosts that are on have one p-state.
    """

    def __init__(self, cluster: Cluster, actions: list[tuple[str, int]], bs: Any) -> None:
        platform = cluster.platform
        assert platform is not None
        self.cluster, self.actions, self._bs = cluster, actions, bs
        self._hosts = platform.hosts
        self._fastest_flops = platform.fastest_flops
        self._kinds = _first_of_kinds(platform)
        self.members = [0] * len(self._kinds)
        for host, kind in enumerate(platform.kinds):
            self.members[kind] |= 1 << host
        self.level = [0] * len(self._kinds)
        self._changed_s = [-math.inf] * len(self._kinds)
        self.idle_since_s = np.zeros(len(platform))
        self._progress: dict[str, Progress] = {}
        self._group()

    @property
    def off(self) -> int:
        """The hosts that are asleep or switching."""
        return self.cluster.asleep | self.cluster.switching_on | self.cluster.switching_off

    # power ----------------------------------------------------------------------------------------------------------

    def _group(self) -> None:
        """Group the hosts by their power in W without and with a job."""
        groups: dict[tuple[float, float], int] = {}
        for host, state in zip(self._hosts, self.cluster.pstate, strict=True):
            watts = self._watts(host, state)
            groups[watts] = groups.get(watts, 0) | 1 << host.id
        self._groups = [(idle_w, full_w, hosts) for (idle_w, full_w), hosts in groups.items()]

    def _watts(self, host: Host, state: int) -> tuple[float, float]:
        """Return the power in W of a host without and with a job; in a transition it is the most of its states."""
        bit, idle_w = 1 << host.id, host.pstates[state].idle_w
        if self.cluster.switching_off & bit:
            idle_w = max(idle_w, host.pstates[host.sleep_of[state].switch_off].full_w)
        elif self.cluster.switching_on & bit:
            idle_w = max(idle_w, host.pstates[host.sleeps[0].switch_on].full_w)
        elif not self.cluster.asleep & bit:
            return _on_w(host, state)
        return idle_w, idle_w

    def power_w(self, busy: int) -> float:
        """Return the power in W with jobs on the hosts of a mask, as the envelope bounds it."""
        return math.fsum(
            idle_w * (hosts & ~busy).bit_count() + full_w * (hosts & busy).bit_count()
            for idle_w, full_w, hosts in self._groups
        )

    def _more_w(self, verb: str, kind: int, busy: int) -> float:
        """Return how many W more all hosts draw at most once `on` or `faster` is carried out."""
        host, levels, level = self._kinds[kind], _levels(self._kinds[kind]), self.level[kind]
        if verb == ON:
            sleep, present = host.sleeps[0], host.pstates[levels[level]]
            return max(host.pstates[sleep.switch_on].full_w, present.idle_w) - host.pstates[sleep.sleep].idle_w
        before, after = (_on_w(host, levels[one]) for one in (level, level - 1))
        on = self.members[kind] & ~self.off
        return (on & ~busy).bit_count() * (after[0] - before[0]) + (on & busy).bit_count() * (after[1] - before[1])

    # actions --------------------------------------------------------------------------------------------------------

    def possible(self, free: int, busy: int, slack_w: float, to_come: bool, must_act: bool) -> list[bool]:
        """Return which actions are possible.

        `free` hosts are on without a job, `slack_w` is what the envelope leaves in W. Without anything `to_come` no
        host is switched off or slowed down; where the agent `must_act` the envelope does not count.
        """
        flags = []
        for verb, kind in self.actions:
            if verb in (OFF, SLOWER):
                flag = to_come and (bool(free & self.members[kind]) if verb == OFF else self._changeable(kind, 1))
            else:
                flag = self._wakes(kind) > 0 if verb == ON else self._changeable(kind, -1)
                flag = flag and (must_act or self._more_w(verb, kind, busy) <= slack_w + NOISE_W)
            flags.append(flag)
        return flags

    def _wakes(self, kind: int) -> int:
        """Return the hosts of a kind that can be switched on."""
        return self.cluster.asleep & self.members[kind] & ~self.cluster.transitions.away

    def _changeable(self, kind: int, steps: int) -> bool:
        """Return whether the p-state of a kind can change by some steps: once at a time, and while none switches on."""
        unchanged = self._bs.time() > self._changed_s[kind] + REPORTED_S
        booting = self.cluster.switching_on & self.members[kind]
        return unchanged and not booting and 0 <= self.level[kind] + steps < len(_levels(self._kinds[kind]))

    def carry_out(self, verb: str, kind: int, free: int) -> None:
        """Carry out an action: `off` takes the host of the kind that is idle longest, `on` the lowest id asleep."""
        host, members, now_s = self._kinds[kind], self.members[kind], self._bs.time()
        if verb in (SLOWER, FASTER):
            self.level[kind] += 1 if verb == SLOWER else -1
            self._changed_s[kind] = now_s
            mask = members & ~self.off
        elif verb == ON:
            mask = hostset.lowest(self._wakes(kind), 1)
        else:
            mask = 1 << min(hostset.ids(free & members), key=lambda each: (self.idle_since_s[each], -each))
        state = host.sleeps[0].sleep if verb == OFF else _levels(host)[self.level[kind]]
        if mask:
            self.cluster.now_s = now_s
            self.cluster.set_pstate(mask, state)
            self._bs.set_resource_state(HostSet(mask), state)
            for progress, hosts in self._running(mask):
                progress.done_flops, progress.since_s = progress.done_by(now_s), now_s
                progress.speed_flops = self.cluster.slowest(hosts)
            self._group()

    def arrived(self, mask: int, state: int) -> int:
        """Note hosts that arrive in a p-state, and return them; those that come on are idle from now.

        Hosts that were sent to another p-state since then are still on their way.
        """
        mask = hostset.of_ids([host for host in hostset.ids(mask) if self.cluster.pstate[host] == state])
        self._idle(mask & self.cluster.switching_on)
        self.cluster.arrived(mask)
        self._group()
        return mask

    def _idle(self, mask: int) -> None:
        for host in hostset.ids(mask):
            self.idle_since_s[host] = self._bs.time()

    # jobs -----------------------------------------------------------------------------------------------------------

    def started(self, job: ManagedJob) -> None:
        """Follow the work of a job that starts."""
        self._progress[job.job.id] = progress = Progress()
        progress.begin(job.start_s, self.cluster.slowest(job.mask))
        progress.whole = job.mask

    def _running(self, mask: int) -> Iterator[tuple[Progress, int]]:
        for progress in self._progress.values():
            if progress.whole & mask:
                yield progress, progress.whole

    def ended(self, job: ManagedJob) -> None:
        """Note that the hosts of a job are idle from now."""
        del self._progress[job.job.id]
        self._idle(job.mask)

    def ran_s(self, job: ManagedJob) -> float:
        """Return the work that a run has done, in s at the fastest speed."""
        return self._progress[job.job.id].done_by(self._bs.time()) / self._fastest_flops

    # what an agent sees ---------------------------------------------------------------------------------------------

    def counts(self, mask: int) -> NDArray[np.float64]:
        """Count the hosts of a mask by kind, (K,)."""
        return np.array([float((mask & members).bit_count()) for members in self.members])

    def longest_idle_s(self, free: int) -> NDArray[np.float64]:
        """Return how long the host of each kind that is idle longest has been so, in s; 0 without one; (K,)."""
        now_s = self._bs.time()
        idle = [self.idle_since_s[hostset.ids(free & members)] for members in self.members]
        return np.array([now_s - float(since.min()) if len(since) else 0.0 for since in idle])

    def speeds(self) -> NDArray[np.float64]:
        """Return the speed of each kind as a share of that of its initial p-state, (K,)."""
        pairs = [(host, _levels(host)) for host in self._kinds]
        return np.array(
            [
                host.pstates[levels[level]].speed_flops / host.pstates[levels[0]].speed_flops
                for (host, levels), level in zip(pairs, self.level, strict=True)
            ]
        )
