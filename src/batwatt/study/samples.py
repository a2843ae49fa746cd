"""Samples of one workload: windows of equal length, each with its jobs and its own 0 s."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from batwatt.errors import InputError
from batwatt.model.signal import parse_date_s
from batwatt.model.timeline import Timeline
from batwatt.model.workload import DEPENDS, RELEASE, START_S, JobSpec, Workload
from batwatt.units import date_text


@dataclass(frozen=True)
class Sample:
    """Jobs, the power in W that all cases are measured against, if any, and the signals by the figure that uses them.

    `length_s` is the length of the window in s.
    """

    workload: Workload
    cap: Timeline | None
    signals: Mapping[str, Timeline | None]
    length_s: float


def samples_of(whole: Sample, window: tuple[float, float] | None, count: int) -> list[Sample]:
    """Cut a sample into `count` windows of equal length.

    A window has the jobs that are submitted in it; no job runs when it begins. Its begin becomes 0 s of the jobs, the
    power and the signals.

    Args:
        whole: All jobs, with their power and signals.
        window: Begin and end in s of the part to cut. None: from 0 s to the last submission.
        count: Number of windows. 1: the whole, as it is.

    Raises:
        InputError: A window has no jobs.
    """
    if count == 1:
        return [whole]
    workload = whole.workload
    begin_s, end_s = window or (0.0, workload.last_submission_s)
    length_s = (end_s - begin_s) / count
    fresh = [job for job in workload.jobs if RELEASE not in job.raw and begin_s <= job.submit_time_s <= end_s]
    parts: list[list[JobSpec]] = [[] for _ in range(count)]
    for job in fresh:
        number = int((job.submit_time_s - begin_s) / length_s) if length_s > 0.0 else 0
        parts[min(number, count - 1)].append(job)
    samples = []
    for number, jobs in enumerate(parts):
        at_s = round(begin_s + number * length_s, 6)
        if not jobs:
            problem = f"window {number + 1} of {count}, {at_s:g} to {at_s + length_s:g} s, has no job"
            raise InputError(workload.source, problem, "take fewer samples, or another window")
        signals = {name: signal and _later(signal, at_s) for name, signal in whole.signals.items()}
        begun = _begun(workload, jobs, at_s)
        cap = whole.cap and whole.cap.since(at_s)
        samples.append(Sample(begun, cap, signals, length_s))
    return samples


def _begun(workload: Workload, jobs: list[JobSpec], at_s: float) -> Workload:
    """Return the workload with some of its jobs, and with `at_s` as 0 s."""
    names = {job.name for job in jobs}
    moved = []
    for job in jobs:
        submit_s = max(0.0, round(job.submit_time_s - at_s, 6))
        raw = {**job.raw, "subtime": submit_s}
        if START_S in raw:
            raw[START_S] = round(raw[START_S] - at_s, 6)
        if DEPENDS in raw:
            # jobs of earlier windows have completed
            raw[DEPENDS] = [name for name in raw[DEPENDS] if name in names]
        moved.append(job._replace(submit_time_s=submit_s, raw=raw))
    begin = date_text(parse_date_s(workload.begin) + at_s) if workload.begin else ""
    return replace(workload, jobs=tuple(moved), begin=begin)


def _later(signal: Timeline, at_s: float) -> Timeline:
    """Return the signal with `at_s` as 0 s."""
    later = signal.since(at_s)
    # one that is over then has no values left
    return later if signal.loop is not None else later.lasting(False)
