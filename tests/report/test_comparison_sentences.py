"""The comparison in sentences, against small tables that are worked out by hand."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
from tables_of_systems import FREE, compared, jobs_of, row

from batwatt.report.means import Difference
from batwatt.report.sentences import findings, headline, sentences
from batwatt.report.texts import duration, percent, plain, signed_amount
from batwatt.results.compared import CaseFacts
from batwatt.results.figures import FIGURES

FREE_ROW = row(
    "free", mean_bounded_slowdown=1.5, mean_wait_s=300.0, energy_above_cap_j=0.9e6, finished_work_fraction=0.6
)


DIFFER = "differ in how they schedule"


def paragraph(data):
    return " ".join(sentences(data))


def one(texts, start):
    [text] = [text for text in texts if text.startswith(start)]
    return text


def test_the_paragraph():
    """The envelope feeds 10 machines for an hour and 5 for another."""
    rows = [
        FREE_ROW,
        row("a", mean_bounded_slowdown=4.0, mean_wait_s=5400.0),
        row("b", mean_bounded_slowdown=3.0, jobs_finished=99),
    ]
    data = compared(rows)
    assert headline(data) == "“b” keeps to the envelope, with twice the bounded slowdown of “free”"
    assert paragraph(data) == (
        "Without following the envelope (“free”), all 100 jobs finish, with a bounded slowdown of 1.50 and a "
        "mean wait of 5.00 min; 25 % of its energy is above the envelope. "
        "Of the cases that keep to the envelope, “b” has the lowest bounded slowdown: 3.00 (+1.50 compared with "
        "“free”), a mean wait of 10.0 min (+5.00 min), 99 of 100 jobs finished (−1)."
    )
    assert findings(data)[:2] == [
        "3 cases ran the same 100 jobs on 10 machines of 100 W (off: 0 W). In the 2.00 h that “free” takes the "
        "envelope feeds 7.50 machines on average (75 % of them).",
        "“b” and “free” differ in how they schedule, too: the difference is not that of the envelope alone.",
    ]


@pytest.mark.parametrize(
    ("case", "reference", "text"),
    [(1.0, 2.0, "half"), (6.0, 2.0, "three times"), (5.26, 2.0, "2.63 times")],
)
def test_the_headline_has_at_most_20_words(case, reference, text):
    rows = [FREE_ROW | {"mean_bounded_slowdown": reference}, row("a b c", mean_bounded_slowdown=case)]
    answer = headline(compared(rows))
    assert answer == f"“a b c” keeps to the envelope, with {text} the bounded slowdown of “free”"
    # a name of many words leaves no room for the reference
    long = headline(compared([FREE_ROW, row("a b c d e f g h i j k")]))
    assert long == "“a b c d e f g h i j k” keeps to the envelope"
    assert all(len(one.split()) <= 20 for one in (answer, long))


def test_a_case_of_few_survivors_is_not_the_best():
    rows = [
        FREE_ROW,
        row("a", mean_bounded_slowdown=4.0),
        row("picky", mean_bounded_slowdown=1.0, jobs_finished=94, finished_work_fraction=0.1),
    ]
    data = compared(rows)
    text = "and finish at least 95 % of what the best of them does, “a” is the only one: 4.00 (+2.50"
    assert text in paragraph(data)
    # 95 are enough
    rows[2]["jobs_finished"] = 95
    assert "“picky” has the lowest bounded slowdown" in paragraph(compared(rows))
    assert one(findings(data), "On the Pareto front") == (
        "On the Pareto front of finished work and bounded slowdown: “a” and “picky” (which finishes only 94 "
        "of 100 jobs)."
    )


def test_the_same_scheduler_under_the_envelope_is_the_cost_of_the_envelope():
    rows = [FREE_ROW, row("a")]
    data = compared(rows, cases={"free": FREE, "a": replace(FREE, limit="envelope")})
    assert not any(DIFFER in text for text in findings(data))
    assert any(DIFFER in text for text in findings(compared(rows)))


def test_who_suffers():
    """Of 20 jobs the wide, short ones wait 600 s more and the others 60 s; a fourth of the second user's are lost."""
    waits = {"free": [0.0] * 20, "a": [600.0] * 8 + [None] * 2 + [60.0] * 10}
    jobs = jobs_of(
        waits, hosts=[8] * 10 + [1] * 10, length_s=[600.0] * 10 + [7200.0] * 10, user=["u"] * 8 + ["v"] * 8 + ["w"] * 4
    )
    data = compared([FREE_ROW | {"jobs_finished": 20}, row("a", jobs_finished=18)], jobs)
    # of the two that do not finish both are wide, short, and the second user's; the third has too few jobs
    assert paragraph(data).endswith(
        "Under “a”, compared with “free”: by size, the mean wait grows most for jobs of 5 to 16 hosts, +10.0 min "
        "(8 jobs), and 20 % of them do not finish; by length, the mean wait grows most for jobs of up to 15 min, +10.0 "
        "min (8 jobs), and 20 % of them do not finish; by user, the mean wait grows most for jobs of user u, +10.0 min "
        "(8 jobs), and 25 % of jobs of user v do not finish."
    )


