"""The report of a campaign on capacities that texts describe: points and charts, worked out by hand."""

from __future__ import annotations

import math

import pytest
from tables_of_tests import save
from varcap_points import carbon, drawn, pointed, run, shown

from batwatt.report.papers import varcap
from batwatt.report.papers.varcap_figures import chart_exhibits, drawn_of
from batwatt.report.papers.varcap_plans import plan_of
from batwatt.results.columns import CLASSES

# names


@pytest.mark.parametrize(
    ("study", "stem"),
    [("fig5-3-mira", "fig5-3"), ("german", "german"), ("german-headroom", "german-headroom"), ("fig5-11", "fig5-11"),
     ("fig5-1", None), ("errors", "errors")],
)  # fmt: skip
def test_studies_have_their_figures(study, stem):
    plan = plan_of(study)
    assert (plan.stem if plan else None) == stem


@pytest.mark.parametrize(
    ("options", "name"),
    [({}, "Base"), ({"mapping": "twomode"}, "TwoMode"), ({"mapping": "base", "termination": "lww"}, "LWW"),
     ({"mapping": "longshort", "termination": "order"}, "LongShort"), ({"termination": "own"}, "Base")],
)  # fmt: skip
def test_the_policy_of_options(options, name):
    assert varcap.policy(options) == name


def test_labels_become_algorithms_without_their_hours(tmp_path):
    rows = [
        run("fig7-4", "TwoMode 24 h", options={"mapping": "twomode", "foresight_h": 24}),
        run("fig7-4", "Base 0 h", options={"mapping": "base", "foresight_h": 0}),
        run("fig6-8-mira", "6 h", options={"termination": "random", "foresight_h": 6}),
        run("german", "foresight 3 h", options={"foresight_h": 3}),
        run("errors", "bias 0.1", options={"mapping": "base", "foresight_h": 6, "foresight_bias": 0.1}),
        run("own", "TwoMode 24 h", options={}),
    ]
    campaign, frame = pointed(tmp_path, rows)
    assert campaign.frame["label"].tolist() == ["TwoMode", "Base", "Random", "foresight 3 h", "Base", "TwoMode 24 h"]
    assert frame["foresight_h"].tolist() == [24.0, 0.0, 6.0, 3.0, 6.0, 0.0]
    assert frame["error"].tolist() == ["exact", "no foresight", "exact", "exact", "bias", "no foresight"]
    assert frame["case"].tolist()[4] == "bias 0.1"


def test_colours_are_those_of_the_algorithms_whoever_is_there(tmp_path):
    found = []
    for n, labels in enumerate((("LFD", "Random"), ("TwoMode", "LWW", "LFD", "Base", "own"))):
        campaign, _ = pointed(tmp_path / str(n), [run("s", label) for label in labels])
        found.append({label: look.colour for label, look in varcap.plan_of(campaign).looks(campaign.labels).items()})
    assert found[0]["LFD"] == found[1]["LFD"] and found[0]["Random"] == found[1]["Base"]
    assert len(set(found[1].values())) == 5
    numbers = varcap.numbers_of(("TwoMode", "TwoMode 24 h", "own"))
    assert numbers == {"TwoMode": 7, "TwoMode 24 h": 15}


def test_names_tell_mixes_days_and_traces(tmp_path):
    rows = [run("fig5-10", "Base", workload="dep-0.12-3"), run("fig5-11", "Base", workload="long-0.8-0"),
            carbon("german", "2024-07-03")]  # fmt: skip
    _, frame = pointed(tmp_path, rows)
    assert frame[["dependencies", "long_fraction", "trace"]].values.tolist() == [
        [12.0, -1.0, "dep-3"], [-1.0, 0.8, "long-0"], [-1.0, -1.0, "tng-0"]
    ]  # fmt: skip
    assert frame[["source", "day", "shape"]].values.tolist()[2] == ["carbon DE", "2024-07-03", "DE 2024-07-03"]
    assert frame["shape"].tolist()[0] == "walk 0.6"


