"""What a real Batsim does to varcap now and then: kills that take a while, acknowledgements; and odd workloads."""

from __future__ import annotations

import pytest
from by_hand import capacity_of
from varcap_talk import in_words, job_of, play, scheduler

from batwatt.batsim.events import JobCompleted, Message


class Late:
    """A link that tells of the end of killed jobs only so many seconds later: `hold` has s by job."""

    def __init__(self, engine, hold):
        self.engine, self.hold, self.held = engine, hold, []

    def message(self):
        message = self.engine.message()
        events = []
        for event in message.events:
            killed = isinstance(event, JobCompleted) and event.state == "COMPLETED_KILLED"
            if killed and event.job_id in self.hold:
                self.held.append((message.now + self.hold[event.job_id], event))
            else:
                events.append(event)
        due = [event for at, event in self.held if at <= message.now]
        for event in due:
            event.time = message.now
        self.held = [(at, event) for at, event in self.held if at > message.now]
        return Message(message.now, due + events)

    def reply(self, reply):
        self.engine.reply(reply)


def late(*jobs, capacity, hold, machines=3, cores=4, **options):
    hold = {f"w0!{name}": seconds for name, seconds in hold.items()}

    def between(engine):
        return Late(engine, hold)

    record, _ = play([job_of(text) for text in jobs], capacity_of(capacity), machines, cores, between, **options)
    return in_words(record, cores)


@pytest.mark.parametrize("hold", [{"b": 3.0}, {"c": 3.0}, dict.fromkeys("abcde", 2.0)])
@pytest.mark.parametrize(
    ("name", "termination"),
    [("base", "random"), ("base", "lww"), ("migration", "lfd"), ("longshort", "order"), ("longshort", "least-loss")],
)
def test_kills_that_take_a_while(name, termination, hold):
    jobs = ["a 0 1000 2", "b 0 1000 2", "c 0 1000 3", "d 0 1000 1", "e 0 1000 1", "t 0 400 1"]
    # what is held back is told with another message only
    jobs += [f"z{at} {at}.5 1 1" for at in (103, 104, 105, 500)]
    runs = late(*jobs, capacity="3 100:2 101:1 101.5:3 102:1 300:3", hold=hold, mapping=name,
                termination=termination, long_s=100, stable=None if name != "longshort" else 1)  # fmt: skip
    assert len(runs) == len(jobs)
    assert all(not words.endswith(("x", ">")) and words != "rejected" for words in runs.values())


def test_a_long_chain_of_jobs_that_can_never_run():
    # the first is too wide for two machines; each waits for the one before
    chain = ["j0 0 10 9", *(f"j{i} 0 10 1 depends_on=j{i - 1}" for i in range(1, 3000)), "k 0 10 1"]
    runs = scheduler(*chain, machines=2)
    assert runs.pop("k") == "0-10@0"
    assert set(runs.values()) == {"rejected"}


def test_reasons_of_rejections_are_logged(caplog):
    jobs = ("a 0 10 1 depends_on=b", "b 0 10 1 depends_on=a", "c 0 10 1", "wide 0 10 9", "d 0 10 1 depends_on=wide")
    runs = scheduler(*jobs, machines=2)
    assert runs == dict.fromkeys(["a", "b", "d", "wide"], "rejected") | {"c": "0-10@0"}
    assert "2 jobs can never run, waiting for each other in a circle" in caplog.text
    assert "1 job can never run, not enough machines or memory: rejected (first: w0!wide)" in caplog.text
    assert "1 job can never run, dependent on jobs that did not complete: rejected (first: w0!d)" in caplog.text
