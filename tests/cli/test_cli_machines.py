"""Machines that come and go, and jobs from before the window, through `batwatt run` with the scheduler riskaware."""

from __future__ import annotations

import json

import pytest
from cli_house import Done, House

ON_OFF = "3\n50 0\n60 3\n90 0\n120 3\n"


def risk(house: House, *words: object, jobs: str, walk: str, cores=2, **options: object) -> Done:
    """A run of riskaware on three machines."""
    inputs = ("-w", house.write("jobs.txt", jobs), "--capacity", house.write("walk.csv", walk))
    machines = ("--machines", 3, "--cores", cores, "-s", "riskaware", "-o", json.dumps(options))
    return house.batwatt("run", *inputs, *machines, "-e", house.out / "x", *words)


def rows(house: House) -> dict[str, dict[str, str]]:
    return {row["job_id"]: row for row in house.rows()}


# windows -------------------------------------------------------------------------------------------------------------

# three machines of 2 cores, two at the begin of the window; a, b and c have been running for 50, 40 and 30 s
BEFORE = "a 50 100 2\nb 60 100 2\nc 70 100 1\nd 110 30 1\n"


@pytest.mark.parametrize("strategy", ["first-fit-aware", "target-asap"])
@pytest.mark.parametrize("as_published", [True, False])
def test_jobs_from_before_the_window(house, strategy, as_published):
    """As published c is left out and b, started again from 130 to 230 s, counts with 60 s of its 100 s; else both."""
    inputs = {"jobs": BEFORE, "walk": "2\n120 1\n130 2\n300 2\n", "strategy": strategy, "distance": 3}
    done = risk(house, "--window", "100:400", **inputs, as_published=as_published)
    assert done.code == 0, done.err
    metrics, states = house.metrics(), {name: row["final_state"] for name, row in rows(house).items()}
    assert ("1 jobs from before the window found no room at its begin" in done.err) == as_published
    if as_published:
        assert states["c"] == "REJECTED" and "c#1" not in states and states["b"] == "COMPLETED_KILLED"
        assert float(rows(house)["b#1"]["finish_time"]) == pytest.approx(230.0, abs=1e-3)
        # a 50 s, b 60 s, d 30 s
        useful, ended = 100 + 120 + 30, (3, 1)
    else:
        assert {states[name] for name in ("a", "b#1", "c", "d")} == {"COMPLETED_SUCCESSFULLY"}
        # a 50 s, b 100 s, c its remainder of 70 s as it was never killed, d 30 s
        useful, ended = 100 + 200 + 70 + 30, (4, 0)
    assert metrics["useful_core_s"] == pytest.approx(useful, abs=0.01)
    assert (metrics["jobs_finished"], metrics["jobs_rejected"]) == ended


# ids, options, energy ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("strategy", ["first-fit-aware", "target-asap"])
def test_ids_with_a_hash_are_kept_apart(house, strategy):
    inputs = {"walk": ON_OFF, "cores": 1, "strategy": strategy, "as_published": False}
    assert risk(house, jobs="a#b 0 300 1\na 0 30 1\n", **inputs).code == 0
    metrics = house.metrics()
    assert metrics["jobs_finished"] == 2 and metrics["completed_fraction"] == 1.0 and metrics["killed_power"] == 2
    assert sorted(rows(house)) == ["a", "a#b", "a#b#1", "a#b#2"]
    done = risk(house, jobs="3 0 100 1\n3#1 0 300 1\n", **inputs)
    assert done.code == 2 and "3#1" in done.line
