"""Runs of files of the systems that kill jobs: the embedded engine, the wire and a Batsim do the same."""

from __future__ import annotations

import json
from dataclasses import replace
from functools import cache
from pathlib import Path

import pandas as pd
import pytest
from builders import job

from batwatt.inputs.description import Inputs
from batwatt.model.machines import MachineSpec
from batwatt.model.window import Window
from batwatt.results.figures import rounded
from batwatt.run.run import run
from batwatt.run.spec import RunSpec

MACHINES, CORES = 4, 3
SAVED = {"name": "checkpoint", "checkpoint_s": 20, "recovery_s": 10}
PREEMPTIVE = {"order": "smith", "backfilling": "easy", "preemption": "slowdown", "termination": "least-loss"}
CASES = {
    "powercap-hfld": ("powercap", {"order": "slowdown", "backfilling": "easy", "response": "hfld"}),
    "varcap-preemption": ("varcap", PREEMPTIVE | {"victim": SAVED, "machine_memory": 8.0}),
    "riskaware-window": ("riskaware", {"strategy": "target-asap"}),
    "checkpoint-expected": ("checkpoint", {"switch": False, "min_yield": 0.5, "prepare": "expected"}),
}
SMALL = Path(__file__).resolve().parents[2] / "platforms" / "small.xml"
ENVELOPE = "time_s,power_w\n0,600\n100,250\n200,60\n300,16\n400,600\n"
"""Servers fall asleep, and jobs are killed."""
CAPACITY = [(60.0 * i, n) for i, n in enumerate((4, 3, 4, 2, 1, 3, 2, 4, 0, 3, 2, 4))]


def jobs_of(scheduler: str) -> list[dict]:
    """40 jobs, some of more than one machine; of memory, and one after another, or with costs of a checkpoint."""
    rows = []
    for i in range(40):
        # riskaware runs no job on several machines
        row = job(i, 17.5 * i, 1 + i % CORES + 4 * (i % 9 == 0 and scheduler != "riskaware"), 60.0 + 31 * (i % 7))
        if scheduler == "checkpoint":
            row |= {"checkpoint_s": 3.0 + i % 3, "recovery_s": 2.0 * (i % 4)}
        else:
            row |= {"memory": i % 3} | ({"depends_on": ["2"]} if i % 11 == 7 else {})
        rows.append(row)
    return rows


def under_envelope(folder, options) -> RunSpec:
    """A run of powercap: flops and delays that meet several steps of the envelope."""
    work = {"type": "parallel_homogeneous", "cpu": 3e12, "com": 0}
    rows = [
        {"id": i, "subtime": 20 * i, "res": 1 + i % 3, "walltime": 900 + i, "profile": "work" if i % 4 else "nap"}
        for i in range(12)
    ]
    profiles = {"work": work, "nap": {"type": "delay", "delay": 200}}
    path, envelope = folder / "w.json", folder / "e.csv"
    path.write_text(json.dumps({"nb_res": 4, "jobs": rows, "profiles": profiles}))
    envelope.write_text(ENVELOPE)
    inputs = Inputs(SMALL, (path,), envelope=envelope)
    return RunSpec(inputs, "powercap", options, folder / "embedded")


def spec(folder, name) -> RunSpec:
    """The run of a case, of files."""
    scheduler, options = CASES[name]
    if scheduler == "powercap":
        return under_envelope(folder, options)
    rows = jobs_of(scheduler)
    path, capacity = folder / "w.json", folder / "c.csv"
    profiles = {row["profile"]: row.pop("_profile") for row in rows}
    path.write_text(json.dumps({"nb_res": MACHINES * CORES, "jobs": rows, "profiles": profiles}))
    capacity.write_text("time_s,machines\n" + "".join(f"{at:g},{n}\n" for at, n in CAPACITY))
    window = Window(100.0, 600.0) if name == "riskaware-window" else None
    inputs = Inputs(MachineSpec(MACHINES, CORES), (path,), capacity=capacity, window=window)
    return RunSpec(inputs, scheduler, options, folder / "embedded")


@pytest.fixture(scope="module")
def embedded(tmp_path_factory):
    """Spec and metrics of the run of a case on the embedded engine."""

    @cache
    def run_of(name):
        one = spec(tmp_path_factory.mktemp(name), name)
        return one, rounded(run(one).metrics)

    return run_of


@pytest.mark.parametrize("name", ["powercap-hfld", "varcap-preemption"])
def test_the_wire(name, embedded):
    one, ours = embedded(name)
    folder = one.prefix.parent
    assert rounded(run(replace(one, engine="wire", prefix=folder / "wire")).metrics) == ours
    for stem in ("jobs", "schedule", "pstate_changes", "consumed_energy", "classes"):
        files = [folder / f"{engine}_{stem}.csv" for engine in ("embedded", "wire")]
        assert files[0].exists() == files[1].exists()
        assert not files[0].exists() or files[0].read_bytes() == files[1].read_bytes(), stem
    assert b"COMPLETED_KILLED" in (folder / "embedded_jobs.csv").read_bytes()


@pytest.mark.parametrize("name", CASES)
def test_a_batsim(name, embedded, batsim):
    one, ours = embedded(name)
    folder = one.prefix.parent
    theirs = rounded(run(replace(one, engine="batsim", batsim=batsim, prefix=folder / "batsim")).metrics)
    for figure, value in ours.items():
        assert value is None or theirs[figure] == pytest.approx(value, rel=1e-4, abs=1e-3), figure
    columns = ["job_id", "final_state", "allocated_resources", "starting_time", "finish_time"]
    frames = [pd.read_csv(folder / f"{engine}_jobs.csv").sort_values("job_id") for engine in ("embedded", "batsim")]
    one, two = (frame[columns].reset_index(drop=True) for frame in frames)
    pd.testing.assert_frame_equal(one, two, atol=1e-3, rtol=0.0)
