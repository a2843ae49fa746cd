"""Runs of the varcap dissertation's studies by case, and their samples.

workload   mira-0, long-0.8-1      the system, or the share of core-hours in long jobs; the trace
capacity   carbon-DE-2023-07-15    the grid and the day; else the columns `cap_...` describe it

Capacities by price and carbon (sections 1.2.5, 5.4 and 6.3), how they vary and what they save: their series are read
from signals/, which is not shipped: the page names files, sources and digests. `months.csv` has a row for each grid and
month of 2023: figures of all its days with the budget of the year, and of its 15th with the budget of the day
(`day_...`), which is an exemplar day of prices.yaml. `capacities.csv` has the days of Figure 5.16.
"""

from __future__ import annotations

import json
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd

from batwatt.inputs.spec import parse_series
from batwatt.model.timeline import Timeline
from papers.generators.varcap import MEAN_CAPACITY
from papers.pages import FIXED, VARIES, WHERE, options_of, runs_of, table_of, with_capacities, write
from papers.statements import Samples

MAPPINGS = {"migration": "Migration", "longshort": "LongShort", "jobsize-order": "JobSize-Order", "twomode": "TwoMode"}
TERMINATIONS = {"random": "Random", "lww": "LWW", "lfd": "LFD"}
"""Values of the options `mapping` and `termination` -> names in the text."""
ANY = "Random, any machine"
"""Random without `idle_first`, which is Base's (section 7.2)."""
GOODPUT, RUNNING, SHORT, LONG = "goodput", "goodput_with_running", "goodput_short", "goodput_long"
FAILED, FAILED_SHORT, FAILED_LONG = "job_failure_rate", "job_failure_rate_short", "job_failure_rate_long"
WAIT, WAIT_SHORT, WAIT_LONG = "mean_wait_s", "mean_wait_short_s", "mean_wait_long_s"
KILLS, KILLS_LONG, MOVES, FINISHED = "terminations", "terminations_long", "migrations", "jobs_finished"
WASTED, SLOWED = "aborted_volume", "slowdown_rate"
SHARES = [GOODPUT, RUNNING, SHORT, LONG, FAILED, FAILED_SHORT, FAILED_LONG, WASTED, SLOWED]
"""Figures that are here in %."""
COUNTS = [WAIT, WAIT_SHORT, WAIT_LONG, KILLS, KILLS_LONG, MOVES, FINISHED, "useful_core_s", "capacity_core_s"]
IDLE, DONE = "idle", "completed_core_s"
"""Core seconds without work or wasted, in %, and those of completed jobs."""
FIGURES = [*SHARES, *COUNTS]
_OPTIONS: Mapping[str, object] = {
    "mapping": "base", "termination": None, "foresight_h": 0.0, "backfilling": None, "oversubscription": None,
}  # fmt: skip


class Case(NamedTuple):
    """Jobs, scheduler and capacity of runs that differ in their trace and walk only; `size` is the range.

    `step` and `period_s` are 0 where the capacity has none. A `day` names grid and date of a capacity by carbon.
    """

    system: str
    policy: str
    structure: str
    size: float = 0.0
    step: float = 0.0
    period_s: float = 0.0
    foresight_h: float = 0.0
    day: str = ""
    headroom: float = 1.0


def write_runs(results: Sequence[Path], path: Path) -> None:
    """Write the runs of studies to a file."""
    rows = pd.concat([runs_of(folder, [*WHERE, "options", *VARIES, *FIGURES]) for folder in results])
    write(path, rows)


