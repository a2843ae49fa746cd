"""A process of `batwatt slurm run` on a toy cluster, and what its journal tells."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any, Self

from waiting import PATIENCE, wait_for


def cap_of(path: Path, *rows: tuple[int, int], end: str = "\n") -> str:
    """Write a cap in W by time in s; returns its path as text."""
    path.write_text("time_s,power_w\n" + "\n".join(f"{time_s},{watts}" for time_s, watts in rows) + end)
    return str(path)


def cap_file(platform: Path, *rows: tuple[int, int]) -> str:
    """Write a cap in W by time in s beside a platform; returns its path."""
    return cap_of(platform.parent / "watts.csv", *rows)


class Session:
    """A process of `batwatt slurm run`, whose journal is read while it runs; a context manager that ends it."""

    def __init__(
        self, platform: Path, *words: str, speed: float = 60.0, poll_s: float = 0.3, handover: str = "--partition"
    ) -> None:
        self.prefix = platform.parent / "session"
        self.log = platform.parent / "stderr.txt"
        self.words = [sys.executable, "-m", "batwatt", "slurm", "run", "-p", str(platform), handover, "green",
                       "-e", str(self.prefix), "--speed", str(speed), "--poll", str(poll_s), *words]  # fmt: skip

    def __enter__(self) -> Self:
        self.process = subprocess.Popen(self.words, stdout=subprocess.PIPE, stderr=self.log.open("a"), text=True)
        return self

    def __exit__(self, *_: object) -> None:
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
            self.process.wait(30)

    def rows(self, kind: str = "") -> list[dict[str, Any]]:
        """Return the whole lines of the journal, of one kind; the last one may be half written."""
        path = self.prefix.with_name("session_journal.jsonl")
        lines = path.read_text().splitlines(keepends=True) if path.exists() else []
        rows = [json.loads(line) for line in lines if line.endswith("\n")]
        return [row for row in rows if kind in ("", row["kind"])]

    def events(self, kind: str) -> list[dict[str, Any]]:
        """Return the data of the events of a type that the scheduler was told."""
        messages = [row["message"] for row in self.rows("exchange")]
        return [event["data"] for message in messages for event in message["events"] if event["type"] == kind]

    def decisions(self, kind: str) -> list[dict[str, Any]]:
        """Return the data of the decisions of a type."""
        replies = [row["reply"] for row in self.rows("exchange")]
        return [event["data"] for reply in replies for event in reply["events"] if event["type"] == kind]

    def until_told(self, kind: str, number: int = 1, limit_s: float = 20.0) -> list[dict[str, Any]]:
        """Wait for events of a type."""
        wait_for(lambda: len(self.events(kind)) >= number, limit_s, f"{number} {kind}; {self.log.read_text()}")
        return self.events(kind)

    def ends(self, limit_s: float = 60.0) -> str:
        """Wait for the end of the process; returns what it printed."""
        out, _ = self.process.communicate(timeout=limit_s * PATIENCE)
        assert self.process.returncode == 0, self.log.read_text()
        return str(out)
