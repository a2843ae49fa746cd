"""Make the tables of docs/results/varcap.md of capacities by price and carbon, from the results of varcap-prices.yaml.

python experiments/varcap_prices.py results/varcap-prices
    writes them to docs/results/varcap and puts all tables there on the page; `varcap_tables.py --check` checks them
Series of carbon and prices are read from ../shared/data, which is not shipped.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path

import doc_pages
import numpy as np
import numpy.typing as npt
import pandas as pd
from varcap_claims import Sentence, points_of, shown_number
from varcap_tables import ALL, DOCS, PAGES, PRICED, markdown, tables_of, with_error, write_tables

from batwatt.errors import InputError
from batwatt.inputs.series.capacity_spec import parse_capacity
from batwatt.inputs.series.characterise import characterise
from batwatt.inputs.series.energy_budget import bill, held
from batwatt.inputs.workloads.varcap_like import MEAN_CAPACITY
from batwatt.model.signal import Signal
from batwatt.report.claims import mean_of
from batwatt.report.papers.varcap import FIXED, WORK
from batwatt.report.table import read_campaign
from batwatt.units import HOUR_S

PERCENT = 100.0
MOST_STEPS = 0.95
HOURS = 24
Floats = npt.NDArray[np.float64]

DATA = Path(__file__).resolve().parents[2] / "shared" / "data"
GERMANY, FRANCE = "carbon/DE-2024-hourly.csv", "carbon/FR-2020-30min.csv"
GERMANY_23, CALIFORNIA = "sites/carbon/DE-LU_2023_hourly.csv", "sites/carbon/US-CAL-CISO_2023_hourly.csv"
MARGINAL = "sites/carbon/watttime-caiso-north-5min.csv,unit=g/kWh"
YEAR_20, YEAR_23 = "from=2020-01-01,to=2021-01-01", "from=2023-01-01T00:00Z,to=2023-12-31T23:00Z"
SEASONS = (
    ("January, February", "01-01", "03-01"),
    ("March to May", "03-01", "06-01"),
    ("June to August", "06-01", "09-01"),
    ("September to November", "09-01", "12-01"),
)


def _seasons(grid: str, year: int) -> tuple[tuple[str, str, str], ...]:
    return tuple((f"{grid}, {name}", f"from={year}-{begin}", f"to={year}-{end}") for name, begin, end in SEASONS)


CARBON_GRIDS = (
    ("Germany, July to October 2024", GERMANY, "", ""),
    *((name, GERMANY_23, YEAR_23, f"{begin},{end}") for name, begin, end in
      (("Germany 2023", "", ""), *_seasons("Germany", 2023))),
    *((name, FRANCE, YEAR_20, f"{begin},{end}") for name, begin, end in
      (("France 2020", "", ""), *_seasons("France", 2020))),
    *((name, CALIFORNIA, YEAR_23, f"{begin},{end}") for name, begin, end in
      (("CAISO 2023", "", ""), *_seasons("CAISO", 2023))),
    ("CAISO, marginal, 8 June to 8 July 2023", MARGINAL, "", ""),
)  # fmt: skip
"""Row, file, all that is used of it, and the part of the row; parts of a year have the budget of all of it."""


@dataclass(frozen=True)
class Grid:
    """A grid of 2023: specifications of its carbon and of its price."""

    name: str
    price: str
    carbon: str | None = None


_PRICES = "sites/price"
DE = Grid("DE-LU", f"{_PRICES}/processed-DE-LU_2023_local_EUR.csv,tz=Europe/Berlin", GERMANY_23)
FR = Grid("FR", f"{_PRICES}/FR_electricity_prices_2023.csv")
CAISO = Grid("CAISO", f"{_PRICES}/US-CAL-CISO_electricity_prices_2023.csv", CALIFORNIA)
AVERAGED = Grid("DE-LU, means of two hours", f"{_PRICES}/DE-LU_electricity_prices_2023.csv", GERMANY_23)
GRIDS = (DE, FR, CAISO)
DAYS = tuple(f"2023-{month:02d}-15" for month in range(1, 13))
"""The exemplar days of varcap-prices.yaml."""
HEADROOMS = (1.0, 0.9, 0.84, 0.8, 0.77, 0.7)
SAME_WORK = 0.8
"""The headroom at which the dissertation's data centre does as much work as the fixed one, 20 % of the most."""
DAY, YEAR = "day", "year"
"""What a budget is for."""
FOLD = 5.0
VOLATILE = 0.1
"""The share of days, those of the largest standard deviation, that are called volatile."""


