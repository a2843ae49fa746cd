"""Numbers with units: what is written is what is read."""

from __future__ import annotations

import time
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from batwatt.checks import finite
from batwatt.units import microseconds, speed_flops

EXPONENTS = {"": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18, "Z": 21, "Y": 24}


def test_speeds():
    assert (speed_flops(" 38.4 Gflops "), speed_flops(".5f")) == (38.4e9, 0.5)
    assert (speed_flops("2gigaflops"), speed_flops("1.5e3kiloflops"), speed_flops("0f", zero=True)) == (2e9, 1.5e6, 0.0)


@given(st.integers(1, 10**17), st.integers(0, 20), st.integers(-30, 30), st.sampled_from(sorted(EXPONENTS)))
def test_a_speed_is_the_float_nearest_to_what_is_written(digits, decimals, exponent, prefix):
    padded = f"{digits:0{decimals + 1}d}"
    number = f"{padded[: len(padded) - decimals]}.{padded[len(padded) - decimals :]}"
    exact = Fraction(digits) * Fraction(10) ** (exponent - decimals + EXPONENTS[prefix])
    assert speed_flops(f"{number}e{exponent}{prefix}f") == float(exact)


HOSTILE = {
    "huge exponent": "1e999999999Gf",
    "400 digits": "9" * 400 + "Gf",
    "100,000 digits": "1" * 100_000 + "x",
    "negative": "-1Gf",
    "zero": "0Gf",
    "nothing": "",
    "underscore": "1_000f",
    "word for a letter": "1gigaf",
}


@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE)
def test_what_is_no_speed_is_refused_at_once_and_in_few_words(text):
    began = time.process_time()
    with pytest.raises(ValueError, match=r"is not a speed|must be positive and finite") as caught:
        speed_flops(text)
    assert len(str(caught.value)) < 150
    assert time.process_time() - began < 5.0


@pytest.mark.parametrize("number", [10**400, 10**5000, "9" * 400, "x" * 1000, "nan", "", None], ids=lambda _: "")
def test_what_is_no_finite_number_is_refused_in_few_words(number):
    with pytest.raises(ValueError, match="number") as caught:
        finite(number)
    assert len(str(caught.value)) < 150


def test_microseconds():
    assert microseconds(0.1 + 0.2) == 0.3
    assert microseconds(3) == 3
    assert microseconds(float("inf")) == float("inf")
