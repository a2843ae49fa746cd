"""The report of a campaign with checkpoints: points, charts, claims and break-even, worked out by hand."""

from __future__ import annotations

import json
import math

import pytest
from tables_of_tests import save
from varcap_points import HOSTILE, run, shown

from batwatt.report.page import write_report
from batwatt.report.papers import checkpoint, checkpoint_charts
from batwatt.report.papers.checkpoint_charts import PLANS, drawn_of
from batwatt.report.papers.checkpoint_claims import CLAIMS, break_even, break_even_grid, claims
from batwatt.report.papers.varcap_tables import crossing
from batwatt.report.pictures_charts import charts_figure
from batwatt.report.table import read_campaign


def planned(study, label="DP", **given):
    """A run of the scheduler; what `options` does not say has its usual value."""
    return run(study, label, scheduler="checkpoint", **({"options": {}, "workload": "rigid-0"} | given))


def killed(study, label="LWW", **given):
    return run(study, label, **({"workload": "rigid-0"} | given))


def cost(value, label="DP", study="costs", **given):
    options = {"checkpoint_s": value, "recovery_s": value}
    return planned(study, f"{label} C={value}", options=options | given.pop("more", {}), **given)


def pointed(folder, rows):
    declared = read_campaign(save(folder, rows))
    campaign = checkpoint.named(declared)
    return campaign, checkpoint.points(campaign, declared)


def drawn(folder, rows):
    campaign, frame = pointed(folder, rows)
    return {plan.stem: panels for plan, panels in drawn_of(frame, checkpoint.plan_of(campaign).looks(campaign.labels))}


def of_claim(folder, rows, name):
    _, frame = pointed(folder, rows)
    found = claims(frame)
    return found[found["claim"] == name].to_dict("records")


def test_labels_lose_values_and_yields_of_nothing(tmp_path):
    rows = [
        cost(60),
        cost(60, "subset sum", more={"method": "subset-sum"}),
        cost(60, "DP fair 0.5", more={"min_yield": 0.5}),
        planned("endless", "DP fair 0", options={"min_yield": 0}),
        planned("endless", "DP fair 1", options={"min_yield": 1}),
        planned("figure1", "min_yield 0.2", options={"min_yield": 0.2}),
        killed("costs"),
    ]
    campaign, frame = pointed(tmp_path, rows)
    names = ["DP", "subset sum", "DP fair 0.5", "DP", "DP fair 1", "min_yield 0.2 fair 0.2", "LWW"]
    assert campaign.frame["label"].tolist() == names
    assert frame["checkpoint_s"].tolist()[:4] == [60.0] * 4 and math.isnan(frame["checkpoint_s"][6])
    assert frame["asked_yield"].tolist()[:6] == [0.0, 0.0, 0.5, 0.0, 1.0, 0.2]
    assert frame["case"].tolist()[0] == "DP C=60"


def test_volumes_and_yields_in_percent(tmp_path):
    [row] = pointed(tmp_path, [planned("costs", checkpoint_volume=0.03, recovery_volume=0.01, min_yield=0.25,
                                       mean_yield=0.5, aborted_volume=0.125)])[1].to_dict("records")  # fmt: skip
    measures = ("overhead_percent", "min_yield_percent", "mean_yield_percent", "aborted_percent")
    assert [row[name] for name in measures] == pytest.approx([4.0, 25.0, 50.0, 12.5])


def test_who_has_no_checkpoints_is_a_line_across(tmp_path):
    rows = [cost(0, goodput=0.9), cost(600, goodput=0.6), cost(600, walk=2, goodput=0.8), killed("costs", goodput=0.75)]
    goodput, _, _ = drawn(tmp_path, rows)["costs"]
    assert shown(goodput) == {"DP": {0.0: 90.0, 600.0: 70.0}, "LWW": {0.0: 75.0, 600.0: 75.0}}


