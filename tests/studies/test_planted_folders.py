"""A results folder from somebody else: nothing outside of it is ever written, moved or removed."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from cli_house import JOBS, SMALL

import batwatt
from batwatt.errors import BatwattError

Plant = Callable[[Path, Path], object]
SET = json.dumps({"files": [], "old": ["../outside/thesis.tex"], "durable": False})


def hidden_set(content: str | bytes) -> Plant:
    """A hidden folder of an older version with this list of files."""

    def plant(folder: Path, outside: Path) -> None:
        for name in (".x.1.part", ".compare.1.part", ".batwatt-x"):
            (folder / name).mkdir()
            (folder / name / ".set").write_bytes(content.encode() if isinstance(content, str) else content)

    return plant


def linked(target: str, *names: str) -> Plant:
    """Links of these names to a path in the folder outside."""
    return lambda folder, outside: [(folder / name).symlink_to(outside / target) for name in names]


STAGING = (*(f".x.{number}.part" for number in range(1, 9)), ".x_jobs.csv.1.part", ".compare.1.part", ".batwatt-x")
RESULTS = ("x_jobs.csv", "x_metrics.json", "x_metadata.json", "x_power.csv", "x_capacity.csv")
COMPARED = ("compare.html", "compare_comparison.csv", "compare_plot-a.svg")
KEPT = ("compare-a_jobs.csv", "compare-a_power.csv", "compare-a_metadata.json")
BOTH = RESULTS + COMPARED + KEPT
PLANTED: dict[str, Plant] = {
    "set that removes": hidden_set(SET),
    "set that moves": hidden_set(json.dumps({"files": ["../outside/thesis.tex"], "old": [], "durable": True})),
    "set of numbers": hidden_set('{"files": [1], "old": 2}'),
    "set that is a list": hidden_set("[]"),
    "set without text": hidden_set(b"\xff\xfe\x00"),
    "set that is a folder": lambda folder, outside: (folder / ".x.1.part/.set").mkdir(parents=True),
    "set that is a pipe": lambda folder, outside: [
        (folder / ".x.1.part").mkdir(), os.mkfifo(folder / ".x.1.part/.set")],
    "set that is a link": lambda folder, outside: [
        (folder / ".x.1.part").mkdir(), (folder / ".x.1.part/.set").symlink_to(outside / "thesis.tex")],
    "staging linked to a folder": linked("", *STAGING),
    "staging linked to a file": linked("thesis.tex", *STAGING),
    "staging linked to nothing": linked("new", *STAGING),
    "staging is a pipe": lambda folder, outside: [os.mkfifo(folder / name) for name in STAGING],
    "results linked to a file": linked("thesis.tex", *BOTH),
    "results linked to a folder": linked("", *BOTH),
    "results linked to nothing": linked("new/er", *BOTH),
    "results linked to a device": lambda folder, outside: [(folder / n).symlink_to("/dev/full") for n in RESULTS],
    "results linked in a circle": lambda folder, outside: [(folder / n).symlink_to(n) for n in RESULTS],
    "hard links": lambda folder, outside: [(folder / n).hardlink_to(outside / "thesis.tex") for n in BOTH],
    "results are pipes": lambda folder, outside: [os.mkfifo(folder / name) for name in BOTH],
    "workloads linked": linked("thesis.tex", "x_workload.json", "x_workload1.json", "x_workload2-mine.json"),
    "names with newlines": linked("thesis.tex", "x_workload1\n.json", "x_\n.csv", ".x.1\n.part", "compare_plot-\n.svg"),
}  # fmt: skip
FOLDERS: dict[str, Plant] = {
    "folder of jobs": lambda folder, outside: [(folder / n / "a").mkdir(parents=True) for n in BOTH[::6]],
    "folder of metadata": lambda folder, outside: [(folder / n).mkdir() for n in (RESULTS[2], COMPARED[0])],
}  # fmt: skip


@pytest.fixture
def outside(tmp_path: Path) -> Path:
    folder = tmp_path / "outside"
    (folder / "chapters").mkdir(parents=True)
    for name in ("thesis.tex", "index.html", "plot-a.svg", "key.json", ".x.part", "chapters/one.tex"):
        (folder / name).write_text("mine")
    return folder


def state(folder: Path) -> dict[str, object]:
    """Content and time of each file and folder below a folder."""
    paths = [folder, *sorted(folder.rglob("*"))]
    return {str(path): (path.lstat().st_mtime_ns, path.read_bytes() if path.is_file() else None) for path in paths}


def run(house, *args: object):
    return house.run("-o", '{"response": "none"}', *args)


def measured(house):
    """metrics of a run whose figures have planted names."""
    assert house.run(to="y").code == 0
    for name in ("x_jobs.csv", "x_metadata.json"):
        (house.out / name).unlink(missing_ok=True)
    (house.out / "x_jobs.csv").write_bytes((house.out / "y_jobs.csv").read_bytes())
    return house.batwatt("metrics", house.out / "x", "-p", SMALL, "-w", JOBS)


def compared(house, *args: object):
    words = ("-p", SMALL, "-w", JOBS, "--envelope", "constant:500", "-c", 'a={"response": "none"}', "-j", 1)
    return house.batwatt("compare", *words, "-e", house.out / "compare", *args)


def kept(house):
    return compared(house, "--keep")


WRITTEN = {run: RESULTS[:3], measured: RESULTS[:2], compared: COMPARED[:2], kept: (*COMPARED[:2], *KEPT)}


@pytest.mark.parametrize("command", WRITTEN)
@pytest.mark.parametrize("name", PLANTED)
def test_planted_folders(house, outside, command, name):
    house.out.mkdir()
    PLANTED[name](house.out, outside)
    before, left = state(outside), {path.name for path in house.out.iterdir()}
    ended = command(house)
    assert ended.code == 0, ended.err
    assert state(outside) == before
    # results are files of their own, and hidden files stay
    assert {name for name in left if name.startswith(".")} <= {path.name for path in house.out.iterdir()}
    written = WRITTEN[command]
    assert all((house.out / name).is_file() and not (house.out / name).is_symlink() for name in written)
    assert all((house.out / name).lstat().st_nlink == 1 for name in written)


@pytest.mark.parametrize("command", [run, compared])
@pytest.mark.parametrize("name", FOLDERS)
def test_folders_in_the_place_of_results(house, outside, command, name):
    house.out.mkdir()
    FOLDERS[name](house.out, outside)
    before = house.left
    ended = command(house)
    assert ended.code == 2 and "is a folder" in ended.line
    assert house.left == before


@pytest.mark.parametrize("name", ["cells", "runs", "inputs", "study.log", ".lock"])
def test_links_in_the_folder_of_a_study(small, outside, name):
    small.declare(grid={"order": ["fcfs"]}, keep=True)
    assert small.run().code == 0
    small.declare(keep=True)
    path = small.out / name
    if path.exists():
        path.rename(small.folder / "moved")
    path.symlink_to(outside if name in ("cells", "runs", "inputs") else outside / "thesis.tex")
    before = state(outside)
    for ended in (small.run(), small.batwatt("resume"), small.batwatt("clean")):
        assert ended.code == 2 and f"{name}: is a link; remove it" in ended.err
    assert state(outside) == before


@pytest.mark.parametrize(
    "plant",
    [
        linked("thesis.tex", "table.parquet", "study.yaml", "origin.json", "cells/x.json"),
        linked("", ".scratch", ".x.part", "cells/.x.part", "runs/.x.part", "runs/x", "cells/.batwatt-x"),
        lambda folder, outside: [(folder / "table.parquet").hardlink_to(outside / "thesis.tex")],
        lambda folder, outside: [os.mkfifo(folder / name) for name in ("table.parquet", "cells/x.json", "origin.json")],
    ],
)  # fmt: skip
def test_planted_files_in_the_folder_of_a_study(small, outside, plant):
    small.declare(keep=True)
    for name in ("cells", "runs"):
        (small.out / name).mkdir(parents=True)
    plant(small.out, outside)
    before = state(outside)
    assert small.run().code == 0 and len(small.rows()) == 4
    assert small.batwatt("clean").code == 0
    assert state(outside) == before


@pytest.mark.parametrize("plant", ["hard link", "pipe"])
def test_a_planted_log(small, outside, plant):
    small.declare()
    small.out.mkdir(parents=True)
    log = small.out / "study.log"
    log.hardlink_to(outside / "thesis.tex") if plant == "hard link" else os.mkfifo(log)
    before = state(outside)
    ended = small.run()
    assert ended.code == 1 and "study.log: cannot be written" in ended.line
    assert state(outside) == before


def test_a_planted_report(small, outside):
    small.declare()
    assert small.run().code == 0
    report = small.out / "report"
    shutil.rmtree(report)
    report.symlink_to(outside)
    before = state(outside)
    ended = small.batwatt("page")
    assert ended.code == 2 and "report: is a link; remove it" in ended.line
    report.unlink()
    report.mkdir()
    for name in ("index.html", "summary.csv", "plot-a.svg", ".report.1.part", "means-only.csv"):
        (report / name).symlink_to(outside / "thesis.tex")
    assert small.batwatt("page").code == 0
    assert state(outside) == before and (report / "index.html").read_text().startswith("<!")


def test_a_name_of_results_that_no_folder_can_have(small):
    small.declare()
    with pytest.raises(BatwattError, match="File name too long"):
        batwatt.study(small.folder / "tiny.yaml", results=small.results / ("x" * 5000))
