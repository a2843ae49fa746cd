"""The lab of `slurm_trials.py`: a toy cluster with more of Slurm in it, and a bridge of any version as a process.

Nothing here imports batwatt: another version of it is run by its commands.
"""

from __future__ import annotations

import json
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "helpers"))

from slurm_session import Session
from toy_cluster import SERVERS, ToyCluster

ROOT = Path(__file__).resolve().parents[1]
NODES = 8
GRES = "NodeName=n4 Name=gpu File=/dev/null\n"
COLUMNS = (
    "JobArrayID", "State", "Reason", "PriorityLong", "ReqNodes", "NumNodes", "RestartCnt", "NodeList", "admin_comment"
)  # fmt: skip
DAEMON_LIMIT_S = 330.0
"""Longest time of an end, in s: a session waits up to 300 s for Slurm."""


def wait(condition: Callable[[], object], limit_s: float, pause_s: float = 0.1) -> bool:
    """Wait for a condition; return whether it was met within a limit in s."""
    end_s = time.monotonic() + limit_s
    while not condition():
        if time.monotonic() > end_s:
            return False
        time.sleep(pause_s)
    return True


def numbers_of(nodes: str) -> list[int]:
    """Return the numbers in a list of nodes such as n[1-3,5]."""
    parts = [part.partition("-") for part in re.findall(r"\d+(?:-\d+)?", nodes)]
    return [i for first, _, last in parts for i in range(int(first), int(last or first) + 1)]


def summed(problems: Sequence[str]) -> list[str]:
    """Return each problem once, with its number."""
    texts = Counter(re.sub(r"nodes \S+ required", "nodes required", text) for text in problems)
    return [f"{count}x {text}" for text, count in texts.items()]


class Cluster(ToyCluster):
    """A toy cluster with features, a GPU, a licence and room for many jobs; `user` is SlurmUser."""

    def __init__(self, user: str = "root") -> None:
        folder = Path(tempfile.mkdtemp(prefix="trial-"))
        folder.chmod(0o755)
        super().__init__(folder / "slurm", NODES)
        first = self.ports + 1
        path = self.folder / "slurm.conf"
        text = path.read_text()
        row = re.search(r"^NodeName=.*\n", text, re.MULTILINE)
        assert row is not None
        rows = [
            row[0]
            .replace(f"n[1-{NODES}]", f"n[{low}-{high}]")
            .replace(f"Port=[{first}-{first + NODES - 1}]", f"Port=[{first + low - 1}-{first + high - 1}]")
            .replace("State=", f"{more} State=")
            for low, high, more in ((1, 3, "Feature=big"), (4, 4, "Feature=big Gres=gpu:1"), (5, 8, "Feature=small"))
        ]
        more = "GresTypes=gpu\nLicenses=lic:1\nMaxArraySize=20001\nMaxJobCount=50000\nFirstJobId=7000\n"
        text = text.replace(row[0], more + "".join(rows)).replace("SlurmUser=root", f"SlurmUser={user}")
        path.write_text(text)
        (self.folder / "gres.conf").write_text(GRES)
        if user != "root":
            for one in (self.folder, self.folder / "state"):
                shutil.chown(one, user)

    def __exit__(self, *_: object) -> None:
        super().__exit__()
        shutil.rmtree(self.folder.parent, ignore_errors=True)

    def sbatch(self, *words: str, run_s: float = 1.0, hold: bool = True) -> str:
        """Submit a job that writes its number down and sleeps; return its number."""
        script = f"--wrap=date +%s.%N >> {self.folder}/ran-$SLURM_JOB_ID; sleep {run_s:g}"
        lead = ["sbatch", "--parsable", "-t", "10", "-o", "/dev/null", *(["-H"] if hold else [])]
        return self.command(*lead, *words, script).stdout.strip()

    def runs(self, number: str) -> list[float]:
        """Return the dates in s since 1970 at which the script of a job began."""
        path = self.folder / f"ran-{number}"
        return [float(line) for line in path.read_text().split()] if path.exists() else []

    def jobs(self, *numbers: str) -> dict[str, dict[str, str]]:
        """Return what squeue prints of jobs, by number."""
        form = ",".join(f"{name}:|" for name in COLUMNS) + "\x1f"
        words = ["squeue", "-h", "-r", "-t", "all", "-O", form]
        text = self.command(*words, check=False).stdout
        rows = [[cell.strip() for cell in row.split("|", len(COLUMNS) - 1)] for row in text.split("|\x1f")]
        jobs = {row[0]: dict(zip(COLUMNS, row, strict=True)) for row in rows if len(row) == len(COLUMNS)}
        for job in jobs.values():
            for name in ("ReqNodes", "admin_comment"):
                job[name] = job[name].removeprefix("(null)")
        return {number: jobs[number] for number in numbers if number in jobs} if numbers else jobs

    def all_in(self, state: str, numbers: Sequence[str]) -> bool:
        """Return whether all jobs are in a state."""
        jobs = self.jobs(*numbers)
        return len(jobs) == len(numbers) and all(job["State"] == state for job in jobs.values())

    def until(self, state: str, numbers: Sequence[str], limit_s: float, bridge: Bridge | None = None) -> bool:
        """Wait until all jobs are in a state; no longer than a bridge lives, if there is one."""
        wait(lambda: self.all_in(state, numbers) or not (bridge is None or bridge.lives()), limit_s)
        return self.all_in(state, numbers)

    def drained(self) -> list[str]:
        """Return the nodes that batwatt drains."""
        rows = self.command("sinfo", "-h", "-N", "-p", "green", "-o", "%N|%T|%E", check=False).stdout.splitlines()
        cells = [row.split("|", 2) for row in rows]
        return [name for name, state, reason in cells if "drain" in state and reason.startswith("batwatt")]

    def left(self, before: Mapping[str, Mapping[str, str]]) -> list[str]:
        """Return what is left of a session: changes of jobs since `before`, and drained nodes."""
        problems = [f"{len(nodes)} nodes drained" for nodes in (self.drained(),) if nodes]
        now = self.jobs()
        for number, was in before.items():
            job = now[number]
            if job["admin_comment"] != was["admin_comment"]:
                problems.append(f"comment {job['admin_comment']!r} was {was['admin_comment']!r}")
            if job["State"] != "PENDING":
                continue
            if job["PriorityLong"] == "0" and job["Reason"] != was["Reason"]:
                problems.append(f"held ({job['Reason']})")
            if job["ReqNodes"] != was["ReqNodes"]:
                problems.append(f"nodes {job['ReqNodes']} required")
            if job["NumNodes"] != was["NumNodes"]:
                problems.append(f"NumNodes {job['NumNodes']} was {was['NumNodes']}")
        return problems

    def controller(self) -> int:
        """Return the process of slurmctld."""
        return int((self.folder / "slurmctld.pid").read_text())

    def clean(self) -> None:
        """End all jobs, and switch all nodes on."""
        live = [number for number, job in self.jobs().items() if job["State"] in ("PENDING", "RUNNING", "COMPLETING")]
        if live:
            self.command("scancel", *dict.fromkeys(number.partition("_")[0] for number in live), check=False)
        self.command("scontrol", "delete", "ReservationName=R", check=False)
        for number, state in enumerate(self.states(), 1):
            if "drain" in state:
                self.command("scontrol", "update", f"nodename=n{number}", "state=undrain", check=False)
            if not state.startswith(("idle", "allocated", "mixed", "completing")) or state[-1] in "~#%!":
                self.command("scontrol", "update", f"nodename=n{number}", "state=power_up", check=False)
        if not wait(lambda: self.states() == ["idle"] * NODES, 30.0):
            # a node that was killed in the middle of a change
            for number in range(1, NODES + 1):
                self.command("scontrol", "update", f"nodename=n{number}", "state=power_down_force", check=False)
            time.sleep(4.0)
            for number in range(1, NODES + 1):
                for change in ("undrain", "resume", "power_up"):
                    self.command("scontrol", "update", f"nodename=n{number}", f"state={change}", check=False)
            wait(lambda: self.states() == ["idle"] * NODES, 40.0)


