"""The graph of solver time and memory: its table by hand, and one case measured."""

from __future__ import annotations

import math
import sys
from pathlib import Path

import pytest

EXPERIMENTS = Path(__file__).resolve().parents[1] / "experiments"

sys.path.append(str(EXPERIMENTS))
import carbon_solver as solver  # noqa: E402 (scripts are found by their folder)
from carbon_solver import Taken  # noqa: E402


def test_both_methods_measured_in_processes_of_their_own():
    milp, dynamic = (solver.measured(method, 12, 4) for method in (solver.MILP, solver.DYNAMIC))
    assert milp.carbon == pytest.approx(dynamic.carbon, rel=1e-9)
    assert milp.cpu_s > dynamic.cpu_s > 0.0
    assert all(taken.peak_mib >= taken.before_mib > 10.0 for taken in (milp, dynamic))


def test_a_process_that_fails():
    with pytest.raises(RuntimeError, match="--child nothing 12 4 failed"):
        solver.measured("nothing", 12, 4)


def test_the_table_by_hand():
    """2 s and 1 ms first; then 3 s, and a plan that was stopped at 30 s."""
    first = Taken(2.0, 110.0, 100.0, 5.0), Taken(0.001, 60.0, 59.0, 5.0)
    rows = {
        solver.CASES[0]: first,
        (36, 6): (Taken(3.0, 120.0, 100.0, 5.0), Taken(0.002, 61.0, 59.0, 5.0)),
        (48, 6): (Taken(math.nan, 200.0, 100.0, math.nan), Taken(0.002, 61.0, 59.0, 5.0)),
        (5000, 800): (None, Taken(0.1, 62.0, 59.0, 9.0)),
    }
    assert solver.solver_table(rows).splitlines()[2:] == [
        "| 24 | 6 | 1.0 | 2,000 | 110 | 10 | 1.0 | 60 | 1 |",
        "| 36 | 6 | 1.5 | 1,500 | 120 | 20 | 2.0 | 61 | 2 |",
        "| 48 | 6 | > 15 | > 15,000 | 200 | 100 | 2.0 | 61 | 2 |",
        "| 5,000 | 800 |  |  |  |  | 100 | 62 | 3 |",
    ]


def test_other_carbon_is_found(monkeypatch):
    monkeypatch.setattr(solver, "measured", lambda method, *_: Taken(1.0, 2.0, 1.0, 5.0 if method == "milp" else 6.0))
    with pytest.raises(RuntimeError, match=r"24 slots, 6 of work: 5\.0 g, but 6\.0"):
        solver.measure_all()
