"""Jobs in phases on the engines: energies by hand, and that they are the models' on any hosts."""

from __future__ import annotations

import json
import math
import shutil
from pathlib import Path

import pytest
from examples import examples
from hypothesis import HealthCheck, given
from hypothesis import strategies as st
from scripted import Scripted

from batwatt.engine.config import EngineConfig
from batwatt.engine.core import Engine
from batwatt.engine.embedded import simulate
from batwatt.engine.launch import batsim_command, drive
from batwatt.errors import InputError
from batwatt.inputs.description import Inputs
from batwatt.inputs.platforms.platform_text import machines_xml
from batwatt.inputs.platforms.platform_xml import read_platform
from batwatt.inputs.workloads import phase_workload as module
from batwatt.inputs.workloads.phase_workload import phase_workload
from batwatt.model.hostset import HostSet
from batwatt.model.machines import machines_platform
from batwatt.model.phases import Phase, PhaseModel, ShiftJob, constant
from batwatt.protocol.numbers import wire_floats
from batwatt.protocol.phases import PhaseMachines, phases_json, reported_machines, reported_model
from batwatt.protocol.workload4 import parse_workload
from batwatt.results.read import jobs as read_jobs
from batwatt.results.writers import write_record
from batwatt.run.run import run as carry_out
from batwatt.run.spec import RunSpec

RUNTIME, ENERGY = 9, 15


def model(startup, *work):
    """Of (s, W) pairs."""
    return PhaseModel(*(tuple(Phase("p", *pair) for pair in part) for part in (startup, work)))


def played(jobs, machines, alloc):
    owner, data = phase_workload(jobs, machines)
    engine = Engine(machines_platform(owner), [parse_workload(data, "w0", "test")], EngineConfig())
    return simulate(engine, Scripted(alloc))


# 60 W need one host, 220 W three and two thirds, 0 W none, 105 W one and three quarters: 4 hosts of 60 W
TRAINING = model([(20.0, 60.0)], (8.0, 220.0), (5.0, 0.0), (3.0, 105.0), (1.0, 240.0))


def test_phases_become_loads():
    owner, data = phase_workload([ShiftJob("7", 2.5, TRAINING, 2)], machines=3)
    assert owner == PhaseMachines(3, 4, 60.0)
    assert data["nb_res"] == 12
    (job,) = data["jobs"]
    assert {name: job[name] for name in ("id", "subtime", "res", "cpus", "arrival")} == {
        "id": "7", "subtime": 2.5, "res": 8, "cpus": 2, "arrival": 2.5,
    }  # fmt: skip
    profiles = data["profiles"]
    assert profiles["20s-60W-x2"]["cpu"] == [2e10, 0, 0, 0] * 2
    assert profiles["8s-220W-x2"]["cpu"] == pytest.approx([8e9, 8e9, 8e9, 16e9 / 3] * 2)
    assert profiles["5s-0W-x2"] == {"type": "delay", "delay": 5.0}
    assert profiles["3s-105W-x2"]["cpu"] == [3e9, 2.25e9, 0, 0] * 2
    assert profiles["1s-240W-x2"] == {"type": "parallel_homogeneous", "cpu": 1e9, "com": 0}
    # SimGrid must look at the hosts between a delay and the next task
    sequence = ["20s-60W-x2", "8s-220W-x2", "5s-0W-x2", "look", "3s-105W-x2", "1s-240W-x2"]
    assert profiles["job-7"] == {"type": "composed", "seq": sequence}


def test_energy_by_hand():
    # one cpu: 20 x 60 + 8 x 220 + 3 x 105 + 240 = 3515 J in 37 s
    record = played([ShiftJob("a", 0.0, TRAINING, 1), ShiftJob("b", 10.0, TRAINING, 2)], 3, {"a": "1-4", "b": "0 5-11"})
    rows = {row[0]: row for row in record.jobs}
    assert rows["a"][RUNTIME] == rows["b"][RUNTIME] == pytest.approx(37.0, rel=1e-12)
    assert rows["a"][ENERGY] == pytest.approx(3515.0, rel=1e-12)
    assert rows["b"][ENERGY] == pytest.approx(7030.0, rel=1e-12)
    # nothing else draws anything
    assert record.consumed_energy[-1][1] == pytest.approx(10545.0, rel=1e-12)


