"""Partitions: hosts with their limits and priorities (slurm.conf(5), PARTITION CONFIGURATION)."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from batwatt.checks import field_error, shown_json, validated
from batwatt.errors import InputError
from batwatt.model import hostset
from batwatt.model.platform import machine_of
from batwatt.systems.slurm.options import PartitionOptions

MINUTE_S: Final = 60.0
DEFAULT = {"default": PartitionOptions.model_validate({})}


@dataclass(frozen=True, slots=True)
class Partition:
    """Hosts as a mask, limits in s and nodes (infinite: none), the normalised job factor (0 to 1) and the tier."""

    name: str
    mask: int
    max_time_s: float
    max_nodes: float
    factor: float
    tier: int


def whole_minutes(time_s: float) -> float:
    """Return a time limit in s rounded up to the minute, as Slurm keeps it (`MaxTime` in slurm.conf)."""
    return math.ceil(time_s / MINUTE_S) * MINUTE_S if time_s < math.inf else time_s


def read_partitions(option: Mapping[str, Any] | None) -> Mapping[str, PartitionOptions]:
    """Check the option `partitions`. Raises InputError."""
    if option is None:
        return DEFAULT
    if not option:
        raise InputError("option 'partitions'", "names no partition", "leave it out for one of all hosts")

    def checked(name: str, value: Any) -> PartitionOptions:
        where = f"option 'partitions', {name!r}"
        if not isinstance(value, dict):
            raise InputError(
                where, f"must be an object, got {shown_json(value)}", 'write for instance {"hosts": "0-7"}'
            )
        fields, hint = PartitionOptions.model_fields, "see docs/explanation/slurm-scheduler.md"
        return validated(
            PartitionOptions, value, lambda error: field_error(where, error["loc"][0], fields, error, hint)
        )

    return {name: checked(name, value) for name, value in option.items()}


def partitions_of(
    options: Mapping[str, PartitionOptions],
    described: Sequence[Mapping[str, Any]],
    expand: Callable[[str], Sequence[str]],
) -> dict[str, Partition]:
    """Return the partitions on hosts that Batsim describes; `expand` lists the names in a text. Raises InputError.

    The job factor is normalised to the largest one (priority_multifactor, "Job Priority Factors In General").
    """
    masks: dict[str, int] = {}
    for host, facts in enumerate(described):
        for name in {facts["name"], machine_of(facts["properties"], facts["name"])}:
            masks[name] = masks.get(name, 0) | 1 << host
    largest = max(partition.priority_job_factor for partition in options.values()) or 1
    all_hosts = hostset.span(0, len(described) - 1)
    return {
        name: Partition(
            name,
            all_hosts if partition.hosts is None else _mask_of(name, partition.hosts, masks, all_hosts, expand),
            whole_minutes(partition.max_time_s or math.inf),
            partition.max_nodes or math.inf,
            partition.priority_job_factor / largest,
            partition.priority_tier,
        )
        for name, partition in options.items()
    }


def _mask_of(
    name: str, text: str, masks: Mapping[str, int], all_hosts: int, expand: Callable[[str], Sequence[str]]
) -> int:
    """Return the mask of a set of ids, or of names of hosts and machines. Raises InputError."""
    where = f"option 'partitions', {name!r}"
    try:
        if not set(text) - set("0123456789-, "):
            mask = hostset.from_text(text)
            if mask & ~all_hosts:
                raise ValueError(f"host {hostset.ids(mask)[-1]} is not one of {all_hosts.bit_count()}")
            return mask
        mask = 0
        for host in expand(text):
            if host not in masks:
                raise ValueError(f"no host or machine is called {host!r}")
            mask |= masks[host]
    except ValueError as error:
        raise InputError(where, f"hosts: {error}", 'write ids as "0-63 70", or names as "n[01-64]"') from None
    return mask
