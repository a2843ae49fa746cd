"""A schedule: starts and modes of jobs with the counts of servers per step, its check, and the naming of servers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from batwatt.errors import BatwattError
from batwatt.model import hostset
from batwatt.model.platform import NOISE_W
from batwatt.systems.powercap.optimum.plan_file import PlannedJob, PlannedState, SchedulePlan
from batwatt.systems.powercap.optimum.problem import TICKS_PER_S, Kind, Problem
from batwatt.systems.powercap.optimum.timeline import PowerTimeline

Counts = tuple[tuple[int, ...], ...]
"""Per step, servers by state."""


@dataclass(frozen=True)
class KindCounts:
    """Servers of one kind per step and state: `inside` are on or waking to the state, `waking` begin to wake to it."""

    inside: Counts
    waking: Counts


@dataclass(frozen=True)
class Schedule:
    """`starts[j]` is (start in ticks, mode) of task j; `kinds[k]` the servers of kind k up to the last run's end."""

    starts: Mapping[int, tuple[int, int]]
    kinds: tuple[KindCounts, ...]


class BrokenScheduleError(BatwattError):
    """A schedule does not keep the rules of the model: an error of the planner."""


def of_timeline(timeline: PowerTimeline) -> Schedule:
    """Return the schedule that a timeline holds, until its last job ends."""
    problem, runs = timeline.problem, timeline.runs
    steps = 1 + max(problem.step_of(end - 1) for _, end, _ in runs.values())
    kinds = []
    for k in range(len(problem.kinds)):
        inside, waking = zip(*(timeline.wakers(step, k) for step in range(steps)), strict=True)
        kinds.append(KindCounts(tuple(map(tuple, inside)), tuple(map(tuple, waking))))
    return Schedule({job: (start, mode) for job, (start, _, mode) in runs.items()}, tuple(kinds))


def check(problem: Problem, schedule: Schedule) -> None:
    """Check every rule of the model, from starts, modes and counts alone; BrokenScheduleError names a broken one."""
    if sorted(schedule.starts) != list(range(len(problem.tasks))):
        raise BrokenScheduleError("not every job starts once")
    steps = len(schedule.kinds[0].inside)
    ends = {}
    for job, (start, mode) in schedule.starts.items():
        ends[job] = start + problem.tasks[job].modes[mode].ticks
        if start < problem.tasks[job].submit or ends[job] > problem.begins[steps]:
            raise BrokenScheduleError(f"{problem.tasks[job].id} starts before its submission or ends too late")
    power = [0.0] * steps
    for k, kind in enumerate(problem.kinds):
        for step, watts in enumerate(_kind_powers(problem, kind, schedule.kinds[k])):
            power[step] += watts
        for state in range(len(kind.powers_w)):
            runs = [
                (start, ends[job], problem.tasks[job].modes[mode].counts[k])
                for job, (start, mode) in schedule.starts.items()
                if problem.tasks[job].modes[mode].states[k] == state
            ]
            _check_room(problem, kind, schedule.kinds[k], state, runs)
    for step in range(steps):
        if power[step] > problem.caps_w[step] + 2 * NOISE_W:
            raise BrokenScheduleError(f"step {step}: {power[step]} W > {problem.caps_w[step]} W")


def _kind_powers(problem: Problem, kind: Kind, counts: KindCounts) -> list[float]:
    """Return Eq. 2 per step, summed over the servers of a kind."""
    begins = problem.begins
    powers = []
    on_before = kind.count
    falls: list[tuple[int, int]] = []
    wakes: list[tuple[int, int, int]] = []
    settled = 0
    for step, (inside, waking) in enumerate(zip(counts.inside, counts.waking, strict=True)):
        begin = begins[step]
        falling = on_before + sum(waking) - sum(inside)
        settled += sum(n for end, n in falls if end <= begin)
        falls = [(end, n) for end, n in falls if end > begin]
        wakes = [row for row in wakes if row[0] > begin]
        if not 0 <= falling <= on_before - sum(n for _, _, n in wakes) or sum(waking) > settled:
            raise BrokenScheduleError(f"step {step}: {falling} servers fall asleep, {sum(waking)} of {settled} wake")
        if falling and kind.sleep is None:
            raise BrokenScheduleError(f"step {step}: a server that cannot sleep falls asleep")
        settled -= sum(waking)
        if falling:
            falls.append((begin + kind.off_ticks, falling))
        wakes += [(begin + kind.on_ticks, d, n) for d, n in enumerate(waking) if n]
        power = sum(n * w for n, w in zip(inside, kind.powers_w, strict=True))
        for state in range(len(inside)):
            still = sum(n for _, d, n in wakes if d == state)
            if still > inside[state] or inside[state] < 0:
                raise BrokenScheduleError(f"step {step}: {still} servers wake to state {state} of {inside[state]}")
            power += still * (kind.wake_w(state) - kind.powers_w[state])
        power += sum(n for _, n in falls) * kind.off_w + settled * kind.sleep_w
        if sum(inside) + settled + sum(n for _, n in falls) != kind.count:
            raise BrokenScheduleError(f"step {step}: the servers do not add up to {kind.count}")
        powers.append(power)
        on_before = sum(inside)
    return powers


