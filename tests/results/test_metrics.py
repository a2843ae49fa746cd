"""The figures of a run, each worked by hand."""

from __future__ import annotations

import dataclasses
import math
from dataclasses import replace
from pathlib import Path

import pytest
from builders import envelope, machine
from drawing import carried_out, drawing, figures_of, jobs_of, plain
from files_of_tests import refusal
from rows_of_runs import HEADER, REFERENCE, ran, refused

from batwatt.errors import InputError
from batwatt.model.platform import Platform
from batwatt.model.timeline import Timeline
from batwatt.model.workload import Workload
from batwatt.protocol.workload4 import parse_workload
from batwatt.results.figures import METRICS
from batwatt.results.job_power import job_power_figures, job_power_trace
from batwatt.results.metrics import measured
from batwatt.results.rejections import why_none_finished
from batwatt.results.run_files import RunData, write_record
from batwatt.results.tables import summary, table_text


def row(job, submit, start, execution, state="COMPLETED_SUCCESSFULLY", metadata=""):
    if state == "REJECTED":
        return refused(job, submit, metadata)
    return ran(job, submit, start, start + execution, 1, state, metadata)


def workload(*jobs: tuple[str, float, int, str]) -> Workload:
    return parse_workload(
        {
            "nb_res": 8,
            "jobs": [{"id": i, "subtime": at, "res": res, "profile": profile} for i, at, res, profile in jobs],
            "profiles": {
                "p": {"type": "parallel_homogeneous", "cpu": 4e9, "com": 0},
                "total": {"type": "parallel_homogeneous_total", "cpu": 6e9, "com": 0},
                "uneven": {"type": "parallel", "cpu": [1e9, 4e9, 2e9], "com": [0] * 9},
                "nap": {"type": "delay", "delay": 5},
                "both": {"type": "composed", "seq": ["p", "nap"], "repeat": 3},
                "nested": {"type": "composed", "seq": ["both", "total"], "repeat": 2},
            },
        },
        "w0",
        "memory",
    )


@pytest.fixture
def run(tmp_path: Path):
    def write(jobs: list[str], energy: list[tuple[float, float]] | None = None) -> Path:
        (tmp_path / "r_jobs.csv").write_text(HEADER + "".join(jobs))
        if energy is not None:
            lines = [f"{time:.6f},{joules:.6f},e,0.000000,NA\n" for time, joules in energy]
            (tmp_path / "r_consumed_energy.csv").write_text("time,energy,event_type,wattmin,epower\n" + "".join(lines))
        return tmp_path / "r"

    return write


def test_a_run_by_hand(run):
    prefix = run(
        [
            row("1", 0, 0, 10),  # slowdown 1
            row("3", 5, 6, 4, "COMPLETED_KILLED"),
            row("2", 5, 15, 5),  # (10 + 5) / 5 = 3
            row("4", 8, 0, 0, "REJECTED"),
            row("5", 9, 20, 10, "COMPLETED_WALLTIME_REACHED"),
            row("6", 9, 20, 10, "COMPLETED_FAILED"),
            row("3#1", 10, 25, 10),  # waits since 5: (20 + 10) / 10 = 3
        ],
        [(10, 1000), (20, 4000), (30, 5000), (35, 5500), (99, 9999)],
    )
    jobs = workload(*((str(i), at, 1, "p") for i, at in ((1, 0), (2, 5), (3, 5), (4, 8), (5, 9), (6, 9))))
    metrics = measured(prefix, jobs, Timeline((0.0, 10.0, 20.0), (200.0, 200.0, 90.0)), REFERENCE)[0]
    assert metrics == {
        "mean_slowdown": (1 + 3 + 3) / 3,
        # 4 s at full speed: they took 10, 5 and 10 s, and were there for 10, 15 and 30 s
        "mean_run_time_stretch": 25 / 4 / 3,
        "mean_full_speed_slowdown": (10 + 15 + 30) / 4 / 3,
        "max_full_speed_slowdown": 30 / 4,
        "mean_bounded_slowdown": (1.0 + 1.5 + 3.0) / 3,
        "mean_wait_s": (0 + 10 + 20) / 3,
        "p95_wait_s": 19.0,
        "jobs_finished": 3,
        "killed_power": 1,
        "killed_walltime": 1,
        "violations": 3,  # 300 W > 200 in 10..20, 100 W > 90 in 20..30 and 30..35
        "finished_work_fraction": 0.5,
        "energy_j": 5500.0,
        "energy_above_cap_j": 1000.0 + 15 * 10.0,
        "unused_j": 1000.0,
        "jobs_total": 6,
        "jobs_rejected": 1,
        "jobs_failed": 1,
        "jobs_unfinished": 0,
        "resubmissions": 1,
        "steps": 4,
        "makespan_s": 35.0,
        "max_power_w": 300.0,
    }


