"""The picture of a fit: the model over the samples of all runs (Figure 4.9 of the carbon thesis)."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from batwatt.results.style import CAP, POWER, WIDE_IN, check_shown, draw, new_figure, plain
from batwatt.systems.carbon.fit import FittedModel
from batwatt.systems.carbon.measurements import MeasuredRun

HEIGHT_IN = 3.6
KJ = 1e3
POINTS = 20_000
"""With more points than this those of a vector format become an image."""
NARROW = 0.035
"""A phase that takes less than this share of the axis has its name written upright."""
NAMED = 60
"""Of more phases than this no names are written."""
ROOM = 1.2
"""The axis of power ends this far above the highest sample, for the names of the phases."""


def plot_fit(fitted: FittedModel, runs: Sequence[MeasuredRun], path: Path | str) -> Path:
    """Draw the model over the samples of its runs; returns the path (`.png`, `.svg` or `.pdf`). Raises InputError."""
    check_shown(path, runs, "run", "name at least one run")
    return draw(path, lambda: fit_figure(fitted, runs))


def fit_figure(fitted: FittedModel, runs: Sequence[MeasuredRun]) -> Figure:
    """Power over time since the run began: samples as points, the model as a line, its start-up shaded."""
    figure = new_figure(WIDE_IN, HEIGHT_IN)
    axes = figure.add_axes((0.06, 0.125, 0.925, 0.76))
    steps = fitted.model.steps
    times, watts = _samples(runs)
    alpha = float(np.clip(2500.0 / max(len(times), 1), 0.06, 0.8))
    word = f"samples of {len(runs)} runs" if len(runs) > 1 else "samples of a run"
    axes.plot(
        times, watts, linestyle="", marker="o", markersize=1.6, markeredgewidth=0.0, alpha=alpha,
        color=POWER, zorder=2, rasterized=len(times) > POINTS, label=word,
    )  # fmt: skip
    axes.stairs(steps.watts, steps.edges_s, baseline=None, color="black", linewidth=1.3, zorder=3, label="model")
    startup_s = fitted.model.startup_s
    if startup_s > 0.0:
        axes.axvspan(0.0, startup_s, color="#f1f3f5", linewidth=0.0, zorder=0.5, label="start-up")
    axes.set_xlim(0.0, max(float(times.max()), steps.length_s) * 1.01)
    axes.set_ylim(0.0, ROOM * float(max(watts.max(), steps.watts.max(), 1.0)))
    _phases(axes, fitted)
    plain(axes)
    axes.set_xlabel("time since the run began (s)")
    axes.set_ylabel("power (W)")
    figure.text(0.012, 0.975, _title(fitted), ha="left", va="top", fontsize=9.5, fontweight="bold")
    legend = figure.legend(
        loc="upper right", bbox_to_anchor=(0.99, 0.995), ncols=3, frameon=False, fontsize=7.5, markerscale=2.5
    )
    for handle in legend.legend_handles:
        if handle is not None and handle.get_label() == word:
            # points that are pale on the axes must still be seen here
            handle.set_alpha(1.0)
    return figure


def _samples(runs: Sequence[MeasuredRun]) -> tuple[np.ndarray, np.ndarray]:
    """Times since the beginning of their run and powers of all samples of straight runs."""
    times, watts = [], []
    for run in runs:
        begin_s, end_s = run.marks[0][0], run.marks[-1][0]
        inside = run.within(begin_s, end_s)
        times.append(run.times_s[inside] - begin_s)
        watts.append(run.watts[inside])
    return np.concatenate(times), np.concatenate(watts)


def _phases(axes: Axes, fitted: FittedModel) -> None:
    """A hairline where each phase begins, and its name at the top; a checkpoint's is bold."""
    phases = (*fitted.model.startup, *fitted.model.work)
    ends = np.cumsum([phase.duration_s for phase in phases])
    for end in ends[:-1]:
        axes.axvline(end, color="#c3c9cf", linewidth=0.5, zorder=1)
    if len(phases) > NAMED:
        return
    right, top = axes.get_xlim()[1], axes.get_ylim()[1]
    for phase, end in zip(phases, ends, strict=True):
        narrow = phase.duration_s < NARROW * right
        axes.text(
            end - phase.duration_s / 2.0, 0.985 * top, phase.name, ha="center", va="top", fontsize=6.5, color=CAP,
            rotation=90 if narrow else 0, fontweight="bold" if phase.is_checkpoint else "normal", zorder=4,
        )  # fmt: skip


def _title(fitted: FittedModel) -> str:
    text = f"{fitted.model.energy_j / KJ:.2f} kJ in {fitted.model.length_s:.1f} s"
    power, energy = fitted.rmse_power_w, fitted.rmse_energy_j
    if power is None or energy is None:
        return text
    return f"{text}; leaving one out, RMSE {power:.1f} W and {energy / KJ:.3f} kJ"
