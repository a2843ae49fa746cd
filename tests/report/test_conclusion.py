"""The conclusion at the top of the page: worked out by hand, and no claim that the runs do not bear out."""

from __future__ import annotations

import pytest
from tables_of_tests import HOSTILE, row, save, visible, words

from batwatt.report.conclusion import conclusion
from batwatt.report.glossary import Glossary
from batwatt.report.means import QUANTILES, Difference
from batwatt.report.page import write_report
from batwatt.report.studies import report_of
from batwatt.report.table import POWERS, read_campaign


def concluded(folder, values, **given):
    """The conclusion of algorithms with these slowdowns on workloads 0, 1, ...; None: the run failed."""
    rows = [
        row(label, f"w{n}", mean_slowdown=value, **given)
        if value is not None
        else row(label, f"w{n}", status="failed", error="boom")
        for label, found in values.items()
        for n, value in enumerate(found)
    ]
    return conclusion(report_of(read_campaign(save(folder, rows))))


def test_better_by_paired_differences(tmp_path):
    # differences 1, 1.5, 1: mean 1.1667, standard error 0.2887 / sqrt(3); 4.30 of them are 0.7167
    found = concluded(tmp_path, {"b": (2.0, 3.5, 4.0), "a": (1.0, 2.0, 3.0)})
    assert found.headline == "a has the lowest mean slowdown, 37 % below b"
    assert found.findings[0] == (
        "Slowdown: a compared with the baseline b (3.17): −1.17 ± 0.17 (−37 % relative), better; its 95 % interval "
        "excludes 0."
    )
    assert found.sentences == (
        "Slowdown: the lowest mean is 2.00, with a.",
        "Kills: no difference, 0.0 with all 2 algorithms.",
        "Violations: no difference, 0.0 steps with all 2 algorithms.",
    )
    assert found.findings[-1].startswith("The baseline of study “workloads” is b; the others are compared with it on i")


def test_no_claim_within_the_interval(tmp_path):
    # differences -1, 0.5, -1: mean -0.5, standard error 0.5
    found = concluded(tmp_path, {"b": (2.0, 1.5, 4.0), "a": (1.0, 2.0, 3.0), "c": (1.0, 2.0, 4.0)})
    assert found.headline == "a has the lowest mean slowdown, but not beyond chance"
    assert found.findings[0] == (
        "Slowdown: a compared with the baseline b (2.50): −0.50 ± 0.50; its 95 % interval contains 0, so no difference "
        "is claimed. Not distinguishable from the best: c."
    )


def test_the_baseline_may_be_the_best_and_several_may_be_alike(tmp_path):
    found = concluded(tmp_path / "1", {"b.": (1.0, 1.0, 1.0), "a": (2.0, 2.0, 2.1)})
    # differences 1, 1, 1.1: mean 1.0333, standard error 0.0577 / sqrt(3)
    assert found.headline == "b. has the lowest mean slowdown"
    assert found.sentences[0] == "Slowdown: the lowest mean is 1.00, with b. It is the baseline."
    assert found.findings[0] == (
        "Slowdown: the next is a: +1.03 ± 0.03 (+103 % relative), worse; its 95 % interval excludes 0."
    )
    found = concluded(tmp_path / "2", {"b": (1.0, 2.0), "a": (1.0, 2.0), "c": (4.0, 5.0)})
    # a difference that is the same everywhere has no error
    assert found.sentences[0] == "Slowdown: the lowest mean is 1.50, with b and a alike. This includes the baseline."
    assert found.findings[0] == (
        "Slowdown: the next is c: +3.00 ± 0.00 (+200 % relative), worse; its 95 % interval excludes 0."
    )


def test_one_instance_decides_nothing(tmp_path):
    found = concluded(tmp_path, {"b": (2.0,), "a": (1.0,), "c": (1.5,)})
    assert found.findings[0] == "Slowdown: a compared with the baseline b (2.00): −1.00, on one instance."
    assert found.findings[-1].endswith("One instance has no standard error: what holds there may be chance.")
    assert [list(marks.error) for marks in found.figures[0].charts[0].series] == [[0.0]] * 3


