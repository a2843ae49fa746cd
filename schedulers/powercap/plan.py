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

Servers of equal kind, condition and state are a *group*: they differ in nothing but their ids and their jobs. The
condition is what Eq. 2 needs of the beginning of the step: on, waking up, or asleep in one of the sleep states. A plan
has one set of servers for each group, so that its cost does not grow with the number of servers. Its power is a whole
number of units, which are added without rounding; as a number of W it is the sum of all servers, rounded once.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Final, TypeAlias, TypeVar

from batwatt.errors import InputError
from batwatt.model import hostset
from batwatt.model.platform import NOISE_W, Host
from batwatt.scheduling.cluster import Cluster
from batwatt.scheduling.job import Job

ON: Final = -1
"""Condition of servers that are on or fall asleep; of servers that are asleep it is their sleep state."""
WAKING: Final = -2
"""Condition of servers that wake up."""
Group: TypeAlias = tuple[int, int, int]
"""Servers of one kind, in one condition, planned to be in one state."""

Key = TypeVar("Key")


def in_order(parts: Iterable[tuple[Key, int]]) -> Iterator[tuple[Key, int]]:
    """Yield the servers of several sets by ascending id: as many at a time as are of one set, with its key."""
    left = dict(parts)
    while len(left) > 1:
        first, second = sorted(left, key=lambda key: left[key] & -left[key])[:2]
        run = left[first] & ((left[second] & -left[second]) - 1)
        yield first, run
        left[first] &= ~run
        if not left[first]:
            del left[first]
    yield from left.items()


def repeats(most: int, holds: Callable[[int], bool]) -> int:
    """Return how often a change is made that is made for the i-th time only if `holds(i)`, and at most `most` times.

    `holds` is to be monotone, as sums of i equal changes of power are.
    """
    return bisect_left(range(most), True, key=lambda i: not holds(i)) if most and holds(0) else 0


