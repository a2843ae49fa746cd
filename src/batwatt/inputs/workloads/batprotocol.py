"""Profiles and users' fields as batprotocol (Batsim 5) has them, and as workloads of Batsim 4 do.

A profile is `{"id": "w0!p", "profile_type": TYPE, "profile": {...}}` there, `{"type": type, ...}` here. Fields of users
are the object in the text `extra_data` there, and beside Batsim's own here.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from batwatt.checks import shown
from batwatt.errors import ProtocolError

EACH, SPREAD = "DefinedAmountsUsedForEachValue", "DefinedAmountsSpreadUniformly"
"""Whether amounts are of each host, or of all of them together."""
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
"""Type of Batsim 4 -> type of batprotocol, names of fields here and there, and what tells types of one name apart."""


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
        own["profile_ids"] = [part if "!" in part else f"{workload}!{part}" for part in profile["seq"]]
        own.setdefault("repetition_count", 1)
    found = {"id": f"{workload}!{name}", "profile_type": there, "profile": {**own, **marks}}
    extra = {field: value for field, value in profile.items() if field not in names and field not in ("type", "ret")}
    return found | ({"extra_data": json.dumps(extra)} if extra else {})


def merged_extra(fields: dict[str, Any], extra: str | None) -> dict[str, Any]:
    """Fields with those of the object in a text; a text that is none is the field `extra_data`."""
    if not extra:
        return fields
    try:
        found = json.loads(extra)
    except (ValueError, RecursionError):
        found = None
    return {**found, **fields} if isinstance(found, dict) else {**fields, "extra_data": extra}
