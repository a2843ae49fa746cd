"""The verdict on compared cases: each situation and each rule on tables that are worked out by hand."""

from __future__ import annotations

import json
import math

import pytest
from tables_of_systems import compared, row
from tables_of_tests import row as run
from tables_of_tests import save

from batwatt.errors import InputError
from batwatt.report.html import Glossary
from batwatt.report.page import comparison_page
from batwatt.report.study import UNRECORDED, read_study
from batwatt.report.tables import cases_table
from batwatt.report.texts import duration, percent, plain
from batwatt.report.verdict import sentences, verdict_of
from batwatt.results.compared import Difference

# 1.25 of 5 MJ are above the envelope
FREE = row("free", mean_wait_s=360.0, energy_j=5e6, energy_above_cap_j=1.25e6)
A = row("a", mean_wait_s=3600.0)


def pairs(**cases):
    """A comparison over seeds: of each case its waits in s and energies in MJ."""
    return compared(
        [row(label, seed, mean_wait_s=wait_s, energy_j=1e6 * energy_mj)
         for label, values in cases.items() for seed, (wait_s, energy_mj) in enumerate(values)]
    )  # fmt: skip


CLEAR = compared([FREE, A, row("b", mean_wait_s=5760.0)])
TRADE = compared([FREE, A, row("b", mean_wait_s=7200.0, energy_j=2.88e6)])
# differences of the waits: 100, -300, 200; of the energies: 1.0, 1.1, 1.0
SAME = pairs(b=[(3600, 5.0), (7200, 5.2), (1080, 5.0)], a=[(3700, 4.0), (6900, 4.1), (1280, 4.0)])
LOSES = compared(
    [row("a", mean_wait_s=900.0, jobs_finished=80, finished_work_fraction=0.75),
     FREE | {"mean_wait_s": 225.0, "finished_work_fraction": 1.0}]
)  # fmt: skip
NONE = compared([FREE, row("b", energy_above_cap_j=0.72e6)])


@pytest.mark.parametrize(
    ("data", "situation", "cases", "ratios"),
    [
        (CLEAR, "clear", ("a", "b", "free"), {"b": (1.6, 1.0), "free": (0.1, 5.0 / 3.6)}),
        (TRADE, "trade", ("a", "b", "free"), {"b": (2.0, 0.8), "free": (0.1, 5.0 / 3.6)}),
        (SAME, "same", ("a", "b", None), {"b": (1.0, 15.2 / 12.1)}),
        (LOSES, "loses jobs", ("a", None, "free"), {"free": (0.25, 5.0 / 3.6)}),
        (NONE, "none keeps", (None, None, "b"), {}),
    ],
    ids=["clear", "trade", "same", "loses jobs", "none keeps"],
)
def test_situations(data, situation, cases, ratios):
    verdict = verdict_of(data)
    assert (verdict.situation, verdict.goal) == (situation, "wait")
    assert (verdict.winner, verdict.rival, verdict.reference) == cases
    values = {label: (verdict.ratios[label]["mean_wait_s"], verdict.ratios[label]["energy_j"]) for label in ratios}
    assert values == {label: pytest.approx(pair) for label, pair in ratios.items()}


@pytest.mark.parametrize(
    ("data", "first", "second"),
    [
        (
            CLEAR,
            "Run “a”: of the 2 cases that keep to the envelope it waits least (1.00 h) and uses as little energy as "
            "any (1.00 kWh).",
            "“b” waits 1.60 times as long with the same energy; “free” waits 0.10 times as long, with 25 % of its "
            "energy above the envelope.",
        ),
        (
            TRADE,
            "Run “a”: of the 2 cases that keep to the envelope it waits least (1.00 h).",
            "“b” uses 0.80 times the energy and waits 2.00 times as long; “free” waits 0.10 times as long, with 25 % "
            "of its energy above the envelope.",
        ),
        (
            SAME,
            "No case waits less than the others beyond chance: 1.10 to 1.10 h in 3 seeds.",
            "“b” has 1.26 times the energy of “a”, more than chance.",
        ),
        (
            LOSES,
            "Run “a” with care: only it keeps to the envelope, but 20 of 100 jobs are lost, 25 % of the work.",
            "“free” finishes all jobs and waits 0.25 times as long, with 25 % of its energy above the envelope.",
        ),
        (
            NONE,
            "No case keeps to the envelope: the nearest, “b”, draws 20 % of its energy above it (0.20 kWh).",
            "A case with a response can keep to it: compare all systems, or add a case with powercap "
            '{"response": "frugal"}.',
        ),
    ],
    ids=["clear", "trade", "same", "loses jobs", "none keeps"],
)
def test_texts(data, first, second):
    verdict = verdict_of(data)
    assert sentences(verdict) == (first, second) and str(verdict) == f"{first}\n{second}"


