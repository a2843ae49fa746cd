"""A job that a scheduler manages, from its submission to its end, through all its attempts."""

from __future__ import annotations

import math
from typing import Any, Final, TypeAlias, final

import numpy as np
from numpy.typing import NDArray

from batwatt.units import microseconds

Places: TypeAlias = NDArray[np.int64]
"""Machines of a job, in the order in which they were taken."""
NOWHERE: Final[Places] = np.empty(0, dtype=np.int64)


@final
class ManagedJob:
    """A job of the workload through all its attempts; times in s.

    Identity: `number` counts arrivals, `job` is the present attempt as pybatsim has it, `name` the id in the workload.
    Requests: `hosts`, `request_s`, the run time that its user requested for the present attempt, and `walltime_s`, at
    which Batsim kills it (both infinite without one), `memory` on its machine; `submit_s` is the submission by which it
    queues, `release_s` the first one. `machines` is how many machines it has to itself; 0: it shares one, with
    the cores `bits` of it.

    Lengths are in s at the nominal speed: `length_s` of the whole job, `left_s` of the present run when it began, or
    its present part if it was moved, at `start_s`. A run does `pace` of a length in a second: not 1 only for a job
    that `scales` on slower machines, and 0 while it works at nothing. `estimate_s` is the length by which it is ordered
    and expected to end, `bound_s` what that may grow to when it is outrun, by default both the request;
    `assumed_s` is the length that mappings take, `long` its class.

    State: `mask` are the hosts of its last run (0: none, or given back), `places` its machines; `dying` while a kill
    is under way, `moving` between two places, `refused` when it will never run; `missing` is the number of jobs that it
    waits for, `preempted` how often it was stopped for another job. `sort_key` belongs to its queue.

    `plan` is the state of a job in one system alone: an object of a class of that system.
    """

    __slots__ = (
        "assumed_s", "bits", "bound_s", "dying", "estimate_s", "hosts", "job", "left_s", "length_s", "long", "machines",
        "mask", "memory", "missing", "moving", "name", "number", "pace", "places", "plan", "preempted",
        "refused", "release_s", "request_s", "scales", "sort_key", "start_s", "submit_s", "walltime_s",
    )  # fmt: skip

    def __init__(
        self,
        number: int,
        job: Any,
        length_s: float = math.inf,
        left_s: float = math.inf,
        estimate_s: float | None = None,
        assumed_s: float = math.inf,
        long: bool = False,
        machines: int = 0,
        memory: float = 0.0,
        plan: Any = None,
    ) -> None:
        self.number = number
        self.job: Any = job
        self.name: str = job.id
        self.submit_s = self.release_s = float(job.submit_time)
        self.hosts: int = job.requested_resources
        self.walltime_s = self.request_s = math.inf
        self.renew()
        self.length_s = length_s
        self.left_s = left_s
        self.estimate_s = self.bound_s = self.walltime_s if estimate_s is None else estimate_s
        self.assumed_s = assumed_s
        self.long = long
        self.machines = machines
        self.memory = memory
        self.plan: Any = plan
        self.sort_key: tuple[float, float, int] = (0.0, 0.0, number)
        self.missing = 0
        self.start_s = 0.0
        self.mask = 0
        self.places: Places = NOWHERE
        self.bits = 0
        self.dying = False
        self.moving = False
        self.preempted = 0
        self.refused = False
        self.pace = 1.0
        self.scales = False

    def renew(self) -> None:
        """Take the walltime of the present attempt, which may differ from that of the one before, as its request."""
        walltime: Any = self.job.requested_time
        self.walltime_s = float(walltime) if walltime is not None and walltime > 0 else math.inf
        self.request_s = self.walltime_s

    @property
    def width(self) -> int:
        """The number of machines on which it runs."""
        return self.machines or 1

    @property
    def deadline_s(self) -> float:
        """Time in s at which its run has lasted as long as its user requested."""
        return microseconds(self.start_s + self.request_s)

    def ran_s(self, now_s: float) -> float:
        """Return the length in s that its run has done at a time, recovery included."""
        return (now_s - self.start_s) * self.pace

    def done_s(self, now_s: float) -> float:
        """Return the length in s that it has done at a time, all runs together."""
        return self.ran_s(now_s) + self.length_s - self.left_s

    def rest_s(self, now_s: float) -> float:
        """Return the length in s that is left at a time."""
        return self.left_s - self.ran_s(now_s)

    def ends_s(self, length_s: float) -> float:
        """Return the time in s at which its run ends if the whole job is this long."""
        return self.start_s + (length_s - (self.length_s - self.left_s)) / self.pace

    def expected_end_s(self, now_s: float) -> float:
        """Return the expected end of its run, as a time in s, not before now; an estimate that is outrun doubles."""
        self.double_estimate(self.done_s(now_s))
        return max(now_s, self.ends_s(self.estimate_s))

    def double_estimate(self, done_s: float) -> None:
        """Double the estimate until it is not below the length done, in s, or reaches the bound."""
        while self.estimate_s < done_s and self.estimate_s < self.bound_s:
            self.estimate_s = min(2.0 * self.estimate_s, self.bound_s)

    def work(self, now_s: float) -> float:
        """Return the core seconds that are lost if it is killed."""
        return self.hosts * self.done_s(now_s)
