import logging
import os
import shutil
import signal
import sys
from pathlib import Path

import pytest
from hypothesis import settings

sys.path.insert(0, str(Path(__file__).parent / "helpers"))

from examples import examples
from false_batsim import false_batsim

pytest_plugins = ("cli_house",)

# what is compiled is kept, also for processes that tests start: else each would compile all of our sources anew
sys.dont_write_bytecode = False
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)

# started by nohup, it would be ignored in all tests
if hasattr(signal, "SIGHUP"):
    signal.signal(signal.SIGHUP, signal.SIG_DFL)

# tests that ask for no number of examples, too, draw what a push needs; CI draws the same every time
settings.register_profile("ours", examples(100), derandomize=bool(os.environ.get("CI")))
settings.load_profile("ours")

NO_BATSIM = pytest.mark.skipif(shutil.which("batsim") is None, reason="no real `batsim` on PATH")


@pytest.fixture
def quiet():
    """Log no warning."""
    logging.disable(logging.WARNING)
    yield
    logging.disable(logging.NOTSET)


@pytest.fixture(params=[pytest.param("real", marks=NO_BATSIM), "recorded 5"])
def batsim(request, tmp_path_factory):
    """An executable for `--engine batsim`: the real one on PATH, 4 or 5, and a recorded Batsim 5."""
    if request.param == "real":
        return "batsim"
    return str(false_batsim(tmp_path_factory.mktemp("false") / "batsim", "recorded"))


@pytest.fixture(autouse=True)
def forgotten_parts():
    """What a file of a test's own registers is forgotten after it, as other tests go over all parts."""
    yield
    if loading := sys.modules.get("batwatt.run.loader"):
        loading._plugins.clear()
    tables = list(registry._parts.values()) if (registry := sys.modules.get("batwatt.scheduling.registry")) else []
    if carbon := sys.modules.get("batwatt.schedulers.carbon.policies"):
        tables.append(carbon.POLICIES)
    for table in tables:
        for name in [name for name, part in table.items() if _own(part)]:
            del table[name]


def _own(part) -> bool:
    return getattr(part, "choose", part).__module__.startswith("batwatt_user_")
