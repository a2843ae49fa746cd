"""Measure time and memory of reading generated dumps of sacct, and other files of jobs and series: `make bench`.

The two dumps have equal numbers of lines: one of jobs only, one half of steps, which have the energy. The others are
jobs of SWF and of CSV, a series of CSV, and one of the text of the riskaware paper. Each is read in a process of its
own; memory is the peak resident size of that process, Python and libraries included.
"""

from __future__ import annotations

import json
import sys
import tempfile
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
from apart import in_child, peak_bytes

LINES = 1_000_000
MOST_S, MOST_MIB = 30.0, 1024.0
"""Targets for a dump of `LINES` lines."""
OTHERS = ("jobs.swf", "jobs.csv", "series.csv", "series.txt")
OTHER_LINES = 300_000
FIELDS = (
    *("JobID", "JobIDRaw", "User", "Group", "Account", "Partition", "State", "Submit", "Eligible", "Start", "End"),
    *("ElapsedRaw", "Elapsed", "Timelimit", "AllocCPUS", "NNodes", "ReqMem", "AllocTRES", "ConsumedEnergyRaw"),
    *("ExitCode", "NodeList", "JobName"),
)
BEGIN = datetime(2024, 1, 1, tzinfo=UTC)


def main() -> int:
    """Print a line for each file; return 1 if a dump misses a target."""
    if len(sys.argv) > 1:
        print(json.dumps(_read(Path(json.loads(sys.argv[2])))))
        return 0
    missed = False
    with tempfile.TemporaryDirectory(prefix="batwatt-") as folder:
        for name in OTHERS:
            path = Path(folder) / name
            _write_other(path, OTHER_LINES)
            took = in_child(__file__, str(path))
            print(
                f"{name}, {OTHER_LINES} lines: {took['s']:.2f} s, of the processor {took['cpu_s']:.2f} s, "
                f"{took['mib']:.0f} MiB"
            )
        for what, steps in (("of jobs", 0), ("half of them steps", 1)):
            path = Path(folder) / f"dump-{steps}.sacct"
            _write(path, LINES, steps)
            took = in_child(__file__, str(path))
            late = took["s"] > MOST_S or took["mib"] > MOST_MIB
            missed |= late
            size = path.stat().st_size / 2**20
            target = f"  MISSED {MOST_S:g} s, {MOST_MIB:g} MiB" if late else ""
            print(
                f"sacct, {LINES} lines {what} ({size:.0f} MiB): {took['jobs']} jobs in {took['s']:.1f} s, "
                f"of the processor {took['cpu_s']:.1f} s, "
                f"{LINES / took['s']:.0f} lines/s, {took['mib']:.0f} MiB{target}"
            )
    return int(missed)


def _read(path: Path) -> dict[str, float]:
    """Read a file; return the number of jobs or rows, s, s of the processor and MiB."""
    from batwatt.inputs.convert import read_trace
    from batwatt.inputs.signal import read_capacity, read_series

    read = {"series.csv": read_series, "series.txt": lambda path: read_capacity(path, None)}.get(path.name, read_trace)
    began, cpu = time.perf_counter(), time.process_time()
    jobs = read(path)
    read_s, cpu_s = time.perf_counter() - began, time.process_time() - cpu
    return {"jobs": len(jobs), "s": read_s, "cpu_s": cpu_s, "mib": peak_bytes() / 2**20}


def _write(path: Path, lines: int, steps: int, seed: int = 1) -> None:
    """Write a dump of `lines` lines, with `steps` steps after each job."""
    rng = np.random.default_rng(seed)
    jobs = lines // (1 + steps)
    submit_s = np.sort(rng.integers(0, 365 * 86_400, jobs)).tolist()
    wait_s, run_s = rng.exponential(3600.0, jobs).astype(int).tolist(), rng.lognormal(7.0, 2.0, jobs).astype(int)
    cpus, users = (2 ** rng.integers(0, 9, jobs)).tolist(), rng.integers(0, 400, jobs).tolist()
    states = rng.choice(
        ["COMPLETED", "FAILED", "TIMEOUT", "CANCELLED by 1001"], jobs, p=[0.8, 0.1, 0.06, 0.04]
    ).tolist()
    with path.open("w") as out:
        out.write("|".join(FIELDS) + "\n")
        for row, length_s in enumerate(run_s.tolist()):
            submit = _date(submit_s[row])
            start_s = submit_s[row] + wait_s[row]
            id, user = 1_000_000 + row, users[row]
            nodes = -(-cpus[row] // 64)
            elapsed = str(timedelta(seconds=length_s)).replace(" days, ", "-").replace(" day, ", "-")
            tres = f"billing={cpus[row]},cpu={cpus[row]},mem={4 * cpus[row]}G,node={nodes}"
            rest = f"{length_s}|{elapsed}|1-00:00:00|{cpus[row]}|{nodes}|{4 * cpus[row]}G|{tres}"
            times = f"{submit}|{submit}|{_date(start_s)}|{_date(start_s + length_s)}"
            labels = f"user{user}|group{user % 40}|account{user % 60}|part{user % 5}|{states[row]}"
            energy_j = "" if steps else length_s * 300 * nodes
            end = f"0:0|n[{row % 500}-{row % 500 + nodes}]|job_{row % 1000}"
            out.write(f"{id}|{id}|{labels}|{times}|{rest}|{energy_j}|{end}\n")
            for step in range(steps):
                out.write(f"{id}.{step}|{id}.{step}|{labels}|{times}|{rest}|{length_s * 300}|{end}\n")


def _write_other(path: Path, lines: int, seed: int = 1) -> None:
    """Write a file of OTHERS."""
    rng = np.random.default_rng(seed)
    times_s = np.sort(rng.choice(365 * 86_400, lines, replace=False)).tolist()
    runs_s, values = rng.integers(1, 86_400, lines).tolist(), rng.integers(1, 500, lines).tolist()
    rows = zip(range(1, lines + 1), times_s, runs_s, values, strict=True)
    header, line = {
        "jobs.swf": ("; UnixStartTime: 1704067200\n", "{0} {1} 5 {2} {3} -1 9 {3} {2} 9 1 {3} 1 -1 {3} -1 -1 -1\n"),
        "jobs.csv": ("arrival_time,length,cpus,user\n", "{1},{2},{3},user{3}\n"),
        "series.csv": ("time_s,power_w\n", "{1},{3}.5\n"),
        "series.txt": ("500\n", "{1} {3}\n"),
    }[path.name]
    path.write_text(header + "".join(line.format(*row) for row in rows))


def _date(seconds: int) -> str:
    return (BEGIN + timedelta(seconds=seconds)).strftime("%Y-%m-%dT%H:%M:%S")


if __name__ == "__main__":
    sys.exit(main())