def test_a_thousandth_above_the_envelope_is_kept():
    above = {"energy_above_cap_j": 3.6e3}
    assert verdict_of(compared([A | above, row("b", mean_wait_s=1.0, energy_above_cap_j=3.7e3)])).within == ["a"]


@pytest.mark.parametrize(("jobs", "work", "winner"), [(94, 1.0, "a"), (100, 0.94, "a"), (95, 0.95, "picky")])
def test_few_jobs_or_little_work_cannot_win(jobs, work, winner):
    picky = row("picky", mean_wait_s=60.0, jobs_finished=jobs, finished_work_fraction=work)
    verdict = verdict_of(compared([A | {"finished_work_fraction": 1.0}, picky]))
    assert verdict.winner == winner
    # a shorter wait of a case with few jobs is not compared
    assert ("only it keeps to the envelope and finishes enough jobs" in str(verdict)) is (winner == "a")


@pytest.mark.parametrize(
    ("goal", "winner"),
    [("wait", "a"), ("slowdown", "b"), ("energy", "c"), ("carbon", "d"), ("cost", "e")],
)
def test_each_goal_has_its_figure(goal, winner):
    low = {"a": "mean_wait_s", "b": "mean_bounded_slowdown", "c": "energy_j", "d": "carbon_g", "e": "cost"}
    base = {"mean_wait_s": 3600.0, "mean_bounded_slowdown": 9.0, "energy_j": 9e6, "carbon_g": 9.0, "cost": 9.0}
    data = compared([row(label, **base | {name: 1.0}) for label, name in low.items()])
    verdict = verdict_of(data, goal)
    assert verdict.winner == winner and verdict.first.name == low[winner]
    assert verdict.other.name == ("energy_j" if goal in ("wait", "slowdown") else "mean_wait_s")


def test_a_goal_without_figures_is_named():
    with pytest.raises(InputError, match="goal: no case has a value of carbon"):
        verdict_of(CLEAR, "carbon")


@pytest.mark.parametrize(("wait_s", "winner"), [(3670.0, "b"), (3680.0, "a")])
def test_equal_by_the_goal_is_within_2_percent(wait_s, winner):
    # 72 s are 2 %
    assert verdict_of(compared([A, row("b", mean_wait_s=wait_s, energy_j=3.5e6)])).winner == winner


@pytest.mark.parametrize(("wait_s", "winner"), [(14.0, "b"), (16.0, "a")])
def test_equal_waits_are_within_10_s(wait_s, winner):
    assert verdict_of(compared([A | {"mean_wait_s": 5.0}, row("b", mean_wait_s=wait_s, energy_j=3e6)])).winner == winner


@pytest.mark.parametrize(("energy_j", "situation"), [(3.41e6, "trade"), (3.43e6, "clear")])
def test_a_rival_is_better_by_5_percent(energy_j, situation):
    assert verdict_of(compared([A, row("b", mean_wait_s=7200.0, energy_j=energy_j)])).situation == situation


@pytest.mark.parametrize(
    ("figures", "text"),
    [
        ({"makespan_s": 7200.0 * 1.5}, "“b” waits 2.00 times as long with the same energy and ends 1.00 h later"),
        ({"makespan_s": 7200.0 * 1.04}, "“b” waits 2.00 times as long with the same energy."),
        ({"mean_bounded_slowdown": 3.2}, "with the same energy and has 1.60 times the bounded slowdown"),
        ({"mean_bounded_slowdown": 2.8}, "“b” waits 2.00 times as long with the same energy."),
    ],
)
def test_a_third_figure_that_changes_much(figures, text):
    assert text in str(verdict_of(compared([A, row("b", mean_wait_s=7200.0, **figures)])))


def test_lost_jobs_of_the_winner_are_said():
    a = A | {"jobs_finished": 99, "finished_work_fraction": 0.995}
    verdict = verdict_of(compared([FREE, a, row("b", mean_wait_s=7200.0)]))
    assert verdict.situation == "loses jobs" and verdict.lost["a"] == 1
    # killed runs of jobs that finish are not lost
    verdict = verdict_of(compared([FREE, A | {"killed_power": 10}, row("b", mean_wait_s=7200.0)]))
    assert verdict.situation == "clear" and verdict.lost["a"] == 0
    a |= {"jobs_finished": 99.5}
    verdict = verdict_of(compared([FREE, a, row("b", mean_wait_s=7200.0)]))
    assert verdict.situation == "clear" and "but 0.50 of 100 jobs are lost, 0.5 % of the work." in str(verdict)


@pytest.mark.parametrize(
    ("wait_s", "mark", "near"),
    [(4500.0, "~1.25 times", True), (5100.0, "1.42 times", False)],
)
def test_one_run_of_each_case_may_be_chance(wait_s, mark, near):
    rows = [A, row("c", mean_wait_s=wait_s), row("b", mean_wait_s=7200.0, energy_j=1.8e6)]
    verdict = verdict_of(compared(rows))
    assert ("mean_wait_s" in verdict.chance["c"]) is near and (f"“c” {mark}" in str(verdict)) is near
    assert (verdict.caveat == "One run per case: ~ may be chance; samples=5 gives standard errors.") is near
    second = sentences(verdict_of(compared(rows[:2])))[1]
    assert f"waits {mark} as long" in second


