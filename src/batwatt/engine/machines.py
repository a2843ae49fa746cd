"""The hosts of a running simulation: states, p-states, power, and the time spent in each state.

Everything works on groups of hosts (integer masks), so the cost of starting a job on a thousand identical hosts is
that of a few operations on integers. Hosts that behave alike and are in the same p-state form a *mode*.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from batwatt.model import hostset
from batwatt.model.platform import Host, Platform, PState

SLEEPING, SWITCHING_ON, SWITCHING_OFF, IDLE, COMPUTING, UNAVAILABLE = range(6)
STATE_NAMES = ("sleeping", "switching_on", "switching_off", "idle", "computing", "unavailable")


TICKS_PER_S = 2.0**52
"""Times from 1 s on are whole ticks, so that sums of them are exact."""

# where hosts that go to a state most likely come from, first
_LIKELY = tuple(
    tuple(sorted(range(6), key=lambda source: source != likely))
    for likely in (SWITCHING_OFF, SLEEPING, IDLE, COMPUTING, IDLE, IDLE)
)


@dataclass(slots=True, eq=False)
class Mode:
    """The hosts of one kind that are in one p-state."""

    kind: int
    index: int
    pstate: PState
    cores: int
    base_w: float
    mask: int = 0


class Machines:
    """States of all hosts; `mask[state]` are the hosts in a state (each in exactly one).

    `seen` counts them; `base_w` is the power in W of all hosts as if none had a load,
    `epsilon_w` the sum of their epsilon watts.
    """

    def __init__(self, platform: Platform) -> None:
        self.hosts = platform.hosts
        self.everyone = hostset.span(0, len(self.hosts) - 1)
        self.mask = [0, 0, 0, self.everyone, 0, 0]
        self.seen = [0, 0, 0, len(self.hosts), 0, 0]
        self.kind_mask: list[int] = []
        self.kind_host: list[Host] = []
        for host, kind in zip(self.hosts, platform.kinds, strict=True):
            if kind == len(self.kind_mask):
                self.kind_mask.append(0)
                self.kind_host.append(host)
            self.kind_mask[kind] |= 1 << host.id
        self._modes: dict[tuple[int, int], Mode] = {}
        self.modes: list[Mode] = []
        self.pstate = [host.initial_pstate for host in self.hosts]
        self.epsilon_w = 0.0
        for host, kind in zip(self.hosts, platform.kinds, strict=True):
            self._mode(kind, host.initial_pstate).mask |= 1 << host.id
        self.modes = [mode for mode in self._modes.values() if mode.mask]
        # a host that begins in a sleep p-state is idle to Batsim
        self.odd_starts = any(host.initial_pstate not in host.compute for host in self.hosts)
        self._recount()
        self._spent_ticks = [0] * 6
        self._touched_s = np.zeros(len(self.hosts))

    def payload(self) -> list[dict[str, Any]]:
        """The `compute_resources` of SIMULATION_BEGINS."""
        return [
            {
                "id": host.id,
                "name": host.name,
                "state": "idle",
                "properties": dict(host.properties),
                "zone_properties": dict(host.zone_properties),
            }
            for host in self.hosts
        ]

    def _mode(self, kind: int, index: int) -> Mode:
        mode = self._modes.get((kind, index))
        if mode is None:
            host = self.kind_host[kind]
            pstate = host.pstates[index]
            # a transition is work for one core
            base_w = pstate.power_w(1.0 / host.cores) if index in host.virtual else pstate.idle_w
            mode = self._modes[kind, index] = Mode(kind, index, pstate, host.cores, base_w)
        return mode

    def _recount(self) -> None:
        self.base_w = sum(mode.mask.bit_count() * mode.base_w for mode in self.modes)
        self.epsilon_w = sum(mode.mask.bit_count() * mode.pstate.epsilon_w for mode in self.modes)

    # p-states -----------------------------------------------------------------------------------------------------

    def set_pstate(self, mask: int, index: int) -> None:
        """Put hosts in a p-state and update the base power."""
        for mode in self.modes:
            mode.mask &= ~mask
        for kind, members in enumerate(self.kind_mask):
            part = members & mask
            if part:
                self._mode(kind, index).mask |= part
        for host in hostset.ids(mask):
            self.pstate[host] = index
        self.modes = [mode for mode in self._modes.values() if mode.mask]
        # recomputed from the counts, so that no rounding error piles up
        self._recount()

    def modes_of(self, mask: int) -> list[tuple[Mode, int]]:
        """Modes that the hosts of the mask are in, each with how many of them."""
        modes = self.modes
        if len(modes) == 1:
            return [(modes[0], mask.bit_count())]
        found = []
        for mode in modes:
            part = mode.mask & mask
            if part:
                found.append((mode, part.bit_count()))
        return found

    def members_of(self, mask: int) -> list[tuple[Mode, int]]:
        """Modes that the hosts of the mask are in, each with those hosts."""
        return [(mode, mode.mask & mask) for mode in self.modes if mode.mask & mask]

    def idle_w(self, mask: int) -> float:
        """Power in W of the hosts without any load."""
        total = 0.0
        for mode, count in self.modes_of(mask):
            total += count * mode.pstate.idle_w
        return total

    # states -------------------------------------------------------------------------------------------------------

    def move(self, mask: int, target: int, now: float) -> None:
        """Move hosts to a state at `now`, whatever the state they are in."""
        masks, seen, rest = self.mask, self.seen, mask
        touched, count = self._touched_s, mask.bit_count()
        end = mask.bit_length()
        if mask >> (end - count) == (1 << count) - 1:
            touched[end - count : end] = now
        else:
            for low, high in hostset.intervals(mask):
                touched[low : high + 1] = now
        spent, ticks = self._spent_ticks, int(now * TICKS_PER_S)
        moment = count * ticks
        spent[target] -= moment
        source = _LIKELY[target][0]
        if masks[source] & mask == mask:
            masks[source] ^= mask
            masks[target] |= mask
            spent[source] += moment
            seen[source] -= count
            seen[target] += count
            return
        for source in _LIKELY[target]:
            part = masks[source] & rest
            if part:
                count = part.bit_count()
                masks[source] &= ~part
                spent[source] += count * ticks
                seen[source] -= count
                seen[target] += count
                rest &= ~part
                if not rest:
                    break
        masks[target] |= mask

    def state_of(self, host: int) -> int:
        """State of one host."""
        return next(state for state in range(6) if self.mask[state] >> host & 1)

    def times_in_state(self) -> dict[str, float]:
        """Seconds spent in each state, summed over hosts, each host only up to its last change of state (as Batsim).

        Sum of departures - sum of arrivals, plus the arrival times of the hosts that are still there: exact integers,
        since the difference may be small.
        """
        ticks = list(self._spent_ticks)
        for state in range(6):
            times, counts = np.unique(self._touched_s[hostset.ids(self.mask[state])], return_counts=True)
            for date, count in zip(times.tolist(), counts.tolist(), strict=True):
                ticks[state] += count * int(date * TICKS_PER_S)
        return {name: ticks[state] / TICKS_PER_S for state, name in enumerate(STATE_NAMES)}
