"""The laws of a run of any system: a case to run, the record of its run, and what must hold for every record.

Each law takes an `Observed` run and looks at nothing but the case and the rows that the run wrote.
"""

from __future__ import annotations

import itertools
import math
from bisect import bisect_right
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import pytest
from builders import played

from batwatt.model.attempt import CHECKPOINT, MIGRATED, PIECE, RECOVERY, SUSPENDED, WINDOW_OVER
from batwatt.model.hostset import from_text, ids
from batwatt.model.platform import Host, Platform, machine_of
from batwatt.model.record import JobRow, Record
from batwatt.model.timeline import Timeline
from batwatt.protocol.events import parse_events

LAG_S = 1e-3
"""A change of the capacity, and what follows it, takes a moment."""
WRITTEN_S = 2e-5
"""Times of rows are exact to this: a run of no time is written as one of 1e-5 s."""
COMPLETED, KILLED = "COMPLETED_SUCCESSFULLY", "COMPLETED_KILLED"
WALLTIME, REJECTED = "COMPLETED_WALLTIME_REACHED", "REJECTED"
SWITCHING_ON, SWITCHING_OFF = -1, -2
"""States of `_pstate_changes.csv` in which a host switches."""
CALM_S = 1e9
"""After the end of every run."""

Job = dict[str, Any]
"""A job in Batsim's JSON, with its profile in `_profile`."""


@dataclass(frozen=True)
class Victim:
    """What a killed run keeps: `keeps` work or not, `checkpoint_s` at its end and `recovery_s` of the next are none."""

    keeps: bool = False
    checkpoint_s: float = 0.0
    recovery_s: float = 0.0
    lost: bool = False
    """Whether the job is not submitted again."""


@dataclass(frozen=True)
class Case:
    """A run to be of a scheduler with these options, and what its system promises for it.

    `capacity` in machines and `envelope` in W are promises to be kept; None where there is none. `hopeless` says which
    jobs may be rejected, apart from those wider than what there is in the end.
    """

    kind: Any
    platform: Platform
    jobs: tuple[Job, ...]
    options: dict[str, Any]
    capacity: Timeline | None = None
    envelope: Timeline | None = None
    hopeless: Callable[[Observed, Job], bool] | None = None
    keeps: Victim | None = None
    """What killed runs keep, if that is not by the option `victim`."""
    stops: bool = False
    """Whether runs are killed for other jobs, or to be saved in time."""
    compact: bool = True
    """Whether jobs are on as few machines as can be."""
    away: tuple[tuple[int, float, float], ...] = ()
    """(host, from, until) in s: out of service."""
    events: tuple[str, ...] = ()
    """Lines of external events that are forwarded to the scheduler."""
    exact: bool = True
    """Whether Batsim's text has the times of this case."""

    @property
    def cores(self) -> int:
        """Hosts of a machine."""
        machines = {machine_of(host.properties, host.name) for host in self.platform.hosts}
        return len(self.platform) // len(machines)

    @property
    def until_s(self) -> float | None:
        """When the window ends, s."""
        return self.options.get("until_s")

    @property
    def victim(self) -> Victim:
        """What a killed run keeps."""
        if self.keeps is not None:
            return self.keeps
        fields = {} if self.kind is None else self.kind.Options.model_fields
        choice = self.options.get("victim", fields["victim"].default if "victim" in fields else "resubmit")
        if isinstance(choice, str):
            return Victim(lost=choice == "lose")
        recovery_s = choice.get("recovery_s", choice.get("cost_s", 0.0))
        return Victim(keeps=True, checkpoint_s=choice.get("checkpoint_s", 0.0), recovery_s=recovery_s)

    def __repr__(self) -> str:
        rows = [{key: value for key, value in job.items() if key != "profile"} for job in self.jobs]
        limits = f"capacity={self.capacity}, envelope={self.envelope}, away={self.away}"
        options = {name: value for name, value in self.options.items() if name not in ("platform", "signal")}
        return f"<{options} on {len(self.platform)} hosts of {self.cores}, {limits}: {rows}>"

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        printer.text(repr(self))

    def run(self, between: Any = None) -> Observed:
        """The record of this case on the embedded engine, through a link if there is one."""
        steps = [(at, how, host) for host, begin_s, end_s in self.away
                 for at, how in ((begin_s, "unavailable"), (end_s, "available"))]  # fmt: skip
        lines = [f'{{"timestamp": {at}, "type": "machine_{how}", "resources": "{host}"}}' for at, how, host in steps]
        events = parse_events("\n".join((*lines, *self.events)), "events")
        more = {"events": events, "link": between, "forward_unknown_events": bool(self.events)}
        return Observed(self, played(self.kind(self.options), self.platform, *self.jobs, **more))


