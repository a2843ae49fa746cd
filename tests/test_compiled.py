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
import hashlib
import sys

import numpy as np
from builders import envelope, job, machine, workload_of
from machine_talk import ByHand, machine_job

from batwatt.systems.powercap.optimum.bound import Relaxation
from batwatt.systems.powercap.optimum.problem import make_problem
from batwatt.systems.powercap.optimum.search import Search
from batwatt.systems.riskaware.targets import Targets, TargetSettings


def targets(rng):
    machines, cores = rng.integers(1, 9), int(rng.integers(1, 7))
    settings = TargetSettings(
        always=int(rng.integers(0, machines + 1)),
        distance=int(rng.integers(0, machines)),
        limit=rng.choice([0.0, 1.0, 1.7]),
        pack=int(rng.integers(1, 3)),
        drop=bool(rng.integers(2)),
        paper=bool(rng.integers(2)),
    )
    planner = Targets(int(machines), cores, settings, ByHand({float(n): n % 9 / 8 for n in range(0, 100, 3)}))
    now_s, count = 0.0, 0
    yield planner.advance(0.0, int(machines), [])
    for _ in range(40):
        now_s += rng.exponential(20.0)
        lengths = rng.integers(1, 100, rng.integers(0, 5)).astype(float).tolist()
        jobs = [machine_job(count + i, now_s, s, s, int(rng.integers(1, cores + 1))) for i, s in enumerate(lengths)]
        count += len(jobs)
        yield planner.advance(now_s, int(rng.integers(0, machines + 1)) if rng.random() < 0.3 else None, jobs)
    yield [planner.planned_s(number) for number in range(count)], planner.usable, planner.worst_stretch


def optimum(rng):
    rows = [job(i, float(rng.integers(0, 900)), 1 + i % 3, float(rng.integers(9, 700)), flops=True) for i in range(6)]
    problem = make_problem(machine(3, 1), workload_of(*rows), envelope(420.0, 250.0, 420.0, step=300.0))
    relaxation = Relaxation(problem, 2, 5)
    relaxation.improve(3.0, 10)
    search = Search(problem, 1)
    search.set_prices(relaxation.rates)
    yield search.construct(range(6))
    search.improve(20)
    yield relaxation.value, search.value, search.best, relaxation.open_steps(3.0)


for case in (targets, optimum):
    for seed in range(6):
        print(case.__name__, seed, *(repr(part) for part in case(np.random.default_rng(seed))))
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
