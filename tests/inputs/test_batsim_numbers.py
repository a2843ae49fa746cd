"""Numbers as RapidJSON reads them; the expected doubles were printed by a program that uses it."""

from __future__ import annotations

import pytest

from batwatt.protocol.numbers import batsim_float, batsim_number, wire_floats
from batwatt.protocol.workload4 import parse_workload


@pytest.mark.parametrize(
    ("text", "double"),
    [
        ("45.6130065", 45.6130065),
        ("45.613006500000004", 45.6130065),  # Python: 45.613006500000004
        ("0.12345650000000001", 0.1234565),
        ("1e-7", 1e-7),
        ("-0.0", 0.0),
        ("18446744073709551621", 1.8446744073709552e19),
        ("1e-400", 0.0),
        ("1e308", 1e308),
    ],
)
def test_doubles(text, double):
    assert batsim_float(text) == double


@pytest.mark.parametrize("text", ["1e309", "0.1e310", "9" * 310, "1e999999", "0x1.8p3" * 9])
def test_too_large_or_no_number(text):
    with pytest.raises(ValueError, match=r"large|number"):
        batsim_float(text)


def test_integers():
    assert batsim_number(2**53 + 1) == 2.0**53  # a 64-bit integer is rounded once, to even
    assert wire_floats([2**64 - 1, -(2**63), 2**64]) == [2**64 - 1, -(2**63), 2.0**64]
    assert type(wire_floats(2**64)) is float


def test_what_is_sent_has_been_written_and_read_once_more():
    assert wire_floats({"a": 1.2345675}) == {"a": round(1.2345675, 6)}
    assert wire_floats(1e9) == 1e9


def test_parts_that_batsim_keeps():
    """Three names are walked from the last to the first: `e` has its turn before `c` that names it, `d` after."""
    profiles = {
        "d": {"type": "delay", "delay": 1},
        "c": {"type": "composed", "seq": ["d", "e"]},
        "e": {"type": "delay", "delay": 2},
    }
    made = parse_workload({"nb_res": 1, "jobs": [], "profiles": profiles}, "w0", "w.json")
    assert list(made.profiles) == list(made.raw_profiles) == ["e"]
