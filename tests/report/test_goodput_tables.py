"""The tables of a report with goodput, and the numbers beside the paper's claims, worked out by hand."""

from __future__ import annotations

import math

import pytest
from tables_of_goodput import NAMES, run, swept

from batwatt.report.papers.pmbs23_claims import NO, OPEN, YES, claims, claims_table
from batwatt.report.papers.pmbs23_tables import all_means, mean_tables

AWARE, UNAWARE, STRETCH, ASAP, _ = NAMES


def test_means_by_hand(tmp_path):
    rows = [
        run(
            name,
            kind=kind,
            range=r,
            seed_of_walk=n,
            goodput=0.8 + place / 100 + n / 1000,
            max_full_speed_slowdown=float(r),
        )
        for place, name in enumerate((ASAP, AWARE))
        for kind in ("uniform", "borg")
        for r in (16, 8)
        for n in range(2 if r == 8 else 1)
    ]
    found = swept(tmp_path, rows)
    goodput, metrics = mean_tables(found, [AWARE, ASAP])
    assert (goodput.name, metrics.name) == ("means-range", "means-metrics")
    assert goodput.frame["label"].tolist() == [AWARE, ASAP]
    # (81.0 + 81.1) / 2
    assert goodput.frame["goodput_percent borg 8"].tolist() == pytest.approx([81.05, 80.05])
    assert goodput.frame["goodput_percent uniform 16"].tolist() == pytest.approx([81.0, 80.0])
    assert goodput.groups() == [("", 1), ("borg (%)", 2), ("uniform (%)", 2)]
    assert [column.heading for column in goodput.columns[1:]] == ["8", "16"] * 2
    assert goodput.notes == ("Each mean is over 1 to 2 instances.",)
    assert metrics.frame["max_full_speed_slowdown borg 16"].tolist() == [16.0, 16.0]
    every = all_means(found, [AWARE, ASAP])
    assert every[["parameter", "panel", "value", "label", "instances"]].values.tolist()[:4] == [
        ["range", "borg", "8", AWARE, 2],
        ["range", "borg", "8", ASAP, 2],
        ["range", "borg", "16", AWARE, 1],
        ["range", "borg", "16", ASAP, 1],
    ]
    # the deviation of 0.81 and 0.811
    assert every["goodput_std"].iloc[0] == pytest.approx(0.001 / math.sqrt(2.0)) and math.isnan(every["goodput_std"][2])


def pair(folder, first, second, kind="uniform", measure="goodput", names=(ASAP, AWARE)):
    """The claims of two strategies with these figures, one an instance, at a range of 8 (and 16)."""
    rows = [
        run(name, kind=kind, range=r, seed_of_walk=n, **{measure: value})
        for name, values in zip(names, (first, second), strict=True)
        for r in (8, 16)
        for n, value in enumerate(values)
    ]
    found = claims(swept(folder, rows))
    return found[(found["first"] == names[0]) & (found["second"] == names[1])].set_index("claim")


def test_a_claim_is_a_paired_difference_with_its_error(tmp_path):
    found = pair(tmp_path, [0.90, 0.92, 0.97, 0.94, 0.94], [0.88, 0.89, 0.90, 0.90, 0.90]).loc["asap-over-first-fit"]
    assert found["value"].tolist() == ["8", "16"] and set(found["parameter"]) == {"range"}
    # 2, 3, 7, 4 and 4 points: mean 4, variance (4 + 1 + 9) / 4
    assert found["number"].tolist() == pytest.approx([4.0, 4.0])
    assert found["standard_error"].tolist() == pytest.approx([math.sqrt(3.5 / 5.0)] * 2)
    assert set(found["verdict"]) == {YES} and set(found["instances"]) == {5}


