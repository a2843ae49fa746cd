"""Common parts of logs of batch systems: dates, lengths, states, and the choice of lines that are jobs that ran."""

from __future__ import annotations

import logging
import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, tzinfo
from functools import lru_cache
from pathlib import Path
from typing import ClassVar, Literal

import numpy as np
import numpy.typing as npt

from batwatt.checks import Parameters, shown, time_zone
from batwatt.errors import InputError, remark
from batwatt.inputs.traces.trace_table import Column, Texts, TraceTable
from batwatt.model.signal import parse_date, parse_date_s
from batwatt.model.workload import POWER_W, START_S
from batwatt.units import DAY_S, HOUR_S, LATEST_S

Mask = npt.NDArray[np.bool_]
Width = Literal["cpus", "nodes"]

_PENDING = frozenset({"PENDING", "PD", "REQUEUE_HOLD", "SPECIAL_EXIT"})
_RUNNING = frozenset({"RUNNING", "R", "SUSPENDED", "S", "STOPPED", "COMPLETING", "CG", "CONFIGURING", "CF"})
_NO_DATES = frozenset({"", "Unknown", "None", "N/A"})
_PLAIN_DATE = len("2024-07-01T13:00:00")
_YEAR_1_S = datetime.min.replace(tzinfo=UTC).timestamp()
_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class LogOptions(Parameters, where="job log"):
    """Options of reading a trace of jobs, with the time that is 0 s of a run.

    In a batch system's log (but SWF) a host of the platform is a CPU of a job or, with `width` "nodes", one of its
    nodes; `fields` are the names of the columns of a sacct dump without a header, also as a text with commas. Dates
    without an offset are in the time zone `tz`. `begin` is 0 s (None: the first submission), a date, or a number of s
    where times are not dates; jobs submitted earlier are left out.

    Raises InputError.
    """

    width: Width = "cpus"
    fields: str | Sequence[str] = ()
    tz: str = "UTC"
    begin: str | None = None
    accounting: ClassVar[bool] = False

    def __post_init__(self) -> None:
        # dates, numbers of s and time zones of Python become texts
        for name, value in (("tz", self.tz), ("begin", self.begin)):
            if isinstance(value, date | tzinfo) or (name == "begin" and type(value) in (int, float)):
                object.__setattr__(self, name, str(value))
        super().__post_init__()
        names = self.fields.split(",") if isinstance(self.fields, str) else self.fields
        if not isinstance(names, list | tuple) or not all(isinstance(name, str) for name in names):
            raise InputError(self.WHERE, f"fields must be names, got {shown(names)}", "write JobID,User,...")
        object.__setattr__(self, "fields", tuple(name.strip() for name in names))
        begin, zone = self.begin, self.zone
        if begin is not None and not (abs(parse_date(begin, zone)) < LATEST_S or number(begin) < LATEST_S):
            hint = "write 2024-07-01T13:00 or ...T13:00Z; or s of a trace without dates"
            raise InputError(self.WHERE, f"begin {begin!r} is not a date", hint)

    @property
    def zone(self) -> tzinfo:
        """The time zone. Raises InputError."""
        return time_zone(self.WHERE, "tz", self.tz)

    @property
    def of_log(self) -> bool:
        """True if an option applies only to a batch system's log."""
        return bool(self.fields) or self.width != "cpus"

    def date(self, where: object) -> float | None:
        """Return the date `begin` in s since 1970, or None. Raises InputError if `begin` is not a date."""
        if self.begin is None:
            return None
        return parse_date_s(self.begin, f"{where}: begin", self.zone)


USUAL = LogOptions()


@dataclass(frozen=True)
class AccountingOptions(LogOptions, where="job log"):
    """Options of an account: running jobs end with the batch system's log, and Account of sacct is the group."""

    accounting: ClassVar[bool] = True


@dataclass
class LogColumns:
    """Lines of a log by column: dates in s since 1970, lengths in s, energy in J; NaN or "" if unknown."""

    ids: Texts
    submit_s: Column
    start_s: Column
    run_s: Column
    cpus: Column
    states: Texts
    energy_j: Column
    needs: Mapping[str, Column] = field(default_factory=dict)
    labels: Mapping[str, Texts] = field(default_factory=dict)
    repeats: bool = False
    """True if lines with equal id and start are several jobs, such as those of an array."""

    @classmethod
    def joined(cls, parts: Sequence[LogColumns]) -> LogColumns:
        """Return the lines of several parts as one object."""
        names = ("ids", "submit_s", "start_s", "run_s", "cpus", "states", "energy_j")
        whole = {name: np.concatenate([getattr(part, name) for part in parts]) for name in names}
        needs = {name: np.concatenate([part.needs[name] for part in parts]) for name in parts[0].needs}
        labels = {name: np.concatenate([part.labels[name] for part in parts]) for name in parts[0].labels}
        return cls(**whole, needs=needs, labels=labels, repeats=parts[0].repeats)


