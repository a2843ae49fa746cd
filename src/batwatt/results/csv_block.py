"""Format many rows of CSV at once, as columns of characters side by side; zeros are left out."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from batwatt.model.record import RowColumns
from batwatt.results.columns import Column

if TYPE_CHECKING:
    import pandas as pd

Floats = NDArray[np.float64]
Characters = NDArray[np.uint8]
"""A row of ASCII or UTF-8 characters for each row of the file, padded with 0."""

MOST = 2.0**53 / 1e6
"""Below this a double holds the number of millionths of a number."""
DECIMALS = 6
MISSING = {"fixed": "", "na": "NA"}
"""Text of a missing value, by form."""
_SPECIAL = re.compile('[",\r\n]')
_FORMULA = re.compile("^'*[-=+@\t\r]", re.MULTILINE)
_NUMBER = re.compile(r"[-+]?[0-9]+(\.[0-9]*)?([eE][-+]?[0-9]+)?")
WIDEST = 2000
"""Characters of a row in a block."""


def block_of(columns: Sequence[Column], cells: RowColumns, rows: slice) -> bytes | None:
    """Format some rows of a file; return None if they hold a very long text, a NUL, or a very large number."""
    parts: list[Characters] = []
    for column in columns:
        characters = _column(column.form, cells[column.name][rows])
        if characters is None:
            return None
        parts += [characters, np.full((len(characters), 1), ord(","), dtype=np.uint8)]
    parts[-1][:] = ord("\n")
    if sum(part.shape[1] for part in parts) > WIDEST:
        return None
    block = np.concatenate(parts, axis=1)
    return block[block != 0].tobytes()


def _column(form: str, cells: Any) -> Characters | None:
    if form in MISSING:
        return _fixed(cells, MISSING[form])
    if form == "int":
        return _digits(np.abs(cells), cells < 0)
    if form == "short":
        cells = [f"{value:g}" for value in cells.tolist()]
    if form in TEXTS:
        cells = TEXTS[form](cells)
    characters = _texts(cells)
    if form == "quoted" and characters is not None:
        quotes = np.full((len(characters), 1), ord('"'), dtype=np.uint8)
        return np.concatenate((quotes, characters, quotes), axis=1)
    return characters


def without_formulas(texts: list[str]) -> list[str]:
    """Return texts with ' before those that a spreadsheet would run as formulas: from =, +, -, @, but no numbers."""
    if not _FORMULA.search("\n".join(texts)):
        return texts
    # ' before such a ', too, so that `formulas` restores each text
    return [f"'{text}" if _FORMULA.match(text) and not _NUMBER.fullmatch(text) else text for text in texts]


def formulas(texts: pd.Series[str]) -> pd.Series[str]:
    """Return the texts of `without_formulas` as they were."""
    marked = texts.str.startswith("'")
    return texts.str.replace("^'(?='*[-=+@\t\r])", "", regex=True) if marked.any() else texts


def without_formulas_in(frame: pd.DataFrame) -> pd.DataFrame:
    """Return a table whose texts no spreadsheet runs as formulas."""
    return frame.map(lambda cell: without_formulas([cell])[0] if isinstance(cell, str) else cell)


def escaped(texts: list[str]) -> list[str]:
    """Return texts as cells of CSV, no formulas: quoted where a reader needs it, with quotation marks doubled."""
    texts = without_formulas(texts)
    if not _SPECIAL.search("".join(texts)):
        return texts
    return ['"{}"'.format(text.replace('"', '""')) if _SPECIAL.search(text) else text for text in texts]


TEXTS = {"text": escaped, "quoted": without_formulas}
"""Form of a text -> function that returns such texts as cells."""


def _texts(texts: list[str]) -> Characters | None:
    together = "".join(texts)
    if "\0" in together or max(map(len, texts)) > WIDEST:
        return None
    octets = np.array(texts if together.isascii() else [text.encode() for text in texts], dtype=np.bytes_)
    return octets.view(np.uint8).reshape(len(texts), -1)


def _fixed(values: Floats, missing: str) -> Characters | None:
    lacking = np.isnan(values)
    filled = np.where(lacking, 0.0, values)
    if not (np.abs(filled) < MOST).all():
        return None
    characters = _digits(np.abs(millionths(filled)).astype(np.int64), np.signbit(values), DECIMALS)
    if lacking.any():
        characters[lacking] = 0
        characters[lacking, : len(missing)] = np.frombuffer(missing.encode(), dtype=np.uint8)
    return characters


def _digits(numbers: NDArray[np.int64], negative: NDArray[np.bool_], decimals: int = 0) -> Characters:
    """Format whole numbers >= 0 with their signs, and a point before the last `decimals` digits."""
    before = max(1, len(str(numbers.max())) - decimals)
    characters = np.zeros((len(numbers), 1 + before + bool(decimals) + decimals), dtype=np.uint8)
    characters[negative, 0] = ord("-")
    rest = numbers
    for place in range(characters.shape[1] - 1, 0, -1):
        if decimals and place == before + 1:
            characters[:, place] = ord(".")
            continue
        tenth = rest // 10
        characters[:, place] = rest - tenth * 10 + ord("0")
        rest = tenth
    for place in range(1, before):
        characters[numbers < 10 ** (decimals + before - place), place] = 0
    return characters


def as_read(values: Floats) -> Floats:
    """Return numbers as read back after printing with `%.6f`; NaN remains."""
    rounded: Floats = millionths(values) / 1e6
    for row in np.flatnonzero(np.abs(values) >= MOST).tolist():
        rounded[row] = float(f"{values[row]:.6f}")
    return rounded


def millionths(values: Floats) -> Floats:
    """Return the millionths that `%.6f` prints of each number below `MOST`, ties to even."""
    scaled = values * 1e6
    whole = np.rint(scaled)
    # at an apparent tie the rounding error of the product decides (Dekker's product, 1e6 has few bits)
    big = values * 134217729.0
    high = big - (big - values)
    error = (high * 1e6 - scaled) + (values - high) * 1e6
    rest = scaled - whole
    beyond = (np.abs(rest) == 0.5) & (rest * error > 0.0)
    whole[beyond] += np.sign(rest[beyond])
    return whole
