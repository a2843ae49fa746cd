"""The page of the carbon thesis has the numbers of its files, and a small study gives these; the rest by hand."""

from __future__ import annotations

from itertools import groupby, permutations

import numpy as np
import pandas as pd
import pytest
import yaml
from examples import examples
from hypothesis import given
from hypothesis import strategies as st

from batwatt.inputs.series import read_on_clock
from batwatt.inputs.source import SeriesSource
from batwatt.model.timeline import Timeline
from batwatt.model.work import Phase, PhaseModel, ShiftJob, constant
from batwatt.schedulers.carbon.optimum import plan
from papers.carbon import fit, real, rolling, solver, study, tables
from papers.carbon.bound import least_carbon
from papers.carbon.measured import Run
from papers.carbon.milp import plan_milp

ROOT = tables.HERE.parents[1]
SIGNAL = ROOT / "power_profiles" / "carbon" / "carbon-hourly.csv"
HOUR, SLOT_S, POWER_W = 3600.0, 60.0, 100.0
HOURLY = Timeline.regular([400.0, 300.0, 100.0, 250.0, 400.0, 50.0, 500.0, 200.0])


# the page -------------------------------------------------------------------------------------------------------------


def test_the_tables_of_detail_are_those_of_the_summary():
    for name, frame in tables.detail().items():
        pd.testing.assert_frame_equal(frame.astype(str), tables.read(name))


@pytest.mark.parametrize("whole", [False, pytest.param(True, marks=pytest.mark.deep)], ids=["few", "all"])
def test_the_small_study_gives_the_committed_numbers(tmp_path, whole):
    declared = yaml.safe_load((tables.HERE / "small.yaml").read_text())
    if not whole:
        declared["studies"]["chapter6"] |= {"length_h": [1], "startup_w": [300]}
        del declared["studies"]["chapter6"]["patterns"]["short-long"]
    (tmp_path / "small.yaml").write_text(yaml.safe_dump(declared))
    table = study.run(tmp_path / "small.yaml", SIGNAL)
    rows = study.summary_of(table)
    expected = pd.read_csv(tables.DATA / "small.csv")
    if not whole:
        keys = rows.columns[: rows.columns.get_loc("arrivals")].tolist()
        expected = rows[keys].merge(expected, how="left", on=keys)
    assert len(table) == (500 if whole else 200)
    # the last of 6 digits may depend on how the processor adds up
    pd.testing.assert_frame_equal(rows, expected, check_dtype=False, rtol=1e-9, atol=1.1e-6)
    assert tables.author(table)["at all arrivals, % of jobs"][1] == "0.0"
    assert tables.hours(table).columns.tolist() == ["arrival, UTC", "deadline 4 h", "deadline 12 h", "deadline 24 h"]


def test_a_deadline_that_a_job_cannot_meet():
    pattern = {"high_w": 2, "high_min": 30, "low_w": 1, "low_min": 40}
    assert [(phase.name, phase.duration_s, phase.power_w) for phase in study.phases(pattern, 6000.0)] == [
        ("high", 1800.0, 2.0), ("low", 2400.0, 1.0), ("high", 1800.0, 2.0)
    ]  # fmt: skip
    part = {"patterns": {"p": pattern}, "length_h": [2], "startup_s": [0, 600], "startup_w": [5], "deadline_h": [2]}
    declared = {"arrivals": {"every_h": 5, "days": 1}, "studies": {"s": part}}
    cases = study.cases_of(declared)
    first = next(cases)
    assert (first.arrivals_s, first.wait_s) == ((0.0, 18000.0, 36000.0, 54000.0, 72000.0), 0.0)
    with pytest.raises(ValueError, match=r"a job of 2\.16667 h cannot meet its deadline"):
        next(cases)


# real jobs, clusters and forecasts ------------------------------------------------------------------------------------


def test_a_few_jobs_on_a_cluster():
    jobs = [real.with_startup(ShiftJob(str(n), 100.0 * n, constant(3600.0 * (n + 1), 50.0))) for n in range(3)]
    assert [job.length_s for job in jobs] == [3900.0, 7500.0, 11100.0] and jobs[1].arrival_s == 120.0
    integral = read_on_clock(SeriesSource(SIGNAL))
    started = real.with_startups(jobs, integral)
    assert started["saved, %"][0] == "0.00" and started["policy"].tolist() == [f"`{name}`" for name in real.STARTED]
    assert float(started["carbon, g"].iloc[-1]) <= float(started["carbon, g"][1])
    runs = dict(real.engine_runs(jobs, integral, 8))
    assert [f"{run.carbon_g:.3f}" for name, (run, _) in runs.items() if name == "oracle"] == [started["carbon, g"][1]]


