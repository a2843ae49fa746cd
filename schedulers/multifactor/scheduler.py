"""Slurm's multifactor priority and backfill as a Batsim scheduler (docs/explanation/slurm-scheduler.md)."""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any, ClassVar, Final, final

import numpy as np

from batwatt.checks import shown_json
from batwatt.errors import InputError
from batwatt.inputs.servers import expand
from batwatt.model import hostset
from batwatt.model.platform import machine_of
from batwatt.schedulers.multifactor.priority import (
    Fairshare,
    MultifactorOptions,
    MultifactorState,
    Partition,
    Priority,
    partitions_of,
    read_partitions,
    whole_minutes,
)
from batwatt.scheduling.base import OptionValues, Scheduler
from batwatt.scheduling.cluster import Cluster, outage
from batwatt.scheduling.job import BatsimJob, Job, JobLengths, request_s, text_in
from batwatt.scheduling.orders import FirstCome
from batwatt.scheduling.queue import Queue
from batwatt.units import LAG_S, REPORTED_S


@final
class BackfillPlan:
    """Slots of time, numbered from 0 s on, and the hosts that are free in each; the last one never ends.

    `free`: hosts that are free now; `running`: (latest end in s, hosts) of runs, in a row of slots up to the first one
    after their end; a run past its end holds its hosts for one more slot. No start is planned after the window.
    """

    def __init__(
        self, now_s: float, resolution_s: float, window_s: float, free: int, running: Iterable[tuple[float, int]]
    ) -> None:
        self._now_s, self._resolution_s = now_s, resolution_s
        self.first = math.floor((now_s + REPORTED_S) / resolution_s)
        """The slot of the present."""
        self._last = math.floor((now_s + REPORTED_S + window_s) / resolution_s)
        ends: dict[int, int] = {}
        for end_s, mask in running:
            slot = max(self._up(end_s), self.first + 1) if end_s < math.inf else math.inf
            if slot <= self._last:
                ends[int(slot)] = ends.get(int(slot), 0) | mask
        self._slots = [self.first]
        self._free = [free]
        for slot in sorted(ends):
            free |= ends[slot]
            self._slots.append(slot)
            self._free.append(free)
        self._counts: dict[int, list[int]] = {}
        """Hosts -> the number of them that are free in each slot."""
        self._earliest: dict[int, list[tuple[int, float, float]]] = {}
        """Hosts -> (width, limit in s, first slot that was possible, infinite without one) of jobs placed there."""

    def _up(self, time_s: float) -> int:
        return math.ceil((time_s - REPORTED_S) / self._resolution_s)

    def fits_now(self, hosts: int, width: int, limit_s: float) -> bool:
        """Return whether `width` of some hosts are free from now on for a time limit in s."""
        end = self._up(self._now_s + limit_s)
        for slot, free in zip(self._slots, self._free, strict=True):
            if slot >= end and slot > self.first:
                break
            hosts &= free
            if hosts.bit_count() < width:
                return False
        return True

    def place(self, hosts: int, width: int, limit_s: float) -> tuple[int, int] | None:
        """Reserve `width` of some hosts for a time limit in s, as early as they are free all along.

        Return the slot of the start and the mask of the hosts, or None if there are too few in the window. A start in
        the first slot is one now.
        """
        slots, free = self._slots, self._free
        # from now on it ends within a slot, from a later one on it begins with one
        now_end, later = self._up(self._now_s + limit_s), self._up(limit_s)
        earliest = self._earliest.setdefault(hosts, [])
        # no job starts before a narrower and shorter one could
        begin: float = max([slot for w, limit, slot in earliest if w <= width and limit <= limit_s], default=self.first)
        index = bisect_left(slots, begin) if begin < math.inf else len(slots)
        counts = self._counts.setdefault(hosts, [])
        if not counts:
            counts += [(mask & hosts).bit_count() for mask in free]
        count = len(slots)
        while index < count and (slot := slots[index]) <= self._last:
            if counts[index] < width:
                index += 1
                continue
            mask = free[index] & hosts
            end = now_end if slot == self.first else slot + later
            ahead = index + 1
            while ahead < count and slots[ahead] < end:
                if counts[ahead] < width:
                    # nor does it fit if it starts before the end of that slot
                    index = ahead
                    break
                mask &= free[ahead]
                if mask.bit_count() < width:
                    break
                ahead += 1
            else:
                mask = hostset.lowest(mask, width)
                self._remember(earliest, width, limit_s, slot)
                self._reserve(mask, slot, end)
                return slot, mask
            index += 1
        self._remember(earliest, width, limit_s, math.inf)
        return None

    @staticmethod
    def _remember(earliest: list[tuple[int, float, float]], width: int, limit_s: float, slot: float) -> None:
        """Add the first slot of a job, and remove slots that are no bound any more."""
        earliest[:] = [row for row in earliest if row[0] < width or row[1] < limit_s or row[2] > slot]
        earliest.append((width, limit_s, slot))

    def _reserve(self, mask: int, begin: int, end: int) -> None:
        """Take hosts from one slot up to another one."""
        first = self._cut(begin)
        last = self._cut(max(end, begin + 1)) if end <= self._last else len(self._slots)
        for index in range(first, last):
            self._free[index] &= ~mask
        for hosts, counts in self._counts.items():
            fewer = (hosts & mask).bit_count()
            counts[first:last] = [count - fewer for count in counts[first:last]]

    def _cut(self, slot: int) -> int:
        """Return the index of the slot, after letting one begin there."""
        index = bisect_right(self._slots, slot)
        if self._slots[index - 1] == slot:
            return index - 1
        self._slots.insert(index, slot)
        for values in (self._free, *self._counts.values()):
            values.insert(index, values[index - 1])
        return index


