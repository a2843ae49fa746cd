"""`batwatt account` at the command line: its files, and one line for bad input."""

from __future__ import annotations

import json

JOBS = ("account", "-w", "workloads/site/jobs.sacct", "--cores", 16)


def test_table_page_and_json(house):
    words = (*JOBS, "--busy-w", 350, "--by", "user", "--carbon", "power_profiles/carbon/carbon-hourly.csv")
    done = house.batwatt(*words, "-o", house.out / "x.csv", "--page", house.out / "x.html")
    assert done.code == 0 and house.left == ["x.csv", "x.html"]
    page, table = house.file("x.html").decode(), house.file("x.csv").decode()
    found = json.loads(house.batwatt(*words, "--json").out)
    assert table.splitlines()[-1] == "total,,390,1567.362,548.577,209.204"
    assert found["rows"][-1]["carbon_kg"] == 209.204 and any("10 never ran" in line for line in found["remarks"])
    assert "209.204" in page and "10 never ran" in page and "--busy-w 350" in page


def test_bad_input_is_one_line(house):
    for words, text in (
        ((), "390 of 390 jobs have no measured energy"),
        (("--busy-w", 1, "--by", "queue"), "by: 'queue' is not known; use user, account, partition, month"),
        (("--busy-w", 1, "--pue", "nan"), "pue: must be a number, got nan"),
    ):
        done = house.batwatt(*JOBS, *words, "-o", house.out / "x.csv")
        *_, line = done.err.splitlines()
        assert done.code == 2 and line.startswith("batwatt: ") and text in line and house.left == []
