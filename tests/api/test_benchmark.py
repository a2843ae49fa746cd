"""The benchmark: score and errors by hand, frozen inputs, entries that are reproduced, and the page."""

from __future__ import annotations

import json
import math
import re
import sys

import pandas as pd
import pytest
from cli_house import ROOT

from batwatt.api import benchmark as api
from batwatt.api.benchmark import Entry, cells_of, entry_of, mean_slowdown, run_entries
from batwatt.errors import BatwattError, InputError
from batwatt.inputs.google_like import REFERENCE_FLOPS, GoogleLike, google_like
from batwatt.studies import benchmark as study
from batwatt.studies.benchmark import Benchmark

REJECTS = """
from batsim.batsim import BatsimScheduler


class Rejects(BatsimScheduler):
    def onJobSubmission(self, job):
        self.bs.reject_jobs([job])

    onJobCompletion = onNoMoreEvents = lambda *_: None
"""
LOG = {"source": "", "hosts": 20, "licence": "", "days": 0.25, "horizon_days": 1.0}
EASY = {"scheduler": "powercap", "options": {"backfilling": "easy", "response": "none"}, "limit": "none"}


def rows_of(log, seed):
    """Rows of 24 Google-like jobs in six hours."""
    data = google_like(GoogleLike(hours=6, jobs_per_hour=4), seed)
    for job in data["jobs"]:
        run_s = round(data["profiles"][job["profile"]]["cpu"] / REFERENCE_FLOPS, 3)
        walltime_s = max(float(job["walltime"]), run_s + 60.0)
        yield log, job["id"], job["subtime"], job["res"], walltime_s, run_s, ""


@pytest.fixture
def tiny(monkeypatch):
    """A benchmark of two small logs, with its digests."""
    rows = [list(map(str, row)) for log, seed in (("a", 1), ("b", 2)) for row in rows_of(log, seed)]
    monkeypatch.setattr(study, "_jobs", lambda: rows)
    cells = {f"{name}/sun-60": {"limit": "constant:1200", "sha256": ""} for name in ("a", "b")}
    declared = {
        "version": "v0", "host_w": 100.0, "bound_s": 600.0, "above": 0.01, "windows": 3,
        "logs": {"a": LOG, "b": LOG}, "cells": cells,
        "references": {"EASY": EASY, "LWW": {"scheduler": "varcap"}},
    }  # fmt: skip
    for name in cells:
        monkeypatch.setattr(api, "benchmark", lambda: Benchmark(**declared))
        with pytest.raises(InputError, match=f"cell {name}: has other jobs") as refused:
            run([Entry("x", "varcap")], [name])
        cells[name]["sha256"] = re.search(r"SHA-256 (\w{64})", str(refused.value))[1]
    return declared


def run(entries, names, workers=1):
    return run_entries(entries, names, workers, lambda **counts: None)


def test_slowdown_by_hand():
    jobs = pd.DataFrame(
        [
            (0.0, 100.0, 12.0),  # 1200 s / 600 s
            (0.0, 1200.0, 2.0),
            (50.0, 100.0, 2.0),  # at least 1
            (600.0, 1200.0, math.nan),  # lost: 3000 s / 600 s
            (0.0, 600.0, 10.0),  # too late: 3600 s / 600 s
        ],
        columns=["submission_time_s", "length_s", "full_speed_slowdown"],
    )
    assert mean_slowdown(jobs, 3600.0, 600.0) == ((2.0 + 2.0 + 1.0 + 5.0 + 6.0) / 5, 2)


def test_errors_are_those_of_logs():
    def row(slowdown):
        zeros = dict.fromkeys(("jobs_lost", "jobs_rejected", "energy_j", "energy_above_cap_j"), 0)
        return {"slowdown": slowdown, "reference": 2.0, "finished_work_fraction": 1.0, **zeros}

    entry = Entry("x", cells={"a/x": [row(2.0), row(8.0)], "a/y": [row(16.0)], "b/x": [row(2.0)]})
    first, _, _, total = entry.records()
    # log a: the mean of log 2 and log 8; log b: 0
    assert first["score"] == pytest.approx(2.0) and first["score_se"] == pytest.approx(math.log(2.0))
    assert total["score"] == pytest.approx(2.0) and total["score_se"] == pytest.approx(math.log(4.0) / 2.0)
    assert total["high"] == pytest.approx(2.0 * math.exp(12.71 * math.log(4.0) / 2.0))


def test_refusing_all_jobs_is_worst(tiny, tmp_path):
    path = tmp_path / "rejects.py"
    path.write_text(REJECTS)
    entries = [entry_of(path, None, {}), Entry("varcap", "varcap"), Entry("fcfs", "powercap", {"response": "none"})]
    rejects, *others = run(entries, list(tiny["cells"]))
    for cell, rows in rejects.cells.items():
        assert sum(row["jobs_rejected"] for row in rows) == sum(row["jobs_lost"] for row in rows) == 24
        for number, row in enumerate(rows):
            assert all(row["slowdown"] > 10.0 * other.cells[cell][number]["slowdown"] for other in others)
    assert rejects.ranked and others[0].ranked and not others[1].ranked


