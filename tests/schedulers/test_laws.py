"""Laws of every system, and of the gym's environment, on drawn cases."""

from __future__ import annotations

import itertools
import math
from bisect import bisect_right
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any
from unittest.mock import patch

import pytest
from cases import (
    CORES,
    MACHINES,
    MEMORY,
    SERVERS,
    carbon,
    checkpoint,
    dates,
    gym,
    jobpower,
    multifactor,
    oversubscribed,
    planned,
    powercap,
    replay,
    request_of,
    riskaware,
    tens,
    varcap,
)
from checkpoint_talk import spans_of
from examples import examples
from hypothesis import HealthCheck, Phase, assume, find, given, settings
from hypothesis import strategies as st
from laws import (
    COMPLETED,
    KILLED,
    LAG_S,
    LAWS,
    REJECTED,
    WRITTEN_S,
    Case,
    Observed,
    attempts_follow_each_other,
    jobs_have_the_hosts_they_asked_for,
    machines_in_use_are_alive,
    no_host_has_two_jobs,
    nothing_runs_on_hosts_that_sleep_or_switch,
    nothing_starts_out_of_service,
)
from links import Race, ThroughText

from batwatt.model.attempt import CHECKPOINT, CHECKPOINTED, MIGRATED, RECOVERY, SUSPENDED, WINDOW_OVER
from batwatt.model.platform import STANDSTILL
from batwatt.model.record import JobRow
from batwatt.model.timeline import Timeline
from batwatt.protocol.events import envelope_events
from batwatt.results.run_files import write_record
from batwatt.schedulers.checkpoint import Checkpoint
from batwatt.schedulers.checkpoint.segments import UNFIT
from batwatt.schedulers.riskaware import Riskaware
from batwatt.scheduling.registry import make, names

pytestmark = pytest.mark.usefixtures("quiet")

# laws of one system -------------------------------------------------------------------------------------------------


def jobs_wait_for_those_they_depend_on(run: Observed) -> None:
    """No job begins before those that it depends on have completed."""
    for attempt in run.ran:
        for other in run.jobs[attempt.job].get("depends_on", ()):
            last = run.attempts[other][-1]
            assert last.state == COMPLETED and last.end_s <= attempt.begin_s + LAG_S, (last, attempt)


def machines_have_memory_and_are_dedicated(run: Observed) -> None:
    """Jobs of one machine fit into its memory; a job wider than a machine, or dedicated, shares none."""
    options = run.case.options
    for attempt in run.ran:
        job, own = run.jobs[attempt.job], attempt.machines(CORES)
        now = [other for other in run.ran if other is not attempt and other.begin_s <= attempt.begin_s
               and other.end_s > attempt.begin_s + LAG_S and other.machines(CORES) & own]  # fmt: skip
        widest = max(run.jobs[other.job]["res"] for other in (attempt, *now))
        assert not (now and (options.get("nodes") == "dedicated" or widest > CORES)), (attempt, now)
        if "machine_memory" in options:
            memory = job["memory"] + sum(run.jobs[other.job]["memory"] for other in now)
            assert memory <= MEMORY * len(own), (attempt, now)


def moved_jobs_go_on_at_once(run: Observed) -> None:
    """Ideal migration: at a fall of the capacity a run ends, and its next one begins."""
    for own in run.attempts.values():
        for one, two in itertools.pairwise(own):
            if one.metadata == MIGRATED and run.case.options["mapping"] == "migration":
                assert two.begin_s == pytest.approx(one.end_s, abs=LAG_S), own


def jobs_are_stopped_for_others_now_and_then_only(run: Observed) -> None:
    """No more often than the rule of preemption allows, beside falls of the capacity and the end of the window."""
    if "preemption" not in run.case.options:
        return
    changes = [*run.case.capacity.times_s, run.case.until_s or 0.0]
    for own in run.attempts.values():
        stopped = [one for one in own if one.state == KILLED and all(abs(at - one.end_s) > LAG_S for at in changes)]
        assert len(stopped) <= run.case.options["preemption"]["most"], own


