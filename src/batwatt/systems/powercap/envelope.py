"""The power-envelope injector: the beginnings of steps and their caps.

The envelope comes from a file (a `Series`; the injector asks to be woken at each step) or as external events of type
`power_envelope` that the engine forwards. Either way a scheduler learns a value only when its step begins. After the
last row the last value holds and steps of the last length go on, so that servers put to sleep can be woken again.
`cap_w` is the current cap (None before any is known); `over` once the last value holds for ever.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from batwatt.errors import InputError
from batwatt.model.series import DEFAULT_STEP_S, Series
from batwatt.protocol.events import EVENT_TYPE, EVENT_VALUE
from batwatt.units import REPORTED_S


class FileInjector:
    """An injector of a series from `next_s` on."""

    cap_w: float | None = None
    over = False

    def __init__(self, series: Series, next_s: float = 0.0) -> None:
        self.series = series
        self._next_s = next_s

    def due(self, now_s: float) -> bool:
        """Return whether a new step begins now; then `cap_w` is its cap. The first is at 0."""
        if now_s < self._next_s - REPORTED_S:
            return False
        begin_s = max(now_s, self._next_s)
        slept_through = self.over and now_s > self._next_s + REPORTED_S
        self.cap_w = self.series.at(begin_s)
        self._next_s = self.series.step_after(begin_s)
        self.over = begin_s >= self.series.settled_s
        return not slept_through

    def catch_up(self, now_s: float) -> None:
        """Skip the steps that began before now, in which there was nothing to do."""
        self._next_s = max(self._next_s, self.series.step_after(now_s - REPORTED_S))

    def next_call_s(self) -> float | None:
        """Return the time in s of the wake-up for the next step."""
        return self._next_s


class EventInjector:
    """An injector of external events, which `take` receives; after the last one, of a series of the last value."""

    cap_w: float | None = None
    over = False

    def __init__(self) -> None:
        self._due = False
        self._last_s: float | None = None
        self._length_s = DEFAULT_STEP_S
        self._after: FileInjector | None = None

    def take(self, event: Mapping[str, Any], now_s: float) -> None:
        """Take a forwarded event; those of other types are ignored, a malformed one is an InputError."""
        if event.get("type") != EVENT_TYPE:
            return
        value = event.get(EVENT_VALUE)
        if isinstance(value, bool) or not isinstance(value, int | float) or not value >= 0.0:
            raise InputError(f"event {EVENT_TYPE} at {now_s:g} s", f"{EVENT_VALUE} is {value!r}", "give watts >= 0")
        self.cap_w = float(value)
        self._due = True
        if self._last_s is not None and now_s > self._last_s:
            self._length_s = now_s - self._last_s
        self._last_s = now_s

    def no_more(self) -> None:
        """Note that no event will follow: steps of the last length go on from the last one."""
        self.over = True
        if self.cap_w is not None and self._last_s is not None:
            last = Series((self._last_s - self._length_s, self._last_s), (self.cap_w, self.cap_w))
            self._after = FileInjector(last, self._last_s + self._length_s)
            self._after.over = True

    def due(self, now_s: float) -> bool:
        """Return whether a new step begins now: after an event, or as `FileInjector` once there are no more."""
        if self._after is not None and self._after.due(now_s):
            return True
        due, self._due = self._due, False
        return due

    def catch_up(self, now_s: float) -> None:
        """Skip steps as `FileInjector`, once there are no more events."""
        if self._after is not None:
            self._after.catch_up(now_s)

    def next_call_s(self) -> float | None:
        """Return the time in s of the wake-up for the next step; None if an external event will tell."""
        return self._after.next_call_s() if self._after is not None else None


Injector = FileInjector | EventInjector
