"""The report of a campaign on capacities that texts describe: points, charts, tables and claims, worked out by hand."""

from __future__ import annotations

import json
import math
import re
import shutil

import plotly.graph_objects as go
import pytest
from tables_of_tests import row, save

from batwatt.report import varcap
from batwatt.report.page import write_report
from batwatt.report.table import read_campaign
from batwatt.report.varcap_charts import charts_of
from batwatt.report.varcap_claims import CLAIMS, claims, claims_tables, sure
from batwatt.report.varcap_exhibits import chart_exhibits, drawn_of
from batwatt.report.varcap_plans import PLANS, hours_apart, plan_of, plans_of
from batwatt.report.varcap_tables import acceptable, tables
from batwatt.results.columns import CLASSES

HOSTILE = "</script><img src=x onerror=alert(1)> %{y} {{ 7 * 7 }}"
OPTIONS = {"Random": {"termination": "random"}, "LWW": {"termination": "lww"}, "LFD": {"termination": "lfd"},
           "Base": {"scheduler": "base"}, "LongShort": {"scheduler": "longshort"},
           "TwoMode": {"scheduler": "twomode"}}  # fmt: skip


def run(
    study, label="Random", *, size=0.6, walk=1, trace=0, structure="walk", step=None, period=3600.0, options=None,
    workload=None, **given,
):  # fmt: skip
    """A run on a walk of that range (or another structure); 0 is the fixed capacity."""
    if size == 0:
        structure = "constant"
    step = (size / 4 if step is None else step) if structure == "walk" else None
    name = {"constant": "constant-0.7", "walk": f"walk-{size}-{step}-{period:g}-s{walk}"}.get(
        structure, f"{structure}-{size}-{period:g}-s{walk}"
    )
    fixed = structure == "constant"
    found = row(label, workload or f"tng-{trace}", study=study, platform="25x32", envelope=None, scheduler="varcap",
                capacity=name, options=json.dumps(OPTIONS.get(label, {}) if options is None else options))  # fmt: skip
    found |= {
        "cap_structure": structure, "cap_range": float(size) if structure != "carbon" else None, "cap_step": step,
        "cap_period_s": None if fixed else period, "cap_mean": 0.7, "cap_seed": None if fixed else walk,
        "goodput": 0.5, "job_failure_rate": 0.1, "mean_wait_s": 120.0, "capacity_core_s": 1e6, "useful_core_s": 5e5,
    }  # fmt: skip
    found |= given
    found["key"] = f"{study} {label} {found['workload']} {found['capacity']}".encode().hex()
    return found


def carbon(study, day, label="Random", headroom=1.0, **given):
    told = {"capacity": f"carbon-DE-{day}" + (f"-{headroom}" if "headroom" in study else ""), "cap_headroom": headroom}
    return run(study, label, size=None, structure="carbon", walk=None, **(told | given))


def pointed(folder, rows):
    declared = read_campaign(save(folder, rows))
    campaign = varcap.named(declared, hours_apart(declared.studies))
    return campaign, varcap.points(campaign, declared)


def drawn(folder, rows):
    """Study's stem -> its panels."""
    campaign, frame = pointed(folder, rows)
    looks = varcap.outline(campaign).looks(campaign.labels)
    return {plan.stem: charts_of(plan, studies, frame, looks) for plan, studies in plans_of(frame)}


def shown(panel):
    """Series -> value of x -> mean."""
    return {curve.key.name: dict(zip(curve.points["x"], curve.points["mean"].round(6), strict=True))
            for curve in panel.curves}  # fmt: skip


# names


@pytest.mark.parametrize(
    ("study", "stem"),
    [("fig5-3-mira", "fig5-3"), ("german", "german"), ("german-headroom", "german-headroom"), ("fig5-11", "fig5-11"),
     ("fig5-1", None), ("errors", "errors")],
)  # fmt: skip
def test_studies_have_their_figures(study, stem):
    plan = plan_of(study)
    assert (plan.stem if plan else None) == stem


