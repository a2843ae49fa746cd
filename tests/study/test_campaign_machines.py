"""Campaigns of machines that come and go: traces with windows, capacities, machines without a file, references."""

from __future__ import annotations

import json
from typing import Any

import pytest
from cli_house import ROOT

from batwatt.inputs.description import Inputs
from batwatt.inputs.load import load
from batwatt.inputs.series.capacity import read_capacity, to_csv
from batwatt.inputs.series.capacity_walk import Walk, random_walk
from batwatt.inputs.traces.riskaware_text import read_riskaware
from batwatt.inputs.workloads.pmbs_synthetic import Synthetic, synthetic
from batwatt.model.window import Window
from batwatt.run.find_scheduler import scheduler_class
from batwatt.run.resolve import needs_of
from batwatt.run.spec import RunSpec
from batwatt.study.campaign import CampaignFolder, campaign_in
from batwatt.study.execute import execute, task_of
from batwatt.study.sources import Sources
from batwatt.study.spec import Campaign
from batwatt.study.yaml_model import parse_declared

STRATEGIES = ["first-fit-aware", "first-fit-unaware", "target-stretch", "target-asap", "packed-target-asap"]
# two jobs as wide as a machine, 100 s each; the second machine goes after 50 s
JOBS = "1 0 100 2\n2 0 100 2\n"
FEWER = "time_s,machines\n0,2\n50,1\n"
DAY = {"kind": "uniform", "jobs": 40, "end_s": 86400, "machines": 3, "cores": 4}
WALK = {"mean": 3, "range": 2, "end_s": 86400}


def study(**changes: Any) -> dict[str, Any]:
    found = {
        "platforms": [{"machines": 2, "cores": 2}],
        "workloads": [{"trace": "jobs.txt", "window": [0, 100]}],
        "capacities": ["fewer.csv"],
        "scheduler": "riskaware",
        # by the text: as published, neither job would start before the change
        "options": {"strategy": "first-fit-aware", "as_published": False},
        "label": "{strategy}",
    } | changes
    return {key: value for key, value in found.items() if value is not None}


@pytest.fixture
def risky(small):
    """The folder of campaigns with a trace and a capacity worked out by hand."""
    small.house.write("jobs.txt", JOBS)
    small.house.write("fewer.csv", FEWER)
    return small


def declare(risky, **changes) -> CampaignFolder:
    return campaign_in(risky.declare_all({"only": study(**changes)}), risky.results)


def test_a_row_worked_out_by_hand(risky):
    """The second job is killed after 50 s: 200 core seconds are useful and 100 lost, of 2 x 2 x 50 + 2 x 50."""
    declare(risky)
    assert risky.run().code == 0, risky.rows()
    [row] = risky.rows()
    assert (row["platform"], row["workload"], row["envelope"], row["capacity"]) == ("2x2", "jobs", None, "fewer")
    assert row["label"] == row["strategy"] == "first-fit-aware" and row["backfilling"] is None
    assert row["goodput"] == pytest.approx(200 / 300, abs=1e-6)
    assert row["aborted_volume"] == pytest.approx(100 / 300, abs=1e-6)
    assert row["mean_aborted_time_s"] == pytest.approx(50) and row["capacity_core_s"] == 300
    names = list(row)
    assert names.index("capacity") == names.index("envelope") + 1
    assert " only: first-fit-aware, 2x2 jobs fewer embedded" in risky.log()


def test_without_a_window_both_jobs_complete(risky):
    declare(risky, workloads=[{"trace": "jobs.txt"}])
    assert risky.run().code == 0
    [row] = risky.rows()
    # the second job runs again from 100 to 200 s: 400 of 2 x 2 x 50 + 2 x 150 core seconds
    assert row["completed_fraction"] == 1.0 and row["goodput"] == pytest.approx(400 / 500, abs=1e-6)


def test_the_order_of_the_rows(risky):
    risky.house.write("more.csv", FEWER)
    found = declare(risky, platforms=[{"machines": 2, "cores": 2}, {"machines": 3, "cores": 2}, "p.xml"],
                    workloads=[{"trace": "jobs.txt"}, "w/a.json"], capacities=["more.csv", "fewer.csv"],
                    engines=["embedded", "wire"]).cells  # fmt: skip
    rows = [(cell.platform.name, cell.workload.name, cell.capacity.name, cell.engine) for cell in found]
    assert rows[:5] == [
        ("2x2", "jobs", "more", "embedded"),
        ("2x2", "jobs", "more", "wire"),
        ("2x2", "jobs", "fewer", "embedded"),
        ("2x2", "jobs", "fewer", "wire"),
        ("2x2", "a", "more", "embedded"),
    ]
    assert [row[0] for row in rows[::8]] == ["2x2", "3x2", "p"]


