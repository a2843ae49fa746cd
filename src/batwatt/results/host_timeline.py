"""Timeline of all servers, computed from Batsim's files: p-states and jobs over time."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from batwatt.errors import InputError
from batwatt.model.hostset import from_text, ids, intervals
from batwatt.model.platform import Platform
from batwatt.results import run_files
from batwatt.results.metrics import SUCCESSFUL
from batwatt.results.run_files import file_of

STATES = ASLEEP, SWITCHING_OFF, SWITCHING_ON = "asleep", "switching off", "switching on"
REQUEST_ON, REQUEST_SLEEP = -1, -2
"""Values in Batsim's file of a request to wake or for DVFS, and to sleep; other negative numbers change nothing."""


@dataclass(frozen=True, slots=True)
class StateSegment:
    """A time in which one server stays in one state: a p-state of computation, by its index, or one of the texts."""

    host: int
    start_s: float
    end_s: float
    state: int | str


@dataclass(frozen=True, slots=True)
class DrawnRun:
    """A run of a job on neighbouring servers low..high; a job on several such groups has one for each."""

    job: str
    low: int
    high: int
    start_s: float
    end_s: float
    killed: bool


@dataclass(frozen=True)
class HostTimeline:
    """Spans by server and time, and runs in the order of their ends, until `end_s`."""

    spans: tuple[StateSegment, ...]
    runs: tuple[DrawnRun, ...]
    end_s: float

    def computing(self) -> Iterator[StateSegment]:
        """Yield the parts of the spans in which a job runs on the server."""
        busy: dict[int, list[tuple[float, float]]] = {}
        for run in sorted(self.runs, key=lambda run: (run.start_s, run.end_s)):
            for host in range(run.low, run.high + 1):
                busy.setdefault(host, []).append((run.start_s, run.end_s))
        position: dict[int, int] = {}
        for span in self.spans:
            times = busy.get(span.host, [])
            # spans of a server are in the order of time: skip the runs that ended before
            first = position.get(span.host, 0)
            while first < len(times) and times[first][1] <= span.start_s:
                first += 1
            position[span.host] = first
            for start_s, end_s in times[first:]:
                if start_s >= span.end_s:
                    break
                cut = StateSegment(span.host, max(start_s, span.start_s), min(end_s, span.end_s), span.state)
                if cut.end_s > cut.start_s:
                    yield cut


def read_timeline(prefix: Path | str, platform: Platform) -> HostTimeline:
    """Return the timeline of the run whose files are under `prefix`, up to the end of the last job.

    Needs `PREFIX_jobs.csv` and `PREFIX_pstate_changes.csv`. Raises InputError if they are missing, malformed, or name
    hosts or p-states that the platform does not have.
    """
    runs = tuple(_runs(prefix, len(platform)))
    end_s = max((run.end_s for run in runs), default=0.0)
    return HostTimeline(tuple(_spans(prefix, platform, end_s)), runs, end_s)


def _runs(prefix: Path | str, hosts: int) -> Iterator[DrawnRun]:
    frame = run_files.jobs(prefix)
    ran = frame[frame["final_state"] != run_files.REJECTED]
    columns = ("job_id", "allocated_resources", "starting_time", "finish_time", "final_state")
    for row, (job, where, start_s, end_s, state) in zip(
        ran.index.tolist(), zip(*(ran[name].tolist() for name in columns), strict=True), strict=True
    ):
        mask = _hosts(where, hosts, f"{file_of(prefix, 'jobs')}: row {row + 1}")
        for low, high in intervals(mask):
            yield DrawnRun(job, low, high, start_s, end_s, state != SUCCESSFUL)


def _spans(prefix: Path | str, platform: Platform, end_s: float) -> Iterator[StateSegment]:
    """Yield the states of each server; a server without a row stays in its initial p-state."""
    path = file_of(prefix, "pstate_changes")
    frame = run_files.pstate_changes(prefix)
    now: list[int | str] = [_state(platform, host.id, host.initial_pstate) for host in platform.hosts]
    since = [0.0] * len(platform)
    spans: list[list[StateSegment]] = [[] for _ in platform.hosts]

    def become(host: int, state: int | str, time_s: float) -> None:
        if state == now[host]:
            return
        if time_s > since[host]:
            spans[host].append(StateSegment(host, since[host], time_s, now[host]))
        now[host], since[host] = state, time_s

    columns = zip(*(frame[name].tolist() for name in ("time", "machine_id", "new_pstate")), strict=True)
    for row, (time_s, where, pstate) in enumerate(columns):
        place = f"{path}: row {row + 1}"
        for host in ids(_hosts(where, len(platform), place)):
            if pstate >= len(platform.hosts[host].pstates):
                name = platform.hosts[host].name
                raise InputError(place, f"{name} has no p-state {pstate}", "name the platform of that run")
            if pstate >= 0:
                become(host, _state(platform, host, pstate), min(time_s, end_s))
            elif pstate == REQUEST_SLEEP:
                become(host, SWITCHING_OFF, min(time_s, end_s))
            elif pstate == REQUEST_ON and now[host] == ASLEEP:
                become(host, SWITCHING_ON, min(time_s, end_s))
    for host in range(len(platform)):
        become(host, "end", end_s)
        yield from spans[host]


def _state(platform: Platform, host: int, pstate: int) -> int | str:
    return ASLEEP if pstate in platform.hosts[host].sleep_of else pstate


def _hosts(text: str, count: int, place: str) -> int:
    """Return the mask of an interval string. Raises InputError for a host beyond the `count` of the platform."""
    try:
        mask = from_text(text)
    except ValueError as error:
        raise InputError(place, str(error), "run the simulation again") from None
    if mask >> count:
        raise InputError(place, f"host {mask.bit_length() - 1} is not one of the {count} of the platform",
                         "name the platform of that run")  # fmt: skip
    return mask
