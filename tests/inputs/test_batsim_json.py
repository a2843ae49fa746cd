"""Workloads and events of Batsim: what Batsim makes of them, and every malformed one refused in one line."""

from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path

import pytest
from files_of_tests import refusal, written
from hypothesis import given
from hypothesis import strategies as st

from batwatt.errors import InputError, UnknownNameError, UnsupportedError
from batwatt.inputs.batsim_files import read_events, read_workload
from batwatt.model.timeline import Timeline
from batwatt.model.workload import Composed, Delay, Parallel
from batwatt.protocol.events import envelope_events
from batwatt.protocol.workload4 import parse_profile, parse_workload

PROFILES = {
    "d": {"type": "delay", "delay": 20.2},
    "h": {"type": "parallel_homogeneous", "cpu": 1e9, "com": 0, "note": {"x": [1.23456789]}},
    "t": {"type": "parallel_homogeneous_total", "cpu": 4e9, "com": 0.0, "ret": 3},
    "p": {"type": "parallel", "cpu": [1e9, 0], "com": [0, 0, 0, 0]},
    "c": {"type": "composed", "seq": ["d", "h", "d"], "repeat": 2},
    "cc": {"type": "composed", "seq": ["c", "t"]},
    "cp": {"type": "composed", "seq": ["c", "p"]},
    "net": {"type": "parallel_homogeneous", "cpu": 1e9, "com": 1e6},
    "pnet": {"type": "parallel", "cpu": [1, 1], "com": [0, 5, 0, 0]},
    "smpi": {"type": "smpi", "trace": "t.txt"},
    "cnet": {"type": "composed", "seq": ["d", "net"]},
}


def job(**fields: object) -> dict[str, object]:
    return {"id": 1, "subtime": 0, "res": 2, "profile": "d"} | fields


def workload(*jobs: object, profiles: object = None, **fields: object) -> dict[str, object]:
    return {"nb_res": 4, "jobs": list(jobs), "profiles": PROFILES if profiles is None else profiles} | fields


def parse(*jobs: object, simulate: bool = True, ignore_communication: bool = False, **fields: object):
    how = {"simulate": simulate, "ignore_communication": ignore_communication}
    return parse_workload(workload(*jobs, **fields), "w0", "w.json", **how)


def test_profiles():
    profiles = {
        "d": Delay(20.2),
        "h": Parallel(per_host_flops=1e9),
        "t": Parallel(total_flops=4e9, return_code=3),
        "p": Parallel(flops=(1e9, 0.0)),
        "c": Composed(("d", "h", "d"), 2),
    }
    assert {name: parse_profile(PROFILES[name], "here") for name in profiles} == profiles
    for kind in ("parallel_homogeneous_pfs", "data_staging", "send", "recv", "smpi", "usage_trace"):
        with pytest.raises(UnsupportedError, match=kind):
            parse_profile({"type": kind}, "here")


def test_ids_and_order():
    jobs = [job(id=10), job(id="2"), job(id=1), job(id="w0!3"), job(id="late", subtime=0.5)]
    assert [item.id for item in parse(*jobs).jobs] == ["w0!1", "w0!10", "w0!2", "w0!3", "w0!late"]


def test_only_used_profiles_are_kept():
    made = parse(job(profile="cc"), profiles=PROFILES | {"junk": 3})
    assert set(made.profiles) == set(made.raw_profiles) == {"cc", "c", "d", "h", "t"}
    assert made.raw_profiles["h"]["note"] == {"x": [1.234568]}
    assert (made.nb_res, made.name, made.source) == (4, "w0", "w.json")


@pytest.mark.parametrize(("profile", "kept"), [("net", set()), ("pnet", set()), ("smpi", set()), ("cnet", {"d"})])
def test_what_only_batsim_models(profile, kept):
    with pytest.raises(UnsupportedError, match="--engine batsim") as caught:
        parse(job(profile=profile))
    assert ("give ignore_communication=True" in str(caught.value)) == (profile != "smpi")
    made = parse(job(profile=profile), simulate=False)
    assert set(made.profiles) == kept
    assert profile in made.raw_profiles and len(made.jobs) == 1


