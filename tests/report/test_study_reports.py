"""The studies of a report: cases, tables and figures, on numbers small enough to work out by hand."""

from __future__ import annotations

import math

import pandas as pd
import pytest
from tables_of_tests import further, row, save

from batwatt.errors import InputError
from batwatt.report.figures import MOST, means_figure
from batwatt.report.page import _means
from batwatt.report.study import APART, read_study, summary, varied
from batwatt.report.tables import cases_table
from batwatt.report.texts import stems_of

A, B = "EBF Slow HFLD", "FF Asc IDFS"
TWO = [
    row(A, "w-0", mean_slowdown=3.0, killed_power=2, killed_walltime=1, violations=4, finished_work_fraction=0.5),
    row(A, "w-1", mean_slowdown=6.0, killed_power=4, killed_walltime=1, violations=0, finished_work_fraction=0.9),
    row("Optimum", "w-0", mean_slowdown=1.0, lower_bound=0.9),
    row("Optimum", "w-1", mean_slowdown=2.0, lower_bound=1.5),
]


def study(folder, rows, name="workloads"):
    return read_study(save(folder, rows)).comparisons[name]


def table_of(data):
    """The table of a study: its headings, and the texts of the cells of each case."""
    by, title = varied(data)
    table = cases_table("x", "X", data, by if title else None, title)
    return table, {label: [cell.text for cell in cells] for label, cells in table.rows}


def test_means_by_hand(tmp_path):
    table, cells = table_of(study(tmp_path, TWO))
    # the waits are equal
    assert [head.text for head in table.headings] == ["slowdown", "kills", "violations (steps)", "finished work (%)"]
    assert cells == {A: ["4.50", "4", "2", "70.0"], "Optimum": ["1.50", "0", "0", "100"]}
    assert table.notes == ["Each mean is over 2 workloads.", "Equal in all cases: mean wait 0 s."]
    # differences -2 and -4, of which 12.7 standard errors are more
    assert dict(table.rows)["Optimum"][0].more == ("~−3.0 ± 1.0",)


def test_seeds_of_an_instance_count_once(tmp_path):
    # w-1 is (6 + 10) / 2 = 8
    assert table_of(study(tmp_path, [*TWO, row(A, "w-1", seed=7, mean_slowdown=10.0)]))[1][A][0] == "5.50"


def test_a_study_by_envelope(tmp_path):
    rows = [*TWO, *further()]
    data = study(tmp_path, rows, "own")
    table, cells = table_of(data)
    groups = [(name, span) for name, span, _ in table.groups]
    assert groups == [(name, 2) for name in ("slowdown", "kills", "violations (steps)", "finished work (%)")]
    assert [head.text for head in table.headings] == ["e1", "e2"] * 4
    # slowdown 4 5 | 6 7, kills 0 2 | 4 6, violations 0 1 | 2 3, work 100 90 | 80 70
    assert cells[A] == ["4.50", "6.50", "1", "5", "0.50", "2.50", "95.0", "75.0"]
    # slowdown 2 3 | 4, kills 1 3 | 5, without the run that failed
    assert cells["EBF Slow OWN"][:4] == ["2.50", "4.00", "2", "5"]
    assert table.notes == ["Each mean is over 1 to 2 instances, by envelope.", "Equal in all cases: mean wait."]
    frame = _means(data)
    assert list(frame.columns[:3]) == ["case", "mean_slowdown e1", "mean_slowdown e2"]
    assert frame.iloc[1, 1:3].tolist() == [2.5, 4.0]
    figure = means_figure("own", data, *varied(data))
    assert figure.title == "Comparison “own” by envelope"
    bars = figure.charts[0].series[0]
    assert (bars.kind, bars.name, bars.y) == ("bars", A, [4.5, 6.5])


