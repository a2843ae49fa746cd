"""A window of a job trace as a Batsim workload (section 5.2 of the riskaware paper)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from batwatt.checks import finite
from batwatt.errors import InputError
from batwatt.inputs.platforms.platform_gen import number_text
from batwatt.inputs.traces.dependencies import within
from batwatt.inputs.traces.table_workload import MAX_S, plain, table_workload
from batwatt.inputs.traces.trace import TraceJob
from batwatt.inputs.traces.trace_table import TraceTable
from batwatt.inputs.workloads.batsim_json import parse_workload
from batwatt.model.workload import (
    CHECKPOINT_S,
    DEPENDS,
    ESTIMATE,
    LENGTH,
    MEMORY,
    RECOVERY_S,
    RELEASE,
    USE,
    Workload,
)
from batwatt.units import microseconds


def window_workload(
    jobs: Iterable[TraceJob],
    begin_s: float | None,
    end_s: float | None,
    nb_res: int,
    name: str = "w0",
    source: object = "<memory>",
) -> Workload:
    """The workload of `window_json`, as if that had been written to `source` and read back. Raises InputError."""
    if isinstance(jobs, TraceTable):
        workload = table_workload(jobs, *_bounds(begin_s, end_s, source), nb_res, name, source)
        if workload is not None:
            return workload
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
    `length_s` say what it was; so it starts again whole if it is killed. Times stay those of the trace. Profiles are
    delays named by their length, such as d300; there is no walltime: a requested time is kept as `estimate_s`. Of the
    extra fields `memory`, `use`, `checkpoint_s`, `recovery_s` and `depends_on` are kept, of the latter what is in the
    window, too: what is not has completed. A job wider than `nb_res` stays: the scheduler rejects it.

    Section 5.2 of the riskaware paper: r_i in [T_begin - w_i, T_end]. Raises InputError; `source` is named in it.
    """
    begin, end = _bounds(begin_s, end_s, source)
    rows: list[dict[str, Any]] = []
    profiles: dict[float, str] = {}
    seen: set[str] = set()
    depends: dict[str, list[str]] = {}
    for job in jobs:
        release_s, length_s = _checked(job, source)
        if job.id in seen:
            raise InputError(f"{source}: job {job.id!r}", "appears twice", "ids must differ: renumber the jobs")
        seen.add(job.id)
        left_s = round(length_s - (begin - release_s), 6) if release_s < begin else length_s
        if release_s > end or not left_s > 0.0:
            continue
        profile = profiles.get(left_s) or profiles.setdefault(left_s, f"d{number_text(left_s)}")
        row = {"id": job.id, "subtime": plain(max(release_s, begin)), "res": job.cpus, "profile": profile}
        if release_s < begin:
            row |= {RELEASE: plain(release_s), LENGTH: plain(length_s)}
        row |= _needs(job, source)
        if DEPENDS in job.extra:
            depends[job.id] = _ids(job, source)
        rows.append(row)
    if not rows:
        where = "" if begin_s is None else f" in the window [{begin:g}, {end:g}] s"
        raise InputError(source, f"no job{where}, of {len(seen)}", "move the window or take another trace")
    if depends:
        inside = within(depends, {row["id"] for row in rows}, source)
        for row in rows:
            if row["id"] in inside:
                row[DEPENDS] = inside[row["id"]]
    rows.sort(key=lambda row: (row["subtime"], row["id"]))
    delays = {name: {"type": "delay", "delay": plain(left_s)} for left_s, name in sorted(profiles.items())}
    return {"nb_res": nb_res, "jobs": rows, "profiles": delays}


def _bounds(begin_s: float | None, end_s: float | None, source: object) -> tuple[float, float]:
    if begin_s is None and end_s is None:
        return 0.0, MAX_S
    try:
        begin, end = round(finite(begin_s), 6), round(finite(end_s), 6)
    except ValueError:
        problem = f"a window needs two finite times, got {begin_s!r} and {end_s!r}"
        raise InputError(source, problem, "give begin_s and end_s in s, or neither for the whole trace") from None
    if not 0.0 <= begin < end <= MAX_S:
        problem = f"a window must satisfy 0 <= begin_s < end_s, got {begin_s!r} and {end_s!r}"
        raise InputError(source, problem, "correct the two times")
    return begin, end


def _checked(job: TraceJob, source: object) -> tuple[float, float]:
    """Release and length in s, to the microsecond."""
    release_s, length_s = microseconds(float(job.submit_s)), microseconds(float(job.run_s))
    if not (0.0 <= release_s <= MAX_S and 0.0 < length_s <= MAX_S and job.cpus >= 1):
        problem = (
            f"needs a release >= 0 s, a length > 0 s and cores >= 1, got {release_s!r}, {length_s!r}, {job.cpus!r}"
        )
        raise InputError(f"{source}: job {job.id!r}", problem, "leave jobs of unknown length or width out")
    return release_s, length_s


def _needs(job: TraceJob, source: object) -> dict[str, Any]:
    """What is known of the memory, the use, the user's estimate, the checkpoints and the recoveries of a job."""
    needs: dict[str, Any] = {}
    for name in (MEMORY, ESTIMATE, USE, CHECKPOINT_S, RECOVERY_S):
        value = job.requested_s if name == ESTIMATE else job.extra.get(name)
        if value is None:
            continue
        try:
            number = microseconds(finite(value))
        except ValueError as error:
            raise InputError(f"{source}: job {job.id!r}", f"{name}: {error}", "leave it out if unknown") from None
        if not number >= 0.0 or (name == USE and not 0.0 < number <= 1.0):
            bounds = "in ]0, 1]" if name == USE else ">= 0"
            raise InputError(f"{source}: job {job.id!r}", f"{name} must be {bounds}, got {value!r}", "correct it")
        if name != ESTIMATE or number > 0.0:
            needs[name] = plain(number)
    return needs


def _ids(job: TraceJob, source: object) -> list[str]:
    names = job.extra[DEPENDS]
    if not isinstance(names, list | tuple) or not all(isinstance(name, str) for name in names):
        problem = f"{DEPENDS} must be a list of ids, got {names!r}"
        raise InputError(f"{source}: job {job.id!r}", problem, 'write for instance ["17"]')
    return list(names)
