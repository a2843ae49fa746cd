"""Logs of batch systems: their common parts, and dumps of Slurm's accounting.

Reader of dumps of Slurm's accounting: `sacct -P` (or `-p`) with any subset of its fields.

The first line names the fields, in any order and case; with commas between them the dump is CSV, as in some published
logs. A dump without that line (`--noheader`) needs the names. Required are JobID (or JobIDRaw), a run time, a width and
a submission, each from the first of these fields with a value:

- width: AllocCPUS, AllocTRES `cpu=`, NCPUS, ReqCPUS; in nodes AllocNodes, AllocTRES `node=`, NNodes, ReqNodes;
- run time: ElapsedRaw (s), Elapsed, End - Start; the suspension of a job counts only in the last one;
- submission: Submit, Eligible, Start;
- walltime: TimelimitRaw (min), Timelimit; `UNLIMITED` and `Partition_Limit` are unknown;
- memory in GB (2^30 B) of the whole job: AllocTRES `mem=`, ReqMem, whose `c` is per CPU and `n` per node; numbers of
  MB from 2^31 or 2^63 on are per CPU, with a flag of Slurm, which is subtracted. Units are powers of 1024; a number
  without a unit is in MB, as in Slurm, and refused from 2^27 on, which would be bytes. MaxRSS and AveRSS, the use of
  single tasks, are not read;
- energy: ConsumedEnergyRaw (J), ConsumedEnergy (K is 1000 J), AllocTRES `energy=`; power is energy / run time;
- labels: user of User, UID; group of Group, Account, GID; queue of Partition; qos of QOS.

Dates without an offset are in UTC by default; sacct writes them in the time zone of its host.

A line is a job, also of an array (`12_3`) or a component of a heterogeneous job (`12+1`). Steps (`12.0`, `12.batch`,
`12.extern`) are no jobs: the greatest energy of a step is that of a job whose own line has none. The sum would count
nodes twice, as Slurm measures whole nodes: `extern` and the numbered steps run on the same nodes as `batch`, and at the
same time. So the energy is exact if a step has all nodes all the time, as `extern` has, and too low if steps follow
each other. An energy of 0, or of Slurm's "unknown" near 2^64, is no energy.

The header alone decides whether lines end with a separator, without one the first lines. A separator in a text, such as
a job's name, makes a line longer: its surplus cells belong to the free text with which all typed cells (numbers,
lengths, dates, states) are of their type. A line is left out if no text does that, or several with different jobs, and
so are shorter lines; they and those of `ran` are counted.
"""

from __future__ import annotations

import csv
import logging
import math
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, tzinfo
from functools import partial
from itertools import islice
from operator import itemgetter
from pathlib import Path
from typing import Any, ClassVar, Literal, get_args

import numpy as np
import numpy.typing as npt

from batwatt.checks import shown, time_zone
from batwatt.errors import InputError, UnknownNameError, argument, remark
from batwatt.files import open_text
from batwatt.inputs.jobs import (
    HOSTS,
    SUBMISSION,
    Jobs,
    Numbers,
    Texts,
    checked,
    dates_s,
    each,
    has_values,
    later_s,
)
from batwatt.inputs.table import number_in
from batwatt.model.signal import parse_date, parse_date_s
from batwatt.model.workload import ESTIMATE, LABELS, LENGTH, MEMORY, POWER_W, START_S
from batwatt.units import DAY_S, HOUR_S, LATEST_S

Mask = npt.NDArray[np.bool_]
Width = Literal["cpus", "nodes"]

_PENDING = frozenset({"PENDING", "PD", "REQUEUE_HOLD", "SPECIAL_EXIT"})
_RUNNING = frozenset({"RUNNING", "R", "SUSPENDED", "S", "STOPPED", "COMPLETING", "CG", "CONFIGURING", "CF"})
_YEAR_1_S = datetime.min.replace(tzinfo=UTC).timestamp()
_log = logging.getLogger(__name__)


_WHERE = "job log"


