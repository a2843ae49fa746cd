"""A key is made of everything that determines a run's figures, and of nothing else."""

from __future__ import annotations

import shutil
import subprocess
import sys
from dataclasses import replace

import pytest

from batwatt.files import PACKAGE
from batwatt.run import loader
from batwatt.run.find_scheduler import load_plugins
from batwatt.study import cells as cells_module
from batwatt.study.campaign import campaign_in
from batwatt.study.cells import CODE, CODE_OF_OPTIMUM, code_digest, sources_of
from batwatt.study.execute import task_of

# what a process that runs cells has loaded, but what does not change their figures
HARMLESS = {
    *("batwatt", "batwatt._editable", "batwatt.study"),
    *(f"batwatt.study.{name}" for name in ("cells", "execute", "files", "generated", "sources", "spec")),
    "batwatt.study.yaml_model",
}


def key(small, **changes) -> str:
    settings = {"grid": None, "workloads": ["w/a.json"], "label": "x"} | changes
    [cell] = campaign_in(small.declare(**settings), small.results).cells
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


def test_a_name_without_a_file_is_an_error(copy):
    with pytest.raises(FileNotFoundError, match=r"copy/nowhere\.py has no sources"):
        sources_of(("nowhere.py",))
    (copy / "nothing").mkdir()
    with pytest.raises(FileNotFoundError, match=r"copy/nothing has no sources"):
        sources_of(("nothing",))


def digest(optimum=False) -> str:
    cells_module._code_digest.cache_clear()
    try:
        return code_digest(optimum)
    finally:
        cells_module._code_digest.cache_clear()


@pytest.mark.parametrize(
    "file, ordinary, optimum",
    [
        ("engine/core.py", True, True),
        # the reference that a scheduler has by default is a file next to the code
        ("schedulers/riskaware/borg_week.csv", True, True),
        ("schedulers/planned/search.py", True, True),
        ("study/optimum.py", False, True),
        ("report/page.py", False, False),
        ("study/store.py", False, False),
    ],
)
def test_code_that_determines_figures(copy, monkeypatch, file, ordinary, optimum):
    before = digest(), digest(True)
    with (copy / file).open("a") as out:
        out.write("# changed\n")
    assert (digest() != before[0], digest(True) != before[1]) == (ordinary, optimum)
    monkeypatch.setattr(cells_module, "__version__", "99")
    assert digest() != before[0]


@pytest.mark.parametrize("module, rooms", [("study.execute", CODE), ("study.optimum", CODE_OF_OPTIMUM)])
def test_all_code_that_a_run_loads_counts_or_is_known_to_be_harmless(module, rooms):
    """A new module that runs depend on must be in the digest: nobody has to think of it."""
    script = f"import sys, batwatt.{module}\nprint(*(m for m in sys.modules if m.startswith('batwatt')))"
    loaded = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout.split()
    counted = {
        f"batwatt.{name}".removesuffix(".py").replace("/", ".").removesuffix(".__init__") for name in sources_of(rooms)
    }
    # what an installation compiles is made of the sources that count
    expected = HARMLESS | counted | {"batwatt__mypyc"}
    left = [name for name in loaded if name not in expected]
    assert not left


def test_other_code_in_a_worker_stops_the_campaign(small, monkeypatch):
    small.declare()
    # the process that began had other code than it has now
    monkeypatch.setattr("batwatt.study.campaign.task_of", lambda *args: replace(task_of(*args), code="older"))
    ended = small.run()
    assert ended.code == 1
    assert "has other code than the campaign began with" in ended.line and "campaign resume" in ended.line
    assert not small.cells() and small.rows() == []


def test_an_input_that_changes_under_way_stops_the_campaign(small):
    change = "Path('CHANGED').write_text('time_s,power_w\\n0,1\\n')".replace("CHANGED", str(small.house.envelope))
    small.declare(scheduler=small.slow(then=change))
    ended = small.run()
    assert ended.code == 1 and "envelope.csv changed while the campaign ran" in ended.line
    assert not small.cells()
