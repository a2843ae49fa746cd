"""The problem to be planned, as numbers: kinds of servers, modes of jobs, steps and caps.

The rules: docs/explanation/optimum.md, "The model".
"""

from __future__ import annotations

import itertools
import math
from bisect import bisect_right
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property

from batwatt.errors import InputError, UnsupportedError
from batwatt.model.platform import NOISE_W, Host, Platform
from batwatt.model.timeline import Timeline
from batwatt.model.workload import Composed, Delay, JobSpec, Parallel, Workload

TICKS_PER_S = 1000
"""Times and durations are whole milliseconds."""
NOISE_TICKS = 1e-4
"""A duration over a whole number of ticks by less than this is that number: 189.00000000000003 s are 189 s."""
MAX_STEPS = 100_000
"""Most steps that are planned; the model for the solver has as many, and a cap for each."""


def ticks_up(duration_s: float) -> int:
    """Return a time or duration in s as ticks, rounded up."""
    return math.ceil(duration_s * TICKS_PER_S - NOISE_TICKS)


@dataclass(frozen=True)
class Kind:
    """Servers that behave alike: ids, computation states (fastest first), sleep and its transitions.

    `idle` is the state of the least power. Without a sleep state `sleep` is None and the rest of sleeping is 0.
    `off_w` is the power of Eq. 2 of a server that falls asleep, `on_w` that of the transition of a waking one.
    """

    hosts: tuple[int, ...]
    pstates: tuple[int, ...]
    speeds_flops: tuple[float, ...]
    powers_w: tuple[float, ...]
    sleep: int | None
    sleep_w: float = 0.0
    off_w: float = 0.0
    on_w: float = 0.0
    off_ticks: int = 0
    on_ticks: int = 0

    @property
    def count(self) -> int:
        """Number of servers."""
        return len(self.hosts)

    @cached_property
    def idle(self) -> int:
        """The computation state of the least power."""
        return min(range(len(self.powers_w)), key=lambda d: (self.powers_w[d], d))

    @property
    def rest_w(self) -> float:
        """Least power of a server that does nothing for a whole step."""
        return self.powers_w[self.idle] if self.sleep is None else min(self.sleep_w, self.powers_w[self.idle])

    def wake_w(self, state: int) -> float:
        """Return the power in W of Eq. 2 of a server that wakes to a state."""
        return max(self.on_w, self.powers_w[state])


@dataclass(frozen=True)
class ServerMode:
    """A way to run a job: servers of each kind, their state (-1 where none), run time `run_s` (Et_j) and in ticks."""

    counts: tuple[int, ...]
    states: tuple[int, ...]
    run_s: float
    ticks: int

    @cached_property
    def parts(self) -> tuple[tuple[int, int, int], ...]:
        """(kind, state, servers) of the kinds in use."""
        return tuple((k, self.states[k], n) for k, n in enumerate(self.counts) if n)


@dataclass(frozen=True)
class OptimumJob:
    """A job with its modes."""

    id: str
    submit_s: float
    submit: int
    hosts: int
    modes: tuple[ServerMode, ...]

    def slowdown(self, mode: int, start: int) -> float:
        """Return (wait + Et) / Et of Eq. 6."""
        wait_s = max(0.0, start / TICKS_PER_S - self.submit_s)
        return 1.0 + wait_s / self.modes[mode].run_s


@dataclass(frozen=True)
class Problem:
    """All that determines the optimum. `begins` are the steps' first ticks and the end of the last one.

    `caps_w` are the caps, where needed raised to what the machine draws if all servers sleep from 0 s on; `raised`
    counts those steps. Steps go on after the envelope until every job could have run one after another.
    """

    kinds: tuple[Kind, ...]
    tasks: tuple[OptimumJob, ...]
    begins: tuple[int, ...]
    caps_w: tuple[float, ...]
    envelope_steps: int
    raised: int

    @property
    def steps(self) -> int:
        """Number of steps."""
        return len(self.caps_w)

    def step_of(self, tick: int) -> int:
        """Return the step that a time lies in."""
        return bisect_right(self.begins, tick) - 1

    @cached_property
    def short_transitions(self) -> bool:
        """True if every transition ends within the step in which it begins."""
        shortest = min(b - a for a, b in itertools.pairwise(self.begins))
        return all(max(kind.off_ticks, kind.on_ticks) <= shortest for kind in self.kinds)

    def above_w(self, mode: ServerMode) -> float:
        """Return the power in W of a run in a mode above that of its servers at rest."""
        return sum(n * (self.kinds[k].powers_w[d] - self.kinds[k].rest_w) for k, d, n in mode.parts)

    def mean_slowdown(self, starts: Mapping[int, tuple[int, int]]) -> float:
        """Return the mean of Eq. 6 over tasks -> (start, mode)."""
        return math.fsum(self.tasks[j].slowdown(mode, start) for j, (start, mode) in starts.items()) / len(self.tasks)


