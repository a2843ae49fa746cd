"""Make two weeks of carbon intensity and of a price, by the hour; `--check` exits with 1 if a byte differs."""

from __future__ import annotations

import sys
from datetime import datetime, timedelta
from pathlib import Path

import numpy as np

HERE = Path(__file__).parent
BEGIN = datetime(2024, 7, 1)
HOURS = 14 * 24
SEED = 7


def signals() -> tuple[np.ndarray, np.ndarray]:
    """Return carbon intensity (g/kWh) and price (EUR/kWh) of a grid in summer with much sun and some wind."""
    rng = np.random.default_rng(SEED)
    hour = np.arange(HOURS)
    clouds = np.repeat(rng.uniform(0.55, 1.0, HOURS // 24), 24)
    sun = clouds * np.maximum(0.0, np.sin((hour % 24 - 5.0) / 14.0 * np.pi)) * (hour % 24 < 19)
    wind = 0.5 + 0.5 * np.sin(hour / 61.0 + 0.9) + rng.normal(0.0, 0.05, HOURS)
    evening = np.exp(-(((hour % 24) - 19.0) ** 2) / 8.0)
    weekday = (hour // 24) % 7 < 5
    residual = 0.62 + 0.12 * weekday + 0.15 * evening - 0.42 * sun - 0.22 * wind
    carbon = 90.0 + 560.0 * np.clip(residual, 0.05, None)
    price = 0.02 + 0.18 * np.clip(residual, 0.0, None) + 0.04 * evening
    return carbon, price


def texts() -> dict[str, str]:
    """Return the contents of the files by name."""
    dates = [f"{BEGIN + timedelta(hours=hour):%Y-%m-%dT%H:%MZ}" for hour in range(HOURS)]
    carbon, price = signals()
    made = {
        "carbon-hourly.csv": ("carbon_intensity", [f"{value:.0f}" for value in carbon]),
        "price-hourly.csv": ("price (EUR/kWh)", [f"{value:.4f}" for value in price]),
    }
    return {
        name: "".join(f"{date},{value}\n" for date, value in zip(["datetime", *dates], [column, *values], strict=True))
        for name, (column, values) in made.items()
    }


if __name__ == "__main__":
    for name, text in texts().items():
        if "--check" not in sys.argv:
            (HERE / name).write_text(text)
        elif (HERE / name).read_text() != text:
            sys.exit(f"{name} differs from what this script makes")
