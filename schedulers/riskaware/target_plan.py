"""The target strategies of the riskaware paper; docs/explanation/riskaware.md has the rules.

At one time starts come first, then ends, then a change of the number of machines, then arrivals. Sections 4.3 to 4.5.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final, final

from librt.vecs import append, pop
from mypy_extensions import i64

from batwatt.arrays import integers, reals

SLACK: Final = 1.0 + 1e-9
"""Stretches that differ by rounding are equal."""
START: Final = 0
END: Final = 1
"""Kinds of events."""
FAR: Final = 32
"""Steps of a profile that may be over before they are deleted."""
PLANNED: Final = 0
RUNNING: Final = 1
RESTATED: Final = 2
OVER: Final = 3
"""States of a task: planned; running; running, to be announced again after a re-mapping; over."""
MANY: Final = 1 << 32
"""More tasks than a plan has."""


@dataclass(frozen=True)
class TargetSettings:
    """`always`: machines that are always alive (M-); `distance`: D+; `limit`: a probed machine is taken if the job's
    stretch there is no larger (0: S+); `pack`: machines of a pack (1: none); `low`, `high`: the utilisations below and
    above which M_use shrinks and grows; `usable`: M_use at first (None: half way from `always` to those alive); `drop`:
    a job from before the window that cannot start when it arrives never does; `paper`: the rules of the text where the
    authors' program has others (docs/explanation/riskaware.md), and then `usable` is M- by default.
    """

    always: int
    distance: int
    limit: float = 1.0
    pack: int = 1
    low: float = 0.80
    high: float = 0.95
    usable: int | None = None
    drop: bool = False
    paper: bool = False


@final
class PlannedTask:
    """A job as it is planned; times in s.

    `run_s` is the time of its next run, `rerun_s` that of the run after it if this one is killed now: infinite if
    the job is lost then. `machine` is -1 for none. `number` counts arrivals.
    """

    def __init__(self, release_s: float, length_s: float, run_s: float, cores: int, category: float) -> None:
        self.release_s = release_s
        self.length_s = length_s
        self.run_s = run_s
        self.rerun_s = length_s
        self.cores: i64 = cores
        self.category = category
        self.number: i64 = -1
        self.machine: i64 = 0
        self.start_s = 0.0
        self.end_s = 0.0
        self.state: i64 = PLANNED


@final
class Profile:
    """The cores of a machine that are in use, as a step function of time: `used[k]` from `since[k]` on.

    Steps before `first` are over, the last is 0 for ever. `load` has the cores in use after the last event of the
    machine, `waiting` the tasks that are planned and not yet started, `deleted` the steps deleted since it was cleared.
    """

    def __init__(self) -> None:
        self.clear(0.0)
        self.load: i64 = 0
        self.waiting: i64 = 0

    def clear(self, now_s: float) -> None:
        """Forget all that runs and is planned."""
        self.since, self.used = reals([now_s]), integers([0])
        self.first: i64 = 0
        self.deleted: i64 = 0
        self.load = self.waiting = 0

    @property
    def is_empty(self) -> bool:
        """True if nothing runs or is planned."""
        return self.first == len(self.since) - 1

    def _insert(self, k: i64, since_s: float, used: i64) -> None:
        """Insert a step before step k."""
        self.since = times = append(self.since, since_s)
        self.used = uses = append(self.used, used)
        i: i64 = len(times) - 1
        while i > k:
            times[i], uses[i] = times[i - 1], uses[i - 1]
            i -= 1
        times[k], uses[k] = since_s, used

    def _delete(self, k: i64) -> None:
        """Delete step k."""
        times, uses = self.since, self.used
        last: i64 = len(times) - 1
        for i in range(k, last):
            times[i], uses[i] = times[i + 1], uses[i + 1]
        self.since, _ = pop(times)
        self.used, _ = pop(uses)
        self.deleted += 1

    def occupy(self, k: i64, start_s: float, end_s: float, cores: i64) -> None:
        """Use `cores` cores in [start_s, end_s[, which begins in step k; neighbours of equal use become one step."""
        since, used = self.since, self.used
        last: i64 = len(since) - 1
        begin, end = k, k
        while end < last and since[end + 1] < end_s:
            end += 1
        if end == last or since[end + 1] > end_s:
            self._insert(end + 1, end_s, used[end])
        elif used[end + 1] == used[end] + cores:
            self._delete(end + 1)
        if since[k] < start_s:
            begin, end = k + 1, end + 1
            self._insert(begin, start_s, used[k])
        elif k > self.first and used[k - 1] == used[k] + cores:
            # step k is part of the one before, which has its use already
            self._delete(k)
            end -= 1
        used = self.used
        for i in range(begin, end + 1):
            used[i] += cores

    def trim(self, now_s: float) -> None:
        """Forget steps that are over, and update the load."""
        k, since = self.first, self.since
        last: i64 = len(since) - 1
        while k < last and since[k + 1] <= now_s:
            k += 1
        self.first, self.load = k, self.used[k]
        if k > FAR and 2 * k > last:
            # most of the steps are over
            self.since, self.used = since[k:], self.used[k:]
            self.first = 0
            self.deleted += k


@final
class Events:
    """The planned starts and ends of tasks by time, then kind, machine and task: a binary heap.

    Each has its time in s and its rank, a number that orders those of one time.
    """

    def __init__(self) -> None:
        self.clear()

    def clear(self) -> None:
        """Forget all."""
        self._times = reals([])
        self._ranks = integers([])

    def first_s(self) -> float:
        """Return the time of the first event, infinite if there is none."""
        return self._times[0] if len(self._times) > 0 else math.inf

    def add(self, time_s: float, rank: i64) -> None:
        """Add an event."""
        self._times = times = append(self._times, time_s)
        self._ranks = ranks = append(self._ranks, rank)
        i: i64 = len(times) - 1
        while i > 0:
            above = (i - 1) >> 1
            if times[above] < time_s or (times[above] == time_s and ranks[above] <= rank):
                break
            times[i], ranks[i] = times[above], ranks[above]
            i = above
        times[i], ranks[i] = time_s, rank

    def pop(self) -> i64:
        """Remove the first event; return its rank."""
        first = self._ranks[0]
        self._times, time_s = pop(self._times)
        self._ranks, rank = pop(self._ranks)
        times, ranks = self._times, self._ranks
        count: i64 = len(times)
        if count == 0:
            return first
        i: i64 = 0
        below: i64 = 1
        while below < count:
            other = below + 1
            if other < count and (
                times[other] < times[below] or (times[other] == times[below] and ranks[other] < ranks[below])
            ):
                below = other
            if time_s < times[below] or (time_s == times[below] and rank <= ranks[below]):
                break
            times[i], ranks[i] = times[below], ranks[below]
            i, below = below, 2 * below + 1
        times[i], ranks[i] = time_s, rank
        return first


@final
class TargetPlan:
    """The machines and all tasks, which are numbered by their arrival.

    `alive` machines are on, the first `usable` of them are M_use; `worst` is S+. All tasks but those `left` are over.
    No step of machine m before `roomy`, counted with those deleted, has room for c cores, nor is there any before
    `room_s`; both in cell c * M + m.
    """

    def __init__(self, machines: int, cores: int, settings: TargetSettings) -> None:
        self._cores: i64 = cores
        self._always: i64 = settings.always
        self._distance: i64 = settings.distance
        self._pack: i64 = settings.pack
        self._low = settings.low
        self._high = settings.high
        self._limit = settings.limit
        self._drop = settings.drop
        self._paper = settings.paper
        self.alive: i64 = 0
        self.usable: i64 = 0
        self.worst = 1.0
        self.tasks: list[PlannedTask] = []
        self._left: list[PlannedTask] = []
        self._machines: i64 = machines
        self._profiles = [Profile() for _ in range(machines)]
        self._held = integers([0] * machines)
        """Cores in use on each machine; all of one for which a task waits."""
        self._total: i64 = 0
        """The sum of `_held` on the usable machines."""
        self._roomy = integers([0] * (machines * (cores + 1)))
        self._room_s = reals([0.0] * (machines * (cores + 1)))
        self._events = Events()
        self._decisions: list[int] = []

    # M_use ------------------------------------------------------------------------------------------------------

    def begin(self, alive: i64, usable: i64) -> None:
        """Set the numbers of machines that are alive, and usable, at first."""
        self.alive = alive
        self._use(min(max(usable, 1), alive))

    def _use(self, usable: i64) -> None:
        self.usable, self._total = usable, 0
        for m in range(usable):
            self._total += self._held[m]

    def _count(self, m: i64) -> None:
        """Update the cores in use on a machine."""
        profile = self._profiles[m]
        held = self._cores if profile.waiting > 0 else profile.load
        if m < self.usable:
            self._total += held - self._held[m]
        self._held[m] = held

    def _adapt(self) -> None:
        """Let M_use shrink to the machines that are always alive, or grow to those alive, by its utilisation."""
        usable, total = self.usable, self._total
        if usable == 0:
            return
        fewest = max(1, self._always)
        direction = 0
        while True:
            utilisation = float(total) / float(usable * self._cores)
            if utilisation < self._low and usable > fewest and direction <= 0:
                direction = -1
                usable -= 1
                total -= self._held[usable]
            elif utilisation > self._high and usable < self.alive and direction >= 0:
                direction = 1
                total += self._held[usable]
                usable += 1
            else:
                break
        self.usable, self._total = usable, total

    # placing a task ---------------------------------------------------------------------------------------------

    def _target(self, task: PlannedTask) -> i64:
        """Return the machine of Eq. 1 counted from 0, or the first machine of the pack."""
        usable, pack = self.usable, self._pack
        if self._paper:
            # section 4.5: of Eq. 1, the nearest multiple, that of a usable machine
            exact: i64 = int(task.category * float(usable))
            near = (min(exact, usable - 1) + pack // 2) // pack * pack
            return near if near < usable else near - pack
        choices = max(1, usable // pack)
        at: i64 = int(task.category * float(choices))
        return min(at, choices - 1) * pack

    def _clear(self, m: i64, now_s: float) -> None:
        self._profiles[m].clear(now_s)
        self._count(m)
        for c in range(self._cores + 1):
            self._roomy[c * self._machines + m] = 0
            self._room_s[c * self._machines + m] = now_s

    def _earliest(self, m: i64, now_s: float, run_s: float, cores: i64, before_s: float) -> tuple[float, i64]:
        """Return the start of the earliest interval of `run_s` s with `cores` cores free, and the step that it lies in.

        The start is infinite if it were after `before_s`.
        """
        profile = self._profiles[m]
        since, used = profile.since, profile.used
        last: i64 = len(since) - 1
        room = self._cores - cores
        # until the machine is cleared its profile only fills, and steps only move up
        cell = cores * self._machines + m
        k = max(profile.first, self._roomy[cell] - profile.deleted)
        while used[k] > room:
            k += 1
        start_s = since[k]
        self._roomy[cell] = k + profile.deleted
        self._room_s[cell] = start_s
        start_s = max(now_s, start_s)
        while start_s <= before_s:
            begin, end_s = k, start_s + run_s
            while k < last and used[k] <= room and since[k + 1] < end_s:
                k += 1
            if used[k] <= room:
                return start_s, begin
            while used[k] > room:
                k += 1
            start_s = since[k]
        return math.inf, k

    def _plan(self, task: PlannedTask, m: i64, k: i64, start_s: float) -> None:
        """Plan the task on machine m from step k on."""
        end_s = start_s + task.run_s
        self._profiles[m].occupy(k, start_s, end_s, task.cores)
        task.machine, task.start_s, task.end_s, task.state = m, start_s, end_s, PLANNED
        self._wait(m)
        self._add(start_s, START, m, task.number)
        if not self._paper:
            self._stretched(task, end_s)

    def _wait(self, m: i64) -> None:
        self._profiles[m].waiting += 1
        self._count(m)

    def _add(self, time_s: float, kind: i64, m: i64, number: i64) -> None:
        self._events.add(time_s, (kind * self._machines + m) * MANY + number)

    def _stretched(self, task: PlannedTask, end_s: float) -> None:
        """Update S+ by the end of a task."""
        self.worst = max(self.worst, (end_s - task.release_s) / task.length_s)

    def _map(self, task: PlannedTask, target: i64, distance: i64, now_s: float, drop: bool) -> None:
        """Choose a machine for the task: the first within the limit, else the one of least stretch of those probed.

        With `paper`: the target if the task starts now or is within the limit there, else the nearest where it starts
        now, else the target within S+, else the one of least stretch. With `drop` a task without a first choice is
        over.
        """
        usable, paper = self.usable, self._paper
        if usable == 0:
            # planned nowhere until a machine comes
            task.machine, task.state = -1, OVER if drop else PLANNED
            return
        limit = self._limit if self._limit > 0.0 else self.worst
        run_s, cores, room_s = task.run_s, task.cores, self._room_s
        cell = cores * self._machines
        # of one task the stretch is least where the start is earliest
        latest_s = task.release_s + limit * SLACK * task.length_s - run_s
        before_s = math.inf
        # none is within the limit and none is empty: as a rule the one that has room first is the best
        while latest_s < now_s and not paper and not drop:
            first, first_s = target, room_s[cell + target]
            for m in range(max(0, target - distance), min(usable, target + distance + 1)):
                if room_s[cell + m] < first_s:
                    first, first_s = m, room_s[cell + m]
            if first_s <= now_s:
                break
            start_s, k = self._earliest(first, now_s, run_s, cores, before_s)
            if start_s == first_s:
                self._plan(task, first, k, start_s)
                return
            before_s = min(before_s, start_s)
            if room_s[cell + first] == first_s:
                break
        best, least_s, own_s, taken = target, math.inf, math.inf, False
        place: i64 = 0
        own_place: i64 = 0
        for probe in range(2 * distance + 1):
            step = (probe + 1) >> 1
            m = target + step if probe & 1 else target - step
            if m < 0 or m >= usable or room_s[cell + m] > before_s:
                continue
            start_s, k = self._earliest(m, now_s, run_s, cores, before_s)
            if paper:
                taken = start_s <= now_s or (probe == 0 and start_s <= latest_s)
            else:
                taken = start_s <= latest_s or self._profiles[m].is_empty
            if taken:
                best, least_s, place = m, start_s, k
                break
            if probe == 0:
                own_s, own_place = start_s, k
            # ties go to the target, then to the lowest index
            if start_s < least_s or (start_s == least_s and best != target and m < best):
                best, least_s, place = m, start_s, k
                before_s = start_s
        if not taken and drop:
            task.machine, task.state = -1, OVER
            # as published: the first machine counts as waited for until the next change
            self._wait(0)
            return
        within_s = task.release_s + self.worst * SLACK * task.length_s - run_s
        if paper and not taken and own_s <= within_s:
            best, least_s, place = target, own_s, own_place
        self._plan(task, best, place, least_s)

    # events -----------------------------------------------------------------------------------------------------

    def _happen(self, until_s: float) -> None:
        """Carry out starts and ends that are planned until a time."""
        events = self._events
        while events.first_s() <= until_s:
            time_s = events.first_s()
            rank = events.pop()
            number = rank & (MANY - 1)
            place = rank >> 32
            kind: i64 = START if place < self._machines else END
            m = place - kind * self._machines
            task = self.tasks[number]
            state = task.state
            if task.machine != m:
                continue
            if kind == START and state != RUNNING and state != OVER and task.start_s == time_s:
                if state == PLANNED:
                    self._decisions.append(number)
                task.state = RUNNING
                self._profiles[m].waiting -= 1
                self._add(task.end_s, END, m, number)
            elif kind == END and state == RUNNING and task.end_s == time_s:
                task.state = OVER
                self._stretched(task, time_s)
            else:
                continue
            self._profiles[m].trim(time_s)
            self._count(m)
            self._adapt()

    def _change(self, alive: i64, now_s: float) -> None:
        """Follow a change to `alive` machines: kill tasks on others, map all waiting tasks again, by release time.

        With `paper` nothing happens if there are more, unless all were usable and U is above the threshold.
        """
        before, usable = self.alive, self.usable
        self.alive = alive
        more = alive > before > 0 and self._paper
        if more and (usable < before or not float(self._total) / float(usable * self._cores) > self._high):
            return
        if alive > before:
            self._adapt()
        usable = min(max(self.usable, 1), alive)
        self._events.clear()
        # on the others nothing was planned since they were cleared
        for m in range(max(before, alive)):
            self._clear(m, now_s)
        self._use(usable)
        self._left = left = [task for task in self._left if task.state != OVER]
        for task in left:
            if task.state != RUNNING:
                continue
            m = task.machine
            if m >= alive:
                self._decisions.append(-1 - task.number)
                task.run_s = task.rerun_s
                task.state = PLANNED if task.rerun_s < math.inf else OVER
                continue
            profile = self._profiles[m]
            profile.occupy(profile.first, now_s, task.end_s, task.cores)
            task.state, task.start_s = RESTATED, now_s
            self._wait(m)
            self._add(now_s, START, m, task.number)
        for task in left:
            if task.state == PLANNED:
                self._map(task, self._target(task), self._distance, now_s, False)
        self._adapt()
        self._happen(now_s)

    def advance(self, until_s: float, change: i64, arrivals: list[PlannedTask]) -> list[int]:
        """Go on to `until_s`: starts, ends, then the change to `change` machines (-1: none), then arrivals.

        Arrivals are in release order. One that was released earlier than it arrives has been running since: it goes to
        the first machine that has room for it. With `drop` it is over if it cannot start now. Returned are decisions in
        order: task n started (n) or was killed (-1 - n).
        """
        self._decisions = []
        self._happen(until_s)
        if change >= 0:
            self._change(change, until_s)
        for task in arrivals:
            task.number = len(self.tasks)
            self.tasks.append(task)
            self._left.append(task)
            if task.run_s < task.length_s:
                self._map(task, 0, self.alive, until_s, self._drop)
            else:
                self._map(task, self._target(task), self._distance, until_s, False)
            self._happen(until_s)
        return self._decisions

    def end_early(self, number: i64, now_s: float) -> list[int]:
        """End a task before it was planned to: plan the tasks that wait on its machine again, by planned start."""
        self._decisions = []
        task = self.tasks[number]
        m = task.machine
        task.state = OVER
        self._stretched(task, now_s)
        if m < 0:
            return self._decisions
        # by start and then number
        waiting: list[tuple[float, int]] = []
        profile = self._profiles[m]
        self._clear(m, now_s)
        for task in self._left:
            if task.machine != m:
                continue
            if task.state == PLANNED:
                waiting.append((task.start_s, task.number))
            elif task.state == RUNNING:
                profile.occupy(profile.first, now_s, task.end_s, task.cores)
        waiting.sort()
        for _, again in waiting:
            task = self.tasks[again]
            start_s, k = self._earliest(m, now_s, task.run_s, task.cores, math.inf)
            self._plan(task, m, k, start_s)
        profile.trim(now_s)
        self._count(m)
        self._adapt()
        self._happen(now_s)
        return self._decisions
