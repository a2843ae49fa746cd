"""Our `bs` is pybatsim's `Batsim`, whatever of it is done in another way."""

from __future__ import annotations

import inspect
from types import SimpleNamespace

import pytest
from batsim.batsim import Batsim, BatsimScheduler, Job
from builders import ASLEEP_FAST, job, machine, played, workload_of

from batwatt.batsim.bs import Bs
from batwatt.batsim.events import Message, Reply
from batwatt.engine.core import Engine
from batwatt.model.hostset import HostSet, to_text
from batwatt.model.platform import MachineSpec, machines_platform
from batwatt.schedulers.powercap import Powercap


class Listener(BatsimScheduler):
    """Starts nothing and rejects what comes."""

    def onSimulationBegins(self):
        self.order, self.heard = ["begin"], []

    def onAfterBatsimInit(self):
        self.order.append("init")

    def onJobSubmission(self, job):
        self.order.append(job.id)
        self.heard.append(job)
        self.bs.reject_jobs([job])


def test_nothing_of_pybatsim_s_that_writes_json_is_left():
    for name, method in inspect.getmembers(Batsim, inspect.isfunction):
        if "_events_to_send" in inspect.getsource(method) and name != "_read_bat_msg":
            assert getattr(Bs, name) is not method, name


def test_a_set_of_jobs_has_the_same_order_in_each_run():
    """pybatsim's fillerSched walks through one: not by the addresses of jobs in memory."""
    scheduler = Listener()
    jobs = [job(f"j{number:02d}", 1, 1, 5, 9) for number in range(30)]
    Bs(scheduler, Engine(machines_platform(MachineSpec(2, 1)), [workload_of(*jobs)])).start()
    assert [heard.id for heard in set(scheduler.heard)] == [f"w0!j{number:02d}" for number in range(30)]


def test_jobs_are_as_their_constructor_makes_them():
    scheduler = Listener()
    bs = Bs(scheduler, Engine(machines_platform(MachineSpec(2, 1)), [workload_of(job("a", 1, 1, 5, 9))]))
    assert isinstance(bs, Batsim)
    bs.start()
    (heard,) = scheduler.heard
    plain = Job.from_json_dict(heard.json_dict)
    plain.job_state, plain.profile_dict = heard.job_state, heard.profile_dict
    assert heard.job_state is Job.State.SUBMITTED and heard.state is Job.State.REJECTED
    assert vars(heard) == vars(plain) | {"state": Job.State.REJECTED}


@pytest.mark.parametrize("joined", [False, True])
def test_a_scheduler_is_initialised_before_its_jobs(joined):
    """A Batsim 5 may send jobs together with the begin of the simulation."""
    engine = Engine(machine(2), [workload_of(job(1, 0.0, 1, 10.0), job(2, 0.0, 1, 10.0), nb_res=2)])
    if joined:
        begin = engine.message()
        engine.reply(Reply(begin.now, []))
        jobs = engine.message()
        messages = iter([Message(jobs.now, [*begin.events, *jobs.events])])
        link = SimpleNamespace(message=lambda: next(messages, None) or engine.message(), reply=engine.reply)
    scheduler = Listener()
    Bs(scheduler, link if joined else engine).start()
    assert scheduler.order == ["begin", "init", "w0!1", "w0!2"]


class Switching(Powercap):
    """Switches three servers off at first; `heard` has the reports of hosts."""

    def onSimulationBegins(self):
        super().onSimulationBegins()
        self.heard = []
        hosts = HostSet.of("0-1 3")
        self.cluster.set_pstate(hosts.mask, ASLEEP_FAST)
        self.bs.set_resource_state(hosts, ASLEEP_FAST)

    def onHostsArrived(self, mask, pstate):
        super().onHostsArrived(mask, pstate)
        self.heard.append((to_text(mask), pstate))


class OfPybatsim(Switching):
    def onMachinePStateChanged(self, nodeid, pstate):
        super().onMachinePStateChanged(nodeid, pstate)
        self.heard.append((nodeid, pstate))


@pytest.mark.parametrize("kind", [Switching, OfPybatsim])
def test_a_report_of_several_intervals_of_hosts(kind):
    """One call, unless a subclass has pybatsim's callback, which gets each interval."""
    platform = machine(4)
    scheduler = kind({"response": "none", "platform": platform})
    played(scheduler, platform, job(1, 0.0, 1, 50.0), energy=True)
    whole, pieces = [("0-1 3", 3)], [("0-1", 3), ((0, 1), "3"), ("3", 3), ((3, 3), "3")]
    assert scheduler.heard == (whole if kind is Switching else pieces)
