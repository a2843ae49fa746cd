"""Outcome of a policy for all jobs: one row for each segment, and the figures that follow from the rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import repeat
from pathlib import Path
from statistics import fmean
from typing import Any

import numpy as np
import pandas as pd

from batwatt.files import whole_set, write_json
from batwatt.model.signal_integral import SignalIntegral
from batwatt.systems.carbon.execution import Execution
from batwatt.units import REPORTED_S

SEGMENT_COLUMNS: Mapping[str, str] = {
    "job": "the job",
    "segment": "which of its segments, from 0",
    "arrival_s": "when the job arrived, s from the signal's first row",
    "begin_s": "when the segment begins, s",
    "end_s": "when it ends, s",
    "cpus": "cpus of the job",
    "startup_s": "how much of the segment is start-up, s",
    "work_s": "how much of it is work, s",
    "energy_j": "energy on all cpus, J",
    "carbon_g": "carbon of that energy, g",
    "cost": "money: for the energy if a price is known, and for the machine",
    "machine": "what it runs on: on-demand, reserved or spot",
}
"""The columns that each outcome has, and what they mean."""
FURTHER_COLUMNS: Mapping[str, str] = {
    "startup_energy_j": "energy of the start-up on all cpus, J (without the column: 0)",
    "energy_cost": "the part of the cost that is for energy (without the column: 0)",
    "deadline_s": "when the job should have finished, s (without the column: never)",
    "repetition": "which realisation of the forecast's error, from 0 (without the column: one)",
}
"""Columns that an outcome may have besides."""
ON_DEMAND, RESERVED, SPOT = "on-demand", "reserved", "spot"
MACHINES = (ON_DEMAND, RESERVED, SPOT)
_OTHERWISE = {"startup_energy_j": 0.0, "energy_cost": 0.0, "deadline_s": np.inf, "repetition": 0}


@dataclass(frozen=True)
class Outcome:
    """Outcome of a policy: `segments` has the rows of each job by time; `cost_fixed` is in no row (reserved machines).

    All figures are means over the repetitions, if the rows tell several apart. Raises ValueError.
    """

    policy: str
    segments: pd.DataFrame
    cost_fixed: float = 0.0

    def __post_init__(self) -> None:
        missing = [name for name in SEGMENT_COLUMNS if name not in self.segments.columns]
        if missing:
            raise ValueError(f"segments of an outcome lack the columns {', '.join(missing)}")
        if not len(self.segments):
            raise ValueError("an outcome needs a segment")
        unknown = set(self.segments["machine"].unique()) - set(MACHINES)
        if unknown:
            raise ValueError(f"machines must be among {', '.join(MACHINES)}, got {', '.join(map(str, unknown))}")

    def per_job(self) -> pd.DataFrame:
        """Return one row for each job, in the order of the rows: times, run and wait in s, carbon, energy, cost.

        A job waits while it has arrived, is not finished and does not run.
        """
        if len(self._repetitions) == 1:
            return self._repetitions[0].copy()
        every = pd.concat(self._repetitions).groupby("job", sort=False)
        return every.mean().reset_index()

    def metrics(self) -> dict[str, Any]:
        """Return the figures of all jobs: sums, and means over jobs."""
        rows = [self._figures(jobs) for jobs in self._repetitions]
        if len(rows) == 1:
            return rows[0]
        return {name: fmean(figures[name] for figures in rows) for name in rows[0]} | {"jobs": rows[0]["jobs"]}

    def _figures(self, jobs: pd.DataFrame) -> dict[str, Any]:
        cost, energy_cost = float(jobs["cost"].sum()), float(jobs["energy_cost"].sum())
        return {
            "carbon_g": float(jobs["carbon_g"].sum()),
            "energy_j": float(jobs["energy_j"].sum()),
            "cost": cost + self.cost_fixed,
            "energy_cost": energy_cost,
            "machine_cost": cost - energy_cost + self.cost_fixed,
            "mean_total_wait_s": float(jobs["wait_s"].mean()),
            "max_total_wait_s": float(jobs["wait_s"].max()),
            "mean_slowdown": float(((jobs["end_s"] - jobs["arrival_s"]) / jobs["length_s"]).mean()),
            "segments": int(jobs["segments"].sum()),
            "jobs": len(jobs),
            "suspended_jobs": int((jobs["segments"] > 1).sum()),
            "late_jobs": int((jobs["end_s"] > jobs["deadline_s"] + REPORTED_S).sum()),
            "startup_energy_j": float(jobs["startup_energy_j"].sum()),
        }

    @cached_property
    def _repetitions(self) -> list[pd.DataFrame]:
        rows = self.segments.assign(**{name: value for name, value in _OTHERWISE.items() if name not in self.segments})
        job = ["repetition", "job"]
        # gaps rather than lengths are summed, so that a job without a wait waits 0 s to the last bit
        before = rows.groupby(job, sort=False)["end_s"].shift().fillna(rows["arrival_s"])
        rows = rows.assign(length_s=rows["end_s"] - rows["begin_s"], wait_s=rows["begin_s"] - before)
        table = rows.groupby(job, sort=False).agg(
            arrival_s=("arrival_s", "first"),
            begin_s=("begin_s", "first"),
            end_s=("end_s", "last"),
            length_s=("length_s", "sum"),
            cpus=("cpus", "first"),
            carbon_g=("carbon_g", "sum"),
            energy_j=("energy_j", "sum"),
            cost=("cost", "sum"),
            wait_s=("wait_s", "sum"),
            segments=("segment", "size"),
            deadline_s=("deadline_s", "first"),
            energy_cost=("energy_cost", "sum"),
            startup_energy_j=("startup_energy_j", "sum"),
        )
        jobs = table.reset_index()
        return [part.drop(columns="repetition").reset_index(drop=True) for _, part in jobs.groupby("repetition")]


def saved(outcome: Outcome, base: Outcome) -> pd.DataFrame:
    """Return the savings of each job against another outcome of the same jobs (immediate), in the order of that.

    Columns: job, length_s (in the base), carbon_base_g, carbon_g, saved_g (< 0 if it emits more), and saved_share of
    the base's carbon (0 if that is 0). Raises ValueError if the jobs are not the same.
    """
    ours, theirs = outcome.per_job().set_index("job"), base.per_job().set_index("job")
    if len(ours) != len(theirs) or not ours.index.isin(theirs.index).all():
        raise ValueError(f"{outcome.policy} and {base.policy} did not run the same jobs")
    table = theirs[["length_s"]].assign(
        carbon_base_g=theirs["carbon_g"], carbon_g=ours["carbon_g"].reindex(theirs.index)
    )
    table["saved_g"] = table["carbon_base_g"] - table["carbon_g"]
    positive = table["carbon_base_g"].where(table["carbon_base_g"] > 0.0)
    table["saved_share"] = (table["saved_g"] / positive).fillna(0.0)
    return table.reset_index()


def rows_of(
    executions: Sequence[Execution],
    integral: SignalIntegral,
    *,
    price: SignalIntegral | None = None,
    deadlines_s: Mapping[str, float] | None = None,
    machines: Sequence[Sequence[str]] | None = None,
    rates: Mapping[str, float] | None = None,
) -> pd.DataFrame:
    """Return a row for each segment, with SEGMENT_COLUMNS and FURTHER_COLUMNS.

    `deadlines_s` by job; `machines`: of each segment of each execution (None: all on demand); `rates`: money per cpu
    and second by machine (None: free).
    """
    table: list[tuple[Any, ...]] = []
    for place, execution in enumerate(executions):
        job = execution.job
        deadline_s = deadlines_s[job.id] if deadlines_s else np.inf
        grams = execution.emissions(integral)
        money = execution.emissions(price) if price is not None else repeat(0.0)
        for number, (segment, energy_j, carbon_g, paid) in enumerate(
            zip(execution.segments, execution.energies(), grams, money, strict=False)
        ):
            machine = machines[place][number] if machines else ON_DEMAND
            rent = job.cpus * (segment.end_s - segment.begin_s) * rates[machine] if rates else 0.0
            work_s = segment.to_s - segment.from_s
            started_j = job.cpus * job.model.startup_steps.part(0.0, segment.startup_s).energy_j
            times = (job.arrival_s, segment.begin_s, segment.end_s)
            sums = (energy_j, carbon_g, paid + rent, machine, started_j, paid, deadline_s, 0)
            table.append((job.id, number, *times, job.cpus, segment.startup_s, work_s, *sums))
    return pd.DataFrame(table, columns=[*SEGMENT_COLUMNS, *FURTHER_COLUMNS])


def write_outcome(segments: Path, metrics: Path, outcome: Outcome, about: Mapping[str, Any]) -> None:
    """Write segments as CSV, and in the same folder figures as JSON after facts `about` them; both files or none."""
    rows = outcome.segments.replace(np.inf, np.nan)
    with whole_set(metrics.parent, metrics.name, last=(metrics.name,)) as part:
        rows.to_csv(part / segments.name, index=False, lineterminator="\n")
        write_json(part / metrics.name, {"policy": outcome.policy, **about, **outcome.metrics()})
