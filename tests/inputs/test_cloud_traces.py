"""Traces of Azure and Borg: by hand, in parts of any size, and what is refused."""

from __future__ import annotations

import gzip
import json
from collections import Counter
from pathlib import Path

import pandas as pd
import pytest
from files_of_tests import refusal, written

from batwatt.inputs import cloud as chunks
from batwatt.inputs.cloud import COLUMNS, azure_jobs, borg_jobs

VMS = """\
a,s,d,0,600,90,10,50.5,Interactive,4,32
b,s,d,300,300,90,10,0,Unknown,>24,>64
c,s,d,600,2591700,90,10,100,Delay-insensitive,1,1.75
d,s,d,900,4500,101,10,101.5,Unknown,2,3.5
"""
ROWS = [
    (0, 600, 4, 32.0, 0.505),
    (300, 300, 32, 128.0, 0.001),
    (600, 2_591_100, 1, 1.75, 1.0),
    (900, 3600, 2, 3.5, 1.0),
]


def read_azure(path: Path) -> tuple[list[tuple], Counter[str]]:
    notes: Counter[str] = Counter()
    table = pd.concat(azure_jobs(path, notes))
    assert list(table.columns) == ["arrival_time", "length", "cpus", "memory", "use"]
    return list(table.itertuples(index=False, name=None)), notes


@pytest.mark.parametrize(("rows", "header"), [(1, ""), (3, ",".join(COLUMNS) + "\n"), (1000, "")])
def test_by_hand(tmp_path: Path, rows, header, monkeypatch):
    monkeypatch.setattr(chunks, "ROWS", rows)
    path = tmp_path / "vmtable.csv.gz"
    path.write_bytes(gzip.compress((header + VMS).encode()))
    jobs, notes = read_azure(path)
    assert jobs == ROWS
    assert notes == {
        "ran less than 5 min, and count as 5 min": 1,
        "ran before the trace or after it, kept with what it tells": 2,
    }


@pytest.mark.parametrize(
    "line,message",
    [
        ("x,s,d,5,now,9,1,5,U,4,32", "line 5: vmdeleted must be a whole number below 2^63, got 'now'"),
        ("x,s,d,5,4,9,1,5,U,4,32", "line 5: a VM must satisfy 0 <= vmcreated <= vmdeleted, got 5 and 4"),
        ("x,s,d,5,6,9,1,much,U,4,32", "line 5: p95maxcpu must be a number, got 'much'"),
        ("x,s,d,5,6,9,1,5,U,few,32", "line 5: vmcorecountbucket must be a number > 0 or a bucket"),
        ("x,s,d,5,6,9,1,5,U,4,0", "line 5: vmmemorybucket must be a number > 0 or a bucket such as >24, got '0'"),
    ],
)
def test_refusals(tmp_path: Path, line, message, monkeypatch):
    path = written(tmp_path, VMS + line + "\n" + VMS, "vmtable.csv")
    for rows in (1, 1000):
        monkeypatch.setattr(chunks, "ROWS", rows)
        assert refusal(read_azure, path).startswith(f"{path} {message}")


def test_not_a_vmtable(tmp_path: Path):
    for name, text, said in (
        ("a.csv", "", "is empty"),
        ("a.csv", "1,2,3\n", "line 1: has 3 fields, the table 11"),
    ):
        assert said in refusal(read_azure, written(tmp_path, text, name))
    # the first bytes count, not the name
    assert read_azure(written(tmp_path, VMS, "plain.csv.gz"))[0] == ROWS
    assert "cannot be read" in refusal(read_azure, tmp_path / "nowhere.csv")


