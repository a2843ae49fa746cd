"""Jobs in phases: read, carried out on the engines, refused."""

from __future__ import annotations

import json
import logging
import math
from pathlib import Path

import pytest
from examples import examples
from files_of_tests import refusal
from files_of_tests import written as trace
from hypothesis import HealthCheck, given
from hypothesis import strategies as st
from scripted import Scripted

from batwatt.batsim.adapters import simulate
from batwatt.batsim.batsim4 import EngineConfig
from batwatt.engine.core import Engine
from batwatt.inputs import batsim_files as module
from batwatt.inputs.batsim_files import phase_workload, read_model, read_phase_jobs
from batwatt.inputs.platform_files import read_platform
from batwatt.inputs.servers import machines_xml
from batwatt.model.hostset import HostSet
from batwatt.model.platform import machines_platform
from batwatt.model.work import Phase, PhaseModel, ShiftJob
from batwatt.protocol.job_fields import (
    MOST_PHASES,
    PhaseMachines,
    model_of,
    phases_json,
    reported_machines,
    reported_model,
)
from batwatt.protocol.numbers import wire_floats
from batwatt.protocol.workload4 import parse_workload

ROOT = Path(__file__).resolve().parents[2]
HEAD = "arrival_time|length|cpus|name|args\n"
ML = {
    "start_duration": 23.45, "start_power": 60, "training_duration": 8.17, "training_power": 221.93,
    "evaluate_duration": 1.54, "evaluate_power": 63.17, "save_duration": 2.72, "save_power": 105.1, "epochs": 5,
}  # fmt: skip
HIGH, LOW = {"name": "high", "duration": 60, "power": 200}, {"name": "low", "duration": 30, "power": 50}
TWO = {"startup": [{"name": "load", "duration": 10, "power": 150}], "work": [HIGH, LOW]}
LOAD, WORK, STARTUP = Phase("load", 10, 150), Phase("high", 60, 200), Phase("startup", 10, 150)
TWO_MODEL = PhaseModel((LOAD,), (WORK, Phase("low", 30, 50)))


def jobs(tmp_path, text, **options):
    return read_phase_jobs(trace(tmp_path, text), **options)


def test_a_plain_trace_draws_some_watts_on_each_cpu(tmp_path, caplog):
    plain, wide = jobs(tmp_path, "arrival_time,length,cpus\n0.0,6302.0,1\n68,1000,3\n", watts=2.5)
    assert (plain.id, plain.arrival_s, plain.length_s, plain.cpus, plain.model.mean_w) == ("1", 0, 6302, 1, 2.5)
    assert (wide.id, wide.arrival_s, wide.model.energy_j, wide.cpus) == ("2", 68, 2500, 3)
    # a name is no type where there is no column of args
    with caplog.at_level(logging.WARNING):
        [job] = jobs(tmp_path, "arrival_time,length,cpus,name\n0,0,1,a\n5,10,1,resnet\n6,10,0,b\n")
    assert (job.id, job.model) == ("2", PhaseModel((), (Phase("work", 10, 1),)))
    assert "2 jobs without a length or cpus left out" in caplog.text