def test_more_than_chance_in_samples():
    """Differences 1, 1.5, 1 h: mean 1.17 with a standard error of 0.17, of which 4.30 are 0.72."""
    verdict = verdict_of(pairs(b=[(7200, 3.6), (12600, 3.6), (14400, 3.6)], a=[(3600, 3.6), (7200, 3.6), (10800, 3.6)]))
    assert (verdict.situation, verdict.winner, verdict.chance["b"]) == ("clear", "a", [])
    # differences 1, -0.5, 1 h
    verdict = verdict_of(pairs(b=[(7200, 3.6), (5400, 3.6), (14400, 3.6)], a=[(3600, 3.6), (7200, 3.6), (10800, 3.6)]))
    assert (verdict.situation, verdict.chance["b"]) == ("same", ["mean_wait_s"])
    assert sentences(verdict)[1] == (
        "Energy, lost jobs and work do not differ either: choose the simplest, or run with samples=10."
    )


def test_the_strongest_caveat():
    few = row("b", mean_wait_s=4000.0, jobs_finished=97, jobs_rejected=3)
    verdict = verdict_of(compared([A, few], rejections={"b": {"too wide": 3.0}}))
    assert verdict.caveat == "Wait is of finished jobs only, and “b” does not finish 3 of 100 jobs."
    verdict = verdict_of(
        compared([A, few | {"jobs_finished": 99, "jobs_rejected": 1}], rejections={"b": {"too wide": 1}})
    )
    assert verdict.caveat == "“b” rejects 1 of 100 jobs (1 too wide)."
    assert verdict_of(compared([A, row("b", mean_wait_s=4000.0)])).caveat.startswith("One run per case")
    assert verdict_of(CLEAR).caveat == ""


def test_without_a_case_to_recommend():
    nothing = {"mean_wait_s": None, "mean_bounded_slowdown": None, "jobs_finished": 0}
    verdict = verdict_of(compared([row("x", **nothing), row("y", **nothing)]))
    assert (verdict.situation, verdict.winner, verdict.within) == ("none keeps", None, ["x", "y"])
    assert sentences(verdict)[0] == "No case that keeps to the envelope finishes a job."
    assert str(verdict_of(compared([row("x")]))).startswith(
        "Run “x”: only it keeps to the envelope, and waits 10.0 min."
    )


def test_the_page_has_the_two_sentences():
    data = TRADE
    verdict = verdict_of(data, "energy")
    page = comparison_page(data, verdict)
    assert f"<h1>{sentences(verdict)[0]}</h1>" in page and "uses least energy (0.80 kWh)" in page


def test_studies(tmp_path):
    """Waits of 1, 2 and 3 h and of half an hour more on each workload; one run has failed."""
    rows = [run(label, f"w{n}", mean_wait_s=3600.0 * (n + 1) + more_s, energy_j=3.6e6)
            for label, more_s in (("b", 1800.0), ("a", 0.0), ("c", 0.0)) for n in range(3)]  # fmt: skip
    rows[-1] |= {"status": "failed", "error": "boom"}
    data = read_study(save(tmp_path, rows)).main
    verdict = verdict_of(data)
    assert data.left_out == {"c": "has no result on some of the workloads of the reference"}
    assert (verdict.situation, verdict.winner, verdict.rival, verdict.samples) == ("clear", "a", "b", "3 workloads")


def test_an_optimum_is_no_winner(results):
    data = read_study(results[0]).main
    assert data.bound == "Optimum" and "Optimum" not in verdict_of(data).within
    assert data.reference == "EBF Slow no config." and data.above_share(data.reference) == pytest.approx(0.4)


def test_causes_of_rejections_are_tips(tmp_path):
    causes = {"too wide": 3, "too late": 1}
    known = {"jobs_rejected": 4, "rejected_because": json.dumps(causes), "jobs_finished": 6}
    rows = [run("b", "w0", **known), run("b", "w1"), run("a", "w0"), run("a", "w1", jobs_rejected=2, jobs_finished=8)]
    data = read_study(save(tmp_path, rows)).main
    # the table of an older version has no causes
    assert data.rejections == {"b": {"too wide": 1.5, "too late": 0.5}, "a": {UNRECORDED: 1.0}}
    data = compared([row("x", jobs_rejected=2), row("y")], rejections={"x": {"too wide": 1.5, "too late": 0.5}})
    table = cases_table("all", "All", data)
    column = [head.text for head in table.headings].index("rejected jobs")
    assert dict(table.rows)["x"][column].tip == "1.50 too wide; 0.50 too late"


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
    # names of cases stay as they are
    assert "<abbr" not in glossary.marked("“fewest kills” and “instance”")


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