class Attempt:
    """A row of `_jobs.csv`: a run of a job, or its rejection, which has no times."""

    def __init__(self, row: JobRow) -> None:
        self.job, _, number = row.job_id.partition("#")
        self.number = int(number or 0)
        self.row = row
        self.state, self.metadata = row.final_state, row.metadata
        self.begin_s = math.inf if row.starting_time is None else row.starting_time
        self.end_s = math.inf if row.finish_time is None else row.finish_time
        self.hosts = ids(from_text(row.allocated_resources)) if row.allocated_resources else ()
        self.ran = row.starting_time is not None
        self.part = row.metadata in (CHECKPOINT, RECOVERY, PIECE)
        """Whether another attempt follows though this one completes."""

    def __repr__(self) -> str:
        return f"{self.row.job_id}: {self.begin_s}-{self.end_s} @{self.row.allocated_resources} {self.state}"

    def goes_at(self, time_s: float) -> bool:
        """Whether it runs at a time, but for the moment in which it begins or ends."""
        return self.begin_s <= time_s - LAG_S / 2 and self.end_s > time_s + LAG_S / 2

    def machines(self, cores: int) -> frozenset[int]:
        """The machines of its hosts."""
        return frozenset(host // cores for host in self.hosts)


class Observed:
    """A case and the rows of its run, by job and by host."""

    def __init__(self, case: Case, record: Record) -> None:
        self.case, self.record = case, record
        self.jobs = {job["id"]: job for job in case.jobs}
        rows = [Attempt(row) for row in record.jobs]
        self.ran = sorted((row for row in rows if row.ran), key=lambda row: (row.begin_s, row.end_s))
        self.attempts: dict[str, list[Attempt]] = {}
        for row in sorted(rows, key=lambda row: row.number):
            self.attempts.setdefault(row.job, []).append(row)
        self.rejected = {row.job for row in rows if row.state == REJECTED}

    def ended(self, name: str) -> str:
        """The state of the last attempt of a job."""
        return self.attempts[name][-1].state

    @cached_property
    def states(self) -> list[list[tuple[float, int]]]:
        """(time in s, state from then on) of each host.

        A request is written as switching for all of its hosts, until the last one has switched: one that computes
        already, or sleeps, is in its new state at once, and may have another one before the row of the end.
        """
        lines = [[(0.0, host.initial_pstate)] for host in self.case.platform.hosts]
        at_once: dict[str, frozenset[int]] = {}
        rows = self.record.pstate_changes
        for i, (time_s, text, state) in enumerate(rows):
            hosts = ids(from_text(text))
            if state >= 0:
                there = at_once.pop(text, frozenset[int]())
                for host in hosts:
                    if host not in there:
                        lines[host].append((time_s, state))
                continue
            final = next((later for _, other, later in rows[i:] if other == text and later >= 0), None)
            there = frozenset(host for host in hosts if self._is_there(host, lines[host][-1][1], state))
            at_once[text] = there
            for host in hosts:
                new = state if host not in there else lines[host][-1][1] if final is None else final
                lines[host].append((time_s, new))
        return lines

    def _is_there(self, host: int, now: int, request: int) -> bool:
        """Whether a host in state `now` needs not switch for a request to compute or to sleep."""
        asleep = now in self.case.platform.hosts[host].sleep_of
        return now >= 0 and request == (SWITCHING_OFF if asleep else SWITCHING_ON)

    @cached_property
    def loads(self) -> list[list[Attempt]]:
        """The runs of each host, in order of time."""
        loads: list[list[Attempt]] = [[] for _ in self.case.platform.hosts]
        for run in self.ran:
            for host in run.hosts:
                loads[host].append(run)
        return loads

    def spans(self, host: int, until_s: float) -> Iterator[tuple[float, float, int]]:
        """(begin, end, state) of a host, from 0 to a time."""
        for (begin_s, state), (end_s, _) in itertools.pairwise([*self.states[host], (until_s, 0)]):
            if begin_s < min(end_s, until_s):
                yield begin_s, min(end_s, until_s), state

    def watts(self, host: int, until_s: float) -> Iterator[tuple[float, float, float]]:
        """(begin, end, power in W) of a host, from 0 to a time."""
        described = self.case.platform.hosts[host]
        for begin_s, end_s, state in self.spans(host, until_s):
            pstate = described.pstates[pstate_of(described, state)]
            inside = [run for run in self.loads[host] if run.begin_s < end_s and run.end_s > begin_s]
            edges = {time_s for run in inside for time_s in (run.begin_s, run.end_s) if begin_s < time_s < end_s}
            for low_s, high_s in itertools.pairwise(sorted({begin_s, end_s, *edges})):
                now = [run for run in inside if run.begin_s <= low_s and run.end_s >= high_s]
                # a delay takes no power
                busy = any(self.jobs[run.job]["_profile"]["type"] != "delay" for run in now)
                yield low_s, high_s, pstate.full_w if busy else pstate.idle_w

    def work_s(self, run: Attempt) -> float:
        """What a run has done, in s at the nominal speed: its flops at the speed of its slowest host, or its delay."""
        if self.jobs[run.job]["_profile"]["type"] == "delay":
            return run.end_s - run.begin_s
        hosts = [self.case.platform.hosts[host] for host in run.hosts]
        changes = [self.states[host.id] for host in hosts]
        edges = {time_s for line in changes for time_s, _ in line if run.begin_s < time_s < run.end_s}
        done = 0.0
        for low_s, high_s in itertools.pairwise(sorted({run.begin_s, run.end_s, *edges})):
            now = [line[bisect_right(line, (low_s, math.inf)) - 1][1] for line in changes]
            speeds = (host.pstates[state].speed_flops for host, state in zip(hosts, now, strict=True))
            done += (high_s - low_s) * min(speeds)
        return done / self.case.platform.fastest_flops

    def length_s(self, name: str) -> float:
        """How long a job takes at the nominal speed when it begins from zero, s."""
        job = self.jobs[name]
        profile = job["_profile"]
        if profile["type"] == "delay":
            return float(job.get("length_s", profile["delay"]))
        return float(profile["cpu"]) / self.case.platform.fastest_flops


def pstate_of(host: Host, state: int) -> int:
    """The p-state of a state of `_pstate_changes.csv`: hosts of tests have one way to sleep."""
    if state >= 0:
        return state
    return host.sleeps[0].switch_on if state == SWITCHING_ON else host.sleeps[0].switch_off


# 1. jobs ------------------------------------------------------------------------------------------------------------


def each_job_has_one_outcome(run: Observed) -> None:
    """All attempts but the last are killed; the last completes, or is rejected, lost or given up for a reason."""
    case = run.case
    assert run.attempts.keys() == run.jobs.keys()
    for name, own in run.attempts.items():
        assert [attempt.number for attempt in own] == list(range(len(own))), own
        *before, last = own
        assert all(attempt.state == KILLED or (attempt.part and attempt.state == COMPLETED) for attempt in before), own
        over = case.until_s is not None and last.end_s >= case.until_s - LAG_S
        if last.state == REJECTED:
            reason = over if last.metadata == WINDOW_OVER else may_be_rejected(run, run.jobs[name])
            assert reason, (own, last.metadata)
        elif last.state == KILLED or last.part:
            assert over or case.victim.lost, own
        else:
            assert last.state in (COMPLETED, WALLTIME), own


def may_be_rejected(run: Observed, job: Job) -> bool:
    """Whether a job is wider than the platform, than what there is in the end, or hopeless for its system."""
    case = run.case
    width = -(-job["res"] // case.cores)
    stay = len(case.platform) - sum(math.isinf(end_s) for _, _, end_s in case.away)
    if width * case.cores > stay or (case.hopeless and case.hopeless(run, job)):
        return True
    if case.capacity is not None and width > case.capacity.values[-1]:
        return True
    return case.envelope is not None and case.envelope.values[-1] < sum(host.full_w for host in case.platform.hosts)


def attempts_follow_each_other(run: Observed) -> None:
    """No attempt begins before its job is submitted, or before the one before has ended."""
    for name, own in run.attempts.items():
        earliest_s = float(run.jobs[name]["subtime"])
        for attempt in own:
            assert not attempt.ran or attempt.begin_s >= earliest_s - WRITTEN_S, own
            earliest_s = attempt.end_s


# 2. hosts -----------------------------------------------------------------------------------------------------------


def no_host_has_two_jobs(run: Observed) -> None:
    """The runs of a host do not overlap."""
    for load in run.loads:
        for one, two in itertools.pairwise(load):
            assert one.end_s <= two.begin_s + WRITTEN_S, (one, two)


def jobs_have_the_hosts_they_asked_for(run: Observed) -> None:
    """As many as they ask for, on as few machines as can be where that is promised."""
    for attempt in run.ran:
        width = run.jobs[attempt.job]["res"]
        assert attempt.row.requested_number_of_resources == width == len(attempt.hosts), attempt
        assert not run.case.compact or len(attempt.machines(run.case.cores)) == -(-width // run.case.cores), attempt


# 3. states ----------------------------------------------------------------------------------------------------------


def nothing_runs_on_hosts_that_sleep_or_switch(run: Observed) -> None:
    """A run and the time in which one of its hosts is off, or switches, do not overlap."""
    for host, load in enumerate(run.loads):
        sleeping = run.case.platform.hosts[host].sleep_of
        for begin_s, end_s, state in run.spans(host, CALM_S):
            if state < 0 or state in sleeping:
                for attempt in load:
                    assert attempt.end_s <= begin_s + 1e-6 or attempt.begin_s >= end_s - 1e-6, (attempt, begin_s, end_s)


def hosts_that_switch_are_left_alone(run: Observed) -> None:
    """A host that is switched off sleeps next, and one that is switched on computes next."""
    for host, states in enumerate(run.states):
        sleeping = run.case.platform.hosts[host].sleep_of
        for (_, one), (time_s, two) in itertools.pairwise(states):
            assert one != SWITCHING_OFF or two in sleeping, (host, time_s)
            assert one != SWITCHING_ON or (two >= 0 and two not in sleeping), (host, time_s)


def nothing_starts_out_of_service(run: Observed) -> None:
    """No run begins on a host while that is out of service."""
    for host, begin_s, end_s in run.case.away:
        for attempt in run.loads[host]:
            assert not begin_s + LAG_S < attempt.begin_s < end_s - LAG_S, (attempt, begin_s, end_s)


# 4. limits ----------------------------------------------------------------------------------------------------------


def machines_in_use_are_alive(run: Observed) -> None:
    """At no time do more machines have a job than the capacity allows, but for the moment of a change."""
    case, capacity = run.case, run.case.capacity
    if capacity is None:
        return
    steps = list(zip(capacity.times_s, capacity.values, strict=True))
    for time_s in sorted({attempt.begin_s + LAG_S for attempt in run.ran} | {at + LAG_S for at in capacity.times_s}):
        around = [count for at, count in steps if time_s - LAG_S < at <= time_s + LAG_S]
        allowed = max([capacity.at(time_s - LAG_S), *around])
        used = {machine for attempt in run.ran if attempt.goes_at(time_s) for machine in attempt.machines(case.cores)}
        assert len(used) <= allowed, (time_s, used, allowed)


def the_cap_is_kept(run: Observed) -> None:
    """In each step of the envelope no more is drawn than the cap, if that is possible (Eq. 2 of the powercap paper).

    It is possible if all hosts could sleep that do not switch when the step begins.
    """
    envelope = run.case.envelope
    if envelope is None:
        return
    end_s = max((attempt.end_s for attempt in run.ran), default=0.0)
    lines = [list(run.watts(host, end_s)) for host in range(len(run.case.platform))]
    edges = sorted({time_s for line in lines for low_s, high_s, _ in line for time_s in (low_s, high_s)})
    for begin_s, until_s, cap_w in envelope.steps(0.0, end_s):
        if sum(least_w(run, host, begin_s) for host in range(len(lines))) > cap_w + 1e-6:
            continue
        inside = [begin_s, *(time_s for time_s in edges if begin_s < time_s < until_s), until_s]
        for low_s, high_s in itertools.pairwise(inside):
            if high_s - low_s > 10 * WRITTEN_S:
                middle_s = (low_s + high_s) / 2
                drawn_w = sum(watts for line in lines for begin, end, watts in line if begin <= middle_s < end)
                assert drawn_w <= cap_w + 1e-3, (middle_s, drawn_w, cap_w)


def least_w(run: Observed, host: int, time_s: float) -> float:
    """The least power in W that a host can promise for the step that begins at a time: asleep, if it can go off."""
    described = run.case.platform.hosts[host]
    line = [state for at, state in run.states[host] if at < time_s - 1e-9] or [described.initial_pstate]
    state = line[-1]
    watts = {index: pstate.full_w for index, pstate in enumerate(described.pstates)}
    if not described.sleeps:
        return described.pstates[state].idle_w
    sleep = described.sleeps[0]
    if state in described.sleep_of:
        return watts[state]
    if state == SWITCHING_ON:
        following = [at for at, _ in run.states[host] if at >= time_s - 1e-9]
        woken = [now for at, now in run.states[host] if at == following[0]] if following else list(described.compute)
        return max(watts[sleep.switch_on], watts[woken[-1]] if woken[-1] >= 0 else 0.0)
    return max(watts[sleep.sleep], watts[sleep.switch_off])


def kills_have_a_cause(run: Observed) -> None:
    """Under a capacity a run is killed when that falls, or when the window ends, if no other job may stop it."""
    case, capacity = run.case, run.case.capacity
    if capacity is None or case.stops:
        return
    steps = itertools.pairwise(zip(capacity.times_s, capacity.values, strict=True))
    causes = [at for (_, before), (at, now) in steps if now < before] + [case.until_s] * (case.until_s is not None)
    for attempt in run.ran:
        assert attempt.state != KILLED or any(abs(at - attempt.end_s) <= LAG_S for at in causes), attempt


# 5. work ------------------------------------------------------------------------------------------------------------


def work_is_conserved(run: Observed) -> None:
    """What was saved and the last run add up to the length of a job; walltimes end runs, and nothing else does."""
    victim = run.case.victim
    for name, own in run.attempts.items():
        length_s, recovery_s = run.length_s(name), 0.0
        profile = run.jobs[name]["_profile"]
        saved_s = length_s - profile["delay"] if profile["type"] == "delay" else 0.0
        for attempt in own:
            if not attempt.ran:
                continue
            work_s = run.work_s(attempt)
            whole_s = recovery_s + length_s - saved_s
            if attempt.state == COMPLETED and not attempt.part:
                assert work_s == pytest.approx(whole_s, abs=LAG_S), (own, whole_s)
            elif attempt.state == WALLTIME:
                lasted_s = attempt.end_s - attempt.begin_s
                assert lasted_s == pytest.approx(attempt.row.requested_time, abs=LAG_S), attempt
                assert work_s <= whole_s + LAG_S
            else:
                assert work_s <= whole_s + LAG_S, (own, whole_s)
                moved = attempt.metadata.startswith((MIGRATED, SUSPENDED, PIECE))
                useful_s = work_s - recovery_s - (0.0 if moved else victim.checkpoint_s)
                if run.case.options.get("mapping") == "migration" and attempt.metadata.startswith(MIGRATED):
                    # at no cost: a recovery goes on where the job goes
                    saved_s += max(0.0, useful_s)
                    recovery_s = max(0.0, -useful_s)
                    continue
                if not (victim.keeps or moved):
                    saved_s = 0.0
                elif useful_s >= 0.0:
                    saved_s += useful_s
                recovery_s = victim.recovery_s if saved_s > 1e-6 else 0.0


# 7. energy ----------------------------------------------------------------------------------------------------------


def energy_is_that_of_the_states(run: Observed) -> None:
    """The reported energy is the sum over hosts and states of power x time, at every row of the energy."""
    if not run.record.energy:
        return
    columns = run.record.consumed_energy.columns()
    times = [float(time_s) for time_s in columns["time"]]
    lines = [list(run.watts(host, times[-1])) for host in range(len(run.case.platform))] if times else []
    for time_s, energy_j in zip(times, columns["energy"], strict=True):
        spent_j = math.fsum(
            (min(high_s, time_s) - low_s) * watts for line in lines for low_s, high_s, watts in line if low_s < time_s
        )
        assert float(energy_j) == pytest.approx(spent_j, rel=1e-6, abs=0.05), time_s


LAWS = (
    each_job_has_one_outcome,
    attempts_follow_each_other,
    no_host_has_two_jobs,
    jobs_have_the_hosts_they_asked_for,
    nothing_runs_on_hosts_that_sleep_or_switch,
    hosts_that_switch_are_left_alone,
    nothing_starts_out_of_service,
    machines_in_use_are_alive,
    the_cap_is_kept,
    kills_have_a_cause,
    work_is_conserved,
    energy_is_that_of_the_states,
)
"""What holds for every system."""
