"""Write the jobs of benchmark v1, which batwatt ships, from their generators and files.

    python -m papers.generators.benchmark [FILE]

Jobs are those of a run: times in s from the begin of a log, run times at the speed of the benchmark's hosts, and for
each job a walltime. Jobs without a request get one, drawn uniformly from `REQUESTS` times their run time.
"""

from __future__ import annotations

import csv
import gzip
import io
import math
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from batwatt.checks import rng_of
from batwatt.files import whole_file
from batwatt.inputs.batch_logs import LogOptions
from batwatt.inputs.convert import window_workload
from batwatt.inputs.google_like import GoogleLike, google_like
from batwatt.inputs.jobs import REQUIRED, checked, jobs_of_frame
from batwatt.inputs.load import windowed
from batwatt.model.signal import Window
from batwatt.model.work import run_times_s
from batwatt.model.workload import RELEASE, Workload
from batwatt.protocol.workload4 import parse_workload
from batwatt.scheduling.job import request_s
from batwatt.studies.benchmark import COLUMNS, JOBS, benchmark
from batwatt.units import DAY_S
from papers.generators.pm100 import Pm100Like, pm100_like
from papers.generators.pmbs import Synthetic, synthetic
from papers.generators.varcap import VarcapLike, varcap_table

ROOT = Path(__file__).resolve().parents[2]
SEED = 1
HOST_FLOPS = 18.4e9
"""Speed of a host, for jobs in flops."""
REQUESTS = (1.2, 4.0)
"""Bounds of walltime / run time, drawn uniformly for jobs without a request."""
MARGIN_S = 60.0
"""Time in s by which a walltime exceeds the run time at least: no job is cut off at full speed."""


@dataclass(frozen=True)
class Source:
    """Jobs of a log: of a generator with `parameters`, or of a file, cut to `window_s`.

    `thirds`: every third job of a log of one day is submitted on the first day, the next ones on the second and third.
    """

    kind: str
    parameters: Mapping[str, Any] = field(default_factory=dict)
    begin: str | None = None
    window_s: tuple[float, float] | None = None
    thirds: bool = False


SOURCES = {
    "google": Source("google", {"hours": 72, "nb_res": 36}),
    "pm100": Source("pm100", {"jobs": 640, "nodes": 52, "load": 0.5}),
    "mira": Source("varcap", {"like": "mira", "jobs": 1200, "machines": 96, "days": 6.0}),
    "azure": Source("varcap", {"like": "azure", "jobs": 900, "machines": 8, "days": 4.5}),
    "tng": Source("varcap", {"like": "tng", "jobs": 1200, "machines": 2, "days": 1.5, "longest_h": 24.0}),
    "log-scale": Source("pmbs", {"kind": "log-scale", "jobs": 900, "end_s": 259200.0, "machines": 6, "cores": 8}),
    "site": Source("workloads/site/jobs.sacct", begin="2024-07-01"),
    "borg": Source("workloads/borg/day-691200.txt", window_s=(691_200.0, 777_600.0), thirds=True),
}
"""Sources of the logs of the declaration."""


def workload_of(source: Source, hosts: int) -> Workload:
    """Return the jobs of a source as its generator or its file has them."""
    options: Any = source.parameters
    if source.kind == "google":
        return parse_workload(google_like(GoogleLike(**options), SEED), "w0", source.kind)
    if source.kind == "pm100":
        return parse_workload(pm100_like(Pm100Like(**options), SEED), "w0", source.kind)
    if source.kind == "pmbs":
        columns = zip(*synthetic(Synthetic(**options), SEED), strict=True)
        jobs = checked(dict(zip(("id", *REQUIRED), columns, strict=True)), source.kind)
    elif source.kind == "varcap":
        table = varcap_table(VarcapLike(**options), SEED)
        names = [name for name in ("arrival_time", "length", "cpus", "estimate") if name in table.columns]
        jobs = jobs_of_frame(table[names].assign(id=range(len(table))), source.kind)
    else:
        window = Window(*source.window_s) if source.window_s else None
        return windowed(ROOT / source.kind, window, hosts, "s", LogOptions(begin=source.begin))
    return window_workload(jobs, None, hosts)


def rows_of(name: str) -> Iterator[tuple[Any, ...]]:
    """Yield the rows of a log by submission."""
    source = SOURCES[name]
    workload = workload_of(source, benchmark().logs[name].hosts)
    factors = rng_of(SEED, "seed").uniform(*REQUESTS, size=len(workload.jobs))
    lengths = run_times_s(workload, HOST_FLOPS)
    begin_s = source.window_s[0] if source.window_s else 0.0
    rows = []
    for number, (job, length_s, factor) in enumerate(zip(workload.jobs, lengths, factors, strict=True)):
        if RELEASE in job.raw:
            continue
        run_s = round(float(length_s), 3)
        requested_s = request_s(job.walltime_s, job.raw, job.id)
        walltime_s = requested_s if requested_s < math.inf else math.ceil(factor * run_s)
        submit_s = round(job.submit_time_s - begin_s + source.thirds * (number % 3) * DAY_S, 3)
        user = job.raw.get("user") or ""
        rows.append((name, job.name, submit_s, job.hosts, max(float(walltime_s), run_s + MARGIN_S), run_s, user))
    yield from sorted(rows, key=lambda row: (row[2], row[1]))


def text() -> str:
    """Return the jobs of all logs as CSV."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(COLUMNS)
    for name in benchmark().logs:
        writer.writerows(rows_of(name))
    return out.getvalue()


def main(words: list[str]) -> int:
    """Write the jobs."""
    path = Path(words[0]) if words else JOBS
    # without the time of writing: equal jobs are equal bytes
    with whole_file(path, "wb") as out:
        out.write(gzip.compress(text().encode(), mtime=0))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
