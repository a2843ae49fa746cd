"""Runs of files of the systems that kill jobs: the embedded engine and a Batsim do the same."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pandas as pd
import pytest
from builders import job

from batwatt.model.platform import MachineSpec
from batwatt.model.signal import Window
from batwatt.results.figures import rounded
from batwatt.run.run import run
from batwatt.run.spec import RunSpec

CORES = 3
SAVED = {"name": "checkpoint", "checkpoint_s": 20, "recovery_s": 10}
PREEMPTIVE = {"order": "smith", "backfilling": "easy", "preemption": "slowdown", "termination": "least-loss"}
CASES = {
    "powercap": {"order": "slowdown", "backfilling": "easy", "response": "hfld"},
    "varcap": PREEMPTIVE | {"victim": SAVED, "machine_memory": 8.0},
    "riskaware": {"strategy": "target-asap", "as_published": True},
    "checkpoint": {"switch": False, "min_yield": 0.5, "prepare": "expected"},
}
SMALL = Path(__file__).resolve().parents[2] / "platforms" / "small.xml"
CAPACITY = (4, 3, 4, 2, 1, 3, 2, 4, 0, 3, 2, 4)


def spec(folder, scheduler) -> RunSpec:
    """40 jobs on machines that come and go, or 12 on servers that fall asleep; some are killed."""
    rows = []
    for i in range(12 if scheduler == "powercap" else 40):
        # riskaware runs no job on several machines
        row = job(i, 17.5 * i, 1 + i % CORES + 4 * (i % 9 == 0 and scheduler == "varcap"), 60.0 + 31 * (i % 7))
        if scheduler == "powercap":
            work = {"type": "parallel_homogeneous", "cpu": 3e12, "com": 0} if i % 4 else {"type": "delay", "delay": 200}
            row |= {"walltime": 900 + i, "_profile": work}
        elif scheduler == "varcap":
            row |= {"memory": i % 3} | ({"depends_on": ["2"]} if i % 11 == 7 else {})
        rows.append(row)
    path, limit = folder / "w.json", folder / "limit.csv"
    profiles = {row["profile"]: row.pop("_profile") for row in rows}
    path.write_text(json.dumps({"nb_res": 4 * CORES, "jobs": rows, "profiles": profiles}))
    if scheduler == "powercap":
        limit.write_text("time_s,power_w\n0,600\n100,250\n200,60\n300,16\n400,600\n")
        inputs = {"platform": SMALL, "envelope": limit}
    else:
        limit.write_text("time_s,machines\n" + "".join(f"{60 * i},{n}\n" for i, n in enumerate(CAPACITY)))
        window = Window(100.0, 600.0) if scheduler == "riskaware" else None
        inputs = {"platform": MachineSpec(4, CORES), "capacity": limit, "window": window}
    prefix = folder / "embedded"
    return RunSpec(workloads=(path,), scheduler=scheduler, options=CASES[scheduler], prefix=prefix, **inputs)


@pytest.mark.parametrize("scheduler", CASES)
def test_a_batsim(scheduler, tmp_path, batsim):
    one = spec(tmp_path, scheduler)
    ours = rounded(run(one).metrics)
    theirs = rounded(run(replace(one, engine="batsim", batsim=batsim, prefix=tmp_path / "batsim")).metrics)
    for figure, value in ours.items():
        assert value is None or theirs[figure] == pytest.approx(value, rel=1e-4, abs=1e-3), figure
    columns = ["job_id", "final_state", "allocated_resources", "starting_time", "finish_time"]
    frames = [pd.read_csv(tmp_path / f"{engine}_jobs.csv").sort_values("job_id") for engine in ("embedded", "batsim")]
    one, two = (frame[columns].reset_index(drop=True) for frame in frames)
    assert "COMPLETED_KILLED" in set(one["final_state"])
    pd.testing.assert_frame_equal(one, two, atol=1e-3, rtol=0.0)
