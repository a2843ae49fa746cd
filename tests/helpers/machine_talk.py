"""What the tests of planners of machines share: a way to talk to them in texts, and categories of one's own."""

from __future__ import annotations

from dataclasses import dataclass, field
from types import SimpleNamespace

import numpy as np

from batwatt.scheduling.jobs import ManagedJob
from batwatt.systems.riskaware.strategy import MachinePlan, MachinePlanner
from batwatt.systems.riskaware.targets import Targets, TargetSettings


def machine_job(number: int, release_s: float, length_s: float, run_s: float, cores: int) -> ManagedJob:
    """A job as planners of machines see it."""
    job = SimpleNamespace(id=f"w0!{number}", submit_time=release_s, requested_resources=cores, requested_time=None)
    return ManagedJob(number, job, length_s, run_s, plan=MachinePlan(release_s))


class Talk:
    """A planner, and what it tells as text: `a@0` job a starts on machine 0, `-a` it is killed."""

    def __init__(self, planner: MachinePlanner) -> None:
        self.planner = planner
        self.names: list[str] = []
        self.jobs: dict[str, ManagedJob] = {}

    def at(self, time_s: float, *jobs: str, alive: int | None = None) -> str:
        """Go on to a time; jobs are `name length cores [release [run]]`."""
        made = []
        for text in jobs:
            name, length, cores, *more = text.split()
            release = float(more[0] if more else time_s)
            run = float(more[1]) if more[1:] else float(length)
            self.jobs[name] = machine_job(len(self.names), release, float(length), run, int(cores))
            self.names.append(name)
            made.append(self.jobs[name])
        return self.text(self.planner.advance(float(time_s), alive, made))

    def ends(self, name: str, time_s: float) -> str:
        return self.text(self.planner.ended(self.names.index(name), float(time_s)))

    def text(self, decisions) -> str:
        words = []
        for n in decisions:
            words.append(f"{self.names[n]}@{self.planner.machine_of(n)}" if n >= 0 else f"-{self.names[-1 - n]}")
        return " ".join(words)

    def end_s(self, name: str) -> float:
        return self.planner.end_s(self.names.index(name))

    def plan(self, name: str) -> tuple[int, float]:
        """Machine and start of a job as planned by a target strategy."""
        number = self.names.index(name)
        return self.planner.machine_of(number), self.planner.planned_s(number)[0]


@dataclass(frozen=True)
class ByHand:
    """Categories of one's own: length in s -> C_i."""

    given: dict[float, float] = field(default_factory=dict)

    def of(self, lengths_s):
        return np.array([self.given.get(float(length), 1.0) for length in lengths_s])


def planner(machines, cores, categories, alive=None, **rules) -> Talk:
    """M_use stays as it is, and is all machines, unless `rules` say otherwise; lengths have the given categories."""
    chosen = {"always": 0, "distance": 0, "low": 0.0, "high": 1.0, "usable": machines} | rules
    talk = Talk(Targets(machines, cores, TargetSettings(**chosen), ByHand(categories)))
    assert talk.at(0, alive=machines if alive is None else alive) == ""
    return talk


def adapting(machines, cores, **rules) -> Talk:
    """The paper's thresholds; a job whose length is 100 + m of machine slots m has this machine as its target."""
    usable = rules.get("usable") or machines
    categories = {100.0 + m: (m + 0.5) / usable for m in range(usable)}
    return planner(machines, cores, categories, **({"low": 0.80, "high": 0.95} | rules))
