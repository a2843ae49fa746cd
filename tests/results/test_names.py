"""Each figure is declared once: no name, title or heading has two meanings, and no figure is measured twice."""

from __future__ import annotations

import json
import re
from collections import Counter
from pathlib import Path

import pandas as pd
import pytest
from tables_of_tests import row, save

import batwatt as bw
from batwatt.api.comparison import Case, compare
from batwatt.gym.columns import REWARDS
from batwatt.report.glossary import CAMPAIGN_TERMS, TERMS
from batwatt.report.page import write_report
from batwatt.results import columns
from batwatt.results.compared import COMPARED, NOT_MEASURED
from batwatt.results.figures import FIGURES, METRICS
from batwatt.results.job_power import JOB_POWER
from batwatt.results.slowdowns import BOUND_S
from batwatt.study.table import SCHEMA

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
    return {name: found for name, found in meanings.items() if len(found) > 1}


def test_no_name_has_two_meanings():
    pairs = [(figure.name, figure.meaning) for figure in FIGURES.values()]
    # Batsim's files have Batsim's names: the glossary says where they differ
    ours = [column for stem in ("power", "classes") for column in columns.FILES[stem]]
    of_runs = {figure.name for figure in METRICS}
    pairs += [(column.name, column.meaning) for column in ours if column.name in of_runs]
    assert several(pairs) == {}
    assert "mean_wait_s" in {column.name for column in ours} & of_runs


def test_no_title_and_no_heading_has_two_meanings():
    figures = FIGURES.values()
    titles = [(figure.title, figure.meaning) for figure in figures if figure.title]
    terms = [*TERMS.items(), *CAMPAIGN_TERMS.items()]
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


@pytest.mark.parametrize("label", ["slowdown mean", "slowdown"])
def test_the_slowdown_is_batsims_alone(label):
    named = {figure.name for figure in FIGURES.values() if label in (plain(figure.label), figure.title)}
    assert named == {"mean_slowdown"}


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
    found = compare(inputs["platform"], inputs["workload"], inputs["envelope"], cases)
    for table in (found.table, found.groups("size", "length")):
        numbers = set(table.select_dtypes("number")) - NAMING
        assert len(numbers) > 6 and numbers <= set(FIGURES)
    # without a signal and a price
    assert set(COMPARED) - {"carbon_g", "cost"} == set(found.table) - set(NOT_MEASURED)


def test_every_number_of_a_campaign_is_a_figure(tmp_path):
    numbers = {field.name for field in SCHEMA if str(field.type) in ("int64", "double")} - NAMING
    assert len(numbers) > len(METRICS) and numbers <= set(FIGURES)
    assert {name for name in SCHEMA.names if name in FIGURES} == numbers
    rows = [
        row(label, workload, **more) for label in "ab" for workload in ("v", "w")
        for more in ({}, {"study": "machines", "capacity": "c", "capacity_core_s": 1.0, "goodput": 0.5})
    ]  # fmt: skip
    written = write_report(save(tmp_path / "r", rows))
    means = {path.stem: list(pd.read_csv(path)) for path in written if path.suffix == ".csv"}
    summary = means.pop("summary")
    assert {name.split()[0] for names in means.values() for name in names} - {"label"} <= set(FIGURES)
    assert len(means) == 1 and "goodput" in next(iter(means.values()))[1]
    # runs and failed count the rows
    assert {re.sub("_(mean|std)$", "", name) for name in summary} - {"study", "label", "runs", "failed"} <= set(FIGURES)
