"""pybatsim's own schedulers run on the embedded engine unmodified and write what they wrote with the real Batsim."""

from __future__ import annotations

import importlib.util
import json
import sysconfig
from pathlib import Path
from typing import ClassVar

import pytest
from golden import assert_same_files, engine_of, rows_of, scenarios

from batwatt.engine.embedded import simulate
from batwatt.model.hostset import HostSet
from batwatt.results.writers import write_record

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
