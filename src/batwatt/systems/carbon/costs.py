"""Reserved, on-demand and spot machines: the machine of each segment of a job, its start, and its cost."""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import count
from typing import Annotated, NamedTuple

from batwatt.checks import Between, Parameters
from batwatt.systems.carbon.outcome import ON_DEMAND, RESERVED, SPOT
from batwatt.units import HOUR_S

_RELEASE, _ARRIVAL, _DUE = range(3)


@dataclass(frozen=True)
class MachinePrices(Parameters, where="prices"):
    """Money per cpu and hour on demand and on spot machines; a reserved cpu costs `reserved_share` of on demand.

    The defaults are those of GAIA, in dollars. Raises InputError.
    """

    on_demand_h: Annotated[float, Between(0.0)] = 0.0624
    spot_h: Annotated[float, Between(0.0)] = 0.01248
    reserved_share: Annotated[float, Between(0.0)] = 0.4

    def rates(self) -> dict[str, float]:
        """Return the cost of a cpu per second on each kind of machine; reserved ones are paid as a whole."""
        return {ON_DEMAND: self.on_demand_h / HOUR_S, RESERVED: 0.0, SPOT: self.spot_h / HOUR_S}

    def fixed(self, reserved: int, last_start_s: float) -> float:
        """Return the cost of `reserved` cpus from 0 s to the last start: R x share x rate x last start (GAIA)."""
        return reserved * self.reserved_share * self.on_demand_h / HOUR_S * last_start_s


FREE = MachinePrices(0.0, 0.0, 0.0)
"""Machines that cost nothing."""


@dataclass(frozen=True)
class Request:
    """A segment of a job that begins at `begin_s`; with `conserving`, as soon as its cpus are free among the reserved.

    That is from `arrival_s` on, and at `begin_s` at the latest. With `spot` it runs on spot machines.
    """

    arrival_s: float
    begin_s: float
    length_s: float
    cpus: int
    conserving: bool = False
    spot: bool = False


class RequestStart(NamedTuple):
    """Start of a request in s, and the kind of its machines."""

    begin_s: float
    machine: str


def assign(requests: Sequence[Request], reserved: int) -> list[RequestStart]:
    """Return the start and the machines of each request, in order, with `reserved` cpus besides those on demand.

    At each time at which something happens, reserved cpus whose segment ends are freed first; then the requests that
    are due or waiting are gone through by (arrival, place in the list). One takes reserved cpus if all of its cpus are
    free among them. If not, it runs on demand if it is due, and else goes on waiting while later ones are tried.
    """
    order = sorted(range(len(requests)), key=lambda index: (requests[index].arrival_s, index))
    rank = {index: place for place, index in enumerate(order)}
    serial = count()
    # all of one time are taken together
    events = [
        (request.arrival_s if kind == _ARRIVAL else request.begin_s, kind, next(serial), rank[index])
        for index, request in enumerate(requests)
        for kind in ((_ARRIVAL, _DUE) if request.conserving and not request.spot else (_DUE,))
    ]
    heapq.heapify(events)
    free, waiting = reserved, set[int]()
    assignments: list[RequestStart | None] = [None] * len(requests)
    while events:
        now_s, due = events[0][0], set[int]()
        while events and events[0][0] == now_s:
            _, kind, _, what = heapq.heappop(events)
            if kind == _RELEASE:
                free += what
            elif assignments[order[what]] is None:
                (waiting if kind == _ARRIVAL else due).add(what)
        for place in sorted(waiting | due) if free else sorted(due):
            request = requests[order[place]]
            machine = SPOT if request.spot else RESERVED if request.cpus <= free else ON_DEMAND
            if machine == ON_DEMAND and place not in due:
                continue
            assignments[order[place]] = RequestStart(now_s, machine)
            waiting.discard(place)
            if machine == RESERVED:
                free -= request.cpus
                heapq.heappush(events, (now_s + request.length_s, _RELEASE, next(serial), request.cpus))
    return [assignment for assignment in assignments if assignment is not None]
