"""Reading jobs in phases: every type of model, JSON and Python literals, and bad input in one line."""

from __future__ import annotations

import json
import logging
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from batwatt.errors import InputError
from batwatt.inputs.traces.jobs_csv import iter_jobs_csv
from batwatt.inputs.workloads.phase_jobs import read_model, read_phase_jobs
from batwatt.model.phases import Phase, PhaseModel
from batwatt.protocol.phases import MOST_PHASES, TYPES, model_of

ROOT = Path(__file__).resolve().parents[2]
HEAD = "arrival_time|length|cpus|name|args\n"
ML = {
    "start_duration": 23.45, "start_power": 60, "training_duration": 8.17, "training_power": 221.93,
    "evaluate_duration": 1.54, "evaluate_power": 63.17, "save_duration": 2.72, "save_power": 105.1, "epochs": 5,
}  # fmt: skip
HIGH, LOW = {"name": "high", "duration": 60, "power": 200}, {"name": "low", "duration": 30, "power": 50}
TWO = {"startup": [{"name": "load", "duration": 10, "power": 150}], "work": [HIGH, LOW]}
TWO_MODEL = PhaseModel((Phase("load", 10, 150),), (Phase("high", 60, 200), Phase("low", 30, 50)))


def jobs(tmp_path, text, **options):
    path = tmp_path / "jobs.csv"
    path.write_text(text)
    return read_phase_jobs(path, **options)


def line_of(function, *args, **options):
    with pytest.raises(InputError) as raised:
        function(*args, **options)
    text = str(raised.value)
    assert "\n" not in text and len(text) < 500
    return text


# traces --------------------------------------------------------------------------------------------------------------


def test_a_plain_trace_draws_some_watts_on_each_cpu(tmp_path):
    plain, wide = jobs(tmp_path, "arrival_time,length,cpus\n0.0,6302.0,1\n68,1000,3\n", watts=2.5)
    assert (plain.id, plain.arrival_s, plain.length_s, plain.cpus, plain.model.mean_w) == ("1", 0, 6302, 1, 2.5)
    assert (wide.id, wide.arrival_s, wide.model.energy_j, wide.cpus) == ("2", 68, 2500, 3)


def test_hours_are_for_the_columns_of_times(tmp_path):
    """Durations in args are s whatever the unit."""
    [job] = jobs(tmp_path, HEAD + f"1|0.0277777778|1|phases|{json.dumps(TWO)}\n", unit="h")
    assert (job.arrival_s, job.model) == (3600, TWO_MODEL)


@pytest.mark.parametrize(
    ("kind", "args", "length", "model"),
    [
        ("", "", 100, PhaseModel((), (Phase("work", 100, 1),))),
        ("constant", "", 100, PhaseModel((), (Phase("work", 100, 1),))),
        ("constant", "{}", 100, PhaseModel((), (Phase("work", 100, 1),))),
        ("constant", "95.5", 100, PhaseModel((), (Phase("work", 100, 95.5),))),
        ("constant", '{"power": 80}', 100, PhaseModel((), (Phase("work", 100, 80),))),
        # (60 x 200 + 30 x 50) / 90 W, and with the start-up (13500 + 1500) / 100 W
        ("mocked-constant-from-phases", [HIGH, LOW], 90, PhaseModel((), (Phase("work", 90, 150),))),
        ("constant-from-phases", [HIGH, LOW], 45, PhaseModel((), (Phase("work", 45, 150),))),
        ("mocked-constant-from-phases", TWO, 100, PhaseModel((), (Phase("work", 100, 150),))),
        ("phases", TWO, 100, TWO_MODEL),
        (
            "periodic-phases",
            TWO,
            170,
            PhaseModel((Phase("load", 10, 150),), (*TWO_MODEL.work, *TWO_MODEL.work[:1], Phase("low", 10, 50))),
        ),
        ("periodic-phases", [TWO, 100], 100, TWO_MODEL),
        (
            "constant-from-periodic-phases",
            TWO,
            100,
            PhaseModel((Phase("startup", 10, 150),), (Phase("work", 90, 150),)),
        ),
    ],
)
def test_the_types(tmp_path, kind, args, length, model):
    texts = [args] if isinstance(args, str) else [json.dumps(args), repr(args)]
    for text in texts:
        assert jobs(tmp_path, HEAD + f"0|{length}|1|{kind}|{text}\n")[0].model == model


def test_ml_is_a_startup_and_epochs_that_end_with_a_checkpoint(tmp_path):
    """23.45 s x 60 W + 5 x (8.17 x 221.93 + 1.54 x 63.17 + 2.72 x 105.1) J."""
    model = jobs(tmp_path, HEAD + f"0|85.6|1|ml|{ML!r}\n")[0].model
    assert model.startup == (Phase("start", 23.45, 60),)
    assert [phase.name for phase in model.work] == ["training", "evaluate", "save"] * 5
    assert model.checkpoints_s == pytest.approx([12.43, 24.86, 37.29, 49.72])
    assert model.energy_j == pytest.approx(1407 + 5 * (1813.1681 + 97.2818 + 285.872))


