"""A table of the report, written as CSV and Markdown and shown on the page."""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, count
from pathlib import Path
from typing import Any

import pandas as pd

from batwatt.files import whole_file, write_text
from batwatt.results.figures import Figure

NOTHING = "–"


@dataclass(frozen=True, slots=True)
class GridColumn:
    """A column: its name in the CSV file, its heading and that of its group; `decimals` is None for texts.

    The CSV file has values as they are, tables show them multiplied by `factor`.
    """

    name: str
    heading: str
    group: str = ""
    meaning: str = ""
    decimals: int | None = None
    factor: float = 1.0

    def text(self, value: object) -> str:
        """How a value is shown; a dash where there is none."""
        if self.decimals is None:
            return str(value)
        number = self.factor * float(value)  # type: ignore[arg-type]  # a column with decimals holds numbers
        if not math.isfinite(number):
            return NOTHING
        shown = f"{number:.{self.decimals}f}"
        return shown.replace("-", "−") if float(shown) else f"{0:.{self.decimals}f}"


@dataclass(frozen=True)
class Table:
    """Rows with a `label`, the algorithm."""

    name: str
    title: str
    columns: tuple[GridColumn, ...]
    frame: pd.DataFrame
    notes: tuple[str, ...] = ()

    def cells(self) -> list[list[str]]:
        """The texts shown, row by row."""
        return [[column.text(value) for column, value in zip(self.columns, row, strict=True)] for row in self._rows()]

    def sort_keys(self) -> list[list[str]]:
        """What the cells are sorted by: numbers with all their digits, texts as they are."""
        return [
            ["" if isinstance(value, float) and not math.isfinite(value) else str(value) for value in row]
            for row in self._rows()
        ]

    def _rows(self) -> Iterator[tuple[Any, ...]]:
        return zip(*(self.frame[column.name].tolist() for column in self.columns), strict=True)

    def markdown(self) -> str:
        """Return the rows and the notes as Markdown."""
        lines = [[": ".join(filter(None, (column.group, column.heading))) for column in self.columns]]
        lines.append([":--" if column.decimals is None else "--:" for column in self.columns])
        lines += self.cells()
        table = "".join(f"| {' | '.join(_escaped(cell) for cell in line)} |\n" for line in lines)
        notes = "".join(f"\n{_escaped(note)}\n" for note in self.notes)
        return f"# {_escaped(self.title)}\n\n{table}{notes}"

    def write(self, folder: Path) -> list[Path]:
        """Write `NAME.csv` and `NAME.md`; returns the paths."""
        path, text = folder / f"{self.name}.csv", folder / f"{self.name}.md"
        write_csv(self.frame[[column.name for column in self.columns]], path)
        return [path, write_text(text, self.markdown())]


def column_of(measure: Figure, name: str, heading: str) -> GridColumn:
    """The column of a measure, in a group of its own."""
    return GridColumn(name, heading, measure.axis, measure.meaning, measure.mean_decimals, measure.factor)


def table_by_label(
    name: str, title: str, columns: Sequence[GridColumn], found: pd.DataFrame, labels: Sequence[str],
    notes: Sequence[str] = (),
) -> Table:  # fmt: skip
    """A table of `found` by label (index), in the order of `labels`."""
    frame = found.reindex([label for label in labels if label in found.index]).rename_axis("label").reset_index()
    return Table(name, title, tuple(columns), frame, tuple(notes))


def write_csv(frame: pd.DataFrame, path: Path) -> Path:
    """Write a frame as CSV, floats with the 6 decimals of all our files; returns the path."""
    with whole_file(path) as out:
        frame.to_csv(out, index=False, float_format="%.6f", lineterminator="\n")
    return path


def written(value: float | str) -> str:
    """A value of a parameter as it is shown."""
    return value if isinstance(value, str) else f"{value:.10g}"


def slug(text: str) -> str:
    """A label or a name as a part of a file name."""
    return re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-") or "run"


def stems_of(names: Iterable[str]) -> dict[str, str]:
    """A part of file names for each name: they may differ in what no file name holds."""
    stems: dict[str, str] = {}
    for name in names:
        stem = slug(name)
        stems[name] = next(
            text for text in chain([stem], (f"{stem}-{n}" for n in count(2))) if text not in stems.values()
        )
    return stems


def sentence(text: str) -> str:
    """A text that begins with a capital."""
    return f"{text[:1].upper()}{text[1:]}"


def listed(names: Sequence[str], most: int | None = None) -> str:
    """Names within a sentence; of more than `most` the first, and how many more."""
    if most is not None and len(names) > most:
        return f"{', '.join(names[: most - 1])} and {len(names) - most + 1} others"
    return " and ".join(filter(None, (", ".join(names[:-1]), *names[-1:])))


def extent(counts: Collection[int]) -> str:
    """The least and the largest number, as in `3 to 5`, or the one that they all are."""
    low, high = min(counts), max(counts)
    return f"{low}" if low == high else f"{low} to {high}"


def _escaped(text: str) -> str:
    """A text that Markdown shows as it is."""
    for character in "\\`*_[]<>|$":
        text = text.replace(character, "\\" + character)
    return text
