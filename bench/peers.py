"""Measure batwatt and its peers on one SWF under EASY backfilling, first come first served.

    python bench/peers.py                      those on PATH: batsim, batsched, a pybatsim of 3.x
    python bench/peers.py --accasim PYTHON --cqsim FOLDER
    python bench/peers.py --write jobs.swf     write the jobs, and end

The jobs are those of `bench/engine.py` at a load of 0.9 on 128 hosts, in whole seconds. Five rounds run all programs in
turn. Figures are medians: seconds of wall time, of processors of all processes, and peak memory. Ratios are those of
processor time of a round, median and least to greatest. Batsim computes energy, as batwatt does, and reads the workload
that `batwatt convert` makes of the SWF; this is not counted. Mean wait and finished jobs tell how alike the outcomes
are. A program without optimisation is refused.
"""

from __future__ import annotations

import argparse
import csv
import json
import os
import re
import shutil
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from engine import HOSTS, SPEED, workload

import batwatt

LOAD = 0.9
OPTIONS = {"order": "fcfs", "backfilling": "easy", "response": "none"}
REFUSED = "refused: built without optimisation (meson --buildtype=release)"
EASY_BF_FAST = ("batsched", "-v", "easy_bf_fast", "--verbosity=silent")
EASY_BF = ("batsched", "-v", "easy_bf", "--verbosity=silent")
EASY_BACKFILL = ("pybatsim", "easyBackfill", "-t", "600000", "-v", "critical")
MEASURE = """
import json, os, subprocess, sys, time
began = time.perf_counter()
process = subprocess.Popen(sys.argv[1:], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
_, status, used = os.wait4(process.pid, 0)
figures = time.perf_counter() - began, used.ru_utime + used.ru_stime, used.ru_maxrss / 1024
print(json.dumps([os.waitstatus_to_exitcode(status), *figures]))
"""
"""Small program that measures a command: the peak memory of a process is at least that of its parent."""
ACCASIM = """
import collections, collections.abc, sys
collections.Mapping = collections.abc.Mapping  # AccaSim 1.1.3 imports the name that Python 3.10 dropped
from accasim.base.allocator_class import FirstFit
from accasim.base.scheduler_class import EASYBackfilling
from accasim.base.simulator_class import Simulator
easy = EASYBackfilling(FirstFit())
Simulator("jobs.swf", "accasim.json", easy, RESULTS_FOLDER_PATH="accasim", show_statistics=False).start_simulation()
"""


@dataclass(frozen=True)
class Build:
    """Version, build type and compiler of a program; `optimised` is None where nothing tells."""

    version: str
    build_type: str
    compiler: str
    optimised: bool | None


@dataclass(frozen=True)
class Usage:
    """Seconds of wall time and of the processors of all processes, and peak memory."""

    wall_s: float
    cpu_s: float
    mib: float


@dataclass(frozen=True)
class Outcome:
    """Number of finished jobs and their mean wait."""

    finished: int
    wait_s: float


@dataclass(frozen=True)
class Peer:
    """Program that runs the jobs in a folder and leaves the outcome there; a remark on its build."""

    run: Callable[[Path], Usage]
    outcome: Callable[[Path], Outcome]
    remark: str = ""


def _printed(*command: str) -> str:
    """Return what a command prints, without space at its ends; empty if it fails."""
    process = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, errors="replace")
    return "" if process.returncode else process.stdout.strip()


def _meson_options(program: Path) -> dict[str, str]:
    """Return the options of the build folder of meson in which a program lies; empty outside of one."""
    for folder in program.parents:
        record = folder / "meson-info" / "intro-buildoptions.json"
        if record.is_file():
            return {option["name"]: str(option["value"]) for option in json.loads(record.read_text())}
    return {}


def _levels(program: Path) -> list[str]:
    """Return the optimisation level of each unit of GCC, of its command line or its debugging information."""
    lines = _printed("readelf", "-p", ".GCC.command.line", str(program)).splitlines()
    units = [line for line in lines if "GNU C" in line]
    if not units:
        lines = _printed("readelf", "--debug-dump=info", "--dwarf-depth=1", str(program)).splitlines()
        units = [line for line in lines if "DW_AT_producer" in line and "GNU C" in line]
    return [(re.findall(r"\s-O(\w*)", unit) or ["0"])[-1] or "1" for unit in units]


