"""The exact optimum of phase-aware suspend/resume, by dynamic programming.

The rules: docs/explanation/carbon.md, "The optimum".

The window has T slots, the start-up S, the work W; c_t is the cost of 1 W in slot t, w_j the power of work slot j, K_u
the cost of a start-up that begins in slot u. On(t, j) is the least cost of being on at time t with j slots worked,
Off(t, j) of being off:

    On(t, j)  = min( On(t-1, j-1) + w_{j-1} c_{t-1},   Off(t-S, j) + K_{t-S} )
    Off(t, j) = min( Off(t-1, j),   On'(t, j) )             On': the first term of On only
    Off(t, 0) = 0                                           the answer: min over t of On(t, W)

With checkpoints Off exists at their ends only. In blocked slots both terms of On are infinite. Work keeps the lateness
d = t - S - j, so one pass over j with a vector over d suffices: time O((T - S - W) x W), memory two bits a cell.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt
from numpy.typing import NDArray

from batwatt.errors import InputError
from batwatt.model.timeline import Timeline
from batwatt.model.work import Array, PhaseModel, ShiftJob
from batwatt.schedulers.carbon.execution import Execution, Interval, Segment
from batwatt.schedulers.carbon.forecast import MOST_SLOTS, ahead, candidates, check_slots, emitted, first_least, weighed
from batwatt.units import J_PER_KWH, PRECISION_S

MOST_CELLS = 1_000_000_000
"""More states are not computed: the slots become longer, or the user is asked to make them so."""
ROUGH_CELLS = 100_000_000
"""Most states where the slot that fits makes too many: a longer slot is taken, for seconds, not half a minute."""
_MICRO = 1_000_000
_SLOTS_S = tuple(base * 10.0**power for power in range(-3, 7) for base in (1.0, 2.0, 5.0))


class NoPlanError(ValueError):
    """No schedule finishes by the deadline."""


class _NoSlotError(InputError):
    """Slots in which the job fits into the window are too many, and it does not fit into longer ones."""


@dataclass(frozen=True)
class TimeGrid:
    """A window cut into slots, and a job in them; W and costs are those of slots.

    `work_w` [W]: mean power of each slot of work. `cost` [T]: cost of 1 W in each slot. `starts` [T - S + 1]: cost of a
    start-up that begins with a slot. `rows`: slots of work after which the job may be suspended, ascending;
    `progress_s` [W + 1]: its progress by then. `extra`: slots that a restart takes beyond a start-up, to get from a
    checkpoint within a slot to the end of the slot. `restarts`: cost of a restart after which work goes on as after
    such a start-up. `barred` [T]: slots in which it must not run. `exact`: the job and the signal change at ends of
    slots only.
    """

    model: PhaseModel
    begin_s: float
    slot_s: float
    startup: int
    work_w: Array
    cost: Array
    starts: Array
    restarts: Array
    extra: int
    rows: npt.NDArray[np.int64]
    progress_s: Array
    barred: npt.NDArray[np.bool_]
    exact: bool

    @property
    def slots(self) -> int:
        """T."""
        return len(self.cost)

    @property
    def slack(self) -> int:
        """Slots by which the job may end later than at the earliest."""
        return self.slots - self.startup - len(self.work_w)

    def segment(self, start: int, worked: int, until: int) -> Segment:
        """Return a run from slot `start`, with work from `worked` slots until `until`, in the job's own times."""
        begin = self.begin_s + start * self.slot_s
        return Segment(begin, self.model.startup_s, float(self.progress_s[worked]), float(self.progress_s[until]))


@dataclass(frozen=True)
class ShiftPlan:
    """Segments of least carbon (or cost) for one cpu; `rounded` if the slots do not fit the job or the signal.

    `carbon` is worked out from the segments in the job's own times, whatever the slots.
    """

    model: PhaseModel
    segments: tuple[Segment, ...]
    carbon: float
    slot_s: float
    slots: int
    rounded: bool

    @property
    def intervals(self) -> tuple[Interval, ...]:
        """Times in s between which the job runs; to be carried out `apart`."""
        return tuple((segment.begin_s, segment.end_s) for segment in self.segments)