@dataclass(frozen=True)
class LogOptions:
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
        for name, text in (("tz", self.tz), ("begin", "" if self.begin is None else self.begin)):
            if not isinstance(text, str):
                raise InputError(_WHERE, f"{name} must be a text, got {shown(text)}", "write it in quotes")
        if self.width not in get_args(Width):
            raise UnknownNameError(_WHERE, "value of width", str(self.width), get_args(Width), "Correct it.")
        names = self.fields.split(",") if isinstance(self.fields, str) else self.fields
        if not isinstance(names, list | tuple) or not all(isinstance(name, str) for name in names):
            raise InputError(_WHERE, f"fields must be names, got {shown(names)}", "write JobID,User,...")
        object.__setattr__(self, "fields", tuple(name.strip() for name in names))
        begin, zone = self.begin, self.zone
        if begin is not None and not (abs(parse_date(begin, zone)) < LATEST_S or number(begin) < LATEST_S):
            hint = "write 2024-07-01T13:00 or ...T13:00Z; or s of a trace without dates"
            raise InputError(_WHERE, f"begin {begin!r} is not a date", hint)

    @property
    def zone(self) -> tzinfo:
        """The time zone. Raises InputError."""
        return time_zone(_WHERE, "tz", self.tz)

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
class AccountingOptions(LogOptions):
    """Options of an account: running jobs end with the batch system's log, and Account of sacct is the group."""

    accounting: ClassVar[bool] = True


STATE, ENERGY_J = "state", "energy_j"
"""Columns of a log before `ran`."""


def ran(log: Jobs, rejected: Counter[str], options: LogOptions, *, repeats: bool = False) -> Jobs:
    """Return the jobs of a log that ran; one warning has the numbers of other lines by reason.

    The log has COLUMNS, with dates in s since 1970, also the columns STATE and ENERGY_J (J). `rejected` counts lines
    left out earlier. Two lines of a job with one start are one job; with several starts the job was requeued, and its
    later runs, in the order of the log, are called `12-2`, `12-3`. With `repeats` lines of equal id are several jobs,
    such as those of an array. A start before the submission, by another clock, becomes the submission. A job without a
    submission is submitted at its start, with a remark. Raises InputError.
    """
    path = log.source
    no_submission = np.isnan(log[SUBMISSION])
    submits_s: Numbers = np.where(no_submission, log[START_S], log[SUBMISSION])
    pending, running = _in_states(log[STATE])
    if options.accounting:
        if count := int((running & (log[LENGTH] > 0.0)).sum()):
            remark(_log, "%s: %d jobs still run: they count until the log was written", path, count)
        running = np.zeros_like(running)
    reasons = [
        ("without an id", np.fromiter(map(str.isprintable, log["id"]), np.bool_, len(log)) & (log["id"] != "")),
        ("pending", ~pending),
        ("running", ~running),
        ("without a run time", ~np.isnan(log[LENGTH])),
        ("never ran", log[LENGTH] > 0.0),
        ("without a width", (log[HOSTS] >= 1.0) & (log[HOSTS] < 2.0**53) & (log[HOSTS] == np.floor(log[HOSTS]))),
        ("without a submission", np.isfinite(submits_s) & (submits_s >= _YEAR_1_S)),
    ]
    accepted = np.ones(len(log), dtype=np.bool_)
    for reason, good in reasons:
        rejected[reason] += int((accepted & ~good).sum())
        accepted &= good
    rows = np.flatnonzero(accepted)
    # distinct starts keep all rows
    starts_s = rows.astype(float) if repeats else log[START_S][rows]
    ids, single = _renamed(log["id"][rows].tolist(), starts_s.tolist())
    rejected["listed twice"] += len(rows) - len(single)
    rows = rows[single]
    _report(len(rows), rejected, path)
    if not len(rows):
        raise InputError(path, "no job that ran", "the states, run times and widths of its jobs are missing or 0")
    if count := int(no_submission[rows].sum()):
        remark(_log, "%s: %d of %d jobs state no submission: submitted at their start", path, count, len(rows))
    columns: dict[str, Any] = {
        POWER_W if name == ENERGY_J else name: cells[rows] for name, cells in log.columns.items() if name != STATE
    }
    columns |= {"id": ids, SUBMISSION: submits_s[rows]}
    with np.errstate(invalid="ignore"):
        columns[START_S] = np.maximum(columns[START_S], columns[SUBMISSION])
        columns[POWER_W] = columns[POWER_W] / columns[LENGTH]
    return checked({name: cells for name, cells in columns.items() if has_values(cells)}, path, origin_s=0.0)


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


