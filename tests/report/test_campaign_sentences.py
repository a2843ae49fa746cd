"""The sentences about a campaign: worked out by hand, and no claim that the runs do not bear out."""

from __future__ import annotations

import json

import pytest
from tables_of_tests import row, save

from batwatt.report.campaign import UNRECORDED, read_campaign
from batwatt.report.glossary import Glossary
from batwatt.report.means import Difference
from batwatt.report.sentences import findings, headline, sentences


def compared(folder, values):
    """The cases with these slowdowns on workloads 0, 1, ...; None: the run failed."""
    failed = {"status": "failed", "error": "boom"}
    rows = [
        row(label, f"w{n}", **(failed if value is None else {"mean_slowdown": value}))
        for label, slowdowns in values.items()
        for n, value in enumerate(slowdowns)
    ]
    return read_campaign(save(folder, rows)).main


def one(texts, part):
    """The one text with a part in it."""
    [text] = [text for text in texts if part in text]
    return text


def test_better_by_paired_differences(tmp_path):
    # differences 1, 1.5, 1: mean 1.1667, standard error 0.2887 / sqrt(3); 4.30 of them are 0.7167
    data = compared(tmp_path, {"b": (2.0, 3.5, 4.0), "a": (1.0, 2.0, 3.0)})
    assert headline(data) == "“a” keeps to the envelope, with 0.63 times the slowdown of “b”"
    assert sentences(data) == [
        "In the reference (“b”), all 10 jobs finish, with a slowdown of 3.17 and a mean wait of 0 s.",
        "Of the cases that keep to the envelope, “a” has the lowest slowdown: 2.00 (−1.17 ± 0.17 compared with “b”, "
        "more than chance), a mean wait of 0 s (±0 s), all 10 jobs finished (±0).",
    ]
    texts = findings(data)
    assert texts[0] == "2 cases of study “workloads” ran the same 10 jobs, on 3 workloads."
    assert one(texts, "paired") == (
        "3 workloads, paired, slowdown: “a” differs from “b” by more than 4.3 standard errors (95 %, Student's t). "
        "Nothing corrects for the number of comparisons."
    )


def test_no_claim_within_the_interval(tmp_path):
    # differences -1, 0.5, -1: mean -0.5, standard error 0.5
    data = compared(tmp_path, {"b": (2.0, 1.5, 4.0), "a": (1.0, 2.0, 3.0), "c": (1.0, 2.0, 4.0)})
    assert headline(data) == "“a” keeps to the envelope; its slowdown does not differ from “b” beyond chance"
    assert "2.00 (−0.50 ± 0.50 compared with “b”, no more than chance)" in sentences(data)[1]
    assert sentences(data)[2] == "Not distinguishable from “a” by slowdown: “b” and “c”."


def test_who_lacks_an_instance_is_left_out(tmp_path):
    data = compared(tmp_path, {"b": (2.0, 3.0), "a": (1.0, None), "c": (1.5, 2.0)})
    # differences -0.5, -1: 12.71 standard errors of 0.25 are more
    assert data.winner == "c" and "1.75 (−0.75 ± 0.25 compared with “b”, no more than chance)" in sentences(data)[1]
    assert data.left_out == {"a": "has no result on some of the workloads of the reference"}
    assert findings(data)[-1] == "Left out: “a” (reasons below)."


def test_nothing_to_compare(tmp_path):
    assert headline(compared(tmp_path / "1", {"a": (1.0, 2.0)})) == "“a”: all 10 jobs finished"
    assert compared(tmp_path / "2", {"a": (None,), "b": (None,)}) is None
    data = compared(tmp_path / "3", {"a": (1.0, None), "b": (None, 1.0)})
    assert data.labels == ["a"] and list(data.left_out) == ["b"]


def test_who_ignores_the_envelope_is_the_reference_and_not_the_best(results):
    data = read_campaign(results[0]).main
    # 3 workloads: slowdowns 2.0 and 3.0 of the first two, each 0.1 more on the next, 1.4 of the optimum
    name, free = "EBF Slow HFLD", "EBF Slow no config."
    assert headline(data) == f"“{name}” keeps to the envelope, with 1.48 times the slowdown of “{free}”"
    assert data.reference == free and data.above == [free] and data.bound == "Optimum"
    assert sentences(data)[0].startswith(f"Without following the envelope (“{free}”), all 10 jobs finish, with a slow")
    assert sentences(data)[0].endswith("; 40 % of its energy is above the envelope.")
    assert f"“{name}” has the lowest slowdown: 3.10 (+1.00 compared with “{free}”)" in sentences(data)[1]
    assert one(findings(data), "offline") == "“Optimum” has a slowdown of 1.40; it was found offline, and is not rated."
    assert data.where == "On small drop" and list(data.traces)[:2] == [name, free]


