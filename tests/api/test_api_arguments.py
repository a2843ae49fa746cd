"""What the Python API takes: tables, numbers of numpy; and one line for what is wrong."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from cli_house import ROOT

import batwatt as bw
from batwatt.errors import BatwattError, InputError

GOOGLE, GRID = ROOT / "workloads" / "google-288-00.json", ROOT / "platforms" / "grid5000.xml"
SIGNAL = ROOT / "power_profiles" / "carbon" / "carbon-hourly.csv"


def test_a_workload_of_a_table():
    frame = pd.DataFrame({"submission_time_s": [0, 10, 20.5], "length_s": [100, 200, 50.25], "hosts": [4, 8, 2]})
    workload = bw.Workload.from_frame(frame)
    assert workload.frame()["submission_time_s"].tolist() == [0.0, 10.0, 20.5] and workload.nb_res == 8
    # 2 needs all hosts; 3 has no walltime, so it is not backfilled
    result = bw.simulate(bw.Platform.machines(2, 4), workload, "easyBackfill")
    assert sorted(zip(result.jobs["job_id"], result.jobs["finish_time_s"], strict=True)) == [
        ("1", 100.0), ("2", 300.0), ("3", 350.25),
    ]  # fmt: skip
    part = bw.Workload.from_frame(frame, window=(15.0, 30.0), hosts=9)
    assert (len(part.jobs), part.nb_res) == (3, 9) and part.jobs[0].submit_time_s == 15.0


@pytest.mark.parametrize(
    ("column", "value", "message"),
    [
        ("hosts", 2.5, "a table: row 2: hosts must be a whole number, got 2.5"),
        ("length_s", "long", "row 2: length_s must be a number, got 'long'"),
        ("submission_time_s", float("nan"), "row 2: submission_time_s must be a finite number, got nan"),
        ("use", float("inf"), "row 2: use must be a finite number, got inf"),
    ],
)
def test_bad_cells(column, value, message):
    rows = [{"submission_time_s": 0, "length_s": 9, "hosts": 1, "use": 0.5} for _ in range(3)]
    rows[1][column] = value
    with pytest.raises(InputError, match=message):
        bw.Workload.from_frame(pd.DataFrame(rows))


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"id": ["x,a", "b"]}, "row 1: id must be a text without quotes, commas"),
        ({"id": ["a", None]}, "row 2: id must be a text"),
        ({"id": ["1", "2"], "depends_on": [None, "1"]}, "row 2: depends_on must be a list of ids, got '1'"),
    ],
)
def test_ids_of_a_table(columns, message):
    frame = pd.DataFrame({"submission_time_s": [0, 10], "length_s": [100, 200], "hosts": [1, 2]})
    with pytest.raises(InputError, match=message):
        bw.Workload.from_frame(frame.assign(**columns))


@pytest.mark.parametrize("given", [np.int64(4), np.float64(4.0)])
def test_numbers_of_numpy(given):
    if isinstance(given, np.integer):
        assert len(bw.Platform.machines(given, np.int64(2))) == 8
    assert bw.Platform.machines(2, watts=given).hosts[0].pstates[0].idle_w == 4.0
    assert bw.Series(np.array([0.0, 1.0]), np.array([2.0, 3.0])).values == (2.0, 3.0)


@pytest.mark.parametrize(
    ("ask", "message"),
    [
        (lambda: bw.Platform.machines("4"), "count: it must be a whole number >= 1, got '4'"),
        (lambda: bw.Platform.machines(4, watts="5"), "watts: must be a number, got '5'"),
        (lambda: bw.Series((), ()), "Series: a series needs at least one row"),
        (lambda: bw.Series(0, 1), "Series: "),
        (lambda: bw.Workload.read(GOOGLE, unit="min"), "unit: 'min' is not known"),
        (lambda: bw.Workload.from_frame(None), "a table: is no DataFrame"),
        (lambda: bw.simulate(bw.Platform.machines(4), None), "workload: must be a path or Workload"),
        (
            lambda: bw.simulate(bw.Platform.machines(4), GOOGLE, envelope=500),
            "envelope: must be a path or Series, got 500",
        ),
        (lambda: bw.simulate(bw.Platform.machines(4), GOOGLE, options="order=asc"), "options: must be a dict"),
        (lambda: bw.simulate(bw.Platform.machines(4), GOOGLE, long_s=0), "long_s: must be > 0, got 0"),
        (lambda: bw.compare({"a": {"nope": 1}}, platform=GRID, workload=GOOGLE), "case 'a': no argument 'nope'"),
        (lambda: bw.compare({"a": {}}, platform=GRID), "case 'a': has no workload"),
        (lambda: bw.plan_carbon(ROOT / "x.json", SIGNAL, deadline_s=9.0, price_weight=1.0), "without a price"),
        (lambda: bw.sweep("x.yaml", workers=0), "x.yaml|workers"),
    ],
)
def test_arguments_of_a_wrong_kind(ask, message):
    with pytest.raises(InputError, match=message):
        ask()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"platform": "no.xml"}, "no.xml: cannot be read"),
        ({"scheduler": "powercp"}, "did you mean 'powercap'"),
        ({"scheduler": dict}, "dict is no scheduler"),
        ({"seed": 3}, "seed: the scheduler Powercap has no such option"),
        ({"carbon": "no.csv"}, "no.csv: cannot be read"),
        ({"price": 3}, "price: must be a file or a signal, got 3"),
        ({"engine": "wire"}, "engine: 'wire' does not run in this process"),
        ({"engine": "nominal"}, "runs the scheduler riskaware only"),
        ({"window": (5, 1)}, r"window: is not \(begin, end\) in s \(end_s must be >= begin_s"),
        ({"scheduler": "replay", "capacity": bw.Series((0,), (2,))}, "the scheduler 'replay' follows no capacity"),
        ({"capacity": bw.Series((0,), (2.5,))}, "capacity: at 0 s: machines must be a whole number, got 2.5"),
        (
            {"scheduler": "riskaware", "capacity": bw.Series((0,), (2.5,))},
            "capacity: at 0 s: machines must be a whole number, got 2.5",
        ),
        ({"options": {"order": "ascc"}}, "order"),
    ],
)
def test_what_is_wrong_is_one_line(arguments, message):
    given = {"platform": bw.Platform.machines(4), "workload": GOOGLE, **arguments}
    with pytest.raises(BatwattError, match=message) as caught:
        bw.simulate(**given)
    assert "\n" not in str(caught.value)
