"""Jobs from before the window through `batwatt run`: as the authors' program has them, and as the paper has them."""

from __future__ import annotations

import csv
import json

import pytest

# three machines of 2 cores, two at the begin of the window; a, b and c have been running for 50, 40 and 30 s
JOBS = "a 50 100 2\nb 60 100 2\nc 70 100 1\nd 110 30 1\n"
WALK = "2\n120 1\n130 2\n300 2\n"


def run(house, strategy, **options):
    folder = house.folder
    (folder / "jobs.txt").write_text(JOBS)
    (folder / "walk.txt").write_text(WALK)
    words = ["run", "-w", folder / "jobs.txt", "--window", "100:400", "--machines", 3, "--cores", 2, "-s", "riskaware"]
    words += ["--capacity", folder / "walk.txt", "-e", folder / "o" / "x"]
    done = house.batwatt(*words, "-o", json.dumps({"strategy": strategy, "distance": 3} | options))
    assert done.code == 0, done.err
    metrics = json.loads((folder / "o" / "x_metrics.json").read_text())
    with (folder / "o" / "x_jobs.csv").open(newline="") as stream:
        rows = {row["job_id"]: row for row in csv.DictReader(stream)}
    return metrics, rows, done.err


@pytest.mark.parametrize("strategy", ["first-fit-aware", "target-asap"])
def test_as_published_c_is_left_out_and_b_counts_with_60_s(house, strategy):
    metrics, rows, err = run(house, strategy)
    assert "1 jobs from before the window found no room at its begin" in err
    assert rows["c"]["final_state"] == "REJECTED" and "c#1" not in rows
    assert float(rows["a"]["finish_time"]) == pytest.approx(150.0, abs=1e-3)
    # b is killed at 120 and has machine 1 from 130 to 230; of its 100 s of 2 cores 60 count
    assert rows["b"]["final_state"] == "COMPLETED_KILLED"
    assert float(rows["b#1"]["finish_time"]) == pytest.approx(230.0, abs=1e-3)
    # a 50 s, b 60 s, d 30 s
    assert metrics["useful_core_s"] == pytest.approx(100 + 120 + 30, abs=0.01)
    assert (metrics["jobs_finished"], metrics["jobs_rejected"]) == (3, 1)


@pytest.mark.parametrize("strategy", ["first-fit-aware", "target-asap"])
def test_as_the_paper_has_it_c_waits_and_all_of_b_counts(house, strategy):
    metrics, rows, err = run(house, strategy, as_published=False)
    assert "left out" not in err
    assert {rows[name]["final_state"] for name in ("a", "b#1", "c", "d")} == {"COMPLETED_SUCCESSFULLY"}
    # a 50 s, b 100 s, c its remainder of 70 s as it was never killed, d 30 s
    assert metrics["useful_core_s"] == pytest.approx(100 + 200 + 70 + 30, abs=0.01)
    assert (metrics["jobs_finished"], metrics["jobs_rejected"]) == (4, 0)


def test_a_slice_is_a_trace_that_runs(house):
    (house.folder / "all.txt").write_text(JOBS + "old 0 20 2\nlong 110 90000 1\nlate 500 5 1\n")
    words = ["generate", "slice", house.folder / "all.txt", "--begin", 100, "--end", 400]
    assert house.batwatt(*words).out == JOBS
    # 1 machine of 2 cores: 600 core s of 530, then half of it
    assert house.batwatt(*words, "--machines", 1, "--cores", 2).out == JOBS
    pruned = house.batwatt(*words, "--machines", 0.5, "--cores", 2, "-o", house.folder / "pruned.txt")
    assert pruned.code == 0, pruned.err
    rows = [line.split() for line in (house.folder / "pruned.txt").read_text().splitlines()]
    assert 0 < sum(float(length) * int(cores) for _, _, length, cores in rows) <= 300
    done = house.batwatt(*words, "--machines", 0)
    assert done.code == 2 and done.err.count("\n") == 1 and "--machines" in done.err
