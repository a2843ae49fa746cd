"""How figures look, whoever draws them: units of the axes, fonts, colours; and how they are written."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from batwatt.errors import InputError
from batwatt.files import whole_file

HOUR_S = 3600.0
KW = 1e3

POWER = "#4a7fb5"
CAP = "#22303c"
VIOLATION = "#d1242f"
INK = "#3d4852"
FRAME = "#9aa5b1"
GRID = "#e3e7eb"

WIDTH_IN, WIDE_IN = 7.2, 9.0
DPI = 200

PALETTE = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#8c8c8c", "#000000")
"""Colours that the colour-blind can tell apart: M. Okabe and K. Ito, Color Universal Design, 2008; grey in place
of yellow, which is too pale on white."""
WORST, BEST = "#ffffff", "#56b4e9"
"""Ends of a scale for cells with dark text: one hue, so that it reads the same with and without colour blindness."""
MARKERS = (("o", "circle"), ("s", "square"), ("^", "triangle-up"), ("D", "diamond"), ("v", "triangle-down"),
           ("P", "cross"), ("X", "x"), ("*", "star"))  # fmt: skip
"""Shape of a point, for matplotlib and for plotly."""
DASHES = (("-", "solid"), ("--", "dash"), (":", "dot"), ("-.", "dashdot"), ((0, (8, 3)), "longdash"))
HATCHES = (("", ""), ("///", "/"), ("...", "."), ("xxx", "x"), ("\\\\\\", "\\"), ("---", "-"), ("|||", "|"),
           ("+++", "+"))  # fmt: skip

_STYLE: dict[Any, Any] = {
    "font.family": "DejaVu Sans",
    "font.size": 8.0,
    "axes.edgecolor": FRAME,
    "axes.linewidth": 0.6,
    "axes.labelcolor": INK,
    "xtick.color": FRAME,
    "ytick.color": FRAME,
    "xtick.labelcolor": INK,
    "ytick.labelcolor": INK,
    "text.color": INK,
    "text.parse_math": False,
    "hatch.linewidth": 0.5,
    "svg.hashsalt": "batwatt",
    "svg.fonttype": "path",
    "pdf.fonttype": 42,
}
_METADATA: dict[str, dict[str, str | None]] = {
    "png": {"Software": None},
    "svg": {"Date": None, "Creator": None},
    "pdf": {"CreationDate": None, "Creator": None, "Producer": None},
}
"""Formats by suffix, with what to leave out so that equal runs give equal bytes."""


class Turned:
    """The shapes, dashes and hatchings that a number `turn` picks."""

    turn: int

    @property
    def marker(self) -> tuple[str, str]:
        """Shape of its points, for matplotlib and for plotly."""
        return MARKERS[self.turn % len(MARKERS)]

    @property
    def dash(self) -> tuple[Any, str]:
        """Dashes of its lines, for matplotlib and for plotly."""
        return DASHES[self.turn % len(DASHES)]

    @property
    def hatch(self) -> tuple[str, str]:
        """Hatching of its areas, for matplotlib and for plotly."""
        return HATCHES[self.turn % len(HATCHES)]


@dataclass(frozen=True)
class Look(Turned):
    """How one of several things looks; each differs from the others in more than its colour."""

    number: int

    @property
    def colour(self) -> str:
        """A colour of `PALETTE`."""
        return PALETTE[self.number % len(PALETTE)]

    @property
    def turn(self) -> int:  # type: ignore[override]  # a field elsewhere
        """Number of its shape, dashes and hatching."""
        # one further each time that the colours begin anew, so that no two things share both
        return self.number % len(PALETTE) + self.number // len(PALETTE)


@contextmanager
def drawing() -> Iterator[None]:
    """Within, figures that are made or written look like ours."""
    with rc_context(_STYLE):
        yield


def kind_of(path: Path) -> str:
    """The format that the suffix of a figure's path names. Raises InputError."""
    kind = path.suffix.lower().removeprefix(".")
    if kind not in _METADATA:
        raise InputError(path, "is not a kind of figure", f"end its name with one of {', '.join(_METADATA)}")
    return kind


def new_figure(width_in: float, height_in: float) -> Figure:
    """An empty figure of that size in inches."""
    figure = Figure(figsize=(width_in, height_in), facecolor="white")
    FigureCanvasAgg(figure)
    return figure


def plain(axes: Axes) -> None:
    """A grid behind the data, no box around it."""
    axes.grid(color=GRID, linewidth=0.6, zorder=0)
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)
    axes.tick_params(length=2.5, width=0.6)


def save(figure: Figure, path: Path) -> Path:
    """Write a figure, whole or not at all, in the format of the suffix; returns the path. Raises InputError."""
    kind = kind_of(path)
    with whole_file(path, "wb") as out:
        figure.savefig(out, format=kind, dpi=DPI, metadata=_METADATA[kind])
    return path
