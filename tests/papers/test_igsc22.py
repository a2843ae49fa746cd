"""The page of the powercap paper has the numbers of its files, and a run of the study gives these; tables by hand."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from tables_of_tests import row, save

from batwatt.studies.study import carry_out, study_in
from papers.batsim import ENGINES, WHERE, table
from papers.igsc22 import tables
from papers.igsc22.measures import ALL, ALL40, KILLS, MEASURES, SLOWDOWN, THIRD, VIOLATIONS, Numbers, above, area
from papers.pages import table_of
from papers.statements import Samples, statements_of

A, B = "EBF Slow HFLD", "EBF Slow Frugal"


def cells(table: str) -> list[list[str]]:
    """The cells of the rows below the heading."""
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in table.splitlines()[2:]]


def test_the_two_files_agree():
    """Means are those of the single runs, wherever these are listed."""
    numbers = Numbers.read(tables.DATA)
    runs = numbers.instances.assign(energy_kwh=numbers.instances["energy_j"] / 3.6e6)
    grouped = pd.concat([runs, runs.assign(envelope=ALL)]).groupby(["study", "label", "envelope"])
    means = grouped[tables.MEANS].mean().assign(runs=grouped.size())
    listed = numbers.summary.set_index(["study", "label", "envelope"]).loc[means.index, means.columns]
    pd.testing.assert_frame_equal(listed, means, check_dtype=False, rtol=0.0, atol=1.1e-4)
    assert len(means) >= 50


# 7 algorithms on 2 workloads, and on 3 profiles; a run of both studies is a row of either
@pytest.mark.parametrize(("only", "runs"), [(("workloads",), 21), pytest.param((), 35, marks=pytest.mark.deep)])
def test_the_small_study_gives_the_committed_numbers(tmp_path, only, runs):
    carry_out(study_in(tables.HERE / "small.yaml", tmp_path), only, lambda *_: None, jobs=2)
    frame = table_of(tmp_path / "igsc22-small")
    frame = frame[frame["status"] == "done"].set_index(tables.WHERE)
    listed = pd.read_csv(tables.DATA / "instances.csv").set_index(tables.WHERE).loc[frame.index]
    assert len(frame) == runs and frame.index.is_unique
    assert listed[tables.COUNTS].to_dict() == frame[tables.COUNTS].astype(int).to_dict()
    figures = ["mean_slowdown", "finished_work_fraction", "energy_j"]
    # the last of 15 digits may depend on how the processor adds up
    pd.testing.assert_frame_equal(listed[figures], frame[figures].astype(float), rtol=1e-12, atol=1.1e-6)


@pytest.fixture
def numbers(tmp_path):
    """Two workloads on profile3, one of them on profile1 too: two algorithms and the optimum, worked out by hand."""
    rows = []
    for n, workload in enumerate(("w0", "w1")):
        at = {"workload": workload, "envelope": "profile3", "energy_j": 3.6e6 * (n + 1)}
        bounds = {"lower_bound": 1.2 + n, "gap": 0.2, "proven_optimal": n == 0}
        rows += [
            row(A, mean_slowdown=3.0 + n, killed_power=5 + n, killed_walltime=1, violations=2, **at),
            row(B, mean_slowdown=2.0, finished_work_fraction=0.5 + n / 4, **at),
            row("Optimum", mean_slowdown=1.5 + n, **bounds, **at),
            row("EBF Asc IAFS", mean_slowdown=9.0, **at),
        ]
    for envelope in ("profile1", "profile3"):
        rows.append(row(B, violations=3, workload="w0", envelope=envelope, comparison="profiles"))
    tables.write_numbers(save(tmp_path / "results", rows), tmp_path)
    return Numbers.read(tmp_path)


def test_table2(numbers):
    assert "over the best known schedule" in tables.table2(numbers)
    assert cells(tables.table2(numbers)) == [
        # (0.3 + 0.3) / 2
        ["Optimum", "2.00 / 0.0 / 0.0", "100.0", "0.00 / 0.0 / 0.0", "+0.30", "–"],
        # slowdown 3 - 1.5 and 4 - 2.5, kills 6 and 7
        [A, "3.50 / 6.5 / 2.0", "100.0", "+1.50 / +6.5 / +2.0", "+1.80", "+2.90 / +19.0 / +3.0"],
        # slowdown 2 - 1.5 and 2 - 2.5, work 0.5 and 0.75
        [B, "2.00 / 0.0 / 0.0", "62.5", "0.00 / 0.0 / 0.0", "+0.30", "–"],
    ]


def test_a_real_batsim_gives_the_committed_runs():
    """Both engines, every run of Table II that is no optimum."""
    listed = pd.read_csv(tables.DATA / "batsim.csv")
    figures = [name.removeprefix("batsim_") for name in listed if name.startswith("batsim_")]
    runs = pd.read_csv(tables.DATA / "runs.csv").query("study == 'workloads'")
    listed = listed.merge(runs, left_on=["label", "workload", "series"], right_on=["label", "workload", "envelope"])
    assert len(listed) == 20 * len(tables.DISTANCES)
    for engine in ENGINES:
        ours = listed[[f"{engine}_{name}" for name in figures]].set_axis(figures, axis=1)
        pd.testing.assert_frame_equal(ours, listed[figures], check_dtype=False, rtol=0.0, atol=1.1e-6)


def test_the_table_of_engines_has_means_by_algorithm(tmp_path):
    (tmp_path / "checkpoint" / "data").mkdir(parents=True)
    names = ("goodput_with_running", "checkpoint_volume", "aborted_volume")
    columns = [f"{engine}_{name}" for engine in ENGINES for name in names]
    rows = [
        ["DP", "jobs-0", "walk", "4.2.1", 0.5, 0.0, 0.1, 0.5, 0.01, 0.1],
        ["DP", "jobs-1", "walk", "4.2.1", 0.7, 0.0, 0.1, 0.9, 0.03, 0.1],
        ["subset sum", "jobs-0", "walk", "4.2.1", 0.25, 0.0, 0.0, 0.25, 0.0, 0.0],
    ]
    pd.DataFrame(rows, columns=[*WHERE, *columns]).to_csv(tmp_path / "checkpoint" / "data" / "batsim.csv", index=False)
    lines = table(tmp_path / "checkpoint", {"DP": "dynamic programming"})
    assert lines.startswith("| embedded / Batsim 4.2.1 | goodput (%) |")
    assert cells(lines) == [
        ["dynamic programming", "60.000 / 70.000", "0.000 / 2.000", "10.000 / 10.000"],
        ["subset sum", "25.000 / 25.000", "0.000 / 0.000", "0.000 / 0.000"],
    ]


def test_measures_are_of_the_list():
    assert set(MEASURES) <= {statement.place for statement in statements_of(tables.HERE)}


def test_quantities_by_hand():
    """All 40 algorithms are level but for two: the first is best in all, the last worst, with equal steps of a half."""
    best, worst = ALL40[0], ALL40[-1]
    values = {
        (label, figure, THIRD): np.array([level, level])
        for label in ALL40
        for figure in (SLOWDOWN, KILLS, VIOLATIONS)
        for level in [1.0 if label == best else 3.0 if label == worst else 2.0]
    }
    samples = Samples(values)
    # a radar of three axes of 1, 0.5 and 0 has the areas 1, 0.25 and 0 of the largest triangle
    assert [area(samples, label) for label in (best, ALL40[1], worst)] == [1.0, 0.25, 0.0]
    assert above(KILLS, ALL40[1:3], (best, worst))(samples) == -1.0


@pytest.mark.parametrize(
    ("place", "words"),
    [
        (22, "IDSB has a higher number"),
        (67, "Besides no server"),
        (104, "IDFS is second-worst"),
        (131, "It is essential"),
    ],
)
def test_measures_are_of_the_rows_that_they_count(place, words):
    assert statements_of(tables.HERE)[place - 1].statement.startswith(words)
