"""Backfillings: which waiting jobs start now when some do not fit (powercap paper, section V-B;
docs/explanation/varcap.md).

The rule is `blocked`: the effect of a job that does not fit on those behind it. Node selection chooses the hosts of a
job. A backfilling that places jobs itself, on a cluster of servers that jobs do not share, sees the cluster and
its queue and returns pairs (job, mask of hosts) to start; it changes nothing. Asleep, switching, draining and
unavailable hosts are not free there.
"""

from __future__ import annotations

from abc import ABC
from typing import ClassVar, Literal

from batwatt.errors import InputError
from batwatt.scheduling.cluster import Cluster, HostsPass
from batwatt.scheduling.job import Job
from batwatt.scheduling.registry import make, register


class Backfilling(ABC):  # noqa: B024  (a rule may be all there is to it)
    """Base of backfillings; `time_invariant` if the passing of time alone never makes it start a job."""

    name: ClassVar[str] = ""
    time_invariant = False
    blocked: ClassVar[Literal["pass", "stop", "reserve"] | None] = None
    """A job that does not fit is passed over, stops all behind it, or reserves what those may not delay.

    None: `place` decides, and only on a cluster of servers that jobs do not share.
    """

    def place(self, cluster: Cluster) -> list[tuple[Job, int]]:
        """Return the jobs to start now, in order, with the masks of their hosts: free ones, disjoint."""
        return HostsPass().place(cluster, self.blocked or "stop")


@register("backfilling", "none")
class NoBackfilling(Backfilling):
    """No backfilling: a job that does not fit stops all behind it."""

    time_invariant = True
    blocked = "stop"


@register("backfilling", "first-fit")
class FirstFit(Backfilling):
    """First-Fit: walk the queue in order and start every job that fits the free servers.

    Nothing is reserved, so wide jobs can wait long.
    """

    time_invariant = True
    blocked = "pass"


@register("backfilling", "easy")
class EasyBackfilling(Backfilling):
    """EASY backfilling: a reservation for the head of the queue; others start if they do not delay it.

    The head's shadow time is when the walltimes of the running jobs free enough hosts (those asleep or switching do
    not count). A job behind it starts now if it ends by then, or uses only hosts that the head will not need.
    """

    time_invariant = True
    blocked = "reserve"

    def __init__(self) -> None:
        # copies share it, which is no harm: it remembers the very job that waited first
        self._pass = HostsPass()

    def place(self, cluster: Cluster) -> list[tuple[Job, int]]:
        """Return heads that fit, then backfilled jobs, in order of the queue."""
        return self._pass.place(cluster, self.blocked)


def rule_of(choice: object) -> str:
    """Return the rule of the backfilling that an option names. Raises InputError if it has `place` only."""
    backfilling: Backfilling = make("backfilling", choice)
    if backfilling.blocked is None:
        problem = f"{backfilling.name or type(backfilling).__name__!r} has no rule 'blocked', only 'place'"
        raise InputError("option 'backfilling'", problem, "choose none, first-fit or easy")
    return backfilling.blocked
