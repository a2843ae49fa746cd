"""`batwatt checkpoint`: what it prints, the examples, and bad instances, in one line."""

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


def given(base, job=None, **keys):
    """An object as JSON, with keys of it, and of its first job, changed, added or dropped."""
    made = {**base, **keys}
    if job is not None:
        made["jobs"] = [_kept({**JOB, **job})]
    return json.dumps(_kept(made))


def _kept(made):
    return {key: value for key, value in made.items() if value is not DROP}


def three(state, wide=3):
    return [{**JOB, "id": number, "state": state} for number in range(wide)]


# plan ----------------------------------------------------------------------------------------------------------------


def test_the_plan_of_the_example(house):
    """j4 works for 1800 s on 8, j1 and j2 for 1800 - 120 - 90 s on 3 each: (14400 + 2 x 4770) / (14 x 1800)."""
    file, picture = house.out / "plan.json", house.out / "plan.png"
    done = house.batwatt("checkpoint", "plan", EXAMPLES / "period.json", "-o", file, "--picture", picture)
    assert (done.code, done.out, done.err) == (0, "", "") and picture.read_bytes().startswith(b"\x89PNG")
    found = json.loads(file.read_text())
    assert list(found) == [
        "goodput", "method", "period_s", "processors", "work_processor_s", "checkpoints_end_s", "plan"
    ]  # fmt: skip
    assert (found["method"], found["period_s"], found["processors"]) == ("dp", 1800, 14)
    assert (found["goodput"], found["work_processor_s"], found["checkpoints_end_s"]) == (0.95, 23940, 120)
    later = {
        "processors": 3, "state": "checkpointed", "decision": "recover-later", "work_s": 1590,
        "phases": [{"kind": "recovery", "begin_s": 120, "end_s": 210}, {"kind": "work", "begin_s": 210, "end_s": 1800}],
    }  # fmt: skip
    assert found["plan"] == [
        {"id": "j1", **later},
        {"id": "j2", **later},
        {"id": "j3", "processors": 5, "state": "running", "decision": "checkpoint", "work_s": 0,
         "phases": [{"kind": "checkpoint", "begin_s": 0, "end_s": 120}]},
        {"id": "j4", "processors": 8, "state": "checkpointed", "decision": "run", "work_s": 1800,
         "phases": [{"kind": "work", "begin_s": 0, "end_s": 1800}]},
        {"id": "j5", "processors": 8, "state": "stopped", "decision": "wait", "work_s": 0, "phases": []},
    ]  # fmt: skip


def test_ids_come_back_as_they_were(house):
    jobs = [{**JOB, "id": 7}, {**JOB, "id": "7b"}, {**JOB, "id": "é"}]
    path = house.write("i.json", given(GOOD, jobs=jobs))
    assert [row["id"] for row in content(house.batwatt("checkpoint", "plan", path))["plan"]] == [7, "7b", "é"]


def test_optional_keys(house):
    """Work up to left_s; a job wider than processors waits if the platform is as wide."""
    jobs = [{**JOB, "left_s": 40}, {**JOB, "id": "wide", "processors": 12}]
    path = house.write("i.json", given(GOOD, jobs=jobs, k=8, platform=12, processors_before=4))
    found = content(house.batwatt("checkpoint", "plan", path))
    assert [row["work_s"] for row in found["plan"]] == [40, 0]
    assert found["goodput"] == 3 * 40 / 800


def test_the_rest_of_a_recovery(house):
    """3 processors recover for 4 s more and work for 96."""
    path = house.write("i.json", given(GOOD, job={"state": "checkpointed", "recovering_s": 4}))
    [row] = content(house.batwatt("checkpoint", "plan", path))["plan"]
    assert (row["decision"], row["work_s"]) == ("run", 96)
    assert row["phases"][0] == {"kind": "recovery", "begin_s": 0, "end_s": 4}


