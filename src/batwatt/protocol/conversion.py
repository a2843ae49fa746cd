"""Conversion of profiles and of users' fields between batprotocol (Batsim 5) and workloads of Batsim 4.

A profile is `{"id": "w0!p", "profile_type": TYPE, "profile": {...}}` in Batsim 5, `{"type": type, ...}` in Batsim 4.
Users' fields are an object in the string `extra_data` in Batsim 5, and fields next to Batsim's own in Batsim 4.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Any

from batwatt.checks import object_in, shown
from batwatt.errors import InputError, ProtocolError
from batwatt.model.workload import JOB_FIELDS
from batwatt.protocol.workload4 import parse_workload
from batwatt.protocol.workload5 import EACH, FIELDS, IN_FILES, check_workload5, full_profile_id, of_batsim_5, table_of


def profile_of(data: Mapping[str, Any]) -> dict[str, Any]:
    """Convert a profile of batprotocol to Batsim 4; a type that Batsim 4 does not have keeps its name and fields.

    Raises KeyError for a missing field.
    """
    own = data["profile"]
    for kind, (there, names, marks) in FIELDS.items():
        if there == data["profile_type"] and all(own.get(name) == value for name, value in marks.items()):
            profile = {"type": kind, **{name: own[other] for name, other in names.items() if other in own}}
            if kind == "composed":
                workload = data["id"].partition("!")[0]
                profile["seq"] = [part.removeprefix(f"{workload}!") for part in profile["seq"]]
            break
    else:
        profile = {"type": data["profile_type"], **own}
    return merged_extra(profile, data.get("extra_data", ""))


def split_profile(workload: str, name: str, profile: Mapping[str, Any]) -> dict[str, Any]:
    """Convert a profile of Batsim 4 to batprotocol. Raises ProtocolError for a type that batprotocol does not have."""
    kind = profile.get("type")
    if kind not in FIELDS:
        raise ProtocolError(
            f"the profile {name!r} to be registered is of the type {shown(kind)}, which Batsim 5 does not have"
        )
    there, names, marks = FIELDS[kind]
    own = {other: profile[field] for field, other in names.items() if field in profile}
    if kind == "composed":
        own["profile_ids"] = [full_profile_id(part, workload) for part in profile["seq"]]
        own.setdefault("repetition_count", 1)
    extra = {field: value for field, value in profile.items() if field not in names and field not in ("type", "ret")}
    return table_of(f"{workload}!{name}", there, {**own, **marks}, json.dumps(extra) if extra else "")


def merged_extra(fields: dict[str, Any], extra: str | None) -> dict[str, Any]:
    """Merge fields with those of the object in a text; any other text becomes the field `extra_data`."""
    if not extra:
        return fields
    extra_fields = object_in(extra)
    return {**fields, "extra_data": extra} if extra_fields is None else {**extra_fields, **fields}


# workloads ------------------------------------------------------------------------------------------------------------

_MOST_HOSTS = 3000
PROFILE_FIELDS = frozenset({"type", "ret", "delay", "cpu", "com", "seq", "repeat", "generation_strategy"})


def converted(data: Any, path: object, to: str) -> dict[str, Any]:
    """Convert the JSON workload of Batsim 4 or 5 to the format `batsim4` or `batsim5`.

    Raises InputError, which names `path`.
    """
    profiles = data.get("profiles") if isinstance(data, dict) else None
    if not (isinstance(profiles, dict) and of_batsim_5(profiles)):
        # checks the workload
        parse_workload(data, "w0", path, simulate=False)
        return to_batsim5(data, path) if to == "batsim5" else data
    check_workload5(data, path)
    if to == "batsim5":
        return data
    workload = to_batsim4(data, path)
    parse_workload(workload, "w0", path, simulate=False)
    return workload


def to_batsim5(data: Mapping[str, Any], where: object) -> dict[str, Any]:
    """Convert a workload of Batsim 4 to Batsim 5, without unused profiles, which can crash v5.0.0-rc2.

    Raises InputError for profiles of types that files of Batsim 5 do not have.
    """
    jobs, profiles = data["jobs"], data["profiles"]
    used: dict[str, None] = {}
    todo = [job["profile"] for job in jobs]
    while todo:
        name = todo.pop()
        if name not in used:
            used[name] = None
            todo += profiles[name].get("seq", ())
    converted_profiles = {name: _profile5(name, profile, where) for name, profile in profiles.items() if name in used}
    return {**data, "jobs": [_job5(job) for job in jobs], "profiles": converted_profiles}


def to_batsim4(data: Mapping[str, Any], where: object) -> dict[str, Any]:
    """Convert a workload of Batsim 5 to Batsim 4. Raises InputError for profiles that Batsim 4 does not have."""
    profiles = {name: _profile4(name, profile, where) for name, profile in data["profiles"].items()}
    return {**data, "jobs": [_unfolded(job, JOB_FIELDS) for job in data["jobs"]], "profiles": profiles}


def _job5(job: Mapping[str, Any]) -> dict[str, Any]:
    fields = _folded(job, JOB_FIELDS)
    if fields.get("walltime") == -1:
        del fields["walltime"]
    return fields


def _profile5(name: str, profile: Mapping[str, Any], where: object) -> dict[str, Any]:
    kind = profile["type"]
    if kind not in IN_FILES:
        problem = f"the profile {name!r} is of the type {kind!r}, which batwatt does not write for Batsim 5"
        raise InputError(where, problem, f"use {', '.join(IN_FILES)}")
    there, _, marks = FIELDS[kind]
    return {**_folded(profile, PROFILE_FIELDS), "type": there, **(marks if kind.endswith("total") else {})}


def _profile4(name: str, profile: Mapping[str, Any], where: object) -> dict[str, Any]:
    strategy = profile.get("generation_strategy", EACH)
    for kind in IN_FILES:
        there, _, marks = FIELDS[kind]
        if there == profile["type"] and marks.get("generation_strategy", strategy) == strategy:
            fields = {field: value for field, value in profile.items() if field != "generation_strategy"}
            if kind == "parallel":
                fields = _both_lists(name, fields, where)
            return {**_unfolded(fields, PROFILE_FIELDS), "type": kind}
    problem = f"the profile {name!r} is of the type {shown(profile['type'])}, which batwatt does not write for Batsim 4"
    raise InputError(where, problem, f"use {', '.join(dict.fromkeys(FIELDS[kind][0] for kind in IN_FILES))}")


def _both_lists(name: str, fields: Mapping[str, Any], where: object) -> dict[str, Any]:
    """Return the fields of a parallel profile with `cpu` and `com`, of which Batsim 5 requires one; else zeros."""
    hosts = len(fields["cpu"]) if "cpu" in fields else math.isqrt(len(fields["com"]))
    if hosts > _MOST_HOSTS:
        problem = f"the profile {name!r} of {hosts} hosts needs {hosts**2} values of 'com' in Batsim 4"
        raise InputError(where, problem, "use ParallelTaskHomogeneousProfile")
    return {"cpu": [0] * hosts, "com": [0] * hosts**2, **fields}


def _folded(fields: Mapping[str, Any], own: frozenset[str]) -> dict[str, Any]:
    """Return fields with all but `own` moved to `extra_data`: into its object if it has one, else next to its value."""
    own_fields = {field: value for field, value in fields.items() if field in own}
    extra: Any = {field: value for field, value in fields.items() if field not in own}
    if "extra_data" in extra:
        extra_data = extra.pop("extra_data")
        parts = object_in(extra_data)
        if parts is not None and parts.keys().isdisjoint({*own, *fields}):
            extra = {**parts, **extra}
        elif extra or parts is not None or not isinstance(extra_data, str | list):
            extra["extra_data"] = extra_data
        else:
            extra = extra_data
    return own_fields | ({} if extra == {} else {"extra_data": extra})


def _unfolded(fields: Mapping[str, Any], own: frozenset[str]) -> dict[str, Any]:
    """Return fields with those of the object in `extra_data`, unless the name of one of them is in `own`."""
    extra = object_in(fields.get("extra_data"))
    if extra is None or not extra.keys().isdisjoint(own):
        return dict(fields)
    return {**extra, **{field: value for field, value in fields.items() if field != "extra_data"}}
