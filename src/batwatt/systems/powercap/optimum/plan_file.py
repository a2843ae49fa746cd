"""`PREFIX_plan.json`: the states of servers by time, and the starts of jobs on their servers.

The rules: docs/explanation/optimum.md.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, Field

from batwatt.checks import load_json, validated
from batwatt.errors import InputError
from batwatt.files import read_text, whole_file
from batwatt.model import hostset

FORMAT = 1


def _hosts(text: str) -> str:
    hostset.from_text(text)
    return text


Hosts = Annotated[str, AfterValidator(_hosts)]
Time = Annotated[float, Field(ge=0.0, allow_inf_nan=False)]


class PlannedState(BaseModel, extra="forbid", frozen=True):
    """A change, at `time_s`, the beginning of a step, of servers to a p-state (computation or sleep)."""

    time_s: Time
    hosts: Hosts
    pstate: int = Field(ge=0)


class PlannedJob(BaseModel, extra="forbid", frozen=True):
    """A job that starts at `start_s` on `hosts` for `run_s`; `pstates` are those of its servers until it ends."""

    id: str
    start_s: Time
    run_s: Time
    hosts: Hosts
    pstates: dict[Hosts, int]


class SchedulePlan(BaseModel, extra="forbid", frozen=True):
    """All changes of states and all starts, each in order of time."""

    format: int = FORMAT
    states: tuple[PlannedState, ...]
    jobs: tuple[PlannedJob, ...]


def write_plan(path: Path, plan: SchedulePlan) -> None:
    """Write a plan, whole or not at all: a row of the file per row of the plan. Raises InputError."""
    with whole_file(path) as out:
        out.write(f'{{\n"format": {FORMAT},\n')
        for name, rows in (("states", plan.states), ("jobs", plan.jobs)):
            lines = ",\n".join(json.dumps(row.model_dump()) for row in rows)
            out.write(f'"{name}": [\n{lines}\n]' + (",\n" if name == "states" else "\n"))
        out.write("}\n")


def read_plan(path: Path | str) -> SchedulePlan:
    """Read a plan; InputError names the file and the place."""

    def error_of(error: Mapping[str, Any]) -> InputError:
        place = "".join(f"[{each}]" if isinstance(each, int) else f" {each}" for each in error["loc"])
        return InputError(path, f"{place.strip()}: {error['msg']}", "make a plan with `batwatt optimum`")

    plan = validated(SchedulePlan, load_json(read_text(path), path), error_of)
    if plan.format != FORMAT:
        raise InputError(path, f"is a plan of format {plan.format}, not {FORMAT}", "make it anew: `batwatt optimum`")
    return plan