S = 1_000_000
NEVER = 2**63 - 1
HEADER = "time,type,collection_id,scheduling_class,collection_type,instance_index,machine_id,{cpus},{memory}"
# (time, type, collection, collection_type, instance, cpus, memory); the trace begins at 600 s
EVENTS = [
    (0, "SCHEDULE", 1, 0, 0, 0.05, 0.02),
    (0, "SUBMIT", 2, 0, 0, 0.001, 0.01),
    (0, "SCHEDULE", 9, 1, 0, 1.0, 1.0),
    (610 * S, "SCHEDULE", 2, 0, 0, 0.001, 0.01),
    (620 * S, "SUBMIT", 3, 0, 5, 0.1, 0.3),
    (625 * S, "QUEUE", 3, 0, 5, 0.1, 0.3),
    (640 * S, "SCHEDULE", 3, 0, 5, None, None),
    (650 * S, "EVICT", 3, 0, 5, 0.1, 0.3),
    (660 * S, "FINISH", 1, 0, 0, 0.05, 0.02),
    (670 * S, "SUBMIT", 3, 0, 5, 0.2, 0.4),
    (680 * S, "SCHEDULE", 3, 0, 5, 0.2, 0.4),
    (681 * S, "UPDATE_RUNNING", 3, 0, 5, 0.4, 0.4),
    (690 * S + 1, "FINISH", 3, 0, 5, 0.2, 0.4),
    (700 * S, "SCHEDULE", 4, 0, 0, 0.0334, 0.1),
    (700 * S, "FAIL", 4, 0, 0, 0.0334, 0.1),
    (710 * S, "SUBMIT", 5, 0, 0, 0.1, 0.1),
    (720 * S, "KILL", 5, 0, 0, 0.1, 0.1),
    (730 * S, "SCHEDULE", 6, 0, 0, 0.1, 0.1),
    (740 * S, "SCHEDULE", 6, 0, 0, 0.1, 0.1),
    (760 * S, "LOST", 6, 0, 0, 0.1, 0.1),
    (NEVER, "FINISH", 2, 0, 0, 0.001, 0.01),
]
CODES = ["SUBMIT", "QUEUE", "ENABLE", "SCHEDULE", "EVICT", "FAIL", "FINISH", "KILL", "LOST", "-", "UPDATE_RUNNING"]
CUT = "ran before the trace or after it, kept with what it tells"
# arrival, length, cores of 1/60, memory: 0.05 -> 3, 0.1 -> 6, 0.2 -> 12, 0.001 -> 1
RUNS = [
    (20.0, 10.0, 6, 0.3),
    (0.0, 60.0, 3, 0.02),
    (70.0, 10.000001, 12, 0.4),
    (130.0, 10.0, 6, 0.1),
    (140.0, 20.0, 6, 0.1),
    (0.0, 150.0, 1, 0.01),
]


def as_csv(folder: Path, codes: bool = False, dots: str = ".", events=EVENTS) -> Path:
    lines = [HEADER.format(cpus=f"resource_request{dots}cpus", memory=f"resource_request{dots}memory")]
    for time, kind, collection, collection_type, index, cpus, memory in events:
        cells = (time, CODES.index(kind) if codes else kind, collection, 2, collection_type, index, 7, cpus, memory)
        lines.append(",".join("" if cell is None else str(cell) for cell in cells))
    path = folder / "instance_events.csv"
    path.write_text("\n".join(lines) + "\n")
    return path


def as_json(folder: Path) -> Path:
    lines = []
    for time, kind, collection, collection_type, index, cpus, memory in EVENTS:
        row = {"time": str(time), "type": kind, "collection_id": str(collection), "instance_index": index}
        row |= {"collection_type": collection_type}
        if cpus is not None:
            row["resource_request"] = {"cpus": cpus, "memory": memory}
        lines.append(json.dumps(row))
    path = folder / "instance_events-000.json.gz"
    path.write_bytes(gzip.compress("\n".join(lines).encode()))
    return path


def read(path: Path, collections: Path | None = None) -> tuple[pd.DataFrame, Counter[str]]:
    notes: Counter[str] = Counter()
    table = pd.concat(borg_jobs(path, collections, notes), ignore_index=True)
    return table, notes


