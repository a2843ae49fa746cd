"""The workloads and external events of Batsim 5, checked as strictly as by Batsim 5.

Profiles have full ids (`w0!delay`), and are stored in the form of messages (`raw_profiles`) and parsed; `raw` of a job
is its form in messages.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from operator import attrgetter
from typing import Any

from batwatt.checks import load_json, shown
from batwatt.errors import InputError, UnknownNameError, UnsupportedError
from batwatt.model.workload import Composed, Delay, JobSpec, Parallel, Profile, Workload
from batwatt.protocol.numbers import MAX_INT, batsim_float, batsim_number

EACH, SPREAD = "DefinedAmountsUsedForEachValue", "DefinedAmountsSpreadUniformly"
"""Strategies of amounts: for each host, or for all of them together."""
_COMPUTATION = {"cpu": "computation_amount", "com": "communication_amount"}
_STORAGE = {"bytes_read": "bytes_to_read", "bytes_write": "bytes_to_write", "storage": "storage_name"}
_STAGING = {"nb_bytes": "bytes_to_transfer", "from": "emitter_storage_name", "to": "receiver_storage_name"}
FIELDS: dict[str, tuple[str, Mapping[str, str], Mapping[str, Any]]] = {
    "delay": ("DelayProfile", {"delay": "delay"}, {}),
    "parallel": ("ParallelTaskProfile", {"cpu": "computation_vector", "com": "communication_matrix"}, {}),
    "parallel_homogeneous": ("ParallelTaskHomogeneousProfile", _COMPUTATION, {"generation_strategy": EACH}),
    "parallel_homogeneous_total": ("ParallelTaskHomogeneousProfile", _COMPUTATION, {"generation_strategy": SPREAD}),
    "composed": ("SequentialCompositionProfile", {"repeat": "repetition_count", "seq": "profile_ids"}, {}),
    "parallel_homogeneous_pfs": ("ParallelTaskOnStorageHomogeneousProfile", _STORAGE, {"generation_strategy": EACH}),
    "data_staging": ("ParallelTaskDataStagingBetweenStoragesProfile", _STAGING, {}),
    "smpi": ("TraceReplayProfile", {"trace": "filename"}, {"trace_type": "SMPI"}),
    "usage_trace": ("TraceReplayProfile", {"trace": "filename"}, {"trace_type": "FractionalComputation"}),
}
"""Type of Batsim 4 -> type of batprotocol, names of fields in both, and the values that distinguish equal types."""
IN_FILES = ("delay", "parallel", "parallel_homogeneous", "parallel_homogeneous_total", "composed")
"""Types whose amounts have equal names in files of Batsim 4 and 5."""
NAMES: dict[str, str | None] = {
    **{FIELDS[kind][0]: kind for kind in IN_FILES if kind != "parallel_homogeneous_total"},
    "ForkJoinCompositionProfile": None,
    "ParallelTaskMergeCompositionProfile": None,
}
"""Profile types of Batsim 5's files that batwatt supports -> their names in Batsim 4."""
_REAL_BATSIM = "run it on the real Batsim"


def full_profile_id(name: str, workload: str) -> str:
    """Return the full id `w0!delay` of `delay` or `w0!delay`."""
    return name if "!" in name else f"{workload}!{name}"


def table_of(name: str, kind: str, table: Mapping[str, Any], extra_data: str) -> dict[str, Any]:
    """Return a profile in the form of messages."""
    more = {"extra_data": extra_data} if extra_data else {}
    return {"id": name, "profile_type": kind, "profile": table, **more}


def job_table(
    hosts: int, walltime_s: float | None, extra_data: str, profile_id: str, rigid: bool = True
) -> dict[str, Any]:
    """Return a job in the form of messages."""
    return {
        "resource_request": hosts,
        "walltime": walltime_s,
        "extra_data": extra_data,
        "rigid": rigid,
        "profile_id": profile_id,
    }


def of_batsim_5(raw_profiles: Mapping[str, Any]) -> str | None:
    """Return the first profile of a workload that is one of Batsim 5, with its type; None without one."""
    for name, raw in raw_profiles.items():
        kind = raw.get("type") if isinstance(raw, dict) else None
        if isinstance(kind, str) and (kind in NAMES or kind in _NOT_SIMULATED):
            return f"profile {shown(name)} is a {kind}"
    return None


