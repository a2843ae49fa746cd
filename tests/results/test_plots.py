"""Figures: they are drawn, equal for equal runs, and refuse what cannot be drawn."""

from __future__ import annotations

import numpy as np
import pytest

from batwatt.errors import InputError
from batwatt.model.series import Series
from batwatt.results.plots import plot_power
from batwatt.results.power import PowerTrace

ENVELOPE = Series((0.0, 300.0, 600.0), (1000.0, 400.0, 1200.0))
TRACE = PowerTrace(np.array([0.0, 310.0, 700.0]), np.array([900.0, 300.0, 1100.0]), 7200.0)
EMPTY = PowerTrace(np.empty(0), np.empty(0), 0.0)

MAGIC = {"png": b"\x89PNG", "svg": b"<?xml", "pdf": b"%PDF"}


@pytest.mark.parametrize("kind", MAGIC)
def test_same_runs_same_bytes(tmp_path, kind):
    runs = [("EBF [$x_1$", TRACE), ("FF <HFLD> & co", TRACE), ("nothing ran", EMPTY)]
    first = plot_power(runs, ENVELOPE, tmp_path / f"new/a.{kind}").read_bytes()
    second = plot_power(runs, ENVELOPE, tmp_path / f"b.{kind.upper()}").read_bytes()
    assert first.startswith(MAGIC[kind])
    assert first == second


def test_red_only_above_the_envelope(tmp_path):
    def red(envelope):
        path = plot_power([("run", TRACE)], envelope, tmp_path / "f.svg")
        return path.read_text().count("#d1242f")

    # the legend's patch alone, unless there is a violation
    quiet = red(Series((0.0,), (5000.0,)))
    assert red(None) == 0
    assert quiet < red(ENVELOPE)


@pytest.mark.parametrize(
    ("runs", "name", "complaint"),
    [
        ([("run", TRACE)], "f.bmp", "end its name with one of png, svg, pdf"),
        ([], "f.png", "has no run to show"),
        ([("run", EMPTY)], "f.png", "no job ended"),
    ],
)
def test_refused(tmp_path, runs, name, complaint):
    with pytest.raises(InputError, match=complaint):
        plot_power(runs, ENVELOPE, tmp_path / name)
    assert not (tmp_path / name).exists()
