"""Job tables: small ones with the documented columns, as parquet and as CSV."""

from __future__ import annotations

import sys
import warnings
from pathlib import Path

import pandas as pd
import pytest
from files_of_tests import refusal
from tables_of_jobs import core_of, more_of

from batwatt.errors import MissingExtraError
from batwatt.inputs.batch_logs import LogOptions
from batwatt.inputs.convert import format_of, read_trace
from batwatt.inputs.formats import _parts

PM100 = pd.DataFrame(
    {
        "job_id": [11, 12, 13, 14],
        "job_state": ["COMPLETED", "TIMEOUT", "COMPLETED", "RUNNING"],
        "submit_time": pd.to_datetime(["2020-05-01 12:00:00", "2020-05-01 11:00:00"] * 2).tz_localize("UTC"),
        "start_time": pd.to_datetime(["2020-05-01 12:30:00", "2020-05-01 11:00:20"] * 2).tz_localize("UTC"),
        "end_time": pd.to_datetime(["2020-05-01 13:30:00", "2020-05-01 11:01:20"] * 2).tz_localize("UTC"),
        "run_time": [3600, 60, 0, 60],
        "time_limit": ["90", "INFINITE", "90", "90"],
        "num_cores_alloc": [256, 8, 8, 8],
        "num_nodes_alloc": [2, 1, 1, 1],
        "user_id": [7, 8, 8, 8],
        "group_id": [1, 1, 1, 1],
        "partition": ["a", "b", "b", "b"],
        "mem_alloc": [1, 1, 1, 1],
        "node_power_consumption": [[1000, 1500, 1100], [], [5], [5]],
    }
)
FDATA = pd.DataFrame(
    {
        "jid": ["x1", "x2", "x3"],
        "usr": ["u1", "u2", "u2"],
        "adt": ["2023-01-01 00:00:00", "2023-01-01 00:00:10", "2023-01-01 00:00:10"],
        "sdt": ["2023-01-01 00:05:00", "2023-01-01 00:00:10", None],
        "edt": ["2023-01-01 00:06:40", "2023-01-01 00:00:40", None],
        "duration": [100.0, float("nan"), float("nan")],
        "elpl": [3600.0, 0.0, 60.0],
        "cnumat": [96, 0, 48],
        "cnumr": [96, 24, 48],
        "nnuma": [2, 1, 1],
        "avgpcon": [120.5, float("nan"), 99.0],
        "exit state": ["completed", "failed", "failed"],
        "embedding": [[0.1], [0.2], [0.3]],
    }
)


def written(frame: pd.DataFrame, folder: Path, name: str) -> Path:
    path = folder / name
    if name.endswith(".parquet"):
        frame.to_parquet(path)
    else:
        frame.to_csv(path, index=False)
    return path


FORMATS = pytest.mark.parametrize("name", ["jobs.parquet", "jobs.csv"])


@FORMATS
def test_pm100(tmp_path: Path, name: str, caplog):
    path = written(PM100, tmp_path, name)
    assert format_of(path) == "table"
    # the first submission is that of 12
    first, second = read_trace(path)
    assert core_of(first) == ("11", 3600, 3600, 256, 5400)
    # samples of the whole job, whatever its nodes; their variance is (200^2 + 300^2 + 100^2) / 3
    power = {"power_w": 1200, "power_std_w": 216.02469, "power_max_w": 1500}
    labels = {"user": "7", "group": "1", "queue": "a"}
    assert more_of(first) == {"start_s": 5400, **power, **labels}
    assert core_of(second) == ("12", 0, 60, 8, None)
    assert more_of(second) == {"start_s": 20, "user": "8", "group": "1", "queue": "b"}
    assert f"{path}: 2 jobs; 2 of 4 lines of jobs are left out: 1 running, 1 never ran" in caplog.text
    assert [job["hosts"] for job in read_trace(path, log=LogOptions(width="nodes"))] == [2, 1]


@FORMATS
def test_fdata(tmp_path: Path, name: str, caplog):
    path = written(FDATA, tmp_path, name)
    first, second = read_trace(path)
    assert core_of(first) == ("x1", 0, 100, 96, 3600)
    # the mean of a node, on two
    assert more_of(first) == {"start_s": 300, "power_w": 241, "user": "u1"}
    # cores as requested, run time from start to end
    assert core_of(second)[1:] == (10, 30, 24, None)
    assert more_of(second) == {"start_s": 10, "user": "u2"}
    assert "2 jobs; 1 of 3 lines of jobs are left out: 1 without a run time" in caplog.text


EAGLE = """\
job_id,user,account,partition,qos,wallclock_req,nodes_req,processors_req,submit_time,start_time,end_time,run_time,state
5,ann,ice,short,high,7200.0,2,36,2019-01-01 08:00:00,2019-01-01 08:10:00,2019-01-01 09:10:00,3600.0,COMPLETED
6,bob,sun,long,normal,600.0,1,1,2019-01-01 08:05:00,2019-01-01 08:05:10,2019-01-01 08:06:10,60.0,TIMEOUT
6,bob,sun,long,normal,600.0,1,1,2019-01-01 08:05:00,2019-01-01 08:05:10,2019-01-01 08:06:10,60.0,COMPLETED
"""


