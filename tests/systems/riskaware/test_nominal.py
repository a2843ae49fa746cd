"""Strategies without an engine: by hand, the record of the embedded engine on random instances, and what is refused."""

from __future__ import annotations

import logging

import pytest
from builders import job, machine, workload_of
from examples import examples
from hypothesis import HealthCheck, given, seed, settings
from hypothesis import strategies as st

from batwatt.engine.config import EngineConfig
from batwatt.engine.core import Engine
from batwatt.engine.embedded import simulate
from batwatt.errors import InputError
from batwatt.inputs.platforms.machines import MachineSpec, machines_platform
from batwatt.model.series import Series
from batwatt.results.writers import write_record
from batwatt.schedulers.riskaware import Riskaware
from batwatt.systems.riskaware.nominal import simulate_nominal

STRATEGIES = ("first-fit-aware", "first-fit-unaware", "target-stretch", "target-asap", "packed-target-asap")
ROOMS = {
    "2x2": MachineSpec(2, 2),
    "4x3": MachineSpec(4, 3, core_w=7.3),
    "slow to boot": MachineSpec(4, 3, off_s=15.0, on_s=40.0),
    "wide": MachineSpec(3, 130),
}
PLATFORMS = {name: machines_platform(spec) for name, spec in ROOMS.items()}

times = st.integers(0, 60).map(lambda tens: 10.0 * tens) | st.floats(0, 600).map(lambda x: round(x, 3))
lengths = st.integers(1, 30).map(lambda tens: 10.0 * tens) | st.floats(1, 300).map(lambda x: round(x, 2))
rows_of = st.lists(
    st.tuples(
        times,
        st.floats(0.01, 1.4),  # cores, of those of a machine
        lengths,
        st.sampled_from(["delay"] * 4 + ["old", "walltime", "short walltime"]),
        st.floats(0.05, 0.95),
    ),
    max_size=14,
)
victims = st.sampled_from(
    [
        "lose",
        "resubmit",
        {"name": "checkpoint", "checkpoint_s": 10.0, "recovery_s": 5.0},
        {"name": "migrate", "cost_s": 3.0},
    ]
)
options_of = st.fixed_dictionaries(
    {"strategy": st.sampled_from(STRATEGIES)},
    optional={
        "as_published": st.booleans(),
        "victim": victims,
        "switch": st.booleans(),
        "seed": st.integers(0, 3),
        "distance": st.integers(0, 4),
        "quantiles": st.sampled_from([0, 10]),
        "usable": st.integers(1, 4),
        "take_empty": st.booleans(),
        "pack": st.integers(1, 3),
        "until_s": st.integers(1, 200).map(lambda tens: 10.0 * tens),
    },
)
instances = st.tuples(
    st.sampled_from(sorted(ROOMS)),
    rows_of,
    st.lists(st.floats(0, 1), min_size=1, max_size=12),
    st.sampled_from([50.0, 37.5, 100.0, 33.3]),
    options_of,
    st.booleans(),
)


def load(rows, spec):
    """Jobs of a trace or, with `old` ones among them, of a window of one that begins at 1000 s."""
    begin_s = 1000.0 if any(kind == "old" for *_, kind, _ in rows) else 0.0
    made = []
    for i, (at, share, length, kind, part) in enumerate(rows):
        cores = max(1, round(share * spec.cores))
        row = job(i, round(begin_s + at, 6), cores, length)
        if kind == "old":
            gone = round(part * length, 3)
            row |= {"subtime": begin_s, "release_s": round(begin_s - gone, 6), "length_s": length}
            row["_profile"]["delay"] = round(length - gone, 6)
        elif kind != "delay":
            row["walltime"] = round(length * (part if kind == "short walltime" else 1.0), 3)
        made.append(row)
    return workload_of(*made, nb_res=spec.machines * spec.cores), begin_s