def refuse_batsim_5(raw_profiles: Mapping[str, Any], where: object) -> None:
    """Raise InputError if a profile of a workload is one of Batsim 5."""
    if profile := of_batsim_5(raw_profiles):
        problem = f"is a workload of Batsim 5 ({profile}), and batwatt reads those of Batsim 4"
        hint = "convert it: `batwatt convert FILE --to batsim4`; or play Batsim 5 with `batwatt engine`"
        raise InputError(where, problem, hint)


def job_of(
    name: str, submit_s: float, hosts: int, profile_id: str, walltime_s: float | None, extra: str, rigid: bool = True
) -> JobSpec:
    """Return a job, with its form in messages as `raw`."""
    table = job_table(hosts, walltime_s, extra, profile_id, rigid)
    raw = {"job": table, "submission_time": submit_s}
    limit = None if walltime_s is None or walltime_s < 0.0 else walltime_s
    return JobSpec(name, submit_s, hosts, profile_id, limit, raw)


def profile_of(name: str, kind: str, table: Mapping[str, Any], ret: int, where: object) -> Profile:
    """Parse the profile of a table of the protocol. Raises InputError if Batsim refuses it or it is not simulated."""

    def amount(field: str, value: float) -> float:
        if not value >= 0.0:
            raise InputError(where, f"{field!r} must be positive ({value!r})", "correct the value")
        return value

    if kind == "DelayProfile":
        if not 0.0 < table["delay"] < math.inf:
            raise InputError(where, f"non-strictly-positive 'delay' ({table['delay']!r})", "give a time in s")
        return Delay(table["delay"], ret)
    if kind == "ParallelTaskHomogeneousProfile":
        flops = amount("computation_amount", table["computation_amount"])
        _refuse_communication(amount("communication_amount", table["communication_amount"]), where)
        if table["generation_strategy"] == SPREAD:
            return Parallel(None, flops, return_code=ret)
        return Parallel(flops, return_code=ret)
    if kind == "ParallelTaskProfile":
        sent = [amount("communication_matrix", value) for value in table["communication_matrix"] or ()]
        # without computations, the square root of the number of communications is that of the hosts
        listed = table["computation_vector"] or [0.0] * math.isqrt(len(sent))
        values = tuple(amount("computation_vector", value) for value in listed)
        if not values or (sent and len(sent) != len(values) ** 2):
            problem = f"inconsistent computation and communication vector sizes ({len(values)}, {len(sent)})"
            raise InputError(where, problem, "give one value per host, and one per ordered pair of hosts")
        _refuse_communication(max(sent, default=0.0), where)
        return Parallel(flops=values, return_code=ret)
    if kind == "SequentialCompositionProfile":
        home = name.partition("!")[0]
        parts = tuple(full_profile_id(part, home) for part in table["profile_ids"])
        if not parts or not table["repetition_count"] > 0:
            raise InputError(where, "a sequence must have parts and be run once at least", "name a profile")
        return Composed(parts, table["repetition_count"], ret)
    if NAMES.get(kind, "") is None:
        raise InputError(where, f"{kind} is not implemented in Batsim 5", "use other profiles")
    raise UnsupportedError(where, f"profiles of type {kind} are not simulated by batwatt", _REAL_BATSIM)


def _refuse_communication(amount: float, where: object) -> None:
    if amount > 0.0:
        raise UnsupportedError(
            where, f"it communicates {amount:g} bytes, which batwatt does not simulate", _REAL_BATSIM
        )


# workloads ------------------------------------------------------------------------------------------------------------


