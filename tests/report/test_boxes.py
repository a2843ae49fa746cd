"""The report of a campaign with goodput: what varies, the numbers of the boxes, the tables, the files, the page."""

from __future__ import annotations

import csv
import math
import re
import shutil

import pandas as pd
import pytest
from tables_of_goodput import NAMES, STRATEGIES, evaluation, run, swept
from tables_of_tests import HOSTILE, check_plots, plots_of, row, save, visible

from batwatt.report.charts import TIMES, boxes, keys_of_labels
from batwatt.report.interactive import chart_plot
from batwatt.report.page import write_report
from batwatt.report.papers import pmbs23
from batwatt.report.papers.pmbs23 import GOODPUT, MAX_STRETCH, points, sweeps
from batwatt.report.pictures_charts import charts_figure
from batwatt.report.table import LATER, read_campaign
from batwatt.results.style import Look, drawing

AWARE, UNAWARE, STRETCH, ASAP, PACKED = NAMES


# names


@pytest.mark.parametrize(
    ("given", "found"),
    [
        ({}, ("uniform", 24.0, 1200.0, 8.0, 24.0, 20000.0)),
        ({"capacity": "walk-20-4-400.5-11"}, ("uniform", 20.0, 400.5, 4.0, 24.0, 20000.0)),
        ({"workload": "log-scale-u-8000-3"}, ("log-scale-u", 24.0, 1200.0, 8.0, 24.0, 8000.0)),
        ({"workload": "3types-8000-3"}, ("3types", 24.0, 1200.0, 8.0, 24.0, 8000.0)),
        ({"workload": "14D_518400", "platform": "152x48"}, ("borg", 24.0, 1200.0, 8.0, 48.0, None)),
        (
            {"workload": "risk-small-1", "platform": "own", "capacity": "week"},
            ("other jobs", None, None, None, None, None),
        ),
    ],
)
def test_names_tell_the_parameters(tmp_path, given, found):
    frame = points(read_campaign(save(tmp_path, [run(AWARE) | given])))
    [line] = frame[["type", "mean", "period_s", "range", "cores", "jobs"]].itertuples(index=False, name=None)
    assert tuple(None if isinstance(value, float) and math.isnan(value) else value for value in line) == found


def test_figures_are_worked_out(tmp_path):
    made = run(AWARE, goodput=0.75, aborted_volume=0.125, mean_aborted_time_s=5400.0)
    [line] = points(read_campaign(save(tmp_path, [made]))).to_dict("records")
    assert (line["goodput_percent"], line["aborted_percent"], line["aborted_time_h"]) == (75.0, 12.5, 1.5)
    assert line["used_fraction"] == 0.875


def test_runs_that_differ_in_the_seed_count_once(tmp_path):
    rows = [run(UNAWARE, goodput=g, seed=n, key=f"k{n}") for n, g in enumerate((0.5, 0.7))]
    [line] = points(read_campaign(save(tmp_path, rows))).to_dict("records")
    assert line["goodput"] == pytest.approx(0.6)


def test_the_strategy_is_an_option_where_there_is_no_column(tmp_path):
    rows = [
        run(AWARE, label="x", strategy=None, options='{"strategy": "target-asap"}'),
        run(AWARE, label="y", strategy=None, options="{}", scheduler="easyBackfill"),
        run(AWARE, label="packed-target-asap D+ 3", strategy="packed-target-asap"),
        run(AWARE, label="first-fit-aware", options="[1]"),
        run(AWARE, label="both", key="1"),
        run(ASAP, label="both", key="2"),
    ]
    campaign = pmbs23.named(read_campaign(save(tmp_path, rows)))
    assert campaign.frame["strategy"].tolist() == ["target-asap", "", "packed-target-asap", *STRATEGIES[:1] * 2,
                                                   "target-asap"]  # fmt: skip
    assert campaign.frame["label"].tolist() == ["x", "y", "PackedTargetASAP D+ 3", AWARE, f"both {AWARE}",
                                                f"both {ASAP}"]  # fmt: skip
    plan = pmbs23.plan_of(campaign)
    # by strategy, as in the paper's figures; what is none of them comes last
    assert plan.drawn == (AWARE, f"both {AWARE}", "x", f"both {ASAP}", "PackedTargetASAP D+ 3", "y")
    assert plan.groups["y"] == "others" and "goodput" in plan.title


