"""What the tests of planners of machines share: a way to talk to them in texts, and categories of one's own."""

from __future__ import annotations

from dataclasses import dataclass, field
from types import SimpleNamespace

import numpy as np
from by_hand import options_of

from batwatt.schedulers.riskaware.planners import MachinePlanner, RiskawareState, Targets, TargetSettings
from batwatt.scheduling.job import Job


def machine_job(number: int, release_s: float, length_s: float, run_s: float, cores: int) -> Job:
    """A job as planners of machines see it."""
    job = SimpleNamespace(id=f"w0!{number}", submit_time=release_s, requested_resources=cores, requested_time=None)
    return Job(number, job, length_s, run_s, state=RiskawareState(release_s))


class Talk:
    """A planner, and what it tells as text: `a@0` job a starts on machine 0, `-a` it is killed."""

    def __init__(self, planner: MachinePlanner) -> None:
        self.planner = planner
        self.names: list[str] = []
        self.jobs: dict[str, Job] = {}

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

    categories: dict[float, float] = field(default_factory=dict)

    def of(self, lengths_s):
        return np.array([self.categories.get(float(length), 1.0) for length in lengths_s])


def planner(machines, cores, categories, alive=None, **rules) -> Talk:
    """M_use stays as it is, and is all machines, unless `rules` say otherwise; lengths have the given categories."""
    settings = {"always": 0, "distance": 0, "low": 0.0, "high": 1.0, "usable": machines} | rules
    talk = Talk(Targets(machines, cores, TargetSettings(**settings), ByHand(categories)))
    assert talk.at(0, alive=machines if alive is None else alive) == ""
    return talk


def adapting(machines, cores, **rules) -> Talk:
    """The paper's thresholds; a job whose length is 100 + m of machine slots m has this machine as its target."""
    usable = rules.get("usable") or machines
    categories = {100.0 + m: (m + 0.5) / usable for m in range(usable)}
    return planner(machines, cores, categories, **({"low": 0.80, "high": 0.95} | rules))


def follow(talk: Talk, lines: list[str]) -> None:
    """Carry out lines of `time [alive=machines]: jobs -> decisions; facts`, or of `job ends time -> decisions; facts`.

    Without `->` decisions are not compared. Facts are `job machine start` of a plan, and ends, stretch, usable, alive
    and dropped with their values.
    """
    for line in lines:
        step, *facts = line.split("; ")
        act, arrow, expected = step.partition("->")
        when, _, jobs = act.partition(":")
        if " ends " in when:
            name, _, time_s = when.split()
            decisions = talk.ends(name, float(time_s))
        else:
            time_s, *change = when.split()
            alive = int(change[0].removeprefix("alive=")) if change else None
            decisions = talk.at(float(time_s), *filter(None, jobs.strip().split(", ")), alive=alive)
        assert not arrow or decisions == expected.strip(), f"{line}: {decisions!r}"
        for fact in facts:
            assert_fact(talk, *fact.split(), line)


def assert_fact(talk: Talk, what: str, *values: str) -> None:
    """Compare a fact of a line, its last value, with the planner."""
    *values, line = values
    if what == "ends":
        actual = {name: talk.end_s(name) for name in values[::2]}
        assert actual == {name: float(time_s) for name, time_s in zip(values[::2], values[1::2], strict=True)}, line
    elif what == "stretch":
        over, _, under = values[0].partition("/")
        assert talk.planner.worst_stretch == float(over) / float(under or 1), (line, talk.planner.worst_stretch)
    elif what == "usable":
        assert talk.planner.usable == int(values[0]), (line, talk.planner.usable)
    elif what in ("alive", "dropped"):
        actual = talk.planner.machines_alive() if what == "alive" else talk.planner.dropped()
        assert list(map(str, actual)) == list(values), (line, actual)
    else:
        assert talk.plan(what) == (int(values[0]), float(values[1])), (line, talk.plan(what))


def talk_of(line: str) -> Talk:
    """A planner of targets: `machines x cores, length: category, rule=value`; `adapting` has the paper's thresholds."""
    size, *words = line.removeprefix("adapting ").split(", ")
    machines, cores = map(int, size.split(" x "))
    categories = {float(length): float(c) for length, c in (word.split(": ") for word in words if ": " in word)}
    rules = options_of(", ".join(word for word in words if "=" in word)) if "=" in line else {}
    return adapting(machines, cores, **rules) if "adapting" in line else planner(machines, cores, categories, **rules)
