"""The tables of docs/pmbs23.md are those of the committed files, and a small campaign run afresh gives its numbers."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import pandas as pd
import pytest

from batwatt.campaign.campaign import Backend, campaign_in, carry_out

ROOT = Path(__file__).resolve().parents[1]
DOCS = ROOT / "docs"
SMALL = ROOT / "experiments" / "pmbs23-small.yaml"

sys.path.append(str(ROOT / "experiments"))
import pmbs23_tables as tables  # noqa: E402 (scripts are found by their folder)


def test_the_page_has_the_tables(capsys):
    assert tables.main(["--check"]) == 0, capsys.readouterr().out


def test_another_number_on_the_page_is_found(tmp_path, capsys):
    shutil.copytree(DOCS / "pmbs23", tmp_path / "pmbs23")
    text = (DOCS / "pmbs23.md").read_text(encoding="utf-8")
    begin = text.index("<!-- table means-mean -->")
    digit = next(i for i in range(begin, len(text)) if text[i] == "9")
    (tmp_path / "pmbs23.md").write_text(f"{text[:digit]}8{text[digit + 1 :]}", encoding="utf-8")
    assert tables.main(["--check", "--docs", str(tmp_path)]) == 1
    assert "DIFFERENT: means-mean" in capsys.readouterr().out


def test_the_small_campaign_gives_the_committed_numbers(tmp_path):
    declared = campaign_in(SMALL, tmp_path / "results")
    carry_out(declared, Backend(jobs=2), None, lambda *_: None)
    found = tables.rows_of(tmp_path / "results" / "pmbs23-small")
    expected = pd.read_csv(DOCS / "pmbs23" / tables.SMALL, keep_default_na=False)
    assert found[tables.WHERE].values.tolist() == expected[tables.WHERE].values.tolist()
    for name in tables.FIGURES:
        assert found[name].tolist() == pytest.approx(expected[name].tolist(), rel=1e-9, abs=1e-6), name