def make_problem(platform: Platform, workload: Workload, envelope: Timeline) -> Problem:
    """Return the problem of a platform, a workload and an envelope in W; InputError names a job that can never run."""
    if not platform.has_power:
        problem = f"planning needs the watts of every host; {platform.power_problem}"
        raise InputError(platform.source, problem, "correct it")
    if not workload.jobs:
        raise InputError(workload.source, "has no jobs", "there is nothing to plan")
    kinds = tuple(_kinds(platform))
    tasks = tuple(
        OptimumJob(job.id, job.submit_time_s, ticks_up(job.submit_time_s), job.hosts, _modes(kinds, workload, job))
        for job in workload.jobs
    )
    begins, values = _steps(envelope, tasks, kinds)
    floor_w = _floor(kinds, begins)
    caps = tuple(max(cap, low) for cap, low in zip(values, floor_w, strict=True))
    raised = sum(cap < low - NOISE_W for cap, low in zip(values, floor_w, strict=True))
    last = ticks_up(envelope.times_s[-1])
    return Problem(kinds, tasks, begins, caps, min(bisect_right(begins, last), len(caps)), raised)


def _kinds(platform: Platform) -> Iterator[Kind]:
    members: dict[int, list[Host]] = {}
    for host, kind in zip(platform.hosts, platform.kinds, strict=True):
        members.setdefault(kind, []).append(host)
    for hosts in members.values():
        host = hosts[0]
        for each in hosts:
            if each.initial_pstate not in host.compute:
                problem = f"host {each.name!r} does not begin in a computation p-state"
                raise UnsupportedError(platform.source, problem, "let all hosts begin awake")
        states = [host.pstates[d] for d in host.compute]
        speeds = tuple(state.speed_flops for state in states)
        powers = tuple(state.full_w for state in states)
        ids = tuple(each.id for each in hosts)
        if not host.sleeps:
            yield Kind(ids, host.compute, speeds, powers, None)
            continue
        sleep = host.sleeps[0]
        off, on = host.pstates[sleep.switch_off], host.pstates[sleep.switch_on]
        yield Kind(
            ids, host.compute, speeds, powers, sleep.sleep, host.pstates[sleep.sleep].full_w, host.falling_w(sleep),
            on.full_w, ticks_up(off.duration_s), ticks_up(on.duration_s),
        )  # fmt: skip


def _modes(kinds: tuple[Kind, ...], workload: Workload, job: JobSpec) -> tuple[ServerMode, ...]:
    """Return every mode within the walltime, fastest first; InputError if there is none."""
    where = f"{workload.source}: job {job.id}"
    total = sum(kind.count for kind in kinds)
    if job.hosts > total:
        raise InputError(where, f"asks for {job.hosts} hosts but the platform has {total}", "it can never run")
    flops, fixed_s, even = _work(workload, job.profile, job, where)
    modes: dict[tuple[tuple[int, ...], tuple[int, ...]], ServerMode] = {}
    shortest_s = math.inf
    for counts in _splits(job.hosts, [kind.count for kind in kinds]):
        used = [k for k, n in enumerate(counts) if n]
        if not even and len(used) > 1:
            continue  # which executor gets the slow server would matter
        for speed in sorted({speed for k in used for speed in kinds[k].speeds_flops}, reverse=True):
            states = tuple(_slowest(kinds[k], speed) if counts[k] else -1 for k in range(len(kinds)))
            if any(states[k] is None for k in used):
                continue
            by_kind = tuple(-1 if state is None else state for state in states)
            real = min(kinds[k].speeds_flops[by_kind[k]] for k in used)
            run_s = fixed_s + flops / real
            shortest_s = min(shortest_s, run_s)
            # Eq. 4; a delay as long as its walltime times out
            limit_s = math.inf if job.walltime_s is None else job.walltime_s
            if run_s > limit_s or (fixed_s > 0.0 and run_s >= limit_s):
                continue
            modes[counts, by_kind] = ServerMode(counts, by_kind, run_s, ticks_up(run_s))
    if not modes:
        limit = f"{job.walltime_s:g} s" if job.walltime_s is not None else "none"
        problem = f"needs {shortest_s:g} s at the fastest speed but its walltime is {limit}"
        raise InputError(where, problem, "it can never run")
    return tuple(sorted(modes.values(), key=lambda mode: (mode.ticks, mode.counts, mode.states)))


