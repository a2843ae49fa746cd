"""The carbon of a run from its files: by hand, and against what the planners say of the same runs."""

from __future__ import annotations

import pytest

from batwatt.errors import InputError
from batwatt.inputs.batsim_files import phase_workload
from batwatt.model.timeline import Timeline
from batwatt.model.work import Phase, PhaseModel, ShiftJob
from batwatt.protocol.workload4 import parse_workload
from batwatt.results.carbon import account
from batwatt.results.run_files import FILES, file_of, write_rows

# 600 J of start-up, then 1200, 0 and 600 J, 10 s each
MODEL = PhaseModel(
    (Phase("start", 10.0, 60.0),), (Phase("a", 10.0, 120.0), Phase("b", 10.0, 0.0), Phase("c", 10.0, 60.0))
)
SIGNAL = Timeline.regular([100.0, 200.0, 400.0, 800.0, 100.0, 300.0, 700.0], 10.0)
PRICE = Timeline.regular([3.6, 0.0], 40.0)


def row(name, begin, length, joules, profile="piece", state="COMPLETED_SUCCESSFULLY", submit=5.0):
    return (
        name, "w0", profile, submit, 2, -1.0, int(state.endswith("FULLY")), state, begin, length, begin + length,
        begin - submit, begin + length - submit, 1.0, "0-1", joules, "",
    )  # fmt: skip


def written(prefix, *rows, energies=()):
    write_rows(file_of(prefix, "jobs"), FILES["jobs"], rows)
    if energies:
        table = [(time, joules, "s", 0.0, None) for time, joules in energies]
        write_rows(file_of(prefix, "consumed_energy"), FILES["consumed_energy"], table)
    return prefix


def workload_of(*jobs, machines=3):
    return parse_workload(phase_workload(jobs, machines)[1], "w0", "test")


def test_a_run_in_pieces_by_hand(tmp_path):
    # killed at 22 s: 7 of 10 s at 120 W; the rest comes at 40 s in pieces that follow each other
    rows = [
        row("1", 5.0, 17.0, 1440.0, "job-1", "COMPLETED_KILLED"),
        row("1#1", 40.0, 5.0, 300.0, submit=22.0),
        row("2", 0.0, 10.0, 36.0, submit=0.0),
        row("1#2", 45.0, 3.0, 360.0, submit=45.0),
        ("3", "w0", "p", 1.0, 1, -1.0, 0, "REJECTED", None, None, None, None, None, None, "", None, ""),
    ]
    prefix = written(tmp_path / "x", *rows)
    load = workload_of(*(ShiftJob(name, 5.0, MODEL) for name in "123"))
    totals = account(prefix, SIGNAL, load)
    first = (60 * (5 * 100 + 5 * 200) + 120 * (5 * 200 + 2 * 400)) / 3.6e6
    carbon = {"1": first, "1#1": 0.3 / 36, "1#2": 0.36 / 36, "2": 0.001}
    assert dict(zip(totals.rows["row"], totals.rows["carbon_g"], strict=True)) == pytest.approx(carbon, rel=1e-12)
    assert totals.averaged == 0
    assert totals.cost is None and totals.idle_cost is None
    table = totals.per_segment()
    assert table[["job", "segment", "begin_s", "end_s"]].values.tolist() == [
        ["2", 0, 0.0, 10.0],
        ["1", 0, 5.0, 22.0],
        ["1", 1, 40.0, 48.0],
    ]
    assert table["energy_j"].tolist() == [36.0, 1440.0, 660.0]
    jobs = totals.per_job()
    assert jobs["segments"].tolist() == [1, 2]
    assert jobs["arrival_s"].tolist() == [0.0, 5.0]
    # job 1 comes at 5 s, runs for 25 s and is done at 48 s
    figures = totals.metrics()
    assert (figures["segments"], figures["jobs"], figures["mean_total_wait_s"]) == (3, 2, 9.0)
    assert figures["carbon_g"] == pytest.approx(sum(carbon.values()), rel=1e-12)
    # without the workload the killed run has its mean power: 1440 / 17 W
    blind = account(prefix, SIGNAL)
    assert blind.rows["job"].tolist() == ["2", "1", "1", "1"]
    mean = 1440 / 17 * (5 * 100 + 10 * 200 + 2 * 400) / 3.6e6
    assert blind.carbon_g == pytest.approx(sum(carbon.values()) - carbon["1"] + mean, rel=1e-12)


