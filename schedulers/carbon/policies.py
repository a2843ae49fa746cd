"""Policies of starts and pauses of jobs under a carbon or price signal, and the windows in which jobs may start."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import numpy as np

from batwatt.checks import time_zone
from batwatt.errors import InputError, UnknownNameError
from batwatt.model.timeline import Timeline
from batwatt.model.work import Array, Steps, constant
from batwatt.schedulers.carbon.execution import Interval, ShiftJob, carry_out
from batwatt.schedulers.carbon.forecast import (
    NOISE,
    ahead,
    candidates,
    check_slots,
    emitted,
    first_least,
    quantile_in_time,
)
from batwatt.schedulers.carbon.optimum import plan
from batwatt.scheduling.registry import load_distributed, register
from batwatt.units import DAY_S, HOUR_S, PRECISION_S

SHORT_S = 2 * HOUR_S
"""Jobs shorter than this are short, all others long (the two classes of GAIA)."""
_MORNING_H, _EVENING_H = 9.0, 17.0
_MONDAY, _THURSDAY, _SATURDAY, _SUNDAY = 0, 3, 5, 6


@dataclass(frozen=True)
class StartWindow:
    """Window [`arrival_s`, `arrival_s` + `wait_s`] for the start of an uninterrupted job. Raises ValueError."""

    arrival_s: float
    wait_s: float

    def __post_init__(self) -> None:
        if not 0.0 <= self.wait_s < math.inf:
            raise ValueError(f"a job must be allowed to wait >= 0 s, got {self.wait_s!r}")

    @property
    def latest_s(self) -> float:
        """The latest start of a job that runs in one piece."""
        return self.arrival_s + self.wait_s

    def after(self, time_s: float) -> StartWindow:
        """Return the rest of the window from a time on, which is one start at least."""
        if time_s <= self.arrival_s:
            return self
        return StartWindow(time_s, max(self.latest_s - time_s, 0.0))

    def deadline_s(self, job: ShiftJob) -> float:
        """Return the time in s by which the job must have finished."""
        return self.latest_s + job.length_s


def is_short(job: ShiftJob) -> bool:
    """Return whether the job is of the short class."""
    return job.length_s < SHORT_S


class MeanLengths:
    """The mean lengths of both classes, over the jobs that have arrived: all that a scheduler knows of a class."""

    def __init__(self) -> None:
        self._sums = {True: (0.0, 0), False: (0.0, 0)}
        """(sum in s, number) of the jobs, by whether they are short."""

    def add(self, job: ShiftJob) -> None:
        """Count a job that arrives, in the order of arrival."""
        total_s, count = self._sums[is_short(job)]
        self._sums[is_short(job)] = total_s + job.length_s, count + 1

    def of(self, job: ShiftJob) -> float:
        """Return the mean in s of the class of a job that has arrived."""
        total_s, count = self._sums[is_short(job)]
        return total_s / count


def check_limits(deadline_h: float | None, constraint: str | None, clock: str = "UTC") -> None:
    """Raise InputError if a constraint or its clock is unknown, or there is a deadline too."""
    time_zone("option clock", "clock", clock)
    if constraint is not None and _kind(constraint) not in CONSTRAINTS:
        raise UnknownNameError("option constraint", "constraint", constraint, CONSTRAINTS, "Take one of these.")
    if deadline_h is not None and constraint is not None:
        raise InputError("options", "have both deadline_h and constraint", "give one of them")


def _kind(constraint: str) -> str:
    return constraint.lower().replace("_", "-")


def start_window(
    job: ShiftJob,
    integral: Timeline,
    wait_h: Sequence[float],
    deadline_h: float | None,
    constraint: str | None,
    clock: str = "UTC",
) -> StartWindow:
    """Return the window by the deadline or the constraint, if there is one, else by class. Raises InputError."""
    if deadline_h is not None:
        return by_deadline(job, deadline_h)
    return by_class(job, wait_h) if constraint is None else by_constraint(job, constraint, integral, clock)


def by_class(job: ShiftJob, wait_h: Sequence[float]) -> StartWindow:
    """Return the window of a job: `wait_h[0]` h if it is short, `wait_h[1]` h if long; a single value is for all."""
    return StartWindow(job.arrival_s, HOUR_S * wait_h[0 if len(wait_h) == 1 or is_short(job) else 1])


def by_deadline(job: ShiftJob, deadline_h: float) -> StartWindow:
    """Return the window of a job to finish within `deadline_h` h of its arrival. Raises InputError if it cannot."""
    wait_s = deadline_h * HOUR_S - job.length_s
    if not wait_s >= -PRECISION_S:
        problem = f"it takes {job.length_s:g} s and must finish within {deadline_h:g} h of its arrival"
        raise InputError(f"job {job.id}", problem, f"allow at least {job.length_s / HOUR_S:g} h")
    return StartWindow(job.arrival_s, max(wait_s, 0.0))


def by_constraint(job: ShiftJob, constraint: str, integral: Timeline, clock: str = "UTC") -> StartWindow:
    """Return the window until people can tell the difference (Let's Wait Awhile), by the local clock `clock`.

    W = target - (arrival + length), where the target follows from when the job would finish if it started at once.
    The signal must tell its date. Raises InputError.
    """
    kind = _kind(constraint)
    if integral.date_s is None:
        problem = f"{kind} needs a date, and the signal has none"
        raise InputError(integral.source, problem, "take a signal with dates, or say how many hours jobs may wait")
    begin = datetime.fromtimestamp(integral.date_s, UTC)
    # whole microseconds, so that 09:00 is 09:00
    finish = begin + timedelta(microseconds=round((job.arrival_s + job.length_s) * 1e6))
    target = CONSTRAINTS[kind](finish.astimezone(time_zone("options", "clock", clock)))
    return StartWindow(job.arrival_s, (target.astimezone(UTC) - finish.astimezone(UTC)).total_seconds())


def next_workday(finish: datetime) -> datetime:
    """Return the next morning at 9 for a finish in the evening or at night, the finish itself in working hours.

    On Saturday: Monday 09:00. On Sunday or after 17:00: 09:00 of the next day (so Friday evening: Saturday). Before
    09:00: 09:00 of that day. Else the finish itself.
    """
    midnight = finish.replace(hour=0, minute=0, second=0, microsecond=0, tzinfo=None)
    hour = (finish.replace(tzinfo=None) - midnight).total_seconds() / HOUR_S
    if finish.weekday() == _SATURDAY:
        return _morning(finish, 2)
    if finish.weekday() == _SUNDAY or hour > _EVENING_H:
        return _morning(finish, 1)
    return _morning(finish, 0) if hour < _MORNING_H else finish


def semi_weekly(finish: datetime) -> datetime:
    """Return the next Monday or Thursday 09:00, whichever is first, at or after the finish."""
    days = range(8)
    mornings = (_morning(finish, day) for day in days if (finish.weekday() + day) % 7 in (_MONDAY, _THURSDAY))
    return next(morning for morning in mornings if morning >= finish)


CONSTRAINTS: dict[str, Callable[[datetime], datetime]] = {"next-workday": next_workday, "semi-weekly": semi_weekly}
"""Constraints by name: from the finish to the latest finish, both by the local clock."""


def _morning(moment: datetime, days: int) -> datetime:
    return (moment + timedelta(days=days)).replace(hour=int(_MORNING_H), minute=0, second=0, microsecond=0, fold=0)


QUANTILE = 0.3
"""Quantile of the signal over the next day for `suspend-resume-threshold`."""
MOST_CELLS = 5_000_000
"""States of an optimum, one of many: some hundredths of a second."""
STEP_S = 1800.0
"""The steps of Let's Wait Awhile."""


@dataclass(frozen=True)
class PolicyInputs:
    """Knowledge of a policy besides job and signal: the mean length of the job's class in s (None: the job's own).

    `slot_s`: the time steps of policies that plan by steps (None: their own).
    """

    expected_length_s: float | None = None
    slot_s: float | None = None


Choose = Callable[[ShiftJob, StartWindow, Timeline, PolicyInputs], tuple[Interval, ...]]


@dataclass(frozen=True)
class ShiftPolicy:
    """A policy by its name; `interrupting` if it may suspend jobs, `checkpoints` if it does so at checkpoints only.

    `exact`: its intervals count the start-ups, so that two that touch are two runs.
    """

    name: str
    choose: Choose
    interrupting: bool = False
    checkpoints: bool = False
    exact: bool = False


POLICIES: dict[str, ShiftPolicy] = {}
"""All policies by name, in the order in which users read of them."""


def policy_named(name: str, where: str = "option policy", suspending: bool = True) -> ShiftPolicy:
    """Return the policy of a name, hyphens and underscores alike. Raises InputError.

    `suspending`: whether policies that suspend jobs are among those that the error lists.
    """
    plain = name.lower().replace("_", "-")
    if plain not in POLICIES:
        load_distributed()
    if plain not in POLICIES:
        names = [policy.name for policy in POLICIES.values() if suspending or not policy.interrupting]
        raise UnknownNameError(where, "policy", name, names, "See `batwatt policies`.")
    return POLICIES[plain]


def needed_s(job: ShiftJob, window: StartWindow, inputs: PolicyInputs) -> float:
    """Return the end in s of the signal that a choice needs: n + W + the longer of the length and the expected one."""
    return window.latest_s + max(job.length_s, inputs.expected_length_s or 0.0)


def carbon_policy(name: str, **properties: bool) -> Callable[[Choose], Choose]:
    """Register a function as the policy `name`, as a decorator; `properties` as in `ShiftPolicy`."""

    def remember(choose: Choose) -> Choose:
        registered = register("policy", name)(choose)
        POLICIES[name.lower().replace("_", "-")] = ShiftPolicy(name, choose, **properties)
        return registered

    return remember


def _run(job: ShiftJob, begin_s: float) -> tuple[Interval, ...]:
    return ((begin_s, begin_s + job.length_s),)


def _after(window: StartWindow, pieces: list[Interval]) -> tuple[Interval, ...]:
    return tuple((window.arrival_s + begin, window.arrival_s + end) for begin, end in pieces)


@carbon_policy("immediate")
def immediate(job: ShiftJob, window: StartWindow, integral: Timeline, inputs: PolicyInputs) -> tuple[Interval, ...]:
    """Start on arrival: s = n."""
    return _run(job, window.arrival_s)


@carbon_policy("latest")
def latest(job: ShiftJob, window: StartWindow, integral: Timeline, inputs: PolicyInputs) -> tuple[Interval, ...]:
    """Start as late as allowed: s = n + W."""
    return _run(job, window.latest_s)


@carbon_policy("lowest")
def lowest(job: ShiftJob, window: StartWindow, integral: Timeline, inputs: PolicyInputs) -> tuple[Interval, ...]:
    """Start when the signal is lowest: s = first argmin of c(t) for t in [n, n + W], whatever the job does then."""
    part = ahead(integral, window.arrival_s, needed_s(job, window, inputs), job.id)
    reached = part.edges_s[:-1] <= window.wait_s
    return _run(job, window.arrival_s + float(part.edges_s[np.argmin(part.array[reached])]))


@carbon_policy("oracle")
def oracle(job: ShiftJob, window: StartWindow, integral: Timeline, inputs: PolicyInputs) -> tuple[Interval, ...]:
    """Start when one uninterrupted run emits least: s = first argmin of C(s), s in [n, n + W], on the true power curve.

    C is linear between the starts at which an edge of p meets an edge of c, so that only those, n and n + W matter.
    Listing 5.7 of the carbon thesis with its power as a function of time.
    """
    return _least(job, window, integral, inputs, job.model.steps)


@carbon_policy("waiting")
def waiting(job: ShiftJob, window: StartWindow, integral: Timeline, inputs: PolicyInputs) -> tuple[Interval, ...]:
    """Start when a job of mean length e emits least: s = first argmin of the integral of c over [s, s + e[.

    e is the mean length of the job's class, at constant power (GAIA's lowest window); s in [n, n + W].
    """
    return _least(job, window, integral, inputs, _usual(job, inputs))


@carbon_policy("cst-oracle")
def cst_oracle(job: ShiftJob, window: StartWindow, integral: Timeline, inputs: PolicyInputs) -> tuple[Interval, ...]:
    """Save most per time until completion: s = n + k, k = first argmax of (C(n) - C(n + k)) / (k + l), k in [0, W].

    Between two meetings of edges C is linear, so that the ratio is monotone, and only the meetings, 0 and W matter.
    """
    return _most_per_time(job, window, integral, inputs, job.model.steps)


@carbon_policy("cst-average")
def cst_average(job: ShiftJob, window: StartWindow, integral: Timeline, inputs: PolicyInputs) -> tuple[Interval, ...]:
    """Save most per time, for a job of the mean length e of its class at constant power: as cst-oracle with e for l."""
    return _most_per_time(job, window, integral, inputs, _usual(job, inputs))


@carbon_policy("suspend-resume", interrupting=True)
def suspend_resume(
    job: ShiftJob, window: StartWindow, integral: Timeline, inputs: PolicyInputs
) -> tuple[Interval, ...]:
    """Run in the cheapest l seconds of [n, n + l + W[, the earliest first among equals; knows no start-up.

    Steps of the signal are taken by (c, begin) until they last l; of the last the first part. With start-ups the job
    takes longer than l once it is suspended, and is late then.
    """
    part = ahead(integral, window.arrival_s, window.deadline_s(job), job.id)
    pieces: list[Interval] = []
    left_s = job.length_s
    for index in np.argsort(part.array, kind="stable"):
        begin, end = part.edges_s[index : index + 2].tolist()
        taken_s = min(left_s, end - begin)
        if taken_s > PRECISION_S:
            pieces.append((begin, begin + taken_s))
        left_s -= taken_s
    return _after(window, sorted(pieces))


@carbon_policy("suspend-resume-threshold", interrupting=True)
def suspend_resume_threshold(
    job: ShiftJob, window: StartWindow, integral: Timeline, inputs: PolicyInputs
) -> tuple[Interval, ...]:
    """Run whenever c(t) < q, the 0.3-quantile of the day from n, or once W has been waited in all; knows no start-up.

    q = the least value v such that c <= v for 30 % of [n, n + 24 h[, which ends where the signal ends.
    """
    begin = window.arrival_s
    bound = quantile_in_time(integral, begin, min(begin + DAY_S, integral.until_s), QUANTILE)
    part = ahead(integral, begin, window.deadline_s(job), job.id)
    pieces: list[Interval] = []
    left_s, patience_s = job.length_s, window.wait_s
    for at, end, value in zip(part.edges_s[:-1].tolist(), part.edges_s[1:].tolist(), part.values, strict=True):
        waited_s = 0.0 if value < bound else min(patience_s, end - at)
        patience_s -= waited_s
        ran_s = min(left_s, end - at - waited_s)
        if ran_s > PRECISION_S:
            pieces.append((at + waited_s, at + waited_s + ran_s))
        left_s -= ran_s
    return _after(window, pieces)


@carbon_policy("wait-awhile")
def wait_awhile(job: ShiftJob, window: StartWindow, integral: Timeline, inputs: PolicyInputs) -> tuple[Interval, ...]:
    """Start after k steps, where the mean of c over the run is least: s = n + k d, first argmin for k d <= W.

    d = 30 min, or the slot that is given; k whole. Let's Wait Awhile, not interrupting, with the right bound.
    """
    step_s = inputs.slot_s or STEP_S
    check_slots(window.wait_s, step_s)
    offsets: Array = np.arange(int(window.wait_s / step_s + PRECISION_S) + 1, dtype=np.float64) * step_s
    part = ahead(integral, window.arrival_s, window.deadline_s(job), job.id)
    sums = part.per_watt(offsets, offsets + job.length_s)
    return _run(job, window.arrival_s + float(offsets[first_least(sums)]))


@carbon_policy("wait-awhile-interrupting", interrupting=True)
def wait_awhile_interrupting(
    job: ShiftJob, window: StartWindow, integral: Timeline, inputs: PolicyInputs
) -> tuple[Interval, ...]:
    """Run in the D cheapest steps of [n, n + l + W[, by (mean of c, begin); knows no start-up.

    Steps of d = 30 min, or of the slot that is given, begin at n; the last is cut at the deadline. D is the least
    number of them that lasts l. Let's Wait Awhile, interrupting, with the right bound.
    """
    step_s = inputs.slot_s or STEP_S
    length_s = window.deadline_s(job) - window.arrival_s
    check_slots(length_s, step_s)
    edges: Array = np.append(np.arange(0.0, length_s, step_s), length_s)
    part = ahead(integral, window.arrival_s, window.deadline_s(job), job.id)
    means = part.per_watt(edges[:-1], edges[1:]) / np.diff(edges)
    # means that differ by rounding alone are equal
    order = np.argsort(np.round(means / (np.abs(means).max() or 1.0), 12), kind="stable")
    lasting = np.cumsum(np.diff(edges)[order])
    steps = np.sort(order[: int(np.argmax(lasting >= job.length_s - PRECISION_S)) + 1])
    return _after(window, [(float(edges[i]), float(edges[i + 1])) for i in steps])


@carbon_policy("phase-aware", interrupting=True, exact=True)
def phase_aware(job: ShiftJob, window: StartWindow, integral: Timeline, inputs: PolicyInputs) -> tuple[Interval, ...]:
    """Run and suspend so that least is emitted with every start-up counted: the exact optimum (dynamic programming).

    Section 5.3.3 of the carbon thesis. Slots are those given, or the longest that fit the job and the signal, as far as
    that leaves MOST_CELLS states, else a little longer. A job of one power without a start-up needs no slots: for it
    suspend-resume is the optimum.
    """
    plain = not job.model.startup and len(job.model.work_steps.watts) == 1
    if plain and inputs.slot_s is None:
        whole = carry_out(job, suspend_resume(job, window, integral, inputs))
        return tuple((segment.begin_s, segment.end_s) for segment in whole.segments)
    return _optimum(job, window, integral, inputs, False)


@carbon_policy("phase-aware-checkpoints", interrupting=True, checkpoints=True, exact=True)
def phase_aware_checkpoints(
    job: ShiftJob, window: StartWindow, integral: Timeline, inputs: PolicyInputs
) -> tuple[Interval, ...]:
    """Exact optimum where jobs can be suspended at the ends of their checkpoint phases only (dynamic programming).

    A job without one needs no slots: for it oracle is the optimum.
    """
    if not job.model.checkpoints_s and inputs.slot_s is None:
        return oracle(job, window, integral, PolicyInputs())
    return _optimum(job, window, integral, inputs, True)


def _optimum(
    job: ShiftJob, window: StartWindow, integral: Timeline, inputs: PolicyInputs, checkpoints: bool
) -> tuple[Interval, ...]:
    return plan(
        job.model,
        integral,
        window.arrival_s,
        window.deadline_s(job),
        slot_s=inputs.slot_s,
        checkpoints=checkpoints,
        most_cells=MOST_CELLS,
    ).intervals


def _usual(job: ShiftJob, inputs: PolicyInputs) -> Steps:
    return constant(inputs.expected_length_s or job.length_s, 1.0).steps


def _least(
    job: ShiftJob, window: StartWindow, integral: Timeline, inputs: PolicyInputs, steps: Steps
) -> tuple[Interval, ...]:
    part = ahead(integral, window.arrival_s, needed_s(job, window, inputs), job.id)
    starts = candidates(steps, part, window.wait_s)
    return _run(job, window.arrival_s + float(starts[first_least(emitted(starts, steps, part))]))


def _most_per_time(
    job: ShiftJob, window: StartWindow, integral: Timeline, inputs: PolicyInputs, steps: Steps
) -> tuple[Interval, ...]:
    part = ahead(integral, window.arrival_s, needed_s(job, window, inputs), job.id)
    starts = candidates(steps, part, window.wait_s)
    carbon = emitted(starts, steps, part)
    gains = (carbon[0] - carbon) / (starts + steps.length_s)
    # what is saved by rounding alone is not saved
    slack = NOISE * float(np.abs(carbon).max()) / steps.length_s
    return _run(job, window.arrival_s + float(starts[np.argmax(gains >= gains.max() - slack)]))