class Bridge(Session):
    """A process of `batwatt slurm run --operate` in a folder of its own; its output is in `log`."""

    def __init__(
        self, lab: Lab, *words: str, cluster: Cluster | None = None, speed: float = 60.0, poll_s: float = 0.3,
        around: Sequence[str] = (), user: str = "",
    ) -> None:  # fmt: skip
        self.cluster = cluster or lab.cluster
        self.folder = Path(tempfile.mkdtemp(dir=self.cluster.folder))
        self.folder.chmod(0o755)
        path = self.folder / "green.xml"
        shutil.copy(lab.platform, path)
        if user:
            shutil.chown(self.folder, user)
        super().__init__(path, *words, "--operate", *lab.extra, speed=speed, poll_s=poll_s)
        self.words = [*around, *self.words]
        self.environment = lab.environment(self.cluster)
        self._rows: list[dict[str, Any]] = []
        self._read = 0

    def start(self) -> Self:
        """Start the process."""
        self.process = subprocess.Popen(
            self.words, env=self.environment, stdout=subprocess.DEVNULL, stderr=self.log.open("a"), text=True
        )
        return self

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.end()

    def rows(self, kind: str = "") -> list[dict[str, Any]]:
        """Return the whole lines of the journal; each is read once."""
        path = self.prefix.with_name("session_journal.jsonl")
        if path.exists():
            with path.open("rb") as file:
                file.seek(self._read)
                text = file.read()
            text = text[: text.rfind(b"\n") + 1]
            self._read += len(text)
            self._rows += [json.loads(line) for line in text.splitlines()]
        return [row for row in self._rows if kind in ("", row["kind"])]

    def announced(self) -> set[str]:
        """Return the numbers of the jobs that the scheduler was told of."""
        return {data["job_id"].partition("!")[2].partition("@")[0] for data in self.events("JOB_SUBMITTED")}

    def until_announced(self, numbers: Sequence[str], limit_s: float = 30.0, pause_s: float = 0.1) -> bool:
        """Wait until the scheduler was told of jobs."""
        return self.until_true(lambda: self.announced() >= set(numbers), limit_s, pause_s)

    def until_starts(self, count: int, limit_s: float) -> bool:
        """Wait until the scheduler has started jobs."""
        return self.until_true(lambda: len(self.decisions("EXECUTE_JOB")) >= count, limit_s, 0.002)

    def until_begun(self, limit_s: float = 30.0) -> bool:
        """Wait until the scheduler has answered once."""
        return self.until_true(lambda: self.rows("exchange"), limit_s)

    def until_commands(self, number: str, count: int, limit_s: float) -> bool:
        """Wait until a job was started by the scheduler, and commands for it were answered."""

        def answered() -> bool:
            purposes = [row.get("job") for row in self.rows("do")]
            return purposes.count(f"slurm!{number}") >= count

        return self.until_true(answered, limit_s, 0.001)

    def until_true(self, condition: Callable[[], object], limit_s: float, pause_s: float = 0.1) -> bool:
        """Wait for a condition, no longer than the process lives; return whether it lives and has met it."""
        return wait(lambda: condition() or not self.lives(), limit_s, pause_s) and self.lives()

    def lives(self) -> bool:
        """Return whether the process goes on."""
        return self.process.poll() is None

    def end(self, limit_s: float = DAEMON_LIMIT_S) -> int:
        """Send SIGTERM, and kill the process after a limit in s; return its exit code."""
        if self.lives():
            self.process.send_signal(signal.SIGTERM)
        return self.until_end(limit_s)

    def until_end(self, limit_s: float) -> int:
        """Wait for the end, and kill the process after a limit in s; return its exit code."""
        try:
            return self.process.wait(limit_s)
        except subprocess.TimeoutExpired:
            self.process.kill()
            return self.process.wait()

    def last(self) -> str:
        """Return the last line on stderr."""
        lines = self.log.read_text().strip().splitlines()
        return lines[-1][:160] if lines else "no message"

    def names(self, number: str) -> bool:
        """Return whether stderr or a note of the journal names a job."""
        texts = [self.log.read_text(), *(json.dumps(row) for row in self.rows("note"))]
        return any(re.search(rf"(?<![\d.]){number}(?![\d.])", text) for text in texts)