class Plan:
    """The servers' states as a response changes them, starting from the present (line 2 of Algorithm 1).

    `queue` are the waiting jobs; `killed` the jobs to kill; `forecast_w` the caps of the next steps in W, if the
    scheduler has a forecast; `last` is True if the cap holds for ever. Sets of servers are masks: `locked` of those
    whose state must stay, `changeable` of those whose state may change in this step, `out` of those out of service,
    `busy` of those whose job this plan has not killed, `sleepable` of those that have a sleep state.
    """

    def __init__(self, cluster: Cluster, forecast_w: tuple[float, ...] = (), last: bool = False) -> None:
        platform = cluster.platform
        if platform is None:
            raise InputError("option 'platform'", "a response needs speeds and watts", "give the XML file")
        self.platform = platform
        self.hosts = platform.hosts
        self.kinds = [host for host, _ in platform.members]
        self.now_s = cluster.now_s
        self.queue = cluster.queue
        self.forecast_w = forecast_w
        self.last = last
        self.locked = cluster.locked
        self.out = cluster.transitions.out
        self.busy = cluster.busy
        self.changeable = self.sleepable = 0
        for host, servers in platform.members:
            self.changeable |= servers & ~self.locked if host.compute else 0
            self.sleepable |= servers if host.sleeps else 0
        self.running = list(cluster.running.values())
        self.killed: list[Job] = []
        self._before = dict(cluster.modes)
        self._groups: dict[Group, int] = {}
        self._powers: dict[Group, tuple[float, int]] = {}
        """Power of a server of a group in W and in units."""
        self._units = 0
        for (kind, state), servers in cluster.modes.items():
            asleep, waking = servers & cluster.asleep, servers & cluster.switching_on
            for condition, part in ((state, asleep), (WAKING, waking), (ON, servers & ~(asleep | waking))):
                if part:
                    group = (kind, condition, state)
                    self._groups[group] = part
                    self._units += part.bit_count() * self.group_units(group)

    # facts ----------------------------------------------------------------------------------------------------------

    def parts(self, servers: int) -> list[tuple[Group, int]]:
        """Return the groups of the servers of a mask, each with its servers there."""
        return [(group, members & servers) for group, members in self._groups.items() if members & servers]

    @property
    def sleeping(self) -> int:
        """Mask of the servers that are or will be asleep."""
        sleeping = 0
        for (kind, _, state), servers in self._groups.items():
            if state in self.kinds[kind].sleep_of:
                sleeping |= servers
        return sleeping

    def group_power_w(self, group: Group) -> float:
        """Return the power in W of Eq. 2 of a server of a group."""
        return self._power_of(group)[0]

    def group_units(self, group: Group) -> int:
        """Return the power of Eq. 2 of a server of a group in units."""
        return self._power_of(group)[1]

    def _power_of(self, group: Group) -> tuple[float, int]:
        power = self._powers.get(group)
        if power is None:
            kind, condition, state = group
            power_w = _power_w(self.kinds[kind], condition, state)
            power = self._powers[group] = power_w, self.platform.units(power_w)
        return power

    def watts(self, units: int) -> float:
        """Return a whole number of units in W, rounded once."""
        return units / self.platform.units_per_w

    def more_units(self, group: Group, state: int) -> int:
        """Return the units by which the power of a server of a group rises if it is put in `state`."""
        kind, condition, _ = group
        return self.group_units((kind, condition, state)) - self.group_units(group)

    @property
    def power_w(self) -> float:
        """Power in W of all servers."""
        return self.power_with_w(0)

    def power_with_w(self, more_units: int) -> float:
        """Return the power in W of all servers if it were `more_units` units higher."""
        return self.watts(self._units + more_units)

    def exceeds(self, cap_w: float, more_units: int = 0) -> bool:
        """Return whether Eq. 1 is violated, or would be if the power were `more_units` units higher."""
        return self.power_with_w(more_units) > cap_w + NOISE_W

    def below(self, cap_w: float) -> bool:
        """Return whether the power is strictly below the cap, as Algorithm 1 tests."""
        return self.power_w < cap_w - NOISE_W

    def needed(self, cap_w: float, most: int, more_units: int, least_units: int = 0) -> int:
        """Return how many of `most` equal changes, of `more_units` units each, are made while Eq. 1 is violated.

        `least_units`: units of the lowest power in the course of a change, at which Eq. 1 is to be violated, too.
        """
        return repeats(most, lambda i: self.exceeds(cap_w, i * more_units + least_units))

    # changes --------------------------------------------------------------------------------------------------------

    def change(self, servers: int, state: int) -> None:
        """Change the state of the servers of a mask."""
        if servers & self.locked:
            raise ValueError(f"server {hostset.to_text(servers & self.locked)} is in transition")
        for group, part in self.parts(servers):
            kind, condition, present = group
            if state != present:
                self._units += part.bit_count() * self.more_units(group, state)
                self._groups[group] &= ~part
                if not self._groups[group]:
                    del self._groups[group]
                target = (kind, condition, state)
                self._groups[target] = self._groups.get(target, 0) | part

    def sleep(self, servers: int) -> None:
        """Send the servers of a mask to their sleep states; those that have none stay as they are."""
        for kind, part in self.platform.parts(servers & self.sleepable):
            self.change(part, self.kinds[kind].sleeps[0].sleep)

    def kill(self, run: Job) -> None:
        """Give up a job; its servers are idle from then on."""
        self.killed.append(run)
        self.running.remove(run)
        self.busy &= ~run.mask

    def changes(self) -> Iterator[tuple[int, int]]:
        """Yield the new states as (mask, p-state), one request per state and kind of server, asleep or not.

        (Batsim acknowledges a request when its last server has arrived. Servers that wake up go apart from those that
        only change their speed, which may fall asleep before the others have arrived.)
        """
        requests: dict[tuple[int, int, bool], int] = {}
        for (kind, condition, state), servers in self._groups.items():
            key = (state, kind, condition not in (ON, WAKING))
            requests[key] = requests.get(key, 0) | servers & ~self._before.get((kind, state), 0)
        for (state, *_), mask in sorted(requests.items(), key=lambda request: request[1] & -request[1]):
            if mask:
                yield mask, state

    # servers one by one, for responses of others ----------------------------------------------------------------------

    @property
    def state(self) -> list[int]:
        """The planned state of each server."""
        states = [0] * len(self.hosts)
        for (_, _, state), servers in self._groups.items():
            for server in hostset.ids(servers):
                states[server] = state
        return states

    def free_to_change(self) -> list[int]:
        """Return the ids of the servers whose state may be changed in this step."""
        return hostset.ids(self.changeable)

    def is_idle(self, server: int) -> bool:
        """Return whether no job runs on the server (asleep or on)."""
        return not self.busy >> server & 1

    def sleeps(self, server: int) -> bool:
        """Return whether the server is or will be asleep."""
        _, _, state = self._group_of(server)
        return state in self.hosts[server].sleep_of

    def can_sleep(self, server: int) -> bool:
        """Return whether the server has a sleep state."""
        return bool(self.sleepable >> server & 1)

    def power_of(self, server: int) -> float:
        """Return the power in W of Eq. 2 of a server as it is planned."""
        return self.group_power_w(self._group_of(server))

    def state_power_w(self, server: int, state: int) -> float:
        """Return the power in W of Eq. 2 if the server were put in `state`."""
        kind, condition, _ = self._group_of(server)
        return self.group_power_w((kind, condition, state))

    def _group_of(self, server: int) -> Group:
        return next(group for group, servers in self._groups.items() if servers >> server & 1)

    def put(self, server: int, state: int) -> None:
        """Change a server's state."""
        self.change(1 << server, state)

    def put_all(self, states: Mapping[int, int]) -> None:
        """Change the states of several servers, by their ids."""
        masks: dict[int, int] = {}
        for server, state in states.items():
            masks[state] = masks.get(state, 0) | 1 << server
        for state, mask in masks.items():
            self.change(mask, state)

    def put_to_sleep(self, servers: Iterable[int]) -> None:
        """Send servers to their sleep state; those that have none stay as they are."""
        self.sleep(hostset.of_ids(sorted(servers)))


def _power_w(host: Host, condition: int, state: int) -> float:
    """Return the power in W of Eq. 2 of a server of the kind of `host`."""
    final_w = host.pstates[state].full_w
    sleep = host.sleep_of.get(state)
    if condition == WAKING:
        return max(final_w, *(host.pstates[each.switch_on].full_w for each in host.sleeps))
    if condition == ON:
        return host.falling_w(sleep) if sleep else final_w
    return final_w if sleep else max(final_w, host.pstates[host.sleep_of[condition].switch_on].full_w)


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
