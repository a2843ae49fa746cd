"""The kernels in three forms (compiled with an installation, by numba, plain Python): the same numbers, bit for bit."""

from __future__ import annotations

import copy
import subprocess
import sys
from importlib import import_module
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

import numpy as np
import pytest
from builders import envelope, job, machine, workload_of
from examples import examples
from hypothesis import assume, given
from hypothesis import strategies as st
from machine_talk import ByHand

from batwatt import compiling
from batwatt.compiling import SOURCES, sources_digest
from batwatt.systems.carbon.simulators import gaia_kernel
from batwatt.systems.powercap.optimum import bound_kernel, search_kernel, timeline_kernel
from batwatt.systems.powercap.optimum.bound import Relaxation
from batwatt.systems.powercap.optimum.problem import make_problem
from batwatt.systems.powercap.optimum.search import Search
from batwatt.systems.riskaware import (
    target_kernel,
    target_tables,
    targets,
)
from batwatt.systems.riskaware.strategy import MachineJob

ROOT = Path(__file__).resolve().parents[1]
MODULES = [
    target_tables,
    target_kernel,
    gaia_kernel,
    bound_kernel,
    timeline_kernel,
    search_kernel,
]
seeds = st.integers(0, 2**32 - 1).map(np.random.default_rng)


@pytest.fixture(scope="module")
def ahead(tmp_path_factory):
    """What an installation compiles."""
    folder = tmp_path_factory.mktemp("ahead")
    places = [f"--build-{name}={folder / name}" for name in ("lib", "temp")]
    done = subprocess.run([sys.executable, "setup.py", "build_ext", *places], cwd=ROOT, capture_output=True, text=True)
    found = list(folder.glob("lib/batwatt/_kernels*"))
    assert found, f"a C compiler is needed: {done.stdout}{done.stderr}"
    spec = spec_from_file_location("batwatt._kernels", found[0])
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def plain():
    """The modules anew with nothing compiled, by name."""
    with pytest.MonkeyPatch.context() as patch:
        for decorator in ("ahead_only", "compiled", "inlined"):
            patch.setattr(compiling, decorator, lambda function: function)
        for module in MODULES:
            package, _, name = module.__name__.rpartition(".")
            patch.delitem(sys.modules, module.__name__)
            # the import puts the new one there, too
            patch.setattr(sys.modules[package], name, module)
        return {module.__name__: import_module(module.__name__) for module in MODULES}


@pytest.fixture(scope="module")
def forms(ahead, plain):
    """The three forms of a function of a module."""

    def of(module, name):
        stem = module.__name__.rpartition(".")[2]
        found = getattr(module, name), getattr(ahead, f"{stem}_{name}"), getattr(plain[module.__name__], name)
        if found[0].__class__ is found[1].__class__:
            pytest.skip("this installation has them compiled; BATWATT_KERNELS=numba compares all forms")
        assert [type(form).__name__ for form in found] == ["CPUDispatcher", "builtin_function_or_method", "function"]
        return found

    return of


def same(functions, *given):
    """All do the same: what they return, and what they leave in the arrays."""
    outcomes = []
    for function in functions:
        own = copy.deepcopy(given)
        arrays = [array for each in own for array in (each if isinstance(each, tuple) else [each])]
        outcomes.append((function(*own), [each.tobytes() for each in arrays if isinstance(each, np.ndarray)]))
    assert outcomes[0] == outcomes[1] == outcomes[2]


def test_all_kernels_are_compiled_from_the_sources_that_are_there(ahead):
    package = ROOT / "src" / "batwatt"
    sources = {path.relative_to(package) for pattern in SOURCES for path in package.rglob(pattern)}
    assert sources == {Path(module.__file__).relative_to(Path(compiling.__file__).parent) for module in MODULES}
    for module in MODULES:
        assert ahead.DIGESTS[module.__name__.rpartition(".")[0]] == sources_digest(Path(module.__file__).parent)


def test_what_was_compiled_of_other_sources_is_not_taken(ahead, monkeypatch):
    monkeypatch.setattr(sys.modules["batwatt"], "_kernels", ahead, raising=False)
    package, folder = "batwatt.systems.riskaware", Path(target_kernel.__file__).parent
    assert compiling._ahead_of.__wrapped__(package, folder) is ahead
    assert compiling._ahead_of.__wrapped__(package, folder.parent / "checkpoint") is None
    monkeypatch.setenv(compiling.FORM, "numba")
    assert compiling._ahead_of.__wrapped__(package, folder) is None