def plan(
    model: PhaseModel,
    integral: Timeline,
    begin_s: float,
    deadline_s: float,
    *,
    slot_s: float | None = None,
    checkpoints: bool = False,
    blocked: npt.NDArray[np.bool_] | None = None,
    most_cells: int = MOST_CELLS,
) -> ShiftPlan:
    """Return the schedule in [begin, deadline] that emits least under the signal.

    Every start pays the whole start-up, work is kept while suspended. `slot_s` None: the longest slot that fits the job
    and the signal, as far as that leaves at most `most_cells` states. With `checkpoints` the job is suspended at the
    ends of its checkpoint phases only (elsewhere work would be lost, which never pays under a signal >= 0). In slots
    that are `blocked` [T] it must not run. Raises NoPlanError, InputError.
    """
    try:
        grid = grid_of(model, integral, begin_s, deadline_s, slot_s, checkpoints, blocked, most_cells)
    except _NoSlotError:
        return _in_one_piece(model, integral, begin_s, deadline_s)
    best = plan_of(grid, tuple(grid.segment(*piece) for piece in _solved(grid)), integral)
    if grid.exact or slot_s is not None:
        return best
    whole = _in_one_piece(model, integral, begin_s, deadline_s)
    return replace(best, segments=whole.segments, carbon=whole.carbon) if whole.carbon < best.carbon else best


def _in_one_piece(model: PhaseModel, integral: Timeline, begin_s: float, deadline_s: float) -> ShiftPlan:
    """Return the best run without a suspension, at any moment; as if the window were one slot."""
    window_s = deadline_s - begin_s
    part = ahead(integral, begin_s, deadline_s)
    starts = candidates(model.steps, part, max(window_s - model.length_s, 0.0))
    carbon = emitted(starts, model.steps, part)
    best = first_least(carbon)
    segment = Segment(begin_s + float(starts[best]), model.startup_s, 0.0, model.work_s)
    return ShiftPlan(model, (segment,), float(carbon[best]), window_s, 1, True)


def plan_of(grid: TimeGrid, segments: tuple[Segment, ...], integral: Timeline) -> ShiftPlan:
    """Return a plan from its segments."""
    carbon = sum(float(integral.of_steps(segment.begin_s, segment.steps(grid.model))) for segment in segments)
    return ShiftPlan(grid.model, segments, carbon, grid.slot_s, grid.slots, not grid.exact)


