"""The paper's theorem: no schedule beats a plan if all checkpoints take the same time; and the measures of its list."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from draw_periods import instances
from examples import examples
from hypothesis import given

from batwatt.schedulers.checkpoint.period_plan import Instance, PeriodJob, plan
from papers.checkpoint import periods, tables
from papers.checkpoint.periods import schedules
from papers.checkpoint.tables import DATA, HERE, judged
from papers.statements import statements_of


@examples(1000)
@given(instances(jobs=6, processors=12, longest=14, fractions=False, constant=True))
def test_no_schedule_is_better_if_all_checkpoints_take_the_same_time(instance):
    # fails if the plan claims more than there is, too
    work = plan(instance).work_processor_s
    assert work == schedules(instance, lower_bound=int(work))


@examples(500)
@given(instances(jobs=4, processors=8, longest=10, fractions=False, constant=False))
def test_with_different_checkpoints_a_plan_is_one_of_the_schedules(instance):
    aligned = plan(instance).work_processor_s
    best = schedules(instance)
    assert aligned <= best
    # what is known to be had changes nothing but the time that it takes
    assert schedules(instance, lower_bound=int(aligned)) == best


def test_what_alignment_costs():
    # neither c nor d fits in beside a and b; c has room when a has gone, d when b has gone too
    rows = (("a", 2, 1.0, 0.0, "running"), ("b", 2, 4.0, 0.0, "running"),
            ("c", 3, 1.0, 0.0, "stopped"), ("d", 3, 1.0, 0.0, "stopped"))  # fmt: skip
    one_after_another = Instance(16.0, 6, tuple(PeriodJob(*row) for row in rows))
    assert schedules(one_after_another) == 3 * 15 + 3 * 12
    # a works 3 s while b is checkpointed, then both leave together
    assert plan(one_after_another).work_processor_s == 2 * 3 + 6 * 12
    # at once: a is away after 1 s, b after 4 s, so nothing is better here
    assert schedules(one_after_another, at_once=True) == 81
    assert periods.compared(one_after_another)["loss_percent"] == pytest.approx(100.0 * 3.0 / 81.0)


def test_a_schedule_loses_no_work():
    # 1 processor too few: one of the two stops
    jobs = tuple(PeriodJob(name, 2, 4.0, 3.0, "checkpointed") for name in "ab")
    assert schedules(Instance(9.0, 3, jobs)) == 18
    # if a is to make room for c (3 of 3) its checkpoint comes first: 3 x (9 - 4 - 1) < 18 < 3 x (18 - 4 - 1)
    jobs = (PeriodJob("a", 2, 4.0, 0.0, "running"), PeriodJob("c", 3, 4.0, 1.0, "stopped"))
    assert schedules(Instance(9.0, 3, jobs)) == 18
    assert schedules(Instance(18.0, 3, jobs)) == 3 * 13
    with pytest.raises(ValueError, match="does 40 processor s"):
        schedules(Instance(18.0, 3, jobs), lower_bound=40)


def test_checkpoints_at_once_only():
    # c has room only if both leave: together, after a has worked for 3 s, or b alone 4 s and a idle for 3 s
    rows = (("a", 2, 1.0, 0.0, "running"), ("b", 2, 4.0, 0.0, "running"), ("c", 5, 1.0, 0.0, "stopped"))
    instance = Instance(40.0, 5, tuple(PeriodJob(*row) for row in rows))
    assert schedules(instance) == 2 * 3 + 5 * 36
    assert schedules(instance, at_once=True) == 5 * 36
    figures = periods.compared(instance)
    assert figures["over_at_once_points"] == figures["early_percent"] == 100.0 * 6 / 200
    # without a checkpoint after the change a and b go on
    assert figures["by_later_points"] == 100.0 * (186 - 160) / 200


def test_periods_of_a_kind():
    kinds = [periods.KINDS[n] for n in (0, 1, 4)]
    rows = periods.periods(20, tuple(kinds), range(1, 3))
    assert rows["costs"].tolist() == ["none", "none", "equal", "equal", "different", "different"]
    # nothing is lost where all checkpoints take the same time
    assert rows.loc[rows["costs"] != "different", "loss_percent"].eq(0.0).all()
    assert (rows["feasible_percent"] == 100.0).all()
    # the same instances each time
    assert periods.periods(20, (kinds[1],), range(1, 3)).equals(rows.iloc[2:4].reset_index(drop=True))


def test_sequences_are_those_of_the_file():
    followed = periods.follow(periods.endless(3), min_yield=0.25)
    row = pd.read_csv(DATA / "sequences.csv").query("walk == 3 and asked_yield == 0.25").iloc[0]
    assert row["goodput_percent"] == pytest.approx(100.0 * followed.goodput, abs=1e-6)
    assert row["least_yield"] == pytest.approx(followed.min_yield, abs=1e-6)
    widths = pd.read_csv(DATA / "jobs-endless.csv")["cpus"].tolist()
    assert widths == [job.processors for job in followed.sequence.jobs]
    pd.testing.assert_frame_equal(periods.examples(), pd.read_csv(DATA / "figure1.csv"), check_dtype=False)


def values_of_the_rows() -> dict[int, float]:
    """Quantities of some rows, by their words, from the files alone."""
    costs = pd.read_csv(DATA / "runs.csv").query("study == 'costs'")
    some = pd.read_csv(DATA / "periods.csv").set_index("costs")
    ours = costs[(costs["label"] == "DP") & (costs["checkpoint_s"] > 0.0)]
    subset = costs[(costs["label"] == "subset sum") & (costs["checkpoint_s"] > 0.0)]
    least = costs[costs["label"] == "LWW"]["lost_percent"].mean()
    yields = pd.read_csv(DATA / "sequences.csv").pivot(index="walk", columns="asked_yield", values="least_yield")
    never = pd.read_csv(DATA / "sequences.csv").query("asked_yield == 0")["never"]
    return {
        # 96 machines of which 0.7 are there, for two days
        1: least / 100.0 * 0.7 * 96 * 48 * 3600,
        12: ours["goodput_percent"].mean() - subset["goodput_percent"].mean(),
        11: some.loc["none", "subset_optimal_percent"].mean(),
        13: some.loc["different", "optimal_percent"].mean(),
        18: pd.read_csv(DATA / "figure1.csv")["recoveries"].mean(),
        24: some.loc["different", "early_percent"].mean(),
        28: never.mean(),
        30: (yields.max(axis=1) - yields[0.0]).mean(),
    }


def test_the_measures_are_of_the_rows_that_they_count():
    verdicts = judged()
    for place, value in values_of_the_rows().items():
        assert verdicts.measured[place].value == pytest.approx(value), place
    words = {1: "Allowing jobs", 11: "With negligible", 12: "The dynamic programming algorithm accounts",
             13: "The dynamic programming algorithm computes", 18: "A job may require", 24: "With aligned ends",
             28: "Optimizing goodput", 30: "Maximizing the minimum yield"}  # fmt: skip
    for place, begin in words.items():
        assert statements_of(HERE)[place - 1].statement.startswith(begin)


def test_sentences_of_the_page():
    """Break-even times, what a threshold of 0.05 and the highest least yield cost, and which jobs starve."""
    leads = tables.leads(pd.read_csv(DATA / "runs.csv")).groupby(["workload", "checkpoint_s"])["lead"].mean()
    even_s = {name: np.interp(0.0, -leads[name], leads[name].index) for name in ("jobs-single-05h", "jobs-single-8h")}
    assert even_s["jobs-single-05h"] < 30.0 and 440.0 < even_s["jobs-single-8h"] < 460.0
    goodput, never = (
        pd.read_csv(DATA / "sequences.csv").groupby("asked_yield")[name].mean() for name in ("goodput_percent", "never")
    )
    assert [round(goodput[0.0] - goodput[asked], 1) for asked in (0.05, 1.0)] == [0.4, 4.1]
    assert never[0.0] > 0.0 == never[0.05]