def jobs_share_the_cores_that_there_are(run: Observed) -> None:
    """Cores in use by speed are those of the machines at most, but at a standstill; no job is too fast, or ahead."""
    host, capacity = run.case.platform.hosts[0], run.case.options["capacity"]
    speeds = [pstate.speed_flops / host.pstates[host.initial_pstate].speed_flops for pstate in host.pstates]
    edges = {time_s for line in run.states for time_s, _ in line} | {*capacity.times_s}
    edges |= {time_s for attempt in run.ran for time_s in (attempt.begin_s, attempt.end_s)}
    done_s = dict.fromkeys(run.jobs, 0.0)
    for low_s, high_s in itertools.pairwise(sorted(edges)):
        used = 0.0
        for attempt in run.ran:
            if attempt.begin_s <= low_s and high_s <= attempt.end_s:
                lines = (run.states[host] for host in attempt.hosts)
                [state] = {line[bisect_right(line, (low_s, math.inf)) - 1][1] for line in lines}
                use = run.jobs[attempt.job]["use"]
                assert speeds[state] <= max(1.0, 1.0 / use) + 1e-9, attempt
                done_s[attempt.job] += speeds[state] * (high_s - low_s)
                assert done_s[attempt.job] <= high_s - attempt.begin_s + LAG_S, attempt
                used += len(attempt.hosts) * use * (speeds[state] - STANDSTILL)
        allowed = capacity.at(low_s) * CORES / run.case.options["oversubscription"]
        assert high_s - low_s < 2 * LAG_S or used <= allowed + 1e-6, (low_s, used, allowed)


def the_first_machines_are_alive(run: Observed) -> None:
    """Strategies that know which machines leave use the first ones, as many as are alive."""
    options, capacity = run.case.options, run.case.capacity
    if capacity is None or (options["strategy"] == "first-fit-unaware" and not options.get("as_published", False)):
        return
    for attempt in run.ran:
        inside = [at for at in capacity.times_s if attempt.begin_s + LAG_S < at < attempt.end_s - LAG_S]
        least = min(capacity.at(at) for at in (attempt.begin_s + LAG_S, *inside))
        assert attempt.end_s - attempt.begin_s < 2 * LAG_S or max(attempt.machines(CORES)) < least, attempt


def runs_are_suspended_and_not_killed(run: Observed) -> None:
    """Whatever becomes of the capacity, plans go around it."""
    assert all(attempt.metadata == SUSPENDED for attempt in run.ran if attempt.state == KILLED)


def saved_work_adds_up(run: Observed) -> None:
    """What was saved is not done again, overheads last as long as they should, and metadata have known causes."""
    options = run.case.options
    for name, spans in spans_of(run.record).items():
        job = run.jobs[name]
        checkpoint_s = job.get("checkpoint_s", options.get("checkpoint_s", 60.0))
        recovery_s = job.get("recovery_s", options.get("recovery_s", 60.0))
        work_s = saved_s = 0.0
        before: tuple[Any, ...] = ("", 0.0, 0.0, "", False)
        for kind, begin, end, state, saved, _ in spans:
            if kind == "recovery":
                work_s = saved_s
                assert end - begin <= recovery_s + LAG_S, spans
            elif kind == "checkpoint":
                assert before[0] == "work" and before[4] and begin == pytest.approx(before[2], abs=2e-5), spans
                assert end - begin <= checkpoint_s + LAG_S, spans
                saved_s = work_s if state == COMPLETED else saved_s
            else:
                resumed = before[0] == "work" and not before[4]
                work_s = (saved_s if resumed else work_s) + end - begin
                saved_s = work_s if saved and checkpoint_s == 0.0 else saved_s
                assert state != COMPLETED or work_s == pytest.approx(run.length_s(name), abs=LAG_S), spans
            before = (kind, begin, end, state, saved)
        assert work_s <= run.length_s(name) + LAG_S, spans
    causes = {"", CHECKPOINTED, CHECKPOINT, RECOVERY, WINDOW_OVER}
    reasons = {*causes, UNFIT, "no machine is alive any more"}
    for row in run.record.jobs:
        assert row.metadata in (reasons if row.final_state == REJECTED else causes), row


# the suite ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class System:
    """The cases of a system or of a part of it, how many are drawn, whether some of them kill, and its laws."""

    cases: st.SearchStrategy[Case]
    count: int = 200
    kills: bool = True
    laws: tuple[Callable[[Observed], None], ...] = LAWS
    through_text: bool = True
    """Whether messages of its runs can be Batsim's text."""