# what varies


def varied(name, values, study="s", **given):
    return [run(AWARE, study=study, **{**given, name: value}) for value in values]


def test_a_sweep_is_found_by_values_and_puts_types_side_by_side(tmp_path):
    rows = varied("mean", [28, 20, 24], "one", kind="uniform") + varied("mean", [20, 24], "another", kind="borg")
    [sweep] = swept(tmp_path, rows)
    assert sweep.parameter is pmbs23.MEAN and sweep.name == "mean"
    assert [(panel.title, panel.values) for panel in sweep.panels] == [
        ("borg", [20.0, 24.0]),
        ("uniform", [20.0, 24.0, 28.0]),
    ]


def test_each_parameter_has_its_figure(tmp_path):
    rows = [
        *varied("mean", [20, 24], "a"), *varied("period", [400, 1200], "b"), *varied("range", [4, 8], "c"),
        *varied("cores", [8, 24], "d"), *varied("jobs", [8000, 20000], "e"),
    ]  # fmt: skip
    found = swept(tmp_path, rows)
    assert [sweep.parameter.figure for sweep in found] == ["figure1", "figure2", "figure3", "figure5", "figure6"]
    assert [sweep.panels[0].values for sweep in found] == [[20, 24], [400, 1200], [4, 8], [8, 24], [8000, 20000]]
    # the usual point is in all of the studies, and once in each figure
    assert [len(sweep.panels[0].rows) for sweep in found] == [2] * 5


def test_a_run_of_two_studies_counts_once(tmp_path):
    rows = varied("mean", [20, 24], "a") + varied("mean", [24, 28], "b")
    [sweep] = swept(tmp_path, rows)
    assert sweep.panels[0].rows["value"].tolist() == [20.0, 24.0, 28.0]


def test_machines_may_follow_the_cores(tmp_path):
    scaled = [(72, 24, 8), (24, 8, 24), (12, 4, 48)]
    [sweep] = swept(tmp_path, [run(AWARE, mean=m, range=r, cores=c) for m, r, c in scaled])
    assert sweep.parameter is pmbs23.CORES and [p.title for p in sweep.panels] == ["uniform"]
    assert sweep.panels[0].values == [8.0, 24.0, 48.0]
    # but not if they vary by themselves
    found = swept(tmp_path / "b", [run(AWARE, mean=m, cores=c) for m, c in ((72, 8), (24, 24), (20, 24))])
    assert [sweep.name for sweep in found] == ["mean"] and found[0].panels[0].values == [20.0, 24.0]


def test_a_star_in_one_study_gives_its_rays(tmp_path):
    rows = [run(AWARE, mean=m, period=p) for m, p in ((20, 1200), (24, 1200), (28, 1200), (24, 400))]
    mean, period = swept(tmp_path, rows)
    assert mean.panels[0].rows["value"].tolist() == [20.0, 24.0, 28.0]
    assert set(mean.panels[0].rows["period_s"]) == {1200.0}
    assert period.panels[0].values == [400.0, 1200.0] and set(period.panels[0].rows["mean"]) == {24.0}


def test_a_full_grid_has_a_panel_for_each_of_the_other_values(tmp_path):
    mean, period = swept(tmp_path, [run(AWARE, mean=m, period=p) for m in (20, 24) for p in (400, 1200)])
    titles = [panel.title for panel in mean.panels]
    assert len(titles) == 2 and "φ = 400" in titles[0] and "φ = 1200" in titles[1] and titles[0].startswith("uniform, ")
    assert [len(panel.rows) for panel in (*mean.panels, *period.panels)] == [2] * 4


