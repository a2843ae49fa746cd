"""Laws that hold for the strategies of the riskaware paper on the engine, on random jobs and capacities."""

from __future__ import annotations

import itertools

import pytest
from builders import job, workload_of
from examples import examples
from hypothesis import HealthCheck, given
from hypothesis import strategies as st
from links import ThroughText

from batwatt.engine.config import EngineConfig
from batwatt.engine.core import Engine
from batwatt.engine.embedded import simulate
from batwatt.model.hostset import from_text, ids
from batwatt.model.machines import MachineSpec, machines_platform
from batwatt.model.series import Series
from batwatt.model.workload import WINDOW_OVER
from batwatt.results.writers import write_record
from batwatt.schedulers.riskaware import Riskaware
from batwatt.systems.riskaware.strategy import MachinePlanner

STRATEGIES = ("first-fit-aware", "first-fit-unaware", "target-stretch", "target-asap", "packed-target-asap")
MACHINES, CORES = 4, 3
PLATFORM = machines_platform(MachineSpec(MACHINES, CORES))
BOOTING = machines_platform(MachineSpec(MACHINES, CORES, off_s=15.0, on_s=40.0))
LAG_S = 1e-3
ID, SUBMISSION, WIDTH, STATE, START, END, HOSTS, META = 0, 3, 4, 7, 8, 10, 14, 16

times = st.integers(0, 60).map(lambda tens: 10.0 * tens) | st.floats(0, 600).map(lambda x: round(x, 3))
jobs_of = st.lists(
    st.tuples(
        times,  # submission
        st.integers(1, CORES + 1),  # cores, now and then too many
        st.integers(1, 30).map(lambda tens: 10.0 * tens) | st.floats(1, 300).map(lambda x: round(x, 2)),  # length
        st.sampled_from(["delay"] * 4 + ["old", "flops"]),
        st.floats(0.05, 0.95),
    ),
    max_size=14,
)
counts = st.lists(st.integers(0, MACHINES) | st.integers(2, MACHINES), min_size=1, max_size=12)
steps = st.sampled_from([50.0, 37.5, 100.0])
options_of = st.fixed_dictionaries(
    {"strategy": st.sampled_from(STRATEGIES)},
    optional={
        "as_published": st.booleans(),
        "seed": st.integers(0, 3),
        "distance": st.integers(0, MACHINES),
        "quantiles": st.sampled_from([0, 10]),
        "usable": st.integers(1, MACHINES),
        "take_empty": st.booleans(),
        "pack": st.integers(1, 3),
        "until_s": st.integers(1, 40).map(lambda tens: 10.0 * tens),
    },
)


class Witness(MachinePlanner):
    """Passes everything on, and notes which machines are alive since when, and when jobs are to end."""

    def __init__(self, planner: MachinePlanner) -> None:
        self.planner = planner
        self.alive: list[tuple[float, frozenset[int]]] = []
        self.numbers: dict[float, int] = {}
        self.ended_early: set[int] = set()

    def advance(self, time_s, alive=None, arrivals=()):
        told = self.planner.advance(time_s, alive, arrivals)
        if alive is not None:
            self.alive.append((time_s, frozenset(self.planner.machines_alive())))
            assert len(self.alive[-1][1]) == alive
        for new in arrivals:
            self.numbers[round(new.length_s, 6)] = new.number
        return told

    def ended(self, number, time_s):
        self.ended_early.add(number)
        return self.planner.ended(number, time_s)

    def dropped(self):
        return self.planner.dropped()

    def machine_of(self, number):
        return self.planner.machine_of(number)

    def end_s(self, number):
        return self.planner.end_s(number)

    def machines_alive(self):
        return self.planner.machines_alive()

    def tie(self, name):
        return self.planner.tie(name)


class Watched(Riskaware):
    """With a witness."""

    def onSimulationBegins(self):
        super().onSimulationBegins()
        self.witness = self.planner = Witness(self.planner)


