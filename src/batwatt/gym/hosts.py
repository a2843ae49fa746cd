"""The hosts of an episode as an agent switches them off and on and slows them down, by kind of hosts."""

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
from batwatt.units import REPORTED_S

OFF: Final = "off"
ON: Final = "on"
SLOWER: Final = "slower"
FASTER: Final = "faster"


def host_actions(platform: Platform, switch: bool, dvfs: bool) -> list[tuple[str, int]]:
    """List the actions on hosts as (verb, kind of hosts).

    Raises InputError if no kind has the p-states for them, or a host begins in a p-state in which no job runs.
    """
    actions = []
    for wanted, verbs in ((switch, (OFF, ON)), (dvfs, (SLOWER, FASTER))):
        able = [k for k, host in enumerate(_kinds(platform)) if (host.sleeps if OFF in verbs else _levels(host)[1:])]
        if wanted and not (able and all(_levels(host) for host in platform.hosts)):
            problem = f"no host has p-states for {' and '.join(verbs)}, or one begins in a p-state without jobs"
            raise InputError(platform.source, problem, "correct it, or leave these actions out")
        actions += [(verb, kind) for verb in verbs for kind in able if wanted]
    return actions


def _kinds(platform: Platform) -> list[Host]:
    """Return the first host of each kind."""
    return [platform.hosts[platform.kinds.index(kind)] for kind in range(max(platform.kinds) + 1)]


def _levels(host: Host) -> tuple[int, ...]:
    """Return the computation p-states from the initial one to the slowest; none if it begins in another p-state."""
    begin = host.initial_pstate
    return host.compute[host.compute.index(begin) :] if begin in host.compute else ()


def _on_w(host: Host, state: int) -> tuple[float, float]:
    """Return the power in W without and with a job of a host that is on."""
    pstate = host.pstates[state]
    return pstate.idle_w, max(pstate.idle_w, pstate.full_w)


class HostControl:
    """Switching of hosts and changes of p-states; sets of hosts are masks, vectors have an entry for each kind (K,).

    `actions` are pairs of a verb and a kind. A kind is as fast as its initial p-state at most, `level` p-states slower
    now. `idle_since_s` says since when each host is on without a job.
    """

    def __init__(self, cluster: Cluster, actions: list[tuple[str, int]], bs: Any) -> None:
        platform = cluster.platform
        assert platform is not None
        self.cluster, self.actions, self._bs, self._hosts = cluster, actions, bs, platform.hosts
        self._kinds = _kinds(platform)
        numbers = np.array(platform.kinds)
        self.members = [hostset.of_ids(np.flatnonzero(numbers == kind).tolist()) for kind in range(len(self._kinds))]
        self.level = [0] * len(self._kinds)
        self._changed_s = [-math.inf] * len(self._kinds)
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
        return (idle_w, idle_w) if self.off & bit else _on_w(host, state)

    def power_w(self, busy: int) -> float:
        """Return the power in W with jobs on the hosts of a mask, as the envelope bounds it."""
        watts = self._idle_w
        for extra_w, hosts in self._groups:
            watts += extra_w * (hosts & busy).bit_count()
        return watts

    def fitting(self, free: int, slack_w: float) -> int:
        """Return the number of hosts of a mask, lowest ids first, whose power with jobs rises by up to `slack_w` W."""
        return int(np.searchsorted(np.cumsum(self._extra_w[hostset.ids(free)]), slack_w, side="right"))

    def _more_w(self, verb: str, kind: int) -> float:
        """Return the most W by which the power of all hosts rises once `on` or `faster` is carried out."""
        host, levels, level = self._kinds[kind], _levels(self._kinds[kind]), self.level[kind]
        if verb == ON:
            sleep, present = host.sleeps[0], host.pstates[levels[level]]
            return max(host.pstates[sleep.switch_on].full_w, present.idle_w) - host.pstates[sleep.sleep].idle_w
        before, after = (_on_w(host, levels[one]) for one in (level, level - 1))
        idle, busy = ((self.members[kind] & hosts).bit_count() for hosts in (self.cluster.idle, self.cluster.busy))
        return idle * (after[0] - before[0]) + busy * (after[1] - before[1])

    # actions --------------------------------------------------------------------------------------------------------

    def possible(self, slack_w: float, to_come: bool, must_act: bool) -> list[bool]:
        """Return a flag for each action, True if it is possible.

        `slack_w` is what the envelope leaves in W. Without anything `to_come` no host is switched off or slowed down;
        where the agent `must_act` the envelope does not count.
        """
        flags = []
        for verb, kind in self.actions:
            if verb in (OFF, SLOWER):
                flag = to_come and (
                    bool(self.cluster.free & self.members[kind]) if verb == OFF else self._changeable(kind, 1)
                )
            else:
                flag = self._wakes(kind) > 0 if verb == ON else self._changeable(kind, -1)
                flag = flag and (must_act or self._more_w(verb, kind) <= slack_w + NOISE_W)
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

    def carry_out(self, verb: str, kind: int) -> None:
        """Carry out an action: `off` takes the host of the kind that is idle longest, `on` the lowest id asleep."""
        host, members, now_s = self._kinds[kind], self.members[kind], self._bs.time()
        if verb in (SLOWER, FASTER):
            self.level[kind] += 1 if verb == SLOWER else -1
            self._changed_s[kind] = now_s
            mask = members & ~self.off
        elif verb == ON:
            mask = hostset.lowest(self._wakes(kind), 1)
        else:
            mask = 1 << min(hostset.ids(self.cluster.free & members), key=lambda each: (self.idle_since_s[each], -each))
        state = host.sleeps[0].sleep if verb == OFF else _levels(host)[self.level[kind]]
        if mask:
            self.cluster.now_s = now_s
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

    def speeds(self) -> NDArray[np.float64]:
        """Return the speed of each kind as a share of that of its initial p-state, (K,)."""
        flops = [[host.pstates[state].speed_flops for state in _levels(host)] for host in self._kinds]
        return np.array([speeds[level] / speeds[0] for speeds, level in zip(flops, self.level, strict=True)])
