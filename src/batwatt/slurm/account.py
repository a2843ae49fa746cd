"""Power of a session while it runs: the envelope in a file, watts of a command, and the account of both."""

from __future__ import annotations

import csv
import logging
import math
import os
import shlex
import signal
import subprocess
from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TextIO

import numpy as np

from batwatt.errors import BatwattError, InputError
from batwatt.files import open_own
from batwatt.inputs.spec import parse_series
from batwatt.model.platform import Host, Platform
from batwatt.model.timeline import Timeline
from batwatt.results.run_files import file_of, without_formulas
from batwatt.slurm.snapshot import SlurmNode, Snapshot

_log = logging.getLogger(__name__)
ANSWER_S = 10.0
"""Longest time in s of an answer of a meter."""
PROMPT_S = 0.5
"""Longest time in s for which a poll waits for a meter."""
PROBLEMS = (OSError, ValueError, RecursionError, BatwattError)
"""Errors of a source that has no value."""


class Notices(set[str]):
    """Kinds of warnings that came: each is logged once, until they are cleared."""

    def warn(self, text: str, kind: str = "") -> None:
        """Log a text; of several texts of a kind the first."""
        if (kind or text) not in self:
            self.add(kind or text)
            _log.warning("%s", text)


@dataclass
class Feed:
    """An envelope in W from the file `source`, by date or by s since the beginning, read again when it changes.

    `expiry_s` after the last value ends the `fallback` holds (NaN: none, and the last value goes on). Times are those
    of the session, in s. A new version of the file counts once two reads in a row agree and it ends with a newline
    (JSON has its last bracket). A value below `floor_w` counts as `floor_w`. A version whose value now is more than the
    share `fall` below the cap in effect is not followed: most likely a digit is missing.
    """

    source: str
    begin_s: float = 0.0
    expiry_s: float = math.inf
    fallback: float = math.nan
    floor_w: float = 0.0
    fall: float = 1.0
    signal: Timeline = field(init=False)
    """The series of the version in effect."""
    _text: bytes = b""
    """The version in effect."""
    _next: bytes = b""
    """The version of the last read."""
    _notices: Notices = field(default_factory=Notices)

    def begin(self, begin_s: float, platform: Platform) -> None:
        """Follow the file from a date in s since 1970 on; the floor is all hosts asleep, or idle. Raises InputError."""
        self.begin_s = begin_s
        states = [(host.pstates[state] for state in (host.compute[0], *host.sleep_of)) for host in platform.hosts]
        self.floor_w = sum(min(state.power_w(0.0) for state in each) for each in states)
        self.check()

    def check(self) -> None:
        """Read the file for the first time, before any value. Raises InputError."""
        try:
            self._next = Path(self.source).read_bytes()
            self._adopt(math.nan)
        except PROBLEMS as error:
            raise InputError(self.source, str(error), "correct it") from None

    def value(self, now_s: float) -> float:
        """Return the value at a time of the session; the last one while the file cannot be read."""
        try:
            text = Path(self.source).read_bytes()
            again, self._next = text == self._next, text
            if again and text != self._text:
                self._adopt(now_s)
        except PROBLEMS as error:
            self._notices.warn(f"{self.source}: {error}")
        return self._at(self.signal, now_s)

    def next_s(self, now_s: float) -> float:
        """Return the time of the next change of the value, as the file is now; infinite without one."""
        offset_s = self._offset_s(self.signal)
        return self.signal.next_change(now_s + offset_s) - offset_s

    def _offset_s(self, signal: Timeline) -> float:
        """Return the time of a series at 0 s of the session."""
        return 0.0 if signal.date_s is None else self.begin_s - signal.date_s

    def _at(self, signal: Timeline, now_s: float) -> float:
        time_s = now_s + self._offset_s(signal)
        watts = float(signal.at(time_s))
        if time_s > signal.end_s and not signal.repeats:
            expired = time_s > signal.end_s + self.expiry_s and not math.isnan(self.fallback)
            watts = self.fallback if expired else watts
            if signal.date_s is not None or expired:
                late = f"its rows end {time_s - signal.end_s:.0f} s before now: {watts:g} W hold"
                self._notices.warn(f"{self.source}: {late}", f"end {expired}")
        if watts < self.floor_w:
            low = f"{watts:g} W is below the {self.floor_w:g} W of nodes that sleep, which hold"
            self._notices.warn(f"{self.source}: {low}")
        return max(watts, self.floor_w)

    def _adopt(self, now_s: float) -> None:
        """Follow the version of the last read, at a time of the session (NaN: it is the first one)."""
        if not self._next.endswith(b"\n") and not self.source.endswith(".json"):
            raise ValueError("does not end with a newline, so it may be half written")
        signal = parse_series("power", Path(self.source)).timeline()
        if not math.isnan(now_s):
            before_w, watts = self._at(self.signal, now_s), self._at(signal, now_s)
            if watts < before_w * (1.0 - self.fall):
                hint = f"to allow it give --allow-fall {math.ceil(100.0 * (1.0 - watts / before_w))}"
                raise ValueError(f"falls from {before_w:g} to {watts:g} W at once, which is not followed; {hint}")
        self.signal, self._text = signal, self._next
        self._notices.clear()


