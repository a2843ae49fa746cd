"""Reading measurements of jobs: power samples as CSV, and the event log that says when each phase began."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
import pandas as pd

from batwatt.checks import finite
from batwatt.errors import InputError
from batwatt.inputs.series.series_csv import TIME
from batwatt.inputs.series.signal_csv import table_of, times_of
from batwatt.inputs.series.signal_file import SignalFile
from batwatt.model.phases import Array

END, SUSPEND, ABORT = "end", "suspend", "abort"
ENDS = (END, SUSPEND, ABORT)
"""Events after which the job draws nothing until the next event: it has finished, was suspended with all of its work
kept, or was killed and lost what it did after its last checkpoint."""
EVENTS_SUFFIX = "-events.csv"
"""`run.csv` has its event log next to it in `run-events.csv`."""

_TIMES = (TIME, "time", "timestamp", "datetime", "date")
_WATTS = ("power_w", "watts", "power", "w")
_EVENTS = ("event", "name", "phase")


@dataclass(frozen=True, slots=True)
class MeasuredPhase:
    """A phase as it was measured."""

    name: str
    begin_s: float
    end_s: float


@dataclass(frozen=True, slots=True)
class Part:
    """What a run did between two stops: its phases in order, and which of `ENDS` ended it."""

    spans: tuple[MeasuredPhase, ...]
    end: str

    @property
    def names(self) -> tuple[str, ...]:
        """The names of its phases."""
        return tuple(span.name for span in self.spans)


@dataclass(frozen=True)
class MeasuredRun:
    """Samples (`times_s` increase, `watts` >= 0) and marks (time, event), in order; the last mark is an end.

    Each mark begins a phase, which lasts until the next mark, or stops the job (`ENDS`). Raises InputError.
    """

    times_s: Array
    watts: Array
    marks: tuple[tuple[float, str], ...]
    source: str = "<memory>"

    def __post_init__(self) -> None:
        _checked_samples(self.times_s, self.watts, self.source)
        for (before_s, name), (time_s, other) in zip(self.marks, self.marks[1:], strict=False):
            if not time_s > before_s:
                problem = f"event {other!r} at {time_s:g} s comes after {name!r} at {before_s:g} s"
                raise InputError(self.source, problem, "sort the events by time")
        first, last = self.times_s[0], self.times_s[-1]
        for time_s, name in self.marks:
            if not first <= time_s <= last:
                problem = f"event {name!r} at {time_s:g} s is outside the samples, {first:g} to {last:g} s"
                raise InputError(self.source, problem, "give both in the same clock and the same unit")
        if not self.marks or self.marks[0][1] in ENDS:
            raise InputError(self.source, "has no event that begins a phase", "log when each phase begins")
        if self.marks[-1][1] not in ENDS:
            problem = f"the last event is {self.marks[-1][1]!r}, and nothing says when that phase ended"
            raise InputError(self.source, problem, f"add an event {END!r} ({', '.join(ENDS[1:])} if it was stopped)")
        step_s = float(np.median(np.diff(self.times_s)))
        for span in (span for part in self.parts for span in part.spans):
            inside = self.times_s[self.within(span.begin_s, span.end_s)]
            if span.end_s - span.begin_s > 2.0 * step_s and not len(inside):
                problem = f"no sample in phase {span.name!r}, {span.begin_s:g} to {span.end_s:g} s"
                raise InputError(self.source, problem, f"samples come every {step_s:g} s, do not leave some out")

    @cached_property
    def parts(self) -> tuple[Part, ...]:
        """What it did between its stops."""
        found: list[Part] = []
        spans: list[MeasuredPhase] = []
        for (begin_s, name), (end_s, then) in zip(self.marks, self.marks[1:], strict=False):
            if name not in ENDS:
                spans.append(MeasuredPhase(name, begin_s, end_s))
                if then in ENDS:
                    found.append(Part(tuple(spans), then))
                    spans = []
        return tuple(found)

    @cached_property
    def _reached_j(self) -> Array:
        means = (self.watts[1:] + self.watts[:-1]) / 2.0
        return np.concatenate([(0.0,), np.cumsum(np.diff(self.times_s) * means)])

    def energy_until(self, time_s: Array | float) -> Array:
        """Energy from the first sample to some times, J: power is a straight line between two samples (trapezoids)."""
        at = np.asarray(time_s, dtype=np.float64)
        index = np.clip(np.searchsorted(self.times_s, at, "right") - 1, 0, len(self.times_s) - 2)
        power = np.interp(at, self.times_s, self.watts)
        return self._reached_j[index] + (at - self.times_s[index]) * (self.watts[index] + power) / 2.0

    def energies_j(self, part: Part) -> Array:
        """The energy of each phase of a part, J."""
        return np.diff(self.energy_until(np.array([*(span.begin_s for span in part.spans), part.spans[-1].end_s])))

    @property
    def energy_j(self) -> float:
        """Energy of all parts, J; what the machine draws while the job is stopped is left out."""
        return float(sum(self.energies_j(part).sum() for part in self.parts))

    def within(self, begin_s: float, end_s: float) -> slice:
        """Which samples are in [begin, end[."""
        first, last = np.searchsorted(self.times_s, [begin_s, end_s], "left")
        return slice(int(first), int(last))


def read_run(samples: Path | str, events: Path | str) -> MeasuredRun:
    """A run from its power samples (`time_s,power_w`) and its event log (`time_s,event`).

    Times are numbers of seconds, or dates (without an offset: UTC), alike in both files; dates become s since the first
    sample. Raises InputError.
    """
    times, watts, dated = _samples(Path(samples))
    table, path = table_of(Path(events)), Path(events)
    marks_s, marks_dated, _ = times_of(table[_column(table, _TIMES, "times", path)], SignalFile(path))
    if dated != marks_dated:
        one, other = ("dates", "seconds") if dated else ("seconds", "dates")
        raise InputError(path, f"has {other} where {samples} has {one}", "give both in the same clock")
    names = table[_column(table, _EVENTS, "events", path)].str.strip()
    empty = np.flatnonzero(names.to_numpy() == "")
    if len(empty):
        raise InputError(f"{path}: row {empty[0] + 1}", "the event has no name", "name the phase that begins")
    zero_s = times[0] if dated else 0.0
    marks = tuple(zip((marks_s - zero_s).tolist(), names.tolist(), strict=True))
    return MeasuredRun(times - zero_s, watts, marks, str(path))


def read_runs(places: Sequence[Path | str]) -> list[MeasuredRun]:
    """The runs of files of samples, each with its event log next to it (`run.csv`, `run-events.csv`).

    A folder stands for all of its files of samples that have one. Raises InputError.
    """
    found: list[Path] = []
    for place in map(Path, places):
        inside = sorted(log.with_name(log.name.removesuffix(EVENTS_SUFFIX) + ".csv")
                        for log in place.glob(f"*{EVENTS_SUFFIX}")) if place.is_dir() else [place]  # fmt: skip
        if not inside:
            raise InputError(place, f"no file NAME{EVENTS_SUFFIX} in this folder", "put NAME.csv and its log there")
        found += inside
    return [read_run(path, path.with_name(path.stem + EVENTS_SUFFIX)) for path in found]


def _samples(path: Path) -> tuple[Array, Array, bool]:
    """Times and watts of a file, and whether its times are dates (then in s since 1970)."""
    table = table_of(path)
    times, dated, _ = times_of(table[_column(table, _TIMES, "times", path)], SignalFile(path))
    cells = table[_column(table, _WATTS, "watts", path)]
    watts = pd.to_numeric(cells, errors="coerce").to_numpy(dtype=np.float64)
    wrong = np.flatnonzero(~np.isfinite(watts))
    if len(wrong):
        try:
            finite(cells.iloc[wrong[0]].strip())
        except ValueError as error:
            raise InputError(f"{path}: row {wrong[0] + 1}", f"power {error}", "give W") from None
    _checked_samples(times, watts, str(path))
    return times, watts, dated


def _checked_samples(times_s: Array, watts: Array, source: str) -> None:
    """Raise InputError unless times increase and no power is negative."""
    if len(times_s) < 2:
        raise InputError(source, "has fewer than two samples", "a power needs two samples to be integrated")
    back = np.flatnonzero(~(np.diff(times_s) > 0.0))
    if len(back):
        place = f"{source}: row {back[0] + 2}"
        problem = f"times must increase, got {times_s[back[0] + 1]:.10g} s after {times_s[back[0]]:.10g} s"
        raise InputError(place, problem, "sort the samples by time")
    below = np.flatnonzero(~(watts >= 0.0))
    if len(below):
        place = f"{source}: row {below[0] + 1}"
        raise InputError(place, f"power must be >= 0 W, got {watts[below[0]]:g}", "correct the sample")


def _column(table: pd.DataFrame, known: Sequence[str], what: str, path: Path) -> str:
    by_name = {str(name).lower(): str(name) for name in reversed(table.columns)}
    for name in known:
        if name in by_name:
            return by_name[name]
    listed = ", ".join(str(name)[:40] for name in table.columns[:10])
    raise InputError(path, f"no column of {what} among: {listed}", f"name it {known[0]} in the first line")