def capacity_of(text: str) -> tuple[Signal, Signal]:
    """The capacity that a text describes, and the signal behind it. Raises InputError."""
    spec = parse_capacity(text)
    signal = spec.signal(0.0) if spec else None
    if spec is None or signal is None:
        raise InputError(text, "is no capacity by a signal", "write carbon:FILE")
    return spec.found(0.0), signal


def by_hour(capacity: Signal) -> Floats:
    """The capacity at each full hour."""
    return held(capacity.series, np.arange(0.0, capacity.end_s, HOUR_S))


def by_day(hours: Floats) -> Floats:
    """Whole days of hours, a row each."""
    return hours[: len(hours) // HOURS * HOURS].reshape(-1, HOURS)


def carbon_table(data: Path = DATA) -> str:
    """What capacity a constant budget of carbon buys in each of `CARBON_GRIDS`, by the hour. Raises InputError."""
    rows = []
    for name, file, whole, part in CARBON_GRIDS:
        text = f"carbon:{data / file},period=3600"
        reference = capacity_of(f"{text},{whole}" if whole else text)[1].mean
        used = part.strip(",") or whole
        text = f"{text},reference={reference!r}"
        rows.append([name, *_character(*capacity_of(f"{text},{used}" if used else text))])
    return markdown(["grid", *_CHARACTER, "carbon saved, %", "more capacity, %"], rows)


_CHARACTER = ("structure", "capacity", "quartiles", "mean", "median range of a day", "mean step",
              f"{MOST_STEPS:.0%} of the steps: at most", "largest")  # fmt: skip


def _character(capacity: Signal, signal: Signal) -> list[str]:
    """The cells of `_CHARACTER`, and what is saved and gained."""
    character, paid, hours = characterise(capacity), bill(capacity.series, signal), by_hour(capacity)
    days = by_day(hours)
    daily = float(np.median(days.max(axis=1) - days.min(axis=1)))
    shares = [f"{PERCENT * share:.1f}" for share in (paid.saved or 0.0, paid.gained or 0.0)]
    most = float(np.quantile(np.abs(np.diff(hours)), MOST_STEPS))
    values = (character.mean, daily, character.step_mean, most, character.step_max)
    quartiles = ", ".join(f"{value:.2f}" for value in np.quantile(hours, (0.25, 0.5, 0.75)))
    ends = f"{character.low:.2f} to {character.high:.2f}"
    return [character.structure, ends, quartiles, *(f"{value:.3f}" for value in values), *shares]


def price_table(data: Path = DATA) -> str:
    """What a constant budget of money buys, by the hour (5.4.1, Figure 5.12). Raises InputError."""
    rows = []
    for grid in (DE, AVERAGED, FR, CAISO):
        capacity, signal = capacity_of(f"price:{data / grid.price},{YEAR_23}")
        days = by_day(by_hour(capacity))
        fold = days.max(axis=1) / days.min(axis=1)
        wild = days[np.argsort(-days.std(axis=1), kind="stable")[: round(VOLATILE * len(days))]]
        full = PERCENT * float(np.mean(by_hour(capacity) >= 1.0))
        rows.append([grid.name, *_character(capacity, signal), f"{PERCENT * np.mean(fold >= FOLD):.1f}",
                     f"{np.median([_correlation(day) for day in wild]):.2f}", f"{full:.1f}"])  # fmt: skip
    heads = ["cost saved, %", "more capacity, %", "days of 5-fold or more, %", "correlation of hours, volatile days"]
    return markdown(["prices of 2023", *_CHARACTER, *heads, "hours at the headroom, %"], rows)


def _correlation(values: Floats) -> float:
    """The lag-1 correlation of a day's hours."""
    around = values - values.mean()
    return float(around[:-1] @ around[1:] / (around @ around))


def stranded_table(data: Path = DATA) -> str:
    """When power costs nothing (5.4.3, Figure 5.15): how much, when, how long, at which carbon. Raises InputError."""
    rows = []
    for grid in GRIDS:
        text = f"{data / grid.price},{YEAR_23}"
        price = capacity_of(f"price:{text}")[1]
        capacity, _ = capacity_of(f"stranded:{text},threshold=0")
        free = by_hour(capacity) > 0.0
        seasons = [f"{PERCENT * share:.1f}" for share in _by_season(free)]
        edges = np.diff(free.astype(int), prepend=0, append=0)
        lasting = np.flatnonzero(edges == -1) - np.flatnonzero(edges == 1)
        waiting = np.diff(np.flatnonzero(free)).max(initial=1) - 1
        weeks = free[: len(free) // (7 * HOURS) * 7 * HOURS].reshape(-1, 7 * HOURS).any(axis=1)
        emitted = ""
        if grid.carbon is not None:
            carbon = by_hour(capacity_of(f"carbon:{data / grid.carbon},{YEAR_23}")[1])
            emitted = f"{PERCENT * carbon[free].mean() / carbon.mean():.0f}"
        below = PERCENT * float(np.mean(by_hour(price) < 0.0))
        rows.append([grid.name, characterise(capacity).structure, f"{PERCENT * free.mean():.1f}", f"{below:.1f}",
                     *seasons, str(len(lasting)), f"{lasting.mean():.1f}", str(lasting.max()),
                     f"{waiting / HOURS:.0f}", f"{PERCENT * weeks.mean():.0f}", emitted])  # fmt: skip
    heads = ["structure", "hours at 0 or less, %", "below 0, %", *(name for name, _, _ in SEASONS), "times",
             "h, mean", "h, longest", "longest without, days", "weeks with some, %",
             "carbon then, % of the mean"]  # fmt: skip
    return markdown(["prices of 2023", *heads], rows)


def _by_season(hours: npt.NDArray[np.bool_]) -> list[float]:
    months = pd.date_range("2023-01-01", periods=len(hours), freq="h").strftime("%m-%d")
    return [float(hours[(months >= begin) & (months < end)].mean()) for _, begin, end in SEASONS]


def days_of(grid: Grid, headroom: float, budget: str = DAY, by: str = "carbon", data: Path = DATA) -> pd.DataFrame:
    """What each day emits, costs and has of capacity at a headroom, and what it would with a fixed one.

    The budget, of carbon or of money (`by`), is that of the day, for the exemplar days, or that of the year, for all of
    its days. Raises InputError.
    """
    followed = grid.carbon if by == "carbon" else grid.price
    whens = [f"from={day}T00:00Z,days=1" for day in DAYS] if budget == DAY else [YEAR_23]
    found = []
    for when in whens:
        capacity, _ = capacity_of(f"{by}:{data / str(followed)},{when},headroom={headroom}")
        shares = by_day(by_hour(capacity))
        columns = {"gained": shares.mean(axis=1) / MEAN_CAPACITY - 1.0}
        for kind, file in (("carbon", grid.carbon), ("price", grid.price)):
            if file is not None:
                paid = by_day(by_hour(capacity_of(f"{kind}:{data / file},{when}")[1]))
                columns[kind] = (shares * paid).sum(axis=1)
                columns[f"{kind}_fixed"] = MEAN_CAPACITY * paid.sum(axis=1)
        found.append(pd.DataFrame(columns))
    return pd.concat(found, ignore_index=True)


def _less(amount: pd.Series, fixed: pd.Series) -> tuple[float, float, int]:
    """By how many % the sum over the days is less, and its standard error."""
    return Sentence("", "", "", "less", ("", 0.0, 0.0), ("", 0.0, 0.0), 0.0).number(amount, fixed)


def cost_table(frame: pd.DataFrame, data: Path = DATA) -> str:
    """Carbon and cost by headroom, and the work that LWW does on the exemplar days (Figures 6.12 and 6.13)."""
    lww = frame[(frame["label"] == "LWW") & (frame["source"] == "carbon DE")]
    rows = []
    for grid in (DE, CAISO):
        for budget in (DAY, YEAR):
            for headroom in HEADROOMS:
                days = days_of(grid, headroom, budget, data=data)
                sums = [_less(days[kind], days[f"{kind}_fixed"]) for kind in ("carbon", "price")]
                studies = ("german-year",) if budget == YEAR else ("german", "german-headroom")
                work = lww[lww["study"].isin(studies) & np.isclose(lww["headroom"], headroom)]
                done = mean_of(work.groupby("day")[WORK.name].mean())[:2]
                rows.append([grid.name, f"the {budget}", f"{headroom:g}",
                             *(with_error(mean, error, 1) for mean, error, _ in sums),
                             with_error(*mean_of(PERCENT * days["gained"])[:2], 1),
                             with_error(*done, 1) if grid is DE else ""])  # fmt: skip
    heads = ["carbon saved, %", "cost saved, %", "more capacity, %", "useful work of LWW, % of fixed"]
    return markdown(["grid of 2023", "budget of", "most capacity", *heads], rows)


def _sentence(section: str, says: str, printed: float, **more: object) -> Sentence:
    how = "less" if more.pop("less", False) else "value"
    other = ("", 0.0, 0.0) if how == "less" else None
    return Sentence(section, says, "", how, ("", 0.0, 0.0), other, printed, **more)  # type: ignore[arg-type]


Numbers = tuple[pd.Series, pd.Series | None]


def sentences(data: Path = DATA) -> list[tuple[Sentence, dict[str, Numbers]]]:
    """What the dissertation says of prices, of cost and of California, with the numbers of each grid, a value a day."""

    def saved(headroom: float, budget: str = DAY, by: str = "carbon") -> dict[str, Numbers]:
        grids = GRIDS if by == "price" else (DE, CAISO)
        days = {grid.name: days_of(grid, headroom, budget, by, data) for grid in grids}
        return {name: (found["price"], found["price_fixed"]) for name, found in days.items()}

    gained = {grid.name: (PERCENT * days_of(grid, 1.0, data=data)["gained"], None) for grid in (DE, CAISO)}

    def ranged(kind: str, summer: bool = False) -> dict[str, Numbers]:
        found = {}
        for grid in GRIDS:
            file = grid.price if kind == "price" else grid.carbon
            if file is not None:
                days = by_day(by_hour(capacity_of(f"{kind}:{data / file},{YEAR_23}")[0]))
                months = pd.date_range("2023-01-01", periods=len(days)).month
                days = days[(months >= 6) & (months <= 8)] if summer else days
                found[grid.name] = (pd.Series(PERCENT * (days.max(axis=1) - days.min(axis=1))), None)
        return found

    less: dict[str, object] = {"neutral": 0.0, "less": True}
    return [
        (_sentence("6.3", "Carbon-aware power costs less at hourly prices", 0.0, **less), saved(1.0)),
        (_sentence("6.3", f"The same at a most capacity of {SAME_WORK}", 0.0, **less), saved(SAME_WORK)),
        (_sentence("6.3", "Its cost is up to 14 % less: at a most capacity of 0.7", 14.0, **less), saved(0.7)),
        (_sentence("6.3", "The same with the budget of the year", 14.0, **less), saved(0.7, YEAR)),
        (_sentence("6.3", f"At a most capacity of {SAME_WORK}, the budget of the year", 14.0, **less),
         saved(SAME_WORK, YEAR)),
        (_sentence("6.3", "Constant carbon gives 6 to 16 % more capacity, 11 % on average", 11.0, neutral=0.0), gained),
        (_sentence("5.4.1", "A constant budget of money for a year saves money (ours)", 0.0, **less),
         saved(1.0, YEAR, "price")),
        (_sentence("5.4.1", "Capacity by price goes over [0.2, 1.0], 5-fold: the range of a day", 80.0, neutral=0.0),
         ranged("price")),
        (_sentence("5.4.2", "Capacity by carbon goes over [0.4, 1.0] (said of CAISO): the range of a day", 60.0,
                   neutral=0.0), ranged("carbon")),
        (_sentence("5.4.2", "It varies little in summer, by 0.1 at most: the range of a day", 10.0, most=True),
         ranged("carbon", summer=True)),
    ]  # fmt: skip


def sentences_table(data: Path = DATA) -> str:
    """Each sentence, its number and its verdict in each grid."""
    rows = []
    for sentence, numbers in sentences(data):
        row = [sentence.section, sentence.says]
        for grid in GRIDS:
            if grid.name not in numbers:
                row += ["", ""]
                continue
            found = sentence.number(*numbers[grid.name])
            row += [shown_number(sentence, *found), sentence.verdict(*found)]
        rows.append(row)
    heads = [text for grid in GRIDS for text in (f"{grid.name} 2023", "verdict")]
    return markdown(["section", "what the dissertation says", *heads], rows)


def work_table(frame: pd.DataFrame) -> str:
    """What Random and LWW do on the exemplar days by carbon and by price: useful work and failures, in %."""
    rows = frame[frame["study"].isin(("german", "prices")) & (frame["structure"] != FIXED)]
    found = []
    for (source, label), part in rows.groupby(["source", "label"], sort=False):
        days = part.groupby("day")[[WORK.name, "failure_percent"]].mean()
        numbers = [with_error(*mean_of(days[name])[:2], 1) for name in (WORK.name, "failure_percent")]
        found.append([source, label, numbers[0], f"{days[WORK.name].min():.1f}",
                      f"{days[WORK.name].max():.1f}", numbers[1], str(len(days)), str(len(part))])  # fmt: skip
    heads = ["capacity by", "algorithm", "useful work, % of fixed", "worst day", "best day", "failures, % of runs"]
    return markdown([*heads, "days", "runs"], found)


def real_table(frame: pd.DataFrame) -> str:
    """Goodput of a TNG cell on Californian days and on walks (5.4.4, Figure 5.16)."""
    rows = frame[frame["study"] == "fig5-16"]
    found = []
    for name, part in rows.groupby("shape", sort=False):
        numbers = [with_error(*mean_of(part[column])[:2], decimals) for column, decimals in
                   (("goodput_percent", 1), ("failure_percent", 2))]  # fmt: skip
        source = part["source"].iloc[0]
        found.append([source if "CAISO" in source else "", name, *numbers, str(len(part))])
    return markdown(["capacity by", "capacity", "goodput, %", "failures, % of runs", "runs"], found)


def make(results: Path, docs: Path) -> int:
    """Write the tables, and all tables of docs/results/varcap to the page; says what changed."""
    frame = points_of(read_campaign(results))
    texts = (carbon_table(), price_table(), stranded_table(), cost_table(frame), sentences_table(), work_table(frame),
             real_table(frame))  # fmt: skip
    return write_tables(docs, dict(zip(PRICED, texts, strict=True)))


main = doc_pages.Script("varcap_prices", DOCS, PAGES, ALL, ("varcap-prices",), make, tables_of).main

if __name__ == "__main__":
    sys.exit(main())
