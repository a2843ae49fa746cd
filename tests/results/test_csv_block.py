"""Tables on terminals and blocks of CSV."""

from __future__ import annotations

import csv
import io
import math
import re

import numpy as np
import pandas as pd
import pytest
from examples import examples
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from batwatt.results.run_files import (
    MOST,
    Column,
    as_read,
    block_of,
    formulas,
    without_formulas,
    without_formulas_in,
    write_columns,
    write_rows,
)
from batwatt.results.tables import TableColumn, tables

ties = st.integers(-(2**40), 2**40).map(lambda half: half / 2**7)
numbers = st.one_of(
    st.floats(-1e12, 1e12), st.floats(-1.0, 1.0), ties, ties.map(lambda value: value * 1e-6),
    st.integers(0, 10**9).map(lambda tick: (tick + 0.5) / 1e6), st.integers(0, 10**16).map(lambda tick: tick / 1e6),
    st.sampled_from([0.0, -0.0, -1e-9, 5e-7, 1.5e-6, 2.5e-6, MOST, MOST - 1e-6, 1e10, 1e17]),
)  # fmt: skip
COLUMNS = (
    Column("a", "", "fixed", ""),
    Column("b", "", "int", ""),
    Column("c", "", "text", ""),
    Column("d", "", "na", ""),
    Column("e", "", "quoted", ""),
    Column("f", "", "short", ""),
)
rows_of = st.lists(
    st.tuples(
        st.one_of(st.none(), numbers), st.integers(-(10**6), 10**6), st.text('aä,0"\n\r =-+@\t\'', max_size=5),
        st.one_of(st.none(), numbers), st.sampled_from(["", "x y", "=checkpointed"]), st.floats(0.0, 1e7),
    ),
    max_size=9,
)  # fmt: skip


def columns_of(rows):
    cells = dict(zip("abcdef", zip(*rows, strict=True), strict=True)) if rows else dict.fromkeys("abcdef", ())
    kinds = {"a": np.float64, "b": np.int64, "d": np.float64, "f": np.float64}
    # None becomes NaN
    return {name: np.array(cells[name], dtype=kinds[name]) if name in kinds else list(cells[name]) for name in cells}


@examples(400)
@given(st.lists(numbers, min_size=1))
def test_numbers_are_those_that_a_reader_finds(values):
    text = "x\n" + "".join(f"{value:.6f}\n" for value in values)
    wanted = pd.read_csv(io.StringIO(text), dtype=np.float64)["x"].to_numpy()
    assert as_read(np.array(values)).tobytes() == wanted.tobytes()


@examples(300)
@given(rows_of)
def test_columns_are_written_as_rows_are(tmp_path_factory, rows):
    folder = tmp_path_factory.mktemp("x")
    write_rows(folder / "rows.csv", COLUMNS, rows)
    write_columns(folder / "columns.csv", COLUMNS, columns_of(rows))
    assert (folder / "columns.csv").read_bytes() == (folder / "rows.csv").read_bytes()
    # texts are read back as they were, and none is a formula
    with (folder / "columns.csv").open(newline="", encoding="utf-8") as stream:
        cells = [row[2] for row in list(csv.reader(stream))[1:]]
    frame = pd.read_csv(folder / "columns.csv", dtype=str, keep_default_na=False, index_col=False)
    assert frame["c"].tolist() == cells
    assert formulas(pd.Series(cells, dtype=str)).tolist() == [row[2] for row in rows]
    assert not any(cell[:1] in ("=", "@", "\t", "\r") for cell in cells)


@pytest.mark.parametrize(
    "text,cell",
    [
        ("=1+1", "'=1+1"), ("+cmd|' /C calc'!A0", "'+cmd|' /C calc'!A0"), ("@SUM(A1)", "'@SUM(A1)"), ("-cmd", "'-cmd"),
        ("\t=1", "'\t=1"), ("-1", "-1"), ("+1.5e3", "+1.5e3"), ("-1.", "-1."), ("", ""), ("a=1", "a=1"), ("'a", "'a"),
        # a cell that was marked is marked once more, and so is one of another file that looks so
        ("'=1", "''=1"), ("-1-1", "'-1-1"),
    ],
)  # fmt: skip
def test_no_text_is_a_formula_in_a_spreadsheet(text, cell):
    assert without_formulas([text, "x"]) == [cell, "x"]
    assert formulas(pd.Series([cell])).tolist() == [text]
    frame = pd.DataFrame({"id": [text], "count": [-1], "watts": [-0.5]})
    assert without_formulas_in(frame).to_dict("list") == {"id": [cell], "count": [-1], "watts": [-0.5]}


@pytest.mark.parametrize("text,number", [("a\0b", 1.0), ("a" * 3000, 1.0), ("a", 1e10), ("a", math.inf)])
def test_what_has_no_place_in_a_block_is_written_all_the_same(tmp_path, text, number):
    rows = [(number, 1, text, None, "", 0.5)]
    assert block_of(COLUMNS, columns_of(rows), slice(0, 1)) is None
    write_rows(tmp_path / "rows.csv", COLUMNS, rows)
    write_columns(tmp_path / "columns.csv", COLUMNS, columns_of(rows))
    assert (tmp_path / "columns.csv").read_bytes() == (tmp_path / "rows.csv").read_bytes()


LABELS = ["EASY Slowdown HFLD", "a label of forty characters, more or less", "x"]


def figures(count: int) -> list[TableColumn]:
    """Numbers that are found again: 1000, 1001, ... in each column."""
    return [
        TableColumn(f"figure\nno {number}", f"k{number}", [f"{1000 + 3 * number + row}.5" for row in range(3)])
        for number in range(count)
    ]


def printed(columns: list[TableColumn], width: int) -> list[list[str]]:
    """The lines of each table."""
    blocks = []
    for table in tables(columns, width):
        out = io.StringIO()
        Console(file=out, width=width, color_system=None).print(table)
        blocks.append([line for line in out.getvalue().splitlines() if line.strip()])
    return blocks


@pytest.mark.parametrize(("width", "count"), [(20, 1), (20, 14), (40, 5), (57, 14), (80, 14), (120, 5), (200, 14)])
def test_all_is_there_at_any_width(width, count):
    columns = [TableColumn("run", "run", LABELS), *figures(count)]
    blocks = printed(columns, width)
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
