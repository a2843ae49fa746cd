"""Measure whole commands, from the start of Python to the last file on the disk: `make bench`.

`batwatt run -s powercap` (fcfs, EASY backfilling, no response, energy) on jobs of `bench/engine.py` at a load of 0.9:
medians of 5 repetitions (2 of 100,000 jobs) of seconds of wall time, of processors of all processes, and peak memory.
If `batsim` and `batsched`, or a `pybatsim` of 3.x, are on PATH they run the 10,000 jobs in turn, with energy, without a
trace for drawing and with the variant `easy_bf_fast` of batsched, and so does `batwatt batsim` with batsched: the time
is until Batsim ends. Ratios are those of processor time of each turn, median and least to greatest. A program without
optimisation is refused. `bench/peers.py` compares outcomes and more programs.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path

import peers
from apart import verdict
from engine import HOSTS, workload
from peers import Usage

TIMES = 8.0
"""Target: processor time of Batsim with batsched over that of a whole command."""
TARGETS = {10_000: (0.7, float("inf")), 100_000: (5.0, 500.0)}
"""Targets by number of jobs: largest time in s and largest memory in MiB."""


def write_inputs(folder: Path, jobs: int) -> None:
    """Write `platform.xml` and `workload.json`."""
    peers.write_platform(folder)
    load = workload(jobs, peers.LOAD)
    rows = [{**job.raw, "id": job.name} for job in load.jobs]
    data = {"nb_res": HOSTS, "jobs": rows, "profiles": {name: dict(raw) for name, raw in load.raw_profiles.items()}}
    (folder / "workload.json").write_text(json.dumps(data))


def others() -> dict[str, tuple[Callable[[Path], Usage], str]]:
    """Return the programs to compare with, and what is to say of their builds."""
    programs: dict[str, tuple[Callable[[Path], Usage], str]] = {}
    compiled = peers.builds("batsim", "batsched")
    if {"batsim", "batsched"} <= compiled.keys():
        engine = [sys.executable, "-m", "batwatt", "batsim"]
        programs["batsim, batsched"] = (
            partial(peers.both, ["batsim"], peers.EASY_BF_FAST),
            peers.remark(compiled, "batsim", "batsched"),
        )
        programs["batwatt batsim, batsched"] = (
            partial(peers.both, engine, peers.EASY_BF_FAST),
            peers.remark(compiled, "batsched"),
        )
    if "batsim" in compiled and (version := peers.pybatsim_version()):
        programs[f"batsim, pybatsim {version}"] = (
            partial(peers.both, ["batsim"], peers.EASY_BACKFILL),
            peers.remark(compiled, "batsim"),
        )
    return programs


def line(name: str, jobs: int, took: Usage, more: str = "") -> None:
    print(f"{name:>24} {jobs:>7} {took.wall_s:>7.2f} {took.cpu_s:>7.2f} {took.mib:>5.0f}{more}".rstrip(), flush=True)


def main() -> int:
    """Print a table; exit 1 if a target is missed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeat", type=int, default=5, help="repetitions of 10,000 jobs")
    repeat = parser.parse_args().repeat
    run = [sys.executable, "-m", "batwatt", "run", "-p", "platform.xml", "-w", "workload.json", "-s", "powercap"]
    ours = partial(peers.whole, [*run, "-o", json.dumps(peers.OPTIONS), "-e", "out/x"])
    compared = others()
    met: dict[str, bool] = {}
    print(f"{'':>24} {'jobs':>7} {'s':>7} {'cpu s':>7} {'MiB':>5}  cpu s over batwatt's")
    for jobs, (most_s, most_mib) in TARGETS.items():
        programs: dict[str, Callable[[Path], Usage]] = {"batwatt": ours}
        if jobs == 10_000:
            programs |= {name: measure for name, (measure, remark) in compared.items() if remark != peers.REFUSED}
        measures: dict[str, list[Usage]] = {name: [] for name in programs}
        with tempfile.TemporaryDirectory() as name:
            write_inputs(Path(name), jobs)
            for _ in range(repeat if jobs == 10_000 else min(2, repeat)):
                for program, measure in programs.items():
                    measures[program].append(measure(Path(name)))
        took = peers.median(measures["batwatt"])
        line("batwatt", jobs, took)
        met[f"{jobs:,} jobs in {most_s:g} s"] = took.wall_s < most_s
        if most_mib < float("inf"):
            met[f"{jobs:,} jobs in {most_mib:g} MiB"] = took.mib < most_mib
        for program, (_, remark) in compared.items() if jobs == 10_000 else ():
            ratio = 0.0
            if program in measures:
                ratio, text = peers.times(measures[program], measures["batwatt"])
                line(program, jobs, peers.median(measures[program]), f"  {text}  {remark}")
            else:
                print(f"{program:>24} {jobs:>7} {remark}")
            if program == "batsim, batsched":
                met[f"{TIMES:g} times as fast as Batsim with batsched"] = ratio >= TIMES
    if not compared:
        print("not compared: batsim, with batsched or a pybatsim of 3.x, is not on PATH")
    return verdict(met)


if __name__ == "__main__":
    sys.exit(main())
