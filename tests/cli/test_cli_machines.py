"""Machines that come and go, and jobs from before the window, through `batwatt run` with the scheduler riskaware."""

from __future__ import annotations

import json

import pytest
from cli_house import ROOT, Done, House

from batwatt.inputs.description import Inputs
from batwatt.model.machines import MachineSpec
from batwatt.model.window import Window
from batwatt.run.run import run as run_spec
from batwatt.run.spec import RunSpec

# a walk of four machines of two cores; jobs of which some are from before the window [600, 3600]
WALK = "time_s,machines\n0,4\n900,2\n1500,3\n1800,1\n2100,4\n2700,3\n"
JOBS = "".join(f"{i} {150 * i} {200 + 170 * ((i + 3) % 7)} {1 + i % 2}\n" for i in range(30))
ON_OFF = "3\n50 0\n60 3\n90 0\n120 3\n"


def risk(house: House, *words: object, jobs=JOBS, walk=WALK, machines=4, cores=2, **options: object) -> Done:
    """A run of riskaware; `options` of its own, after the strategy."""
    path = jobs if "/" in str(jobs) else house.write("jobs.txt", jobs)
    options = {"strategy": "target-asap"} | options
    machine_words = ("--machines", machines, "--cores", cores, "--capacity", house.write("walk.csv", walk))
    words = ("-s", "riskaware", "-o", json.dumps(options), "-e", house.out / "x", *words)
    return house.batwatt("run", "-w", path, *machine_words, *words)


def rows(house: House) -> dict[str, dict[str, str]]:
    return {row["job_id"]: row for row in house.rows()}


# windows -------------------------------------------------------------------------------------------------------------

# three machines of 2 cores, two at the begin of the window; a, b and c have been running for 50, 40 and 30 s
BEFORE = "a 50 100 2\nb 60 100 2\nc 70 100 1\nd 110 30 1\n"


@pytest.mark.parametrize("strategy", ["first-fit-aware", "target-asap"])
@pytest.mark.parametrize("as_published", [True, False])
def test_jobs_from_before_the_window(house, strategy, as_published):
    """As published c is left out and b, started again from 130 to 230 s, counts with 60 s of its 100 s; else both."""
    inputs = {"jobs": BEFORE, "walk": "2\n120 1\n130 2\n300 2\n", "machines": 3, "strategy": strategy, "distance": 3}
    done = risk(house, "--window", "100:400", **inputs, as_published=as_published)
    assert done.code == 0, done.err
    metrics, states = house.metrics(), {name: row["final_state"] for name, row in rows(house).items()}
    assert ("1 jobs from before the window found no room at its begin" in done.err) == as_published
    if as_published:
        assert states["c"] == "REJECTED" and "c#1" not in states and states["b"] == "COMPLETED_KILLED"
        assert float(rows(house)["b#1"]["finish_time"]) == pytest.approx(230.0, abs=1e-3)
        # a 50 s, b 60 s, d 30 s
        useful, ended = 100 + 120 + 30, (3, 1)
    else:
        assert {states[name] for name in ("a", "b#1", "c", "d")} == {"COMPLETED_SUCCESSFULLY"}
        # a 50 s, b 100 s, c its remainder of 70 s as it was never killed, d 30 s
        useful, ended = 100 + 200 + 70 + 30, (4, 0)
    assert metrics["useful_core_s"] == pytest.approx(useful, abs=0.01)
    assert (metrics["jobs_finished"], metrics["jobs_rejected"]) == ended


# ids, options, energy ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("strategy", ["first-fit-aware", "target-asap"])
def test_ids_with_a_hash_are_kept_apart(house, strategy):
    inputs = {"walk": ON_OFF, "machines": 3, "cores": 1, "strategy": strategy, "as_published": False}
    assert risk(house, jobs="a#b 0 300 1\na 0 30 1\n", **inputs).code == 0
    metrics = house.metrics()
    assert metrics["jobs_finished"] == 2 and metrics["completed_fraction"] == 1.0 and metrics["killed_power"] == 2
    assert sorted(rows(house)) == ["a", "a#b", "a#b#1", "a#b#2"]
    done = risk(house, jobs="3 0 100 1\n3#1 0 300 1\n", **inputs)
    assert done.code == 2 and "3#1" in done.line


# compared with the authors' program -----------------------------------------------------------------------------------

SHARED = ROOT.parent / "shared" / "data"
TRACE = SHARED / "borg" / "7D_864000.txt"
GOODPUT = {
    "packed-target-asap": (0.9125, 0.9150, 0.8669),
    "target-asap": (0.9139, 0.9126, 0.8675),
    "target-stretch": (0.8389, 0.8680, 0.8438),
    "first-fit-aware": (0.8430, 0.8515, 0.8556),
}


# on a push the planner alone, in systems/riskaware/test_targets_peer.py, and first fit by hand
@pytest.mark.deep
@pytest.mark.skipif(not TRACE.exists(), reason="no Borg trace in ../shared/data")
@pytest.mark.parametrize(
    ("strategy", "walk"),
    [(strategy, walk) for strategy in GOODPUT for walk in range(3)],
)  # fmt: skip
def test_goodput_is_that_of_the_authors_program(strategy, walk, tmp_path):
    capacity = SHARED / "capacity" / f"walk-24-8-1200-{walk}.txt"
    inputs = Inputs(MachineSpec(152, 24), (TRACE,), capacity=capacity, window=Window(864_000.0, 1_468_800.0))
    metrics = run_spec(RunSpec(inputs, "riskaware", {"strategy": strategy}, tmp_path / "x")).metrics
    assert metrics["goodput"] == pytest.approx(GOODPUT[strategy][walk], rel=0.005)