def _check_room(problem: Problem, kind: Kind, counts: KindCounts, state: int, runs: list[tuple[int, int, int]]) -> None:
    """Check that at any time the running jobs in a state need at most the servers in it that are awake."""
    begins = problem.begins
    times = {start for start, _, _ in runs}
    for step in range(len(counts.inside)):
        begin, end = begins[step], begins[step + 1]
        for at in sorted({begin, *(time for time in times if begin <= time < end)}):
            still = 0
            for earlier in range(step, -1, -1):
                if begins[earlier] + kind.on_ticks <= at:
                    break
                still += counts.waking[earlier][state]
            needed = sum(n for start, finish, n in runs if start <= at < finish)
            if needed > counts.inside[step][state] - still:
                raise BrokenScheduleError(f"at tick {at}: {needed} servers needed in state {state}")


def name_servers(problem: Problem, schedule: Schedule) -> SchedulePlan:
    """Assign servers to runs and states: the construction of docs/explanation/optimum.md, "Identical servers"."""
    used: dict[int, list[tuple[str, int]]] = {job: [] for job in schedule.starts}
    states: list[PlannedState] = []
    for k in range(len(problem.kinds)):
        named, changes = _name_kind(problem, schedule, k)
        states += changes
        for job, mask in named.items():
            state = problem.tasks[job].modes[schedule.starts[job][1]].states[k]
            used[job].append((hostset.to_text(mask), problem.kinds[k].pstates[state]))
    jobs = []
    for job, (start, mode) in schedule.starts.items():
        task = problem.tasks[job]
        hosts = hostset.to_text(hostset.from_text(" ".join(text for text, _ in used[job])))
        run_s = task.modes[mode].run_s
        start_s = start / TICKS_PER_S
        jobs.append(PlannedJob(id=task.id, start_s=start_s, run_s=run_s, hosts=hosts, pstates=dict(used[job])))
    jobs.sort(key=lambda row: (row.start_s, row.id))
    states.sort(key=lambda row: (row.time_s, hostset.from_text(row.hosts)))
    return SchedulePlan(jobs=tuple(jobs), states=tuple(states))


def _name_kind(problem: Problem, schedule: Schedule, k: int) -> tuple[dict[int, int], list[PlannedState]]:
    """Return job -> mask of its servers of kind k, and the changes of those servers' states."""
    kind, counts = problem.kinds[k], schedule.kinds[k]
    modes = {job: problem.tasks[job].modes[mode] for job, (_, mode) in schedule.starts.items()}
    runs = sorted((start, job) for job, (start, _) in schedule.starts.items() if modes[job].counts[k])
    fleet = _Fleet(kind)
    named: dict[int, int] = {}
    changes: list[PlannedState] = []
    reported: dict[int, int | None] = {}
    row = 0
    for step, (inside, waking) in enumerate(zip(counts.inside, counts.waking, strict=True)):
        fleet.step(problem.begins[step], inside, waking)
        groups: dict[int, int] = {}
        for host, state in fleet.state.items():
            if step == 0 or reported[host] != state:
                pstate = kind.sleep if state is None else kind.pstates[state]
                assert pstate is not None
                groups[pstate] = groups.get(pstate, 0) | 1 << host
                reported[host] = state
        begin_s = problem.begins[step] / TICKS_PER_S
        changes += [
            PlannedState(time_s=begin_s, hosts=hostset.to_text(mask), pstate=pstate) for pstate, mask in groups.items()
        ]
        while row < len(runs) and runs[row][0] < problem.begins[step + 1]:
            start, job = runs[row]
            server_mode = modes[job]
            named[job] = fleet.start(start, start + server_mode.ticks, server_mode.states[k], server_mode.counts[k])
            row += 1
    return named, changes


class _Fleet:
    """Servers of one kind by name. `state` is None asleep; `free_at` is the end of a run or a transition (ticks)."""

    def __init__(self, kind: Kind) -> None:
        self.kind = kind
        self.state: dict[int, int | None] = dict.fromkeys(kind.hosts, 0)
        self.free_at = dict.fromkeys(kind.hosts, 0)

    def step(self, begin: int, inside: tuple[int, ...], waking: tuple[int, ...]) -> None:
        """Give every server its state of a step, with as few changes as the counts allow."""
        state, free_at = self.state, self.free_at
        asleep = [host for host, d in state.items() if d is None and free_at[host] <= begin]
        left = [n - new for n, new in zip(inside, waking, strict=True)]
        free = []
        for host, d in state.items():
            if d is not None and free_at[host] > begin:
                left[d] -= 1
            elif d is not None:
                free.append(host)
        moving = []
        for host in free:
            d = state[host]
            if d is not None and left[d] > 0:
                left[d] -= 1
            else:
                moving.append(host)
        for d, n in enumerate(left):
            if n < 0:
                raise BrokenScheduleError(f"at tick {begin}: {-n} servers too many in state {d}")
            for host in moving[:n]:
                state[host] = d
            moving = moving[n:]
        for host in moving:
            state[host] = None
            free_at[host] = begin + self.kind.off_ticks
        for d, n in enumerate(waking):
            if n > len(asleep):
                raise BrokenScheduleError(f"at tick {begin}: {n} servers wake but {len(asleep)} sleep")
            for host in asleep[:n]:
                state[host] = d
                free_at[host] = begin + self.kind.on_ticks
            asleep = asleep[n:]

    def start(self, start: int, end: int, state: int, count: int) -> int:
        """Return the servers, as a mask, that a job gets."""
        free = [host for host, d in self.state.items() if d == state and self.free_at[host] <= start][:count]
        if len(free) < count:
            raise BrokenScheduleError(f"at tick {start}: {len(free)} of {count} servers are free")
        for host in free:
            self.free_at[host] = end
        return sum(1 << host for host in free)
