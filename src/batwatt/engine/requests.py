"""Requests to bring hosts to a p-state, which are acknowledged when all of their hosts are there."""

from __future__ import annotations

from typing import final

from batwatt.model import hostset


@final
class Requests:
    """The requests under way. An ignored request is tracked, too, and takes the next one's place, as in Batsim."""

    def __init__(self) -> None:
        self._waiting: dict[int, list[list[int]]] = {}
        """P-state -> requests, oldest first: hosts that are not there yet, all hosts."""

    def add(self, mask: int, state: int) -> None:
        """Hosts are to be in a p-state."""
        self._waiting.setdefault(state, []).append([mask, mask])

    def arrived(self, mask: int, state: int) -> list[str]:
        """Tick hosts off the requests to a p-state, oldest first; returns the hosts of each that is complete now."""
        waiting = self._waiting.get(state, [])
        complete: list[tuple[int, list[int]]] = []
        for request in waiting:
            ticked = request[0] & mask
            if ticked:
                request[0] &= ~ticked
                mask &= ~ticked
                if not request[0]:
                    complete.append((ticked.bit_length(), request))
        # Batsim goes through the hosts: a request is complete with its last one
        complete.sort()
        for _, request in complete:
            waiting.remove(request)
        return [hostset.to_text(request[1]) for _, request in complete]