def test_planning_once_and_again_compared_with_the_bound(tmp_path, monkeypatch):
    """What is saved and how far from the bound agree, with hosts off and on."""
    dates = pd.date_range(rolling.BEGINS[1], periods=8 * 24, freq="h").strftime("%Y-%m-%d %H:%M:%S")
    rows = [f"{date},{300 + 200 * (hour % 24 in (11, 12, 13)) - hour % 7}" for hour, date in enumerate(dates)]
    (tmp_path / "x.csv").write_text("\n".join(["Time,Carbon Intensity", *rows]) + "\n")
    monkeypatch.setattr(rolling, "JOB_DAYS", 1.0)
    cases = (rolling.AT_ONCE, ("oracle", 0.0, False), ("oracle", 0.06, False), ("oracle", 0.06, True))
    monkeypatch.setattr(rolling, "CASES", cases)
    runs = pd.DataFrame(rolling.results("CAISO", 0.3, 1, tmp_path / "x.csv"))
    assert runs["saved_off"][0] == runs["saved_on"][0] == runs["late"].max() == 0.0
    assert (runs["above_off"] >= -1e-6).all() and runs["saved_off"][1] > runs["saved_on"][1] > 0.0
    least = (1.0 - runs["saved_off"] / 100.0) / (1.0 + runs["above_off"] / 100.0)
    assert least.tolist() == pytest.approx([least[0]] * 4)
    [row] = tables.rolling(pd.concat([runs, runs])).to_dict("records")
    saved = [f"{runs['saved_off'][n]:.1f} ± 0.0" for n in (1, 2, 3)]
    assert [row[f"saved, %: {name}"] for name in ("exact", "6 %, once", "6 %, again")] == saved


def test_the_bound_by_hand():
    """A job of two cpus cannot have three of them, and one that is suspended takes halves of hours."""
    two = [ShiftJob(name, 0.0, constant(HOUR, POWER_W)) for name in "ab"]
    wide = [ShiftJob("w", 0.0, constant(HOUR, POWER_W), 2)]
    assert least_carbon(wide, [4 * HOUR], 3, HOURLY) == pytest.approx(0.2 * 100)
    late = [ShiftJob("l", 1.5 * HOUR, constant(HOUR, POWER_W))]
    assert least_carbon(late, [3.25 * HOUR], 1, HOURLY) == pytest.approx(0.1 * 100)
    with pytest.raises(RuntimeError, match="no bound on 1 cpus: Infeasible"):
        least_carbon(two, [HOUR] * 2, 1, HOURLY)
    with pytest.raises(ValueError, match="job a has phases"):
        least_carbon([ShiftJob("a", 0.0, PhaseModel((Phase("s", 60.0, 5.0),), two[0].model.work))], [HOUR], 1, HOURLY)


@examples(25)
@given(
    st.lists(st.integers(1, 500), min_size=6, max_size=6),
    st.lists(st.tuples(st.integers(0, 3), st.integers(1, 5)), min_size=1, max_size=4),
)
def test_the_bound_is_exact_for_jobs_of_an_hour(values, windows):
    """All ways to give each job an hour of its own on one cpu."""
    rows = [(begin, min(begin + wait, 6)) for begin, wait in windows]
    load = [ShiftJob(str(i), begin * HOUR, constant(HOUR, POWER_W)) for i, (begin, _) in enumerate(rows)]
    ways = [
        sum(values[hour] for hour in hours)
        for hours in permutations(range(6), len(rows))
        if all(begin <= hour < end for hour, (begin, end) in zip(hours, rows, strict=True))
    ]
    bounded = load, [end * HOUR for _, end in rows], 1, Timeline.regular(values)
    if not ways:
        with pytest.raises(RuntimeError):
            least_carbon(*bounded)
        return
    assert least_carbon(*bounded) == pytest.approx(0.1 * min(ways), rel=1e-6)


# the solver -----------------------------------------------------------------------------------------------------------


def random_instance(number: int):
    """A small instance in floats, with phases of several slots."""
    rng = np.random.default_rng(number)
    slots = int(rng.integers(6, 19))
    startup = int(rng.integers(0, 4))
    work = int(rng.integers(2, max(3, min(9, slots - startup - 1))))
    levels = rng.uniform(20.0, 300.0, 4)
    picked = levels[np.sort(rng.integers(0, 4, work))] if number % 2 else levels[rng.integers(0, 4, work)]
    joined = [Phase("work", len(list(group)) * SLOT_S, watts) for watts, group in groupby(picked.tolist())]
    start = (Phase("start", startup * SLOT_S, float(rng.uniform(20.0, 300.0))),) if startup else ()
    signal = Timeline.regular(rng.uniform(50.0, 500.0, slots), SLOT_S)
    return PhaseModel(start, tuple(joined)), signal, 0.0, slots * SLOT_S


