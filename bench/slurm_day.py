"""A day on a real Slurm of 16 toy nodes, 60 times as fast, against `batwatt run` of the same jobs.

python bench/slurm_day.py SCHEDULER [--options JSON] [--socket COMMAND] [--hours H] [-o FOLDER]

Prints a line of JSON: jobs started, energy, energy above the cap, differences of starts, the time of a poll. Needs root
and Debian's slurmctld, slurmd, slurm-client and munge; a day takes 24 minutes.
"""

from __future__ import annotations

import argparse
import csv
import itertools
import json
import math
import random
import shlex
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "helpers"))

from toy_cluster import ToyCluster

NODES, SPEED = 16, 60.0


def jobs_of_a_day(hours: float, seed: int) -> list[tuple[float, float, int, int]]:
    """Return (submission in s, run time in s, nodes, limit in min of the toy cluster) of jobs at a load of 0.65."""
    draw = random.Random(seed)
    work_s, jobs = 0.65 * NODES * hours * 3600.0, []
    while work_s > 0.0:
        run_s = round(min(14_000.0, draw.lognormvariate(8.0, 0.9)))
        nodes = draw.choice((1, 1, 1, 2, 2, 4, 8))
        # Slurm's limits are whole minutes, hours at this speed
        jobs.append(
            (draw.random() * hours * 3600.0 * 0.9, run_s, nodes, math.ceil(run_s / 3600.0) + draw.randint(0, 2))
        )
        work_s -= run_s * nodes
    return sorted(jobs)


def series_of_a_day(hours: float) -> list[tuple[int, int]]:
    """Return (time in s, power in W) of a cap each half hour, as of a solar plant with a base."""
    rows = []
    for step in range(int(hours * 2)):
        sun = max(0.0, math.sin(math.pi * ((step / 2.0) % 24.0 - 6.0) / 12.0))
        rows.append((step * 1800, int(900 + 2400 * sun)))
    return rows


def write_inputs(folder: Path, jobs: list[tuple[float, float, int, int]], hours: float, flops: bool) -> None:
    """Write the cap in W and in machines, and the workload for `batwatt run`."""
    rows = series_of_a_day(hours)
    (folder / "watts.csv").write_text("time_s,power_w\n" + "".join(f"{time_s},{watts}\n" for time_s, watts in rows))
    machines = [(time_s, min(NODES, int((watts - 9 * NODES) / 191))) for time_s, watts in rows]
    (folder / "machines.csv").write_text("time_s,machines\n" + "".join(f"{t},{count}\n" for t, count in machines))
    profiles, entries = {}, []
    for number, (submit_s, run_s, nodes, limit) in enumerate(jobs, 1):
        kind: dict[str, Any] = {"type": "delay", "delay": run_s}
        if flops:
            kind = {"type": "parallel_homogeneous", "cpu": run_s * 1e9, "com": 0.0}
        profiles[f"p{run_s}"] = kind
        entries.append(
            {"id": str(number), "subtime": submit_s, "walltime": limit * 3600.0, "res": nodes, "profile": f"p{run_s}"}
        )
    (folder / "jobs.json").write_text(json.dumps({"nb_res": NODES, "jobs": entries, "profiles": profiles}))


def submit(cluster: ToyCluster, jobs: list[tuple[float, float, int, int]]) -> None:
    """Submit the jobs at their times."""
    began = time.monotonic()
    for submit_s, run_s, nodes, limit in jobs:
        time.sleep(max(0.0, submit_s / SPEED - (time.monotonic() - began)))
        cluster.submit(run_s / SPEED, nodes, limit_min=limit)