def both(instance, folder):
    """The files of a run on the embedded engine and without it."""
    room, rows, shares, step_s, options, energy = instance
    spec, platform = ROOMS[room], PLATFORMS[room]
    workload, begin_s = load(rows, spec)
    values = tuple(float(round(share * spec.machines)) for share in shares)
    capacity = Series((0.0, *(begin_s + step_s * (i + 1) for i in range(len(values) - 1))), values)
    chosen = {"capacity": capacity} | options | ({} if energy else {"switch": False})
    config = EngineConfig(energy=energy, dynamic_jobs=True, profile_reuse=True)
    records = {
        "embedded": simulate(Engine(platform, [workload], config), Riskaware(chosen)),
        "nominal": simulate_nominal(platform, workload, Riskaware(chosen), config),
    }
    for name, record in records.items():
        write_record(record, folder / name)
    return [{path.name.removeprefix(name): path.read_bytes() for path in sorted(folder.glob(f"{name}_*"))}
            for name in records]  # fmt: skip


def check(instance, folder):
    logging.disable(logging.WARNING)
    try:
        embedded, nominal = both(instance, folder)
    finally:
        logging.disable(logging.NOTSET)
    assert embedded.keys() == nominal.keys() and "_jobs.csv" in embedded
    for name, content in embedded.items():
        assert content.decode() == nominal[name].decode(), name


LATE = (
    "slow to boot",
    [(0.0, 1.0, 10.0, "delay", 0.5)] * 4,
    [0.0, 0.25, 0.0],
    50.0,
    {"strategy": "first-fit-aware"},
    True,
)
"""A machine boots for 40 of its 50 s: jobs planned there before are run later, when no machine is alive any more."""


def test_late_jobs_run_when_no_machine_is_alive_any_more(tmp_path):
    check(LATE, tmp_path)
    rows = (tmp_path / "nominal_jobs.csv").read_text().splitlines()[1:]
    assert [row.split(",")[7] for row in rows] == ["COMPLETED_SUCCESSFULLY"] * 4