ALL = [pytest.param(range(first, first + 100), marks=pytest.mark.deep) for first in range(0, 500, 100)]


@pytest.mark.parametrize("numbers", [range(0, 50, 10), *ALL], ids=str)
def test_the_solver_proves_the_same_optimum(numbers):
    """Five instances, each night 500; both sides are worked out again from their segments, so no tolerance counts."""
    suspended = 0
    for number in numbers:
        args = random_instance(number)
        planned, proven = plan(*args, slot_s=SLOT_S), plan_milp(*args, slot_s=SLOT_S)
        assert planned.carbon == pytest.approx(proven.carbon, rel=1e-9), number
        suspended += len(planned.segments) > 1
    assert suspended > len(numbers) / 10


def test_a_planner_measured_in_a_process_of_its_own():
    milp = solver.measured(solver.MILP, 12, 4)
    assert milp.carbon > 0.0 and milp.cpu_s > 0.0 and milp.peak_mib >= milp.before_mib > 10.0


# the measured job -----------------------------------------------------------------------------------------------------


def run(watts, *marks):
    """A sample a second at a constant power; `marks` are texts as in `3 training`."""
    split = [mark.split() for mark in marks]
    return Run(np.arange(61.0), np.full(61, float(watts)), tuple((float(at), name) for at, name in split))


def test_power_is_a_straight_line_between_samples():
    """0 W at 0 s, 10 W at 1 s and 3 s: until 0.5 s a triangle of 0.5 s and 5 W."""
    drawn = Run(np.array([0.0, 1.0, 3.0]), np.array([0.0, 10.0, 10.0]), ((0.0, "a"), (0.5, "b"), (2.0, "end")))
    assert drawn.energies_j().tolist() == [1.25, 13.75]
    stopped = run(5.0, "1 start", "3 training", "7 suspend", "20 start", "21 training", "25 end")
    assert stopped.energies_j().sum() == pytest.approx(5.0 * (6 + 5), rel=1e-12)


def test_a_fit_of_two_runs_by_hand():
    """10 W: 2, 4, 2 s; 30 W: 4, 2, 1 s. Start-up: 3 s on average, (20 + 120) / 2 = 70 J.

    Each model of one run predicts the other: 210 J for 80 J and the reverse. Of the first run's 8 samples 7 are 20 W
    below the model, which is over (0 W) at the eighth; of the second's 7 samples all are 20 W above it.
    """
    runs = [run(10, "1 load", "3 training", "7 save-1", "9 end"), run(30, "1 load", "5 training", "7 save-1", "8 end")]
    model, rmse_w, errors_j = fit.fit(runs)
    phases = [*model.startup, *model.work]
    assert [(phase.name, phase.is_checkpoint) for phase in phases] == [
        ("load", False), ("training", False), ("save-1", True)
    ]  # fmt: skip
    assert [phase.duration_s for phase in phases] == [3.0, 3.0, 1.5]
    assert [phase.power_w for phase in phases] == pytest.approx([70 / 3, 50 / 3, 25 / 1.5], rel=1e-12)
    assert rmse_w == pytest.approx((5700 / 15) ** 0.5, rel=1e-12)
    assert errors_j.tolist() == pytest.approx([130.0, -130.0], rel=1e-12)
    with pytest.raises(ValueError, match="straight runs of the same phases"):
        fit.fit([*runs, run(10, "1 load", "3 training", "9 end")])


@pytest.mark.parametrize(
    ("marks", "expected_j"),
    [
        ("0 start,2 training,6 save,7 training,11 save,12 end", 200.0),
        # one more start-up
        ("0 start,2 training,6 save,7 suspend,20 start,21 training,25 save,26 end", 220.0),
        # 3 s of training are lost as well; at most the 4 s of the model
        ("0 start,2 training,6 save,7 training,10 abort,20 start,22 training,26 save,27 end", 280.0),
        ("0 start,2 training,6 save,7 training,16 abort,20 start,22 training,26 save,27 end", 300.0),
        # a checkpoint that was cut after 0.5 s saves nothing
        ("0 start,2 training,6 save,6.5 abort,9 start,11 training,15 save,16 training,20 save,21 end", 305.0),
    ],
)
def test_interrupted_runs_by_hand(marks, expected_j):
    """200 J: 20 + 2 x (80 + 10)."""
    epoch = (Phase("training", 4.0, 20.0), Phase("save", 1.0, 10.0, is_checkpoint=True))
    model = PhaseModel((Phase("start", 2.0, 10.0),), epoch * 2)
    assert fit.predicted_j(model, run(7.0, *marks.split(","))) == pytest.approx(expected_j, rel=1e-12)


def test_the_fit_of_the_page():
    pd.testing.assert_frame_equal(fit.fitted(), tables.read("fit"))
