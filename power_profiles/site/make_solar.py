"""Make two weeks of an inverter's log; `--check` exits with 1 if a byte differs."""

from __future__ import annotations

import sys
from datetime import datetime, timedelta, timezone
from pathlib import Path

import numpy as np

TARGET = Path(__file__).parent / "solar.csv"
ZONE = timezone(timedelta(hours=2))
BEGIN = datetime(2024, 7, 1, tzinfo=ZONE)
STEP_MIN = 15
ROWS = (14 * 24 + 2) * 60 // STEP_MIN
PEAK_KW = 48.0
LATITUDE, LONGITUDE = 52.4, 13.1
SEED = 11
DAYS = (0.95, 0.9, 0.55, 0.3, 0.7, 0.95, 1.0, 0.85, 0.45, 0.6, 0.9, 1.0, 0.35, 0.75, 0.9)
"""Mean clearness of the sky of each day."""


def clear_sky() -> np.ndarray:
    """Return the sine of the sun's elevation in July, at least 0."""
    hour = np.arange(ROWS) * STEP_MIN / 60.0 - 2.0 + LONGITUDE / 15.0
    declination, latitude = np.radians(22.5), np.radians(LATITUDE)
    angle = np.radians(15.0 * (hour % 24.0 - 12.0))
    height = np.sin(latitude) * np.sin(declination) + np.cos(latitude) * np.cos(declination) * np.cos(angle)
    return np.maximum(height, 0.0)


def text() -> str:
    """Return the log: kW by local dates. At night the meter reads some watts of either sign."""
    rng = np.random.default_rng(SEED)
    height = clear_sky()
    day = np.array(DAYS)[np.arange(ROWS) * STEP_MIN // (24 * 60)]
    cloud, swing = np.zeros(ROWS), 0.0
    for row in range(ROWS):
        swing = 0.8 * swing + rng.normal(0.0, 0.6)
        cloud[row] = swing
    # less clear days vary more
    index = np.clip(day + 0.35 * np.sqrt(day * (1.0 - day)) * cloud, 0.08, 1.05)
    power = PEAK_KW * height**1.15 * index
    power = np.where(height > 0.0, power, rng.normal(0.0, 0.004, ROWS))
    dates = (BEGIN + timedelta(minutes=STEP_MIN * row) for row in range(ROWS))
    rows = (f"{date:%Y-%m-%dT%H:%M}+02:00,{value:.3f}" for date, value in zip(dates, power.tolist(), strict=True))
    return "\n".join(["time,ac_power_kw", *rows]) + "\n"


if __name__ == "__main__":
    if "--check" not in sys.argv:
        TARGET.write_text(text(), encoding="utf-8")
    elif TARGET.read_text(encoding="utf-8") != text():
        sys.exit(f"{TARGET.name} differs from what this script makes")
