"""Presence of a session on its machine and in Slurm: its lock, its status, its figures, and the service manager."""

from __future__ import annotations

import json
import logging
import math
import os
import re
import socket
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

from batwatt.errors import BatwattError, InputError
from batwatt.files import write_json, write_text
from batwatt.slurm.account import Notices
from batwatt.slurm.bridge import Bridge
from batwatt.slurm.commands import SlurmCommands, SlurmError, SlurmSilentError
from batwatt.slurm.snapshot import MARK
from batwatt.units import now_text

_log = logging.getLogger(__name__)
BEAT_S = 60.0
"""Period in s in which a session renews its mark on the nodes."""
STALE_S = 4.0 * BEAT_S
"""Age in s of a mark from which on its session is taken for dead."""
_MARK = re.compile(rf"{MARK} (\S+) (\w+ \S+) (\d{{4}}-\d\d-\d\dT[\d:.]+(?:Z|\+00:00))(?: \[was (.*)\])?", re.DOTALL)


class OtherSessionError(BatwattError):
    """Another machine operates the same jobs or nodes, so that this session gives nothing back."""


class ClusterLock:
    """The right to operate a cluster: for users of this machine a socket, for other machines a comment on the nodes.

    The name of the socket is in no file system, so that root and SlurmUser have the same one, and it goes with its
    process. A comment of an administrator is stored in that of the session, and restored.
    """

    def __init__(self, slurm: SlurmCommands, cluster: str) -> None:
        self._slurm = slurm
        self._cluster = cluster
        self._host = socket.gethostname()
        self._next_s = 0.0

    @contextmanager
    def held(self) -> Iterator[None]:
        """Hold the lock while the block lasts. Raises InputError if another process or machine has it."""
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as one:
            try:
                one.bind(f"\0batwatt-slurm-{self._cluster}")
            except OSError:
                problem = "another `batwatt slurm` operates it on this machine"
                raise InputError(f"cluster {self._cluster}", problem, "end that one first") from None
            try:
                if other := self._other():
                    raise InputError(f"cluster {self._cluster}", other, "end that one first")
                self._mark()
            except SlurmSilentError:
                raise
            except SlurmError as error:
                _log.warning("other machines do not see this session: %s", error)
                self._next_s = math.inf
            try:
                yield
            finally:
                with suppress(SlurmError):
                    self._slurm.comment_nodes(self._before(own=True))

    def beat(self) -> None:
        """Renew the mark on the nodes, once a minute. Raises OtherSessionError, SlurmError."""
        if time.monotonic() >= self._next_s:
            if other := self._other():
                raise OtherSessionError(f"cluster {self._cluster}: {other}; this session ends and gives nothing back")
            self._mark()

    def _other(self) -> str:
        """Return which other machine operates the jobs or the nodes; empty without one."""
        names = set(self._slurm.names)
        for name, comment in self._slurm.node_comments().items():
            match = _MARK.fullmatch(comment)
            if match and match[1] != self._host and (name in names or match[2] == str(self._slurm.handover)):
                age_s = time.time() - datetime.fromisoformat(match[3]).timestamp()
                if age_s < STALE_S:
                    return f"`batwatt slurm` on {match[1]} operates {match[2]}, seen {max(0.0, age_s):.0f} s ago"
        return ""

    def _mark(self) -> None:
        text = f"{MARK} {self._host} {self._slurm.handover} {now_text()}"
        before = self._before().items()
        self._slurm.comment_nodes({name: text + (f" [was {comment}]" if comment else "") for name, comment in before})
        self._next_s = time.monotonic() + BEAT_S

    def _before(self, *, own: bool = False) -> dict[str, str]:
        """Return the comments of the nodes without marks; with `own` those of nodes with a mark of this machine."""
        comments = {}
        for name, comment in self._slurm.node_comments().items():
            match = _MARK.fullmatch(comment)
            if name in self._slurm.names and not (own and (match is None or match[1] != self._host)):
                comments[name] = comment if match is None else match[4] or ""
        return comments