def test_traces_and_periods_have_panels_of_their_own(tmp_path):
    rows = [cost(value, study="single", workload=f"jobs-{trace}", period=period, goodput=value / 1000 + n / 10)
            for n, (trace, period) in enumerate((("a", 900.0), ("a", 3600.0), ("b", 900.0)))
            for value in (0, 60)]  # fmt: skip
    panels = drawn(tmp_path, rows)["single"]
    assert [panel.title for panel in panels] == [f"{name}: goodput" for name in
                                                 ("jobs-a, 900 s", "jobs-a, 3600 s", "jobs-b, 900 s")]  # fmt: skip
    assert shown(panels[1]) == {"DP": {0.0: 10.0, 60.0: 16.0}}


def test_one_series_by_what_is_asked_for(tmp_path):
    rows = [planned("endless", f"DP fair {asked}", options={"min_yield": asked}, min_yield=least)
            for asked, least in ((0, 0.0), (0.5, 0.25))]  # fmt: skip
    panel = drawn(tmp_path, rows)["endless"][1]
    assert shown(panel) == {"DP": {0.0: 0.0, 0.5: 25.0}}


def test_a_study_of_ones_own_has_a_figure(tmp_path):
    panels = drawn(tmp_path, [planned("mine", size=size, goodput=size) for size in (0.2, 0.4)])["mine"]
    assert shown(panels[0]) == {"DP": {0.2: 20.0, 0.4: 40.0}}


def test_values_that_are_close_are_not_written_on_each_other(tmp_path):
    close, far = (drawn(tmp_path / name, [cost(value) for value in values])["costs"][:1]
                  for name, values in (("close", (0, 10, 1200)), ("far", (0, 600, 1200))))  # fmt: skip
    texts = [
        [text.get_text() for text in charts_figure(panels, 1).axes[0].get_xticklabels()] for panels in (close, far)
    ]
    assert "10" not in texts[0] and texts[1] == ["0", "600", "1200"]


# claims


def test_dp_is_held_against_the_subset_sum_at_the_same_cost(tmp_path):
    rows = [cost(value, label, walk=walk, goodput=goodput, more=more) for value, label, walk, goodput, more in (
        (0, "DP", 1, 0.9, {}), (60, "DP", 1, 0.8, {}), (60, "DP", 2, 0.8, {}),
        (60, "subset sum", 1, 0.75, {"method": "subset-sum"}), (60, "subset sum", 2, 0.73, {"method": "subset-sum"}),
    )]  # fmt: skip
    [found] = of_claim(tmp_path, rows, "dp-subset")
    # 5 and 7 points; with C = 0 there is no pair
    assert found["number"] == pytest.approx(6.0) and found["standard_error"] == pytest.approx(1.0)
    assert (found["instances"], found["unit"], found["verdict"]) == (2, "% points", "open")


def test_killing_is_held_against_every_cost_on_the_same_walk(tmp_path):
    rows = [cost(value, walk=walk, goodput=goodput) for value, walk, goodput in
            ((0, 1, 0.9), (0, 2, 0.9), (600, 1, 0.7), (600, 2, 0.7))]  # fmt: skip
    rows += [killed("costs", walk=walk, goodput=0.8) for walk in (1, 2, 3)]
    found = of_claim(tmp_path, rows, "dp-lww")
    assert [row["point"] for row in found] == ["C = 0 s", "C = 600 s"]
    assert [row["number"] for row in found] == pytest.approx([10.0, -10.0])
    assert [row["verdict"] for row in found] == ["yes", "no"]


def test_foresight_is_no_reason_not_to_compare(tmp_path):
    rows = [planned("ranges", goodput=0.9), killed("ranges", "foresight 6 h", goodput=0.8, options={"foresight_h": 6})]
    [found] = of_claim(tmp_path, rows, "dp-foresight")
    assert found["number"] == pytest.approx(10.0)


def test_starvation_and_its_price(tmp_path):
    rows = [planned("endless", f"DP fair {asked}", options={"min_yield": asked}, min_yield=least, goodput=goodput)
            for asked, least, goodput in ((0, 0.0, 0.99), (0.2, 0.25, 0.95))]  # fmt: skip
    [least] = of_claim(tmp_path / "a", rows, "starvation")
    [price] = of_claim(tmp_path / "b", rows, "price")
    assert least["number"] == pytest.approx(25.0) and price["number"] == pytest.approx(4.0)


