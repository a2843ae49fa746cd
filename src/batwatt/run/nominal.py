"""A run without an engine: the planner of `riskaware`, driven over submissions and steps.

The rules: docs/explanation/riskaware.md.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from types import FunctionType
from typing import TYPE_CHECKING

from batwatt.errors import DeadlockError, InputError
from batwatt.model.record import Record
from batwatt.run.spec import RunSpec

if TYPE_CHECKING:
    from batwatt.run.resolve import ResolvedRun

LOGGER = logging.getLogger(__name__)
SCHEDULER = "riskaware"


def check_nominal(spec: RunSpec) -> None:
    """InputError for a run that needs an engine, as far as its specification says so."""
    problem = ""
    if spec.scheduler != SCHEDULER:
        problem = f"runs the scheduler {SCHEDULER} only, not {spec.scheduler!r}"
    elif spec.events is not None:
        problem = f"knows no external events such as those of {spec.events}"
    elif spec.more_workloads:
        problem = f"runs one workload, got {len(spec.workloads)}"
    if problem:
        raise InputError("--engine nominal", problem, "use --engine embedded")


def nominal_record(
    resolved: ResolvedRun, progress: Callable[[float, int], None] | None
) -> tuple[Record, DeadlockError | None]:
    """What the run writes down, and the deadlock if it ends in one. Raises InputError for what needs an engine."""
    from batwatt.systems.riskaware.nominal import NominalRun, go

    if isinstance(go, FunctionType):
        LOGGER.warning("--engine nominal is not compiled here, and slower than embedded (which writes the same files)")
    inputs = resolved.inputs
    run = NominalRun(inputs.platform, inputs.run[0], resolved.scheduler, resolved.config)
    deadlock = None
    try:
        run.go(progress)
    except DeadlockError as error:
        deadlock = error
    return run.record(), deadlock
