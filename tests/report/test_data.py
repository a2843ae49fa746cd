"""What the figures show: scores, the violation, the plan of the report."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest
from tables_of_tests import DROP_S, STEP_S, paper, row, save

from batwatt.model.series import Series
from batwatt.report import data
from batwatt.report.interactive import power_series_of
from batwatt.report.report_plan import DRAWN, general_plan, places
from batwatt.report.table import COMPARED, KILLS, SLOWDOWN, VIOLATIONS, Measure, instance_names, read_campaign
from batwatt.results.power import PowerTrace
from batwatt.results.style import PALETTE, Look

A, B, C = "EBF Slow HFLD", "FF Asc IDFS", "EBF Slow IDSB"


def planned(folder, rows, plan=general_plan):
    campaign = read_campaign(save(folder, rows))
    return campaign, plan(campaign)


def test_scores_by_hand(tmp_path):
    rows = [
        row(A, mean_slowdown=2.0, killed_power=10, violations=3),
        row(B, mean_slowdown=3.0, killed_power=30, violations=3),
        row(C, mean_slowdown=6.0, killed_power=20, killed_walltime=5, violations=3),
        row("EBF Slow no config.", mean_slowdown=1.0, violations=200),
        row("Optimum"),
    ]
    found = data.scores(*planned(tmp_path, rows))
    # neither the optimum nor what does nothing about the envelope stretches the ranges
    assert found.range_of(SLOWDOWN) == (2.0, 6.0) and found.range_of(VIOLATIONS) == (3.0, 3.0)
    assert found.scores.loc[A].tolist() == [1.0, 1.0, 1.0]
    assert found.scores.loc[B].tolist() == [0.75, 0.0, 1.0]
    assert found.scores.loc[C].tolist() == [0.0, 0.25, 1.0]
    # by the mean of the places: B 1.25 / 3, C 1.75 / 3
    assert found.scores.index.tolist() == [A, B, C]


def test_places_of_higher_is_better_and_of_nothing():
    frame = pd.DataFrame({"label": ["a", "b"], "up": [1.0, 3.0], "none": [math.nan, math.nan]})
    found = places(frame, [Measure("up", "up", "", "", "higher"), Measure("none", "none", "", "")])
    assert found["up"].to_dict() == {"a": 1.0, "b": 0.0} and list(found.columns) == ["up"]


def test_outline(tmp_path):
    """The optimum is the reference; who ignores the envelope is the baseline, and not rated."""
    rows = [*paper(), row("easyBackfill", scheduler="easyBackfill")]
    _, plan = planned(tmp_path, rows)
    assert plan.reference == "Optimum" and plan.variants is None
    assert plan.baselines == ("EBF Slow no config.",)
    assert "EBF Slow no config." in plan.highlighted and "EBF Slow no config." not in plan.rated
    assert (plan.groups[A], plan.members[A]) == ("hfld", "easy slowdown")
    assert plan.groups["easyBackfill"] == "easyBackfill"


def test_the_main_study_and_the_algorithms_drawn(tmp_path):
    rows = [row(f"algorithm {n:02d}", w, study=s, mean_slowdown=float(n), scheduler=f"s{n % 2}")
            for s, works in (("few", ["w0"]), ("many", ["w0", "w1"])) for n in range(12) for w in works]  # fmt: skip
    campaign = read_campaign(save(tmp_path, rows))
    plan = general_plan(campaign)
    assert plan.main == "few" and plan.reference is None
    assert plan.drawn == tuple(f"algorithm {n:02d}" for n in range(DRAWN))


def test_looks_tell_apart(tmp_path):
    campaign, plan = planned(tmp_path, [*paper(), *(row(f"x{n}") for n in range(40))])
    looks = plan.looks(campaign.labels)
    assert set(looks) == set(campaign.labels)
    assert looks["Optimum"] == Look(len(PALETTE) - 1)
    assert len({(look.colour, look.marker) for look in looks.values()}) == len(looks)
    assert len({looks[label].colour for label in plan.shown}) == len(plan.shown)


def test_zoom_finds_the_drop(results):
    campaign = read_campaign(results[0])
    zoom = data.zoom(campaign, general_plan(campaign))
    assert zoom.label == A and zoom.instance == "small drop"
    assert zoom.step_s == (DROP_S, DROP_S + STEP_S)
    assert (zoom.begin_s, zoom.end_s) == (0.0, DROP_S + STEP_S + data.MARGIN_S)
    assert [label for label, _ in zoom.runs] == [A, B]
    # what the run's own file says of that moment
    rows = pd.read_csv(campaign.prefix(campaign.saved.set_index(["label", "envelope"]).loc[(A, "drop"), "key"]).parent
                       / "run_power.csv")  # fmt: skip
    assert zoom.excess_w == pytest.approx((rows["power_w"] - rows["cap_w"]).max(), abs=1e-5)


def test_no_kept_run_no_zoom(tmp_path):
    campaign, plan = planned(tmp_path, paper())
    assert data.zoom(campaign, plan) is None and data.envelopes(campaign) == []


def test_envelopes_come_from_the_files_or_from_the_runs(results, tmp_path):
    campaign = read_campaign(results[0])
    names = [name for name, _ in data.envelopes(campaign)]
    assert names == ["drop", "step"]
    from_file = dict(data.envelopes(campaign))["drop"]
    assert len(from_file) == 12
    (results[0] / "drop.csv").rename(results[0] / "moved.csv")
    try:
        from_run = dict(data.envelopes(campaign))["drop"]
    finally:
        (results[0] / "moved.csv").rename(results[0] / "drop.csv")
    # only the changes, and only until the run ends
    assert from_run.times_s == (0.0, DROP_S, DROP_S + STEP_S)
    assert from_run.values == (900.0, 120.0, 900.0)


def test_a_bar_that_outgrows_the_others_is_cut():
    frame = pd.DataFrame({"label": list("abcd"), "kills": [200.0, 4.0, 5.0, math.nan]})
    assert data.readable_top(frame, KILLS, list("abcd")) == pytest.approx(1.15 * 5.0)
    assert data.readable_top(frame, KILLS, list("ab")) == pytest.approx(1.15 * 200.0)
    assert data.readable_top(frame.assign(kills=0.0), KILLS, list("abcd")) == 1.0


def test_names_of_instances_say_what_differs():
    frame = pd.DataFrame({"platform": ["p", "p"], "workload": ["w", "w"], "envelope": ["", "e"]})
    assert instance_names(frame) == ["", "e"] and instance_names(frame[:1]) == ["w"]


def test_rows_of_a_figure_are_in_the_order_asked_for(tmp_path):
    campaign, plan = planned(tmp_path, paper(2))
    found = data.per_instance(campaign, plan.main, [B, A], COMPARED)
    assert found["label"].tolist() == [B, B, A, A] and found["instance"].tolist() == ["w0", "w1"] * 2


def test_what_is_above_the_envelope_is_one_shape_per_time():
    envelope = Series((0.0, 3600.0, 7200.0), (500.0, 1000.0, 1500.0), "power_w")
    trace = PowerTrace(np.array([0.0, 1800.0, 7200.0, 9000.0]), np.array([400.0, 2000.0, 800.0, 1600.0]), 10800.0)
    [red] = [one for one in power_series_of([("a", trace)], envelope, {"a": Look(0)}) if one["draw"] == "area"]
    # from 0.5 h until 2 h at 2 kW, above 0.5 kW until 1 h and 1 kW from there on; from 2.5 h until 3 h
    assert red["x"] == [0.5, 1.0, 1.0, 2.0, 2.0, 1.0, 1.0, 0.5, None, 2.5, 3.0, 3.0, 2.5, None]
    assert red["y"] == [2.0, 2.0, 2.0, 2.0, 1.0, 1.0, 0.5, 0.5, None, 1.6, 1.6, 1.5, 1.5, None]