@dataclass
class Lab:
    """Where trials run: the version, the cluster that they share, and the platform file."""

    source: Path
    extra: Sequence[str]
    counts: Mapping[str, int]
    token: Sequence[str]
    folder: Path = field(default_factory=lambda: Path(tempfile.mkdtemp(prefix="lab-")))
    help: str = ""
    _cluster: Cluster | None = None

    def __post_init__(self) -> None:
        self.folder.chmod(0o755)
        self.platform = self.folder / "green.xml"
        self.draw = random.Random(1)

    @property
    def cluster(self) -> Cluster:
        """The cluster that trials share."""
        if self._cluster is None:
            self._cluster = new_cluster()
        return self._cluster

    def environment(self, cluster: ToyCluster | None = None) -> dict[str, str]:
        """Return the environment of a command of batwatt."""
        path = f"{self.source}/src:{self.source}"
        return dict(cluster.environment if cluster else os.environ) | {"PYTHONPATH": path, "BATWATT_PURE": "1"}

    def batwatt(self, *words: str, cluster: ToyCluster | None = None) -> subprocess.CompletedProcess[str]:
        """Run a command of batwatt."""
        line = [sys.executable, "-m", "batwatt", *words]
        return subprocess.run(line, env=self.environment(cluster), capture_output=True, text=True, timeout=300)

    def prepare(self) -> None:
        """Write the platform file. Raises AssertionError if another version would run."""
        script = "import batwatt; print(batwatt.__file__)"
        line = [sys.executable, "-c", script]
        place = subprocess.run(line, env=self.environment(), capture_output=True, text=True, check=True).stdout
        assert place.startswith(f"{self.source}/src/"), place
        (self.folder / "servers.toml").write_text(SERVERS.format(nodes=NODES))
        made = self.batwatt("generate", "platform", str(self.folder / "servers.toml"), "-o", str(self.platform))
        assert made.returncode == 0, made.stderr
        self.help = self.batwatt("slurm", "run", "--help-all").stdout

    def cap(self, text: str = "time_s,power_w\n0,1750\n") -> str:
        """Write a file of a cap in W; return its path."""
        path = Path(tempfile.mkdtemp(dir=self.folder)) / "watts.csv"
        path.write_text(text)
        return str(path)

    def close(self) -> None:
        """End the cluster."""
        if self._cluster is not None:
            self._cluster.__exit__()
        shutil.rmtree(self.folder, ignore_errors=True)


def new_cluster(user: str = "root") -> Cluster:
    """Start a cluster; again if another process has taken one of its ports."""
    for _ in range(2):
        with suppress(AssertionError):
            cluster = Cluster(user)
            cluster.start()
            return cluster
    cluster = Cluster(user)
    cluster.start()
    return cluster
