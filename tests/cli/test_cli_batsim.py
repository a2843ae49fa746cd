"""What users of Batsim bring: its options, its platforms, several workloads, and schedulers of their own."""

from __future__ import annotations

import json

import pytest

NONE = ("-o", '{"response": "none"}')
PROFILES = {"d": {"type": "delay", "delay": 10}, "h": {"type": "parallel_homogeneous", "cpu": 1e9, "com": 0}}
JOBS = ((1, 0, "d"), (2, 30, "h"), ("1", 30, "h"))
LISTENER = """
from batsim.batsim import BatsimScheduler
from procset import ProcSet

class Listener(BatsimScheduler):
    def onSimulationBegins(self):
        names = [host["name"] for host in self.bs.compute_resources.values()]
        print("heard", self.bs.batconf["sched-config"], names, {n: sorted(p) for n, p in self.bs.profiles.items()})
    def onJobSubmission(self, job):
        print("heard", self.bs.time(), job.id, job.profile_dict["type"])
        job.allocation = ProcSet(0 if job.id.startswith("w0") else 1)
        self.bs.execute_jobs([job])
    def onJobCompletion(self, job):
        pass
    def onNoMoreJobsInWorkloads(self):
        print("heard the last at", self.bs.time())
"""


def two(house):
    """Jobs 1 and 2 at 0 s and 30 s, and another job 1 at 30 s, whose profiles have the same names."""
    one, two, other = ({"id": i, "subtime": at, "res": 1, "profile": p} for i, at, p in JOBS)
    swapped = {"d": PROFILES["h"], "h": {"type": "composed", "repeat": 2, "seq": ["d"]}}
    first = {"nb_res": 2, "jobs": [one, two], "profiles": PROFILES}
    second = {"nb_res": 3, "jobs": [other], "profiles": swapped}
    return house.write("a.json", json.dumps(first)), house.write("b.json", json.dumps(second))


def platform(house, names=("n1", "n10", "n2", "boss")):
    hosts = "".join(f'<host id="{name}" speed="1Gf"/>' for name in names)
    return house.write(
        "p.xml", f'\n<?xml version="1.0"?><platform version="4.1"><zone id="z">{hosts}</zone></platform>'
    )


@pytest.mark.parametrize("engine", ["embedded", "wire"])
def test_several_workloads(house, engine):
    """w0!1 runs from 0 to 10 s, w0!2 from 30 to 31 s, w1!1 (twice a profile d, 1 s each) from 30 to 32 s."""
    scheduler = house.write("listener.py", LISTENER)
    first, second = two(house)
    options = ('--batsim-arg=--sched-cfg=a "b"', "-s", scheduler, "--engine", engine)
    done = house.batwatt(
        "run", "-p", f"{platform(house)},master=boss,mmax=2", "-w", first, "-w", second, "-e", house.out / "x", *options
    )
    assert done.code == 0, done.err
    assert [line for line in done.out.splitlines() if line.startswith("heard")] == [
        "heard a \"b\" ['n1', 'n10'] {'w0': ['d', 'h'], 'w1': ['d', 'h']}",
        "heard 0.0 w0!1 delay",
        "heard 30.0 w1!1 composed",
        "heard 30.0 w0!2 parallel_homogeneous",
        "heard the last at 30.0",
    ]
    rows = [line.split(",") for line in house.file("x_jobs.csv").decode().splitlines()]
    assert [(row[0], row[1], row[2], row[8], row[9]) for row in rows] == [
        ("job_id", "workload_name", "profile", "starting_time", "execution_time"),
        ("1", "w0", "d", "0.000000", "10.000000"),
        ("2", "w0", "h", "30.000000", "1.000000"),
        ("1", "w1", "h", "30.000000", "2.000000"),
    ]
    figures = house.metrics()
    assert (figures["jobs_total"], figures["jobs_finished"], figures["finished_work_fraction"]) == (3, 3, 1.0)
    again = house.batwatt(
        "metrics", house.out / "x", "-p", f"{house.folder}/p.xml,master=boss", "-w", first, "-w", second
    )
    assert again.code == 0 and house.metrics() == figures
    metadata = json.loads(house.file("x_metadata.json"))
    assert metadata["hosts"] == {"master": "boss", "mmax": 2, "mmax_workload": False}
    assert metadata["inputs"]["workload w1"]["path"] == str(second)


