"""The power of a run: by hand from its energies, its laws, its intervals."""

from __future__ import annotations

from bisect import bisect_right
from pathlib import Path

import numpy as np
import pytest
from examples import examples
from hypothesis import given
from hypothesis import strategies as st

from batwatt.errors import InputError
from batwatt.model.timeline import Timeline
from batwatt.results import run_files
from batwatt.results.drawing import bin_edges, envelope_bins, power_bins
from batwatt.results.power import PowerTrace, compare, power_series, step_bounds, write_power

HEADER = "time,energy,event_type,wattmin,epower\n"


@pytest.fixture
def run(tmp_path: Path):
    def write(*rows: tuple[float, float]) -> Path:
        lines = [f"{time:.6f},{energy:.6f},s,480.000000,NA\n" for time, energy in rows]
        (tmp_path / "r_consumed_energy.csv").write_text(HEADER + "".join(lines))
        return tmp_path / "r"

    return write


def intervals(trace: PowerTrace) -> list[tuple[float, float]]:
    return [(float(t), float(p)) for t, p in zip(trace.times_s, trace.power_w, strict=True)]


def test_power_between_rows(run):
    trace = power_series(run((10, 1000), (10, 1000), (30, 5000), (80, 5500)))
    assert intervals(trace) == [(0.0, 100.0), (10.0, 200.0), (30.0, 10.0)]
    assert (trace.end_s, trace.energy_j) == (80.0, 5500.0)


def test_short_intervals_join_others(run):
    # 0.0005 s at 1000 W, then 200 W up to 20 s: one interval, with the energy of both
    trace = power_series(run((10, 1000), (10.0005, 1000.5), (20, 1000.5 + 200 * 9.9995)))
    assert trace.times_s.tolist() == [0.0, 10.0]
    assert trace.power_w[1] == pytest.approx((0.5 + 200 * 9.9995) / 10)
    assert trace.energy_j == pytest.approx(1000.5 + 200 * 9.9995)
    # the error reaches the 200 W that lasted
    assert trace.power_w[1] - trace.error_w[1] <= 200.0 <= trace.power_w[1] + trace.error_w[1]
    # a short end joins the interval before
    trace = power_series(run((10, 1000), (20, 2000), (20.0005, 2001)))
    assert trace.times_s.tolist() == [0.0, 10.0]
    assert (trace.end_s, trace.energy_j) == (20.0005, pytest.approx(2001.0))
    assert power_series(run((0.0005, 1.0))).times_s.tolist() == [0.0]


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("", "is empty"),
        ("time,energy,event_type,wattmin\n", "no column 'epower'"),
        (HEADER + "1,2,s,3,NA\n2,x,s,3,NA\n", "row 2: energy 'x' is not a number"),
        (HEADER + "1,2,s,3,NA\n2,1,s,3,NA\n", "row 2: energy decreases from 2.000000 to 1.000000"),
        (HEADER + "inf,1,s,3,NA\n", "row 1: time is not a finite number"),
        (HEADER + "-1,2,s,3,NA\n", "row 1: time must be >= 0"),
        (HEADER + "2,2,s,3,NA\n1,2,s,3,NA\n", "row 2: time decreases"),
        (HEADER + "0,3,s,3,NA\n4,40,s,3,NA\n", "3 J at 0 s"),
    ],
)
def test_malformed(tmp_path, text, complaint):
    (tmp_path / "r_consumed_energy.csv").write_text(text)
    with pytest.raises(InputError, match=complaint):
        power_series(tmp_path / "r")


def test_violations_by_hand():
    # steps of 10 s; over in step 1 from 13 s on, in step 2 for 0.5 ms only, in step 4 (beyond the rows) wholly
    envelope = Timeline((0.0, 10.0, 20.0, 30.0), (100.0, 100.0, 50.0, 200.0))
    trace = PowerTrace(np.array([0.0, 13.0, 20.0005, 40.0]), np.array([100.0, 150.0, 50.0, 300.0]), 45.0)
    pieces = compare(trace, envelope)
    assert (pieces.violations, pieces.steps) == (2, 5)
    assert np.unique(pieces.step[pieces.over]).tolist() == [1, 4]
    assert pieces.above_j == pytest.approx(7 * 50 + 0.0005 * 100 + 5 * 100)
    assert pieces.unused_j == pytest.approx(9.9995 * 0 + 10 * 150)