@pytest.mark.parametrize(
    ("kind", "args", "length", "model"),
    [
        ("constant", "", 100, PhaseModel((), (Phase("work", 100, 1),))),
        ("constant", "95.5", 100, PhaseModel((), (Phase("work", 100, 95.5),))),
        ("constant", '{"power": 80}', 100, PhaseModel((), (Phase("work", 100, 80),))),
        # (60 x 200 + 30 x 50) / 90 W, and with the start-up (13500 + 1500) / 100 W
        ("constant-from-phases", [HIGH, LOW], 45, PhaseModel((), (Phase("work", 45, 150),))),
        ("mocked-constant-from-phases", TWO, 100, PhaseModel((), (Phase("work", 100, 150),))),
        ("phases", TWO, 100, TWO_MODEL),
        ("periodic-phases", TWO, 170, PhaseModel((LOAD,), (*TWO_MODEL.work, WORK, Phase("low", 10, 50)))),
        ("constant-from-periodic-phases", TWO, 100, PhaseModel((STARTUP,), (Phase("work", 90, 150),))),
        ("phases", {"startup": [{"duration": 0, "power": 150}], "work": [HIGH]}, 60, PhaseModel((), (WORK,))),
    ],
)
def test_the_types(tmp_path, kind, args, length, model):
    texts = [args] if isinstance(args, str) else [json.dumps(args), repr(args)]
    for text in texts:
        assert jobs(tmp_path, HEAD + f"0|{length}|1|{kind}|{text}\n")[0].model == model
        # durations in args are s whatever the unit; quotes hold args where commas separate
        quoted = text.replace('"', '""')
        row = f'1,{length / 3600!r},1,{kind},"{quoted}"\n'
        [job] = jobs(tmp_path, HEAD.replace("|", ",") + row, unit="h")
        assert job.arrival_s == 3600 and job.length_s == pytest.approx(model.length_s)


def test_ml_is_a_startup_and_epochs_that_end_with_a_checkpoint(tmp_path):
    """23.45 s x 60 W + 5 x (8.17 x 221.93 + 1.54 x 63.17 + 2.72 x 105.1) J."""
    model = jobs(tmp_path, HEAD + f"0|85.6|1|ml|{ML!r}\n")[0].model
    assert model.startup == (Phase("start", 23.45, 60),)
    assert [phase.name for phase in model.work] == ["training", "evaluate", "save"] * 5
    assert model.checkpoints_s == pytest.approx([12.43, 24.86, 37.29, 49.72])
    assert model.energy_j == pytest.approx(1407 + 5 * (1813.1681 + 97.2818 + 285.872))


def test_phases_rule_where_the_length_differs(tmp_path, caplog):
    """100.4 s differs by less than 0.5 %, 110 s by more; 0 says nothing."""
    text = HEAD + "".join(f"0|{length}|1|phases|{json.dumps(TWO)}\n" for length in (100.4, 110, 0))
    with caplog.at_level(logging.WARNING):
        assert [job.length_s for job in jobs(tmp_path, text)] == [100, 100, 100]
    assert "the phases of 1 jobs do not last as long as their length" in caplog.text
    assert "job 2: 100 s, not 110 s" in caplog.text


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ("0|10|1|phases|{'startup': []\n", "neither JSON nor a Python literal"),
        ("0|10|1|phases|__import__('os').abort()", "more than numbers, texts, lists and objects"),
        ('0|10|1|phases|{"work": [], "work": []}', "'work' appears twice"),
        ("0|10|1|phase|{}", "no type of job 'phase'; did you mean 'phases'?"),
        ("0|10|1|constant|-5", "power must be a number of W from 0 to 1e+09, got -5"),
        ("0|10|1|ml|{'epochs': 5}", "'start_duration' is missing"),
        (f"0|10|1|ml|{ {**ML, 'epochs': 0} }", "epochs must be a whole number from 1 to"),
        (f"0|10|1|ml|{ {**ML, 'epochs': 10**9} }", "epochs must be a whole number from 1 to 33333"),
        (f"0|5|1|periodic-phases|{TWO}", "start-up of 10 s leaves no time to work in 5 s"),
        ("0|9e8|1|periodic-phases|{'work': [{'duration': 1, 'power': 5}]}", "repeated to more than 100000"),
        ("-1|10|1||", "job 1: it must arrive at >= 0 s, got -1.0"),
        ("0|0|1||", "has no jobs"),
    ],
)
def test_bad_rows(tmp_path, row, message):
    line = refusal(jobs, tmp_path, HEAD + row + "\n")
    assert "jobs.csv" in line and message in line


def work(**changes):
    return json.dumps({"work": [HIGH, {**LOW, **changes}]})