def grid_of(
    model: PhaseModel,
    integral: Timeline,
    begin_s: float,
    deadline_s: float,
    slot_s: float | None = None,
    checkpoints: bool = False,
    blocked: npt.NDArray[np.bool_] | None = None,
    most_cells: int = MOST_CELLS,
) -> TimeGrid:
    """Return the slots of a window. Raises NoPlanError, InputError."""
    window_s = deadline_s - begin_s
    if not window_s >= model.length_s - PRECISION_S:
        raise NoPlanError(f"there are {window_s:g} s until the deadline and the job takes {model.length_s:g} s")
    if not begin_s >= 0.0:
        raise InputError(integral.source, f"the signal begins at 0 s, after {begin_s:g} s", "start the job later")
    integral.covers(deadline_s, "the job")
    fitting_s = _fitting_s(model, integral, begin_s, deadline_s)
    if slot_s is None:
        slot_s = _chosen_s(model, window_s, fitting_s, most_cells)
    elif not 0.0 < slot_s < math.inf:
        raise ValueError(f"slot_s must be > 0 s and finite, got {slot_s!r}")
    check_slots(window_s, slot_s)
    slots, startup, work = _counts(model, window_s, slot_s)
    if slots < startup + work:
        raise NoPlanError(
            f"the job takes {startup} + {work} slots of {slot_s:g} s and there are {slots} until the deadline"
        )
    if _cells(slots, startup, work) > MOST_CELLS:
        problem = f"slots of {slot_s:g} s make more than {MOST_CELLS} states"
        raise InputError("the optimum", problem, "take longer slots or a nearer deadline")
    if blocked is not None and blocked.shape != (slots,):
        raise ValueError(f"blocked must tell of {slots} slots, has the shape {blocked.shape}")
    times: Array = begin_s + np.arange(slots + 1, dtype=np.float64) * slot_s
    ends: Array = np.minimum(np.arange(work + 1, dtype=np.float64) * slot_s, model.work_s)
    ends[-1] = model.work_s
    starts = integral.of_steps(times[: slots - startup + 1], model.startup_steps)
    barred = np.zeros(slots, dtype=np.bool_) if blocked is None else blocked
    if startup:
        within = np.concatenate([(0,), np.cumsum(barred)])
        starts[within[startup:] > within[: slots - startup + 1]] = np.inf
    rows, progress = np.arange(1, work), ends
    if checkpoints:
        # of several in one slot the last counts
        marks = {math.ceil(at / slot_s - PRECISION_S): at for at in model.checkpoints_s}
        marks = {row: at for row, at in marks.items() if row < work}
        rows, progress = np.array(list(marks), dtype=np.int64), ends.copy()
        progress[rows] = list(marks.values())
    lag_s = float(np.max(ends - progress))
    extra = math.ceil((model.startup_s + lag_s) / slot_s - PRECISION_S) - startup
    restarts = starts
    if extra:
        restarts = np.concatenate([np.full(extra, np.inf), starts[:-extra]])
        restarts[extra:][barred[startup : len(restarts) - extra + startup]] = np.inf
    return TimeGrid(
        model=model,
        begin_s=begin_s,
        slot_s=slot_s,
        startup=startup,
        work_w=np.diff(model.work_steps.energy_until(ends)) / slot_s,
        cost=np.diff(integral.integral(times)) / J_PER_KWH,
        starts=starts,
        restarts=restarts,
        extra=extra,
        rows=rows,
        progress_s=progress,
        barred=barred,
        exact=abs(fitting_s / slot_s - round(fitting_s / slot_s)) < PRECISION_S,
    )


