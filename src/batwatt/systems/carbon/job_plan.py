"""A plan for one job, with what it emits and costs compared with running at once: `batwatt carbon plan`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from batwatt.errors import InputError
from batwatt.model.phases import PhaseModel, ShiftJob
from batwatt.model.signal_integral import SignalIntegral
from batwatt.systems.carbon.execution import Execution, Segment
from batwatt.systems.carbon.optimum import NoPlanError, plan


@dataclass(frozen=True)
class JobPlanning:
    """Request of a plan. Times in s from the signal's first row; `slot_s` None: chosen by the planner."""

    start_s: float
    deadline_s: float
    slot_s: float | None = None
    max_starts: int | None = None
    checkpoints: bool = False
    cpus: int = 1


def plan_job(
    name: str,
    model: PhaseModel,
    carbon: SignalIntegral,
    price: SignalIntegral | None,
    weights: tuple[float, float],
    request: JobPlanning,
) -> dict[str, Any]:
    """Return the plan of least `weights` x (carbon, cost), in g and units of money, as JSON. Raises InputError."""
    if not request.start_s >= 0.0:
        problem = f"{request.start_s:g} s is before the signal begins"
        raise InputError("start", problem, "start later, or let the signal begin earlier")
    wanted = carbon
    if price is not None:
        price.covers(request.deadline_s, "the job")
        wanted = carbon.plus(price, *weights)
    carbon.covers(request.deadline_s, "the job")
    try:
        planned = plan(
            model,
            wanted,
            request.start_s,
            request.deadline_s,
            slot_s=request.slot_s,
            max_starts=request.max_starts,
            checkpoints=request.checkpoints,
        )
    except NoPlanError as error:
        raise InputError("deadline", str(error), "give a later one") from None
    owner = ShiftJob(name, request.start_s, model, request.cpus)
    content: dict[str, Any] = {
        "method": "dp",
        "slot_s": planned.slot_s,
        "slots": planned.slots,
        "rounded": planned.rounded,
        "begin": carbon.begin,
        "start_s": request.start_s,
        "deadline_s": request.deadline_s,
        "cpus": request.cpus,
    }
    if price is not None:
        content["weights"] = dict(zip(("carbon", "price"), weights, strict=True))
    at_once = Execution(owner, (Segment(request.start_s, model.startup_s, 0.0, model.work_s),))
    immediate = _charged(at_once, carbon, price)
    content |= _charged(Execution(owner, planned.segments), carbon, price) | {
        f"immediate_{name}": immediate[name] for name in ("carbon_g", "cost") if name in immediate
    }
    before = content["immediate_carbon_g"]
    content["saved_share"] = (before - content["carbon_g"]) / before if before > 0.0 else None
    return content


def _charged(execution: Execution, carbon: SignalIntegral, price: SignalIntegral | None = None) -> dict[str, Any]:
    """Return an execution as JSON: sums and segments; times in s from the signal's first row, cost with a price."""
    columns = {"energy_j": execution.energies(), "carbon_g": execution.emissions(carbon)}
    if price is not None:
        columns["cost"] = execution.emissions(price)
    segments: list[dict[str, Any]] = [
        {
            "begin_s": segment.begin_s,
            "end_s": segment.end_s,
            "startup_s": segment.startup_s,
            "work_from_s": segment.from_s,
            "work_to_s": segment.to_s,
            **dict(zip(columns, row, strict=True)),
        }
        for segment, *row in zip(execution.segments, *columns.values(), strict=True)
    ]
    names = ["carbon_g", "energy_j"] + ["cost"] * (price is not None)
    sums = {name: sum(segment[name] for segment in segments) for name in names}
    return {**sums, "starts": len(segments), "segments": segments}
