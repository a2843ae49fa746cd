"""The power of jobs, and estimates of it, among the fields of the jobs of a workload.

`power_w` is the mean in W of all hosts of the job, with their idle power, as in job logs; optional fields are
`power_std_w` and `power_max_w`, or instead of all three `power_phases`: a list of [duration in s, W].

Workloads for easy-powercap, the scheduler of *Scheduling with lightweight predictions in power-constrained HPC
platforms* (hal-04747713), have estimates of a job's *dynamic* power, above the idle power of its hosts, under any
name, such as `mean_power_estimation`; Batsim 5 has them in `extra_data`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from batwatt.checks import object_in, shown
from batwatt.errors import InputError
from batwatt.model.job_power import JobPower
from batwatt.model.workload import POWER_MAX_W, POWER_PHASES, POWER_STD_W, POWER_W
from batwatt.protocol.numbers import json_number

POWER_FIELDS = frozenset({POWER_W, POWER_STD_W, POWER_MAX_W, POWER_PHASES})
"""Fields whose values are known only after the run of a job."""


def power_of(raw: Mapping[str, Any], job_id: str) -> JobPower | None:
    """Return the power of a job by its fields; None if they do not state it. Raises InputError."""
    phases = raw.get(POWER_PHASES)
    try:
        if phases is not None:
            return JobPower.of_phases(_phases(phases, job_id))
        mean_w = _watts(raw, POWER_W, job_id)
        if mean_w is None:
            return None
        return JobPower(mean_w, _watts(raw, POWER_STD_W, job_id) or 0.0, _watts(raw, POWER_MAX_W, job_id) or 0.0)
    except ValueError as error:
        raise InputError("workload", f"job {job_id}: {error}", "correct it") from None


def estimate_of(raw: Mapping[str, Any], field: str, job_id: str) -> float:
    """Return the estimate in W in the field `field` of a job. Raises InputError if it has none."""
    fields = raw if field in raw else object_in(raw.get("extra_data")) or {}
    watts = _watts(fields, field, job_id)
    if watts is None:
        problem = f"job {job_id} has no field {field!r}"
        raise InputError("workload", problem, "name the field of the estimates in the options of the predictor")
    return watts


def _phases(value: Any, job_id: str) -> list[tuple[float, float]]:
    rows = value if isinstance(value, list) else []
    phases = [
        (length_s, watts)
        for row in rows
        if isinstance(row, list) and len(row) == 2
        for length_s, watts in [(json_number(row[0]), json_number(row[1]))]
        if length_s and watts is not None
    ]
    if not phases or len(phases) < len(rows):
        problem = f"job {job_id}: {POWER_PHASES} must be a list of [s > 0, W >= 0], got {shown(value)}"
        raise InputError("workload", problem, "correct it")
    return phases


def _watts(fields: Mapping[str, Any], name: str, job_id: str) -> float | None:
    value = fields.get(name)
    if value is None:
        return None
    watts = json_number(value)
    if watts is None:
        problem = f"job {job_id}: {name} must be a number >= 0 in W, got {shown(value)}"
        raise InputError("workload", problem, "correct it")
    return watts
