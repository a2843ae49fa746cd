"""Measure whole commands, from the start of Python to the last file on the disk: `make bench`.

`batwatt run -s powercap` (fcfs, EASY backfilling, no response, energy) on jobs of `bench/engine.py` at a load of 0.9:
seconds of wall time, of processors, and peak memory; the best of 5 repetitions (2 of 100,000 jobs). If `batsim` and
`batsched` are on PATH they run the 10,000 jobs in turn, with energy, without a trace for drawing and with the
variant `easy_bf_fast`, and so does `batwatt batsim` with batsched: the time is until Batsim ends, memory and processor
time are of both.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from apart import verdict
from engine import HOSTS, SPEED, workload

LOAD = 0.9
TIMES = 8.0
"""Target: time of Batsim with batsched over that of a whole command."""
OPTIONS = {"order": "fcfs", "backfilling": "easy", "response": "none"}
TARGETS = {10_000: (0.7, float("inf")), 100_000: (5.0, 500.0)}
"""Targets by number of jobs: largest time in s and largest memory in MiB."""


@dataclass(frozen=True)
class Usage:
    """Seconds of wall time and of processors, and peak memory."""

    wall_s: float
    cpu_s: float
    mib: float


def write_inputs(folder: Path, jobs: int) -> None:
    """Write `platform.xml` and `workload.json`."""
    watts = '<prop id="wattage_per_state" value="30:100"/>'
    names = ["master_host", *(f"h{i:03d}" for i in range(HOSTS))]
    hosts = "".join(f'<host id="{name}" coordinates="0 0 0" speed="{SPEED:g}f">{watts}</host>' for name in names)
    head = '<?xml version="1.0"?><!DOCTYPE platform SYSTEM "https://simgrid.org/simgrid.dtd">'
    zone = f'{head}<platform version="4.1"><zone id="all" routing="Vivaldi">{hosts}</zone></platform>'
    (folder / "platform.xml").write_text(zone)
    load = workload(jobs, LOAD)
    rows = [{**job.raw, "id": job.name} for job in load.jobs]
    data = {"nb_res": HOSTS, "jobs": rows, "profiles": {name: dict(raw) for name, raw in load.raw_profiles.items()}}
    (folder / "workload.json").write_text(json.dumps(data))


def waited(process: subprocess.Popen[bytes]) -> tuple[float, float]:
    """Wait for a process; return its processor time in s and peak MiB. Raises CalledProcessError if it fails."""
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise subprocess.CalledProcessError(process.returncode, process.args)
    return used.ru_utime + used.ru_stime, used.ru_maxrss / 1024


def ours(folder: Path) -> Usage:
    """Measure the whole command of batwatt."""
    command = [sys.executable, "-m", "batwatt", "run", "-p", "platform.xml", "-w", "workload.json", "-s", "powercap"]
    began = time.perf_counter()
    process = subprocess.Popen(
        [*command, "-o", json.dumps(OPTIONS), "-e", "out/x"], cwd=folder, stdout=subprocess.DEVNULL
    )
    cpu_s, mib = waited(process)
    return Usage(time.perf_counter() - began, cpu_s, mib)


def with_batsched(batsim: Sequence[str], folder: Path) -> Usage:
    """Measure Batsim, or `batwatt batsim`, with batsched."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    quiet = {"cwd": folder, "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    began = time.perf_counter()
    scheduler = subprocess.Popen(
        ["batsched", "-v", "easy_bf_fast", "-s", f"tcp://*:{port}", "--verbosity=silent"], **quiet
    )
    try:
        command = [*batsim, "-p", "platform.xml", "-w", "workload.json", "-e", "theirs", "-E", "-q"]
        simulator = subprocess.Popen([*command, "-s", f"tcp://localhost:{port}", "--disable-schedule-tracing"], **quiet)
        cpu_s, mib = waited(simulator)
        took_s = time.perf_counter() - began
        more_s, more_mib = waited(scheduler)
    except BaseException:
        scheduler.kill()
        raise
    return Usage(took_s, cpu_s + more_s, mib + more_mib)


def line(name: str, jobs: int, took: Usage, more: str = "") -> None:
    print(f"{name:>24} {jobs:>7} {took.wall_s:>7.2f} {took.cpu_s:>7.2f} {took.mib:>5.0f}{more}", flush=True)


def best(measures: list[Usage]) -> Usage:
    """Return the least value of each figure."""
    return Usage(*(min(getattr(took, name) for took in measures) for name in ("wall_s", "cpu_s", "mib")))


def main() -> int:
    """Print a table; exit 1 if a target is missed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeat", type=int, default=5, help="repetitions of 10,000 jobs")
    repeat = parser.parse_args().repeat
    met: dict[str, bool] = {}
    print(f"{'':>24} {'jobs':>7} {'s':>7} {'cpu s':>7} {'MiB':>5}")
    for jobs, (most_s, most_mib) in TARGETS.items():
        programs: dict[str, Callable[[Path], Usage]] = {"batwatt": ours}
        if jobs == 10_000 and shutil.which("batsim") and shutil.which("batsched"):
            programs["batsim, batsched"] = partial(with_batsched, ["batsim"])
            programs["batwatt batsim, batsched"] = partial(with_batsched, [sys.executable, "-m", "batwatt", "batsim"])
        measures: dict[str, list[Usage]] = {name: [] for name in programs}
        with tempfile.TemporaryDirectory() as name:
            write_inputs(Path(name), jobs)
            for _ in range(repeat if jobs == 10_000 else min(2, repeat)):
                for program, measure in programs.items():
                    measures[program].append(measure(Path(name)))
        took = best(measures["batwatt"])
        line("batwatt", jobs, took)
        met[f"{jobs:,} jobs in {most_s:g} s"] = took.wall_s < most_s
        if most_mib < float("inf"):
            met[f"{jobs:,} jobs in {most_mib:g} MiB"] = took.mib < most_mib
        for program in list(programs)[1:]:
            other = best(measures[program])
            ratio = other.wall_s / took.wall_s
            line(program, jobs, other, f"  batwatt is {ratio:.1f} x as fast")
            if program == "batsim, batsched":
                met[f"{TIMES:g} times as fast as Batsim with batsched"] = ratio >= TIMES
    if shutil.which("batsim") is None or shutil.which("batsched") is None:
        print("not compared: batsim and batsched are not on PATH")
    return verdict(met)


if __name__ == "__main__":
    sys.exit(main())
