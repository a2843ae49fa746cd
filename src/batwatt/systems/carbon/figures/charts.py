"""Figures of what shifting saves: by the length of jobs, and over deadlines and lengths."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.colors import LinearSegmentedColormap, Normalize
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, PercentFormatter

from batwatt.errors import InputError, UnknownNameError
from batwatt.results import style

CLASSES_S = (2.0 * style.HOUR_S, 12.0 * style.HOUR_S)
"""Where the next class of lengths begins: GAIA's short jobs, and two classes of long ones."""
CDF_IN = 3.2
CELL_IN, PANEL_GAP_IN, ACROSS = 0.46, 0.6, 3
"""Height of a row of a grid, room between panels, and how many panels are next to each other."""
NEEDED = ("length_s", "saved_g", "saved_share", "carbon_base_g")
KG = 1e3
LOSS = "#f2c9a8"
"""The end of the scale for cells that emit more than before."""


def plot_saved_cdf(
    saved: pd.DataFrame, path: Path | str, title: str = "", classes_s: Sequence[float] = CLASSES_S
) -> Path:
    """Draw how the saved carbon is spread over jobs; returns the path (`.png`, `.svg`, `.pdf`). Raises InputError.

    `saved` has a row per job: length_s, carbon_base_g, saved_g, saved_share (as `outcome.saved` gives them). Left: the
    share of all saved carbon, of the carbon before, and of all jobs that is in jobs up to a length. Right: for each
    class of lengths, the share of its jobs that save at most so much.
    """
    style.check_shown(path, saved, "job", "choose at least one job")
    missing = [name for name in NEEDED if name not in saved.columns]
    if missing:
        raise InputError(path, f"the table of savings has no column {missing[0]!r}", "give what each job saves")
    return style.draw(path, lambda: saved_figure(saved, title, classes_s))


def saved_figure(saved: pd.DataFrame, title: str, classes_s: Sequence[float]) -> Figure:
    """Two distributions, both rising from 0 to 100 %."""
    figure, [[left, right]] = style.panels_of(
        style.WIDE_IN, CDF_IN, 1, 2, margins_in=(0.13 * CDF_IN, 0.145 * CDF_IN), left=0.065, right=0.985, wspace=0.2
    )
    _by_length(left, saved)
    _by_class(right, saved, classes_s)
    for axes in (left, right):
        style.plain(axes)
        axes.set_ylim(min(0.0, axes.get_ylim()[0]), max(1.03, axes.get_ylim()[1]))
        axes.yaxis.set_major_formatter(PercentFormatter(1.0))
    style.headline(figure, title or _summary(saved), 0.015 * CDF_IN)
    return figure


def cumulative(saved: pd.DataFrame) -> pd.DataFrame:
    """By length of job: the shares of saved carbon, of the base's carbon and of all jobs up to it; index length_s.

    A share of nothing is NaN.
    """
    sums = saved.assign(jobs=1.0).groupby("length_s")[["saved_g", "carbon_base_g", "jobs"]].sum().cumsum()
    totals = sums.iloc[-1]
    return sums / totals.where(totals > 0.0)


def class_names(classes_s: Sequence[float]) -> list[str]:
    """What the classes of lengths are called: below the first bound, between two, from the last on."""
    bounds = [f"{bound / style.HOUR_S:g}" for bound in classes_s]
    between = [f"{low} to {high} h" for low, high in pairwise(bounds)]
    return [f"below {bounds[0]} h", *between, f"{bounds[-1]} h and more"] if bounds else ["all jobs"]


def plot_grid(
    table: pd.DataFrame, path: Path | str, title: str = "", *, rows: str = "deadline_h", panels: str | None = None
) -> Path:
    """Draw what is saved over deadlines and lengths, a panel for each entry of the column `panels`; returns the path.

    Cells without a row stay empty. Raises InputError if two rows of the table are the same cell.
    """
    columns, value = "length_h", "saved_share"
    style.check_shown(path, table, "cell", "give at least one row")
    for name in (rows, columns, value, *([panels] if panels else [])):
        if name not in table.columns:
            raise UnknownNameError(path, "column", name, table.columns, "The table has one row per cell.")
    keys = [*([panels] if panels else []), rows, columns]
    double = table[table.duplicated(keys)]
    if len(double):
        cell = ", ".join(f"{key} {double.iloc[0][key]}" for key in keys)
        raise InputError(path, f"two values for {cell}", "take the mean of them, or tell them apart by panels")
    parts = {str(key): part for key, part in table.groupby(panels, sort=False)} if panels else {"": table}
    grids = {name: part.pivot(index=rows, columns=columns, values=value) for name, part in parts.items()}
    return style.draw(path, lambda: grid_figure(grids, title, rows, columns))


