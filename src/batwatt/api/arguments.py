"""Checks of what callers give: anything wrong is an InputError with the argument's name."""

from __future__ import annotations

import operator
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from batwatt.checks import checked_whole, finite, shown
from batwatt.errors import InputError
from batwatt.inputs.series.signal_spec import SignalKind, SignalSpec, parse_signal
from batwatt.model.signal_integral import SignalIntegral
from batwatt.model.window import Window


def path_or(name: str, value: Any, *kinds: type) -> Any:
    """`value` if it is of one of the kinds, or the path that it names."""
    if isinstance(value, kinds):
        return value
    if isinstance(value, str | Path):
        return Path(value)
    wanted = " or ".join(["a path", *(kind.__name__ for kind in kinds)])
    raise InputError(name, f"must be {wanted}, got {shown(value)}", "see help(batwatt.simulate)")


def whole(name: str, value: Any, low: int, high: int | None = None) -> int:
    """`value` as an int in low..high; numpy's integers, too."""
    if not isinstance(value, bool):
        try:
            value = operator.index(value)
        except TypeError:
            pass
    return checked_whole(name, "it", value, low, high)


def real(name: str, value: Any, low: float = 0.0, *, above: bool = False) -> float:
    """`value` as a finite number >= low, or > low; a text is none."""
    try:
        found = finite(None if isinstance(value, str) else value)
    except ValueError:
        raise InputError(name, f"must be a number, got {shown(value)}", "correct it") from None
    if not (found > low if above else found >= low):
        raise InputError(name, f"must be {'>' if above else '>='} {low:g}, got {found:g}", "correct it")
    return found


def plain(value: Any) -> Any:
    """An integer or a number of numpy's as Python's."""
    return value.item() if hasattr(value, "item") and getattr(value, "ndim", 1) == 0 else value


def options_of(name: str, value: Any) -> dict[str, Any]:
    """A copy of a mapping with names as keys; None is none."""
    if value is None:
        return {}
    if not isinstance(value, Mapping) or not all(isinstance(key, str) for key in value):
        raise InputError(name, f"must be a dict with names as keys, got {shown(value)}", "give for instance {}")
    return {key: plain(one) for key, one in value.items()}


def signal_or(kind: SignalKind, value: Any) -> SignalSpec | SignalIntegral | None:
    """A carbon or price signal: what `read_signal` returns, or a file with keys, as in `nl.csv,days=30`."""
    if value is None or isinstance(value, SignalIntegral):
        return value
    if isinstance(value, str | Path):
        return parse_signal(kind, value)
    raise InputError(kind, f"must be a file or a signal, got {shown(value)}", "see help(batwatt.read_signal)")


def window_of(window: Any) -> Window | None:
    """A window of (begin, end) in s."""
    if window is None:
        return None
    try:
        begin_s, end_s = (float(bound) for bound in window)
        return Window(begin_s, end_s)
    except (TypeError, ValueError) as error:
        raise InputError("window", f"is not (begin, end) in s ({error})", "write for instance (0, 86400)") from None
