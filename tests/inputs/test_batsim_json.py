"""Batsim workloads: what Batsim makes of them, and every malformed one refused in one line."""

from __future__ import annotations

import copy
import json
from itertools import pairwise

import pytest
from golden import scenarios
from hypothesis import given
from hypothesis import strategies as st

from batwatt.checks import load_json
from batwatt.errors import InputError, UnknownNameError, UnsupportedError
from batwatt.inputs.workloads.batsim_files import read_workload
from batwatt.model.workload import Composed, Delay, Parallel
from batwatt.protocol.numbers import MAX_INT, wire_floats
from batwatt.protocol.workload4 import parse_job, parse_profile, parse_workload

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


def parse(*jobs: object, simulate: bool = True, **fields: object):
    return parse_workload(workload(*jobs, **fields), "w0", "w.json", simulate=simulate)


def test_golden_workloads_are_sent_as_batsim_sends_them():
    for folder in scenarios("golden", "own"):
        ours = read_workload(folder / "workload.json")
        jobs = {item.id: item.raw for item in ours.jobs}
        seen: list[str] = []
        for line in (folder / "messages.txt").read_text(encoding="utf-8").splitlines():
            if not line.startswith("B> "):
                continue
            for event in json.loads(line[3:])["events"]:
                data = event["data"]
                if event["type"] == "SIMULATION_BEGINS":
                    assert data["profiles"]["w0"] == ours.raw_profiles, folder.name
                if event["type"] == "JOB_SUBMITTED" and data["job_id"] in jobs:
                    assert list(jobs[data["job_id"]].items()) == list(data["job"].items()), folder.name
                    seen.append(data["job_id"])
        assert seen == [item.id for item in ours.jobs][: len(seen)], folder.name


def test_profiles():
    where = "here"
    assert parse_profile(PROFILES["d"], where) == Delay(20.2)
    assert parse_profile(PROFILES["h"], where) == Parallel(per_host_flops=1e9)
    assert parse_profile(PROFILES["t"], where) == Parallel(total_flops=4e9, return_code=3)
    assert parse_profile(PROFILES["p"], where) == Parallel(flops=(1e9, 0.0))
    assert parse_profile(PROFILES["c"], where) == Composed(("d", "h", "d"), 2)


def test_job_is_kept_verbatim_but_for_id_and_floats():
    raw = {"extra": {"a": [0.12345678, 1]}, "id": 7, "subtime": 1.23456789, "res": 4, "walltime": 5, "profile": "d"}
    before = copy.deepcopy(raw)
    made = parse_job(raw, "w0", "w.json")
    assert raw == before
    assert (made.id, made.submit_time_s, made.walltime_s, made.hosts) == ("w0!7", 1.23456789, 5.0, 4)
    assert (made.workload, made.name) == ("w0", "7")
    sent = {
        "extra": {"a": [0.123457, 1]},
        "id": "w0!7",
        "subtime": 1.234568,
        "res": 4,
        "walltime": 5,
        "profile": "d",
    }
    assert json.dumps(made.raw) == json.dumps(sent)


@pytest.mark.parametrize("walltime", [{}, {"walltime": -1}, {"walltime": -1.0}])
def test_no_walltime(walltime):
    made = parse_job(job(**walltime), "w0", "w.json")
    assert made.walltime_s is None and made.raw.get("walltime") == walltime.get("walltime")


def test_ids_and_order():
    jobs = [job(id=10), job(id="2"), job(id=1), job(id="w0!3"), job(id="late", subtime=0.5)]
    assert [item.id for item in parse(*jobs).jobs] == ["w0!1", "w0!10", "w0!2", "w0!3", "w0!late"]


def test_only_used_profiles_are_kept():
    made = parse(job(profile="cc"), profiles=PROFILES | {"junk": 3})
    assert set(made.profiles) == set(made.raw_profiles) == {"cc", "c", "d", "h", "t"}
    assert made.raw_profiles["h"]["note"] == {"x": [1.234568]}
    assert (made.nb_res, made.name, made.source) == (4, "w0", "w.json")


def test_a_workload_without_jobs():
    made = parse()
    assert made.jobs == () and dict(made.profiles) == {}


def test_a_long_chain_of_composed_profiles():
    chain = {f"c{i}": {"type": "composed", "seq": [f"c{i + 1}"]} for i in range(5000)}
    made = parse(job(profile="c0"), profiles=chain | {"c5000": PROFILES["p"]})
    assert len(made.profiles) == 5001


