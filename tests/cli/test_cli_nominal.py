"""`--engine nominal` at the command line: the files of the embedded engine, and what is refused."""

from __future__ import annotations

import json

import pytest

STRATEGIES = ("first-fit-aware", "first-fit-unaware", "target-stretch", "target-asap", "packed-target-asap")
TEXT = "".join(f"{i} {150 * i} {200 + 170 * ((i + 3) % 7)} {1 + i % 2}\n" for i in range(30))
WALK = "time_s,machines\n0,4\n900,2\n1500,3\n1800,1\n2100,4\n2700,3\n"


def run(house, *more, engine="nominal", scheduler="riskaware", to="x", options=None):
    words = ["-w", house.write("jobs.txt", TEXT), "--machines", 4, "--cores", 2, "-s", scheduler, "--engine", engine]
    words += ["-o", json.dumps(options or {}), "--capacity", house.write("walk.csv", WALK), "-e", house.out / to]
    return house.batwatt("run", *words, *more)


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_command(house, strategy):
    for engine in ("embedded", "nominal"):
        done = run(house, "--window", "600:3600", engine=engine, to=engine, options={"strategy": strategy})
        assert done.code == 0, done.err
    assert house.metrics("nominal")["killed_power"] > 0
    house.assert_same("embedded", "nominal")


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ({"scheduler": "varcap"}, "runs the scheduler riskaware only, not 'varcap'"),
        ({"more": ("--events", "events.txt")}, "knows no external events"),
    ],
    ids=["scheduler", "events"],
)
def test_command_refuses(house, more, words):
    given = dict(more)
    house.write("events.txt", "")
    done = run(house, *given.pop("more", ()), **given)
    assert (done.code, house.left) == (2, []), done.err
    assert words in done.line and "use --engine embedded" in done.line