def test_goodput_is_rated_without_an_envelope(tmp_path):
    rows = [
        row(label, f"w{n}", capacity="c", envelope=None, energy_above_cap_j=None, capacity_core_s=1.0, goodput=goodput,
            mean_wait_s=60.0, max_full_speed_slowdown=9.0)
        for label, values in {"b": (0.5, 0.6), "a": (0.6, 0.72)}.items()
        for n, goodput in enumerate(values)
    ]  # fmt: skip
    data = read_campaign(save(tmp_path, rows)).main
    assert headline(data) == "“a” has the highest goodput; it does not differ from “b” beyond chance"
    assert sentences(data)[1] == (
        "Of all cases, “a” has the highest goodput: 66.0 % (+11.0 ± 1.0 % points compared with “b”, no more than "
        "chance), a mean wait of 60.0 s (±0 s), all 10 jobs finished (±0)."
    )
    assert one(findings(data), "Pareto").startswith("On the Pareto front of goodput and mean wait: “a”. Dominated by")


def test_why_jobs_were_rejected(tmp_path):
    causes = {"too wide": 3, "too late": 1}
    known = {"jobs_rejected": 4, "rejected_because": json.dumps(causes), "jobs_finished": 6}
    rows = [row("b", "w0", **known), row("b", "w1"), row("a", "w0"), row("a", "w1", jobs_rejected=2, jobs_finished=8)]
    data = read_campaign(save(tmp_path, rows)).main
    # the table of an older version has no causes
    assert one(findings(data), "Rejected") == (
        "Rejected jobs are in no mean: “b” 2 of 10 jobs (1.50 too wide; 0.50 too late) and “a” 1 of 10 jobs "
        f"(1 {UNRECORDED})."
    )


# two-sided at 95 %, from a table of Student's t: 1, 2, 4, 9, 19, 29 degrees of freedom
@pytest.mark.parametrize(
    ("instances", "limit"),
    [(2, 12.706), (3, 4.303), (5, 2.776), (10, 2.262), (20, 2.093), (30, 2.045), (1000, 2.0)],
)
def test_a_difference_counts_only_outside_the_interval(instances, limit):
    assert Difference(limit * 1.005, 1.0, instances).counts and Difference(-limit * 1.005, 1.0, instances).counts
    assert not Difference(limit * 0.995, 1.0, instances).counts
    assert not Difference(5.0, float("nan"), 1).counts and not Difference(0.0, 0.0, instances).counts


def test_terms_are_marked_once_and_as_whole_words():
    glossary = Glossary({"kills": "kills for power + kills at the walltime", "instance": "one"})
    marked = str(glossary.marked('Kills & kills, "skills", instances'))
    assert marked.count("<abbr") == 2 and "&amp; kills, &#34;skills&#34;, " in marked
    assert '<abbr class="term" tabindex="0" data-tip="kills for power + kills at the walltime">Kills</abbr>' in marked
    assert ">instances</abbr>" in marked


def test_one_instance_decides_nothing(tmp_path):
    data = compared(tmp_path, {"b": (2.0,), "a": (1.0,), "c": (1.5,)})
    assert "1.00 (−1.00 compared with “b”), a" in sentences(data)[1]
    assert one(findings(data), "standard error") == (
        "On one instance a difference has no standard error: it may be chance."
    )


def test_a_reference_with_more_instances_than_all_others(tmp_path):
    data = compared(tmp_path, {"b": (2.0, 3.0, 9.0), "a": (1.0, 1.5, None), "c": (1.5, 2.0, None)})
    # differences -1, -1.5
    assert "“a” has the lowest slowdown: 1.25 (−1.25 ± 0.25 compared with “b”" in sentences(data)[1]
    assert (data.samples, data.value(data.first, "b"), data.left_out) == (2, 2.5, {})
