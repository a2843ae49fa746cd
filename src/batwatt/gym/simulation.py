"""An episode: its inputs, the simulation, and the columns of observations."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from batwatt.batsim.batsim4 import EngineConfig
from batwatt.batsim.bs import Bs
from batwatt.engine.core import Engine
from batwatt.errors import InputError
from batwatt.gym.scheduler import NEVER_S, AgentScheduler, JobTimes, Limits, Tally
from batwatt.inputs.load import machines_of
from batwatt.model.record import Record
from batwatt.model.signal import Window
from batwatt.model.timeline import Timeline
from batwatt.model.work import run_times_s
from batwatt.model.workload import LENGTH, RELEASE
from batwatt.results.figures import BOUND_S, FIGURES, Figure
from batwatt.results.metrics import capacity_core_s
from batwatt.run.prepared import PreparedRun
from batwatt.run.spec import RunSpec
from batwatt.scheduling.lifecycle import JobLifecycle
from batwatt.units import DAY_S, HOUR_S, microseconds


@dataclass(frozen=True)
class Episode:
    """The determinants of an episode but for the actions: a run without a scheduler, and facts computed of it once.

    `jobs` are the times of the jobs that can run, by id.
    """

    run: PreparedRun
    limits: Limits
    jobs: Mapping[str, JobTimes]

    @classmethod
    def of(cls, spec: RunSpec) -> Episode:
        """Read the inputs of an episode; without a capacity all hosts are there. Raises InputError."""
        inputs = PreparedRun.read(spec)
        platform, [workload], hosts = inputs.platform, inputs.workloads, len(inputs.platform)
        for job in workload.jobs:
            JobLifecycle.check_id(job)
        widest = max((job.hosts for job in workload.jobs if job.hosts <= hosts), default=0)
        envelope, capacity = inputs.envelope, inputs.capacity
        if envelope is not None and (power := Limits(platform, envelope, None)).most < widest:
            inputs = replace(inputs, envelope=_lifted(envelope, power.most_w))
        if capacity is not None and Limits(platform, None, capacity).most < widest:
            inputs = replace(inputs, capacity=_lifted(capacity, float(hosts)))
        limits = Limits(platform, inputs.envelope, inputs.capacity)
        if spec.capacity is None:
            inputs = replace(inputs, capacity=Timeline((0.0,), (float(hosts),), "machines"), cores=1)
        elif len(machines_of(platform)) < hosts:
            problem = "a capacity counts machines, and here a machine has several hosts"
            raise InputError(platform.source, problem, "give a platform whose hosts are machines")
        full_s = run_times_s(inputs.measured, platform.fastest_flops).tolist()
        jobs = {
            job.id: JobTimes(job.raw.get(RELEASE, job.submit_time_s), job.raw.get(LENGTH, run_s))
            for job, run_s in zip(inputs.measured.jobs, full_s, strict=True)
            if job.hosts <= limits.most
        }
        if not widest:
            raise InputError(workload.source, f"has no job for {hosts} hosts or fewer", "give another workload")
        if not jobs:
            problem = f"has no job that can run: the limits leave room for {limits.most} of {hosts} hosts at most"
            raise InputError(workload.source, problem, "give another workload, or other limits")
        return cls(inputs, limits, jobs)


def _lifted(series: Timeline, enough: float) -> Timeline:
    """Return a limit that is `enough` once its last value has held for its step; one that comes again has no last."""
    if len(series) == 1 or series.loop not in (None, -1):
        return series
    times_s, values = (*series.times_s, series.end_s), (*series.values, enough)
    return replace(series, times_s=times_s, values=values, loop=-1, period_s=0.0)


class Simulation:
    """An episode, from its first moment with a decision on.

    `now_s` is the time of the present moment, of the last end when it is `over`.
    """

    record: Record
    """The record of the episode; set when it is `over`."""

    def __init__(self, episode: Episode) -> None:
        self.episode = episode
        self.limits = episode.limits
        inputs = episode.run
        self.scheduler = AgentScheduler(inputs.platform, len(inputs.measured.jobs), self.limits, inputs.spec.options)
        again = self.scheduler.needs_dynamic_jobs
        self.config = EngineConfig(energy=inputs.platform.has_power, dynamic_jobs=again, profile_reuse=again)
        self.engine = Engine(inputs.platform, inputs.engine_workloads, self.config)
        self.tally = self.scheduler.tally = Tally(self.engine.recorder.record.jobs, episode.jobs)
        self.over = False
        self.now_s = 0.0
        self._bs = Bs(self.scheduler, self.engine)
        self._advance()

    def act(self, action: int) -> int:
        """Do what an action says, or what an illegal one stands for; return the action that was done."""
        scheduler = self.scheduler
        places = scheduler.queue.places
        if self.over:
            return places
        starts = 0 <= action < places and scheduler.fits[action]
        if not starts and not (places < action and action in np.flatnonzero(scheduler.mask())):
            action = places if scheduler.can_wait else int(scheduler.mask().argmax())
        if action == places:
            scheduler.wait()
        elif action > places:
            scheduler.switch(action - places - 1)
        else:
            scheduler.start(action)
        if not scheduler.undecided:
            self._bs.reply()
            self._advance()
        return action

    def _advance(self) -> None:
        """Go on to the next moment at which there is something to decide, or to the end."""
        bs = self._bs
        while not self.over:
            bs.receive()
            if self.scheduler.undecided:
                self.now_s = bs.time()
                return
            self.over = not bs.reply()
        self.record = self.engine.close()
        self.now_s = microseconds(float(self.record.schedule["makespan"]))

    def energy_j(self) -> float:
        """Return the energy in J of all hosts until now; at the end, until the last job has ended."""
        if not self.over:
            return self.engine.recorder.energy_at(self.now_s)
        rows = self.record.consumed_energy
        pairs = zip(reversed(rows.energies), reversed(rows.kinds), strict=True)
        return next((energy_j for energy_j, kind in pairs if kind == "e"), 0.0)


Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Observation:
    """A column: a value v in `unit` is v / scale (at most 1) if it is `bounded`, else v / (v + scale).

    `of_jobs`: it has an entry for each visible place; `of_kinds`: for each kind of hosts. `limit`: the argument that it
    needs, if any.
    """

    name: str
    unit: str
    meaning: str
    scale: float | str
    bounded: bool
    value: Callable[[Simulation], float | Floats | Flags]
    of_jobs: bool = False
    limit: str = ""
    of_kinds: bool = False

    @property
    def normalised(self) -> str:
        """The formula of the entry."""
        scale = self.scale if isinstance(self.scale, str) else f"{self.scale:g}"
        return f"v / {scale}" if self.bounded else f"v / (v + {scale})"


@dataclass(frozen=True, slots=True)
class Reward:
    """A potential, whose change is the reward: a figure of the run so far, negative unless higher is better.

    At the end of an episode in which all jobs complete `value` is the figure of the run. `change` says when `value`
    changes.
    """

    name: str
    figure: Figure
    change: str
    value: Callable[[Simulation], float]
    watts: bool = False

    @property
    def sign(self) -> float:
        """1 for a figure of which more is better, else -1."""
        return -self.figure.sign

    @property
    def meaning(self) -> str:
        """Sign and meaning of the figure, and when it changes."""
        return f"{'minus the ' if self.sign < 0.0 else ''}{self.figure.meaning}, {self.change}"

    def potential(self, simulation: Simulation) -> float:
        """Return the potential now."""
        return self.sign * self.value(simulation)


# observations ---------------------------------------------------------------------------------------------------------


def _to_next_end_s(simulation: Simulation) -> float:
    rows = simulation.scheduler.cluster.ends.rows
    return max(0.0, min(NEVER_S, rows[0][0] - simulation.now_s)) if rows else NEVER_S


def _waits_s(simulation: Simulation) -> Floats:
    queue = simulation.scheduler.queue
    waits_s = simulation.now_s - queue.submit_s
    waits_s *= queue.present
    return waits_s


def _oldest_wait_s(simulation: Simulation) -> float:
    rows = simulation.scheduler.queue.rows
    return simulation.now_s - rows[0].submit_s if rows else 0.0


def _slowdowns(simulation: Simulation) -> Floats:
    queue = simulation.scheduler.queue
    slowdowns = _waits_s(simulation)
    slowdowns /= queue.lasting_s
    slowdowns += queue.present
    return slowdowns


_IDLE = "longest time that a host of each kind has been on without a job"
_HOST_COLUMNS = (
    Observation("idle_hosts", "hosts", "hosts of each kind on without a job", "hosts", True,
                lambda s: s.scheduler.control.counts(s.scheduler.cluster.free), limit="switch", of_kinds=True),
    Observation("asleep_hosts", "hosts", "hosts of each kind that sleep or switch off", "hosts", True,
                lambda s: s.scheduler.control.counts(s.scheduler.cluster.asleep | s.scheduler.cluster.switching_off),
                limit="switch", of_kinds=True),
    Observation("booting_hosts", "hosts", "hosts of each kind that switch on", "hosts", True,
                lambda s: s.scheduler.control.counts(s.scheduler.cluster.switching_on), limit="switch", of_kinds=True),
    Observation("idle_s", "s", _IDLE, HOUR_S, False, lambda s: s.scheduler.control.longest_idle_s(),
                limit="switch", of_kinds=True),
)  # fmt: skip


_COLUMNS = (
    Observation("time_of_day_s", "s", "time since midnight in UTC; without dates, 0 s is midnight", DAY_S, True,
                lambda s: ((s.episode.run.clock.date_s if s.episode.run.clock else 0.0) + s.now_s) % DAY_S),
    Observation("free_hosts", "hosts", "hosts in service without a job", "hosts", True,
                lambda s: float(s.scheduler.cluster.free.bit_count())),
    Observation("room_hosts", "hosts", "hosts that can be given to jobs now, under the limit", "hosts", True,
                lambda s: float(s.scheduler.room)),
    Observation("running_jobs", "jobs", "jobs that run", "hosts", True, lambda s: float(len(s.scheduler.running))),
    Observation("queue_length", "jobs", "jobs that wait, visible or not", "places", False,
                lambda s: float(len(s.scheduler.queue))),
    Observation("queue_hosts", "hosts", "hosts that they ask for", "hosts", False,
                lambda s: float(s.scheduler.waiting_hosts)),
    Observation("oldest_wait_s", "s", "how long the first of them has waited", HOUR_S, False, _oldest_wait_s),
    Observation("next_end_s", "s", "until the first running job reaches its walltime", HOUR_S, False, _to_next_end_s),
    Observation("head_shadow_s", "s", "until walltimes end that leave enough hosts for the first waiting job", HOUR_S,
                False, lambda s: s.scheduler.head_shadow_s()),
    Observation("power_w", "W", "power as the envelope bounds it: full with a job, idle without", "watts", True,
                lambda s: s.scheduler.control.power_w(s.scheduler.cluster.busy)),
    Observation("cap_w", "W", "the envelope now", "watts", True, lambda s: s.limits.cap_w, limit="envelope"),
    Observation("next_cap_w", "W", "the envelope after the next change", "watts", True,
                lambda s: s.limits.next_cap_w, limit="envelope"),
    Observation("capacity", "hosts", "the capacity now", "hosts", True, lambda s: s.limits.capacity, limit="capacity"),
    Observation("next_capacity", "hosts", "the capacity after the next change", "hosts", True,
                lambda s: s.limits.next_capacity, limit="capacity"),
    Observation("next_change_s", "s", "until the next change of a limit", HOUR_S, False,
                lambda s: min(NEVER_S, s.limits.next_s - s.now_s)),
    Observation("job_hosts", "hosts", "hosts that a job asks for", "hosts", True, lambda s: s.scheduler.queue.hosts,
                True),
    Observation("job_walltime_s", "s", "its requested run time", HOUR_S, False,
                lambda s: s.scheduler.queue.walltime_s, True),
    Observation("job_wait_s", "s", "how long it has waited since its first submission", HOUR_S, False, _waits_s, True),
    Observation("job_slowdown", "", f"(wait + t) / t, t its request, at least {BOUND_S:g} s", 10.0, False, _slowdowns,
                True),
    Observation("job_fits", "", "1 if it can start now", 1.0, True, lambda s: s.scheduler.fits, True),
    *_HOST_COLUMNS,
)  # fmt: skip
OBSERVATIONS = {column.name: column for column in _COLUMNS}
"""Every column of an observation by its name."""
DEFAULT = (
    "time_of_day_s", "room_hosts", "running_jobs", "queue_length", "queue_hosts", "next_end_s",
    "job_hosts", "job_walltime_s", "job_wait_s", "job_slowdown", "job_fits",
)  # fmt: skip
"""The columns of an environment that names none."""


# rewards --------------------------------------------------------------------------------------------------------------


def _mean_wait_s(simulation: Simulation) -> float:
    tally = simulation.tally
    waiting_s = tally.waiting * simulation.now_s - tally.waiting_since_s
    return (tally.waited_s + waiting_s) / tally.total


def _goodput(simulation: Simulation) -> float:
    inputs = simulation.episode.run
    if not (simulation.now_s > 0.0 and inputs.capacity is not None):
        return 0.0
    alive = capacity_core_s(inputs.capacity, inputs.cores, Window(0.0, simulation.now_s))
    return simulation.tally.useful_core_s / alive if alive > 0.0 else 0.0


_REWARDS = (
    Reward("mean_slowdown", FIGURES["mean_slowdown"], "as jobs end", lambda s: s.tally.slowdowns / s.tally.total),
    Reward("mean_bounded_slowdown", FIGURES["mean_bounded_slowdown"], "as jobs end",
           lambda s: s.tally.bounded_slowdowns / s.tally.total),
    Reward("mean_wait_s", FIGURES["mean_wait_s"], "as time passes", _mean_wait_s),
    Reward("makespan_s", FIGURES["makespan_s"], "as time passes",
           lambda s: s.tally.last_end_s if s.over else s.now_s),
    Reward("energy_j", FIGURES["energy_j"], "as it is drawn", lambda s: s.energy_j(), True),
    Reward("goodput", FIGURES["goodput"], "as time passes", _goodput),
)  # fmt: skip
REWARDS = {reward.name: reward for reward in _REWARDS}
"""Every reward by its name."""
