"""The declaration of a benchmark: job logs, limits of power, and cells with the digests of their inputs."""

from __future__ import annotations

import csv
import hashlib
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any, Literal

from batwatt.errors import InputError
from batwatt.files import PACKAGE, read_text
from batwatt.model.timeline import Timeline
from batwatt.studies.spec import canonical
from batwatt.studies.yaml_model import Declared, read_declared
from batwatt.units import DAY_S

DECLARED = Path(__file__).with_name("benchmark_v1.yaml")
JOBS = DECLARED.with_suffix(".csv.gz")
"""Jobs of all logs, which `papers/generators/benchmark.py` writes."""
COLUMNS = ("log", "id", "submission_time_s", "hosts", "walltime_s", "run_time_s", "user")
BEYOND_S = 30 * DAY_S
"""Time in s from twice the last submission of a log to the last row of power in its digests."""


class Log(Declared):
    """A job log for `hosts` like hosts, and the `source` of its jobs; `days` of submissions make the windows.

    A job that has not completed `horizon_days` after the begin of its window is lost.
    """

    source: str
    hosts: int
    days: float
    horizon_days: float
    licence: str


class Benchmark(Declared):
    """Logs by name, cells by LOG/LIMIT (`limit` of power, `sha256` of inputs), and entries of references by label."""

    version: str
    host_w: float
    bound_s: float
    above: float
    windows: int
    logs: Mapping[str, Log]
    cells: Mapping[str, Mapping[Literal["limit", "sha256"], str]]
    references: Mapping[str, Mapping[str, Any]]

    def log_of(self, cell: str) -> Log:
        """Return the log of a cell."""
        return self.logs[cell.partition("/")[0]]

    def check(self, cell: str, jobs: Mapping[str, Any], cap: Timeline) -> None:
        """Raise InputError if jobs, hosts and power of a cell are not those of its digest."""
        rows = cap.upto(2.0 * jobs["jobs"][-1]["subtime"] + BEYOND_S)
        inputs = [jobs, self.log_of(cell).hosts, self.host_w, rows.times_s, rows.values]
        digest = hashlib.sha256(canonical(inputs).encode()).hexdigest()
        if digest != self.cells[cell]["sha256"]:
            problem = f"has other jobs, hosts or power than {self.version} declares (SHA-256 {digest})"
            raise InputError(f"cell {cell}", problem, "restore their sources, or declare a new version")

    def jobs_of(self, cell: str) -> dict[str, Any]:
        """Return the jobs of a cell as a Batsim workload of delays with walltimes, times from the begin of the log."""
        rows: list[dict[str, Any]] = []
        profiles = {}
        name = cell.partition("/")[0]
        for log, job, submit_s, hosts, walltime_s, run_s, user in _jobs():
            if log != name:
                continue
            row = {"id": job, "subtime": float(submit_s), "res": int(hosts), "profile": f"p{job}"}
            rows.append(row | ({"user": user} if user else {}) | {"walltime": float(walltime_s)})
            profiles[f"p{job}"] = {"type": "delay", "delay": float(run_s)}
        return {"nb_res": self.logs[name].hosts, "jobs": rows, "profiles": profiles}


@cache
def benchmark() -> Benchmark:
    """Read the declaration that is shipped."""
    return read_declared(DECLARED, Benchmark)


def data_folder() -> Path:
    """Return the folder of the files that are shipped: `start` of a package, or the repository."""
    packed = PACKAGE / "start"
    return packed if packed.is_dir() else PACKAGE.parents[1]


@cache
def _jobs() -> list[list[str]]:
    """Return the rows of `COLUMNS` of all logs, those of a log by submission."""
    return list(csv.reader(read_text(JOBS).splitlines()))[1:]
