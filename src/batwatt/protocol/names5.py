"""What Batsim 5 calls profiles and jobs; its profiles distinguish a workload of it from one of Batsim 4."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from batwatt.checks import shown
from batwatt.errors import InputError

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
IN_FILES = ("delay", "parallel", "parallel_homogeneous", "parallel_homogeneous_total", "composed")
"""Types of which files of Batsim 5 name amounts as those of Batsim 4 do."""
NAMES: dict[str, str | None] = {
    **{FIELDS[kind][0]: kind for kind in IN_FILES if kind != "parallel_homogeneous_total"},
    "ForkJoinCompositionProfile": None,
    "ParallelTaskMergeCompositionProfile": None,
}
"""Profile types of Batsim 5's files that batwatt knows, with what they are called in Batsim 4."""


def full_profile_id(name: str, workload: str) -> str:
    """`w0!delay` of `delay` or `w0!delay`."""
    return name if "!" in name else f"{workload}!{name}"


def table_of(name: str, kind: str, table: Mapping[str, Any], extra_data: str) -> dict[str, Any]:
    """A profile as messages have it."""
    more = {"extra_data": extra_data} if extra_data else {}
    return {"id": name, "profile_type": kind, "profile": table, **more}


def job_table(
    hosts: int, walltime_s: float | None, extra_data: str, profile_id: str, rigid: bool = True
) -> dict[str, Any]:
    """A job as messages have it."""
    return {
        "resource_request": hosts,
        "walltime": walltime_s,
        "extra_data": extra_data,
        "rigid": rigid,
        "profile_id": profile_id,
    }


def refuse_batsim_5(raw_profiles: Mapping[str, Any], where: object) -> None:
    """Raises InputError if a profile of a workload is one of Batsim 5."""
    for name, raw in raw_profiles.items():
        kind = raw.get("type") if isinstance(raw, dict) else None
        if isinstance(kind, str) and kind in NAMES:
            problem = (
                f"is a workload of Batsim 5 (profile {shown(name)} is a {kind}), and batwatt reads those of Batsim 4"
            )
            renamed = ", ".join(f"{old} is {new}" for old, new in NAMES.items() if new)
            hint = f"write the types of Batsim 4: {renamed}; or play Batsim 5 with `batwatt engine --protocol 5`"
            raise InputError(where, problem, hint)
