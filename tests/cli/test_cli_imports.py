"""What commands import before they run: nothing that takes long, so that help and errors come at once."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

HEAVY = {"numpy", "pandas", "pyarrow", "matplotlib", "numba", "ortools", "plotly", "pulp", "joblib", "redis", "zmq"}
SHOW = "import json, sys; print(json.dumps([n for n, m in sys.modules.items() if getattr(m, '__spec__', None)]))"


def imported(code: str) -> set[str]:
    """The modules, but those that are only announced, that a new process has imported after some code."""
    done = subprocess.run([sys.executable, "-c", f"{code}\n{SHOW}"], capture_output=True, text=True, check=True)
    return set(json.loads(done.stdout.splitlines()[-1]))


@pytest.mark.parametrize(
    "words",
    [("--version",), ("run", "--help"), ("serve", "--help"), ("campaign", "run", "--help"), ("carbon", "--help"),
     ("checkpoint", "plan", "--help"), ("policies", "--help"), ("convert", "--help"), ("optimum", "--help")],
    ids=" ".join,
)  # fmt: skip
def test_help_imports_nothing_heavy(words):
    ended = f"from batwatt.cli.main import main\ntry: main({list(words)!r})\nexcept SystemExit: pass"
    found = imported(ended)
    assert not found & HEAVY and "batwatt.cli.main" in found


def test_an_engine_without_metrics_needs_no_pandas():
    assert not imported("import batwatt.run.run") & (HEAVY - {"numpy", "zmq"})


def test_what_pybatsim_asks_for_is_loaded_when_it_is_used():
    assert "redis" not in imported("import batwatt, batsim.batsim")
    assert "redis.client" in imported("import batwatt, batsim.batsim, redis; redis.StrictRedis")
