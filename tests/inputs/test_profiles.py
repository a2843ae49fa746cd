"""The shipped power profiles: the script makes them again byte for byte."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from pathlib import Path

import pytest

FOLDER = Path(__file__).resolve().parents[2] / "power_profiles"


@pytest.mark.skipif(
    importlib.util.find_spec("pvlib") is None or importlib.util.find_spec("windpowerlib") is None,
    reason="pvlib or windpowerlib is not installed: pip install .[profiles]",
)
def test_the_script_makes_the_same_bytes() -> None:
    done = subprocess.run(
        [sys.executable, str(FOLDER / "make_profiles.py"), "--check"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