def load(rows):
    """Jobs as `workload_of` has them. No two have the same length, so that it tells them apart."""
    made = []
    for i, (at, cores, length, kind, part) in enumerate(rows):
        length = round(length + i / 1000, 6)
        row = {"id": str(i), "subtime": at, "res": cores, "profile": f"p{i}"}
        profile = {"type": "delay", "delay": length}
        if kind == "old":
            gone = round(part * length, 3)
            row |= {"subtime": 1000.0, "release_s": 1000.0 - gone, "length_s": length}
            profile["delay"] = round(length - gone, 6)
        elif kind == "flops":
            # its walltime is what is known of it, and it ends before
            row["walltime"] = length
            profile = {"type": "parallel_homogeneous", "cpu": 18.4e9 * round(part * length, 3), "com": 0}
        made.append(row | {"_profile": profile})
    if any(kind == "old" for *_, kind, _ in rows):
        # a window: nothing comes before it
        for row in made:
            row["subtime"] = max(row["subtime"], 1000.0 + row["subtime"] if "release_s" not in row else 1000.0)
    return workload_of(*made, nb_res=MACHINES * CORES)


def run(rows, capacity, options, platform=PLATFORM, text=False):
    scheduler = Watched({"capacity": capacity} | options)
    config = EngineConfig(energy=True, dynamic_jobs=True, profile_reuse=True)
    engine = Engine(platform, [load(rows)], config)
    return simulate(engine, scheduler, ThroughText if text else None), scheduler.witness


def capacity_of(rows, values, step_s):
    """Steps from the beginning of the workload."""
    begin_s = 1000.0 if any(kind == "old" for *_, kind, _ in rows) else 0.0
    return Series((0.0, *(begin_s + step_s * (i + 1) for i in range(len(values) - 1))), tuple(map(float, values)))


def check_every_job_ends_once(record, rows, capacity, options):
    """It completes, after any number of kills, or is rejected for a reason."""
    until_s = options.get("until_s")
    runs: dict[int, list[tuple]] = {i: [] for i in range(len(rows))}
    for row in record.jobs:
        runs[int(row[ID].partition("#")[0])].append(row)
    for i, (_, cores, length, kind, part) in enumerate(rows):
        own = sorted(runs[i], key=lambda row: int(row[ID].partition("#")[2] or 0))
        # ID, ID#1, ID#2, ... one after the other, all killed but the last
        assert [row[ID] for row in own] == [str(i)] + [f"{i}#{k}" for k in range(1, len(own))]
        assert all(row[STATE] == "COMPLETED_KILLED" for row in own[:-1])
        for one, two in itertools.pairwise(own):
            assert two[START] is None or two[START] >= one[END] - 1e-6
        last = own[-1]
        assert all(
            row[WIDTH] == cores and (not row[HOSTS] or from_text(row[HOSTS]).bit_count() == cores) for row in own
        )
        if cores > CORES:
            assert (len(own), last[STATE]) == (1, "REJECTED")
        elif last[STATE] == "REJECTED":
            over = until_s is not None and last[META] == WINDOW_OVER
            dropped = kind == "old" and len(own) == 1 and options.get("as_published", True)
            assert over or dropped or capacity.values[-1] == 0.0
        elif last[STATE] == "COMPLETED_KILLED":
            assert until_s is not None and last[END] == pytest.approx(until_s, abs=LAG_S)
        else:
            assert last[STATE] == "COMPLETED_SUCCESSFULLY"
            whole = round(length + i / 1000, 6)
            lasts = whole if kind == "delay" or (kind == "old" and len(own) > 1) else None
            if kind == "old" and len(own) == 1:
                lasts = whole - round(part * whole, 3)
            if kind == "flops":
                lasts = round(part * whole, 3)
            # from zero, whole, after a kill
            assert last[END] - last[START] == pytest.approx(lasts, abs=1e-5)
    return runs


