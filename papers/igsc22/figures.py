"""Figures 2 to 6 of the powercap paper, from the committed runs.

Axes of a radar are inverted and scaled over what the figure shows, as its caption has it: the best value is at the rim,
the worst one in the middle, and the largest area is best. `power.csv` has the power of two runs of google-288-00 around
a fall of profile 3, in W at each change: `python -m papers.igsc22.figures` runs them.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pandas as pd
from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from batwatt.results import drawing
from batwatt.results.drawing import CAP, FRAME, GRID, INK, POWER, VIOLATION, Look
from batwatt.run.run import run
from batwatt.studies.optimum import run_optimum
from batwatt.studies.study import study_in
from papers.igsc22.frames import KILLS, SLOWDOWN, VIOLATIONS, WORK, Numbers
from papers.igsc22.measures import COMBINATIONS, HFLD, NONE, OPTIMUM, PROFILES, RESPONSES, TABLE2, THIRD
from papers.pages import WORDS

AXES = {VIOLATIONS: "violations", SLOWDOWN: "slowdown", KILLS: "kills"}
"""Axes of the radars, clockwise from above."""
ANGLES = [math.radians(90.0 - 120.0 * turn) for turn in range(len(AXES))]
FALL_S, ZOOM_S = 47_700, (47_670, 47_790)
"""A fall of profile 3, and the part of the two days that Figure 3 shows."""
SHOWN = {OPTIMUM: "best known schedule (the paper: MILP)", HFLD: HFLD}
SIZE = 10.0
"""Size of words in points, to be read on a narrow screen."""


def write_power(path: Path) -> None:
    """Run the algorithms of Figure 3 on google-288-00 under profile 3 and write their power around a fall."""
    columns: dict[str, pd.Series] = {}
    with TemporaryDirectory() as scratch:
        for cell in study_in(path.parents[1] / "study.yaml", Path(scratch)).cells:
            if cell.comparison == "profiles" and cell.envelope and cell.envelope.name == THIRD and cell.case in SHOWN:
                spec = replace(cell.spec, prefix=Path(scratch) / "run")
                (run_optimum if cell.scheduler == "optimum" else run)(spec)
                rows = pd.read_csv(f"{spec.prefix}_power.csv", index_col="time_s")
                rows = rows[~rows.index.duplicated(keep="last")]
                columns |= {cell.case: rows["power_w"], "cap_w": rows["cap_w"]}
    frame = pd.DataFrame(columns).sort_index().ffill()
    begin_s, end_s = ZOOM_S
    inside = frame[(frame.index > begin_s) & (frame.index <= end_s)]
    ends = frame[frame.index <= begin_s].iloc[[-1]].set_axis([begin_s]), inside.iloc[[-1]].set_axis([end_s])
    rows = pd.concat([ends[0], inside, ends[1]])
    rows.round(3).to_csv(path, index_label="time_s", lineterminator="\n")


def radar(axes: Axes, values: pd.DataFrame, scale: pd.DataFrame, title: str) -> None:
    """Draw a polygon for each row of figures, inverted and scaled over the rows of `scale`."""
    rim = np.array([[math.cos(angle), math.sin(angle)] for angle in [*ANGLES, ANGLES[0]]])
    gap = np.full((1, 2), np.nan)
    spokes = [part for corner in rim[:-1] for part in (np.array([[0.0, 0.0], corner]), gap)]
    axes.plot(*np.concatenate([*spokes, 0.5 * rim]).T, color=GRID, linewidth=0.6, zorder=1)
    axes.plot(*rim.T, color=FRAME, linewidth=0.6, zorder=1)
    for (x, y), name, side in zip(rim, AXES.values(), ("center", "right", "left"), strict=False):
        place = (1.15 * x, 1.07 * y) if y > 0.0 else (1.15 * x, y - 0.1)
        axes.text(*place, name, ha=side, va="bottom" if y > 0.0 else "top", fontsize=SIZE, color=INK)
    worst, best = (scale[list(AXES)].agg(pick).to_numpy(float) for pick in ("max", "min"))
    spans = np.where(worst > best, worst - best, np.inf)
    shares = np.where(worst > best, (worst - values[list(AXES)].to_numpy(float)) / spans, 1.0)
    for turn, row in enumerate(shares):
        look = Look(turn)
        corners = np.append(row, row[0])[:, None] * rim
        axes.plot(*corners.T, color=look.colour, linestyle=look.dash, linewidth=1.3, marker=look.marker, markersize=3.0,
                  markevery=[0, 1, 2])  # fmt: skip
        axes.fill(*corners.T, color=look.colour, alpha=0.07, linewidth=0.0)
    axes.set_title(title, fontsize=SIZE, fontweight="bold", pad=13.0)
    axes.set(xlim=(-1.15, 1.15), ylim=(-0.8, 1.1), aspect="equal")
    axes.axis("off")


def radars(
    figure: Figure, grid: np.ndarray, panels: dict[str, pd.DataFrame], names: tuple[str, ...], columns: int
) -> None:
    """Draw a radar for each panel on one scale, with the best and the worst value of each axis and a legend."""
    scale = pd.concat(panels.values())
    for axes, (title, rows) in zip(grid.flat, panels.items(), strict=True):
        radar(axes, rows, scale, title)
    ends = (f"{name} {scale[key].min():.1f}–{scale[key].max():.1f}" for key, name in AXES.items())
    figure.text(0.01, 0.025, "Rim to middle: " + ", ".join(ends), fontsize=SIZE, color=INK)
    looks = [(Look(turn), name) for turn, name in enumerate(names)]
    handles = [Line2D([], [], color=look.colour, linestyle=look.dash, marker=look.marker, markersize=4.0, linewidth=1.3,
                      label=name) for look, name in looks]  # fmt: skip
    drawing.legend(figure, handles, 0.01, columns=columns)


def figure2(numbers: Numbers) -> Figure:
    """Draw a radar for each backfilling and order with a polygon for each response: means under profile 3."""
    means = numbers.means("workloads")
    panels = {pair: means.loc[[f"{pair} {response}" for response in RESPONSES]] for pair in COMBINATIONS}
    figure, grid = drawing.panels_of(
        6.2, 4.4, 2, 4, margins_in=(0.8, 0.45), left=0.01, right=0.99, wspace=0.1, hspace=0.5
    )
    radars(figure, grid, panels, RESPONSES, len(RESPONSES))
    return figure


def figure3(power: pd.DataFrame) -> Figure:
    """Draw the power of two runs against the envelope, zoomed on a fall."""
    figure, grid = drawing.panels_of(
        5.2, 4.0, 2, 1, margins_in=(0.55, 0.45), left=0.11, right=0.98, hspace=0.35, sharex=True
    )
    times_s, cap_kw = power.index - FALL_S, power["cap_w"] / 1000.0
    for axes, (label, title) in zip(grid.flat, SHOWN.items(), strict=True):
        power_kw = power[label] / 1000.0
        axes.fill_between(times_s, power_kw, step="post", color=POWER, alpha=0.35, linewidth=0.0)
        axes.fill_between(
            times_s, cap_kw, power_kw, where=power_kw > cap_kw, step="post", color=VIOLATION, linewidth=0.0
        )
        axes.step(times_s, power_kw, where="post", color=POWER, linewidth=1.0)
        axes.step(times_s, cap_kw, where="post", color=CAP, linewidth=1.3)
        axes.set_title(title, loc="left", fontsize=SIZE, fontweight="bold")
        axes.set(xlim=(times_s[0], times_s[-1]), ylim=(0.0, None), ylabel="power (kW)")
        drawing.unboxed(axes)
    axes.set_xlabel("time after the fall (s)")
    drawing.legend(figure, [Line2D([], [], color=CAP, label="available"), Line2D([], [], color=POWER, label="used"),
                    Line2D([], [], color=VIOLATION, linewidth=4.0, label="violation")], 0.01)  # fmt: skip
    return figure


def boxes(axes: Axes, runs: pd.DataFrame, column: str, heading: str) -> None:
    """Draw a box of the 20 workloads for each algorithm of Table II, with a point for each workload."""
    labels = (NONE, *TABLE2)
    values = [runs.loc[runs["label"] == label, column].to_numpy(float) for label in labels]
    axes.boxplot(
        values, orientation="horizontal", widths=0.55, showfliers=False, patch_artist=True,
        boxprops={"facecolor": GRID, "edgecolor": FRAME}, medianprops={"color": VIOLATION, "linewidth": 1.4},
        whiskerprops={"color": FRAME}, capprops={"color": FRAME},
    )  # fmt: skip
    for row, points in enumerate(values, 1):
        axes.plot(points, np.full(len(points), row), "o", color=POWER, markersize=3.0, alpha=0.6, markeredgewidth=0.0)
    axes.set_yticks(range(1, len(labels) + 1), labels)
    axes.invert_yaxis()
    axes.set_xlabel(heading)
    axes.grid(axis="x", color=GRID, linewidth=0.6)
    axes.set_axisbelow(True)
    drawing.unboxed(axes)


def figure4(runs: pd.DataFrame) -> Figure:
    """Draw jobs killed and finished work of the 20 workloads under profile 3."""
    figure, grid = drawing.panels_of(5.2, 4.4, 2, 1, margins_in=(0.1, 0.45), left=0.31, right=0.98, hspace=0.4)
    boxes(grid[0, 0], runs, KILLS, "jobs killed (of 288)")
    boxes(grid[1, 0], runs, WORK, "finished work (% of the workload)")
    return figure


def figure5(runs: pd.DataFrame) -> Figure:
    """Draw the slowdown of the 20 workloads under profile 3."""
    figure, grid = drawing.panels_of(5.2, 2.4, 1, 1, margins_in=(0.07, 0.48), left=0.31, right=0.98)
    boxes(grid[0, 0], runs, SLOWDOWN, "mean slowdown")
    return figure


def figure6(numbers: Numbers) -> Figure:
    """Draw a radar for each profile with a polygon for each algorithm of Table II: one workload."""
    panels = {f"Profile {name[-1]}": numbers.means("profiles", name).loc[list(TABLE2)] for name in PROFILES}
    figure, grid = drawing.panels_of(5.2, 2.7, 1, 3, margins_in=(0.9, 0.4), left=0.01, right=0.99, wspace=0.05)
    radars(figure, grid, panels, TABLE2, 2)
    return figure


def draw_all(folder: Path) -> None:
    """Write figure-2.svg to figure-6.svg of a folder from its data."""
    numbers = Numbers.read(folder / "data")
    runs = numbers.runs("workloads")
    runs = runs[runs["envelope"] == THIRD]
    charts: dict[int, Callable[[], Figure]] = {
        2: lambda: figure2(numbers),
        3: lambda: figure3(pd.read_csv(folder / "data" / "power.csv", index_col="time_s")),
        4: lambda: figure4(runs),
        5: lambda: figure5(runs),
        6: lambda: figure6(numbers),
    }
    for number, chart in charts.items():
        with drawing.styled(), rc_context({**WORDS, "font.size": SIZE}):
            drawing.save(chart(), folder / f"figure-{number}.svg")


if __name__ == "__main__":
    write_power(Path(__file__).parent / "data" / "power.csv")
    draw_all(Path(__file__).parent)
