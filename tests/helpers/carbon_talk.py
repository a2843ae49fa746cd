"""What the tests of carbon share: signals by the hour, how commands end, jobs and machines, runs of jobs in phases."""

from __future__ import annotations

import json
from pathlib import Path

import pandas as pd

import batwatt as bw
from batwatt.batsim.adapters import simulate
from batwatt.batsim.batsim4 import EngineConfig
from batwatt.engine.core import Engine
from batwatt.inputs.batsim_files import phase_workload
from batwatt.model.platform import MachineSpec, machines_platform
from batwatt.protocol.workload4 import parse_workload
from batwatt.results.carbon import account
from batwatt.results.run_files import write_record
from batwatt.schedulers.carbon import Carbon

ROOT = Path(__file__).resolve().parents[2]
JOBS, JOB = ROOT / "workloads" / "carbon" / "jobs.csv", ROOT / "workloads" / "carbon" / "job.json"
SIGNALS = ROOT / "power_profiles" / "carbon"
CARBON, PRICE = SIGNALS / "carbon-hourly.csv", SIGNALS / "price-hourly.csv"
POWER_W = 100.0
"""Of a core of `machines`."""
DAY = [400, 100, 400, 100, 400, 200] * 4


def hourly(house, values=DAY, name="signal.csv", column="carbon_intensity", begin="2024-07-01T00:00"):
    dates = pd.date_range(begin, periods=len(values), freq="h").strftime("%Y-%m-%dT%H:%MZ")
    rows = "".join(f"{date},{value}\n" for date, value in zip(dates, values, strict=True))
    return house.write(name, f"datetime,{column}\n{rows}")


def content(done):
    assert (done.code, done.err) == (0, "")
    return json.loads(done.out)


def good(done, quiet=True):
    assert done.code == 0 and not (quiet and done.err), done.err
    return done


def jobs(*rows):
    """Each (submission, length, hosts) in s."""
    return bw.Workload.from_frame(pd.DataFrame(rows, columns=["submission_time_s", "length_s", "hosts"]))


def machines(count, cores=1, **more):
    return machines_platform(MachineSpec(count, cores, core_w=POWER_W, **more))


def play(jobs, machines, prefix, wrap=lambda link: link, **options):
    """(scheduler, workload) after a run of jobs in phases whose files are under the prefix."""
    owner, data = phase_workload(jobs, machines)
    workload = parse_workload(data, "w0", "test")
    engine = Engine(machines_platform(owner), [workload], EngineConfig(dynamic_jobs=True, profile_reuse=True))
    scheduler = Carbon(options)
    write_record(simulate(engine, scheduler, wrap), prefix)
    return scheduler, workload


def run_alone(jobs, prefix, signal, price=None, **options):
    """The account of a run in which each job has machines of its own."""
    _, workload = play(jobs, sum(job.cpus for job in jobs), prefix, signal=signal, price=price, **options)
    return account(prefix, signal, workload, price=price)
