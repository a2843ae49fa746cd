"""The experiments on checkpoint planning: what they declare, the small one run whole, its tables, and its traces."""

from __future__ import annotations

import sys
from importlib import import_module

import pandas as pd
import pytest
from cli_house import ROOT
from tables_of_tests import pictures_undrawn

from batwatt.campaign.campaign import campaign_in
from batwatt.campaign.spec import Campaign
from batwatt.campaign.yaml_model import read_declared
from batwatt.systems.checkpoint.files import read_sequence
from batwatt.systems.checkpoint.sequence import follow

EXPERIMENTS = ROOT / "experiments"
PERIODS = EXPERIMENTS / "periods"


@pytest.fixture
def script(request):
    """A script of the experiments by its name."""
    sys.path.insert(0, str(EXPERIMENTS))
    try:
        yield import_module(request.param)
    finally:
        sys.path.remove(str(EXPERIMENTS))


TABLES = pytest.mark.parametrize("script", ["checkpoint_tables"], indirect=True)


FEW = ("figure1", "prepare", "warning", "endless", "steps", "single")
"""Studies with every scheduler and way to plan."""


@TABLES
@pytest.mark.parametrize("studies", [FEW, pytest.param((), marks=pytest.mark.deep)], ids=["few", "all"])
def test_checkpoint_small_and_its_tables(small, script, monkeypatch, studies):
    """Each study; then every table of the page, which is found to be as it should be, and not after a change."""
    monkeypatch.setattr(script.checkpoint_alignment, "rows", list)
    declared = EXPERIMENTS / "checkpoint-small.yaml"
    only = [word for study in studies for word in ("--only", study)]
    assert small.campaign("run", declared, "-j", 2, *only).code == 0
    small.out = small.results / "checkpoint-small"
    rows = pd.DataFrame(small.rows())
    # the table has the rows of other studies whose runs are these, too
    rows = rows[rows["study"].isin(studies)] if studies else rows
    cells = [cell for cell in campaign_in(declared, small.results).cells if cell.study in studies or not studies]
    assert len(rows) == len(cells) and len(small.cells()) == len({cell.key for cell in cells})
    volumes = rows[["goodput", "aborted_volume", "checkpoint_volume", "recovery_volume"]]
    assert (rows["goodput"] > 0).all() and (volumes.sum(axis=1) <= 1 + 1e-6).all()
    # checkpoints in time lose nothing, and who knows none has none
    ours = rows["scheduler"] == "checkpoint"
    told = ours & (rows["study"] != "warning") & ~rows["label"].str.contains("C=1200")
    assert (rows.loc[told, ["aborted_volume", "terminations"]] == 0).all(axis=None)
    assert (rows.loc[~ours, ["checkpoints", "recoveries"]] == 0).all(axis=None)
    assert rows.loc[rows["label"] == "Random", "terminations"].sum() > 0
    # the engine does what is planned for jobs that are new
    engine = rows[rows["study"] == "figure1"].set_index("label")["goodput"]
    given = read_sequence(PERIODS / "figure1-new.json")
    for asked in (0.0, 0.2):
        assert engine[f"min_yield {asked:g}"] == pytest.approx(
            follow(given.sequence, min_yield=asked).goodput, abs=1e-6
        )
    _tables_made_and_checked(small, script, whole=not studies)
    found = script.small_rows(small.out)
    expected = pd.read_csv(script.DOCS / script.FOLDER / script.SMALL, keep_default_na=False, na_values=[""])
    found, expected = (frame[frame["study"].isin(set(rows["study"]))] for frame in (found, expected))
    assert found[script.WHERE].values.tolist() == expected[script.WHERE].values.tolist()
    for name in script.FIGURES:
        numbers = pytest.approx(expected[name].tolist(), rel=1e-9, abs=1e-6, nan_ok=True)
        assert found[name].tolist() == numbers, name


def _tables_made_and_checked(small, script, whole):
    docs = small.folder / "docs"
    docs.mkdir()
    page = docs / script.PAGES[0]
    page.write_text("".join(f"<!-- table {name} -->\n<!-- end -->\n" for name in script.TABLES))
    with pictures_undrawn():
        assert script.main([str(small.out), str(small.out), "--docs", str(docs)]) == 0
    assert script.main(["--check", "--docs", str(docs)]) == 0
    assert all("No runs." not in text for text in script.tables_of(docs).values()) or not whole
    text = page.read_text()
    digit = text.index("9", text.index("<!-- table prepare -->"))
    page.write_text(f"{text[:digit]}8{text[digit + 1 :]}")
    assert script.main(["--check", "--docs", str(docs)]) == 1


@TABLES
def test_the_page_has_the_tables(script, capsys):
    assert script.main(["--check"]) == 0, capsys.readouterr().out


@TABLES
def test_differences_are_shown_with_their_errors(script):
    rows = [
        ("costs", "C = 0 s", "goodput_percent", "DP", "LWW", 4.04, 0.42, "% points", "yes", "dp-lww"),
        ("costs", "C = 60 s", "goodput_percent", "DP", "LWW", -0.6, float("nan"), "% points", "open", "dp-lww"),
        ("costs", "", "goodput_percent", "DP", "subset sum", 0.6, 0.2, "% points", "", "free"),
        ("ranges", "range 0.2", "goodput_percent", "DP", "LWW", 9.0, 1.0, "% points", "yes", "dp-lww"),
    ]
    names = ["study", "point", "measure", "first", "second", "number", "standard_error", "unit", "verdict", "claim"]
    table = script.paired_table(pd.DataFrame(rows, columns=names), "costs")
    assert table.splitlines()[0] == "| DP has more | C = 0 s | C = 60 s |"
    assert table.splitlines()[2:] == ["| than LWW | **+4.0 ± 0.4** | −0.6 |"]


@pytest.mark.parametrize("script", ["checkpoint_jobs"], indirect=True)
def test_the_traces_are_those_of_the_script(script, tmp_path):
    assert script.main([str(tmp_path)]) == 0
    made = sorted(tmp_path.iterdir())
    assert len(made) == 8
    for path in made:
        assert path.read_text() == (PERIODS / path.name).read_text(), path.name
    # 1.3 times 0.7 of 32 machines for two days, in jobs of 2 h
    assert len(script.single(2.0)) == round(1.3 * 0.7 * 32 * 48 / 2.0)


def test_the_experiments_declare_what_they_say(small):
    """Rows and different runs of the README; the part and the small have the studies of the whole."""
    text = (EXPERIMENTS / "README.md").read_text()
    whole = read_declared(EXPERIMENTS / "checkpoint.yaml", Campaign)
    for name in ("checkpoint", "checkpoint-part", "checkpoint-small"):
        assert list(read_declared(EXPERIMENTS / f"{name}.yaml", Campaign).studies) == list(whole.studies)
        found = campaign_in(EXPERIMENTS / f"{name}.yaml", small.results)
        assert not found.missing
        told = f"{len(found.cells):,} rows, {len({cell.key for cell in found.cells}):,} of them different"
        assert told in next(line for line in text.splitlines() if line.startswith(f"| `{name}.yaml`"))
