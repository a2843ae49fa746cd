"""A key is made of everything that determines a run's figures, and of nothing else."""

from __future__ import annotations

import shutil
from dataclasses import replace

import pytest

from batwatt.files import PACKAGE
from batwatt.run import loader
from batwatt.run.find_scheduler import load_plugins
from batwatt.studies import cells as cells_module
from batwatt.studies.cells import code_digest
from batwatt.studies.grid import task_of
from batwatt.studies.study import study_in


def key(small, **changes) -> str:
    settings = {"grid": None, "workloads": ["w/a.json"], "label": "x"} | changes
    [cell] = study_in(small.declare(**settings), small.results).cells
    return cell.key


@pytest.mark.parametrize(
    "change",
    [
        {"options": {"response": "none", "victim": "resubmit"}},
        {"workloads": ["w/b.json"]},
        {"envelopes": ["other.csv"]},
        {"platforms": ["other.xml"]},
        {"events": "events.txt"},
        {"engines": ["wire"]},
        {"engine_options": {"energy": False}},
        {"scheduler": "own.py"},
        {"depends": ["table.csv"]},
    ],
)
def test_what_changes_the_key(small, change):
    small.house.write("other.csv", "time_s,power_w\n0,1\n")
    small.house.write("other.xml", (small.folder / "p.xml").read_text() + "\n")
    small.house.write("events.txt", "")
    small.house.write("table.csv", "")
    small.slow(name="own.py")
    (small.folder / "own.py").write_text((small.folder / "own.py").read_text().replace("class Slow", "class Own"))
    assert key(small, **change) != key(small)


@pytest.mark.parametrize(
    "change",
    [
        {"label": "y"},
        {"keep": True},
        {"workloads": ["w/same.json"]},
        {"seeds": [4]},
        {"engine_options": {"batsim": "elsewhere"}},
        {"grid": {"response": ["none"]}, "options": None},
        {"engines": ["embedded"]},
    ],
)
def test_what_does_not(small, change):
    before = key(small)
    shutil.copy(small.folder / "w" / "a.json", small.folder / "w" / "same.json")
    assert key(small, **change) == before


def test_seeds_and_files_of_a_scheduler_count(small):
    seeds = [key(small, scheduler="easyBackfill", options=None, seeds=[seed]) for seed in (1, 2)]
    assert seeds[0] != seeds[1]
    name = small.slow()
    before = key(small, scheduler=name)
    small.slow(then="pass  # changed")
    assert key(small, scheduler=name) != before


def test_files_beside_a_scheduler_count(small):
    keys = []
    (small.folder / "own").mkdir()
    for value in "ab":
        small.house.write("own/common.py", f"X = {value!r}\n")
        small.house.write("own/flow.py", "from batsim.batsim import BatsimScheduler\nfrom common import X\n"
                          "class Own(BatsimScheduler): pass\n")  # fmt: skip
        small.house.write("own/__init__.py", "from .flow import Own\n")
        keys += [key(small, scheduler=name) for name in ("own/flow.py", "own/")]
    assert len(set(keys)) == 4


PART = """from batwatt.scheduling import Order, register


@register("order", "mine-of-keys")
class Mine(Order):
    def key(self, jobs, now_s):
        return jobs.hosts
"""


def test_a_plugin_counts_by_its_content(small):
    plugin = small.folder / "mine.py"
    keys = [key(small)]
    for name in ("a", "b"):
        plugin.write_text(f"{PART}\n\n{name} = 1\n")
        loader._plugins.clear()
        load_plugins([plugin])
        cells_module._code_digest.cache_clear()
        keys.append(key(small))
    cells_module._code_digest.cache_clear()
    assert len(set(keys)) == 3


def test_runs_with_a_plugin_are_not_stale(small):
    plugin = small.house.write("mine.py", PART)
    small.declare()
    assert small.run("--plugin", plugin).code == 0
    loader._plugins.clear()
    cells_module._code_digest.cache_clear()
    assert "0 stale runs removed" in small.batwatt("clean", "--plugin", plugin).out
    loader._plugins.clear()
    cells_module._code_digest.cache_clear()


@pytest.fixture
def copy(tmp_path, monkeypatch):
    """A copy of the sources whose digest is taken."""
    root = PACKAGE
    place = tmp_path / "copy"
    shutil.copytree(root, place, ignore=shutil.ignore_patterns("__pycache__"))
    monkeypatch.setattr(cells_module, "PACKAGE", place)
    return place


def digest(optimum=False) -> str:
    cells_module._code_digest.cache_clear()
    try:
        return code_digest(optimum)
    finally:
        cells_module._code_digest.cache_clear()


# the reference that a scheduler has by default is a file next to the code
@pytest.mark.parametrize("file", ["engine/core.py", "schedulers/riskaware/borg_week.csv", "cli/main.py", "new.py"])
def test_all_code_of_the_package_counts(copy, monkeypatch, file):
    before = digest(), digest(True)
    with (copy / file).open("a") as out:
        out.write("# changed\n")
    assert digest() != before[0] and digest(True) != before[1]
    (copy / "__pycache__").mkdir()
    now = digest()
    (copy / "__pycache__" / "main.pyc").touch()
    assert digest() == now
    monkeypatch.setattr(cells_module, "__version__", "99")
    assert digest() != now


def test_other_code_in_a_worker_stops_the_study(small, monkeypatch):
    small.declare()
    # the process that began had other code than it has now
    monkeypatch.setattr("batwatt.studies.study.task_of", lambda *args: replace(task_of(*args), code="older"))
    ended = small.run()
    assert ended.code == 1
    assert "has other code than the study began with" in ended.line and "then: batwatt study " in ended.line
    assert not small.cells() and small.rows() == []


def test_an_input_that_changes_under_way_stops_the_study(small):
    change = "Path('CHANGED').write_text('time_s,power_w\\n0,1\\n')".replace("CHANGED", str(small.house.envelope))
    small.declare(scheduler=small.slow(then=change))
    ended = small.run()
    assert ended.code == 1 and "envelope.csv changed while the study ran" in ended.line
    assert not small.cells()
