"""What is read at once is what is read with care, and whatever is unusual is left to that."""

from __future__ import annotations

from examples import examples
from hypothesis import given
from hypothesis import strategies as st

from batwatt.inputs.workloads.batsim_json import parse_job, parse_profile
from batwatt.inputs.workloads.batsim_numbers import wire_floats
from batwatt.inputs.workloads.usual_json import usual_fields, usual_job, usual_profile

numbers = st.one_of(
    st.integers(-3, 40), st.floats(), st.floats(0.0, 1e4).map(lambda value: round(value, 3)), st.integers(),
    st.sampled_from([0, -1, -1.0, 0.0, -0.0, 2**31 - 1, 2**31, 1e8, 1e14, 1e16, 123456789.123456, 5e-7, 1.5e-6, 1e308]),
)  # fmt: skip
values = st.one_of(numbers, st.text(max_size=4), st.booleans(), st.none(), st.lists(numbers, max_size=2))


def rows(**fields):
    """Objects with these fields, any of which may be missing or anything."""
    fixed = {name: st.one_of(usual, usual, usual, values) for name, usual in fields.items()}
    return st.fixed_dictionaries({}, optional=fixed | {"note": values})


def same(found, wanted):
    """Equal, to the type and the sign of zero, in the same order."""
    assert repr(found) == repr(wanted)


@examples(400)
@given(
    st.one_of(
        values,
        rows(
            id=st.one_of(st.integers(0, 9), st.sampled_from(["a", "w0", "w0!a", "a!b", "", "3#1"])),
            subtime=numbers, res=st.integers(-1, 9), profile=st.sampled_from("pq"), walltime=numbers,
        ),
    )
)  # fmt: skip
def test_jobs(raw):
    found = usual_job(raw, "w0")
    if found is not None:
        same(found, parse_job(raw, "w0", "here"))


@examples(400)
@given(
    st.one_of(
        values,
        rows(
            type=st.sampled_from(["delay", "parallel_homogeneous", "composed", "send"]),
            delay=numbers, cpu=numbers, com=st.sampled_from([0, 0.0, 1]), ret=st.integers(0, 3),
        ),
    )
)  # fmt: skip
def test_profiles(raw):
    found = usual_profile(raw)
    if found is not None:
        same(found, (parse_profile(raw, "here"), wire_floats(raw)))


@examples(400)
@given(st.dictionaries(st.text(max_size=3), values, max_size=4))
def test_fields(raw):
    found = usual_fields(raw)
    if found is not None:
        same(found, wire_floats(raw))


def test_the_usual_is_usual():
    job = {"id": 7, "subtime": 0.5, "res": 2, "profile": "p", "walltime": 3}
    assert usual_job(job, "w0") == parse_job(job, "w0", "here") is not None
    assert job["id"] == 7
    assert usual_profile({"type": "delay", "delay": 2.5}) is not None
    assert usual_profile({"type": "parallel_homogeneous", "cpu": 4e11, "com": 0, "ret": 1}) is not None
