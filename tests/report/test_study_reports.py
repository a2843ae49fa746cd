"""The studies of a report: plan, tables and figures, on numbers small enough to work out by hand."""

from __future__ import annotations

import math

import pandas as pd
import pytest
from tables_of_tests import further, paper, row, save

from batwatt.errors import InputError
from batwatt.report.report_plan import MOST, places
from batwatt.report.studies import APART, report_of
from batwatt.report.table import read_campaign
from batwatt.results.figures import Figure
from batwatt.results.style import PALETTE, Look

A, B = "EBF Slow HFLD", "FF Asc IDFS"
TWO = [
    row(A, "w-0", mean_slowdown=3.0, killed_power=2, killed_walltime=1, violations=4, finished_work_fraction=0.5),
    row(A, "w-1", mean_slowdown=6.0, killed_power=4, killed_walltime=1, violations=0, finished_work_fraction=0.9),
    row("Optimum", "w-0", mean_slowdown=1.0, lower_bound=0.9),
    row("Optimum", "w-1", mean_slowdown=2.0, lower_bound=1.5),
]


def reported(folder, rows):
    return report_of(read_campaign(save(folder, rows)))


def headings(grid):
    return [column.heading for column in grid.columns]


def test_means_by_hand(tmp_path):
    [grid] = reported(tmp_path, TWO).tables
    assert grid.cells() == [["Optimum", "1.50", "0.0", "0.0", "100.0"], [A, "4.50", "4.0", "2.0", "70.0"]]
    assert (grid.name, grid.title) == ("means-workloads", "Study “workloads”")
    assert grid.notes == ("Each mean is over 2 instances.",)


def test_seeds_of_an_instance_count_once(tmp_path):
    [grid] = reported(tmp_path, [*TWO, row(A, "w-1", seed=7, mean_slowdown=10.0)]).tables
    # w-1 is (6 + 10) / 2 = 8
    assert grid.frame.set_index("label").loc[A, "mean_slowdown"] == 5.5


def test_a_measure_without_values_has_no_column(tmp_path):
    nothing = {"envelope": None, "violations": None, "energy_j": None}
    [grid] = reported(tmp_path, [made | nothing for made in TWO]).tables
    assert headings(grid) == ["algorithm", "all", "all", "all"]


def test_a_study_by_envelope(tmp_path):
    report = reported(tmp_path, [*TWO, *further()])
    grid, figure = report.tables[1], report.figures[1]
    assert (grid.name, grid.title, figure.title) == ("means-own", "Study “own”", "Study “own” by envelope")
    groups = list(dict.fromkeys(column.group for column in grid.columns))
    assert groups == ["", "slowdown", "kills", "violations (steps)", "finished work (%)"]
    assert headings(grid) == ["algorithm", *["e1", "e2"] * 4]
    # slowdown 4 5 | 6 7, kills 0 2 | 4 6, violations 0 1 | 2 3, work 100 90 | 80 70
    assert grid.cells()[0] == [A, "4.50", "6.50", "1.0", "5.0", "0.5", "2.5", "95.0", "75.0"]
    # slowdown 2 3 | 4, kills 1 3 | 5, without the run that failed
    assert grid.cells()[1][:5] == ["EBF Slow OWN", "2.50", "4.00", "2.0", "5.0"]
    assert grid.notes == ("Each mean is over 1 to 2 instances, by envelope.",)
    csv, markdown = grid.write(tmp_path / "out")
    assert list(pd.read_csv(csv).columns[:3]) == ["label", "mean_slowdown e1", "mean_slowdown e2"]
    assert "| EBF Slow OWN | 2.50 | 4.00 |" in markdown.read_text()
    bars = figure.charts[0].series[0]
    assert (bars.kind, bars.name, bars.y) == ("bars", A, [4.5, 6.5])


def test_goodput_by_the_range_of_the_capacity(tmp_path):
    rows = [
        row("a", "w", capacity=f"{kind}-{size}-s{seed}", cap_structure=kind, cap_range=size,
            goodput=goodput + seed / 10, capacity_core_s=1.0, aborted_volume=0.25, mean_wait_s=90.0)
        for kind, size, goodput in (("constant", 0.9, 0.8), ("walk", 0.2, 0.6), ("walk", 0.6, 0.4))
        for seed in (0, 1)
    ]  # fmt: skip
    report = reported(tmp_path, rows)
    [grid], [figure] = report.tables, report.figures
    cells = ["a", "85.00", "65.00", "45.00", "25.00"]
    assert headings(grid)[1:4] == ["0", "0.2", "0.6"] and grid.cells()[0][:5] == cells
    line = figure.charts[0].series[0]
    assert (line.kind, line.x) == ("line", [0.0, 0.2, 0.6])
    assert (line.y, list(line.error)) == (pytest.approx([85.0, 65.0, 45.0]), pytest.approx([5.0, 5.0, 5.0]))


def test_a_fixed_capacity_has_no_time_between_changes(tmp_path):
    """It has a column of the table, and no mark of the figure."""
    cases = (("walk", 900.0, 0.5), ("walk", 3600.0, 0.7), ("constant", None, 0.9))
    rows = [
        row("a", "w", capacity=f"{kind}-{period_s}", cap_structure=kind, cap_period_s=period_s, goodput=goodput,
            capacity_core_s=1.0, aborted_volume=0.25, mean_wait_s=90.0)
        for kind, period_s, goodput in cases
    ]  # fmt: skip
    report = reported(tmp_path, rows)
    [grid], [figure] = report.tables, report.figures
    assert headings(grid)[1:4] == ["900", "3600", "none"] and grid.cells()[0][1:4] == ["50.00", "70.00", "90.00"]
    [line] = figure.charts[0].series
    assert (line.x, line.y) == ([900.0, 3600.0], [50.0, 70.0])
    assert figure.charts[0].x.ticks == {900.0: "900", 3600.0: "3600"}


