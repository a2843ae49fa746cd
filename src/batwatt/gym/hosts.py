"""The hosts of an episode as an agent switches them off and on, by kind of hosts."""

from __future__ import annotations

import math
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from batwatt.errors import InputError
from batwatt.model import hostset
from batwatt.model.hostset import HostSet
from batwatt.model.platform import NOISE_W, Host, Platform
from batwatt.scheduling.cluster import Cluster

OFF: Final = "off"
ON: Final = "on"


def host_actions(platform: Platform) -> list[tuple[str, int]]:
    """List the actions on hosts as (verb, kind of hosts), for kinds that can sleep.

    Raises InputError if no kind can, or a host begins in a p-state in which no job runs.
    """
    able = [kind for kind, host in enumerate(_kinds(platform)) if host.sleeps]
    if not (able and all(host.initial_pstate in host.compute for host in platform.hosts)):
        problem = "no host has p-states for off and on, or one begins in a p-state without jobs"
        raise InputError(platform.source, problem, "correct it, or leave out 'switch'")
    return [(verb, kind) for verb in (OFF, ON) for kind in able]


def _kinds(platform: Platform) -> list[Host]:
    """Return the first host of each kind."""
    return [platform.hosts[platform.kinds.index(kind)] for kind in range(max(platform.kinds) + 1)]


class HostControl:
    """Switching of hosts; sets of hosts are masks, vectors have an entry for each kind (K,).

    `actions` are pairs of a verb and a kind. `idle_since_s` says since when each host is on without a job.
    """

    def __init__(self, cluster: Cluster, actions: list[tuple[str, int]], bs: Any) -> None:
        platform = cluster.platform
        assert platform is not None
        self.cluster, self.actions, self._bs, self._hosts = cluster, actions, bs, platform.hosts
        self._kinds = _kinds(platform)
        numbers = np.array(platform.kinds)
        self.members = [hostset.of_ids(np.flatnonzero(numbers == kind).tolist()) for kind in range(len(self._kinds))]
        self.idle_since_s = np.zeros(len(platform))
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
        self._idle_w = math.fsum(idle_w * hosts.bit_count() for (idle_w, _), hosts in groups.items())
        """Power in W of all hosts without a job."""
        self._groups = [(full_w - idle_w, hosts) for (idle_w, full_w), hosts in groups.items()]
        self._extra_w = np.zeros(len(self._hosts))
        """Power in W by which each host rises with a job."""
        for extra_w, hosts in self._groups:
            self._extra_w[hostset.ids(hosts)] = extra_w

    def _watts(self, host: Host, state: int) -> tuple[float, float]:
        """Return the power in W of a host without and with a job; in a transition it is the most of its states."""
        bit, idle_w = 1 << host.id, host.pstates[state].idle_w
        if self.cluster.switching_off & bit:
            idle_w = max(idle_w, host.pstates[host.sleep_of[state].switch_off].full_w)
        elif self.cluster.switching_on & bit:
            idle_w = max(idle_w, host.pstates[host.sleeps[0].switch_on].full_w)
        return (idle_w, idle_w) if self.off & bit else (idle_w, max(idle_w, host.pstates[state].full_w))

    def power_w(self, busy: int) -> float:
        """Return the power in W with jobs on the hosts of a mask, as the envelope bounds it."""
        watts = self._idle_w
        for extra_w, hosts in self._groups:
            watts += extra_w * (hosts & busy).bit_count()
        return watts

    def fitting(self, free: int, slack_w: float) -> int:
        """Return the number of hosts of a mask, lowest ids first, whose power with jobs rises by up to `slack_w` W."""
        return int(np.searchsorted(np.cumsum(self._extra_w[hostset.ids(free)]), slack_w, side="right"))

    def _boot_w(self, kind: int) -> float:
        """Return the most W by which the power of all hosts rises once a host of a kind switches on."""
        host = self._kinds[kind]
        sleep, on = host.sleeps[0], host.pstates[host.initial_pstate]
        return max(host.pstates[sleep.switch_on].full_w, on.idle_w) - host.pstates[sleep.sleep].idle_w

    # actions --------------------------------------------------------------------------------------------------------

    def possible(self, slack_w: float, to_come: bool, must_act: bool) -> list[bool]:
        """Return a flag for each action, True if it is possible.

        `slack_w` is what the envelope leaves in W. Without anything `to_come` no host is switched off; where the agent
        `must_act` the envelope does not count.
        """
        flags = []
        for verb, kind in self.actions:
            if verb == OFF:
                flags.append(to_come and bool(self.cluster.free & self.members[kind]))
            else:
                allowed = must_act or self._boot_w(kind) <= slack_w + NOISE_W
                flags.append(allowed and bool(self.cluster.asleep & self.members[kind]))
        return flags

    def carry_out(self, verb: str, kind: int) -> None:
        """Carry out an action: `off` takes the host of the kind that is idle longest, `on` the lowest id asleep."""
        host, members = self._kinds[kind], self.members[kind]
        if verb == ON:
            mask, state = hostset.lowest(self.cluster.asleep & members, 1), host.initial_pstate
        else:
            idle = hostset.ids(self.cluster.free & members)
            mask, state = 1 << min(idle, key=lambda each: (self.idle_since_s[each], -each)), host.sleeps[0].sleep
        self.cluster.now_s = self._bs.time()
        self.cluster.set_pstate(mask, state)
        self._bs.set_resource_state(HostSet(mask), state)
        self._group()

    def arrived(self, mask: int, state: int) -> int:
        """Note hosts that arrive in a p-state, and return them; others were sent to another p-state since then."""
        mask = hostset.of_ids([host for host in hostset.ids(mask) if self.cluster.pstate[host] == state])
        self.idle(mask & self.cluster.switching_on)
        self.cluster.arrived(mask)
        self._group()
        return mask

    def idle(self, mask: int) -> None:
        """Note that hosts are on without a job from now."""
        if self.actions:
            self.idle_since_s[hostset.ids(mask)] = self._bs.time()

    # observations of an agent ---------------------------------------------------------------------------------------

    def counts(self, mask: int) -> NDArray[np.float64]:
        """Count the hosts of a mask by kind, (K,)."""
        return np.array([float((mask & members).bit_count()) for members in self.members])

    def longest_idle_s(self) -> NDArray[np.float64]:
        """Return the s for which the host of each kind that is idle longest has been so; 0 without one; (K,)."""
        now_s = self._bs.time()
        idle = [self.idle_since_s[hostset.ids(self.cluster.free & members)] for members in self.members]
        return np.array([now_s - float(since.min()) if len(since) else 0.0 for since in idle])
