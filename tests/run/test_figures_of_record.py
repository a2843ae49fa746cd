"""The figures that a run works out from its record are, to the last bit, those of the files that it leaves."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path

import numpy as np
import pytest
from examples import examples
from hypothesis import HealthCheck, given
from hypothesis import strategies as st

from batwatt.inputs.batsim_files import phase_workload
from batwatt.inputs.servers import machines_xml
from batwatt.inputs.spec import parse_series
from batwatt.model.platform import MachineSpec, SpeedMachineSpec
from batwatt.model.signal import Window
from batwatt.model.work import constant
from batwatt.model.workload import NO_WALLTIME
from batwatt.results import run_files
from batwatt.run.find_scheduler import our_names
from batwatt.run.prepared import PreparedRun
from batwatt.run.result import Result
from batwatt.run.run import run
from batwatt.run.spec import RunSpec
from batwatt.schedulers.carbon.execution import ShiftJob

MACHINES, CORES = 4, 4
FILES = ("metrics.json", "power.csv", "classes.csv")
CHOICES = {
    "powercap": [
        {"response": "hfld", "victim": "resubmit"},
        {"response": "idfs", "order": "slowdown"},
        {"response": "frugal", "forecast_steps": 2},
        {"response": "none"},
    ],
    "easy": [{}],
    "fcfs": [{"node_selection": "spread"}],
    "riskaware": [{"strategy": "first-fit-aware"}, {"strategy": "target-asap", "victim": "checkpoint"}],
    "varcap": [
        {},
        {"mapping": "migration"},
        {"mapping": "longshort", "victim": "resubmit"},
        {"victim": "checkpoint"},
        {"victim": {"name": "checkpoint", "checkpoint_s": 5, "recovery_s": 5}, "preemption": "slowdown"},
        {"order": "wfp", "backfilling": "easy"},
    ],
    "checkpoint": [{"k": 3}, {"prepare": "all"}, {"cover": "needed"}],
    "oversubscribed": [{"oversubscription": 1.5, "use": 0.7}],
    "replay": [{}],
    "multifactor": [{}, {"fairshare": "fair-tree", "bf_window_s": 600}],
    "adaptive": [{}, {"checkpoint_s": 20, "recovery_s": 5}, {"objective": "goodput"}],
    "jobpower": [{"excess": "kill-latest"}, {"excess": "kill-latest", "victim": "resubmit", "power_check": "knapsack"}],
}
FROM_FILES = ("carbon", "planned")
"""Schedulers with inputs of their own: see the last tests."""


def agree(spec: RunSpec) -> None:
    """Run, then work out everything again from the files."""
    values = run(spec).values
    names = [spec.prefix.with_name(f"{spec.prefix.name}_{name}") for name in FILES]
    of_record = {path.name: path.read_bytes() for path in names if path.exists()}
    for path in (*names, spec.prefix.with_name(f"{spec.prefix.name}_metadata.json")):
        path.unlink(missing_ok=True)
    assert Result.of_files(spec.prefix, PreparedRun.of(spec)).values == values
    assert {path.name: path.read_bytes() for path in names if path.exists()} == of_record
    assert "x_metrics.json" in of_record


def times(high: float) -> st.SearchStrategy[float]:
    """Times of any number of decimals, and some that are those of files."""
    return st.one_of(st.floats(1e-3, high), st.floats(1.0, high).map(lambda value: round(value, 1)))


jobs_of = st.lists(
    st.tuples(times(2000.0), times(900.0), st.integers(1, CORES), times(30.0), times(20.0)), min_size=1, max_size=12
)


def test_every_scheduler_is_here():
    assert {*CHOICES, *FROM_FILES} == set(our_names())


@pytest.mark.parametrize("scheduler", CHOICES)
@examples(40, suppress_health_check=[HealthCheck.too_slow])
@given(rows=jobs_of, seed=st.integers(0, 999), cut=st.booleans(), data=st.data())
def test_random_runs(scheduler, rows, seed, cut, data):
    options = data.draw(st.sampled_from(CHOICES[scheduler]))
    power = scheduler in ("powercap", "easy", "fcfs", "jobpower")
    follows = not power and scheduler not in ("replay", "multifactor")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        # one is in the window
        if scheduler == "checkpoint":
            rows = rows[:5]  # the time of its plans grows with the jobs
        lines = [",".join(map(repr, row)) for row in [*rows, (200.0, 100.0 / 3.0, 1, 5.0, 5.0)]]
        header = "arrival_time,length,cpus,checkpoint_s,recovery_s"
        (folder / "jobs.csv").write_text("\n".join([header, *lines]) + "\n")
        watts = np.random.default_rng(seed).uniform(200.0, 2000.0, 8)
        steps = "".join(f"{300 * i},{value!r}\n" for i, value in enumerate(watts.tolist()))
        (folder / "envelope.csv").write_text("time_s,power_w\n" + steps + "2400,9999\n")
        machines = SpeedMachineSpec if scheduler in ("powercap", "oversubscribed") else MachineSpec
        capacity = parse_series("machines", f"walk:range=0.6,mean=0.7,step=0.3,period=250,end=6000,seed={seed}")
        spec = RunSpec(
            platform=machines(MACHINES, CORES, off_s=5.0, on_s=20.0),
            workloads=(folder / "jobs.csv",),
            scheduler=scheduler,
            options=options,
            prefix=folder / "x",
            envelope=folder / "envelope.csv" if power else None,
            capacity=capacity if follows else None,
            window=Window(150.0, 1700.0) if cut and not power else None,
        )
        agree(spec)


@pytest.mark.parametrize("name", ["comma,in,it", 'quote"in', "line\nbreak", "NA", " space ", "00"])
def test_names_that_are_odd_in_csv(tmp_path, name):
    rows = [{"id": job, "subtime": 0.1, "res": 1, "profile": "p", "walltime": NO_WALLTIME} for job in ("plain", name)]
    data = {"nb_res": 4, "jobs": rows, "profiles": {"p": {"type": "delay", "delay": 1 / 3}}}
    (tmp_path / "w.json").write_text(json.dumps(data))
    (tmp_path / "p.xml").write_text(machines_xml(MachineSpec(2, 2)))
    prefix = tmp_path / "out" / "x"
    agree(RunSpec(platform=tmp_path / "p.xml", workloads=(tmp_path / "w.json",), prefix=prefix))
    assert set(run_files.jobs(tmp_path / "out" / "x")["job_id"]) == {"plain", name}


def test_carbon(tmp_path):
    model = constant(3 * 3600.0, 100.0)
    hourly = [400.0, 300.0, 100.0, 250.0, 80.0, 500.0, 90.0, 320.0] * 6
    rows = "".join(f"{3600 * i},{value}\n" for i, value in enumerate(hourly))
    (tmp_path / "s.csv").write_text("time_s,carbon_intensity\n" + rows)
    owner, data = phase_workload([ShiftJob("a", 0.0, model), ShiftJob("b", 900.0 + 1 / 3, model, 2)], 2)
    (tmp_path / "p.xml").write_text(machines_xml(owner))
    (tmp_path / "w.json").write_text(json.dumps(data))
    for policy in ("phase-aware", "suspend-resume", "immediate"):
        options = {"signal": str(tmp_path / "s.csv"), "policy": policy, "wait_h": [12.0]}
        inputs = {"platform": tmp_path / "p.xml", "workloads": (tmp_path / "w.json",)}
        agree(RunSpec(scheduler="carbon", options=options, prefix=tmp_path / policy / "x", **inputs))
