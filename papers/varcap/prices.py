"""Capacities by price and carbon (sections 5.4 and 6.3): capacity and savings of constant budgets by the hour.

Series of carbon and prices are read from signals/, which is not shipped: the page names files, sources and digests.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pandas as pd

from batwatt.inputs.character import bill, characterise
from batwatt.inputs.spec import parse_series
from batwatt.model.timeline import Timeline
from papers.claims import Claim
from papers.generators.varcap import MEAN_CAPACITY
from papers.pages import markdown, number
from papers.pairs import Points, interval
from papers.varcap.sentences import Single, quotient

SIGNALS = Path(__file__).parent / "signals"
DATA = Path(__file__).parent / "data"
HOUR_S, HOURS = 3600.0, 24
YEAR_20, YEAR_23 = "from=2020-01-01,to=2021-01-01", "from=2023-01-01T00:00Z,to=2023-12-31T23:00Z"
SEASONS = {"January, February": ("01-01", "03-01"), "March to May": ("03-01", "06-01"),
           "June to August": ("06-01", "09-01"), "September to November": ("09-01", "12-01")}  # fmt: skip
Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Grid:
    """A grid of 2023: files of its price and of its carbon, with arguments of their readers."""

    name: str
    price: str
    carbon: str | None = None


DE = Grid("DE-LU", "processed-DE-LU_2023_local_EUR.csv,tz=Europe/Berlin", "DE-LU_2023_hourly.csv")
FR = Grid("FR", "FR_electricity_prices_2023.csv")
CAISO = Grid("CAISO", "US-CAL-CISO_electricity_prices_2023.csv", "US-CAL-CISO_2023_hourly.csv")
AVERAGED = Grid("DE-LU, means of two hours", "DE-LU_electricity_prices_2023.csv")
GRIDS = (DE, FR, CAISO)
CARBON = {
    "Germany, July to October 2024": ("DE-2024-hourly.csv", ""),
    "Germany 2023": (str(DE.carbon), YEAR_23),
    "France 2020": ("FR-2020-30min.csv", YEAR_20),
    "CAISO 2023": (str(CAISO.carbon), YEAR_23),
}
"""Row -> file, and its part in use; the budget is that of the whole part, also in each of its seasons."""
MARGINAL = "watttime-caiso-north-5min.csv,unit=g/kWh"
DAYS = tuple(f"2023-{month:02d}-15" for month in range(1, 13))
"""The exemplar days of prices.yaml."""
HEADROOMS = (1.0, 0.9, 0.84, 0.8, 0.77, 0.7)


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


def character(name: str, text: str) -> dict[str, object]:
    """Return the variation of a capacity, its savings and its gain."""
    capacity, signal = capacity_of(text)
    traits, paid, hours = characterise(capacity), bill(capacity, signal), by_hour(capacity)
    days = by_day(hours)
    low, middle, high = np.quantile(hours, (0.25, 0.5, 0.75))
    fold = days.max(axis=1) / np.maximum(days.min(axis=1), 1e-9)
    volatile = days[np.argsort(-days.std(axis=1), kind="stable")[: round(0.1 * len(days))]]
    centred = volatile - volatile.mean(axis=1, keepdims=True)
    follows = (centred[:, :-1] * centred[:, 1:]).sum(axis=1) / (centred**2).sum(axis=1)
    return {
        "capacity_by": name,
        "structure": traits.structure,
        "low": traits.low,
        "high": traits.high,
        "quartile1": low,
        "median": middle,
        "quartile3": high,
        "mean": traits.mean,
        "median_range_of_a_day": np.median(days.max(axis=1) - days.min(axis=1)),
        "mean_step": traits.step_mean,
        "steps_95_percent": np.quantile(np.abs(np.diff(hours)), 0.95),
        "largest_step": traits.step_max,
        "saved_percent": 100.0 * (paid.saved or 0.0),
        "gained_percent": 100.0 * (paid.gained or 0.0),
        "days_of_5_fold_percent": 100.0 * np.mean(fold >= 5.0),
        "correlation_of_hours_volatile_days": np.median(follows),
        "hours_at_headroom_percent": 100.0 * np.mean(hours >= 1.0),
    }


def variation() -> pd.DataFrame:
    """Return the variation of capacities by carbon and by price (5.4.1, 5.4.2, Figures 5.12 and 5.14)."""
    rows = []
    for name, (file, whole) in CARBON.items():
        text = f"carbon:{SIGNALS / file},period=3600"
        mean = capacity_of(f"{text},{whole}" if whole else text)[1].mean
        parts = {name: whole}
        if whole:
            year = whole[5:9]
            parts |= {
                f"{name}, {season}": f"from={year}-{begin},to={year}-{end}" for season, (begin, end) in SEASONS.items()
            }
        rows += [
            character(part, f"{text},reference={mean!r}{',' if used else ''}{used}") for part, used in parts.items()
        ]
    rows.append(character("CAISO, marginal, 8 June to 8 July 2023", f"carbon:{SIGNALS / MARGINAL},period=3600"))
    rows += [
        character(f"price {grid.name}", f"price:{SIGNALS / grid.price},{YEAR_23}") for grid in (DE, AVERAGED, FR, CAISO)
    ]
    return pd.DataFrame(rows).round(4)


def stranded() -> pd.DataFrame:
    """Return the times of free power (5.4.3, Figure 5.15): share, hours, lengths and carbon."""
    rows = []
    for grid in GRIDS:
        text = f"{SIGNALS / grid.price},{YEAR_23}"
        price, free = (
            by_hour(capacity_of(f"price:{text}")[1]),
            by_hour(capacity_of(f"stranded:{text},threshold=0")[0]) > 0.0,
        )
        months = pd.date_range("2023-01-01", periods=len(free), freq="h").strftime("%m-%d")
        edges = np.diff(free.astype(int), prepend=0, append=0)
        lasting = np.flatnonzero(edges == -1) - np.flatnonzero(edges == 1)
        row: dict[str, object] = {
            "prices": grid.name,
            "free_percent": 100.0 * free.mean(),
            "below_0_percent": 100.0 * np.mean(price < 0.0),
        }
        for season, (begin, end) in SEASONS.items():
            row[f"{season} percent"] = 100.0 * free[(months >= begin) & (months < end)].mean()
        row |= {"times": len(lasting), "mean_h": lasting.mean(), "longest_h": lasting.max(),
                "longest_without_days": (np.diff(np.flatnonzero(free)).max() - 1) / HOURS}  # fmt: skip
        if grid.carbon is not None:
            carbon = by_hour(capacity_of(f"carbon:{SIGNALS / grid.carbon},{YEAR_23}")[1])
            row["carbon_then_percent_of_mean"] = 100.0 * carbon[free].mean() / carbon.mean()
        rows.append(row)
    return pd.DataFrame(rows).round(2)


def days_of(grid: Grid, headroom: float, budget: str, by: str) -> pd.DataFrame:
    """Return carbon, cost and capacity of each day at a headroom, and those of a fixed capacity.

    The budget, of carbon or of money (`by`), is that of the day, for the exemplar days, or that of the year.
    """
    followed = grid.carbon if by == "carbon" else grid.price
    parts = []
    for when in [f"from={day}T00:00Z,days=1" for day in DAYS] if budget == "day" else [YEAR_23]:
        shares = by_day(by_hour(capacity_of(f"{by}:{SIGNALS / str(followed)},{when},headroom={headroom}")[0]))
        columns = {"gained": shares.mean(axis=1) / MEAN_CAPACITY - 1.0}
        for kind, file in (("carbon", grid.carbon), ("price", grid.price)):
            if file is not None:
                paid = by_day(by_hour(capacity_of(f"{kind}:{SIGNALS / file},{when}")[1]))
                columns |= {kind: (shares * paid).sum(axis=1), f"{kind}_fixed": MEAN_CAPACITY * paid.sum(axis=1)}
        parts.append(pd.DataFrame(columns))
    return pd.concat(parts, ignore_index=True)


def cost(points: Points) -> pd.DataFrame:
    """Return carbon and cost saved by headroom with errors, and the work of LWW (Figures 6.12 and 6.13)."""
    frame = points.frame[(points.frame["label"] == "LWW") & (points.frame["source"] == "carbon DE")]
    cases = [
        (grid, budget, "carbon", headroom)
        for grid in (DE, CAISO)
        for budget in ("day", "year")
        for headroom in HEADROOMS
    ]
    rows = []
    for grid, budget, by, headroom in [*cases, *((grid, "year", "price", 1.0) for grid in GRIDS)]:
        days = days_of(grid, headroom, budget, by)
        row: dict[str, object] = {"grid": grid.name, "by": by, "budget": budget}
        row |= {"headroom": headroom, "days": len(days)}
        figures = {
            "cost_saved": quotient(days["price"], days["price_fixed"], "less"),
            "gained": interval(100.0 * days["gained"]),
        }
        if grid.carbon is not None:
            figures["carbon_saved"] = quotient(days["carbon"], days["carbon_fixed"], "less")
        studies = ("german-year",) if budget == "year" else ("german", "german-headroom")
        runs = frame[frame["study"].isin(studies) & np.isclose(frame["headroom"], headroom)]
        if grid is DE and by == "carbon":
            figures["work"] = interval(runs.groupby("day")["work_percent"].mean())
        for name, (mean, error, half) in figures.items():
            row |= {f"{name}_percent": mean, f"{name}_error": error, f"{name}_half": half}
        rows.append(row)
    return pd.DataFrame(rows).round(4)


def ranges() -> pd.DataFrame:
    """Return the mean range of a day in % with its error, by price and by carbon, of the year and of summer."""
    rows = []
    for grid in GRIDS:
        for by, file in (("price", grid.price), ("carbon", grid.carbon)):
            if file is None:
                continue
            days = by_day(by_hour(capacity_of(f"{by}:{SIGNALS / file},{YEAR_23}")[0]))
            values = pd.Series(100.0 * (days.max(axis=1) - days.min(axis=1)))
            summer = pd.date_range("2023-01-01", periods=len(days)).month.isin((6, 7, 8))
            for season, part in (("year", values), ("summer", values[summer])):
                rows.append([grid.name, by, season, len(part), *interval(part)])
    return pd.DataFrame(
        rows, columns=["grid", "by", "season", "days", "range_percent", "range_error", "range_half"]
    ).round(4)


@dataclass(frozen=True)
class Priced:
    """A number of a file: its column, its row without the grid, and the bounds of its verdict."""

    file: str
    column: str
    row: Mapping[str, object]
    bounds: Single

    def __call__(self, grid: str) -> tuple[str, str]:
        """Return the number of a grid with its error, and the verdict; dashes for a missing number."""
        frame = pd.read_csv(DATA / self.file)
        for name, value in {"grid": grid, **self.row}.items():
            frame = frame[frame[name] == value]
        if frame.empty or frame[f"{self.column}_percent"].isna().all():
            return "–", "–"
        mean, error, half = frame[[f"{self.column}_percent", f"{self.column}_error", f"{self.column}_half"]].iloc[0]
        return f"{number(mean, 1)} ± {number(error, 1)} %", self.bounds.verdict(mean, half)


@dataclass(frozen=True)
class SavedPer:
    """The cost saved per machine-hour (`gained`) or unit of work (`work`) with the budget of the year, at 0.7.

    Bought capacity and work differ from those of the fixed capacity by the share of the column.
    """

    column: str

    def __call__(self, grid: str) -> tuple[str, str]:
        """Return the number of a grid without a verdict; dashes for a missing number."""
        frame = pd.read_csv(DATA / "cost.csv").set_index(["grid", "by", "budget", "headroom"])
        if (grid, "carbon", "year", 0.7) not in frame.index:
            return "–", "–"
        row = frame.loc[(grid, "carbon", "year", 0.7)]
        amount = 1.0 + row["gained_percent"] / 100.0 if self.column == "gained" else row["work_percent"] / 100.0
        return f"{number(100.0 - (100.0 - row['cost_saved_percent']) / amount, 1)} %".replace("– %", "–"), "–"


def _bounds(printed: float, **more: object) -> Single:
    side = ("", 0.0, 0.0)
    return Single("", "value", side, None, printed, **more)  # type: ignore[arg-type]


def _saved(sentence: str, printed: float, headroom: float, budget: str) -> Claim:
    row = {"by": "carbon", "budget": budget, "headroom": headroom}
    return Claim(sentence, "6.3", Priced("cost.csv", "cost_saved", row, _bounds(printed, neutral=0.0)))


SENTENCES = (
    _saved("Carbon-aware power costs less at hourly prices: most capacity 1", 0.0, 1.0, "day"),
    _saved("Carbon-aware power costs less at hourly prices: most capacity 0.8", 0.0, 0.8, "day"),
    _saved("Cost is up to 14 % less: most capacity 0.7, budgets of a day", 14.0, 0.7, "day"),
    _saved("Cost is up to 14 % less: most capacity 0.7, budget of the year", 14.0, 0.7, "year"),
    Claim("Cost less for each bought machine-hour: 0.7, year (ours)", "6.3", SavedPer("gained")),
    Claim("Cost less for each unit of work of LWW: 0.7, year (ours)", "6.3", SavedPer("work")),
    _saved("Cost is up to 14 % less: most capacity 0.8, budget of the year", 14.0, 0.8, "year"),
    Claim("Constant carbon gives 6 to 16 % more capacity, 11 % on average", "6.3", Priced(
        "cost.csv", "gained", {"by": "carbon", "budget": "day", "headroom": 1.0}, _bounds(11.0, neutral=0.0))),
    Claim("A constant budget of money for a year saves money (ours)", "5.4.1", Priced(
        "cost.csv", "cost_saved", {"by": "price", "budget": "year", "headroom": 1.0}, _bounds(0.0, neutral=0.0))),
    Claim("Capacity by price goes over [0.2, 1.0], 5-fold: the range of a day", "5.4.1", Priced(
        "ranges.csv", "range", {"by": "price", "season": "year"}, _bounds(80.0, neutral=0.0))),
    Claim("Capacity by carbon goes over [0.4, 1.0] (said of CAISO): the range of a day", "5.4.2", Priced(
        "ranges.csv", "range", {"by": "carbon", "season": "year"}, _bounds(60.0, neutral=0.0))),
    Claim("Capacity by carbon varies by 0.1 at most in summer: the range of a day", "5.4.2", Priced(
        "ranges.csv", "range", {"by": "carbon", "season": "summer"}, _bounds(10.0, most=True))),
)  # fmt: skip


def sentences_table() -> str:
    """Return each sentence with its number and verdict in each grid whose carbon is known."""
    grids = [grid.name for grid in GRIDS if grid.carbon is not None]
    rows = [[one.section, one.sentence, *(text for grid in grids for text in one.test(grid))] for one in SENTENCES]
    heading = [text for grid in grids for text in (f"{grid} 2023", "holds")]
    return markdown(["where", "the dissertation", *heading], rows, texts=6)


def write_numbers(points: Points) -> None:
    """Write variation.csv, stranded.csv, cost.csv and ranges.csv. Raises InputError without the files of signals/."""
    frames = {"variation": variation(), "stranded": stranded(), "cost": cost(points), "ranges": ranges()}
    for name, frame in frames.items():
        frame.to_csv(DATA / f"{name}.csv", index=False, lineterminator="\n")
