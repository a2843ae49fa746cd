"""A Batsim 5 may send jobs together with the begin of the simulation; a scheduler is initialised before them."""

from __future__ import annotations

import pytest
from batsim.batsim import BatsimScheduler
from builders import job, machine, workload_of

from batwatt.engine.bs import Bs
from batwatt.engine.core import Engine
from batwatt.engine.events import Message, Reply


class Joined:
    """The engine's first two messages as one."""

    def __init__(self, engine, joined):
        self.engine, self.joined = engine, joined

    def message(self):
        message = self.engine.message()
        if self.joined:
            self.joined = False
            self.engine.reply(Reply(message.now, []))
            more = self.engine.message()
            return Message(more.now, [*message.events, *more.events])
        return message

    def reply(self, reply):
        self.engine.reply(reply)


class Noting(BatsimScheduler):
    def __init__(self):
        super().__init__({})
        self.seen = []

    def onSimulationBegins(self):
        self.seen.append("begin")

    def onAfterBatsimInit(self):
        self.seen.append("init")

    def onJobSubmission(self, job):
        self.seen.append("job")
        self.bs.reject_jobs([job])

    def onNoMoreEvents(self):
        pass


@pytest.mark.parametrize("joined", [False, True])
def test_a_scheduler_is_initialised_before_its_jobs(joined):
    load = workload_of(job(1, 0.0, 1, 10.0), job(2, 0.0, 1, 10.0), nb_res=2)
    scheduler = Noting()
    Bs(scheduler, Joined(Engine(machine(2), [load]), joined)).start()
    assert scheduler.seen == ["begin", "init", "job", "job"]