@pytest.mark.parametrize(
    ("rows", "form"), [(1, "names"), (4, "names"), (1000, "names"), (4, "codes"), (1000, "underscores"), (4, "json")]
)
def test_by_hand_of_borg(tmp_path: Path, form, rows, monkeypatch):
    monkeypatch.setattr(chunks, "ROWS", rows)
    dots = "_" if form == "underscores" else "."
    path = as_json(tmp_path) if form == "json" else as_csv(tmp_path, form == "codes", dots)
    table, notes = read(path)
    assert list(table.columns) == ["arrival_time", "length", "cpus", "memory"]
    assert list(table.itertuples(index=False, name=None)) == RUNS
    assert notes == {
        CUT: 2,
        "ended as they began, skipped": 1,
        "were started again without an end, and count as ended then": 1,
    }


@pytest.mark.parametrize("rows", [2, 1000])
def test_dependencies(tmp_path: Path, rows, monkeypatch):
    monkeypatch.setattr(chunks, "ROWS", rows)
    collections = tmp_path / "collection_events.csv"
    collections.write_text(
        "time,type,collection_id,parent_collection_id,start_after_collection_ids\n"
        '0,SUBMIT,2,,\n1,SUBMIT,3,2,"[1, 3]"\n2,SUBMIT,6,1,3;4\n2,SCHEDULE,6,1,3;4\n'
    )
    table, _ = read(as_csv(tmp_path), collections)
    # at 640 s nothing had ended; at 680 s run 2 of collection 1; at 730 s also run 3, the last of 3; 4 never ran
    assert table.depends_on.tolist() == ["", "", "2", "2 3", "2 3", ""]
    as_lines = tmp_path / "collection_events.json"
    as_lines.write_text(
        '{"collection_id": "3", "parent_collection_id": "2", "start_after_collection_ids": ["1"]}\n'
        '{"collection_id": "6", "parent_collection_id": null, "start_after_collection_ids": ["1", "3"]}\n'
    )
    assert read(as_csv(tmp_path), as_lines)[0].depends_on.tolist() == ["", "", "2", "2 3", "2 3", ""]


@pytest.mark.parametrize(
    "event,message",
    [
        ((759 * S, "SUBMIT", 6, 0, 0, 0.1, 0.1), "line 23: an event at 759000000 us after one at 760000000 us; sort"),
        (("noon", "SUBMIT", 6, 0, 0, 0.1, 0.1), "line 23: time must be a whole number below 2^63, got 'noon'"),
        ((NEVER, "SUBMIT", 6, 0, 0, "x", 0.1), "line 23: resource_request.cpus must be a number, got 'x'"),
        ((NEVER, "SUBMIT", 7, 0, 0, 1e308, 0.1), "line 23: resource_request.cpus must be in 0..1e+15, got 1e+308"),
    ],
)
def test_refusals_of_borg(tmp_path: Path, event, message, monkeypatch):
    path = as_csv(tmp_path, events=[*EVENTS, event])
    for rows in (4, 1000):
        monkeypatch.setattr(chunks, "ROWS", rows)
        assert refusal(read, path).startswith(f"{path} {message}")


def test_other_refusals(tmp_path: Path):
    path = tmp_path / "x.csv"
    path.write_text("time,type\n0,SUBMIT\n")
    assert "lacks the column 'collection_id'" in refusal(read, path)
    assert "lacks the column 'collection_id'; take collection_events" in refusal(read, as_csv(tmp_path), path)
    lines = tmp_path / "x.json"
    lines.write_text('{"time": 1}\n{"time":\n')
    assert "is not one JSON object a line" in refusal(read, lines)
    lines.write_text('{"time": "1", "type": "SUBMIT", "collection_id": "a", "instance_index": 0}\n')
    assert "line 1: collection_id must be a whole number below 2^63, got 'a'" in refusal(read, lines)
