"""Systems side by side: measured alike, on the same jobs and the same power."""

from __future__ import annotations

import random
import re
import sys

import numpy as np
import pandas as pd
import pytest

import batwatt as bw
from batwatt.api.comparison import SYSTEMS, Case, compare_systems
from batwatt.errors import InputError
from batwatt.model.signal_integral import SignalIntegral
from batwatt.protocol.workload4 import parse_workload

pytestmark = pytest.mark.usefixtures("quiet")

# three machines of one host and 100 W; two of them have power from 100 s on
FEW = bw.Workload.from_frame(
    pd.DataFrame({"id": list("abc"), "submission_time_s": [0, 0, 50], "length_s": [150, 80, 60], "hosts": [1, 2, 1]})
)
MACHINES = bw.Platform.machines(3, 1, watts=100)
FALLS = bw.Series((0.0, 100.0), (300.0, 200.0), "power_w")


def test_by_hand():
    """a runs from 0 to 150 and b from 0 to 80; c waits for b, from 50 to 80, and ends at 140: nobody is killed."""
    cases = {"free": Case("varcap", {}, "none"), "limited": Case("varcap")}
    found = compare_systems(MACHINES, FEW, FALLS, cases)
    row = found.table.set_index("case").loc["limited"]
    assert (row["jobs_finished"], row["killed_power"], row["violations"]) == (3, 0, 0)
    assert row["mean_wait_s"] == pytest.approx((0 + 0 + 30) / 3)
    assert row["mean_full_speed_slowdown"] == pytest.approx((1 + 1 + 90 / 60) / 3)
    # 300 W for 100 s, then 200 W for 50 s, all of which is drawn as machines that are on draw 100 W
    assert row["energy_j"] == pytest.approx(300 * 100 + 200 * 50, abs=1.0)
    assert row["fed_host_use"] == pytest.approx((150 + 2 * 80 + 60) / (3 * 100 + 2 * 50))
    free = found.table.set_index("case").loc["free"]
    assert free["energy_above_cap_j"] == pytest.approx(100 * 50, abs=1.0) and free["violations"] == 1
    jobs = found.jobs.set_index(["case", "job_id"])
    assert jobs.loc[("limited", "c"), ["wait_s", "full_speed_slowdown", "attempts", "state"]].tolist() == [
        30.0,
        1.5,
        1,
        "finished",
    ]
    assert jobs["wait_more_s"].tolist() == [0.0] * 6


def test_a_kill_by_hand():
    """With power for one machine from 100 s on, the one of a (50 s to go) or c (40 s) is killed, and runs again."""
    cap = bw.Series((0.0, 100.0, 160.0), (300.0, 100.0, 300.0), "power_w")
    found = compare_systems(MACHINES, FEW, cap, {"lww": Case("varcap", {"termination": "lww"})})
    jobs = found.jobs.set_index("job_id")
    # lww: c has run for 20 s, a for 100 s
    assert jobs["kills" if "kills" in jobs else "attempts"].tolist() == [1, 1, 2]
    assert jobs.loc["c", "wait_s"] == pytest.approx(150 - 50) and jobs.loc["c", "full_speed_slowdown"] == pytest.approx(
        160 / 60
    )
    assert found.table.loc[0, "killed_power"] == 1


def busy(count=60, seed=3):
    draw = random.Random(seed)
    time_s, rows = 0.0, []
    for _ in range(count):
        time_s += draw.expovariate(1 / 120)
        rows.append((round(time_s, 3), round(draw.uniform(60, 3000), 2), draw.randint(1, 4), draw.choice("xyz")))
    frame = pd.DataFrame(rows, columns=["submission_time_s", "length_s", "hosts", "user"])
    levels = [draw.choice([800.0, 1600.0, 3200.0, 2400.0]) for _ in range(24)]
    return bw.Workload.from_frame(frame), bw.Series(tuple(1800.0 * i for i in range(24)), tuple(levels), "power_w")


def test_every_system_on_the_same_work():
    workload, cap = busy()
    carbon = SignalIntegral.regular([100.0 + 50.0 * (hour % 5) for hour in range(200)])
    alone = compare_systems(bw.Platform.machines(16, 1, watts=200), workload, cap, carbon=carbon)
    assert list(alone.summary.index) == list(SYSTEMS) and not alone.errors
    table = alone.table.set_index("case")
    states = alone.jobs.groupby("case", sort=False)["state"].value_counts().unstack(fill_value=0)
    assert (states.sum(axis=1) == 60).all() and (states["finished"] == table["jobs_finished"]).all()
    limited = [name for name, case in SYSTEMS.items() if case.limit == "envelope"]
    assert (table.loc[limited, "violations"] == 0).all() and table.loc["no limit", "violations"] > 0
    # between the least and the greatest intensity
    share = table["carbon_g"] / (table["energy_j"] / 3.6e6)
    assert share.between(100.0, 300.0).all()
    # figures of a system are those of its run
    options = {"termination": "lww", "backfilling": "easy"}
    own = bw.simulate(bw.Platform.machines(16, 1, watts=200), workload, "varcap", envelope=cap, options=options)
    assert table.loc["varcap LWW", "mean_full_speed_slowdown"] == own.metrics["mean_full_speed_slowdown"]
    assert table.loc["varcap LWW", "mean_wait_s"] == own.metrics["mean_wait_s"]
    assert table.loc["varcap LWW", "killed_power"] == own.metrics["terminations"]
    together = compare_systems(bw.Platform.machines(16, 1, watts=200), workload, cap, carbon=carbon, workers=2)
    pd.testing.assert_frame_equal(alone.table, together.table)
    pd.testing.assert_frame_equal(alone.jobs, together.jobs)