@pytest.mark.parametrize(
    ("first", "second", "verdict"),
    [
        # 0, 0, 0, 0 and 5 points: mean 1 with an error of 1
        ([0.80, 0.80, 0.80, 0.80, 0.85], [0.80] * 5, OPEN),
        ([0.88, 0.89, 0.88, 0.89, 0.88], [0.90] * 5, NO),
        # few instances tell nothing
        ([0.90, 0.91, 0.90, 0.91], [0.80] * 4, OPEN),
        ([0.90], [0.80], OPEN),
        ([0.90] * 5, [0.90] * 5, OPEN),
    ],
)
def test_verdicts(tmp_path, first, second, verdict):
    found = pair(tmp_path, first, second).loc["asap-over-first-fit"]
    assert set(found["verdict"]) == {verdict}


def test_only_instances_of_both_are_paired(tmp_path):
    found = pair(tmp_path, [0.9, 0.9, 0.1], [0.8, 0.8]).loc["asap-over-first-fit"]
    assert found["number"].tolist() == pytest.approx([10.0, 10.0]) and set(found["instances"]) == {2}


def test_a_quotient_is_held_against_two(tmp_path):
    given = {"measure": "max_full_speed_slowdown", "names": (AWARE, STRETCH)}
    second = [2.0, 3.0, 2.0, 4.0, 6.0]
    found = pair(tmp_path, [2.5 * value for value in second], second, **given).loc["first-fit-max-stretch"]
    assert found["number"].tolist() == [2.5, 2.5] and set(found["verdict"]) == {YES}
    found = pair(tmp_path, [1.5 * value for value in second], second, **given).loc["first-fit-max-stretch"]
    assert found["number"].tolist() == [1.5, 1.5] and set(found["verdict"]) == {NO}


def test_what_is_said_of_borg_is_looked_at_there_only(tmp_path):
    given = {"measure": "aborted_volume", "names": (ASAP, STRETCH)}
    assert "stretch-aborted" not in pair(tmp_path / "a", [0.2, 0.3], [0.1, 0.1], **given).index
    found = pair(tmp_path / "b", [0.2, 0.3], [0.1, 0.1], kind="borg", **given)
    assert found.loc["stretch-aborted", "number"].tolist() == pytest.approx([15.0, 15.0])


def test_trends_by_hand(tmp_path):
    rows = [
        run(ASAP, range=r, seed_of_walk=100 * r + n, goodput=g)
        for r, gs in ((4, (0.9, 0.92) * 3), (8, (0.1, 0.1)), (16, (0.8, 0.84) * 3))
        for n, g in enumerate(gs)
    ]
    [found] = claims(swept(tmp_path, rows)).to_dict("records")
    assert (found["claim"], found["value"], found["first"]) == ("range-down", "4 to 16", ASAP)
    # 91 - 82, deviations of 1 and 2 over 6 instances each, n - 1 = 5
    assert found["number"] == pytest.approx(9.0) and found["standard_error"] == pytest.approx(1.0)
    assert found["verdict"] == YES and found["instances"] == 12


def test_the_table_of_claims_counts_verdicts(tmp_path):
    rows = [
        run(name, mean=m, goodput=g + n / 100, seed_of_walk=n)
        for m in (26, 28)
        for name, g in ((ASAP, 0.9), (AWARE, 0.8), (UNAWARE, 0.95))
        for n in range(5)
    ]
    [grid] = claims_table(claims(swept(tmp_path, rows)))
    assert not grid.by_label
    first = grid.frame.iloc[0]
    # TargetASAP is better than one of the two, worse than the other, at both values
    assert (first["points"], first[YES], first[OPEN], first[NO]) == (4, 2, 0, 2)
    assert (first["least"], first["mean"], first["largest"]) == pytest.approx((-5.0, 2.5, 10.0))
    similar = grid.frame[grid.frame["label"].str.contains("much the same")].iloc[0]
    assert math.isnan(similar[YES]) and similar["mean"] == pytest.approx(-15.0)
    down = grid.frame[grid.frame["label"].str.contains("26 to 28")].iloc[0]
    assert (down["points"], down[OPEN], down["mean"]) == (3, 3, 0.0)
    assert claims_table(claims(swept(tmp_path / "b", [run(AWARE)]))) == []