def test_refill_lets_a_stopped_job_work_before_others_begin(house):
    """c on all 9 from 60 s on: 9 x (1000 - 60 - 5) = 8415 > 5 x 1000 + 3 x 995, and b before: 3 x (60 - 5 - 10)."""
    jobs = [
        {**JOB, "id": "a", "processors": 5, "checkpoint_s": 60, "state": "running"},
        {**JOB, "id": "b"},
        {**JOB, "id": "c", "processors": 9},
    ]
    path = house.write("i.json", given(GOOD, jobs=jobs, period_s=1000, processors=9))
    assert content(house.batwatt("checkpoint", "plan", path))["work_processor_s"] == 8415
    filled = content(house.batwatt("checkpoint", "plan", path, "--refill"))
    assert filled["goodput"] == 8550 / 9000
    assert [row["decision"] for row in filled["plan"]] == ["checkpoint", "fill", "recover-later"]
    assert filled["plan"][1]["phases"] == [
        {"kind": "recovery", "begin_s": 0, "end_s": 5},
        {"kind": "work", "begin_s": 5, "end_s": 50},
        {"kind": "checkpoint", "begin_s": 50, "end_s": 60},
    ]


# prepare, follow, front ----------------------------------------------------------------------------------------------


def test_prepare(house):
    """Of 3, 3, 5 and 8 processors 3 + 3 are the cheapest that cover 6: 6 x 120."""
    found = content(house.batwatt("checkpoint", "prepare", EXAMPLES / "change.json"))
    assert (found["objective"], found["checkpoint"], found["cost_processor_s"]) == ("cheapest", ["j1", "j2"], 720)
    assert found["exact"] is True and found["value"] is None and found["outcomes"] == []
    worst = content(house.batwatt("checkpoint", "prepare", EXAMPLES / "change.json", "--objective", "worst"))
    assert [row["processors"] for row in worst["outcomes"]] == list(range(13, 23))
    assert worst["value"] == min(row["goodput"] for row in worst["outcomes"])
    expected = content(house.batwatt("checkpoint", "prepare", EXAMPLES / "change.json", "--objective", "expected"))
    assert expected["value"] == pytest.approx(sum(row["goodput"] for row in expected["outcomes"]) / 10)
    every = content(house.batwatt("checkpoint", "prepare", EXAMPLES / "change.json", "--objective", "all"))
    assert every["checkpoint"] == ["j1", "j2", "j3", "j4"] and every["cost_processor_s"] == 19 * 120


def test_prepare_only_what_is_needed(house):
    """3 of 8 processors are idle and 2 may go: nothing needs a checkpoint."""
    job = {"processors": 5, "state": "running"}
    path = house.write("i.json", given(GOOD, job=job, k=2))
    assert content(house.batwatt("checkpoint", "prepare", path))["checkpoint"] == ["x"]
    assert content(house.batwatt("checkpoint", "prepare", path, "--cover", "needed"))["checkpoint"] == []


def test_follow_adds_up(house):
    found = content(house.batwatt("checkpoint", "follow", EXAMPLES / "figure1.json", "--picture", house.out / "f.svg"))
    assert [period["processors"] for period in found["periods"]] == [19, 16, 22]
    assert [period["begin_s"] for period in found["periods"]] == [0, 1800, 3600]
    work = {row["id"]: 0.0 for row in found["periods"][0]["plan"]}
    for period in found["periods"]:
        for row in period["plan"]:
            times = [phase["end_s"] - phase["begin_s"] for phase in row["phases"] if phase["kind"] == "work"]
            assert sum(times) == row["work_s"]
            assert all(0 <= phase["begin_s"] - period["begin_s"] < 1800 for phase in row["phases"])
            work[row["id"]] += row["processors"] * row["work_s"]
        assert period["prepared"] == [
            row["id"] for row in period["plan"] for phase in row["phases"]
            if phase["kind"] == "checkpoint" and phase["end_s"] == period["begin_s"] + 1800
        ]  # fmt: skip
    assert found["goodput"] == pytest.approx(sum(work.values()) / (57 * 1800))
    assert found["yields"]["j5"] == pytest.approx(work["j5"] / 8 / 5400)
    assert found["min_yield"] == pytest.approx(1710 / 5400)
    assert (house.out / "f.svg").read_text().startswith("<?xml")


def test_follow_with_a_least_yield_is_figure_1(house):
    """j5 is due at T_1: j3 checkpoints after it, and j5 begins then on its processors and on those kept for it."""
    found = content(house.batwatt("checkpoint", "follow", EXAMPLES / "figure1.json", "--min-yield", "0.2"))
    decisions = {row["id"]: row["decision"] for row in found["periods"][1]["plan"]}
    assert decisions == {"j1": "stop", "j2": "stop", "j3": "checkpoint", "j4": "run", "j5": "recover-later"}
    assert found["periods"][0]["prepared"] == ["j1", "j2"]


