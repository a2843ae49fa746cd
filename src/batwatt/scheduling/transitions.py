"""Hosts out of service: those whose transition outlasts its limit, and those that external events take away."""

from __future__ import annotations

import math
from typing import Final, final

from batwatt.model import hostset
from batwatt.model.platform import Host, Platform
from batwatt.units import REPORTED_S

LEAST_LIMIT_S: Final = 300.0
"""Least default limit of a transition, in s."""
DURATIONS: Final = 3.0
"""Default limit of a transition, in expected durations."""


@final
class Transitions:
    """Track hosts that switch on or off, and the hosts out of service; sets of hosts are masks.

    `limit_s` limits every transition; None: three times the duration that the platform gives, at least 300 s, and no
    limit without a platform. `failed` are the hosts past their limit, until they are reported in a p-state; `away`
    those that events took away.
    """

    def __init__(self, platform: Platform | None = None, limit_s: float | None = None) -> None:
        self.failed = 0
        self.away = 0
        self._limit_s = limit_s
        self._until: dict[float, int] = {}
        """Limit, as a time in s -> the hosts that switch until then at the latest."""
        members: dict[int, list[int]] = {}
        for number, kind in enumerate(platform.kinds if platform else ()):
            members.setdefault(kind, []).append(number)
        hosts = platform.hosts if platform else ()
        self._kinds: list[tuple[Host, int]] = [(hosts[ids[0]], hostset.of_ids(ids)) for ids in members.values()]

    @property
    def out(self) -> int:
        """The hosts out of service."""
        return self.failed | self.away

    @property
    def pending(self) -> bool:
        """True if hosts switch within their limits."""
        return bool(self._until)

    @property
    def switching_s(self) -> float:
        """The longest time in s in which a host of the platform switches off and on again."""
        pairs = [(sleep.switch_off, sleep.switch_on, host) for host, _ in self._kinds for sleep in host.sleeps]
        return max((sum(_expected_s(host, way) for way in ways) for *ways, host in pairs), default=0.0)

    @property
    def next_s(self) -> float:
        """The next limit, as a time in s; infinite without one."""
        return min(self._until, default=math.inf)

    def began(self, mask: int, pstate: int, now_s: float) -> None:
        """Note hosts that begin to switch to a p-state, of sleep or of work."""
        if self._limit_s is not None or not self._kinds:
            self._add(mask, now_s + (math.inf if self._limit_s is None else self._limit_s))
            return
        for host, members in self._kinds:
            if members & mask:
                self._add(members & mask, now_s + _limit_of(host, pstate))

    def _add(self, mask: int, until_s: float) -> None:
        self._until[until_s] = self._until.get(until_s, 0) | mask

    def arrived(self, mask: int) -> bool:
        """Note hosts that are reported in a p-state; return whether some of them had failed."""
        if self._until:
            left = {until_s: hosts & ~mask for until_s, hosts in self._until.items()}
            self._until = {until_s: hosts for until_s, hosts in left.items() if hosts}
        returned = bool(self.failed & mask)
        self.failed &= ~mask
        return returned

    def expire(self, now_s: float) -> int:
        """Take the hosts out of service whose limit has passed; return them."""
        failed = 0
        for until_s in [until_s for until_s in self._until if until_s <= now_s + REPORTED_S]:
            failed |= self._until.pop(until_s)
        self.failed |= failed
        return failed

    def set_away(self, mask: int, away: bool) -> None:
        """Take hosts away by an event, or bring them back."""
        self.away = self.away | mask if away else self.away & ~mask


def _limit_of(host: Host, pstate: int) -> float:
    """Return the default limit in s of a host's transition to a p-state."""
    sleep = host.sleep_of.get(pstate)
    virtual = [each.switch_on for each in host.sleeps] if sleep is None else [sleep.switch_off]
    return max(LEAST_LIMIT_S, *[DURATIONS * _expected_s(host, state) for state in virtual])


def _expected_s(host: Host, virtual: int) -> float:
    """Return the duration in s of a transition; 0 for one that never ends, whose host fails at its limit."""
    duration_s = host.pstates[virtual].duration_s
    return duration_s if duration_s < math.inf else 0.0


def outage(mask: int) -> str:
    """Return the reason why jobs can never run: these hosts are out of service."""
    return f"as {named(mask)} out of service"


def named(mask: int) -> str:
    """Return `host 3 is` or `hosts 1-3 are`."""
    text = hostset.to_text(mask)
    return f"host {text} is" if mask.bit_count() == 1 else f"hosts {text} are"