def test_a_case_with_a_seed_of_its_own_runs_once():
    ran = []
    cases = {"own": Case("varcap", {"seed": 7}), "open": Case("varcap")}
    found = compare_systems(MACHINES, FEW, FALLS, cases, seeds=(1, 2), each=lambda label, seed, _: ran.append(label))
    assert ran == ["own", "open", "open"]
    assert [found.cases[label].random for label in cases] == [False, True]


def test_seeds_are_paired(tmp_path):
    workload, cap = busy()
    cases = {"lww": Case("varcap", {"termination": "lww"}), "random": Case("varcap", {"termination": "random"})}
    found = compare_systems(bw.Platform.machines(16, 1, watts=200), workload, cap, cases, seeds=(1, 2, 3))
    assert len(found.table) == 6 and found.summary.loc["lww", "mean_slowdown_se"] == 0.0
    by_seed = found.table.pivot(index="seed", columns="case", values="mean_slowdown")
    assert by_seed["lww"].nunique() == 1
    difference = by_seed["random"] - by_seed["lww"]
    assert found.summary.loc["random", "mean_slowdown_se"] == pytest.approx(np.std(difference, ddof=1) / np.sqrt(3))
    found.save(tmp_path / "cmp")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["cmp.html", "cmp_comparison.csv", "cmp_jobs.csv"]
    page = re.sub("<[^>]+>", "", (tmp_path / "cmp.html").read_text())
    assert "“lww”" in page and "± its standard error over 3 seeds" in page
    # the powers are those of the first seed
    energy_j = found.table.set_index(["case", "seed"])["energy_j"]
    assert {label: trace.energy_j for label, trace in found.traces.items()} == pytest.approx(
        {label: energy_j[label, 1] for label in cases}
    )
    assert found.cases["random"].random and found.envelope is cap


def test_without_the_libraries_of_reports_there_is_no_page(tmp_path, monkeypatch):
    found = compare_systems(MACHINES, FEW, FALLS, {"one": Case("varcap")})
    for name in [name for name in sys.modules if name.startswith("batwatt.report")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "jinja2", None)
    found.save(tmp_path / "cmp", by=["size"])
    names = ["cmp_comparison.csv", "cmp_groups.csv", "cmp_jobs.csv"]
    assert sorted(path.name for path in tmp_path.iterdir()) == names


def test_what_cannot_run_is_said():
    job = {"id": 1, "subtime": 0, "res": 1, "walltime": 200, "profile": "w"}
    profiles = {"w": {"type": "composed", "repeat": 1, "seq": ["x"]}, "x": {"type": "delay", "delay": 100}}
    parts = parse_workload({"nb_res": 3, "jobs": [job], "profiles": profiles}, "w0", "here")
    found = compare_systems(MACHINES, parts, FALLS)
    assert list(found.errors) == ["checkpoint", "carbon"] and "is no delay" in found.errors["checkpoint"]
    with pytest.raises(InputError, match="is no delay"):
        compare_systems(MACHINES, parts, FALLS, {"mine": Case("checkpoint")})
    with pytest.raises(InputError, match="preset: 'all' is not known"):
        compare_systems(MACHINES, FEW, FALLS, "all")


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        ({"seeds": 3}, "seeds: must be a list of whole numbers, got 3"),
        ({"seeds": [1, 1]}, "seeds: has a seed twice"),
        ({"workers": "2"}, "workers"),
        ({"cases": None}, "cases: must be a preset or a dict of cases"),
        ({"envelope": ""}, "envelope: '' is no envelope"),
        ({"envelope": None}, "envelope, capacity: are missing"),
    ],
)
def test_odd_arguments_are_one_line(arguments, line):
    given = {"cases": {"x": Case("varcap")}, "envelope": FALLS} | arguments
    with pytest.raises(InputError, match=line):
        compare_systems(MACHINES, FEW, **given)


def test_a_capacity_is_an_envelope():
    one = compare_systems(MACHINES, FEW, FALLS, {"x": Case("varcap")})
    two = compare_systems(MACHINES, FEW, cases={"x": Case("varcap")}, capacity=bw.Series((0.0, 100.0), (3.0, 2.0)))
    pd.testing.assert_frame_equal(one.table, two.table)