def test_files_may_be_machines_too(risky):
    """The four hosts of a platform file are four machines of one core."""
    risky.house.write("jobs.txt", "1 0 100 1\n2 0 100 1\n")
    declare(risky, platforms=["p.xml"])
    assert risky.run().code == 0, risky.rows()[0]["error"]
    assert risky.rows()[0]["platform"] == "p" and risky.rows()[0]["goodput"] == pytest.approx(100 / 150, abs=1e-6)


def test_traces_in_other_formats(risky):
    risky.house.write("jobs.csv", "arrival_time,length,cpus\n0,100,2\n0,100,2\n")
    declare(risky, workloads=[{"trace": "jobs.csv", "window": [0, 100]}])
    assert risky.run().code == 0
    assert risky.rows()[0]["goodput"] == pytest.approx(200 / 300, abs=1e-6)


def test_what_is_generated(risky):
    declared = declare(
        risky,
        platforms=[{"machines": 6, "cores": 4}],
        workloads=[{"pmbs": DAY, "seeds": [3, 5], "reference_seed": 9, "window": [3600, 86400]}],
        capacities=[{"walk": WALK, "seeds": [1, 7]}, {"walk": WALK | {"period_s": 0.5e4, "stay": False}, "seeds": [1]}],
        options={"strategy": "target-asap"},
    )
    names = [(cell.workload.name, cell.capacity.name) for cell in declared.cells]
    capacities = ["walk-3-2-1200-1", "walk-3-2-1200-7", "walk-3-2-5000-1"]
    assert names == [(f"uniform-40-{seed}", name) for seed in (3, 5) for name in capacities]
    assert risky.run().code == 0, [row["error"] for row in risky.rows()]
    assert all(0 < row["goodput"] < 1 for row in risky.rows())
    inputs = {path.name: path for path in (risky.out / "inputs").iterdir()}
    assert sorted(inputs) == [
        *("uniform-40-3.txt", "uniform-40-5.txt", "uniform-40-9.txt"),
        *(f"{name}.csv" for name in capacities),
    ]
    assert read_riskaware(inputs["uniform-40-9.txt"]) == synthetic(Synthetic(**DAY), 9)
    assert inputs["walk-3-2-1200-7.csv"].read_text() == to_csv(random_walk(Walk(**WALK), 7))
    own = random_walk(Walk(**WALK, period_s=5000, stay=False), 1)
    assert read_capacity(inputs["walk-3-2-5000-1.csv"], 6).values == own.values


def test_one_name_for_two_contents(risky):
    """Studies may have walks of one name but other steps: each has a file of its own."""
    common = {"platforms": [{"machines": 6, "cores": 2}]}
    one = study(**common, capacities=[{"walk": WALK | {"step": 1}, "seeds": [1]}])
    two = study(**common, capacities=[{"walk": WALK | {"step": 2}, "seeds": [1]}])
    found = campaign_in(risky.declare_all({"one": one, "two": two}), risky.results).cells
    assert [cell.capacity.name for cell in found] == ["walk-3-2-1200-1"] * 2
    assert found[0].inputs.capacity != found[1].inputs.capacity and found[0].key != found[1].key
    assert risky.run().code == 0 and len(list((risky.out / "inputs").iterdir())) == 2


def told(risky, **changes) -> tuple[dict[str, Any], str | None]:
    """The options that the scheduler of the first run gets, and its reference."""
    cell = declare(risky, **changes).cells[0]
    options = dict(task_of(cell, False, None).spec.options)
    return options, options.pop("reference", None)


GENERATED = {
    "platforms": [{"machines": 6, "cores": 4}],
    "workloads": [{"pmbs": DAY, "seeds": [3], "reference_seed": 9}],
    "capacities": [{"walk": WALK, "seeds": [4]}],
    "options": {"strategy": "target-asap"},
}


