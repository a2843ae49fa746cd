"""A window of a job trace as a Batsim workload (section 5.2 of the riskaware paper)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from batwatt.errors import InputError
from batwatt.inputs.batsim_json import parse_workload
from batwatt.inputs.platform_gen import number_text
from batwatt.inputs.trace import TraceJob
from batwatt.model.workload import LENGTH, RELEASE, Workload
from batwatt.units import finite, microseconds

_MAX_S = 1e15
"""Longest time in s whose microseconds a float still tells apart, roughly."""


def window_workload(
    jobs: Iterable[TraceJob],
    begin_s: float | None,
    end_s: float | None,
    nb_res: int,
    name: str = "w0",
    source: object = "<memory>",
) -> Workload:
    """The workload of `window_json`, as if that had been written to `source` and read back. Raises InputError."""
    return parse_workload(window_json(jobs, begin_s, end_s, nb_res, source), name, source)


def window_json(
    jobs: Iterable[TraceJob],
    begin_s: float | None,
    end_s: float | None,
    nb_res: int,
    source: object = "<memory>",
) -> dict[str, Any]:
    """The jobs of the window [begin_s, end_s] (s; both None: all jobs) as JSON data for Batsim, in its order.

    Kept are the jobs with begin - length < release <= end. One released before the window is taken to have run since:
    it is submitted at `begin_s` with what is left of it, length - (begin - release), and its fields `release_s` and
    `length_s` say what it was; so it starts again whole if it is killed. Dates stay those of the trace. Profiles are
    delays named by their length, such as d300; there is no walltime, and neither requested time nor extra fields of
    a trace job are kept. A job wider than `nb_res` stays: the scheduler rejects it.

    Section 5.2 of the riskaware paper: r_i in [T_begin - w_i, T_end]. Raises InputError; `source` is named in it.
    """
    begin, end = _bounds(begin_s, end_s, source)
    rows: list[dict[str, Any]] = []
    profiles: dict[float, str] = {}
    seen: set[str] = set()
    for job in jobs:
        release_s, length_s = _checked(job, source)
        if job.id in seen:
            raise InputError(f"{source}: job {job.id!r}", "is there twice", "ids must differ: renumber the jobs")
        seen.add(job.id)
        left_s = round(length_s - (begin - release_s), 6) if release_s < begin else length_s
        if release_s > end or not left_s > 0.0:
            continue
        profile = profiles.get(left_s) or profiles.setdefault(left_s, f"d{number_text(left_s)}")
        row = {"id": job.id, "subtime": _plain(max(release_s, begin)), "res": job.cpus, "profile": profile}
        if release_s < begin:
            row |= {RELEASE: _plain(release_s), LENGTH: _plain(length_s)}
        rows.append(row)
    if not rows:
        where = "" if begin_s is None else f" in the window [{begin:g}, {end:g}] s"
        raise InputError(source, f"no job{where}, of {len(seen)}", "move the window or take another trace")
    rows.sort(key=lambda row: (row["subtime"], row["id"]))
    delays = {name: {"type": "delay", "delay": _plain(left_s)} for left_s, name in sorted(profiles.items())}
    return {"nb_res": nb_res, "jobs": rows, "profiles": delays}


def _bounds(begin_s: float | None, end_s: float | None, source: object) -> tuple[float, float]:
    if begin_s is None and end_s is None:
        return 0.0, _MAX_S
    try:
        begin, end = round(finite(begin_s), 6), round(finite(end_s), 6)
    except ValueError:
        problem = f"a window needs two finite dates, got {begin_s!r} and {end_s!r}"
        raise InputError(source, problem, "give begin_s and end_s in s, or neither for the whole trace") from None
    if not 0.0 <= begin < end <= _MAX_S:
        problem = f"a window must satisfy 0 <= begin_s < end_s, got {begin_s!r} and {end_s!r}"
        raise InputError(source, problem, "correct the two dates")
    return begin, end


def _checked(job: TraceJob, source: object) -> tuple[float, float]:
    """Release and length in s, to the microsecond."""
    release_s, length_s = microseconds(float(job.submit_s)), microseconds(float(job.run_s))
    if not (0.0 <= release_s <= _MAX_S and 0.0 < length_s <= _MAX_S and job.cpus >= 1):
        problem = (
            f"needs a release >= 0 s, a length > 0 s and cores >= 1, got {release_s!r}, {length_s!r}, {job.cpus!r}"
        )
        raise InputError(f"{source}: job {job.id!r}", problem, "leave jobs of unknown length or width out")
    return release_s, length_s


def _plain(value: float) -> float:
    """The same number, as an int if whole."""
    return int(value) if float(value).is_integer() else value
