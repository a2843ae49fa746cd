"""Laws that hold for every scheduler of varcap, with any termination and foresight, on random jobs and capacities."""

from __future__ import annotations

import itertools
import json
from dataclasses import replace

import pytest
from builders import workload_of
from examples import examples
from hypothesis import HealthCheck, given
from hypothesis import strategies as st
from links import ThroughText
from plain_varcap import PlainJob
from test_varcap_twice import KNOWS
from varcap_talk import HOSTS, ID, META, STATE, play, row_of, runs_of

from batwatt.model.hostset import from_text
from batwatt.model.machines import MachineSpec
from batwatt.model.workload import MIGRATED, WINDOW_OVER
from batwatt.results.writers import write_record
from batwatt.run.run import run as carry_out
from batwatt.run.spec import RunSpec

MACHINES, CORES, MEMORY = 4, 3, 8.0
LAG_S = 1e-3
TERMINATIONS = ("random", "lww", "lfd", "order")
TOGETHER = [(name, rule) for name in KNOWS for rule in (TERMINATIONS if name != "migration" else (None,))]

dates = st.integers(0, 60).map(lambda tens: 10.0 * tens) | st.floats(0, 600).map(lambda x: round(x, 3))
times = st.integers(1, 30).map(lambda tens: 10.0 * tens) | st.floats(1, 300).map(lambda x: round(x, 2))
jobs_of = st.lists(
    st.tuples(
        dates,
        times,
        st.integers(1, CORES) | st.integers(1, MACHINES * CORES + 1),  # now and then too many
        st.integers(0, 36).map(lambda quarters: quarters / 4),  # memory of all of it, now and then too much
        st.none() | times,  # the user's estimate
        st.just(()) | st.lists(st.integers(0, 13), max_size=2),  # jobs that it depends on
    ),
    max_size=14,
)
counts = st.lists(st.integers(0, MACHINES) | st.integers(2, MACHINES), min_size=1, max_size=12)
steps = st.sampled_from([50.0, 37.5, 100.0])
options_of = st.fixed_dictionaries(
    {"together": st.sampled_from(TOGETHER), "foresight_h": st.sampled_from([0.0, 0.02, 1.0])},
    optional={
        "seed": st.integers(0, 3),
        "nodes": st.sampled_from(["shared", "dedicated"]),
        "requeue": st.sampled_from(["submission", "end"]),
        "order": st.sampled_from(["fcfs", "wfp"]),
        "backfilling": st.sampled_from(["greedy", "none", "easy"]),
        "knowledge": st.sampled_from(["none", "class", "exact", "estimate"]),
        "foresight_noise": st.sampled_from([0.1, 1.0]),
        "foresight_missed": st.just(0.5),
        "machine_memory": st.just(MEMORY),
        "stable": st.integers(0, MACHINES),
        "until_s": st.integers(1, 40).map(lambda tens: 10.0 * tens),
    },
)


def load(rows):
    """A job depends on jobs before it, if on any; they may be submitted after it."""
    return [
        PlainJob(str(i), at, length, cpus, memory, estimate, tuple(sorted({str(n % i) for n in others})) if i else ())
        for i, (at, length, cpus, memory, estimate, others) in enumerate(rows)
    ]


def capacity_of(values, step_s):
    return [(step_s * i, value) for i, value in enumerate(values)]


def fitting(options):
    """Those of the options that go together."""
    scheduler, termination = options["together"]
    chosen = {key: value for key, value in options.items() if key != "together"}
    chosen |= {"mapping": scheduler, "long_s": 100.0, "longest_s": 300.0}
    if termination is not None:
        chosen["termination"] = termination
    if chosen.get("knowledge") not in KNOWS[scheduler]:
        chosen.pop("knowledge", None)
    if scheduler in ("jobsize-order", "twomode"):
        chosen.pop("order", None)
        chosen.pop("backfilling", None)
    if scheduler != "longshort":
        chosen.pop("stable", None)
    return chosen


def run(jobs, capacity, options, **more):
    return play(jobs, capacity, MACHINES, CORES, energy=True, **more, **options)[0]


