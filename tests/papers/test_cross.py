"""The page on all systems has the tables of the committed rows; fronts and ratios by hand."""

from __future__ import annotations

import pandas as pd
import pytest
import yaml

from papers import pages
from papers.claims import OPEN, PARTLY, YES
from papers.cross import estimates, frames, knowledge, run, tables
from papers.cross.claims import CLAIMS

ROW = {"log": "a", "signal": "s", "share": 0.5, "sample": 0, "jobs_total": 10, "jobs_finished": 9, "killed_power": 2,
       "mean_wait_s": 3600.0, "carbon_g": 2.0, "energy_j": 10.0, "energy_above_cap_j": 0.0}  # fmt: skip


def cell(**cases):
    """Case -> (slowdown, finished work)."""
    named = {name.replace("_", " "): values for name, values in cases.items()}
    return pd.DataFrame([ROW | {"case": name, frames.SLOWDOWN: s, frames.WORK: g} for name, (s, g) in named.items()])


@pytest.fixture(scope="module")
def numbers():
    return tables.Numbers.read(tables.DATA)


def test_the_page_and_the_long_tables_are_those_of_the_rows(numbers):
    assert pages.fill(tables.PAGE, tables.tables(), check=True) == []
    for name, frame in tables.details(numbers).items():
        assert (tables.DATA / f"{name}.csv").read_text() == frame.to_csv(index=False, lineterminator="\n"), name


def test_the_verdicts(numbers):
    verdicts = [claim.test(numbers)[1] for claim in CLAIMS]
    assert verdicts == [OPEN] * 5 + [YES] + [OPEN] * 3 + [YES, PARTLY, YES, PARTLY]


def test_what_is_declared_was_run():
    declared = yaml.safe_load(run.STUDY.read_text())
    for part in frames.PARTS:
        rows = pd.read_csv(tables.DATA / f"{part}.csv")
        assert sorted(rows["case"].unique()) == sorted(declared["cases"])
        there = set(rows[frames.SAMPLE].itertuples(index=False, name=None))
        assert there == {(*cell, sample) for cell in run.cells(part, declared) for sample in range(3)}


def test_what_is_declared_of_estimates_was_run():
    declared = yaml.safe_load(estimates.STUDY.read_text())
    rows = pd.read_csv(tables.DATA / "estimates.csv")
    logs = declared["parts"]["held"]["logs"]
    there = set(rows[["log", "signal", "way", "case"]].itertuples(index=False, name=None))
    assert len(there) == len(rows) and there == {
        (log, signal, way, case)
        for log, of in logs.items()
        for signal in of["days"]
        for way in declared["ways"]
        for case in estimates.cases_of(declared, way)
    }


def test_what_was_expected_of_estimates_comes_out():
    """Less than in the ways walltimes and predictions, and than each other case in any way but exact."""
    logs = knowledge.wide(pd.read_csv(tables.DATA / "estimates.csv"))
    exact = [(case, "exact") for case in logs.columns.unique("case") if case not in estimates.WITHOUT_RUN_TIMES]
    for other in logs.columns.drop([*exact, knowledge.ROBUST, (knowledge.ROBUST[0], "regression")]):
        mean, half = frames.by_log((logs[knowledge.ROBUST] - logs[other]).dropna())
        assert mean + half < 0.0, other


def test_estimates_by_hand():
    """Ratios 2 / 4 and 2 / 16 in two logs: mean 1 / 4, ln 2 each side, 12.71 errors. b is best by walltimes."""
    values = {("adaptive + checkpoint", "doubling"): (2, 2), ("b", "exact"): (1, 1), ("b", "walltimes"): (4, 16),
              ("b", "doubling"): (5, 16)}  # fmt: skip
    rows = [{"log": log, "signal": "s", "share": 0.6, "case": case, "way": way, knowledge.BOUNDED: pair[n]}
            for (case, way), pair in values.items() for n, log in enumerate("xy")]  # fmt: skip
    logs = knowledge.wide(pd.DataFrame(rows))
    assert knowledge.rivals(logs) == [("b", "walltimes")]
    row = knowledge.robust(pd.DataFrame(rows)).splitlines()[-1]
    low, high = (0.25 * 2 ** (side * 12.71) for side in (-1, 1))
    assert row == f"| b | walltimes | 0.25 | {low:.2f} to {high:.2f} | 2 of 2 |"