@pytest.mark.parametrize("data", [TWO, {"type": "periodic-phases", "length": 100, **TWO}])
def test_ways_to_write_a_job(tmp_path, data):
    assert read_model(trace(tmp_path, json.dumps(data), "job.json")) == TWO_MODEL
    assert model_of({"type": "constant", "length": 60}, "x", 9.0).mean_w == 9


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "is not JSON"),
        ('{"work": []}', "work must be a list of one or more phases, got 0 phases"),
        (work(duration=0), "work phase 2: duration must be a number of s > 0 and up to 1e+09, got 0"),
        ('{"startup": [{"duration": -1, "power": 5}], "work": [{"duration": 1, "power": 1}]}', "startup phase 1"),
        ('{"startup": [{"duration": 1, "power": 5, "is_checkpoint": true}], "work": []}', "no key 'is_checkpoint'"),
        ('{"type": 3}', "type must be a text, got 3"),
        ('{"type": "constant", "power": 5}', "has no length"),
    ],
)
def test_bad_files(tmp_path, text, message):
    line = refusal(read_model, trace(tmp_path, text, "job.json"))
    assert "job.json" in line and message in line


@given(
    st.lists(st.tuples(st.integers(1, 500), st.integers(0, 300), st.booleans()), min_size=1, max_size=6),
    st.integers(1, 2000),
)
def test_periodic_phases_last_as_long_as_they_should(phases, length):
    """Each whole phase is the next of the period; the energy is that of the period's step function."""
    raw = [{"duration": duration, "power": power, "is_checkpoint": flag} for duration, power, flag in phases]
    model = model_of({"type": "periodic-phases", "work": raw, "length": length}, "x")
    watts = [power for duration, power, _ in phases for _ in range(duration)]
    assert model.length_s == length and len(model.work) < MOST_PHASES
    assert model.energy_j == sum(watts[second % len(watts)] for second in range(length))


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
    assert refusal(reported_model, {"phases": 7}, "job 1").startswith("job 1: phases")
    owner = PhaseMachines(12, 5, 1 / 3)
    (tmp_path / "p.xml").write_text(machines_xml(owner, "batwatt convert"))
    platform = read_platform(tmp_path / "p.xml")
    assert platform == machines_platform(owner, source=str(tmp_path / "p.xml"))
    hosts = [{"name": host.name, "properties": dict(host.properties)} for host in platform.hosts]
    assert reported_machines(hosts) == owner


@pytest.mark.parametrize(
    "machines",
    [
        (("a", "5:60"), ("b", "5:60")),
        (("a", "0:60"), ("b", "0:50")),
        (("a", "0:60"), ("a", "0:60"), ("b", "0:60")),
        (("a", "0:9:60"),),
        (("a", ""),),
    ],
)
def test_other_machines_are_refused(machines):
    hosts = [{"name": "h", "properties": {"machine": name, "wattage_per_state": watts}} for name, watts in machines]
    assert "machines are not alike" in refusal(reported_machines, hosts)


@pytest.mark.parametrize(
    ("workload", "machines", "message"),
    [
        ([], 1, "there is no job"),
        ([ShiftJob("a", 0.0, model([], (1.0, 1.0), (1.0, 65.0)))], 1, "powers from 1 to 65 W take more than 64 hosts"),
        ([ShiftJob("a", 0.0, TRAINING, 3)], 2, "job a: it has 3 cpus, more than there are machines"),
        ([ShiftJob("w0-1", 0.0, TRAINING)], 2, "which Batsim misreads"),
        ([ShiftJob("a", 0.0, TRAINING)], 0, "machines must be a whole number >= 1"),
        # on 2 cpus TRAINING has 3 matrices of 8 x 8
        ([ShiftJob("a", 0.0, TRAINING, 2)], 2, "job a: its profiles on 2 cpus"),
    ],
)
def test_workloads_that_are_refused(workload, machines, message, monkeypatch):
    monkeypatch.setattr(module, "MAX_CELLS", 191)
    assert message in refusal(phase_workload, workload, machines)