def _report(jobs: int, rejected: Counter[str], path: object) -> None:
    out = sum(rejected.values())
    if out:
        reasons = ", ".join(f"{count} {reason}" for reason, count in rejected.most_common() if count)
        remark(_log, "%s: %d jobs; %d of %d lines of jobs are left out: %s", path, jobs, out, jobs + out, reasons)


# cells ----------------------------------------------------------------------------------------------------------


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
    value = number_in(text)
    return value if 0.0 <= value < math.inf else math.nan


def size(text: str, base: float) -> float:
    """Parse a number with a unit K, M, G, T, P or E, in powers of `base`; NaN for other texts."""
    power = "KMGTPE".find(text[-1:].upper()) + 1 if text else 0
    value = number(text[:-1]) * base**power if power else number(text)
    return value if value < math.inf else math.nan


Read = Callable[[Sequence[str]], Numbers]
Sources = Sequence[tuple[str, Read]]
"""Fields and their parsers, the best first."""
ROWS = 20_000
"""Number of lines of a part: its columns take a fraction of the memory of its text."""

_FIRST = 100
"""Number of lines that tell whether lines without a header end with a separator."""
_IDS = ("jobid", "jobidraw")
_LABELS = {"user": ("user", "uid"), "group": ("group", "account", "gid"), "queue": ("partition",), "qos": ("qos",)}
_ACCOUNTS = ("account", "group", "gid")
_PER_CPU_MB = (2**63, 2**31)
"""Flags of Slurm on numbers of MB per CPU, new and old."""
_WHOLE_MB = re.compile("([0-9]{1,20})(M?)")
_MOST_MB = 2**27
"""128 TB: requests of memory in MB are smaller, and in bytes larger."""
_UNKNOWN_J = 2.0**63
_B_PER_GB = 2.0**30
_TEXTS = (
    "jobname comment admincomment systemcomment extra constraints reason submitline wckey workdir container stdin "
    "stdout stderr"
)
"""Fields in which users and administrators write any text."""
_TYPED = {
    r"[0-9]\S*": "jobid jobidraw",
    r"[0-9.]*[KMGTPE]?[cn]?": "alloccpus ncpus reqcpus allocnodes nnodes reqnodes ntasks priority uid gid elapsedraw "
    "cputimeraw consumedenergy consumedenergyraw reqmem maxrss maxvmsize",
    r"([0-9]+-)?[0-9:.]*": "elapsed cputime totalcpu systemcpu usercpu suspended planned reserved",
    r"([0-9]+-)?[0-9:.]*|[A-Za-z_]+": "timelimit timelimitraw",
    r"[0-9]{4}-[0-9-]+T[0-9]\S*|[0-9]*|Unknown|None|N/A": "submit eligible start end",
    r"[A-Z_]*( by .*)?\+?": "state",
    r"([0-9]+:[0-9]+)?": "exitcode derivedexitcode",
    r"([^\s=]+=\S+)?": "alloctres reqtres",
}
"""Texts of a type -> its fields; a cell may be empty."""
_TYPE_OF = {name: re.compile(text) for text, names in _TYPED.items() for name in names.split()}


def read_sacct(path: Path | str, options: LogOptions = USUAL) -> Jobs:
    """Read the jobs of a dump (or `.gz`) that ran, in its order. Raises InputError."""
    rejected: Counter[str] = Counter()
    dump = _Dump(path, options, rejected)
    parts = [dump.columns(rows) for rows in dump.parts()]
    if not parts:
        lines = f": {rejected.total()} lines have not the fields of line 1" if rejected else ""
        raise InputError(path, f"holds no job{lines}", "give a dump made with sacct -P")
    log = Jobs.joined(parts)
    dump.add_energy_of_steps(log)
    return ran(log, rejected, options)


def is_sacct(line: str) -> bool:
    """Return whether the first line of a file is the header of a dump."""
    names = {word.strip().lower() for word in _words(line, _separator(line))}
    return len(names) > 1 and not names.isdisjoint(_IDS) and ("|" in line or "submit" in names)