def test_labels_become_algorithms_without_their_hours(tmp_path):
    rows = [
        run("fig7-4", "TwoMode 24 h", options={"scheduler": "twomode", "foresight_h": 24}),
        run("fig7-4", "Base 0 h", options={"scheduler": "base", "foresight_h": 0}),
        run("fig6-8-mira", "6 h", options={"termination": "random", "foresight_h": 6}),
        run("german", "foresight 3 h", options={"foresight_h": 3}),
        run("errors", "bias 0.1", options={"scheduler": "base", "foresight_h": 6, "foresight_bias": 0.1}),
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
        found.append({label: look.colour for label, look in varcap.outline(campaign).looks(campaign.labels).items()})
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
    hours = {"scheduler": "base", "foresight_h": 24}
    rows += [run("fig7-4", "Base 0 h", size=s, options={"scheduler": "base"}, goodput=0.9 - s) for s in (0, 0.6)]
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
    looks = varcap.outline(campaign).looks(campaign.labels)
    made = list(chart_exhibits(drawn_of(frame, looks), frame, campaign))
    return next((one for one in made if one.id == "fig6-6"), None)


def test_shares_of_the_classes_of_kept_runs(tmp_path):
    rows = [run("fig6-4-mira", label) for label in ("Random", "LWW")]
    save(tmp_path, rows)
    write_classes(tmp_path, rows[0]["key"], (1, 3))
    write_classes(tmp_path, rows[1]["key"], (0, 0))
    found = fair_of(tmp_path, rows)
    traces = {trace["name"]: trace["y"] for trace in found.shown[0].plot["data"]}
    # jobs, then Random; nothing of LWW was terminated
    assert traces == {"up to 1 h": [75.0, 25.0], "more than 1 h": [25.0, 75.0]}


def test_shares_of_short_and_long_jobs_without_kept_runs(tmp_path):
    rows = [run("fig6-4-mira", walk=n, terminations_short=s, terminations_long=6 - s) for n, s in ((1, 3), (2, 0))]
    traces = {trace["name"]: trace["y"] for trace in fair_of(tmp_path, rows).shown[0].plot["data"]}
    # 50 % and none of them
    assert traces == {"short jobs": [25.0], "long jobs": [75.0]}


# tables


def test_table_7_3_by_interpolation(tmp_path):
    rows = [run("fig7-5", label, size=s, goodput=g) for label, values in (
        ("Base", {0: 0.8, 0.2: 0.72, 0.4: 0.6}), ("LongShort", {0: 0.7, 0.2: 0.7, 0.4: 0.7}),
    ) for s, g in values.items()]  # fmt: skip
    _, frame = pointed(tmp_path, rows)
    found = acceptable(frame).set_index(["label", "limit"])
    # 0.2 costs 10 % and 0.4 costs 25 %: 5 % at 0.1, 20 % at 0.2 + 0.2 x 10 / 15, of 0.7
    assert found.loc[("Base", 5.0)].tolist() == [pytest.approx(100 * 0.1 / 0.7), False]
    assert found.loc[("Base", 20.0)].tolist() == [pytest.approx(100 * (0.2 + 2 / 15) / 0.7), False]
    # 12.5 % less at once, and no more than that as far as is known
    assert found.loc[("LongShort", 12.0)].tolist() == [0.0, False]
    assert found.loc[("LongShort", 15.0)].tolist() == [pytest.approx(100 * 0.4 / 0.7), True]
    [grid] = tables(frame, ["Base", "LongShort"])
    assert grid.cells()[0] == ["5 %", "14 %", "0 %", "0 %", "1 %"] and grid.cells()[4][2] == "≥ 57 %"


def test_the_german_tables(tmp_path):
    rows = [run("german", size=0, useful_core_s=4e5)]
    rows += [carbon("german", f"2024-07-0{n}", label, useful_core_s=work, cap_saved=0.1 * n, cap_gained=0.05)
             for label, works in (("Random", (3e5, 4e5)), ("LWW", (5e5, 4e5)))
             for n, work in enumerate(works, 1)]  # fmt: skip
    rows += [carbon("german-headroom", f"2024-07-0{n}", "LWW", high, useful_core_s=1e5 * (n + high), cap_saved=1 - high)
             for n in (1, 2) for high in (0.8, 1.0)]  # fmt: skip
    _, frame = pointed(tmp_path, rows)
    days, headroom = tables(frame, ["Random", "LWW"])
    assert days.frame[["label", "work_percent", "worst", "best", "above"]].values.tolist() == [
        ["Random", pytest.approx(87.5), pytest.approx(75.0), pytest.approx(100.0), 1],
        ["LWW", pytest.approx(112.5), pytest.approx(100.0), pytest.approx(125.0), 2],
    ]
    assert "5.0 % larger" in days.notes[1] and "15.0 % less" in days.notes[1]
    assert [line[:3] for line in headroom.cells()] == [["1", "62.5", "0.0"], ["0.8", "57.5", "20.0"]]


def test_the_table_of_real_jobs(tmp_path):
    rows = [run("mustang", label, size=0, goodput=0.8) for label in ("Random", "LWW")]
    rows += [run("mustang", "LWW", size=None, structure="carbon", capacity="carbon-DE", goodput=0.7, terminations=5)]
    _, frame = pointed(tmp_path, rows)
    [grid] = tables(frame, ["Random", "LWW"])
    assert grid.groups() == [("", 1), ("fixed", 5), ("carbon", 5)]
    assert grid.cells()[1][6] == "70.0" and grid.cells()[1][10] == "5" and grid.cells()[0][6] == "–"


# claims


def verdicts(folder, rows, name):
    _, frame = pointed(folder, rows)
    found = claims(frame)
    return found[found["claim"] == name]


def test_a_claim_is_of_pairs_on_the_same_jobs_and_walk(tmp_path):
    rows = [run("fig6-3-mira", label, step=0.05, walk=n, goodput=g) for label, values in (
        ("LWW", (0.66, 0.55, 0.9)), ("Random", (0.6, 0.5))) for n, g in enumerate(values)]  # fmt: skip
    [found] = verdicts(tmp_path, rows, "lww-goodput").to_dict("records")
    # 10 % each; the third walk has no pair
    assert found["number"] == pytest.approx(10.0) and found["standard_error"] == pytest.approx(0.0, abs=1e-9)
    assert (found["instances"], found["unit"], found["verdict"]) == (2, "% more", "yes")


def test_verdicts_follow_students_t(tmp_path):
    assert (sure(3), sure(1), sure(100)) == (4.30, 2.0, 2.0)

    def of(name, *lfd):
        rows = [run("fig6-3-mira", "Random", walk=n, job_failure_rate=0.4) for n in range(len(lfd))]
        rows += [run("fig6-3-mira", "LFD", walk=n, job_failure_rate=r) for n, r in enumerate(lfd)]
        [found] = verdicts(tmp_path / name, rows, "lfd-failures").to_dict("records")
        return found["number"], found["verdict"]

    assert of("a", 0.1, 0.1, 0.1) == (pytest.approx(4.0), "yes")
    assert of("b", 0.4, 0.4, 0.4) == (pytest.approx(1.0), "no")
    # 4, 2 and 8 times: an error of 1.76, of which there would have to be 4.3
    assert of("c", 0.1, 0.2, 0.05) == (pytest.approx(14 / 3), "open")
    # one walk tells nothing; one without failures is no quotient
    assert of("d", 0.1) == (pytest.approx(4.0), "open") and of("e", 0.0, 0.1, 0.1) == (pytest.approx(4.0), "yes")


def test_what_a_range_costs_is_held_against_the_fixed_capacity_of_the_same_jobs(tmp_path):
    rows = [run("fig5-3-mira", size=0, trace=t, goodput=0.8 - t / 5) for t in (0, 1)]
    rows += [run("fig5-3-mira", size=s, trace=t, walk=n, goodput=(0.8 - t / 5) * (1 - s)) for t in (0, 1)
             for n in (1, 2) for s in (0.2, 0.6)]  # fmt: skip
    found = verdicts(tmp_path, rows, "range")
    assert found["number"].tolist() == pytest.approx([20.0, 60.0]) and set(found["instances"]) == {4}
    assert found["point"].tolist() == ["range 0.2", "range 0.6"] and set(found["verdict"]) == {"yes"}


def test_foresight_removes_failures_of_the_same_walk_and_nothing_is_said_of_the_fixed_capacity(tmp_path):
    rows = [run("fig6-8-azure", f"{h} h", size=s, walk=n, job_failure_rate=rate * (n + 1) if s else 0.0,
                options={"termination": "random", "foresight_h": h})
            for h, rate in ((0, 0.1), (3, 0.02), (6, 0.001)) for s in (0, 0.6) for n in range(3)]  # fmt: skip
    [three] = verdicts(tmp_path, rows, "foresight-3").to_dict("records")
    [six] = verdicts(tmp_path, rows, "foresight-6").to_dict("records")
    assert (three["number"], six["number"]) == pytest.approx((80.0, 99.0))
    assert (three["verdict"], six["verdict"], six["unit"]) == ("yes", "yes", "% less")


def test_dependencies_are_compared_on_the_same_trace(tmp_path):
    rows = [run("fig5-10", "Base", workload=f"dep-{d}-{t}", mean_wait_s=60.0 * (t + 1) * (1.1 if d else 1.0))
            for d in (0.0, 0.12) for t in range(3)]  # fmt: skip
    [found] = verdicts(tmp_path, rows, "dependencies-wait").to_dict("records")
    assert found["number"] == pytest.approx(10.0) and found["instances"] == 3 and found["verdict"] == "yes"


def test_every_claim_is_of_studies_that_have_a_figure():
    stems = {plan.stem for plan in PLANS}
    assert {stem for claim in CLAIMS for stem in claim.stems} <= stems
    assert len({claim.name for claim in CLAIMS}) == len(CLAIMS)
    assert all(set(claim.first) | set(claim.second) <= set(varcap.DIMENSIONS) for claim in CLAIMS)


# the whole report


def whole():
    """Some of every kind of figure."""
    rows = [run(study, label, size=s, walk=n, goodput=0.8 - s / 2 + n / 100, goodput_short=0.2, goodput_long=0.4,
                terminations_long=2)
            for study, label in (("fig5-2-mira", "Random"), ("fig5-9", "Base"), ("fig6-4-mira", "Random"),
                                 ("fig6-4-mira", "LWW"), ("fig7-5", "Base"))
            for s in (0, 0.2, 0.6) for n in ((1, 2) if s else (1,))]  # fmt: skip
    rows += [run("fig5-6-borg", size=0), *(run("fig5-6-borg", period=p) for p in (900.0, 3600.0))]
    rows += [run("german", size=0), carbon("german", "2024-07-03", cap_saved=0.1, cap_gained=0.1)]
    rows += [carbon("german-headroom", "2024-07-03", "LWW", h, cap_saved=0.1) for h in (0.8, 1.0)]
    rows += [run("own <b>", HOSTILE, size=s) for s in (0.2, 0.4)]
    return [*rows, row("x", study="fig5-9", status="failed", error="boom", scheduler="varcap", options="{}",
                       capacity_core_s=None, cap_structure="walk")]  # fmt: skip


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    folder = save(tmp_path_factory.mktemp("results") / "varcap", whole())
    return folder, write_report(folder)


def test_every_file_of_the_report_is_there(made):
    folder, written = made
    names = {path.name for path in written}
    figures = ("fig5-2", "fig5-6", "fig5-9", "fig6-4", "fig6-6", "fig7-5", "german", "german-headroom", "study-1-own-b")
    assert {f"{name}.png" for name in figures} <= names
    assert {"index.html", "claims.md", "claims-numbers.csv", "means.csv", "summary.csv", "table7-3.csv",
            "table-german.md", "table-headroom.csv"} <= names  # fmt: skip
    assert names == {path.name for path in (folder / "report").iterdir()}


def test_the_page_of_charts(made):
    page = made[1][0].read_text()
    html = re.sub(r"<(script|style)\b.*?</\1>", "", page, flags=re.DOTALL)
    assert "<img src=x" not in html and "<b>" not in html and "boom" in html
    ids = re.findall(r'\bid="([^"]+)"', html)
    assert len(ids) == len(set(ids))
    links = re.findall(r'<a href="([^#"]+)"', html)
    assert len(links) > 30 and all((made[0] / "report" / link).is_file() for link in links)
    plots = json.loads(re.search(r'<script type="application/json" id="plots">(.*?)</script>', page, re.DOTALL)[1])
    for plot in plots.values():
        go.Figure(plot)
    # the structure is no algorithm, so it does not follow their choice
    assert [trace.get("meta") for trace in plots["plot-fig5-2-0"]["data"]] == [None]
    assert [trace["meta"]["label"] for trace in plots["plot-fig6-4-0"]["data"]] == ["Random", "LWW"]
    assert plots["plot-fig5-6-0"]["data"][-1]["name"] == "fixed capacity"


def test_the_report_is_the_same_again(made, tmp_path):
    copy = tmp_path / "varcap"
    shutil.copytree(made[0], copy, ignore=shutil.ignore_patterns("report"))
    for path in write_report(copy):
        assert path.read_bytes() == (made[0] / "report" / path.name).read_bytes(), path.name


def test_no_claims_without_a_number(tmp_path):
    _, frame = pointed(tmp_path, [run("own")])
    assert claims_tables(claims(frame)) == [] and tables(frame, ["Random"]) == []
