"""Tables on terminals of all widths: no number is cut, and every line is a row with its label."""

from __future__ import annotations

import io
import re

import pytest
from rich.console import Console

from batwatt.results.tables import LABEL, Column, tables

LABELS = ["EASY Slowdown HFLD", "a label of forty characters, more or less", "x"]


def figures(count: int) -> list[Column]:
    """Numbers that are found again: 1000, 1001, ... in each column."""
    return [
        Column(f"figure\nno {number}", f"k{number}", [f"{1000 + 3 * number + row}.5" for row in range(3)])
        for number in range(count)
    ]


def shown(columns: list[Column], width: int) -> list[list[str]]:
    """The lines of each table."""
    found = []
    for table in tables(columns, width):
        out = io.StringIO()
        Console(file=out, width=width, color_system=None).print(table)
        found.append([line for line in out.getvalue().splitlines() if line.strip()])
    return found


@pytest.mark.parametrize("count", [1, 5, 14])
@pytest.mark.parametrize("width", [20, 40, 57, 80, 100, 120, 160, 200])
def test_all_is_there_at_any_width(width, count):
    columns = [Column("run", "run", LABELS), *figures(count)]
    blocks = shown(columns, width)
    numbers = []
    for lines in blocks:
        assert max(map(len, lines)) <= width
        head, body = "".join(lines[:2]), lines[3:]
        assert "run" in head and set(lines[2].strip()) == {"─"}
        # each row begins with its label, which goes on below
        text = "".join(re.sub(r"\d{4}\.5", "", line).strip() for line in body)
        assert text.replace(" ", "") == "".join(LABELS).replace(" ", "")
        numbers += re.findall(r"\b\d{4}\.5", "\n".join(body))
    assert sorted(numbers) == sorted(cell for column in columns[1:] for cell in column.cells)


def test_one_table_where_it_fits():
    columns = [Column("run", "run", LABELS), *figures(5)]
    # columns of 6 characters, blanks between and around
    fits = LABEL + 5 * (1 + 6) + 2
    assert len(shown(columns, fits)) == 1 and len(shown(columns, fits - 1)) == 2
    assert len(shown(columns, fits)[0][3].split()[0]) <= LABEL
    whole = shown(columns, 120)[0]
    assert LABELS[1] in whole[4]


@pytest.mark.parametrize("width", [30, 40, 80, 200])
def test_texts_are_wrapped_next_to_their_names(width):
    text = "words of a description that is longer than most terminals are wide, and goes on below"
    names = ["one", "a-long-name-of-something"]
    [lines] = shown([Column("", "name", names), Column("", "description", [text, text], is_text=True)], width)
    assert max(map(len, lines)) <= width and " ".join(" ".join(lines).split()).count("description") == 2
    assert lines[0].split()[:2] == ["one", "words"]
    if width == 200:
        assert [line.split(None, 1)[1].strip() for line in lines] == [text, text]


def test_no_rows():
    assert len(shown([Column("run", "run", []), *[Column("x", "x", [])]], 40)) == 1
