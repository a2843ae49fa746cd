"""Traces of jobs under an envelope: they are work, which slower servers take longer for."""

from __future__ import annotations

import gzip
import json

import pytest
from cli_house import House

# 40 Gf at 200 W and 20 Gf at 100 W, 60 W idle
STATES = '<prop id="wattage_per_state" value="60:200, 60:100, 5:5, 60:60, 100:100"/>'
SLEEPS = '<prop id="sleep_pstates" value="2:3:4"/>'
FAST = f'speed="40Gf, 20Gf, 1e-9Mf, 0.1f, 0.02f" pstate="0">{STATES}{SLEEPS}'
ONE = 'speed="40Gf" pstate="0"><prop id="wattage_per_state" value="60:200"/>'
SLOW = 'speed="20Gf" pstate="0"><prop id="wattage_per_state" value="60:100"/>'
TEN_HOURS = "arrival_time,length,cpus\n" + "0,36000,1\n" * 4
SWF = "".join(f"{n} 0 -1 36000 1 -1 -1 1 40000 -1 1 1 1 1 1 1 -1 -1\n" for n in (1, 2, 3, 4))
IDSB = ("-o", '{"response": "idsb"}')
NONE = ("-o", '{"response": "none"}')
NAPS = {
    "nb_res": 4,
    "jobs": [{"id": str(n), "subtime": 0, "res": 1, "profile": "nap"} for n in range(4)],
    "profiles": {"nap": {"type": "delay", "delay": 36000}},
}
NESTED = {
    "nb_res": 4,
    "jobs": [
        {"id": "a", "subtime": 0, "res": 2, "walltime": 200_000, "profile": "twice"},
        {"id": "b", "subtime": 0, "res": 2, "walltime": 200_000, "profile": "work"},
    ],
    "profiles": {
        "twice": {"type": "composed", "repeat": 2, "seq": ["inner", "nap"]},
        "inner": {"type": "composed", "repeat": 1, "seq": ["nap"]},
        "nap": {"type": "delay", "delay": 9000},
        "work": {"type": "parallel_homogeneous", "cpu": 36_000 * 40e9, "com": 0},
    },
}
# 300 s at full speed, the rest of 36,000 at half of it: the end is at 300 + 2 x 35,700 s
END_S = 300 + 2 * 35_700
ENERGY_J = 300 * 4 * 200 + 2 * 35_700 * 4 * 100


def servers(house: House, *kinds: str):
    hosts = "".join(f'<host id="n{number}" {kind}</host>' for number, kind in enumerate(kinds))
    master = '<host id="master_host" speed="1f"><prop id="role" value="master"/></host>'
    zone = f"<zone id='A' routing='Full'>{master}{hosts}</zone>"
    return house.write("servers.xml", f"<?xml version='1.0'?><platform version='4.1'>{zone}</platform>")


@pytest.fixture
def four(house):
    """Four servers, four jobs of ten hours, and a cap that is halved after five minutes."""
    house.write("j.csv", TEN_HOURS)
    house.write("j.swf", SWF)
    (house.folder / "j.csv.gz").write_bytes(gzip.compress(TEN_HOURS.encode()))
    house.half = house.write("half.csv", "time_s,power_w\n0,800\n300,400\n")
    house.write("jd.json", json.dumps(NAPS))
    house.write("nested.json", json.dumps(NESTED))
    house.xml = servers(house, *[FAST] * 4)
    return house


def run(house, workload, *args, to="x"):
    done = house.run(*args, platform=house.xml, workload=house.folder / workload, to=to)
    assert done.code == 0, done.err
    return done


@pytest.mark.parametrize("trace", ["j.swf", "j.csv.gz"])
def test_halving_the_cap_nearly_doubles_the_run_times(four, trace):
    done = run(four, trace, "--envelope", four.half, *IDSB)
    before = four.metrics()
    assert (before["makespan_s"], before["violations"], before["jobs_finished"]) == (END_S, 0, 4)
    assert before["energy_j"] == pytest.approx(ENERGY_J, rel=1e-9) and before["mean_slowdown"] == 1.0
    stretch = before["mean_run_time_stretch"]
    assert stretch == before["mean_full_speed_slowdown"] == pytest.approx(END_S / 36_000, abs=1e-6)
    assert "1.99" in done.out
    assert ("4 of 4 jobs request no run time" in done.err) == (trace != "j.swf") and done.err.count("\n") <= 1
    words = ("-w", four.folder / trace, "-p", four.xml, "--envelope", four.half)
    assert four.batwatt("metrics", four.out / "x", *words).code == 0 and four.metrics() == before


