"""Small comparisons of systems whose figures can be worked out by hand."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from batwatt.model.platform import MachinePower
from batwatt.model.timeline import Timeline
from batwatt.report.cases import ComparedCases, measures_of
from batwatt.results.compared import CaseFacts
from batwatt.results.power import PowerTrace

ENVELOPE = Timeline((0.0, 3600.0), (1000.0, 500.0), "power_w", "power:solar.csv")
MACHINES = MachinePower(10, 100.0)
FREE = CaseFacts("powercap", {"response": "none"}, "none")
SLOW = CaseFacts("varcap", {"termination": "lww"})


def row(case: str, seed: int = 0, **figures: Any) -> dict[str, Any]:
    """A row of the table: 100 jobs finish at once without a watt above the envelope, but for what is given."""
    found = {
        "jobs_finished": 100, "jobs_rejected": 0, "killed_power": 0, "killed_walltime": 0, "jobs_failed": 0,
        "jobs_unfinished": 0, "mean_slowdown": 1.5, "mean_full_speed_slowdown": 2.0, "mean_bounded_slowdown": 2.0,
        "mean_wait_s": 600.0, "p95_wait_s": 1200.0, "finished_work_fraction": 0.5,
        "work_per_fed_host": 0.5, "makespan_s": 7200.0, "energy_j": 3.6e6,
        "violations": 0, "energy_above_cap_j": 0.0, "unused_j": 0.0,
    }  # fmt: skip
    return {"case": case, "scheduler": "varcap", "window": 1, "seed": seed} | found | figures


def jobs_of(waits: Mapping[str, Sequence[float | None]], **columns: Sequence[Any]) -> pd.DataFrame:
    """Jobs of an hour on one host, each waiting so many s in each case; None: not finished."""
    first = next(iter(waits.values()))
    parts = []
    for case, given in waits.items():
        wait, reference = (np.array([math.nan if s is None else float(s) for s in some]) for some in (given, first))
        count = len(given)
        own = {"hosts": [1] * count, "length_s": [3600.0] * count} | {
            name: list(values) for name, values in columns.items()
        }
        length = np.array(own["length_s"])
        parts.append(pd.DataFrame({
            "case": case, "job_id": [str(n) for n in range(count)], **own,
            "state": np.where(np.isnan(wait), "killed", "finished"), "wait_s": wait,
            "full_speed_slowdown": 1.0 + wait / length,
            "wait_more_s": wait - reference, "full_speed_slowdown_more": (wait - reference) / length,
        }))  # fmt: skip
    return pd.concat(parts, ignore_index=True)


def compared(rows: Sequence[dict[str, Any]], jobs: pd.DataFrame | None = None, **more: Any) -> ComparedCases:
    """A comparison of the cases of these rows, the first of which follows nothing; 100 jobs that never wait."""
    table = pd.DataFrame(rows)
    labels = list(dict.fromkeys(table["case"]))
    cases = {label: FREE if number == 0 else SLOW for number, label in enumerate(labels)}
    trace = PowerTrace(np.array([0.0, 1800.0, 5400.0]), np.array([600.0, 800.0, 100.0]), 7200.0)
    given = {
        "jobs": jobs_of({label: [0.0] * 100 for label in labels}) if jobs is None else jobs,
        "cases": cases,
        "traces": dict.fromkeys(labels, trace),
        "envelope": ENVELOPE,
        "machines": MACHINES,
    }
    return ComparedCases(table, measures=measures_of(table), **(given | more))
