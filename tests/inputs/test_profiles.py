"""The shipped power profiles: their facts, and that the script makes them again byte for byte."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from pathlib import Path

import pytest

FOLDER = Path(__file__).resolve().parents[2] / "power_profiles"
FULL_W = 4242.0
ASLEEP_W = 130.0


def profile(number: int) -> tuple[list[int], list[float]]:
    lines = (FOLDER / f"profile{number}.csv").read_text(encoding="utf-8").splitlines()
    assert lines[0] == "time_s,power_w"
    rows = [line.split(",") for line in lines[1:]]
    return [int(time) for time, _ in rows], [float(power) for _, power in rows]


@pytest.mark.parametrize("number", [1, 2, 3])
def test_two_days_of_five_minutes_around_the_data_centre(number: int) -> None:
    times_s, powers_w = profile(number)
    assert times_s == list(range(0, 172_800, 300))
    assert min(powers_w) >= 250.0 > ASLEEP_W
    assert FULL_W < max(powers_w) <= 4700.0
    assert all(round(power, 1) == power for power in powers_w)


@pytest.mark.skipif(
    importlib.util.find_spec("pvlib") is None or importlib.util.find_spec("windpowerlib") is None,
    reason="pvlib or windpowerlib is not installed: pip install .[profiles]",
)
def test_the_script_makes_the_same_bytes() -> None:
    done = subprocess.run(
        [sys.executable, str(FOLDER / "make_profiles.py"), "--check"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