def _work(workload: Workload, name: str, job: JobSpec, where: str) -> tuple[float, float, bool]:
    """Return the flops of a job on each server, the s that depend on no speed, and whether all servers do the same."""
    profile = workload.profiles[name]
    if profile.return_code != 0:
        raise UnsupportedError(where, f"its profile returns {profile.return_code}", "the optimum kills no job")
    if isinstance(profile, Delay):
        return 0.0, profile.duration_s, True
    if isinstance(profile, Composed):
        parts = [_work(workload, part, job, where) for part in profile.sequence]
        flops, fixed_s, even = zip(*parts, strict=True)
        return profile.repeat * math.fsum(flops), profile.repeat * math.fsum(fixed_s), all(even)
    assert isinstance(profile, Parallel)
    each = profile.each_flops(job.hosts)
    if each is not None:
        return each, 0.0, True
    assert profile.flops is not None
    return max(profile.flops), 0.0, len(set(profile.flops)) == 1


def _splits(width: int, counts: list[int]) -> Iterator[tuple[int, ...]]:
    """Yield the ways to take `width` servers of kinds with these counts."""
    for head in itertools.product(*(range(min(width, count) + 1) for count in counts[:-1])):
        rest = width - sum(head)
        if 0 <= rest <= counts[-1]:
            yield (*head, rest)


def _slowest(kind: Kind, speed_flops: float) -> int | None:
    """Return the slowest state not slower than a speed; None if the kind is slower."""
    enough = [d for d, speed in enumerate(kind.speeds_flops) if speed >= speed_flops]
    return min(enough, key=lambda d: (kind.speeds_flops[d], kind.powers_w[d])) if enough else None


def _steps(
    envelope: Timeline, tasks: tuple[OptimumJob, ...], kinds: tuple[Kind, ...]
) -> tuple[tuple[int, ...], tuple[float, ...]]:
    """Return the first ticks of the steps, with the end of the last, and their values.

    Far enough: from the last row and submission on the cap is constant, so in a best schedule no more than a few steps
    pass there in which no job runs (all the same steps between could be cut out).
    """
    constant = max(ticks_up(envelope.times_s[-1]), *(task.submit for task in tasks))
    step = ticks_up(envelope.last_step_s)
    switching = max(kind.off_ticks + kind.on_ticks for kind in kinds)
    end = constant + sum(task.modes[-1].ticks + switching + 3 * step for task in tasks) + step
    if not (end - constant) / step + len(envelope.times_s) <= MAX_STEPS:
        problem = f"{(end - constant) / TICKS_PER_S:g} s in steps of {step / TICKS_PER_S:g} s are more than {MAX_STEPS}"
        raise InputError(envelope.source, problem, "give longer steps, or shorter jobs")
    begins, values = [0], []
    at_s = 0.0
    while begins[-1] < end:
        values.append(envelope.at(at_s))
        at_s = envelope.step_after(at_s)
        tick = round(at_s * TICKS_PER_S)
        if abs(tick - at_s * TICKS_PER_S) > NOISE_TICKS or tick <= begins[-1]:
            raise InputError(envelope.source, f"{at_s!r} s is not a whole number of ms", "round the times of the rows")
        begins.append(tick)
    return tuple(begins), tuple(values)


def _floor(kinds: tuple[Kind, ...], begins: tuple[int, ...]) -> list[float]:
    """Return the power in W in each step if every server is put to sleep at 0 s (one that cannot sleep idles)."""
    floor = []
    for begin in begins[:-1]:
        power = 0.0
        for kind in kinds:
            if kind.sleep is None:
                power += kind.count * kind.powers_w[kind.idle]
            else:
                power += kind.count * (kind.off_w if begin < kind.off_ticks else kind.sleep_w)
        floor.append(power)
    return floor
