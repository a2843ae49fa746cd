"""Requests to bring hosts to a p-state, which are acknowledged when all of their hosts are in it."""

from __future__ import annotations

from typing import final

from batwatt.model import hostset


@final
class Requests:
    """The pending requests. An ignored request is tracked, too, and takes the next one's place, as in Batsim."""

    def __init__(self) -> None:
        self._waiting: dict[int, list[list[int]]] = {}
        """P-state -> requests, oldest first: hosts that are not in it yet, all hosts."""

    def add(self, mask: int, state: int) -> None:
        """Add a request to bring hosts to a p-state."""
        self._waiting.setdefault(state, []).append([mask, mask])

    def arrived(self, mask: int, state: int) -> list[str]:
        """Remove hosts in a p-state from its requests, oldest first; return the hosts of each complete request."""
        waiting = self._waiting.get(state, [])
        complete: list[tuple[int, list[int]]] = []
        for request in waiting:
            ticked = request[0] & mask
            if ticked:
                request[0] &= ~ticked
                mask &= ~ticked
                if not request[0]:
                    complete.append((ticked.bit_length(), request))
        # Batsim iterates over the hosts: a request is complete with its last host
        complete.sort()
        for _, request in complete:
            waiting.remove(request)
        return [hostset.to_text(request[1]) for _, request in complete]