def test_without_energy_or_envelope(run):
    jobs = workload(("1", 0, 1, "p"))
    metrics = measured(run([row("1", 0, 0, 10)]), jobs, Timeline((0.0, 4.0), (1.0, 1.0)), REFERENCE)[0]
    power = ("violations", "energy_j", "energy_above_cap_j", "unused_j", "max_power_w")
    assert not metrics.keys() & {*power}
    assert metrics["steps"] == 3
    metrics = measured(run([row("1", 0, 0, 10)], [(10, 50)]), jobs, None, REFERENCE)[0]
    assert not metrics.keys() & {"violations", "energy_above_cap_j", "unused_j", "steps"}
    assert (metrics["energy_j"], metrics["max_power_w"]) == (50.0, 5.0)


@pytest.mark.parametrize(("rows", "energy"), [([], []), ([row("1", 0, 0, 0, "REJECTED")], [(5, 10)])])
def test_no_job_ended(run, rows, energy):
    metrics = measured(run(rows, energy), workload(("1", 0, 1, "p")), Timeline((0.0,), (1.0,)), REFERENCE)[0]
    assert (metrics["mean_slowdown"], metrics["max_power_w"]) == (None, None)
    assert [metrics[name] for name in ("jobs_finished", "makespan_s", "energy_j", "violations")] == [0, 0.0, 0.0, 0]
    assert (metrics["finished_work_fraction"], metrics["jobs_rejected"]) == (0.0, len(rows))


@pytest.mark.parametrize(
    ("rows", "complaint"),
    [
        (["1,w0,p\n"], "row 1: requested_number_of_resources '' is not an integer"),
        ([row("1", 0, 0, 1), row("2", 0, 0, 1).replace(",1.000000,", ",soon,")], "row 2: execution_time 'soon'"),
        ([row("1", 0, 0, 0, "REJECTED").replace("REJECTED", "COMPLETED_KILLED")], "starting_time is not a finite"),
        ([row("1", 0, 5, -2)], "row 1: finish_time is before starting_time"),
        ([row("1", 0, 0, 50)], "ends at 10 s but the last job at 50 s"),
    ],
)
def test_malformed(run, rows, complaint):
    with pytest.raises(InputError, match=complaint):
        measured(run(rows, [(10, 5)]), workload(("1", 0, 1, "p")), None, REFERENCE)


@pytest.mark.parametrize(
    ("profile", "hosts", "full_s"),
    # p has 4e9 flops on each host, total 6e9 on all, nap lasts 5 s at any speed; both is three times p and nap
    [("p", 2, 4.0), ("total", 3, 2.0), ("nap", 2, 5.0), ("both", 2, 3 * 9.0), ("nested", 2, 2 * (3 * 9.0 + 3.0))],
)
def test_run_time_and_work_at_full_speed(run, profile, hosts, full_s):
    metrics = measured(run([row("1", 10, 70, 135)]), workload(("1", 10, hosts, profile)), None, REFERENCE)[0]
    assert metrics["mean_run_time_stretch"] == 135 / full_s
    assert metrics["mean_full_speed_slowdown"] == (70 - 10 + 135) / full_s
    killed = row("b", 0, 0, 1, "COMPLETED_KILLED")
    metrics = measured(
        run([row("1", 10, 70, 135), killed]), workload(("1", 10, hosts, profile), ("b", 0, 1, "p")), None, REFERENCE
    )[0]
    flops = full_s * hosts * REFERENCE
    assert metrics["finished_work_fraction"] == pytest.approx(flops / (flops + 4e9))


def test_profiles_that_are_uneven_or_unknown(run):
    jobs = workload(("1", 0, 3, "uneven"))
    # tasks wait for the longest, of 4e9 flops
    assert measured(run([row("1", 0, 0, 6)]), jobs, None, REFERENCE)[0]["mean_run_time_stretch"] == 1.5
    unknown = dataclasses.replace(jobs, profiles={})
    assert measured(run([row("1", 0, 0, 1)]), unknown, None, REFERENCE)[0]["finished_work_fraction"] is None