def test_args_between_quotes_where_commas_separate(tmp_path):
    head = "arrival_time,length,cpus,name,args\n"
    one, two = jobs(tmp_path, head + "0,10,1,constant,\"{'power': 7}\"\n" + '0,10,1,constant,"{""power"": 7}"\n')
    assert one.model == two.model == PhaseModel((), (Phase("work", 10, 7),))


def test_a_startup_of_0_s_is_none(tmp_path):
    args = {"startup": [{"name": "startup", "duration": 0, "power": 150}], "work": [HIGH]}
    assert jobs(tmp_path, HEAD + f"0|60|1|phases|{args!r}\n")[0].model.startup == ()
    assert model_of({"type": "ml", **ML, "start_duration": 0}, "x").startup_s == 0


def test_a_name_is_no_type_where_there_is_no_column_of_args(tmp_path):
    [job] = jobs(tmp_path, "arrival_time,length,cpus,name\n0,10,1,resnet\n")
    assert job.model == PhaseModel((), (Phase("work", 10, 1),))


def test_phases_rule_where_the_length_differs(tmp_path, caplog):
    """100.4 s differs by less than 0.5 %, 110 s by more; 0 says nothing."""
    text = HEAD + "".join(f"0|{length}|1|phases|{json.dumps(TWO)}\n" for length in (100.4, 110, 0))
    with caplog.at_level(logging.WARNING):
        assert [job.length_s for job in jobs(tmp_path, text)] == [100, 100, 100]
    [told] = [record.getMessage() for record in caplog.records]
    assert "the phases of 1 jobs do not last as long as their length" in told and "job 2: 100 s, not 110 s" in told


def test_jobs_without_a_length_are_left_out(tmp_path, caplog):
    with caplog.at_level(logging.WARNING):
        found = jobs(tmp_path, "arrival_time,length,cpus\n0,0,1\n5,10,1\n6,10,0\n")
    assert [job.id for job in found] == ["2"]
    assert "2 jobs without a length or cpus left out" in caplog.text


def test_the_example_has_every_type_but_an_alias():
    path = ROOT / "workloads" / "carbon" / "jobs.csv"
    found = {row.extra["name"] for row in iter_jobs_csv(path)}
    assert found == set(TYPES) - {"constant-from-phases"} | {""}
    assert [job.length_s for job in read_phase_jobs(path)] == pytest.approx(
        [7200, 5400, 10980, 14520, 14520, 6238.45, 3600, 10800]
    )


@pytest.mark.parametrize(
    ("row", "words"),
    [
        ("0|10|1|phases|{'startup': []\n", ("job 1", "neither JSON nor a Python literal", "never closed")),
        ("0|10|1|phases|{'work': [] 'startup': []}", ("job 1", "Perhaps you forgot a comma")),
        ("0|10|1|phases|__import__('os').abort()", ("more than numbers, texts, lists and objects",)),
        ("0|10|1|phases|[1] * 10", ("more than numbers",)),
        ("0|10|1|phases|" + "(" * 5000, ("neither JSON nor a Python literal",)),
        ("0|10|1|phases|" + "9" * 5000, ("neither JSON nor a Python literal",)),
        ('0|10|1|phases|{"work": [], "work": []}', ("'work' appears twice",)),
        ("0|10|1|phases|", ("must be an object with startup, work, got None",)),
        ("0|10|1|phases|{'work': []}", ("work must be a list of one or more phases, got 0 phases",)),
        ("0|10|1|phase|{}", ("no type of job 'phase'; did you mean 'phases'?",)),
        ("0|10|1|constant|-5", ("power must be a number of W from 0 to 1e+09, got -5",)),
        ("0|10|1|constant|{1: 2}", ("job 1: keys must be texts, got 1",)),
        ("0|10|2000000000|constant|5", ("job 1: it must have 1 to 1000000000 cpus",)),
        ("0|10|1|constant|true", ("must be an object with power, got True",)),
        ("0|10|1|constant|{'watts': 5}", ("no key 'watts'",)),
        ("0|10|1|ml|{'epochs': 5}", ("'start_duration' is missing",)),
        (f"0|10|1|ml|{ {**ML, 'epochs': 0} }", ("epochs must be a whole number from 1 to", "got 0")),
        (f"0|10|1|ml|{ {**ML, 'epochs': 2.5} }", ("epochs must be a whole number", "got 2.5")),
        (f"0|10|1|ml|{ {**ML, 'epochs': 10**9} }", ("epochs must be a whole number from 1 to 33333",)),
        (f"0|5|1|periodic-phases|{TWO}", ("start-up of 10 s leaves no time to work in 5 s",)),
        (f"0|0|1|periodic-phases|{TWO}", ("has no length",)),
        ("0|9e8|1|periodic-phases|{'work': [{'duration': 1, 'power': 5}]}", ("repeated to more than 100000",)),
        ("0|2e9|1||", ("length must be a number of s > 0 and up to 1e+09, got 2000000000.0",)),
        ("-1|10|1||", ("job 1: it must arrive at >= 0 s, got -1.0",)),
        ("0|0|1||", ("has no jobs",)),
    ],
)  # fmt: skip
def test_bad_rows(tmp_path, row, words):
    text = line_of(jobs, tmp_path, HEAD + row + "\n")
    assert "jobs.csv" in text and all(word in text for word in words), text