def grid_figure(grids: dict[str, pd.DataFrame], title: str, rows: str, columns: str) -> Figure:
    """Heat maps on one scale, the value in each cell in %."""
    across = min(ACROSS, len(grids))
    down = -(-len(grids) // across)
    tall_in = CELL_IN * max(len(grid) for grid in grids.values())
    head_in, foot_in = 0.75 if any(grids) else 0.5, 0.75
    height = head_in + foot_in + down * tall_in + (down - 1) * PANEL_GAP_IN
    width = style.WIDTH_IN * {1: 0.55, 2: 0.85}.get(across, 1.0)
    figure, panels = style.panels_of(width, height, down, across, margins_in=(head_in, foot_in), left=0.55 / width,
                               right=1.0 - 0.1 / width, wspace=0.18, hspace=PANEL_GAP_IN / tall_in)  # fmt: skip
    values = np.concatenate([grid.to_numpy(dtype=float).ravel() for grid in grids.values()])
    shades = _shades(values[np.isfinite(values)])
    for axes in panels.ravel()[len(grids) :]:
        axes.set_visible(False)
    for number, (name, grid) in enumerate(grids.items()):
        axes = panels.ravel()[number]
        _grid(axes, grid, shades)
        axes.set_title(name, fontsize=8.0, loc="left", pad=4.0)
        if number % across == 0:
            axes.set_ylabel(_spoken(rows))
        if number + across >= len(grids):
            axes.set_xlabel(_spoken(columns))
    bar = figure.add_axes((0.3, 0.3 / height, 0.4, 0.08 / height))
    figure.colorbar(shades, cax=bar, orientation="horizontal", format=PercentFormatter(1.0))
    bar.tick_params(length=2.0, width=0.4, pad=1.0, labelsize=6.5)
    bar.locator_params(nbins=4)
    style.headline(figure, title or "carbon saved against immediate starts", 0.1, 0.02)
    return figure


def _by_length(axes: Axes, saved: pd.DataFrame) -> None:
    shares = cumulative(saved)
    hours = shares.index.to_numpy(dtype=float) / style.HOUR_S
    looks = {"saved_g": "saved carbon", "carbon_base_g": "carbon before", "jobs": "jobs"}
    for number, (column, word) in enumerate(looks.items()):
        look = style.Look(number)
        axes.step(
            hours, shares[column], where="post", color=look.colour, linestyle=look.dash[0],
            linewidth=1.6 if number == 0 else 1.0, label=word,
        )  # fmt: skip
    if len(hours) > 1 and hours[0] > 0.0 and hours[-1] / hours[0] > 20.0:
        axes.set_xscale("log")
        axes.xaxis.set_major_formatter(FuncFormatter(lambda hour, _: f"{hour:g}"))
    axes.set_xlabel("length of the job (h)")
    axes.set_ylabel("in jobs up to this length")
    axes.legend(loc="best", frameon=False, fontsize=7.5)


def _by_class(axes: Axes, saved: pd.DataFrame, classes_s: Sequence[float]) -> None:
    which = np.digitize(saved["length_s"].to_numpy(dtype=float), classes_s)
    for number, word in enumerate(class_names(classes_s)):
        shares = np.sort(saved["saved_share"].to_numpy(dtype=float)[which == number])
        if len(shares):
            look = style.Look(number)
            up = np.arange(1, len(shares) + 1) / len(shares)
            label = f"{word} ({len(shares)} job{'s' if len(shares) > 1 else ''})"
            axes.step(np.append(shares[0], shares), np.append(0.0, up), where="post", color=look.colour,
                      linestyle=look.dash[0], linewidth=1.3, label=label)  # fmt: skip
    axes.axvline(0.0, color=style.INK, linewidth=0.6, zorder=1)
    axes.xaxis.set_major_formatter(PercentFormatter(1.0))
    axes.set_xlabel("share of its carbon that a job saves")
    axes.set_ylabel("jobs that save at most this")
    axes.legend(loc="best", frameon=False, fontsize=7.5)


def _grid(axes: Axes, grid: pd.DataFrame, shades: ScalarMappable) -> None:
    values = grid.to_numpy(dtype=float)
    axes.imshow(shades.to_rgba(values), aspect="auto")
    for (row, column), value in np.ndenumerate(values):
        text = f"{100.0 * value:.1f}" if np.isfinite(value) else "–"
        axes.text(column, row, text, ha="center", va="center", fontsize=7.5, color=style.CAP)
    axes.set_xticks(range(len(grid.columns)), [f"{each:g}" for each in grid.columns])
    axes.set_yticks(range(len(grid.index)), [f"{each:g}" for each in grid.index])
    style.cell_grid(axes, *values.shape, "white", 1.5)


def _shades(values: np.ndarray) -> ScalarMappable:
    """White where nothing is saved, bluer the more is; another hue where more is emitted."""
    low, high = min(0.0, float(values.min(initial=0.0))), max(float(values.max(initial=0.0)), 1e-9)
    colours = LinearSegmentedColormap.from_list("saved", (style.WORST, style.BEST))
    if low < 0.0:
        middle = -low / (high - low)
        colours = LinearSegmentedColormap.from_list("saved", ((0.0, LOSS), (middle, style.WORST), (1.0, style.BEST)))
    return ScalarMappable(Normalize(low, high), colours.with_extremes(bad="#f4f5f6"))


def _spoken(column: str) -> str:
    """`deadline_h` as `deadline (h)`."""
    name, _, unit = column.rpartition("_")
    return f"{name.replace('_', ' ')} ({unit})" if name else column


def _summary(saved: pd.DataFrame) -> str:
    base, less = saved["carbon_base_g"].sum(), saved["saved_g"].sum()
    share = f" ({100.0 * less / base:.1f} %)" if base > 0.0 else ""
    scale, unit = (KG, "kg") if base >= 10.0 * KG else (1.0, "g")
    return f"{less / scale:.1f} of {base / scale:.1f} {unit} saved{share}"