def test_eagle(tmp_path: Path):
    path = tmp_path / "eagle.csv"
    path.write_text(EAGLE)
    first, second, third = read_trace(path, log=LogOptions(width="nodes"))
    assert core_of(first)[1:] == (0, 3600, 2, 7200)
    assert more_of(first) == {"start_s": 600, "user": "ann", "group": "ice", "queue": "short", "qos": "high"}
    # tasks of an array, also those that started together
    assert (second["id"], third["id"], third["submission_time_s"], third["start_s"]) == ("6", "6-2", 300, 310)
    assert next(iter(read_trace(path)))["hosts"] == 36


def test_opendc(tmp_path: Path):
    submission = [1_665_093_600_000, 1_665_093_660_500]
    columns = {"id": [7, 9], "submission_time": submission, "duration": [27_930_000, 500], "cpu_count": [16, 2]}
    frame = pd.DataFrame({**columns, "cpu_capacity": 33_600.0, "deferrable": True})
    table = read_trace(written(frame, tmp_path, "tasks.parquet"))
    assert [(job["id"], job["submission_time_s"], job["length_s"], job["hosts"], more_of(job)) for job in table] == [
        ("7", 0, 27_930, 16, {}),
        ("9", 60.5, 0.5, 2, {}),
    ]
    assert table.origin_s == 1_665_093_600


@pytest.mark.parametrize(
    "name,content,message",
    [
        ("jobs.parquet", b"PAR1 and nothing", "is not parquet"),
        ("jobs.parquet", None, "lacks the columns of PM100, F-DATA, Eagle, OpenDC; it has jid, usr"),
        ("jobs.csv", b"jid,adt,cnumr\n", "has no rows"),
        ("jobs.csv", b"jid,adt,cnumr\n1,2023-01-01,4\n", "no job that ran"),
        ("jobs.csv", b"jid,adt,cnumr\n1,2,3,4,5\n1\n1,2,3,4,5,6\n", "is not CSV"),
    ],
)
def test_bad_tables(tmp_path: Path, name: str, content: bytes | None, message: str):
    path = tmp_path / name
    if content is None:
        FDATA.drop(columns="adt").to_parquet(path)
    else:
        path.write_bytes(content)
    line = refusal(read_trace, path)
    assert line.startswith(f"{path}: ") and message in line


DAY = pd.to_datetime(["2020-05-01"] * 4)


@pytest.mark.parametrize(
    "column,cells",
    [
        ("run_time", DAY),
        ("num_cores_alloc", [[8]] * 4),
        ("submit_time", [["2020-05-01"]] * 4),
        ("node_power_consumption", DAY),
        ("node_power_consumption", [[[1000.0]]] * 4),
    ],
)
def test_columns_of_other_types(tmp_path: Path, column: str, cells):
    line = refusal(read_trace, written(PM100.assign(**{column: cells}), tmp_path, "jobs.parquet"))
    assert f"jobs.parquet: column '{column}' has the type " in line and "; numbers or texts are read" in line


@FORMATS
def test_samples_that_are_no_power(tmp_path: Path, name: str):
    cells = [[1000.0, float("inf"), float("nan"), -7.0, 1400.0], [], [], []]
    # the names of an older release
    names = {"node_power_consumption": "power_consumption", "num_cores_alloc": "num_cpus_alloc"}
    frame = PM100.assign(node_power_consumption=cells).rename(columns=names)
    [first, _] = read_trace(written(frame, tmp_path, name))
    assert (first["power_w"], first["power_max_w"]) == (1200, 1400)
    path = written(PM100.assign(node_power_consumption=[[1e308, 1e308], [], [], []]), tmp_path, name)
    assert f"{name}: a power of 1e+308 W is larger than 1e+15 W" in refusal(read_trace, path)


@pytest.mark.parametrize("commas", [1, 5_000])
def test_rows_longer_than_the_header(tmp_path: Path, commas: int):
    # pandas would make an index of the first cells: columns shift, and many take minutes
    head, *rows = PM100.assign(node_power_consumption=5).to_csv(index=False).splitlines()
    path = tmp_path / "jobs.csv"
    path.write_text("\n".join([head, *(row + "," * commas for row in rows)]))
    assert "jobs.csv: all rows have more cells than line 1 names columns" in refusal(read_trace, path)
    path.write_text("\n".join([head, rows[0], rows[1] + "," * commas]))
    line = refusal(read_trace, path)
    assert "jobs.csv: is not CSV" in line and "line 3" in line


def test_a_reading_that_is_given_up_leaves_the_filters_of_warnings(tmp_path: Path):
    """Restored by it at any later time, they let longer rows of another table pass."""
    filters = list(warnings.filters)
    parts = _parts(written(FDATA, tmp_path, "jobs.csv"))
    next(parts)
    assert list(warnings.filters) == filters


def test_without_pyarrow(tmp_path: Path, monkeypatch):
    path = written(FDATA, tmp_path, "jobs.parquet")
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(MissingExtraError, match=r"pip install -e '\.\[study\]' in the clone"):
        read_trace(path)
    assert len(read_trace(written(FDATA, tmp_path, "jobs.csv.gz"))) == 2
