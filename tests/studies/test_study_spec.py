"""What may be declared, and how each mistake is told: one line with file, place, value and the way out."""

from __future__ import annotations

import pytest
from cli_house import ROOT

from batwatt.studies.spec import ComparisonSpec
from batwatt.studies.study import study_in
from batwatt.studies.yaml_model import parse_declared

STUDY = """\
name: tiny
comparisons:
  only:
    platforms: [p.xml]
    workloads: [w/*.json]
    options: {response: none}
    grid:
      order: [fcfs, asc]
"""


def cells(small, path):
    return study_in(path, small.results).cells


def labels(small, **changes):
    return list(dict.fromkeys(cell.case for cell in cells(small, small.declare(**changes))))


def test_the_order_of_the_rows(small):
    grid = {"backfilling": ["first-fit", "easy"], "order": ["fcfs", "slowdown"]}
    rows = cells(small, small.declare(grid=grid, engines=["wire", "embedded"], cases=[{"label": "Z"}]))
    assert len(rows) == (2 * 2 + 1) * 2 * 2
    assert [(cell.case, cell.workload.name, cell.spec.engine) for cell in rows[:5]] == [
        ("first-fit fcfs", "a", "wire"),
        ("first-fit fcfs", "a", "embedded"),
        ("first-fit fcfs", "b", "wire"),
        ("first-fit fcfs", "b", "embedded"),
        ("first-fit slowdown", "a", "wire"),
    ]
    assert rows[-1].case == "Z" and dict(rows[-1].options) == {"response": "none"}


def test_labels_of_parts_and_cases(small):
    assert labels(small, grid={"order": [{"name": "fcfs"}, "asc"]}) == ["fcfs", "asc"]
    assert labels(small, grid=None) == ["powercap"]
    assert labels(small, grid=None, cases=[{"label": "x"}, {"label": "y", "options": {"order": "asc"}}]) == ["x", "y"]


def test_cases_by_text(small):
    texts = ["varcap termination=lww", "today=as today", "own/mine.py", {"label": "x", "case": "easy"}]
    (small.folder / "own").mkdir()
    small.slow(name="own/mine.py")
    rows = cells(small, small.declare(grid=None, options=None, workloads=["w/a.json"], cases=texts))
    assert [row.case for row in rows] == ["varcap termination=lww", "today", "own/mine.py", "x"]
    assert [row.spec.follow for row in rows] == ["envelope", "none", "envelope", "envelope"]
    assert dict(rows[0].options) == {"termination": "lww"} and rows[2].spec.scheduler.endswith("own/mine.py")
    by_label = {"a": "varcap termination=lww", "b": {"scheduler": "varcap", "follow": "mean"}}
    rows = cells(small, small.declare(grid=None, options=None, workloads=["w/a.json"], cases=by_label, follow="none"))
    assert [(row.case, row.spec.follow) for row in rows] == [("a", "envelope"), ("b", "mean")]
    for wrong, line in (
        ({"case": "easy", "options": {}}, "`case` has scheduler and options in its text"),
        ({"case": "systems", "label": "x"}, "'systems' is several cases; leave the label out"),
        ("varcap terminaton=lww", "no option 'terminaton'; did you mean 'termination'?"),
        ({"label": "x", "follow": "half"}, "follow: no value 'half'; known: envelope, mean, none"),
    ):
        small.declare(grid=None, cases=[wrong])
        ended = small.run()
        assert ended.code == 2 and line in ended.line, ended.err


def test_a_case_with_its_own_scheduler_has_its_own_options(small):
    case = {"label": "Optimum", "scheduler": "optimum", "options": {"effort": 5}}
    rows = cells(small, small.declare(cases=[case], seeds=[1, 2]))
    assert dict(rows[-1].options) == {"effort": 5} and rows[-1].scheduler == "optimum"
    # the optimum takes the seed, our schedulers have none: their runs are the same
    assert rows[-1].spec.options == {"effort": 5, "seed": 2} and rows[-1].key != rows[-2].key
    assert rows[0].seed == 1 and rows[1].seed == 2 and rows[0].key == rows[1].key


def test_the_seed_of_a_forecast_with_errors(small):
    exact = {"response": "frugal", "forecast_steps": 1}
    wrong = exact | {"forecast_error": 0.1}
    settings = {"exact": exact, "wrong": wrong, "own": wrong | {"forecast_seed": 7}}
    cases = [{"label": label, "options": options} for label, options in settings.items()]
    rows = cells(small, small.declare(workloads=["w/a.json"], grid=None, options=None, cases=cases, seeds=[1, 2]))
    assert [cell.spec.options.get("forecast_seed") for cell in rows] == [None, None, 1, 2, 7, 7]
    assert len({cell.key for cell in rows}) == 4
    shared = {"workloads": ["w/a.json"], "grid": None, "label": "x", "seeds": [3]}
    [of_a_file] = cells(small, small.declare(scheduler=small.slow(), options=wrong, **shared))
    assert of_a_file.spec.options == wrong | {"forecast_seed": 3}
    assert small.run().code == 0


def test_studies_share_defaults_and_rules_pick_runs(small):
    own = {"workloads": ["w/b.json"], "options": {"response": "hfld"}}
    defaults = {"platforms": ["p.xml"], "envelopes": ["envelope.csv"], "options": {"response": "none"}}
    one, two = cells(small, small.declare_all({"one": {"workloads": ["w/a.json"]}, "two": own}, defaults=defaults))
    assert (one.workload.name, one.options["response"]) == ("a", "none")
    assert (two.workload.name, two.options["response"]) == ("b", "hfld")
    assert one.envelope == two.envelope and one.envelope.name == "envelope"
    rows = cells(small, small.declare(exclude=[{"order": "asc", "workload": ["a"]}], keep=[{"case": "fcfs"}]))
    assert [(cell.case, cell.workload.name, cell.keep) for cell in rows] == [
        ("fcfs", "a", True),
        ("fcfs", "b", True),
        ("asc", "b", False),
    ]


