"""The simulation of GAIA, tick by tick in its results but not in its work.

The rules: docs/explanation/carbon-simulators.md.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pandas as pd

from batwatt.arrays import integers
from batwatt.checks import Between, checked_whole
from batwatt.errors import InputError, UnknownNameError
from batwatt.systems.carbon.costs import MachinePrices
from batwatt.systems.carbon.execution import ShiftJob
from batwatt.systems.carbon.outcome import ON_DEMAND, RESERVED, SEGMENT_COLUMNS, SPOT, Outcome
from batwatt.systems.carbon.simulators import gaia_dispatch
from batwatt.systems.carbon.simulators.gaia_rules import (
    HOURS,
    SHORT,
    START_RULES,
    TICK_S,
    GaiaJob,
    NoRoomError,
    Piece,
    Queues,
    StartRule,
    Trace,
    cheapest_pieces,
    threshold_pieces,
)

logger = logging.getLogger(__name__)
POLICIES = {
    "immediate": "Start at once (GAIA: carbon with --wait 0x0).",
    "lowest": "Start at the first of the ticks of least carbon intensity.",
    "oracle": "Start after the hours of waiting for which the job emits least.",
    "waiting": "The same for a job of the mean length of its class.",
    "cst-oracle": "Start where most carbon is saved per time from arrival to completion.",
    "cst-average": "The same for a job of the mean length of its class.",
    "carbon": "Start as the carbon policy says.",
    "carbon-spot": "The same, short jobs on spot machines; also as oracle-spot, lowest-spot, ...",
    "carbon-cost": "The same, or earlier as soon as reserved cpus suffice.",
    "carbon-cost-spot": "The same, short jobs on spot machines and no earlier.",
    "cost": "Start as soon as reserved cpus suffice, at the latest when all waiting is used up.",
    "suspend-resume": "Run in the cheapest ticks of all that are allowed.",
    "suspend-resume-spot": "The same, pieces of at most 2 h on spot machines.",
    "suspend-resume-threshold": "Run in ticks below the 0.3-quantile of the next 24 h, or when waiting is used up.",
    "suspend-resume-spot-threshold": "The same, jobs of at most 2 h on spot machines.",
}
"""What GAIA knows, under its own names; underscores and hyphens are alike."""
_MACHINES = {gaia_dispatch.ON_DEMAND: ON_DEMAND, gaia_dispatch.RESERVED: RESERVED, gaia_dispatch.SPOT: SPOT}
_PIECES = {"suspend-resume": cheapest_pieces, "suspend-resume-threshold": threshold_pieces}
_COST = "cost"
_EARLY = ("cost", "carbon-cost")
Ints = npt.NDArray[np.int64]


@dataclass(frozen=True)
class _Policy:
    """`rule`: cost, suspend-resume or suspend-resume-threshold, or how a start is chosen; `early`: or before that."""

    rule: str | StartRule
    early: bool
    spot: bool


@dataclass(frozen=True)
class _Pieces:
    """What GAIA has in its queue, int64[pieces]; `task` is the index of the job, `submit` ascends."""

    task: Ints
    submit: Ints
    due: Ints
    length: Ints
    cpus: Ints
    priority: Ints
    spot_class: Ints


def simulate(
    jobs: Sequence[ShiftJob],
    hourly: Sequence[float],
    *,
    policy: str,
    wait_h: tuple[float, ...] = (6.0, 24.0),
    reserved: int = 0,
    carbon_policy: str = "oracle",
    prices: MachinePrices | None = None,
) -> Outcome:
    """What GAIA does with these jobs under a signal by the hour (g/kWh), of which it takes the first 720 values.

    `wait_h`: h that short (< 2 h) and long jobs may wait, or one value for all. `reserved` cpus are paid from the
    beginning to the last start. Jobs draw their mean power all the time (GAIA: 1 W per cpu). Dates are those of ticks
    of 5 s. Jobs that GAIA would never start are left out, with a warning. Raises InputError, also where GAIA would
    stop with an error.
    """
    chosen = _policy(policy, carbon_policy)
    trace = Trace.of(_signal(hourly))
    lengths = np.array([job.length_s for job in jobs]) / TICK_S
    queues = Queues.of(_waits(wait_h), lengths)
    checked_whole("options", "reserved", reserved, 0, what="a whole number of cpus")
    tasks = _tasks(jobs, lengths, len(trace))
    pieces = _pieces(jobs, tasks, chosen, trace, queues)
    begin, machine = _dispatched(pieces, chosen, reserved, len(trace))
    _warn(jobs, lengths, pieces, begin)
    over = np.flatnonzero((begin != gaia_dispatch.NEVER) & (begin + pieces.length >= len(trace)))
    if len(over):
        raise _beyond(jobs[pieces.task[over[0]]], trace)
    return _outcome(policy, jobs, tasks, pieces, begin, machine, trace, reserved, prices or MachinePrices())


def _policy(name: str, carbon_policy: str) -> _Policy:
    plain, carbon = name.lower().replace("_", "-"), carbon_policy.lower().replace("_", "-")
    if carbon not in START_RULES:
        raise UnknownNameError(
            "option carbon_policy", "carbon policy", carbon_policy, START_RULES, "GAIA has no other."
        )
    spot = "-spot" in plain
    base = plain.replace("-spot", "", 1)
    known = plain in POLICIES or (plain.endswith("-spot") and base in START_RULES)
    if not known:
        raise UnknownNameError("option policy", "policy of GAIA", name, POLICIES, "GAIA has no other.")
    if base == _COST or base in _PIECES:
        return _Policy(base, base in _EARLY, spot)
    return _Policy(START_RULES.get(base, START_RULES[carbon]), base in _EARLY, spot)


def _signal(hourly: Sequence[float]) -> npt.NDArray[np.float64]:
    values = np.asarray(hourly, dtype=np.float64)[:HOURS]
    if not len(values) or not np.isfinite(values).all():
        hours = f"hour {np.flatnonzero(~np.isfinite(values))[0]} has none" if len(values) else "there are none"
        raise InputError("signal", f"GAIA needs a value for each hour, and {hours}", "take another first hour")
    return values


def _waits(wait_h: tuple[float, ...]) -> tuple[float, ...]:
    if len(wait_h) not in (1, 2):
        raise InputError("option wait", f"one or two numbers of hours >= 0, got {wait_h!r}", "give for instance 6x24")
    for hours in wait_h:
        Between(0.0, unit="h").check("options", "wait", hours)
    return wait_h


def _tasks(jobs: Sequence[ShiftJob], lengths: npt.NDArray[np.float64], ticks: int) -> list[GaiaJob]:
    """The jobs that GAIA takes in: nobody before whoever is above it in the file, nothing shorter than a tick."""
    found, submit = [], 0
    for index, (job, length) in enumerate(zip(jobs, lengths.tolist(), strict=True)):
        arrival = int(job.arrival_s / TICK_S)
        submit = max(submit, arrival)
        if submit >= ticks:
            break
        if int(length) > 0:
            found.append(GaiaJob(index, arrival, submit, int(length), job.cpus, length <= SHORT))
    return found


def _pieces(
    jobs: Sequence[ShiftJob], tasks: Sequence[GaiaJob], policy: _Policy, trace: Trace, queues: Queues
) -> _Pieces:
    rows: list[tuple[int, ...]] = []
    for task in tasks:
        try:
            parts = _parts(task, policy, trace, queues)
        except NoRoomError:
            raise _beyond(jobs[task.index], trace) from None
        # who is suspended is classed piece by piece, but not by the threshold
        own = policy.rule == "suspend-resume" and len(parts) > 1
        for begin, length in parts:
            spot = length <= SHORT if own else task.spot_class
            rows.append((task.index, task.submit, begin, length, task.cpus, task.arrival, spot))
    table = np.array(rows, dtype=np.int64).reshape(-1, 7)
    return _Pieces(*(np.ascontiguousarray(column) for column in table.T))


def _parts(task: GaiaJob, policy: _Policy, trace: Trace, queues: Queues) -> list[Piece]:
    """When the task runs; one piece unless it is suspended."""
    if isinstance(policy.rule, str):
        if policy.rule == _COST:
            return [(task.submit + queues.wait(task.length), task.length)]
        return _PIECES[policy.rule](task, trace, queues)
    begin = task.submit + policy.rule(task, trace, queues)
    if begin + task.length > len(trace):
        raise NoRoomError
    return [(begin, task.length)]


def _dispatched(pieces: _Pieces, policy: _Policy, reserved: int, ticks: int) -> tuple[Ints, Ints]:
    """When each piece begins, and on which machine."""
    spot = pieces.spot_class * policy.spot
    if not reserved:
        begin = np.where(pieces.due < ticks, pieces.due, gaia_dispatch.NEVER)
        return begin, np.where(spot, gaia_dispatch.SPOT, gaia_dispatch.ON_DEMAND)
    early = np.full(len(spot), int(policy.early)) * (1 - spot)
    starts, kinds = gaia_dispatch.dispatch(
        integers(pieces.submit.tolist()),
        integers(pieces.due.tolist()),
        integers(pieces.length.tolist()),
        integers(pieces.cpus.tolist()),
        integers(pieces.priority.tolist()),
        integers(early.tolist()),
        integers(spot.tolist()),
        reserved,
        ticks,
    )
    return np.array(starts), np.array(kinds)


def _beyond(job: ShiftJob, trace: Trace) -> InputError:
    problem = (
        f"it arrives at {job.arrival_s:g} s, takes {job.length_s:g} s, and may run until the signal's end at "
        f"{len(trace) * TICK_S:g} s or beyond, where GAIA stops with an error"
    )
    return InputError(f"job {job.id}", problem, "leave it out, let it wait less, or give a signal of up to 720 h")


def _warn(jobs: Sequence[ShiftJob], lengths: npt.NDArray[np.float64], pieces: _Pieces, begin: Ints) -> None:
    run = set(pieces.task[begin != gaia_dispatch.NEVER].tolist())
    lost = [job.id for index, job in enumerate(jobs) if index not in run]
    if not run:
        raise InputError("jobs", "none starts before the signal or GAIA's 720 h end", "take jobs that arrive earlier")
    if lost:
        few = f"{', '.join(lost[:5])}{', ...' if len(lost) > 5 else ''}"
        logger.warning("GAIA never starts %d of %d jobs, which are left out: %s", len(lost), len(jobs), few)
    refused = int((lengths < 300.0 / TICK_S).sum())
    if refused:
        logger.info("GAIA refuses jobs of less than 300 s; %d are run all the same", refused)


def _outcome(
    policy: str,
    jobs: Sequence[ShiftJob],
    tasks: Sequence[GaiaJob],
    pieces: _Pieces,
    begin: Ints,
    machine: Ints,
    trace: Trace,
    reserved: int,
    prices: MachinePrices,
) -> Outcome:
    ran = np.flatnonzero(begin != gaia_dispatch.NEVER)
    ran = ran[np.lexsort([begin[ran], pieces.task[ran]])]
    begins, index = begin[ran], pieces.task[ran]
    watts = np.array([job.model.mean_w for job in jobs])[index]
    arrival = {task.index: task.arrival for task in tasks}
    held = list(zip(begins.tolist(), pieces.length[ran].tolist(), pieces.cpus[ran].tolist(), strict=True))
    length_s = pieces.length[ran] * TICK_S
    on = [_MACHINES[kind] for kind in machine[ran].tolist()]
    rate_tick = np.array([prices.rates()[kind] * TICK_S for kind in on])
    table = pd.DataFrame({"job": [jobs[task].id for task in index.tolist()]})
    table["segment"] = pd.Series(index).groupby(index).cumcount()
    table["arrival_s"] = np.array([arrival[task] for task in index.tolist()]) * TICK_S
    table["begin_s"] = begins * TICK_S
    table["end_s"] = table["begin_s"] + length_s
    table["cpus"] = pieces.cpus[ran]
    table["startup_s"] = 0.0
    table["work_s"] = length_s
    table["energy_j"] = watts * pieces.cpus[ran] * length_s
    table["carbon_g"] = np.array([trace.grams(*piece) for piece in held]) * watts
    table["cost"] = pieces.cpus[ran] * pieces.length[ran] * rate_tick
    table["machine"] = on
    return Outcome(policy, table[list(SEGMENT_COLUMNS)], prices.fixed(reserved, float(begins.max()) * TICK_S))