def test_delays_of_a_workload_stay_and_are_told_once(four):
    done = run(four, "jd.json", "--envelope", four.half, *IDSB)
    assert four.metrics()["mean_run_time_stretch"] == 1.0 and four.metrics()["energy_j"] < 36_000 * 4 * 100
    line, requests = done.err.splitlines()
    assert "4 of 4 jobs request no run time" in requests
    assert "jd.json: 4 of 4 jobs are delays and do not slow with their hosts: " in line
    assert "--delays-to-flops" in line and "docs/explanation/powercap.md" in line
    # without a response they do not matter
    assert "delays" not in run(four, "jd.json", "--envelope", four.half, *NONE).err


def test_delays_in_sequences_are_delays_and_become_work(four):
    assert "nested.json: 1 of 2 jobs are delays" in run(four, "nested.json", "--envelope", four.half, *IDSB).err
    done = run(four, "nested.json", "--envelope", four.half, *IDSB, "--delays-to-flops")
    assert (four.metrics()["makespan_s"], done.err) == (END_S, "")
    assert four.metrics()["energy_j"] == pytest.approx(ENERGY_J, rel=1e-9)


@pytest.mark.parametrize("who", ["adaptive", "varcap", "riskaware", "checkpoint", "jobpower", "powercap"])
def test_jobs_of_a_trace_draw_what_busy_hosts_do_by_any_scheduler(four, who):
    """4 x 36,000 s of work: 5 mJ per flop at 40 Gf and 200 W, as at 20 Gf and 100 W, never the 60 W of idle hosts."""
    cap = four.write("cap.csv", "time_s,power_w\n0,500\n")
    done = run(four, "j.csv", "--envelope", cap, "-s", who)
    figures = four.metrics()
    assert figures["jobs_finished"] == 4 and "delays" not in done.err
    assert figures["energy_j"] >= 4 * 36_000 * 200 and figures["finished_work_fraction"] == 1.0


@pytest.mark.parametrize(
    ("kinds", "envelope", "makespan_s", "energy_j"),
    [
        # the slow one needs 200 s for what the fastest does in 100, which is half busy
        ((ONE, SLOW), None, 200, 200 * ((60 + 200) / 2 + 100)),
        # one speed and no envelope, so no power is asked for: jobs are delays, at idle watts
        ((ONE, ONE), None, 100, 100 * 120),
        ((ONE, ONE), "time_s,power_w\n0,1000\n", 100, 100 * 400),
    ],
    ids=["two speeds", "one speed", "one speed and an envelope"],
)
def test_servers_without_a_response(house, kinds, envelope, makespan_s, energy_j):
    house.write("j.csv", "arrival_time,length,cpus\n0,100,2\n")
    house.xml = servers(house, *kinds)
    words = () if envelope is None else ("--envelope", house.write("flat.csv", envelope))
    run(house, "j.csv", *NONE, *words)
    assert (house.metrics()["makespan_s"], house.metrics()["energy_j"]) == (makespan_s, energy_j)


@pytest.mark.parametrize("who", ["varcap", "riskaware", "checkpoint"])
def test_the_same_jobs_in_flops_have_the_same_figures(house, who):
    """Two jobs of 100 s at 40 Gf; the host of 20 Gf takes 200 s for one: 2 x 100 of 2 x 200 core s are work."""
    xml, capacity = servers(house, ONE, SLOW), house.write("c.csv", "time_s,machines\n0,2\n")
    jobs = [{"id": str(n), "subtime": 0, "res": 1, "profile": "p"} for n in (1, 2)]
    flops = house.workload(*jobs, nb_res=2, p={"type": "parallel_homogeneous", "cpu": 4e12, "com": 0})
    words = ("-s", who, "--capacity", capacity)
    figures = []
    for path in (house.write("j.csv", "arrival_time,length,cpus\n0,100,1\n0,100,1\n"), flops):
        assert house.run(*words, platform=xml, workload=path).code == 0
        figures.append(house.metrics())
        assert house.batwatt("metrics", house.out / "x", "-p", xml, "-w", path, "--capacity", capacity).code == 0
        figures.append(house.metrics())
    assert all(one == figures[0] for one in figures)
    assert (figures[0]["goodput"], figures[0]["slowdown_rate"], figures[0]["min_yield"]) == (0.5, 0.5, 0.5)