def test_profiles_are_shared():
    jobs = [ShiftJob(str(i), float(i), TRAINING, 1 + i % 2) for i in range(6)]
    profiles = phase_workload(jobs, 3)[1]["profiles"]
    assert sorted(name for name in profiles if name.startswith("job")) == ["job-0", "job-1"]
    epochs = phase_workload([ShiftJob("x", 0.0, PhaseModel((), TRAINING.work * 50))], 1)[1]["profiles"]
    assert len(epochs) == 6


def test_one_power_takes_one_host_and_no_matrix():
    owner, data = phase_workload([ShiftJob("a", 0.0, constant(50.0, 7.0), 30)], 40)
    assert owner.cores == 1
    assert list(data["profiles"].values()) == [{"type": "parallel_homogeneous", "cpu": 5e10, "com": 0}]
    nothing, data = phase_workload([ShiftJob("a", 0.0, constant(50.0, 0.0))], 1)
    assert nothing.cores == 1
    assert list(data["profiles"].values()) == [{"type": "delay", "delay": 50.0}]


powers = st.sampled_from([0.0, 0.0, 1.0, 2.0, 3.0]) | st.floats(1.0, 9.0)
phases = st.lists(st.tuples(st.floats(1e-3, 1e4), powers), min_size=1, max_size=5)
jobs_of = st.lists(
    st.tuples(st.floats(0, 2e4), st.just([]) | phases, phases, st.integers(1, 3)), min_size=1, max_size=4
)


@examples(200, suppress_health_check=[HealthCheck.too_slow])
@given(rows=jobs_of, data=st.data())
def test_energy_is_the_models_on_any_hosts(rows, data):
    jobs = [
        ShiftJob(str(i), arrival, model(startup, *work), cpus) for i, (arrival, startup, work, cpus) in enumerate(rows)
    ]
    machines = sum(job.cpus for job in jobs)
    cores = phase_workload(jobs, machines)[0].cores
    order = data.draw(st.permutations(range(machines * cores)))
    alloc = {}
    for job in jobs:
        taken, order = order[: job.cpus * cores], order[job.cpus * cores :]
        alloc[job.id] = HostSet(sum(1 << host for host in taken))
    record = played(jobs, machines, alloc)
    # a time is a double: each of a job's at most ten phases begins and ends within its resolution
    resolution_s = 20 * math.ulp(record.consumed_energy[-1][0])
    for row, job in zip(sorted(record.jobs), jobs, strict=True):
        assert row[7] == "COMPLETED_SUCCESSFULLY"
        assert row[RUNTIME] == pytest.approx(job.length_s, rel=1e-9, abs=resolution_s)
        energy = pytest.approx(job.cpus * job.model.energy_j, rel=1e-9, abs=resolution_s * job.cpus * 9.0)
        assert row[ENERGY] == energy
    total = sum(job.cpus * job.model.energy_j for job in jobs)
    assert record.consumed_energy[-1][1] == pytest.approx(total, rel=1e-9, abs=resolution_s * machines * 9.0)


@given(st.floats(0.5, 50.0), st.integers(1, 20), st.floats(0.0, 1.0))
def test_loads_add_up(unit, cores, share):
    machines = PhaseMachines(1, cores, unit)
    power = unit * (1.0 + share * (cores - 1))
    loads = machines.loads(power)
    assert len(loads) == cores and loads[0] == 1.0
    assert sum(loads) * unit == pytest.approx(power, rel=1e-11)
    assert list(loads) == sorted(loads, reverse=True) and loads[-1] >= 0.0
    assert machines.loads(0.0) == (0.0,) * cores


