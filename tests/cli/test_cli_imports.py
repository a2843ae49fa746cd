"""What commands import before they run: nothing that takes long, so that help and errors come at once."""

from __future__ import annotations

import json
import subprocess
import sys

HEAVY = {"numpy", "pandas", "pyarrow", "matplotlib", "ortools", "jinja2", "pulp", "redis", "zmq"}
SHOW = "import json, sys; print(json.dumps([n for n, m in sys.modules.items() if getattr(m, '__spec__', None)]))"


def imported(code: str) -> set[str]:
    """The modules, but those that are only announced, that a new process has imported after some code."""
    done = subprocess.run([sys.executable, "-c", f"{code}\n{SHOW}"], capture_output=True, text=True, check=True)
    return set(json.loads(done.stdout.splitlines()[-1]))


HELPS = """
import contextlib, io, json, sys, typer
from batwatt.cli.main import application, main

def walk(command, words=()):
    yield words
    for name, one in getattr(command, "commands", {}).items():
        yield from walk(one, (*words, name))

for words in walk(typer.main.get_command(application())):
    shown = io.StringIO()
    with contextlib.redirect_stdout(shown), contextlib.suppress(SystemExit):
        main([*words, "--help"])
    assert "Usage: batwatt" in shown.getvalue(), words
"""


def test_no_help_of_any_command_imports_what_takes_long():
    assert not imported(HELPS) & (HEAVY | {"pydantic"})


def test_help_after_an_option_is_that_of_the_command():
    plain, more = (
        subprocess.run([sys.executable, "-m", "batwatt", *words], capture_output=True, text=True, check=True).stdout
        for words in (["run", "--help"], ["-v", "run", "--help"])
    )
    assert plain == more and "--platform" in plain


def test_the_version_imports_nothing_heavy():
    found = imported("from batwatt.cli.main import main\ntry: main(['--version'])\nexcept SystemExit: pass")
    assert not found & HEAVY and "batwatt.cli.main" in found


def test_an_engine_without_metrics_needs_no_pandas():
    assert not imported("import batwatt.run.run") & (HEAVY - {"numpy"})


def test_a_run_of_powercap_imports_nothing_heavy_but_numpy(tmp_path):
    """With its figures and all its files; what pybatsim imports of zmq and redis is not loaded."""
    files = ["-p", "platforms/small.xml", "-w", "workloads/small.json", "--envelope", "power_profiles/profile3.csv"]
    words = ["run", "-s", "powercap", *files, "-e", str(tmp_path / "x")]
    found = imported(f"from batwatt.cli.main import main\ntry: main({words!r})\nexcept SystemExit: pass")
    assert (tmp_path / "x_metrics.json").exists() and "batwatt.results.metrics" in found
    assert not found & (HEAVY - {"numpy"})


def test_what_pybatsim_asks_for_is_loaded_when_it_is_used():
    assert "redis" not in imported("import batwatt, batsim.batsim")
    assert "redis.client" in imported("import batwatt, batsim.batsim, redis; redis.StrictRedis")
    assert "zmq" not in imported("import batwatt, batsim.batsim")
    served = "import batwatt, zmq, batsim.network as n; h = n.NetworkHandler('tcp://127.0.0.1:*'); h.bind(); h.close()"
    assert "zmq.sugar.context" in imported(f"{served}; assert h.type == zmq.REP")


def test_a_function_of_the_python_api_loads_its_own_module_only():
    found = imported("import batwatt as bw; bw.simulate")
    assert "batwatt.api.simulation" in found
    assert not found & {"batwatt.api.comparison", "batwatt.api.planning", "multiprocessing"}
    assert "batwatt.api.comparison" in imported("import batwatt as bw; [getattr(bw, name) for name in bw.__all__]")
