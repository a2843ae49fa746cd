"""Runs of files of the systems that submit jobs again: the embedded engine, the wire and a Batsim do the same."""

from __future__ import annotations

import json
from dataclasses import replace

import pandas as pd
import pytest
from builders import job

from batwatt.inputs.description import Inputs
from batwatt.model.machines import MachineSpec
from batwatt.results.figures import rounded
from batwatt.run.run import run
from batwatt.run.spec import RunSpec

MACHINES, CORES = 4, 3
SAVED = {"name": "checkpoint", "checkpoint_s": 20, "recovery_s": 10}
VARCAP = {"long_s": 130.0, "longest_s": 300.0, "machine_memory": 8.0}
PREEMPTIVE = {"termination": "least-loss", "order": "smith", "backfilling": "easy", "victim": SAVED}
CASES = {
    **{f"varcap-{name}": ("varcap", VARCAP | {"mapping": name})
       for name in ("base", "migration", "jobsize-order", "twomode")},
    "varcap-longshort": ("varcap", VARCAP | {"mapping": "longshort", "stable": 1}),
    "varcap-preemption": ("varcap", PREEMPTIVE | {"preemption": "slowdown"}),
    "checkpoint-dp": ("checkpoint", {"switch": False}),
    "checkpoint-subset-sum": ("checkpoint", {"switch": False, "method": "subset-sum"}),
    "checkpoint-expected": ("checkpoint", {"switch": False, "min_yield": 0.5, "prepare": "expected"}),
}  # fmt: skip
"""Half of the jobs are long, and no machine is always there, but longshort thinks that one is."""
CAPACITY = [(60.0 * i, n) for i, n in enumerate((4, 3, 4, 2, 1, 3, 2, 4, 0, 3, 2, 4))]


def jobs_of(scheduler: str) -> list[dict]:
    """40 jobs, some of more than one machine; of memory, and one after another, or with costs of a checkpoint."""
    rows = []
    for i in range(40):
        row = job(i, 17.5 * i, 1 + i % CORES + 4 * (i % 9 == 0), 60.0 + 31 * (i % 7))
        if scheduler == "checkpoint":
            row |= {"checkpoint_s": 3.0 + i % 3, "recovery_s": 2.0 * (i % 4)}
        else:
            row |= {"memory": i % 3} | ({"depends_on": ["2"]} if i % 11 == 7 else {})
        rows.append(row)
    return rows


def spec(folder, name) -> RunSpec:
    """The run of a case, of files."""
    scheduler, options = CASES[name]
    rows = jobs_of(scheduler)
    path, capacity = folder / "w.json", folder / "c.csv"
    profiles = {row["profile"]: row.pop("_profile") for row in rows}
    path.write_text(json.dumps({"nb_res": MACHINES * CORES, "jobs": rows, "profiles": profiles}))
    capacity.write_text("time_s,machines\n" + "".join(f"{at:g},{n}\n" for at, n in CAPACITY))
    inputs = Inputs(MachineSpec(MACHINES, CORES), (path,), capacity=capacity)
    return RunSpec(inputs, scheduler, options, folder / "embedded")


@pytest.mark.parametrize("name", CASES)
def test_the_wire(name, tmp_path):
    one = spec(tmp_path, name)
    ours = rounded(run(one).metrics)
    assert rounded(run(replace(one, engine="wire", prefix=tmp_path / "wire")).metrics) == ours
    for stem in ("jobs", "schedule", "pstate_changes", "consumed_energy"):
        files = [tmp_path / f"{engine}_{stem}.csv" for engine in ("embedded", "wire")]
        assert files[0].exists() == files[1].exists()
        assert not files[0].exists() or files[0].read_bytes() == files[1].read_bytes(), stem
    assert b"COMPLETED_KILLED" in (tmp_path / "embedded_jobs.csv").read_bytes()


@pytest.mark.parametrize("name", CASES)
def test_a_batsim(name, tmp_path, batsim):
    one = spec(tmp_path, name)
    ours = rounded(run(one).metrics)
    theirs = rounded(run(replace(one, engine="batsim", batsim=batsim, prefix=tmp_path / "batsim")).metrics)
    for figure, value in ours.items():
        assert value is None or theirs[figure] == pytest.approx(value, rel=1e-4, abs=1e-3), figure
    columns = ["job_id", "final_state", "starting_time", "finish_time"]
    frames = [pd.read_csv(tmp_path / f"{engine}_jobs.csv").sort_values("job_id") for engine in ("embedded", "batsim")]
    one, two = (frame[columns].reset_index(drop=True) for frame in frames)
    pd.testing.assert_frame_equal(one, two, atol=1e-3, rtol=0.0)
