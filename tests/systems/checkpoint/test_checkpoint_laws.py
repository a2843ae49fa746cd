"""Laws of the scheduler checkpoint, under all of its options, on random jobs and capacities."""

from __future__ import annotations

import json
from unittest.mock import patch

import pytest
from checkpoint_talk import END, ID, META, STATE, play, row_of, series_of, spans_of
from examples import examples
from hypothesis import HealthCheck, given
from hypothesis import strategies as st
from links import Race, ThroughText

from batwatt.model.machines import MachineSpec
from batwatt.model.workload import CHECKPOINT, CHECKPOINTED, RECOVERY, WINDOW_OVER
from batwatt.run.run import run as carry_out
from batwatt.run.spec import RunSpec
from batwatt.systems.checkpoint.scheduler import CheckpointScheduler
from batwatt.systems.checkpoint.segments import UNFIT
from batwatt.units import PRECISION_S

MACHINES, CORES = 6, 2
LAG_S = 1e-3
dates = st.integers(0, 60).map(lambda tens: 10.0 * tens) | st.floats(0, 600).map(lambda x: round(x, 3))
times = st.integers(1, 40).map(lambda tens: 10.0 * tens) | st.floats(1, 400).map(lambda x: round(x, 2))
overheads = st.none() | st.integers(0, 12).map(float) | st.floats(0, 120).map(lambda x: round(x, 3))
jobs_of = st.lists(
    st.tuples(dates, times, st.integers(1, MACHINES * CORES + 1), overheads, overheads), min_size=1, max_size=10
)
values_of = st.lists(st.integers(0, MACHINES), min_size=1, max_size=10)
steps = st.sampled_from([100.0, 37.5, 250.0, 400 / 3])
options_of = st.fixed_dictionaries(
    {"method": st.sampled_from(["dp", "subset-sum"])},
    optional={
        "prepare": st.sampled_from(["cheapest", "worst", "expected", "all"]),
        "cover": st.just("needed"),
        "k": st.integers(0, MACHINES),
        "warning_s": st.sampled_from([0.0, 5.0, 60.0, 1000.0]),
        "checkpoint_s": st.sampled_from([0.0, 7.0, 300.0]),
        "recovery_s": st.sampled_from([0.0, 11.0, 300.0]),
        "min_yield": st.sampled_from([0.2, 0.6, 1.0]),
        "until_s": st.integers(1, 60).map(lambda tens: 10.0 * tens),
    },
)
relaxed = examples(200, suppress_health_check=[HealthCheck.too_slow])


def load(rows):
    fields = ("checkpoint_s", "recovery_s")
    return [
        row_of(i, at, length, cpus, **{k: v for k, v in zip(fields, overhead, strict=True) if v is not None})
        for i, (at, length, cpus, *overhead) in enumerate(rows)
    ]


def run(rows, values, step_s, options, energy=True, between=None):
    if options["method"] == "subset-sum":
        options = {name: value for name, value in options.items() if name != "min_yield"}
    capacity = series_of(*((step_s * i, value) for i, value in enumerate(values)))
    return play(load(rows), capacity, MACHINES, CORES, between, energy=energy, **options)


def as_written(record):
    """The rows with the decimals that files have."""
    return [tuple(round(value, 5) if isinstance(value, float) else value for value in row) for row in record.jobs]


def alive_at(values, step_s, time_s):
    return values[min(int((time_s + LAG_S) / step_s), len(values) - 1)]