@pytest.mark.parametrize(("profile", "kept"), [("net", set()), ("pnet", set()), ("smpi", set()), ("cnet", {"d"})])
def test_what_only_batsim_models(profile, kept):
    with pytest.raises(UnsupportedError, match="--engine batsim"):
        parse(job(profile=profile))
    made = parse(job(profile=profile), simulate=False)
    assert set(made.profiles) == kept
    assert profile in made.raw_profiles and len(made.jobs) == 1


@pytest.mark.parametrize("kind", ["parallel_homogeneous_pfs", "data_staging", "send", "recv", "smpi", "usage_trace"])
def test_types_of_batsim_that_are_not_simulated(kind):
    with pytest.raises(UnsupportedError, match=kind):
        parse_profile({"type": kind}, "here")


def test_unknown_type_proposes_the_nearest():
    with pytest.raises(UnknownNameError, match="did you mean 'delay'"):
        parse_profile({"type": "dealy"}, "here")
    with pytest.raises(InputError) as caught:
        parse(job(profile="x"), profiles={"x": {"type": "dealy"}}, simulate=False)
    assert not isinstance(caught.value, UnsupportedError)


@pytest.mark.parametrize(
    ("profile", "message"),
    [
        (3, "must be an object, got 3"),
        ({}, "'type' must be a text, got None"),
        ({"type": 3}, "'type' must be a text, got 3"),
        ({"type": "delay"}, "no field 'delay'"),
        ({"type": "delay", "delay": 0}, "'delay' must be > 0"),
        ({"type": "delay", "delay": -1}, "'delay' must be a finite number >= 0, got -1"),
        ({"type": "delay", "delay": True}, "got True"),
        ({"type": "delay", "delay": "5"}, "got '5'"),
        ({"type": "delay", "delay": None}, "got None"),
        ({"type": "delay", "delay": float("nan")}, "got nan"),
        ({"type": "delay", "delay": float("inf")}, "got inf"),
        ({"type": "delay", "delay": 10**400}, "got an integer of more than 60 digits"),
        ({"type": "delay", "delay": 1, "ret": 1.5}, "'ret' must be an integer"),
        ({"type": "delay", "delay": 1, "ret": MAX_INT + 1}, "'ret' must be an integer"),
        ({"type": "parallel_homogeneous", "cpu": 1}, "no field 'com'"),
        ({"type": "parallel_homogeneous", "com": 0}, "no field 'cpu'"),
        ({"type": "parallel_homogeneous", "cpu": -1, "com": 0}, "'cpu' must be"),
        ({"type": "parallel_homogeneous_total", "cpu": 1, "com": -1}, "'com' must be"),
        ({"type": "parallel", "cpu": 1, "com": [0]}, "'cpu' must be a list"),
        ({"type": "parallel", "cpu": [], "com": []}, "'cpu' is empty"),
        ({"type": "parallel", "cpu": [1, 2], "com": [0, 0]}, "'com' has 2 values but 2 hosts need 4"),
        ({"type": "parallel", "cpu": [1, "a"], "com": [0, 0, 0, 0]}, "'cpu[1]'"),
        ({"type": "parallel", "cpu": [1], "com": [False]}, "'com[0]'"),
        ({"type": "composed"}, "no field 'seq'"),
        ({"type": "composed", "seq": []}, "'seq' must be a list"),
        ({"type": "composed", "seq": [1]}, "'seq' must be a list"),
        ({"type": "composed", "seq": "d"}, "'seq' must be a list"),
        ({"type": "composed", "seq": ["d"], "repeat": 0}, "'repeat' must be an integer in 1.."),
        ({"type": "composed", "seq": ["d"], "repeat": 1.0}, "'repeat' must be an integer"),
        ({"type": "composed", "seq": ["d"], "repeat": True}, "'repeat' must be an integer"),
        ({"type": "composed", "seq": ["none"]}, "profile 'x': no profile 'none'"),
        ({"type": "composed", "seq": ["d", "x"]}, "profile 'x': contains itself"),
        ({"type": "composed", "seq": ["p", "p3"]}, "its parts describe 2 and 3 hosts"),
    ],
)
@pytest.mark.parametrize("simulate", [True, False])
def test_malformed_profiles(profile, message, simulate):
    profiles = PROFILES | {"x": profile, "p3": {"type": "parallel", "cpu": [1, 1, 1], "com": [0] * 9}}
    with pytest.raises(InputError) as caught:
        parse(job(profile="x"), profiles=profiles, simulate=simulate)
    assert message in str(caught.value) and "profile 'x'" in str(caught.value)


