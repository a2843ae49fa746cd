"""The tables, on numbers small enough to work out by hand."""

from __future__ import annotations

import math
from dataclasses import replace

import pandas as pd
import pytest
from tables_of_tests import further, paper, row, save

from batwatt.errors import InputError
from batwatt.report.grid import NOTHING
from batwatt.report.report_plan import general_plan
from batwatt.report.table import read_campaign
from batwatt.report.tables import APART, marks, study_tables, summary, table2, table3

A, B = "EBF Slow HFLD", "FF Asc IDFS"
TWO = [
    row(A, "w0", mean_slowdown=3.0, killed_power=2, killed_walltime=1, violations=4, finished_work_fraction=0.5),
    row(A, "w1", mean_slowdown=6.0, killed_power=4, killed_walltime=1, violations=0, finished_work_fraction=0.9),
    row("Optimum", "w0", mean_slowdown=1.0, lower_bound=0.9),
    row("Optimum", "w1", mean_slowdown=2.0, lower_bound=1.5),
]


def with_profiles(campaign):
    """The plan with Figure 6 of the study `profiles` alone."""
    return replace(general_plan(campaign), variants="profiles" if "profiles" in campaign.studies else None)


def table(folder, rows, plan=with_profiles):
    campaign = read_campaign(save(folder, rows))
    plan = plan(campaign)
    return table2(campaign, plan), campaign, plan


def line(grid, label=A):
    return grid.frame.set_index("label").loc[label]


def test_table2_by_hand(tmp_path):
    grid, *_ = table(tmp_path, TWO)
    found = line(grid)
    assert (found["instances"], found["mean_slowdown"], found["kills"], found["violations"]) == (2, 4.5, 4.0, 2.0)
    assert (found["killed_power"], found["killed_walltime"], found["finished_work_percent"]) == (3.0, 1.0, 70.0)
    # (3 - 1 + 6 - 2) / 2, (3 + 5) / 2, (4 + 0) / 2
    assert found["mean_slowdown_over_optimum"] == 3.0
    assert (found["kills_over_optimum"], found["violations_over_optimum"]) == (4.0, 2.0)
    assert not any("bound" in column.name or "best_known" in column.name for column in grid.columns)
    assert list(grid.frame["label"]) == ["Optimum", A] and grid.named == 2


def test_what_speeds_cost_stands_behind_the_slowdown(tmp_path):
    full = [column.name for column in table(tmp_path / "full", TWO)[0].columns]
    slow = [TWO[0] | {"mean_run_time_stretch": 1.5, "mean_full_speed_slowdown": 4.5}, TWO[1], *TWO[2:]]
    grid, *_ = table(tmp_path / "slow", slow)
    added = ["mean_run_time_stretch", "mean_full_speed_slowdown"]
    names = [column.name for column in grid.columns]
    assert names[: names.index("killed_power")] == ["label", "instances", "mean_slowdown", *added]
    assert [name for name in names if name not in added] == full
    assert (line(grid)[added[0]], line(grid)[added[1]]) == ((1.5 + 1.0) / 2, (4.5 + 1.0) / 2)
    own = study_tables(*table(tmp_path / "own", [*TWO, *further(), slow[0] | {"study": "slowed"}])[1:])
    shown = {grid.name: [column.name for column in grid.columns] for grid in own}
    assert added[0] in shown["study-slowed"] and added[0] not in shown["study-own"]


def test_the_bounded_slowdown_stands_behind_the_slowdown(tmp_path):
    """Means of 2 and 4; a table of an older version has none."""
    rows = [TWO[0] | {"mean_bounded_slowdown": 2.0}, TWO[1] | {"mean_bounded_slowdown": 4.0}, *TWO[2:]]
    grid, *_ = table(tmp_path / "new", rows)
    names = [column.name for column in grid.columns]
    assert names[names.index("mean_slowdown") + 1] == "mean_bounded_slowdown"
    assert line(grid)["mean_bounded_slowdown"] == 3.0
    assert "mean_bounded_slowdown" not in [column.name for column in table(tmp_path / "old", TWO)[0].columns]


def test_unproven_optimum_is_labelled_so(tmp_path):
    grid, *_ = table(tmp_path, [*TWO[:3], TWO[3] | {"proven_optimal": False, "gap": 0.25}])
    found = line(grid)
    assert found["mean_slowdown_over_best_known"] == 3.0
    # (3 - 0.9 + 6 - 1.5) / 2
    assert found["slowdown_over_lower_bound"] == pytest.approx(3.3)
    assert line(grid, "Optimum")["slowdown_over_lower_bound"] == pytest.approx(0.3)
    groups = [name for name, _ in grid.groups()]
    assert groups[2:4] == ["distance to the best known schedule", "distance to the lower bound"]
    assert any("not proven optimal" in note for note in grid.notes)
    assert not any("over_optimum" in column.name for column in grid.columns)


