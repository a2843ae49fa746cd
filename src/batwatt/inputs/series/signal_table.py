"""Files of signals as tables of texts: CSV here, JSON and XML by their readers."""

from __future__ import annotations

import csv
import io
import warnings
from pathlib import Path

import pandas as pd

from batwatt.errors import InputError
from batwatt.inputs.series.series_csv import MORE_FIELDS, row_too_long
from batwatt.inputs.series.signal_json import json_table
from batwatt.inputs.series.signal_times import looks_like_date
from batwatt.inputs.series.signal_xml import xml_table
from batwatt.inputs.workloads.batsim_json import read_text

_HINT = "the first line must name the columns"


def table_of(path: Path) -> pd.DataFrame:
    """All cells as texts, the header as it is; `attrs["units"]`: units that the file states apart from names.

    In CSV columns may be separated by commas, semicolons, tabs or blanks. A column without a name is called
    `column N`. Raises InputError.
    """
    text = read_text(path)
    first = text.lstrip()[:1]
    if first == "<":
        return xml_table(text, path)
    return json_table(text, path) if first in ("{", "[") else _csv_table(text, path)


def _csv_table(text: str, path: Path) -> pd.DataFrame:
    header = next((line for line in text.splitlines() if line.strip()), "")
    separator = next((sign for sign in ",;\t" if sign in header), r"\s+")
    try:
        with warnings.catch_warnings(record=True) as warned:
            warnings.simplefilter("always", pd.errors.ParserWarning)
            frame = pd.read_csv(io.StringIO(text), sep=separator, dtype=str, keep_default_na=False, index_col=False)
        if warned:
            # pandas drops what is beyond the header
            _no_more_fields(text, separator, path)
    except (pd.errors.ParserError, pd.errors.EmptyDataError, ValueError) as error:
        _no_more_fields(text, separator, path)
        raise InputError(path, f"is not CSV ({str(error).strip()})", _HINT) from None
    if frame.empty:
        raise InputError(path, "has no rows below a header", _HINT)
    # pandas renames columns of the same name
    names = next(csv.reader([header], delimiter=separator)) if len(separator) == 1 else header.split()
    if len(names) != len(frame.columns):
        names = list(frame.columns)
    frame.columns = pd.Index([name.strip() or f"column {number}" for number, name in enumerate(names, start=1)])
    firsts = [str(cell) for cell in frame.iloc[:2, 0]]
    if len(firsts) == 2 and looks_like_date(firsts[1]) and firsts[0].strip() and not firsts[0].strip()[0].isdigit():
        cells = ", ".join(str(cell)[:20] for cell in frame.iloc[0, :6])
        raise InputError(f"{path}: line 2", f"is a second line of header: {cells}", "name each column in one line")
    return frame


def _no_more_fields(text: str, separator: str, path: Path) -> None:
    """InputError if a line has more fields than the header."""
    found = row_too_long(text, separator)
    if found is not None:
        raise InputError(f"{path}: line {found[0]}", found[1], MORE_FIELDS)
