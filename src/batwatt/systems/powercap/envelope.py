"""The power-envelope injector: the beginnings of steps and their caps.

The envelope comes from a file (a `Series`; the injector asks to be woken at each step) or as external events of type
`power_envelope` that the engine forwards. Either way a scheduler learns a value only when it begins to hold. A step
begins where the value changes, and every `DEFAULT_STEP_S` from 0 s on, however the rows are cut: servers put to sleep
can be woken again. `cap_w` is the current cap (None before any is known); `over` once the last value holds for ever.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from batwatt.errors import InputError
from batwatt.model.series import Series
from batwatt.protocol.events import EVENT_TYPE, EVENT_VALUE
from batwatt.scheduling.foresight import next_step_s
from batwatt.units import REPORTED_S


class FileInjector:
    """An injector of a series."""

    cap_w: float | None = None
    over = False

    def __init__(self, series: Series) -> None:
        self.series = series
        self._next_s = 0.0

    def due(self, now_s: float) -> bool:
        """Return whether a new step begins now; then `cap_w` is its cap. The first is at 0."""
        if now_s < self._next_s - REPORTED_S:
            return False
        begin_s = max(now_s, self._next_s)
        slept_through = self.over and now_s > self._next_s + REPORTED_S
        self.cap_w = self.series.at(begin_s)
        self._next_s = next_step_s(self.series, begin_s)
        self.over = begin_s >= self.series.settled_s
        return not slept_through

    def catch_up(self, now_s: float) -> None:
        """Skip the steps that began before now, in which there was nothing to do."""
        self._next_s = max(self._next_s, next_step_s(self.series, now_s - REPORTED_S))

    def next_call_s(self) -> float | None:
        """Return the time in s of the wake-up for the next step."""
        return self._next_s


class EventInjector:
    """An injector of external events, which `take` receives."""

    cap_w: float | None = None
    over = False

    def __init__(self) -> None:
        self._due = False
        self._next_s = 0.0

    def take(self, event: Mapping[str, Any], now_s: float) -> None:
        """Take a forwarded event; those of other types are ignored, a malformed one is an InputError."""
        if event.get("type") != EVENT_TYPE:
            return
        value = event.get(EVENT_VALUE)
        if isinstance(value, bool) or not isinstance(value, int | float) or not value >= 0.0:
            raise InputError(f"event {EVENT_TYPE} at {now_s:g} s", f"{EVENT_VALUE} is {value!r}", "give watts >= 0")
        self._due |= float(value) != self.cap_w
        self.cap_w = float(value)

    def no_more(self) -> None:
        """Note that no event will follow."""
        self.over = True

    def due(self, now_s: float) -> bool:
        """Return whether a new step begins now: after an event that changes the cap, or as `FileInjector`."""
        due, self._due = self._due, False
        if self.cap_w is None or (not due and now_s < self._next_s - REPORTED_S):
            return False
        slept_through = not due and self.over and now_s > self._next_s + REPORTED_S
        self._next_s = next_step_s(None, max(now_s, self._next_s) if not due else now_s)
        return not slept_through

    def catch_up(self, now_s: float) -> None:
        """Skip steps as `FileInjector`."""
        self._next_s = max(self._next_s, next_step_s(None, now_s - REPORTED_S))

    def next_call_s(self) -> float | None:
        """Return the time in s of the wake-up for the next step; None before the first event."""
        return None if self.cap_w is None else self._next_s


Injector = FileInjector | EventInjector