def test_where_nothing_varies_there_is_a_box_per_type_or_study(tmp_path):
    [sweep] = swept(tmp_path / "a", [run(name, seed_of_walk=n) for name in NAMES for n in range(3)])
    assert sweep.parameter is None and sweep.panels[0].values == [""]
    [sweep] = swept(tmp_path / "b", [run(AWARE, study=k, kind=k) for k in ("uniform", "borg")])
    assert sweep.panels[0].values == ["borg", "uniform"]
    [sweep] = swept(tmp_path / "c", [run(AWARE, study=s, mean=m) for s, m in (("low", 20), ("high", 28))])
    assert sweep.panels[0].values == ["low", "high"]
    # beside a sweep, what is in none of its studies
    found = swept(tmp_path / "d", [*varied("range", [4, 8]), run(AWARE, study="more", mean=20)])
    assert [sweep.name for sweep in found] == ["range", "studies"] and len(found[1].panels[0].rows) == 1


# boxes


def boxed(panel, measure, labels, x_axis="x"):
    looks = {label: Look(n) for n, label in enumerate(labels)}
    return boxes(panel.title, measure, x_axis, panel.rows, panel.values, keys_of_labels(labels, looks))


def stats(panel):
    return pd.concat([curve.points for curve in panel.curves])


def eleven(folder, labels=(ASAP,), last=10.0):
    """11 instances with the maximum stretches 0 to 10 at either value of the range."""
    rows = [
        run(name, range=r, seed_of_walk=n, max_full_speed_slowdown=last if n == 10 else float(n))
        for name in labels for r in (8, 16) for n in range(11)
    ]  # fmt: skip
    return swept(folder, rows)[0].panels[0]


def test_boxes_by_hand(tmp_path):
    panel = boxed(eleven(tmp_path), MAX_STRETCH, NAMES)
    assert panel.xs == (8.0, 16.0) and len(stats(panel)) == 2
    for _, line in stats(panel).iterrows():
        assert (line["low"], line["q1"], line["median"], line["q3"], line["high"]) == (1.0, 2.5, 5.0, 7.5, 9.0)
        assert (line["mean"], line["count"]) == (5.0, 11)
    # the mean, and no other, follows one far value
    far = stats(boxed(eleven(tmp_path, last=120.0), MAX_STRETCH, NAMES)).iloc[0]
    assert (far["mean"], far["q3"], far["high"]) == (15.0, 7.5, 9.0)


def test_boxes_stand_in_the_order_asked_for_without_touching(tmp_path):
    panel = boxed(eleven(tmp_path, (PACKED, AWARE)), MAX_STRETCH, [AWARE, PACKED])
    assert [curve.key.label for curve in panel.curves] == [AWARE, PACKED]
    (left, right), width = panel.places()
    assert left == -right < 0 and right - left > width
    assert (panel.ticks_at, panel.ticks) == ([0, 1], ["8", "16"])


def test_what_has_no_meaning_has_no_box(tmp_path):
    [sweep] = swept(
        tmp_path, [run(AWARE, range=8, max_full_speed_slowdown=None), run(AWARE, range=16, max_full_speed_slowdown=3.0)]
    )
    assert stats(boxed(sweep.panels[0], MAX_STRETCH, [AWARE]))["x"].tolist() == [16.0]
    [sweep] = swept(tmp_path, [run(AWARE, max_full_speed_slowdown=None)])
    assert boxed(sweep.panels[0], MAX_STRETCH, [AWARE]) is None
    assert stats(boxed(sweep.panels[0], GOODPUT, [AWARE]))["mean"].tolist() == [50.0]


