"""Simulation of jobs under a signal and a policy: their executions, machines and outcome."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Annotated

import numpy as np
import pandas as pd

from batwatt.checks import Between, Parameters, rng_of
from batwatt.errors import InputError, UnknownNameError
from batwatt.model.signal_integral import SignalIntegral
from batwatt.systems.carbon.costs import FREE, MachinePrices, Request, assign
from batwatt.systems.carbon.execution import Execution, Interval, ShiftJob, carry_out
from batwatt.systems.carbon.optimum import NoPlanError
from batwatt.systems.carbon.outcome import Outcome, rows_of
from batwatt.systems.carbon.policies import POLICIES, Facts, ShiftPolicy, is_policy, policy_named
from batwatt.systems.carbon.windows import StartWindow, expected_lengths, is_short, start_window

_WHERE = "options of the simulation"
MACHINE_RULES = {
    "carbon": "Start as the policy of the option carbon_policy says.",
    "cost": "Start as soon as the reserved cpus suffice for the job, at the latest at s = n + W.",
    "carbon-cost": "Start as soon as the reserved cpus suffice, at the latest when the policy carbon_policy says.",
    "POLICY-cost": "The same with any policy that does not suspend jobs.",
    "POLICY-spot": "Jobs of less than 2 h run on spot machines, when POLICY says (and wait for no reserved cpus).",
}
"""Further names of the option policy, and their meanings."""


@dataclass(frozen=True)
class ShiftOptions(Parameters, where=_WHERE):
    """Limits of the waits of jobs, weights of carbon and price, and machines. Raises InputError.

    A job waits `wait_h` hours (short and long jobs, or one value for all), or finishes within `deadline_h` hours of its
    arrival, or by the `constraint` of Let's Wait Awhile on the local `clock`. Policies plan by `carbon_weight` x carbon
    + `price_weight` x price; carbon and cost are charged apart. `prices` None: those of GAIA, or free machines where
    the energy has a price. With `forecast_error` e the policies see each row of the signal, but for that at the
    arrival, with an error of N(0, e x mean), in `repetitions` realisations. With `averaged` they see jobs at their mean
    power, without phases or checkpoints. With `checkpoints` a suspended job loses what it worked since the last.
    """

    wait_h: tuple[float, ...] = (6.0, 24.0)
    deadline_h: Annotated[float | None, Between(0.0, ends="][")] = None
    constraint: str | None = None
    clock: str = "UTC"
    price: SignalIntegral | None = None
    carbon_weight: Annotated[float, Between(0.0)] = 1.0
    price_weight: Annotated[float, Between(0.0)] = 0.0
    reserved: Annotated[int, Between(0)] = 0
    prices: MachinePrices | None = None
    carbon_policy: str = "oracle"
    forecast_error: Annotated[float, Between(0.0)] = 0.0
    repetitions: Annotated[int, Between(1)] = 10
    seed: int = 0
    slot_s: Annotated[float | None, Between(0.0, ends="][")] = None
    max_starts: Annotated[int | None, Between(1)] = None
    averaged: bool = False
    checkpoints: bool = False

    def __post_init__(self) -> None:
        if len(self.wait_h) not in (1, 2):
            raise InputError(_WHERE, f"wait_h takes one or two values, got {len(self.wait_h)}", "as in 6x24")
        for hours in self.wait_h:
            Between(0.0).check(_WHERE, "wait_h", hours)
        super().__post_init__()
        policy_named(self.carbon_policy)
        if self.deadline_h is not None and self.constraint is not None:
            raise InputError(_WHERE, "has both deadline_h and constraint", "give one of them")
        if self.price_weight > 0.0 and self.price is None:
            raise InputError(_WHERE, "price_weight is given and no price", "give a price signal")
        if not self.carbon_weight + self.price_weight > 0.0:
            raise InputError(_WHERE, "carbon_weight and price_weight are both 0", "give one of them")

    def machine_prices(self) -> MachinePrices:
        """Return the prices of machines."""
        return self.prices or (FREE if self.price is not None else MachinePrices())


@dataclass(frozen=True)
class Rule:
    """A policy, and the machines of its jobs: `conserving` ones start early on reserved cpus that are free."""

    name: str
    policy: ShiftPolicy
    conserving: bool = False
    spot: bool = False


def rule_named(name: str, carbon_policy: str = "oracle") -> Rule:
    """Return the rule named: a policy, `cost`, `carbon` or POLICY-cost, with or without `-spot`. Raises InputError."""
    full = name.lower().replace("_", "-")
    # GAIA has suspend-resume-spot-threshold
    spot, plain = "-spot" in full, full.replace("-spot", "", 1)
    conserving = plain == "cost" or plain.endswith("-cost")
    base = "latest" if plain == "cost" else plain.removesuffix("-cost")
    if base != "carbon" and not is_policy(base):
        names = [*POLICIES, *(rule for rule in MACHINE_RULES if rule.islower())]
        raise UnknownNameError("option policy", "policy", name, names, "See `batwatt policies`.")
    policy = policy_named(carbon_policy if base == "carbon" else base)
    if conserving and policy.interrupting:
        problem = f"{name!r} would start jobs earlier than planned, and {policy.name} plans to suspend them"
        raise InputError("option policy", problem, "take a policy that does not suspend jobs")
    return Rule(full, policy, conserving, spot)


def simulate(
    jobs: Sequence[ShiftJob], integral: SignalIntegral, policy: str, options: ShiftOptions | None = None
) -> Outcome:
    """Return the outcome of a policy for jobs under a carbon signal, each on its own but for the reserved cpus.

    Policies choose by their window and the signal; their choice is carried out on the true phases of the job, and
    charged on the true signal. Raises InputError.
    """
    options = options or ShiftOptions()
    rule = rule_named(policy, options.carbon_policy)
    if options.checkpoints and rule.policy.name == "phase-aware":
        rule = replace(rule, policy=policy_named("phase-aware-checkpoints"))
    _check(jobs, integral, options)
    limits = options.wait_h, options.deadline_h, options.constraint, options.clock
    windows = [start_window(job, integral, *limits) for job in jobs]
    signal = integral
    if options.price is not None and options.price_weight > 0.0:
        signal = integral.plus(options.price, options.carbon_weight, options.price_weight)
    means = expected_lengths(jobs).items()
    facts = {short: Facts(mean_s, options.slot_s, options.max_starts) for short, mean_s in means}
    parts, fixed = [], []
    for repetition, forecast in enumerate(_forecasts(signal, options)):
        plans = [
            _chosen(job, window, _with_present(forecast, signal, job), rule, facts[is_short(job)], options)
            for job, window in zip(jobs, windows, strict=True)
        ]
        executions, machines = _on_machines(jobs, windows, plans, rule, options)
        for execution in executions:
            for charged in (integral, options.price):
                if charged is not None:
                    charged.covers(execution.end_s, f"job {execution.job.id}")
        prices = options.machine_prices()
        deadlines = {job.id: window.deadline_s(job) for job, window in zip(jobs, windows, strict=True)}
        rows = rows_of(
            executions, integral, price=options.price, deadlines_s=deadlines, machines=machines, rates=prices.rates()
        )
        parts.append(rows.assign(repetition=repetition))
        fixed.append(prices.fixed(options.reserved, float(rows["begin_s"].max())))
    return Outcome(rule.name, pd.concat(parts, ignore_index=True), math.fsum(fixed) / len(fixed))


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


def _forecasts(signal: SignalIntegral, options: ShiftOptions) -> Iterator[SignalIntegral]:
    """Yield the signal as policies see it, once for each repetition."""
    rng = rng_of(options.seed, _WHERE)
    if options.forecast_error == 0.0:
        yield signal
        return
    mean = float(np.average(signal.values, weights=np.diff(signal.edges_s)))
    for _ in range(options.repetitions):
        errors = rng.normal(0.0, options.forecast_error * abs(mean), len(signal.values))
        yield replace(signal, values=signal.values + errors)


def _with_present(forecast: SignalIntegral, signal: SignalIntegral, job: ShiftJob) -> SignalIntegral:
    """Return the forecast with the true value at the job's arrival: the present is known."""
    if forecast is signal:
        return signal
    values = forecast.values.copy()
    index = int(np.searchsorted(signal.edges_s, job.arrival_s, "right")) - 1
    values[index] = signal.values[index]
    return replace(forecast, values=values)


