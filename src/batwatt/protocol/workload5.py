"""The workloads of Batsim 5, checked as strictly as by Batsim 5, and the forms of jobs and profiles in messages."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from batwatt.checks import shown
from batwatt.errors import InputError, UnknownNameError
from batwatt.protocol.numbers import MAX_INT

EACH, SPREAD = "DefinedAmountsUsedForEachValue", "DefinedAmountsSpreadUniformly"
"""Strategies of amounts: for each host, or for all of them together."""
SEQUENCE = "SequentialCompositionProfile"
_COMPUTATION = {"cpu": "computation_amount", "com": "communication_amount"}
_STORAGE = {"bytes_read": "bytes_to_read", "bytes_write": "bytes_to_write", "storage": "storage_name"}
_STAGING = {"nb_bytes": "bytes_to_transfer", "from": "emitter_storage_name", "to": "receiver_storage_name"}
FIELDS: dict[str, tuple[str, Mapping[str, str], Mapping[str, Any]]] = {
    "delay": ("DelayProfile", {"delay": "delay"}, {}),
    "parallel": ("ParallelTaskProfile", {"cpu": "computation_vector", "com": "communication_matrix"}, {}),
    "parallel_homogeneous": ("ParallelTaskHomogeneousProfile", _COMPUTATION, {"generation_strategy": EACH}),
    "parallel_homogeneous_total": ("ParallelTaskHomogeneousProfile", _COMPUTATION, {"generation_strategy": SPREAD}),
    "composed": (SEQUENCE, {"repeat": "repetition_count", "seq": "profile_ids"}, {}),
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
_NAME = "w0"
"""Name of a workload in ids."""


def full_profile_id(name: str, workload: str) -> str:
    """Return the full id `w0!delay` of `delay` or `w0!delay`."""
    return name if "!" in name else f"{workload}!{name}"


def table_of(name: str, kind: str, table: Mapping[str, Any], extra_data: str) -> dict[str, Any]:
    """Return a profile in the form of messages."""
    more = {"extra_data": extra_data} if extra_data else {}
    return {"id": name, "profile_type": kind, "profile": table, **more}


def job_table(hosts: int, walltime_s: float | None, extra_data: str, profile_id: str) -> dict[str, Any]:
    """Return a job in the form of messages."""
    return {
        "resource_request": hosts,
        "walltime": walltime_s,
        "extra_data": extra_data,
        "rigid": True,
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
        raise InputError(where, problem, "convert it: `batwatt convert FILE --to batsim4`")


# checks ---------------------------------------------------------------------------------------------------------------


def check_workload5(data: Any, path: object) -> None:
    """Raise InputError, which names `path`, unless a JSON object is a workload of Batsim 5."""
    _need(data, {"nb_res": "whole", "jobs": "list", "profiles": "object"}, f"{path}: the workload")
    parts: dict[str, list[str]] = {}
    widths: dict[str, int] = {}
    for short, raw in data["profiles"].items():
        full = f"{_NAME}!{short}"
        where = f"{path}: profile {full!r}"
        _check_kind(raw, where)
        _check_amounts(raw, where)
        parts[full] = [full_profile_id(part, _NAME) for part in (raw["seq"] if raw["type"] == SEQUENCE else ())]
        if raw["type"] == "ParallelTaskProfile":
            widths[full] = _width(raw, where)
    for full, own in parts.items():
        place = f"{path}: profile {full!r}"
        for part in own:
            if part not in parts:
                raise InputError(place, f"the used profile {part!r} does not exist", "add it to 'profiles'")
            if full in _all_parts(part, parts):
                raise InputError(place, "contains itself", "take the cycle out of 'seq'")
    seen = set()
    for index, raw in enumerate(data["jobs"]):
        where = f"{path}: jobs[{index}]"
        name, profile = _checked_job(raw, where)
        if name in seen:
            raise InputError(where, f"duplication of job id {name!r}", "give each an id of its own")
        seen.add(name)
        if profile not in parts:
            raise UnknownNameError(f"{path}: job {name!r}", "profile", profile, parts, "Add it to 'profiles'.")
        if widths.get(profile, raw["res"]) != raw["res"]:
            problem = f"'res' is {raw['res']} but its profile {profile!r} describes {widths[profile]} hosts"
            raise InputError(f"{path}: job {name!r}", problem, "make the number of 'cpu' values equal to 'res'")


def _all_parts(name: str, parts: Mapping[str, list[str]]) -> set[str]:
    """Return the ids of a profile and of all of its parts."""
    ids = {name}
    todo = [name]
    while todo:
        fresh = set(parts.get(todo.pop(), ())) - ids
        ids |= fresh
        todo += fresh
    return ids


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


def _checked_job(raw: Any, where: str) -> tuple[str, str]:
    """Return the full id of a job, and that of its profile. Raises InputError."""
    fields = {"id": "name", "subtime": "number", "res": "whole", "profile": "text", "walltime": "number?"}
    _need(raw, fields | {"extra_data": "extra?"}, where)
    name = str(raw["id"])
    full = full_profile_id(name, _NAME)
    if full.partition("!")[0] != _NAME or not full.partition("!")[2] or full.count("!") > 1:
        raise InputError(where, f"id {name!r} is not a name without '!'", f"rename the job, or write '{_NAME}!NAME'")
    walltime = raw.get("walltime")
    if walltime is not None and not walltime > 0:
        hint = "leave it out for no limit"
        raise InputError(f"{where} (id {name!r})", f"'walltime' must be > 0 s, got {shown(walltime)}", hint)
    return full, full_profile_id(raw["profile"], _NAME)


def _check_kind(raw: Any, where: str) -> None:
    """Raise InputError unless a profile is of a type of Batsim 5, and has its fields."""
    _need(raw, {"type": "text", "ret": "whole?", "extra_data": "extra?"}, where)
    kind = raw["type"]
    if kind in _OWN_FIELDS:
        _need(raw, _OWN_FIELDS[kind], where)
    elif kind in NAMES.values():
        new = next(new for new, old in NAMES.items() if old == kind)
        raise InputError(where, f"{kind!r} is a type of Batsim 4", f"write {new}")
    elif kind in NAMES:
        raise InputError(where, f"{kind} is not implemented in Batsim 5", "use other profiles")
    elif kind not in _NOT_SIMULATED:
        raise UnknownNameError(where, "profile type", kind, [*NAMES, *_NOT_SIMULATED], "Batsim 5 aborts on it.")


def _check_amounts(raw: Mapping[str, Any], where: str) -> None:
    """Raise InputError for values of a profile that Batsim refuses."""
    kind, strategy = raw["type"], raw.get("generation_strategy", EACH)
    if kind == "DelayProfile" and not raw["delay"] > 0.0:
        raise InputError(where, f"non-strictly-positive 'delay' ({raw['delay']!r})", "give a time in s")
    if kind == "ParallelTaskHomogeneousProfile" and strategy not in (EACH, SPREAD):
        raise InputError(where, f"unknown generation_strategy {shown(strategy)}", f"write {EACH} or {SPREAD}")
    if kind == SEQUENCE and not (raw["seq"] and raw.get("repeat", 1) > 0):
        raise InputError(where, "a sequence must have parts and be run once at least", "name a profile")
    for field, name in _TASKS.get(kind, {}).items():
        values = raw.get(field, ())
        for value in values if isinstance(values, list | tuple) else (values,):
            if not value >= 0.0:
                raise InputError(where, f"{name!r} must be positive ({value!r})", "correct the value")


def _width(raw: Mapping[str, Any], where: str) -> int:
    """Return the number of hosts of a parallel profile. Raises InputError."""
    sent = raw.get("com", ())
    # without computations, the square root of the number of communications is that of the hosts
    width = len(raw.get("cpu", ())) or math.isqrt(len(sent))
    if not width or (sent and len(sent) != width**2):
        problem = f"inconsistent computation and communication vector sizes ({width}, {len(sent)})"
        raise InputError(where, problem, "give one value per host, and one per ordered pair of hosts")
    return width


_OWN_FIELDS = {
    "DelayProfile": {"delay": "number"},
    "ParallelTaskHomogeneousProfile": {"cpu": "number", "com": "number", "generation_strategy": "text?"},
    "ParallelTaskProfile": {"cpu": "numbers?", "com": "numbers?"},
    SEQUENCE: {"seq": "names", "repeat": "whole?"},
}
"""Profile type -> its fields in files, and their kinds."""
_TASKS = {FIELDS[kind][0]: FIELDS[kind][1] for kind in ("parallel", "parallel_homogeneous")}
_NOT_SIMULATED = tuple(dict.fromkeys(there for there, _, _ in FIELDS.values() if there not in NAMES))
