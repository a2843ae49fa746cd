"""Rows of result files written by hand, and what is measured of them."""

from __future__ import annotations

from pathlib import Path

from batwatt.model.attempt import MIGRATED
from batwatt.model.signal import Window
from batwatt.model.timeline import Timeline
from batwatt.model.workload import Workload
from batwatt.protocol.workload4 import parse_workload
from batwatt.results.metrics import measured
from batwatt.results.run_files import JOBS, KILLED, SUCCESSFUL

HEADER = ",".join(column.name for column in JOBS) + "\n"
REFERENCE = 1e9
"""Speed of a core, flop/s."""
WINDOW = Window(100.0, 200.0)
TWO_THEN_ONE = Timeline((0.0, 150.0), (2.0, 1.0), "machines")
"""Machines of 4 cores: 600 core s in the window."""


def ran(name, submit, start, end, cores=1, state=SUCCESSFUL, metadata=""):
    """A row of a run of `cores` cores from `start` to `end`."""
    times = (start, end - start, end, start - submit, end - submit, 1.0)
    numbers = ",".join(f"{value:.6f}" for value in times)
    head = f"{name},w0,p,{submit:.6f},{cores},-1.000000,{int(state == SUCCESSFUL)},{state}"
    return f'{head},{numbers},0,-1.000000,"{metadata}"\n'


def moved(name, submit, start, end, cores=1):
    return ran(name, submit, start, end, cores, KILLED, MIGRATED)


def killed(name, submit, start, end, cores=1):
    return ran(name, submit, start, end, cores, KILLED)


def refused(name, submit, metadata=""):
    return f'{name},w0,p,{submit:.6f},1,-1.000000,0,REJECTED,,,,,,,,,"{metadata}"\n'


def job(name, submit, delay, cores=1, **fields):
    """A job that sleeps `delay` s, or one of the profile dtasks (4 s), dtalks (unknown), dnothing or dboth."""
    return {"id": name, "subtime": submit, "res": cores, "profile": f"d{delay}", **fields}


def workload(*jobs) -> Workload:
    """A workload of such jobs."""
    named = {
        "dtasks": {"type": "parallel_homogeneous", "cpu": 4e9, "com": 0},
        "dtalks": {"type": "parallel_homogeneous", "cpu": 4e9, "com": 1e6},
        "dnothing": {"type": "parallel_homogeneous", "cpu": 0, "com": 0},
        "d7": {"type": "delay", "delay": 7},
        "dboth": {"type": "composed", "seq": ["d7", "dtasks"], "repeat": 2},
    }
    names = {row["profile"] for row in jobs} - named.keys()
    profiles = {name: {"type": "delay", "delay": float(name[1:])} for name in names}
    described = {"nb_res": 8, "jobs": list(jobs), "profiles": profiles | named}
    return parse_workload(described, "w0", "memory", simulate=False)


def measure(folder: Path, rows, jobs, window=WINDOW, long_s=15.0, capacity=TWO_THEN_ONE, cores=4):
    """Metrics and ledger of rows under 2 machines of 4 cores until 150 s, then 1; jobs of more than 15 s are long."""
    (folder / "r_jobs.csv").write_text(HEADER + "".join(rows))
    return measured(folder / "r", jobs, None, REFERENCE, capacity=capacity, cores=cores, window=window, long_s=long_s)