def check_cores(record):
    """A job is on one machine, no core has two jobs, and so no machine runs more than its cores."""
    ran = [row for row in record.jobs if row[START] is not None]
    for row in ran:
        assert len({host // CORES for host in ids(from_text(row[HOSTS]))}) == 1
    for one, other in itertools.combinations(ran, 2):
        if from_text(one[HOSTS]) & from_text(other[HOSTS]):
            assert one[END] <= other[START] + 1e-6 or other[END] <= one[START] + 1e-6


def check_switched_on(record):
    """No job runs on a host that is off, or is being switched."""
    state = dict.fromkeys(range(MACHINES * CORES), (0.0, 0))
    off: list[tuple[float, float, int]] = []
    for at, hosts, pstate in [*record.pstate_changes, (1e9, f"0-{MACHINES * CORES - 1}", 0)]:
        for part in hosts.split():
            low, _, high = part.partition("-")
            for host in range(int(low), int(high or low) + 1):
                since, before = state[host]
                if before != 0:
                    off.append((since, at, host))
                state[host] = (at, pstate)
    for row in record.jobs:
        if row[START] is not None:
            for since, until, host in off:
                if from_text(row[HOSTS]) >> host & 1:
                    assert row[END] <= since + 1e-6 or row[START] >= until - 1e-6, (row, since, until)


def check_alive(record, witness):
    """Nothing runs beyond the machines alive, to a millisecond."""
    periods = itertools.pairwise([*witness.alive, (1e9, frozenset())])
    for (since, alive), (until, _) in periods:
        for row in record.jobs:
            if row[START] is not None and row[START] + LAG_S < until and row[END] - LAG_S > since:
                assert min(ids(from_text(row[HOSTS]))) // CORES in alive, (row[ID], since, alive)


def check_dates(record, witness, rows):
    """What completes does so on the machine and at the time of its plan, to a millisecond."""
    for row in record.jobs:
        i = int(row[ID].partition("#")[0])
        number = witness.numbers.get(round(rows[i][2] + i / 1000, 6))
        if row[STATE] == "COMPLETED_SUCCESSFULLY":
            assert min(ids(from_text(row[HOSTS]))) // CORES == witness.machine_of(number)
            if number not in witness.ended_early:
                assert row[END] == pytest.approx(witness.end_s(number), abs=LAG_S)


@examples(250, suppress_health_check=[HealthCheck.too_slow])
@given(rows=jobs_of, values=counts, step_s=steps, options=options_of)
def test_laws(rows, values, step_s, options):
    rows, capacity = rows, capacity_of(rows, values, step_s)
    record, witness = run(rows, capacity, options)
    check_every_job_ends_once(record, rows, capacity, options)
    check_cores(record)
    check_switched_on(record)
    check_alive(record, witness)
    check_dates(record, witness, rows)
    safe = options["strategy"] != "first-fit-unaware" or options.get("as_published", True)
    assert not safe or all(alive == frozenset(range(len(alive))) for _, alive in witness.alive)


@examples(60, suppress_health_check=[HealthCheck.too_slow])
@given(rows=jobs_of, values=counts, step_s=steps, options=options_of)
def test_laws_on_machines_that_take_time_to_boot(rows, values, step_s, options):
    rows, capacity = rows, capacity_of(rows, values, step_s)
    record, _ = run(rows, capacity, options, BOOTING)
    check_every_job_ends_once(record, rows, capacity, options)
    check_cores(record)
    check_switched_on(record)


@examples(60, suppress_health_check=[HealthCheck.too_slow])
@given(rows=jobs_of, values=counts, step_s=steps, options=options_of, boots=st.booleans())
def test_the_text_of_the_wire_changes_nothing(rows, values, step_s, options, boots):
    rows, capacity = rows, capacity_of(rows, values, step_s)
    direct, _ = run(rows, capacity, options, BOOTING if boots else PLATFORM)
    text, _ = run(rows, capacity, options, BOOTING if boots else PLATFORM, text=True)
    assert text == direct


# times that floats do not hold --------------------------------------------------------------------------------------

# 230 + 32.441 is 262.44100000000003, but Batsim's time is 262.441
HARD = {
    "the next waits for it": ([4.0], job("b", 231.0, CORES, 10.0), 262.441),
    "the next arrives then": ([4.0], job("b", 262.441, CORES, 10.0), 262.441),
    "its machine goes then": ([1.0, 0.0, 1.0], job("b", 231.0, CORES, 10.0), 300.0),
}


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("values,other,start_s", HARD.values(), ids=HARD)
def test_an_end_just_after_its_date(strategy, values, other, start_s):
    platform = machines_platform(MachineSpec(1, CORES))
    capacity = Series((0.0, 262.441, 300.0)[: len(values)], tuple(min(value, 1.0) for value in values))
    load = workload_of(job("a", 230.0, CORES, 32.441), other, nb_res=CORES)
    engine = Engine(platform, [load], EngineConfig(dynamic_jobs=True, profile_reuse=True))
    scheduler = Riskaware({"capacity": capacity, "strategy": strategy, "as_published": False})
    rows = {row[ID]: row for row in simulate(engine, scheduler).jobs}
    assert {name: row[STATE] for name, row in rows.items()} == dict.fromkeys("ab", "COMPLETED_SUCCESSFULLY")
    assert (rows["a"][START], rows["b"][START]) == (230.0, pytest.approx(start_s, abs=LAG_S))


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_a_job_of_full_width_on_an_idle_machine_does_not_hang(strategy):
    engine = Engine(
        machines_platform(MachineSpec(1, CORES)),
        [workload_of(job("a", 5.0, CORES, 10.0), nb_res=CORES)],
        EngineConfig(dynamic_jobs=True, profile_reuse=True),
    )
    scheduler = Riskaware({"capacity": Series((0.0,), (1.0,)), "strategy": strategy})
    # as published, first fit waits for the next end or change, but not if nothing runs at all
    (row,) = simulate(engine, scheduler).jobs
    assert (row[STATE], row[START]) == ("COMPLETED_SUCCESSFULLY", 5.0)


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_what_is_late_runs_though_its_machine_has_gone(strategy):
    # both machines are on from 77.5 s; by the plan b is over when the second goes at 75 s, and has not begun
    platform = machines_platform(MachineSpec(2, 1, off_s=15.0, on_s=40.0))
    load = workload_of(job("a", 0.0, 1, 10.0), job("b", 0.0, 1, 11.0), nb_res=2)
    engine = Engine(platform, [load], EngineConfig(dynamic_jobs=True, profile_reuse=True))
    capacity = Series((0.0, 37.5, 75.0), (0.0, 2.0, 1.0))
    scheduler = Riskaware({"capacity": capacity, "strategy": strategy, "as_published": False})
    rows = simulate(engine, scheduler).jobs
    assert {row[ID]: row[STATE] for row in rows} == dict.fromkeys("ab", "COMPLETED_SUCCESSFULLY")


# one instance -----------------------------------------------------------------------------------------------------

MANY = [(17.5 * i, 1 + i % CORES, 40.0 + 23 * (i % 7), "delay", 0.5) for i in range(40)]
WALK = Series(tuple(60.0 * i for i in range(12)), (4.0, 3.0, 4.0, 2.0, 1.0, 3.0, 2.0, 4.0, 0.0, 3.0, 2.0, 4.0))


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_same_seed_same_bytes(strategy, tmp_path):
    for name in ("a", "b"):
        record, _ = run(MANY, WALK, {"strategy": strategy, "seed": 5})
        files = write_record(record, tmp_path / name)
    assert any(row[STATE] == "COMPLETED_KILLED" for row in record.jobs)
    for path in files:
        assert path.read_bytes() == path.with_name(path.name.replace("b_", "a_")).read_bytes()


def test_only_first_fit_unaware_depends_on_the_seed():
    for strategy in STRATEGIES:
        records = [run(MANY, WALK, {"strategy": strategy, "seed": seed})[0].jobs for seed in range(4)]
        differ = any(other != records[0] for other in records)
        assert differ == (strategy == "first-fit-unaware"), strategy


def test_the_strategies_differ():
    records = [run(MANY, WALK, {"strategy": strategy, "usable": 2})[0].jobs for strategy in STRATEGIES[:4]]
    assert all(one != other for one, other in itertools.combinations(records, 2))
