"""The scheduler carbon on the embedded engine: energy, carbon and dates are those of its plans."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest
from carbon_talk import play
from examples import examples
from hypothesis import HealthCheck, given
from hypothesis import strategies as st
from links import ThroughText

from batwatt.errors import InputError
from batwatt.inputs.batsim_files import phase_workload
from batwatt.inputs.servers import machines_xml
from batwatt.model.timeline import Timeline
from batwatt.model.work import Phase, PhaseModel, constant
from batwatt.protocol.workload4 import parse_workload
from batwatt.results.carbon import account
from batwatt.run.run import run
from batwatt.run.spec import RunSpec
from batwatt.schedulers.carbon import Carbon
from batwatt.schedulers.carbon.execution import ShiftJob

HOURLY = [400.0, 300.0, 100.0, 250.0, 80.0, 500.0, 90.0, 320.0] * 6
COURSE = Timeline.regular(HOURLY)
TRAINING = PhaseModel(
    (Phase("start", 600.0, 60.0),),
    tuple(
        Phase(*row)
        for row in [("train", 1800.0, 220.0), ("eval", 300.0, 66.0), ("idle", 60.0, 0.0), ("save", 120.0, 105.0, True)]
        * 3
    ),
)


def same(scheduler, workload, prefix):
    """Compare a run with its plans, job by job; returns the accounts of jobs."""
    totals = account(prefix, COURSE, workload)
    assert totals.averaged == 0
    jobs = totals.per_job().set_index("job")
    for name, execution in scheduler.executions.items():
        row = jobs.loc[name.partition("!")[2]]
        # dates and energies are printed to six decimals
        assert row["energy_j"] == pytest.approx(execution.energy_j, rel=1e-9, abs=1e-5)
        assert row["carbon_g"] == pytest.approx(execution.emitted(COURSE), rel=1e-9, abs=1e-8)
        assert row["begin_s"] == pytest.approx(execution.begin_s, abs=2e-6)
        assert row["end_s"] == pytest.approx(execution.end_s, abs=2e-6)
    return jobs


POLICIES = ["immediate", "oracle", "lowest", "waiting", "cst-average", "suspend-resume", "suspend-resume-threshold",
            "wait-awhile-interrupting", "phase-aware", "phase-aware-checkpoints"]  # fmt: skip
WATTS = st.sampled_from([60.0, 75.5, 105.0, 220.0, 300.0, 0.0])
LENGTHS = st.sampled_from([60.0, 90.0, 600.0, 1234.5, 1800.0, 3600.0])


@st.composite
def models(draw):
    def part(low, high, marks):
        rows = draw(st.lists(st.tuples(LENGTHS, WATTS, marks), min_size=low, max_size=high))
        return tuple(Phase("p", *row) for row in rows)

    return PhaseModel(part(0, 2, st.just(False)), part(1, 4, st.booleans()))


@st.composite
def crowds(draw):
    known = draw(st.lists(models(), min_size=1, max_size=3))
    count = draw(st.integers(1, 7))
    arrivals = sorted(draw(st.lists(st.integers(0, 36_000), min_size=count, max_size=count)))
    return [
        ShiftJob(str(i), float(arrival), draw(st.sampled_from(known)), draw(st.integers(1, 2)))
        for i, arrival in enumerate(arrivals)
    ]


HOURLY_MACHINES = st.lists(st.integers(2, 4), min_size=48, max_size=48)


@examples(100, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    crowds(), st.sampled_from(POLICIES), st.integers(2, 4).map(lambda machines: [machines] * 48) | HOURLY_MACHINES,
    st.sampled_from([0.0, 1.5, 3.0, 6.0]), st.booleans(), st.sampled_from([None, 0.5, 1.0]),
)  # fmt: skip
def test_a_run_is_its_plans(tmp_path, jobs, policy, hourly, wait_h, text, replan_h):
    """Also if the capacity varies, forecasts are wrong and jobs are planned anew."""
    wrap = ThroughText if text else lambda link: link
    options = {"policy": policy, "wait_h": [wait_h], "replan_h": replan_h, "forecast_error": 0.3 if replan_h else 0.0}
    capacity = Timeline(tuple(np.arange(48) * 3600.0), tuple(map(float, hourly)))
    scheduler, workload = play(jobs, 4, tmp_path / "x", wrap, signal=COURSE, capacity=capacity, **options)
    same(scheduler, workload, tmp_path / "x")
    assert len(scheduler.executions) == len(jobs)
    segments = [(run.job.cpus, each) for run in scheduler.executions.values() for each in run.segments]
    for now in {each.begin_s for _, each in segments} | set(np.arange(1.0, 48 * 3600.0, 420.0)):
        held = sum(cpus for cpus, segment in segments if segment.begin_s <= now < segment.end_s)
        assert held <= capacity.at(now)


def signal_file(folder):
    rows = "".join(f"{i * 3600},{value}\n" for i, value in enumerate(HOURLY))
    (folder / "s.csv").write_text("time_s,carbon_intensity\n" + rows)
    return str(folder / "s.csv")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"price_weight": 1.0}, "give money a weight without a price; give a price, too"),
        ({"wait_h": [-1.0]}, "option 'wait_h': -1.0 is not a list as"),
        ({"carbon_weight": 0.0}, "carbon_weight, price_weight: are both 0"),
        ({"node_selection": "spread"}, "option 'node_selection': machines for jobs in phases are all alike"),
    ],
)
def test_what_is_refused(tmp_path, options, message):
    with pytest.raises(InputError, match=message.replace("(", "[(]")):
        play([ShiftJob("a", 0.0, constant(60.0, 5.0))], 1, tmp_path / "x", **{"signal": COURSE} | options)


def test_limits_of_waits_are_checked_before_the_first_job():
    with pytest.raises(InputError, match="both deadline_h and constraint"):
        Carbon({"deadline_h": 2.0, "constraint": "semi-weekly"})


def test_a_batsim_does_what_was_planned(tmp_path, batsim):
    """Suspended and resumed jobs, pieces of several powers, on Batsim itself; its messages take microseconds."""
    jobs = [ShiftJob("a", 0.0, TRAINING), ShiftJob("b", 900.0, TRAINING, 2), ShiftJob("c", 950.0, TRAINING)]
    owner, data = phase_workload(jobs, 3)
    (tmp_path / "p.xml").write_text(machines_xml(owner))
    (tmp_path / "w.json").write_text(json.dumps(data))
    options = {"signal": signal_file(tmp_path), "policy": "phase-aware-checkpoints", "wait_h": [12.0]}
    for engine in ("batsim", "embedded"):
        spec = RunSpec(
            platform=tmp_path / "p.xml",
            workloads=(tmp_path / "w.json",),
            scheduler="carbon",
            options=options,
            prefix=tmp_path / engine,
            engine=engine,
        )
        run(replace(spec, batsim=batsim))
    workload = parse_workload(data, "w0", "test")
    real, ours = (account(tmp_path / name, COURSE, workload) for name in ("batsim", "embedded"))
    assert real.metrics()["segments"] == ours.metrics()["segments"] > len(jobs)
    assert real.energy_j == pytest.approx(ours.energy_j, rel=1e-6)
    assert real.carbon_g == pytest.approx(ours.carbon_g, rel=1e-6)
    assert real.per_job()["end_s"].tolist() == pytest.approx(ours.per_job()["end_s"].tolist(), abs=0.1)