def allowed_at(capacity, time_s):
    """The most that is allowed around a time: a change takes a moment."""
    return max(
        [n for at, n in capacity if at <= time_s - LAG_S][-1:]
        + [n for at, n in capacity if time_s - LAG_S < at <= time_s + LAG_S]
        + [0]
    )


def check_capacity(runs, capacity):
    """At no time do more machines have a job than are allowed."""
    ran = [one for one in runs if one.how != "rejected"]
    for time_s in sorted({one.start_s + LAG_S for one in ran} | {at + LAG_S for at, _ in capacity}):
        going = [one.machines for one in ran if one.start_s <= time_s - LAG_S / 2 and one.end_s > time_s + LAG_S / 2]
        assert len(set(itertools.chain(*going))) <= allowed_at(capacity, time_s), time_s


def check_machines(record, runs, jobs, options):
    """No core has two jobs, no machine more memory than it has, and who has machines to himself is alone there."""
    ran = [(one, from_text(row[HOSTS])) for one, row in zip(runs, record.jobs, strict=True) if one.how != "rejected"]
    by_name = {job.id: job for job in jobs}
    for (one, hosts), (other, others) in itertools.combinations(ran, 2):
        if one.start_s + LAG_S < other.end_s and other.start_s + LAG_S < one.end_s:
            assert not hosts & others
            alone = options.get("nodes") == "dedicated" or any(by_name[x.id].cpus > CORES for x in (one, other))
            assert not (alone and set(one.machines) & set(other.machines)), (one, other)
    for one, hosts in ran:
        job = by_name[one.id]
        assert hosts.bit_count() == job.cpus and len(one.machines) == -(-job.cpus // CORES)
        if "machine_memory" in options:
            assert job.memory <= MEMORY * len(one.machines)
            beside = [
                by_name[other.id].memory
                for other, _ in ran
                if other.start_s <= one.start_s < other.end_s - LAG_S and other.machines == one.machines
            ]
            assert len(one.machines) > 1 or sum(beside) <= MEMORY


def check_jobs(record, runs, jobs, capacity, options):
    """Nothing is lost: a job runs again until it completes or is rejected for a reason; what is moved goes on."""
    until_s = options.get("until_s")
    falls = [two for (_, a), (two, b) in itertools.pairwise(capacity) if b < a]
    completed, rejected = {}, set()
    assert {one.id for one in runs} == {job.id for job in jobs}
    for job in jobs:
        own = sorted((one for one in runs if one.id == job.id), key=lambda one: one.attempt)
        assert [one.attempt for one in own] == list(range(len(own)))
        done_s = 0.0
        for i, one in enumerate(own):
            if one.how == "rejected":
                assert i == len(own) - 1
                rejected.add(job.id)
                continue
            earliest_s = own[i - 1].end_s if i else job.submit_s
            assert one.start_s >= earliest_s - 1e-5
            done_s += one.end_s - one.start_s
            if one.how == "completed":
                assert i == len(own) - 1 and done_s == pytest.approx(job.length_s, abs=LAG_S)
                completed[job.id] = one.end_s
            elif one.how == "migrated":
                assert options["mapping"] == "migration" and i < len(own) - 1
                assert own[i + 1].start_s == pytest.approx(one.end_s, abs=LAG_S)
                assert any(abs(at - one.end_s) <= LAG_S for at in falls)
            else:
                given_up = until_s is not None and one.end_s == pytest.approx(until_s, abs=LAG_S)
                assert given_up or (i < len(own) - 1 and any(abs(at - one.end_s) <= LAG_S for at in falls))
                done_s = 0.0
    for row in record.jobs:
        if row[STATE] == "REJECTED" and row[META] != WINDOW_OVER:
            job = next(job for job in jobs if job.id == row[ID].partition("#")[0])
            check_hopeless(job, capacity, options, rejected)
    for job in jobs:
        first_s = min((one.start_s for one in runs if one.id == job.id and one.how != "rejected"), default=None)
        if first_s is not None:
            assert all(completed[other] <= first_s + LAG_S for other in job.depends_on)


def check_hopeless(job, capacity, options, rejected):
    """It needs more than there is from some time on, or a job that was rejected."""
    width, last = -(-job.cpus // CORES), capacity[-1][1]
    if options["mapping"] == "longshort":
        stable = min(options.get("stable", min(n for _, n in capacity)), MACHINES)
        estimated = options.get("knowledge") == "estimate" and job.estimate_s is not None
        long = (job.estimate_s if estimated else job.length_s) > options["long_s"]
        last = min(stable, last) if long else last - stable
    heavy = "machine_memory" in options and job.memory > MEMORY * width
    assert width > last or heavy or rejected.intersection(job.depends_on)


@examples(300, suppress_health_check=[HealthCheck.too_slow])
@given(rows=jobs_of, values=counts, step_s=steps, options=options_of)
def test_laws(rows, values, step_s, options):
    jobs, capacity, chosen = load(rows), capacity_of(values, step_s), fitting(options)
    record = run(jobs, capacity, chosen)
    runs = runs_of(record, CORES)
    check_capacity(runs, capacity)
    check_machines(record, runs, jobs, chosen)
    check_jobs(record, runs, jobs, capacity, chosen)


@examples(60, suppress_health_check=[HealthCheck.too_slow])
@given(rows=jobs_of, values=counts, step_s=steps, options=options_of)
def test_the_text_of_the_wire_changes_nothing(rows, values, step_s, options):
    jobs, capacity, chosen = load(rows), capacity_of(values, step_s), fitting(options)
    assert run(jobs, capacity, chosen, between=ThroughText) == run(jobs, capacity, chosen)


@examples(100, suppress_health_check=[HealthCheck.too_slow])
@given(rows=jobs_of, values=counts, step_s=steps, options=options_of)
def test_longshort_never_kills_long_jobs(rows, values, step_s, options):
    jobs, capacity = load(rows), capacity_of(values, step_s)
    chosen = fitting(options | {"together": ("longshort", options["together"][1] or "lww")})
    chosen.pop("until_s", None)
    if chosen.get("knowledge") == "estimate":
        del chosen["knowledge"]
    chosen["stable"] = min(min(values), chosen.get("stable", MACHINES))
    long = {job.id for job in jobs if job.length_s > 100.0}
    assert not [one for one in runs_of(run(jobs, capacity, chosen), CORES) if one.how == "killed" and one.id in long]


@examples(200, suppress_health_check=[HealthCheck.too_slow])
@given(rows=jobs_of, values=counts, step_s=steps, options=options_of)
def test_nothing_fails_that_is_foreseen(rows, values, step_s, options):
    # no job is longer than 300 s; the stable group of longshort stays in service though nobody uses it
    jobs, capacity, chosen = load(rows), capacity_of(values, step_s), fitting(options)
    for name in ("until_s", "foresight_noise", "foresight_missed"):
        chosen.pop(name, None)
    chosen |= {"knowledge": "exact", "foresight_h": 300.0 / 3600.0}
    if chosen["mapping"] == "longshort":
        chosen["stable"] = 0
    assert {one.how for one in runs_of(run(jobs, capacity, chosen), CORES)} <= {"completed", "rejected"}


# one instance -----------------------------------------------------------------------------------------------------

MANY = [
    PlainJob(
        id=str(i),
        submit_s=17.5 * i,
        length_s=60.0 + 31 * (i % 7),
        cpus=1 + i % CORES + 4 * (i % 9 == 0),
        memory=i % 3,
        depends_on=("2",) * (i % 11 == 7),
    )
    for i in range(40)
]
WALK = [(60.0 * i, n) for i, n in enumerate((4, 3, 4, 2, 1, 3, 2, 4, 0, 3, 2, 4))]


def usual(scheduler, termination, **options):
    """Half of the jobs are long, and no machine is always there, but longshort thinks that one is."""
    return fitting({"together": (scheduler, termination), "stable": 1, **options}) | {"long_s": 130.0}


@pytest.mark.parametrize("scheduler,termination", TOGETHER)
def test_same_seed_same_bytes(scheduler, termination, tmp_path):
    options = usual(scheduler, termination, seed=5, foresight_h=0.02, foresight_noise=0.3)
    for name in ("a", "b"):
        record = run(MANY, WALK, options)
        files = write_record(record, tmp_path / name)
    killed = [row for row in record.jobs if row[STATE] == "COMPLETED_KILLED"]
    assert killed and (scheduler == "migration") == any(row[META] == MIGRATED for row in killed)
    for path in files:
        assert path.read_bytes() == path.with_name(path.name.replace("b_", "a_")).read_bytes()


def test_only_random_victims_depend_on_the_seed():
    for scheduler, termination in TOGETHER:
        options = usual(scheduler, termination)
        records = [run(MANY, WALK, options | {"seed": seed}).jobs for seed in range(4)]
        differ = any(other != records[0] for other in records)
        assert differ == (termination == "random"), (scheduler, termination)


def test_the_schedulers_differ():
    for rule in TERMINATIONS[1:]:
        chosen = [usual(*pair) for pair in TOGETHER if pair[1] in (rule, None)]
        records = [run(MANY, WALK, options).jobs for options in chosen]
        assert all(one != other for one, other in itertools.combinations(records, 2))
    for name in ("base", "longshort"):
        records = [run(MANY, WALK, usual(name, rule)).jobs for rule in TERMINATIONS]
        assert all(one != other for one, other in itertools.combinations(records, 2)), name


def spec(folder, scheduler, engine, to):
    """A run of files."""
    work = workload_of(*map(row_of, MANY), nb_res=MACHINES * CORES)
    profiles = {f"p{job.id}": {"type": "delay", "delay": job.length_s} for job in MANY}
    rows = [{key: value for key, value in row_of(job).items() if key != "_profile"} for job in MANY]
    path = folder / "w.json"
    path.write_text(json.dumps({"nb_res": work.nb_res, "jobs": rows, "profiles": profiles}))
    capacity = folder / "c.csv"
    capacity.write_text("time_s,machines\n" + "".join(f"{at:g},{n}\n" for at, n in WALK))
    return RunSpec(
        platform=MachineSpec(MACHINES, CORES),
        workload=path,
        scheduler="varcap",
        options=usual(scheduler, None, machine_memory=MEMORY),
        prefix=folder / to,
        engine=engine,
        capacity=capacity,
    )


@pytest.mark.parametrize("scheduler", KNOWS)
def test_embedded_and_wire(scheduler, tmp_path):
    for to, engine in (("a", "embedded"), ("b", "wire")):
        carry_out(spec(tmp_path, scheduler, engine, to))
    for stem in ("jobs", "schedule", "pstate_changes", "consumed_energy"):
        assert (tmp_path / f"a_{stem}.csv").read_bytes() == (tmp_path / f"b_{stem}.csv").read_bytes(), stem
    assert b"COMPLETED_KILLED" in (tmp_path / "a_jobs.csv").read_bytes()


@pytest.mark.parametrize("scheduler", KNOWS)
def test_batsim(scheduler, tmp_path, batsim):
    rows = []
    for to, engine in (("a", "embedded"), ("b", "batsim")):
        carry_out(replace(spec(tmp_path, scheduler, engine, to), batsim=batsim))
        lines = (tmp_path / f"{to}_jobs.csv").read_text().splitlines()
        names = lines[0].split(",")
        wanted = [names.index(name) for name in ("job_id", "final_state", "starting_time", "finish_time")]
        rows.append(sorted(tuple(line.split(",")[i] for i in wanted) for line in lines[1:]))
    assert len(rows[0]) == len(rows[1])
    for (name, state, *ours), (other, ended, *real) in zip(*rows, strict=True):
        assert (name, state) == (other, ended)
        for one, two in zip(ours, real, strict=True):
            assert float(one or -1) == pytest.approx(float(two or -1), abs=1e-3)
