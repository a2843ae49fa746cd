"""The same: tables, claims and files, worked out by hand."""

from __future__ import annotations

import re
import shutil

import pytest
from tables_of_tests import check_plots, pictures_undrawn, plots_of, row, save
from varcap_points import HOSTILE, carbon, pointed, run

from batwatt.report.claims import sure
from batwatt.report.page import write_report
from batwatt.report.papers import varcap
from batwatt.report.papers.varcap_claims import CLAIMS, claims, claims_table
from batwatt.report.papers.varcap_plans import PLANS
from batwatt.report.papers.varcap_tables import acceptable, tables


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
    with pictures_undrawn():
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
    plots = plots_of(page)
    check_plots(plots)
    # the structure is no algorithm, so it does not follow their choice
    assert [one["label"] for one in plots["plot-fig5-2-0"]["series"]] == [None]
    assert [one["label"] for one in plots["plot-fig6-4-0"]["series"]] == ["Random", "LWW"]
    assert plots["plot-fig5-6-0"]["level"][1].startswith("fixed capacity: ")


@pytest.mark.usefixtures("undrawn")
def test_the_report_is_the_same_again(tmp_path):
    rows = [row for row in whole() if row["study"] in ("fig6-4-mira", "german")]
    folder = save(tmp_path / "varcap", rows)
    first = {path: path.read_bytes() for path in write_report(folder)}
    shutil.rmtree(folder / "report")
    assert {path: path.read_bytes() for path in write_report(folder)} == first


def test_no_claims_without_a_number(tmp_path):
    _, frame = pointed(tmp_path, [run("own")])
    assert claims_table(claims(frame)) == [] and tables(frame, ["Random"]) == []
