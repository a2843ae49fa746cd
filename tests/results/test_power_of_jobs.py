"""The power of a platform of jobs that draw different power, worked out by hand."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from builders import envelope
from drawing import carried_out, drawing, figures_of, jobs_of, plain

from batwatt.errors import InputError
from batwatt.model.platform import Platform
from batwatt.results.job_power import job_power_figures, job_power_trace
from batwatt.results.run_data import RunData
from batwatt.results.writers import write_record

ROWS = (
    drawing("a", 0, 1, 100, power_phases=[[40, 150], [60, 250]]),
    drawing("b", 20, 2, 60, power_w=520.0),
)


def test_the_power_of_two_jobs():
    # 3 hosts of 100 W: "a" adds 50 W until 40 s, then 150 W until 100 s, "b" 320 W from 20 to 80 s
    workload = jobs_of(*ROWS, nb_res=3)
    record, _ = carried_out(workload, 3)
    trace = job_power_trace(RunData("x", record), workload, plain(3))
    assert trace.times_s.tolist() == [0.0, 20.0, 40.0, 80.0]
    assert trace.power_w.tolist() == [350.0, 670.0, 770.0, 450.0]
    assert trace.end_s == 100.0
    found = figures_of(record, workload, 3, envelope(700.0))
    assert found["share_above"] == pytest.approx(0.4) and found["above_j"] == pytest.approx(40 * 70.0)
    assert found["mean_w"] == pytest.approx((20 * 350.0 + 20 * 670.0 + 40 * 770.0 + 20 * 450.0) / 100.0)
    assert found["max_w"] == 770.0 and found["makespan_s"] == 100.0
    assert (found["completed"], found["killed_power"]) == (2, 0)
    assert found["mean_turnaround_s"] == pytest.approx((100.0 + 60.0) / 2)
    assert found["completed"] == 2


def test_files_give_the_figures_of_the_record(tmp_path):
    workload = jobs_of(*ROWS, nb_res=3)
    record, _ = carried_out(workload, 3)
    write_record(record, tmp_path / "x")
    cap = envelope(700.0)
    assert job_power_figures(RunData(tmp_path / "x"), workload, plain(3), cap) == figures_of(record, workload, 3, cap)


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
    found = figures_of(record, workload, 2, caps)
    assert (found["killed_power"], found["completed"], found["mean_turnaround_s"]) == (1, 2, 600.0)


def test_nothing_ran():
    workload = jobs_of(drawing("a", 0, 9, 10, power_w=1.0), nb_res=2)
    record, _ = carried_out(workload, 2)
    found = figures_of(record, workload, 2, envelope(1.0))
    assert (found["share_above"], found["completed"], found["makespan_s"]) == (0.0, 0, 0.0)
    assert np.isnan(found["mean_turnaround_s"])


def test_what_is_missing():
    workload = jobs_of(drawing("a", 0, 1, 10), nb_res=2)
    record, _ = carried_out(workload, 2)
    with pytest.raises(InputError, match="job a does not say what it draws"):
        figures_of(record, workload, 2, envelope(1.0))
    bare = Platform(tuple(replace(host, has_power=False) for host in plain(2).hosts))
    with pytest.raises(InputError, match="has no watts"):
        job_power_trace(RunData("x", record), workload, bare)