@pytest.mark.parametrize(
    ("length", "joules"),
    [(40.0, 2401.0), (41.0, 2400.0), (17.0, 1441.0)],
)
def test_phases_that_do_not_add_up_are_averaged(length, joules, tmp_path):
    load = workload_of(ShiftJob("1", 5.0, MODEL))
    totals = account(written(tmp_path / "x", row("1", 5.0, length, joules, "job-1")), SIGNAL, load)
    assert totals.averaged == 1
    mean = joules / length * float(SIGNAL.integral(5.0 + length) - SIGNAL.integral(5.0)) / 3.6e6
    assert totals.carbon_g == pytest.approx(mean, rel=1e-12)


def test_another_jobs_phases_are_not_those_of_a_row(tmp_path):
    turned = PhaseModel(MODEL.startup, MODEL.work[::-1])
    load = workload_of(ShiftJob("1", 5.0, MODEL), ShiftJob("2", 5.0, turned))
    rows = [row("1#1", 5.0, 40.0, 2400.0, "job-2"), row("2", 5.0, 40.0, 2400.0, "job-2")]
    totals = account(written(tmp_path / "x", *rows), SIGNAL, load)
    assert totals.rows["known"].tolist() == [False, True]


def test_idle_hosts_by_hand(tmp_path):
    # all hosts draw 30, 20 and 30 W, jobs 20, 0 and 15 W of it: 10, 20 and 15 W are idle
    energies = [(0.0, 0.0), (10.0, 300.0), (20.0, 500.0), (30.0, 800.0)]
    rows = [row("1", 0.0, 10.0, 200.0, submit=0.0), row("2", 20.0, 10.0, 150.0)]
    signal = Timeline.regular([3.6e4, 7.2e4, 0.0], 10.0)
    totals = account(written(tmp_path / "x", *rows, energies=energies), signal, price=PRICE)
    assert totals.idle_energy_j == pytest.approx(450.0)
    assert totals.idle_carbon_g == pytest.approx(1.0 + 4.0)
    assert totals.idle_cost == pytest.approx(450e-6)
    assert (totals.carbon_g, totals.energy_j, totals.cost) == (pytest.approx(2.0), 350.0, pytest.approx(350e-6))
    # what was drawn after the last job counts, and the signal must tell of it
    written(tmp_path / "x", *rows, energies=[*energies, (50.0, 900.0)])
    with pytest.raises(InputError, match=r"the signal ends at 30 s, before 50 s"):
        account(tmp_path / "x", signal)


def test_what_is_refused(tmp_path):
    prefix = tmp_path / "x"
    written(prefix, row("1", 5.0, 40.0, -1.0))
    with pytest.raises(InputError, match="job 1 has no consumed energy; run it with energy accounting"):
        account(prefix, SIGNAL)
    written(prefix, row("1", 5.0, 66.0, 1.0))
    with pytest.raises(InputError, match=r"the signal ends at 70 s, before 71 s, which the run"):
        account(prefix, SIGNAL)
    written(prefix, row("1", 5.0, 60.0, 1.0))
    with pytest.raises(InputError, match="is in the workload"):
        account(prefix, SIGNAL, workload_of(ShiftJob("7", 5.0, MODEL)))
    with pytest.raises(InputError, match=r"the signal ends at 40 s, before 65 s"):
        account(prefix, SIGNAL, price=Timeline.regular([1.0], 40.0))