def test_claims_have_names_and_studies_of_their_own():
    assert len({claim.name for claim in CLAIMS}) == len(CLAIMS)
    assert {stem for claim in CLAIMS for stem in claim.stems} <= {plan.stem for plan in PLANS}


# break-even


@pytest.mark.parametrize(
    ("gains", "expected"),
    [
        # 4 at 0 and -4 at 100
        ({0: 4.0, 100: -4.0}, (50.0, False)),
        # in whatever order; 1 at 60 and -3 at 100 cross a quarter of the way
        ({100: -3.0, 0: 2.0, 60: 1.0}, (70.0, False)),
        ({0: 4.0, 100: 1.0}, (100.0, True)),
        # the first one counts
        ({0: 2.0, 100: -2.0, 200: 5.0}, (50.0, False)),
    ],
)
def test_crossing(gains, expected):
    assert crossing(list(gains), list(gains.values())) == pytest.approx(expected)


@pytest.mark.parametrize("gains", [{0: 0.0, 100: -1.0}, {0: -1.0, 100: 1.0}, {}])
def test_no_crossing(gains):
    cost_s, more = crossing(list(gains), list(gains.values()))
    assert math.isnan(cost_s) and not more


def test_break_even_against_the_best_that_kills(tmp_path):
    rows = [cost(value, study="single", workload="jobs-a", period=900.0, walk=walk, goodput=goodput)
            for value, walk, goodput in ((0, 1, 0.9), (100, 1, 0.7), (0, 2, 0.9), (100, 2, 0.5))]  # fmt: skip
    rows += [killed("single", label, workload="jobs-a", period=900.0, walk=walk, goodput=goodput)
             for label, goodput in (("LWW", 0.8), ("LFD", 0.6)) for walk in (1, 2)]  # fmt: skip
    _, frame = pointed(tmp_path, rows)
    [found] = break_even(frame).to_dict("records")
    # +10 at 0; -10 and -30 at 100: half and a quarter of it, of the mean -20 a third
    assert (found["best"], found["goodput_percent"], found["walks"]) == ("LWW", pytest.approx(80.0), 2)
    numbers = [found[name] for name in ("gain", "checkpoint_s", "least", "most")]
    assert numbers == pytest.approx([10.0, 100 / 3, 25.0, 50.0]) and not found["open"]
    [grid] = break_even_grid(frame)
    assert grid.cells() == [["jobs-a", "900", "LWW", "80.0", "+10.0", "33", "3.7", "25 to 50"]]


def test_no_break_even_without_both(tmp_path):
    _, frame = pointed(tmp_path, [cost(0, study="single"), planned("ranges")])
    assert break_even(frame).empty and break_even_grid(frame) == []


# the whole


@pytest.mark.usefixtures("undrawn")
def test_the_report(tmp_path):
    rows = [cost(value, goodput=1 - value / 1000) for value in (0, 60)]
    rows += [killed("costs"), killed("mine", HOSTILE), planned("ranges", status="failed", error="<b>no</b>")]
    folder = save(tmp_path, rows)
    written = write_report(folder)
    names = {path.name for path in written}
    assert {"index.html", "claims.md", "costs.png", "costs.svg", "means.csv", "summary.csv"} <= names
    page = written[0].read_text()
    assert "checkpoints before the capacity changes" in page and HOSTILE not in page and "<b>no</b>" not in page
    before = {path: path.read_bytes() for path in written}
    assert {path: path.read_bytes() for path in write_report(folder)} == before


def test_campaigns_without_the_scheduler_have_the_other_report(tmp_path):
    declared = read_campaign(save(tmp_path, [run("fig5-3"), planned("costs", status="failed")]))
    assert checkpoint_charts.report(declared) is None


def test_options_that_are_no_object_have_usual_values(tmp_path):
    rows = [planned("costs") | {"options": json.dumps([1])}]
    assert pointed(tmp_path, rows)[1]["checkpoint_s"].tolist() == [60.0]
