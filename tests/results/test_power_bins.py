"""Powers in few intervals: by hand, and that no energy is lost."""

from __future__ import annotations

import numpy as np
import pytest

from batwatt.model.series import Series
from batwatt.results.power import PowerTrace, compare
from batwatt.results.power_bins import bin_edges, envelope_bins, power_bins

CAP = Series((0.0, 100.0), (300.0, 100.0), "power_w")
TRACE = PowerTrace(np.array([0.0, 50.0, 120.0]), np.array([200.0, 300.0, 0.0]), 160.0)


def test_by_hand():
    """Two intervals of 80 s: 200 W for 50 s and 300 W for 30 s; 300 W for 40 s, 20 s of it above 100 W, and nothing."""
    found = power_bins(TRACE, CAP, np.array([0.0, 80.0, 160.0]))
    assert found.power_w.tolist() == pytest.approx([(200 * 50 + 300 * 30) / 80, 300 * 40 / 80])
    assert found.low_w.tolist() == [200.0, 0.0] and found.high_w.tolist() == [300.0, 300.0]
    assert found.cap_w.tolist() == pytest.approx([300.0, (300 * 20 + 100 * 60) / 80])
    assert found.above_w.tolist() == pytest.approx([0.0, 200 * 20 / 80])
    assert found.unused_w.tolist() == pytest.approx([100 * 50 / 80, 100 * 40 / 80])


def test_few_changes_are_shown_as_they_are():
    edges = bin_edges([TRACE], CAP)
    assert edges.tolist() == [0.0, 50.0, 100.0, 120.0, 160.0]
    found = power_bins(TRACE, CAP, edges)
    assert found.power_w.tolist() == [200.0, 300.0, 300.0, 0.0]
    assert (found.low_w == found.power_w).all() and (found.high_w == found.power_w).all()


def test_nothing_is_lost_in_many_changes():
    draw = np.random.default_rng(5)
    traces = []
    for count in (400, 3000):
        times = np.cumsum(np.append(0.0, draw.uniform(0.5, 40.0, count)))
        traces.append(PowerTrace(times[:-1], draw.uniform(0.0, 900.0, count), float(times[-1])))
    cap = Series(tuple(600.0 * n for n in range(80)), tuple(draw.uniform(0.0, 900.0, 80)), "power_w")
    edges = bin_edges(traces, cap, most=50)
    assert len(edges) == 51 and edges[-1] == traces[1].end_s
    for trace in traces:
        found, pieces = power_bins(trace, cap, edges), compare(trace, cap)
        widths = np.diff(found.edges_s)
        assert found.edges_s[-1] == trace.end_s and len(widths) <= 50
        assert found.power_w @ widths == pytest.approx(trace.energy_j)
        assert found.above_w @ widths == pytest.approx(pieces.above_j)
        assert found.unused_w @ widths == pytest.approx(pieces.unused_j)
        assert found.power_w == pytest.approx(found.cap_w + found.above_w - found.unused_w)
        assert (found.low_w <= found.power_w + 1e-9).all() and (found.power_w <= found.high_w + 1e-9).all()
        assert found.low_w.min() == trace.power_w.min() and found.high_w.max() == trace.power_w.max()
    assert envelope_bins(cap, edges).power_w == pytest.approx(power_bins(traces[1], cap, edges).cap_w)


def test_a_trace_of_nothing():
    empty = PowerTrace(np.empty(0), np.empty(0), 0.0)
    assert bin_edges([], CAP).tolist() == bin_edges([empty], CAP).tolist() == [0.0]
    assert len(power_bins(empty, CAP, np.array([0.0])).power_w) == 0
