"""Each figure is declared once; groups of jobs."""

from __future__ import annotations

import json
import math
from collections import Counter
from pathlib import Path

import pandas as pd
import pytest
from tables_of_systems import jobs_of

import batwatt as bw
from batwatt.api.comparison import Case, compare
from batwatt.gym.simulation import REWARDS
from batwatt.report.html import STUDY_TERMS, TERMS
from batwatt.results import run_files
from batwatt.results.compared import COMPARED, NOT_MEASURED
from batwatt.results.figures import BOUND_S, FIGURES, METRICS
from batwatt.results.groups import groups_of, known_groupings, union_of
from batwatt.results.job_power import JOB_POWER
from batwatt.studies.study import SCHEMA

PLATFORM = Path(__file__).parents[2] / "platforms" / "small.xml"
NAMING = {"window", "seed", "cap_seed"}
"""Numbers that name a run, and measure nothing."""


def plain(head: str) -> str:
    """A heading in one line."""
    return head.replace("-\n", "").replace("\n", " ").lower()


def several(pairs: list[tuple[str, str]]) -> dict[str, set[str]]:
    meanings: dict[str, set[str]] = {}
    for name, meaning in pairs:
        meanings.setdefault(name, set()).add(meaning)
    return {name: texts for name, texts in meanings.items() if len(texts) > 1}


def test_no_name_has_two_meanings():
    pairs = [(figure.name, figure.meaning) for figure in FIGURES.values()]
    # Batsim's files have Batsim's names: the glossary says where they differ
    ours = [column for stem in ("power", "classes") for column in run_files.FILES[stem]]
    of_runs = {figure.name for figure in METRICS}
    pairs += [(column.name, column.meaning) for column in ours if column.name in of_runs]
    assert several(pairs) == {}
    assert "mean_wait_s" in {column.name for column in ours} & of_runs


def test_no_title_and_no_heading_has_two_meanings():
    figures = FIGURES.values()
    titles = [(figure.title, figure.meaning) for figure in figures if figure.title]
    terms = [*TERMS.items(), *STUDY_TERMS.items()]
    heads = [(figure.label, figure.meaning) for figure in figures if figure.head]
    assert several([(plain(label), meaning) for label, meaning in [*titles, *terms, *heads]]) == {}
    assert not {plain(term) for term, _ in terms} & {plain(title) for title, _ in titles}
    assert {"slowdown mean", "slowdown at full speed", "bounded slowdown", "goodput %"} <= {
        plain(label) for label, _ in [*titles, *terms, *heads]
    }


def test_no_two_figures_have_one_meaning():
    meanings = Counter(figure.meaning for figure in FIGURES.values())
    assert [meaning for meaning, count in meanings.items() if count > 1] == []
    assert all(figure.meaning and figure.better in ("", "lower", "higher") for figure in FIGURES.values())


def test_rewards_are_figures():
    for reward in REWARDS.values():
        assert FIGURES[reward.figure.name] is reward.figure
        assert reward.sign == (1.0 if reward.figure.better == "higher" else -1.0)
        assert reward.figure.meaning in reward.meaning and reward.meaning.startswith("minus ") == (reward.sign < 0.0)
    # a reward with the name of a figure is that figure
    assert all(name == reward.figure.name for name, reward in REWARDS.items() if name in FIGURES)
    assert f"{BOUND_S:g} s" in REWARDS["mean_bounded_slowdown"].meaning


@pytest.fixture
def inputs(tmp_path):
    """Platform, workload and envelope of a short run whose jobs say what they draw."""
    jobs = [{"id": str(n), "subtime": n, "res": 1, "walltime": 100, "profile": "p", "power_w": 150} for n in range(3)]
    profiles = {"p": {"type": "delay", "delay": 10}}
    (tmp_path / "w.json").write_text(json.dumps({"nb_res": 4, "jobs": jobs, "profiles": profiles}))
    return {"platform": PLATFORM, "workload": tmp_path / "w.json", "envelope": "constant:600"}


def test_every_number_of_a_run_is_a_figure(inputs, tmp_path):
    result = bw.simulate(**inputs, scheduler="varcap", capacity="constant:mean=1")
    result.save(tmp_path / "x")
    assert list(json.loads((tmp_path / "x_metrics.json").read_text())) == [figure.name for figure in METRICS]
    assert set(JOB_POWER) < set(result.job_power) < set(FIGURES)


