"""The page on all systems has the tables of the committed rows; fronts and ratios by hand."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import yaml

from batwatt.inputs.spec import parse_series
from papers import pages
from papers.cross import run, tables
from papers.statements import statements_of

ROW = {"log": "a", "signal": "s", "share": 0.5, "sample": 0, "jobs_total": 10, "jobs_finished": 9, "killed_power": 2,
       "mean_wait_s": 3600.0, "carbon_g": 2.0, "energy_j": 10.0, "energy_above_cap_j": 0.0}  # fmt: skip


def cell(**cases):
    """Case -> (slowdown, finished work)."""
    named = {name.replace("_", " "): values for name, values in cases.items()}
    return pd.DataFrame([ROW | {"case": name, tables.SLOWDOWN: s, tables.WORK: g} for name, (s, g) in named.items()])


def test_the_page_and_the_long_tables_are_those_of_the_rows(monkeypatch):
    details = tables.details(*tables.read(tables.DATA)[:2])
    # once is enough
    monkeypatch.setattr(tables, "details", lambda *_: details)
    assert pages.fill(tables.PAGE, tables.tables(), check=True) == []
    for name, frame in details.items():
        assert (tables.DATA / f"{name}.csv").read_text() == frame.to_csv(index=False, lineterminator="\n"), name


def test_findings_by_hand():
    """Rows 7, 10 and 24 of the list, from the committed rows: logs, and runs on a paper's ground."""
    held = pd.read_csv(tables.DATA / "held.csv")
    judged = tables.judged(statements_of(tables.HERE), held, pd.read_csv(tables.DATA / "grounds.csv"))
    wide = held.pivot_table(index=tables.SAMPLE, columns="case", values=tables.SLOWDOWN)
    logs = np.log(wide["varcap LWW"] / wide["LWW + checkpoint"]).groupby(level=tables.CELL).mean().groupby("log").mean()
    assert judged.measured[7].value == pytest.approx(np.exp(logs.mean()))
    assert np.log(judged.measured[7].high) == pytest.approx(logs.mean() + 4.30 * logs.sem(), rel=1e-3)
    risk = held[held["case"] == "riskaware"]
    lost = 100.0 * (1.0 - risk["jobs_finished"] / risk["jobs_total"]).groupby(risk["log"]).mean()
    assert judged.measured[10].value == pytest.approx(lost.mean())
    rows = pd.read_csv(tables.DATA / "grounds.csv").query("study == 'riskaware-synthetic'")
    ground = rows.pivot_table(index=["workload", "capacity"], columns="label", values="goodput_with_running")
    better = 100.0 * (ground["adaptive"] / ground["PackedTargetASAP"] - 1.0)
    assert judged.measured[24].value == pytest.approx(better.mean())


def test_what_is_declared_was_run():
    declared = yaml.safe_load(run.STUDY.read_text())
    for part in tables.PARTS:
        rows = pd.read_csv(tables.DATA / f"{part}.csv")
        assert sorted(rows["case"].unique()) == sorted(declared["cases"])
        cells = set(rows[tables.SAMPLE].itertuples(index=False, name=None))
        files = run.samples_of(declared, declared["parts"][part], ways=False)
        assert cells == {(log, signal, share, n) for _, log, _, some in files for n, _, signal, share in some}


def test_what_is_declared_of_estimates_was_run():
    declared = yaml.safe_load(run.ESTIMATES.read_text())
    rows = pd.read_csv(tables.DATA / "estimates.csv")
    cells = set(rows[["log", "signal", "way", "case"]].itertuples(index=False, name=None))
    expected = {
        (log, signal, way, case)
        for log, of in declared["parts"]["held"]["logs"].items()
        for signal in of["days"]
        for way in declared["ways"]
        for case in run.cases_of(declared, way)
    }
    assert len(cells) == len(rows) and cells == expected


def test_what_was_expected_of_estimates_comes_out():
    """Less than in the ways walltimes and predictions, and than each other case in any way but exact."""
    logs = tables.wide(pd.read_csv(tables.DATA / "estimates.csv"))
    exact = [(case, "exact") for case in logs.columns.unique("case") if case not in run.WITHOUT_RUN_TIMES]
    for other in logs.columns.drop([*exact, tables.ROBUST, (tables.ROBUST[0], "regression")]):
        mean, half = tables.by_log((logs[tables.ROBUST] - logs[other]).dropna())
        assert mean + half < 0.0, other


def test_the_front_of_samples_by_hand():
    """b has 0.5, 0.5 and 0.6 of the slowdown of a: less by more than two errors; c has 0.25, 1 and 1.5: less, no more.

    d has less slowdown in the mean, and less work in one sample.
    """
    samples = [
        cell(a=(4.0, 0.5), b=(2.0, 0.5), c=(1.0, 0.5), d=(1.0, 0.5)),
        cell(a=(4.0, 0.5), b=(2.0, 0.5), c=(4.0, 0.5), d=(1.0, 0.4)).assign(sample=1),
        cell(a=(10.0, 0.5), b=(6.0, 0.5), c=(15.0, 0.5), d=(2.0, 0.5)).assign(sample=2),
    ]
    table = pd.concat(samples)
    assert tables.beaten(table)["a"] == {"b": True, "c": False}
    # the mean of ln 0.25, 0 and ln 1.5 is ln 0.72, its error ln 1.72
    assert tables.ratio_to_ours(tables.by_sample(table.replace("a", tables.OURS)), "c") == "c: 0.721 ×/÷ 1.72"


def test_ratios_by_hand():
    """Slowdown 2 / 4, 8 / 1 and 2 / 1 in three logs: mean ln 2, error ln 4 / sqrt 3, half 4.30 errors = 3.442.

    Two cells of the last log are one value. Work is 1, 1 / 2 and 1.
    """
    one, two = cell(x=(4.0, 0.5), y=(2.0, 0.5)), cell(x=(1.0, 0.5), y=(8.0, 0.25)).assign(log="b")
    three = [
        cell(x=(1.0, 0.5), y=(ratio, 0.5)).assign(log="c", share=share) for ratio, share in ((1.0, 0.5), (4.0, 0.7))
    ]
    table = pd.concat([one, two, *three])
    assert tables.spread(tables.ratios(table, tables.SLOWDOWN, "x", "y")) == "2.00 ×/÷ 31.24 (0.50 to 8.00)"
    assert tables.spread(tables.ratios(table, tables.WORK, "x", "y")) == "0.79 ×/÷ 2.70 (0.50 to 1.00)"


def test_the_sun_has_the_share_that_is_declared(tmp_path):
    """On a shipped series: its sun and the constant connection have half of the machines' power in the mean."""
    shipped = pd.read_csv("power_profiles/site/solar.csv", comment="#")
    shipped.assign(ac_power=1000.0 * shipped.pop("ac_power_kw")).to_csv(tmp_path / "solar.csv", index=False)
    end_s = 14 * 86400.0
    sun = {"peak": 0.9, "file": "solar.csv", "from": ["2024-07-01"]}
    text = run.envelope_of(sun, 0, 0.5, 1000.0, tmp_path)
    series = parse_series("power", text).timeline(None, end_s, 1000.0)
    mean_w = sum(value * (end - begin) for begin, end, value in series.steps(0.0, end_s)) / end_s
    # values below 0 at night count as 0 here
    assert mean_w == pytest.approx(500.0, rel=0.01)