def test_k_of_a_course_is_its_largest_change(house):
    path = house.write("c.json", given(COURSE, capacities=[8, 5, 7]))
    explicit = house.write("d.json", given(COURSE, capacities=[8, 5, 7], k=3))
    assert content(house.batwatt("checkpoint", "follow", path)) == content(
        house.batwatt("checkpoint", "follow", explicit)
    )


def test_a_least_yield_in_one_period(house):
    # d has waited for 1800 s; in its place a and b make 16 of 16 processors with c. With it: 8 for all 1800 s, and 8
    # after 120 s of checkpoint and 90 s of recovery: (8 x 1800 + 8 x 1590) / (16 x 1800)
    given = EXAMPLES / "due.json"
    for least, goodput in (("0", 1.0), ("0.4", (1800 + 1590) / 3600)):
        asked = content(house.batwatt("checkpoint", "plan", given, "--min-yield", least))
        assert asked["goodput"] == pytest.approx(goodput)
    done = house.batwatt("checkpoint", "plan", given, "--min-yield", "0.6")
    assert done.code == 2 and "no plan gives every job as much work as is asked for; ask for a smaller" in done.line


def test_front(house):
    words = ["checkpoint", "front", EXAMPLES / "starving.json", "--min-yields", "0.25,0"]
    rows = content(house.batwatt(*words, "--json"))["front"]
    assert [row["asked"] for row in rows] == [0, 0.25]
    # somebody starves without fairness, and it costs goodput that nobody does
    assert rows[0]["min_yield"] == 0.0 == rows[0]["yields"]["wider"]
    assert rows[1]["min_yield"] > 0.25 and rows[1]["goodput"] < rows[0]["goodput"]
    plain = house.batwatt(*words)
    lines = [line.split("\t") for line in plain.out.splitlines()]
    assert lines[0] == ["asked", "goodput", "min_yield", "mean_yield"]
    assert [[float(cell) for cell in line[:3]] for line in lines[1:]] == [
        [row["asked"], row["goodput"], row["min_yield"]] for row in rows
    ]


# bad input -----------------------------------------------------------------------------------------------------------

