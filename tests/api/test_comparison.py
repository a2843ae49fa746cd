"""Systems side by side: measured alike, on the same jobs and the same power."""

from __future__ import annotations

import logging
import random
import re
import shutil

import numpy as np
import pandas as pd
import pytest

import batwatt as bw
from batwatt.api.comparison import SYSTEMS, Case, compare
from batwatt.errors import InputError
from batwatt.model.timeline import Timeline
from batwatt.protocol.workload4 import parse_workload
from batwatt.results.compared import summary_of

pytestmark = pytest.mark.usefixtures("quiet")

# three machines of one host and 100 W; two of them have power from 100 s on
FEW = bw.Workload.from_frame(
    pd.DataFrame({"id": list("abc"), "submission_time_s": [0, 0, 50], "length_s": [150, 80, 60], "hosts": [1, 2, 1]})
)
MACHINES = bw.Platform.machines(3, 1, watts=100)
FALLS = bw.Series((0.0, 100.0), (300.0, 200.0), "power_w")


def test_by_hand():
    """a runs from 0 to 150 and b from 0 to 80; c waits for b, from 50 to 80, and ends at 140: nobody is killed."""
    cases = {"free": Case("varcap", {}, "none"), "limited": Case("varcap")}
    result = compare(MACHINES, FEW, FALLS, cases)
    row = result.table.set_index("case").loc["limited"]
    assert (row["jobs_finished"], row["killed_power"], row["violations"]) == (3, 0, 0)
    assert row["mean_wait_s"] == pytest.approx((0 + 0 + 30) / 3)
    assert row["mean_full_speed_slowdown"] == pytest.approx((1 + 1 + 90 / 60) / 3)
    # 300 W for 100 s, then 200 W for 50 s, all of which is drawn as machines that are on draw 100 W
    assert row["energy_j"] == pytest.approx(300 * 100 + 200 * 50, abs=1.0)
    assert row["work_per_fed_host"] == pytest.approx((150 + 2 * 80 + 60) / (3 * 100 + 2 * 50))
    # a case that does not follow the power of one machine, 150 s long
    dim = compare(MACHINES, FEW, bw.Series((0.0,), (100.0,)), {"free": cases["free"]}).table
    assert dim["work_per_fed_host"].item() == pytest.approx((150 + 2 * 80 + 60) / 150, abs=1e-6)
    free = result.table.set_index("case").loc["free"]
    assert free["energy_above_cap_j"] == pytest.approx(100 * 50, abs=1.0) and free["violations"] == 1
    jobs = result.jobs.set_index(["case", "job_id"])
    figures = jobs.loc[("limited", "c"), ["wait_s", "full_speed_slowdown", "attempts", "state"]]
    assert figures.tolist() == [30.0, 1.5, 1, "finished"]
    assert jobs["wait_more_s"].tolist() == [0.0] * 6


@pytest.mark.parametrize("scheduler", ["fcfs", "easy"])
def test_without_a_limit(tmp_path, scheduler):
    """As by hand, on three machines that draw 100 W each until a ends at 150 s; nothing is said of a limit."""
    result = compare(MACHINES, FEW, cases={"one": Case(scheduler), "mean": Case(scheduler, {}, "mean")})
    for row in result.table.to_dict("records"):
        assert (row["jobs_finished"], row["mean_wait_s"]) == (3, pytest.approx((0 + 0 + 30) / 3))
        assert row["energy_j"] == pytest.approx(300 * 150, abs=1.0)
        assert not {"violations", "energy_above_cap_j", "unused_j", "work_per_fed_host"} & row.keys()
    # c begins the second window of two, on empty hosts
    halves = compare(MACHINES, FEW, cases={"one": Case(scheduler)}, window=(0, 90), samples=2).table
    assert halves["mean_wait_s"].tolist() == [0.0, 0.0] and halves["jobs_finished"].tolist() == [2, 1]
    page = result.save(tmp_path / "x").with_suffix(".html").read_text()
    assert "Red: power above" not in page and ">the envelope</td>" not in page
    with pytest.raises(InputError, match="envelope, capacity: are missing; give one of them, as cases of the preset"):
        compare(MACHINES, FEW)


