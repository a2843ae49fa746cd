"""Simulation of jobs under a signal and a policy, each on its own: their outcome."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated

from batwatt.checks import Between, Parameters
from batwatt.errors import InputError
from batwatt.model.signal_integral import SignalIntegral
from batwatt.systems.carbon.execution import ShiftJob, carry_out
from batwatt.systems.carbon.forecast import weighed
from batwatt.systems.carbon.optimum import NoPlanError
from batwatt.systems.carbon.outcome import Outcome, rows_of
from batwatt.systems.carbon.policies import Facts, policy_named
from batwatt.systems.carbon.windows import check_limits, expected_lengths, is_short, start_window

_WHERE = "options of the simulation"


@dataclass(frozen=True)
class ShiftOptions(Parameters, where=_WHERE):
    """Limits of the waits of jobs, and weights of carbon and price. Raises InputError.

    A job waits `wait_h` hours (short and long jobs, or one value for all), or finishes within `deadline_h` hours of its
    arrival, or by the `constraint` of Let's Wait Awhile on the local `clock`. Policies plan by `carbon_weight` x carbon
    + `price_weight` x price; carbon and cost are charged apart.
    """

    wait_h: tuple[float, ...] = (6.0, 24.0)
    deadline_h: Annotated[float | None, Between(0.0, ends="][")] = None
    constraint: str | None = None
    clock: str = "UTC"
    price: SignalIntegral | None = None
    carbon_weight: Annotated[float, Between(0.0)] = 1.0
    price_weight: Annotated[float, Between(0.0)] = 0.0
    slot_s: Annotated[float | None, Between(0.0, ends="][")] = None

    def __post_init__(self) -> None:
        if len(self.wait_h) not in (1, 2):
            raise InputError(_WHERE, f"wait_h takes one or two values, got {len(self.wait_h)}", "as in 6x24")
        for hours in self.wait_h:
            Between(0.0).check(_WHERE, "wait_h", hours)
        super().__post_init__()
        check_limits(self.deadline_h, self.constraint)


def simulate(
    jobs: Sequence[ShiftJob], integral: SignalIntegral, policy: str, options: ShiftOptions | None = None
) -> Outcome:
    """Return the outcome of a policy for jobs under a carbon signal, each on its own.

    Policies choose by their window and the signal, weighed with a price; their choice is carried out on the phases of
    the job, and charged on each signal. Raises InputError.
    """
    options = options or ShiftOptions()
    rule = policy_named(policy)
    _check(jobs, integral, options)
    limits = options.wait_h, options.deadline_h, options.constraint, options.clock
    windows = [start_window(job, integral, *limits) for job in jobs]
    signal = weighed(integral, options.price, options.carbon_weight, options.price_weight)
    means = expected_lengths(jobs).items()
    facts = {short: Facts(mean_s, options.slot_s) for short, mean_s in means}
    executions = []
    for job, window in zip(jobs, windows, strict=True):
        try:
            intervals = rule.choose(job, window, signal, facts[is_short(job)])
        except NoPlanError as error:
            raise InputError(f"job {job.id}", str(error), "let it wait longer, or take shorter slots") from None
        execution = carry_out(job, intervals, checkpoints=rule.checkpoints, apart=rule.exact)
        for charged in (integral, options.price):
            if charged is not None:
                charged.covers(execution.end_s, f"job {job.id}")
        executions.append(execution)
    deadlines_s = [window.deadline_s(job) for job, window in zip(jobs, windows, strict=True)]
    return Outcome(rule.name, rows_of(executions, integral, options.price, deadlines_s))


def _check(jobs: Sequence[ShiftJob], integral: SignalIntegral, options: ShiftOptions) -> None:
    if not jobs:
        raise InputError("the jobs", "there are none", "give a file with jobs")
    ids = Counter(job.id for job in jobs)
    name, times = ids.most_common(1)[0]
    if times > 1:
        raise InputError("the jobs", f"{times} of them have the id {name!r}", "give each job its own")
    price = options.price
    if price is not None and price.begin and integral.begin and price.begin != integral.begin:
        problem = f"begins at {price.begin}, the carbon signal {integral.source} at {integral.begin}"
        raise InputError(price.source, problem, "let both begin at the same date")
    for job in jobs:
        integral.covers(job.arrival_s + job.length_s, f"job {job.id}")
