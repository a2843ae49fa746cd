"""Campaigns of machines that come and go: traces with windows, capacities, what is generated, and what keys count."""

from __future__ import annotations

import json
from typing import Any

import pytest
from cli_house import ROOT

from batwatt.inputs.google_like import GoogleLike, google_like, to_text
from batwatt.inputs.spec import parse_series
from batwatt.studies.cells import execute
from batwatt.studies.grid import Sources, task_of, traits
from batwatt.studies.spec import StudySpec
from batwatt.studies.study import StudyFolder, study_in
from batwatt.studies.yaml_model import parse_declared

FILES = {
    "none.txt": "",
    # two jobs as wide as a machine, 100 s each; the second machine goes after 50 s
    "jobs.txt": "1 0 100 2\n2 0 100 2\n",
    "fewer.csv": "time_s,machines\n0,2\n50,1\n",
    "high.csv": "time_s,machines\n0,3\n",
    **{f"walk-{seed}.csv": f"time_s,machines\n0,2\n{10 * seed},1\n" for seed in (1, 2, 3, 4, 5)},
    # two jobs as wide as a machine: hours 0 to 1, and 0 to 2
    "hours.csv": "arrival_time,length,cpus\n0,1,2\n0,2,2\n",
    # half the carbon in the second hour: the budget of 0.5 buys 0.375 and 0.75 of the machines
    "DE.csv": "time_s,carbon_intensity\n0,200\n3600,100\n",
    "boss.xml": "<platform version='4.1'><zone id='z'>{}</zone></platform>".format(
        "".join(f"<host id='{name}' speed='1Gf'/>" for name in ("n1", "n10", "n2", "boss"))
    ),
}
HOUR = {"hours": 1, "jobs_per_hour": 5, "max_servers": 4, "nb_res": 4}
RISK = {
    "platforms": [{"machines": 2, "cores": 2}],
    "workloads": [{"trace": "jobs.txt", "window": [0, 100]}],
    "capacities": ["fewer.csv"],
    "scheduler": "riskaware",
    # by the text: as published, neither job would start before the change
    "options": {"strategy": "first-fit-aware", "as_published": False},
    "label": "{strategy}",
}
SEEDED = RISK | {
    "workloads": [{"trace": "jobs.txt", "window": [0, 100], "reference": "hours.csv"}],
    "capacities": [{"files": "walk-{seed}.csv", "seeds": [4]}],
    "options": {"strategy": "target-asap"},
}
GENERATED = {
    "platforms": [{"machines": 4, "cores": 1}],
    "workloads": [{"google_like": HOUR, "seeds": [3]}],
    "scheduler": "powercap",
    "options": {"response": "none"},
    "label": "x",
}
VARIED = {
    "platforms": [{"machines": 2, "cores": 2}],
    "workloads": [{"trace": "hours.csv", "length_unit": "hours", "window": [0, 7200]}],
    "capacities": [{"spec": "constant:mean=1"}],
    "scheduler": "varcap",
    "options": {"mapping": "base"},
    "label": "{mapping}",
}
FILED = {"platforms": ["p.xml"], "workloads": ["w/a.json"], "scheduler": "powercap", "label": "x"}
PHASED = {"scheduler": "optimum", "options": {}, "label": "x"}
BEST = {"platforms": ["p.xml"], "workloads": ["w/*.json"], "envelopes": ["envelope.csv"], **PHASED}


@pytest.fixture
def risky(small):
    """The folder of studies with traces and capacities worked out by hand."""
    for name, text in FILES.items():
        small.house.write(name, text)
    return small


def merged(study, changes) -> dict[str, Any]:
    """A study with changes; None removes."""
    return {key: value for key, value in (study | changes).items() if value is not None}


def declare(risky, study=RISK, **changes) -> StudyFolder:
    return study_in(risky.declare_all({"only": merged(study, changes)}), risky.results)


def rows_of(risky, study=RISK, **changes) -> list[dict[str, Any]]:
    """Run a study in which no run fails."""
    declare(risky, study, **changes)
    assert risky.run().code == 0, [row["error"] for row in risky.rows()]
    return risky.rows()