def test_communication_may_be_ignored(caplog):
    profiles = {name: PROFILES[name] for name in ("d", "h", "net", "pnet", "cnet")}
    profiles |= {"total": PROFILES["t"] | {"com": 5}, "unused": PROFILES["net"], "smpi": PROFILES["smpi"]}
    used = [job(id=i, profile=name) for i, name in enumerate(("net", "pnet", "cnet", "h", "total"))]
    made = parse(*used, profiles=profiles, ignore_communication=True)
    assert made.profiles["net"] == made.profiles["h"] == Parallel(per_host_flops=1e9)
    assert (made.profiles["pnet"], made.profiles["total"].total_flops) == (Parallel(flops=(1.0, 1.0)), 4e9)
    assert (made.raw_profiles["pnet"]["com"], PROFILES["pnet"]["com"]) == ([0, 0, 0, 0], [0, 5, 0, 0])
    assert caplog.messages == ["w.json: 3 of 6 profiles communicate (first: 'net'): they run as if their 'com' were 0"]
    parse(job(profile="h"), profiles=profiles, ignore_communication=True)
    assert len(caplog.messages) == 1
    # wrong numbers and other communication are refused all the same
    for name, com in (("net", -1), ("net", "many"), ("pnet", [0, -5, 0, 0])):
        with pytest.raises(InputError, match="'com"):
            parse(job(profile=name), profiles={name: PROFILES[name] | {"com": com}}, ignore_communication=True)
    with pytest.raises(UnsupportedError, match="smpi"):
        parse(job(profile="smpi"), ignore_communication=True)


@pytest.mark.parametrize(
    ("profile", "message"),
    [
        (3, "must be an object, got 3"),
        ({}, "'type' must be a text, got None"),
        ({"type": "dealy"}, "did you mean 'delay'"),
        ({"type": "delay"}, "no field 'delay'"),
        ({"type": "delay", "delay": 0}, "'delay' must be > 0"),
        ({"type": "delay", "delay": 10**400}, "got an integer of more than 60 digits"),
        ({"type": "parallel_homogeneous", "cpu": 1}, "no field 'com'"),
        ({"type": "parallel_homogeneous", "cpu": -1, "com": 0}, "'cpu' must be"),
        ({"type": "parallel", "cpu": 1, "com": [0]}, "'cpu' must be a list"),
        ({"type": "parallel", "cpu": [1, 2], "com": [0, 0]}, "'com' has 2 values but 2 hosts need 4"),
        ({"type": "parallel", "cpu": [1, "a"], "com": [0, 0, 0, 0]}, "'cpu[1]'"),
        ({"type": "composed", "seq": []}, "'seq' must be a list"),
        ({"type": "composed", "seq": ["d"], "repeat": 0}, "'repeat' must be an integer in 1.."),
        ({"type": "composed", "seq": ["none"]}, "profile 'x': no profile 'none'"),
        ({"type": "composed", "seq": ["d", "x"]}, "profile 'x': contains itself"),
        ({"type": "composed", "seq": ["p", "p3"]}, "its parts describe 2 and 3 hosts"),
    ],
)
@pytest.mark.parametrize("simulate", [True, False])
def test_malformed_profiles(profile, message, simulate):
    profiles = PROFILES | {"x": profile, "p3": {"type": "parallel", "cpu": [1, 1, 1], "com": [0] * 9}}
    line = refusal(parse, job(profile="x"), profiles=profiles, simulate=simulate)
    assert message in line and "profile 'x'" in line