def _solved(grid: TimeGrid) -> list[tuple[int, int, int]]:
    """Return (slot of the start, slots worked before, slots worked at its end) of each segment, in order."""
    width, startup = grid.slack + 1, grid.startup
    row_of = np.full(len(grid.work_w) + 1, -1, dtype=np.int64)
    row_of[grid.rows] = np.arange(len(grid.rows))
    on = grid.starts[:width].copy()
    flags = np.empty((2, len(grid.rows), (width + 7) // 8), dtype=np.uint8)
    barred = np.where(grid.barred, np.inf, 0.0)
    gap = max(startup + grid.extra, 1)
    fill(grid.work_w, grid.cost, barred, grid.restarts, row_of, startup, gap, on, *flags)
    best = float(on.min())
    if best == math.inf:
        raise NoPlanError("the slots in which the job may run are too few before the deadline")
    # the earliest end of what is equal but for rounding
    late = int(np.argmax(on <= best + NOISE * abs(best)))
    return _traced(flags, row_of, late, gap, grid.extra)


def _traced(
    flags: npt.NDArray[np.uint8],
    row_of: npt.NDArray[np.int64],
    late: int,
    gap: int,
    extra: int,
) -> list[tuple[int, int, int]]:
    """Go back from the row in which the job finishes to its first start."""
    fresh, better = flags
    until = len(row_of) - 1
    segments: list[tuple[int, int, int]] = []
    for worked in range(until, 0, -1):
        row = row_of[worked]
        if row < 0 or not fresh[row, late >> 3] >> (late & 7) & 1:
            continue
        segments.append((late + worked - extra, worked, until))
        until = worked
        late -= gap
        while not better[row, late >> 3] >> (late & 7) & 1:
            late -= 1
    segments.append((late, 0, until))
    return segments[::-1]


def _counts(model: PhaseModel, window_s: float, slot_s: float) -> tuple[int, int, int]:
    """Return the slots of the window, of a start-up and of the work."""
    return (
        math.floor(window_s / slot_s + PRECISION_S),
        math.ceil(model.startup_s / slot_s - PRECISION_S),
        max(1, math.ceil(model.work_s / slot_s - PRECISION_S)),
    )


def _cells(slots: int, startup: int, work: int) -> int:
    return (slots - startup - work + 1) * work


def _chosen_s(model: PhaseModel, window_s: float, fitting_s: float, most_cells: int) -> float:
    """Return the slot in s that fits all, or else the shortest usual one with which the states are not too many."""
    for slot_s in (fitting_s, *(length for length in _SLOTS_S if length > fitting_s)):
        slots, startup, work = _counts(model, window_s, slot_s)
        if startup + work > slots:
            break
        most = most_cells if slot_s == fitting_s else min(most_cells, ROUGH_CELLS)
        if slots <= MOST_SLOTS and _cells(slots, startup, work) <= most:
            return slot_s
    problem = f"the window of {window_s:g} s has too many slots, and no longer slots fit the job"
    raise _NoSlotError("the optimum", problem, "give a slot, or a later deadline")


def _fitting_s(model: PhaseModel, integral: Timeline, begin_s: float, deadline_s: float) -> float:
    """Return the longest slot in s, in whole microseconds, at whose ends alone job, signal and window change."""
    lengths = (round(abs(length) * _MICRO) for length in _lengths(model, integral, begin_s, deadline_s))
    return (math.gcd(*lengths) or 1) / _MICRO


def _lengths(model: PhaseModel, integral: Timeline, begin_s: float, deadline_s: float) -> Iterator[float]:
    for steps in (model.startup_steps, model.work_steps):
        yield from (b - a for a, b in pairwise(steps.edges_s.tolist()))
    yield from model.checkpoints_s
    yield deadline_s - begin_s
    yield from (integral.edges_in(begin_s, deadline_s) - begin_s).tolist()


NOISE = 1e-13
"""A restart must be better by this share: sums that differ in their order alone are equal."""


@np.errstate(invalid="ignore")
def fill(
    work_w: Array,
    cost: Array,
    barred: Array,
    restarts: Array,
    row_of: NDArray[np.int64],
    startup: int,
    gap: int,
    on: Array,
    fresh: NDArray[np.uint8],
    better: NDArray[np.uint8],
) -> None:
    """Compute all columns; at the end `on[d]` is the least cost of having finished in row d.

    `work_w` float64[W], W of each work slot; `cost` float64[T], of 1 W in each slot; `barred` float64[T], 0 or inf;
    `restarts` float64[T - S + 1], cost of a restart, of `gap` >= S slots (and >= 1), after which work goes on S slots
    after a slot; `row_of` int64[W + 1], the row of the flags of a column in which the job may be suspended, else -1.
    `on` float64[D + 1] has the first column. Flags uint8[rows, ceil((D + 1) / 8)], a bit per cell: `fresh`, the job has
    just been started again; `better`, no earlier suspension in this column is as good.
    """
    width = len(on)
    lower, started = np.empty(width, np.bool_), np.zeros(width, np.bool_)
    late, again_at = on[gap:], started[gap:]
    for j, (watts, row) in enumerate(zip(work_w.tolist(), row_of[1:].tolist(), strict=True), start=1):
        first = startup + j - 1
        on += watts * cost[first : first + width] + barred[first : first + width]
        if row < 0:
            continue
        resting = np.minimum.accumulate(on)
        np.less(on[1:], resting[:-1], out=lower[1:])
        lower[0] = on[0] < np.inf
        better[row] = np.packbits(lower, bitorder="little")
        again = resting[: max(0, width - gap)] + restarts[gap + j : max(gap, width) + j]
        # inf - inf is where neither may run
        np.logical_and(again < late, late - again > NOISE * np.abs(again), out=again_at)
        np.copyto(late, again, where=again_at)
        fresh[row] = np.packbits(started, bitorder="little")


def plan_job(
    model: PhaseModel,
    carbon: Timeline,
    price: Timeline | None,
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


def _charged(execution: Execution, carbon: Timeline, price: Timeline | None = None) -> dict[str, Any]:
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
