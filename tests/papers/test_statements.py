"""Lists of the statements of each document: whole rows, in the document's order, with words that are in it."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
DOCUMENTS = ROOT.parent / "shared" / "papers"
TEXTS = {
    "igsc22": "004_1460d17fadc48bf2.txt",
    "pmbs23": "000_6d71b48ca107ed3c.txt",
    "varcap": "001_4ccdd876b36b4a08.txt",
    "checkpoint": "002_b4b08a458a594f99.txt",
    "carbon": "003_220c27ec6942307a.txt",
}
COLUMNS = ["where", "page", "statement", "quote", "quantity", "unit", "neutral", "low", "high", "note"]


def rows_of(paper: str) -> list[dict[str, str]]:
    with (ROOT / "papers" / paper / "statements.csv").open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


@pytest.mark.parametrize("paper", TEXTS)
def test_rows_are_whole(paper):
    rows = rows_of(paper)
    assert all(list(row) == COLUMNS and None not in row.values() for row in rows)
    assert all(row["where"] and row["statement"] and row["quote"] and (row["quantity"] or row["note"]) for row in rows)
    assert len({row["statement"] for row in rows}) == len(rows)
    for row in rows:
        neutral, low, high = (float(row[name]) if row[name] else None for name in ("neutral", "low", "high"))
        assert low is None or high is None or low <= high, row
        assert neutral is not None or low is not None or high is not None or row["note"], row


@pytest.mark.parametrize("paper", TEXTS)
def test_words_are_those_of_the_document(paper):
    path = DOCUMENTS / TEXTS[paper]
    if not path.is_file():
        pytest.skip(f"{path.name} is not there")
    text = path.read_text(encoding="utf-8")
    assert [row["quote"] for row in rows_of(paper) if row["quote"] not in text] == []
