"""Measure the overhead of a study of short runs, and the time of the powercap grid: `make bench`.

The powercap grid is the study `workloads` of `papers/igsc22/study.yaml` without cases of our own: 48 algorithms of the
powercap paper (2 backfillings, 4 orders, 6 responses) on its 20 workloads under profile 3, 960 runs. The share is
measured on all of igsc22.yaml without the optima, which are long, or on a few of its workloads (`--workloads`).

Useful time is spent inside `execute`: it reads the inputs, simulates, writes and measures a run. `in hand` is the share
of useful wall time of two processes, `of cpu s` the share of useful processor time of the command; the rest is
start-up, keys, records and the table. `of cores` is the useful processor time over that of two cores, hardly less on an
idle machine; `others` is the processor time of other programs (from /proc/stat, Linux).
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from apart import verdict

CORES = 2
SHARE = 0.95
"""Target: useful share of the cores' time."""
GRID_S = 180.0
DECLARED = Path(__file__).parent.parent / "papers" / "igsc22" / "study.yaml"
TICK_S = 1.0 / os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True)
class Usage:
    """Number of runs; wall time and processor time in s of the command and inside runs; processor s of others."""

    runs: int
    wall_s: float
    cpu_s: float
    inside_wall_s: float
    inside_cpu_s: float
    others_s: float

    @property
    def in_hand(self) -> float:
        """Share of the wall time of `CORES` processes inside runs."""
        return self.inside_wall_s / (CORES * self.wall_s)

    @property
    def of_cores(self) -> float:
        """Share of the cores' time inside runs."""
        return self.inside_cpu_s / (CORES * self.wall_s)

    @property
    def of_cpu(self) -> float:
        """Share of the command's processor time inside runs."""
        return self.inside_cpu_s / self.cpu_s


def declaration(grid: bool, workloads: int) -> dict[str, Any]:
    """Return the powercap grid, or igsc22.yaml without optima and generated inputs, for some workloads."""
    import yaml

    declared = yaml.safe_load(DECLARED.read_text())
    studies = {name: one for name, one in declared["comparisons"].items() if name != "sources"}
    if grid:
        whole = studies["workloads"]
        cases = [case for case in whole["cases"] if case["options"].get("response") == "hfld"]
        studies = {"workloads": {**whole, "cases": cases}}
    for study in studies.values():
        if "cases" in study:
            study["cases"] = [case for case in study["cases"] if case.get("scheduler") != "optimum"]
        if "google-288-*" in study["workloads"][0]:
            files = sorted((DECLARED.parents[2] / "workloads").glob("google-288-*.json"))
            study["workloads"] = [str(file) for file in files[:workloads]]
        elif isinstance(study["workloads"][0], dict):
            study["workloads"][0]["seeds"] = study["workloads"][0]["seeds"][:workloads]
        else:
            study["workloads"] = [str(DECLARED.parent / name) for name in study["workloads"]]
        study["envelopes"] = [str(DECLARED.parent / name) for name in study["envelopes"]]
    platforms = [str(DECLARED.parent / name) for name in declared["defaults"]["platforms"]]
    return {**declared, "defaults": {**declared["defaults"], "platforms": platforms}, "comparisons": studies}


def command(path: str, times: str) -> None:
    """Run `batwatt study`; append a line with wall s and processor s of each run to the file `times`."""
    from batwatt.cli.main import main
    from batwatt.studies import executors

    execute_silently = executors.execute_silently

    def timed(task: Any) -> Any:
        began, began_cpu = time.perf_counter(), time.process_time()
        outcome = execute_silently(task)
        with Path(times).open("a") as out:
            out.write(f"{time.perf_counter() - began} {time.process_time() - began_cpu}\n")
        return outcome

    executors.execute_silently = timed
    main(["study", "run", path, "--results", str(Path(path).parent), "-j", str(CORES)])


def busy_s() -> float:
    """Return the processor time in s of all programs since the boot, with that of a hypervisor for other machines."""
    user, nice, system, _, _, *more = (int(word) for word in Path("/proc/stat").read_text().split("\n")[0].split()[1:9])
    return TICK_S * (user + nice + system + sum(more))


def measured(declared: dict[str, Any]) -> Usage:
    """Run a study in a process of its own and measure it."""
    with tempfile.TemporaryDirectory() as folder:
        path, times = Path(folder) / "bench.yaml", Path(folder) / "times"
        path.write_text(json.dumps(declared))
        before_s, began = busy_s(), time.perf_counter()
        process = subprocess.Popen(
            [sys.executable, __file__, "--one", str(path), str(times)],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        _, status, used = os.wait4(process.pid, 0)
        wall_s = time.perf_counter() - began
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode:
            raise subprocess.CalledProcessError(process.returncode, process.args)
        inside = [[float(word) for word in line.split()] for line in times.read_text().splitlines()]
        cpu_s = used.ru_utime + used.ru_stime
        others_s = max(0.0, busy_s() - before_s - cpu_s)
    return Usage(len(inside), wall_s, cpu_s, *(sum(column) for column in zip(*inside, strict=True)), others_s)


def main() -> int:
    """Print a table; exit 1 if a target is missed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--workloads", type=int, default=20, help="number of workloads of 20, for a quick look")
    parser.add_argument("--one", nargs=2, metavar=("YAML", "TIMES"), help="one study, with the time of its runs")
    arguments = parser.parse_args()
    if arguments.one:
        command(*arguments.one)
        return 0
    heads = ("in hand", "of cores", "of cpu s", "others")
    print(f"{'':>13} {'runs':>6} {'s':>7} {'cpu s':>7}", *(f"{head:>8}" for head in heads))
    usage: dict[str, Usage] = {}
    for name in ("powercap grid", "igsc22"):
        took = usage[name] = measured(declaration(name != "igsc22", arguments.workloads))
        shares = f"{took.in_hand:>8.1%} {took.of_cores:>8.1%} {took.of_cpu:>8.1%} {took.others_s:>6.0f} s"
        print(f"{name:>13} {took.runs:>6} {took.wall_s:>7.1f} {took.cpu_s:>7.1f} {shares}", flush=True)
    grid, all_of_it = usage["powercap grid"], usage["igsc22"]
    targets = {
        f"the powercap grid in {GRID_S:g} s": grid.wall_s < GRID_S,
        f"igsc22.yaml: {CORES} processes have a run in hand {SHARE:.0%} of the time": all_of_it.in_hand >= SHARE,
        f"igsc22.yaml: {SHARE:.0%} of the processor time is inside runs": all_of_it.of_cpu >= SHARE,
    }
    if arguments.workloads < 20:
        print(f"no targets: {arguments.workloads} of 20 workloads")
        return 0
    return verdict(targets)


if __name__ == "__main__":
    sys.exit(main())
