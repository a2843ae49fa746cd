"""The declaration of a benchmark: job logs, limits of power, and cells with the digests of their resolved inputs."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any, Literal

from batwatt.checks import rng_of
from batwatt.errors import InputError
from batwatt.files import PACKAGE
from batwatt.inputs.batch_logs import LogOptions
from batwatt.inputs.convert import window_workload
from batwatt.inputs.jobs import TraceJob
from batwatt.inputs.load import windowed
from batwatt.inputs.workloads.google_like import GoogleLike, google_like
from batwatt.inputs.workloads.pm100_like import Pm100Like, pm100_like
from batwatt.inputs.workloads.pmbs_synthetic import Synthetic, synthetic
from batwatt.inputs.workloads.varcap_like import VarcapLike
from batwatt.inputs.workloads.varcap_synthetic import varcap_table
from batwatt.model.signal import Window
from batwatt.model.timeline import Timeline
from batwatt.model.work import run_times_s
from batwatt.model.workload import RELEASE, Workload
from batwatt.protocol.workload4 import parse_workload
from batwatt.scheduling.job import request_s
from batwatt.study.spec import canonical
from batwatt.study.yaml_model import Declared, read_declared
from batwatt.units import DAY_S

DECLARED = Path(__file__).with_name("benchmark_v1.yaml")
REQUESTS = (1.2, 4.0)
"""Bounds of walltime / run time, drawn uniformly for jobs without a request."""
BEYOND_S = 30 * DAY_S
"""Time in s from twice the last submission of a log to the last row of power in its digests."""
MARGIN_S = 60.0
"""Time in s by which a walltime exceeds the run time at least: no job is cut off at full speed."""


class Log(Declared):
    """A job log, of a shipped file or a generator, for `hosts` like hosts; `days` of submissions make the windows.

    A job that has not completed `horizon_days` after the begin of its window is lost. `thirds`: every third job of a
    log of one day is submitted on the first day, the next ones on the second and the third.
    """

    hosts: int
    days: float
    horizon_days: float
    licence: str
    seed: int
    generator: Literal["google", "pm100", "varcap", "pmbs"] | None = None
    parameters: Mapping[str, Any] = {}
    file: str = ""
    begin: str | None = None
    window_s: list[float] | None = None
    thirds: bool = False


class Benchmark(Declared):
    """Logs by name, cells by LOG/LIMIT (`limit` of power, `sha256` of inputs), and entries of references by label."""

    version: str
    host_w: float
    host_flops: float
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

    def jobs_of(self, log: Log) -> dict[str, Any]:
        """Return the jobs of a log as a Batsim workload of delays with walltimes, times from the begin of the log."""
        workload = _read(log)
        factors = rng_of(log.seed, "seed").uniform(*REQUESTS, size=len(workload.jobs))
        lengths = run_times_s(workload, self.host_flops)
        begin_s = log.window_s[0] if log.window_s else 0.0
        rows: list[dict[str, Any]] = []
        profiles = {}
        for number, (job, length_s, factor) in enumerate(zip(workload.jobs, lengths, factors, strict=True)):
            if RELEASE in job.raw:
                continue
            run_s = round(float(length_s), 3)
            requested_s = request_s(job.walltime_s, job.raw, job.id)
            walltime_s = requested_s if requested_s < math.inf else math.ceil(factor * run_s)
            submit_s = round(job.submit_time_s - begin_s + log.thirds * (number % 3) * DAY_S, 3)
            row = {"id": job.name, "subtime": submit_s, "res": job.hosts, "profile": f"p{job.name}"}
            row |= {"user": job.raw["user"]} if job.raw.get("user") else {}
            rows.append({**row, "walltime": max(float(walltime_s), run_s + MARGIN_S)})
            profiles[f"p{job.name}"] = {"type": "delay", "delay": run_s}
        rows.sort(key=lambda row: (row["subtime"], row["id"]))
        return {"nb_res": log.hosts, "jobs": rows, "profiles": profiles}


@cache
def benchmark() -> Benchmark:
    """Read the declaration that is shipped."""
    return read_declared(DECLARED, Benchmark)


def data_folder() -> Path:
    """Return the folder of the files that are shipped: `start` of a package, or the repository."""
    packed = PACKAGE / "start"
    return packed if packed.is_dir() else PACKAGE.parents[1]


def _read(log: Log) -> Workload:
    """Return the jobs of a log as its generator or its file has them."""
    options: Any = log.parameters
    if log.generator == "google":
        return parse_workload(google_like(GoogleLike(**options), log.seed), "w0", log.generator)
    if log.generator == "pm100":
        return parse_workload(pm100_like(Pm100Like(**options), log.seed), "w0", log.generator)
    if log.generator is None:
        window = Window(*log.window_s) if log.window_s else None
        return windowed(data_folder() / log.file, window, log.hosts, "s", LogOptions(begin=log.begin))
    if log.generator == "pmbs":
        jobs = synthetic(Synthetic(**options), log.seed)
    else:
        rows: Any = varcap_table(VarcapLike(**options), log.seed).to_dict("records")
        names = ("arrival_time", "length", "cpus", "estimate")
        jobs = [TraceJob(str(number), *map(row.get, names)) for number, row in enumerate(rows)]
    return window_workload(jobs, None, None, log.hosts, source=log.generator)
