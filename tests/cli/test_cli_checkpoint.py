"""`batwatt plan checkpoint`: what it prints, the examples, and bad instances, in one line."""

from __future__ import annotations

import json

import pytest
from carbon_talk import content
from cli_house import ROOT

EXAMPLES = ROOT / "workloads" / "periods"
JOB = {"id": "x", "processors": 3, "checkpoint_s": 10, "recovery_s": 5, "state": "stopped"}
GOOD = {"period_s": 100, "processors": 8, "jobs": [JOB]}
COURSE = {"period_s": 100, "capacities": [8, 6], "jobs": [JOB]}
DROP = object()


def instance(base, job=None, **keys):
    """An object as JSON, with keys of it, and of its first job, changed, added or dropped."""
    changed = {**base, **keys}
    if job is not None:
        changed["jobs"] = [{key: value for key, value in {**JOB, **job}.items() if value is not DROP}]
    return json.dumps({key: value for key, value in changed.items() if value is not DROP})


def three(state, wide=3):
    return [{**JOB, "id": number, "state": state} for number in range(wide)]


# plan ----------------------------------------------------------------------------------------------------------------


def test_the_plan_of_the_example(house):
    """j4 works for 1800 s on 8, j1 and j2 for 1800 - 120 - 90 s on 3 each: (14400 + 2 x 4770) / (14 x 1800)."""
    file = house.out / "plan.json"
    done = house.batwatt("plan", "checkpoint", EXAMPLES / "period.json", "-o", file)
    assert (done.code, done.out, done.err) == (0, "", "")
    plan = json.loads(file.read_text())
    assert list(plan) == [
        "goodput", "method", "period_s", "processors", "work_processor_s", "checkpoints_end_s", "plan"
    ]  # fmt: skip
    assert (plan["method"], plan["period_s"], plan["processors"]) == ("dp", 1800, 14)
    assert (plan["goodput"], plan["work_processor_s"], plan["checkpoints_end_s"]) == (0.95, 23940, 120)
    later = {
        "processors": 3, "state": "checkpointed", "decision": "recover-later", "work_s": 1590,
        "phases": [{"kind": "recovery", "begin_s": 120, "end_s": 210}, {"kind": "work", "begin_s": 210, "end_s": 1800}],
    }  # fmt: skip
    assert plan["plan"] == [
        {"id": "j1", **later},
        {"id": "j2", **later},
        {"id": "j3", "processors": 5, "state": "running", "decision": "checkpoint", "work_s": 0,
         "phases": [{"kind": "checkpoint", "begin_s": 0, "end_s": 120}]},
        {"id": "j4", "processors": 8, "state": "checkpointed", "decision": "run", "work_s": 1800,
         "phases": [{"kind": "work", "begin_s": 0, "end_s": 1800}]},
        {"id": "j5", "processors": 8, "state": "stopped", "decision": "wait", "work_s": 0, "phases": []},
    ]  # fmt: skip


def test_optional_keys(house):
    """A job wider than processors waits if the platform is as wide; the rest of a recovery."""
    jobs = [
        JOB,
        {**JOB, "id": 12, "processors": 12},
        {**JOB, "id": "é", "state": "checkpointed", "recovering_s": 4},
    ]
    path = house.write("i.json", instance(GOOD, jobs=jobs, platform=12))
    rows = content(house.batwatt("plan", "checkpoint", path))["plan"]
    assert [(row["id"], row["work_s"]) for row in rows] == [("x", 95), (12, 0), ("é", 96)]
    assert rows[2]["phases"][0] == {"kind": "recovery", "begin_s": 0, "end_s": 4}


# a change, a sequence -------------------------------------------------------------------------------------------------


def test_a_period_before_a_change(house):
    """Of 3, 3, 5 and 8 processors 3 + 3 are the cheapest that cover 6: 6 x 120."""
    words = ("plan", "checkpoint", EXAMPLES / "change.json")
    cheapest = content(house.batwatt(*words))
    assert (cheapest["objective"], cheapest["checkpoint"]) == ("cheapest", ["j1", "j2"])
    assert (cheapest["cost_processor_s"], cheapest["exact"], cheapest["outcomes"]) == (720, True, [])
    worst = content(house.batwatt(*words, "--prepare", "worst"))
    assert [row["processors"] for row in worst["outcomes"]] == list(range(13, 23))
    assert worst["value"] == min(row["goodput"] for row in worst["outcomes"])
    every = content(house.batwatt(*words, "--prepare", "all"))
    assert every["checkpoint"] == ["j1", "j2", "j3", "j4"] and every["cost_processor_s"] == 19 * 120
    # 3 of 8 processors are idle and 2 may go: nothing needs a checkpoint
    path = house.write("i.json", instance(GOOD, job={"processors": 5, "state": "running"}, k=2))
    assert content(house.batwatt("plan", "checkpoint", path))["checkpoint"] == ["x"]
    assert content(house.batwatt("plan", "checkpoint", path, "--cover", "needed"))["checkpoint"] == []