def check_machines(record, values, step_s):
    """No host has two spans at once; no more machines have one than are alive."""
    spans = [span for all_of in spans_of(record).values() for span in all_of]
    for _, begin, *_ in spans:
        at = begin + 2 * LAG_S
        going = [hosts for _, b, e, *_, hosts in spans if b <= at < e - LAG_S]
        assert sum(len(hosts) for hosts in going) == len(frozenset().union(*going))
        machines = {host // CORES for hosts in going for host in hosts}
        assert len(machines) <= alive_at(values, step_s, at)


def check_job(row, spans, options, ended):
    """Its work adds up, nothing that was saved is lost, and overheads last what they should."""
    length_s = row["_profile"]["delay"]
    checkpoint_s = row.get("checkpoint_s", options.get("checkpoint_s", 60.0))
    recovery_s = row.get("recovery_s", options.get("recovery_s", 60.0))
    work_s = saved_s = 0.0
    before = None
    for kind, begin, end, state, saved, _ in spans:
        if before is not None:
            assert begin >= before[2] - 1e-5
        if kind == "recovery":
            work_s = saved_s
            assert end - begin <= recovery_s + LAG_S
        elif kind == "checkpoint":
            assert before[0] == "work" and before[4] and begin == pytest.approx(before[2], abs=1e-5 + PRECISION_S)
            assert end - begin <= checkpoint_s + LAG_S
            if state == "COMPLETED_SUCCESSFULLY":
                saved_s = work_s
        else:
            resumed = before is not None and before[0] == "work" and not before[4]
            work_s = (saved_s if resumed else work_s) + end - begin
            if saved and checkpoint_s == 0.0:
                saved_s = work_s
            if state == "COMPLETED_SUCCESSFULLY":
                assert work_s == pytest.approx(length_s, abs=LAG_S) and (kind, begin) == (spans[-1][0], spans[-1][1])
                ended.add(row["id"])
        before = (kind, begin, end, state, saved)
    assert work_s <= length_s + LAG_S


@relaxed
@given(rows=jobs_of, values=values_of, step_s=steps, options=options_of)
def test_laws(rows, values, step_s, options):
    record = run(rows, values, step_s, options)
    spans, jobs = spans_of(record), load(rows)
    check_machines(record, values, step_s)
    ended = set()
    for row in jobs:
        check_job(row, spans.get(row["id"], []), options, ended)
    rejected = {row[ID].partition("#")[0]: row for row in record.jobs if row[STATE] == "REJECTED"}
    stopped = {
        row[ID].partition("#")[0]
        for row in record.jobs
        if options.get("until_s") is not None and row[END] is not None and row[END] >= options["until_s"] - LAG_S
    }
    for row in jobs:
        name = row["id"]
        assert (name in ended) or (name in rejected) or (name in stopped), name
        if name in rejected and rejected[name][META] != WINDOW_OVER and "#" not in rejected[name][ID]:
            width = -(-row["res"] // CORES)
            assert width > values[-1], name
    known = {"", CHECKPOINTED, CHECKPOINT, RECOVERY, WINDOW_OVER}
    causes = known | {UNFIT, "no machine is alive any more"}
    assert all(row[META] in (causes if row[STATE] == "REJECTED" else known) for row in record.jobs)


@relaxed
@given(rows=jobs_of, values=values_of, step_s=steps, options=options_of)
def test_no_work_is_lost_with_a_warning_and_a_true_k(rows, values, step_s, options):
    options = {k: v for k, v in options.items() if k not in ("k", "warning_s", "checkpoint_s", "until_s")}
    rows = [(at, length, cpus, min(c or 0.0, step_s / 2), min(r or 0.0, step_s / 2)) for at, length, cpus, c, r in rows]
    record = run(rows, values, step_s, options)
    lost = [row for row in record.jobs if row[STATE] == "COMPLETED_KILLED" and row[META] == ""]
    assert not lost


@examples(60, suppress_health_check=[HealthCheck.too_slow])
@given(rows=jobs_of, values=values_of, step_s=steps, options=options_of)
def test_the_text_of_the_wire_changes_nothing(rows, values, step_s, options):
    record = run(rows, values, step_s, options)
    assert run(rows, values, step_s, options).jobs == record.jobs
    told = run(rows, values, step_s, options, between=ThroughText)
    if step_s % 0.5 == 0.0:
        assert as_written(told) == as_written(record)
    else:  # times that the text has not
        check_machines(told, values, step_s)
        ended = set()
        for row in load(rows):
            check_job(row, spans_of(told).get(row["id"], []), options, ended)


def all_that_fit(self, room, of=iter):
    """Every waiting job that fits, whatever waits beside it."""
    waiting = [task for alike in self.segments.kinds.values() for task in of(alike) if task.width <= room]
    return sorted(waiting, key=lambda task: task.number)


def one_by_one(self, hurried, now_s, alike):
    """Every job looked at on its own."""
    return iter([task for task in self._idle(alike) if self._at_risk(task, now_s) == hurried])


@examples(60, suppress_health_check=[HealthCheck.too_slow])
@given(
    rows=st.lists(
        st.tuples(st.sampled_from([0.0, 10.0, 200.0]), times, st.integers(1, MACHINES * CORES), overheads, st.none()),
        min_size=10,
        max_size=50,
    ),
    values=values_of,
    step_s=steps,
    options=options_of,
)
def test_jobs_that_plans_leave_out(rows, values, step_s, options):
    record = run(rows, values, step_s, options)
    plain = {"_plannable": all_that_fit, "_idle_tasks": one_by_one}
    with patch.multiple(CheckpointScheduler, **plain):
        assert run(rows, values, step_s, options).jobs == record.jobs


CASES = [{}, {"method": "subset-sum"}, {"min_yield": 0.5, "prepare": "expected"}]
TRACE = "arrival_time,length,cpus,checkpoint_s,recovery_s\n" + "".join(
    f"{37 * i},{300 + 90 * (i % 5)},{1 + i % 5},{3 + i % 3},{2 * (i % 4)}\n" for i in range(20)
)


def test_files_of_the_wire_and_of_a_batsim(tmp_path, batsim):
    trace, capacity = tmp_path / "jobs.csv", tmp_path / "capacity.csv"
    trace.write_text(TRACE)
    capacity.write_text("time_s,machines\n" + "".join(f"{200 * i},{6 - i % 4}\n" for i in range(12)))
    engines = ["embedded", "wire", "batsim"]
    for number, case in enumerate(CASES):
        found = {}
        for engine in engines:
            prefix = tmp_path / f"{engine}{number}"
            spec = RunSpec(
                MachineSpec(6, 1),
                trace,
                "checkpoint",
                {"switch": False, **case},
                prefix,
                engine=engine,
                batsim=batsim,
                capacity=capacity,
            )
            found[engine] = json.dumps(carry_out(spec).metrics.as_dict())
        assert found["wire"] == found["embedded"]
        same = [(tmp_path / f"{engine}{number}_jobs.csv").read_bytes() for engine in ("embedded", "wire")]
        assert same[0] == same[1]
        ours, theirs = json.loads(found["embedded"]), json.loads(found["batsim"])
        for name, value in ours.items():
            assert value is None or theirs[name] == pytest.approx(value, rel=1e-4, abs=1e-3), name


@examples(100, suppress_health_check=[HealthCheck.too_slow])
@given(rows=jobs_of, values=values_of, step_s=steps, options=options_of)
def test_jobs_that_end_before_they_can_be_killed(rows, values, step_s, options):
    record = run(rows, values, step_s, options, between=Race)
    check_machines(record, values, step_s)
    assert {row[ID].partition("#")[0] for row in record.jobs} == {str(i) for i in range(len(rows))}
