"""Planning once and planning anew under forecasts that prove wrong, on a finite cluster, next to a bound.

python experiments/carbon_rolling.py
    runs the scheduler `carbon`, writes the table to docs/results/carbon and puts it on the page
Signals are read from ../shared/data, which is not shipped.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import doc_pages
import numpy as np
import pandas as pd
from carbon_tables import ALL, DOCS, FOLDER, PAGES, ROLLING, tables_of
from varcap_tables import markdown, with_error, write

import batwatt as bw
from batwatt.inputs.platforms.machines import MachineSpec, machines_platform
from batwatt.inputs.series.signal_csv import read_signal
from batwatt.inputs.series.signal_file import SignalFile
from batwatt.model.phases import ShiftJob, constant
from batwatt.model.signal_integral import SignalIntegral
from batwatt.report.claims import mean_of
from batwatt.systems.carbon.bound import least_carbon
from batwatt.units import DAY_S, HOUR_S

DATA = Path(__file__).resolve().parents[2] / "shared" / "data" / "sites" / "carbon"
SIGNALS = {"DE-LU": "DE-LU_2023_hourly.csv", "CAISO": "US-CAL-CISO_2023_hourly.csv"}
BEGINS = ("2023-01-10", "2023-03-24", "2023-06-05", "2023-08-17", "2023-10-29")
"""A begin for each seed: 73 days apart."""
LOADS = (0.3, 0.6, 0.8)
HOSTS, POWER_W, IDLE_W = 8, 200.0, 100.0
JOB_DAYS, DAYS = 4.0, 8.0
"""Jobs arrive in the first of these; all end within the second."""
SLOT_S = 900.0
"""Arrivals and lengths are multiples of it, so that the slots of the calendar cost nothing."""
WAIT_H = 24.0
LENGTHS_H = (0.5, 1.0, 2.0, 4.0, 8.0)
CPUS = (1, 1, 1, 2, 4)
ERRORS = (0.03, 0.06)
"""15 and 29 % a day ahead."""
REPLAN_H = 1.0
POLICIES = ("oracle", "phase-aware")
AT_ONCE = ("immediate", 0.0, False)
Case = tuple[str, float, bool]
"""Policy, error of forecasts, and whether jobs are planned anew."""
CASES: tuple[Case, ...] = (
    AT_ONCE,
    *((policy, error, anew) for policy in POLICIES for error in (0.0, *ERRORS) for anew in (False, True)),
)


@dataclass(frozen=True)
class Setting:
    """A signal from a date on, a load and a seed."""

    signal: str
    load: float
    seed: int

    def integral(self, data: Path = DATA) -> SignalIntegral:
        """The signal, g/kWh. Raises InputError."""
        begin = f"{BEGINS[self.seed]}T00:00Z"
        file = SignalFile(data / SIGNALS[self.signal], begin=begin, days=DAYS, wanted="carbon")
        return SignalIntegral.of(read_signal(file))

    def jobs(self) -> pd.DataFrame:
        """Jobs until they ask for `load` of the hosts over the days in which they arrive."""
        rng = np.random.default_rng((self.seed, round(100 * self.load)))
        rows, requested = [], 0.0
        while requested < self.load * HOSTS * JOB_DAYS * DAY_S:
            at = rng.integers(0, int(JOB_DAYS * DAY_S / SLOT_S)) * SLOT_S
            row = (float(at), float(rng.choice(LENGTHS_H)) * HOUR_S, int(rng.choice(CPUS)))
            requested += row[1] * row[2]
            rows.append(row)
        return pd.DataFrame(sorted(rows), columns=["submission_time_s", "length_s", "hosts"])


@dataclass(frozen=True)
class Ran:
    """What a run emits, g for each W that a busy host draws more than an idle one, and when its jobs end."""

    per_watt_g: float
    ends_s: pd.Series


def run(jobs: pd.DataFrame, integral: SignalIntegral, case: Case, seed: int) -> Ran:
    """A run of the scheduler `carbon` on the embedded engine."""
    policy, error, anew = case
    options = {"signal": integral, "policy": policy, "wait_h": [WAIT_H], "slot_s": SLOT_S, "forecast_error": error,
               "forecast_seed": seed, "replan_h": REPLAN_H if anew else None}  # fmt: skip
    platform = machines_platform(MachineSpec(HOSTS, 1, core_w=POWER_W))
    rows = bw.simulate(platform, bw.Workload.from_frame(jobs), "carbon", options=options).jobs
    emitted = integral.per_watt(rows["starting_time_s"].to_numpy(), rows["finish_time_s"].to_numpy())
    number = rows["job_id"].astype(str).str.partition("#")[0].astype(int)
    ends_s = rows.groupby(number)["finish_time_s"].max().sort_index()
    return Ran(float(emitted @ rows["requested_number_of_resources"].to_numpy()), ends_s)


def results(setting: Setting, data: Path = DATA) -> Iterator[dict[str, object]]:
    """For each case what it saves relative to `AT_ONCE` and emits beyond the bound, without and with idle hosts, in %.

    Whoever is late in any case may be as late in the bound.
    """
    integral, jobs = setting.integral(data), setting.jobs()
    ran = {case: run(jobs, integral, case, setting.seed) for case in CASES}
    due_s = jobs["submission_time_s"] + WAIT_H * HOUR_S + jobs["length_s"]
    latest_s = np.maximum(due_s.to_numpy(), np.max([one.ends_s.to_numpy() for one in ran.values()], axis=0))
    planned = [ShiftJob(str(at), row.submission_time_s, constant(row.length_s, POWER_W), row.hosts)
               for at, row in enumerate(jobs.itertuples())]  # fmt: skip
    bound = least_carbon(planned, latest_s.tolist(), HOSTS, integral) / POWER_W
    for case, one in ran.items():
        found: dict[str, object] = {"signal": setting.signal, "load": setting.load, "seed": setting.seed, "case": case}
        for name, idle_w in (("off", 0.0), ("on", IDLE_W)):
            always = idle_w * HOSTS * float(integral.per_watt(0.0, integral.end_s))
            emitted, least, at_once = (always + (POWER_W - idle_w) * per_watt
                                       for per_watt in (one.per_watt_g, bound, ran[AT_ONCE].per_watt_g))  # fmt: skip
            found |= {
                f"saved_{name}": 100.0 * (1.0 - emitted / at_once),
                f"above_{name}": 100.0 * (emitted / least - 1.0),
            }
        found["late"] = 100.0 * float(np.mean(one.ends_s.to_numpy() > due_s.to_numpy() + 1.0))
        yield found


def table(frame: pd.DataFrame) -> str:
    """Means over the seeds of each signal, load, policy and error, planned once and anew next to each other."""
    cases = pd.DataFrame(frame["case"].tolist(), columns=["policy", "error", "anew"], index=frame.index)
    rows = []
    for (signal, load, policy, error), part in frame.assign(**cases).groupby(KEYS, sort=False):
        forecast = "" if policy == "immediate" else f"{100 * error:g} %" if error else "exact"
        once, anew = (part[part["anew"] == chosen].set_index("seed") for chosen in (False, True))
        more = _mean((anew["saved_off"] - once["saved_off"]).dropna())
        rows.append([signal, f"{load:g}", policy, forecast, *_cells(once), *_cells(anew), more])
    shown = ["saved, %", "above the bound, %", "hosts on: saved, %", "above the bound, %", "late, %"]
    heads = [f"{how}: {head}" for how in ("once", "anew") for head in shown]
    return markdown(["signal", "load", "policy", "error 1 h ahead", *heads, "anew saves more, % points"], rows)


KEYS = ["signal", "load", "policy", "error"]


def _cells(part: pd.DataFrame) -> list[str]:
    late = f"{part['late'].mean():.1f}" if len(part) else ""
    return [*(_mean(part[name]) for name in ("saved_off", "above_off", "saved_on", "above_on")), late]


def _mean(values: pd.Series) -> str:
    return with_error(*mean_of(values)[:2], 1) if len(values) else ""


def make(docs: Path) -> int:
    """Write the table, and all tables of docs/results/carbon to the page; says what changed."""
    pages = doc_pages.read_pages(docs, PAGES, ALL)
    settings = [Setting(signal, load, seed) for signal in SIGNALS for load in LOADS for seed in range(len(BEGINS))]
    found = [row for setting in settings for row in results(setting)]
    write(docs / FOLDER / f"{ROLLING}.md", table(pd.DataFrame(found)) + "\n")
    doc_pages.write(pages, tables_of(docs))
    return 0


main = doc_pages.Script("carbon_rolling", DOCS, PAGES, ALL, (), make, tables_of).main

if __name__ == "__main__":
    sys.exit(main())
