"""The tables of docs/results/cross.md come from the committed rows; fronts and ratios by hand."""

from __future__ import annotations

import sys
from pathlib import Path

import pandas as pd
import pytest

ROOT = Path(__file__).resolve().parents[1]

sys.path.append(str(ROOT / "experiments"))
import cross  # noqa: E402 (scripts are found by their folder)
import cross_tables as tables  # noqa: E402

ROW = {"log": "a", "signal": "s", "share": 0.5, "sample": 0, "jobs_total": 10, "jobs_finished": 9, "killed_power": 2,
       "mean_wait_s": 3600.0, "carbon_g": 2.0, "energy_j": 10.0, "energy_above_cap_j": 0.0}  # fmt: skip


def cell(**cases):
    """Case -> (slowdown, finished work)."""
    named = {name.replace("_", " "): values for name, values in cases.items()}
    return pd.DataFrame([ROW | {"case": name, tables.SLOWDOWN: s, tables.WORK: g} for name, (s, g) in named.items()])


def test_the_page_has_the_tables_of_the_rows():
    assert tables.SCRIPT.main(["--check"]) == 0


def test_what_is_declared_was_run():
    declared = cross.yaml.safe_load((ROOT / "experiments" / "cross.yaml").read_text())
    for part in tables.PARTS:
        rows = pd.read_csv(tables.DOCS / tables.FOLDER / f"{part}.csv")
        assert sorted(rows["case"].unique()) == sorted(declared["cases"])
        there = set(rows[tables.SAMPLE].itertuples(index=False, name=None))
        assert there == {(*cell, sample) for cell in cross.cells(part, declared) for sample in range(3)}


def test_the_front_by_hand():
    """b has less slowdown than a for the same work, c less work for less slowdown; no limit is not rated."""
    found = tables.beaten(cell(a=(3.0, 0.5), b=(2.0, 0.5), c=(1.0, 0.4), d=(2.0, 0.5), no_limit=(1.0, 0.9)))
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
    assert tables.beaten(table)["a"] == {"b": True, "c": False}
    # the mean of ln 0.25, 0 and ln 1.5 is ln 0.72, its error ln 1.72
    assert tables.shown(tables.measured(table.replace("a", tables.OURS)), "c") == "c: 0.721 ×/÷ 1.72"


def test_seeds_count_as_their_mean():
    one = cell(a=(3.0, 0.5), b=(1.0, 0.5)).assign(seed=1)
    two = cell(a=(3.0, 0.5), b=(6.0, 0.5)).assign(seed=2)
    assert tables.beaten(pd.concat([one, two])) == {"a": {}, "b": {"a": False}}


def test_ratios_by_hand(monkeypatch):
    """Slowdown 2 / 4 and 8 / 1: their geometric mean is 2, between 0.5 and 8."""
    monkeypatch.setattr(tables, "IDEAS", (("idea", "x", "y"),))
    one, two = cell(x=(4.0, 0.5), y=(2.0, 0.5)), cell(x=(1.0, 0.5), y=(8.0, 0.25)).assign(log="b")
    line = tables.ideas(pd.concat([one, two])).splitlines()[2]
    assert line.startswith("| idea | x → y | 2.00 ×/÷ 4.00 (0.50 to 8.00) | 1.00 ×/÷ 1.00 (1.00 to 1.00) |")
    assert "0.71 ×/÷ 1.41 (0.50 to 1.00)" in line


def test_differences_are_paired(monkeypatch):
    """On two inputs 11 for 10 and 9 for 10: the mean is the same, the paired difference 0 % ± 10 %."""
    monkeypatch.setattr(tables, "GROUNDS", {"varcap-mira": ("goodput", "higher", "title")})
    rows = [
        {"study": "varcap-mira", "label": label, "workload": work, "envelope": None, "capacity": "c", "goodput": value}
        for label, work, value in [("adaptive", "a", 11), ("adaptive", "b", 9), ("LWW", "a", 10), ("LWW", "b", 10)]
    ]
    line = tables.grounds(pd.DataFrame(rows)).splitlines()[2]
    assert line == "| title | LWW: 10 | adaptive: 10 | +0.0% ± 10.0% | 2 | yes |"


@pytest.mark.parametrize("sample", range(3))
@pytest.mark.parametrize("part", tables.PARTS)
def test_signals_have_the_share_that_is_asked_for(part, sample):
    declared = cross.yaml.safe_load((ROOT / "experiments" / "cross.yaml").read_text())
    data = (ROOT / "experiments" / declared["data"]).resolve()
    if not data.exists():
        pytest.skip("the data of experiments/cross.yaml are not here")
    from batwatt.inputs.series.envelope_spec import parse_envelope

    for name, signal in declared["parts"][part]["signals"].items():
        if name != "solar":
            continue
        series = parse_envelope(cross.envelope_of(signal, sample, 0.5, 1000.0, data)).series(14 * 86400.0, 1000.0)
        end_s = 14 * 86400.0
        mean_w = sum(value * (end - begin) for begin, end, value in series.steps(0.0, end_s)) / end_s
        # what is below 0 at night counts as 0 here
        assert mean_w == pytest.approx(500.0, rel=0.01)
