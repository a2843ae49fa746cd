"""What the Python API takes: tables, numbers of numpy; and one line for what is wrong."""

from __future__ import annotations

import re
import sys

import pandas as pd
import pytest
from cli_house import ROOT

sys.path.insert(0, str(ROOT / "tests"))

from fuzz.api import calls, write_files

import batwatt as bw
from batwatt.errors import BatwattError, InputError

GOOGLE, GRID = ROOT / "workloads" / "google-288-00.json", ROOT / "platforms" / "grid5000.xml"
SIGNAL = ROOT / "power_profiles" / "carbon" / "carbon-hourly.csv"


def test_a_workload_of_a_table():
    frame = pd.DataFrame({"submission_time_s": [0, 10, 20.5], "length_s": [100, 200, 50.25], "hosts": [4, 8, 2]})
    workload = bw.Workload.from_frame(frame)
    assert workload.frame()["submission_time_s"].tolist() == [0.0, 10.0, 20.5] and workload.nb_res == 8
    # 2 needs all hosts from 100 s on; 3 has no request, and ends before that by its run time
    result = bw.simulate(bw.Platform.machines(2, 4), workload, "easyBackfill")
    assert sorted(zip(result.jobs["job_id"], result.jobs["finish_time_s"], strict=True)) == [
        ("1", 100.0), ("2", 300.0), ("3", 70.75),
    ]  # fmt: skip
    part = bw.Workload.from_frame(frame, window=(15.0, 30.0), hosts=9)
    assert (len(part.jobs), part.nb_res) == (3, 9) and part.jobs[0].submit_time_s == 15.0


REFUSED = {
    "watts: must be a number, got '5'": lambda: bw.Platform.machines(4, watts="5"),
    "Series: a series needs at least one row": lambda: bw.Series((), ()),
    "Series: a series repeats rows after its last time": lambda: bw.Series((0, 10), (1, 2), loop=0, period_s=5),
    "simulate: missing a required argument: 'workload'; the arguments are platform": lambda: bw.simulate(GRID),
    "simulate: got an unexpected keyword argument 'envelop'": lambda: bw.simulate(GRID, GOOGLE, envelop="x"),
    "unit: is for traces of jobs": lambda: bw.simulate(GRID, GOOGLE, unit="h"),
    "prefix: '.' is a folder": lambda: bw.simulate(GRID, GOOGLE, options={"response": "none"}).save("."),
    "case 'a': must be a Case, got dict": lambda: bw.compare(GRID, GOOGLE, None, {"a": {"scheduler": "x"}}),
    "samples: must be a whole number in 1..1000, got 0": lambda: bw.compare(GRID, GOOGLE, samples=0),
    "envelope: ": lambda: bw.optimum(GRID, GOOGLE, None),
    "a price": lambda: bw.plan_carbon(ROOT / "workloads/carbon/job.json", SIGNAL, deadline_s=9, price_weight=1),
    "workers": lambda: bw.study("x.yaml", workers=0),
    "no.xml: cannot be read": lambda: bw.simulate("no.xml", GOOGLE),
    "Platform('x'): is made of fields, not of a file; call Platform.read(path) or ": lambda: bw.Platform("x"),
    "Workload('x.swf'): is made of fields, not of a file; call Workload.read(path)": lambda: bw.Workload("x.swf"),
    "Series('x.csv'): is made of fields, not of a file; call read_series(path)": lambda: bw.Series("x.csv"),
    "case 'a': scheduler: no scheduler 'powercapp'; did you mean 'powercap'?": lambda: bw.compare(
        GRID, GOOGLE, 900, {"a": bw.Case("powercapp")}
    ),
    "scheduler: no scheduler 'varcapp'": lambda: bw.simulate(GRID, GOOGLE, "varcapp"),
    "envelope: must be >= 0 W, got -5": lambda: bw.simulate(GRID, GOOGLE, envelope=-5),
    "envelope: must be a file or a series, got True": lambda: bw.simulate(GRID, GOOGLE, envelope=True),
    "envelope: must be a number, got nan": lambda: bw.simulate(GRID, GOOGLE, envelope=float("nan")),
    "the series of envelope: its rows go from 2024-01-01T00:00Z": lambda: bw.simulate(
        GRID, GOOGLE, envelope=pd.Series([1.0], pd.to_datetime(["2024-01-01"])), begin="2024-03-01"
    ),
    "dict is not a scheduler": lambda: bw.simulate(GRID, GOOGLE, dict),
    "window: is not (begin, end) in s (end_s must be >= begin_s": lambda: bw.simulate(GRID, GOOGLE, window=(5, 1)),
    "bounds: is not (least, greatest), got (3.0, 1.0)": lambda: bw.Series((0,), (2,), bounds=(3, 1)),
    "'replay' follows no capacity": lambda: bw.simulate(GRID, GOOGLE, "replay", capacity=bw.Series((0,), (2,))),
    "capacity: at 0 s: machines must be a whole number, got 2.5": lambda: bw.simulate(
        bw.Platform.machines(4), GOOGLE, capacity=bw.Series((0,), (2.5,))
    ),
}


