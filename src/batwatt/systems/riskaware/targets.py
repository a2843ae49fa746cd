"""TargetStretch, TargetASAP and PackedTargetASAP: long jobs to safe machines (riskaware paper, sections 4.3 to 4.5)."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any, get_type_hints

import numpy as np

from batwatt.arrays import Reals
from batwatt.scheduling.victims import Resubmit
from batwatt.systems.riskaware import target_tables as at
from batwatt.systems.riskaware.reference import Categories
from batwatt.systems.riskaware.strategy import MachineJob, MachinePlanner
from batwatt.systems.riskaware.target_kernel import advance, end_early
from batwatt.systems.riskaware.target_tables import Tables

_NUMBER = re.compile(r"\d+")


@dataclass(frozen=True)
class TargetSettings:
    """`always`: machines that are always alive (M-); `distance`: D+; `limit`: a probed machine is taken if the job's
    stretch there is no larger (0: S+); `pack`: machines of a pack (1: none); `low`, `high`: the utilisations below and
    above which M_use shrinks and grows; `usable`: M_use at first (None: half way from `always` to those alive);
    `take_empty`: a probed machine on which nothing runs or is planned is taken whatever the stretch; `drop`: a job from
    before the window that cannot start when it arrives never does; `paper`: the rules of the text where the authors'
    program has others (docs/explanation/riskaware.md), and then `usable` is M- by default.
    """

    always: int
    distance: int
    limit: float = 1.0
    pack: int = 1
    low: float = 0.80
    high: float = 0.95
    usable: int | None = None
    take_empty: bool = True
    drop: bool = False
    paper: bool = False


class Targets(MachinePlanner):
    """Local queues with planned starts; docs/explanation/riskaware.md has the rules, `target_kernel` applies them."""

    def __init__(self, machines: int, cores: int, settings: TargetSettings, categories: Categories) -> None:
        self.settings = settings
        self._categories = categories
        self._known = self._arrived = 0
        self._begun = False
        self._jobs: list[MachineJob] = []
        self._area = self._area_by_category = 0.0
        self._tables = _tables(machines, cores, settings, jobs=256)

    @property
    def usable(self) -> int:
        """M_use."""
        return int(self._tables.counts[at.USABLE])

    @property
    def worst_stretch(self) -> float:
        """S+, the largest stretch so far: that was planned, with `paper` that a job had when it ended."""
        return float(self._tables.reals[at.WORST])

    @property
    def mean_category(self) -> float:
        """Mean category of all jobs by area: 0.5 if they are like the reference."""
        return self._area_by_category / self._area if self._area else 0.5

    def planned_s(self, number: int) -> tuple[float, float]:
        """Start and end of a job as planned now."""
        return float(self._tables.start_s[number]), float(self._tables.end_s[number])

    def advance(self, time_s: float, alive: int | None = None, arrivals: Sequence[MachineJob] = ()) -> Sequence[int]:
        """See `MachinePlanner`."""
        if alive is not None and not self._begun:
            self._begin(alive)
        known, jobs = self._known, self._known + len(arrivals)
        self._reserve(jobs)
        tables = self._tables
        self._arrived = known
        if arrivals:
            new = slice(known, jobs)
            columns = [(job.release_s, job.length_s, job.run_s, job.cores) for job in arrivals]
            self._describe(new, *zip(*columns, strict=True))
            areas = tables.length_s[new] * tables.cores[new]
            self._area += float(areas.sum())
            self._area_by_category += float(areas @ tables.category[new])
            self._jobs += arrivals
            self._known = jobs
        change = alive if alive is not None and alive != tables.counts[at.ALIVE] else -1
        before: list[int] = []
        if 0 <= change < tables.counts[at.ALIVE] and type(self.victim) is not Resubmit:
            # who runs at that time, and for how long, is known only then
            advance(tables, time_s, -1, known, known)
            before = self._decisions()
            self._restart(change, time_s)
        advance(tables, time_s, change, known, jobs)
        return before + self._decisions()

    # a run without an engine hands all jobs over before it begins -------------------------------------------------

    def prepare(
        self,
        alive: int,
        release_s: Sequence[float],
        length_s: Sequence[float],
        run_s: Sequence[float],
        cores: Sequence[int],
    ) -> None:
        """Take note of all jobs to come, in the order of their numbers, for a kernel that lets them arrive."""
        self._begin(alive)
        self._reserve(len(cores), 0)
        self._describe(slice(0, len(cores)), release_s, length_s, run_s, cores)

    def prepared(self, jobs: int) -> tuple[Tables, int]:
        """The tables, with room for all that can happen while `jobs` have arrived; twice as many live jobs as now."""
        live = 2 * (jobs - int(self._tables.counts[at.LOWEST])) + 16
        self._reserve(jobs, live)
        return self._tables, live

    def take_over(self, jobs: int) -> None:
        """So many of the jobs have arrived in the end."""
        self._known = jobs
        areas = self._tables.length_s[:jobs] * self._tables.cores[:jobs]
        # not by BLAS, whose threads take longer to begin than this takes
        self._area, self._area_by_category = float(areas.sum()), float((areas * self._tables.category[:jobs]).sum())

    def _describe(
        self,
        new: slice,
        release_s: Sequence[float],
        length_s: Sequence[float],
        run_s: Sequence[float],
        cores: Sequence[int],
    ) -> None:
        tables = self._tables
        tables.release_s[new], tables.run_s[new], tables.cores[new] = release_s, run_s, cores
        tables.length_s[new] = tables.again_s[new] = length_s
        tables.category[new] = self._categories.of(tables.length_s[new])

    def _decisions(self) -> list[int]:
        tables = self._tables
        found: list[int] = tables.decisions[: tables.counts[at.DECISIONS]].tolist()
        return found

    def _restart(self, alive: int, time_s: float) -> None:
        """What the next runs of those take that run on machines which go."""
        tables, known = self._tables, self._known
        running = (tables.state[:known] == at.RUNNING) & (tables.machine[:known] >= alive)
        for number in np.flatnonzero(running).tolist():
            job = self._jobs[number]
            lives = job.restart(self.victim, time_s - (float(tables.end_s[number]) - job.run_s))
            tables.again_s[number] = job.run_s if lives else np.inf

    def ended(self, number: int, time_s: float) -> Sequence[int]:
        """See `MachinePlanner`."""
        self._reserve(self._known)
        tables = self._tables
        end_early(tables, number, self._known, time_s)
        return self._decisions()

    def dropped(self) -> Sequence[int]:
        """See `MachinePlanner`."""
        tables = self._tables
        new = range(self._arrived, self._known) if self.settings.drop else ()
        return [job for job in new if tables.state[job] == at.OVER and tables.machine[job] < 0]

    def machine_of(self, number: int) -> int:
        """See `MachinePlanner`."""
        return int(self._tables.machine[number])

    def end_s(self, number: int) -> float:
        """See `MachinePlanner`."""
        return float(self._tables.end_s[number])

    def machines_alive(self) -> Collection[int]:
        """See `MachinePlanner`: the first ones, in the order of their risk."""
        return range(int(self._tables.counts[at.ALIVE]))

    def remark(self) -> str:
        """See `MachinePlanner`: that the reference had little to do with the jobs."""
        mean = self.mean_category
        if 0.3 <= mean <= 0.7:
            return ""
        return f"the jobs are unlike those of the reference (mean category {mean:.2f}, 0.5 if alike): set 'reference'"

    def tie(self, name: str) -> Any:
        """By the numbers in it, as the traces number their jobs."""
        if name.isascii() and name.isdigit():
            return [int(name)], name
        return [int(digits) for digits in _NUMBER.findall(name)], name

    def ties(self, names: Sequence[str]) -> Sequence[Any]:
        """See `MachinePlanner`; numbers alone are compared faster."""
        together = "".join(names)
        if all(names) and together.isascii() and together.isdigit():
            return list(zip(map(int, names), names, strict=True))
        return super().ties(names)

    def _begin(self, alive: int) -> None:
        settings, counts = self.settings, self._tables.counts
        usable = settings.usable
        if usable is None:
            usable = settings.always if settings.paper else (alive + settings.always) // 2
        counts[at.ALIVE] = alive
        counts[at.USABLE] = min(max(usable, 1), alive)
        self._begun = True

    def _reserve(self, jobs: int, live: int | None = None) -> None:
        """Room for so many jobs in all; what a call can add to profiles and events depends on the `live`, not over."""
        tables = self._tables
        live = jobs - int(tables.counts[at.LOWEST]) if live is None else live
        steps = at.store_of(len(tables.first), live)
        if jobs > len(tables.state):
            tables = _grown(tables, _JOBS, 2 * jobs)
        if 3 * jobs + 3 > len(tables.decisions):
            tables = _grown(tables, ("decisions",), 6 * jobs)
        if int(tables.counts[at.EVENTS]) + 2 * live + 4 > len(tables.when):
            tables = _grown(tables, _EVENTS, 2 * (int(tables.counts[at.EVENTS]) + 2 * live + 4))
        if steps > len(tables.since):
            # at least twice as long, so that what is there is in the first half
            tables = _grown(tables, _STORE, 2 * steps)
        self._tables = tables


_STORE = ("since", "used")
_MACHINES = ("base", "size", "first", "last", "load", "waiting")
_JOBS = ("release_s", "length_s", "run_s", "again_s", "cores", "category", "machine", "start_s", "end_s", "state")
_EVENTS = ("when", "what")


def _tables(machines: int, cores: int, settings: TargetSettings, jobs: int) -> Tables:
    groups = (
        (at.store_of(machines, jobs), _STORE),
        (machines, _MACHINES),
        (machines * (cores + 1), ("roomy", "room_s")),
        (jobs, _JOBS),
        (4 * jobs, (*_EVENTS, "decisions")),
        *((6, ("counts",)), (4, ("reals",)), (7, ("settings",))),
    )
    kinds = get_type_hints(Tables)
    arrays: dict[str, Any] = {
        name: np.zeros(length, np.float64 if kinds[name] == Reals else np.int64)
        for length, names in groups
        for name in names
    }
    tables = Tables(**arrays)
    tables.base[:], tables.size[:] = np.arange(machines), 1
    tables.counts[at.STORED] = machines
    tables.reals[[at.WORST, at.LOW, at.HIGH, at.LIMIT]] = 1.0, settings.low, settings.high, settings.limit
    places = [at.ALWAYS, at.PACK, at.DISTANCE, at.CORES, at.EMPTY, at.DROP, at.PAPER]
    own = settings.always, settings.pack, settings.distance, cores, settings.take_empty, settings.drop, settings.paper
    tables.settings[places] = own
    return tables


def no_tables() -> Tables:
    """Tables of nothing, for who needs some."""
    return _tables(1, 1, TargetSettings(always=0, distance=0), jobs=1)


def _grown(tables: Tables, names: Sequence[str], length: int) -> Tables:
    """The same with longer arrays."""
    longer = {}
    for name in names:
        old = getattr(tables, name)
        longer[name] = new = np.zeros(length, old.dtype)
        new[: len(old)] = old
    return tables._replace(**longer)