@pytest.mark.parametrize("proven", [None, False])
def test_a_null_is_no_proof(tmp_path, proven):
    grid, *_ = table(tmp_path, [*TWO[:3], TWO[3] | {"proven_optimal": proven}])
    assert "mean_slowdown_over_best_known" in grid.frame


def test_an_instance_without_optimum_counts_in_means_only(tmp_path):
    failed = row("Optimum", "w2", status="failed", error="no time")
    grid, *_ = table(tmp_path, [*TWO, row(A, "w2", mean_slowdown=12.0), failed])
    found = line(grid)
    assert (found["instances"], found["mean_slowdown"], found["mean_slowdown_over_optimum"]) == (3, 7.0, 3.0)
    assert any("Some instances have no optimum" in note for note in grid.notes)


def test_no_optimum(tmp_path):
    grid, *_ = table(tmp_path, TWO[:2])
    assert "There is no optimum in this campaign: absolute values only." in grid.notes
    assert not any("_over_" in column.name for column in grid.columns)


def test_seeds_of_an_instance_count_once(tmp_path):
    grid, *_ = table(tmp_path, [*TWO, row(A, "w1", seed=7, mean_slowdown=10.0)])
    # w1 is (6 + 10) / 2 = 8
    assert line(grid)["mean_slowdown"] == 5.5 and line(grid)["mean_slowdown_over_optimum"] == 4.0


def test_no_envelope(tmp_path):
    nothing = {"envelope": None, "violations": None, "energy_j": None}
    grid, campaign, plan = table(tmp_path, [made | nothing for made in TWO])
    assert math.isnan(line(grid)["violations"]) and line(grid)["mean_slowdown_over_optimum"] == 3.0
    cells = dict(zip((c.name for c in grid.columns), grid.cells()[1], strict=True))
    assert cells["violations"] == cells["violations_over_optimum"] == NOTHING
    assert cells["mean_slowdown_over_optimum"] == "+3.00"
    found = marks(campaign, plan, [A, "Optimum"])
    assert list(found.columns) == ["mean_slowdown", "kills"]


def test_marks_by_hand(tmp_path):
    values = {A: (1.0, 3.0), B: (2.0, 1.0), "FF Slow HFLD": (3.0, 2.0), "EBF Slow IDSB": (5.0, 3.0)}
    rows = []
    for label, (first, second) in values.items():
        rows += [row(label, "w0", mean_slowdown=first), row(label, "w1", mean_slowdown=first)]
        rows.append(row(label, "w0", study="profiles", envelope="e1", mean_slowdown=second, killed_power=int(second)))
    _, campaign, plan = table(tmp_path, rows)
    found = marks(campaign, plan, plan.rated)
    # slowdown, places: 0 1/4 1/2 1 in the first study, 1 0 1/2 1 in the second: means 1/2 1/8 1/2 1
    assert found["mean_slowdown"].to_dict() == {A: "+", B: "+++", "FF Slow HFLD": "+", "EBF Slow IDSB": ""}
    # kills: all equal in the first (0), places 1 0 1/2 1 in the second: means 1/2 0 1/4 1/2
    assert found["kills"].to_dict() == {A: "+", B: "+++", "FF Slow HFLD": "++", "EBF Slow IDSB": "+"}
    assert set(found["violations"]) == {"+++"}


def test_table3_has_those_that_respond_to_the_envelope(tmp_path):
    _, campaign, plan = table(tmp_path, paper())
    frame = table3(campaign, plan).frame.set_index("label")
    assert list(frame.index) == ["EBF Slow HFLD", "FF Asc IDFS", "FF Slow HFLD", "EBF Slow IDSB", "EBF Slow OWN"]
    # slowdown 3, 4, 5, 6, 7
    assert list(frame["mean_slowdown"]) == ["+++", "++", "+", "", ""]


def test_table3_needs_two(tmp_path):
    _, campaign, plan = table(tmp_path, TWO)
    assert table3(campaign, plan) is None


def studies(folder, rows, plan=with_profiles):
    campaign = read_campaign(save(folder, rows))
    return study_tables(campaign, plan(campaign))


