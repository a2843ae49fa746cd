"""Tables between marks on a page, and the script that fills or checks them."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest

from batwatt.studies.store import COPY, TABLE
from papers import __main__ as papers
from papers import pages

TEXT = "# Title\n\n<!-- table a -->\n{}<!-- end -->\n\nafter\n"


@pytest.fixture
def page(tmp_path):
    path = tmp_path / "paper" / "README.md"
    path.parent.mkdir()
    path.write_text(TEXT.format(""))
    return path


def test_numbers():
    assert [pages.number(-1.25, 1), pages.number(0.04, 1, True), pages.number(2, 1, True)] == ["−1.2", "0.0", "+2.0"]
    assert pages.number(float("nan"), 2) == pages.number(None, 2) == "–"


def test_a_page_is_filled_then_checked(page, capsys):
    table = pages.markdown(["name", "n"], [["x", "1"]])
    made = []
    run = [page, lambda: {"a": table}, lambda results: made.append(results), ("study",)]
    assert pages.main(*run, ["--check"]) == 1 and pages.main(*run, ["results"]) == 0
    assert page.read_text() == TEXT.format("\n| name | n |\n| :-- | --: |\n| x | 1 |\n\n") and made == [Path("results")]
    assert pages.main(*run, ["--check"]) == 0
    assert capsys.readouterr().out == "paper: DIFFERENT: a\npaper: new a\npaper: same\n"


def test_a_page_must_have_every_table(page):
    with pytest.raises(ValueError, match="expected \\['a', 'b'\\]"):
        pages.fill(page, {"a": "", "b": ""})


def test_numbers_stay_without_all_runs(page, tmp_path, capsys):
    """A study from which a comparison was left out changes neither the numbers nor the page."""
    results = tmp_path / "results"
    results.mkdir()
    (results / COPY).write_text("name: x\ncomparisons: {a: {}, b: {}}\n")
    made = []
    run = [page, lambda: {"a": ""}, made.append, ("study",), [str(results)]]
    assert pages.main(*run) == 0
    pd.DataFrame({"comparison": ["b", "b"]}).to_parquet(results / TABLE)
    assert pages.main(*run) == 0 and made == []
    line = f"paper: numbers and page stay as they are, as runs are missing in {results}: "
    assert capsys.readouterr().out == f"{line}a, b\n{line}a\n"
    pd.DataFrame({"comparison": ["b", "a"]}).to_parquet(results / TABLE)
    assert pages.main(*run) == 0 and made == [results]


def test_the_list_of_papers_has_the_counts_of_the_pages():
    assert pages.fill(papers.PAGE, papers.tables(), check=True) == []