def key(risky, study=RISK, **changes) -> str:
    [cell] = declare(risky, study, **changes).cells
    return cell.key


def capacity_names(risky, *entries: dict[str, Any]) -> list[str]:
    return [cell.capacity.name for cell in declare(risky, VARIED, capacities=list(entries)).cells]


# runs by hand --------------------------------------------------------------------------------------------------------


def test_a_row_worked_out_by_hand(risky):
    """The second job is killed after 50 s: 200 core seconds are useful and 100 lost, of 2 x 2 x 50 + 2 x 50."""
    row, wire = rows_of(risky, engines=["embedded", "wire"])
    assert (wire["engine"], wire["goodput"]) == ("wire", row["goodput"])
    assert (row["platform"], row["workload"], row["envelope"], row["capacity"]) == ("2x2", "jobs", None, "fewer")
    assert row["case"] == row["strategy"] == "first-fit-aware" and row["backfilling"] is None
    assert row["goodput"] == pytest.approx(200 / 300, abs=1e-6)
    assert row["aborted_volume"] == pytest.approx(100 / 300, abs=1e-6)
    assert row["mean_aborted_time_s"] == pytest.approx(50) and row["capacity_core_s"] == 300
    assert list(row).index("capacity") == list(row).index("envelope") + 1
    assert " only: first-fit-aware, 2x2 jobs fewer embedded" in risky.log()


def test_a_capacity_by_carbon_by_hand(risky):
    """0.5 x 150 / 200 and 0.5 x 150 / 100 of 8 machines are 3 and 6; in h the jobs take 1 and 2 h of 2 cores each."""
    spec = "carbon:DE.csv,budget=0.5,headroom=0.9"
    [row] = rows_of(risky, VARIED, platforms=[{"machines": 8, "cores": 2}], capacities=[{"spec": spec}])
    assert row["capacity_core_s"] == 2 * (3 + 6) * 3600
    assert row["goodput"] == pytest.approx(6 * 3600 / row["capacity_core_s"])
    assert row["capacity"] == "carbon-DE-0.5-0.9"
    assert (row["cap_structure"], row["cap_mean"], row["cap_headroom"]) == ("carbon", 0.5, 0.9)
    # 0.375 x 200 + 0.75 x 100 is as much as 0.5 x 300, for a mean of 0.5625
    assert row["cap_saved"] == pytest.approx(0.0) and row["cap_gained"] == pytest.approx(0.125)


def test_the_master_and_the_first_hosts_of_a_file(risky):
    study = {"workloads": ["w/a.json"], "options": {"response": "none"}, "scheduler": "powercap"}
    hosts = ({"master_host": "boss"}, {"master_host": "boss", "mmax": 2}, {"master_host": "n1"})
    cells = [declare(risky, study, platforms=[{"files": "boss.xml", **choice}]).cells[0] for choice in hosts]
    assert len({cell.key for cell in cells}) == 3
    assert (cells[1].spec.hosts.master, cells[1].spec.hosts.mmax) == ("boss", 2)
    assert execute(task_of(cells[1], False, None)).status == "done"


# grids, names, rules -------------------------------------------------------------------------------------------------


def test_generated_inputs(risky):
    entry = {"google_like": HOUR, "seeds": [3, 5]}
    rows = rows_of(
        risky, GENERATED, workloads=[entry, {"google_like": {**HOUR, "sigma": 2.0}, "seeds": [3], "name": "hour"}]
    )
    names = ["google-like-3", "google-like-5", "hour-3"]
    assert [row["workload"] for row in rows] == names
    inputs = {path.name: path for path in (risky.out / "inputs").iterdir()}
    assert sorted(inputs) == [f"{name}.json" for name in names]
    assert inputs["google-like-5.json"].read_text() == to_text(google_like(GoogleLike(**HOUR), 5))
    # resumed without its inputs, it gives the same table
    before = risky.bytes()
    risky.cells()[0].unlink()
    for path in inputs.values():
        path.unlink()
    assert risky.batwatt("resume").code == 0
    assert risky.bytes() == before and risky.done_in_log() == 4