def test_what_schedulers_are_told_of_generated_inputs(risky):
    options, reference = told(risky, **GENERATED)
    assert options == {"strategy": "target-asap", "always": 1, "seed": 4}
    assert reference == str((risky.out / "inputs" / "uniform-40-9.txt").resolve())
    # what is declared goes first
    own = {"strategy": "target-asap", "always": 0, "reference": None}
    options, reference = told(risky, **GENERATED | {"options": own})
    assert options == {"strategy": "target-asap", "always": 0, "seed": 4} and reference is None
    assert told(risky, **GENERATED, seeds=[8])[0]["seed"] == 8
    # a file tells nothing
    files = {"capacities": ["fewer.csv"], "workloads": [{"trace": "jobs.txt"}]}
    assert told(risky, **GENERATED | files) == ({"strategy": "target-asap"}, None)
    files["workloads"] = [{"trace": "jobs.txt", "reference": "jobs.txt"}]
    assert told(risky, **GENERATED | files)[1] == str((risky.folder / "jobs.txt").resolve())
    # and a scheduler that has no such options is told nothing
    foreign = {"scheduler": "easyBackfill", "options": {}, "label": "x"}
    assert told(risky, **GENERATED | foreign) == ({}, None)


def key(risky, **changes) -> str:
    [cell] = declare(risky, **changes).cells
    return cell.key


@pytest.mark.parametrize(
    "change",
    [
        {"platforms": [{"machines": 3, "cores": 2}]},
        {"platforms": ["p.xml"]},
        {"capacities": ["other.csv"]},
        {"capacities": None},
        {"workloads": [{"trace": "jobs.txt"}]},
        {"workloads": [{"trace": "jobs.txt", "window": [0, 101]}]},
        {"workloads": [{"trace": "jobs.txt", "window": [1, 100]}]},
        {"workloads": [{"trace": "jobs.txt", "window": [0, 100], "reference": "jobs.txt"}]},
    ],
)
def test_what_changes_the_key(risky, change):
    risky.house.write("other.csv", FEWER + "60,2\n")
    assert key(risky, **change) != key(risky)


def test_what_does_not(risky):
    before = key(risky)
    risky.house.write("same.csv", FEWER)
    risky.house.write("alike.txt", JOBS)
    again = {"capacities": ["same.csv"], "workloads": [{"trace": "alike.txt", "window": [0, 100.0]}]}
    assert key(risky, **again, label="other") == before


@pytest.mark.parametrize(
    "change",
    [
        {"capacities": [{"walk": WALK, "seeds": [5]}]},
        {"capacities": [{"walk": WALK | {"range": 1}, "seeds": [4]}]},
        {"workloads": [{"pmbs": DAY, "seeds": [4], "reference_seed": 9}]},
        {"workloads": [{"pmbs": DAY, "seeds": [3], "reference_seed": 8}]},
        {"workloads": [{"pmbs": DAY, "seeds": [3]}]},
        {"workloads": [{"pmbs": DAY | {"kind": "3types"}, "seeds": [3], "reference_seed": 9}]},
        {"seeds": [5]},
    ],
)
def test_what_is_generated_counts(risky, change):
    assert key(risky, **GENERATED | change) != key(risky, **GENERATED)


def test_a_point_that_two_sweeps_share_is_run_once(risky):
    """As in pmbs23.yaml: the usual walk is a value of each sweep, and of each platform."""
    seeds = [0, 1]
    usual = {"walk": WALK, "seeds": seeds}
    common = {key: GENERATED[key] for key in ("workloads", "options")}
    platforms = [{"machines": 6, "cores": cores} for cores in (4, 8)]
    studies = {
        "period": study(**common, platforms=platforms[:1],
                        capacities=[usual, {"walk": WALK | {"period_s": 3600}, "seeds": seeds}]),
        "range": study(**common, platforms=platforms[:1],
                       capacities=[{"walk": WALK | {"range": 1}, "seeds": seeds}, usual]),
        "cores": study(**common, platforms=platforms,
                       capacities=[usual | {"platforms": ["6x4"]},
                                   {"walk": WALK | {"mean": 2, "range": 1}, "seeds": seeds, "platforms": ["6x8"]}]),
    }  # fmt: skip
    found = campaign_in(risky.declare_all(studies), risky.results).cells
    assert len(found) == 12 and len({cell.key for cell in found}) == 8
    cores = [(cell.platform.name, cell.capacity.name) for cell in found if cell.study == "cores"]
    assert cores == [(p, f"walk-{w}-1200-{seed}") for p, w in (("6x4", "3-2"), ("6x8", "2-1")) for seed in seeds]
    assert risky.run().code == 0 and risky.done_in_log() == 8 and len(risky.rows()) == 12


def test_rules_name_capacities_and_platforms(risky):
    capacities = [{"walk": WALK, "seeds": [1, 2, 3]}]
    rules = {"exclude": [{"capacity": "walk-3-2-1200-2"}], "keep": [{"capacity": ["walk-3-2-1200-3"]}]}
    found = declare(risky, platforms=[{"machines": 6, "cores": 2}], capacities=capacities, **rules).cells
    assert [(cell.capacity.name[-1], cell.keep) for cell in found] == [("1", False), ("3", True)]