def test_the_front_by_hand():
    """b has less slowdown than a for the same work, c less work for less slowdown; no limit is not rated."""
    found = frames.beaten(cell(a=(3.0, 0.5), b=(2.0, 0.5), c=(1.0, 0.4), d=(2.0, 0.5), no_limit=(1.0, 0.9)))
    assert found == {"a": {"b": False, "d": False}, "b": {}, "c": {}, "d": {}}


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
    assert frames.beaten(table)["a"] == {"b": True, "c": False}
    # the mean of ln 0.25, 0 and ln 1.5 is ln 0.72, its error ln 1.72
    assert tables.ratio_to_ours(frames.measured(table.replace("a", frames.OURS)), "c") == "c: 0.721 ×/÷ 1.72"


def test_seeds_count_as_their_mean():
    one = cell(a=(3.0, 0.5), b=(1.0, 0.5)).assign(seed=1)
    two = cell(a=(3.0, 0.5), b=(6.0, 0.5)).assign(seed=2)
    assert frames.beaten(pd.concat([one, two])) == {"a": {}, "b": {"a": False}}


def test_ratios_by_hand():
    """Slowdown 2 / 4, 8 / 1 and 2 / 1 in three logs: mean ln 2, error ln 4 / sqrt 3, half 4.30 errors = 3.442.

    Two cells of the last log are one value. Work is 1, 1 / 2 and 1.
    """
    one, two = cell(x=(4.0, 0.5), y=(2.0, 0.5)), cell(x=(1.0, 0.5), y=(8.0, 0.25)).assign(log="b")
    three = [
        cell(x=(1.0, 0.5), y=(ratio, 0.5)).assign(log="c", share=share) for ratio, share in ((1.0, 0.5), (4.0, 0.7))
    ]
    table = pd.concat([one, two, *three])
    assert tables.spread(frames.ratios(table, frames.SLOWDOWN, "x", "y")) == "2.00 ×/÷ 31.24 (0.50 to 8.00)"
    assert tables.spread(frames.ratios(table, frames.WORK, "x", "y")) == "0.79 ×/÷ 2.70 (0.50 to 1.00)"


def test_differences_are_paired(monkeypatch):
    """On two inputs 11 for 10 and 9 for 10: the mean is the same, the paired difference 0 % ± 10 %."""
    monkeypatch.setattr(frames, "GROUNDS", {"varcap-mira": ("goodput", "higher", "title")})
    rows = [
        {"study": "varcap-mira", "label": label, "workload": work, "envelope": None, "capacity": "c", "goodput": value}
        for label, work, value in [("adaptive", "a", 11), ("adaptive", "b", 9), ("LWW", "a", 10), ("LWW", "b", 10)]
    ]
    line = tables.grounds(pd.DataFrame(rows)).splitlines()[2]
    assert line == "| title | LWW: 10 | adaptive: 10 | +0.0% ± 10.0% | 2 | yes |"


def test_the_sun_has_the_share_that_is_declared(tmp_path):
    """On a shipped series: its sun and the constant connection have half of the machines' power in the mean."""
    from batwatt.inputs.series.envelope_spec import parse_envelope

    shipped = pd.read_csv("power_profiles/site/solar.csv", comment="#")
    shipped.assign(ac_power=1000.0 * shipped.pop("ac_power_kw")).to_csv(tmp_path / "solar.csv", index=False)
    end_s = 14 * 86400.0
    sun = {"peak": 0.9, "file": "solar.csv", "from": ["2024-07-01"]}
    text = run.envelope_of(sun, 0, 0.5, 1000.0, tmp_path)
    series = parse_envelope(text).series(end_s, 1000.0)
    mean_w = sum(value * (end - begin) for begin, end, value in series.steps(0.0, end_s)) / end_s
    # values below 0 at night count as 0 here
    assert mean_w == pytest.approx(500.0, rel=0.01)


def test_a_file_with_another_content_is_refused(tmp_path):
    (tmp_path / "hpc2n.swf").write_text("x")
    with pytest.raises(SystemExit, match=r"hpc2n\.swf: missing or another file; source: https://"):
        run.check_data(tmp_path, yaml.safe_load(run.STUDY.read_text())["parts"]["tune"])
