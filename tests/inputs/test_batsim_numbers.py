"""Numbers, the order of hash tables and workloads of Batsim 5."""

from __future__ import annotations

import json

import pytest
from examples import examples
from files_of_tests import refusal, written
from hypothesis import given
from hypothesis import strategies as st

from batwatt.inputs.batsim_files import converted_file
from batwatt.protocol.conversion import to_batsim4, to_batsim5
from batwatt.protocol.numbers import batsim_float, batsim_number, wire_floats
from batwatt.protocol.workload4 import hash_order, kept_parts


def test_doubles():
    texts = {
        "45.6130065": 45.6130065,
        "45.613006500000004": 45.6130065,  # Python: 45.613006500000004
        "0.12345650000000001": 0.1234565,
        "1e-7": 1e-7,
        "-0.0": 0.0,
        "18446744073709551621": 1.8446744073709552e19,
        "1e-400": 0.0,
        "1e308": 1e308,
    }
    assert {text: batsim_float(text) for text in texts} == texts
    for text in ("1e309", "0x1.8p3" * 9):
        with pytest.raises(ValueError, match=r"large|number"):
            batsim_float(text)
    assert batsim_number(2**53 + 1) == 2.0**53  # a 64-bit integer is rounded once, to even
    assert wire_floats([2**64 - 1, -(2**63), 2**64]) == [2**64 - 1, -(2**63), 2.0**64]
    assert type(wire_floats(2**64)) is float


def test_order_of_libstdcxx():
    """As printed by a program that puts these names in a `std::unordered_map<std::string, int>` (GCC 12)."""
    names = ["a", "b", "c", "delay", "parallel_homogeneous"]
    assert hash_order(names) == names[::-1]
    walked = [int(name[8:]) for name in hash_order(f"profile-{number}" for number in range(31))]
    first = [30, 12, 14, 11, 7, 4, 6, 27, 3, 5, 2, 29, 16, 19, 1, 17]
    assert walked == [*first, 0, 24, 13, 15, 18, 9, 21, 22, 20, 23, 8, 26, 10, 25, 28]


def test_part_goes_with_its_composed_profile_or_stays():
    """Three names in buckets of their own are walked from the last to the first."""
    assert hash_order("dce") == ["e", "c", "d"]
    assert kept_parts({"c": ("d", "e")}, "dce") == ["e"]  # e's turn is before c's, d's after
    assert kept_parts({"c": ("d",), "e": ("c",)}, "dce") == []  # e goes, then c that only e named, then d
    assert kept_parts({"c": ("e",), "d": ("c",)}, "dce") == ["e", "c"]
    assert kept_parts({}, "dce") == []


OWN = {"id": "1", "subtime": 0, "res": 2, "profile": "d"}
NAMES = st.sampled_from(["memory", "depends_on", "tag"])
ALL_NAMES = st.one_of(NAMES, st.sampled_from([*OWN, "walltime", "extra_data"]))
VALUES = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(-9, 9), st.text(max_size=3)),
    lambda inner: st.one_of(st.lists(inner, max_size=2), st.dictionaries(ALL_NAMES, inner, max_size=2)),
    max_leaves=4,
)
OBJECTS = st.dictionaries(ALL_NAMES, VALUES, max_size=3)
TEXTS = st.one_of(st.text(max_size=4), st.one_of(VALUES, OBJECTS).map(json.dumps))
JOBS = st.builds(
    lambda own, more, extra: OWN | own | more | extra,
    st.fixed_dictionaries({}, optional={"walltime": st.integers(1, 9)}),
    st.dictionaries(NAMES, VALUES, max_size=3),
    st.fixed_dictionaries({}, optional={"extra_data": st.one_of(VALUES, OBJECTS, TEXTS)}),
)