@dataclass
class PowerMeter:
    """Measured watts of all nodes, which a command prints; no command, no measured watts."""

    command: str = ""
    _notices: Notices = field(default_factory=Notices)
    _pool: ThreadPoolExecutor = field(default_factory=lambda: ThreadPoolExecutor(1, "meter"))
    _reading: Future[float] | None = None

    def watts(self) -> float | None:
        """Return the watts at the begin of the command, at a later call if it takes long; None without an answer."""
        if not self.command:
            return None
        reading = self._reading = self._reading or self._pool.submit(self._read)
        if not wait([reading], PROMPT_S).done:
            return None
        self._reading = None
        try:
            watts = reading.result()
        except (OSError, ValueError, IndexError, subprocess.SubprocessError) as error:
            self._notices.warn(f"measured watts: {error}; the model of the platform counts", "silent")
            return None
        self._notices.clear()
        return watts

    def _read(self) -> float:
        process = subprocess.Popen(
            shlex.split(self.command), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
            start_new_session=True,
        )  # fmt: skip
        with process:
            try:
                output, _ = process.communicate(timeout=ANSWER_S)
            except subprocess.TimeoutExpired:
                # also what a script has started
                os.killpg(process.pid, signal.SIGKILL)
                raise
        if process.returncode:
            raise ValueError(f"{self.command}: exit code {process.returncode}")
        watts = float(output.split()[0])
        if not 0.0 <= watts < math.inf:
            raise ValueError(f"{watts} is no power in W")
        return watts


@dataclass
class Energy:
    """Integrals over time of a power in W that holds until the next sample."""

    joules: float = 0.0
    above_j: float = 0.0
    worst_w: float = 0.0
    watts: float = math.nan

    def sample(self, lasted_s: float, cap_w: float | None, watts: float) -> None:
        """Count the last sample for the time that it lasted, and take the next."""
        if not math.isnan(self.watts):
            above_w = 0.0 if cap_w is None else max(0.0, self.watts - cap_w)
            self.joules += self.watts * lasted_s
            self.above_j += above_w * lasted_s
            self.worst_w = max(self.worst_w, above_w)
        self.watts = watts


def host_w(host: Host, node: SlurmNode, pstate: int) -> float:
    """Return the power of a host in W by the model of the platform; a node with jobs draws its full power."""
    sleep = host.sleep_of.get(pstate) or (host.sleeps[0] if host.sleeps else None)
    if node.off:
        return host.pstates[sleep.sleep].power_w(0.0) if sleep else 0.0
    if node.switching_on and sleep:
        return host.pstates[sleep.switch_on].full_w
    if node.switching_off and sleep and not node.busy:
        return host.pstates[sleep.switch_off].full_w
    if node.broken and not node.busy and not node.up:
        return 0.0
    state = host.pstates[pstate if pstate in host.compute else host.compute[0]]
    return state.power_w(1.0 if node.busy else 0.0)


def watts_of(platform: Platform, snapshot: Snapshot, pstates: Sequence[int]) -> float:
    """Return the power of all hosts in W."""
    pairs = zip(platform.hosts, pstates, strict=True)
    return sum(host_w(host, snapshot.nodes[host.name], pstate) for host, pstate in pairs)


@dataclass
class _AccountRow:
    user: str
    nodes: int
    submit_s: float
    start_s: float = math.nan
    end_s: float = math.nan
    state: str = ""
    slurm_start_s: float = math.nan
    slurm_end_s: float = math.nan
    slurm_state: str = ""


