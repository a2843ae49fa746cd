"""Traces of jobs under an envelope: they are work, which slower servers take longer for."""

from __future__ import annotations

import gzip
import json

import pandas as pd
import pytest
from cli_house import House

import batwatt as bw

# 40 Gf at 200 W and 20 Gf at 100 W, 60 W idle
STATES = '<prop id="wattage_per_state" value="60:200, 60:100, 5:5, 60:60, 100:100"/>'
SLEEPS = '<prop id="sleep_pstates" value="2:3:4"/>'
FAST = f'speed="40Gf, 20Gf, 1e-9Mf, 0.1f, 0.02f" pstate="0">{STATES}{SLEEPS}'
ONE = 'speed="40Gf" pstate="0"><prop id="wattage_per_state" value="60:200"/>'
SLOW = 'speed="20Gf" pstate="0"><prop id="wattage_per_state" value="60:100"/>'
TEN_HOURS = "arrival_time,length,cpus\n" + "0,36000,1\n" * 4
SWF = "".join(f"{n} 0 -1 36000 1 -1 -1 1 40000 -1 1 1 1 1 1 1 -1 -1\n" for n in (1, 2, 3, 4))
HALVED = "time_s,power_w\n0,800\n300,400\n"
IDSB = ("-o", '{"response": "idsb"}')
NONE = ("-o", '{"response": "none"}')


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
    house.write("half.csv", HALVED)
    house.write("jd.json", json.dumps({"nb_res": 4, "jobs": [
        {"id": str(n), "subtime": 0, "res": 1, "profile": "nap"} for n in range(4)
    ], "profiles": {"nap": {"type": "delay", "delay": 36000}}}))  # fmt: skip
    house.xml = servers(house, *[FAST] * 4)
    return house


def run(house, workload, *args, to="x"):
    done = house.run(*args, platform=house.xml, workload=house.folder / workload, to=to)
    assert done.code == 0, done.err
    return done


# 300 s at full speed, the rest of 36,000 at half of it: the end is at 300 + 2 x 35,700 s
END_S = 300 + 2 * 35_700
ENERGY_J = 300 * 4 * 200 + 2 * 35_700 * 4 * 100


@pytest.mark.parametrize("trace", ["j.csv", "j.swf", "j.csv.gz"])
def test_halving_the_cap_nearly_doubles_the_run_times(four, trace):
    done = run(four, trace, "--envelope", four.folder / "half.csv", *IDSB)
    found = four.metrics()
    assert (found["makespan_s"], found["violations"], found["jobs_finished"]) == (END_S, 0, 4)
    assert found["energy_j"] == pytest.approx(ENERGY_J, rel=1e-9)
    assert found["mean_slowdown"] == 1.0
    assert (
        found["mean_run_time_stretch"] == found["mean_full_speed_slowdown"] == pytest.approx(END_S / 36_000, abs=1e-6)
    )
    assert "1.99" in done.out and done.err == ""


def test_both_ways_leave_the_same_files(four):
    for engine in ("embedded", "wire"):
        run(four, "j.csv", "--envelope", four.folder / "half.csv", *IDSB, "--engine", engine, to=engine)
    four.assert_same("embedded", "wire")


def test_metrics_of_the_files_are_those_of_the_run(four):
    envelope = ("--envelope", four.folder / "half.csv")
    run(four, "j.csv", *envelope, *IDSB)
    before = four.metrics()
    done = four.batwatt("metrics", four.out / "x", "-w", four.folder / "j.csv", "-p", four.xml, *envelope)
    assert done.code == 0 and four.metrics() == before


@pytest.mark.parametrize("who", [IDSB, ("-s", "adaptive")], ids=["powercap", "adaptive"])
def test_delays_of_a_workload_stay_and_are_told_once(four, who):
    done = run(four, "jd.json", "--envelope", four.folder / "half.csv", *who)
    assert four.metrics()["mean_run_time_stretch"] == 1.0 and four.metrics()["energy_j"] < 36_000 * 4 * 100
    [line] = done.err.splitlines()
    assert "jd.json: 4 of 4 jobs are delays and do not slow with their hosts: " in line
    assert "--delays-to-flops" in line and "docs/explanation/powercap.md" in line


