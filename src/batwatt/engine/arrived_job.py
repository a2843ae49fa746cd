"""Jobs as schedulers see them."""

from __future__ import annotations

from batsim.batsim import Job


class ArrivedJob(Job):
    """pybatsim's job, whose hash is the number of its arrival.

    By their addresses in memory, which pybatsim's have, a set of jobs would have another order in each run.
    """

    __slots__ = ("arrival_number",)
    arrival_number: int

    def __hash__(self) -> int:
        return self.arrival_number