UNLIMITED_S: Final = 31_536_000.0
"""Time limit of a job without any, in s: the year that Slurm plans with (YEAR_MINUTES of backfill.c)."""

MOST_SHARES: Final = 1_000_000_000


class Multifactor(Scheduler[MultifactorOptions]):
    """Jobs by age, size, fairshare and QOS in partitions with limits, with backfill: a cluster under Slurm as today."""

    Options: ClassVar[type[MultifactorOptions]] = MultifactorOptions

    def __init__(self, options: OptionValues = None) -> None:
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

    def without_requests(self) -> str:
        """See `Scheduler`."""
        return "they have the time limit of their partition"

    # what pybatsim calls ----------------------------------------------------------------------------------------

    def onSimulationBegins(self) -> None:
        """Make the partitions, the queue and the cluster."""
        super().onSimulationBegins()
        described = self.hosts_described
        self.partitions = partitions_of(self._named, described, expand)
        self._usual = next(iter(self.partitions.values()))
        nodes = len({machine_of(host["properties"], host["name"]) for host in described})
        self._cores = len(described) // nodes
        if self.run_times is not None:
            self.run_times.lengths = JobLengths(self.bs)
        self.multifactor = Priority(self.settings, nodes, len(described))
        self.queue = Queue(FirstCome())
        self._sorted_s = 0.0
        self.cluster = Cluster(len(described), self.queue, transitions=self.transitions)

    def onJobSubmission(self, attempt: BatsimJob) -> None:
        """Queue a job, or reject it if it is over a limit of its partition."""
        self._changed = True
        now_s, raw = self.bs.time(), attempt.json_dict or {}
        self.fairshare.advance(now_s)
        partition, qos = self._partition_of(raw), text_in(raw, "qos")
        if partition is None:
            self.lifecycle.reject([attempt], "as their partition is not one of the option partitions")
            return
        if self._qos and qos and qos not in self._qos:
            self.lifecycle.reject([attempt], "as their QOS is not one of the option qos")
            return
        self._count += 1
        job = Job(self._count, attempt)
        nodes = -(-job.hosts // self._cores)
        limit_s = request_s(attempt.requested_time, raw, attempt.id)
        limit_s = limit_s if limit_s < math.inf else partition.max_time_s
        job.assumed_s = whole_minutes(limit_s) if limit_s < math.inf else UNLIMITED_S
        over = self._limit_exceeded(job, nodes, partition)
        if over:
            self.lifecycle.reject([attempt], over)
            return
        if self.run_times is not None:
            job.assumed_s = whole_minutes(self.run_times.estimate(attempt).expected_s)
        user = text_in(raw, "user")
        charged = user if self.settings.fairshare_by == "user" else text_in(raw, "account", "group")
        urgency = self._qos[qos] / (max(self._qos.values()) or 1) if qos in self._qos else 0.0
        fixed = self.multifactor.fixed(nodes, job.hosts, partition, urgency)
        job.state = standing = MultifactorState(partition, user, charged, fixed)
        self.fairshare.add(charged)
        factor = self.fairshare.factor(charged)
        standing.priority = int(self.multifactor.priority(job.submit_s, factor, fixed, now_s))
        self.lifecycle.jobs[attempt.id] = job
        self.lifecycle.live += 1
        self.queue.add(job, standing.key)

    def _partition_of(self, raw: Mapping[str, Any]) -> Partition | None:
        """Return the partition of a job with these fields; None if there is none of its name."""
        if self.settings.partitions is None:
            return self._usual
        name = text_in(raw, "partition", "queue")
        return self.partitions.get(name) if name else self._usual

    def _limit_exceeded(self, job: Job[MultifactorState], nodes: int, partition: Partition) -> str:
        """Return the limit of its partition that a job exceeds, as a text; empty for none."""
        name = partition.name
        if job.assumed_s > partition.max_time_s:
            return f"over the max_time_s of partition {name} (PartitionTimeLimit)"
        if nodes > partition.max_nodes:
            return f"over the max_nodes of partition {name} (PartitionNodeLimit)"
        if job.hosts > partition.mask.bit_count():
            return f"wider than partition {name} of {partition.mask.bit_count()} hosts"
        return ""

    def onJobCompletion(self, attempt: BatsimJob) -> None:
        """Free the hosts of a job, and end its charge."""
        self._changed = True
        now_s = self.bs.time()
        self.fairshare.advance(now_s)
        job, _ = self.lifecycle.ended(attempt)
        if self.run_times is not None:
            self.run_times.learn(job.name)
        self.fairshare.charge(job.state.charged, -job.hosts, now_s)
        self.cluster.end(job)
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
            next_s = _at_or_after(now_s + LAG_S, settings.sched_interval_s)
            self._main_s = next_s if self._main(rows) and rest else math.inf
        if self._changed:
            self._backfill_s = _at_or_after(now_s, settings.bf_interval_s)
        self._changed = False
        if self._backfill_s <= now_s + LAG_S:
            # without a start or an event only new priorities change the plan
            next_s = self.fairshare.calculated_s + settings.priority_calc_period_s
            next_s = now_s + settings.bf_interval_s if self._backfill() else next_s
            self._backfill_s = _at_or_after(next_s, settings.bf_interval_s)
        if self.queue.rows and self.cluster.free:
            self.lifecycle.wake_at(min(self._main_s, self._backfill_s), now_s)

    # passes -----------------------------------------------------------------------------------------------------

    def _recalculate(self) -> None:
        """Sort the queue by the priorities at the last calculation."""
        self._sorted_s = time_s = self.fairshare.calculated_s
        rows = list(self.queue)
        submit_s = np.array([job.submit_s for job in rows])
        fairshare = np.array([self.fairshare.factor(job.state.charged) for job in rows])
        fixed = np.array([job.state.fixed for job in rows])
        priorities = self.multifactor.priority(submit_s, fairshare, fixed, time_s)
        for job, priority in zip(rows, priorities.astype(np.int64).tolist(), strict=True):
            job.state.priority = priority
        tiers = np.array([job.state.partition.tier for job in rows])
        numbers = np.array([job.number for job in rows])
        self.queue = self.cluster.queue = Queue(FirstCome())
        # in order, so that each is put behind all others
        for index in np.lexsort((numbers, submit_s, -priorities, -tiers)).tolist():
            self.queue.add(rows[index], rows[index].state.key)

    def _main(self, rows: Iterable[Job[MultifactorState]]) -> bool:
        """Start jobs in order; one that does not fit blocks its partition, and the hosts of it for all others.

        Return whether hosts are left for other jobs.
        """
        free, blocked, starts = self.cluster.free, set(), []
        for job in rows:
            partition: Partition = job.state.partition
            if partition.name in blocked:
                continue
            room = free & partition.mask
            if job.hosts <= room.bit_count():
                mask = hostset.lowest(room, job.hosts)
                starts.append((job, mask))
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
            user = job.state.user
            tested[user] += 1
            if 0 < settings.bf_max_job_user < tested[user]:
                continue
            place = plan.place(*_needs(job))
            if place is not None and place[0] == plan.first:
                starts.append((job, place[1]))
        self._carry_out(starts)
        return bool(starts)

    def _carry_out(self, starts: list[tuple[Job[MultifactorState], int]]) -> None:
        """Start jobs, and charge them from now on."""
        self.cluster.carry_out(starts, self.lifecycle)
        for job, _ in starts:
            self.fairshare.charge(job.state.charged, job.hosts, self.cluster.now_s)

    def _reject_stuck(self) -> None:
        """Reject the jobs that are wider than the hosts of their partition that are left for good."""
        out = self.transitions.out
        if not out or self.hosts_may_return:
            return
        for job in list(self.queue):
            if job.hosts > (job.state.partition.mask & ~out).bit_count():
                self._changed = True
                self.queue.remove(job)
                del self.lifecycle.jobs[job.attempt.id]
                self.lifecycle.live -= 1
                self.lifecycle.reject([job.attempt], outage(out))


def _needs(job: Job[MultifactorState]) -> tuple[int, int, float]:
    """Return the hosts on which a job may run, the number that it needs, and its time limit in s."""
    return job.state.partition.mask, job.hosts, job.assumed_s


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