def test_a_cycle_over_several_profiles():
    cycle = {name: {"type": "composed", "seq": ["d", other]} for name, other in ("ab", "bc", "ca")}
    with pytest.raises(InputError, match="contains itself"):
        parse(job(profile="a"), profiles=PROFILES | cycle)


@pytest.mark.parametrize("profile", ["p", "cp"])
def test_a_matrix_needs_as_many_hosts_as_the_job(profile):
    assert parse(job(profile=profile, res=2)).jobs[0].hosts == 2
    with pytest.raises(InputError, match=r"job 'w0!1': 'res' is 3 but its profile '\w+' describes 2 hosts"):
        parse(job(profile=profile, res=2, id=2), job(profile=profile, res=3))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"id": None}, "'id' must be a text or an integer, got None"),
        ({"id": 1.0}, "'id' must be"),
        ({"id": True}, "'id' must be"),
        ({"id": ""}, "is not a name"),
        ({"id": "w0!"}, "is not a name"),
        ({"id": "a!b"}, "is not a name"),
        ({"id": "w0!a!b"}, "is not a name"),
        ({"id": "row0"}, "holds the workload's name 'w0'"),
        ({"id": "w01!3"}, "holds the workload's name 'w0'"),
        ({"subtime": -1}, "'subtime' must be"),
        ({"subtime": "0"}, "'subtime' must be"),
        ({"subtime": True}, "'subtime' must be"),
        ({"subtime": float("nan")}, "'subtime' must be"),
        ({"subtime": float("inf")}, "'subtime' must be"),
        ({"subtime": 10**400}, "too large"),
        ({"res": 0}, "'res' must be an integer in 1.."),
        ({"res": 1.0}, "'res' must be"),
        ({"res": True}, "'res' must be"),
        ({"res": "2"}, "'res' must be"),
        ({"res": 2**31}, "'res' must be"),
        ({"walltime": 0}, "'walltime' must be > 0 s, got 0"),
        ({"walltime": -2}, "'walltime' must be"),
        ({"walltime": float("nan")}, "'walltime' must be"),
        ({"walltime": None}, "'walltime' must be"),
        ({"walltime": "60"}, "'walltime' must be"),
        ({"walltime": True}, "'walltime' must be"),
        ({"profile": 3}, "'profile' must be a text"),
        ({"profile": "dd"}, "no profile 'dd'; did you mean"),
    ],
)
def test_malformed_jobs(change, message):
    with pytest.raises(InputError) as caught:
        parse(job(**change))
    text = str(caught.value)
    assert message in text and "w.json: job" in text and "\n" not in text


@pytest.mark.parametrize("field", ["id", "subtime", "res", "profile"])
def test_required_fields(field):
    raw = job()
    del raw[field]
    with pytest.raises(InputError, match=f"jobs\\[0\\].*'{field}'"):
        parse(raw)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ([], "must be an object"),
        ({}, "no field 'nb_res'"),
        (workload(nb_res=0), "'nb_res' must be an integer in 1.."),
        (workload(nb_res=4.0), "'nb_res' must be"),
        (workload(nb_res=True), "'nb_res' must be"),
        ({"nb_res": 4, "profiles": {}}, "no field 'jobs'"),
        ({"nb_res": 4, "jobs": []}, "no field 'profiles'"),
        (workload(jobs={}), "'jobs' must be a list"),
        (workload(profiles=[]), "'profiles' must be an object"),
        (workload(3), "jobs[0]: a job must be an object"),
        (workload(job(), job(id="1")), "jobs[1]: a second job 'w0!1'"),
    ],
)
def test_malformed_workloads(data, message):
    with pytest.raises(InputError) as caught:
        parse_workload(data, "w0", "w.json")
    assert message in str(caught.value)


def nested(depth: int) -> str:
    return "[" * depth + "]" * depth


GOOD = json.dumps(workload(job()))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "is not JSON"),
        ("{", "is not JSON (Expecting property name"),
        ("[1,\n2,]", "line 2 column"),
        (GOOD.replace("20.2", "NaN"), "NaN is not a number"),
        (GOOD.replace("20.2", "-Infinity"), "-Infinity is not a number"),
        (GOOD.replace("20.2", "1e999"), "1e999 is too large"),
        (GOOD.replace("20.2", "1" * 5000), "is not JSON"),
        (GOOD.replace("20.2", f'1, "length_s": {10**400}'), f"{'1' + '0' * 19}... is too large"),
        (GOOD.replace('"delay": ', f'"note": [-{10**400}], "delay": '), "is too large"),
        (GOOD.replace("20.2", nested(100_000)), "nested deeper"),
        (GOOD.replace("20.2", f'1, "extra": {nested(400)}'), "nested deeper"),
        (GOOD.replace('"subtime": 0', f'"subtime": 0, "extra": {nested(400)}'), "nested deeper"),
        (GOOD.replace('"id": 1', '"id": "\\ud800"'), "surrogate"),
    ],
)
def test_broken_json(tmp_path, text, message):
    path = tmp_path / "w.json"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(InputError) as caught:
        read_workload(path)
    assert message in str(caught.value) and str(path) in str(caught.value)


