"""Several workloads on one engine: who is submitted when, and when there are no more jobs, as a real Batsim says."""

from __future__ import annotations

import pytest

from batwatt.batsim.events import JobSubmitted, Notified, RejectJob, Reply
from batwatt.engine.core import Engine
from batwatt.model.platform import Host, Platform, PState
from batwatt.model.workload import merged
from batwatt.protocol.workload4 import parse_workload

PLATFORM = Platform(tuple(Host(i, f"n{i}", (PState(1e9),)) for i in range(2)))
DELAY = {"d": {"type": "delay", "delay": 4}}


def workload(name: str, *times: float):
    jobs = [{"id": i, "subtime": time_s, "res": 1, "profile": "d"} for i, time_s in enumerate(times)]
    return parse_workload({"nb_res": 1, "jobs": jobs, "profiles": DELAY}, name, name)


@pytest.mark.parametrize(
    "times, expected",
    [
        # alone at its time, a submission is one message and its source's end another
        (((10,), (5,)), [(5, "w1!0"), (10, "w0!0"), (10, "no more")]),
        # of two sources that end together the first is still talking when the second submits: one message
        (((10,), (10,)), [(10, "w0!0", "w1!0", "no more")]),
        (((10,), (10,), (5,)), [(5, "w2!0"), (10, "w0!0", "w1!0", "no more")]),
        # one that goes on has nothing to end
        (((10, 20), (10,)), [(10, "w0!0", "w1!0"), (20, "w0!1"), (20, "no more")]),
        (((), (10,)), [(10, "w1!0"), (10, "no more")]),
    ],
)
def test_messages(times, expected):
    """Recorded from Batsim 4.2.1 with these submission times."""
    engine = Engine(PLATFORM, [workload(f"w{number}", *each) for number, each in enumerate(times)])
    received = []
    while True:
        message = engine.message()
        now, jobs, reported = message.now, [], []
        for event in message.events:
            if isinstance(event, JobSubmitted):
                jobs.append(event.job_id)
                reported.append(event.job_id)
            elif isinstance(event, Notified):
                reported.append("no more")
        if reported:
            received.append((now, *reported))
        engine.reply(Reply(now, [RejectJob(now, job_id) for job_id in jobs]))
        if engine.ended:
            break
    assert received == expected


def test_merged_for_what_is_measured():
    """Profiles of one name stay apart, also within composed ones; one workload stays what it is."""
    first = workload("w0", 3)
    data = {"d": {"type": "composed", "seq": ["e"]}, "e": {"type": "delay", "delay": 9}}
    job = {"id": 0, "subtime": 1, "res": 2, "profile": "d"}
    second = parse_workload({"nb_res": 5, "jobs": [job], "profiles": data}, "w1", "w1")
    both = merged([first, second])
    assert [(one.id, one.profile) for one in both.jobs] == [("w1!0", "w1!d"), ("w0!0", "w0!d")]
    assert both.profiles["w1!d"].sequence == ("w1!e",) and both.profiles["w0!d"].duration_s == 4
    assert both.nb_res == 5 and merged([first]) is first