def build_of(name: str) -> Build:
    """Return the build of a program on PATH, by its folder of meson or by the marks of its compiler."""
    program = Path(shutil.which(name) or name).resolve()
    version = _printed(name, "--version").splitlines()[-1:] or ["version unknown"]
    compilers = re.findall(r"\]\s+(.*\S)", _printed("readelf", "-p", ".comment", str(program)))
    compiler = compilers[0] if compilers else "compiler unknown"
    options = _meson_options(program)
    level = options.get("optimization", "plain")
    # a plain build of meson takes the flags of its environment
    levels = _levels(program) if level == "plain" else [level]
    build_type = f"meson {options['buildtype']}" if options else "build type unknown"
    if levels:
        build_type += f" (-O{min(levels)})"
    return Build(version[0], build_type, compiler, "0" not in levels if levels else None)


def builds(*names: str) -> dict[str, Build]:
    """Print and return the builds of the programs of these names that are on PATH."""
    compiled = {name: build_of(name) for name in names if shutil.which(name)}
    for name, build in compiled.items():
        print(f"{name}: {build.version}, {build.build_type}, {build.compiler}")
    return compiled


def remark(compiled: Mapping[str, Build], *names: str) -> str:
    """Return what the builds of these programs leave to say of a ratio: REFUSED, unknown, or nothing."""
    states = {compiled[name].optimised for name in names if name in compiled}
    return REFUSED if False in states else "build type unknown" if None in states else ""


def pybatsim_version() -> str:
    """Return the version of a pybatsim of 3.x on PATH, empty without one."""
    version = _printed("pybatsim", "--version") if shutil.which("pybatsim") else ""
    return version if version.startswith("3.") else ""


def started(command: Sequence[str], folder: Path) -> subprocess.Popen[bytes]:
    """Start a command in `folder`, below a process that measures it."""
    measured = [sys.executable, "-ISc", MEASURE, *command]
    return subprocess.Popen(measured, cwd=folder, stdout=subprocess.PIPE, start_new_session=True)


def waited(process: subprocess.Popen[bytes]) -> Usage:
    """Wait for a command that was started; return its usage. Raises CalledProcessError if it fails."""
    printed, _ = process.communicate()
    code, *figures = json.loads(printed)
    if code:
        raise subprocess.CalledProcessError(code, process.args)
    return Usage(*figures)


def whole(command: Sequence[str], folder: Path) -> Usage:
    """Measure one command, which runs in `folder`."""
    return waited(started(command, folder))


def both(batsim: Sequence[str], scheduler: Sequence[str], folder: Path) -> Usage:
    """Measure Batsim, or `batwatt batsim`, with a scheduler: wall time of the former, sums of the rest."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    decisions = started([*scheduler, "-s", f"tcp://*:{port}"], folder)
    try:
        options = ["-p", "platform.xml", "-w", "workload.json", "-e", "theirs", "-E", "-q"]
        endpoint = ["-s", f"tcp://localhost:{port}", "--disable-schedule-tracing"]
        one = whole([*batsim, *options, *endpoint], folder)
        other = waited(decisions)
    except BaseException:
        os.killpg(decisions.pid, signal.SIGKILL)
        raise
    return Usage(one.wall_s, one.cpu_s + other.cpu_s, one.mib + other.mib)


def with_cqsim(source: Path, jobs: int, folder: Path) -> Usage:
    """Measure CQSim, which writes beside its sources: in a copy of them."""
    home = folder / "cqsim"
    if not home.is_dir():
        shutil.copytree(source / "src", home / "src")
        (home / "data" / "InputFiles").mkdir(parents=True)
        shutil.copy(folder / "jobs.swf", home / "data" / "InputFiles")
    # -b 1 is EASY; it stops one job before the number of -R
    command = [sys.executable, "cqsim.py", "-j", "jobs.swf", "-n", "jobs.swf", "-b", "1", "-R", str(jobs + 1)]
    return whole(command, home / "src")


def of_schedule(prefix: str, folder: Path) -> Outcome:
    """Return the outcome in a schedule file of Batsim's form."""
    with (folder / f"{prefix}_schedule.csv").open(newline="") as file:
        row = next(csv.DictReader(file))
    return Outcome(int(row["nb_jobs_finished"]), float(row["mean_waiting_time"]))