def _separator(header: str) -> str:
    return "|" if "|" in header else ","


def _words(line: str, separator: str) -> list[str]:
    """Return the cells of a line; the line itself, as of no fields, after a quotation mark without an end."""
    line = line.rstrip("\r\n")
    try:
        return next(csv.reader([line])) if separator == "," and '"' in line else line.split(separator)
    except csv.Error:
        return [line]


class _Dump:
    """A dump that is read part by part, with the energies of its steps."""

    def __init__(self, path: Path | str, options: LogOptions, rejected: Counter[str]) -> None:
        self.path, self.options, self.rejected = path, options, rejected
        self._separator, self._ended = "|", False
        self._by_row: dict[int, float] = {}
        self._by_id: dict[str, float] = {}
        self._names = self._header()
        id_field = next((name for name in _IDS if name in self._names), None)
        if id_field is None:
            raise InputError(path, "has no field JobID", "let sacct write it: --format=JobID,...")
        if len(set(self._names)) < len(self._names):
            [(twice, _)] = Counter(self._names).most_common(1)
            raise InputError(path, f"has the field {twice!r} twice", "name each once")
        sources = _sources(options, path)
        wanted = {field for fields in sources.values() for field, _ in fields}
        wanted |= {"state", "start", "end", *(field for fields in _LABELS.values() for field in fields)}
        # at least two, so that itemgetter returns a tuple
        read = [id_field, id_field, *(name for name in self._names if name in wanted)]
        self._pick = itemgetter(*(self._names.index(name) for name in read))
        self._place = {name: place for place, name in enumerate(read)}
        self._id = self._names.index(id_field)
        self._typed = [(place, _TYPE_OF[name]) for place, name in enumerate(self._names) if name in _TYPE_OF]
        self._sources = {
            what: [(self._place[field], read) for field, read in fields if field in self._place]
            for what, fields in sources.items()
        }
        self._check_fields(sources)
        if options.fields:
            self._ended = self._are_ended()

    def _header(self) -> list[str]:
        """Return the names of the fields; note the separator, and whether a line with names ends with one."""
        with open_text(self.path) as stream:
            line = next(stream, "")
        if self.options.fields:
            self._separator = "|" if line.count("|") >= len(self.options.fields) - 1 else ","
            return [name.lower() for name in self.options.fields]
        if not is_sacct(line):
            problem = "line 1 names no fields such as JobID|User|Submit"
            hint = f"make it with sacct -P (not --json), or name its fields: {argument('fields', 'JobID,User,...')}"
            raise InputError(self.path, problem, hint)
        self._separator = _separator(line)
        words = _words(line, self._separator)
        # sacct -p ends each line with a separator
        self._ended = words[-1] == ""
        return [word.strip().lower() for word in (words[:-1] if self._ended else words)]

    def _are_ended(self) -> bool:
        """Return whether more of the first lines, which name no fields, can be read with a separator at their ends."""
        more = 0
        with open_text(self.path) as stream:
            for line in islice(stream, _FIRST):
                words = _words(line, self._separator)
                more -= bool(self._readings(words))
                more += words.pop() == "" and bool(self._readings(words))
        return more > 0

    def _check_fields(self, sources: Mapping[str, Sources]) -> None:
        for what, words in (("run_s", "run time"), ("cpus", "width"), ("submit_s", "submission")):
            instead = {"run_s": {"start", "end"}, "submit_s": {"start"}}.get(what)
            if not self._sources[what] and not (instead and instead <= self._place.keys()):
                fields = ", ".join(field for field, _ in sources[what])
                raise InputError(self.path, f"has no field of the {words}", f"sacct has {fields}")

    def parts(self) -> Iterator[list[tuple[str, ...]]]:
        """Yield the used cells of the lines that are jobs, part by part; count the others."""
        count, id_place, pick, separator = len(self._names), self._id, self._pick, self._separator
        energies = self._sources["energy_j"]
        rows: list[tuple[str, ...]] = []
        before, last_id = 0, ""
        with open_text(self.path) as stream:
            for line in stream:
                words = _words(line, separator)
                if self._ended and words.pop():
                    self.rejected["malformed"] += 1
                    continue
                if len(words) != count and not (words := self._joined(words)):
                    continue
                id = words[id_place]
                if "." in id:
                    if energies:
                        row = before + len(rows) - 1 if id.startswith(f"{last_id}.") else None
                        self._step(id.partition(".")[0], row, pick(words))
                    continue
                if id.lower() in _IDS:
                    # the header of a joined dump
                    continue
                rows.append(pick(words))
                last_id = id
                if len(rows) == ROWS:
                    yield rows
                    before += len(rows)
                    rows = []
        if rows:
            yield rows

    def _joined(self, words: list[str]) -> list[str]:
        """Return the cells of a line with separators in a text; none, and count it, if the text is not certain."""
        if words in ([], [""]):
            return []
        readings = self._readings(words)
        if len(readings) == 1:
            return readings[0]
        self.rejected["with a separator in one of several texts" if readings else "malformed"] += 1
        return []

    def _readings(self, words: list[str]) -> list[list[str]]:
        """Return the cells of the jobs that a line may be, with its surplus cells in one of its texts."""
        surplus = len(words) - len(self._names)
        texts = [place for place, name in enumerate(self._names) if name in _TEXTS.split()]
        lines = {}
        for begin in texts if surplus > 0 else [0] if surplus == 0 else []:
            end = begin + surplus + 1
            cells = [*words[:begin], self._separator.join(words[begin:end]), *words[end:]]
            if all(type.fullmatch(cells[place].strip()) for place, type in self._typed):
                lines[self._pick(cells)] = cells
        return list(lines.values())

    def _step(self, id: str, row: int | None, cells: tuple[str, ...]) -> None:
        """Note the energy of a step of the job of a row, or of an id if the step does not follow its job."""
        for place, read in self._sources["energy_j"]:
            energy_j = read(cells[place : place + 1]).item()
            if energy_j == energy_j:
                if row is not None:
                    self._by_row[row] = max(self._by_row.get(row, 0.0), energy_j)
                else:
                    self._by_id[id] = max(self._by_id.get(id, 0.0), energy_j)
                return

    def columns(self, rows: list[tuple[str, ...]]) -> Jobs:
        """Return the lines of a part as columns."""
        texts = list(zip(*rows, strict=True))

        def number_of(what: str) -> Numbers:
            merged = np.full(len(rows), np.nan)
            for place, read in self._sources[what]:
                missing = np.isnan(merged)
                if not missing.any():
                    break
                merged[missing] = read(texts[place])[missing]
            return merged

        def text_of(*fields: str) -> Texts:
            merged = np.full(len(rows), "", dtype=object)
            for column in [texts[self._place[name]] for name in fields if name in self._place]:
                missing = merged == ""
                if not missing.any():
                    break
                stripped = {text: text.strip() for text in set(column)}
                merged[missing] = np.array([stripped[text] for text in column], dtype=object)[missing]
            return merged

        def later(since_s: Numbers, field: str) -> Numbers:
            return later_s(since_s, texts[self._place[field]], self.options.zone) if field in self._place else unknown

        unknown = np.full(len(rows), np.nan)
        submit_s, run_s = number_of("submit_s"), number_of("run_s")
        start_s = later(submit_s, "start")
        if np.isnan(run_s).any():
            run_s = np.where(np.isnan(run_s), later(start_s, "end") - start_s, run_s)
        memory = number_of("memory")
        for what in ("cpus", "nodes"):
            per = number_of(f"memory of {what}")
            memory = np.where(np.isnan(memory), per * number_of(f"all {what}"), memory)
        labels = _LABELS | ({"group": _ACCOUNTS} if self.options.accounting else {})
        columns: dict[str, Any] = {
            "id": np.array([id.strip() for id in texts[0]], dtype=object),
            SUBMISSION: submit_s,
            LENGTH: run_s,
            HOSTS: number_of("cpus"),
            STATE: text_of("state"),
            MEMORY: memory,
            ESTIMATE: number_of("estimate"),
            START_S: start_s,
            ENERGY_J: number_of("energy_j"),
        }
        return Jobs(columns | {name: text_of(*labels[name]) for name in LABELS}, self.path)

    def add_energy_of_steps(self, log: Jobs) -> None:
        """Set the energy of jobs whose lines have none to that of their steps."""
        if self._by_id:
            for row, id in enumerate(log["id"].tolist()):
                if (energy_j := self._by_id.pop(id, None)) is not None:
                    self._by_row[row] = max(self._by_row.get(row, 0.0), energy_j)
        if self._by_row:
            rows = np.array(list(self._by_row))
            steps_j = np.array(list(self._by_row.values()))
            own_j = log[ENERGY_J][rows]
            log[ENERGY_J][rows] = np.where(np.isnan(own_j), steps_j, own_j)


