"""Steps without end after an envelope: who has nothing to do in them is not called, and nothing else changes."""

from __future__ import annotations

import random

import pytest
from builders import envelope, job, machine, played, workload_of

from batwatt.errors import InputError
from batwatt.protocol.events import envelope_events, parse_events
from batwatt.run.run import run
from batwatt.run.spec import RunSpec
from batwatt.schedulers.easy import Easy
from batwatt.schedulers.powercap import scheduler
from batwatt.schedulers.powercap.responses import HighestFlopsLowestDeadline, IdleDegradation

SERVERS = machine(4)


class Counted:
    """A link that counts messages."""

    def __init__(self, engine):
        self.engine, self.count = engine, 0

    def message(self):
        self.count += 1
        return self.engine.message()

    def reply(self, reply):
        self.engine.reply(reply)


def carried_out(jobs, series, by_events=False, **options):
    """How many messages there were, and the record."""
    links = []
    options |= {"platform": SERVERS, "envelope": "events" if by_events else series}
    events = parse_events("\n".join(envelope_events(series)), "events") if by_events else ()
    record = played(
        Easy(options), SERVERS, *jobs, events=events, forward_unknown_events=by_events, energy=True,
        link=lambda engine: links.append(Counted(engine)) or links[0],
    )  # fmt: skip
    return links[0].count, record


@pytest.mark.parametrize("response", ["idfs", "hfld"])
def test_a_long_run_costs_as_much_as_a_short_one(response):
    # 100,000 steps of 5 minutes
    short, long = (
        carried_out([job(0, 0, 1, run_s)], envelope(400.0, 250.0), response=response)[0] for run_s in (3e3, 3e7)
    )
    assert long <= short + 2 < 20


@pytest.mark.parametrize(
    ("response", "order", "backfilling", "by_events"),
    [("idfs", "fcfs", "easy", False), ("iasb", "slowdown", "easy", True), ("hfld", "slowdown", "first-fit", True)],
)
def test_the_schedule_is_that_of_looking_at_every_step(monkeypatch, response, order, backfilling, by_events):
    rng = random.Random(f"{response} {order} {backfilling}")
    # ends and submissions at steps and between them
    jobs = [
        job(i, rng.choice([0, 300, 900, 1500.5, 6000, 7212.25]), rng.choice([1, 1, 2, 3]),
            rng.choice([100, 300, 1200, 4000]), rng.choice([None, 2500, 9000]), flops=True)
        for i in range(14)
    ]  # fmt: skip
    series = envelope(400.0, 100.0, 300.0, rng.choice([400.0, 280.0, 200.0]))
    options = {"response": response, "order": order, "backfilling": backfilling}
    fewer, record = carried_out(jobs, series, by_events, **options)
    for kind in (IdleDegradation, HighestFlopsLowestDeadline):
        monkeypatch.setattr(kind, "steady", lambda *_: False)
    more, expected = carried_out(jobs, series, by_events, **options)
    assert record == expected and len(record.jobs) >= 14 and fewer < more


def test_one_that_must_look_at_every_step_gives_up_in_one_line(monkeypatch):
    monkeypatch.setattr(scheduler, "MAX_IDLE_STEPS", 40)
    with pytest.raises(InputError, match=r"nothing has changed for 40 steps after its end, while w0!0 runs; correct"):
        carried_out([job(0, 0, 1, 1e9)], envelope(400.0, 300.0), response="frugal")
    # shorter than that
    carried_out([job(0, 0, 1, 5e3)], envelope(400.0), response="frugal")


@pytest.mark.parametrize(
    "submit_s,run_s,walltime_s,response",
    [(0, 1.1e10, None, "frugal"), (0, 1e290, None, "none"), (3e8, 1.1e10, 2e10, "frugal")],
)
def test_jobs_that_end_in_centuries_are_refused(submit_s, run_s, walltime_s, response):
    # every step until then is a message: hours, and all memory
    jobs = workload_of(job(0, 0, 1, 5, flops=True), job(1, submit_s, 1, run_s, walltime_s, flops=True))
    limit, options = envelope(400.0, 300.0), {"response": response}
    with pytest.raises(InputError, match=r"job '1': ends at .* at the earliest, .* years on; correct its times"):
        run(RunSpec(platform=SERVERS, workloads=(jobs,), envelope=limit, options=options))
