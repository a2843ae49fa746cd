"""Slurm's scheduling in simulation: the main scheduling at each event, and backfill passes between them.

The rules and their sources: docs/explanation/slurm-scheduler.md.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, ClassVar, Final

import numpy as np

from batwatt.checks import shown_json
from batwatt.errors import InputError
from batwatt.model import hostset
from batwatt.model.platform import machine_of
from batwatt.scheduling.base import Job, Scheduler
from batwatt.scheduling.cluster import Cluster, Start
from batwatt.scheduling.job_lengths import JobLengths, request_s, text_in
from batwatt.scheduling.jobs import ManagedJob
from batwatt.scheduling.orders import Fcfs
from batwatt.scheduling.queue import Queue
from batwatt.scheduling.transitions import outage
from batwatt.systems.slurm.fairshare import Fairshare
from batwatt.systems.slurm.options import SlurmOptions
from batwatt.systems.slurm.partitions import Partition, partitions_of, read_partitions, whole_minutes
from batwatt.systems.slurm.plan import BackfillPlan
from batwatt.systems.slurm.priority import Multifactor, Standing
from batwatt.units import LAG_S, REPORTED_S

UNLIMITED_S: Final = 31_536_000.0
"""Time limit of a job without any, in s: the year that Slurm plans with (YEAR_MINUTES of backfill.c)."""

MOST_SHARES: Final = 1_000_000_000


class SlurmScheduler(Scheduler[SlurmOptions]):
    """A scheduler that starts jobs as Slurm does with priority/multifactor and sched/backfill."""

    Options: ClassVar[type[SlurmOptions]] = SlurmOptions

    def __init__(self, options: Mapping[str, Any] | None = None) -> None:
        super().__init__(options)
        settings = self.settings
        self._named = read_partitions(settings.partitions)
        self._qos = _whole_numbers("qos", settings.qos)
        shares = _whole_numbers("shares", settings.shares)
        tree = settings.fairshare == "fair-tree"
        half_life_s, period_s = settings.priority_decay_half_life_s, settings.priority_calc_period_s
        self.fairshare = Fairshare(shares, half_life_s, period_s, tree, settings.fair_share_dampening_factor)
        self._count = 0
        self._changed = False
        """True if this message reported an event that main scheduling acts on."""
        self._main_s = self._backfill_s = math.inf
        """Times in s at which main scheduling of all jobs and a backfill pass are due."""

    @abstractmethod
    def names_in(self, text: str) -> Sequence[str]:
        """Return the names in a list of hosts in Slurm's notation. Raises ValueError."""

    fills_requests: ClassVar[bool] = False

    def without_requests(self) -> str:
        """See `Scheduler`."""
        return "they have the time limit of their partition"

    # what pybatsim calls ----------------------------------------------------------------------------------------

    def onSimulationBegins(self) -> None:
        """Make the partitions, the queue and the cluster."""
        super().onSimulationBegins()
        described = self.hosts_described
        self.partitions = partitions_of(self._named, described, self.names_in)
        self._usual = next(iter(self.partitions.values()))
        nodes = len({machine_of(host["properties"], host["name"]) for host in described})
        self._cores = len(described) // nodes
        if self.run_times is not None:
            self.run_times.lengths = JobLengths(self.bs)
        self.multifactor = Multifactor(self.settings, nodes, len(described))
        self.queue = Queue(Fcfs())
        self._sorted_s = 0.0
        self.cluster = Cluster(len(described), self.queue, transitions=self.transitions)

    def onJobSubmission(self, job: Job) -> None:
        """Queue a job, or reject it if it is over a limit of its partition."""
        self._changed = True
        now_s, raw = self.bs.time(), job.json_dict or {}
        self.fairshare.advance(now_s)
        partition, qos = self._partition_of(raw), text_in(raw, "qos")
        if partition is None:
            self.lifecycle.reject([job], "as their partition is not one of the option partitions")
            return
        if self._qos and qos and qos not in self._qos:
            self.lifecycle.reject([job], "as their QOS is not one of the option qos")
            return
        self._count += 1
        state = ManagedJob(self._count, job)
        nodes = -(-state.hosts // self._cores)
        limit_s = request_s(job.requested_time, raw, job.id)
        limit_s = limit_s if limit_s < math.inf else partition.max_time_s
        state.assumed_s = whole_minutes(limit_s) if limit_s < math.inf else UNLIMITED_S
        over = self._limit_exceeded(state, nodes, partition)
        if over:
            self.lifecycle.reject([job], over)
            return
        if self.run_times is not None:
            state.assumed_s = whole_minutes(self.run_times.estimate(job).expected_s)
        user = text_in(raw, "user")
        charged = user if self.settings.fairshare_by == "user" else text_in(raw, "account", "group")
        urgency = self._qos[qos] / (max(self._qos.values()) or 1) if qos in self._qos else 0.0
        fixed = self.multifactor.fixed(nodes, state.hosts, partition, urgency)
        state.plan = standing = Standing(partition, user, charged, fixed)
        self.fairshare.add(charged)
        factor = self.fairshare.factor(charged)
        standing.priority = int(self.multifactor.priority(state.submit_s, factor, fixed, now_s))
        self.lifecycle.states[job.id] = state
        self.lifecycle.live += 1
        self.queue.add(state, standing.key)

    def _partition_of(self, raw: Mapping[str, Any]) -> Partition | None:
        """Return the partition of a job with these fields; None if there is none of its name."""
        if self.settings.partitions is None:
            return self._usual
        name = text_in(raw, "partition", "queue")
        return self.partitions.get(name) if name else self._usual

    def _limit_exceeded(self, job: ManagedJob, nodes: int, partition: Partition) -> str:
        """Return the limit of its partition that a job exceeds, as a text; empty for none."""
        name = partition.name
        if job.assumed_s > partition.max_time_s:
            return f"over the max_time_s of partition {name} (PartitionTimeLimit)"
        if nodes > partition.max_nodes:
            return f"over the max_nodes of partition {name} (PartitionNodeLimit)"
        if job.hosts > partition.mask.bit_count():
            return f"wider than partition {name} of {partition.mask.bit_count()} hosts"
        return ""

    def onJobCompletion(self, job: Job) -> None:
        """Free the hosts of a job, and end its charge."""
        self._changed = True
        now_s = self.bs.time()
        self.fairshare.advance(now_s)
        state, _ = self.lifecycle.ended(job)
        if self.run_times is not None:
            self.run_times.learn(state.name)
        self.fairshare.charge(state.plan.charged, -state.hosts, now_s)
        self.cluster.end(state)
        self.lifecycle.live -= 1

    def hosts_changed(self) -> None:
        """See `Scheduler`."""
        self._changed = True
        self.cluster.hosts_changed()

    def onNoMoreEvents(self) -> None:
        """Schedule at an event, and when a pass is due."""
        if not self.bs.running_simulation:
            return
        self.cluster.now_s = now_s = self.bs.time()
        self._reject_stuck()
        if not self.queue.rows:
            self._changed = False
            self._main_s = self._backfill_s = math.inf
            return
        if not self.cluster.free:
            # nothing starts before the next event
            return
        settings = self.settings
        self.fairshare.advance(now_s)
        if self._sorted_s < self.fairshare.calculated_s:
            self._recalculate()
        everything = self._main_s <= now_s + LAG_S
        if self._changed or everything:
            rows = self.queue.rows if everything else self.queue.rows[: settings.default_queue_depth]
            rest = len(self.queue.rows) > len(rows)
            again_s = _at_or_after(now_s + LAG_S, settings.sched_interval_s)
            self._main_s = again_s if self._main(rows) and rest else math.inf
        if self._changed:
            self._backfill_s = _at_or_after(now_s, settings.bf_interval_s)
        self._changed = False
        if self._backfill_s <= now_s + LAG_S:
            # without a start or an event only new priorities change the plan
            again_s = self.fairshare.calculated_s + settings.priority_calc_period_s
            again_s = now_s + settings.bf_interval_s if self._backfill() else again_s
            self._backfill_s = _at_or_after(again_s, settings.bf_interval_s)
        if self.queue.rows and self.cluster.free:
            self.lifecycle.wake_at(min(self._main_s, self._backfill_s), now_s)

    # passes -----------------------------------------------------------------------------------------------------

    def _recalculate(self) -> None:
        """Sort the queue by the priorities at the last calculation."""
        self._sorted_s = time_s = self.fairshare.calculated_s
        rows = list(self.queue)
        submit_s = np.array([job.submit_s for job in rows])
        fairshare = np.array([self.fairshare.factor(job.plan.charged) for job in rows])
        fixed = np.array([job.plan.fixed for job in rows])
        priorities = self.multifactor.priority(submit_s, fairshare, fixed, time_s)
        for job, priority in zip(rows, priorities.astype(np.int64).tolist(), strict=True):
            job.plan.priority = priority
        tiers = np.array([job.plan.partition.tier for job in rows])
        numbers = np.array([job.number for job in rows])
        self.queue = self.cluster.queue = Queue(Fcfs())
        # in order, so that each is put behind all others
        for index in np.lexsort((numbers, submit_s, -priorities, -tiers)).tolist():
            self.queue.add(rows[index], rows[index].plan.key)

    def _main(self, rows: Iterable[ManagedJob]) -> bool:
        """Start jobs in order; one that does not fit blocks its partition, and the hosts of it for all others.

        Return whether hosts are left for other jobs.
        """
        free, blocked, starts = self.cluster.free, set(), []
        for job in rows:
            partition: Partition = job.plan.partition
            if partition.name in blocked:
                continue
            room = free & partition.mask
            if job.hosts <= room.bit_count():
                mask = hostset.lowest(room, job.hosts)
                starts.append(Start(job, mask))
                free &= ~mask
            else:
                blocked.add(partition.name)
                free &= ~partition.mask
            if not free:
                break
        self._carry_out(starts)
        return bool(free)

    def _backfill(self) -> bool:
        """Plan jobs in order, each at the first time it fits; start those that fit now; return whether any do."""
        settings, cluster = self.settings, self.cluster
        rows = self.queue.rows[: settings.bf_max_job_test]
        if not rows or not cluster.free:
            return False
        away = ~self.transitions.away
        running = [(job.start_s + job.assumed_s, job.mask & away) for job in cluster.running.values()]
        plan = BackfillPlan(cluster.now_s, settings.bf_resolution_s, settings.bf_window_s, cluster.free, running)
        tested: Counter[str] = Counter()
        starts, last, look = [], len(rows), 0
        for index, job in enumerate(rows):
            if index == look:
                # more reservations never make room: the pass ends with the last job that fits now
                while last > index and not plan.fits_now(*_needs(rows[last - 1])):
                    last -= 1
                look = 2 * index + 1
            if index >= last:
                break
            user = job.plan.user
            tested[user] += 1
            if 0 < settings.bf_max_job_user < tested[user]:
                continue
            place = plan.place(*_needs(job))
            if place is not None and place[0] == plan.first:
                starts.append(Start(job, place[1]))
        self._carry_out(starts)
        return bool(starts)

    def _carry_out(self, starts: list[Start]) -> None:
        """Start jobs, and charge them from now on."""
        self.cluster.carry_out(starts, self.lifecycle)
        for start in starts:
            self.fairshare.charge(start.job.plan.charged, start.job.hosts, self.cluster.now_s)

    def _reject_stuck(self) -> None:
        """Reject the jobs that are wider than the hosts of their partition that are left for good."""
        out = self.transitions.out
        if not out or self.hosts_may_return:
            return
        for job in list(self.queue):
            if job.hosts > (job.plan.partition.mask & ~out).bit_count():
                self._changed = True
                self.queue.remove(job)
                del self.lifecycle.states[job.job.id]
                self.lifecycle.live -= 1
                self.lifecycle.reject([job.job], outage(out))


def _needs(job: ManagedJob) -> tuple[int, int, float]:
    """Return the hosts on which a job may run, the number that it needs, and its time limit in s."""
    return job.plan.partition.mask, job.hosts, job.assumed_s


def _at_or_after(time_s: float, period_s: float) -> float:
    """Return the first multiple of a period from a time on, in s."""
    return math.ceil((time_s - REPORTED_S) / period_s) * period_s


def _whole_numbers(option: str, values: Mapping[str, Any] | None) -> dict[str, int]:
    """Return the numbers of an option by name. Raises InputError."""
    for name, value in (values or {}).items():
        if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value <= MOST_SHARES:
            problem = f"{name!r} must be a whole number from 0 to {MOST_SHARES}, got {shown_json(value)}"
            raise InputError(f"option {option!r}", problem, 'write for instance {"high": 10, "normal": 0}')
    return dict(values or {})