def test_work_is_held_against_the_conventional_scheduler_on_the_fixed_capacity(tmp_path):
    rows = [
        run("german", size=0, useful_core_s=4e5), run("german", "LWW", size=0, useful_core_s=9e5),
        carbon("german", "2024-07-03", "LWW", useful_core_s=5e5),
        # the fixed capacity is that of another study
        carbon("german-headroom", "2024-07-03", "LWW", 0.8, useful_core_s=3e5, cap_saved=0.1),
        carbon("german", "2024-07-03", "LFD", trace=1),
    ]  # fmt: skip
    _, frame = pointed(tmp_path, rows)
    assert frame["work_percent"].tolist()[:4] == pytest.approx([100.0, 225.0, 125.0, 75.0])
    assert math.isnan(frame["work_percent"][4]) and frame["saved_percent"][3] == pytest.approx(10.0)


# charts


def test_means_and_errors_by_hand(tmp_path):
    goodput = [0.6, 0.62, 0.67]
    rows = [run("fig7-5", "Base", size=0, goodput=0.8)]
    rows += [run("fig7-5", "Base", size=0.4, walk=n, goodput=g) for n, g in enumerate(goodput)]
    panel = drawn(tmp_path, rows)["fig7-5"][0]
    [curve] = panel.curves
    # deviations of -3, -1 and 4 points: variance 13, over three walks
    assert curve.points.values.tolist()[1] == pytest.approx([0.4, 63.0, math.sqrt(13.0 / 3.0), 3])
    assert curve.points.values.tolist()[0][:2] == [0.0, pytest.approx(80.0)] and math.isnan(curve.points["error"][0])
    assert curve.key.label == "Base" and panel.kind == "lines"


def test_a_walk_of_a_quarter_is_of_two_series_and_the_fixed_capacity_of_all(tmp_path):
    rows = [run("fig5-2-mira", size=0, goodput=0.8)]
    rows += [run("fig5-2-mira", size=s, step=step, goodput=g)
             for s, step, g in ((0.2, 0.05, 0.7), (0.6, 0.15, 0.5), (0.2, 0.2, 0.6), (0.6, 0.05, 0.65))]  # fmt: skip
    goodput, failures = drawn(tmp_path, rows)["fig5-2"]
    assert shown(goodput) == {
        "a quarter of the range": {0.0: 80.0, 0.2: 70.0, 0.6: 50.0},
        "at most 0.05": {0.0: 80.0, 0.2: 70.0, 0.6: 65.0},
        "at most 0.2": {0.0: 80.0, 0.2: 60.0},
    }
    assert goodput.title == "goodput" and failures.measure is varcap.FAILURES


def test_a_row_of_panels_per_measure_one_per_system(tmp_path):
    rows = [run(f"fig5-3-{name}", size=s, structure=kind) for name in ("mira", "own") for s in (0.2, 0.6)
            for kind in ("walk", "uniform")]  # fmt: skip
    panels = drawn(tmp_path, rows)["fig5-3"]
    assert [panel.title for panel in panels] == ["Mira: goodput", "own: goodput", "Mira: job failure rate",
                                                 "own: job failure rate"]  # fmt: skip
    assert [curve.key.name for curve in panels[0].curves] == ["walk", "uniform"]


def test_the_fixed_capacity_is_a_level_or_comes_first(tmp_path):
    rows = [run("fig5-6-mira", size=0, goodput=0.8)]
    rows += [run("fig5-6-mira", period=p, goodput=g) for p, g in ((900.0, 0.4), (7200.0, 0.6))]
    hours = {"mapping": "base", "foresight_h": 24}
    rows += [run("fig7-4", "Base 0 h", size=s, options={"mapping": "base"}, goodput=0.9 - s) for s in (0, 0.6)]
    rows += [run("fig7-4", "Base 24 h", options=hours)]
    found = drawn(tmp_path, rows)
    panel = found["fig5-6"][0]
    assert (
        panel.level == pytest.approx(80.0)
        and panel.logarithmic
        and shown(panel) == {"walk 0.6": {0.5: 60.0, 4.0: 40.0}}
    )
    assert found["fig7-4"][0].xs == ("fixed", "0", "24") and shown(found["fig7-4"][0])["Base"]["fixed"] == 90.0