def test_rounding_leaves_no_splinters():
    # 0.3 / 0.1 is a little less than 3, 1.1 / 0.1 a little more than 11
    assert PhaseMachines(1, 3, 0.1).loads(0.3) == (1.0,) * 3
    assert PhaseMachines(1, 11, 0.1).loads(1.1) == (1.0,) * 11
    jobs = [ShiftJob("a", 0.0, model([], (1.0, 0.1), (1.0, 1.1)))]
    assert phase_workload(jobs, 1)[0].cores == 11


@pytest.mark.parametrize("power", [59.0, 241.0, -1.0, float("nan"), float("inf")])
def test_powers_that_a_machine_cannot_draw(power):
    with pytest.raises(ValueError, match="0 W, or from 60 to 240 W"):
        PhaseMachines(1, 4, 60.0).profile(10.0, power)


def test_models_and_machines_survive_the_wire(tmp_path):
    third = PhaseModel((Phase("s", 1 / 3, 60.0),), (Phase("t", 8.17, 2e7 / 3), Phase("c", 1.0, 60.0, True)))
    fields = wire_floats(json.loads(json.dumps({"phases": phases_json(third)})))
    assert reported_model(fields, "job 1") == third
    assert fields["phases"]["startup"][0]["duration"] == "0.3333333333333333"
    assert reported_model({}, "job 1") is None
    owner = PhaseMachines(12, 5, 1 / 3)
    (tmp_path / "p.xml").write_text(machines_xml(owner, "batwatt carbon workload"))
    platform = read_platform(tmp_path / "p.xml")
    assert platform == machines_platform(owner, source=str(tmp_path / "p.xml"))
    hosts = [{"name": host.name, "properties": dict(host.properties)} for host in platform.hosts]
    assert reported_machines(hosts) == owner


@pytest.mark.parametrize(
    ("raw", "problem"),
    [
        ({"startup": [], "work": []}, "0 phases"),
        ({"startup": [], "work": [{"duration": "x", "power": 1}]}, "duration must be a number"),
        ({"startup": [], "work": [{"duration": 1, "power": "-1"}]}, "power must be a number"),
        ({"startup": 3, "work": [3]}, "phase"),
        (7, "must be an object"),
    ],
)
def test_models_that_are_none(raw, problem):
    with pytest.raises(InputError, match=problem) as caught:
        reported_model({"phases": raw}, "job 1")
    assert str(caught.value).startswith("job 1: phases")


def test_other_machines_are_refused():
    def hosts(*watts):
        return [
            {"name": f"h{i}", "properties": {"machine": m, "wattage_per_state": w}} for i, (m, w) in enumerate(watts)
        ]

    for some in (
        hosts(("a", "5:60"), ("b", "5:60")),
        hosts(("a", "0:60"), ("b", "0:50")),
        hosts(("a", "0:60"), ("a", "0:60"), ("b", "0:60")),
        hosts(("a", "0:9:60")),
        [{"name": "h", "properties": {}}],
    ):
        with pytest.raises(InputError, match="machines are not alike"):
            reported_machines(some)


def test_what_is_refused(monkeypatch):
    for jobs, machines, problem in (
        ([], 1, "there is no job"),
        ([ShiftJob("a", 0.0, model([], (1.0, 1.0), (1.0, 65.0)))], 1, "powers from 1 to 65 W take more than 64 hosts"),
        ([ShiftJob("a", 0.0, TRAINING, 3)], 2, "job a: it has 3 cpus, more than there are machines"),
        ([ShiftJob("w0-1", 0.0, TRAINING)], 2, "which Batsim misreads"),
        ([ShiftJob("a", 0.0, TRAINING)], 0, "machines must be a whole number >= 1"),
    ):
        with pytest.raises(InputError, match=problem):
            phase_workload(jobs, machines)
    phase_workload([ShiftJob("a", 0.0, model([], (1.0, 1.0), (1.0, 64.0)))], 1)
    # on 2 cpus TRAINING has 3 matrices of 8 x 8
    monkeypatch.setattr(module, "MAX_CELLS", 191)
    with pytest.raises(InputError, match="job a: its profiles on 2 cpus"):
        phase_workload([ShiftJob("a", 0.0, TRAINING, 2)], 2)
    monkeypatch.setattr(module, "MAX_CELLS", 192)
    phase_workload([ShiftJob("a", 0.0, TRAINING, 2)], 2)


