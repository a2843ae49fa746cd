"""Several systems on the same jobs and the same power, measured alike: finished jobs, waits, energy.

Every case is measured against the same envelope, whatever it follows itself: `violations`, `energy_above_cap_j` and
`unused_j`, too. Columns are figures by their names (`batwatt.results.figures`). Hosts that power feeds are those of a
machine x the machines that it feeds (`batwatt.model.site`). Cases do not depend on each other.
"""

from __future__ import annotations

import multiprocessing
import signal
from collections.abc import Callable, Collection, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass, field, replace
from functools import partial, reduce
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from batwatt.api.arguments import (
    checked,
    function_or_none,
    optional,
    options_of,
    seed_of,
    several,
    text,
    workers_of,
    wrong,
)
from batwatt.api.comparison_result import Comparison
from batwatt.api.inputs import Workload
from batwatt.api.result import Result
from batwatt.api.series import capacity_or, envelope_or, signal_or
from batwatt.api.simulation import (
    PlatformLike,
    SeriesLike,
    SignalLike,
    WorkloadLike,
    platform_and_spec,
    simulate,
    workload_given,
)
from batwatt.checks import shown
from batwatt.errors import BatwattError, InputError
from batwatt.inputs.series.capacity_spec import CapacitySpec
from batwatt.inputs.series.envelope_spec import EnvelopeSpec
from batwatt.inputs.traces.job_log import USUAL, LogOptions
from batwatt.model import workload as workloads
from batwatt.model.clock import Clock
from batwatt.model.platform import Platform
from batwatt.model.series import Series
from batwatt.model.signal_integral import SignalIntegral
from batwatt.model.site import MachinePower, least_of
from batwatt.remarks import collected_remarks, tell_before_work
from batwatt.results.compared import COMPARED, CaseFacts
from batwatt.results.figures import Values, rounded
from batwatt.results.outcomes import JobOutcomes
from batwatt.results.power import PowerTrace
from batwatt.results.power import compare as against
from batwatt.run.clock import clock_of, tell
from batwatt.run.find_scheduler import scheduler_class
from batwatt.run.inputs import capacity_of, envelope_of, signal_of
from batwatt.scheduling.base import Scheduler

if TYPE_CHECKING:
    import pandas as pd

LIMITS = ("envelope", "none", "mean")
"""What of an envelope a case may follow."""


@dataclass(frozen=True)
class Case:
    """One system: a scheduler and its options. `limit`: what of the envelope it follows, all, none, or its mean."""

    scheduler: Any
    options: Mapping[str, Any] = field(default_factory=dict)
    limit: str = "envelope"


SYSTEMS: Mapping[str, Case] = {
    "no limit": Case("powercap", {"order": "fcfs", "backfilling": "easy", "response": "none"}, "none"),
    "constant": Case("varcap", {"termination": "random"}, "mean"),
    "kill at random": Case("varcap", {"termination": "random"}),
    "powercap HFLD": Case("powercap", {"order": "slowdown", "backfilling": "easy", "response": "hfld"}),
    "powercap frugal": Case("powercap", {"order": "slowdown", "backfilling": "easy", "response": "frugal"}),
    "riskaware": Case("riskaware", {"strategy": "packed-target-asap"}),
    "varcap LWW": Case("varcap", {"termination": "lww", "backfilling": "easy"}),
    "varcap long-short": Case("varcap", {"mapping": "longshort"}),
    "checkpoint": Case("checkpoint"),
    "carbon": Case("carbon", {"policy": "oracle", "wait_h": [6.0, 24.0]}),
    "adaptive": Case("adaptive"),
}
"""References, the best known setting of each system by its paper or by measurement, and a scheduler of their parts."""
PRESETS: Mapping[str, Mapping[str, Case]] = {"systems": SYSTEMS}


@dataclass(frozen=True)
class Measured:
    """What of a run is compared."""

    outcomes: JobOutcomes
    trace: PowerTrace | None
    metrics: Values
    rejections: Mapping[str, int]