def of_accasim(folder: Path) -> Outcome:
    """Return the outcome of AccaSim, by its rows of jobs and its statistics."""
    finished = len((folder / "accasim" / "sched-jobs.swf").read_text().splitlines())
    statistic = re.search(r"Avg\. waiting times: (\S+)", (folder / "accasim" / "stats-jobs.swf").read_text())
    return Outcome(finished, float(statistic[1]) if statistic else float("nan"))


def of_cqsim(folder: Path) -> Outcome:
    """Return the outcome of CQSim; column 6 of a row is the wait in s."""
    rows = (folder / "cqsim" / "data" / "Results" / "jobs.rst").read_text().splitlines()
    return Outcome(len(rows), statistics.fmean(float(row.split(";")[5]) for row in rows))


def write_platform(folder: Path) -> None:
    """Write `platform.xml`: hosts with watts and a master host, without network."""
    watts = '<prop id="wattage_per_state" value="30:100"/>'
    names = ["master_host", *(f"h{i:03d}" for i in range(HOSTS))]
    hosts = "".join(f'<host id="{name}" coordinates="0 0 0" speed="{SPEED:g}f">{watts}</host>' for name in names)
    head = '<?xml version="1.0"?><!DOCTYPE platform SYSTEM "https://simgrid.org/simgrid.dtd">'
    zone = f'{head}<platform version="4.1"><zone id="all" routing="Vivaldi">{hosts}</zone></platform>'
    (folder / "platform.xml").write_text(zone)


def swf(jobs: int) -> str:
    """Return the jobs as SWF; a requested time is longer than its run, for no job to end by it."""
    load = workload(jobs, LOAD)
    rows = [f"; MaxJobs: {jobs}", f"; MaxRecords: {jobs}", "; UnixStartTime: 0", "; TimeZoneString: UTC"]
    rows += [f"; MaxNodes: {HOSTS}", f"; MaxProcs: {HOSTS}"]
    for number, job in enumerate(load.jobs, 1):
        raw = job.raw
        profile = load.raw_profiles[raw["profile"]]
        run_s = round(profile["delay"] if profile["type"] == "delay" else profile["cpu"] / SPEED)
        submit_s, width, requested_s = round(raw["subtime"]), raw["res"], max(int(raw["walltime"]), run_s + 1)
        rows.append(f"{number} {submit_s} -1 {run_s} {width} -1 -1 {width} {requested_s} -1 1 1 1 -1 -1 -1 -1 -1")
    return "\n".join(rows) + "\n"


def write_inputs(folder: Path, jobs: int) -> None:
    """Write the SWF, and platform, workload and system in the forms of the peers."""
    (folder / "jobs.swf").write_text(swf(jobs))
    write_platform(folder)
    convert = [sys.executable, "-m", "batwatt", "-q", "convert", "jobs.swf", "-o", "workload.json"]
    subprocess.run([*convert, "--nb-res", str(HOSTS)], cwd=folder, check=True, stdout=subprocess.DEVNULL)
    system = {"system_name": "bench", "start_time": 0, "equivalence": {"processor": {"core": 1}}}
    groups = {"groups": {"host": {"core": 1}}, "resources": {"host": HOSTS}}
    (folder / "accasim.json").write_text(json.dumps(system | groups))
    (folder / "accasim").mkdir()