def test_jobs_below_the_resolution_of_times_have_no_full_speed_slowdown(run):
    profiles = {"tiny": {"type": "delay", "delay": 9e-7}, "p": {"type": "delay", "delay": 5}}
    jobs = [{"id": "1", "subtime": 0, "res": 1, "profile": "tiny"}, {"id": "2", "subtime": 0, "res": 1, "profile": "p"}]
    both = parse_workload({"nb_res": 1, "jobs": jobs, "profiles": profiles}, "w0", "memory")
    metrics = measured(run([row("1", 0, 5, 1e-6), row("2", 0, 0, 5)]), both, None, REFERENCE)[0]
    assert (metrics["mean_run_time_stretch"], metrics["mean_full_speed_slowdown"]) == (1.0, 1.0)


def test_summary(run):
    jobs = workload(("1", 0, 1, "p"))
    envelope = Timeline((0.0,), (5e5,))
    figures = measured(run([row("1", 0, 5, 10)], [(15, 7.2e6)]), jobs, envelope, REFERENCE)[0]
    full = dict.fromkeys(metric.name for metric in METRICS) | dict(figures)
    bare = full | {"energy_j": None, "violations": None, "killed_power": 12, "mean_slowdown": None}
    texts = [table_text(summary("easy [red]", full)), table_text(summary("none", bare))]
    first, second = (text.splitlines()[-1].split() for text in texts)
    assert " ".join(first) == "easy [red] 1.50 2.50 3.75 1.50 1 0 0 + 0 0 100.0 2.000 0 0.083"
    assert " ".join(second) == "none - 2.50 3.75 1.50 1 0 12 + 0 - 100.0 - 0 0.083"
    at_full_speed = full | {"mean_run_time_stretch": 1.0, "mean_full_speed_slowdown": 1.25}
    assert "full" in texts[0] and "full" not in table_text(summary("a", at_full_speed))
    # figures are never cut, however narrow the page
    assert "0.083" in table_text(summary("a long label of a run", full), width=20)


COUNTS = ("jobs_", "killed_", "resubmissions")
NOBODY = {metric.name: 0 if metric.name.startswith(COUNTS) else None for metric in METRICS} | {"makespan_s": 0.0}


def test_why_no_job_finished():
    """30 s and 40 s at the full speed of 10 flop/s, of walltimes of 10 s and 20 s; the third is slowed down only."""
    profiles = {"nap": {"type": "delay", "delay": 30}, "work": {"type": "parallel_homogeneous", "cpu": 400, "com": 0}}
    rows = [(1, 10, "nap"), (1, 20, "work"), (1, 80, "work"), (5, None, "nap")]
    jobs = [
        {"id": str(i), "subtime": 0, "res": hosts, "profile": profile} | ({"walltime": walltime} if walltime else {})
        for i, (hosts, walltime, profile) in enumerate(rows)
    ]
    workload = parse_workload({"nb_res": 4, "jobs": jobs, "profiles": profiles}, "w0", "test")
    ends = {"killed_walltime": 3, "killed_power": 1, "jobs_rejected": 1, "jobs_failed": 1, "jobs_unfinished": 1}
    assert why_none_finished(NOBODY | {"jobs_total": 4} | ends, workload, machine(4)) == (
        "none of 4 jobs finished: 3 reached their walltime (at the platform's full speed of 1e-08 Gflop/s jobs need "
        "0.5 to 3 times theirs); 1 were killed by the scheduler; 1 were rejected (1 ask for more than the platform's 4 "
        "hosts); 1 failed: the return code of their profile is not 0; 1 waited or ran when the window ended"
    )
    none = NOBODY | {"jobs_total": 4}
    assert why_none_finished(none, workload, machine(4)) == "none of 4 jobs finished: none ran"
    assert why_none_finished(none | {"jobs_finished": 1}, workload, machine(4)) is None
    assert why_none_finished(NOBODY, workload, machine(4)) is None


ROWS = (
    drawing("a", 0, 1, 100, power_phases=[[40, 150], [60, 250]]),
    drawing("b", 20, 2, 60, power_w=520.0),
)