def parse_workload5(data: Any, name: str, path: object, *, simulate: bool = True) -> Workload:
    """Parse the workload of a JSON object of Batsim 5.

    With `simulate=False` profiles that only Batsim models are accepted. Raises InputError, which names `path`.
    """
    place = f"{path}: the workload"
    _need(data, {"nb_res": "whole", "jobs": "list", "profiles": "object"}, place)
    profiles: dict[str, Profile] = {}
    tables: dict[str, Mapping[str, Any]] = {}
    unsupported: dict[str, UnsupportedError] = {}
    for short, raw in data["profiles"].items():
        full = f"{name}!{short}"
        where = f"{path}: profile {full!r}"
        tables[full], arguments = _profile(full, raw, where)
        try:
            profiles[full] = profile_of(full, *arguments, where)
        except UnsupportedError as error:
            unsupported[full] = error
    for full, profile in profiles.items():
        place = f"{path}: profile {full!r}"
        for part in profile.sequence if isinstance(profile, Composed) else ():
            if part not in tables:
                raise InputError(place, f"the used profile {part!r} does not exist", "add it to 'profiles'")
            if full in parts_of(part, profiles):
                raise InputError(place, "contains itself", "take the cycle out of 'seq'")
    jobs: dict[str, JobSpec] = {}
    for index, raw in enumerate(data["jobs"]):
        job = _job(raw, name, f"{path}: jobs[{index}]")
        if job.id in jobs:
            raise InputError(
                f"{path}: jobs[{index}]", f"duplication of job id {job.id!r}", "give each an id of its own"
            )
        if simulate and not unsupported.keys().isdisjoint(parts_of(job.profile, profiles)):
            raise next(error for part, error in unsupported.items() if part in parts_of(job.profile, profiles))
        used = profiles.get(job.profile)
        if used is None and job.profile not in unsupported:
            raise UnknownNameError(f"{path}: job {job.id!r}", "profile", job.profile, profiles, "Add it to 'profiles'.")
        if isinstance(used, Parallel) and used.flops is not None and len(used.flops) != job.hosts:
            problem = f"'res' is {job.hosts} but its profile {job.profile!r} describes {len(used.flops)} hosts"
            raise InputError(f"{path}: job {job.id!r}", problem, "make the number of 'cpu' values equal to 'res'")
        jobs[job.id] = job
    ordered = tuple(sorted(jobs.values(), key=attrgetter("submit_time_s", "id")))
    return Workload(name, ordered, profiles, tables, data["nb_res"], str(path))


def parts_of(name: str, profiles: Mapping[str, Profile]) -> list[str]:
    """Return the ids of a profile and of all of its parts."""
    ids = {name: None}
    todo = [name]
    while todo:
        profile = profiles.get(todo.pop())
        for part in profile.sequence if isinstance(profile, Composed) else ():
            if part not in ids:
                ids[part] = None
                todo.append(part)
    return list(ids)


_KINDS: dict[str, tuple[str, Any]] = {
    "number": ("a finite number", lambda value: type(value) in (int, float) and math.isfinite(value)),
    "whole": (f"an integer of 0 to {MAX_INT}", lambda value: type(value) is int and 0 <= value <= MAX_INT),
    "text": ("a text", lambda value: isinstance(value, str)),
    "name": ("a text or an integer", lambda value: isinstance(value, str) or type(value) is int),
    "list": ("a list", lambda value: isinstance(value, list)),
    "object": ("an object", lambda value: isinstance(value, dict)),
    "numbers": ("a list of numbers", lambda value: isinstance(value, list) and all(map(_is_number, value))),
    "names": ("a list of texts", lambda value: isinstance(value, list) and all(isinstance(v, str) for v in value)),
    "extra": ("a text, an object or a list", lambda value: isinstance(value, str | dict | list)),
}


def _is_number(value: Any) -> bool:
    return type(value) in (int, float) and math.isfinite(value)


def _need(raw: Any, fields: Mapping[str, str], where: str) -> None:
    """Raise InputError unless an object has these fields, of these kinds; a kind that ends in `?` is optional."""
    if not isinstance(raw, dict):
        raise InputError(where, f"must be an object, got {shown(raw)}", "write it between { and }")
    for field, kind in fields.items():
        what, good = _KINDS[kind.rstrip("?")]
        if field not in raw and not kind.endswith("?"):
            raise InputError(where, f"no field {field!r}", "add it, Batsim requires it")
        if field in raw and not good(raw[field]):
            raise InputError(where, f"{field!r} must be {what}, got {shown(raw[field])}", "correct the value")


def _extra(raw: Mapping[str, Any]) -> str:
    extra = raw.get("extra_data", "")
    return extra if isinstance(extra, str) else json.dumps(extra, separators=(",", ":"), ensure_ascii=False)


