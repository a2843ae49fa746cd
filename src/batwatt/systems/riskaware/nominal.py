"""Running a strategy of the riskaware paper without an engine: its planner, driven over submissions, steps and ends.

The record is that of the embedded engine, which `nominal_kernel` follows rule by rule for what this scheduler asks of
it: delays on machines that are all alike. What else a run may have is refused.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from operator import itemgetter
from typing import NamedTuple

import numpy as np

from batwatt.engine.config import EngineConfig
from batwatt.engine.machines import Machines
from batwatt.errors import DeadlockError, InputError
from batwatt.inputs.series.capacity import checked_capacity
from batwatt.model.platform import Platform
from batwatt.model.record import Record
from batwatt.model.workload import LENGTH, RELEASE, WINDOW_OVER, Delay, Workload
from batwatt.scheduling.hosts import Hosts
from batwatt.scheduling.job_lengths import JobLengths
from batwatt.scheduling.victims import Resubmit
from batwatt.systems.riskaware import nominal_tables_kernel as at
from batwatt.systems.riskaware.nominal_kernel import go
from batwatt.systems.riskaware.nominal_record import record_of
from batwatt.systems.riskaware.nominal_seam import NextRuns, Seam
from batwatt.systems.riskaware.scheduler import DROPPED, LOST, NO_MACHINE, MachineScheduler
from batwatt.systems.riskaware.strategy import MachineJob, hand_over
from batwatt.systems.riskaware.targets import Targets, no_tables
from batwatt.units import LAG_S

HINT = "use --engine embedded"
LATEST_S = 9e9
"""Times in s before this one have microseconds that are whole numbers in a float."""


def simulate_nominal(
    platform: Platform,
    workload: Workload,
    scheduler: MachineScheduler,
    config: EngineConfig,
    progress: Callable[[float, int], None] | None = None,
) -> Record:
    """Run the scheduler's strategy on a workload; returns what the embedded engine would write down.

    Raises InputError for what only an engine can run, DeadlockError as the engine does.
    """
    run = NominalRun(platform, workload, scheduler, config)
    run.go(progress)
    return run.record()


class _Jobs(NamedTuple):
    """What the planner knows of the jobs, in its order; times in s. `job`: their places in the workload."""

    job: list[int]
    submit_s: list[float]
    release_s: list[float]
    length_s: list[float]
    run_s: list[float]


class NominalRun:
    """One run: the tables of the kernel, and the planner that it asks."""

    def __init__(self, platform: Platform, workload: Workload, scheduler: MachineScheduler, config: EngineConfig):
        _check(platform, workload, config)
        self.scheduler, self.workload = scheduler, workload
        self.hosts = Hosts([{"name": host.name, "properties": host.properties} for host in platform.hosts],
                           scheduler.settings.switch)  # fmt: skip
        checked_capacity(scheduler.capacity, len(self.hosts), scheduler.capacity.source)
        scheduler.check_platform([host.name for host in platform.hosts])
        self.energy = bool(config.energy if config.energy is not None else platform.has_power)
        if self.hosts.pstates is not None and not self.energy:
            problem = "machines can only be switched with energy accounting"
            raise InputError("option 'switch'", problem, "leave --no-energy out, or set it to false")
        scheduler.planner = scheduler.planner_for(len(self.hosts), self.hosts.cores)
        self.seam = Seam(workload)
        scheduler.bs = self.seam
        lengths = JobLengths(self.seam)
        self.jobs = self._described(lengths)
        self._plans: list[MachineJob] = []
        columns = self.jobs.job, self.jobs.run_s, self.jobs.length_s
        early = {job: length_s for job, run_s, length_s in zip(*columns, strict=True) if run_s < length_s}
        self.next_runs = NextRuns(scheduler, self.seam, lengths, workload, self.jobs.job, early)
        planner = scheduler.planner
        ready = type(planner) is Targets and type(scheduler.victim) is Resubmit
        if ready:
            assert isinstance(planner, Targets)
            cores = [workload.jobs[place].hosts for place in self.jobs.job]
            planner.prepare(int(scheduler.capacity.values[0]), *self.jobs[2:], cores)
        self.plan = planner.prepared(0)[0] if isinstance(planner, Targets) else no_tables()
        self.tables = _tables(self, platform, ready)

    def _described(self, lengths: JobLengths) -> _Jobs:
        cores, skipped = self.hosts.cores, len(self.workload.name) + 1
        lasts_s = {name: profile.duration_s for name, profile in self.workload.profiles.items()
                   if isinstance(profile, Delay)}  # fmt: skip
        names, rows = [], []
        for place, job in enumerate(self.workload.jobs):
            raw, submit_s, wall_s = job.raw, job.submit_time_s, job.walltime_s
            # the scheduler plans with what Batsim reports, in microseconds
            if raw["subtime"] != submit_s or (wall_s is not None and raw["walltime"] != wall_s):
                raise InputError(f"job {job.id}", "has times finer than a microsecond", HINT)
            if "#" in job.id:
                self.scheduler.lifecycle.check_id(self.seam.job_of(job))
            if job.hosts > cores:
                continue
            run_s = length_s = lasts_s[job.profile]
            release_s = submit_s
            if RELEASE in raw or LENGTH in raw:
                release_s, length_s, run_s = lengths.described(self.seam.job_of(job))
            names.append(job.id[skipped:])
            rows.append((place, submit_s, release_s, length_s, run_s))
        ties = self.scheduler.planner.ties(names)
        rows = [rows[row] for row in sorted(range(len(rows)), key=ties.__getitem__)]
        # what is equal stays in its order
        rows.sort(key=itemgetter(2))
        rows.sort(key=itemgetter(1))
        return _Jobs(*map(list, zip(*rows, strict=True))) if rows else _Jobs([], [], [], [], [])

    # the planner ------------------------------------------------------------------------------------------------

    def go(self, progress: Callable[[float, int], None] | None) -> None:
        """To the end, or to a deadlock."""
        while (code := go(self.tables, self.plan)) != at.OVER:
            if progress is not None:
                progress(float(self.tables.reals[at.NOW]), int(self.tables.counts[at.JOB_ROWS]))
            if code == at.CONSULT:
                self._consult()
            elif code == at.ORDER:
                self._order()
            elif code == at.GROW:
                self._grow()
            elif code == at.GROW_PLAN:
                self._grow_plan()
            else:
                raise self._deadlock()

    def _consult(self) -> None:
        tables, planner = self.tables, self.scheduler.planner
        counts = tables.counts
        now_s = self.seam.now_s = float(tables.reals[at.NOW])
        ended = [(number, now_s) for number in tables.ended[0, : counts[at.ENDED]].tolist()]
        decisions, dropped, changed = hand_over(planner, ended, self._upcoming(now_s))
        if changed:
            alive = list(planner.machines_alive())
            tables.machines[at.M_ALIVE] = 0
            tables.machines[at.M_ALIVE, alive] = 1
            counts[at.STEPPED], counts[at.ALIVE] = 1, len(alive)
        if decisions:
            self.next_runs.decide(decisions, tables)
            dropped = [number for number in decisions if number < 0 and self._is_lost(-1 - number)] + dropped
            if len(decisions) > len(tables.decisions):
                self.tables = tables = tables._replace(decisions=np.zeros(2 * len(decisions), np.int64))
            tables.decisions[: len(decisions)] = decisions
            for number in decisions:
                if number >= 0:
                    tables.jobs[at.J_PLACE, self.jobs.job[number]] = planner.machine_of(number)
            self._reserve_nodes(len(decisions))
        tables.dropped[: len(dropped)] = dropped
        counts[at.DECISIONS], counts[at.DROPPED] = len(decisions), len(dropped)

    def _is_lost(self, number: int) -> bool:
        """Whether a job that is killed has not begun, and will not run again."""
        return self._plans[number].lost and not self.tables.jobs[at.J_HAS, self.jobs.job[number]]

    def _upcoming(self, now_s: float) -> Iterator[tuple[float, int | None, Sequence[MachineJob]]]:
        scheduler, jobs, counts = self.scheduler, self.jobs, self.tables.counts
        number = int(counts[at.KNOWN])
        end = number + int(counts[at.ARRIVED])
        while True:
            step_s, submit_s = scheduler.step_s, jobs.submit_s[number] if number < end else math.inf
            time_s = min(step_s, submit_s)
            if not time_s <= now_s + LAG_S:
                break
            alive = scheduler.step() if step_s == time_s else None
            batch = []
            while number < end and jobs.submit_s[number] == time_s:
                cores = self.workload.jobs[jobs.job[number]].hosts
                batch.append(
                    MachineJob(number, jobs.release_s[number], jobs.length_s[number], jobs.run_s[number], cores)
                )
                number += 1
            self._plans += batch
            yield time_s, alive, batch
        counts[at.STEP] = scheduler.next_step

    def _order(self) -> None:
        """The jobs that the scheduler tracks, in the order in which it came to know them."""
        tables = self.tables
        sequence = tables.jobs[at.J_SEQUENCE]
        tracked = np.flatnonzero(sequence)
        tracked = tracked[np.argsort(sequence[tracked])]
        self.tables = tables._replace(decisions=np.concatenate([tracked, np.zeros(1, np.int64)]))
        tables.counts[at.ORDERED] = len(tracked)

    def _grow(self) -> None:
        """Twice the room for runs, rows and requests."""
        longer = {}
        for name, axis in at.GROWING.items():
            old = getattr(self.tables, name)
            longer[name] = np.concatenate([old, np.zeros_like(old)], axis=axis)
        self.tables = self.tables._replace(**longer)

    def _grow_plan(self) -> None:
        """Room for what a message can bring in a planner that is compiled, twice as much as is needed."""
        counts, planner = self.tables.counts, self.scheduler.planner
        assert isinstance(planner, Targets)
        end = int(counts[at.KNOWN] + counts[at.ARRIVED])
        self.plan, live = planner.prepared(end)
        self.tables.settings[at.MOST_LIVE] = live
        steps = np.count_nonzero(self.tables.steps_s[counts[at.STEP] :] <= self.tables.reals[at.NOW] + LAG_S)
        self.tables = self.tables._replace(decisions=np.zeros((steps + 1) * 3 * live + 3, np.int64))
        self._reserve_nodes(live)

    def _reserve_nodes(self, wanted: int) -> None:
        """Room for so many more jobs in the queues of machines."""
        nodes, counts = self.tables.nodes, self.tables.counts
        size = nodes.shape[1]
        if counts[at.QUEUED] + wanted >= size:
            more = _chain(size, size + wanted, int(counts[at.FREE_NODE]))
            self.tables = self.tables._replace(nodes=np.concatenate([nodes, more], axis=1))
            counts[at.FREE_NODE] = size

    def _deadlock(self) -> DeadlockError:
        counts = self.tables.counts
        left = int(counts[at.UNFINISHED])
        what = f"{left} submitted jobs were neither started nor rejected" if left else "registration was not finished"
        return DeadlockError(f"nothing can happen any more at {self.tables.reals[at.CLOCK]:g} s, but {what}")

    # afterwards -------------------------------------------------------------------------------------------------

    def record(self) -> Record:
        """What was written down; the scheduler warns of what it has to."""
        tables, scheduler, jobs = self.tables, self.scheduler, self.workload.jobs
        ended = tables.runs[:, tables.rows[at.JOB_RUN, : tables.counts[at.JOB_ROWS]]]
        reasons = {
            at.WIDE: f"wider than a machine of {self.hosts.cores} cores",
            at.NOWHERE: NO_MACHINE,
            at.LOST: LOST,
        }
        for state, why in reasons.items():
            found = ended[at.R_JOB, ended[at.R_STATE] == state].tolist()
            scheduler.lifecycle.note_unrunnable([jobs[job].id for job in found], why)
        if tables.settings[at.COMPILED]:
            scheduler.planner.take_over(int(tables.counts[at.KNOWN]))  # type: ignore[attr-defined]
        scheduler.dropped = int(tables.counts[at.ALL_DROPPED])
        scheduler.onSimulationEnds()
        first = {"energy": self.energy, "metadata": bool(self.seam.metadata)}
        reasons |= {at.GIVEN_UP: WINDOW_OVER, at.REJECTED: DROPPED}
        return record_of(tables, self.workload, self.hosts, self.next_runs.named, reasons, **first)


def _check(platform: Platform, workload: Workload, config: EngineConfig) -> None:
    """InputError for what only an engine can run."""
    problem, first = "", platform.hosts[0]
    if config.compute_sharing or config.acknowledge_dynamic_jobs:
        problem = "knows neither --enable-compute-sharing nor --acknowledge-dynamic-jobs"
    elif any((host.pstates, host.cores, host.sleeps) != first.kind for host in platform.hosts):
        problem = f"needs hosts that are all alike, {platform.source} has {len(set(platform.kinds))} kinds"
    elif first.initial_pstate != 0 or first.compute[:1] != (0,):
        problem = f"needs hosts that begin in p-state 0 and compute there, those of {platform.source} do not"
    if not problem:
        for name, profile in workload.profiles.items():
            if type(profile) is not Delay or profile.return_code != 0 or not profile.duration_s >= 1e-6:
                problem = f"runs delays of at least a microsecond only, profile {name!r} of {workload.source} is none"
                break
    last_s = workload.last_submission_s
    if not problem and not last_s < LATEST_S:
        problem = f"knows times before {LATEST_S:g} s, a job is submitted at {last_s:g} s"
    if problem:
        raise InputError("--engine nominal", problem, HINT)
    if config.energy and not platform.has_power:
        raise InputError(platform.source, platform.power_problem, "correct it or run without energy")


def _chain(begin: int, end: int, last: int) -> np.ndarray:
    """Free nodes, each before the next."""
    return np.array([[0] * (end - begin), [*range(begin + 1, end), last]], np.int64)


def _tables(run: NominalRun, platform: Platform, ready: bool) -> at.Nominal:
    scheduler, workload, jobs = run.scheduler, run.workload, run.jobs
    machines, cores, count = len(run.hosts), run.hosts.cores, len(workload.jobs)
    hosts = machines * cores
    words = -(-cores // at.WORD)
    rows, runs = 3 * count + 8 * hosts + 8 * machines, count + count // 2 + 2 * hosts
    host = platform.hosts[0]
    columns = np.zeros((at.J_FIELDS, count), np.int64)
    columns[at.J_CORES] = [job.hosts for job in workload.jobs]
    columns[at.J_RUN] = np.arange(count)
    columns[at.J_NUMBER, jobs.job] = np.arange(len(jobs.job))
    made = np.zeros((at.R_FIELDS, runs), np.int64)
    made[at.R_JOB, :count] = np.arange(count)
    times = np.zeros((at.T_FIELDS, runs))
    submit_s = np.array([job.submit_time_s for job in workload.jobs])
    times[at.T_SUBMIT, :count] = submit_s
    again_s, first_s = np.zeros(count), np.zeros(count)
    again_s[jobs.job], first_s[jobs.job] = jobs.length_s, jobs.run_s
    times[at.T_LENGTH, :count] = first_s
    each = np.zeros((at.M_FIELDS, machines), np.int64)
    each[at.M_FREE] = cores
    each[[at.M_READY, at.M_ON, at.M_ALIVE]] = 1
    each[[at.M_HEAD, at.M_TAIL]] = -1
    free = np.zeros((machines, words), np.int64)
    for word in range(words):
        free[:, word] = (1 << min(at.WORD, cores - word * at.WORD)) - 1
    modes = np.zeros((3, max(4, len(host.pstates))), np.int64)
    modes[0, 0] = hosts
    mode_w = np.zeros((2, len(host.pstates)))
    one = Machines(replace(platform, hosts=(replace(host, id=0),)))
    for index in range(len(host.pstates)):
        one.set_pstate(1, index)
        mode_w[:, index] = one.base_w, one.epsilon_w
    switched = run.hosts.pstates
    reals = np.zeros(at.REALS)
    if switched is not None:
        sleep = host.sleep_of[switched[1]]
        modes[2, :4] = *switched, sleep.switch_off, sleep.switch_on
        reals[at.OFF_S] = host.pstates[sleep.switch_off].duration_s
        reals[at.ON_S] = host.pstates[sleep.switch_on].duration_s
    until_s = scheduler.settings.until_s
    reals[[at.UNTIL, at.FIRST_J, at.LAST_END_J]] = math.inf if until_s is None else until_s, -1.0, -1.0
    reals[at.BASE_W], reals[at.EPSILON_W] = hosts * mode_w[0, 0], hosts * mode_w[1, 0]
    counts = np.zeros(at.COUNTS, np.int64)
    counts[[at.MORE_JOBS, at.MODES, at.SETTLED]] = 1
    counts[at.ASKED], counts[at.RUNS_MADE], counts[at.ALIVE] = -1, count, machines
    heap = 4 * hosts + 16 * machines + 64
    pending = count + 4 * hosts + 8 * machines + 16
    tables = at.Nominal(
        jobs=columns,
        submit_s=submit_s,
        again_s=again_s,
        walltime_s=np.array([math.inf if job.walltime_s is None else job.walltime_s for job in workload.jobs]),
        by_number=np.array([*jobs.job, 0], np.int64),
        runs=made,
        times=times,
        bits=np.zeros((runs, words), np.int64),
        machines=each,
        free=free,
        touched_s=np.zeros((machines, cores)),
        steps_s=np.array([time_s for time_s, _ in scheduler.steps] + [math.inf]),
        alive=np.array([int(alive) for _, alive in scheduler.steps], np.int64),
        nodes=_chain(0, hosts + 64, -1),
        heap_s=np.zeros(heap),
        heap=np.zeros((2, heap), np.int64),
        pending=np.zeros((2, pending), np.int64),
        ended=np.zeros((2, pending), np.int64),
        decisions=np.zeros(64, np.int64),
        dropped=np.zeros(count + 1, np.int64),
        rows_s=np.zeros((at.S_FIELDS, rows)),
        rows=np.zeros((at.ROW_FIELDS, rows), np.int64),
        requests=np.zeros((2 * len(scheduler.steps) + 16, machines + 1), np.int64),
        modes=modes,
        mode_w=mode_w,
        seen=np.array([0, 0, 0, hosts, 0], np.int64),
        counts=counts,
        reals=reals,
        settings=np.array([machines, cores, run.energy, switched is not None, ready, 0], np.int64),
    )
    # what the engine plans before it begins: the first submission, and the submissions
    first = [what for what in (at.FIRST_SUBMISSION, at.SUBMISSIONS) if count or what == at.SUBMISSIONS]
    for serial, what in enumerate(first, start=1):
        tables.heap_s[serial - 1] = float(submit_s[0]) if count else 0.0
        tables.heap[:, serial - 1] = at.ARRIVAL << at.RANK_BITS | serial, what
    counts[at.SERIAL] = counts[at.EVENTS] = len(first)
    return tables