def test_goodput_by_the_range_of_the_capacity(tmp_path):
    rows = [
        row("a", "w", capacity=f"{kind}-{size}-s{seed}", cap_structure=kind, cap_range=size,
            goodput=goodput + seed / 10, capacity_core_s=1.0, aborted_volume=0.25, mean_wait_s=90.0)
        for kind, size, goodput in (("constant", 0.9, 0.8), ("walk", 0.2, 0.6), ("walk", 0.6, 0.4))
        for seed in (0, 1)
    ]  # fmt: skip
    data = study(tmp_path, rows)
    table, cells = table_of(data)
    assert [head.text for head in table.headings][:3] == ["0", "0.2", "0.6"]
    assert cells["a"][:4] == ["85.0", "65.0", "45.0", "25.0"]
    line = means_figure("x", data, *varied(data)).charts[0].series[0]
    assert (line.kind, line.x) == ("line", [0.0, 0.2, 0.6])
    assert (line.y, list(line.error)) == (pytest.approx([85.0, 65.0, 45.0]), pytest.approx([5.0, 5.0, 5.0]))


@pytest.mark.parametrize(
    ("envelopes", "workloads", "expected"),
    [
        (APART, 1, [f"e{n}" for n in range(APART)]),
        (APART + 1, 2, ["w0", "w1"]),
        (APART + 1, APART + 1, ["slowdown"]),
    ],
)
def test_columns_of_their_own(tmp_path, envelopes, workloads, expected):
    rows = [row(A, f"w{w}", envelope=f"e{e}") for w in range(workloads) for e in range(envelopes)]
    table, _ = table_of(study(tmp_path, rows))
    assert [head.text for head in table.headings][: len(expected)] == expected
    assert len(table.headings) == 5 * len(expected)


def test_names_of_studies_that_no_file_can_tell_apart():
    names = ["a/b", "A b", "<a> b", "a b 2", "ä"]
    assert list(stems_of(names).values()) == ["a-b", "a-b-2", "a-b-3", "a-b-2-2", "run"]


def test_measures_without_values(tmp_path):
    nothing = {"envelope": None, "violations": None, "energy_j": None}
    table, _ = table_of(study(tmp_path, [one | nothing for one in TWO]))
    assert [head.text for head in table.headings] == ["slowdown", "kills", "finished work (%)"]
    # with and without an envelope
    rows = [row(A, envelope=name, violations=value) for name, value in ((None, None), ("e", 4))]
    table, cells = table_of(study(tmp_path, rows))
    assert [head.text for head in table.headings][4:6] == ["none", "e"] and cells[A][4:6] == ["–", "4"]


def test_looks_tell_apart(tmp_path):
    looks = read_study(save(tmp_path, [row(f"x{n}") for n in range(48)])).looks
    assert len({(look.colour, look.marker) for look in looks.values()}) == len(looks) == 48


def test_summary_by_hand(tmp_path):
    study = read_study(save(tmp_path, [*TWO, row(A, "w-2", status="failed", error="x")]))
    frame = summary(study).set_index("case")
    assert list(frame.index) == [A, "Optimum"]
    first = frame.loc[A]
    assert (first["runs"], first["failed"], first["mean_slowdown_mean"], first["killed_power_mean"]) == (3, 1, 4.5, 3)
    assert first["mean_slowdown_std"] == pytest.approx(math.sqrt(4.5)) and first["killed_walltime_std"] == 0.0


def test_the_best_cases_are_drawn(tmp_path):
    rows = [row(f"case {n:02d}", mean_slowdown=12.0 - n) for n in range(12)]
    data = study(tmp_path, rows)
    figure = means_figure("x", data, *varied(data))
    drawn = [marks.name for marks in figure.charts[0].series]
    assert drawn == ["case 00", *(f"case {n:02d}" for n in range(13 - MOST, 12))]
    assert figure.caption.endswith("The reference and the best of 12 cases by slowdown.")


@pytest.mark.parametrize(
    ("make", "problem", "hint"),
    [
        (lambda folder: None, "no such folder", "batwatt study"),
        (lambda folder: (folder / "cells").mkdir(parents=True), "no table.parquet yet", "batwatt study"),
        (lambda folder: save(folder, []), "has no row", "declare"),
        (lambda folder: (save(folder, TWO) / "table.parquet").write_text("PAR1?"), "cannot be read", "again"),
        (
            lambda folder: pd.DataFrame({"case": ["x"]}).to_parquet(save(folder, TWO) / "table.parquet"),
            "no column 'comparison': it was written by another version",
            "run the study again",
        ),
    ],
)
def test_errors(tmp_path, make, problem, hint):
    make(tmp_path / "r")
    with pytest.raises(InputError, match=problem) as caught:
        read_study(tmp_path / "r")
    assert hint in str(caught.value) and "\n" not in str(caught.value)
