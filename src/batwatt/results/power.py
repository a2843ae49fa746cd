"""The power of a run as a step function of time, worked out from the energies that Batsim writes, and the envelope."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from batwatt.errors import InputError
from batwatt.model.series import Series
from batwatt.model.signal_integral import SignalIntegral
from batwatt.results.columns import FILES
from batwatt.results.run_data import RERUN, RunData
from batwatt.results.writers import file_of, write_columns
from batwatt.units import J_PER_KWH, REPORTED_S

Floats = NDArray[np.float64]
Indices = NDArray[np.intp]

_log = logging.getLogger(__name__)
SHORTEST_S = 1e-3
"""Shorter intervals have no power of their own: energies are printed to 1e-6 J and times to 1e-6 s."""
EXCESS_W = 1e-3
"""A power above the cap by no more than this is not a violation."""
MOST_STEPS = 2.0**52
"""Larger numbers of steps are not exact in doubles."""
PRINTED = 1e-6
"""What is printed with 6 decimals may be off by this much between two rows (J or s)."""


@dataclass(frozen=True)
class PowerTrace:
    """A power in W that holds from each time until the next, the last one until `end_s`.

    `times_s` begins at 0 and increases strictly; an empty trace ends at 0. `error_w` bounds, per interval, how far the
    power that lasted may be from `power_w`: the rounding of the file, and the short intervals merged into a longer one.
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

        Of the intervals that may have it, which the errors cannot tell apart, the one that is known best says what it
        is, as the sum of watts with 0 to 2 decimals if that may be.
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
class Comparison:
    """A trace with an envelope, in pieces in which both are constant.

    `start_s` and `end_s` bound the pieces, `over` says which exceed the cap, `step` in which step of the envelope
    (from 0) each begins, `alike` how many whole steps it lasts (1 if it is a step or a part of one), `step_start_s` and
    `step_end_s` where these begin and end; `steps` counts them all.
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
        """Energy in J that the cap allowed and nobody drew."""
        return self._integral(self.cap_w - self.power_w)

    def _integral(self, excess_w: Floats) -> float:
        return float(np.maximum(excess_w, 0.0) @ (self.end_s - self.start_s))


def power_series(run: Path | str | RunData, end_s: float | None = None) -> PowerTrace:
    """The power of all hosts over [0, end_s], from the energies of a run, or of the one whose files have a prefix.

    Between two rows it is the difference of their energies over that of their times. That is exact while the power
    changes only where Batsim writes a row: at starts and ends of jobs, at requests for p-states and their completions.
    Within a job it changes without a row (the parts of a composed profile, an executor done before the others); there
    it is the mean between the rows. Rows of one time count as one, an interval under `SHORTEST_S` joins the next.

    Nothing is known after the last row, so the trace ends there if `end_s` is later or None. Raises InputError.
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
        raise InputError(file_of(data.prefix, "consumed_energy"), f"{energy[0]:g} J at 0 s", "check who wrote the file")
    if end_s is not None and end_s < times[-1]:
        energy_at_end = np.interp(end_s, times, energy)
        inside = times < end_s
        times, energy = np.append(times[inside], end_s), np.append(energy[inside], energy_at_end)
    return _trace(times, energy)


def _trace(times: Floats, energy: Floats) -> PowerTrace:
    """The trace between rows of distinct times, the first at 0 s with 0 J."""
    if len(times) < 2:
        return PowerTrace(np.empty(0), np.empty(0), 0.0)
    kept = _edges(times)
    edges, joules = times[kept], energy[kept]
    durations = np.diff(edges)
    power = np.diff(joules) / durations
    error = PRINTED * (1.0 + power) / durations
    if len(kept) < len(times):
        # where rows were merged, what lasted is the power of the longest interval between them
        raw = np.diff(times)
        group = np.searchsorted(kept, np.arange(len(raw)), side="right") - 1
        longest = np.lexsort((raw, group))[kept[1:] - 1]
        merged = (np.diff(kept) > 1) & (raw[longest] >= SHORTEST_S)
        longest = longest[merged]
        lasting = (energy[longest + 1] - energy[longest]) / raw[longest]
        error[merged] = np.abs(power[merged] - lasting) + PRINTED * (1.0 + lasting) / raw[longest]
    return PowerTrace(edges[:-1], power, float(edges[-1]), error)


def _edges(times: Floats) -> NDArray[np.intp]:
    """Indices of the rows that bound intervals of at least `SHORTEST_S`; the first and the last always do."""
    if np.all(np.diff(times) >= SHORTEST_S):
        return np.arange(len(times))
    kept = [0]
    begin = 0.0
    for index, time in enumerate(times.tolist()):
        if time - begin >= SHORTEST_S:
            kept.append(index)
            begin = time
    final = len(times) - 1
    if kept[-1] != final:
        # the rest is too short for an interval of its own: it joins the one before
        kept[max(1, len(kept) - 1) :] = [final]
    return np.array(kept, dtype=np.intp)


def compare(trace: PowerTrace, envelope: Series) -> Comparison:
    """The trace against the steps of an envelope in W, over the length of the trace.

    A piece is over the cap if it lasts `SHORTEST_S` or more and exceeds it by more than `EXCESS_W` and the error that
    the trace admits.
    """
    starts, numbers, steps = step_bounds(envelope, trace.end_s, trace.times_s)
    if not len(trace.times_s):
        none, numb = np.empty(0), np.empty(0, np.intp)
        return Comparison(none, none, none, none, np.empty(0, np.bool_), numb, numb, none, none, 0)
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
    # the rounding of energies is neither above the cap nor left below it
    power = np.where(np.abs(power - cap) <= error, cap, power)
    bounds = np.append(starts, trace.end_s)
    return Comparison(edges, ends, power, cap, over, numbers[at], alike, bounds[at], bounds[at + 1], steps)


def weighted(trace: PowerTrace, signal: SignalIntegral) -> float | None:
    """What a signal makes of the energy of a trace, in g or money; None with a warning if it ends before the trace."""
    if not trace.end_s <= signal.end_s + REPORTED_S:
        text = "%s: ends at %.15g s, the run at %.15g s: nothing is worked out with it; FILE,repeat=yes begins it again"
        _log.warning(text, signal.source, signal.end_s, trace.end_s)
        return None
    edges = np.append(trace.times_s, trace.end_s)
    return float(trace.power_w @ np.diff(signal.integral(edges))) / J_PER_KWH


def step_bounds(series: Series, end_s: float, times_s: Floats | None = None) -> tuple[Floats, Indices, int]:
    """Where steps that `Series.steps(0, end_s)` yields begin, in s; their numbers from 0; and how many there are.

    There may be up to `MOST_STEPS` steps after the last row. Of those only the ones that hold one of `times_s` or
    `end_s` are among them, and the one after each. Raises InputError for more steps.
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


def write_power(prefix: Path | str, trace: PowerTrace, envelope: Series | None = None) -> Path:
    """Write `PREFIX_power.csv`, the `power_columns`; returns its path. Raises InputError if it cannot be written."""
    path = file_of(prefix, "power")
    write_columns(path, FILES["power"], dict(power_columns(trace, envelope)))
    return path


def power_columns(trace: PowerTrace, envelope: Series | None = None) -> dict[str, Floats]:
    """The columns of `PREFIX_power.csv`: a row where the power or the cap changes, and one at the end.

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
