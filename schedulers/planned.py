"""Carrying out a plan that was made in advance, such as the offline optimum of the powercap paper's problem."""

from __future__ import annotations

from collections.abc import Mapping
from operator import itemgetter
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

from pydantic import Field

from batwatt.errors import InputError
from batwatt.model import hostset
from batwatt.options.files import read_options
from batwatt.scheduling.cluster import Start
from batwatt.scheduling.options import EnvelopeOptions
from batwatt.scheduling.transitions import outage
from batwatt.systems.powercap.optimum.plan_file import SchedulePlan, read_plan
from batwatt.systems.powercap.scheduler import EnvelopeScheduler
from batwatt.units import REPORTED_S


class PlannedOptions(EnvelopeOptions):
    """Options of the scheduler `planned`."""

    plan: str | Path | SchedulePlan | None = Field(None, description="plan file of `batwatt optimum`")


class _Action(NamedTuple):
    """A row of the plan, by time and rank: 0, put servers in a p-state, or 1, start a job on them."""

    time_s: float
    rank: int
    mask: int
    job_id: str = ""
    pstate: int = -1


class Planned(EnvelopeScheduler[PlannedOptions]):
    """Carries out a plan file: states of servers and starts of jobs at their times, as soon as the servers allow it."""

    Options: ClassVar[type[EnvelopeOptions]] = PlannedOptions
    needs_exact_times: ClassVar[bool] = True

    def __init__(self, options: Mapping[str, Any] | None = None) -> None:
        super().__init__(read_options(self.Options, options))
        plan = self.settings.plan
        if plan in (None, ""):
            raise InputError("option 'plan'", "the scheduler 'planned' needs one", "make one: batwatt optimum")
        if self.platform is None:
            raise InputError("option 'platform'", "the scheduler 'planned' needs it", "give the XML file")
        self.plan: SchedulePlan = plan if isinstance(plan, SchedulePlan) else read_plan(plan)
        self._where = "plan" if isinstance(plan, SchedulePlan) else str(plan)
        states = [_Action(row.time_s, 0, hostset.from_text(row.hosts), "", row.pstate) for row in self.plan.states]
        starts = [_Action(row.start_s, 1, hostset.from_text(row.hosts), row.id) for row in self.plan.jobs]
        self._actions = sorted(states + starts, key=itemgetter(0, 1, 2, 3))
        self._planned_ids = {row.id for row in self.plan.jobs}

    @property
    def needs_energy(self) -> bool:
        """True if the plan changes states of servers."""
        return bool(self.plan.states)

    def onSimulationBegins(self) -> None:
        """Check that the plan is one for this platform."""
        super().onSimulationBegins()
        for action in self._actions:
            if action.mask & ~self.cluster.everyone:
                problem = f"names host {hostset.ids(action.mask)[-1]} but there are {self.cluster.count}"
                raise InputError(self._where, problem, "use the platform that it was made for")

    def onJobSubmission(self, job: Any) -> None:
        """Queue a job; one that is not in the plan is rejected."""
        super().onJobSubmission(job)
        self.queue.new.clear()
        if job.id in self.lifecycle.states and job.id not in self._planned_ids:
            self.reject([self.lifecycle.states[job.id]], "as they are not in the plan")

    def onNoMoreEvents(self) -> None:
        """Carry out actions that are due and possible; others wait, and so do all that need their servers."""
        if not self.bs.running_simulation:
            return
        self.cluster.now_s = now_s = self.bs.time()
        self.update_hosts(now_s)
        blocked = 0
        left = []
        for index, action in enumerate(self._actions):
            if action.time_s > now_s + REPORTED_S:
                left += self._actions[index:]
                break
            if action.mask & blocked or not (self._start(action) if action.rank else self._put(action, now_s)):
                blocked |= action.mask
                left.append(action)
        self._actions = left
        coming = [action.time_s for action in left if action.time_s > now_s + REPORTED_S]
        if coming:
            self.lifecycle.wake_at(coming[0], now_s)
        out, queue = self.transitions.out, self.cluster.queue
        if self.lifecycle.more_jobs or len(queue):
            self.lifecycle.wake_at(self.transitions.next_s, now_s)
        if out and not (coming or self.lifecycle.more_jobs or self.cluster.running or self.hosts_may_return):
            self.reject(queue, outage(out))

    def _start(self, action: _Action) -> bool:
        """Start a job; return False if it is not possible yet."""
        cluster = self.cluster
        job = self.lifecycle.states.get(action.job_id)
        if job is None or action.mask & ~cluster.free:
            return False
        cluster.carry_out([Start(job, action.mask)], self.lifecycle)
        return True

    def _put(self, action: _Action, now_s: float) -> bool:
        """Request a p-state; return False if it is not possible yet."""
        cluster = self.cluster
        assert cluster.platform is not None
        hosts = [cluster.platform.hosts[i] for i in hostset.ids(action.mask)]
        if any(not action.pstate < len(host.pstates) or action.pstate in host.virtual for host in hosts):
            problem = f"p-state {action.pstate} is not one of {hosts[0].name} to be asked for"
            raise InputError(self._where, problem, "use the platform that it was made for")
        if action.mask & cluster.locked:
            return False
        if action.pstate in hosts[0].sleep_of and action.mask & cluster.busy:
            return False
        # Batsim counts a server that begins in another p-state than 0 at the power of 0 until it is asked for one
        new = sum(1 << host.id for host in hosts if now_s <= REPORTED_S and host.initial_pstate)
        same = sum(1 << host.id for host in hosts if cluster.pstate[host.id] == action.pstate)
        mask = action.mask & (new | ~same)
        if mask:
            self._request(mask, action.pstate)
        return True