OF_VARCAP = (
    jobs_wait_for_those_they_depend_on,
    machines_have_memory_and_are_dedicated,
    moved_jobs_go_on_at_once,
    jobs_are_stopped_for_others_now_and_then_only,
)
OF_CHECKPOINT = tuple(law for law in LAWS if law.__name__ != "work_is_conserved")
WHOLE = {
    "checkpoint": System(checkpoint(), laws=(*OF_CHECKPOINT, saved_work_adds_up)),
    "oversubscribed": System(oversubscribed(), laws=(*LAWS, jobs_share_the_cores_that_there_are)),
    "carbon": System(carbon(), 100, laws=(*LAWS, runs_are_suspended_and_not_killed)),
    "jobpower": System(jobpower()),
    "planned": System(planned(), kills=False),
    "replay": System(replay(), kills=False),
    "multifactor": System(multifactor(), kills=False),
    "gym": System(gym(), 150, through_text=False),
}
PARTS = {
    **{f"powercap-{name}": System(powercap(name), 120, kills=name != "none") for name in names("response")},
    **{f"varcap-{name}": System(varcap(name), 120, laws=(*LAWS, *OF_VARCAP)) for name in names("mapping")},
    **{f"riskaware-{name}": System(riskaware(name), 120, laws=(*LAWS, the_first_machines_are_alive))
       for name in names("strategy")},
}  # fmt: skip
EACH = WHOLE | PARTS
of_powercap = st.sampled_from([name for name in names("response") if name != "none"]).flatmap(powercap)
of_varcap = st.sampled_from(names("mapping")).flatmap(varcap)
of_riskaware = st.sampled_from(names("strategy")).flatmap(riskaware)
SYSTEMS = WHOLE | {
    "powercap": System(of_powercap),
    "varcap": System(of_varcap),
    "riskaware": System(of_riskaware),
}
"""Systems with all of their parts."""
many_examples = partial(examples, suppress_health_check=[HealthCheck.too_slow])
KILLING: set[str] = set()
"""Systems of which `test_laws` has seen a kill."""


@pytest.mark.parametrize("name", EACH)
def test_laws(name, tmp_path):
    """All laws hold; two runs write the same, and so does one whose messages are Batsim's text."""
    system = EACH[name]
    runs: list[Observed] = []

    def check(case: Case) -> None:
        runs[:] = [case.run(), case.run()]
        if any(attempt.state == KILLED for attempt in runs[0].ran):
            KILLING.add(name)
        for law in system.laws:
            law(runs[0])
        assert runs[0].record == runs[1].record
        if system.through_text:
            the_text_gives_the_same(case, runs[0], system.laws)

    many_examples(system.count)(given(system.cases)(check))()
    one, two = (write_record(run.record, tmp_path / f"{i}") for i, run in enumerate(runs))
    assert [path.read_bytes() for path in one] == [path.read_bytes() for path in two]


def the_text_gives_the_same(case: Case, run: Observed, laws: Iterable[Callable[[Observed], None]]) -> None:
    """Through Batsim's text rows are equal, but for the order of equal ends; without its times the laws hold."""
    through_text = case.run(ThroughText)
    if case.exact:
        # ends that differ by less than the text has decimals
        rows = (sorted(record.jobs, key=lambda row: row.job_id) for record in (through_text.record, run.record))
        for one, two in zip(*rows, strict=True):
            assert alike(one, two), (one, two)
    else:
        for law in laws:
            law(through_text)


def alike(one: JobRow, two: JobRow) -> bool:
    """Whether two rows are equal, their times and energies to the decimals that messages have; `stretch` divides."""
    cells = zip(one._replace(stretch=None), two._replace(stretch=None), strict=True)
    return all(x == y or (isinstance(x, float) and abs(x - y) <= WRITTEN_S * max(1.0, abs(x))) for x, y in cells)


def some_run_is_killed(case: Case) -> bool:
    """Whether the case has a run that is killed."""
    return any(attempt.state == KILLED for attempt in case.run().ran)


@pytest.mark.parametrize("name", [name for name, system in EACH.items() if system.kills])
def test_some_run_is_killed(name):
    """The laws see kills: among as many cases as it takes, up to 1000, there is one with a kill."""
    if name in KILLING:
        return
    of_kills = settings(max_examples=1000, phases=[Phase.generate], database=None, deadline=None)
    find(EACH[name].cases, some_run_is_killed, settings=of_kills)


NEVER_LOST = (attempts_follow_each_other, no_host_has_two_jobs, jobs_have_the_hosts_they_asked_for)


@pytest.mark.parametrize("name", [name for name, system in SYSTEMS.items() if system.kills and name != "gym"])
def test_kills_that_come_too_late(name):
    """Jobs end before they can be killed, as on a real Batsim: none is lost, and machines are not shared."""

    def check(case: Case) -> None:
        run = case.run(Race)
        assert run.attempts.keys() == run.jobs.keys()
        for law in (*NEVER_LOST, machines_in_use_are_alive):
            law(run)

    many_examples(120)(given(SYSTEMS[name].cases)(check))()