def _cases_of(name: str, value: Any) -> Mapping[str, Case] | str:
    """The name of a preset, or cases by label. Raises InputError."""
    if isinstance(value, str):
        if value not in PRESETS:
            raise InputError("preset", f"{shown(value)} is not known", f"use {', '.join(PRESETS)}")
    elif not isinstance(value, Mapping):
        raise wrong(name, "a preset or a dict of cases", value, "see batwatt.Case")
    else:
        for label, case in value.items():
            _check_case(label, case)
    return value


def _seeds_of(name: str, value: Any) -> list[int]:
    seeds = several(name, value, seed_of, "a list of whole numbers")
    if len(set(seeds)) < len(seeds):
        raise InputError(name, "has a seed twice", "a run that counts twice makes errors too small")
    return seeds


@checked(
    cases=_cases_of,
    carbon=signal_or,
    price=signal_or,
    seeds=_seeds_of,
    workers=workers_of,
    lenient=optional(partial(several, one=text)),
    each=function_or_none,
    progress=function_or_none,
)
def compare_systems(
    platform: PlatformLike,
    workload: WorkloadLike,
    envelope: SeriesLike | None = None,
    cases: Mapping[str, Case] | str = "systems",
    *,
    capacity: SeriesLike | None = None,
    carbon: SignalLike | None = None,
    price: SignalLike | None = None,
    begin: str | None = None,
    seeds: Sequence[int] = (0,),
    workers: int = 1,
    lenient: Collection[str] | None = None,
    each: Callable[[str, int, Result], None] | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> Comparison:
    """Run cases on the same jobs under the same power, and measure them alike.

    Args:
        platform: As for `simulate`; its hosts need watts.
        workload: As for `simulate`. A trace of jobs suits all systems: `checkpoint` cannot run jobs in flops.
        envelope: Power in W over time, as for `simulate`.
        capacity: Machines alive over time, as for `simulate`: what they may draw is an envelope, too.
        cases: Label -> `Case`, or the name of a preset.
        carbon: Carbon intensity in g/kWh, as for `simulate`; the scheduler `carbon` is left out of presets without it
            and a price.
        price: Price per kWh, likewise.
        begin: Date of 0 s, as for `simulate`.
        seeds: Of schedulers that have an option `seed`; others run once, and their figures count for all.
        workers: Processes.
        lenient: Labels of cases that are left out if they cannot run, and named in `errors`. Default: all of a preset.
        each: Called in the process of a case with its label, seed and result, for instance to save it.
        progress: Called with how many runs have ended, and how many there are.

    Returns:
        A `Comparison`.

    Raises:
        batwatt.errors.InputError: Bad input.
    """
    if isinstance(cases, str):
        cases = PRESETS[cases]
        lenient = cases if lenient is None else lenient
    if not cases or not seeds:
        raise InputError("compare", "has no cases" if not cases else "has no seeds", "give at least one")
    seeded = {label for label, case in cases.items() if _draws(case)}
    tasks = [(label, seed) for label in cases for seed in (seeds if label in seeded else seeds[:1])]
    given, hosts = platform_and_spec(platform)
    workload, log = workload_given(workload), LogOptions(begin=begin)
    if not isinstance(workload, workloads.Workload):
        workload, log = Workload.read(workload, begin=begin), USUAL
    power = MachinePower.of(hosts)
    with collected_remarks() as remarks:
        series = envelope_or(envelope), capacity_or(capacity)
        by: Any = carbon, price
        clock = clock_of([workload], log.date("begin"), (*series, *by))
        workload = workload if clock is None else replace(workload, begin=clock.date)
        cap = _cap(power, hosts, *series, workload.last_submission_s, clock)
        read_signals = (signal_of(one, workload.last_submission_s, clock) for one in by)
        signals = dict(zip(("carbon_g", "cost"), read_signals, strict=True))
        tell(clock)
    tell_before_work()
    report = progress or (lambda ended, total: None)
    work = _Work(given, workload, cap, power, signals, cases, seeded, each)
    if workers > 1 and len(tasks) > 1:
        # children have what was read: nothing but figures goes from one process to another
        pool_size = min(workers, len(tasks))
        with ProcessPoolExecutor(pool_size, multiprocessing.get_context("fork"), _adopt, (work,)) as pool:
            futures = [pool.submit(_measured, task) for task in tasks]
            for ended, _ in enumerate(as_completed(futures), 1):
                report(ended, len(tasks))
            found = [future.result() for future in futures]
    else:
        found = []
        for task in tasks:
            found.append(work.measured(*task))
            report(len(found), len(tasks))
    failed = {label: one for (label, _), one in zip(tasks, found, strict=True) if isinstance(one, BatwattError)}
    for label, error in failed.items():
        if label in (lenient or ()):
            continue
        if isinstance(error, InputError):
            raise InputError(f"case {label!r}", str(error)) from error
        raise error
    errors = {label: str(error) for label, error in failed.items()}
    done = {task: one for task, one in zip(tasks, found, strict=True) if isinstance(one, Measured)}
    if not done:
        raise InputError("comparison", "no case could run", "; ".join(f"{name}: {why}" for name, why in errors.items()))
    rows = []
    for label, case in cases.items():
        for seed in seeds:
            one = done.get((label, seed if label in seeded else seeds[0]))
            if one is not None:
                about = {"case": label, "scheduler": _scheduler_name(case), "seed": seed}
                rows.append(about | _figures(one, cap, power, len(hosts)))
    import pandas as pd

    table = pd.DataFrame(rows).dropna(axis="columns", how="all")
    jobs = _job_table(workload, done, seeds[0])
    traces = {label: one.trace for (label, seed), one in done.items() if seed == seeds[0] and one.trace is not None}
    facts = {
        label: CaseFacts(_scheduler_name(case), case.options, case.limit, label in seeded)
        for label, case in cases.items()
    }
    rejected = {label: one.rejections for (label, seed), one in done.items() if seed == seeds[0] and one.rejections}
    read = (*workload.remarks, *remarks)
    price_of_all = signals["cost"]
    currency = price_of_all.currency if price_of_all is not None else ""
    return Comparison(table, jobs, errors, facts, traces, cap, power, workload.source, read, rejected, currency)


@dataclass(frozen=True)
class _Work:
    """What all cases of a comparison share; `seeded`: the labels of those that draw at random."""

    platform: Any
    workload: workloads.Workload
    cap: Series
    power: MachinePower
    signals: Mapping[str, SignalIntegral | None]
    cases: Mapping[str, Case]
    seeded: Collection[str]
    each: Callable[[str, int, Result], None] | None

    def measured(self, label: str, seed: int) -> Measured | BatwattError:
        """Run a case, or why it cannot run."""
        case = self.cases[label]
        options = dict(case.options)
        if label in self.seeded:
            options["seed"] = seed
        # on its clock already: there is nothing to say about it
        followed = replace(self.cap, source="")
        if case.limit == "none":
            followed = Series((0.0,), (self.power.machines * self.power.full_w,), self.cap.name, "no limit")
        elif case.limit == "mean":
            followed = _mean(self.cap, self.workload)
        try:
            result = simulate(
                self.platform,
                self.workload,
                case.scheduler,
                options=options,
                envelope=followed,
                carbon=self.signals["carbon_g"],
                price=self.signals["cost"],
                progress=False,
            )
        except BatwattError as error:
            return error
        if self.each is not None:
            self.each(label, seed, result)
        figures = result.figures
        return Measured(figures.outcomes, figures.power, rounded(figures.metrics), figures.rejections)


def _cap(
    power: MachinePower,
    hosts: Platform,
    envelope: Path | EnvelopeSpec | Series | None,
    capacity: Path | CapacitySpec | Series | None,
    last_s: float,
    clock: Clock | None,
) -> Series:
    """The power that is compared with: an envelope, what a capacity may draw, or the less of both. InputError."""
    caps = []
    if envelope is not None:
        caps.append(envelope_of(envelope, hosts, last_s, clock))
    if capacity is not None:
        caps.append(power.drawn_by(capacity_of(capacity, power.machines, last_s, clock)))
    if not caps:
        raise InputError("envelope, capacity", "are missing", "give one of them")
    return reduce(least_of, caps)


def _check_case(label: Any, case: Any) -> None:
    """InputError for what is no case; an instance of a scheduler cannot run several times."""
    where = f"case {shown(label)}"
    if not (isinstance(label, str) and label and label.isprintable()):
        raise InputError("cases", f"a label must be a text in one line, got {shown(label)}", "write another name")
    if not isinstance(case, Case):
        raise InputError(where, f"must be a Case, got {type(case).__name__}", 'write Case("varcap", {...})')
    if not isinstance(case.scheduler, str | type):
        raise wrong(f"{where}: scheduler", "a name or a class", case.scheduler, "an instance runs once only")
    if case.options is None:
        raise wrong(f"{where}: options", "a dict with names as keys", None, "give for instance {}")
    options_of(f"{where}: options", case.options)
    if not (isinstance(case.limit, str) and case.limit in LIMITS):
        raise InputError(where, f"limit {shown(case.limit)} is not known", f"use {', '.join(LIMITS)}")


_work: list[_Work] = []


def _adopt(work: _Work) -> None:
    # who ends the parent ends these with it
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    _work[:] = [work]


def _measured(task: tuple[str, int]) -> Measured | BatwattError:
    return _work[0].measured(*task)


def _scheduler_name(case: Case) -> str:
    return case.scheduler if isinstance(case.scheduler, str) else case.scheduler.__name__


def _draws(case: Case) -> bool:
    """Whether the scheduler of a case has a seed, and the case leaves it open."""
    kind = scheduler_class(case.scheduler)
    return issubclass(kind, Scheduler) and "seed" in kind.Options.model_fields.keys() - case.options.keys()


def _mean(cap: Series, workload: workloads.Workload) -> Series:
    """The envelope's mean, over its rows and at least until the last submission: a limit of as much energy."""
    end_s = max(cap.times_s[-1] + cap.last_step_s, workload.last_submission_s)
    energy_j = sum(value * (end - begin) for begin, end, value in cap.steps(0.0, end_s))
    return Series((0.0,), (energy_j / end_s,), cap.name, f"mean of {cap.source}")


def _figures(one: Measured, cap: Series, power: MachinePower, hosts: int) -> dict[str, float | int | None]:
    """The measures of a case; numbers are rounded as those of a run are."""
    figures = {name: one.metrics.get(name) for name in COMPARED}
    end_s = one.metrics["makespan_s"] or 0.0
    fed_s = sum(n * (end - begin) for begin, end, n in power.fed_by(cap).steps(0.0, end_s)) if end_s > 0.0 else 0.0
    if fed_s > 0.0:
        figures["fed_host_use"] = round(one.outcomes.useful_host_s / (fed_s * hosts / power.machines), 6)
    if one.trace is not None:
        # against the cap of all, whatever this case follows
        pieces = against(one.trace, cap)
        figures["violations"] = pieces.violations
        figures["energy_above_cap_j"] = round(pieces.above_j, 6)
        figures["unused_j"] = round(pieces.unused_j, 6)
    return figures


def _job_table(workload: workloads.Workload, done: Mapping[tuple[str, int], Measured], seed: int) -> pd.DataFrame:
    """A row for each case and job, with its differences to the first case."""
    import pandas as pd

    labels = {name: [job.raw.get(name) for job in workload.jobs] for name in workloads.LABELS}
    named = {name: values for name, values in labels.items() if any(value is not None for value in values)}
    parts = []
    reference: JobOutcomes | None = None
    for (label, number), one in done.items():
        if number != seed:
            continue
        outcomes = one.outcomes
        reference = reference or outcomes
        columns = {
            "case": label,
            "job_id": [job.name for job in workload.jobs],
            **named,
            "hosts": outcomes.hosts.astype(np.int64),
            "submission_time_s": outcomes.submit_s,
            "length_s": outcomes.length_s,
            "state": outcomes.state,
            "cause": outcomes.cause,
            "attempts": outcomes.attempts.astype(np.int64),
            "wait_s": outcomes.wait_s,
            "full_speed_slowdown": outcomes.full_speed_slowdown,
            "energy_j": outcomes.energy_j,
            "wait_more_s": outcomes.wait_s - reference.wait_s,
            "full_speed_slowdown_more": outcomes.full_speed_slowdown - reference.full_speed_slowdown,
        }
        parts.append(pd.DataFrame(columns))
    return pd.concat(parts, ignore_index=True)
