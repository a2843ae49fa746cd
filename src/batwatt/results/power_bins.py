"""Power and envelope in few intervals: exact means, least and largest power, power above the envelope and unused."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

import numpy as np

from batwatt.model.timeline import Timeline
from batwatt.results.power import CappedTrace, Floats, PowerTrace, compare

MOST = 2000
"""Largest number of intervals, about the pixels of the width of a figure."""


@dataclass(frozen=True)
class PowerBins:
    """Powers in W, a value for each interval between consecutive `edges_s`.

    Means of the power, of the envelope, and of the power above and unused below the envelope: `power_w` is
    `cap_w` + `above_w` - `unused_w`. `low_w` and `high_w` are the least and the largest power.
    """

    edges_s: Floats
    power_w: Floats
    low_w: Floats
    high_w: Floats
    cap_w: Floats
    above_w: Floats
    unused_w: Floats


def bin_edges(traces: Collection[PowerTrace], envelope: Timeline | None, most: int = MOST) -> Floats:
    """Return edges in s for several traces: all changes of a power or of the envelope, or `most` equal intervals."""
    end_s = max((trace.end_s for trace in traces), default=0.0)
    changes = [np.array([0.0, end_s])]
    for trace in traces:
        pieces = _pieces(trace, envelope)
        new = (np.diff(pieces.power_w) != 0.0) | (np.diff(pieces.cap_w) != 0.0)
        changes += [pieces.start_s[1:][new], np.array([trace.end_s])]
    exact = np.unique(np.concatenate(changes))
    return exact if len(exact) <= most + 1 else np.linspace(0.0, end_s, most + 1)


def power_bins(trace: PowerTrace, envelope: Timeline | None, edges_s: Floats) -> PowerBins:
    """Return a trace in the intervals between edges from 0 s on; the last interval ends with the trace.

    Without an envelope all power is above the cap of 0 W.
    """
    edges = np.append(edges_s[edges_s < trace.end_s], trace.end_s)
    if not trace.end_s > 0.0:
        none = np.empty(0)
        return PowerBins(edges[:1], none, none, none, none, none, none)
    pieces = _pieces(trace, envelope)
    starts = np.union1d(pieces.start_s, edges[:-1])
    of = np.searchsorted(pieces.start_s, starts, side="right") - 1
    power, cap = pieces.power_w[of], pieces.cap_w[of]
    durations = np.diff(np.append(starts, trace.end_s))
    first = np.searchsorted(starts, edges[:-1])

    def mean(values: Floats) -> Floats:
        return np.add.reduceat(values * durations, first) / np.diff(edges)

    return PowerBins(
        edges_s=edges,
        power_w=mean(power),
        low_w=np.minimum.reduceat(power, first),
        high_w=np.maximum.reduceat(power, first),
        cap_w=mean(cap),
        above_w=mean(np.maximum(power - cap, 0.0)),
        unused_w=mean(np.maximum(cap - power, 0.0)),
    )


def envelope_bins(envelope: Timeline, edges_s: Floats) -> PowerBins:
    """Return the envelope as a power, between edges from 0 s on."""
    steps = list(envelope.steps(0.0, float(edges_s[-1])))
    times, values = (np.array([step[part] for step in steps]) for part in (0, 2))
    return power_bins(PowerTrace(times, values, float(edges_s[-1])), envelope, edges_s)


def _pieces(trace: PowerTrace, envelope: Timeline | None) -> CappedTrace:
    return compare(trace, Timeline((0.0,), (0.0,)) if envelope is None else envelope)