def test_every_number_of_a_comparison_is_a_figure(inputs):
    cases = {"first": Case("powercap"), "second": Case("varcap")}
    comparison = compare(inputs["platform"], inputs["workload"], inputs["envelope"], cases)
    for table in (comparison.table, comparison.groups("size", "length")):
        numbers = set(table.select_dtypes("number")) - NAMING
        assert len(numbers) > 6 and numbers <= set(FIGURES)
    # without a signal and a price
    assert set(COMPARED) - {"carbon_g", "cost"} == set(comparison.table) - set(NOT_MEASURED)


def test_every_number_of_a_study_is_a_figure():
    numbers = {field.name for field in SCHEMA if str(field.type) in ("int64", "double")} - NAMING
    assert len(numbers) > len(METRICS) and numbers <= set(FIGURES)
    assert {name for name in SCHEMA.names if name in FIGURES} == numbers


TWO = jobs_of(
    {"free": (0, 0, 100, None), "capped": (50, 1800, None, 10)},
    hosts=[1, 2, 4, 5], length_s=[100.0, 900.0, 901.0, 90000.0], user=["x", "x", "y", None],
)  # fmt: skip
"""Four jobs, with their waits in s in two cases; None: not finished."""


def row(frame, case, group):
    groups = frame[(frame["case"] == case) & (frame["group"] == group)]
    assert len(groups) == 1
    return groups.iloc[0]


def test_by_size():
    groups = groups_of(TWO, "size")
    assert groups["group"].tolist() == ["1 host", "2 to 4 hosts", "5 to 16 hosts"] * 2
    assert groups["case"].tolist() == ["free"] * 3 + ["capped"] * 3
    # the second waits 1800 s where it waited for none; the third, of as many hosts, is killed
    middle = row(groups, "capped", "2 to 4 hosts")
    assert (middle["jobs"], middle["finished_share"], middle["mean_wait_s"]) == (2, 0.5, 1800.0)
    assert (middle["mean_full_speed_slowdown"], middle["paired_jobs"]) == (3.0, 1)
    assert (middle["wait_more_s"], middle["full_speed_slowdown_more"]) == (1800.0, 2.0)
    # the fourth finishes here only: nothing to compare with
    wide = row(groups, "capped", "5 to 16 hosts")
    assert (wide["finished_share"], wide["mean_wait_s"], wide["paired_jobs"]) == (1.0, 10.0, 0)
    assert math.isnan(wide["wait_more_s"])
    assert (groups.loc[groups["case"] == "free", "wait_more_s"].dropna() == 0.0).all()


def test_by_length():
    groups = groups_of(TWO, "length")
    # 900 s are a quarter of an hour, 901 s are more
    assert groups["group"].unique().tolist() == ["up to 15 min", "15 min to 1 h", "over 24 h"]
    assert row(groups, "capped", "up to 15 min")["wait_more_s"] == (50 + 1800) / 2
    assert row(groups, "capped", "15 min to 1 h")["finished_share"] == 0.0
    unknown = TWO.assign(length_s=TWO["length_s"].where(TWO["job_id"] != "3"))
    assert groups_of(unknown, "length")["group"].tolist()[-1] == "unknown"


def test_by_user():
    groups = groups_of(TWO, "user")
    # the one with the most jobs first, then by name
    assert groups["group"].tolist() == ["x", "unknown", "y"] * 2
    assert row(groups, "capped", "x")["full_speed_slowdown_more"] == (0.5 + 2.0) / 2
    # beyond ten they are others
    names = [f"u{n:02d}" for n in range(12) for _ in range(1 + (n < 11))]
    numbers = dict.fromkeys(("wait_s", "full_speed_slowdown", "wait_more_s", "full_speed_slowdown_more"), 0.0)
    frame = pd.DataFrame({"case": "one", "user": names, "state": "finished", "hosts": 1, "length_s": 60.0}).assign(
        **numbers
    )
    jobs = groups_of(frame, "user").set_index("group")["jobs"]
    assert jobs.index.tolist() == [*(f"u{n:02d}" for n in range(10)), "2 others"]
    assert jobs.sum() == len(names) and jobs["2 others"] == 3


def test_what_jobs_can_be_grouped_by():
    assert known_groupings(TWO.assign(queue=None, group="")) == ["size", "length", "user"]
    assert union_of(TWO, ["size", "user"])["by"].tolist() == ["size"] * 6 + ["user"] * 6
    with pytest.raises(ValueError, match="grouped by user, group, queue, qos, size, length, got 'colour'"):
        groups_of(TWO, "colour")