@given(instances)
@examples(600, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_files_of_the_embedded_engine(tmp_path, instance):
    check(instance, tmp_path)


@pytest.mark.deep
@pytest.mark.timeout(1500)
@seed(18)
@given(instances)
@settings(max_examples=4000, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_files_of_the_embedded_engine_on_thousands_of_instances(tmp_path, instance):
    check(instance, tmp_path)


# by hand ----------------------------------------------------------------------------------------------------------


def test_a_kill_and_a_switch():
    """One of two machines of 1 core goes from 50 s to 80 s; job 2 runs there, and starts again when it is back."""
    jobs = workload_of(job(1, 0.0, 1, 100.0), job(2, 10.0, 1, 60.0), nb_res=2)
    capacity = Series((0.0, 50.0, 80.0), (2.0, 1.0, 2.0))
    scheduler = Riskaware({"capacity": capacity, "strategy": "first-fit-aware", "as_published": False})
    record = simulate_nominal(machines_platform(MachineSpec(2, 1)), jobs, scheduler, EngineConfig(energy=True))
    # off takes a microsecond, on another one; the second run waits for that
    on_s = 80.0 + 1e-6
    assert [(row.job_id, row.final_state, row.starting_time, row.finish_time, row.allocated_resources)
            for row in record.jobs] == [
        ("2", "COMPLETED_KILLED", 10.0, 50.0, "1"),
        ("1", "COMPLETED_SUCCESSFULLY", 0.0, 100.0, "0"),
        ("2#1", "COMPLETED_SUCCESSFULLY", on_s, on_s + 60.0, "1"),
    ]  # fmt: skip
    assert record.pstate_changes == [
        (0.0, "0-1", 0), (50.0, "1", -2), (50.0 + 1e-6, "1", 1), (80.0, "1", -1), (on_s, "1", 0),
    ]  # fmt: skip
    # 10 W a core, but for the 30 s in which one is off
    assert record.schedule["consumed_joules"] == pytest.approx(2 * 10.0 * (on_s + 60.0) - 10.0 * 30.0, abs=1e-4)
    assert [row.consumed_energy for row in record.jobs] == pytest.approx([400.0, 1000.0, 600.0])


LOST = {
    # 3 starts at 50 s, when 2 ends, on the machine that goes at that very time; 4 waits for the other one
    "at one time": (
        MachineSpec(2, 1),
        [(0.0, 1, 100.0), (0.0, 1, 50.0), (10.0, 1, 30.0), (20.0, 1, 30.0)],
        Series((0.0, 50.0), (2.0, 1.0)),
        {"strategy": "first-fit-aware", "as_published": False},
        {"2": (0.0, 50.0, "1"), "3": None, "1": (0.0, 100.0, "0"), "4": (100.0, 130.0, "0")},
    ),
    # 2 starts at 60 s by the plan, on a machine that comes at 50 s, is on at 90 s, and goes at 80 s
    "late": (
        MachineSpec(2, 1, off_s=15.0, on_s=40.0),
        [(0.0, 1, 200.0), (60.0, 1, 100.0)],
        Series((0.0, 10.0, 50.0, 80.0), (2.0, 1.0, 2.0, 1.0)),
        {"strategy": "first-fit-aware", "as_published": False},
        {"2": None, "1": (0.0, 200.0, "0")},
    ),
    # M_use is 1, so all is planned on machine 0, until 150 s; then it is 2 and machine 1 the target, where 2 starts at
    # once (with stretch 235 / 90, now S+) and 3 within S+ at 240 s (434 / 200), when the machine goes
    "TargetStretch": (
        MachineSpec(2, 2),
        [(0.0, 1, 155.0), (5.0, 2, 90.0), (6.0, 2, 200.0)],
        Series((0.0, 60.0, 150.0, 240.0), (2.0, 1.0, 2.0, 1.0)),
        {"strategy": "target-stretch"},
        {"1": (0.0, 155.0, "0"), "3": None, "2": (150.000001, 240.000001, "2-3")},
    ),
}
"""Jobs that are started and killed by the plan before they begin, and do not run again."""


@pytest.mark.parametrize("case", LOST)
def test_what_is_lost_before_it_begins_is_rejected(case, caplog):
    spec, rows, capacity, chosen, expected = LOST[case]
    jobs = workload_of(*(job(i, *row) for i, row in enumerate(rows, 1)), nb_res=spec.machines * spec.cores)
    options = {"capacity": capacity, "victim": "lose"} | chosen
    platform, config = machines_platform(spec), EngineConfig(energy=True, dynamic_jobs=True, profile_reuse=True)
    for record in (
        simulate(Engine(platform, [jobs], config), Riskaware(options)),
        simulate_nominal(platform, jobs, Riskaware(options), config),
    ):
        found = {
            row.job_id: None
            if row.final_state == "REJECTED"
            else (row.starting_time, row.finish_time, row.allocated_resources)
            for row in record.jobs
        }
        assert list(found) == list(expected) and found == expected
    assert caplog.text.count("1 job can never run, lost with their machine before they began: rejected") == 2


# refusals ---------------------------------------------------------------------------------------------------------

CONFIG = EngineConfig(energy=True)
ONE = workload_of(job(1, 0.0, 1, 10.0), nb_res=2)
REFUSED = {
    "flops": (PLATFORMS["2x2"], workload_of(job(1, 0.0, 1, 10.0, 20.0, flops=True), nb_res=2), CONFIG, "delays"),
    "kinds": (machine(1, 1), ONE, CONFIG, "all alike"),
    "sharing": (PLATFORMS["2x2"], ONE, EngineConfig(compute_sharing=True), "compute-sharing"),
    "late": (PLATFORMS["2x2"], workload_of(job(1, 1e10, 1, 10.0), nb_res=2), CONFIG, "times before"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_needs_an_engine(case):
    platform, workload, config, words = REFUSED[case]
    scheduler = Riskaware({"capacity": Series((0.0,), (2.0,))})
    with pytest.raises(InputError, match=words) as error:
        simulate_nominal(platform, workload, scheduler, config)
    assert "use --engine embedded" in str(error.value) and "\n" not in str(error.value)
