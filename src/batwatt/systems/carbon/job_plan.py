"""A plan for one job, with what it emits and costs compared with running at once: `batwatt carbon plan`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from batwatt.errors import InputError
from batwatt.model.phases import PhaseModel, ShiftJob
from batwatt.model.signal_integral import SignalIntegral
from batwatt.systems.carbon.execution import Execution, Segment
from batwatt.systems.carbon.forecast import weighed
from batwatt.systems.carbon.optimum import NoPlanError, plan


def plan_job(
    model: PhaseModel,
    carbon: SignalIntegral,
    price: SignalIntegral | None,
    weights: tuple[float, float],
    window_s: tuple[float, float],
    cpus: int,
    limits: Mapping[str, Any],
) -> dict[str, Any]:
    """Return the plan of least `weights` x (carbon, cost), in g and units of money, as JSON. Raises InputError.

    `window_s`: start and deadline in s from the signal's first row. `limits`: the keywords of `optimum.plan`.
    """
    start_s, deadline_s = window_s
    if not start_s >= 0.0:
        problem = f"{start_s:g} s is before the signal begins"
        raise InputError("start", problem, "start later, or let the signal begin earlier")
    wanted = weighed(carbon, price, *weights)
    if price is not None:
        price.covers(deadline_s, "the job")
    carbon.covers(deadline_s, "the job")
    try:
        planned = plan(model, wanted, start_s, deadline_s, **limits)
    except NoPlanError as error:
        raise InputError("deadline", str(error), "give a later one") from None
    owner = ShiftJob("job", start_s, model, cpus)
    content: dict[str, Any] = {
        "method": "dp",
        "slot_s": planned.slot_s,
        "slots": planned.slots,
        "rounded": planned.rounded,
        "begin": carbon.begin,
        "start_s": start_s,
        "deadline_s": deadline_s,
        "cpus": cpus,
    }
    if price is not None:
        content["weights"] = dict(zip(("carbon", "price"), weights, strict=True))
    at_once = Execution(owner, (Segment(start_s, model.startup_s, 0.0, model.work_s),))
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
