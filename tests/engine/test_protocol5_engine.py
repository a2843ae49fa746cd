"""What no recording shows of Batsim 5's engine, worked out by hand; jobs run as on Batsim 4."""

from __future__ import annotations

import json

import pytest
from protocol5_talk import CALL, SPREAD, execute, frame, workload

from batwatt.batsim.batsim5_events import Features
from batwatt.batsim.batsim5_schema import read_reply, write_message
from batwatt.engine.server5 import Engine5
from batwatt.errors import DeadlockError, IllegalDecisionError, ProtocolError
from batwatt.model.platform import Host, Platform, PState

PLATFORM = Platform(tuple(Host(i, f"h{i}", (PState(1e9, 50.0, 50.0, 100.0),), 2, has_power=True) for i in range(3)))


def reported(engine):
    """The next message: its time, and (event, fields) of it."""
    message = json.loads(write_message(engine.message()).removesuffix("\0"))
    return message["now"], [(event["event_type"].removesuffix("Event"), event["event"]) for event in message["events"]]


def engine_of(tmp_path, *jobs, names=("w0",), energy=False, **features):
    loads = [workload(tmp_path, *jobs, name=name) for name in names]
    return Engine5(PLATFORM, loads, [], Features(**features), energy=energy)


def after(engine, *answers):
    """The message after these answers, each to a message of its own."""
    for answer in answers:
        reported(engine)
        engine.reply(read_reply(answer))
    return reported(engine)


def profile(name, *parts):
    """The registration of a delay, or of a sequence of parts."""
    kind, fields = "DelayProfile", {"delay": 1}
    if parts:
        kind, fields = "SequentialCompositionProfile", {"profile_ids": list(parts)}
    return "RegisterProfile", {"profile": {"id": name, "profile_type": kind, "profile": fields}}


def register(name, profile_id):
    return "RegisterJob", {"job_id": name, "job": {"resource_request": 1, "profile_id": profile_id}}


def test_a_part_of_a_sequence_runs_where_its_override_says(tmp_path):
    # half: 5e9 flop on each of two executors, which host 2 with its two cores does in 5 s; nap: 10 s. Hosts 0-1 draw
    # 50 W. SimGrid's meter charges host 2, 100 W, for the naps, too: it looks again when the half after a nap has ended
    engine = engine_of(tmp_path, {"subtime": 0, "res": 2, "profile": "both"}, energy=True)
    override = [{"profile_id": "w0!half", "host_allocation": "2", **SPREAD}]
    start = execute("w0!0", "0-1", profile_allocation_override=override)
    now, events = after(engine, frame(0), frame(0, start))
    assert (now, events[0][0], events[0][1]["state"]) == (40.0, "JobCompleted", "COMPLETED_SUCCESSFULLY")
    engine.reply(read_reply(frame(40)))
    reported(engine)
    row = next(iter(engine.close().jobs))
    assert (row.allocated_resources, row.consumed_energy) == ("0-1", pytest.approx(2 * 50.0 * 40.0))
    assert list(engine.close().consumed_energy)[-1][1] == pytest.approx((2 * 50.0 + 100.0) * 40.0)


def test_progress_of_a_sequence_says_part_and_repetition(tmp_path):
    # deep: nap (10 s), both = 2 x (half 5 s, nap 10 s, half 5 s). At 37.5 s: 10 + 20 + 5 + 2.5: second round, its nap
    engine = engine_of(tmp_path, {"subtime": 0, "profile": "deep"}, forward_profiles_on_jobs_killed=True)
    call = ("CallMeLater", {**CALL, "when": {"time": 37500, "time_unit": "Millisecond"}})
    assert after(engine, frame(0, call), frame(0, execute("w0!0", "1")))[0] == 37.5
    engine.reply(read_reply(frame(37.5, ("KillJobs", {"job_ids": ["w0!0"]}))))
    _, ((_, ended), (_, killed)) = reported(engine)
    assert (ended["state"], ended["return_code"]) == ("COMPLETED_KILLED", 2**32 - 1)
    outer = killed["progresses"][0]["wrapper"]["kill_progress"]
    inner = outer["current_task_progress"]["kill_progress"]
    names = ("profile_id", "current_repetition", "current_task_index")
    assert [[one[name] for name in names] for one in (outer, inner)] == [["w0!deep", 0, 1], ["w0!both", 1, 1]]
    leaf = inner["current_task_progress"]["kill_progress"]
    assert leaf == {"profile_id": "w0!nap", "progress": pytest.approx(0.25)}
    assert [(one["id"], one["profile"]) for one in killed["profiles"]] == [
        ("w0!deep", {"repetition_count": 1, "profile_ids": ["w0!nap", "w0!both"]})
    ]


