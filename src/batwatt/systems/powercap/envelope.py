"""The power-envelope injector: when a new step begins and what its cap is.

The envelope comes from a file (a `Series`; the injector asks to be woken at each step) or as external events of type
`power_envelope` that the engine forwards. Either way a scheduler learns a value only when its step begins. After the
last row the last value holds and steps of the last length go on, so that servers put to sleep can be woken again.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any

from batwatt.errors import InputError
from batwatt.model.series import DEFAULT_STEP_S, Series
from batwatt.units import REPORTED_S

EVENT_TYPE = "power_envelope"
EVENT_VALUE = "power_w"


class Injector(ABC):
    """Base: `cap_w` is the current cap (None before any is known); `over` once the last value holds for ever."""

    cap_w: float | None = None
    over = False

    @abstractmethod
    def due(self, now_s: float) -> bool:
        """Whether a new step begins now; then `cap_w` is its cap."""

    @abstractmethod
    def catch_up(self, now_s: float) -> None:
        """Let the steps go by that began before now, in which there was nothing to do."""

    @abstractmethod
    def next_call_s(self, now_s: float) -> float | None:
        """When to be woken for the next step; None if an external event will tell."""


class FileInjector(Injector):
    """Follows a series."""

    def __init__(self, series: Series) -> None:
        self.series = series
        self._next_s = 0.0

    def due(self, now_s: float) -> bool:
        """At the beginning of each step; the first is at 0."""
        if now_s < self._next_s - REPORTED_S:
            return False
        begin_s = max(now_s, self._next_s)
        slept_through = self.over and now_s > self._next_s + REPORTED_S
        self.cap_w = self.series.at(begin_s)
        self._next_s = self.series.step_after(begin_s)
        self.over = begin_s >= self.series.times_s[-1]
        return not slept_through

    def catch_up(self, now_s: float) -> None:
        """The next step is that which begins now or later."""
        self._next_s = max(self._next_s, self.series.step_after(now_s - REPORTED_S))

    def next_call_s(self, now_s: float) -> float | None:
        """The beginning of the next step."""
        return self._next_s


class EventInjector(Injector):
    """Follows external events; `take` hands them in."""

    def __init__(self) -> None:
        self._due = False
        self._last_s: float | None = None
        self._length_s = DEFAULT_STEP_S
        self._next_s: float | None = None
        self._own: Series | None = None

    def take(self, event: Mapping[str, Any], now_s: float) -> None:
        """A forwarded event; those of other types are ignored, a malformed one is an InputError."""
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

    def no_more(self, now_s: float) -> None:
        """No event will follow: steps of the last length go on from the last one."""
        self.over = True
        last_s = now_s if self._last_s is None else self._last_s
        self._own = Series((last_s - self._length_s, last_s), (0.0, 0.0))
        self._next_s = last_s + self._length_s

    def due(self, now_s: float) -> bool:
        """After an event, or at a step of one's own once there are no more."""
        if self._own is not None and self._next_s is not None and now_s >= self._next_s - REPORTED_S:
            slept_through = now_s > self._next_s + REPORTED_S
            self._next_s = self._own.step_after(now_s + REPORTED_S)
            return self.cap_w is not None and not slept_through
        due, self._due = self._due, False
        return due

    def catch_up(self, now_s: float) -> None:
        """The next step of one's own is that which begins now or later."""
        if self._own is not None and self._next_s is not None:
            self._next_s = max(self._next_s, self._own.step_after(now_s - REPORTED_S))

    def next_call_s(self, now_s: float) -> float | None:
        """The next step of one's own, once there are no more events."""
        return self._next_s if self.over and self.cap_w is not None else None
