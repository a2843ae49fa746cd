"""Outcome of a policy for all jobs: one row for each segment, and the figures that follow from the rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import repeat
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from batwatt.files import whole_set, write_json
from batwatt.model.signal_integral import SignalIntegral
from batwatt.results.csv_block import without_formulas_in
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
    "cost": "cost of that energy (empty without a price)",
    "startup_energy_j": "energy of the start-up on all cpus, J",
    "deadline_s": "when the job should have finished, s (empty: never)",
}
"""The columns of an outcome, and what they mean."""


@dataclass(frozen=True)
class Outcome:
    """Outcome of a policy: `segments` has the rows of each job by time."""

    policy: str
    segments: pd.DataFrame

    def metrics(self) -> dict[str, Any]:
        """Return the figures of all jobs: sums, and means over jobs; `cost` is None without a price.

        A job waits while it has arrived, is not finished and does not run.
        """
        # gaps rather than lengths are summed, so that a job without a wait waits 0 s to the last bit
        before = self.segments.groupby("job", sort=False)["end_s"].shift().fillna(self.segments["arrival_s"])
        length_s, wait_s = self.segments["end_s"] - self.segments["begin_s"], self.segments["begin_s"] - before
        jobs = (
            self.segments.assign(length_s=length_s, wait_s=wait_s)
            .groupby("job", sort=False)
            .agg(
                arrival_s=("arrival_s", "first"),
                end_s=("end_s", "last"),
                length_s=("length_s", "sum"),
                carbon_g=("carbon_g", "sum"),
                energy_j=("energy_j", "sum"),
                cost=("cost", "sum"),
                wait_s=("wait_s", "sum"),
                segments=("segment", "size"),
                deadline_s=("deadline_s", "first"),
                startup_energy_j=("startup_energy_j", "sum"),
            )
        )
        return {
            "carbon_g": float(jobs["carbon_g"].sum()),
            "energy_j": float(jobs["energy_j"].sum()),
            "cost": None if self.segments["cost"].isna().any() else float(jobs["cost"].sum()),
            "mean_total_wait_s": float(jobs["wait_s"].mean()),
            "max_total_wait_s": float(jobs["wait_s"].max()),
            "mean_slowdown": float(((jobs["end_s"] - jobs["arrival_s"]) / jobs["length_s"]).mean()),
            "segments": int(jobs["segments"].sum()),
            "jobs": len(jobs),
            "suspended_jobs": int((jobs["segments"] > 1).sum()),
            "late_jobs": int((jobs["end_s"] > jobs["deadline_s"] + REPORTED_S).sum()),
            "startup_energy_j": float(jobs["startup_energy_j"].sum()),
        }


def rows_of(
    executions: Sequence[Execution],
    integral: SignalIntegral,
    price: SignalIntegral | None,
    deadlines_s: Sequence[float],
) -> pd.DataFrame:
    """Return a row for each segment, with SEGMENT_COLUMNS; `deadlines_s` are those of the executions."""
    table: list[tuple[Any, ...]] = []
    for execution, deadline_s in zip(executions, deadlines_s, strict=True):
        job = execution.job
        grams = execution.emissions(integral)
        money = execution.emissions(price) if price is not None else repeat(np.nan)
        for number, (segment, energy_j, carbon_g, cost) in enumerate(
            zip(execution.segments, execution.energies(), grams, money, strict=False)
        ):
            work_s = segment.to_s - segment.from_s
            started_j = job.cpus * job.model.startup_steps.part(0.0, segment.startup_s).energy_j
            times = (job.arrival_s, segment.begin_s, segment.end_s)
            sums = (energy_j, carbon_g, cost, started_j, deadline_s)
            table.append((job.id, number, *times, job.cpus, segment.startup_s, work_s, *sums))
    return pd.DataFrame(table, columns=list(SEGMENT_COLUMNS))


def write_outcome(segments: Path, metrics: Path, outcome: Outcome, about: Mapping[str, Any]) -> None:
    """Write segments as CSV, and in the same folder figures as JSON after facts `about` them; both files or none."""
    rows = outcome.segments.replace(np.inf, np.nan)
    with whole_set(metrics.parent, last=(metrics.name,), place=metrics) as part:
        without_formulas_in(rows).to_csv(part / segments.name, index=False, lineterminator="\n")
        write_json(part / metrics.name, {"policy": outcome.policy, **about, **outcome.metrics()})
