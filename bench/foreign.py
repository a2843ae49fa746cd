"""Run schedulers of others, written for pybatsim, and compare with a real Batsim.

    python bench/foreign.py FOLDER [--batsim PATH --pybatsim PATH] [--only TEXT]

`foreign.json` has a row for each scheduler: address and commit of a repository, file, packages, and expected result.
FOLDER has the checkouts, in folders `OWNER+NAME@COMMIT` with seven digits of the commit. Checkouts and packages are not
installed or fetched here; `needs` is a path that its author wrote into the code, `options` a file of the repository.

`batwatt run -s FILE` plays google-288-00 on grid5000, with the numbers of users and programs that some schedulers read;
for a row with `hosts` on as many equal hosts, one for each job. Batsim 4.2.1 with pybatsim 3 plays the same if their
paths are given; there, too, jobs in a set are in order of arrival, as the order of pybatsim's sets changes from run to
run. `equal`: both `jobs.csv` have the same jobs, states and hosts, and times that differ by at most 1e-6 s.
"""

from __future__ import annotations

import argparse
import csv
import json
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from importlib.metadata import distributions
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
ROWS = Path(__file__).with_suffix(".json")
PLATFORM = ROOT / "platforms" / "grid5000.xml"
WORKLOAD = ROOT / "workloads" / "google-288-00.json"
USERS, PROGRAMS = 7, 11
LIMIT_S = 120.0
NOISE_S = 1.01e-6  # times have six digits in the files
TIMES = ("submission_time", "starting_time", "execution_time", "finish_time", "waiting_time", "turnaround_time")
TEXTS = ("final_state", "success", "allocated_resources")
PYBATSIM = """
import itertools, sys
from batsim.batsim import Job
from batsim.cmds.launcher import main
arrival, init = itertools.count(1), Job.__init__
def numbered(job, *words, **names):
    init(job, *words, **names)
    job.arrival_number = next(arrival)
Job.__init__, Job.__hash__ = numbered, lambda job: job.arrival_number
sys.exit(main())
"""
"""The command pybatsim; a job hashes as the number of its arrival."""


@dataclass(frozen=True)
class Row:
    """A scheduler of others, as in `foreign.json`; the last two are for the docs."""

    repository: str
    commit: str
    file: str
    expected: str
    packages: list[str] = field(default_factory=list)
    hosts: int = 0
    options: str = ""
    needs: str = ""
    before: str = ""
    reason: str = ""

    @property
    def name(self) -> str:
        """Owner, name and commit of the repository, as of the folder of its checkout."""
        return "+".join(self.repository.split("/")[-2:]) + f"@{self.commit[:7]}"

    def missing(self, folder: Path) -> str:
        """Return why the row cannot be run here, or nothing."""
        if not (folder / self.name / self.file).exists():
            return "missing"
        installed = {distribution.name for distribution in distributions()}
        lacking = [name for name in self.packages if name not in installed]
        lacking += [path for path in [self.needs] if path and not Path(path).exists()]
        return f"missing: {', '.join(lacking)}" if lacking else ""


@dataclass(frozen=True)
class Trial:
    """A folder with a workload, a platform and a checkout for each of the two runs."""

    folder: Path
    row: Row

    def write(self, checkouts: Path) -> list[str]:
        """Copy the checkout, write the inputs; return the options -p and -w."""
        for name in ("ours", "theirs"):
            shutil.copytree(checkouts / self.row.name, self.folder / name)
        data, hosts, platform = json.loads(WORKLOAD.read_text(encoding="utf-8")), self.row.hosts, PLATFORM
        for number, job in enumerate(data["jobs"]):
            job |= {"uid": number % USERS, "exe_num": number % PROGRAMS} | ({"res": 1} if hosts else {})
        if hosts:
            platform = self.folder / "platform.xml"
            command = [sys.executable, "-m", "batwatt", "generate", "platform", "--cores", "1", "-o", str(platform)]
            subprocess.run([*command, "--machines", str(hosts)], check=True, stdout=subprocess.DEVNULL)
        workload = self.folder / "workload.json"
        workload.write_text(json.dumps({**data, "nb_res": hosts or data["nb_res"]}), encoding="utf-8")
        return ["-p", str(platform), "-w", str(workload)]

    def ours(self, inputs: Sequence[str]) -> str:
        """Run `batwatt run`; return the last line of its error, or nothing."""
        options = ["-o", f"@{self.row.options}"] if self.row.options else []
        command = [sys.executable, "-m", "batwatt", "run", *inputs, "-s", self.row.file, *options]
        return self._played("ours", [[*command, "-e", str(self.folder / "ours_out")]])

    def theirs(self, inputs: Sequence[str], batsim: str, pybatsim: str) -> str:
        """Run Batsim with pybatsim; return the last line of an error, or nothing."""
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            socket_options = ["-s", f"tcp://127.0.0.1:{free.getsockname()[1]}"]
        options = ["-O", self.row.options] if self.row.options else []
        python = [str(Path(pybatsim).parent / "python"), "-c", PYBATSIM, self.row.file, *options]
        simulator = [batsim, *inputs, "-e", str(self.folder / "theirs_out"), "-E", "-q", "--disable-schedule-tracing"]
        limits = ["-t", f"{LIMIT_S * 1000:.0f}", "-v", "warning"]
        return self._played("theirs", [[*python, *socket_options, *limits], [*simulator, *socket_options]])

    def _played(self, name: str, commands: Sequence[Sequence[str]]) -> str:
        """Run commands at once in a checkout until all end or one fails; return the last line of the error."""
        logs = [self.folder / f"{name}-{number}.log" for number in range(len(commands))]
        processes = []
        for command, log in zip(commands, logs, strict=True):
            with log.open("w") as out:
                processes.append(subprocess.Popen(command, cwd=self.folder / name, stdout=out, stderr=out))
        ends, codes = time.monotonic() + LIMIT_S, [None]
        try:
            while None in codes and not any(codes) and time.monotonic() < ends:
                time.sleep(0.05)
                codes = [process.poll() for process in processes]
        finally:
            for process in processes:
                process.kill()
                process.wait()
        for code, log in zip(codes, logs, strict=True):
            if code:
                return last_line(log)
        return f"no end after {LIMIT_S:g} s" if None in codes else ""