def test_a_sequence_with_a_least_yield_is_figure_1(house):
    """j5 is due at T_1: j3 checkpoints after it, and j5 begins then on its processors and on those kept for it."""
    words = ("plan", "checkpoint", EXAMPLES / "figure1.json")
    course = content(house.batwatt(*words, "--min-yield", "0.2"))
    decisions = {row["id"]: row["decision"] for row in course["periods"][1]["plan"]}
    assert decisions == {"j1": "stop", "j2": "stop", "j3": "checkpoint", "j4": "run", "j5": "recover-later"}
    assert course["periods"][0]["prepared"] == ["j1", "j2"]
    # without it j5 works for 1710 s of the last period only
    course = content(house.batwatt(*words))
    assert [period["begin_s"] for period in course["periods"]] == [0, 1800, 3600]
    work = [row["processors"] * row["work_s"] for period in course["periods"] for row in period["plan"]]
    assert course["goodput"] == pytest.approx(sum(work) / (57 * 1800))
    assert course["min_yield"] == pytest.approx(1710 / 5400)


def test_k_of_a_course_is_its_largest_change(house):
    texts = (instance(COURSE, capacities=[8, 5, 7]), instance(COURSE, capacities=[8, 5, 7], k=3))
    one, other = (content(house.batwatt("plan", "checkpoint", house.write("c.json", text))) for text in texts)
    assert one == other


# bad input -----------------------------------------------------------------------------------------------------------

INSTANCES = [
    ("[]", "must be an object, got list"),
    (instance(GOOD, jobs=[]), "jobs must be a list of one or more jobs, got list"),
    (instance(GOOD, jobs=[5]), "job number 1: must be an object, got 5"),
    (instance(GOOD, period_s=DROP), "'period_s' is missing"),
    (instance(GOOD, period_s=0), "period_s must be a number of s > 0 and up to 1e+12, got 0"),
    (instance(GOOD, processors=True), "processors must be a whole number from 1 to 100000, got True"),
    (instance(GOOD, k=9), "k must be a whole number from 0 to processors (8), got 9"),
    (instance(GOOD, platform=7), "platform must be >= processors (8), got 7"),
    (instance(GOOD, job={"state": DROP, "stat": "stopped"}), "did you mean 'state'?"),
    (instance(GOOD, job={"processors": 9}), "job 'x': processors must be <= 8, all that there are, got 9"),
    (instance(GOOD, job={"checkpoint_s": -1}), "job 'x': checkpoint_s must be a number of s from 0"),
    (instance(GOOD, job={"state": "run"}), "state must be one of checkpointed, running, stopped, got 'run'"),
    (instance(GOOD, job={"recovering_s": 1}), "job 'x': recovering_s is of a checkpointed job"),
    (instance(GOOD, job={"id": 1.5}), "job number 1: id must be a text or a whole number, got 1.5"),
    (instance(GOOD, jobs=[{**JOB, "id": 1}, {**JOB, "id": "1"}]), "job '1': the id appears twice"),
    (instance(GOOD, jobs=three("running")), "without a checkpoint hold 9 of 8 processors"),
]
COURSES = [
    (instance(COURSE, capacities=[]), "capacities must be a list of one or more whole numbers"),
    (instance(COURSE, capacities=[8, 0]), "capacities: number 2: capacities must be"),
    (instance(COURSE, k=1), "capacities change by 2 (8 to 6), k is 1"),
    (instance(COURSE, k=9), "k must be from 0 to 8 processors, got 9"),
    (instance(COURSE, platform=5), "platform must be >= the largest of capacities (8)"),
    (instance(COURSE, jobs=three("checkpointed", wide=4)), "need 12 processors, there were"),
    (instance(COURSE, jobs=three("running")), "hold 9 of 8 processors"),
    (instance(COURSE, job={"checkpoint_s": 200, "processors": 7}), "no time for a checkpoint"),
]


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        *INSTANCES,
        (instance(GOOD, jobs=three("checkpointed"), k=1), "that run need 9 processors, processors is 8"),
        *COURSES,
    ],
    ids=str,
)
def test_bad_instance(house, text, problem):
    path = house.write("i.json", text)
    done = house.batwatt("plan", "checkpoint", path)
    assert (done.code, done.out) == (2, "")
    assert done.line.startswith(f"batwatt: {path}: ") and problem in done.line


def test_checkpoints_that_do_not_end_within_the_period(house):
    """Subset sum wants the 8 processors of b, and a cannot be checkpointed in time; the dynamic programme keeps a."""
    jobs = [
        {**JOB, "id": "a", "processors": 5, "checkpoint_s": 200, "state": "running"},
        {**JOB, "id": "b", "processors": 8},
    ]
    path = house.write("i.json", instance(GOOD, jobs=jobs))
    done = house.batwatt("plan", "checkpoint", path, "--method", "subset-sum")
    assert done.code == 2 and "take 200 s, the period has 100 s; --method dp may have one" in done.line
    assert content(house.batwatt("plan", "checkpoint", path))["plan"][0]["decision"] == "run"