def there_and_back(*jobs):
    """The jobs as Batsim 5 has them, and as Batsim 4 has those."""
    theirs = to_batsim5({"nb_res": 2, "jobs": list(jobs), "profiles": {"d": {"type": "delay", "delay": 5}}}, "x")
    return theirs["jobs"], to_batsim4(theirs, "x")["jobs"]


@pytest.mark.parametrize(
    ("extra", "there", "back"),
    [
        # what Batsim 5 calls extra data are a user's fields; they come back as such
        ({"a": 1}, {"a": 1, "memory": 4}, {"a": 1}),
        ('{"a": 1}', {"a": 1, "memory": 4}, {"a": 1}),
        # what is no object, or has a name that there is already, stays a field
        ("a text", {"memory": 4, "extra_data": "a text"}, {"extra_data": "a text"}),
        ([1], {"memory": 4, "extra_data": [1]}, {"extra_data": [1]}),
        ({"memory": 3}, {"memory": 4, "extra_data": {"memory": 3}}, {"extra_data": {"memory": 3}}),
        ({"walltime": 3}, {"memory": 4, "extra_data": {"walltime": 3}}, {"extra_data": {"walltime": 3}}),
    ],
)
def test_extra_data_and_other_fields_of_users(extra, there, back):
    [theirs], [again] = there_and_back(OWN | {"memory": 4, "extra_data": extra})
    assert theirs == OWN | {"extra_data": there}
    assert again == OWN | {"memory": 4} | back


@examples(200)
@given(JOBS)
def test_a_job_there_and_back_has_the_same_fields(job):
    [theirs], [back] = there_and_back(job)
    assert set(theirs) <= {*OWN, "walltime", "extra_data"}
    # Batsim 5 refuses other extra data
    assert isinstance(theirs.get("extra_data", ""), str | dict | list)
    if back != job:
        # only an object in extra data is taken apart, when none of its names is in use
        extra = job["extra_data"]
        parts = json.loads(extra) if isinstance(extra, str) else extra
        fields = {name: value for name, value in job.items() if name != "extra_data"}
        assert parts.keys().isdisjoint({*job, "walltime"})
        assert back == fields | parts
    assert there_and_back(back) == ([theirs], [back])


DELAY = {"type": "DelayProfile", "delay": 10}
SEQUENCE = {"type": "SequentialCompositionProfile", "seq": 5}


def workload5(folder, **parts):
    """A workload of Batsim 5 as a file."""
    job = {"id": 1, "subtime": 0, "res": 1, "profile": "p"}
    return written(folder, json.dumps({"nb_res": 2, "jobs": [job], "profiles": {"p": DELAY}} | parts), "w5.json")


@pytest.mark.parametrize(
    "parts,message",
    [
        ({"jobs": [{"id": 1}]}, "jobs[0]: no field 'subtime'"),
        ({"jobs": [{"id": 1, "subtime": 0, "res": 1, "profile": "q"}]}, "no profile 'w0!q'"),
        ({"profiles": {"p": DELAY, "x": []}}, "profile 'w0!x': must be an object, got list"),
        ({"profiles": {"p": DELAY, "x": {"type": ["delay"]}}}, "profile 'w0!x': 'type' must be a text, got list"),
        ({"profiles": {"p": DELAY, "s": SEQUENCE}}, "profile 'w0!s': 'seq' must be a list of texts, got 5"),
    ],
)
@pytest.mark.parametrize("to", ["batsim4", "batsim5"])
def test_a_malformed_file_of_batsim_5(tmp_path, parts, message, to):
    path = workload5(tmp_path, **parts)
    line = refusal(converted_file, path, to)
    assert message in line and str(path) in line


def test_a_profile_that_only_batsim_models_is_converted(tmp_path):
    talk = {"type": "ParallelTaskHomogeneousProfile", "cpu": 1e9, "com": 1e6}
    path = workload5(tmp_path, profiles={"p": talk})
    assert converted_file(path, "batsim4")["profiles"]["p"] == talk | {"type": "parallel_homogeneous"}