STEADY = {"powercap-none": PARTS["powercap-none"]} | {
    name: SYSTEMS[name] for name in ("jobpower", "replay", "oversubscribed", "multifactor")
}
"""Systems that switch no host. A host that switches would be available again."""
MAY_BE_STEADY = {name: SYSTEMS[name] for name in ("varcap", "riskaware", "checkpoint", "carbon")}
"""Machines of these need not be switched."""


@pytest.mark.parametrize("name", STEADY | MAY_BE_STEADY)
def test_hosts_out_of_service(name):
    """Nothing starts on a host that is away for a while, and no job is lost."""
    draws = st.tuples((STEADY | MAY_BE_STEADY)[name].cases, st.integers(0, 4), dates, tens)

    def check(drawn: tuple[Case, int, float, float]) -> None:
        case, host, begin_s, lasts_s = drawn
        if name in MAY_BE_STEADY:
            case.options["switch"] = False
        run = replace(case, away=((host, begin_s, begin_s + 3 * lasts_s),)).run()
        assert run.attempts.keys() == run.jobs.keys()
        for law in (*NEVER_LOST, nothing_runs_on_hosts_that_sleep_or_switch, nothing_starts_out_of_service):
            law(run)

    many_examples(120)(given(draws)(check))()


# tests of one system ------------------------------------------------------------------------------------------------


def leave_out(case: Case, *options: str) -> None:
    """Have these options as they are by default."""
    for name in options:
        case.options.pop(name, None)


@many_examples(200)
@given(case=of_powercap)
def test_an_envelope_told_by_events_gives_the_same_result(case):
    options, series = case.options, case.options["envelope"]
    leave_out(case, "forecast_steps", "forecast_error")
    # without work to do, whether a step at the very time of Batsim's last words acts depends on how it splits messages
    assume(case.jobs)
    jobs = [job | {"res": min(job["res"], len(SERVERS))} for job in case.jobs]
    if make("response", options["response"]).between_steps:
        # it looks at the queue: whether it sees a job of the very time of a step depends on that, too
        jobs = [job | {"subtime": job["subtime"] + 0.5 * (job["subtime"] % 60.0 == 0.0)} for job in jobs]
    by_file = replace(case, jobs=tuple(jobs)).run().record
    options["envelope"] = "events"
    assert replace(case, jobs=tuple(jobs), events=tuple(envelope_events(series))).run().record == by_file


@many_examples(100)
@given(case=varcap("longshort"))
def test_longshort_never_kills_long_jobs(case):
    options = case.options
    leave_out(case, "until_s", "knowledge", "preemption", "run_times")
    options["stable"] = int(min(*case.capacity.values, options.get("stable", MACHINES), MACHINES))
    run = case.run()
    for attempt in run.ran:
        job = run.jobs[attempt.job]
        long = request_of(job, run.length_s(job["id"])) > options["long_s"]
        assert not (attempt.state == KILLED and long), attempt


@many_examples(200)
@given(case=of_varcap)
def test_nothing_fails_that_is_foreseen(case):
    # run times are exact, at most 300 s; the stable group of longshort stays in service without a job
    leave_out(case, "until_s", "foresight_noise", "foresight_missed", "preemption", "run_times")
    case.options.update(knowledge="exact", foresight_h=300.0 / 3600.0)
    if case.options["mapping"] == "longshort":
        case.options["stable"] = 0
    assert not [attempt for attempt in case.run().ran if attempt.state == KILLED]


@many_examples(200)
@given(case=checkpoint())
def test_no_work_is_lost_with_a_warning_and_a_true_k(case):
    leave_out(case, "k", "warning_s", "checkpoint_s", "until_s")
    half_s = case.capacity.times_s[1] / 2 if len(case.capacity) > 1 else math.inf
    costs = ("checkpoint_s", "recovery_s")
    jobs = [job | {name: min(job.get(name, 0.0), half_s) for name in costs} for job in case.jobs]
    run = replace(case, jobs=tuple(jobs)).run()
    assert not [attempt for attempt in run.ran if attempt.state == KILLED and not attempt.metadata]


def all_that_fit(self, room, of=iter):
    """Every waiting job that fits, whatever waits beside it."""
    waiting = [task for alike in self.segments.kinds.values() for task in of(alike) if task.width <= room]
    return sorted(waiting, key=lambda task: task.number)


def one_by_one(self, hurried, now_s, alike):
    """Every job looked at on its own."""
    return iter([task for task in self._idle(alike) if self._at_risk(task, now_s) == hurried])


