"""Planners of jobs on machines that come and go: they receive arrivals and changes, and return starts and kills."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from batwatt.scheduling.jobs import ManagedJob
from batwatt.scheduling.victims import Resubmit, Victim, VictimRule, next_run
from batwatt.units import LAG_S


@dataclass(slots=True)
class MachinePlan:
    """The state of a job in riskaware: the `plan` of a `ManagedJob`; times in s."""

    release_s: float
    early: bool = False
    """The job had run before it was submitted."""
    recovery_s: float = 0.0
    """The first s of its run, which are no work of it."""
    lost: bool = False
    """The planner killed it, and it will not run again."""
    wanted: bool = False
    """The planner started it, and it is not on its machine yet."""
    goes_on: bool = False
    """The job runs on a machine out of service, though the planner killed it."""


class MachinePlanner(ABC):
    """A planner of jobs of exactly known lengths on `machines` machines of `cores` cores.

    It reads of a `ManagedJob` its `number` (0, 1, ... in the order in which jobs are handed over), `hosts` (cores),
    `plan.release_s`, `length_s`, and `left_s` of its next run. That is less than `length_s` for a job that was
    released, and has been running, before it arrived; `restart` updates it when the planner kills a job.

    Its times are nominal, in s, and never go back: a job that it starts at s ends at s + `left_s`. At one time it looks
    at the jobs that start, then at those that end, then at a change of the machines, then at arrivals. Its answer
    is a sequence in which number n stands for the start of job n on `machine_of(n)`, and -1 - n for its kill.
    """

    victim: VictimRule = Resubmit()
    """Rule for the jobs that it kills; set by the scheduler."""

    @abstractmethod
    def advance(self, time_s: float, alive: int | None = None, arrivals: Sequence[ManagedJob] = ()) -> Sequence[int]:
        """Go on to a time; `alive`: machines from then on (None: as before). Arrivals by release time."""

    @abstractmethod
    def ended(self, number: int, time_s: float) -> Sequence[int]:
        """End a job before it was planned to, or though it was killed (then it waits for nothing any more)."""

    def dropped(self) -> Sequence[int]:
        """Return the jobs, of those that arrived in the last `advance`, that are never to start."""
        return ()

    def restart(self, job: ManagedJob, ran_s: float) -> bool:
        """Update the next run of a job that is killed after `ran_s` s. Return False if the job is lost."""
        plan: MachinePlan = job.plan
        done_s = job.length_s + plan.recovery_s - job.left_s
        following = next_run(self.victim, Victim(job.length_s, done_s, plan.recovery_s, ran_s))
        plan.lost = following is None
        if following is None:
            return False
        job.left_s, plan.recovery_s = following.run_s, following.recovery_s
        return True

    @abstractmethod
    def machine_of(self, number: int) -> int:
        """Return the machine on which a job runs or is planned, counted from 0."""

    @abstractmethod
    def end_s(self, number: int) -> float:
        """Return the time in s at which a started job is to end."""

    @abstractmethod
    def machines_alive(self) -> Collection[int]:
        """Return the machines that are to be on."""

    def remark(self) -> str:
        """Return a remark for the user when all is over, in a line; empty for none."""
        return ""

    def tie(self, name: str) -> Any:
        """Return the key that orders jobs that are released at one time; `name` is the id within the workload."""
        return name


def hand_over(
    planner: MachinePlanner,
    ended: Iterable[tuple[int, float]],
    upcoming: Iterable[tuple[float, int | None, Sequence[ManagedJob]]],
) -> tuple[list[int], list[int], bool]:
    """Hand a message of the engine to a planner, time by time; return the answers of the planner.

    `ended`: numbers and times of the jobs that have ended; `upcoming`: times, machines alive from then on (None: as
    before) and arrivals. Returned are the decisions, the jobs that are never to start, and whether machines changed.
    """
    decisions: list[int] = []
    dropped: list[int] = []
    until_s, changed = 0.0, False
    for number, time_s in ended:
        end_s = planner.end_s(number)
        if end_s > time_s + LAG_S:
            decisions += planner.ended(number, time_s)
        else:
            until_s = max(until_s, end_s)
    if until_s > 0.0:
        decisions += planner.advance(until_s)
    for time_s, alive, batch in upcoming:
        decisions += planner.advance(max(time_s, until_s), alive, batch)
        dropped += planner.dropped()
        changed |= alive is not None
    return decisions, dropped, changed
