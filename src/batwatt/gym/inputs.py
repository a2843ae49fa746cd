"""What an environment is made of, from names of files or from objects of `batwatt.model`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from batwatt.api.arguments import path_or
from batwatt.api.series import envelope_or
from batwatt.api.simulation import WorkloadLike, workload_given
from batwatt.errors import InputError
from batwatt.inputs.platforms.host_choice import all_hosts
from batwatt.inputs.platforms.machines import MachineSpec
from batwatt.inputs.platforms.platform_xml import MASTER_HOST
from batwatt.inputs.series.capacity_spec import CapacitySpec
from batwatt.model.platform import Platform
from batwatt.model.series import Series
from batwatt.model.workload import ATTEMPT
from batwatt.run.inputs import RunInputs, capacity_named, load_inputs, machines_of
from batwatt.run.spec import RunSpec

PlatformLike = str | Path | Platform | MachineSpec
SeriesLike = str | Path | Series
CapacityLike = str | Path | Series | CapacitySpec
SCHEDULER: Final = "batwatt.gym"
"""What the metadata of a run name as its scheduler."""


def platform_of(given: PlatformLike) -> Platform:
    """The platform, read if it is a file. Raises InputError."""
    return all_hosts(path_or("platform", given, Platform, MachineSpec), MASTER_HOST)


def spec_of(
    platform: PlatformLike,
    workload: WorkloadLike,
    envelope: SeriesLike | None,
    capacity: CapacityLike | None,
    options: Mapping[str, Any],
) -> RunSpec:
    """The run that an episode is. Raises InputError for what is neither a path nor such an object."""
    return RunSpec(
        path_or("platform", platform, Platform, MachineSpec),
        workload_given(workload),
        SCHEDULER,
        options,
        envelope=envelope_or(envelope),
        capacity=capacity_named(capacity) if isinstance(capacity, str | Path) else capacity,
    )


def check_watts(platform: Platform, what: str) -> None:
    """Raise InputError unless all hosts say what they draw."""
    if not platform.has_power:
        problem = f"{what} needs the watts of every host; {platform.power_problem}"
        raise InputError(platform.source, problem, "correct it")


def inputs_of(spec: RunSpec) -> RunInputs:
    """The inputs of an episode, read; without a capacity all hosts are there. Raises InputError."""
    # as for a scheduler of ours, which changes nothing of a workload: it need not be copied
    inputs = load_inputs(replace(spec, scheduler="powercap"), spec.envelope)
    load, hosts = inputs.workload, len(inputs.platform)
    if not load.jobs:
        raise InputError(load.source, "has no job: there is nothing to decide", "give another workload")
    odd = next((job.id for job in load.jobs if ATTEMPT.search(job.id)), None)
    if odd is not None:
        problem = f"the id {odd!r} ends like those of jobs that are submitted again"
        raise InputError(load.source, problem, "let no id end in # and a number")
    if spec.capacity is None:
        return replace(inputs, capacity=Series((0.0,), (float(hosts),), "machines"), cores=1)
    if len(machines_of(inputs.platform)) < hosts:
        problem = "a capacity counts machines, and here a machine has several hosts"
        raise InputError(inputs.platform.source, problem, "give a platform whose hosts are machines")
    return inputs
