"""The same workload under Batsim 4 and 5: the same schedule, up to the millisecond of a wake-up."""

from __future__ import annotations

import json
import math
from dataclasses import replace

import pytest
from builders import envelope, job, machine, workload_of
from examples import examples
from hypothesis import HealthCheck, given
from hypothesis import strategies as st
from test_pybatsim_schedulers import pybatsim_scheduler

from batwatt.batsim.adapters import simulate
from batwatt.batsim.batsim4 import EngineConfig
from batwatt.batsim.batsim5 import Dialect
from batwatt.batsim.batsim5_events import JSON_FLAG
from batwatt.batsim.batsim5_schema import read_hello, read_reply, write_message
from batwatt.batsim.bs import Bs
from batwatt.engine.core import Engine
from batwatt.engine.server5 import Engine5
from batwatt.inputs.batsim_files import phase_workload, read_events5, read_workload5
from batwatt.model.platform import MachineSpec, machines_platform
from batwatt.model.timeline import Timeline
from batwatt.model.work import constant
from batwatt.protocol.conversion import to_batsim5
from batwatt.protocol.events import batsim5_events, parse_events
from batwatt.protocol.workload4 import parse_workload
from batwatt.schedulers.carbon import Carbon
from batwatt.schedulers.carbon.execution import ShiftJob
from batwatt.schedulers.checkpoint import Checkpoint
from batwatt.schedulers.powercap import Powercap
from batwatt.schedulers.replay import Replay
from batwatt.schedulers.riskaware import Riskaware
from batwatt.schedulers.varcap import Varcap

pytestmark = pytest.mark.usefixtures("quiet")

MS = 1e-3
AWAY = """
{"timestamp": 5, "type": "machine_unavailable", "resources": "0-1"}
{"timestamp": 50, "type": "machine_available", "resources": "0-1"}
"""


class Link5:
    """Everything goes through Batsim 5's JSON, as on the wire."""

    def __init__(self, dialect, engine):
        self.dialect, self.engine = dialect, engine

    def message(self):
        return self.dialect.message(write_message(self.engine.message()))

    def reply(self, reply):
        self.engine.reply(read_reply(self.dialect.reply(reply).encode()))


def under_5(scheduler, platform, workload, folder, energy, events=()):
    """The record of a run under Batsim 5's protocol."""
    jobs = [{**row.raw, "id": row.name} for row in workload.jobs]
    data = {"nb_res": len(platform), "jobs": jobs, "profiles": dict(workload.raw_profiles)}
    path = folder / "w5.json"
    path.write_text(json.dumps(to_batsim5(data, "test")))
    dynamic = getattr(scheduler, "needs_dynamic_jobs", False)
    dialect = Dialect(EngineConfig(dynamic_jobs=dynamic, profile_reuse=dynamic, forward_unknown_events=True))
    features = read_hello(JSON_FLAG.to_bytes(4, "little") + dialect.hello().encode())
    files = []
    if events:
        (folder / "events5.txt").write_text("".join(f"{line}\n" for line in batsim5_events(events)))
        files = [read_events5(folder / "events5.txt", "ee0")]
    engine = Engine5(platform, [read_workload5(path, "w0")], files, features, energy=energy)
    Bs(scheduler, Link5(dialect, engine)).start()
    return engine.close()


def under_4(scheduler, platform, workload, energy, events=()):
    dynamic = getattr(scheduler, "needs_dynamic_jobs", False)
    config = EngineConfig(energy=energy, compute_sharing=True, dynamic_jobs=dynamic, profile_reuse=dynamic)
    return simulate(Engine(platform, [workload], config, events), scheduler)


def schedule(record):
    """Job -> state, hosts, start and end."""
    columns = record.jobs.columns()
    names = ("job_id", "final_state", "allocated_resources", "starting_time", "finish_time")
    rows = zip(*(list(columns[name]) for name in names), strict=True)
    return {name: (state, str(hosts), start_s, end_s) for name, state, hosts, start_s, end_s in rows}


def check(make, platform, workload, folder, energy=True):
    four = schedule(under_4(make(), platform, workload, energy))
    five = schedule(under_5(make(), platform, workload, folder, energy))
    assert four.keys() == five.keys()
    for name, (state, hosts, *times_s) in four.items():
        assert (state, hosts) == five[name][:2], name
        for ours, theirs in zip(times_s, five[name][2:], strict=True):
            assert math.isnan(ours) == math.isnan(theirs)
            assert math.isnan(ours) or abs(ours - theirs) <= MS, name


rows = st.lists(
    st.tuples(
        st.integers(0, 600).map(lambda tenth: tenth / 10) | st.floats(0, 300).map(lambda at: round(at, 6)),
        st.integers(1, 4),
        st.integers(1, 40).map(lambda fives: 5.0 * fives),
        st.sampled_from([None, 0.5, 1.0, 2.5]),
        st.booleans(),
    ),
    min_size=1,
    max_size=10,
)


