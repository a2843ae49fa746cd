"""What the tests of the command line share: tiny inputs, and two ways to run a command."""

from __future__ import annotations

import csv
import json
import os
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from batwatt.cli.main import main

ROOT = Path(__file__).resolve().parents[2]
SMALL = ROOT / "platforms" / "small.xml"
JOBS = ROOT / "workloads" / "small.json"
CSV = ("jobs", "schedule", "machine_states", "pstate_changes", "consumed_energy", "power")
"""The CSV files of a run with energy."""
ENVELOPE = "time_s,power_w\n0,600\n100,250\n200,60\n300,600\n"
WATTS = '<prop id="wattage_per_state" value="50:100"/>'


@dataclass
class Done:
    """How a command ended."""

    code: int
    out: str
    err: str

    @property
    def line(self) -> str:
        """The one line on stderr that explains a failure."""
        assert "Traceback" not in self.err, self.err
        lines = self.err.strip().split("\n")
        assert len(lines) == 1 and lines[0].startswith("batwatt: "), self.err
        assert len(lines[0]) <= 500 and lines[0].isprintable()
        return lines[0]


class House:
    """A folder with inputs; `out` is where results go."""

    def __init__(self, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self.folder = folder
        self.out = folder / "out"
        self._capsys = capsys
        self._started: list[subprocess.Popen[str]] = []
        self.envelope = self.write("envelope.csv", ENVELOPE)

    def write(self, name: str, text: str) -> Path:
        path = self.folder / name
        path.write_text(text)
        return path

    def workload(self, *jobs: dict[str, object], nb_res: int = 4, **profiles: object) -> Path:
        profiles = profiles or {"nap": {"type": "delay", "delay": 5}}
        return self.write("w.json", json.dumps({"nb_res": nb_res, "jobs": jobs, "profiles": profiles}))

    def platform(self, *names: str, watts: bool = True) -> Path:
        hosts = "".join(f'<host id="{name}" speed="2e11f">{WATTS if watts else ""}</host>' for name in names)
        master = '<host id="master_host" speed="1f"><prop id="role" value="master"/></host>'
        text = f"<zone id='A' routing='Full'>{master}{hosts}</zone>"
        return self.write("p.xml", f"<?xml version='1.0'?><platform version='4.1'>{text}</platform>")

    def batwatt(self, *args: object) -> Done:
        """Run a command in this process."""
        self._capsys.readouterr()
        with pytest.raises(SystemExit) as ended:
            main([str(word) for word in args])
        text = self._capsys.readouterr()
        return Done(int(ended.value.code or 0), text.out, text.err)

    def run(self, *args: object, platform: Path = SMALL, workload: Path = JOBS, to: str = "x") -> Done:
        """`batwatt run` with the small inputs."""
        return self.batwatt("run", "-p", platform, "-w", workload, "-e", self.out / to, *args)

    def start(self, *args: object, program: tuple[object, ...] = ("-m", "batwatt"), **options: object):
        """Start a command as a process of its own."""
        command = [str(word) for word in (sys.executable, *program, *args)]
        environment = os.environ | {"COLUMNS": "80"}
        # where the tests themselves run under nohup, a command must not inherit that it ignores SIGHUP
        options.setdefault("preexec_fn", lambda: signal.signal(signal.SIGHUP, signal.SIG_DFL))
        streams = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
        process = subprocess.Popen(command, text=True, env=environment, **(streams | options))
        self._started.append(process)
        return process

    def end(self, process: subprocess.Popen[str], within_s: float = 60.0) -> Done:
        """Wait for a process."""
        out, err = process.communicate(timeout=within_s)
        return Done(process.returncode, out, err or "")

    def assert_same(self, one: str, *others: str) -> None:
        """The runs of these names left the same bytes."""
        for other in others:
            for stem in CSV:
                assert self.file(f"{one}_{stem}.csv") == self.file(f"{other}_{stem}.csv"), (other, stem)
            assert self.file(f"{one}_metrics.json") == self.file(f"{other}_metrics.json")

    def file(self, name: str) -> bytes:
        return (self.out / name).read_bytes()

    def rows(self, name: str = "x_jobs.csv") -> list[dict[str, str]]:
        """The rows of a CSV file among the results."""
        with (self.out / name).open(newline="") as file:
            return list(csv.DictReader(file))

    def metrics(self, run: str = "x") -> dict[str, object]:
        return json.loads(self.file(f"{run}_metrics.json"))

    @property
    def left(self) -> list[str]:
        """What is in the output folder."""
        return sorted(path.name for path in self.out.rglob("*")) if self.out.exists() else []

    def close(self) -> None:
        for process in self._started:
            if process.poll() is None:
                process.kill()
                process.communicate()


SCHEDULER = """\
from batsim.batsim import BatsimScheduler


class {name}(BatsimScheduler):
    def onJobSubmission(self, job):
        {submission}

    onJobCompletion = onRequestedCall = lambda *_: None

    def onNoMoreEvents(self):
        {decide}
"""


def scheduler(name: str, submission: str = "pass", decide: str = "pass") -> str:
    """The file of a scheduler with these two lines."""
    return SCHEDULER.format(name=name, submission=submission, decide=decide)


@pytest.fixture
def house(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Iterator[House]:
    house = House(tmp_path, capsys)
    yield house
    house.close()


@pytest.fixture
def endpoint() -> str:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return f"tcp://127.0.0.1:{probe.getsockname()[1]}"


@pytest.fixture
def terminal(monkeypatch):
    """What makes stdout a terminal of so many columns."""

    def of(columns: int) -> None:
        monkeypatch.setenv("COLUMNS", str(columns))
        monkeypatch.setenv("TERM", "xterm-256color")
        monkeypatch.setattr(sys.stdout, "isatty", lambda: True)

    return of


def unstyled(text: str) -> str:
    """A text without what makes a terminal bold or colours it."""
    return re.sub(r"\x1b\[[0-9;]*m", "", text)


def children(pid: int) -> list[int]:
    """Processes that `pid` started (Linux)."""
    pids = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if int(fields[1]) == pid and fields[0] != "Z":
            pids.append(int(stat.parent.name))
    return pids


def alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False