def test_a_wide_span_is_logarithmic(tmp_path):
    def panel(high):
        runs = [run(AWARE, range=r, max_full_speed_slowdown=m) for r, m in ((8, 2.0), (16, high))]
        return boxed(swept(tmp_path, runs)[0].panels[0], MAX_STRETCH, [AWARE])

    wide, narrow = panel(2.0 * TIMES + 1.0), panel(2.0 * TIMES)
    for given, kind in ((wide, "log"), (narrow, "linear")):
        assert charts_figure([given], 1).axes[0].get_yscale() == kind
        assert chart_plot(given)["y"].get("log", False) == (kind == "log")
    assert wide.decades == [2.0, 5.0, 10.0, 20.0, 50.0]
    with drawing():
        axes = charts_figure([wide], 1).axes[0]
        # no formulas, and the axis is not longer for its marks
        assert [text.get_text() for text in axes.get_yticklabels()] == ["2", "5", "10", "20", "50"]
        assert axes.get_yticks(minor=True).tolist() == [] and axes.get_ylim()[1] < 100.0


def test_the_plot_has_the_numbers_of_the_picture(tmp_path):
    box, star, *_ = chart_plot(boxed(eleven(tmp_path, (AWARE, ASAP)), MAX_STRETCH, [AWARE, ASAP]))["series"]
    assert box["quantiles"] == [[1.0, 1.0], [2.5, 2.5], [5.0, 5.0], [7.5, 7.5], [9.0, 9.0]]
    assert star["y"] == [5.0, 5.0] and box["x"] == star["x"] == [0, 1] and box["label"] == star["label"] == AWARE
    assert star["tips"][1] == ("16\nmean 5.0, median 5.0\n25 to 75 %: 2.5 to 7.5\n10 to 90 %: 1.0 to 9.0\n11 instances")


@pytest.mark.parametrize("labels", [list(NAMES), [PACKED], [f"{PACKED} with option {n}" for n in range(12)]])
@pytest.mark.parametrize(("panels", "x_axis"), [pytest.param(1, "", marks=pytest.mark.deep), (5, ""), (5, "range")])
def test_nothing_sticks_out_of_a_picture(tmp_path, labels, panels, x_axis):
    ranges = (8, 16) if x_axis else (8,)
    rows = [run(AWARE, label=label, range=r, seed_of_walk=n) for label in labels for n in range(3) for r in ranges]
    panel = boxed(swept(tmp_path, rows)[0].panels[0], GOODPUT, labels, x_axis)
    with drawing():
        figure = charts_figure([panel] * panels, min(2, panels))
        figure.draw_without_rendering()
        inside = figure.bbox
        for box in (figure.legends[0].get_window_extent(), *(axes.get_tightbbox() for axes in figure.axes[:panels])):
            assert inside.x0 <= box.x0 < box.x1 <= inside.x1 and inside.y0 <= box.y0 < box.y1 <= inside.y1
        top = max(axes.title.get_window_extent().y1 for axes in figure.axes[:panels])
        assert figure.legends[0].get_window_extent().y0 >= top


# files


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    folder = save(tmp_path_factory.mktemp("goodput") / "pmbs23", evaluation())
    return folder, write_report(folder)


def test_every_file_is_there(made):
    folder, written = made
    names = {path.name for path in written}
    wanted = {f"figure{n}.{kind}" for n in (1, 2, 3, 4, 5, 6) for kind in ("png", "svg", "pdf")}
    tables = ("means-mean", "means-period", "means-range", "means-metrics", "means-cores", "means-jobs", "claims")
    wanted |= {f"{name}.{kind}" for name in tables for kind in ("csv", "md")}
    wanted |= {"index.html", "means.csv", "claims-numbers.csv", "summary.csv"}
    assert names == wanted == {path.name for path in (folder / "report").iterdir()}
    magic = {".png": b"\x89PNG", ".svg": b"<?xml", ".html": b"<!DOCTYPE html>", ".pdf": b"%PDF"}
    for path in written:
        assert path.read_bytes().startswith(magic.get(path.suffix, b"")) and path.stat().st_size > 100


