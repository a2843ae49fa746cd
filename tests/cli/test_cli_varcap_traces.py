"""Traces at the command line: generated like those of the varcap dissertation; Azure's and Borg's turned into CSV."""

from __future__ import annotations

import pytest

from batwatt.inputs.traces.convert import read_trace
from batwatt.inputs.workloads.varcap_like import VarcapLike
from batwatt.inputs.workloads.varcap_synthetic import varcap_table

VMS = "a,s,d,300,900,90,10,50,Interactive,4,32\nb,s,d,600,600,90,10,20,Unknown,>24,>64\n"
EVENTS = """\
time,type,collection_id,instance_index,resource_request.cpus,resource_request.memory
600000000,SCHEDULE,1,0,0.05,0.02
660000000,FINISH,1,0,0.05,0.02
670000000,SCHEDULE,2,0,0.1,0.01
680000000,FINISH,2,0,0.1,0.01
"""
COLLECTIONS = "collection_id,parent_collection_id,start_after_collection_ids\n2,,1\n"


@pytest.fixture
def tables(house):
    for name, text in (("vmtable.csv", VMS), ("events.csv", EVENTS), ("collections.csv", COLLECTIONS)):
        (house.out.parent / name).write_text(text)
    return house.out.parent


@pytest.mark.parametrize("like", ["mira", "azure", "borg", "tng"])
def test_generate(house, like):
    words = ["--like", like, "--jobs", 200, "--machines", 96, "--seed", 5, "--dependencies", 0.1, "--cycle", 0.5]
    path = house.out / "x.csv"
    done = house.batwatt("generate", "trace", *words, "-o", path)
    assert (done.code, done.out, done.err) == (0, "", "")
    params = VarcapLike(like, jobs=200, machines=96, dependencies=0.1, cycle=0.5)
    assert path.read_text() == varcap_table(params, 5).to_csv(index=False, lineterminator="\n")
    assert len(read_trace(path)) == len(varcap_table(params, 5))


def test_generate_mixes(house):
    words = ["--like", "tng", "--jobs", 900, "--machines", 48, "--long-fraction", 1, "--long", 2700, "--load", 0.5]
    done = house.batwatt("generate", "trace", *words)
    header, *lines = done.out.splitlines()
    assert header == "arrival_time,length,cpus,memory" and lines
    assert min(int(line.split(",")[1]) for line in lines) > 2700


@pytest.mark.parametrize(
    "words,said",
    [
        (["--like", "titan"], "varcap trace: no system 'titan'; known: azure, borg, mira, tng."),
        (["--like", "tng", "--kind", "uniform"], "--kind: is not for traces with --like"),
        (["--like", "tng", "--cores", "32"], "--cores: is not for traces with --like"),
        (["--days", "3"], "--days: is not for traces without --like"),
        (["--long-fraction", "0.5"], "--long-fraction: is not for traces without --like"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_bad_traces(house, words, said):
    done = house.batwatt("generate", "trace", *words, "-o", house.out / "x")
    assert (done.code, house.left, done.out) == (2, [], "")
    assert said in done.line


def test_convert_azure(house, tables):
    done = house.batwatt("convert", tables / "vmtable.csv", "--format", "azure")
    assert done.out == "arrival_time,length,cpus,memory,use\n300,600,4,32.0,0.5\n600,300,32,128.0,0.2\n"
    assert done.err == "2 jobs; 1 ran less than 5 min, and count as 5 min\n"


def test_convert_borg(house, tables):
    path = house.out / "jobs.csv"
    words = ["--format", "borg", "--collections", tables / "collections.csv", "--gcu-per-core", "0.05", "-o", path]
    done = house.batwatt("convert", tables / "events.csv", *words)
    assert (done.code, done.out, done.err) == (0, "", "2 jobs\n")
    assert path.read_text() == "arrival_time,length,cpus,memory,depends_on\n0.0,60.0,1,0.02,\n70.0,10.0,2,0.01,1\n"
    assert read_trace(path)[1].extra == {"memory": 0.01, "depends_on": ["1"]}


@pytest.mark.parametrize(
    "words,said",
    [
        (["--format", "azure", "--unit", "h"], "--format: azure becomes a CSV trace, not a workload"),
        (["--format", "borg", "--profile", "flops"], "--format: borg becomes a CSV trace, not a workload"),
        (["--format", "azure", "--gcu-per-core", "0.1"], "--collections and --gcu-per-core are for borg"),
        (["--format", "azure", "--censored", "no"], "--censored: 'no' is not known; use keep or drop"),
        (["--censored", "drop"], "--collections, --censored and --gcu-per-core are for --format azure or borg"),
        (["--format", "borg"], "lacks the column 'time'"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_bad_conversions(house, tables, words, said):
    done = house.batwatt("convert", tables / "vmtable.csv", *words, "-o", house.out / "x")
    assert (done.code, house.left, done.out) == (2, [], "")
    assert said in done.line


def test_convert_in_hours(house):
    jobs = house.out.parent / "jobs.csv"
    jobs.write_text("arrival_time,length,cpus\n0,0.5,4\n")
    assert '"delay": 1800' in house.batwatt("convert", jobs, "--unit", "hours").out