def main() -> None:
    """Run the day."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("scheduler")
    parser.add_argument("--options", default="{}", help="JSON; {folder} in it is that of watts.csv and machines.csv")
    parser.add_argument("--socket", default="", help="command of a scheduler that listens on {endpoint}")
    parser.add_argument("--hours", type=float, default=24.0)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("-o", "--output", type=Path, default=Path("out/slurm-day"))
    arguments = parser.parse_args()
    folder = (arguments.output / arguments.scheduler).resolve()
    folder.mkdir(parents=True, exist_ok=True)
    jobs = jobs_of_a_day(arguments.hours, arguments.seed)
    write_inputs(folder, jobs, arguments.hours, flops=not arguments.socket)
    options = json.loads(arguments.options.replace("{folder}", str(folder)))
    batwatt = [sys.executable, "-m", "batwatt"]
    server = None
    with ToyCluster(Path(tempfile.mkdtemp(prefix="day-")) / "slurm", NODES, min_job_age_s=100_000).start() as cluster:
        (folder / "servers.toml").write_text(cluster.servers)
        platform = str(folder / "green.xml")
        made = [*batwatt, "generate", "platform", str(folder / "servers.toml"), "-o", platform]
        subprocess.run(made, env=cluster.environment, check=True)
        words = [*batwatt, "slurm", "run", "-p", platform, "--partition", "green", "-e", str(folder / "slurm"),
                 "--fresh", "--operate", "--once", "--speed", str(SPEED), "--poll", "0.5", "--json",
                 "--envelope", str(folder / "watts.csv")]  # fmt: skip
        if arguments.socket:
            # where a session looks for it, in a folder of this user alone
            place = folder / "slurm_socket"
            place.mkdir(mode=0o700, exist_ok=True)
            server = listening(arguments.socket, f"ipc://{place}/scheduler")
        else:
            words += ["-s", arguments.scheduler, "-o", json.dumps(options)]
        thread = threading.Thread(target=submit, args=(cluster, jobs), daemon=True)
        thread.start()
        process = subprocess.Popen(words, env=cluster.environment, stdout=subprocess.PIPE, text=True)
        # wide jobs may wait for sun after the end of the series
        timer = threading.Timer(1.2 * arguments.hours * 3600.0 / SPEED, process.terminate)
        timer.start()
        printed, _ = process.communicate()
        timer.cancel()
        if server is not None:
            server.terminate()
    result = {"scheduler": arguments.scheduler, "jobs": len(jobs), **json.loads(printed)[-1], **above(folder)}
    series = [] if {"capacity", "envelope"} & set(options) else ["--envelope", str(folder / "watts.csv")]
    simulate = [*batwatt, "run", "-s", arguments.scheduler, "-o", json.dumps(options), *series]
    if arguments.socket:
        server = listening(arguments.socket, f"ipc://{place}/simulated")
        simulate = [*batwatt, "batsim", "-E", "-s", f"ipc://{place}/simulated"]
    result |= compared(folder, simulate)
    print(json.dumps(result))


def listening(command: str, endpoint: str) -> subprocess.Popen[bytes]:
    """Start a scheduler that listens on an endpoint."""
    return subprocess.Popen(shlex.split(command.replace("{endpoint}", endpoint)), stdout=subprocess.DEVNULL)


def above(folder: Path) -> dict[str, Any]:
    """Return the energy above the cap in kWh, first while idle nodes are switched off, then later."""
    with (folder / "slurm_power.csv").open() as file:
        rows = [(float(row["time_s"]), float(row["cap_w"]), float(row["watts"])) for row in csv.DictReader(file)]
    sums = {"above_before_1800_s_kwh": 0.0, "above_later_kwh": 0.0}
    for (time_s, cap_w, watts), (end_s, _, _) in itertools.pairwise(rows):
        name = "above_before_1800_s_kwh" if time_s < 1800.0 else "above_later_kwh"
        sums[name] += max(0.0, watts - cap_w) * (end_s - time_s) / 3.6e6
    return {name: round(value, 4) for name, value in sums.items()}


def compared(folder: Path, simulate: list[str]) -> dict[str, Any]:
    """Run the jobs on the embedded engine; return the differences of waits, in s of the session."""
    inputs = ["-p", str(folder / "green.xml"), "-w", str(folder / "jobs.json"), "-e", str(folder / "simulated")]
    subprocess.run([*simulate, *inputs], stdout=subprocess.DEVNULL, check=True)
    with (folder / "simulated_jobs.csv").open() as file:
        simulated: dict[int, float] = {}
        for row in csv.DictReader(file):
            number = int(row["job_id"].partition("#")[0])
            if row["starting_time"]:
                wait_s = float(row["starting_time"]) - float(row["submission_time"])
                simulated[number] = min(simulated.get(number, math.inf), wait_s)
    with (folder / "slurm_starts.csv").open() as file:
        rows = [row for row in csv.DictReader(file) if row["start_s"]]
        real = {int(row["job"]): float(row["start_s"]) - float(row["submit_s"]) for row in rows}
    both = sorted(set(simulated) & set(real))
    # of waits: the jobs are submitted a second or two before the session begins
    differences = np.array([real[number] - simulated[number] for number in both])
    return {
        "started_in_both": len(both),
        "simulated_only": len(set(simulated) - set(real)),
        "median_difference_s": round(float(np.percentile(differences, 50))),
        "p10_difference_s": round(float(np.percentile(differences, 10))),
        "p90_difference_s": round(float(np.percentile(differences, 90))),
        "p90_of_absolute_s": round(float(np.percentile(np.abs(differences), 90))),
    }


if __name__ == "__main__":
    main()
