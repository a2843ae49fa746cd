"""The commands `generate capacity` and `characterise`."""

from __future__ import annotations

import pytest

from batwatt.inputs.series.capacity import read_capacity
from batwatt.inputs.series.capacity_spec import parse_capacity

PRICES = "Time,price\n2024-01-01 00:00,100\n2024-01-01 01:00,250\n2024-01-01 02:00,400\n"


def shown(done) -> dict[str, str]:
    assert (done.code, done.err) == (0, ""), done
    return dict(line.split("\t") for line in done.out.splitlines())


def test_generated_machines_are_those_of_the_text(house):
    text = "walk:range=0.6,seed=1"
    done = house.batwatt("generate", "capacity", text, "--machines", 50, "--end", 36000, "-o", house.out / "c.csv")
    assert (done.code, done.out, done.err) == (0, "", "")
    series, made = read_capacity(house.out / "c.csv", 50), parse_capacity(text).series(50, 36000.0)
    assert (series.times_s, series.values) == (made.times_s, made.values) and len(series) == 10


def test_generated_fractions(house):
    done = house.batwatt("generate", "capacity", "constant:mean=0.7")
    assert (done.code, done.out) == (0, "time_s,fraction\n0,0.7\n")


def test_characterised_text(house):
    found = shown(house.batwatt("characterise", "walk:range=0.6,step=0.15,seed=1,level=0"))
    assert found["structure"].startswith("walk") and found["period"] == "3600 s" and found["values"].endswith("30 days")
    assert found["synthetic"].startswith("walk:range=0.5")


def test_characterised_purchase(house):
    path = house.write("p.csv", PRICES)
    found = shown(house.batwatt("characterise", f"price:{path},headroom=1,unit=EUR/kWh"))
    # 175 each hour, but 100 x 1 in the first
    assert found["sum of price x h"] == "450 for a full data centre of 1; fixed: 525"
    assert found["saved"] == "14.3% relative to a fixed 0.7" and found["begins"] == "2024-01-01T00:00Z"
    half = shown(house.batwatt("characterise", f"price:{path},headroom=1,unit=EUR/kWh", "--fixed", "0.35"))
    assert half["saved"] == "-71.4% relative to a fixed 0.35"


def test_characterised_files(house):
    prices = house.write("p.csv", PRICES)
    assert shown(house.batwatt("characterise", prices))["range"] == "300 (100 to 400)"
    walk = house.write("walk.txt", "24\n1200 26\n2400 24\n")
    assert shown(house.batwatt("characterise", walk))["mean"] == "24.67"
    found = shown(house.batwatt("characterise", walk, "--machines", 50))
    assert (found["range"], found["frequency"].split(",")[0]) == ("0.04 (0.48 to 0.52)", "3 an hour possible")


@pytest.mark.parametrize(
    "words,said",
    [
        (("generate", "capacity", "walk.csv"), "CAPACITY: 'walk.csv' describes no capacity; write for instance"),
        (("generate", "capacity", "walk:rnge=1"), "no key 'rnge'; did you mean 'range'?"),
        (("characterise", "walk:period=1e-9"), "walk:period=1e-9: end_s / period_s must be <= 2000000"),
        (("characterise", "nix.csv"), "nix.csv: cannot be read"),
        (("characterise", "walk:range=0.6", "--column", "x"), "--column: is for a file"),
    ],
)
def test_errors_are_one_line(house, words, said):
    done = house.batwatt(*words)
    assert done.code == 2 and said in done.line


def test_machines_are_for_a_column_of_machines(house):
    done = house.batwatt("characterise", house.write("p.csv", PRICES), "--machines", 5)
    assert done.code == 2 and "--machines: is for a column 'machines', not 'price'" in done.line