def test_yaml_is_read_as_people_expect():
    text = "options: {a: no, b: 12:00:00, c: 1e5, d: 2020-01-01, e: 010, f: null, g: none, h: true, i: -3, j: 0.5}"
    assert parse_declared(text, "x", ComparisonSpec).options == {
        "a": "no", "b": "12:00:00", "c": 1e5, "d": "2020-01-01", "e": "010", "f": None, "g": "none",
        "h": True, "i": -3, "j": 0.5,
    }  # fmt: skip


def test_no_two_rows_look_alike(small):
    (small.folder / "v").mkdir()
    (small.folder / "v" / "a.json").write_text((small.folder / "w" / "a.json").read_text())
    small.declare(workloads=["w/*.json", "v/a.json"])
    line = small.run().line
    assert "'w/a.json' and 'v/a.json' would both be called 'a'" in line and "comparisons.only.workloads" in line


@pytest.mark.parametrize(
    "old, new, problem",
    [
        ("comparisons:", "comparison:", "line 2: no key 'comparison'; did you mean 'comparisons'?"),
        ("    grid:", "    gird:", "line 7: comparisons.only: no key 'gird'; did you mean 'grid'?"),
        ("name: tiny", "name: a/b", "line 1: name: the name 'a/b' must be of letters"),
        ("[p.xml]", "p.xml", "line 4: comparisons.only.platforms: must be a list, got 'p.xml'"),
        ("[p.xml]", "[q*.xml]", "comparisons.only.platforms: no file matches 'q*.xml'"),
        ("    grid:", "    label: '{order!r}'\n    grid:", "may hold options' names in braces only"),
        ("    platforms: [p.xml]\n", "", "the comparison 'only' has no platforms"),
        ("[fcfs, asc]", "[fcfs, fcfs]", "'order' must be a list of different values"),
        ("order:", "oder:", "no option 'oder'; did you mean 'order'?"),
        ("{response: none}", "{response: nono}", "no response 'nono'; did you mean 'none'?"),
        ("{response: none}", "{response: idfs}", "the response 'idfs' needs one"),
        ("{response: none}", "{seed: 3}", "'seed' is not an option here: declare it under 'seeds'"),
        ("{response: none}", "{response: none, response: idfs}", "line 6: 'response' appears twice"),
        ("    grid:", "    scheduler: powercup\n    grid:", "no scheduler 'powercup'; did you mean 'powercap'?"),
        ("    grid:", "    exclude: [{order: asc}, {order: fcfs}]\n    grid:", "exclude[1]: leaves no run"),
        ("    grid:", "    exclude: [{order: desc}]\n    grid:", 'exclude[0]: no run is {"order":"desc"}'),
        ("    grid:", "    label: same\n    grid:", "the label 'same' appears twice"),
        ("    grid:", "    scheduler: optimum\n    engines: [wire]\n    grid:", "runs on the embedded engine only"),
        ("[w/*.json]", "[{google_like: {hour: 3}, seeds: [1]}]", "google_like has no parameter 'hour'"),
        ("name: tiny", "[1, 2", "line 2: "),
    ],
)  # fmt: skip
def test_mistakes(small, old, new, problem):
    assert old in STUDY
    path = small.house.write("tiny.yaml", STUDY.replace(old, new, 1))
    ended = small.run(yaml=path)
    assert ended.code == 2, ended.err
    assert problem in ended.line
    assert not small.cells()


@pytest.mark.parametrize("text", ["", "- a\n", "\0", "a: &x [*x]\n", "!!python/object:os.system {}\n"])
def test_what_is_no_study_at_all(small, text):
    ended = small.run(yaml=small.house.write("tiny.yaml", text))
    assert ended.code == 2 and "tiny.yaml" in ended.line


@pytest.mark.parametrize(
    "arguments, problem",
    [
        (("tiny.yaml", "-n", "../x"), "--name: the name '../x'"),
        (("tiny.yaml", "--dask", "x", "-j", "2"), "--jobs: is for runs on this machine"),
        (("w", "-n", "x"), "--name: is for a declared study (YAML); leave it out"),
        (("tiny.yaml", "--clean", "--status"), "--status: goes without --clean; give one of them"),
        *((("w", *part), "is not the folder of a study (no origin.json)") for part in ([], ["--status"], ["--clean"])),
        (("w", "--page"), "is not a folder of results"),
    ],
)
def test_wrong_commands(small, monkeypatch, arguments, problem):
    small.declare()
    monkeypatch.chdir(small.folder)
    ended = small.house.batwatt("study", *arguments)
    assert ended.code == 2 and problem in ended.line


def test_the_declared_experiments(small):
    """The grid of the powercap paper: 20 workloads x (2 x 4 x 6 algorithms + ours + optimum), then 3 profiles."""
    declared = study_in(ROOT / "papers" / "igsc22" / "study.yaml", small.results)
    assert declared.study.name == "igsc22" and {"workloads", "profiles"} <= set(declared.study.comparisons)
    labels = {cell.case for cell in declared.cells if cell.comparison == "profiles" and cell.keep}
    assert {"EBF Slow no config.", "EBF Slow HFLD", "FF Asc IDFS", "FF Slow HFLD", "EBF Slow IDSB"} <= labels
    assert sum(cell.comparison == "workloads" and cell.scheduler == "powercap" for cell in declared.cells) >= 20 * 48