def test_long_digits_in_a_text_are_a_text(tmp_path):
    path = tmp_path / "w.json"
    path.write_text(GOOD.replace('"id": 1', f'"id": "{10**400}"'))
    assert read_workload(path).jobs[0].id == f"w0!{10**400}"


def test_surrogate_pairs_and_byte_order_marks_are_fine(tmp_path):
    path = tmp_path / "w.json"
    path.write_text("\ufeff" + GOOD.replace('"id": 1', '"id": "\\ud83d\\ude00"'), encoding="utf-8")
    assert read_workload(path, "w1").jobs[0].id == "w1!\U0001f600"


def test_unreadable(tmp_path):
    for path in (tmp_path, tmp_path / "none.json", "a\0b"):
        with pytest.raises(InputError, match="cannot be read"):
            read_workload(path)
    path = tmp_path / "w.json"
    path.write_bytes(b'{"nb_res": "\xe9"}')
    with pytest.raises(InputError, match="byte 12 is not UTF-8"):
        read_workload(path)


def test_wire_floats():
    given_value = {"a": [1.23456789, 1, True, None, "x", (2.0000004,)], "b": 1e9}
    assert wire_floats(given_value) == {"a": [1.234568, 1, True, None, "x", [2.0]], "b": 1e9}
    assert given_value["a"][0] == 1.23456789
    assert type(wire_floats(1)) is int


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)


@given(st.binary(max_size=100))
def test_random_bytes_never_raise_anything_else(tmp_path_factory, noise):
    path = tmp_path_factory.getbasetemp() / "noise.json"
    path.write_bytes(noise)
    with pytest.raises(InputError):
        read_workload(path)


@given(
    st.dictionaries(st.sampled_from(["id", "subtime", "res", "walltime", "profile", "x"]), JSON),
    st.dictionaries(st.sampled_from(["type", "delay", "ret", "seq", "repeat", "cpu", "com"]), JSON),
    st.sampled_from(list(PROFILES)),
    st.booleans(),
)
def test_random_values_never_raise_anything_else(fields, profile_fields, name, simulate):
    profiles = PROFILES | {name: PROFILES[name] | profile_fields}
    try:
        made = parse(job(**({"profile": name} | fields)), profiles=profiles, simulate=simulate)
    except InputError as error:
        assert "\n" not in str(error)
    else:
        assert len(made.jobs) == 1 and made.jobs[0].id.startswith("w0!")


@given(st.lists(st.tuples(st.integers(0, 99), st.floats(0, 1e6)), unique_by=lambda pair: pair[0]), st.randoms())
def test_order_does_not_depend_on_the_file(pairs, random):
    jobs = [job(id=number, subtime=submit) for number, submit in pairs]
    expected = parse(*jobs).jobs
    random.shuffle(jobs)
    assert parse(*jobs).jobs == expected
    assert all(a.submit_time_s <= b.submit_time_s for a, b in pairwise(expected))


def test_many_jobs(tmp_path):
    path = tmp_path / "big.json"
    jobs = [job(id=i, subtime=i * 1.1, walltime=3600.5, profile=f"p{i % 1000}") for i in range(20_000)]
    profiles = {f"p{i}": {"type": "delay", "delay": i + 0.5} for i in range(1000)}
    path.write_text(json.dumps(workload(*jobs, profiles=profiles)), encoding="utf-8")
    made = read_workload(path)
    assert len(made.jobs) == 20_000 and len(made.profiles) == 1000


@pytest.mark.parametrize("before", range(20))
def test_the_shortest_whole_number_beyond_doubles(before: int):
    """10^308 is a double and 2 10^308 is none, wherever in the text its 309 digits begin."""
    blanks = " " * before
    assert load_json(f'{{{blanks}"a": {10**308}}}', "here") == {"a": 10**308}
    with pytest.raises(InputError, match="is too large"):
        load_json(f'{{{blanks}"a": {2 * 10**308}}}', "here")