def test_names_of_capacities(risky):
    """As in the studies of papers; a quarter of a range of 0.2 is 0.05, by default or explicitly."""
    quarter, explicit = ({"spec": f"walk:range=0.2{more}", "seeds": [1]} for more in ("", ",step=0.05"))
    assert capacity_names(risky, quarter, explicit) == ["walk-0.2-0.05-3600-s1"]
    # a name has the keys that are not usual
    fixed = {"spec": "walk:mean=0.5,window=60,seed=3"}
    assert capacity_names(risky, fixed) == ["walk-0.6-0.15-3600-mean0.5-window60"]
    walk = {"spec": "walk:range=0.4,step=0.3,period=900,mean=0.6", "seeds": [7]}
    expected = {"structure": "walk", "range": 0.4, "step": 0.3, "period_s": 900.0, "mean": 0.6, "seed": 7}
    columns = traits(declare(risky, VARIED, capacities=[walk]).cells[0].capacity)
    assert columns == {f"cap_{name}": value for name, value in expected.items()}
    rules = {"exclude": [{"capacity": "walk-2"}], "keep": [{"capacity": ["walk-3"]}]}
    cells = declare(risky, SEEDED, capacities=[SEEDED["capacities"][0] | {"seeds": [1, 2, 3]}], **rules).cells
    assert [(cell.capacity.name[-1], cell.keep) for cell in cells] == [("1", False), ("3", True)]


def test_one_name_for_two_contents(risky):
    """Studies may have workloads of one name but other parameters: each has a file of its own."""
    loads = ([{"google_like": HOUR | {"sigma": sigma}, "seeds": [1]}] for sigma in (1.0, 2.0))
    studies = {f"s{n}": GENERATED | {"workloads": load} for n, load in enumerate(loads)}
    one, two = study_in(risky.declare_all(studies), risky.results).cells
    assert one.workload.name == two.workload.name == "google-like-1"
    assert one.spec.workloads != two.spec.workloads and one.key != two.key
    assert risky.run().code == 0 and len([*(risky.out / "inputs").iterdir()]) == 2


def test_options_that_inputs_set(risky):
    def options_of(**changes: Any) -> tuple[dict[str, Any], str | None]:
        """The options that the scheduler of the first run gets, and its reference."""
        options = dict(task_of(declare(risky, SEEDED, **changes).cells[0], False, None).spec.options)
        return options, options.pop("reference", None)

    options, reference = options_of()
    assert options == {"strategy": "target-asap", "seed": 4}
    assert reference == (risky.folder / "hours.csv").resolve()
    # what is declared goes first
    options, reference = options_of(options={"strategy": "target-asap", "reference": None})
    assert options == {"strategy": "target-asap", "seed": 4} and reference is None
    assert options_of(seeds=[8])[0]["seed"] == 8
    # a file tells nothing
    files = {"capacities": ["fewer.csv"], "workloads": [{"trace": "jobs.txt"}]}
    assert options_of(**files) == ({"strategy": "target-asap"}, None)
    files["workloads"] = [{"trace": "jobs.txt", "reference": "jobs.txt"}]
    assert options_of(**files)[1] == (risky.folder / "jobs.txt").resolve()
    # and a scheduler that has no such options is told nothing
    assert options_of(scheduler="easyBackfill", options={}, label="x") == ({}, None)
    # the seed of a walk is that of random terminations
    for seeds, seed in ((None, 5), ([9], 9)):
        cells = declare(risky, VARIED, capacities=[{"spec": "walk:", "seeds": [5]}], seeds=seeds).cells
        assert cells[0].spec.options["seed"] == seed
    assert "seed" not in declare(risky, VARIED, capacities=[{"spec": "walk:seed=5"}]).cells[0].spec.options


def test_walks_are_levelled_over_the_window_of_the_workload(risky):
    walk = {"spec": "walk:range=0.6", "seeds": [1]}
    spec = declare(risky, VARIED, capacities=[walk]).cells[0].spec.capacity
    expected = parse_series("machines", "walk:range=0.6,window=7200,seed=1")
    assert spec.timeline(None, 1e6, 100).values == expected.timeline(None, 1e6, 100).values


