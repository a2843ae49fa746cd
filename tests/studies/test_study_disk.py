"""A full disk ends the study with one line; what is finished stays, and no file is half written."""

from __future__ import annotations

import errno
import json
import os
import resource

import pytest
from cli_house import ROOT

from batwatt.studies import store

GRID = {"order": ["fcfs", "asc", "desc"]}


def whole(small) -> None:
    """Nothing in the folder is half a file."""
    for cell in small.cells():
        assert json.loads(cell.read_text())["status"] == "done"
    if (small.out / "table.parquet").exists():
        assert len(small.rows()) <= len(small.cells())
    assert not list(small.out.rglob(".batwatt-*"))


def test_a_place_that_cannot_be_written(small):
    small.declare()
    small.results.write_text("a file")
    refused = small.run()
    assert refused.code == 1 and "cannot be written" in refused.line
    assert "make room" not in refused.line and "give another place with --results" in refused.line


FULL_OR_NOT_WRITABLE = [errno.ENOSPC, *(pytest.param(n, marks=pytest.mark.deep) for n in (errno.EDQUOT, errno.EROFS))]


@pytest.mark.parametrize("number", FULL_OR_NOT_WRITABLE)
def test_no_room_for_a_cell(small, monkeypatch, number):
    small.declare(grid=GRID)
    real, calls = os.fsync, []

    def fsync(handle):
        calls.append(handle)
        if len(calls) == 9:  # two for each file and its folder: the declaration, its origin, two cells
            raise OSError(number, os.strerror(number))
        real(handle)

    monkeypatch.setattr(store.os, "fsync", fsync)
    ended = small.run()
    assert ended.code == 1 and os.strerror(number) in ended.line
    first = "correct that" if number == errno.EROFS else "make room"
    assert f"nothing finished is lost; {first}, then: batwatt study" in ended.line
    assert len(small.cells()) == len(small.rows()) == 2
    whole(small)
    monkeypatch.undo()
    assert small.batwatt("resume").code == 0
    assert small.done_in_log() == len(small.rows()) == 6
    whole(small)


def test_no_room_in_the_worker_is_not_the_fault_of_the_run(small):
    """A limit on the size of files, which children inherit, hits the CSV files of a run first."""
    platform, workload = ROOT / "platforms/grid5000.xml", ROOT / "workloads/google-288-00.json"
    small.declare(platforms=[str(platform)], workloads=[str(workload)], grid={"order": ["fcfs"]}, keep=True)

    def limit():
        resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, resource.RLIM_INFINITY))

    command = ("study", small.folder / "tiny.yaml", "--results", small.results, "-j", 1)
    ended = small.house.end(small.house.start(*command, preexec_fn=limit))
    assert ended.code == 1 and "no run can be carried out on" in ended.line and "File too large" in ended.line
    assert small.cells() == []
    whole(small)
    assert small.run().code == 0