def test_inputs_are_those_of_the_declaration(quiet, monkeypatch):
    declared, check = study.benchmark(), Benchmark.check
    checked = []
    monkeypatch.setattr(api, "compare", lambda *inputs, **more: 1 / 0)
    monkeypatch.setattr(Benchmark, "check", lambda *inputs: (check(*inputs), checked.append(inputs[1])))
    for log in declared.logs:
        with pytest.raises(ZeroDivisionError):
            api._run(cells_of([log])[0], {}, 1)
    assert [cell.partition("/")[0] for cell in checked] == list(declared.logs) and len(checked) == 8
    assert cells_of(["site", "google/sun-50"]) == ["google/sun-50", "site/walk-50", "site/carbon-65"]


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({"run_times": {"name": "exact"}}, "an entry may not know run times"),
        ({"run_times": None}, "an entry may not know run times"),
        ({"work_estimate": "exact"}, "option 'work_estimate': an entry may not know run times"),
        ({"victim": "migrate"}, "option 'victim': 'migrate' saves work in no time"),
        ({"victim": {"name": "checkpoint", "recovery_s": 0}}, "option 'recovery_s': must be >= 60 s in an entry"),
    ],
)
def test_options_against_the_rules(tiny, options, problem):
    with pytest.raises(InputError, match=problem):
        run([Entry("x", "powercap", options)], ["a/sun-60"])


def test_an_entry_reproduces_to_the_digit(tiny, tmp_path):
    first, again = (run([Entry("x", "varcap")], list(tiny["cells"]), workers)[0] for workers in (1, 2))
    first.write(tmp_path / "x.json")
    assert Entry.read(tmp_path / "x.json") == first == again
    rows = json.loads((tmp_path / "x.json").read_text())["cells"]
    rows["b/sun-60"][1]["energy_j"] += 1e-3
    changed = Entry("x", "varcap", cells=rows)
    with pytest.raises(BatwattError, match=r"^cell b/sun-60, window 2: energy_j is .* in the entry, of batwatt "):
        changed.refuse_difference(again)


@pytest.fixture
def command(tiny, house):
    """`batwatt benchmark` on a cell of the tiny one, with a policy."""
    text = "from batwatt.schedulers.varcap import Varcap\n\n\nclass Mine(Varcap):\n    pass\n"
    policy = house.write("mine.py", text)

    def run(*more):
        cells = () if "--check" in more else ("--cells", "a/sun-60")
        return house.batwatt("benchmark", *cells, "-e", house.out / "b", *more)

    return policy, run


def test_command(command, house):
    policy, benchmark = command
    done = benchmark(policy, "-o", '{"order": "asc_walltime"}')
    assert done.code == 0 and done.out.startswith("cell\tscore\tscore_se\tjobs_lost") and not done.err
    assert [line.split("\t")[0] for line in done.out.splitlines()] == ["cell", "a/sun-60", "all"]
    entry = house.out / "b_mine.json"
    assert json.loads(entry.read_text())["policy"] == "mine.py"
    again = benchmark(policy, "--check", entry)
    assert again.code == 0 and again.out == done.out and "reproduced" in again.err
    entry.write_text(entry.read_text().replace('"jobs_lost": 0', '"jobs_lost": 1', 1))
    again = benchmark(policy, "--check", entry)
    assert again.code == 1 and "cell a/sun-60, window 1: jobs_lost is 0, and 1 in the entry" in again.line
    policy.write_text(policy.read_text() + "# another\n")
    again = benchmark(policy, "--check", entry)
    assert again.code == 2 and "FILE: is not mine.py of the entry; its SHA-256 is" in again.line


def test_parts_and_references(command, house):
    _, benchmark = command
    parts = ROOT / "start" / "my_policy.py"
    done = benchmark(parts, "-s", "powercap", "-o", '{"order": "my-order", "response": "frugal"}')
    assert done.code == 0 and json.loads((house.out / "b_my-policy.json").read_text())["scheduler"] == "powercap"
    done = benchmark()
    assert done.code == 0 and [line.split("\t")[0] for line in done.out.splitlines()] == ["entry", "EASY", "LWW"]
    assert done.err == (
        "not ranked: EASY: 40.0% of its energy in a/sun-60 is above the limit; "
        "let it follow the limit, as with the option response\n"
    )


def test_refused(command, house):
    _, benchmark = command
    for words, line in {
        ("-s", "varcap", "--cells", "sitee"): "no cell or log 'sitee'; known: a, a/sun-60,",
        ("--check", house.write("x.json", '{"label": 1}')): "is not an entry of a benchmark",
        ("--check", "x.json", "-s", "varcap"): "--check: runs the entry's own scheduler, options and cells",
    }.items():
        done = benchmark(*words)
        assert done.code == 2 and line in done.line


def test_the_page_has_the_stored_entries():
    sys.path.append(str(ROOT / "docs"))
    import benchmark as page

    assert page.pages.fill(page.PAGE, page.tables(), check=True) == []