def test_hosts_as_the_workloads_say(house):
    first, second = two(house)
    where = platform(house)
    both = (
        "run",
        "-p",
        f"{where},master=boss,mmax_workload=yes",
        "-w",
        first,
        "-w",
        second,
        "-e",
        house.out / "x",
        *NONE,
    )
    assert house.batwatt(*both, "--batsim-arg=--sched-cfg=text").code == 0
    [totals] = house.rows("x_schedule.csv")
    assert (totals["nb_computing_machines"], totals["nb_jobs_success"]) == ("3", "3")
    assert json.loads(house.file("x_metadata.json"))["engine_config"]["sched_config"] == "text"


def test_no_envelope_is_no_cap(house):
    """The default response needs an envelope; without one it is `none`, which is said in one line."""
    done = house.run()
    warning = "WARNING: no envelope is given, so no cap holds: the response is 'none' instead of 'hfld'"
    assert (done.code, done.err.splitlines()[0]) == (0, warning)
    assert [line for line in done.err.splitlines() if "envelope" in line] == [warning]
    figures = house.metrics()
    assert house.run(*NONE).code == 0 and house.metrics() == figures


ORDER = """
from batwatt.schedulers.easy import Easy
from batwatt.scheduling.orders import Order
from batwatt.scheduling.registry import register


@register("order", "picky")
class Picky(Order):
    \"\"\"By a table that does not have every width.\"\"\"

    def key(self, jobs, now_s):
        return {4: 1}[jobs.hosts]


class Mine(Easy):
    \"\"\"Picky jobs first.\"\"\"

    order = Picky()
"""


def test_a_part_that_fails_is_named_with_the_time(house):
    path = house.write("mine.py", ORDER)
    jobs = [{"id": i, "subtime": 2.5 * i, "res": 4 if i < 2 else 3, "profile": "nap"} for i in range(3)]
    done = house.run("-s", path, workload=house.workload(*jobs))
    assert done.code == 1
    assert done.line == (
        f"batwatt: order Picky of the scheduler 'mine' raised KeyError: 3 ({path}:12, in key) at 5 s of the "
        "simulation; `batwatt -v ...` shows the traceback"
    )
    assert house.left == []
    assert "defines no scheduler, order" in house.batwatt("policies", house.write("x.py", "y = 1\n")).line


def test_communication_that_is_ignored_is_counted(house):
    """A job of 1e9 flops on hosts of 1 Gflop/s runs for 1 s, with a `com` of 1e6 as with one of 0."""
    talking = {"h": PROFILES["h"] | {"com": 1e6}, "d": PROFILES["d"]}
    jobs = [{"id": name, "subtime": 0, "res": 1, "profile": name} for name in talking]
    path = house.write("com.json", json.dumps({"nb_res": 2, "jobs": jobs, "profiles": talking}))
    run = ("run", "-p", f"{platform(house)},master=boss", "-w", path, "-s", "fcfs", "-e", house.out / "x")
    refused = house.batwatt(*run)
    assert refused.code == 2 and "give --ignore-communication to run it as 0" in refused.line
    done = house.batwatt(*run, "--ignore-communication")
    assert done.code == 0 and "com.json: 1 of 2 profiles communicate (first: 'h')" in done.err
    assert {row["job_id"]: float(row["execution_time"]) for row in house.rows("x_jobs.csv")} == {"h": 1.0, "d": 10.0}
    assert json.loads(house.file("x_metadata.json"))["ignore_communication"] is True