def test_caveats():
    rows = [
        FREE_ROW,
        row("a", jobs_finished=97, jobs_rejected=3),
        row("b", jobs_finished=98, energy_above_cap_j=0.396e6),
    ]
    waits = {"free": [0.0] * 100, "a": [0.0] * 97 + [None] * 3, "b": [36.0] * 98 + [None] * 2}
    texts = findings(compared(rows, jobs_of(waits), left_out={"c": "why"}))
    assert one(texts, "Above") == (
        "Above the envelope: “free” 0.25 kWh (25 % of its energy) and “b” 0.11 kWh (11 % of its energy). Another "
        "source must deliver that; these cases are neither rated nor on the front."
    )
    assert one(texts, "Rejected") == "Rejected jobs are in no mean: “a” 3 of 100 jobs."
    # 36 s of an hour
    assert one(texts, "Bounded") == (
        "Bounded slowdown and wait are of finished jobs only, of survivors: “a” (97 of 100 jobs; on the 97 that finish "
        "in “free”, too, the slowdown at full speed is the same) and “b” (98 of 100 jobs; on the 98 that finish in "
        "“free”, too, the slowdown at full speed is +0.010 in comparison)."
    )
    assert one(texts, "Left out") == "Left out: “c” (reasons below)."


RANDOM = CaseFacts("varcap", {}, random=True)


def seeded(*columns, **more):
    """A comparison over seeds: of each case its slowdowns."""
    rows = [
        row(name, seed, mean_bounded_slowdown=value) for name, values in columns for seed, value in enumerate(values)
    ]
    return compared(rows, cases={name: RANDOM for name, _ in columns} | more.pop("cases", {}), **more)


def test_chance():
    """Three seeds: 4.30 standard errors. a is 1, 1.1, 1.2 more (0.06); b 0, 1, 2 (0.58); c 1.1, 1, 1.2, as a is."""
    data = seeded(("free", (2, 3, 4)), ("a", (3, 4.1, 5.2)), ("b", (2, 4, 6)), ("c", (3.1, 4, 5.2)), ("d", (9, 10, 11)))
    assert one(findings(data), "3 seeds") == (
        "3 seeds, paired, bounded slowdown: “a” and “c” differ from “free” by more than 4.3 standard errors (95 %, "
        "Student's t); “b” is not distinguishable from “free”; the other differences are the same for each seed. Seeds "
        "are those of the schedulers: they say nothing about other jobs or other weather."
    )
    above = [row("free", seed, energy_above_cap_j=1e6, mean_bounded_slowdown=2.0) for seed in range(3)]
    rows = [row(name, seed, mean_bounded_slowdown=value)
            for name, values in (("a", (3, 4.1, 5.2)), ("c", (3.1, 4, 5.3)))
            for seed, value in enumerate(values)]  # fmt: skip
    data = compared([*above, *rows], cases={"free": FREE, "a": RANDOM, "c": RANDOM})
    assert sentences(data)[-1] == "Not distinguishable from “a” by bounded slowdown: “c”."
    # 1, 2.1, 3.2 with a standard error of 0.635
    assert "4.10 (+2.10 ± 0.64 compared with “free”, no more than chance)" in paragraph(data)