def test_the_last_instant_before_a_reaction_is_no_violation(run):
    # the cap falls at 300 s; the scheduler reacts 30 us later and reaches the new cap exactly, through a short peak
    peak = 60000 + 0.006 + 0.015
    trace = power_series(run((300.00003, 60000.006), (300.00006, peak), (302, peak + 100 * 1.99994)))
    pieces = compare(trace, Timeline((0.0, 300.0), (200.0, 100.0)))
    assert trace.power_w[1] > 100.001
    assert pieces.violations == 0
    assert compare(trace, Timeline((0.0, 300.0), (200.0, 99.9))).violations == 1


def test_power_file(tmp_path):
    trace = PowerTrace(np.array([0.0, 5.0, 15.0]), np.array([80.0, 80.0, 20.0]), 30.0)
    path = write_power(tmp_path / "r", trace, Timeline((0.0, 10.0, 20.0), (100.0, 90.0, 90.0)))
    assert path == tmp_path / "r_power.csv"
    assert path.read_text().splitlines() == [
        "time_s,power_w,cap_w",
        "0.000000,80.000000,100.000000",
        "10.000000,80.000000,90.000000",
        "15.000000,20.000000,90.000000",
        "30.000000,20.000000,90.000000",
    ]
    write_power(tmp_path / "r", trace)
    assert path.read_text().splitlines()[1:] == [
        "0.000000,80.000000,",
        "15.000000,20.000000,",
        "30.000000,20.000000,",
    ]
    assert run_files.table(tmp_path / "r", "power")["cap_w"].isna().all()


numbers = st.integers(0, 4000).map(float)
gaps = st.sampled_from([1e-6, 3e-5, 4e-4, 1e-3, 0.5, 7.0, 300.0])
series = st.builds(
    lambda first, steps, values: Timeline(
        tuple(np.cumsum([first, *steps[: len(values) - 1]]).tolist()), tuple(values[: len(steps) + 1])
    ),
    st.sampled_from([-500.0, 0.0, 12.5]),
    st.lists(st.sampled_from([0.25, 10.0, 300.0]), min_size=4, max_size=4),
    st.lists(numbers, min_size=1, max_size=5),
)


@given(series, st.floats(0.0, 900.0), st.lists(st.floats(0.0, 1.0), max_size=3))
def test_steps_are_those_of_the_series(envelope, end_s, shares):
    starts = [start for start, _, _ in envelope.steps(0.0, end_s)]
    times = np.array(sorted({0.0, *(share * end_s for share in shares)}))
    bounds, numbers, count = step_bounds(envelope, end_s, times[times < end_s])
    assert count == len(starts) and bounds.tolist() == [starts[number] for number in numbers.tolist()]
    steps = set(numbers.tolist())
    for time_s in times[times < end_s].tolist():
        own = bisect_right(starts, time_s) - 1
        assert own in steps and (own + 1 in steps or own + 1 == count)
    assert all(start in bounds for start in starts if start in envelope.times_s)
    assert count == 0 or count - 1 in steps


@pytest.mark.parametrize(
    ("envelope", "end_s"),
    [
        (Timeline((7.0,), (60.0,)), 2.0**64),
        (Timeline((0.0, 1e-200), (60.0, 80.0)), 10.0),
    ],
)
def test_steps_beyond_counting(envelope, end_s):
    with pytest.raises(InputError, match=r"has steps of .* s, which cannot be counted until the end of the run at"):
        step_bounds(envelope, end_s)


@examples(30)
@given(series, st.lists(st.tuples(st.floats(0.5, 2e4), numbers), min_size=1, max_size=5))
def test_whole_steps_together_count_as_one_by_one(envelope, spans):
    ends = np.cumsum([span for span, _ in spans])
    trace = PowerTrace(np.append(0.0, ends[:-1]), np.array([power for _, power in spans]), float(ends[-1]))
    pieces = compare(trace, envelope)
    violations, above_j = 0, 0.0
    for begin, end, cap in envelope.steps(0.0, trace.end_s):
        bounds = [begin, *(time for time in trace.times_s.tolist() if begin < time < end), end]
        drawn = [float(trace.power_w[bisect_right(trace.times_s, low) - 1]) for low in bounds[:-1]]
        violations += any(p > cap + 1e-3 and b - a > 1e-3 for p, a, b in zip(drawn, bounds, bounds[1:], strict=False))
        above_j += sum(max(0.0, p - cap) * (b - a) for p, a, b in zip(drawn, bounds, bounds[1:], strict=False))
    assert pieces.violations == violations
    assert pieces.above_j == pytest.approx(above_j, rel=1e-9, abs=1e-6)
    assert len(pieces.start_s) <= 10 * (len(spans) + len(envelope))


