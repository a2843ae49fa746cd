"""The hosts of a running simulation: states, p-states, power, and the time spent in each state.

Operations act on groups of hosts (integer masks), so that the start of a job on a thousand identical hosts takes a few
operations on integers. Hosts that behave alike and are in the same p-state form a *mode*.
"""

from __future__ import annotations

from typing import Any, Final, final

from batwatt.model import hostset
from batwatt.model.platform import Host, Platform

SLEEPING: Final = 0
SWITCHING_ON: Final = 1
SWITCHING_OFF: Final = 2
IDLE: Final = 3
COMPUTING: Final = 4
UNAVAILABLE: Final = 5
STATE_NAMES: Final = ("sleeping", "switching_on", "switching_off", "idle", "computing", "unavailable")


MANY_MOVES: Final = 1000
"""Least number of moves of hosts above which moves that are not the last of any host are removed."""
TICKS_PER_S: Final = 2.0**52
"""Ticks per s: times from 1 s on are whole ticks, so that their sums are exact."""

# source states of hosts that go to each state, the most likely first
_LIKELY: Final = tuple(
    (likely, *[state for state in range(6) if state != likely])
    for likely in (SWITCHING_OFF, SLEEPING, IDLE, COMPUTING, IDLE, IDLE)
)


@final
class Mode:
    """The hosts of one kind that are in one p-state."""

    __slots__ = ("base_w", "cores", "index", "kind", "mask", "pstate")

    def __init__(self, kind: int, index: int, host: Host) -> None:
        self.kind = kind
        self.index = index
        self.mask = 0
        self.cores = host.cores
        self.pstate = pstate = host.pstates[index]
        # a transition loads one core
        self.base_w: float = pstate.power_w(1.0 / host.cores if index in host.virtual else 0.0)


class Machines:
    """States of all hosts; `mask[state]` are the hosts in a state, each host in exactly one.

    `seen` counts the hosts of each state; `base_w` is the power in W of all hosts without load,
    `epsilon_w` the sum of their epsilon watts.
    """

    def __init__(self, platform: Platform) -> None:
        self.hosts = platform.hosts
        self.everyone = hostset.span(0, len(self.hosts) - 1)
        self.mask = [0, 0, 0, self.everyone, 0, 0]
        self.seen = [0, 0, 0, len(self.hosts), 0, 0]
        self.kind_mask: list[int] = []
        self.kind_host: list[Host] = []
        self._modes: dict[tuple[int, int], Mode] = {}
        self.modes: list[Mode] = []
        self.pstate = [host.initial_pstate for host in self.hosts]
        self.epsilon_w = 0.0
        members: dict[tuple[int, int], list[int]] = {}
        for host, kind in zip(self.hosts, platform.kinds, strict=True):
            if kind == len(self.kind_mask):
                self.kind_mask.append(0)
                self.kind_host.append(host)
            members.setdefault((kind, host.initial_pstate), []).append(host.id)
        for (kind, index), ids in members.items():
            self._mode(kind, index).mask = mask = hostset.of_ids(ids)
            self.kind_mask[kind] |= mask
        self.modes = [mode for mode in self._modes.values() if mode.mask]
        # Batsim takes a host that begins in a sleep p-state for idle
        self.odd_starts = any(host.initial_pstate not in host.compute for host in self.hosts)
        self._recount()
        self._spent_ticks = [0] * 6
        # time of the last move of each host, alone or with its neighbours; and moves of other sets of hosts
        self._last_ticks: list[int] = [-1] * len(self.hosts)
        self._moves: list[tuple[int, int]] = []
        self._many_moves = MANY_MOVES

    def payload(self) -> list[dict[str, Any]]:
        """Return the `compute_resources` of SIMULATION_BEGINS."""
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
            mode = self._modes[kind, index] = Mode(kind, index, self.kind_host[kind])
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
        # recomputed from the counts, so that rounding errors do not accumulate
        self._recount()

    def modes_of(self, mask: int, count: int) -> list[tuple[Mode, int]]:
        """Return the modes of the `count` hosts of the mask, each with the number of its hosts."""
        modes = self.modes
        if len(modes) == 1:
            return [(modes[0], count)]
        counts = []
        for mode in modes:
            part = mode.mask & mask
            if part:
                counts.append((mode, part.bit_count()))
        return counts

    def members_of(self, mask: int) -> list[tuple[Mode, int]]:
        """Return the modes of the hosts of the mask, each with the mask of its hosts."""
        return [(mode, mode.mask & mask) for mode in self.modes if mode.mask & mask]

    def idle_w(self, mask: int, count: int) -> float:
        """Return the power in W of the `count` hosts of the mask without load."""
        total = 0.0
        for mode, members in self.modes_of(mask, count):
            total += members * mode.pstate.idle_w
        return total

    # states -------------------------------------------------------------------------------------------------------

    def move(self, mask: int, target: int, now: float, count: int = -1) -> None:
        """Move hosts from any states to the state `target` at `now`; `count` is their number, -1 if not known."""
        masks, seen, rest = self.mask, self.seen, mask
        if count < 0:
            count = mask.bit_count()
        spent, ticks = self._spent_ticks, int(now * TICKS_PER_S)
        end = mask.bit_length()
        if mask >> (end - count) == (1 << count) - 1:
            # one interval, as in most calls
            self._last_ticks[end - count : end] = [ticks] * count
        else:
            self._moves.append((ticks, mask))
            if len(self._moves) > self._many_moves:
                self._moves = self._last_moves()
                # so that the iteration takes constant time per move
                self._many_moves = MANY_MOVES + 2 * len(self._moves)
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

    def _last_moves(self) -> list[tuple[int, int]]:
        """Return (ticks, hosts) of the last of `_moves` of each host."""
        left, last = self.everyone, []
        for ticks, mask in reversed(self._moves):
            mask &= left
            if mask:
                last.append((ticks, mask))
                left ^= mask
        last.reverse()
        return last

    def state_of(self, host: int) -> int:
        """Return the state of one host."""
        return next(state for state in range(6) if self.mask[state] >> host & 1)

    def times_in_state(self) -> dict[str, float]:
        """Return the s in each state, summed over hosts, each host only up to its last change of state (as Batsim).

        Sum of departures - sum of arrivals, plus the arrival times of the hosts that are still in the state: exact
        integers, since the difference may be small.
        """
        spent, last_ticks = list(self._spent_ticks), self._last_ticks.copy()
        for ticks, mask in self._last_moves():
            for host in hostset.ids(mask):
                last_ticks[host] = max(ticks, last_ticks[host])
        for state, members in enumerate(self.mask):
            for host in hostset.ids(members):
                spent[state] += max(last_ticks[host], 0)
        return {name: spent[state] / TICKS_PER_S for state, name in enumerate(STATE_NAMES)}
