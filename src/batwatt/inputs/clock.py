"""The clock of a run: the date of 0 s for its jobs, its power, its carbon and its price."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence

from batwatt.errors import InputError, remark
from batwatt.inputs.series import common_date
from batwatt.inputs.source import SeriesSource
from batwatt.inputs.spec import SeriesSpec
from batwatt.model.signal import Clock, parse_date_s
from batwatt.model.timeline import Timeline
from batwatt.model.workload import Delay, JobSpec, Workload
from batwatt.units import SINCE_1970_S, YEAR_S, date_text, number_text

_log = logging.getLogger(__name__)
SeriesInput = SeriesSpec | Timeline | None


def clock_of(loads: Sequence[Workload], begin_s: float | None, series: Sequence[SeriesInput]) -> Clock | None:
    """Return the clock of a run with these workloads and series; None if none of them has a date.

    Its 0 s is that of the jobs if they have dates, else the date `begin_s` (s since 1970), else that of the series. Its
    line lists inputs without dates if others have dates. Raises InputError, also for jobs whose times are dates.
    """
    for load in loads:
        _check_seconds(load)
    jobs = loads[0]
    date: tuple[float, str] | None = None
    if jobs.begin:
        date = (parse_date_s(jobs.begin), f"that of {jobs.source}")
        if begin_s is not None and begin_s != date[0]:
            problem = f"is {date_text(begin_s)}, but 0 s of {jobs.source} is {jobs.begin}"
            raise InputError("begin", problem, "leave it out, or give it where the jobs are read")
    elif begin_s is not None:
        date = (begin_s, "as begin says")
    else:
        date = _date_of(series)
    if date is None:
        return None
    spans = [_span(load) for load in loads if load.jobs] or [(0.0, 0.0, 0.0)]
    firsts_s, lasts_s, ends_s = zip(*spans, strict=True)
    undated = [*(() if jobs.begin else [jobs.source]), *filter(None, map(_undated, series))]
    line = "" if jobs.begin and not undated else f"0 s is {date_text(date[0])}, {date[1]}"
    line += f"; without dates, from 0 s on: {', '.join(undated)}" if undated else ""
    return Clock(*date, min(firsts_s), max(lasts_s), max(ends_s), line)


def tell(clock: Clock | None) -> None:
    """Log the line of a clock, after all inputs are read."""
    if clock is not None and clock.line:
        remark(_log, "%s", clock.line)


def _date_of(series: Iterable[SeriesInput]) -> tuple[float, str] | None:
    dated: list[SeriesSource | Timeline] = []
    for one in series:
        if isinstance(one, SeriesSpec):
            dated += one.dated_sources
        elif isinstance(one, Timeline):
            dated.append(one)
    return common_date(dated)


def _undated(one: SeriesInput) -> str | None:
    """Return the parts of a series without a date, as text, or None."""
    if isinstance(one, Timeline):
        return None if one.date_s is not None or len(one.values) == 1 else one.source
    if one is None or one.is_constant:
        return None
    if not one.sources:
        return str(one)
    plain = [str(source.path) for source in one.sources if source not in one.dated_sources]
    return ", ".join(dict.fromkeys(plain)) or None


def _check_seconds(load: Workload) -> None:
    """Raise InputError if submissions of a workload other than a trace are dates: its begin is not known."""
    if load.jobs and load.last_submission_s >= SINCE_1970_S:
        first_s = min(job.submit_time_s for job in load.jobs)
        years = load.last_submission_s / YEAR_S
        problem = f"a job is submitted at {number_text(load.last_submission_s)} s, {years:.0f} years after 0 s"
        hint = f"are its times dates? then subtract the first submission, {number_text(first_s)} s, from all of them"
        if first_s < SINCE_1970_S:
            hint = f"another job is submitted at {number_text(first_s)} s: leave out what is of another clock"
        raise InputError(load.source, problem, hint)


def _span(load: Workload) -> tuple[float, float, float]:
    """Return the times in s of the first and last submission, and of the last end if all jobs start at submission."""
    first_s = min(job.submit_time_s for job in load.jobs)
    return first_s, load.last_submission_s, max(job.submit_time_s + _length_s(load, job) for job in load.jobs)


def _length_s(load: Workload, job: JobSpec) -> float:
    """Return the greatest run time in s of a job that is known without hosts: its delay, else its walltime."""
    profile = load.profiles.get(job.profile)
    return profile.duration_s if isinstance(profile, Delay) else job.walltime_s or 0.0