@examples(100)
@given(seeds)
def test_target_strategies(forms, rng):
    advance, end_early = forms(target_kernel, "advance"), forms(target_kernel, "end_early")
    machines, cores = int(rng.integers(1, 9)), int(rng.integers(1, 7))
    settings = targets.TargetSettings(
        always=int(rng.integers(0, machines + 1)),
        distance=int(rng.integers(0, machines)),
        limit=float(rng.choice([0.0, 1.0, 1.7])),
        pack=int(rng.integers(1, 3)),
        low=float(rng.uniform(0.0, 0.8)),
        high=float(rng.uniform(0.4, 1.0)),
        usable=int(rng.integers(1, machines + 1)),
        take_empty=bool(rng.integers(2)),
        drop=bool(rng.integers(2)),
        paper=bool(rng.integers(2)),
    )
    categories = ByHand({})
    categories.given.update((float(n), n % 9 / 8) for n in range(0, 100, 3))
    planners = [targets.Targets(machines, cores, settings, categories) for _ in range(3)]
    now_s, count = 0.0, 0
    for _ in range(40):
        now_s += float(rng.exponential(20.0))
        lengths = rng.choice([float(rng.integers(1, 100)), rng.uniform(1.0, 100.0)], size=rng.integers(0, 5)).tolist()
        jobs = [MachineJob(count + i, now_s, s, s, int(rng.integers(1, cores + 1))) for i, s in enumerate(lengths)]
        count += len(jobs)
        alive = int(rng.integers(0, machines + 1)) if rng.random() < 0.3 or not count else None
        running = np.flatnonzero(planners[0]._tables.state[:count] == target_tables.RUNNING)
        early = int(rng.choice(running)) if len(running) and rng.random() < 0.2 else None
        with pytest.MonkeyPatch.context() as patch:
            for planner, one, other in zip(planners, advance, end_early, strict=True):
                patch.setattr(targets, "advance", one)
                patch.setattr(targets, "end_early", other)
                if early is not None:
                    planner.ended(early, now_s)
                planner.advance(now_s, alive if now_s else machines, jobs)
        held = [[array.tobytes() for array in planner._tables] for planner in planners]
        assert held[0] == held[1] == held[2]


@examples(100)
@given(seeds, st.integers(1, 30), st.integers(0, 6))
def test_queues_of_gaia(forms, rng, pieces, reserved):
    ticks = 60
    submit = np.sort(rng.integers(0, 20, pieces))
    due = submit + rng.integers(0, 20, pieces)
    length, cpus, priority = rng.integers(1, 15, pieces), rng.integers(1, 4, pieces), rng.integers(0, 4, pieces)
    spot, early = rng.integers(0, 2, pieces), rng.integers(0, 2, pieces)
    freed, room = np.zeros(ticks + 1, dtype=np.int64), [np.zeros(pieces, dtype=np.int64) for _ in range(6)]
    same(forms(gaia_kernel, "dispatch"), submit, due, length, cpus, priority, early, spot, reserved, freed, *room)


@examples(10)
@given(seeds)
def test_the_search_for_the_optimum(forms, ahead, plain, rng):
    """Schedules, costs and counts are the same in all forms, on machines of one and of two kinds."""
    rows = [
        job(i, float(rng.integers(0, 900)), int(rng.integers(1, 4)), float(rng.integers(9, 700)), flops=True)
        for i in range(int(rng.integers(2, 8)))
    ]
    platform = machine(3, int(rng.integers(0, 3))) if rng.random() < 0.7 else machine(4)
    step = float(rng.choice([300.0, 60.0]))
    problem = make_problem(platform, workload_of(*rows), envelope(420.0, 250.0, 420.0, step=step))
    relaxation = Relaxation(problem, int(rng.integers(1, 4)), 5)
    relaxation.improve(3.0, 10)
    rates, held = relaxation.rates, []
    same(forms(bound_kernel, "evaluate"), relaxation.tables)
    same(forms(bound_kernel, "by_step"), relaxation.tables, 0, 0, 2.0, 0)
    for note, improve in (
        (search_kernel.note, search_kernel.improve),
        (ahead.search_kernel_note, ahead.search_kernel_improve),
        (plain[search_kernel.__name__].note, plain[search_kernel.__name__].improve),
    ):
        search = Search(problem, 1)
        search.set_prices(rates)
        use, stand = search.timeline.use, search.stand
        assume(all(search.insert(each) for each in range(len(rows))))
        note(use, stand)
        improve(use, stand, 10)
        held.append([array.tobytes() for array in (*use, *stand)])
    assert held[0] == held[1] == held[2]
