"""Power per job under an envelope, as a Batsim scheduler: docs/explanation/job-power.md.

After *Scheduling with lightweight predictions in power-constrained HPC platforms* (hal-04747713).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any, ClassVar, Literal, NamedTuple

from pydantic import Field

from batwatt.errors import InputError
from batwatt.inputs.workloads.job_power import POWER_FIELDS, power_of
from batwatt.scheduling.backfilling import Backfilling
from batwatt.scheduling.base import Job
from batwatt.scheduling.options import PartChoice, PowerOptions
from batwatt.scheduling.orders import Order
from batwatt.scheduling.passes import backfill
from batwatt.scheduling.queue import Waiting
from batwatt.scheduling.registry import make
from batwatt.systems.powercap.base import PowerScheduler
from batwatt.systems.powercap.cluster import Running
from batwatt.systems.powercap.job_power.placing import PowerRoom
from batwatt.systems.powercap.job_power.power_checks import Load, PowerCheck
from batwatt.systems.powercap.job_power.predictors import Prediction, Predictor, Scores, Submitted


class JobPowerOptions(PowerOptions):
    """Options of the scheduler `jobpower` (docs/explanation/job-power.md)."""

    order: PartChoice = Field("fcfs", description="queue order")
    backfilling: PartChoice = Field("easy", description="backfilling of jobs on servers: its rule alone counts")
    power_check: PartChoice = Field(
        "gaussian", description="what running jobs are taken to draw together: node, mean, max, gaussian or knapsack"
    )
    predictor: PartChoice = Field("history", description="prediction of what a job will draw")
    excess: Literal["keep", "kill-latest"] = Field(
        "keep", description="what happens when the cap falls below: jobs go on, or those started last are killed"
    )


class _Known(NamedTuple):
    """A waiting job, and what it was predicted to draw when so many runs had been learnt of."""

    submitted: Submitted
    learned: int
    predicted: Prediction
    load: Load


class Jobpower(PowerScheduler[JobPowerOptions]):
    """EASY backfilling where a start must fit hosts and the predicted power of all jobs under the envelope."""

    Options: ClassVar[type[JobPowerOptions]] = JobPowerOptions

    def __init__(self, options: Mapping[str, Any] | None = None) -> None:
        super().__init__(options)
        chosen = self.settings
        self.the_order: Order = make("order", chosen.order)
        self.rule = _rule_of(make("backfilling", chosen.backfilling))
        self.check: PowerCheck = make("power_check", chosen.power_check)
        self.predictor: Predictor = make("predictor", chosen.predictor)
        if chosen.envelope is None:
            self.logger.warning("no envelope is given, so no cap holds")
        else:
            self.injector = self.make_injector("the scheduler")
        self.scores = Scores()
        self.kills = 0
        self._idle_w = self._node_w = 0.0
        self._loads: dict[str, Load] = {}
        self._started: dict[str, Prediction] = {}
        self._fields: dict[str, Mapping[str, Any]] = {}
        """Those of the first run of each job that was killed."""
        self._known: dict[int, _Known] = {}
        self._learned = 0
        self._last_pass: tuple[int, int, float] | None = None
        if self.platform is not None:
            self._take_watts()

    def _take_watts(self) -> None:
        """Where hosts differ a job is taken to raise the power by as much as it can on any of them."""
        assert self.platform is not None
        states = [host.pstates[host.initial_pstate] for host in self.platform.hosts]
        self._idle_all_w = math.fsum(state.idle_w for state in states)
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

    def onJobSubmission(self, job: Job) -> None:
        """Queue a job; one wider than the platform can never run and is rejected."""
        if job.requested_resources > self.cluster.count:
            self.lifecycle.reject([job], f"wider than the platform of {self.cluster.count} hosts")
            return
        if not self.lifecycle.acknowledged(job):
            self.lifecycle.check_id(job)
        self.queue.add(job)

    def onJobCompletion(self, job: Job) -> None:
        """Free its hosts; learn what it has drawn, unless it was killed for power."""
        run = self.cluster.end(job.id)
        self._loads.pop(job.id, None)
        predicted = self._started.pop(job.id, None)
        doomed = job.id in self.killing
        killed = doomed and job.job_state is Job.State.COMPLETED_KILLED
        self.killing.discard(job.id)
        if run is not None and predicted is not None and not killed:
            self._learn(job, run, predicted)
        following = self.victims.next_of(job) if doomed else None
        if killed and following is not None:
            self.submit_again(job, following)

    def onMachinePStateChanged(self, nodeid: tuple[int, int], pstate: str) -> None:
        """No host is switched."""

    def onNoMoreEvents(self) -> None:
        """Decide, once everything that a message says is known."""
        if not self.bs.running_simulation:
            return
        self.cluster.now_s = now_s = self.bs.time()
        injector = self.injector
        if injector is not None and injector.due(now_s) and self.settings.excess == "kill-latest":
            self._kill_latest()
        # a job that is being killed still holds its hosts
        if not self.killing:
            self._place()
        done = self.done()
        if injector is not None and not done and not injector.over:
            next_s = injector.next_call_s()
            if next_s is not None:
                self.lifecycle.wake_at(next_s, now_s)
        if not done:
            self._give_up()
        if self.needs_dynamic_jobs:
            self.lifecycle.close(self.done())

    def onSimulationEnds(self) -> None:
        """Say how well predictions met what jobs have drawn."""
        super().onSimulationEnds()
        if self.scores.mape is not None:
            text = "predictor %s: mean absolute error %.2f %% of the power of %d runs"
            runs = len(self.scores.errors) + len(self.scores.blind)
            self.logger.info(text, self.predictor.name, 100.0 * self.scores.mape, runs)

    # predictions ------------------------------------------------------------------------------------------------

    def _submitted(self, job: Job) -> Submitted:
        raw = self._raw(job)
        if not self.predictor.oracle:
            raw = {name: value for name, value in raw.items() if name not in POWER_FIELDS}
        return Submitted(job.id, job.requested_resources, raw)

    def _raw(self, job: Job) -> Mapping[str, Any]:
        """The fields of a job, those of its first run if it was submitted again."""
        return self._fields.get(self.lifecycle.name_of(job)) or job.json_dict or {}

    def _learn(self, job: Job, run: Running, predicted: Prediction) -> None:
        power = power_of(self._raw(job), job.id)
        if power is None:
            return
        power = power.until(self.bs.time() - run.start_s)
        self.scores.add(predicted, power.mean_w)
        self.predictor.learn(self._submitted(job), power)
        self._learned += 1

    def _load_of(self, waiting: Waiting) -> Load:
        """The load of a waiting job, as it is predicted now."""
        known = self._known.get(waiting.serial)
        if known is None or known.learned != self._learned:
            submitted = self._submitted(waiting.job) if known is None else known.submitted
            predicted, hosts = self.predictor.predict(submitted), waiting.hosts
            idle_w = hosts * self._idle_w
            load = Load(
                hosts * (self._node_w - self._idle_w),
                max(0.0, predicted.mean_w - idle_w),
                predicted.variance_w2,
                max(0.0, predicted.max_w - idle_w),
            )
            known = self._known[waiting.serial] = _Known(submitted, self._learned, predicted, load)
        return known.load

    # decisions --------------------------------------------------------------------------------------------------

    def _place(self) -> None:
        cluster, queue = self.cluster, self.queue
        cap_w = self._cap_w
        this_pass = (cluster.version, self._learned, cap_w)
        unchanged = this_pass == self._last_pass and not queue.new and queue.time_invariant
        if not queue.rows or not cluster.free or unchanged:
            queue.new.clear()
            return
        held = [(run.deadline_s, run.hosts, self._loads[run.job.id]) for run in cluster.running.values()]
        room = PowerRoom(cluster, self.check, self._load_of, held, cap_w)
        backfill(self.rule, queue.ordered(cluster.now_s), room)
        for start in room.starts:
            known = self._known.pop(start.waiting.serial)
            self._loads[start.waiting.job.id], self._started[start.waiting.job.id] = known.load, known.predicted
        cluster.carry_out(room.starts, self.bs)
        queue.new.clear()
        self._last_pass = (cluster.version, self._learned, cap_w)

    def _latest_first(self) -> Iterator[Running]:
        runs = sorted(self.cluster.running.values(), key=lambda run: (run.start_s, run.serial), reverse=True)
        return (run for run in runs if run.job.id not in self.killing)

    def _kill_latest(self) -> None:
        """Kill the jobs that were started last until the check holds for the others."""
        victims: list[Running] = []
        left = {run.job.id: self._loads[run.job.id] for run in self._latest_first()}
        for run in self._latest_first():
            if self.check.fits(Load.of(left.values()), self._cap_w):
                break
            del left[run.job.id]
            victims.append(run)
        for run in victims:
            self.killing.add(run.job.id)
            self._fields[self.lifecycle.name_of(run.job)] = self._raw(run.job)
            self.kill_victim(run)
        self.kills += len(victims)
        if victims:
            self.bs.kill_jobs([run.job for run in victims])

    def _give_up(self) -> None:
        """Reject the jobs that wait when nothing runs or is to come that could let them start."""
        jobs, injector = self.lifecycle, self.injector
        coming = jobs.more_jobs or self.cluster.running or self.killing or jobs.awaits
        changes = injector is not None and not injector.over
        if coming or changes or self.hosts_may_return or not len(self.queue):
            return
        if self.reject_stuck():
            self._last_pass = None
            self._place()
        cap = "" if injector is None or injector.cap_w is None else f" under the last cap of {injector.cap_w} W"
        while len(self.queue) and not self.cluster.running:
            # who is first can never start, as nothing else runs: those behind it may
            row = next(self.queue.ordered(self.bs.time()))
            self.queue.remove(row)
            jobs.reject([row.job], f"not started{cap}")
            self._last_pass = None
            self._place()


def _rule_of(backfilling: Backfilling) -> str:
    """What a job that may not start does to those behind it. Raises InputError."""
    if backfilling.blocked is None:
        problem = f"{backfilling.name or type(backfilling).__name__!r} has no rule 'blocked', only 'place'"
        raise InputError("option 'backfilling'", problem, "choose none, first-fit or easy")
    return backfilling.blocked