def test_a_run_is_the_same_on_the_wire(risky):
    declare(risky, **GENERATED, engines=["embedded", "wire"])
    assert risky.run().code == 0, [row["error"] for row in risky.rows()]
    keys = {row["key"] for row in risky.rows()}
    embedded, same = ({k: v for k, v in row.items() if k not in ("engine", "key")} for row in risky.rows())
    assert embedded == same and embedded["goodput"] > 0 and len(keys) == 2
    # the table has what was declared
    assert json.loads(embedded["options"]) == {"strategy": "target-asap"}


def test_resumed_it_gives_the_same_table(risky):
    declare(risky, **GENERATED | {"capacities": [{"walk": WALK, "seeds": [1, 2]}]})
    assert risky.run().code == 0
    before = risky.bytes()
    risky.cells()[0].unlink()
    for path in (risky.out / "inputs").iterdir():
        path.unlink()
    assert risky.campaign("resume", risky.out).code == 0
    assert risky.bytes() == before and risky.done_in_log() == 3


MISTAKES = [
    ({"platforms": [{"machines": 2}]}, "platforms[0]: must be a path, or `machines` and `cores`"),
    ({"platforms": [{"files": "p.xml", "cores": 2}]}, "platforms[0]: must be a path, or `machines` and `cores`"),
    ({"platforms": [{"machines": 0, "cores": 2}]}, "platforms[0]: machines: machines must be a whole number >= 1"),
    ({"platforms": [{"machines": 2, "cores": 2}] * 2}, "platforms: a file appears twice"),
    ({"workloads": ["jobs.txt"]}, "workloads[0]: the file 'jobs.txt' is a trace of jobs by its name"),
    ({"workloads": [{"trace": "w/a.json"}]}, "the file 'w/a.json' is no trace of jobs by its name"),
    ({"workloads": [{"trace": "no.txt"}]}, "workloads[0]: the file 'no.txt' is not there"),
    ({"workloads": [{"trace": "no*.txt"}]}, "workloads[0]: no file matches 'no*.txt'"),
    ({"workloads": [{"trace": "jobs.txt", "seeds": [1]}]}, "`seeds` does not go with `trace`"),
    ({"workloads": [{"files": "w/a.json", "window": [0, 1]}]}, "`window` does not go with `files`"),
    ({"workloads": [{"trace": "jobs.txt", "pmbs": {}}]}, "workloads[0]: must be a path, or `google_like`"),
    ({"workloads": [{"trace": "jobs.txt", "window": [5, 5]}]}, "must be [begin, end] in s with 0 <= begin < end"),
    ({"workloads": [{"trace": "jobs.txt", "window": [5]}]}, "window: list should have at least 2 items"),
    ({"workloads": [{"trace": "jobs.txt", "window": [500, 600]}]}, "no job in the window [500, 600] s, of 2"),
    ({"workloads": [{"trace": "jobs.txt"}, {"trace": "jobs.txt", "window": [0, 9]}]}, "would both be called 'jobs'"),
    ({"workloads": [{"pmbs": {}}]}, "workloads[0]: `pmbs` needs `seeds`"),
    ({"workloads": [{"pmbs": {"weeks": 3}, "seeds": [1]}]}, "pmbs has no parameter 'weeks', known: blur, cores, end_s"),
    ({"workloads": [{"pmbs": DAY, "seeds": [1], "window": [86400, 90000]}]}, "begins at 86400 s, the trace ends at"),
    ({"workloads": [{"trace": "jobs.txt", "reference": "no.txt"}]}, "workloads[0]: the file 'no.txt' is not there"),
    ({"workloads": [{"trace": "jobs.txt", "reference": "fewer.csv"}]}, "fewer.csv: line 1: has 1 fields"),
    ({"capacities": ["no.csv"]}, "capacities[0]: the file 'no.csv' is not there"),
    ({"capacities": ["high.csv"]}, "high.csv: at 0 s: machines must be in [0, 2], got 3"),
    ({"capacities": [{"walk": {}}]}, "must be a path, or `walk` (parameters, {} for the usual ones) with `seeds`"),
    ({"capacities": [{"walk": {"mean": 2.5}, "seeds": [1]}]}, "capacities[0]: random walk: mean must be a whole"),
    ({"capacities": [{"walk": WALK, "seeds": [1]}]}, "machines must be in [0, 2]"),
    ({"capacities": [{"files": "fewer.csv", "platforms": ["2x3"]}]}, "no platform '2x3'; did you mean '2x2'?"),
    ({"capacities": None}, "option 'capacity': the scheduler needs one"),
    ({"options": {"strategy": "first-fit-aware", "capacity": "fewer.csv"}}, "declare it under 'capacities'"),
    ({"options": {"strategy": "first-fit"}}, "only: 'first-fit': "),
    ({"scheduler": "powercap", "options": {"response": "none"}, "label": "x"}, "no option 'capacity'"),
    ({"scheduler": "optimum", "options": {}, "label": "x"}, "'x': the optimum knows neither capacities nor machines"),
]  # fmt: skip