@many_examples(60)
@given(case=checkpoint(st.sampled_from([0.0, 10.0, 200.0]), most=50, least=10))
def test_jobs_that_plans_of_checkpoint_leave_out(case):
    record = case.run().record
    with patch.multiple(Checkpoint, _plannable=all_that_fit, _idle_tasks=one_by_one):
        assert case.run().record.jobs == record.jobs


class Witness:
    """A planner of riskaware that notes its jobs by length, and those that end earlier than planned."""

    def __init__(self, planner: Any) -> None:
        self.planner = planner
        self.numbers: dict[float, int] = {}
        self.early: set[int] = set()

    def __getattr__(self, name: str) -> Any:
        return getattr(self.planner, name)

    def advance(self, time_s, alive=None, arrivals=()):
        """Go on to a time."""
        self.numbers |= {round(job.length_s, 6): job.number for job in arrivals}
        return self.planner.advance(time_s, alive, arrivals)

    def ended(self, number, time_s):
        """A job has ended by itself."""
        self.early.add(number)
        return self.planner.ended(number, time_s)


@many_examples(100)
@given(case=of_riskaware)
def test_runs_of_riskaware_are_those_of_its_plans(case):
    """What completes does so on the machine and at the time of its plan, to a millisecond."""
    assume(case.capacity is not None)
    leave_out(case, "victim", "platform")
    witnesses: list[Witness] = []

    class Watched(Riskaware):
        def onSimulationBegins(self):
            super().onSimulationBegins()
            self.planner = Witness(self.planner)
            witnesses.append(self.planner)

    run = replace(case, kind=Watched).run()
    for attempt in run.ran:
        job = run.jobs[attempt.job]
        told_s = round(job.get("walltime", run.length_s(attempt.job)), 6)
        number = witnesses[0].numbers.get(told_s)
        if attempt.state == COMPLETED:
            assert attempt.machines(CORES) == {witnesses[0].machine_of(number)}
            assert number in witnesses[0].early or abs(attempt.end_s - witnesses[0].end_s(number)) <= LAG_S, attempt


# series -------------------------------------------------------------------------------------------------------------

LIMITED = {name: system for name, system in EACH.items() if name not in ("planned", "replay", "multifactor")}
SERIES = ("capacity", "envelope")


few_examples = examples(15, suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much])


def with_series(case: Case, change: Callable[[Timeline], Timeline]) -> Case:
    """The case with each of its limits changed."""
    limits = {name: change(case.options[name]) for name in SERIES if isinstance(case.options.get(name), Timeline)}
    assume(limits)
    own = {name: change(limit) for name in SERIES if (limit := getattr(case, name)) is not None}
    return replace(case, options=case.options | limits, **own)


@pytest.mark.parametrize("name", LIMITED)
def test_rows_cut_differently(name):
    """A value that does not change is no event: rows cut in two give the same jobs."""

    def check(case: Case, parts: list[float]) -> None:
        def cut(series: Timeline) -> Timeline:
            rows = list(zip(series.times_s, series.values, strict=True))
            ends = [*series.times_s[1:], series.times_s[-1] + 1000.0]
            lengths = zip(rows, ends, parts, strict=False)
            more = {at + round(part * (end_s - at), 3): value for (at, value), end_s, part in lengths if part}
            times, values = zip(*sorted((more | dict(rows)).items()), strict=True)
            return Timeline(times, values, series.name, unit=series.unit)

        one, two = case.run(), with_series(case, cut).run()
        assert list(one.record.jobs) == list(two.record.jobs)

    shares = st.lists(st.sampled_from([0.0, 0.5, 0.123]), min_size=12, max_size=12)
    few_examples(given(LIMITED[name].cases, shares)(check))()


@pytest.mark.parametrize("name", LIMITED)
def test_a_repetition_and_the_rows_written_out(name):
    """A series that repeats gives the jobs of the same series with many periods of rows."""

    def check(case: Case) -> None:
        def again(series: Timeline) -> Timeline:
            return replace(series, loop=0, period_s=series.times_s[-1] - series.times_s[0] + 100.0)

        looped = with_series(case, again)
        run = looped.run()
        assume(all(row.final_state != REJECTED for row in run.record.jobs))
        end_s = max((attempt.end_s for attempt in run.ran), default=0.0)
        written = with_series(
            looped,
            # to the end of a period
            lambda series: series.upto(
                series.times_s[0] + series.period_s * (40.0 + (end_s + 20_000.0) // series.period_s)
            ),
        ).run()
        assert list(run.record.jobs) == list(written.record.jobs)

    few_examples(given(LIMITED[name].cases)(check))()