def test_a_profile_goes_with_the_first_of_its_jobs(tmp_path):
    """`Jobs::delete_job` removes it whichever other jobs have it: those run on."""
    jobs = {"subtime": 0, "profile": "nap"}, {"subtime": 5, "profile": "nap"}
    engine = engine_of(tmp_path, *jobs, dynamic_registration=True)
    answers = frame(0), frame(0, execute("w0!0", "0")), frame(5, execute("w0!1", "1"))
    assert after(engine, *answers) == (5.0, [("AllStaticJobsHaveBeenSubmitted", {})])
    engine.reply(read_reply(frame(5)))
    now, [(name, ended)] = after(engine, frame(10))
    assert (now, name, ended["state"]) == (15.0, "JobCompleted", "COMPLETED_SUCCESSFULLY")
    with pytest.raises(IllegalDecisionError, match="'w0!nap' existed some time ago"):
        engine.reply(read_reply(frame(15, register("w0!2", "nap"))))


def test_a_sequence_keeps_parts_that_are_gone(tmp_path):
    # registered while its part has a job; when that has ended, no job has the part, but the sequence still does
    engine = engine_of(tmp_path, {"subtime": 0, "profile": "nap"}, dynamic_registration=True)
    assert after(engine, frame(0, profile("w0!s", "w0!nap")), frame(0, execute("w0!0", "0")))[0] == 10.0
    engine.reply(read_reply(frame(10, register("w0!1", "s"), execute("w0!1", "0"), ("FinishRegistration", {}))))
    assert reported(engine)[0] == 20.0


def test_jobs_of_several_workloads_come_with_the_begin(tmp_path):
    engine = engine_of(tmp_path, {"subtime": 0, "profile": "nap"}, names=("w0", "w1"))
    assert [name for name, _ in reported(engine)[1]] == ["SimulationBegins", "JobSubmitted", "JobSubmitted"]


FOR_EVER = {"period": 1, "mode_type": "Infinite", "mode": {}}
CALLS = ("CallMeLater", {"call_me_later_id": "c", "when_type": "Periodic", "when": FOR_EVER})
NOWHERE = {"executor_placement_type": "CustomExecutorToHostMapping", "executor_placement": {"mapping": []}}
BEYOND = NOWHERE | {"executor_placement": {"mapping": [1]}}
REFUSED = {
    "a sequence over another workload": (
        [frame(0, profile("w0!d"), profile("x!s", "w0!d"), register("x!1", "s"), execute("x!1", "0")), frame(0)],
        IllegalDecisionError, "ask for profile_reuse"),
    # `Profiles::remove_profile` looks for the parts of a sequence in the workload of the sequence
    "its part has other jobs": (
        [frame(0, profile("w0!s", "w1!nap"), register("w0!9", "w0!s"), execute("w0!9", "0")), frame(0)],
        IllegalDecisionError, r"'w1!nap' is of another workload.*ask for profile_reuse"),
    # the message says `profile_ids` as they are looked up: map::at aborts for one without a workload
    "a part without a workload": (
        [frame(0, profile("w0!s", "nap"))], IllegalDecisionError, "the profile 'nap' does not exist"),
    # each second one, and an answer at 1e9 s: they would fill the memory
    "calls without end before a late answer": (
        [b'{"now":1e9,' + frame(0, CALLS).partition(b",")[2]], IllegalDecisionError,
        "CallMeLater 'c': more than 100000 calls"),
    "an answer at the end of time": ([frame(1e300)], ProtocolError, r"cannot tell of 1e\+300 s"),
    "a call where times have no milliseconds": (
        [frame(1e13, CALLS)], IllegalDecisionError, "a time in ms has no exact number"),
    "a task without executors": (
        [frame(0), frame(0, ("ExecuteJob", {"job_id": "w0!0", "allocation": {"host_allocation": "0", **NOWHERE}}))],
        IllegalDecisionError, "no executor"),
    "a mapping beyond its hosts": (
        [frame(0), frame(0, ("ExecuteJob", {"job_id": "w0!0", "allocation": {"host_allocation": "0", **BEYOND}}))],
        IllegalDecisionError, "its mapping has 1 at index 0, of 1 hosts"),
    "jobs that are not started": ([frame(0), frame(0)], DeadlockError, "neither started nor rejected"),
}  # fmt: skip


@pytest.mark.parametrize(("answers", "error", "why"), REFUSED.values(), ids=REFUSED)
def test_what_is_refused(tmp_path, answers, error, why):
    jobs = [{"subtime": 0, "profile": name} for name in ("half", "nap")]
    engine = engine_of(tmp_path, *jobs, names=("w0", "w1"))
    with pytest.raises(error, match=why):
        after(engine, *answers)