# keys ----------------------------------------------------------------------------------------------------------------

TRACE = VARIED["workloads"][0]
COUNTS = [
    (RISK, {"platforms": [{"machines": 3, "cores": 2}]}),
    (RISK, {"capacities": ["high.csv"], "platforms": [{"machines": 3, "cores": 2}]}),
    (RISK, {"workloads": [{"trace": "jobs.txt", "window": [1, 100]}]}),
    (RISK, {"workloads": [{"trace": "jobs.txt", "window": [0, 100], "reference": "jobs.txt"}]}),
    (SEEDED, {"capacities": [{"files": "walk-{seed}.csv", "seeds": [5]}]}),
    (SEEDED, {"workloads": [{"trace": "jobs.txt", "window": [0, 100], "reference": "jobs.txt"}]}),
    (SEEDED, {"seeds": [5]}),
    (GENERATED, {"workloads": [{"google_like": HOUR, "seeds": [4]}]}),
    (GENERATED, {"workloads": [{"google_like": HOUR | {"sigma": 2.0}, "seeds": [3]}]}),
    (VARIED, {"workloads": [TRACE | {"length_unit": "s"}]}),
    (VARIED, {"capacities": [{"spec": "carbon:DE.csv,headroom=0.9"}]}),
    (FILED, {"workloads": [{"files": "w/a.json", "ignore_communication": True}]}),
]


@pytest.mark.parametrize(("study", "change"), COUNTS, ids=[str(change)[:70] for _, change in COUNTS])
def test_what_changes_the_key(risky, study, change):
    assert key(risky, study, **change) != key(risky, study)


def test_what_does_not(risky):
    before, usual = key(risky), key(risky, VARIED, capacities=[{"spec": "carbon:DE.csv"}])
    risky.house.write("same.csv", FILES["fewer.csv"])
    risky.house.write("alike.txt", FILES["jobs.txt"])
    again = {"capacities": ["same.csv"], "workloads": [{"trace": "alike.txt", "window": [0, 100.0]}]}
    assert key(risky, **again, label="other") == before
    assert key(risky, FILED, workloads=[{"files": "w/a.json", "ignore_communication": False}]) == key(risky, FILED)
    (risky.folder / "elsewhere").mkdir()
    risky.house.write("elsewhere/copy.csv", FILES["DE.csv"])
    assert key(risky, VARIED, capacities=[{"spec": "carbon:elsewhere/copy.csv", "name": "other"}]) == usual
    risky.house.write("DE.csv", FILES["DE.csv"].replace("100", "101"))
    assert key(risky, VARIED, capacities=[{"spec": "carbon:DE.csv"}]) != usual


# mistakes ------------------------------------------------------------------------------------------------------------

MISTAKES = [
    (RISK, {"workloads": [{"trace": "jobs.txt", "ignore_communication": True}]},
     "`ignore_communication` does not go with `trace`"),
    (RISK, {"platforms": [{"machines": 2}]}, "platforms[0]: must be a path, or `machines` and `cores`"),
    (RISK, {"platforms": [{"machines": 2, "cores": 1, "mmax": 1}]}, "`master_host` and `mmax` go with `files` only"),
    (RISK, {"platforms": [{"machines": 2, "cores": 2}] * 2}, "platforms: a file appears twice"),
    (RISK, {"workloads": ["jobs.txt"]}, "workloads[0]: the file 'jobs.txt' is a trace of jobs by its name"),
    (RISK, {"workloads": [{"trace": "jobs.txt"}, {"trace": "jobs.txt", "window": [0, 9]}]}, "both be called 'jobs'"),
    (GENERATED, {"workloads": [{"google_like": HOUR}]}, "`google_like` needs `seeds`"),
    (GENERATED, {"workloads": [{"google_like": HOUR, "seeds": [1], "window": [0, 9]}]}, "`window` does not go with"),
    (RISK, {"capacities": [{"files": "fewer.csv", "seeds": [1]}]}, "`seeds` and {seed} in the path go together"),
    (RISK, {"capacities": [{"files": "walk-{seed}.csv"}]}, "`seeds` and {seed} in the path go together"),
    (RISK, {"capacities": [{}]}, "must be a path, or `spec`"),
    (RISK, {"capacities": [{"files": "fewer.csv", "platforms": ["2x3"]}]}, "no platform '2x3'; did you mean '2x2'?"),
    (RISK, {"capacities": None}, "option 'capacity': the scheduler needs one"),
    (RISK, PHASED, "'x': the optimum takes neither capacities nor machines"),
    (BEST, {"options": {"response": "hfld"}}, "option 'response': is not one of the optimum"),
    (BEST, {"envelopes": None}, "the optimum needs one"),
    (BEST, {"events": "none.txt"}, "the optimum takes no events"),
    (VARIED, {"capacities": [{"spec": "DE.csv"}]}, "capacities[0]: 'DE.csv' describes no capacity"),
    (VARIED, {"capacities": [{"spec": "walk:range={range}"}]}, "names 'range', which is not in"),
    (VARIED, {"capacities": [{"spec": "walk:range={range}", "grid": {"range": [0.2, 0.2]}}]}, "of different values"),
    (VARIED, {"capacities": [{"spec": "walk:range={r}", "grid": {"r": [0.2, 0.4]}, "name": "x"}]}, "called 'x'"),
    (VARIED, {"capacities": [{"spec": "constant:mean=1.6"}]}, "requires 3 machines of 2"),
]  # fmt: skip


