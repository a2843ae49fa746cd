"""Many rows of CSV at once: columns of characters side by side, of which those that are no character are left out."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from batwatt.model.record import RowColumns
from batwatt.results.columns import Column

Floats = NDArray[np.float64]
Characters = NDArray[np.uint8]
"""A row of ASCII or UTF-8 characters for each row of the file, 0 where there is none."""

MOST = 2.0**53 / 1e6
"""Below this a double holds the number of millionths of a number."""
DECIMALS = 6
MISSING = {"fixed": "", "na": "NA"}
"""What stands for None."""
_SPECIAL = re.compile('[",\r\n]')
WIDEST = 2000
"""Characters of a row in a block."""


def block_of(columns: Sequence[Column], cells: RowColumns, rows: slice) -> bytes | None:
    """Some rows of a file; None if they hold what has no place here: a very long text, a NUL, a very large number."""
    parts: list[Characters] = []
    for column in columns:
        found = _column(column.form, cells[column.name][rows])
        if found is None:
            return None
        parts += [found, np.full((len(found), 1), ord(","), dtype=np.uint8)]
    parts[-1][:] = ord("\n")
    if sum(part.shape[1] for part in parts) > WIDEST:
        return None
    characters = np.concatenate(parts, axis=1)
    return characters[characters != 0].tobytes()


def _column(form: str, cells: Any) -> Characters | None:
    if form in MISSING:
        return _fixed(cells, MISSING[form])
    if form == "int":
        return _digits(np.abs(cells), cells < 0)
    if form == "short":
        cells = [f"{value:g}" for value in cells.tolist()]
    found = _texts(escaped(cells) if form == "text" else cells)
    if form == "quoted" and found is not None:
        quotes = np.full((len(found), 1), ord('"'), dtype=np.uint8)
        return np.concatenate((quotes, found, quotes), axis=1)
    return found


def escaped(texts: list[str]) -> list[str]:
    """The texts as cells of CSV: between quotation marks, which are doubled within, where a reader needs them."""
    if not _SPECIAL.search("".join(texts)):
        return texts
    return ['"{}"'.format(text.replace('"', '""')) if _SPECIAL.search(text) else text for text in texts]


def _texts(texts: list[str]) -> Characters | None:
    together = "".join(texts)
    if "\0" in together or max(map(len, texts)) > WIDEST:
        return None
    octets = np.array(texts if together.isascii() else [text.encode() for text in texts], dtype=np.bytes_)
    return octets.view(np.uint8).reshape(len(texts), -1)


def _fixed(values: Floats, missing: str) -> Characters | None:
    lacking = np.isnan(values)
    known = np.where(lacking, 0.0, values)
    if not (np.abs(known) < MOST).all():
        return None
    found = _digits(np.abs(millionths(known)).astype(np.int64), np.signbit(values), DECIMALS)
    if lacking.any():
        found[lacking] = 0
        found[lacking, : len(missing)] = np.frombuffer(missing.encode(), dtype=np.uint8)
    return found


def _digits(numbers: NDArray[np.int64], negative: NDArray[np.bool_], decimals: int = 0) -> Characters:
    """Whole numbers >= 0 with their signs, and a point before the last `decimals` digits."""
    before = max(1, len(str(numbers.max())) - decimals)
    found = np.zeros((len(numbers), 1 + before + bool(decimals) + decimals), dtype=np.uint8)
    found[negative, 0] = ord("-")
    rest = numbers
    for place in range(found.shape[1] - 1, 0, -1):
        if decimals and place == before + 1:
            found[:, place] = ord(".")
            continue
        tenth = rest // 10
        found[:, place] = rest - tenth * 10 + ord("0")
        rest = tenth
    for place in range(1, before):
        found[numbers < 10 ** (decimals + before - place), place] = 0
    return found


def as_read(values: Floats) -> Floats:
    """The numbers that a reader finds where `%.6f` has printed these; NaN remains."""
    found: Floats = millionths(values) / 1e6
    for row in np.flatnonzero(np.abs(values) >= MOST).tolist():
        found[row] = float(f"{values[row]:.6f}")
    return found


def millionths(values: Floats) -> Floats:
    """The whole number of millionths that `%.6f` prints of each number below `MOST`, a tie to the even one."""
    scaled = values * 1e6
    whole = np.rint(scaled)
    # the product was rounded; by how much decides where it seems to be a tie (Dekker's product, 1e6 has few bits)
    big = values * 134217729.0
    high = big - (big - values)
    error = (high * 1e6 - scaled) + (values - high) * 1e6
    rest = scaled - whole
    beyond = (np.abs(rest) == 0.5) & (rest * error > 0.0)
    whole[beyond] += np.sign(rest[beyond])
    return whole
