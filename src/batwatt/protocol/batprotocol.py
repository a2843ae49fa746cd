"""Profiles and users' fields as batprotocol (Batsim 5) has them, and as workloads of Batsim 4 do.

A profile is `{"id": "w0!p", "profile_type": TYPE, "profile": {...}}` there, `{"type": type, ...}` here. Fields of users
are the object in the string `extra_data` there, and fields of the job like Batsim's own here.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from batwatt.checks import object_in, shown
from batwatt.errors import InputError, ProtocolError
from batwatt.model.workload import JOB_FIELDS
from batwatt.protocol.workload4 import parse_workload
from batwatt.protocol.workload5 import EACH, FIELDS, IN_FILES, NAMES, full_profile_id, parse_workload5, table_of


def profile_of(data: Mapping[str, Any]) -> dict[str, Any]:
    """A profile of batprotocol as Batsim 4 has it; one of a type that Batsim 4 has not keeps its type and fields.

    Raises KeyError for a missing field.
    """
    own = data["profile"]
    for kind, (there, names, marks) in FIELDS.items():
        if there == data["profile_type"] and all(own.get(name) == value for name, value in marks.items()):
            found = {"type": kind, **{name: own[other] for name, other in names.items() if other in own}}
            if kind == "composed":
                workload = data["id"].partition("!")[0]
                found["seq"] = [part.removeprefix(f"{workload}!") for part in found["seq"]]
            break
    else:
        found = {"type": data["profile_type"], **own}
    return merged_extra(found, data.get("extra_data", ""))


def split_profile(workload: str, name: str, profile: Mapping[str, Any]) -> dict[str, Any]:
    """A profile of Batsim 4 as batprotocol has it. Raises ProtocolError for a type that it has not."""
    kind = profile.get("type")
    if kind not in FIELDS:
        raise ProtocolError(
            f"the profile {name!r} to be registered is of the type {shown(kind)}, which Batsim 5 has not"
        )
    there, names, marks = FIELDS[kind]
    own = {other: profile[field] for field, other in names.items() if field in profile}
    if kind == "composed":
        own["profile_ids"] = [full_profile_id(part, workload) for part in profile["seq"]]
        own.setdefault("repetition_count", 1)
    extra = {field: value for field, value in profile.items() if field not in names and field not in ("type", "ret")}
    return table_of(f"{workload}!{name}", there, {**own, **marks}, json.dumps(extra) if extra else "")


def merged_extra(fields: dict[str, Any], extra: str | None) -> dict[str, Any]:
    """Fields with those of the object in a text; a text that is none is the field `extra_data`."""
    if not extra:
        return fields
    found = object_in(extra)
    return {**fields, "extra_data": extra} if found is None else {**found, **fields}


# workloads ------------------------------------------------------------------------------------------------------------

PROFILE_FIELDS = frozenset({"type", "ret", "delay", "cpu", "com", "seq", "repeat", "generation_strategy"})


def converted(data: Any, path: object, to: str) -> dict[str, Any]:
    """The workload that a JSON object of either Batsim describes, as `batsim4` or `batsim5` has it.

    Raises InputError; `path` is named in it.
    """
    profiles = data.get("profiles") if isinstance(data, dict) else None
    listed = (
        [str(raw.get("type")) for raw in profiles.values() if isinstance(raw, dict)]
        if isinstance(profiles, dict)
        else []
    )
    if not any(kind in NAMES for kind in listed):
        # what is wrong in it is said as ever
        parse_workload(data, "w0", path, simulate=False)
        return to_batsim5(data, path) if to == "batsim5" else data
    parse_workload5(data, "w0", path, simulate=False)
    if to == "batsim5":
        return data
    workload = to_batsim4(data, path)
    parse_workload(workload, "w0", path, simulate=False)
    return workload


def to_batsim5(data: Mapping[str, Any], where: object) -> dict[str, Any]:
    """A workload of Batsim 4 as Batsim 5 has it: without profiles that no job uses, of which rc2 may die.

    Raises InputError for profiles that files of Batsim 5 have not.
    """
    jobs, profiles = data["jobs"], data["profiles"]
    used: dict[str, None] = {}
    todo = [job["profile"] for job in jobs]
    while todo:
        name = todo.pop()
        if name not in used:
            used[name] = None
            todo += profiles[name].get("seq", ())
    kept = {name: _profile5(name, profile, where) for name, profile in profiles.items() if name in used}
    return {**data, "jobs": [_job5(job) for job in jobs], "profiles": kept}


def to_batsim4(data: Mapping[str, Any], where: object) -> dict[str, Any]:
    """A workload of Batsim 5 as Batsim 4 has it. Raises InputError for profiles that Batsim 4 has not."""
    profiles = {name: _profile4(name, profile, where) for name, profile in data["profiles"].items()}
    return {**data, "jobs": [_unfolded(job, JOB_FIELDS) for job in data["jobs"]], "profiles": profiles}


def _job5(job: Mapping[str, Any]) -> dict[str, Any]:
    found = _folded(job, JOB_FIELDS)
    if found.get("walltime") == -1:
        del found["walltime"]
    return found


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
            found = {field: value for field, value in profile.items() if field != "generation_strategy"}
            return {**_unfolded(found, PROFILE_FIELDS), "type": kind}
    problem = f"the profile {name!r} is of the type {shown(profile['type'])}, which Batsim 4 has not"
    raise InputError(where, problem, f"use {', '.join(FIELDS[kind][0] for kind in IN_FILES)}")


def _folded(fields: Mapping[str, Any], own: frozenset[str]) -> dict[str, Any]:
    """With what is not Batsim's in `extra_data`: among what that has if it is an object, else next to it."""
    found = {field: value for field, value in fields.items() if field in own}
    extra: Any = {field: value for field, value in fields.items() if field not in own}
    if "extra_data" in extra:
        given = extra.pop("extra_data")
        parts = object_in(given)
        if parts is not None and parts.keys().isdisjoint({*own, *fields}):
            extra = {**parts, **extra}
        elif extra or parts is not None or not isinstance(given, str | list):
            extra["extra_data"] = given
        else:
            extra = given
    return found | ({} if extra == {} else {"extra_data": extra})


def _unfolded(fields: Mapping[str, Any], own: frozenset[str]) -> dict[str, Any]:
    """With the fields of the object in `extra_data`, unless one of them has the name of one of Batsim's."""
    extra = object_in(fields.get("extra_data"))
    if extra is None or not extra.keys().isdisjoint(own):
        return dict(fields)
    return {**extra, **{field: value for field, value in fields.items() if field != "extra_data"}}