@pytest.mark.parametrize(("study", "change", "problem"), MISTAKES, ids=[row[2][:60] for row in MISTAKES])
def test_mistakes(risky, study, change, problem):
    risky.declare_all({"only": merged(study, change)})
    ended = risky.run()
    assert ended.code == 2 and problem in ended.line, ended.err
    assert not risky.cells()


def test_comparisons_without_a_file_that_is_not_shipped_are_left_out(risky):
    """One line for each file; `--only` and `--clean` need it, and any other file is needed as before."""
    absent = {name: RISK | {"workloads": [{"trace": f"{name}.txt"}]} for name in ("one", "two")}
    studies = {**absent, "three": RISK}
    risky.declare_all(studies, not_shipped={"one.txt": "get it at 100 % of a.example", "other.txt": "ask"})
    ended = risky.run()
    assert ended.code == 2 and "comparisons.two.workloads[0]: the file 'two.txt' is not there" in ended.line
    risky.declare_all(studies, not_shipped={"one.txt": "get it at 100 % of a.example", "two.txt": "ask"})
    ended = risky.run()
    assert ended.code == 0 and [row["comparison"] for row in risky.rows()] == ["three"]
    assert "one.txt is not there, so one is left out: get it at 100 % of a.example" in ended.err
    assert "two.txt is not there, so two is left out: ask" in ended.err
    assert risky.run("--only", "one").code == 2
    assert risky.run("--status").code == 0
    assert risky.run("--clean").code == 2


def test_an_input_that_is_not_there_is_needed_by_its_studies_only(risky):
    (risky.folder / "borg").mkdir()
    risky.house.write("borg/README.md", "how to get them")
    absent = RISK | {"workloads": [{"trace": "borg/x.txt"}]}
    risky.declare_all({"one": absent, "two": RISK, "three": RISK})
    ended = risky.run()
    assert ended.code == 2 and "comparisons.one.workloads[0]: the file 'borg/x.txt' is not there" in ended.line
    assert f"see {risky.folder.resolve() / 'borg' / 'README.md'}; --only two does without" in ended.line
    assert risky.run("--only", "one").code == 2
    ended = risky.run("--only", "two")
    assert ended.code == 0 and [line.split()[0] for line in ended.out.splitlines()[1:3]] == ["two", "three"]
    assert [row["comparison"] for row in risky.rows()] == ["two", "three"] and risky.done_in_log() == 1
    # what may belong to it is not called stale, let alone removed
    for command in ("status", "clean"):
        assert risky.batwatt(command).code == 2
    risky.house.write("borg/x.txt", FILES["jobs.txt"])
    assert risky.run().code == 0
    assert [row["comparison"] for row in risky.rows()] == ["one", "two", "three"] and risky.done_in_log() == 2