@pytest.mark.parametrize("profile", ["p", "cp"])
def test_a_matrix_needs_as_many_hosts_as_the_job(profile):
    assert parse(job(profile=profile, res=2)).jobs[0].hosts == 2
    with pytest.raises(InputError, match=r"job 'w0!1': 'res' is 3 but its profile '\w+' describes 2 hosts"):
        parse(job(profile=profile, res=2, id=2), job(profile=profile, res=3))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"id": None}, "'id' must be a text or an integer, got None"),
        ({"subtime": None}, "'subtime' must be"),
        ({"id": "a!b"}, "is not a name"),
        ({"id": "row0"}, "holds the workload's name 'w0'"),
        ({"subtime": -1}, "'subtime' must be"),
        ({"res": 0}, "'res' must be an integer in 1.."),
        ({"walltime": 0}, "'walltime' must be > 0 s, got 0"),
        ({"profile": "dd"}, "no profile 'dd'; did you mean"),
        ({"subtime": 10**400}, "too large"),
        ({"memory": 10**400}, "a number is too large for a double"),
    ],
)
def test_malformed_jobs(change, message):
    line = refusal(parse, job(**change))
    assert message in line and "w.json: job" in line


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ([], "must be an object"),
        ({}, "no field 'nb_res'"),
        (workload(nb_res=0), "'nb_res' must be an integer in 1.."),
        ({"nb_res": 4, "jobs": []}, "no field 'profiles'"),
        (workload(jobs={}), "'jobs' must be a list"),
        ({"jobs": [{"application_model": "a"}]}, "is a workload of ElastiSim"),
        ({"meta": {}, "jobs": [{"job_id": 5, "time": {}}]}, "looks like sacct --json of Slurm"),
        (workload(3), "jobs[0]: a job must be an object"),
        (workload(job(), job(id="1")), "jobs[1]: a second job 'w0!1'"),
    ],
)
def test_malformed_workloads(data, message):
    assert message in refusal(parse_workload, data, "w0", "w.json")


def nested(depth: int) -> str:
    return "[" * depth + "]" * depth


GOOD = json.dumps(workload(job()))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "is not JSON (Expecting property name"),
        (GOOD.replace("20.2", "NaN"), "NaN is not a number"),
        (GOOD.replace("20.2", "1e999"), "1e999 is too large"),
        (GOOD.replace("20.2", f'1, "length_s": {10**400}'), f"{'1' + '0' * 19}... is too large"),
        (GOOD.replace("20.2", nested(100_000)), "nested deeper"),
        (GOOD.replace('"id": 1', '"id": "\\ud800"'), "surrogate"),
    ],
)
def test_broken_json(tmp_path, text, message):
    path = written(tmp_path, text, "w.json")
    line = refusal(read_workload, path)
    assert message in line and str(path) in line


def test_unreadable(tmp_path):
    for path in (tmp_path, "a\0b"):
        assert "cannot be read" in refusal(read_workload, path)
    path = tmp_path / "w.json"
    path.write_bytes(b'{"nb_res": "\xe9"}')
    assert "byte 12 is not UTF-8" in refusal(read_workload, path)
    assert "cannot be read" in refusal(read_events, tmp_path, True)


@given(st.lists(st.tuples(st.integers(0, 99), st.floats(0, 1e6)), unique_by=lambda pair: pair[0]), st.randoms())
def test_order_does_not_depend_on_the_file(pairs, random):
    jobs = [job(id=number, subtime=submit) for number, submit in pairs]
    expected = parse(*jobs).jobs
    random.shuffle(jobs)
    assert parse(*jobs).jobs == expected
    assert all(a.submit_time_s <= b.submit_time_s for a, b in pairwise(expected))


@pytest.fixture
def events(tmp_path: Path):
    def write(*lines: object) -> Path:
        texts = [line if isinstance(line, str) else json.dumps(line) for line in lines]
        return written(tmp_path, "\n".join(texts), "e.txt")

    return write


def machine(timestamp: object, kind: str = "machine_unavailable", resources: object = "0-1 3") -> dict[str, object]:
    return {"type": kind, "resources": resources, "timestamp": timestamp}