def _chosen(
    job: ShiftJob, window: StartWindow, signal: SignalIntegral, rule: Rule, facts: Facts, options: ShiftOptions
) -> tuple[Interval, ...]:
    """Return the intervals in which the policy lets the job run."""
    seen = replace(job, model=job.model.averaged()) if options.averaged else job
    try:
        return rule.policy.choose(seen, window, signal, facts)
    except NoPlanError as error:
        raise InputError(f"job {job.id}", str(error), "let it wait longer, or take shorter slots") from None


def _on_machines(
    jobs: Sequence[ShiftJob],
    windows: Sequence[StartWindow],
    plans: Sequence[tuple[Interval, ...]],
    rule: Rule,
    options: ShiftOptions,
) -> tuple[list[Execution], list[list[str]]]:
    """Return the executions, and the machine of each of their segments."""
    checkpoints = options.checkpoints or rule.policy.checkpoints
    executions = [
        carry_out(job, intervals, checkpoints=checkpoints, apart=rule.policy.exact)
        for job, intervals in zip(jobs, plans, strict=True)
    ]
    requests = []
    for window, execution in zip(windows, executions, strict=True):
        job = execution.job
        spot = rule.spot and is_short(job)
        for segment in execution.segments:
            length_s = segment.end_s - segment.begin_s
            early = rule.conserving and not spot
            requests.append(Request(window.arrival_s, segment.begin_s, length_s, job.cpus, early, spot))
    assignments = iter(assign(requests, options.reserved))
    machines = []
    for index, execution in enumerate(executions):
        places = [next(assignments) for _ in execution.segments]
        machines.append([one.machine for one in places])
        if places[0].begin_s < execution.begin_s:
            begin_s = places[0].begin_s
            executions[index] = carry_out(execution.job, ((begin_s, begin_s + execution.job.length_s),))
    return executions, machines
