"""GAIA's results against its own (golden/README.md), and its dispatch against one that does every tick."""

from __future__ import annotations

import csv
import heapq
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from examples import examples
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

from batwatt.arrays import integers
from batwatt.cli.main import application
from batwatt.model.phases import constant
from batwatt.systems.carbon.execution import ShiftJob
from batwatt.systems.carbon.simulators import gaia, gaia_dispatch

GOLDEN = Path(__file__).parent / "golden"
SHARED = Path(__file__).resolve().parents[3].parent / "shared" / "data"
PAI, GERMAN = SHARED / "jobs" / "pai_1k.csv", SHARED / "carbon" / "DE-2024-hourly.csv"
GAIA_GERMAN = SHARED / "carbon" / "DE-2024-02-gaia.csv"
needs_pai = pytest.mark.skipif(not PAI.exists() or not GERMAN.exists(), reason="no pai_1k or series in ../shared/data")


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
        return jobs_of(rows_of(PAI)), [float(row["carbon_intensity_avg"]) for row in rows_of(GERMAN)]
    rows = [row for row in rows_of(GOLDEN / "gaia_jobs.csv") if row["set"] == name]
    return jobs_of(rows), [float(row["g_per_kwh"]) for row in rows_of(GOLDEN / "gaia_signal.csv")]


def run_as(row: dict[str, str]) -> gaia.Outcome:
    jobs, hourly = case(row["jobs"])
    waits = tuple(float(hours) for hours in row["wait"].split("x"))
    options = {"wait_h": waits, "reserved": int(row["reserved"]), "carbon_policy": row["carbon_policy"]}
    return gaia.simulate(jobs, hourly, policy=row["policy"], **options)


def compare(row: dict[str, str]) -> None:
    outcome = run_as(row)
    found, table = outcome.metrics(), outcome.segments
    weight = table["job"].astype(int) + 1
    assert len(table) == int(row["rows"])
    assert int((weight * (table["begin_s"] / 5)).sum()) == int(row["starts_by_id"])
    assert found["carbon_g"] == pytest.approx(float(row["carbon_g"]), abs=2e-9)
    assert found["cost"] == pytest.approx(float(row["dollars"]), abs=2e-9)
    assert (weight * table["cost"]).sum() == pytest.approx(float(row["dollars_by_id"]), abs=2e-6)


RUNS = rows_of(GOLDEN / "gaia_runs.csv")


@pytest.mark.parametrize("policy", sorted({row["policy"] for row in RUNS}))
def test_small_sets_give_what_gaia_gives(policy):
    chosen = [row for row in RUNS if row["policy"] == policy and row["jobs"] != "pai_1k"]
    assert len(chosen) >= 10
    for row in chosen:
        compare(row)


@needs_pai
@pytest.mark.parametrize("policy", sorted({row["policy"] for row in RUNS}))
def test_the_thousand_jobs_give_what_gaia_gives(policy):
    chosen = [row for row in RUNS if row["policy"] == policy and row["jobs"] == "pai_1k"]
    assert chosen
    for row in chosen:
        compare(row)


@pytest.mark.skipif(not PAI.exists(), reason="no pai_1k in ../shared/data")
def test_what_gaia_prints_for_february():
    """The three numbers that users compare with; GAIA counts rows, whatever their dates."""
    hourly = [float(row["g_per_kwh"]) for row in rows_of(GOLDEN / "gaia_february.csv")]
    jobs = jobs_of(rows_of(PAI))
    for policy, grams in (("immediate", 1493.909125), ("oracle", 1371.204774), ("suspend-resume", 1348.552661)):
        assert gaia.simulate(jobs, hourly, policy=policy).metrics()["carbon_g"] == pytest.approx(grams, abs=1e-6)


@pytest.mark.skipif(not PAI.exists() or not GAIA_GERMAN.exists(), reason="no pai_1k or series in ../shared/data")
@pytest.mark.parametrize(("policy", "grams"), [("oracle", "1371.204774"), ("suspend-resume", "1348.552661")])
def test_the_totals_of_the_docs_belong_to_this_file(policy, grams, tmp_path):
    words = ["carbon", "gaia", "--jobs", str(PAI), "--signal", str(GAIA_GERMAN), "--policy", policy]
    done = CliRunner().invoke(application({"carbon"}), [*words, "--wait", "6x24", "-e", str(tmp_path / "x")])
    rows = [line.split("\t") for line in done.stdout.splitlines()]
    # the page has micrograms, a pipe all digits
    assert [[row[0], f"{float(row[1]):.6f}"] for row in rows[1:3]] == [["immediate", "1493.909125"], [policy, grams]]
    page = (Path(__file__).parents[3] / "docs" / "explanation" / "carbon-simulators.md").read_text()
    block = page[page.index(f"`../shared/data/carbon/{GAIA_GERMAN.name}`") :].split("```")[0]
    assert "1493.909125 g" in block and f"{grams} g" in block