def test_order_and_content(events):
    path = events(
        {"type": "foo", "timestamp": 7, "x": 1.23456789, "n": {"a": [1]}},
        machine(7),
        "",
        machine(7, "machine_available", "5"),
        "   ",
        machine(5.5),
        {"type": "bar", "timestamp": 7},
        machine(7, resources="2"),
    )
    made = read_events(path, True)
    assert [(event.time_s, event.kind, event.resources) for event in made] == [
        (5.5, "machine_unavailable", 0b1011),
        (7.0, "machine_available", 0b100000),
        (7.0, "machine_unavailable", 0b1011),
        (7.0, "machine_unavailable", 0b100),
        (7.0, "generic", None),
        (7.0, "generic", None),
    ]
    assert [event.raw["type"] for event in made[-2:]] == ["foo", "bar"]
    assert json.dumps(made[-2].raw) == '{"type": "foo", "timestamp": 7, "x": 1.234568, "n": {"a": [1]}}'


def test_unknown_types_need_forwarding(events):
    path = events(machine(1), {"type": "machine_unavailble", "timestamp": 7})
    with pytest.raises(UnknownNameError, match=r"line 2: .*'machine_unavailable'.*--forward-unknown-events"):
        read_events(path, False)
    assert len(read_events(path, True)) == 2
    assert "line 1: host 3 is not on the platform, whose hosts are 0..2" in refusal(read_events, path, True, 3)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("{", "is not JSON"),
        ({"type": "foo"}, "'timestamp' must be a number of seconds >= 0, got None"),
        ({"type": "foo", "timestamp": -1}, "got -1"),
        ({"type": "foo", "timestamp": 2**64}, "'timestamp' is 1.84467440737096e+19 s, more than 1e+11 s"),
        (machine(1, resources=3), "'resources' must be a text"),
        (machine(1, resources=""), "empty set of hosts"),
        (machine(1, resources="0-99999999999"), "is not an interval"),
        ('{"type": "foo", "timestamp": 1, "x": ' + "[" * 200 + "]" * 200 + "}", "nested deeper"),
    ],
)
def test_malformed_events(events, line, message):
    refused = refusal(read_events, events(machine(0), "", line), True)
    assert "e.txt: line 3: " in refused and message in refused


def test_envelope_is_read_back_as_events(events):
    series = Timeline((0.0, 300.0, 450.5), (2100.25, 0.0, 1e3))
    made = read_events(events(*envelope_events(series)), True)
    assert tuple(event.time_s for event in made) == series.times_s
    assert tuple(event.raw["power_w"] for event in made) == series.values
    assert {event.kind for event in made} == {"generic"}


def test_objects_of_a_caller_are_copied_and_owned_ones_are_not():
    """Both give the same workload; numbers are rounded as Batsim sends them, and ids are full."""

    def described():
        jobs = [
            {"id": "1", "subtime": 0.12345678, "res": 2, "profile": "p", "walltime": 9.5, "user": ["a", 0.00000049]}
        ]
        return {
            "nb_res": 4,
            "jobs": jobs,
            "profiles": {"p": {"type": "delay", "delay": 3.0000004, "extra": {"x": 1e-9}}},
        }

    mine, theirs = described(), described()
    copied = parse_workload(mine, "w0", "here")
    assert mine == described()
    taken = parse_workload(theirs, "w0", "here", owned=True)
    assert taken == copied and taken.raw_profiles == copied.raw_profiles
    assert taken.jobs[0].raw is theirs["jobs"][0]
    assert taken.jobs[0].raw == {
        "id": "w0!1",
        "subtime": 0.123457,
        "res": 2,
        "profile": "p",
        "walltime": 9.5,
        "user": ["a", 0.0],
    }
    assert taken.raw_profiles["p"] == {"type": "delay", "delay": 3.0, "extra": {"x": 0.0}}
    silent = parse_workload(described(), "w0", "here", ignore_communication=True, owned=True)
    assert silent == copied
