"""Power per job under an envelope, as a Batsim scheduler: docs/explanation/job-power.md.

After *Scheduling with lightweight predictions in power-constrained HPC platforms* (hal-04747713).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from operator import itemgetter
from typing import Any, ClassVar, Literal, TypeAlias

from pydantic import Field

from batwatt.protocol.job_fields import POWER_FIELDS, parse_power
from batwatt.schedulers.jobpower.power import (
    Candidate,
    Headroom,
    Load,
    PowerCheck,
    Prediction,
    Predictor,
    Scores,
    Submitted,
)
from batwatt.scheduling.backfilling import rule_of
from batwatt.scheduling.base import OptionValues, PartChoice, PowerOptions
from batwatt.scheduling.cluster import Cluster
from batwatt.scheduling.job import BatsimJob, Job
from batwatt.scheduling.orders import Order
from batwatt.scheduling.power import PowerScheduler
from batwatt.scheduling.queue import Room, backfill
from batwatt.scheduling.registry import make
from batwatt.units import microseconds


class JobPowerOptions(PowerOptions):
    """Options of the scheduler `jobpower` (docs/explanation/job-power.md)."""

    order: PartChoice = Field("fcfs", description="queue order")
    backfilling: PartChoice = Field("easy", description="backfilling of jobs on servers: its rule alone counts")
    power_check: PartChoice = Field(
        "gaussian", description="bound of the power of all running jobs: node, mean, max, gaussian or knapsack"
    )
    predictor: PartChoice = Field("history", description="prediction of the power of a job")
    excess: Literal["keep", "kill-latest"] = Field(
        "keep", description="action if the cap falls below the power: jobs go on, or those started last are killed"
    )


class JobPowerState:
    """Predicted power of a job: by its fields `raw`, after the scheduler learned of `learned` runs."""

    learned = -1
    predicted: Prediction
    load: Load

    def __init__(self, raw: Mapping[str, Any]) -> None:
        self.raw = raw


class Jobpower(PowerScheduler[JobPowerOptions]):
    """EASY backfilling where a start must fit hosts and the predicted power of all jobs under the envelope."""

    Options: ClassVar[type[JobPowerOptions]] = JobPowerOptions
    rule: str

    def __init__(self, options: OptionValues = None) -> None:
        super().__init__(options)
        settings = self.settings
        self.the_order: Order = make("order", settings.order)
        self.rule = rule_of(settings.backfilling)
        self.check: PowerCheck = make("power_check", settings.power_check)
        self.predictor: Predictor = make("predictor", settings.predictor)
        if settings.envelope is None:
            self.logger.warning("no envelope is given, so no cap holds")
        else:
            self.injector = self.make_injector("the scheduler")
        self.scores = Scores()
        self.kills = 0
        self._idle_w = self._node_w = 0.0
        self._learned = 0
        self._last_pass: tuple[int, int, float] | None = None
        if self.platform is not None:
            states = [host.pstates[host.initial_pstate] for host in self.platform.hosts]
            self._idle_all_w = math.fsum(state.idle_w for state in states)
            # where hosts differ a job raises the power by as much as it can on any of them
            self._idle_w = min(state.idle_w for state in states)
            self._node_w = max(state.full_w for state in states)
            self.predictor.idle_w, self.predictor.node_w = self._idle_w, self._node_w

    @property
    def _cap_w(self) -> float:
        """The dynamic power that the present cap leaves, in W."""
        injector = self.injector
        if injector is None:
            return math.inf
        return -math.inf if injector.cap_w is None else injector.cap_w - self._idle_all_w

    # what pybatsim calls ----------------------------------------------------------------------------------------

    def state_of(self, attempt: BatsimJob) -> JobPowerState:
        """Return the prediction of a job that arrives, to be made."""
        return JobPowerState(attempt.json_dict or {})

    def completed(self, job: Job[JobPowerState]) -> None:
        """Learn the power of a run."""
        state = job.state
        power = parse_power(state.raw, job.name)
        if power is None:
            return
        power = power.until(self.bs.time() - job.start_s)
        self.scores.add(state.predicted, power.mean_w)
        self.predictor.learn(self._submitted(job), power)
        self._learned += 1

    def onHostsArrived(self, mask: int, pstate: int) -> None:
        """Ignore p-states: no host is switched."""

    def onNoMoreEvents(self) -> None:
        """Decide, once everything that a message says is known."""
        if not self.bs.running_simulation:
            return
        self.cluster.now_s = now_s = self.bs.time()
        injector = self.injector
        if injector is not None and injector.due(now_s) and self.settings.excess == "kill-latest":
            self._kill_latest()
        self.reject_stalled()
        # a job that is being killed still holds its hosts
        if not self.lifecycle.pending:
            self._place()
        finished = self.lifecycle.finished
        if injector is not None and not finished and not injector.over:
            next_s = injector.next_call_s()
            if next_s is not None:
                self.lifecycle.wake_at(next_s, now_s)
        if not finished:
            self._give_up()
        if self.needs_dynamic_jobs:
            self.lifecycle.close(self.lifecycle.finished)

    def onSimulationEnds(self) -> None:
        """Log the error of the predictions of the power of jobs."""
        super().onSimulationEnds()
        if self.scores.mape is not None:
            text = "predictor %s: mean absolute error %.2f %% of the power of %d runs"
            runs = len(self.scores.errors) + len(self.scores.blind)
            self.logger.info(text, self.predictor.name, 100.0 * self.scores.mape, runs)

    # predictions ------------------------------------------------------------------------------------------------

    def _submitted(self, job: Job[JobPowerState]) -> Submitted:
        """Return a job as the predictor may see it."""
        raw = job.state.raw
        if not self.predictor.oracle:
            raw = {name: value for name, value in raw.items() if name not in POWER_FIELDS}
        return Submitted(job.name, job.hosts, raw)

    def _load_of(self, job: Job[JobPowerState]) -> Load:
        """Return the load of a waiting job, as it is predicted now."""
        state = job.state
        if state.learned != self._learned:
            state.learned, hosts = self._learned, job.hosts
            state.predicted = predicted = self.predictor.predict(self._submitted(job))
            idle_w = hosts * self._idle_w
            state.load = Load(
                hosts * (self._node_w - self._idle_w),
                max(0.0, predicted.mean_w - idle_w),
                predicted.variance_w2,
                max(0.0, predicted.max_w - idle_w),
            )
        return state.load

    # decisions --------------------------------------------------------------------------------------------------

    def _place(self) -> None:
        cluster, queue = self.cluster, self.queue
        cap_w = self._cap_w
        this_pass = (cluster.version, self._learned, cap_w)
        aged = queue.ages.aged(cluster.now_s)
        unchanged = this_pass == self._last_pass and not queue.new and queue.time_invariant and not aged
        if not queue.rows or not cluster.free or unchanged:
            queue.new.clear()
            return
        cluster.correct_ends()
        held = [(cluster.end_s(job), job.hosts, job.state.load) for job in cluster.running.values()]
        room = PowerRoom(cluster, self.check, self._load_of, held, cap_w)
        backfill(self.rule, queue.ordered(cluster.now_s), room, aged)
        cluster.carry_out(room.starts, self.lifecycle)
        queue.new.clear()
        self._last_pass = (cluster.version, self._learned, cap_w)

    def _kill_latest(self) -> None:
        """Kill the jobs that were started last until the check holds for the others."""
        running = [job for job in self.cluster.running.values() if not job.dying]
        running.sort(key=lambda job: (job.start_s, job.number))
        victims: list[Job[JobPowerState]] = []
        while running and not self.check.fits(Load.of(job.state.load for job in running), self._cap_w):
            victims.append(running.pop())
        self.kills += len(victims)
        self.kill(victims)

    def _give_up(self) -> None:
        """Reject the jobs that wait when nothing runs or is to come that could let them start."""
        jobs, injector = self.lifecycle, self.injector
        coming = jobs.more_jobs or self.cluster.running or jobs.pending
        changes = injector is not None and not injector.over
        if coming or changes or self.hosts_may_return or not len(self.queue):
            return
        if self.reject_stuck():
            self._last_pass = None
            self._place()
        cap = "" if injector is None or injector.cap_w is None else f" under the last cap of {injector.cap_w} W"
        while len(self.queue) and not self.cluster.running:
            # the first one can never start, as nothing else runs: those behind it may
            self.reject([next(self.queue.ordered(self.bs.time()))], f"not started{cap}")
            self._last_pass = None
            self._place()


Held: TypeAlias = tuple[float, int, Load]
"""Expected end in s, hosts and load of a running job."""


class PowerRoom(Room):
    """The free hosts of a cluster under a dynamic power of `cap_w` W, of which running jobs have their loads.

    `load_of` predicts the load of a waiting job. `starts` are the jobs to start.
    """

    def __init__(
        self,
        cluster: Cluster,
        check: PowerCheck,
        load_of: Callable[[Job[JobPowerState]], Load],
        held: list[Held],
        cap_w: float,
    ) -> None:
        super().__init__()
        self.starts: list[tuple[Job[JobPowerState], int]] = []
        self._cluster, self._check, self._load_of, self._held = cluster, check, load_of, held
        self._free, self._begin_s = cluster.free, math.inf
        self._left = Headroom(self._free.bit_count(), Load.of(load for _, _, load in held), 0, Load(), cap_w)

    def _end_s(self, job: Job[JobPowerState]) -> float:
        return microseconds(self._cluster.now_s + job.estimate_s)

    def _candidate(self, job: Job[JobPowerState]) -> Candidate:
        return Candidate(job.hosts, self._load_of(job), self._end_s(job) > self._begin_s)

    def start(self, job: Job[JobPowerState]) -> bool:
        """See `Room`."""
        if job.hosts > self._left.hosts:
            return False
        candidate = self._candidate(job)
        left = self._check.after(candidate, self._left)
        if left is None:
            return False
        mask = self._cluster.select(job, self._free)
        self.starts.append((job, mask))
        self._held.append((self._end_s(job), job.hosts, candidate.load))
        self._free &= ~mask
        self._left, self.is_open = left, left.hosts > 0
        return True

    def reserve(self, job: Job[JobPowerState]) -> bool:
        """See `Room`: a job that never fits gets a reservation that delays no other."""
        own, free, spare, later = self._load_of(job), self._left.hosts, 0, Load()
        ends = sorted(self._held, key=itemgetter(0))
        while ends and ends[0][0] < math.inf:
            end_s = ends[0][0]
            free += sum(hosts for at_s, hosts, _ in ends if at_s <= end_s)
            ends = [row for row in ends if row[0] > end_s]
            load = Load.of([own, *(load for _, _, load in ends)])
            if job.hosts <= free and self._check.fits(load, self._left.cap_w):
                self._begin_s, spare, later = end_s, free - job.hosts, load
                break
        self._left = replace(self._left, late_hosts=spare, late_load=later)
        return True

    def behind(self, candidates: Iterator[Job[JobPowerState]]) -> Iterator[Job[JobPowerState]]:
        """See `Room`: a check may pick a set."""
        jobs = [job for job in candidates if job.hosts <= self._left.hosts]
        return iter([jobs[index] for index in self._check.pick([self._candidate(job) for job in jobs], self._left)])
