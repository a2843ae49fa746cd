"""Style of all charts: units of the axes, fonts, colours, and output files."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from matplotlib import rc_context
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure as Picture

from batwatt.errors import InputError
from batwatt.files import whole_file
from batwatt.units import HOUR_S as HOUR_S

KW = 1e3

POWER = "#4a7fb5"
CAP = "#22303c"
VIOLATION = "#d1242f"
INK = "#3d4852"
FRAME = "#9aa5b1"
GRID = "#e3e7eb"
UNUSED = "#8c8c8c"

WIDTH_IN, WIDE_IN = 7.2, 9.0
DPI = 200

PALETTE = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#8c8c8c", "#000000")
"""Colours distinct for the colour-blind: M. Okabe and K. Ito, Color Universal Design, 2008; grey in place of yellow,
which is too pale on white."""
MARKERS = "os^DvPX*"
"""Shapes of points."""
DASHES: tuple[Any, ...] = ("-", (0, (6, 4)), (0, (2, 3)), (0, (6, 3, 2, 3)), (0, (11, 4)))
"""Dashes of lines."""
HATCHES = ("", "//", "\\\\", "xx", "||", "--", "++", "/")
"""Hatching of areas."""

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
"""Formats by suffix, with the metadata to leave out so that equal runs give equal bytes."""


@dataclass(frozen=True)
class Look:
    """Style of one of several series in a chart; series differ in more than their colour."""

    number: int

    @property
    def colour(self) -> str:
        """A colour of `PALETTE`."""
        return PALETTE[self.number % len(PALETTE)]

    @property
    def marker(self) -> str:
        """Shape of the points."""
        return MARKERS[self._turn % len(MARKERS)]

    @property
    def dash(self) -> Any:
        """Dashes of the lines."""
        return DASHES[self._turn % len(DASHES)]

    @property
    def hatch(self) -> str:
        """Hatching of the areas."""
        return HATCHES[self._turn % len(HATCHES)]

    @property
    def _turn(self) -> int:
        # one further each time that the colours repeat, so that no two series share both
        return self.number % len(PALETTE) + self.number // len(PALETTE)


@contextmanager
def drawing() -> Iterator[None]:
    """Apply the style to charts made or written within this context."""
    with rc_context(_STYLE):
        yield


def kind_of(path: Path) -> str:
    """Return the format of a chart by the suffix of its path. Raises InputError."""
    kind = path.suffix.lower().removeprefix(".")
    if kind not in _METADATA:
        raise InputError(path, "is not a kind of figure", f"end its name with one of {', '.join(_METADATA)}")
    return kind


def draw(path: Path | str, figure: Callable[[], Picture]) -> Path:
    """Write the chart that a function makes, in the format of the suffix; return the path. Raises InputError.

    The suffix is checked before anything is drawn.
    """
    kind_of(Path(path))
    with drawing():
        return save(figure(), Path(path))


def new_figure(width_in: float, height_in: float) -> Picture:
    """Return an empty chart of a size in inches."""
    figure = Picture(figsize=(width_in, height_in), facecolor="white")
    FigureCanvasAgg(figure)
    return figure


def panels_of(
    width_in: float, height_in: float, down: int, across: int, *, margins_in: tuple[float, float], left: float,
    right: float, wspace: float | None = None, hspace: float | None = None, **settings: Any,
) -> tuple[Picture, Any]:  # fmt: skip
    """Return a chart with a grid of panels; `margins_in` are above and below them, `left` and `right` shares."""
    figure = new_figure(width_in, height_in)
    grid = figure.subplots(down, across, squeeze=False, **settings)
    above, below = (margin_in / height_in for margin_in in margins_in)
    figure.subplots_adjust(left=left, right=right, top=1.0 - above, bottom=below, wspace=wspace, hspace=hspace)
    return figure, grid


def headline(figure: Picture, text: str, below_in: float, x: float = 0.012, size: float = 9.5) -> None:
    """Write the title of a chart, `below_in` inches below its upper edge."""
    y = 1.0 - below_in / figure.get_size_inches()[1]
    figure.suptitle(text, x=x, y=y, ha="left", va="top", fontsize=size, fontweight="bold")


def legend(
    figure: Picture, handles: Sequence[Artist], x: float, below_in: float = 0.02, columns: int = 0, **look: Any
) -> None:
    """Draw a legend `below_in` inches below the upper edge, that ends at `x` > 0.5 or else begins at `x`."""
    look = {"frameon": False, "handlelength": 1.6, "columnspacing": 1.6, "ncols": columns or len(handles)} | look
    place = (x, 1.0 - below_in / figure.get_size_inches()[1])
    figure.legend(handles=handles, loc="upper right" if x > 0.5 else "upper left", bbox_to_anchor=place, **look)


def panel_title(axes: Axes, text: str, pad: float = 4.0) -> None:
    """Write the title of a panel."""
    axes.set_title(text, loc="left", fontsize=8.5, fontweight="bold", pad=pad)


def box_corners(left: float, right: float, low: float, high: float) -> list[tuple[float, float]]:
    """Return the corners of a box."""
    return [(left, low), (right, low), (right, high), (left, high)]


def plain(axes: Axes) -> None:
    """Draw a grid behind the data, and no box around it."""
    axes.grid(color=GRID, linewidth=0.6, zorder=0)
    axes.set_axisbelow(True)
    unboxed(axes)


def unboxed(axes: Axes) -> None:
    """Remove the box around the data."""
    axes.spines[["top", "right"]].set_visible(False)
    axes.tick_params(length=2.5, width=0.6)


def save(figure: Picture, path: Path) -> Path:
    """Write a chart atomically, in the format of the suffix; return the path. Raises InputError."""
    kind = kind_of(path)
    with whole_file(path, "wb") as out:
        write(figure, out, kind)
    return path


def write(figure: Picture, out: Any, kind: str, **settings: Any) -> None:
    """Write a chart to an open file; equal charts give equal bytes."""
    figure.savefig(out, format=kind, dpi=DPI, metadata=_METADATA[kind], **settings)