def test_rows_are_those_of_gaia():
    every = rows_of(GOLDEN / "gaia_rows.csv")
    pairs = sorted({(row["jobs"], row["policy"]) for row in every})
    assert len(pairs) == 5
    for name, policy in pairs:
        theirs = [row for row in every if (row["jobs"], row["policy"]) == (name, policy)]
        run = {"jobs": name, "policy": policy, "wait": "2x5", "reserved": "6", "carbon_policy": "oracle"}
        table = run_as(run).segments
        assert table["job"].tolist() == [row["id"] for row in theirs]
        assert (table["begin_s"] / 5).tolist() == [float(row["start"]) for row in theirs]
        assert (table["work_s"] / 5).tolist() == [float(row["length"]) for row in theirs]
        assert table["carbon_g"].tolist() == pytest.approx([float(row["carbon_g"]) for row in theirs], abs=1e-8)
        assert table["cost"].tolist() == pytest.approx([float(row["dollars"]) for row in theirs], abs=1e-8)


class Waiting:
    """An entry that a heap orders by its priority alone."""

    def __init__(self, piece: int, priority: int) -> None:
        self.piece, self.priority = piece, priority

    def __lt__(self, other: Waiting) -> bool:
        return self.priority < other.priority


def every_tick(table: np.ndarray, reserved: int, ticks: int) -> tuple[list[int], list[int]]:
    """The dispatch, with a real heap in every tick; columns submit, due, length, cpus, priority, early, spot."""
    begin, kind = [gaia_dispatch.NEVER] * len(table), [0] * len(table)
    queue: list[Waiting] = []
    following, free, freed = 0, reserved, dict.fromkeys(range(ticks), 0)
    for now in range(ticks):
        while following < len(table) and table[following][0] <= now:
            heapq.heappush(queue, Waiting(following, table[following][4]))
            following += 1
        again: list[Waiting] = []
        while queue:
            entry = heapq.heappop(queue)
            _, due, length, cpus, _, early, spot = table[entry.piece]
            if now < due and not (early and free >= cpus):
                heapq.heappush(again, entry)
                continue
            begin[entry.piece] = now
            kind[entry.piece] = gaia_dispatch.SPOT if spot else gaia_dispatch.ON_DEMAND
            if not spot and free >= cpus:
                kind[entry.piece] = gaia_dispatch.RESERVED
                free -= cpus
                if now + length < ticks:
                    freed[now + length] += cpus
        queue, free = again, free + freed[now]
    return begin, kind


@st.composite
def pieces(draw):
    """Many that arrive together; some are above in the file but arrive later."""
    count = draw(st.integers(1, 24))
    arrivals = draw(st.lists(st.sampled_from([0, 0, 3, 3, 10, 40]), min_size=count, max_size=count))
    if draw(st.booleans()):
        arrivals.sort()
    rows = []
    for arrival, submit in zip(arrivals, np.maximum.accumulate(arrivals).tolist(), strict=True):
        due = submit + draw(st.sampled_from([0, 1, 5, 17, 60, 61]))
        spot = draw(st.booleans())
        early = draw(st.booleans()) and not spot
        rows.append((submit, due, draw(st.integers(1, 30)), draw(st.integers(1, 4)), arrival, early, spot))
    return np.array(rows, dtype=np.int64)


@examples(300)
@given(table=pieces(), reserved=st.integers(0, 9), ticks=st.sampled_from([8, 50, 140]))
def test_dispatch_is_that_of_every_tick(table, reserved, ticks):
    begin, kind = gaia_dispatch.dispatch(*map(integers, table.T.tolist()), reserved, ticks)
    theirs, on = every_tick(table, reserved, ticks)
    assert list(begin) == theirs
    started = [i for i, at in enumerate(theirs) if at != gaia_dispatch.NEVER]
    assert [kind[i] for i in started] == [on[i] for i in started]