def test_one_seed():
    data = compared([FREE_ROW, row("a"), row("b")], cases={"free": FREE, "a": RANDOM, "b": RANDOM})
    assert one(findings(data), "Cases that draw") == (
        "Cases that draw at random ran once (“a” and “b”): differences of a few % may be chance. seeds=5, or "
        "samples=5, gives standard errors."
    )
    rows = [row(name, seed) for name in ("free", "a") for seed in (0, 1)]
    assert one(findings(compared(rows)), "No case") == "No case draws at random: all 2 seeds give the same numbers."


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        (plain(0.0), "0"), (plain(0.0, sign=True), "±0"), (plain(math.nan), "–"),
        (plain(12345.6), "12,346"), (plain(-12.34), "−12.3"), (plain(0.05), "0.050"),
        (duration(0.0), "0 s"), (duration(3600.0), "1.00 h"),
        (duration(-172800.0, sign=True), "−2.00 days"), (duration(math.nan), "–"), (percent(0.123456), "12.3 %"),
    ],
)  # fmt: skip
def test_numbers(text, shown):
    assert text == shown


@pytest.mark.parametrize(
    ("name", "mean", "error", "shown"),
    [
        ("finished_work_fraction", 0.0123, 0.0004, "+1.230 ± 0.040 % points"),
        ("mean_wait_s", -5400.0, 360.0, "−1.50 ± 0.10 h"),
        ("energy_j", 3.6e8, 3.6e7, "+100 ± 10 kWh"),
        ("energy_j", 3.6e6, 1000.0, "+1.00 kWh"),
        ("jobs_finished", 0.0, 0.0, "±0 jobs"),
    ],
)
def test_differences(name, mean, error, shown):
    measure = FIGURES[name]
    assert signed_amount(measure, Difference(mean, error, 3)) == shown


def test_other_headlines():
    above = {"energy_above_cap_j": 3.6e6 / 900}
    data = compared([row("x", **above), row("y", **above)])
    assert headline(data) == "No case keeps to the envelope"
    assert "each draws more than 0.1 % of its energy above it." in paragraph(data)
    # a thousandth is no more than that
    exactly = {"energy_above_cap_j": 3.6e3}
    data = compared([row("free", **exactly), row("a", mean_bounded_slowdown=9.0, **exactly)])
    assert "“free” has the lowest bounded slowdown: it is the reference itself." in paragraph(data)
    assert headline(compared([row("x")])) == "“x”: all 100 jobs finished"
    first = [row("x"), row("y", mean_bounded_slowdown=9.0)]
    assert headline(compared(first)) == "“x” keeps to the envelope and has the lowest bounded slowdown"


def test_rounding_is_no_chance():
    data = seeded(("free", (2, 3, 4)), ("a", (2.1, 3.1, 4.1)))
    assert one(findings(data), "3 seeds").startswith(
        "3 seeds, paired, bounded slowdown: all differences are the same for each seed."
    )
    assert "±" not in paragraph(data).replace("±0", "")


def test_no_job_finishes():
    names = ("mean_bounded_slowdown", "mean_full_speed_slowdown", "mean_wait_s", "p95_wait_s")
    nothing = dict.fromkeys(names) | {"jobs_finished": 0}
    data = compared([row("x", **nothing), row("y", **nothing)], jobs_of({name: [None] * 100 for name in "xy"}))
    assert "0 of 100 jobs finish. No case that keeps to the envelope finishes a job." in paragraph(data)
    assert findings(data)[1:] == ["No job finishes with “x” and “y”: no slowdown, no wait."]