def busy(count=60, seed=3):
    draw = random.Random(seed)
    time_s, rows = 0.0, []
    for _ in range(count):
        time_s += draw.expovariate(1 / 120)
        rows.append((round(time_s, 3), round(draw.uniform(60, 3000), 2), draw.randint(1, 4), draw.choice("xyz")))
    frame = pd.DataFrame(rows, columns=["submission_time_s", "length_s", "hosts", "user"])
    levels = [draw.choice([800.0, 1600.0, 3200.0, 2400.0]) for _ in range(24)]
    return bw.Workload.from_frame(frame), bw.Series(tuple(1800.0 * i for i in range(24)), tuple(levels), "power_w")


def test_every_system_on_the_same_work():
    workload, cap = busy(30)
    carbon = Timeline.regular([100.0 + 50.0 * (hour % 5) for hour in range(200)])
    alone = compare(bw.Platform.machines(16, 1, watts=200), workload, cap, carbon=carbon)
    assert list(alone.summary.index) == list(SYSTEMS) and not alone.errors
    table = alone.table.set_index("case")
    states = alone.jobs.groupby("case", sort=False)["state"].value_counts().unstack(fill_value=0)
    assert (states.sum(axis=1) == 30).all() and (states["finished"] == table["jobs_finished"]).all()
    limited = [name for name, case in SYSTEMS.items() if case.follow == "envelope"]
    assert (table.loc[limited, "violations"] == 0).all() and table.loc["no limit", "violations"] > 0
    for name, trace in alone.traces.items():
        edges = [*trace.times_s.tolist(), trace.end_s]
        grams = 0.0
        for watts, begin_s, end_s in zip(trace.power_w.tolist(), edges, edges[1:], strict=False):
            for hour in range(int(begin_s // 3600), int(end_s // 3600) + 1):
                lasting_s = min(end_s, 3600.0 * (hour + 1)) - max(begin_s, 3600.0 * hour)
                grams += (100.0 + 50.0 * (hour % 5)) * watts * max(0.0, lasting_s) / 3.6e6
        assert table.loc[name, "carbon_g"] == pytest.approx(grams, rel=1e-6)
    together = compare(bw.Platform.machines(16, 1, watts=200), workload, cap, carbon=carbon, workers=2)
    pd.testing.assert_frame_equal(alone.table, together.table)
    pd.testing.assert_frame_equal(alone.jobs, together.jobs)


@pytest.mark.parametrize("date", ["", "2024-07-01T00:00Z"])
def test_windows_by_hand(date):
    """Of three windows of 100 s each begins with empty hosts, at the power and the price of its own time.

    a and b (150 s and 80 s) are of the first, c of the second: it runs from 20 to 80 s of that, d of the third. The
    power of the second is that from 100 s on: 200 W for two of three machines.
    """
    lengths = {"submission_time_s": [0, 0, 120, 300], "length_s": [150, 80, 60, 50]}
    jobs = bw.Workload.from_frame(pd.DataFrame({"id": list("abcd"), **lengths, "hosts": [1, 2, 1, 3]}))
    power = bw.Series((0.0, 100.0, 200.0), (300.0, 200.0, 300.0), "power_w", date_s=date or None)
    price = pd.Series([1.0, 2.0, 3.0, 3.0], index=[0.0, 100.0, 200.0, 5000.0], name="price (EUR/kWh)")
    cases = {"a": Case("varcap"), "b": Case("powercap", {"response": "none"}, "none")}
    result = compare(MACHINES, jobs, power, cases, price=price, samples=3)
    assert result.table[["case", "window"]].values.tolist() == [[case, window] for case in "ab" for window in (1, 2, 3)]
    assert result.table["jobs_finished"].tolist() == [2, 1, 1] * 2
    own = result.jobs.set_index(["case", "job_id"])
    assert own.loc["a", "submission_time_s"].tolist() == [0.0, 0.0, 20.0, 100.0]
    assert own.loc["a", "window"].tolist() == [1, 1, 2, 3] and own["wait_s"].eq(0.0).all()
    free = result.table.set_index(["case", "window"]).loc["b"]
    # three machines on until the last end, at 100 W each: 150, 80 and 150 s
    assert free["energy_j"].tolist() == pytest.approx([45e3, 24e3, 45e3], abs=1.0)
    assert free["energy_above_cap_j"].tolist() == pytest.approx([100 * 50, 100 * 80, 0.0], abs=1.0)
    costs = [30e3 + 2 * 15e3, 2 * 24e3, 3 * 45e3]
    assert free["cost"].tolist() == pytest.approx([cost / 3.6e6 for cost in costs], abs=1e-4)
    assert "means over 3 windows" in repr(result)
    alone = compare(MACHINES, jobs, power, cases, price=price).table
    assert alone["jobs_finished"].tolist() == [4, 4] and alone["window"].tolist() == [1, 1]


def test_a_summary_pairs_samples_with_the_first_case():
    """Seeds of a window have one mean, 12 and 28 of b; its differences are 2 and 8. A slowdown is missing once."""
    rows = [("a", 1, 10.0, 1.0), ("a", 2, 20.0, 1.0), ("b", 1, 11.0, 2.0), ("b", 1, 13.0, 2.0), ("b", 2, 26.0, np.nan)]
    table = pd.DataFrame([*rows, ("b", 2, 30.0, np.nan)], columns=["case", "window", "mean_wait_s", "mean_slowdown"])
    summary = summary_of(table.assign(scheduler="x", seed=1)).loc["b"]
    assert (summary["mean_wait_s"], summary["mean_wait_s_se"]) == (20.0, 3.0) and np.isnan(summary["mean_slowdown"])


def hourly(days: int = 30) -> tuple[bw.Workload, bw.Series]:
    """A job each two hours, and a power that changes by the hour."""
    count = 12 * days
    jobs = {"submission_time_s": [7200 * n for n in range(count)], "length_s": [60] * count, "hosts": [1] * count}
    times = tuple(3600.0 * n for n in range(24 * days))
    return bw.Workload.from_frame(pd.DataFrame(jobs)), bw.Series(
        times, tuple(100.0 + n % 24 for n in range(len(times)))
    )


def test_a_window_may_begin_a_rounding_error_before_a_step():
    """30 days / 28 x 21 is 1944000 s less 2e-10, and the power has a step there."""
    case = {"a": Case("powercap", {"response": "none"})}
    result = compare(MACHINES, *hourly(), case, window=(0, 2592000), samples=28)
    assert len(result.jobs) == 360 and result.jobs["submission_time_s"].between(0.0, 2592000 / 28).all()


@pytest.mark.parametrize("option", ["capacity", "envelope"])
def test_a_case_has_no_series_of_its_own_beside_windows(option):
    cases = {"own": Case("varcap" if option == "capacity" else "powercap", {option: "constant:2"})}
    problem = f"case 'own': option '{option}' begins with the whole log, not with each window"
    with pytest.raises(InputError, match=problem):
        compare(MACHINES, *hourly(2), cases, samples=2)


def test_cases_so_far():
    """The comparison grows with each case, in the order of the cases, and names those that have not ended."""
    calls = []
    result = compare(
        MACHINES,
        FEW,
        FALLS,
        {"a": Case("varcap"), "b": Case("carbon"), "c": Case("powercap")},
        lenient=["b"],
        on_case=lambda label, so_far: calls.append((label, so_far())),
    )
    assert [(label, list(part.summary.index)) for label, part in calls] == [
        ("a", ["a"]),
        ("b", ["a"]),
        ("c", ["a", "c"]),
    ]
    assert dict(calls[0][1].errors) == dict.fromkeys("bc", "its runs have not all ended")
    assert calls[1][1].errors["b"] == result.errors["b"] != calls[0][1].errors["b"]
    pd.testing.assert_frame_equal(calls[-1][1].table, result.table)
    pd.testing.assert_frame_equal(calls[-1][1].jobs, result.jobs)


def test_kept_files_appear_as_runs_end(tmp_path):
    """Labels that would share files are refused; a case that fails leaves nothing, others stay."""
    cases = {"a": Case("varcap"), "a-seed1": Case("powercap")}
    with pytest.raises(InputError, match="case 'a-seed1': gives no file name of its own"):
        compare(MACHINES, FEW, FALLS, cases, seeds=(0, 1), keep=tmp_path / "x")
    with pytest.raises(InputError, match="case 'b'"):
        compare(MACHINES, FEW, FALLS, {"a": Case("varcap"), "b": Case("carbon")}, keep=tmp_path / "new" / "x")
    assert {path.name.partition("_")[0] for path in (tmp_path / "new").iterdir()} == {"x-a"}
    shutil.rmtree(tmp_path / "new")
    with pytest.raises(InputError, match=r"keep: .* is a folder"):
        compare(MACHINES, FEW, FALLS, {"a": Case("varcap")}, keep=tmp_path)
    result = compare(
        MACHINES, FEW, FALLS, {"a": Case("varcap"), "b": Case("carbon")}, lenient=["b"], keep=tmp_path / "x"
    )
    assert list(result.errors) == ["b"] and {path.name.partition("_")[0] for path in tmp_path.iterdir()} == {"x-a"}


def test_what_a_run_warns_of_is_said_with_its_case(caplog):
    """Also if it ran in another process; nothing that all share is said twice."""
    rows = {
        "id": ["a", "b"],
        "submission_time_s": [0, 0],
        "length_s": [10, 10],
        "hosts": [9, 9],
        "estimate_s": [20, 20],
    }
    jobs = bw.Workload.from_frame(pd.DataFrame(rows))
    logging.disable(logging.NOTSET)
    for workers in (1, 2):
        caplog.clear()
        result = compare(MACHINES, jobs, FALLS, {"x": Case("varcap"), "y": Case("varcap")}, workers=workers)
        texts = [record.getMessage() for record in caplog.records]
        assert [text.partition(":")[0] for text in texts] == ["cases 'x', 'y'"] * len(texts)
        assert "2 jobs can never run" in texts[0]
        assert list(result.remarks) == texts


def test_seeds_are_paired(tmp_path):
    workload, cap = busy()
    cases = {
        "lww": Case("varcap", {"termination": "lww"}),
        "random": Case("varcap", {"termination": "random"}),
        "own seed": Case("varcap", {"seed": 7}),
    }
    result = compare(bw.Platform.machines(16, 1, watts=200), workload, cap, cases, seeds=(1, 2, 3), keep=tmp_path / "x")
    files = [path.name.partition("_")[0] for path in tmp_path.glob("*_jobs.csv")]
    assert set(files) == {"x-own-seed", *(f"x-{label}-seed{n}" for label in ("lww", "random") for n in (1, 2, 3))}
    assert len(result.table) == 9 and [result.cases[label].random for label in cases] == [True, True, False]
    by_seed = result.table.pivot(index="seed", columns="case", values="mean_slowdown").loc[[1, 2, 3]]
    assert by_seed["lww"].nunique() == 1 and result.summary.loc["lww", "mean_slowdown_se"] == 0.0
    difference = by_seed["random"] - by_seed["lww"]
    error = np.std(difference, ddof=1) / np.sqrt(3)
    # figures have 6 decimals
    assert result.summary.loc["random", "mean_slowdown_se"] == pytest.approx(error, rel=0.0, abs=5e-7)
    result.save(tmp_path / "cmp")
    page = re.sub("<[^>]+>", "", (tmp_path / "cmp.html").read_text())
    assert "“lww”" in page and "± its standard error over 3 seeds" in page
    # the powers are those of the first seed
    energy_j = result.table.set_index(["case", "seed"])["energy_j"]
    assert result.traces["random"].energy_j == pytest.approx(energy_j["random", 1])


def test_a_signal_that_ends_before_the_run(caplog):
    """Its figures alone are empty."""
    logging.disable(logging.NOTSET)
    price = pd.Series([1.0, 2.0], index=[0.0, 60.0], name="price (EUR/kWh)")
    metrics = bw.simulate(MACHINES, FEW, "varcap", envelope=FALLS, price=price).metrics
    assert metrics["cost"] is None and metrics["jobs_finished"] == 3 and "FILE,repeat=yes" in caplog.text


def test_a_capacity_is_an_envelope():
    one = compare(MACHINES, FEW, FALLS, {"x": Case("varcap")})
    two = compare(MACHINES, FEW, cases={"x": Case("varcap")}, capacity=bw.Series((0.0, 100.0), (3.0, 2.0)))
    pd.testing.assert_frame_equal(one.table[two.table.columns], two.table)


def test_the_mean_of_a_window_is_its_own():
    """Three machines, and one: no machine is on in neither window."""
    workload, power = hourly(2)[0], bw.Series((0.0, 86400.0), (300.0, 100.0), "power_w")
    result = compare(MACHINES, workload, power, {"mean": Case("varcap", {}, "mean")}, window=(0, 172800), samples=2)
    assert result.table["unused_j"].notna().all() and result.table["jobs_finished"].tolist() == [12, 12]


def test_what_cannot_run_is_said():
    job = {"id": 1, "subtime": 0, "res": 1, "walltime": 200, "profile": "w"}
    profiles = {"w": {"type": "composed", "repeat": 1, "seq": ["x"]}, "x": {"type": "delay", "delay": 100}}
    parts = parse_workload({"nb_res": 3, "jobs": [job], "profiles": profiles}, "w0", "here")
    result = compare(MACHINES, parts, FALLS)
    assert list(result.errors) == ["checkpoint", "carbon"] and "is no delay" in result.errors["checkpoint"]
    with pytest.raises(InputError, match="is no delay"):
        compare(MACHINES, parts, FALLS, {"mine": Case("checkpoint")})
    with pytest.raises(InputError, match="no scheduler 'all'"):
        compare(MACHINES, FEW, FALLS, "all")


def test_a_notebook_shows_the_table_once(monkeypatch):
    """A console of rich in a notebook displays what it prints, and its text is lost."""
    result = compare(MACHINES, FEW, FALLS, {"mine": Case("varcap")})
    alone = repr(result)
    monkeypatch.setattr("rich.console._is_jupyter", lambda: True)
    assert repr(result) == alone and "mine" in alone


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        ({"window": (0, 40)}, "is not cut to the window: job 'c' is submitted at 50 s; give the window to"),
        ({"seeds": 3}, "seeds: must be a list of whole numbers, got 3"),
        ({"seeds": [1, 1]}, "seeds: has a seed twice"),
        ({"samples": 60}, "window 2 of 60, .* has no job; take fewer samples"),
        ({"cases": None}, "cases: must be a text such as 'systems', a list of cases"),
        ({"envelope": ""}, "envelope '': names no file"),
        ({"envelope": None}, "case 'x': option 'capacity': the scheduler needs one"),
    ],
)
def test_odd_arguments_are_one_line(arguments, line):
    inputs = {"cases": {"x": Case("varcap")}, "envelope": FALLS} | arguments
    with pytest.raises(InputError, match=line):
        compare(MACHINES, FEW, **inputs)
