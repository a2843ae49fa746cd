"""The riskaware paper's page: rows of its files by hand, and the quantities of statements by plain pandas."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from papers.generators.pmbs import Walk
from papers.pmbs23 import tables
from papers.pmbs23.tables import MEASURES, OF_INPUTS, SINGLE, STRATEGIES, frame_of, samples_of
from papers.statements import measured, statements_of

AWARE, UNAWARE, STRETCH, ASAP, PACKED = STRATEGIES.values()
OTHERS, TARGETS = [AWARE, UNAWARE, ASAP, PACKED], [STRETCH, ASAP, PACKED]
NOT_MEASURED = {6, 12, 27, 31, 32, 33, 96, 121, 128}


@pytest.fixture(scope="module")
def runs():
    """The committed runs by the rules of the text."""
    table = pd.read_csv(tables.DATA / "runs.csv.gz")
    table["used_percent"] = table["goodput_percent"] + table["aborted_percent"]
    return table[table["rules"] == "text"].fillna({"aborted_h": 0.0})


def test_rows_of_a_study(tmp_path):
    """The goodput of section 3.4 in %; the runs of a common point are rows of all sweeps."""
    rows = [
        ("mavg-log-scale", "target-asap", "log-scale-20000-1", "walk-24-8-1200-2"),
        ("program-mavg-borg", "target-asap", "14D_864000", "walk-20-8-1200-0"),
        ("blurred-3types", "first-fit-aware", "3types-20000-0", "walk-24-8-1200-0"),
        ("moving-uniform", "first-fit-aware", "uniform-20000-0", "walk-24-8-400-0"),
    ]
    frame = pd.DataFrame(rows, columns=["comparison", "strategy", "workload", "capacity"])
    frame = frame.assign(status="done", goodput=0.5, aborted_volume=0.05, mean_aborted_time_s=1800.0,
                         max_full_speed_slowdown=10.0, mean_full_speed_slowdown=2.0, completed_fraction=0.9,
                         terminations=7, capacity_core_s=24 * 1_209_600 * 23.5)  # fmt: skip
    frame.assign(goodput_with_running=0.8).to_parquet(tmp_path / "table.parquet")
    table = frame_of(tmp_path)
    assert table[tables.WHERE].values.tolist() == [
        ["text", "mavg", "log-scale", 24.0, ASAP, "1", "2"],
        ["program", "mavg", "borg", 20.0, ASAP, "1", "0"],
        ["text", "blurred", "3types", 8.0, AWARE, "0", "0"],
        ["text", "moving", "uniform", 400.0, AWARE, "0", "0"],
        ["text", "period", "log-scale", 1200.0, ASAP, "1", "2"],
        ["text", "range", "log-scale", 8.0, ASAP, "1", "2"],
    ]
    assert table.drop(columns=tables.WHERE).drop_duplicates().values.tolist() == [
        pytest.approx([80.0, 5.0, 0.5, 10.0, 2.0, 90.0, 7.0, 23.5])
    ]


def of_all_types(runs: pd.DataFrame) -> pd.DataFrame:
    """Rows of the values of a sweep that were run with all types."""
    return runs[runs.groupby(["sweep", "value"])["type"].transform("nunique") == 4]


def at_settings(runs: pd.DataFrame) -> pd.DataFrame:
    """Rows of all settings that all types have, the common one of all sweeps once."""
    runs = of_all_types(runs)
    return runs[
        (runs["sweep"] == "mavg")
        | ((runs["sweep"] == "period") & (runs["value"] != 1200.0))
        | ((runs["sweep"] == "range") & (runs["value"] != 8.0))
    ]


def means(runs: pd.DataFrame, figure: str, by: tuple[str, ...] = (), **where: object) -> pd.DataFrame:
    """Means of a figure where columns have these values, a column for each strategy."""
    for column, value in where.items():
        runs = runs[runs[column] == value]
    return runs.assign(all=0).pivot_table(index=["all", *by], columns="label", values=figure)


POINT, PAIR = ("sweep", "type", "value"), ("trace", "walk")
BY_HAND = {
    14: (
        "At M_avg=28 TargetASAP completes",
        lambda runs: means(runs, "completed_percent", sweep="mavg", value=28.0)[ASAP].iloc[0],
    ),
    22: (
        "TargetASAP always has better goodput than FirstFitUnaware",
        lambda runs: (
            means(of_all_types(runs), "goodput_percent", POINT, sweep="mavg").eval(f"{ASAP} - {UNAWARE}").min()
        ),
    ),
    43: (
        "On Borg TargetStretch is level with or better than TargetASAP in goodput",
        lambda runs: (row := means(runs, "goodput_percent", sweep="mavg", type="borg").iloc[0])[STRETCH] - row[ASAP],
    ),
    48: (
        "On Borg goodput differences between heuristics reach almost 10 %",
        lambda runs: np.ptp(means(runs, "goodput_percent", POINT, sweep="mavg", type="borg"), axis=1).max(),
    ),
    56: (
        "FirstFitAware's goodput stays above 84 % on Borg",
        lambda runs: means(runs, "goodput_percent", POINT, sweep="period", type="borg")[AWARE].min(),
    ),
    71: (
        "More jobs are interrupted as M_ra rises",
        lambda runs: (
            means(runs, "kills", sweep="range", value=16.0) / means(runs, "kills", sweep="range", value=4.0)
        ).min(axis=None),
    ),
    78: (
        "On Borg AverageAbortedTime gets worse",
        lambda runs: (
            means(runs, "aborted_h", sweep="range", type="borg", value=16.0)
            - means(runs, "aborted_h", sweep="range", type="borg", value=4.0)
        ).min(axis=None),
    ),
    83: (
        "On Borg TargetStretch has the lowest AbortedVolume",
        lambda runs: (
            (row := means(runs, "aborted_percent", sweep="range", type="borg").iloc[0])[OTHERS].min() - row[STRETCH]
        ),
    ),
    86: (
        "On Borg FirstFitUnaware performs poorly for AbortedVolume",
        lambda runs: (
            (row := means(runs, "aborted_percent", sweep="range", type="borg").iloc[0])[UNAWARE] / row[TARGETS].mean()
        ),
    ),
    100: (
        "FirstFitUnaware's maximum stretch is 2 to 3 times that of TargetASAP",
        lambda runs: means(at_settings(runs), "max_stretch", POINT).eval(f"{UNAWARE} / {ASAP}").mean(),
    ),
    106: (
        "GoodPut + AbortedVolume of PackedTargetASAP",
        lambda runs: means(runs, "used_percent", sweep="range", type="borg")[PACKED].iloc[0] / 100.0,
    ),
    118: (
        "In most experiments the impact of machine variation is not critical",
        lambda runs: (
            100.0 * means(at_settings(runs), "goodput_percent", (*POINT, *PAIR)).eval(f"{ASAP} > {STRETCH}").mean()
            - 50.0
        ),
    ),
}
"""Place of a statement -> its first words, and its quantity."""


@pytest.mark.parametrize("place", BY_HAND)
def test_measures_are_what_the_rows_say(runs, place):
    words, value = BY_HAND[place]
    assert statements_of(tables.HERE)[place - 1].statement.startswith(words)
    assert MEASURES[place](samples_of(runs, "text")) == pytest.approx(value(runs), rel=1e-9, abs=1e-9)


def test_an_interval_is_over_pairs_of_trace_and_walk(runs):
    """TargetASAP less TargetStretch in the mean over ranges: 2.57 standard errors of six pairs."""
    pairs = means(runs, "goodput_percent", PAIR, sweep="range", type="borg").eval(f"{ASAP} - {STRETCH}")
    ours = measured(MEASURES[79], samples_of(runs, "text"))
    half = 2.57 * pairs.sem()
    assert len(pairs) == 6
    assert [ours.low, ours.high] == pytest.approx([pairs.mean() - half, pairs.mean() + half], abs=1e-3)


def test_counts_of_the_page():
    """Every statement is counted, and those without a quantity are open by both rules."""
    by_rules = tables.judged(pd.read_csv(tables.DATA / "runs.csv.gz"), pd.read_csv(tables.DATA / "inputs.csv"))
    assert {*MEASURES} & {*OF_INPUTS} == set() and {*SINGLE} <= {*MEASURES}
    assert {*range(1, 129)} - {*MEASURES} - {*OF_INPUTS} == NOT_MEASURED
    assert list(by_rules) == ["text", "program"]
    for judged in by_rules.values():
        assert len(judged.statements) == 128
        assert {one.place for one in judged.statements if judged.verdict(one) == "open"} >= NOT_MEASURED


def test_shares_and_walks_of_the_generated_inputs():
    """Shares as of the stated distribution: 12, 15, 75 and 375 of 477; every period of 400 s of the two weeks."""
    assert tables.shares_of("log-scale", 0) == pytest.approx(
        100.0 * np.array([12.0, 15.0, 75.0, 375.0]) / 477.0, abs=1.5
    )
    machines = tables.machines_of(Walk(period_s=32400), 3)
    assert len(machines) == 3024 and {*np.diff(machines)} == {-2.0, 0.0, 2.0}
    # 604,800 s is in the 19th period, which ends at 615,600 s
    assert np.flatnonzero(np.diff(machines))[0] % 81 == 26
    inputs = pd.read_csv(tables.DATA / "inputs.csv")
    assert inputs["machines_32400"][3] == pytest.approx(machines.mean(), abs=1e-6)


def test_figures_are_small_and_name_the_strategies(tmp_path):
    tables.draw_all(pd.read_csv(tables.DATA / "runs.csv.gz"), tmp_path)
    for number in (1, 2, 3, 4):
        picture = (tmp_path / f"figure-{number}.svg").read_text()
        assert len(picture) < 60_000 and all(f">{label}<" in picture for label in STRATEGIES.values())
        assert (tables.HERE / f"figure-{number}.svg").is_file()