@pytest.mark.parametrize("change, told", MISTAKES)
def test_mistakes(risky, change, told):
    risky.house.write("high.csv", "time_s,machines\n0,3\n")
    risky.declare_all({"only": study(**change)})
    ended = risky.run()
    assert ended.code == 2 and told in ended.line, ended.err
    assert not risky.cells()


def test_an_input_that_is_not_there_is_needed_by_its_studies_only(risky):
    (risky.folder / "borg").mkdir()
    risky.house.write("borg/README.md", "how to get them")
    there = study()
    path = risky.declare_all({"one": study(workloads=[{"trace": "borg/x.txt"}]), "two": there, "three": there})
    ended = risky.run()
    assert ended.code == 2 and "studies.one.workloads[0]: the file 'borg/x.txt' is not there" in ended.line
    assert f"see {risky.folder.resolve() / 'borg' / 'README.md'}; --only two does without" in ended.line
    assert risky.run("--only", "one").code == 2
    ended = risky.run("--only", "two")
    assert ended.code == 0 and [line.split()[0] for line in ended.out.splitlines()[1:3]] == ["two", "three"]
    assert [row["study"] for row in risky.rows()] == ["two", "three"] and risky.done_in_log() == 1
    # what may belong to it is not called stale, let alone removed
    for command in ("status", "clean"):
        assert risky.campaign(command, path).code == 2
    risky.house.write("borg/x.txt", JOBS)
    assert risky.run().code == 0
    assert [row["study"] for row in risky.rows()] == ["one", "two", "three"] and risky.done_in_log() == 2


def gathered(risky, scheduler="riskaware", **changes):
    machines = declare(risky).cells[0].inputs.platform
    inputs = Inputs(machines, (risky.folder / "jobs.txt",), **{"window": Window(0, 100)} | changes)
    return load(inputs, needs_of(RunSpec(inputs, scheduler), scheduler_class(scheduler)))


def test_a_trace_is_read_once_as_long_as_it_stays_the_same(risky):
    first = gathered(risky)
    assert gathered(risky).workloads[0] is first.workloads[0] and gathered(risky).platform is first.platform
    other = gathered(risky, window=Window(0, 50))
    assert other.workloads[0] is not first.workloads[0] and len(other.workloads[0].jobs) == 2
    risky.house.write("jobs.txt", JOBS + "3 50 10 1\n")
    changed = gathered(risky).workloads[0]
    assert [job.id for job in changed.jobs] == ["w0!1", "w0!2", "w0!3"]
    # a scheduler of somebody else may change what it is told
    assert gathered(risky, "easyBackfill").workloads[0] is not gathered(risky).workloads[0]


def test_runs_of_a_kept_trace_do_not_change_it(risky):
    """The third run of a process has what the first had: a job that is killed twice is not remembered."""
    cells = declare(risky, grid={"strategy": STRATEGIES}, options=None).cells
    tasks = [task_of(cell, False, None) for cell in cells]
    once = [execute(task).figures for task in tasks]
    assert once[0] and [execute(task).figures for task in reversed(tasks)] == once[::-1]


def test_the_campaigns_of_the_docs(risky):
    """Each example that is a whole campaign is read; the one of machines has the rows that it tells of."""
    text = (ROOT / "docs" / "reference" / "campaigns.md").read_text()
    examples = [block.partition("```")[0] for block in text.split("```yaml\n")[1:] if "\nstudies:" in block[:2000]]
    campaigns = [block for block in examples if "\nsignal:" not in block]  # others are studies of plans
    read = {found.name: found for found in (parse_declared(block, "docs", Campaign) for block in campaigns)}
    assert {"example", "risk"} <= set(read)
    study = read["risk"].effective()["synthetic"]
    names = Sources(risky.folder, risky.out)
    assert [file.name for file in names.workloads(study.workloads, "docs")] == ["uniform-20000-0", "uniform-20000-1"]
    assert [file.name for file in names.capacities(study.capacities, "docs")][-1] == "walk-24-8-1200-2"
