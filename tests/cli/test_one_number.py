"""One run measured by every door: figures of one name are equal."""

from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import batwatt as bw
from batwatt.api.comparison import Case, compare
from batwatt.results.figures import FIGURES

PLATFORM = Path(__file__).parents[2] / "platforms" / "small.xml"
OPTIONS = {"response": "hfld"}
FREE = {"order": "fcfs", "backfilling": "first-fit", "response": "none"}
"""What an agent does that starts the first job that fits, under an envelope that allows all."""
ROWS = [(0, 2, 200, "work"), (5, 2, 60, "long"), (10, 99, 100, "second"), (20, 1, 100, "second")]
ROWS += [(21, 2, 400, "work"), (22, 4, 400, "work")]
WORKLOAD = {
    "nb_res": 4,
    "jobs": [
        {"id": str(number), "subtime": since, "res": hosts, "walltime": most, "profile": profile}
        for number, (since, hosts, most, profile) in enumerate(ROWS, 1)
    ],
    "profiles": {
        "work": {"type": "parallel_homogeneous", "cpu": 2e12, "com": 0},
        "second": {"type": "delay", "delay": 1},
        "long": {"type": "delay", "delay": 300},
    },
}
CAP = "time_s,power_w\n0,800\n60,350\n120,700\n"
ALL = "time_s,power_w\n0,2000\n60,1900\n"
CAMPAIGN = """
name: one
defaults: {scheduler: powercap, options: OPTIONS, label: A}
comparisons:
  one: {platforms: [PLATFORM], workloads: [w.json], envelopes: [e.csv]}
"""


@pytest.fixture
def folder(house):
    """The inputs of the run."""
    house.write("w.json", json.dumps(WORKLOAD))
    house.write("e.csv", CAP)
    return house.folder


@pytest.fixture
def direct(folder):
    """The run by `simulate`."""
    return bw.simulate(PLATFORM, folder / "w.json", "powercap", options=OPTIONS, envelope=folder / "e.csv")


def test_the_run_has_kills_rejections_and_slowed_hosts(direct):
    """One job each: killed for power, killed at its walltime, rejected; the others are slowed down."""
    figures = direct.metrics
    names = ("jobs_finished", "killed_power", "killed_walltime", "jobs_rejected", "jobs_total")
    assert [figures[name] for name in names] == [3, 1, 1, 1, 6]
    assert figures["mean_run_time_stretch"] > 1.0
    different = [figures[f"mean_{kind}slowdown"] for kind in ("", "full_speed_", "bounded_")]
    assert len(set(different)) == 3
    # 2e12 flops take 50 s at 40 Gflop/s, a second counts as 10 s
    ended = dict(zip(direct.jobs["job_id"], direct.jobs["finish_time_s"], strict=True))
    done = direct.jobs.loc[direct.jobs["success"] == 1, ["job_id", "submission_time_s"]]
    full_s = {"1": 50.0, "4": 1.0, "5": 50.0, "6": 50.0}
    lasted = [(name, ended[name] - since) for name, since in done.itertuples(index=False)]
    by_hand = [max(1.0, seconds / max(10.0, full_s[name])) for name, seconds in lasted]
    assert figures["mean_bounded_slowdown"] == pytest.approx(np.mean(by_hand), abs=1e-6)
    assert direct.rejections == {"wider than the platform of 4 hosts": 1}
    assert "rejected because: 1 wider than the platform of 4 hosts" in repr(direct)


def by_metrics(folder, options, house):
    words = ["-p", PLATFORM, "-w", folder / "w.json", "--envelope", folder / "e.csv"]
    assert house.batwatt("run", *words, "-o", json.dumps(options), "-e", folder / "run").code == 0
    (record,) = json.loads(house.batwatt("metrics", folder / "run", *words, "--json").out)
    assert record["rejected_because"] == {"wider than the platform of 4 hosts": 1}
    return record


