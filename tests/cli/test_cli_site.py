"""From the raw files of a site to the answer: on public data, and the shipped synthetic site."""

from __future__ import annotations

import csv
import json
import subprocess
import sys

import pytest
from cli_house import ROOT

from batwatt.api.comparison import SYSTEMS

SITES = ROOT.parent / "shared" / "data" / "sites"
COUNTS = {"finished": "jobs_finished", "rejected": "jobs_rejected", "unfinished": "jobs_unfinished"}
"""State of a job -> the figure that counts it; killed runs of a job may be several."""


@pytest.fixture(scope="module")
def pozidriv(tmp_path_factory):
    """A dump of 700 lines with its header."""
    if not SITES.is_dir():
        pytest.skip("no data of sites in ../shared/data/sites")
    path = tmp_path_factory.mktemp("site") / "jobs.sacct"
    parts = (SITES / "sacct" / f"xdmod-{name}.txt" for name in ("header", "pozidriv-700"))
    path.write_text("\n".join(part.read_text(encoding="utf-8").strip("\n") for part in parts) + "\n", encoding="utf-8")
    return path


@pytest.mark.deep
def test_a_comparison_runs_all_systems(house, pozidriv):
    solar = SITES / "solar-wind" / "serf_east_15min_ac_power.csv"
    done = house.batwatt(
        *("compare", "-w", pozidriv, "--machines", 300, "--cores", 1, "--preset", "systems", "-e", house.out / "cmp"),
        *("--envelope", f"power:{solar},peak_w=3000,from=2016-07-04,days=14,repeat=yes + constant:600"),
        *("--carbon", f"{SITES / 'carbon' / 'DE-LU_2023_hourly.csv'},from=2023-07-04,days=60,kind=lifecycle"),
        *(
            "--price",
            f"{SITES / 'price' / 'processed-DE-LU_2023_local_EUR.csv'},tz=Europe/Berlin,from=2023-07-04,days=60",
        ),
        "--json",
    )
    assert done.code == 0 and "not run:" not in done.err, done.err
    rows = {row["case"]: row for row in json.loads(done.out)}
    assert list(rows) == list(SYSTEMS)
    with (house.out / "cmp_jobs.csv").open() as stream:
        jobs = list(csv.DictReader(stream))
    count = len({job["job_id"] for job in jobs})
    assert len(jobs) == count * len(SYSTEMS)
    for label, row in rows.items():
        assert row["carbon_g"] > 0.0 and row["energy_j"] > 0.0, label
        states = [job["state"] for job in jobs if job["case"] == label]
        assert len(states) == count, label
        assert {state: states.count(state) for state in COUNTS} == {state: row[name] for state, name in COUNTS.items()}
    assert rows["no limit"]["jobs_finished"] == count and rows["no limit"]["energy_above_cap_j"] > 0.0
    page = (house.out / "cmp.html").read_text(encoding="utf-8")
    assert f"Comparison of {len(SYSTEMS)} cases on {count} jobs" in page
    assert [label for label in SYSTEMS if f'data-label="{label}"' not in page] == []


@pytest.mark.parametrize("script", ["workloads/site/make_dump.py", "power_profiles/site/make_solar.py"])
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