NESTED = {"nb_res": 4, "jobs": [
    {"id": "a", "subtime": 0, "res": 2, "walltime": 200_000, "profile": "twice"},
    {"id": "b", "subtime": 0, "res": 2, "walltime": 200_000, "profile": "work"},
], "profiles": {
    "twice": {"type": "composed", "repeat": 2, "seq": ["inner", "nap"]},
    "inner": {"type": "composed", "repeat": 1, "seq": ["nap"]},
    "nap": {"type": "delay", "delay": 9000},
    "work": {"type": "parallel_homogeneous", "cpu": 36_000 * 40e9, "com": 0},
}}  # fmt: skip


def test_delays_in_sequences_are_delays_and_become_work(four):
    four.write("nested.json", json.dumps(NESTED))
    done = run(four, "nested.json", "--envelope", four.folder / "half.csv", *IDSB)
    assert "nested.json: 1 of 2 jobs are delays" in done.err
    done = run(four, "nested.json", "--envelope", four.folder / "half.csv", *IDSB, "--delays-to-flops")
    assert (four.metrics()["makespan_s"], done.err) == (END_S, "")
    assert four.metrics()["energy_j"] == pytest.approx(ENERGY_J, rel=1e-9)


def test_several_workloads_become_work_on_both_engines(four):
    four.write("nested.json", json.dumps(NESTED | {"jobs": NESTED["jobs"][:1]}))
    four.write("second.json", json.dumps(NESTED | {"jobs": NESTED["jobs"][:1]}))
    more = ("-w", four.folder / "second.json", "--delays-to-flops")
    for engine in ("embedded", "wire"):
        run(four, "nested.json", "--envelope", four.folder / "half.csv", *IDSB, *more, "--engine", engine, to=engine)
    four.assert_same("embedded", "wire")
    run(four, "nested.json", "--envelope", four.folder / "half.csv", *IDSB, *more)
    assert (four.metrics()["makespan_s"], four.metrics()["jobs_finished"]) == (END_S, 2)


def test_jobs_of_a_trace_may_stay_delays(four):
    done = run(four, "j.csv", "--envelope", four.folder / "half.csv", *IDSB, "--no-delays-to-flops")
    assert four.metrics()["makespan_s"] == 36_000 and "j.csv: 4 of 4 jobs are delays" in done.err
    assert json.loads(four.file("x_metadata.json"))["delays_to_flops"] is False


@pytest.mark.parametrize("who", ["adaptive", "varcap", "riskaware", "checkpoint", "jobpower", "powercap"])
def test_jobs_of_a_trace_draw_what_busy_hosts_do_by_any_scheduler(four, who):
    """4 x 36,000 s of work: 5 mJ per flop at 40 Gf and 200 W, as at 20 Gf and 100 W, never the 60 W of idle hosts."""
    four.write("cap.csv", "time_s,power_w\n0,500\n")
    done = run(four, "j.csv", "--envelope", four.folder / "cap.csv", "-s", who)
    found = four.metrics()
    assert found["jobs_finished"] == 4 and "delays" not in done.err
    assert found["energy_j"] >= 4 * 36_000 * 200
    assert found["finished_work_fraction"] == 1.0


@pytest.mark.parametrize("given", ["frame", "file"])
def test_jobs_of_a_frame_and_of_the_api_are_work(four, given):
    jobs = pd.DataFrame({"submission_time_s": [0.0] * 4, "length_s": [36_000.0] * 4, "hosts": [1] * 4})
    load = bw.Workload.from_frame(jobs, hosts=4) if given == "frame" else four.folder / "j.csv"
    spec = {"options": {"response": "idsb"}, "envelope": four.folder / "half.csv"}
    assert bw.simulate(four.xml, load, **spec).metrics["makespan_s"] == END_S
    assert bw.simulate(four.xml, load, **spec, delays_to_flops=False).metrics["makespan_s"] == 36_000
    nap = four.folder / "jd.json"
    assert bw.simulate(four.xml, nap, **spec, delays_to_flops=True).metrics["makespan_s"] == END_S


