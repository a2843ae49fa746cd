"""A window of a job trace as a Batsim workload (section 5.2 of the riskaware paper)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Any

import numpy as np

from batwatt.checks import finite
from batwatt.errors import InputError
from batwatt.inputs.traces.dependencies import within
from batwatt.inputs.traces.trace import TraceJob
from batwatt.inputs.traces.trace_table import TraceTable
from batwatt.model.signal import date_text
from batwatt.model.workload import DEPENDS, LENGTH, RELEASE, Delay, JobSpec, Workload
from batwatt.protocol.numbers import MAX_INT
from batwatt.protocol.workload4 import full_id
from batwatt.units import number_text

MAX_S = 1e15
"""Greatest time in s at which a float roughly resolves microseconds."""


def window_workload(
    jobs: Iterable[TraceJob],
    begin_s: float | None,
    end_s: float | None,
    nb_res: int,
    name: str = "w0",
    source: object = "<memory>",
) -> Workload:
    """Return the jobs of a window [begin_s, end_s] (s; both None: all jobs) as a Batsim workload.

    Jobs of the window have begin - length < release <= end. A job released earlier has run since its release: it is
    submitted at `begin_s` with its remaining length, length - (begin - release), and fields `release_s` and `length_s`
    of the whole job, by which it starts again if it is killed. Times are those of the trace. Profiles are delays named
    by their length, such as d300; there is no walltime: a requested time becomes `estimate_s`. The extra fields
    `memory`, `use`, `checkpoint_s`, `recovery_s`, `power_w`, `start_s` (in the time of the trace), `user`, `group`,
    `queue`, `qos` stay, and `depends_on` with jobs of the window: others have completed. A job wider than `nb_res`
    stays: the scheduler rejects it.

    Section 5.2 of the riskaware paper: r_i in [T_begin - w_i, T_end]. Raises InputError, which names `source`.
    """
    begin, end = _bounds(begin_s, end_s, source)
    table = TraceTable.of(jobs, source)
    _check(table, name, source)
    early = table.submit_s < begin
    left_s = table.run_s.copy()
    # one by one, as `round` and numpy differ in the last digit
    left_s[early] = [round(value, 6) for value in (table.run_s - (begin - table.submit_s))[early].tolist()]
    submits_s = np.maximum(table.submit_s, begin)
    inside = np.flatnonzero((table.submit_s <= end) & (left_s > 0.0))
    if not len(inside):
        where = "" if begin_s is None else f" in the window [{begin:g}, {end:g}] s"
        raise InputError(source, f"no job{where}, of {len(table)}", "move the window or take another trace")
    by_id = np.array(sorted(inside.tolist(), key=table.ids.tolist().__getitem__))
    rows = by_id[np.argsort(submits_s[by_id], kind="stable")]
    table, early = table.rows(rows), early[rows]
    lengths, profile_of = np.unique(left_s[rows], return_inverse=True)
    delays = {f"d{number_text(length_s)}": length_s for length_s in lengths.tolist()}
    names = list(delays)
    ids = table.ids.tolist()
    depends = within(table.depends, set(ids), source) if table.depends else {}
    together = " ".join(ids)
    usual = all(ids) and "!" not in together and name not in together
    needs = [(field, column.tolist()) for field, column in table.needs.items()]
    labels = [(field, column.tolist()) for field, column in table.labels.items()]
    window_jobs = []
    submits = submits_s[rows].tolist()
    plain = [int(time_s) if time_s.is_integer() else time_s for time_s in submits]
    columns = (table.cpus.astype(int).tolist(), profile_of.tolist(), early.tolist())
    for row, (id, submit_s, subtime, cpus, profile, before) in enumerate(
        zip(ids, submits, plain, *columns, strict=True)
    ):
        own = f"{name}!{id}" if usual else full_id(id, name, f"{source}: job {id!r}")
        raw: dict[str, Any] = {"id": own, "subtime": subtime, "res": cpus, "profile": names[profile]}
        if before:
            raw[RELEASE], raw[LENGTH] = _plain(float(table.submit_s[row])), _plain(float(table.run_s[row]))
        if needs:
            raw |= {field: _plain(value) for field, values in needs if (value := values[row]) == value}
        if labels:
            raw |= {field: text for field, texts in labels if (text := texts[row])}
        if id in depends:
            raw[DEPENDS] = depends[id]
        window_jobs.append(JobSpec(own, submit_s, cpus, names[profile], None, raw))
    return Workload(
        name=name,
        jobs=tuple(window_jobs),
        profiles={profile: Delay(length_s) for profile, length_s in delays.items()},
        raw_profiles={profile: {"type": "delay", "delay": _plain(length_s)} for profile, length_s in delays.items()},
        nb_res=nb_res,
        source=str(source),
        recorded=True,
        begin="" if table.origin_s is None else date_text(table.origin_s),
    )


def workload_json(workload: Workload) -> dict[str, Any]:
    """Return a workload as JSON data for Batsim."""
    rows = [{**job.raw, "id": job.name} for job in workload.jobs]
    return {"nb_res": workload.nb_res, "jobs": rows, "profiles": dict(workload.raw_profiles)}


def _plain(value: float) -> float:
    """Return a number, as an int if whole."""
    return int(value) if value.is_integer() else value


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


def _check(table: TraceTable, workload: str, source: object) -> None:
    """Raise InputError for a job that cannot run, and for an id of two jobs."""
    times = (table.submit_s >= 0.0) & (table.submit_s <= MAX_S) & (table.run_s > 0.0) & (table.run_s <= MAX_S)
    good = times & (table.cpus >= 1) & (table.cpus <= MAX_INT)
    if not good.all():
        job = table[int(np.argmin(good))]
        problem = f"needs a release >= 0 s, a length > 0 s and cores in 1..{MAX_INT}, got "
        problem += f"{job.submit_s!r}, {job.run_s!r}, {job.cpus!r}"
        raise InputError(f"{source}: job {job.id!r}", problem, "leave jobs of unknown length or width out")
    names = [id.removeprefix(f"{workload}!") for id in table.ids.tolist()]
    if len(set(names)) < len(names):
        [(twice, _)] = Counter(names).most_common(1)
        raise InputError(f"{source}: job {twice!r}", "appears twice", "ids must differ: renumber the jobs")
