"""Azure's vmtable.csv as jobs: by hand, its buckets, what is cut off by the trace, its refusals."""

from __future__ import annotations

import gzip
from collections import Counter
from pathlib import Path

import pandas as pd
import pytest

from batwatt.errors import InputError
from batwatt.inputs.traces import chunked_csv as chunks
from batwatt.inputs.traces.azure import COLUMNS, azure_jobs

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


def read(path: Path, **options) -> tuple[list[tuple], Counter[str]]:
    notes: Counter[str] = Counter()
    table = pd.concat(azure_jobs(path, notes=notes, **options))
    assert list(table.columns) == ["arrival_time", "length", "cpus", "memory", "use"]
    return list(table.itertuples(index=False, name=None)), notes


@pytest.mark.parametrize("rows", [1, 3, 1000])
@pytest.mark.parametrize("header", ["", ",".join(COLUMNS) + "\n"])
def test_by_hand(tmp_path: Path, rows, header, monkeypatch):
    monkeypatch.setattr(chunks, "ROWS", rows)
    path = tmp_path / "vmtable.csv.gz"
    path.write_bytes(gzip.compress((header + VMS).encode()))
    jobs, notes = read(path)
    assert jobs == ROWS
    assert notes == {
        "ran less than 5 min, and count as 5 min": 1,
        "ran before the trace or after it, kept with what it tells": 2,
    }
    jobs, notes = read(path, censored="drop")
    assert jobs == [ROWS[1], ROWS[3]]
    assert notes["ran before the trace or after it, dropped"] == 2


@pytest.mark.parametrize("rows", [1, 3, 1000])
@pytest.mark.parametrize(
    "line,said",
    [
        ("x,s,d,5,now,9,1,5,U,4,32", "line 5: vmdeleted must be a whole number below 2^63, got 'now'"),
        ("x,s,d,5,,9,1,5,U,4,32", "line 5: vmdeleted must be a whole number below 2^63, got 'nan'"),
        ("x,s,d,5,6,9,1,much,U,4,32", "line 5: p95maxcpu must be a number, got 'much'"),
        ("x,s,d,5,4,9,1,5,U,4,32", "line 5: a VM must satisfy 0 <= vmcreated <= vmdeleted, got 5 and 4"),
        ("x,s,d,-5,4,9,1,5,U,4,32", "line 5: a VM must satisfy 0 <= vmcreated <= vmdeleted, got -5 and 4"),
        (
            "x,s,d,5,6,9,1,5,U,few,32",
            "line 5: vmcorecountbucket must be a number > 0 or a bucket",
        ),
        ("x,s,d,5,6,9,1,5,U,4,0", "line 5: vmmemorybucket must be a number > 0 or a bucket such as >24, got '0'"),
        ("x,s,d,5,6,9,1,5,U,4", "line 5: vmmemorybucket must be a number > 0"),
    ],
)
def test_refusals(tmp_path: Path, line, said, rows, monkeypatch):
    monkeypatch.setattr(chunks, "ROWS", rows)
    path = tmp_path / "vmtable.csv"
    path.write_text(VMS + line + "\n" + VMS)
    with pytest.raises(InputError) as caught:
        read(path)
    assert str(caught.value).startswith(f"{path} {said}")


@pytest.mark.parametrize(
    "text,said",
    [("", "is empty"), ("1,2,3\n", "line 1: has 3 fields, the table 11")],
)
def test_not_a_vmtable(tmp_path: Path, text, said):
    path = tmp_path / "vmtable.csv"
    path.write_text(text)
    with pytest.raises(InputError, match=said):
        read(path)
    with pytest.raises(InputError, match="cannot be read"):
        read(tmp_path / "nowhere.csv")
    (tmp_path / "plain.csv.gz").write_text(VMS)
    with pytest.raises(InputError, match="cannot be read"):
        read(tmp_path / "plain.csv.gz")
