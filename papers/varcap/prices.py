"""Capacities by price and carbon (sections 1.2.5, 5.4 and 6.3): how they vary, and what they save.

Series of carbon and prices are read from signals/, which is not shipped: the page names files, sources and digests.
`months.csv` has a row for each grid and month of 2023: figures of all its days with the budget of the year, and of its
15th with the budget of the day (`day_...`), which is an exemplar day of prices.yaml. `capacities.csv` has the days of
Figure 5.16.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pandas as pd

from batwatt.inputs.spec import parse_series
from batwatt.model.timeline import Timeline
from papers.generators.varcap import MEAN_CAPACITY
from papers.pages import write

SIGNALS = Path(__file__).parent / "signals"
HOUR_S, HOURS = 3600.0, 24
YEAR = "from=2023-01-01T00:00Z,to=2023-12-31T23:00Z"
HEADROOMS = (1.0, 0.9, 0.84, 0.8, 0.77, 0.7)
TWILIGHT = (14, 15, 16, 0, 1, 2, 3)
"""Hours (UTC) of the day that hold sunrise and sunset in California in every month."""
Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Grid:
    """A grid of 2023: files of its price and of its carbon, and the days of Figure 5.16."""

    name: str
    price: str
    carbon: str
    days: tuple[str, ...]


GRIDS = (
    Grid("DE", "processed-DE-LU_2023_local_EUR.csv,tz=Europe/Berlin", "DE-LU_2023_hourly.csv",
         ("2023-02-11", "2023-04-29", "2023-07-18", "2023-09-08")),
    Grid("CAISO", "US-CAL-CISO_electricity_prices_2023.csv", "US-CAL-CISO_2023_hourly.csv",
         ("2023-12-28", "2023-04-26", "2023-08-23", "2023-09-25")),
)  # fmt: skip


def capacity_of(text: str) -> tuple[Timeline, Timeline]:
    """Return the capacity that a text describes, and the signal behind it."""
    spec = parse_series("fraction", text)
    signal = spec.paid()
    assert signal is not None
    return spec.timeline(), signal


def by_hour(capacity: Timeline) -> Floats:
    """Return the capacity at each full hour."""
    return capacity.values_at(np.arange(0.0, capacity.end_s, HOUR_S))


def by_day(hours: Floats) -> Floats:
    """Return whole days of hours, a row each."""
    return hours[: len(hours) // HOURS * HOURS].reshape(-1, HOURS)


def day_of(grid: Grid, day: str) -> dict[str, float]:
    """Return figures of a day: gain, carbon and cost saved by headroom in %, and its capacities by carbon and price."""
    when = f"from={day}T00:00Z,days=1"
    carbon, price = (f"carbon:{SIGNALS / grid.carbon},{when}", f"price:{SIGNALS / grid.price},{when}")
    grams, money = (by_hour(capacity_of(text)[1]) for text in (carbon, price))
    row = {"day_carbon_times": grams.max() / grams.min()}
    for headroom in HEADROOMS:
        shares = by_hour(capacity_of(f"{carbon},headroom={headroom}")[0])
        row[f"day_gained_{headroom}"] = 100.0 * (shares.mean() / MEAN_CAPACITY - 1.0)
        for name, paid in (("carbon", grams), ("cost", money)):
            row[f"day_{name}_saved_{headroom}"] = 100.0 * (1.0 - (shares @ paid) / (MEAN_CAPACITY * paid.sum()))
    shares, bought = by_hour(capacity_of(carbon)[0]), by_hour(capacity_of(price)[0])
    steps = np.abs(np.diff(shares))
    return row | {
        "day_carbon_range": np.ptp(shares),
        "day_carbon_largest_step": steps.max(),
        "day_carbon_mean_step_of_range": steps.mean() / np.ptp(shares),
        "day_price_times": bought.max() / bought.min(),
        "day_price_largest_drop": -np.diff(bought).min(),
        "day_price_limit_percent": 100.0 * (bought >= bought.max() - 1e-9).mean() if bought.max() >= 1.0 else 0.0,
    }


def months() -> pd.DataFrame:
    """Return the figures of each grid and month, of all days with the budget of the year and of the 15th."""
    rows = []
    for grid in GRIDS:
        capacity, signal = capacity_of(f"carbon:{SIGNALS / grid.carbon},{YEAR}")
        shares, grams = by_day(by_hour(capacity)), by_day(by_hour(signal))
        month = pd.date_range("2023-01-01", periods=len(shares)).month
        steps = np.abs(np.diff(shares, axis=1))
        twilight = np.isin(np.arange(1, HOURS), TWILIGHT)
        for number in range(1, 13):
            days = month == number
            row = {
                "grid": grid.name,
                "month": number,
                "mean": shares[days].mean(),
                "range": np.ptp(shares[days], axis=1).mean(),
                "carbon_sd": grams[days].std(axis=1).mean(),
                "step_twilight": steps[days][:, twilight].mean(),
                "step_else": steps[days][:, ~twilight].mean(),
                "carbon_saved": 100.0 * (1.0 - (shares * grams)[days].sum() / (MEAN_CAPACITY * grams[days].sum())),
            }
            rows.append(row | day_of(grid, f"2023-{number:02d}-15"))
    return pd.DataFrame(rows).round(6)


def capacities() -> pd.DataFrame:
    """Return mean and range of the days of Figure 5.16."""
    means = {grid: capacity_of(f"carbon:{SIGNALS / grid.carbon},{YEAR}")[1].mean for grid in GRIDS}
    texts = {
        f"{grid.name}-{day}": f"carbon:{SIGNALS / grid.carbon},from={day}T00:00Z,days=1,reference={mean!r}"
        for grid, mean in means.items()
        for day in grid.days
    }
    hours = {name: by_hour(capacity_of(text)[0]) for name, text in texts.items()}
    rows = [[name, of.mean(), np.ptp(of)] for name, of in hours.items()]
    return pd.DataFrame(rows, columns=["capacity", "mean", "range"]).round(6)


def write_numbers(folder: Path) -> None:
    """Write months.csv and capacities.csv. Raises InputError without the files of signals/."""
    for name, frame in (("months", months()), ("capacities", capacities())):
        write(folder / f"{name}.csv", frame)