def test_who_lacks_an_instance_is_left_out(tmp_path):
    found = concluded(tmp_path, {"b": (2.0, 3.0), "a": (1.0, None), "c": (1.5, 2.0)})
    # differences -0.5, -1: 12.71 standard errors of 0.25 are more
    assert found.sentences[0] == "Slowdown: the lowest mean is 1.75, with c."
    assert found.findings[0] == (
        "Slowdown: c compared with the baseline b (2.50): −0.75 ± 0.25; its 95 % interval contains 0, so no difference "
        "is claimed."
    )
    assert found.findings[-1].endswith("Left out, as they lack results on some of the instances: a.")


def test_a_baseline_with_more_instances_than_all_others(tmp_path):
    found = concluded(tmp_path, {"b": (2.0, 3.0, 9.0), "a": (1.0, 1.5, None), "c": (1.5, 2.0, None)})
    # differences -1, -1.5
    assert found.sentences[0] == "Slowdown: the lowest mean is 1.25, with a."
    assert found.findings[0].startswith("Slowdown: a compared with the baseline b (2.50): −1.25 ± 0.25; its 95 %")
    assert "compared with it on the 2 instances that all of them have. " in found.findings[-1]
    assert "Left out" not in found.findings[-1]


def test_nothing_to_compare(tmp_path):
    cases = ({"a": (1.0, 2.0)}, {"a": (None,), "b": (None,)}, {"a": (1.0, None), "b": (None, 1.0)})
    for n, values in enumerate(cases):
        found = concluded(tmp_path / str(n), values)
        assert found.headline == "No study has results of two algorithms on the same instances"
        assert found.figures == found.sentences == found.findings == ()


def test_who_ignores_the_envelope_is_the_baseline_and_not_the_best(results):
    found = conclusion(report_of(read_campaign(results[0])))
    # 3 workloads: slowdowns 2.0 and 3.0 of the first two, each 0.1 more on the next, 1.4 of the optimum
    name = "EBF Slow HFLD"
    assert found.headline == f"{name} has the lowest mean slowdown under the envelope, 48 % above EBF Slow no config."
    assert len(found.headline.split()) <= 20
    assert found.sentences[0] == (
        f"Slowdown: the lowest mean of those that respond to the envelope is 3.10, with {name}."
    )
    assert found.findings[0] == (
        f"Slowdown: {name} compared with the baseline EBF Slow no config. (2.10): +1.00 ± 0.00 (+48 % relative), "
        "worse; its 95 % interval excludes 0. Optimum has 1.40."
    )
    assert [figure.id for figure in found.figures] == ["top", "top-power"]
    assert [chart.title for chart in found.figures[1].charts] == ["EBF Slow no config.", "EBF Slow HFLD"]


def test_who_is_not_dominated(tmp_path):
    labels = {"a": (1.0, 9), "b": (2.0, 4), "c": (3.0, 5), "d": (4.0, 1)}
    rows = [row(label, f"w{n}", mean_slowdown=slow, killed_power=kills) for label, (slow, kills) in labels.items()
            for n in range(2)]  # fmt: skip
    found = conclusion(report_of(read_campaign(save(tmp_path, rows))))
    front = found.figures[0].charts[1].series[0]
    assert (front.name, front.x, front.y) == ("Pareto front", [1.0, 4.0, 9.0], [4.0, 2.0, 1.0])


@pytest.mark.parametrize("instances", [2, 3, 20, 1000])
def test_a_difference_counts_only_outside_the_interval(instances):
    limit = QUANTILES[instances - 2] if instances < 30 else 2.0
    assert Difference(limit * 1.001, 1.0, instances).counts and Difference(-limit * 1.001, 1.0, instances).counts
    assert not Difference(limit * 0.999, 1.0, instances).counts
    assert not Difference(5.0, float("nan"), 1).counts and not Difference(0.0, 0.0, instances).counts


def test_hostile_names_stay_text_in_the_conclusion(tmp_path):
    rows = [row(label, w, mean_slowdown=s) for label, s in ((HOSTILE, 1.0), ("b", 2.0)) for w in ("w0", "w1")]
    page = write_report(save(tmp_path / "r", rows))[0].read_text()
    assert "<img src=x" not in visible(page) and "with &lt;/script&gt;&lt;img src=x" in words(page)


def test_terms_are_marked_once_and_as_whole_words():
    marked = str(Glossary(POWERS).marked('Kills & kills, "skills", instances'))
    assert marked.count("<abbr") == 2 and "&amp; kills, &#34;skills&#34;, " in marked
    assert '<abbr class="term" tabindex="0" data-tip="kills for power + kills at the walltime">Kills</abbr>' in marked
    assert ">instances</abbr>" in marked