# fields ---------------------------------------------------------------------------------------------------------


def _sources(options: LogOptions, path: object) -> dict[str, Sources]:
    """Return quantity of a job -> fields that state it, with their parsers."""
    memory = partial(_memory_gb, path=path)
    date: Read = partial(dates_s, zone=options.zone)
    count, joules = _by_text(_count), _by_text(_joules)
    widths: dict[str, Sources] = {
        "cpus": [("alloccpus", count), ("alloctres", _tres("cpu", _count)), ("ncpus", count), ("reqcpus", count)],
        "nodes": [("allocnodes", count), ("alloctres", _tres("node", _count)), ("nnodes", count), ("reqnodes", count)],
    }
    return {
        "cpus": widths[options.width],
        "all cpus": widths["cpus"],
        "all nodes": widths["nodes"],
        "run_s": [("elapsedraw", _by_text(number)), ("elapsed", _by_text(duration_s))],
        "submit_s": [("submit", date), ("eligible", date)],
        "estimate": [("timelimitraw", _by_text(_minutes)), ("timelimit", _by_text(_limit))],
        "memory": [("alloctres", _tres("mem", memory)), ("reqmem", _by_text(memory))],
        "memory of cpus": [("reqmem", _by_text(partial(memory, per="c")))],
        "memory of nodes": [("reqmem", _by_text(partial(memory, per="n")))],
        "energy_j": [
            ("consumedenergyraw", joules),
            ("consumedenergy", joules),
            ("alloctres", _tres("energy", _joules)),
        ],
    }


