"""Bad input of every kind: one line that names the place, exit code 2, nothing left behind."""

from __future__ import annotations

import json
import socket

import pytest
from cli_inputs_of_tests import BROKEN_SCHEDULERS

OPTIONS = {
    "not json": ("x", "--options: 'x' is not JSON"),
    "empty": ("", "--options: '' is not JSON"),
    "array": ("[1]", "must be a JSON object"),
    "nan": ('{"order": NaN}', "NaN is not a number"),
    "unknown": ('{"respons": "hfld"}', "did you mean 'response'?"),
    "misspelt": ('{"response": "hfl"}', "did you mean 'hfld'?"),
    "unknown order": ('{"order": "zzz"}', "no order 'zzz'; known: asc,"),
    "unknown backfilling": ('{"backfilling": "esy"}', "did you mean 'easy'?"),
    "wrong type": ('{"response": 5}', "option 'response': 5 is not the name of a response"),
    "no name": ('{"backfilling": {}}', "option 'backfilling': {} is not the name"),
    "unknown parameter": ('{"backfilling": {"name": "easy", "depth": 3}}', "'depth'"),
    "victim": ('{"victim": "requeue"}', "no victim 'requeue'; known: checkpoint, lose"),
    "work_estimate": ('{"work_estimate": 1}', '1 is not one of "walltime", "learned", "exact"'),
    "envelope number": ('{"envelope": 5}', "option 'envelope': 5"),
    "envelope empty": ('{"envelope": ""}', "option 'envelope'"),
    "envelope missing": ('{"envelope": "no.csv"}', "no.csv: cannot be read"),
    "platform missing": ('{"platform": "no.xml"}', "no.xml: cannot be read"),
    "events missing": ('{"envelope": "events"}', "--events: the envelope is to come as events"),
    "file missing": ("@no.json", "no.json: cannot be read"),
}


@pytest.mark.parametrize("text,expected", OPTIONS.values(), ids=OPTIONS)
def test_bad_option(house, text, expected):
    done = house.run("--envelope", house.envelope, "-o", text)
    assert (done.code, house.left) == (2, [])
    assert expected in done.line


def test_options_from_a_file_name_the_file(house):
    path = house.write("options.json", '{"response":')
    assert f"{path}: is not JSON" in house.run("-o", f"@{path}").line
    path.write_text('{"response": "none"}')
    assert house.run("-o", f"@{path}").code == 0


def test_response_without_envelope(house):
    done = house.run("-o", '{"response": "idfs"}')
    assert done.code == 2 and "the response 'idfs' needs one" in done.line


FILES = {
    "platform": {
        "missing": (None, "cannot be read"),
        "no hosts": ("<platform version='4.1'><zone id='a' routing='Full'/></platform>", "no host is called"),
    },
    "workload": {
        "cut": ('{"nb_res": 4, "jobs": [', "is not JSON"),
        "communication": (
            '{"nb_res": 4, "jobs": [{"id": 1, "subtime": 0, "res": 1, "profile": "p"}], '
            '"profiles": {"p": {"type": "parallel_homogeneous", "cpu": 1, "com": 2}}}',
            "--engine batsim",
        ),
    },
    "envelope": {"unsorted": ("time_s,power_w\n0,1\n600,2\n300,1\n", "line 4")},
    "events": {"unknown type": ('{"timestamp": 1, "type": "power_envelope", "power_w": 1}\n', "line 1")},
}
"""One or two that a reader refuses: all others are in tests/inputs."""
CASES = [(kind, name) for kind, cases in FILES.items() for name in cases]


@pytest.mark.parametrize("kind,name", CASES, ids=[" ".join(case) for case in CASES])
def test_bad_file(house, kind, name):
    text, expected = FILES[kind][name]
    path = house.folder / f"bad.{kind}"
    if text is not None:
        path.write_text(text)
    named = {kind: path} if kind in ("platform", "workload") else {}
    options = [] if named else [f"--{kind}", path]
    if kind != "envelope":
        options += ["--envelope", house.envelope]
    done = house.run(*options, **named)
    assert (done.code, house.left) == (2, [])
    assert str(path) in done.line and expected in done.line


def test_bad_value_in_a_forwarded_event(house):
    events = house.write("events.txt", '{"timestamp": 0, "type": "power_envelope", "power_w": "much"}\n')
    done = house.run("--events", events, "-o", '{"envelope": "events"}')
    assert (done.code, house.left) == (2, [])
    assert str(events) in done.line and "power_w" in done.line and "much" in done.line


@pytest.mark.parametrize("where", ["folder", "folder/", "file/x", "/proc/nowhere/x", "", "..", "x" * 300])
def test_output_that_cannot_be_written(house, where, monkeypatch):
    monkeypatch.chdir(house.folder)
    (house.folder / "folder").mkdir()
    house.write("file", "")
    before = sorted(house.folder.rglob("*"))
    done = house.batwatt(
        "run", "-p", house.platform("a"), "-w", house.workload(), "-o", '{"response":"none"}', "-e", where
    )
    assert done.code == 2 and "--export" in done.line
    assert set(house.folder.rglob("*")) - set(before) == {house.folder / "p.xml", house.folder / "w.json"}


@pytest.mark.parametrize("name", BROKEN_SCHEDULERS)
def test_broken_scheduler(house, name):
    text, code, expected = BROKEN_SCHEDULERS[name]
    path = house.folder / f"{name}.py"
    if text is not None:
        path.write_text(text)
    done = house.run("-s", path)
    assert (done.code, house.left) == (code, [])
    for words in expected:
        assert words in done.line