@pytest.mark.parametrize(
    ("envelopes", "workloads", "expected"),
    [
        (APART, 1, [f"e{n}" for n in range(APART)]),
        (APART + 1, 2, ["w0", "w1"]),
        (APART + 1, APART + 1, ["all"]),
        (1, 1, ["all"]),
    ],
)
def test_columns_of_their_own(tmp_path, envelopes, workloads, expected):
    rows = [row(A, f"w{w}", envelope=f"e{e}") for w in range(workloads) for e in range(envelopes)]
    assert headings(reported(tmp_path, rows).tables[0]) == ["algorithm", *expected * 4]


def test_a_study_with_and_without_an_envelope(tmp_path):
    rows = [row(A, envelope=name, violations=value) for name, value in ((None, None), ("e", 4))]
    [grid] = reported(tmp_path, rows).tables
    assert headings(grid)[5:7] == ["none", "e"] and grid.cells()[0][5:7] == ["–", "4.0"]


def test_names_of_studies_that_no_file_can_tell_apart(tmp_path):
    names = ["a/b", "A b", "<a> b", "a b 2", "ä"]
    report = reported(tmp_path, [row(A, study=name) for name in names])
    stems = ["a-b", "a-b-2", "a-b-3", "a-b-2-2", "run"]
    assert [grid.name for grid in report.tables] == [f"means-{stem}" for stem in stems]
    assert [figure.id for figure in report.figures] == stems


def test_summary_by_hand(tmp_path):
    frame = reported(tmp_path, [*TWO, row(A, "w-2", status="failed", error="x")]).summary.set_index("label")
    assert list(frame.index) == ["Optimum", A]
    found = frame.loc[A]
    assert (found["runs"], found["failed"], found["mean_slowdown_mean"], found["killed_power_mean"]) == (3, 1, 4.5, 3)
    assert found["mean_slowdown_std"] == pytest.approx(math.sqrt(4.5)) and found["killed_walltime_std"] == 0.0


def test_files(tmp_path):
    hostile = "a|b <i>$x$ [1]"
    [grid] = reported(tmp_path / "r", [row(hostile), row("other")]).tables
    csv, markdown = grid.write(tmp_path / "out")
    assert list(pd.read_csv(csv)["label"]) == [hostile, "other"]
    assert "| a\\|b \\<i\\>\\$x\\$ \\[1\\] | 1.00 |" in markdown.read_text()
    assert b"\r" not in csv.read_bytes()


def test_places_of_higher_is_better_and_of_nothing():
    frame = pd.DataFrame({"label": ["a", "b"], "up": [1.0, 3.0], "none": [math.nan, math.nan]})
    found = places(frame, [Figure("up", "", "", "higher"), Figure("none", "", "", "lower")])
    assert found["up"].to_dict() == {"a": 1.0, "b": 0.0} and list(found.columns) == ["up"]


def test_the_plan(tmp_path):
    """The optimum is the reference; the algorithm that ignores the envelope is the baseline."""
    plan = reported(tmp_path, [*paper(), row("easyBackfill", scheduler="easyBackfill")]).plan
    assert plan.reference == plan.shown[0] == "Optimum" and plan.unresponsive == {"EBF Slow no config."}


def test_the_best_of_the_first_study_and_those_of_no_other_are_shown(tmp_path):
    rows = [row(f"algorithm {n:02d}", study="first", mean_slowdown=12.0 - n) for n in range(12)]
    plan = reported(tmp_path, [*rows, row("algorithm 00", study="next"), row("own", study="next")]).plan
    assert plan.reference is None
    assert plan.shown == (*(f"algorithm {n:02d}" for n in range(12 - MOST, 12)), "own")


def test_looks_tell_apart(tmp_path):
    report = reported(tmp_path, [*paper(), *(row(f"x{n}") for n in range(40))])
    labels, plan = report.campaign.labels, report.plan
    looks = plan.looks(labels)
    assert set(looks) == set(labels)
    assert looks["Optimum"] == Look(len(PALETTE) - 1)
    assert len({(look.colour, look.marker) for look in looks.values()}) == len(looks)
    assert len({looks[label].colour for label in plan.shown if label in looks}) == MOST


@pytest.mark.parametrize(
    ("make", "problem", "hint"),
    [
        (lambda folder: None, "no such folder", "batwatt campaign run"),
        (lambda folder: folder.mkdir(), "is not a folder of results", "batwatt campaign run"),
        (lambda folder: (folder / "cells").mkdir(parents=True), "no table.parquet yet", "batwatt campaign run"),
        (lambda folder: save(folder, []), "has no row", "declare"),
        (lambda folder: (save(folder, TWO) / "table.parquet").write_text("PAR1?"), "cannot be read", "again"),
        (
            lambda folder: pd.DataFrame({"label": ["x"]}).to_parquet(save(folder, TWO) / "table.parquet"),
            "no column 'study': it was written by another version",
            "run the campaign again",
        ),
        (lambda folder: save(folder, [row(A, mean_slowdown="much")]), "'mean_slowdown' holds something", "again"),
    ],
)
def test_errors(tmp_path, make, problem, hint):
    make(tmp_path / "r")
    with pytest.raises(InputError, match=problem) as caught:
        read_campaign(tmp_path / "r")
    assert hint in str(caught.value) and "\n" not in str(caught.value)
