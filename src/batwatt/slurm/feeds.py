"""Signals while they happen: an envelope in W, a carbon intensity, a price, from a file or an HTTP address."""

from __future__ import annotations

import http.client
import json
import logging
import math
import shlex
import subprocess
import tempfile
import urllib.request
from dataclasses import dataclass, field
from pathlib import Path

from batwatt.errors import BatwattError, InputError
from batwatt.inputs.series.on_clock import read_on_clock
from batwatt.inputs.series.signal_file import SignalFile, Wanted
from batwatt.model.clock import Clock
from batwatt.model.series import Series
from batwatt.model.signal import Signal
from batwatt.protocol.events import EVENT_TYPE, EVENT_VALUE

_log = logging.getLogger(__name__)
ANSWER_S = 5.0
"""Longest time in s of an answer of an HTTP address or a command."""
PROBLEMS = (OSError, ValueError, RecursionError, http.client.HTTPException, BatwattError)
"""Errors of a source that has no value."""
ENOUGH = 10_000_000
"""Most bytes of an answer."""
KINDS: dict[str, tuple[Wanted, str]] = {
    EVENT_TYPE: ("power", EVENT_VALUE),
    "carbon_intensity": ("carbon", "carbon_g_per_kwh"),
    "electricity_price": ("price", "price_per_kwh"),
}
"""Type of the NOTIFY for the scheduler -> the signal that is read, and the field with the value."""


@dataclass
class Feed:
    """One signal. `source`: a file, read again when it changes, or an address, polled every `period_s`.

    A file is a series as everywhere, by date or by s since the beginning. An address answers with a number, with an
    object that has one under "value", or with the text of such a file. `expiry_s` after the last value ends the
    `fallback` holds (NaN: none, and the last value goes on). Times are those of the session, in s.
    """

    kind: str
    source: str
    begin_s: float
    expiry_s: float = math.inf
    fallback: float = math.nan
    period_s: float = 60.0
    _signal: Signal | None = None
    _fresh_s: float = -math.inf
    _stamp: object = None
    _next_s: float = -math.inf
    _warned: set[str] = field(default_factory=set)

    @property
    def remote(self) -> bool:
        """True if the source is an address."""
        return self.source.startswith(("http://", "https://"))

    def check(self, now_s: float) -> None:
        """Read the source for the first time. Raises InputError."""
        try:
            self._read(now_s)
        except PROBLEMS as error:
            if not self.remote or math.isnan(self.fallback):
                raise InputError(self.source, str(error), "correct it, or give an address a --fallback") from None
            self._warn(str(error))

    def value(self, now_s: float) -> float | None:
        """Return the value at a time of the session; None without one."""
        if now_s >= self._next_s:
            try:
                self._read(now_s)
            except PROBLEMS as error:
                self._next_s = now_s + self.period_s
                self._warn(str(error))
        signal = self._signal
        if signal is None:
            return None if math.isnan(self.fallback) else self.fallback
        # an answer that is one number says nothing of later
        ends_s = self._fresh_s if self.remote and len(signal.series.values) == 1 else signal.end_s
        if now_s > ends_s + self.expiry_s and not math.isnan(self.fallback):
            self._warn(f"no value after {ends_s:g} s: {self.fallback:g} holds")
            return self.fallback
        return float(signal.series.at(now_s))

    def _warn(self, text: str) -> None:
        if text not in self._warned:
            self._warned.add(text)
            _log.warning("%s: %s", self.source, text)

    def _read(self, now_s: float) -> None:
        if self.remote:
            self._next_s = now_s + self.period_s
            self._signal, self._fresh_s = self._answer(now_s), now_s
        else:
            stat = Path(self.source).stat()
            stamp = (stat.st_mtime_ns, stat.st_size, stat.st_ino)
            if stamp == self._stamp:
                return
            self._stamp = stamp
            self._signal = self._series(Path(self.source))
        self._warned.clear()

    def _series(self, path: Path) -> Signal:
        wanted = KINDS[self.kind][0]
        return read_on_clock(SignalFile(path, wanted=wanted).on(Clock(self.begin_s)))

    def _answer(self, now_s: float) -> Signal:
        with urllib.request.urlopen(self.source, timeout=ANSWER_S) as answer:
            text = answer.read(ENOUGH).decode("utf-8", "replace").strip()
        number = _number(text)
        if number is not None:
            return Signal(Series((0.0,), (number,)), max(now_s, 0.0) + 1.0)
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / ("answer.json" if text.startswith(("{", "[")) else "answer.csv")
            path.write_text(text, encoding="utf-8")
            return self._series(path)


def _number(text: str) -> float | None:
    """Return the number that an answer is, or has as "value"; None if it is something else."""
    try:
        value = json.loads(text)
    except ValueError:
        return None
    if isinstance(value, dict):
        value = value.get("value")
    good = isinstance(value, int | float) and not isinstance(value, bool) and 0.0 <= value < math.inf
    return float(value) if good else None


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
