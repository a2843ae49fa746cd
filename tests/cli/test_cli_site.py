"""The shipped synthetic site, and its account."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest
from cli_house import ROOT


@pytest.mark.parametrize(
    "script",
    ["workloads/site/make_dump.py", "power_profiles/site/make_solar.py", "power_profiles/carbon/make_signal.py"],
)
def test_the_shipped_files_are_what_their_scripts_make(script):
    done = subprocess.run([sys.executable, ROOT / script, "--check"], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def test_an_account_as_table_page_and_json(house):
    words = ("account", "-w", "workloads/site/jobs.sacct", "--cores", 16, "--busy-w", 350, "--by", "user")
    words += ("--carbon", "power_profiles/carbon/carbon-hourly.csv")
    done = house.batwatt(*words, "-o", house.out / "x.csv", "--page", house.out / "x.html")
    assert done.code == 0 and house.left == ["x.csv", "x.html"]
    page, table = house.file("x.html").decode(), house.file("x.csv").decode()
    found = json.loads(house.batwatt(*words, "--json").out)
    assert table.splitlines()[-1] == "total,,390,1567.362,548.577,209.204"
    assert found["rows"][-1]["carbon_kg"] == 209.204 and any("10 never ran" in line for line in found["remarks"])
    assert "209.204" in page and "10 never ran" in page and "--busy-w 350" in page
