"""Jobs and profiles of Batsim's JSON that are as usual, at once; `batsim_json` reads others and says what is wrong.

What is returned here is what `parse_job` and `parse_profile` return, and None wherever they might complain.
"""

from __future__ import annotations

from typing import Any

from batwatt.inputs.workloads.batsim_numbers import MAX_INT, wire_floats
from batwatt.model.workload import Delay, Job, Parallel

_EXACT = 1e14
"""Whole numbers below this are written and read by Batsim without a change."""
_FINE = 1e8
"""Numbers of 6 decimals up to this, too."""
_LARGE = 1e300
_FIELDS, _NUMBER = {"id", "subtime", "res", "profile"}, (int, float)


def usual_fields(raw: dict[str, Any]) -> dict[str, Any] | None:
    """`wire_floats` of an object of texts, floats and integers of 32 bits; None if it holds anything else."""
    sent = raw.copy()
    for key, value in raw.items():
        kind = type(value)
        if kind is float:
            if not (value.is_integer() and -_EXACT < value < _EXACT) and not (
                -_FINE <= value <= _FINE and round(value, 6) == value
            ):
                sent[key] = wire_floats(value)
        elif kind is not str and not (kind is int and -MAX_INT <= value <= MAX_INT):
            return None
    return sent


def usual_job(raw: Any, workload: str) -> Job | None:
    """The job that a JSON object describes, if it is as usual."""
    if type(raw) is not dict or not raw.keys() >= _FIELDS:
        return None
    name, submit_s, hosts, walltime_s = raw["id"], raw["subtime"], raw["res"], raw.get("walltime", -1)
    if type(name) is int:
        name = str(name)
    if not (type(name) is str and name and "!" not in name and workload not in name):
        return None
    if not (type(submit_s) in _NUMBER and type(walltime_s) in _NUMBER and type(hosts) is int):
        return None
    if not (0 <= submit_s < _LARGE and hosts >= 1 and (walltime_s == -1 or 0 < walltime_s < _LARGE)):
        return None
    sent = usual_fields(raw)
    if sent is None or type(raw["profile"]) is not str:
        return None
    sent["id"] = full = f"{workload}!{name}"
    limit_s = None if walltime_s == -1 else float(walltime_s)
    return Job(full, float(submit_s), hosts, raw["profile"], limit_s, sent)


def usual_profile(raw: Any) -> tuple[Delay | Parallel, dict[str, Any]] | None:
    """A delay or alike flops on each host, from a JSON object, and that as Batsim sends it, if it is as usual."""
    if type(raw) is not dict or type(code := raw.get("ret", 0)) is not int:
        return None
    sent = usual_fields(raw)
    if sent is None:
        return None
    if raw.get("type") == "delay":
        delay_s: Any = raw.get("delay")
        if type(delay_s) in _NUMBER and 0 < delay_s < _LARGE:
            return Delay(float(delay_s), code), sent
    elif raw.get("type") == "parallel_homogeneous":
        flops: Any = raw.get("cpu")
        if type(flops) in _NUMBER and 0 <= flops < _LARGE and type(raw.get("com")) in _NUMBER and raw["com"] == 0:
            return Parallel(float(flops), return_code=code), sent
    return None