def last_line(log: Path) -> str:
    """Return the last line of a log that names an error, without folders and the advice of batwatt."""
    lines = [line.strip() for line in log.read_text(encoding="utf-8", errors="replace").splitlines() if line.strip()]
    errors = [line for line in lines if "Error" in line or "CRITICAL" in line or line.startswith("batwatt:")]
    text = (errors or lines or ["no message"])[-1].partition("; ")[0]
    return " ".join(word.rsplit("/", 1)[-1] for word in text.split())


def differences(first: Path, second: Path) -> Iterator[str]:
    """Yield the differences of two files `jobs.csv`."""
    tables = []
    for path in (first, second):
        with path.open(newline="", encoding="utf-8") as file:
            tables.append({row["job_id"]: row for row in csv.DictReader(file)})
    if tables[0].keys() != tables[1].keys():
        yield "other jobs"
        return
    for job, row in tables[0].items():
        other = tables[1][job]
        for name in TEXTS + TIMES:
            same = row[name] == other[name]
            if not same and (name in TEXTS or abs(float(row[name]) - float(other[name])) > NOISE_S):
                yield f"{name} of job {job}: {row[name]}, not {other[name]}"


def result(row: Row, checkouts: Path, batsim: str | None, pybatsim: str | None) -> str:
    """Run one scheduler; return `runs, equal`, `runs, differs: ...`, or the last line of the error."""
    with tempfile.TemporaryDirectory(prefix="batwatt-") as name:
        trial = Trial(Path(name), row)
        inputs = trial.write(checkouts)
        error = trial.ours(inputs)
        if batsim is None or pybatsim is None:
            return f"fails: {error}" if error else "runs"
        real = trial.theirs(inputs, batsim, pybatsim)
        if error or real:
            return f"fails{' on both' if real else ''}: {error}" if error else f"runs; with pybatsim: {real}"
        first = next(differences(trial.folder / "ours_out_jobs.csv", trial.folder / "theirs_out_jobs.csv"), None)
        return f"runs, differs: {first}" if first else "runs, equal"


def main() -> int:
    """Print a table of results; exit 1 if one is not the expected."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, help="folder of the checkouts")
    parser.add_argument("--batsim", help="path of Batsim 4.2.1")
    parser.add_argument("--pybatsim", help="path of the command pybatsim 3, in its environment")
    parser.add_argument("--only", default="", help="only rows whose repository or file has this text")
    arguments = parser.parse_args()
    folder, others = arguments.folder.resolve(), 0
    for row in (Row(**raw) for raw in json.loads(ROWS.read_text(encoding="utf-8"))):
        if arguments.only not in f"{row.name}/{row.file}":
            continue
        missing = row.missing(folder)
        text = missing or result(row, folder, arguments.batsim, arguments.pybatsim)
        compared = arguments.batsim and arguments.pybatsim
        more = "" if missing or text.startswith(row.expected if compared else row.expected[:4]) else "  EXPECTED "
        others += bool(more)
        print(f"{Path(row.file).stem:24} {row.name:46} {text}{more and more + row.expected}", flush=True)
    return int(others > 0)


if __name__ == "__main__":
    sys.exit(main())
