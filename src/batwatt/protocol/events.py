"""Batsim's external events (one JSON object per line), and envelopes as such events."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from batwatt.checks import load_json, object_in, shown
from batwatt.errors import InputError, UnknownNameError
from batwatt.model.hostset import from_text
from batwatt.model.timeline import Timeline
from batwatt.protocol.numbers import batsim_float, json_number, wire_floats
from batwatt.units import LATEST_S

EVENT_TYPE, EVENT_VALUE = "power_envelope", "power_w"
"""Type of the events that report an envelope, and their field in W."""

_HOST_EVENTS = ("machine_available", "machine_unavailable")
_RANK = {"machine_available": 0, "machine_unavailable": 1, "generic": 2}
_EXAMPLE = 'write {"timestamp": 5, "type": "machine_unavailable", "resources": "0-1 3"}'


@dataclass(frozen=True, slots=True)
class TimedEvent:
    """An event at `time_s` that does not depend on the scheduler, such as hosts that become unavailable.

    `resources` is the mask of the affected hosts (None for generic events); `raw` the JSON as Batsim would send it.
    """

    time_s: float
    kind: str
    resources: int | None
    raw: Mapping[str, Any]


def parse_events(
    text: str, path: object, forward_unknown: bool = True, nb_hosts: int | None = None
) -> tuple[TimedEvent, ...]:
    """Parse the text of an events file and return its events in order of time; `path` is the name of the file.

    Events of other types than machine_available and machine_unavailable are generic, and an error unless
    `forward_unknown`. With `nb_hosts`, resources beyond the platform are an error. Raises InputError with the line.
    """
    events: list[TimedEvent] = []
    for number, line in enumerate(text.split("\n"), start=1):
        if line.strip():
            place = f"{path}: line {number}"
            events.append(_event(load_json(line, place, parse_float=batsim_float), place, forward_unknown, nb_hosts))
    return tuple(sorted(events, key=lambda event: (event.time_s, _RANK[event.kind])))


def envelope_events(series: Timeline) -> Iterator[str]:
    """Yield the lines of an events file that report an envelope in W to a scheduler, as events unknown to Batsim.

    The first is at 0 s with the value at 0 s, also if the envelope begins earlier or later.
    """
    if series.repeats:
        raise InputError(series.source, "repeats for ever, and events end", "write its rows: batwatt generate series")
    rows = {0.0: series.at(0.0)}
    rows.update((t, w) for t, w in zip(series.times_s, series.values, strict=True) if t > 0.0)
    for time_s, power_w in rows.items():
        timestamp = int(time_s) if time_s.is_integer() else time_s
        yield json.dumps({"timestamp": timestamp, "type": EVENT_TYPE, EVENT_VALUE: float(power_w)})


def reported_envelope(events: Iterable[TimedEvent], where: object) -> Timeline | None:
    """Return the envelope that events report; None if no event has a power. Raises InputError."""
    rows: dict[float, float] = {}
    for event in events:
        if event.raw.get("type") != EVENT_TYPE:
            continue
        value = event.raw.get(EVENT_VALUE)
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0.0 <= value < math.inf:
            problem = f"{EVENT_TYPE} at {event.time_s:g} s: {EVENT_VALUE!r} is {value!r}"
            raise InputError(where, problem, "give watts >= 0, as `batwatt convert --to events` does")
        rows[event.time_s] = float(value)
    return Timeline(tuple(rows), tuple(rows.values()), "power_w") if rows else None


def batsim5_events(events: Iterable[TimedEvent]) -> Iterator[str]:
    """Yield the lines of an events file for Batsim 5: `generic` events, whose data are the events of Batsim 4 (JSON).

    Events that are already generic with a text as data are unchanged.
    """
    for event in events:
        raw = event.raw
        if not (raw["type"] == "generic" and isinstance(raw.get("data"), str)):
            raw = {"timestamp": raw["timestamp"], "type": "generic", "data": json.dumps(raw)}
        yield json.dumps(raw)


def batsim4_events(events: Iterable[TimedEvent]) -> Iterator[str]:
    """Yield the lines of an events file for Batsim 4: events in the data of `generic` events replace these."""
    for event in events:
        yield json.dumps({"timestamp": event.raw["timestamp"], **(_data_of(event) or event.raw)})


def refuse_batsim5_events(events: Iterable[TimedEvent], path: object) -> None:
    """Raise InputError if the data of a `generic` event are an event, which Batsim 4 ignores."""
    for event in events:
        data = _data_of(event)
        if data is not None:
            problem = f"the event at {event.time_s:g} s is for Batsim 5: its data are a {shown(data['type'])} event"
            raise InputError(path, problem, "turn the file into one for Batsim 4: batwatt convert FILE --to batsim4")


def _data_of(event: TimedEvent) -> dict[str, Any] | None:
    """Return the event in the data of a `generic` event for Batsim 5, or None."""
    text = event.raw.get("data")
    data = object_in(text) if event.raw["type"] == "generic" and isinstance(text, str) else None
    return dict(data) if data is not None and isinstance(data.get("type"), str) else None


def _event(raw: Any, place: str, forward_unknown: bool, nb_hosts: int | None) -> TimedEvent:
    if not isinstance(raw, dict):
        raise InputError(place, "an event must be a JSON object", _EXAMPLE)
    time_s = json_number(raw.get("timestamp"))
    if time_s is None:
        problem = f"'timestamp' must be a number of seconds >= 0, got {shown(raw.get('timestamp'))}"
        raise InputError(place, problem, _EXAMPLE)
    if time_s > LATEST_S:
        problem = f"'timestamp' is {time_s:.15g} s, more than {LATEST_S:.0e} s"
        raise InputError(place, problem, "give seconds since the beginning of the simulation")
    kind = raw.get("type")
    if not (isinstance(kind, str) and kind):
        raise InputError(place, f"'type' must be a text, got {shown(str(kind))}", _EXAMPLE)
    try:
        sent = wire_floats(raw)
    except RecursionError as error:
        raise InputError(place, str(error), "flatten the event") from None
    if kind in _HOST_EVENTS:
        return TimedEvent(time_s, kind, _resources(raw.get("resources"), place, nb_hosts), sent)
    if not forward_unknown:
        raise UnknownNameError(place, "event type", kind, _HOST_EVENTS, "Pass it on with `--forward-unknown-events`.")
    return TimedEvent(time_s, "generic", None, sent)


def _resources(value: Any, place: str, nb_hosts: int | None) -> int:
    if not isinstance(value, str):
        raise InputError(place, f"'resources' must be a text such as '0-1 3', got {shown(value)}", _EXAMPLE)
    try:
        mask = from_text(value)
    except ValueError as error:
        raise InputError(place, f"'resources': {error}", _EXAMPLE) from None
    if nb_hosts is not None and mask >> nb_hosts:
        problem = f"host {mask.bit_length() - 1} is not on the platform, whose hosts are 0..{nb_hosts - 1}"
        raise InputError(place, problem, "correct 'resources'")
    return mask
