"""What checkpoints save and cost, and yields of jobs, worked by hand."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from rows_of_runs import job, killed, moved, ran, refused, workload

import batwatt as bw
from batwatt.errors import InputError
from batwatt.model.attempt import CHECKPOINT, CHECKPOINTED, PIECE, RECOVERY, SUSPENDED, WINDOW_OVER, Attempt
from batwatt.model.platform import MachineSpec
from batwatt.model.timeline import Timeline
from batwatt.results.groups import classes_of
from batwatt.results.metrics import measured, yields_of
from batwatt.results.run_files import KILLED, SUCCESSFUL, RunData


def saved(name, submit, start, end, cores=1):
    return ran(name, submit, start, end, cores, KILLED, CHECKPOINTED)


def checkpoint(name, start, end, cores=1, state=SUCCESSFUL):
    return ran(name, start, start, end, cores, state, CHECKPOINT)


def recovery(name, start, end, cores=1, state=SUCCESSFUL):
    return ran(name, start, start, end, cores, state, RECOVERY)


JOBS_BY_HAND = workload(
    job("a", 100, 45, 2), job("b", 90, 100), job("c", 110, 30, 3), job("d", 120, 50), job("e", 150, 10),
    job("f", 199.5, 10), job("g", 120, 10, 8), job("h", 160, 50),
)  # fmt: skip
ROWS_BY_HAND = [
    # a waits 5 s, works 20, stops until it recovers, loses 10 s, recovers again and works the other 25
    saved("a", 100, 105, 125, 2), checkpoint("a#1", 125, 130, 2), recovery("a#2", 150, 153, 2),
    killed("a#3", 153, 153, 163, 2), recovery("a#4", 165, 168, 2), ran("a#5", 168, 168, 193, 2),
    # b goes on behind its checkpoint, and at the end of the window
    saved("b", 90, 95, 140), checkpoint("b#1", 140, 150), saved("b#2", 150, 150, 205), checkpoint("b#3", 205, 215),
    # c loses all and begins again
    killed("c", 110, 110, 120, 3), ran("c#1", 120, 125, 155, 3),
    # the checkpoint of d is killed, so that 40 s are lost
    saved("d", 120, 120, 160), checkpoint("d#1", 160, 165, 1, KILLED), ran("d#2", 165, 170, 220),
    refused("e", 150, WINDOW_OVER), ran("f", 199.5, 199.5, 209.5), refused("g", 120),
    # h recovers at the end of the window
    saved("h", 160, 160, 170), checkpoint("h#1", 170, 175), recovery("h#2", 195, 205),
]  # fmt: skip


def test_by_hand(measured):
    metrics, ledger = measured(ROWS_BY_HAND, JOBS_BY_HAND)
    # core seconds of a b c d f h, of 600
    assert metrics["useful_core_s"] == 90 + 90 + 90 + 30 + 0.5 + 10
    assert metrics["goodput_with_running"] == 310.5 / 600
    assert metrics["goodput"] == (90 + 90) / 600  # a with all its pieces, and c
    assert metrics["aborted_core_s"] == 20 + 30 + 40
    assert metrics["mean_aborted_time_s"] == (10 + 10 + 40) / 3
    assert (metrics["checkpoint_volume"], metrics["checkpoints"]) == ((10 + 10 + 5 + 5) / 600, 4)
    assert (metrics["recovery_volume"], metrics["recoveries"]) == ((6 + 6 + 5) / 600, 2)
    assert (metrics["terminations"], metrics["killed_power"], metrics["job_failure_rate"]) == (3, 3, 3 / 5)
    assert metrics["mean_wait_s"] == (5 + 15) / 2
    assert (metrics["max_full_speed_slowdown"], metrics["mean_full_speed_slowdown"]) == (
        93 / 45,
        pytest.approx((93 / 45 + 45 / 30) / 2),
    )
    # a has its hosts for 20 + 5, recovers for 3 and for 3, works for 25; the 10 s that are lost count as waiting
    assert metrics["mean_slowdown"] == pytest.approx((93 / 56 + 45 / 30) / 2)
    assert metrics["slowdown_rate"] == 1 / 2  # a took 88 s, not 45
    assert (metrics["jobs_finished"], metrics["completed_fraction"]) == (2, 2 / 8)
    assert (metrics["jobs_unfinished"], metrics["jobs_rejected"]) == (5, 1)  # b d e f h; g
    assert metrics["resubmissions"] == 5  # a#3 a#5 b#2 c#1 d#2
    # b came first, f too late; g was refused
    assert yields_of(ledger).tolist() == pytest.approx([90 / 100, 45 / 93, 30 / 45, 30 / 80, 0, 10 / 40])
    assert metrics["min_yield"] == 0.0
    assert metrics["mean_yield"] == pytest.approx((45 / 93 + 0.9 + 30 / 45 + 3 / 8 + 0 + 1 / 4) / 6)
    # a b c d f h are one run each, and what a c d lost another
    assert sum(row["runs"] for row in classes_of(ledger)) == 6 + 3
    assert sum(row["completed"] for row in classes_of(ledger)) == 2


@pytest.mark.parametrize(
    ("rows", "useful", "aborted", "terminations", "runs"),
    [
        ([checkpoint("a#1", 120, 125, 1, "COMPLETED_WALLTIME_REACHED")], 0, 20, 1, 1),
        ([refused("a#1", 125)], 20, 0, 0, 1),
        ([refused("a#1", 125, WINDOW_OVER)], 20, 0, 0, 1),
        ([ran("a#1", 130, 130, 140, 1, "COMPLETED_FAILED")], 20, 0, 0, 1),
        # interrupted twice in different ways
        ([moved("a#1", 130, 130, 140), saved("a#2", 140, 140, 150)], 40, 0, 0, 1),
        ([moved("a#1", 130, 130, 140), killed("a#2", 140, 140, 150)], 20, 20, 1, 2),
        ([moved("a#1", 130, 130, 140), ran("a#2", 140, 140, 150)], 40, 0, 0, 1),
    ],
)
def test_what_was_saved_lasts(measured, rows, useful, aborted, terminations, runs):
    """A run from 100 to 120, checkpointed then, and what became of the job."""
    rows = [saved("a", 100, 100, 120), *rows]
    metrics, ledger = measured(rows[::-1], workload(job("a", 100, 60)))
    assert (metrics["useful_core_s"], metrics["aborted_core_s"]) == (useful, aborted)
    assert metrics["terminations"] == terminations
    assert metrics["killed_power"] == terminations
    assert sum(row["runs"] for row in classes_of(ledger)) == runs


def test_a_job_of_unknown_length_is_as_long_as_the_work_that_lasted(measured):
    rows = [
        saved("a", 100, 110, 120), checkpoint("a#1", 120, 160), killed("a#2", 160, 160, 165), ran("a#3", 190, 190, 196)
    ]  # fmt: skip
    metrics, ledger = measured(rows, workload(job("a", 100, "talks")))
    assert ledger.job_length_s.tolist() == [16.0]
    assert metrics["max_full_speed_slowdown"] is None
    # 40 s of the checkpoint are execution, the 5 s that were lost are not
    assert metrics["mean_slowdown"] == pytest.approx((196 - 100) / 56)
    assert (metrics["mean_wait_s"], metrics["terminations_long"], metrics["slowdown_rate"]) == (10, 1, None)


def test_what_the_scheduler_made_up_saves_nothing_of_others(measured):
    rows = [saved("x", 100, 100, 120), checkpoint("y", 120, 130, 1, KILLED), ran("a", 100, 130, 140)]
    metrics, _ = measured(rows, workload(job("a", 100, 10)))
    assert (metrics["useful_core_s"], metrics["terminations"], metrics["checkpoints"]) == (30, 0, 1)


@pytest.mark.parametrize(
    ("row", "submit", "expected"),
    [
        (ran("a", 100, 150, 200), 100, 0.5),
        (ran("a", 60, 80, 100), 60, None),  # completed before it
        (ran("a", 199, 199.25, 230), 199, 0.75),
        (ran("a", 199.25, 199.25, 230), 199.25, None),  # less than 1 s before the end
        (ran("a", 100, 100, 100), 100, None),  # of no length
        (ran("a", 100, 100, 150, 1, "COMPLETED_FAILED"), 100, None),
        (ran("a", 100, 155, 205, 1, "COMPLETED_WALLTIME_REACHED"), 100, 0.45),
        (refused("a", 100, WINDOW_OVER), 100, 0.0),
    ],
)
def test_one_yield(measured, row, submit, expected):
    metrics, _ = measured([row], workload(job("a", submit, 50)))
    assert metrics["min_yield"] == metrics["mean_yield"] == expected


def test_a_suspended_run_and_its_pieces_are_one_job(measured):
    """20 s, suspended for 10 s, then two pieces of 10 s each: 50 s from submission to completion, 40 at work."""
    rows = [
        ran("a", 110, 110, 130, 2, KILLED, SUSPENDED),
        ran("a#1", 140, 140, 150, 2, SUCCESSFUL, PIECE),
        ran("a#2", 150, 150, 160, 2),
    ]
    metrics, _ = measured(rows, workload(job("a", 110, 40, 2)))
    counts = ("jobs_finished", "killed_power", "jobs_failed", "terminations")
    assert [metrics[name] for name in counts] == [1, 0, 0, 0]
    assert (metrics["useful_core_s"], metrics["aborted_core_s"], metrics["job_failure_rate"]) == (80, 0, 0)
    assert metrics["mean_slowdown"] == metrics["mean_full_speed_slowdown"] == 50 / 40
    assert metrics["mean_wait_s"] == 0
    assert metrics["completed_fraction"] == 1


JOB_OF_100_S = {
    "nb_res": 1, "jobs": [{"id": "a", "subtime": 0, "res": 1, "walltime": 300, "profile": "p"}],
    "profiles": {"p": {"type": "delay", "delay": 100}},
}  # fmt: skip


@pytest.mark.parametrize(
    "cost_s,scheduler,options",
    [
        (0, "varcap", {"victim": {"name": "migrate", "cost_s": 30}}),
        (0, "riskaware", {"victim": {"name": "migrate", "cost_s": 30}, "strategy": "first-fit-unaware"}),
        (10, "varcap", {"victim": {"name": "checkpoint", "checkpoint_s": 10, "recovery_s": 30}}),
        (10, "checkpoint", {"checkpoint_s": 10, "recovery_s": 30}),
    ],
)
def test_all_that_save_work_are_measured_alike(tmp_path, cost_s, scheduler, options):
    """Killed at 50 s and, while it recovers, at 70 s; from 80 s on it recovers for 30 s and works for 50 s, or 60."""
    path = tmp_path / "w.json"
    path.write_text(json.dumps(JOB_OF_100_S))
    capacity = Timeline((0.0, 50.0, 60.0, 70.0, 80.0), (1.0, 0.0, 1.0, 0.0, 1.0))
    result = bw.simulate(MachineSpec(1, 1), path, scheduler=scheduler, options=options, capacity=capacity)
    end_s = 160 + cost_s
    figures = {
        "useful_core_s": 100.0,
        "aborted_core_s": 0.0,
        # the machine is alive for 50 s, 10 s and from 80 s to the end
        "capacity_core_s": end_s - 20.0,
        "goodput": 100 / (end_s - 20),
        "goodput_with_running": 100 / (end_s - 20),
        "makespan_s": end_s,
        # it has no host from 50 to 60 s and from 70 to 80 s
        "mean_slowdown": end_s / (end_s - 20),
        "mean_run_time_stretch": (end_s - 20) / 100,
        "mean_full_speed_slowdown": end_s / 100,
        "mean_wait_s": 0.0,
        "mean_yield": 100 / end_s,
    }
    assert {name: result.metrics[name] for name in figures} == pytest.approx(figures, abs=5e-6)
    rows = zip(result.jobs["execution_time_s"], result.data.jobs["overhead_s"], strict=True)
    assert all(overhead_s <= ran_s + 1e-6 for ran_s, overhead_s in rows)
    _agrees_with_its_metadata(result, tmp_path)
    walltimes = result.jobs["requested_time_s"].tolist()
    if scheduler != "checkpoint":
        assert walltimes == [300.0, 280.0 + cost_s, 280.0 + cost_s]


def _agrees_with_its_metadata(result, folder):
    """The table of attempts says what the texts of jobs.csv say: by row, and in the figures of files without it."""
    table, texts = result.data.attempts, dict(zip(result.record.jobs.ids, result.jobs["metadata"], strict=True))
    assert len(table) == len(result.attempts) > 0
    for run, text in texts.items():
        read = Attempt.of_text(run, text)
        attempt = table.get(run, Attempt(run, run))
        assert attempt.text == text
        assert (attempt.job, attempt.number, attempt.kind, attempt.cause) == (read.job, read.number, read.kind, "")
        assert attempt.overhead_s == pytest.approx(read.overhead_s, abs=1e-6)
    prefix = result.save(folder / "r")
    stored = RunData(prefix).attempts
    assert {name: replace(attempt, overhead_s=0.0) for name, attempt in stored.items()} == {
        name: replace(attempt, overhead_s=0.0) for name, attempt in table.items()
    }
    figures = {name: value for name, value in result.values.items() if value is not None}
    for lost in ([], ["attempts.csv", "metadata.json"]):
        for name in lost:
            (folder / f"r_{name}").unlink()
        run = result.run
        values = measured(RunData(prefix), run.measured, None, run.full_flops, capacity=run.capacity, cores=run.cores)[
            0
        ]
        assert {name: values[name] for name in figures} == pytest.approx(figures, rel=1e-9)


def test_adaptive_has_the_attempts_of_its_core(tmp_path):
    (tmp_path / "w.json").write_text(json.dumps(JOB_OF_100_S))
    capacity = Timeline((0.0, 50.0, 60.0), (1.0, 0.0, 1.0))
    result = bw.simulate(MachineSpec(1, 1), tmp_path / "w.json", scheduler="adaptive", capacity=capacity)
    assert result.attempts["run"].tolist() == ["w0!a#1"] and result.metrics["resubmissions"] == 1
    _agrees_with_its_metadata(result, tmp_path)


def test_attempts_csv_that_is_not_one(tmp_path):
    (tmp_path / "r_attempts.csv").write_text("run,job,number,kind,overhead_s,cause\nw0!a#1,w0!a,1,odd,0,\n")
    with pytest.raises(InputError, match=r"r_attempts\.csv: row 1: no run has the kind 'odd'"):
        _ = RunData(tmp_path / "r").attempts


def test_a_window_that_ends_in_a_recovery(tmp_path):
    path = tmp_path / "w.json"
    path.write_text(json.dumps(JOB_OF_100_S))
    capacity = Timeline((0.0, 50.0, 60.0), (1.0, 0.0, 1.0))
    options = {"strategy": "first-fit-unaware", "victim": {"name": "migrate", "cost_s": 30}, "until_s": 65.0}
    spec = MachineSpec(1, 1)
    result = bw.simulate(spec, path, scheduler="riskaware", options=options, capacity=capacity)
    assert result.jobs["metadata"].tolist() == ["migrated", "overhead_s=4.999999"]
    assert result.attempts["kind"].tolist() == ["migrated", ""]
    assert result.attempts["overhead_s"].tolist() == pytest.approx([0.0, 4.999999], abs=1e-6)
    assert result.jobs["requested_time_s"].tolist() == [300.0, 280.0]
