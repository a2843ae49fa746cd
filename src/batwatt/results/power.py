"""Power of a run over time, computed from Batsim's file of energies, and its comparison with an envelope."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from batwatt.errors import InputError
from batwatt.model.timeline import Timeline
from batwatt.results.run_files import FILES, RERUN, RunData, file_of, write_columns
from batwatt.units import J_PER_KWH, REPORTED_S

Floats = NDArray[np.float64]
Indices = NDArray[np.intp]

_log = logging.getLogger(__name__)
SHORTEST_S = 1e-3
"""Shortest interval with a power: energies are printed to 1e-6 J and times to 1e-6 s."""
EXCESS_W = 1e-3
"""Largest power above the cap that is not a violation."""
MOST_STEPS = 2.0**52
"""Largest number of steps; doubles do not hold larger numbers exactly."""
PRINTED = 1e-6
"""Largest error between two rows of values printed with 6 decimals (J or s)."""


@dataclass(frozen=True)
class PowerTrace:
    """A power in W that holds from each time until the next, the last one until `end_s`.

    `times_s` begins at 0 and increases strictly; an empty trace ends at 0. `error_w` bounds, per interval, the error of
    `power_w`: from the rounding of the file, and from short intervals merged into a longer one.
    """

    times_s: Floats
    power_w: Floats
    end_s: float
    error_w: Floats | float = 0.0

    def __post_init__(self) -> None:
        if self.times_s.shape != self.power_w.shape or self.times_s.ndim != 1:
            raise ValueError(f"a trace needs as many powers as times, got {self.power_w.size} and {self.times_s.size}")
        edges = np.append(self.times_s, self.end_s)
        if not (edges[0] == 0.0 and np.all(np.diff(edges) > 0.0)):
            raise ValueError("the times of a trace must begin at 0 and increase strictly up to end_s")

    @property
    def durations_s(self) -> Floats:
        """Length of each interval in s."""
        return np.diff(np.append(self.times_s, self.end_s))

    @property
    def energy_j(self) -> float:
        """Energy in J over the trace."""
        return float(self.power_w @ self.durations_s)

    @property
    def max_w(self) -> float | None:
        """Largest power in W that a state of the hosts draws, None for an empty trace.

        Several intervals may have the largest power within their errors: the value is that of the smallest error,
        rounded to 0, 1 or 2 decimals if the error allows it.
        """
        if not len(self.power_w):
            return None
        error = np.broadcast_to(np.asarray(self.error_w, dtype=np.float64), self.power_w.shape)
        highest = np.flatnonzero(self.power_w + error >= (self.power_w - error).max())
        best = highest[np.argmin(error[highest])]
        power = float(self.power_w[best])
        rounded = (round(power, digits) for digits in range(3))
        return next((value for value in rounded if abs(value - power) <= error[best]), power)


@dataclass(frozen=True)
class CappedTrace:
    """A trace with an envelope, in pieces in which both are constant.

    `start_s` and `end_s` bound the pieces, `over` is a mask of those above the cap. `step` is the number, from 0, of
    the step of the envelope in which a piece begins, `alike` its length in whole steps (1 for a step or a part of one),
    `step_start_s` and `step_end_s` bound these steps; `steps` is the number of all steps.
    """

    start_s: Floats
    end_s: Floats
    power_w: Floats
    cap_w: Floats
    over: NDArray[np.bool_]
    step: Indices
    alike: Indices
    step_start_s: Floats
    step_end_s: Floats
    steps: int

    @property
    def violations(self) -> int:
        """Number of steps in which the power is above the cap at some time (Eq. 1 of the powercap paper)."""
        _, first = np.unique(self.step[self.over], return_index=True)
        return int(self.alike[self.over][first].sum())

    @property
    def above_j(self) -> float:
        """Energy in J drawn above the cap."""
        return self._integral(self.power_w - self.cap_w)

    @property
    def unused_j(self) -> float:
        """Unused energy in J below the cap."""
        return self._integral(self.cap_w - self.power_w)

    def _integral(self, excess_w: Floats) -> float:
        return float(np.maximum(excess_w, 0.0) @ (self.end_s - self.start_s))


def power_series(run: Path | str | RunData, end_s: float | None = None) -> PowerTrace:
    """Return the power of all hosts over [0, end_s], from the energies of a run, or of the files under a prefix.

    The power between two rows is the difference of their energies over that of their times. This is exact if the power
    changes only in rows of Batsim: at starts and ends of jobs, at requests for p-states and their completions. Within a
    job the power may change without a row (parts of a composed profile, an executor that ends before the others); the
    result is the mean between the rows. Rows of one time count as one, an interval under `SHORTEST_S` joins the next.

    The trace ends at the last row if `end_s` is later or None. Raises InputError.
    """
    if end_s is not None and not end_s >= 0.0:
        raise ValueError(f"end_s must be >= 0 s, got {end_s!r}")
    data = run if isinstance(run, RunData) else RunData(run)
    if data.energy is None:
        raise InputError(file_of(data.prefix, "consumed_energy"), "cannot be read (no such file)", RERUN)
    times, energy = data.energy
    # the last row of a time has the energy of that time; a run starts at 0 s with 0 J
    last = np.append(np.diff(times) > 0.0, True)[: len(times)]
    times, energy = times[last], energy[last]
    if not len(times) or times[0] > 0.0:
        times, energy = np.insert(times, 0, 0.0), np.insert(energy, 0, 0.0)
    elif energy[0] > 0.0:
        raise InputError(file_of(data.prefix, "consumed_energy"), f"{energy[0]:g} J at 0 s", "check its source")
    if end_s is not None and end_s < times[-1]:
        energy_at_end = np.interp(end_s, times, energy)
        inside = times < end_s
        times, energy = np.append(times[inside], end_s), np.append(energy[inside], energy_at_end)
    return _trace(times, energy)


def _trace(times: Floats, energy: Floats) -> PowerTrace:
    """Return the trace between rows of distinct times, the first at 0 s with 0 J."""
    if len(times) < 2:
        return PowerTrace(np.empty(0), np.empty(0), 0.0)
    bounds = _edges(times)
    edges, joules = times[bounds], energy[bounds]
    durations = np.diff(edges)
    power = np.diff(joules) / durations
    error = PRINTED * (1.0 + power) / durations
    if len(bounds) < len(times):
        # the error of merged rows is relative to the power of the longest interval between them
        raw = np.diff(times)
        group = np.searchsorted(bounds, np.arange(len(raw)), side="right") - 1
        longest = np.lexsort((raw, group))[bounds[1:] - 1]
        merged = (np.diff(bounds) > 1) & (raw[longest] >= SHORTEST_S)
        longest = longest[merged]
        lasting = (energy[longest + 1] - energy[longest]) / raw[longest]
        error[merged] = np.abs(power[merged] - lasting) + PRINTED * (1.0 + lasting) / raw[longest]
    return PowerTrace(edges[:-1], power, float(edges[-1]), error)


def _edges(times: Floats) -> NDArray[np.intp]:
    """Return the indices of rows that bound intervals of at least `SHORTEST_S`, the first and the last row included."""
    if np.all(np.diff(times) >= SHORTEST_S):
        return np.arange(len(times))
    bounds = [0]
    begin = 0.0
    for index, time in enumerate(times.tolist()):
        if time - begin >= SHORTEST_S:
            bounds.append(index)
            begin = time
    final = len(times) - 1
    if bounds[-1] != final:
        # a short last interval joins the previous one
        bounds[max(1, len(bounds) - 1) :] = [final]
    return np.array(bounds, dtype=np.intp)


def compare(trace: PowerTrace, envelope: Timeline) -> CappedTrace:
    """Compare a trace with the steps of an envelope in W, over the length of the trace.

    A piece is over the cap if it lasts `SHORTEST_S` or more and exceeds the cap by more than `EXCESS_W` and the error
    of the trace.
    """
    envelope = envelope.upto(trace.end_s) if envelope.repeats else envelope
    starts, numbers, steps = step_bounds(envelope, trace.end_s, trace.times_s)
    if not len(trace.times_s):
        none, numb = np.empty(0), np.empty(0, np.intp)
        return CappedTrace(none, none, none, none, np.empty(0, np.bool_), numb, numb, none, none, 0)
    edges = np.union1d(trace.times_s, starts)
    interval = np.searchsorted(trace.times_s, edges, side="right") - 1
    at = np.searchsorted(starts, edges, side="right") - 1
    row = np.searchsorted(np.asarray(envelope.times_s), starts, side="right") - 1
    cap = np.asarray(envelope.values)[np.maximum(row, 0)][at]
    power = trace.power_w[interval]
    error = np.broadcast_to(np.asarray(trace.error_w, dtype=np.float64), trace.power_w.shape)[interval]
    ends = np.append(edges[1:], trace.end_s)
    alike = np.append(np.diff(numbers), 1)[at]
    over = (power - cap > EXCESS_W + error) & ((ends - edges) / alike >= SHORTEST_S - PRINTED)
    # a difference within the error of rounding is no difference
    power = np.where(np.abs(power - cap) <= error, cap, power)
    bounds = np.append(starts, trace.end_s)
    return CappedTrace(edges, ends, power, cap, over, numbers[at], alike, bounds[at], bounds[at + 1], steps)


def weighted(trace: PowerTrace, signal: Timeline) -> float | None:
    """Return the integral of power x signal, in g or money; None, with a warning, if the signal ends before the run."""
    if not trace.end_s <= signal.until_s + REPORTED_S:
        text = "%s: ends at %.15g s, the run at %.15g s: its figures stay empty; FILE,repeat=yes or loop=0 repeats it"
        _log.warning(text, signal.source, signal.end_s, trace.end_s)
        return None
    edges = np.append(trace.times_s, trace.end_s)
    return float(trace.power_w @ np.diff(signal.integral(edges))) / J_PER_KWH


def step_bounds(series: Timeline, end_s: float, times_s: Floats | None = None) -> tuple[Floats, Indices, int]:
    """Return the begins in s of steps of `Timeline.steps(0, end_s)`, their numbers from 0, and the number of all steps.

    After the last row of the series, where up to `MOST_STEPS` steps may follow, the result has only the first step,
    the steps that hold one of `times_s` or `end_s`, and their neighbours. Raises InputError for more steps.
    """
    if not end_s > 0.0:
        return np.empty(0), np.empty(0, np.intp), 0
    rows = np.asarray(series.times_s)
    rows = np.append(0.0, rows[(rows > 0.0) & (rows < end_s)])
    last, step = series.times_s[-1], series.last_step_s
    if not max(end_s - last, -last) / step <= MOST_STEPS:
        problem = f"has steps of {step:.15g} s, which cannot be counted until the end of the run at {end_s:.15g} s"
        raise InputError(series.source, problem, "correct the times of jobs and events, or the step")
    first, final = max(1.0, np.floor(-last / step)), np.ceil((end_s - last) / step)
    while last + first * step <= 0.0:
        first += 1.0
    while final >= first and last + final * step >= end_s:
        final -= 1.0
    if final < first:
        return rows, np.arange(len(rows)), len(rows)
    seen = np.append(times_s[times_s >= last] if times_s is not None else [], end_s)
    near = np.floor((seen - last) / step)[:, None] + np.arange(-1.0, 3.0)
    beyond = np.unique(np.clip(np.append(near, first), first, final))
    numbers = np.append(np.arange(len(rows)), len(rows) + (beyond - first).astype(np.intp))
    return np.append(rows, last + beyond * step), numbers, len(rows) + int(final - first) + 1


def write_power(prefix: Path | str, trace: PowerTrace, envelope: Timeline | None = None) -> Path:
    """Write the `power_columns` to `PREFIX_power.csv`; return its path. Raises InputError if it cannot be written."""
    path = file_of(prefix, "power")
    write_columns(path, FILES["power"], dict(power_columns(trace, envelope)))
    return path


def power_columns(trace: PowerTrace, envelope: Timeline | None = None) -> dict[str, Floats]:
    """Return the columns of `PREFIX_power.csv`: a row at each change of the power or the cap, and one at the end.

    Without an envelope the cap is NaN.
    """
    if envelope is None:
        times, power = trace.times_s, np.round(trace.power_w, 6)
        caps = np.full(len(times), np.nan)
        changes = np.append(True, np.diff(power) != 0.0)[: len(power)]
    else:
        pieces = compare(trace, envelope)
        times, power, caps = pieces.start_s, np.round(pieces.power_w, 6), pieces.cap_w
        changes = np.append(True, (np.diff(power) != 0.0) | (np.diff(caps) != 0.0))[: len(power)]
    names = [column.name for column in FILES["power"]]
    cells = dict(zip(names, (column[changes] for column in (times, power, caps)), strict=True))
    if len(times):
        ends = (trace.end_s, cells["power_w"][-1], cells["cap_w"][-1])
        cells = {name: np.append(cells[name], end) for name, end in zip(names, ends, strict=True)}
    return cells