def _job(raw: Any, workload: str, where: str) -> JobSpec:
    fields = {"id": "name", "subtime": "number", "res": "whole", "profile": "text", "walltime": "number?"}
    _need(raw, fields | {"extra_data": "extra?"}, where)
    name = str(raw["id"])
    full = name if "!" in name else f"{workload}!{name}"
    if full.partition("!")[0] != workload or not full.partition("!")[2] or full.count("!") > 1:
        raise InputError(where, f"id {name!r} is not a name without '!'", f"rename the job, or write '{workload}!NAME'")
    walltime = raw.get("walltime")
    if walltime is not None and not walltime > 0:
        hint = "leave it out for no limit"
        raise InputError(f"{where} (id {name!r})", f"'walltime' must be > 0 s, got {shown(walltime)}", hint)
    limit = None if walltime is None else batsim_number(walltime)
    profile = full_profile_id(raw["profile"], workload)
    return job_of(full, batsim_number(raw["subtime"]), raw["res"], profile, limit, _extra(raw))


def _profile(name: str, raw: Any, where: str) -> tuple[dict[str, Any], tuple[str, dict[str, Any], int]]:
    """Return a profile in the form of messages, and its type, table and return code. Raises InputError."""
    _need(raw, {"type": "text", "ret": "whole?", "extra_data": "extra?"}, where)
    kind = raw["type"]
    table: dict[str, Any] = {}
    if kind == "DelayProfile":
        _need(raw, {"delay": "number"}, where)
        table = {"delay": float(raw["delay"])}
    elif kind == "ParallelTaskHomogeneousProfile":
        _need(raw, {"cpu": "number", "com": "number", "generation_strategy": "text?"}, where)
        strategy = raw.get("generation_strategy", EACH)
        if strategy not in (EACH, SPREAD):
            raise InputError(where, f"unknown generation_strategy {shown(strategy)}", f"write {EACH} or {SPREAD}")
        table = {"computation_amount": float(raw["cpu"]), "communication_amount": float(raw["com"])}
        table["generation_strategy"] = strategy
    elif kind == "ParallelTaskProfile":
        _need(raw, {"cpu": "numbers?", "com": "numbers?"}, where)
        own = {"computation_vector": "cpu", "communication_matrix": "com"}
        table = {name: [float(value) for value in raw[field]] for name, field in own.items() if field in raw}
    elif kind == "SequentialCompositionProfile":
        _need(raw, {"seq": "names", "repeat": "whole?"}, where)
        home = name.partition("!")[0]
        parts = [full_profile_id(part, home) for part in raw["seq"]]
        table = {"repetition_count": raw.get("repeat", 1), "profile_ids": parts}
    elif kind in NAMES.values():
        new = next(new for new, old in NAMES.items() if old == kind)
        raise InputError(where, f"{kind!r} is a type of Batsim 4", f"write {new}, or leave out --protocol 5")
    elif kind not in NAMES and kind not in _NOT_SIMULATED:
        raise UnknownNameError(where, "profile type", kind, [*NAMES, *_NOT_SIMULATED], "Batsim 5 aborts on it.")
    full = {"computation_vector": None, "communication_matrix": None} | table
    return table_of(name, kind, table, _extra(raw)), (kind, full, raw.get("ret", 0))


_NOT_SIMULATED = tuple(dict.fromkeys(there for there, _, _ in FIELDS.values() if there not in NAMES))


@dataclass(frozen=True)
class GenericEvent:
    """A text for the scheduler at `time_s`; `id` is `ee0!N` for event N of the first file."""

    time_s: float
    id: str
    data: str


def parse_events5(text: str, name: str, path: object) -> tuple[GenericEvent, ...]:
    """Parse the external events of Batsim 5, one JSON object per line, in order of time. Raises InputError."""
    events: list[GenericEvent] = []
    for number, line in enumerate(text.split("\n"), start=1):
        if line.strip():
            place = f"{path}: line {number}"
            raw = load_json(line, place, parse_float=batsim_float)
            _need(raw, {"type": "text", "timestamp": "number"}, place)
            if raw["timestamp"] < 0:
                raise InputError(place, f"'timestamp' must be >= 0 s, got {shown(raw['timestamp'])}", "correct it")
            if raw["type"] != "generic":
                raise UnknownNameError(place, "external event type", raw["type"], ["generic"], "Batsim 5 has no other.")
            _need(raw, {"data": "text"}, place)
            events.append(GenericEvent(batsim_number(raw["timestamp"]), f"{name}!{len(events)}", raw["data"]))
    return tuple(sorted(events, key=attrgetter("time_s")))