def test_short_and_long_jobs_stand_upon_one_another(tmp_path):
    rows = [run("fig5-9", "Base", size=s, goodput_short=0.2, goodput_long=0.5 - s / 2, job_failure_rate_long=s,
                job_failure_rate_short=0.0, job_failure_rate=s / 2) for s in (0, 0.2)]  # fmt: skip
    goodput, failures, _ = drawn(tmp_path, rows)["fig5-9"]
    assert goodput.kind == "stacks" and failures.kind == "lines"
    assert shown(goodput) == {"short jobs": {"0": 20.0, "0.2": 20.0}, "long jobs": {"0": 50.0, "0.2": 40.0}}
    assert shown(failures)["all jobs"] == {0.0: 0.0, 0.2: 10.0} and shown(failures)["long jobs"][0.2] == 20.0


def test_bars_that_stand_alone_are_in_the_middle(tmp_path):
    rows = [run("errors", name, options={"foresight_h": 6, **options}) for name, options in (
        ("none", {}), ("noise 0.1", {"foresight_noise": 0.1}), ("noise 0.2", {"foresight_noise": 0.2}))]  # fmt: skip
    panel = drawn(tmp_path, rows)["errors"][0]
    assert panel.xs == ("none", "noise 0.1", "noise 0.2") and panel.places() == ([0.0, 0.0], 0.62)
    assert [curve.key.label for curve in panel.curves] == [None, None]


@pytest.mark.parametrize(
    ("rows", "stem", "x"),
    [
        ([run("own", size=s) for s in (0.2, 0.4)], "own", (0.2, 0.4)),
        ([run("own", size=s, structure=kind) for s in (0.2, 0.4) for kind in ("walk", "uniform")], "own",
         ("walk 0.2", "uniform 0.2", "walk 0.4", "uniform 0.4")),
        ([run("own", options={"foresight_h": h}, workload=f"w-{h}") for h in (0, 3)], "own", ("0", "3")),
    ],
)  # fmt: skip
def test_other_studies_have_figures_too(tmp_path, rows, stem, x):
    assert drawn(tmp_path, rows)[stem][0].xs == x


# which jobs are terminated


def write_classes(folder, key, terminations):
    prefix = folder / "runs" / key / "run"
    prefix.parent.mkdir(parents=True)
    edges = ("0,1", "1,inf")
    lines = [f"{edge},{jobs},1.0,1,1,{killed},0.0,0.0," for edge, jobs, killed in zip(edges, (30, 10), terminations,
                                                                                     strict=True)]  # fmt: skip
    names = ",".join(column.name for column in CLASSES)
    prefix.with_name("run_classes.csv").write_text("\n".join([names, *lines]) + "\n")


def fair_of(folder, rows):
    campaign, frame = pointed(folder, rows)
    looks = varcap.plan_of(campaign).looks(campaign.labels)
    made = list(chart_exhibits(drawn_of(frame, looks), frame, campaign))
    return next((one for one in made if one.id == "fig6-6"), None)


def test_shares_of_the_classes_of_kept_runs(tmp_path):
    rows = [run("fig6-4-mira", label) for label in ("Random", "LWW")]
    save(tmp_path, rows)
    write_classes(tmp_path, rows[0]["key"], (1, 3))
    write_classes(tmp_path, rows[1]["key"], (0, 0))
    found = fair_of(tmp_path, rows)
    traces = {one["name"]: one["y"] for one in found.shown[0].plot["series"]}
    # jobs, then Random; nothing of LWW was terminated
    assert traces == {"up to 1 h": [75.0, 25.0], "more than 1 h": [25.0, 75.0]}


def test_shares_of_short_and_long_jobs_without_kept_runs(tmp_path):
    rows = [run("fig6-4-mira", walk=n, terminations_short=s, terminations_long=6 - s) for n, s in ((1, 3), (2, 0))]
    traces = {one["name"]: one["y"] for one in fair_of(tmp_path, rows).shown[0].plot["series"]}
    # 50 % and none of them
    assert traces == {"short jobs": [25.0], "long jobs": [75.0]}


# tables