@dataclass
class Account:
    """The account of a session. With `shadow`, Slurm's own power and starts are counted apart.

    Files: PREFIX_starts.csv, a row as soon as a job is over, and PREFIX_power.csv; times are in s of the session.
    """

    platform: Platform
    prefix: Path
    shadow: bool
    energy: Energy = field(default_factory=Energy)
    slurm: Energy = field(default_factory=Energy)
    last_s: float = math.nan
    cap_w: float | None = None
    capped: bool = False
    _rows: dict[str, _AccountRow] = field(default_factory=dict)
    _over: set[str] = field(default_factory=set)
    waits: dict[str, list[float]] = field(default_factory=lambda: {"": [], "slurm_": []})
    """Wait of each job that has started, in s, by the scheduler and by Slurm."""
    _files: dict[str, TextIO] = field(default_factory=dict)
    _power: tuple[object, ...] = ()

    def open(self, totals: Mapping[str, Any] | None = None, *, resumed: bool) -> None:
        """Open the files; those of a session that is resumed go on, with its last totals. Raises InputError."""
        power = ("time_s", "cap_w", "watts", "slurm_watts")
        for stem, names in (("starts", ("job", *_AccountRow.__dataclass_fields__)), ("power", power)):
            path = file_of(self.prefix, stem)
            self._files[stem] = open_own(path, "a" if resumed else "w")
            if not path.stat().st_size:
                self._write(stem, names)
        if resumed:
            self._resume(totals or {"sums": {}, "rows": {}})

    def _write(self, stem: str, row: Iterable[object]) -> None:
        cells = ["" if isinstance(cell, float) and math.isnan(cell) else cell for cell in row]
        texts = [f"{cell:.3f}" if isinstance(cell, float) else str(cell) for cell in cells]
        csv.writer(self._files[stem], lineterminator="\n").writerow(without_formulas(texts))
        self._files[stem].flush()

    def power(self, now_s: float, watts: float | None, slurm_watts: float | None, cap_w: float | None) -> None:
        """Take a sample of the power in W; None: the last one goes on."""
        watts = self.energy.watts if watts is None else watts
        slurm_watts = self.slurm.watts if slurm_watts is None else slurm_watts
        lasted_s = 0.0 if math.isnan(self.last_s) else max(0.0, now_s - self.last_s)
        self.energy.sample(lasted_s, self.cap_w, watts)
        self.slurm.sample(lasted_s, self.cap_w, slurm_watts)
        self.last_s, self.cap_w = now_s, cap_w
        self.capped |= cap_w is not None
        power = (cap_w if cap_w is not None else math.nan, watts, slurm_watts if self.shadow else math.nan)
        if repr(power) != repr(self._power):
            self._power = power
            self._write("power", (now_s, *power))

    def jobs(
        self, snapshot: Snapshot, ours: Container[str], real: Snapshot | None, time_of: Callable[[float], float]
    ) -> None:
        """Note starts and ends of the jobs, `ours` by number; `time_of` turns a date into a time of the session."""
        for number, job in snapshot.jobs.items():
            if not job.handed or number in self._over:
                continue
            row = self._rows.get(number)
            if row is None:
                if not job.waiting and number not in ours:
                    self._over.add(number)
                    continue
                row = self._rows[number] = _AccountRow(job.user, job.nodes, time_of(job.submit_s))
            theirs = real.jobs.get(number) if real is not None else None
            for side, seen in (("", job), ("slurm_", theirs)):
                if seen is not None and seen.hosts and math.isnan(getattr(row, f"{side}start_s")):
                    setattr(row, f"{side}start_s", time_of(seen.start_s))
                    self.waits[side].append(time_of(seen.start_s) - row.submit_s)
                if seen is not None and seen.ended:
                    setattr(row, f"{side}end_s", time_of(seen.end_s))
                    setattr(row, f"{side}state", seen.state)
            if row.state and (not self.shadow or row.slurm_state):
                self._finish(number)
        # Slurm forgets jobs that are over
        self._over &= set(snapshot.jobs)

    def _finish(self, number: str) -> None:
        row = self._rows.pop(number)
        self._over.add(number)
        self._write("starts", (number, *vars(row).values()))

    def totals(self) -> dict[str, Any]:
        """Return the totals with which a session is resumed: sums, and the rows of jobs that have begun."""
        sums = {name: value for name, value in vars(self.energy).items() if name != "watts"}
        begun = {number: vars(row) for number, row in self._rows.items() if not math.isnan(row.start_s)}
        # JSON has no NaN, which is no number and differs from itself
        rows = {number: {name: cell for name, cell in row.items() if cell == cell} for number, row in begun.items()}
        return {"sums": sums, "rows": rows}

    def _resume(self, totals: Mapping[str, Any]) -> None:
        """Go on with the last totals and the file of the process before; energy in between is not counted."""
        self.energy = Energy(**totals["sums"])
        with file_of(self.prefix, "starts").open(encoding="utf-8", newline="") as file:
            over = {row["job"]: row for row in csv.DictReader(file) if row["state"]}
        self._over = set(over)
        self._rows = {number: _AccountRow(**row) for number, row in totals["rows"].items() if number not in over}
        begun = [(float(row["submit_s"]), float(row["start_s"])) for row in over.values() if row["start_s"]]
        begun += [(row.submit_s, row.start_s) for row in self._rows.values()]
        self.waits[""] = [start_s - submit_s for submit_s, start_s in begun]

    def close(self) -> None:
        """Write the rows of jobs that are not over, and close the files."""
        for number in list(self._rows):
            self._finish(number)
        for file in self._files.values():
            file.close()
        self._files.clear()

    def records(self) -> list[dict[str, float | str | None]]:
        """Return a record of figures in SI units for the scheduler, before it with `shadow` one for Slurm."""
        sides = [("Slurm", self.slurm, self.waits["slurm_"])] if self.shadow else []
        sides.append(("scheduler", self.energy, self.waits[""]))
        return [
            {
                "by": name,
                "jobs_started": len(waits),
                "median_wait_s": float(np.percentile(waits, 50)) if waits else None,
                "p95_wait_s": float(np.percentile(waits, 95)) if waits else None,
                "energy_j": energy.joules,
                "energy_above_cap_j": energy.above_j if self.capped else None,
                "most_above_cap_w": energy.worst_w if self.capped else None,
            }
            for name, energy, waits in sides
        ]
