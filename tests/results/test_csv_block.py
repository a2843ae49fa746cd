"""Blocks of CSV against Python's own formats, and numbers of a record against a reader of the file."""

from __future__ import annotations

import csv
import io
import math

import numpy as np
import pandas as pd
import pytest
from examples import examples
from hypothesis import given
from hypothesis import strategies as st

from batwatt.results.columns import Column
from batwatt.results.csv_block import MOST, as_read, block_of
from batwatt.results.writers import write_columns, write_rows

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
        st.one_of(st.none(), numbers), st.integers(-(10**6), 10**6), st.text('aä,0"\n\r ', max_size=5),
        st.one_of(st.none(), numbers), st.sampled_from(["", "x y", "checkpointed"]), st.floats(0.0, 1e7),
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


def test_ties_go_to_the_even_decimal_and_almost_ties_do_not():
    # 0.5 / 2**k are ties in binary, 5e-7 is a little less than one and 1.5e-6 a little more
    found = as_read(np.array([0.0000005, 0.0000015, 1 / 2**7, 3 / 2**7, math.nan]))
    assert found[:4].tolist() == [float(f"{value:.6f}") for value in (5e-7, 1.5e-6, 1 / 2**7, 3 / 2**7)]
    assert math.isnan(found[4])


@examples(300)
@given(rows_of)
def test_columns_are_written_as_rows_are(tmp_path_factory, rows):
    folder = tmp_path_factory.mktemp("x")
    write_rows(folder / "rows.csv", COLUMNS, rows)
    write_columns(folder / "columns.csv", COLUMNS, columns_of(rows))
    assert (folder / "columns.csv").read_bytes() == (folder / "rows.csv").read_bytes()


@examples(200)
@given(rows_of)
def test_texts_are_read_back_as_they_were(tmp_path_factory, rows):
    path = tmp_path_factory.mktemp("x") / "rows.csv"
    write_columns(path, COLUMNS, columns_of(rows))
    with path.open(newline="", encoding="utf-8") as stream:
        assert [cells[2] for cells in list(csv.reader(stream))[1:]] == [row[2] for row in rows]
    frame = pd.read_csv(path, dtype=str, keep_default_na=False, index_col=False)
    assert frame["c"].tolist() == [row[2] for row in rows]


def test_ordinary_texts_have_no_marks(tmp_path):
    write_rows(tmp_path / "x.csv", COLUMNS, [(None, 1, "w0!0-3 5's; x", None, "", 0.5)])
    assert (tmp_path / "x.csv").read_text() == """a,b,c,d,e,f\n,1,w0!0-3 5's; x,NA,"",0.5\n"""


@pytest.mark.parametrize("text,number", [("a\0b", 1.0), ("a" * 3000, 1.0), ("a", 1e10), ("a", math.inf)])
def test_what_has_no_place_in_a_block_is_written_all_the_same(tmp_path, text, number):
    rows = [(number, 1, text, None, "", 0.5)]
    assert block_of(COLUMNS, columns_of(rows), slice(0, 1)) is None
    write_rows(tmp_path / "rows.csv", COLUMNS, rows)
    write_columns(tmp_path / "columns.csv", COLUMNS, columns_of(rows))
    assert (tmp_path / "columns.csv").read_bytes() == (tmp_path / "rows.csv").read_bytes()