MIXED = [
    ShiftJob("0", 0.0, model([(7.0, 0.0)], (23.45, 60.0), (8.17, 221.93), (4.0, 0.0), (2.72, 105.1)), 2),
    ShiftJob("1", 1.0, constant(50.0, 100.0), 1),
    ShiftJob("2", 3.25, model([(5.0, 60.0)], (2.0, 0.0), (1.5, 61.0), (2.0, 0.0)), 3),
    ShiftJob("3", 100.0, model([], (10.0, 0.0)), 1),
]


def written(folder: Path) -> tuple[Path, Path]:
    owner, data = phase_workload(MIXED, 4)
    (folder / "p.xml").write_text(machines_xml(owner))
    (folder / "w.json").write_text(json.dumps(data))
    return folder / "p.xml", folder / "w.json"


@pytest.mark.parametrize(
    ("scheduler", "options"),
    [
        ("powercap", {"response": "none"}),
        ("powercap", {"response": "none", "backfilling": "first-fit", "order": "lcfs"}),
        ("powercap", {"response": "hfld", "envelope": "cap.csv"}),
        ("powercap", {"response": "iafs", "envelope": "cap.csv"}),
        ("fillerSched", {}),
        ("easyBackfill", {}),
    ],
)
def test_schedulers_that_know_nothing_of_phases(scheduler, options, tmp_path, monkeypatch):
    platform, workload = written(tmp_path)
    monkeypatch.chdir(tmp_path)
    Path("cap.csv").write_text("time_s,power_w\n0,2000\n")
    carry_out(RunSpec(Inputs(platform, (workload,)), scheduler, options, tmp_path / "x"))
    check(tmp_path / "x")


def check(prefix):
    rows = read_jobs(prefix).set_index("job_id")
    assert set(rows.index) == {job.id for job in MIXED}
    for job in MIXED:
        assert rows["consumed_energy"][job.id] == pytest.approx(job.cpus * job.model.energy_j, rel=1e-9, abs=1e-6)
        assert rows["execution_time"][job.id] == pytest.approx(job.length_s, rel=1e-9, abs=1e-6)


@pytest.mark.skipif(shutil.which("batsim") is None, reason="no real `batsim` on PATH")
def test_real_batsim_draws_the_same(tmp_path):
    platform, workload = written(tmp_path)
    # job 2 does not fit beside the others, and hosts of several machines serve one job
    hosts = machines_platform(phase_workload(MIXED, 4)[0]).hosts
    cores = len(hosts) // 4
    one = HostSet(sum(1 << i for i in range(1, 2 * cores + 1)))
    alloc = {"0": one, "1": HostSet(sum(1 << i for i in (0, *range(2 * cores + 1, 3 * cores)))), "3": one}
    alloc["3"] = HostSet(sum(1 << i for i in range(cores)))
    plan = {60.0: [lambda bs: start(bs, "2", HostSet((1 << 3 * cores) - 1))]}
    command = batsim_command("batsim", platform, [workload], tmp_path / "b", None, ["-E", "--disable-schedule-tracing"])
    drive(Scripted(alloc, plan), command, "Batsim", 60.0)
    check(tmp_path / "b")
    engine = Engine(read_platform(platform), [parse_workload(json.loads(workload.read_text()), "w0", "t")])
    write_record(simulate(engine, Scripted(alloc, plan)), tmp_path / "a")
    ours, theirs = ((read_jobs(tmp_path / name).set_index("job_id").sort_index()) for name in "ab")
    for column in ("starting_time", "finish_time", "consumed_energy"):
        assert ours[column].tolist() == pytest.approx(theirs[column].tolist(), abs=2e-6)


def start(bs, name, hosts):
    job = bs.jobs[f"w0!{name}"]
    job.allocation = hosts
    bs.execute_jobs([job])