def read_runs(path: Path) -> pd.DataFrame:
    """Read runs with the fields of `Case`, `trace` and `walk` (0 without one), and `SHARES` in %."""
    frame = with_capacities(pd.read_csv(path))
    options = options_of(frame, _OPTIONS)
    choices = options["termination"]
    terminations = choices.map(lambda choice: ANY if isinstance(choice, dict) else TERMINATIONS.get(choice))
    policy = options["mapping"].map(MAPPINGS).fillna(terminations).fillna("Base")
    policy = policy.mask(options["backfilling"].notna(), "Base, strict")
    policy = policy.mask(options["oversubscription"].notna(), "Oversubscription")
    named = frame["workload"].str.extract(r"^(?P<system>.+)-(?P<trace>\d+)$")
    german = frame["study"].str.startswith("german")
    system = named["system"].mask(frame["study"] == "oversubscribed-borg", "borg-virtual").mask(german, "german")
    days = frame["capacity"].str.extract(r"^carbon-(?P<day>[A-Z]+-\d{4}-\d\d-\d\d)")
    frame[SHARES] *= 100.0
    frame = frame.assign(
        system=system, policy=policy, size=frame["range"].fillna(0.0), step=frame["step"].fillna(0.0),
        period_s=frame["period_s"].where(days["day"].isna()).fillna(0.0), day=days["day"].fillna(""),
        foresight_h=options["foresight_h"].astype(float), headroom=frame["cap_headroom"].fillna(1.0),
        trace=named["trace"].astype(int), walk=frame["walk"].fillna(0).astype(int),
    )  # fmt: skip
    frame.loc[frame["structure"] == FIXED, "period_s"] = 0.0
    frame.loc[frame["structure"] != "walk", "step"] = 0.0
    frame[IDLE] = 100.0 - frame[RUNNING] - frame[WASTED]
    frame[DONE] = frame[GOODPUT] / 100.0 * frame["capacity_core_s"]
    return frame.drop_duplicates([*Case._fields, "trace", "walk"])


def common(frame: pd.DataFrame) -> pd.DataFrame:
    """Return the runs without the traces and walks of a TNG cell that only some cases have."""
    return frame[(frame["system"] != "tng") | (frame["trace"] < 2) & (frame["walk"] < 3)]


def samples_of(
    frame: pd.DataFrame, traces: Iterable[int], walks: Iterable[int], figures: Sequence[str] = (*FIGURES, IDLE, DONE)
) -> Samples:
    """Return figures by (case, figure) in each pair of a trace and a walk; a case that lacks a pair is left out.

    A run without a walk has its value in all pairs of its trace.
    """
    pairs = list(product(traces, walks))
    values: dict[Hashable, np.ndarray] = {}
    for fields, rows in frame.groupby(list(Case._fields), sort=False):
        # pandas types the keys of groups as one object
        case = Case(*fields)  # type: ignore[arg-type]
        by_pair = rows.set_index(["trace", "walk"])[list(figures)]
        keys = [pair if pair in by_pair.index else (pair[0], 0) for pair in pairs]
        if all(key in by_pair.index for key in keys):
            table = by_pair.loc[keys]
            values |= {(case, name): table[name].to_numpy(float) for name in figures if table[name].notna().all()}
    return Samples(values)


SPREADS = ["longer", "larger"]


def unfairness(prefix: Path) -> dict[str, float]:
    """Return by how many points the terminations of a kept run, until the end of its window, hit some jobs more.

    See section 6.1 and Figure 6.6. These are the jobs of more than an hour, and of more than the mean cores: their
    share of the terminations, less that of the jobs.
    """
    end_s = json.loads(Path(f"{prefix}_metadata.json").read_text())["window_s"][1]
    classes = pd.read_csv(f"{prefix}_classes.csv", dtype={"from_h": float})
    jobs = pd.read_csv(f"{prefix}_jobs.csv")
    cores = jobs["requested_number_of_resources"]
    first = cores[~jobs["job_id"].astype(str).str.contains("#")]
    killed = cores[(jobs["final_state"] == "COMPLETED_KILLED") & (jobs["finish_time"] <= end_s)]
    counts = classes[["jobs", "terminations"]]
    shares = 100.0 * counts[classes["from_h"] >= 1.0].sum() / counts.sum()
    wide = first.mean()
    return {
        "longer": float(shares["terminations"] - shares["jobs"]),
        "larger": 100.0 * float((killed > wide).mean() - (first > wide).mean()),
    }


def write_fairness(results: Path, path: Path) -> None:
    """Write a row per kept run of the terminations on walks of range 0.6."""
    frame = table_of(results)
    frame = frame[frame["study"].isin(["mira", "azure"]) & (frame["cap_structure"] == "walk")]
    rows = []
    columns = ["study", "label", "workload", "cap_seed", "key"]
    for system, policy, workload, walk, key in frame.loc[frame["cap_range"] == 0.6, columns].to_numpy():
        names = {"system": system, "policy": policy, "trace": int(workload.split("-")[-1]), "walk": int(walk)}
        rows.append(names | unfairness(results / "runs" / key / "run"))
    write(path, pd.DataFrame(rows).round(6))


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


def write_prices(folder: Path) -> None:
    """Write months.csv and capacities.csv. Raises InputError without the files of signals/."""
    for name, frame in (("months", months()), ("capacities", capacities())):
        write(folder / f"{name}.csv", frame)
