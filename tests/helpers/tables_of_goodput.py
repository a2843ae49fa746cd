"""Tables of campaigns with goodput, made by hand."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tables_of_tests import row, save

from batwatt.report.papers.pmbs23 import STRATEGIES as NAMED
from batwatt.report.papers.pmbs23 import Sweep, named, points, sweeps
from batwatt.report.table import read_campaign

STRATEGIES, NAMES = tuple(NAMED), tuple(NAMED.values())


def run(
    name: str,
    *,
    kind: str = "uniform",
    mean: int = 24,
    range: int = 8,
    period: float = 1200,
    cores: int = 24,
    jobs: int = 20000,
    trace: int = 0,
    seed_of_walk: int = 0,
    **given: Any,
) -> dict[str, Any]:
    """A run of a strategy (by its name in the paper) at a point of the experiments; its key follows from both."""
    strategy = STRATEGIES[NAMES.index(name)]
    workload = f"14D_{(518400, 864000)[trace]}" if kind == "borg" else f"{kind}-{jobs}-{trace}"
    capacity = f"walk-{mean}-{range}-{period:g}-{seed_of_walk}"
    found = row(name, workload, study="s", platform=f"152x{cores}", envelope=None, capacity=capacity,
                scheduler="riskaware", strategy=strategy, options=f'{{"strategy": "{strategy}"}}', violations=None,
                key=f"{strategy} {workload} {capacity} {cores}")  # fmt: skip
    found |= {"goodput": 0.5, "max_full_speed_slowdown": 2.0, "mean_full_speed_slowdown": 1.5, "aborted_volume": 0.1,
              "mean_aborted_time_s": 3600.0, "completed_fraction": 0.9,
              "capacity_core_s": 1e6}  # fmt: skip
    return found | given


def evaluation() -> list[dict[str, Any]]:
    """The paper's in small: two types, two values of each parameter, three walks, all strategies, one run failed."""
    studies = {
        "mavg": [{"mean": 24}, {"mean": 28}],
        "period": [{"period": 400}, {"period": 1200}],
        "range": [{"range": 4}, {"range": 8}],
        "cores": [{"cores": 24}, {"cores": 48, "mean": 12, "range": 4}],
        "jobs": [{"jobs": 8000}, {"jobs": 20000}],
    }
    rows = [
        run(name, kind=kind, study=f"{study}-{kind}", seed_of_walk=n, **at,
            goodput=0.8 + place / 50 + n / 100 - sum(at.values()) % 7 / 200,
            max_full_speed_slowdown=50.0 / (place + 1) + n,
            aborted_volume=0.1 - place / 100, mean_aborted_time_s=7200.0 - 600.0 * place)
        for study, points in studies.items()
        for kind in ("uniform", "borg")
        for at in points
        for n in (0, 1, 2)
        for place, name in enumerate(NAMES)
        if (study, kind) != ("jobs", "borg")
    ]  # fmt: skip
    return [*rows, run(NAMES[0], kind="borg", study="mavg-borg", seed_of_walk=9, status="failed", error="boom",
                       goodput=None, capacity_core_s=None)]  # fmt: skip


def swept(folder: Path, rows: Sequence[dict[str, Any]]) -> tuple[Sweep, ...]:
    """What varies in a campaign of these rows."""
    return sweeps(points(named(read_campaign(save(folder, rows)))))