def test_the_power_of_two_jobs(tmp_path):
    # 3 hosts of 100 W: "a" adds 50 W until 40 s, then 150 W until 100 s, "b" 320 W from 20 to 80 s
    workload = jobs_of(*ROWS, nb_res=3)
    record, _ = carried_out(workload, 3)
    trace = job_power_trace(RunData("x", record), workload, plain(3))
    assert trace.times_s.tolist() == [0.0, 20.0, 40.0, 80.0]
    assert trace.power_w.tolist() == [350.0, 670.0, 770.0, 450.0]
    assert trace.end_s == 100.0
    figures = figures_of(record, workload, 3, envelope(700.0))
    assert figures["share_above"] == pytest.approx(0.4) and figures["above_j"] == pytest.approx(40 * 70.0)
    assert figures["mean_w"] == pytest.approx((20 * 350.0 + 20 * 670.0 + 40 * 770.0 + 20 * 450.0) / 100.0)
    assert figures["max_w"] == 770.0 and figures["makespan_s"] == 100.0
    assert (figures["completed"], figures["killed_power"]) == (2, 0)
    assert figures["mean_turnaround_s"] == pytest.approx((100.0 + 60.0) / 2)
    # the files have the same figures
    write_record(record, tmp_path / "x")
    assert job_power_figures(RunData(tmp_path / "x"), workload, plain(3), envelope(700.0)) == figures


def test_a_run_that_was_killed_draws_until_then_and_turnaround_counts_from_the_first_submission():
    rows = [drawing("a", 0, 1, 400, power_w=200.0), drawing("b", 0, 1, 400, power_phases=[[100, 160], [100, 200]])]
    caps = envelope(500.0, 350.0, 500.0)
    workload = jobs_of(*rows, nb_res=2)
    options = {"envelope": caps, "excess": "kill-latest", "victim": "resubmit", "power_check": "mean"}
    record, _ = carried_out(workload, 2, **options)
    # "b" is killed at 300 s, begins anew at 400 s, and ends at 800 s
    trace = job_power_trace(RunData("x", record), workload, plain(2))
    edges = dict(zip(trace.times_s.tolist(), trace.power_w.tolist(), strict=True))
    assert edges == {0.0: 360.0, 100.0: 400.0, 300.0: 300.0, 400.0: 260.0, 500.0: 300.0}
    figures = figures_of(record, workload, 2, caps)
    assert (figures["killed_power"], figures["completed"], figures["mean_turnaround_s"]) == (1, 2, 600.0)


def test_what_is_missing():
    workload = jobs_of(drawing("a", 0, 1, 10), nb_res=2)
    record, _ = carried_out(workload, 2)
    assert "job a does not say what it draws" in refusal(figures_of, record, workload, 2, envelope(1.0))
    bare = Platform(tuple(replace(host, has_power=False) for host in plain(2).hosts))
    assert "has no watts" in refusal(job_power_trace, RunData("x", record), workload, bare)
    # nothing ran
    workload = jobs_of(drawing("a", 0, 9, 10, power_w=1.0), nb_res=2)
    record, _ = carried_out(workload, 2)
    figures = figures_of(record, workload, 2, envelope(1.0))
    assert (figures["share_above"], figures["completed"], figures["makespan_s"]) == (0.0, 0, 0.0)
    assert math.isnan(figures["mean_turnaround_s"])


def test_figures_that_cannot_be_computed_again_stay(house):
    """A host of 50 W runs two jobs of 5 s: 500 J, half of it at 360 g/kWh (0.1 g per 1000 J), half at 720 g/kWh."""
    platform = house.platform("a")
    workload = house.workload(*({"id": f"{n}", "subtime": 0, "res": 1, "profile": "nap"} for n in (1, 2)), nb_res=1)
    carbon = house.write("c.csv", "time_s,x (g/kWh)\n0,360\n5,720\n")
    words = ("-o", '{"response": "none"}', "--envelope", house.envelope, "--carbon", f"{carbon},repeat=yes")
    assert house.run(*words, "--energy", platform=platform, workload=workload).code == 0
    metrics, power = house.metrics(), house.file("x_power.csv")
    assert (metrics["energy_j"], metrics["carbon_g"], metrics["steps"]) == (500.0, 0.075, 1)
    inputs = ("-p", platform, "-w", workload)
    again = house.batwatt("metrics", house.out / "x", *inputs, "--long", 3)
    left = "violations, energy_above_cap_j, unused_j, work_per_fed_host, steps, carbon_g"
    assert again.code == 0 and again.err == f"as the run left them, as its other inputs are not given: {left}\n"
    assert (house.metrics(), house.file("x_power.csv")) == (metrics, power)
    # with another envelope its figures are those of that one: 50 W under a cap of 40 W for 10 s
    assert house.batwatt("metrics", house.out / "x", *inputs, "--envelope", "constant:40").code == 0
    changed = {"violations": 1, "energy_above_cap_j": 100.0, "unused_j": 0.0, "work_per_fed_host": None}
    assert house.metrics() == metrics | changed
    assert house.batwatt("metrics", house.out / "x", *inputs).code == 0 and house.metrics() == metrics | changed