def with_sleep_property(platform):
    """With the property that tells of sleep states, as a platform file has it."""
    hosts = [
        replace(
            host, properties={"sleep_pstates": ",".join(f"{s.sleep}:{s.switch_off}:{s.switch_on}" for s in host.sleeps)}
        )
        for host in platform.hosts
    ]
    return replace(platform, hosts=tuple(hosts))


def load(drawn, hosts):
    return workload_of(
        *(job(i, at, min(width, hosts), run, walltime and run * walltime, flops)
          for i, (at, width, run, walltime, flops) in enumerate(drawn)),
        nb_res=hosts,
    )  # fmt: skip


POWERCAP = ("hfld", "idfs", "frugal")
CAPACITY = Timeline((0.0, 60.0, 150.0, 240.0, 400.0), (4.0, 2.0, 3.0, 1.0, 4.0))
MACHINES = [
    (Riskaware, {"strategy": "target-asap"}),
    (Varcap, {"termination": "lww", "backfilling": "easy"}),
    (Checkpoint, {"checkpoint_s": 10.0, "recovery_s": 5.0}),
]
few = examples(25, suppress_health_check=[HealthCheck.function_scoped_fixture])


@pytest.mark.parametrize("response", POWERCAP)
@few
@given(rows, st.lists(st.integers(40, 800).map(float), min_size=1, max_size=4))
def test_powercap(tmp_path, response, drawn, powers):
    platform = with_sleep_property(machine(2, 2))
    options = {"platform": platform, "envelope": envelope(*powers, step=120.0), "response": response}
    check(lambda: Powercap(options), platform, load(drawn, 4), tmp_path)


@pytest.mark.parametrize(("kind", "options"), MACHINES, ids=lambda value: getattr(value, "__name__", str(value)))
@few
@given(rows)
def test_machines_that_come_and_go(tmp_path, kind, options, drawn):
    spec = MachineSpec(4, 4)
    platform = machines_platform(spec)
    drawn = [(at, width, run, None, False) for at, width, run, *_ in drawn]
    check(lambda: kind({"capacity": CAPACITY, **options}), platform, load(drawn, 4), tmp_path)


@few
@given(rows, st.booleans())
def test_a_scheduler_of_pybatsim(tmp_path, drawn, flops):
    """Jobs are of one kind: delays and computations that end together are reported in an order of each Batsim's own."""
    platform = machine(4)
    drawn = [(at, width, run, walltime or 3.0, flops) for at, width, run, walltime, _ in drawn]
    check(lambda: pybatsim_scheduler("easyBackfill"), platform, load(drawn, 4), tmp_path, energy=False)


hours = st.integers(0, 8).map(lambda hour: 1800.0 * hour)
runs = st.tuples(hours, st.integers(1, 3), st.integers(1, 2))


@few
@given(st.lists(runs, min_size=1, max_size=4), st.lists(st.integers(50, 500).map(float), min_size=30, max_size=30))
def test_carbon(tmp_path, drawn, hourly):
    """Jobs are suspended and go on as new ones, in pieces of several powers."""
    jobs = [
        ShiftJob(f"j{number}", at, constant(3600.0 * length, 100.0), width)
        for number, (at, length, width) in enumerate(drawn)
    ]
    owner, data = phase_workload(jobs, 3)
    # all times of its plans are whole seconds
    signal = Timeline.regular(hourly * 4)
    options = {"signal": signal, "policy": "phase-aware-checkpoints", "deadline_h": 12.0}
    check(lambda: Carbon(options), machines_platform(owner), parse_workload(data, "w0", "test"), tmp_path)


# machines that go -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("make", [lambda: Replay({}), lambda: Varcap({"capacity": Timeline((0.0,), (3.0,))})])
def test_machines_that_go_by_external_events(tmp_path, make):
    """Two machines are away from 5 to 50 s: jobs that run there go on, those that start meanwhile have the third."""
    rows = [job(0, 0.0, 1, 10.0), job(1, 0.0, 1, 10.0), job(2, 6.0, 1, 10.0), job(3, 7.0, 1, 10.0)]
    platform, jobs = machines_platform(MachineSpec(3, 1)), workload_of(*rows, nb_res=3)
    events = parse_events(AWAY, "events.txt")
    four = under_4(make(), platform, jobs, True, events)
    five = under_5(make(), platform, jobs, tmp_path, True, events)
    for record in (four, five):
        spans = {name: (hosts, *times_s) for name, (_, hosts, *times_s) in schedule(record).items()}
        assert [spans[name][0] for name in "01"] == ["0", "1"]
        assert [spans[name][2] for name in "01"] == pytest.approx([10.0, 10.0], abs=MS)
        assert {spans[name][0] for name in "23" if spans[name][1] < 50.0} == {"2"}
