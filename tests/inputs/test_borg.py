"""Borg's tables as jobs: by hand in CSV and JSON, in parts of any size, dependencies, what is cut off, refusals."""

from __future__ import annotations

import gzip
import json
from collections import Counter
from pathlib import Path

import pandas as pd
import pytest

from batwatt.errors import InputError
from batwatt.inputs.traces import borg
from batwatt.inputs.traces import chunked_csv as chunks
from batwatt.inputs.traces.borg import borg_jobs

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


def read(path: Path, collections: Path | None = None, **options) -> tuple[pd.DataFrame, Counter[str]]:
    notes: Counter[str] = Counter()
    table = pd.concat(borg_jobs(path, collections, notes=notes, **options), ignore_index=True)
    return table, notes


@pytest.mark.parametrize("rows", [1, 4, 1000])
@pytest.mark.parametrize("form", ["names", "codes", "underscores", "json"])
def test_by_hand(tmp_path: Path, form, rows, monkeypatch):
    monkeypatch.setattr(chunks, "ROWS", rows)
    path = (
        as_json(tmp_path)
        if form == "json"
        else as_csv(tmp_path, form == "codes", "_" if form == "underscores" else ".")
    )
    table, notes = read(path)
    assert list(table.columns) == ["arrival_time", "length", "cpus", "memory"]
    assert list(table.itertuples(index=False, name=None)) == RUNS
    assert notes == {
        CUT: 2,
        "ended as they began, skipped": 1,
        "were started again without an end, and count as ended then": 1,
    }


def test_dropped_and_other_cores(tmp_path: Path):
    table, notes = read(as_csv(tmp_path), censored="drop", gcu_per_core=0.1)
    assert list(table.itertuples(index=False, name=None)) == [
        (20.0, 10.0, 1, 0.3),
        (70.0, 10.000001, 2, 0.4),
        (130.0, 10.0, 1, 0.1),
        (140.0, 20.0, 1, 0.1),
    ]
    assert notes["ran before the trace or after it, dropped"] == 2


@pytest.mark.parametrize("rows", [1, 1000])
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


def test_memory_is_that_of_the_open_runs(tmp_path: Path):
    events = [
        (600 * S + n * S, kind, n, 0, 0, 0.1, 0.1) for n in range(1, 3000) for kind in ("SUBMIT", "SCHEDULE", "FINISH")
    ]
    events = [(time + place, *rest) for place, (time, *rest) in enumerate(events)]
    seen = []
    real = borg._Pairing.table

    def table(self):
        seen.append((len(self.waiting), len(self.running), len(self.last), len(self.done)))
        return real(self)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(chunks, "ROWS", 300)
        patch.setattr(borg._Pairing, "table", table)
        assert len(read(as_csv(tmp_path, events=events))[0]) == 2999
    assert max(map(max, seen)) <= 100


@pytest.mark.parametrize("rows", [1, 1000])
@pytest.mark.parametrize(
    "event,said",
    [
        ((759 * S, "SUBMIT", 6, 0, 0, 0.1, 0.1), "line 23: an event at 759000000 us after one at 760000000 us; sort"),
        ((-1, "SUBMIT", 6, 0, 0, 0.1, 0.1), "line 23: an event at -1 us"),
        (("noon", "SUBMIT", 6, 0, 0, 0.1, 0.1), "line 23: time must be a whole number below 2^63, got 'noon'"),
        ((NEVER, "SUBMIT", 6, 0, 0, "x", 0.1), "line 23: resource_request.cpus must be a number, got 'x'"),
        ((NEVER, "SUBMIT", 7, 0, 0, 1e308, 0.1), "line 23: resource_request.cpus must be in 0..1e+15, got 1e+308"),
        ((NEVER, "SUBMIT", 7, 0, 0, 0.1, -1), "line 23: resource_request.memory must be in 0..1e+15, got -1"),
        ((NEVER, "SUBMIT", 2.5, 0, 0, 0.1, 0.1), "line 23: collection_id must be a whole number below 2^63, got '2.5'"),
    ],
)
def test_refusals(tmp_path: Path, event, said, rows, monkeypatch):
    monkeypatch.setattr(chunks, "ROWS", rows)
    path = as_csv(tmp_path, events=[*EVENTS, event])
    with pytest.raises(InputError) as caught:
        read(path)
    assert str(caught.value).startswith(f"{path} {said}")


def test_cells_beyond_the_header_are_no_index(tmp_path: Path):
    path = as_csv(tmp_path)
    good = pd.concat(borg_jobs(path, notes=Counter()))
    lines = path.read_text().splitlines()
    path.write_text("\n".join([lines[0], *(f"{line},,7" for line in lines[1:])]))
    assert pd.concat(borg_jobs(path, notes=Counter())).equals(good)


def test_other_refusals(tmp_path: Path):
    path = tmp_path / "x.csv"
    path.write_text("time,type\n0,SUBMIT\n")
    with pytest.raises(InputError, match="lacks the column 'collection_id'"):
        read(path)
    with pytest.raises(InputError, match=r"gcu_per_core must be a number in \]0, 1\], got 0"):
        read(as_csv(tmp_path), gcu_per_core=0)
    with pytest.raises(InputError, match="lacks the column 'collection_id'; take collection_events"):
        read(as_csv(tmp_path), path)
    lines = tmp_path / "x.json"
    lines.write_text('{"time": 1}\n{"time":\n')
    with pytest.raises(InputError, match="is not one JSON object a line"):
        read(lines)
    lines.write_text('{"time": "1", "type": "SUBMIT", "collection_id": "a", "instance_index": 0}\n')
    with pytest.raises(InputError, match=r"line 1: collection_id must be a whole number below 2\^63, got 'a'"):
        read(lines)
