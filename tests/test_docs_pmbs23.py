"""The tables of docs/results/pmbs23.md are the committed ones; `campaign/test_campaign_pmbs23.py` checks the runs."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
DOCS = ROOT / "docs" / "results"

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
