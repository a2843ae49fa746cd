"""A scheduler that does what a table says, for tests of the engine."""

from __future__ import annotations

from batsim.batsim import BatsimScheduler
from builders import machine, workload_of

from batwatt.batsim.adapters import simulate
from batwatt.batsim.batsim4 import EngineConfig
from batwatt.engine.core import Engine
from batwatt.model.hostset import HostSet


class Scripted(BatsimScheduler):
    """Does what a table says: time -> list of functions of the `bs`; starts jobs where another table says."""

    def __init__(self, alloc=None, plan=None, mapping=None):
        super().__init__()
        self.alloc, self.plan, self.mapping = alloc or {}, plan or {}, mapping or {}
        self.seen, self.energy = [], []

    def onAfterBatsimInit(self):
        pass

    def onSimulationBegins(self):
        for date in self.plan:
            if date > 0:
                self.bs.wake_me_up_at(date)
        for action in self.plan.get(0, ()):
            action(self.bs)

    def note(self, what, *details):
        self.seen.append((self.bs.time(), what, *details))

    def onJobSubmission(self, job):
        self.note("submitted", job.id)
        where = self.alloc.get(job.id.split("!")[1])
        if where is not None:
            job.allocation = HostSet.of(where)
            if job.id.split("!")[1] in self.mapping:
                job.mapping = self.mapping[job.id.split("!")[1]]
            self.bs.execute_jobs([job])

    def onJobCompletion(self, job):
        self.note("completed", job.id, job.job_state.name, job.return_code)

    def onJobsKilled(self, jobs):
        for one in jobs:
            self.note("killed", one.id, one.progress)

    def onRequestedCall(self):
        for action in self.plan.get(self.bs.time(), ()):
            action(self.bs)

    def onMachinePStateChanged(self, nodeid, pstate):
        self.note("pstate", nodeid, pstate)

    def onReportEnergyConsumed(self, consumed_energy):
        self.energy.append((self.bs.time(), consumed_energy))

    def onNotifyEventMachineUnavailable(self, machines):
        self.note("unavailable", str(machines))

    def onNotifyEventMachineAvailable(self, machines):
        self.note("available", str(machines))

    def onNotifyGenericEvent(self, event_data):
        self.note("event", event_data["type"])


def run(scheduler, jobs, platform=None, events=(), **config):
    platform = platform or machine(2)
    load = workload_of(*jobs, nb_res=len(platform)) if isinstance(jobs, (list, tuple)) else jobs
    return simulate(Engine(platform, [load], EngineConfig(**config), events), scheduler)


def rows(record):
    names = ("state", "start", "runtime", "finish", "energy")
    return {row[0]: dict(zip(names, (*row[7:11], row[15]), strict=True)) for row in record.jobs}


def pstate(hosts, state):
    return lambda bs: bs.set_resource_state(HostSet.of(hosts), state)


def execute(name, hosts):
    def action(bs):
        one = bs.jobs[f"w0!{name}"]
        one.allocation = HostSet.of(hosts)
        bs.execute_jobs([one])

    return action


def kill(*job_names):
    return lambda bs: bs.kill_jobs([bs.jobs[f"w0!{name}"] for name in job_names])


def query(bs):
    bs.request_consumed_energy()
