"""What no recording shows of Batsim 5's engine, worked out by hand; jobs run as on Batsim 4."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from protocol5_talk import CALL, PROFILES, SPREAD, execute, frame, workload

from batwatt.engine import events as ev
from batwatt.engine.core import Engine
from batwatt.engine.protocol5.engine import Engine5
from batwatt.engine.protocol5.events import Execute, Features, Place
from batwatt.engine.protocol5.text import read_reply, write_message
from batwatt.errors import DeadlockError, IllegalDecisionError, ProtocolError
from batwatt.model.platform import Host, Platform, PState
from batwatt.protocol.workload4 import parse_workload

PLATFORM = Platform(tuple(Host(i, f"h{i}", (PState(1e9, 50.0, 50.0, 100.0),), 2, has_power=True) for i in range(3)))


def reported(engine):
    """The next message: its time, and (event, fields) of it."""
    message = json.loads(write_message(engine.message()).removesuffix("\0"))
    return message["now"], [(event["event_type"].removesuffix("Event"), event["event"]) for event in message["events"]]


def test_a_part_of_a_sequence_runs_where_its_override_says(tmp_path):
    # half: 5e9 flop on each of two executors, which host 2 with its two cores does in 5 s; nap: 10 s. Hosts 0-1 draw
    # 50 W. SimGrid's meter charges host 2, 100 W, for the naps, too: it looks again when the half after a nap has ended
    load = workload(tmp_path, {"subtime": 0, "res": 2, "profile": "both"})
    engine = Engine5(PLATFORM, [load], [], Features(), energy=True)
    reported(engine)
    engine.reply(read_reply(frame(0)))
    reported(engine)
    override = [{"profile_id": "w0!half", "host_allocation": "2", **SPREAD}]
    engine.reply(read_reply(frame(0, execute("w0!0", "0-1", profile_allocation_override=override))))
    now, events = reported(engine)
    assert (now, events[0][0], events[0][1]["state"]) == (40.0, "JobCompleted", "COMPLETED_SUCCESSFULLY")
    engine.reply(read_reply(frame(40)))
    reported(engine)
    row = next(iter(engine.close().jobs))
    assert (row.allocated_resources, row.consumed_energy) == ("0-1", pytest.approx(2 * 50.0 * 40.0))
    assert list(engine.close().consumed_energy)[-1][1] == pytest.approx((2 * 50.0 + 100.0) * 40.0)


def test_progress_of_a_sequence_says_part_and_repetition(tmp_path):
    # deep: nap (10 s), both = 2 x (half 5 s, nap 10 s, half 5 s). At 37.5 s: 10 + 20 + 5 + 2.5: second round, its nap
    load = workload(tmp_path, {"subtime": 0, "profile": "deep"})
    engine = Engine5(PLATFORM, [load], [], Features(forward_profiles_on_jobs_killed=True), energy=False)
    reported(engine)
    engine.reply(read_reply(frame(0, ("CallMeLater", {**CALL, "when": {"time": 37500, "time_unit": "Millisecond"}}))))
    reported(engine)
    engine.reply(read_reply(frame(0, execute("w0!0", "1"))))
    assert reported(engine)[0] == 37.5
    engine.reply(read_reply(frame(37.5, ("KillJobs", {"job_ids": ["w0!0"]}))))
    _, ((_, ended), (_, killed)) = reported(engine)
    assert (ended["state"], ended["return_code"]) == ("COMPLETED_KILLED", 2**32 - 1)
    outer = killed["progresses"][0]["wrapper"]["kill_progress"]
    assert (outer["profile_id"], outer["current_repetition"], outer["current_task_index"]) == ("w0!deep", 0, 1)
    inner = outer["current_task_progress"]["kill_progress"]
    assert (inner["profile_id"], inner["current_repetition"], inner["current_task_index"]) == ("w0!both", 1, 1)
    leaf = inner["current_task_progress"]["kill_progress"]
    assert leaf == {"profile_id": "w0!nap", "progress": pytest.approx(0.25)}
    assert [(one["id"], one["profile"]) for one in killed["profiles"]] == [
        ("w0!deep", {"repetition_count": 1, "profile_ids": ["w0!nap", "w0!both"]})
    ]


def test_a_profile_comes_with_its_job_if_the_hello_asks_for_it(tmp_path):
    load = workload(tmp_path, {"subtime": 1, "profile": "nap", "extra_data": {"a": [1]}})
    engine = Engine5(PLATFORM, [load], [], Features(forward_profiles_on_job_submission=True), energy=False)
    reported(engine)
    engine.reply(read_reply(frame(0)))
    now, events = reported(engine)
    assert now == 1.0
    assert events[0] == (
        "JobSubmitted",
        {
            "job_id": "w0!0",
            "job": {"resource_request": 1, "walltime": None, "extra_data": '{"a":[1]}', "rigid": True,
                    "profile_id": "w0!nap"},
            "submission_time": 1.0,
            "profile": {"id": "w0!nap", "profile_type": "DelayProfile", "profile": {"delay": 10.0}},
        },
    )  # fmt: skip


def test_a_sequence_over_another_workload_needs_profile_reuse(tmp_path):
    load = workload(tmp_path, {"subtime": 0, "profile": "nap"})
    engine = Engine5(PLATFORM, [load], [], Features(), energy=False)
    reported(engine)
    sequence = {"id": "x!s", "profile_type": "SequentialCompositionProfile", "profile": {"profile_ids": ["w0!d"]}}
    delay = {"id": "w0!d", "profile_type": "DelayProfile", "profile": {"delay": 1}}
    job = {"resource_request": 1, "profile_id": "s"}
    profiles = [("RegisterProfile", {"profile": table}) for table in (delay, sequence)]
    engine.reply(read_reply(frame(0, *profiles, ("RegisterJob", {"job_id": "x!1", "job": job}), execute("x!1", "0"))))
    reported(engine)
    engine.reply(read_reply(frame(0)))
    with pytest.raises(IllegalDecisionError, match="ask for profile_reuse"):
        reported(engine)


def sequence_of(name, *parts):
    return {"id": name, "profile_type": "SequentialCompositionProfile", "profile": {"profile_ids": list(parts)}}


def test_a_sequence_over_another_workload_aborts_also_where_its_part_has_other_jobs(tmp_path):
    """`Profiles::remove_profile` looks for the parts of a sequence in the workload of the sequence."""
    loads = [workload(tmp_path, {"subtime": 0, "profile": "nap"}, name=name) for name in ("w0", "w1")]
    engine = Engine5(PLATFORM, loads, [], Features(), energy=False)
    reported(engine)
    job = {"resource_request": 1, "profile_id": "w0!s"}
    more = (
        ("RegisterProfile", {"profile": sequence_of("w0!s", "w1!nap")}),
        ("RegisterJob", {"job_id": "w0!1", "job": job}),
    )
    engine.reply(read_reply(frame(0, *more, execute("w0!1", "0"))))
    assert reported(engine)[0] == 0.0
    engine.reply(read_reply(frame(0)))
    with pytest.raises(IllegalDecisionError, match=r"'w1!nap' is of another workload.*ask for profile_reuse"):
        reported(engine)


def test_the_parts_of_a_registered_sequence_have_full_ids(tmp_path):
    """The message says `profile_ids` as they are looked up: map::at aborts for one without a workload."""
    engine = Engine5(PLATFORM, [workload(tmp_path, {"subtime": 0, "profile": "nap"})], [], Features(), energy=False)
    reported(engine)
    with pytest.raises(IllegalDecisionError, match="the profile 'nap' does not exist"):
        engine.reply(read_reply(frame(0, ("RegisterProfile", {"profile": sequence_of("w0!s", "nap")}))))


def test_a_profile_goes_with_the_first_of_its_jobs(tmp_path):
    """`Jobs::delete_job` removes it whichever other jobs have it: those run on."""
    load = workload(tmp_path, {"subtime": 0, "profile": "nap"}, {"subtime": 5, "profile": "nap"})
    engine = Engine5(PLATFORM, [load], [], Features(dynamic_registration=True), energy=False)
    reported(engine)
    engine.reply(read_reply(frame(0)))
    reported(engine)
    engine.reply(read_reply(frame(0, execute("w0!0", "0"))))
    reported(engine)
    engine.reply(read_reply(frame(5, execute("w0!1", "1"))))
    assert reported(engine) == (5.0, [("AllStaticJobsHaveBeenSubmitted", {})])
    engine.reply(read_reply(frame(5)))
    assert reported(engine)[0] == 10.0
    engine.reply(read_reply(frame(10)))
    now, [(name, ended)] = reported(engine)
    assert (now, name, ended["state"]) == (15.0, "JobCompleted", "COMPLETED_SUCCESSFULLY")
    job = {"resource_request": 1, "profile_id": "nap"}
    with pytest.raises(IllegalDecisionError, match="'w0!nap' existed some time ago"):
        engine.reply(read_reply(frame(15, ("RegisterJob", {"job_id": "w0!2", "job": job}))))


def test_a_sequence_keeps_parts_that_are_gone(tmp_path):
    # registered while its part has a job; when that has ended, no job has the part, but the sequence still does
    load = workload(tmp_path, {"subtime": 0, "profile": "nap"})
    engine = Engine5(PLATFORM, [load], [], Features(dynamic_registration=True), energy=False)
    reported(engine)
    engine.reply(read_reply(frame(0, ("RegisterProfile", {"profile": sequence_of("w0!s", "w0!nap")}))))
    reported(engine)
    engine.reply(read_reply(frame(0, execute("w0!0", "0"))))
    assert reported(engine)[0] == 10.0
    job = {"resource_request": 1, "profile_id": "s"}
    more = ("RegisterJob", {"job_id": "w0!1", "job": job}), execute("w0!1", "0"), ("FinishRegistration", {})
    engine.reply(read_reply(frame(10, *more)))
    assert reported(engine)[0] == 20.0


def test_calls_without_end_before_a_late_answer_are_refused(tmp_path):
    """Each second one, and an answer at 1e9 s: they would fill the memory."""
    engine = Engine5(PLATFORM, [workload(tmp_path, {"subtime": 0, "profile": "nap"})], [], Features(), energy=False)
    reported(engine)
    when = {"period": 1, "mode_type": "Infinite", "mode": {}}
    call = ("CallMeLater", {"call_me_later_id": "c", "when_type": "Periodic", "when": when})
    with pytest.raises(IllegalDecisionError, match="CallMeLater 'c': more than 100000 calls"):
        engine.reply(read_reply(b'{"now":1e9,' + frame(0, call).partition(b",")[2]))


def test_an_answer_at_the_end_of_time_is_refused(tmp_path):
    engine = Engine5(PLATFORM, [workload(tmp_path, {"subtime": 0, "profile": "nap"})], [], Features(), energy=False)
    reported(engine)
    with pytest.raises(ProtocolError, match=r"cannot tell of 1e\+300 s"):
        engine.reply(read_reply(frame(1e300)))


def test_a_call_where_times_have_no_milliseconds_is_refused(tmp_path):
    engine = Engine5(PLATFORM, [workload(tmp_path, {"subtime": 0, "profile": "nap"})], [], Features(), energy=False)
    reported(engine)
    when = {"period": 1, "mode_type": "Infinite", "mode": {}}
    call = ("CallMeLater", {"call_me_later_id": "c", "when_type": "Periodic", "when": when})
    with pytest.raises(IllegalDecisionError, match="a time in ms has no exact number"):
        engine.reply(read_reply(frame(1e13, call)))


def test_a_task_without_executors_is_refused(tmp_path):
    load = workload(tmp_path, {"subtime": 0, "profile": "half"})
    engine = Engine5(PLATFORM, [load], [], Features(), energy=False)
    reported(engine)
    engine.reply(read_reply(frame(0)))
    reported(engine)
    none = {"executor_placement_type": "CustomExecutorToHostMapping", "executor_placement": {"mapping": []}}
    with pytest.raises(IllegalDecisionError, match="no executor"):
        job = {"job_id": "w0!0", "allocation": {"host_allocation": "0", **none}}
        engine.reply(read_reply(frame(0, ("ExecuteJob", job))))


def test_jobs_of_several_workloads_come_with_the_begin(tmp_path):
    loads = [workload(tmp_path, {"subtime": 0, "profile": "nap"}, name=name) for name in ("w0", "w1")]
    engine = Engine5(PLATFORM, loads, [], Features(), energy=False)
    assert [name for name, _ in reported(engine)[1]] == ["SimulationBegins", "JobSubmitted", "JobSubmitted"]


def test_jobs_that_nobody_starts_are_a_deadlock(tmp_path):
    engine = Engine5(PLATFORM, [workload(tmp_path, {"subtime": 0, "profile": "nap"})], [], Features(), energy=False)
    reported(engine)
    engine.reply(read_reply(frame(0)))
    reported(engine)
    engine.reply(read_reply(frame(0)))
    with pytest.raises(DeadlockError):
        reported(engine)


# both Batsims ---------------------------------------------------------------------------------------------------------

BATSIM_4 = {
    "nap": {"type": "delay", "delay": 10},
    "half": {"type": "parallel_homogeneous", "cpu": 5e9, "com": 0},
    "both": {"type": "composed", "seq": ["half", "nap", "half"], "repeat": 2},
    "deep": {"type": "composed", "seq": ["nap", "both"]},
}
JOBS = st.lists(
    st.fixed_dictionaries(
        {"subtime": st.integers(0, 60), "res": st.integers(1, 3), "profile": st.sampled_from(list(PROFILES))},
        optional={"walltime": st.integers(1, 40)},
    ),
    max_size=8,
)


def first_come(engine, execute):
    """The rows of jobs of a simulation in which jobs start as they come, on the hosts with the lowest ids."""
    waiting, free, held = [], {0, 1, 2}, {}
    while not engine.ended:
        message = engine.message()
        for event in message.events:
            if isinstance(event, ev.JobSubmitted):
                waiting.append(engine.jobs[event.job_id])
            elif isinstance(event, ev.JobCompleted):
                free |= held.pop(event.job_id)
        decisions = []
        while waiting and waiting[0].hosts <= len(free):
            job = waiting.pop(0)
            held[job.id] = set(sorted(free)[: job.hosts])
            free -= held[job.id]
            decisions.append(execute(message.now, job.id, " ".join(map(str, sorted(held[job.id])))))
        engine.reply(ev.Reply(message.now, decisions))
    return sorted(engine.close().jobs)


@given(JOBS)
def test_jobs_run_as_on_batsim_4(tmp_path_factory, jobs):
    folder = tmp_path_factory.mktemp("both")
    four = {"nb_res": 3, "jobs": [{"id": str(i), **job} for i, job in enumerate(jobs)], "profiles": BATSIM_4}
    old = first_come(Engine(PLATFORM, [parse_workload(four, "w0", "w.json")]), ev.ExecuteJob)
    new = first_come(
        Engine5(PLATFORM, [workload(folder, *jobs)], [], Features()),
        lambda now, job, hosts: Execute(now, job, Place(hosts, "SpreadOverHostsFirst")),
    )
    for before, after in zip(old, new, strict=True):
        assert after.profile == f"w0!{before.profile}"
        for name in set(before._fields) - {"profile"}:
            expected = getattr(before, name)
            number = isinstance(expected, float)
            assert getattr(after, name) == (pytest.approx(expected, rel=1e-9, abs=1e-5) if number else expected), name