def peers(jobs: int, accasim: str | None, cqsim: Path | None) -> dict[str, Peer]:
    """Return the programs that are there by name, batwatt first."""
    run = [sys.executable, "-m", "batwatt", "-q", "run", "-p", "platform.xml", "-w", "jobs.swf", "-s", "powercap"]
    ours = partial(whole, [*run, "-o", json.dumps(OPTIONS), "-e", "ours"])
    programs = {f"batwatt {batwatt.__version__}": Peer(ours, partial(of_schedule, "ours"))}
    compiled = builds("batsim", "batsched")
    schedulers: dict[str, tuple[str, ...]] = {}
    if "batsched" in compiled:
        name = f"batsched {compiled['batsched'].version}"
        schedulers = {f"{name} easy_bf": EASY_BF, f"{name} easy_bf_fast": EASY_BF_FAST}
    if version := pybatsim_version():
        schedulers[f"pybatsim {version} easyBackfill"] = EASY_BACKFILL
    for name, scheduler in schedulers.items() if "batsim" in compiled else ():
        programs[f"Batsim {compiled['batsim'].version}, {name}"] = Peer(
            partial(both, ["batsim"], scheduler),
            partial(of_schedule, "theirs"),
            remark(compiled, "batsim", scheduler[0]),
        )
    if accasim:
        version = _printed(accasim, "-c", "from importlib.metadata import version; print(version('accasim'))")
        programs[f"AccaSim {version} EASYBackfilling"] = Peer(partial(whole, [accasim, "-c", ACCASIM]), of_accasim)
    if cqsim:
        programs["CQSim, EASY"] = Peer(partial(with_cqsim, cqsim, jobs), of_cqsim)
    return programs


def median(measures: Sequence[Usage]) -> Usage:
    """Return the median of each figure."""
    return Usage(*(statistics.median(getattr(one, name) for one in measures) for name in ("wall_s", "cpu_s", "mib")))


def times(measures: Sequence[Usage], ours: Sequence[Usage]) -> tuple[float, str]:
    """Return the median ratio of processor time over that of batwatt in the same rounds, and a text with its spread."""
    ratios = sorted(one.cpu_s / own.cpu_s for one, own in zip(measures, ours, strict=True))
    ratio = statistics.median(ratios)
    return ratio, f"{ratio:.2f} x ({ratios[0]:.2f}-{ratios[-1]:.2f})"


def main() -> int:
    """Print a table; exit 1 if a program is refused."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--jobs", type=int, default=10_000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--accasim", metavar="PYTHON", help="Python that has AccaSim")
    parser.add_argument("--cqsim", metavar="FOLDER", type=Path, help="sources of CQSim")
    parser.add_argument("--write", metavar="FILE", type=Path, help="write the jobs as SWF, and end")
    arguments = parser.parse_args()
    if arguments.write:
        arguments.write.write_text(swf(arguments.jobs))
        return 0
    # do not resolve the link of a virtual environment
    accasim = str(Path(arguments.accasim).absolute()) if arguments.accasim else None
    programs = peers(arguments.jobs, accasim, arguments.cqsim)
    measures: dict[str, list[Usage]] = {name: [] for name, peer in programs.items() if peer.remark != REFUSED}
    outcomes: dict[str, Outcome] = {}
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        write_inputs(folder, arguments.jobs)
        for _ in range(arguments.rounds):
            for name, measured in measures.items():
                measured.append(programs[name].run(folder))
                outcomes[name] = programs[name].outcome(folder)
    print(f"{'':>44} finished  wait s       s   cpu s   MiB  cpu s over batwatt's")
    ours = next(iter(measures.values()))
    for name, peer in programs.items():
        if name not in measures:
            print(f"{name:>44} {REFUSED}")
            continue
        took, outcome = median(measures[name]), outcomes[name]
        figures = (
            f"{outcome.finished:>8} {outcome.wait_s:>7.0f} {took.wall_s:>7.2f} {took.cpu_s:>7.2f} {took.mib:>5.0f}"
        )
        print(f"{name:>44} {figures}  {times(measures[name], ours)[1]}  {peer.remark}".rstrip())
    return 0 if len(measures) == len(programs) else 1


if __name__ == "__main__":
    sys.exit(main())
