"""The scheduler `planned`, which carries out a plan made in advance: a schedule, its file, and its servers."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from operator import itemgetter
from pathlib import Path
from typing import Annotated, Any, ClassVar, NamedTuple

from pydantic import AfterValidator, BaseModel, Field

from batwatt.checks import load_json, model_error, validated
from batwatt.errors import BatwattError, InputError
from batwatt.files import read_text, whole_file
from batwatt.model import hostset
from batwatt.model.platform import NOISE_W
from batwatt.schedulers.planned.problem import TICKS_PER_S, Kind, Problem
from batwatt.schedulers.planned.search import PowerTimeline
from batwatt.schedulers.powercap.responses import NoConfiguration, Response
from batwatt.schedulers.powercap.scheduler import Powercap
from batwatt.scheduling.base import EnvelopeOptions, OptionValues
from batwatt.scheduling.cluster import outage
from batwatt.scheduling.orders import FirstCome, Order
from batwatt.units import REPORTED_S

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
    """Assign servers to runs and states: the construction of docs/explanation/optimum.md, "Identical hosts"."""
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


FORMAT = 1


def _hosts(text: str) -> str:
    hostset.from_text(text)
    return text


Hosts = Annotated[str, AfterValidator(_hosts)]
Time = Annotated[float, Field(ge=0.0, allow_inf_nan=False)]


class PlannedState(BaseModel, extra="forbid", frozen=True):
    """A change, at `time_s`, the beginning of a step, of servers to a p-state (computation or sleep)."""

    time_s: Time
    hosts: Hosts
    pstate: int = Field(ge=0)


class PlannedJob(BaseModel, extra="forbid", frozen=True):
    """A job that starts at `start_s` on `hosts` for `run_s`; `pstates` are those of its servers until it ends."""

    id: str
    start_s: Time
    run_s: Time
    hosts: Hosts
    pstates: dict[Hosts, int]


class SchedulePlan(BaseModel, extra="forbid", frozen=True):
    """All changes of states and all starts, each in order of time."""

    format: int = FORMAT
    states: tuple[PlannedState, ...]
    jobs: tuple[PlannedJob, ...]


def write_plan(path: Path, plan: SchedulePlan) -> None:
    """Write a plan, whole or not at all: a row of the file per row of the plan. Raises InputError."""
    with whole_file(path) as out:
        out.write(f'{{\n"format": {FORMAT},\n')
        for name, rows in (("states", plan.states), ("jobs", plan.jobs)):
            lines = ",\n".join(json.dumps(row.model_dump()) for row in rows)
            out.write(f'"{name}": [\n{lines}\n]' + (",\n" if name == "states" else "\n"))
        out.write("}\n")


def read_plan(path: Path | str) -> SchedulePlan:
    """Read a plan; InputError names the file and the place."""

    def error_of(error: Mapping[str, Any]) -> InputError:
        place = "".join(f"[{each}]" if isinstance(each, int) else f" {each}" for each in error["loc"])
        return model_error(path, error, "make a plan with `batwatt optimum`", place.strip())

    plan = validated(SchedulePlan, load_json(read_text(path), path), error_of)
    if plan.format != FORMAT:
        raise InputError(path, f"is a plan of format {plan.format}, not {FORMAT}", "make it anew: `batwatt optimum`")
    return plan


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


class Planned(Powercap[PlannedOptions]):
    """Carries out a plan file: states of servers and starts of jobs at their times, as soon as the servers allow it."""

    order: ClassVar[Order] = FirstCome()
    response: ClassVar[Response] = NoConfiguration()
    Options: ClassVar[type[EnvelopeOptions]] = PlannedOptions
    needs_exact_times: ClassVar[bool] = True

    def __init__(self, options: OptionValues = None) -> None:
        super().__init__(options)
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
        if job.id in self.lifecycle.jobs and job.id not in self._planned_ids:
            self.reject([self.lifecycle.jobs[job.id]], "as they are not in the plan")

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
        job = self.lifecycle.jobs.get(action.job_id)
        if job is None or action.mask & ~cluster.free:
            return False
        cluster.carry_out([(job, action.mask)], self.lifecycle)
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
        mask = action.mask & (new | ~cluster.in_pstate(action.pstate))
        if mask:
            self._request(mask, action.pstate)
        return True
