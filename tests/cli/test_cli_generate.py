"""The commands that make inputs of the riskaware paper: what they write is read back, bad options are one line."""

from __future__ import annotations

import pytest

from batwatt.inputs.platforms.platform_xml import read_platform
from batwatt.inputs.series.capacity import read_capacity
from batwatt.inputs.series.capacity_walk import Walk, random_walk
from batwatt.inputs.traces.riskaware_text import read_riskaware
from batwatt.inputs.workloads.pmbs_synthetic import Synthetic, synthetic
from batwatt.model.machines import MachineSpec, machines_platform

NONE = '{"response": "none"}'


def made(house, command: str, *words: object):
    path = house.out / "x"
    done = house.batwatt("generate", command, *words, "-o", path)
    assert (done.code, done.out, done.err) == (0, "", "")
    return path


def test_machines(house):
    path = made(house, "machines", "--machines", 3, "--cores", 2, "--core-watts", 7, "--core-speed", "2Gf")
    assert read_platform(path) == machines_platform(MachineSpec(3, 2, 7.0, "2Gf"), source=str(path))


def test_walk(house):
    words = "--mean", 10, "--range", 9, "--period", 60, "--step", 3, "--no-stay", "--end", 6000, "--seed", 5
    series = read_capacity(made(house, "walk", *words), 19)
    walk = random_walk(Walk(mean=10, range=9, period_s=60, step=3, stay=False, end_s=6000), 5)
    assert (series.times_s, series.values) == (walk.times_s, walk.values) and len(series) == 101


def test_walk_by_default(house):
    done = house.batwatt("generate", "walk")
    assert (done.code, done.err) == (0, "") and done.out.startswith("time_s,machines\n0,24\n1200,")
    assert read_capacity(made(house, "walk"), 32).values == random_walk(Walk(), 0).values


def test_trace(house):
    words = "--kind", "3types", "--jobs", 50, "--end", 7200, "--machines", 2, "--cores", 4, "--seed", 5
    jobs = read_riskaware(made(house, "trace", *words))
    assert jobs == synthetic(Synthetic("3types", jobs=50, end_s=7200, machines=2, cores=4), 5) and len(jobs) == 50


def test_trace_by_default(house):
    assert read_riskaware(made(house, "trace")) == synthetic(Synthetic(), 0)


@pytest.mark.parametrize(
    "words,said",
    [
        (["machines", "--machines", "2", "--cores", "2", "--core-speed", "x"], "core_flops: 'x' is not a speed"),
        (["machines", "--machines", "2"], "Missing option '--cores'"),
        (["walk", "--range", "25"], "range must be <= mean, got range 25 and mean 24"),
        (["walk", "--seed", "-1"], "--seed"),
        (["trace", "--kind", "3type"], "no value of kind '3type'; did you mean '3types'?"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_bad_options(house, words, said):
    done = house.batwatt("generate", *words, "-o", house.out / "x")
    assert (done.code, house.left, done.out) == (2, [], "")
    assert said in done.line


def test_a_generated_workload_runs_on_generated_machines(house):
    house.out.mkdir(exist_ok=True)
    house.batwatt("generate", "workload", "--hours", 2, "-o", house.out / "w.json")
    told = house.batwatt("run", "-w", house.out / "w.json", "--machines", 20, "-o", NONE, "-e", house.out / "x")
    assert (told.code, told.err) == (0, "")
    assert house.metrics()["jobs_finished"] == house.metrics()["jobs_total"] == 24


def test_a_run_in_which_nothing_finishes_says_why_in_one_line(house):
    house.out.mkdir(exist_ok=True)
    house.batwatt("generate", "workload", "--hours", 2, "-o", house.out / "w.json")
    house.batwatt(
        *["generate", "machines", "--machines", "20", "--cores", "1", "--core-speed", "1Gf", "-o"], house.out / "m.xml"
    )
    told = house.run("-o", NONE, platform=house.out / "m.xml", workload=house.out / "w.json")
    assert told.code == 0 and told.err.count("\n") == 1 and len(told.err) < 300
    assert "none of 24 jobs finished: 24 reached their walltime (at the platform's full speed of 1 Gflop/s" in told.err