def test_a_carbon_scheduler_measures_busy_hosts(four):
    four.write("g.csv", "time_s,g_per_kwh\n0,100\n500000,100\n")
    run(four, "j.csv", "--carbon", four.folder / "g.csv", "-s", "carbon", "-o", '{"policy": "immediate"}')
    assert four.metrics()["energy_j"] == pytest.approx(4 * 36_000 * 200, rel=2e-3)


def test_systems_compared_do_the_same_work(four):
    """Of systems on hosts of two speeds none is free of the watts of its jobs."""
    cases = {name: bw.Case(name) for name in ("varcap", "adaptive")} | {
        "idsb": bw.Case("powercap", {"response": "idsb"})
    }
    found = bw.compare(four.xml, four.folder / "j.csv", four.folder / "half.csv", cases)
    energies = found.table.set_index("case")["energy_j"]
    assert len(energies) == 3 and (energies >= 4 * 36_000 * 200).all()


def test_without_a_response_nothing_is_told(four):
    assert run(four, "jd.json", "--envelope", four.folder / "half.csv", *NONE).err == ""
    run(four, "j.csv", "--envelope", four.folder / "half.csv", *NONE)
    assert (four.metrics()["makespan_s"], four.metrics()["energy_j"]) == (36_000, 36_000 * 800)


def test_servers_of_several_speeds_take_their_time_without_an_envelope(house):
    house.write("j.csv", "arrival_time,length,cpus\n0,100,2\n")
    # the slow one needs 200 s for what the fastest does in 100
    house.xml = servers(house, ONE, SLOW)
    run(house, "j.csv", *NONE)
    assert house.metrics()["makespan_s"] == 200 and house.metrics()["mean_run_time_stretch"] == 2.0
    # the fast one is half busy
    assert house.metrics()["energy_j"] == 200 * ((60 + 200) / 2 + 100)


def test_with_one_speed_and_no_envelope_jobs_are_delays(house):
    house.write("j.csv", "arrival_time,length,cpus\n0,100,2\n")
    house.xml = servers(house, ONE, ONE)
    run(house, "j.csv", *NONE)
    # idle watts: no power is asked for
    assert (house.metrics()["makespan_s"], house.metrics()["energy_j"]) == (100, 100 * 120)
    house.write("flat.csv", "time_s,power_w\n0,1000\n")
    run(house, "j.csv", "--envelope", house.folder / "flat.csv", *NONE)
    assert (house.metrics()["makespan_s"], house.metrics()["energy_j"]) == (100, 100 * 400)


def test_late_submissions_are_told_to_be_milliseconds(four):
    four.write("late.csv", "arrival_time,length,cpus\n1700000000000,6000,1\n")
    done = four.run(*NONE, platform=four.xml, workload=four.folder / "late.csv")
    assert done.code == 2 and "53871 years on; divide all its times by 1000 if they are milliseconds" in done.line


def test_plans_for_machines_that_come_and_go_need_lengths(house):
    house.write("j.csv", "arrival_time,length,cpus\n0,100,1\n")
    house.write("c.csv", "time_s,machines\n0,2\n")
    house.xml = servers(house, FAST, FAST)
    args = ("--capacity", house.folder / "c.csv", "-s", "riskaware", "-o", '{"strategy": "first-fit-aware"}')
    done = house.run(*args, platform=house.xml, workload=house.folder / "j.csv")
    assert done.code == 0, done.err
    assert house.metrics()["makespan_s"] == pytest.approx(100, abs=1e-3)