INSTANCES = {
    "no file": (None, "cannot be read"),
    "cut": ('{"period_s": 3', "is not JSON"),
    "list": ("[]", "must be an object, got list"),
    "deep": ("[" * 100_000, "nested deeper"),
    "no jobs": (given(GOOD, jobs=[]), "jobs must be a list of one or more jobs, got list"),
    "job of another kind": (given(GOOD, jobs=[5]), "job number 1: must be an object, got 5"),
    "no period": (given(GOOD, period_s=DROP), "'period_s' is missing"),
    "period 0": (given(GOOD, period_s=0), "period_s must be a number of s > 0 and up to 1e+12, got 0"),
    "period overflows": ('{"period_s": 1e999, "processors": 2, "jobs": []}', "period_s must be"),
    "period text": (given(GOOD, period_s="100"), "got '100'"),
    "processors fraction": (given(GOOD, processors=8.5), "processors must be a whole number from 1 to 100000, got 8.5"),
    "processors true": (given(GOOD, processors=True), "got True"),
    "processors huge": (given(GOOD, processors=10**80), "got an integer of more than 60 digits"),
    "k too large": (given(GOOD, k=9), "k must be a whole number from 0 to processors (8), got 9"),
    "k NaN": (given(GOOD, k=float("nan")), "k must be a whole number from 0 to `processors`, got NaN"),
    "platform small": (given(GOOD, platform=7), "platform must be >= processors (8), got 7"),
    "a larger change than k": (given(GOOD, k=2, processors_before=5), "changes from 5 to 8, by more than k (2)"),
    "unknown key": (given(GOOD, periods=3), "no key 'periods'; did you mean 'period_s'?"),
    "unknown key of a job": (given(GOOD, job={"state": DROP, "stat": "stopped"}), "did you mean 'state'?"),
    "twice": ('{"period_s": 1, "period_s": 2, "processors": 2, "jobs": []}', "the key 'period_s' appears twice"),
    "job too wide": (given(GOOD, job={"processors": 9}), "job 'x': processors must be <= 8, all that there are, got 9"),
    "job 0 wide": (given(GOOD, job={"processors": 0}), "job 'x': processors must be a whole number from 1 to"),
    "C negative": (given(GOOD, job={"checkpoint_s": -1}), "job 'x': checkpoint_s must be a number of s from 0"),
    "C missing": (given(GOOD, job={"checkpoint_s": DROP}), "job 'x': 'checkpoint_s' is missing"),
    "R huge": (given(GOOD, job={"recovery_s": 10**400}), "job 'x': recovery_s must be a number of s"),
    "nothing left": (given(GOOD, job={"left_s": 0}), "job 'x': left_s must be a number of s > 0"),
    "state": (given(GOOD, job={"state": "run"}), "state must be one of checkpointed, running, stopped, got 'run'"),
    "recovering": (given(GOOD, job={"recovering_s": 1}), "job 'x': recovering_s is of a checkpointed job"),
    "id fraction": (given(GOOD, job={"id": 1.5}), "job number 1: id must be a text or a whole number, got 1.5"),
    "same id": (given(GOOD, jobs=[{**JOB, "id": 1}, {**JOB, "id": "1"}]), "job '1': the id appears twice"),
    "those that run do not fit": (given(GOOD, jobs=three("running")), "without a checkpoint hold 9 of 8 processors"),
    "those that ran did not fit": (
        given(GOOD, jobs=three("checkpointed"), processors_before=7), "need 9 processors, processors_before is 7"
    ),
}  # fmt: skip
PREPARED = {
    "no k": (given(GOOD), "'k' is missing"),
    "too many run": (given(GOOD, jobs=three("checkpointed"), k=1), "that run need 9 processors, processors is 8"),
}
COURSES = {
    "no periods": (given(COURSE, capacities=[]), "capacities must be a list of one or more whole numbers"),
    "a capacity of 0": (given(COURSE, capacities=[8, 0]), "capacities: number 2: capacities must be"),
    "a change beyond k": (given(COURSE, k=1), "capacities change by 2 (8 to 6), k is 1"),
    "k beyond all": (given(COURSE, k=9), "k must be from 0 to 8 processors, got 9"),
    "too wide": (given(COURSE, job={"processors": 9}), "job 'x': processors must be <= 8, all that there are"),
    "platform small of a course": (given(COURSE, platform=5), "platform must be >= the largest of capacities (8)"),
    "no room at the beginning": (given(COURSE, jobs=three("checkpointed", wide=4)), "need 12 processors, there were"),
    "running at the beginning": (given(COURSE, jobs=three("running")), "hold 9 of 8 processors"),
    "no time for a checkpoint": (given(COURSE, job={"checkpoint_s": 200, "processors": 7}), "no time for a checkpoint"),
}
REFUSED = [
    *(("plan", case) for case in INSTANCES.items()),
    *(("prepare", case) for case in PREPARED.items()),
    *((command, case) for case in COURSES.items() for command in ("follow", "front")),
]


@pytest.mark.parametrize(("command", "case"), REFUSED, ids=[f"{command} {case[0]}" for command, case in REFUSED])
def test_bad_instance(house, command, case):
    text, expected = case[1]
    path = house.folder / "i.json"
    if text is not None:
        path.write_text(text)
    done = house.batwatt("checkpoint", command, path)
    assert (done.code, done.out) == (2, "")
    assert done.line.startswith(f"batwatt: {path}: ") and expected in done.line


def test_checkpoints_that_do_not_end_within_the_period(house):
    """Subset sum wants the 8 processors of b, and a cannot be checkpointed in time; the dynamic programme keeps a."""
    jobs = [
        {**JOB, "id": "a", "processors": 5, "checkpoint_s": 200, "state": "running"},
        {**JOB, "id": "b", "processors": 8},
    ]
    path = house.write("i.json", given(GOOD, jobs=jobs))
    done = house.batwatt("checkpoint", "plan", path, "--method", "subset-sum")
    assert done.code == 2 and "take 200 s, the period has 100 s; --method dp may have one" in done.line
    assert content(house.batwatt("checkpoint", "plan", path))["plan"][0]["decision"] == "run"


@pytest.mark.parametrize("recovery_s", ["1e-6", "0"])
def test_tiny_recoveries(house, recovery_s):
    options = f'{{"checkpoint_s": 60, "recovery_s": {recovery_s}, "until_s": 100000}}'
    jobs = house.write("j.csv", "arrival_time,length,cpus\n0,600,3\n0,3000,5\n100,9000,4\n200,4000,6\n")
    words = ["-w", jobs, "--machines", 8, "--capacity", "walk:range=0.6,mean=0.7,step=0.3,period=900"]
    assert house.batwatt("run", *words, "-s", "checkpoint", "-o", options, "-e", house.out / "x").code == 0
