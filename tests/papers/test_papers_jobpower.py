"""The tables of papers/jobpower: made from the committed runs, and two of these runs again."""

from __future__ import annotations

import logging
from itertools import pairwise

import pandas as pd
import pytest

from batwatt.inputs.platform_files import read_platform
from batwatt.protocol.workload4 import parse_workload
from papers import pages
from papers.generators.pm100 import pm100_like
from papers.jobpower import tables as job_power
from papers.jobpower.tables import KEEP, KILL, Case
from papers.statements import statements_of, verdicts


def test_the_page_has_the_tables_of_the_committed_runs():
    assert pages.fill(job_power.PAGE, job_power.tables(), check=True) == []


def test_findings_by_hand():
    """Rows 1, 6 and 18 of the list, as means over seeds of the committed runs."""
    runs = pd.read_csv(job_power.RUNS)
    judged = verdicts(statements_of(job_power.HERE), job_power.MEASURES, job_power.samples_of(runs))
    means = runs.groupby(["excess", "check", "predictor"])[["mean_turnaround_s", "share_above"]].mean()
    hours, above = means["mean_turnaround_s"], means["share_above"]
    expected = {
        1: hours[KEEP, "mean", "history"] / hours[KEEP, "node", "exact"],
        6: 100.0 * (hours[KEEP, "gaussian 1", "exact"] / hours[KEEP, "mean", "exact"] - 1.0),
        18: 100.0 * above[KILL, "mean", "exact"] / above[KEEP, "mean", "exact"],
    }
    assert {place: judged.measured[place].value for place in expected} == pytest.approx(expected)
    assert list(judged.measured) == [statement.place for statement in judged.statements]


def test_a_committed_run_again(caplog):
    caplog.set_level(logging.CRITICAL)
    runs = pd.read_csv(job_power.RUNS)
    assert len(runs) == len(job_power.SEEDS) * len(list(job_power.cases()))
    platform = read_platform(job_power.PLATFORM)
    workload = parse_workload(pm100_like(None, 2), "w0", "test")
    for case in (Case(KEEP, "gaussian 2", "history"), Case(KILL, "knapsack", "history")):
        result = job_power.run_case(case, platform, workload, job_power.envelope_of(2, len(platform)))
        rows = runs[(runs["seed"] == 2) & (runs["excess"] == case.excess)]
        (row,) = rows[(rows["check"] == case.check) & (rows["predictor"] == case.predictor)].to_dict("records")
        figures = {name: value for name, value in result.items() if not isinstance(value, str)}
        assert {name: row[name] for name in figures} == pytest.approx(figures, rel=1e-8)


def test_the_envelopes():
    series = job_power.envelope_of(3, 48)
    assert series == job_power.envelope_of(3, 48) != job_power.envelope_of(4, 48)
    dynamic_w = 48 * (job_power.TYPICAL_W - job_power.IDLE_W)
    shares = [round((watts - 48 * job_power.IDLE_W) / dynamic_w, 6) for watts in series.values]
    assert shares[0] == 0.6 and shares[-1] == 0.9 == max(shares) and min(shares) >= 0.3
    steps = {round(abs(late - early), 6) for early, late in pairwise(shares[:-1])}
    assert steps <= {0.0, 0.1}