def test_the_page(made):
    page = made[1][0].read_text()
    html = visible(page)
    assert "the evaluation of the riskaware paper" in html and "Power" not in html.replace("Powercap", "")
    links = re.findall(r'<a href="([^#"]+)"', html)
    assert len(links) > 30 and all((made[0] / "report" / link).is_file() for link in links)
    plots = plots_of(page)
    assert [name for name in plots if name.startswith("plot-figure1")] == ["plot-figure1-0", "plot-figure1-1"]
    assert sum(name.startswith("plot-figure4") for name in plots) == 4
    check_plots(plots)
    assert [one["label"] for one in plots["plot-figure3-0"]["series"][::2]] == list(NAMES)
    # what a claim says is no algorithm
    assert 'data-label="TargetASAP"' in html and 'data-label="TargetASAP and' not in html
    assert "<td>boom</td>" in html and "14D_518400 walk-24-8-1200-9" in html


def test_files_agree_with_the_page(made):
    with (made[0] / "report" / "means-range.csv").open() as stream:
        lines = {line["label"]: line for line in csv.DictReader(stream)}
    data = plots_of(made[1][0].read_text())["plot-figure3-1"]["series"]
    drawn = {one["label"]: one["y"] for one in data if one["draw"] == "dots"}
    for label, (low, high) in drawn.items():
        assert float(lines[label]["goodput_percent uniform 4"]) == pytest.approx(low, abs=1e-4)
        assert float(lines[label]["goodput_percent uniform 8"]) == pytest.approx(high, abs=1e-4)


def test_same_results_same_bytes(tmp_path):
    folder = save(tmp_path / "pmbs23", [row for row in evaluation() if row["study"] == "mavg-borg"])
    first = {path: path.read_bytes() for path in write_report(folder)}
    shutil.rmtree(folder / "report")
    assert {path: path.read_bytes() for path in write_report(folder)} == first


@pytest.mark.usefixtures("undrawn")
def test_a_campaign_without_a_sweep_has_one_figure(tmp_path):
    folder = save(tmp_path / "r", [run(name, seed_of_walk=n) for name in NAMES for n in range(3)])
    names = {path.name for path in write_report(folder)}
    assert {name for name in names if name.endswith(".png")} == {"studies.png"}
    assert {"means-studies.csv", "means.csv"} <= names
    plots = plots_of((folder / "report" / "index.html").read_text())
    assert len(plots) == 4 + 3
    assert [one["name"] for one in plots["plot-studies-0"]["series"] if one["draw"] == "boxes"] == list(NAMES)
    assert plots["plot-studies-0"]["rows"]


@pytest.mark.usefixtures("undrawn")
def test_hostile_labels_and_runs_without_goodput(tmp_path):
    rows = [run(AWARE, label=label, range=r) for label in (HOSTILE, "<b>b") for r in (4, 8)]
    folder = save(tmp_path / "r", [*rows, row("plain", study="<u>1")])
    page = write_report(folder)[0].read_text()
    html = visible(page)
    assert "<img src=x" not in html and "<u>" not in html and "<b>b" not in html and "{{ 7 * 7 }}" in html
    assert {one["label"] for one in plots_of(page)["plot-figure3-0"]["series"]} == {HOSTILE, "<b>b"}
    assert "1 runs: in no figure" in html


def test_tables_without_the_later_columns_are_read(tmp_path):
    folder = save(tmp_path / "r", [run(name, range=r) for name in NAMES for r in (4, 8)])
    frame = pd.read_parquet(folder / "table.parquet").drop(columns=list(LATER))
    frame.to_parquet(folder / "table.parquet")
    campaign = pmbs23.named(read_campaign(folder))
    assert set(campaign.frame["capacity"]) == {""}
    # the options tell the strategy, nothing tells the capacity
    assert campaign.labels == NAMES and campaign.frame["strategy"].tolist()[::2] == list(STRATEGIES)
    assert [sweep.name for sweep in sweeps(points(campaign))] == ["studies"]


@pytest.mark.usefixtures("undrawn")
def test_a_campaign_without_goodput_has_no_such_report(tmp_path):
    names = {path.name for path in write_report(save(tmp_path / "r", [row("a"), row("b")]))}
    assert "table2.csv" in names and "means.csv" not in names