def jobs_of(columns: LogColumns, rejected: Counter[str], options: LogOptions, path: Path | str) -> TraceTable:
    """Return the jobs that ran, with times as dates; one warning has the numbers of other lines by reason.

    `rejected` counts lines left out earlier. Two lines of a job with one start are one job; with several starts the job
    was requeued, and its later runs, in the order of the log, are called `12-2`, `12-3`. A start before the submission,
    by another clock, becomes the submission. A job without a submission is submitted at its start, with a remark.
    Raises InputError.
    """
    has_id = columns.ids != ""
    submits_s: Column = np.where(np.isnan(columns.submit_s), columns.start_s, columns.submit_s)
    pending, running = _in_states(columns.states)
    if options.accounting:
        if count := int((running & (columns.run_s > 0.0)).sum()):
            remark(_log, "%s: %d jobs still run: they count until the log was written", path, count)
        running = np.zeros_like(running)
    reasons = [
        ("without an id", has_id),
        ("pending", ~pending),
        ("running", ~running),
        ("without a run time", ~np.isnan(columns.run_s)),
        ("never ran", columns.run_s > 0.0),
        ("without a width", columns.cpus >= 1.0),
        ("without a submission", np.isfinite(submits_s) & (submits_s >= _YEAR_1_S)),
    ]
    accepted = np.ones(len(has_id), dtype=np.bool_)
    for reason, good in reasons:
        rejected[reason] += int((accepted & ~good).sum())
        accepted &= good
    rows = np.flatnonzero(accepted)
    # distinct starts keep all rows
    starts_s = rows.astype(float) if columns.repeats else columns.start_s[rows]
    ids, single = _renamed(columns.ids[rows].tolist(), starts_s.tolist())
    rejected["listed twice"] += len(rows) - len(single)
    rows = rows[single]
    _report(len(rows), rejected, path)
    if not len(rows):
        raise InputError(path, "no job that ran", "the states, run times and widths of its jobs are missing or 0")
    submit_s, run_s = submits_s[rows], columns.run_s[rows]
    if count := int(np.isnan(columns.submit_s[rows]).sum()):
        remark(_log, "%s: %d of %d jobs state no submission: submitted at their start", path, count, len(rows))
    hours = (submit_s // HOUR_S).tolist() if options.tz != "UTC" else ()
    twice = sum(_second_s(hour * HOUR_S, options.zone) != 0.0 for hour in hours)
    if twice:
        text = "%s: %d jobs are submitted in an hour that %s has twice; dates without an offset are of the first one"
        remark(_log, text, path, twice, options.tz)
    with np.errstate(invalid="ignore"):
        start_s = np.maximum(columns.start_s[rows], submit_s)
        power_w = columns.energy_j[rows] / run_s
    needs = {name: column[rows] for name, column in columns.needs.items()}
    needs |= {START_S: start_s, POWER_W: power_w}
    return TraceTable(
        np.array(ids, dtype=object),
        np.round(submit_s, 6),
        np.round(run_s, 6),
        columns.cpus[rows],
        {name: np.round(column, 6) for name, column in needs.items() if not np.isnan(column).all()},
        labels={name: column[rows] for name, column in columns.labels.items() if (column[rows] != "").any()},
        origin_s=0.0,
    )


@lru_cache(maxsize=20_000)
def _second_s(date_s: float, zone: tzinfo) -> float:
    """Return the time in s until clocks of a zone show a date for the second time, as in autumn; 0 s if they do not."""
    try:
        moment = datetime.fromtimestamp(date_s, zone)
        first, second = (moment.replace(fold=fold).timestamp() for fold in (0, 1))
    except (ValueError, OverflowError, OSError):
        return 0.0
    return second - first


def _in_states(states: Texts) -> tuple[Mask, Mask]:
    """Return the masks of states of jobs that have not run yet, and of running jobs; others are ends or unknown."""
    words = {state: state.partition(" ")[0].rstrip("+").upper() for state in set(states.tolist())}
    first_words = [words[state] for state in states.tolist()]
    return np.array([word in _PENDING for word in first_words]), np.array([word in _RUNNING for word in first_words])


def _renamed(ids: list[str], starts_s: list[float]) -> tuple[list[str], list[int]]:
    """Return the ids, made distinct, of rows without copies of other rows; and these rows."""
    if len(set(ids)) == len(ids):
        return ids, list(range(len(ids)))
    names, rows = [], []
    taken, seen = set(ids), set()
    runs: Counter[str] = Counter()
    for row, (id, start_s) in enumerate(zip(ids, starts_s, strict=True)):
        # of equal ids without a start the first counts
        key = (id, start_s if start_s == start_s else None)
        if key in seen:
            continue
        seen.add(key)
        runs[id] += 1
        name = id
        while runs[id] > 1 and (name := f"{id}-{runs[id]}") in taken:
            runs[id] += 1
        taken.add(name)
        names.append(name)
        rows.append(row)
    return names, rows


def _report(jobs: int, rejected: Counter[str], path: Path | str) -> None:
    out = sum(rejected.values())
    if out:
        reasons = ", ".join(f"{count} {reason}" for reason, count in rejected.most_common() if count)
        remark(_log, "%s: %d jobs; %d of %d lines of jobs are left out: %s", path, jobs, out, jobs + out, reasons)


# cells ----------------------------------------------------------------------------------------------------------


def each(texts: Sequence[str], read: Callable[[str], float]) -> Column:
    """Return `read` of each text, with one call for equal texts."""
    values = {text: read(text) for text in set(texts)}
    return np.fromiter(map(values.__getitem__, texts), dtype=np.float64, count=len(texts))


def dates_s(texts: Sequence[str], zone: tzinfo, unit_s: float = 1.0) -> Column:
    """Return `parse_date` of each text; fast for dates in UTC as sacct writes them."""
    if zone is UTC:
        plain = ["NaT" if text in _NO_DATES else text for text in texts]
        # other texts, also with an offset, have other lengths; numpy would accept `now`
        if {len(text) for text in plain if text != "NaT"} <= {_PLAIN_DATE}:
            try:
                dates = np.array(plain, dtype="datetime64[s]")
                return np.where(np.isnat(dates), np.nan, dates.astype(np.int64))
            except ValueError:
                pass
    return each(texts, lambda text: parse_date(text, zone, unit_s))


def later_s(since_s: Column, texts: Sequence[str], zone: tzinfo, unit_s: float = 1.0) -> Column:
    """Return `dates_s` of texts that are not before other dates, such as ends of jobs that have started.

    A date without an offset, in an hour that clocks of the zone show twice, is of the first one, or of the second one
    if it would else be too early.
    """
    later = dates_s(texts, zone, unit_s)
    for row in np.flatnonzero(later < since_s).tolist() if zone is not UTC else ():
        # a date with an offset is the same in any zone
        if later[row] != parse_date(texts[row], UTC, unit_s):
            later[row] += _second_s(float(later[row]), zone)
    return later


def duration_s(text: str) -> float:
    """Parse `D-HH:MM:SS`, `D-HH`, `HH:MM:SS`, `MM:SS` or minutes to s; NaN for others, such as `UNLIMITED`."""
    days, dash, rest = text.rpartition("-")
    parts = [number(part) for part in rest.split(":")]
    day_s = number(days) * DAY_S if dash else 0.0
    if len(parts) > 3:
        return math.nan
    hours, minutes, seconds = ([*parts, 0.0, 0.0] if dash or len(parts) == 3 else [0.0, *parts, 0.0])[:3]
    value = day_s + hours * HOUR_S + minutes * 60.0 + seconds
    return value if value < math.inf else math.nan


def number(text: str) -> float:
    """Parse a number >= 0; NaN for other texts."""
    try:
        value = math.nan if "_" in text else float(text)
    except ValueError:
        return math.nan
    return value if 0.0 <= value < math.inf else math.nan


def size(text: str, base: float) -> float:
    """Parse a number with a unit K, M, G, T, P or E, in powers of `base`; NaN for other texts."""
    power = "KMGTPE".find(text[-1:].upper()) + 1 if text else 0
    value = number(text[:-1]) * base**power if power else number(text)
    return value if value < math.inf else math.nan