def test_a_further_study_by_hand(tmp_path):
    (grid,) = studies(tmp_path, [*TWO, *further()])
    assert (grid.name, grid.title, grid.named) == ("study-own", "Study “own” by envelope", 2)
    assert [name for name, _ in grid.groups()] == ["", "slowdown", "kills (jobs)", "violations (steps)",
                                                   "finished work (%)"]  # fmt: skip
    assert [column.heading for column in grid.columns] == ["algorithm", *["e1", "e2", "all"] * 4]
    # slowdown 4 5 | 6 7, kills 0 2 | 4 6, violations 0 1 | 2 3, work 100 90 | 80 70
    assert grid.cells()[0] == [A, "4.50", "6.50", "5.50", "1.0", "5.0", "3.0", "0.5", "2.5", "1.5",
                               "95.0", "75.0", "85.0"]  # fmt: skip
    # slowdown 2 3 | 4, kills 1 3 | 5, without the run that failed
    assert grid.cells()[1][:7] == ["EBF Slow OWN", "2.50", "4.00", "3.00", "2.0", "5.0", "3.0"]
    assert grid.notes == (
        "Means over the 4 instances of study “own” (2 envelopes, 1 platform, 2 workloads).",
        "Means over fewer: EBF Slow OWN (3).",
    )
    csv, markdown = grid.write(tmp_path / "out")
    assert list(pd.read_csv(csv).columns[:4]) == ["label", "mean_slowdown_e1", "mean_slowdown_e2", "mean_slowdown"]
    assert "| EBF Slow OWN | 2.50 | 4.00 | 3.00 |" in markdown.read_text()


def test_no_table_of_the_main_study_the_variants_or_one_without_results(tmp_path):
    rows = [row(A, study="profiles", envelope=name) for name in ("e1", "e2")]
    assert studies(tmp_path, [*TWO, *rows, row(A, study="broken", status="failed", error="x")]) == []


@pytest.mark.parametrize(
    ("envelopes", "workloads", "headings"),
    [
        (APART, 1, [f"e{n}" for n in range(APART)]),
        (APART + 1, 2, ["w0", "w1"]),
        (APART + 1, APART + 1, []),
        (1, 2, ["w0", "w1"]),
        (1, 1, []),
    ],
)
def test_what_has_columns_of_its_own(tmp_path, envelopes, workloads, headings):
    rows = [
        row(A, f"w{w}", study="own", envelope=f"e{e}", mean_slowdown=1.0 + w)
        for w in range(workloads)
        for e in range(envelopes)
    ]
    (grid,) = studies(tmp_path, [*TWO, *rows])
    assert [column.heading for column in grid.columns] == ["algorithm", *[*headings, "all"] * 4]
    assert grid.cells()[0][len(headings) + 1] == f"{1.0 + (workloads - 1) / 2:.2f}"


def test_a_study_with_and_without_an_envelope(tmp_path):
    rows = [row(A, study="own", envelope=name, violations=value) for name, value in ((None, None), ("e", 4))]
    (grid,) = studies(tmp_path, [*TWO, *rows])
    assert [column.heading for column in grid.columns][7:10] == ["none", "e", "all"]
    assert grid.cells()[0][7:10] == [NOTHING, "4.0", "4.0"]


def test_names_of_studies_that_no_file_can_tell_apart(tmp_path):
    names = ["a/b", "A b", "<a> b", "a b 2", "ä"]
    grids = studies(tmp_path, [*TWO, *(row(A, study=name) for name in names)])
    assert [grid.name for grid in grids] == ["study-a-b", "study-a-b-2", "study-a-b-3", "study-a-b-2-2", "study-run"]
    assert [grid.title for grid in grids] == [f"Study “{name}”" for name in names]


def test_summary_by_hand(tmp_path):
    _, campaign, plan = table(tmp_path, [*TWO, row(A, "w2", status="failed", error="x")])
    frame = summary(campaign, plan).set_index("label")
    assert list(frame.index) == ["Optimum", A]
    found = frame.loc[A]
    assert (found["runs"], found["failed"], found["mean_slowdown_mean"], found["killed_power_mean"]) == (3, 1, 4.5, 3)
    assert found["mean_slowdown_std"] == pytest.approx(math.sqrt(4.5)) and found["killed_walltime_std"] == 0.0


def test_files(tmp_path):
    hostile = "a|b <i>$x$ [1]"
    grid, *_ = table(tmp_path / "r", [row(hostile), row("other")], general_plan)
    csv, markdown = grid.write(tmp_path / "out")
    assert list(pd.read_csv(csv)["label"]) == [hostile, "other"]
    text = markdown.read_text()
    assert "| a\\|b \\<i\\>\\$x\\$ \\[1\\] | 1 |" in text
    assert b"\r" not in csv.read_bytes()


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
