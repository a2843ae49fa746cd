"""pybatsim's own schedulers run on the embedded engine unmodified and write what they wrote with the real Batsim."""

from __future__ import annotations

import importlib.util
import json
import sysconfig
import threading
from pathlib import Path
from typing import ClassVar

import pytest
import zmq
from batsim.batsim import Batsim
from batsim.sched import Scheduler
from batsim.sched.algorithms.filling import filler_sched
from batsim.tools.launcher import instanciate_scheduler
from builders import job, workload_of
from golden import assert_same_files, engine_of, rows_of, scenarios

import batwatt as bw
from batwatt.batsim.adapters import serve, simulate
from batwatt.engine.core import Engine
from batwatt.errors import InputError
from batwatt.model.hostset import HostSet
from batwatt.model.platform import MachineSpec, machines_platform
from batwatt.results.run_files import write_record
from batwatt.run.find_scheduler import make_scheduler

CLASSES = {"easyBackfill": "EasyBackfill", "fillerSched": "FillerSched"}


def pybatsim_scheduler(name: str):
    """A scheduler of the installed pybatsim, by path: this project has a folder `schedulers`, too."""
    path = Path(sysconfig.get_paths()["purelib"]) / "schedulers" / f"{name}.py"
    spec = importlib.util.spec_from_file_location(f"pybatsim_{name}", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return getattr(module, CLASSES[name])(options={})


class RecordedOrder(dict):
    """Stands in for the built-in `set` in fillerSched, which walks through a set of jobs.

    The order of such a set follows the memory addresses of the jobs where pybatsim made them, so that no two runs need
    agree. Here jobs come in the order in which the recorded run took them: a job it did not start at a time comes
    after those that it did, and must then be found not to fit.
    """

    order: ClassVar[dict[str, tuple[float, int]]] = {}

    def __init__(self, items=()):
        super().__init__((item, None) for item in items)

    def __iter__(self):
        return iter(sorted(self.keys(), key=lambda job: self.order[job.id]))

    def add(self, item):
        self[item] = None

    def remove(self, item):
        del self[item]


@pytest.mark.parametrize("folder", scenarios("runs"), ids=lambda path: path.name)
def test_run_of_the_real_batsim(folder, tmp_path):
    scenario = json.loads((folder / "scenario.json").read_text())
    engine = engine_of(folder, scenario)
    scheduler = pybatsim_scheduler(scenario["scheduler"])
    if scenario["scheduler"] == "fillerSched":
        RecordedOrder.order = {
            f"w0!{row['job_id']}": (float(row["starting_time"]), HostSet.of(row["allocated_resources"]).mask)
            for row in rows_of(folder / "jobs.csv")
        }
        type(scheduler).scheduleJobs.__globals__["set"] = RecordedOrder
    record = simulate(engine, scheduler)
    write_record(record, tmp_path / "out")
    assert_same_files(tmp_path / "out", folder)


# the high-level API ---------------------------------------------------------------------------------------------------

HIGH_LEVEL = ("schedFcfs", "schedFiller", "schedEasySjfBackfill")
JOBS = [(4, 100, 200), (8, 50, 60), (2, 500, 600), (8, 100, 120), (1, 40, 50), (3, 300, 300), (2, 20, 30), (16, 5, 9)]


def jobs_at(first_s):
    rows = [job(i, first_s + 7.0 * i, width, run, walltime) for i, (width, run, walltime) in enumerate(JOBS)]
    return workload_of(*rows, nb_res=16)


def rows_of_run(scheduler, first_s, start):
    engine = Engine(machines_platform(MachineSpec(16, 1)), [jobs_at(first_s)])
    record = start(engine, scheduler)
    return [(row.job_id, row.starting_time, row.finish_time, row.allocated_resources) for row in record.jobs]


def over_pybatsim(engine, scheduler):
    """With pybatsim's own `bs` on the wire."""
    with zmq.Context() as context, context.socket(zmq.REP) as probe:
        endpoint = f"tcp://127.0.0.1:{probe.bind_to_random_port('tcp://127.0.0.1')}"
    theirs = threading.Thread(target=lambda: Batsim(scheduler, endpoint, timeout=20_000).start())
    theirs.start()
    record = serve(engine, endpoint, patience_s=20)
    theirs.join(20)
    return record


@pytest.mark.parametrize("name", HIGH_LEVEL)
def test_high_level_schedulers_are_as_over_the_wire(name, tmp_path, monkeypatch, capfd):
    monkeypatch.chdir(tmp_path)
    ours = rows_of_run(make_scheduler(name, {}), 1.0, simulate)
    assert not list(tmp_path.iterdir()) and capfd.readouterr() == ("", "")
    path = Path(sysconfig.get_paths()["purelib"]) / "schedulers" / f"{name}.py"
    theirs = instanciate_scheduler(str(path), {})
    assert ours == rows_of_run(theirs, 1.0, over_pybatsim)
    assert len(ours) == len(JOBS)
    # jobs may start at 0, where pybatsim's own assertion fails: the same schedule 1 s earlier
    early = rows_of_run(make_scheduler(name, {}), 0.0, simulate)
    assert early == [(job_id, start - 1.0, finish - 1.0, hosts) for job_id, start, finish, hosts in ours]


class Filler(Scheduler):
    """As `schedFiller`."""

    def schedule(self):
        filler_sched(self)


def filler(scheduler):
    """As `schedFiller`."""
    filler_sched(scheduler)


def test_high_level_schedulers_in_python(tmp_path, monkeypatch):
    # an instance writes a file of events where it is made
    monkeypatch.chdir(tmp_path)
    platform = bw.Platform.machines(16, watts=10)
    by_name, *others = (bw.simulate(platform, jobs_at(1.0), kind).jobs for kind in ("schedFiller", Filler, filler))
    assert len(by_name) == len(JOBS) and all(jobs.equals(by_name) for jobs in others)
    with pytest.raises(InputError, match="is an instance of Filler, which can run once; give the class"):
        bw.simulate(platform, jobs_at(1.0), Filler({}))