# files of one job ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "data",
    [
        TWO,
        {"type": "phases", **TWO},
        {"name": "phases", "args": TWO},
        {"name": "phases", "args": TWO, "length": 100},
        {"type": "periodic-phases", "length": 100, **TWO},
        {"name": "periodic-phases", "args": TWO, "length": 100},
    ],
)
def test_ways_to_write_a_job(tmp_path, data):
    path = tmp_path / "job.json"
    path.write_text(json.dumps(data))
    assert read_model(path) == TWO_MODEL


def test_other_types_in_a_file(tmp_path):
    assert model_of({"type": "ml", **ML}, "x") == model_of({"name": "ml", "args": ML}, "x")
    assert model_of({"type": "constant", "length": 60, "power": 5}, "x") == PhaseModel((), (Phase("work", 60, 5),))
    assert model_of({"type": "constant", "length": 60}, "x", 9.0).mean_w == 9
    assert model_of({"name": "constant", "args": 7, "length": 60}, "x").energy_j == 420
    assert model_of({"work": [{"duration": 1, "power": 0, "is_checkpoint": True}]}, "x").energy_j == 0


def test_the_examples():
    folder = ROOT / "workloads" / "carbon"
    job = read_model(folder / "job.json")
    assert (job.startup_s, job.work_s, job.checkpoints_s) == (180, 10800, (3600, 7200))
    assert read_model(folder / "ml.json").length_s == pytest.approx(23.45 + 500 * 12.43)


def work(**changes):
    return json.dumps({"work": [HIGH, {**LOW, **changes}]})


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[]", ("must be an object, got list",)),
        ("{", ("is not JSON",)),
        ("{}", ("'work' is missing", "add a list of one or more phases")),
        ('{"work": []}', ("work must be a list of one or more phases, got 0 phases",)),
        ('{"work": {}}', ("work must be a list of one or more phases, got dict",)),
        ('{"work": [3]}', ("work phase 1: must be an object, got 3",)),
        (work(power=-1), ("work phase 2: power must be a number of W from 0 to 1e+09, got -1",)),
        (work(duration=0), ("work phase 2: duration must be a number of s > 0 and up to 1e+09, got 0",)),
        (work(duration=float("nan")), ("duration must be", "got NaN")),
        (work(power=float("inf")), ("power must be", "got Infinity")),
        (work(power="3"), ("power must be", "got '3'")),
        (work(power=True), ("power must be", "got True")),
        (work(power=None), ("power must be", "got None")),
        (work(power=10**400), ("power must be", "an integer of more than 60 digits")),
        (work(power=2e9), ("power must be a number of W from 0 to 1e+09",)),
        (work(is_checkpoint=1), ("is_checkpoint must be true or false, got 1",)),
        (work(name=5), ("name must be a text, got 5",)),
        (work(durations=5), ("work phase 2: no key 'durations'; did you mean 'duration'?",)),
        ('{"startup": [{"duration": -1, "power": 5}], "work": [{"duration": 1, "power": 1}]}', ("startup phase 1",)),
        ('{"startup": [{"duration": 1, "power": 5, "is_checkpoint": true}], "work": []}', ("no key 'is_checkpoint'",)),
        ('{"works": []}', ("no key 'works'; did you mean 'work'?",)),
        ('{"work": [], "work": []}', ("'work' appears twice",)),
        ('{"type": "mll"}', ("no type of job 'mll'; did you mean 'ml'?",)),
        ('{"type": 5}', ("type must be a text, got 5",)),
        ('{"name": "ml", "args": {}, "extra": 1}', ("no key 'extra'",)),
        ('{"args": {}}', ("name must be a text, got None",)),
        ('{"type": "constant", "power": 5}', ("has no length",)),
        ('{"type": "constant", "power": 5, "length": -1}', ("length must be a number of s > 0", "got -1")),
        ('{"type": "constant", "power": 5, "length": true}', ("length must be", "got True")),
    ],
)
def test_bad_files(tmp_path, text, words):
    path = tmp_path / "job.json"
    path.write_text(text)
    told = line_of(read_model, path)
    assert "job.json" in told and all(word in told for word in words), told


def test_a_file_that_is_not_there(tmp_path):
    assert "cannot be read" in line_of(read_model, tmp_path / "none.json")


@given(
    st.lists(st.tuples(st.integers(1, 500), st.integers(0, 300), st.booleans()), min_size=1, max_size=6),
    st.integers(1, 2000),
)
def test_periodic_phases_last_as_long_as_they_should(phases, length):
    """Each whole phase is the next of the period; the energy is that of the period's step function."""
    raw = [{"duration": duration, "power": power, "is_checkpoint": flag} for duration, power, flag in phases]
    model = model_of({"type": "periodic-phases", "work": raw, "length": length}, "x")
    watts = [power for duration, power, _ in phases for _ in range(duration)]
    assert model.length_s == length and len(model.work) < MOST_PHASES
    assert model.energy_j == sum(watts[second % len(watts)] for second in range(length))
