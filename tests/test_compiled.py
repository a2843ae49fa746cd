"""Compiled modules give what the same modules give as Python, bit for bit; a changed source is not run compiled."""

from __future__ import annotations

import os
import subprocess
import sys
from importlib.machinery import EXTENSION_SUFFIXES
from pathlib import Path
from zipfile import ZipFile

import pytest

from batwatt import _editable
from batwatt.engine import core

SCRIPT = """
import sys

import batwatt as bw
from builders import envelope, job, machine, workload_of

from batwatt.schedulers.planned.relaxation import Relaxation
from batwatt.schedulers.planned.problem import make_problem
from batwatt.schedulers.planned.search import Search

CASES = {"riskaware": {"strategy": "target-asap"}, "varcap": {"mapping": "longshort"}, "powercap": {"response": "hfld"}}
hosts = bw.Platform.machines(6, 4)
for seed in range(3):
    day = {"jobs_per_hour": 30, "hours": 3, "mean_runtime_s": 900.0, "sigma": 1.0, "max_servers": 4}
    jobs = bw.Workload.synthetic(**day, seed=seed)
    for name, options in CASES.items():
        limit = {"capacity" if name != "powercap" else "envelope": f"walk:range=0.6,period=600,seed={seed}"}
        print(bw.simulate(hosts, jobs, name, options=options, **limit).jobs.to_csv())
    rows = [job(i, 90.0 * i, 1 + i % 3, 200.0 + 97 * (i + seed) % 500, flops=True) for i in range(6)]
    problem = make_problem(machine(3, 1), workload_of(*rows), envelope(420.0, 250.0, 420.0, step=300.0))
    relaxation = Relaxation(problem, 2, 5)
    relaxation.improve(3.0, 10)
    search = Search(problem, 1)
    search.set_prices(relaxation.rates)
    search.construct(range(6))
    search.improve(20)
    print(repr([relaxation.value, search.value, search.best, relaxation.open_steps(3.0)]))
print(sys.modules["batwatt.arrays"].__file__.endswith(".py"), file=sys.stderr)
"""


@pytest.mark.skipif("_compiled" not in core.__file__, reason="no editable installation with compiled modules")
def test_both_forms_do_the_same():
    outputs = []
    for pure in ("1", "0"):
        env = {**os.environ, "BATWATT_PURE": pure, "PYTHONPATH": str(Path(__file__).parent / "helpers")}
        done = subprocess.run([sys.executable, "-c", SCRIPT], capture_output=True, text=True, env=env, check=True)
        outputs.append(done.stdout)
        assert done.stderr.split()[-1] == str(pure == "1")
    assert outputs[0] == outputs[1]


def test_a_wheel_of_other_sources_is_not_taken(tmp_path):
    with ZipFile(tmp_path / "x.whl", "w") as wheel:
        wheel.writestr("batwatt/__init__.py", "")
    command = [sys.executable, "setup.py", "take_wheel", str(tmp_path / "x.whl")]
    done = subprocess.run(command, cwd=Path(__file__).parents[1], capture_output=True, text=True)
    assert done.returncode == 1 and f"has changed since {tmp_path / 'x.whl'} was built" in done.stderr


def built(path: Path, *, changed: str = "") -> Path:
    """A wheel of the sources in Python alone, with one that differs."""
    root = Path(__file__).parents[1] / "src"
    with ZipFile(path, "w") as wheel:
        for source in sources(root / "batwatt"):
            name = source.relative_to(root).as_posix()
            wheel.writestr(name, source.read_bytes() + b"#" * (name == changed))
    return path


def sources(folder: Path) -> list[Path]:
    """The modules below a folder, those of folders behind links, too."""
    paths: list[Path] = []
    for place, _, names in os.walk(folder, followlinks=True):
        paths += [Path(place) / name for name in names if name.endswith(".py")]
    return paths


def setup(*words: object) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "setup.py", *map(str, words)]
    return subprocess.run(command, cwd=Path(__file__).parents[1], capture_output=True, text=True)


def test_a_change_of_a_scheduler_is_seen_behind_the_link(tmp_path):
    name = "batwatt/schedulers/replay.py"
    done = setup("take_wheel", built(tmp_path / "x.whl", changed=name))
    assert done.returncode == 1 and f"src/{name} has changed since" in done.stderr


def test_a_wheel_without_a_module_that_is_to_be_compiled_is_refused(tmp_path):
    done = setup("check_wheel", built(tmp_path / "x.whl"))
    assert done.returncode == 1 and "not compiled: src/batwatt/arrays.py, " in done.stderr


def test_only_what_was_compiled_of_the_sources_that_are_there_is_taken(tmp_path, monkeypatch):
    monkeypatch.delenv("BATWATT_PURE", raising=False)
    monkeypatch.setattr(_editable, "_ROOT", str(tmp_path))
    monkeypatch.setattr(sys, "meta_path", [])
    folder = tmp_path / "_compiled" / EXTENSION_SUFFIXES[0].split(".")[1]
    folder.mkdir(parents=True)
    source = tmp_path / "one.py"
    source.write_text("")
    state = source.stat()
    (folder / "batwatt.one.so").write_text("")
    (folder / "sources").write_text(f"one.py {state.st_mtime_ns} {state.st_size}\n")
    _editable.take_compiled()
    (finder,) = sys.meta_path
    assert finder.find_spec("batwatt.one").origin == str(folder / "batwatt.one.so")
    assert finder.find_spec("batwatt.other") is None
    sys.meta_path.clear()
    monkeypatch.setenv("BATWATT_PURE", "1")
    _editable.take_compiled()
    monkeypatch.delenv("BATWATT_PURE")
    os.utime(source, ns=(0, 0))
    _editable.take_compiled()
    source.unlink()
    _editable.take_compiled()
    assert not sys.meta_path