def test_runs_of_a_kept_trace_do_not_change_it(risky):
    """The third run of a process has what the first had: a job that is killed twice is not remembered."""
    cells = declare(risky, grid={"strategy": ["first-fit-aware", "target-asap"]}, options=None).cells
    tasks = [task_of(cell, False, None) for cell in cells]
    once = [execute(task).figures for task in tasks]
    assert once[0] and [execute(task).figures for task in reversed(tasks)] == once[::-1]


def test_the_studies_of_the_docs(risky):
    """Each example that is a whole study is read; those of machines have the rows that they tell of."""
    text = (ROOT / "docs" / "reference" / "study.md").read_text()
    examples = [block.partition("```")[0] for block in text.split("```yaml\n")[1:] if "\ncomparisons:" in block[:2000]]
    studies = [block for block in examples if "\nsignal:" not in block]  # others are studies of plans
    read = {declared.name: declared for declared in (parse_declared(block, "docs", StudySpec) for block in studies)}
    assert {"example", "risk", "varied"} <= set(read)
    sources = Sources(risky.folder, risky.out)
    (risky.folder / "inputs").mkdir()
    for name in ("uniform-20000-0.txt", "uniform-20000-1.txt", "uniform-20000-1000.txt", "long-0.1-0.csv"):
        risky.house.write(f"inputs/{name}", "x")
    for seed in range(3):
        risky.house.write(f"inputs/walk-24-8-1200-{seed}.csv", "x")
    risk, varied = read["risk"].effective()["synthetic"], read["varied"].effective()["ranges"]
    assert [file.name for file in sources.workloads(risk.workloads, "docs")] == ["uniform-20000-0", "uniform-20000-1"]
    assert [file.name for file in sources.capacities(risk.capacities, "docs")][-1] == "walk-24-8-1200-2"
    assert [file.name for file in sources.workloads(varied.workloads, "docs")] == ["long-0.1-0"]
    names = [capacity.name for capacity in sources.capacities(varied.capacities, "docs")]
    assert [names[0], names[1], names[-1]] == ["constant-0.7", "walk-0.2-0.05-3600-s1", "uniform-0.6-3600-s3"]


MACHINES = ("--machines", 4, "--cores", 1)
ALIKE = {
    "varcap with watts": ("varcap", {}, False, "envelope"),
    "varcap with both": ("varcap", {}, False, "both"),
    "powercap with machines": ("powercap", {"response": "none"}, False, "capacity"),
    "frugal on machines": ("powercap", {"response": "frugal"}, True, "envelope"),
    "jobpower on machines": ("jobpower", {}, True, "envelope"),
    "multifactor": ("multifactor", {}, True, "envelope"),
    "oversubscribed": ("oversubscribed", {}, True, "capacity"),
}


@pytest.mark.parametrize("scheduler, options, machines, limit", ALIKE.values(), ids=ALIKE)
def test_studies_take_what_run_takes(small, scheduler, options, machines, limit):
    """Watts for a scheduler of machines, machines for one of watts, and machines without a platform file."""
    small.house.write("capacity.csv", "time_s,machines\n0,4\n5,2\n")
    small.declare(
        platforms=[{"machines": 4, "cores": 1}] if machines else ["p.xml"],
        workloads=["w/a.json"],
        envelopes=["envelope.csv"] if limit != "capacity" else None,
        capacities=["capacity.csv"] if limit != "envelope" else None,
        scheduler=scheduler,
        options=options,
        grid=None,
        label="x",
    )
    ended = small.run()
    assert ended.code == 0, ended.err
    words = [*(MACHINES if machines else ("-p", small.folder / "p.xml")), "-w", small.folder / "w" / "a.json"]
    words += ["--envelope", small.folder / "envelope.csv"] if limit != "capacity" else []
    words += ["--capacity", small.folder / "capacity.csv"] if limit != "envelope" else []
    house = small.house
    run = house.batwatt("run", *words, "-s", scheduler, "-o", json.dumps(options), "-e", house.out / "x")
    assert run.code == 0, run.err
    [row] = small.rows()
    metrics = house.metrics()
    assert {name: row[name] for name in metrics} == metrics