@pytest.mark.parametrize("said", REFUSED)
def test_arguments_of_a_wrong_kind(said):
    with pytest.raises(BatwattError, match=re.escape(said)) as error:
        REFUSED[said]()
    assert "\n" not in str(error.value) and "--" not in str(error.value)


# every argument -------------------------------------------------------------------------------------------------------


def test_every_argument_is_refused_by_its_name(tmp_path, monkeypatch):
    """An object of no kind, as each argument of each function: one line that names the argument."""
    write_files(tmp_path)
    monkeypatch.chdir(tmp_path)
    problems = []
    for name, (function, arguments) in calls().items():
        for argument in arguments:
            with pytest.raises(InputError) as error:
                function(**{**arguments, argument: object()})
            if argument.removesuffix("s") not in str(error.value) or "object" not in str(error.value):
                problems.append(f"{name}: {argument}: {error.value}")
    assert problems == []


@pytest.mark.parametrize("place", ["a\0b", "\ud800", "/proc/self/x"])
def test_places_that_no_file_can_have(place):
    result = bw.simulate(bw.Platform.machines(20), GOOGLE, options={"response": "none"})
    with pytest.raises(InputError, match=r"cannot be written|no file can be called"):
        result.save(place)
    with pytest.raises(InputError):
        bw.Workload.read(place + ".json")


# tables ---------------------------------------------------------------------------------------------------------------


def same(one, other):
    assert one.jobs == other.jobs and one.nb_res == other.nb_res and one.recorded == other.recorded
    assert one.profiles == other.profiles and one.raw_profiles == other.raw_profiles and one.source == other.source


def test_the_table_of_a_trace_makes_the_same_trace(tmp_path):
    rows = {
        "id": ["a", "b", "c"], "submission_time_s": [0, 40, 90], "length_s": [100, 20.5, 7], "hosts": [2, 1, 4],
        "estimate_s": [120, None, 9], "memory": [1.5, 2, 3], "user": ["ann", None, "bob"],
        "depends_on": [None, ["a"], None],
    }  # fmt: skip
    for window in (None, (50, 200)):
        load = bw.Workload.from_frame(pd.DataFrame(rows), window=window, hosts=5)
        assert window is None or load.jobs[0].raw["length_s"] == 100
        same(bw.Workload.from_frame(load.frame()), load)


def test_the_table_of_a_dated_trace_keeps_the_date(tmp_path):
    swf = "1 1720000000 0 100 1 -1 -1 1 -1 -1 1 1 1 -1 1 -1 -1 -1\n"
    (tmp_path / "a.swf").write_text(swf)
    frame = bw.Workload.read(tmp_path / "a.swf").frame()
    assert bw.Workload.from_frame(frame).begin == "2024-07-03T09:46:40Z"
    frame.attrs["begin"] = "soon"
    with pytest.raises(InputError, match="begin: 'soon' is not a date"):
        bw.Workload.from_frame(frame)


def test_a_table_is_a_workload_everywhere(tmp_path):
    frame = pd.DataFrame({"submission_time_s": [0, 60, 90], "length_s": [600, 60, 100], "hosts": [4, 8, 2]})
    hosts, cap = bw.Platform.read(GRID), bw.Series((0, 3600), (4000, 3500))
    for name, load in (("x", bw.Workload.from_frame(frame)), ("y", frame)):
        bw.simulate(hosts, load, options={"response": "none"}).save(tmp_path / name)
    for stem in ("jobs", "schedule", "machine_states", "consumed_energy", "pstate_changes"):
        assert (tmp_path / f"x_{stem}.csv").read_bytes() == (tmp_path / f"y_{stem}.csv").read_bytes()
    assert len(bw.compare(hosts, frame, cap, {"a": bw.Case("varcap")}).jobs) == 3
    assert bw.optimum(hosts, frame, cap, effort=1).metrics["jobs_finished"] == 3
    with pytest.raises(InputError, match=r"google-288-00\.json: is the table of a Batsim workload, without lengths"):
        bw.simulate(hosts, bw.Workload.read(GOOGLE).frame())
