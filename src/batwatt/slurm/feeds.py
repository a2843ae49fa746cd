"""The envelope of a session while it runs, from a file, and measured watts, from a command."""

from __future__ import annotations

import logging
import math
import shlex
import subprocess
from dataclasses import dataclass, field
from pathlib import Path

from batwatt.errors import BatwattError, InputError
from batwatt.inputs.series.on_clock import read_on_clock
from batwatt.inputs.series.signal_file import SignalFile
from batwatt.model.clock import Clock
from batwatt.model.signal import Signal

_log = logging.getLogger(__name__)
ANSWER_S = 5.0
"""Longest time in s of an answer of a command."""
PROBLEMS = (OSError, ValueError, RecursionError, BatwattError)
"""Errors of a source that has no value."""


@dataclass
class Feed:
    """An envelope in W from the file `source`, by date or by s since the beginning, read again when it changes.

    `expiry_s` after the last value ends the `fallback` holds (NaN: none, and the last value goes on). Times are those
    of the session, in s.
    """

    source: str
    begin_s: float
    expiry_s: float = math.inf
    fallback: float = math.nan
    _signal: Signal | None = None
    _stamp: object = None
    _warned: set[str] = field(default_factory=set)

    def check(self) -> None:
        """Read the file for the first time, before any value. Raises InputError."""
        try:
            self._read()
        except PROBLEMS as error:
            raise InputError(self.source, str(error), "correct it") from None

    def value(self, now_s: float) -> float:
        """Return the value at a time of the session; the last one while the file cannot be read."""
        try:
            self._read()
        except PROBLEMS as error:
            self._warn(str(error))
        signal = self._signal
        assert signal is not None
        if now_s > signal.end_s + self.expiry_s and not math.isnan(self.fallback):
            self._warn(f"no value after {signal.end_s:g} s: {self.fallback:g} holds")
            return self.fallback
        return float(signal.series.at(now_s))

    def _warn(self, text: str) -> None:
        if text not in self._warned:
            self._warned.add(text)
            _log.warning("%s: %s", self.source, text)

    def _read(self) -> None:
        path = Path(self.source)
        stat = path.stat()
        stamp = (stat.st_mtime_ns, stat.st_size, stat.st_ino)
        if stamp != self._stamp:
            self._stamp = stamp
            self._signal = read_on_clock(SignalFile(path, wanted="power").on(Clock(self.begin_s)))
            self._warned.clear()


@dataclass
class PowerMeter:
    """Measured watts of all nodes, which a command prints; no command, no measured watts."""

    command: str = ""
    _warned: bool = False

    def watts(self) -> float | None:
        """Return the watts now; None if nothing can be read, once with a warning."""
        if not self.command:
            return None
        try:
            words = shlex.split(self.command)
            process = subprocess.run(words, stdin=subprocess.DEVNULL, capture_output=True, timeout=ANSWER_S, check=True)
            watts = float(process.stdout.split()[0])
            if not 0.0 <= watts < math.inf:
                raise ValueError(f"{watts} is no power in W")
        except (OSError, ValueError, IndexError, subprocess.SubprocessError) as error:
            if not self._warned:
                _log.warning("measured watts: %s; the model of the platform counts", error)
            self._warned = True
            return None
        self._warned = False
        return watts