def test_a_schedulers_traceback_is_shown_on_request(house):
    path = house.write("raiser.py", BROKEN_SCHEDULERS["raiser"][0])
    done = house.batwatt(
        "-v",
        "run",
        "-p",
        house.platform("a"),
        "-w",
        house.workload({"id": 1, "subtime": 0, "res": 1, "profile": "nap"}),
        "-s",
        path,
        "-e",
        house.out / "x",
    )
    assert done.code == 1 and "Traceback" in done.err and done.err.rstrip().split("\n")[-1].startswith("batwatt: ")


@pytest.mark.parametrize(
    "name,expected", [("powercp", "'powercap'"), ("easyBackfil", "'easyBackfill'"), ("no/such.py", "no/such.py")]
)
def test_unknown_scheduler(house, name, expected):
    done = house.run("-s", name)
    assert done.code == 2 and expected in done.line


@pytest.mark.parametrize(
    "options,expected",
    [
        (["--engine", "foo"], "--engine: 'foo'"),
        (["--engine", "batsim", "--batsim", "no/batsim"], "--batsim: 'no/batsim'"),
        (["--timeout", "nan"], "--timeout: nan"),
        (["--timeout", "-1"], "--timeout: -1"),
        (["--timeout", "soon"], "--timeout"),
        (["--engne", "wire"], "--engine"),
    ],
)
def test_bad_argument(house, options, expected):
    done = house.run("-o", '{"response": "none"}', *options)
    assert (done.code, house.left) == (2, []) and expected in done.line


def test_speeds_without_energy(house):
    done = house.run("--envelope", house.envelope, "-o", '{"response": "hfld"}', "--no-energy")
    line = "--no-energy: the scheduler 'powercap' changes speeds, which Batsim does with energy accounting only"
    assert (done.code, house.left) == (2, []) and f"{line}; leave it out" in done.line


def test_energy_without_watts(house):
    done = house.run("--energy", "-o", '{"response": "none"}', platform=house.platform("a", watts=False))
    assert (done.code, house.left) == (2, []) and "wattage_per_state" in done.line


@pytest.mark.parametrize(
    "cases,expected",
    [
        (["HFLD"], "is not LABEL=SCHEDULER OPTIONS"),
        (["={}"], "is not LABEL=SCHEDULER OPTIONS"),
        (["a={}", "A={}"], "case 'A': gives no file name of its own"),
        (["+={}"], "case '+': gives no file name of its own"),
        (["a={}", 'b={"order": "zzz"}'], "no order 'zzz'"),
        (["a={}", "b={"], "--case b: "),
    ],
)
def test_bad_case_is_said_before_anything_runs(house, cases, expected):
    words = [word for case in cases for word in ("-c", case)]
    done = house.batwatt(
        "compare",
        "-p",
        house.platform("a"),
        "-w",
        house.workload(),
        "--envelope",
        house.envelope,
        "-e",
        house.out / "x",
        "--keep",
        *words,
    )
    assert (done.code, house.left) == (2, []) and expected in done.line


@pytest.mark.parametrize(
    "endpoint", ["nonsense", "tcp://", "tcp://127.0.0.1:notaport", "tcp://300.1.1.1:1", "http://localhost:1"]
)
def test_bad_endpoint(house, endpoint):
    done = house.batwatt("serve", "-o", '{"response": "none"}', "--socket", endpoint)
    assert done.code == 2 and endpoint in done.line


def test_endpoint_in_use(house, endpoint):
    with socket.create_server(("127.0.0.1", int(endpoint.rpartition(":")[2]))):
        ready = house.folder / "ready"
        done = house.batwatt("serve", "-o", '{"response": "none"}', "--socket", endpoint, "--ready-file", ready)
        assert done.code == 2 and "in use" in done.line and not ready.exists()


@pytest.mark.parametrize(
    "words",
    [
        ["convert", "no.swf"],
        ["convert", "no.csv", "--unit", "d"],
        ["convert", "no.csv", "--profile", "x"],
        ["events", "no.csv"],
        ["generate", "platform", "no.toml"],
        ["generate", "workload", "--sigma", "nan"],
        ["generate", "workload", "--max-servers", "0"],
        ["generate", "workload", "--seed", "-1"],
        ["generate", "workload", "--mean-runtime", "-5"],
    ],
    ids=" ".join,
)
def test_bad_input_of_the_other_commands(house, words, monkeypatch):
    monkeypatch.chdir(house.folder)
    done = house.batwatt(*words, "-o", house.out / "x")
    assert (done.code, house.left, done.out) == (2, [], "")
    assert done.line


def test_a_failed_run_keeps_what_was_there(house):
    assert house.run("-o", '{"response": "none"}').code == 0
    before = {name: house.file(name) for name in house.left}
    path = house.write("raiser.py", BROKEN_SCHEDULERS["raiser"][0])
    assert house.run("-s", path).code == 1
    assert {name: house.file(name) for name in house.left} == before


def test_files_of_an_earlier_run_do_not_stay_among_those_of_a_later_one(house):
    assert house.run("-o", '{"response": "none"}').code == 0 and "x_consumed_energy.csv" in house.left
    assert house.run("-o", '{"response": "none"}', "--no-energy").code == 0
    assert not {"x_consumed_energy.csv", "x_power.csv"} & set(house.left)
    assert json.loads(house.file("x_metrics.json"))["energy_j"] is None