@given(st.lists(st.tuples(gaps, numbers), min_size=1, max_size=40), series, st.floats(0.01, 1.0))
def test_energy_is_conserved(tmp_path_factory, steps, envelope, share):
    times = np.cumsum([gap for gap, _ in steps])
    energy = np.cumsum([gap * power for gap, power in steps])
    prefix = tmp_path_factory.mktemp("p") / "r"
    rows = [f"{t:.6f},{e:.6f},e,0.000000,NA\n" for t, e in zip(times, energy, strict=True)]
    prefix.with_name("r_consumed_energy.csv").write_text(HEADER + "".join(rows))
    end_s = round(share * float(times[-1]), 6)
    trace = power_series(prefix, end_s)
    if end_s > 0.0:
        expected = np.interp(end_s, np.insert(times, 0, 0.0), np.insert(energy, 0, 0.0))
        assert trace.energy_j == pytest.approx(expected, rel=1e-6, abs=0.01)
    pieces = compare(trace, envelope)
    allowed = sum((end - start) * value for start, end, value in envelope.steps(0.0, trace.end_s))
    # a power that is the cap but for the rounding of the file is the cap
    rounded_j = 1e-6 + float(np.broadcast_to(trace.error_w, trace.power_w.shape) @ trace.durations_s)
    assert pieces.unused_j - pieces.above_j == pytest.approx(allowed - trace.energy_j, rel=1e-9, abs=rounded_j)
    below = float(np.minimum(pieces.power_w, pieces.cap_w) @ (pieces.end_s - pieces.start_s))
    assert below + pieces.above_j == pytest.approx(trace.energy_j, rel=1e-9, abs=rounded_j)
    assert 0 <= pieces.violations <= pieces.steps == step_bounds(envelope, trace.end_s)[2]


def test_the_largest_power_is_one_of_states(run):
    """4242 W for 300 s and for 0.8 ms more than is printed, then 100 W: 4242.005 W by the energies of 0.2 s."""
    prefix = run((300, 1272600), (300.2, 1272600 + 848.401), (400.2, 1272600 + 848.401 + 10000))
    trace = power_series(prefix)
    assert trace.power_w.max() == pytest.approx(4242.005, abs=1e-6)
    assert trace.max_w == 4242.0
    # nor is the rounding above a cap
    pieces = compare(trace, Timeline((0.0, 300.2), (4242.0, 100.0)))
    assert (pieces.violations, pieces.above_j, pieces.unused_j) == (0, 0.0, 0.0)
    # a peak of 0.2 s that is a little larger counts
    peak = power_series(run((300, 1272600), (300.2, 1272600 + 848.5), (400.2, 1272600 + 848.5 + 10000)))
    assert peak.max_w == 4242.5


def test_nothing_is_lost_in_many_changes():
    draw = np.random.default_rng(5)
    traces = []
    for count in (400, 3000):
        times = np.cumsum(np.append(0.0, draw.uniform(0.5, 40.0, count)))
        traces.append(PowerTrace(times[:-1], draw.uniform(0.0, 900.0, count), float(times[-1])))
    cap = Timeline(tuple(600.0 * n for n in range(80)), tuple(draw.uniform(0.0, 900.0, 80)), "power_w")
    edges = bin_edges(traces, cap, most=50)
    assert len(edges) == 51 and edges[-1] == traces[1].end_s
    for trace in traces:
        bins, pieces = power_bins(trace, cap, edges), compare(trace, cap)
        widths = np.diff(bins.edges_s)
        assert bins.edges_s[-1] == trace.end_s and len(widths) <= 50
        assert bins.power_w @ widths == pytest.approx(trace.energy_j)
        assert bins.above_w @ widths == pytest.approx(pieces.above_j)
        assert bins.unused_w @ widths == pytest.approx(pieces.unused_j)
        assert bins.power_w == pytest.approx(bins.cap_w + bins.above_w - bins.unused_w)
        assert (bins.low_w <= bins.power_w + 1e-9).all() and (bins.power_w <= bins.high_w + 1e-9).all()
        assert bins.low_w.min() == trace.power_w.min() and bins.high_w.max() == trace.power_w.max()
    assert envelope_bins(cap, edges).power_w == pytest.approx(power_bins(traces[1], cap, edges).cap_w)
