"""GAIA as papers/carbon re-enacts it, against its own results (golden/README.md)."""

from __future__ import annotations

import csv
from functools import cache
from pathlib import Path

import pytest

from batwatt.model.work import constant
from batwatt.schedulers.carbon.execution import ShiftJob
from papers.carbon import gaia

GOLDEN = Path(__file__).parent / "golden"
SHARED = Path(__file__).resolve().parents[2].parent / "shared" / "data"
PAI, GERMAN = SHARED / "jobs" / "pai_1k.csv", SHARED / "carbon" / "DE-2024-hourly.csv"


def rows_of(path: Path) -> list[dict[str, str]]:
    with path.open() as file:
        return list(csv.DictReader(file))


def jobs_of(rows: list[dict[str, str]]) -> list[ShiftJob]:
    return [
        ShiftJob(str(i), float(row["arrival_time"]), constant(float(row["length"]), 1.0), int(row["cpus"]))
        for i, row in enumerate(rows)
    ]


@cache
def case(name: str) -> tuple[list[ShiftJob], list[float]]:
    if name == "pai_1k":
        if not PAI.exists() or not GERMAN.exists():
            pytest.skip("no pai_1k or series in ../shared/data")
        return jobs_of(rows_of(PAI)), [float(row["carbon_intensity_avg"]) for row in rows_of(GERMAN)]
    rows = [row for row in rows_of(GOLDEN / "gaia_jobs.csv") if row["set"] == name]
    return jobs_of(rows), [float(row["g_per_kwh"]) for row in rows_of(GOLDEN / "gaia_signal.csv")]


def run(row: dict[str, str]) -> gaia.Outcome:
    waits = tuple(float(hours) for hours in row["wait"].split("x"))
    return gaia.simulate(*case(row["jobs"]), row["policy"], waits)


RUNS = rows_of(GOLDEN / "gaia_runs.csv")
WAITING = [name for name in gaia.POLICIES if name != "immediate"]


@pytest.mark.parametrize("jobs", sorted({row["jobs"] for row in RUNS}))
@pytest.mark.parametrize("policy", WAITING)
def test_runs_are_those_of_gaia(policy, jobs):
    some = [row for row in RUNS if (row["policy"], row["jobs"]) == (policy, jobs)]
    assert len(some) >= 2
    for row in some:
        outcome = run(row)
        table = outcome.segments
        assert len(table) == int(row["rows"])
        assert int(((table["job"].astype(int) + 1) * (table["begin_s"] / 5)).sum()) == int(row["starts_by_id"])
        assert outcome.metrics()["carbon_g"] == pytest.approx(float(row["carbon_g"]), abs=2e-9)


def test_times_are_cut_to_ticks_and_mean_power_is_charged():
    outcome = gaia.simulate([ShiftJob("0", 68.0, constant(1004.0, 50.0), 3)], [720.0] * 30, "immediate")
    assert outcome.segments[["arrival_s", "begin_s", "end_s"]].to_numpy().tolist() == [[65.0, 65.0, 1065.0]]
    assert outcome.metrics()["carbon_g"] == pytest.approx(150 * 200 * 0.001, rel=1e-12)
    assert outcome.metrics()["energy_j"] == 150_000.0


@pytest.mark.parametrize(
    ("policy", "length_s"), [("oracle", 7200), ("immediate", 7200), ("suspend-resume", 3600), ("lowest", 11000)]
)
def test_jobs_that_stop_gaia(policy, length_s):
    with pytest.raises(ValueError, match=r"job 0: .* signal"):
        gaia.simulate([ShiftJob("0", 3600.0, constant(length_s, 1.0))], [100.0, 200.0, 300.0], policy, (2.0,))
