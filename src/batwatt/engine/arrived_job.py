"""Jobs as schedulers see them."""

from __future__ import annotations

from batsim.batsim import Job


class ArrivedJob(Job):
    """A job of pybatsim with the number of its arrival as hash.

    The hash of pybatsim's jobs is an address in memory, by which the order of a set of jobs differs between runs.
    """

    __slots__ = ("arrival_number",)
    arrival_number: int

    def __hash__(self) -> int:
        return self.arrival_number
