"""Figures: they are drawn, equal for equal runs, and refuse what cannot be drawn."""

from __future__ import annotations

import numpy as np
import pytest

from batwatt.errors import InputError
from batwatt.model.series import Series
from batwatt.results.plots import draw_power, power_figure
from batwatt.results.power import PowerTrace, compare
from batwatt.results.power_bins import bin_edges
from batwatt.results.style import draw, new_figure

ENVELOPE = Series((0.0, 300.0, 600.0), (1000.0, 400.0, 1200.0))
TRACE = PowerTrace(np.array([0.0, 310.0, 700.0]), np.array([900.0, 300.0, 1100.0]), 7200.0)
EMPTY = PowerTrace(np.empty(0), np.empty(0), 0.0)

MAGIC = {"png": b"\x89PNG", "svg": b"<?xml", "pdf": b"%PDF"}


def picture(runs, envelope, path):
    """The file of a picture of runs."""
    return draw(path, lambda: power_figure(runs, envelope))


@pytest.mark.parametrize("kind", MAGIC)
def test_same_runs_same_bytes(tmp_path, kind):
    runs = [("EBF [$x_1$", TRACE), ("FF <HFLD> & co", TRACE), ("nothing ran", EMPTY)]
    first = picture(runs, ENVELOPE, tmp_path / f"new/a.{kind}").read_bytes()
    second = picture(runs, ENVELOPE, tmp_path / f"b.{kind.upper()}").read_bytes()
    assert first.startswith(MAGIC[kind])
    assert first == second


def test_red_only_above_the_envelope(tmp_path):
    def red(envelope):
        path = picture([("run", TRACE)], envelope, tmp_path / "f.svg")
        return path.read_text().count("#d1242f")

    # the legend's patch alone, unless there is a violation
    quiet = red(Series((0.0,), (5000.0,)))
    assert red(None) == 0
    assert quiet < red(ENVELOPE)


def areas(trace, envelope, edges_s):
    """Name of each area that is drawn -> its size in kWh."""
    axes = new_figure(7.0, 3.0).add_subplot()
    draw_power(axes, trace, envelope, edges_s)
    sizes = {}
    for area in (patch for patch in axes.patches if patch.get_fill()):
        x, y = area.get_path().vertices.T
        sizes[area.get_label()] = abs(float(np.sum(x * np.roll(y, -1) - np.roll(x, -1) * y))) / 2.0
    return sizes


@pytest.mark.parametrize("edges_s", [bin_edges([TRACE], ENVELOPE), np.linspace(0.0, 7200.0, 4)])
def test_areas_of_the_power_are_energies(edges_s):
    pieces = compare(TRACE, ENVELOPE)
    sizes = areas(TRACE, ENVELOPE, edges_s)
    assert sizes["unused"] == pytest.approx(pieces.unused_j / 3.6e6)
    assert sizes["above the envelope"] == pytest.approx(pieces.above_j / 3.6e6) and pieces.above_j > 0.0
    # the band is there in the first of three intervals, in which the power changes twice
    assert ("least to largest power" in sizes) == (len(edges_s) == 4)


def test_power_without_an_envelope_is_blue():
    sizes = areas(TRACE, None, bin_edges([TRACE], None))
    assert list(sizes.values()) == [pytest.approx(TRACE.energy_j / 3.6e6)]


def test_a_picture_of_no_known_kind_is_refused(tmp_path):
    with pytest.raises(InputError, match="end its name with one of png, svg, pdf"):
        picture([("run", TRACE)], ENVELOPE, tmp_path / "f.bmp")
    assert not (tmp_path / "f.bmp").exists()