def _by_text(read: Callable[[str], float]) -> Read:
    return partial(each, read=read)


def _tres(name: str, read: Callable[[str], float]) -> Read:
    """Return a parser of the value of `name` in texts such as `billing=8,cpu=8,mem=22400M`."""
    begin = f"{name}="

    def read_part(text: str) -> float:
        return next((read(part[len(begin) :]) for part in text.split(",") if part.startswith(begin)), math.nan)

    return _by_text(read_part)


def _count(text: str) -> float:
    value = size(text, 1000.0)
    return value if value >= 1.0 else math.nan


def _minutes(text: str) -> float:
    return 60.0 * number(text)


def _limit(text: str) -> float:
    value = duration_s(text)
    return value if value > 0.0 else math.nan


def _joules(text: str) -> float:
    value = size(text, 1000.0)
    return value if 0.0 < value < _UNKNOWN_J else math.nan


def _memory_gb(text: str, path: object, per: str = "") -> float:
    """Parse ReqMem to GB if it is per CPU (`c`), per node (`n`) or of the job (empty), as `per`; else return NaN.

    Raises InputError for a number without a unit that must be in bytes.
    """
    suffix = text[-1:].lower() if text[-1:].lower() in ("c", "n") else ""
    amount = text[: len(text) - len(suffix)]
    if match := _WHOLE_MB.fullmatch(amount):
        whole_mb = int(match[1])
        flag = next((flag for flag in _PER_CPU_MB if flag <= whole_mb < flag + _MOST_MB), 0)
        if not match[2] and whole_mb - flag >= _MOST_MB:
            problem = f"memory {text} without a unit is in MB for Slurm, which is {whole_mb / 2**20:.0f} TB"
            raise InputError(path, problem, f"write K, M, G or T after it: bytes / 1024 and K, as {whole_mb // 1024}K")
        amount, suffix = f"{whole_mb - flag}M", "c" if flag else suffix
    elif amount[-1:].isdigit():
        amount += "M"
    value_gb = size(amount, 1024.0) / _B_PER_GB
    return value_gb if suffix == per and value_gb > 0.0 else math.nan