def by_compare(folder, options, house):
    cases = ["-c", f"A=powercap {json.dumps(options)}", "-c", "B=varcap", "-e", folder / "sys", "--json"]
    words = ["-p", PLATFORM, "-w", folder / "w.json", "--envelope", folder / "e.csv", *cases]
    record, other = json.loads(house.batwatt("compare", *words).out)
    assert record["rejected_because"] == {"wider than the platform of 4 hosts": 1}
    assert other["rejected_because"] == {"not enough machines or memory": other["jobs_rejected"]}
    written = pd.read_csv(folder / "sys_comparison.csv").iloc[0]
    assert all(written[name] == value for name, value in record.items() if name in written)
    return record


def by_study(folder, options, _):
    text = CAMPAIGN.replace("PLATFORM", str(PLATFORM)).replace("OPTIONS", json.dumps(options))
    (folder / "one.yaml").write_text(text)
    row = bw.study(folder / "one.yaml", results=folder / "results", workers=1).table.iloc[0].to_dict()
    assert json.loads(row["rejected_because"]) == {"wider than the platform of 4 hosts": 1}
    return row


def by_gym(folder, *_):
    pytest.importorskip("gymnasium")
    from batwatt.gym import BatwattEnv

    env = BatwattEnv(PLATFORM, folder / "w.json", envelope=folder / "e.csv")
    _, info = env.reset(seed=0)
    over = False
    while not over:
        _, _, over, _, info = env.step(int(np.argmax(info["action_mask"])))
    assert env.result().metrics == info["metrics"]
    return info["metrics"]


DOORS = [(door, OPTIONS, CAP) for door in (by_metrics, by_compare, by_study)]
DOORS += [(door, FREE, ALL) for door in (by_gym, by_compare)]


@pytest.mark.parametrize(("door", "options", "cap"), DOORS)
def test_figures_of_one_name_are_equal(folder, house, door, options, cap):
    house.write("e.csv", cap)
    inputs = {"platform": PLATFORM, "workload": folder / "w.json", "envelope": folder / "e.csv"}
    direct = bw.simulate(**inputs, scheduler="powercap", options=options).metrics
    values = {
        name: value for name, value in door(folder, options, house).items()
        if name in FIGURES and value is not None and not (isinstance(value, float) and math.isnan(value))
    }  # fmt: skip
    if door is by_gym:
        # an episode has the capacity of all hosts where none is given, a run has none
        values = {name: value for name, value in values.items() if direct[name] is not None}
    assert values == {name: direct[name] for name in values}
    assert len(values) >= 15


def test_a_row_does_not_depend_on_its_neighbours_and_shows_itself(folder):
    """Alone, or beside a case that ends later: the same row."""
    inputs = (PLATFORM, folder / "w.json", folder / "e.csv")
    alone = compare(*inputs, {"A": Case("powercap", OPTIONS)}).table
    ended = []
    cases = {"A": Case("powercap", OPTIONS), "<b>": Case("varcap", {"victim": "resubmit"})}
    result = compare(*inputs, cases, progress=lambda *counts: ended.append(counts))
    assert result.table["makespan_s"].nunique() == 2 and ended == [(1, 2), (2, 2)]
    pd.testing.assert_frame_equal(alone, result.table.iloc[:1][alone.columns])
    text, page = repr(result), result._repr_html_()
    assert text.startswith("Comparison of 2 cases on ") and "bounded" in text
    assert "rejected in A: 1 wider than the platform of 4 hosts\n" in text
    assert "<th>&lt;b&gt;</th>" in page and "rejected in A: 1 wider" in page and page.count("<tr>") == 3


def test_states_of_jobs_are_counted_as_run_counts_them(folder, direct):
    result = compare(PLATFORM, folder / "w.json", folder / "e.csv", {"A": Case("powercap", OPTIONS)})
    states = result.jobs["state"].value_counts().to_dict()
    assert states == {"finished": 3, "killed": 1, "walltime": 1, "rejected": 1}
    causes = result.jobs.loc[result.jobs["cause"] != "", ["job_id", "cause"]].values.tolist()
    assert causes == [["3", "wider than the platform of 4 hosts"]]
    mean = result.jobs["full_speed_slowdown"].mean()
    assert mean == pytest.approx(direct.metrics["mean_full_speed_slowdown"], abs=1e-6)
