"""The declared experiments of the riskaware paper: how many runs they are, and the small ones carried out."""

from __future__ import annotations

import sys

import pandas as pd
import pytest
import yaml
from cli_house import ROOT

from batwatt.campaign.campaign import campaign_in
from batwatt.campaign.spec import Campaign
from batwatt.campaign.yaml_model import read_declared
from batwatt.report.papers.pmbs23 import RAW

EXPERIMENTS = ROOT / "experiments"
sys.path.append(str(EXPERIMENTS))
import pmbs23_tables as tables  # noqa: E402 (scripts are found by their folder)

STRATEGIES = {"first-fit-aware", "first-fit-unaware", "target-stretch", "target-asap", "packed-target-asap"}


POINTS = {
    "mavg": {"walk-10-4-1200", "walk-12-4-1200"},
    "period": {"walk-12-4-1200", "walk-12-4-10800"},
    "range": {"walk-12-4-1200", "walk-12-8-1200"},
}


@pytest.mark.parametrize("only", ["mavg", pytest.param(None, marks=pytest.mark.deep)])
def test_pmbs23_small(small, only):
    """Every strategy on every point, with the numbers of docs/results/pmbs23; input of the report's tests."""
    path = EXPERIMENTS / "pmbs23-small.yaml"
    assert small.campaign("run", path, "-j", 2, *(("--only", only) if only else ())).code == 0
    small.out = small.results / "pmbs23-small"
    studies = {only} if only else set(POINTS)
    # the table has the rows of other studies whose runs are these, too
    rows = [row for row in small.rows() if row["study"] in studies]
    points = set().union(*(POINTS[study] for study in studies))
    assert {row["capacity"].rpartition("-")[0] for row in rows} == points
    # two walks; what studies have in common is run once
    assert len(rows) == len(studies) * 2 * 2 * 5 and len(small.cells()) == len(points) * 2 * 5
    assert {row["study"] for row in rows} == studies and {row["strategy"] for row in rows} == STRATEGIES
    assert all(0.5 < row["goodput"] < 1 and row["goodput"] + row["aborted_volume"] <= 1 for row in rows)
    found = tables.rows_of(small.out)
    found = found[found["study"].isin(studies)]
    expected = pd.read_csv(ROOT / "docs" / "results" / "pmbs23" / tables.SMALL, keep_default_na=False)
    expected = expected[expected["study"].isin(studies)]
    assert found[tables.WHERE].values.tolist() == expected[tables.WHERE].values.tolist()
    for name in RAW:
        assert found[name].tolist() == pytest.approx(expected[name].tolist(), rel=1e-9, abs=1e-6), name


def rows_of(name: str) -> dict[str, int]:
    """How many rows each study of an experiment has."""
    counts = {}
    for study, declared in read_declared(EXPERIMENTS / f"{name}.yaml", Campaign).effective().items():
        workloads = sum(len(entry.seeds or [entry.trace]) for entry in declared.workloads)
        names = [f"{entry.machines}x{entry.cores}" for entry in declared.platforms]
        walks = sum(len(entry.seeds) * len(entry.platforms or names) for entry in declared.capacities)
        counts[study] = workloads * walks * len(declared.grid["strategy"])
    return counts


def test_the_experiments_of_the_paper():
    """Section 5.4: five values x six traces x thirty walks x five strategies, each for every type of jobs."""
    whole, part = rows_of("pmbs23"), rows_of("pmbs23-part")
    assert set(whole.values()) == {5 * 6 * 30 * 5} and len(whole) == 4 * 5 + 4
    assert set(part.values()) == {5 * 2 * 3 * 5} and set(part) < set(whole)
    text = (EXPERIMENTS / "README.md").read_text()
    for name, counts in (("pmbs23", whole), ("pmbs23-part", part)):
        line = next(line for line in text.splitlines() if line.startswith(f"| `{name}.yaml`"))
        assert f"{sum(counts.values()):,} rows" in line
    points = yaml.safe_load((EXPERIMENTS / "pmbs23.yaml").read_text())["studies"]
    assert [entry["walk"]["mean"] for entry in points["mavg-borg"]["capacities"]] == [20, 22, 24, 26, 28]
    assert [entry["walk"]["period_s"] for entry in points["period-3types"]["capacities"]] == [
        400,
        1200,
        3600,
        10800,
        32400,
    ]
    assert [entry["walk"]["range"] for entry in points["range-uniform"]["capacities"]] == [4, 6, 8, 12, 16]
    cores = points["cores-uniform"]
    for entry, machines in zip(cores["capacities"], cores["platforms"], strict=True):
        # as many cores on average, and a third of them at risk
        assert entry["platforms"] == [f"152x{machines['cores']}"]
        assert entry["walk"]["mean"] * machines["cores"] == 576 and entry["walk"]["range"] * 3 == entry["walk"]["mean"]


def test_the_part_that_needs_no_borg_trace(small):
    """It is declared wholly; the point that all sweeps have in common is run once."""
    found = campaign_in(EXPERIMENTS / "pmbs23-part.yaml", small.results)
    cells = [cell for cell in found.cells if not cell.study.endswith("-borg")]
    assert len(cells) == 12 * 150
    default = {cell.key for cell in cells if cell.capacity.name == "walk-24-8-1200-0" and cell.platform.name == "152x24"
               and cell.workload.name == "uniform-20000-0"}  # fmt: skip
    assert len(default) == 5
    assert set(found.missing) <= {f"{sweep}-borg" for sweep in ("mavg", "period", "range", "cores")}