FIGURES = {
    "cap_w": ("cap_watts", "gauge", "Envelope in W."),
    "power_w": ("power_watts", "gauge", "Power of the nodes in W, measured or by the platform."),
    "energy_j": ("energy_joules_total", "counter", "Energy of the session in J."),
    "energy_above_cap_j": ("energy_above_cap_joules_total", "counter", "Energy above the envelope in J."),
    "jobs": ("jobs", "gauge", "Jobs of the scheduler by state."),
    "nodes": ("nodes", "gauge", "Nodes by state."),
    "not_taken": ("jobs_not_taken", "gauge", "Jobs that are handed over but not taken."),
    "failed_starts": ("failed_starts_total", "counter", "Starts that failed."),
    "last_poll_s": ("last_poll_timestamp_seconds", "gauge", "Time of the last answer of Slurm, in s since 1970."),
    "poll_s": ("poll_seconds", "gauge", "Mean time of a poll in s."),
}
"""Key of the status -> name under `batwatt_slurm_`, type and help in Prometheus' text format."""


def metrics_text(status: Mapping[str, Any]) -> str:
    """Return a status in Prometheus' text format."""
    lines = []
    for key, (name, kind, text) in FIGURES.items():
        value: Any = len(status[key]) if key == "not_taken" else status[key]
        by_state = isinstance(value, dict)
        rows = {f'{{state="{state}"}}': n for state, n in value.items()} if by_state else {"": value}
        if rows and value is not None:
            lines += [f"# HELP batwatt_slurm_{name} {text}", f"# TYPE batwatt_slurm_{name} {kind}"]
            lines += [f"batwatt_slurm_{name}{label} {number:.10g}" for label, number in rows.items()]
    return "\n".join(lines) + "\n"


@dataclass
class Presence:
    """Files PREFIX_status.json and `metrics`, written after each poll, and messages to the service manager."""

    path: Path
    metrics: Path | None
    about: str
    lock: ClusterLock | None = None
    manager: str = field(default_factory=lambda: os.environ.get("NOTIFY_SOCKET", ""))
    _notices: Notices = field(default_factory=Notices)

    def beat(self, bridge: Bridge) -> None:
        """Tell how the session stands after a poll. Raises OtherSessionError."""
        status = self.status(bridge)
        with self._warns():
            self._write(status)
        jobs = ", ".join(f"{number} jobs {state}" for state, number in status["jobs"].items() if number) or "no jobs"
        cap = "" if status["cap_w"] is None else f" of {status['cap_w']:g}"
        self.notify(f"READY=1\nWATCHDOG=1\nSTATUS={status['power_w']:g}{cap} W, {jobs}\n")
        if self.lock is not None and status["state"] == "running":
            with self._warns():
                self.lock.beat()

    @contextmanager
    def _warns(self) -> Iterator[None]:
        """Warn once of an error without which the session goes on. Raises OtherSessionError."""
        try:
            yield
        except (InputError, SlurmError) as error:
            self._notices.warn(str(error))

    def end(self, state: str) -> None:
        """Tell that the session ends, or has ended."""
        with suppress(OSError, ValueError, BatwattError):
            self._write({**json.loads(self.path.read_text(encoding="utf-8")), "state": state, "time": now_text()})
        self.notify("STOPPING=1\nEXTEND_TIMEOUT_USEC=600000000\n")

    def status(self, bridge: Bridge) -> dict[str, Any]:
        """Return the state of the session."""
        book, account, snapshot = bridge.book, bridge.account, bridge.snapshot
        jobs = Counter(task.status for task in book.present.values())
        nodes: Counter[str] = Counter()
        for i, host in enumerate(book.platform.hosts):
            node = None if snapshot is None else snapshot.nodes[host.name]
            nodes["unknown" if node is None else "out" if book.away >> i & 1 else node.power] += 1
        return {
            "session": self.about,
            "state": "running" if snapshot is not None else "waiting for Slurm",
            "time": now_text(),
            "last_poll_s": None if math.isnan(bridge.polled_s) else bridge.polled_s,
            "poll_s": bridge.polling_s / max(1, bridge.polls),
            "cap_w": account.cap_w,
            "power_w": 0.0 if math.isnan(account.energy.watts) else account.energy.watts,
            "energy_j": account.energy.joules,
            "energy_above_cap_j": account.energy.above_j,
            "jobs": {state: jobs[state] for state in ("waiting", "starting", "killing", "aside")},
            "nodes": dict(nodes),
            "failed_starts": bridge.failed_starts,
            "not_taken": dict(bridge.left),
        }

    def _write(self, status: Mapping[str, Any]) -> None:
        write_json(self.path, status)
        if self.metrics is not None:
            write_text(self.metrics, metrics_text(status))

    def notify(self, text: str) -> None:
        """Send a message to the service manager, where there is one (sd_notify)."""
        if self.manager:
            address = "\0" + self.manager[1:] if self.manager.startswith("@") else self.manager
            with suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as one:
                one.sendto(text.encode(), address)
